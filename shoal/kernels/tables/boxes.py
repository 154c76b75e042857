"""Row prices that no box exceeds: raised until each row lies in a box with as many rows as a group needs, all paid.

A box gives every column a set, a range or a node of a hierarchy.  The boxes of one row all hold its values, so what
another row asks of a column is one more value of a set, one side of a range widened, or a higher node on one path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels import INNER

TINY = 1e-12


class Room(NamedTuple):
    """Room for the search of one cell: w near cells, d columns, s boxes that are open.

    amount float64[w, d]  what each near cell asks of each column
    mark int64[w, d]      how: 0 a higher node or end, 1 a lower end, 2 and more a value of a set
    like int64[w, d]      the first near cell with the same value of a set
    low, high float64[s, d]  what a box has of each column;  have bool[s, w, d] whether it has a near cell's value
    live bool[s, w]       whether a cell may be in it;  paid, bound, where float64[s] its loss, what it still allows
                          and at which further loss;  one, column int64[s] what to ask next;  open int64[s] the boxes
    asked, rest, share float64[w], order int64[w], held int64[w, d]  of the box looked at
    seen int64[..] values;  on, off, ons, offs float64[K] highest prices
    """

    amount: np.ndarray
    mark: np.ndarray
    like: np.ndarray
    low: np.ndarray
    high: np.ndarray
    have: np.ndarray
    live: np.ndarray
    paid: np.ndarray
    bound: np.ndarray
    where: np.ndarray
    one: np.ndarray
    column: np.ndarray
    open: np.ndarray
    asked: np.ndarray
    rest: np.ndarray
    share: np.ndarray
    order: np.ndarray
    held: np.ndarray
    seen: np.ndarray
    on: np.ndarray
    off: np.ndarray
    ons: np.ndarray
    offs: np.ndarray


@njit(cache=True, nogil=True)
def near_cells(losses, at, shape, width, code, first, last, near, far):
    """The cells nearest to each cell, nearest first, and how far all others are at least.

    losses, at, shape, width, code  as for ``kernels.tables.near_rows.nearest``;  first, last: the cells asked about
    near int32[m, w]  out, -1 after the last;  far float64[m] out, infinite where all other cells are among them
    O((last - first) m d).
    """
    m, d = code.shape
    most = near.shape[1]
    far_of = np.empty(most)
    for i in range(first, last):
        held = 0
        for q in range(1, 2 * m):
            c = i + (q + 1) // 2 if q % 2 else i - q // 2  # outwards from i: like cells stand near each other
            if c < 0 or c >= m:
                continue
            bar = far_of[held - 1] if held == most else np.inf
            apart = 0.0
            for j in range(d):
                if code[i, j] != code[c, j]:
                    apart += _apart(losses, at, shape, width, j, code[i, j], code[c, j])
                    if apart >= bar:
                        break
            if apart >= bar:
                continue
            y = held if held < most else held - 1
            held = min(held + 1, most)
            while y > 0 and far_of[y - 1] > apart:
                far_of[y], near[i, y] = far_of[y - 1], near[i, y - 1]
                y -= 1
            far_of[y], near[i, y] = apart, c
        near[i, held:] = -1
        far[i] = far_of[held - 1] if held == most and m - 1 > most else np.inf


@njit(**INNER)
def _room(w, d, kinds, group, nodes):
    """Room for searches of ``nodes`` boxes each."""
    s, whole = nodes + 2, np.int64
    return Room(
        np.empty((w, d)), np.empty((w, d), whole), np.empty((w, d), whole), np.empty((s, d)), np.empty((s, d)),
        np.empty((s, w, d), np.bool_), np.empty((s, w), np.bool_), np.empty(s), np.empty(s), np.empty(s),
        np.empty(s, whole), np.empty(s, whole), np.empty(s, whole), np.empty(w), np.empty(w), np.empty(w),
        np.empty(w, whole), np.empty((w, d), whole), np.empty(kinds + 1, whole), np.empty(group + 1),
        np.empty(group + 1), np.empty(group + 1), np.empty(group + 1),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def raises(
    losses,
    at,
    shape,
    sets,
    width,
    code,
    near,
    first,
    last,
    count,
    value,
    kinds,
    group,
    nodes,
    price,
    base,
    active,
    limit,
    out,
):
    """By how much each active cell's price may rise so that no box has K rows whose prices exceed K times its loss.

    The least of (K c - the sum of K prices) / active ones among them, over all boxes of loss c with the cell in it, K
    rows and ``kinds`` values, and over any K of its rows, the cell's among them; or less.  From prices of 0, all
    active, that is the loss of the cheapest box.

    losses, at, shape, width, code, count, value, kinds, group (K)  as for ``kernels.tables.near_rows.nearest``
    sets bool[d] columns published as sets;  near int32[m, w] as from ``near_cells``
    nodes int64       of the search for one cell; where it stops, the least that is still open counts
    price float64[m], active bool[m];  base float64[m] every box of a cell with K rows and the values loses so much
    limit float64[m]  what boxes with a cell that is not near allow
    out float64[m]    of the active cells first .. last - 1
    O((last - first) nodes (w (d + w + K) + nodes)).
    """
    d, w = code.shape[1], near.shape[1]
    room = _room(w, d, kinds, group, nodes)
    for i in range(first, last):
        if not active[i]:
            continue
        n = 0
        while n < w and near[i, n] >= 0:
            n += 1
        for x in range(n):
            for j in range(d):
                a, b = code[i, j], code[near[i, x], j]
                room.amount[x, j] = 0.0 if a == b else _apart(losses, at, shape, width, j, a, b)
                room.mark[x, j] = 0
                room.like[x, j] = x
                if sets[j]:
                    room.mark[x, j] = b + 2
                    for y in range(x):
                        if room.mark[y, j] == b + 2:
                            room.like[x, j] = y
                            break
                elif shape[j] == 1 and losses[at[j] + b] < losses[at[j] + a]:
                    room.mark[x, j] = 1
        out[i] = _least_slack(near[i, :n], count, value, i, kinds, group, nodes, price, base, active, limit[i], room)


@njit(**INNER)
def _apart(losses, at, shape, width, j, a, b):
    """Loss of two different codes of a column published together."""
    if shape[j] == 0:
        return losses[at[j] + a * width[j] + b]
    if shape[j] == 2:
        return losses[at[j]]
    return abs(losses[at[j] + a] - losses[at[j] + b])


@njit(**INNER)
def _asks(room, s, x, j):
    """What a cell still costs in a column beside what box s has."""
    if room.mark[x, j] == 0:
        return max(0.0, room.amount[x, j] - room.high[s, j])
    if room.mark[x, j] == 1:
        return max(0.0, room.amount[x, j] - room.low[s, j])
    return 0.0 if room.have[s, x, j] else room.amount[x, j]


@njit(**INNER)
def _admit(top, held, room, price, times):
    """Up to ``times`` rows more among the ``room`` highest prices, falling; returns how many there are."""
    for _ in range(times):
        if held == room:
            if room == 0 or price <= top[held - 1]:
                return held
            y = held - 1
        else:
            y = held
            held += 1
        while y > 0 and top[y - 1] < price:
            top[y] = top[y - 1]
            y -= 1
        top[y] = price
    return held


@njit(**INNER)
def _look(room, s, near, count, value, i, kinds, group, price, base, active, most):
    """What box s asks next, and a bound on the slack for each active row that boxes with all of it still allow."""
    n, d = near.size, room.amount.shape[1]
    paid, one = room.paid[s], -1
    for x in range(n):
        room.asked[x] = 0.0
        for j in range(d):
            room.asked[x] += _asks(room, s, x, j)
            if room.like[x, j] == x:
                room.held[x, j] = 0
            if room.live[s, x]:
                room.held[room.like[x, j], j] += count[near[x]]
        room.rest[x] = max(room.asked[x], base[near[x]] - paid)
        y = x
        while y > 0 and room.rest[room.order[y - 1]] > room.rest[x]:
            room.order[y] = room.order[y - 1]
            y -= 1
        room.order[y] = x
    for y in range(n):
        x = room.order[y]
        if one < 0 and room.live[s, x] and room.asked[x] > TINY:  # the nearest cell that the box does not hold
            one = x
        room.share[x] = 0.0  # what K - 1 rows that ask for the same pay each, at least
        for j in range(d):
            sharing = group - 1
            if room.mark[x, j] > 1:
                sharing = min(sharing, room.held[room.like[x, j], j])
            room.share[x] += _asks(room, s, x, j) / max(sharing, 1)
    room.one[s] = one
    dearest = -1.0
    if one >= 0:
        for j in range(d):
            more = _asks(room, s, one, j)
            if more > dearest:
                dearest, room.column[s] = more, j
    room.bound[s], room.where[s] = _ratio(room, s, near, count, value, i, kinds, group, price, base, active, most)


@njit(**INNER)
def _ratio(room, s, near, count, value, i, kinds, group, price, base, active, most):
    """The least slack for each active row in boxes with all of box s, and the further loss where it is found.

    A box that loses t more holds no cell that asks more than t, and its cells share what they ask.
    """
    paid, order, on, off, ons, offs = room.paid[s], room.order, room.on, room.off, room.ons, room.offs
    rows, values, t, best = count[i], 1, max(base[i] - paid, 0.0), np.inf
    where = t
    room.seen[0] = value[i]
    alike = min(count[i] - 1, group - 1)
    held, others = _admit(on, 0, group - 1, price[i], alike), 0
    _admit(ons, 0, group - 1, price[i], alike)
    highest = price[i]
    for x in range(near.size):
        if room.live[s, x]:
            highest = max(highest, price[near[x]])
    y = 0
    while True:
        while y < near.size and (not room.live[s, order[y]] or room.rest[order[y]] <= t):
            x = order[y]
            y += 1
            if not room.live[s, x]:
                continue
            c = near[x]
            rows += count[c]
            times = min(count[c], group - 1)
            shared = price[c] - group * room.share[x]
            if active[c]:
                _admit(ons, held, group - 1, shared, times)
                held = _admit(on, held, group - 1, price[c], times)
            else:
                _admit(offs, others, group - 1, shared, times)
                others = _admit(off, others, group - 1, price[c], times)
            if values < kinds:
                new = True
                for v in range(values):
                    new = new and room.seen[v] != value[c]
                if new:
                    room.seen[values] = value[c]
                    values += 1
        whole = group * (paid + t) - price[i]
        if (whole - (group - 1) * highest) / group >= min(best, most):
            if whole >= (group - 1) * highest and most <= best:
                best = min(best, max((whole - (group - 1) * highest) / group, most))
            break
        if rows >= group and values >= kinds:
            few = max(group - 1 - others, 0)  # active ones that there must be
            taken, sharing = 0.0, 0.0
            for z in range(few):
                taken += on[z]
                sharing += ons[z]
            for z in range(group - 1 - few):
                taken += off[z]
                sharing += offs[z]
            for a in range(few, held + 1):
                if a > few:
                    taken += on[a - 1] - off[group - 1 - a]
                    sharing += ons[a - 1] - offs[group - 1 - a]
                slack = max(whole - taken, group * paid - price[i] - sharing) / (a + 1)
                if slack < best:
                    best, where = slack, t
        if y >= near.size:
            break
        t = room.rest[order[y]]
    return best, where


@njit(**INNER)
def _least_slack(near, count, value, i, kinds, group, nodes, price, base, active, limit, room):
    """Branch and bound, the least bound first: a box takes what its nearest other cell asks of a column, or never."""
    n, d = near.size, room.amount.shape[1]
    room.low[0, :], room.high[0, :], room.paid[0] = 0.0, 0.0, 0.0
    for x in range(n):
        room.live[0, x] = True
        for j in range(d):
            room.have[0, x, j] = room.amount[x, j] == 0.0
    _look(room, 0, near, count, value, i, kinds, group, price, base, active, limit)
    room.open[0] = 0
    opened, used = 1, 1
    while opened > 0:
        least = 0
        for y in range(opened):
            if room.bound[room.open[y]] < room.bound[room.open[least]]:
                least = y
        s = room.open[least]
        if room.bound[s] >= limit:
            return limit
        if room.where[s] <= TINY or room.one[s] < 0 or used > nodes:
            return room.bound[s]
        one, j, before = room.one[s], room.column[s], room.bound[s]
        side, new = room.mark[one, j], used
        used += 1
        room.low[new, :], room.high[new, :], room.paid[new] = room.low[s], room.high[s], room.paid[s]
        room.paid[new] += _asks(room, s, one, j)
        for x in range(n):
            room.live[new, x] = room.live[s, x]
            for z in range(d):
                room.have[new, x, z] = room.have[s, x, z]
            if room.mark[x, j] == side:
                room.have[new, x, j] = room.have[new, x, j] or side > 1
                if side > 1 or room.amount[x, j] >= room.amount[one, j]:
                    room.live[s, x] = False
        if side == 0:
            room.high[new, j] = max(room.high[s, j], room.amount[one, j])
        elif side == 1:
            room.low[new, j] = max(room.low[s, j], room.amount[one, j])
        opened -= 1
        room.open[least] = room.open[opened]
        for box in (s, new):
            _look(room, box, near, count, value, i, kinds, group, price, base, active, limit)
            room.bound[box] = max(room.bound[box], before)
            if room.bound[box] < limit:
                room.open[opened] = box
                opened += 1
    return limit
