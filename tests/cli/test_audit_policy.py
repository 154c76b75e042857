"""An audit by a policy: the roles and models that were asked for, on any table, with any engine."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import shoal
from tests.commands import run

POLICY = """quasi_identifiers = ["age", "town"]
sensitive = ["disease"]
person = "name"
k = 5
distinct_l = 2
publish = "hierarchy"
hierarchies = {age = "intervals:5,10"}
"""
ROWS = {
    "name": [f"N{i}" for i in range(40)],
    "age": [20 + i % 4 for i in range(40)],
    "town": [("Ulm", "Bonn")[i % 2] for i in range(40)],
    "disease": [("flu", "gout", "asthma")[i % 3] for i in range(40)],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table, and its policy in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(ROWS).write_csv("people.csv")
    Path("rules").mkdir()
    Path("rules/policy.toml").write_text(POLICY)
    return tmp_path


def test_a_policy_elsewhere_names_what_is_built(folder):
    assert shoal.Policy.read("rules/policy.toml").hierarchies == {"age": "intervals:5,10"}
    assert shoal.Policy.read("rules/policy.toml").files == (Path("rules/policy.toml"),)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_its_models_become_checks_and_persons_are_counted_where_they_are(folder, engine):
    policy = shoal.Policy.read("rules/policy.toml")
    release = shoal.anonymize("people.csv", policy, seed=1, effort="fast")
    release.write("release.csv")
    original = shoal.audit("people.csv", policy, engine=engine)
    later = shoal.audit("release.csv", policy, engine=engine)
    assert [(c.short, c.column) for c in original.checks][:3] == [("k", None), ("distinct_l", "disease"), ("k", "name")]
    assert original.persons == {"name": 10}
    assert later.persons == {}  # the column has left
    assert [c.short for c in later.checks] == ["k", "distinct_l"]
    assert later.passes
    done = run("audit", "release.csv", "--policy", "release.certificate.json", "--engine", engine, "--json")
    assert [c["short"] for c in done.facts["checks"]] == ["k", "distinct_l"]
    done = run("audit", "people.csv", "--policy", "rules/policy.toml", "--k", 41, "--engine", engine)
    assert done.returncode == 1
    assert "k = 41: does NOT hold" in done.stdout


def test_keywords_override_it_and_an_absent_column_named_there_is_refused(folder):
    policy = shoal.Policy.read("rules/policy.toml")
    assert shoal.audit("people.csv", policy, quasi_identifiers=["age"]).classes == 4
    with pytest.raises(shoal.PolicyError, match="'nobody' is not a column"):
        shoal.audit("people.csv", policy, person="nobody")


def test_the_mean_risk_is_a_check_of_its_own(folder):
    frame = pl.DataFrame(ROWS)
    classes = frame.select("age", "town").n_unique()
    for most in (classes / 40, classes / 40 - 1e-6):
        found = shoal.audit(frame, quasi_identifiers=["age", "town"], max_average_risk=most)
        assert found.passes == (most * 40 >= classes)
        assert [c.short for c in found.checks] == ["max_average_risk"]
    asked = {"quasi_identifiers": ["age"], "identifiers": ["name", "town", "disease"], "k": 5, "max_average_risk": 0.2}
    assert [c.short for c in shoal.audit(frame, asked).checks] == ["k", "max_average_risk"]


def test_coordinates_are_looked_at_as_they_stand():
    frame = pl.DataFrame({"x": [0.1, 0.1, 0.9, 0.9], "y": [0.2, 0.2, 0.8, 0.8], "age": [1, 1, 2, 2]})
    asked = {"quasi_identifiers": ["age"], "coordinates": ("x", "y"), "publish": "hierarchy", "k": 2}
    assert shoal.audit(frame, asked).classes == 2
    tiled = frame.with_columns(pl.Series("place", ["a", "a", "a", "a"])).drop("x", "y")
    assert shoal.audit(tiled, asked).classes == 2
    assert shoal.audit(tiled, {**asked, "quasi_identifiers": []}).classes == 1


def test_passes_is_said_only_of_what_was_asked(folder):
    assert shoal.audit("people.csv", quasi_identifiers=["age"]).passes is None
    assert shoal.audit("people.csv", quasi_identifiers=["age"], k=1).passes is True
    done = run("audit", "people.csv", "--quasi", "age", "--json")
    assert (done.returncode, done.facts["passes"], done.facts["checks"]) == (0, None, [])
    assert shoal.audit("people.csv", quasi_identifiers=["age"], k=41).passes is False


def test_an_audit_shows_of_each_model_what_was_asked_and_what_is_reached(folder):
    shown = str(shoal.audit("people.csv", quasi_identifiers=["age"], sensitive=["disease"], k=11, distinct_l=2))
    assert "k-anonymity, k = 11: does not hold; the table reaches 10" in shown
    assert "distinct l-diversity of disease, l = 2: holds; the table reaches 3" in shown


def test_a_certificate_proved_optimal_says_so_without_a_doubt(folder):
    release = shoal.anonymize("people.csv", quasi_identifiers=["age", "town"], identifiers=["name"], k=2, seed=1)
    assert release.certificate.optimal
    assert "that is the least: " in str(release.certificate)
    assert "rounding" not in str(release.certificate)


@pytest.mark.parametrize(("sizes", "more"), [(12, ""), (13, " and 1 more size"), (15, " and 3 more sizes")])
def test_a_dozen_sizes_of_groups_are_listed_and_the_others_counted(folder, sizes, more):
    pl.DataFrame({"age": [i for i in range(sizes) for _ in range(i + 1)]}).write_csv("sizes.csv")
    _, said, _ = run("audit", "sizes.csv", "--quasi", "age")
    line = next(line for line in said.splitlines() if line.startswith("sizes of groups"))
    assert line == "sizes of groups      " + ", ".join(f"{i}: 1" for i in range(1, 13)) + more


def test_a_text_for_a_missing_value_is_named_where_missing_values_match_all():
    """sdcMicro's users write missing values as NA."""
    frame = pl.DataFrame({"age": ["NA", "31", None, " na ", "31"], "zip": ["1", "1", "1", "1", "?"], "ill": ["NA"] * 5})
    for table in (frame, frame.cast(pl.Categorical)):
        roles = {"quasi_identifiers": ["age", "zip"], "sensitive": ["ill"]}
        for missing, said in (("wildcard", 2), ("filled", 2), ("category", 0)):
            notes = [n for n in shoal.audit(table, **roles, missing=missing).notes if "such as NA" in n]
            assert len(notes) == said
            assert not said or (notes[0][:23], notes[1][:22]) == ("column 'age': 2 rows wi", "column 'zip': 1 row wi")


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("whole", [0, 1, 2, 3, 8])
def test_rows_starred_whole_are_named_where_the_others_reach_more(tmp_path, engine, whole):
    """ARX leaves them out; every group is counted here by hand."""
    pytest.importorskip(engine)
    rng = np.random.default_rng(whole)
    rows = [(age, zip_) for age in "abc" for zip_ in ("1", "*") for _ in range(rng.integers(3, 7))]
    rows += [("*", "*")] * whole
    path = tmp_path / "t.parquet"
    pl.DataFrame(rows, schema=["age", "zip"], orient="row").write_parquet(path)
    sizes = {row: rows.count(row) for row in rows}
    starred = sizes.pop(("*", "*"), 0)
    notes = [n for n in shoal.audit(path, quasi_identifiers=["age", "zip"], engine=engine).notes if "every quasi" in n]
    if 0 < starred < min(sizes.values()):
        assert notes[0].startswith("1 row has" if starred == 1 else f"{starred} rows have")
        assert notes[0].endswith(f"k is {min(sizes.values())}")
    else:
        assert notes == []
    assert bool(notes) == (whole in (1, 2))


def test_a_table_of_stars_alone_and_persons_have_no_such_note():
    stars = pl.DataFrame({"age": ["*"] * 3, "who": ["a", "b", "c"]})
    assert shoal.audit(stars, quasi_identifiers=["age"]).notes == ()
    some = pl.DataFrame({"age": ["*", "1", "1"], "who": ["a", "b", "c"]})
    assert len(shoal.audit(some, quasi_identifiers=["age"]).notes) == 1
    assert shoal.audit(some, quasi_identifiers=["age"], person="who").notes == ()
