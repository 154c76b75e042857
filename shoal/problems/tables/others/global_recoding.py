"""Global recoding: one level per column for the whole table, the cheapest such choice where it can be proved.

The generalization lattice of Samarati (2001) and LeFevre, DeWitt, Ramakrishnan ("Incognito", SIGMOD 2005), for any
monotone requirement: above an eligible node all are eligible, below an ineligible one none is, and a node can be
eligible only if it is on every pair of columns.

The search takes the cheapest node not yet decided, walks up a chain from it and bisects: the highest ineligible node of
the chain decides all below it, the lowest eligible one all that cost more.
"""

from __future__ import annotations

from itertools import combinations
from math import prod

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.histogram import mixed_radix
from shoal.model.partition import Partition
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import certified, good_groups
from shoal.problems.tables.persons import none_found

MOST_NODES = 3_000_000
LOOKS = {"fast": 300, "balanced": 5_000, "thorough": 200_000, "seconds": 10**9}


def global_recoding(task: Task) -> Grouping:
    """Every column at one level, the least loss of that kind proved where the lattice has at most 3,000,000 nodes.

    ``details`` has the levels, ``uniform_cost`` (the loss when every value is published at its column's level),
    ``uniform_bound`` (no choice of levels loses less) and the number of nodes looked at.  The certificate's own cost is
    that of the groups' common ancestors, never more; ``published`` gives the uniform values.
    Effort bounds the number of nodes looked at; beyond it, or in a larger lattice, the bound falls short of the cost.

    O(m log m) for each node looked at, O(nodes d) for each chain.
    """
    levels, block, facts = search(task)
    label = _label(task, levels)
    label[block] = task.histogram.cells  # behind every other number
    partition = Partition.of(np.arange(task.histogram.cells), label, task.histogram.count)
    return certified(task, partition, "global_recoding", details=facts, starred=bool(block.any()))


def search(task: Task) -> tuple[np.ndarray, np.ndarray, dict[str, object]]:
    """(level of every column, cells starred whole bool[m], facts for the certificate)."""
    histogram, recoding = task.histogram, task.recoding
    for name, column in zip(histogram.quasi_names, recoding.columns, strict=True):
        if not column.levels:
            raise PolicyError(
                f"global recoding puts every column at one level of a hierarchy, and {name!r} is published as a "
                f"{column.kind}; give it a hierarchy, or use 'mondrian'"
            )
    columns = recoding.hierarchies or ()
    block, top = np.zeros(histogram.cells, bool), np.array([c.ceiling for c in columns], np.int64)
    if task.spare and top.size:
        from shoal.problems.tables.others.outliers import decide

        found = decide(task, LOOKS[task.effort.name], MOST_NODES)
        facts = _facts(task, found.levels, found.cost, found.bound, found.looked_at)
        facts["suppressed_rows"] = int(histogram.count[found.block].sum())
        facts["max_suppressed_rows"] = task.spare
        return found.levels, found.block, facts
    tried = _Tried(task)
    cost = _costs(task)
    if not tried.eligible(top):
        held = [n for n, c in zip(histogram.quasi_names, columns, strict=True) if c.held]
        if not held and not task.requirement.closed:
            raise none_found(task)
        raise InfeasibleError(
            "even at the highest levels allowed some groups do not meet the privacy models; allow higher levels for "
            + ", ".join(held)
        )
    if not top.size:
        best, bound = top, 0.0
    elif prod(int(t) + 1 for t in top) <= MOST_NODES:
        best, bound = _decide(task, tried, cost, top)
    else:
        best, bound = _descend(tried, cost, top), 0.0
    total = float(sum(cost[j][h] for j, h in enumerate(best)))
    return best, block, _facts(task, best, total, bound, tried.made)


def _facts(task: Task, levels: np.ndarray, total: float, bound: float, looked_at: int) -> dict[str, object]:
    """What the certificate says of a choice of levels; "proved" stands there only where no choice can lose less."""
    rows = task.histogram.rows
    optimal = bound >= total
    facts: dict[str, object] = {
        "levels": {n: int(h) for n, h in zip(task.histogram.quasi_names, levels, strict=True)},
        "uniform_cost": _in_unit(task.recoding, total, rows),
        "uniform_bound": _in_unit(task.recoding, min(bound, total), rows),
        "uniform_optimal": optimal,
        "nodes_looked_at": looked_at,
    }
    if optimal:
        facts["proved"] = "optimal among full-domain recodings"
    return facts


def _in_unit(recoding: Recoding, total: float, rows: int) -> float:
    if recoding.unit == "stars":
        return round(total)
    return total / max(rows * len(recoding.columns), 1)


def _costs(task: Task) -> list[np.ndarray]:
    """Per column, the loss of the whole table at every level."""
    out = []
    for j, column in enumerate(task.recoding.hierarchies or ()):
        held = np.bincount(task.histogram.quasi[:, j], weights=task.histogram.count, minlength=column.size)
        out.append((column.loss[: column.ceiling + 1] @ held) * column.weight)
    return out


def _label(task: Task, levels: np.ndarray) -> np.ndarray:
    """int64[m]: the group of every cell at a node."""
    columns = task.recoding.hierarchies or ()
    code = [c.node[h][task.histogram.quasi[:, j]] for j, (c, h) in enumerate(zip(columns, levels, strict=True))]
    if task.apart is not None:
        code.append(task.apart)
    if not code:
        return np.zeros(task.histogram.cells, np.int64)
    sizes = [int(c.max(initial=0)) + 1 for c in code]
    return np.unique(mixed_radix(np.stack(code, 1), sizes), return_inverse=True)[1].reshape(-1)


class _Tried:
    """Whether nodes are eligible, and how many were looked at."""

    def __init__(self, task: Task) -> None:
        self.task, self.made = task, 0
        self.cells = np.arange(task.histogram.cells)

    def eligible(self, levels: np.ndarray) -> bool:
        """A node of the lattice.  O(m log m)."""
        self.made += 1
        task = self.task
        if not good_groups(task.histogram, task.requirement, self.cells, _label(task, levels)).all():
            return False
        return task.admits is None or bool(task.admits(levels).all())

    def pair(self, i: int, j: int, a: int, b: int) -> bool:
        """Columns i at level a and j at level b, all others left out."""
        columns, quasi = self.task.recoding.hierarchies or (), self.task.histogram.quasi
        left, right = columns[i].node[a][quasi[:, i]], columns[j].node[b][quasi[:, j]]
        group = np.unique(left.astype(np.int64) * (int(right.max(initial=0)) + 1) + right, return_inverse=True)[1]
        return bool(good_groups(self.task.histogram, self.task.requirement, self.cells, group.reshape(-1)).all())


def _decide(task: Task, tried: _Tried, cost: list[np.ndarray], top: np.ndarray) -> tuple[np.ndarray, float]:
    """The cheapest eligible node and the least cost that is not ruled out."""
    d = top.size
    node = np.stack([x.reshape(-1) for x in np.indices(tuple(top + 1), dtype=np.int16)], axis=1)
    total = np.zeros(len(node))
    for j in range(d):
        total += cost[j][node[:, j]]
    undecided = np.ones(len(node), bool)
    for i, j in combinations(range(d), 2):  # eligible on every pair of columns, or not at all
        for a in range(int(top[i]) + 1):
            low, high = 0, int(top[j]) + 1  # the least level of j that is eligible beside level a of i
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if tried.pair(i, j, a, middle) else (middle + 1, high)
            undecided &= ~((node[:, i] == a) & (node[:, j] < low))
    order = np.flatnonzero(undecided)
    order = order[np.argsort(total[order], kind="stable")]
    node, total = node[order], total[order]
    best, least = top, float(sum(c[h] for c, h in zip(cost, top, strict=True)))
    limit = LOOKS[task.effort.name]
    alive = np.ones(len(node), bool)
    alive &= total < least
    at = 0
    while True:
        rest = np.flatnonzero(alive[at:])
        if not rest.size:
            return best, least
        at += int(rest[0])
        seconds = task.effort.seconds
        late = seconds is not None and clock() - task.started > seconds
        if tried.made >= limit or late:
            return best, float(total[at])
        chain = _chain(node[at].astype(np.int64), top, cost)
        low, high = 0, len(chain) - 1  # the top of the chain is eligible
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if tried.eligible(chain[middle]) else (middle + 1, high)
        found = float(sum(c[h] for c, h in zip(cost, chain[low], strict=True)))
        if found < least:
            best, least = chain[low], found
            alive &= total < least
        if low > 0:
            alive &= ~(node <= chain[low - 1]).all(axis=1)
        task.progress("deciding the lattice", None)


def _chain(start: np.ndarray, top: np.ndarray, cost: list[np.ndarray]) -> list[np.ndarray]:
    """Nodes from one to the top, each raising the column that costs least to raise."""
    out = [start.copy()]
    here = start.copy()
    while (here < top).any():
        price = [cost[j][here[j] + 1] - cost[j][here[j]] if here[j] < top[j] else np.inf for j in range(top.size)]
        here[int(np.argmin(price))] += 1
        out.append(here.copy())
    return out


def _descend(tried: _Tried, cost: list[np.ndarray], top: np.ndarray) -> np.ndarray:
    """From the top down, each time the eligible step that saves most; ends where none is left."""
    here = top.copy()
    closed = here == 0
    while not closed.all():
        saved = [cost[j][here[j]] - cost[j][here[j] - 1] if not closed[j] else -1.0 for j in range(top.size)]
        j = int(np.argmax(saved))
        here[j] -= 1
        if not tried.eligible(here):
            here[j] += 1
            closed[j] = True  # ineligible here, hence ineligible below
        closed |= here == 0
    return here
