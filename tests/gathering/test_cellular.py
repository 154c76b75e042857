"""Least sum of size times radius: every method against every clustering there is, its factor, its bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.kernels.gathering.duals import excess
from shoal.problems.gathering import cellular_methods as methods
from shoal.problems.gathering import exact
from shoal.problems.gathering.cellular_methods import Distances, procedure_one, tight, without_shared_points
from shoal.problems.gathering.space import space_of
from tests.amount import thinned
from tests.families import gathering as families
from tests.gathering.test_gather import check
from tests.oracles.gathering import cellular_optimum, distances

few = settings(max_examples=30, deadline=None)
grid = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=9)
ALIKE = 1 + 1e-9  # sums that differ by rounding only


@given(
    points=grid,
    r=st.integers(1, 3),
    cap=st.sampled_from([2.0, 4.0, 6.0]),
    method=st.sampled_from(["auto", "three_step"]),
)
@few
def test_largest_diameter(points, r, cap, method):
    if len(points) < r:
        return
    d = distances(points)
    alone = (np.sort(d, axis=1)[:, r - 1] > cap).any()
    best = cellular_optimum(d, r, max_diameter=cap)
    if alone:
        with pytest.raises(InfeasibleError, match="largest diameter"):
            shoal.gathering.cellular(points, r, max_diameter=cap, method=method)
        return
    g = shoal.gathering.cellular(points, r, max_diameter=cap, method=method, seed=0)
    check(g, points, r, cellular=True)
    wide = max(d[i, j] for i in range(len(points)) for j in range(len(points)) if g.labels[i] == g.labels[j])
    assert g.diameter == pytest.approx(wide)
    assert g.certificate.details["cap_met"] == (wide <= cap)
    if method == "three_step":
        assert wide <= 18 * cap
    if best < math.inf:
        assert g.certificate.lower_bound <= best + 1e-9
        if g.certificate.details["cap_met"]:
            assert best <= g.cost + 1e-9
        if method == "three_step":
            assert g.cost <= 36 * best + 1e-9


@pytest.mark.parametrize(
    ("method", "asked", "factor"),
    [
        ("three_step", {"r": 2}, 36),
        ("three_step", {"r": 2, "epsilon": 0.25}, 63),
        ("tight", {"setup_costs": 2.0}, 3),
        ("procedure_one", {"setup_costs": 2.0}, 4),
    ],
)
def test_each_theorem_promises_its_factor(method, asked, factor):
    points = np.random.default_rng(2).integers(0, 7, (8, 2))
    assert shoal.gathering.cellular(points, method=method, seed=0, **asked).certificate.guarantee.factor == factor


def violation(d, price, r, setup) -> float:
    """By how much some possible cluster undercuts the prices of its members, over all centers, radii and members."""
    worst = -math.inf
    for v in range(len(d)):
        for x in np.unique(d[v]):
            over = np.sort(price[d[v] <= x] - x)[::-1]
            if over.size >= r:
                worst = max(worst, over[:r].sum() + np.maximum(over[r:], 0).sum() - setup[v])
    return worst


@given(
    seed=st.integers(0, 10**6),
    n=st.integers(5, 40),
    r=st.integers(1, 4),
    whole=st.booleans(),
    ties=st.booleans(),
    effort=st.sampled_from(["fast", "thorough"]),
)
@settings(max_examples=80, deadline=None)
def test_raised_prices_are_feasible(seed, n, r, whole, ties, effort):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 7, (n, 2)) if ties else np.concatenate([rng.random((n - 3, 2)), rng.random((3, 2)) * 20])
    space = space_of(points)
    setup = rng.random(n) * float(rng.integers(0, 3)) * (effort == "fast")
    w = n if whole else min(n, r + 3)
    near, far = space.nearest(w)
    price, first = methods.raised(near, far, r, setup, effort=effort)
    d = space.matrix()
    assert violation(d, price, r, setup) <= 1e-9
    assert price.sum() >= first - 1e-9
    if w == n:
        trial, _ = methods.raised(near, far, r, setup, left_out=min(2, n - 1))
        assert violation(d, trial, r, setup) <= 1e-9


def test_prices_that_fall_let_others_rise():
    """Along subgradients the bound grows by what single raises leave, and any prices are made feasible."""
    rng = np.random.default_rng(7)
    space = space_of(np.concatenate([rng.random((90, 2)), 5 + 20 * rng.random((30, 2))]))
    d, r = space.matrix(), 4
    for w in (120, 30):
        near, far = space.nearest(w)
        plain, climbed = (methods.raised(near, far, r, np.zeros(120), effort=e)[0] for e in ("fast", "thorough"))
        assert climbed.sum() > 1.01 * plain.sum()
        assert violation(d, climbed, r, np.zeros(120)) <= 1e-9
    near, far = space.nearest(120)
    wild, over = rng.normal(1, 3, 120), np.empty(120)
    assert violation(d, wild, r, np.zeros(120)) > 1
    excess(near, far, r, wild, over)
    assert violation(d, wild - over, r, np.zeros(120)) <= 1e-9


@given(seed=st.integers(0, 10**6), n=st.integers(3, 30), r=st.integers(1, 4), share=st.sampled_from([0.0, 1.0]))
@settings(max_examples=40, deadline=None)
def test_duals_of_both_price_runs_are_feasible_and_pay(seed, n, r, share):
    if n < r:
        return
    rng = np.random.default_rng(seed)
    table = Distances(space_of(rng.integers(0, 9, (n, 2))))
    d, fixed = table.distances, rng.random(n) * 5
    for run in (procedure_one, tight):
        found = run(table, r, fixed, share * r)
        for v in range(n):
            for x in np.unique(d[v]):
                inside = d[v] <= x
                if inside.sum() >= r:
                    assert np.maximum(found.alpha[inside] - x, 0).sum() <= fixed[v] + share * r * x + 1e-9
        radius = np.zeros(found.center.size)
        np.maximum.at(radius, found.labels, d[found.center[found.labels], np.arange(n)])
        assert (radius[found.labels] <= 3 * found.alpha + 1e-9).all()
        if run is tight or share == 0:  # Theorem 3.3's sum; for set-up costs that grow with the radius only the repair
            paid = (np.bincount(found.labels) * radius).sum() + (fixed[found.center] + share * r * radius).sum()
            assert paid <= (4 if run is procedure_one else 3 if share == 0 else 6) * found.alpha.sum() + 1e-6


def drawn_distances(rng, n) -> np.ndarray:
    """Shortest paths of a random graph, points on a line at all scales, or a grid with many ties."""
    kind = int(rng.integers(3))
    if kind == 0:
        x = np.exp(rng.normal(0, 2, n))
        return abs(x[:, None] - x[None])
    if kind == 1:
        return distances(rng.integers(0, 6, (n, 2)))
    d = np.full((n, n), np.inf)
    np.fill_diagonal(d, 0)
    for i in range(1, n):
        for j in rng.integers(0, i, 2):
            d[i, j] = d[j, i] = float(rng.integers(0, 6))
    for k in range(n):
        d = np.minimum(d, d[:, [k]] + d[[k], :])
    return d


def test_every_step_of_the_theorems_on_thousands_of_metrics():
    """Theorem 5: 3 A.  Shared: S <= 3 A, with a share left out 3 A + 3 r d.  Lemma 4: 6 S.  Theorem 8: 18 L."""
    rng = np.random.default_rng(7)
    for _ in range(thinned(3000)):
        n = int(rng.integers(2, 16))
        d = drawn_distances(rng, n)
        table = Distances(space_of(d, "precomputed"))
        setup = rng.exponential(d.mean() + 1, n)
        found = tight(table, 1, setup)
        radius = np.zeros(found.center.size)
        np.maximum.at(radius, found.labels, d[found.center[found.labels], np.arange(n)])
        paid = (np.bincount(found.labels) * radius).sum() + setup[found.center].sum()
        assert paid <= 3 * found.alpha.sum() * ALIKE
        r = int(rng.integers(1, min(n, 5) + 1))
        out = int(rng.integers(0, n - r + 1)) * int(rng.integers(2))
        cap = float(rng.choice(d[d > 0])) if rng.integers(2) and d.any() else np.inf
        priced = tight(table, r, np.zeros(n), float(r), out, cap)
        if (priced.labels < 0).sum() > out:
            continue
        shared = [
            np.union1d(np.flatnonzero(priced.labels == c), table.ranked[v, :r]) for c, v in enumerate(priced.center)
        ]
        total = sum(s.size * d[v, s].max() for v, s in zip(priced.center, shared, strict=True))
        last = 3 * r * min(cap, d.max()) if out else 0.0
        assert total <= 3 * priced.alpha[priced.labels >= 0].sum() * ALIKE + last
        final = without_shared_points(d, table.ranked, r, priced)
        kept = final.labels >= 0
        assert (np.bincount(final.labels[kept]) >= r).all()
        assert (~kept).sum() <= out
        assert methods.priced_cost(final) <= 6 * total * ALIKE
        assert max(d[np.ix_(*2 * [final.labels == c])].max() for c in range(final.center.size)) <= 18 * cap


@pytest.mark.parametrize("m", [5, 40])
def test_who_pays_for_a_kept_cluster_must_join_it(m):
    d, setup = families.payers_elsewhere(m)
    g = shoal.gathering.cellular(d, setup_costs=setup, metric="precomputed", method="tight", improve=False)
    alpha = tight(Distances(space_of(d, "precomputed")), 1, setup).alpha.sum()
    assert g.cost <= 3 * alpha
    kept = int(g.labels[0])  # everybody at 0 pays for the cluster around 0
    assert (g.labels[:m] == kept).all()
    assert g.center_rows[kept] == 0


@pytest.mark.parametrize("r", [3, 6])
def test_leftovers_on_both_sides_are_grouped_around_the_middle(r):
    points, labels, centers = families.leftovers_on_both_sides(r)
    d = distances(points)
    ranked = np.argsort(d, axis=1, kind="stable").astype(np.int32)
    found = without_shared_points(d, ranked, r, methods.PricedClusters(labels, centers, np.zeros(len(d))))
    assert found.radius == 3  # around a leftover's center it would be 5


def test_search_only_lowers_the_cost_and_keeps_r():
    points = np.random.default_rng(2).random((600, 2))
    plain = shoal.gathering.cellular(points, 7, method="search", improve=False)
    costs = [plain.cost]
    for effort in ("fast", "balanced", "thorough"):
        g = shoal.gathering.cellular(points, 7, method="search", effort=effort, seed=1)
        check(g, points, 7, cellular=True)
        costs.append(g.cost)
    assert costs[0] > costs[1]
    assert costs[3] < costs[1]
    assert costs[3] / g.certificate.lower_bound < 1.3


def test_no_center_is_a_point_left_out():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points = rng.integers(0, 9, (int(rng.integers(6, 30)), 2))
        for method in ("search", "three_step"):
            g = shoal.gathering.cellular(points, 3, epsilon=0.2, method=method, seed=0)
            assert (g.labels[g.center_rows] >= 0).all()


def test_a_seed_makes_it_reproducible():
    points = np.random.default_rng(3).random((200, 2))
    a, b = (shoal.gathering.cellular(points, 5, seed=11) for _ in range(2))
    assert np.array_equal(a.labels, b.labels)


def test_duplicates_equal_points_and_large_free_clusters():
    points = np.repeat(np.array([[0.0, 0.0], [5.0, 5.0]]), [900, 12], axis=0)
    g = shoal.gathering.cellular(points, 10)
    assert g.cost == 0
    assert g.certificate.optimal
    assert (g.sizes >= 10).all()


def test_the_widest_a_search_may_look_at_does_not_matter_for_validity():
    points = np.random.default_rng(4).random((300, 2))
    space = space_of(points)
    near, far = space.nearest(60)
    problem = methods.CellularProblem(space, 40, np.zeros(300), near, far)
    start = methods.greedy(problem, np.zeros(300, bool))
    found = methods.improve(problem, start, "balanced", 0)
    assert methods.cost(problem, found) <= methods.cost(problem, start)
    assert np.bincount(found.labels).min() >= 40


@pytest.mark.parametrize(
    ("ask", "error", "says"),
    [
        ({}, PolicyError, "give r"),
        ({"r": 6}, InfeasibleError, "5 points"),
        ({"r": 2, "setup_costs": [1, 2]}, InputError, "shape"),
        ({"setup_costs": -1}, InputError, "-1"),
        ({"setup_costs": math.nan}, InputError, "nan"),
        ({"r": 2, "max_diameter": -1}, PolicyError, "max_diameter=-1"),
        ({"r": 2, "method": "tight"}, PolicyError, "set-up costs alone"),
        ({"r": 2, "setup_costs": 1, "method": "three_step"}, PolicyError, "r alone"),
        ({"r": 2, "epsilon": 1.5}, PolicyError, "epsilon=1.5"),
    ],
)
def test_contradictions_are_refused_with_the_value(ask, error, says):
    with pytest.raises(error, match=says):
        shoal.gathering.cellular(np.zeros((5, 2)), **ask)


def test_an_exact_method_out_of_time_promises_nothing_and_its_bound_holds(monkeypatch):
    points = np.random.default_rng(14).random((6, 2))
    best = cellular_optimum(distances(points), 3)
    for half_done in (None, np.zeros(0)):
        solve = exact.BinaryProgram.solve

        def stopped(self, seconds, full=half_done is not None, solve=solve):
            found, bound, _ = solve(self, seconds)
            return (found, bound / 2, False) if full else (None, bound / 2, False)

        with monkeypatch.context() as patch:
            patch.setattr(exact.BinaryProgram, "solve", stopped)
            g = shoal.gathering.cellular(points, 3, method="exact")
        check(g, points, 3, cellular=True)
        assert g.certificate.guarantee.factor is None
        assert g.certificate.lower_bound <= best <= g.cost + 1e-9


def test_a_search_for_the_diameter_keeps_what_three_steps_promise(monkeypatch):
    """An answer of the search that costs too much, or is too wide, is not taken."""
    points = np.random.default_rng(5).random((40, 2))
    start = shoal.gathering.cellular(points, 3, max_diameter=0.5, method="three_step", improve=False)

    def one_cluster(problem, found, *_):
        return methods.without_empty(problem.space, np.zeros(problem.space.n, np.int64), found.center[:1])

    monkeypatch.setattr(methods, "improve", one_cluster)
    g = shoal.gathering.cellular(points, 3, max_diameter=0.5, method="three_step")
    assert g.cost == start.cost
    assert g.diameter == start.diameter


def test_an_exact_method_out_of_time_is_never_worse_than_the_search(monkeypatch):
    points = np.random.default_rng(5).integers(0, 50, (24, 2))
    searched = shoal.gathering.cellular(points, 3, method="search", seed=1)
    one = exact.Clusters(np.zeros(24, np.int64), np.zeros(1, np.int64), distances(points)[0])  # far from good
    monkeypatch.setattr(exact, "cellular_exact", lambda *_: (one, 0.5))
    g = shoal.gathering.cellular(points, 3, method="exact", seed=1)
    assert g.cost == pytest.approx(searched.cost)
    assert not g.certificate.optimal


@pytest.mark.parametrize("unit", [1e-12, 1e-8, 1.0, 1e9, 1e15])
@pytest.mark.parametrize("method", ["exact", "auto"])
def test_no_unit_is_too_small_for_a_bound(unit, method):
    """A solver takes costs that differ by less than a millionth for the same; they are not, in a small unit."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        points = rng.integers(0, 7, (6, 1)).astype(float)
        setup = rng.integers(0, 3, 6).astype(float)
        least = cellular_optimum(np.abs(points - points.T), 2, setup=setup)
        g = shoal.gathering.cellular(points * unit, 2, setup_costs=setup * unit, method=method, seed=1)
        assert g.certificate.lower_bound <= least * unit * ALIKE
        assert g.certificate.cost >= least * unit / ALIKE
        assert not g.certificate.optimal or g.certificate.cost <= least * unit * ALIKE


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_members_may_be_as_far_apart_as_the_largest_diameter(method):
    points = np.array([[0.0], [2.0], [10.0], [12.0]])
    found = shoal.gathering.cellular(points, 2, max_diameter=2.0, method=method, seed=1)
    assert found.labels.tolist() == [0, 0, 1, 1]
    assert found.certificate.details["cap_met"]
