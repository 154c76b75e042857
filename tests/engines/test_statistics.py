"""Files of SPSS, Stata and SAS: read as the same table in CSV would be, and refused where they are damaged."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

import shoal
from shoal.engines.propose import looked_at
from shoal.engines.store import read_table
from shoal.errors import InputError, MissingDependencyError
from tests import commands

WRITERS = {
    "t.sav": pyreadstat.write_sav, "t.zsav": pyreadstat.write_sav, "t.dta": pyreadstat.write_dta,
    "t.xpt": pyreadstat.write_xport, "t.por": pyreadstat.write_por,
}  # fmt: skip


def written(path: Path, frame: pl.DataFrame, **facts: Any) -> Path:
    """The frame in the format that the ending says."""
    if path.suffix == ".zsav":
        facts["compress"] = True
    WRITERS[f"t{path.suffix}"](frame, str(path), **facts)
    return path


ROWS = pl.DataFrame({
    "age": [34.0, 55.0, 98.0, None], "pay": [0.1, 2.5, 1e12, None], "town": ["Ulm", "Bonn", "", "x y"],
    "born": [datetime.date(1990, 1, 2), None, datetime.date(1899, 12, 31), datetime.date(1970, 1, 1)],
    "seen": [datetime.datetime(2020, 1, 2, 3, 4, 5)] * 4,
})  # fmt: skip


@pytest.mark.parametrize("name", ["t.sav", "t.zsav", "t.dta", "t.xpt"])
def test_kinds_of_values(tmp_path: Path, name: str) -> None:
    """Whole numbers are integers, an empty text is missing, dates and times are such."""
    found = read_table(written(tmp_path / name, ROWS))
    same = ROWS.with_columns(pl.col("age").cast(pl.Int64), pl.col("town").replace("", None))
    assert_frame_equal(found, same)


def test_portable(tmp_path: Path) -> None:
    found = read_table(written(tmp_path / "t.por", ROWS.select(AGE="age", TOWN="town")))
    assert found["AGE"].to_list() == [34, 55, 98, None]
    assert found["TOWN"].to_list() == ["Ulm", "Bonn", None, "x y"]


@pytest.mark.parametrize("name", ["t.sav", "t.zsav", "t.dta"])
def test_labels(tmp_path: Path, name: str) -> None:
    """Values are their labels where each has one of its own; a label of some values only leaves numbers."""
    codes = pl.DataFrame({"sex": [1, 2, 1, None], "age": [34, 55, 98, 20], "yes": [1, 2, 3, 1], "gap": [1, 1, 2, 2]})
    labels = {
        "sex": {1: "male", 2: "female", 3: "nobody here"}, "age": {98: "98 or more"},
        "yes": {1: "yes", 2: "yes", 3: "no"}, "gap": {1: "one", 2: " "},
    }  # fmt: skip
    found = read_table(written(tmp_path / name, codes, variable_value_labels=labels))
    assert found["sex"].to_list() == ["male", "female", "male", None]
    for name in ("age", "yes", "gap"):
        assert found[name].to_list() == codes[name].to_list()


def test_declared_missing(tmp_path: Path) -> None:
    """What SPSS and Stata were told is missing, is: also beside labels that cover the rest."""
    codes = pl.DataFrame({"edu": [1.0, 2.0, 9.0, 9.0], "age": [20.0, 30.0, -1.0, 40.0]})
    labels = {"edu": {1: "primary", 2: "secondary", 9: "refused"}}
    beside = {"edu": [9], "age": [{"lo": -9, "hi": -1}]}
    path = written(tmp_path / "t.sav", codes, variable_value_labels=labels, missing_ranges=beside)
    assert read_table(path).rows() == [("primary", 20), ("secondary", 30), (None, None), (None, 40)]
    marked = pl.DataFrame({"age": [20, "a", "b", 40]}, schema={"age": pl.Object}, strict=False).to_pandas()
    pyreadstat.write_dta(marked, str(tmp_path / "t.dta"), missing_user_values={"age": ["a", "b"]})
    assert read_table(tmp_path / "t.dta")["age"].to_list() == [20, None, None, 40]


def test_single_precision(tmp_path: Path) -> None:
    """Stata's floats: 0.1 is published as 0.1, and not as the double next to it."""
    single = pd.DataFrame({"dose": np.array([0.1, 2.7, np.nan], np.float32)})
    single.to_stata(tmp_path / "t.dta", write_index=False)
    assert read_table(tmp_path / "t.dta")["dose"].cast(pl.String).to_list() == ["0.1", "2.7", None]


def test_beyond_whole_numbers(tmp_path: Path) -> None:
    """A number that a double does not hold exactly stays one of floating point."""
    path = written(tmp_path / "t.sav", pl.DataFrame({"n": [1.0, 2.0**60]}))
    assert read_table(path)["n"].dtype == pl.Float64


def test_old_encoding(tmp_path: Path) -> None:
    """A file that says a wrong encoding is read in the one that is named."""
    path = written(tmp_path / "t.xpt", pl.DataFrame({"town": ["Ulm", "Bonn"]}))
    path.write_bytes(path.read_bytes().replace(b"Bonn", "Köln".encode("latin-1")))
    assert read_table(path, encoding="latin-1")["town"].to_list() == ["Ulm", "Köln"]


@pytest.mark.parametrize("name", [*WRITERS, "t.sas7bdat"])
def test_damaged(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"secret value" * 40)
    with pytest.raises(InputError, match=r"cannot be read as SPSS, Stata or SAS") as refused:
        read_table(tmp_path / name)
    assert "secret" not in str(refused.value)


def test_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path / "t.dta", pl.DataFrame({"age": [1.0]}).head(0))
    with pytest.raises(InputError, match="has no rows"):
        read_table(path)


def test_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t.dta", ROWS)
    monkeypatch.setitem(__import__("sys").modules, "pyreadstat", None)
    with pytest.raises(MissingDependencyError, match=r"shoal\[statistics\]"):
        read_table(path)


def survey(folder: Path) -> tuple[Path, pl.DataFrame]:
    """A survey whose names say nothing, as SPSS has it, and the same rows as a CSV would have them."""
    rng = np.random.default_rng(0)
    sex, age, ill = rng.integers(1, 3, 200), rng.integers(20, 60, 200), rng.integers(1, 4, 200)
    codes = pl.DataFrame({"v1": sex * 1.0, "v2": age * 1.0, "v3": ill * 1.0})
    labels = {"v1": {1: "male", 2: "female"}, "v3": {1: "flu", 2: "gout", 3: "cold"}}
    path = written(
        folder / "survey.sav", codes, variable_value_labels=labels,
        column_labels=["Sex", 'Age of\n"respondent"', "Diagnosis"],
    )  # fmt: skip
    texts = {name: pl.Series(codes[name].cast(pl.Int64)).replace_strict(of) for name, of in labels.items()}
    return path, codes.with_columns(pl.col("v2").cast(pl.Int64), **texts)


def test_same_release_as_csv(tmp_path: Path) -> None:
    """From a file of SPSS and from a frame of its labels, the same bytes; the commands verify it against the file."""
    path, frame = survey(tmp_path)
    asked: dict[str, Any] = {
        "quasi_identifiers": ["v1", "v2"], "sensitive": ["v3"], "k": 5, "publish": "ranges", "effort": "fast",
        "secret": b"a" * 32,
    }  # fmt: skip
    shoal.anonymize(path, **asked).write(tmp_path / "of_file.csv")
    shoal.anonymize(frame, **asked).write(tmp_path / "of_frame.csv")
    assert (tmp_path / "of_file.csv").read_bytes() == (tmp_path / "of_frame.csv").read_bytes()
    verdict = [str(tmp_path / "of_file.csv"), str(tmp_path / "of_file.certificate.json"), "--original", str(path)]
    assert commands.run("verify", *verdict).returncode == 0
    for beside in tmp_path.glob("of_*.json"):
        assert "respondent" not in beside.read_text()


def test_labels_of_columns_propose_roles(tmp_path: Path) -> None:
    """``init`` reads what the file says of its columns; a label stands in a comment whatever it contains."""
    path, _ = survey(tmp_path)
    roles = {c.name: (c.role, c.reason) for c in looked_at(path)[0]}
    assert roles["v2"][0] == "quasi-identifier"
    assert "its label suggests a birth date or age" in roles["v2"][1]
    assert roles["v1"][0] == "quasi-identifier"
    assert roles["v3"][0] == "sensitive"
    done = commands.run("init", path, "-o", tmp_path / "p.toml", "--json")
    assert tomllib.loads((tmp_path / "p.toml").read_text())["quasi_identifiers"] == ["v1", "v2"]
    assert r"Age of\n" in (tmp_path / "p.toml").read_text()
    assert json.loads(done.stdout)["columns"][1]["role"] == "quasi-identifier"


@pytest.mark.parametrize("more", [["--engine", "duckdb"], ["-o", "out.sav"], ["-o", "out.dta"]])
def test_refused(tmp_path: Path, more: list[str]) -> None:
    """Other engines do not read such files, and none are written: one sentence, and nothing is left."""
    path, _ = survey(tmp_path)
    before = sorted(tmp_path.iterdir())
    more = [str(tmp_path / part) if part.startswith("out") else part for part in more]
    done = commands.run("anonymize", path, "--quasi", "v1,v2", "--k", "5", *more)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before
