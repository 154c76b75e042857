"""What cannot be meant is refused before any work, and what differs by rounding alone is not called a gap."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import shoal
from shoal.cli.anonymize import guarantee
from shoal.errors import InputError, PolicyError
from shoal.model.cards import times
from shoal.report.parts import certificate_words
from tests.commands import run

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


@pytest.mark.parametrize("source", [42, 4.2, None, b"a;b", object()])
def test_what_is_no_hierarchy_is_refused_with_the_policy(source):
    with pytest.raises(PolicyError, match="hierarchies\\['age'\\] is of type"):
        shoal.Policy.of(quasi_identifiers=["age"], k=2, hierarchies={"age": source})


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
