"""Gathering with a smaller radius: remote points first, wherever somebody is too far from a center.

``local`` starts from ``disjoint`` and mends it: for a target, all clusters near the points beyond it are dissolved and
cut anew, those points served first, then others that few centers can serve, then disjoint balls.  The target falls
towards the lower bound while that works; never wider than ``disjoint``.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.gathering import clusters as kernels
from shoal.kernels.uncompiled import quick
from shoal.problems.gathering.local import Clusters, Lists, disjoint, finish, quantile
from shoal.problems.gathering.space import Space
from shoal.watching import done

REMOTE = 3.0  # points with tau above a third of the target are served first; the others cannot miss it by much
NARROW = 1.01  # targets nearer than this are not told apart
LONGEST = 16  # lists are lengthened up to this many times r
MOST = 1 << 26  # and no more of them when this many entries are held
AROUND = (2, 2, 3, 3, 4, 4, 5, 6, 8, 8)  # clusters with a center within so many targets are dissolved, round by round
FEW = 10_000  # a target leaves one point in so many beyond it, or this few: 16
LEAST = 1_000_000  # n / 2 and this many entries of lists are made anew, r for a point, before the target stands
TRIES, SERVED = 8, 25_000  # with more remote points than these, only those near points too far off are served first


def local(
    space: Space, r: int, left_out: int, lists: Lists,
    preset: tuple[np.ndarray, list[int]] | None = None, anywhere: bool = False,
) -> Clusters:  # fmt: skip
    """``disjoint``, mended for smaller and smaller targets.

    preset    clusters opened before all others: (owner int64[n], their centers); one target then, the lower bound
    anywhere  never wider than either form of ``disjoint``

    O(n r log n) time in low dimension, O(n r) space.
    """
    floor = quantile(lists.tau, left_out)
    if preset is not None and r > 1:
        return _Remote(space, r, left_out, lists, floor, np.inf)(floor, preset)
    best = disjoint(space, r, left_out, lists)
    if anywhere:
        best = min(disjoint(space, r, left_out, lists, anywhere=True), best, key=lambda c: c.radius)
    if r == 1 or best.radius <= floor:
        return best
    done(0.6)  # lists before it, and the rest, as they share the time of many points
    budget = (space.n // 2 + LEAST) // r
    remote = int(((lists.tau > floor / REMOTE) & (lists.tau <= best.radius)).sum())
    if left_out or remote <= SERVED:
        best = _everywhere(best, _Remote(space, r, left_out, lists, floor, best.radius), floor)
    done(0.8)
    return _narrowed(space, best, r, floor, budget)


def _everywhere(best: Clusters, setup: _Remote, floor: float) -> Clusters:
    """All points clustered for a target that starts at the lower bound and is bisected when it fails."""
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
    """Mended for smaller and smaller targets, while the budget lasts."""
    low, few, tried = floor, max(space.n // FEW, 16), floor
    while best.radius > floor and best.radius > low * NARROW:
        tried = max(tried, quantile(best.away, min(few, space.n - 1)))
        if tried >= best.radius:  # many are as far as the farthest
            tried = float(np.sqrt(low * best.radius))
        found, spent = _mended(space, best, r, tried, budget)
        budget -= spent
        if found is None:
            low = tried
        elif found.radius < best.radius:
            best = found
        tried = float(np.sqrt(low * best.radius))
    return best


def _mended(space: Space, found: Clusters, r: int, target: float, budget: int) -> tuple[Clusters | None, int]:
    """(clusters within the target, points clustered anew); none when a round would cost more than the budget."""
    spent = 0
    for around in AROUND:
        bad = np.flatnonzero(found.away > target)
        if not bad.size:
            return found, spent
        rows, dissolved = _near(space, found, bad, around * target)
        if spent + rows.size > budget:
            break
        spent += rows.size
        found = _anew(space, found, r, target, bad, rows, dissolved)
    return (None if (found.away > target).any() else found), spent


def _near(space: Space, found: Clusters, bad: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """(rows rising, bool[m]): the clusters with a center within reach of bad points, and who is left out there."""
    out = np.flatnonzero(found.labels < 0)
    _, met, _ = space.within(bad, reach, among=np.concatenate([found.center, out]))
    near = np.zeros(space.n, np.bool_)
    near[met] = True
    dissolved = near[found.center]
    dissolved[found.labels[bad]] = True
    return np.flatnonzero(np.where(found.labels < 0, near, dissolved[found.labels])), dissolved


def _anew(
    space: Space, found: Clusters, r: int, target: float, bad: np.ndarray, rows: np.ndarray, dissolved: np.ndarray
) -> Clusters:
    """The points ``rows`` of dissolved clusters clustered anew, the bad ones first; as many left out as before."""
    part, left_out = space.part(rows), int((found.labels[rows] < 0).sum())
    lists = Lists.of(part, r)
    if lists.rho.min() > target:  # no cluster of them is that small
        return found
    new = _Remote(part, r, left_out, lists, target, np.inf)(target, first=np.isin(rows, bad, assume_unique=True))
    stay = np.flatnonzero(~dissolved)
    number = np.full(dissolved.size + 1, -1)
    number[stay] = np.arange(stay.size)
    labels, away = number[found.labels], found.away.copy()
    labels[rows] = np.where(new.labels < 0, -1, stay.size + new.labels)
    away[rows] = np.where(new.labels < 0, 0.0, new.away)
    return Clusters(labels, np.concatenate([found.center[stay], rows[new.center]]), away)


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

    def __call__(
        self, reach: float, preset: tuple[np.ndarray, list[int]] | None = None, first: np.ndarray | None = None
    ) -> Clusters:
        """Clusters for a target; ``first`` bool[n] are served before all others."""
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
                kernels.Near(lists.near, lists.far, lists.rho, lists.tau),
                kernels.Longer(self.line, self.start, self.stop, self.wide, self.far),
                order, r, reach, owner, center, wanted, opened,
            )  # fmt: skip
            short = np.flatnonzero(wanted & (self.stop - self.start < min(LONGEST * r, space.n)))
            if not (again and short.size) or self.used > MOST:
                break
            self._lengthen(short)
        return finish(space, lists.near, lists.rho, reach, owner, center, opened, self.left_out, r)
