"""Connected sets that do not meet the thresholds, and those that just do; only around vertices where they are few."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels.regions.areas import eligible


@njit(cache=True, nogil=True)
def light_sets(indptr, indices, weights, need, few, room):
    """Every connected set of listed vertices up to the one vertex by which it meets the thresholds, each once.

    indptr, indices  the graph;  weights int64[n, t], need int64[t]
    few      int64    a vertex that is the last of more sets than this, among the listed ones before it, is not listed
    room     int64    no more members are written than this; from there on nothing is listed
    returns  members int64[], ends int64[]  the sets, one after the other
             full bool[]                    whether the set meets the thresholds
             listed bool[n]

    A set is found from its last vertex, so that number the vertices by falling weight.  A connected set of listed
    vertices that meets the thresholds contains a full one, and one that does not is there itself.
    O(n few * depth * degree) time, O(n few * depth) space.
    """
    n, width = weights.shape
    members = np.empty(room, np.int64)
    ends = np.empty(room, np.int64)
    full = np.empty(room, np.bool_)
    found = 0
    used = 0
    listed = np.ones(n, np.bool_)
    seen = np.zeros(n, np.bool_)
    frontier = np.empty(64 * n + 64, np.int64)
    begin = np.zeros(n + 2, np.int64)  # the frontier of a level is frontier[begin[level]:end[level]]
    end = np.zeros(n + 2, np.int64)
    stop = np.zeros(n + 2, np.int64)  # its end when it was made: what lies before still has to be given back
    fresh = np.zeros(n + 2, np.int64)  # how many of it, at its beginning, this level marked
    chosen = np.empty(n + 1, np.int64)
    total = np.zeros((n + 2, width), np.int64)
    for root in range(n):
        found_before = found
        used_before = used
        level = 0
        begin[0] = 0
        end[0] = 1
        stop[0] = 1
        frontier[0] = root
        seen[root] = True
        while level >= 0:
            if not listed[root] or end[level] == begin[level]:
                level -= 1  # nothing left to add: give back the marks, then drop the last vertex
                if level >= 0:
                    for i in range(fresh[level + 1]):
                        seen[frontier[begin[level + 1] + i]] = False
                continue
            end[level] -= 1
            u = frontier[end[level]]
            start = stop[level]
            more = (end[level] - begin[level]) + indptr[u + 1] - indptr[u]
            if found - found_before >= few or used + level + 1 > room or start + more > frontier.shape[0]:
                listed[root] = False
                continue
            chosen[level] = u
            for j in range(width):
                total[level + 1, j] = total[level, j] + weights[u, j]
            for i in range(level + 1):
                members[used + i] = chosen[i]
            used += level + 1
            ends[found] = used
            full[found] = eligible(total[level + 1], need, 1)
            found += 1
            if full[found - 1]:
                continue
            # the child's frontier: its own new neighbors first (so that they can be given back), then what is left
            k = start
            for e in range(indptr[u], indptr[u + 1]):
                x = indices[e]
                if x < root and listed[x] and not seen[x]:
                    seen[x] = True
                    frontier[k] = x
                    k += 1
            fresh[level + 1] = k - start
            for i in range(begin[level], end[level]):
                frontier[k] = frontier[i]
                k += 1
            begin[level + 1] = start
            end[level + 1] = k
            stop[level + 1] = k
            level += 1
        seen[root] = False
        if not listed[root]:
            found = found_before
            used = used_before
    return members[:used], ends[:found], full[:found], listed
