"""Distances between coded records, and lists of nearest ones in which equal records share their work."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit

PLAIN, MIXED, TABLE = 0, 1, 2
NUMBER, CATEGORY, TREE, SPHERE, PLANE, SKIP, CYCLE = 0, 1, 2, 3, 4, 5, 6


class Records(NamedTuple):
    """Records as the kernels see them.

    form      PLAIN: Euclidean on all columns; MIXED: by kind; TABLE: values is the matrix of distances
    norm      2, 1, or 0 for the largest
    values    float64[n, c]  numbers already divided by scale and times weight; codes as floats
    kind      int64[c]       NUMBER, CATEGORY, TREE, SPHERE (with the next two columns), PLANE (with the next), SKIP,
                             CYCLE (from 0 to the length of its circle)
    weight    float64[c]     CATEGORY: distance of different values; SPHERE: length of one radian;
                             CYCLE: length of the circle
    tree      int64[*]       the levels of all hierarchies, one after another, row by row
    tree_at   int64[c]       where a column's levels start
    depth     int64[c]       levels per value
    heights   float64[*]     distance by number of levels on which two values differ
    height_at int64[c]       where a column's heights start
    """

    form: int
    norm: int
    values: np.ndarray
    kind: np.ndarray
    weight: np.ndarray
    tree: np.ndarray
    tree_at: np.ndarray
    depth: np.ndarray
    heights: np.ndarray
    height_at: np.ndarray


@njit(**LEAN_INNER)
def distance(s, i, j):
    """The distance of records i and j; symmetric to the last bit.  O(c)."""
    x = s.values
    if s.form == TABLE:
        return x[i, j]
    total = 0.0
    if s.form == PLAIN:
        for c in range(x.shape[1]):
            d = x[i, c] - x[j, c]
            total += d * d
        return math.sqrt(total)
    for c in range(x.shape[1]):
        kind = s.kind[c]
        if kind == NUMBER:
            d = abs(x[i, c] - x[j, c])
        elif kind == CATEGORY:
            d = s.weight[c] if x[i, c] != x[j, c] else 0.0
        elif kind == CYCLE:
            d = abs(x[i, c] - x[j, c])
            d = min(d, s.weight[c] - d)
        elif kind == TREE:
            a = s.tree_at[c] + s.depth[c] * np.int64(x[i, c])
            b = s.tree_at[c] + s.depth[c] * np.int64(x[j, c])
            level = 0
            while level < s.depth[c] and s.tree[a + level] != s.tree[b + level]:
                level += 1
            d = s.heights[s.height_at[c] + level]
        elif kind == SPHERE:
            u, v, w = x[i, c] - x[j, c], x[i, c + 1] - x[j, c + 1], x[i, c + 2] - x[j, c + 2]
            d = s.weight[c] * 2.0 * math.asin(min(1.0, 0.5 * math.sqrt(u * u + v * v + w * w)))
        elif kind == PLANE:
            u, v = x[i, c] - x[j, c], x[i, c + 1] - x[j, c + 1]
            d = math.sqrt(u * u + v * v)
        else:
            continue
        if s.norm == 2:
            total += d * d
        elif s.norm == 1:
            total += d
        elif d > total:
            total = d
    return math.sqrt(total) if s.norm == 2 else total


@njit(cache=True, nogil=True)
def many_distances(s, a, b):
    """float64[m]: distance of records a[i] and b[i]."""
    out = np.empty(a.size)
    for i in range(a.size):
        out[i] = distance(s, a[i], b[i])
    return out


@njit(**INNER)
def _sort(key, size, order, other):
    """order int64[>= size] by key, equal keys as they stand; numba's own sort compiles for 2 s.  O(size log size)."""
    width = 1
    while width < size:
        for low in range(0, size, 2 * width):
            middle, high = min(low + width, size), min(low + 2 * width, size)
            a, b = low, middle
            for e in range(low, high):
                if a < middle and (b >= high or key[order[a]] <= key[order[b]]):
                    other[e] = order[a]
                    a += 1
                else:
                    other[e] = order[b]
                    b += 1
        for e in range(size):
            order[e] = other[e]
        width *= 2


class Candidates(NamedTuple):
    """Places near each line of them.

    which    int64[m]      the line that serves each record asked for
    places   int64[l, q]   nearest first by a distance that never exceeds the true one; -1 ends
    reached  float64[l]    no other place is nearer than this (inf when there is no other)
    """

    which: np.ndarray
    places: np.ndarray
    reached: np.ndarray


class Copies(NamedTuple):
    """The equal records of every place.

    start     int64[p + 1]  those of place i are record[start[i] : start[i + 1]]
    record    int64[*]
    position  int64[n]      where a record stands among them, -1 when it does not
    """

    start: np.ndarray
    record: np.ndarray
    position: np.ndarray


@njit(cache=True, nogil=True)
def nearest_records(s, rows, candidates, copies, k, index, found):
    """Nearest records from nearest places: true distances, sorted, equal records spelled out.

    s         ``Records``;  candidates ``Candidates``;  copies ``Copies``
    rows      int64[m]      the records asked for
    k         how many are asked for
    index     int64[m, k]   out: records, nearest first, the record itself and its equals before others; -1: none
    found     float64[m, k] out: their distances, inf where none is left
    returns   bool[m]       whether the list is certain

    O(m (q log q + k)) time, O(q) space.
    """
    which, places, reached = candidates
    start, record, position = copies
    m, q = rows.size, places.shape[1]
    sure = np.empty(m, np.bool_)
    near, order, other = np.empty(q), np.empty(q, np.int64), np.empty(q, np.int64)
    for i in range(m):
        me, line = rows[i], which[i]
        size, rising = 0, True
        while size < q and places[line, size] >= 0:
            near[size] = distance(s, me, record[start[places[line, size]]])
            rising = rising and (size == 0 or near[size - 1] <= near[size])
            size += 1
        for e in range(size):
            order[e] = e
        if not rising:
            _sort(near, size, order, other)
        filled = 0
        for e in range(size):
            if filled == k:
                break
            o = order[e]
            first, last = start[places[line, o]], start[places[line, o] + 1]
            at = position[me]
            if at < first or at >= last:
                at = first
            for step in range(min(last - first, k - filled)):
                c = at + step
                if c >= last:
                    c -= last - first
                index[i, filled] = record[c]
                found[i, filled] = near[o]
                filled += 1
        for e in range(filled, k):
            index[i, e] = -1
            found[i, e] = np.inf
        sure[i] = reached[line] == np.inf or (filled == k and found[i, k - 1] <= reached[line])
    return sure
