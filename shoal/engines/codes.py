"""A column as integer codes and its distinct values: the only place where values become numbers.

One reading of missing values: a missing value (None, null, NaN) is a value of its own, the same for all of them,
and stands last among the codes.  All other codes follow the order of the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError

_DENSE = 1 << 22


@dataclass(frozen=True, eq=False)
class Coded:
    """One column.

    codes    int32[n]
    values   the distinct values in code order, of the column's own type; None last if any is missing
    """

    name: str
    codes: np.ndarray
    values: pl.Series

    @property
    def size(self) -> int:
        """Number of distinct values, a missing one included."""
        return len(self.values)

    def positions(self) -> np.ndarray | None:
        """Where the values lie on a line, float64[size], rising; None when they are neither numbers nor dates.

        A missing value lies beyond the highest, as far as the lowest is below it.
        """
        present = self.values.drop_nulls()
        if present.is_empty():
            return None
        if present.dtype == pl.String:
            numbers = present.str.strip_chars().cast(pl.Float64, strict=False)
            if numbers.null_count():
                numbers = present.str.to_date("%Y-%m-%d", strict=False).to_physical().cast(pl.Float64)
        elif present.dtype.is_temporal():
            numbers = present.to_physical().cast(pl.Float64)
        else:
            numbers = present.cast(pl.Float64, strict=False)
        if numbers.null_count() or not numbers.is_finite().all():
            return None
        line = numbers.to_numpy()
        if (np.diff(line) < 0).any() or (line.size > 1 and line[0] == line[-1]):
            return None  # out of order, or too close together for floating point
        if len(present) < self.size:
            line = np.append(line, line[-1] + max(line[-1] - line[0], 1.0, abs(line[-1]) * 1e-9))
        return line

    def texts(self) -> list[str | None]:
        """The distinct values as text, None for a missing one."""
        return as_text(self.values).to_list()


def as_text(values: pl.Series) -> pl.Series:
    """Values as they are shown: durations in ISO form, everything else as Polars casts it."""
    if isinstance(values.dtype, pl.Duration):
        return values.dt.to_string("iso")
    return values.cast(pl.String, strict=False)


def cannot_group(name: str, kind: str) -> InputError:
    """The refusal of a column whose type has no values that are the same or not the same in every engine."""
    return InputError(
        f"column {name!r} holds values of type {kind}, which cannot be grouped; "
        "turn them into text or numbers, or leave the column without a role"
    )


def _kind_name(kind: pl.DataType) -> str:
    return kind.ext_name() if isinstance(kind, pl.BaseExtension) else str(kind)


def encode(series: pl.Series) -> Coded:
    """Codes of a column; InputError for nested or opaque types.  O(n + v log v) for v distinct values."""
    kind = series.dtype
    if kind == pl.Null:
        return Coded(series.name, np.zeros(len(series), np.int32), series.slice(0, 1).cast(pl.String))
    if kind == pl.String:
        return _texts(series)
    if isinstance(kind, pl.Categorical):
        return _texts(series)
    if isinstance(kind, pl.Enum):
        return _texts(series.cast(pl.String))
    if kind.is_nested() or kind in (pl.Object, pl.Binary, pl.Unknown) or isinstance(kind, pl.BaseExtension):
        raise cannot_group(series.name, _kind_name(kind))
    if kind.is_float():
        series = series.fill_nan(None)
    if kind.is_decimal() or kind in (pl.Int128, pl.UInt128):
        return _sorted(series)
    numbers = series.to_physical() if kind.is_temporal() else series
    if kind == pl.Boolean or numbers.dtype.is_integer():
        return _integers(series, numbers.cast(pl.Int64, strict=False) if kind != pl.UInt64 else numbers)
    return _sorted(series)


def _texts(series: pl.Series) -> Coded:
    coded = series if isinstance(series.dtype, pl.Categorical) else series.cast(pl.Categorical(pl.Categories.random()))
    physical = coded.to_physical().cast(pl.UInt32)
    missing = physical.null_count() > 0
    raw = physical.fill_null(np.iinfo(np.uint32).max).to_numpy() if missing else physical.to_numpy()
    if missing:
        present_rows = raw != np.iinfo(np.uint32).max
        highest = int(raw[present_rows].max()) if present_rows.any() else -1
        raw = np.where(present_rows, raw, highest + 1).astype(np.int64)
    else:
        highest = int(raw.max()) if raw.size else -1
    first = np.full(highest + 2, -1, np.int64)
    first[raw[::-1]] = np.arange(raw.size - 1, -1, -1)
    seen = np.flatnonzero(first[: highest + 1] >= 0)
    words = coded.gather(first[seen]).cast(pl.String)
    order = _natural_order(words)
    rank = np.zeros(highest + 2, np.int32)
    rank[seen[order]] = np.arange(seen.size, dtype=np.int32)
    rank[highest + 1] = seen.size
    values = words.gather(order)
    if missing:
        values = values.extend_constant(None, 1)
    return Coded(series.name, rank[raw], values)


def _natural_order(words: pl.Series) -> np.ndarray:
    """Numbers by value where every word is one, else by text; equal numbers ("1", "01") by text."""
    numbers = words.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() or numbers.is_nan().any():
        return words.arg_sort().to_numpy()
    return np.lexsort((words.rank("ordinal").to_numpy(), numbers.to_numpy()))


def _integers(series: pl.Series, numbers: pl.Series) -> Coded:
    low: Any = numbers.min()
    high: Any = numbers.max()
    if low is None or int(high) - int(low) >= _DENSE:
        return _sorted(series)
    missing = numbers.null_count() > 0
    span = int(high) - int(low) + 1
    raw = (numbers.fill_null(low).to_numpy() - low).astype(np.int64)
    if missing:
        raw = np.where(numbers.is_null().to_numpy(), span, raw)
    first = np.full(span + 1, -1, np.int64)
    first[raw[::-1]] = np.arange(raw.size - 1, -1, -1)
    seen = np.flatnonzero(first >= 0)
    rank = np.zeros(span + 1, np.int32)
    rank[seen] = np.arange(seen.size, dtype=np.int32)
    return Coded(series.name, rank[raw], series.gather(first[seen]))


def _sorted(series: pl.Series) -> Coded:
    values = series.unique().sort(nulls_last=True)
    rank = series.rank("dense")
    missing = series.null_count() > 0
    codes = rank.fill_null(len(values)).to_numpy().astype(np.int64) - 1 if missing else rank.to_numpy() - 1
    return Coded(series.name, codes.astype(np.int32), values)
