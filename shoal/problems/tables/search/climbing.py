"""Row prices moved along subgradients, against classes that are nearly tight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.tables.tight import Classes
from shoal.problems.cores import Each, even, in_turn

FADE, PATIENCE = 0.7, 10.0
NOWHERE = 1e-200  # squared length of a direction that leads nowhere
PARTS = 2  # of the classes, which cores may share


class Asked(NamedTuple):
    """What is asked of the rows: many int64[m] of each cell, K rows a class, of so many kinds of value int64[m]."""

    many: np.ndarray
    value: np.ndarray
    kinds: int
    group: int


class Way(NamedTuple):
    """Prices on their way; all in and out.

    price, best, trend float64[m]  prices, those of the largest value so far, the smoothed direction
    state float64[3]  largest value so far, length of steps, passes since it rose
    """

    price: np.ndarray
    best: np.ndarray
    trend: np.ndarray
    state: np.ndarray


def climb(
    classes: Classes, asked: Asked, most: np.ndarray, way: Way, passes: int, aim: float, gap: float,
    each: Each = in_turn,
) -> None:  # fmt: skip
    """Some passes of a subgradient method for the prices, at most ``most`` float64[m], that prove most.

    Value: the sum of all prices less, for each class, the most by which K rows or more, with the values, are above
    their cost.  A step of Polyak's rule along the smoothed subgradient aims ``gap`` above the value there is, and above
    ``aim``; steps are cut after some passes in vain.  The parts hang on the classes alone, so any number of cores finds
    the same.  O(passes * members) where the order of a class changes little.
    """
    from shoal.kernels.patience import risen
    from shoal.kernels.tables.climb import taken

    price, best, trend, state = way
    parts, rows = even(classes.start, PARTS), np.zeros((PARTS, price.size), np.int64)

    def over(h: int) -> float:
        return float(taken(classes, *asked, price, *parts[h], rows[h]))

    for _ in range(passes):
        proved = float((asked.many * price).sum()) - sum(each(over, range(PARTS)))
        if risen(state, proved, PATIENCE):
            best[:] = price
        trend *= FADE
        trend += (1 - FADE) * (asked.many - rows.sum(axis=0))
        length = float((trend**2 / asked.many).sum())
        if length < NOWHERE:
            break
        step = state[1] * (max(state[0], aim) + gap - proved) / length
        np.minimum(price + step * trend / asked.many, most, out=price)
