"""Every row's cheapest box: what a row loses at least when it is published with as many rows as a group needs.

A box gives every column a set, a range or a node of a hierarchy.  The boxes of one row all hold its values, so what
another row asks of a column is one more value of a set, one side of a range widened, or a higher node on one path.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER

DEPTH = 48


@njit(cache=True, nogil=True)
def boxes(losses, at, shape, sets, width, code, first, last, count, value, kinds, group, most, nodes, out):
    """Least loss of a box of each cell that holds ``group`` rows and ``kinds`` values, or less; out float64[m].

    losses, at, shape, width, code, count, value, kinds, group  as for ``kernels.tables.lattice.nearest``
    sets   bool[d]  columns published as sets
    most   int64    nearest cells looked at; a box with any other loses what the last of these and the row lose
    nodes  int64    of the search for one cell; where it stops, the least that is still open counts
    O((last - first) (m d + nodes most d)).
    """
    m, d = code.shape
    near, far_of = np.empty(most, np.int64), np.empty(most)
    amount, mark = np.empty((most, d)), np.empty((most, d), np.int64)
    low, high = np.zeros((DEPTH + 1, d)), np.zeros((DEPTH + 1, d))
    live, paid = np.ones((DEPTH + 1, most), np.bool_), np.zeros(DEPTH + 1)
    column, chosen = np.zeros(DEPTH + 1, np.int64), np.zeros(DEPTH + 1, np.int64)
    bound, turn = np.zeros(DEPTH + 1), np.zeros(DEPTH + 1, np.int64)
    rest, order = np.empty(most), np.empty(most, np.int64)
    seen = np.empty(kinds + 1, np.int64)
    room = (low, high, live, paid, column, chosen, bound, turn, rest, order, seen)
    for i in range(first, last):
        held = 0
        for q in range(1, 2 * m):
            c = i + (q + 1) // 2 if q % 2 else i - q // 2  # outwards from i: like cells stand near each other
            if c < 0 or c >= m:
                continue
            bar = far_of[held - 1] if held == most else np.inf
            far = 0.0
            for j in range(d):
                if code[i, j] != code[c, j]:
                    far += _apart(losses, at, shape, width, j, code[i, j], code[c, j])
                    if far >= bar:
                        break
            if far >= bar:
                continue
            y = held if held < most else held - 1
            held = min(held + 1, most)
            while y > 0 and far_of[y - 1] > far:
                far_of[y], near[y] = far_of[y - 1], near[y - 1]
                y -= 1
            far_of[y], near[y] = far, c
        for x in range(held):
            for j in range(d):
                a, b = code[i, j], code[near[x], j]
                amount[x, j] = 0.0 if a == b else _apart(losses, at, shape, width, j, a, b)
                mark[x, j] = 0
                if sets[j]:
                    mark[x, j] = b + 2
                elif shape[j] == 1 and losses[at[j] + b] < losses[at[j] + a]:
                    mark[x, j] = 1
        limit = far_of[held - 1] if held == most and m - 1 > most else np.inf
        out[i] = _cheapest(amount[:held], mark[:held], near, count, value, i, kinds, group, nodes, limit, room)


@njit(**INNER)
def _apart(losses, at, shape, width, j, a, b):
    """Loss of two different codes of a column published together."""
    if shape[j] == 0:
        return losses[at[j] + a * width[j] + b]
    if shape[j] == 2:
        return losses[at[j]]
    return abs(losses[at[j] + a] - losses[at[j] + b])


@njit(**INNER)
def _asks(amount, mark, low, high, level, column, chosen, turn, x, j):
    """What a cell still costs in a column beside what the box has."""
    if mark[x, j] == 0:
        return max(0.0, amount[x, j] - high[level, j])
    if mark[x, j] == 1:
        return max(0.0, amount[x, j] - low[level, j])
    for above in range(level):  # values of sets that the box has
        if turn[above] == 1 and column[above] == j and mark[chosen[above], j] == mark[x, j]:
            return 0.0
    return amount[x, j]


@njit(**INNER)
def _least(near, count, value, i, kinds, group, live, rest, order, seen):
    """The least that some residual costs of cells, sorted by ``order``, must still add: rows first, values second."""
    rows, values, needed = count[i], 1, 0.0
    seen[0] = value[i]
    for y in range(order.size):
        if rows >= group and values >= kinds:
            return needed
        x = order[y]
        if not live[x]:
            continue
        if rows < group:
            needed = rest[x]
            rows += count[near[x]]
        if values < kinds:
            new = True
            for v in range(values):
                new = new and seen[v] != value[near[x]]
            if new:
                seen[values] = value[near[x]]
                values += 1
                needed = rest[x]
    return needed if rows >= group and values >= kinds else np.inf


@njit(**INNER)
def _cheapest(amount, mark, near, count, value, i, kinds, group, nodes, limit, room):
    """Branch and bound, depth first: the box takes what the nearest cell asks of a column, or never does."""
    low, high, live, paid, column, chosen, bound, turn, rest, order, seen = room
    n, d = amount.shape
    best, level, looked = limit, 0, 0
    low[0, :], high[0, :], live[0, :], paid[0], turn[0] = 0.0, 0.0, True, 0.0, 0
    while level >= 0:
        if turn[level] == 0:
            looked += 1
            for x in range(n):
                rest[x] = 0.0
                for j in range(d):
                    rest[x] += _asks(amount, mark, low, high, level, column, chosen, turn, x, j)
                y = x
                while y > 0 and rest[order[y - 1]] > rest[x]:
                    order[y] = order[y - 1]
                    y -= 1
                order[y] = x
            more = _least(near, count, value, i, kinds, group, live[level], rest, order[:n], seen)
            bound[level] = paid[level] + more
            if bound[level] < best and (more <= 1e-12 or level == DEPTH or looked > nodes):
                best = bound[level]
            if bound[level] >= best:
                level -= 1
                continue
            one = -1
            for y in range(n):  # the nearest cell that the box does not hold
                if one < 0 and live[level, order[y]] and rest[order[y]] > 1e-12:
                    one = order[y]
            dearest = -1.0
            for j in range(d):
                asked = _asks(amount, mark, low, high, level, column, chosen, turn, one, j)
                if asked > dearest:
                    dearest, column[level] = asked, j
            chosen[level] = one
        turn[level] += 1
        if turn[level] > 2 or bound[level] >= best:
            level -= 1
            continue
        j, one, side = column[level], chosen[level], mark[chosen[level], column[level]]
        here = level + 1
        low[here, :], high[here, :], live[here, :n], paid[here] = low[level], high[level], live[level, :n], paid[level]
        if turn[level] == 1:
            paid[here] += _asks(amount, mark, low, high, level, column, chosen, turn, one, j)
            if side == 0:
                high[here, j] = max(high[here, j], amount[one, j])
            elif side == 1:
                low[here, j] = max(low[here, j], amount[one, j])
        else:
            for x in range(n):
                if mark[x, j] == side and (side > 1 or amount[x, j] >= amount[one, j]):
                    live[here, x] = False
        turn[here] = 0
        level = here
    return best
