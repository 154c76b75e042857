"""Minimum-cost transportation by shortest augmenting paths, in whole numbers."""

from __future__ import annotations

import numpy as np

from shoal.kernels import LEAN_INNER, njit


@njit(cache=True, nogil=True)
def prices(cost, u, v):
    """First prices, below every cost: v the least of each column, then u the least of what remains of each row.

    cost  int32[a, b];  u int64[a], v int64[b] out, u[i] + v[j] <= cost[i, j].  O(a b).
    """
    a, b = cost.shape
    for j in range(b):
        v[j] = cost[0, j]
    for i in range(1, a):
        for j in range(b):
            v[j] = min(v[j], cost[i, j])
    for i in range(a):
        least = cost[i, 0] - v[0]
        for j in range(1, b):
            least = min(least, cost[i, j] - v[j])
        u[i] = least


@njit(**LEAN_INNER)
def _added(j, r, some, head, after, source, amount, used):
    """More of row r shipped to column j, in its parcel there or in a free or new one; the parcels in use."""
    p = head[j]
    free = -1
    while p >= 0 and source[p] != r:
        if amount[p] == 0:
            free = p
        p = after[p]
    if p >= 0:
        amount[p] += some
    elif free >= 0:
        source[free], amount[free] = r, some
    else:
        source[used], amount[used], after[used] = r, some, head[j]
        head[j] = used
        used += 1
    return used


@njit(cache=True, nogil=True)
def ship(cost, supply, demand, u, v, head, after, source, amount, used, low, high):
    """Ship the supply of rows low .. high - 1 by shortest augmenting paths; prices stay below every cost throughout.

    cost    int32[a, b]
    supply  int64[a], demand int64[b]  what is not shipped yet; both sums are equal at the start
    u       int64[a], v int64[b]       prices, u[i] + v[j] <= cost[i, j], equal where something is shipped
    head    int64[b]   first parcel of each column, -1 for none; after int64[p] the next one
    source  int64[p], amount int64[p]  row and size of each parcel, p the total supply
    used    int64      parcels in use;  low, high  int64  rows

    Returns the parcels in use; parcels may have size 0.  O(a b) time for each path.
    """
    a, b = cost.shape
    dist = np.empty(b, np.int64)
    through = np.empty(b, np.int64)  # row through which a column was reached
    done = np.empty(b, np.bool_)
    reached = np.empty(a, np.int64)  # distance of a row, -1 when not reached
    parcel = np.empty(a, np.int64)  # parcel along which a row was reached
    came = np.empty(a, np.int64)  # and its column
    todo = np.empty(a, np.int64)
    far = np.int64(1) << 60
    for i in range(low, high):  # what costs no more than the prices goes at once
        for j in range(b):
            if supply[i] == 0:
                break
            if demand[j] > 0 and cost[i, j] == u[i] + v[j]:
                some = min(supply[i], demand[j])
                supply[i] -= some
                demand[j] -= some
                source[used], amount[used], after[used] = i, some, head[j]
                head[j] = used
                used += 1
    for i in range(low, high):
        while supply[i] > 0:
            dist[:] = far
            done[:] = False
            reached[:] = -1
            reached[i] = 0
            todo[0] = i
            waiting = 1
            while True:
                for x in range(waiting):
                    r = todo[x]
                    base = reached[r] - u[r]
                    for j in range(b):
                        d = base + cost[r, j] - v[j]
                        if d < dist[j]:
                            dist[j] = d
                            through[j] = r
                end = -1
                best = far
                for j in range(b):
                    if not done[j] and (dist[j] < best or (dist[j] == best and demand[j] > 0 and demand[end] == 0)):
                        best = dist[j]
                        end = j
                done[end] = True
                if demand[end] > 0:
                    break
                waiting = 0
                p = head[end]
                while p >= 0:
                    r = source[p]
                    if amount[p] > 0 and reached[r] < 0:
                        reached[r] = best
                        parcel[r] = p
                        came[r] = end
                        todo[waiting] = r
                        waiting += 1
                    p = after[p]
            for r in range(a):
                if reached[r] >= 0:
                    u[r] += best - reached[r]
            for j in range(b):
                if done[j]:
                    v[j] -= best - dist[j]
            some = min(supply[i], demand[end])
            r = through[end]
            while r != i:
                some = min(some, amount[parcel[r]])
                r = through[came[r]]
            supply[i] -= some
            demand[end] -= some
            j = end
            while True:
                r = through[j]
                used = _added(j, r, some, head, after, source, amount, used)
                if r == i:
                    break
                amount[parcel[r]] -= some
                j = came[r]
    return used
