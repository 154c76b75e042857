"""Two sensitive values and l = 2: the least loss there is, by minimum-cost transportation on counts.

Xiao, Yi, Tao 2010, section 4: every group has as many rows of one value as of the other, so it falls apart into pairs,
one row of each; a pair loses no more than the group did.  The best pairs are a minimum-cost perfect matching.

Not in the paper: rows with equal quasi-identifiers are matched first, which costs nothing later because every loss here
is a metric; what is left are types with counts, a transportation problem, solved by shortest augmenting paths whose
prices prove the answer.  Any loss of a ``Recoding`` will do, not stars alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, lcm
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Partition
from shoal.model.recoding import ColumnRecoding, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds.certify import refuse_ceiling

SOURCE = "Xiao, Yi, Tao 2010, section 4"
MOST_PAIRS = 250_000_000
BLOCK = 4_000_000
STEP = 64
NARROW, WIDE = 2**30, 2**56  # largest loss of a pair as an int32; as an int64 that prices cannot overflow
DENOMINATOR = 10**5  # losses of levels and weights are read as fractions with at most this denominator


def matching(task: Task) -> Grouping:
    """Optimal for two sensitive values under l = 2; PolicyError, with the reason, for anything else.

    The certificate's bound is the dual of the transportation problem: equal to the cost where the losses are fractions
    with a common denominator that fits 56 bits, as whole numbers, decimals and simple weights do, else below it by the
    rounding of losses to 30 bits.  When a budget in seconds runs out first, the matching so far is completed anyhow and
    the bound is that of the prices so far.

    For t0 and t1 types left with either value O(t0 t1 p) time for p augmenting paths; 4 t0 t1 bytes, or 8 t0 t1 where
    30 bits do not hold the losses.
    """
    histogram, need, recoding = task.histogram, task.requirement, task.recoding
    _refuse(task)
    if not histogram.cells:
        partition = Partition.of(np.zeros(0), np.zeros(0), np.zeros(0))
        return Grouping(partition, Certificate(cost=0, lower_bound=0, unit=recoding.unit), "matching")
    column = need.sensitive_columns[0]
    of_type, first = histogram.types
    second = histogram.sensitive[:, column] == histogram.sensitive[:, column].max()
    sides = (~second, second)
    held = np.stack([np.bincount(of_type, weights=histogram.count * s, minlength=first.size) for s in sides])
    held = held.astype(np.int64)
    equal = held.min(axis=0)
    spare = held - equal
    left, right = np.flatnonzero(spare[0]), np.flatnonzero(spare[1])
    whole = whole_losses(recoding, NARROW if left.size * right.size > MOST_PAIRS // 2 else WIDE)
    from_, to, amount, total, bound = transported(
        task, first[left], first[right], spare[0, left], spare[1, right], whole
    )

    # pairs (type of one value, type of the other, how many), the equal ones first
    same = np.flatnonzero(equal)
    one = np.concatenate([same, left[from_]])
    other = np.concatenate([same, right[to]])
    many = np.concatenate([equal[same], amount])
    group = np.arange(one.size)
    parts = []
    for side, end in zip(sides, (one, other), strict=True):
        cells = np.flatnonzero(side)
        cells = cells[np.argsort(of_type[cells], kind="stable")]
        order = np.argsort(end, kind="stable")
        parts.append((np.repeat(cells, histogram.count[cells]), np.repeat(group[order], many[order])))
    cell, label = (np.concatenate([a, b]) for a, b in zip(*parts, strict=True))
    partition = Partition.of(cell, label, np.ones(cell.size, np.int64))

    refuse_ceiling(task, partition, "matching")
    cost = recoding.cost(histogram, partition)
    lower = _lower(task, whole, bound, total, int(spare[0].sum()), cost)
    return Grouping(
        partition,
        Certificate(
            cost=cost,
            lower_bound=lower,
            unit=recoding.unit,
            guarantee=Guarantee(factor=1, additive=0, theorem=f"{SOURCE}: the best pairs are an optimal matching"),
            bound="dual of the transportation problem, checked on every pair of types",
            details={"types": int(first.size), "unequal_types": int(left.size + right.size), "pairs": int(many.sum())},
        ),
        "matching",
    )


def _lower(task: Task, whole: Whole, bound: int, total: int, pairs: int, cost: float) -> float:
    """The dual in the recoding's unit; the cost itself where the two are equal in whole numbers."""
    if whole.exact and bound == total:
        return cost
    stars, columns = task.recoding.unit == "stars", len(task.recoding.columns)
    # every pair's loss may have been rounded by half a unit in each column
    twice = Fraction(2 * bound - (0 if whole.exact else columns * pairs), whole.scale)
    if stars and whole.exact:
        return tight(ceil(twice), cost, task.recoding.unit, "dual")
    below = float(twice if stars else twice / (task.histogram.rows * max(columns, 1)))
    return tight(max(below * (1 - 1e-12), 0.0), cost, task.recoding.unit, "dual")


def _refuse(task: Task) -> None:
    need = task.requirement
    columns = need.sensitive_columns
    if need.rules or len(columns) != 1 or need.frequency[columns[0]] != 2 or need.distinct[columns[0]] > 2:
        raise PolicyError(
            "matching pairs rows of two sensitive values, so it needs one sensitive column under l-diversity with "
            "l = 2; use another method, for example 'three_phase_hilbert'"
        )
    if need.k > 2:
        raise PolicyError(f"matching makes pairs, and k = {need.k} asks for more rows; use 'three_phase_hilbert'")
    values = np.unique(task.histogram.sensitive[:, columns[0]]).size
    if task.histogram.cells and values != 2:
        name = task.histogram.sensitive_names[columns[0]]
        raise PolicyError(
            f"matching is for two sensitive values, and {name!r} has {values} (with three the problem is NP-hard); "
            "use 'three_phase_hilbert'"
        )


class Whole(NamedTuple):
    """Losses as whole numbers, in units of 1 / scale.

    exact    whether they are the losses; otherwise every pair's loss is rounded, by half a unit in each column
    columns  int64 per column: levels [h, size], range [3, size] (lower ends, upper ends, the most there is to lose),
             set [1] (any two values); floats, the losses themselves, where they are not exact
    most     no pair loses more
    """

    scale: int
    exact: bool
    columns: tuple[np.ndarray, ...]
    most: int


def whole_losses(recoding: Recoding, most: int = WIDE) -> Whole:
    """Losses of pairs in whole numbers of at most ``most``, exact where one denominator serves all columns."""
    fractions = [_fractions(column) for column in recoding.columns]
    known = [found for found in fractions if found is not None]
    scale = 1
    for f in (f for found in known for f in found):
        scale = lcm(scale, f.denominator)
        if scale > 2 * most * DENOMINATOR:  # digits without end
            known = []
            break
    if len(known) == len(recoding.columns):
        top = sum(int(max(found, default=Fraction(0)) * scale) for found in known)
        if top <= most:
            tables = []
            for column, found in zip(recoding.columns, known, strict=True):
                table = np.array([int(f * scale) for f in found], np.int64)
                tables.append(table.reshape(column.pair_table().shape))
            return Whole(scale, True, tuple(tables), top)
    heaviest = max(sum(c.weight for c in recoding.columns), 1e-9)
    scale = max(int(NARROW / heaviest), 1)
    return Whole(scale, False, tuple(c.pair_table() for c in recoding.columns), NARROW)


def _fractions(column: ColumnRecoding) -> list[Fraction] | None:
    """The numbers of ``pair_table`` as fractions; None where the floats are none that a person would have written.

    Positions are read as the decimals they print as; weights and losses of levels as fractions of small denominator,
    0.142857142857 as 1/7, or as decimals.
    """
    weight, found = _read(column.weight), column.pair_fractions(_read)
    if found is None:
        return None
    out = [fraction * weight for fraction in found]
    near = np.abs(np.array([float(f) for f in out]) - column.pair_table().reshape(-1))
    return out if near.max(initial=0.0) <= 1e-12 * max(float(weight), 1.0) else None


def _read(value: float) -> Fraction:
    small = Fraction(value).limit_denominator(DENOMINATOR)
    return small if abs(float(small) - value) <= 1e-15 * abs(value) else Fraction(repr(value))


def pair_losses(recoding: Recoding, a: np.ndarray, b: np.ndarray, whole: Whole | None = None) -> np.ndarray:
    """[x, y]: what a row loses when code tuples a int[x, d] and b int[y, d] are published together.

    float64, or int64 in the unit of whole numbers where these are given.
    """
    tables = [c.pair_table() for c in recoding.columns] if whole is None else whole.columns
    out = np.zeros((a.shape[0], b.shape[0]), np.float64 if whole is None else np.int64)
    for j, column in enumerate(recoding.columns):
        x, y, table = a[:, j], b[:, j], tables[j]
        part = column.paired(table, x[:, None], y)
        out += part if whole is None or whole.exact else np.rint(part * whole.scale).astype(np.int64)
    return out


def transported(
    task: Task, left: np.ndarray, right: np.ndarray, supply: np.ndarray, demand: np.ndarray, whole: Whole
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """Least total loss of shipping supply to demand; left, right are cells that stand for the types.

    Returns (from, to, amount) of the parcels, their total loss, and a lower bound on it, in units of 1 / scale.
    """
    from shoal.kernels.tables.min_cost_flow import Parcels, prices, ship_by_paths

    nothing = np.zeros(0, np.int64)
    if not left.size:
        return nothing, nothing, nothing, 0, 0
    if left.size * right.size > MOST_PAIRS:
        raise PolicyError(
            f"matching would price {left.size} x {right.size} pairs of types, more than fits in memory; "
            "use 'three_phase_hilbert', or fewer quasi-identifiers"
        )
    a, b = task.histogram.quasi[left], task.histogram.quasi[right]
    cost = np.empty((left.size, right.size), np.int32 if whole.most <= NARROW else np.int64)
    for some in _blocks(left.size, right.size):
        cost[some] = pair_losses(task.recoding, a[some], b, whole)
    u, v = np.empty(left.size, np.int64), np.empty(right.size, np.int64)
    prices(cost, u, v)
    total = int(supply.sum())
    head = np.full(right.size, -1, np.int64)
    after, source, amount = np.empty(total, np.int64), np.empty(total, np.int64), np.zeros(total, np.int64)
    parcels = Parcels(head, after, source, amount)
    supply, demand = supply.copy(), demand.copy()
    asked = supply.tolist(), demand.tolist()
    used, seconds = 0, task.effort.seconds
    for low in range(0, left.size, STEP):
        if seconds is not None and clock() - task.started > seconds:
            break
        high = min(low + STEP, left.size)
        used = int(ship_by_paths(cost, supply, demand, (u, v), parcels, used, low, high))
        task.progress("matching rows of the two values", high / left.size)
    to = np.empty(used, np.int64)
    for j in np.flatnonzero(head >= 0):
        at = head[j]
        while at >= 0:
            to[at] = j
            at = after[at]
    one, other, many = _corner(supply, demand)
    one, other = np.concatenate([source[:used], one]), np.concatenate([to, other])
    many = np.concatenate([amount[:used], many])
    kept = many > 0
    one, other, many = one[kept], other[kept], many[kept]
    # any prices u prove: no matching is below sum of supply u + demand v, where v is the least of cost - u
    least = np.full(right.size, np.iinfo(np.int64).max)
    for some in _blocks(left.size, right.size):
        least = np.minimum(least, (cost[some] - u[some, None]).min(axis=0))
    # sums of products may need more than 64 bits
    bound = sum(n * p for n, p in zip([*asked[0], *asked[1]], [*u.tolist(), *least.tolist()], strict=True))
    paid = sum(n * c for n, c in zip(many.tolist(), cost[one, other].tolist(), strict=True))
    return one, other, many, paid, bound


def _blocks(x: int, y: int) -> Iterator[slice]:
    step = max(BLOCK // max(y, 1), 1)
    for at in range(0, x, step):
        yield slice(at, min(at + step, x))


def _corner(supply: np.ndarray, demand: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(from, to, amount) by the north-west corner rule: what a search that ran out of time left over."""
    ends = np.unique(np.concatenate([[0], np.cumsum(supply), np.cumsum(demand)]))
    one, other = (np.searchsorted(np.cumsum(x), ends[1:] - 1, "right") for x in (supply, demand))
    return one, other, np.diff(ends)
