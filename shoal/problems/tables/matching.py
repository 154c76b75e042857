"""Two sensitive values and l = 2: the least loss there is, by minimum-cost transportation on counts.

Xiao, Yi, Tao 2010, section 4: every group has as many rows of one value as of the other, so it falls apart into pairs,
one row of each; a pair loses no more than the group did.  The best pairs are a minimum-cost perfect matching.

Not in the paper: rows with equal quasi-identifiers are matched first, which costs nothing later because every loss here
is a metric; what is left are types with counts, a transportation problem, solved on few arcs that grow until the duals
prove that no arc left out could help.  Any loss of a ``Recoding`` will do, not stars alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import lcm

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.partition import Partition
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import refuse_ceiling

SOURCE = "Xiao, Yi, Tao 2010, section 4"
LARGEST_SCALE = 1_000_000
MOST_PAIRS = 20_000_000_000
BLOCK = 4_000_000


def matching(task: Task) -> Grouping:
    """Optimal for two sensitive values under l = 2; PolicyError, with the reason, for anything else.

    The certificate's bound is the dual of the transportation problem: equal to the cost for stars, hierarchies and sets
    of unit weights (exact integers), a billionth below it otherwise.  When a budget in seconds runs out first, the best
    matching found is returned with the bound proved so far.

    O(t0 t1 d) per round of pricing, for t0 and t1 types left with either value; memory linear.
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
    flow, bound, scale = _transport(task, first[left], first[right], spare[0, left], spare[1, right])

    # pairs (type of one value, type of the other, how many), the equal ones first
    same = np.flatnonzero(equal)
    one = np.concatenate([same, left[flow[0]]])
    other = np.concatenate([same, right[flow[1]]])
    many = np.concatenate([equal[same], flow[2]])
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
    exact = scale is not None
    proved = round(2 * bound)
    if recoding.unit == "stars" and exact:
        lower: float = min(proved // int(scale or 1), cost)
    elif exact and proved == round(2 * float((flow[2] * flow[3]).sum())):
        lower = cost  # equal in integers, so equal
    else:
        share = 2 * bound / (scale or 1) / (histogram.rows * max(len(recoding.columns), 1))
        lower = max(min(share * (1 - 1e-9) - 1e-12, cost), 0.0)
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
    if len(columns) != 1 or need.frequency[columns[0]] != 2 or need.distinct[columns[0]] > 2:
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


def pair_losses(recoding: Recoding, a: np.ndarray, b: np.ndarray, scale: int | None) -> np.ndarray:
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
            place = column.position / column.span
            part = np.abs(place[x][:, None] - place[y])
        else:
            part = (x[:, None] != y) / max(column.size - 1, 1)
        part *= column.weight
        out += part if scale is None else np.rint(part * scale)
    return out


def _scale(recoding: Recoding) -> int | None:
    """A number that makes every loss whole, where there is a small one."""
    if any(c.kind == "range" or c.weight != int(c.weight) for c in recoding.columns):
        return None
    scale = lcm(*(max(c.size - 1, 1) for c in recoding.columns))
    if recoding.unit == "stars":
        scale = 1
    if scale > LARGEST_SCALE:
        return None
    for c in recoding.columns:
        scaled = c.loss * scale
        if np.abs(scaled - np.rint(scaled)).max(initial=0) > 1e-6:
            return None
    return scale


def _transport(
    task: Task, left: np.ndarray, right: np.ndarray, supply: np.ndarray, demand: np.ndarray
) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], float, int | None]:
    """Least total loss of shipping supply to demand; left, right are cells that stand for the types.

    Returns (from, to, amount, loss of the arc) of the arcs used, a proved lower bound on the total, and the scale both
    are in (None: not scaled).
    """
    scale = _scale(task.recoding)
    nothing = np.zeros(0, np.int64)
    if not left.size:
        return (nothing, nothing, nothing, np.zeros(0)), 0.0, scale
    if left.size * right.size > MOST_PAIRS:
        raise PolicyError(
            f"matching would price {left.size} x {right.size} pairs of types; "
            "use 'three_phase_hilbert', or fewer quasi-identifiers"
        )
    a, b = task.histogram.quasi[left], task.histogram.quasi[right]
    program = _Program(supply, demand)
    arcs = np.unique(np.concatenate([_corner(a, b, supply, demand), _nearest(task.recoding, a, b, scale)]), axis=0)
    best = -np.inf
    seconds = task.effort.seconds
    while True:
        program.add(arcs, arc_losses(task.recoding, a[arcs[:, 0]], b[arcs[:, 1]], scale))
        amount, price = program.solve()
        bound, arcs = _price(task.recoding, a, b, supply, demand, price, scale)
        best = max(best, bound)
        task.progress("matching: pricing pairs", None)
        late = seconds is not None and time.monotonic() - task.started > seconds
        if not len(arcs) or late:
            break
    used = np.flatnonzero(amount)
    found = program.arcs[used]
    return (found[:, 0], found[:, 1], amount[used], program.loss[used]), best, scale


def arc_losses(recoding: Recoding, a: np.ndarray, b: np.ndarray, scale: int | None) -> np.ndarray:
    """float64[x]: ``pair_losses`` of a[i] with b[i]."""
    out = np.zeros(a.shape[0])
    for j, column in enumerate(recoding.columns):
        x, y = a[:, j], b[:, j]
        if column.kind == "levels":
            part = np.zeros(out.shape)
            for level in range(column.levels - 1):
                part = np.where(column.node[level][x] != column.node[level][y], column.loss[level + 1][x], part)
        elif column.kind == "range":
            part = np.abs(column.position[x] - column.position[y]) / column.span
        else:
            part = (x != y) / max(column.size - 1, 1)
        part = part * column.weight
        out += part if scale is None else np.rint(part * scale)
    return out


def _blocks(x: int, y: int) -> Iterator[slice]:
    step = max(BLOCK // max(y, 1), 1)
    for at in range(0, x, step):
        yield slice(at, min(at + step, x))


def _corner(a: np.ndarray, b: np.ndarray, supply: np.ndarray, demand: np.ndarray) -> np.ndarray:
    """Arcs of the north-west corner rule along lexicographic order: a matching that always exists."""
    i, j = np.lexsort(a.T[::-1]), np.lexsort(b.T[::-1])
    ends = np.unique(np.concatenate([np.cumsum(supply[i]), np.cumsum(demand[j])])) - 1
    one, other = (np.searchsorted(np.cumsum(x), ends, "right") for x in (supply[i], demand[j]))
    return np.stack([i[one], j[other]], axis=1)


def _nearest(recoding: Recoding, a: np.ndarray, b: np.ndarray, scale: int | None, few: int = 8) -> np.ndarray:
    """Arcs from every type to a few of the nearest on the other side, both ways."""
    found = []
    for p, q, turned in ((a, b, False), (b, a, True)):
        few_here = min(few, q.shape[0])
        for some in _blocks(p.shape[0], q.shape[0]):
            loss = pair_losses(recoding, p[some], q, scale)
            near = np.argpartition(loss, few_here - 1, axis=1)[:, :few_here]
            rows = np.repeat(np.arange(some.start, some.stop), few_here)
            pair = np.stack([rows, near.reshape(-1)], axis=1)
            found.append(pair[:, ::-1] if turned else pair)
    return np.concatenate(found)


def _price(
    recoding: Recoding,
    a: np.ndarray,
    b: np.ndarray,
    supply: np.ndarray,
    demand: np.ndarray,
    price: np.ndarray,
    scale: int | None,
    few: int = 4,
) -> tuple[float, np.ndarray]:
    """(lower bound, arcs that would lower the cost).

    Any prices u of one side give the bound sum s u + sum d v with v = min over the other side of (loss - u): for these
    v no arc is below its two prices, so no matching is below the sum.
    """
    u, v = price[: a.shape[0]], price[a.shape[0] :]
    if scale is not None:
        u, v = np.rint(u), np.rint(v)
    least = np.full(b.shape[0], np.inf)
    found = []
    for some in _blocks(a.shape[0], b.shape[0]):
        reduced = pair_losses(recoding, a[some], b, scale) - u[some, None]
        least = np.minimum(least, reduced.min(axis=0))
        reduced -= v
        take = min(few, b.shape[0])
        near = np.argpartition(reduced, take - 1, axis=1)[:, :take]
        value = np.take_along_axis(reduced, near, axis=1)
        row, at = np.nonzero(value < -(0.5 if scale is not None else 1e-9))
        found.append(np.stack([row + some.start, near[row, at]], axis=1))
    return float((supply * u).sum() + (demand * least).sum()), np.concatenate(found)


class _Program:
    """The transportation problem on the arcs so far, in HiGHS, warm between rounds."""

    def __init__(self, supply: np.ndarray, demand: np.ndarray) -> None:
        import highspy

        self.high = highspy.Highs()
        self.high.setOptionValue("output_flag", False)
        self.high.setOptionValue("threads", 1)
        self.right = supply.size
        self.arcs, self.loss = np.zeros((0, 2), np.int64), np.zeros(0)
        amounts = np.concatenate([supply, demand]).astype(float)
        none = np.zeros(0, np.int32)
        self.high.addRows(amounts.size, amounts, amounts, 0, np.zeros(amounts.size, np.int32), none, np.zeros(0))

    def add(self, arcs: np.ndarray, loss: np.ndarray) -> None:
        n = len(arcs)
        index = np.stack([arcs[:, 0], arcs[:, 1] + self.right], axis=1).reshape(-1).astype(np.int32)
        start = np.arange(0, 2 * n, 2, dtype=np.int32)
        free = np.full(n, self.high.getInfinity())
        self.high.addCols(n, loss, np.zeros(n), free, 2 * n, start, index, np.ones(2 * n))
        if len(self.arcs):
            self.high.setOptionValue("simplex_strategy", 4)  # primal: the old answer is still feasible
        self.arcs, self.loss = np.concatenate([self.arcs, arcs]), np.concatenate([self.loss, loss])

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """(whole amounts of the arcs, prices of the rows); a vertex of this polytope is whole."""
        self.high.setOptionValue("solver", "simplex")
        self.high.run()
        found = self.high.getSolution()
        return np.rint(np.array(found.col_value)).astype(np.int64), np.array(found.row_dual)
