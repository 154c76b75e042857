"""Row prices moved along subgradients, against classes that are nearly tight."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER

FADE, CUT, PATIENCE = 0.7, 0.7, 10.0


@njit(**INNER)
def _sort(member, begin, end, price):
    """Members by falling price; they are nearly so, from the pass before."""
    for x in range(begin + 1, end):
        i = member[x]
        y = x
        while y > begin and price[member[y - 1]] < price[i]:
            member[y] = member[y - 1]
            y -= 1
        member[y] = i


@njit(**INNER)
def _taken(classes, count, group, price, taken):
    """The most by which ``group`` or more rows of each class are above their cost, summed; those rows in ``taken``."""
    total = 0.0
    for t in range(classes.cost.size):
        begin, end, cost = classes.start[t], classes.start[t + 1], classes.cost[t]
        _sort(classes.member, begin, end, price)
        held, over = 0, 0.0
        for turn in range(2):
            if turn == 1 and over <= 0.0:
                break
            held = 0
            for x in range(begin, end):
                i = classes.member[x]
                if held >= group and price[i] <= cost:
                    break
                many = count[i] if price[i] > cost else min(count[i], group - held)
                held += many
                if turn == 0:
                    over += many * (price[i] - cost)
                else:
                    taken[i] += many
        total += max(over, 0.0)
    return total


@njit(cache=True, nogil=True)
def climb(classes, count, group, top, price, best, trend, passes, gap, state):
    """Some passes of a subgradient method for the prices that prove most.

    classes  as in ``kernels.tables.tight``; their members are put in order here; count int64[m] rows of each cell
    price float64[m]  in and out, at most ``top``; best float64[m] out: those of the largest value so far
    trend float64[m]  smoothed direction, in and out
    state float64[3]  in and out: largest value so far, length of steps, passes since it rose

    Value: the sum of all prices less, for each class, the most by which ``group`` or more of its rows are above their
    cost.  A step of Polyak's rule along the smoothed subgradient aims ``gap`` above the value there is; steps are cut
    after some passes in vain.  O(passes * members) where the order of a class changes little.
    """
    taken = np.empty(price.size, np.int64)
    for _ in range(passes):
        value = 0.0
        for i in range(price.size):
            taken[i] = 0
            value += count[i] * price[i]
        value -= _taken(classes, count, group, price, taken)
        if value > state[0]:
            state[0], state[2] = value, 0.0
            for i in range(price.size):
                best[i] = price[i]
        else:
            state[2] += 1.0
            if state[2] >= PATIENCE:
                state[1] *= CUT
                state[2] = 0.0
        length = 0.0
        for i in range(price.size):
            trend[i] = (1 - FADE) * (count[i] - taken[i]) + FADE * trend[i]
            length += trend[i] * trend[i] / count[i]
        if length == 0.0:
            break
        step = state[1] * gap / length
        for i in range(price.size):
            price[i] = min(price[i] + step * trend[i] / count[i], top)
