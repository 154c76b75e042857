"""What two columns of coordinates hold: degrees or a plane, told by their names; and codes that stand for "unknown"."""

from __future__ import annotations

import re

import numpy as np

_LONGITUDE = {"lng", "lon", "long", "longitude", "longitud", "intptlon", "intptlong", "lngdd", "londd"}
_LATITUDE = {"lat", "latitude", "latitud", "intptlat", "latdd"}
_MET_TWICE = 2  # a single row at 77.7777 may be a place, several are a code


def _tokens(name: str) -> set[str]:
    """Parts of a name in lower case: LATITUDE, pickup_longitude, startLng, lat-dd."""
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return set(re.split(r"[^a-z]+", spaced.lower()))


def is_longitude(name: str) -> bool:
    """Whether a column's name says that it holds longitudes."""
    return bool(_tokens(name) & _LONGITUDE)


def is_latitude(name: str) -> bool:
    """Whether a column's name says that it holds latitudes."""
    return bool(_tokens(name) & _LATITUDE)


def kind_of(x: str, y: str) -> str:
    """ "geographic" when the columns' names say longitude and latitude, else "projected"."""
    return "geographic" if is_longitude(x) and is_latitude(y) else "projected"


def in_degrees(points: np.ndarray) -> bool:
    """Whether every finite x lies in -180..360 and every finite y in -90..90; points float[n, 2]."""
    x, y = points[np.isfinite(points).all(axis=1)].T
    return bool(len(x)) and bool((x >= -180).all() and (x <= 360).all() and (np.abs(y) <= 90).all())


def codes(points: np.ndarray, geographic: bool = True) -> np.ndarray:
    """Which points are codes for "unknown" and no places, bool[n].

    points      float[n, 2]
    geographic  degrees: then a coordinate outside the globe whose digits are all alike is a code too

    A code is, in degrees, the origin (0, 0); a pair of numbers of one repeated digit 7, 8 or 9, four times or more
    (77.7777, 777.7777); or one such number that several points share.
    O(n log n).
    """
    p = np.asarray(points, dtype=np.float64)
    found = np.zeros(len(p), np.bool_)
    if not len(p):
        return found
    alike = np.column_stack([_alike(p[:, 0]), _alike(p[:, 1])])
    found |= alike.all(axis=1)
    for axis, most in ((0, 360.0), (1, 90.0)):
        values = p[alike[:, axis], axis]
        kinds, counts = np.unique(values, return_counts=True)
        known = kinds[(counts >= _MET_TWICE) | (geographic & (np.abs(kinds) > most))]
        found |= np.isin(p[:, axis], known) & alike[:, axis]
    if geographic:  # in a plane the origin is a place like any other
        found |= (p == 0).all(axis=1)
    return found


def _alike(values: np.ndarray) -> np.ndarray:
    """Whether a number is written with one digit 7, 8 or 9 alone, four to eight times, wherever its point stands."""
    size = np.abs(values)
    out = np.zeros(len(values), np.bool_)
    for digits in range(4, 9):
        for whole in range(1, digits + 1):
            for digit in (7, 8, 9):
                code = float(f"{str(digit) * whole}.{str(digit) * (digits - whole)}")
                out |= np.abs(size - code) < 1e-9
    return out
