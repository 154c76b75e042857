"""The forest algorithm: its promise against the optimum, and the steps its proof rests on."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.model.histogram import Histogram
from shoal.model.privacy import KAnonymity
from shoal.model.recoding import Recoding
from shoal.problems.tables import group
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods import forest
from shoal.problems.tables.methods.pattern_cover import kth, neighbors
from tests.oracles.exact import rows_of


@settings(deadline=None, max_examples=60)
@given(rows=rows_of(4, 40, least=12), k=st.integers(2, 6))
def test_trees_have_k_rows_and_weigh_no_more_than_the_bound(rows, k):
    histogram = Histogram.from_rows(np.array(rows))
    costs = Costs.of(histogram, Recoding.stars(histogram))
    index, distance = neighbors(costs, k)
    edges = forest.grow(costs, k, index, distance)
    label = list(range(costs.types))
    for a, b in edges:
        assert label[a] != label[b], "a forest has no ring"
        label = [label[a] if v == label[b] else v for v in label]
    assert len({a for a, _ in edges}) == len(edges), "a type chooses one edge"
    assert (np.bincount(np.unique(label, return_inverse=True)[1], weights=costs.count) >= k).all()
    weight = sum(costs.loss([a, b]) for a, b in edges)
    assert weight <= int(kth(costs, k, index, distance) @ costs.count)
    groups = forest.cut_trees(costs, k, edges)
    placed = np.zeros(costs.types, int)
    for g in groups:
        assert sum(g.values()) >= k
        assert len(g) == 1 or sum(g.values()) <= max(3 * k - 3, k)
        for x, n in g.items():
            placed[x] += n
    assert placed.tolist() == costs.count.tolist()
    cost = sum(sum(g.values()) * costs.loss(list(g)) for g in groups)
    assert cost <= (3 * k - 3) * weight


def test_equal_rows_stay_together():
    rows = [(0, 0)] * 50 + [(1, 1)] * 2 + [(0, 1)]
    found = group(Histogram.from_rows(np.array(rows)), KAnonymity(3), "forest")
    assert found.certificate.cost == 3
    assert found.partition.sizes.tolist() == [3, 50]
