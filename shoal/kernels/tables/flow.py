"""Minimum-cost flow by cost scaling, push and relabel (Goldberg, Tarjan 1990), in whole numbers."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def ship(start, to, left, price, back, excess, potential, error, shrink):
    """Carry every excess to the deficits; the cost is at most the number of nodes above the least.

    start int64[n + 1]  the arcs of node u, reverse ones among them, are start[u] .. start[u + 1] - 1
    to int32[a], price int64[a], back int32[a]  head, cost and reverse arc of each; a reverse arc has the cost negated
    left int64[a]       in and out: what an arc can still take; reverse arcs take 0 at first
    excess int64[n]     in and out: what is to leave a node, below 0 what is to arrive; sums to 0; zeros at the end
    potential int64[n]  in and out
    error, shrink int64 first error (the largest cost), and what it is divided by from scale to scale, until 1

    A flow that carries everything must exist.  O(n^2 a log(error)) at worst, nearly linear as a rule.
    """
    n = start.size - 1
    queue, waiting = np.empty(n + 1, np.int32), np.zeros(n, np.bool_)
    at = np.empty(n, np.int64)
    while True:
        for u in range(n):
            for e in range(start[u], start[u + 1]):
                if left[e] > 0 and price[e] + potential[u] - potential[to[e]] < 0:
                    excess[u] -= left[e]
                    excess[to[e]] += left[e]
                    left[back[e]] += left[e]
                    left[e] = 0
        first, end = 0, 0
        for u in range(n):
            at[u] = start[u]
            waiting[u] = excess[u] > 0
            if waiting[u]:
                queue[end] = u
                end += 1
        while first != end:
            u = queue[first]
            first = first + 1 if first < n else 0
            waiting[u] = False
            while excess[u] > 0:
                if at[u] == start[u + 1]:
                    best = -(np.int64(1) << 60)
                    for e in range(start[u], start[u + 1]):
                        if left[e] > 0:
                            best = max(best, potential[to[e]] - price[e])
                    potential[u] = best - error
                    at[u] = start[u]
                e = at[u]
                v = to[e]
                if left[e] > 0 and price[e] + potential[u] - potential[v] < 0:
                    some = min(excess[u], left[e])
                    excess[u] -= some
                    left[e] -= some
                    left[back[e]] += some
                    excess[v] += some
                    if excess[v] > 0 and not waiting[v]:
                        waiting[v] = True
                        queue[end] = v
                        end = end + 1 if end < n else 0
                    if excess[u] == 0:
                        break
                at[u] += 1
        if error <= 1:
            return
        error = max(error // shrink, 1)
