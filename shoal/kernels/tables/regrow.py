"""Rows of a few near groups grouped from scratch."""

from __future__ import annotations

import numpy as np

from shoal.kernels import LEAN_INNER, njit
from shoal.kernels.tables.eligible import BAND, EQUAL, group_gap
from shoal.kernels.tables.near_groups import absorb, drop, fits, forget, gap_of, holds, put
from shoal.kernels.tables.slots import join, joined


@njit(**LEAN_INNER)
def draw(random):
    """The next number in 0..1 of xorshift64*; random uint64[1]."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit(**LEAN_INNER)
def _ask_anew(near, rules):
    """Nothing is known of any kind."""
    if rules is None:
        return
    for y in range(near.kinds[0]):
        near.far[y] = -1.0


@njit(**LEAN_INNER)
def _too_many(near, rules, g, y, target):
    """Whether a row of y's kind brings a value above what a group of target rows may hold under the other models."""
    if rules is None:
        return False
    if near.far[near.kind[y]] < 0.0:
        near.far[near.kind[y]] = 1.0 if _above(near, rules, g, y, target) else 0.0
    return near.far[near.kind[y]] > 0.0


@njit(**LEAN_INNER)
def _above(near, rules, g, y, target):
    """The same, found by looking at the group's rows."""
    for i in range(rules.kind.size):
        j = rules.column[i]
        if j < 0:
            continue
        v = near.code[y, j]
        held = near.held[g, j, near.value[y, j]] + 1
        if rules.kind[i] == BAND and held / target > rules.table[rules.at[i] + 2 * v + 1] + 1e-9:
            return True
        if rules.kind[i] == EQUAL:
            over = max(0.0, held / target - rules.table[rules.at[i] + v])
            for x in range(near.size[g]):  # each row bears its part of what its value has too much of
                w = near.member[g, x]
                many = near.held[g, j, near.value[w, j]]
                share = rules.table[rules.at[i] + near.code[w, j]]
                if near.code[w, j] != v and many > share * target:
                    over += 1.0 / target - share / many
            if over > rules.number[i] + 1e-9:
                return True
    return False


@njit(**LEAN_INNER)
def _crowded(near, g, y):
    """Whether row y brings group g more of a value than its share: of the other values a row more leaves less."""
    for j in range(near.frequency.size):
        if (near.held[g, j, near.value[y, j]] + 1) * near.frequency[j] > near.size[g] + 1:
            return True
    return False


@njit(**LEAN_INNER)
def _complete(slots, near, rules, g, most):
    """Rows without a group join group g until the other models hold: each time the one that leads nearest to that,
    of equals the cheapest.  False when no row leads nearer, or the group would have more than ``most`` rows."""
    if rules is None:
        return True
    gap = gap_of(near, rules, g, -1, -1)
    while gap > 0.0:
        if near.size[g] >= most:
            return False
        best, lowest, least = -1, np.inf, np.inf
        _ask_anew(near, rules)
        for y in range(near.group.size):
            if near.group[y] >= 0 or _crowded(near, g, y):
                continue
            if near.far[near.kind[y]] < 0.0:
                near.far[near.kind[y]] = gap_of(near, rules, g, -1, y)
            found = near.far[near.kind[y]]
            if found > lowest + 1e-12:
                continue
            price = joined(slots, near.state[g], near.leaf[y], least if found > lowest - 1e-12 else np.inf)
            if found < lowest - 1e-12 or price < least:
                best, lowest, least = y, found, price
        if best < 0 or lowest >= gap:
            return False
        put(near, best, g)
        for t in range(near.leaf.shape[1]):
            near.state[g, t] = join(slots, t, near.state[g, t], near.leaf[best, t])
        gap = lowest
    return True


@njit(**LEAN_INNER)
def grow(slots, near, groups, target, random):
    """Group the rows from scratch: each group grows from a random row by the row that costs least.

    Leaves at most ``groups`` groups; returns their number, or -1 when some row fits nowhere.  What a row would cost
    only rises while a group grows, so its last price tells which rows need no other look.
    """
    r, s = near.group.size, near.frequency.size
    for g in range(groups):
        near.size[g] = 0
        for j in range(s):
            for x in range(r):
                near.held[g, j, x] = 0
    for x in range(r):
        near.group[x] = -1
    left, made = r, 0
    while left >= target and made < groups:
        pick = int(draw(random) * left)
        for x in range(r):
            if near.group[x] < 0:
                if pick == 0:
                    break
                pick -= 1
        g = made
        put(near, x, g)
        for t in range(near.leaf.shape[1]):
            near.state[g, t] = near.leaf[x, t]
        near.without[:] = 0.0
        stuck = False
        while near.size[g] < target:
            places = target - near.size[g]
            best, least = -1, np.inf
            _ask_anew(near, near.rules)
            for y in range(r):
                if near.group[y] >= 0 or near.without[y] >= least:
                    continue
                may = True
                for j in range(s):
                    same = near.held[g, j, near.value[y, j]]
                    if near.frequency[j] > 1 and (same + 1) * near.frequency[j] > target:
                        may = False
                        break
                    if near.distinct[j] > 1 and same > 0:
                        kinds = 0
                        for z in range(r):
                            kinds += near.held[g, j, z] > 0
                        if near.distinct[j] - kinds >= places:
                            may = False
                            break
                if may and not _too_many(near, near.rules, g, y, target):
                    price = joined(slots, near.state[g], near.leaf[y], least)
                    near.without[y] = price
                    if price < least:
                        best, least = y, price
            if best < 0:
                stuck = True
                break
            put(near, best, g)
            for t in range(near.leaf.shape[1]):
                near.state[g, t] = join(slots, t, near.state[g, t], near.leaf[best, t])
        stuck = stuck or not _complete(slots, near, near.rules, g, 2 * target + 4)
        size = near.size[g]
        if stuck:
            while near.size[g] > 0:
                y = near.member[g, 0]
                drop(near, y)
                near.group[y] = -1
            break
        near.price[g] = joined(slots, near.state[g], near.state[g], np.inf)
        forget(near, near.rules, g)
        left -= size
        made += 1
    if made == 0:
        return -1
    while left > 0:
        waiting = left
        for x in range(r):
            if near.group[x] >= 0:
                continue
            best, least = -1, np.inf
            for g in range(made):
                n = near.size[g]
                rise = (n + 1) * joined(slots, near.state[g], near.leaf[x], np.inf) - n * near.price[g]
                if rise < least and fits(near, near.rules, g, -1, x):
                    best, least = g, rise
            if best >= 0:
                put(near, x, best)
                forget(near, near.rules, best)
                for t in range(near.leaf.shape[1]):
                    near.state[best, t] = join(slots, t, near.state[best, t], near.leaf[x, t])
                near.price[best] = joined(slots, near.state[best], near.state[best], np.inf)
                left -= 1
        if left == waiting:
            return _pool(slots, near, near.rules, made)
    return made


@njit(**LEAN_INNER)
def _pool(slots, near, rules, made):
    """Rows without a group join, together, the groups that make them eligible at the least loss; returns the groups.

    Ends at the latest with everything in one group, which is a union of eligible ones.  Without rules -1 is returned.
    """
    if rules is None:
        return -1
    r, pool = near.group.size, made
    near.size[pool] = 0
    for j in range(near.frequency.size):
        for x in range(r):
            near.held[pool, j, x] = 0
    for x in range(r):
        if near.group[x] < 0:
            put(near, x, pool)
            for t in range(near.leaf.shape[1]):
                a = near.leaf[x, t]
                near.state[pool, t] = a if near.size[pool] == 1 else join(slots, t, near.state[pool, t], a)
    made += 1
    while not holds(near, pool):
        if made == 1:
            return -1
        best, least = -1, np.inf
        for g in range(made):
            if g == pool:
                continue
            n = 0
            for i in range(near.size[g]):
                near.who[n] = near.member[g, i]
                n += 1
            for i in range(near.size[pool]):
                near.who[n] = near.member[pool, i]
                n += 1
            gap = group_gap(rules, near.code, near.who, None, n, near.count, near.seen, np.inf)
            price = n * joined(slots, near.state[g], near.state[pool], np.inf) - near.size[g] * near.price[g]
            price += 10.0 * n * gap
            if price < least:
                best, least = g, price
        absorb(slots, near, pool, best)
        made -= 1
        if pool < made:  # the last group takes the empty place
            absorb(slots, near, made, pool)
            near.price[pool] = near.price[made]
            pool = pool if best == made else best
        else:
            pool = best
    near.price[pool] = joined(slots, near.state[pool], near.state[pool], np.inf)
    return made
