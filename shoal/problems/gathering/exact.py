"""Least radius and least cellular cost for few points, by integer programs (HiGHS)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from shoal.errors import InputError, PolicyError
from shoal.problems.gathering.space import Space
from shoal.problems.gathering.threshold import Clusters
from shoal.problems.programs import LinearConstraints, solve

MOST = 200  # most points with centers at points
MOST_ANYWHERE = 30
DIMENSIONS = 3  # most dimensions with centers anywhere
MOST_CELLULAR = 40
SLACK = 1e-9  # relative to the span of the points


@dataclass(frozen=True, eq=False)
class BinaryProgram:
    """min cost x, subject to rows with lower and upper limits; all variables are 0/1."""

    cost: np.ndarray
    rows: list[tuple[np.ndarray, np.ndarray, float, float]]

    def solve(self, seconds: float) -> tuple[np.ndarray | None, float, bool]:
        """(x or None, proved lower bound, whether the solver finished).

        HiGHS treats costs that differ by less than 1e-6 as equal, so they are scaled.
        """
        unit = np.ldexp(1.0, int(np.frexp(self.cost.max(initial=0.0))[1]) - 20) if self.cost.any() else 1.0
        which = np.concatenate([np.full(c.size, i) for i, (c, *_) in enumerate(self.rows)])
        columns = np.concatenate([c for c, *_ in self.rows])
        values = np.concatenate([v for _, v, *_ in self.rows])
        matrix = csr_array((values, (which, columns)), shape=(len(self.rows), self.cost.size))
        low, high = (np.array([row[i] for row in self.rows]) for i in (2, 3))
        none, one = np.zeros(self.cost.size), np.ones(self.cost.size)
        found = solve(self.cost / unit, LinearConstraints(matrix, low, high), none, one, whole=True, seconds=seconds)
        return (None if found.x is None else np.round(found.x)), found.bound * unit, found.finished


def gather_exact(
    space: Space, r: int, left_out: int, most: int | None, upper: Clusters, low: float, seconds: float
) -> tuple[Clusters, float]:
    """The least radius with centers at points: bisection over the distances between a bound and an answer.

    (clusters, bound); the bound equals the radius unless the time ran out. For at most 200 points.
    """
    if space.n > MOST:
        raise InputError(f"the exact method takes at most {MOST} points, and there are {space.n}; use ⟨method='local'⟩")
    distances = space.matrix()
    values = np.unique(distances)
    values = values[(values >= low * (1 - 1e-9)) & (values <= upper.radius)]
    a, b = -1, values.size - 1  # values[b] is feasible, values[a] isn't
    best = upper
    while b - a > 1:
        middle = (a + b) // 2
        found, finished = _cover(distances <= values[middle], distances, r, left_out, most, seconds)
        if found is not None:
            best, b = found, middle
        elif finished:
            a = middle
        else:
            return best, float(values[a + 1])
    return best, float(values[b]) if b >= 0 else best.radius


def _cover(
    reaches: np.ndarray, distances: np.ndarray, r: int, left_out: int, most: int | None, seconds: float
) -> tuple[Clusters | None, bool]:
    """Assign all but left_out of n points to centers that reach them, at least r each; reaches bool[centers, n].

    A center that reaches a subset of another's points isn't needed: its members can go to the other, and clusters of
    one center are merged.
    """
    n, heavy = reaches.shape[1], _widest(reaches, r)
    if heavy.size == 0 and left_out < n:
        return None, True
    c, p = np.nonzero(reaches[heavy])
    m, x = heavy.size, heavy.size + np.arange(c.size)
    rows = [(x[p == i], np.ones(int((p == i).sum())), 0.0, 1.0) for i in range(n)]
    rows = [row for row in rows if row[0].size]
    rows.append((x, np.ones(x.size), n - left_out, n))
    for j in range(m):
        own = x[c == j]
        rows.append((np.append(own, j), np.append(np.ones(own.size), -float(r)), 0.0, np.inf))
        rows += [(np.array([k, j]), np.array([1.0, -1.0]), -np.inf, 0.0) for k in own]
    if most is not None:
        rows.append((np.arange(m), np.ones(m), 0.0, most))
    found, _, finished = BinaryProgram(np.zeros(m + x.size), rows).solve(seconds)
    if found is None:
        return None, finished
    chosen = found[x] > 0.5
    labels = np.full(n, -1)
    labels[p[chosen]] = c[chosen]
    used, where = np.unique(labels[labels >= 0], return_inverse=True)
    labels[labels >= 0] = where
    return _clusters(labels, heavy[used], distances), True


def _clusters(labels: np.ndarray, center: np.ndarray, distances: np.ndarray) -> Clusters:
    """Clusters with every point's distance from its center, from distances float64[centers, n]."""
    away = distances[center[labels], np.arange(labels.size)]
    return Clusters(labels, center, np.where(labels >= 0, away, 0.0))


def _widest(reaches: np.ndarray, r: int) -> np.ndarray:
    """The centers that reach r points, without those whose points another center also reaches."""
    heavy = np.flatnonzero(reaches.sum(axis=1) >= r)
    _, first = np.unique(reaches[heavy], axis=0, return_index=True)
    heavy = np.sort(heavy[first])
    sets = reaches[heavy].astype(np.float64)
    inside = sets @ sets.T == sets.sum(axis=1)[:, None]
    return heavy[inside.sum(axis=1) == 1]


def gather_exact_anywhere(
    points: np.ndarray, r: int, left_out: int, most: int | None, seconds: float
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """(labels, centers float64[m, d], bound, whether finished): least radius with centers anywhere, for few points.

    The smallest enclosing ball of a cluster is that of some d + 1 of its points, so only these centers are needed.
    Radii that differ by less than a billionth of the points' span are equal; the bound is this much below the radius
    unless the time ran out. For at most 30 points in at most 3 dimensions.
    """
    n, d = points.shape
    if n > MOST_ANYWHERE or d > DIMENSIONS:
        raise PolicyError(
            f"the exact method with centers anywhere takes at most {MOST_ANYWHERE} points in 3 dimensions; "
            f"there are {n} in {d}"
        )
    shift, span = points.mean(axis=0), float(np.ptp(points, axis=0).max(initial=0.0)) or 1.0
    x = (points - shift) / span
    balls = [ball for size in range(1, min(d + 1, n) + 1) for ball in map(list, combinations(range(n), size))]
    center = np.array([_center(x[b]) for b in balls])
    distances = np.sqrt(((center[:, None, :] - x[None]) ** 2).sum(axis=-1))
    own = np.sqrt(((center - x[[ball[0] for ball in balls]]) ** 2).sum(axis=-1))
    values = np.unique(np.round(np.sort(distances, axis=1)[:, r - 1 :], 12))
    everyone = int(distances.max(axis=1).argmin())  # one cluster of all points is feasible
    labels, middle, radius = np.zeros(n, np.int64), center[[everyone]], float(distances[everyone].max())
    a, b, stopped = -1, int(np.searchsorted(values, radius - SLACK)), False  # values[b] is feasible, values[a] isn't
    while b - a > 1:
        half = (a + b) // 2
        reach = values[half] + SLACK
        inside = (distances <= reach) & (own <= reach)[:, None]
        found, finished = _cover(inside, distances, r, left_out, most, seconds)
        if found is not None:
            labels, middle, radius, b = found.labels, center[found.center], found.radius, half
        elif finished:
            a = half
        else:
            stopped = True
            break
    bound = min(radius, float(values[a + 1] if stopped else values[min(b, values.size - 1)])) - 2 * SLACK
    return labels, middle * span + shift, max(0.0, bound * span), not stopped


def _center(ball: np.ndarray) -> np.ndarray:
    """The circumcenter of a few points within their affine hull."""
    if len(ball) == 1:
        return ball[0]
    a = 2 * (ball[1:] - ball[0])
    b = (ball[1:] ** 2 - ball[0] ** 2).sum(axis=1)
    middle = ball.mean(axis=0)
    shift, *_ = np.linalg.lstsq(a, b - a @ middle, rcond=None)
    return middle + shift


def cellular_exact(
    space: Space, r: int, setup: np.ndarray, left_out: int, max_diameter: float | None, seconds: float
) -> tuple[Clusters | None, float]:
    """The least cellular cost with centers at points: one variable per center and radius, one per member.

    Clusters with the same center and radius can be merged at no cost, unless a cap forbids it. With a cap, each center
    and radius has several variables. Each such cluster has a member at exactly the radius, because otherwise a smaller
    radius would suffice. So there are at most as many of them as points at that distance.

    (clusters or None if there are none, proved lower bound). For at most 40 points.
    """
    n = space.n
    if n > MOST_CELLULAR:
        raise InputError(
            f"the exact method takes at most {MOST_CELLULAR} points, and there are {n}; use another method"
        )
    distances = space.matrix()
    offers = _Offers([], [], [], [[] for _ in range(n)])
    wide = np.argwhere(np.triu(distances > max_diameter)) if max_diameter is not None else np.zeros((0, 2), int)
    for v in range(n):
        for reach in np.unique(distances[v]):
            inside = np.flatnonzero(distances[v] <= reach)
            if inside.size < r:  # a center need not be a member, so the cap bounds only the members' distances
                continue
            apart = [(int(i), int(j)) for i, j in wide if distances[v, i] <= reach and distances[v, j] <= reach]
            times = min(int((distances[v] == reach).sum()), inside.size // r) if apart else 1
            for _ in range(times):
                offers.add(v, float(setup[v]), float(reach), inside.tolist(), r, apart)
    if not any(offers.by_point) or (left_out == 0 and not all(offers.by_point)):
        return None, np.inf
    rows = offers.rows + [(np.array(x), np.ones(len(x)), 0.0, 1.0) for x in offers.by_point if x]
    every = np.array([k for x in offers.by_point for k in x])
    rows.append((every, np.ones(every.size), n - left_out, n))
    found, bound, finished = BinaryProgram(np.array(offers.cost), rows).solve(seconds)
    if found is None:
        return None, np.inf if finished else max(bound, 0.0)
    return _clusters(*offers.clusters(found, n), distances), max(bound, 0.0)


class _Offers(NamedTuple):
    """The variables and rows of the program: for each possible cluster one variable, then one for each member.

    cost, owner  of every variable; owner (center, -1) of a cluster, (center, point) of a member
    by_point     the variables that put each point into a cluster
    """

    cost: list[float]
    rows: list[tuple[np.ndarray, np.ndarray, float, float]]
    owner: list[tuple[int, int]]
    by_point: list[list[int]]

    def add(self, v: int, setup: float, reach: float, inside: list[int], r: int, apart: list[tuple[int, int]]) -> None:
        """Add a cluster of the points within a radius of v: at least r of them, and no pair of ``apart``."""
        open_at = len(self.cost)
        self.cost.append(setup)
        self.owner.append((v, -1))
        member = {}
        for i in inside:
            member[i] = len(self.cost)
            self.by_point[i].append(len(self.cost))
            self.cost.append(reach)
            self.owner.append((v, i))
            self.rows.append((np.array([member[i], open_at]), np.array([1.0, -1.0]), -np.inf, 0.0))
        own = np.array(list(member.values()))
        self.rows.append((np.append(own, open_at), np.append(np.ones(own.size), -float(r)), 0.0, np.inf))
        for i, j in apart:
            pair = np.array([member[i], member[j], open_at])
            self.rows.append((pair, np.array([1.0, 1.0, -1.0]), -np.inf, 0.0))

    def clusters(self, found: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The cluster of each of n points, -1 for none, and the centers, from a solution of the program."""
        labels = np.full(n, -1)
        opened: dict[int, tuple[int, int]] = {}
        last_open = -1
        for k, (v, who) in enumerate(self.owner):
            if who < 0:
                last_open = k
            elif found[k] > 0.5:
                labels[who] = opened.setdefault(last_open, (len(opened), v))[0]
        return labels, np.array([v for _, v in opened.values()], np.int64)
