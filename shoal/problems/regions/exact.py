"""Proved optima of small graphs: every connected eligible set listed, then chosen by integer programs.

Component by component, the objectives one after the other.  The heaviest region (or the excess) is found by
bisection over the values that sets can have; sums (number of regions, squares, compactness) by set partitioning.
Where listing the sets passes a limit, the number of regions is still decided by ``packing`` on larger graphs, and
everything else is answered by the search with the bound proved so far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.problems.regions.bounds import CountBound, best_packing, price_out, squares_bound
from shoal.problems.regions.graph import induced
from shoal.problems.regions.search import improve, search
from shoal.problems.regions.task import Clock, Found, Task, relabelled
from shoal.problems.regions.value import one

SETS = 60_000  # so many sets of one component are chosen from at most
_LOOKED = 20_000_000


def exact(task: Task, bound: CountBound) -> Found:
    """Optimal where every component is small enough; else the search's answer with what could be proved.

    Exponential time; components to about 25 areas, and the number of regions alone to a few hundred.
    """
    clock = Clock.of(task.seconds)
    found = search(task, bound)
    label, settled = settle(task, bound, found.label, task.n, clock)
    details = dict(found.details)
    left = ~settled
    if not left.any():
        return _proved(task, bound, label, found, details)
    details["stopped"] = f"{int(left.sum())} areas lie in components too large to list all their regions"
    if task.thresholds_only:
        price_out(task, bound, label, nodes=20_000_000, clock=clock, tolls=160, integer=True)
        better = best_packing(task, bound, label)
        if better is not None:
            label = improve(task, bound, better, clock, _after_count(task.objective))
    return Found(label, found.guarantee, details=details)


def settle(task: Task, bound: CountBound, label: np.ndarray, size: int, clock: Clock) -> tuple[np.ndarray, np.ndarray]:
    """The partition with every component of at most ``size`` areas made optimal; and which areas are settled, bool[n].

    A component is optimal when no partition of it is better in the objectives' order, given how the others stand.
    """
    label = label.copy()
    count = np.bincount(bound.component) if task.n else np.zeros(0, np.int64)
    cap = one(task, label, "max") if task.objective[0] == "max" else 2**62  # what is heavier cannot be in the answer
    lists = {}
    for c in np.flatnonzero(count <= size):
        listed = _Sets.of(task, np.flatnonzero(bound.component == c), clock, cap)
        if listed is not None:
            lists[int(c)] = listed
    settled = np.isin(bound.component, list(lists))
    if not lists:
        return label, settled
    for i, name in enumerate(task.objective):
        if name in ("max", "excess"):
            level = _others(task, label, ~settled, name)
            for listed in lists.values():
                level = max(level, listed.bisect(name))
            for listed in lists.values():
                listed.keep(name, level)
        else:
            for listed in lists.values():
                listed.minimise(name, last=i + 1 == len(task.objective))
    fresh = int(label.max()) + 1
    for listed in lists.values():
        for members in listed.partition():
            label[members] = fresh
            fresh += 1
    return relabelled(label), settled


def _others(task: Task, label: np.ndarray, mask: np.ndarray, name: str) -> Any:
    """Largest weight or excess among the regions of the areas in ``mask``; 0 when there are none."""
    if not mask.any():
        return 0
    inside = relabelled(np.where(mask, label, -1))[mask]
    weight = np.bincount(inside, weights=task.features[mask, 0])
    if name == "max":
        return int(weight.max())
    heavy = np.zeros(len(weight), np.int64)
    np.maximum.at(heavy, inside, task.features[mask, 0])
    return float((weight / np.maximum(heavy, task.k)).max())


def _after_count(objective: tuple[str, ...]) -> tuple[str, ...]:
    """The objectives to go on with from a partition with more regions."""
    return tuple(name for name in objective if name != "count") if objective[0] == "count" else objective


def _proved(task: Task, bound: CountBound, label: np.ndarray, found: Found, details: dict[str, Any]) -> Found:
    """Bounds for the objective that comes first, which is optimal; those after it are so given the ones before."""
    first = task.objective[0]
    regions = int(label.max()) + 1
    return Found(
        label,
        found.guarantee,
        most=regions if first == "count" else None,
        least=one(task, label, "max") if first == "max" else None,
        squares=_safe(one(task, label, "sumsq"), squares_bound(task, bound)) if first == "sumsq" else None,
        details=details
        | {"proved": "every connected set listed, then integer programs", "objectives": len(task.objective)},
    )


def _safe(cost: int, bound: int) -> int:
    """The cost as its own bound where it is small enough for the program's tolerance, else a little less."""
    return cost if cost < 10**6 else max(bound, math.floor(cost * (1 - 1e-6)))


class _Sets:
    """All connected eligible sets of one component, and an integer program that partitions it."""

    def __init__(self, task: Task, nodes: np.ndarray, sets: list[np.ndarray]) -> None:
        self.task, self.nodes, self.sets = task, nodes, sets
        self.rows: list[tuple[np.ndarray, float]] = []  # coefficients over the sets, and the most their sum may be
        self.answer: list[int] = []

    @classmethod
    def of(cls, task: Task, nodes: np.ndarray, clock: Clock, cap: int) -> _Sets | None:
        """List those of weight at most ``cap``; None when there are too many."""
        from shoal.kernels.connected import connected_sets

        mask = np.zeros(task.n, np.bool_)
        mask[nodes] = True
        g, _ = induced(task.graph, mask)
        zero = np.zeros(g.n, np.int64)
        none = np.zeros(0, np.int64)
        looked = _LOOKED if clock.left > 0 else 0
        features = np.ascontiguousarray(task.features[nodes])
        members, ends, _, seen = connected_sets(
            g.indptr, g.indices, features, task.need, task.ways, zero, none, np.zeros(g.n + 1, np.int64), none,
            1, cap, 2, looked, 4_000_000,
        )  # fmt: skip
        if seen < 0 or len(ends) > SETS:
            return None
        return cls(task, nodes, [np.sort(s) for s in np.split(members, ends)[:-1]])

    def _worth(self, name: str) -> np.ndarray:
        """What each set adds to an objective."""
        task = self.task
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
            elif len(task.geo):
                m, x, y, q = task.geo[nodes].sum(axis=0)
                found.append(max(0.0, q - (x * x + y * y) / m) if m > 0 else 0.0)
            else:
                g = task.graph
                ends = np.concatenate([g.indices[g.indptr[v] : g.indptr[v + 1]] for v in nodes])
                found.append(float((~np.isin(ends, nodes)).sum()))
        return np.array(found)

    def _solve(self, cost: np.ndarray, sets: np.ndarray) -> tuple[list[int], float] | None:
        """The cheapest partition into the given sets that keeps the rows; None when there is none."""
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.setOptionValue("mip_rel_gap", 0.0)
        highs.setOptionValue("mip_abs_gap", 1e-9)
        nothing = np.empty(0, np.int32)
        for _ in self.nodes:
            highs.addRow(1.0, 1.0, 0, nothing, np.empty(0))
        for _, most in self.rows:
            highs.addRow(-highspy.kHighsInf, most, 0, nothing, np.empty(0))
        scale = max(1e-12, float(np.abs(cost[sets]).max(initial=0.0)))
        for j, s in enumerate(sets.tolist()):
            members = self.sets[s]
            index = np.concatenate([members, len(self.nodes) + np.arange(len(self.rows))]).astype(np.int32)
            entry = np.concatenate([np.ones(len(members)), [c[s] for c, _ in self.rows]])
            highs.addCol(float(cost[s]) / scale, 0.0, 1.0, len(index), index, entry)
            highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
        highs.run()
        if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        y = np.array(highs.getSolution().col_value)
        chosen = [int(sets[j]) for j in np.flatnonzero(y > 0.5)]
        return chosen, float(cost[chosen].sum())

    def bisect(self, name: str) -> Any:
        """Least value of the largest set in a partition; keeps that partition."""
        worth = self._worth(name)
        steps = np.unique(worth)
        low, high = 0, len(steps) - 1
        while low < high:
            middle = (low + high) // 2
            if self._solve(np.zeros(len(worth)), np.flatnonzero(worth <= steps[middle])) is None:
                low = middle + 1
            else:
                high = middle
        return int(steps[high]) if name == "max" else float(steps[high])

    def keep(self, name: str, level: Any) -> None:
        """Drop the sets above a level."""
        inside = self._worth(name) <= level
        self.sets = [s for s, ok in zip(self.sets, inside, strict=True) if ok]
        self.rows = [(c[inside], most) for c, most in self.rows]
        self.answer = []

    def minimise(self, name: str, last: bool) -> None:
        """Least sum over the sets of a partition; held from here on."""
        cost = self._worth(name)
        solved = self._solve(cost, np.arange(len(self.sets)))
        if solved is not None:
            self.answer, total = solved
            if not last:
                self.rows.append((cost, total + 1e-7 * max(1.0, abs(total))))

    def partition(self) -> list[np.ndarray]:
        """The areas of each region."""
        if not self.answer or sum(len(self.sets[s]) for s in self.answer) != len(self.nodes):
            solved = self._solve(np.zeros(len(self.sets)), np.arange(len(self.sets)))
            assert solved is not None, "an eligible component is itself a region"
            self.answer = solved[0]
        return [self.nodes[self.sets[s]] for s in self.answer]
