"""Cellular clusterings found by search: a greedy start, pairs of clusters re-split, a few dissolved and cut anew.

Nothing is proved here; the bound of ``prices`` says how far the answer is from the optimum at most.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.kernels.gathering import cellular as kernels
from shoal.kernels.gathering import pairs
from shoal.kernels.gathering.dissolve import recut
from shoal.kernels.uncompiled import quick
from shoal.problems.gathering.diverse import Diversity
from shoal.problems.gathering.local import Clusters
from shoal.problems.gathering.space import Space
from shoal.watching import done

STEPS = {"fast": 0, "balanced": 1, "thorough": 20}  # clusters dissolved, per cluster
LOOKS = {"fast": 3, "balanced": 30, "thorough": 60}
SHORT = 4  # times r: the lists of the greedy start
LARGEST = 900  # points of two clusters searched together, at most
EXCESS = 1e3  # cost of a point per unit of diameter above the cap


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything the search needs, made once.

    near, far  int64[n, w], float64[n, w]: nearest points
    """

    space: Space
    r: int
    setup: np.ndarray
    near: np.ndarray
    far: np.ndarray
    max_diameter: float | None = None
    diversity: Diversity | None = None

    @property
    def rules(self) -> pairs.Rules:
        """The constraints as the kernels take them."""
        d = self.diversity
        n = self.space.n
        codes = np.zeros((n, 0), np.int64) if d is None else d.codes
        share = np.zeros(0) if d is None else np.array([1 / l for l in d.frequency])
        distinct = np.zeros(0, np.int64) if d is None else np.array(d.distinct, np.int64)
        limit = np.inf if self.max_diameter is None else self.max_diameter
        return pairs.Rules(self.r, self.setup, codes, share, distinct, limit, 0.0 if limit == np.inf else EXCESS)

    def largest(self, found: Clusters) -> int:
        """How many points two clusters that are searched together may have."""
        usual = int(np.median(np.bincount(found.labels[found.labels >= 0]))) if found.center.size else 1
        return int(min(max(6 * self.r, 5 * usual, 48), max(LARGEST, 3 * self.r), self.space.n))


def greedy(problem: Problem, out: np.ndarray) -> Clusters:
    """Clusters where they are cheapest a point, again and again; who remains joins where that costs least.

    out  bool[n]  points left out
    """
    space, r = problem.space, problem.r
    owner = np.where(out, space.n, -1)
    center = np.empty(space.n, np.int64)
    # longer lists leave fewer points over, and a worse start: clusters of exactly r have nothing to give away
    w = problem.near.shape[1] if problem.setup.any() else min(SHORT * r, problem.near.shape[1])
    open_clusters = quick(kernels.greedy, 2 * space.n * w)
    near, far = (np.ascontiguousarray(a[:, :w]) for a in (problem.near, problem.far))  # one layout, compiled once
    m = open_clusters(near, far, r, problem.setup, owner, center)
    owner[out] = -1
    center = center[:m].copy()
    if not m:  # lists without r free points: everything in one cluster
        owner[~out] = 0
        return finish(space, owner, np.flatnonzero(~out)[:1])
    return admit(space, owner, center, np.flatnonzero((owner < 0) & ~out))


def admit(space: Space, owner: np.ndarray, center: np.ndarray, free: np.ndarray) -> Clusters:
    """Free points into clusters whose cost grows least, of the 16 with the nearest centers."""
    m = center.size
    kept = np.flatnonzero(owner >= 0)
    radius = np.zeros(m)
    np.maximum.at(radius, owner[kept], space.between(kept, center[owner[kept]]))
    size = np.bincount(owner[kept], minlength=m)
    if free.size:
        spots, first = np.unique(center, return_index=True)
        choice, away = space.nearest(min(16, spots.size), rows=free, among=spots)
        back = np.full(space.n, -1)
        back[spots] = first
        turn = np.argsort(away[:, 0], kind="stable")
        picked = np.where(choice >= 0, back[choice], -1)[turn]
        quick(kernels.absorb, picked.size)(free[turn], picked, away[turn], owner, size, radius)
    return finish(space, owner, center)


def finish(space: Space, owner: np.ndarray, center: np.ndarray) -> Clusters:
    """Clusters numbered anew, without empty ones."""
    used, fresh = np.unique(owner[owner >= 0], return_inverse=True)
    labels = np.full(space.n, -1)
    labels[owner >= 0] = fresh
    center = center[used].copy()
    away = np.zeros(space.n)
    kept = np.flatnonzero(labels >= 0)
    away[kept] = space.between(kept, center[labels[kept]])
    return Clusters(labels, center, away)


def halve(problem: Problem, found: Clusters) -> Clusters:
    """Clusters of more points than the search takes, cut by distance from their center; free without set-up costs."""
    limit = max(problem.largest(found) // 2, 2 * problem.r)
    size = np.bincount(found.labels[found.labels >= 0], minlength=found.center.size)
    if (size <= limit).all():
        return found
    labels, center = found.labels.copy(), list(found.center)
    for c in np.flatnonzero(size > limit):
        members = np.flatnonzero(labels == c)
        members = members[np.argsort(found.away[members], kind="stable")]
        for part in np.array_split(members, -(-members.size // limit))[1:]:
            labels[part] = len(center)
            center.append(found.center[c])
    return finish(problem.space, labels, np.array(center, np.int64))


def improve(problem: Problem, found: Clusters, effort: str, seed: int, steps: int | None = None) -> Clusters:
    """The search from a given start; never worse than it.  O(pairs looked at * largest^2) time."""
    space = problem.space
    start = found
    if problem.diversity is None and problem.max_diameter is None and not problem.setup.any():
        found = halve(problem, found)
    largest = problem.largest(found)
    owner = found.labels.copy()
    center = np.full(space.n, -1)
    center[: found.center.size] = found.center
    near = np.ascontiguousarray(problem.near[:, : max(2 * problem.r, 16)])  # one layout, compiled once
    pairs.search(space.coded, near, problem.rules, largest, LOOKS[effort], owner, center)
    done(0.5)
    per = STEPS[effort] if steps is None else steps
    if per:
        clusters = max(1, np.unique(owner[owner >= 0]).size)
        recut(
            space.coded, problem.near, problem.rules, min(2 * largest, max(LARGEST, 4 * problem.r)), 5,
            per * clusters, seed, owner, center,
        )  # fmt: skip
    return min((start, nearby(problem, finish(space, owner, center))), key=lambda c: penalized(problem, c))


def nearby(problem: Problem, found: Clusters) -> Clusters:
    """Every center moved to the point nearby that makes its cluster cheapest, a member or not, but none left out."""
    space = problem.space
    order = np.argsort(found.labels, kind="stable")
    start = np.searchsorted(found.labels[order], np.arange(found.center.size + 1)).astype(np.int64)
    center = found.center.copy()
    looks = problem.near.shape[1] * space.n
    quick(kernels.better_centers, space.steps(looks))(
        space.coded, start, order, problem.near, problem.setup, found.labels >= 0, center
    )
    return finish(space, found.labels, center)


def radii(found: Clusters) -> np.ndarray:
    """float64[m]: the radius of every cluster."""
    kept = found.labels >= 0
    radius = np.zeros(found.center.size)
    np.maximum.at(radius, found.labels[kept], found.away[kept])
    return radius


def cost(problem: Problem, found: Clusters) -> float:
    """Sum of size times radius, plus set-up costs."""
    size = np.bincount(found.labels[found.labels >= 0], minlength=found.center.size)
    return float((size * radii(found)).sum() + problem.setup[found.center].sum())


def penalized(problem: Problem, found: Clusters) -> float:
    """The cost, plus the price of diameters above the cap; inf for a cluster that is not eligible."""
    d = problem.diversity
    total = cost(problem, found)
    if d is not None and any(not d.holds(np.flatnonzero(found.labels == c)) for c in range(found.center.size)):
        return np.inf
    if problem.max_diameter is not None:
        size = np.bincount(found.labels[found.labels >= 0], minlength=found.center.size)
        over = np.maximum(diameters(problem.space, found) - problem.max_diameter, 0.0)
        total += EXCESS * float((size * over).sum())
    return total


def diameters(space: Space, found: Clusters) -> np.ndarray:
    """float64[m]: the largest distance of two members of each cluster.  O(sum of squared sizes)."""
    order = np.argsort(found.labels, kind="stable")
    start = np.searchsorted(found.labels[order], np.arange(found.center.size + 1)).astype(np.int64)
    out = np.zeros(found.center.size)
    kernels.diameters(space.coded, start, order, out)
    return out


def leave_out(problem: Problem, found: Clusters, spare: int) -> Clusters:
    """Drop up to ``spare`` points: the farthest of some clusters, or whole clusters, where that saves most a point."""
    space, r = problem.space, problem.r
    labels = found.labels.copy()
    owner = np.where(labels < 0, -1, labels)
    center = np.full(space.n, -1)
    center[: found.center.size] = found.center
    kernels.drop_farthest(found.center.size, owner, found.away.copy(), center, r, problem.setup, spare)
    return finish(space, owner, center[: found.center.size])
