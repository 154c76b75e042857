"""Tiles cut off at their points, and the places drawn in them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.tiles.cells import round_cuts
from shoal.problems.tiles.places import lines_of


def trimmed(
    bounds: np.ndarray, boxes: np.ndarray, *, grid: Fraction | None, width: float | None, geographic: bool
) -> np.ndarray:
    """Bounds float64[m, 4] moved in to the tight boxes float64[m, 4] of the tiles' points, never out.

    A side comes to a round number within a tenth of the tile from its outermost point, or to the next line of a grid:
    less is said of that point than by its own coordinate.  With a width the longer side stays at most that.

    boxes  of the points' squares' low corners where there is a grid
    """
    if not len(boxes):
        return bounds.copy()
    if grid is not None:
        index = np.round(boxes / float(grid)).astype(np.int64)
        low, high = lines_of(index[:, :2], grid), lines_of(index[:, 2:] + 1, grid)
        return np.concatenate([np.maximum(bounds[:, :2], low), np.minimum(bounds[:, 2:], high)], axis=1)
    size = (boxes[:, 2:] - boxes[:, :2]).max(axis=1)
    typical = np.median(size[size > 0]) if (size > 0).any() else max(1.0, float(np.abs(boxes).max())) * 0.01
    margin = np.where(size > 0, size, typical)[:, None] * 0.1
    out = np.empty_like(bounds)
    wide = np.ones(len(boxes), bool)  # tiles without an answer yet
    for _ in range(64):
        m = margin[wide]
        out[wide] = _rounded(bounds[wide], boxes[wide], m)
        if width is None:
            break
        wide[wide] = longer_side(out[wide], geographic) > width
        if not wide.any():
            break
        margin = margin / 4
    return out


def _rounded(bounds: np.ndarray, boxes: np.ndarray, margin: np.ndarray) -> np.ndarray:
    sides = []
    for axis in (0, 1):
        low, high = bounds[:, axis], bounds[:, axis + 2]
        a, b, m = boxes[:, axis], boxes[:, axis + 2], margin[:, 0]
        below = np.maximum(np.nextafter(low, -np.inf), a - m)
        sides.append(round_cuts(np.minimum(below, np.nextafter(a, -np.inf)), a))
        above = np.minimum(high, np.maximum(b + m, np.nextafter(b, np.inf)))
        sides.append(round_cuts(b, above))
    return np.stack([sides[0], sides[2], sides[1], sides[3]], axis=1)


def longer_side(bounds: np.ndarray, geographic: bool) -> np.ndarray:
    """The longer side of rectangles float64[m, 4]: km where geographic, at their widest latitude."""
    size = bounds[:, 2:] - bounds[:, :2]
    if geographic:
        south, north = bounds[:, 1], bounds[:, 3]
        flat = np.where((south <= 0) & (north >= 0), 0.0, np.minimum(np.abs(south), np.abs(north)))
        size = size * KM_PER_DEGREE
        size[:, 0] *= np.cos(np.deg2rad(flat))
    return size.max(axis=1)


def drawn(bounds: np.ndarray, seed: int | None) -> np.ndarray:
    """A place in each rectangle, all alike likely, float64[m, 2]: it says nothing beyond the rectangle."""
    share = np.random.default_rng(seed).random((len(bounds), 2))
    low, high = bounds[:, :2], bounds[:, 2:]
    return np.minimum(low + share * (high - low), np.nextafter(high, low))


__all__ = ["drawn", "longer_side", "trimmed"]
