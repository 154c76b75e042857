"""Outputs that were given no name: no two tables of one folder share one."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from shoal.engines.atomic import named_after
from tests.commands import run

FRAME = pl.DataFrame({"age": [30, 31, 30, 31] * 5, "town": ["Ulm", "Bonn"] * 10, "ill": ["a", "b", "c", "d"] * 5})


def test_two_kinds_of_one_table_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.write_csv("visits.csv")
    FRAME.write_excel("visits.xlsx")
    FRAME.write_parquet("visits.parquet")
    written: list[str] = []
    for table in ("visits.csv", "visits.xlsx", "visits.parquet"):
        done = run("init", table, "--json")
        assert done.returncode == 0, done.said
        written.append(done.facts["output"])
        asked = ("--quasi", "age,town", "--sensitive", "ill", "--k", 5, "--effort", "fast", "--json")
        done = run("anonymize", table, *asked)
        assert done.returncode == 0, done.said
        written += [done.facts[name] for name in ("output", "certificate_file", "record_file")]
        done = run("report", done.facts["output"], "--json")
        assert done.returncode == 0, done.said
        written.append(done.facts["report"])
    assert len({name.lower() for name in written}) == len(written) == 15
    assert written[:2] == ["visits.policy.toml", "visits.release.csv"], "a CSV's are as short as can be"
    assert "visits.xlsx.release.certificate.json" in written


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("visits.csv", "visits"),
        ("VISITS.CSV", "VISITS"),
        ("visits.csv.gz", "visits.csv.gz"),
        ("my.visits.csv", "my.visits"),
        ("visits.tsv", "visits.tsv"),
        ("folder/visits", "visits"),
        (".csv", ".csv"),
    ],
)
def test_only_csv_goes(table: str, name: str) -> None:
    assert named_after(Path(table)) == name
