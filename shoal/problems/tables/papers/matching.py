"""Two sensitive values and l = 2: the least loss there is, by minimum-cost transportation on counts.

Xiao, Yi, Tao 2010, section 4: every group has as many rows of one value as of the other, so it falls apart into pairs,
one row of each; a pair loses no more than the group did.  The best pairs are a minimum-cost perfect matching.

Not in the paper: rows with equal quasi-identifiers are matched first, which costs nothing later because every loss here
is a metric; what is left are types with counts, a transportation problem, solved by shortest augmenting paths whose
prices prove the answer.  Any loss of a ``Recoding`` will do, not stars alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import lcm

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.partition import Partition
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import refuse_ceiling

SOURCE = "Xiao, Yi, Tao 2010, section 4"
MOST_PAIRS = 250_000_000
BLOCK = 4_000_000
STEP = 64


def matching(task: Task) -> Grouping:
    """Optimal for two sensitive values under l = 2; PolicyError, with the reason, for anything else.

    The certificate's bound is the dual of the transportation problem: equal to the cost for stars, hierarchies and sets
    with whole weights, else below it by the rounding of losses to 30 bits.  When a budget in seconds runs out first,
    the matching so far is completed anyhow and the bound is that of the prices so far.

    For t0 and t1 types left with either value O(t0 t1 p) time for p augmenting paths; 4 t0 t1 bytes.
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
    scale, exact = _scale(recoding)
    from_, to, amount, total, bound = _transport(
        task, first[left], first[right], spare[0, left], spare[1, right], scale
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
    if exact and bound == total:
        lower: float = cost  # equal in whole numbers
    elif recoding.unit == "stars" and exact:
        lower = tight(2 * bound, cost, recoding.unit, "dual")
    else:  # every pair's loss may have been rounded by half a unit in each column
        below = 2 * (bound - 0.5 * len(recoding.columns) * float(spare[0].sum())) / scale
        below /= 1 if recoding.unit == "stars" else histogram.rows * max(len(recoding.columns), 1)
        lower = tight(max(below * (1 - 1e-12), 0.0), cost, recoding.unit, "dual")
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


def pair_losses(recoding: Recoding, a: np.ndarray, b: np.ndarray, scale: int | None = None) -> np.ndarray:
    """float64[x, y]: what a row loses when code tuples a int[x, d] and b int[y, d] are published together.

    Times ``scale`` and rounded to whole numbers where one is given.
    """
    out = np.zeros((a.shape[0], b.shape[0]))
    for j, column in enumerate(recoding.columns):
        x, y = a[:, j], b[:, j]
        if column.kind == "levels":
            part = np.zeros(out.shape)
            for level in range(column.levels - 1):
                apart = column.node[level][x][:, None] != column.node[level][y]
                part = np.where(apart, column.loss[level + 1][x][:, None], part)
        elif column.kind == "range":
            part = column.width(np.minimum(x[:, None], y), np.maximum(x[:, None], y))
        else:
            part = (x[:, None] != y) / max(column.size - 1, 1)
        part *= column.weight
        out += part if scale is None else np.rint(part * scale)
    return out


def _scale(recoding: Recoding) -> tuple[int, bool]:
    """A factor for losses in whole numbers, and whether it makes every loss whole."""
    heaviest = max(sum(c.weight for c in recoding.columns), 1e-9)
    room = int(2**30 / heaviest)
    whole = all(c.kind != "range" and c.weight == int(c.weight) for c in recoding.columns)
    scale = 1 if recoding.unit == "stars" else lcm(*(max((c.leaves or c.size) - 1, 1) for c in recoding.columns))
    if whole and scale <= room:
        parts = [c.loss * scale for c in recoding.columns]
        if all(np.abs(part - np.rint(part)).max(initial=0) < 1e-6 for part in parts):
            return scale, True
    return max(room, 1), False


def _transport(
    task: Task, left: np.ndarray, right: np.ndarray, supply: np.ndarray, demand: np.ndarray, scale: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    """Least total loss of shipping supply to demand; left, right are cells that stand for the types.

    Returns (from, to, amount) of the parcels, their total loss, and a lower bound on it, in units of 1 / scale.
    """
    from shoal.kernels.tables.transport import prices, ship

    nothing = np.zeros(0, np.int64)
    if not left.size:
        return nothing, nothing, nothing, 0, 0
    if left.size * right.size > MOST_PAIRS:
        raise PolicyError(
            f"matching would price {left.size} x {right.size} pairs of types, more than fits in memory; "
            "use 'three_phase_hilbert', or fewer quasi-identifiers"
        )
    a, b = task.histogram.quasi[left], task.histogram.quasi[right]
    cost = np.empty((left.size, right.size), np.int32)
    for some in _blocks(left.size, right.size):
        cost[some] = pair_losses(task.recoding, a[some], b, scale)
    u, v = np.empty(left.size, np.int64), np.empty(right.size, np.int64)
    prices(cost, u, v)
    total = int(supply.sum())
    head = np.full(right.size, -1, np.int64)
    after, source, amount = np.empty(total, np.int64), np.empty(total, np.int64), np.zeros(total, np.int64)
    supply, demand = supply.copy(), demand.copy()
    whole = supply.copy(), demand.copy()
    used, seconds = 0, task.effort.seconds
    for low in range(0, left.size, STEP):
        if seconds is not None and time.monotonic() - task.started > seconds:
            break
        high = min(low + STEP, left.size)
        used = int(ship(cost, supply, demand, u, v, head, after, source, amount, used, low, high))
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
    bound = int((whole[0] * u).sum() + (whole[1] * least).sum())
    return one, other, many, int((many * cost[one, other].astype(np.int64)).sum()), bound


def _blocks(x: int, y: int) -> Iterator[slice]:
    step = max(BLOCK // max(y, 1), 1)
    for at in range(0, x, step):
        yield slice(at, min(at + step, x))


def _corner(supply: np.ndarray, demand: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(from, to, amount) by the north-west corner rule: what a search that ran out of time left over."""
    ends = np.unique(np.concatenate([[0], np.cumsum(supply), np.cumsum(demand)]))
    one, other = (np.searchsorted(np.cumsum(x), ends[1:] - 1, "right") for x in (supply, demand))
    return one, other, np.diff(ends)
