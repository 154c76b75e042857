"""Connected sets that do not meet the thresholds, and those that just do; only around vertices where they are few."""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit
from shoal.kernels.regions.areas import eligible
from shoal.kernels.regions.frontier import Frontier, fits, given_back, grown, opened


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
    taken = np.ones(n, np.bool_)  # or later than the last vertex, or not listed
    front = Frontier(
        np.empty(64 * n + 64, np.int64), np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
        np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64),
    )  # fmt: skip
    chosen = np.empty(n + 1, np.int64)
    total = np.zeros((n + 2, width), np.int64)
    for root in range(n):
        found_before = found
        used_before = used
        level = 0
        opened(front, root)
        while level >= 0:
            if not listed[root] or front.end[level] == front.begin[level]:
                level -= 1  # nothing left to add: give back the marks, then drop the last vertex
                if level >= 0:
                    given_back(front, level + 1, taken)
                continue
            front.end[level] -= 1
            u = front.place[front.end[level]]
            if found - found_before >= few or used + level + 1 > room or not fits(indptr, front, level, u):
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
            grown(indptr, indices, front, level, u, taken)
            level += 1
        taken[root] = not listed[root]
        if not listed[root]:
            found = found_before
            used = used_before
    return members[:used], ends[:found], full[:found], listed
