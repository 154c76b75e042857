"""Every method of the catalogue on the same few points, with all that may be asked, against every clustering."""

from __future__ import annotations

import numpy as np
import pytest

import shoal
from shoal.errors import InfeasibleError, PolicyError
from shoal.problems.catalogue import names
from tests.oracles.gathering import cellular_optimum, distances, diverse, gather_optimum, optimum

gather, cellular = shoal.gathering.gather, shoal.gathering.cellular


def drawn(random, most=7):
    """(points, r, how many may be left out, the share that says so)."""
    n = int(random.integers(2, most))
    points = random.integers(0, 11, (n, 2)).astype(float) if random.random() < 0.5 else random.random((n, 2))
    out = int(random.integers(0, n))
    return points, int(random.integers(1, min(n, 4) + 1)), out, min(out / n + 1e-6, 0.999) if out else 0.0


@pytest.mark.parametrize("method", ["auto", *names("gather")])
def test_every_method_of_gather_with_a_share_left_out_and_a_limit(method):
    random, answered = np.random.default_rng(5), 0
    for turn in range(24):
        points, r, out, share = drawn(random)
        most = int(random.integers(1, 4)) if turn % 3 else None
        for centers in ("points", "anywhere"):
            try:
                g = gather(points, r, share, most, method=method, centers=centers)
            except PolicyError:
                continue  # the method says what it cannot do
            answered += 1
            best = gather_optimum(points, r, left_out=out, most=most, anywhere=centers == "anywhere")
            assert most is None or g.clusters <= most
            assert g.sizes.min() >= r
            assert int((g.labels < 0).sum()) <= out
            assert g.certificate.lower_bound <= best * (1 + 1e-9) + 1e-12
            assert g.cost >= best * (1 - 1e-7) - 1e-9
            factor = g.certificate.guarantee.factor
            if factor is not None:
                assert g.cost <= factor * best * (1 + 1e-6) + 1e-9
    assert answered >= 8


def test_a_limit_is_kept_by_the_discs_too():
    points = np.array([[9.0, 4], [7, 0], [9, 1], [10, 7]])
    assert gather(points, 2, 0.26, 1, centers="anywhere").clusters == 1


def test_a_center_and_radius_may_be_open_twice_under_a_cap():
    d = np.array([[0, 1, 1, 1, 1], [1, 0, 1.9, 2, 2], [1, 1.9, 0, 2, 2], [1, 2, 2, 0, 1.9], [1, 2, 2, 1.9, 0]])
    found = cellular(d, 2, None, 0, 1.9, "precomputed", method="exact")
    assert found.cost == pytest.approx(5.0)
    assert found.certificate.lower_bound == pytest.approx(5.0)


@pytest.mark.parametrize("method", ["auto", *names("cellular")])
def test_every_method_of_cellular_on_few_distances(method):
    random, answered = np.random.default_rng(6), 0
    for turn in range(160 if method == "exact" else 24):
        _, r, out, share = drawn(random, 6)
        n = int(random.integers(max(r, out + 1), 7))
        share = min(out / n + 1e-6, 0.999) if out else 0.0
        d = np.triu(random.choice([1, 1.5, 1.9, 2.0], (n, n)), 1)
        d += d.T
        cap = float(random.choice([1, 1.5, 1.9, 2.0])) if turn % 2 else None
        setup = random.integers(0, 3, n).astype(float) if turn % 3 == 0 else None
        if method in ("tight", "procedure_one"):
            r, share, cap, out = 1, 0.0, None, 0
        best = cellular_optimum(d, r, setup=setup, left_out=out, max_diameter=cap)
        try:
            g = cellular(d, r, setup, share, cap, "precomputed", method=method, seed=0)
        except PolicyError:
            continue  # the method says what it cannot do
        except InfeasibleError:
            assert best == np.inf
            continue
        answered += 1
        certificate = g.certificate
        assert certificate.lower_bound <= best + 1e-9
        met = cap is None or certificate.details["cap_met"]
        if met:
            assert g.cost >= best - 1e-9
        if method == "exact":
            assert g.cost == pytest.approx(best)
        if met and certificate.guarantee.factor is not None:
            assert g.cost <= certificate.guarantee.factor * best + 1e-9
    assert answered >= 8


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
