"""Distinction and separation of small sets of columns, against counting pairs one by one."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.engines import unassigned as module
from shoal.engines.unassigned import KEPT, LARGEST, dangerous
from tests.commands import run

ROWS = st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=1, max_size=9)


def by_hand(rows: list, some: tuple[int, ...]) -> tuple[float, float]:
    short = [tuple(r[j] for j in some) for r in rows]
    pairs = list(combinations(short, 2))
    apart = sum(a != b for a, b in pairs) / len(pairs) if pairs else 1.0
    return len(set(short)) / len(rows), apart


@settings(max_examples=60)
@given(ROWS)
def test_every_set_named_is_counted_right_and_the_worst_are_named(rows: list) -> None:
    found = dangerous([np.array(c) for c in zip(*rows, strict=True)], list("abcd"))
    for danger in found:
        expected = by_hand(rows, tuple("abcd".index(c) for c in danger.columns))
        assert (danger.distinction, danger.separation) == pytest.approx(expected)
    for size in (1, 2, 3):
        named = [d for d in found if len(d.columns) == size]
        everything = sorted((by_hand(rows, s)[1] for s in combinations(range(4), size)), reverse=True)
        assert [d.separation for d in named[:KEPT]] == pytest.approx(everything[:KEPT])
    best = max(d.separation for d in found)
    assert best == pytest.approx(by_hand(rows, (0, 1, 2, 3))[1])  # four columns: growing finds the whole


@settings(max_examples=30)
@given(ROWS)
def test_lines_with_counts_are_rows(rows: list) -> None:
    distinct, count = np.unique(np.array(rows), axis=0, return_counts=True)
    assert dangerous(list(distinct.T), list("abcd"), count) == dangerous(list(np.array(rows).T), list("abcd"))


@pytest.mark.parametrize("counts", [1, 2, 9])
def test_of_very_many_lines_some_say_which_sets_are_named_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch, counts: int
) -> None:
    random = np.random.default_rng(counts)
    codes = [random.integers(0, 2 + 3 * j, 400) for j in range(5)]
    count = random.integers(1, counts + 1, 400)
    rows = [row for row, many in zip(zip(*codes, strict=True), count, strict=True) for _ in range(many)]
    whole = dangerous(codes, list("abcde"), count)
    monkeypatch.setattr(module, "MANY", 300)
    monkeypatch.setattr(module, "SOME", 100)
    found = dangerous(codes, list("abcde"), count)
    sizes = [1] * 5 + [2] * KEPT + [3] * KEPT
    assert [len(d.columns) for d in found[: len(sizes)]] == [len(d.columns) for d in whole[: len(sizes)]] == sizes
    for danger in found:
        expected = by_hand(rows, tuple("abcde".index(c) for c in danger.columns))
        assert (danger.distinction, danger.separation) == pytest.approx(expected)
    assert {d.columns for d in found if len(d.columns) == 2} & {d.columns for d in whole if len(d.columns) == 2}


def test_of_twelve_columns_the_worst_triple_is_found_though_its_pairs_are_harmless() -> None:
    bits = [np.array([row >> j & 1 for row in range(8)]) for j in range(3)]
    pairs = np.array([0, 0, 1, 3, 4, 2, 1, 2])  # rows 0 and 1, 2 and 6, 5 and 7 alike: each pair differs in another bit
    found = dangerous([*bits, *[pairs] * (LARGEST - 3)], [*"abc", *map(str, range(LARGEST - 3))])
    assert next(d for d in found if len(d.columns) == 3).columns == ("a", "b", "c")
    assert all(set(d.columns) - set("abc") for d in found if len(d.columns) == 2)


def test_many_columns_are_searched_greedily() -> None:
    random = np.random.default_rng(1)
    d = LARGEST + 4
    codes = [random.integers(0, 2 + j // 4, 300) for j in range(d)]
    names = [f"c{j}" for j in range(d)]
    found = dangerous(codes, names)
    rows = list(zip(*codes, strict=True))
    top = max((by_hand(rows, s)[1], s) for s in combinations(range(d - 6, d), 3))
    assert max(f.separation for f in found if len(f.columns) == 3) >= top[0] - 1e-12
    assert len(found[-1].columns) > 3


def test_of_very_many_columns_the_pairs_of_those_that_separate_most_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(1)
    counted: list[tuple[int, ...]] = []
    measured = module._Table.measured
    monkeypatch.setattr(module, "WIDEST", 20)
    monkeypatch.setattr(module._Table, "measured", lambda self, some: (counted.append(some), measured(self, some))[1])
    codes = [random.integers(0, 2, 60) for _ in range(400)] + [random.integers(0, 9, 60) for _ in range(3)]
    found = dangerous(codes, [f"c{j}" for j in range(403)])
    assert {d.columns for d in found if len(d.columns) == 3} >= {("c400", "c401", "c402")}
    assert len({some for some in counted if len(some) == 2}) <= 20 * 19 / 2 + 403
    assert sum(len(d.columns) == 1 for d in found) == 403


def test_init_and_report_tell_them(tmp_path) -> None:
    random = np.random.default_rng(2)
    table = pl.DataFrame(
        {"age": random.integers(20, 60, 200), "zip": random.choice(["a1", "b2", "c3"], 200),
         "sex": random.choice(["f", "m"], 200), "patient_id": [f"p{i}" for i in range(200)]}
    )  # fmt: skip
    table.write_csv(tmp_path / "t.csv")
    told = run("init", tmp_path / "t.csv", "--json").facts["dangerous"]
    assert told[0]["columns"] == ["age"]
    assert all("patient_id" not in d["columns"] for d in told)
    tuples = table.select("age", "zip", "sex").n_unique()
    assert {"age", "zip", "sex"} in [set(d["columns"]) for d in told if d["distinction"] == pytest.approx(tuples / 200)]
    assert "age + zip" in (tmp_path / "t.policy.toml").read_text()
    release = shoal.anonymize(table.drop("patient_id"), quasi_identifiers=["age", "zip", "sex"], k=3, seed=1)
    assert "different combinations on 200 rows" in release.report(tmp_path / "r.html", internal=True).read_text()


def test_what_grows_takes_the_best_column_each_time() -> None:
    rows = np.random.default_rng(0).integers(0, 2, (14, LARGEST))
    names = [f"c{j}" for j in range(LARGEST)]
    found = dangerous(list(rows.T), names)
    held = [tuple(row) for row in rows.tolist()]
    some = tuple(names.index(c) for c in next(f for f in found if len(f.columns) == 3).columns)
    while (now := by_hand(held, some)[1]) < 1:
        wider = max(((*some, j) for j in range(LARGEST) if j not in some), key=lambda s: by_hand(held, s)[::-1])
        if by_hand(held, wider)[1] <= now:
            break
        some = wider
    assert found[-1].columns == tuple(names[j] for j in sorted(some))
    assert len(some) > 3
