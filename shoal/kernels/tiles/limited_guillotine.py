"""The best guillotine partition under limits, by looking at every rectangle between the distinct coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import njit
from shoal.kernels.tiles.guillotine import MAX, PERIMETER, TILES, halved
from shoal.kernels.tiles.limited import long_side
from shoal.kernels.tiles.selection import KM_PER_DEGREE

NEVER = 1 << 60


class Corners(NamedTuple):
    """The distinct coordinates, and what lies below and left of each corner between them.

    xs, ys   float64[nx], float64[ny]
    sums     int64[nx + 1, ny + 1]      weights of the places
    there    int64[nx + 1, ny + 1]      their number, as some weigh nothing
    tallies  int64[v, nx + 1, ny + 1]   the weight of each value alone
    """

    xs: np.ndarray
    ys: np.ndarray
    sums: np.ndarray
    there: np.ndarray
    tallies: np.ndarray


@njit(cache=True, nogil=True)
def limited_guillotine(lattice, columns, k, cap, sides, objective):
    """The partition that leaves the least weight in no tile, and of those the best.

    lattice     ``Corners``;  columns ``ValueColumns``, sides ``Sides`` of ``limited``
    k, cap      least and largest weight of a tile
    objective   TILES: most tiles, then smallest; MAX: lightest heaviest tile; PERIMETER: smallest
    returns     lost int64 weight in no tile (NEVER: there is no such partition), heaviest tile,
                rects int64[m, 5] bins x low, x high, y low, y high (both ends inside), 1 for a tile

    O(nx^2 ny^2 (nx + ny + v)) time, O(nx^2 ny^2) space.
    """
    xs, ys, sums, there, tallies = lattice
    widest, grid, geographic, leave_out = sides
    nx, ny = xs.size, ys.size
    column, need, share, _ = columns
    lost, value = np.empty((nx, nx, ny, ny), np.int64), np.empty((nx, nx, ny, ny))
    choice = np.empty((nx, nx, ny, ny), np.int32)
    seen, top = np.empty(need.size, np.int64), np.empty(need.size, np.int64)
    spread = (xs[nx - 1] - xs[0] + ys[ny - 1] - ys[0]) * (KM_PER_DEGREE if geographic else 1.0)
    unit = 0.5 / max(sums[nx, ny] * spread, 1e-300)
    limit = widest * (1 + 1e-9) if grid > 0 else widest * (1 - 1e-9)
    for dx in range(nx):
        for dy in range(ny):
            for x1 in range(nx - dx):
                for y1 in range(ny - dy):
                    x2, y2 = x1 + dx, y1 + dy
                    weight = sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, y1] + sums[x1, y1]
                    able = k <= weight <= cap
                    if able:
                        seen[:] = 0
                        top[:] = 0
                        for v in range(column.size):
                            s = tallies[v]
                            held = s[x2 + 1, y2 + 1] - s[x1, y2 + 1] - s[x2 + 1, y1] + s[x1, y1]
                            if held:
                                seen[column[v]] += 1
                                top[column[v]] = max(top[column[v]], held)
                        for c in range(need.size):
                            if seen[c] < need[c] or top[c] * share[c] > weight * (1 + 1e-12):
                                able = False
                    least, best, cut = NEVER, -np.inf, -1
                    if able:
                        a, b, c0, d = _tight(there, x1, x2, y1, y2)
                        if widest > 0 and long_side(xs[a], xs[b], ys[c0], ys[d], grid, geographic) > limit:
                            able = False
                        else:
                            w, h = xs[b] - xs[a], ys[d] - ys[c0]
                            if geographic:
                                w *= KM_PER_DEGREE * np.cos(np.deg2rad((ys[c0] + ys[d]) / 2))
                                h *= KM_PER_DEGREE
                            least = 0
                            best = -float(weight) if objective == MAX else -unit * weight * (w + h)
                            if objective == TILES:
                                best += 1.0
                    if not able and leave_out:
                        least, best = weight, 0.0
                        cut = -2
                    for c in range(x1, x2 + y2 - y1):
                        if c < x2:
                            p, q = (x1, c, y1, y2), (c + 1, x2, y1, y2)
                        else:
                            at = y1 + c - x2
                            p, q = (x1, x2, y1, at), (x1, x2, at + 1, y2)
                        both = min(lost[p[0], p[1], p[2], p[3]] + lost[q[0], q[1], q[2], q[3]], NEVER)
                        one, two = value[p[0], p[1], p[2], p[3]], value[q[0], q[1], q[2], q[3]]
                        got = min(one, two) if objective == MAX else one + two
                        if both < least or (both == least and both < NEVER and got > best + 1e-12):
                            least, best = both, got
                            cut = c if c < x2 else nx + y1 + c - x2
                    lost[x1, x2, y1, y2], value[x1, x2, y1, y2], choice[x1, x2, y1, y2] = least, best, cut
    rects = np.empty((nx * ny + 1, 5), np.int64)
    if lost[0, nx - 1, 0, ny - 1] >= NEVER:
        return NEVER, np.int64(0), rects[:0].copy()
    stack = np.empty((nx + ny + 2, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, nx - 1, 0, ny - 1
    sp, m, heaviest = 1, 0, np.int64(0)
    while sp:
        sp -= 1
        x1, x2, y1, y2 = stack[sp, 0], stack[sp, 1], stack[sp, 2], stack[sp, 3]
        cut = choice[x1, x2, y1, y2]
        if cut < 0:
            rects[m, 0], rects[m, 1], rects[m, 2], rects[m, 3] = x1, x2, y1, y2
            rects[m, 4] = 1 if cut == -1 else 0
            if cut == -1:
                weight = sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, y1] + sums[x1, y1]
                heaviest = max(heaviest, weight)
            m += 1
        else:
            sp = halved(stack, sp, cut, nx)
    return lost[0, nx - 1, 0, ny - 1], heaviest, rects[:m].copy()


@njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _tight(sums, x1, x2, y1, y2):
    """The bins of a rectangle without its empty sides."""
    while x1 < x2 and sums[x1 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x1 + 1, y1] + sums[x1, y1] == 0:
        x1 += 1
    while x2 > x1 and sums[x2 + 1, y2 + 1] - sums[x2, y2 + 1] - sums[x2 + 1, y1] + sums[x2, y1] == 0:
        x2 -= 1
    while y1 < y2 and sums[x2 + 1, y1 + 1] - sums[x1, y1 + 1] - sums[x2 + 1, y1] + sums[x1, y1] == 0:
        y1 += 1
    while y2 > y1 and sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, y2] + sums[x1, y2] == 0:
        y2 -= 1
    return x1, x2, y1, y2


__all__ = ["MAX", "NEVER", "PERIMETER", "TILES", "Corners", "limited_guillotine"]
