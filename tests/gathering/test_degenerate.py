"""Equal points, points on a line, as many points as a cluster needs, nearly nothing left: every method, every time."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shoal
from shoal.errors import InfeasibleError, InputError
from shoal.problems.catalogue import names

RNG = np.random.default_rng(0)
SETS = {
    "equal": np.ones((9, 2)),
    "on a line": np.stack([np.arange(9.0), np.zeros(9)], axis=1),
    "in one dimension": np.arange(9.0)[:, None] ** 2,
    "n is r": RNG.random((4, 2)),
    "copies": np.repeat(RNG.random((2, 2)), 4, axis=0),
    "far away": RNG.random((9, 2)) * 1e-6 + 1e6,
}


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("method", names("gather"))
@pytest.mark.parametrize("which", SETS)
def test_gather(which, method, share):
    points = SETS[which]
    if method == "threshold" and share:
        pytest.skip("leaves nobody out")
    for r in (1, 4):
        for centers in ("points", "anywhere"):
            g = shoal.gathering.gather(points, r, share, method=method, centers=centers)
            assert g.sizes.min() >= r
            assert g.left_out <= math.floor(share * len(points) + 1e-9)
            if which == "equal" or (r == 1 and method not in ("threshold", "peeling", "rounds")):
                assert g.cost == 0


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("method", ["auto", "search", "three_step", "exact"])
@pytest.mark.parametrize("which", SETS)
def test_cellular(which, method, share):
    points = SETS[which]
    for r in (1, 4):
        g = shoal.gathering.cellular(points, r, epsilon=share, method=method, seed=0)
        assert g.sizes.min() >= r
        assert g.left_out <= math.floor(share * len(points) + 1e-9)
        if which == "equal" or r == 1:
            assert g.cost == 0


@pytest.mark.parametrize("method", ["auto", "search", "tight", "procedure_one", "exact"])
@pytest.mark.parametrize("which", SETS)
def test_set_up_costs(which, method):
    points = SETS[which]
    free = shoal.gathering.cellular(points, setup_costs=0.0, method=method, seed=0)
    assert free.cost == 0
    dear = shoal.gathering.cellular(points, setup_costs=1e6, method=method, seed=0)
    assert dear.clusters == 1


@pytest.mark.parametrize("solve", [shoal.gathering.gather, shoal.gathering.cellular])
def test_fewer_points_than_a_cluster_needs(solve):
    for n in (0, 3):
        with pytest.raises(InfeasibleError, match=f"there are {n} points") as refused:
            solve(np.zeros((n, 2)), 4)
        assert refused.value.exit_status == 3


@pytest.mark.parametrize("solve", [shoal.gathering.gather, shoal.gathering.cellular])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_named_with_its_column(solve, bad):
    points = np.zeros((6, 3))
    points[4, 2] = bad
    with pytest.raises(InputError, match="column 2"):
        solve(points, 2)
