"""Files of SPSS, Stata and SAS: read as the same table in CSV would be, and refused where they are damaged."""

import datetime
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyreadstat
import pytest
from polars.testing import assert_frame_equal

import shoal
from shoal.attacks.files import residue
from shoal.engines.codes import as_text
from shoal.engines.propose import looked_at
from shoal.engines.store import read_table, store
from shoal.errors import InputError, MissingDependencyError, VerificationError
from shoal.judge.file import canonical, read_release
from shoal.pipeline import prepare
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


@pytest.mark.parametrize("more", [["--engine", "duckdb"], ["-o", "out.por"], ["-o", "out.sas7bdat"], ["-o", "out.xpt"]])
def test_refused(tmp_path: Path, more: list[str]) -> None:
    """Other engines do not read such files, and some are not written: one sentence, and nothing is left."""
    path, _ = survey(tmp_path)
    before = sorted(tmp_path.iterdir())
    more = [str(tmp_path / part) if part.startswith("out") else part for part in more]
    done = commands.run("anonymize", path, "--quasi", "v1,v2", "--k", "5", *more)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("given", "made"), [("t.sav", "sav"), ("t.zsav", "zsav"), ("t.dta", "dta"), ("t.xpt", "csv")])
def test_written_in_its_own_format(tmp_path: Path, given: str, made: str) -> None:
    """Without a name the release has the format of the table, where that is written; twice the same bytes."""
    _, frame = survey(tmp_path)
    path = written(tmp_path / given, frame)
    (tmp_path / "secret").write_text("a" * 40)
    asked = ["--quasi", "v1,v2", "--sensitive", "v3", "--k", "5", "--secret", tmp_path / "secret", "--effort", "fast"]
    assert commands.run("anonymize", path, *asked).returncode == 0
    release = tmp_path / f"{given}.release.{made}"
    first = release.read_bytes()
    assert commands.run("verify", release, "--original", path).returncode == 0
    assert commands.run("report", release, "-o", tmp_path / "page.html").returncode == 0
    assert commands.run("anonymize", path, *asked, "--force").returncode == 0
    assert release.read_bytes() == first
    assert str(datetime.date.today().year).encode() not in first[:512]


CARRIED = pl.DataFrame({
    "q": [1, 1, 2, 2], "truth": [True, False, None, True], "cost": pl.Series([1, 2, 3, None]).cast(pl.Decimal(9, 2)),
    "exact": [0.1 + 0.2, 1e300, -5e-324, None], "beyond": [2**53 + 1, 0, None, 5], "no": [None] * 4,
    "day": [datetime.date(1600, 1, 1), None, datetime.date(2024, 2, 29), datetime.date(1582, 10, 15)],
    "old": [datetime.date(1500, 1, 1), None, datetime.date(2024, 2, 29), datetime.date(1582, 10, 15)],
    "fine": [datetime.datetime(2024, 1, 1, 2, 3, 4, 5), None, datetime.datetime(1999, 1, 1), None],
    "coarse": [datetime.datetime(2024, 1, 1, 2, 3, 4), None, datetime.datetime(1582, 10, 15), None],
    "time": [datetime.time(1, 2, 3, 4), None, datetime.time(0), None],
    "clock": [datetime.time(23, 59, 59)] * 4, "wait": [datetime.timedelta(1)] * 4,
    "text": [" ä", "*", "", "x"], "level": pl.Series(["a", "b", None, "a"], dtype=pl.Categorical),
}, strict=False)  # fmt: skip


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta"])
def test_values_stand_in_the_file_as_they_were(tmp_path: Path, ending: str) -> None:
    """Numbers, days and whole seconds exactly; what these programs have no value for as text."""
    store(CARRIED, tmp_path / f"t{ending}")
    read = pyreadstat.read_dta if ending == ".dta" else pyreadstat.read_sav
    found, facts = read(str(tmp_path / f"t{ending}"), output_format="polars")
    assert found.columns == CARRIED.columns
    for name in ("q", "exact", "day", "coarse", "clock"):
        assert found[name].to_list() == CARRIED[name].to_list(), name
    assert found["truth"].to_list() == ["true", "false", "", "true"]
    assert found["cost"].to_list() == ["1.00", "2.00", "3.00", ""]
    assert found["beyond"].to_list() == ["9007199254740993", "0", "", "5"]
    assert found["old"].to_list() == ["1500-01-01", "", "2024-02-29", "1582-10-15"]
    assert found["fine"].to_list() == ["2024-01-01 02:03:04.000005", "", "1999-01-01 00:00:00", ""]
    assert found["time"].to_list() == ["01:02:03.000004", "", "00:00:00", ""]
    assert found["text"].to_list() == [" ä", "*", "", "x"]
    assert not facts.value_labels
    assert not facts.notes
    back = read_release(tmp_path / f"t{ending}")
    for name in CARRIED.columns:
        form = "statistics"
        shown = as_text(CARRIED[name]) if back[name].dtype == pl.String else CARRIED[name]
        assert canonical(back[name], form).to_list() == canonical(shown.rename(name), form).to_list(), name


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta", ".xlsx"])
@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_a_nan_is_a_missing_value(tmp_path: Path, ending: str, engine: str) -> None:
    """These files have no NaN, and counting takes it for a missing value; the column stays one of numbers."""
    some = [1.5, math.nan, 2.5, 3.0, math.nan, None, 2.0, 4.0]
    whole = pl.DataFrame({"age": [30, 30, 30, 30, 40, 40, 40, 40], "dose": some, "note": some[::-1]}, strict=False)
    frames: dict[str, Any] = {"polars": whole, "pandas": whole.to_pandas(), "duckdb": duckdb.from_arrow(whole)}
    asked: dict[str, Any] = {"sensitive": ["dose"], "insensitive": ["note"], "k": 2, "l": 2}
    release = shoal.anonymize(frames[engine], quasi_identifiers=["age"], **asked)
    release.write(tmp_path / f"t{ending}")
    assert shoal.verify(tmp_path / f"t{ending}", tmp_path / "t.certificate.json", frames[engine]).holds
    back = read_release(tmp_path / f"t{ending}")
    assert sorted(back["dose"].drop_nulls()) == [1.5, 2.0, 2.5, 3.0, 4.0]
    shown = back["note"].cast(pl.String).drop_nulls().to_list()
    assert shown.count("NaN") == (0 if engine == "pandas" else 2)  # a column that is not judged stays as it was


def test_a_row_of_nan_alone_is_refused_for_a_sheet_before_the_search() -> None:
    whole = pl.DataFrame({"age": [30.0, 30.0, None, None], "dose": [1.0, 2.0, math.nan, 1.0]})
    with pytest.raises(InputError, match="without any value, which a sheet cannot show"):
        prepare(whole, quasi_identifiers=["age"], sensitive=["dose"], k=2, target=Path("out.xlsx"))


LONG, ODD = "x" * 2_046, {"a": ["x "]}


def test_a_name_of_as_many_bytes_as_a_program_holds(tmp_path: Path) -> None:
    for ending, longest in ((".sav", "ü" * 32), (".dta", "x" * 32)):
        store(pl.DataFrame({longest: ["x"]}), tmp_path / f"t{ending}")
        assert read_table(tmp_path / f"t{ending}").columns == [longest]


@pytest.mark.parametrize(
    ("ending", "table", "what"),
    [
        (".sav", {"2nd": ["x"]}, "column name '2nd'"), (".sav", {"a b": ["x"]}, "column name 'a b'"),
        (".sav", {"With": ["x"]}, "column name 'With'"), (".sav", {"ü" * 33: ["x"]}, "column name"),
        (".sav", {"a": ["x"], "A": ["x"]}, "'a' and 'A' for one"), (".sav", {"a.": ["x"]}, "column name"),
        (".dta", {"a.b": ["x"]}, "column name 'a.b'"), (".dta", {"str7": ["x"]}, "column name 'str7'"),
        (".dta", {"_b": ["x"]}, "column name '_b'"),
        (".dta", {"x" * 33: ["x"]}, "column name"), (".dta", {"a": [LONG]}, "more than 2,045 bytes"),
        (".sav", {"a": [LONG * 17]}, "more than 32,767 bytes"), (".sav", ODD, "end in a blank"),
        (".dta", {"a": ["x", "", None]}, "Stata cannot distinguish"),
        (".sav", {"a": ["", None]}, "SPSS cannot distinguish"),
        (".dta", ODD, "end in a blank"), (".dta", {"a": ["x\0y"]}, "NUL"), (".sav", {"a": [[1]]}, "no place"),
    ],
)  # fmt: skip
def test_what_a_program_cannot_hold(tmp_path: Path, ending: str, table: dict[str, Any], what: str) -> None:
    """Refused before the run, and by the writer too, without a value of the table."""
    frame = pl.DataFrame(table)
    with pytest.raises(InputError, match=what) as refused:
        store(frame, tmp_path / f"t{ending}")
    assert LONG not in str(refused.value)
    assert not list(tmp_path.iterdir())
    wide = pl.concat([frame] * 6).with_columns(q=pl.lit("p"))
    carried = [c for c in wide.columns if c != "q"]
    if frame.dtypes == [pl.String] * frame.width:
        wide.write_parquet(tmp_path / "in.parquet")
        commands.run(
            "anonymize", tmp_path / "in.parquet", "--quasi", "q", "--insensitive", ",".join(carried), "--k", "2",
            "-o", tmp_path / f"t{ending}",
        ).refused(2, what.split("'")[0])  # fmt: skip


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_the_judge_refuses_a_file_with_labels(tmp_path: Path, ending: str) -> None:
    """Labels could name values that no row shows; a note could say anything."""
    codes = pl.DataFrame({"v": [1.0, 2.0]})
    for beside in (
        {"variable_value_labels": {"v": {1: "a", 3: "hidden"}}},
        {"column_labels": ["said"]},
        {"file_label": "x"},
    ):
        path = written(tmp_path / f"t{ending}", codes, **beside)
        with pytest.raises(VerificationError, match="which shoal never writes"):
            read_release(path)
    assert read_release(written(tmp_path / f"u{ending}", codes))["v"].to_list() == [1, 2]


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labels_of_another_tool_tell_of_hidden_values(tmp_path: Path, ending: str) -> None:
    """The attack on files finds a label of a value that no row of a release holds any more, and notes."""
    codes = pl.DataFrame({"v": [1.0, 2.0] * 4, "w": [1.0] * 8})
    labels = {"v": {1: "Ulm", 2: "Bonn", 3: "the mayor"}}
    more = {"note": "made from all"} if ending == ".sav" else {}
    path = written(tmp_path / f"t{ending}", codes, variable_value_labels=labels, **more)
    found = residue(path, read_table(path))
    assert found is not None
    assert found.values == {"v": {"the mayor"}}
    assert len(found.others) == len(more)
