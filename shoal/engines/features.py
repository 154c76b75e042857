"""Columns of a table as features of a metric: numbers, dates, words, and places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import encode, refuse_opaque
from shoal.engines.recognize import decimal_mark, local_dates, named_words
from shoal.engines.store import column, numbers, read_table
from shoal.engines.unassigned import sample
from shoal.errors import InputError, PolicyError
from shoal.model.arguments import no_effect, number
from shoal.model.cards import several
from shoal.model.hierarchy import Hierarchy
from shoal.model.metric import Category, Metric, Number, Place, finite, kind_of
from shoal.model.notation import of_days, refuse_notations

_CODES = {
    "category", "code", "codes", "county", "diag", "diagnosis", "district", "fips", "gender", "icd", "id", "ids",
    "industry", "occupation", "postcode", "puma", "race", "region", "sex", "state", "status", "tract", "type", "zcta",
    "zip",
}  # fmt: skip


@dataclass(frozen=True)
class FeatureColumns:
    """The columns of a distance, and how each is measured.

    categories   columns of words that look like numbers
    place        columns of latitude and longitude, or with plane=True of two plane coordinates
    weights      by column, 1 by default; the place has the name "place"
    units        name of one unit of a column of numbers, or of a place in a plane
    hierarchies  column -> the file of a hierarchy, or another argument of ``Hierarchy.of``
    coordinates  column of codes, such as zip codes -> file with their latitudes and longitudes
    cyclic       column of cyclic numbers -> length of the cycle: hour -> 24
    dates        column of texts that are dates -> their notation, such as %d.%m.%Y
    decimal      column of texts that are numbers -> their decimal mark, a comma or a point; of a place, both columns
    """

    columns: Sequence[str] = ()
    categories: Sequence[str] = ()
    place: tuple[str, str] | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    hierarchies: Mapping[str, Any] = field(default_factory=dict)
    coordinates: Mapping[str, Any] = field(default_factory=dict)
    plane: bool = False
    cyclic: Mapping[str, float] = field(default_factory=dict)
    dates: Mapping[str, str] = field(default_factory=dict)
    decimal: Mapping[str, str] = field(default_factory=dict)

    @property
    def notations(self) -> dict[str, str]:
        """Column -> the notation of its dates, or the decimal mark of its numbers."""
        return {**self.dates, **self.decimal}

    def check(self) -> None:
        """PolicyError for a name that is not among the columns, or for a column with two kinds."""
        if self.plane and self.place is None:
            raise no_effect("plane=True", "⟨place=...⟩")
        known = [*self.columns, *(["place"] if self.place else [])]
        for name in (*self.weights, *self.units):
            if name not in known:
                raise PolicyError.unknown("column of the distance", name, known)
        seen: set[str] = set()
        for name in (*self.categories, *self.hierarchies, *self.coordinates, *self.cyclic):
            if name not in self.columns:
                raise PolicyError.unknown("column of ⟨columns=⟩", name, self.columns)
            if name in seen:
                raise PolicyError(
                    f"column {name!r} has two kinds; name it in one of ⟨categories=⟩, ⟨hierarchies=⟩, "
                    "⟨coordinates=⟩, ⟨cyclic=⟩"
                )
            seen.add(name)
        refuse_notations(self.dates, self.decimal)
        axes: Sequence[str] = self.place or ()
        if len({self.decimal.get(name) for name in axes}) > 1:
            raise PolicyError(f"columns {axes[0]!r} and {axes[1]!r} are one place; name the same decimal mark for both")
        for name in self.notations:
            if name in axes and name in self.decimal:
                continue
            if name not in self.columns:
                raise PolicyError.unknown("column of ⟨columns=⟩", name, self.columns)
            if name in seen.difference(self.cyclic):
                kind = next(k for k in ("categories", "hierarchies", "coordinates") if name in getattr(self, k))
                raise PolicyError(
                    f"column {name!r} is in ⟨{kind}=⟩ and has a notation, which only distances of numbers and of dates "
                    "need; take it out of one of them"
                )


@dataclass(frozen=True, eq=False)
class Features:
    """A metric over the table's columns.

    For each feature: its values, its column names in the table, the texts of a category, and the codes of a place by
    coordinates.
    """

    metric: Metric
    values: list[np.ndarray]
    names: list[tuple[str, ...]]
    texts: list[list[str | None]]
    codes: list[dict[tuple[float, float], str]]

    def named_like_codes(self) -> list[str]:
        """Columns of whole numbers that are measured by their difference, but whose names indicate codes."""
        return [
            made.name
            for made, values in zip(self.metric.features, self.values, strict=True)
            if isinstance(made, Number) and not (made.date or made.period)
            and named_words(made.name) & _CODES and np.ptp(values) > 1 and (values == np.floor(values)).all()
        ]  # fmt: skip

    def in_notations(self, frame: pl.DataFrame, asked: FeatureColumns) -> Iterator[tuple[str, str]]:
        """Columns of words that exactly one notation reads as dates or numbers, with the notation."""
        for made in self.metric.features:
            plain = isinstance(made, Category) and made.name not in (*asked.categories, *asked.hierarchies)
            if plain and (found := noted_as(frame[made.name])):
                yield made.name, found

    @classmethod
    def of(cls, frame: pl.DataFrame, asked: FeatureColumns) -> Features:
        """Numbers and dates scaled to a span of 1, other values at distance 1 or that of their hierarchy, places by
        distance.

        A place alone is measured in kilometers, or in the unit of its plane. With other columns, its span is 1.
        """
        asked.check()
        parts = [] if asked.place is None else [_place(frame, asked)]
        parts += [_column(frame, name, asked) for name in asked.columns]
        features = [part[0] for part in parts]
        read = {(feature.name, getattr(feature, "unit", "")) for feature in features}
        if idle := [name for name, unit in asked.units.items() if unit and (name, unit) not in read]:
            raise PolicyError(f"column {idle[0]!r} holds words or codes, which have no unit; leave its unit out")
        if len(parts) == 1 and isinstance(features[0], Place):
            features = [replace(features[0], scale=1.0)]
            unit = features[0].unit or "units"
        else:
            unit = "units"
        return cls(
            Metric(features=tuple(features), unit=unit), *(list(x) for x in zip(*(p[1:] for p in parts), strict=True))
        )

    @classmethod
    def again(cls, frame: pl.DataFrame, metric: Metric, asked: FeatureColumns) -> Features:
        """The columns of a table for the features of an existing metric, whose scales and weights stay.

        Columns are assigned in the order of the features; a place takes two columns, or one that has coordinates.
        Raises InputError if the frame has too few columns, or one of another kind.
        """
        left = list(asked.columns)
        parts: list[Part] = []
        place = asked.place
        for i, feature in enumerate(metric.features):
            codes_next = bool(left) and left[0] in asked.coordinates
            if codes_next and feature.name != left[0]:  # the codes belong to a later place, which has their name
                codes_next = all(not isinstance(f, Place) or f.name != left[0] for f in metric.features[i + 1 :])
            if isinstance(feature, Place) and place is not None and not codes_next:
                where = np.stack([numbers(frame, name, asked.decimal) for name in place], axis=1)
                parts.append((feature, where, place, [], {}))
                place = None
                continue
            if not left:
                raise InputError(f"the answer measures {len(metric.features)} features; name a column for each")
            parts.append(_like(frame, left.pop(0), feature, asked))
        if left or place is not None:
            raise InputError(f"the answer does not measure column {(left or list(place or ()))[0]!r}; leave it out")
        made = Metric(features=tuple(part[0] for part in parts), norm=metric.norm, unit=metric.unit)
        return cls(made, *(list(x) for x in zip(*(part[1:] for part in parts), strict=True)))


def _like(frame: pl.DataFrame, name: str, feature: Any, asked: FeatureColumns) -> Part:
    """A column of the table for a given feature of one column."""
    if isinstance(feature, Place):
        if name not in asked.coordinates:
            raise InputError(f"column {name!r} names places; name its coordinates, or two columns with ⟨place=⟩")
        where, codes = _located(frame, name, asked.coordinates[name])
        return replace(feature, name=name), where, (name,), [], codes
    if isinstance(feature, Number):
        noted = asked.notations.get(name)
        found, date = positions(frame, name, noted) if feature.date or noted else (numbers(frame, name), False)
        if found is None or date != feature.date:
            raise InputError(f"the answer measures dates, and column {name!r} holds none; pass what was clustered")
        return replace(feature, name=name), found, (name,), [], {}
    series = column(frame, name)
    if feature.levels is not None and name not in asked.hierarchies and series.dtype.is_integer():
        codes_of = series.to_numpy()  # codes of the caller, in the order of the levels
        if codes_of.size and 0 <= codes_of.min() <= codes_of.max() < feature.values:
            kinds: list[str | None] = [str(i) for i in range(feature.values)]
            return replace(feature, name=name), codes_of.astype(np.int64), (name,), kinds, {}
    made, values, _, kinds, _ = _column(frame, name, FeatureColumns([name], [] if name in asked.hierarchies else [name],
                                                              hierarchies=asked.hierarchies))  # fmt: skip
    levels = made.levels
    if levels is None and feature.levels is not None:
        levels = np.asarray(feature.levels)[: len(kinds)]
    return Category(name, values=len(kinds), weight=feature.weight, levels=levels), values, (name,), kinds, {}


Part = tuple[Any, np.ndarray, tuple[str, ...], list[str | None], dict[tuple[float, float], str]]


def _place(frame: pl.DataFrame, asked: FeatureColumns) -> Part:
    """The feature of two columns of coordinates."""
    assert asked.place is not None
    first, second = asked.place
    if not asked.plane and kind_of(first, second) == "geographic":
        raise PolicyError(f"{first!r} is a column of longitudes and {second!r} one of latitudes; exchange the two")
    where = np.stack([numbers(frame, name, asked.decimal) for name in asked.place], axis=1)
    for axis, most in enumerate((math.inf, math.inf) if asked.plane else (90.0, 360.0)):
        finite(where[:, axis], asked.place[axis], most)
    geometry = "plane" if asked.plane else "great-circle"
    unit = asked.units.get("place", "" if asked.plane else "km")
    if unit != "km" and not asked.plane:
        raise PolicyError(f"distances over the sphere are in km, not {unit!r}; leave the unit of the place out")
    made = Place("place", weight=asked.weights.get("place", 1.0), unit=unit, geometry=geometry)
    return _spanned(made, where), where, asked.place, [], {}


def _spanned(place: Place, where: np.ndarray) -> Place:
    corners = np.stack([where.min(axis=0), where.max(axis=0)])
    span = float(replace(place, weight=1.0).between(corners[:1], corners[1:])[0])
    return replace(place, scale=span or 1.0)


def _column(frame: pl.DataFrame, name: str, asked: FeatureColumns) -> Part:
    """The feature of a column: numbers, dates, words, words with a hierarchy, or codes of places."""
    weight = asked.weights.get(name, 1.0)
    if isinstance(column(frame, name).dtype, pl.Duration):
        raise InputError(f"column {name!r} holds durations; turn them into numbers, such as hours")
    refuse_opaque(frame[name])
    if name in asked.coordinates:
        if (unit := asked.units.get(name) or "km") != "km":
            raise PolicyError(f"the coordinates of {name!r} are measured in km, not {unit!r}; leave the unit of it out")
        where, codes = _located(frame, name, asked.coordinates[name])
        return _spanned(Place(name, weight=weight), where), where, (name,), [], codes
    found, date = (None, False)
    if name not in asked.categories and name not in asked.hierarchies:
        found, date = positions(frame, name, asked.notations.get(name))
    if name in asked.cyclic and (found is None or date):
        raise InputError(f"column {name!r} goes around no circle: it holds no numbers; write weekdays as 0 to 6")
    if found is None:
        text = frame[name].cast(pl.String)
        kinds = text.unique(maintain_order=True).to_list()
        code = {v: i for i, v in enumerate(kinds)}
        levels = None
        if name in asked.hierarchies:
            levels = Hierarchy.of(asked.hierarchies[name]).resolve(kinds, name).node.T
        values = np.array([code[v] for v in text.to_list()], np.int64)
        return Category(name, values=len(kinds), weight=weight, levels=levels), values, (name,), kinds, {}
    if name in asked.cyclic:
        period = number(f"cyclic[{name!r}]", asked.cyclic[name], "a positive number, such as 24", lambda x: x > 0)
        unit = asked.units.get(name, "")
        return Number(name, scale=period / 2, weight=weight, unit=unit, period=period), found, (name,), [], {}
    span = float(found.max()) - float(found.min())  # Python's floats say nothing when the difference is infinite
    if not math.isfinite(span):
        raise PolicyError(f"column {name!r} spans more than numbers can tell; rescale it")
    unit = asked.units.get(name, "")
    return Number(name, scale=span or 1.0, weight=weight, unit=unit, date=date), found, (name,), [], {}


def noted_as(values: pl.Series) -> str | None:
    """The only notation that reads all texts of a column as dates or numbers; None if there is none or more than
    one."""
    if values.dtype != pl.String:
        return None
    some = sample(values)
    return local_dates(values, some)[0] or decimal_mark(values, some)[0]


def codes_of(frame: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """int64[n, s]: columns of words as codes; a missing value is a value of its own."""
    texts = [column(frame, name).cast(pl.String) for name in names]
    return np.stack([text.rank("dense").fill_null(0).cast(pl.Int64).to_numpy() for text in texts], axis=1)


def _located(frame: pl.DataFrame, name: str, source: Any) -> tuple[np.ndarray, dict[tuple[float, float], str]]:
    """(latitude and longitude of every row's code, the first code at each position that occurs).

    source  a file with codes in its first column, and columns of latitude and longitude: by name (lat, lng, lon, long,
            ...), otherwise the second and the third
    """
    table = source if isinstance(source, pl.DataFrame) else read_table(source)
    if table.width < 3:
        raise InputError(f"the coordinates of {name!r} need three columns: code, latitude, longitude")
    heads = {head.strip().lower(): head for head in table.columns[1:]}
    axes = []
    for names, place in ((("latitude", "lat"), 1), (("longitude", "lng", "lon", "long"), 2)):
        axes.append(next((heads[x] for x in names if x in heads), table.columns[place]))
    lat, lng = (numbers(table, axis) for axis in axes)
    finite(lat, axes[0], 90.0)
    finite(lng, axes[1], 360.0)
    at: dict[str, tuple[float, float]] = {}
    named = table[table.columns[0]].cast(pl.String).to_list()
    for row, (code, *xy) in enumerate(zip(named, lat.tolist(), lng.tolist(), strict=True), 1):
        if at.setdefault(code, (xy[0], xy[1])) != (xy[0], xy[1]):
            raise InputError(
                f"the coordinates of {name!r} place the code of row {row:,} a second time; keep one of both"
            )
    rows = frame[name].cast(pl.String).to_list()
    unknown = [row for row, code in enumerate(rows, 1) if code not in at]
    if unknown:
        raise InputError(
            f"column {name!r} has {len(unknown)} rows whose code is not among the coordinates, the first of them row "
            f"{unknown[0]:,}; add it, or leave the rows out"
        )
    codes: dict[tuple[float, float], str] = {}
    for code in rows:
        codes.setdefault(at[code], code)
    return np.array([at[code] for code in rows], np.float64).reshape(-1, 2), codes


def positions(frame: pl.DataFrame, name: str, notation: str | None = None) -> tuple[np.ndarray | None, bool]:
    """(float64[n], whether they are days of dates), or None for a column of words.

    notation  of a column of texts that are dates or numbers

    A column with mostly numbers is a column of numbers. Then raises InputError, with the column's name, for other
    texts.
    """
    series = column(frame, name)
    if notation is not None:
        lies = encode(series, notation)
        line = lies.positions()
        if line is None or lies.values.null_count():
            raise InputError(f"column {name!r} lacks values; leave these rows out, or fill them in")
        return line[lies.codes] + (719163.0 if of_days(notation) else 0.0), of_days(notation)
    if series.dtype == pl.Boolean or series.dtype in (pl.Categorical, pl.Enum):
        return None, False
    if series.dtype.is_numeric():
        return numbers(frame, name), False
    days = series.cast(pl.Date) if series.dtype in (pl.Date, pl.Datetime) else None
    if days is None:
        text = series.cast(pl.String).str.strip_chars()
        as_number = text.cast(pl.Float64, strict=False)
        if 2 * int(as_number.is_not_null().sum()) > len(text):
            return numbers(frame, name), False
        days = text.str.to_date("%Y-%m-%d", strict=False)
        if 2 * int(days.is_not_null().sum()) <= len(text):
            return None, False
    if days.null_count():
        raise InputError(
            f"column {name!r} holds dates but for {several(days.null_count(), 'row')}; repair them, leave them out, or "
            "cluster its values as names (⟨categories=[...]⟩)"
        )
    return days.cast(pl.Int32).to_numpy().astype(float) + 719163.0, True  # day 1 is 0001-01-01
