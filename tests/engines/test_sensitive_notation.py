"""Sensitive columns whose texts are dates or numbers in a notation: solver and judge put them in their order."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines.propose import looked_at, write_policy
from shoal.errors import PolicyError
from shoal.judge.models import ClassCounts
from shoal.judge.tables.privacy import judge
from tests.commands import run
from tests.data import handed, rows
from tests.kept import holding, kept, verify

SECRET = b"sixteen bytes or more"
NOTED: dict[str, Any] = {"decimal": {"costs": ","}, "dates": {"came": "%d.%m.%Y"}}


def asked(column: str, **more: Any) -> dict[str, Any]:
    return {
        "quasi_identifiers": ["town", "age"], "sensitive": [column], "privacy": [shoal.KAnonymity(2)], "effort": "fast",
        "t_ordered": 0.2, "publish": "ranges", "seed": 1, "secret": SECRET,
    } | more  # fmt: skip


def table(noted: bool) -> pl.DataFrame:
    """The same costs and days, as 1.234,50 and 31.12.2024, or as 1234.50 and 2024-12-31; both tell who came from."""
    random = np.random.default_rng(8)
    town = np.repeat(["Bonn", "Ulm"], 30)
    cents = random.choice([995, 12_000, 110_050, 1_000_000], 60)
    days = [date(2020, 1, 1) + timedelta(int(d)) for d in random.choice([0, 31, 45, 700], 60)]
    local = [f"{c / 100:,.2f}".replace(",", "|").replace(".", ",").replace("|", ".") for c in cents]
    return pl.DataFrame({
        "town": town, "age": [str(a) for a in random.integers(20, 90, 60)],
        "costs": local if noted else [f"{c / 100:.2f}" for c in cents],
        "came": [f"{d:%d.%m.%Y}" if noted else str(d) for d in days],
        "who": [f"p{i // 2}" for i in range(60)],
    })  # fmt: skip


def known_by(column: str) -> dict[str, str]:
    """What each text of a column is without its notation."""
    return dict(zip(table(True)[column].to_list(), table(False)[column].to_list(), strict=True))


@pytest.mark.diagonal
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("column", ["costs", "came"])
@pytest.mark.parametrize("kind", ["polars", "categories", "csv", "xlsx", "parquet", "duckdb", "spark"])
def test_every_kind_of_table_gives_the_groups_of_plain_values(
    column: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    names = ["town", "age", column]
    wanted = shoal.anonymize(table(False).select(names), **asked(column))
    unnoted = shoal.anonymize(table(True).select(names), **asked(column))
    spark = request.getfixturevalue("spark") if kind == "spark" else None
    setting = "decimal" if column == "costs" else "dates"
    data, _ = handed(table(True).select(names), kind, tmp_path, spark)
    made = shoal.anonymize(data, **asked(column), **{setting: NOTED[setting]})
    known = known_by(column)
    found = sorted((town, age, known[text]) for town, age, text in rows(made.table, *names))
    assert found == rows(wanted.table, *names)
    assert made.certificate.cost == wanted.certificate.cost
    assert rows(unnoted.table, *names) != rows(made.table, *names)  # by characters, other values are near each other
    checks = [(c.short, c.level) for c in made.audit.checks]
    assert checks == [(c.short, c.level) for c in wanted.audit.checks]
    made.write(tmp_path / "r.csv")
    for one in (tmp_path / "r.certificate.json", kept(tmp_path / "r.certificate.json")):
        holding(verify(tmp_path / "r.csv", one, None if kind in ("duckdb", "spark") else data))


@pytest.mark.parametrize("more", [{"person": "who"}, {"missing": "apart"}])
def test_persons_and_groups_of_missing_values_are_judged_in_order(more: dict[str, Any], tmp_path: Path) -> None:
    names = ["town", "age", "costs", *more.values()][: 4 if "person" in more else 3]

    def held(noted: bool) -> pl.DataFrame:
        frame = table(noted).select(names)
        missing = pl.when(pl.col("age") >= "25").then("age")
        return frame if "person" in more else frame.with_columns(missing.alias("age"))

    held(True).write_csv(tmp_path / "t.csv", separator=";")
    how = asked("costs", **more, t_ordered=0.4)
    wanted = shoal.anonymize(held(False), **how)
    made = shoal.anonymize(tmp_path / "t.csv", **how, decimal={"costs": ","})
    assert made.certificate.cost == wanted.certificate.cost
    made.write(tmp_path / "r.csv")
    assert shoal.verify(tmp_path / "r.csv", original=tmp_path / "t.csv").holds


@pytest.mark.parametrize(("column", "tree"), [("costs", "intervals:100,1000,10000"), ("came", "dates:month,year")])
@pytest.mark.parametrize("more", [{}, {"person": "who"}])
def test_a_generated_hierarchy_of_the_values_reads_their_notation(
    column: str, tree: str, more: dict[str, Any], tmp_path: Path
) -> None:
    table(True).write_csv(tmp_path / "t.csv", separator=";")
    how = asked(column, t_ordered=None, t_hierarchical=0.4, hierarchies={column: tree}, **more)
    how |= {"identifiers": [{"costs": "came", "came": "costs"}[column]] + ([] if more else ["who"])}
    noted = {name: {n: v for n, v in held.items() if n == column} for name, held in NOTED.items()}
    wanted, made = shoal.anonymize(table(False), **how), shoal.anonymize(tmp_path / "t.csv", **how, **noted)
    assert made.certificate.cost == wanted.certificate.cost
    assert [c.level for c in made.audit.checks] == [c.level for c in wanted.audit.checks]
    made.write(tmp_path / "r.csv")
    assert shoal.verify(tmp_path / "r.csv", original=tmp_path / "t.csv").holds
    look = {"quasi_identifiers": ["town", "age"], "sensitive": [column], "hierarchies": {column: tree}}
    assert shoal.audit(tmp_path / "t.csv", **look, **noted, t_hierarchical=1.0).passes


def test_a_table_is_measured_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    how: dict[str, Any] = {"quasi_identifiers": ["town"], "sensitive": ["costs", "came"], "t_ordered": 0.3}
    wanted = shoal.audit(table(False).drop("who"), **how)
    table(True).drop("who").write_csv("t.csv", separator=";")
    found = shoal.audit("t.csv", **how, **NOTED)
    assert found.sensitive == wanted.sensitive
    assert found.checks == wanted.checks
    assert shoal.audit("t.csv", **how).sensitive != wanted.sensitive
    words = ["--quasi", "town", "--sensitive", "costs,came", "--decimal", "costs=,", "--date", "came=%d.%m.%Y"]
    done = run("audit", "t.csv", *words).ok()
    assert f"t of ordered values {wanted.sensitive['costs'].t_ordered:.4g}" in done.stdout


def test_the_command_and_a_policy_file_read_a_sensitive_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    table(True).select("town", "age", "costs").write_csv("t.csv", separator=";")
    words = ["--quasi", "town,age", "--sensitive", "costs", "--k", "2", "--t-ordered", "0.2", "--effort", "fast"]
    run("anonymize", "t.csv", *words, "--publish", "ranges", "--decimal", "costs=,", "-o", "r.csv").ok()
    assert shoal.Policy.read("r.certificate.json").decimal == {"costs": ","}
    assert run("verify", "r.csv", "--original", "t.csv").returncode == 0
    assert run("attack", "r.csv", "--original", "t.csv").returncode == 0
    run("anonymize", "t.csv", "--policy", "r.certificate.json", "--effort", "fast", "-o", "again.csv").ok()
    wrong = run("anonymize", "t.csv", *words, "--publish", "ranges", "--date", "costs=%d.%m.%Y", "-o", "no.csv")
    assert wrong.returncode == 2
    assert "values are no such date" in wrong.said
    assert not Path("no.csv").exists()


def test_a_notation_needs_a_column_that_is_grouped_or_sensitive() -> None:
    with pytest.raises(PolicyError, match="'bmi' is not a quasi-identifier or sensitive column"):
        shoal.Policy(quasi_identifiers=["age"], sensitive=["ill"], k=2, decimal={"bmi": ","})
    twice = pl.DataFrame({"age": ["1"] * 4, "costs": ["7,5", "7,50", "8", "9"]})
    with pytest.raises(PolicyError, match="writes one number in two ways"):
        shoal.anonymize(twice, quasi_identifiers=["age"], sensitive=["costs"], k=2, decimal={"costs": ","})


@given(st.lists(st.integers(-3000, 3000), min_size=2, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_the_judge_measures_by_the_numbers(cents: list[int], first: list[bool]) -> None:
    """The distance of texts with a decimal mark is the one of the numbers that they are, counted value by value."""
    frame = pl.DataFrame({
        "q": ["a" if first[i] else "b" for i in range(len(cents))],
        "s": [f"{c / 100:.2f}".replace(".", ",") for c in cents],
    })  # fmt: skip
    found = judge(frame, ["q"], ["s"], notations={"s": ","}).sensitive["s"].t_ordered
    values = sorted(set(cents))
    worst = 0.0
    for group in set(frame["q"]):
        own = [c for c, q in zip(cents, frame["q"].to_list(), strict=True) if q == group]
        gaps = [abs(sum(c <= v for c in own) / len(own) - sum(c <= v for c in cents) / len(cents)) for v in values]
        worst = max(worst, sum(gaps) / max(len(values) - 1, 1))
    assert found == pytest.approx(worst)


def test_a_text_that_is_no_number_comes_last_for_the_judge() -> None:
    """A forged release can hold any text: it is counted, and nothing stops."""
    series = pl.Series("s", ["x", "7,5", "10,0", None])
    counts = ClassCounts(np.zeros(4, np.int64), series, np.array([4]), None, None, notation=",")
    assert counts.value.tolist() == [0, 1, 2, 3]


def test_init_proposes_the_notations_of_sensitive_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(
        {
            "age": [f"{20 + i % 40}" for i in range(60)],
            "salary": [f"{1000 + 37 * (i % 30)},5" for i in range(60)],
            "income": [f"{1 + i % 9},{100 + i}" for i in range(60)],
            "Diagnosedatum": [f"{1 + i % 28:02}.{1 + i % 12:02}.2024" for i in range(60)],
            "Diagnosetag": [f"01.{1 + i % 12:02}.20{i:02}" for i in range(60)],
        }
    ).write_csv(tmp_path / "t.csv", separator=";")
    look = looked_at(tmp_path / "t.csv")
    found = {c.name: c for c in look.columns}
    assert {n for n, c in found.items() if c.role == "sensitive"} == set(found) - {"age"}
    assert any("which have no order for t-closeness; in decimal, name" in w for w in found["income"].warnings)
    assert any("t-closeness; in dates, name %d.%m.%Y or" in w for w in found["Diagnosetag"].warnings)
    assert not found["salary"].warnings
    (tmp_path / "p.toml").write_text(write_policy("t.csv", look, k=3, l=2))
    read = shoal.Policy.read(tmp_path / "p.toml")
    assert (read.decimal, read.dates) == ({"salary": ","}, {"Diagnosedatum": "%d.%m.%Y"})
    proposed = shoal.roles(tmp_path / "t.csv").settings()
    assert (proposed["decimal"], proposed["dates"]) == (read.decimal, read.dates)
    run("anonymize", "t.csv", "--policy", "p.toml", "--effort", "fast", "-o", "r.csv").ok()
    assert run("verify", "r.csv", "r.certificate.json").returncode == 0
