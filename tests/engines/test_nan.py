"""NaN in a Parquet file whose statistics leave it out: by them DuckDB answers isnan() without a look at the values."""

import re
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


GAPS = [20.0, 21.0, 22.0, 23.0, 34.5, 35.0, 36.0, NONE]


def kinds_of(values: list[float]) -> dict[str, Any]:
    polars = pl.DataFrame({"age": pl.Series(values, nan_to_null=True)})
    pandas, arrow = polars.to_pandas(), polars.to_arrow()
    return {
        "polars": polars, "pandas": pandas, "pandas of arrow": pandas.convert_dtypes(dtype_backend="pyarrow"),
        "arrow": arrow, "duckdb": duckdb.from_arrow(arrow),
    }  # fmt: skip


@pytest.mark.parametrize("kind", [*kinds_of(GAPS)])
@pytest.mark.parametrize("setting", ["", "range_step", "top"])
def test_a_whole_float_is_written_without_a_point(kind: str, setting: str, tmp_path: Path) -> None:
    """pandas stores 34 as 34.0 if another value is missing; 34.5 stays."""
    asked: dict[str, Any] = {"range_step": {"range_step": {"age": 5}}, "top": {"top": {"age": 36}}, "": {}}[setting]
    source = kinds_of(GAPS)[kind]
    made = shoal.anonymize(source, quasi_identifiers=["age"], k=2, publish="ranges", effort="fast", seed=1, **asked)
    made.write(tmp_path / "out.csv")
    shown = set(pl.read_csv(tmp_path / "out.csv", infer_schema=False)["age"])
    assert (
        shown
        == {
            "": {"[20, 21]", "[22, 23]", "[34.5, 35]", "[36, missing]"},
            "top": {"[20, 21]", "[22, 23]", "[34.5, 35]", "[>=36, missing]"},
            "range_step": {"[20, 25]", "[30, 35]", "[35, missing]"},
        }[setting]
    )
    texts = tmp_path / "by_pandas.csv"  # with 20.0 in place of 20
    kinds_of(GAPS)["pandas"].to_csv(texts, index=False)
    for original in (kinds_of(GAPS)["polars"], texts):
        assert shoal.verify(tmp_path / "out.csv", original=original).holds


@pytest.mark.parametrize("hidden", [34.0, 34.5])
@pytest.mark.parametrize("asked", [{}, {"top": {"age": 40}}, {"range_step": {"age": 10}}])
def test_the_form_of_a_number_tells_nothing_of_another(hidden: float, asked: dict[str, Any]) -> None:
    frame = pl.DataFrame({"age": [20.0, 21.0, 33.0, hidden, 38.0, 42.0, 43.0]})
    made = shoal.anonymize(frame, quasi_identifiers=["age"], k=2, publish="ranges", effort="fast", seed=1, **asked)
    ends = {end for text in made.table["age"] for end in re.findall(r"[0-9.]+", text)}
    assert {end for end in ends if "." in end} <= {"34.5"}  # which group the row joins is open
    assert len(ends) > 3
