"""Hierarchies of intervals."""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from tests.labels.test_naming import check_hierarchy


@pytest.mark.parametrize("objective", ["max", "squares", "range"])
def test_levels_are_nested_and_full(objective):
    values = [(i * 37) % 90 for i in range(60)]
    counts = [1 + i % 5 for i in range(60)]
    ks = [6, 20, 70]
    rows = shoal.intervals.levels(values, counts, ks, objective)
    assert [row[0] for row in rows] == [str(v) for v in values]
    assert len(rows[0]) == 5
    check_hierarchy(rows, counts, ks)


def test_names_of_the_table_are_kept_where_a_value_stands_alone():
    rows = shoal.intervals.levels([3, 1, 2], [5, 1, 4], [5], names=["03", "01", "02"])
    assert rows == [["03", "03", "*"], ["01", "1 .. 2", "*"], ["02", "1 .. 2", "*"]]


def test_dates_and_floats_as_text():
    days = np.array(["2020-01-02", "2020-01-01"], dtype="datetime64[D]")
    assert shoal.intervals.levels(days, [1, 1], [2], "range")[0] == ["2020-01-02", "2020-01-01 .. 2020-01-02", "*"]
    assert shoal.intervals.interval_labels([0.1, 5.0], [2.5, 5.0]) == ["0.1 .. 2.5", "5"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1, 1], [1, 2], [2]), "must all differ"),
        (([1, 2], [1, 2], [3, 2]), "increasing order"),
        (([1, 2], [1, 2], [2], "rnge"), "did you mean 'range'"),
        (([1, 2], [1, 2], [2], "max", ["a"]), "2 values and 1 names"),
    ],
)
def test_what_is_no_hierarchy(arguments, words):
    with pytest.raises(shoal.ShoalError, match=words):
        shoal.intervals.levels(*arguments)
