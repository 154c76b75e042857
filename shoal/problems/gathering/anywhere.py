"""Centers anywhere in Euclidean space: smallest enclosing balls, a bound of its own, and a search on the widest ball.

The bound (not in the paper): a cluster that holds p lies in a disc with p and r - 1 other points, so no radius is
under the largest over p of the smallest such disc.  In the plane that disc is found by sweeping its center; in other
dimensions half of rho(p) stands in for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.kernels.gathering import balls as kernels
from shoal.problems.gathering.local import Clusters, Lists, quantile
from shoal.problems.gathering.space import SAFE, Space

STEPS = 400
MOVES = 2000  # of one or two points, by which the widest ball is made smaller
CROWD = 1500  # a sweep over more points than this is not worth its time
DISCS = 400


@dataclass(frozen=True, eq=False)
class Disc:
    """A disc of nearly least radius that holds point p and r - 1 others."""

    p: int
    center: np.ndarray
    radius: float


def bound_anywhere(space: Space, r: int, left_out: int, lists: Lists) -> tuple[float, list[Disc]]:
    """(no answer with centers anywhere has a smaller radius, discs of the most remote points).

    Any metric: half the largest rho but left_out.  In the plane: the discs of the points with the largest tau, until
    tau is no larger than the bound.
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
    """(radius that is too small for a disc of p, the disc); no disc when one of radius skip is there already."""
    at = np.empty(2)

    def holds(reach: float) -> bool | None:
        _, near, _ = space.within(np.array([p]), 2 * reach * (1 + 1e-9))
        if near.size > CROWD:
            return None
        near = np.concatenate([[p], near[near != p]])
        return bool(kernels.disc_holds(x[near] - x[p], reach, r, at))

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

    Elsewhere within about 1/STEPS of the smallest, and never wider than around the cluster's point int64[m].
    """
    member = np.argsort(labels, kind="stable")
    start = np.searchsorted(labels[member], np.arange(clusters + 1))
    center, radius = np.zeros((clusters, x.shape[1])), np.zeros(clusters)
    kernels.enclosing_balls(x, start.astype(np.int64), member, STEPS, center, radius)
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
    """(clusters, centers float64[m, d]) with the widest ball made smaller, one or two points at a time.

    A point on the rim of the widest ball goes to a cluster nearby whose ball stays smaller; when its own would fall
    under r it takes a point of a nearby cluster in return.  Until nothing helps or the radius is at most goal.
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

    x float64[n, d], labels int64[n];  center float64[m, d], radius float64[m], members of every cluster;  scratch
    float64[d]
    """

    x: np.ndarray
    labels: np.ndarray
    center: np.ndarray
    radius: np.ndarray
    members: list[list[int]]
    scratch: np.ndarray

    def around(self, points: list[int]) -> float:
        """The radius of the smallest ball around some points."""
        return float(kernels.enclosing_ball(self.x, np.array(points, np.int64), STEPS, self.scratch))

    def put(self, c: int, points: list[int]) -> None:
        """Make these the members of a cluster."""
        self.members[c] = points
        self.labels[points] = c
        self.radius[c] = kernels.enclosing_ball(self.x, np.array(points, np.int64), STEPS, self.center[c])


def _move(w: int, p: int, r: int, limit: float, balls: _Balls) -> bool:
    """One exchange that leaves every ball it touches under limit."""
    x, center, radius, members = balls.x, balls.center, balls.radius, balls.members
    ball, put = balls.around, balls.put
    gap = ((center - x[p]) ** 2).sum(axis=1)
    gap[w] = np.inf
    others = [int(b) for b in np.argsort(gap)[:8] if np.isfinite(gap[b])]
    rest = [i for i in members[w] if i != p]
    for b in others:
        grown = [*members[b], p]
        if ball(grown) >= limit:
            # b can take p when it hands over its own farthest point, to w or to a third
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
