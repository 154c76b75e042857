"""Eligible parts of a class that is not eligible as a whole, for the cascades.

``part_of`` finds the largest part that meets a requirement. ``balance`` finds a part in which common values have shares
between two limits. ``deal`` takes small groups close to the table's shares out of a class, one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.eligible import BAND, EQUAL, ORDERED, PERSONS, TREE, group_gap

INNER_WHOLE = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
CLOSE = 1e-9
ROOM = 0.7  # part of t that a group may use to follow its class's own shares; the rest is for rounding


@njit(**LEAN_INNER)
def keep_of(held, seen, present, l, top):
    """The largest h with sum min(count, h) >= l h, for the counts held[seen[:present]]; top int64[l] is overwritten.

    As in phase one of the three-phase algorithm, except that only the l largest counts are sorted.
    """
    total = np.int64(0)
    n = 0
    for y in range(present):
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


class Scratch(NamedTuple):
    """Working arrays.

    held int64[widest column]  0 between calls;  seen int64[widest column];  largest int64[frequency of the first
                               column]
    part int64[widest column], many int64[cells]  used under further models
    """

    held: np.ndarray
    seen: np.ndarray
    largest: np.ndarray
    part: np.ndarray
    many: np.ndarray


@njit(**LEAN_INNER)
def meets(required, sensitive, cells, many, scratch):
    """Whether many[i] rows of cells[i] meet a requirement."""
    k, frequency, distinct, rules = required
    held, seen = scratch.held, scratch.seen
    n = np.int64(0)
    for i in range(cells.size):
        n += many[i]
    if n < k:
        return False
    for j in range(frequency.size):
        if frequency[j] <= 1 and distinct[j] <= 1:
            continue
        present, top = 0, np.int64(0)
        for i in range(cells.size):
            if many[i] > 0:
                w = sensitive[cells[i], j]
                present += held[w] == 0
                held[w] += many[i]
                top = max(top, held[w])
        for i in range(cells.size):
            held[sensitive[cells[i], j]] = 0
        if frequency[j] * top > n or present < distinct[j]:
            return False
    return group_gap(rules, sensitive, cells, many, cells.size, held, seen, 0.0) <= 0.0


@njit(**LEAN_INNER)
def _capped(required, sensitive, cells, left, scratch):
    """Under models that count persons, whether a class with at most h rows of each value is eligible, for the best h.

    Writes many[i] rows of cells[i]. h is the largest found by bisection.
    """
    rules, held, many = required.rules, scratch.held, scratch.many
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
    # Bisection between ``low``, at which the requirement is met, and ``high``; the last step writes ``low``'s part.
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
            if meets(required, sensitive, cells, many, scratch):
                low = h
            else:
                high = h


@njit(**INNER)
def part_of(required, sensitive, cells, left, scratch):
    """The largest part found of a class that meets the requirement; False if none is found.

    With one column, the part has min(count, h w) rows of each value, for the largest h found by bisection; w is the
    value's share in the whole table, or its largest share, if a model has one, and 1 otherwise. scratch.many out: rows
    of each cell, with several columns; scratch.part out: rows of each value, with one column
    """
    _, frequency, distinct, rules = required
    held, seen, _, part, many = scratch
    for i in range(cells.size):
        many[i] = left[cells[i]]
    whole = meets(required, sensitive, cells, many, scratch)
    if frequency.size != 1:
        return whole or _capped(required, sensitive, cells, left, scratch)
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
    present, total, high = 0, np.int64(0), 0.0
    for i in range(cells.size):
        w = sensitive[cells[i], 0]
        part[w] = 0
    for i in range(cells.size):
        w = sensitive[cells[i], 0]
        if many[i] > 0 and held[w] == 0:
            seen[present] = w
            present += 1
        held[w] += many[i]
        total += many[i]
    if whole or present < distinct[0]:
        for y in range(present):
            part[seen[y]] = held[seen[y]]
            held[seen[y]] = 0
        return whole
    names, had, kept = seen[:present].copy(), np.empty(present, np.int64), np.empty(present, np.int64)
    for y in range(present):
        had[y] = held[names[y]]
        held[names[y]] = 0
        high = max(high, had[y] / max(weight[names[y]], 1e-12))
    line = np.arange(values).reshape(-1, 1)
    low, found = 0.0, False
    # If no whole class is eligible, h is bisected: with it, each value keeps min(count, h w) rows.
    for _ in range(14):
        h = (low + high) / 2
        for y in range(present):
            kept[y] = min(had[y], np.int64(h * weight[names[y]] + 1e-9))
        if meets(required, line, names, kept, scratch):
            low, found = h, True
            for y in range(present):
                part[names[y]] = kept[y]
        else:
            high = h
    return found


ROUNDS = 12  # limit of the rounds of ``balance``


class CommonValues(NamedTuple):
    """Sensitive columns whose commonest value has nearly the largest share that it may have in a group.

    kind   int64[m]: kind of every cell; cells of one kind have other values than the commonest in the same columns
    other  bool[kinds, columns]: whether cells of a kind have another value; bit j of the kind, for at most 3 columns
    most   float64[columns]: largest share of the commonest value in a group
    fewest int64: least rows of a group
    """

    kind: np.ndarray
    other: np.ndarray
    most: np.ndarray
    fewest: int


@njit(**LEAN_INNER)
def _take_out(part, common, j, others, rows):
    """Take ``rows`` rows of kinds with (``others``) or without another value in column j out of a class.

    The kinds with the fewest other values come first: for three columns, that is their order.
    """
    for kind in range(part.size):
        if rows > 0 and common.other[kind, j] == others:
            here = min(part[kind], rows)
            part[kind] -= here
            rows -= here


@njit(**LEAN_INNER)
def _held(part, common, j):
    """(rows with the commonest value of column j, rows with another value) of a part."""
    many, few = np.int64(0), np.int64(0)
    for kind in range(part.size):
        if common.other[kind, j]:
            few += part[kind]
        else:
            many += part[kind]
    return many, few


@njit(**LEAN_INNER)
def balance(part, common, share):
    """Reduce the rows of each kind in a class to a part within both shares; returns its rows, 0 if none was found.

    part   int64[kinds]: in: rows of the class; out: rows of the part, unless 0 is returned
    share  float64[columns]: least share of the commonest value of each column

    Rows in excess of a limit are taken out for one limit after the other, until the part is within all limits. For one
    column, the part is the largest one if ROUNDS rounds suffice. O(rounds columns kinds).
    """
    most = common.most
    rows = np.int64(0)
    for kind in range(part.size):
        rows += part[kind]
    for _ in range(ROUNDS):
        before = rows
        for j in range(most.size):
            many, few = _held(part, common, j)
            _take_out(part, common, j, False, many - np.int64(few * most[j] / (1.0 - most[j]) + CLOSE))
            many, few = _held(part, common, j)
            ratio = (1.0 - share[j]) / max(share[j], CLOSE)
            _take_out(part, common, j, True, few - np.int64(many * ratio + CLOSE))
        rows = np.int64(0)
        for kind in range(part.size):
            rows += part[kind]
        if rows == before:
            break
    for j in range(most.size):
        many, _ = _held(part, common, j)
        if many < (share[j] - CLOSE) * rows or many > (most[j] + CLOSE) * rows:
            return np.int64(0)
    return rows


class Quotas(NamedTuple):
    """The target of a group: share float64[v] of each value, t within which it must be, k, and ``most`` rows."""

    share: np.ndarray
    t: float
    k: int
    most: int


@njit(**INNER_WHOLE)
def _quota(held, quotas, quota):
    """Rows of each value for a group of k to ``most`` rows within t of the shares; their number, 0 if none is found.

    held int64[v] rows of the class, quota int64[v] out. The group grows row by row, each time by the value that lacks
    most toward shares between those of the class and of the table. O(most * values).
    """
    share, t, k, most = quotas
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
    own = min(1.0, ROOM * t / max(apart, CLOSE))  # weight of the class's own shares in the target
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
def deal(cells, start, value, left, quotas, group, out):
    """Take groups out of every class as long as one is found; returns (next group, number of triples).

    cells int64[a], start int64[c + 1]  the cells of class c are cells[start[c] : start[c + 1]]
    value int64[m], left int64[m]       value of each cell, rows not yet in a group; updated
    quotas  ``Quotas``;  group int64 number of the first;  out  ``GroupTriples`` for all rows left of these cells
    O(groups * (most * values + cells of the class)).
    """
    share = quotas.share
    held, quota = np.zeros(share.size, np.int64), np.empty(share.size, np.int64)
    written = 0
    # While a group is found in a class, its rows of each value are taken from the first cells with that value.
    for c in range(start.size - 1):
        held[:] = 0
        for i in range(start[c], start[c + 1]):
            held[value[cells[i]]] += left[cells[i]]
        while _quota(held, quotas, quota) > 0:
            for v in range(share.size):
                held[v] -= quota[v]
            for i in range(start[c], start[c + 1]):
                x = cells[i]
                give = min(left[x], quota[value[x]])
                if give > 0:
                    quota[value[x]] -= give
                    left[x] -= give
                    out.cell[written], out.group[written], out.count[written] = x, group, give
                    written += 1
            group += 1
    return group, written
