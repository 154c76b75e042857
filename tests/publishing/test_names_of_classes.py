"""What a text shows decides whether a value was changed: a class that is called like its one value shows the value."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.kept import holding

ROWS = [["x", "x", "xy"], ["y", "y", "xy"], ["z", "zz", "zz"], ["u", "zz", "zz"]]
TREE = {"x": None, "y": None, "zz": ["z", "u"]}


def made(values: list[str | None], rows: Any, **more: Any) -> tuple[shoal.Release, pl.DataFrame]:
    """A column recoded at one level, and its table."""
    frame = pl.DataFrame({"a": values})
    asked = {"quasi_identifiers": ["a"], "k": 2, "publish": "hierarchy", "global_recoding": True}
    return shoal.anonymize(frame, **asked, hierarchies={"a": rows}, **more), frame


def holds(release: shoal.Release, frame: pl.DataFrame, path: Path, rows: Any) -> None:
    holding(shoal.verify(path, release.write(path), frame, hierarchies=None if rows == "labels" else {"a": rows}))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("hierarchy", ["labels", ROWS, TREE])
def test_a_level_that_shows_the_value_itself_changes_nothing(tmp_path, ending, hierarchy):
    release, frame = made([*"xxxxyyyyzu"], hierarchy)
    assert release.certificate.details["levels"] == {"a": 1}
    assert sorted(release.table["a"])[:8] == [*"xxxxyyyy"] or hierarchy == "labels"
    assert release.facts.changed["a"] == release.facts.cost["suppressed_tuples"] == 2
    holds(release, frame, tmp_path / f"r.{ending}", hierarchy)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("missing", ["category", "apart"])
def test_a_missing_value_at_any_level_is_a_missing_value(tmp_path, ending, missing):
    release, frame = made([None, None, *"xxxxyyyyzu"], ROWS, missing=missing)
    assert release.certificate.details["levels"] == {"a": 1}
    assert release.table["a"].null_count() == 2
    assert release.facts.changed["a"] == release.facts.cost["suppressed_tuples"] == 2
    holds(release, frame, tmp_path / f"r.{ending}", ROWS)


def test_a_class_of_more_leaves_is_no_value_whatever_it_is_called():
    release, _ = made([*"xxxxyyyyz"], [["x", "x"], ["w", "x"], ["y", "y"], ["z", "y"]])
    assert release.certificate.details["levels"] == {"a": 1}
    assert release.facts.changed["a"] == 9


def test_a_class_of_one_value_that_is_called_otherwise_is_changed():
    release, _ = made([*"xxxxzu"], [["x", "ex"], ["z", "zz"], ["u", "zz"]])
    assert sorted(release.table["a"]) == ["ex"] * 4 + ["zz"] * 2
    assert release.facts.changed["a"] == release.facts.cost["suppressed_tuples"] == 6
