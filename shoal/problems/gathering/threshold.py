"""Gathering with proved factors: thresholds and flow, points left out, and disjoint nearest-r balls.

The r-gather of Aggarwal et al. 2006, section 2.2 (factor 2, Theorem 2.2), and with at most k clusters (section 2.4).

A threshold D means twice the radius. A test repeatedly makes an unmarked point a center and marks the points within D
of it, and then decides by a flow whether every center can have r points within D. Differences from the paper: its
Condition (2) requires r *unmarked* points around a center, which contradicts "until all points are marked" and the
proof, so it is dropped; the flow is over centers only, and starts from the nearest center of every point; the first
threshold tried is the largest rho, below which no answer exists.

The test isn't monotone in D. It succeeds at every D from the largest cluster diameter d* of an optimal answer on. So a
failed test proves d* > D, and bisection keeps the invariant "the lower end failed, the upper end passed": the radius is
at most the upper end, and every answer, with centers anywhere, has a radius above half the lower end.

If a share of the points may be left out, these are (r, epsilon)-gather of section 2.3 and (k, r, epsilon)-center of
section 2.4. ``peeling`` is the paper's algorithm, factor 4 with centers anywhere (Theorem 2.3). ``rounds`` has the
factor 6 (5 with centers at points) that the paper announces for (k, r, epsilon)-center without proof;
docs/gathering.md, Theorem 3, has the proof. ``disjoint`` has factor 3 for centers at points.

``disjoint`` makes many small clusters around disjoint nearest-r balls. It is not in Aggarwal et al. 2006. Let rho(v) be
the distance of the r-th nearest point of v (v itself counts), and tau(p) = min over v of max(d(p, v), rho(v)). Then no
clustering with centers at points has a radius below the largest tau. ``disjoint`` opens the nearest-r balls that are
free, by increasing rho; every other point joins the nearest center. This center is at most 3 tau(p) from p, or, if the
balls of all points are examined, 2 rho(p): docs/gathering.md, Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.kernels import quick
from shoal.kernels.gathering import clusters as kernels
from shoal.problems.gathering.space import Space


@dataclass(frozen=True, eq=False)
class Lists:
    """The nearest r points of every point.

    near  int64[n, r], far float64[n, r]: nearest first, including the point itself
    rho   float64[n]: distance of the r-th nearest
    tau   float64[n]: min over v of max(d(p, v), rho(v)). v beyond rho(p) is never better than p itself, so the lists
          suffice
    """

    near: np.ndarray
    far: np.ndarray
    rho: np.ndarray
    tau: np.ndarray

    @classmethod
    def of(cls, space: Space, r: int) -> Lists:
        near, far = space.nearest(r, tell=True)
        rho, tau = far[:, -1].copy(), np.empty(space.n)
        for a in range(0, space.n, 1 << 18):
            part = slice(a, a + (1 << 18))
            tau[part] = np.maximum(far[part], rho[near[part]]).min(axis=1)
        return cls(near, far, rho, tau)


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of points.

    labels  int64[n]: cluster of each point, -1 if left out
    center  int64[m]: the point at each cluster's center
    away    float64[n]: distance of each point from its center
    """

    labels: np.ndarray
    center: np.ndarray
    away: np.ndarray
    note: str = ""

    @classmethod
    def around(cls, space: Space, labels: np.ndarray, center: np.ndarray) -> Clusters:
        """Clusters with each point's distance from its center in the metric."""
        away, kept = np.zeros(space.n), np.flatnonzero(labels >= 0)
        away[kept] = space.between(kept, center[labels[kept]])
        return cls(labels, center, away)

    def among(self, rows: np.ndarray, n: int) -> Clusters:
        """Clusters of the points ``rows`` as clusters of all n, with the others left out."""
        labels, away = np.full(n, -1), np.zeros(n)
        labels[rows], away[rows] = self.labels, self.away
        return Clusters(labels, rows[self.center], away, self.note)

    @property
    def radius(self) -> float:
        """The largest distance of a clustered point from its center."""
        kept = self.labels >= 0
        return float(self.away[kept].max(initial=0.0))


def quantile(tau: np.ndarray, left_out: int) -> float:
    """The least value that at most left_out points exceed."""
    return float(np.partition(tau, tau.size - left_out - 1)[tau.size - left_out - 1])


def disjoint(
    space: Space, r: int, left_out: int, lists: Lists, core: np.ndarray | None = None, anywhere: bool = False
) -> Clusters:
    """Disjoint nearest-r balls; other points join the nearest center. Factor 3, or 4 with centers anywhere.

    core      int64[n, s] instead of the nearest r: the points with which a cluster starts, and which it keeps
    anywhere  also open wider balls, as the factor 4 for centers anywhere requires
    O(n log n) expected time in low dimension, O(n r) space.
    """
    reach = quantile(lists.rho if anywhere else lists.tau, left_out)
    spare = r if core is None else space.n
    core = lists.near if core is None else core
    nobody = np.full(space.n, -1)
    return finish(space, core, lists.rho, reach, nobody, np.empty(space.n, np.int64), 0, left_out, spare)


def finish(
    space: Space, core: np.ndarray, rho: np.ndarray, reach: float,
    owner: np.ndarray, center: np.ndarray, opened: int, left_out: int, spare: int,
) -> Clusters:  # fmt: skip
    """Cores at the free candidates with rho <= reach, the rest to the nearest center, the farthest left out."""
    candidates = np.flatnonzero(rho <= reach)
    candidates = candidates[np.argsort(rho[candidates], kind="stable")]
    opened = quick(kernels.take_disjoint, core.size)(candidates, core, owner, center, opened)
    return join(space, owner, center[:opened].copy(), left_out, spare)


def join(space: Space, owner: np.ndarray, center: np.ndarray, left_out: int, spare: int) -> Clusters:
    """Assign free points to the nearest center, except up to left_out of the farthest; members move to closer centers.

    owner  int64[n]: cluster of the points that keep a cluster at r, -1 for the rest
    spare  a member may leave a cluster of more points than this
    No point is left out that is as close as the farthest one kept.
    """
    every = np.arange(space.n)
    core = owner >= 0
    nearest, far = space.nearest_center(center)
    labels = np.where(core, owner, nearest)
    away = np.where(core, space.between(every, center[labels]), far)
    if left_out:
        rest = np.sort(far[~core])
        limit = rest[-left_out - 1] if rest.size > left_out else 0.0
        labels[~core & (far > max(limit, away[core].max(initial=0.0)))] = -1
    gain = np.where(labels >= 0, away - far, 0.0)
    movers = np.flatnonzero(gain > 0)
    movers = movers[np.argsort(-gain[movers], kind="stable")]
    before = labels.copy()
    quick(kernels.prefer_nearest, movers.size)(
        movers, nearest, labels, np.bincount(labels[labels >= 0], minlength=center.size), spare
    )
    return Clusters(labels, center, np.where(labels != before, far, away))


SMALL = 600  # up to this many points, the thresholds are the distances themselves, so the factor is exactly 2
FINE = 1e-6


def threshold(space: Space, r: int, rho: np.ndarray, max_clusters: int | None = None) -> tuple[Clusters, float]:
    """(clusters of radius at most D, a lower bound of the radius with centers anywhere). Factor 2.

    rho  float64[n]: distance of the r-th nearest point
    O((n + centers) log n + flow) per test in low dimension; only one test if the first threshold passes, which it did
    on every real data set tried.
    """
    low = float(rho.max(initial=0.0))
    if max_clusters is not None:
        low = max(low, _spread(space, max_clusters))
    found = _test(space, r, low, max_clusters)
    if found is not None:
        return found, low / 2
    if space.n <= SMALL:
        values = np.unique(space.matrix())
        a, b = int(np.searchsorted(values, low, side="right")) - 1, values.size - 1
        found = _test(space, r, values[b], max_clusters)
        while b - a > 1:  # values[a] failed, values[b] passed
            middle = (a + b) // 2
            trial = _test(space, r, values[middle], max_clusters)
            a, b, found = (middle, b, found) if trial is None else (a, middle, trial)
        assert found is not None
        return found, float(values[b]) / 2  # d* is a distance, and above values[a]
    high = low
    while found is None:
        low, high = high, max(high * 1.25, high + 1e-300)
        found = _test(space, r, high, max_clusters)
    while high > low * (1 + FINE):
        half = (low + high) / 2
        trial = _test(space, r, half, max_clusters)
        low, high, found = (half, high, found) if trial is None else (low, half, trial)
    return found, low / 2


def _test(space: Space, r: int, reach: float, most: int | None) -> Clusters | None:
    """Clusters of radius at most reach, or None, which proves that every answer has a cluster of larger diameter."""
    marked = np.zeros(space.n, np.bool_)
    centers: list[int] = []
    members: list[np.ndarray] = []
    for p in range(space.n):
        if marked[p]:
            continue
        if most is not None and len(centers) == most:
            return None
        _, near, _ = space.within(np.array([p]), reach)
        if near.size < r:
            return None
        marked[near] = True
        centers.append(p)
        members.append(near)
    center = np.array(centers, np.int64)
    owner, far = space.nearest_center(center)
    size = np.bincount(owner, minlength=center.size)
    before = owner.copy()
    start = np.concatenate([[0], np.cumsum([m.size for m in members])]).astype(np.int64)
    short, chains = kernels.fill_deficits(start, np.concatenate(members), owner, size, r)
    if short:
        return None
    moved = np.flatnonzero(owner != before)
    far[moved] = space.between(moved, center[owner[moved]])
    return Clusters(owner, center, far, note=f"{chains} chains")


def _spread(space: Space, k: int) -> float:
    """A lower bound of the largest diameter with k clusters.

    Farthest-first traversal (Gonzalez 1985) finds k + 1 points with pairwise distances of at least this; two of them
    share a cluster.
    """
    if k >= space.n:
        return 0.0
    every = np.arange(space.n)
    away = space.between(every, np.zeros(space.n, np.int64))
    for _ in range(k):
        p = int(away.argmax())
        apart = float(away[p])
        away = np.minimum(away, space.between(every, np.full(space.n, p)))
    return apart


COARSE = 1e-4
TRIES = 60
LOOK = 500  # points looked up in the fixed time that one count takes
RECOUNT = 30  # points looked up for each point, after which all free points are counted again


def peeling(space: Space, r: int, left_out: int, rho: np.ndarray) -> tuple[Clusters, float]:
    """(clusters of radius at most 2 D, D / 2 rounded down): D is the least value at which the core has enough points.

    The core of D remains after points with fewer than r - 1 other core points within D are removed repeatedly. It grows
    with D, so bisection finds the least D for which the core lacks at most left_out points.
    rho  float64[n]: distance of the r-th nearest point; a core member has rho at most D
    """
    ordered = np.sort(rho)
    low, high = float(ordered[space.n - left_out - 1]), float(ordered[-1])
    core = _core(space, r, low, left_out, rho)
    if core is None:
        core = np.ones(space.n, np.bool_)
        for _ in range(TRIES):
            if high <= low * (1 + FINE):
                break
            middle = (low + high) / 2
            trial = _core(space, r, middle, left_out, rho)
            if trial is None:
                low = middle
            else:
                high, core = middle, trial
    else:
        high = low
    return _grow(space, r, high, core), low / 2


def _core(space: Space, r: int, reach: float, left_out: int, rho: np.ndarray) -> np.ndarray | None:
    """bool[n], the core, or None if more than left_out points are removed.

    Only neighbors of removed points are examined.
    """
    alive = np.ones(space.n, np.bool_)
    fallen = np.flatnonzero(rho > reach)
    lost = 0
    while fallen.size:
        lost += fallen.size
        if lost > left_out:
            return None
        alive[fallen] = False
        _, near, _ = space.within(fallen, reach)
        ask = np.unique(near)
        ask = ask[alive[ask]]
        fallen = ask[_support(space, ask, reach, alive, r) < r]
    return alive


def _support(space: Space, rows: np.ndarray, reach: float, alive: np.ndarray, r: int) -> np.ndarray:
    """The number of remaining points within reach of each row, counted up to at least r."""
    count = np.zeros(rows.size, np.int64)
    todo, width = np.arange(rows.size), min(2 * r, space.n)
    while todo.size:
        near, far = space.nearest(width, rows=rows[todo])
        inside = (near >= 0) & (far <= reach)
        count[todo] = (inside & alive[near]).sum(axis=1)
        todo = todo[(count[todo] < r) & inside[:, -1] & (width < space.n)]
        width = min(2 * width, space.n)
    return count


def _grow(space: Space, r: int, reach: float, core: np.ndarray) -> Clusters:
    """Repeatedly take all free core points within reach of one that has r of them.

    The rest join a neighbor's cluster.
    """
    owner = np.full(space.n, -1)
    free = core.copy()
    centers: list[int] = []
    for v in np.flatnonzero(core):
        if not free[v]:
            continue
        _, near, _ = space.within(np.array([v]), reach)
        near = near[free[near]]
        if near.size >= r:
            owner[near] = len(centers)
            free[near] = False
            centers.append(int(v))
    center = np.array(centers, np.int64)
    rest = np.flatnonzero(free)
    taken = np.flatnonzero(owner >= 0)
    if rest.size:  # a remaining point has a core point within reach that is taken
        owner[rest] = owner[space.nearest(1, rows=rest, among=taken)[0][:, 0]]
    return Clusters.around(space, owner, center)


def rounds(
    space: Space, r: int, left_out: int, most: int, low: float, at_points: bool, known: float = np.inf
) -> tuple[Clusters, float]:
    """(clusters, bound): at most ``most`` clusters, each of r, with at most left_out points left out. Factor 5 or 6.

    low        a lower bound of the radius
    at_points  the bound is for centers at points (cores of radius R, factor 5), else anywhere (2 R, factor 6)
    known      the radius of some answer: its guess succeeds, so the bisection starts there
    A failed guess R proves that every answer has a larger radius. O(n^2) per round in the worst case.
    """
    core = 1 if at_points else 2
    far = float(space.between(np.arange(space.n), np.zeros(space.n, np.int64)).max(initial=0.0))
    high = min(2 * far, known * (1 + 1e-9))
    best = _guess(space, r, left_out, most, high, core)
    if best is None:  # the rounding of distances can make the radius of an answer too small
        high = 2 * far
        best = _guess(space, r, left_out, most, high, core)
    assert best is not None
    trial = _guess(space, r, left_out, most, low, core)
    if trial is not None:
        return trial, low
    floor = max(low, high * 1e-9)
    trial = _guess(space, r, left_out, most, floor, core) if floor > low else None
    if trial is not None:
        return trial, low
    low = floor
    for _ in range(TRIES):
        if high <= low * (1 + COARSE):
            break
        middle = float(np.sqrt(low * high))
        trial = _guess(space, r, left_out, most, middle, core)
        if trial is None:
            low = middle
        else:
            high, best = middle, trial
    return best, low


def _guess(space: Space, r: int, left_out: int, most: int, radius: float, core: int) -> Clusters | None:
    """Up to ``most`` rounds: take the ball of core * R with most free points, then remove the ball of (core + 2) R."""
    free = np.ones(space.n, np.bool_)
    owner = np.full(space.n, -1)
    centers: list[int] = []
    counts = _FreeCounts(space, core * radius)
    ended = False
    for _ in range(most):
        v = counts.densest(free, r)
        if v < 0:
            ended = True
            break
        _, near, far = space.within(np.array([v]), (core + 2) * radius)
        inner = near[(far <= core * radius) & free[near]]
        owner[inner] = len(centers)
        centers.append(v)
        free[near] = False
    if not centers:
        return None
    center = np.array(centers, np.int64)
    away = space.nearest(1, among=center)[1][:, 0]
    limit = (core + 4 if ended else core + 2) * radius
    if int((away <= limit).sum()) < space.n - left_out:
        return None
    return join(space, owner, center, left_out, r)


class _FreeCounts:
    """The free points within reach of each point: upper bounds, which are made exact where they are the largest.

    When points are taken, many bounds become too high. They are corrected one by one, as far as needed, and all at once
    when that costs less than what was looked at since the last time.
    """

    def __init__(self, space: Space, reach: float) -> None:
        self.space, self.reach, self.looked = space, reach, 0
        self.most = self._count(None)

    def _count(self, among: np.ndarray | None) -> np.ndarray:
        """int64[n]: points, or those of ``among``, within reach of each point, or slightly more."""
        if self.space.is_matrix:
            near = self.space.coded.values <= self.reach
            return near.sum(axis=1) if among is None else near[:, among].sum(axis=1)
        return self.space.count_within(self.reach * (1 + 1e-9), among)

    def densest(self, free: np.ndarray, r: int) -> int:
        """The first point with most free points within reach, -1 if there are fewer than r."""
        space = self.space
        while True:
            v = int(self.most.argmax())
            if self.most[v] < r:
                return -1
            _, near, _ = space.within(np.array([v]), self.reach)
            true = int(free[near].sum())
            if true == self.most[v]:
                return v if true >= r else -1
            self.looked += near.size + LOOK
            if self.looked > RECOUNT * space.n:
                self.most, self.looked = np.minimum(self.most, self._count(np.flatnonzero(free))), 0
            self.most[space.copies[space.start[space.place[v]] : space.start[space.place[v] + 1]]] = true
