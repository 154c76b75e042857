"""Ranges widened outwards to a grid: what is published, what it costs, and what is proved about it."""

import datetime
import json
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import PolicyError
from shoal.judge.recodings.ranges import on_grid
from shoal.judge.tables.covering import ColumnNotation
from shoal.judge.tables.covering import column as covering
from tests.kept import holding, kept
from tests.oracles.tables import least_total

METHODS = [
    "auto", "optimal", "two_anonymity", "mondrian", "hilbert", "three_phase", "three_phase_hilbert", "top_down",
    "cascade", "improve", "forest",
]  # fmt: skip


def floor_to(x: Fraction, step: Fraction) -> Fraction:
    return math.floor(x / step) * step


def ceil_to(x: Fraction, step: Fraction) -> Fraction:
    return math.ceil(x / step) * step


def ends(cell: object) -> tuple[Fraction, Fraction]:
    """What a published cell says, read without the product."""
    found = re.fullmatch(r"\[(\S+), (\S+)\]", str(cell))
    low, high = (found[1], found[2]) if found else (str(cell), str(cell))
    return Fraction(low), Fraction(high)


def loss(low: Fraction, high: Fraction, values: list[Fraction]) -> Fraction:
    span = max(values) - min(values) or Fraction(1)
    return min((high - low) / span, Fraction(1))


def least(rows: list[tuple[Fraction, ...]], k: int, steps: list[Fraction]) -> Fraction:
    """The least mean loss of any partition into groups of k, by looking at every one."""
    columns = list(zip(*rows, strict=True))

    def cost(group: list[int]) -> Fraction | None:
        if len(group) < k:
            return None
        total = Fraction(0)
        for column, step in zip(columns, steps, strict=True):
            held = [column[i] for i in group]
            total += loss(floor_to(min(held), step), ceil_to(max(held), step), list(column))
        return total * len(group)

    return Fraction(least_total(len(rows), cost)) / (len(rows) * len(columns))


@given(st.data())
@settings(max_examples=8, deadline=None)
def test_no_method_states_a_false_cost_bound_or_optimum(data):
    n = data.draw(st.integers(4, 6))
    whole = st.integers(-7, 23)
    rows = data.draw(st.lists(st.tuples(whole, st.integers(0, 40)), min_size=n, max_size=n))
    first, second = data.draw(st.sampled_from([1, 2, 5, 10, 100])), data.draw(st.sampled_from([0.5, 2, 2.5]))
    k = data.draw(st.integers(2, 3))
    frame = pl.DataFrame({"a": [r[0] for r in rows], "b": [r[1] / 4 for r in rows]})
    steps = [Fraction(first), Fraction(str(second))]
    true = [(Fraction(a), Fraction(b, 4)) for a, b in rows]
    best = least(true, k, steps)
    for method in METHODS:
        try:
            made = shoal.anonymize(
                frame, quasi_identifiers=["a", "b"], k=k, publish="ranges", range_step={"a": first, "b": second},
                method=method, effort="fast", seed=1, keep_order=True,
            )  # fmt: skip
        except PolicyError:
            assert method in ("two_anonymity", "forest")
            continue
        total = Fraction(0)
        for j, (name, step) in enumerate(zip("ab", steps, strict=True)):
            column = [row[j] for row in true]
            for cell, value in zip(made.table[name].to_list(), column, strict=True):
                low, high = ends(cell)
                assert low % step == high % step == 0
                assert low <= value <= high
                total += loss(low, high, column)
        cost = float(total / (2 * n))
        assert made.facts.cost["ncp"] == pytest.approx(cost, abs=1e-12)
        if made.certificate.unit == "suppressed tuples":  # of three_phase, where the grid takes nothing from any value
            assert made.certificate.cost == made.facts.cost["suppressed_tuples"]
            assert all(v % s == 0 for row in true for v, s in zip(row, steps, strict=True))
            continue
        assert made.certificate.cost == pytest.approx(cost, abs=1e-12)
        assert made.certificate.lower_bound <= float(best) + 1e-12, method
        assert cost >= float(best) - 1e-12
        if made.certificate.optimal:
            assert cost == pytest.approx(float(best), abs=1e-12), method


def people(n: int = 60, seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    days = [datetime.date(1990, 1, 1) + datetime.timedelta(int(x)) for x in rng.integers(0, 900, n)]
    return pl.DataFrame(
        {
            "age": rng.integers(17, 91, n),
            "pay": [Decimal(int(x)) / 100 for x in rng.integers(100, 9999, n)],
            "born": days,
            "zip": [str(x) for x in rng.integers(1, 6, n)],
            "ill": [("flu", "hiv", "ok")[i % 3] for i in range(n)],
        },
        schema_overrides={"pay": pl.Decimal(10, 2)},
    )


ROLES = {"quasi_identifiers": ["age", "pay", "born", "zip"], "sensitive": ["ill"], "k": 3, "l": 2, "publish": "ranges"}
STEPS = {"age": 5, "pay": 0.25, "born": "month"}


def test_every_group_ends_at_the_nearest_multiples_outside():
    frame = people()
    made = shoal.anonymize(frame, **ROLES, range_step=STEPS, keep_order=True, effort="fast")
    both = frame.select(pl.all().name.prefix("own_")).hstack(made.table)
    for _, group in both.group_by(["age", "pay", "born", "zip"]):
        for name, step in (("age", Fraction(5)), ("pay", Fraction(1, 4))):
            held = [Fraction(v) for v in group[f"own_{name}"].to_list()]
            assert ends(group[name][0]) == (floor_to(min(held), step), ceil_to(max(held), step))
        low, high = (datetime.date.fromisoformat(x) for x in group["born"][0].strip("[]").split(", "))
        held = group["own_born"].to_list()
        after = (max(held).replace(day=28) + datetime.timedelta(4)).replace(day=1)
        assert (low, high) == (min(held).replace(day=1), max(held) if max(held).day == 1 else after)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_files_persons_and_missing_values(engine, tmp_path):
    frame = people().with_columns(
        pl.when(pl.int_range(60) % 7 == 0).then(None).otherwise("age").alias("age"), who=pl.int_range(60) // 2
    )
    source = tmp_path / "in.csv"
    frame.write_csv(source)
    roles = {n: v for n, v in ROLES.items() if n != "l"}
    made = shoal.anonymize(source, **roles, range_step=STEPS, person="who", engine=engine, effort="fast")
    beside = made.write(tmp_path / "out.csv")
    holding(shoal.verify(tmp_path / "out.csv", beside, source))


def test_missing_values_under_a_step_wider_than_the_column(tmp_path):
    frame = pl.DataFrame({"a": [-1, None, 3, None, 7, 9, None, 2]})
    for step in (3, 12, 100):
        made = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, publish="ranges", range_step={"a": step})
        beside = made.write(tmp_path / "out.csv")
        verdict = shoal.verify(tmp_path / "out.csv", beside, frame)
        assert verdict.holds, (step, [f for f in verdict.findings if not f.holds])


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("step", [7, "month", "year"])
def test_moments_end_at_midnight(unit, step, tmp_path):
    start = datetime.datetime(1969, 11, 28, 17, 30)
    when = (
        [start + datetime.timedelta(hours=31 * i) for i in range(40)] + [datetime.datetime(1970, 1, 1)] * 3 + [None] * 2
    )
    frame = pl.DataFrame({"t": pl.Series(when, dtype=pl.Datetime(unit))})
    made = shoal.anonymize(
        frame, quasi_identifiers=["t"], k=3, publish="ranges", range_step={"t": step}, keep_order=True, effort="fast"
    )
    beside = made.write(tmp_path / "a.csv")
    holding(shoal.verify(tmp_path / "a.csv", beside, frame))
    for cell, own in zip(made.table["t"].to_list(), when, strict=True):
        low, high = re.fullmatch(r"\[(.+), (.+)\]", cell).groups() if cell and cell[0] == "[" else (cell, cell)
        for end in {low, high} - {None, "missing"}:
            at = datetime.datetime.fromisoformat(end)
            assert at.time() == datetime.time()
            days = (at - datetime.datetime(1970, 1, 1)).days
            assert {7: days % 7 == 0, "month": at.day == 1, "year": (at.month, at.day) == (1, 1)}[step]
        if own is not None:
            assert datetime.datetime.fromisoformat(low) <= own
            assert high == "missing" or own <= datetime.datetime.fromisoformat(high)


@pytest.mark.parametrize(
    ("column", "step", "said"),
    [
        (["b", "a", "b", "a"], 5, "neither numbers nor dates; leave the step out, or name their notation"),
        ([True, False, True, False], 5, "neither numbers nor dates"),
        (
            pl.Series([datetime.datetime(2020, 1, 1, h) for h in range(4)]).dt.replace_time_zone("UTC"),
            5,
            "zoned moments",
        ),
        ([datetime.time(h) for h in range(4)], 5, "times or zoned"),
        ([1, 2, 3, 4], "month", "the column holds numbers"),
        ([datetime.date(2020, 1, d) for d in range(1, 5)], 2.5, "whole number of days"),
        ([datetime.date(9999, 12, d) for d in range(1, 5)], "year", "cannot be written"),
        ([1.05, 2, 3, 4], 3e-18, "too close together"),
        (pl.Series(["lo", "hi", "lo", "hi"], dtype=pl.Enum(["lo", "hi"])), 5, "neither numbers nor dates"),
    ],
)
def test_what_has_no_grid_is_refused_by_name(column, step, said):
    with pytest.raises(PolicyError, match=said):
        shoal.anonymize(
            pl.DataFrame({"x": column}), quasi_identifiers=["x"], k=2, publish="ranges", range_step={"x": step}
        )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"range_step": {"age": 0}}, "above 0"),
        ({"range_step": {"age": True}}, "above 0"),
        ({"range_step": {"age": float("nan")}}, "above 0"),
        ({"range_step": {"age": "week"}}, "'month' or 'year'"),
        ({"range_step": {"agee": 5}}, "agee"),
        ({"range_step": 5}, "mapping"),
        ({"range_step": {"age": 5}, "publish": "stars"}, "cannot go with publish='stars'"),
        ({"range_step": {"age": 5}, "max_level": {"age": 1}}, "ranges have none"),
    ],
)
def test_a_policy_that_cannot_be_is_refused(more, said):
    with pytest.raises(PolicyError, match=said):
        shoal.Policy.of(**{**ROLES, **more})


def exposed(frame: pl.DataFrame, table: pl.DataFrame, names: list[str]) -> dict[str, float]:
    """Groups of which an end is held by one of their rows, counted one by one."""
    out = {}
    for name in names:
        groups = list(frame.select(pl.col(name).alias("own")).hstack(table).group_by(["age", "zip"]))
        alone = 0
        for _, group in groups:
            held = group["own"].to_list()
            alone += held.count(min(held)) == 1 or held.count(max(held)) == 1
        out[name] = alone / len(groups)
    return out


def test_the_audit_says_in_how_many_groups_an_end_is_one_persons_value(tmp_path):
    frame = people(80).select("age", "zip", "ill")
    roles = {**ROLES, "quasi_identifiers": ["age", "zip"]}
    made = shoal.anonymize(frame, **roles, keep_order=True, effort="fast")
    told = exposed(frame.with_columns(pl.col("zip").cast(pl.Int64)), made.table, ["age", "zip"])
    assert made.audit.exposed == pytest.approx(told)
    assert told["age"] > 0.3
    assert max(told.values()) <= made.audit.exposed_classes <= min(1, sum(told.values()))
    page = made.report(tmp_path / "a.html", internal=True).read_text()
    assert (
        f"{100 * made.audit.exposed_classes:.1f} % of the groups show a value that only one of their rows holds" in page
    )
    beside = kept(made.write(tmp_path / "a.csv"))
    assert json.loads(beside.read_text())["exposed"]["groups"] == made.audit.exposed_classes
    assert made.audit.exposed_classes is not None  # of the bytes written as well
    widened = shoal.anonymize(frame, **roles, range_step={"age": 5, "zip": 1}, effort="fast")
    assert widened.audit.exposed == {"age": 0.0, "zip": 0.0}
    assert widened.audit.exposed_classes == 0.0
    assert "ends on a grid" in widened.report(tmp_path / "b.html", internal=True).read_text()
    assert shoal.anonymize(frame, **{**roles, "publish": "stars"}, effort="fast").audit.exposed_classes is None


def test_sets_show_single_values_too():
    frame = pl.DataFrame({"town": ["Ulm", "Ulm", "Bonn", "Köln", "Köln", "Trier", "Trier"]})
    made = shoal.anonymize(frame, quasi_identifiers=["town"], k=3, publish="ranges")
    held = [
        [g.count(t) for t in set(g)] for g in ([] if made.facts.groups == 1 else [["Ulm", "Ulm", "Bonn"], ["Köln"] * 2])
    ]
    assert made.audit.exposed["town"] == (0.5 if held else 0.0)


def test_a_full_set_is_a_star_and_shows_nobody():
    frame = pl.DataFrame({"town": ["Ulm", "Bonn", "Trier"]})
    made = shoal.anonymize(frame, quasi_identifiers=["town"], k=3, publish="ranges")
    assert set(made.table["town"]) == {"*"}
    assert made.audit.exposed == {"town": 0.0}


def test_the_judge_does_not_take_a_missing_value_for_one_in_a_wide_range():
    before = pl.Series("a", [1, None, 3])
    after = pl.Series("a", ["[0, 100]", "[0, missing]", "[0, 100]"])
    found = covering(before, after, ColumnNotation("ranges", "*", False, step=100))
    token = {text: int(i) for text, i in zip(after, found.after, strict=True)}
    missing = int(found.before[1])
    held = {text: bool(found.covered(i)[missing]) for text, i in token.items()}
    assert held == {"[0, 100]": False, "[0, missing]": True}


def test_a_widened_release_is_decoded():
    made = shoal.anonymize(people(), **ROLES, range_step=STEPS, effort="fast")
    found = made.numeric()
    assert (found["age_low"] % 5 == 0).all()
    assert (found["age_high"] % 5 == 0).all()
    assert set(found["born_low"].dt.day()) == {1}
    drawn = made.sample(1)["age"]
    assert ((drawn >= found["age_low"]) & (drawn <= found["age_high"])).all()


def test_explore_widens_ranges_alone():
    frame = people()
    found = shoal.explore(
        frame, quasi_identifiers=["age", "zip"], sensitive=["ill"], k=[3], publish=["stars", "ranges"], effort="fast",
        range_step={"age": 20},
    )  # fmt: skip
    plain = shoal.explore(
        frame, quasi_identifiers=["age", "zip"], sensitive=["ill"], k=[3], publish=["stars", "ranges"], effort="fast"
    )
    assert found.found[0].loss == plain.found[0].loss
    assert found.found[1].loss > plain.found[1].loss


def test_a_value_on_the_grid_is_written_as_it_was():
    frame = pl.DataFrame({"a": ["20.0", "20.0", "22", "23"]})
    made = shoal.anonymize(frame, quasi_identifiers=["a"], k=2, publish="ranges", range_step={"a": 5})
    assert sorted(made.table["a"]) == ["20.0", "20.0", "[20.0, 25]", "[20.0, 25]"]


@pytest.mark.parametrize(
    ("text", "step", "lies"),
    [
        ("1970-01-08", 7, True), ("1970-01-09", 7, False), ("1969-12-25", 7, True), ("1970-01-08 01:00:00", 7, False),
        ("2020-03-01", "month", True), ("2020-03-02", "month", False), ("2020-03-01", "year", False),
        ("2020-01-01", "year", True), ("-0.6", 0.3, True), ("0.5", 0.3, False), ("5", "month", False),
    ],
)  # fmt: skip
def test_the_judge_knows_the_grid(text, step, lies):
    assert on_grid(text, step) is lies


@pytest.mark.parametrize(("kind", "known"), [(int, 5), (float, 2)])  # 60 to 64, or the two that the release names
def test_a_sample_of_a_range_with_a_missing_value_has_missing_values(kind: type, known: int) -> None:
    half = 0 if kind is int else 0.5
    ages = [*(60 + half + i % 5 for i in range(1000)), *[None] * 500, *[64 + half] * 1000]
    table = pl.DataFrame({"age": ages, "zip": ["a"] * 1500 + ["b"] * 1000})
    made = shoal.anonymize(
        table, quasi_identifiers=["age", "zip"], k=1000, publish="ranges", seed=1, weights={"zip": 9.0}
    )
    there = made.table["age"].str.contains("missing")
    assert there.sum() == 1500
    drawn = made.sample(seed=1)["age"]
    assert not drawn.filter(~there).null_count()
    few = drawn.filter(there)
    assert 0.8 * 1500 / (known + 1) < few.null_count() < 1.2 * 1500 / (known + 1)
    assert few.drop_nulls().is_between(60, 64.5).all()


def test_whole_numbers_that_pandas_holds_as_floats_are_drawn_as_whole_numbers() -> None:
    asked: dict = {"quasi_identifiers": ["age"], "k": 30, "publish": "ranges", "seed": 1}
    whole = pl.DataFrame({"age": [float(20 + i % 50) for i in range(300)]})
    drawn = shoal.anonymize(whole, **asked).sample(seed=1)["age"]
    assert (drawn == drawn.round()).all()
    drawn = shoal.anonymize(whole / 4, **asked).sample(seed=1)["age"]  # 5.25
    assert (drawn != drawn.round()).any()


@pytest.mark.parametrize("top", [{}, {"kg": 80}])
@pytest.mark.parametrize("kind", [pl.String, pl.Float64])
def test_no_end_tells_whether_a_row_has_its_value(kind: pl.DataType, top: dict) -> None:
    """55.0 as an end where a row has 55.0, and 50 where none has 50, would tell."""
    drawn = np.random.default_rng(3)
    kg = [f"{x:.1f}" for x in drawn.integers(400, 900, 200) / 10]
    table = pl.DataFrame({"kg": pl.Series(kg).cast(kind)})
    release = shoal.anonymize(
        table, quasi_identifiers=["kg"], k=4, publish="ranges", range_step={"kg": 5}, top=top, seed=1, effort="fast"
    )
    shown = {end for text in release.table["kg"].unique() for end in re.findall(r"[0-9.]+", text.replace(">=80", ""))}
    assert {end.partition(".")[2] for end in shown} == {"0" if kind == pl.String else ""}
    assert len(shown) > 5
