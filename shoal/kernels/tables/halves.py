"""Least loss of k-anonymity by halves: every part of about half the rows, and what remains, each solved the same way.

Blocki, Williams 2010, Theorem 1.3.  Rows are bits of an int64, so there are 62 at most.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit


@njit(cache=True, nogil=True)
def group_loss(mask, code, pair, start, size, kind):
    """Loss per row of the group of the rows in mask; code int32[n, d], the rest as in ``kernels.tables.subsets``."""
    total = np.int64(0)
    for j in range(code.shape[1]):
        a, s = start[j], size[j]
        first, worst, low, high, many = np.int64(-1), np.int64(0), s, np.int64(-1), np.int64(0)
        seen = np.zeros(s if kind[j] == 2 else 0, np.bool_)
        for i in range(code.shape[0]):
            if not mask >> i & 1:
                continue
            x = np.int64(code[i, j])
            if first < 0:
                first = x
            if kind[j] == 0:
                worst = max(worst, pair[a + first * s + x])
            elif kind[j] == 1:
                low, high = min(low, x), max(high, x)
            elif not seen[x]:
                seen[x] = True
                many += 1
        if kind[j] == 1:
            worst = pair[a + low * s + high]
        elif kind[j] == 2 and many > 1:
            worst = (many - 1) * pair[a + 1]
        total += worst
    return total


@njit(cache=True, nogil=True)
def halve(mask, upper, k, code, pair, start, size, kind, twin, floor, looked, stop, part):
    """The least loss of cutting the rows in mask into groups of k or more, or ``upper`` where none is below it.

    upper  int64     a loss in hand
    twin   int64[n]  the row before it that equals a row, -1 for none: of equal rows the first go into a part
    floor  int64[n]  no group charges a row less
    looked int64[1]  in and out: parts looked at; stop  int64[1]: the search ends where another thread makes it 1
    part   int64[1]  out: the part that gave the least loss, 0 where the rows are one group or nothing was below upper

    Some union T of groups of an optimum has at least n/2 and at most n/2 + k - 1/2 of the n >= 2k rows: add groups of
    at most 2k - 1 rows until half is reached; the larger side with the last group, or the one without, is that near.
    Where one side is empty, the last group is half of the rows and no more than 2k - 1, and is T itself.
    About 4^n parts; the space of the recursion, n deep.
    """
    part[0] = 0
    member = np.empty(code.shape[0], np.int64)
    n, least = np.int64(0), np.int64(0)
    for i in range(code.shape[0]):
        if mask >> i & 1:
            member[n] = i
            n += 1
            least += floor[i]
    if n < 2 * k:
        return min(upper, n * group_loss(mask, code, pair, start, size, kind))
    best, chosen = upper, np.int64(0)
    for t in range(max(k, (n + 1) // 2), min(n - k, (n + 2 * k - 1) // 2) + 1):
        subset = (np.int64(1) << t) - 1
        while subset >> n == 0 and least < best:
            looked[0] += 1
            if stop[0]:
                return upper
            half, plain = np.int64(0), not (2 * t == n and subset & 1 == 0)  # halves alike count once
            for i in range(n):
                if subset >> i & 1:
                    half |= np.int64(1) << member[i]
            for i in range(n):
                j = twin[member[i]]
                if j >= 0 and half >> member[i] & 1 and mask >> j & 1 and not half >> j & 1:
                    plain = False
            if plain:
                one = halve(half, best, k, code, pair, start, size, kind, twin, floor, looked, stop, part)
                if one < best:
                    rest = best - one
                    two = halve(mask ^ half, rest, k, code, pair, start, size, kind, twin, floor, looked, stop, part)
                    if two < rest:
                        best, chosen = one + two, half
            low = subset & -subset  # the next number with as many bits
            high = subset + low
            subset = ((subset ^ high) >> 2) // low | high
    part[0] = chosen
    return best
