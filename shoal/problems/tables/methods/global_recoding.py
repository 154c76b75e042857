"""Global recoding: one level of every column for the whole table, with a budget of completely starred rows.

One search over the nodes of the lattice finds the cheapest choice, and proves it if possible (docs/methods.md). Without
a budget, this is the search of Samarati (2001) and LeFevre, DeWitt, Ramakrishnan ("Incognito", SIGMOD 2005), for any
monotone requirement. It takes the cheapest undecided node, goes up a chain from it, and bisects: the highest ineligible
node of the chain decides all nodes below it, the lowest eligible one all that cost more.

With a budget, a node stars completely the groups that don't meet the requirement. The starred rows form a block, which
must meet the requirement itself; if it doesn't, eligible groups join it. Branch and bound: rows that a node stars are
starred at every node below, so an examined node excludes all nodes below, or raises their costs. The cheapest remaining
node is examined next, together with the first node on a chain above it that meets the budget.

If levels are given (``at_levels``), the only question is whether the groups at these levels meet the requirement. If
they don't, the error states how many rows are in such groups, the least sufficient budget, and the least sufficient
change of one level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf, prod

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.histogram import Partition, mixed_radix
from shoal.model.recoding import Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds import certified
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.separate import none_found

MOST_NODES = 3_000_000
LOOKS = {"fast": 300, "balanced": 5_000, "thorough": 200_000, "seconds": 10**9}


def global_recoding(task: Task) -> Grouping:
    """Every column at one level; the least loss of this kind is proved if the lattice has at most 3,000,000 nodes.

    ``details`` has the levels, ``uniform_cost`` (the loss if every value is published at its column's level),
    ``uniform_bound`` (a lower bound over all choices of levels), and the number of nodes examined. The certificate's
    own cost is that of the groups' common ancestors, which is never more; ``published`` has the uniform values. The
    effort limits the number of nodes examined; beyond it, or in a larger lattice, the bound is below the cost.

    O(m log m) for each node examined, O(nodes d) for each chain.
    """
    levels, block, facts = search(task)
    label = Nodes(task).label(levels)
    label[block] = task.histogram.cells  # greater than every other label
    partition = Partition.of(np.arange(task.histogram.cells), label, task.histogram.count)
    return certified(task, partition, "global_recoding", details=facts, starred=bool(block.any()))


def search(task: Task) -> tuple[np.ndarray, np.ndarray, dict[str, object]]:
    """(level of every column, completely starred cells bool[m], details for the certificate)."""
    histogram, recoding = task.histogram, task.recoding
    for name, column in zip(histogram.quasi_names, recoding.columns, strict=True):
        if not column.levels:
            raise PolicyError(
                f"global recoding puts every column at one level of a hierarchy, and {name!r} is published as a "
                f"{column.kind}; give it a hierarchy, or use 'mondrian'"
            )
    columns = recoding.hierarchies or ()
    found = decide(task, LOOKS[task.effort.name], MOST_NODES)
    facts = _facts(task, found.levels, found.cost, found.bound, found.looked_at)
    if task.spare and columns:
        facts["suppressed_rows"] = int(histogram.count[found.block].sum())
        facts["max_suppressed_rows"] = task.spare
    return found.levels, found.block, facts


def _facts(task: Task, levels: np.ndarray, total: float, bound: float, looked_at: int) -> dict[str, object]:
    """The certificate's details about a choice of levels; "proved" is present only if no choice can lose less."""
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


CLOSE = 1e-12
TRIED = 200  # groups that may join an ineligible block, tried one by one, the cheapest first


@dataclass(frozen=True, eq=False)
class NodeCost:
    """A node: its cost (infinite beyond the budget), a bound of its cost, and the cells in its block, bool[m].

    low  float64 per column and level: additional cost of completely starring the rows of groups that are too small
    over whether the budget is exceeded here and at every node below
    """

    cost: float
    least: float
    block: np.ndarray
    low: list[np.ndarray]
    over: bool


class Nodes:
    """The nodes of a task's lattice, with or without a budget of rows, and the number of nodes examined.

    total  per column, the loss of the whole table at every level
    """

    def __init__(self, task: Task) -> None:
        self.task, self.made = task, 0
        self.columns = task.recoding.hierarchies or ()
        self.total = []
        for j, column in enumerate(self.columns):
            held = np.bincount(task.histogram.quasi[:, j], weights=task.histogram.count, minlength=column.size)
            self.total.append((column.loss[: column.ceiling + 1] @ held) * column.weight)
        need = task.requirement
        self.by_size = not need.sensitive_columns and not need.rules and task.admits is None
        # parts of a table that never share a group have separate blocks
        self.parts = [np.ones(task.histogram.cells, bool)]
        if task.apart is not None:
            self.parts = [task.apart == number for number in np.unique(task.apart)]

    @cached_property
    def loss(self) -> list[np.ndarray]:
        """For each column float64[levels, m]: the loss of a row of every cell at each level."""
        quasi = self.task.histogram.quasi
        return [c.loss[: c.ceiling + 1][:, quasi[:, j]] * c.weight for j, c in enumerate(self.columns)]

    @cached_property
    def top(self) -> list[np.ndarray]:
        """For each column float64[m]: the loss of a star for a row of every cell."""
        quasi = self.task.histogram.quasi
        return [c.loss[-1][quasi[:, j]] * c.weight for j, c in enumerate(self.columns)]

    def cost(self, levels: np.ndarray) -> float:
        """The cost of a node if no row is completely starred."""
        return float(sum(total[h] for total, h in zip(self.total, levels, strict=True)))

    def pair(self, i: int, j: int, a: int, b: int) -> bool:
        """Whether all groups meet the requirement with only column i at level a and j at level b."""
        columns, held = self.columns, self.task.histogram
        left, right = columns[i].node[a][held.quasi[:, i]], columns[j].node[b][held.quasi[:, j]]
        group = np.unique(left.astype(np.int64) * (int(right.max(initial=0)) + 1) + right, return_inverse=True)[1]
        return bool(groups_that_meet(held, self.task.requirement, np.arange(held.cells), group.reshape(-1)).all())

    def chain(self, start: np.ndarray, top: np.ndarray) -> list[np.ndarray]:
        """Nodes from one to the top, each raising the column that costs least to raise."""
        out, here = [start.copy()], start.copy()
        while (here < top).any():
            price = [t[h + 1] - t[h] if h < e else inf for t, h, e in zip(self.total, here, top, strict=True)]
            here[int(np.argmin(price))] += 1
            out.append(here.copy())
        return out

    def label(self, levels: np.ndarray) -> np.ndarray:
        """int64[m]: the group of every cell. O(m) if there are few tuples of classes, O(m log m) otherwise."""
        node = [
            c.node[h][self.task.histogram.quasi[:, j]]
            for j, (c, h) in enumerate(zip(self.columns, levels, strict=True))
        ]
        if self.task.apart is not None:
            node.append(self.task.apart)
        if not node:
            return np.zeros(self.task.histogram.cells, np.int64)
        sizes = [int(n.max(initial=0)) + 1 for n in node]
        if prod(sizes) < 1 << 20:
            key = np.zeros(node[0].size, np.int64)
            for n, size in zip(node, sizes, strict=True):
                key = key * size + n
            used = np.zeros(prod(sizes), bool)
            used[key] = True
            return (np.cumsum(used) - 1)[key]
        return np.unique(mixed_radix(np.stack(node, 1), sizes), return_inverse=True)[1].reshape(-1)

    def look(self, levels: np.ndarray) -> NodeCost:
        """Cost and block of a node.

        Without a budget, a node with an ineligible group is over, and so are all below it.
        """
        self.made += 1
        task, count = self.task, self.task.histogram.count
        label = self.label(levels)
        if not task.spare:
            good = bool(groups_that_meet(task.histogram, task.requirement, np.arange(label.size), label).all())
            good = good and (task.admits is None or bool(task.admits(levels).all()))
            cost = self.cost(levels) if good else inf
            return NodeCost(cost, cost, np.zeros(label.size, bool), [], not good)
        rows = np.bincount(label, weights=count)
        small = rows < task.requirement.smallest
        sure = small[label]
        low = [(top - loss)[:, sure] @ count[sure] for top, loss in zip(self.top, self.loss, strict=True)]
        if rows[small].sum() > task.spare:
            return NodeCost(inf, inf, sure, low, True)
        bad = (
            small if self.by_size else ~groups_that_meet(task.histogram, task.requirement, np.arange(label.size), label)
        )
        if task.admits is not None:
            bad[label[~task.admits(levels)]] = True
        if rows[bad].sum() > task.spare:
            return NodeCost(inf, inf, bad[label], low, False)
        more = sum(top - loss[h] for top, loss, h in zip(self.top, self.loss, levels, strict=True)) * count
        price = np.bincount(label, weights=more)
        total = self.cost(levels)
        least = total + float(price[bad].sum())
        block = self._whole(label, rows, bad, price)
        cost = inf if block is None else total + float(price[block].sum())
        # If only size counts, the cheapest group that fits is the cheapest way to fill the block.
        exact = self.by_size and len(self.parts) == 1
        return NodeCost(cost, cost if exact else least, (bad if block is None else block)[label], low, False)

    def _whole(self, label: np.ndarray, rows: np.ndarray, bad: np.ndarray, price: np.ndarray) -> np.ndarray | None:
        """bool[g]: the block, extended by eligible groups if it doesn't meet the models.

        None if it exceeds the budget.
        """
        if not bad.any() or self._meets(label, rows, bad):
            return bad
        left = self.task.spare - rows[bad].sum()
        fit = np.flatnonzero(~bad & (rows <= left))
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
            if not good or (
                cells.size and not groups_that_meet(held, need, cells, np.zeros(cells.size, np.int64)).all()
            ):
                return False
        return True


@dataclass(frozen=True, eq=False)
class BestNode:
    """The best node: its levels, the completely starred cells bool[m], its cost, and a lower bound over all nodes."""

    levels: np.ndarray
    block: np.ndarray
    cost: float
    bound: float
    looked_at: int


def decide(task: Task, limit: int, most_nodes: int) -> BestNode:
    """The cheapest choice of levels with at most ``task.spare`` completely starred rows.

    limit       most nodes examined
    most_nodes  in a larger lattice, the search only descends, with 0 as the bound

    Raises InfeasibleError if no examined node meets the budget. O(m) for each node examined, and O(nodes d).
    """
    nodes = Nodes(task)
    top = np.array([c.ceiling for c in nodes.columns], np.int64)
    highest = nodes.look(top)
    if highest.cost == inf and not task.spare:
        raise _infeasible_at_top(task)
    if not top.size or prod(int(t) + 1 for t in top) > most_nodes:
        return _descend(nodes, top, highest)
    node = np.stack([x.reshape(-1) for x in np.indices(tuple(top + 1), dtype=np.int16)], axis=1)
    low = np.sum([t[node[:, j]] for j, t in enumerate(nodes.total)], axis=0)
    total, alive = low.copy(), np.ones(len(node), bool) if task.spare else _by_pairs(nodes, node, top)
    best: tuple[np.ndarray, NodeCost] | None = None
    left = inf  # the least bound of nodes decided without being solved
    close = CLOSE if task.spare else 0.0  # the cost of levels is the same sum everywhere

    def take(levels: np.ndarray, found: NodeCost) -> None:
        nonlocal best, left
        below = np.flatnonzero(alive)
        below = below[(node[below] <= levels).all(axis=1)]
        if found.over:
            alive[below] = False
            return
        if found.low:
            dearer = total[below].copy()
            for j, extra in enumerate(found.low):
                dearer += extra[node[below, j]]
            low[below] = np.maximum(low[below], dearer)
        alive[below[(node[below] == levels).all(axis=1)]] = False
        if found.least < found.cost:
            left = min(left, found.least)
        if found.cost < (inf if best is None else best[1].cost):
            best = levels, found

    take(top, highest)
    while True:
        cost = inf if best is None else best[1].cost
        alive &= low < cost * (1 - close) if cost < inf else True
        rest = np.flatnonzero(alive)
        late = task.effort.seconds is not None and clock() - task.started > task.effort.seconds
        done = not rest.size or nodes.made >= limit or (late and best is not None)
        if done and best is None:
            raise InfeasibleError(
                f"no choice of levels meets the privacy models with at most {task.spare} rows starred whole; allow "
                "higher levels or a larger ⟨max_suppressed⟩"
            )
        if done and best is not None:
            bound = min(cost, left, float(low[rest].min()) if rest.size else inf)
            return BestNode(best[0], best[1].block, cost, bound, nodes.made)
        _climb(nodes, nodes.chain(node[rest[int(np.argmin(low[rest]))]].astype(np.int64), top), take)
        task.progress("deciding the lattice", None)


def _infeasible_at_top(task: Task) -> InfeasibleError:
    """The error if even the highest levels allowed don't meet the request."""
    columns = task.recoding.hierarchies or ()
    held = [n for n, c in zip(task.histogram.quasi_names, columns, strict=True) if c.held]
    if not held and not task.requirement.closed:
        return none_found(task)
    return InfeasibleError(
        "even at the highest levels allowed some groups do not meet the privacy models; allow higher levels for "
        + ", ".join(held)
    )


def _by_pairs(nodes: Nodes, node: np.ndarray, top: np.ndarray) -> np.ndarray:
    """bool[nodes]: those that are eligible on every pair of columns.

    Without a budget, no other node can be eligible.
    """
    possible = np.ones(len(node), bool)
    for i, j in combinations(range(top.size), 2):
        for a in range(int(top[i]) + 1):
            low, high = 0, int(top[j]) + 1  # the least level of j that is eligible with level a of i
            while low < high:
                middle = (low + high) // 2
                low, high = (low, middle) if nodes.pair(i, j, a, middle) else (middle + 1, high)
            possible &= ~((node[:, i] == a) & (node[:, j] < low))
    return possible


def _climb(nodes: Nodes, chain: list[np.ndarray], take: Callable[[np.ndarray, NodeCost], None]) -> None:
    """Bisect a chain to the top for the first node within the budget.

    With a budget, the chain's lower end is examined first.

    Of the nodes beyond the budget, the highest excludes what the others do. Without a budget, the lowest eligible node
    is the cheapest.
    """
    budget = bool(nodes.task.spare)
    low, high, over = 0, len(chain) - 1, None
    within: list[tuple[np.ndarray, NodeCost]] = []
    while low < high:
        middle = 0 if budget and not within and over is None else (low + high) // 2
        found = nodes.look(chain[middle])
        if found.over:
            low, over = middle + 1, found
        else:
            high = middle
            within.append((chain[middle], found))
    for node, found in within if budget else within[-1:]:
        take(node, found)
    if over is not None:
        take(chain[low - 1], over)


def _descend(nodes: Nodes, top: np.ndarray, found: NodeCost) -> BestNode:
    """From the top down: each step within the budget that doesn't increase the cost and saves most."""
    here = top
    if found.cost == inf:
        raise InfeasibleError(
            f"even the highest levels allowed do not meet the privacy models with {nodes.task.spare} rows starred "
            "whole; allow higher levels"
        )
    closed = np.zeros(top.size, bool)  # columns whose next level is over, here and at every node below
    while True:
        steps = [(here - (np.arange(here.size) == j), j) for j in np.flatnonzero((here > 0) & ~closed).tolist()]
        best: tuple[float, int, np.ndarray, NodeCost] | None = None
        for step, j in sorted(steps, key=lambda one: nodes.cost(one[0])):
            if best is not None and best[0] <= nodes.cost(step):  # stars only add to the cost of levels
                break
            look = nodes.look(step)
            closed[j] = look.over
            if best is None or (look.cost, j) < best[:2]:
                best = look.cost, j, step, look
        if best is None or best[0] > found.cost:
            return BestNode(here, found.block, found.cost, 0.0, nodes.made)
        _, _, here, found = best


def at_levels(task: Task, levels: Mapping[str, int]) -> Grouping:
    """The groups of a table with every column at a given level; rows in ineligible groups are completely starred.

    levels  of every quasi-identifier, at most the top of its hierarchy
    ``task.spare`` is the budget of starred rows; ``task.admits`` can require that cells are starred.
    Raises InfeasibleError beyond the budget. O(m log m).
    """
    names, columns = task.histogram.quasi_names, task.recoding.hierarchies or ()
    chosen = np.array([min(levels[n], c.ceiling) for n, c in zip(names, columns, strict=True)], np.int64)
    nodes = Nodes(task)
    look = nodes.look(chosen)
    if not np.isfinite(look.cost):
        raise InfeasibleError(_refusal(task, chosen))
    label = nodes.label(chosen)
    label[look.block] = task.histogram.cells  # greater than every other label
    partition = Partition.of(np.arange(task.histogram.cells), label, task.histogram.count)
    rows, starred = task.histogram.rows, int(task.histogram.count[look.block].sum())
    facts = {
        "levels": {n: int(h) for n, h in zip(names, chosen, strict=True)},
        "uniform_cost": _in_unit(task.recoding, look.cost, rows),
        "uniform_bound": 0,
        "uniform_optimal": False,
    }
    if task.spare:
        facts |= {"suppressed_rows": starred, "max_suppressed_rows": task.spare}
    return certified(task, partition, "global_recoding", details=facts, starred=bool(starred))


def _refusal(task: Task, levels: np.ndarray) -> str:
    rows = task.histogram.rows
    nodes = Nodes(task)
    label = nodes.label(levels)
    bad = ~groups_that_meet(task.histogram, task.requirement, np.arange(label.size), label)
    if task.admits is not None:
        bad[label[~task.admits(levels)]] = True
    few = int(task.histogram.count[bad[label]].sum())
    plain = (
        nodes.by_size or not (np.bincount(label, weights=task.histogram.count)[bad] >= task.requirement.smallest).any()
    )
    why = f"groups of fewer than k = {task.requirement.smallest}" if plain else "groups that do not meet the models"
    allowed = f", and {task.spare:,} may be starred whole" if task.spare else ""
    return f"{few:,} of {rows:,} rows would be in {why}{allowed}{_sufficient_changes(task, levels)}"


def _sufficient_changes(task: Task, levels: np.ndarray) -> str:
    """The least budget, and the least change of one level, that would suffice; "" if neither would."""
    rows, ways = task.histogram.rows, []
    starred = _least_block(task, levels)
    if starred is not None and starred < rows:
        ways.append(f"⟨max_suppressed={_up(starred / rows)}⟩ would pass, with {starred:,} rows starred whole")
    found = _raised(task, levels)
    if found is not None:
        name, level = found
        ways.append(f"level {level} of {name!r} would pass")
    return f"; {', or '.join(ways)}" if ways else ""


def _least_block(task: Task, levels: np.ndarray) -> int | None:
    """The number of starred rows under the least sufficient budget, found by bisection; None if none suffices."""

    def block(spare: int) -> int | None:
        look = Nodes(replace(task, spare=spare)).look(levels)
        return int(task.histogram.count[look.block].sum()) if np.isfinite(look.cost) else None

    low, high, least = task.spare, task.histogram.rows, block(task.histogram.rows)
    while least is not None and low + 1 < high:
        middle = (low + high) // 2
        found = block(middle)
        if found is None:
            low = middle
        else:
            high, least = middle, found
    return least


def _up(share: float) -> float:
    """A share rounded up to four digits."""
    return float(np.ceil(share * 10_000 - 1e-9) / 10_000)


def _raised(task: Task, levels: np.ndarray) -> tuple[str, int] | None:
    """The column and level of the cheapest single change that suffices."""
    nodes, best, least = Nodes(task), None, np.inf
    for j, column in enumerate(task.recoding.hierarchies or ()):
        for level in range(int(levels[j]) + 1, column.ceiling + 1):
            tried = levels.copy()
            tried[j] = level
            look: NodeCost = nodes.look(tried)
            if np.isfinite(look.cost):
                if look.cost < least:
                    best, least = (task.histogram.quasi_names[j], level), look.cost
                break
    return best
