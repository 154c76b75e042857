"""Loops of cellular clustering other than its search, and smallest enclosing balls.

A cluster costs its size times its radius, plus the set-up cost of its center. Clusters open greedily, points join and
leave them, and centers move to where a cluster costs least. A ball encloses a cluster. The smallest disc that contains
a point and r - 1 others bounds the radius from below.
"""

from __future__ import annotations

import math

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.gathering.clusters import distance


@njit(**INNER)
def _sift(key, who, size):
    """Move the last entry of a binary heap up to its position."""
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
    """Move the first entry of a binary heap down to its position."""
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
    """(cost per point, number of points) of the cheapest cluster of free points around v; (inf, 0) if there is none.

    With t free points, the cost per point is the distance of the t-th plus 1/t of the set-up cost; without set-up costs
    t = r.
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
    """Repeatedly open the cluster with the least cost per point among the free points.

    near    int64[n, w], far float64[n, w]: nearest points of each, w >= r; -1 after the last
    setup   float64[n]: cost of a center
    owner   int64[n]: in and out: -1 while free
    center  int64[n]: out
    returns the number of clusters

    A point whose list has fewer than r free points can no longer be a center. Costs only increase when points are
    taken, so a heap of old costs, checked at the top, gives the next center. O(n w + pops w).
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
    # The top of the heap is outdated or current: removed if it can't open any more, moved down if its cost increased,
    # else opened.
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
    """Add free points to the cluster whose cost increases least, among a few with a nearby center.

    order   int64[f]: the free points, closest to a center first
    choice  int64[f, c]: candidate clusters, away float64[f, c]: the distances to their centers
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
    """Move every center to the point in its list, member or not, that minimizes size times radius plus set-up cost.

    start  int64[m + 1], member int64[*]: the points of cluster c are member[start[c] : start[c + 1]]
    near   int64[n, w]: the candidates are the center's list, restricted to ``allowed``, bool[n]
    center int64[m]: in and out
    """
    # The old center comes first, because its cost is the limit at which other candidates are dropped.
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
            far, limit = 0.0, (best - setup[v]) / k
            for i in range(start[c], start[c + 1]):
                d = distance(coded, v, member[i])
                if d > far:
                    far = d
                    if far >= limit:
                        break
            if k * far + setup[v] < best:
                best, center[c] = k * far + setup[v], v


@njit(cache=True, nogil=True)
def diameters(coded, start, member, out):
    """The largest distance of two members of each cluster. O(sum of squared sizes)."""
    for c in range(start.size - 1):
        wide = 0.0
        for i in range(start[c], start[c + 1]):
            for j in range(start[c], i):
                wide = max(wide, distance(coded, member[i], member[j]))
        out[c] = wide


@njit(cache=True, nogil=True)
def drop_farthest(m, owner, away, center, r, setup, spare):
    """Leave out up to ``spare`` points with the largest saving per point: the farthest of a cluster, or all.

    owner   int64[n]: in and out, -1 if left out; away float64[n]: distance from the center
    center  int64[n]: of the m clusters
    returns the number of points left out

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
    # Only the cluster that lost points, and clusters whose saving needs more points than may still be left out, are
    # priced again.
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


@njit(cache=True, nogil=True)
def enclosing_ball(x, member, steps, center):
    """A small ball around some points; on a line and in the plane the smallest.

    x       float64[n, d]
    member  int64[m]: the points, at least one
    steps   number of steps of Badoiu and Clarkson's iteration towards the farthest point (d above 2); the best center
            is kept; within about 1/steps of the optimum
    center  float64[d]: out
    returns the distance of the farthest member from center, so the ball contains all members regardless of rounding

    d = 2: incremental over pairs and triples, O(m) expected for points in random order, O(m^3) at worst.
    """
    m, d = member.size, x.shape[1]
    for c in range(d):
        center[c] = x[member[0], c]
    if d == 1:
        low, high = center[0], center[0]
        for i in range(1, m):
            low, high = min(low, x[member[i], 0]), max(high, x[member[i], 0])
        center[0] = (low + high) / 2
    elif d == 2:
        radius = 0.0
        # A point outside the smallest disc of the points before it is on the boundary of the next disc (Welzl). The
        # inner loops fix a second and a third point of the boundary in the same way.
        for i in range(1, m):
            a = member[i]
            if math.hypot(x[a, 0] - center[0], x[a, 1] - center[1]) <= radius * (1 + 1e-12):
                continue
            center[0], center[1], radius = x[a, 0], x[a, 1], 0.0
            for j in range(i):
                b = member[j]
                if math.hypot(x[b, 0] - center[0], x[b, 1] - center[1]) <= radius * (1 + 1e-12):
                    continue
                center[0], center[1] = (x[a, 0] + x[b, 0]) / 2, (x[a, 1] + x[b, 1]) / 2
                radius = math.hypot(x[a, 0] - x[b, 0], x[a, 1] - x[b, 1]) / 2
                for k in range(j):
                    c = member[k]
                    if math.hypot(x[c, 0] - center[0], x[c, 1] - center[1]) <= radius * (1 + 1e-12):
                        continue
                    px, py = x[b, 0] - x[a, 0], x[b, 1] - x[a, 1]
                    qx, qy = x[c, 0] - x[a, 0], x[c, 1] - x[a, 1]
                    cross = 2 * (px * qy - py * qx)
                    if cross == 0.0:
                        continue
                    p2, q2 = px * px + py * py, qx * qx + qy * qy
                    ux, uy = (qy * p2 - py * q2) / cross, (px * q2 - qx * p2) / cross
                    center[0], center[1], radius = x[a, 0] + ux, x[a, 1] + uy, math.hypot(ux, uy)
    else:
        walk, least = center.copy(), np.inf
        for step in range(1, steps + 1):
            far, who = -1.0, 0
            for i in range(m):
                away = 0.0
                for c in range(d):
                    away += (x[member[i], c] - walk[c]) ** 2
                if away > far:
                    far, who = away, member[i]
            if far < least:
                least = far
                center[:] = walk
            if far <= 0.0:
                break
            for c in range(d):
                walk[c] += (x[who, c] - walk[c]) / (step + 1)
    far = 0.0
    for i in range(m):
        away = 0.0
        for c in range(d):
            away += (x[member[i], c] - center[c]) ** 2
        far = max(far, away)
    return math.sqrt(far)


@njit(cache=True, nogil=True)
def enclosing_balls(x, start, member, steps, center, radius):
    """``enclosing_ball`` of every cluster: members of cluster c are member[start[c] : start[c + 1]].

    center  float64[m, d]: out, radius float64[m]: out
    """
    for c in range(start.size - 1):
        if start[c + 1] > start[c]:
            radius[c] = enclosing_ball(x, member[start[c] : start[c + 1]], steps, center[c])


@njit(cache=True, nogil=True)
def disc_holds(x, reach, r, at):
    """Whether a disc of radius reach contains the first of the points and r - 1 others.

    x        float64[m, 2]: the point itself first; all others within 2 * reach of it
    at       float64[2]: out: a center, if there is one
    returns  bool; True may be wrong by a relative 1e-9, False is exact

    If such a disc exists, one has a point on its boundary. So its center is swept along the circle of radius reach
    around every point. O(m^2 log m) time, O(m) space.
    """
    m = x.shape[0]
    at[0], at[1] = x[0, 0], x[0, 1]
    if r <= 1:
        return True
    if m < r:
        return False
    loose = reach * (1 + 1e-9)
    angle = np.empty(2 * m)
    change = np.empty(2 * m, np.int64)
    # The center moves on the circle around q (for q = 0 the full circle). Each other point is within reach on one arc
    # of it. So most points are within reach where most arcs overlap, which a sweep over their ends finds.
    for q in range(m):
        dx, dy = x[0, 0] - x[q, 0], x[0, 1] - x[q, 1]
        apart = math.hypot(dx, dy)
        middle, half = 0.0, math.pi
        if q > 0:
            if apart > 2 * loose:
                continue
            if apart > 0:
                middle, half = math.atan2(dy, dx), math.acos(min(1.0, apart / (2 * loose))) + 1e-9
        always, events = 0, 0
        for u in range(m):
            if u == q:
                always += 1
                continue
            dx, dy = x[u, 0] - x[q, 0], x[u, 1] - x[q, 1]
            apart = math.hypot(dx, dy)
            if apart > 2 * loose:
                continue
            if apart == 0:
                always += 1
                continue
            turn = math.atan2(dy, dx) - middle
            if turn > math.pi:
                turn -= 2 * math.pi
            elif turn < -math.pi:
                turn += 2 * math.pi
            wide = math.acos(min(1.0, apart / (2 * loose))) + 1e-9
            low, high = max(turn - wide, -half), min(turn + wide, half)
            if low > high:
                continue
            angle[events], change[events] = low, 1
            angle[events + 1], change[events + 1] = high, -1
            events += 2
            if half == math.pi and turn + wide > math.pi:  # a full circle: an arc may cross its seam
                angle[events], change[events] = -math.pi, 1
                angle[events + 1], change[events + 1] = turn + wide - 2 * math.pi, -1
                events += 2
            elif half == math.pi and turn - wide < -math.pi:
                angle[events], change[events] = turn - wide + 2 * math.pi, 1
                angle[events + 1], change[events + 1] = math.pi, -1
                events += 2
            if events + 4 > angle.size:
                bigger, other = np.empty(2 * angle.size), np.empty(2 * angle.size, np.int64)
                bigger[:events], other[:events] = angle[:events], change[:events]
                angle, change = bigger, other
        if always >= r:
            at[0], at[1] = x[0, 0], x[0, 1]
            return True
        order = np.argsort(angle[:events])
        inside = always
        e = 0
        while e < events:
            f = e
            while f < events and angle[order[f]] == angle[order[e]]:  # arcs that begin here come before those that end
                if change[order[f]] > 0:
                    inside += 1
                f += 1
            if inside >= r:
                theta = middle + angle[order[e]]
                at[0], at[1] = x[q, 0] + reach * math.cos(theta), x[q, 1] + reach * math.sin(theta)
                return True
            for g in range(e, f):
                if change[order[g]] < 0:
                    inside -= 1
            e = f
    return False
