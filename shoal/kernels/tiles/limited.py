"""Tiles with conditions other than weight: enough different values, no frequent value, no long side.

The conditions are given as columns. Every place has a list of the values of its records. A tile is eligible if its
weight is at least k, each column has ``need`` different values in it, and no value has more than 1 / ``share`` of its
weight. A sensitive column requires l values; a column that identifies persons requires k. ``limited`` cuts cells one
after the other; ``limited_guillotine`` finds the best guillotine partition over all rectangles between the distinct
coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit
from shoal.kernels.tiles.guillotine import KM_PER_DEGREE, MAX, PERIMETER, SQUARES, TILES, divide, halved, inside

__all__ = ["MAX", "NEVER", "PERIMETER", "TILES", "Corners", "limited_guillotine"]


WASTE, WIDEST, MEDIAN, MONDRIAN = 0, 1, 2, 3


class PlaceValues(NamedTuple):
    """The values of each place and their weights: start int64[n + 1], code int64[i], amount int64[i]."""

    start: np.ndarray
    code: np.ndarray
    amount: np.ndarray


class ValueColumns(NamedTuple):
    """The columns: column int64[v] of each value; need int64[c], share float64[c], unit bool[c] of each column."""

    column: np.ndarray
    need: np.ndarray
    share: np.ndarray
    unit: np.ndarray


class TileRequirement(NamedTuple):
    """The conditions of a tile: weight k, and the columns with the values of places."""

    k: int
    values: PlaceValues
    columns: ValueColumns


class Ranking(NamedTuple):
    """How cuts are ranked: rule int64, lam float64 the weight of balance, widest float64 the longest allowed side."""

    rule: int
    lam: float
    widest: float


class Slice(NamedTuple):
    """Places order[lo:hi] of an order, a cell of the plane."""

    order: np.ndarray
    lo: int
    hi: int


class Sides(NamedTuple):
    """The limits of a tile's sides.

    widest      upper limit of its longer side, exclusive, or inclusive with a grid; 0 for none
    grid        distance of the lines on which its sides are, 0 for none
    geographic  degrees: side lengths are in km
    leave_out   if no cut leaves both sides eligible, one side may be left out
    """

    widest: float
    grid: float
    geographic: bool
    leave_out: bool


@njit(**LEAN_INNER)
def long_side(x0, x1, y0, y1, grid, geographic):
    """The longer side of a box widened by a grid's step: in km if geographic, at the box's widest latitude."""
    wide, tall = x1 - x0 + grid, y1 - y0 + grid
    if geographic:
        flat = 0.0 if y0 <= 0.0 <= y1 + grid else min(abs(y0), abs(y1 + grid))
        wide, tall = KM_PER_DEGREE * wide * np.cos(np.deg2rad(flat)), KM_PER_DEGREE * tall
    return max(wide, tall)


@njit(**LEAN_INNER)
def _holds(columns, seen, top, weight):
    """Whether a tile of this weight has enough values in each column (seen int64[c]), none too often (top int64[c])."""
    for c in range(seen.size):
        if seen[c] < columns.need[c] or top[c] * columns.share[c] > weight * (1 + 1e-12):
            return False
    return True


@njit(**LEAN_INNER)
def _longest(sides):
    """The largest side length that meets the limit."""
    return sides.widest * (1 + 1e-9) if sides.grid > 0 else sides.widest * (1 - 1e-9)


@njit(**LEAN_INNER)
def _sweep(cell, back, w, required, state, able, fitting):
    """For each position, whether the places up to it, from one end of the slice, are eligible.

    And how many tiles fit.
    """
    order, lo, hi = cell
    k, values, columns = required
    start, code, amount = values
    column, need, share, unit = columns
    count, stamp, tick, seen, top = state
    tick[0] += 1
    seen[:] = 0
    top[:] = 0
    weight = np.int64(0)
    # Each place adds its values, so the counts are those of the slice up to it. A value's old count is invalid if its
    # stamp is old.
    for i in range(hi - lo):
        t = hi - 1 - i if back else lo + i
        p = order[t]
        weight += w[p]
        for j in range(start[p], start[p + 1]):
            v = code[j]
            c = column[v]
            if stamp[v] != tick[0]:
                stamp[v] = tick[0]
                count[v] = 0
                seen[c] += 1
            count[v] += amount[j]
            top[c] = max(top[c], count[v])
        ok = weight >= k and _holds(columns, seen, top, weight)
        fit = weight // k
        for c in range(need.size):
            if unit[c]:
                fit = min(fit, seen[c] // need[c])
            elif share[c] > 1:
                fit = min(fit, np.int64((weight - top[c]) / np.ceil(k * (1 - 1 / share[c]) - 1e-9)))
        able[t] = ok
        fitting[t] = max(fit, 1) if ok else 0


@njit(**LEAN_INNER)
def _side(cell, c, other, axis, left, grid, geographic, wide):
    """The longer side of the bounding box of the places up to each position, from one end of the slice."""
    order, lo, hi = cell
    low, high = np.inf, -np.inf
    for i in range(hi - lo):
        t = lo + i if left else hi - 1 - i
        p = order[t]
        low, high = min(low, other[p]), max(high, other[p])
        a, b = (c[order[lo]], c[p]) if left else (c[p], c[order[hi - 1]])
        if axis == 0:
            wide[t] = long_side(a, b, low, high, grid, geographic)
        else:
            wide[t] = long_side(low, high, a, b, grid, geographic)


@njit(**LEAN_INNER)
def _best(cell, c, w, weight, ranking, trim, work):
    """The best cut along one axis: (score, position, weight on the left); position -1 if there is none.

    trim  only one side need be eligible, and the other is left out; the least weight left out is best
    """
    order, lo, hi = cell
    rule, lam, widest = ranking
    able, back_able, fitting, back_fitting, wide, back_wide = work
    best, at, kept = np.inf, -1, np.int64(0)
    whole = max(back_wide[lo], 1e-300)
    parts = back_fitting[lo]
    a = np.int64(0)
    # Whether both sides of each position are eligible was computed before; here only the rule's score decides.
    for t in range(lo, hi - 1):
        a += w[order[t]]
        if c[order[t]] == c[order[t + 1]]:
            continue
        one, two, b = able[t], back_able[t + 1], weight - a
        if trim:
            if not (one or two):
                continue
            score = float((0 if one else a) + (0 if two else b)) + wide[t] / whole * 1e-3
        else:
            if not (one and two):
                if rule == MONDRIAN and 2 * a >= weight:
                    break
                continue
            if rule == WASTE:
                lost = parts - fitting[t] - back_fitting[t + 1]
                score = 1000.0 * lost + (a * wide[t] + b * back_wide[t + 1]) / (weight * whole)
                score += lam * abs(a - b) / weight
                if min(a, b) * 4 < weight and parts > 4:
                    score += 1e5  # avoid slivers, so that the depth stays logarithmic
            elif rule == MONDRIAN:
                if 2 * a < weight:
                    continue
                return 0.0, t + 1, a
            else:
                score = float(abs(a - b))
            if widest > 0:  # a part with too long a side that can't be cut is lost
                if wide[t] > widest and fitting[t] < 2:
                    score += 1e7 * a / weight
                if back_wide[t + 1] > widest and back_fitting[t + 1] < 2:
                    score += 1e7 * b / weight
        if score < best:
            best, at, kept = score, t + 1, a
    return best, at, kept


@njit(cache=True, nogil=True)
def limited(points, k, rules, columns, rule, lam, sides):
    """Cut the plane into eligible tiles within the side limits, as long as such a cut exists.

    points      ``Points``, with orders that are permuted in place
    rules       ``PlaceValues``;  columns: ``ValueColumns``;  sides: ``Sides``
    rule        WASTE: fewest possible tiles lost; WIDEST, MEDIAN, MONDRIAN as in ``guillotine``
    returns     cells int64[m, 8]: slice low, high, weight, four cuts (-1: none), 1 for a tile and 0 for places left
                out; gaps float64[c, 3]: axis of each cut and the coordinates next to it

    O(n log n) time for cells that halve, O(n) space.
    """
    x, y, w, ox, oy, geographic = points
    widest, grid, _, leave_out = sides
    n = x.size
    count, stamp = np.zeros(columns[0].size, np.int64), np.zeros(columns[0].size, np.int64)
    seen, top = np.zeros(columns[1].size, np.int64), np.zeros(columns[1].size, np.int64)
    state = (count, stamp, np.zeros(1, np.int64), seen, top)
    able, back_able = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    fitting, back_fitting = np.zeros(n, np.int64), np.zeros(n, np.int64)
    wide, back_wide = np.zeros(n), np.zeros(n)
    work = (able, back_able, fitting, back_fitting, wide, back_wide)
    mark, spare = np.zeros(n, np.bool_), np.empty(n, np.int64)
    stack, out, gaps = np.empty((n + 2, 8), np.int64), np.empty((n + 1, 8), np.int64), np.empty((n + 1, 3))
    total = np.int64(0)
    for t in range(n):
        total += w[t]
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, n, total
    for e in range(3, 7):
        stack[0, e] = -1
    sp, m, cuts = 1, 0, 0
    limit = _longest(sides)
    required, ranking = TileRequirement(k, rules, columns), Ranking(rule, lam, limit)
    # Take a cell off the stack and find its best cut along both axes. A cell without a cut is a tile if it is eligible;
    # otherwise places may be trimmed from one side if leaving out is allowed.
    while sp:
        sp -= 1
        lo, hi, weight = stack[sp, 0], stack[sp, 1], stack[sp, 2]
        good, cut_axis, at, left, first = False, -1, -1, np.int64(0), np.inf
        spread_x, spread_y = x[ox[hi - 1]] - x[ox[lo]], y[oy[hi - 1]] - y[oy[lo]]
        if geographic:
            spread_x *= np.cos(np.deg2rad((y[oy[lo]] + y[oy[hi - 1]]) / 2))
        for trim in range(2):
            if trim == 1 and (at >= 0 or good or not leave_out):
                break
            for axis in range(2):
                order, c, other = (ox, x, y) if axis == 0 else (oy, y, x)
                cell = Slice(order, lo, hi)
                _sweep(cell, False, w, required, state, able, fitting)
                _sweep(cell, True, w, required, state, back_able, back_fitting)
                _side(cell, c, other, axis, True, grid, geographic, wide)
                _side(cell, c, other, axis, False, grid, geographic, back_wide)
                good = back_able[lo] and (widest <= 0 or back_wide[lo] <= limit)
                score, position, part = _best(cell, c, w, weight, ranking, trim == 1, work)
                if rule != WASTE and trim == 0 and position >= 0:  # the wider side first
                    wider = (axis == 0) == (spread_x >= spread_y)
                    if rule == MEDIAN:
                        score += 0.0 if wider else 1.5
                    elif not wider:
                        score += 1e15
                if position >= 0 and score < first:
                    first, cut_axis, at, left = score, axis, position, part
        if at < 0:
            out[m] = stack[sp]
            out[m, 7] = 1 if good else 0
            m += 1
            continue
        order, c = (ox, x) if cut_axis == 0 else (oy, y)
        gaps[cuts, 0], gaps[cuts, 1], gaps[cuts, 2] = cut_axis, c[order[at - 1]], c[order[at]]
        divide(ox, oy, lo, hi, cut_axis, at, mark, spare)
        for e in range(8):
            stack[sp + 1, e] = stack[sp, e]
        stack[sp, 0], stack[sp, 2], stack[sp, 3 + cut_axis] = at, weight - left, cuts
        stack[sp + 1, 1], stack[sp + 1, 2], stack[sp + 1, 5 + cut_axis] = at, left, cuts
        cuts += 1
        sp += 2
    return out[:m].copy(), gaps[:cuts].copy()


NEVER = 1 << 60


class Corners(NamedTuple):
    """The distinct coordinates, and cumulative sums below and left of each corner between them.

    xs, ys   float64[nx], float64[ny]
    sums     int64[nx + 1, ny + 1]: weights of the places
    there    int64[nx + 1, ny + 1]: number of places, because some have weight 0
    tallies  int64[v, nx + 1, ny + 1]: the weight of each value alone
    """

    xs: np.ndarray
    ys: np.ndarray
    sums: np.ndarray
    there: np.ndarray
    tallies: np.ndarray


@njit(cache=True, nogil=True)
def limited_guillotine(lattice, columns, k, cap, sides, objective):
    """The partition with the least weight in no tile and, among these, the best one.

    lattice     ``Corners``;  columns: ``ValueColumns``, sides: ``Sides`` of ``limited``
    k, cap      least and largest weight of a tile
    objective   TILES: most tiles, then smallest; MAX: lightest heaviest tile; PERIMETER: smallest; SQUARES: least sum
                of squared weights, then smallest
    returns     lost int64: weight in no tile (NEVER: there is no such partition); heaviest tile; rects int64[m, 5]:
                bins x low, x high, y low, y high (both ends included), 1 for a tile

    O(nx^2 ny^2 (nx + ny + v)) time, O(nx^2 ny^2) space.
    """
    xs, ys, sums, there, tallies = lattice
    widest, grid, geographic, leave_out = sides
    nx, ny = xs.size, ys.size
    column = columns.column
    lost, value = np.empty((nx, nx, ny, ny), np.int64), np.empty((nx, nx, ny, ny))
    choice = np.empty((nx, nx, ny, ny), np.int32)
    seen, top = np.empty(columns.need.size, np.int64), np.empty(columns.need.size, np.int64)
    spread = (xs[nx - 1] - xs[0] + ys[ny - 1] - ys[0]) * (KM_PER_DEGREE if geographic else 1.0)
    unit = 0.5 / max(sums[nx, ny] * spread, 1e-300)
    limit = _longest(sides)
    # Rectangles by increasing size: first as one tile, or left out, then with the best cut. The least lost weight comes
    # first, then the value.
    for dx in range(nx):
        for dy in range(ny):
            for x1 in range(nx - dx):
                for y1 in range(ny - dy):
                    x2, y2 = x1 + dx, y1 + dy
                    weight = inside(sums, x1, x2, y1, y2)
                    able = k <= weight <= cap
                    if able:
                        seen[:] = 0
                        top[:] = 0
                        for v in range(column.size):
                            held = inside(tallies[v], x1, x2, y1, y2)
                            if held:
                                seen[column[v]] += 1
                                top[column[v]] = max(top[column[v]], held)
                        able = _holds(columns, seen, top, weight)
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
                            elif objective == SQUARES:
                                best -= float(weight) * float(weight)
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
                weight = inside(sums, x1, x2, y1, y2)
                heaviest = max(heaviest, weight)
            m += 1
        else:
            sp = halved(stack, sp, cut, nx)
    return lost[0, nx - 1, 0, ny - 1], heaviest, rects[:m].copy()


@njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _tight(sums, x1, x2, y1, y2):
    """The bins of a rectangle without its empty margins."""
    while x1 < x2 and inside(sums, x1, x1, y1, y2) == 0:
        x1 += 1
    while x2 > x1 and inside(sums, x2, x2, y1, y2) == 0:
        x2 -= 1
    while y1 < y2 and inside(sums, x1, x2, y1, y1) == 0:
        y1 += 1
    while y2 > y1 and inside(sums, x1, x2, y2, y2) == 0:
        y2 -= 1
    return x1, x2, y1, y2
