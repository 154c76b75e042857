"""Missing values and stars as wildcards: a second reading, against comparing every pair of rows."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.judge.tables.privacy import frequencies
from tests.commands import run

CELL = st.sampled_from(["a", "b", "c", "*", None])


@settings(max_examples=80)
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=9))
def test_a_row_is_as_frequent_as_the_rows_it_could_be(rows: list) -> None:
    def alike(x: tuple, y: tuple) -> bool:
        return all(a == b or {a, b} & {"*", None} for a, b in zip(x, y, strict=True))

    frame = pl.DataFrame(rows, schema=dict.fromkeys("xyz", pl.String), orient="row")
    expected = [sum(alike(x, y) for y in rows) for x in rows]
    assert frequencies(frame, ["x", "y", "z"]).tolist() == expected
    found = shoal.audit(frame, quasi_identifiers=["x", "y", "z"], missing="wildcard")
    assert found.wildcards["k"] == min(expected) >= found.k  # our reading is never the kinder one
    assert found.wildcards["uniques"] == expected.count(1)
    assert found.wildcards["prosecutor_mean"] == pytest.approx(sum(1 / f for f in expected) / len(rows))


def test_by_default_and_on_the_command_line(tmp_path) -> None:
    table = pl.DataFrame({"x": [1, 1, None], "y": ["u", "u", "u"]})
    assert shoal.audit(table, quasi_identifiers=["x", "y"]).wildcards is None
    table.write_csv(tmp_path / "t.csv")
    words = ["audit", tmp_path / "t.csv", "--quasi", "x,y", "--missing", "wildcard"]
    assert "as wildcards         k 3, uniques 0" in run(*words).stdout
    facts = run(*words, "--json").facts
    assert (facts["wildcards"]["k"], facts["k"]) == (3, 1)
    with pytest.raises(shoal.PolicyError, match="did you mean 'wildcard'"):
        shoal.audit(table, quasi_identifiers=["x", "y"], missing="wild")
