"""Rows in small groups: what a group publishes, what a row more would cost, and which exchanges lower the loss.

What a group publishes is kept in *slots*, one int64 per group and slot; everything the kernels know of a recoding is
how two slot values join and what a value costs a row.

kind 0  a node of a tree, joined by a table of lowest common ancestors
kind 1  the same for large trees: nodes are numbered level by level, so the lesser number climbs until both are equal
kind 2  a set, one bit per value (columns of more than 60 values take several slots)
kind 3  a range of codes, low | high << 32
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels import INNER
from shoal.kernels.tables.eligible import BAND, EQUAL, Rules, group_gap, widest

LOW = np.int64(0xFFFFFFFF)
TINY = 1e-10  # of the sums compared


class Slots(NamedTuple):
    """kind int64[t]; base int64[t] into parent int32[..] and loss float64[..] (ranges: position of each code);
    table int64[t] into ancestor int16[..], pair float64[..] (loss of that
    ancestor), width int64[t] nodes of the tree; unit float64[t] factor of sets, ranges."""

    kind: np.ndarray
    base: np.ndarray
    parent: np.ndarray
    loss: np.ndarray
    table: np.ndarray
    width: np.ndarray
    ancestor: np.ndarray
    pair: np.ndarray
    unit: np.ndarray


@njit(**INNER)
def join(slots, t, a, b):
    """The least value that covers both."""
    if a == b:
        return a
    kind = slots.kind[t]
    if kind == 0:
        return np.int64(slots.ancestor[slots.table[t] + a * slots.width[t] + b])
    if kind == 1:
        p = slots.base[t]
        while a != b:
            if a < b:
                a = np.int64(slots.parent[p + a])
            else:
                b = np.int64(slots.parent[p + b])
        return a
    if kind == 2:
        return a | b
    return min(a & LOW, b & LOW) | (max(a >> 32, b >> 32) << 32)


@njit(**INNER)
def cost(slots, t, a):
    """What publishing value a in slot t costs one row."""
    kind = slots.kind[t]
    if kind < 2:
        return slots.loss[slots.base[t] + a]
    if kind == 2:
        a = a - ((a >> 1) & 0x5555555555555555)  # number of bits, in parallel
        a = (a & 0x3333333333333333) + ((a >> 2) & 0x3333333333333333)
        a = (a + (a >> 4)) & 0x0F0F0F0F0F0F0F0F
        return np.float64(((a * 0x0101010101010101) >> 56) & 127) * slots.unit[t]
    return (slots.loss[slots.base[t] + (a >> 32)] - slots.loss[slots.base[t] + (a & LOW)]) * slots.unit[t]


@njit(**INNER)
def joined(slots, a, b, limit):
    """Loss per row of the join of two rows of slots; may stop early at any value above limit."""
    total = 0.0
    for t in range(a.size):
        if slots.kind[t] == 0:
            total += slots.pair[slots.table[t] + a[t] * slots.width[t] + b[t]]
        else:
            total += cost(slots, t, join(slots, t, a[t], b[t]))
        if total > limit:
            break
    return total


@njit(cache=True, nogil=True)
def prices(slots, state):
    """What publishing each line of slots costs one row, float64[g].  O(g t)."""
    out = np.empty(state.shape[0])
    for g in range(out.size):
        out[g] = joined(slots, state[g], state[g], np.inf)
    return out


class Near(NamedTuple):
    """A few near groups taken apart, r rows and at most g groups.

    leaf int64[r, t]; value int64[r, s] sensitive values numbered among these rows
    group int64[r]; member int64[g, r], size int64[g]; held int64[g, s, r] rows of each value
    state int64[g, t]; price float64[g] loss of one row; rest int64[r, t] join of the other rows of a row's group
    k int64[1]; frequency, distinct int64[s]
    rules  the other models; code int64[r, s] the values as those number them; who, many int64[r] room for a group,
    many all 1; count, seen int64[widest column] room for its values, count all 0
    """

    leaf: np.ndarray
    value: np.ndarray
    group: np.ndarray
    member: np.ndarray
    size: np.ndarray
    held: np.ndarray
    state: np.ndarray
    price: np.ndarray
    rest: np.ndarray
    k: np.ndarray
    frequency: np.ndarray
    distinct: np.ndarray
    rules: Rules | None
    code: np.ndarray
    who: np.ndarray
    many: np.ndarray
    count: np.ndarray
    seen: np.ndarray


@njit(**INNER)
def _draw(random):
    """The next number in 0..1 of xorshift64*; random uint64[1]."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    return np.float64((x * np.uint64(2685821657736338717)) >> np.uint64(11)) / 9007199254740992.0


@njit(**INNER)
def _put(near, x, g):
    """Append row x to group g."""
    near.group[x] = g
    near.member[g, near.size[g]] = x
    near.size[g] += 1
    for j in range(near.frequency.size):
        near.held[g, j, near.value[x, j]] += 1


@njit(**INNER)
def _drop(near, x):
    """Take row x out of its group."""
    g = near.group[x]
    n = near.size[g]
    for i in range(n):
        if near.member[g, i] == x:
            near.member[g, i] = near.member[g, n - 1]
            break
    near.size[g] = n - 1
    for j in range(near.frequency.size):
        near.held[g, j, near.value[x, j]] -= 1


@njit(**INNER)
def _refresh(slots, near, g):
    """State and price of a group and the rest of each of its rows, by joins from the left and from the right."""
    n = near.size[g]
    for t in range(near.leaf.shape[1]):
        first = near.member[g, 0]
        a = near.leaf[first, t]
        for i in range(1, n):
            x = near.member[g, i]
            near.rest[x, t] = a
            a = join(slots, t, a, near.leaf[x, t])
        near.state[g, t] = a
        if n > 1:
            b = near.leaf[near.member[g, n - 1], t]
            for i in range(n - 2, 0, -1):
                x = near.member[g, i]
                near.rest[x, t] = join(slots, t, near.rest[x, t], b)
                b = join(slots, t, b, near.leaf[x, t])
            near.rest[first, t] = b
        else:
            near.rest[first, t] = a
    near.price[g] = joined(slots, near.state[g], near.state[g], np.inf)


@njit(**INNER)
def _fits(near, g, gone, come):
    """Whether group g stays eligible when row gone leaves it (-1: none) and row come joins it (-1: none)."""
    n = near.size[g] - (gone >= 0) + (come >= 0)
    if n < near.k[0]:
        return False
    for j in range(near.frequency.size):
        held = near.held[g, j]
        out = near.value[gone, j] if gone >= 0 else -1
        into = near.value[come, j] if come >= 0 else -1
        if out == into:
            continue
        l = near.frequency[j]
        if l > 1:
            if come >= 0 and (held[into] + 1) * l > n:
                return False
            if come < 0:
                for i in range(near.size[g]):
                    w = near.value[near.member[g, i], j]
                    if (held[w] - (w == out)) * l > n:
                        return False
        u = near.distinct[j]
        if u > 1 and out >= 0 and held[out] == 1 and not (come >= 0 and held[into] == 0):
            kinds = 0
            for i in range(near.size[g]):
                x = near.member[g, i]
                w = near.value[x, j]
                fresh = True
                for y in range(i):
                    if near.value[near.member[g, y], j] == w:
                        fresh = False
                        break
                kinds += fresh
            if kinds - 1 < u:
                return False
    return _exchanged(near, near.rules, g, gone, come)


@njit(**INNER)
def _exchanged(near, rules, g, gone, come):
    """Whether the other models still hold in group g when row gone leaves it and row come joins it."""
    if rules is None:
        return True
    if gone >= 0 and come >= 0:
        same = True
        for j in range(near.frequency.size):
            same = same and near.value[gone, j] == near.value[come, j]
        if same:  # rows that no model tells apart
            return True
    return _gap(near, rules, g, gone, come) <= 0.0


@njit(**INNER)
def _gap(near, rules, g, gone, come):
    """How far group g is from the other models when row gone leaves it (-1: none) and row come joins it (-1: none)."""
    if rules is None:
        return 0.0
    n = 0
    for i in range(near.size[g]):
        if near.member[g, i] != gone:
            near.who[n] = near.member[g, i]
            n += 1
    if come >= 0:
        near.who[n] = come
        n += 1
    return group_gap(rules, near.code, near.who, near.many, n, near.count, near.seen)


@njit(**INNER)
def _too_many(near, rules, g, y, target):
    """Whether row y brings its value above what a group of target rows may hold under the other models."""
    if rules is None:
        return False
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
            for x in range(near.size[g]):
                w = near.member[g, x]
                if near.value[w, j] != near.value[y, j]:
                    known = False
                    for z in range(x):
                        if near.value[near.member[g, z], j] == near.value[w, j]:
                            known = True
                            break
                    if not known:
                        share = near.held[g, j, near.value[w, j]] / target
                        over += max(0.0, share - rules.table[rules.at[i] + near.code[w, j]])
            if over > rules.number[i] + 1e-9:
                return True
    return False


@njit(**INNER)
def _complete(slots, near, rules, g, most):
    """Rows without a group join group g until the other models hold: each time the one that leads nearest to that,
    of equals the cheapest.  False when no row leads nearer, or the group would have more than ``most`` rows."""
    if rules is None:
        return True
    gap = _gap(near, rules, g, -1, -1)
    while gap > 0.0:
        if near.size[g] >= most:
            return False
        best, lowest, least = -1, np.inf, np.inf
        for y in range(near.group.size):
            if near.group[y] >= 0:
                continue
            found = _gap(near, rules, g, -1, y)
            if found > lowest + 1e-12:
                continue
            price = joined(slots, near.state[g], near.leaf[y], least if found > lowest - 1e-12 else np.inf)
            if found < lowest - 1e-12 or price < least:
                best, lowest, least = y, found, price
        if best < 0 or lowest >= gap:
            return False
        _put(near, best, g)
        for t in range(near.leaf.shape[1]):
            near.state[g, t] = join(slots, t, near.state[g, t], near.leaf[best, t])
        gap = lowest
    return True


@njit(**INNER)
def _grow(slots, near, groups, target, random):
    """Group the rows from scratch: each group grows from a random row by the row that costs least.

    Leaves at most ``groups`` groups; returns their number, or -1 when some row fits nowhere.
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
        pick = int(_draw(random) * left)
        for x in range(r):
            if near.group[x] < 0:
                if pick == 0:
                    break
                pick -= 1
        g = made
        _put(near, x, g)
        for t in range(near.leaf.shape[1]):
            near.state[g, t] = near.leaf[x, t]
        stuck = False
        while near.size[g] < target:
            places = target - near.size[g]
            best, least = -1, np.inf
            for y in range(r):
                if near.group[y] >= 0:
                    continue
                fits = True
                for j in range(s):
                    same = near.held[g, j, near.value[y, j]]
                    if near.frequency[j] > 1 and (same + 1) * near.frequency[j] > target:
                        fits = False
                        break
                    if near.distinct[j] > 1 and same > 0:
                        kinds = 0
                        for z in range(r):
                            kinds += near.held[g, j, z] > 0
                        if near.distinct[j] - kinds >= places:
                            fits = False
                            break
                if fits and not _too_many(near, near.rules, g, y, target):
                    price = joined(slots, near.state[g], near.leaf[y], least)
                    if price < least:
                        best, least = y, price
            if best < 0:
                stuck = True
                break
            _put(near, best, g)
            for t in range(near.leaf.shape[1]):
                near.state[g, t] = join(slots, t, near.state[g, t], near.leaf[best, t])
        stuck = stuck or not _complete(slots, near, near.rules, g, 2 * target + 4)
        size = near.size[g]
        if stuck:
            while near.size[g] > 0:
                y = near.member[g, 0]
                _drop(near, y)
                near.group[y] = -1
            break
        near.price[g] = joined(slots, near.state[g], near.state[g], np.inf)
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
                if rise < least and _fits(near, g, -1, x):
                    best, least = g, rise
            if best >= 0:
                _put(near, x, best)
                for t in range(near.leaf.shape[1]):
                    near.state[best, t] = join(slots, t, near.state[best, t], near.leaf[x, t])
                near.price[best] = joined(slots, near.state[best], near.state[best], np.inf)
                left -= 1
        if left == waiting:
            return _pool(slots, near, near.rules, made)
    return made


@njit(**INNER)
def _holds(near, g):
    """Whether group g is eligible as it is.  O(r s)."""
    if near.size[g] < near.k[0]:
        return False
    for j in range(near.frequency.size):
        kinds, top = 0, 0
        for x in range(near.group.size):
            kinds += near.held[g, j, x] > 0
            top = max(top, near.held[g, j, x])
        if kinds < near.distinct[j] or top * near.frequency[j] > near.size[g]:
            return False
    return _gap(near, near.rules, g, -1, -1) <= 0.0


@njit(**INNER)
def _absorb(slots, near, g, into):
    """All rows of group g move to another."""
    while near.size[g] > 0:
        x = near.member[g, near.size[g] - 1]
        _drop(near, x)
        _put(near, x, into)
        for t in range(near.leaf.shape[1]):
            a = near.leaf[x, t]
            near.state[into, t] = a if near.size[into] == 1 else join(slots, t, near.state[into, t], a)


@njit(**INNER)
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
            _put(near, x, pool)
            for t in range(near.leaf.shape[1]):
                a = near.leaf[x, t]
                near.state[pool, t] = a if near.size[pool] == 1 else join(slots, t, near.state[pool, t], a)
    made += 1
    while not _holds(near, pool):
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
            gap = group_gap(rules, near.code, near.who, near.many, n, near.count, near.seen)
            price = n * joined(slots, near.state[g], near.state[pool], np.inf) - near.size[g] * near.price[g]
            price += 10.0 * n * gap
            if price < least:
                best, least = g, price
        _absorb(slots, near, pool, best)
        made -= 1
        if pool < made:  # the last group takes the empty place
            _absorb(slots, near, made, pool)
            near.price[pool] = near.price[made]
            pool = pool if best == made else best
        else:
            pool = best
    near.price[pool] = joined(slots, near.state[pool], near.state[pool], np.inf)
    return made


@njit(**INNER)
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
        if n > near.k[0] and _fits(near, a, x, -1):
            gain = n * old - (n - 1) * joined(slots, near.rest[x], near.rest[x], np.inf)
            for b in range(groups):
                if b != a:
                    m = near.size[b]
                    limit = (best + gain + m * near.price[b]) / (m + 1)
                    change = (m + 1) * joined(slots, near.state[b], near.leaf[x], limit) - m * near.price[b] - gain
                    if change < best - TINY * (1.0 + gain) and _fits(near, b, -1, x):
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
            if change < room and _fits(near, a, x, y) and _fits(near, b, y, x):
                best, partner, target = change - n * old - m * near.price[b], y, b
        if target < 0:
            quiet += 1
        else:
            quiet = 0
            _drop(near, x)
            if partner >= 0:
                _drop(near, partner)
                _put(near, partner, a)
            _put(near, x, target)
            _refresh(slots, near, a)
            _refresh(slots, near, target)
        x = x + 1 if x + 1 < r else 0


@njit(cache=True, nogil=True)
def improve(slots, leaf, cell, first, near_cell, sensitive, group, groups, k, frequency, distinct, rules, steps, seed,
            most):  # fmt: skip
    """Neighbourhood search: take near groups apart, group their rows anew, descend, keep what is not dearer.

    leaf int64[n, t], sensitive int64[n, s] (numbered 0 .. n-1 at most), group int64[n] labels below groups, updated
    cell int64[n] rising from 0, first int64[cells + 1] where the rows of each cell begin
    near_cell int32[cells, w] other cells, nearest first, -1 for none: where near groups are looked for
    k, frequency int64[s], distinct int64[s], rules   the requirement; every group given meets it, and so does every
    group left; with rules the sensitive values are numbered as in these
    steps int64, seed uint64   neighbourhoods tried, start of the random numbers
    most  int64  rows taken apart at once; groups above it are left alone
    returns the change of the loss, at most 0.  Space O(n t), time O(steps (n + most^2) t).
    """
    n, width = leaf.shape
    s = frequency.size
    need = k
    for j in range(s):
        need = max(need, frequency[j], distinct[j])
    random = np.empty(1, np.uint64)
    random[0] = seed | np.uint64(1)
    for _ in range(8):
        _draw(random)
    room = groups + n // need + 1
    head, following = np.full(room, -1, np.int64), np.empty(n, np.int64)
    size, state, price = np.zeros(room, np.int64), np.empty((room, width), np.int64), np.zeros(room)
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
    values = widest(rules)
    at_once = 8
    chosen, distance = np.empty(at_once, np.int64), np.empty(at_once)
    who, before = np.empty(most, np.int64), np.empty(most, np.int64)
    parts = max(at_once, most // need) + 1
    big = Near(
        np.empty((most, width), np.int64), np.zeros((most, s), np.int64), np.empty(most, np.int64),
        np.empty((parts, most), np.int64), np.zeros(parts, np.int64), np.zeros((parts, s, most), np.int64),
        np.empty((parts, width), np.int64), np.empty(parts), np.empty((most, width), np.int64),
        np.array([k], np.int64), frequency, distinct, rules, np.empty((most, s), np.int64),
        np.empty(most + 1, np.int64), np.ones(most + 1, np.int64), np.zeros(values, np.int64),
        np.empty(values, np.int64),
    )  # fmt: skip
    gained = 0.0
    for _ in range(steps):
        x0 = int(_draw(random) * n)
        for _ in range(2):  # of three rows the one that loses most
            other = int(_draw(random) * n)
            if price[group[other]] > price[group[x0]]:
                x0 = other
        g0 = group[x0]
        if size[g0] > most - need or price[g0] <= 0.0:
            continue
        found = 0
        kind = _draw(random)
        by_rows, wide = kind < 0.5, kind > 0.75  # what is joined with what: rows, group and row, or groups
        middle = state[g0] if wide else leaf[x0]
        source = head[g0] if wide else x0
        while source >= 0:
            for q in range(-1, near_cell.shape[1]):
                c = cell[source] if q < 0 else np.int64(near_cell[cell[source], q])
                if c < 0:
                    continue
                held = first[c + 1] - first[c]
                x = first[c] + (int(_draw(random) * held) if held > 4 else 0)
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
                    far *= 1.0 + 0.3 * _draw(random)
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
        wanted = 1 + int(_draw(random) * 5)
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
            big.rest[:r], big.k, big.frequency, big.distinct, big.rules, big.code, big.who, big.many, big.count,
            big.seen,
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
        made = -1
        if _draw(random) < 0.9:
            target = need
            if rules is not None:  # the least size leaves some models no freedom
                target += int(_draw(random) * (need // 2 + 1))
            made = _grow(slots, near, min(r // need, parts), target, random)
        if made < 0:
            made = taken
            for g in range(made):
                near.size[g] = 0
                for j in range(s):
                    for x in range(r):
                        near.held[g, j, x] = 0
            for x in range(r):
                _put(near, x, before[x])
            swaps = 1 + int(_draw(random) * 4)
            for _ in range(4 * swaps):
                x, y = int(_draw(random) * r), int(_draw(random) * r)
                a, b = near.group[x], near.group[y]
                if a != b and _fits(near, a, x, y) and _fits(near, b, y, x):
                    _drop(near, x)
                    _drop(near, y)
                    _put(near, x, b)
                    _put(near, y, a)
                    swaps -= 1
                    if swaps == 0:
                        break
        for g in range(made):
            _refresh(slots, near, g)
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
