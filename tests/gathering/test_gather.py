"""Least radius: every method against every clustering there is, its factor, its bound, its promises."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.problems.gathering import exact, local_search, threshold
from shoal.problems.gathering import local_search as anywhere
from shoal.problems.gathering.space import space_of
from tests.oracles.gathering import distances, diverse, gather_optimum

few = settings(max_examples=40, deadline=None)
grid = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=9)
rs = st.integers(1, 4)
shares = st.sampled_from([0.0, 0.13, 0.25, 0.4])


def check(g, points, r, left_out=0, *, free=False, cellular=False):
    """What every answer must be, whatever the method: sizes, radii, centers, cost."""
    labels, x = g.labels, np.asarray(points, float)
    assert labels.shape == (len(x),)
    assert (labels >= -1).all()
    assert int((labels < 0).sum()) <= left_out
    assert np.array_equal(np.unique(labels[labels >= 0]), np.arange(g.clusters))
    assert (np.bincount(labels[labels >= 0], minlength=g.clusters) == g.sizes).all()
    assert (g.sizes >= r).all()
    away = np.sqrt(((x - g.centers[labels]) ** 2).sum(axis=1))
    for c in range(g.clusters):
        assert away[labels == c].max() == pytest.approx(g.radii[c], abs=1e-9)
    assert g.certificate.cost == pytest.approx(g.sizes @ g.radii if cellular else g.radii.max(initial=0), abs=1e-9)
    if not cellular:
        assert g.mean_distance == pytest.approx(away[labels >= 0].mean(), abs=1e-9)
    if not free:
        assert np.array_equal(g.centers, x[g.center_rows])


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_one_cluster_of_many_points_lies_around_the_best_center(share):
    x = np.random.default_rng(3).normal(size=(150, 2))
    out = int(share * len(x))
    best = np.sort(distances(x), axis=1)[:, len(x) - 1 - out].min()
    found = shoal.gathering.gather(x, 5, share, 1).cost
    assert best * (1 - 1e-9) <= found <= best * (1.05 if out else 1 + 1e-9)


@given(points=grid, r=rs, share=shares)
@few
def test_improving_never_widens(points, r, share):
    if len(points) < r:
        return
    for method in ("local", "disjoint", "peeling"):
        plain = shoal.gathering.gather(points, r, share, method=method)
        better = shoal.gathering.gather(points, r, share, method=method, improve=True)
        check(better, points, r, math.floor(share * len(points) + 1e-9))
        assert better.cost <= plain.cost


def test_any_monotone_condition_will_do():
    rng = np.random.default_rng(3)
    points, codes = rng.random((60, 2)), rng.integers(0, 5, 60)
    g = shoal.gathering.gather(points, 4, sensitive=codes, eligible=lambda count: count.size > 4 and count[4] > 0)
    assert all((codes[g.labels == c] == 4).any() for c in range(g.clusters))
    assert g.certificate.guarantee.factor is None


def test_two_sensitive_columns_at_once():
    rng = np.random.default_rng(4)
    points, codes = rng.random((200, 2)), rng.integers(0, 6, (200, 2))
    g = shoal.gathering.gather(points, 5, sensitive=codes, l=[3, 2], distinct_l=[1, 3])
    for c in range(g.clusters):
        inside = np.flatnonzero(g.labels == c)
        assert diverse(codes[:, 0], inside, 3)
        assert diverse(codes[:, 1], inside, 2, 3)
    assert g.clusters > 10


def test_one_number_too_far_for_its_distances_is_enough_for_a_refusal():
    points = np.zeros((5, 2))
    points[2, 1] = -1e151
    for call in (shoal.gathering.gather, shoal.gathering.cellular):
        with pytest.raises(InputError, match=r"^column 2 of the points holds numbers beyond 1e150"):
            call(points, 2)
        with pytest.raises(InputError, match=r"^column 'size' holds numbers beyond 1e150, .* stands for a missing one"):
            call(pl.DataFrame(points, schema=["age", "size"]), 2)


def test_integers_of_128_bits_are_numbers():
    frame = pl.DataFrame({"age": [30, 31] * 6, "size": pl.Series([2**64, 2**63, 5] * 4, dtype=pl.Int128)})
    for points in (frame, frame["size"]):
        plain = points.cast(pl.Float64)
        for call in (shoal.gathering.gather, shoal.gathering.cellular):
            assert call(points, 3).labels.tolist() == call(plain, 3).labels.tolist()


def test_sensitive_values_without_a_condition_on_them_are_refused():
    for call in (shoal.gathering.gather, shoal.gathering.cellular):
        with pytest.raises(shoal.PolicyError, match=r"sensitive= has no effect without l=, distinct_l= or eligible"):
            call([[0.0], [1.0], [2.0], [3.0]], 2, sensitive=["a", "b", "a", "b"])


@pytest.mark.parametrize(
    "beside", [{"centers": "anywhere"}, {"method": "exact"}, {"sensitive": ["a", "b"] * 3, "l": 2}], ids=str
)
def test_a_search_that_does_not_go_on_is_not_asked_to(beside):
    points = [[0.0], [1.0], [2.0], [7.0], [8.0], [9.0]]
    with pytest.raises(shoal.PolicyError, match=r"improve=True has no effect with .*; leave one of them out"):
        shoal.gathering.gather(points, 2, improve=True, **beside)
    assert shoal.gathering.gather(points, 2, effort="thorough", **beside).clusters


def test_numbers_whose_squares_are_zero_are_refused_by_name():
    frame = pl.DataFrame({"age": [30.0, 31.0] * 6, "size": [1e-322, 5e-324, 0.0] * 4})
    for call in (shoal.gathering.gather, shoal.gathering.cellular, shoal.tiles.split):
        with pytest.raises(InputError, match=r"^column 'size' holds no numbers but those below 1e-150, .*smaller"):
            call(frame, 2)
    among = frame.with_columns(pl.Series("size", [1e-322, 1.0, 0.0] * 4))
    assert shoal.gathering.gather(among, 2).clusters


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        ({"r": 0}, "r=0"),
        ({"r": 2.5}, "r=2.5"),
        ({"r": 2, "epsilon": 1.0}, "epsilon=1.0"),
        ({"r": 2, "epsilon": -0.1}, "epsilon=-0.1"),
        ({"r": 2, "max_clusters": 0}, "max_clusters=0"),
        ({"r": 2, "metric": "euclid"}, "did you mean 'euclidean'"),
        ({"r": 2, "method": "locall"}, "did you mean 'local'"),
        ({"r": 2, "method": "threshold", "epsilon": 0.4}, "leaves nobody out"),
        ({"r": 2, "method": "local", "max_clusters": 2}, "does not limit"),
        ({"r": 2, "centers": "nowhere"}, "nowhere"),
        ({"r": 2, "centers": "anywhere", "metric": "manhattan"}, "plain numbers"),
        ({"r": 2, "l": 2}, "sensitive"),
        ({"r": 2, "l": 2, "sensitive": [0, 1]}, "shape"),
        ({"r": 2, "l": 2, "sensitive": [[0], [1, 2]]}, "different lengths"),
    ],
)
def test_contradictions_are_refused_with_the_value(ask, says):
    with pytest.raises(shoal.ShoalError, match=says):
        shoal.gathering.gather(np.zeros((5, 2)), **ask)


def test_a_value_too_frequent_is_named_with_its_share():
    with pytest.raises(InfeasibleError, match=r"80.0 % .* largest l possible is 1"):
        shoal.gathering.gather(np.zeros((5, 2)), 2, sensitive=[0, 0, 0, 0, 1], l=2)
    with pytest.raises(PolicyError, match="l=0"):
        shoal.gathering.gather(np.zeros((5, 2)), 2, sensitive=[0, 0, 0, 0, 1], l=0)


def test_outliers_cut_the_radius():
    rng = np.random.default_rng(5)
    points = np.concatenate([rng.random((300, 2)), rng.random((9, 2)) * 100 + 50])
    whole = shoal.gathering.gather(points, 10)
    part = shoal.gathering.gather(points, 10, epsilon=0.03)
    assert part.cost < whole.cost / 10
    assert set(np.flatnonzero(part.labels < 0)) <= set(range(300, 309))


def test_local_keeps_mean_distance_far_below_the_textbook_method():
    rng = np.random.default_rng(6)
    towns = rng.random((40, 2)) * 1000
    points = np.concatenate([(t + rng.normal(size=(50, 2))) for t in towns] + [np.array([[5000.0, 5000.0]])])
    near = shoal.gathering.gather(points, 10)
    textbook = shoal.gathering.gather(points, 10, method="threshold")
    assert near.cost <= 2 * textbook.certificate.lower_bound * 1.5
    assert near.mean_distance < textbook.mean_distance / 20


def test_the_threshold_test_is_not_monotone_and_still_bounds():
    """A lower threshold may pass where a higher one fails; bisection keeps its promise all the same."""
    rng = np.random.default_rng(7)
    for _ in range(60):
        n = int(rng.integers(6, 10))
        points = rng.integers(0, 5, (n, 2))
        g = shoal.gathering.gather(points, 3, method="threshold")
        best = gather_optimum(points, 3)
        assert g.certificate.lower_bound <= best + 1e-9
        assert g.cost <= 2 * gather_optimum(points, 3, anywhere=True) + 1e-9


def test_a_matrix_and_a_function_and_coordinates_agree():
    points = np.random.default_rng(8).random((40, 2))
    by = [
        shoal.gathering.gather(points, 4),
        shoal.gathering.gather(distances(points), 4, metric="precomputed"),
        shoal.gathering.gather(points, 4, metric=lambda a, b: math.dist(a, b)),
    ]
    assert by[0].cost == pytest.approx(by[1].cost)
    assert by[0].cost == pytest.approx(by[2].cost)
    assert by[1].centers.dtype.kind == "i"


def test_free_centers_need_the_wider_balls_for_a_factor_of_four():
    # Two groups on a line that pull their companions away from the middle; the exact optimum has radius 1.4033.
    side = [(5.945, 0.0), (3.955, 0.0), (3.945, 0.0), (1.97, 0.0)]
    up = [(1.97, 1.999)] * 2 + [(-1.97, -1.999)] * 2
    points = np.array([*side, *[(-x, y) for x, y in side], (0.0, 0.0), *up])
    space = space_of(points)
    narrow = threshold.disjoint(space, 3, 0, threshold.Lists.of(space, 3))
    assert anywhere.recenter(points, narrow.labels, narrow.center.size, narrow.center)[1].max() > 4 * 1.4033
    for method in ("disjoint", "local"):
        found = shoal.gathering.gather(points, 3, method=method, centers="anywhere")
        assert found.certificate.guarantee.factor == 4
        assert found.radius <= 4 * 1.4034
    assert shoal.gathering.gather(points, 3, method="disjoint").certificate.guarantee.factor == 3


@pytest.mark.parametrize("centers", ["points", "anywhere"])
def test_an_exact_method_out_of_time_promises_nothing_and_its_bound_holds(centers, monkeypatch):
    points = np.random.default_rng(14).random((8, 2))
    best = gather_optimum(points, 3, anywhere=centers == "anywhere")
    sure = shoal.gathering.gather(points, 3, method="exact", centers=centers)
    assert sure.cost == pytest.approx(best)
    assert sure.certificate.guarantee.factor == 1
    monkeypatch.setattr(exact.BinaryProgram, "solve", lambda _self, _seconds: (None, -math.inf, False))
    hasty = shoal.gathering.gather(points, 3, method="exact", centers=centers)
    check(hasty, points, 3, 0, free=centers == "anywhere")
    assert hasty.certificate.guarantee.factor is None
    assert hasty.certificate.lower_bound <= best <= hasty.cost


def test_no_radius_is_called_the_least_while_a_smaller_one_suffices():
    """A rule of HiGHS' presolve lost the answer of the integer program for radius 1."""
    near = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 7), (2, 3), (3, 7), (4, 8), (4, 9), (4, 10), (5, 6), (5, 8), (6, 8)]
    near += [(7, 9), (7, 10), (8, 9), (8, 10), (9, 10)]
    away = 2.0 * (1 - np.eye(11))
    away[tuple(zip(*near, *[pair[::-1] for pair in near], strict=True))] = 1.0  # centers 0 and 8, without point 7
    assert shoal.gathering.gather(away, 2, 0.1, 2, metric="precomputed").cost == 1


def test_exact_radii_anywhere_do_not_depend_on_the_unit():
    points = np.random.default_rng(15).random((8, 2))
    for unit in (1e-9, 1.0, 1e9):
        g = shoal.gathering.gather(points * unit, 3, method="exact", centers="anywhere")
        assert g.cost / unit == pytest.approx(gather_optimum(points, 3, anywhere=True))
        assert g.certificate.lower_bound / unit == pytest.approx(g.cost / unit)


@pytest.mark.parametrize("method", ["local", "disjoint", "threshold", "rounds"])
@pytest.mark.parametrize("d", [1, 3])
def test_centers_anywhere_are_never_worse_than_centers_at_points_on_a_line_and_in_space(method, d):
    for seed in range(6):
        points = np.random.default_rng(seed).integers(0, 5, (9, d)).astype(float)
        free = shoal.gathering.gather(points, 3, method=method, centers="anywhere")
        check(free, points, 3, 0, free=True)
        assert free.cost <= shoal.gathering.gather(points, 3, method=method).cost + 1e-12
        best = gather_optimum(np.column_stack([points, np.zeros(9)]), 3, anywhere=True) if d == 1 else 0.0
        assert free.certificate.lower_bound <= (best or free.cost) + 1e-9
        if d == 1:
            assert free.cost <= free.certificate.guarantee.factor * best * (1 + 1e-12)


@pytest.mark.parametrize("share", [0.0, 0.05])
def test_clusters_mended_near_points_too_far_off_only(share, monkeypatch):
    points = np.random.default_rng(16).random((600, 2))
    start = shoal.gathering.gather(points, 5, share, method="disjoint")
    monkeypatch.setattr(local_search, "SERVED", 0)
    monkeypatch.setattr(local_search, "TRIES", 0)
    mended = shoal.gathering.gather(points, 5, share)
    check(mended, points, 5, math.floor(share * 600 + 1e-9))
    assert mended.radius < 0.85 * start.radius
    order = np.random.default_rng(17).permutation(600)
    again = shoal.gathering.gather(points[order], 5, share)
    assert np.array_equal(again.labels, mended.labels[order])  # the order of the rows makes no difference
    monkeypatch.setattr(local_search, "LEAST", -300)
    assert shoal.gathering.gather(points, 5, share).radius == start.radius


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.01, 0.05, 0.2])
def test_leaving_points_out_never_widens_a_limited_number_of_clusters(seed, share):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(c, 0.1 if seed % 2 else 0.6, (25, 2)) for c in rng.uniform(-3, 3, (4, 2))])
    for most in (1, 4, 8):
        everyone = shoal.gathering.gather(x, 5, max_clusters=most)
        fewer = shoal.gathering.gather(x, 5, share, most)
        check(fewer, x, 5, math.floor(share * len(x) + 1e-9))
        assert fewer.clusters <= most
        assert fewer.certificate.lower_bound <= fewer.cost <= everyone.cost


def _columns(kind, **columns):
    frame = pl.DataFrame(columns)
    if kind == "duckdb":
        return pytest.importorskip("duckdb").from_arrow(frame.to_arrow())
    return frame if kind == "polars" else frame.to_pandas()


@pytest.mark.parametrize("method", [shoal.gathering.gather, shoal.gathering.cellular])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_column_that_is_no_number_is_named(kind, method):
    days = [datetime.date(2020, 1, i) for i in (1, 2, 3, 4)]
    for held, says in (
        ({"lat": ["51,5", "51,6", "51,7", "51,8"]}, "'lat' holds no numbers in any row; .*or name its decimal mark"),
        ({"seen": days}, "'seen' holds dates"),
        ({"seen": pl.Series(days).cast(pl.Datetime)}, "'seen' holds dates"),
    ):
        with pytest.raises(InputError, match=says):
            method(_columns(kind, age=[1, 2, 3, 4], **held), 2)
    assert method(_columns(kind, age=[1, 2, 3, 4], size=["1", "2.5", " 3", "4"]), 2).sizes.sum() == 4


@pytest.mark.parametrize("method", [shoal.gathering.gather, shoal.gathering.cellular])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_numbers_with_a_decimal_mark_are_clustered_as_numbers(kind, method):
    ages, sizes = list(range(12)), [1.5 * (i * i % 7) for i in range(12)]
    plain = method(_columns(kind, age=ages, size=sizes), 3)
    frame = _columns(kind, age=ages, size=[f"{s:.2f}".replace(".", ",") for s in sizes])
    found = method(frame, 3, decimal={"size": ","})
    assert found.cost == plain.cost
    made = shoal.release(found, frame, columns=["age", "size"], decimal={"size": ","})
    assert made.content.height == found.clusters
    for points, marks, says in (
        (frame, {"size": ";"}, "a decimal mark is ',' or '.'"),
        (frame, {"sizes": ","}, "'sizes' is not a column .*; did you mean 'size'"),
        (_columns(kind, size=["1,5", "1.5", "2", "x"]), {"size": ","}, "decimal mark ',' in 2 rows, first in row 2"),
        ([[1.0], [2.0]], {"size": ","}, "names columns of a pandas or Polars frame"),
        (_columns(kind, size=["1,5", None, "2", "3"]), {"size": ","}, "not a finite number in 1 (row|point)"),
    ):
        with pytest.raises(shoal.ShoalError, match=says):
            method(points, 2, decimal=marks)


@pytest.mark.parametrize("solve", [shoal.gathering.gather, shoal.gathering.cellular])
@pytest.mark.parametrize("dtype", ["Int64", "Float64", "float64", "int64[pyarrow]"])
def test_a_missing_number_of_pandas_is_counted(solve, dtype):
    frame = pd.DataFrame({"x": range(6), "y": pd.Series([1, None, 3, 4, 5, 6]).astype(dtype)})
    with pytest.raises(InputError, match=r"not a finite number in 1 (row|point)"):
        solve(frame, 2)
    assert len(solve(frame.dropna(), 2).labels) == 5


def test_points_of_an_engine_are_refused_with_a_way_out():
    with pytest.raises(InputError, match=r"not in memory; pass a pandas or Polars frame, such as relation\.pl\(\)"):
        shoal.gathering.gather(_columns("duckdb", age=[1, 2, 3, 4]), 2)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "great-circle", "precomputed"])
@pytest.mark.parametrize("seed", range(3))
def test_when_free_points_are_counted_again_changes_no_answer(metric, seed, monkeypatch):
    """Points that occur several times, too; with no room for corrections, all are counted again after each."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.normal(c, 1.0, (30, 2)) for c in rng.uniform(-9, 9, (4, 2))]).round(seed)
    if metric == "precomputed":
        x = np.sqrt(((x[:, None] - x[None]) ** 2).sum(axis=-1))
    found = []
    for recount in (0, 1, 10**9):
        monkeypatch.setattr(threshold, "RECOUNT", recount)
        found.append(shoal.gathering.gather(x, 5, 0.1, 6, metric=metric, method="rounds"))
    assert all(np.array_equal(found[0].labels, other.labels) for other in found)
    assert len({(f.cost, f.certificate.lower_bound) for f in found}) == 1


def test_the_densest_ball_is_the_first_that_holds_most_free_points(monkeypatch):
    rng = np.random.default_rng(5)
    for recount in (0, 10**9):
        monkeypatch.setattr(threshold, "RECOUNT", recount)
        x = rng.uniform(0, 4, (60, 2)).round(1)
        space, free = space_of(x), np.ones(60, bool)
        counts, near = threshold._FreeCounts(space, 0.8), space.matrix() <= 0.8
        for _ in range(12):
            expected = near[:, free].sum(axis=1)
            v = counts.densest(free, 2)
            assert v == (int(expected.argmax()) if expected.max() >= 2 else -1)
            free[near[max(v, 0)] | (rng.random(60) < 0.05)] = False
