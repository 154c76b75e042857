"""Cellular clustering by prices: with set-up costs (factor 3), and with at least r points each in three steps.

Section 3 of Aggarwal et al. 2006.  ``procedure_one`` is the paper's Procedure 1 (Theorem 3.3, factor 4, set-up costs of
centers).  ``tight`` departs from it: clusters that are paid freeze their points, nothing is shut down, at the end the
largest of those that share a paying point are kept, and whoever pays for one of these joins it.  Factor 3, and on real
points both sides come closer.

With at least r points the paper sets the set-up cost of a cluster to r times its radius and calls Procedure 1, whose
proof needs set-up costs that do not depend on the radius: an idle point widens its cluster, and the r points shared
later pay the wider radius.  The family in tests/families/gathering.py makes that cost r/3 times the optimum, so
Theorem 3.6 is not certified here.  Keeping the largest cluster first repairs it: factor 36, docs/gathering.md,
Theorem 6; with outliers Theorem 7, with a largest diameter Theorem 8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.errors import InputError
from shoal.kernels.gathering import duals as kernels
from shoal.kernels.uncompiled import quick
from shoal.problems.gathering.local import Clusters
from shoal.problems.gathering.prices import DENSE
from shoal.problems.gathering.space import Space

STEP = 1.5  # ratio of successive guesses of the largest radius, when points may be left out


@dataclass(frozen=True, eq=False)
class Priced:
    """Clusters before anybody is shared: labels int64[n] (-1: left out), center int64[m], the dual float64[n]."""

    labels: np.ndarray
    center: np.ndarray
    alpha: np.ndarray


class Distances:
    """All distances and rankings of up to 8,000 points."""

    def __init__(self, space: Space) -> None:
        if space.n > DENSE:
            raise InputError(
                f"this method holds all distances, for at most {DENSE} points, and there are {space.n}; "
                "use method='search'"
            )
        self.distances = np.ascontiguousarray(space.matrix())
        self.ranked = np.argsort(self.distances, axis=1, kind="stable").astype(np.int32)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.distances)


def procedure_one(table: Distances, r: int, fixed: np.ndarray, share: float = 0.0) -> Priced:
    """The paper's Procedure 1.  O(n^2) space."""
    labels, center, alpha = np.full(table.n, -1), np.zeros(table.n, np.int64), np.zeros(table.n)
    m = kernels.procedure_one(table.distances, table.ranked, r, fixed, share, labels, center, alpha)
    return Priced(labels, center[:m], alpha)


def tight(
    table: Distances, r: int, fixed: np.ndarray, share: float = 0.0, left_out: int = 0, widest: float = np.inf
) -> Priced:
    """Clusters frozen as they are paid, the largest of those that share a payer kept, payers first.  O(n^2) space.

    At most left_out points keep label -1; all do when no cluster within ``widest`` is left to open.
    """
    n = table.n
    witness, center, radius, alpha = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    m, last = kernels.tighten(
        table.distances, table.ranked, r, fixed, share, left_out, widest, witness, center, radius, alpha
    )
    center, radius = center[:m], radius[:m]
    chosen, stand_in, payer = np.zeros(m, np.bool_), np.zeros(m, np.int64), np.full(n, -1)
    quick(kernels.independent, m * n)(table.distances, center, radius, alpha, chosen, stand_in, payer)
    if left_out and m:  # the last cluster froze more than was needed: exactly left_out stay out
        spare = left_out - int((witness < 0).sum())
        members = np.flatnonzero(witness == m - 1)
        far = members[np.argsort(-table.distances[center[m - 1], members], kind="stable")]
        witness[far[: min(spare, last)]] = -1
    labels = np.where(witness >= 0, stand_in[witness] if m else -1, -1)
    joins = (witness >= 0) & (payer >= 0)  # what a point pays for one cluster need not be charged to another
    labels[joins] = payer[joins]
    used, fresh = np.unique(labels[labels >= 0], return_inverse=True)
    labels[labels >= 0] = fresh
    return Priced(labels, center[used], alpha)


def three_step(
    table: Distances, r: int, left_out: int = 0, widest: float = np.inf
) -> tuple[Clusters | None, np.ndarray]:
    """(clusters of at least r, alpha): priced, shared, made disjoint.  None when a point has no cluster.

    alpha / 2 is feasible for the problem without set-up costs when nobody is left out and no radius is excluded.
    """
    none = np.zeros(table.n)
    if not left_out:
        priced = tight(table, r, none, float(r), 0, widest)
        if (priced.labels < 0).any():
            return None, priced.alpha
        return unshare(table.distances, table.ranked, r, priced), priced.alpha
    best: Clusters | None = None
    least = np.inf
    high, low = float(table.distances.max()), float(table.distances[table.distances > 0].min(initial=np.inf))
    guesses = [high / STEP**i for i in range(int(np.log(high / low) / np.log(STEP)) + 2)] if high > 0 else []
    for guess in [*guesses, 0.0]:
        priced = tight(table, r, none, float(r), left_out, min(guess, widest))
        if int((priced.labels < 0).sum()) > left_out:
            break  # nor with any smaller radius
        found = unshare(table.distances, table.ranked, r, priced)
        if cost(found) < least:
            best, least = found, cost(found)
    return best, none


def cost(found: Clusters) -> float:
    """Sum of size times radius."""
    kept = found.labels >= 0
    radius = np.zeros(found.center.size)
    np.maximum.at(radius, found.labels[kept], found.away[kept])
    return float((np.bincount(found.labels[kept], minlength=radius.size) * radius).sum())


def _taken(
    distances: np.ndarray, ranked: np.ndarray, r: int, priced: Priced
) -> tuple[dict[int, np.ndarray], np.ndarray, dict[int, list[int]], np.ndarray]:
    """Step 2: the open clusters with their points, the leftover cluster of every other point (int64[n], -1 none), the
    leftover clusters beside each open one, and every cluster's radius (float64[m])."""
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
            beside = owner[shared[c]]
            beside = beside[beside >= 0]
            trees.setdefault(int(beside[np.argmin(radius[beside])]), []).append(c)
    return opened, temporary, trees, radius


def unshare(distances: np.ndarray, ranked: np.ndarray, r: int, priced: Priced) -> Clusters:
    """Steps 2 and 3 of section 3.1: every center takes its r nearest points as well, then each point chooses one.

    Departures: a group is complete when its weight reaches r (the paper says exceeds); clusters with fewer than r
    unassigned points are skipped, not a reason to stop; leftover clusters without points vanish.  A leftover may share
    points with open clusters wider than itself: it goes with the narrowest, which is no wider (docs/gathering.md,
    Lemma 4, needs that).  A group is around the center of its open cluster or that of its widest leftover.
    """
    n = len(distances)
    opened, temporary, trees, radius = _taken(distances, ranked, r, priced)
    out = np.full(n, -1)
    centers: list[int] = []

    def put(points: np.ndarray, *middles: int) -> None:
        out[points] = len(centers)
        centers.append(min(middles, key=lambda v: float(distances[v, points].max())))

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
