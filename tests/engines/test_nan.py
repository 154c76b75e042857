"""NaN in a Parquet file whose statistics leave it out: by them DuckDB answers isnan() without a look at the values."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import shoal
from tests.data import drawn
from tests.kept import holding

ROWS = 60
NONE = float("nan")


def people() -> pl.DataFrame:
    found = drawn(ROWS, 0, weight=[1.5, 2.5, NONE], town="uvwxyz", score=[1.0, NONE, 3.0])
    return found.select(pl.Series("id", np.arange(ROWS)), pl.all())


@pytest.mark.parametrize("missing", ["category", "apart", "filled"])
def test_what_is_no_number_is_found_in_a_file_too(missing: str, tmp_path: Path) -> None:
    before, path = people(), tmp_path / "t.parquet"
    before.write_parquet(path)
    assert duckdb.read_parquet(str(path)).filter("isnan(weight)").fetchall() == []  # else nothing is tried here
    asked: dict[str, Any] = {"quasi_identifiers": ["weight", "town"], "insensitive": ["id", "score"], "k": 9}
    shown = []
    for data, engine in ((before, None), (path, "polars"), (path, "duckdb"), (duckdb.read_parquet(str(path)), None)):
        release = shoal.anonymize(data, engine=engine, missing=missing, secret=b"s" * 16, seed=1, **asked)
        target = tmp_path / "out.parquet"
        beside = release.write(target)
        holding(shoal.verify(target, beside, before))
        told = pl.read_parquet(target).sort("id").select(pl.col("*").cast(pl.String).replace("NaN", None))
        shown.append((told.rows(), release.loss["stars"], release.facts.missing.apart, release.facts.missing.filled))
    assert release.loss["stars"] > 0  # rows of a cell part, by an order that all engines share
    assert all(other == shown[0] for other in shown)
