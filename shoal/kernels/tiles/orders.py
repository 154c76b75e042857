"""Slices of the two orders of the points, by x and by y, cut in step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit


class Points(NamedTuple):
    """n points and their two orders.

    x, y        float64[n]  coordinates
    weight      int64[n]
    ox, oy      int64[n]    the points by x and by y, cell after cell
    geographic  bool        degrees: widths count cos(latitude)
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    ox: np.ndarray
    oy: np.ndarray
    geographic: bool


@njit(**INNER)
def divide(ox, oy, lo, hi, axis, at, mark, spare):
    """Split the slice at position ``at`` of the order of ``axis``; the other order is split stably."""
    order, other = (ox, oy) if axis == 0 else (oy, ox)
    for t in range(lo, hi):
        mark[order[t]] = t >= at
    i, j = lo, 0
    for t in range(lo, hi):
        p = other[t]
        if mark[p]:
            spare[j] = p
            j += 1
        else:
            other[i] = p
            i += 1
    for t in range(j):
        other[i + t] = spare[t]
