"""Row prices moved along subgradients, against classes that are nearly tight."""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER
from shoal.kernels.patience import rises

FADE, PATIENCE = 0.7, 10.0


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
def _take(classes, t, count, value, kinds, group, price, seen, taken):
    """The most by which K rows or more of a class, with ``kinds`` values, are above its cost; they are added to
    ``taken`` where that has room.  Members by falling price; rows not above are taken while K or values lack."""
    held, values, over = 0, 0, 0.0
    for x in range(classes.start[t], classes.start[t + 1]):
        i = classes.member[x]
        above, y = price[i] - classes.cost[t], 0
        if above <= 0.0 and held >= group and values >= kinds:
            break
        while y < values and seen[y] != value[i]:
            y += 1
        new = y == values and values < kinds
        if new:
            seen[values] = value[i]
            values += 1
        many = count[i]
        if above <= 0.0:  # no more than K asks beside the values that are to come
            many = min(many, max(group - held - (kinds - values), 1 if new else 0))
        if many <= 0:
            continue
        held += many
        over += many * above
        if taken.size:
            taken[i] += many
    return over if held >= group and values >= kinds else 0.0


@njit(**INNER)
def _taken(classes, count, value, kinds, group, price, seen, none, taken):
    """The most by which K rows or more of each class are above their cost, summed; those rows in ``taken``."""
    total = 0.0
    for t in range(classes.cost.size):
        highest = classes.cost[t]
        for x in range(classes.start[t], classes.start[t + 1]):
            highest = max(highest, price[classes.member[x]])
        if highest == classes.cost[t]:  # most classes, and they need no order
            continue
        _sort(classes.member, classes.start[t], classes.start[t + 1], price)
        over = _take(classes, t, count, value, kinds, group, price, seen, none)
        if over > 0.0:
            total += _take(classes, t, count, value, kinds, group, price, seen, taken)
    return total


@njit(cache=True, nogil=True)
def climb(classes, count, value, kinds, group, most, price, best, trend, passes, aim, gap, state):
    """Some passes of a subgradient method for the prices that prove most.

    classes  as in ``kernels.tables.tight``; their members are put in order here; count int64[m] rows of each cell
    value int64[m], kinds  sensitive values, of which so many are needed;  group  K
    price float64[m]  in and out, at most ``most``; best float64[m] out: those of the largest value so far
    trend float64[m]  smoothed direction, in and out
    state float64[3]  in and out: largest value so far, length of steps, passes since it rose

    Value: the sum of all prices less, for each class, the most by which K rows or more, with the values, are above
    their cost.  A step of Polyak's rule along the smoothed subgradient aims ``gap`` above the value there is, and above
    ``aim``; steps are cut after some passes in vain.  O(passes * members) where the order of a class changes little.
    """
    taken, none, seen = np.empty(price.size, np.int64), np.empty(0, np.int64), np.empty(kinds, np.int64)
    for _ in range(passes):
        proved = 0.0
        for i in range(price.size):
            taken[i] = 0
            proved += count[i] * price[i]
        proved -= _taken(classes, count, value, kinds, group, price, seen, none, taken)
        if rises(state, proved, PATIENCE):
            for i in range(price.size):
                best[i] = price[i]
        length = 0.0
        for i in range(price.size):
            trend[i] = (1 - FADE) * (count[i] - taken[i]) + FADE * trend[i]
            length += trend[i] * trend[i] / count[i]
        if length == 0.0:
            break
        step = state[1] * (max(state[0], aim) + gap - proved) / length
        for i in range(price.size):
            price[i] = min(price[i] + step * trend[i] / count[i], most[i])
