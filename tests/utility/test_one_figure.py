"""What ``compare`` says a release lost is what the release says: constants, orders, stars beside missing values."""

from __future__ import annotations

import polars as pl
import pytest

import shoal


def both(frame: pl.DataFrame, given: object, made: shoal.Release, **more: object) -> tuple[float, tuple[str, ...]]:
    found = shoal.compare(frame, {"it": given}, quasi_identifiers=made.policy.quasi_identifiers, **more)
    return found.releases["it"]["loss"]["ncp"], found.notes


@pytest.mark.parametrize(("value", "step", "loss"), [(0.25, 0.5, 0.5), (1.0, 4, 1.0), (1.0, 0.3, 0.3)])
def test_a_column_of_one_value_widened_to_a_grid(value, step, loss):
    frame = pl.DataFrame({"a": [value] * 4, "b": [1, 2, 3, 4]})
    made = shoal.anonymize(frame, quasi_identifiers=["a", "b"], k=4, publish="ranges", range_step={"a": step})
    assert made.facts.cost["ncp"] == pytest.approx((loss + 1) / 2)
    assert both(frame, made.table, made)[0] == pytest.approx((loss + 1) / 2)


@pytest.mark.parametrize("missing", [False, True])
def test_a_column_with_an_order_of_its_own(missing):
    kind = pl.Enum(["lo", "mid", "hi", "top"])
    values = ["hi", "lo", "mid", "lo", "top", "hi", *([None, None, None] if missing else [])]
    frame = pl.DataFrame({"a": pl.Series(values, dtype=kind)})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=3, publish="ranges")
    assert 0 < made.facts.cost["ncp"] < 1
    assert both(frame, made.table, made)[0] == pytest.approx(made.facts.cost["ncp"])


def test_stars_beside_missing_values_are_counted_or_named(tmp_path):
    frame = pl.DataFrame({"a": [1, 1, 2, None, None, 3], "b": [True] * 6})
    made = shoal.anonymize(frame, quasi_identifiers=["a", "b"], k=2)
    assert made.facts.stars["a"] == 2
    assert both(frame, made, made)[0] == pytest.approx(made.facts.cost["ncp"])
    made.write(tmp_path / "r.parquet")
    assert "'a' has more missing values" in both(frame, tmp_path / "r.parquet", made)[1][0]
    plain = shoal.anonymize(frame.drop_nulls(), quasi_identifiers=["a", "b"], k=2)
    assert not any("missing" in note for note in both(frame.drop_nulls(), plain.table, plain)[1])


def test_a_generated_hierarchy_is_no_hierarchy_to_read():
    frame = pl.DataFrame({"a": [1, 2, 3, 4, 5, 6]})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, publish="hierarchy", hierarchies={"a": "intervals"})
    plain = both(frame, made.table, made)
    assert both(frame, made.table, made, hierarchies={"a": "intervals"}) == plain
