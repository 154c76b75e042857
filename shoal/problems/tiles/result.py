"""Tiles: the answer of the problem, and the conditions on tiles other than weight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.arguments import known, no_effect, number, seed_of, whole_number
from shoal.model.cards import Shown, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate
from shoal.model.conditions import TILE_CONDITIONS
from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.tiles.cells import round_cuts
from shoal.problems.tiles.places import Places, holding, lines_of

__all__ = ["drawn", "longer_side", "trimmed"]


EXTENTS, CENTERS, SPARSE = (TILE_CONDITIONS[name].setting.words for name in ("extent", "center", "sparse"))


class Conditions(TypedDict, total=False):
    """Keywords of ``split`` for what a tile must satisfy and how it is published; all are optional.

    boundary     n values: no tile has points of two of them. A tile is then a value and a rectangle. Rectangles of
                 different values can overlap, because states do not end at straight lines
    sensitive    n values, with l (at most 1 / l of a tile's records share one) or distinct_l (that many different ones)
    person, household  n values: k counts different persons, households, or both; each point is one record
    max_width    longest side of a published tile: km if geographic, otherwise units of the coordinates
    grid         the sides of tiles are multiples of this, in units of the coordinates
    extent       "plane": tiles cover it, and the outer ones have no end; "data": each ends near its outermost points.
                 Default: "plane", but "data" with max_width and drawn centers
    center       "mean" of a tile's points, or "draw": a random place in the published rectangle
    sparse       "refuse", or "leave-out": records that fit no tile get the label -1
    seed         of the drawn centers; None: fresh
    """

    boundary: Any
    sensitive: Any
    l: float | None
    distinct_l: int | None
    person: Any
    household: Any
    max_width: float | None
    grid: float | None
    extent: str | None
    center: str
    sparse: str
    seed: int | None


class TileTerms(NamedTuple):
    """The settings of ``split`` other than k, checked.

    l, distinct_l        diversity of the sensitive values, None if not requested
    units                what k counts in addition to records: "persons", "households"
    max_width            km or units of the coordinates, None: any
    extent, center       how tiles are published;  seed: of drawn centers
    leave_out            records that fit no tile are left out
    sides                value of the boundary for each side, None: no boundary
    """

    l: float | None = None
    distinct_l: int | None = None
    units: tuple[str, ...] = ()
    max_width: float | None = None
    extent: str = "plane"
    center: str = "mean"
    seed: int | None = None
    leave_out: bool = False
    sides: tuple[Any, ...] | None = None

    @property
    def limited(self) -> bool:
        """Whether there are conditions other than weight."""
        return bool(self.l or self.distinct_l or self.units or self.max_width)

    @property
    def at_least(self) -> int:
        """The least number of records of a diverse tile: one for each required value."""
        return max(1, math.ceil((self.l or 1) - 1e-9), self.distinct_l or 1)

    def words(self) -> list[str]:
        """Names of the settings that only some methods support, as the caller wrote them."""
        own = {"sensitive": self.l or self.distinct_l, "max_width": self.max_width}
        return [name for name, given in own.items() if given] + [unit.removesuffix("s") for unit in self.units]


def terms_of(given: Conditions, weights: Any, n: int) -> tuple[TileTerms, np.ndarray | None]:
    """Checked settings, and the side of the boundary of each of n points; PolicyError for contradictions."""
    side, values = (None, None) if (boundary := given.get("boundary")) is None else coded(boundary, n, "boundary")
    l, distinct_l, max_width = given.get("l"), given.get("distinct_l"), given.get("max_width")
    extent, center, sparse = given.get("extent"), given.get("center", "mean"), given.get("sparse", "refuse")
    for word, what, words in ((center, "center", CENTERS), (sparse, "way with records in no tile", SPARSE)):
        known(what, word, words)
    if extent is not None:
        known("extent", extent, EXTENTS)
    if (given.get("sensitive") is None) != (l is None and distinct_l is None):
        raise PolicyError(
            "sensitive values and l belong together: give ⟨sensitive=COLUMN⟩ with ⟨l=2⟩ or ⟨distinct_l=2⟩, or neither"
        )
    l = None if l is None else number("l", l, "a number of at least 1", lambda x: x >= 1)
    distinct_l = None if distinct_l is None else whole_number("distinct_l", distinct_l)
    units = tuple(
        unit for unit, which in (("persons", "person"), ("households", "household")) if given.get(which) is not None
    )
    if units and weights is not None:
        raise PolicyError(
            f"⟨weights=⟩ count records, and with ⟨{units[0][:-1]}=⟩ each point is one record; leave one out"
        )
    if units and l is not None:
        raise PolicyError(
            f"⟨l=⟩ counts records, and with ⟨{units[0][:-1]}=⟩ a person with many rows would count often; "
            "use ⟨distinct_l=⟩"
        )
    if max_width is not None:
        says = "a width is a number above 0 (km, or units of the coordinates)"
        max_width = number("max_width", max_width, says, lambda x: x > 0)
    if extent == "plane" and (max_width is not None or center == "draw"):
        which = "⟨max_width⟩" if max_width is not None else "⟨center='draw'⟩"
        raise PolicyError(f"{which} needs tiles with ends; leave ⟨extent=⟩ out, or say ⟨extent='data'⟩")
    extent = extent or ("data" if max_width is not None or center == "draw" else "plane")
    seed = seed_of(given.get("seed"))
    if seed is not None and center != "draw":
        raise no_effect(f"seed={seed}", "⟨center='draw'⟩")
    return TileTerms(l, distinct_l, units, max_width, extent, center, seed, sparse == "leave-out", values), side


def coded(values: Any, n: int, name: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Codes of values, one for each of n points, and the distinct values; a missing value counts as a value."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be one value for each of the {n:,} points")
    given = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(given) != n:
        raise InputError(f"{name} must be one value for each of the {n:,} points; there are {len(given):,}")
    given = [None if v is None or v != v else v for v in given]
    try:
        known = sorted(set(given), key=lambda v: (v is not None, type(v).__name__, v))
    except TypeError:
        raise InputError(f"{name} must be numbers or texts, one for each point") from None
    number = {v: i for i, v in enumerate(known)}
    return np.array([number[v] for v in given], np.int64), tuple(known)


def judged_by(places: Places, asked: TileTerms, k: int, columns: list[tuple[str, Any]], w: np.ndarray) -> Places:
    """Places with their values in the sensitive column, and in those that identify persons."""
    codes, rules = [], []
    for name, values in columns:
        code, known = coded(values, places.inverse.size, name)
        unit = name in ("person", "household")
        if unit and None in known:
            raise InputError(f"{name} does not name one in every row; fill it, or leave those rows out")
        codes.append(code)
        share = 0.0 if unit or asked.l is None else asked.l
        rules.append((k, share, True) if unit else (max(asked.distinct_l or 1, 1), share, False))
    return replace(places, held=holding(places, codes, w, rules)) if codes and places.x.size else places


def require_able(places: Places, asked: TileTerms, k: int) -> None:
    """Raise InfeasibleError unless every side of the boundary can be one tile, ignoring its width."""
    if asked.leave_out:
        return
    few = unable = records = 0
    parts = [places.some(which) for which in places.sides()]
    for part in parts:
        if part.total < k:
            few, records = few + 1, records + part.total
        elif part.held is not None and not part.held.able(part.total):
            unable += 1
    if few:
        raise InfeasibleError(
            f"{few:,} of {len(parts):,} values of the boundary have fewer than k = {k:,} records, {records:,} in all, "
            "so no tile of one value exists; lower k, join values, or leave those records out with ⟨sparse='leave-out'⟩"
        )
    if unable:
        what = [f"at most 1/{asked.l:g} of its records with one sensitive value"] if asked.l else []
        what += [f"{asked.distinct_l:,} different sensitive values"] if asked.distinct_l else []
        what += [f"{k:,} different {unit}" for unit in asked.units]
        where = "the table as a whole does" if asked.sides is None else f"{unable:,} sides of the boundary do"
        raise InfeasibleError(
            f"{where} not hold what a tile must ({' and '.join(what)}), so no tile exists; lower l or k, or leave "
            "records out with ⟨sparse='leave-out'⟩"
        )


PLAIN = TileTerms()


@dataclass(frozen=True, eq=False, repr=False)
class Tiles(Shown):
    """Rectangles with at least k records each, which cover the plane unless they end at the data.

    labels       int64[n]: tile of each point, -1 if it was left out; tiles are numbered by the west sides of their
                 boxes
    bounds       float64[m, 4]: x low, y low, x high, y high; a point is in its tile if low <= coordinate < high.
                 Infinite if the tile is unbounded. Geographic coordinates: x low > x high if the tile crosses longitude
                 180
    boxes        float64[m, 4]: the same for the bounding box of the tile's points. Its sides are people's coordinates:
                 use them to measure, and don't publish them
    counts       int64[m]: records in each tile
    centers      float64[m, 2]: mean of the tile's points, or a random place in it
    k            int: requested least number of records
    method, objective        as requested, or as "auto" chose
    coordinates  "projected" or "geographic"
    seam         longitude at which the sphere was cut: no tile crosses it; None: longitude 180
    cost         int: records in the largest tile
    certificate  of the cost; its details have the number of tiles with its upper bound, and their size
    boundary     the boundary value of each tile, m values; None without a boundary. Tiles with different values may
                 overlap
    asked        the other settings as checked;  grid: distance of the lines on which sides are, or None
    units        "persons" and "households" if k counts them: int64[m], the number of different ones in each tile
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
    asked: TileTerms = PLAIN
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
        """A text for each tile: ``-0.15..-0.1 51.5..51.52``, x first; an unbounded end is empty."""
        return names_of(self.bounds)

    def contains(self, tile: int, points: np.ndarray) -> np.ndarray:
        """bool[n]: which of the points float[n, 2] lie in a tile's rectangle."""
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
    """Texts for bounds float64[m, 4], equal if and only if the bounds are."""

    def text(v: float) -> str:
        if not np.isfinite(v):
            return ""
        return str(int(v)) if v == int(v) and abs(v) < 1e15 else repr(float(v))

    texts = {v: text(v) for v in np.unique(bounds)}
    return [f"{texts[a]}..{texts[c]} {texts[b]}..{texts[d]}" for a, b, c, d in bounds]


def trimmed(
    bounds: np.ndarray, boxes: np.ndarray, *, grid: Fraction | None, width: float | None, geographic: bool
) -> np.ndarray:
    """Bounds float64[m, 4], moved inwards to the bounding boxes float64[m, 4] of the tiles' points, and never outwards.

    A side moves to a round number within a tenth of the tile from its outermost point, or to the next line of a grid.
    This reveals less about the point than its own coordinate. With a width, the longer side is at most that.

    boxes  with a grid, those of the low corners of the points' squares
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
    wide = np.ones(len(boxes), bool)  # tiles that aren't placed yet
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
    """The longer side of rectangles float64[m, 4]: in km at their widest latitude if geographic."""
    size = bounds[:, 2:] - bounds[:, :2]
    if geographic:
        south, north = bounds[:, 1], bounds[:, 3]
        flat = np.where((south <= 0) & (north >= 0), 0.0, np.minimum(np.abs(south), np.abs(north)))
        size = size * KM_PER_DEGREE
        size[:, 0] *= np.cos(np.deg2rad(flat))
    return size.max(axis=1)


def drawn(bounds: np.ndarray, seed: int | None) -> np.ndarray:
    """float64[m, 2]: a uniformly random place in each rectangle, so it reveals nothing beyond the rectangle."""
    share = np.random.default_rng(seed).random((len(bounds), 2))
    low, high = bounds[:, :2], bounds[:, 2:]
    return np.minimum(low + share * (high - low), np.nextafter(high, low))
