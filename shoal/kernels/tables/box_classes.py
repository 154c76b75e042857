"""What whole classes of a box exceed its loss by: the best mean of prices that the shares of values allow.

An eligible group of K rows or more, with each row's weight in proportion and all weights 1, has no row above 1/K, and
the values have shares that the models allow.  Among the weights of the rows in a box that meet both, those of the
largest mean price are found by taking the dearest rows first.  Each row is to pay the most by which such a mean exceeds
the loss of a box that holds the row.

Every box is looked at from its dearest row: branch and bound over the rows around it, which a box takes in or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.box_separation import _search
from shoal.kernels.tables.box_values import asks, more_with
from shoal.kernels.tables.eligible import stable_argsort
from shoal.kernels.tables.near_cells import AT_ONCE, EQUAL, losses_with, part_of, places, write_down

TINY = 1e-12
DEEP = 48  # rows that a box takes in one by one, at most


class Exceeded(NamedTuple):
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


class _Room(NamedTuple):
    """Room for the boxes around one anchor, beside that of a search among rows.

    open bool[DEEP, r]   whether a class may have rows of each candidate of a depth: not dearer than the anchor's, and
                         not passed over before
    allowed float64[DEEP]  of each depth what is left to look at exceeds at most
    weight float64[r], held float64[v]   of a class, by candidate and by value
    """

    open: np.ndarray
    allowed: np.ndarray
    weight: np.ndarray
    held: np.ndarray


@njit(**INNER)
def _best(cells, search, order, net, many, room):
    """The largest mean of ``net`` over weights of the candidates ``order``, -inf where none suffice; weights out.

    Shares have the largest for each value, and under t-closeness no set of values is above its share by more than t.
    Both are the bases of a polymatroid, so taking the dearest first is best (Edmonds 1970).
    """
    shares, total, mean, above = cells.shares, 0.0, 0.0, 0.0
    held, weight = room.held, room.weight
    equal = shares.kind == EQUAL
    held[:] = 0.0
    for x in range(many):
        weight[x] = 0.0
    for x in range(many):
        y = order[x]
        c = search.cell[y]
        v = cells.value[c]
        more = min(cells.count[c] / cells.group, 1.0 - total, shares.high[v] - held[v])
        if equal:
            own = max(held[v] - shares.table[v], 0.0)
            more = min(more, shares.number - (above - own) - (held[v] - shares.table[v]))
        if more <= 0.0:
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
def exceeded(cells, index, first, last, multipliers, nodes, little, out):
    """What boxes exceed whose dearest row is of one of the cells order[first .. last - 1]; the look-ups.

    nodes int64 of the search of one anchor; where it stops, all rows around pay what the open ones allow
    """
    price, order, rank, count = multipliers.price, multipliers.order, multipliers.rank, cells.count
    m, d = cells.code.shape
    axes, looks = 0, 0
    offset = np.empty(d, np.int64)
    for j in range(d):
        offset[j] = axes
        axes += cells.width[j] if cells.sets[j] else 2
    search = _search(m, d, DEEP, axes)
    place, size = places(cells)
    own, distance = np.empty(max(1, size)), np.empty(index.center.shape[1])
    scratch = np.empty(min(AT_ONCE, m))
    room = _Room(np.empty((DEEP + 1, m), np.bool_), np.empty(DEEP + 1), np.empty(m), np.empty(cells.shares.high.size))
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
        looks += _classes(cells, search, room, many, (a, x - first), rank, (nodes, little), out)
    return looks


@njit(**INNER)
def _classes(cells, search, room, size, anchor, rank, limits, out):
    """The boxes around one anchor: charges into ``out.excess``, the class of the largest excess; the look-ups."""
    (a, place), looks, seen, depth, d = anchor, 0, 0, 0, cells.code.shape[1]
    (nodes, little), own, best = limits, 0.0, TINY
    for y in range(size):
        search.member[0, y], search.joined[0, y] = y, search.loss[y]
        room.open[0, y] = rank[search.cell[y]] >= rank[a]
        if search.cell[y] == a:
            own = search.price[y]
    search.many[0], search.box[0], search.saved[0] = size, 0.0, 0
    new = True
    while depth >= 0:
        if new:
            seen += 1
            best = _itself(cells, search, room, depth, (place, best), out)
        pick = _allowed(cells, search, room, depth)
        looks += 4 * search.many[depth]
        if room.allowed[depth] > TINY and pick >= 0:
            least = np.inf
            for x in range(search.many[depth]):
                if room.open[depth, x]:
                    least = min(least, out.excess[search.cell[search.member[depth, x]]])
            if room.allowed[depth] <= least:
                pick = -1
            elif room.allowed[depth] <= little or depth == DEEP:
                for x in range(search.many[depth]):
                    if room.open[depth, x]:
                        c = search.cell[search.member[depth, x]]
                        out.excess[c] = max(out.excess[c], room.allowed[depth])
                pick = -1
        else:
            pick = -1
        if seen >= nodes and pick >= 0:
            most = 0.0
            for z in range(depth + 1):
                most = max(most, room.allowed[z])
            for y in range(size):
                c = search.cell[y]
                if rank[c] >= rank[a]:
                    out.excess[c] = max(out.excess[c], most)
            for s in range(search.saved[depth] - 1, -1, -1):
                search.level[search.old[s]] = search.was[s]
            break
        if pick < 0:
            if depth > 0:
                for s in range(search.saved[depth] - 1, search.saved[depth - 1] - 1, -1):
                    search.level[search.old[s]] = search.was[s]
            depth -= 1
            new = False
            continue
        new = _taken_in(search, room, depth, pick, own)
        looks += search.many[depth]
        if new:
            depth += 1
    return looks * d


@njit(**INNER)
def _itself(cells, search, room, depth, known, out):
    """What the class of the largest mean in the box of this depth exceeds its loss by, to be paid by all its rows."""
    (place, best), box, member = known, search.box[depth], search.member[depth]
    order, key, inside = np.empty(search.many[depth], np.int64), np.empty(search.many[depth]), 0
    for x in range(search.many[depth]):
        if search.joined[depth, x] <= box + TINY:
            order[inside], key[inside] = member[x], -search.price[member[x]]
            inside += 1
    order = order[stable_argsort(key[:inside])]
    excess = _best(cells, search, order, search.price, inside, room) - box
    if excess <= TINY:
        return best
    for x in range(inside):
        c = search.cell[order[x]]
        out.excess[c] = max(out.excess[c], excess)
    if excess <= best:
        return best
    out.found[place], out.loss[place], w = excess, box, 0
    for x in range(inside):
        if room.weight[x] > 0.0:
            out.cell[place, w], out.weight[place, w] = search.cell[order[x]], room.weight[x]
            w += 1
    out.cell[place, w:] = -1
    out.weight[place, w:] = 0.0
    return excess


@njit(**INNER)
def _allowed(cells, search, room, depth):
    """What boxes that take in more exceed at most, into ``room``; the candidate to take in next, -1 for none.

    A box loses no less with several rows than with each of them, so no less than the mean of that over a class.
    """
    box, member, n = search.box[depth], search.member[depth], search.many[depth]
    where, key, some = np.empty(n, np.int64), np.empty(n), 0
    for x in range(n):
        if room.open[depth, x]:
            where[some], key[some] = x, search.joined[depth, x]
            some += 1
    least = _reached(cells, search, member, where, key, some, room)
    for x in range(some):
        y = member[where[x]]
        search.net[y] = search.price[y] - max(search.joined[depth, where[x]], least)
        key[x] = -search.net[y]
    where = where[stable_argsort(key[:some])]
    order = np.empty(some, np.int64)
    for x in range(some):
        order[x] = member[where[x]]
    room.allowed[depth] = _best(cells, search, order, search.net, some, room)
    pick = -1
    for x in range(some):
        if search.joined[depth, where[x]] > box + TINY:
            if room.weight[x] > 0.0:
                return where[x]
            if pick < 0:
                pick = where[x]
    return pick


@njit(**INNER)
def _reached(cells, search, member, where, joined, many, room):
    """The loss at which a box may hold what makes a class, infinite where all candidates do not.

    The rows suffice where each set of values has a limit and the rows of the others make up the rest.
    """
    shares, equal, held = cells.shares, cells.shares.kind == EQUAL, room.held
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
def _taken_in(search, room, depth, pick, own):
    """The box with the candidate, one depth below, where no row of it is out of the question; whether there is one.

    The candidate is passed over from now on.
    """
    member, box, rows, below = search.member[depth], search.joined[depth, pick], 0, depth + 1
    y, s = np.int64(member[pick]), search.saved[depth]
    for e in range(search.start[y], search.start[y + 1]):
        g = search.axis[e]
        if search.amount[e] > search.level[g]:
            search.old[s], search.was[s] = g, search.level[g]
            search.level[g] = search.amount[e]
            s += 1
    search.saved[below], search.box[below] = s, box
    for x in range(search.many[depth]):
        z = np.int64(member[x])
        joined = box + more_with(search, z)
        if joined <= box + TINY and not room.open[depth, x]:
            rows = -1
            break
        if joined < own:
            search.member[below, rows], search.joined[below, rows] = z, joined
            room.open[below, rows] = room.open[depth, x]
            rows += 1
    room.open[depth, pick] = False
    search.many[below] = rows
    if rows < 0:
        for z in range(s - 1, search.saved[depth] - 1, -1):
            search.level[search.old[z]] = search.was[z]
    return rows >= 0
