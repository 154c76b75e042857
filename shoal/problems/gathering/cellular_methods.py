"""Methods and bounds of cellular clustering: local search, the primal-dual methods, and feasible prices of points.

The search begins with a greedy solution, re-splits pairs of clusters, and dissolves and recuts some. It has no
guarantee; ``bound`` gives a bound of its distance from the optimum. The bounds are prices of points: every clustering
costs at least the sum of all prices if no possible cluster costs less than those of its members (Lemma 3 of
docs/gathering.md, which also proves the factors below).

The primal-dual methods are those of section 3 of Aggarwal et al. 2006. ``procedure_one`` is the paper's Procedure 1
(Theorem 3.3, factor 4, set-up costs of centers). ``tight`` differs from it: paid clusters freeze their points, and
nothing is shut down. It has factor 3 (Theorem 5), and better costs and bounds on real points.

With at least r points, the paper sets the set-up cost of a cluster to r times its radius and calls Procedure 1. Its
proof needs set-up costs that don't depend on the radius, and the family in tests/families/gathering.py makes the cost
r/3 times the optimum. So the paper's Theorem 3.6 isn't certified here. Keeping the largest cluster first repairs it:
factor 36 (Theorem 6), with outliers Theorem 7, with a largest diameter Theorem 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shoal.errors import InputError
from shoal.kernels import quick
from shoal.kernels.gathering import cellular as kernels
from shoal.kernels.gathering import duals, pairs
from shoal.problems.gathering.diverse import Diversity
from shoal.problems.gathering.space import Space
from shoal.problems.gathering.threshold import Clusters
from shoal.problems.programs import ascend, state_of
from shoal.watching import done

STEPS = {"fast": 0, "balanced": 1, "thorough": 20}  # number of clusters to dissolve, relative to the number of clusters
LOOKS = {"fast": 3, "balanced": 30, "thorough": 60}
SHORT = 4  # length of the greedy method's lists, in multiples of r
LARGEST = 900  # most points of two clusters that are re-split together
EXCESS = 1e3  # cost of a point per unit of diameter above the cap


@dataclass(frozen=True, eq=False)
class CellularProblem:
    """The arrays of the search, computed once.

    near, far  int64[n, w], float64[n, w]: nearest points and their distances
    """

    space: Space
    r: int
    setup: np.ndarray
    near: np.ndarray
    far: np.ndarray
    max_diameter: float | None = None
    diversity: Diversity | None = None

    @property
    def rules(self) -> pairs.ClusterRules:
        """The constraints in the form of the kernels."""
        d = self.diversity
        n = self.space.n
        codes = np.zeros((n, 0), np.int64) if d is None else d.codes
        share = np.zeros(0) if d is None else np.array([1 / l for l in d.frequency])
        distinct = np.zeros(0, np.int64) if d is None else np.array(d.distinct, np.int64)
        limit = np.inf if self.max_diameter is None else self.max_diameter
        return pairs.ClusterRules(self.r, self.setup, codes, share, distinct, limit, 0.0 if limit == np.inf else EXCESS)

    def largest(self, found: Clusters) -> int:
        """The most points of two clusters that are re-split together."""
        usual = int(np.median(np.bincount(found.labels[found.labels >= 0]))) if found.center.size else 1
        return int(min(max(6 * self.r, 5 * usual, 48), max(LARGEST, 3 * self.r), self.space.n))


def greedy(problem: CellularProblem, out: np.ndarray) -> Clusters:
    """Repeatedly open the cluster with the least cost per point; remaining points join where the cost increases least.

    out  bool[n]: points left out
    """
    space, r = problem.space, problem.r
    owner = np.where(out, space.n, -1)
    center = np.empty(space.n, np.int64)
    # longer lists leave fewer points over, but give a worse start, because clusters of exactly r have no points to give
    # away
    w = problem.near.shape[1] if problem.setup.any() else min(SHORT * r, problem.near.shape[1])
    open_clusters = quick(kernels.greedy, 2 * space.n * w)
    # one memory layout, so that one version is compiled
    near, far = (np.ascontiguousarray(a[:, :w]) for a in (problem.near, problem.far))
    m = open_clusters(near, far, r, problem.setup, owner, center)
    owner[out] = -1
    center = center[:m].copy()
    if not m:  # no list with r free points: one cluster of all points
        owner[~out] = 0
        return without_empty(space, owner, np.flatnonzero(~out)[:1])
    return admit(space, owner, center, np.flatnonzero((owner < 0) & ~out))


def admit(space: Space, owner: np.ndarray, center: np.ndarray, free: np.ndarray) -> Clusters:
    """Free points, each added to the cluster whose cost increases least, of the 16 with the nearest centers."""
    m = center.size
    kept = np.flatnonzero(owner >= 0)
    radius = np.zeros(m)
    np.maximum.at(radius, owner[kept], space.between(kept, center[owner[kept]]))
    size = np.bincount(owner[kept], minlength=m)
    if free.size:
        spots, first = np.unique(center, return_index=True)
        choice, away = space.nearest(min(16, spots.size), rows=free, among=spots)
        back = np.full(space.n, -1)
        back[spots] = first
        turn = np.argsort(away[:, 0], kind="stable")
        picked = np.where(choice >= 0, back[choice], -1)[turn]
        quick(kernels.absorb, picked.size)(free[turn], picked, away[turn], owner, size, radius)
    return without_empty(space, owner, center)


def without_empty(space: Space, owner: np.ndarray, center: np.ndarray) -> Clusters:
    """Clusters renumbered, without empty ones."""
    used, fresh = np.unique(owner[owner >= 0], return_inverse=True)
    labels = np.full(space.n, -1)
    labels[owner >= 0] = fresh
    return Clusters.around(space, labels, center[used])


def halve(problem: CellularProblem, found: Clusters) -> Clusters:
    """Clusters with more points than the search allows, cut by distance from their center.

    Without set-up costs this is free.
    """
    limit = max(problem.largest(found) // 2, 2 * problem.r)
    size = np.bincount(found.labels[found.labels >= 0], minlength=found.center.size)
    if (size <= limit).all():
        return found
    labels, center = found.labels.copy(), list(found.center)
    for c in np.flatnonzero(size > limit):
        members = np.flatnonzero(labels == c)
        members = members[np.argsort(found.away[members], kind="stable")]
        for part in np.array_split(members, -(-members.size // limit))[1:]:
            labels[part] = len(center)
            center.append(found.center[c])
    return without_empty(problem.space, labels, np.array(center, np.int64))


def improve(problem: CellularProblem, found: Clusters, effort: str, seed: int) -> Clusters:
    """The search from a given start; never worse than it. O(pairs examined * largest^2) time."""
    space = problem.space
    start = found
    if problem.diversity is None and problem.max_diameter is None and not problem.setup.any():
        found = halve(problem, found)
    largest = problem.largest(found)
    owner = found.labels.copy()
    center = np.full(space.n, -1)
    center[: found.center.size] = found.center
    # one memory layout, so that one version is compiled
    near = np.ascontiguousarray(problem.near[:, : max(2 * problem.r, 16)])
    pairs.search(space.coded, near, problem.rules, pairs.CutBudget(largest, 2, LOOKS[effort], 0), owner, center)
    done(0.5)
    if STEPS[effort]:
        clusters = max(1, np.unique(owner[owner >= 0]).size)
        budget = pairs.CutBudget(min(2 * largest, max(LARGEST, 4 * problem.r)), 5, STEPS[effort] * clusters, seed)
        pairs.recut(space.coded, problem.near, problem.rules, budget, owner, center)
    return min((start, nearby(problem, without_empty(space, owner, center))), key=lambda c: penalized(problem, c))


def nearby(problem: CellularProblem, found: Clusters) -> Clusters:
    """Every center moved to a nearby point, not left out, that minimizes its cluster's cost."""
    space = problem.space
    order = np.argsort(found.labels, kind="stable")
    start = np.searchsorted(found.labels[order], np.arange(found.center.size + 1)).astype(np.int64)
    center = found.center.copy()
    looks = problem.near.shape[1] * space.n
    quick(kernels.better_centers, space.steps(looks))(
        space.coded, start, order, problem.near, problem.setup, found.labels >= 0, center
    )
    return without_empty(space, found.labels, center)


def radii(found: Clusters) -> np.ndarray:
    """float64[m]: the radius of every cluster."""
    kept = found.labels >= 0
    radius = np.zeros(found.center.size)
    np.maximum.at(radius, found.labels[kept], found.away[kept])
    return radius


def cost(problem: CellularProblem, found: Clusters) -> float:
    """The sum of size times radius, plus set-up costs."""
    return priced_cost(found) + float(problem.setup[found.center].sum())


def penalized(problem: CellularProblem, found: Clusters) -> float:
    """The cost plus a penalty for diameters above the cap; inf for a cluster that isn't eligible."""
    d = problem.diversity
    total = cost(problem, found)
    if d is not None and any(not d.holds(np.flatnonzero(found.labels == c)) for c in range(found.center.size)):
        return np.inf
    if problem.max_diameter is not None:
        size = np.bincount(found.labels[found.labels >= 0], minlength=found.center.size)
        over = np.maximum(diameters(problem.space, found) - problem.max_diameter, 0.0)
        total += EXCESS * float((size * over).sum())
    return total


def diameters(space: Space, found: Clusters) -> np.ndarray:
    """float64[m]: the largest distance of two members of each cluster. O(sum of squared sizes)."""
    order = np.argsort(found.labels, kind="stable")
    start = np.searchsorted(found.labels[order], np.arange(found.center.size + 1)).astype(np.int64)
    out = np.zeros(found.center.size)
    kernels.diameters(space.coded, start, order, out)
    return out


def leave_out(problem: CellularProblem, found: Clusters, spare: int) -> Clusters:
    """Leave out up to ``spare`` points with the largest saving each: the farthest of clusters, or whole clusters."""
    space, r = problem.space, problem.r
    labels = found.labels.copy()
    owner = np.where(labels < 0, -1, labels)
    center = np.full(space.n, -1)
    center[: found.center.size] = found.center
    kernels.drop_farthest(found.center.size, owner, found.away.copy(), center, r, problem.setup, spare)
    return without_empty(space, owner, center[: found.center.size])


ENTRIES = 1 << 25  # most list entries held
WORK = {"fast": 2e8, "balanced": 1e9, "thorough": 1e10}  # points times squared list length, approximately
WIDTH = {"fast": 4, "balanced": 8, "thorough": 16}
CLIMB = {"fast": 0.0, "balanced": 1.5e8, "thorough": 1e9}  # list entries that the subgradient method may visit
PASSES = {"fast": 0, "balanced": 60, "thorough": 150}  # most passes over all lists
FEWEST = 40
GAP = 0.015  # steps aim this share above the proved bound
FADE, PATIENCE = 0.7, 10.0  # momentum of the direction; passes without improvement before steps are shortened
FULL = 400  # up to this many points the lists are complete
TINY = 1e-12
DENSE = 8000  # largest number of points for the matrix of the primal-dual method


def width(space: Space, r: int, effort: str) -> int:
    """The length of the lists: a multiple of r (of 8 if r is smaller), limited by memory."""
    if space.n <= FULL:
        return space.n
    wanted = min(WIDTH[effort] * max(r, 8), ENTRIES // space.n, max(4 * r, int((WORK[effort] / space.n) ** 0.5)))
    return int(min(space.n, max(wanted, r, 2)))


def raised(
    near: np.ndarray,
    far: np.ndarray,
    r: int,
    setup: np.ndarray,
    start: np.ndarray | None = None,
    left_out: int = 0,
    effort: str = "fast",
) -> tuple[np.ndarray, float]:
    """(feasible prices float64[n], their initial sum without the left_out largest).

    near, far  the nearest w >= r points of each point
    start      other feasible initial prices, used if their sum is larger; with r > 1 only for complete lists
    effort     of the subgradient method, which isn't used if points are left out or centers have set-up costs
    Usually O(n w^2) time, O(n w) space.
    """
    n, w = near.shape
    complete = w >= n
    at, holder, away, place = quick(duals.holders, 2 * near.size)(near, far)
    balls = duals.Balls(near, far, at, holder, away, r, setup)
    offer = far + setup[:, None] / np.arange(1, w + 1)
    offer[:, : r - 1] = np.inf
    offer[:, :-1][far[:, 1:] == far[:, :-1]] = np.inf  # points at equal distances enter together
    if not complete:
        # further points may have this distance or a larger one, so their radius is at least this
        offer[:, -1] = far[:, -1]
    offer = np.minimum.accumulate(offer[:, ::-1], axis=1)[:, ::-1]
    price = np.minimum.reduceat(offer[holder, place], at[:-1])
    cap = np.full(n, np.inf)
    if not complete:
        end = far[:, -1]
        beyond = np.where(far >= end[near], far, np.inf).min(axis=1)  # the nearest center whose list lacks the point
        cap = np.minimum(np.minimum.reduceat(end[holder], at[:-1]), np.minimum(beyond, end))
    price = np.minimum(price, cap)
    first = float(price.sum())
    if left_out:
        return _capped(balls, cap, price, left_out)
    if start is not None and (complete or r <= 1) and start.sum() > first:
        price = start.copy()

    def higher(price: np.ndarray) -> None:
        duals.raise_prices(balls, cap, np.argsort(price, kind="stable"), price)

    higher(price)
    climbed = along_subgradients(price, balls, cap, effort) if r > 1 and not setup.any() else price
    if climbed.sum() > price.sum():
        price = climbed
        higher(price)
    return price, first


def along_subgradients(price: np.ndarray, balls: duals.Balls, cap: np.ndarray, effort: str) -> np.ndarray:
    """Feasible prices of either sign, moved along subgradients from given ones, without set-up costs.

    ``cap`` is as for ``raise_prices``.
    """
    work = balls.near.size
    passes = min(PASSES[effort], int(CLIMB[effort] / work))
    aim = float(price.sum())
    if passes < FEWEST or aim <= 0.0:
        return price
    moved, best, over, state = price.copy(), price.copy(), np.empty(price.size), state_of(1.0)
    taken, trend = np.empty(price.size, np.int64), np.zeros(price.size)
    # prices of remote points are a thousand times those of dense ones, so each moves in units between its own and the
    # median
    scale = np.sqrt(np.maximum(price, TINY * float(price.max())) * float(np.median(price[price > 0])))

    def restart(value: float) -> bool:
        far_off = value < state[0] - GAP * aim
        if far_off:
            moved[:], trend[:] = best, 0.0
        return bool(far_off)

    def direct(risen: bool) -> float:
        if risen:
            best[:] = moved
        trend[:] = (1 - FADE) * (1 - taken) + FADE * trend
        return float(np.cumsum((trend * scale) ** 2)[-1])

    def move(step: float) -> None:
        np.minimum(moved + step * trend * scale**2, cap, out=moved)

    ascend(
        state, passes, PATIENCE, lambda value: max(float(state[0]), aim) + GAP * aim - value, restart=restart,
        value=lambda: quick(duals.worth, work)(balls, moved, taken), direct=direct, move=move,
    )  # fmt: skip
    quick(duals.excess, work)(balls.near, balls.far, balls.r, best, over)
    return best - over - TINY * np.abs(best)


def _capped(balls: duals.Balls, cap: np.ndarray, price: np.ndarray, left_out: int) -> tuple[np.ndarray, float]:
    """With points left out, only the smaller prices count, so none is raised above a common cap.

    Several caps are tried.

    balls  nearest points, r, and the set-up costs
    """
    first = bound(price, left_out)
    best, level = price, float(np.partition(price, price.size - left_out - 1)[price.size - left_out - 1])
    for factor in (1.0, 1.4, 2.0):
        limit = level * factor
        trial = np.minimum(price, limit)
        order = np.argsort(trial, kind="stable")
        duals.raise_prices(balls, np.minimum(cap, limit), order, trial)
        if bound(trial, left_out) > bound(best, left_out):
            best = trial
    return best, first


def bound(price: np.ndarray, left_out: int) -> float:
    """A lower bound of the cost of every clustering that leaves out at most left_out points."""
    kept = np.sort(price)[: price.size - left_out] if left_out else price
    return max(0.0, math.fsum(kept.tolist()))


STEP = 1.5  # ratio of successive guesses of the largest radius, if points may be left out


@dataclass(frozen=True, eq=False)
class PricedClusters:
    """Clusters before points are shared: labels int64[n] (-1: left out), center int64[m], the dual float64[n]."""

    labels: np.ndarray
    center: np.ndarray
    alpha: np.ndarray


class Distances:
    """All distances and rankings of up to 8,000 points."""

    def __init__(self, space: Space) -> None:
        if space.n > DENSE:
            raise InputError(
                f"this method holds all distances, for at most {DENSE} points, and there are {space.n}; "
                "use ⟨method='search'⟩"
            )
        self.distances = np.ascontiguousarray(space.matrix())
        self.ranked = np.argsort(self.distances, axis=1, kind="stable").astype(np.int32)

    @property
    def n(self) -> int:
        """The number of points."""
        return len(self.distances)

    def openings(self, r: int, fixed: np.ndarray, share: float, widest: float = np.inf) -> duals.Openings:
        """The clusters that may open with a set-up cost of ``fixed`` plus ``share`` times the radius."""
        return duals.Openings(self.distances, self.ranked, r, fixed, share, widest)


def procedure_one(table: Distances, r: int, fixed: np.ndarray, share: float = 0.0) -> PricedClusters:
    """The paper's Procedure 1. O(n^2) space."""
    labels, center, alpha = np.full(table.n, -1), np.zeros(table.n, np.int64), np.zeros(table.n)
    m = duals.procedure_one(table.openings(r, fixed, share), labels, center, alpha)
    return PricedClusters(labels, center[:m], alpha)


def tight(
    table: Distances, r: int, fixed: np.ndarray, share: float = 0.0, left_out: int = 0, widest: float = np.inf
) -> PricedClusters:
    """Clusters frozen when they are paid; the largest that share no payer are kept, and their payers join first.

    O(n^2) space.

    At most left_out points keep label -1. If no cluster within ``widest`` can be opened, all do.
    """
    n = table.n
    witness, center, radius, alpha = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    m, last = duals.tighten(table.openings(r, fixed, share, widest), left_out, witness, center, radius, alpha)
    center, radius = center[:m], radius[:m]
    chosen, stand_in, payer = np.zeros(m, np.bool_), np.zeros(m, np.int64), np.full(n, -1)
    quick(duals.independent, m * n)(table.distances, center, radius, alpha, chosen, stand_in, payer)
    if left_out and m:  # the last cluster froze more points than necessary; exactly left_out stay out
        spare = left_out - int((witness < 0).sum())
        members = np.flatnonzero(witness == m - 1)
        far = members[np.argsort(-table.distances[center[m - 1], members], kind="stable")]
        witness[far[: min(spare, last)]] = -1
    labels = np.where(witness >= 0, stand_in[witness] if m else -1, -1)
    joins = (witness >= 0) & (payer >= 0)  # a point's payment for one cluster needn't be charged to another
    labels[joins] = payer[joins]
    used, fresh = np.unique(labels[labels >= 0], return_inverse=True)
    labels[labels >= 0] = fresh
    return PricedClusters(labels, center[used], alpha)


def three_step(
    table: Distances, r: int, left_out: int = 0, widest: float = np.inf
) -> tuple[Clusters | None, np.ndarray]:
    """(clusters of at least r, alpha): priced, shared, made disjoint. The clusters are None if a point has none.

    alpha / 2 is feasible for the problem without set-up costs if no point is left out and no radius is excluded.
    """
    none = np.zeros(table.n)
    if not left_out:
        priced = tight(table, r, none, float(r), 0, widest)
        if (priced.labels < 0).any():
            return None, priced.alpha
        return without_shared_points(table.distances, table.ranked, r, priced), priced.alpha
    best: Clusters | None = None
    least = np.inf
    high, low = float(table.distances.max()), float(table.distances[table.distances > 0].min(initial=np.inf))
    guesses = [high / STEP**i for i in range(int(np.log(high / low) / np.log(STEP)) + 2)] if high > 0 else []
    for guess in [*guesses, 0.0]:
        priced = tight(table, r, none, float(r), left_out, min(guess, widest))
        if int((priced.labels < 0).sum()) > left_out:
            break  # no smaller radius works either
        found = without_shared_points(table.distances, table.ranked, r, priced)
        if priced_cost(found) < least:
            best, least = found, priced_cost(found)
    return best, none


def priced_cost(found: Clusters) -> float:
    """The sum of size times radius."""
    size = np.bincount(found.labels[found.labels >= 0], minlength=found.center.size)
    return float((size * radii(found)).sum())


def _open_and_leftover(
    distances: np.ndarray, ranked: np.ndarray, r: int, priced: PricedClusters
) -> tuple[dict[int, np.ndarray], np.ndarray, dict[int, list[int]], np.ndarray]:
    """Step 2: the open clusters with their points, and the leftover clusters.

    Returns the points of each open cluster, the leftover cluster of every other point (int64[n], -1 none), the leftover
    clusters that overlap each open one, and every cluster's radius (float64[m]).
    """
    n, m = len(distances), priced.center.size
    shared = []
    radius = np.zeros(m)
    for c, v in enumerate(priced.center):
        own = np.flatnonzero(priced.labels == c)
        shared.append(np.union1d(own, ranked[v, :r]))
        radius[c] = distances[v, shared[c]].max()
    owner = np.full(n, -1)
    opened: dict[int, np.ndarray] = {}
    leftover = []
    for c in np.argsort(radius, kind="stable"):
        free = shared[c][owner[shared[c]] < 0]
        if free.size >= r:
            owner[free] = c
            opened[int(c)] = free
        else:
            leftover.append(int(c))
    temporary = np.full(n, -1)
    for c in leftover:
        temporary[shared[c][(owner[shared[c]] < 0) & (temporary[shared[c]] < 0)]] = c
    trees: dict[int, list[int]] = {}
    for c in leftover:
        if (temporary == c).any():
            overlapping = owner[shared[c]]
            overlapping = overlapping[overlapping >= 0]
            trees.setdefault(int(overlapping[np.argmin(radius[overlapping])]), []).append(c)
    return opened, temporary, trees, radius


def without_shared_points(distances: np.ndarray, ranked: np.ndarray, r: int, priced: PricedClusters) -> Clusters:
    """Steps 2 and 3 of section 3.1: every center also takes its r nearest points, then each point chooses one cluster.

    Differences: a group is complete if its weight reaches r (the paper has: exceeds); clusters with fewer than r
    unassigned points are skipped instead of ending the step; leftover clusters without points are removed. A leftover
    cluster may share points with wider open clusters. It is merged with the narrowest, which isn't wider than itself
    (docs/gathering.md, Lemma 4, requires this). The center of a group is that of its open cluster, or that of its
    widest leftover.
    """
    n = len(distances)
    opened, temporary, trees, radius = _open_and_leftover(distances, ranked, r, priced)
    out = np.full(n, -1)
    centers: list[int] = []

    def put(points: np.ndarray, *middles: int) -> None:
        out[points] = len(centers)
        centers.append(min(middles, key=lambda v: float(distances[v, points].max())))

    # Leftovers of an open cluster are merged until they reach r. The rest joins the open cluster's own points or, if
    # both together have 2 r points, gets the missing points from them.
    for o, members in opened.items():
        group: list[int] = []
        weight, middle = 0, int(priced.center[o])
        for c in trees.get(o, []):
            group.append(c)
            weight += int((temporary == c).sum())
            if weight >= r:
                widest = int(priced.center[max(group, key=lambda k: radius[k])])
                put(np.flatnonzero(np.isin(temporary, group)), middle, widest)
                group, weight = [], 0
        if not group:
            put(members, middle)
            continue
        rest = np.flatnonzero(np.isin(temporary, group))
        widest = int(priced.center[max(group, key=lambda k: radius[k])])
        if weight + members.size >= 2 * r:
            order = members[np.argsort(-distances[middle, members], kind="stable")]
            put(np.concatenate([rest, order[: r - weight]]), middle, widest)
            put(order[r - weight :], middle)
        else:
            put(np.concatenate([rest, members]), middle, widest)
    center = np.array(centers, np.int64)
    away = np.zeros(n)
    kept = np.flatnonzero(out >= 0)
    away[kept] = distances[center[out[kept]], kept]
    return Clusters(out, center, away)
