"""The paper's own examples and its hardness reduction."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.kernels.gathering import duals
from shoal.problems.gathering.cellular_methods import (
    Distances,
    PricedClusters,
    priced_cost,
    procedure_one,
    tight,
    without_shared_points,
)
from tests.families import gathering as families
from tests.oracles.gathering import cellular_optimum, distances, gather_optimum, satisfiable


def test_figure_one_centers_anywhere_radius_three():
    points = families.figure_one()
    g = shoal.gathering.gather(points, 2, centers="anywhere")
    assert g.cost == pytest.approx(3.0)
    assert g.certificate.lower_bound <= 3.0
    exact = shoal.gathering.gather(points, 2, centers="anywhere", method="exact")
    assert sorted(exact.sizes) == [2, 3]
    assert sorted(exact.radii) == pytest.approx([1.0, 3.0])
    assert np.allclose(exact.centers[exact.sizes == 2][0], [1.0, 100.0])


def test_figure_one_cellular_cost_eleven_and_thirteen_with_centers_at_points():
    points = families.figure_one()
    g = shoal.gathering.cellular(points, 2, method="exact")
    assert g.cost == pytest.approx(2 * 2 + 3 * 3)  # the pair's center lies between its two points
    between = np.concatenate([points, [[1.0, 100.0]]])
    d = distances(between)
    assert sum(size * radius for size, radius in ((2, d[5, 0]), (3, d[3, 2]))) == 11


def test_figure_two_costs_what_the_paper_says():
    points, sizes = families.figure_two()
    g = shoal.gathering.cellular(points, 8, improve=False, method="three_step")
    assert (g.sizes >= 8).all()
    labels = np.repeat([0, 1, 2], sizes)
    d = distances(points)
    shown = sum(s * d[first, labels == c].max() for c, (s, first) in enumerate(zip(sizes, (0, 50, 70), strict=True)))
    assert shown == pytest.approx(624)
    assert shoal.gathering.cellular(points, 8, seed=0).cost <= 624 + 1e-9
    assert shoal.gathering.cellular(points, 8, seed=0).certificate.lower_bound <= 624


def test_figure_three_five_records_one_center():
    rows = families.figure_three()
    g = shoal.gathering.cellular(rows, 5, metric="manhattan")
    assert g.cost == 5
    assert g.certificate.optimal
    assert np.array_equal(g.centers, [[1, 1, 1, 1]])
    assert g.mean_distance == pytest.approx(4 / 5)


@pytest.mark.parametrize(
    ("variables", "clauses"),
    [
        (2, [(1, 2), (-1, 2), (1, -2)]),
        (2, [(1, 2), (-1, 2), (1, -2), (-1, -2)]),
        (1, [(1,), (-1,)]),
        (3, [(1, 2, 3), (-1, -2), (-3, 2), (-2, 1)]),
        (3, [(1, 2), (-1,), (-2, 3), (-2, -3)]),
    ],
)
def test_radius_one_exactly_when_satisfiable(variables, clauses):
    r = 7
    d = families.satisfiability(variables, clauses, r)
    g = shoal.gathering.gather(d, r, metric="precomputed", method="exact")
    assert (g.cost == 1) == satisfiable(variables, clauses)
    assert g.certificate.optimal
    assert g.cost in (1, 2)


@given(seed=st.integers(0, 10**6), clauses=st.integers(1, 5))
@settings(max_examples=12, deadline=None)
def test_radius_one_exactly_when_satisfiable_random_formulas(seed, clauses):
    rng = np.random.default_rng(seed)
    formula = [
        tuple(int(v) * int(rng.choice([-1, 1])) for v in rng.choice([1, 2], rng.integers(1, 3), False))
        for _ in range(clauses)
    ]
    g = shoal.gathering.gather(families.satisfiability(2, formula, 7), 7, metric="precomputed", method="exact")
    assert (g.cost == 1) == satisfiable(2, formula)


def test_threshold_comes_near_its_factor_of_two():
    points, r, best = families.threshold_nearly_two()
    g = shoal.gathering.gather(points, r, method="threshold")
    assert gather_optimum(points, r) == pytest.approx(best)
    assert g.cost > 1.99 * best
    assert shoal.gathering.gather(points, r).cost == pytest.approx(best)


def test_sharing_after_procedure_one_is_no_constant_factor():
    """The printed argument for Theorem 3.6 fails: r points pay for an idle point's distance; the repair does not."""
    for r in (6, 30):
        points, r, best = families.shared_idle_point(r)
        table = Distances(shoal.problems.gathering.space.space_of(points))
        none = np.zeros(table.n)
        printed = priced_cost(
            without_shared_points(table.distances, table.ranked, r, procedure_one(table, r, none, float(r)))
        )
        assert printed == pytest.approx((r + 2) * (r + 1))
        repaired = priced_cost(without_shared_points(table.distances, table.ranked, r, tight(table, r, none, float(r))))
        assert repaired <= 2 * best
        found = shoal.gathering.cellular(points, r)
        assert found.cost == pytest.approx(best)
        assert found.certificate.lower_bound <= best
    assert cellular_optimum(distances(families.shared_idle_point(3)[0]), 3) == pytest.approx(12.0)


def test_a_leftover_goes_with_an_open_cluster_no_wider_than_itself():
    points, labels, center, r = families.leftovers_at_both_ends(60)
    table = Distances(shoal.problems.gathering.space.space_of(points))
    shared = 0.0
    for c, v in enumerate(center):
        members = np.union1d(np.flatnonzero(labels == c), table.ranked[v, :r])
        shared += members.size * table.distances[v, members].max()
    found = without_shared_points(table.distances, table.ranked, r, PricedClusters(labels, center, np.zeros(table.n)))
    assert np.bincount(found.labels).min() >= r
    assert priced_cost(found) <= 6 * shared


def stepped(d, r, fixed, share, steps=4000):
    """Procedure 1 with a clock: time advances in small steps, events are looked for after each."""
    n = len(d)
    clusters = [(v, x) for v in range(n) for x in np.unique(d[v]) if (d[v] <= x).sum() >= r]
    state, alpha, owner, opened = np.zeros(n, int), np.zeros(n), np.full(n, -1), []
    shut: set[int] = set()
    top = 2 * (fixed.max() + (share + 1) * d.max()) + 1
    for t in np.linspace(0, top, steps):
        if (state > 0).all():
            break
        alpha[state == 0] = t
        for c, (v, x) in enumerate(clusters):
            if c in shut:
                continue
            tied = (d[v] <= x) & (alpha >= x - 1e-9)
            free, idle = tied & (state == 0), tied & (state == 1)
            if not free.any() or np.maximum(alpha[d[v] <= x] - x, 0).sum() < fixed[v] + share * x - 1e-9:
                continue
            owner[free] = len(opened)
            opened.append((v, x))
            state[free] = 2
            state[idle] = 2
            dying = free | idle
            for e, (w, y) in enumerate(clusters):
                if e != c and (dying & (d[w] <= y) & (alpha >= y - 1e-9)).any():
                    shut.add(e)
                    more = (d[w] <= y) & (state == 0) & (alpha >= y - 1e-9)
                    owner[more], state[more] = len(opened) - 1, 1
    return alpha, owner, opened


@pytest.mark.parametrize("seed", range(8))
def test_events_agree_with_a_clock(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    points = rng.random((n, 2)) * 10
    fixed = np.full(n, float(rng.uniform(1, 12)))
    d = distances(points)
    alpha, owner, opened = stepped(d, 1, fixed, 0.0)
    table = Distances(shoal.problems.gathering.space.space_of(points))
    found = procedure_one(table, 1, fixed)
    assert found.alpha == pytest.approx(alpha, abs=0.05)
    assert found.center.size == len(opened)
    assert ((found.labels[:, None] == found.labels) == (owner[:, None] == owner)).all()


def test_a_price_run_never_opens_a_cluster_without_a_free_point():
    points = np.random.default_rng(1).random((50, 2))
    table = Distances(shoal.problems.gathering.space.space_of(points))
    for found in (procedure_one(table, 1, np.full(50, 0.3)), tight(table, 1, np.full(50, 0.3))):
        assert isinstance(found, PricedClusters)
        assert np.array_equal(np.unique(found.labels), np.arange(found.center.size))
    assert duals.holders(np.array([[0, 1], [1, 0]]), np.zeros((2, 2)))[0].tolist() == [0, 2, 4]


@given(seed=st.integers(0, 10**6), n=st.integers(4, 30), r=st.integers(1, 4), share=st.sampled_from([0.0, 1.0]))
@settings(max_examples=40, deadline=None)
def test_who_stands_in_is_no_smaller_and_nobody_pays_for_two_that_are_kept(seed, n, r, share):
    rng = np.random.default_rng(seed)
    table = Distances(shoal.problems.gathering.space.space_of(rng.integers(0, 9, (n, 2))))
    witness, center, radius, alpha = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n), np.zeros(n)
    m, _ = duals.tighten(table.openings(r, rng.random(n) * 5, share * r), 0, witness, center, radius, alpha)
    center, radius = center[:m], radius[:m]
    chosen, stand_in, payer = np.zeros(m, np.bool_), np.zeros(m, np.int64), np.zeros(n, np.int64)
    duals.independent(table.distances, center, radius, alpha, chosen, stand_in, payer)
    pays = (table.distances[center] <= radius[:, None]) & (radius[:, None] < alpha)
    assert (pays[chosen].sum(axis=0) <= 1).all()
    for u in range(n):
        assert [payer[u]] == ([*np.flatnonzero(chosen & pays[:, u])] or [-1])
    for c in range(m):
        if chosen[c]:
            assert stand_in[c] == c
        else:
            assert chosen[stand_in[c]]
            assert radius[stand_in[c]] >= radius[c]
            assert (pays[c] & pays[stand_in[c]]).any()
    found = tight(table, r, np.zeros(n), float(r)) if n >= r else None
    if found is not None:  # the center of each cluster lies within three of its ball's radii, which r points have paid
        reach = np.zeros(found.center.size)
        np.maximum.at(reach, found.labels, table.distances[found.center[found.labels], np.arange(n)])
        assert (r * reach / 3).sum() <= found.alpha.sum() + 1e-9
