"""Whatever a user hands over, as a table with the two operations an engine needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.engines.frames import FrameTable
from shoal.errors import InputError, PolicyError

ENGINES = ("polars", "duckdb", "spark")


def open_table(
    data: Any,
    engine: str | None = None,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    coded: Sequence[str] = (),
    needed: Sequence[str] = (),
) -> Any:
    """A table from a path or a frame.

    data    path of a CSV, Parquet or Excel file, or a pandas / Polars / PyArrow / DuckDB / Spark frame
    engine  for a path: "polars" (in memory, the default), "duckdb" or "spark"

    coded   columns that will be grouped; they are read as categories where the file is text
    needed  columns that a file must have

    Raises InputError when the data are none of these, PolicyError for a column that is not there, with the separator
    that would give it.
    """
    if engine is not None and engine not in ENGINES:
        raise PolicyError.unknown("engine", engine, ENGINES)
    if isinstance(data, (str, Path)):
        table = _opened(data, engine, separator, encoding, coded)
        _require(table, data, separator, needed)
        return table
    module = type(data).__module__.split(".")[0]
    if module == "polars":
        import polars as pl

        if isinstance(data, pl.LazyFrame):
            return FrameTable(data.collect(), lazy=True)
    if module in ("duckdb", "_duckdb", "pyspark", "sqlframe"):
        from shoal.engines.lazy import LazyTable

        return LazyTable(data)
    try:
        return FrameTable(data)
    except TypeError:
        raise InputError(
            f"a table of type {type(data).__name__} is not known; hand over a path, or a pandas, Polars, PyArrow, "
            "DuckDB or Spark frame"
        ) from None


def _opened(
    path: str | Path, engine: str | None, separator: str | None, encoding: str | None, coded: Sequence[str]
) -> Any:
    from shoal.engines.files import read_table
    from shoal.engines.source import kind_of

    if engine in (None, "polars"):
        text = kind_of(path) == "csv"
        frame = read_table(path, separator=separator, encoding=encoding, coded=coded)
        return FrameTable(frame, coded=coded if text else ())
    from shoal.engines.lazy_files import open_file

    return open_file(path, str(engine), separator=separator, encoding=encoding)


def _require(table: Any, path: str | Path, separator: str | None, needed: Sequence[str]) -> None:
    """PolicyError for the first column that is not there; it names the separator that would give it."""
    from shoal.engines.csv import one_character, other_separator
    from shoal.engines.files import separator_of
    from shoal.engines.source import locate

    absent = [name for name in needed if name not in table.columns]
    if not absent:
        return
    used = one_character(separator) or separator_of(path)
    other = None if used is None else other_separator(locate(path), used, needed)
    refusal = PolicyError.unknown("column", absent[0], table.columns)
    if other is None:
        raise refusal
    raise PolicyError(f"{refusal}; the separator {other!r} instead of {used!r} would give it")
