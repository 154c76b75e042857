"""Dual prices of points in cellular clustering: raised, moved along subgradients, or paid event by event.

Prices are feasible if no cluster costs less than the sum of its members' prices; then they bound the cost from below.
They are raised one point at a time, or moved against all balls of the points' lists and made feasible again. The
event-driven primal-dual method raises all of them equally, and opens the clusters that they pay for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit


class Balls(NamedTuple):
    """The possible clusters as balls, by the list of every center.

    near   int64[n, w], far float64[n, w]: the list of each center: its nearest points; -1 and inf after the last
    start  int64[n + 1]: the centers whose lists contain point i are holder[start[i] : start[i + 1]]
    holder int64[*], away float64[*]: these centers, and their distances from the point
    r      int64, setup float64[n]: least size of a cluster; cost of a center
    """

    near: np.ndarray
    far: np.ndarray
    start: np.ndarray
    holder: np.ndarray
    away: np.ndarray
    r: int
    setup: np.ndarray


@njit(cache=True, nogil=True)
def raise_prices(balls, cap, order, price):
    """Raise each point's price as far as possible so that no cluster costs less than its members' prices.

    balls    ``Balls``
    cap      float64[n]: upper limit of prices: for every center v, cap[i] <= max(d(i, v), end of v's list)
    order    int64[c]: points whose price is raised, in this order
    price    float64[n]: in and out: feasible
    returns  the sum of the raises

    Feasible: for every center v and radius d, and every r or more points within d of v, the sum of the excesses of
    prices over d is at most setup[v]. The cap handles balls that extend beyond a list: no price in them exceeds their
    radius. Usually O(c w^2) time, O(c w^3) at worst; O(n w) space.
    """
    near, far, start, holder, away, r, setup = balls
    n, w = near.shape
    top = np.empty(w)
    highest = np.zeros(n)  # of the prices above their distance from a center
    for v in range(n):
        for j in range(w):
            u = near[v, j]
            if u < 0:
                break
            if price[u] > far[v, j]:
                highest[v] = max(highest[v], price[u])
    total = 0.0
    # Each ball that contains the point limits its price. Only a ball that ends at the distance of a point, and has r
    # points or more, is a cluster.
    for i in order:
        best = cap[i]
        if best <= price[i]:
            continue
        for e in range(start[i], start[i + 1]):
            v = holder[e]
            if away[e] >= max(best, highest[v]):
                continue
            size, above = 0, 0.0  # others in the ball by descending price; sum of the r - 1 highest
            # Extend the ball point by point, with the others' prices sorted: the r - 1 highest must be in it, further
            # ones are in it while they pay more than its radius.
            for j in range(w):
                u = near[v, j]
                d = far[v, j]
                if u < 0 or d >= max(best, highest[v]):
                    break
                if u != i:
                    f = size
                    while f > 0 and top[f - 1] < price[u]:
                        top[f] = top[f - 1]
                        f -= 1
                    top[f] = price[u]
                    size += 1
                    if f < r - 1:
                        above += price[u] - (top[r - 1] if size > r - 1 else 0.0)
                if d < away[e] or size < r - 1 or (j + 1 < w and far[v, j + 1] == d):
                    continue
                others = above - (r - 1) * d
                f = r - 1
                while f < size and top[f] > d:
                    others += top[f] - d
                    f += 1
                best = min(best, d + setup[v] - others)
            if best <= price[i]:
                break
        if best > price[i]:
            total += best - price[i]
            price[i] = best
            for e in range(start[i], start[i + 1]):
                if best > away[e]:
                    highest[holder[e]] = max(highest[holder[e]], best)
    return total


class Openings(NamedTuple):
    """The clusters that may open, and their set-up costs.

    table  float64[n, n]: distances;  ranked: int32[n, n], the points by distance from each
    r      int64: clusters with fewer points within their radius don't exist
    fixed  float64[n]: set-up cost of a center;  share: float64, additional set-up cost per unit of radius
    widest float64: clusters of larger radius don't exist
    """

    table: np.ndarray
    ranked: np.ndarray
    r: int
    fixed: np.ndarray
    share: float
    widest: float


@njit(**LEAN_INNER)
def _next_opening(openings, v, now, status, alpha, paying):
    """(time, position) at which the next cluster around v is paid if no point freezes before; inf: none.

    Cluster (v, j) is the prefix of v's ranking up to position j, of radius d. Free members (status 0) pay alpha - d
    each as alpha increases, frozen ones (1) what they paid when they froze; a dead one (2) that pays shuts the cluster
    down. paying is a working array.
    """
    table, ranked, r, fixed, share, widest = openings
    n = table.shape[0]
    free, dead, best, where, many = 0, -1.0, np.inf, -1, 0
    # Free points pay more over time, so each prefix opens when the free points together have paid the missing amount.
    for j in range(n):
        u = ranked[v, j]
        d = table[v, u]
        if d >= best or d > widest:
            break
        if status[u] == 0:
            free += 1
        elif status[u] == 1:
            if alpha[u] > d:
                paying[many] = alpha[u]
                many += 1
        else:
            dead = max(dead, alpha[u])
        if j + 1 < r or free == 0 or dead >= d or (j + 1 < n and table[v, ranked[v, j + 1]] == d):
            continue
        given, kept = 0.0, 0
        for e in range(many):  # radii only increase, so points that no longer pay are dropped
            if paying[e] > d:
                given += paying[e] - d
                paying[kept] = paying[e]
                kept += 1
        many = kept
        missing = fixed[v] + share * d - given
        when = max(d + max(missing, 0.0) / free, now)
        if when < best:
            best, where = when, j
    return best, where


@njit(cache=True, nogil=True)
def procedure_one(openings, owner, center, alpha):
    """Procedure 1 of Aggarwal et al. 2006, as an event simulation.

    openings  ``Openings``
    owner   int64[n]: out: cluster of each point
    center  int64[n]: out: center of each cluster
    alpha   float64[n]: out: the dual
    returns the number of clusters

    The time at which a center's next cluster opens only increases when points freeze. So the least of the old times,
    checked again, is the next event. O(n^2) per event at worst, usually O(n); O(n^2) space.
    """
    table, ranked, r = openings.table, openings.ranked, openings.r
    n = table.shape[0]
    status = np.zeros(n, np.int64)  # 0 unassigned, 1 idle, 2 dead
    key, scratch = np.empty(n), np.empty(n)
    for v in range(n):
        key[v], _ = _next_opening(openings, v, 0.0, status, alpha, scratch)
    opened, now, free = 0, 0.0, n
    fresh, waits = np.empty(n, np.int64), np.empty(n, np.int64)
    # An event: the cluster opens, its free points and those that still pay for it die, and points freeze around every
    # center that a dying point shuts down.
    while free > 0:
        v = int(np.argmin(key))
        when, j = _next_opening(openings, v, now, status, alpha, scratch)
        if when > key[v]:
            key[v] = when
            continue
        now = when
        d = table[v, ranked[v, j]]
        many, idle = 0, 0
        for e in range(j + 1):
            u = ranked[v, e]
            if status[u] == 0:
                fresh[many] = u
                many += 1
            elif status[u] == 1 and alpha[u] >= d:
                waits[idle] = u
                idle += 1
        for e in range(many):
            u = fresh[e]
            status[u], alpha[u], owner[u] = 2, now, opened
        for e in range(idle):
            status[waits[e]] = 2
        free -= many
        for x in range(n):
            limit = -1.0  # the largest radius around x at which a point that died has a tight edge
            for e in range(many):
                if table[x, fresh[e]] <= now:
                    limit = now
                    break
            if limit < 0.0:
                for e in range(idle):
                    u = waits[e]
                    if table[x, u] <= alpha[u]:
                        limit = max(limit, alpha[u])
            if limit < 0.0:
                continue
            count = 0
            while count < n and table[x, ranked[x, count]] <= limit:
                count += 1
            if count < r:
                continue
            for e in range(count):
                u = ranked[x, e]
                if status[u] == 0:
                    status[u], alpha[u], owner[u] = 1, now, opened
                    free -= 1
        center[opened] = v
        opened += 1
    return opened


@njit(cache=True, nogil=True)
def tighten(openings, enough, witness, center, radius, alpha):
    """Raise all prices equally. If a cluster's set-up cost is paid, its points freeze. Stop when few points are free.

    openings ``Openings``
    enough   stop when at most this many points are free
    witness  int64[n]: out: the cluster that froze each point, -1 if none
    center   int64[n]: out, radius float64[n]: out: the clusters, in the order of freezing
    alpha    float64[n]: out: the prices; for free points, the last time
    returns  (number of clusters, points frozen by the last of them)

    Nothing is shut down: frozen points continue to pay their amount for larger clusters. O(n^2) per event at worst,
    usually O(n).
    """
    table, ranked = openings.table, openings.ranked
    n = table.shape[0]
    status = np.zeros(n, np.int64)
    key, scratch = np.empty(n), np.empty(n)
    for v in range(n):
        witness[v] = -1
        key[v], _ = _next_opening(openings, v, 0.0, status, alpha, scratch)
    opened, now, free, last = 0, 0.0, n, 0
    while free > enough:
        v = int(np.argmin(key))
        if key[v] == np.inf:
            break
        when, j = _next_opening(openings, v, now, status, alpha, scratch)
        if when > key[v]:
            key[v] = when
            continue
        now, last = when, 0
        for e in range(j + 1):
            u = ranked[v, e]
            if status[u] == 0:
                status[u], alpha[u], witness[u] = 1, now, opened
                last += 1
        free -= last
        center[opened], radius[opened] = v, table[v, ranked[v, j]]
        opened += 1
    for u in range(n):
        if status[u] == 0:
            alpha[u] = now
    return opened, last


@njit(cache=True, nogil=True)
def independent(table, center, radius, alpha, chosen, stand_in, payer):
    """Select clusters such that no point pays for two, the largest first; others get a selected substitute.

    center    int64[m], radius float64[m]; alpha float64[n]: point i pays for c if d(i, c) <= radius < alpha[i]
    chosen    bool[m]: out
    stand_in  int64[m]: out: a selected cluster, not smaller, that shares a paying point; the cluster itself if selected
    payer     int64[n]: out: the selected cluster for which a point pays (at most one); -1 if none

    O(m n) time.
    """
    n = table.shape[0]
    payer[:] = -1
    order = np.argsort(-radius, kind="mergesort")
    for c in order:
        stand_in[c] = c
        for u in range(n):
            if table[center[c], u] <= radius[c] < alpha[u] and payer[u] >= 0:
                stand_in[c] = payer[u]
                break
        chosen[c] = stand_in[c] == c
        if chosen[c]:
            for u in range(n):
                if table[center[c], u] <= radius[c] < alpha[u]:
                    payer[u] = c


@njit(cache=True, nogil=True)
def holders(near, far):
    """For every point, the lists that contain it: (start int64[n + 1]; holder, distance, index in the list, each [*]).

    near int64[n, w], -1 after the last; far float64[n, w]. O(n w) time and space.
    """
    n, w = near.shape
    start = np.zeros(n + 1, np.int64)
    for v in range(n):
        for j in range(w):
            if near[v, j] >= 0:
                start[near[v, j] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    fill = start[:-1].copy()
    holder, away, place = np.empty(start[n], np.int64), np.empty(start[n]), np.empty(start[n], np.int64)
    for v in range(n):
        for j in range(w):
            u = near[v, j]
            if u >= 0:
                holder[fill[u]], away[fill[u]], place[fill[u]] = v, far[v, j], j
                fill[u] += 1
    return start, holder, away, place


@njit(**LEAN_INNER)
def _highest(near, price, v):
    """The highest price on a center's list; balls of at least this radius needn't be examined."""
    high = -np.inf
    for j in range(near.shape[1]):
        if near[v, j] < 0:
            break
        high = max(high, price[near[v, j]])
    return high


@njit(**LEAN_INNER)
def _sorted_in(top, who, size, price, i):
    """Insert point i into the order by descending price; returns its index."""
    f = size
    while f > 0 and top[f - 1] < price[i]:
        top[f], who[f] = top[f - 1], who[f - 1]
        f -= 1
    top[f], who[f] = price[i], i
    return f


@njit(**LEAN_INNER)
def _paid(near, far, r, price, v, top, who, kept):
    """(the largest excess of payments over the cost of a cluster around v, its number of points).

    The points are in ``kept``.

    top, who  working arrays for a list
    """
    size, above, best, many = 0, 0.0, 0.0, 0
    high = _highest(near, price, v)
    w = near.shape[1]
    # As in ``raise_prices``: the ball is extended with its prices sorted, and is evaluated at the distance of each
    # point.
    for j in range(w):
        i, d = near[v, j], far[v, j]
        if i < 0 or d >= high:
            break
        f = _sorted_in(top, who, size, price, i)
        size += 1
        if f < r:
            above += price[i] - (top[r] if size > r else 0.0)
        if size < r or (j + 1 < w and far[v, j + 1] == d):
            continue
        over, f = above - r * d, r
        while f < size and top[f] > d:
            over += top[f] - d
            f += 1
        if over > best:
            best, many = over, f
            for x in range(f):
                kept[x] = who[x]
    return best, many


@njit(cache=True, nogil=True)
def worth(balls, price, taken):
    """The sum of all prices minus the overpayments of clusters, where each center counts its most overpaid cluster.

    balls  ``Balls`` of at least 2 points, without set-up costs;  price: float64[n]
    taken  int64[n]: out: how many of these clusters contain each point
    Usually O(n w).
    """
    near, far, r = balls.near, balls.far, balls.r
    n, w = near.shape
    top, who, kept = np.empty(w), np.empty(w, np.int64), np.empty(w, np.int64)
    taken[:] = 0
    value = 0.0
    for v in range(n):
        value += price[v]
        over, many = _paid(near, far, r, price, v, top, who, kept)
        value -= over
        for x in range(many):
            taken[kept[x]] += 1
    return value


@njit(cache=True, nogil=True)
def excess(near, far, r, price, out):
    """For each point, the largest excess of the mean price of r points within a radius of a center over that radius.

    near, far, r  as in ``Balls``;  price: float64[n];  out: float64[n], 0 if no such mean exceeds the radius
    Usually O(n w^2) if many balls are overpaid.
    """
    n, w = near.shape
    top, who, over, least = np.empty(w), np.empty(w, np.int64), np.empty(w), np.empty(w)
    out[:] = 0.0
    # First the excess of every ball, with its r-th price. Then each point takes the largest, where it may have to
    # replace the r-th.
    for v in range(n):
        size, above, some = 0, 0.0, False
        high = _highest(near, price, v)
        for j in range(w):
            i, d = near[v, j], far[v, j]
            if i < 0 or d >= high:
                break
            f = _sorted_in(top, who, size, price, i)
            size += 1
            if f < r:
                above += price[i] - (top[r] if size > r else 0.0)
            over[j] = 0.0
            if size >= r and (j + 1 == w or far[v, j + 1] != d):
                over[j], least[j] = above - r * d, top[r - 1]
                some = some or over[j] > 0.0
        if not some:
            continue
        for x in range(size):
            i = near[v, x]
            for j in range(x, size):
                if over[j] > 0.0:  # the r highest prices, or all of them except the last plus its own
                    out[i] = max(out[i], (over[j] + min(price[i] - least[j], 0.0)) / r)
