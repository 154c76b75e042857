"""What a table's values are silent about: texts that look alike, missing values, codes that stand for missing ones.

Columns are named and rows counted; no value is ever shown.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from shoal.model import coordinates
from shoal.model.cards import several

if TYPE_CHECKING:
    from shoal.engines.table import Counted

# fmt: off
CODES = frozenset([
    "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", "missing", "unknown", "unk", "-", "--", "---", ".",
    "..", "?", "??", "#ref!", "#value!", "#div/0!", "#name?", "#null!", "#num!", "#error!", "#spill!", "#calc!",
    "#getting_data", "inf", "-inf",
])
# fmt: on
NUMBERS = frozenset([77.7777, 99.9999, 777.7777, 999.9999])
NINES = frozenset([99.0, 999.0, 9999.0, 99999.0, 999999.0, -9.0, -99.0, -999.0, -9999.0])


def notes(counted: Counted) -> tuple[str, ...]:
    """Sentences on a counted table.

    Names the quasi-identifiers and sensitive columns in which values differ only by case, outer blanks or Unicode
    normal form, with the rows that hold them, and the sensitive columns in which missing values count as a value of
    their own.  O(distinct values + cells).
    """
    found: list[str] = []
    columns = [
        *((c, counted.histogram.quasi[:, j], False) for j, c in enumerate(counted.quasi)),
        *((c, counted.histogram.sensitive[:, j], True) for j, c in enumerate(counted.sensitive)),
    ]
    for column, codes, sensitive in columns:
        rows = np.bincount(codes, weights=counted.histogram.count, minlength=column.size)
        missing = int(rows[column.values.is_null().to_numpy()].sum()) if column.size else 0
        if column.values.dtype == pl.String:
            found += alike(column.name, column.texts(), rows.tolist(), sensitive)
        found += _missing(column.name, missing) if sensitive else []
    return tuple(found)


def sensitive_notes(frame: pl.DataFrame, names: Sequence[str]) -> tuple[str, ...]:
    """The same of the sensitive columns of a frame."""
    found: list[str] = []
    for column in (frame[name] for name in names):
        if column.dtype == pl.String or isinstance(column.dtype, (pl.Categorical, pl.Enum)):
            held, rows = column.cast(pl.String).value_counts()
            found += alike(column.name, held.to_list(), rows.to_list(), True)
        found += _missing(column.name, column.null_count())
    return tuple(found)


def coded_places(points: np.ndarray, rows: np.ndarray | None = None) -> list[str]:
    """A sentence when longitudes and latitudes, float64[n, 2], are codes for places nobody knows; rows: of each."""
    found = coordinates.codes(points)
    number = int(found.sum() if rows is None else rows[found].sum())
    if not number:
        return []
    return [
        f"{several(number, 'row')} with codes for coordinates (0 and 0, or repeated digits such as 77.7777), which are "
        "no place; repair them or leave them out"
    ]


def _missing(name: str, rows: int) -> list[str]:
    """A sentence when values of a sensitive column are missing."""
    note = "missing values count as a sensitive value of their own; l counts them as one more"
    return [f"column {name!r}: {rows:,} {note}"] if rows else []


def alike(name: str, values: Sequence[str | None], rows: Sequence[float], sensitive: bool) -> list[str]:
    """A sentence when values differ only by case, outer blanks or Unicode normal form.

    values  distinct; rows: how many rows hold each
    """
    first: dict[str, int] = {}
    held: dict[str, float] = {}
    for value, count in zip(values, rows, strict=True):
        if value is not None:
            folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", value).strip().casefold())
            first[folded] = first.get(folded, 0) + 1
            held[folded] = held.get(folded, 0) + count
    doubled = [folded for folded, number in first.items() if number > 1]
    if not doubled:
        return []
    number = sum(first[folded] for folded in doubled)
    total = int(sum(held[folded] for folded in doubled))
    counts = "l counts them apart" if sensitive else "they are kept apart"
    return [
        f"column {name!r}: {number:,} values in {total:,} rows differ from another one only by case, outer blanks or "
        f"Unicode normal form; {counts}"
    ]


def codes(series: pl.Series) -> list[str]:
    """Sentences when a column holds texts or numbers that often stand for a missing value.

    Texts such as NA, NULL, ?, - or a spreadsheet's #REF! count always; numbers of sevens and nines (77.7777, 999)
    where they lie apart from all others.
    """
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary):
        return []
    found = []
    numbers = series
    if series.dtype == pl.String or isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        text = series.cast(pl.String).str.strip_chars()
        count = int(text.str.to_lowercase().is_in(list(CODES)).sum())
        if count:
            found.append(
                f"{count:,} rows contain a text that often means a missing value (NA, NULL, ?, - or a spreadsheet's "
                "error); it counts as a value like any other"
            )
        numbers = text.cast(pl.Float64, strict=False)
    if numbers.dtype.is_numeric():
        values = numbers.cast(pl.Float64).drop_nulls().drop_nans()
        count = int(values.is_in(list(NUMBERS)).sum()) + _apart(values)
        if count:
            found.append(
                f"{count:,} rows contain a number that often means a missing value (77.7777, 99.9999, 999, -9); "
                "it counts as a number"
            )
    return found


def _apart(values: pl.Series) -> int:
    """How many rows hold a number of nines that is more than twice any other, or below zero where no other is."""
    nines = values.is_in(list(NINES))
    plain = values.filter(~nines & ~values.is_in(list(NUMBERS)) & values.is_finite())
    if not len(plain) or not nines.any():
        return 0
    low, high = float(plain.min()), float(plain.max())  # type: ignore[arg-type]
    return int((nines & ((values > 2 * max(high, 0.0)) | ((values < 0) & (low >= 0)))).sum())
