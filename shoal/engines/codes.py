"""Columns as integer codes with their distinct values. All conversion of values to codes is in this module.

All missing values (None, null, NaN) are one value, which has the last code. All other codes follow the order of the
values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import spanned
from shoal.model.cards import several
from shoal.model.histogram import Histogram, mixed_radix, narrowest
from shoal.model.members import place
from shoal.model.notation import MARKS, NUMBER, ends, in_one_form, in_order, numeral, of_limits, within

_DENSE = 1 << 22
_STEP = 1 << 15
_WHOLE = 2.0**53  # below it, a float represents every whole number


@dataclass(frozen=True, eq=False)
class Coded:
    """A column as codes.

    codes    int32[n], or a narrower type
    values   the distinct values in code order, of the column's own type; None last if any value is missing
    ordered  whether the values are texts with an explicit order (an enumeration, an ordered categorical), which codes
             follow
    notation  of texts that are dates or numbers; None if they aren't, or have the form 2024-12-31 or 1234.5; for
              numbers with limits, which are converted to text, their limits
    """

    name: str
    codes: np.ndarray
    values: pl.Series
    ordered: bool = False
    notation: str | None = None

    @property
    def size(self) -> int:
        """Number of distinct values, including a missing one."""
        return len(self.values)

    def positions(self) -> np.ndarray | None:
        """Positions of the values on a line, float64[size], strictly rising; None if they have none.

        Numbers, dates, and times have their own positions, ordered texts 0, 1, 2, ... Texts count as numbers or dates
        only if all are written so (dates with a time all in one form, or as the notation defines), and no two are equal
        ("7" and "07", "7" and "7.0" are texts). Bands of numbers, such as ``[70-80)``, have positions 0, 1, 2, ... like
        ordered texts. Values that are too close or too far apart for floating point have no positions. A missing value
        is as far above the highest value as the lowest one is below it.
        """
        present = self.values.drop_nulls()
        if present.is_empty():
            return None
        if self.ordered or self.banded:
            numbers: pl.Series | None = pl.Series(np.arange(len(present), dtype=np.float64))
        elif present.dtype == pl.String:
            numbers = as_numbers(present) if self.notation is None else _by_notation(present, self.notation)
            numbers = _days(present) if numbers is None else numbers
        else:
            numbers = _line(present)
        if numbers is None or numbers.null_count() or not numbers.is_finite().all():
            return None
        line = numbers.to_numpy()
        low, high = float(line[0]), float(line[-1])  # Python's floats don't warn of an infinite distance
        if not spanned(low, high) or (np.diff(line) <= 0).any():
            return None  # out of order, or too close or too far apart for floating point
        if len(present) < self.size:
            far = high + max(high - low, 1.0, abs(high) * 1e-9)
            return np.append(line, far) if spanned(low, far) else None
        return line

    @cached_property
    def banded(self) -> bool:
        """Whether the values are texts that are bands of numbers, in whose order the codes are."""
        present = self.values.drop_nulls()
        return not self.ordered and present.dtype == pl.String and _bands(present) is not None

    def texts(self) -> list[str | None]:
        """The distinct values as text, None for a missing one."""
        return as_text(self.values).to_list()


def refuse_opaque(values: pl.Series, leaves: str = "") -> None:
    """InputError for a column with a type in which equality differs between engines.

    leaves  text on how the column can be taken out of the request
    """
    kind = values.dtype
    if kind.is_nested() or kind in (pl.Object, pl.Binary, pl.Unknown) or isinstance(kind, pl.BaseExtension):
        raise cannot_group(values.name, _kind_name(kind), leaves)


_DAYS = (-719_162, 2_932_896)  # since 1970, from the year 1 to 9999
_OF_DAY = {"ms": 86_400_000, "us": 86_400_000_000}


def refuse_dates(values: pl.Series) -> None:
    """InputError for dates and moments that have no text: infinite ones of databases, before the year 1, after 9999."""
    kind, numbers = values.dtype, values.to_physical()
    if kind == pl.Date:
        least, most = _DAYS
    elif isinstance(kind, pl.Datetime) and kind.time_unit in _OF_DAY:
        of_day = _OF_DAY[kind.time_unit]
        least, most = _DAYS[0] * of_day, (_DAYS[1] + 1) * of_day - 1
    else:
        return
    if ((numbers < least) | (numbers > most)).any():
        raise InputError(
            f"column {values.name!r} holds dates before the year 1 or after 9999, perhaps infinite ones; make them "
            "missing, cast the column to text, or name it in ⟨identifiers=[...]⟩"
        )


def as_text(values: pl.Series) -> pl.Series:
    """Values as text: durations in ISO form, moments and times without trailing zeros, others as Polars casts them.

    Times of day have their own format, because a cast drops fractions of a second. A float below 2^53 that is whole has
    no point: pandas stores 34 as 34.0 if another value of the column is missing. This depends on the value alone, so
    it reveals nothing about other values. Raises InputError for lists and other types without text.
    """
    if values.dtype.is_nested():
        raise cannot_group(values.name, _kind_name(values.dtype), "")
    if values.dtype.is_float():
        wide = values.cast(pl.Float64)  # Polars doesn't round floats of 16 bits down
        whole = (wide == wide.floor()) & (wide.abs() < _WHOLE)
        digits = values.cast(pl.Int64, strict=False).cast(pl.String)
        return digits.zip_with(whole.fill_null(False), values.cast(pl.String))
    if values.dtype == pl.Time:
        return values.dt.to_string("%H:%M:%S%.f").str.replace(r"(\.\d*[1-9])0+$", "$1")
    if isinstance(values.dtype, pl.Duration):
        return values.dt.to_string("iso")
    if isinstance(values.dtype, pl.Datetime):
        return (
            values.cast(pl.String).str.replace(r"\.(\d*[1-9])?0+([^.\d]|$)", ".$1$2").str.replace(r"\.([^\d]|$)", "$1")
        )
    return values.cast(pl.String, strict=False)


_WAYS = {  # by the start of a type's name in lower case
    "struct": "make a column of each field, in Polars with unnest()",
    "list": "make one text of each list, in Polars with list.join()",
    "pandas.period": "turn them into dates, in pandas with dt.to_timestamp()",
    "pandas.interval": "turn them into text, in pandas with astype(str)",
}


_LEAVES = ", or name it in ⟨identifiers=[...]⟩ to leave it out"


def cannot_group(name: str, kind: str, leaves: str = _LEAVES) -> InputError:
    """The error for a column with a type in which equality differs between engines."""
    way = next((way for what, way in _WAYS.items() if kind.lower().startswith(what)), "turn them into text or numbers")
    return InputError(f"column {name!r} holds values of type {kind}, which cannot be grouped; {way}{leaves}")


def _kind_name(kind: pl.DataType) -> str:
    if isinstance(kind, (pl.Datetime, pl.Duration)):  # whose text has their unit and zone
        return type(kind).__name__
    return kind.ext_name() if isinstance(kind, pl.BaseExtension) else str(kind)


def as_numbers(words: pl.Series) -> pl.Series | None:
    """Texts as float64; None unless every text is a number and no two are the same number."""
    if not words.str.contains(NUMBER).all():
        return None
    numbers = words.cast(pl.Float64, strict=False)
    return None if numbers.null_count() or numbers.n_unique() < len(words) else numbers


def _bands(words: pl.Series) -> list[int] | None:
    """The order of texts that are bands of numbers; None for others. Most columns are rejected by their first text."""
    return in_order(words.to_list()) if len(words) and ends(words[0]) is not None else None


def _days(words: pl.Series) -> pl.Series | None:
    """Texts as days; None unless all are ISO dates, or all are ISO dates with a time in the same form."""
    days = words.str.to_date("%Y-%m-%d", strict=False)
    if days.null_count() == 0 and (days.cast(pl.String) == words).all():
        return days.to_physical().cast(pl.Float64)
    lengths, marks = words.str.len_chars().unique(), words.str.slice(10, 1).unique()
    if not in_one_form(words[0], lengths.to_list(), marks.to_list()):
        return None
    form = {16: "%Y-%m-%d %H:%M", 19: "%Y-%m-%d %H:%M:%S"}.get(lengths[0], "%Y-%m-%d %H:%M:%S%.f")
    moments = words.str.replace("T", " ", literal=True).str.to_datetime(form, time_unit="us", strict=False)
    return None if moments.null_count() else moments.to_physical().cast(pl.Float64) / 86_400e6


def _by_notation(words: pl.Series, notation: str) -> pl.Series:
    """Texts as numbers or as days since 1970 in a notation; missing for a text that the notation can't read."""
    return pl.Series([place(word, notation) for word in words.to_list()], dtype=pl.Float64)


def on_a_line(words: pl.Series) -> bool:
    """Whether distinct texts are all numbers or all ISO dates."""
    return len(words) > 1 and (as_numbers(words) is not None or _days(words) is not None)


def _line(values: pl.Series) -> pl.Series:
    """Numbers, dates, and times as float64. Large integers are relative to the lowest, so that they stay distinct."""
    if values.dtype.is_temporal():
        values = values.to_physical()
    if values.dtype.is_integer():
        whole = values.to_list()
        low = min(whole)
        if max(map(abs, whole)) > 2**53:
            return pl.Series([float(v - low) for v in whole])
    return values.cast(pl.Float64, strict=False)


def encode(series: pl.Series, notation: str | None = None) -> Coded:
    """Codes of a column; InputError for nested or opaque types. O(n + v log v) for v distinct values.

    notation  of a column of texts that are dates or numbers, or of numbers with limits, where all values beyond a limit
              get one code; PolicyError if it can't read every value
    """
    kind = series.dtype
    if of_limits(notation) and kind != pl.Null:
        return _within_limits(series, str(notation))
    if notation is not None and kind != pl.Null:
        return _in_notation(series, notation)
    if kind == pl.Null:
        return Coded(series.name, np.zeros(len(series), np.int32), series.slice(0, 1).cast(pl.String))
    if kind == pl.String:
        return _texts(series)
    if isinstance(kind, pl.Categorical):
        return _texts(series)
    if isinstance(kind, pl.Enum):
        return _levels(series)
    refuse_opaque(series, _LEAVES)
    refuse_dates(series)
    if kind.is_float():
        series = series.fill_nan(None)
    if kind.is_decimal() or kind in (pl.Int128, pl.UInt128):
        return _sorted(series)
    numbers = series.to_physical() if kind.is_temporal() else series
    if kind == pl.Boolean or numbers.dtype.is_integer():
        return _integers(series, numbers.cast(pl.Int64, strict=False) if kind != pl.UInt64 else numbers)
    return _sorted(series)


def _in_notation(series: pl.Series, notation: str) -> Coded:
    """Texts in the order of the days or numbers that they represent."""
    setting, one, way = ("dates", "day", "1.2.2024 and 01.02.2024")
    if notation in MARKS:
        setting, one, way = ("decimal", "number", f"7{notation}5 and 7{notation}50")
    entry = f"⟨{setting}[{series.name!r}] = {notation!r}⟩"
    if series.dtype != pl.String and not isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        kind = _kind_name(series.dtype)
        raise PolicyError(f"{entry}: the column holds {kind} and no texts; leave it out of ⟨{setting}⟩")
    if isinstance(series.dtype, pl.Enum):
        series = series.cast(pl.String)
    coded = _texts(series)
    present = coded.values.drop_nulls()
    line = _by_notation(present, notation)
    if odd := line.null_count():
        what = "date" if one == "day" else one
        few = f"{odd:,} of {several(len(present), 'value')} {'is' if odd == 1 else 'are'} no such {what}"
        raise PolicyError(f"{entry}: {few}; correct them, or leave them empty")
    if line.n_unique() < len(line):
        raise PolicyError(f"{entry}: the column writes one {one} in two ways, such as {way}; write one")
    order = line.arg_sort().to_numpy()
    rank = np.arange(coded.size, dtype=np.int32)
    rank[order] = np.arange(order.size, dtype=np.int32)
    values = coded.values.gather(np.append(order, np.arange(order.size, coded.size)))
    return Coded(series.name, rank[coded.codes], values, notation=notation)


def _within_limits(series: pl.Series, notation: str) -> Coded:
    """Numbers as texts in their order, with one text for all that reach a limit."""
    kind, subject = series.dtype, f"column {series.name!r} has limits (⟨top⟩, ⟨bottom⟩)"
    text = kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum))
    if not text and (not kind.is_numeric()):
        raise PolicyError(
            f"{subject} and holds {_kind_name(kind)}; only numbers can have them: publish the year of a date alone, or "
            "take the column out of both"
        )
    coded = encode(series.cast(pl.String) if isinstance(kind, pl.Enum) else series)
    own = coded.texts()
    known = [i for i, t in enumerate(own) if t]  # an empty text is a missing value of a text file
    plain = [numeral(own[i] or "", notation) for i in known] if text else coded.values.gather(known).to_list()
    if odd := sum(p is None for p in plain):
        are = f"{odd:,} of {several(len(known), 'value')} {'is' if odd == 1 else 'are'} no number"
        raise PolicyError(
            f"{subject}, and {are}; correct or empty these, publish the year of a date alone, or take the column out "
            "of both"
        )
    lies = [within(float(p), notation) for p in plain if p is not None]
    if odd := sum(limit is None and not math.isfinite(place) for place, limit in lies):
        raise PolicyError(
            f"{subject}, and {several(odd, 'value')} within them {'is' if odd == 1 else 'are'} infinite; correct or "
            "empty these, or take the column out of both"
        )
    names = [own[i] if limit is None else limit for i, (_, limit) in zip(known, lies, strict=True)]
    at = {name: place for name, (place, _) in zip(names, lies, strict=True)}
    if len({*at.values()}) < len(at):
        raise PolicyError(f"{subject} and writes one number in two ways, such as 7.5 and 7.50; write one")
    values = [*sorted(at, key=at.__getitem__), *(t for t in own if not t)]
    number = {name: i for i, name in enumerate(values)}
    rank = np.array([number[t] for t in _replaced(own, known, names)], np.int32)
    return Coded(
        series.name, looked_up(rank, coded.codes), pl.Series(series.name, values, pl.String), notation=notation
    )


def _replaced(texts: Sequence[str | None], at: Sequence[int], new: Sequence[str | None]) -> list[str | None]:
    """Texts, replaced at some positions."""
    found = [*texts]
    for i, text in zip(at, new, strict=True):
        found[i] = text
    return found


def _texts(series: pl.Series) -> Coded:
    coded = series if isinstance(series.dtype, pl.Categorical) else series.cast(pl.Categorical(pl.Categories.random()))
    physical = coded.to_physical().cast(pl.UInt32)
    missing = physical.null_count() > 0
    highest: Any = physical.max()
    highest = -1 if highest is None else int(highest)
    raw = (physical.fill_null(highest + 1) if missing else physical).to_numpy()
    row = rows_of(raw, highest + 2)
    seen = np.flatnonzero(row[: highest + 1] >= 0)
    words = coded.gather(row[seen]).cast(pl.String)
    order = _natural_order(words)
    rank = np.zeros(highest + 2, np.int32)
    rank[seen[order]] = np.arange(seen.size, dtype=np.int32)
    rank[highest + 1] = seen.size
    values = words.gather(order)
    if missing:
        values = values.extend_constant(None, 1)
    return Coded(series.name, looked_up(rank, raw), values)


def rows_of(raw: np.ndarray, span: int) -> np.ndarray:
    """int64[span]: a row with each number, -1 if there is none. Computed in slices that fit in a processor's cache."""
    found = np.full(span, -1, np.int64)
    for start in range(0, raw.size, _STEP):
        part = raw[start : start + _STEP].astype(np.intp)
        found[part] = np.arange(start, start + part.size)
    return found


def looked_up(rank: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """int32[n]: ``rank`` at every row's number."""
    found = np.empty(raw.size, np.int32)
    for start in range(0, raw.size, _STEP):
        part = raw[start : start + _STEP].astype(np.intp, copy=False)  # older NumPy doesn't accept unsigned indices
        # no index is out of range; "clip" skips the check
        np.take(rank, part, out=found[start : start + _STEP], mode="clip")
    return found


def _levels(series: pl.Series) -> Coded:
    """An enumeration in the order of its levels; only levels that occur have a code."""
    found = _integers(series, series.to_physical().cast(pl.Int64))
    return Coded(series.name, found.codes, found.values.cast(pl.String), ordered=True)


def _natural_order(words: pl.Series) -> np.ndarray:
    """The order of words: by value if all are numbers or all are bands of numbers (see ``as_numbers``), otherwise by
    text.

    An empty word is last, because text files use it for a missing value.
    """
    values = words.set(words == "", None)
    present = values.drop_nulls()
    if as_numbers(present) is not None:
        values = values.cast(pl.Float64)
    elif (bands := _bands(present)) is not None:
        rank = dict(zip(present.gather(bands).to_list(), range(len(bands)), strict=True))
        values = values.replace_strict(rank, return_dtype=pl.Int64)
    return values.arg_sort(nulls_last=True).to_numpy()


def _integers(series: pl.Series, numbers: pl.Series) -> Coded:
    low: Any = numbers.min()
    high: Any = numbers.max()
    if low is None or int(high) - int(low) >= _DENSE:
        return _sorted(series)
    missing = numbers.null_count() > 0
    span = int(high) - int(low) + 1
    raw = numbers.fill_null(low).to_numpy() - low
    if missing:
        raw = np.where(numbers.is_null().to_numpy(), span, raw)
    row = rows_of(raw, span + 1)
    seen = np.flatnonzero(row >= 0)
    rank = np.zeros(span + 1, np.int32)
    rank[seen] = np.arange(seen.size, dtype=np.int32)
    return Coded(series.name, looked_up(rank, raw), series.gather(row[seen]))


def _sorted(series: pl.Series) -> Coded:
    values = series.unique().sort(nulls_last=True)
    rank = series.rank("dense")
    missing = series.null_count() > 0
    codes = rank.fill_null(len(values)).to_numpy().astype(np.int64) - 1 if missing else rank.to_numpy() - 1
    return Coded(series.name, codes.astype(np.int32), values)


def narrow(column: Coded) -> Coded:
    """The same column with codes in the narrowest integer type, because codes of every row stay in memory until
    placement."""
    return replace(column, codes=narrowest(column.codes, column.size))


def stacked(columns: Sequence[Coded], some: np.ndarray) -> np.ndarray:
    """int32[some, columns]: the codes of some rows, filled column by column."""
    out = np.empty((some.size, len(columns)), np.int32)
    for j, column in enumerate(columns):
        out[:, j] = column.codes[some]
    return out


def histogram_of(quasi: Sequence[Coded], sensitive: Sequence[Coded], first: np.ndarray, count: np.ndarray) -> Histogram:
    """The histogram of coded columns. first: a row of each cell; count: the number of rows of each cell."""
    return Histogram(
        stacked(quasi, first), stacked(sensitive, first), count, tuple(c.name for c in quasi),
        tuple(c.name for c in sensitive), tuple(c.size for c in quasi), tuple(c.size for c in sensitive),
    )  # fmt: skip


def mixed_radix_columns(columns: Sequence[np.ndarray], sizes: Sequence[int], rows: int) -> np.ndarray:
    """``mixed_radix`` without stacking the columns first."""
    combinations = 1
    for size in sizes:
        combinations *= max(size, 1)
    if combinations >= 2**62:
        return mixed_radix(np.column_stack(columns), sizes)
    key = np.zeros(rows, np.int64)
    for codes, size in zip(columns, sizes, strict=True):
        key *= max(size, 1)
        key += codes
    return key


def count_keys(key: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(cell of every row, a row of every cell, number of rows of every cell), with cells in the order of their keys."""
    if not key.size:
        return key, key, key
    span = int(key.max()) + 1
    if span <= max(1 << 24, 2 * key.size):
        row = rows_of(key, span)
        used = np.flatnonzero(row >= 0)
        place = np.zeros(span, np.int32)
        place[used] = np.arange(used.size, dtype=np.int32)
        return looked_up(place, key), row[used], np.bincount(key, minlength=span)[used]
    order = np.argsort(key)  # a stable sort, which would keep rows of a cell in order, takes three times as long
    start = np.flatnonzero(np.diff(key[order], prepend=-1))
    place = np.empty(key.size, np.int64)
    place[order] = np.repeat(np.arange(start.size), np.diff(start, append=key.size))
    return place, order[start], np.diff(start, append=key.size)
