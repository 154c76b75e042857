"""Slices of the two orders of the points, by x and by y, cut in step."""

from __future__ import annotations

from numba import njit

from shoal.kernels import INNER


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
