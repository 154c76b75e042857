"""Insertion of rows without a group into groups, where the loss increases least and the group stays eligible."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit, quick
from shoal.kernels.tables.eligible import Rules, Slots, group_gap, join, joined, names_persons


class JoinableGroups(NamedTuple):
    """Groups that rows may join.

    head int64[g], following int64[n]  members of a group as a linked list, -1 ends
    size int64[g], state int64[g, t]   rows of a group, and what it publishes
    order int64[g]  the groups by ascending loss per row; groups that publish the same are adjacent, the small ones
                    first
    """

    head: np.ndarray
    following: np.ndarray
    size: np.ndarray
    state: np.ndarray
    order: np.ndarray


class RowModels(NamedTuple):
    """The models that a group must meet when rows join it.

    sensitive int32[n, s] of each row, frequency int64[s], and the other models, as in ``eligible``.
    """

    sensitive: np.ndarray
    frequency: np.ndarray
    rules: Rules | None


class UngroupedRows(NamedTuple):
    """Rows without a group: rows int64[r].

    Row i may join candidate[start[i] : start[i + 1]], int64[..], or any group if start is empty.
    """

    rows: np.ndarray
    start: np.ndarray
    candidate: np.ndarray


@njit(**LEAN_INNER)
def _takes(hosts, models, work, g, x):
    """Whether group g stays eligible if row x joins it. O(rows of the group) at worst."""
    sensitive, frequency, rules = models
    held, exact = work.held, work.exact
    n = hosts.size[g]
    for j in range(frequency.size):
        if frequency[j] > 1:
            same = 1
            if (held[j, g] & (np.uint64(1) << np.uint64(sensitive[x, j] & 63))) != 0:
                same = 2
                if not (exact[j] and 2 * frequency[j] > n + 1):  # otherwise two are too many already
                    same = 1
                    z = hosts.head[g]
                    while z >= 0:
                        if sensitive[z, j] == sensitive[x, j]:
                            same += 1
                        z = hosts.following[z]
            if same * frequency[j] > n + 1:
                return False
    if rules is None:
        return True
    count, seen, who, many = work.ask
    together = 1
    who[0] = x
    z = hosts.head[g]
    while z >= 0:
        who[together] = z
        together += 1
        z = hosts.following[z]
    return group_gap(rules, sensitive, who, many, together, count, seen, 0.0) <= 0.0


class Best(NamedTuple):
    """The cheapest groups found, as a heap with the most expensive at its root.

    rise float64[c], at int64[c]  the sort key: the increase of the loss per row comes first;  host: int64[c], the group
    """

    rise: np.ndarray
    at: np.ndarray
    host: np.ndarray


@njit(**LEAN_INNER)
def _after(best, a, b):
    """Whether entry a of the heap is more expensive than entry b."""
    return best.rise[a] > best.rise[b] or (best.rise[a] == best.rise[b] and best.at[a] > best.at[b])


@njit(**LEAN_INNER)
def _swap(best, a, b):
    best.rise[a], best.rise[b] = best.rise[b], best.rise[a]
    best.at[a], best.at[b] = best.at[b], best.at[a]
    best.host[a], best.host[b] = best.host[b], best.host[a]


@njit(**LEAN_INNER)
def _sink(best, many):
    """Move the root of a heap of ``many`` to its position. O(log many)."""
    i = 0
    while 2 * i + 1 < many:
        child = 2 * i + 1
        if child + 1 < many and _after(best, child + 1, child):
            child += 1
        if not _after(best, child, i):
            return
        _swap(best, i, child)
        i = child


@njit(**LEAN_INNER)
def _keep(best, many, most, rise, at, g):
    """Add an entry, in place of the most expensive one if there are ``most``; returns their number. O(log most)."""
    i = many if many < most else 0
    best.rise[i], best.at[i], best.host[i] = rise, at, g
    if many == most:
        _sink(best, many)
        return many
    while i > 0 and _after(best, i, (i - 1) // 2):
        _swap(best, i, (i - 1) // 2)
        i = (i - 1) // 2
    return many + 1


@njit(**LEAN_INNER)
def _next(skip, stamp, now, y):
    """The first position from y on that isn't known to reject rows of the value with number ``now``."""
    while y < stamp.size and stamp[y] == now:
        after = skip[y]
        if after < stamp.size and stamp[after] == now:
            skip[y] = skip[after]
        y = after
    return y


class InsertionWorkspace(NamedTuple):
    """Working arrays of ``insert`` for g groups, s sensitive columns, and r rows.

    now, price, each float64[g]  loss of a group; loss of one of its rows initially and now
    held, shared uint64[s, g]    a bit for every value in a group, and in all groups from a position to its run's end
    exact bool[s]                whether the bits of a column correspond to its values one to one
    place, end int64[g]          position of a group in the order; end of the run of a position
    moved bool[g], joiner int64[g]  the groups that changed
    skip, stamp int64[g]         the next position after one whose group rejects a value; the number of that value
    best                         the cheapest groups for the rows of a cell
    ask int64[widest], int64[widest], int64[rows of all], int64[rows of all]  for ``group_gap``
    """

    now: np.ndarray
    price: np.ndarray
    each: np.ndarray
    held: np.ndarray
    shared: np.ndarray
    exact: np.ndarray
    place: np.ndarray
    end: np.ndarray
    moved: np.ndarray
    joiner: np.ndarray
    skip: np.ndarray
    stamp: np.ndarray
    best: Best
    ask: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@njit(**LEAN_INNER)
def _begin(slots, models, hosts, rows, work):
    """Compute the loss of the groups, and the values that they contain."""
    sensitive, frequency = models.sensitive, models.frequency
    for g in range(hosts.size.size):
        work.price[g] = joined(slots, hosts.state[g], hosts.state[g], np.inf)
        work.each[g] = work.price[g]
        work.now[g] = work.price[g] * hosts.size[g]
    for j in range(frequency.size):
        if frequency[j] > 1:
            for g in range(hosts.size.size):
                z = hosts.head[g]
                while z >= 0:
                    work.held[j, g] |= np.uint64(1) << np.uint64(sensitive[z, j] & 63)
                    work.exact[j] &= sensitive[z, j] < 64
                    z = hosts.following[z]
            for i in range(rows.size):
                work.exact[j] &= sensitive[rows[i], j] < 64


@njit(**LEAN_INNER)
def _runs(hosts, work):
    """Runs of groups that publish the same, with their ends, and the values common to all groups up to the end."""
    order, state, held = hosts.order, hosts.state, work.held
    last = order.size
    for y in range(order.size - 1, -1, -1):
        g = order[y]
        work.place[g] = y
        if y + 1 < order.size:
            for t in range(state.shape[1]):
                if state[g, t] != state[order[y + 1], t]:
                    last = y + 1
                    break
        work.end[y] = last
        for j in range(held.shape[0]):
            work.shared[j, y] = held[j, g] if y + 1 == last else held[j, g] & work.shared[j, y + 1]


def insert(
    slots: Slots, leaf: np.ndarray, cell: np.ndarray, models: RowModels, hosts: JoinableGroups, waiting: UngroupedRows,
    steps: float = np.inf,
) -> np.ndarray:  # fmt: skip
    """Insert rows, one by one, where the loss increases least and every group stays eligible.

    leaf int64[m, t]: slots of each cell; cell int64[n] of each row
    hosts  the groups; all fields except their order are updated
    steps  approximate number of iterations of the innermost loop, as ``quick`` requires
    returns bool[r]: whether a group was found

    Ties go to the first in the order, or to the first candidate. Groups that publish the same tuple are examined once,
    the smallest ones that accept the row. Consecutive rows of a cell are inserted together: the cheapest groups for all
    of them are found, and each takes rows until it accepts no more, because no other group becomes cheaper meanwhile.
    O(runs of equal rows (runs of equal groups + changed groups) t + r log r), or O(runs of equal rows * candidates t).
    Python allocates the working arrays, because a kernel without allocations compiles in three quarters of the time.
    """
    (rows, _, _), rules = waiting, models.rules
    g, s = hosts.size.size, models.frequency.size
    most = 1 if rules is None else max(1, *rules.size)
    largest = 1 if rules is None else 1 + int(hosts.size.sum()) + rows.size
    alike = int(np.diff(np.flatnonzero(np.diff(cell[rows], prepend=-1, append=-1))).max(initial=0))
    work = InsertionWorkspace(
        np.empty(g), np.empty(g), np.empty(g), np.zeros((s, g), np.uint64), np.zeros((s, g), np.uint64),
        np.ones(s, np.bool_), np.empty(g, np.int64), np.empty(g, np.int64), np.zeros(g, np.bool_),
        np.empty(g, np.int64), np.empty(g, np.int64), np.zeros(g, np.int64),
        Best(np.empty(alike), np.empty(alike, np.int64), np.empty(alike, np.int64)),
        (np.zeros(most, np.int64), np.empty(most, np.int64), np.empty(largest, np.int64), np.ones(largest, np.int64)),
    )  # fmt: skip
    done = np.zeros(rows.size, np.bool_)
    quick(_insert, steps)(slots, leaf, cell, models, hosts, waiting, work, done)
    return done


@njit(**LEAN)
def _insert(slots, leaf, cell, models, hosts, waiting, work, done):
    """``insert`` on arrays that Python allocated; done: bool[r], out."""
    (sensitive, frequency, rules), (rows, start, candidate) = models, waiting
    size, state, order = hosts.size, hosts.state, hosts.order
    now, price, each, held, shared, exact, place, end, moved, joiner, skip, stamp, best, _ = work
    _begin(slots, models, hosts, rows, work)
    _runs(hosts, work)
    every = start.size == 0
    free = 0
    while free < size.size and price[order[free]] <= 0.0:
        free = end[free]
    joins, i, value = 0, 0, 1
    # Rows of one cell at a time. Groups are sorted by loss per row, so the scan ends at the most expensive entry kept.
    # Groups that took rows here have another loss, and are examined separately.
    while i < rows.size:
        x, stop = rows[i], i + 1
        for j in range(frequency.size):
            if i > 0 and sensitive[x, j] != sensitive[rows[i - 1], j] and not names_persons(rules, j):
                value = i + 1
        own = leaf[cell[x]]
        while stop < rows.size and cell[rows[stop]] == cell[x]:
            stop += 1
        many, most = 0, stop - i
        least, last = np.inf, size.size  # of the most expensive entry kept, once there are enough
        for turn in range(2 if every else 0):  # groups with a loss first, because one of them is usually best
            y, end_ = (free, size.size) if turn == 0 else (0, free)
            y = _next(skip, stamp, value, y)
            # A run of groups that publish the same tuple: their loss with the row is computed once, and the smallest
            # that accepts the row is kept. ``skip`` jumps over groups that reject the value.
            while y < end_:
                g = order[y]
                # a row costs at least the group's loss per row
                if price[g] > least or (price[g] == least and y >= last):
                    break
                if moved[g] or size[g] == 0:
                    skip[y], stamp[y] = y + 1, value
                    y = _next(skip, stamp, value, y)
                    continue
                n, largest = size[g], size[order[end[y] - 1]]
                full = False  # a second row of its value is too many for every group of the run
                for j in range(frequency.size):
                    if exact[j] and 2 * frequency[j] > largest + 1:
                        full |= (shared[j, y] & (np.uint64(1) << np.uint64(sensitive[x, j] & 63))) != 0
                if full:
                    skip[y], stamp[y] = end[y], value
                    y = _next(skip, stamp, value, y)
                    continue
                new, z = joined(slots, state[g], own, (least + now[g]) / (n + 1)), y
                while z < end[y]:
                    g = order[z]
                    if moved[g] or size[g] == 0:
                        skip[z], stamp[z] = z + 1, value
                    else:
                        rise = (size[g] + 1) * new - now[g]
                        if rise > least or (rise == least and z >= last):
                            break
                        if _takes(hosts, models, work, g, x):
                            many = _keep(best, many, most, rise, z, g)
                            if many == most:
                                least, last = best.rise[0], best.at[0]
                        else:
                            skip[z], stamp[z] = z + 1, value
                    z = _next(skip, stamp, value, z + 1)
                y = _next(skip, stamp, value, end[y])
        before = -1
        for y in range(joins if every else start[i + 1] - start[i]):
            g = joiner[y] if every else candidate[start[i] + y]
            at = place[g] if every else np.int64(y)
            if g == before or size[g] == 0 or each[g] > least or (each[g] == least and at >= last):
                continue
            before = g
            rise = (size[g] + 1) * joined(slots, state[g], own, (least + now[g]) / (size[g] + 1)) - now[g]
            if (rise < least or (rise == least and at < last)) and _takes(hosts, models, work, g, x):
                many = _keep(best, many, most, rise, at, g)
                if many == most:
                    least, last = best.rise[0], best.at[0]
        for kept in range(many - 1, 0, -1):  # sort the heap, cheapest first
            _swap(best, 0, kept)
            _sink(best, kept)
        # Each group takes rows until it accepts no more; then its state and loss are recomputed.
        for kept in range(many):
            g = best.host[kept]
            first = True
            while i < stop and (first or _takes(hosts, models, work, g, rows[i])):
                x, first = rows[i], False
                done[i] = True
                i += 1
                hosts.following[x] = hosts.head[g]
                hosts.head[g] = x
                size[g] += 1
                for j in range(frequency.size):
                    held[j, g] |= np.uint64(1) << np.uint64(sensitive[x, j] & 63)
            if first:
                break
            if not moved[g]:
                moved[g] = True
                if every:
                    joiner[joins] = g
                    joins += 1
            for t in range(leaf.shape[1]):
                state[g, t] = join(slots, t, state[g, t], own[t])
            each[g] = joined(slots, state[g], state[g], np.inf)
            now[g] = each[g] * size[g]
        i = stop
