"""Tables to disk: CSV (also .gz), Parquet and Excel, each holding exactly what it is given or refusing it."""

from __future__ import annotations

import contextlib
import datetime
import gzip
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.engines.atomic import publish_file
from shoal.engines.codes import as_text
from shoal.engines.columns import without_levels
from shoal.engines.files import kind_of, one_character
from shoal.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

SHEET_ROWS, SHEET_COLUMNS, CELL = 1_048_575, 16_384, 32_767
_FIRST_DAY = datetime.date(1900, 3, 1)  # before it Excel counts a day that never was


def usual_separator(path: str | Path) -> str:
    """What stands between the fields of a new file: a tab in .tsv, else a comma."""
    return "\t" if Path(path).name.lower().removesuffix(".gz").endswith(".tsv") else ","


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a table that needs no judgement (that of the demo), whole or not at all."""
    publish_file(path, lambda temporary: store(frame, temporary))


def store(frame: pl.DataFrame, path: Path, separator: str | None = None, rows: np.ndarray | None = None) -> None:
    """Write by the file's ending, in place; use ``publish_file`` around it.

    rows  uint32[n]  of a CSV: the line of the frame that stands in every row; None: each once, in its order

    Raises InputError for what the format cannot hold.
    """
    import polars as pl

    kind = kind_of(path)
    separator = one_character(separator) or usual_separator(path)
    try:
        if kind == "parquet":
            frame.select(without_levels(c) for c in frame.iter_columns()).write_parquet(path)
        elif kind == "excel":
            _store_excel(frame, path)
        elif path.name.lower().endswith(".gz"):
            with open(path, "wb") as raw, gzip.GzipFile("", "wb", compresslevel=6, mtime=0, fileobj=raw) as file:
                _store_csv(flat(frame), file, separator, rows)
        else:
            with open(path, "wb") as raw:
                _store_csv(flat(frame), raw, separator, rows)
    except pl.exceptions.PolarsError as error:
        if "os error" in str(error):
            raise
        raise InputError(f"{path.suffix} cannot be written ({type(error).__name__})") from None


def _store_csv(frame: pl.DataFrame, file: Any, separator: str, rows: np.ndarray | None) -> None:
    """A CSV; where lines of the frame stand in many rows, each is formatted once, by the same writer."""
    import polars as pl

    if rows is None:
        frame.write_csv(file, separator=separator)
        return
    head, *lines = frame.write_csv(separator=separator).split("\n")[:-1]
    if len(lines) != frame.height:  # a line break in a field
        frame[rows].write_csv(file, separator=separator)
        return
    file.write(head.encode() + b"\n")
    pl.Series("line", lines, dtype=pl.String).gather(rows).to_frame().write_csv(
        file, include_header=False, quote_style="never"
    )


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns that text can hold: durations as ISO text; InputError for lists, structures, bytes and objects."""
    import polars as pl

    _refuse_nested(frame)
    return frame.with_columns(pl.col(n).dt.to_string("iso") for n, k in frame.schema.items() if k == pl.Duration)


def _refuse_nested(frame: pl.DataFrame) -> None:
    import polars as pl

    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Object, pl.Binary):
            raise InputError(f"column {name!r} holds {kind}, which has no place in CSV or Excel; write Parquet")


def refuse_for_excel(path: str | Path, frame: pl.DataFrame, recoded: Collection[str] = ()) -> None:
    """InputError for a table that a sheet cannot hold, told before any work is done on it.

    frame    the columns that will be written
    recoded  those of them in which a value may yet become a star
    """
    path = Path(path)
    if kind_of(path) != "excel":
        return
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"Excel files are written as .xlsx, not {path.suffix}; name another file")
    refuse_sheet(frame.height, frame.columns)
    _refuse_nested(frame)
    import polars as pl

    held = []
    for name, kind in frame.schema.items():
        column = frame[name]
        if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)):
            texts = column.unique().cast(pl.String)
            if _too_long(texts):
                raise InputError(f"column {name!r} has a text of more than {CELL:,} characters; write CSV or Parquet")
            held.append(column.is_not_null() & (column.cast(pl.String) != ""))
        elif kind.is_float() and (column.filter(column.is_finite()).abs() >= 2**63).any():
            raise InputError(
                f"column {name!r} has numbers beyond 64 bits, which are read from a sheet as integers that do not fit; "
                "write CSV or Parquet"
            )
        elif not (name in recoded and column.null_count()):
            held.append(column.is_not_null())
    if frame.height and (not held or not pl.DataFrame(held).select(pl.any_horizontal(pl.all())).to_series().all()):
        raise InputError(
            "a row is, or may come to be, without any value, which a sheet cannot show; write CSV or Parquet"
        )


def refuse_both(held: Mapping[str, Sequence[str | None]]) -> None:
    """InputError for a column with empty texts beside missing values: in a file of text one value, in the table two.

    held  per column that is judged, its values as text
    """
    for name, values in held.items():
        if "" in values and None in values:
            raise InputError(
                f"column {name!r} has empty texts beside missing values, which CSV and Excel cannot tell apart; "
                "write Parquet, or make both one"
            )


def _too_long(texts: pl.Series) -> bool:
    """Whether any is longer than a cell, counted as Excel does, in units of UTF-16."""
    long = texts.filter(texts.str.len_chars() > CELL // 2)
    return any(len(text.encode("utf-16-le")) // 2 > CELL for text in long.drop_nulls())


def refuse_sheet(rows: int, columns: Sequence[str]) -> None:
    """InputError for more rows or columns than a sheet has, or for names its table cannot tell apart."""
    if rows > SHEET_ROWS or len(columns) > SHEET_COLUMNS:
        raise InputError(
            f"an Excel sheet holds {SHEET_ROWS:,} rows and {SHEET_COLUMNS:,} columns, this table has {rows:,} and "
            f"{len(columns):,}; write CSV or Parquet"
        )
    seen: dict[str, str] = {}
    for name in columns:
        if not name or len(name) > 255:
            raise InputError(f"an Excel sheet cannot hold the column name {name[:40]!r}; rename it, or write CSV")
        if seen.setdefault(name.lower(), name) != name:
            raise InputError(
                f"an Excel sheet takes the columns {seen[name.lower()]!r} and {name!r} for one; rename one of them"
            )


def text_in_excel(column: pl.Series) -> bool:
    """Whether a column must stand in a sheet as text, because a cell of its own kind would not give it back.

    A cell holds 16 digits of a number, milliseconds of a time, and no zone, decimal or day before March 1900.
    """
    import polars as pl

    kind = column.dtype
    if kind == pl.Time or kind.is_decimal() or kind == pl.Duration:
        return True
    if isinstance(kind, pl.Datetime):
        if kind.time_zone is not None:
            return True
        fine = {"ns": 1_000_000, "us": 1_000, "ms": 1}[kind.time_unit]
        return bool((column.to_physical() % fine != 0).any()) or _early(column.dt.date())
    if kind == pl.Date:
        return _early(column)
    if kind.is_integer():
        ends = [v for v in (column.min(), column.max()) if isinstance(v, int)]
        return any(abs(v) > 2**53 for v in ends)
    if kind.is_float():
        return any(not math.isfinite(v) or float(f"{v:.16G}") != v for v in column.drop_nulls().unique().to_list())
    return False


def _early(days: pl.Series) -> bool:
    first = days.min()
    return isinstance(first, datetime.date) and first < _FIRST_DAY


def _store_excel(frame: pl.DataFrame, path: Path) -> None:
    import polars as pl

    refuse_for_excel(path, frame)
    try:
        import xlsxwriter
    except ImportError:
        raise MissingDependencyError.needed("xlsxwriter", "writing Excel", "excel") from None
    frame = flat(frame.with_columns(as_text(c) for c in frame if text_in_excel(c) and c.dtype != pl.Duration))
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    book: Any = xlsxwriter.Workbook(
        str(path), {"strings_to_urls": False, "strings_to_formulas": False, "strings_to_numbers": False}
    )
    try:
        frame.write_excel(book)
        book.close()
    except Exception as error:  # the writer has errors of its own around those of the system
        with contextlib.suppress(Exception):
            book.fileclosed = True  # or it would be tried again when the object goes
        raise OSError(
            getattr(error.args[0] if error.args else None, "errno", None) or getattr(error, "errno", None) or 5,
            f"writing Excel failed ({type(error).__name__})",
        ) from None
