"""Near cells of every cell: a graph of nearest neighbors by the loss of publishing two cells together."""

from __future__ import annotations

import numpy as np

from shoal.kernels import LEAN, LEAN_INNER, njit
from shoal.kernels.tables.slots import joined


@njit(**LEAN_INNER)
def _offer(near, far, held, b, d):
    """Insert b at distance d into a list kept by rising distance; returns how many it holds."""
    w = near.size
    for y in range(held):
        if near[y] == b:
            return held
    if held == w:
        if d >= far[w - 1]:
            return held
        y = w - 1
    else:
        y = held
        held += 1
    while y > 0 and far[y - 1] > d:
        near[y], far[y] = near[y - 1], far[y - 1]
        y -= 1
    near[y], far[y] = b, d
    return held


@njit(**LEAN)
def windows(slots, leaf, order, rank, reach, low, high, near, far):
    """Start the graph: of every cell, the nearest of those that stand next to it in some orders of all cells.

    leaf int64[m, t] slots of each cell; order int64[o, m] cells in each order, rank int64[o, m] places of the cells
    reach int64 places looked at on each side; low, high: the cells asked about
    near int32[m, w], far float64[m, w]   out, by rising loss; -1 and inf after the last
    O((high - low) o reach t).
    """
    m = leaf.shape[0]
    for a in range(low, high):
        near[a, :] = -1
        far[a, :] = np.inf
        held = 0
        for o in range(order.shape[0]):
            middle = rank[o, a]
            for y in range(max(middle - reach, 0), min(middle + reach + 1, m)):
                b = order[o, y]
                if b != a:
                    limit = far[a, -1]
                    d = joined(slots, leaf[a], leaf[b], limit)
                    if d < limit:
                        held = _offer(near[a], far[a], held, b, d)


@njit(**LEAN)
def descend(slots, leaf, old, low, high, near, far, stamp):
    """One pass of the descent: the neighbors of a cell's neighbors are offered to it.

    old int32[m, w] the graph before; near, far: out for the cells low .. high, in: as in old.
    stamp int32[m]  room, all -1
    O((high - low) w^2 t).
    """
    w = old.shape[1]
    for a in range(low, high):
        stamp[a] = a
        held = 0
        while held < w and old[a, held] >= 0:
            stamp[old[a, held]] = a
            held += 1
        for y in range(held):
            b = old[a, y]
            for z in range(w // 2):  # the nearer half
                c = old[b, z]
                if c < 0:
                    break
                if stamp[c] == a:
                    continue
                stamp[c] = a
                limit = far[a, w - 1]
                d = joined(slots, leaf[a], leaf[c], limit)
                if d < limit:
                    held = max(held, _offer(near[a], far[a], held, c, d))


@njit(cache=True, nogil=True)
def between(slots, state, one, other):
    """By how much each group is nearer to one group than to another, float64[g]; state int64[g, t]."""
    out = np.empty(state.shape[0])
    for g in range(out.size):
        out[g] = joined(slots, state[g], state[one], np.inf) - joined(slots, state[g], state[other], np.inf)
    return out
