"""Global recoding with a budget of rows starred whole: one level per column for the rest, the cheapest choice proved.

A node of the lattice stars whole the groups that do not meet the requirement, as Samarati (2001) and LeFevre, DeWitt,
Ramakrishnan (2005) suppress outliers; the block they form is a group as well and must meet the requirement itself, so
where it does not, groups that could stay join it.  The budget bounds its rows.

Branch and bound.  A row in a group that is too small is starred there and, since groups only split further down, at
every node below.  So a node looked at rules out all nodes below when such rows pass the budget, and otherwise raises
what each of them costs by the difference to a whole star.  The cheapest node left is looked at next, together with the
first one on a chain above it that keeps the budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError
from shoal.model.histogram import mixed_radix
from shoal.model.task import Task
from shoal.problems.tables.certify import good_groups

CLOSE = 1e-12
TRIED = 200  # groups that may join a block which does not meet the requirement, one by one, the cheapest first


@dataclass(frozen=True, eq=False)
class Look:
    """A node: what it costs (infinite beyond the budget), a bound on that, and the cells in its block, bool[m].

    low  float64 per column and level: what the rows in groups that are too small cost more when starred whole
    over whether these rows alone pass the budget, here and at every node below
    """

    cost: float
    least: float
    block: np.ndarray
    low: list[np.ndarray]
    over: bool


class Nodes:
    """The nodes of a task's lattice under a budget of rows, and how many were looked at."""

    def __init__(self, task: Task) -> None:
        self.task, self.made = task, 0
        self.columns = task.recoding.hierarchies or ()
        quasi = task.histogram.quasi
        self.loss = [c.loss[: c.ceiling + 1][:, quasi[:, j]] * c.weight for j, c in enumerate(self.columns)]
        self.top = [c.loss[-1][quasi[:, j]] * c.weight for j, c in enumerate(self.columns)]
        self.total = [loss @ task.histogram.count for loss in self.loss]
        need = task.requirement
        self.by_size = not need.sensitive_columns and not need.rules and task.admits is None
        # parts of a table that never share a group make a block of their own each
        self.parts = [np.ones(task.histogram.cells, bool)]
        if task.apart is not None:
            self.parts = [task.apart == number for number in np.unique(task.apart)]

    def label(self, levels: np.ndarray) -> np.ndarray:
        """int64[m]: the group of every cell.  O(m) where the tuples of classes are few, O(m log m) otherwise."""
        node = [
            c.node[h][self.task.histogram.quasi[:, j]]
            for j, (c, h) in enumerate(zip(self.columns, levels, strict=True))
        ]
        if self.task.apart is not None:
            node.append(self.task.apart)
        sizes = [int(n.max(initial=0)) + 1 for n in node]
        if prod(sizes) < 1 << 20:
            key = np.zeros(node[0].size, np.int64)
            for n, size in zip(node, sizes, strict=True):
                key = key * size + n
            used = np.zeros(prod(sizes), bool)
            used[key] = True
            return (np.cumsum(used) - 1)[key]
        return np.unique(mixed_radix(np.stack(node, 1), sizes), return_inverse=True)[1].reshape(-1)

    def look(self, levels: np.ndarray) -> Look:
        """Cost and block of a node."""
        self.made += 1
        task, count = self.task, self.task.histogram.count
        label = self.label(levels)
        rows = np.bincount(label, weights=count)
        small = rows < task.requirement.smallest
        sure = small[label]
        low = [(top - loss)[:, sure] @ count[sure] for top, loss in zip(self.top, self.loss, strict=True)]
        if rows[small].sum() > task.spare:
            return Look(inf, inf, sure, low, True)
        bad = small if self.by_size else ~good_groups(task.histogram, task.requirement, np.arange(label.size), label)
        if task.admits is not None:
            bad[label[~task.admits(levels)]] = True
        if rows[bad].sum() > task.spare:
            return Look(inf, inf, bad[label], low, False)
        more = sum(top - loss[h] for top, loss, h in zip(self.top, self.loss, levels, strict=True)) * count
        price = np.bincount(label, weights=more)
        total = sum(float(t[h]) for t, h in zip(self.total, levels, strict=True))
        least = total + float(price[bad].sum())
        block = self._whole(label, rows, bad, price)
        cost = inf if block is None else total + float(price[block].sum())
        # Where size is all that counts the cheapest group that fits is the cheapest way to fill the block.
        exact = self.by_size and len(self.parts) == 1
        return Look(cost, cost if exact else least, (bad if block is None else block)[label], low, False)

    def _whole(self, label: np.ndarray, rows: np.ndarray, bad: np.ndarray, price: np.ndarray) -> np.ndarray | None:
        """bool[g]: the block, groups that could stay added where it does not meet the models; None: beyond budget."""
        if not bad.any() or self._meets(label, rows, bad):
            return bad
        room = self.task.spare - rows[bad].sum()
        fit = np.flatnonzero(~bad & (rows <= room))
        fit = fit[np.argsort(price[fit], kind="stable")][:TRIED]
        for g in fit:
            block = bad.copy()
            block[g] = True
            if self._meets(label, rows, block):
                return block
        block = bad.copy()
        for g in fit:
            if rows[block].sum() + rows[g] <= self.task.spare:
                block[g] = True
                if self._meets(label, rows, block):
                    return block
        return None

    def _meets(self, label: np.ndarray, rows: np.ndarray, block: np.ndarray) -> bool:
        need, held = self.task.requirement, self.task.histogram
        if self.by_size and len(self.parts) == 1:
            return bool(rows[block].sum() >= need.k)
        for part in self.parts:
            cells = np.flatnonzero(block[label] & part)
            good = not cells.size or held.count[cells].sum() >= need.k
            if not good or (cells.size and not good_groups(held, need, cells, np.zeros(cells.size, np.int64)).all()):
                return False
        return True


@dataclass(frozen=True, eq=False)
class Found:
    """The best node: its levels, the cells starred whole bool[m], its cost, and what no node undercuts."""

    levels: np.ndarray
    block: np.ndarray
    cost: float
    bound: float
    looked_at: int


def decide(task: Task, limit: int, most_nodes: int) -> Found:
    """The cheapest choice of levels with at most ``task.spare`` rows starred whole.

    limit  nodes that may be looked at; most_nodes  a larger lattice is only descended, with 0 as the bound

    Raises InfeasibleError where no node looked at keeps the budget.  O(m) for each node looked at and O(nodes d).
    """
    nodes = Nodes(task)
    top = np.array([c.ceiling for c in nodes.columns], np.int64)
    if prod(int(t) + 1 for t in top) > most_nodes:
        return _descend(nodes, top)
    node = np.stack([x.reshape(-1) for x in np.indices(tuple(top + 1), dtype=np.int16)], axis=1)
    low = np.sum([t[node[:, j]] for j, t in enumerate(nodes.total)], axis=0)
    total, alive = low.copy(), np.ones(len(node), bool)
    best: tuple[np.ndarray, Look] | None = None
    left = inf  # the least bound of nodes decided without being solved

    def take(levels: np.ndarray) -> Look:
        nonlocal best, left
        found = nodes.look(levels)
        below = np.flatnonzero(alive)
        below = below[(node[below] <= levels).all(axis=1)]
        if found.over:
            alive[below] = False
            return found
        dearer = total[below].copy()
        for j, extra in enumerate(found.low):
            dearer += extra[node[below, j]]
        low[below] = np.maximum(low[below], dearer)
        alive[below[(node[below] == levels).all(axis=1)]] = False
        if found.least < found.cost:
            left = min(left, found.least)
        if found.cost < (inf if best is None else best[1].cost):
            best = levels, found
        return found

    take(top)
    while True:
        cost = inf if best is None else best[1].cost
        alive &= low < cost * (1 - CLOSE) if cost < inf else True
        rest = np.flatnonzero(alive)
        late = task.effort.seconds is not None and clock() - task.started > task.effort.seconds
        done = not rest.size or nodes.made >= limit or (late and best is not None)
        if done and best is None:
            raise InfeasibleError(
                f"no choice of levels meets the privacy models with at most {task.spare} rows starred whole; allow "
                "higher levels or a larger max_suppressed"
            )
        if done and best is not None:
            bound = min(cost, left, float(low[rest].min()) if rest.size else inf)
            return Found(best[0], best[1].block, cost, bound, nodes.made)
        start = node[rest[int(np.argmin(low[rest]))]].astype(np.int64)
        if take(start).over:
            _climb(nodes, start, top, take)
        task.progress("deciding the lattice", None)


def _climb(nodes: Nodes, start: np.ndarray, top: np.ndarray, take) -> None:  # type: ignore[no-untyped-def]
    """Bisect a chain from a node to the top for the first that keeps the budget; each step raises what is cheapest."""
    chain, here = [], start.copy()
    while (here < top).any():
        price = [t[h + 1] - t[h] if h < e else inf for t, h, e in zip(nodes.total, here, top, strict=True)]
        here[int(np.argmin(price))] += 1
        chain.append(here.copy())
    low, high = 0, len(chain) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if take(chain[middle]).over else (low, middle)


def _descend(nodes: Nodes, top: np.ndarray) -> Found:
    """From the top down, each time the step that saves most of those that keep the budget and lower the cost."""
    here, found = top, nodes.look(top)
    if found.cost == inf:
        raise InfeasibleError(
            f"even the highest levels allowed do not meet the privacy models with {nodes.task.spare} rows starred "
            "whole; allow higher levels"
        )
    while True:
        steps = [here - (np.arange(here.size) == j) for j in np.flatnonzero(here)]
        looks = [(nodes.look(s), s) for s in steps]
        if not looks or min(x.cost for x, _ in looks) >= found.cost:
            return Found(here, found.block, found.cost, 0.0, nodes.made)
        found, here = min(looks, key=lambda pair: pair[0].cost)
