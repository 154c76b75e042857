"""Many k at once: the shared packings serve every k they are said to serve."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.kernels.labels import overfull
from tests.labels.test_covering import cover
from tests.oracles.labels import least_largest, loads_of

COUNTS = np.maximum(3000 / np.arange(1, 400) ** 1.1, 0).astype(np.int64)


def test_every_k_is_answered_and_proved():
    found = shoal.labels.sweep(COUNTS)
    total, largest = int(COUNTS.sum()), int(COUNTS.max())
    assert found.ks.tolist() == list(range(largest, total // 2 + 1))
    assert found.optimal.all()
    assert len(found.packings) <= total // largest
    loads = [np.bincount(labels, weights=COUNTS) for labels in found.packings]
    for k, cost, which in zip(found.ks, found.costs, found.packing, strict=True):
        assert loads[which].min() >= k
        assert loads[which].max() == cost


@settings(deadline=None, max_examples=60)
@given(sizes=st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_every_k_there_is_against_every_partition(sizes):
    assume(sum(sizes) >= 1)
    ks = range(1, sum(sizes) + 1)
    found = shoal.labels.sweep(sizes, ks)
    for k, cost, bound, which in zip(ks, found.costs, found.lower_bounds, found.packing, strict=True):
        loads = loads_of(sizes, found.packings[which].tolist())
        assert min(loads) >= k
        assert max(loads) == cost
        assert bound <= least_largest(sizes, k) <= cost


def test_a_k_that_the_total_cannot_fill_is_refused():
    with pytest.raises(shoal.InfeasibleError):
        shoal.labels.sweep([3, 4], [5, 8])


@pytest.mark.parametrize("order", ["sorted", "given"])
def test_the_fast_figures_are_those_of_fold_and_spread(order):
    sizes = COUNTS if order == "sorted" else np.random.default_rng(1).permutation(COUNTS)
    ks = np.arange(3001, int(COUNTS.sum()) // 2, 97)
    bins, fold, spread = (np.empty(len(ks), np.int64) for _ in range(3))
    overfull(sizes, ks, bins, fold, spread)
    assert fold.tolist() == [cover(sizes, k, "fold", order=order).cost for k in ks.tolist()]
    assert spread.tolist() == [cover(sizes, k, "spread", order=order).cost for k in ks.tolist()]
    assert bins.tolist() == [len(cover(sizes, k, "fold", order=order).loads) for k in ks.tolist()]
