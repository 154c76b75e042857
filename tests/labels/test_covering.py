"""Every method against every partition: feasible, within its theorem, bound never above the optimum.

The instance bounds: never above the optimum, and each the only one to reach it somewhere.
"""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.problems.catalogue import names
from shoal.problems.labels import lower_bound
from shoal.problems.labels.approximations import five_halves_labels, three_parts
from shoal.problems.labels.instance import distinct, instance, most_bins
from tests.families.labels import BOUNDS, CASES, nearly_full
from tests.oracles.labels import least_largest, loads_of, most_groups

METHODS = ["auto", *names("labels")]
SIZES = st.lists(st.integers(0, 14), min_size=1, max_size=7)
cover = shoal.labels.cover


def check(found: shoal.labels.Cover, sizes: list[int]) -> None:
    """Labels, loads, bins and certificate tell the same story."""
    loads = loads_of(sizes, found.labels.tolist())
    assert found.loads.tolist() == loads
    assert found.cost == max(loads) == found.certificate.cost
    bins = found.bins()
    assert sorted(i for inside in bins for i in inside.tolist()) == list(range(len(sizes)))
    assert [sum(sizes[i] for i in inside) for inside in bins] == loads
    assert [int(inside[0]) for inside in bins] == sorted(int(inside[0]) for inside in bins)


@settings(deadline=None, max_examples=100)
@given(sizes=SIZES, k=st.integers(1, 25))
def test_auto_is_never_worse_than_the_greedy_methods(sizes, k):
    assume(sum(sizes) >= k)
    others = min(cover(sizes, k, method).cost for method in ("fold", "spread", "five_halves"))
    assert cover(sizes, k).cost <= others


@pytest.mark.parametrize(("sizes", "k", "cost", "case"), CASES, ids=[case for *_, case in CASES])
def test_each_case_of_theorem_9(sizes, k, cost, case):
    assert cover(sizes, k, "five_halves").cost == cost


@pytest.mark.parametrize("k", [11, 101, 1001])
def test_the_family_on_which_the_factors_3_and_5_halves_are_approached(k):
    sizes, optimum = nearly_full(k)
    assert cover(sizes, k, "exact").cost == optimum
    assert cover(sizes, k, "fold").cost == 3 * k - 3
    assert cover(sizes, k, "spread").cost == cover(sizes, k, "five_halves").cost == 2 * k
    ordered = instance(sizes, k)
    assert ordered.cost(five_halves_labels(ordered, "thirds")) == 2 * k - 2 + k // 2


@settings(deadline=None, max_examples=200)
@given(sizes=st.lists(st.integers(1, 50), max_size=20), k=st.integers(1, 100))
def test_lemma_8(sizes, k):
    sizes = [x for x in sizes if 2 * x <= k]
    while sum(sizes) > k:
        sizes.pop()
    parts = three_parts(sizes, k)
    for part in range(3):
        assert 2 * sum(x for x, p in zip(sizes, parts, strict=True) if p == part) <= k


@pytest.mark.parametrize("method", ["fold", "spread"])
def test_orders(method):
    sizes = [1, 9, 1, 8, 1, 7, 5, 5]
    given_order = cover(sizes, 10, method, order="given")
    assert given_order.labels.tolist()[:2] == [0, 0]
    random = [cover(sizes, 10, method, order="random", seed=seed).labels.tolist() for seed in (1, 1, 2)]
    assert random[0] == random[1] != random[2]
    with pytest.raises(shoal.PolicyError, match="did you mean 'sorted'"):
        cover(sizes, 10, method, order="sort")


def test_items_of_k_or_more_stand_alone_in_the_greedy_methods():
    assert cover([3, 12, 10, 4, 4], 10, "fold").loads.tolist() == [11, 12, 10]


def test_fold_merges_its_leftover_into_the_least_loaded_bin():
    assert cover([9, 9, 5, 5, 4], 10, "fold", order="given").loads.tolist() == [18, 14]


def test_zeros_are_dealt_out_and_change_nothing():
    found = cover([0, 5, 0, 0, 5, 0], 5)
    assert found.loads.tolist() == [5, 5]
    assert np.bincount(found.labels).tolist() == [3, 3]


@pytest.mark.parametrize(("sizes", "k"), [([], 1), ([0, 0], 1), ([3, 4], 8)])
@pytest.mark.parametrize("method", METHODS)
def test_a_total_below_k_is_infeasible(method, sizes, k):
    with pytest.raises(shoal.ShoalError, match=r"no group of k exists; (lower k|leave)") as refusal:
        cover(sizes, k, method)
    assert refusal.value.exit_status == 3


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ([1, -2], "size number 2 is negative"),
        ([1, 2.5], "size number 2 is not a whole number"),
        ([1, float("nan")], "size number 2 is not a whole number"),
        (np.array([1.0, np.inf]), "size number 2 is not a whole number"),
        (["a"], "size number 1 is not a whole number"),
        ([1, None], "size number 2 is not a whole number"),
        ([[1, 2]], "2 dimensions"),
    ],
)
def test_sizes_that_are_no_counts(sizes, words):
    with pytest.raises(shoal.InputError, match=words):
        cover(sizes, 1)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_k_that_is_no_threshold(k):
    with pytest.raises(shoal.PolicyError, match=r"k=.*: a whole number"):
        cover([3, 4], k)


def test_an_unknown_method_names_the_nearest():
    with pytest.raises(shoal.PolicyError, match="did you mean 'spread'"):
        cover([3, 4], 2, "spred")


def test_floats_and_frames_of_whole_numbers_are_counts():
    assert cover(np.array([3.0, 4.0]), 3).loads.tolist() == [3, 4]
    assert cover((x for x in (3, 4)), 3).loads.tolist() == [3, 4]
    assert cover(np.array([3, 4], dtype=np.uint8), 3).loads.dtype == np.int64


@pytest.mark.parametrize("method", ["auto", "exact", "fold"])
@pytest.mark.parametrize("wrong", [{"epsilon": 2}, {"epsilon": "x"}])
def test_settings_that_are_none_are_refused_by_every_method(method, wrong):
    with pytest.raises(shoal.PolicyError, match=rf"{next(iter(wrong))}[= ]"):
        shoal.labels.cover([5, 4, 3, 3], 5, method, **wrong)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"method": "five_halves", "order": "given"}, "order='given' has no effect without method='fold' or method="),
        ({"order": "random", "seed": 3}, "order='random' has no effect without method='fold' or method='spread'; say "),
        ({"method": "fold", "seed": 3}, "seed=3 has no effect without order='random'; say that too, or leave it out"),
        ({"method": "exact", "epsilon": 0.1}, "epsilon=0.1 has no effect without method='scheme' or method='bicrit"),
    ],
)
def test_a_setting_that_nothing_reads_is_refused(asked, words):
    with pytest.raises(shoal.PolicyError, match=words):
        cover([5, 4, 3, 3], 5, **asked)


def test_a_seed_is_stated_where_the_order_is_random():
    runs = [cover([5, 4, 3, 3], 5, "fold", order=order).certificate.details["run"] for order in ("sorted", "random")]
    assert runs[0]["seed"] is None
    assert runs[1]["seed"] >= 0


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
