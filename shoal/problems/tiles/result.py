"""Tiles as the user gets them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.cards import Shown, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate
from shoal.problems.tiles.conditions import Terms

PLAIN = Terms()


@dataclass(frozen=True, eq=False, repr=False)
class Tiles(Shown):
    """Rectangles with at least k records each, which cover the plane unless they are cut off at the data.

    labels       int64[n]    tile of each point, -1 where it was left out; tiles are numbered by their boxes' west sides
    bounds       float64[m, 4]  x low, y low, x high, y high; a point is in its tile when low <= coordinate < high.
                 Infinite where the tile is unbounded.  Geographic coordinates: x low > x high where the tile lies
                 across the end of the longitudes (180 degrees)
    boxes        float64[m, 4]  the same for the tight box of the tile's points.  Its sides are people's own
                 coordinates: for measuring, not for publishing
    counts       int64[m]    records in each tile
    centers      float64[m, 2]  mean of the tile's points, or a place drawn in it
    k            int         least number of records asked for
    method, objective        as asked for, or as "auto" chose
    coordinates  "projected" or "geographic"
    seam         longitude at which the sphere was slit open: no tile lies across it; None: at the end of the longitudes
    cost         int         records in the largest tile
    certificate  of the cost; its details state the number of tiles with the most there can be, and their size
    boundary     the value of the boundary that each tile lies in, m values; None without one.  Tiles of different
                 values may lie over each other
    asked        the other settings as checked;  grid  step of the lines its sides keep to, or None
    units        of "persons" and "households", those that k counts: int64[m] different ones in each tile
    """

    labels: np.ndarray
    bounds: np.ndarray
    boxes: np.ndarray
    counts: np.ndarray
    centers: np.ndarray
    k: int
    method: str
    objective: str
    coordinates: str
    seam: float | None
    certificate: Certificate
    boundary: tuple[Any, ...] | None = None
    asked: Terms = PLAIN
    grid: float | None = None
    units: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def cost(self) -> int:
        """Records in the largest tile."""
        return int(self.counts.max())

    def __len__(self) -> int:
        return len(self.counts)

    def _lines(self) -> list[str]:
        outside = int((self.labels < 0).sum())
        most = self.certificate.details["tiles_at_most"]
        lines = [
            f"{several(len(self.labels) - outside, 'point')} in {several(len(self), 'tile')}; "
            f"more than {most:,} cannot exist",
            sizes_line("records in a tile", self.counts.tolist(), f"at least k = {self.k:,} asked"),
            *proof_lines(self.certificate, self.method),
        ]
        return [*lines, f"left out: {several(outside, 'point')}"] if outside else lines

    def names(self) -> list[str]:
        """A text for each tile: ``-0.15..-0.1 51.5..51.52``, x first, two dots and nothing where unbounded."""
        return names_of(self.bounds)

    def contains(self, tile: int, points: np.ndarray) -> np.ndarray:
        """Which of the points float[n, 2] lie in a tile's rectangle, bool[n]."""
        p = np.asarray(points, dtype=np.float64)
        if p.ndim != 2 or p.shape[1] != 2:
            raise InputError(f"points must be an array of shape (n, 2), x and y; this one has shape {p.shape}")
        x_low, y_low, x_high, y_high = self.bounds[tile]
        x = p[:, 0]
        if self.coordinates == "geographic" and np.isfinite(x_low) and np.isfinite(x_high):
            inside = (x - x_low) % 360 < ((x_high - x_low) % 360 or 360.0)
        else:
            inside = (x_low <= x) & (x < x_high)
        return inside & (y_low <= p[:, 1]) & (p[:, 1] < y_high)


def names_of(bounds: np.ndarray) -> list[str]:
    """Texts for bounds float64[m, 4], equal where and only where the bounds are."""

    def text(v: float) -> str:
        if not np.isfinite(v):
            return ""
        return str(int(v)) if v == int(v) and abs(v) < 1e15 else repr(float(v))

    texts = {v: text(v) for v in np.unique(bounds)}
    return [f"{texts[a]}..{texts[c]} {texts[b]}..{texts[d]}" for a, b, c, d in bounds]
