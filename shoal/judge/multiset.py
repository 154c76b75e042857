"""The judge of content: whether published tuples stand there as often as they should, cell by cell."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.judge.tuples import codes, number

Counts = tuple[pl.DataFrame, np.ndarray]


def same_counts(expected: Counts, found: Counts, *, form: str = "frame") -> bool:
    """Whether two tables of tuples with counts are the same multiset, compared as text.

    expected, found  the columns in one order, and the rows of every tuple; a tuple may stand in several lines
    form             "frame" or "parquet": values of their own types; "csv" or "excel": an empty text is a missing
                     value, and Excel knows 15 digits and no difference between a day and its midnight

    O(t log t) for t tuples, less where few values make them up.
    """
    if expected[0].columns != found[0].columns:
        return False
    both = [_numbered(*pair, form) for pair in zip(expected[0], found[0], strict=True)]
    left = np.concatenate([expected[1], -np.asarray(found[1], np.int64)])
    return not np.bincount(number(both, left.size), weights=left).any()  # exact below 2^53 rows


def _numbered(expected: pl.Series, found: pl.Series, form: str) -> np.ndarray:
    """int64: the cells of both columns, equal exactly where their texts are; of categories each is read once."""
    pair = (expected, found)
    if not all(isinstance(column.dtype, pl.Categorical) for column in pair):
        return codes(_joined(expected, found, form))
    short = [column.unique().rename("") for column in pair]
    number_of = codes(pl.concat([canonical(distinct, form) for distinct in short]))
    numbers = np.split(number_of, [len(short[0])])
    return np.concatenate([_looked_up(*three) for three in zip(pair, short, numbers, strict=True)])


def _looked_up(column: pl.Series, distinct: pl.Series, numbers: np.ndarray) -> np.ndarray:
    place, at = (c.to_physical().cast(pl.Int64).fill_null(-1).to_numpy() for c in (column, distinct))
    found = np.zeros(int(at.max(initial=-1)) + 2, np.int64)  # what is missing stands last
    found[at] = numbers
    return found[place]


def _joined(expected: pl.Series, found: pl.Series, form: str) -> pl.Series:
    """Both columns as one: as they are where their types are alike and exact, else as text."""
    kind = expected.dtype
    exact = kind.is_integer() or kind in (pl.Boolean, pl.Date) or kind == pl.String
    if kind == found.dtype and exact and form in ("frame", "parquet"):
        return pl.concat([expected, found.rename(expected.name)])
    return pl.concat([canonical(expected, form), canonical(found.rename(expected.name), form)])


def canonical(column: pl.Series, form: str = "frame") -> pl.Series:
    """Values as text that does not depend on how a type stores them; missing and NaN are null.

    Whole numbers without a point, decimals without zeros at the end, moments in UTC.
    """
    kind = column.dtype
    excel = form == "excel"
    if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)):
        text = column.cast(pl.String)
        return text.replace("", None) if form in ("csv", "excel") else text
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        return pl.Series([None if v is None else repr(v) for v in column.to_list()], dtype=pl.String)
    if kind.is_float() or (excel and kind.is_decimal()):
        wide = column.cast(pl.Float64).fill_nan(None)
        wide = wide.round_sig_figs(15) if excel else wide
        whole = ((wide == wide.floor()) & (wide.abs() < 2.0**53)).fill_null(False)
        return wide.cast(pl.String).zip_with(~whole, wide.set(~whole, 0.0).cast(pl.Int64).cast(pl.String))
    if kind.is_decimal():
        text = column.cast(pl.String)
        return text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(kind, pl.Datetime):
        zone = "" if kind.time_zone is None else "Z"
        moment = column if kind.time_zone is None else column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        text = moment.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
        return (text.str.strip_suffix(" 00:00:00") if excel else text) + zone
    if isinstance(kind, pl.Duration):
        return column.cast(pl.Duration("ns")).to_physical().cast(pl.String)
    if kind == pl.Time:
        return column.to_physical().cast(pl.String)
    return column.cast(pl.String)
