"""Local search for cellular clusterings: a few neighboring clusters are recut if that costs less.

A cluster costs its size times its radius, plus the set-up cost of its center, which is a member. ``search`` recuts
pairs of neighbors, ``recut`` a few at a time. All clusters are slices of one array, which are rewritten.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, STEP, njit
from shoal.kernels.gathering.clusters import distance


class ClusterPool(NamedTuple):
    """Clusters as slices of one array, written at its end; the array is packed when it is full.

    (1) A number in use has size > 0, and its points are arena[start : start + size]. (2) owner[i] is the number of the
    slice that contains i, -1 if none does. (3) tops = (used length of the arena, numbers on the stack of unused ones).
    packed is the working array for packing.
    """

    start: np.ndarray
    size: np.ndarray
    cost: np.ndarray
    center: np.ndarray
    owner: np.ndarray
    arena: np.ndarray
    packed: np.ndarray
    unused: np.ndarray
    tops: np.ndarray


def make_pool(owner: np.ndarray, center: np.ndarray, r: int) -> ClusterPool:
    """A pool of the clusters in owner; costs are still 0."""
    n = owner.size
    slots = max(n // max(r, 1) + 1, int(owner.max(initial=-1)) + 1) + 1
    held = np.flatnonzero(owner >= 0)
    size = np.bincount(owner[held], minlength=slots)
    arena, unused, middle = np.empty(4 * n + 8, np.int64), np.empty(slots, np.int64), np.full(slots, -1)
    arena[: held.size] = held[np.argsort(owner[held], kind="stable")]
    used, spare = np.flatnonzero(size), np.flatnonzero(size == 0)[::-1]
    middle[used], unused[: spare.size] = center[used], spare
    tops = np.array([held.size, spare.size])
    return ClusterPool(
        size.cumsum() - size, size, np.zeros(slots), middle, owner, arena, np.empty_like(arena), unused, tops
    )


@njit(**LEAN_INNER)
def store(pool, c, rows, chosen, low, high, center, cost):
    """Set cluster c to rows[chosen[low:high]]; returns c, or -1 if the slice is empty."""
    k = high - low
    if pool.tops[0] + k > pool.arena.size:
        end = 0
        for s in range(pool.size.size):
            for e in range(pool.size[s]):
                pool.packed[end + e] = pool.arena[pool.start[s] + e]
            pool.start[s] = end
            end += pool.size[s]
        for e in range(end):
            pool.arena[e] = pool.packed[e]
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


@njit(**LEAN_INNER)
def fresh(pool):
    """An unused number."""
    pool.tops[1] -= 1
    return pool.unused[pool.tops[1]]


@njit(**LEAN_INNER)
def fill(pool, c, rows, k):
    """Append cluster c to rows from index k on; returns the new length."""
    for e in range(pool.size[c]):
        rows[k + e] = pool.arena[pool.start[c] + e]
    return k + pool.size[c]


NEVER = 1e300


class ClusterRules(NamedTuple):
    """The conditions and the further costs of a cluster.

    r         least size
    setup     float64[n]: cost of a center
    codes     int64[n, s]: sensitive values, s may be 0
    share     float64[s]: largest share of one value in a cluster
    distinct  int64[s]: least number of values
    limit     diameters above it cost excess for every point and unit of length
    excess    0 if diameters don't matter
    """

    r: int
    setup: np.ndarray
    codes: np.ndarray
    share: np.ndarray
    distinct: np.ndarray
    limit: float
    excess: float


class CutPoints(NamedTuple):
    """The points that are recut: int64[m] records, and float64[m, m] their distances."""

    rows: np.ndarray
    table: np.ndarray


class CutBudget(NamedTuple):
    """Limits of the search: points and clusters (at most 8) that are recut together, attempts, and the random seed."""

    largest: int
    clusters: int
    looks: int
    seed: int


class PairsWorkspace(NamedTuple):
    """Working arrays for clusters of at most m points, with s sensitive columns.

    rows, line, order, chosen int64[m]: points, 0 .. m - 1, indexes by a key, indexes by the best order
    table float64[m, m]; ecc, key float64[m]
    left, right float64[m + 1], left_at, right_at int64[m + 1]: costs and centers of prefixes from either end
    top float64[s], kinds int64[s]
    """

    rows: np.ndarray
    line: np.ndarray
    order: np.ndarray
    chosen: np.ndarray
    table: np.ndarray
    ecc: np.ndarray
    key: np.ndarray
    left: np.ndarray
    right: np.ndarray
    left_at: np.ndarray
    right_at: np.ndarray
    top: np.ndarray
    kinds: np.ndarray


def workspace(m: int, s: int) -> PairsWorkspace:
    """Working arrays for clusters of at most m points, s sensitive columns."""
    return PairsWorkspace(
        *(np.empty(m, np.int64) for _ in range(4)), np.empty((m, m)), np.empty(m), np.empty(m), np.empty(m + 1),
        np.empty(m + 1), np.empty(m + 1, np.int64), np.empty(m + 1, np.int64), np.zeros(s), np.zeros(s, np.int64),
    )._replace(line=np.arange(m))  # fmt: skip


@njit(**LEAN_INNER)
def tabulate(coded, rows, k, table):
    """All distances of k rows."""
    for e in range(k):
        table[e, e] = 0.0
        for f in range(e):
            table[e, f] = table[f, e] = distance(coded, rows[e], rows[f])


@njit(**LEAN_INNER)
def order_by(key, k, order):
    """0..k-1 stably sorted by key; insertion sort, for short lists. O(k^2)."""
    for e in range(k):
        f = e
        while f > 0 and key[order[f - 1]] > key[e]:
            order[f] = order[f - 1]
            f -= 1
        order[f] = e


@njit(**LEAN_INNER)
def prefixes(points, order, m, reverse, rules, d, cost, best):
    """The cost of the first t points of an order, for every t, and the best center.

    points  ``CutPoints``, order int64[m]: some of them; reverse: count from the end
    cost    float64[m + 1]: out, best int64[m + 1]: out: NEVER and -1 if t points are no valid cluster

    O(m^2 (1 + s)) time.
    """
    rows, table = points
    s = rules.codes.shape[1]
    wide = 0.0
    cost[0], best[0] = 0.0, -1
    ecc, top, kinds = d.ecc, d.top, d.kinds
    for c in range(s):
        top[c], kinds[c] = 0.0, 0
    # A new point changes the largest distances of those before it, so each prefix takes one pass over its points.
    for t in range(m):
        u = order[m - 1 - t] if reverse else order[t]
        far = 0.0
        for q in range(t):
            v = order[m - 1 - q] if reverse else order[q]
            away = table[u, v]
            if away > ecc[v]:
                ecc[v] = away
            if away > far:
                far = away
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


@njit(**LEAN_INNER)
def best_split(points, k, at_a, at_b, rules, d):
    """The best cut of k points over a few orders: (cost, cut, centers of both parts, their costs); d.chosen: its order.

    at_a, at_b  anchors (at_b may be -1); the two points farthest apart, and the difference of the distances from these,
                give three more orders. cut = k: one cluster.
    """
    key, order, chosen = d.key, d.order, d.chosen
    left, left_at, right, right_at = d.left, d.left_at, d.right, d.right_at
    table, far_a, far_b, wide = points.table, 0, 0, -1.0
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
        order_by(key, k, order)
        prefixes(points, order, k, False, rules, d, left, left_at)
        prefixes(points, order, k, True, rules, d, right, right_at)
        for t in range(max(rules.r, 1), k + 1):
            if left[t] + right[k - t] < least:
                least, cut, first, second = left[t] + right[k - t], t, left_at[t], right_at[k - t]
                cost_a, cost_b = left[t], right[k - t]
                for e in range(k):
                    chosen[e] = order[e]
    return least, cut, first, second, cost_a, cost_b


@njit(**LEAN_INNER)
def price_all(coded, pool, rules, largest, d):
    """Costs and best centers of all clusters; one larger than ``largest`` keeps its center. Returns the total."""
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
            fill(pool, c, d.rows, 0)
            tabulate(coded, d.rows, k, d.table)
            prefixes(CutPoints(d.rows, d.table), d.line, k, False, rules, d, d.left, d.left_at)
            pool.cost[c] = d.left[k]
            if d.left_at[k] >= 0:
                pool.center[c] = d.rows[d.left_at[k]]
        total += pool.cost[c]
    return total


def search(coded, near, rules, budget, owner, center):
    """Re-split pairs of neighboring clusters, merge them, or split one, while the total cost decreases.

    coded    ``Records``
    near     int64[n, w]: nearest points; two clusters are neighbors if one contains such a point of the other
    budget   ``CutBudget``: pairs with more points than the largest are skipped
    owner    int64[n]: in and out: cluster of each point, -1 if it is in none
    center   int64[n]: in and out: member at the center of each cluster
    returns  (total cost, pairs improved)

    All costs of an order's prefixes take O(m^2) in total, so a pair of m points takes O(m^2) time.
    """
    pool, d = make_pool(owner, center, rules.r), workspace(budget.largest, rules.codes.shape[1])
    slots = pool.size.size
    turns = (np.empty(slots, np.int64), np.zeros(slots, np.bool_), np.zeros(slots, np.int64), np.empty(16, np.int64))
    return _search(coded, near, rules, budget, center, pool, d, turns)


@njit(**LEAN)
def _search(coded, near, rules, budget, center, pool, d, turns):
    """``search`` on arrays that Python allocated.

    turns  the queue of clusters, flags of those in it, when each was last examined, and the neighbors of one.
    """
    largest, _, looks, _ = budget
    w, slots = near.shape[1], pool.size.size
    queue, waiting, seen, neighbors = turns
    rows, table, chosen = d.rows, d.table, d.chosen
    points = CutPoints(rows, table)
    total = price_all(coded, pool, rules, largest, d)
    head, queued = 0, 0
    for c in range(slots):
        if pool.size[c] > 0:
            queue[queued] = c
            queued += 1
            waiting[c] = True
    looked, improved, most = 0, 0, looks * max(queued, 1)
    # A queue of clusters to examine: one returns when it has changed. Every cluster is examined alone and with each
    # neighbor.
    while queued and looked < most:
        a = queue[head]
        head = (head + 1) % slots
        queued -= 1
        waiting[a] = False
        if pool.size[a] == 0 or pool.size[a] > largest:
            continue
        looked += 1
        seen[a] = looked
        neighbors[0], many = -1, 1  # -1: the cluster alone
        for e in range(pool.size[a]):
            for q in range(w):
                u = near[pool.arena[pool.start[a] + e], q]
                b = pool.owner[u] if u >= 0 else -1
                if b >= 0 and seen[b] != looked and many < neighbors.size:
                    seen[b] = looked
                    neighbors[many] = b
                    many += 1
        for which in range(many):
            b = neighbors[which]
            if pool.size[a] == 0:
                break
            k = pool.size[a] + (pool.size[b] if b >= 0 else 0)
            old = pool.cost[a] + (pool.cost[b] if b >= 0 else 0.0)
            if k > largest or (b < 0 and k < 2 * rules.r) or (b >= 0 and pool.size[b] == 0) or old <= 0.0:
                continue
            fill(pool, a, rows, 0)
            if b >= 0:
                fill(pool, b, rows, pool.size[a])
            at_a, at_b = 0, -1
            for e in range(k):
                if rows[e] == pool.center[a]:
                    at_a = e
                elif b >= 0 and rows[e] == pool.center[b]:
                    at_b = e
            tabulate(coded, rows, k, table)
            least, cut, first, second, cost_a, cost_b = best_split(points, k, at_a, at_b, rules, d)
            if cut < 0 or not least < old * (1 - 1e-12):
                continue
            improved += 1
            total += least - old
            if b < 0 and cut < k:
                b = fresh(pool)
            a = store(pool, a, rows, chosen, 0, cut, rows[first], cost_a)
            if b >= 0:
                b = store(pool, b, rows, chosen, cut, k, rows[second] if second >= 0 else -1, cost_b)
            for c in (a, b):
                if c >= 0 and not waiting[c]:
                    queue[(head + queued) % slots] = c
                    queued += 1
                    waiting[c] = True
    for c in range(min(slots, center.size)):
        center[c] = pool.center[c] if pool.size[c] > 0 else -1
    return total, improved


@njit(**LEAN_INNER)
def _subtable(table, group, k, sub):
    """Distances among some of the points of a table."""
    for e in range(k):
        for f in range(k):
            sub[e, f] = table[group[e], group[f]]


def recut(coded, near, rules, budget, owner, center):
    """Dissolve a few neighboring clusters, recut them from a random side, and keep the result if it costs less.

    Arguments as in ``search``; the budget limits the number of attempts. Returns (total, number of results kept).
    Points are cut off around the one farthest from a random one, r to 2 r at a time, then every two of the new clusters
    are re-split. O(largest^2) time per step.
    """
    largest = budget.largest
    groups = largest // max(rules.r, 1) + 2
    work = Carved(
        *(np.empty(largest, np.int64) for _ in range(3)), np.empty((largest, largest)), np.empty(8, np.int64),
        np.empty((groups, largest), np.int64), np.zeros(groups, np.int64), np.zeros(groups), np.zeros(groups, np.int64),
    )  # fmt: skip
    pool, d = make_pool(owner, center, rules.r), workspace(largest, rules.codes.shape[1])
    return _recut(coded, near, rules, budget, center, pool, d, work)


class Carved(NamedTuple):
    """Working arrays for a few clusters of at most m points in total, at most g clusters.

    group, subrows, rest int64[m], sub float64[m, m]: some of the points; picked int64[8]: the dissolved clusters
    member int64[g, m], length int64[g], cost float64[g], middle int64[g]: the new ones
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
def _carve(pivot, k, rules, d, work):
    """Cut points off around the one farthest from a random one, r to 2 r at a time; the last anchor is the next pivot.

    k points in total, pivot one of them; returns the number of clusters.
    """
    group, rest, member, length, cost, middle = (
        work.group, work.rest, work.member, work.length, work.cost, work.middle
    )  # fmt: skip
    table, key, order, left, left_at = d.table, d.key, d.order, d.left, d.left_at
    points = CutPoints(d.rows, table)
    m, free, r = 0, k, max(rules.r, 1)
    for e in range(k):
        rest[e] = e
    # The cut with the least cost per point is kept; the last turn leaves r points or more for the rest.
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
        prefixes(points, group, top, False, rules, d, left, left_at)
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
    prefixes(points, rest, free, False, rules, d, left, left_at)
    for e in range(free):
        member[m, e] = rest[e]
    length[m], cost[m], middle[m] = free, left[free], left_at[free]
    m += 1
    return m


@njit(**STEP)
def _split_again(m, rules, d, work):
    """Re-split every two of the m new clusters if that costs less."""
    group, member, length, cost, middle = work.group, work.member, work.length, work.cost, work.middle
    for a in range(m):
        for b in range(a):
            la, lb = length[a], length[b]
            if la + lb == 0:
                continue
            for e in range(la):
                group[e] = member[a, e]
            for e in range(lb):
                group[la + e] = member[b, e]
            _subtable(d.table, group, la + lb, work.sub)
            for e in range(la + lb):
                work.subrows[e] = d.rows[group[e]]
            some = CutPoints(work.subrows, work.sub)
            least, cut, first, second, cost_a, cost_b = best_split(some, la + lb, 0, la if lb else -1, rules, d)
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
def _recut(coded, near, rules, budget, center, pool, d, work):
    """``recut`` on arrays that Python allocated."""
    (n, w), owner = near.shape, pool.owner
    largest, most, steps, seed = budget
    picked, member, length, cost, middle, rows, line = (
        work.picked, work.member, work.length, work.cost, work.middle, d.rows, d.line
    )  # fmt: skip
    total = price_all(coded, pool, rules, largest, d)
    state = np.uint64(seed * 2 + 1)
    kept = 0
    # Dissolve the clusters near a random point, carve and split the points again, and write them back if that costs
    # less. New clusters take the old slots first; remaining slots become empty.
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
        m = _carve(np.int64(state >> np.uint64(33)) % k, k, rules, d, work)
        _split_again(m, rules, d, work)
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
