"""Degrees told by the columns' names, codes told from places."""

import numpy as np
import pytest

from shoal.model.metric import codes, in_degrees, kind_of


@pytest.mark.parametrize(
    ("x", "y", "kind"),
    [
        ("LONGITUD", "LATITUDE", "geographic"),
        ("lng", "lat", "geographic"),
        ("pickup_longitude", "pickup_latitude", "geographic"),
        ("startLng", "startLat", "geographic"),
        ("INTPTLON", "INTPTLAT", "geographic"),
        ("lat", "lng", "projected"),
        ("x", "y", "projected"),
        ("length", "latent", "projected"),
        ("easting", "northing", "projected"),
    ],
)
def test_kinds_by_name(x, y, kind):
    assert kind_of(x, y) == kind


def test_codes_are_no_places():
    points = np.array([
        [777.7777, 77.7777], [-999.9999, 99.9999], [0, 0], [-0.0, 0.0], [88.8888, 41.5], [88.8888, 42.5],
        [-72.5, 41.5], [77.7777, 12.5], [0, 51.5], [-9.9, 38.7], [12.3456, 78.9], [-71.1, 99.9999],
    ])  # fmt: skip
    assert codes(points).tolist() == [True] * 6 + [False] * 5 + [True]
    assert codes(points[2:4], geographic=False).tolist() == [False, False]
    assert codes(np.array([[9999.0, 9999.0], [12.0, 13.0]]), geographic=False).tolist() == [True, False]
    assert codes(np.empty((0, 2))).tolist() == []


def test_the_range_of_degrees():
    assert in_degrees(np.array([[-180.0, 90], [359, -90], [np.nan, 5]]))
    assert not in_degrees(np.array([[0.0, 91]]))
    assert not in_degrees(np.array([[400.0, 0]]))
    assert not in_degrees(np.array([[0.0, 0], [-181.0, 0]]))
    assert not in_degrees(np.empty((0, 2)))
