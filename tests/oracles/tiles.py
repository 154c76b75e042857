"""Tiles the slow way: every partition there is, and a check of one that looks at nothing but its numbers."""

import numpy as np

from tests.oracles.tiles_limited import ways


def optimum(points, weights, k):
    """(most tiles, least heaviest tile) over all partitions into rectangles, guillotine or not."""
    rows = [(*p, 0, 0, 0, w) for p, w in zip(points, weights, strict=True)]
    found = ways(rows, None, False, lambda part: sum(r[5] for r in part) >= k)
    return max(len(w) for _, w in found), min(max(w) for _, w in found)


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
