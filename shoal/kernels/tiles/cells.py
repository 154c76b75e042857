"""Cuts of cells that lose as few possible tiles as possible, and the best partition of each small cell.

A cell is a slice [lo, hi) of two orders of the points: ``ox`` by x and ``oy`` by y contain the same points there. A cut
scans both orders once and splits the other one stably, so no further sorting is necessary.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tiles.guillotine import KM_PER_DEGREE, MAX, PERIMETER, SQUARES, TILES, divide, guillotine

UNDER = 3  # objective of ``finish_cells``: TILES under a ceiling, MAX in cells that exceed it


class CutRule(NamedTuple):
    """The criteria of a cut.

    k      int64: least weight of a tile
    full   float64: to compute lost tiles, a cell of weight W counts as floor(W / full) tiles
    cap    int64: prefer cuts after which all tiles can have weight at most cap; 0 for none
    lam    float64: weight of balance among the criteria
    whole  int64: a cell of at most this weight isn't cut; 0 for none
    """

    k: int
    full: float
    cap: int
    lam: float
    whole: int


class Cell(NamedTuple):
    """A cell of the plane: places lo .. hi - 1 of both orders, and their weight."""

    lo: int
    hi: int
    weight: int


class CutWorkspace(NamedTuple):
    """Working arrays for cuts: near, far float64[n]; mark bool[n], spare int64[n].

    stack int64[..., 7] of cells to be cut.
    """

    near: np.ndarray
    far: np.ndarray
    mark: np.ndarray
    spare: np.ndarray
    stack: np.ndarray


class Made(NamedTuple):
    """The output so far: parts out int64[..., 7] and cuts gaps float64[..., 3]."""

    out: np.ndarray
    gaps: np.ndarray


class CellProgram(NamedTuple):
    """The result of a cell's dynamic program, stored while the other rule is tried.

    by_x, by_y  int64[n]: the orders;  tile: int64[lines, lines], the tile of a pair of bins
    slot int64[lines^2 + 1] of each tile;  line: int64[2, lines + 1], id of the cut before a bin, -1 for none
    """

    by_x: np.ndarray
    by_y: np.ndarray
    tile: np.ndarray
    slot: np.ndarray
    line: np.ndarray


@njit(**LEAN_INNER)
def _scan(points, cell, axis, limits, scale, work, best):
    """The best cut along one axis, if better than ``best``: (score, position, weight on the left), position -1 if none.

    scale  units of x and y, and the cell's half perimeter in them
    """
    x, y, w, ox, oy, _ = points
    lo, hi, weight = cell
    c, other, order = (x, y, ox) if axis == 0 else (y, x, oy)
    sc, so = (scale[0], scale[1]) if axis == 0 else (scale[1], scale[0])
    k, cap = limits.k, limits.cap
    near, far = work.near, work.far
    at = -1
    left_weight = np.int64(0)
    low, high = np.inf, -np.inf
    b = np.int64(0)
    t = hi - 1
    while t > lo and weight - b >= k:  # extents on the other axis from the right, at possible cuts
        p = order[t]
        low, high = min(low, other[p]), max(high, other[p])
        near[t], far[t] = low, high
        b += w[p]
        t -= 1
    low, high = np.inf, -np.inf
    a = np.int64(0)
    start, stop = c[order[lo]], c[order[hi - 1]]
    parts = np.floor(weight / limits.full)
    # Cuts are between different coordinates, with weight at least k on both sides. The score is first the loss compared
    # with a whole number of tiles, then the size of both sides and their imbalance.
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
        lost = parts - np.floor(a / limits.full) - np.floor(b / limits.full)
        size = a * ((here - start) * sc + (high - low) * so) + b * (
            (stop - then) * sc + (far[t + 1] - near[t + 1]) * so
        )
        score = 1000.0 * lost + size / (weight * scale[2]) + limits.lam * abs(a - b) / weight
        if min(a, b) * 4 < weight and weight > 4 * k:
            score += 1e5  # avoid slivers, so that the depth stays logarithmic
        if cap > 0:
            # the distance of the part from a whole number of tiles of at most cap
            over = max(0, a - (a // k) * cap) + max(0, b - (b // k) * cap)
            if over > 0:
                score += 1e6 + 1e3 * over / k
        if score < best:
            best, at, left_weight = score, t + 1, a
    return best, at, left_weight


@njit(**LEAN_INNER)
def _choose(points, cell, limits, work):
    """The best cut of a cell: (axis, position, weight on the left); axis -1 if it can't be cut."""
    x, y, _, ox, oy, geographic = points
    lo, hi, _ = cell
    sx = sy = 1.0
    if geographic:
        sy = KM_PER_DEGREE
        sx = sy * np.cos(np.deg2rad((y[oy[lo]] + y[oy[hi - 1]]) / 2))
    whole = (x[ox[hi - 1]] - x[ox[lo]]) * sx + (y[oy[hi - 1]] - y[oy[lo]]) * sy
    if whole <= 0:
        return -1, -1, 0
    scale = (sx, sy, whole)
    score, at, left = _scan(points, cell, 0, limits, scale, work, np.inf)
    axis = 0 if at >= 0 else -1
    score, at_y, left_y = _scan(points, cell, 1, limits, scale, work, score)
    if at_y >= 0:
        return 1, at_y, left_y
    return axis, at, left


@njit(**LEAN_INNER)
def half_perimeter(points, lo, hi):
    """Width plus height of the points in a slice: in km if geographic, else in the coordinates' unit."""
    x, y, _, ox, oy, geographic = points
    dx = x[ox[hi - 1]] - x[ox[lo]]
    y0, y1 = y[oy[lo]], y[oy[hi - 1]]
    if geographic:
        return KM_PER_DEGREE * (dx * np.cos(np.deg2rad((y0 + y1) / 2)) + y1 - y0)
    return dx + y1 - y0


@njit(**LEAN_INNER)
def _copy(rows, i, into, j):
    """Copy one cell to another row; assigning whole rows takes a second more to compile."""
    for e in range(7):
        into[j, e] = rows[i, e]


@njit(**INNER)
def _workspace(points, cells, k):
    """Working arrays for cuts of these cells, and room for the output."""
    n = points.x.size
    total = np.int64(0)
    for i in range(cells.shape[0]):
        total += cells[i, 2]
    most = min(n, total // k) + cells.shape[0] + 2
    stack = np.empty((most, 7), np.int64)
    work = CutWorkspace(np.empty(n), np.empty(n), np.zeros(n, np.bool_), np.empty(n, np.int64), stack)
    return work, Made(np.empty((most, 7), np.int64), np.empty((most, 3)))


@njit(**INNER)
def _grow(points, limits, work, sp, made, m, cuts, offset):
    """Cut the sp cells on the stack until it is empty; cells that aren't cut are appended to the output.

    Returns m and cuts.
    """
    stack, gaps = work.stack, made.gaps
    while sp:
        sp -= 1
        lo, hi, weight = stack[sp, 0], stack[sp, 1], stack[sp, 2]
        axis, at, left = -1, -1, np.int64(0)
        if weight >= 2 * limits.k and weight > limits.whole:
            axis, at, left = _choose(points, Cell(lo, hi, weight), limits, work)
        if axis < 0:
            _copy(stack, sp, made.out, m)
            m += 1
            continue
        order, c = (points.ox, points.x) if axis == 0 else (points.oy, points.y)
        gaps[cuts, 0], gaps[cuts, 1], gaps[cuts, 2] = axis, c[order[at - 1]], c[order[at]]
        divide(points.ox, points.oy, lo, hi, axis, at, work.mark, work.spare)
        _copy(stack, sp, stack, sp + 1)  # the left part on top, so that the output has the order of the slices
        stack[sp, 0], stack[sp, 2], stack[sp, 3 + axis] = at, weight - left, offset + cuts
        stack[sp + 1, 1], stack[sp + 1, 2], stack[sp + 1, 5 + axis] = at, left, offset + cuts
        cuts += 1
        sp += 2
    return m, cuts


@njit(cache=True, nogil=True)
def least_waste(points, cells, limits, offset):
    """Cut cells where the fewest tiles are lost and, among such cuts, where the parts are smallest.

    points      ``Points``; their orders are permuted in place
    cells       int64[q, 7]: slice low and high, weight, ids of the cuts at x low, y low, x high, y high (-1: none)
    limits      ``CutRule``
    offset      int64: id of the first new cut
    returns     out int64[m, 7]: the parts, in the form of ``cells`` and in the order of their slices; gaps float64[c,
                3]: the new cuts, with axis and the coordinates next to it

    O(n log n) time, O(n) space.
    """
    work, made = _workspace(points, cells, limits.k)
    m = cuts = 0
    for cell in range(cells.shape[0]):
        _copy(cells, cell, work.stack, 0)
        m, cuts = _grow(points, limits, work, 1, made, m, cuts, offset)
    return made.out[:m].copy(), made.gaps[:cuts].copy()


@njit(**INNER)
def _programmed(points, lo, hi, weight, limits, objective, good, program):
    """``guillotine`` of a cell under an objective of ``finish_cells``."""
    lines = program.ends.shape[1]
    ceiling = limits.cap if limits.cap > 0 else weight
    if objective != UNDER:
        return guillotine(points, lo, hi, limits.k, ceiling, objective, lines, program)
    found = guillotine(points, lo, hi, limits.k, good, TILES, lines, program)
    if found[3] <= good:
        return found
    return guillotine(points, lo, hi, limits.k, good, MAX, lines, program)


@njit(**INNER)
def _as_rects(points, origin, shape, work, program, kept, gaps, made):
    """Put the tiles of the program on the stack and the points in their order; returns the number of cuts.

    origin  int64[1, 7]: the cell
    shape   number of tiles, and of bins by x and by y
    made    cuts so far, id of the first
    """
    tiles, nx, ny = shape
    cuts, offset = made
    lo, hi = origin[0, 0], origin[0, 1]
    bx, by, rects, ends = program.bx, program.by, program.rects, program.ends
    line, slot, stack = kept.line, kept.slot, work.stack
    for i in range(line.shape[1]):
        line[0, i] = line[1, i] = -1
    for i in range(tiles):
        for a in range(rects[i, 0], rects[i, 1] + 1):
            for b in range(rects[i, 2], rects[i, 3] + 1):
                kept.tile[a, b] = i
        slot[i] = 0
        for axis in range(2):
            at = rects[i, 2 * axis]
            if at and line[axis, at] < 0:
                line[axis, at] = offset + cuts
                gaps[cuts, 0] = axis
                gaps[cuts, 1], gaps[cuts, 2] = ends[2 * axis + 1, at - 1], ends[2 * axis, at]
                cuts += 1
    for t in range(lo, hi):
        slot[kept.tile[bx[kept.by_x[t]], by[kept.by_x[t]]]] += 1
    at = lo
    for i in range(tiles):
        j = tiles - 1 - i  # the first tile is on top of the stack
        _copy(origin, 0, stack, j)
        stack[j, 0] = at
        at += slot[i]
        stack[j, 1], stack[j, 2] = at, 0
        for axis in range(2):
            if rects[i, 2 * axis]:
                stack[j, 3 + axis] = line[axis, rects[i, 2 * axis]]
            if rects[i, 2 * axis + 1] + 1 < (nx if axis == 0 else ny):
                stack[j, 5 + axis] = line[axis, rects[i, 2 * axis + 1] + 1]
    for axis in range(2):
        order, held = (points.ox, kept.by_x) if axis == 0 else (points.oy, kept.by_y)
        for i in range(tiles):
            slot[i] = stack[tiles - 1 - i, 0]
        for t in range(lo, hi):
            p = held[t]
            i = kept.tile[bx[p], by[p]]
            order[slot[i]] = p
            slot[i] += 1
            if axis == 0:
                stack[tiles - 1 - i, 2] += points.weight[p]
    return cuts


@njit(cache=True, nogil=True)
def finish_cells(points, cells, limits, program, objective, good, offset):
    """Partition each small cell completely by ``guillotine`` and by least waste, and keep the better partition.

    points, cells, limits, offset   as in ``least_waste``; full and whole of the limits are ignored
    program     ``RectangleProgram``, overwritten; its size limits the lines per axis
    objective   int64: TILES: more tiles; MAX: lighter heaviest tile, then more tiles; PERIMETER: smaller, which also
                breaks all ties; SQUARES: the program's partition; UNDER: as MAX, but the program makes the most tiles
                of at most ``good`` if possible
    good        int64: heaviest tiles up to this weight count as equally light
    returns     out, gaps as in ``least_waste``

    Parts of the dynamic program are cut further if its coarse lines missed a cut, so no tile can be cut.
    """
    n, k, lines = points.x.size, limits.k, program.ends.shape[1]
    limits = CutRule(k, float(k), limits.cap, limits.lam, np.int64(0))
    work, made = _workspace(points, cells, k)
    kept = CellProgram(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty((lines, lines), np.int64),
        np.empty(lines * lines + 1, np.int64), np.empty((2, lines + 1), np.int64),
    )  # fmt: skip
    m = cuts = 0
    # Compute both partitions of a cell. The greedy one is in the output, and is replaced if the program's is better.
    for cell in range(cells.shape[0]):
        lo, hi, weight = cells[cell, 0], cells[cell, 1], cells[cell, 2]
        if weight < 2 * k:
            _copy(cells, cell, made.out, m)
            m += 1
            continue
        tiles, nx, ny, heavy, size = _programmed(points, lo, hi, weight, limits, objective, good, program)
        for t in range(lo, hi):
            kept.by_x[t], kept.by_y[t] = points.ox[t], points.oy[t]
        m0, cuts0 = m, cuts
        _copy(cells, cell, work.stack, 0)
        m, cuts = _grow(points, limits, work, 1, made, m, cuts, offset)
        heavy_rule, size_rule = np.int64(0), 0.0
        for i in range(m0, m):
            heavy_rule = max(heavy_rule, made.out[i, 2])
            size_rule += made.out[i, 2] * half_perimeter(points, made.out[i, 0], made.out[i, 1])
        heavy, heavy_rule = max(heavy, good), max(heavy_rule, good)
        if objective in (MAX, UNDER) and heavy != heavy_rule:
            keep_rule = heavy_rule < heavy
        elif objective not in (PERIMETER, SQUARES) and m - m0 != tiles:
            keep_rule = m - m0 > tiles
        else:
            keep_rule = size_rule <= size and objective != SQUARES
        if not keep_rule:
            origin, shape = cells[cell : cell + 1], (tiles, nx, ny)
            cuts = _as_rects(points, origin, shape, work, program, kept, made.gaps, (cuts0, offset))
            m, cuts = _grow(points, limits, work, tiles, made, m0, cuts, offset)
    return made.out[:m].copy(), made.gaps[:cuts].copy()
