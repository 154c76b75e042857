"""What a text shows decides whether a value was changed: a class that is called like its one value shows the value."""

import polars as pl
import pytest

import shoal

ROWS = [["x", "x", "xy"], ["y", "y", "xy"], ["z", "zz", "zz"], ["u", "zz", "zz"]]
TREE = {"x": None, "y": None, "zz": ["z", "u"]}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("hierarchy", ["labels", ROWS, TREE])
def test_a_level_that_shows_the_value_itself_changes_nothing(tmp_path, ending, hierarchy):
    frame = pl.DataFrame({"a": [*"xxxxyyyyzu"]})
    made = shoal.anonymize(
        frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": hierarchy}, global_recoding=True,
    )  # fmt: skip
    assert made.certificate.details["levels"] == {"a": 1}
    assert sorted(made.table["a"])[:8] == [*"xxxxyyyy"] or hierarchy == "labels"
    assert made.facts.changed["a"] == made.facts.cost["suppressed_tuples"] == 2
    beside = made.write(tmp_path / f"r.{ending}")
    given = None if hierarchy == "labels" else {"a": hierarchy}
    verdict = shoal.verify(tmp_path / f"r.{ending}", beside, frame, hierarchies=given)
    assert verdict.holds, [f for f in verdict.findings if not f.holds]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("missing", ["category", "apart"])
def test_a_missing_value_at_any_level_is_a_missing_value(tmp_path, ending, missing):
    frame = pl.DataFrame({"a": [None, None, *"xxxxyyyyzu"]})
    made = shoal.anonymize(
        frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": ROWS}, global_recoding=True,
        missing=missing,
    )  # fmt: skip
    assert made.certificate.details["levels"] == {"a": 1}
    assert made.table["a"].null_count() == 2
    assert made.facts.changed["a"] == made.facts.cost["suppressed_tuples"] == 2
    beside = made.write(tmp_path / f"r.{ending}")
    verdict = shoal.verify(tmp_path / f"r.{ending}", beside, frame, hierarchies={"a": ROWS})
    assert verdict.holds, [f for f in verdict.findings if not f.holds]


def test_a_class_of_more_leaves_is_no_value_whatever_it_is_called():
    frame = pl.DataFrame({"a": [*"xxxxyyyyz"]})
    rows = [["x", "x"], ["w", "x"], ["y", "y"], ["z", "y"]]
    made = shoal.anonymize(
        frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": rows}, global_recoding=True
    )
    assert made.certificate.details["levels"] == {"a": 1}
    assert made.facts.changed["a"] == 9


def test_a_class_of_one_value_that_is_called_otherwise_is_changed():
    frame = pl.DataFrame({"a": [*"xxxxzu"]})
    rows = [["x", "ex"], ["z", "zz"], ["u", "zz"]]
    made = shoal.anonymize(
        frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": rows}, global_recoding=True
    )
    assert sorted(made.table["a"]) == ["ex"] * 4 + ["zz"] * 2
    assert made.facts.changed["a"] == made.facts.cost["suppressed_tuples"] == 6
