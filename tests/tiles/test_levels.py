"""Hierarchies of places: tiles within tiles, and grids."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.problems.tiles import grid, levels
from tests.oracles import tiles as oracle

items = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=20, max_size=80)


@settings(deadline=None, max_examples=40)
@given(items, st.sets(st.integers(1, 20), min_size=1, max_size=4))
def test_tiles_lie_within_tiles_and_hold_their_k(points, ks):
    found = levels(points, list(ks))
    assert len(found.tiles) == len(ks)
    for k, tiles in zip(sorted(ks), found.tiles, strict=True):
        oracle.check(points, None, k, tiles)
    for fine, coarse in zip(found.tiles, found.tiles[1:], strict=False):
        parents = {}
        for a, b in zip(fine.labels.tolist(), coarse.labels.tolist(), strict=True):
            assert parents.setdefault(a, b) == b
        inner, outer = fine.bounds, coarse.bounds[[parents[i] for i in range(len(fine))]]
        assert (outer[:, :2] <= inner[:, :2]).all()
        assert (inner[:, 2:] <= outer[:, 2:]).all()


def test_labels_are_lists_from_fine_to_coarse():
    points = np.random.default_rng(1).integers(0, 50, (300, 2)).astype(float)
    found = levels(points, [100, 5, 25])
    assert [t.k for t in found.tiles] == [5, 25, 100]
    labels = found.labels
    assert len(labels) == len(found.places) == len({tuple(p) for p in points.tolist()})
    assert all(len(names) == 4 and names[-1] == "*" for names in labels)
    assert (found.places[found.inverse] == points).all()
    own = labels[found.inverse[17]]
    assert own[0] == found.tiles[0].names()[found.tiles[0].labels[17]]
    assert found.mapping()[tuple(points[17].tolist())] == own
    for level, tiles in enumerate(found.tiles):  # a name is a tile
        assert len({names[level] for names in labels}) == len(tiles)


def test_the_file_is_a_hierarchy(tmp_path):
    points = np.random.default_rng(2).normal(size=(60, 2)).round(3)
    found = levels(points, [5, 20])
    found.write(tmp_path / "places.csv")
    lines = [line.split(";") for line in (tmp_path / "places.csv").read_text().splitlines()]
    assert [line[0] for line in lines] == [f"{x!r} {y!r}" for x, y in found.places.tolist()]
    assert [line[1:] for line in lines] == found.labels


def test_weights_count():
    found = levels([(0, 0), (1, 0), (2, 0), (3, 0)], [4, 8], [4, 4, 4, 4])
    assert [len(t) for t in found.tiles] == [4, 2]


def test_levels_across_the_date_line():
    points = np.array([(179.5, 0), (179.9, 1), (-179.8, 0), (-179.5, 1), (178, 3), (-178, 3)] * 3, float)
    found = levels(points, [3, 6], coordinates="geographic")
    assert set(map(tuple, found.places.tolist())) == set(map(tuple, points.tolist()))
    assert all(t.counts.min() >= t.k for t in found.tiles)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-500, 500), st.integers(-500, 500)), min_size=1, max_size=30),
    st.sampled_from([["0.1", "0.5", "10"], ["1", "2", "4"], ["0.01", "0.03", "0.3", "3"], ["0.25"]]),
)
def test_a_grid_holds_each_decimal_in_its_square(points, sizes):
    decimal = [(Fraction(x, 100), Fraction(y, 100)) for x, y in points]
    found = grid([(float(x), float(y)) for x, y in decimal], [float(s) for s in sizes])
    for point, place in zip(decimal, found.inverse.tolist(), strict=True):
        for level, size in enumerate(sizes):
            text = found.names[level][found.codes[place, level]]
            low_x, high_x, low_y, high_y = (Fraction(t) for part in text.split() for t in part.split(".."))
            assert low_x <= point[0] < high_x
            assert low_y <= point[1] < high_y
            assert high_x - low_x == Fraction(size)


def test_grid_names_and_origin():
    found = grid([(0.3, -0.05), (7.0, 2.0)], [0.1, 10], origin=(0.0, -5.0))
    assert found.labels == [["0.3..0.4 -0.1..0", "0..10 -5..5", "*"], ["7..7.1 2..2.1", "0..10 -5..5", "*"]]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: levels([(0, 0)], []), PolicyError, "at least one k"),
        (lambda: levels([(0, 0)], [2]), InfeasibleError, "fewer than k"),
        (lambda: grid([(0, 0)], []), PolicyError, "at least one"),
        (lambda: grid([(0, 0)], [0]), PolicyError, "positive"),
        (lambda: grid([(0, 0)], [0.2, 0.3]), PolicyError, "whole multiple"),
        (lambda: grid([(0, 0)], [0.2, 0.2]), PolicyError, "whole multiple"),
        (lambda: grid([(0, 0)], [float("nan")]), PolicyError, "positive"),
        (lambda: grid([(1e140, 0)], [0.1]), InputError, "too fine"),
    ],
)
def test_refusals(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_places_that_are_codes_are_told_of_a_release():
    frame = pl.DataFrame({"lng": [8.0, 9.0, 0.0, 77.7777] * 2, "lat": [40.0, 41.0, 0.0, 77.7777] * 2, "q": [1] * 8})
    asked = {"quasi_identifiers": ["q"], "k": 2, "publish": "hierarchy", "effort": "fast"}
    notes = shoal.anonymize(frame, coordinates=("lng", "lat"), **asked).facts.notes
    assert notes[-1].startswith("4 rows with codes for coordinates")
