"""Row prices that no box exceeds: raised until each row lies in a box with as many rows as a group needs, all paid.

A box gives every column a set, a range or a node of a hierarchy.  The boxes of one row all hold its values, so what
another row asks of a column is one more value of a set, one side of a range widened, or a higher node on one path.
Each of these is an axis, and a box a level on every axis.

Where shares of values are asked, whole classes are looked at, too.  In a group of K rows or more, give each row the
same weight, all weights 1.  No row is above 1/K, and the values have shares that the models allow.  Among all such
weights of the rows of a box, those of the largest mean price are found by taking the dearest rows first.  Each row
pays the most by which such a mean exceeds the loss of a box with the row.  Every box is looked at from its dearest
row: branch and bound over the rows around it, which the box takes in or never does.
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
LEAST = 1e-14  # weight that a row may have
DEEP = 48  # rows that the box of a class takes in one by one, at most


class BoxWorkspace(NamedTuple):
    """Room for the search of one cell: w near cells, d columns, s boxes that are open, a axes (at most w d).

    start int64[w + 1], axis int64[w d], amount float64[w d]  what each near cell asks, axis by axis
    name int64[a, 2]      of an axis its column, and -2 a higher node or end, -1 a lower end, else a value of a set
    level float64[s, a]   what a box has of each axis;  live bool[s, w] whether a cell may be in it
    paid, bound, where float64[s] its loss, what it still allows and at which further loss;  one, at int64[s] the
                          nearest cell it does not hold and what that asks of its dearest axis;  open int64[s] the boxes
    asked, rest, share float64[w], order int64[w], held int64[a]  of the box looked at
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
    """Room for searches of ``nodes`` boxes each."""
    s, a, whole = nodes + 2, w * d, np.int64
    return BoxWorkspace(
        np.empty(w + 1, whole), np.empty(a, whole), np.empty(a), np.empty((a, 2), whole), np.empty((s, a)),
        np.empty((s, w), np.bool_), np.empty(s), np.empty(s), np.empty(s), np.empty(s, whole), np.empty(s, whole),
        np.empty(s, whole), np.empty(w), np.empty(w), np.empty(w), np.empty(w, whole), np.empty(a, whole),
        np.empty(distinct + 1, whole), np.empty(group + 1), np.empty(group + 1), np.empty(group + 1),
        np.empty(group + 1),
    )  # fmt: skip


class Prices(NamedTuple):
    """Prices that may rise.

    price float64[m], active bool[m];  base float64[m] every box of a cell with K rows and the values loses so much
    limit float64[m]  what boxes with a cell that is not near allow
    """

    price: np.ndarray
    base: np.ndarray
    active: np.ndarray
    limit: np.ndarray


@njit(cache=True, nogil=True)
def raises(cells, near, first, last, nodes, prices, out):
    """By how much each active cell's price may rise so that no box has K rows whose prices exceed K times its loss.

    The least of (K c - the sum of K prices) / active ones among them, over all boxes of loss c with the cell in it, K
    rows and ``distinct`` values, and over any K of its rows, the cell's among them; or less.  From prices of 0, all
    active, that is the loss of the cheapest box.

    cells, near int32[m, w]  as for and from ``near_cells``
    nodes int64       of the search for one cell; where it stops, the least that is still open counts
    out float64[m]    of the active cells first .. last - 1
    O((last - first) nodes (w (d + w + K) + nodes)).
    """
    losses, at, shape, code = cells.losses, cells.at, cells.shape, cells.code
    d, w = code.shape[1], near.shape[1]
    work = _workspace(w, d, cells.distinct, cells.group, nodes)
    # What each near cell asks of the axes of a box around cell i, numbered as they come up; then a quick bound, the
    # cells that can matter under it, and the search.
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
    """What the box of a cell and its nearest rows, as many as are needed, leaves each active row among them."""
    count, value, group, level = cells.count, cells.value, cells.group, work.level[0]
    for g in range(axes):
        level[g] = 0.0
    rows, values, paid = min(count[i], group), 1, 0.0
    taken, active = rows * prices.price[i], rows
    work.seen[0] = value[i]
    # Rows come nearest first, but places are kept for values that are still missing.
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
    """How many of the near cells, the nearest first, may be in a box that leaves less."""
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
    """Up to ``times`` rows more among the ``work`` highest prices, falling; returns how many there are."""
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
    """How many values there are with one more; it is noted behind them."""
    for v in range(values):
        if seen[v] == value:
            return values
    seen[values] = value
    return values + 1


@njit(**INNER)
def _look(work, s, near, cells, i, prices, axes):
    """What box s asks next, and a bound on the slack for each active row that boxes with all of it still allow."""
    count, value, distinct, group = cells.count, cells.value, cells.distinct, cells.group
    paid, alive, values = work.paid[s], 0, 1
    level, live = work.level[s], work.live[s]
    work.seen[0] = value[i]
    for g in range(axes):
        work.held[g] = 0 if work.name[g, 1] >= 0 else group - 1  # rows that may share what a set's value costs
    for x in range(near.size):
        if live[x]:
            for e in range(work.start[x], work.start[x + 1]):
                work.held[work.axis[e]] += count[near[x]]
    # The cells still allowed, by what they ask beyond the box; ``share`` is a cell's part of it, if all cells that ask
    # the same axis bear it together.
    for x in range(near.size):
        if not live[x]:
            continue
        asked, share = 0.0, 0.0
        for e in range(work.start[x], work.start[x + 1]):
            more = work.amount[e] - level[work.axis[e]]
            if more > 0.0:
                asked += more
                share += more / max(min(group - 1, work.held[work.axis[e]]), 1)
        rest = max(asked, prices.base[near[x]] - paid)
        work.asked[x], work.rest[x], work.share[x] = asked, rest, share
        if asked <= TINY and values < distinct:
            values = _seen(work.seen, values, value[near[x]])
        y = alive
        alive += 1
        while y > 0 and work.rest[work.order[y - 1]] > rest:
            work.order[y] = work.order[y - 1]
            y -= 1
        work.order[y] = x
    work.one[s] = work.at[s] = -1
    for y in range(alive):  # the nearest cell that the box does not hold, of a new value where it lacks values
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
    """The least slack for each active row in boxes with all of box s, and the further loss where it is found.

    A box that loses t more holds no cell that asks more than t, and its cells share what they ask.
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
    # From one further loss t to the next at which a cell comes in: the dearest K - 1 rows so far, with each number of
    # active ones among them, give the least slack at this t.
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
            few = max(group - 1 - others, 0)  # active ones that there must be
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
    """Branch and bound, the least bound first: a box takes what its nearest other cell asks of an axis, or never."""
    work.paid[0] = 0.0
    for g in range(axes):
        work.level[0, g] = 0.0
    for x in range(near.size):
        work.live[0, x] = True
    _look(work, 0, near, cells, i, prices, axes)
    work.open[0] = 0
    opened, used = 1, 1
    # The box with the least bound is split in two: in one the axis grows as far as its nearest cell asks, in the other
    # the cells that ask so much are out.
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
    """What is found of boxes.

    excess float64[m]      the most by which a mean exceeds the loss of a box with the cell's rows
    found  float64[x]      by how much the class written down for each anchor does, -1 where there is none
    loss   float64[x]      of its box
    cell int32[x, w], weight float64[x, w]   its cells, -1 behind the last, and their weights
    """

    excess: np.ndarray
    found: np.ndarray
    loss: np.ndarray
    cell: np.ndarray
    weight: np.ndarray


class _ClassWorkspace(NamedTuple):
    """Room for the boxes around one anchor, beside that of a search among rows.

    open bool[DEEP, r]   whether a class may have rows of each candidate of a depth: not dearer than the anchor's, and
                         not passed over before
    allowed float64[DEEP]  of each depth what is left to look at exceeds at most
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
    """The largest mean of ``net`` over weights of the candidates ``order``, -inf where none suffice; weights out.

    Shares have the largest for each value, and under t-closeness no set of values is above its share by more than t.
    Both are the bases of a polymatroid, so taking the dearest first is best (Edmonds 1970).
    """
    shares, total, mean, above = cells.shares, 0.0, 0.0, 0.0
    held, weight = work.held, work.weight
    equal = shares.kind == EQUAL
    held[:] = 0.0
    for x in range(many):
        weight[x] = 0.0
    # Each candidate gets the largest weight that leaves all limits: its rows, what is left of 1, the share of its
    # value, and what is left of t.
    for x in range(many):
        y = order[x]
        c = search.cell[y]
        v = cells.value[c]
        more = min(cells.count[c] / cells.group, 1.0 - total, shares.high[v] - held[v])
        if equal:
            own = max(held[v] - shares.table[v], 0.0)
            more = min(more, shares.number - (above - own) - (held[v] - shares.table[v]))
        if more <= LEAST:  # what rounding leaves of a limit, which every row of the value would take again
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
    """What boxes exceed whose dearest row is of one of the cells order[first .. last - 1]; the look-ups.

    nodes int64 of the search of one anchor; where it stops, all rows around pay what the open ones allow
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
    # The anchor is the dearest row of its boxes. Around it are the cells that lose less with it than it pays; if a
    # dearer one of them is in every box with the anchor, the anchor has no box of its own.
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
                        clear = False  # every box with the anchor holds a dearer row
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
    """The boxes around one anchor: what rows pay into ``out.excess``, the class of the largest excess; the look-ups."""
    (a, place), looks, seen, depth, own, best = anchor, 0, 0, 0, 0.0, TINY
    for y in range(size):
        search.member[0, y], search.joined[0, y], work.paid[y] = y, search.loss[y], 0.0
        work.open[0, y] = rank[search.cell[y]] >= rank[a]
        if search.cell[y] == a:
            own = search.price[y]
    search.many[0], search.box[0], search.saved[0] = size, 0.0, 0
    new = True
    # Depth first: what the box by itself exceeds, then the cell to branch on, in the box or out of it. Where the search
    # stops, the open boxes count with what they allow.
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
    """What the class of the largest mean in the box of this depth exceeds its loss by, to be paid by all its rows."""
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
        if work.weight[x] > 0.0 and w < out.cell.shape[1]:  # what is written down guides, and proves nothing
            out.cell[place, w], out.weight[place, w] = search.cell[order[x]], work.weight[x]
            w += 1
    out.cell[place, w:] = -1
    out.weight[place, w:] = 0.0
    return excess


@njit(**INNER)
def _allowed(cells, search, work, depth):
    """What boxes that take in more exceed at most, into ``work``; the candidate to take in next, -1 for none.

    None is where every row that they may hold pays as much already.

    A box loses no less with several rows than with each of them, so no less than the mean of that over a class.
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
    """The loss at which a box may hold what makes a class, infinite where all candidates do not.

    The rows suffice where each set of values has a limit and the rows of the others make up the rest.
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
    """The box with the candidate, one depth below, where no row of it is out of the question; whether there is one.

    The candidate is passed over from now on.
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
