"""Tiles against every partition there is, the theorem's factor, the tight families and the date line."""

import datetime
import types

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.problems.catalogue import names
from shoal.problems.tiles import grid, levels, split
from shoal.problems.tiles.cells import KM_PER_DEGREE, round_cuts
from shoal.watching import listening
from tests.families.tiles import bare_cross, pinwheel, tight_cross
from tests.oracles import tiles as oracle

METHODS = ["auto", *names("tiles")]
small = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)),
    min_size=1,
    max_size=9,
    unique_by=lambda p: p[:2],
)
larger = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 4)), min_size=1, max_size=60)
modest = settings(deadline=None, max_examples=40)


def unzip(items):
    return [p[:2] for p in items], [p[2] for p in items]


@pytest.mark.parametrize("objective", ["tiles", "max", "perimeter", "sumsq"])
@pytest.mark.parametrize("method", METHODS)
@modest
@given(items=larger, k=st.integers(1, 12))
def test_tiles_cover_the_plane_and_hold_k(method, objective, items, k):
    points, weights = unzip(items)
    k = min(k, sum(weights))
    assume(k)
    tiles = split(points, k, weights, method=method, objective=objective)
    oracle.check(points, weights, k, tiles)
    assert len(tiles) <= tiles.certificate.details["tiles_at_most"]


@pytest.mark.parametrize("method", [m for m in METHODS if m != "mondrian"])
@modest
@given(items=larger, k=st.integers(1, 12))
def test_no_tile_can_be_cut_so_the_factor_holds(method, items, k):
    points, weights = unzip(items)
    k = min(k, sum(weights))
    assume(k)
    tiles = split(points, k, weights, method=method)
    p, w = np.array(points), np.array(weights)
    for i in range(len(tiles)):
        assert not oracle.can_be_cut(p[tiles.labels == i], w[tiles.labels == i], k)
    assert tiles.cost <= 4 * (k - 1) + max(k, *weights, *multiplicities(points, weights))


def multiplicities(points, weights):
    found = {}
    for p, w in zip(points, weights, strict=True):
        found[p] = found.get(p, 0) + w
    return found.values()


@settings(deadline=None, max_examples=60)
@given(items=small, k=st.integers(1, 5))
def test_best_cuts_is_the_optimum_over_guillotine_partitions(items, k):
    points, weights = unzip(items)
    k = min(k, sum(weights))
    assume(k)
    outcomes = oracle.guillotine(points, weights, k)
    most = split(points, k, weights, method="best_cuts", objective="tiles")
    count = max(len(w) for w, _ in outcomes)
    assert len(most) == count
    size = half_perimeter_sum(most)
    assert size == pytest.approx(min(s for w, s in outcomes if len(w) == count))
    lightest = split(points, k, weights, method="best_cuts", objective="max")
    assert lightest.cost == min(max(w) for w, _ in outcomes)
    smallest = split(points, k, weights, method="best_cuts", objective="perimeter")
    assert half_perimeter_sum(smallest) == pytest.approx(min(s for _, s in outcomes))
    details = smallest.certificate.details
    assert details["half_perimeter_at_least"] <= details["half_perimeter"] + 1e-12
    even = split(points, k, weights, method="best_cuts", objective="sumsq")
    least = min(sum(v * v for v in w) for w, _ in outcomes)
    assert sum(v * v for v in even.counts.tolist()) == even.certificate.details["squares"] == least
    assert half_perimeter_sum(even) == pytest.approx(min(s for w, s in outcomes if sum(v * v for v in w) == least))
    assert even.certificate.details["squares_bound"] <= least


@pytest.mark.parametrize(
    ("method", "limits"),
    [("least_waste", {}), *((m, limits) for m in ("best_cuts", "auto") for limits in ({}, {"max_width": 100}))],
)
def test_even_tiles_may_be_wider(method, limits):
    """Records 4, 2 and 3 at 0, 1 and 10: the small tiles hold 6 and 3, the even ones 4 and 5."""
    given = [(0, 0), (1, 0), (10, 0)], 3, [4, 2, 3], method
    assert sorted(split(*given, objective="perimeter", **limits).counts.tolist()) == [3, 6]
    even = split(*given, objective="sumsq", **limits)
    assert sorted(even.counts.tolist()) == [4, 5]
    assert even.certificate.details["squares"] == even.certificate.details["squares_bound"] == 41


@settings(deadline=None, max_examples=80)
@given(items=small, k=st.integers(1, 5))
def test_no_search_for_the_least_squares_is_below_the_bound_or_above_the_most_tiles(items, k):
    points, weights = unzip(items)
    k = min(k, sum(weights))
    assume(k)
    for method in ("least_waste", "auto", "kd_tree"):
        facts = split(points, k, weights, method=method, objective="sumsq").certificate.details
        assert facts["squares_bound"] <= facts["squares"]
    most = split(points, k, weights, method="least_waste").certificate.details
    assert split(points, k, weights, "least_waste", objective="sumsq").certificate.details["squares"] <= most["squares"]


def half_perimeter_sum(tiles):
    return float((tiles.counts * (tiles.boxes[:, 2:] - tiles.boxes[:, :2]).sum(axis=1)).sum())


def test_the_cross_as_printed_has_one_tile_at_best():
    points, weights = bare_cross(7)
    assert oracle.optimum(points, weights, 7) == (1, 5 * 7 - 4)
    assert split(points, 7, weights).cost == 5 * 7 - 4


@pytest.mark.parametrize("k", [5, 6, 17, 50])
def test_the_kd_tree_meets_its_worst_case_on_the_cross_with_outer_records(k):
    points, weights = tight_cross(k)
    assert split(points, k, weights, method="kd_tree").cost == 5 * k - 4
    best = split(points, k, weights, method="best_cuts", objective="max")
    assert best.cost == k  # the optimum: no tile weighs less
    assert best.certificate.optimal
    assert split(points, k, weights, method="least_waste").cost == k


def test_a_pinwheel_beats_every_guillotine_partition():
    points, weights = pinwheel(5)
    assert oracle.optimum(points, weights, 5) == (5, 5)
    best = split(points, 5, weights, method="best_cuts", objective="max")
    assert (len(best), best.cost) == (4, 9)
    assert best.certificate.lower_bound == 5


@pytest.mark.parametrize("k", [1, 3, 10, 37])
def test_proportional_reaches_the_bound_when_coordinates_are_distinct(k):
    points = np.random.default_rng(5).permutation(4000).reshape(2, 2000).T
    tiles = split(points, k, method="proportional", objective="max")
    assert tiles.certificate.optimal
    assert len(tiles) == 2000 // k
    oracle.check(points, None, k, tiles)


def test_least_waste_loses_less_than_half_a_percent_on_distinct_points():
    points = np.random.default_rng(6).normal(size=(800, 2))
    for k in (4, 20):
        tiles = split(points, k)
        oracle.check(points, None, k, tiles)
        assert len(tiles) >= 0.995 * (800 // k)
        assert (
            split(points, k, method="mondrian").certificate.details["half_perimeter"]
            > (tiles.certificate.details["half_perimeter"])
        )


@pytest.mark.parametrize("rule", ["widest", "median", "least_waste"])
def test_cut_rules_of_the_kd_tree(rule):
    points = np.random.default_rng(7).integers(0, 40, (900, 2))
    tiles = split(points, 6, method="kd_tree", rule=rule)
    oracle.check(points, None, 6, tiles)
    assert tiles.certificate.details["rule"] == rule


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("objective", ["tiles", "max", "perimeter"])
def test_one_place_one_tile(method, objective):
    tiles = split([(2.0, 3.0)] * 4, 3, method=method, objective=objective)
    assert tiles.bounds.tolist() == [[-np.inf, -np.inf, np.inf, np.inf]]
    assert tiles.counts.tolist() == [4]
    assert tiles.certificate.optimal


@pytest.mark.parametrize("method", ["kd_tree", "least_waste", "best_cuts"])
def test_points_on_a_line(method):
    points = [(x, 1.5) for x in range(30)]
    tiles = split(points, 7, method=method, objective="max")
    oracle.check(points, None, 7, tiles)
    assert np.isinf(tiles.bounds[:, [1, 3]]).all()


def test_weights_are_as_good_as_repeated_points():
    rng = np.random.default_rng(8)
    points, weights = rng.integers(0, 30, (200, 2)), rng.integers(1, 5, 200)
    once = split(points, 9, weights)
    often = split(np.repeat(points, weights, axis=0), 9)
    assert (np.repeat(once.labels, weights) == often.labels).all()
    assert (once.bounds == often.bounds).all()


def test_centers_are_means():
    tiles = split([(0, 0), (2, 0), (10, 4), (10, 8)], 2, [1, 3, 1, 1])
    assert sorted(tiles.centers.tolist()) == [[1.5, 0.0], [10.0, 6.0]]


def test_crowding_is_a_stronger_bound_than_counting():
    # four places of 4 and k = 5: two of them together weigh 8, and a lone one has no light place to lean on
    points, weights = [(i, i) for i in range(4)], [4, 4, 4, 4]
    tiles = split(points, 5, weights)
    assert tiles.certificate.lower_bound == 8 == tiles.cost
    assert "crowding" in tiles.certificate.bound


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6, allow_subnormal=False), st.floats(1e-9, 1e3)).map(lambda p: (p[0], p[0] + p[1])),
        min_size=1,
        max_size=20,
    )
)
@settings(deadline=None)
def test_round_cuts_lie_in_their_gap(gaps):
    below, above = (np.array(c) for c in zip(*gaps, strict=True))
    keep = below < above
    cut = round_cuts(below[keep], above[keep])
    assert ((below[keep] < cut) & (cut <= above[keep])).all()


def test_round_cuts_are_short():
    cut = round_cuts(np.array([0.1234, -0.5, 51.49731, 3.0, -7.0]), np.array([0.1811, 0.25, 51.49735, 4.0, -3.0]))
    assert cut.tolist() == [0.15, 0.0, 51.49733, 4.0, -5.0]


def test_the_earth_is_the_kernels_earth():
    from shoal.kernels.tiles import guillotine

    assert guillotine.KM_PER_DEGREE == KM_PER_DEGREE


# --- geographic coordinates -----------------------------------------------------------------------------------------


def fiji(n=400, seed=1):
    """Longitudes on both sides of 180 degrees."""
    rng = np.random.default_rng(seed)
    lng = 180 + rng.normal(0, 1.5, n)
    return np.stack([np.where(lng >= 180, lng - 360, lng), rng.normal(-18, 1, n)], axis=1)


def test_the_date_line_is_no_border():
    points = fiji()
    tiles = split(points, 10, coordinates="geographic")
    assert tiles.counts.sum() == 400
    assert tiles.counts.min() >= 10
    inside = np.stack([tiles.contains(i, points) for i in range(len(tiles))], axis=1)
    assert (inside.sum(axis=1) == 1).all()
    assert (inside.argmax(axis=1) == tiles.labels).all()
    across = tiles.bounds[:, 0] > tiles.bounds[:, 2]
    assert across.any()
    shifted = split(np.stack([points[:, 0] % 360 - 180, points[:, 1]], axis=1), 10, coordinates="geographic")
    assert (shifted.labels == tiles.labels).all()
    assert tiles.certificate.details["half_perimeter"] < 400
    assert (np.abs(tiles.centers[:, 0]) > 170).all()


def test_longitudes_of_0_to_360_come_back_as_such():
    points = fiji()
    east = np.stack([points[:, 0] % 360, points[:, 1]], axis=1)
    a, b = split(points, 10, coordinates="geographic"), split(east, 10, coordinates="geographic")
    assert (a.labels == b.labels).all()
    assert (b.centers[:, 0] > 170).all()
    finite = np.isfinite(b.bounds[:, 0])
    assert (b.bounds[finite, 0] >= 0).all()


def test_minus_180_and_180_are_one_meridian():
    points = [(-180.0, 10.0), (180.0, 10.0), (179.0, 10.0), (-179.0, 10.0)]
    tiles = split(points, 2, coordinates="geographic")
    assert tiles.labels[0] == tiles.labels[1]


def test_around_the_world():
    lng = np.linspace(-180, 180, 720, endpoint=False)
    points = np.stack([lng, np.tile([-40, 0, 40], 240)], axis=1)
    tiles = split(points, 30, coordinates="geographic")
    inside = np.stack([tiles.contains(i, points) for i in range(len(tiles))], axis=1)
    assert (inside.sum(axis=1) == 1).all()


def test_degrees_of_longitude_shrink_with_latitude():
    rng = np.random.default_rng(3)
    points = np.stack([rng.uniform(0, 1, 500), rng.uniform(60, 61, 500)], axis=1)
    tiles = split(points, 250, coordinates="geographic")
    assert np.isinf(tiles.bounds[:, [0, 2]]).all()  # cut across the longer side, the meridian
    with_box = split(points, 500, coordinates="geographic").certificate.details
    assert with_box["half_perimeter"] == pytest.approx(111.2 * (1 + 0.5), rel=0.03)
    assert with_box["unit_of_half_perimeter"] == "km"


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "k", "more", "error", "says"),
    [
        ([(0, 0)], 2, {}, InfeasibleError, "there is 1 record in all, fewer than k = 2"),
        (np.zeros((0, 2)), 1, {}, InfeasibleError, "there are 0 records in all"),
        ([(0, 0)], 0, {}, PolicyError, "k=0"),
        ([(0, 0)], 1.5, {}, PolicyError, "k=1.5"),
        ([(0, 0)], "2", {}, PolicyError, "k='2'"),
        ([(0, 0, 0)], 1, {}, InputError, "shape"),
        ([(0, np.nan)], 1, {}, InputError, "not a finite number"),
        ([("a", "b")], 1, {}, InputError, "numbers"),
        ([(0, 0)], 1, {"weights": [1, 2]}, InputError, "one number for each"),
        ([(0, 0)], 1, {"weights": [-1]}, InputError, "negative"),
        ([(0, 0)], 1, {"weights": [1.5]}, InputError, "whole numbers"),
        ([(0, 0)], 1, {"weights": ["x"]}, InputError, "whole numbers"),
        ([(0, 0)], 1, {"method": "kdtree"}, PolicyError, "did you mean 'kd_tree'"),
        ([(0, 0)], 1, {"objective": "maximum"}, PolicyError, "objective"),
        ([(0, 0)], 1, {"coordinates": "polar"}, PolicyError, "coordinates"),
        ([(0, 0)], 1, {"effort": "much"}, PolicyError, "effort"),
        ([(0, 0)], 1, {"effort": -1.0}, PolicyError, "effort"),
        ([(0, 0)], 1, {"method": "kd_tree", "rule": "wide"}, PolicyError, "cut rule"),
        ([(0, 0)], 1, {"rule": "median"}, PolicyError, "rule='median' has no effect without method='kd_tree'; say tha"),
        ([(0, 0)], 1, {"method": "mondrian", "rule": "least_waste"}, PolicyError, "without method='kd_tree'"),
        ([(0, 0)], 1, {"seed": 3}, PolicyError, "seed=3 has no effect without center='draw'; say that too, or leave"),
        ([(0, 91)], 1, {"coordinates": "geographic"}, InputError, "latitudes"),
        ([(500, 0)], 1, {"coordinates": "geographic"}, InputError, "longitudes"),
        ([(-10, 0), (200, 0)], 1, {"coordinates": "geographic"}, InputError, "longitudes"),
    ],
)
def test_refusals(points, k, more, error, says):
    with pytest.raises(error, match=says):
        split(points, k, **more)


PLACES = [(i * 7 % 13 / 4, i * 5 % 11 / 8) for i in range(24)]


def framed(kind, x, y, **more):
    frame = pl.DataFrame({"lon": x, "lat": y, **more}, strict=False)
    return frame if kind == "polars" else frame.to_pandas()


def with_commas(values):
    return [f"{v:.3f}".replace(".", ",") for v in values]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("held", [pl.String, pl.Categorical])
def test_texts_with_a_decimal_mark_are_cut_as_numbers(kind, held, tmp_path):
    x, y = zip(*PLACES, strict=True)
    plain = split(PLACES, 3)
    frame = framed(kind, pl.Series(with_commas(x), dtype=held), pl.Series(with_commas(y), dtype=held))
    marks = {"lon": ",", "lat": ","}
    found = split(frame, 3, decimal=marks)
    assert np.array_equal(found.bounds, plain.bounds)
    assert np.array_equal(found.labels, plain.labels)
    assert levels(frame, [2, 4], decimal=marks).labels == levels(PLACES, [2, 4]).labels
    assert grid(frame, [0.5, 1], decimal=marks).labels == grid(PLACES, [0.5, 1]).labels
    made = shoal.release(found, frame, x="lon", y="lat", decimal=marks)
    made.write(tmp_path / "places.csv")
    assert made.certificate == plain.certificate
    data = tmp_path / "points.csv"
    pl.DataFrame({"lon": with_commas(x), "lat": with_commas(y)}).write_csv(data, separator=";")
    assert shoal.verify(tmp_path / "places.csv", tmp_path / "places.certificate.json", data).holds


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("held", "marks", "says"),
    [
        (["1,5", "2,5", "3,5"], {}, r"'lon' holds no numbers in any row; .*decimal mark \(decimal\['lon'\] = ','"),
        (["1,5", "2", "3"], {}, r"'lon' has no finite number in 1 row, first in row 1; .* mark \(decimal\['lon'"),
        (["1.5", "2,5", "3"], {"lon": ","}, "'lon' has no finite number with the decimal mark ',' in 1 row, first"),
        (["1.5", "two", "3"], {}, "'lon' has no finite number in 1 row, first in row 2; correct these values"),
        ([1.5, None, 3.0], {}, "'lon' has no finite number in 1 row, first in row 2; correct these values"),
        ([1.5, np.inf, 3.0], {}, "'lon' has no finite number in 1 row, first in row 2; correct these values"),
        ([None, None, None], {}, "'lon' is empty; name a column of numbers"),
        ([datetime.date(2020, 1, 1)] * 3, {}, "'lon' holds dates or durations; turn them into numbers"),
        ([1, 2, 3], {"long": ","}, "'long' is not a column .*; did you mean 'lon'"),
        ([1, 2, 3], {"lon": ";"}, "a decimal mark is ',' or '.'"),
    ],
)  # fmt: skip
def test_a_column_without_numbers_is_named(kind, held, marks, says):
    with pytest.raises(shoal.ShoalError, match=says) as told:
        split(framed(kind, held, [1, 2, 3]), 2, decimal=marks)
    assert "two" not in str(told.value)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_of_points_has_two_columns(kind):
    with pytest.raises(InputError, match=r"this frame has 3; pass two, such as frame\[\['lon', 'lat'\]\]"):
        split(framed(kind, [1, 2], [1, 2], age=[3, 4]), 1)
    with pytest.raises(InputError, match="this frame has 1; pass two"):
        split(framed(kind, [1, 2], [1, 2])[["lon"]], 1)
    with pytest.raises(PolicyError, match="names columns of a pandas or Polars frame, and the points are none"):
        split(PLACES, 2, decimal={"lon": ","})
    with pytest.raises(InputError, match=r"not in memory; pass a pandas .* frame\.collect\(\) of Polars"):
        split(pl.LazyFrame({"lon": [1], "lat": [1]}), 1)
    with pytest.raises(InputError, match=r"the points have geometries; pass .*: frame\.get_coordinates\(\)"):
        split(types.SimpleNamespace(get_coordinates=None, to_numpy=None, columns=["geometry"]), 1)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_latitudes_before_longitudes_are_refused_by_their_names(kind):
    frame = framed(kind, [1.0, 2.0], [3.0, 4.0])
    with pytest.raises(PolicyError, match=r"'lat' is a column of latitudes .*: frame\[\['lon', 'lat'\]\]"):
        split(frame[["lat", "lon"]], 1, coordinates="geographic")
    assert len(split(frame[["lat", "lon"]], 1)) == 2  # a plane
    assert len(split(frame, 1, coordinates="geographic")) == 2
    with pytest.raises(PolicyError, match=r"'lon' is a column of longitudes .*: frame\[\['lat', 'lon'\]\]"):
        shoal.gathering.gather(frame, 1, metric="great-circle")
    assert shoal.gathering.gather(frame[["lat", "lon"]], 2, metric="great-circle").clusters == 1


def test_a_release_of_other_columns_than_were_cut_is_refused_with_the_way_out(tmp_path):
    frame = pl.DataFrame({"x": [p[0] for p in PLACES], "y": [-p[1] for p in PLACES]})
    made = shoal.release(split(frame, 3), frame, x="y", y="x")
    with pytest.raises(shoal.VerificationError, match="Pass the data that the answer was made of, with the same col"):
        made.write(tmp_path / "places.csv")
    assert not [*tmp_path.iterdir()]


def test_best_cuts_refuses_more_rectangles_than_fit():
    points = np.random.default_rng(0).normal(size=(200, 2))
    with pytest.raises(PolicyError, match="rectangles"):
        split(points, 5, method="best_cuts")


def test_tiles_are_closed_below_and_open_above():
    tiles = split([(x, y) for x in range(6) for y in range(6)], 4)
    inner = {e for e in tiles.bounds.ravel().tolist() if np.isfinite(e)}
    lines = sorted(inner | {-7.0, 100.0})
    corners = np.array([(x, y) for x in lines for y in lines])
    inside = np.stack([tiles.contains(i, corners) for i in range(len(tiles))], axis=1)
    assert (inside.sum(axis=1) == 1).all()
    for i, (west, south, east, north) in enumerate(tiles.bounds.tolist()):
        assert not np.isfinite([west, south]).all() or tiles.contains(i, np.array([(west, south)]))[0]
        assert not np.isfinite([east, south]).all() or not tiles.contains(i, np.array([(east, south)]))[0]
        assert not np.isfinite([west, north]).all() or not tiles.contains(i, np.array([(west, north)]))[0]


def test_proportional_need_not_be_optimal_with_weights():
    points, weights = [(0, 0), (1, 0), (2, 0), (3, 0)], [8, 9, 3, 11]
    assert split(points, 9, weights, "proportional", objective="max").cost == 20
    assert split(points, 9, weights, "best_cuts", objective="max").cost == 17
    assert split(points, 9, weights, "proportional", objective="max").certificate.lower_bound <= 17


@pytest.mark.parametrize("objective", ["tiles", "perimeter", "max"])
def test_tiles_tell_their_share_of_the_way(objective):
    points = np.random.default_rng(4).normal(size=(400, 2))
    shares: list[float] = []
    with listening(shares.append):
        split(points, 5, objective=objective, effort="fast")
    assert len(shares) >= 2
    assert shares == sorted(shares)
    assert 0 <= shares[0] < shares[-1] <= 1


def test_levels_of_tiles_tell_their_share_after_one_another():
    shares: list[float] = []
    with listening(shares.append):
        levels(np.random.default_rng(4).normal(size=(400, 2)), [5, 20])
    assert shares == sorted(shares)
    assert shares[0] < 0.5 <= shares[-1] <= 1
