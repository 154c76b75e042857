"""Pairs of two sensitive values: equal to the exhaustive optimum, proved so, and refused where they are no answer."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.recoding import Levels, RangeGrid, Ranges, Recoding, Sets
from shoal.problems.tables import group
from shoal.problems.tables.losses import pair_losses, whole_losses
from tests.tables.checks import all_eligible, columns_of, least_loss

TWO = Requirement(1, (2,), (1,))


def balanced(rows: list[tuple[int, int]], other: int = 0) -> Histogram:
    """Half of the rows with either sensitive value; a second sensitive column of which nothing is asked."""
    half = len(rows) // 2
    sensitive = np.stack([np.repeat([0, 1], half), np.arange(2 * half) % (other + 1)], axis=1)
    return Histogram.from_rows(np.array(rows[: 2 * half]), sensitive)


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=8)


@pytest.mark.parametrize("form", ["stars", "tree", "set", "range"])
def test_equals_an_assignment_of_all_rows_at_a_size_no_oracle_reaches(form):
    rng = np.random.default_rng(5)
    rows = np.stack([rng.integers(0, 9, 500), rng.integers(0, 3, 500) ** 2, rng.integers(0, 6, 500)], axis=1)
    sensitive = np.repeat([0, 1], 250)
    histogram = Histogram.from_rows(rows, np.stack([sensitive, rng.integers(0, 3, 500)], axis=1))
    recoding = columns_of(form, histogram.quasi_sizes)
    found = group(histogram, Requirement(2, (2, 1), (2, 1)), "matching", recoding=recoding)
    assert all_eligible(histogram, Requirement(2, (2, 1), (2, 1)), found.partition)
    loss = pair_losses(recoding, rows[:250], rows[250:])
    best = 2 * loss[linear_sum_assignment(loss)].sum()
    assert found.certificate.cost == pytest.approx(best if form == "stars" else best / 1500)
    assert float(found.certificate.ratio) == pytest.approx(1, abs=1e-6)


def test_pair_losses_are_what_the_recoding_charges():
    rng = np.random.default_rng(2)
    columns = (
        Levels.tree(np.stack([np.arange(6), np.arange(6) // 2, np.zeros(6, int)]), weight=2.0),
        Ranges.of(np.array([0.0, 1, 5, 7])),
        Ranges.of(
            np.array([0.0, 1, 5, 7]),
            0.4,
            RangeGrid(np.array([-2.0, 3, 8]), np.array([0, 0, 1, 1]), np.array([1, 1, 2, 2])),
        ),
        Sets.of(5),
        Levels.stars(3, weight=0.5),
    )
    codes = np.stack([rng.integers(0, c.size, 8) for c in columns], axis=1)
    loss = pair_losses(Recoding(columns), codes[:4], codes[4:])
    whole = whole_losses(Recoding(columns))
    assert whole.exact
    assert pair_losses(Recoding(columns), codes[:4], codes[4:], whole) / whole.scale == pytest.approx(loss)
    from shoal.model.histogram import Partition

    for i in range(4):
        for j in range(4):
            both = Histogram.from_rows(codes[[i, 4 + j]])
            whole = Partition.of(np.arange(both.cells), np.zeros(both.cells), both.count)
            assert loss[i, j] == pytest.approx(Recoding(columns).losses(both, whole).sum())


ages = Ranges.of(np.array([17.0, 18, 23.5, 40.25]), weight=0.3)
gains = Ranges.of(np.array([0.0, 601.37, 99999]), weight=1 / 3)
thirds = Levels.tree(np.array([[0, 1, 2, 3], [0, 0, 0, 1], [0, 0, 0, 0]]), weight=0.7)


@settings(deadline=None, max_examples=60)
@given(rows=pairs, first=st.sampled_from([ages, thirds, Sets.of(4, 0.1)]), wide=st.booleans())
def test_ranges_and_fractional_weights_are_proved_optimal(rows, first, wide):
    histogram = balanced(rows)
    assume(histogram.quasi_sizes == (4, 3))
    recoding = Recoding((first, gains if wide else Levels.stars(3, 2.5)))
    found = group(histogram, Requirement(1, (2, 1), (1, 1)), "matching", recoding=recoding)
    assert found.certificate.optimal
    assert found.certificate.cost == pytest.approx(least_loss(histogram, Requirement(1, (2, 1), (1, 1)), recoding))


def test_whole_numbers_are_the_losses_and_one_denominator_serves_all_columns():
    recoding = Recoding((ages, thirds, Sets.of(4, 0.1), gains))
    codes = np.array(np.meshgrid(range(4), range(4), range(4), range(3))).reshape(4, -1).T[::7]
    whole = whole_losses(recoding)
    assert whole.exact
    assert whole.most > 2**30  # these need 64 bits
    exact = pair_losses(recoding, codes, codes, whole)
    assert exact.dtype == np.int64
    assert exact / whole.scale == pytest.approx(pair_losses(recoding, codes, codes))
    assert exact.max() <= whole.most
    # 18 and 23.5 years: 5.5 of 23.25, times 0.3
    one = pair_losses(Recoding((ages,)), np.array([[1]]), np.array([[2]]), whole_losses(Recoding((ages,))))
    assert Fraction(int(one[0, 0]), whole_losses(Recoding((ages,))).scale) == Fraction(22, 93) * Fraction(3, 10)


def test_digits_without_end_are_rounded_and_the_bound_says_so():
    rng = np.random.default_rng(3)
    histogram = balanced([(i % 40, (7 * i) % 31) for i in range(80)])
    columns = tuple(Ranges.of(np.sort(rng.random(n))) for n in histogram.quasi_sizes)
    assert not whole_losses(Recoding(columns)).exact
    found = group(histogram, Requirement(1, (2, 1), (1, 1)), "matching", recoding=Recoding(columns)).certificate
    assert 0 < found.cost - found.lower_bound < 1e-7
    small = whole_losses(Recoding((ages, thirds, gains)), 2**28)  # what a large table has room for
    assert (small.exact, small.most) == (False, 2**30)


@settings(deadline=None, max_examples=30)
@given(rows=pairs)
def test_weights_and_a_time_limit_keep_the_bound_below_the_optimum(rows):
    histogram = balanced(rows)
    assume(histogram.cells > 1)
    columns = tuple(Levels.stars(n, weight=w) for n, w in zip(histogram.quasi_sizes, (2.0, 0.25), strict=True))
    found = group(histogram, Requirement(1, (2, 1), (1, 1)), "matching", recoding=Recoding(columns), effort=1e-9)
    best = least_loss(histogram, Requirement(1, (2, 1), (1, 1)), Recoding(columns))
    assert found.certificate.lower_bound <= best + 1e-12 <= found.certificate.cost + 2e-12
