"""Loops around the search for cellular clusterings: a greedy start, points joining and leaving, better centers.

A cluster costs its size times its radius, plus the set-up cost of its center.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.gathering.neighbors import distance


@njit(**INNER)
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


@njit(**INNER)
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


@njit(**INNER)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def better_centers(coded, start, member, near, setup, allowed, center):
    """Move every center to the nearest-listed point, member or not, that makes size times radius plus set-up least.

    start  int64[m + 1], member int64[*]: the points of cluster c are member[start[c] : start[c + 1]]
    near   int64[n, w]  the candidates: the center's list, as far as they are allowed, bool[n]
    center int64[m]     in and out
    """
    for c in range(start.size - 1):
        k = start[c + 1] - start[c]
        if k == 0:
            continue
        old, best = center[c], np.inf
        for e in range(-1, near.shape[1]):
            v = old if e < 0 else near[old, e]
            if v < 0:
                break
            if e >= 0 and not allowed[v]:
                continue
            far, room = 0.0, (best - setup[v]) / k
            for i in range(start[c], start[c + 1]):
                d = distance(coded, v, member[i])
                if d > far:
                    far = d
                    if far >= room:
                        break
            if k * far + setup[v] < best:
                best, center[c] = k * far + setup[v], v


@njit(cache=True, nogil=True)
def diameters(coded, start, member, out):
    """The largest distance of two members of each cluster.  O(sum of squared sizes)."""
    for c in range(start.size - 1):
        wide = 0.0
        for i in range(start[c], start[c + 1]):
            for j in range(start[c], i):
                wide = max(wide, distance(coded, member[i], member[j]))
        out[c] = wide


@njit(cache=True, nogil=True)
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
