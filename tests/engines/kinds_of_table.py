"""One table of texts handed over as every kind of frame and file, and what a release of any kind publishes."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest


def handed(frame: pl.DataFrame, kind: str, folder: Path, spark: Any = None) -> Any:
    """A table of texts as some kind of frame or file; of a pandas frame, the first column is categorical."""
    if kind == "pandas":
        return frame.to_pandas().astype({frame.columns[0]: "category"})
    if kind in ("csv", "xlsx", "parquet"):
        path = folder / f"t.{kind}"
        if kind == "csv":
            frame.write_csv(path, separator=";")
        elif kind == "xlsx":
            frame.write_excel(path)
        else:
            frame.write_parquet(path)
        return path
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(frame.to_arrow())
    if kind == "spark":
        return spark.createDataFrame(frame.rows(), ", ".join(f"{n} string" for n in frame.columns))
    return frame


def rows(released: Any, first: str, *more: str) -> list[tuple[str, ...]]:
    """What some columns of a release publish, without its order."""
    if hasattr(released, "toPandas"):
        released = released.toPandas()
    if hasattr(released, "pl"):
        released = released.pl()
    frame = released if isinstance(released, pl.DataFrame) else pl.from_pandas(released.astype(str))
    return sorted(frame.select(first, *more).cast(pl.String).rows())
