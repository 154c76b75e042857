"""Gathering with a smaller largest radius: remote points are served first, clusters are improved, centers anywhere.

``local`` starts from ``disjoint`` and improves it. For a target radius, all clusters near the points beyond it are
dissolved and recut: those points are served first, then others that few centers can serve, then disjoint balls. The
target decreases towards the lower bound while this succeeds. The result is never wider than ``disjoint``.

``improve`` starts from given clusters: better centers, points moved, others left out. It has no guarantee.

Centers anywhere in Euclidean space are those of smallest enclosing balls, with a search on the widest ball. The bound
(not in the paper): a cluster that contains p lies in a disc with p and r - 1 other points, so no radius is below the
largest, over p, of the smallest such disc. In the plane, this disc is found by a sweep of its center. In other
dimensions, half of rho(p) replaces it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.kernels import quick
from shoal.kernels.gathering import cellular as balls
from shoal.kernels.gathering import clusters as kernels
from shoal.problems.gathering.diverse import recentered
from shoal.problems.gathering.space import SAFE, Space
from shoal.problems.gathering.threshold import Clusters, Lists, disjoint, finish, quantile
from shoal.watching import done

REMOTE = 3.0  # points with tau above a third of the target are served first, because only they can be far outside it
NARROW = 1.01  # targets closer than this are equal
LONGEST = 16  # lists are lengthened up to this many times r
MOST = 1 << 26  # and no longer if this many entries are held
AROUND = (2, 2, 3, 3, 4, 4, 5, 6, 8, 8)  # clusters with a center within this many targets are dissolved, round by round
FEW = 10_000  # a target may leave one point in this many beyond it, or 16
# budget: n / 2 and this many list entries may be computed again, r for a point, before the target is final
LEAST = 1_000_000
TRIES, SERVED = 8, 25_000  # if more remote points than this, only those near points too far off are served first


def local(
    space: Space, r: int, left_out: int, lists: Lists,
    preset: tuple[np.ndarray, list[int]] | None = None, anywhere: bool = False,
) -> Clusters:  # fmt: skip
    """``disjoint``, improved for smaller and smaller targets.

    preset    clusters opened before all others: (owner int64[n], their centers); then only one target, the lower bound
    anywhere  never wider than either form of ``disjoint``

    O(n r log n) time in low dimension, O(n r) space.
    """
    floor = quantile(lists.tau, left_out)
    if preset is not None and r > 1:
        return _RemoteLists(space, r, left_out, lists, floor, np.inf)(floor, preset)
    best = disjoint(space, r, left_out, lists)
    if anywhere:
        best = min(disjoint(space, r, left_out, lists, anywhere=True), best, key=lambda c: c.radius)
    if r == 1 or best.radius <= floor:
        return best
    done(0.6)  # shares of the time for many points: the lists before it, and the rest
    budget = (space.n // 2 + LEAST) // r
    remote = int(((lists.tau > floor / REMOTE) & (lists.tau <= best.radius)).sum())
    if left_out or remote <= SERVED:
        best = _all_reclustered(best, _RemoteLists(space, r, left_out, lists, floor, best.radius), floor)
    done(0.8)
    return _narrowed(space, best, r, floor, budget)


def _all_reclustered(best: Clusters, setup: _RemoteLists, floor: float) -> Clusters:
    """Cluster all points for a target that starts at the lower bound; if it fails, by bisection."""
    low, tried = floor, floor if not setup.left_out else float(np.sqrt(floor * best.radius))
    for _ in range(TRIES):
        found = setup(tried)
        if found.radius < best.radius:
            best = found
        if found.radius <= tried:
            if tried <= floor:
                break
            high = tried
        else:
            low, high = tried, best.radius
        high = min(best.radius, high)
        if high <= low * NARROW:
            break
        tried = float(np.sqrt(low * high))
    return best


def _narrowed(space: Space, best: Clusters, r: int, floor: float, budget: int) -> Clusters:
    """Improve for smaller and smaller targets, while the budget lasts."""
    low, few, tried = floor, max(space.n // FEW, 16), floor
    while best.radius > floor and best.radius > low * NARROW:
        tried = max(tried, quantile(best.away, min(few, space.n - 1)))
        if tried >= best.radius:  # many points are as far as the farthest
            tried = float(np.sqrt(low * best.radius))
        found, spent = _reclustered_near_far_points(space, best, r, tried, budget)
        budget -= spent
        if found is None:
            low = tried
        elif found.radius < best.radius:
            best = found
        tried = float(np.sqrt(low * best.radius))
    return best


def _reclustered_near_far_points(
    space: Space, found: Clusters, r: int, target: float, budget: int
) -> tuple[Clusters | None, int]:
    """(clusters within the target, number of points reclustered); None if a round would exceed the budget."""
    spent = 0
    for around in AROUND:
        bad = np.flatnonzero(found.away > target)
        if not bad.size:
            return found, spent
        rows, dissolved = _near(space, found, bad, around * target)
        if spent + rows.size > budget:
            break
        spent += rows.size
        found = _reclustered(space, found, r, target, bad, rows, dissolved)
    return (None if (found.away > target).any() else found), spent


def _near(space: Space, found: Clusters, bad: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """(rows ascending, bool[m]): the clusters with a center within reach of bad points, and points left out there."""
    out = np.flatnonzero(found.labels < 0)
    _, met, _ = space.within(bad, reach, among=np.concatenate([found.center, out]))
    near = np.zeros(space.n, np.bool_)
    near[met] = True
    dissolved = near[found.center]
    dissolved[found.labels[bad]] = True
    return np.flatnonzero(np.where(found.labels < 0, near, dissolved[found.labels])), dissolved


def _reclustered(
    space: Space, found: Clusters, r: int, target: float, bad: np.ndarray, rows: np.ndarray, dissolved: np.ndarray
) -> Clusters:
    """Recluster the points ``rows`` of dissolved clusters, the bad ones first; as many are left out as before."""
    part, left_out = space.part(rows), int((found.labels[rows] < 0).sum())
    lists = Lists.of(part, r)
    if lists.rho.min() > target:  # none of the possible clusters is that small
        return found
    new = _RemoteLists(part, r, left_out, lists, target, np.inf)(target, first=np.isin(rows, bad, assume_unique=True))
    stay = np.flatnonzero(~dissolved)
    number = np.full(dissolved.size + 1, -1)
    number[stay] = np.arange(stay.size)
    labels, away = number[found.labels], found.away.copy()
    labels[rows] = np.where(new.labels < 0, -1, stay.size + new.labels)
    away[rows] = np.where(new.labels < 0, 0.0, new.away)
    return Clusters(labels, np.concatenate([found.center[stay], rows[new.center]]), away)


class _RemoteLists:
    """Longer lists for remote points, kept between targets and lengthened if they end too early."""

    def __init__(self, space: Space, r: int, left_out: int, lists: Lists, floor: float, top: float) -> None:
        """Lists for targets from floor to top."""
        self.space, self.r, self.left_out, self.lists = space, r, left_out, lists
        wanted = np.zeros(space.n + 1, np.bool_)
        wanted[lists.near[(lists.tau > floor / REMOTE) & (lists.tau <= top)]] = True
        self.centers = np.flatnonzero(wanted[:-1] & (lists.rho <= top))
        self.line = np.full(space.n, -1)
        self.line[self.centers] = np.arange(self.centers.size)
        near, far = space.nearest(min(2 * r, space.n), rows=self.centers)
        self.start = np.arange(self.centers.size) * near.shape[1]
        self.stop = self.start + near.shape[1]
        self.wide, self.far, self.used = near.ravel(), far.ravel(), near.size

    def _lengthen(self, which: np.ndarray) -> None:
        """Lists of four times the length for some centers; they are stored after all others."""
        sizes = self.stop[which] - self.start[which]
        for width in np.unique(sizes):
            some = which[sizes == width]
            near, far = self.space.nearest(min(4 * int(width), self.space.n), rows=self.centers[some])
            self.start[some] = self.used + np.arange(some.size) * near.shape[1]
            self.stop[some] = self.start[some] + near.shape[1]
            end = self.used + near.size
            if end > self.wide.size:
                self.wide = np.concatenate([self.wide, np.empty(2 * end - self.wide.size, np.int64)])
                self.far = np.concatenate([self.far, np.empty(2 * end - self.far.size)])
            self.wide[self.used : end], self.far[self.used : end] = near.ravel(), far.ravel()
            self.used = end

    def __call__(
        self, reach: float, preset: tuple[np.ndarray, list[int]] | None = None, first: np.ndarray | None = None
    ) -> Clusters:
        """Clusters for a target; the points ``first``, bool[n], are served before all others."""
        space, r, lists = self.space, self.r, self.lists
        order = np.flatnonzero((lists.tau > reach / REMOTE) & (lists.tau <= reach))
        later = np.zeros(order.size) if first is None else ~first[order]
        order = order[np.lexsort((-lists.tau[order], later))]
        for again in (True, False):
            owner, center, opened = np.full(space.n, -1), np.empty(space.n, np.int64), 0
            if preset is not None:
                owner[:], opened = preset[0], len(preset[1])
                center[:opened] = preset[1]
            wanted = np.zeros(self.centers.size, np.bool_)
            opened = quick(kernels.open_remote, order.size * lists.near.size / space.n * LONGEST * r)(
                kernels.NearestPoints(lists.near, lists.far, lists.rho, lists.tau),
                kernels.Longer(self.line, self.start, self.stop, self.wide, self.far),
                order, r, reach, kernels.Opened(owner, center), wanted, opened,
            )  # fmt: skip
            short = np.flatnonzero(wanted & (self.stop - self.start < min(LONGEST * r, space.n)))
            if not (again and short.size) or self.used > MOST:
                break
            self._lengthen(short)
        return finish(space, lists.near, lists.rho, reach, owner, center, opened, self.left_out, r)


def rejoin(space: Space, found: Clusters, reach: float | None = None) -> Clusters:
    """Add left-out points to clusters if the radius stays at most the largest radius, or ``reach``."""
    out = np.flatnonzero(found.labels < 0)
    if not out.size:
        return found
    nearest, far = space.nearest_center(found.center, out, np.unique(found.center))
    near = far <= (found.radius if reach is None else reach)
    labels, away = found.labels.copy(), found.away.copy()
    labels[out[near]], away[out[near]] = nearest[near], far[near]
    return Clusters(labels, found.center, away, found.note)


def nearer(space: Space, found: Clusters, r: int, rows: np.ndarray) -> Clusters:
    """Move points to their nearest center while the cluster that they leave keeps r, the farthest first."""
    nearest, far = space.nearest_center(found.center, rows, np.unique(found.center))
    to, gain = found.labels.copy(), np.zeros(space.n)
    to[rows], gain[rows] = nearest, found.away[rows] - far
    movers = rows[gain[rows] > 0]
    movers = movers[np.argsort(-found.away[movers], kind="stable")]
    labels, away = found.labels.copy(), found.away.copy()
    size = np.bincount(labels[labels >= 0], minlength=found.center.size)
    kernels.prefer_nearest(movers, to, labels, size, r)
    moved = movers[labels[movers] != found.labels[movers]]
    away[moved] -= gain[moved]
    return Clusters(labels, found.center, away, found.note)


PASSES = 20  # most improvements in a row


def better(space: Space, found: Clusters, r: int) -> Clusters:
    """Move centers to their best members and points out of the widest clusters while the radius decreases."""
    best = recentered(space, found.labels, found.center)
    for _ in range(PASSES):
        if best.center.size < 2 or best.radius == 0:
            break
        kept = np.flatnonzero(best.labels >= 0)
        moved = nearer(space, best, r, kept[best.away[kept] >= 0.9 * best.radius])
        trial = recentered(space, moved.labels, best.center)
        if trial.radius >= best.radius:
            break
        best = trial
    return best


def trimmed(space: Space, found: Clusters, r: int, left_out: int) -> Clusters:
    """Add all points, then leave out the farthest, as many as allowed, and repeat while the radius decreases."""
    best = found
    for _ in range(PASSES if left_out else 0):
        back = rejoin(space, best, np.inf)
        labels, size = back.labels.copy(), np.bincount(back.labels, minlength=back.center.size)
        for i in np.argsort(-back.away, kind="stable")[:left_out]:
            if size[labels[i]] == r:  # the farthest point can't be left out
                break
            size[labels[i]] -= 1
            labels[i] = -1
        trial = better(space, recentered(space, labels, back.center), r)
        if trial.radius >= best.radius:
            break
        best = trial
    return rejoin(space, best)


STEPS = 400
MOVES = 2000  # moves of one or two points that make the widest ball smaller
CROWD = 1500  # a sweep over more points than this takes too long
DISCS = 400


@dataclass(frozen=True, eq=False)
class Disc:
    """A disc of nearly least radius that contains point p and r - 1 others."""

    p: int
    center: np.ndarray
    radius: float


def bound_anywhere(space: Space, r: int, left_out: int, lists: Lists) -> tuple[float, list[Disc]]:
    """(a lower bound of the radius with centers anywhere, discs of the most remote points).

    Any metric: half the largest rho after left_out are dropped. In the plane: the discs of the points with the largest
    tau, until tau is at most the bound.
    """
    least = quantile(lists.rho, left_out) / 2
    x = space.coordinates
    if x is None or x.shape[1] != 2 or r < 2:
        return least, []
    found: list[float] = []
    discs: list[Disc] = []
    order = np.argsort(-lists.tau, kind="stable")
    for p in order[: left_out + DISCS]:
        best = sorted(found)[-left_out - 1] if len(found) > left_out else 0.0
        if max(best, least) >= lists.tau[p] or len(discs) >= DISCS:
            break
        low, disc = _disc(space, x, int(p), r, float(lists.rho[p]), float(lists.tau[p]), max(best, least))
        found.append(low)
        if disc is not None:
            discs.append(disc)
    if len(found) > left_out:
        least = max(least, sorted(found)[-left_out - 1])
    return least, discs


def _disc(
    space: Space, x: np.ndarray, p: int, r: int, rho: float, tau: float, skip: float
) -> tuple[float, Disc | None]:
    """(a radius that is too small for a disc of p, the disc); no disc if one of radius ``skip`` exists."""
    at = np.empty(2)

    def holds(reach: float) -> bool | None:
        _, near, _ = space.within(np.array([p]), 2 * reach * (1 + 1e-9))
        if near.size > CROWD:
            return None
        near = np.concatenate([[p], near[near != p]])
        return bool(balls.disc_holds(x[near] - x[p], reach, r, at))

    low = rho / 2 * SAFE
    if skip > low:
        if holds(skip) is not False:
            return low, None
        low = skip
    high, answer = low, None
    while answer is not True:
        high = min(high * 1.05, tau) if high < tau else high * 1.05
        answer = holds(high)
        if answer is None:
            return low, None
        if not answer:
            low = high
    center = at.copy()
    for _ in range(40):
        if high <= low * (1 + 1e-10):
            break
        middle = (low + high) / 2
        if holds(middle):
            high, center = middle, at.copy()
        else:
            low = middle
    return low, Disc(p, center + x[p], high)


def recenter(x: np.ndarray, labels: np.ndarray, clusters: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centers float64[m, d], radii float64[m]): the smallest ball of every cluster, exact in the plane and on a line.

    In other dimensions within about 1/STEPS of the smallest, and never wider than around the cluster's point int64[m].
    """
    member = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[member], np.arange(clusters + 1))
    center, radius = np.zeros((clusters, x.shape[1])), np.zeros(clusters)
    balls.enclosing_balls(x, start.astype(np.int64), member, STEPS, center, radius)
    kept = np.flatnonzero(labels >= 0)
    around = np.zeros(clusters)
    np.maximum.at(around, labels[kept], np.sqrt(((x[kept] - x[point[labels[kept]]]) ** 2).sum(axis=1)))
    narrow = around < radius
    center[narrow], radius[narrow] = x[point[narrow]], around[narrow]
    return center, radius


def preset(space: Space, r: int, discs: list[Disc]) -> tuple[np.ndarray, list[int]]:
    """(owner int64[n], centers): clusters of the discs' points, the widest disc first, while r of them are free."""
    owner = np.full(space.n, -1)
    centers: list[int] = []
    x = space.coordinates
    assert x is not None
    for disc in sorted(discs, key=lambda d: -d.radius):
        if owner[disc.p] >= 0:
            continue
        near = space.within(np.array([disc.p]), 2 * disc.radius * (1 + 1e-8))[1]
        near = near[owner[near] < 0]
        away = np.sqrt(((x[near] - disc.center) ** 2).sum(axis=1))
        inside = near[np.argsort(away, kind="stable")][: int((away <= disc.radius * (1 + 1e-8)).sum())]
        if inside.size < r or disc.p not in inside:
            continue
        keep = inside[:r] if disc.p in inside[:r] else np.append(inside[: r - 1], disc.p)
        owner[keep] = len(centers)
        centers.append(int(keep[0]))
    return owner, centers


def polish(space: Space, found: Clusters, r: int, goal: float) -> tuple[Clusters, np.ndarray]:
    """(clusters, centers float64[m, d]) with the widest ball made smaller, by moves of one or two points.

    A point on the boundary of the widest ball moves to a nearby cluster whose ball stays smaller. If its own cluster
    would have fewer than r points, it takes a point of a nearby cluster in return. Ends if no move helps or the radius
    is at most goal.
    """
    x = space.coordinates
    assert x is not None
    labels = found.labels.copy()
    m = found.center.size
    center, radius = recenter(x, labels, m, found.center)
    balls = _Balls(x, labels, center, radius, _members(labels, m), np.empty(x.shape[1]))
    for _ in range(MOVES):
        w = int(radius.argmax())
        worst = float(radius[w])
        limit = worst * (1 - 1e-9)
        if worst <= goal or worst == 0.0:
            break
        rim = sorted(balls.members[w], key=lambda i: -float(((x[i] - center[w]) ** 2).sum()))[:4]
        if not any(_move(w, p, r, limit, balls) for p in rim):
            break
    away = np.zeros(space.n)
    kept = np.flatnonzero(labels >= 0)
    away[kept] = np.sqrt(((x[kept] - center[labels[kept]]) ** 2).sum(axis=1))
    return Clusters(labels, found.center, away), center


def _members(labels: np.ndarray, m: int) -> list[list[int]]:
    order = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[order], np.arange(m + 1))
    return [[int(i) for i in order[a:b]] for a, b in pairwise(start)]


class _Balls(NamedTuple):
    """Clusters and their smallest enclosing balls.

    x        float64[n, d];  labels: int64[n]
    center   float64[m, d];  radius: float64[m];  members: of every cluster
    scratch  float64[d]
    """

    x: np.ndarray
    labels: np.ndarray
    center: np.ndarray
    radius: np.ndarray
    members: list[list[int]]
    scratch: np.ndarray

    def around(self, points: list[int]) -> float:
        """The radius of the smallest ball around some points."""
        return float(balls.enclosing_ball(self.x, np.array(points, np.int64), STEPS, self.scratch))

    def put(self, c: int, points: list[int]) -> None:
        """Set the members of a cluster."""
        self.members[c] = points
        self.labels[points] = c
        self.radius[c] = balls.enclosing_ball(self.x, np.array(points, np.int64), STEPS, self.center[c])


def _move(w: int, p: int, r: int, limit: float, balls: _Balls) -> bool:
    """One exchange after which every changed ball is smaller than limit."""
    x, center, radius, members = balls.x, balls.center, balls.radius, balls.members
    ball, put = balls.around, balls.put
    gap = ((center - x[p]) ** 2).sum(axis=1)
    gap[w] = np.inf
    others = [int(b) for b in np.argsort(gap)[:8] if np.isfinite(gap[b])]
    rest = [i for i in members[w] if i != p]
    # Point p moves from w to b. If w would have fewer than r, it takes in return one of b's points, or a point of a
    # cluster near w.
    for b in others:
        grown = [*members[b], p]
        if ball(grown) >= limit:
            # b can take p if it gives its farthest point to w or to a third cluster
            for q in sorted(members[b], key=lambda i: -float(((x[i] - x[p]) ** 2).sum()))[:3]:
                swapped = [i for i in grown if i != q]
                if ball(swapped) < limit and ball([*rest, q]) < limit:
                    put(b, swapped)
                    put(w, [*rest, q])
                    return True
            continue
        if len(rest) >= r and (not rest or ball(rest) < radius[w] * (1 + 1e-12)):
            put(b, grown)
            put(w, rest)
            return True
        around = ((center - center[w]) ** 2).sum(axis=1)
        pool = [
            (float(((x[q] - center[w]) ** 2).sum()), q, int(c))
            for c in np.argsort(around)[1:9]
            for q in members[c]
            if len(members[c]) > r or c == b
        ]
        for _, q, c in sorted(pool)[:15]:
            if ball([*rest, q]) >= limit:
                continue
            if c == b:
                swapped = [i for i in grown if i != q]
                if ball(swapped) >= limit:
                    continue
                put(b, swapped)
            else:
                put(b, grown)
                put(c, [i for i in members[c] if i != q])
            put(w, [*rest, q])
            return True
    return False
