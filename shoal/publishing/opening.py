"""Whatever a user hands over, as one frame in memory: for problems that see every row."""

from __future__ import annotations

from typing import Any

import polars as pl


def opened(data: Any, separator: str | None = None, encoding: str | None = None) -> pl.DataFrame:
    """Any table as a Polars frame, the text of a CSV as it stands."""
    from shoal.engines.open import open_table

    if isinstance(data, pl.DataFrame):
        return data
    table = open_table(data, separator=separator, encoding=encoding)
    if hasattr(table, "polars"):
        return table.polars(table.columns)  # type: ignore[no-any-return]
    return table.frame.collect(backend="polars").to_native()  # type: ignore[no-any-return]


def like(data: Any, frame: pl.DataFrame) -> Any:
    """A Polars frame as the kind of frame that data are; of a path it stays one."""
    module = type(data).__module__.split(".")[0]
    if isinstance(data, pl.LazyFrame):
        return frame.lazy()
    if module == "pandas":
        return frame.to_pandas()
    if module == "pyarrow":
        return frame.to_arrow()
    if module in ("duckdb", "_duckdb", "pyspark"):
        from shoal.engines.lazy import LazyTable

        return LazyTable(data).bring(frame)
    return frame
