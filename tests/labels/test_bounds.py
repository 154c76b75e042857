"""The instance bounds: never above the optimum, and each the only one to reach it somewhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.problems.labels import lower_bound
from shoal.problems.labels.instance import distinct, most_bins
from tests.families.labels import BOUNDS
from tests.oracles.labels import least_largest, most_groups


@pytest.mark.parametrize(("sizes", "k", "optimum", "words"), BOUNDS)
def test_where_a_bound_bites(sizes, k, optimum, words):
    assert least_largest(sizes, k) == optimum
    bound = lower_bound(np.array(sizes), k)
    assert bound.value == optimum
    assert words in bound.argument
    total = sum(sizes)
    assert max(max(sizes), k, -(-total // (total // k))) < optimum


@settings(deadline=None, max_examples=400)
@given(sizes=st.lists(st.integers(1, 15), min_size=1, max_size=7), k=st.integers(1, 30))
def test_bounds_hold(sizes, k):
    assume(sum(sizes) >= k)
    for unit in (1, 3, 10**25):
        scaled = np.array([x * unit for x in sizes], dtype=object if unit > 3 else np.int64)
        assert lower_bound(scaled, k * unit).value <= least_largest(sizes, k) * unit
    assert most_bins(*distinct(np.array(sizes)), k) >= most_groups(sizes, k)


def test_many_distinct_sizes_do_not_overflow():
    sizes = np.arange(10**12, 10**12 + 3_000_000 * 3, 3)[::-1]
    k = int(sizes.sum()) // 10
    assert lower_bound(sizes, k).value >= k
