"""Enumerates the classes of all lattice nodes, by splitting classes column by column and pruning irrelevant ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.multipliers import BoundedRows, take

OTHERS = 8  # cells of other values than the highest-priced that are stored with a class


class CellsInLattice(NamedTuple):
    """A table of m cells and d columns in the lattice of its columns' levels.

    quasi    int32[m, d]: codes
    up       int32[..]: class of a code at a level: up[at[j] + level * size[j] + code]
    at, size, height  int64[d]: offset, number of codes, and number of levels of each column
    columns  int64[d]: the order in which columns are split
    loss     float64[..]: laid out like up, nondecreasing in the level: at a level, at least the loss of each class
             below
    """

    quasi: np.ndarray
    up: np.ndarray
    at: np.ndarray
    size: np.ndarray
    height: np.ndarray
    columns: np.ndarray
    loss: np.ndarray


class Need(NamedTuple):
    """The conditions on a class, and the sets of rows whose prices are summed.

    sensitive int32[m, s], values int64[s]: number of codes, count int64[m]
    least int64, distinct int64[s]: a class counts if it has at least this many rows, and this many values of every
    column
    group int64: size K <= least of the sets: rows, or with per_value rows of different values
    """

    sensitive: np.ndarray
    values: np.ndarray
    count: np.ndarray
    least: int
    distinct: np.ndarray
    group: int
    per_value: bool


# modes of a pass over the lattice; see ``sweep``
CHEAPEST, LEAST_SLACK, SHARED_SLACK, LEAST_AT_NODE, TIGHT_CLASSES, SLACK_WITH_VALUES, EXCESS = range(7)


class CellPrices(NamedTuple):
    """price float64[m], order int64[m]: the cells by descending price (any order for CHEAPEST), active bool[m]."""

    price: np.ndarray
    order: np.ndarray
    active: np.ndarray


class SweepResult(NamedTuple):
    """The output that a pass over the lattice lowers: out float64[m], at_node float64[nodes], or a sum float64[1]."""

    out: np.ndarray
    at_node: np.ndarray


@njit(**INNER)
def _highest_prices(inside, b, e, need, price, seen, high):
    """The sum of the K largest prices among some cells (rows of K different values with per_value).

    Cells are sorted by descending price and suffice for K. Returns (sum, the K-th). seen int64[K], high float64[K]: out
    with per_value: those values and the price of each.
    """
    sensitive, group = need.sensitive, need.group
    held, total, last = 0, 0.0, 0.0
    for i in range(b, e):
        c = inside[i]
        if need.per_value:
            fresh = True
            for y in range(held):
                if seen[y] == sensitive[c, 0]:
                    fresh = False
                    break
            if not fresh:
                continue
            seen[held], high[held] = sensitive[c, 0], price[c]
            many = 1
        else:
            many = min(need.count[c], group - held)
        held += many
        last = price[c]
        total += many * last
        if held == group:
            break
    return total, last


@njit(**INNER)
def _tops(inside, b, e, sensitive, distinct, tops):
    """The highest-priced cell of each of the ``distinct`` highest-priced values of column 0, in order of the cells."""
    n = 0
    for i in range(b, e):
        y = 0
        while y < n and sensitive[tops[y], 0] != sensitive[inside[i], 0]:
            y += 1
        if y == n:
            tops[n] = inside[i]
            n += 1
            if n == distinct:
                return


@njit(**INNER)
def _mean(inside, b, e, need, price, tops, own, instead):
    """The largest mean price of K rows or more with one of cell ``own`` and one of each other value.

    The other values are those of the ``tops`` except that at ``instead``. Cells are sorted by descending price.
    """
    count, group, distinct = need.count, need.group, need.distinct[0]
    n, total = 1, price[own]
    for y in range(distinct):
        if y != instead:
            n += 1
            total += price[tops[y]]
    for i in range(b, e):
        c = inside[i]
        many = count[c] - (1 if c == own else 0)
        for y in range(distinct):
            if y != instead and tops[y] == c:
                many -= 1
        if price[c] * n <= total:
            if n >= group:
                break
            many = min(many, group - n)
        n += many
        total += many * price[c]
    return total / n


@njit(**INNER)
def _noted(tight, inside, b, e, node, cost, need, distinct):
    """Store a class with its highest-priced cells, as many as have ``tight.rows`` rows.

    Some cells of other values are added if these are required. The result is False without room.
    """
    count, sensitive = need.count, need.sensitive
    t, at, held, lowest = tight.used[0], tight.start[tight.used[0]], 0, inside[b]
    if t == tight.cost.size:
        return False
    others = 0 if distinct > 1 else OTHERS
    for i in range(b, e):
        c = inside[i]
        other = distinct > 1 and sensitive[c, 0] != sensitive[inside[b], 0]
        if held >= tight.rows and others >= OTHERS:
            break
        if held >= tight.rows and not other:
            continue
        if at == tight.member.size:
            return False
        tight.member[at] = c
        at += 1
        held += count[c]
        others += other
    for i in range(b, e):
        lowest = min(lowest, inside[i])
    tight.name[t, 0], tight.name[t, 1] = node, lowest
    tight.cost[t], tight.start[t + 1], tight.used[0] = cost, at, t + 1
    return True


class Work(NamedTuple):
    """The stack of classes during the search.

    A class at depth p is part of that at p - 1: the cells cells[p, first[p] : last[p]].

    cells int64[d + 1, m], first, last, level, parts, turn int64[d + 1], spent float64[d + 1]
    begin, end int64[d, widest], cost float64[d, widest]: the parts of each, and their costs
    code_of int64[m], rows, fill, below, touched int64[widest], mixed bool[widest]: of one class while it is split
    """

    cells: np.ndarray
    first: np.ndarray
    last: np.ndarray
    level: np.ndarray
    parts: np.ndarray
    turn: np.ndarray
    spent: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    cost: np.ndarray
    code_of: np.ndarray
    rows: np.ndarray
    fill: np.ndarray
    below: np.ndarray
    touched: np.ndarray
    mixed: np.ndarray


@njit(**INNER)
def unsplit(lattice, order):
    """All cells as one class that isn't split yet, in the given order int64[m]."""
    m, d, widest = order.size, lattice.columns.size, 1
    for j in range(d):
        widest = max(widest, lattice.size[j])
    cells = np.empty((d + 1, m), np.int64)
    for i in range(m):  # assigning arrays would compile error handling, which takes three seconds
        cells[0, i] = order[i]
    first, last, spent = np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64), np.zeros(d + 1)
    level, parts, turn = np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64), np.zeros(d + 1, np.int64)
    level[0], last[0] = -1, m
    return Work(
        cells, first, last, level, parts, turn, spent, np.empty((d, widest), np.int64), np.empty((d, widest), np.int64),
        np.empty((d, widest)), np.empty(m, np.int64), np.zeros(widest, np.int64), np.zeros(widest, np.int64),
        np.empty(widest, np.int64), np.empty(widest, np.int64), np.zeros(widest, np.bool_),
    )  # fmt: skip


@njit(**INNER)
def split_class(lattice, count, least, work, p):
    """Split the class at depth p by the level of its column, without parts too small and classes of a lower level."""
    cells, code_of, rows, fill, below, mixed = work.cells, work.code_of, work.rows, work.fill, work.below, work.mixed
    j, level = lattice.columns[p], work.level[p]
    base = lattice.at[j] + level * lattice.size[j]
    lower = base - lattice.size[j] if level > 0 else -1
    many = 0
    for i in range(work.first[p], work.last[p]):
        c = cells[p, i]
        x = np.int64(lattice.up[base + lattice.quasi[c, j]])
        code_of[i] = x
        if rows[x] == 0:
            work.touched[many] = x
            many += 1
            mixed[x] = lower < 0
            if lower >= 0:
                below[x] = lattice.up[lower + lattice.quasi[c, j]]
        elif not mixed[x]:
            mixed[x] = below[x] != lattice.up[lower + lattice.quasi[c, j]]
        rows[x] += count[c]
        fill[x] += 1
    place, n = work.first[p], 0
    for y in range(many):
        x = work.touched[y]
        if rows[x] >= least and mixed[x]:
            work.begin[p, n], work.end[p, n] = place, place + fill[x]
            n += 1
            here = fill[x]
            fill[x] = place
            place += here
        else:
            fill[x] = -1
    for i in range(work.first[p], work.last[p]):
        x = code_of[i]
        if fill[x] >= 0:
            cells[p + 1, fill[x]] = cells[p, i]
            fill[x] += 1
    for y in range(many):
        rows[work.touched[y]] = 0
        fill[work.touched[y]] = 0
    for y in range(n):
        work.cost[p, y] = work.spent[p] + lattice.loss[base + lattice.quasi[cells[p + 1, work.begin[p, y]], j]]
    work.parts[p], work.turn[p] = n, 0


@njit(**INNER)
def _various(inside, b, e, sensitive, distinct, stamp, mark):
    """Whether some cells have the required number of values in every column.

    stamp  int64[values]
    mark   a number that was not used before
    """
    for w in range(distinct.size):
        different = 0
        for i in range(b, e):
            v = sensitive[inside[i], w]
            if stamp[v] != mark + w:
                stamp[v] = mark + w
                different += 1
                if different >= distinct[w]:
                    break
        if different < distinct[w]:
            return False
    return True


@njit(**INNER)
def _of_each_value(inside, b, e, need, price, cost, seen, out):
    """Lower ``out`` to K cost - K (the largest mean with each cell); ``seen`` as ``_tops`` left it."""
    sensitive, distinct = need.sensitive, need.distinct[0]
    for y in range(distinct):
        for i in range(b, e):  # highest price first; after one below its cost, all others are too
            c, own = inside[i], 0
            while own < distinct - 1 and sensitive[seen[own], 0] != sensitive[c, 0]:
                own += 1
            if own == y:
                slack = need.group * (cost - _mean(inside, b, e, need, price, seen, c, y))
                if slack >= 0.0:
                    break
                out[c] = min(out[c], slack)


@njit(**INNER)
def is_lowest(inside, b, e, lattice, level):
    """Whether no column of some cells agrees at a level below its own; otherwise a cheaper node has the same class."""
    for p in range(lattice.columns.size):
        j = lattice.columns[p]
        if level[p] > 0:
            base = lattice.at[j] + (level[p] - 1) * lattice.size[j]
            one, i = lattice.up[base + lattice.quasi[inside[b], j]], b + 1
            while i < e and lattice.up[base + lattice.quasi[inside[i], j]] == one:
                i += 1
            if i == e:
                return False
    return True


@njit(**INNER)
def _active_rows(inside, b, e, active, count, group):
    """Rows of active cells, at most K."""
    rows = np.int64(0)
    for i in range(b, e):
        if active[inside[i]]:
            rows += count[inside[i]]
            if rows >= group:
                break
    return np.float64(min(rows, group))


@njit(**INNER)
def _lower(inside, b, e, need, prices, active_only, highest, out):
    """Lower ``out`` to the least slack with each cell's row.

    If the row isn't among the K highest-priced, it replaces the one of its own value, or else the cheapest. highest:
    (cost, sum, K-th, share, values, prices).
    """
    cost, top_sum, kth, share, seen, high = highest
    for i in range(b, e):
        c = inside[i]
        if active_only and not prices.active[c]:
            continue
        with_own = top_sum
        if need.per_value:
            instead = kth
            for y in range(need.group):
                if seen[y] == need.sensitive[c, 0]:
                    instead = high[y]
                    break
            with_own += prices.price[c] - instead
        elif prices.price[c] < kth:
            with_own += prices.price[c] - kth
        out[c] = min(out[c], (need.group * cost - with_own) / share)


@njit(cache=True, nogil=True)
def sweep(lattice, need, prices, fixed, mode, budget, least_of, tight):
    """One pass over the lattice nodes that begin with some levels; out float64[m] is lowered in place.

    lattice, need, prices, least_of  ``CellsInLattice``, ``Need``, ``CellPrices``, ``SweepResult``
    tight  ``Tight``; or None, with which TIGHT_CLASSES and EXCESS aren't compiled
    fixed int64[f]: levels of the first f columns
    budget int64: cells it may examine; returns the remainder, below 0 if it gave up (out is then too high)
    mode  CHEAPEST            out = cost c of the cheapest class that counts
          LEAST_SLACK         out = least slack K c - (price + prices of the K - 1 highest-priced others)
          SHARED_SLACK        the same for active cells, divided by min(K, active rows of the class)
          LEAST_AT_NODE       out is not changed; at_node float64[nodes], in mixed radix of the levels in the order of
                              ``columns``, is lowered to the least K c - (K highest prices) of the node's classes that
                              count and have a value below some out
          TIGHT_CLASSES       out is not changed; every class that counts, once, and has K c - K (the largest mean)
                              below some out is written to ``tight``, with its highest-priced cells; -1 without room
          SLACK_WITH_VALUES   out = least K c - K (the largest mean of K rows or more, including the cell's, with
                              distinct[0] values of column 0), except for a class without any value below some out
          EXCESS              out is not changed, at 0; at_node[0] increases, for every class that counts, once, by the
                              largest excess over its cost of K rows or more with distinct[0] values of column 0, if
                              that is positive

    A class of the first columns is pruned, with everything below it, if it is too small, if it is the class of a lower
    level again, or if its cost so far and its K highest prices show that no class within it lowers any out. On the way
    down, the cost only increases, and prices and active rows only decrease. O(nodes m d) at worst; O(m d) space.
    """
    height, columns = lattice.height, lattice.columns
    sensitive, values, count, least, distinct, group, per_value = need
    out, at_node = least_of
    price, order, active = prices
    m, s, d = count.size, distinct.size, columns.size
    kept = 1
    for j in range(s):
        kept = max(kept, values[j])
    work = unsplit(lattice, order)
    cells, first, last, level, parts, turn, spent = work[:7]
    stamp, mark = np.zeros(kept, np.int64), 1
    seen, high = np.empty(max(group, 1), np.int64), np.empty(max(group, 1))
    mixes = s > 0 and not per_value and distinct[0] > 1
    if tight is not None:
        value, none = np.zeros(m, np.int64), np.empty(0, np.int64)
        if mode == EXCESS and mixes:
            for i in range(m):
                value[i] = sensitive[i, 0]
        asked = BoundedRows(count, value, np.int64(distinct[0]) if mixes else 1, group)
    p = 0
    # Depth first: at depth p, classes of the first p columns wait to be split by the next level of column p. A class
    # that may lower an out is split further; at the last column it lowers out.
    while p >= 0:
        if turn[p] == parts[p]:  # split the class by the next level of its column
            level[p] = max(level[p] + 1, fixed[p] if p < fixed.size else 0)
            if level[p] == height[columns[p]] or (p < fixed.size and level[p] > fixed[p]):
                p -= 1
                continue
            budget -= last[p] - first[p]
            if budget < 0:
                return budget
            split_class(lattice, count, least, work, p)
            continue
        b, e, here_cost = work.begin[p, turn[p]], work.end[p, turn[p]], work.cost[p, turn[p]]
        turn[p] += 1
        inside = cells[p + 1]
        top_sum, kth, share, bar = 0.0, 0.0, 1.0, here_cost
        if mode != CHEAPEST:
            if mode == SHARED_SLACK:
                share = _active_rows(inside, b, e, active, count, group)
                if share == 0.0:
                    continue
            top_sum, kth = _highest_prices(inside, b, e, need, price, seen, high)
            bar = group * here_cost - top_sum
            bar = bar / share if bar > 0 else bar
        lowers = False
        for i in range(b, e):
            if out[inside[i]] > bar and (mode != SHARED_SLACK or active[inside[i]]):
                lowers = True
                break
        if not lowers:
            continue
        fine = _various(inside, b, e, sensitive, distinct, stamp, mark)
        mark += s
        if not fine:
            continue
        if p + 1 < d:
            p += 1
            first[p], last[p], spent[p], level[p], parts[p], turn[p] = b, e, here_cost, -1, 0, 0
            continue
        if mode == CHEAPEST:
            for i in range(b, e):
                out[inside[i]] = min(out[inside[i]], here_cost)
            continue
        if tight is not None:
            if mode in (TIGHT_CLASSES, EXCESS) and not is_lowest(inside, b, e, lattice, level):
                continue
            if mode == EXCESS:
                at_node[0] += max(take(inside, b, e, here_cost, asked, price, seen, none), 0.0)
                continue
        if mode >= TIGHT_CLASSES and mixes:
            _tops(inside, b, e, sensitive, distinct[0], seen)
            bar = group * (here_cost - _mean(inside, b, e, need, price, seen, seen[0], 0))
        if mode == SLACK_WITH_VALUES and mixes:
            _of_each_value(inside, b, e, need, price, here_cost, seen, out)
            continue
        if mode in (LEAST_AT_NODE, TIGHT_CLASSES):
            node = np.int64(0)
            for y in range(d):
                node = node * height[columns[y]] + level[y]
            if tight is not None and mode == TIGHT_CLASSES:
                lowers = False
                for i in range(b, e):
                    lowers = lowers or out[inside[i]] > bar
                if lowers and not _noted(tight, inside, b, e, node, here_cost, need, distinct[0] if mixes else 1):
                    return -1
            else:
                at_node[node] = min(at_node[node], bar)
            continue
        _lower(inside, b, e, need, prices, mode == SHARED_SLACK, (here_cost, top_sum, kth, share, seen, high), out)
    return budget
