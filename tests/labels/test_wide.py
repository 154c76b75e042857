"""Sizes in binary: 10**15 in 64 bits, and beyond them in Python integers, through the same code."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from tests.labels.test_covering import METHODS, check
from tests.oracles.labels import least_largest

cover = shoal.labels.cover


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unit", [10**15, 10**30])
def test_a_common_factor_changes_only_the_unit(method, unit):
    sizes, k = [9, 7, 6, 6, 5, 3, 3, 2, 1, 0], 10
    small = cover(sizes, k, method)
    large = cover([x * unit for x in sizes], k * unit, method)
    assert large.cost == small.cost * unit
    check(large, [x * unit for x in sizes])


@pytest.mark.parametrize("method", METHODS)
@settings(deadline=None, max_examples=25)
@given(
    sizes=st.lists(st.integers(0, 10**6), min_size=1, max_size=6),
    k=st.integers(1, 2 * 10**6),
    shift=st.sampled_from([0, 30, 60, 90]),
)
def test_binary_sizes_against_every_partition(method, sizes, k, shift):
    sizes = [(x << shift) + x % 7 for x in sizes]
    k = (k << shift) + k % 5
    assume(sum(sizes) >= k)
    found = cover(sizes, k, method)
    check(found, sizes)
    optimum = least_largest(sizes, k)
    promise = found.certificate.guarantee
    if method == "bicriteria":
        assert 2 * min(found.loads.tolist()) >= k
        assert 2 * found.cost <= 3 * optimum
    else:
        assert min(found.loads.tolist()) >= k
        assert found.certificate.lower_bound <= optimum <= found.cost
        assert found.cost <= int(promise.factor * 2) * optimum // 2 + int(promise.additive * 1.000001)
    if method == "exact":
        assert found.certificate.optimal


def test_the_last_unit_of_large_numbers_counts():
    unit = 10**15
    assert cover([unit, unit, unit - 1, 1], unit, "exact").loads.tolist() == [unit] * 3
    assert cover([unit, unit, unit - 1, 1], unit + 1, "exact").cost == 2 * unit - 1
    assert cover([unit, unit, unit - 1], unit, "exact").cost == 2 * unit - 1
    assert cover([10**40, 10**40 + 1, 10**40 - 1, 1], 10**40, "exact").cost == 10**40 + 1
