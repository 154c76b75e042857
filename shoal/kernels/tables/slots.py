"""What groups publish, and what a row more would cost.

What a group publishes is kept in *slots*, one int64 per group and slot; everything the kernels know of a recoding is
how two slot values join and what a value costs a row.

kind 0  a node of a tree, joined by a table of lowest common ancestors
kind 1  the same for large trees: nodes are numbered level by level, so the lesser number climbs until both are equal
kind 2  a set, one bit per value (columns of more than 60 values take several slots)
kind 3  a range of codes, low | high << 32
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit

LOW = np.int64(0xFFFFFFFF)


class Slots(NamedTuple):
    """kind int64[t]; base int64[t] into parent int32[..] and loss float64[..] (ranges: position of each code);
    table int64[t] into ancestor int16[..], pair float64[..] (loss of that
    ancestor), width int64[t] nodes of the tree; unit float64[t] factor of sets, ranges."""

    kind: np.ndarray
    base: np.ndarray
    parent: np.ndarray
    loss: np.ndarray
    table: np.ndarray
    width: np.ndarray
    ancestor: np.ndarray
    pair: np.ndarray
    unit: np.ndarray


@njit(**LEAN_INNER)
def join(slots, t, a, b):
    """The least value that covers both."""
    if a == b:
        return a
    kind = slots.kind[t]
    if kind == 0:
        return np.int64(slots.ancestor[slots.table[t] + a * slots.width[t] + b])
    if kind == 1:
        p = slots.base[t]
        while a != b:
            if a < b:
                a = np.int64(slots.parent[p + a])
            else:
                b = np.int64(slots.parent[p + b])
        return a
    if kind == 2:
        return a | b
    return min(a & LOW, b & LOW) | (max(a >> 32, b >> 32) << 32)


@njit(**LEAN_INNER)
def cost(slots, t, a):
    """What publishing value a in slot t costs one row."""
    kind = slots.kind[t]
    if kind < 2:
        return slots.loss[slots.base[t] + a]
    if kind == 2:
        a = a - ((a >> 1) & 0x5555555555555555)  # number of bits, in parallel
        a = (a & 0x3333333333333333) + ((a >> 2) & 0x3333333333333333)
        a = (a + (a >> 4)) & 0x0F0F0F0F0F0F0F0F
        return np.float64(((a * 0x0101010101010101) >> 56) & 127) * slots.unit[t]
    return (slots.loss[slots.base[t] + (a >> 32)] - slots.loss[slots.base[t] + (a & LOW)]) * slots.unit[t]


@njit(**LEAN_INNER)
def joined(slots, a, b, limit):
    """Loss per row of the join of two rows of slots; may stop early at any value above limit."""
    total = 0.0
    for t in range(a.size):
        if slots.kind[t] == 0:
            total += slots.pair[slots.table[t] + a[t] * slots.width[t] + b[t]]
        else:
            total += cost(slots, t, join(slots, t, a[t], b[t]))
        if total > limit:
            break
    return total


@njit(cache=True, nogil=True)
def prices(slots, state):
    """What publishing each line of slots costs one row, float64[g].  O(g t)."""
    out = np.empty(state.shape[0])
    for g in range(out.size):
        out[g] = joined(slots, state[g], state[g], np.inf)
    return out
