"""The judge of files: reads a release from disk with its own reader, and counts its published tuples."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError, MissingDependencyError, VerificationError
from shoal.paths import ending, kind_of

UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)  # Polars panics at some damaged files
_STEP = 1 << 15  # rows in one batch, so that a batch fits in the processor's cache


def codes(series: pl.Series) -> np.ndarray:
    """int64[n] codes of cells: two codes are equal exactly if the cells are. null and NaN are one value."""
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.to_physical()
    if series.dtype.is_nested() or series.dtype == pl.Object:
        series = pl.Series(series.name, [repr(v) for v in series.to_list()])
    if series.dtype == pl.String:
        series = series.cast(pl.Categorical(pl.Categories.random())).to_physical()
    elif series.dtype.is_temporal():
        series = series.to_physical()
    narrow = series.dtype.is_integer() and series.dtype not in (pl.Int128, pl.UInt128)
    missing = series.null_count()
    if narrow and missing < len(series):
        whole = (series.fill_null(strategy="max") if missing else series).to_numpy()
        low, high = whole.min(), whole.max()
        if int(high) - int(low) < 1 << 22:
            above = whole - low if whole.dtype.kind == "u" else whole.astype(np.int64) - low
            found: np.ndarray = above.astype(np.int64, copy=False)
            return np.where(series.is_null().to_numpy(), int(high) - int(low) + 1, found) if missing else found
    return series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def number(columns: Sequence[np.ndarray], n: int) -> np.ndarray:
    """The class of every row, 0 .. classes-1."""
    return _dense(*_keys(columns, n))


def _keys(columns: Iterable[np.ndarray], n: int) -> tuple[np.ndarray, int]:
    """(int64[n] keys >= 0, equal exactly if the rows are; an exclusive upper bound of the keys)."""
    key = np.zeros(n, np.int64)
    span = 1
    for code in columns:
        width = int(code.max()) + 1 if n else 1
        if span * width >= 2**62:
            key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
            span = int(key.max()) + 1
        key *= width
        key += code
        span *= width
    return key, span


def _dense(key: np.ndarray, span: int) -> np.ndarray:
    if span <= max(1 << 20, 4 * key.size):
        held = np.zeros(span, bool)
        held[key] = True
        used = np.flatnonzero(held)
        rank = np.zeros(span, np.int64)
        rank[used] = np.arange(used.size)
        return rank[key]
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


def numbered(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int64[n]: the rank of each key >= 0 among the distinct keys; a row of each distinct key)."""
    number = _dense(key, int(key.max(initial=0)) + 1)
    row = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    row[number] = np.arange(number.size)
    return number, row


Counts = tuple[pl.DataFrame, np.ndarray]


def same_counts(expected: Counts, found: Counts, *, form: str = "frame") -> bool:
    """Whether two tables of tuples with counts are the same multiset, compared as text.

    expected, found  the columns in one order, and the rows of every tuple; a tuple may occur in several lines
    form             "frame" or "parquet": values have types. "csv", "excel", or "statistics": an empty text is a
                     missing value. Excel keeps 15 digits, and doesn't distinguish a day from its midnight.

    O(t log t) for t tuples, less if the columns have few distinct values.
    """
    if expected[0].columns != found[0].columns:
        return False
    # one column at a time, to save memory
    both = (_numbered(expect, see, form) for expect, see in zip(expected[0], found[0], strict=True))
    left = np.concatenate([expected[1], -np.asarray(found[1], np.int64)])
    if not left.size:
        return True
    key = _keys(both, left.size)[0]
    order = np.argsort(key)  # only equality of keys matters, not their values
    return not np.add.reduceat(left[order], np.flatnonzero(np.diff(key[order], prepend=-1))).any()


def _numbered(expected: pl.Series, found: pl.Series, form: str) -> np.ndarray:
    """The cells of both columns as whole numbers, equal exactly if their texts are. Each category is read once."""
    pair = (expected, found)
    if not all(isinstance(column.dtype, pl.Categorical) for column in pair):
        return codes(_joined(expected, found, form))
    places = [_places(column) for column in pair]
    row_of = [_rows_of(place) for place in places]
    short = [column.gather(rows[rows >= 0]) for column, rows in zip(pair, row_of, strict=True)]
    number_of = codes(pl.concat([canonical(distinct, form).rename("") for distinct in short]))
    cells = np.empty(sum(place.size for place in places), np.int32)
    done = seen = 0
    for place, rows in zip(places, row_of, strict=True):
        known = rows >= 0
        rows[known] = number_of[seen : (seen := seen + int(known.sum()))]
        numbers = rows.astype(np.int32)  # row numbers fit in int32
        for start in range(0, place.size, _STEP):
            part = place[start : start + _STEP].astype(np.intp)
            # no index is out of bounds
            np.take(numbers, part, out=cells[done : (done := done + part.size)], mode="clip")
    return cells


def _places(categories: pl.Series) -> np.ndarray:
    """The index of every row's category; missing values get the next free index."""
    place = categories.to_physical()
    if place.null_count():
        highest = place.max()
        place = place.cast(pl.Int64).fill_null(0 if highest is None else int(highest) + 1)  # type: ignore[arg-type]
    return place.to_numpy()


def _rows_of(places: np.ndarray) -> np.ndarray:
    """int64: for each index a row that has it, -1 if none has."""
    found = np.full(int(places.max()) + 1 if places.size else 0, -1, np.int64)
    for start in range(0, places.size, _STEP):
        part = places[start : start + _STEP].astype(np.intp)
        found[part] = np.arange(start, start + part.size)
    return found


def _joined(expected: pl.Series, found: pl.Series, form: str) -> pl.Series:
    """Two columns concatenated: unchanged if their types are equal and exact, otherwise as text."""
    kind = expected.dtype
    exact = kind.is_integer() or kind in (pl.Boolean, pl.Date) or kind == pl.String
    if kind == found.dtype and exact and form in ("frame", "parquet"):
        return pl.concat([expected, found.rename(expected.name)])
    return pl.concat([canonical(expected, form), canonical(found.rename(expected.name), form)])


def canonical(column: pl.Series, form: str = "frame") -> pl.Series:
    """Values as text that doesn't depend on the storage type; missing values and NaN become null.

    Whole numbers have no point, decimals no trailing zeros, and moments are in UTC.
    """
    kind = column.dtype
    excel = form == "excel"
    if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)):
        text = column.cast(pl.String)
        return text if form in ("frame", "parquet") else text.replace("", None)
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


def special_bits(column: pl.Series) -> set[int]:
    """The bits of a column's zeros and NaNs; nothing if it has no floats."""
    if not column.dtype.is_float():
        return set()
    held = column.drop_nulls().to_numpy()
    held = held[(held == 0) | np.isnan(held)]
    return set(np.unique(held.view(f"u{held.itemsize}")).tolist())


def marks_rows(bits: set[int]) -> bool:
    """Whether equal floats differ in their bits: a negative zero beside a zero, or two kinds of NaN."""
    zeros = [b for b in bits if not b & b - 1]  # at most the sign is set
    return len(zeros) > 1 or len(bits) - len(zeros) > 1


def read_release(path: Path, separator: str | None = None) -> pl.DataFrame:
    """A released file as written: CSV as text (an empty field is missing), all other formats with their types."""
    try:
        if kind_of(path) == "parquet":
            return pl.read_parquet(path, glob=False, hive_partitioning=False)
        if kind_of(path) == "excel":
            return _read_excel(path)
        if kind_of(path) == "statistics":
            return _read_statistics(path)
        frame = pl.read_csv(path, infer_schema=False, separator=separator or ",", glob=False)
        return frame.rename(dict(zip(frame.columns, unquoted(frame.columns), strict=True)))
    except FileNotFoundError:
        raise InputError(f"there is no release {str(path)!r}") from None
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except UNREADABLE as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> VerificationError:
    """The error for a release that its reader refuses. It omits the reader's own message, which can contain values."""
    return VerificationError(
        f"{path.name!r} cannot be read back ({type(error).__name__}): it is damaged, or was changed after it was "
        "certified; ask for it again, or make it again"
    )


def unquoted(names: Sequence[str]) -> list[str]:
    """The names in a CSV header without doubled quotes, which Polars keeps."""
    return [name.replace('""', '"') for name in names]


def _read_excel(path: Path) -> pl.DataFrame:
    try:
        return pl.read_excel(path, infer_schema_length=None, drop_empty_rows=False)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise unreadable(path, error) from None


def _read_statistics(path: Path) -> pl.DataFrame:
    """A file of SPSS or Stata; VerificationError if it contains anything except its rows, such as a label."""
    try:
        import pyreadstat
    except ImportError:
        raise MissingDependencyError.needed("pyreadstat", "reading SPSS or Stata", "statistics") from None
    read = pyreadstat.read_dta if ending(path) == ".dta" else pyreadstat.read_sav
    if not path.is_file():
        raise FileNotFoundError
    try:
        frame, facts = read(str(path), output_format="polars", user_missing=True)
    except Exception as error:
        raise unreadable(path, error) from None
    more = (
        facts.notes, facts.file_label, facts.value_labels, facts.missing_ranges, facts.missing_user_values,
        [label for label in facts.column_labels if label],
    )  # fmt: skip
    if any(more):
        raise VerificationError(f"{path.name!r} has notes, labels or declared missing values, which shoal never writes")
    return frame.with_columns(pl.col(pl.String).replace("", None), pl.col(pl.Null).cast(pl.String))


def seal(record: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate file's content without its seal and signature, so that manual edits are detected."""
    kept = {k: v for k, v in record.items() if k not in ("seal", "signature")}
    content = json.dumps(kept, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()


def refuse_other(expected: Counts, found: Counts, form: str = "frame") -> None:
    """Raise VerificationError unless both tables have the same tuples equally often."""
    if not same_counts(expected, found, form=form):
        raise VerificationError(
            "what would be written differs from what was decided: some tuple of published and sensitive values occurs "
            "more or less often than it should; nothing was published. This is a defect of shoal: please report it"
        )


def stale(path: Path, raw: Mapping[str, Any]) -> str:
    """Which of a file and its certificate is older, if they don't belong together."""
    sentence = (
        "the file is not the one certified: the certificate belongs to another file, or to another version of this "
        "release"
    )
    try:
        made = datetime.datetime.fromisoformat(str(raw["made_at"])).timestamp()
        written = path.stat().st_mtime
    except (KeyError, ValueError, OSError):
        return sentence
    older = "the certificate is the older" if written >= made + 1 else "the release is the older"
    return f"{sentence}; by their times {older}, so make both again"


def set_bits(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int64, int64): row and column of every set bit, in row-major order. packed: uint8[rows, columns / 8]

    Most bytes are zero, so only the others are unpacked.
    """
    at = np.flatnonzero(packed)
    byte, bit = np.nonzero(np.unpackbits(packed.reshape(-1)[at][:, None], axis=1))
    row, column = np.divmod(at[byte], packed.shape[1])
    return row, column * 8 + bit
