"""Kernels keep the optimum, and what left them comes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity
from shoal.model.recoding import Levels, Ranges, Recoding
from shoal.problems.tables import group
from shoal.problems.tables.methods.kernelize import distribute, kernelize
from tests.oracles.exact import recodings


def table(counts: dict[tuple[int, ...], int]) -> Histogram:
    return Histogram.from_rows(np.array([row for row, count in counts.items() for _ in range(count)]))


def optimum(histogram, k, recoding=None):
    """By the vector program alone, which knows nothing of kernels."""
    from shoal.model.privacy import Requirement
    from shoal.model.task import Task
    from shoal.problems.tables.exact import optimal
    from shoal.problems.tables.exact.pattern_model import row_classes_of
    from shoal.problems.tables.losses import Costs
    from shoal.problems.tables.methods.pattern_cover import whole_cost

    recoding = recoding or Recoding.stars(histogram)
    need = Requirement(k)
    costs = Costs.of(histogram, recoding)
    found = optimal.by_vectors(histogram, need, costs, row_classes_of(histogram, need), 1e9, 2**60)
    assert found is not None
    return whole_cost(costs, Task(histogram, need, recoding), found)


@settings(deadline=None, max_examples=80)
@given(
    data=st.data(),
    k=st.integers(2, 3),
    counts=st.dictionaries(st.tuples(st.integers(0, 1), st.integers(0, 1)), st.integers(1, 4), min_size=1, max_size=3),
    many=st.integers(1, 40),
)
def test_the_kernel_keeps_the_optimum(data, k, counts, many):
    first = next(iter(counts))
    histogram = table({**counts, first: many})
    if histogram.rows < k:
        return
    recoding = data.draw(recodings(histogram.quasi_sizes, ("stars", "tree")))
    for threshold in ("linear", "paper"):
        kernel = kernelize(histogram, k, recoding, threshold=threshold)
        assert (kernel.emitted % k == 0).all()
        assert optimum(histogram, k, recoding) == optimum(kernel.histogram, k, recoding)
        types = np.bincount(kernel.histogram.types[0], weights=kernel.histogram.count)
        left = kernel.threshold[np.unique(histogram.types[0][kernel.cell])]
        assert (types <= left).all()


def test_the_thresholds_of_both_theorems():
    histogram = table({(0, 0): 500, (0, 1): 3, (1, 1): 2})
    paper = kernelize(histogram, 3, threshold="paper")
    assert paper.threshold.tolist() == [2 * 9 * 4] * 3
    # Closures over 00: with 01 a star in the second column, with 11 or both two stars.
    linear = kernelize(histogram, 3)
    assert linear.threshold[0] == 4 * 2 + 5
    assert linear.histogram.count.tolist() == [11, 3, 2]
    assert linear.emitted.tolist() == [489, 0, 0]
    # A type alone never meets another published row.
    assert kernelize(table({(0, 0): 500}), 3).threshold.tolist() == [5]


def test_emitted_groups_are_replayed_into_the_release():
    histogram = table({(0, 0): 500, (0, 1): 3, (1, 1): 2})
    kernel = kernelize(histogram, 3)
    inner = group(kernel.histogram, KAnonymity(3), "pattern_cover")
    whole = kernel.replay(inner.partition)
    whole.check(histogram)
    assert (whole.sizes >= 3).all()
    assert Recoding.stars(histogram).cost(histogram, whole) == inner.certificate.cost


def test_cells_that_differ_only_in_sensitive_values_share_their_type():
    rows = np.array([[0]] * 300 + [[1]] * 4)
    histogram = Histogram.from_rows(rows, np.arange(304) % 7)
    kernel = kernelize(histogram, 2)
    assert kernel.histogram.rows < 15
    whole = kernel.replay(group(kernel.histogram, KAnonymity(2), "forest").partition)
    whole.check(histogram)


def test_refusals():
    histogram = table({(0, 0): 5, (1, 0): 4})
    with pytest.raises(PolicyError, match="published as ranges"):
        kernelize(histogram, 2, Recoding((Ranges.of(np.array([0.0, 1.0])), Levels.stars(1))))
    with pytest.raises(PolicyError, match="paper"):
        kernelize(histogram, 2, threshold="papers")


@settings(deadline=None, max_examples=60)
@given(held=st.lists(st.integers(1, 6), min_size=1, max_size=6), data=st.data())
def test_dealing_places_every_row_once(held, data):
    kind_of = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(held), max_size=len(held))))
    kind_of = np.unique(kind_of, return_inverse=True)[1]
    rows = np.bincount(kind_of, weights=held).astype(int)
    kind, group_of, count = [], [], []
    for x, n in enumerate(rows.tolist()):
        cut = data.draw(st.integers(1, n))
        kind += [x, x]
        group_of += [x, 3]
        count += [cut, n - cut]
    found = distribute(np.array(held), kind_of, np.array(kind), np.array(group_of), np.array(count))
    assert np.bincount(found.cell, weights=found.count, minlength=len(held)).tolist() == held
    per_group = sorted(v for v in np.bincount(group_of, weights=count).astype(int).tolist() if v)
    assert sorted(found.sizes.tolist()) == per_group
