"""Distances of records: metrics by construction, the same in every form, refused where they are none."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError, PolicyError
from shoal.model.metric import EARTH_KM, LARGEST_MATRIX, Category, Metric, Number, Place, on_sphere, project
from shoal.problems.gathering.space import FEW, Space, space_of
from tests.oracles.gathering import cellular_optimum, distances, gather_optimum


def records(seed: int, n: int, norm: str, plane: bool, many: bool) -> tuple[Metric, list[np.ndarray]]:
    """Numbers, hours, a category, one with a hierarchy, and places, with random weights; equal records among them."""
    rng = np.random.default_rng(seed)
    values = FEW + 3 if many else 4
    levels = np.stack([np.arange(6), np.arange(6) // 2, np.arange(6) // 4], axis=1)
    metric = Metric(
        features=(
            Number("age", scale=float(rng.uniform(1, 9)), weight=float(rng.uniform(0, 3))),
            Number("hour", scale=12.0, weight=float(rng.uniform(0, 2)), period=24.0),
            Category("sex", values=values, weight=float(rng.uniform(0, 2))),
            Category("job", values=6, weight=float(rng.uniform(0, 2)), levels=levels),
            Place("home", scale=5000.0, weight=float(rng.uniform(0, 2)), geometry="plane" if plane else "great-circle"),
        ),
        norm=norm,
    )
    where = np.stack([rng.uniform(-90, 90, n), rng.uniform(-180, 180, n)], axis=1).round(-1)
    hours = rng.integers(-3, 30, n).astype(float)
    return metric, [
        rng.integers(0, 9, n).astype(float),
        hours,
        rng.integers(0, values, n),
        rng.integers(0, 6, n),
        where,
    ]


forms = given(
    seed=st.integers(0, 10**6), n=st.integers(3, 40), norm=st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
    plane=st.booleans(), many=st.booleans(),
)  # fmt: skip


@forms
@settings(max_examples=60, deadline=None)
def test_mixed_distances_are_metrics_and_the_kernels_agree(seed, n, norm, plane, many):
    metric, columns = records(seed, n, norm, plane, many)
    space = Space(metric, columns)
    d = space.matrix()
    i, j = np.divmod(np.arange(n * n), n)
    plain = metric.between([c[i] for c in columns], [c[j] for c in columns]).reshape(n, n)
    assert d == pytest.approx(plain, abs=1e-9)
    assert np.array_equal(d, d.T)
    assert (np.diagonal(d) == 0).all()
    Metric.matrix(d, check=True)


@forms
@settings(max_examples=60, deadline=None)
def test_nearest_and_within_are_what_all_distances_say(seed, n, norm, plane, many):
    metric, columns = records(seed, n, norm, plane, many)
    space = Space(metric, columns)
    d = space.matrix()
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, n + 1))
    among = np.sort(rng.choice(n, int(rng.integers(1, n + 1)), replace=False))
    rows = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
    every = np.arange(n)
    for asked, pool, (index, far) in (
        (every, every, space.nearest(k)),
        (rows, among, space.nearest(k, rows=rows, among=among)),
    ):
        for line, row in enumerate(asked):
            real = index[line] >= 0
            assert real.sum() == min(k, pool.size)
            assert np.isin(index[line, real], pool).all()
            assert np.unique(index[line, real]).size == real.sum()
            assert far[line, real] == pytest.approx(np.sort(d[row, pool])[: real.sum()], abs=1e-9)
            assert far[line, real] == pytest.approx(d[row, index[line, real]], abs=1e-12)
            assert np.isinf(far[line, ~real]).all()
            if row in pool and all(np.unique(c[d[row] == 0], axis=0).shape[0] == 1 for c in columns):
                assert index[line, 0] == row  # itself before its equals
    reach = float(np.quantile(d, 0.3))
    start, what, _ = space.within(rows, reach, among)
    for line, row in enumerate(rows):
        assert set(what[start[line] : start[line + 1]]) == {int(u) for u in among if d[row, u] <= reach}


def test_great_circle_and_projection_in_kilometres():
    london, paris = [51.5074, -0.1278], [48.8566, 2.3522]
    d = space_of(np.array([london, paris]), "great-circle").matrix()[0, 1]
    assert d == pytest.approx(343.6, abs=0.5)
    assert distances(project(np.array([london, paris])))[0, 1] == pytest.approx(d, rel=0.01)
    pole = space_of(np.array([[90.0, 0.0], [-90.0, 77.0]]), "great-circle").matrix()[0, 1]
    assert pole == pytest.approx(math.pi * EARTH_KM)
    line = space_of(np.array([[0.0, 179.5], [0.0, -179.5]]), "great-circle").matrix()[0, 1]
    assert line == pytest.approx(EARTH_KM * math.pi / 180)


def test_places_opposite_on_the_globe_are_half_of_it_apart():
    random = np.random.default_rng(0)
    here = np.column_stack([random.uniform(-90, 90, 20_000), random.uniform(-180, 0, 20_000)])
    there = here * [-1, 1] + [0, 180]
    assert (((on_sphere(here) - on_sphere(there)) ** 2).sum(axis=1) > 4).any()  # chords rounded beyond the diameter
    assert np.allclose(Place("home").between(here, there), np.pi * EARTH_KM)


def test_a_hierarchy_is_an_ultrametric_and_ends_where_values_first_agree():
    tree = Category("job", values=4, weight=3.0, levels=np.array([[0, 0], [0, 0], [1, 0], [1, 0]]))
    every = np.arange(4)
    d = tree.between(*np.meshgrid(every, every))
    assert d[0].tolist() == [0, 1.5, 3, 3]
    assert all(d[a, c] <= max(d[a, b], d[b, c]) for a in every for b in every for c in every)
    with pytest.raises(InputError, match="'job' is not nested"):
        Category("job", values=6, levels=np.array([[0, 0], [0, 1], [1, 1], [1, 1], [2, 0], [2, 0]]))


def test_a_matrix_is_checked_on_request():
    d = distances(np.random.default_rng(0).random((8, 2)))
    Metric.matrix(d, check=True)
    bent = d.copy()
    bent[2, 5] = bent[5, 2] = 9.0
    Metric.matrix(bent)
    with pytest.raises(InputError, match="triangle inequality"):
        Metric.matrix(bent, check=True)
    for spoil, says in (((0, 1, 7.0), "symmetric"), ((3, 3, 1.0), "zeros on its diagonal"), ((0, 1, -1.0), "negative"),
                        ((0, 1, math.nan), "missing")):  # fmt: skip
        wrong = d.copy()
        wrong[spoil[0], spoil[1]] = spoil[2]
        with pytest.raises(InputError, match=says):
            Metric.matrix(wrong)
    with pytest.raises(InputError, match="square"):
        Metric.matrix(d[:3])


def test_functions_of_records_one_by_one_and_in_blocks():
    points = np.random.default_rng(1).random((30, 3))

    def apart(a, b):
        return float(np.abs(a - b).sum())

    def blocks(a, b):
        return np.abs(a[:, None] - b[None]).sum(axis=-1)

    whole = shoal.gathering.gather(points, 4, metric="manhattan", method="local")
    for metric in (apart, Metric.pairwise(apart), Metric.pairwise(blocks, blocks=True)):
        g = shoal.gathering.gather(points, 4, metric=metric, method="local")
        assert np.array_equal(g.labels, whole.labels)
        assert "function" in g.metric.describe()[0] or "matrix" in g.metric.describe()[0]
    with pytest.raises(InputError, match=f"{LARGEST_MATRIX:,}|{LARGEST_MATRIX}"):
        shoal.gathering.gather(np.zeros((LARGEST_MATRIX + 1, 1)), 4, metric=apart)


def test_no_full_matrix_of_many_points():
    space = space_of(np.zeros((LARGEST_MATRIX + 1, 2)))
    with pytest.raises(InputError, match="never made"):
        space.matrix()


@pytest.mark.parametrize(
    ("features", "columns", "says"),
    [
        ((Number("age"),), ([1.0, math.nan],), "'age'.*not a finite number in 1 row,"),
        ((Number("age"),), ([1.0, math.inf],), "'age'.*row 2"),
        ((Number("age"),), (["a", "b"],), "'age' is not numeric"),
        ((Category("sex", values=2),), ([0, 2],), "'sex' holds codes outside"),
        ((Place("home"),), ([[91.0, 0.0], [0.0, 0.0]],), "latitude.*beyond 90"),
        ((Place("home", geometry="plane"),), ([[0.0, math.nan], [0.0, 0.0]],), "second coordinate"),
        ((Place("home"),), ([1.0, 2.0],), "two coordinates"),
        ((Number("age"), Number("size")), ([1.0, 2.0], [1.0]), "'size' has 1 rows"),
        ((Number("age"),), ([1.0], [1.0]), "1 features and 2 columns"),
    ],
)
def test_columns_that_are_none_are_named(features, columns, says):
    with pytest.raises(InputError, match=says):
        shoal.gathering.gather(tuple(np.array(c) for c in columns), 1, metric=Metric(features=features))


def test_metrics_that_are_none_are_refused():
    for make, says in (
        (lambda: Number("age", scale=0.0), "age"),
        (lambda: Number("age", weight=-1.0), "age"),
        (lambda: Number("age", weight=1e308), "age"),
        (lambda: Place("home", geometry="flat"), "flat"),
        (lambda: Metric(features=(Number("a"),), norm="taxi"), "taxi"),
        (lambda: Metric(), "exactly one"),
        (lambda: shoal.gathering.gather(np.zeros((3, 2)), 1, metric=7), "int"),
    ):
        with pytest.raises(shoal.ShoalError, match=says):
            make()
    with pytest.raises(PolicyError, match="features"):
        Metric.matrix(np.zeros((2, 2))).between([], [])


def test_the_report_names_every_feature_with_what_counts_one():
    metric, _ = records(1, 5, "euclidean", False, False)
    lines = metric.describe()
    assert [line.split(":")[0] for line in lines] == ["age", "hour", "sex", "job", "home", "together"]
    assert metric.as_dict()["features"] == lines
    assert Number("seen", date=True, scale=365).describe() == "seen: 365 days count 1"
    assert Number("age", weight=0).describe() == "age: not counted"
    assert Place("home", unit="km").describe() == "home: distance over the sphere, 1 km counts 1"


@given(
    hours=st.lists(st.tuples(st.integers(-30, 60), st.integers(0, 3)), min_size=3, max_size=8),
    r=st.integers(1, 3), alone=st.booleans(), norm=st.sampled_from(["euclidean", "manhattan", "chebyshev"]),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_cyclic_columns_against_every_clustering(hours, r, alone, norm):
    points = np.array(hours, float)[:, :1] if alone else np.array(hours, float)
    steps = [[min(abs(a - b + 24 * turns) for turns in range(-5, 6)) for b, _ in hours] for a, _ in hours]
    d = np.array(steps)
    if not alone:
        other = np.abs(points[:, None, 1] - points[None, :, 1])
        d = {"euclidean": np.hypot, "manhattan": np.add, "chebyshev": np.maximum}[norm](d, other)
    best = gather_optimum(points, r, d=d)
    for method, factor in (("local", 3), ("exact", 1)):
        found = shoal.gathering.gather(points, r, metric=norm, cyclic={0: 24}, method=method)
        away = d[np.arange(len(points)), found.center_rows[found.labels]]
        assert found.radius == pytest.approx(away.max(), abs=1e-9)
        assert found.certificate.lower_bound <= best + 1e-9 <= found.radius + 2e-9
        assert found.radius <= factor * best + 1e-9
    found = shoal.gathering.cellular(points, r, metric=norm, cyclic={"column 0": 24}, effort="fast", seed=1)
    assert found.certificate.lower_bound <= cellular_optimum(d, r) + 1e-9 <= found.cost + 2e-9


def test_a_cyclic_column_that_is_none_is_refused():
    points = np.zeros((3, 2))
    for more in ({"cyclic": {"hour": 24}}, {"cyclic": {0: 0}}, {"cyclic": {0: 24}, "metric": "great-circle"}):
        with pytest.raises(PolicyError):
            shoal.gathering.gather(points, 2, **more)
