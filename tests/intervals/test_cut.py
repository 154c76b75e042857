"""Dynamic programs against every cut there is.

Hierarchies of intervals.
"""

import math
from datetime import date, datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import shoal
from tests.kept import failing
from tests.labels.test_naming import check_hierarchy
from tests.oracles.labels import cheapest_cut

cut = shoal.intervals.cut
TABLES = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 9)), min_size=1, max_size=9)


def costs(values, weights):
    """The three costs of the stretch i .. j-1 by definition, and how they combine."""
    return {
        "max": (lambda i, j: sum(weights[i:j]), max),
        "squares": (lambda i, j: sum(weights[i:j]) ** 2, sum),
        "range": (lambda i, j: (values[j - 1] - values[i]) * sum(weights[i:j]), sum),
    }


def tally(table):
    """Distinct values ascending with their weights."""
    sums = {}
    for value, weight in table:
        sums[value] = sums.get(value, 0) + weight
    return sorted(sums), [sums[value] for value in sorted(sums)]


@pytest.mark.parametrize("objective", ["max", "squares", "range"])
@settings(deadline=None, max_examples=150)
@given(table=TABLES, k=st.integers(1, 20), unit=st.sampled_from([1, 10**6, 10**15, 10**30]))
def test_optimal_for_numbers_of_any_length(objective, table, k, unit):
    table = [(value, weight * unit + (weight > 0)) for value, weight in table]
    k = k * unit
    values, weights = tally(table)
    assume(sum(weights) >= k)
    found = cut([v for v, _ in table], [w for _, w in table], k, objective)
    cost, combine = costs(values, weights)[objective]
    assert found.cost == cheapest_cut(weights, k, cost, combine)
    assert found.certificate.optimal
    labels = dict(zip((v for v, _ in table), found.labels.tolist(), strict=True))
    spans = [[values.index(low), values.index(high) + 1] for low, high in found.intervals()]
    assert [labels[v] for v in values] == [g for g, (i, j) in enumerate(spans) for _ in range(i, j)]
    assert found.loads.tolist() == [sum(weights[i:j]) for i, j in spans]
    assert min(found.loads.tolist()) >= k
    assert combine([cost(i, j) for i, j in spans]) == found.cost
    assert found.cuts.tolist() == [low for low, _ in found.intervals()[1:]]


@settings(deadline=None, max_examples=100)
@given(table=st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 9)), min_size=1, max_size=8), k=st.integers(1, 20))
def test_floats_are_optimal_up_to_a_bound_that_is_safe(table, k):
    values, weights = tally(table)
    assume(sum(weights) >= k)
    found = cut([v for v, _ in table], [w for _, w in table], k, "range")
    exact = [Fraction(v) for v in values]
    optimum = cheapest_cut(weights, k, costs(exact, weights)["range"][0])
    assert found.cost == pytest.approx(float(optimum), rel=1e-12, abs=1e-9)
    assert found.certificate.lower_bound >= found.cost * (1 - 1e-9)
    if any(round(v, 6) != v for v in values):  # else computed exactly, as decimal numbers
        assert Fraction(found.certificate.lower_bound) <= optimum


def test_few_decimals_are_computed_exactly():
    found = cut([0.1, 0.3, 0.7, 1.1], [2, 1, 1, 2], 3, "range")
    assert found.cost == 1.8
    assert found.certificate.optimal


def test_max_takes_the_most_intervals_among_the_best_cuts():
    assert cut(range(7), [9, 3, 3, 3, 3, 3, 9], 3, "max").loads.tolist() == [9, 3, 3, 3, 3, 3, 9]


@settings(deadline=None, max_examples=100)
@given(
    weights=st.lists(st.integers(0, 6), min_size=1, max_size=8),
    k=st.integers(1, 12),
    combine=st.sampled_from(["sum", "max"]),
    salt=st.integers(0, 1000),
)
def test_any_cost_a_user_gives(weights, k, combine, salt):
    assume(sum(weights) >= k)

    def cost(i, j):
        return math.inf if (i * 7 + j * 3 + salt) % 5 == 0 else (i * 31 + j * 17 + salt) % 23

    optimum = cheapest_cut(weights, k, cost, sum if combine == "sum" else max)
    if optimum == math.inf:
        with pytest.raises(shoal.InfeasibleError, match="forbids every cut"):
            cut(range(len(weights)), weights, k, cost, combine)
    else:
        found = cut(range(len(weights)), weights, k, cost, combine)
        assert found.cost == optimum
        assert found.certificate.lower_bound <= optimum


def test_dates_and_text_have_an_order():
    days = np.array(["2020-01-05", "2020-01-01", "2020-02-01", "2020-01-02"], dtype="datetime64[D]")
    found = cut(days, None, 2, "range")
    assert found.labels.tolist() == [1, 0, 1, 0]
    assert found.cost == 2 * 1 + 2 * 27
    assert cut(["b", "a", "d", "c"], None, 2).labels.tolist() == [0, 0, 1, 1]
    with pytest.raises(shoal.PolicyError, match="needs numbers or dates"):
        cut(["b", "a"], None, 1, "range")


@pytest.mark.parametrize(
    ("arguments", "words", "status"),
    [
        (([1, 2], [3, 4], 8), "lower k to at most 7", 3),
        (([], [], 1), "no interval of k exists; leave the column out", 3),
        (([1.0, float("nan")], None, 1), "a value is missing", 2),
        (([1, None], None, 1), "a value is missing", 2),
        ((np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), None, 1), "a value is missing", 2),
        (([1, "a"], None, 1), "no common order", 2),
        (([1, 2], [1], 1), "2 values and 1 weights", 2),
        (([1, 2], [1, -1], 1), "number 2 is negative", 2),
        (([1, 2], None, 0), "at least 1", 2),
        (([1, 2], None, 1, "sqares"), "did you mean 'squares'", 2),
        (([1, 2], None, 1, lambda i, j: -1.0), "at least 0", 2),
        (([1, 2], None, 1, lambda i, j: 1.0, "min"), "combine", 2),
        (([[1, 2]], None, 1), "2 dimensions", 2),
    ],
)
def test_refusals(arguments, words, status):
    with pytest.raises(shoal.ShoalError, match=words) as refusal:
        cut(*arguments)
    assert refusal.value.exit_status == status


@pytest.mark.parametrize("objective", ["squares", "range"])
def test_the_queue_does_not_look_at_every_pair(objective):
    """n log n, not n squared: counted on the kernel's Python text."""
    from shoal.kernels.labels import cut_cheapest

    class Counting(np.ndarray):
        reads = 0

        def __getitem__(self, at):
            Counting.reads += 1
            return super().__getitem__(at)

    n = 512
    total = np.arange(n + 1).view(Counting)
    value = (np.arange(n) ** 2 if objective == "range" else np.arange(1, n + 1)).astype(np.int64)
    cut_cheapest.py_func(total, value, value, 5, objective == "range", np.empty(n + 1, np.int64))
    assert Counting.reads < 12 * n * math.log2(n)


@settings(deadline=None, max_examples=60)
@given(
    table=st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 2**63)), min_size=1, max_size=7),
    k=st.integers(1, 2**62),
)
@example(table=[(1.9, 0)], k=1)  # as fractions of two, 1.9 - 0.1 is not 1.8
def test_floats_with_weights_beyond_64_bits_are_cut_exactly(table, k):
    table = [*table, (0.1, 2**62 + 1)]
    values, weights = tally(table)
    assume(sum(weights) >= k)
    found = cut([v for v, _ in table], [w for _, w in table], k, "range")
    few = all(round(v, 6) == v for v in values)  # decimals are what is written, other floats what they hold
    exact = [Fraction(repr(v)) if few else Fraction(v) for v in values]
    best = cheapest_cut(weights, k, lambda i, j: (exact[j - 1] - exact[i]) * sum(weights[i:j]), sum)
    assert min(found.loads.tolist()) >= k
    assert found.cost == (best if isinstance(found.cost, int) else float(best))


def test_a_cost_beyond_the_largest_float_is_refused_in_words():
    with pytest.raises(shoal.InputError, match="beyond the largest float"):
        cut([0.1, 1e149], [2**600, 2**600 + 1], 2**601 + 1, "range")


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


def test_floats_that_15_digits_merge_have_all_digits(tmp_path):
    near = [2.0**53, 2.0**53 + 2, 2.0**53 + 4, 2.0**53 + 6]
    names = ["9007199254740992.0 .. 9007199254740994.0", "9007199254740996.0 .. 9007199254740998.0"]
    assert shoal.intervals.interval_labels(near[::2], near[1::2]) == names
    assert [row[1] for row in shoal.intervals.levels(near, [1] * 4, [2])] == [n for n in names for _ in "ab"]
    table = pl.DataFrame({"v": near * 2})
    made = shoal.release(shoal.intervals.cut(table["v"], None, k=4), table, value="v")
    assert shoal.verify(tmp_path / "o.csv", made.write(tmp_path / "o.csv"), table).holds


def test_numbers_as_large_as_floats_get_have_no_range(tmp_path):
    for high, refused in ((1.7e308, True), (1e150, False)):
        table = pl.DataFrame({"v": [0.0, high, -high] * 2})
        for objective in ("max", "squares", "range"):
            if refused and objective == "range":
                for column, where in ((table["v"], "^in column 'v', o"), (table["v"].to_list(), "^o")):
                    with pytest.raises(shoal.InputError, match=f"{where}bjective 'range' needs numbers up to 1e150"):
                        cut(column, None, k=3, objective=objective)
                continue
            made = shoal.release(cut(table["v"], None, k=3, objective=objective), table, value="v")
            assert shoal.verify(tmp_path / "o.csv", made.write(tmp_path / "o.csv"), table).holds


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


def test_a_way_to_combine_costs_without_a_function_of_them_is_refused():
    with pytest.raises(shoal.PolicyError, match="combine='max' has no effect without a function as objective="):
        shoal.intervals.cut([1, 2, 3, 4], None, 2, "squares", "max")
    assert shoal.intervals.cut([1, 2, 3, 4], None, 2, lambda i, j: j - i, "max").cost == 2


@pytest.mark.parametrize("texts", [["10", "9", "2", "1"], ["007", "7", "7.0", "1e3"], ["-0", "0", "-5", "1.5"]])
def test_texts_that_are_numbers_are_cut_as_numbers(texts, tmp_path):
    for objective in ("max", "range"):
        plain = cut([float(t) for t in texts], None, 2, objective)
        for data in (pl.DataFrame({"v": texts}), pd.DataFrame({"v": texts})):
            found = cut(data["v"], None, 2, objective)
            assert (found.cost, found.labels.tolist()) == (plain.cost, plain.labels.tolist())
            shoal.release(found, data, value="v").write(tmp_path / "v.csv")
            verdict = shoal.verify(tmp_path / "v.csv", original=data, record=tmp_path / "v.record.json")
            assert {f.check: f.how for f in verdict.findings}["bound"] == "recomputed"
            assert verdict.holds


def test_levels_of_numbers_in_several_spellings():
    rows = shoal.intervals.levels([7, 7, 8, 10], [1, 1, 1, 1], [1, 2], names=["007", "7", "8", "10"])
    assert [";".join(row) for row in rows] == ["007;7;7;*", "7;7;7;*", "8;8;8 .. 10;*", "10;10;8 .. 10;*"]
    assert shoal.intervals.levels(["08", "7"], [1, 1], [1]) == [["08", "08", "*"], ["7", "7", "*"]]
    with pytest.raises(shoal.InputError, match="must all differ"):
        shoal.intervals.levels([7, 8], [1, 1], [1], names=["a", "a"])


MOMENTS = ["2020-01-01T10:00:00+02:00", "2020-01-01T09:30:00+01:00", "2020-01-01T08:00:00Z", "2021-05-05T00:00:00Z"]


def test_moments_are_in_one_order_in_every_frame(tmp_path):
    moments = [datetime.fromisoformat(text) for text in MOMENTS]
    assert cut(MOMENTS, None, 2).labels.tolist() == [0, 1, 0, 1]
    frames = [pl.DataFrame({"v": MOMENTS}), pd.DataFrame({"v": MOMENTS})]
    frames += [pl.DataFrame({"v": moments}), pd.DataFrame({"v": pd.to_datetime(MOMENTS, utc=True)})]
    for data in frames:
        found = cut(data["v"], None, 2)
        assert found.labels.tolist() == [0, 1, 0, 1]
        assert found.intervals() == cut(moments, None, 2).intervals()
        shoal.release(found, data, value="v").write(tmp_path / "v.csv")
        assert shoal.verify(tmp_path / "v.csv", original=data).holds
    with pytest.raises(shoal.InputError, match="times with a time zone and times without one"):
        cut([*MOMENTS, "2021-05-05T00:00:00"], None, 2)


def test_days_in_every_frame_have_a_range():
    days = [date(2020, 1, 1), date(2020, 1, 2), date(2020, 3, 1), date(2020, 3, 4)]
    for data in (days, pl.Series(days), pd.Series(days), [str(d) for d in days]):
        assert cut(data, None, 2, "range").cost == 2 * 1 + 2 * 3


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_the_two_zeros_are_one_value(kind, tmp_path):
    data = kind({"v": [0.0, -0.0, 1.0, 2.0]})
    found = cut(data["v"], None, 2)
    assert shoal.intervals.interval_labels(found.lows, found.highs) == ["0", "1 .. 2"]
    for made in (
        shoal.release(found, data, value="v"),
        shoal.release(shoal.labels.cover([2, 1, 1], 2), data, label="v"),
    ):
        made.write(tmp_path / "v.csv")
        assert shoal.verify(tmp_path / "v.csv", original=data).holds


def test_numbers_of_128_bits():
    data = pl.Series([10**30, 10**30 + 1, 1, 2], dtype=pl.Int128)
    assert cut(data, None, 2, "range").cost == 4


@pytest.mark.parametrize("odd", ["nan", "inf", "-Infinity"])
def test_texts_that_are_not_finite_are_no_numbers(odd):
    with pytest.raises(shoal.InputError, match=r"holds numbers, and 1 of its 3 different values are none"):
        cut(["1", "10", odd], None, 1)
    with pytest.raises(shoal.InputError, match=r"holds numbers, and 2 of its 4 different values are none"):
        cut(["1", "10", odd, f" {odd}"], None, 1)
    assert cut(["Nan", "Ann", "Bea"], None, 1).lows.tolist() == ["Ann", "Bea", "Nan"]


@pytest.mark.parametrize("objective", ["range", "own"])
def test_a_cut_whose_sums_are_rounded_holds_what_it_says(objective, tmp_path):
    data = pl.DataFrame({"v": [0.1234567891, 0.2, 0.3, 1e-9, 1e30]})
    asked = objective if objective == "range" else (lambda i, j: (j - i) / 3)
    found = cut(data["v"], None, 2, asked)
    assert found.certificate.lower_bound < found.cost
    shoal.release(found, data, value="v").write(tmp_path / "v.csv")
    for record in (None, tmp_path / "v.record.json"):
        verdict = shoal.verify(tmp_path / "v.csv", original=data, record=record)
        assert failing(verdict) == []
