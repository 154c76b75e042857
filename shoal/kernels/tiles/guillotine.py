"""The best guillotine partition of one cell by dynamic programming over its rectangles.

A guillotine partition cuts a rectangle straight across, then each part again, and so on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, STEP, njit
from shoal.kernels.tiles.selection import KM_PER_DEGREE

TILES, MAX, PERIMETER = 0, 1, 2
IMPOSSIBLE = -1e300


class Program(NamedTuple):
    """What the dynamic program over one cell of n points writes, along nx and ny lines, at most ``most`` each.

    bx, by  int64[n]          bin of each point
    ends    float64[4, most]  first and last coordinate of each bin by x, then by y
    value   float64[>= t(nx) t(ny)], t(i) = i (i + 1) / 2, scratch; mirror likewise, choice int16 likewise
    rects   int64[>= nx ny + 1, 4] the tiles as bins x low, x high, y low, y high, both ends inside
    """

    bx: np.ndarray
    by: np.ndarray
    ends: np.ndarray
    value: np.ndarray
    mirror: np.ndarray
    choice: np.ndarray
    rects: np.ndarray

    @classmethod
    def of(cls, n: int, nx: int, ny: int) -> Program:
        """Room for n points along at most nx and ny lines."""
        size = nx * (nx + 1) * ny * (ny + 1) // 4
        return cls(
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty((4, max(nx, ny))), np.empty(size), np.empty(size),
            np.empty(size, np.int16), np.empty((nx * ny + 1, 4), np.int64),
        )  # fmt: skip


@njit(**INNER)
def bins(c, w, order, lo, hi, most, total, bin_of, first, last):
    """Runs of distinct coordinates along one axis, at most ``most``, all of them where so few exist.

    Writes bin_of[point], first[bin] and last[bin] (the coordinates at its ends); returns the number of bins.
    """
    distinct = 1
    for t in range(lo + 1, hi):
        if c[order[t]] != c[order[t - 1]]:
            distinct += 1
    share = 0.0 if distinct <= most else total / most
    b = 0
    weight = 0.0
    first[0] = c[order[lo]]
    for t in range(lo, hi):
        p = order[t]
        if t > lo and c[p] != c[order[t - 1]] and weight >= share and b + 1 < most:
            last[b] = c[order[t - 1]]
            b += 1
            first[b] = c[p]
            weight = 0.0
        bin_of[p] = b
        weight += w[p]
    last[b] = c[order[hi - 1]]
    return b + 1


@njit(**INNER)
def _size(box, x1, x2, y1, y2, sx, sy):
    """Half perimeter of the points in bins x1..x2, y1..y2."""
    west, south, east, north = np.inf, np.inf, -np.inf, -np.inf
    for i in range(x1, x2 + 1):
        for j in range(y1, y2 + 1):
            west = min(west, box[0, i, j])
            south = min(south, box[1, i, j])
            east = max(east, box[2, i, j])
            north = max(north, box[3, i, j])
    return (east - west) * sx + (north - south) * sy


@njit(**STEP)
def _summed(points, lo, hi, bx, by, sums, box):
    """Weights of the bins up to each pair of them, and tight bounds of the points in each pair."""
    x, y, w, ox = points.x, points.y, points.weight, points.ox
    for i in range(box.shape[1]):
        for j in range(box.shape[2]):
            box[0, i, j] = box[1, i, j] = np.inf
            box[2, i, j] = box[3, i, j] = -np.inf
    for t in range(lo, hi):
        p = ox[t]
        i, j = bx[p], by[p]
        sums[i + 1, j + 1] += w[p]
        box[0, i, j] = min(box[0, i, j], x[p])
        box[1, i, j] = min(box[1, i, j], y[p])
        box[2, i, j] = max(box[2, i, j], x[p])
        box[3, i, j] = max(box[3, i, j], y[p])
    for i in range(box.shape[1]):
        for j in range(box.shape[2]):
            sums[i + 1, j + 1] += sums[i, j + 1] + sums[i + 1, j] - sums[i, j]


@njit(**INNER)
def halved(stack, sp, cut, lines):
    """Both sides of a cut in place of the rectangle at ``sp``, behind column cut or row cut - lines; the new height."""
    stack[sp + 1, :] = stack[sp, :]
    if cut < lines:
        stack[sp, 1], stack[sp + 1, 0] = cut, cut + 1
    else:
        stack[sp, 3], stack[sp + 1, 2] = cut - lines, cut - lines + 1
    return sp + 2


@njit(**STEP)
def _carved(choice, most, rows, sums, box, scale, stack, rects):
    """The tiles that the choices make of the rectangle on the stack: (how many, the heaviest, weight times size)."""
    sp, m = 1, 0
    heaviest, size = np.int64(0), 0.0
    while sp:
        sp -= 1
        x1, x2, y1, y2 = stack[sp, 0], stack[sp, 1], stack[sp, 2], stack[sp, 3]
        cut = choice[(x2 * (x2 + 1) // 2 + x1) * rows + y2 * (y2 + 1) // 2 + y1]
        if cut < 0:
            rects[m, 0], rects[m, 1], rects[m, 2], rects[m, 3] = x1, x2, y1, y2
            m += 1
            weight = sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, y1] + sums[x1, y1]
            heaviest = max(heaviest, weight)
            size += weight * _size(box, x1, x2, y1, y2, scale[0], scale[1])
        else:
            sp = halved(stack, sp, cut, most)
    return m, heaviest, size


@njit(cache=True, nogil=True)
def guillotine(points, lo, hi, k, cap, objective, most, room):
    """Best value over the guillotine partitions of the points in slice [lo, hi), along at most ``most`` lines per axis.

    points       ``Points``;  lo, hi int64 the cell's slice of both orders
    k, cap       least weight of a tile, and the weight above which a tile is penalized (TILES) by its excess
    objective    TILES: most tiles, then least half perimeter times weight; MAX: least heaviest tile;
                 PERIMETER: least half perimeter times weight
    room         ``Program``, written
    returns      number of tiles (0: not even the whole cell weighs k), number of bins nx, ny, weight of the heaviest
                 tile, sum of weight times half perimeter (km if geographic)

    O(nx^2 ny^2 (nx + ny)) time.
    """
    x, y, w, ox, oy, geographic = points
    bx, by, ends, value, mirror, choice, rects = room
    total = np.int64(0)
    for t in range(lo, hi):
        total += w[ox[t]]
    nx = bins(x, w, ox, lo, hi, most, total, bx, ends[0], ends[1])
    ny = bins(y, w, oy, lo, hi, most, total, by, ends[2], ends[3])
    if total < k:
        return 0, nx, ny, np.int64(0), 0.0
    inf = np.inf
    sums, box = np.zeros((nx + 1, ny + 1), np.int64), np.empty((4, nx, ny), np.float64)
    _summed(points, lo, hi, bx, by, sums, box)
    sx = sy = 1.0
    if geographic:
        sy = KM_PER_DEGREE
        sx = sy * np.cos(np.deg2rad((y[oy[lo]] + y[oy[hi - 1]]) / 2))
    whole = (x[ox[hi - 1]] - x[ox[lo]]) * sx + (y[oy[hi - 1]] - y[oy[lo]]) * sy
    unit = 0.5 / max(total * whole, 1e-300)
    rows, columns = ny * (ny + 1) // 2, nx * (nx + 1) // 2
    # rectangle of bins x1..x2, y1..y2: row t(x2) + x1, entry t(y2) + y1; the mirror swaps the two, for the cuts by x
    head_x = np.empty((rows, nx), np.int64)  # least x2 at which x1.. weighs k, for each entry
    tail_x = np.empty(rows, np.int64)  # largest x1 at which ..x2 weighs k
    head_y = np.empty(ny, np.int64)  # the same by y, in the present row
    strip = np.empty((4, ny))  # tight bounds of x1..x2 in each bin by y
    for i in range(rows):
        for j in range(nx):
            head_x[i, j] = nx
    for x2 in range(nx):
        for i in range(rows):
            tail_x[i] = -1
        for j in range(ny):
            strip[0, j] = strip[1, j] = inf
            strip[2, j] = strip[3, j] = -inf
        for x1 in range(x2, -1, -1):
            row = x2 * (x2 + 1) // 2 + x1
            here = row * rows
            for j in range(ny):
                head_y[j] = ny
                strip[0, j] = min(strip[0, j], box[0, x1, j])
                strip[1, j] = min(strip[1, j], box[1, x1, j])
                strip[2, j] = max(strip[2, j], box[2, x1, j])
                strip[3, j] = max(strip[3, j], box[3, x1, j])
            tail_y = -1  # largest y1 at which ..y2 weighs k, in the present row
            for y2 in range(ny):
                while tail_y < y2 and (
                    sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, tail_y + 1] + sums[x1, tail_y + 1] >= k
                ):
                    tail_y += 1
                if tail_y < 0:
                    continue
                west, south, east, north = inf, inf, -inf, -inf
                for y1 in range(y2, -1, -1):
                    west, south = min(west, strip[0, y1]), min(south, strip[1, y1])
                    east, north = max(east, strip[2, y1]), max(north, strip[3, y1])
                    if y1 > tail_y:
                        continue
                    weight = sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, y1] + sums[x1, y1]
                    entry = y2 * (y2 + 1) // 2 + y1
                    best = IMPOSSIBLE
                    cut = -1
                    head_x[entry, x1] = min(head_x[entry, x1], x2)
                    tail_x[entry] = max(tail_x[entry], x1)
                    head_y[y1] = min(head_y[y1], y2)
                    if weight >= 2 * k:
                        there = entry * columns
                        for c in range(head_x[entry, x1], tail_x[entry]):
                            a = mirror[there + c * (c + 1) // 2 + x1]
                            b = mirror[there + x2 * (x2 + 1) // 2 + c + 1]
                            v = min(a, b) if objective == MAX else a + b
                            if v > best:
                                best, cut = v, c
                        for c in range(head_y[y1], tail_y):
                            a = value[here + c * (c + 1) // 2 + y1]
                            b = value[here + y2 * (y2 + 1) // 2 + c + 1]
                            v = min(a, b) if objective == MAX else a + b
                            if v > best:
                                best, cut = v, most + c
                    if cut < 0:  # a cut never makes a cell worse
                        if objective == MAX:
                            best = -float(weight)
                        else:
                            best = -unit * weight * ((east - west) * sx + (north - south) * sy)
                            if objective == TILES:
                                best += 1.0 - 10.0 * max(0, weight - cap) / k
                    value[here + entry] = best
                    mirror[entry * columns + row] = best
                    choice[here + entry] = cut
    stack = np.empty((nx + ny + 2, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, nx - 1, 0, ny - 1
    m, heaviest, size = _carved(choice, most, rows, sums, box, (sx, sy), stack, rects)
    return m, nx, ny, heaviest, size
