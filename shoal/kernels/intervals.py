"""Dynamic programs for cuts of an ordered list into intervals of at least k each.

Every kernel also runs uncompiled (``kernel.py_func``) on Python integers, for totals beyond 64 bits.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit


@njit(cache=True, nogil=True)
def cut_within(total, k, high, parent):
    """Whether intervals of k..high exist, and those with the most intervals.

    total    int64[n+1]: total[i] is the weight of the first i values, ascending from 0
    k, high  int64: limits of an interval's weight
    parent   int64[n+1]: out: start of the interval that ends before i, -1 if no interval ends there
    returns  number of intervals, 0 if there are none

    parts[i] = 1 + max parts[j] over total[i] - high <= total[j] <= total[i] - k. Both ends of that window only move
    forward, so a monotone queue gives the maximum. O(n) time and space.
    """
    n = len(total) - 1
    parts = np.zeros(n + 1, dtype=np.int64)
    queue = np.empty(n + 1, dtype=np.int64)
    front, back, coming = 0, 0, 0
    parent[0] = 0
    for i in range(1, n + 1):
        parent[i] = -1
        while total[i] - total[coming] >= k:
            if parent[coming] >= 0:
                while back > front and parts[queue[back - 1]] <= parts[coming]:
                    back -= 1
                queue[back] = coming
                back += 1
            coming += 1
        while back > front and total[i] - total[queue[front]] > high:
            front += 1
        if back > front:
            parent[i] = queue[front]
            parts[i] = parts[queue[front]] + 1
    return parts[n]


@njit(cache=True, nogil=True)
def cut_cheapest(total, low, high, k, by_range, parent):
    """Intervals of at least k with the least sum of squared weights, or of range times weight.

    total    int64[n+1]: total[i] is the weight of the first i values, ascending from 0
    low      int64[n] or float64[n], ascending; the least value of each place, of the type of the costs
    high     as low: the largest value of each place; (high[i - 1] - low[j]) is the range of an interval
    by_range bool: range times weight, else squared weight
    parent   int64[n+1]: out: start of the interval that ends before i, -1 if no interval ends there
    returns  the least cost; parent[n] is -1 if the whole weighs less than k

    best[i] = min best[j] + w(j, i) over total[j] <= total[i] - k. Both w satisfy w(a, c) + w(b, d) <= w(a, d) + w(b, c)
    for a <= b <= c <= d. So when a later j becomes better than an earlier one, it stays better. The queue has
    candidates with the first i for which each is best (found by bisection).
    O(n log n) time, O(n) space.
    """
    n = len(total) - 1
    best = np.zeros(n + 1, low.dtype)

    def cost(j, i):
        weight = total[i] - total[j]
        if by_range:
            return best[j] + (high[i - 1] - low[j]) * weight
        return best[j] + weight * weight

    queue = np.empty(n + 1, dtype=np.int64)
    since = np.empty(n + 1, dtype=np.int64)
    front, back, coming = 0, 0, 0
    parent[0] = 0
    # Candidates j for which the interval j..i has reached k enter the queue; the front is the cheapest for this i.
    for i in range(1, n + 1):
        parent[i] = -1
        # A new candidate removes those at the back that are worse at the index from which they would be best. Compared
        # with the last remaining one, it is better from an index that bisection finds, or never.
        while total[i] - total[coming] >= k:
            j = coming
            coming += 1
            if parent[j] < 0:
                continue
            wins = i
            while back > front:
                other = queue[back - 1]
                begin = max(since[back - 1], i)
                if cost(j, begin) <= cost(other, begin):
                    back -= 1
                    continue
                lost, wins = begin, n + 1  # j is worse at lost, and better at wins, if that is an index
                while wins - lost > 1:
                    middle = (lost + wins) // 2
                    mine = cost(j, middle)
                    if mine <= cost(other, middle):
                        wins = middle
                    else:
                        lost = middle
                break
            if wins <= n:
                queue[back] = j
                since[back] = wins
                back += 1
        while back - front > 1 and since[front + 1] <= i:
            front += 1
        if back > front:
            parent[i] = queue[front]
            best[i] = cost(queue[front], i)
    return best[n]
