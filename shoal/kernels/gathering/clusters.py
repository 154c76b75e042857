"""Loops of gathering: distances of coded records, lists of nearest records, and clusters made from them.

Equal records share the work of a list. Clusters open at disjoint cores, and at points that few centers can serve. If a
cluster has too few points, it gets points along shortest chains of other clusters.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit

PLAIN, MIXED, TABLE = 0, 1, 2
NUMBER, CATEGORY, TREE, SPHERE, PLANE, SKIP, CYCLE = 0, 1, 2, 3, 4, 5, 6


class Records(NamedTuple):
    """Records in the form of the kernels.

    form      PLAIN: Euclidean on all columns; MIXED: by kind; TABLE: values is the matrix of distances
    norm      2, 1, or 0 for the largest
    values    float64[n, c]: numbers divided by scale and multiplied by weight; codes as floats
    kind      int64[c]: NUMBER, CATEGORY, TREE, SPHERE (with the next two columns), PLANE (with the next), SKIP, CYCLE
              (from 0 to the length of its circle)
    weight    float64[c]: CATEGORY: distance of different values; SPHERE: length of one radian; CYCLE: length of the
              circle
    tree      int64[*]: the levels of all hierarchies, concatenated, row by row
    tree_at   int64[c]: where a column's levels start
    depth     int64[c]: levels per value
    heights   float64[*]: distance by the number of levels on which two values differ
    height_at int64[c]: where a column's heights start
    """

    form: int
    norm: int
    values: np.ndarray
    kind: np.ndarray
    weight: np.ndarray
    tree: np.ndarray
    tree_at: np.ndarray
    depth: np.ndarray
    heights: np.ndarray
    height_at: np.ndarray


@njit(**LEAN_INNER)
def distance(s, i, j):
    """The distance of records i and j; exactly symmetric in floating point. O(c)."""
    x = s.values
    if s.form == TABLE:
        return x[i, j]
    total = 0.0
    if s.form == PLAIN:
        for c in range(x.shape[1]):
            d = x[i, c] - x[j, c]
            total += d * d
        return math.sqrt(total)
    for c in range(x.shape[1]):
        kind = s.kind[c]
        if kind == NUMBER:
            d = abs(x[i, c] - x[j, c])
        elif kind == CATEGORY:
            d = s.weight[c] if x[i, c] != x[j, c] else 0.0
        elif kind == CYCLE:
            d = abs(x[i, c] - x[j, c])
            d = min(d, s.weight[c] - d)
        elif kind == TREE:
            a = s.tree_at[c] + s.depth[c] * np.int64(x[i, c])
            b = s.tree_at[c] + s.depth[c] * np.int64(x[j, c])
            level = 0
            while level < s.depth[c] and s.tree[a + level] != s.tree[b + level]:
                level += 1
            d = s.heights[s.height_at[c] + level]
        elif kind == SPHERE:
            u, v, w = x[i, c] - x[j, c], x[i, c + 1] - x[j, c + 1], x[i, c + 2] - x[j, c + 2]
            d = s.weight[c] * 2.0 * math.asin(min(1.0, 0.5 * math.sqrt(u * u + v * v + w * w)))
        elif kind == PLANE:
            u, v = x[i, c] - x[j, c], x[i, c + 1] - x[j, c + 1]
            d = math.sqrt(u * u + v * v)
        else:
            continue
        if s.norm == 2:
            total += d * d
        elif s.norm == 1:
            total += d
        elif d > total:
            total = d
    return math.sqrt(total) if s.norm == 2 else total


@njit(cache=True, nogil=True)
def many_distances(s, a, b):
    """float64[m]: distance of records a[i] and b[i]."""
    out = np.empty(a.size)
    for i in range(a.size):
        out[i] = distance(s, a[i], b[i])
    return out


@njit(**INNER)
def _sort(key, size, order, other):
    """Sort order int64[>= size] stably by key, without numba's own sort, which takes 2 s to compile.

    O(size log size).
    """
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            a, b = low, middle
            for e in range(low, high):
                if a < middle and (b >= high or key[order[a]] <= key[order[b]]):
                    other[e] = order[a]
                    a += 1
                else:
                    other[e] = order[b]
                    b += 1
        for e in range(size):
            order[e] = other[e]
        width *= 2


class PlacesNearby(NamedTuple):
    """The nearest places, in lists that several records can share.

    which    int64[m]: the list for each requested record
    places   int64[l, q]: nearest first by a lower bound of the true distance; -1 ends
    reached  float64[l]: no other place is nearer than this (inf if there is no other)
    """

    which: np.ndarray
    places: np.ndarray
    reached: np.ndarray


class Copies(NamedTuple):
    """The equal records of every place.

    start     int64[p + 1]: those of place i are record[start[i] : start[i + 1]]
    record    int64[*]
    position  int64[n]: index of a record among them, -1 if it isn't there
    """

    start: np.ndarray
    record: np.ndarray
    position: np.ndarray


@njit(cache=True, nogil=True)
def nearest_records(s, rows, candidates, copies, k, index, found):
    """Nearest records from nearest places: sorted by true distance, with all equal records.

    s         ``Records``;  candidates: ``PlacesNearby``;  copies: ``Copies``
    rows      int64[m]: the requested records
    k         number of neighbors
    index     int64[m, k]: out: records, nearest first, the record itself and its equals before others; -1: none
    found     float64[m, k]: out: their distances, inf for none
    returns   bool[m]: whether the list is certainly complete

    O(m (q log q + k)) time, O(q) space.
    """
    which, places, reached = candidates
    start, record, position = copies
    m, q = rows.size, places.shape[1]
    sure = np.empty(m, np.bool_)
    near, order, other = np.empty(q), np.empty(q, np.int64), np.empty(q, np.int64)
    # Candidates are in the order of approximate distances. If that order is wrong, they are sorted by true distance.
    # Each place then contributes its equal records, beginning with the requested one.
    for i in range(m):
        me, line = rows[i], which[i]
        size, rising = 0, True
        while size < q and places[line, size] >= 0:
            near[size] = distance(s, me, record[start[places[line, size]]])
            rising = rising and (size == 0 or near[size - 1] <= near[size])
            size += 1
        for e in range(size):
            order[e] = e
        if not rising:
            _sort(near, size, order, other)
        filled = 0
        for e in range(size):
            if filled == k:
                break
            o = order[e]
            first, last = start[places[line, o]], start[places[line, o] + 1]
            at = position[me]
            if at < first or at >= last:
                at = first
            for step in range(min(last - first, k - filled)):
                c = at + step
                if c >= last:
                    c -= last - first
                index[i, filled] = record[c]
                found[i, filled] = near[o]
                filled += 1
        for e in range(filled, k):
            index[i, e] = -1
            found[i, e] = np.inf
        sure[i] = reached[line] == np.inf or (filled == k and found[i, k - 1] <= reached[line])
    return sure


@njit(cache=True, nogil=True)
def take_disjoint(order, core, owner, center, opened):
    """Open a cluster at every candidate whose complete core is still free.

    order   int64[c]: candidates, most wanted first
    core    int64[n, s]: the initial points of a candidate's cluster, -1 after the last; -1 at the beginning: no
            candidate
    owner   int64[n]: in and out: cluster of a point, -1 while free
    center  int64[n]: in and out: the candidate of each open cluster
    opened  number of clusters open at the start
    returns number of clusters open at the end

    O(c s) time.
    """
    for v in order:
        if core[v, 0] < 0:
            continue
        free = True
        for u in core[v]:
            if u < 0:
                break
            if owner[u] >= 0:
                free = False
                break
        if free:
            for u in core[v]:
                if u < 0:
                    break
                owner[u] = opened
            center[opened] = v
            opened += 1
    return opened


class NearestPoints(NamedTuple):
    """The nearest points of every point.

    near      int64[n, r]: each point's nearest, far float64[n, r]: their distances. These are the centers that can
              serve it
    rho, tau  float64[n]: distance of the r-th nearest; least max(distance to v, rho of v)
    """

    near: np.ndarray
    far: np.ndarray
    rho: np.ndarray
    tau: np.ndarray


class Longer(NamedTuple):
    """Longer lists of nearest points, for some centers.

    line      int64[n]: the list of a center, -1 if it has none
    start     int64[l]: list i is near[start[i] : stop[i]], nearest first
    near      int64[*], far float64[*]
    """

    line: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    near: np.ndarray
    far: np.ndarray


class Opened(NamedTuple):
    """The open clusters: owner int64[n] of each point, -1 while it is free; center int64[n] of each cluster."""

    owner: np.ndarray
    center: np.ndarray


@njit(**INNER)
def _served(points, lists, p, v, r, reach, owner):
    """(free points within reach, remote ones among them, radius, whether the list ended) of a cluster at v for p."""
    at = lists.line[v]
    free, hard, radius, seen, ended = 0, 0, 0.0, False, True
    for w in range(lists.start[at], lists.stop[at]):
        if lists.far[w] > reach:
            ended = False
            break
        u = lists.near[w]
        if owner[u] < 0:
            free += 1
            seen = seen or u == p
            if free < r or (free == r and seen):
                radius = max(radius, lists.far[w])
            if points.tau[u] > 0.7 * reach:
                hard += 1
    return free if seen else free + 1, hard, radius, ended


@njit(cache=True, nogil=True)
def open_remote(points, lists, order, r, reach, clusters, wanted, opened):
    """Open clusters of radius at most reach for points that few centers can serve, most remote first.

    points, lists  ``NearestPoints``, ``Longer``
    order     int64[c]: the points to serve, by descending tau
    clusters  ``Opened``, in and out
    wanted    bool[l]: out: lists that ended too early, of points that no center could serve
    opened    clusters open at the start; returns clusters open at the end

    Of a point's centers, the one with the most remote free points within reach opens; ties go to the smaller radius. It
    takes its r nearest free points, including the point itself. O(c r w) time for lists of length w.
    """
    owner, center = clusters
    served = np.zeros(owner.size, np.bool_)
    short = np.empty(points.near.shape[1], np.int64)
    # Points within reach of an opened center count as served. A point without any center requests longer lists for
    # those centers that ran out of points.
    for p in order:
        if owner[p] >= 0 or served[p]:
            continue
        best, best_hard, best_radius, many = -1, -1, np.inf, 0
        for e in range(points.near.shape[1]):
            v = points.near[p, e]
            if v < 0 or points.far[p, e] > reach:
                break
            if lists.line[v] < 0 or points.rho[v] > reach:
                continue
            free, hard, radius, ended = _served(points, lists, p, v, r, reach, owner)
            if free < r:
                if ended:
                    short[many] = lists.line[v]
                    many += 1
                continue
            radius = max(radius, points.far[p, e])
            if hard > best_hard or (hard == best_hard and radius < best_radius):
                best, best_hard, best_radius = v, hard, radius
        if best < 0:
            for e in range(many):
                wanted[short[e]] = True
            continue
        owner[p] = opened
        taken, at = 1, lists.line[best]
        for w in range(lists.start[at], lists.stop[at]):
            if lists.far[w] > reach:
                break
            u = lists.near[w]
            served[u] = True
            if taken < r and owner[u] < 0:
                owner[u] = opened
                taken += 1
        center[opened] = best
        opened += 1
    return opened


@njit(cache=True, nogil=True)
def prefer_nearest(order, nearest, owner, size, r):
    """Move points to their nearest center while the cluster that they leave keeps r points.

    order    int64[c]: the points that may move, those with the largest gain first
    nearest  int64[n]: the cluster of each point's nearest center
    owner    int64[n]: in and out
    size     int64[m]: in and out

    O(c) time.
    """
    for p in order:
        a, b = owner[p], nearest[p]
        if a != b and size[a] > r:
            owner[p] = b
            size[a] -= 1
            size[b] += 1


@njit(cache=True, nogil=True)
def fill_deficits(start, member, owner, size, r):
    """Give every center r points within its reach, by moving points along shortest chains of centers.

    start   int64[m + 1]: the points within reach of center c are member[start[c] : start[c + 1]]
    member  int64[*]
    owner   int64[n]: in and out: the center of each point, always one that reaches it
    size    int64[m]: in and out: points per center
    returns (number of centers still short of r, number of chains)

    A chain ends at a center with more than r points. If no chain exists, the bipartite flow of r units from every
    center can't be saturated. O((chains + 1) |member|) time.
    """
    m = size.size
    come_from = np.empty(m, np.int64)  # the center from which this one was reached
    by = np.empty(m, np.int64)  # the point that would move
    queue = np.empty(m, np.int64)
    chains = 0
    for c in range(m):
        # Breadth-first search from the center that lacks points to one that has too many. Then each point on the chain
        # moves one center on.
        while size[c] < r:
            come_from[:] = -1
            come_from[c] = c
            queue[0] = c
            head, tail, rich = 0, 1, -1
            while head < tail and rich < 0:
                a = queue[head]
                head += 1
                for e in range(start[a], start[a + 1]):
                    b = owner[member[e]]
                    if b >= 0 and come_from[b] < 0:
                        come_from[b], by[b] = a, member[e]
                        if size[b] > r:
                            rich = b
                            break
                        queue[tail] = b
                        tail += 1
            if rich < 0:
                break
            size[rich] -= 1
            while rich != c:
                owner[by[rich]] = come_from[rich]
                rich = come_from[rich]
            size[c] += 1
            chains += 1
    return int((size < r).sum()), chains


@njit(cache=True, nogil=True)
def diverse_cores(near, far, codes, cap, distinct, size, core, core_far):
    """The nearest points of each row that form a sufficiently diverse cluster, selected greedily.

    near      int64[m, w]: nearest points, -1 after the last; far float64[m, w]: their distances
    codes     int64[n, s]: sensitive values
    cap       int64[s]: most selected points with one value
    distinct  int64[s]: least number of different values
    size      number of points to select
    core      int64[m, size]: out: the selected points, all -1 if the list is too short
    core_far  float64[m, size]: out
    returns   bool[m]: whether the core is complete

    A point is skipped if its value has reached the cap, or if the remaining positions are needed for new values. With
    one sensitive column, no complete core has a smaller radius. O(m w s size) time.
    """
    m, w = near.shape
    s = codes.shape[1]
    done = np.zeros(m, np.bool_)
    for i in range(m):
        taken = 0
        # In each sensitive column, count how often the point's value and how many different values were selected.
        for e in range(w):
            u = near[i, e]
            if u < 0 or taken == size:
                break
            good = True
            for c in range(s):
                same, kinds = 0, 0
                for a in range(taken):
                    new = True
                    for b in range(a):
                        if codes[core[i, b], c] == codes[core[i, a], c]:
                            new = False
                            break
                    kinds += new
                    same += codes[core[i, a], c] == codes[u, c]
                if same >= cap[c] or (same > 0 and distinct[c] - kinds >= size - taken):
                    good = False
                    break
            if good:
                core[i, taken], core_far[i, taken] = u, far[i, e]
                taken += 1
        done[i] = taken == size
        if not done[i]:
            core[i, :] = -1
            core_far[i, :] = np.inf
    return done


@njit(cache=True, nogil=True)
def one_centers(coded, start, member, center, radius):
    """Move every center to the member with the smallest largest distance, if that is an improvement.

    coded   ``Records``
    start   int64[m + 1], member int64[*]: the points of cluster c are member[start[c] : start[c + 1]]
    center  int64[m]: in and out
    radius  float64[m]: out

    A candidate is dropped at the first member farther than the best radius so far. Members that caused earlier drops
    are checked first: O(m^2) per cluster at worst, usually close to O(m).
    """
    for c in range(start.size - 1):
        points = member[start[c] : start[c + 1]].copy()
        best = 0.0
        for u in points:
            best = max(best, distance(coded, center[c], u))
        for e in range(points.size):
            v = member[start[c] + e]
            far = 0.0
            for k in range(points.size):
                d = distance(coded, v, points[k])
                if d > far:
                    far = d
                    if far >= best:
                        points[k], points[k // 2] = points[k // 2], points[k]
                        break
            if far < best:
                best = far
                center[c] = v
        radius[c] = best
