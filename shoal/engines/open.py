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
) -> Any:
    """A table from a path or a frame.

    data    path of a CSV, Parquet or Excel file, or a pandas / Polars / PyArrow / DuckDB / Spark frame
    engine  for a path: "polars" (in memory, the default), "duckdb" or "spark"

    coded   columns that will be grouped; they are read as categories where the file is text

    Raises InputError when the data are none of these.
    """
    if engine is not None and engine not in ENGINES:
        raise PolicyError.unknown("engine", engine, ENGINES)
    if isinstance(data, (str, Path)):
        from shoal.engines.files import kind_of, read_table

        if engine in (None, "polars"):
            text = kind_of(data) == "csv"
            frame = read_table(data, separator=separator, encoding=encoding, coded=coded)
            return FrameTable(frame, coded=coded if text else ())
        from shoal.engines.lazy import open_file

        return open_file(Path(data), str(engine), separator=separator, encoding=encoding)
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
