"""The cascade led by row prices: a class is published as soon as it loses little more than its rows must lose."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels.tables.lattice import classes


@njit(cache=True, nogil=True)
def publish_priced(quasi, up, at, size, levels, exact, loss, value, kinds, left, price, group_size, allowance, floor,
                   group, cell_out, group_out, count_out):  # fmt: skip
    """Publish, node by node, the dearest rows of every class whose mean cost is within an allowance of their prices.

    loss float64[..] laid out like up; value int64[m], kinds 1 or 2: rows of so many values make a group eligible
    left int64[m] updated; price float64[m]; group_size int64 K; allowance float64 per row
    floor float64[v]   out: loss per row above the prices of the class that came nearest to them, published or not
    Triples are written as by ``publish``; returns (nodes done, triples written, next group).
    O(cells left * (d + K)) per node.
    """
    m, d = left.size, quasi.shape[1]
    active = np.flatnonzero(left > 0)
    none = np.zeros(m, np.int64)
    width = 16
    while width < 2 * active.size + 2:
        width *= 2
    slots = np.full(width, -1, np.int64)
    key_at, first_at, of = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    rows, start, order = np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.empty(m, np.int64)
    top, cell, chosen = np.zeros(group_size), np.empty(group_size, np.int64), np.zeros(m, np.int64)
    written, v = 0, 0
    while v < levels.shape[0]:
        if active.size == 0 or written + active.size + 2 > cell_out.size:
            break
        level = levels[v]
        found = classes(quasi, up, at, size, level, exact, none, 0, active, slots, key_at, first_at, of)
        v += 1
        closest = np.inf
        for x in range(found):
            rows[x] = 0
            start[x] = 0
        for i in range(active.size):
            rows[of[i]] += left[active[i]]
            start[of[i]] += 1
        total = 0
        for x in range(found):
            here = start[x]
            start[x] = total if rows[x] >= group_size else -1
            if rows[x] >= group_size:
                total += here
        for i in range(active.size):
            x = of[i]
            if start[x] >= 0:
                order[start[x]] = active[i]
                start[x] += 1
        end = 0
        changed = False
        for x in range(found):
            if start[x] < 0:
                continue
            begin, end = end, start[x]
            cost = 0.0
            for j in range(d):
                cost += loss[at[j] + level[j] * size[j] + quasi[first_at[x], j]]
            held = 0
            for i in range(begin, end):
                c = order[i]
                for _ in range(min(left[c], group_size)):
                    if held == group_size and price[c] <= top[held - 1]:
                        break
                    y = held if held < group_size else held - 1
                    held = min(held + 1, group_size)
                    while y > 0 and top[y - 1] < price[c]:
                        top[y], cell[y] = top[y - 1], cell[y - 1]
                        y -= 1
                    top[y], cell[y] = price[c], c
            if kinds > 1:
                same = True
                for y in range(held):
                    if value[cell[y]] != value[cell[0]]:
                        same = False
                        break
                if same:
                    other = -1
                    for i in range(begin, end):
                        c = order[i]
                        if value[c] != value[cell[0]] and (other < 0 or price[c] > price[other]):
                            other = c
                    if other < 0:
                        continue
                    top[held - 1], cell[held - 1] = price[other], other
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
                    cell_out[written], group_out[written], count_out[written] = c, group, give
                    written += 1
            group += 1
            changed = True
        floor[v - 1] = closest
        if changed:
            here = 0
            for i in range(active.size):
                if left[active[i]] > 0:
                    active[here] = active[i]
                    here += 1
            active = active[:here]
            of = of[:here]
    return v, written, group
