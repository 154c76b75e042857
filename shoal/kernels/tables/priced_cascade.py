"""The cascade led by row prices: a class is published as soon as it loses little more than its rows must lose."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.lattice import by_class, classes, room_of, still


class Led(NamedTuple):
    """What leads the cascade.

    loss float64[..] laid out like up; price float64[m] of a row; value int64[m], kinds 1 or 2: rows of so many values
    make a group eligible, ``size`` int64 of them (K); allowance float64 a row
    """

    loss: np.ndarray
    price: np.ndarray
    value: np.ndarray
    kinds: int
    size: int
    allowance: float


@njit(**INNER)
def _dearest(cells, left, led, top, cell):
    """The K dearest rows of some cells, of two values where these are asked; whether there are.

    top, cell [K]  out: their prices, falling, and their cells
    """
    price, value, held, size = led.price, led.value, 0, led.size
    for c in cells:
        for _ in range(min(left[c], size)):
            if held == size and price[c] <= top[held - 1]:
                break
            y = held if held < size else held - 1
            held = min(held + 1, size)
            while y > 0 and top[y - 1] < price[c]:
                top[y], cell[y] = top[y - 1], cell[y - 1]
                y -= 1
            top[y], cell[y] = price[c], c
    if led.kinds < 2:
        return True
    for y in range(held):
        if value[cell[y]] != value[cell[0]]:
            return True
    other = -1
    for c in cells:
        if value[c] != value[cell[0]] and (other < 0 or price[c] > price[other]):
            other = c
    if other < 0:
        return False
    top[held - 1], cell[held - 1] = price[other], other
    return True


@njit(cache=True, nogil=True)
def publish_priced(raised, levels, led, left, floor, group, out):
    """Publish, node by node, the dearest rows of every class whose mean cost is within an allowance of their prices.

    left int64[m] updated
    floor float64[v]   out: loss per row above the prices of the class that came nearest to them, published or not
    out ``Triples``, written as by ``publish``;  returns (nodes done, triples written, next group).
    O(cells left * (d + K)) per node.
    """
    quasi, up, at, size, exact = raised
    price, group_size, allowance = led.price, led.size, led.allowance
    m, d = left.size, quasi.shape[1]
    active = np.flatnonzero(left > 0)
    none = np.zeros(m, np.int64)  # no row is held back either
    slots, key_at, first_at, of = room_of(m, active.size)
    rows, lent, start, order = (np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64),
                                np.empty(m, np.int64))  # fmt: skip
    top, cell, chosen = np.zeros(group_size), np.empty(group_size, np.int64), np.zeros(m, np.int64)
    written, v = 0, 0
    while v < levels.shape[0]:
        if active.size == 0 or written + active.size + 2 > out.cell.size:
            break
        level = levels[v]
        found = classes(quasi, up, at, size, level, exact, none, 0, active, slots, key_at, first_at, of)
        v += 1
        closest = np.inf
        floor[v - 1] = closest
        if not by_class(active, of, found, left, none, group_size, rows, lent, start, order):
            continue
        end = 0
        changed = False
        for x in range(found):
            if start[x] < 0:
                continue
            begin, end = end, start[x]
            cost = 0.0
            for j in range(d):
                cost += led.loss[at[j] + level[j] * size[j] + quasi[first_at[x], j]]
            if not _dearest(order[begin:end], left, led, top, cell):
                continue
            short = group_size * cost
            for y in range(group_size):
                short -= top[y]
            closest = min(closest, short / group_size)
            if short > allowance * group_size:
                continue
            for y in range(group_size):
                chosen[cell[y]] += 1
            for i in range(begin, end):
                c = order[i]
                give = left[c] if cost - price[c] <= allowance else chosen[c]
                chosen[c] = 0
                if give > 0:
                    left[c] -= give
                    out.cell[written], out.group[written], out.count[written] = c, group, give
                    written += 1
            group += 1
            changed = True
        floor[v - 1] = closest
        if changed:
            here = still(active, left, none)
            active = active[:here]
            of = of[:here]
    return v, written, group
