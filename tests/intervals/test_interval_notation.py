"""Intervals of dates and numbers in a notation: cut, judged, proved again, and given to new records, by their order."""

import json
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.judge.file import seal
from tests.commands import run
from tests.kept import failing

CASES = {"bmi": ("--decimal", ","), "costs": ("--decimal", "."), "born": ("--date", "%d.%m.%y")}


def table(noted: bool) -> pl.DataFrame:
    random = np.random.default_rng(2)
    days = [date(1999, 11, 1) + timedelta(int(d)) for d in random.integers(0, 200, 50)]
    tenths, cents = random.integers(-50, 1200, 50).tolist(), random.integers(0, 500_000, 50).tolist()
    return pl.DataFrame({
        "bmi": [f"{t / 10:.1f}".replace(".", "," if noted else ".") for t in tenths],
        "costs": [f"{c / 100:,.2f}" if noted else f"{c / 100:.2f}" for c in cents],
        "born": [f"{d:%d.%m.%y}" if noted else str(d) for d in days],
    })  # fmt: skip


@pytest.mark.parametrize("objective", ["max", "range"])
@pytest.mark.parametrize("column", CASES)
def test_the_command_cuts_as_plain_values(
    column: str, objective: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(False).write_csv("plain.csv", separator=";")
    table(True).write_csv("noted.csv", separator=";")
    option, notation = CASES[column]
    words = ["--value", column, "--k", "5", "--objective", objective]
    assert run("intervals", "plain.csv", *words, "-o", "plain.out.csv").returncode == 0
    run("intervals", "noted.csv", *words, option, f"{column}={notation}", "-o", "out.csv").ok()
    known = dict(zip(table(True)[column].to_list(), table(False)[column].to_list(), strict=True))
    wanted = pl.read_csv("plain.out.csv", infer_schema=False)
    found = pl.read_csv("out.csv", infer_schema=False)
    assert [known[v] for v in found["value"]] == wanted["value"].to_list()
    assert found.drop("value").rows() == wanted.drop("value").rows()
    costs = [json.loads(Path(f"{n}.certificate.json").read_text())["certificate"]["cost"] for n in ("out", "plain.out")]
    assert costs[0] == costs[1]
    for more in ([], ["--prove", "fast"]):
        assert run("verify", "out.csv", "--original", "noted.csv", *more).returncode == 0
    placed = shoal.assign(tmp_path / "out.csv", table(True))
    assert (placed.outside, placed.groups) == (0, shoal.assign(tmp_path / "plain.out.csv", table(False)).groups)


def test_a_value_between_two_of_an_interval_is_in_it(tmp_path: Path) -> None:
    frame = pl.DataFrame({"bmi": ["9,5", "10,5", "100,5", "200"]})
    made = shoal.release(
        shoal.intervals.cut([9.5, 10.5, 100.5, 200.0], None, 2), frame, value="bmi", decimal={"bmi": ","}
    )
    made.write(tmp_path / "out.csv")
    groups = shoal.assign(tmp_path / "out.csv", pl.DataFrame({"bmi": ["9,75", "50", "150,25", "x"]})).groups
    assert [g is None for g in groups] == [False, True, False, True]
    assert groups[0] != groups[2]


def test_a_notation_is_refused_where_it_does_not_read_the_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(True).write_csv("t.csv", separator=";")
    words = ["intervals", "t.csv", "--value", "born", "--k", "5", "-o", "out.csv"]
    told = run(*words)
    assert "--date born=%d.%m.%y orders them" in told.said
    for option, said in (
        (["--date", "born=%m/%d/%y"], "values are no such date"),
        (["--decimal", "bmi=,"], "'bmi' is not a column of the intervals"),
        (["--date", "born=%d"], "write %d, %m and %Y once each"),
    ):
        refused = run(*words, *option, "--force")
        assert (refused.returncode, said in refused.said) == (2, True), refused.said
    twice = pl.DataFrame({"bmi": ["7,5", "7,50"] * 3})
    with pytest.raises(PolicyError, match="writes one number in two ways"):
        shoal.release(shoal.intervals.cut([7.5], [6], 2), twice, value="bmi", decimal={"bmi": ","})
    with pytest.raises(InputError, match="the answer is none of column"):
        shoal.release(shoal.intervals.cut([7.5, 8.5], [3, 3], 2), pl.DataFrame({"bmi": ["7,5", "900"] * 3}),
                      value="bmi", decimal={"bmi": ","})  # fmt: skip


def test_another_notation_in_a_certificate_is_seen(tmp_path: Path) -> None:
    frame = pl.DataFrame({"born": ["01.01.03", "09.02.03", "02.03.03", "03.04.03"]})
    moments = [date(2003, 1, 1), date(2003, 2, 9), date(2003, 3, 2), date(2003, 4, 3)]
    made = shoal.release(shoal.intervals.cut(moments, None, 2), frame, value="born", dates={"born": "%d.%m.%y"})
    made.write(tmp_path / "out.csv")
    assert shoal.verify(tmp_path / "out.csv", original=frame).holds
    path = tmp_path / "out.certificate.json"
    held = json.loads(path.read_text())
    held["parameters"]["notation"] = "%m.%d.%y"
    path.write_text(json.dumps({**held, "seal": seal(held)}))
    forged = shoal.verify(tmp_path / "out.csv")
    assert failing(forged) == ["intervals"]
    for odd in ("", 7, "%d", ["%d.%m.%y"]):
        held["parameters"]["notation"] = odd
        path.write_text(json.dumps({**held, "seal": seal(held)}))
        text = isinstance(odd, str)
        refused = (VerificationError, "a notation of the values that is none") if text else (InputError, "'notation'")
        with pytest.raises(refused[0], match=refused[1]):
            shoal.verify(tmp_path / "out.csv")
