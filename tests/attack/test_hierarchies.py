"""Hierarchies that are given and explain nothing: audit, attack, and compare say so, and name the column."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.commands import run

ZIPS = [["10", "1x", "*"], ["11", "1x", "*"], ["20", "2x", "*"], ["21", "2x", "*"]]
OTHER = [["a", "ab", "*"], ["b", "ab", "*"]]
ROLES: dict[str, Any] = {"quasi_identifiers": ["zip", "sex"], "sensitive": ["d"]}


@pytest.fixture
def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """An original, and a release of another tool with classes of zips."""
    original = pl.DataFrame(
        {"zip": ["10", "11", "20", "21"] * 15, "sex": ["f", "m", "m"] * 20, "d": ["flu", "gout", "burn", "flu"] * 15}
    )
    return original, original.with_columns(zip=pl.col("zip").str.slice(0, 1) + "x")


def calls(original: pl.DataFrame, release: pl.DataFrame, hierarchies: dict[str, Any]) -> dict[str, Any]:
    """The notes of each function that reads hierarchies."""
    return {
        "audit": lambda: shoal.audit(release, **ROLES, hierarchies=hierarchies).notes,
        "attack": lambda: shoal.attack(release, **ROLES, hierarchies=hierarchies).notes,
        "compare": lambda: shoal.compare(original, {"ours": release}, **ROLES, hierarchies=hierarchies).notes,
    }


@pytest.mark.parametrize("name", ["audit", "attack", "compare"])
def test_a_hierarchy_of_no_column_is_refused(tables: Any, name: str) -> None:
    with pytest.raises(shoal.PolicyError, match="'zap' is not a quasi-identifier or sensitive column"):
        calls(*tables, {"zap": ZIPS})[name]()


@pytest.mark.parametrize("name", ["audit", "attack"])
def test_a_hierarchy_of_other_values_is_named(tables: Any, name: str) -> None:
    notes = calls(*tables, {"zip": OTHER})[name]()
    assert any("the hierarchy of 'zip' has none of the column's values" in note for note in notes)
    assert not any("has none" in note for note in calls(*tables, {"zip": ZIPS})[name]())


def test_compare_names_the_column_whose_values_a_hierarchy_lacks(tables: Any) -> None:
    with pytest.raises(shoal.PolicyError, match="the hierarchy of 'zip' does not cover 4 of the column's values"):
        calls(*tables, {"zip": OTHER})["compare"]()


def test_cells_that_nothing_explains_are_named_with_their_column(tables: Any) -> None:
    original, release = tables
    lost = [n for n in calls(original, release, {})["compare"]() if "not understood" in n]
    assert lost == ["ours: column 'zip': 2 different cells not understood, and counted as stars; pass its hierarchy"]
    mixed = release.with_columns(zip=pl.col("zip").replace("1x", "one"))
    found = shoal.compare(original, {"ours": mixed}, **ROLES, hierarchies={"zip": ZIPS}).notes
    assert any("column 'zip': 1 different cell not understood" in n and "does not have them" in n for n in found)
    assert found[0].removeprefix("ours: ") in shoal.attack(mixed, original, **ROLES, hierarchies={"zip": ZIPS}).notes


def test_values_that_no_given_table_has_are_named(tables: Any) -> None:
    """Without its hierarchy, a class of another tool is one more value, to which no person is linked."""
    original, release = tables
    said = "column 'zip': no table given has 2 values of the release; if these are classes of a hierarchy, pass it"
    assert said in shoal.attack(release, original, **ROLES).notes
    assert said in shoal.attack(release, register=original, **ROLES).notes
    for more in (
        shoal.attack(release, original, **ROLES, hierarchies={"zip": ZIPS}),
        shoal.attack(release, **ROLES),
        shoal.attack(original, original, **ROLES),
        shoal.attack(release.with_columns(zip=pl.lit("*")), original, **ROLES),
    ):
        assert not [note for note in more.notes if "no table given" in note]


def test_a_hierarchy_that_changes_no_figure_is_named(tables: Any) -> None:
    original, release = tables
    idle = "the hierarchy of 'zip' changes no figure"
    assert any(idle in note for note in calls(original, release, {"zip": ZIPS})["audit"]())
    counted = shoal.audit(release, **ROLES, hierarchies={"zip": ZIPS}, population=pl.concat([original] * 3))
    assert counted.population is not None
    assert not any(idle in note for note in counted.notes)
    sensitive = [["flu", "lung"], ["gout", "foot"], ["burn", "skin"]]
    assert any("sensitive column 'd'" in note for note in calls(original, release, {"d": sensitive})["attack"]())


def test_the_commands_say_the_same_in_their_options(tables: Any, tmp_path: Path) -> None:
    original, release = tables
    original.write_csv(tmp_path / "t.csv")
    release.write_csv(tmp_path / "r.csv")
    (tmp_path / "zip.csv").write_text("".join(";".join(row) + "\n" for row in ZIPS))
    asked = ["--quasi", "zip,sex", "--sensitive", "d", "--hierarchy", f"zip={tmp_path / 'zip.csv'}"]
    said = run("audit", tmp_path / "r.csv", *asked).ok().stdout
    assert "only to compare them with --population or --with" in said
    asked[-1] = asked[-1].replace("zip=", "zap=")
    for command in (["audit"], ["attack"], ["compare", tmp_path / "t.csv"]):
        run(*command, tmp_path / "r.csv", *asked).refused(2, "(--hierarchy)")
