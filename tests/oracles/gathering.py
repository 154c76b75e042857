"""Every clustering there is, by dynamic programming over subsets.  Exponential, and obviously right."""

from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np


def distances(points) -> np.ndarray:
    """Euclidean distances of all pairs."""
    x = np.asarray(points, float)
    return np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=-1))


def members(mask: int) -> list[int]:
    """The points of a subset."""
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def radius_at_points(d: np.ndarray, inside: list[int]) -> float:
    """Smallest largest distance from any input point, a member or not."""
    return float(d[:, inside].max(axis=1).min())


def disc_centers(points) -> np.ndarray:
    """Where the smallest enclosing disc of some of the points can be: at one, between two, or round three of them."""
    x = np.asarray(points, float)
    out = [*x, *((a + b) / 2 for a, b in combinations(x, 2))]
    for a, b, c in combinations(x, 3):
        m = 2 * np.array([b - a, c - a])
        if abs(np.linalg.det(m)) >= 1e-12:
            out.append(np.linalg.solve(m, [b @ b - a @ a, c @ c - a @ a]))
    return np.array(out)


def optimum(
    n: int, r: int, cost: Callable[[list[int]], float], *, left_out: int = 0, most: int | None = None,
    allowed: Callable[[list[int]], bool] = lambda _inside: True, total: Callable[[float, float], float] = max,
) -> float:  # fmt: skip
    """Least total of cluster costs over all ways to split all but left_out points into clusters of at least r.

    total is max for the radius, a sum for the cellular cost.  inf when there is none.
    """

    @cache
    def price(mask: int) -> float:
        inside = members(mask)
        return cost(inside) if len(inside) >= r and allowed(inside) else np.inf

    @cache
    def least(mask: int, out: int, clusters: int) -> float:
        if not mask:
            return 0.0
        first = mask & -mask
        rest = mask ^ first
        best = least(rest, out - 1, clusters) if out else np.inf
        if not clusters:
            return best
        sub = rest
        while True:
            own = price(sub | first)
            if own < best:
                best = min(best, total(own, least(mask ^ sub ^ first, out, clusters - 1)))
            if not sub:
                return best
            sub = (sub - 1) & rest

    return least((1 << n) - 1, left_out, n if most is None else most)


def gather_optimum(points, r, *, left_out=0, most=None, anywhere=False, d=None, allowed=lambda _inside: True) -> float:
    """Least largest radius."""
    d = distances(points) if d is None else d
    if anywhere:
        x = np.asarray(points, float)
        apart = np.sqrt(((disc_centers(x)[:, None] - x[None]) ** 2).sum(axis=-1))
        return optimum(
            len(d), r, lambda s: float(apart[:, s].max(axis=1).min()), left_out=left_out, most=most, allowed=allowed
        )
    return optimum(len(d), r, lambda s: radius_at_points(d, s), left_out=left_out, most=most, allowed=allowed)


def cellular_optimum(d, r=1, *, setup=None, left_out=0, max_diameter=None) -> float:
    """Least sum of size times radius plus set-up cost of the center."""
    n = len(d)
    setup = np.zeros(n) if setup is None else np.asarray(setup, float)

    def cost(inside):
        return min(len(inside) * max(d[v, i] for i in inside) + setup[v] for v in range(n))

    def narrow(inside):
        return max_diameter is None or max(d[i, j] for i in inside for j in inside) <= max_diameter

    return optimum(n, r, cost, left_out=left_out, allowed=narrow, total=lambda a, b: a + b)


def diverse(codes, inside, l=1, distinct=1) -> bool:
    """At most 1/l of the members share a value, and there are ``distinct`` values."""
    count = np.bincount(np.asarray(codes)[inside])
    return l * count.max() <= len(inside) and (count > 0).sum() >= distinct


def satisfiable(variables: int, clauses: list[tuple[int, ...]]) -> bool:
    """Try every assignment; literal i > 0 is variable i, -i its complement."""
    every = range(2**variables)
    return any(all(any((a >> (abs(x) - 1) & 1) == (x > 0) for x in c) for c in clauses) for a in every)
