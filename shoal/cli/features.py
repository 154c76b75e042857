"""Columns of a table as features of a metric: numbers, dates, words and places."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.files import column, numbers
from shoal.errors import InputError, PolicyError
from shoal.model.metric import Category, Metric, Number, Place, finite


@dataclass(frozen=True, eq=False)
class Features:
    """A metric over the table's columns: per feature its values, the names it has in the table, a category's texts."""

    metric: Metric
    values: list[np.ndarray]
    names: list[tuple[str, ...]]
    texts: list[list[str | None]]

    @classmethod
    def of(
        cls, frame: pl.DataFrame, columns: list[str], categories: list[str], place: tuple[str, str] | None,
        weights: dict[str, float], units: dict[str, str],
    ) -> Features:  # fmt: skip
        """Numbers and dates scaled to a span of 1, other values 1 apart, places by great-circle distance.

        A place alone is in kilometres; among other columns its span is 1 as well.
        """
        known = [*columns, *(["place"] if place else [])]
        for name in (*weights, *units):
            if name not in known:
                raise PolicyError.unknown("column of the distance", name, known)
        for name in categories:
            if name not in columns:
                raise PolicyError.unknown("column of --columns", name, columns)
        features: list[Any] = []
        values: list[Any] = []
        names: list[tuple[str, ...]] = []
        texts: list[list[str | None]] = []
        if place is not None:
            where = np.stack([numbers(frame, place[0]), numbers(frame, place[1])], axis=1)
            finite(where[:, 0], place[0], 90.0)
            finite(where[:, 1], place[1], 360.0)
            corners = np.stack([where.min(axis=0), where.max(axis=0)])
            span = float(Place("place").between(corners[:1], corners[1:])[0]) if columns else 1.0
            features.append(Place("place", scale=span or 1.0, weight=weights.get("place", 1.0)))
            values.append(where)
            names.append(place)
            texts.append([])
        for name in columns:
            weight = weights.get(name, 1.0)
            found, date = (None, False) if name in categories else positions(frame, name)
            if found is None:
                text = frame[name].cast(pl.String)
                kinds = text.unique(maintain_order=True).to_list()
                code = {v: i for i, v in enumerate(kinds)}
                features.append(Category(name, values=len(kinds), weight=weight))
                values.append(np.array([code[v] for v in text.to_list()], np.int64))
                texts.append(kinds)
            else:
                span = float(np.ptp(found))
                if not math.isfinite(span):
                    raise PolicyError(f"column {name!r} spans more than numbers can tell; rescale it")
                unit = units.get(name, "")
                features.append(Number(name, scale=span or 1.0, weight=weight, unit=unit, date=date))
                values.append(found)
                texts.append([])
            names.append((name,))
        unit = "km" if place is not None and not columns else "units"
        return cls(Metric(features=tuple(features), unit=unit), values, names, texts)


def positions(frame: pl.DataFrame, name: str) -> tuple[np.ndarray | None, bool]:
    """(float64[n], whether they are days of dates), or None for a column of words.

    A column most of whose values are numbers is one of numbers: InputError for the others, naming the column.
    """
    series = column(frame, name)
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
            f"column {name!r} holds dates but for {days.null_count()} rows; repair them, leave the rows out, "
            "or name it in --categories"
        )
    return days.cast(pl.Int32).to_numpy().astype(float) + 719163.0, True  # day 1 is 0001-01-01
