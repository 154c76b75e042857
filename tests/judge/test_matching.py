"""What covers what, and the flow that decides an assignment, against all pairs and all orders of the rows.

Missing values and stars as wildcards: a second reading, against comparing every pair of rows.
"""

import itertools
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.judge.recodings.ranges import _inside
from shoal.judge.tables import covering, matching
from shoal.judge.tables.covering import ColumnNotation, ColumnPair, column
from shoal.judge.tables.matching import leaves_matched, saturates
from shoal.judge.tables.privacy import frequencies
from shoal.model.notation import RangeOf, range_text
from tests.amount import thinned
from tests.commands import run


def test_a_flow_exists_exactly_when_some_order_of_the_rows_fits() -> None:
    seen = set()
    for seed in range(thinned(600)):
        rng = random.Random(seed)
        left = [rng.randrange(3) for _ in range(6)]
        right = [rng.randrange(3) for _ in range(6)]
        fits = {(a, b) for a in range(3) for b in range(3) if rng.random() < 0.6}
        possible = any(
            all(p in fits for p in zip(order, right, strict=True)) for order in set(itertools.permutations(left))
        )
        i, k = (np.array([p[s] for p in sorted(fits)], np.int64) for s in (0, 1))
        supply, demand = np.bincount(left, minlength=3), np.bincount(right, minlength=3)
        assert saturates(i, k, supply, demand) == possible
        settled = leaves_matched(i, k, supply.copy(), demand.copy())
        assert (settled is not None and saturates(*settled)) == possible
        seen.add(possible)
    assert seen == {True, False}


def drawn(rng: random.Random, name: str) -> ColumnPair:
    """A column of numbers published as ranges, sets of what lies between, stars and values as they are."""
    before = [rng.randrange(1, 7) for _ in range(14)]
    after = []
    for _ in range(14):
        low, high = sorted(rng.choices(sorted(set(before)), k=2))
        after.append(rng.choice([str(low), range_text(str(low), str(high)), "*"]) if low < high else str(low))
    return column(pl.Series(name, before), pl.Series(name, after), ColumnNotation("ranges", "*", False))


def drawn_sets(rng: random.Random, name: str) -> ColumnPair:
    """A column of letters, some missing, published as sets, stars, and values as they are."""
    before = [rng.choice(["a", "b", "c", "d", None]) for _ in range(14)]
    some = sorted({v for v in before if v is not None}) or ["a"]
    sets = ["{" + ", ".join(sorted(rng.sample(some, rng.randint(1, len(some))))) + "}" for _ in range(14)]
    after = [rng.choice([one, rng.choice(some), "*", None]) for one in sets]
    return column(pl.Series(name, before), pl.Series(name, after), ColumnNotation("ranges", "*", False))


def test_pairs_are_those_that_cover_whichever_way_they_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(thinned(120)):
        rng = random.Random(seed)
        columns = [drawn(rng, "a"), drawn(rng, "b"), drawn_sets(rng, "c")][: rng.randint(1, 3)]
        rng.shuffle(columns)
        block = np.array([rng.randrange(2) for _ in range(14)])
        left, right = (
            matching.side(block, [c.before for c in columns]),
            matching.side(block, [c.after for c in columns]),
        )
        wanted = {
            (i, k)
            for i, k in itertools.product(range(len(left.count)), range(len(right.count)))
            if left.block[i] == right.block[k]
            and all(c.covered(int(right.code[k, j]))[left.code[i, j]] for j, c in enumerate(columns))
        }
        for name, value in (("AT_ONCE", matching.AT_ONCE), ("SMALL", 0), ("AT_ONCE", 3), ("PAIR", 0), ("PAIR", 10**9)):
            monkeypatch.setattr(matching, name, value)
            found = [
                set(zip(*map(np.ndarray.tolist, part), strict=True)) for part in matching.pairs(left, right, columns)
            ]
            assert set().union(*found) == wanted
            assert sum(map(len, found)) == len(wanted)
        monkeypatch.undo()
        bare = [replace(c) for c in columns]
        monkeypatch.setattr(covering, "LARGEST_TABLE", 0)
        for with_table, without in zip(columns, bare, strict=True):
            token, value = np.divmod(np.arange(len(with_table.low) * with_table.values), with_table.values)
            assert without.table is None
            assert (without.covers(token, value) == with_table.covers(token, value)).all()
        monkeypatch.undo()


def test_a_column_with_many_values_leaves_few_tuples_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of five out of 2,000 numbers: bit sets would take 800,000 looks in each column."""
    rows, rng = 2000, np.random.default_rng(1)
    columns = []
    for name in "ab":
        before = rng.permutation(rows)
        after = [range_text(str(v - v % 5), str(v - v % 5 + 4)) for v in before.tolist()]
        columns.append(column(pl.Series(name, before), pl.Series(name, after), ColumnNotation("ranges", "*", False)))
    block = np.zeros(rows, np.int64)
    sides = [matching.side(block, [c.before for c in columns]), matching.side(block, [c.after for c in columns])]
    compared, own = [], matching._filter
    monkeypatch.setattr(matching, "_filter", lambda i, *given: compared.append(i.size) or own(i, *given))
    monkeypatch.setattr(ColumnPair, "covered", lambda *_: pytest.fail("a look at every value"))
    assert matching.assignable(*sides, columns)
    assert sum(compared) == 5 * len(sides[1].count)


def test_a_range_holds_the_values_between_its_ends() -> None:
    texts = ["10", "20", "30", "40", ">=50"]
    line = np.array([10.0, 20.0, 30.0, 40.0, 50.0])
    seen = set()
    for missing, notation, named in itertools.product((False, True), (None, ">=50", "<=10 >=50"), (False, True)):
        position = np.append(line, 90.0) if missing else line
        known = [t if t != "10" or notation != "<=10 >=50" else "<=10" for t in texts]
        values = SimpleNamespace(
            position=position, missing=missing, size=position.size, by_text={t: i for i, t in enumerate(known)}
        )
        of = SimpleNamespace(values=values, how=SimpleNamespace(notation=notation))
        for low, high in itertools.combinations_with_replacement(range(0, 60, 5), 2):
            for read in (RangeOf(str(low), ">=50" if named else str(high)), RangeOf(str(low), None)):
                left_out = {limit for limit in (notation or "").split() if limit not in (read.low, read.high)}
                inside = [i for i, x in enumerate(line) if low <= x <= high and known[i] not in left_out]
                inside += [5] if missing and read.high is None else []
                wanted = (inside[0], inside[-1]) if inside else (0, -1)
                assert _inside(read, (float(low), float(high)), of) == wanted
                seen.add(wanted)
    assert {(0, -1), (5, 5), (0, 5), (1, 4)} <= seen


def test_a_value_that_looks_like_a_set_is_itself_too() -> None:
    before = ["{~a, ~b}", "~a", "~b"]  # in their order: the set's text is the first value
    found = column(
        pl.Series("x", before), pl.Series("x", [*before[:2], "{~a, ~b}"]), ColumnNotation("ranges", "*", False)
    )
    assert [found.covered(int(t)).tolist() for t in found.after] == [[True] * 3, [False, True, False], [True] * 3]


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
