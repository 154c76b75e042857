"""Partitions chosen from lists of sets by set partitioning: all eligible sets of a small component, or those found.

``grown`` adds regions that no search found, by column generation. The neighbors of a region have one area more, one
less, or one exchanged. The linear program over the regions so far gives prices of areas. Neighbors of regions with a
low reduced cost that cost less than their areas' prices are added, until there are none. These usually include the
regions of an optimal partition, which a search that moves from partition to partition can miss.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.problems.regions.task import Districting, SearchClock, cost_in, eligible_rows, induced, squares_about_means

_ROUNDS = 40
_TRIED = 600  # regions with the least reduced cost whose neighbors are examined in a round
_TAKEN = 1_000  # neighbors added in a round
_ENOUGH = 4_000  # with more regions, only those with negative reduced cost are added
_NEAR = 0.5  # tolerance of the reduced cost of neighbors, in mean costs of a region
_ZERO = 1e-6  # a reduced cost below minus this is negative


def grown(
    task: Districting,
    sets: Sequence[np.ndarray],
    name: str,
    label: np.ndarray,
    number: tuple[int, int],
    clock: SearchClock,
) -> list[np.ndarray]:
    """Further connected eligible sets, each ascending, none of them in ``sets``.

    sets    int64[s], ascending, including the regions of ``label``
    name    an objective with moments: "compact" if coordinates are known, "similar"
    label   int64[n]: the best partition known; sets with a reduced cost above its gap to the program are useless
    number  least and most regions in a partition
    """
    moments, regions = task.moments(name), int(label.max()) + 1
    unit = cost_in(task, label, name) / regions
    if not len(moments) or unit <= 0:
        return []
    ends = np.split(task.graph.indices, task.graph.indptr[1:-1])
    near = [set(found.tolist()) for found in ends]
    known = {members.tobytes() for members in sets}
    program = _SetProgram(task.n, number, clock)
    every = list(sets)
    program.add(every, [float(squares_about_means(moments[members].sum(axis=0))) / unit for members in every])
    seen: set[int] = set()  # examined at these prices
    # Local search for columns: add neighbors of the sets with the least reduced cost at the program's prices, then
    # solve the program again.
    for _ in range(max(1, int(_ROUNDS * min(1.0, task.effort)))):
        prices = program.prices(regions) if clock.left > 0 else None
        if prices is None:
            break
        tried = [j for j in np.argsort(prices.reduced, kind="stable").tolist() if j not in seen][:_TRIED]
        fresh: list[_Near] = []
        for j in tried:
            if prices.reduced[j] > prices.slack:
                break
            for other in _around(task, moments / unit, near, every[j], prices):
                if other.members.tobytes() not in known:
                    known.add(other.members.tobytes())
                    if _connected(near, other.members):
                        fresh.append(other)
        fresh.sort(key=lambda other: other.reduced)
        known -= {other.members.tobytes() for other in fresh[_TAKEN:]}
        fresh = fresh[:_TAKEN]
        every += [other.members for other in fresh]
        program.add([other.members for other in fresh], [other.worth for other in fresh])
        if fresh and fresh[0].reduced < -_ZERO:
            seen.clear()
        elif len(tried) < _TRIED or len(every) >= _ENOUGH:
            break
        else:
            seen.update(tried)
    return every[len(sets) :]


class _Near(NamedTuple):
    """A set next to another, its cost, and its reduced cost."""

    members: np.ndarray
    worth: float
    reduced: float


class _Prices(NamedTuple):
    """Dual values of the program.

    They are float64[s] reduced costs of the sets, float64[n] prices of the areas, the constant cost of any set, and
    (slightly increased) the gap between the best partition known and the program.
    """

    reduced: np.ndarray
    price: np.ndarray
    fixed: float
    slack: float


def _around(
    task: Districting, moments: np.ndarray, near: list[set[int]], members: np.ndarray, prices: _Prices
) -> Iterator[_Near]:
    """The eligible neighbor sets (one area more, less, or exchanged) with a low reduced cost; not all are connected."""
    inside = set(members.tolist())
    adjacent = np.array(sorted(set().union(*(near[v] for v in inside)) - inside), np.int64)
    more, less = np.append(-1, adjacent), np.append(-1, members)  # -1: no area

    def changed(values: np.ndarray) -> np.ndarray:
        held = np.concatenate([values, np.zeros_like(values[:1])])  # the value at index -1
        return values[members].sum(axis=0) + held[more][:, None] - held[less][None]

    sums, about = changed(task.features), squares_about_means(changed(moments))
    reduced = about - changed(prices.price) - prices.fixed
    fits = eligible_rows(sums.reshape(-1, sums.shape[-1]), task.need, task.l).reshape(reduced.shape)
    for i, j in np.argwhere(fits & (reduced <= prices.slack)).tolist():
        made = np.sort(np.concatenate([members[members != less[j]], adjacent[i - 1 : i] if i else adjacent[:0]]))
        if len(made):
            yield _Near(made, float(about[i, j]), float(reduced[i, j]))


def _connected(near: list[set[int]], members: np.ndarray) -> bool:
    left = set(members.tolist())
    queue = [left.pop()]
    while queue and left:
        met = near[queue.pop()] & left
        left -= met
        queue += met
    return not left


class _SetProgram:
    """The linear program of the cheapest fractional partition into the sets so far, with limits on their number."""

    def __init__(self, n: int, number: tuple[int, int], clock: SearchClock) -> None:
        from shoal.problems.programs import Solver

        self.n, self.highs = n, Solver(time_limit=max(0.1, clock.left))
        once = np.ones(n)
        self.highs.add_rows(np.append(once, number[0] - _ZERO), np.append(once, number[1] + _ZERO))

    def add(self, sets: Iterable[np.ndarray], worth: Iterable[float]) -> None:
        """Add columns for sets."""
        cost = np.array([*worth])
        if cost.size:
            self.highs.add_columns(cost, np.full(cost.size, np.inf), [np.append(members, self.n) for members in sets])

    def prices(self, worth: float) -> _Prices | None:
        """The dual prices, given a partition of this cost; None if the program has no solution."""
        if not self.highs.solved():
            return None
        dual, slack = self.highs.duals, max(_NEAR, worth - self.highs.getInfo().objective_function_value)
        return _Prices(self.highs.reduced, dual[: self.n], float(dual[self.n]), slack)


SETS = 60_000  # most sets of one component to choose from
_LOOKED = 20_000_000
_BRANCHES = 1  # the program over a pool stops at its root
_POOLED = 20_000  # most sets in a pool
_CHOSEN = 1_000  # most of them in the integer program
_GROWN = 3_000  # and if it includes neighbors of the sets found


class ConnectedSets:
    """Connected eligible sets of some areas, and an integer program that partitions the areas into them.

    task   the graph and the request
    nodes  int64[c]: the areas, numbered as in the task
    sets   sets of indexes in ``nodes``, each ascending
    clock  time limit of a program
    """

    def __init__(
        self, task: Districting, nodes: np.ndarray, sets: list[np.ndarray], clock: SearchClock | None = None
    ) -> None:
        self.task, self.nodes, self.sets, self.clock = task, nodes, sets, clock or SearchClock.of(None)
        self.rows: list[tuple[np.ndarray, float]] = []  # coefficients over the sets, and the upper bound of their sum
        self.answer: list[int] = []

    @classmethod
    def of(cls, task: Districting, nodes: np.ndarray, clock: SearchClock, cap: int) -> ConnectedSets | None:
        """List the sets of weight at most ``cap``; None if there are too many."""
        from shoal.kernels.regions.areas import Areas
        from shoal.kernels.regions.connected import Listing, SetPrices, connected_sets

        mask = np.zeros(task.n, np.bool_)
        mask[nodes] = True
        g, _ = induced(task.graph, mask)
        none = np.zeros(0, np.int64)
        areas = Areas(g.indptr, g.indices, np.ascontiguousarray(task.features[nodes]), task.need, task.l)
        free = SetPrices(np.zeros(g.n, np.int64), none, np.zeros(g.n + 1, np.int64), none)
        looked = _LOOKED if clock.left > 0 else 0
        members, ends, _, seen = connected_sets(areas, free, Listing(1, cap, 2, looked, 4_000_000))
        if seen < 0 or len(ends) > SETS:
            return None
        return cls(task, nodes, [np.sort(s) for s in np.split(members, ends)[:-1]])

    def worth(self, name: str) -> np.ndarray:
        """The cost of each set in an objective."""
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
                found.append(float(squares_about_means(moments[nodes].sum(axis=0))))
            else:
                g = task.graph
                ends = np.concatenate([g.indices[g.indptr[v] : g.indptr[v + 1]] for v in nodes])
                found.append(float((~np.isin(ends, nodes)).sum()))
        return np.array(found)

    def promising(self, cost: np.ndarray, always: np.ndarray, most: int) -> np.ndarray:
        """The sets with the least reduced costs in the linear program, at most ``most``, in addition to ``always``.

        An integer program over all sets that a search found can take minutes at its root; its solution has low reduced
        costs.
        """
        if len(self.sets) <= most:
            return np.arange(len(self.sets))
        highs = self._program(cost, np.arange(len(self.sets)))
        highs.run()
        reduced = highs.reduced
        if len(reduced) != len(self.sets):  # without a solution, any choice is valid
            return always
        return np.union1d(np.argsort(reduced, kind="stable")[:most], always)

    def _program(self, cost: np.ndarray, sets: np.ndarray) -> Any:
        """The cheapest fractional partition into the given sets that satisfies the rows."""
        from shoal.problems.programs import Solver

        highs, once = Solver(time_limit=max(0.1, self.clock.left)), np.ones(len(self.nodes))
        low = np.append(once, np.full(len(self.rows), -np.inf))
        highs.add_rows(low, np.append(once, [most for _, most in self.rows]))
        scale = max(1e-12, float(np.abs(cost[sets]).max(initial=0.0)))
        more = len(self.nodes) + np.arange(len(self.rows))
        chosen = [self.sets[s] for s in sets.tolist()]
        values = [part for s, m in zip(sets.tolist(), chosen, strict=True)
                  for part in (np.ones(len(m)), [c[s] for c, _ in self.rows])]  # fmt: skip
        if chosen:
            rows = [np.concatenate([members, more]) for members in chosen]
            highs.add_columns(cost[sets] / scale, np.ones(sets.size), rows, np.concatenate(values))
        return highs

    def solve(self, cost: np.ndarray, sets: np.ndarray, branches: int | None = None) -> tuple[list[int], float] | None:
        """The cheapest partition into the given sets that satisfies the rows; None if there is none.

        branches  most nodes of the search tree: with it, the best partition found, instead of the cheapest
        """
        highs = self._program(cost, sets)
        highs.setOptionValue("mip_abs_gap", 1e-9)
        if branches is not None:
            highs.setOptionValue("mip_max_nodes", branches)
        highs.make_whole()
        if not highs.solved() and (branches is None or not highs.feasible):
            return None
        chosen = [int(sets[j]) for j in np.flatnonzero(highs.x > 0.5)]
        return chosen, float(cost[chosen].sum())

    def number(self, regions: int) -> None:
        """From now on, require exactly this many sets."""
        ones = np.ones(len(self.sets))
        self.rows += [(ones, regions + 0.5), (-ones, 0.5 - regions)]

    def bisect(self, name: str) -> Any:
        """The least possible value of the largest set in a partition."""
        worth = self.worth(name)
        least, _ = self.lowest(worth, np.arange(len(worth)))
        return int(least) if name == "max" else least

    def lowest(self, worth: np.ndarray, sets: np.ndarray, branches: int | None = None) -> tuple[float, list[int]]:
        """The least cost of the worst set in a partition into the given sets, and the last partition found, if any.

        branches  as for ``solve``
        """
        steps, answer = np.unique(worth[sets]), []
        low, high = 0, len(steps) - 1
        while low < high:
            middle = (low + high) // 2
            tried = self.solve(np.zeros(len(worth)), sets[worth[sets] <= steps[middle]], branches)
            if tried is None:
                low = middle + 1
            else:
                high, answer = middle, tried[0]
        return float(steps[high]), answer

    def keep(self, name: str, level: Any) -> None:
        """Remove the sets above a level."""
        inside = self.worth(name) <= level
        self.sets = [s for s, ok in zip(self.sets, inside, strict=True) if ok]
        self.rows = [(c[inside], most) for c, most in self.rows]
        self.answer = []

    def minimise(self, name: str, last: bool) -> None:
        """Minimize the sum over the sets of a partition; from now on it is a constraint."""
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
    """The regions that a search found, so that the best of several runs can be recombined."""

    def __init__(self) -> None:
        self.sets: dict[bytes, np.ndarray] = {}

    def add(self, label: np.ndarray) -> None:
        """Store every region of a partition."""
        for members in _parts(label):
            if len(self.sets) < _POOLED:
                self.sets.setdefault(members.tobytes(), members)

    def partition(
        self, task: Districting, label: np.ndarray, objective: tuple[str, ...], clock: SearchClock | None = None
    ) -> np.ndarray:
        """A partition into regions of the pool, no heavier than those of ``label`` if that counts; else ``label``.

        The number of regions is kept if it is requested, and the first other sum is lowered. The caller compares the
        result. For compact or similar regions, neighbors of the pool's regions are added.
        """
        self.add(label)
        last = next((name for name in objective if name in ("sumsq", "compact", "similar")), None)
        if last is None:
            return label
        clock = clock or SearchClock.of(None)
        grows = last != "sumsq" and not {"max", "excess"} & set(objective)
        sets = list(self.sets.values())
        if grows:
            sets = list({members.tobytes(): members for members in (*_parts(label), *sets[-_GROWN:])}.values())
            least = int(label.max()) + 1 if task.regions or "count" in objective else 1
            sets += grown(task, sets, last, label, (least, task.regions or task.n), clock.part(0.5))
        listed = ConnectedSets(task, np.arange(task.n), sets, clock)
        for name in objective:
            if name in ("max", "excess"):
                listed.keep(name, cost_in(task, label, name))
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
    """The areas of every part, ascending."""
    order = np.argsort(label, kind="stable")
    return np.split(order, np.cumsum(np.bincount(label))[:-1])
