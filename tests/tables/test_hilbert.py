"""Groups along a curve: the curve itself, eligibility, the bound, and that TP+ never loses to TP."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import LDiversity, Requirement
from shoal.model.recoding import Recoding
from shoal.problems.tables import group
from shoal.problems.tables.methods.hilbert import along_queues, best_cut, curves, hilbert_order, with_pool
from shoal.problems.tables.three_phase import residue
from tests.oracles.tables import loss_of
from tests.tables.checks import all_eligible, columns_of, forms, tables


@pytest.mark.parametrize(("d", "bits"), [(1, 3), (2, 1), (2, 3), (3, 2), (4, 2)])
def test_the_curve_visits_every_point_and_steps_to_a_neighbor(d, bits):
    points = np.array(list(product(range(1 << bits), repeat=d)))
    path = points[hilbert_order(points, bits)]
    assert len({tuple(p) for p in path}) == len(points)
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


def test_the_curve_of_many_columns_needs_more_than_one_word():
    rng = np.random.default_rng(0)
    points = rng.integers(0, 1 << 9, (50, 10))
    path = hilbert_order(points, 9)
    assert sorted(path) == list(range(50))
    padded = np.concatenate([points, points[:1]])  # equal points are neighbors
    found = hilbert_order(padded, 9).tolist()
    assert abs(found.index(0) - found.index(50)) == 1


@pytest.mark.parametrize("size", [1, 2, 4, 5, 8])
def test_cells_are_ordered_by_the_smallest_curve_that_holds_them_and_by_a_snake(size):
    """All cells of a square; a curve of the next power of two, without the cells that are not there."""
    points = np.array(list(product(range(size), repeat=2)))
    histogram = Histogram.from_rows(points)
    orders = dict(curves(histogram, Recoding.stars(histogram)))
    bits = max((size - 1).bit_length(), 1)
    whole = np.array(list(product(range(1 << bits), repeat=2)))
    path = whole[hilbert_order(whole, bits)]
    assert histogram.quasi[orders["Hilbert"]].tolist() == path[(path < size).all(axis=1)].tolist()
    snake = histogram.quasi[orders["snake"]]
    assert (np.abs(np.diff(snake, axis=0)).sum(axis=1) == 1).all()
    assert snake[0].tolist() == [0, 0]


@settings(deadline=None, max_examples=80)
@given(histogram=tables(d=2, s=0), form=forms, k=st.integers(1, 4))
def test_k_anonymity_is_the_best_cut_of_the_order(histogram, form, k):
    if histogram.rows < k:
        return
    recoding = columns_of(form, histogram.quasi_sizes)
    order = np.arange(histogram.cells)
    found = loss_of(histogram, recoding, best_cut(histogram, recoding, k, order))
    rows = np.repeat(order, histogram.count)
    best = None
    for cuts in product([0, 1], repeat=rows.size - 1):
        label = np.concatenate([[0], np.cumsum(cuts)]).astype(int)
        if np.bincount(label).min() >= k:
            cost = loss_of(histogram, recoding, Partition.of(rows, label, np.ones(rows.size, int)))
            best = cost if best is None else min(best, cost)
    assert found == pytest.approx(best)


def census(n: int, seed: int, sensitive: list[float]) -> Histogram:
    rng = np.random.default_rng(seed)
    quasi = np.stack([rng.integers(0, 20, n), rng.integers(0, 2, n), rng.integers(0, 5, n) ** 2 // 4], axis=1)
    return Histogram.from_rows(quasi, rng.choice(len(sensitive), n, p=sensitive))


@pytest.mark.parametrize("l", [2, 3, 4])
def test_three_phase_hilbert_suppresses_no_more_tuples_and_stars_less_than_three_phase(l):
    histogram = census(1500, l, [0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    plus = group(histogram, LDiversity(l), "three_phase_hilbert", seed=0)
    plain = group(histogram, LDiversity(l), "three_phase")
    stars = Recoding.stars(histogram)
    assert plus.certificate.cost < loss_of(histogram, stars, plain.partition)
    moved = int(residue(histogram, Requirement(1, (l,), (1,)))[0].sum())
    assert plus.certificate.details["rows_moved"] == moved
    mixed = stars.losses(histogram, plus.partition).sum(axis=1) > 0
    assert int(plus.partition.sizes[mixed].sum()) <= moved
    assert plus.certificate.guarantee.factor == 3  # d, after phase one or two


def test_groups_stay_near_l_rows_even_when_a_value_is_as_frequent_as_may_be():
    histogram = census(3000, 1, [0.33, 0.33, 0.17, 0.17])
    found = group(histogram, LDiversity(3), "hilbert", effort="fast", seed=0)
    assert np.median(found.partition.sizes) == 3
    assert found.partition.sizes.max() <= 12


def test_the_last_groups_take_what_the_rest_could_not_do_without():
    # Two rows of each of four values under l = 3: a group of three would leave five rows with two alike.
    histogram = Histogram.from_rows(np.arange(8), np.repeat([0, 1, 2, 3], 2))
    partition = along_queues(histogram, Requirement(1, (3,), (1,)), 0, np.arange(8))
    assert sorted(partition.sizes) == [4, 4]
    assert all_eligible(histogram, Requirement(1, (3,), (1,)), partition)


@pytest.mark.parametrize("scarce", [0.25, 0.04])
def test_a_scarce_value_is_shared_out_evenly(scarce):
    # Distinct 2-diversity where one of two values is rare: as many groups as rare rows, at most, and no huge one.
    histogram = census(2000, 2, [1 - scarce, scarce])
    need = Requirement(5, (1,), (2,))
    partition = along_queues(histogram, need, 0, np.arange(histogram.cells))
    assert all_eligible(histogram, need, partition)
    assert partition.sizes.max() <= 4 * max(5, 1 / scarce)
    assert partition.groups >= 0.8 * min(2000 / 5, 2000 * scarce)


def test_a_pool_takes_groups_until_it_is_eligible():
    histogram = Histogram.from_rows(np.arange(7), np.array([0, 0, 0, 1, 2, 1, 2]))
    pool = np.array([1, 1, 1, 0, 0, 0, 0])
    partition = Partition.of(np.array([3, 4, 5, 6]), np.array([0, 0, 1, 1]), np.ones(4, int))
    need = Requirement(1, (2,), (1,))
    found = with_pool(histogram, need, partition, pool)
    assert all_eligible(histogram, need, found)
    assert found.groups == 1


def test_more_effort_never_loses_more():
    histogram = census(800, 4, [0.2, 0.2, 0.2, 0.2, 0.2])
    costs = [
        group(histogram, LDiversity(4), "three_phase_hilbert", effort=effort, seed=1).certificate.cost
        for effort in ("fast", "balanced", "thorough")
    ]
    assert costs[0] >= costs[1] >= costs[2]
    assert group(histogram, LDiversity(4), "hilbert", effort=1e-6, seed=1).certificate.cost > 0
