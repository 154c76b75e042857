"""How far row prices are above what classes that are nearly tight allow."""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, njit


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


@njit(cache=True, nogil=True)
def taken(classes, count, value, kinds, group, price, first, last, rows):
    """The most by which K rows or more of each of the classes first .. last - 1 are above their cost, summed.

    classes  as in ``kernels.tables.tight``; their members are put in order here; count int64[m] rows of each cell
    value int64[m], kinds  sensitive values, of which so many are needed;  group  K;  price float64[m]
    rows int64[m]  out: those rows
    """
    none, seen = np.empty(0, np.int64), np.empty(kinds, np.int64)
    rows[:] = 0
    total = 0.0
    for t in range(first, last):
        highest = classes.cost[t]
        for x in range(classes.start[t], classes.start[t + 1]):
            highest = max(highest, price[classes.member[x]])
        if highest == classes.cost[t]:  # most classes, and they need no order
            continue
        _sort(classes.member, classes.start[t], classes.start[t + 1], price)
        over = _take(classes, t, count, value, kinds, group, price, seen, none)
        if over > 0.0:
            total += _take(classes, t, count, value, kinds, group, price, seen, rows)
    return total
