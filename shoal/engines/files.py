"""Tables from disk: CSV (also .gz), Parquet and Excel, text kept exactly as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.engines.csv import one_character, read_csv, sniff
from shoal.engines.excel import read_excel
from shoal.engines.source import database_kind, kind_of, locate, spoiled
from shoal.errors import InputError, PolicyError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    coded: Sequence[str] = (),
    rows: bool = True,
) -> pl.DataFrame:
    """The whole file as a Polars frame.

    path       CSV (also .gz), Parquet or Excel, told by the ending; anything else is read as CSV; the name is literal
    separator  of a CSV; told from the header when None
    encoding   of a CSV: "utf-8" or "latin-1"; UTF-8 when None
    coded      columns of a CSV to read as categories, which is faster for columns that will be grouped
    rows       refuse a table without rows

    CSV columns are text exactly as written (``01234`` stays ``01234``), an empty field is a missing value; Parquet
    and Excel keep their types.  Raises InputError when the file is missing, breaks the rules of its format, has a
    column without a name or two of one name.
    """
    import polars as pl

    source = locate(path)
    if database_kind(path) is not None:
        raise InputError(f"{source.name!r} is a database; here files are read: write its table as Parquet or CSV first")
    if source.kind == "csv":
        return read_csv(source, one_character(separator), encoding, coded, rows=rows)
    if source.kind == "excel":
        return read_excel(source, rows=rows)
    try:
        frame = pl.read_parquet(source.path, glob=False, hive_partitioning=False)
    except pl.exceptions.DuplicateError:
        raise InputError(f"{source.name!r}: two columns have the same name; rename one of them") from None
    except pl.exceptions.PolarsError as error:
        raise spoiled(source.name, "Parquet", error) from None
    if not all(name.strip() for name in frame.columns):
        raise InputError(f"{source.name!r}: a column has no name; name it")
    if rows and not frame.height:
        raise InputError(f"{source.name!r} has no rows, so there is nothing to publish")
    return frame


def separator_of(path: str | Path) -> str | None:
    """The separator ``read_table`` finds in a CSV; None for a file that is not one."""
    if kind_of(path) != "csv" or not Path(path).is_file():
        return None
    source = locate(path)
    with source.open() as stream:
        return sniff(stream, source.name)


def column(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column by name; PolicyError with the nearest name when there is none, InputError for a name of several."""
    if name not in frame.columns:
        raise PolicyError.unknown("column", name, frame.columns)
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise InputError(f"the column name {name!r} is a pattern of other names to Polars; rename it")
    return frame[name]


def numbers(frame: pl.DataFrame, name: str) -> np.ndarray:
    """A column as float64[n]; InputError naming the first value that is not a finite number."""
    import polars as pl

    values = column(frame, name)
    if values.dtype == pl.String:
        cast = values.str.strip_chars().cast(pl.Float64, strict=False)
    else:
        cast = values.cast(pl.Float64, strict=False)
    bad = cast.is_null() | cast.is_nan() | cast.is_infinite()
    if bad.any():
        if bad.all():
            raise InputError(f"column {name!r} holds no numbers in any row; name a column of numbers")
        first = int(bad.arg_max() or 0) + 1
        raise InputError(
            f"column {name!r} holds what is not a finite number in {int(bad.sum()):,} rows, the first of them row "
            f"{first:,}; repair them or leave the rows out"
        )
    return cast.to_numpy()


def integers(frame: pl.DataFrame, name: str) -> list[int]:
    """A column as Python integers, of any size; InputError naming the first value that is not one."""
    found: list[int] = []
    for row, value in enumerate(column(frame, name).to_list(), 1):
        try:
            found.append(int(value))
        except (TypeError, ValueError):
            raise InputError(f"column {name!r} holds what is not a whole number in row {row:,}; repair it") from None
    return found
