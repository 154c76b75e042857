"""Distinct places with weights, from points; longitudes are unwrapped so that the date line is no border."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.arguments import coordinates as coordinates_of
from shoal.model.arguments import known, mapping, no_numbers, number, whole_number
from shoal.model.cards import several
from shoal.model.metric import kind_of

COORDINATES = ("projected", "geographic")


@dataclass(frozen=True, eq=False)
class Places:
    """The distinct places of the points, sorted by x and then by y.

    x, y        float64[p]: coordinates; longitudes east of the seam, so they may exceed 180 degrees
    weight      int64[p]: records at each place
    inverse     int64[n]: place of each point
    geographic  bool: x is a longitude and y a latitude
    seam        float: longitude at which the plane is cut; -inf: nothing was unwrapped
    west        float: least longitude in the user's own range: -180 or 0
    side        int64[p]: side of the boundary of each place, numbered from 0; None: no boundary
    grid        Fraction: distance of the lines on which cuts are; x, y are then the low corners of its squares. None:
                no grid
    own         float64[n, 3]: the points and their weights if places are squares of a grid; None: the points are the
                places
    held        the values at each place in the columns that tiles are judged by; None: tiles have only weights
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    inverse: np.ndarray
    geographic: bool
    seam: float
    west: float
    side: np.ndarray | None = None
    grid: Fraction | None = None
    own: np.ndarray | None = None
    held: PlaceContents | None = None

    @property
    def step(self) -> float:
        """The width of a place: that of a square of the grid, else 0."""
        return 0.0 if self.grid is None else float(self.grid)

    def sides(self) -> list[np.ndarray]:
        """The places of each side of the boundary, in order."""
        if self.side is None:
            return [np.arange(self.x.size)]
        order = np.argsort(self.side, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.side[order])) + 1)

    def some(self, which: np.ndarray) -> Places:
        """Some of the places, as one side of the boundary, without their points."""
        held = None if self.held is None else self.held.some(which)
        return replace(
            self, x=self.x[which], y=self.y[which], weight=self.weight[which], inverse=np.zeros(0, np.int64),
            side=None, held=held,
        )  # fmt: skip

    @property
    def total(self) -> int:
        """The weight of all places."""
        return int(self.weight.sum())


def as_places(
    points: Any,
    weights: Any = None,
    coordinates: str = "projected",
    *,
    side: np.ndarray | None = None,
    grid: float | None = None,
    decimal: Mapping[str, str] | None = None,
) -> Places:
    """Check points float[n, 2] and weights int[n], and merge coincident points of one side. O(n log n).

    side     int64[n]: side of the boundary of each point, 0 .. q - 1
    grid     points in one square are one place
    decimal  column of a frame of points whose numbers are texts -> its decimal mark
    """
    known("kind of coordinates", coordinates, COORDINATES)
    p = coordinates_of(points, "points", decimal)
    names = list(points.columns) if hasattr(points, "columns") else []
    if names and p.shape[1:] != (2,):
        raise InputError(
            f"points have two columns, x and y or longitude and latitude, and this frame has {len(names):,}; pass two, "
            "such as frame[['lon', 'lat']]"
        )
    if names and coordinates == "geographic" and kind_of(str(names[1]), str(names[0])) == "geographic":
        raise PolicyError(
            f"{names[0]!r} is a column of latitudes and {names[1]!r} one of longitudes; exchange the two: "
            f"frame[[{names[1]!r}, {names[0]!r}]]"
        )
    if p.ndim != 2 or p.shape[1] != 2:
        raise InputError(f"points must be an array of shape (n, 2), x and y; this one has shape {p.shape}")
    if not np.isfinite(p).all():
        bad = ~np.isfinite(p)
        if names:
            j = int(bad.any(axis=0).argmax())
            raise no_numbers(str(names[j]), bad[:, j], points[names[j]], mapping("decimal", decimal).get(str(names[j])))
        amount = several(int(bad.any(axis=1).sum()), "point")
        raise InputError(f"a coordinate is not a finite number in {amount}; repair or remove them")
    n = p.shape[0]
    w = np.ones(n, np.int64) if weights is None else _whole(weights, n)
    x, y = p[:, 0] + 0.0, p[:, 1] + 0.0  # + 0.0 makes negative zero positive
    geographic, seam, west = coordinates == "geographic", -np.inf, -180.0
    step, own = None, None
    if grid is not None:
        step = grid_of(grid, geographic)
        x, y, own = _squares(x, y, w, step, geographic)
    if geographic and n:
        x, seam, west = _unwrapped(x, y, step)
    if own is not None:  # a point is shifted together with its square
        own[:, 0] += np.round((x - own[:, 0]) / 360) * 360 if geographic else 0.0
    z = np.empty(n, np.complex128)
    z.real, z.imag = x, y
    order = np.argsort(z) if side is None else np.lexsort((side, y, x))
    z = z[order]
    new = np.ones(n, bool)
    new[1:] = z[1:] != z[:-1]
    if side is not None:
        new[1:] |= side[order][1:] != side[order][:-1]
    inverse = np.empty(n, np.int64)
    inverse[order] = np.cumsum(new) - 1
    at = np.flatnonzero(new)
    weight = np.add.reduceat(w[order], at) if n else w
    return Places(
        np.ascontiguousarray(z.real[at]), np.ascontiguousarray(z.imag[at]), weight, inverse, geographic, seam, west,
        None if side is None else side[order][at], step, own,
    )  # fmt: skip


class PlaceContents(NamedTuple):
    """The values at places in the columns that tiles are judged by.

    start, code, amount  int64[p + 1], int64[i], int64[i]: the values of each place and their weights
    column               int64[v]: column of each value
    need, share, unit    int64[c], float64[c], bool[c]: least number of different values; largest weight of one value as
                         1 / share of the weight (0: any); whether the column identifies persons, which k then counts
    """

    start: np.ndarray
    code: np.ndarray
    amount: np.ndarray
    column: np.ndarray
    need: np.ndarray
    share: np.ndarray
    unit: np.ndarray

    def some(self, which: np.ndarray) -> PlaceContents:
        """The values at some of the places, renumbered."""
        size = np.diff(self.start)[which]
        start = np.concatenate([[0], np.cumsum(size)])
        at = np.repeat(self.start[which] - start[:-1], size) + np.arange(start[-1])
        known, code = np.unique(self.code[at], return_inverse=True)
        return self._replace(
            start=start, code=code.reshape(-1).astype(np.int64), amount=self.amount[at], column=self.column[known]
        )

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[v] each: the weight of each value, and the number of places that have it."""
        weight = np.zeros(self.column.size, np.int64)
        np.add.at(weight, self.code, self.amount)
        return weight, np.bincount(self.code, minlength=self.column.size)

    def able(self, weight: int) -> bool:
        """Whether all places together are eligible, apart from k."""
        held, _ = self.sums()
        most, seen = np.zeros(self.need.size), np.bincount(self.column[held > 0], minlength=self.need.size)
        np.maximum.at(most, self.column, held)
        return bool((seen >= self.need).all() and (most * self.share <= weight * (1 + 1e-12)).all())


def holding(
    places: Places, codes: list[np.ndarray], w: np.ndarray, asked: list[tuple[int, float, bool]]
) -> PlaceContents:
    """The values at places in columns int64[n] of codes, with weights int64[n].

    asked  need, share, and unit of each column
    """
    found, column, base = [], [], 0
    for c, code in enumerate(codes):
        values = int(code.max()) + 1
        key = places.inverse * values + code
        pairs, at = np.unique(key[w > 0], return_inverse=True)
        amount = np.bincount(at, weights=w[w > 0], minlength=pairs.size).astype(np.int64)
        found.append(np.stack([pairs // values, pairs % values + base, amount]))
        column.append(np.full(values, c))
        base += values
    place, code, amount = np.concatenate(found, axis=1)
    order = np.argsort(place, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=places.x.size))])
    need, share, unit = zip(*asked, strict=True)
    return PlaceContents(
        start.astype(np.int64), np.ascontiguousarray(code[order]), np.ascontiguousarray(amount[order]),
        np.concatenate(column), np.array(need, np.int64), np.array(share, np.float64), np.array(unit, np.bool_),
    )  # fmt: skip


def grid_of(grid: Any, geographic: bool) -> Fraction:
    """The step as the exact decimal number that was written."""
    size = number("grid", grid, "a step is a number above 0, in the unit of the coordinates", lambda x: x > 0)
    step = Fraction(repr(size))
    if geographic and (180 / step).denominator != 1:
        raise PolicyError(f"a grid of {size:g} degrees does not divide 180 degrees; choose one such as 0.01")
    return step


def lines_of(index: np.ndarray, step: Fraction) -> np.ndarray:
    """The coordinates of a grid's lines: for each, the float closest to index times step."""
    known, back = np.unique(index, return_inverse=True)
    return np.array([float(int(i) * step) for i in known.tolist()], np.float64)[back.reshape(index.shape)]


def index_of(values: np.ndarray, step: Fraction, origin: float = 0.0) -> np.ndarray:
    """The index of the square of each coordinate, where a coordinate is the exact decimal number that was written."""
    start = Fraction(repr(float(origin)))
    with np.errstate(over="ignore"):
        ratio = (values - origin) / float(step)
    if values.size and np.abs(ratio).max() > 2**52:
        raise InputError(f"a grid of {float(step):g} is too fine for coordinates as large as these; use a larger one")
    found = np.floor(ratio).astype(np.int64)
    for i in np.flatnonzero(np.abs(ratio - np.round(ratio)) < 1e-6):  # too close to a line to rely on floats
        found[i] = (Fraction(repr(float(values[i]))) - start) // step
    return found


def _squares(x: np.ndarray, y: np.ndarray, w: np.ndarray, step: Fraction, geographic: bool) -> tuple[np.ndarray, ...]:
    """The low corners of the points' squares, and the points."""
    own = np.stack([x, y, w], axis=1)
    if geographic and x.size:
        _in_range(x, y)
    return lines_of(index_of(x, step), step), lines_of(index_of(y, step), step), own


def _in_range(x: np.ndarray, y: np.ndarray) -> None:
    wrong = int((np.abs(y) > 90).sum())
    if wrong:
        raise InputError(
            f"latitudes must be within -90..90, and {wrong:,} are not; points are (longitude, latitude), and projected "
            "coordinates need ⟨coordinates='projected'⟩"
        )
    wrong = int(((x < -180) | (x > 360)).sum())
    if wrong or (x.min() < 0 and x.max() > 180):
        problem = f", and {wrong:,} are not" if wrong else "; these are of both kinds"
        raise InputError(f"longitudes must be within -180..180 or 0..360{problem}")


def require(places: Places, k: int) -> int:
    """k as a checked int: at least 1, and at most the number of records."""
    least = whole_number("k", k)
    if places.total < least:
        raise InfeasibleError(
            f"there {'is' if places.total == 1 else 'are'} {several(places.total, 'record')} in all, fewer than "
            f"k = {least:,}, so no tile exists; lower k"
        )
    return least


def _whole(weights: Any, n: int) -> np.ndarray:
    w = np.asarray(weights)
    if w.shape != (n,):
        raise InputError(f"weights must be one number for each of the {n:,} points; this array has shape {w.shape}")
    if w.dtype.kind not in "iub":
        try:
            f = w.astype(np.float64)
        except (TypeError, ValueError):
            raise InputError("weights must be whole numbers: how many records are at each point") from None
        if not (np.isfinite(f).all() and (f == np.floor(f)).all()):
            raise InputError("weights must be whole numbers: how many records are at each point; round them first")
        w = f
    if n and (w.min() < 0 or float(w.astype(np.float64).sum()) > 2**62):
        raise InputError("weights must not be negative, nor sum to more than 2^62")
    return w.astype(np.int64)


def _unwrapped(x: np.ndarray, y: np.ndarray, step: Fraction | None = None) -> tuple[np.ndarray, float, float]:
    """Longitudes eastwards from the middle of the widest empty interval.

    The seam, and the least longitude of the range in use.
    """
    if step is None:
        _in_range(x, y)
    high = x.max()
    west = 0.0 if high > 180 else -180.0
    x = np.where(x >= west + 360, x - 360, x)  # 180 is -180, and 360 is 0: the same meridian
    around = np.unique(x)
    gaps = np.diff(around, append=around[0] + 360)
    widest = int(gaps.argmax())
    if widest == around.size - 1:
        return x, -np.inf, west
    seam = float(around[widest] + gaps[widest] / 2)
    if step is not None:  # on a line of the grid, at least a square's width from the western point
        seam = float(-(-Fraction(seam) // step) * step)
    return np.where(x < seam, x + 360, x), seam, west
