"""Groups of few rows whose values come near a table's shares, taken out of a class one by one."""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit

INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
CLOSE = 1e-9
ROOM = 0.7  # part of t that a group may use to follow its class's own shares; the rest is for rounding


@njit(**INNER)
def _quota(held, share, t, k, most, quota):
    """Rows of each value for a group within t of the shares, of k to ``most`` rows; their number, 0 when none is found.

    held int64[v] rows of the class, share float64[v], quota int64[v] out.  The group grows row by row towards shares
    between the class's own and the table's, each time by the value that lacks most.  O(most * values).
    """
    total, present = np.int64(0), 0.0
    for v in range(held.size):
        quota[v] = 0
        total += held[v]
        if held[v] > 0:
            present += share[v]
    if total < k or present < 1.0 - t - CLOSE:
        return 0
    apart = 0.0
    for v in range(held.size):
        apart += max(0.0, held[v] / total - share[v])
    own = min(1.0, ROOM * t / max(apart, CLOSE))  # the part of the class's own shares that a group is given
    for n in range(1, min(most, total) + 1):
        best, highest = -1, -np.inf
        for v in range(held.size):
            if held[v] > quota[v]:
                lack = n * (own * held[v] / total + (1.0 - own) * share[v]) - quota[v]
                if lack > highest:
                    best, highest = v, lack
        quota[best] += 1
        if n >= k:
            common = 0.0
            for v in range(held.size):
                common += min(quota[v] / n, share[v])
            if 1.0 - common <= t + CLOSE:
                return n
    return 0


@njit(cache=True, nogil=True)
def deal(cells, start, value, left, share, t, k, most, group, cell_out, group_out, count_out):
    """Groups taken out of every class for as long as one is found; returns (next group, triples written).

    cells int64[a], start int64[c + 1]  the cells of class c are cells[start[c] : start[c + 1]]
    value int64[m], left int64[m]       value of each cell, rows not yet in a group; updated
    share float64[v]  the table's; t, k, most  as for one group; group int64 number of the first
    cell_out, group_out, count_out int64[>= rows left of these cells]  triples
    O(groups * (most * values + cells of the class)).
    """
    held, quota = np.zeros(share.size, np.int64), np.empty(share.size, np.int64)
    written = 0
    for c in range(start.size - 1):
        held[:] = 0
        for i in range(start[c], start[c + 1]):
            held[value[cells[i]]] += left[cells[i]]
        while _quota(held, share, t, k, most, quota) > 0:
            for v in range(share.size):
                held[v] -= quota[v]
            for i in range(start[c], start[c + 1]):
                x = cells[i]
                give = min(left[x], quota[value[x]])
                if give > 0:
                    quota[value[x]] -= give
                    left[x] -= give
                    cell_out[written], group_out[written], count_out[written] = x, group, give
                    written += 1
            group += 1
    return group, written
