"""The r-gather of Aggarwal et al. 2006, section 2.2 (factor 2, Theorem 2.2), and with at most k clusters (section 2.4).

A threshold D stands for twice the radius.  A test marks the points within D of a still unmarked one, which becomes a
center, and then asks a flow whether every center can have r points within D.  Departures from the paper: its
Condition (2) asks for r *unmarked* points around a center, which contradicts "until all points are marked" and the
proof, so that is dropped; the flow runs over centers only, starting from the nearest center of every point; the first
threshold tried is the largest rho, below which no answer exists.

The test is not monotone in D.  It succeeds at every D from the largest cluster diameter d* of a best answer, so a
failed test proves d* > D and bisection keeps "the lower end failed, the upper end passed": radius at most the upper
end, and every answer, centers anywhere, has a radius above half the lower end.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.gathering import clusters as kernels
from shoal.problems.gathering.local import Clusters
from shoal.problems.gathering.space import Space

SMALL = 600  # up to this many points the thresholds are the distances themselves, so the factor is exactly 2
FINE = 1e-6


def threshold(space: Space, r: int, rho: np.ndarray, max_clusters: int | None = None) -> tuple[Clusters, float]:
    """(clusters of radius at most D, a bound below which no radius is, centers anywhere).  Factor 2.

    rho  float64[n]  distance of the r-th nearest point
    O((n + centers) log n + flow) per test in low dimension; one test where the first threshold passes, as it does on
    every real set tried.
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
    """Clusters of radius at most reach, or None, which proves that every answer has a cluster wider than reach."""
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
    nearest, far = (x[:, 0] for x in space.nearest(1, among=center))
    back = np.full(space.n, -1)
    back[center] = np.arange(center.size)
    owner = back[nearest]
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
    """A distance that some two of any k + 1 clusters' worth of points keep: with k clusters one is at least that wide.

    Farthest-first traversal (Gonzalez 1985): k + 1 points pairwise this far apart, two of which share a cluster.
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
