"""Rows of the classes of lattice nodes that may be published together under t-closeness, by what they would gain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.lattice import classes, room_of

CLOSE = 1e-9


class Asked(NamedTuple):
    """What a row pays where it is, and what is asked of a set of rows.

    paid float64[m], order int64[m]  what a row of each cell pays now; the cells, the dearest first
    count int64[m], value int64[m], share float64[s]  rows and sensitive value of a cell; share of each in the table
    sizes int64[g]   rows that a set may have, rising
    room float64[g]  of so many rows, those that may exceed the shares
    least float64    the least gain that counts
    """

    paid: np.ndarray
    order: np.ndarray
    count: np.ndarray
    value: np.ndarray
    share: np.ndarray
    sizes: np.ndarray
    room: np.ndarray
    least: float


class Sets(NamedTuple):
    """Sets found.  gain float64[>= sets], end int64[>= sets], cell int64[>= rows]: a cell for each row of a set."""

    gain: np.ndarray
    end: np.ndarray
    cell: np.ndarray


@njit(**INNER)
def _taken(asked, cells, size, room, held, out):
    """The dearest rows that fit together, as cells in out int64[>= size]: (rows, what they pay).

    held int64[s] is overwritten.  O(rows of the cells).
    """
    held[:] = 0
    rows, paid, over = 0, 0.0, 0.0
    for i in cells:
        v = asked.value[i]
        for _ in range(asked.count[i]):
            more = max(0.0, min(1.0, held[v] + 1.0 - asked.share[v] * size))
            if over + more > room:
                break
            over += more
            held[v] += 1
            out[rows] = i
            rows += 1
            paid += asked.paid[i]
            if rows == size:
                return rows, paid
    return rows, paid


@njit(**INNER)
def _best(asked, cells, cost, most, held, first, second):
    """The rows of a class with the largest gain, in first int64[..]: (rows, gain).  second is overwritten."""
    hope, left = 0.0, most
    for i in cells:
        if asked.paid[i] <= cost:
            break
        hope += (asked.paid[i] - cost) * asked.count[i]
    if hope <= asked.least:
        return 0, 0.0
    rows, gain = 0, asked.least
    for x in range(asked.sizes.size):
        size = asked.sizes[x]
        if size > left:
            break
        found, paid = _taken(asked, cells, size, asked.room[x], held, second)
        if found == size and paid - size * cost > gain:
            rows, gain = size, paid - size * cost
            for y in range(size):
                first[y] = second[y]
    return rows, gain


@njit(cache=True, nogil=True)
def close_sets(raised, nodes, loss, asked, out):
    """In each class of each node the rows, close together to the shares, that gain most by being published there.

    nodes int32[v, d]; loss float64[..] of a code at a level, laid out as ``raised.up``.  Returns (nodes looked at, sets
    found): it ends early when out has no room for the rows of another node.  O(nodes rows sizes).
    """
    m, d = raised.quasi.shape
    total = asked.count.sum()
    slots, key_at, first_at, of = room_of(m, m)
    start, member = np.empty(m + 1, np.int64), np.empty(m, np.int64)
    rows = np.empty(m, np.int64)
    held = np.empty(asked.share.size, np.int64)
    first, second = np.empty(total, np.int64), np.empty(total, np.int64)
    cells, keys, low = np.arange(m), np.zeros(m, np.int64), 0
    sets, used = 0, 0
    for v in range(nodes.shape[0]):
        if used + total > out.cell.size:
            return v, sets
        found = classes(raised.quasi, raised.up, raised.at, raised.size, nodes[v], raised.exact, keys, low, cells,
                        slots, key_at, first_at, of)  # fmt: skip
        start[: found + 1] = 0
        rows[:found] = 0
        for i in range(m):
            start[of[i] + 1] += 1
            rows[of[i]] += asked.count[i]
        for x in range(found):
            start[x + 1] += start[x]
            key_at[x] = start[x]
        for x in range(m):
            i = asked.order[x]
            member[key_at[of[i]]] = i
            key_at[of[i]] += 1
        for x in range(found):
            if rows[x] < asked.sizes[0]:
                continue
            cost = 0.0
            for j in range(d):
                cost += loss[raised.at[j] + nodes[v, j] * raised.size[j] + raised.quasi[first_at[x], j]]
            many, gain = _best(asked, member[start[x] : start[x + 1]], cost, rows[x], held, first, second)
            if many:
                out.cell[used : used + many] = first[:many]
                used += many
                out.gain[sets], out.end[sets] = gain, used
                sets += 1
    return nodes.shape[0], sets
