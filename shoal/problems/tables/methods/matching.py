"""Two sensitive values and l = 2: the least loss, by minimum-cost transportation on counts.

Xiao, Yi, Tao 2010, section 4: every group has equally many rows of both values, so it can be split into pairs of one
row each, and a pair loses no more than the group. The best pairs are a minimum-cost perfect matching.

Not in the paper: rows with equal quasi-identifiers are matched first, which is optimal because every loss here is a
metric. The rest is types with counts, a transportation problem, solved by shortest augmenting paths; their prices prove
the result. This works for any loss of a ``Recoding``, not only stars.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import ceil

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Partition
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds import refuse_ceiling
from shoal.problems.tables.losses import NARROW, WIDE, WholeLosses, pair_losses, whole_losses

SOURCE = "Xiao, Yi, Tao 2010, section 4"
MOST_PAIRS = 250_000_000
BLOCK = 4_000_000
STEP = 64


def matching(task: Task) -> Grouping:
    """Optimal for two sensitive values under l = 2; PolicyError with the reason for anything else.

    The certificate's bound is the dual of the transportation problem. It equals the cost if the losses are fractions
    with a common denominator that fits in 56 bits (as integers, decimals, and simple weights do); otherwise it is lower
    by the rounding of losses to 30 bits. If a budget in seconds runs out, the current matching is completed by a simple
    rule, and the bound is that of the current prices.

    For t0 and t1 remaining types with the two values: O(t0 t1 p) time for p augmenting paths; 4 t0 t1 bytes, or 8 t0 t1
    if the losses don't fit in 30 bits.
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

    # pairs (type of one value, type of the other, number), the equal ones first
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


def _lower(task: Task, whole: WholeLosses, bound: int, total: int, pairs: int, cost: float) -> float:
    """The dual in the recoding's unit; the cost itself if the two are equal as integers."""
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


def transported(
    task: Task, left: np.ndarray, right: np.ndarray, supply: np.ndarray, demand: np.ndarray, whole: WholeLosses
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """The least total loss of shipping supply to demand; left, right: cells that represent the types.

    Returns (from, to, amount) of the parcels, their total loss, and a lower bound of it, in units of 1 / scale.
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
    # any prices u prove a bound: no matching is below sum of supply u + demand v, where v is the least of cost - u
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
    """(from, to, amount) by the north-west corner rule, for the rest after a search ran out of time."""
    ends = np.unique(np.concatenate([[0], np.cumsum(supply), np.cumsum(demand)]))
    one, other = (np.searchsorted(np.cumsum(x), ends[1:] - 1, "right") for x in (supply, demand))
    return one, other, np.diff(ends)
