"""Prices of points moved along subgradients against all balls of their lists, and made feasible again."""

from __future__ import annotations

import numpy as np

from shoal.kernels import LEAN_INNER, njit
from shoal.kernels.patience import rises

FADE, PATIENCE = 0.7, 10.0


@njit(**LEAN_INNER)
def _highest(near, price, v):
    """The highest price on a center's list: no ball as wide as that is looked at."""
    high = -np.inf
    for j in range(near.shape[1]):
        if near[v, j] < 0:
            break
        high = max(high, price[near[v, j]])
    return high


@njit(**LEAN_INNER)
def _sorted_in(top, who, size, price, i):
    """Point i among those by falling price; returns its place."""
    f = size
    while f > 0 and top[f - 1] < price[i]:
        top[f], who[f] = top[f - 1], who[f - 1]
        f -= 1
    top[f], who[f] = price[i], i
    return f


@njit(**LEAN_INNER)
def _paid(near, far, r, price, v, top, who, kept):
    """(the most by which a cluster around v is paid above its cost, its points); these in ``kept``.

    top, who  room for a list
    """
    size, above, best, many = 0, 0.0, 0.0, 0
    high = _highest(near, price, v)
    w = near.shape[1]
    for j in range(w):
        i, d = near[v, j], far[v, j]
        if i < 0 or d >= high:
            break
        f = _sorted_in(top, who, size, price, i)
        size += 1
        if f < r:
            above += price[i] - (top[r] if size > r else 0.0)
        if size < r or (j + 1 < w and far[v, j + 1] == d):
            continue
        over, f = above - r * d, r
        while f < size and top[f] > d:
            over += top[f] - d
            f += 1
        if over > best:
            best, many = over, f
            for x in range(f):
                kept[x] = who[x]
    return best, many


@njit(cache=True, nogil=True)
def climb(near, far, r, scale, cap, price, best, passes, aim, gap, state):
    """Some passes of a subgradient method for the prices whose sum, less what clusters are overpaid, is largest.

    near, far  as for ``raise_prices``;  r at least 2 points a cluster, no set-up costs
    scale float64[n]  what a price is reckoned in: steps are in units of it
    price float64[n]  in and out, at most ``cap``;  best float64[n] out: those of the largest value so far
    state float64[3]  in and out: largest value so far, length of steps, passes since it rose

    A step of Polyak's rule along the smoothed subgradient aims ``gap`` above the value there is, and above ``aim``.
    Every center is overpaid once, by its dearest cluster.  O(passes * n w) as a rule.
    """
    n, w = near.shape
    top, who, kept = np.empty(w), np.empty(w, np.int64), np.empty(w, np.int64)
    taken, trend = np.empty(n, np.int64), np.zeros(n)
    for _ in range(passes):
        taken[:] = 0
        value = 0.0
        for v in range(n):
            value += price[v]
            over, many = _paid(near, far, r, price, v, top, who, kept)
            value -= over
            for x in range(many):
                taken[kept[x]] += 1
        if rises(state, value, PATIENCE):
            best[:] = price
        elif state[2] == 0.0 and value < state[0] - gap:  # far off: again from the best, with shorter steps
            price[:], trend[:] = best, 0.0
            continue
        length = 0.0
        for i in range(n):
            trend[i] = (1 - FADE) * (1 - taken[i]) + FADE * trend[i]
            length += (trend[i] * scale[i]) ** 2
        if length == 0.0:
            break
        step = state[1] * (max(state[0], aim) + gap - value) / length
        for i in range(n):
            price[i] = min(price[i] + step * trend[i] * scale[i] ** 2, cap[i])


@njit(cache=True, nogil=True)
def excess(near, far, r, price, out):
    """By how much the mean of r points within a radius of a center is above that radius, at most, for each of them.

    near, far, r  as for ``climb``;  price float64[n];  out float64[n] out: 0 where no such mean is above
    O(n w^2) as a rule, where many balls are overpaid.
    """
    n, w = near.shape
    top, who, over, least = np.empty(w), np.empty(w, np.int64), np.empty(w), np.empty(w)
    out[:] = 0.0
    for v in range(n):
        size, above, some = 0, 0.0, False
        high = _highest(near, price, v)
        for j in range(w):
            i, d = near[v, j], far[v, j]
            if i < 0 or d >= high:
                break
            f = _sorted_in(top, who, size, price, i)
            size += 1
            if f < r:
                above += price[i] - (top[r] if size > r else 0.0)
            over[j] = 0.0
            if size >= r and (j + 1 == w or far[v, j + 1] != d):
                over[j], least[j] = above - r * d, top[r - 1]
                some = some or over[j] > 0.0
        if not some:
            continue
        for x in range(size):
            i = near[v, x]
            for j in range(x, size):
                if over[j] > 0.0:  # its r highest prices, or those but for the last and its own
                    out[i] = max(out[i], (over[j] + min(price[i] - least[j], 0.0)) / r)
