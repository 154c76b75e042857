"""One column published as sets: its program against every partition there is, and what comes of it."""

from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity, LDiversity, requirement
from shoal.model.recoding import Levels, Recoding, Sets
from shoal.model.task import Task
from shoal.problems.tables import group
from shoal.problems.tables.bounds import bounds, pieces
from shoal.problems.tables.bounds.bounds import lower_bounds
from shoal.problems.tables.bounds.pieces import GROUP, Column, Program, ValueCuts
from tests.oracles.tables import least_total

some_rows = st.lists(st.integers(1, 9), min_size=1, max_size=9).filter(lambda rows: sum(rows) <= 11)


def table(rows, sensitive=None, constant=0):
    """Values of so many rows each, beside constant columns; and the task of k alone."""
    value = np.repeat(np.arange(len(rows)), rows)
    codes = np.concatenate([np.zeros((value.size, constant), np.int64), value[:, None]], axis=1)
    return Histogram.from_rows(codes, sensitive)


def asked(histogram, k):
    recoding = Recoding(tuple(Sets.of(size) for size in histogram.quasi_sizes), "ncp")
    return Task(histogram, of_models(histogram, k), recoding)


def of_models(histogram, k, *models):
    return requirement([KAnonymity(k), *models], histogram.sensitive_names, histogram)


def least_steps(rows, k):
    """The least loss over all partitions of the rows, counted in values beyond the first."""
    value = np.repeat(np.arange(len(rows)), rows).tolist()
    total = least_total(
        len(value), lambda some: len(some) * (len({value[i] for i in some}) - 1) if len(some) >= k else None
    )
    return None if total is None else int(total)


def cost_of(partition, histogram):
    steps = 0
    for g in range(partition.groups):
        here = partition.group == g
        held = np.unique(histogram.quasi[partition.cell[here], -1]).size
        steps += int(partition.count[here].sum()) * (held - 1)
    return steps


@settings(deadline=None, max_examples=120)
@given(rows=some_rows, k=st.integers(2, 6), constant=st.integers(0, 1))
@example(rows=[4, 4, 3], k=5, constant=0)  # the three rows complete two groups and a row is left
@example(rows=[9, 1, 1], k=2, constant=0)  # a value with plenty gives a row to each of the others
@example(rows=[3, 1], k=3, constant=0)  # a value that has to be broken
@example(rows=[6, 1], k=5, constant=0)  # a group with five rows or more of one value and one of another
def test_no_partition_loses_less_and_the_answer_is_one(rows, k, constant):
    best = least_steps(rows, k)
    if best is None or len(rows) < 2:
        return
    histogram = table(rows, constant=constant)
    task = asked(histogram, k)
    program = ValueCuts.of_task(task)
    assert program.program.steps <= best
    assert program.bound == pytest.approx(program.program.steps / (len(rows) - 1) / sum(rows) / (1 + constant))
    found = program.partition(task)
    if found is not None:
        assert (found.sizes >= k).all()
        assert np.array_equal(np.bincount(found.cell, weights=found.count), histogram.count)
        assert cost_of(found, histogram) >= best
    made = group(histogram, KAnonymity(k), recoding=task.recoding, seed=0, effort="fast")
    assert made.certificate.cost >= program.bound * (1 - 1e-9)


@settings(deadline=None, max_examples=150)
@given(rows=some_rows, k=st.integers(2, 4), price=st.lists(st.floats(-3, 9), min_size=6, max_size=6))
@example(rows=[9, 1, 1], k=2, price=[-1.0, 0, 0, 0, 0, 0])
@example(rows=[9, 1, 1], k=2, price=[2.0, -1.0, 0, 0, 0, 0])  # a piece of two rows costs the others more
def test_whatever_prices_say_no_partition_loses_less(rows, k, price):
    best = least_steps(rows, k)
    if best is None:
        return
    plenty = [c for c in rows if c >= pieces.PLENTY * k]
    many = Counter(c for c in rows if c < pieces.PLENTY * k)
    assert pieces.worth(np.array(price[: 2 * k - 2]), many, sum(plenty), k)[0] <= best + 1e-9


def test_values_with_plenty_give_what_they_have():
    cuts = ValueCuts.of_task(asked(table([20, 21, 1]), 5))
    left, plenty = cuts.rows.copy(), np.array([0, 1])
    assert cuts._given(left, plenty, 4, 2).tolist() == [0, 0]
    assert cuts._given(left, plenty, 4, 3).tolist() == [0, 1, 1]
    assert cuts._given(left, plenty, 4, 9).tolist() == [1, 1]
    assert left.tolist() == [8, 5, 1]


@settings(deadline=None, max_examples=60)
@given(
    k=st.integers(2, 4),
    price=st.lists(st.floats(-1, 9), min_size=6, max_size=6),
    kinds=st.sets(st.integers(1, 10), min_size=1),
)
def test_the_dearest_groups_and_the_cheapest_cuts_are_found(k, price, kinds):
    price, kinds = np.array(price[: 2 * k - 2]), sorted(kinds)
    sizes = range(1, 2 * k - 1)
    worst, cuts = 0.0, {c: 0.0 if c >= k else np.inf for c in kinds}
    for number in range(1, 2 * k):
        for some in combinations_with_replacement(sizes, number):
            if k <= sum(some) < 2 * k:
                worst = max(worst, sum(price[e - 1] for e in some) - sum(some) * (number - 1))
    for number in range(1, max(kinds) + 1):
        for some in combinations_with_replacement(sizes, number):
            for c in kinds:
                if sum(some) == c or c - sum(some) >= k:
                    cuts[c] = min(cuts[c], sum(price[e - 1] for e in some))
    excess, dear = pieces.most_violated_groups(price, k)
    assert excess == pytest.approx(worst, abs=1e-9)
    assert all(column.of == GROUP and k <= sum(column.pieces) < 2 * k for column in dear)
    if excess > 1e-6:
        assert max(sum(price[e - 1] for e in some) - sum(some) * (len(some) - 1) for _, some in dear) == pytest.approx(
            excess
        )
    least, cheap = pieces.cheapest_cuts(price, kinds, k)
    assert least == pytest.approx([cuts[c] for c in kinds])
    for (of, cut), c, worth in zip(cheap, kinds, least, strict=True):
        assert of == c
        assert sum(cut) == c or c - sum(cut) >= k
        assert sum(price[e - 1] for e in cut) == pytest.approx(worth)


@pytest.mark.parametrize(
    ("rows", "k", "steps"),
    [
        ([1] * 500, 5, 2000),  # groups of five values
        ([2] * 300, 5, 1200),  # three values of two rows
        ([3] * 100 + [2] * 100, 5, 500),  # one of each
        ([4] * 300 + [3] * 100, 5, 1500),  # values of three rows broken in three
        ([50] + [1] * 20, 5, 80),  # a value with plenty stays alone
    ],
)
def test_it_is_the_optimum_where_groups_come_out_even(rows, k, steps):
    histogram = table(rows)
    made = group(histogram, KAnonymity(k), recoding=asked(histogram, k).recoding, seed=0)
    assert made.certificate.cost * sum(rows) * (len(rows) - 1) == pytest.approx(steps)
    assert made.certificate.lower_bound == pytest.approx(made.certificate.cost)
    assert made.certificate.bound.startswith("pieces")


@pytest.mark.parametrize("k", [2, 3, 5, 10, 20])
def test_values_whose_shares_fall_lose_little_more_than_is_proved(k):
    draw = np.random.default_rng(5)
    share = 1 / np.arange(1, 2001)
    rows = np.unique(draw.choice(2000, 2000, p=share / share.sum()), return_counts=True)[1]
    histogram = table(rows.tolist())
    task = asked(histogram, k)
    program = ValueCuts.of_task(task)
    found = program.partition(task)
    assert (found.sizes >= k).all()
    assert np.array_equal(np.bincount(found.cell, weights=found.count), histogram.count)
    assert program.program.steps <= cost_of(found, histogram) <= 1.01 * program.program.steps


def test_it_holds_beside_sensitive_values_and_for_other_methods():
    rows = [1] * 40
    sensitive = np.arange(40)[:, None] % 4
    histogram = table(rows, sensitive)
    recoding = Recoding((Sets.of(40),), "ncp")
    need = of_models(histogram, 5, LDiversity(2))
    found = lower_bounds(Task(histogram, need, recoding), cost=160 / 39 / 40)
    assert found.values == {"pieces": pytest.approx(160 / 39 / 40), "least steps": pytest.approx(1 / 39)}
    made = group(histogram, [KAnonymity(5), LDiversity(2)], "three_phase", recoding=recoding, seed=0)
    assert made.certificate.lower_bound >= 160 / 39 / 40 * (1 - 1e-9)


def test_many_values_under_l_diversity_are_bounded_without_a_look_at_pairs(monkeypatch):
    """Most values have rows that are no group by themselves; these rows lose a second value each, and that is all."""
    draw = np.random.default_rng(1)
    rows = np.stack([draw.integers(0, 500, 2000), draw.integers(0, 20, 2000)], axis=1)
    histogram = Histogram.from_rows(rows[:, :1], rows[:, 1:])
    held = np.zeros((500, 20), int)
    np.add.at(held, (rows[:, 0], rows[:, 1]), 1)
    alone = np.maximum(2 * held.max(axis=1) - held.sum(axis=1), 0).sum()  # more than half of their value's rows
    recoding = Recoding((Sets.of(histogram.quasi_sizes[0]),), "ncp")
    monkeypatch.setattr(bounds, "without_lattice", None)  # boxes and near cells
    made = group(histogram, [LDiversity(2)], recoding=recoding, effort="fast", seed=0).certificate
    assert made.bound.startswith("least steps")
    assert made.lower_bound == pytest.approx(alone / (histogram.quasi_sizes[0] - 1) / 2000)
    assert made.cost <= 1.15 * made.lower_bound


def test_other_tables_have_no_such_program():
    two = Histogram.from_rows(np.array([[0, 0], [1, 1], [2, 2]]))
    assert ValueCuts.of_task(asked(two, 2)) is None
    one = table([1, 1, 1])
    tree = Recoding((Levels.stars(3),), "stars")
    assert ValueCuts.of_task(Task(one, of_models(one, 2), tree)) is None
    assert ValueCuts.of_task(asked(one, 1)) is None
    assert ValueCuts.of_task(asked(table([1] * 50), pieces.LARGEST + 1)) is None


def test_columns_of_a_program_are_what_they_say():
    program = Program.of(np.array([1, 2, 3, 4, 6, 30]), 5)
    assert len(set(program.columns)) == len(program.columns)
    for of, some in program.columns:
        assert all(0 < e <= 8 for e in some)
        if of == GROUP:
            assert 5 <= sum(some) < 10
        else:
            assert sum(some) == of or of - sum(some) >= 5 or (of == 0 and len(some) == 1)
    assert Counter(column.of for column in program.columns)[0] == 8
    assert Column(0, (1,)) in program.columns
