"""Rows in small groups: what a group publishes, what a row more would cost, and which exchanges lower the loss.

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
from numba import njit

LOW = np.int64(0xFFFFFFFF)


class Slots(NamedTuple):
    """kind int64[t]; base int64[t] into parent int32[..] and loss float64[..] (ranges: position of each code);
    table int64[t] into ancestor int16[..], width int64[t] nodes of the tree; unit float64[t] factor of sets, ranges."""

    kind: np.ndarray
    base: np.ndarray
    parent: np.ndarray
    loss: np.ndarray
    table: np.ndarray
    width: np.ndarray
    ancestor: np.ndarray
    unit: np.ndarray


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def cost(slots, t, a):
    """What publishing value a in slot t costs one row."""
    kind = slots.kind[t]
    if kind < 2:
        return slots.loss[slots.base[t] + a]
    if kind == 2:
        bits = np.float64(0)
        while a != 0:
            a &= a - 1
            bits += 1.0
        return bits * slots.unit[t]
    return (slots.loss[slots.base[t] + (a >> 32)] - slots.loss[slots.base[t] + (a & LOW)]) * slots.unit[t]


@njit(cache=True, nogil=True)
def joined(slots, a, b, limit):
    """Loss per row of the join of two rows of slots; may stop early at any value above limit."""
    total = 0.0
    for t in range(a.size):
        total += cost(slots, t, join(slots, t, a[t], b[t]))
        if total > limit:
            break
    return total


@njit(cache=True, nogil=True)
def insert(slots, leaf, cell, sensitive, frequency, head, following, size, state, rows, start, candidate):
    """Put rows, one by one, where they raise the loss least and no group loses its eligibility.

    leaf int64[m, t] slots of each cell; cell int64[n] of each row; sensitive int32[n, s]; frequency int64[s]
    head int64[g], following int64[n]   members of a group as a chained list, -1 ends
    size int64[g], state int64[g, t]    rows of a group and what it publishes; all four are updated
    rows int64[r]; candidate int64[..]  row i may go to candidate[start[i] : start[i + 1]], to any if start is empty
    returns bool[r]: whether a place was found.  O(sum of candidates * t)
    """
    done = np.zeros(rows.size, np.bool_)
    now = np.empty(size.size)
    for g in range(size.size):
        now[g] = joined(slots, state[g], state[g], np.inf) * size[g]
    every = start.size == 0
    for i in range(rows.size):
        x = rows[i]
        own = leaf[cell[x]]
        best, least = -1, np.inf
        low = 0 if every else start[i]
        high = size.size if every else start[i + 1]
        for y in range(low, high):
            g = y if every else candidate[y]
            n = size[g]
            if n == 0:
                continue
            rise = (n + 1) * joined(slots, state[g], own, (least + now[g]) / (n + 1)) - now[g]
            if rise >= least:
                continue
            fits = True
            for j in range(frequency.size):
                if frequency[j] > 1:
                    same = 1
                    z = head[g]
                    while z >= 0:
                        if sensitive[z, j] == sensitive[x, j]:
                            same += 1
                        z = following[z]
                    if same * frequency[j] > n + 1:
                        fits = False
                        break
            if fits:
                best, least = g, rise
        if best >= 0:
            done[i] = True
            following[x] = head[best]
            head[best] = x
            size[best] += 1
            for t in range(leaf.shape[1]):
                state[best, t] = join(slots, t, state[best, t], own[t])
            now[best] = joined(slots, state[best], state[best], np.inf) * size[best]
    return done
