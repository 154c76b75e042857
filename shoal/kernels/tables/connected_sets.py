"""Weights of the cheapest connected sets that contain given areas of a graph, for a search and for a bound.

A group publishes in a column of areas a connected set that contains the areas of all its rows. The cheapest set is a
node-weighted Steiner tree. A search needs many of these weights, so it grows each set from some of its areas by the
cheapest path to the next area (Takahashi and Matsuyama 1980), and caches it by a hash of its areas. A bound must not
exceed the true weight: for every set of up to ``OWN`` areas plus one further area, it computes the cheapest connected
set exactly (Dreyfus and Wagner 1971), incrementally when areas are added or removed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit

FAR = 2**60  # weight of a set that isn't connected
ROOTS = 3  # number of areas from which a set is grown
OWN = 4  # most areas whose set is exact; each further area is combined with these


class AreaSets(NamedTuple):
    """Columns of areas in a search, with a cache of weights.

    apart int64[..]   column by column, [n, n]: weight of the cheapest connected set with two areas, ``FAR`` for none;
                      after them the weight of all areas
    ahead int32[..]   same indexes: the area after the first on the way to the second; one unused entry at the end
    key uint64[x], weight int64[x]  the cache, x a power of two: hash ^ weight, and the weight. Threads share it: an
                                    entry that two threads write at one time matches no key, and is computed again
    scratch int64[3, n]  of one thread: the areas of a set, the distance of each to the grown set, and from where
    """

    apart: np.ndarray
    ahead: np.ndarray
    key: np.ndarray
    weight: np.ndarray
    scratch: np.ndarray


@njit(**LEAN_INNER)
def _ones(x):
    """The number of set bits, of 60."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    x += x >> 8
    x += x >> 16
    return (x + (x >> 32)) & 127


@njit(**LEAN_INNER)
def _mixed(h, x):
    """A hash with one more word. No product exceeds 64 bits."""
    h ^= np.uint64(x)
    low, high = (h & np.uint64(0xFFFFFFFF)) * np.uint64(0x9E3779B1), (h >> np.uint64(32)) * np.uint64(0x85EBCA77)
    return low ^ (high >> np.uint64(32)) ^ (high << np.uint64(32))


@njit(**LEAN_INNER)
def _grown(sets, base, n, many, root):
    """The weight of a connected set with the areas scratch[0, :many], grown from one of them; ``FAR`` if there is none.

    O(areas of the set times many).
    """
    apart, ahead = sets.apart, sets.ahead
    ends, near, start = sets.scratch[0], sets.scratch[1], sets.scratch[2]
    here = ends[root]
    total = apart[base + here * n + here]
    for i in range(many):
        near[i], start[i] = apart[base + here * n + ends[i]] - total, here
    near[root] = 0
    # Join the closest unconnected area by a shortest path; the areas on the path bring others closer (Takahashi,
    # Matsuyama 1980).
    for _ in range(many):
        best = -1
        for i in range(many):
            if near[i] > 0 and (best < 0 or near[i] < near[best]):
                best = i
        if best < 0:
            break
        if near[best] >= FAR // 2:
            return FAR
        total += near[best]
        v, goal = start[best], ends[best]
        while v != goal:
            v = np.int64(ahead[base + v * n + goal])
            for i in range(many):
                closer = apart[base + v * n + ends[i]] - apart[base + v * n + v]
                if near[i] > 0 and closer < near[i]:
                    near[i], start[i] = closer, v
    return total


@njit(**LEAN_INNER)
def _areas_of_join(sets, slots, t, a, b):
    """Write the areas in the join of two rows of slots to the scratch array, the first of b's first.

    Returns their number.
    """
    many = 0
    for turn in range(2):
        for w in range(t, t + slots.table[t]):
            x = np.int64(a[w] & ~b[w]) if turn else np.int64(b[w])
            while x:
                low = x & -x
                sets.scratch[0, many] = 60 * (w - t) + _ones(low - 1)
                many += 1
                x ^= low
    return many


@njit(**LEAN_INNER)
def _set_weight(sets, slots, t, a, b, many):
    """The weight of a connected set with all areas of the join, from the cache, or computed now."""
    base, n, h = slots.base[t], slots.width[t], np.uint64(slots.base[t])
    for w in range(t, t + slots.table[t]):
        h = _mixed(h, np.int64(a[w] | b[w]))
    place = np.int64(h & np.uint64(sets.key.size - 1))
    weight = sets.weight[place]
    if sets.key[place] != h ^ np.uint64(weight):
        weight, ends = sets.apart[base + n * n], sets.scratch[0]
        for i in range(1, many):  # in a fixed order, so that the weight doesn't depend on the caller
            y = i
            while y > 0 and ends[y - 1] > ends[y]:
                ends[y - 1], ends[y] = ends[y], ends[y - 1]
                y -= 1
        for root in range(min(many, ROOTS)):
            weight = min(weight, _grown(sets, base, n, many, root))
        sets.weight[place], sets.key[place] = weight, h ^ np.uint64(weight)
    return weight


@njit(**LEAN_INNER)
def areas_cost(sets, slots, a, b, limit):
    """The loss per row of the areas in the join of two rows of slots, 0 without such columns.

    The function may stop early at any value above the limit.

    No connected set weighs less than one with two of its areas, so most sets needn't be computed.
    """
    if sets is None:
        return 0.0
    total = 0.0
    for t in range(a.size):
        if slots.kind[t] != 4 or total > limit:
            continue
        base, n, many = slots.base[t], slots.width[t], _areas_of_join(sets, slots, t, a, b)
        if many < 2:
            continue
        row, weight = base + sets.scratch[0, 0] * n, np.int64(0)
        for i in range(1, many):
            weight = max(weight, sets.apart[row + sets.scratch[0, i]])
        weight = min(weight, sets.apart[base + n * n])
        if many > 2 and total + (weight - 1) * slots.unit[t] <= limit:
            weight = _set_weight(sets, slots, t, a, b, many)
        total += (weight - 1) * slots.unit[t]
    return total


class AreaColumn(NamedTuple):
    """A column of areas in a bound.

    column int64         of the cells
    area int64[codes]    of each code
    apart float64[n, n]  weight of the cheapest connected set with two areas, infinite if there is none
    unit, star float64   a connected set of weight w loses (w - 1) unit, and at most what a star does
    """

    column: int
    area: np.ndarray
    apart: np.ndarray
    unit: float
    star: float


class Taken(NamedTuple):
    """The areas of a group as it grows.

    own int64[OWN], many int64[1]    the different areas added, up to ``OWN``
    level float64[1]                 lower bound of the loss of the cheapest connected set with all areas added
    weight float64[2^OWN, n]         of the cheapest connected set with each subset of ``own`` and each area
    split float64[n]                 working array
    old int64[K + 1], was float64[K + 1]  many and level before the member of each depth
    """

    own: np.ndarray
    many: np.ndarray
    level: np.ndarray
    weight: np.ndarray
    split: np.ndarray
    old: np.ndarray
    was: np.ndarray


@njit(**INNER)
def taken_areas(areas, group):
    """Arrays for the areas of a group; None without a column of areas."""
    if areas is None:
        return None
    n = areas.apart.shape[0]
    return Taken(
        np.zeros(OWN, np.int64), np.zeros(1, np.int64), np.zeros(1), np.empty((1 << OWN, n)), np.empty(n),
        np.zeros(group + 1, np.int64), np.zeros(group + 1),
    )  # fmt: skip


@njit(**LEAN_INNER)
def areas_column(areas):
    """The index of the column of areas; -1 without one."""
    if areas is None:
        return np.int64(-1)
    return np.int64(areas.column)


@njit(**LEAN_INNER)
def begin_areas(areas, taken, cells, a):
    """Set the area of the anchor alone."""
    if areas is None:
        return
    here = areas.area[cells.code[a, areas.column]]
    taken.own[0], taken.many[0], taken.level[0] = here, 1, 0.0
    for v in range(taken.split.size):
        taken.weight[1, v] = areas.apart[here, v]


@njit(**LEAN_INNER)
def more_of_areas(areas, taken, cells, c):
    """A lower bound of the additional loss if the area of cell c is added."""
    if areas is None:
        return 0.0
    here, many = areas.area[cells.code[c, areas.column]], taken.many[0]
    for i in range(many):
        if taken.own[i] == here:
            return 0.0
    lost = min((taken.weight[(1 << many) - 1, here] - 1.0) * areas.unit, areas.star)
    return max(lost - taken.level[0], 0.0)


@njit(**LEAN_INNER)
def take_area(areas, taken, cells, depth, c, limit):
    """Add the area of cell c; returns the number of look-ups.

    limit  losses from this on needn't be computed; below 0 the area counts, but no further set is computed

    Dreyfus and Wagner's recursion over the subsets of areas with the new one. O(3^many n + 2^many n^2), where only
    areas count that sets below the limit can contain.
    """
    if areas is None:
        return 0
    many, here = taken.many[0], areas.area[cells.code[c, areas.column]]
    taken.old[depth], taken.was[depth] = many, taken.level[0]
    taken.level[0] += more_of_areas(areas, taken, cells, c)
    if many == OWN or limit < 0.0:
        return 0
    for i in range(many):
        if taken.own[i] == here:
            return 0
    n, new, looks = taken.split.size, 1 << many, 0
    most = (limit * (1.0 + 1e-9)) / areas.unit + 2.0
    taken.own[many] = here
    taken.many[0] = many + 1
    apart, split = areas.apart, taken.split
    one = taken.weight[new]
    for v in range(n):
        one[v] = apart[here, v]
    # For each subset of the earlier areas with the new one, and each vertex v, the lightest tree that contains both:
    # two parts meet at u, and a path leads from u to v.
    for rest in range(1, new):
        out = taken.weight[new + rest]
        for v in range(n):
            out[v], split[v] = np.inf, np.inf
        other = rest  # the part of the split without the new area: every proper subset of the rest
        while other > 0:
            left, right = taken.weight[new + rest - other], taken.weight[other]
            for v in range(n):
                both = left[v] + right[v]
                split[v] = both if both < split[v] else split[v]
            other = (other - 1) & rest
        for u in range(n):
            own = apart[u, u]
            if split[u] - own < most:
                base, row = split[u] - own - own, apart[u]
                for v in range(n):
                    way = base + row[v]
                    out[v] = way if way < out[v] else out[v]
                looks += 1
    return looks * n // 8


@njit(**LEAN_INNER)
def put_area_back(areas, taken, depth):
    """Restore the areas before the member of a depth."""
    if areas is None:
        return
    taken.many[0], taken.level[0] = taken.old[depth], taken.was[depth]
