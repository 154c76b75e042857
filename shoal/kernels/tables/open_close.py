"""Local search that opens and closes published tuples and moves rows between them; only k is required.

Each open tuple has a list of its rows, and each cell has a list of the open tuples that cover it, the cheapest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.eligible import Slots, join, joined
from shoal.kernels.tables.near_groups import draw

ONE, TWO, FOUR = np.uint64(1), np.uint64(2), np.uint64(4)


class PublishedTable(NamedTuple):
    """The constant data.

    slots, leaf int64[m, t]   trees only; the cells
    first int64[m + 1]        rows of each cell: first[i] .. first[i + 1] - 1
    cell int64[n]             of each row
    bits uint64[nodes, w]     cells below each node of each tree, one bit each, initially 0: ``open_close`` fills them;
                              words uint64[w] is a working array
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
    """The open tuples, numbered below v, and the rows of each.

    of int64[n], following int64[n], previous int64[n], head int64[v]   tuple of each row, as linked lists
    state int64[v, t], price float64[v], size int64[v]   an unused index has size 0
    cover int32[m, c], covers int64[m]   open tuples that cover each cell, cheapest first
    free int64[v], frees int64[1]        unused indexes
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


class OpeningPlan(NamedTuple):
    """The effects of opening a tuple.

    inside bool[m], cells int64[m]   cells that it covers
    source int64[v], has int64[v]    tuples with rows there, and their number (0 elsewhere)
    take int64[v], closing bool[v], target bool[v]   rows taken of each; tuples that close; tuples that get rows of
    those
    loss float64[v]                  the loss of closing a tuple, NaN if not computed yet
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
    """Write the cells that a tuple covers to out int64[m]; returns their number."""
    slots, words, found = table.slots, table.words, 0
    every = True
    for t in range(state.size):
        a = slots.base[t] + state[t]
        if slots.parent[a] == state[t]:  # the root covers all cells
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
    """The index of the only set bit, by a parallel population count, because branches would be mispredicted."""
    a = low - ONE
    a = a - ((a >> ONE) & np.uint64(0x5555555555555555))
    a = (a & np.uint64(0x3333333333333333)) + ((a >> TWO) & np.uint64(0x3333333333333333))
    a = (a + (a >> FOUR)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((a * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(**INNER)
def move(open_, x, to):
    """Move row x from its tuple to another; -1 for no tuple on either side."""
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
    """The cheapest open tuple that covers cell i, except s and tuples that are about to close; -1 for none."""
    for y in range(open_.covers[i]):
        c = np.int64(open_.cover[i, y])
        if c != s and not plan.closing[c]:
            return c
    return -1


@njit(**INNER)
def add_to_lists(open_, i, g):
    """Add tuple g to the list of a cell, which has room."""
    y = open_.covers[i]
    while y > 0 and open_.price[open_.cover[i, y - 1]] > open_.price[g]:
        open_.cover[i, y] = open_.cover[i, y - 1]
        y -= 1
    open_.cover[i, y] = g
    open_.covers[i] += 1


@njit(**INNER)
def remove_from_lists(table, open_, plan, g):
    """Remove tuple g from the lists and mark it as unused."""
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


CLOSES, OTHERS, JOINS = 0.05, 0.3, 0.85  # thresholds of a random number that selects the kind of step
POOLED = 0.7  # share of attempts from the pool, if there is one
REACH = 100  # number of a tuple's rows from which one is drawn


@njit(**INNER)
def _closing_loss(table, open_, plan, s, price):
    """The additional loss of tuple s's rows if it closes; those that the new tuple covers lose at most this price."""
    total = 0.0
    x = open_.head[s]
    while x >= 0:
        i = table.cell[x]
        to = cheapest(open_, plan, i, s)
        least = np.inf if to < 0 else open_.price[to]
        if plan.inside[i]:
            least = min(least, price)
        total += least - open_.price[s]
        if total == np.inf:
            break
        x = open_.following[x]
    return total


@njit(**INNER)
def _mark_closing(table, open_, plan, s, price):
    """Mark tuple s to be closed; returns how many of its rows move to the new one."""
    plan.closing[s] = True
    plan.take[s] = 0
    x = open_.head[s]
    while x >= 0:
        i = table.cell[x]
        to = cheapest(open_, plan, i, s)
        if plan.inside[i] and (to < 0 or price <= open_.price[to]):
            plan.take[s] += 1
        else:
            plan.target[to] = True
        x = open_.following[x]
    return plan.take[s]


@njit(**INNER)
def _planned(table, open_, plan, sources, price, bar):
    """The least change of the loss found for opening a tuple at this price, infinite if impossible or above the bar.

    First take all rows that gain. Then close tuples that can't spare rows if that gains more. Then add rows that lose
    until there are k.
    """
    k = table.k
    change, inflow = 0.0, np.int64(0)
    for y in range(sources):
        s = plan.source[y]
        gain = open_.price[s] - price
        if gain > 0.0:
            if plan.has[s] == open_.size[s] and not plan.target[s]:
                change += _closing_loss(table, open_, plan, s, price)
                inflow += _mark_closing(table, open_, plan, s, price)
                continue
            plan.take[s] = min(plan.has[s], open_.size[s] - k)
            change -= plan.take[s] * gain
            inflow += plan.take[s]
    for y in range(sources):
        s = plan.source[y]
        gain = open_.price[s] - price
        if gain <= 0.0 or plan.closing[s] or plan.target[s] or plan.take[s] == plan.has[s]:
            continue
        if open_.size[s] > 4 * plan.has[s]:
            continue
        more = _closing_loss(table, open_, plan, s, price)
        plan.loss[s] = more
        if more < -plan.take[s] * gain:
            change += more + plan.take[s] * gain
            inflow -= plan.take[s]
            inflow += _mark_closing(table, open_, plan, s, price)
    # The tuple needs k rows: repeatedly the cheapest way to get one, by taking rows that a tuple can spare or by
    # closing it.
    while inflow < k:
        if change >= bar:
            return np.inf
        best, least, close = -1, np.inf, False
        for y in range(sources):
            s = plan.source[y]
            if plan.closing[s]:
                continue
            lose = price - open_.price[s]
            if lose < least and min(plan.has[s], open_.size[s] - k) > plan.take[s]:
                best, least, close = s, lose, False
            if plan.target[s] or open_.size[s] > 3 * plan.has[s] or plan.has[s] == plan.take[s]:
                continue
            if np.isnan(plan.loss[s]):
                if lose > least and plan.has[s] == open_.size[s]:
                    continue
                plan.loss[s] = _closing_loss(table, open_, plan, s, price)
            each = (plan.loss[s] - plan.take[s] * lose) / (plan.has[s] - plan.take[s])
            if each < least:
                best, least, close = s, each, True
        if best < 0:
            return np.inf
        lose = price - open_.price[best]
        if close:
            more = _closing_loss(table, open_, plan, best, price)
            if more == np.inf:
                plan.loss[best] = np.inf
                continue
            change += more - plan.take[best] * lose
            inflow -= plan.take[best]
            inflow += _mark_closing(table, open_, plan, best, price)
        else:
            some = min(k - inflow, min(plan.has[best], open_.size[best] - k) - plan.take[best])
            plan.take[best] += some
            change += some * lose
            inflow += some
    return change


@njit(**INNER)
def _done(table, open_, plan, cells, sources, state, price, turn):
    """Carry out the plan: open the tuple, move rows, close others. False if there is no room."""
    g = open_.free[open_.frees[0] - 1]
    for i in range(cells):
        if open_.covers[plan.cells[i]] == open_.cover.shape[1]:
            return False
    open_.frees[0] -= 1
    for t in range(state.size):
        open_.state[g, t] = state[t]
    open_.price[g], open_.head[g], open_.size[g] = price, -1, 0
    for y in range(cells):
        i = plan.cells[(y + turn) % cells]
        for x in range(table.first[i], table.first[i + 1]):
            s = open_.of[x]
            if s != g and not plan.closing[s] and plan.take[s] > 0:
                plan.take[s] -= 1
                move(open_, x, g)
    for y in range(sources):
        s = plan.source[y]
        if plan.closing[s]:
            x = open_.head[s]
            while x >= 0:
                after = open_.following[x]
                i = table.cell[x]
                to = cheapest(open_, plan, i, s)
                if plan.inside[i] and (to < 0 or price <= open_.price[to]):
                    to = g
                move(open_, x, to)
                x = after
    for y in range(cells):
        i = plan.cells[y]
        add_to_lists(open_, i, g)
    return True


@njit(**INNER)
def _try(table, open_, plan, state, seed, bar, turn):
    """Open a tuple if the change of the loss is below the bar.

    Returns the change, 0 if it wasn't opened, or -inf if a list had no room.
    """
    price = joined(table.slots, state, state, np.inf)
    i = table.cell[seed]
    for y in range(open_.covers[i]):
        c = open_.cover[i, y]
        if open_.price[c] == price:
            same = True
            for t in range(state.size):
                if open_.state[c, t] != state[t]:
                    same = False
                    break
            if same:
                return 0.0
    cells = covered(table, state, plan.cells)
    rows = 0
    for y in range(cells):
        i = plan.cells[y]
        rows += table.first[i + 1] - table.first[i]
    if rows < table.k or open_.frees[0] == 0:
        return 0.0
    sources = 0
    most = 0.0
    for y in range(cells):
        i = plan.cells[y]
        plan.inside[i] = True
        for x in range(table.first[i], table.first[i + 1]):
            s = open_.of[x]
            if plan.has[s] == 0:
                plan.source[sources] = s
                sources += 1
            plan.has[s] += 1
    for y in range(sources):
        s = plan.source[y]
        most += plan.has[s] * max(open_.price[s] - price, 0.0)
    change, done = np.inf, True
    if -most < bar:
        change = _planned(table, open_, plan, sources, price, bar)
        if change < bar:
            done = _done(table, open_, plan, cells, sources, state, price, int(turn * cells))
    for y in range(cells):
        plan.inside[plan.cells[y]] = False
    for y in range(sources):
        s = plan.source[y]
        if plan.closing[s] and change < bar and done:
            remove_from_lists(table, open_, plan, s)
        plan.has[s], plan.take[s], plan.closing[s], plan.loss[s] = 0, 0, False, np.nan
    plan.target[:] = False
    if not done:
        return -np.inf
    return change if change < bar else 0.0


@njit(**INNER)
def _move_to_cheaper(table, open_, plan, s):
    """Move rows that tuple s can spare to cheaper tuples; returns the change of the loss."""
    change = 0.0
    x = open_.head[s]
    while x >= 0 and open_.size[s] > table.k:
        after = open_.following[x]
        to = cheapest(open_, plan, table.cell[x], s)
        if to >= 0 and open_.price[to] < open_.price[s]:
            change += open_.price[to] - open_.price[s]
            move(open_, x, to)
        x = after
    return change


@njit(**INNER)
def _close(table, open_, plan, s, bar):
    """Close tuple s if the change of the loss is below the bar."""
    change = _closing_loss(table, open_, plan, s, np.inf)
    if change >= bar:
        return 0.0
    x = open_.head[s]
    while x >= 0:
        after = open_.following[x]
        move(open_, x, cheapest(open_, plan, table.cell[x], s))
        x = after
    remove_from_lists(table, open_, plan, s)
    return change


@njit(**INNER)
def _step_down(table, state, t, leaf):
    """Move state t one node closer to a leaf below it."""
    base, a = table.slots.base[t], leaf
    while a != state[t] and np.int64(table.slots.parent[base + a]) != state[t]:
        a = np.int64(table.slots.parent[base + a])
    state[t] = a


@njit(**INNER)
def _drawn(table, open_, x, kind, random, new):
    """Write a tuple near row x to new int64[t]: its own, another open one, or a join, with random columns moved."""
    slots, leaf, cell = table.slots, table.leaf, table.cell
    s, i = open_.of[x], cell[x]
    base = s
    if kind < OTHERS and open_.covers[i] > 1:
        base = np.int64(open_.cover[i, int(draw(random) * open_.covers[i])])
    for t in range(new.size):
        new[t] = open_.state[base, t]
    if kind > JOINS:  # the least tuple that covers the row, or its tuple, and a row of a tuple that covers it
        y = open_.head[int(open_.cover[i, int(draw(random) * open_.covers[i])])]
        for _ in range(int(draw(random) * REACH)):
            y = open_.following[y] if open_.following[y] >= 0 else y
        row = draw(random) < 0.7
        for t in range(new.size):
            new[t] = join(slots, t, leaf[i, t] if row else new[t], leaf[cell[y], t])
    share = draw(random)
    ups = 0 if share < 0.35 else 1 if share < 0.85 else 2
    for _ in range(ups):
        t = int(draw(random) * new.size)
        new[t] = np.int64(slots.parent[slots.base[t] + new[t]])
    share = draw(random)
    downs = 1 if share < 0.6 else 2 if share < 0.9 else 3
    if ups and draw(random) < 0.2:
        downs = 0
    for _ in range(downs):
        t = int(draw(random) * new.size)
        for _ in range(4):
            if new[t] != leaf[i, t]:
                break
            t = int(draw(random) * new.size)
        if new[t] != leaf[i, t]:
            _step_down(table, new, t, leaf[i, t])


class TuplesToTry(NamedTuple):
    """Tuples to try, the most promising first: pool int64[p, t], inside int64[p]: a cell that each covers.

    Both may be empty.
    """

    pool: np.ndarray
    inside: np.ndarray


class Annealing(NamedTuple):
    """An annealing: int64 steps, uint64 seed, float64 heat.

    heat  an increase of the loss up to this times an exponential random number (mean 1) is accepted.
    """

    steps: int
    seed: np.uint64
    heat: float


@njit(cache=True, nogil=True)
def open_close(table, of, state, cover, tried, annealing):
    """Open tuples near the open ones, close others, and move rows; keep changes that lower the loss.

    table, tried, annealing   ``PublishedTable``, ``TuplesToTry``, ``Annealing``
    of int64[n]   tuple of each row, in and out; state int64[v, t]: the tuples, in and out, v more than n / k
    cover int32[m, c]   room for the open tuples that cover a cell
    returns the change of the loss, steps done, and tuples opened; it ends early if ``cover`` has no room.

    A step reads every word of the sets of cells once per column, and every row of the tuple that it tries: O(w t + rows
    there).
    """
    slots, leaf, first, cell, bits, _, k = table
    (pool, inside), (steps, seed, heat) = tried, annealing
    n, m, v = cell.size, leaf.shape[0], state.shape[0]
    random = np.empty(1, np.uint64)
    random[0] = seed | ONE
    for _ in range(8):
        draw(random)
    for i in range(m):
        for t in range(leaf.shape[1]):
            a = leaf[i, t]
            while True:
                bits[slots.base[t] + a, i >> 6] |= ONE << np.uint64(i & 63)
                up = np.int64(slots.parent[slots.base[t] + a])
                if up == a:
                    break
                a = up
    none, chain, empty = np.full(n, -1, np.int64), np.empty((2, n), np.int64), np.zeros((2, v), np.int64)
    open_ = Open(none, chain[0], chain[1], np.full(v, -1, np.int64), state, np.zeros(v), empty[0], cover,
                 np.zeros(m, np.int64), empty[1], np.zeros(1, np.int64))  # fmt: skip
    plan = OpeningPlan(np.zeros(m, np.bool_), np.empty(m, np.int64), np.empty(v, np.int64), np.zeros(v, np.int64),
                np.zeros(v, np.int64), np.zeros(v, np.bool_), np.zeros(v, np.bool_), np.full(v, np.nan))  # fmt: skip
    for x in range(n):
        move(open_, x, of[x])
    fits = True
    for g in range(v):
        if open_.size[g] == 0:
            open_.free[open_.frees[0]] = g
            open_.frees[0] += 1
            continue
        open_.price[g] = joined(slots, state[g], state[g], np.inf)
        many = covered(table, state[g], plan.cells)
        for y in range(many):
            fits = fits and open_.covers[plan.cells[y]] < cover.shape[1]
            if fits:
                add_to_lists(open_, plan.cells[y], g)
    gained, step, opened = 0.0, 0, 0
    new = np.empty(leaf.shape[1], np.int64)
    # A step closes the tuple of a row with a large loss, or opens one near it or from the pool.
    while fits and step < steps:
        step += 1
        x = int(draw(random) * n)
        other = int(draw(random) * n)
        if open_.price[open_.of[other]] > open_.price[open_.of[x]]:
            x = other
        s, i = open_.of[x], cell[x]
        bar = -1e-9
        if heat > 0.0:
            bar -= heat * np.log(1.0 - draw(random))
        if open_.size[s] > k:
            gained += _move_to_cheaper(table, open_, plan, s)
            s = open_.of[x]
        if inside.size and draw(random) < POOLED:
            c = int(draw(random) ** 2 * inside.size)
            x = first[inside[c]]
            for t in range(new.size):
                new[t] = pool[c, t]
        else:
            kind = draw(random)
            if kind < CLOSES:
                gained += _close(table, open_, plan, s, bar)
                continue
            _drawn(table, open_, x, kind, random, new)
        change = _try(table, open_, plan, new, x, bar, draw(random))
        if change == -np.inf:
            fits = False
            step -= 1
        elif change != 0.0:
            gained += change
            opened += 1
    for x in range(n):
        of[x] = open_.of[x]
    return gained, step, opened
