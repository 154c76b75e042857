"""The same inputs and secret give the same bytes: releases, crosswalks, their certificates and pages."""

import random
import shlex
from pathlib import Path

import polars as pl
import pytest

from tests.commands import run

LINES = {
    "table": "anonymize people.csv --quasi age,zip --sensitive ill --identifiers name,height --k 5 --l 2 --secret key "
    "--effort fast --seed 7 --sign steward.key -o out.csv --report out.html",
    "parquet": "anonymize people.parquet --quasi age,zip --sensitive ill --identifiers name,height --k 5 "
    "--publish ranges --secret key --effort fast --seed 7 -o out.parquet",
    "duckdb": "anonymize people.parquet --engine duckdb --quasi age,zip --sensitive ill --identifiers name,height "
    "--k 5 --secret key --effort fast --seed 7 -o out.parquet",
    "tiles": "tiles people.csv --x age --y height --k 5 -o out.csv --table rows.csv --identifiers name --secret key",
    "gather": "gather people.csv --columns age,height --r 5 -o out.csv --assignments rows.csv --secret key",
    "labels": "labels people.csv --label zip --k 20 -o out.csv --hierarchy tree.csv",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place, drawn = tmp_path_factory.mktemp("same"), random.Random(5)
    columns = ["name", "age", "height", "zip", "ill"]
    rows = [
        (f"P{i}", 30 + drawn.randrange(9), 150 + drawn.randrange(40), drawn.choice("abcd"), drawn.choice("xyz"))
        for i in range(120)
    ]
    people = pl.DataFrame(rows, schema=columns, orient="row")
    people.write_csv(place / "people.csv")
    people.write_parquet(place / "people.parquet")
    (place / "key").write_bytes(b"0123456789abcdef")
    assert run("keygen", place / "steward.key").returncode == 0
    return place


def files(folder: Path, line: str) -> dict[str, bytes]:
    """What a command writes, the record aside, which says how long it took."""
    before = {p.name for p in folder.iterdir()}
    run(*shlex.split(line), cwd=folder).ok()
    made = [p for p in folder.iterdir() if p.name not in before]
    found = {p.name: p.read_bytes() for p in made if not p.name.endswith(".record.json")}
    for path in made:
        path.unlink()
    return found


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_the_same_inputs_and_secret_give_the_same_bytes(
    folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "duckdb" in line:
        pytest.importorskip("duckdb")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = files(folder, line)
    assert b"2023-11-14T22:13:20+00:00" in first["out.certificate.json"]
    assert files(folder, line) == first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")
    assert {name for name, held in files(folder, line).items() if held != first[name]} <= {
        "out.certificate.json", "out.html", "out.json",
    }  # fmt: skip


def test_another_secret_gives_another_order(folder: Path) -> None:
    first = files(folder, LINES["table"])["out.csv"]
    (folder / "other").write_bytes(b"fedcba9876543210")
    other = files(folder, LINES["table"].replace("--secret key", "--secret other"))["out.csv"]
    assert len(other.splitlines()) == len(first.splitlines())
    assert other != first
