"""What cannot be meant is refused before any work, and what differs by rounding alone is not called a gap.

What a count of persons and rows rules out is refused before any search, with the column that is farthest from it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cli.anonymize import guarantee
from shoal.errors import InputError, PolicyError
from shoal.model.cards import times
from shoal.model.privacy import AlphaKAnonymity, LDiversity
from shoal.model.privacy.population import OfPersons
from shoal.report.words import certificate_words
from tests.commands import run
from tests.oracles.tables import partitions

PEOPLE = pl.DataFrame(
    {"town": ["Ulm", "Ulm", "Bonn", "Bonn"], "age": [20, 21, 30, 31], "ill": ["flu", "-", "flu", "-"]}
)
ROWS = [["Ulm", "south", "*"], ["Bonn", "north", "*"]]


def go(**more):
    return shoal.anonymize(PEOPLE, quasi_identifiers=["town", "age"], sensitive=["ill"], k=2, effort="fast", **more)


@pytest.mark.parametrize(
    ("more", "name", "height"),
    [
        ({"publish": "hierarchy", "hierarchies": {"town": ROWS}, "max_level": {"town": 3}}, "town", 2),
        ({"publish": "hierarchy", "hierarchies": {"age": "intervals:5,10"}, "max_level": {"age": 4}}, "age", 3),
        ({"publish": "hierarchy", "hierarchies": {"town": ROWS}, "max_level": {"age": 2}}, "age", 1),
        ({"max_level": {"age": 2}}, "age", 1),
    ],
)
def test_a_level_above_the_hierarchy_is_refused_with_its_height(more, name, height):
    with pytest.raises(PolicyError, match=rf"max_level\['{name}'\].*levels 0 to {height}"):
        go(**more)
    allowed = {**more, "max_level": {name: height}}
    assert go(**allowed).audit.k >= 2


@pytest.mark.parametrize("ending", [".csv", ".xlsx", ".sav"])
def test_what_a_text_file_cannot_tell_apart_is_refused_before_the_search(ending, tmp_path, monkeypatch):
    monkeypatch.setattr("shoal.pipeline._solve", lambda *a: pytest.fail("it searched"))
    PEOPLE.with_columns(ill=pl.Series(["", None, "flu", "flu"])).write_parquet(tmp_path / "t.parquet")
    asked = ["--quasi", "town,age", "--sensitive", "ill", "--k", "2"]
    found = run("anonymize", tmp_path / "t.parquet", *asked, "-o", tmp_path / f"r{ending}")
    found.refused(2, "column 'ill' has empty texts and missing values", ".parquet" if ending == ".csv" else "Parquet")
    found.refused(2, "nullif(\"ill\", '') in SQL")


@pytest.mark.parametrize("source", [42, 4.2, None, b"a;b", object()])
def test_what_is_no_hierarchy_is_refused_with_the_policy(source):
    with pytest.raises(PolicyError, match="hierarchies\\['age'\\] is of type"):
        shoal.Policy.of(quasi_identifiers=["age"], k=2, hierarchies={"age": source})


@pytest.mark.parametrize("frame", ["polars", "pandas", "duckdb"])
@pytest.mark.parametrize(
    "line", ['quasi_identifiers = ["town", "agee"]', 'identifiers = "agee"', 'coordinates = ["town", "agee"]',
             'person = "agee"', 'population_weights = "agee"']
)  # fmt: skip
def test_a_policy_file_that_names_no_column_is_named_with_its_setting(line, frame, tmp_path):
    own = "" if line.startswith("quasi") else 'quasi_identifiers = ["ill"]\npublish = "hierarchy"\n'
    more = "" if line.startswith("quasi") else 'hierarchies = { ill = "stars" }\n'
    (tmp_path / "p.toml").write_text(f"k = 2\n{own}{line}\n{more}")
    policy = shoal.Policy.read(tmp_path / "p.toml")
    table = {"polars": lambda: PEOPLE, "pandas": PEOPLE.to_pandas, "duckdb": lambda: duckdb.from_arrow(PEOPLE)}[frame]()
    with pytest.raises(PolicyError, match=f"^in {line.split()[0]} of p.toml, 'agee' is not a column; did") as refused:
        shoal.anonymize(table, policy)
    assert refused.value.column == "agee"
    assert refused.value.keys >= {line.split()[0]}


@pytest.mark.parametrize("other", [replace, shoal.Policy.of])
def test_a_name_that_replaces_that_of_the_policy_file_is_not_said_to_be_in_it(other, tmp_path):
    (tmp_path / "p.toml").write_text('k = 2\nquasi_identifiers = ["town", "agee"]\n')
    policy = other(shoal.Policy.read(tmp_path / "p.toml"), quasi_identifiers=["Town", "agee"])
    with pytest.raises(PolicyError, match=r"^'Town' is not a column"):
        shoal.anonymize(PEOPLE, policy)


@pytest.mark.parametrize("column", ["town", "ill"])
def test_a_star_that_occurs_is_refused(column):
    star = {"town": "Ulm", "ill": "-"}[column]
    with pytest.raises(InputError, match=f"column '{column}' holds the value .*choose another text"):
        go(star=star)
    assert go(star="hidden").audit.k >= 2


def test_what_differs_by_rounding_is_the_least():
    said = {"unit": "ncp", "cost": 0.25, "lower_bound": 0.25 * (1 - 1e-12), "optimal": False, "ratio": 1 + 1e-12}
    more = {"guarantee": {"factor": None, "additive": None, "theorem": ""}, "details": {}}
    assert guarantee(said).endswith("so this is the least, up to rounding")
    assert "the least possible up to rounding" in certificate_words({"certificate": said | more})
    assert guarantee(said | {"ratio": 1.0002}).endswith("so this is within 1.001 times the least")
    assert [times(r) for r in (1.0, 1.001, 1.0241, 12.5)] == [
        "the least, up to rounding", "1.001 times the least", "1.025 times the least", "12.5 times the least",
    ]  # fmt: skip


@pytest.mark.parametrize(("values", "warned"), [(["b", "a", "c"], True), (["3", "1", "2"], False)])
def test_text_cut_by_its_characters_is_named(values, warned, tmp_path: Path):
    source = tmp_path / "in.csv"
    source.write_text("name,n\n" + "".join(f"{v},5\n" for v in values))
    words = ["intervals", source, "--value", "name", "--count", "n", "--k", 5]
    assert ("warning: column 'name' holds text" in run(*words).stdout) == warned
    assert ("warnings" in run(*words, "--json").facts) == warned


GAPS = pl.DataFrame({"age": [None, None, 20, 20, 31, 32], "x": list("aabbcc")})


def test_a_star_beside_a_missing_value_is_told_apart_in_a_csv_and_named_elsewhere(tmp_path: Path):
    made = shoal.anonymize(GAPS, quasi_identifiers=["age", "x"], k=2, effort="fast")
    assert made.table["age"].dtype == pl.Int64
    assert made.table["age"].null_count() == 4
    assert [n.split(":")[0] for n in made.audit.notes] == ["column 'age'"]
    assert (
        "stars and missing values are both published as missing"
        in made.report(tmp_path / "a.html", internal=True).read_text()
    )
    as_text = shoal.anonymize(GAPS, quasi_identifiers=["age", "x"], k=2, effort="fast", numeric_stars="text")
    assert as_text.audit.notes == ()
    assert shoal.anonymize(GAPS.drop_nulls(), quasi_identifiers=["age"], k=2, effort="fast").audit.notes == ()

    source, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    GAPS.write_parquet(source)
    assert "warnings" not in run("anonymize", source, "--quasi", "age,x", "--k", 2, "-o", out, "--json").facts
    ages = pl.read_csv(out, infer_schema=False)["age"].to_list()
    assert sorted(ages, key=str) == ["*", "*", "20", "20", None, None]
    assert shoal.verify(out, tmp_path / "out.certificate.json", source).holds


PERSONS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=6)


def kept(rows: list[tuple[str, int]], group: list[int], most: float) -> bool:
    """Whether no value of a group is one that more than a share of its persons have."""
    persons = {rows[i][1] for i in group}
    values = {rows[i][0] for i in group}
    return all(len({rows[i][1] for i in group if rows[i][0] == v}) <= most * len(persons) + 1e-9 for v in values)


@given(PERSONS, st.sampled_from([LDiversity(2), LDiversity(3), AlphaKAnonymity(0.6, 1), AlphaKAnonymity(0.75, 1)]))
def test_the_count_never_rules_out_what_exists(rows: list[tuple[str, int]], model: Any) -> None:
    most = model.most
    exists = any(all(kept(rows, group, most) for group in found) for found in partitions(len(rows)))
    sensitive = np.array([["abc".index(v), p] for v, p in rows], np.int64)
    found = OfPersons(model, "who", "v").most_common(sensitive, np.ones(len(rows), np.int64), np.zeros(4), (0, 1))
    assert not (found.impossible and exists)


def test_it_rules_out_what_persons_and_rows_cannot_fill() -> None:
    """Three persons have a, one row is without it: with l = 2 no group can take a second person with a."""
    sensitive = np.array([[0, 0], [0, 1], [0, 2], [1, 3]])
    found = OfPersons(LDiversity(2), "who", "v").most_common(sensitive, np.ones(4, np.int64), np.zeros(3), (0, 1))
    assert (found.code, found.persons, found.without, found.impossible) == (0, 3, 1, True)
    assert found.reach == pytest.approx(1 + 1 / 3)
    fair = OfPersons(LDiversity(1), "who", "v").most_common(sensitive, np.ones(4, np.int64), np.zeros(3), (0, 1))
    assert not fair.impossible


@pytest.mark.parametrize("kind", ["polars", "pandas", "duckdb"])
def test_the_column_farthest_from_it_is_named_before_any_search(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    n = 400
    table = pl.DataFrame(
        {
            "age": [20 + i % 9 for i in range(n)],
            "test": ["none"] * 380 + ["high"] * 20,
            "again": ["no"] * 230 + ["yes"] * 170,
            "who": [f"p{i % 350}" for i in range(n)],
        }
    )
    data: Any = table
    if kind == "pandas":
        data = table.to_pandas()
    elif kind == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        data = duckdb.from_arrow(table.to_arrow())
    import shoal.problems.tables as tables

    monkeypatch.setattr(tables, "group", lambda *_, **__: pytest.fail("a search was begun"))
    asked = {"quasi_identifiers": ["age"], "sensitive": ["again", "test"], "person": "who", "k": 3, "l": 2}
    with pytest.raises(
        shoal.InfeasibleError, match=r"^test 'none' is held by 3\d\d persons, and the rows without it number 20"
    ) as told:
        shoal.anonymize(data, **asked)
    assert "largest l possible is 1" in str(told.value)
    assert "by 'who'" in str(told.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"l": 2, "person": "who"},
            r"^test 'none' is held by 90 .*Also, ill 'flu' is held by 70 .*remove these columns",
        ),
        ({"l": 2}, r"^test 'none' is 90.0 % .*Also, ill 'flu' is 70.0 % .*alpha 0.7$"),
        ({"distinct_l": 3}, r"^sex has 2 different values.*Also, test has 2 different values"),
        ({"distinct_l": 3, "person": "who"}, r"^sex has 2 different values.*Also, test has 2 different values"),
        (
            {"privacy": [shoal.EntropyLDiversity(3)]},
            r"^all rows as one group reach .* of ill.*Also, .* of sex.* of test",
        ),
    ],
)
def test_every_column_at_fault_is_named(more: Any, said: str) -> None:
    table = pl.DataFrame(
        {
            "age": [20 + i % 9 for i in range(100)],
            "ill": ["flu"] * 70 + ["cold", "cough", "none"] * 10,
            "sex": ["f", "m"] * 50,
            "test": ["none"] * 90 + ["high"] * 10,
            "who": [f"p{i}" for i in range(100)],
        }
    )
    table = table if "person" in more else table.drop("who")
    with pytest.raises(shoal.InfeasibleError, match=said):
        shoal.anonymize(table, quasi_identifiers=["age"], sensitive=["ill", "sex", "test"], **more)
