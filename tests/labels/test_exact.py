"""The exhaustive search: perfect packings are found, limits are told, bounds stay bounds."""

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import shoal
from shoal.kernels.labels import walk
from shoal.problems.labels.balance import Budget, list_fillings, search
from shoal.problems.labels.instance import Bound, instance
from tests.families.labels import three_partition
from tests.oracles.labels import least_largest

cover = shoal.labels.cover


@pytest.mark.parametrize("total", [100, 1000, 10**6, 10**15])
def test_three_partition_with_a_known_yes(total):
    sizes = three_partition(20, total, seed=5)
    found = cover(sizes, total, "exact", effort=60)
    assert set(found.loads.tolist()) == {total}
    assert found.certificate.optimal
    assert found.certificate.guarantee.factor == 1


@settings(deadline=None, max_examples=150)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=7),
    k=st.integers(1, 25),
    fillings=st.sampled_from([0, 5, 4000]),
)
@example(sizes=[1, 2, 3, 4, 5, 6], k=11, fillings=4000)  # HiGHS 1.15 with presolve ends this one in an error
def test_both_searches_find_the_optimum_from_the_worst_start(sizes, k, fillings):
    assume(sum(sizes) >= k)
    ordered = instance(sizes, k)
    limits = Budget(fillings=max(fillings, 1), steps=10**6, nodes=None, seconds=None)
    label, bound, stopped = search(ordered, np.zeros(len(sizes), np.int64), Bound(k, "k"), limits)
    assert stopped is None
    assert ordered.cost(label) == bound.value == least_largest(sizes, k)
    assert min(ordered.loads(label, int(label.max()) + 1).tolist()) >= k


@settings(deadline=None, max_examples=60)
@given(sizes=st.lists(st.integers(1, 12), min_size=2, max_size=7), k=st.integers(1, 25), steps=st.integers(1, 60))
def test_a_search_cut_short_claims_only_what_it_proved(sizes, k, steps):
    assume(sum(sizes) >= k)
    ordered = instance(sizes, k)
    limits = Budget(fillings=1, steps=steps, nodes=None, seconds=None)
    label, bound, stopped = search(ordered, np.zeros(len(sizes), np.int64), Bound(k, "k"), limits)
    optimum = least_largest(sizes, k)
    assert bound.value <= optimum <= ordered.cost(label)
    assert (stopped is None) == (bound.value == ordered.cost(label))


@settings(deadline=None, max_examples=100)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=8), low=st.integers(1, 20), more=st.integers(0, 6))
def test_fillings_are_all_the_sums_in_range(sizes, low, more):
    ordered = instance(sizes, 1)
    values, counts = np.unique(ordered.sizes, return_counts=True)
    ways = list_fillings(ordered, values[::-1], counts[::-1], low + more, 5000)
    expected = {()}
    for value, count in zip(values[::-1].tolist(), counts[::-1].tolist(), strict=True):
        expected = {way + (value,) * c for way in expected for c in range(count + 1)}
    expected = {way for way in expected if 1 <= sum(way) <= low + more}
    spans = zip(ways.start[:-1], ways.start[1:], strict=True)
    found = [tuple(np.repeat(values[::-1][ways.kind[a:b]], ways.times[a:b]).tolist()) for a, b in spans]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert ways.loads.tolist() == [sum(way) for way in found]


@settings(deadline=None, max_examples=80)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=10), high=st.integers(9, 20), seed=st.integers(0, 99))
def test_a_walk_keeps_the_books(sizes, high, seed):
    ordered = instance(sizes, 1)
    values, counts = np.unique(ordered.sizes, return_counts=True)
    values, counts = values[::-1].copy(), counts[::-1].copy()
    ways = list_fillings(ordered, values, counts, high, 5000)
    often = np.zeros(len(ways.loads), np.int64)
    unused = walk(ways.start, ways.kind, ways.times, counts, np.random.default_rng(seed), 30, often)
    used = np.zeros(len(values), np.int64)
    np.add.at(used, ways.kind, ways.times * np.repeat(often, np.diff(ways.start)))
    assert (used <= counts).all()
    assert unused == (counts - used).sum()


def test_a_time_limit_is_told_and_the_answer_stands():
    sizes = [x * 10**9 + x**3 % 10**7 for x in range(1000, 1060)]
    found = cover(sizes, sum(sizes) // 20 - 10**9, "exact", effort=0.05)
    assert found.anonymous
    assert "stopped" in found.certificate.details or found.certificate.optimal
    assert found.certificate.guarantee.factor == (2.5 if "stopped" in found.certificate.details else 1)
