"""Folders at the command line: every flag, what is refused, and each setting together with parts."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.commands import run
from tests.engines.test_parts import ASKED, in_parts, people
from tests.kept import holding

pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")

ROLES = ["--quasi", "a,b", "--sensitive", "s"]
HOW = ["--engine", "duckdb", "--memory", "300MB", "--threads", "2", "--temporary", "."]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands run in a folder that holds ``in``."""
    in_parts(people(carried=False), tmp_path / "in", "parquet")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
def test_a_folder_is_anonymized_verified_and_audited(tmp_path: Path) -> None:
    facts = run("anonymize", "in", *ROLES, "--k", "3", *HOW, "-o", "out", "--json").facts
    assert (facts["rows"], facts["output"]) == (900, "out")
    assert (tmp_path / "out" / "part-00000.parquet").exists()
    assert run("verify", "out")[0] == 0
    assert run("verify", "out", "out.certificate.json", "--original", "in")[0] == 0
    assert run("audit", "out", *ROLES, "--k", "3", *HOW)[0] == 0
    assert run("audit", "in", *ROLES, "--k", "900", *HOW)[0] == 1
    assert run("attack", "out", "--original", "in", "--json").facts["rows"] == 900
    learned = ["--quasi", "a", "--sensitive", "s", "--insensitive", "b", "--hierarchy", "a=prefixes:1"]
    run("fit", "in", *learned, "--k", "2", "-o", "recoder.toml").ok()
    assert run("apply", "recoder.toml", "in", "-o", "applied.csv", "--json").facts["rows"] == 900
    run("anonymize", "in", *ROLES, "--k", "3", *HOW, "-o", "out").refused(4, "--force")
    assert run("anonymize", "in", *ROLES, "--k", "4", *HOW, "-o", "out", "--force")[0] == 0
    assert run("anonymize", "in/*.parquet", "--glob", *ROLES, "--k", "3", "-o", "c", "--parts", "csv")[0] == 0
    assert (tmp_path / "c" / "part-00000.csv").exists()
    assert run("anonymize", "in/p0.parquet", "in/p1.parquet", *ROLES, "--k", "3", "-o", "two.csv")[0] == 0
    assert pl.read_csv(tmp_path / "two.csv").height == 600
    assert run("anonymize", "in", *ROLES, "--k", "3")[0] == 0
    assert (tmp_path / "in-release" / "manifest.json").exists()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["in", "--engine", "polars", "-o", "x"], "Polars reads one file"),
        (["in/p0.parquet", "--engine", "polars", "--memory", "2GB", "-o", "x.csv"], "--engine duckdb"),
        (["in/p0.parquet", "--engine", "polars", "-o", "x", "--parts", "csv"], "for one file end the output's name in"),
        (["in", "-o", "x.csv", "--parts", "csv"], "name a folder"),
        (["in", "-o", "x", "--parts", "xlsx"], "kind of parts"),
        (["in", "-o", "in/x"], "in a folder that is read"),
        (["in", "no", "-o", "x"], "no file 'no'"),
        (["in/p0.parquet", "in/p1.parquet"], "say with -o"),
        (["in", "-o", "x", "--keep-order"], "row order"),
        (["in", "-o", "x", "--coordinates", "a,b", "--publish", "hierarchy"], "in memory"),
        (["in", "-o", "x", "--master", "local[1]"], "--engine spark"),
        (["in", "-o", "x", "--table", "t", "--query", "select 1"], "not both"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: list[str], says: str) -> None:
    roles = ["--sensitive", "s"] if "--coordinates" in words else ROLES
    run("anonymize", *words, *roles, "--k", "3").refused(2, says)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


@pytest.mark.diagonal
@pytest.mark.parametrize("parts", ["parquet", "csv"])
@pytest.mark.parametrize(
    "more",
    [
        {"person": "who"},
        {"publish": "hierarchy", "hierarchies": {"b": "intervals"}},
        {"global_recoding": True, "max_suppressed": 0.1},
        {"publish": "ranges", "range_step": {"b": 4}},
        {"max_average_risk": 0.1},
        {"numeric_stars": "text"},
        {"distinct_l": 2, "identifiers": ["who"]},
        {"t": 0.4},
    ],
    ids=lambda more: next(iter(more)) + ("_steps" if "range_step" in more else ""),
)
def test_every_setting_goes_with_parts(tmp_path: Path, parts: str, more: dict[str, Any]) -> None:
    """Numbers with missing values and stars among them; every certificate holds, with and without the original."""
    n = 600
    frame = people(n, carried=False).with_columns(
        b=pl.Series([None if i % 17 == 0 else i * 7 % 13 for i in range(n)]),
        who=pl.Series([i // 2 for i in range(n)]),
    )
    folder = in_parts(frame, tmp_path / "in", "parquet")
    asked = ASKED | {"k": 5} | more
    if "who" not in more.values() and "identifiers" not in more:
        asked["identifiers"] = ["who"]
    release = shoal.anonymize(folder, **asked)
    record = release.write(tmp_path / "out", parts=parts)
    assert shoal.verify(tmp_path / "out", record).holds
    holding(shoal.verify(tmp_path / "out", record, folder))


@pytest.mark.usefixtures("folder")
def test_a_stray_file_and_a_damaged_part_are_named(tmp_path: Path) -> None:
    (tmp_path / "in" / "README.txt").write_text("about these parts\n")
    status, _, err = run("anonymize", "in", *ROLES, "--k", "3", "-o", "out")
    assert status == 2
    assert "csv files such as 'README.txt' and parquet files such as 'p0.parquet'" in err
    (tmp_path / "in" / "README.txt").unlink()
    assert run("anonymize", "in", *ROLES, "--k", "3", "-o", "out")[0] == 0
    with open(tmp_path / "out" / "part-00000.parquet", "ab") as file:
        file.write(b"x")
    status, _, err = run("verify", "out").refused(1, "ask for it again")
