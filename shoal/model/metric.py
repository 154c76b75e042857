"""Distances of records that satisfy the triangle inequality by construction.

A metric is one of: a list of features, each a metric on its own columns, joined by a norm; a matrix of distances; or a
function of two records. A norm of weighted metrics is a metric, so it isn't checked. A matrix is checked only by
``Metric.matrix(..., check=True)``.

The columns of the features, in their order, are float64[n] for a ``Number``, int[n] codes for a ``Category``, and
float64[n, 2] for a ``Place`` (latitude and longitude in degrees, or two plane coordinates).

The module also decides, by the names of two columns, whether they are degrees or plane coordinates, and finds
coordinates that are codes for "unknown".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.cards import several

EARTH_KM = 6371.0088
KM_PER_DEGREE = EARTH_KM * math.pi / 180  # length of a degree of a great circle; kernels and the judge define their own
NORMS = ("euclidean", "manhattan", "chebyshev")
LARGEST_MATRIX = 20_000


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric column with the distance |a - b| / scale, times weight. ``unit`` names one unit of the raw value
    ("years").

    period  for cyclic values (24 for hours of the day): the shorter way around counts; 0 for others
    """

    name: str
    scale: float = 1.0
    weight: float = 1.0
    unit: str = ""
    date: bool = False
    period: float = 0.0

    def __post_init__(self) -> None:
        _positive(self.name, self.scale, self.weight)
        if not (math.isfinite(self.period) and self.period >= 0):
            raise PolicyError(f"the period of {self.name!r} is {self.period}; it must be a positive number")

    def around(self, values: np.ndarray) -> np.ndarray:
        """float64[n]: the values; cyclic ones are reduced to at least 0 and below the period."""
        values = np.asarray(values, np.float64)
        if not self.period:
            return values
        turned = np.mod(values, self.period)
        return np.where(turned < self.period, turned, 0.0)

    def apart(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64[n]: the distance of a[i] and b[i] in raw units."""
        far = np.abs(self.around(a) - self.around(b))
        return np.minimum(far, self.period - far) if self.period else far

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64[n]: the weighted distance of a[i] and b[i]."""
        if self.period:
            return self.apart(a, b) / self._unit
        return np.abs(np.asarray(a, np.float64) / self._unit - np.asarray(b, np.float64) / self._unit)

    @property
    def _unit(self) -> float:
        return self.scale / self.weight if self.weight else math.inf

    def describe(self) -> str:
        """One line for a report."""
        unit = self.unit or ("days" if self.date else "units")
        way = f", the shorter way around {_short(self.period)}" if self.period else ""
        return f"{self.name}: {_counting_one(self._unit, unit)}{way}" if self.weight else f"{self.name}: not counted"


@dataclass(frozen=True, slots=True, eq=False)
class Category:
    """A categorical column of codes 0 .. values - 1.

    Without levels, any two different values have distance 1. With levels int[values, h], a hierarchy from the most
    specific level up, two values have the height of the lowest level at which they agree as their distance, 1 at the
    root. This is an ultrametric. Both distances are multiplied by weight.
    """

    name: str
    values: int
    weight: float = 1.0
    levels: np.ndarray | None = None
    tree: np.ndarray = field(init=False)  # int64[values, depth]: from the values themselves to the root
    heights: np.ndarray = field(init=False)  # float64[depth]: from 0 at the leaves to weight at the root

    def __post_init__(self) -> None:
        _positive(self.name, 1.0, self.weight)
        if self.values < 1:
            raise InputError(f"column {self.name!r} has {self.values} values; a category needs one at least")
        own, root = np.arange(self.values), np.zeros(self.values, np.int64)
        tree = [own]
        if self.levels is not None:
            given = np.asarray(self.levels)
            if given.ndim != 2 or given.shape[0] != self.values:
                raise InputError(
                    f"the hierarchy of {self.name!r} has shape {given.shape}; it needs {self.values} rows, one a value"
                )
            for level in given.T:
                _, codes = np.unique(level, return_inverse=True)
                classes = int(codes.max()) + 1
                if classes < int(tree[-1].max()) + 1:
                    pairs = np.unique(tree[-1] * np.int64(classes) + codes)
                    if pairs.size != int(tree[-1].max()) + 1:
                        raise InputError(
                            f"the hierarchy of {self.name!r} is not nested: one class lies in two of the next level"
                        )
                    tree.append(codes.astype(np.int64))
                elif classes > int(tree[-1].max()) + 1:
                    raise InputError(f"the hierarchy of {self.name!r} has more classes on a higher level")
        if tree[-1].max() > 0 or len(tree) == 1:
            tree.append(root)
        object.__setattr__(self, "tree", np.ascontiguousarray(np.stack(tree, axis=1).astype(np.int64)))
        object.__setattr__(self, "heights", self.weight * np.arange(len(tree)) / (len(tree) - 1))

    @property
    def depth(self) -> int:
        """Number of levels with the values themselves and the root; 2 if all values are equidistant."""
        return int(self.tree.shape[1])

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64[n]: the weighted distance of the codes a[i] and b[i]."""
        apart = self.tree[np.asarray(a, np.int64)] != self.tree[np.asarray(b, np.int64)]
        return self.heights[apart.sum(axis=-1)]

    def describe(self) -> str:
        """One line for a report."""
        if not self.weight:
            return f"{self.name}: not counted"
        if self.depth == 2:
            return f"{self.name}: {self.values} categories, different ones {_short(self.weight)} apart"
        levels = f"{self.values} categories in a hierarchy of {self.depth} levels"
        return f"{self.name}: {levels}, the root counts {_short(self.weight)}"


@dataclass(frozen=True, slots=True)
class Place:
    """Two coordinates. geometry "great-circle": latitude and longitude in degrees, with the distance on the sphere in
    kilometers; "plane": the Euclidean distance in ``unit``. Divided by scale, times weight."""

    name: str
    scale: float = 1.0
    weight: float = 1.0
    unit: str = "km"
    geometry: str = "great-circle"

    def __post_init__(self) -> None:
        _positive(self.name, self.scale, self.weight)
        if self.geometry not in ("great-circle", "plane"):
            raise PolicyError.unknown("geometry", self.geometry, ["great-circle", "plane"])

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64[n]: the weighted distance of the places a[i] and b[i]."""
        factor = self.weight / self.scale
        if self.geometry == "plane":
            return np.hypot(
                *np.moveaxis(np.asarray(a, np.float64) * factor - np.asarray(b, np.float64) * factor, -1, 0)
            )
        chord = np.sqrt(((on_sphere(a) - on_sphere(b)) ** 2).sum(axis=-1))
        return factor * 2 * EARTH_KM * np.arcsin(np.minimum(1.0, chord / 2))

    def describe(self) -> str:
        """One line for a report."""
        way = "over the sphere" if self.geometry == "great-circle" else "in the plane"
        return (
            f"{self.name}: distance {way}, {_counting_one(self.scale / self.weight, self.unit)}"
            if self.weight
            else f"{self.name}: not counted"
        )


Feature = Number | Category | Place


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Metric:
    """The distance of records: features joined by a norm, a matrix, or a function.

    features   one for each column (a Place has two coordinates in one column of shape [n, 2])
    norm       "euclidean" (root of the sum of squares), "manhattan" (sum), or "chebyshev" (maximum)
    distances  float64[n, n], instead of features
    function   f(x, y) -> distance of two records, or with blocks=True f(X, Y) -> float64[len(X), len(Y)]
    unit       name of the unit of distance
    """

    features: tuple[Feature, ...] = ()
    norm: str = "euclidean"
    distances: np.ndarray | None = None
    function: Callable[..., Any] | None = None
    blocks: bool = False
    unit: str = "units"

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise PolicyError.unknown("norm", self.norm, NORMS)
        if sum((bool(self.features), self.distances is not None, self.function is not None)) != 1:
            raise PolicyError("a metric is features, or a matrix of distances, or a function: exactly one of them")

    @classmethod
    def numbers(cls, dimensions: int, norm: str = "euclidean", unit: str = "units") -> Metric:
        """The metric of plain, unscaled coordinates."""
        return cls(features=tuple(Number(f"column {j}") for j in range(dimensions)), norm=norm, unit=unit)

    @classmethod
    def great_circle(cls) -> Metric:
        """The metric of latitude and longitude in degrees, in kilometers on the sphere."""
        return cls(features=(Place("place"),), unit="km")

    @classmethod
    def matrix(cls, distances: Any, *, check: bool = False, unit: str = "units") -> Metric:
        """A metric from a matrix of distances float[n, n], symmetric, with a zero diagonal.

        check=True also tests the triangle inequality, in O(n^3) time and O(n^2) space.
        """
        table = np.ascontiguousarray(distances, dtype=np.float64)
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise InputError(f"a matrix of distances is square; this one has shape {table.shape}")
        if not np.isfinite(table).all() or (table < 0).any():
            raise InputError("a matrix of distances holds a negative, missing or infinite entry")
        if (np.diagonal(table) != 0).any() or not np.array_equal(table, table.T):
            raise InputError("a matrix of distances is symmetric with zeros on its diagonal; this one is not")
        if check:
            slack = 1e-9 * max(1.0, float(table.max(initial=0.0)))
            for way in range(len(table)):
                if (table > table[:, way, None] + table[way] + slack).any():
                    raise InputError(
                        "the distances break the triangle inequality: some pair is farther apart than by way of "
                        f"point {way}; "
                        "use shortest paths between the points instead"
                    )
        return cls(distances=table, unit=unit)

    @classmethod
    def pairwise(cls, function: Callable[..., Any], *, blocks: bool = False, unit: str = "units") -> Metric:
        """A metric from a function of two records, or with blocks=True of two blocks of records. For at most 20,000
        points."""
        return cls(function=function, blocks=blocks, unit=unit)

    def between(self, a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> np.ndarray:
        """float64[n]: the distance of record i of columns a and record i of columns b; only for features."""
        if not self.features:
            raise PolicyError("distances of new records need a metric made of features")
        parts = [f.between(x, y) for f, x, y in zip(self.features, a, b, strict=True)]
        if self.norm == "euclidean":
            return parts[0] if len(parts) == 1 else np.sqrt(sum(np.square(p) for p in parts))
        return np.asarray(sum(parts)) if self.norm == "manhattan" else np.maximum.reduce(parts)

    def check(self, columns: Sequence[np.ndarray]) -> None:
        """InputError with the name of the first column of a wrong shape, or with a value that is no finite number or
        code."""
        if len(columns) != len(self.features):
            raise InputError(f"the metric has {len(self.features)} features and {len(columns)} columns were given")
        for feature, column in zip(self.features, columns, strict=True):
            shape = np.shape(column)
            if isinstance(feature, Place):
                if len(shape) != 2 or shape[1] != 2:
                    raise InputError(f"column {feature.name!r} needs two coordinates per row; it has shape {shape}")
                if feature.geometry == "great-circle":
                    finite(np.asarray(column)[:, 0], f"{feature.name} (latitude)", 90.0)
                    finite(np.asarray(column)[:, 1], f"{feature.name} (longitude)", 360.0)
                else:
                    for j, axis in enumerate(("first", "second")):
                        finite(np.asarray(column)[:, j], f"{feature.name} ({axis} coordinate)")
            elif len(shape) != 1:
                raise InputError(f"column {feature.name!r} has shape {shape}; one value per row is needed")
            elif isinstance(feature, Number):
                finite(np.asarray(column), feature.name)
            else:
                codes = np.asarray(column)
                if codes.dtype.kind not in "iu" or (
                    codes.size and not 0 <= codes.min() <= codes.max() < feature.values
                ):
                    raise InputError(f"column {feature.name!r} holds codes outside 0..{feature.values - 1}")
            if shape[0] != np.shape(columns[0])[0]:
                raise InputError(
                    f"column {feature.name!r} has {shape[0]} rows, the first column {np.shape(columns[0])[0]}"
                )

    def describe(self) -> list[str]:
        """The metric as lines for a report."""
        if self.distances is not None:
            return [f"a matrix of distances of {len(self.distances)} points, in {self.unit}"]
        if self.function is not None:
            return [f"distances given by the function {getattr(self.function, '__name__', 'given')}, in {self.unit}"]
        joined = {"euclidean": "root of the sum of squares", "manhattan": "sum", "chebyshev": "largest"}[self.norm]
        lines = [f.describe() for f in self.features]
        return [*lines, f"together: {joined}"] if len(lines) > 1 else lines

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"norm": self.norm, "unit": self.unit, "features": self.describe()}


def on_sphere(degrees: np.ndarray) -> np.ndarray:
    """float64[n, 3]: points of the unit sphere, from latitude and longitude in degrees."""
    lat, lng = np.moveaxis(np.radians(np.asarray(degrees, np.float64)), -1, 0)
    return np.stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)], axis=-1)


def project(degrees: np.ndarray) -> np.ndarray:
    """float64[n, 2]: kilometers east and north of the mean position (equirectangular projection).

    Distances are off by less than 1 % within about 5 degrees of the mean latitude; beyond that, use great-circle.
    """
    degrees = np.asarray(degrees, np.float64)
    lat, lng = degrees[:, 0], degrees[:, 1]
    middle = float(lat.mean()) if lat.size else 0.0
    east = (lng - (lng.mean() if lng.size else 0.0)) * KM_PER_DEGREE * math.cos(math.radians(middle))
    return np.stack([east, (lat - middle) * KM_PER_DEGREE], axis=1)


def rounded_up(value: float) -> float:
    """The value rounded up to two digits, so that a published distance is coarse and never too small."""
    if value <= 0:
        return 0.0
    digits = math.floor(math.log10(value)) - 1
    whole = math.ceil(value / 10.0**digits * (1 - 1e-12))
    return float(whole * 10**digits) if digits >= 0 else whole / 10**-digits


def finite(values: np.ndarray, name: str, largest: float = math.inf) -> None:
    """InputError with the column's name and the row of the first value that is no finite number, or exceeds
    ``largest``."""
    if values.dtype.kind not in "iufb":
        raise InputError(f"column {name!r} is not numeric")
    bad = ~np.isfinite(values) | (np.abs(values) > largest)
    if bad.any():
        what = "not a finite number" if not np.isfinite(values[bad][0]) else f"beyond {largest:g}"
        raise InputError(
            f"column {name!r} holds what is {what} in {several(int(bad.sum()), 'row')}, the first of them row "
            f"{int(np.argmax(bad)) + 1:,}; repair them or leave the rows out"
        )


def _positive(name: str, scale: float, weight: float) -> None:
    if not (math.isfinite(scale) and scale > 0):
        raise PolicyError(f"the scale of {name!r} is {scale}; it must be a positive number")
    if weight and not 1e-6 <= weight <= 1e6:
        raise PolicyError(f"the weight of {name!r} is {weight}; it must be 0, or from 0.000001 to 1,000,000")


def _counting_one(distance: float, unit: str) -> str:
    """The distance that counts 1, with its unit: ``365 days count 1``, ``1 km counts 1``."""
    return f"{_short(distance)} {unit} count{'s' * (distance == 1)} 1"


def _short(value: float) -> str:
    return f"{value:,.4g}"


_LONGITUDE = {"lng", "lon", "long", "longitude", "longitud", "intptlon", "intptlong", "lngdd", "londd"}
_LATITUDE = {"lat", "latitude", "latitud", "intptlat", "latdd"}
_MET_TWICE = 2  # a single row at 77.7777 may be a place; several rows are a code


def _tokens(name: str) -> set[str]:
    """Words of a column name in lower case, also of names such as LATITUDE, pickup_longitude, startLng, and lat-dd."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return set(re.split(r"[^a-z]+", spaced.lower()))


def is_longitude(name: str) -> bool:
    """Whether the column's name means longitude."""
    return bool(_tokens(name) & _LONGITUDE)


def is_latitude(name: str) -> bool:
    """Whether the column's name means latitude."""
    return bool(_tokens(name) & _LATITUDE)


def kind_of(x: str, y: str) -> str:
    """ "geographic" if the columns' names mean longitude and latitude, otherwise "projected"."""
    return "geographic" if is_longitude(x) and is_latitude(y) else "projected"


def in_degrees(points: np.ndarray) -> bool:
    """Whether every finite x is in -180..360 and every finite y in -90..90; points float[n, 2]."""
    x, y = points[np.isfinite(points).all(axis=1)].T
    return bool(len(x)) and bool((x >= -180).all() and (x <= 360).all() and (np.abs(y) <= 90).all())


def codes(points: np.ndarray, geographic: bool = True) -> np.ndarray:
    """bool[n]: whether each point is a code for "unknown" and not a place.

    points      float[n, 2]
    geographic  for degrees: a coordinate outside the globe with one repeated digit is also a code

    For degrees, a code is the origin (0, 0). For all coordinates, it is a pair of numbers of one repeated digit 7, 8,
    or 9, at least four times (77.7777, 777.7777), or one such number that several points share. O(n log n).
    """
    p = np.asarray(points, dtype=np.float64)
    found = np.zeros(len(p), np.bool_)
    if not len(p):
        return found
    alike = np.column_stack([_alike(p[:, 0]), _alike(p[:, 1])])
    found |= alike.all(axis=1)
    for axis, most in ((0, 360.0), (1, 90.0)):
        values = p[alike[:, axis], axis]
        kinds, counts = np.unique(values, return_counts=True)
        known = kinds[(counts >= _MET_TWICE) | (geographic & (np.abs(kinds) > most))]
        found |= np.isin(p[:, axis], known) & alike[:, axis]
    if geographic:  # in a plane, the origin is a possible place
        found |= (p == 0).all(axis=1)
    return found


def _alike(values: np.ndarray) -> np.ndarray:
    """Whether a number consists of one repeated digit 7, 8, or 9, four to eight times, with the point anywhere."""
    size = np.abs(values)
    out = np.zeros(len(values), np.bool_)
    for digits in range(4, 9):
        for whole in range(1, digits + 1):
            for digit in (7, 8, 9):
                code = float(f"{str(digit) * whole}.{str(digit) * (digits - whole)}")
                out |= np.abs(size - code) < 1e-9
    return out
