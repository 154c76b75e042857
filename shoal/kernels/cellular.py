"""Loops of cellular clustering: a greedy start, and a local search that re-splits neighboring clusters.

A cluster costs its size times its radius, plus the set-up cost of its center, a member.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels.neighbors import distance

NEVER = 1e300


@njit(cache=True)
def _sift(key, who, size):
    """The last of a binary heap moves up to its place."""
    i = size - 1
    while i > 0:
        p = (i - 1) // 2
        if key[p] < key[i] or (key[p] == key[i] and who[p] <= who[i]):
            break
        key[p], key[i] = key[i], key[p]
        who[p], who[i] = who[i], who[p]
        i = p


@njit(cache=True)
def _sink(key, who, size):
    """The first of a binary heap moves down to its place."""
    i = 0
    while True:
        c = 2 * i + 1
        if c >= size:
            break
        if c + 1 < size and (key[c + 1] < key[c] or (key[c + 1] == key[c] and who[c + 1] < who[c])):
            c += 1
        if key[i] < key[c] or (key[i] == key[c] and who[i] <= who[c]):
            break
        key[c], key[i] = key[i], key[c]
        who[c], who[i] = who[i], who[c]
        i = c


@njit(cache=True)
def _cheapest(v, near, far, r, setup, owner):
    """(cost a point, number of points) of the cheapest cluster of free points around v; (inf, 0) when there is none.

    t free points cost the distance of the t-th and a t-th of the set-up cost; without set-up costs t = r.
    """
    best, many, free = np.inf, 0, 0
    for e in range(near.shape[1]):
        u = near[v, e]
        if u < 0 or far[v, e] >= best:
            break
        if owner[u] < 0:
            free += 1
            if free >= r and far[v, e] + setup[v] / free < best:
                best, many = far[v, e] + setup[v] / free, free
    return best, many


@njit(cache=True)
def greedy(near, far, r, setup, owner, center):
    """The cluster that is cheapest a point among the free points, again and again.

    near    int64[n, w], far float64[n, w]  nearest points of each, w >= r; -1 after the last
    setup   float64[n] cost of a center
    owner   int64[n]  in and out: -1 while free
    center  int64[n]  out
    returns clusters opened

    A point whose list holds fewer than r free points is no center any more.  Costs only rise while points are taken,
    so a heap of old costs, checked when they come up, finds the next.  O(n w + pops w).
    """
    n = near.shape[0]
    key, who = np.empty(n), np.empty(n, np.int64)
    size = 0
    for v in range(n):
        if owner[v] < 0:
            best, many = _cheapest(v, near, far, r, setup, owner)
            if many:
                key[size], who[size] = best, v
                size += 1
                _sift(key, who, size)
    opened = 0
    while size:
        v = who[0]
        best, many = np.inf, 0
        if owner[v] < 0:
            best, many = _cheapest(v, near, far, r, setup, owner)
        if many == 0:
            size -= 1
            key[0], who[0] = key[size], who[size]
            _sink(key, who, size)
            continue
        if best > key[0]:
            key[0] = best
            _sink(key, who, size)
            continue
        taken = 0
        for e in range(near.shape[1]):
            u = near[v, e]
            if owner[u] < 0:
                owner[u] = opened
                taken += 1
                if taken == many:
                    break
        center[opened] = v
        opened += 1
    return opened


@njit(cache=True)
def absorb(order, choice, away, owner, size, radius):
    """Free points into the cluster whose cost grows least, of a few with a center nearby.

    order   int64[f]     the free points, nearest to a center first
    choice  int64[f, c]  clusters to choose from, away float64[f, c] the distance to their centers
    owner   int64[n], size int64[m], radius float64[m]: in and out
    """
    for i in range(order.size):
        best, least = -1, np.inf
        for e in range(choice.shape[1]):
            c = choice[i, e]
            if c < 0:
                break
            wide = max(radius[c], away[i, e])
            grown = (size[c] + 1) * wide - size[c] * radius[c]
            if grown < least:
                best, least, wider = c, grown, wide
        owner[order[i]] = best
        size[best] += 1
        radius[best] = wider


class Rules(NamedTuple):
    """What a cluster must meet and what it costs besides size times radius.

    r         least size
    setup     float64[n]    cost of a center
    codes     int64[n, s]   sensitive values, s may be 0
    share     float64[s]    no value on more than this share of a cluster
    distinct  int64[s]      at least this many values
    limit     diameters above it cost excess for every point and unit of length
    excess    0 where diameters do not matter
    """

    r: int
    setup: np.ndarray
    codes: np.ndarray
    share: np.ndarray
    distinct: np.ndarray
    limit: float
    excess: float


class Pool(NamedTuple):
    """Clusters as slices of one array, rewritten at its end and packed when that is reached.

    (1) a number in use has size > 0 and its points are arena[start : start + size]; (2) owner[i] is the number of the
    slice that holds i, -1 where none does; (3) tops = (end of the arena in use, numbers on the stack of unused ones).
    """

    start: np.ndarray
    size: np.ndarray
    cost: np.ndarray
    center: np.ndarray
    owner: np.ndarray
    arena: np.ndarray
    unused: np.ndarray
    tops: np.ndarray


@njit(cache=True)
def _make_pool(owner, center, r):
    """A pool of the clusters in owner; costs are still 0."""
    n = owner.size
    m = 0
    for i in range(n):
        m = max(m, owner[i] + 1)
    slots = max(n // max(r, 1) + 1, m) + 1
    start, size = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    for i in range(n):
        if owner[i] >= 0:
            size[owner[i]] += 1
    arena = np.empty(4 * n + 8, np.int64)
    fill = np.zeros(slots, np.int64)
    end = 0
    for c in range(slots):
        start[c] = fill[c] = end
        end += size[c]
    for i in range(n):
        if owner[i] >= 0:
            arena[fill[owner[i]]] = i
            fill[owner[i]] += 1
    unused = np.empty(slots, np.int64)
    spare = 0
    middle = np.full(slots, -1)
    for c in range(slots - 1, -1, -1):
        if size[c] == 0:
            unused[spare] = c
            spare += 1
        else:
            middle[c] = center[c]
    return Pool(start, size, np.zeros(slots), middle, owner, arena, unused, np.array([end, spare]))


@njit(cache=True)
def _store(pool, c, rows, chosen, low, high, center, cost):
    """Cluster c becomes rows[chosen[low:high]]; returns c, or -1 where that is nothing."""
    k = high - low
    if pool.tops[0] + k > pool.arena.size:
        fresh = np.empty(pool.arena.size, np.int64)
        end = 0
        for s in range(pool.size.size):
            for e in range(pool.size[s]):
                fresh[end + e] = pool.arena[pool.start[s] + e]
            pool.start[s] = end
            end += pool.size[s]
        pool.arena[:end] = fresh[:end]
        pool.tops[0] = end
    end = pool.tops[0]
    pool.start[c], pool.size[c], pool.cost[c], pool.center[c] = end, k, cost, center
    for e in range(k):
        i = rows[chosen[low + e]]
        pool.arena[end + e] = i
        pool.owner[i] = c
    pool.tops[0] = end + k
    if k == 0:
        pool.unused[pool.tops[1]] = c
        pool.tops[1] += 1
        return -1
    return c


@njit(cache=True)
def _fresh(pool):
    """A number not in use."""
    pool.tops[1] -= 1
    return pool.unused[pool.tops[1]]


@njit(cache=True)
def _fill(coded, pool, c, rows, k):
    """Append cluster c to rows from place k on; returns the new length."""
    for e in range(pool.size[c]):
        rows[k + e] = pool.arena[pool.start[c] + e]
    return k + pool.size[c]


@njit(cache=True)
def _tabulate(coded, rows, k, table):
    """All distances of k rows."""
    for e in range(k):
        table[e, e] = 0.0
        for f in range(e):
            table[e, f] = table[f, e] = distance(coded, rows[e], rows[f])


@njit(cache=True)
def _order(key, k, order):
    """0..k-1 by key, equal keys in their order; insertion, for short lists.  O(k^2)."""
    for e in range(k):
        f = e
        while f > 0 and key[order[f - 1]] > key[e]:
            order[f] = order[f - 1]
            f -= 1
        order[f] = e


@njit(cache=True)
def _prefixes(table, order, m, reverse, rows, rules, ecc, cost, best):
    """Cost of the first t points of an order, for every t, and the center that gives it.

    table   float64[*, *] distances, order int64[m]; reverse: count from the end
    cost    float64[m + 1] out, best int64[m + 1] out: NEVER and -1 where t points are no cluster

    O(m^2 (1 + s)) time.
    """
    s = rules.codes.shape[1]
    wide = 0.0
    cost[0], best[0] = 0.0, -1
    top, kinds = np.zeros(s), np.zeros(s, np.int64)
    for t in range(m):
        u = order[m - 1 - t] if reverse else order[t]
        far = 0.0
        for q in range(t):
            v = order[m - 1 - q] if reverse else order[q]
            d = table[u, v]
            if d > ecc[v]:
                ecc[v] = d
            if d > far:
                far = d
        ecc[u] = far
        wide = max(wide, far)
        good = t + 1 >= rules.r
        for c in range(s):
            code, same = rules.codes[rows[u], c], 1.0
            for q in range(t):
                v = order[m - 1 - q] if reverse else order[q]
                same += rules.codes[rows[v], c] == code
            kinds[c] += same == 1.0
            top[c] = max(top[c], same)
            good = good and kinds[c] >= rules.distinct[c] and top[c] <= rules.share[c] * (t + 1) + 1e-9
        cost[t + 1], best[t + 1] = NEVER, -1
        if good:
            over = rules.excess * max(0.0, wide - rules.limit) * (t + 1) if rules.excess > 0.0 else 0.0
            for q in range(t + 1):
                v = order[m - 1 - q] if reverse else order[q]
                own = (t + 1) * ecc[v] + rules.setup[rows[v]] + over
                if own < cost[t + 1]:
                    cost[t + 1], best[t + 1] = own, v


@njit(cache=True)
def _resplit(table, k, at_a, at_b, rows, rules, ecc, key, order, left, left_at, right, right_at, chosen):
    """The best cut of k points over a few orders: (cost, cut, centers of both parts, their costs); chosen: its order.

    at_a, at_b  anchors (at_b may be -1); the two points farthest apart and the difference of the distances from
                those two give three more orders.  cut = k: one cluster.
    """
    far_a, far_b, wide = 0, 0, -1.0
    for e in range(k):
        for f in range(e):
            if table[e, f] > wide:
                wide, far_a, far_b = table[e, f], e, f
    least, cut, first, second, cost_a, cost_b = NEVER, -1, -1, -1, 0.0, 0.0
    for anchor in range(5):
        if anchor == 1 and at_b < 0:
            continue
        for e in range(k):
            if anchor == 0:
                key[e] = table[at_a, e]
            elif anchor == 1:
                key[e] = table[at_b, e]
            elif anchor == 2:
                key[e] = table[far_a, e]
            elif anchor == 3:
                key[e] = table[far_b, e]
            else:
                key[e] = table[far_a, e] - table[far_b, e]
        _order(key, k, order)
        _prefixes(table, order, k, False, rows, rules, ecc, left, left_at)
        _prefixes(table, order, k, True, rows, rules, ecc, right, right_at)
        for t in range(max(rules.r, 1), k + 1):
            if left[t] + right[k - t] < least:
                least, cut, first, second = left[t] + right[k - t], t, left_at[t], right_at[k - t]
                cost_a, cost_b = left[t], right[k - t]
                chosen[:k] = order[:k]
    return least, cut, first, second, cost_a, cost_b


@njit(cache=True)
def _price(coded, pool, rules, largest, rows, table, ecc, line, left, left_at):
    """Costs and best centers of all clusters; one larger than ``largest`` keeps its center.  Returns the total."""
    total = 0.0
    for c in range(pool.size.size):
        k = pool.size[c]
        if k == 0:
            continue
        if k > largest:
            wide = 0.0
            for e in range(k):
                wide = max(wide, distance(coded, pool.center[c], pool.arena[pool.start[c] + e]))
            pool.cost[c] = k * wide + rules.setup[pool.center[c]]
        else:
            _fill(coded, pool, c, rows, 0)
            _tabulate(coded, rows, k, table)
            _prefixes(table, line, k, False, rows, rules, ecc, left, left_at)
            pool.cost[c] = left[k]
            if left_at[k] >= 0:
                pool.center[c] = rows[left_at[k]]
        total += pool.cost[c]
    return total


@njit(cache=True)
def search(coded, near, rules, largest, looks, owner, center):
    """Re-split pairs of neighboring clusters, merge them, or split one, while the total cost falls.

    coded    neighbors.Coded
    near     int64[n, w]  nearest points: clusters are neighbors when one holds such a point of the other
    largest  pairs with more points than this are left alone
    looks    a cluster is looked at this many times on average, at most
    owner    int64[n]  in and out: cluster of each point, -1 where it is in none
    center   int64[n]  in and out: member at the center of each cluster
    returns  (total cost, pairs improved)

    All costs of an order's prefixes take O(m^2) together, so a pair of m points takes O(m^2) time.
    """
    w = near.shape[1]
    pool = _make_pool(owner, center, rules.r)
    slots = pool.size.size
    rows, line = np.empty(largest, np.int64), np.arange(largest)
    table = np.empty((largest, largest))
    ecc, key, order = np.empty(largest), np.empty(largest), np.empty(largest, np.int64)
    left, right = np.empty(largest + 1), np.empty(largest + 1)
    left_at, right_at = np.empty(largest + 1, np.int64), np.empty(largest + 1, np.int64)
    chosen = np.empty(largest, np.int64)
    total = _price(coded, pool, rules, largest, rows, table, ecc, line, left, left_at)
    queue, waiting = np.empty(slots, np.int64), np.zeros(slots, np.bool_)
    head, queued = 0, 0
    for c in range(slots):
        if pool.size[c] > 0:
            queue[queued] = c
            queued += 1
            waiting[c] = True
    seen, beside = np.zeros(slots, np.int64), np.empty(16, np.int64)
    looked, improved, most = 0, 0, looks * max(queued, 1)
    while queued and looked < most:
        a = queue[head]
        head = (head + 1) % slots
        queued -= 1
        waiting[a] = False
        if pool.size[a] == 0 or pool.size[a] > largest:
            continue
        looked += 1
        seen[a] = looked
        beside[0], many = -1, 1  # -1: the cluster by itself
        for e in range(pool.size[a]):
            for q in range(w):
                u = near[pool.arena[pool.start[a] + e], q]
                b = pool.owner[u] if u >= 0 else -1
                if b >= 0 and seen[b] != looked and many < beside.size:
                    seen[b] = looked
                    beside[many] = b
                    many += 1
        for which in range(many):
            b = beside[which]
            if pool.size[a] == 0:
                break
            k = pool.size[a] + (pool.size[b] if b >= 0 else 0)
            old = pool.cost[a] + (pool.cost[b] if b >= 0 else 0.0)
            if k > largest or (b < 0 and k < 2 * rules.r) or (b >= 0 and pool.size[b] == 0) or old <= 0.0:
                continue
            _fill(coded, pool, a, rows, 0)
            if b >= 0:
                _fill(coded, pool, b, rows, pool.size[a])
            at_a, at_b = 0, -1
            for e in range(k):
                if rows[e] == pool.center[a]:
                    at_a = e
                elif b >= 0 and rows[e] == pool.center[b]:
                    at_b = e
            _tabulate(coded, rows, k, table)
            least, cut, first, second, cost_a, cost_b = _resplit(
                table, k, at_a, at_b, rows, rules, ecc, key, order, left, left_at, right, right_at, chosen
            )
            if cut < 0 or not least < old * (1 - 1e-12):
                continue
            improved += 1
            total += least - old
            if b < 0 and cut < k:
                b = _fresh(pool)
            a = _store(pool, a, rows, chosen, 0, cut, rows[first], cost_a)
            if b >= 0:
                b = _store(pool, b, rows, chosen, cut, k, rows[second] if second >= 0 else -1, cost_b)
            for c in (a, b):
                if c >= 0 and not waiting[c]:
                    queue[(head + queued) % slots] = c
                    queued += 1
                    waiting[c] = True
    for c in range(min(slots, center.size)):
        center[c] = pool.center[c] if pool.size[c] > 0 else -1
    return total, improved


@njit(cache=True)
def _subtable(table, group, k, sub):
    """Distances among some of the points of a table."""
    for e in range(k):
        for f in range(k):
            sub[e, f] = table[group[e], group[f]]


@njit(cache=True)
def shake(coded, near, rules, largest, most, steps, seed, owner, center):
    """Dissolve a few neighboring clusters, cut them anew from a random side, keep what is cheaper; ``steps`` times.

    Arguments as in ``search``; most clusters (at most 8) and largest points at a time.  Returns (total, times kept).
    Points are carved off around the one farthest from a random one, r to 2 r at a time, then every two of the new
    clusters are re-split.  O(largest^2) time a step.
    """
    n, w = near.shape
    pool = _make_pool(owner, center, rules.r)
    rows, line = np.empty(largest, np.int64), np.arange(largest)
    table, sub = np.empty((largest, largest)), np.empty((largest, largest))
    ecc, key, order = np.empty(largest), np.empty(largest), np.empty(largest, np.int64)
    left, right = np.empty(largest + 1), np.empty(largest + 1)
    left_at, right_at = np.empty(largest + 1, np.int64), np.empty(largest + 1, np.int64)
    chosen, group, subrows = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    total = _price(coded, pool, rules, largest, rows, table, ecc, line, left, left_at)
    picked = np.empty(8, np.int64)
    groups = largest // max(rules.r, 1) + 2
    member, length = np.empty((groups, largest), np.int64), np.zeros(groups, np.int64)
    cost, middle = np.zeros(groups), np.zeros(groups, np.int64)
    rest = np.empty(largest, np.int64)
    state = np.uint64(seed * 2 + 1)
    kept, r = 0, max(rules.r, 1)
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
                k = _fill(coded, pool, c, rows, k)
                picked[many] = c
                old += pool.cost[c]
                many += 1
                if many == most:
                    break
        if many < 2 or old <= 0.0:
            continue
        _tabulate(coded, rows, k, table)
        # carve
        m, free = 0, k
        rest[:k] = line[:k]
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        pivot = np.int64(state >> np.uint64(33)) % k
        while free >= 2 * r:
            anchor, far = 0, -1.0
            for e in range(free):
                if table[pivot, rest[e]] > far:
                    anchor, far = rest[e], table[pivot, rest[e]]
            for e in range(free):
                key[e] = table[anchor, rest[e]]
            _order(key, free, order)
            for e in range(free):
                group[e] = rest[order[e]]
            top = min(2 * r, free - r)
            _prefixes(table, group, top, False, rows, rules, ecc, left, left_at)
            cut, least = -1, NEVER
            for t in range(r, top + 1):
                if left[t] / t < least:
                    cut, least = t, left[t] / t
            if cut < 0:
                break
            member[m, :cut] = group[:cut]
            length[m], cost[m], middle[m] = cut, left[cut], left_at[cut]
            m += 1
            free -= cut
            rest[:free] = group[cut : cut + free]
            pivot = anchor
        _prefixes(table, rest, free, False, rows, rules, ecc, left, left_at)
        member[m, :free] = rest[:free]
        length[m], cost[m], middle[m] = free, left[free], left_at[free]
        m += 1
        # re-split every two of them
        for a in range(m):
            for b in range(a):
                la, lb = length[a], length[b]
                if la + lb == 0:
                    continue
                group[:la] = member[a, :la]
                group[la : la + lb] = member[b, :lb]
                _subtable(table, group, la + lb, sub)
                for e in range(la + lb):
                    subrows[e] = rows[group[e]]
                least, cut, first, second, cost_a, cost_b = _resplit(
                    sub, la + lb, 0, la if lb else -1, subrows, rules, ecc, key, order,
                    left, left_at, right, right_at, chosen,
                )  # fmt: skip
                if cut < 0 or not least < cost[a] + cost[b]:
                    continue
                for e in range(cut):
                    member[a, e] = group[chosen[e]]
                for e in range(cut, la + lb):
                    member[b, e - cut] = group[chosen[e]]
                length[a], cost[a], middle[a] = cut, cost_a, group[first]
                length[b], cost[b] = la + lb - cut, cost_b
                middle[b] = group[second] if second >= 0 else -1
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
            slot = picked[used] if used < many else _fresh(pool)
            used += 1
            _store(pool, slot, rows, member[a], 0, length[a], rows[middle[a]], cost[a])
        for e in range(used, many):
            _store(pool, picked[e], rows, line, 0, 0, -1, 0.0)
    for c in range(min(pool.size.size, center.size)):
        center[c] = pool.center[c] if pool.size[c] > 0 else -1
    return total, kept


@njit(cache=True)
def better_centers(coded, start, member, near, setup, center):
    """Move every center to the nearest-listed point, member or not, that makes size times radius plus set-up least.

    start  int64[m + 1], member int64[*]: the points of cluster c are member[start[c] : start[c + 1]]
    near   int64[n, w]  the candidates: the center's list
    center int64[m]     in and out
    """
    for c in range(start.size - 1):
        k = start[c + 1] - start[c]
        if k == 0:
            continue
        old, best = center[c], NEVER
        for e in range(-1, near.shape[1]):
            v = old if e < 0 else near[old, e]
            if v < 0:
                break
            far, room = 0.0, (best - setup[v]) / k
            for i in range(start[c], start[c + 1]):
                d = distance(coded, v, member[i])
                if d > far:
                    far = d
                    if far >= room:
                        break
            if k * far + setup[v] < best:
                best, center[c] = k * far + setup[v], v


@njit(cache=True)
def diameters(coded, start, member, out):
    """The largest distance of two members of each cluster.  O(sum of squared sizes)."""
    for c in range(start.size - 1):
        wide = 0.0
        for i in range(start[c], start[c + 1]):
            for j in range(start[c], i):
                wide = max(wide, distance(coded, member[i], member[j]))
        out[c] = wide


@njit(cache=True)
def drop_farthest(m, owner, away, center, r, setup, spare):
    """Leave out up to ``spare`` points where that saves most cost a point: the farthest of a cluster, or all of it.

    owner   int64[n]    in and out, -1 where left out; away float64[n] distance from the center
    center  int64[n]    of the m clusters
    returns points left out

    O(n log n + drops (m + largest cluster)) time.
    """
    n = owner.size
    order = np.argsort(-away)
    start = np.zeros(m + 1, np.int64)
    for i in range(n):
        if owner[i] >= 0:
            start[owner[i] + 1] += 1
    for c in range(m):
        start[c + 1] += start[c]
    fill = start[:-1].copy()
    member = np.empty(n, np.int64)  # farthest first
    for i in order:
        if owner[i] >= 0:
            member[fill[owner[i]]] = i
            fill[owner[i]] += 1
    first = start[:-1].copy()
    rate, many = np.empty(m), np.zeros(m, np.int64)
    for c in range(m):
        rate[c] = -1.0
    gone = 0
    stale = np.ones(m, np.bool_)
    while True:
        best = -1
        for c in range(m):
            if stale[c] or many[c] > spare - gone:
                stale[c] = False
                rate[c], many[c] = 0.0, 0
                k = start[c + 1] - first[c]
                if k > 0:
                    now = k * away[member[first[c]]] + setup[center[c]]
                    if k <= spare - gone:
                        rate[c], many[c] = now / k, k
                    for t in range(1, min(k - r, spare - gone) + 1):
                        then = (k - t) * away[member[first[c] + t]] + setup[center[c]] if k > t else 0.0
                        if (now - then) / t > rate[c]:
                            rate[c], many[c] = (now - then) / t, t
            if many[c] > 0 and rate[c] > 0.0 and (best < 0 or rate[c] > rate[best]):
                best = c
        if best < 0:
            return gone
        for e in range(first[best], first[best] + many[best]):
            owner[member[e]] = -1
        gone += many[best]
        first[best] += many[best]
        stale[best] = True
