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
