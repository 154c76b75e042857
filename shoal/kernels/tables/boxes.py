"""Raises of row prices against all boxes of near rows, and the excess of whole classes of boxes (docs/boxes.md).

A box has a set, a range, or a node of a hierarchy for each column. The boxes of one row all contain its values, so in a
column another row requires one more value of a set, one side of a range widened, or a higher node on one path. Each of
these is an axis, and a box has a level on every axis.

Under conditions on shares of values, whole classes are examined too. Give the rows of a group of K rows or more equal
weights with sum 1. No row has more than 1/K, and the values have shares that the models allow. Of all such weights of
the rows of a box, those of the largest mean price are found by taking the most expensive rows first. Each row pays the
most by which such a mean exceeds the loss of a box with the row. Every box is examined from its most expensive row, by
branch and bound: the box takes in a row around it, or never does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.box_separation import put_back, search_room, take
from shoal.kernels.tables.box_values import asks, more_with
from shoal.kernels.tables.eligible import stable_argsort
from shoal.kernels.tables.near_cells import AT_ONCE, EQUAL, losses_with, pair_loss, part_of, places, write_down

TINY = 1e-12
LEAST = 1e-14  # least weight of a row
DEEP = 48  # limit of the rows that the box of a class takes in one by one


class BoxWorkspace(NamedTuple):
    """Arrays of the search for one cell: w near cells, d columns, s open boxes, a axes (at most w d).

    start int64[w + 1], axis int64[w d], amount float64[w d]  what each near cell requires on each axis
    name int64[a, 2]      column of an axis, and -2 for a higher node or end, -1 for a lower end, or a value of a set
    level float64[s, a]   level of a box on each axis;  live bool[s, w] whether a cell can be in it
    paid, bound, where float64[s]  loss of a box, bound of the slack in boxes with all of it, further loss at this bound
    one, at int64[s]      nearest cell outside a box, and its most expensive requirement;  open int64[s] the open boxes
    asked, rest, share float64[w], order int64[w], held int64[a]  of the box being examined
    seen int64[..] values;  on, off, ons, offs float64[K] highest prices
    """

    start: np.ndarray
    axis: np.ndarray
    amount: np.ndarray
    name: np.ndarray
    level: np.ndarray
    live: np.ndarray
    paid: np.ndarray
    bound: np.ndarray
    where: np.ndarray
    one: np.ndarray
    at: np.ndarray
    open: np.ndarray
    asked: np.ndarray
    rest: np.ndarray
    share: np.ndarray
    order: np.ndarray
    held: np.ndarray
    seen: np.ndarray
    on: np.ndarray
    off: np.ndarray
    ons: np.ndarray
    offs: np.ndarray


@njit(**INNER)
def _workspace(w, d, distinct, group, nodes):
    """The arrays for searches of ``nodes`` boxes each."""
    s, a, whole = nodes + 2, w * d, np.int64
    return BoxWorkspace(
        np.empty(w + 1, whole), np.empty(a, whole), np.empty(a), np.empty((a, 2), whole), np.empty((s, a)),
        np.empty((s, w), np.bool_), np.empty(s), np.empty(s), np.empty(s), np.empty(s, whole), np.empty(s, whole),
        np.empty(s, whole), np.empty(w), np.empty(w), np.empty(w), np.empty(w, whole), np.empty(a, whole),
        np.empty(distinct + 1, whole), np.empty(group + 1), np.empty(group + 1), np.empty(group + 1),
        np.empty(group + 1),
    )  # fmt: skip


class Prices(NamedTuple):
    """Prices, and which of them can rise.

    price float64[m], active bool[m];  base float64[m]  lower bound of the loss of every possible box of a cell
    limit float64[m]  bound of the rise by boxes with a cell that is not near
    """

    price: np.ndarray
    base: np.ndarray
    active: np.ndarray
    limit: np.ndarray


@njit(cache=True, nogil=True)
def raises(cells, near, first, last, nodes, prices, out):
    """A feasible rise of each active cell's price, so that no box has K rows whose prices exceed K times its loss.

    The rise is at most the least of (K c - the sum of K prices) / the active ones among them, over all boxes of loss c
    that contain the cell, K rows, and ``distinct`` values, and over any K of its rows that include the cell's. From
    prices of 0, all active, it is the loss of the cheapest box.

    cells, near int32[m, w]  as for and from ``near_cells``
    nodes int64       limit of the search for one cell; when it is reached, the least bound still open counts
    out float64[m]    of the active cells first .. last - 1
    O((last - first) nodes (w (d + w + K) + nodes)).
    """
    losses, at, shape, code = cells.losses, cells.at, cells.shape, cells.code
    d, w = code.shape[1], near.shape[1]
    work = _workspace(w, d, cells.distinct, cells.group, nodes)
    # For each cell i: the requirements of the near cells on the axes, which are numbered as they occur; then a quick
    # bound, the cells that can improve it, and the search.
    for i in range(first, last):
        if not prices.active[i]:
            continue
        n, e, axes = 0, 0, 0
        while n < w and near[i, n] >= 0:
            work.start[n] = e
            for j in range(d):
                a, b = code[i, j], code[near[i, n], j]
                more = 0.0 if a == b else pair_loss(cells, j, a, b)
                if more <= 0.0:
                    continue
                side = np.int64(-2)
                if cells.sets[j]:
                    side = np.int64(b)
                elif shape[j] == 1 and losses[at[j] + b] < losses[at[j] + a]:
                    side = np.int64(-1)
                g = 0
                while g < axes and (work.name[g, 0] != j or work.name[g, 1] != side):
                    g += 1
                if g == axes:
                    work.name[g, 0], work.name[g, 1] = j, side
                    axes += 1
                work.axis[e], work.amount[e] = g, more
                e += 1
            n += 1
        work.start[n] = e
        least = min(prices.limit[i], _greedy(near[i, :n], cells, i, prices, axes, work))
        n = _within(near[i, :n], cells, i, prices, least, work)
        out[i] = _least_slack(near[i, :n], cells, i, nodes, prices, least, axes, work)


@njit(**INNER)
def _greedy(near, cells, i, prices, axes, work):
    """The slack for each active row in the box of a cell and its nearest rows, as many as a group needs."""
    count, value, group, level = cells.count, cells.value, cells.group, work.level[0]
    for g in range(axes):
        level[g] = 0.0
    rows, values, paid = min(count[i], group), 1, 0.0
    taken, active = rows * prices.price[i], rows
    work.seen[0] = value[i]
    # The nearest rows come first, but rows are reserved for values that are still missing.
    for x in range(near.size):
        if rows >= group and values >= cells.distinct:
            break
        c = near[x]
        known = values
        if values < cells.distinct:
            values = _seen(work.seen, values, value[c])
        some = min(count[c], group - rows - (cells.distinct - values))
        if values > known:
            some = max(some, 1)
        if some <= 0:
            continue
        for e in range(work.start[x], work.start[x + 1]):
            more = work.amount[e] - level[work.axis[e]]
            if more > 0.0:
                paid += more
                level[work.axis[e]] = work.amount[e]
        rows += some
        taken += some * prices.price[c]
        if prices.active[c]:
            active += some
    return (group * paid - taken) / active if rows == group and values >= cells.distinct else np.inf


@njit(**INNER)
def _within(near, cells, i, prices, least, work):
    """The number of near cells, nearest first, that can be in a box with less slack."""
    highest, price = prices.price[i], prices.price
    for x in range(near.size):
        highest = max(highest, price[near[x]])
    for x in range(near.size):
        asked = 0.0
        for e in range(work.start[x], work.start[x + 1]):
            asked += work.amount[e]
        if asked - (price[i] + (cells.group - 1) * highest) / cells.group >= least:
            return x
    return near.size


@njit(**INNER)
def _admit(top, held, work, price, times):
    """Insert up to ``times`` rows among the ``work`` highest prices, which fall; the number of prices held."""
    for _ in range(times):
        if held == work:
            if work == 0 or price <= top[held - 1]:
                return held
            y = held - 1
        else:
            y = held
            held += 1
        while y > 0 and top[y - 1] < price:
            top[y] = top[y - 1]
            y -= 1
        top[y] = price
    return held


@njit(**INNER)
def _seen(seen, values, value):
    """The number of values after one more; a new value is stored behind the others."""
    for v in range(values):
        if seen[v] == value:
            return values
    seen[values] = value
    return values + 1


@njit(**INNER)
def _look(work, s, near, cells, i, prices, axes):
    """Examine box s: the requirement to branch on, and a bound of the slack for each active row in larger boxes."""
    count, value, distinct, group = cells.count, cells.value, cells.distinct, cells.group
    paid, alive, values = work.paid[s], 0, 1
    level, live = work.level[s], work.live[s]
    work.seen[0] = value[i]
    for g in range(axes):
        work.held[g] = 0 if work.name[g, 1] >= 0 else group - 1  # rows that can share the cost of a set's value
    for x in range(near.size):
        if live[x]:
            for e in range(work.start[x], work.start[x + 1]):
                work.held[work.axis[e]] += count[near[x]]
    # The cells still allowed, sorted by what they require beyond the box; ``part`` divides this by the cells that
    # require something on the same axis.
    for x in range(near.size):
        if not live[x]:
            continue
        needs, part = 0.0, 0.0
        for e in range(work.start[x], work.start[x + 1]):
            more = work.amount[e] - level[work.axis[e]]
            if more > 0.0:
                needs += more
                part += more / max(min(group - 1, work.held[work.axis[e]]), 1)
        rest = max(needs, prices.base[near[x]] - paid)
        work.asked[x], work.rest[x], work.share[x] = needs, rest, part
        if needs <= TINY and values < distinct:
            values = _seen(work.seen, values, value[near[x]])
        y = alive
        alive += 1
        while y > 0 and work.rest[work.order[y - 1]] > rest:
            work.order[y] = work.order[y - 1]
            y -= 1
        work.order[y] = x
    work.one[s] = work.at[s] = -1
    for y in range(alive):  # the nearest cell outside the box, of a new value if the box lacks values
        x = work.order[y]
        if work.asked[x] > TINY and (values == distinct or _seen(work.seen, values, value[near[x]]) > values):
            work.one[s], dearest = x, 0.0
            for e in range(work.start[x], work.start[x + 1]):
                more = work.amount[e] - level[work.axis[e]]
                if more > dearest:
                    dearest, work.at[s] = more, e
            break
    work.bound[s], work.where[s] = _ratio(work, s, alive, near, cells, i, prices)


@njit(**INNER)
def _ratio(work, s, alive, near, cells, i, prices):
    """The least slack for each active row in boxes with all of box s, and the further loss at which it occurs.

    A box that loses t more contains no cell that requires more than t, and its cells share their requirements.
    """
    count, value, distinct, group = cells.count, cells.value, cells.distinct, cells.group
    price, active, most = prices.price, prices.active, prices.limit[i]
    paid, order, on, off, ons, offs = work.paid[s], work.order, work.on, work.off, work.ons, work.offs
    rows, values, t, best = count[i], 1, max(prices.base[i] - paid, 0.0), np.inf
    where = t
    work.seen[0] = value[i]
    alike = min(count[i] - 1, group - 1)
    held, others = _admit(on, 0, group - 1, price[i], alike), 0
    _admit(ons, 0, group - 1, price[i], alike)
    highest = price[i]
    for x in range(alive):
        highest = max(highest, price[near[order[x]]])
    y, new = 0, True
    # For each further loss t at which a cell becomes possible: the K - 1 most expensive rows so far, with each number
    # of active ones among them, give the least slack at this t.
    while True:
        while y < alive and work.rest[order[y]] <= t:
            x = order[y]
            y += 1
            c = near[x]
            new = new or rows < group or values < distinct
            rows += count[c]
            times = min(count[c], group - 1)
            shared = price[c] - group * work.share[x]
            if active[c]:
                new = new or held < group - 1 or price[c] > on[held - 1] or shared > ons[held - 1]
                _admit(ons, held, group - 1, shared, times)
                held = _admit(on, held, group - 1, price[c], times)
            else:
                new = new or others < group - 1 or price[c] > off[others - 1] or shared > offs[others - 1]
                _admit(offs, others, group - 1, shared, times)
                others = _admit(off, others, group - 1, price[c], times)
            if values < distinct:
                values = _seen(work.seen, values, value[c])
        whole = group * (paid + t) - price[i]
        if (whole - (group - 1) * highest) / group >= min(best, most):
            if whole >= (group - 1) * highest and most <= best:
                best = min(best, max((whole - (group - 1) * highest) / group, most))
            break
        if new and rows >= group and values >= distinct:
            new = False
            few = max(group - 1 - others, 0)  # least number of active ones
            taken, sharing = 0.0, 0.0
            for z in range(few):
                taken += on[z]
                sharing += ons[z]
            for z in range(group - 1 - few):
                taken += off[z]
                sharing += offs[z]
            for a in range(few, held + 1):
                if a > few:
                    taken += on[a - 1] - off[group - 1 - a]
                    sharing += ons[a - 1] - offs[group - 1 - a]
                slack = max(whole - taken, group * paid - price[i] - sharing) / (a + 1)
                if slack < best:
                    best, where = slack, t
        if y >= alive:
            break
        t = work.rest[order[y]]
    return best, where


@njit(**INNER)
def _least_slack(near, cells, i, nodes, prices, limit, axes, work):
    """Branch and bound, least bound first: a box takes in what its nearest other cell requires on an axis, or never."""
    work.paid[0] = 0.0
    for g in range(axes):
        work.level[0, g] = 0.0
    for x in range(near.size):
        work.live[0, x] = True
    _look(work, 0, near, cells, i, prices, axes)
    work.open[0] = 0
    opened, used = 1, 1
    # The box with the least bound branches: in one box the axis has the level that its nearest cell requires, in the
    # other the cells that require so much are excluded.
    while opened > 0:
        least = 0
        for y in range(opened):
            if work.bound[work.open[y]] < work.bound[work.open[least]]:
                least = y
        s = work.open[least]
        if work.bound[s] >= limit:
            return limit
        if work.where[s] <= TINY or work.one[s] < 0 or used > nodes:
            return work.bound[s]
        g, amount, before, new = work.axis[work.at[s]], work.amount[work.at[s]], work.bound[s], used
        used += 1
        work.paid[new] = work.paid[s] + (amount - work.level[s, g])
        for z in range(axes):
            work.level[new, z] = work.level[s, z]
        work.level[new, g] = amount
        for x in range(near.size):
            work.live[new, x] = work.live[s, x]
            for e in range(work.start[x], work.start[x + 1]):
                if work.axis[e] == g and work.amount[e] >= amount:
                    work.live[s, x] = False
        opened -= 1
        work.open[least] = work.open[opened]
        for box in (s, new):
            _look(work, box, near, cells, i, prices, axes)
            work.bound[box] = max(work.bound[box], before)
            if work.bound[box] < limit:
                work.open[opened] = box
                opened += 1
    return limit


class ClassesExceeded(NamedTuple):
    """The excess of boxes, and a class for each anchor.

    excess float64[m]      the most by which a mean exceeds the loss of a box with the cell's rows
    found  float64[x]      excess of the class recorded for each anchor; -1 for none
    loss   float64[x]      loss of its box
    cell int32[x, w], weight float64[x, w]   its cells, padded with -1, and their weights
    """

    excess: np.ndarray
    found: np.ndarray
    loss: np.ndarray
    cell: np.ndarray
    weight: np.ndarray


class _ClassWorkspace(NamedTuple):
    """Arrays for the boxes around one anchor, in addition to those of ``BoxSearch``.

    open bool[DEEP, r]   whether a class can contain rows of each candidate of a depth: those no more expensive than the
                         anchor's that were not excluded before
    allowed float64[DEEP]  bound of the excess in the unexplored part of each depth
    paid float64[r]      what each candidate pays
    weight float64[r], held float64[v]   of a class, by candidate and by value
    """

    open: np.ndarray
    allowed: np.ndarray
    paid: np.ndarray
    weight: np.ndarray
    held: np.ndarray


@njit(**INNER)
def _best(cells, search, order, net, many, work):
    """The largest mean of ``net`` over weights of the candidates ``order``, -inf if there are none; writes the weights.

    Each value has a largest share, and under t-closeness no set of values is above its share by more than t. Both are
    bases of a polymatroid, so taking the candidates greedily by ``net`` is optimal (Edmonds 1970).
    """
    shares, total, mean, above = cells.shares, 0.0, 0.0, 0.0
    held, weight = work.held, work.weight
    equal = shares.kind == EQUAL
    held[:] = 0.0
    for x in range(many):
        weight[x] = 0.0
    # Each candidate gets the largest weight within all limits: its rows, the rest of 1, the share of its value, and the
    # rest of t.
    for x in range(many):
        y = order[x]
        c = search.cell[y]
        v = cells.value[c]
        more = min(cells.count[c] / cells.group, 1.0 - total, shares.high[v] - held[v])
        if equal:
            own = max(held[v] - shares.table[v], 0.0)
            more = min(more, shares.number - (above - own) - (held[v] - shares.table[v]))
        if more <= LEAST:  # a rounding error of a limit, which every row of the value would get again
            continue
        if equal:
            above -= own
        held[v] += more
        if equal:
            above += max(held[v] - shares.table[v], 0.0)
        total += more
        mean += more * net[y]
        weight[x] = more
        if total >= 1.0 - TINY:
            return mean / total
    return -np.inf if total < 1.0 - 1e-9 else mean / total


@njit(cache=True, nogil=True)
def exceeded(cells, index, first, last, multipliers, nodes, out):
    """The excess of all boxes whose most expensive row is one of order[first .. last - 1]; returns the look-ups.

    nodes int64 limit of the search of one anchor; when it is reached, all rows around pay the bounds of the open boxes
    """
    price, order, rank = multipliers.price, multipliers.order, multipliers.rank
    m, d = cells.code.shape
    axes, looks = 0, 0
    offset = np.empty(d, np.int64)
    for j in range(d):
        offset[j] = axes
        axes += cells.width[j] if cells.sets[j] else 2
    search = search_room(m, d, DEEP, axes)
    place, size = places(cells)
    own, distance = np.empty(max(1, size)), np.empty(index.center.shape[1])
    scratch = np.empty(min(AT_ONCE, m))
    work = _ClassWorkspace(
        np.empty((DEEP + 1, m), np.bool_),
        np.empty(DEEP + 1),
        np.empty(m),
        np.empty(m),
        np.empty(cells.shares.high.size),
    )
    # The anchor is the most expensive row of its boxes, which contain only cells that lose less with it than its price.
    # If a more expensive cell is in every box with the anchor, the anchor has no box.
    for x in range(first, last):
        a = order[x]
        out.found[x - first] = -1.0
        if price[a] <= 0.0:
            continue
        write_down(cells, place, index.column, a, own)
        losses_with(cells, place, own, index.column, a, index.center, 0, distance)
        many, clear = 0, True
        for b in range(distance.size):
            begin, end = part_of(index, b, distance[b], price[a])
            looks += (end - begin) * d
            while begin < end and clear:
                here = scratch[: min(end - begin, scratch.size)]
                losses_with(cells, place, own, index.column, a, index.column, begin, here)
                for z in range(here.size):
                    c = begin + z
                    if here[z] >= price[a]:
                        continue
                    if here[z] <= 0.0 and rank[c] < rank[a]:
                        clear = False  # every box with the anchor contains a more expensive row
                        break
                    search.cell[many], search.loss[many] = c, here[z]
                    many += 1
                begin += here.size
        if not clear:
            continue
        asks(cells, search, a, many, offset, -1)
        for y in range(many):
            search.price[y] = price[search.cell[y]]
        looks += _classes(cells, search, work, many, (a, x - first), rank, nodes, out)
    return looks


@njit(**INNER)
def _classes(cells, search, work, size, anchor, rank, nodes, out):
    """The boxes around one anchor: writes what rows pay, and the class of the largest excess; returns the look-ups."""
    (a, place), looks, seen, depth, own, best = anchor, 0, 0, 0, 0.0, TINY
    for y in range(size):
        search.member[0, y], search.joined[0, y], work.paid[y] = y, search.loss[y], 0.0
        work.open[0, y] = rank[search.cell[y]] >= rank[a]
        if search.cell[y] == a:
            own = search.price[y]
    search.many[0], search.box[0], search.saved[0] = size, 0.0, 0
    new = True
    # Depth first: the excess of the box itself, then the cell to branch on, inside the box or outside. When the search
    # ends early, the open boxes count with their bounds.
    while depth >= 0:
        if new:
            seen += 1
            best = _itself(cells, search, work, depth, (place, best), out)
        pick = _allowed(cells, search, work, depth)
        looks += 4 * search.many[depth]
        if pick >= 0 and (seen >= nodes or depth == DEEP):
            most = work.allowed[depth]
            for z in range(depth):
                most = max(most, work.allowed[z])
            for y in range(size):
                work.paid[y] = max(work.paid[y], most)
            for z in range(depth - 1, -1, -1):
                put_back(search, z)
            break
        if pick < 0:
            if depth > 0:
                put_back(search, depth - 1)
            depth -= 1
            new = False
            continue
        new = _taken_in(search, work, depth, pick, own)
        looks += search.many[depth]
        if new:
            depth += 1
    for y in range(size):
        c = search.cell[y]
        if rank[c] >= rank[a]:
            out.excess[c] = max(out.excess[c], work.paid[y])
    return looks * cells.code.shape[1]


@njit(**INNER)
def _itself(cells, search, work, depth, known, out):
    """The excess of the class of largest mean in the box of this depth over its loss, which all its rows pay."""
    (place, best), box, member = known, search.box[depth], search.member[depth]
    order, key, inside = np.empty(search.many[depth], np.int64), np.empty(search.many[depth]), 0
    for x in range(search.many[depth]):
        if search.joined[depth, x] <= box + TINY:
            order[inside], key[inside] = member[x], -search.price[member[x]]
            inside += 1
    order = order[stable_argsort(key[:inside])]
    excess = _best(cells, search, order, search.price, inside, work) - box
    if excess <= TINY:
        return best
    for x in range(inside):
        work.paid[order[x]] = max(work.paid[order[x]], excess)
    if excess <= best:
        return best
    out.found[place], out.loss[place], w = excess, box, 0
    for x in range(inside):
        if work.weight[x] > 0.0 and w < out.cell.shape[1]:  # a recorded class guides the program and proves nothing
            out.cell[place, w], out.weight[place, w] = search.cell[order[x]], work.weight[x]
            w += 1
    out.cell[place, w:] = -1
    out.weight[place, w:] = 0.0
    return excess


@njit(**INNER)
def _allowed(cells, search, work, depth):
    """The bound of the excess of larger boxes, into ``work.allowed``; the candidate to take in next, -1 for none.

    It is -1 if every row that they can contain pays as much already. A box with several rows loses at least the mean of
    what boxes with each of them lose.
    """
    box, member, n = search.box[depth], search.member[depth], search.many[depth]
    where, key, some = np.empty(n, np.int64), np.empty(n), 0
    for x in range(n):
        if work.open[depth, x]:
            where[some], key[some] = x, search.joined[depth, x]
            some += 1
    least = _reached(cells, search, member, where, key, some, work)
    for x in range(some):
        y = member[where[x]]
        search.net[y] = search.price[y] - max(search.joined[depth, where[x]], least)
        key[x] = -search.net[y]
    where = where[stable_argsort(key[:some])]
    order = np.empty(some, np.int64)
    for x in range(some):
        order[x] = member[where[x]]
    work.allowed[depth] = _best(cells, search, order, search.net, some, work)
    pick, paid = -1, np.inf
    for x in range(some):
        paid = min(paid, work.paid[order[x]])
    if work.allowed[depth] <= max(paid, TINY):
        return pick
    for x in range(some):
        if search.joined[depth, where[x]] > box + TINY:
            if work.weight[x] > 0.0:
                return where[x]
            if pick < 0:
                pick = where[x]
    return pick


@njit(**INNER)
def _reached(cells, search, member, where, joined, many, work):
    """The least loss of a box that can contain a class, infinite if no candidates suffice.

    The rows suffice if, with the largest share of each value and t, their weights can sum to 1.
    """
    shares, equal, held = cells.shares, cells.shares.kind == EQUAL, work.held
    held[:] = 0.0
    all_rows, common = 0.0, 0.0
    turn = stable_argsort(joined[:many])
    for x in range(many):
        c = search.cell[member[where[turn[x]]]]
        v = cells.value[c]
        more = min(cells.count[c] / cells.group, shares.high[v] - held[v])
        if more <= 0.0:
            continue
        all_rows += more
        if equal:
            common += max(min(held[v] + more, shares.table[v]) - held[v], 0.0)
        held[v] += more
        if all_rows >= 1.0 - TINY and (not equal or common >= 1.0 - shares.number - TINY):
            return joined[turn[x]]
    return np.inf


@njit(**INNER)
def _taken_in(search, work, depth, pick, own):
    """The box with the candidate, one depth below; whether it exists, that is, contains no excluded row.

    The candidate is excluded from now on.
    """
    member, box, rows, below = search.member[depth], search.joined[depth, pick], 0, depth + 1
    take(search, depth, np.int64(member[pick]))
    search.box[below] = box
    for x in range(search.many[depth]):
        z = np.int64(member[x])
        joined = box + more_with(search, z)
        if joined <= box + TINY and not work.open[depth, x]:
            rows = -1
            break
        if joined < own:
            search.member[below, rows], search.joined[below, rows] = z, joined
            work.open[below, rows] = work.open[depth, x]
            rows += 1
    work.open[depth, pick] = False
    search.many[below] = rows
    if rows < 0:
        put_back(search, depth)
    return rows >= 0
