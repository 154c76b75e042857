"""Every release that is made verifies, with and without its original."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal

NAMES = ["len", "count", "*", "age", "rows", "values", "0", "a b", "größe"]
ENDINGS = [".csv", ".csv.gz", ".tsv", ".parquet", ".xlsx"]
MODELS: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 3},
    {"l": 2},
    {"k": 2, "distinct_l": 2},
    {"k": 2, "entropy_l": 1.5},
    {"alpha_k": (0.8, 2)},
]


def pool(rng: random.Random, kind: str) -> list[Any]:
    """A few values of a kind."""
    start = dt.datetime(2020, 1, 31, 5, 6)
    return {
        "text": ["a", "b", "a, b", "c"],
        "digits": ["7", "07", "8", "10"],
        "truth": ["True", "False"],
        "integer": [-3, 0, 20, 21, 400],
        "wide": [2**53 + 1, 2**53 + 3, 5],
        "float": [0.5, 1.0, 1e-7, 2.5e20, 0.1 + 0.2],
        "boolean": [True, False],
        "decimal": [Decimal("1.50"), Decimal("2.00"), Decimal("-0.25")],
        "date": [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(1950, 3, 4)],
        "moment": [start, start + dt.timedelta(days=3), start + dt.timedelta(microseconds=1)],
        "category": ["x", "y", "z"],
    }[kind]


def series(rng: random.Random, name: str, kind: str, n: int, gaps: bool) -> pl.Series:
    values = [rng.choice(pool(rng, kind)) for _ in range(n)]
    if gaps:
        values = [None if rng.random() < 0.2 else v for v in values]
    types: dict[str, Any] = {
        "integer": pl.Int64,
        "wide": pl.Int64,
        "float": pl.Float64,
        "decimal": pl.Decimal(10, 2),
        "boolean": pl.Boolean,
        "date": pl.Date,
        "moment": pl.Datetime("us"),
    }
    found = pl.Series(name, values, dtype=types.get(kind, pl.String))
    return found.cast(pl.Categorical) if kind == "category" else found


KINDS = ["text", "digits", "truth", "integer", "wide", "float", "boolean", "decimal", "date", "moment", "category"]
SHEET = ["text", "digits", "truth", "integer", "float", "boolean", "category", "date"]


def drawn(rng: random.Random, sheet: bool, n: int) -> pl.DataFrame:
    names = rng.sample(NAMES, 5)
    kinds = [rng.choice(SHEET if sheet else KINDS) for _ in names]
    columns = [series(rng, x, kind, n, rng.random() < 0.3) for x, kind in zip(names, kinds, strict=True)]
    columns[2] = pl.Series(names[2], (["p", "q", "r"] * n)[:n])
    if columns[4].dtype == pl.Float64 and not sheet:
        columns[4] = columns[4].fill_null(float("nan"))
    return pl.DataFrame(columns)


@given(st.integers(0, 10**9))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_release_verifies(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("r")
    ending, publish = rng.choice(ENDINGS), rng.choice(["stars", "ranges", "hierarchy", "centers"])
    frame = drawn(rng, ending == ".xlsx", rng.randint(6, 14))
    quasi, sensitive = frame.columns[:2], frame.columns[2]
    source: Any = frame
    if rng.random() < 0.7:
        source = folder / rng.choice(["t.csv", "t.parquet"])
        if source.suffix == ".csv":
            frame.write_csv(source, separator=rng.choice(",;\t|"))
        else:
            frame.write_parquet(source)
    asked = dict(rng.choice(MODELS))
    hierarchies = None
    if publish == "hierarchy":
        texts = frame[quasi[0]].cast(pl.String).drop_nulls().unique().to_list()
        rows = [[t, "low" if t < "2" else "high"] for t in texts]
        hierarchies = {quasi[0]: rng.choice([rows or "stars", "labels", "prefixes:2,1", "stars"])}
    if publish == "ranges" and rng.random() < 0.5:
        asked["weights"] = {quasi[1]: 5.0}
    if publish == "centers":
        asked = {"k": 2}
    try:
        release = shoal.anonymize(
            source,
            quasi_identifiers=quasi,
            sensitive=[sensitive],
            identifiers=[frame.columns[3]],
            publish=publish,
            hierarchies=hierarchies or {},
            star="#",
            effort="fast",
            **asked,
        )
        out = folder / f"r{ending}"
        record = release.write(out)
    except (shoal.InfeasibleError, shoal.InputError, shoal.PolicyError):
        return
    except shoal.VerificationError:
        if ending == ".xlsx":  # what a sheet cannot hold is for the writer to refuse
            return
        raise
    for original in (None, source):
        verdict = shoal.verify(out, record, original, hierarchies=hierarchies)
        assert verdict.holds, [f for f in verdict.findings if not f.holds]
