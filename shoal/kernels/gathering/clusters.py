"""Loops of gathering: disjoint cores, clusters for the remote points, deficits filled along paths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.gathering.neighbors import distance


@njit(cache=True, nogil=True)
def take_disjoint(order, core, owner, center, opened):
    """Open a cluster at every candidate whose whole core is still free.

    order   int64[c]     candidates, most wanted first
    core    int64[n, s]  what a candidate's cluster starts with, -1 after the last; first of all -1: no candidate
    owner   int64[n]     in and out: cluster of a point, -1 while free
    center  int64[n]     in and out: the candidate behind each open cluster
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


class Near(NamedTuple):
    """What is known of every point.

    near      int64[n, r]   each point's nearest, far float64[n, r] their distances: the centers that can serve it
    rho, tau  float64[n]    distance of the r-th nearest; least max(distance to v, rho of v)
    """

    near: np.ndarray
    far: np.ndarray
    rho: np.ndarray
    tau: np.ndarray


class Longer(NamedTuple):
    """Longer lists of the nearest, of some centers.

    line      int64[n]      which list belongs to a center, -1 when it has none
    start     int64[l]      the list of line i is near[start[i] : stop[i]], nearest first
    near      int64[*], far float64[*]
    """

    line: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    near: np.ndarray
    far: np.ndarray


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
def open_remote(points, lists, order, r, reach, owner, center, wanted, opened):
    """Clusters of radius at most reach for points that few centers can serve, most remote first.

    points, lists  ``Near``, ``Longer``
    order     int64[c]      the points to serve, by falling tau
    owner     int64[n]      in and out: cluster of a point, -1 while free
    center    int64[n]      in and out: the point at the center of each cluster
    wanted    bool[l]       out: lists that ended too early, of points that no center could serve
    opened    clusters open at the start; returns clusters open at the end

    Among the centers of a point the one with the most remote free points within reach opens, ties by the smaller
    radius; it takes its r nearest free points, the point itself among them.  O(c r w) time for lists of length w.
    """
    served = np.zeros(owner.size, np.bool_)
    short = np.empty(points.near.shape[1], np.int64)
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
    """Let points change to their nearest center while the cluster they leave keeps r points.

    order    int64[c]  the points that may change, those that gain most first
    nearest  int64[n]  the cluster of each point's nearest center
    owner    int64[n]  in and out
    size     int64[m]  in and out

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
    """Give every center r points within its reach, moving points along shortest chains of centers.

    start   int64[m + 1]  the points within reach of center c are member[start[c] : start[c + 1]]
    member  int64[*]
    owner   int64[n]      in and out: the center each point is with, always one that reaches it
    size    int64[m]      in and out: points per center
    returns (centers still short of r, chains used)

    A chain ends at a center with more than r points.  That none exists means that the bipartite flow of r units from
    every center is not saturated.  O((chains + 1) |member|) time.
    """
    m = size.size
    come_from = np.empty(m, np.int64)  # the center whose reach found this one
    by = np.empty(m, np.int64)  # the point that would move
    queue = np.empty(m, np.int64)
    chains = 0
    for c in range(m):
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
    """The nearest points of each row that make a cluster diverse enough, taken greedily.

    near      int64[m, w]     nearest points, -1 after the last; far float64[m, w] their distances
    codes     int64[n, s]     sensitive values
    cap       int64[s]        a value may be taken at most this often
    distinct  int64[s]        this many different values must be taken
    size      points to take
    core      int64[m, size]  out: the points taken, -1 throughout where the list is too short
    core_far  float64[m, size] out
    returns   bool[m]         whether the core is complete

    A point is passed over when its value has reached the cap, or when the places left are needed for new values.
    With one sensitive column no complete core has a smaller radius.  O(m w s size) time.
    """
    m, w = near.shape
    s = codes.shape[1]
    done = np.zeros(m, np.bool_)
    for i in range(m):
        taken = 0
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
    """Move every center to the member with the smallest largest distance, where that is an improvement.

    coded   neighbors.Records
    start   int64[m + 1], member int64[*]: the points of cluster c are member[start[c] : start[c + 1]]
    center  int64[m]    in and out
    radius  float64[m]  out

    A candidate is dropped at the first member farther than the best radius so far, and the members that dropped
    earlier ones are asked first: O(m^2) per cluster at worst, near O(m) as a rule.
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
