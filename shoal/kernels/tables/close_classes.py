"""Rows moved between published tuples under t-closeness, and the sets of rows that gain most by a tuple of their own.

Rows move one by one between tuples whose rows are near the table's shares.  In the classes of lattice nodes those rows
are looked for that are near the shares together and pay most where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.eligible import join
from shoal.kernels.tables.lattice import classes, numbering_for
from shoal.kernels.tables.near_groups import draw


class OpenClasses(NamedTuple):
    """Where rows may go and what is asked there.

    start int64[m + 1], pair int32[a]   rows of cell i may go to the pairs pair[start[i] : start[i + 1]], at least one
    row int64[m + 1]    the rows of cell i are row[i] .. row[i + 1] - 1
    come int64[v + 1], arc int64[a], cell int64[a]  the arcs to class c, arc[come[c] : come[c + 1]], and their cells
    owner int64[p], first int64[v + 1]  class of each pair (class, sensitive value), rising; the pairs of each class
    share float64[p]  share of the pair's value in the whole table
    loss float64[v]   what a row loses there
    t float64, spare float64, k int64  the rows of any values may exceed their share by t of all, less spare rows; the
                        least size
    """

    start: np.ndarray
    pair: np.ndarray
    row: np.ndarray
    come: np.ndarray
    arc: np.ndarray
    cell: np.ndarray
    owner: np.ndarray
    first: np.ndarray
    share: np.ndarray
    loss: np.ndarray
    t: float
    spare: float
    k: int


@njit(cache=True, nogil=True)
def covering(slots, state, leaf, start, out):
    """Which tuples cover which cells: state int64[v, t], leaf int64[m, t].

    start int64[m + 1] is filled with where each cell begins in out; out int32[..] with the tuples, as far as it goes.
    Returns how many there are.  O(m v t).
    """
    found = 0
    for i in range(leaf.shape[0]):
        start[i] = found
        for c in range(state.shape[0]):
            inside = True
            for t in range(leaf.shape[1]):
                if join(slots, t, state[c, t], leaf[i, t]) != state[c, t]:
                    inside = False
                    break
            if inside:
                if found < out.size:
                    out[found] = c
                found += 1
    start[leaf.shape[0]] = found
    return found


@njit(**INNER)
def _beyond(classes, held, size, c, out, into):
    """Rows by which class c exceeds t or is short of k when a row of pair out leaves, one of into comes (-1: none).

    O(values).
    """
    n = size[c] - (out >= 0) + (into >= 0)
    if n == 0:
        return 0.0
    over = 0.0
    for p in range(classes.first[c], classes.first[c + 1]):
        rows = held[p] - (p == out) + (p == into)
        over += max(0.0, rows - classes.share[p] * n)
    return max(0.0, over - classes.t * n + classes.spare) + max(0, classes.k - n)


@njit(**INNER)
def _astray(classes, at, beyond):
    """The rows in classes that lack something, int64[..]."""
    many = 0
    for x in range(at.size):
        many += beyond[classes.owner[classes.pair[at[x]]]] > 0.0
    out = np.empty(many, np.int64)
    many = 0
    for x in range(at.size):
        if beyond[classes.owner[classes.pair[at[x]]]] > 0.0:
            out[many] = x
            many += 1
    return out


class RowsOnArcs(NamedTuple):
    """Where rows are: cell int64[n] of each row, rising, at int64[n] the arc that it is on, held int64[p] rows of each
    pair, size int64[v] of each class."""

    cell: np.ndarray
    at: np.ndarray
    held: np.ndarray
    size: np.ndarray


@njit(cache=True, nogil=True)
def anneal(classes, rows, heat, price, moves, random):
    """Simulated annealing under one heat: rows move, each by the change of loss + price * rows beyond what is asked
    (Metropolis et al. 1953).

    Half of the moves are of a single row.  In the others a row that can stand in the class it leaves takes its place,
    so that classes which have used up all of t exchange values; where it comes from the class entered, they swap.
    Half of the first rows are drawn from those in classes that lacked something at the beginning: late there are few.

    rows ``RowsOnArcs``, updated;  heat, price float64; moves int64 tried; random uint64[1]
    returns the rows beyond what is asked, of all classes together.  O(moves values).
    """
    cell, at, held, size = rows
    beyond = np.empty(classes.loss.size)
    for c in range(beyond.size):
        beyond[c] = _beyond(classes, held, size, c, -1, -1)
    astray = _astray(classes, at, beyond)
    # Row x goes from class a to b; with a second row, y goes from class c to a. Each class's part of the change is
    # added only while the sum can still be accepted.
    for _ in range(moves):
        if astray.size and draw(random) < 0.5:
            x = astray[int(draw(random) * astray.size)]
        else:
            x = int(draw(random) * cell.size)
        i = cell[x]
        e = classes.start[i] + int(draw(random) * (classes.start[i + 1] - classes.start[i]))
        if e == at[x]:
            continue
        p, q = classes.pair[at[x]], classes.pair[e]
        a, b = classes.owner[p], classes.owner[q]
        c, y, f, r, s = a, x, e, q, p  # without a second row
        bar = -heat * np.log(draw(random) + 1e-300)
        if draw(random) < 0.5:
            g = classes.come[a] + int(draw(random) * (classes.come[a + 1] - classes.come[a]))
            f, j = classes.arc[g], classes.cell[g]
            y = classes.row[j] + int(draw(random) * (classes.row[j + 1] - classes.row[j]))
            r, s = classes.pair[at[y]], classes.pair[f]
            c = classes.owner[r]
            if c == a:
                continue
        change, before = classes.loss[b] - classes.loss[c], beyond[a] + beyond[b]
        if c != a and c != b:
            before += beyond[c]
        if change - price * before > bar:
            continue
        at_a = _beyond(classes, held, size, a, p, s if c != a else -1)
        if change + price * (at_a - before) > bar:
            continue
        at_b = _beyond(classes, held, size, b, r if c == b else -1, q)
        if change + price * (at_a + at_b - before) > bar:
            continue
        at_c = 0.0
        if c != a and c != b:
            at_c = _beyond(classes, held, size, c, r, -1)
            if change + price * (at_a + at_b + at_c - before) > bar:
                continue
        held[p] -= 1
        held[q] += 1
        size[a] -= 1
        size[b] += 1
        at[x] = e
        if c != a:
            held[r] -= 1
            held[s] += 1
            size[c] -= 1
            size[a] += 1
            at[y] = f
            if c != b:
                beyond[c] = at_c
        beyond[a], beyond[b] = at_a, at_b
    return beyond.sum()


CLOSE = 1e-9


class SetRequest(NamedTuple):
    """What a row pays where it is, and what is asked of a set of rows.

    paid float64[m], order int64[m]  what a row of each cell pays now; the cells, the dearest first
    count int64[m], value int64[m], share float64[s]  rows and sensitive value of a cell; share of each in the table
    sizes int64[g]   rows that a set may have, rising
    excess float64[g]  of so many rows, those that may exceed the shares
    least float64    the least gain that counts
    """

    paid: np.ndarray
    order: np.ndarray
    count: np.ndarray
    value: np.ndarray
    share: np.ndarray
    sizes: np.ndarray
    excess: np.ndarray
    least: float


class RowSets(NamedTuple):
    """Sets found.  gain float64[>= sets], end int64[>= sets], cell int64[>= rows]: a cell for each row of a set."""

    gain: np.ndarray
    end: np.ndarray
    cell: np.ndarray


@njit(**INNER)
def _taken(asked, cells, size, excess, held, out):
    """The dearest rows that fit together, as cells in out int64[>= size]: (rows, what they pay).

    held int64[s] is overwritten.  O(rows of the cells).
    """
    held[:] = 0
    rows, paid, over = 0, 0.0, 0.0
    for i in cells:
        v = asked.value[i]
        for _ in range(asked.count[i]):
            more = max(0.0, min(1.0, held[v] + 1.0 - asked.share[v] * size))
            if over + more > excess:
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
        found, paid = _taken(asked, cells, size, asked.excess[x], held, second)
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
    numbering, of = numbering_for(m, m)
    key_at, first_at = numbering.key_at, numbering.first_at
    start, member = np.empty(m + 1, np.int64), np.empty(m, np.int64)
    rows = np.empty(m, np.int64)
    held = np.empty(asked.share.size, np.int64)
    first, second = np.empty(total, np.int64), np.empty(total, np.int64)
    cells = np.arange(m)
    sets, used = 0, 0
    # Rows are sorted into the node's classes in the order asked, and each class of enough rows gives its best set.
    for v in range(nodes.shape[0]):
        if used + total > out.cell.size:
            return v, sets
        found = classes(raised, nodes[v], cells, numbering, of)
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
                for y in range(many):
                    out.cell[used + y] = first[y]
                used += many
                out.gain[sets], out.end[sets] = gain, used
                sets += 1
    return nodes.shape[0], sets
