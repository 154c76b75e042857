"""Feasible prices of rows under conditions on shares, from any prices: one pass over the classes of the lattice.

The condition is t-closeness, or a largest share of each sensitive value. Prices are feasible if the prices of every
group that meets the condition, in every class, sum to at most the group's loss. For each class, the kernel bounds the
largest mean price of a group: by shares, and by whole rows (not for t-closeness with an unequal distance). For
t-closeness, each bound uses a Lagrange multiplier and holds for any multiplier, so the result is proved even if the
search for the best multiplier stops early. For largest shares, both are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.sweep import is_lowest, split_class, unsplit

TINY, SLIGHT = 1e-12, 1e-9  # tolerances for shares of 1 and for parts of a row
GOLDEN = 0.6180339887498949  # share of the interval that a step of golden section search keeps
LOOKS = 20  # multipliers examined, from 0 to one that no row pays
TRIES, LAST_TRIES = 6, 12  # moves of a level and a multiplier; for groups larger than those counted row by row


class CloseShares(NamedTuple):
    """The conditions on the shares of sensitive values in a group: t-closeness, or a largest share of each value.

    value int64[m]      sensitive value of each cell;  count: int64[m], its rows
    share float64[s]    of each value in the table; or the largest share of each in a group
    apart float64[s, s] distance of two values; empty if all distances are 1 (equal distance), or for largest shares
    t float64, least int64  the largest distance (0 for largest shares) and the fewest rows
    counted int64       groups of up to this many rows are bounded with whole rows, if apart is empty
    weight int64[s], whole int64  for largest shares: at most weight[v] * n // whole of n rows have value v; else whole
                                  is 0
    """

    value: np.ndarray
    count: np.ndarray
    share: np.ndarray
    apart: np.ndarray
    t: float
    least: int
    counted: int
    weight: np.ndarray
    whole: int


class _HighestPrices(NamedTuple):
    """The rows of one class with the highest prices.

    pay float64[s]      the most that each value pays
    many, rows int64[s] number of these rows of each value, and of all its rows
    sums float64[s, ..] of the highest 0, 1, 2, .. prices of each value
    part float64[s + 1] fraction of a row by which the first row beyond the value's share exceeds it
    """

    pay: np.ndarray
    many: np.ndarray
    rows: np.ndarray
    sums: np.ndarray
    part: np.ndarray


@njit(**INNER)
def _mean_of_close(inside, b, e, price, asked, pay):
    """(the largest mean price of shares within t, what rows of any value may pay without raising it).

    The mean is infinite if the values of the class can't form shares within t. Cells are sorted by descending price.

    pay float64[s]  out: what rows of each value may pay; equal for all values that are absent

    Shares within t arise from the table's shares by transport of at most t, where distances are those of the values. So
    for any multiplier z, an upper bound of the mean is z * t plus the table's shares, each multiplied by the largest
    price minus z times the distance. With the equal distance, taking the highest prices first is optimal.
    """
    share, s, n = asked.share, asked.share.size, 0
    for v in range(s):
        pay[v] = -np.inf
    total, mean = 0.0, 0.0
    # The first row of a value has its highest price. With the equal distance, the values with the highest prices take
    # their shares, the first of them t more, until the sum is 1.
    for i in range(b, e):
        v = asked.value[inside[i]]
        if pay[v] > -np.inf:
            continue
        high = price[inside[i]]
        pay[v] = high
        n += 1
        if asked.apart.size == 0:
            more = min(share[v] + (asked.t if n == 1 else 0.0), 1.0 - total)
            total += more
            mean += more * high
            if total >= 1.0 - TINY:
                for w in range(s):
                    pay[w] = max(pay[w], high)
                return mean, high
        elif n == s:
            break
    if asked.apart.size == 0:
        return np.inf, 0.0
    return _by_multiplier(price[inside[b]], asked, pay), -np.inf


@njit(**INNER)
def _mean_of_highest(inside, b, e, price, asked):
    """(mean price of a class's highest-priced rows, as many as the least group has; the least of these prices)."""
    left, total = asked.least, 0.0
    for i in range(b, e):
        c = inside[i]
        many = min(asked.count[c], left)
        total += many * price[c]
        left -= many
        if left == 0:
            return total / asked.least, price[c]
    return np.inf, 0.0


@njit(**INNER)
def _lowers(inside, b, e, price, more, out):
    """Whether some cell's limit would decrease if it may pay only ``more`` above its price."""
    i = b
    while i < e and out[inside[i]] <= price[inside[i]] + more:
        i += 1
    return i < e


@njit(**INNER)
def _by_multiplier(highest, asked, pay):
    """The largest mean, with the best multiplier found; the result is a bound for any multiplier.

    pay  in: the highest price of each value, -inf if it has no row; out: what each value may pay
    """
    share, apart, s = asked.share, asked.apart, asked.share.size
    high = pay.copy()
    far, lowest, nearest = 0.0, highest, 1.0
    for v in range(s):
        least = np.inf
        for w in range(s):
            if high[w] > -np.inf:
                least = min(least, apart[v, w])
            if apart[v, w] > 0.0:
                nearest = min(nearest, apart[v, w])
        far += share[v] * least
        if high[v] > -np.inf:
            lowest = min(lowest, high[v])
    if far > asked.t:
        return np.inf
    a, b = 0.0, (highest - lowest) / nearest + TINY
    best, multiplier, x, y = np.inf, 0.0, b - GOLDEN * b, GOLDEN * b
    at_x, at_y = _with_multiplier(x, asked, high), _with_multiplier(y, asked, high)
    for _ in range(LOOKS):
        if at_x < best:
            best, multiplier = at_x, x
        if at_y < best:
            best, multiplier = at_y, y
        if at_x <= at_y:
            b, y, at_y = y, x, at_x
            x = b - GOLDEN * (b - a)
            at_x = _with_multiplier(x, asked, high)
        else:
            a, x, at_x = x, y, at_y
            y = a + GOLDEN * (b - a)
            at_y = _with_multiplier(y, asked, high)
    free = _with_multiplier(0.0, asked, high)
    if free < best:
        best, multiplier = free, 0.0
    for v in range(s):
        pay[v] = -np.inf
        for w in range(s):
            pay[v] = max(pay[v], high[w] - multiplier * apart[v, w])
    return best


@njit(**INNER)
def _with_multiplier(multiplier, asked, high):
    """The upper bound of the mean for one multiplier."""
    total = multiplier * asked.t
    for v in range(asked.share.size):
        if asked.share[v] > 0.0:
            most = -np.inf
            for w in range(asked.share.size):
                most = max(most, high[w] - multiplier * asked.apart[v, w])
            total += asked.share[v] * most
    return total


@njit(**INNER)
def _highest_priced_rows(inside, b, e, price, asked, top):
    """Write the highest-priced rows of each value of a class to ``top``; returns the class's number of rows."""
    many, rows, sums, all_rows = top.many, top.rows, top.sums, 0
    most = sums.shape[1] - 1
    for v in range(many.size):
        many[v], rows[v], sums[v, 0] = 0, 0, 0.0
    for i in range(b, e):
        c = inside[i]
        v = asked.value[c]
        rows[v] += asked.count[c]
        all_rows += asked.count[c]
        for _ in range(min(asked.count[c], most - many[v])):
            sums[v, many[v] + 1] = sums[v, many[v]] + price[c]
            many[v] += 1
    return all_rows


@njit(**INNER)
def _fits(asked, top, n):
    """Whether n rows of a class can be within t: first rows that exceed no share, then those with the least excess."""
    part, need, over, some, others = top.part, n, 0.0, 0, 0
    for v in range(asked.share.size):
        free = np.int64(asked.share[v] * n + SLIGHT)
        need -= min(top.rows[v], free)
        if top.rows[v] > free:
            beyond, x = 1.0 - max(asked.share[v] * n - free, 0.0), some
            others += top.rows[v] - free - 1
            while x > 0 and part[x - 1] > beyond:
                part[x] = part[x - 1]
                x -= 1
            part[x] = beyond
            some += 1
    if need > some + others:
        return False
    for x in range(min(need, some)):
        over += part[x]
    return over + max(need - some, 0) <= asked.t * n + SLIGHT


@njit(**INNER)
def _of_rows(asked, top, n, way, whole):
    """An upper bound of the mean price of n rows, by a level and a multiplier.

    A row contributes its price minus the level, minus the multiplier times its excess over the share of its value. With
    ``whole``, there are exactly n rows; otherwise n or more, and each counts in proportion. Returns (mean, rows too
    many, excess over shares too large).
    """
    level, multiplier = way
    total, took, over, sums = 0.0, 0.0, 0.0, top.sums
    # For each value, rows within its share count while they are above the level. Rows beyond it count only while they
    # are also above the multiplier's penalty.
    for v in range(asked.share.size):
        held = asked.share[v] * n
        free = np.int64(held + SLIGHT)
        left = max(held - free, 0.0)
        a, b = 0, min(top.many[v], free)
        while a < b:
            x = (a + b) // 2
            if sums[v, x + 1] - sums[v, x] > level:
                a = x + 1
            else:
                b = x
        total += sums[v, a] - level * a
        took += a
        if a < free:
            continue
        beyond = 1.0 - left
        while a < top.many[v]:
            above = sums[v, a + 1] - sums[v, a] - level
            if whole or a > free:
                above -= multiplier * beyond
                if above <= 0.0:
                    break
                total += above
                took += 1.0
                over += beyond
            else:
                total += left * max(above, 0.0) + beyond * max(above - multiplier, 0.0)
                took += left * (above > 0.0) + beyond * (above > multiplier)
                over += beyond * (above > multiplier)
            beyond = 1.0
            a += 1
    return level + multiplier * asked.t + total / n, took - n, over - asked.t * n


@njit(**INNER)
def _lowered(asked, top, n, way, whole, bar):
    """(mean, level, multiplier) after some moves that lower the mean, until it is at most ``bar``.

    The mean is a bound for any level, and for any multiplier of at least 0.
    """
    best, more, over = _of_rows(asked, top, n, way, whole)
    step = 0.25 * max(way[1], 1e-3)
    # The level, the multiplier, or both move in the direction that corrects the number of rows or the excess. If no
    # move helps, the step is halved.
    for _ in range(TRIES if whole else LAST_TRIES):
        if best <= bar:
            break
        level, multiplier = way
        up, dearer = np.sign(more) * step, (step if over > 0.0 else -step)
        found = False
        for kind in range(3):
            if kind == 0:
                other = (level + up, multiplier)
            elif kind == 1:
                other = (level, max(0.0, multiplier + dearer))
            else:
                other = (level - dearer, max(0.0, multiplier + dearer))
            value, rows, beyond = _of_rows(asked, top, n, other, whole)
            if value < best:
                best, more, over, way, found = value, rows, beyond, other, True
        if not found:
            step *= 0.5
    return best, way[0], way[1]


@njit(**INNER)
def _mean_of_whole(inside, b, e, price, asked, low, top):
    """(the largest mean price of whole rows within t, what rows may pay without raising it), -inf if there are none."""
    rows = _highest_priced_rows(inside, b, e, price, asked, top)
    best, lowest, way = -np.inf, np.inf, (low, price[inside[b]] - low)
    for n in range(asked.least, min(asked.counted, rows) + 1):
        if _fits(asked, top, n):
            found, level, multiplier = _lowered(asked, top, n, way, True, best)
            way, best, lowest = (level, multiplier), max(best, found), min(lowest, level)
    if rows > asked.counted:
        found, level, multiplier = _lowered(asked, top, max(asked.counted + 1, asked.least), way, False, best)
        best, lowest = max(best, found), min(lowest, level)
    return best, lowest


class _LimitedRows(NamedTuple):
    """Buffers for groups with largest shares.

    dear int64[m]   cells of one class by descending price, without those whose value has enough rows before
    many int64[s]   rows of each value in these cells
    left_of float64[s], last float64[s]  rows of each value that may still be taken; the lowest price taken of it
    """

    dear: np.ndarray
    many: np.ndarray
    left_of: np.ndarray
    last: np.ndarray


@njit(**INNER)
def _mean_of_limited(inside, b, e, price, asked, pay, rows):
    """The largest mean price of a group in which no value exceeds its largest share, -inf if the class has no group.

    pay float64[s]  out: what rows of each value may pay without raising the mean, inf if no group has any

    Of n rows, those with the highest prices whose values have room are optimal. Larger groups than ``counted`` are
    bounded together: a row is at most one of counted + 1, and values have their shares, in parts of a row. A row may
    pay as much as the lowest price taken; if its value has no room left, the lowest taken of its value. Then the same
    rows are taken. Time: O(rows of the class + counted * rows looked at), of each value at most counted + 1.
    """
    dear, many, left_of, last = rows
    most, kept, best = max(asked.counted + 1, asked.least), 0, -np.inf
    many[:] = 0
    pay[:] = np.inf
    for i in range(b, e):
        c = inside[i]
        if many[asked.value[c]] < most:
            many[asked.value[c]] += asked.count[c]
            dear[kept] = c
            kept += 1
    for n in range(asked.least, most + 1):
        left, total, lowest, x = float(n), 0.0, np.inf, 0
        for v in range(left_of.size):
            left_of[v] = asked.weight[v] * n // asked.whole if n <= asked.counted else asked.share[v] * n
            last[v] = np.inf
        while x < kept and left > TINY:
            c = dear[x]
            v = asked.value[c]
            taken = min(asked.count[c], left, left_of[v])
            if taken > 0.0:
                total += taken * price[c]
                left -= taken
                left_of[v] -= taken
                lowest = last[v] = price[c]
            x += 1
        if left <= TINY:
            best = max(best, total / n)
            for v in range(left_of.size):
                pay[v] = min(pay[v], lowest if left_of[v] > 0.0 else last[v])
    return best


@njit(cache=True, nogil=True)
def close_sweep(lattice, asked, price, order, fixed, budget, out):
    """Feasible prices from any prices, by one pass over the lattice nodes that begin with some levels.

    In a feasible solution, no group of any class that meets the condition has prices that exceed its loss.

    lattice, asked  ``CellsInLattice``, ``CloseShares``
    price float64[m], order int64[m]  any numbers, and the cells by descending price
    fixed int64[f], budget int64      as of ``sweep``, which documents the return value
    out float64[m]  lowered to what each cell may pay in every class. Let x be the largest mean price of a group in a
                    class. Then this is the loss of the class minus x, plus the cell's own price or a higher one that
                    keeps x

    O(nodes m d) at worst, plus the time for whole rows; O(m d) space.
    """
    work, s, p, d = unsplit(lattice, order), asked.share.size, 0, lattice.columns.size
    cells, first, last, level, parts, turn, spent = work[:7]
    pay, most = np.empty(s), max(asked.counted + 1, asked.least)
    top = _HighestPrices(pay, np.empty(s, np.int64), np.empty(s, np.int64), np.empty((s, most + 1)), np.empty(s + 1))
    rows = _LimitedRows(np.empty(price.size, np.int64), np.empty(s, np.int64), np.empty(s), np.empty(s))
    # Depth first over columns and levels, as in ``sweep``. Bounds in order of increasing cost decide whether the class,
    # or any within it, lowers some cell's limit.
    while p >= 0:
        if turn[p] == parts[p]:  # split the class by the next level of its column
            level[p] = max(level[p] + 1, fixed[p] if p < fixed.size else 0)
            if level[p] == lattice.height[lattice.columns[p]] or (p < fixed.size and level[p] > fixed[p]):
                p -= 1
                continue
            budget -= last[p] - first[p]
            if budget < 0:
                return budget
            split_class(lattice, asked.count, asked.least, work, p)
            continue
        b, e, loss = work.begin[p, turn[p]], work.end[p, turn[p]], work.cost[p, turn[p]]
        turn[p] += 1
        inside = cells[p + 1]
        # A class within this one has at least its loss, and groups of at most its prices.
        highest, lowest = _mean_of_highest(inside, b, e, price, asked)
        if not _lowers(inside, b, e, price, loss - highest, out):
            continue
        mean, low = _mean_of_close(inside, b, e, price, asked, pay)
        if highest < mean < np.inf:
            mean, low = highest, lowest
            for v in range(s):
                pay[v] = lowest
        if mean == np.inf or not _lowers(inside, b, e, price, loss - mean, out):
            continue
        if p + 1 < d:
            p += 1
            first[p], last[p], spent[p], level[p], parts[p], turn[p] = b, e, loss, -1, 0, 0
            continue
        if not is_lowest(inside, b, e, lattice, level):
            continue
        best = np.inf
        if asked.whole > 0:
            mean = _mean_of_limited(inside, b, e, price, asked, pay, rows)
        elif asked.counted > 0 and asked.apart.size == 0:
            best, low = _mean_of_whole(inside, b, e, price, asked, low, top)
        if min(mean, best) == -np.inf:  # it contains no eligible group
            continue
        for i in range(b, e):
            c = inside[i]
            if best < mean:
                out[c] = min(out[c], max(price[c], low) + loss - best)
            else:
                out[c] = min(out[c], max(price[c], pay[asked.value[c]]) + loss - mean)
    return budget
