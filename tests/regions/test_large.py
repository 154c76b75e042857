"""Graphs of many areas: regions near the bound under the default objective, steps in proportion, the share done."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from shoal.problems.regions import merge
from shoal.problems.regions.methods import steps_for
from shoal.watching import listening
from tests.data import squares

K = 5_000


def grid(side: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of a square grid, and weights as those of zip codes are spread: many light ones, a few heavier than K."""
    return squares(side), np.random.default_rng(seed).lognormal(5, 1, side * side).astype(np.int64)


@pytest.fixture(scope="module")
def large() -> SimpleNamespace:
    edges, weights = grid(100, 2)
    shares: list[float] = []
    with listening(shares.append):
        found = merge(edges, weights, K, seed=1)
    return SimpleNamespace(edges=edges, weights=weights, found=found, shares=shares)


def test_the_default_objective_finds_nearly_as_many_regions_as_can_be(large):
    """97.5 of a hundred; searches under a cap, or along trees with many branches, stay below 96."""
    most = np.minimum(large.weights, K).sum() // K
    assert large.found.upper_bound <= most
    assert large.found.regions >= 0.975 * most
    assert large.found.largest == large.weights.max()  # no partition has a lighter one


def test_its_regions_are_connected_and_heavy_enough(large):
    label, ends = large.found.labels, large.edges
    inside = ends[label[ends[:, 0]] == label[ends[:, 1]]]
    n = len(label)
    pieces, _ = connected_components(coo_matrix((np.ones(len(inside)), inside.T), shape=(n, n)), directed=False)
    assert pieces == large.found.regions == len(set(label.tolist()))
    assert np.bincount(label, weights=large.weights).min() >= K


def test_the_share_done_rises(large):
    assert len(large.shares) > 8
    assert large.shares == sorted(large.shares)
    assert 0 <= large.shares[0] < large.shares[-1] <= 1


@pytest.mark.parametrize("name", ["count", "max", "sumsq"])
def test_steps_of_a_million_areas_are_a_few_each(name):
    def steps(n: int) -> int:
        task, bound = SimpleNamespace(n=n, effort=1.0), SimpleNamespace(value=n // 20)
        return steps_for(task, bound, name)  # type: ignore[arg-type]

    assert steps(10_000) <= steps(100_000) <= steps(1_000_000) <= 8_000_000
    assert steps(2_000_000) - steps(1_000_000) <= 6_000_000
