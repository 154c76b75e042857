"""Every method of the catalogue on the same few points, with all that may be asked, against every clustering."""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from shoal.errors import InfeasibleError
from tests.oracles.gathering import distances, diverse, optimum

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
