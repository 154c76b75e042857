"""Classes of rows alike: whether they meet a requirement, and the largest part of them that does."""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.eligible import BAND, EQUAL, ORDERED, PERSONS, TREE, group_gap


@njit(**INNER)
def keep_of(held, seen, kinds, l, top):
    """Largest h with sum min(count, h) >= l h, the counts being held[seen[:kinds]]; top int64[l] is scratch.

    As in phase one of the three-phase algorithm, but only the l largest counts are sorted.
    """
    total = np.int64(0)
    n = 0
    for y in range(kinds):
        c = held[seen[y]]
        total += c
        i = n
        if n < l:
            n += 1
        elif c <= top[l - 1]:
            continue
        else:
            i = l - 1
        while i > 0 and top[i - 1] < c:
            top[i] = top[i - 1]
            i -= 1
        top[i] = c
    h = top[0]
    for j in range(1, l):
        if j - 1 < n:
            total -= top[j - 1]
        h = min(h, total // (l - j))
        if h <= 0:
            return np.int64(0)
    return h


@njit(**INNER)
def meets(rules, sensitive, cells, many, k, frequency, distinct, held, seen):
    """Whether many[i] rows of cells[i] meet a requirement; held int64[widest column] all 0, seen int64[the same]."""
    n = np.int64(0)
    for i in range(cells.size):
        n += many[i]
    if n < k:
        return False
    for j in range(frequency.size):
        if frequency[j] <= 1 and distinct[j] <= 1:
            continue
        kinds, top = 0, np.int64(0)
        for i in range(cells.size):
            if many[i] > 0:
                w = sensitive[cells[i], j]
                kinds += held[w] == 0
                held[w] += many[i]
                top = max(top, held[w])
        for i in range(cells.size):
            held[sensitive[cells[i], j]] = 0
        if frequency[j] * top > n or kinds < distinct[j]:
            return False
    return group_gap(rules, sensitive, cells, many, cells.size, held, seen, 0.0) <= 0.0


@njit(**INNER)
def _capped(rules, sensitive, cells, left, k, frequency, distinct, held, seen, many):
    """Where persons are counted by value, whether a class meets the requirement with at most h rows of each value, for
    the largest h found by bisection; many[i] rows of cells[i]."""
    j, high = -1, np.int64(0)
    for i in range(rules.kind.size):
        if rules.kind[i] >= PERSONS:
            j = rules.column[i]
    if j < 0:
        return False
    for i in range(cells.size):
        w = sensitive[cells[i], j]
        held[w] += left[cells[i]]
        high = max(high, held[w])
    low, h = np.int64(0), high
    while True:
        for i in range(cells.size):
            held[sensitive[cells[i], j]] = 0
        if high - low <= 1 and h == low:
            return low > 0
        h = (low + high) // 2 if high - low > 1 else low
        for i in range(cells.size):
            w = sensitive[cells[i], j]
            many[i] = min(left[cells[i]], h - held[w])
            held[w] += many[i]
        if high - low > 1:
            for i in range(cells.size):
                held[sensitive[cells[i], j]] = 0
            if meets(rules, sensitive, cells, many, k, frequency, distinct, held, seen):
                low = h
            else:
                high = h


@njit(**INNER)
def part_of(rules, sensitive, cells, left, k, frequency, distinct, held, seen, many, part):
    """The largest part of a class found that meets the requirement; False when none is.

    With one column the part has min(count, h w) rows of each value for the largest h found by bisection; w is the
    value's share in the whole table (or its largest share) where a model has one, else 1.
    many int64[cells of the table] out: rows of each cell, with several columns; part int64[values] out: rows of each
    value, with one column
    """
    for i in range(cells.size):
        many[i] = left[cells[i]]
    whole = meets(rules, sensitive, cells, many, k, frequency, distinct, held, seen)
    if frequency.size != 1:
        return whole or _capped(rules, sensitive, cells, left, k, frequency, distinct, held, seen, many)
    values = rules.size[0]
    weight = np.ones(values)
    for i in range(rules.kind.size):
        for v in range(values):
            if rules.kind[i] == EQUAL:
                weight[v] = rules.table[rules.at[i] + v]
            elif rules.kind[i] == ORDERED:
                weight[v] = rules.table[rules.at[i] + v] - (rules.table[rules.at[i] + v - 1] if v > 0 else 0.0)
            elif rules.kind[i] == BAND:
                weight[v] = rules.table[rules.at[i] + 2 * v + 1]
            elif rules.kind[i] == TREE:  # the classes of the first level are the values
                shares = rules.at[i] + 1 + rules.whole[i] * values
                weight[v] = rules.table[shares + np.int64(rules.table[rules.at[i] + 1 + v])]
    kinds, total, high = 0, np.int64(0), 0.0
    for i in range(cells.size):
        w = sensitive[cells[i], 0]
        part[w] = 0
    for i in range(cells.size):
        w = sensitive[cells[i], 0]
        if many[i] > 0 and held[w] == 0:
            seen[kinds] = w
            kinds += 1
        held[w] += many[i]
        total += many[i]
    if whole or kinds < distinct[0]:
        for y in range(kinds):
            part[seen[y]] = held[seen[y]]
            held[seen[y]] = 0
        return whole
    names, had, kept = seen[:kinds].copy(), np.empty(kinds, np.int64), np.empty(kinds, np.int64)
    for y in range(kinds):
        had[y] = held[names[y]]
        held[names[y]] = 0
        high = max(high, had[y] / max(weight[names[y]], 1e-12))
    line = np.arange(values).reshape(-1, 1)
    low, found = 0.0, False
    for _ in range(14):
        h = (low + high) / 2
        for y in range(kinds):
            kept[y] = min(had[y], np.int64(h * weight[names[y]] + 1e-9))
        if meets(rules, line, names, kept, k, frequency, distinct, held, seen):
            low, found = h, True
            for y in range(kinds):
                part[names[y]] = kept[y]
        else:
            high = h
    return found
