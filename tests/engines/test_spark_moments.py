"""Moments with a zone and without one, in Spark sessions whose own zone is not UTC."""

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal

pytest.importorskip("pyspark", reason="Spark frames need the package pyspark")
pytestmark = pytest.mark.filterwarnings("ignore")

ZONE = "America/New_York"
UTC = dt.UTC
SECRET = b"sixteen bytes or more"
# 02:30 on 8 March does not exist in the session's zone, 01:30 on 1 November is there twice
LOCAL = [dt.datetime(2020, 3, 8, 2, 30), dt.datetime(2020, 3, 8, 3, 30), dt.datetime(2020, 11, 1, 1, 30)]
ZONED = [dt.datetime(2020, 11, 1, 5, 30, tzinfo=UTC), dt.datetime(2020, 11, 1, 6, 30, tzinfo=UTC)]
OLD = dt.datetime(1583, 2, 3, 4, 5, 6, 7)


@pytest.fixture
def session(spark: Any) -> Iterator[Any]:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def table(session: Any, gaps: bool = False) -> tuple[pl.DataFrame, Any]:
    """The same twelve rows for Polars and for Spark, to which they come so that no zone can change them."""
    local = [LOCAL[i % 3] for i in range(11)] + [OLD]
    zoned = [ZONED[i % 2] for i in range(11)] + [OLD.replace(tzinfo=UTC)]
    if gaps:
        local[1] = local[2] = zoned[4] = None  # type: ignore[call-overload]
    frame = pl.DataFrame(
        {"local": local, "zoned": zoned, "s": list("ab" * 6), "row": list(range(12))},
        schema_overrides={"local": pl.Datetime("us"), "zoned": pl.Datetime("us", "UTC")},
    )
    numbers = frame.with_columns(pl.col("zoned").dt.epoch("us"), pl.col("local").cast(pl.String))
    given = session.createDataFrame(numbers.rows(), "local string, zoned long, s string, row long")
    told = ["cast(local as timestamp_ntz) local", "timestamp_micros(zoned) zoned", "s", "row"]
    return frame, given.selectExpr(*told)


ROLES: dict[str, dict[str, Any]] = {
    "both recoded": {"quasi_identifiers": ["local", "zoned"], "sensitive": ["s"], "insensitive": ["row"]},
    "one sensitive": {"quasi_identifiers": ["local"], "sensitive": ["zoned"], "insensitive": ["s", "row"]},
    "the other sensitive": {"quasi_identifiers": ["zoned"], "sensitive": ["local"], "insensitive": ["s", "row"]},
    "both carried": {"quasi_identifiers": ["s"], "insensitive": ["local", "zoned", "row"]},
}


MIRRORED = pytest.param("the other sensitive", marks=pytest.mark.slow)  # zoned and local exchanged


@pytest.mark.parametrize("role", [MIRRORED if role == MIRRORED.values[0] else role for role in ROLES])
def test_no_zone_changes_a_moment(session: Any, tmp_path: Path, role: str) -> None:
    frame, given = table(session)
    for publish, ending in (("stars", "parquet"), ("ranges", "csv")):
        asked = ROLES[role] | {"k": 2, "publish": publish, "seed": 1, "effort": "fast", "secret": SECRET}
        release, expected = shoal.anonymize(given, **asked), shoal.anonymize(frame, **asked)
        if publish == "stars":
            assert dict(release.table.dtypes)["local"] == "timestamp_ntz"
            assert dict(release.table.dtypes)["zoned"] == "timestamp"
        record = release.write(tmp_path / f"spark.{ending}", tmp_path / f"spark.{ending}.json")
        expected.write(tmp_path / f"polars.{ending}", tmp_path / f"polars.{ending}.json")
        read = pl.read_parquet if ending == "parquet" else pl.read_csv
        ours, theirs = (read(tmp_path / f"{name}.{ending}").sort("row") for name in ("spark", "polars"))
        assert ours.equals(theirs)
        for original in (given, frame) if publish == "stars" else (given,):
            assert shoal.verify(tmp_path / f"spark.{ending}", record, original).holds


def test_missing_moments_are_filled_as_they_stand(session: Any, tmp_path: Path) -> None:
    frame, given = table(session, gaps=True)
    asked = ROLES["both recoded"] | {"k": 2, "missing": "filled", "seed": 1, "effort": "fast", "secret": SECRET}
    release, expected = shoal.anonymize(given, **asked), shoal.anonymize(frame, **asked)
    record = release.write(tmp_path / "spark.parquet")
    expected.write(tmp_path / "polars.parquet")
    ours, theirs = (pl.read_parquet(tmp_path / f"{name}.parquet").sort("row") for name in ("spark", "polars"))
    assert ours.equals(theirs)
    assert shoal.verify(tmp_path / "spark.parquet", record, given).holds
