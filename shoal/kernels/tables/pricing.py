"""Pairs and triples of types that a linear program could still use, and nearest types."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit


class Types(NamedTuple):
    """Types of rows, and what they lose together.

    code   int32[t, d]   the types
    count  int64[t]      rows of each; a group may hold a type more than once when it has the rows
    pair   int64[...]    loss of two codes of column j published as one: pair[start[j] + a * size[j] + b]
    start  int64[d], size int64[d], kind int64[d]  (2: a set, three different values lose twice what two lose)
    """

    code: np.ndarray
    count: np.ndarray
    pair: np.ndarray
    start: np.ndarray
    size: np.ndarray
    kind: np.ndarray


class Prices(NamedTuple):
    """What a column pays for.

    fine   int64         losses are multiplied by this before prices are taken off
    row    int64[t]      price of a row of each type
    start  int64[t + 1], of int64[...]   the sets of every type
    member uint8[s, t]   sets of types; a column with an odd number of its rows in one earns that set's bonus
    bonus  int64[s]      at least 0
    """

    fine: int
    row: np.ndarray
    start: np.ndarray
    of: np.ndarray
    member: np.ndarray
    bonus: np.ndarray


@njit(**INNER)
def _two(types, a, b):
    code, pair, start, size = types.code, types.pair, types.start, types.size
    total = np.int64(0)
    for j in range(code.shape[1]):
        total += pair[start[j] + np.int64(code[a, j]) * size[j] + code[b, j]]
    return total


@njit(**INNER)
def _three(types, a, b, c):
    code, pair, start, size, kind = types.code, types.pair, types.start, types.size, types.kind
    total = np.int64(0)
    for j in range(code.shape[1]):
        x, y, z = np.int64(code[a, j]), np.int64(code[b, j]), np.int64(code[c, j])
        p = pair[start[j] + x * size[j] + y]
        q = pair[start[j] + x * size[j] + z]
        r = pair[start[j] + y * size[j] + z]
        if kind[j] == 2 and x != y and y != z and x != z:
            total += 2 * p
        else:
            total += max(p, q, r)
    return total


@njit(cache=True, nogil=True)
def nearest(types, index, distance):
    """The m nearest other types of every type, nearest first, ties by number.

    index int32[t, m], distance int64[t, m]   out; -1 where there are fewer others.  O(t^2 d).
    """
    t, m = index.shape
    index[:] = -1
    for a in range(t):
        held = 0
        for b in range(t):
            if a == b:
                continue
            d = _two(types, a, b)
            if held == m and d >= distance[a, m - 1]:
                continue
            x = held if held < m else m - 1
            while x > 0 and distance[a, x - 1] > d:
                distance[a, x] = distance[a, x - 1]
                index[a, x] = index[a, x - 1]
                x -= 1
            distance[a, x] = d
            index[a, x] = b
            if held < m:
                held += 1


@njit(**INNER)
def _odd(prices, a, b, c):
    """Sum of the bonuses of the sets that hold an odd number of a, b, c (c = -1: of a, b)."""
    cut_start, cut_of, member, bonus = prices.start, prices.of, prices.member, prices.bonus
    total = np.int64(0)
    for x in range(cut_start[a], cut_start[a + 1]):
        s = cut_of[x]
        held = 1 + member[s, b] + (member[s, c] if c >= 0 else 0)
        if held % 2 == 1:
            total += bonus[s]
    for x in range(cut_start[b], cut_start[b + 1]):
        s = cut_of[x]
        if member[s, a] == 0 and (c < 0 or member[s, c] == 0):
            total += bonus[s]
    if c >= 0:
        for x in range(cut_start[c], cut_start[c + 1]):
            s = cut_of[x]
            if member[s, a] == 0 and member[s, b] == 0:
                total += bonus[s]
    return total


@njit(cache=True, nogil=True)
def price(types, prices, under, least, out, least_reduced):
    """Pairs and triples with reduced cost under a threshold, all arithmetic in whole numbers.

    under     int64      report columns with  fine * cost - prices - bonuses < under
    least     int64      0: report all of them.  Otherwise at most this many pairs and triples for every lowest type
    out       int32[most, 3]   types in rising order, -1 as third of a pair
    least_reduced  int64[2]    out: least reduced cost of a pair, of a triple, where below `under`
    returns   number of columns, -1 when out is full

    Complete because a triple loses at least what each of its pairs loses, and because a row brings at most its price
    and all its sets' bonuses, say p: with P the largest p, a triple on a < b needs 3 fine loss(a, b) - p(a) - p(b) - P
    < under.  O(t^2 d) and the triples looked at.
    """
    count, fine, price_of = types.count, prices.fine, prices.row
    t, most = count.size, out.shape[0]
    reach = price_of.copy()
    for a in range(t):
        for x in range(prices.start[a], prices.start[a + 1]):
            reach[a] += prices.bonus[prices.of[x]]
    found = 0
    least_reduced[0] = under
    least_reduced[1] = under
    top = reach.max()
    near = np.empty(t, np.int64)
    far = np.empty(t, np.int64)
    keep = least if least > 0 else 1
    best = np.empty((2, keep), np.int64)
    who = np.empty((2, keep, 2), np.int64)
    for a in range(t):
        held = np.zeros(2, np.int64)
        n = 0
        for b in range(a, t):
            if a == b and count[a] < 2:
                continue
            d = fine * _two(types, a, b)
            both = reach[a] + reach[b]
            if 2 * d - both < under:
                r = 2 * d - price_of[a] - price_of[b] - _odd(prices, a, b, -1)
                if r < under:
                    if r < least_reduced[0]:
                        least_reduced[0] = r
                    if least == 0:
                        if found == most:
                            return -1
                        out[found, 0], out[found, 1], out[found, 2] = a, b, -1
                        found += 1
                    else:
                        _insert(best, who, held, 0, keep, r, b, -1)
            if 3 * d - both - top < under:
                near[n] = b
                far[n] = d
                n += 1
        for x in range(n):
            b = near[x]
            for y in range(x, n):
                c = near[y]
                s = reach[a] + reach[b] + reach[c]
                low = max(far[x], far[y])
                if 3 * low - s >= under:
                    continue
                if a == b or b == c:
                    need = 3 if a == b and b == c else 2
                    if count[b] < need:
                        continue
                if least > 0 and held[1] == keep and 3 * low - s >= best[1, keep - 1]:
                    continue
                low = max(low, fine * _two(types, b, c))
                if 3 * low - s >= under:
                    continue
                full = 3 * fine * _three(types, a, b, c)
                if full - s >= under:
                    continue
                r = full - price_of[a] - price_of[b] - price_of[c]
                r -= _odd(prices, a, b, c)
                if r < under:
                    if r < least_reduced[1]:
                        least_reduced[1] = r
                    if least == 0:
                        if found == most:
                            return -1
                        out[found, 0], out[found, 1], out[found, 2] = a, b, c
                        found += 1
                    else:
                        _insert(best, who, held, 1, keep, r, b, c)
        if least > 0:
            for kind_of in range(2):
                for x in range(held[kind_of]):
                    if found == most:
                        return -1
                    out[found, 0], out[found, 1], out[found, 2] = a, who[kind_of, x, 0], who[kind_of, x, 1]
                    found += 1
    return found


@njit(**INNER)
def _insert(best, who, held, which, keep, r, b, c):
    n = held[which]
    if n == keep and r >= best[which, keep - 1]:
        return
    x = n if n < keep else keep - 1
    while x > 0 and best[which, x - 1] > r:
        best[which, x] = best[which, x - 1]
        who[which, x] = who[which, x - 1]
        x -= 1
    best[which, x] = r
    who[which, x, 0] = b
    who[which, x, 1] = c
    if n < keep:
        held[which] = n + 1
