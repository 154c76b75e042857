"""Gathering from nearby points: many small clusters, the radius still within a proved factor.

Not in Aggarwal et al. 2006.  With rho(v) the distance of the r-th nearest point of v (v itself counts) and
tau(p) = min over v of max(d(p, v), rho(v)), no clustering with centers at points has a radius under the largest tau.

``disjoint``  open the nearest-r balls that are free, by rising rho; everyone else joins the nearest center.  At most
              3 tau(p) from p, or, when the balls of all points are looked at, 2 rho(p): docs/gathering.md, Theorem 1.
``local``     the same after the remote points have been served first within a target radius, which is searched
              between the bound and the radius of ``disjoint``; never worse than ``disjoint``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.kernels.gathering import clusters as kernels
from shoal.kernels.uncompiled import quick
from shoal.problems.gathering.space import Space

REMOTE = 3.0  # points with tau above a third of the target are served first; the others cannot miss it by much
NARROW = 1.01  # targets nearer than this are not told apart
LONGEST = 16  # lists are lengthened up to this many times r
MOST = 1 << 26  # and no more of them when this many entries are held


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
        near, far = space.nearest(r)
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


def local(
    space: Space,
    r: int,
    left_out: int,
    lists: Lists,
    tries: int = 8,
    preset: tuple[np.ndarray, list[int]] | None = None,
    anywhere: bool = False,
) -> Clusters:
    """Remote points first within a target radius, then ``disjoint``; the smallest target that works.

    preset    clusters opened before all others: (owner int64[n], their centers)
    anywhere  never wider than either form of ``disjoint``

    The target starts at the lower bound and is bisected up to the radius of ``disjoint`` when it fails.
    O(n r log n) time in low dimension, O(n r) space.
    """
    best = disjoint(space, r, left_out, lists)
    if anywhere:
        best = min(disjoint(space, r, left_out, lists, anywhere=True), best, key=lambda c: c.radius)
    floor = quantile(lists.tau, left_out)
    if r == 1 or (best.radius <= floor and preset is None):
        return best
    setup = _Remote(space, r, left_out, lists, floor, np.inf if preset is not None else best.radius)
    if preset is not None:
        return setup(floor, preset)
    low, tried = floor, floor if not left_out else float(np.sqrt(floor * best.radius))
    for _ in range(tries):
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


class _Remote:
    """The longer lists that serving remote points needs, kept between targets and lengthened where they end early."""

    def __init__(self, space: Space, r: int, left_out: int, lists: Lists, floor: float, top: float) -> None:
        """For targets from floor to top."""
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
        """Lists of four times the length for some centers; they stand behind all others."""
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

    def __call__(self, reach: float, preset: tuple[np.ndarray, list[int]] | None = None) -> Clusters:
        space, r, lists = self.space, self.r, self.lists
        order = np.flatnonzero((lists.tau > reach / REMOTE) & (lists.tau <= reach))
        order = order[np.argsort(-lists.tau[order], kind="stable")]
        for again in (True, False):
            owner, center, opened = np.full(space.n, -1), np.empty(space.n, np.int64), 0
            if preset is not None:
                owner[:], opened = preset[0], len(preset[1])
                center[:opened] = preset[1]
            wanted = np.zeros(self.centers.size, np.bool_)
            opened = quick(kernels.open_remote, order.size * lists.near.size / space.n * LONGEST * r)(
                order, r, reach, lists.near, lists.far, lists.rho, lists.tau,
                self.line, self.start, self.stop, self.wide, self.far, owner, center, wanted, opened,
            )  # fmt: skip
            short = np.flatnonzero(wanted & (self.stop - self.start < min(LONGEST * r, space.n)))
            if not (again and short.size) or self.used > MOST:
                break
            self._lengthen(short)
        return finish(space, lists.near, lists.rho, reach, owner, center, opened, self.left_out, r)
