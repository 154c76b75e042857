"""Mondrian: eligible for every requirement, as far as its rule goes, and no worse than leaving groups whole."""

import numpy as np
import pytest

from shoal.model.histogram import Histogram
from shoal.model.privacy import DistinctLDiversity, KAnonymity, LDiversity
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.problems.tables import group
from tests.tables.checks import columns_of
from tests.tables.drawn import TREE


@pytest.mark.parametrize("form", ["range", "set"])
def test_different_values_in_one_column_end_in_groups_under_twice_k(form):
    histogram = Histogram.from_rows(np.arange(30))
    recoding = columns_of(form, (30,))  # as sets any two rows are as far apart, and a bound takes long
    sizes = group(histogram, KAnonymity(7), "mondrian", recoding=recoding, effort="fast").partition.sizes
    assert sizes.min() >= 7
    assert sizes.max() <= 13


def test_a_median_on_the_highest_value_cuts_below_it():
    histogram = Histogram.from_rows(np.array([0, 0, 1, 1, 1, 1, 1]))
    found = group(histogram, KAnonymity(2), "mondrian", recoding=Recoding((Ranges.of(np.arange(2)),)))
    assert sorted(found.partition.sizes) == [2, 5]
    assert found.certificate.cost == 0


def test_on_a_hierarchy_small_children_stay_together_and_large_ones_leave():
    # Children 0 and 1 under one parent are too few; 2 under the other is enough.
    histogram = Histogram.from_rows(np.array([0, 0, 1, 2, 2, 2, 3, 3, 3]))
    found = group(histogram, KAnonymity(3), "mondrian", recoding=Recoding((Levels.tree(TREE),)))
    assert found.partition.groups == 3
    assert found.certificate.cost == pytest.approx(3 * (1 / 3) / 9)


def test_a_rest_that_is_too_small_takes_the_smallest_good_part_along():
    histogram = Histogram.from_rows(np.array([0, 1, 1, 1, 2, 2, 2, 2]))
    found = group(histogram, KAnonymity(3), "mondrian")
    assert sorted(found.partition.sizes) == [4, 4]
    assert found.certificate.cost == 4


def test_a_group_whose_rest_cannot_be_mended_is_left_whole():
    # Value 0 of the column has three rows of one disease; with the two of value 1 that is still four of five.
    quasi = [0] * 3 + [1] * 2 + [2] * 7
    disease = [0, 0, 0, 0, 1, 1, 2, 1, 2, 1, 2, 0]
    histogram = Histogram.from_rows(np.array(quasi), np.array(disease))
    assert group(histogram, LDiversity(2), "mondrian").partition.groups == 1


def test_ranges_lose_much_less_than_one_group():
    rng = np.random.default_rng(0)
    quasi = np.stack([rng.integers(0, 70, 1000), rng.integers(0, 2, 1000), rng.integers(0, 16, 1000)], axis=1)
    histogram = Histogram.from_rows(quasi, rng.integers(0, 5, 1000))
    recoding = columns_of("range", histogram.quasi_sizes)
    asked = [KAnonymity(5), LDiversity(3), DistinctLDiversity(3)]
    assert group(histogram, asked, "mondrian", recoding=recoding, effort="fast").certificate.cost < 0.2
