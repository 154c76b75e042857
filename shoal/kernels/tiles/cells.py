"""Cutting cells so that as few possible tiles as can be are lost, with the best partition of each small cell.

A cell is a slice [lo, hi) of two orders of the points: ``ox`` by x and ``oy`` by y hold the same points
there.  A cut looks at both orders once and splits the other one stably, so nothing is ever sorted again.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER
from shoal.kernels.tiles.guillotine import MAX, PERIMETER, TILES, guillotine
from shoal.kernels.tiles.orders import divide
from shoal.kernels.tiles.selection import KM_PER_DEGREE

UNDER = 3  # objective of ``settle``: TILES under a ceiling, MAX in the cells that do not keep it


@njit(**INNER)
def _scan(c, other, w, order, lo, hi, k, room, cap, lam, weight, sc, so, whole, near, far, best):
    """The best cut along one axis, if better than ``best``: (score, position, weight left), position -1 if none."""
    at = -1
    left_weight = np.int64(0)
    low, high = np.inf, -np.inf
    b = np.int64(0)
    t = hi - 1
    while t > lo and weight - b >= k:  # ends of the other axis from the right, where a cut can be
        p = order[t]
        low, high = min(low, other[p]), max(high, other[p])
        near[t], far[t] = low, high
        b += w[p]
        t -= 1
    low, high = np.inf, -np.inf
    a = np.int64(0)
    start, stop = c[order[lo]], c[order[hi - 1]]
    parts = np.floor(weight / room)
    for t in range(lo, hi - 1):
        p = order[t]
        low, high = min(low, other[p]), max(high, other[p])
        a += w[p]
        b = weight - a
        if b < k:
            break
        if a < k:
            continue
        here, then = c[p], c[order[t + 1]]
        if here == then:
            continue
        lost = parts - np.floor(a / room) - np.floor(b / room)
        size = a * ((here - start) * sc + (high - low) * so) + b * (
            (stop - then) * sc + (far[t + 1] - near[t + 1]) * so
        )
        score = 1000.0 * lost + size / (weight * whole) + lam * abs(a - b) / weight
        if min(a, b) * 4 < weight and weight > 4 * k:
            score += 1e5  # no slivers: keeps the depth logarithmic
        if cap > 0:
            # how far the part is from a whole number of tiles of at most cap
            over = max(0, a - (a // k) * cap) + max(0, b - (b // k) * cap)
            if over > 0:
                score += 1e6 + 1e3 * over / k
        if score < best:
            best, at, left_weight = score, t + 1, a
    return best, at, left_weight


@njit(**INNER)
def _choose(x, y, w, ox, oy, lo, hi, k, room, cap, lam, weight, geographic, near, far):
    """The best cut of a cell: (axis, position, weight left); axis -1 when it cannot be cut."""
    sx = sy = 1.0
    if geographic:
        sy = KM_PER_DEGREE
        sx = sy * np.cos(np.deg2rad((y[oy[lo]] + y[oy[hi - 1]]) / 2))
    whole = (x[ox[hi - 1]] - x[ox[lo]]) * sx + (y[oy[hi - 1]] - y[oy[lo]]) * sy
    if whole <= 0:
        return -1, -1, 0
    score, at, left = _scan(x, y, w, ox, lo, hi, k, room, cap, lam, weight, sx, sy, whole, near, far, np.inf)
    axis = 0 if at >= 0 else -1
    score, at_y, left_y = _scan(y, x, w, oy, lo, hi, k, room, cap, lam, weight, sy, sx, whole, near, far, score)
    if at_y >= 0:
        return 1, at_y, left_y
    return axis, at, left


@njit(**INNER)
def half_perimeter(x, y, ox, oy, lo, hi, geographic):
    """Width plus height of the points in a slice: km if geographic, else the coordinates' unit."""
    dx = x[ox[hi - 1]] - x[ox[lo]]
    y0, y1 = y[oy[lo]], y[oy[hi - 1]]
    if geographic:
        return KM_PER_DEGREE * (dx * np.cos(np.deg2rad((y0 + y1) / 2)) + y1 - y0)
    return dx + y1 - y0


@njit(**INNER)
def _copy(rows, i, into, j):
    """One cell to another place; assigning a row whole would take a second more to compile."""
    for e in range(7):
        into[j, e] = rows[i, e]


@njit(**INNER)
def _grow(
    x, y, w, ox, oy, k, room, cap, lam, geographic, whole_places, whole_weight, near, far, mark, spare,
    stack, sp, out, m, gaps, cuts, offset,
):  # fmt: skip
    """Cut the cells on the stack until empty; what stays whole is appended to ``out``.  Returns m and cuts."""
    while sp:
        sp -= 1
        lo, hi, weight = stack[sp, 0], stack[sp, 1], stack[sp, 2]
        axis, at, left = -1, -1, np.int64(0)
        if weight >= 2 * k and hi - lo > whole_places and weight > whole_weight:
            axis, at, left = _choose(x, y, w, ox, oy, lo, hi, k, room, cap, lam, weight, geographic, near, far)
        if axis < 0:
            _copy(stack, sp, out, m)
            m += 1
            continue
        order, c = (ox, x) if axis == 0 else (oy, y)
        gaps[cuts, 0], gaps[cuts, 1], gaps[cuts, 2] = axis, c[order[at - 1]], c[order[at]]
        divide(ox, oy, lo, hi, axis, at, mark, spare)
        _copy(stack, sp, stack, sp + 1)  # the left part on top, so that cells come out in the order of their slices
        stack[sp, 0], stack[sp, 2], stack[sp, 3 + axis] = at, weight - left, offset + cuts
        stack[sp + 1, 1], stack[sp + 1, 2], stack[sp + 1, 5 + axis] = at, left, offset + cuts
        cuts += 1
        sp += 2
    return m, cuts


@njit(cache=True, nogil=True)
def least_waste(x, y, w, ox, oy, cells, k, slack, cap, lam, geographic, whole_places, whole_weight, offset):
    """Cut cells, each time where the fewest tiles are lost, then where the parts are smallest.

    x, y        float64[n]   coordinates
    w           int64[n]     weights
    ox, oy      int64[n]     the points by x and by y, cell after cell; permuted in place
    cells       int64[q, 7]  slice low and high, weight, ids of the cuts at x low, y low, x high, y high (-1: none)
    k           int64        least weight of a tile
    slack       float64      a cell of weight W counts as floor(W / (k (1 + slack))) tiles when waste is counted
    cap         int64        prefer cuts after which all tiles can weigh at most cap; 0 for none
    lam         float64      weight of balance among the criteria
    geographic  bool         degrees: widths count cos(latitude)
    whole_places, whole_weight   a cell of at most so many points, or at most that weight, stays whole; 0 for none
    offset      int64        id of the first new cut
    returns     out int64[m, 7] the parts, in the form of ``cells`` and in the order of their slices;
                gaps float64[c, 3] the new cuts: axis and the coordinates next to it

    O(n log n) time, O(n) space.
    """
    n = x.size
    total = np.int64(0)
    for i in range(cells.shape[0]):
        total += cells[i, 2]
    most = min(n, total // k) + cells.shape[0] + 2
    out, gaps = np.empty((most, 7), np.int64), np.empty((most, 3))
    near, far = np.empty(n), np.empty(n)
    mark, spare = np.zeros(n, np.bool_), np.empty(n, np.int64)
    stack = np.empty((most, 7), np.int64)
    m = cuts = 0
    for cell in range(cells.shape[0]):
        _copy(cells, cell, stack, 0)
        m, cuts = _grow(
            x, y, w, ox, oy, k, k * (1 + slack), cap, lam, geographic, whole_places, whole_weight,
            near, far, mark, spare, stack, 1, out, m, gaps, cuts, offset,
        )  # fmt: skip
    return out[:m].copy(), gaps[:cuts].copy()


@njit(cache=True, nogil=True)
def settle(x, y, w, ox, oy, cells, k, cap, lam, geographic, lines, objective, good, offset):
    """Cut each small cell to the end by ``guillotine`` and by least waste, and keep the better partition.

    x .. cells, k, cap, lam, geographic, offset   as in ``least_waste``
    lines       int64   most lines per axis in the dynamic program
    objective   int64   TILES: more tiles; MAX: lighter heaviest tile, then more tiles; PERIMETER, and then: smaller;
                        UNDER: as MAX, but the program makes the most tiles of at most ``good`` where it can
    good        int64   heaviest tiles up to this weight count as equally light
    returns     out, gaps as in ``least_waste``

    What the dynamic program leaves is cut on where its coarse lines missed a cut, so no tile can be cut.
    """
    n = x.size
    total = np.int64(0)
    for i in range(cells.shape[0]):
        total += cells[i, 2]
    most = min(n, total // k) + cells.shape[0] + 2
    out, gaps = np.empty((most, 7), np.int64), np.empty((most, 3))
    near, far = np.empty(n), np.empty(n)
    mark, spare = np.zeros(n, np.bool_), np.empty(n, np.int64)
    keep_x, keep_y = np.empty(n, np.int64), np.empty(n, np.int64)
    bx, by = np.zeros(n, np.int64), np.zeros(n, np.int64)
    stack = np.empty((most, 7), np.int64)
    table = lines * (lines + 1) // 2
    value, mirror = np.empty(table * table), np.empty(table * table)
    choice = np.empty(table * table, np.int16)
    ends, rects = np.empty((4, lines)), np.empty((lines * lines + 1, 4), np.int64)
    tile_of = np.empty((lines, lines), np.int64)
    slot = np.empty(lines * lines + 1, np.int64)
    line = np.empty((2, lines + 1), np.int64)
    m = cuts = 0
    for cell in range(cells.shape[0]):
        lo, hi, weight = cells[cell, 0], cells[cell, 1], cells[cell, 2]
        if weight < 2 * k:
            _copy(cells, cell, out, m)
            m += 1
            continue
        ceiling = cap if cap > 0 else weight
        program = objective
        if objective == UNDER:
            program, ceiling = TILES, good
        while True:
            tiles, nx, ny, heavy, size = guillotine(
                x, y, w, ox, oy, lo, hi, k, ceiling, program, lines, geographic,
                bx, by, ends, value, mirror, choice, rects,
            )  # fmt: skip
            if objective != UNDER or program == MAX or heavy <= good:
                break
            program = MAX
        for t in range(lo, hi):
            keep_x[t], keep_y[t] = ox[t], oy[t]
        m0, cuts0 = m, cuts
        _copy(cells, cell, stack, 0)
        m, cuts = _grow(
            x, y, w, ox, oy, k, float(k), cap, lam, geographic, 0, 0,
            near, far, mark, spare, stack, 1, out, m, gaps, cuts, offset,
        )  # fmt: skip
        heavy_rule, size_rule = np.int64(0), 0.0
        for i in range(m0, m):
            heavy_rule = max(heavy_rule, out[i, 2])
            size_rule += out[i, 2] * half_perimeter(x, y, ox, oy, out[i, 0], out[i, 1], geographic)
        heavy, heavy_rule = max(heavy, good), max(heavy_rule, good)
        if objective in (MAX, UNDER) and heavy != heavy_rule:
            keep_rule = heavy_rule < heavy
        elif objective != PERIMETER and m - m0 != tiles:
            keep_rule = m - m0 > tiles
        else:
            keep_rule = size_rule <= size
        if keep_rule:
            continue
        m, cuts = m0, cuts0
        for i in range(lines + 1):
            line[0, i] = line[1, i] = -1
        for i in range(tiles):
            for a in range(rects[i, 0], rects[i, 1] + 1):
                for b in range(rects[i, 2], rects[i, 3] + 1):
                    tile_of[a, b] = i
            slot[i] = 0
            for axis in range(2):
                at = rects[i, 2 * axis]
                if at and line[axis, at] < 0:
                    line[axis, at] = offset + cuts
                    gaps[cuts, 0] = axis
                    gaps[cuts, 1], gaps[cuts, 2] = ends[2 * axis + 1, at - 1], ends[2 * axis, at]
                    cuts += 1
        for t in range(lo, hi):
            slot[tile_of[bx[keep_x[t]], by[keep_x[t]]]] += 1
        at = lo
        for i in range(tiles):
            j = tiles - 1 - i  # the first tile on top of the stack
            _copy(cells, cell, stack, j)
            stack[j, 0] = at
            at += slot[i]
            stack[j, 1], stack[j, 2] = at, 0
            for axis in range(2):
                if rects[i, 2 * axis]:
                    stack[j, 3 + axis] = line[axis, rects[i, 2 * axis]]
                if rects[i, 2 * axis + 1] + 1 < (nx if axis == 0 else ny):
                    stack[j, 5 + axis] = line[axis, rects[i, 2 * axis + 1] + 1]
        for axis in range(2):
            order, kept = (ox, keep_x) if axis == 0 else (oy, keep_y)
            for i in range(tiles):
                slot[i] = stack[tiles - 1 - i, 0]
            for t in range(lo, hi):
                p = kept[t]
                i = tile_of[bx[p], by[p]]
                order[slot[i]] = p
                slot[i] += 1
                if axis == 0:
                    stack[tiles - 1 - i, 2] += w[p]
        m, cuts = _grow(
            x, y, w, ox, oy, k, float(k), cap, lam, geographic, 0, 0,
            near, far, mark, spare, stack, tiles, out, m, gaps, cuts, offset,
        )  # fmt: skip
    return out[:m].copy(), gaps[:cuts].copy()
