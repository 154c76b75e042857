"""The methods of regions: spanning trees of low degree cut into regions, and simulated annealing by recombination.

docs/regions.md describes both methods, and proves the promise of the trees. Recombination merges neighboring regions
and cuts them again along random spanning trees; then single areas move. It is known from political districting as ReCom
(DeFord, Duchin, Solomon 2021), where it is a sampler; here it is a search. It starts from any valid partition, by
default the tree method's. So if the heaviest region is the first objective, the tree method's promise holds.

The tree method: Du, Eppstein, Goodrich, Lueker, "On the approximability of geometric and geographic generalization and
the min-max bin covering problem", WADS 2009, arXiv:0904.3756, section 2, Lemmas 1 and 2, Theorem 3.

Differences from the paper: the paper repeatedly cuts off the lightest side of weight at least k in the whole tree.
Here, any side is cut that contains no smaller side of weight at least k, from the leaves upwards, so that one pass is
enough. Lemma 2 needs no more than that. The remainder at the root weighs less than k. It joins a part next to it, which
Lemma 2 bounds by kappa + (d - 1)(k - 1), so the union keeps Lemma 1's bound. Areas of weight 0 need no tie-break: a
vertex is cut off where the sum first reaches k. The trees are found by search instead of the constructions of Tutte
1956 and Barnette 1966; the certificate has the degree reached, for any graph.

Degree 3 in a triangulation: in a canonical order (de Fraysseix, Pach, Pollack 1990), every vertex takes an earlier
neighbor as its parent, and no vertex gets more than two children (the root three). A bipartite matching decides whether
this is possible. In sparser graphs, exchanges of edges succeed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.problems.regions.bounds import CountBound, largest_bound, squares_bound
from shoal.problems.regions.packing import UNIT
from shoal.problems.regions.sets import Pool
from shoal.problems.regions.task import (
    NO_CAP,
    Contiguity,
    Districting,
    GraphStructure,
    RegionsFound,
    SearchClock,
    cost_in,
    costs_in,
    structure,
    to_networkx,
)
from shoal.watching import done, within

if TYPE_CHECKING:
    from shoal.kernels.regions.areas import Areas
    from shoal.kernels.regions.recombine import ObjectiveAndLimits


_STARTS = 20


def tree(task: Districting, bound: CountBound) -> RegionsFound:
    """The paper's algorithm from several spanning trees; the first of the best partitions.

    O((m log n) * exchanges) time per tree, usually linear; several trees if the graph is small.
    """
    from shoal.kernels import quick
    from shoal.kernels.regions import spanning

    g = task.graph
    starts = int(np.clip(400_000 * task.effort // max(task.n, 1), 1, _STARTS))
    every, ends = starts * task.n, starts * len(g.indices)
    cut, degrees = quick(spanning.cut, every * task.features.shape[1]), quick(spanning.degrees, 2 * every)
    preorder, deep_tree = quick(spanning.preorder, every), quick(spanning.deep_tree, 4 * ends)
    reduce_degree = quick(spanning.reduce_degree, 4 * ends)
    known = structure(g) if _may_be_3_connected(task, bound) else None
    wanted = _promised(known)
    best: tuple[Any, ...] | None = None
    label = np.zeros(task.n, np.int64)
    least = task.n
    ended = False

    def tried(parent: np.ndarray, order: np.ndarray) -> None:
        nonlocal best, label, least
        least = min(least, int(degrees(parent).max(initial=0)))
        found = cut(parent, order, task.features, task.need, task.l)
        cost = costs_in(task, found, task.objective)
        if best is None or cost < best:
            best, label = cost, found

    for attempt in range(starts):
        seed = np.uint64((int(task.state[0]) + attempt * 0x9E3779B97F4A7C15) % 2**64 | 1)
        first = int(seed) % task.n if attempt else 0
        parent, order = deep_tree(g.indptr, g.indices, first, seed)
        if degrees(parent).max(initial=0) > 2:
            ended |= reduce_degree(g.indptr, g.indices, parent, max(8, 2_000_000 // max(task.n, 1)))
            order = preorder(parent)
        tried(parent, order)
    if known is not None and wanted is not None and least > wanted:
        better = low_degree_tree(g, wanted, task.state)
        if better is not None:
            tried(better, preorder(better))
    details: dict[str, Any] = {"tree_degree": least}
    if ended and least > 2:
        details["least_tree_degree"] = f"at least {least - 1}"
    if known is not None:
        details |= {"connectivity": f"{known.connectivity}{'+' * (known.connectivity == 4)}", "planar": known.planar}
    return RegionsFound(label, promise(task, least), details=details)


def promise(task: Districting, degree: int) -> Guarantee:
    """The guarantee of Lemmas 1 and 2 for a spanning tree of this degree; none with several thresholds."""
    if not task.plain:
        return Guarantee()
    theorem = "Du, Eppstein, Goodrich, Lueker 2009, Lemmas 1 and 2"
    if degree <= 3:
        theorem += " (Theorem 3)"
    theorem += f": a spanning tree of degree {degree} gives at most kappa + {degree} (k - 1)"
    return Guarantee(factor=1 + degree, additive=0, theorem=theorem)


def ceiling(task: Districting, degree: int) -> int:
    """The largest weight of a region that Lemma 1 allows: kappa + d (k - 1)."""
    return max(task.k, int(task.features[:, 0].max(initial=0))) + degree * (task.k - 1)


def _may_be_3_connected(task: Districting, bound: CountBound) -> bool:
    """Whether the graph may be 3-connected: it is connected, and each area has at least three neighbors."""
    return task.n > 3 and int(bound.component.max()) == 0 and int(np.diff(task.graph.indptr).min()) >= 3


def _promised(known: GraphStructure | None) -> int | None:
    """The degree that a planar graph guarantees: Tutte 1956 if 4-connected, Barnette 1966 if 3-connected."""
    if known is None or not known.planar or known.connectivity < 3:
        return None
    return 2 if known.connectivity == 4 else 3


POOLED = 1_000  # with more areas, there is one run and no pool
_RUNS = 2
_PUT = 0.2  # approximate share of the remaining seconds for recombining compact regions
_ROUNDS = 8  # passes of a search's steps over the areas of a large graph
_SNAPSHOTS = 30
_SHARE = {"max": 0.2, "count": 0.5, "sumsq": 0.3, "excess": 0.3, "compact": 0.3, "similar": 0.3}
_HEAT = {
    "max": (0.3, 1e-3), "count": (10.0, 0.1), "sumsq": (0.6, 0.006), "excess": (1.0, 0.01), "compact": (1.0, 0.01),
    "similar": (1.0, 0.01),
}  # fmt: skip
_PRICED_HEAT = (0.02, 0.005)
_LARGE = 100_000  # with more areas, there are fewer steps per area


def search(
    task: Districting,
    bound: CountBound,
    pool: Pool | None = None,
    more: Callable[[np.ndarray], np.ndarray] | None = None,
) -> RegionsFound:
    """Lower the objectives one after the other, each kept while the next is lowered.

    pool  collects the regions found, on small graphs
    more  turns a partition into one with more regions, as a starting point; if more regions can conflict with the first
          objective, the search runs from both

    The number of steps is proportional to the areas (at least 20, at most 4,000 per area; above 100,000 areas, 4 for
    each further area). Each step is linear in the areas of the merged regions.
    """
    clock, first = SearchClock.of(task.seconds), tree(task, bound)
    label = first.label if task.start is None else task.start.copy()
    degree = int(first.details["tree_degree"])
    if task.objective[0] == "max" and task.start is not None and first.label.size:
        label = min(label, first.label, key=lambda found: cost_in(task, found, "max"))
    begun = label if more is None else more(label)
    both = begun is not label and task.objective[0] != "count"
    found = [improve(task, bound, begun, clock.part(0.5) if both else clock, pool=pool)]
    if both and not (task.objective[0] == "max" and _lowest(task, bound, found[0], "max")):
        found.append(improve(task, bound, label, clock, pool=pool))
    label = min(found, key=lambda made: costs_in(task, made, task.objective))
    kept = task.plain and cost_in(task, label, "max") <= ceiling(task, degree)
    guarantee = promise(task, degree) if kept and task.objective[0] == "max" else Guarantee()
    return RegionsFound(label, guarantee, details=first.details)


def _lowest(task: Districting, bound: CountBound, label: np.ndarray, name: str) -> bool:
    """Whether an objective is proved to be optimal."""
    if name == "count":
        return int(label.max(initial=-1)) + 1 >= bound.value
    if name == "max":
        least: float = largest_bound(task, bound)[0]
    elif name == "sumsq":
        least = squares_bound(task, bound)
    else:
        least = 1.0 if name == "excess" else 0
    return bool(cost_in(task, label, name) <= least)


def improve(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    clock: SearchClock | None = None,
    objective: tuple[str, ...] | None = None,
    pool: Pool | None = None,
) -> np.ndarray:
    """The search alone, from a valid partition; the result is never worse in the order of the objectives.

    On small graphs the steps are divided among several runs, and the regions found by them are recombined.
    """
    clock = clock or SearchClock.of(task.seconds)
    chain = objective or task.objective
    label = np.ascontiguousarray(label, dtype=np.int64).copy()
    if task.n > POOLED:
        return _improved(task, bound, label, clock, chain, 1.0, None)
    pool = Pool() if pool is None else pool
    spend = 1 - _PUT * (not {"compact", "similar"}.isdisjoint(chain))
    best, optimal = several_runs(task, bound, label, chain, pool, clock, spend)
    if optimal:
        return best
    return min(best, pool.partition(task, best, chain, clock), key=lambda one_of: costs_in(task, one_of, chain))


def several_runs(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    chain: tuple[str, ...],
    pool: Pool,
    clock: SearchClock,
    spend: float = 1.0,
) -> tuple[np.ndarray, bool]:
    """The best of several runs from a partition, and whether it is proved optimal; the regions found go to the pool.

    spend  share of the remaining time
    """
    found = [label]
    for run in range(_RUNS + 1):
        if all(_lowest(task, bound, found[-1], name) for name in chain):
            return found[-1], True
        if run < _RUNS:
            slot = clock.part(spend / (_RUNS - run))
            found.append(_improved(task, bound, label, slot, chain, 1 / _RUNS, pool))
    return min(found, key=lambda one_of: costs_in(task, one_of, chain)), False


def _improved(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    clock: SearchClock,
    chain: tuple[str, ...],
    part: float,
    pool: Pool | None,
) -> np.ndarray:
    """One run, with ``part`` of the usual steps; the regions found go to the pool."""
    cap, start = NO_CAP, label
    shares = sum(_SHARE[name] for name in chain)
    # many regions first: they lower squares and excess further than the search alone does. On large graphs they also
    # lower the heaviest region, because prices find more regions than a search under a cap
    priced = task.regions is None and task.n > POOLED and chain[0] == "max"
    warm = priced or (task.regions is None and chain[0] in ("sumsq", "excess"))
    stages = ("count", *chain) if warm else chain
    # A stage lowers one objective. If the objectives before it got worse, it is undone.
    for i, name in enumerate(stages):
        before = label.copy()
        seconds = None if clock.end is None else max(0.0, clock.left) * _SHARE[name] / max(shares, _SHARE[name])
        shares -= 0 if warm and i == 0 else _SHARE[name]
        with within(i / len(stages), (i + 1) / len(stages)):
            if name == "max":
                label, cap = _lower_max(task, bound, label, seconds, part, pool)
                if priced and cap > cost_in(task, start, "max"):  # this start keeps the tree's promise
                    label, cap = _lower_max(task, bound, start, seconds, part, pool)
                    priced = False
            elif not _lowest(task, bound, label, name) and not (name == "count" and i and priced):
                label = _run(task, bound, label, name, cap, 0.0, seconds, part, pool)
        if not (warm and i == 0):
            held = chain[: i + 1 - warm]
            if costs_in(task, label, held) > costs_in(task, before, held):
                label = before
    return label


def _lower_max(
    task: Districting, bound: CountBound, label: np.ndarray, seconds: float | None, part: float, pool: Pool | None
) -> tuple[np.ndarray, int]:
    """Bisect between the proved bound and the heaviest region while the search succeeds."""
    low, _ = largest_bound(task, bound)
    high = cost_in(task, label, "max")
    target, misses = low, 0
    while high > low and misses < 4:
        with within(misses / 4, (misses + 1) / 4):
            found = _run(task, bound, label, "max", NO_CAP, float(target), seconds and seconds / 4, part, pool)
        reached = cost_in(task, found, "max")
        if reached < high:
            label, high = found, reached
        if reached > target:
            misses += 1
            target = (target + high + 1) // 2 if target < high - 1 else high
            if target >= high:
                break
        else:
            target = (low + high) // 2
    return label, high


class _Annealing(NamedTuple):
    """The annealing of one objective from a partition: how the kernels count it, and its temperatures.

    If areas have prices, surplus that is moved into one region until it can be cut is measured in prices instead of
    weight, because weight that no region can use has price zero.
    """

    task: Districting
    name: str
    areas: Areas
    aim: ObjectiveAndLimits
    heat: tuple[float, float]

    @classmethod
    def of(
        cls, task: Districting, bound: CountBound, label: np.ndarray, name: str, cap: int, target: float
    ) -> _Annealing:
        from shoal.kernels.regions import recombine as kernel
        from shoal.kernels.regions.areas import Areas

        forms: dict[str, int] = {
            "count": kernel.COUNT,
            "sumsq": kernel.SQUARES,
            "max": kernel.OVER,
            "excess": kernel.EXCESS,
            "compact": kernel.INERTIA if len(task.geo) else kernel.BORDER,
            "similar": kernel.INERTIA,
        }
        scale, features, need = float(task.k), task.features, task.need
        if forms[name] == kernel.INERTIA:
            scale = max(cost_in(task, label, name) / (int(label.max()) + 1), 1e-300)
        heat = (3.0, 0.3) if name == "count" and task.n <= POOLED else _HEAT[name]
        if name == "count" and bound.price is not None and cap == NO_CAP:
            features, need = np.column_stack([bound.price, features]), np.concatenate([[0], need])
            scale, heat = float(UNIT), _PRICED_HEAT
        moments = task.moments(name) if name in ("compact", "similar") else np.zeros((0, 4))
        aim = kernel.ObjectiveAndLimits(
            forms[name], scale, target, moments if len(moments) else np.zeros((0, 4)), cap, task.regions or bound.value
        )
        return cls(task, name, Areas(task.graph.indptr, task.graph.indices, features, need, task.l), aim, heat)

    def lower(self, label: np.ndarray, steps: int, begin: float, end: float) -> None:
        """Recombine in place, cooling between two shares of the schedule."""
        from shoal.kernels.regions.recombine import Cooling, recombine

        hot, cold = self.heat
        cooling = Cooling(steps, hot * (cold / hot) ** begin, hot * (cold / hot) ** end)
        recombine(self.areas, self.aim, cooling, label, self.task.state)

    def polished(self, label: np.ndarray, steps: int, pool: Pool | None) -> np.ndarray:
        """Move single areas at the last temperature if the number of regions doesn't count."""
        from shoal.kernels.regions.recombine import Cooling, shift

        plain = self.name in ("sumsq", "max")  # on small graphs recombination alone lowers these as far
        if self.name in ("count", "excess") or (plain and self.task.n <= POOLED):
            return label
        moved, cold = label.copy(), self.heat[1]
        shift(self.areas, self.aim, Cooling(steps, cold, cold / 10), moved, self.task.state)
        moved = min(moved, label, key=lambda found: costs_in(self.task, found, (self.name, "sumsq")))
        if pool is not None:
            pool.add(moved)
        return moved


def _run(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    name: str,
    cap: int,
    target: float,
    seconds: float | None,
    part: float,
    pool: Pool | None,
) -> np.ndarray:
    """One annealing, by steps or by seconds; its colder half fills the pool."""
    annealing = _Annealing.of(task, bound, label, name, cap, target)
    label = label.copy()
    if seconds is None:
        steps = max(1, int(steps_for(task, bound, name) * part))
        if task.n > POOLED:
            for i in range(_ROUNDS):
                done(i / _ROUNDS)
                annealing.lower(label, max(1, steps // _ROUNDS), i / _ROUNDS, (i + 1) / _ROUNDS)
        elif pool is None or name == "count":
            annealing.lower(label, steps, 0.0, 1.0)
        else:
            annealing.lower(label, steps // 2, 0.0, 0.5)
            for i in range(_SNAPSHOTS):
                share = max(1, steps // 2 // _SNAPSHOTS)
                annealing.lower(label, share, 0.5 + 0.5 * i / _SNAPSHOTS, 0.5 + 0.5 * (i + 1) / _SNAPSHOTS)
                pool.add(label)
        return annealing.polished(label, 4 * steps, pool)
    clock = SearchClock.of(seconds)
    chunk, spent = 2_000, 0.0
    while spent < 1.0:
        done(spent)
        annealing.lower(label, chunk, spent, min(1.0, spent + 0.05))
        now = 1.0 if seconds <= 0 else 1.0 - max(0.0, clock.left) / seconds
        chunk = int(np.clip(chunk * 0.05 / max(now - spent, 1e-3), 200, 10_000_000))
        spent = now
        if pool is not None:
            pool.add(label)
    return annealing.polished(label, 4 * min(chunk, 1_000_000), pool)


def steps_for(task: Districting, bound: CountBound, name: str) -> int:
    """The usual number of steps of one annealing: fewer if regions are large, because a step then takes longer."""
    size = task.n / max(bound.value, 1)
    few = 20 * min(task.n, _LARGE) + 4 * max(0, task.n - _LARGE)
    usual = min(4_000 * task.n, int(3_700_000 / max(size, 1.0) ** 0.5))
    if task.n <= POOLED:
        share = 0.25 if name == "max" else 0.28
    elif name == "count":  # with prices, the number still increases when other objectives have converged
        share, usual = 1.35, int(2.5 * usual)
    else:
        share = 0.25 if name == "max" else 0.3
    return max(1, int(max(usual, few) * task.effort * share))


_TRIES = 60
_WORK = 300_000_000  # vertices visited in the search for a path


def low_degree_tree(g: Contiguity, wanted: int, state: np.ndarray) -> np.ndarray | None:
    """A spanning tree of degree at most ``wanted`` (2 or 3) of a planar graph, as parents; None if none was found."""
    if wanted == 2:
        return hamiltonian_path(g, state)
    found = exchanged(g, wanted, state)
    return matched(g) if found is None else found


def hamiltonian_path(g: Contiguity, state: np.ndarray) -> np.ndarray | None:
    """A Hamiltonian path as parents, the first vertex's -1; None if none was found."""
    from shoal.kernels.regions.spanning import long_path

    steps = 40 * g.n + 2_000
    for _ in range(max(1, min(_TRIES, _WORK // (steps * max(g.n, 1))))):
        path = long_path(g.indptr, g.indices, steps, state)
        if len(path) == g.n:
            parent = np.full(g.n, -1, np.int64)
            parent[path[1:]] = path[:-1]
            return parent
    return None


def exchanged(g: Contiguity, wanted: int, state: np.ndarray) -> np.ndarray | None:
    """Exchange edges of several depth-first trees until one has no degree above ``wanted``."""
    from shoal.kernels.regions.spanning import deep_tree, degrees, reduce_degree

    for attempt in range(_TRIES):
        seed = np.uint64((int(state[0]) + attempt * 0x9E3779B97F4A7C15) % 2**64 | 1)
        parent, _ = deep_tree(g.indptr, g.indices, int(seed) % g.n, seed)
        reduce_degree(g.indptr, g.indices, parent, 4 * g.n)
        if degrees(parent).max(initial=0) <= wanted:
            return parent
    return None


def matched(g: Contiguity) -> np.ndarray | None:
    """A spanning tree of degree at most 3 of a planar graph, with parents matched along a canonical order.

    None if there is none.

    O(n^1.5) time for the matching.
    """
    import networkx as nx
    from networkx.algorithms.planar_drawing import get_canonical_ordering, triangulate_embedding
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    planar, embedding = nx.check_planarity(to_networkx(g))
    if not planar or g.n < 4:
        return None
    full, outer = triangulate_embedding(embedding, True)
    order = np.array([v for v, _ in get_canonical_ordering(full, outer)], np.int64)
    rank = np.empty(g.n, np.int64)
    rank[order] = np.arange(g.n)
    child = np.repeat(np.arange(g.n), np.diff(g.indptr))
    earlier = rank[g.indices] < rank[child]
    child, above = child[earlier], g.indices[earlier]
    places = np.concatenate([3 * above, 3 * above + 1, 3 * above[above == order[0]] + 2])
    takers = np.concatenate([child, child, child[above == order[0]]])
    options = csr_matrix((np.ones(len(takers), np.int8), (takers, places)), shape=(g.n, 3 * g.n))
    taken = maximum_bipartite_matching(options, perm_type="column")
    parent = np.where(taken >= 0, taken // 3, -1).astype(np.int64)
    return parent if int((parent < 0).sum()) == 1 else None
