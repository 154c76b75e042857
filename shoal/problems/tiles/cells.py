"""The plane cut into cells: slices of the places' orders, bounded by numbered cuts, each a gap between coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.problems.tiles.places import Places

LOW, HIGH, WEIGHT, EDGES = 0, 1, 2, slice(3, 7)  # columns of Cells.cells


@dataclass(frozen=True, eq=False)
class Cells:
    """A partition of the places into cells.

    by_x, by_y  int64[p]     the places by x and by y, cell after cell
    cells       int64[m, 7]  slice low and high, weight, cuts at x low, y low, x high, y high (-1: unbounded)
    cuts        float64[c, 3]  axis of each cut and the coordinates next to it: the line may run anywhere between
    """

    by_x: np.ndarray
    by_y: np.ndarray
    cells: np.ndarray
    cuts: np.ndarray

    @property
    def labels(self) -> np.ndarray:
        """Cell of each place, int64[p]; -1 where no cell holds it."""
        found = np.full(self.by_x.size, -1)
        low, size = self.cells[:, LOW], self.cells[:, HIGH] - self.cells[:, LOW]
        at = np.repeat(low - np.cumsum(size) + size, size) + np.arange(size.sum())
        found[self.by_x[at]] = np.repeat(np.arange(len(self.cells)), size)
        return found

    @classmethod
    def whole(cls, places: Places) -> Cells:
        """One cell with all places; they are sorted by x already."""
        p = places.x.size
        cell = np.array([[0, p, places.total, -1, -1, -1, -1]], dtype=np.int64)
        return cls(np.arange(p), np.argsort(places.y, kind="stable"), cell, np.zeros((0, 3)))

    @classmethod
    def of(cls, places: Places, labels: np.ndarray, edges: np.ndarray, cuts: np.ndarray) -> Cells:
        """Cells from the places' labels 0 .. m - 1, and the cells' edges int64[m, 4]."""
        m = edges.shape[0]
        by_x = np.argsort(labels, kind="stable")  # places come sorted by x
        by_y = np.argsort(places.y, kind="stable")
        by_y = by_y[np.argsort(labels[by_y], kind="stable")]
        ends = np.cumsum(np.bincount(labels, minlength=m))
        cells = np.empty((m, 7), np.int64)
        cells[:, LOW], cells[:, HIGH] = ends - np.diff(ends, prepend=0), ends
        cells[:, WEIGHT] = np.add.reduceat(places.weight[by_x], cells[:, LOW]) if m else 0
        cells[:, EDGES] = edges
        return cls(by_x, by_y, cells, cuts)


def round_cuts(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """For each gap the number in (below, above] with the fewest decimals, nearest to the middle.

    A line at a round number is shorter to write, and unlike one at a coordinate or halfway between two of them it
    says little about where the nearest person is.
    """
    middle = below + (above - below) / 2
    found = above.copy()
    open_ = np.ones(below.size, bool)
    for digits in range(-12, 18):
        with np.errstate(over="ignore", invalid="ignore"):
            if digits < 0:
                c = np.round(middle / 10.0**-digits) * 10.0**-digits
            else:
                c = np.round(middle * 10.0**digits) / 10.0**digits
        fits = open_ & (below < c) & (c <= above)
        found[fits] = c[fits] + 0.0
        open_ &= ~fits
        if not open_.any():
            break
    return found


def bounds_of(cells: Cells) -> np.ndarray:
    """float64[m, 4]: x low, y low, x high, y high of each cell, infinite where unbounded; low closed, high open."""
    lines = np.append(round_cuts(cells.cuts[:, 1], cells.cuts[:, 2]), np.nan)
    edges = cells.cells[:, EDGES]
    bounds = lines[edges]
    unbounded = np.broadcast_to([-np.inf, -np.inf, np.inf, np.inf], edges.shape)
    return np.where(edges < 0, unbounded, bounds)


def boxes_of(places: Places, cells: Cells) -> np.ndarray:
    """float64[m, 4]: the tight box of each cell's places."""
    low, high = cells.cells[:, LOW], cells.cells[:, HIGH] - 1
    x, y = places.x[cells.by_x], places.y[cells.by_y]
    return np.stack([x[low], y[low], x[high], y[high]], axis=1)
