"""Rows moved one by one between published tuples whose rows are near the table's shares."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.regrow import draw
from shoal.kernels.tables.slots import join


class Classes(NamedTuple):
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


@njit(cache=True, nogil=True)
def settle(classes, cell, at, held, size, heat, price, moves, random):
    """Rows moved, each move accepted by its change of loss + price * rows beyond what is asked (Metropolis et al.
    1953).

    Half of the moves are of a single row.  In the others a row that can stand in the class it leaves takes its place,
    so that classes which have used up all of t exchange values; where it comes from the class entered, they swap.
    Half of the first rows are drawn from those in classes that lacked something at the beginning: late there are few.

    cell int64[n], at int64[n]  cell of each row, rising, and the arc that it is on; at, held int64[p], size int64[v]
    are updated;  heat, price float64; moves int64 tried; random uint64[1]
    returns the rows beyond what is asked, of all classes together.  O(moves values).
    """
    beyond = np.empty(classes.loss.size)
    for c in range(beyond.size):
        beyond[c] = _beyond(classes, held, size, c, -1, -1)
    astray = _astray(classes, at, beyond)
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
