"""Tiles the slow way: every partition there is, and a check of one that looks at nothing but its numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def grid_of(points, weights):
    """Weights on the grid of distinct coordinates: int[X, Y] as nested lists, and the coordinates."""
    xs, ys = sorted({p[0] for p in points}), sorted({p[1] for p in points})
    table = [[0] * len(ys) for _ in xs]
    for (x, y), w in zip(points, weights, strict=True):
        table[xs.index(x)][ys.index(y)] += w
    return table, xs, ys


def partitions(table, k) -> Iterator[list[int]]:
    """The tile weights of every partition of the grid into rectangles of weight at least k, guillotine or not."""
    nx, ny = len(table), len(table[0])
    taken = [[False] * ny for _ in range(nx)]

    def place(weights):
        free = next(((i, j) for i in range(nx) for j in range(ny) if not taken[i][j]), None)
        if free is None:
            yield list(weights)
            return
        i, j = free
        height = ny
        for i2 in range(i, nx):
            run = j
            while run < height and not taken[i2][run]:
                run += 1
            height = run
            if height == j:
                break
            for j2 in range(j, height):
                weight = sum(table[a][b] for a in range(i, i2 + 1) for b in range(j, j2 + 1))
                if weight < k:
                    continue
                for a in range(i, i2 + 1):
                    for b in range(j, j2 + 1):
                        taken[a][b] = True
                yield from place([*weights, weight])
                for a in range(i, i2 + 1):
                    for b in range(j, j2 + 1):
                        taken[a][b] = False

    yield from place([])


def optimum(points, weights, k):
    """(most tiles, least heaviest tile) over all partitions."""
    table, _, _ = grid_of(points, weights)
    found = [(len(w), max(w)) for w in partitions(table, k)]
    return max(n for n, _ in found), min(m for _, m in found)


def half_perimeter(points):
    """Width plus height of a tight box."""
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return max(xs) - min(xs) + max(ys) - min(ys)


def guillotine(points, weights, k):
    """Every outcome (tile weights, summed size) of cutting straight across again and again; size is weight times half
    perimeter."""
    items = list(zip(points, weights, strict=True))

    def cut(part):
        total = sum(w for _, w in part)
        if total < k:
            return set()
        found = {((total,), total * half_perimeter([p for p, _ in part]))}
        for axis in (0, 1):
            for line in sorted({p[axis] for p, _ in part})[1:]:
                left = [q for q in part if q[0][axis] < line]
                right = [q for q in part if q[0][axis] >= line]
                for a, size_a in cut(left):
                    for b, size_b in cut(right):
                        found.add((tuple(sorted(a + b)), size_a + size_b))
        return found

    return cut(items)


def check(points, weights, k, tiles) -> None:
    """Every point in exactly one tile, its own; every tile heavy enough; the plane covered exactly once."""
    p, b = np.asarray(points, float), tiles.bounds
    w = np.ones(len(p), int) if weights is None else np.asarray(weights)
    inside = (
        (b[:, 0] <= p[:, :1]) & (p[:, :1] < b[:, 2]) & (b[:, 1] <= p[:, 1:]) & (p[:, 1:] < b[:, 3])
    )  # points by tiles
    assert (inside.sum(axis=1) == 1).all(), "a point lies in no tile or in two"
    assert (inside.argmax(axis=1) == tiles.labels).all(), "a label is not the tile that holds the point"
    assert ((inside * w[:, None]).sum(axis=0) == tiles.counts).all()
    assert tiles.counts.min() >= k
    assert tiles.cost == tiles.counts.max() == tiles.certificate.cost
    lines = [np.unique(b[:, [i, i + 2]]) for i in (0, 1)]
    middles = [
        np.concatenate([[s[1] - 1], (s[1:-2] + s[2:-1]) / 2, [s[-2] + 1]]) if len(s) > 2 else [0.0] for s in lines
    ]
    x, y = (g.ravel() for g in np.meshgrid(*middles))
    covered = (b[:, [0]] <= x) & (x < b[:, [2]]) & (b[:, [1]] <= y) & (y < b[:, [3]])
    assert (covered.sum(axis=0) == 1).all(), "a place of the plane is in no tile or in two"
    for i, (x0, y0, x1, y1) in enumerate(tiles.boxes):
        mine = p[tiles.labels == i]
        assert (mine.min(axis=0) == [x0, y0]).all()
        assert (mine.max(axis=0) == [x1, y1]).all()


def can_be_cut(points, weights, k) -> bool:
    """Does some straight cut leave k on both sides?"""
    p, w = np.asarray(points, float), np.asarray(weights)
    for axis in (0, 1):
        for line in np.unique(p[:, axis])[1:]:
            low = w[p[:, axis] < line].sum()
            if low >= k and w.sum() - low >= k:
                return True
    return False
