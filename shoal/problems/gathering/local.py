"""Gathering from nearby points: many small clusters around disjoint nearest-r balls, within a proved factor.

Not in Aggarwal et al. 2006.  With rho(v) the distance of the r-th nearest point of v (v itself counts) and
tau(p) = min over v of max(d(p, v), rho(v)), no clustering with centers at points has a radius under the largest tau.

``disjoint`` opens the nearest-r balls that are free, by rising rho; everyone else joins the nearest center.  At most
3 tau(p) from p, or, when the balls of all points are looked at, 2 rho(p): docs/gathering.md, Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.kernels.gathering import clusters as kernels
from shoal.kernels.uncompiled import quick
from shoal.problems.gathering.space import Space


@dataclass(frozen=True, eq=False)
class Lists:
    """What the nearest r points of every point tell.

    near  int64[n, r], far float64[n, r]: nearest first, the point itself included
    rho   float64[n]  distance of the r-th nearest
    tau   float64[n]  min over v of max(d(p, v), rho(v)); v beyond rho(p) never beats p itself, so the lists suffice
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
    """labels int64[n], -1 where left out; center int64[m], the point at each cluster's center; away float64[n]."""

    labels: np.ndarray
    center: np.ndarray
    away: np.ndarray
    note: str = ""

    def among(self, rows: np.ndarray, n: int) -> Clusters:
        """Clusters of the points ``rows`` as clusters of all n, the others left out."""
        labels, away = np.full(n, -1), np.zeros(n)
        labels[rows], away[rows] = self.labels, self.away
        return Clusters(labels, rows[self.center], away, self.note)

    @property
    def radius(self) -> float:
        """The largest distance of a clustered point from its center."""
        kept = self.labels >= 0
        return float(self.away[kept].max(initial=0.0))


def quantile(tau: np.ndarray, left_out: int) -> float:
    """The value that all but left_out of the points do not exceed."""
    return float(np.partition(tau, tau.size - left_out - 1)[tau.size - left_out - 1])


def disjoint(
    space: Space, r: int, left_out: int, lists: Lists, core: np.ndarray | None = None, anywhere: bool = False
) -> Clusters:
    """Disjoint nearest-r balls, then everyone to the nearest center.  Factor 3, or 4 with centers anywhere.

    core      int64[n, s] instead of the nearest r: what a cluster must start with, and keeps
    anywhere  wider balls are opened too, as far as the factor 4 against centers anywhere needs and allows
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
    """Cores at the free candidates of rho <= reach, the rest to the nearest center, the farthest left out."""
    candidates = np.flatnonzero(rho <= reach)
    candidates = candidates[np.argsort(rho[candidates], kind="stable")]
    opened = quick(kernels.take_disjoint, core.size)(candidates, core, owner, center, opened)
    return join(space, owner, center[:opened].copy(), left_out, spare)


def join(space: Space, owner: np.ndarray, center: np.ndarray, left_out: int, spare: int) -> Clusters:
    """Free points to the nearest center, but up to left_out of the farthest; members change to nearer centers.

    owner  int64[n]  cluster of the points that hold a cluster at r, -1 for the rest
    spare  a member may leave a cluster of more points than this
    Nobody is left out who is as near as the farthest one kept.
    """
    every = np.arange(space.n)
    core = owner >= 0
    nearest, far = (x[:, 0] for x in space.nearest(1, among=center))
    back = np.full(space.n, -1)
    back[center] = np.arange(center.size)
    nearest = back[nearest]
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
