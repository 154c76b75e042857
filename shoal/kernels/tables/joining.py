"""Rows put into the groups where the loss rises least; the layout is that of ``scarce_values``."""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit
from shoal.kernels.tables.slots import join, joined


@njit(cache=True, nogil=True)
def cheapest(slots, leaf, rows, state, size, price, order, out):
    """The groups whose loss rises least when a row joins, for each of some rows; those of the row before are a guess.

    rows int64[r]; size int64[g]; order int64[g] the groups by rising price, empty ones left out
    out  int64[r, c]   out: the c groups, nearest first, -1 beyond

    A row that joins costs at least what the group costs a row already, so the scan ends early.  O(r g t) at worst.
    """
    c = out.shape[1]
    best = np.empty(c)
    for i in range(rows.size):
        own = leaf[rows[i]]
        alike = i > 0
        for t in range(own.size):
            alike = alike and own[t] == leaf[rows[i - 1], t]
        if alike:
            out[i] = out[i - 1]
            continue
        held = 0
        guesses = c if i else 0
        for e in range(-guesses, order.size):
            g = out[i - 1, e + guesses] if e < 0 else order[e]
            if g < 0:
                continue
            bar = best[c - 1] if held == c else np.inf
            if e >= 0 and price[g] >= bar:
                break
            n = size[g]
            rise = (n + 1) * joined(slots, state[g], own, (bar + n * price[g]) / (n + 1)) - n * price[g]
            if rise >= bar:
                continue
            seen = False
            for z in range(held):
                seen |= out[i, z] == g
            if seen:
                continue
            z = held if held < c else c - 1
            held = min(held + 1, c)
            while z > 0 and best[z - 1] > rise:
                best[z], out[i, z] = best[z - 1], out[i, z - 1]
                z -= 1
            best[z], out[i, z] = rise, g
        for z in range(held, c):
            out[i, z] = -1


@njit(cache=True, nogil=True)
def settle(slots, leaf, rows, candidates, group, state, size, price):
    """Put rows, one by one, into the candidate where the loss rises least now; group, state, size, price updated.

    Only for requirements that a group goes on to meet whatever joins it.  O(r c t).
    """
    for i in range(rows.size):
        x = rows[i]
        own = leaf[x]
        best, least = -1, np.inf
        for z in range(candidates.shape[1]):
            g = candidates[i, z]
            if g < 0:
                break
            n = size[g]
            rise = (n + 1) * joined(slots, state[g], own, np.inf) - n * price[g]
            if rise < least:
                best, least = g, rise
        group[x] = best
        size[best] += 1
        for t in range(leaf.shape[1]):
            state[best, t] = join(slots, t, state[best, t], own[t])
        price[best] = joined(slots, state[best], state[best], np.inf)
