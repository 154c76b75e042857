"""Regrouping of a few near groups: rows are inserted and removed, and every group is eligible at the end.

The published values, the loss, and the value counts of a group are updated with each row. Rows can also be grouped from
scratch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit
from shoal.kernels.tables.eligible import BAND, EQUAL, GroupRequirement, Rules, group_gap, join, joined


class Near(NamedTuple):
    """A few near groups, dissolved: r rows and at most g groups.

    leaf int64[r, t]; value int64[r, s]: sensitive values numbered among these rows
    group int64[r]; member int64[g, r], size int64[g]; held int64[g, s, r]: rows of each value
    state int64[g, t]; price float64[g]: loss of one row
    rest int64[r, t]: join of the other rows of a row's group; without float64[r]: loss of one of them without the row
    looked int64[r], changed int64[g]: the turn at which a row was last examined, and a group last changed; while groups
    grow, looked is the number of rows of each value without a group
    k int64[1]; frequency, distinct int64[s]
    rules  the other models; code int64[r, s]: the values as rules number them; who int64[r]: working array for a group
    count, seen int64[widest column]: working arrays for its values, count all 0
    value_class int64[r]: equal for rows with the same values in all columns; value_classes int64[1]: their number
    known int8[g, c + 1, c + 1]: cached answers for a group, [.., out + 1, in + 1]: whether it stays eligible if a row
    of one class leaves and one of another comes (0: none): 0 unknown, 1 yes, 2 no; unused without rules
    far float64[c]: working array with a number for each class
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
    without: np.ndarray
    looked: np.ndarray
    changed: np.ndarray
    k: np.ndarray
    frequency: np.ndarray
    distinct: np.ndarray
    rules: Rules | None
    code: np.ndarray
    who: np.ndarray
    count: np.ndarray
    seen: np.ndarray
    value_class: np.ndarray
    value_classes: np.ndarray
    known: np.ndarray
    far: np.ndarray


def few(most: int, parts: int, width: int, asked: GroupRequirement) -> Near:
    """Arrays for ``most`` rows in at most ``parts`` groups, with ``width`` slots."""
    k, frequency, distinct, rules = asked
    s = frequency.size
    known = 1 if rules is None else most + 1
    values = 1 if rules is None else max(1, *rules.size)
    return Near(
        np.empty((most, width), np.int64), np.zeros((most, s), np.int64), np.empty(most, np.int64),
        np.empty((parts, most), np.int64), np.zeros(parts, np.int64), np.zeros((parts, s, most), np.int64),
        np.empty((parts, width), np.int64), np.empty(parts), np.empty((most, width), np.int64),
        np.empty(most), np.zeros(most, np.int64), np.zeros(parts, np.int64),
        np.array([k], np.int64), frequency, distinct, rules, np.empty((most, s), np.int64),
        np.empty(most + 1, np.int64), np.zeros(values, np.int64),
        np.empty(values, np.int64), np.zeros(most, np.int64), np.zeros(1, np.int64),
        np.zeros((parts, known, known), np.int8), np.empty(most),
    )  # fmt: skip


@njit(**LEAN_INNER)
def put(near, x, g):
    """Append row x to group g."""
    near.group[x] = g
    near.member[g, near.size[g]] = x
    near.size[g] += 1
    for j in range(near.frequency.size):
        near.held[g, j, near.value[x, j]] += 1


@njit(**LEAN_INNER)
def drop(near, x):
    """Remove row x from its group."""
    g = near.group[x]
    n = near.size[g]
    for i in range(n):
        if near.member[g, i] == x:
            near.member[g, i] = near.member[g, n - 1]
            break
    near.size[g] = n - 1
    for j in range(near.frequency.size):
        near.held[g, j, near.value[x, j]] -= 1


@njit(**LEAN_INNER)
def refresh(slots, near, g):
    """Update the state and price of a group, and of its rest without each row, by joins from both ends."""
    n = near.size[g]
    # The join of all rows before a row, then of all rows after it; both together give the group without it.
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
    for i in range(n):
        x = near.member[g, i]
        near.without[x] = joined(slots, near.rest[x], near.rest[x], np.inf)


@njit(**LEAN_INNER)
def number(near, rules):
    """Assign rows with the same sensitive values to the same class. O(r c s) for c classes."""
    if rules is None:
        return
    near.value_classes[0] = 0
    for x in range(near.group.size):
        near.value_class[x] = -1
        for y in range(x):
            same = True
            for j in range(near.value.shape[1]):
                same = same and near.value[x, j] == near.value[y, j]
            if same:
                near.value_class[x] = near.value_class[y]
                break
        if near.value_class[x] < 0:
            near.value_class[x] = near.value_classes[0]
            near.value_classes[0] += 1


@njit(**LEAN_INNER)
def forget(near, rules, g):
    """Clear the cached answers about group g, because its rows have changed."""
    if rules is None:
        return
    for a in range(near.value_classes[0] + 1):
        for b in range(near.value_classes[0] + 1):
            near.known[g, a, b] = 0


@njit(**LEAN_INNER)
def fits(near, rules, g, gone, come):
    """Whether group g stays eligible if row gone leaves it (-1: none) and row come joins it (-1: none).

    With rules, each answer about a group is cached.
    """
    if rules is None:
        return _stays(near, rules, g, gone, come)
    a = near.value_class[gone] + 1 if gone >= 0 else 0
    b = near.value_class[come] + 1 if come >= 0 else 0
    if near.known[g, a, b] == 0:
        near.known[g, a, b] = 1 if _stays(near, rules, g, gone, come) else 2
    return near.known[g, a, b] == 1


@njit(**LEAN_INNER)
def _stays(near, rules, g, gone, come):
    """Whether group g stays eligible, computed from its rows."""
    n = near.size[g] - (gone >= 0) + (come >= 0)
    if n < near.k[0]:
        return False
    # Counts of values decide most cases. Only if a row leaves, the share of a value or the last row of a value may
    # require a pass over the group.
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
            present = 0
            for i in range(near.size[g]):
                x = near.member[g, i]
                w = near.value[x, j]
                fresh = True
                for y in range(i):
                    if near.value[near.member[g, y], j] == w:
                        fresh = False
                        break
                present += fresh
            if present - 1 < u:
                return False
    return _exchanged(near, rules, g, gone, come)


@njit(**LEAN_INNER)
def _exchanged(near, rules, g, gone, come):
    """Whether the other models still hold in group g if row gone leaves it and row come joins it."""
    if rules is None:
        return True
    # no model distinguishes these rows
    if gone >= 0 and come >= 0 and near.value_class[gone] == near.value_class[come]:
        return True
    return gap_of(near, rules, g, gone, come) <= 0.0


@njit(**LEAN_INNER)
def gap_of(near, rules, g, gone, come):
    """How far group g is from meeting the other models if row gone leaves and row come joins it (-1: none)."""
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
    return group_gap(rules, near.code, near.who, None, n, near.count, near.seen, np.inf)


@njit(**LEAN_INNER)
def holds(near, g):
    """Whether group g is eligible. O(r s)."""
    if near.size[g] < near.k[0]:
        return False
    for j in range(near.frequency.size):
        present, top = 0, 0
        for x in range(near.group.size):
            present += near.held[g, j, x] > 0
            top = max(top, near.held[g, j, x])
        if present < near.distinct[j] or top * near.frequency[j] > near.size[g]:
            return False
    return gap_of(near, near.rules, g, -1, -1) <= 0.0


@njit(**LEAN_INNER)
def absorb(slots, near, g, into):
    """Move all rows of group g to another group."""
    while near.size[g] > 0:
        x = near.member[g, near.size[g] - 1]
        drop(near, x)
        put(near, x, into)
        for t in range(near.leaf.shape[1]):
            a = near.leaf[x, t]
            near.state[into, t] = a if near.size[into] == 1 else join(slots, t, near.state[into, t], a)


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
def _clear_all_answers(near, rules):
    """Clear the cached answers about all classes."""
    if rules is None:
        return
    for y in range(near.value_classes[0]):
        near.far[y] = -1.0


@njit(**LEAN_INNER)
def _too_many(near, rules, g, y, target):
    """Whether a row of y's class raises a value above the limit of a group of target rows under the other models."""
    if rules is None:
        return False
    if near.far[near.value_class[y]] < 0.0:
        near.far[near.value_class[y]] = 1.0 if _above(near, rules, g, y, target) else 0.0
    return near.far[near.value_class[y]] > 0.0


@njit(**LEAN_INNER)
def _above(near, rules, g, y, target):
    """Whether y raises a value above what a group of target rows may contain, computed from the group's rows."""
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
            for x in range(near.size[g]):  # the excess of a value is divided equally among its rows
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
    """Whether row y gives group g more of a value than its share; for other values, another row lowers the share."""
    for j in range(near.frequency.size):
        if (near.held[g, j, near.value[y, j]] + 1) * near.frequency[j] > near.size[g] + 1:
            return True
    return False


@njit(**LEAN_INNER)
def _complete(slots, near, rules, g, most):
    """Add rows without a group to group g until the other models hold.

    Each time, the row that lowers the gap most is added, the cheapest of equals. The result is False if no row lowers
    the gap, or if the group would have more than ``most`` rows.
    """
    if rules is None:
        return True
    gap = gap_of(near, rules, g, -1, -1)
    # Rows with equal values lower the gap equally, so it is computed once for each class of values.
    while gap > 0.0:
        if near.size[g] >= most:
            return False
        best, lowest, least = -1, np.inf, np.inf
        _clear_all_answers(near, rules)
        for y in range(near.group.size):
            if near.group[y] >= 0 or _crowded(near, g, y):
                continue
            if near.far[near.value_class[y]] < 0.0:
                near.far[near.value_class[y]] = gap_of(near, rules, g, -1, y)
            found = near.far[near.value_class[y]]
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
def _shared(near):
    """The first column in which values are limited to a share, and l of the share 1/l; -1 if there is none."""
    for j in range(near.frequency.size):
        if near.frequency[j] > 1:
            return j, near.frequency[j]
    return -1, np.int64(1)


@njit(**LEAN_INNER)
def _rows_to_take(near, most):
    """How many rows the growing group must take so that no value has more than ``most`` of the remaining rows."""
    owed = 0
    for v in range(near.group.size):
        owed += max(np.int64(0), near.looked[v] - most)
    return owed


@njit(**LEAN_INNER)
def grow(slots, near, groups, target, random):
    """Group the rows from scratch: each group starts from a random row and adds the row that costs least.

    Makes at most ``groups`` groups; returns their number, or -1 if none could be made. The cost of adding a row only
    increases while a group grows, so its last cost shows which rows needn't be examined again. If values are limited to
    a share of a group, a group takes the rows that would be too many among the remaining ones.
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
    asked, l = _shared(near)
    if asked >= 0:
        near.looked[:] = 0
        for x in range(r):
            near.looked[near.value[x, asked]] += 1
    # Start with a random row, then add row by row the cheapest one that the group may take. A group that gets stuck is
    # dissolved, and growing ends.
    while left >= target and made < groups:
        pick = int(draw(random) * left)
        for x in range(r):
            if near.group[x] < 0:
                if pick == 0:
                    break
                pick -= 1
        g = made
        put(near, x, g)
        if asked >= 0:
            near.looked[near.value[x, asked]] -= 1
        for t in range(near.leaf.shape[1]):
            near.state[g, t] = near.leaf[x, t]
        near.without[:] = 0.0
        stuck = False
        # The group grows by the row that loses least with it and leaves enough rows of every value for later groups.
        while near.size[g] < target:
            places = target - near.size[g]
            most = r if asked < 0 else (left - target) // l  # most rows of one value among the remaining rows
            if most < r and _rows_to_take(near, most) < places:
                most = -1
            best, least = -1, np.inf
            _clear_all_answers(near, near.rules)
            for y in range(r):
                if near.group[y] >= 0 or near.without[y] >= least:
                    continue
                may = asked < 0 or near.looked[near.value[y, asked]] > most
                for j in range(s):
                    same = near.held[g, j, near.value[y, j]]
                    if near.frequency[j] > 1 and (same + 1) * near.frequency[j] > target:
                        may = False
                        break
                    if near.distinct[j] > 1 and same > 0:
                        present = 0
                        for z in range(r):
                            present += near.held[g, j, z] > 0
                        if near.distinct[j] - present >= places:
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
            if asked >= 0:
                near.looked[near.value[best, asked]] -= 1
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
    # Remaining rows join the group where the loss increases least. If no group takes any, they become a pool.
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
def _gap_together(near, rules, one, other):
    """How far the union of two groups is from meeting the other models."""
    if rules is None:
        return 0.0
    n = 0
    for g in (one, other):
        for i in range(near.size[g]):
            near.who[n] = near.member[g, i]
            n += 1
    return group_gap(rules, near.code, near.who, None, n, near.count, near.seen, np.inf)


@njit(**LEAN_INNER)
def _pool(slots, near, rules, made):
    """Merge the rows without a group with the groups that make them eligible at the least loss.

    Returns the number of groups.

    Ends at the latest with one group of all rows, which is a union of eligible groups.
    """
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
    # The group that costs least, with a penalty for what the union then lacks, joins the pool. The last group moves to
    # the free index.
    while not holds(near, pool):
        if made == 1:
            return -1
        best, least = -1, np.inf
        for g in range(made):
            if g == pool:
                continue
            n = near.size[g] + near.size[pool]
            gap = _gap_together(near, rules, g, pool)
            price = n * joined(slots, near.state[g], near.state[pool], np.inf) - near.size[g] * near.price[g]
            price += 10.0 * n * gap
            if price < least:
                best, least = g, price
        absorb(slots, near, pool, best)
        made -= 1
        if pool < made:  # the last group moves to the empty index
            absorb(slots, near, made, pool)
            near.price[pool] = near.price[made]
            pool = pool if best == made else best
        else:
            pool = best
    near.price[pool] = joined(slots, near.state[pool], near.state[pool], np.inf)
    return made
