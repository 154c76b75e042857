"""Partitions chosen from lists of sets: all connected eligible sets of a small component, or those a search met."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.problems.regions.graph import induced
from shoal.problems.regions.grow import grown
from shoal.problems.regions.task import Clock, Districting
from shoal.problems.regions.value import one

SETS = 60_000  # so many sets of one component are chosen from at most
_LOOKED = 20_000_000
_BRANCHES = 1  # the program over a pool stops at its root
_POOLED = 20_000  # sets in a pool at most
_CHOSEN = 1_000  # of them in the integer program at most,
_GROWN = 3_000  # and where neighbors of those met are among them


class Sets:
    """Connected eligible sets of some areas, and an integer program that partitions the areas into them.

    task   the graph and what is asked
    nodes  int64[c]  the areas, numbered as in the task
    sets   sets of places in ``nodes``, each rising
    clock  when a program ends at the latest
    """

    def __init__(
        self, task: Districting, nodes: np.ndarray, sets: list[np.ndarray], clock: Clock | None = None
    ) -> None:
        self.task, self.nodes, self.sets, self.clock = task, nodes, sets, clock or Clock.of(None)
        self.rows: list[tuple[np.ndarray, float]] = []  # coefficients over the sets, and the most their sum may be
        self.answer: list[int] = []

    @classmethod
    def of(cls, task: Districting, nodes: np.ndarray, clock: Clock, cap: int) -> Sets | None:
        """List those of weight at most ``cap``; None when there are too many."""
        from shoal.kernels.regions.areas import Areas
        from shoal.kernels.regions.connected import Listing, SetPrices, connected_sets

        mask = np.zeros(task.n, np.bool_)
        mask[nodes] = True
        g, _ = induced(task.graph, mask)
        none = np.zeros(0, np.int64)
        areas = Areas(g.indptr, g.indices, np.ascontiguousarray(task.features[nodes]), task.need, task.ways)
        free = SetPrices(np.zeros(g.n, np.int64), none, np.zeros(g.n + 1, np.int64), none)
        looked = _LOOKED if clock.left > 0 else 0
        members, ends, _, seen = connected_sets(areas, free, Listing(1, cap, 2, looked, 4_000_000))
        if seen < 0 or len(ends) > SETS:
            return None
        return cls(task, nodes, [np.sort(s) for s in np.split(members, ends)[:-1]])

    def worth(self, name: str) -> np.ndarray:
        """What each set adds to an objective."""
        task = self.task
        moments = task.moments(name)
        found = []
        for members in self.sets:
            nodes = self.nodes[members]
            weight = int(task.features[nodes, 0].sum())
            if name == "max":
                found.append(float(weight))
            elif name == "excess":
                found.append(weight / max(task.k, int(task.features[nodes, 0].max())))
            elif name == "count":
                found.append(-1.0)
            elif name == "sumsq":
                found.append((weight / task.k) ** 2)
            elif len(moments):
                m, *x, q = moments[nodes].sum(axis=0).tolist()
                found.append(max(0.0, q - sum(y * y for y in x) / m) if m > 0 else 0.0)
            else:
                g = task.graph
                ends = np.concatenate([g.indices[g.indptr[v] : g.indptr[v + 1]] for v in nodes])
                found.append(float((~np.isin(ends, nodes)).sum()))
        return np.array(found)

    def promising(self, cost: np.ndarray, always: np.ndarray, most: int) -> np.ndarray:
        """The sets with the least reduced costs in the linear program, at most so many, and ``always`` some.

        An integer program over all that a search met can take minutes at its root; what it chooses costs little there.
        """
        if len(self.sets) <= most:
            return np.arange(len(self.sets))
        highs = self._program(cost, np.arange(len(self.sets)))
        highs.run()
        reduced = np.array(highs.getSolution().col_dual)
        if len(reduced) != len(self.sets):  # no solution: any choice is as good
            return always
        return np.union1d(np.argsort(reduced, kind="stable")[:most], always)

    def _program(self, cost: np.ndarray, sets: np.ndarray) -> Any:
        """The cheapest fractional partition into the given sets that keeps the rows."""
        import highspy

        from shoal.problems.programs import Solver

        highs = Solver(time_limit=max(0.1, self.clock.left))
        nothing = np.empty(0, np.int32)
        for _ in self.nodes:
            highs.addRow(1.0, 1.0, 0, nothing, np.empty(0))
        for _, most in self.rows:
            highs.addRow(-highspy.kHighsInf, most, 0, nothing, np.empty(0))
        scale = max(1e-12, float(np.abs(cost[sets]).max(initial=0.0)))
        for s in sets.tolist():
            members = self.sets[s]
            index = np.concatenate([members, len(self.nodes) + np.arange(len(self.rows))]).astype(np.int32)
            entry = np.concatenate([np.ones(len(members)), [c[s] for c, _ in self.rows]])
            highs.addCol(float(cost[s]) / scale, 0.0, 1.0, len(index), index, entry)
        return highs

    def solve(self, cost: np.ndarray, sets: np.ndarray, branches: int | None = None) -> tuple[list[int], float] | None:
        """The cheapest partition into the given sets that keeps the rows; None when there is none.

        branches  nodes of the search tree at most: then the best partition met, not the cheapest
        """
        import highspy

        highs = self._program(cost, sets)
        highs.setOptionValue("mip_abs_gap", 1e-9)
        if branches is not None:
            highs.setOptionValue("mip_max_nodes", branches)
        for j in range(len(sets)):
            highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal and (
            branches is None or highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible
        ):
            return None
        y = np.array(highs.getSolution().col_value)
        chosen = [int(sets[j]) for j in np.flatnonzero(y > 0.5)]
        return chosen, float(cost[chosen].sum())

    def number(self, regions: int) -> None:
        """So many sets and no other number, from here on."""
        ones = np.ones(len(self.sets))
        self.rows += [(ones, regions + 0.5), (-ones, 0.5 - regions)]

    def bisect(self, name: str) -> Any:
        """Least value of the largest set in a partition; keeps that partition."""
        worth = self.worth(name)
        steps = np.unique(worth)
        low, high = 0, len(steps) - 1
        while low < high:
            middle = (low + high) // 2
            if self.solve(np.zeros(len(worth)), np.flatnonzero(worth <= steps[middle])) is None:
                low = middle + 1
            else:
                high = middle
        return int(steps[high]) if name == "max" else float(steps[high])

    def keep(self, name: str, level: Any) -> None:
        """Drop the sets above a level."""
        inside = self.worth(name) <= level
        self.sets = [s for s, ok in zip(self.sets, inside, strict=True) if ok]
        self.rows = [(c[inside], most) for c, most in self.rows]
        self.answer = []

    def minimise(self, name: str, last: bool) -> None:
        """Least sum over the sets of a partition; held from here on."""
        cost = self.worth(name)
        solved = self.solve(cost, np.arange(len(self.sets)))
        if solved is not None:
            self.answer, total = solved
            if not last:
                self.rows.append((cost, total + 1e-7 * max(1.0, abs(total))))

    def partition(self) -> list[np.ndarray]:
        """The areas of each region."""
        if not self.answer or sum(len(self.sets[s]) for s in self.answer) != len(self.nodes):
            solved = self.solve(np.zeros(len(self.sets)), np.arange(len(self.sets)))
            assert solved is not None, "an eligible component is itself a region"
            self.answer = solved[0]
        return [self.nodes[self.sets[s]] for s in self.answer]


class Pool:
    """The regions that a search met, so that the best of several runs can be put together."""

    def __init__(self) -> None:
        self.sets: dict[bytes, np.ndarray] = {}

    def add(self, label: np.ndarray) -> None:
        """Remember every region of a partition."""
        for members in _parts(label):
            if len(self.sets) < _POOLED:
                self.sets.setdefault(members.tobytes(), members)

    def partition(
        self, task: Districting, label: np.ndarray, objective: tuple[str, ...], clock: Clock | None = None
    ) -> np.ndarray:
        """A partition into regions of the pool, no heavier than those of ``label`` where that counts; else ``label``.

        The number of regions is kept where it is asked for, the first other sum lowered.  The caller compares.  Regions
        that are to be compact or alike may be next to those of the pool.
        """
        self.add(label)
        last = next((name for name in objective if name in ("sumsq", "compact", "similar")), None)
        if last is None:
            return label
        clock = clock or Clock.of(None)
        grows = last != "sumsq" and not {"max", "excess"} & set(objective)
        sets = list(self.sets.values())
        if grows:
            sets = list({members.tobytes(): members for members in (*_parts(label), *sets[-_GROWN:])}.values())
            least = int(label.max()) + 1 if task.regions or "count" in objective else 1
            sets += grown(task, sets, last, label, (least, task.regions or task.n), clock.part(0.5))
        listed = Sets(task, np.arange(task.n), sets, clock)
        for name in objective:
            if name in ("max", "excess"):
                listed.keep(name, one(task, label, name))
        if task.regions is not None:
            listed.number(task.regions)
        elif "count" in objective:
            listed.rows.append((listed.worth("count"), -(float(label.max()) + 0.5)))
        cost = listed.worth(last)
        known = {members.tobytes() for members in _parts(label)}
        begun = np.array([i for i, members in enumerate(listed.sets) if members.tobytes() in known], np.int64)
        chosen = listed.solve(cost, listed.promising(cost, begun, _GROWN if grows else _CHOSEN), _BRANCHES)
        if chosen is None:
            return label
        made = np.full(task.n, -1, np.int64)
        for i, s in enumerate(chosen[0]):
            made[listed.sets[s]] = i
        return made if sum(len(listed.sets[s]) for s in chosen[0]) == task.n and (made >= 0).all() else label


def _parts(label: np.ndarray) -> list[np.ndarray]:
    """The areas of every part, rising."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label))[:-1])
