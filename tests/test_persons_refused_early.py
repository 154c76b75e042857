"""What a count of persons and rows rules out is refused before any search, with the column that is farthest from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.model.privacy import AlphaKAnonymity, LDiversity
from shoal.model.privacy.population import OfPersons

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=6)


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every way to put items into groups."""
    if not items:
        yield []
        return
    first, *rest = items
    for found in partitions(rest):
        yield [[first], *found]
        for i in range(len(found)):
            yield [*found[:i], [first, *found[i]], *found[i + 1 :]]


def kept(rows: list[tuple[str, int]], group: list[int], most: float) -> bool:
    """Whether no value of a group is one that more than a share of its persons have."""
    persons = {rows[i][1] for i in group}
    values = {rows[i][0] for i in group}
    return all(len({rows[i][1] for i in group if rows[i][0] == v}) <= most * len(persons) + 1e-9 for v in values)


@given(ROWS, st.sampled_from([LDiversity(2), LDiversity(3), AlphaKAnonymity(0.6, 1), AlphaKAnonymity(0.75, 1)]))
def test_the_count_never_rules_out_what_exists(rows: list[tuple[str, int]], model: Any) -> None:
    most = model.most
    exists = any(all(kept(rows, group, most) for group in found) for found in partitions(list(range(len(rows)))))
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
