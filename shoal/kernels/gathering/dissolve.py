"""Local search for cellular clusterings: a few neighboring clusters are dissolved and cut anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, STEP, njit
from shoal.kernels.gathering.cluster_pool import fill, fresh, make_pool, store
from shoal.kernels.gathering.pairs import NEVER, best_split, order_by, prefixes, price_all, tabulate, workspace


@njit(**LEAN_INNER)
def _subtable(table, group, k, sub):
    """Distances among some of the points of a table."""
    for e in range(k):
        for f in range(k):
            sub[e, f] = table[group[e], group[f]]


def recut(coded, near, rules, largest, most, steps, seed, owner, center):
    """Dissolve a few neighboring clusters, cut them anew from a random side, keep what is cheaper; ``steps`` times.

    Arguments as in ``search``; most clusters (at most 8) and largest points at a time.  Returns (total, times kept).
    Points are carved off around the one farthest from a random one, r to 2 r at a time, then every two of the new
    clusters are re-split.  O(largest^2) time a step.
    """
    groups = largest // max(rules.r, 1) + 2
    room = Carved(
        *(np.empty(largest, np.int64) for _ in range(3)), np.empty((largest, largest)), np.empty(8, np.int64),
        np.empty((groups, largest), np.int64), np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.int64),
    )  # fmt: skip
    pool, d = make_pool(owner, center, rules.r), workspace(largest, rules.codes.shape[1])
    return _recut(coded, near, rules, largest, most, steps, seed, owner, center, pool, d, room)


class Carved(NamedTuple):
    """What is made of a few clusters of at most m points together, g clusters at most.

    group, subrows, rest int64[m], sub float64[m, m]  some of the points; picked int64[8] the clusters dissolved
    member int64[g, m], length int64[g], cost float64[g], middle int64[g]  the new ones
    """

    group: np.ndarray
    subrows: np.ndarray
    rest: np.ndarray
    sub: np.ndarray
    picked: np.ndarray
    member: np.ndarray
    length: np.ndarray
    cost: np.ndarray
    middle: np.ndarray


@njit(**STEP)
def _carve(pivot, k, rules, d, room):
    """Cut points off around the one farthest from a random one, r to 2 r at a time, the last anchor the next pivot.

    k points in all, pivot one of them; returns how many clusters there are.
    """
    group, rest, member, length, cost, middle = (
        room.group, room.rest, room.member, room.length, room.cost, room.middle
    )  # fmt: skip
    table, key, order, left, left_at = d.table, d.key, d.order, d.left, d.left_at
    m, free, r = 0, k, max(rules.r, 1)
    for e in range(k):
        rest[e] = e
    while free >= 2 * r:
        anchor, far = 0, -1.0
        for e in range(free):
            if table[pivot, rest[e]] > far:
                anchor, far = rest[e], table[pivot, rest[e]]
        for e in range(free):
            key[e] = table[anchor, rest[e]]
        order_by(key, free, order)
        for e in range(free):
            group[e] = rest[order[e]]
        top = min(2 * r, free - r)
        prefixes(table, group, top, False, d.rows, rules, d, left, left_at)
        cut, least = -1, NEVER
        for t in range(r, top + 1):
            if left[t] / t < least:
                cut, least = t, left[t] / t
        if cut < 0:
            break
        for e in range(cut):
            member[m, e] = group[e]
        length[m], cost[m], middle[m] = cut, left[cut], left_at[cut]
        m += 1
        free -= cut
        for e in range(free):
            rest[e] = group[cut + e]
        pivot = anchor
    prefixes(table, rest, free, False, d.rows, rules, d, left, left_at)
    for e in range(free):
        member[m, e] = rest[e]
    length[m], cost[m], middle[m] = free, left[free], left_at[free]
    m += 1
    return m


@njit(**STEP)
def _split_again(m, rules, d, room):
    """Cut every two of the m new clusters anew, where that is cheaper."""
    group, member, length, cost, middle = room.group, room.member, room.length, room.cost, room.middle
    for a in range(m):
        for b in range(a):
            la, lb = length[a], length[b]
            if la + lb == 0:
                continue
            for e in range(la):
                group[e] = member[a, e]
            for e in range(lb):
                group[la + e] = member[b, e]
            _subtable(d.table, group, la + lb, room.sub)
            for e in range(la + lb):
                room.subrows[e] = d.rows[group[e]]
            least, cut, first, second, cost_a, cost_b = best_split(
                room.sub, la + lb, 0, la if lb else -1, room.subrows, rules, d
            )
            if cut < 0 or not least < cost[a] + cost[b]:
                continue
            for e in range(cut):
                member[a, e] = group[d.chosen[e]]
            for e in range(cut, la + lb):
                member[b, e - cut] = group[d.chosen[e]]
            length[a], cost[a], middle[a] = cut, cost_a, group[first]
            length[b], cost[b] = la + lb - cut, cost_b
            middle[b] = group[second] if second >= 0 else -1


@njit(**LEAN)
def _recut(coded, near, rules, largest, most, steps, seed, owner, center, pool, d, room):
    """The same, in this room."""
    n, w = near.shape
    picked, member, length, cost, middle, rows, line = (
        room.picked, room.member, room.length, room.cost, room.middle, d.rows, d.line
    )  # fmt: skip
    total = price_all(coded, pool, rules, largest, d)
    state = np.uint64(seed * 2 + 1)
    kept = 0
    for _ in range(steps):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        i = np.int64(state >> np.uint64(33)) % n
        if owner[i] < 0:
            continue
        many, k, old = 0, 0, 0.0
        for q in range(w):
            u = near[i, q]
            c = owner[u] if u >= 0 else -1
            if c < 0:
                continue
            new = True
            for e in range(many):
                new = new and picked[e] != c
            if new and k + pool.size[c] <= largest:
                k = fill(pool, c, rows, k)
                picked[many] = c
                old += pool.cost[c]
                many += 1
                if many == most:
                    break
        if many < 2 or old <= 0.0:
            continue
        tabulate(coded, rows, k, d.table)
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        m = _carve(np.int64(state >> np.uint64(33)) % k, k, rules, d, room)
        _split_again(m, rules, d, room)
        own = 0.0
        for a in range(m):
            own += cost[a]
        if not own < old * (1 - 1e-12):
            continue
        kept += 1
        total += own - old
        used = 0
        for a in range(m):
            if length[a] == 0:
                continue
            slot = picked[used] if used < many else fresh(pool)
            used += 1
            store(pool, slot, rows, member[a], 0, length[a], rows[middle[a]], cost[a])
        for e in range(used, many):
            store(pool, picked[e], rows, line, 0, 0, -1, 0.0)
    for c in range(min(pool.size.size, center.size)):
        center[c] = pool.center[c] if pool.size[c] > 0 else -1
    return total, kept
