"""Every class of every lattice node, by splitting classes column by column and leaving those that cannot matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.multipliers import BoundedRows, take

TINY, SLIGHT = 1e-12, 1e-9  # shares of 1 and parts of a row that rounding leaves
GOLDEN = 0.6180339887498949  # part of what is left that golden section search keeps
LOOKS = 20  # multipliers that it looks at, from 0 to one that no row pays
TRIES, LAST_TRIES = 6, 12  # moves of a level and a multiplier, and for groups larger than those counted row by row
OTHERS = 8  # cells of other values than the dearest that are written down with a class


class CellsInLattice(NamedTuple):
    """A table of m cells and d columns in the lattice of its columns' levels.

    quasi    int32[m, d]   codes
    up       int32[..]     class of a code at a level: up[at[j] + level * size[j] + code]
    at, size, height  int64[d]  place, codes and levels of each column
    columns  int64[d]      the order in which columns are split
    loss     float64[..]   laid out like up, rising with the level, of a level above a class no less than below
    """

    quasi: np.ndarray
    up: np.ndarray
    at: np.ndarray
    size: np.ndarray
    height: np.ndarray
    columns: np.ndarray
    loss: np.ndarray


class Need(NamedTuple):
    """What a class is asked, and of which sets of its rows prices are summed.

    sensitive int32[m, s], values int64[s] number of codes, count int64[m]
    least int64, distinct int64[s]  a class counts when it has this many rows, and this many values of every column
    group int64      size K <= least of the sets: rows, or with per_value rows of different values
    """

    sensitive: np.ndarray
    values: np.ndarray
    count: np.ndarray
    least: int
    distinct: np.ndarray
    group: int
    per_value: bool


# what a pass over the lattice looks for; see ``sweep``
CHEAPEST, LEAST_SLACK, SHARED_SLACK, LEAST_AT_NODE, TIGHT_CLASSES, SLACK_WITH_VALUES, EXCESS = range(7)


class CellPrices(NamedTuple):
    """price float64[m], order int64[m] the cells by falling price (any order for CHEAPEST), active bool[m]."""

    price: np.ndarray
    order: np.ndarray
    active: np.ndarray


class SweepResult(NamedTuple):
    """What a pass over the lattice lowers: out float64[m], at_node float64[nodes] or a sum float64[1]."""

    out: np.ndarray
    at_node: np.ndarray


@njit(**INNER)
def _dearest(inside, b, e, need, price, seen, high):
    """Sum of the K largest prices among some cells (rows of K different values with per_value); cells by falling
    price, enough of them for K.  Returns (sum, the K-th); seen int64[K], high float64[K]
    out with per_value: those values and the price of each."""
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
    """The dearest cell of each of the ``distinct`` dearest values of column 0, by falling price, as the cells are."""
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
    """The largest mean price of K rows or more, one of them of cell ``own`` and one of each of the ``tops`` but that
    at ``instead``; cells by falling price."""
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
    """A class is written down with its dearest cells, as many as have ``tight.rows`` rows, and with some of other
    values where such are asked for; False without room."""
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
    """Classes on the way down, at depth p a part of that at p - 1, the cells cells[p, first[p] : last[p]].

    cells int64[d + 1, m], first, last, level, parts, turn int64[d + 1], spent float64[d + 1]
    begin, end int64[d, widest], cost float64[d, widest]  the parts of each, and what they cost
    code_of int64[m], rows, fill, below, touched int64[widest], mixed bool[widest]  of one class while it is split
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
def _unsplit(lattice, order):
    """All cells as one class that is not split yet, in some order int64[m]."""
    m, d, widest = order.size, lattice.columns.size, 1
    for j in range(d):
        widest = max(widest, lattice.size[j])
    cells = np.empty((d + 1, m), np.int64)
    for i in range(m):  # an assignment of arrays would compile how it fails: three seconds
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
def _split(lattice, count, least, work, p):
    """The class at depth p split by the level of its column, but for parts too small and classes of a lower level."""
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
    """Whether some cells hold as many values of every column as are asked; stamp int64[values], mark unused so far."""
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
    """Lowers ``out`` to K cost - K (the dearest mean with each cell); ``seen`` as ``_tops`` left it."""
    sensitive, distinct = need.sensitive, need.distinct[0]
    for y in range(distinct):
        for i in range(b, e):  # the dearest first, and none after one that is below its cost
            c, own = inside[i], 0
            while own < distinct - 1 and sensitive[seen[own], 0] != sensitive[c, 0]:
                own += 1
            if own == y:
                slack = need.group * (cost - _mean(inside, b, e, need, price, seen, c, y))
                if slack >= 0.0:
                    break
                out[c] = min(out[c], slack)


@njit(**INNER)
def _lowest(inside, b, e, lattice, level):
    """Whether no column of some cells agrees a level below its own: else a cheaper node has the same class."""
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
def _awake(inside, b, e, active, count, group):
    """Rows of active cells, K at most."""
    awake = np.int64(0)
    for i in range(b, e):
        if active[inside[i]]:
            awake += count[inside[i]]
            if awake >= group:
                break
    return np.float64(min(awake, group))


@njit(**INNER)
def _lower(inside, b, e, need, prices, asleep, dearest, out):
    """Lowers ``out`` to the least slack with each cell's row, which if it is not among the K dearest replaces the one
    of its own value, or else the cheapest; dearest (cost, sum, K-th, share, values, prices)."""
    cost, dear, kth, share, seen, high = dearest
    for i in range(b, e):
        c = inside[i]
        if asleep and not prices.active[c]:
            continue
        with_own = dear
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
    tight  ``Tight``; or None, with which TIGHT_CLASSES and EXCESS are not compiled
    fixed int64[f]  levels of the first f columns
    budget int64  cells it may look at; returns how many are left, below 0 when it gave up (out is then too high)
    mode  CHEAPEST            out = cost c of the cheapest class that counts
          LEAST_SLACK         out = least slack K c - (price + prices of the K - 1 dearest others)
          SHARED_SLACK        the same for active cells, divided by min(K, active rows of the class)
          LEAST_AT_NODE       out stays as it is; at_node float64[nodes], in mixed radix of the levels in the order of
                              ``columns``, is lowered to the least K c - (K dearest prices) of the node's classes that
                              count and have one below some out
          TIGHT_CLASSES       out stays as it is; every class that counts, once, and has K c - K (the dearest mean)
                              below some out is written to ``tight``, with its dearest cells; -1 when there is no room
          SLACK_WITH_VALUES   out = least K c - K (the dearest mean of K rows or more, the cell's among them, with
                              distinct[0] values of column 0), but of a class without any that is below some out
          EXCESS              out stays as it is, at 0; at_node[0] rises, for every class that counts, once, by the most
                              by which K rows or more, with distinct[0] values of column 0, are above its cost, where
                              that is above 0

    A class of the first columns is left with everything below it when it is too small, when it is the class of a lower
    level again, or when its cost so far and its K dearest prices show that no class within it lowers any out: cost only
    grows, prices and active rows only fall, on the way down.  O(nodes m d) at worst; O(m d) space.
    """
    height, columns = lattice.height, lattice.columns
    sensitive, values, count, least, distinct, group, per_value = need
    out, at_node = least_of
    price, order, active = prices
    m, s, d = count.size, distinct.size, columns.size
    kept = 1
    for j in range(s):
        kept = max(kept, values[j])
    work = _unsplit(lattice, order)
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
    while p >= 0:
        if turn[p] == parts[p]:  # split the class by the next level of its column
            level[p] = max(level[p] + 1, fixed[p] if p < fixed.size else 0)
            if level[p] == height[columns[p]] or (p < fixed.size and level[p] > fixed[p]):
                p -= 1
                continue
            budget -= last[p] - first[p]
            if budget < 0:
                return budget
            _split(lattice, count, least, work, p)
            continue
        b, e, here_cost = work.begin[p, turn[p]], work.end[p, turn[p]], work.cost[p, turn[p]]
        turn[p] += 1
        inside = cells[p + 1]
        dear, kth, share, bar = 0.0, 0.0, 1.0, here_cost
        if mode != CHEAPEST:
            if mode == SHARED_SLACK:
                share = _awake(inside, b, e, active, count, group)
                if share == 0.0:
                    continue
            dear, kth = _dearest(inside, b, e, need, price, seen, high)
            bar = group * here_cost - dear
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
            if mode in (TIGHT_CLASSES, EXCESS) and not _lowest(inside, b, e, lattice, level):
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
        _lower(inside, b, e, need, prices, mode == SHARED_SLACK, (here_cost, dear, kth, share, seen, high), out)
    return budget


class CloseShares(NamedTuple):
    """What t-closeness asks of a group.

    value int64[m]      sensitive value of each cell;  count int64[m]  its rows
    share float64[s]    of each value in the table
    apart float64[s, s] how far two values are from each other; empty where all are 1 apart (equal distance)
    t float64, least int64  the largest distance and the fewest rows
    counted int64       with the equal distance, groups of up to so many rows are looked at with whole rows
    """

    value: np.ndarray
    count: np.ndarray
    share: np.ndarray
    apart: np.ndarray
    t: float
    least: int
    counted: int


class _Dear(NamedTuple):
    """The dearest rows of one class.

    pay float64[s]      what each value pays at most
    many, rows int64[s] dear rows of each value, and all
    sums float64[s, ..]  of the dearest 0, 1, 2, .. rows of each value
    part float64[s + 1] of a row, by which the first beyond the share of its value exceeds it
    """

    pay: np.ndarray
    many: np.ndarray
    rows: np.ndarray
    sums: np.ndarray
    part: np.ndarray


@njit(**INNER)
def _mean_of_close(inside, b, e, price, asked, pay):
    """(the largest mean price of shares within t, what rows of any value may pay without raising it); the mean is
    infinite where the values of the class reach for no shares within t.  Cells by falling price.

    pay float64[s]  out: what rows of each value may pay; the same for all values that are not there

    Shares within t are the table's, of which no more than t was carried to other values, each part as far as these are
    apart.  So for any multiplier z, z * t and the table's shares, each at the value where price less z times how far it
    is are largest, are no less than the mean.  With the equal distance taking the dearest values first finds the best.
    """
    share, s, n = asked.share, asked.share.size, 0
    for v in range(s):
        pay[v] = -np.inf
    total, mean = 0.0, 0.0
    for i in range(b, e):
        v = asked.value[inside[i]]
        if pay[v] > -np.inf:
            continue
        high = price[inside[i]]
        pay[v] = high
        n += 1
        if asked.apart.size == 0:
            more = min(share[v] + (asked.t if n == 1 else 0.0), 1.0 - total)
            total += more
            mean += more * high
            if total >= 1.0 - TINY:
                for w in range(s):
                    pay[w] = max(pay[w], high)
                return mean, high
        elif n == s:
            break
    if asked.apart.size == 0:
        return np.inf, 0.0
    return _by_multiplier(price[inside[b]], asked, pay), -np.inf


@njit(**INNER)
def _mean_of_dearest(inside, b, e, price, asked):
    """(mean price of the dearest rows of a class, as many as a group has at least, the least of these prices)."""
    left, total = asked.least, 0.0
    for i in range(b, e):
        c = inside[i]
        many = min(asked.count[c], left)
        total += many * price[c]
        left -= many
        if left == 0:
            return total / asked.least, price[c]
    return np.inf, 0.0


@njit(**INNER)
def _lowers(inside, b, e, price, more, out):
    """Whether some cell may pay less than before if it pays so much more than its price."""
    i = b
    while i < e and out[inside[i]] <= price[inside[i]] + more:
        i += 1
    return i < e


@njit(**INNER)
def _by_multiplier(dearest, asked, pay):
    """The largest mean by the best multiplier, from the dearest price of each value in ``pay``, -inf where it has no
    row; what each value pays out.  Any multiplier proves."""
    share, apart, s = asked.share, asked.apart, asked.share.size
    high = pay.copy()
    far, lowest, nearest = 0.0, dearest, 1.0
    for v in range(s):
        least = np.inf
        for w in range(s):
            if high[w] > -np.inf:
                least = min(least, apart[v, w])
            if apart[v, w] > 0.0:
                nearest = min(nearest, apart[v, w])
        far += share[v] * least
        if high[v] > -np.inf:
            lowest = min(lowest, high[v])
    if far > asked.t:
        return np.inf
    a, b = 0.0, (dearest - lowest) / nearest + TINY
    best, multiplier, x, y = np.inf, 0.0, b - GOLDEN * b, GOLDEN * b
    at_x, at_y = _with_multiplier(x, asked, high), _with_multiplier(y, asked, high)
    for _ in range(LOOKS):
        if at_x < best:
            best, multiplier = at_x, x
        if at_y < best:
            best, multiplier = at_y, y
        if at_x <= at_y:
            b, y, at_y = y, x, at_x
            x = b - GOLDEN * (b - a)
            at_x = _with_multiplier(x, asked, high)
        else:
            a, x, at_x = x, y, at_y
            y = a + GOLDEN * (b - a)
            at_y = _with_multiplier(y, asked, high)
    free = _with_multiplier(0.0, asked, high)
    if free < best:
        best, multiplier = free, 0.0
    for v in range(s):
        pay[v] = -np.inf
        for w in range(s):
            pay[v] = max(pay[v], high[w] - multiplier * apart[v, w])
    return best


@njit(**INNER)
def _with_multiplier(multiplier, asked, high):
    """The mean that a multiplier allows."""
    total = multiplier * asked.t
    for v in range(asked.share.size):
        if asked.share[v] > 0.0:
            most = -np.inf
            for w in range(asked.share.size):
                most = max(most, high[w] - multiplier * asked.apart[v, w])
            total += asked.share[v] * most
    return total


@njit(**INNER)
def _dear_rows(inside, b, e, price, asked, dear):
    """The dearest rows of each value of a class into ``dear``; how many rows it has."""
    many, rows, sums, all_rows = dear.many, dear.rows, dear.sums, 0
    most = sums.shape[1] - 1
    for v in range(many.size):
        many[v], rows[v], sums[v, 0] = 0, 0, 0.0
    for i in range(b, e):
        c = inside[i]
        v = asked.value[c]
        rows[v] += asked.count[c]
        all_rows += asked.count[c]
        for _ in range(min(asked.count[c], most - many[v])):
            sums[v, many[v] + 1] = sums[v, many[v]] + price[c]
            many[v] += 1
    return all_rows


@njit(**INNER)
def _fits(asked, dear, n):
    """Whether n rows of a class can be within t: first those that exceed no share, then those that do by least."""
    part, need, over, some, others = dear.part, n, 0.0, 0, 0
    for v in range(asked.share.size):
        free = np.int64(asked.share[v] * n + SLIGHT)
        need -= min(dear.rows[v], free)
        if dear.rows[v] > free:
            beyond, x = 1.0 - max(asked.share[v] * n - free, 0.0), some
            others += dear.rows[v] - free - 1
            while x > 0 and part[x - 1] > beyond:
                part[x] = part[x - 1]
                x -= 1
            part[x] = beyond
            some += 1
    if need > some + others:
        return False
    for x in range(min(need, some)):
        over += part[x]
    return over + max(need - some, 0) <= asked.t * n + SLIGHT


@njit(**INNER)
def _of_rows(asked, dear, n, way, whole):
    """What n rows pay in the mean at most, by a level and a multiplier.

    A row pays what it has above the level, less the multiplier times what it is beyond the share of its value: with
    ``whole`` so many rows exactly, otherwise n or more, of which every one has its part.  Returns (mean, rows too many,
    rows too far above shares).
    """
    level, multiplier = way
    total, took, over, sums = 0.0, 0.0, 0.0, dear.sums
    for v in range(asked.share.size):
        held = asked.share[v] * n
        free = np.int64(held + SLIGHT)
        left = max(held - free, 0.0)
        a, b = 0, min(dear.many[v], free)
        while a < b:
            x = (a + b) // 2
            if sums[v, x + 1] - sums[v, x] > level:
                a = x + 1
            else:
                b = x
        total += sums[v, a] - level * a
        took += a
        if a < free:
            continue
        beyond = 1.0 - left
        while a < dear.many[v]:
            above = sums[v, a + 1] - sums[v, a] - level
            if whole or a > free:
                above -= multiplier * beyond
                if above <= 0.0:
                    break
                total += above
                took += 1.0
                over += beyond
            else:
                total += left * max(above, 0.0) + beyond * max(above - multiplier, 0.0)
                took += left * (above > 0.0) + beyond * (above > multiplier)
                over += beyond * (above > multiplier)
            beyond = 1.0
            a += 1
    return level + multiplier * asked.t + total / n, took - n, over - asked.t * n


@njit(**INNER)
def _lowered(asked, dear, n, way, whole, bar):
    """(mean, level, multiplier) after some moves that lower the mean, until it is no more than the bar.

    Any level proves, and any multiplier of at least 0.
    """
    best, more, over = _of_rows(asked, dear, n, way, whole)
    step = 0.25 * max(way[1], 1e-3)
    for _ in range(TRIES if whole else LAST_TRIES):
        if best <= bar:
            break
        level, multiplier = way
        up, dearer = np.sign(more) * step, (step if over > 0.0 else -step)
        found = False
        for kind in range(3):
            if kind == 0:
                other = (level + up, multiplier)
            elif kind == 1:
                other = (level, max(0.0, multiplier + dearer))
            else:
                other = (level - dearer, max(0.0, multiplier + dearer))
            value, rows, beyond = _of_rows(asked, dear, n, other, whole)
            if value < best:
                best, more, over, way, found = value, rows, beyond, other, True
        if not found:
            step *= 0.5
    return best, way[0], way[1]


@njit(**INNER)
def _mean_of_whole(inside, b, e, price, asked, low, dear):
    """(the largest mean price of whole rows within t, what rows may pay without raising it), -inf without any."""
    rows = _dear_rows(inside, b, e, price, asked, dear)
    best, lowest, way = -np.inf, np.inf, (low, price[inside[b]] - low)
    for n in range(asked.least, min(asked.counted, rows) + 1):
        if _fits(asked, dear, n):
            found, level, multiplier = _lowered(asked, dear, n, way, True, best)
            way, best, lowest = (level, multiplier), max(best, found), min(lowest, level)
    if rows > asked.counted:
        found, level, multiplier = _lowered(asked, dear, max(asked.counted + 1, asked.least), way, False, best)
        best, lowest = max(best, found), min(lowest, level)
    return best, lowest


@njit(cache=True, nogil=True)
def close_sweep(lattice, asked, price, order, fixed, budget, out):
    """Prices under which no group within t of any class exceeds its loss, made of any prices; one pass over the lattice
    nodes that begin with some levels.

    lattice, asked  ``CellsInLattice``, ``CloseShares``
    price float64[m], order int64[m]  any numbers, and the cells by falling price
    fixed int64[f], budget int64      as of ``sweep``, which tells what is returned
    out float64[m]  lowered to what each cell may pay in every class.  With x the largest mean price of a group in a
                    class, that is the loss of the class less x, plus the cell's own price or a higher one that leaves
                    x as it is

    O(nodes m d) at worst, and what whole rows take; O(m d) space.
    """
    work, s, p, d = _unsplit(lattice, order), asked.share.size, 0, lattice.columns.size
    cells, first, last, level, parts, turn, spent = work[:7]
    pay, most = np.empty(s), max(asked.counted + 1, asked.least)
    dear = _Dear(pay, np.empty(s, np.int64), np.empty(s, np.int64), np.empty((s, most + 1)), np.empty(s + 1))
    while p >= 0:
        if turn[p] == parts[p]:  # split the class by the next level of its column
            level[p] = max(level[p] + 1, fixed[p] if p < fixed.size else 0)
            if level[p] == lattice.height[lattice.columns[p]] or (p < fixed.size and level[p] > fixed[p]):
                p -= 1
                continue
            budget -= last[p] - first[p]
            if budget < 0:
                return budget
            _split(lattice, asked.count, asked.least, work, p)
            continue
        b, e, loss = work.begin[p, turn[p]], work.end[p, turn[p]], work.cost[p, turn[p]]
        turn[p] += 1
        inside = cells[p + 1]
        # A class within this one has no smaller loss and no dearer groups.
        dearest, lowest = _mean_of_dearest(inside, b, e, price, asked)
        if not _lowers(inside, b, e, price, loss - dearest, out):
            continue
        mean, low = _mean_of_close(inside, b, e, price, asked, pay)
        if dearest < mean < np.inf:
            mean, low = dearest, lowest
            for v in range(s):
                pay[v] = lowest
        if mean == np.inf or not _lowers(inside, b, e, price, loss - mean, out):
            continue
        if p + 1 < d:
            p += 1
            first[p], last[p], spent[p], level[p], parts[p], turn[p] = b, e, loss, -1, 0, 0
            continue
        if not _lowest(inside, b, e, lattice, level):
            continue
        best = np.inf
        if asked.counted > 0 and asked.apart.size == 0:
            best, low = _mean_of_whole(inside, b, e, price, asked, low, dear)
            if best == -np.inf:  # it holds no eligible group
                continue
        for i in range(b, e):
            c = inside[i]
            if best < mean:
                out[c] = min(out[c], max(price[c], low) + loss - best)
            else:
                out[c] = min(out[c], max(price[c], pay[asked.value[c]]) + loss - mean)
    return budget
