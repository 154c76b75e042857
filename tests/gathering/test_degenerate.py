"""Equal points, points on a line, as many points as a cluster needs, nearly nothing left: every method, every time.

Every method of the catalogue on the same few points, with all that may be asked, against every clustering.
"""

import math

import numpy as np
import pytest

import shoal
from shoal.errors import InfeasibleError, InputError
from shoal.problems.catalogue import names
from tests.oracles.gathering import distances, diverse, optimum

RNG = np.random.default_rng(0)
SETS = {
    "equal": np.ones((9, 2)),
    "on a line": np.stack([np.arange(9.0), np.zeros(9)], axis=1),
    "in one dimension": np.arange(9.0)[:, None] ** 2,
    "n is r": RNG.random((4, 2)),
    "copies": np.repeat(RNG.random((2, 2)), 4, axis=0),
    "far away": RNG.random((9, 2)) * 1e-6 + 1e6,
}


@pytest.mark.diagonal
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


@pytest.mark.diagonal
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
        with pytest.raises(InfeasibleError, match=f"among {n} points") as refused:
            solve(np.zeros((n, 2)), 4)
        assert refused.value.exit_status == 3


@pytest.mark.parametrize("solve", [shoal.gathering.gather, shoal.gathering.cellular])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_named_with_its_column(solve, bad):
    points = np.zeros((6, 3))
    points[4, 2] = bad
    with pytest.raises(InputError, match="column 2"):
        solve(points, 2)


gather, cellular = shoal.gathering.gather, shoal.gathering.cellular


def drawn(random, most=7):
    """(points, r, how many may be left out, the share that says so)."""
    n = int(random.integers(2, most))
    points = random.integers(0, 11, (n, 2)).astype(float) if random.random() < 0.5 else random.random((n, 2))
    out = int(random.integers(0, n))
    return points, int(random.integers(1, min(n, 4) + 1)), out, min(out / n + 1e-6, 0.999) if out else 0.0


def test_a_limit_is_kept_by_the_discs_too():
    points = np.array([[9.0, 4], [7, 0], [9, 1], [10, 7]])
    assert gather(points, 2, 0.26, 1, centers="anywhere").clusters == 1


def test_a_center_and_radius_may_be_open_twice_under_a_cap():
    d = np.array([[0, 1, 1, 1, 1], [1, 0, 1.9, 2, 2], [1, 1.9, 0, 2, 2], [1, 2, 2, 0, 1.9], [1, 2, 2, 1.9, 0]])
    found = cellular(d, 2, None, 0, 1.9, "precomputed", method="exact")
    assert found.cost == pytest.approx(5.0)
    assert found.certificate.lower_bound == pytest.approx(5.0)


@pytest.mark.parametrize("solve", [gather, cellular])
def test_the_points_left_out_decide_whether_the_rest_is_diverse(solve):
    random, refused = np.random.default_rng(7), 0
    for _ in range(40):
        points, r, out, share = drawn(random)
        n, l, u = len(points), int(random.integers(1, 4)), int(random.integers(1, 3))
        values = random.integers(0, 3, n)
        least = max(r, l, u)
        if least > n:
            continue
        d = distances(points)

        def cost(inside, d=d):
            return float(d[:, inside].max(axis=1).min()) * (len(inside) if solve is cellular else 1)

        best = optimum(
            n, least, cost, left_out=out, allowed=lambda s, v=values, l=l, u=u: diverse(v, s, l, u),
            total=max if solve is gather else lambda a, b: a + b,
        )  # fmt: skip
        how = {"seed": 0} if solve is cellular else {}
        try:
            g = solve(points, r, epsilon=share, sensitive=values, l=l, distinct_l=u, **how)
        except InfeasibleError:
            assert best == np.inf
            refused += 1
            continue
        assert all(diverse(values, np.flatnonzero(g.labels == c), l, u) for c in range(g.clusters))
        assert g.sizes.min() >= least
        assert int((g.labels < 0).sum()) <= out
        assert g.certificate.lower_bound <= best + 1e-9
        assert g.cost >= best - 1e-9
    assert 0 < refused < 30


def test_one_point_left_out_makes_the_rest_diverse():
    points, values = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 1])
    assert gather(points, 2, 0.34, sensitive=values, l=2).labels.tolist() == [0, 0, -1]
    assert cellular(points, 2, epsilon=0.34, sensitive=values, l=2, seed=0).cost == 2.0
    with pytest.raises(InfeasibleError, match="whichever 1 points"):
        gather(np.zeros((4, 1)), 2, 0.25, sensitive=np.array([0, 1, 1, 1]), l=2)
