"""The judge's levels against definitions written out."""

import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.judge.tables.privacy import frequencies, judge, wildcards
from shoal.model.privacy import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    SimultaneousLDiversity,
    TCloseness,
)
from tests.oracles.models import classes, level, meets

Q, S = ["a", "b"], ["s", "u", "w"]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 0, 1]),
        st.sampled_from(["x", "*"]),
        st.sampled_from([None, 1, 2, 10, 9]),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=9,
)


def frame(rows: list[tuple]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"a": pl.Float64, "b": pl.String, "s": pl.Int64, "u": pl.Int8, "w": pl.Int64}, orient="row"
    )


@settings(deadline=None, max_examples=120)
@given(ROWS)
def test_levels_are_those_of_the_definitions(rows: list[tuple]) -> None:
    found = judge(frame(rows), Q, S)
    groups = classes(rows, [0, 1])
    assert found.k == min(map(len, groups))
    assert found.classes == len(groups)
    assert found.uniques == sum(len(g) == 1 for g in groups)
    for name, place in zip(S, (2, 3, 4), strict=True):
        for reached, model, worst, asked in (
            ("l", "LDiversity", min, {}), ("distinct_l", "DistinctLDiversity", min, {}),
            ("entropy_l", "EntropyLDiversity", min, {}), ("alpha", "AlphaKAnonymity", max, {}),
            ("t_equal", "TCloseness", max, {"distance": "equal"}),
            ("t_ordered", "TCloseness", max, {"distance": "ordered"}), ("beta", "BetaLikeness", max, {}),
            ("delta", "DeltaDisclosure", max, {}),
        ):  # fmt: skip
            by_hand = worst(level(model, asked, group, rows, place) for group in groups)
            assert getattr(found.sensitive[name], reached) == pytest.approx(float(by_hand), abs=1e-9), reached


def held_to(rows: list[tuple], columns: range, name: str, asked: dict[str, Any]) -> bool:
    """Whether every class meets a model by its definition; values are numbered in their order, a missing one last."""
    places = [sorted({r[c] for r in rows}, key=lambda v: (v is None, v)) for c in columns]
    coded = {r: tuple(order.index(r[c]) for c, order in zip(columns, places, strict=True)) for r in rows}
    table = [coded[r] for r in rows]
    return all(meets(name, asked, [coded[r] for r in g], table) for g in classes(rows, [0, 1]))


SHARES = st.floats(0.01, 1.0).map(lambda share: round(share, 3))


@settings(deadline=None, max_examples=120)
@given(ROWS, st.integers(1, 4), st.sampled_from([0.3, 0.5, 1.0, 1.5, 3.0]), SHARES)
def test_checks_are_those_of_the_definitions(rows: list[tuple], l: int, c: float, share: float) -> None:
    models: list[tuple[type, dict[str, Any]]] = [
        (KAnonymity, {"k": l}), (LDiversity, {"l": l}), (DistinctLDiversity, {"l": l}), (EntropyLDiversity, {"l": l}),
        (RecursiveLDiversity, {"c": c, "l": l}), (AlphaKAnonymity, {"alpha": share, "k": l}),
        (TCloseness, {"t": share, "distance": "equal"}), (TCloseness, {"t": share, "distance": "ordered"}),
        (BetaLikeness, {"beta": c, "enhanced": False}), (BetaLikeness, {"beta": c, "enhanced": True}),
        (DeltaDisclosure, {"delta": c}),
    ]  # fmt: skip
    asked = [model(**values, **({} if model is KAnonymity else {"column": "s"})) for model, values in models]
    held = [c.passes for c in judge(frame(rows), Q, S, asked).checks]
    assert held == [held_to(rows, range(2, 3), model.__name__, values) for model, values in models]


@settings(deadline=None, max_examples=100)
@given(ROWS, st.integers(1, 3))
def test_persons_are_counted_once_for_each_value_of_a_class(rows: list[tuple], l: int) -> None:
    """Column u names the person of a row."""
    models = [KAnonymity(l), LDiversity(l), AlphaKAnonymity(0.5, l, "s"), DistinctLDiversity(l, "s")]
    found = judge(frame(rows), Q, ["s", "w"], models, persons=["u"])
    groups = classes(rows, [0, 1])
    people = [len({r[3] for r in g}) for g in groups]
    fewest = min(level("DistinctLDiversity", {}, g, rows, 2) for g in groups)

    def most(g: list[tuple], place: int) -> int:
        return max(len({r[3] for r in g if r[place] == v}) for v in {r[place] for r in g})

    assert found.persons == {"u": min(people)}
    assert {(c.short, c.column, c.asked.get("counted"), c.level, c.passes) for c in found.checks} == {
        ("k", None, None, min(map(len, groups)), min(map(len, groups)) >= l),
        ("k", "u", None, min(people), min(people) >= l),
        ("distinct_l", "s", None, fewest, fewest >= l),
        *(
            ("l", name, "u", min(n / most(g, place) for n, g in zip(people, groups, strict=True)),
             all(l * most(g, place) <= n for n, g in zip(people, groups, strict=True)))
            for name, place in (("s", 2), ("w", 4))
        ),
        ("alpha", "s", "u", max(most(g, 2) / n for n, g in zip(people, groups, strict=True)),
         min(people) >= l and all(2 * most(g, 2) <= n for n, g in zip(people, groups, strict=True))),
    }  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(ROWS, st.sampled_from([0.2, 0.4, 0.5, 1.0]))
def test_wildcards_hide_rows_in_one_another(rows: list[tuple], threshold: float) -> None:
    def alike(one: tuple, other: tuple) -> bool:
        return all(x == y or {x, y} & {None, "*"} for x, y in zip(one[:2], other[:2], strict=True))

    often = [sum(alike(one, other) for other in rows) for one in rows]
    held = frequencies(frame(rows), Q)
    assert held is not None
    assert held.tolist() == often
    assert wildcards(frame(rows), Q, threshold) == {
        "k": min(often),
        "uniques": often.count(1),
        "prosecutor_max": 1 / min(often),
        "prosecutor_mean": pytest.approx(sum(1 / n for n in often) / len(often)),
        "records_at_risk": pytest.approx(sum(1 / n > threshold for n in often) / len(often)),
    }


def test_wildcards_of_too_many_patterns_are_not_counted() -> None:
    names = [f"c{i}" for i in range(10)]
    table = pl.DataFrame([["*" if number >> i & 1 else "x" for i in range(10)] for number in range(513)],
                         schema=names, orient="row")  # fmt: skip
    assert frequencies(table, names) is None


@settings(deadline=None, max_examples=100)
@given(ROWS, st.integers(1, 4), st.integers(1, 3))
def test_simultaneous_diversity_is_that_of_the_definition(rows: list[tuple], l: int, columns: int) -> None:
    (check,) = judge(frame(rows), Q, S[:columns], [SimultaneousLDiversity(l)]).checks
    assert check.passes == held_to(rows, range(2, 2 + columns), "SimultaneousLDiversity", {"l": l})


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_that_all_differ_reach_their_number_and_no_more(columns: int) -> None:
    table = pl.DataFrame({"q": [1] * 4, **{name: [0, 1, 2, 3] for name in S[:columns]}})
    found = judge(table, ["q"], S[:columns], [SimultaneousLDiversity(4), SimultaneousLDiversity(5)])
    assert [(c.level, c.passes) for c in found.checks] == [(4, True), (4, False)]


def test_a_row_without_partners_breaks_simultaneous_diversity() -> None:
    table = pl.DataFrame({"q": [1, 1, 1], "s": ["a", "b", "a"], "t": ["x", "y", "y"]})
    found = judge(table, ["q"], ["s", "t"], [SimultaneousLDiversity(2)])  # (a, y) differs from neither in both
    assert not found.passes
    assert found.checks[0].level == 1


def test_absent_values_are_infinitely_far_unless_ignored() -> None:
    table = pl.DataFrame({"q": [1, 1, 2, 2], "s": ["a", "b", "a", "a"]})
    found = judge(table, ["q"], ["s"], [DeltaDisclosure(0.5), DeltaDisclosure(0.7, "ignored")])
    assert [c.level for c in found.checks] == [math.inf, pytest.approx(math.log(2))]
    assert [c.passes for c in found.checks] == [False, True]


def test_simultaneous_diversity_of_a_large_class_is_quick() -> None:
    table = pl.DataFrame({"a": ["*"] * 3000, "s": [i % 50 for i in range(3000)], "u": [i % 59 for i in range(3000)]})
    (check,) = judge(table, ["a"], ["s", "u"], [SimultaneousLDiversity(50)]).checks
    assert check.level == 50
    assert not judge(table, ["a"], ["s", "u"], [SimultaneousLDiversity(51)]).passes


@pytest.mark.parametrize("as_category", [False, True])
def test_the_order_of_numbers_does_not_hang_on_how_their_text_is_stored(as_category: bool) -> None:
    values = pl.Series("s", ["2", "10", "9", "2"])
    if as_category:
        values = values.cast(pl.Categorical(pl.Categories.random()))
    found = judge(pl.DataFrame([pl.Series("a", ["x", "x", "y", "y"]), values]), ["a"], ["s"])
    rows = [("x", 2), ("x", 10), ("y", 9), ("y", 2)]
    assert found.sensitive["s"].t_ordered == pytest.approx(
        max(level("TCloseness", {"distance": "ordered"}, g, rows, 1) for g in classes(rows, [0]))
    )


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([2**64 - 1, 2**64 - 1, 2**64 - 2, None], dtype=pl.UInt64),
        pl.Series([2**62 + 5, 2**62 + 5, 2**62 + 6, None]),
        pl.Series([-(2**63), -(2**63), 2**63 - 1, None]),
        pl.Series([2**100, 2**100, 2**100 + 1, None], dtype=pl.Int128),
        pl.Series([-128, -128, 127, None], dtype=pl.Int8),
        pl.Series([True, True, False, None]),
        pl.Series(["1.10", "1.10", "1.20", None]).cast(pl.Decimal(10, 2)),
        pl.Series([[1], [1], [2], None]),
        pl.Series([0.0, -0.0, 1.0, None]),
    ],
    ids=lambda s: str(s.dtype),
)
def test_classes_of_every_type(values: pl.Series) -> None:
    assert judge(values.rename("a").to_frame().with_columns(s=pl.col("a")), ["a"], ["s"]).sizes == {1: 2, 2: 1}


def test_nan_and_null_are_one_value() -> None:
    table = pl.DataFrame({"a": [float("nan"), None, 1.0, 1.0], "s": ["p", "q", "p", "q"]})
    assert judge(table, ["a"], ["s"]).k == 2


def test_an_empty_table_meets_everything() -> None:
    table = pl.DataFrame(schema={"a": pl.String, "s": pl.String})
    found = judge(table, ["a"], ["s"], [KAnonymity(5), LDiversity(3), TCloseness(0.0), SimultaneousLDiversity(2)])
    assert found.passes
    assert found.rows == found.classes == 0


def test_an_infinite_level_is_none_in_json() -> None:
    table = pl.DataFrame({"a": ["x", "x"], "s": ["p", "p"]})
    found = judge(table, ["a"], ["s"], [RecursiveLDiversity(2.0, 2)])
    assert found.checks[0].level == math.inf
    assert found.as_dict()["checks"][0]["level"] is None
    assert found.as_dict()["sensitive"]["s"]["recursive_c"] is None


def test_unknown_columns_are_refused_with_a_suggestion() -> None:
    with pytest.raises(PolicyError, match="did you mean 'age'"):
        judge(pl.DataFrame({"age": [1]}), ["agee"])
    with pytest.raises(PolicyError, match="sensitive"):
        judge(pl.DataFrame({"age": [1]}), ["age"], [], [LDiversity(2)])


def test_levels_of_one_class_at_the_edge() -> None:
    """Counts 4, 2, 1: each model just holds and just does not."""
    table = pl.DataFrame({"a": ["x"] * 7, "s": list("ppppqqr")})
    entropy = math.exp(-sum(n / 7 * math.log(n / 7) for n in (4, 2, 1)))
    for good, bad in [
        (EntropyLDiversity(entropy - 1e-4), EntropyLDiversity(entropy + 1e-4)),
        (RecursiveLDiversity(1.34, 2), RecursiveLDiversity(4 / 3, 2)),
        (RecursiveLDiversity(4.1, 3), RecursiveLDiversity(4.0, 3)),
        (AlphaKAnonymity(4 / 7, 7), AlphaKAnonymity(0.571, 7)),
        (AlphaKAnonymity(1.0, 7), AlphaKAnonymity(1.0, 8)),
        (LDiversity(1), LDiversity(2)),
        (DistinctLDiversity(3), DistinctLDiversity(4)),
        (KAnonymity(7), KAnonymity(8)),
    ]:
        assert judge(table, ["a"], ["s"], [good]).passes, good
        assert not judge(table, ["a"], ["s"], [bad]).passes, bad


def test_an_empty_table_has_no_level_and_no_risk() -> None:
    found = judge(frame([]), Q, S, [KAnonymity(2), LDiversity(2, "s")])
    assert [(c.level, c.passes) for c in found.checks] == [(None, True)] * 2
    assert {name: value for name, value in found.risk.items() if name != "threshold"} == {
        "prosecutor_max": 0, "prosecutor_mean": 0, "journalist_max": 0, "marketer": 0, "records_at_risk": 0,
    }  # fmt: skip


def test_the_level_of_k_is_the_smallest_class_and_a_model_of_another_column_is_refused() -> None:
    table = pl.DataFrame({"a": [1, 1, 1, 2, 2], "s": [1, 2, 3, 4, 5]})
    (check,) = judge(table, ["a"], ["s"], [KAnonymity(2)]).checks
    assert (check.level, check.passes) == (2, True)
    with pytest.raises(PolicyError, match="'u' is not a sensitive column"):
        judge(table, ["a"], ["s"], [LDiversity(2, "u")])
