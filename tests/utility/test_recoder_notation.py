"""A recoder reads dates and numbers in their notation: in the table that it fits, in others, and in its file."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.errors import PolicyError
from shoal.utility.recoder import near
from tests.commands import run
from tests.data import handed

NOTED: dict[str, Any] = {"dates": {"born": "%d.%m.%Y"}, "decimal": {"bmi": ",", "costs": "."}}
TREES = {"born": "dates:year", "bmi": "intervals:5,10"}


def table(noted: bool, rows: int = 40) -> pl.DataFrame:
    days = [(1 + i % 28, 1 + i % 12, 1980 + i % 4) for i in range(rows)]
    return pl.DataFrame({
        "born": [f"{d:02}.{m:02}.{y}" if noted else f"{y}-{m:02}-{d:02}" for d, m, y in days],
        "bmi": [f"{20 + i % 13}{',' if noted else '.'}5" for i in range(rows)],
        "costs": [f"{1 + i % 5}{',' if noted else ''}000" for i in range(rows)],
    })  # fmt: skip


@pytest.mark.parametrize("kind", ["polars", "categories", "csv", "parquet", "duckdb"])
def test_it_fits_and_applies_as_to_plain_values(kind: str, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"sensitive": ["costs"], "k": 3, "l": 2, "hierarchies": TREES, "max_suppressed": 0.5}
    wanted = shoal.Recoder(["born", "bmi"], **asked).fit(table(False))
    found = shoal.Recoder(["born", "bmi"], **asked, **NOTED).fit(handed(table(True), kind, tmp_path)[0])
    assert found.levels_ == wanted.levels_
    assert found.get_params()["decimal"] == NOTED["decimal"]
    found.save(tmp_path / "recoder.toml")
    read = shoal.Recoder.read(tmp_path / "recoder.toml")
    assert {n: v for n, v in read.get_params().items() if n in ("dates", "decimal", "max_level")} == {
        **NOTED, "max_level": None
    }  # fmt: skip
    new = read.apply(handed(table(True, 30), kind, tmp_path)[0])
    plain = wanted.transform(table(False, 30)).select("born", "bmi")
    assert sorted(read.transform(table(True, 30)).select("born", "bmi").rows()) == sorted(plain.rows())
    new.write(tmp_path / "new.csv")
    assert shoal.verify(tmp_path / "new.csv").holds


def test_the_command_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(True).write_csv("t.csv", separator=";")
    words = ["--hierarchy", "born=dates:year", "--hierarchy", "bmi=intervals:5,10", "--quasi", "born,bmi"]
    refused = run("fit", "t.csv", *words, "--k", "3", "-o", "r.toml")
    assert refused.returncode == 2
    assert "--date born=" in refused.said
    told = ["--date", "born=%d.%m.%Y", "--decimal", "bmi=,", "--max-suppressed", "0.2"]
    run("fit", "t.csv", *words, *told, "--k", "3", "-o", "r.toml").ok()
    run("apply", "r.toml", "t.csv", "-o", "out.csv").ok()
    assert run("verify", "out.csv", "--original", "t.csv").returncode == 0


def test_a_value_that_a_hierarchy_lacks_is_near_by_its_notation() -> None:
    tree = shoal.Hierarchy.of([("9,5", "low"), ("1.000,5", "high")])
    assert near("900", tree, ",") == "1.000,5"
    assert near("20", tree, ",") == "9,5"
    bands = shoal.Hierarchy.of([("9,5", "[5, 10)"), ("12", "[10, 15)")])
    assert near("7,25", bands, ",") == "9,5"
    assert near("14,9", bands, ",") == "12"
    days = shoal.Hierarchy.of([("31.12.2023", "2023"), ("02.01.2024", "2024")])
    assert near("30.12.2023", days, "%d.%m.%Y") == "31.12.2023"


def test_a_file_with_a_wrong_notation_is_refused(tmp_path: Path) -> None:
    found = shoal.Recoder(["bmi"], k=3, decimal={"bmi": ","}, max_suppressed=1.0).fit(table(True).select("bmi"))
    path = found.save(tmp_path / "recoder.toml")
    path.write_text(path.read_text().replace('bmi = ","', 'bmi = "x"'))
    with pytest.raises(PolicyError, match="a decimal mark is"):
        shoal.Recoder.read(path)


ROWS = [[str(a), f"{a // 10 * 10}s", "*"] for a in range(19, 90)] + [["<=18", "<=18", "*"], [">=90", ">=90", "*"]]


@pytest.mark.diagonal
@pytest.mark.parametrize("tree", ["intervals:5,10,20", ROWS, None])
@pytest.mark.parametrize("kind", [pl.Int64, pl.Float64, pl.String])
def test_what_lies_beyond_a_limit_has_one_class_in_every_table(tree, kind, tmp_path):
    """Also in a table with ages that the one that was fitted has not."""

    def month(seed, oldest):
        drawn = np.random.default_rng(seed)
        ages = pl.Series(drawn.integers(10, oldest, 400)).cast(kind)
        return pl.DataFrame({"age": ages, "town": drawn.choice(["a", "b"], 400), "ill": drawn.choice(["x", "y"], 400)})

    limits = {"top": {"age": 90}, "bottom": {"age": 18}, "hierarchies": {"age": tree} if tree else None}
    recoder = shoal.Recoder(["age", "town"], sensitive=["ill"], k=5, max_suppressed=0.05, **limits)
    recoder.fit([month(1, 100), month(2, 97)]).save(tmp_path / "recoder.toml")
    again, later = shoal.Recoder.read(tmp_path / "recoder.toml"), month(3, 130)
    assert again.get_params()["top"] == {"age": 90}
    seen = dict(zip(later["age"].to_list(), again.transform(later)["age"].to_list(), strict=True))
    assert len({shown for age, shown in seen.items() if float(age) >= 90} - {"*"}) <= 1
    assert again.levels_["age"] == 0 or {shown for age, shown in seen.items() if float(age) <= 18} <= {
        "<20",
        "<=18",
        "*",
    }
    release = again.apply(later)
    paper = release.write(tmp_path / "out.csv")
    verdict = shoal.verify(tmp_path / "out.csv", paper, later, record=tmp_path / "out.record.json")
    assert verdict.holds, verdict
    assert {"limits", "values at limits"} <= {f.check for f in verdict.findings}


def test_the_command_has_limits_too(tmp_path: Path) -> None:
    pl.DataFrame({"age": [*range(80, 100)] * 3}).write_csv(tmp_path / "t.csv")
    tree = ("--hierarchy", "age=intervals:5", "--top", "age=90")
    run("fit", "t.csv", "--quasi", "age", "--k", "3", *tree, "-o", "recoder.toml", cwd=tmp_path).ok()
    run("apply", "recoder.toml", "t.csv", "-o", "out.csv", cwd=tmp_path).ok()
    shown = {*pl.read_csv(tmp_path / "out.csv")["age"]}
    assert shown in ({"80-84", "85-89", ">=90"}, {*map(str, range(80, 90)), ">=90"})
