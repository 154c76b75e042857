"""A kd-tree over millions of points by weighted selection: no sorting, points permuted in place.

Every cut lies between two distinct coordinates, so coincident points stay together.  The weighted
median v of a cell decides whether the cell can be cut on an axis at all: of the cuts below v the one
right below leaves the most on its left, of those above v the one right above the most on its right,
and the other side holds at least half the weight.  If neither leaves k on both sides, no cut does.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, njit

WIDEST, MEDIAN, MONDRIAN, PROPORTIONAL = 0, 1, 2, 3
KM_PER_DEGREE = 111.1950802335329  # of a great circle on a sphere of radius 6371.0088 km


@njit(**INNER)
def _swap(x, y, w, ids, i, j):
    x[i], x[j] = x[j], x[i]
    y[i], y[j] = y[j], y[i]
    w[i], w[j] = w[j], w[i]
    ids[i], ids[j] = ids[j], ids[i]


@njit(**INNER)
def _weighted_select(c, x, y, w, ids, lo, hi, target, seed):
    """Permute [lo, hi) by c into < v, = v, > v, where v is the first value whose cumulated weight reaches target.

    c is x or y itself; returns i, j with = v in [i, j), the weight below v and the weight of v.
    Expected time proportional to hi - lo.
    """
    a, b = lo, hi
    before = np.int64(0)
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) & 0x7FFFFFFFFFFFFFFF
        p = c[a + (seed >> 20) % (b - a)]
        q = c[a + (b - a) // 2]
        r = c[b - 1]
        v = max(min(p, q), min(max(p, q), r))
        lt, i, gt = a, a, b
        below = np.int64(0)
        equal = np.int64(0)
        while i < gt:
            if c[i] < v:
                below += w[i]
                if i != lt:
                    _swap(x, y, w, ids, i, lt)
                lt += 1
                i += 1
            elif c[i] > v:
                gt -= 1
                _swap(x, y, w, ids, i, gt)
            else:
                equal += w[i]
                i += 1
        if before + below >= target and lt > a:
            b = lt
        elif before + below + equal >= target or gt == b:
            return lt, gt, before + below, equal
        else:
            before += below + equal
            a = gt


@njit(**INNER)
def _nearest_cut(c, x, y, w, ids, lo, hi, total, k, target, rule):
    """The feasible cut on one axis nearest the target weight: position (-1: none) and the coordinates next to it."""
    i, j, below, equal = _weighted_select(c, x, y, w, ids, lo, hi, target, np.int64(hi * 31 + lo))
    at = -1
    if rule == MONDRIAN:
        if j < hi and below + equal >= k and total - below - equal >= k:
            at = j
    else:
        miss = np.int64(-1)
        if i > lo and below >= k and total - below >= k:
            at, miss = i, abs(below - target)
        if j < hi and below + equal >= k and total - below - equal >= k:
            other = abs(below + equal - target)
            if miss < 0 or other < miss:
                at = j
    if at < 0:
        return -1, 0.0, 0.0
    low, high = c[lo], c[at]
    for t in range(lo, at):
        low = max(low, c[t])
    for t in range(at, hi):
        high = min(high, c[t])
    return at, low, high


@njit(cache=True, nogil=True)
def select_tree(x, y, w, k, rule, geographic):
    """Cut until no cell can be cut.

    x, y         float64[n]  coordinates, permuted in place; cells end as slices
    w            int64[n]    weights, permuted along
    k            int64       least weight of a cell
    rule         int64       WIDEST: wider side first, then the other, nearest the median; MEDIAN: the better balanced
                             of both sides, the wider if within a record; MONDRIAN: wider side first, only the cut right
                             above the median; PROPORTIONAL: as WIDEST, towards a whole number of k on both sides
    geographic   bool        x, y are degrees: widths count cos(latitude)
    returns      ids int64[n] where each point came from, starts int64[m + 1] the cells' slices,
                 edges int64[m, 4] cuts at x low, y low, x high, y high (-1: unbounded),
                 axis int8[c], below float64[c], above float64[c] the coordinates next to each cut

    O(n log(n / k)) expected time, O(n) space.
    """
    n = x.size
    ids = np.arange(n)
    total = np.int64(0)
    for i in range(n):
        total += w[i]
    most = min(n, total // k) + 1
    starts = np.zeros(most + 1, np.int64)
    edges = np.empty((most, 4), np.int64)
    axis = np.empty(most, np.int8)
    below = np.empty(most, np.float64)
    above = np.empty(most, np.float64)
    m = cuts = 0
    depth = 64 + 2 * int(np.log2(n + 1))
    stack = np.empty((max(depth, 256), 7), np.int64)
    stack[0] = np.array([0, n, total, -1, -1, -1, -1])
    sp = 1
    while sp:
        sp -= 1
        lo, hi, weight = stack[sp, 0], stack[sp, 1], stack[sp, 2]
        e0, e1, e2, e3 = stack[sp, 3], stack[sp, 4], stack[sp, 5], stack[sp, 6]
        at = -1
        cut_axis = 0
        low = high = 0.0
        if weight >= 2 * k:
            target = (weight + 1) // 2
            if rule == PROPORTIONAL:
                target = max(k * (weight // k // 2), k)
            x0 = x1 = x[lo]
            y0 = y1 = y[lo]
            for t in range(lo + 1, hi):
                x0 = min(x0, x[t])
                x1 = max(x1, x[t])
                y0 = min(y0, y[t])
                y1 = max(y1, y[t])
            wide = x1 - x0
            if geographic:
                wide *= np.cos(np.deg2rad((y0 + y1) / 2))
            first = 0 if wide >= y1 - y0 else 1
            missed = np.int64(-1)  # imbalance of the wider side's cut, under MEDIAN
            for attempt in range(3):
                cut_axis = first if attempt != 1 else 1 - first
                c = x if cut_axis == 0 else y
                at, low, high = _nearest_cut(c, x, y, w, ids, lo, hi, weight, k, target, rule)
                if at < 0 and rule == PROPORTIONAL:
                    at, low, high = _nearest_cut(c, x, y, w, ids, lo, hi, weight, k, (weight + 1) // 2, rule)
                if rule != MEDIAN:
                    if at >= 0 or attempt == 1:
                        break
                    continue
                left = np.int64(0)
                for t in range(lo, at):
                    left += w[t]
                if attempt == 0 and at >= 0:
                    missed = abs(2 * left - weight)
                elif attempt == 1 and (missed < 0 or (at >= 0 and abs(2 * left - weight) + 2 < missed)):
                    break  # only the narrower side can be cut, or it balances better by more than a record
        if at < 0:
            edges[m, 0], edges[m, 1], edges[m, 2], edges[m, 3] = e0, e1, e2, e3
            m += 1
            starts[m] = hi
            continue
        left = np.int64(0)
        for t in range(lo, at):
            left += w[t]
        axis[cuts], below[cuts], above[cuts] = cut_axis, low, high
        if sp + 2 > stack.shape[0]:
            more = np.empty((2 * stack.shape[0], 7), np.int64)
            for row in range(sp):
                for j in range(7):
                    more[row, j] = stack[row, j]
            stack = more
        # the right part waits below the left one, so that cells come out in the order of their slices
        stack[sp, 0], stack[sp, 1], stack[sp, 2] = at, hi, weight - left
        stack[sp, 3], stack[sp, 4], stack[sp, 5], stack[sp, 6] = e0, e1, e2, e3
        stack[sp, 3 + cut_axis] = cuts
        stack[sp + 1, 0], stack[sp + 1, 1], stack[sp + 1, 2] = lo, at, left
        stack[sp + 1, 3], stack[sp + 1, 4], stack[sp + 1, 5], stack[sp + 1, 6] = e0, e1, e2, e3
        stack[sp + 1, 5 + cut_axis] = cuts
        sp += 2
        cuts += 1
    return ids, starts[: m + 1], edges[:m], axis[:cuts], below[:cuts], above[:cuts]
