"""The loops under auto, each by what it promises."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from shoal.kernels.labels import fill, pour, rebalance
from shoal.problems.labels.balance import balanced
from shoal.problems.labels.instance import instance

SIZES = st.lists(st.integers(1, 30), min_size=1, max_size=25)


@settings(deadline=None, max_examples=150)
@given(sizes=SIZES, start=st.lists(st.integers(0, 20), min_size=1, max_size=6), limit=st.integers(-1, 60))
def test_pour_always_takes_a_least_loaded_bin(sizes, start, limit):
    level, label = np.array(start), np.empty(len(sizes), np.int64)
    placed = pour(np.array(sizes), level, label, limit)
    loads = list(start)
    for size, b in zip(sizes[:placed], label[:placed].tolist(), strict=True):
        assert loads[b] == min(loads)
        loads[b] += size
        assert limit < 0 or loads[b] <= limit
    assert loads == level.tolist()
    assert placed == len(sizes) or min(loads) + sizes[placed] > limit >= 0


@pytest.mark.parametrize("pairs", [False, True])
@settings(deadline=None, max_examples=80)
@given(sizes=SIZES, m=st.integers(1, 6), data=st.data())
def test_rebalance_lowers_the_squares_and_keeps_the_books(pairs, sizes, m, data):
    label = np.array(data.draw(st.lists(st.integers(0, m - 1), min_size=len(sizes), max_size=len(sizes))))
    level = np.zeros(m, np.int64)
    np.add.at(level, label, sizes)
    before = int((level**2).sum())
    k, target = sum(sizes) // m, -(-sum(sizes) // m)
    assert rebalance(np.array(sizes), label, level, k, target, pairs, 10**6) > 0
    again = np.zeros(m, np.int64)
    np.add.at(again, label, sizes)
    assert again.tolist() == level.tolist()
    assert int((level**2).sum()) <= before
    inside = [[x for x, c in zip(sizes, label.tolist(), strict=True) if c == b] for b in range(m)]

    def stuck(a: int) -> bool:
        """No single move from bin a, nor swap, brings it and another bin closer."""
        others = [b for b in range(m) if level[b] < level[a]]
        return not any(0 < x - y < level[a] - level[b] for b in others for x in inside[a] for y in [0, *inside[b]])

    if level.max() > target:
        assert any(stuck(a) for a in range(m) if level[a] == level.max())


@settings(deadline=None, max_examples=150)
@given(sizes=SIZES, k=st.integers(1, 60), more=st.integers(0, 20))
def test_fill_takes_the_largest_that_fits(sizes, k, more):
    assume(sum(sizes) >= k)
    sizes = sorted(sizes, reverse=True)
    label = np.full(len(sizes), -1)
    closed, begun = fill(np.array(sizes), k, k + more, label)
    left = list(range(len(sizes)))
    for b in range(begun):
        load = 0
        while load < k and left:
            fitting = [i for i in left if sizes[i] <= k + more - load]
            i = left[0] if not load else fitting[0] if fitting else left[-1]
            assert label[i] == b
            load += sizes[i]
            left.remove(i)
        assert (load >= k) == (b < closed)
    assert not left


def test_long_lists_with_small_items_balance_to_the_unit():
    counts = 3000 // np.arange(1, 400) + 1
    for m in range(2, int(counts.sum()) // int(counts.max()) + 1):
        ordered = instance(counts, 1)
        _, least, most, _ = balanced(ordered, m, ordered.total // m, -(-ordered.total // m))
        assert (least, most) == (ordered.total // m, -(-ordered.total // m))
