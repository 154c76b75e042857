"""Theorems 10 and 11: preprocessing, types counted once, and refusals that name their number."""

from itertools import combinations_with_replacement, product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.problems.labels.approximations import types_of_bins
from tests.oracles.labels import least_largest

cover = shoal.labels.cover


@pytest.mark.parametrize(
    ("sizes", "k", "cost"),
    [
        ([35, 6, 5, 4, 3], 10, 35),  # small items fill a bin, one item is three times k: Fold
        ([25, 12, 3, 2, 1], 10, 25),  # they do not, and the oversize items differ by k: all to the least
        ([19, 12, 5, 4], 10, 21),  # they do not, and the oversize items are close: shifted down, searched, shifted back
        ([6000019, 6000012, 5, 4], 10, 6000021),
        ([10, 10, 4, 4], 10, 14),
    ],
)
def test_the_preprocessing_is_optimal_or_loses_nothing(sizes, k, cost):
    assert least_largest(sizes, k) == cost
    assert cover(sizes, k, "scheme", epsilon=0.25).cost == cost


@settings(deadline=None, max_examples=80)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    big=st.lists(st.integers(10, 40), max_size=2),
    k=st.integers(5, 12),
    epsilon=st.sampled_from([1, 0.7, 0.3]),
)
def test_theorem_10_for_several_epsilon(sizes, big, k, epsilon):
    sizes = sizes + big
    assume(sum(sizes) >= k)
    found = cover(sizes, k, "scheme", epsilon=epsilon)
    assert min(found.loads) >= k
    assert found.cost <= (1 + epsilon) * (least_largest(sizes, k) + k) + 1e-9
    assert found.certificate.guarantee.additive == pytest.approx((1 + epsilon) * k)


@settings(deadline=None, max_examples=80)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=7),
    k=st.integers(5, 20),
    epsilon=st.sampled_from([0.9, 0.4]),
)
def test_theorem_11_for_several_epsilon(sizes, k, epsilon):
    assume(sum(sizes) >= k)
    found = cover(sizes, k, "bicriteria", epsilon=epsilon)
    assert min(found.loads) >= (1 - epsilon) * k
    assert found.cost <= (1 + epsilon) * least_largest(sizes, k) + 1e-9
    assert "not k-anonymous, not a release" in found.certificate.details["warning"]


def test_bicriteria_may_leave_bins_short_and_says_so():
    found = cover([9, 9, 9], 10, "bicriteria", epsilon=0.5)
    assert found.loads.tolist() == [9, 9, 9]
    assert not found.anonymous
    assert found.certificate.details["k_anonymous"] is False


def test_types_are_met_once_each():
    ways = sorted((way for way in product(range(3), range(3)) if 0 < sum(way) <= 2), reverse=True)
    found = [tuple(sorted(chosen)) for chosen in types_of_bins([3, 4], ways, 5)]
    expected = {
        tuple(sorted(chosen))
        for bins in range(6)
        for chosen in combinations_with_replacement(ways, bins)
        if [sum(part) for part in zip(*chosen, strict=True)] == [3, 4]
    }
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("method", ["scheme", "bicriteria"])
def test_a_refusal_names_the_number_of_types(method):
    sizes = list(range(40, 100))
    with pytest.raises(shoal.PolicyError, match=r"there are (about|at most) \S+ types to look at"):
        cover(sizes, 100, method, epsilon=0.3)
    with pytest.raises(shoal.PolicyError, match=r"there are at most 10\^\d+ types"):
        cover(range(1, 200), 100, method, epsilon=0.05)


@pytest.mark.parametrize("epsilon", [0, -1, 1.5, float("nan"), "x"])
def test_epsilon_out_of_range(epsilon):
    with pytest.raises(shoal.PolicyError, match="above 0 and at most 1"):
        cover([5, 6], 5, "scheme", epsilon=epsilon)
    with pytest.raises(shoal.PolicyError, match="empty groups"):
        cover([5, 6], 5, "bicriteria", epsilon=1)
