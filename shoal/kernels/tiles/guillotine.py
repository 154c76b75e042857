"""Guillotine partitions: the best one of a cell by dynamic programming, and kd-trees over millions of points.

A guillotine partition cuts a rectangle straight across, then each part again, and so on. The dynamic program has a
state for each rectangle between the lines of a cell. The kd-tree cuts by weighted selection: without sorting, points
are permuted in place.

Every cut is between two distinct coordinates, so coincident points stay together. The weighted median v of a cell
decides whether the cell can be cut on an axis: of the cuts below v, the closest one has the most weight on its left,
and of those above v, the closest one has the most on its right; the other side has at least half the weight. If neither
leaves k on both sides, no cut does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, STEP, njit

WIDEST, MEDIAN, MONDRIAN, PROPORTIONAL = 0, 1, 2, 3
KM_PER_DEGREE = 111.1950802335329  # of a great circle on a sphere of radius 6371.0088 km


class OrderedPoints(NamedTuple):
    """n points and their two orders.

    x, y        float64[n]: coordinates
    weight      int64[n]
    ox, oy      int64[n]: the points by x and by y, cell after cell
    geographic  bool: degrees; widths are multiplied by cos(latitude)
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    ox: np.ndarray
    oy: np.ndarray
    geographic: bool


class Permuted(NamedTuple):
    """Points that are permuted: x, y float64[n], weight int64[n], ids int64[n] (the original index of each)."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    ids: np.ndarray


@njit(**LEAN_INNER)
def _swap(x, y, w, ids, i, j):
    x[i], x[j] = x[j], x[i]
    y[i], y[j] = y[j], y[i]
    w[i], w[j] = w[j], w[i]
    ids[i], ids[j] = ids[j], ids[i]


@njit(**LEAN_INNER)
def _weighted_select(points, axis, lo, hi, target, seed):
    """Permute [lo, hi) by a coordinate into < v, = v, > v, where v is the value at cumulative weight target.

    points  ``Permuted``;  axis 0: by x, 1: by y
    returns i, j with = v in [i, j), the weight below v, and the weight of v. Expected time proportional to hi - lo.
    """
    x, y, w, ids = points
    c = x if axis == 0 else y
    a, b = lo, hi
    before = np.int64(0)
    # Quickselect by weight: partition around a median of three, then continue on the side that contains the target.
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        p = c[a + (seed >> 20) % (b - a)]
        q = c[a + (b - a) // 2]
        r = c[b - 1]
        v = max(min(p, q), min(max(p, q), r))
        lt, i, gt = a, a, b
        below = np.int64(0)
        equal = np.int64(0)
        while i < gt:
            if c[i] < v:
                below += w[i]
                if i != lt:
                    _swap(x, y, w, ids, i, lt)
                lt += 1
                i += 1
            elif c[i] > v:
                gt -= 1
                _swap(x, y, w, ids, i, gt)
            else:
                equal += w[i]
                i += 1
        if before + below >= target and lt > a:
            b = lt
        elif before + below + equal >= target or gt == b:
            return lt, gt, before + below, equal
        else:
            before += below + equal
            a = gt


@njit(**LEAN_INNER)
def _nearest_cut(points, axis, lo, hi, total, k, target, rule):
    """The feasible cut on one axis closest to the target weight: position (-1: none) and the coordinates next to it."""
    i, j, below, equal = _weighted_select(points, axis, lo, hi, target, np.int64(hi * 31 + lo))
    at = -1
    if rule == MONDRIAN:
        if j < hi and below + equal >= k and total - below - equal >= k:
            at = j
    else:
        miss = np.int64(-1)
        if i > lo and below >= k and total - below >= k:
            at, miss = i, abs(below - target)
        if j < hi and below + equal >= k and total - below - equal >= k:
            other = abs(below + equal - target)
            if miss < 0 or other < miss:
                at = j
    if at < 0:
        return -1, 0.0, 0.0
    c = points.x if axis == 0 else points.y
    low, high = c[lo], c[at]
    for t in range(lo, at):
        low = max(low, c[t])
    for t in range(at, hi):
        high = min(high, c[t])
    return at, low, high


@njit(cache=True, nogil=True)
def select_tree(x, y, w, k, rule, geographic):
    """Cut until no cell can be cut.

    x, y         float64[n]: coordinates, permuted in place; cells end as slices
    w            int64[n]: weights, permuted likewise
    k            int64: least weight of a cell
    rule         int64: WIDEST: wider side first, then the other, closest to the median; MEDIAN: the better balanced of
                 both sides, the wider if within a record; MONDRIAN: wider side first, only the cut right above the
                 median; PROPORTIONAL: as WIDEST, towards a whole number of k on both sides
    geographic   bool: x, y are degrees; widths are multiplied by cos(latitude)
    returns      ids int64[n]: the original index of each point; starts int64[m + 1]: the cells' slices; edges int64[m,
                 4]: cuts at x low, y low, x high, y high (-1: unbounded); axis int8[c], below float64[c], above
                 float64[c]: the axis of each cut and the coordinates next to it

    O(n log(n / k)) expected time, O(n) space.
    """
    n = x.size
    ids = np.arange(n)
    points = Permuted(x, y, w, ids)
    total = np.int64(0)
    for i in range(n):
        total += w[i]
    most = min(n, total // k) + 1
    starts = np.zeros(most + 1, np.int64)
    edges = np.empty((most, 4), np.int64)
    axis = np.empty(most, np.int8)
    below = np.empty(most, np.float64)
    above = np.empty(most, np.float64)
    m = cuts = 0
    depth = 64 + 2 * int(np.log2(n + 1))
    stack = np.empty((max(depth, 256), 7), np.int64)
    stack[0] = np.array([0, n, total, -1, -1, -1, -1])
    sp = 1
    # Take a cell off the stack. If its weight suffices for two cells, cut it by the rule and push both parts.
    while sp:
        sp -= 1
        lo, hi, weight = stack[sp, 0], stack[sp, 1], stack[sp, 2]
        e0, e1, e2, e3 = stack[sp, 3], stack[sp, 4], stack[sp, 5], stack[sp, 6]
        at = -1
        cut_axis = 0
        low = high = 0.0
        if weight >= 2 * k:
            target = (weight + 1) // 2
            if rule == PROPORTIONAL:
                target = max(k * (weight // k // 2), k)
            x0 = x1 = x[lo]
            y0 = y1 = y[lo]
            for t in range(lo + 1, hi):
                x0 = min(x0, x[t])
                x1 = max(x1, x[t])
                y0 = min(y0, y[t])
                y1 = max(y1, y[t])
            wide = x1 - x0
            if geographic:
                wide *= np.cos(np.deg2rad((y0 + y1) / 2))
            first = 0 if wide >= y1 - y0 else 1
            missed = np.int64(-1)  # imbalance of the wider side's cut, under MEDIAN
            # The wider side, then the other. The third turn cuts the wider side again, after MEDIAN has compared both.
            for attempt in range(3):
                cut_axis = first if attempt != 1 else 1 - first
                at, low, high = _nearest_cut(points, cut_axis, lo, hi, weight, k, target, rule)
                if at < 0 and rule == PROPORTIONAL:
                    at, low, high = _nearest_cut(points, cut_axis, lo, hi, weight, k, (weight + 1) // 2, rule)
                if rule != MEDIAN:
                    if at >= 0 or attempt == 1:
                        break
                    continue
                left = np.int64(0)
                for t in range(lo, at):
                    left += w[t]
                if attempt == 0 and at >= 0:
                    missed = abs(2 * left - weight)
                elif attempt == 1 and (missed < 0 or (at >= 0 and abs(2 * left - weight) + 2 < missed)):
                    break  # only the narrower side can be cut, or it is better balanced by more than a record
        if at < 0:
            edges[m, 0], edges[m, 1], edges[m, 2], edges[m, 3] = e0, e1, e2, e3
            m += 1
            starts[m] = hi
            continue
        left = np.int64(0)
        for t in range(lo, at):
            left += w[t]
        axis[cuts], below[cuts], above[cuts] = cut_axis, low, high
        if sp + 2 > stack.shape[0]:
            more = np.empty((2 * stack.shape[0], 7), np.int64)
            for row in range(sp):
                for j in range(7):
                    more[row, j] = stack[row, j]
            stack = more
        # the right part is below the left one on the stack, so that the output has the order of the slices
        stack[sp, 0], stack[sp, 1], stack[sp, 2] = at, hi, weight - left
        stack[sp, 3], stack[sp, 4], stack[sp, 5], stack[sp, 6] = e0, e1, e2, e3
        stack[sp, 3 + cut_axis] = cuts
        stack[sp + 1, 0], stack[sp + 1, 1], stack[sp + 1, 2] = lo, at, left
        stack[sp + 1, 3], stack[sp + 1, 4], stack[sp + 1, 5], stack[sp + 1, 6] = e0, e1, e2, e3
        stack[sp + 1, 5 + cut_axis] = cuts
        sp += 2
        cuts += 1
    return ids, starts[: m + 1], edges[:m], axis[:cuts], below[:cuts], above[:cuts]


TILES, MAX, PERIMETER, SQUARES = 0, 1, 2, 4  # 3: UNDER, of ``finish_cells``
IMPOSSIBLE = -1e300


class RectangleProgram(NamedTuple):
    """Working arrays of the dynamic program over one cell of n points, along nx and ny lines, at most ``most`` each.

    bx, by  int64[n]: bin of each point
    ends    float64[4, most]: first and last coordinate of each bin by x, then by y
    value   float64[>= t(nx) t(ny)], t(i) = i (i + 1) / 2; mirror likewise, choice int16 likewise
    rects   int64[>= nx ny + 1, 4]: the tiles as bins x low, x high, y low, y high, both ends included
    """

    bx: np.ndarray
    by: np.ndarray
    ends: np.ndarray
    value: np.ndarray
    mirror: np.ndarray
    choice: np.ndarray
    rects: np.ndarray

    @classmethod
    def of(cls, n: int, nx: int, ny: int) -> RectangleProgram:
        """Arrays for n points along at most nx and ny lines."""
        size = nx * (nx + 1) * ny * (ny + 1) // 4
        return cls(
            np.zeros(n, np.int64), np.zeros(n, np.int64), np.empty((4, max(nx, ny))), np.empty(size), np.empty(size),
            np.empty(size, np.int16), np.empty((nx * ny + 1, 4), np.int64),
        )  # fmt: skip


@njit(**LEAN_INNER)
def bins(points, axis, lo, hi, most, total, bin_of, ends):
    """Bins of distinct coordinates along one axis: at most ``most``, one for each coordinate if there are few.

    Writes bin_of[point], and the coordinates at the ends of each bin to ends[2 axis] and ends[2 axis + 1]; returns the
    number of bins.
    """
    c, order = (points.x, points.ox) if axis == 0 else (points.y, points.oy)
    w, first, last = points.weight, ends[2 * axis], ends[2 * axis + 1]
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


@njit(**LEAN_INNER)
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
    """Cumulative weights of the bins, and the bounding box of the points in each pair of bins."""
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
    """Replace the rectangle at ``sp`` with both sides of a cut, behind column cut or row cut - lines.

    Returns the new height.
    """
    stack[sp + 1, :] = stack[sp, :]
    if cut < lines:
        stack[sp, 1], stack[sp + 1, 0] = cut, cut + 1
    else:
        stack[sp, 3], stack[sp + 1, 2] = cut - lines, cut - lines + 1
    return sp + 2


@njit(**LEAN_INNER)
def inside(sums, x1, x2, y1, y2):
    """The sum in a rectangle, both ends included; sums [nx + 1, ny + 1] are cumulative from below and left."""
    return sums[x2 + 1, y2 + 1] - sums[x1, y2 + 1] - sums[x2 + 1, y1] + sums[x1, y1]


@njit(**STEP)
def _carved(choice, most, rows, sums, box, scale, stack, rects):
    """The tiles that the stored choices make of the rectangle on the stack: (number, heaviest, weight times size)."""
    sp, m = 1, 0
    heaviest, size = np.int64(0), 0.0
    while sp:
        sp -= 1
        x1, x2, y1, y2 = stack[sp, 0], stack[sp, 1], stack[sp, 2], stack[sp, 3]
        cut = choice[(x2 * (x2 + 1) // 2 + x1) * rows + y2 * (y2 + 1) // 2 + y1]
        if cut < 0:
            rects[m, 0], rects[m, 1], rects[m, 2], rects[m, 3] = x1, x2, y1, y2
            m += 1
            weight = inside(sums, x1, x2, y1, y2)
            heaviest = max(heaviest, weight)
            size += weight * _size(box, x1, x2, y1, y2, scale[0], scale[1])
        else:
            sp = halved(stack, sp, cut, most)
    return m, heaviest, size


@njit(cache=True, nogil=True)
def guillotine(points, lo, hi, k, cap, objective, most, program):
    """The best guillotine partition of the points in slice [lo, hi), along at most ``most`` lines per axis.

    points       ``OrderedPoints``;  lo, hi: int64, the cell's slice of both orders
    k, cap       least weight of a tile; under TILES, a tile is penalized by its excess over cap
    objective    TILES: most tiles, then least half perimeter times weight; MAX: least heaviest tile; PERIMETER: least
                 half perimeter times weight; SQUARES: least sum of squared weights, then the same
    program      ``RectangleProgram``, overwritten
    returns      number of tiles (0: the whole cell is below k), number of bins nx, ny, weight of the heaviest tile, sum
                 of weight times half perimeter (km if geographic)

    O(nx^2 ny^2 (nx + ny)) time.
    """
    x, y, w, ox, oy, geographic = points
    bx, by, ends, value, mirror, choice, rects = program
    total = np.int64(0)
    for t in range(lo, hi):
        total += w[ox[t]]
    nx = bins(points, 0, lo, hi, most, total, bx, ends)
    ny = bins(points, 1, lo, hi, most, total, by, ends)
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
    # rectangle of bins x1..x2, y1..y2: row t(x2) + x1, column t(y2) + y1; the mirror is the transpose, for cuts by x
    head_x = np.empty((rows, nx), np.int64)  # for each column, the least x2 at which x1.. has weight k
    tail_x = np.empty(rows, np.int64)  # largest x1 at which ..x2 has weight k
    head_y = np.empty(ny, np.int64)  # the same by y, in the current row
    strip = np.empty((4, ny))  # bounding box of x1..x2 in each bin by y
    for i in range(rows):
        for j in range(nx):
            head_x[i, j] = nx
    # Rectangles are processed after all rectangles inside them. One has weight k only if its ends are beyond head and
    # tail, which also limit the cuts to examine.
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
            tail_y = -1  # largest y1 at which ..y2 has weight k, in the current row
            for y2 in range(ny):
                while tail_y < y2 and inside(sums, x1, x2, tail_y + 1, y2) >= k:
                    tail_y += 1
                if tail_y < 0:
                    continue
                west, south, east, north = inf, inf, -inf, -inf
                for y1 in range(y2, -1, -1):
                    west, south = min(west, strip[0, y1]), min(south, strip[1, y1])
                    east, north = max(east, strip[2, y1]), max(north, strip[3, y1])
                    if y1 > tail_y:
                        continue
                    weight = inside(sums, x1, x2, y1, y2)
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
                            elif objective == SQUARES:
                                best -= float(weight) * float(weight)
                    value[here + entry] = best
                    mirror[entry * columns + row] = best
                    choice[here + entry] = cut
    stack = np.empty((nx + ny + 2, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, nx - 1, 0, ny - 1
    m, heaviest, size = _carved(choice, most, rows, sums, box, (sx, sy), stack, rects)
    return m, nx, ny, heaviest, size


@njit(**LEAN_INNER)
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
