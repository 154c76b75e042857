"""Neighborhood search: near groups are taken apart, their rows grouped anew, and what is not dearer is kept."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels import LEAN, LEAN_INNER
from shoal.kernels.tables.near_groups import Near, drop, few, fits, forget, number, put, refresh
from shoal.kernels.tables.regrow import draw, grow
from shoal.kernels.tables.slots import join, joined

TINY = 1e-10  # of the sums compared
AT_ONCE = 8  # near groups looked for


@njit(**LEAN_INNER)
def _descend(slots, near, groups):
    """Move or swap rows between groups while that lowers the loss; every group stays eligible."""
    r = near.group.size
    quiet, x = 0, 0
    for _ in range(200 * r):
        if quiet >= r:
            break
        a = near.group[x]
        n, old = near.size[a], near.price[near.group[x]]
        best, partner, target = 0.0, -1, -1
        if n > near.k[0] and fits(near, near.rules, a, x, -1):
            gain = n * old - (n - 1) * joined(slots, near.rest[x], near.rest[x], np.inf)
            for b in range(groups):
                if b != a:
                    m = near.size[b]
                    limit = (best + gain + m * near.price[b]) / (m + 1)
                    change = (m + 1) * joined(slots, near.state[b], near.leaf[x], limit) - m * near.price[b] - gain
                    if change < best - TINY * (1.0 + gain) and fits(near, near.rules, b, -1, x):
                        best, partner, target = change, -1, b
        for y in range(r):
            b = near.group[y]
            if b == a:
                continue
            m = near.size[b]
            room = best + n * old + m * near.price[b]
            room -= TINY * (1.0 + room)  # sums that stopped early may round to the bar itself
            if room <= 0:
                continue
            change = n * joined(slots, near.rest[x], near.leaf[y], room / n)
            if change >= room:
                continue
            change += m * joined(slots, near.rest[y], near.leaf[x], (room - change) / m)
            if change < room and fits(near, near.rules, a, x, y) and fits(near, near.rules, b, y, x):
                best, partner, target = change - n * old - m * near.price[b], y, b
        if target < 0:
            quiet += 1
        else:
            quiet = 0
            drop(near, x)
            if partner >= 0:
                drop(near, partner)
                put(near, partner, a)
            put(near, x, target)
            refresh(slots, near, a)
            refresh(slots, near, target)
            forget(near, near.rules, a)
            forget(near, near.rules, target)
        x = x + 1 if x + 1 < r else 0


class Room(NamedTuple):
    """What a search works in, for n rows and at most g groups, ``most`` rows taken apart at once.

    head, size int64[g], following int64[n]  the rows of each group as a list; state int64[g, t]; price float64[g] loss
    of one row; chosen int64[c], distance float64[c] the nearest groups; who, before int64[most] the rows taken apart
    and the part each comes from; random uint64[1]
    """

    head: np.ndarray
    following: np.ndarray
    size: np.ndarray
    state: np.ndarray
    price: np.ndarray
    chosen: np.ndarray
    distance: np.ndarray
    who: np.ndarray
    before: np.ndarray
    random: np.ndarray


def improve(slots, leaf, cell, first, near_cell, sensitive, group, groups, k, frequency, distinct, rules, steps, seed,
            most):  # fmt: skip
    """Neighborhood search: take near groups apart, group their rows anew, descend, keep what is not dearer.

    leaf int64[n, t], sensitive int64[n, s] (numbered 0 .. n-1 at most), group int64[n] labels below groups, updated
    cell int64[n] rising from 0, first int64[cells + 1] where the rows of each cell begin
    near_cell int32[cells, w] other cells, nearest first, -1 for none: where near groups are looked for
    k, frequency int64[s], distinct int64[s], rules   the requirement; every group given meets it, and so does every
    group left; with rules the sensitive values are numbered as in these
    steps int64, seed uint64   neighborhoods tried, start of the random numbers
    most  int64  rows taken apart at once; groups above it are left alone
    returns the change of the loss, at most 0.  Space O(n t), time O(steps (n + most^2) t).

    Python makes the room: a kernel that makes none compiles in three quarters of the time.
    """
    n, width = leaf.shape
    need = int(max([k, *frequency, *distinct]))
    held = groups + n // need + 1
    room = Room(
        np.full(held, -1, np.int64), np.empty(n, np.int64), np.zeros(held, np.int64), np.empty((held, width), np.int64),
        np.zeros(held), np.empty(AT_ONCE, np.int64), np.empty(AT_ONCE), np.empty(most, np.int64),
        np.empty(most, np.int64), np.array([seed | np.uint64(1)], np.uint64),
    )  # fmt: skip
    big = few(most, max(AT_ONCE, most // need) + 1, width, k, frequency, distinct, rules)
    return _improve(slots, leaf, cell, first, near_cell, sensitive, group, groups, need, steps, room, big)


@njit(**LEAN)
def _improve(slots, leaf, cell, first, near_cell, sensitive, group, groups, need, steps, room, big):
    """The same; need int64 rows of the least group, room and big as ``Room`` and ``Near`` say."""
    n, width = leaf.shape
    s = big.frequency.size
    most = big.group.size
    rules = big.rules
    head, following, size, state, price, chosen, distance, who, before, random = room
    at_once, parts = chosen.size, big.size.size
    for _ in range(8):
        draw(random)
    for x in range(n):
        g = group[x]
        for t in range(width):
            state[g, t] = leaf[x, t] if size[g] == 0 else join(slots, t, state[g, t], leaf[x, t])
        following[x] = head[g]
        head[g] = x
        size[g] += 1
    for g in range(groups):
        if size[g]:
            price[g] = joined(slots, state[g], state[g], np.inf)
    gained = 0.0
    for _ in range(steps):
        x0 = int(draw(random) * n)
        for _ in range(2):  # of three rows the one that loses most
            other = int(draw(random) * n)
            if price[group[other]] > price[group[x0]]:
                x0 = other
        g0 = group[x0]
        if size[g0] > most - need or price[g0] <= 0.0:
            continue
        found = 0
        kind = draw(random)
        by_rows, wide = kind < 0.5, kind > 0.75  # what is joined with what: rows, group and row, or groups
        middle = state[g0] if wide else leaf[x0]
        source = head[g0] if wide else x0
        while source >= 0:
            for q in range(-1, near_cell.shape[1]):
                c = cell[source] if q < 0 else np.int64(near_cell[cell[source], q])
                if c < 0:
                    continue
                held = first[c + 1] - first[c]
                x = first[c] + (int(draw(random) * held) if held > 4 else 0)
                for _ in range(min(held, 4)):
                    g = group[x]
                    far_of = x
                    x = x + 1 if x + 1 < first[c + 1] else first[c]
                    if g == g0 or size[g] > most - need:
                        continue
                    limit = distance[at_once - 1] if found == at_once else np.inf
                    far = joined(slots, leaf[far_of] if by_rows else state[g], middle, limit)
                    if far > limit:
                        continue
                    far *= 1.0 + 0.3 * draw(random)
                    y = -1
                    for z in range(found):
                        if chosen[z] == g:
                            y = z
                            break
                    if y >= 0:
                        if distance[y] <= far:
                            continue
                    elif found < at_once:
                        y = found
                        found += 1
                    else:
                        if far >= limit:
                            continue
                        y = at_once - 1
                    while y > 0 and distance[y - 1] > far:
                        distance[y], chosen[y] = distance[y - 1], chosen[y - 1]
                        y -= 1
                    distance[y], chosen[y] = far, g
            source = following[source] if wide else -1
        if found == 0:
            continue
        wanted = 1 + int(draw(random) * 5)
        r, taken = 0, 0
        old = 0.0
        for z in range(-1, min(found, wanted)):
            g = g0 if z < 0 else chosen[z]
            if r + size[g] > most:
                continue
            if z >= 0:
                chosen[taken - 1] = g
            taken += 1
            old += size[g] * price[g]
            x = head[g]
            while x >= 0:
                who[r] = x
                before[r] = taken - 1
                r += 1
                x = following[x]
        if taken < 2:
            continue
        near = Near(
            big.leaf[:r], big.value[:r], big.group[:r], big.member, big.size, big.held, big.state, big.price,
            big.rest[:r], big.k, big.frequency, big.distinct, big.rules, big.code, big.who, big.count,
            big.seen, big.kind, big.kinds, big.known, big.far,
        )  # fmt: skip
        for x in range(r):
            for t in range(width):
                near.leaf[x, t] = leaf[who[x], t]
            for j in range(s):
                near.code[x, j] = sensitive[who[x], j]
                near.value[x, j] = x
                for y in range(x):
                    if sensitive[who[y], j] == sensitive[who[x], j]:
                        near.value[x, j] = near.value[y, j]
                        break
        number(near, rules)
        made = -1
        if draw(random) < 0.9:
            target = need
            if rules is not None:  # the least size leaves some models no freedom
                target += int(draw(random) * (need // 2 + 1))
            made = grow(slots, near, min(r // need, parts), target, random)
        if made < 0:
            made = taken
            for g in range(made):
                near.size[g] = 0
                for j in range(s):
                    for x in range(r):
                        near.held[g, j, x] = 0
                forget(near, near.rules, g)
            for x in range(r):
                put(near, x, before[x])
            swaps = 1 + int(draw(random) * 4)
            for _ in range(4 * swaps):
                x, y = int(draw(random) * r), int(draw(random) * r)
                a, b = near.group[x], near.group[y]
                if a != b and fits(near, near.rules, a, x, y) and fits(near, near.rules, b, y, x):
                    drop(near, x)
                    drop(near, y)
                    put(near, x, b)
                    put(near, y, a)
                    forget(near, near.rules, a)
                    forget(near, near.rules, b)
                    swaps -= 1
                    if swaps == 0:
                        break
        for g in range(made):
            refresh(slots, near, g)
            forget(near, near.rules, g)
        _descend(slots, near, made)
        new = 0.0
        for g in range(made):
            new += near.size[g] * near.price[g]
        if new > old + 1e-12:
            continue
        gained += min(new - old, 0.0)
        free = 0
        for z in range(taken):
            g = g0 if z == 0 else chosen[z - 1]
            size[g] = 0
            head[g] = -1
        for g in range(made):
            if g < taken:
                label = g0 if g == 0 else chosen[g - 1]
            else:
                while size[free] > 0:
                    free += 1
                label = free
            size[label] = near.size[g]
            price[label] = near.price[g]
            for t in range(width):
                state[label, t] = near.state[g, t]
            for i in range(near.size[g]):
                x = who[near.member[g, i]]
                group[x] = label
                following[x] = head[label]
                head[label] = x
    return gained
