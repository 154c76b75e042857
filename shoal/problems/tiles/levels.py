"""Places as a hierarchy, fine to coarse: tiles within tiles, or the cells of grids whose sizes divide each other."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.model.effort import Effort
from shoal.problems.tiles.cells import Cells
from shoal.problems.tiles.places import Places, as_places, index_of, require
from shoal.problems.tiles.result import Tiles, names_of
from shoal.problems.tiles.search import least_waste
from shoal.problems.tiles.split import EFFORTS, finish
from shoal.watching import watched, within

EVERYWHERE = "*"


@dataclass(frozen=True, eq=False)
class PlaceLevels:
    """A hierarchy over the distinct places of a coordinate pair.

    places    float[p, 2]     the distinct coordinates
    inverse   int64[n]        place of each point given
    codes     int64[p, L]     region of each place at each level, fine to coarse; regions of a level are nested in the
              next level's
    names     L lists of str  name of each region of a level
    tiles     the Tiles of each level, fine to coarse; empty for a grid
    """

    places: np.ndarray
    inverse: np.ndarray
    codes: np.ndarray
    names: tuple[tuple[str, ...], ...]
    tiles: tuple[Tiles, ...] = ()

    @property
    def labels(self) -> list[list[str]]:
        """For every place its region's names from fine to coarse, last ``*``."""
        columns = [[names[c] for c in self.codes[:, i]] for i, names in enumerate(self.names)]
        return [[*row, EVERYWHERE] for row in zip(*columns, strict=True)]

    def mapping(self) -> dict[tuple[float, float], list[str]]:
        """Coordinates to the list of names."""
        keys = zip(self.places[:, 0].tolist(), self.places[:, 1].tolist(), strict=True)
        return dict(zip(keys, self.labels, strict=True))

    def write(self, path: str | Path, separator: str = ";") -> None:
        """An ARX-style hierarchy: one line per place, ``x y`` and then its names from fine to coarse."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator, lineterminator="\n")
            for (x, y), names in self.mapping().items():
                writer.writerow([f"{x!r} {y!r}", *names])


@watched
def levels(
    points: Any,
    ks: Sequence[int],
    weights: Any = None,
    *,
    coordinates: str = "projected",
    objective: str = "tiles",
    effort: str | float = "balanced",
) -> PlaceLevels:
    """Nested tiles: the largest k is cut first, and each of its tiles is cut again for the next smaller k.

    ks  any distinct k; tiles of level i, fine to coarse, hold at least the i-th smallest
    """
    places = as_places(points, weights, coordinates)
    wanted = sorted({require(places, k) for k in ks})
    if not wanted:
        raise PolicyError("levels of tiles need at least one k")
    found: list[Tiles] = []
    seconds, cells = Effort.of(effort).among(EFFORTS), None
    for i, k in enumerate(reversed(wanted)):
        with within(i / len(wanted), (i + 1) / len(wanted)):
            parts, details = least_waste(places, k, objective, effort=seconds / len(wanted), start=cells)
        found.append(finish(places, parts, k, "least_waste", objective, details))
        cells = Cells.of(places, parts.labels, parts.edges, parts.cuts)
    found.reverse()
    first = np.zeros(places.x.size, np.int64)
    first[places.inverse] = np.arange(places.inverse.size)
    return PlaceLevels(
        places=_original(places),
        inverse=places.inverse,
        codes=np.stack([t.labels[first] for t in found], axis=1),
        names=tuple(tuple(t.names()) for t in found),
        tiles=tuple(found),
    )


def grid(
    points: Any,
    sizes: Sequence[float],
    *,
    origin: tuple[float, float] = (0.0, 0.0),
    coordinates: str = "projected",
) -> PlaceLevels:
    """Squares of the given sizes, each a whole multiple of the one before, in the coordinates' own unit.

    Coordinates and sizes are read as the decimal numbers they are written as, so that 0.3 lies on the line at 0.3 of a
    grid of 0.1.  A square holds its low sides.
    """
    places = as_places(points, None, coordinates)
    if not len(sizes) or not all(math.isfinite(s) and s > 0 for s in sizes):
        raise PolicyError(f"sizes of the grid are {list(sizes)}; they must be positive numbers, at least one")
    exact = [Fraction(repr(float(s))) for s in sizes]
    for small, large in pairwise(exact):
        if (large / small).denominator != 1 or large <= small:
            raise PolicyError(
                f"a grid of {float(large):g} is no whole multiple of {float(small):g}, so its squares are not nested; "
                "choose sizes such as 0.01, 0.05, 0.5"
            )
    own = _original(places)
    index = np.stack([index_of(own[:, i], exact[0], origin[i]) for i in (0, 1)], axis=1)
    codes, names = [], []
    for size in exact:
        at, code = np.unique(index // int(size / exact[0]), axis=0, return_inverse=True)
        codes.append(code.reshape(-1))
        names.append(tuple(_square(i, j, size, origin) for i, j in at.tolist()))
    return PlaceLevels(own, places.inverse, np.stack(codes, axis=1), tuple(names))


def _original(places: Places) -> np.ndarray:
    """The distinct places in the user's own range of longitudes."""
    x = np.where(places.x >= places.west + 360, places.x - 360, places.x) if places.geographic else places.x
    return np.stack([x, places.y], axis=1)


def _square(i: int, j: int, size: Fraction, origin: tuple[float, float]) -> str:
    lines = [
        [float(Fraction(repr(float(o))) + (n + step) * size) for step in (0, 1)]
        for n, o in ((i, origin[0]), (j, origin[1]))
    ]
    return names_of(np.array([[lines[0][0], lines[1][0], lines[0][1], lines[1][1]]]))[0]
