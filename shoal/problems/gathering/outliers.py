"""Leaving out a share of the points: (r, epsilon)-gather of section 2.3 and (k, r, epsilon)-center of section 2.4.

``peeling`` is the paper's algorithm, factor 4 with centers anywhere (Theorem 2.3).  ``rounds`` is the factor 6 (5 with
centers at points) that the paper announces for (k, r, epsilon)-center and defers; the proof stands in
docs/gathering.md, Theorem 3.  The factor 3 for centers at points is ``local.disjoint``.
"""

from __future__ import annotations

import numpy as np

from shoal.problems.gathering.local import Clusters, join
from shoal.problems.gathering.space import Space

FINE = 1e-6  # the width at which bisection ends
COARSE = 1e-4
TRIES = 60


def peeling(space: Space, r: int, left_out: int, rho: np.ndarray) -> tuple[Clusters, float]:
    """(clusters of radius at most 2 D, D / 2 rounded down): D the least at which enough points support each other.

    The core of D is what remains when points with fewer than r - 1 others of the core within D are removed again and
    again.  It grows with D, so bisection finds the least D whose core holds all but left_out points.
    rho  float64[n]  distance of the r-th nearest point; a core member has rho at most D
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
    """bool[n], or None when more than left_out points fall away.  Work only around the points that fall away."""
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
    """Living points within reach of each row, counted up to r at least."""
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
    """All free core points within reach of one that sees r of them, again and again; the rest join a neighbor's."""
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
    if rest.size:  # a point left over has a core point within reach that is taken
        owner[rest] = owner[space.nearest(1, rows=rest, among=taken)[0][:, 0]]
    away = np.zeros(space.n)
    kept = np.flatnonzero(owner >= 0)
    away[kept] = space.between(kept, center[owner[kept]])
    return Clusters(owner, center, away)


def rounds(space: Space, r: int, left_out: int, most: int, low: float, at_points: bool) -> tuple[Clusters, float]:
    """(clusters, bound): at most ``most`` clusters, each of r, left_out points left out at most.  Factor 5 or 6.

    low        a radius below which no answer is
    at_points  the bound speaks of centers at points (cores of radius R, factor 5), else anywhere (2 R, factor 6)
    A failed guess R proves that every answer has a larger radius.  O(n^2) per round in the worst case.
    """
    core = 1 if at_points else 2
    far = float(space.between(np.arange(space.n), np.zeros(space.n, np.int64)).max(initial=0.0))
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
    """Up to ``most`` rounds: the ball of core * R that holds most free points, then the ball of (core + 2) R is out."""
    free = np.ones(space.n, np.bool_)
    owner = np.full(space.n, -1)
    centers: list[int] = []
    count = _counts(space, core * radius)  # never too low; falls as points are taken
    ended = False
    for _ in range(most):
        v = _densest(space, core * radius, count, free, r)
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


def _counts(space: Space, reach: float) -> np.ndarray:
    """int64[n]: points within reach of each point, or a little more."""
    if space.is_matrix:
        return (space.coded.values <= reach).sum(axis=1)
    size = np.diff(space.start)
    tree = space.places_tree()
    if (size == 1).all():
        near = tree.query_ball_point(space.reach, reach * (1 + 1e-9), p=space.p, return_length=True, workers=-1)
        return np.asarray(near, np.int64)[space.place]
    out = np.zeros(size.size, np.int64)
    for a in range(0, size.size, 4096):
        lists = tree.query_ball_point(space.reach[a : a + 4096], reach * (1 + 1e-9), p=space.p, workers=-1)
        out[a : a + 4096] = [size[x].sum() for x in lists]
    return out[space.place]


def _densest(space: Space, reach: float, count: np.ndarray, free: np.ndarray, r: int) -> int:
    """The point with most free points within reach, -1 when that is under r; lowers the counts it looks at."""
    while True:
        v = int(count.argmax())
        if count[v] < r:
            return -1
        _, near, _ = space.within(np.array([v]), reach)
        true = int(free[near].sum())
        same = space.copies[space.start[space.place[v]] : space.start[space.place[v] + 1]]
        if true == count[v]:
            return v if true >= r else -1
        count[same] = true
