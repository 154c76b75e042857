"""Tuples that are open, the rows of each, and the open tuples that cover each cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.slots import Slots

ONE, TWO, FOUR = np.uint64(1), np.uint64(2), np.uint64(4)


class Table(NamedTuple):
    """What does not change.

    slots, leaf int64[m, t]   trees alone; the cells
    first int64[m + 1]        rows of each cell: first[i] .. first[i + 1] - 1
    cell int64[n]             of each row
    bits uint64[nodes, w]     cells below each node of each tree, one bit each; words uint64[w] is scratch
    k int64                   least rows of a tuple
    """

    slots: Slots
    leaf: np.ndarray
    first: np.ndarray
    cell: np.ndarray
    bits: np.ndarray
    words: np.ndarray
    k: int


class Open(NamedTuple):
    """The tuples that are open, numbered below v, and the rows of each.

    of int64[n], following int64[n], previous int64[n], head int64[v]   tuple of each row, chained
    state int64[v, t], price float64[v], size int64[v]   an empty place has size 0
    cover int32[m, c], covers int64[m]   open tuples that cover each cell, cheapest first
    free int64[v], frees int64[1]        empty places
    """

    of: np.ndarray
    following: np.ndarray
    previous: np.ndarray
    head: np.ndarray
    state: np.ndarray
    price: np.ndarray
    size: np.ndarray
    cover: np.ndarray
    covers: np.ndarray
    free: np.ndarray
    frees: np.ndarray


class Plan(NamedTuple):
    """What opening a tuple would do.

    inside bool[m], cells int64[m]   cells it covers
    source int64[v], has int64[v]    tuples with rows there, and how many (0 elsewhere)
    take int64[v], closing bool[v], target bool[v]   rows taken of each; tuples closed; tuples that rows of those go to
    loss float64[v]                  what closing a tuple would lose, NaN until it was asked
    """

    inside: np.ndarray
    cells: np.ndarray
    source: np.ndarray
    has: np.ndarray
    take: np.ndarray
    closing: np.ndarray
    target: np.ndarray
    loss: np.ndarray


@njit(**INNER)
def covered(table, state, out):
    """Cells that a tuple covers, written to out int64[m]; returns how many."""
    slots, words, found = table.slots, table.words, 0
    every = True
    for t in range(state.size):
        a = slots.base[t] + state[t]
        if slots.parent[a] == state[t]:  # the root covers all
            continue
        line = table.bits[a]
        if every:
            for w in range(words.size):
                words[w] = line[w]
        else:
            for w in range(words.size):
                words[w] &= line[w]
        every = False
    if every:
        for i in range(table.leaf.shape[0]):
            out[i] = i
        return table.leaf.shape[0]
    for w in range(words.size):
        word = words[w]
        while word != 0:
            low = word & (~word + ONE)
            out[found] = 64 * w + _place(low)
            found += 1
            word ^= low
    return found


@njit(**INNER)
def _place(low):
    """The position of the only bit set: the bits below it, counted in parallel, as branches would be guessed wrong."""
    a = low - ONE
    a = a - ((a >> ONE) & np.uint64(0x5555555555555555))
    a = (a & np.uint64(0x3333333333333333)) + ((a >> TWO) & np.uint64(0x3333333333333333))
    a = (a + (a >> FOUR)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((a * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(**INNER)
def move(open_, x, to):
    """Row x leaves its tuple for another; -1 for none on either side."""
    s = open_.of[x]
    if s >= 0:
        before, after = open_.previous[x], open_.following[x]
        if before >= 0:
            open_.following[before] = after
        else:
            open_.head[s] = after
        if after >= 0:
            open_.previous[after] = before
        open_.size[s] -= 1
    open_.of[x] = to
    if to >= 0:
        top = open_.head[to]
        open_.previous[x], open_.following[x] = -1, top
        if top >= 0:
            open_.previous[top] = x
        open_.head[to] = x
        open_.size[to] += 1


@njit(**INNER)
def cheapest(open_, plan, i, s):
    """The cheapest open tuple that covers cell i and is neither s nor about to be closed; -1 for none."""
    for y in range(open_.covers[i]):
        c = np.int64(open_.cover[i, y])
        if c != s and not plan.closing[c]:
            return c
    return -1


@njit(**INNER)
def enlist(open_, i, g):
    """Tuple g joins the list of a cell, which has room."""
    y = open_.covers[i]
    while y > 0 and open_.price[open_.cover[i, y - 1]] > open_.price[g]:
        open_.cover[i, y] = open_.cover[i, y - 1]
        y -= 1
    open_.cover[i, y] = g
    open_.covers[i] += 1


@njit(**INNER)
def strike(table, open_, plan, g):
    """Tuple g leaves the lists and is free."""
    many = covered(table, open_.state[g], plan.cells)
    for y in range(many):
        i = plan.cells[y]
        z = 0
        while open_.cover[i, z] != g:
            z += 1
        open_.covers[i] -= 1
        for after in range(z, open_.covers[i]):
            open_.cover[i, after] = open_.cover[i, after + 1]
    open_.free[open_.frees[0]] = g
    open_.frees[0] += 1
