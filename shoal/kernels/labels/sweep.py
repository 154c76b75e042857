"""Fold and Spread for many k at once, the largest load only."""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit
from shoal.kernels.labels.bins import pour


@njit(cache=True, nogil=True)
def overfull(sizes, ks, bins, fold, spread):
    """The largest bin of Fold and of Spread for every k.

    sizes    int64[n]  in the order to pack, all below the least k
    ks       int64[q]  at most the total
    bins     int64[q]  out: bins closed
    fold     int64[q]  out: largest load when the leftover joins the least loaded bin as a whole
    spread   int64[q]  out: largest load when its items go one by one

    Bins are intervals of the prefix sums, found by bisection: O(bins log n + leftover log bins) for each k.
    """
    n = len(sizes)
    total = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        total[i + 1] = total[i] + sizes[i]
    level = np.empty(n, dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    for q in range(len(ks)):
        begin, m = 0, 0
        while True:
            end = np.searchsorted(total, total[begin] + ks[q])
            if end > n:
                break
            level[m] = total[end] - total[begin]
            m += 1
            begin = end
        largest = level[:m].max()
        bins[q] = m
        fold[q] = max(largest, level[:m].min() + total[n] - total[begin])
        placed = pour(sizes[begin:], level[:m], place, largest)
        for i in range(begin + placed, n):
            level[(i - begin - placed) % m] += sizes[i]
        spread[q] = level[:m].max()
