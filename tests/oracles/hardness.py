"""Answers to the reductions' instances by search: integer programs over all groups there are, and plain enumeration."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import combinations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_matrix


def can_be_covered(size: int, sets: Iterable[Sequence[int]]) -> bool:
    """Do some of the sets hold each of 0 .. size - 1 exactly once?  By an integer program."""
    listed = [tuple(s) for s in sets]
    rows = [v for s in listed for v in s]
    columns = [i for i, s in enumerate(listed) for _ in s]
    if set(rows) != set(range(size)):
        return False
    matrix = csc_matrix((np.ones(len(rows)), (rows, columns)), shape=(size, len(listed)))
    found = milp(
        np.zeros(len(listed)),
        constraints=LinearConstraint(matrix, 1, 1),
        integrality=np.ones(len(listed)),
        bounds=Bounds(0, 1),
    )
    assert found.status in (0, 2), found.message
    return found.status == 0


def connected_triples(n: int, edges) -> list[tuple[int, ...]]:
    """All sets of three vertices that are connected."""
    near = [set() for _ in range(n)]
    for u, v in edges:
        near[u].add(v)
        near[v].add(u)
    return sorted({tuple(sorted((v, a, b))) for v in range(n) for a, b in combinations(near[v], 2)})


def four_star_sets(edges) -> list[tuple[int, ...]]:
    """All triples of edges with a common end."""
    at: dict[int, list[int]] = {}
    for i, e in enumerate(edges):
        for v in e:
            at.setdefault(int(v), []).append(i)
    return sorted({t for own in at.values() for t in combinations(own, 3)})


def rectangles_of(points: np.ndarray, weights: np.ndarray, k: int) -> tuple[int, list[list[int]]]:
    """The number of grid cells in the points' frame, and all rectangles of weight exactly k as lists of cells."""
    p = points - points.min(axis=0)
    grid = np.zeros(p.max(axis=0) + 1, int)
    grid[p[:, 0], p[:, 1]] = weights
    nx, ny = grid.shape
    found = []
    for i in range(nx):
        for j in range(ny):
            end = ny
            for i2 in range(i, nx):
                j2, weight = j, 0
                while j2 < end:
                    weight = int(grid[i : i2 + 1, j : j2 + 1].sum())
                    if weight > k:
                        break
                    if weight == k:
                        found.append([a * ny + b for a in range(i, i2 + 1) for b in range(j, j2 + 1)])
                    j2 += 1
                end = j2
                if end == j:
                    break
    return nx * ny, found


def least_stars(rows: np.ndarray, allowed: Callable[[tuple[int, ...]], bool]) -> int | None:
    """Fewest stars over all partitions of the rows into allowed groups: a program over subsets, at most 15 rows."""
    n = len(rows)

    def cost(group: tuple[int, ...]) -> int:
        part = rows[list(group)]
        return len(group) * int((part != part[0]).any(axis=0).sum())

    groups = {}
    for size in range(1, n + 1):
        for group in combinations(range(n), size):
            if allowed(group):
                groups.setdefault(group[0], []).append((sum(1 << i for i in group), cost(group)))

    @cache
    def best(left: int) -> float:
        if not left:
            return 0
        first = (left & -left).bit_length() - 1
        options = (c + best(left & ~m) for m, c in groups.get(first, ()) if m & left == m)
        return min(options, default=float("inf"))

    found = best((1 << n) - 1)
    return None if found == float("inf") else int(found)


def distinct_diverse(sensitive: np.ndarray, l: int) -> Callable[[tuple[int, ...]], bool]:
    """Every sensitive column has at least l values in the group."""
    return lambda group: all(len(set(column)) >= l for column in sensitive[list(group)].T.tolist())


def frequency_diverse(sensitive: np.ndarray, l: int) -> Callable[[tuple[int, ...]], bool]:
    """At most one in l rows of the group shares a value."""
    return lambda group: l * np.bincount(sensitive[list(group), 0]).max() <= len(group)


def can_gather(distances: np.ndarray, r: int, radius: int) -> bool:
    """Can all points be assigned to centers within the radius, at least r to each center?  By an integer program."""
    n = len(distances)
    pairs = [(p, v) for p in range(n) for v in range(n) if distances[p, v] <= radius]
    size = len(pairs) + n  # assignments, then centers
    rows: list[tuple[dict[int, float], float, float]] = [
        ({i: 1.0 for i, (q, _) in enumerate(pairs) if q == p}, 1, 1) for p in range(n)
    ]
    for v in range(n):
        own = {i: 1.0 for i, (_, c) in enumerate(pairs) if c == v}
        rows.append(({**own, len(pairs) + v: -float(r)}, 0, np.inf))
        rows.append(({**own, len(pairs) + v: -float(n)}, -np.inf, 0))
    matrix = np.zeros((len(rows), size))
    for i, (entries, _, _) in enumerate(rows):
        for j, value in entries.items():
            matrix[i, j] = value
    found = milp(
        np.zeros(size),
        constraints=LinearConstraint(matrix, [low for _, low, _ in rows], [high for _, _, high in rows]),
        integrality=np.ones(size),
        bounds=Bounds(0, 1),
    )
    assert found.status in (0, 2), found.message
    return found.status == 0
