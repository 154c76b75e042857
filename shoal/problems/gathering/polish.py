"""A smaller largest radius from clusters at hand: better centers, points moved, others left out; nothing is proved."""

from __future__ import annotations

import numpy as np

from shoal.kernels.gathering import clusters as kernels
from shoal.problems.gathering.diverse import recentered
from shoal.problems.gathering.local import Clusters
from shoal.problems.gathering.space import Space


def rejoin(space: Space, found: Clusters, reach: float | None = None) -> Clusters:
    """Left-out points come back where that widens no cluster beyond the largest radius, or beyond ``reach``."""
    out = np.flatnonzero(found.labels < 0)
    if not out.size:
        return found
    nearest, far = (x[:, 0] for x in space.nearest(1, rows=out, among=np.unique(found.center)))
    back = np.full(space.n, -1)
    back[found.center] = np.arange(found.center.size)
    near = far <= (found.radius if reach is None else reach)
    labels, away = found.labels.copy(), found.away.copy()
    labels[out[near]], away[out[near]] = back[nearest[near]], far[near]
    return Clusters(labels, found.center, away, found.note)


def nearer(space: Space, found: Clusters, r: int, rows: np.ndarray) -> Clusters:
    """Points move to their nearest center while the cluster they leave keeps r, the farthest first."""
    nearest, far = (x[:, 0] for x in space.nearest(1, rows=rows, among=np.unique(found.center)))
    back = np.full(space.n, -1)
    back[found.center] = np.arange(found.center.size)
    to, gain = found.labels.copy(), np.zeros(space.n)
    to[rows], gain[rows] = back[nearest], found.away[rows] - far
    movers = rows[gain[rows] > 0]
    movers = movers[np.argsort(-found.away[movers], kind="stable")]
    labels, away = found.labels.copy(), found.away.copy()
    size = np.bincount(labels[labels >= 0], minlength=found.center.size)
    kernels.prefer_nearest(movers, to, labels, size, r)
    moved = movers[labels[movers] != found.labels[movers]]
    away[moved] -= gain[moved]
    return Clusters(labels, found.center, away, found.note)


def better(space: Space, found: Clusters, r: int, passes: int = 20) -> Clusters:
    """Centers at their best members, points out of the widest clusters, again while the radius falls."""
    best = recentered(space, found.labels, found.center)
    for _ in range(passes):
        if best.center.size < 2 or best.radius == 0:
            break
        kept = np.flatnonzero(best.labels >= 0)
        moved = nearer(space, best, r, kept[best.away[kept] >= 0.9 * best.radius])
        trial = recentered(space, moved.labels, best.center)
        if trial.radius >= best.radius:
            break
        best = trial
    return best


def trimmed(space: Space, found: Clusters, r: int, left_out: int, passes: int = 20) -> Clusters:
    """Everyone comes back and the farthest go, as many as may be, again while the radius falls."""
    best = found
    for _ in range(passes if left_out else 0):
        back = rejoin(space, best, np.inf)
        labels, size = back.labels.copy(), np.bincount(back.labels, minlength=back.center.size)
        for i in np.argsort(-back.away, kind="stable")[:left_out]:
            if size[labels[i]] == r:  # whoever is farthest now has to stay
                break
            size[labels[i]] -= 1
            labels[i] = -1
        trial = better(space, recentered(space, labels, back.center), r)
        if trial.radius >= best.radius:
            break
        best = trial
    return rejoin(space, best)
