"""Tolls of the class program, moved along subgradients, in whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from shoal.kernels import LEAN
from shoal.kernels.patience import rises

FADE, SHARE, PATIENCE = 0.7, 0.03, 20.0
GAP = 0.1  # steps aim at a bound so much above the best one
REST = 12  # passes without a row after which the tolls of a class rest: a hundredth of its trend is left
CALM = 0.02  # shorter steps repeat the same choices, which would spoil the average


class Arcs(NamedTuple):
    """Where rows may go.

    start int64[m + 1], pair int32[a]  rows of cell i may go to the pairs pair[start[i] : start[i + 1]], at least one
    count int64[m]      rows of each cell
    owner int64[p]      class of each pair (class, sensitive value), rising
    first int64[v + 1]  the pairs of class c are first[c] .. first[c + 1] - 1, at least one
    cost int64[v]       what a row loses there, in whole units
    scale float64[v]    how far the tolls of a class move compared with others
    l int64, weight int64[p], top int64   of the N rows of a class, n of them of each value, the sum of
                        z (l n - weight N) is at most top N times the largest z, for any z of at least 0
    most int64          no toll is above it
    """

    start: np.ndarray
    pair: np.ndarray
    count: np.ndarray
    owner: np.ndarray
    first: np.ndarray
    cost: np.ndarray
    scale: np.ndarray
    l: int
    weight: np.ndarray
    top: int
    most: int


class Course(NamedTuple):
    """Where a walk is; all in and out.

    toll int64[p], best int64[p]  tolls, at least 0, and those of the largest bound so far
    trend float64[p]    smoothed direction
    share float64[v]    smoothed rows of each class
    state float64[3]    largest bound so far, length of steps, passes since it rose
    reduced, held int64[p]   what a row of each pair pays, rows of each: 0 at first
    still int64[v]      passes since a class had rows: 0 at first
    moved bool[v]       whether a class has tolls unlike those of ``best``
    """

    toll: np.ndarray
    best: np.ndarray
    trend: np.ndarray
    share: np.ndarray
    state: np.ndarray
    reduced: np.ndarray
    held: np.ndarray
    still: np.ndarray
    moved: np.ndarray


def begun(toll: np.ndarray, share: np.ndarray, step: float) -> Course:
    """A walk from tolls int64[p] and shares float64[v], which stay as they are."""
    p, v = toll.size, share.size
    rooms = np.zeros(p, np.int64), np.zeros(p, np.int64), np.zeros(v, np.int64), np.zeros(v, np.bool_)
    return Course(toll.copy(), toll.copy(), np.zeros(p), share.copy(), np.array([-np.inf, step, 0.0]), *rooms)


@njit(**LEAN)
def walk(arcs, course, passes, least_gap):
    """Some passes of a subgradient method for the tolls that prove most.

    least_gap float64   the least that steps aim above the best bound

    Bound: the sum over cells of count * least over their pairs of (cost + l toll - the refund of the class), in whole
    numbers; a refund is the sum of weight * toll, and top times the largest toll.  A step of Polyak's rule along the
    smoothed subgradient, cut after some passes in vain.  A class that no row chose for some passes has hardly any trend
    left: its tolls rest until one does.  O(passes * (a + p)) time, of the pairs those of classes that do not rest.
    """
    toll, best, trend, share, state, reduced, held, still, moved = course
    for _ in range(passes):
        for c in range(arcs.cost.size):
            if still[c] > REST:
                continue
            total, high = np.int64(0), np.int64(0)
            for p in range(arcs.first[c], arcs.first[c + 1]):
                total += arcs.weight[p] * toll[p]
                high = max(high, toll[p])
            total += arcs.top * high
            for p in range(arcs.first[c], arcs.first[c + 1]):
                reduced[p] = arcs.cost[c] + arcs.l * toll[p] - total
                held[p] = 0
        bound = np.int64(0)
        for i in range(arcs.count.size):
            e = arcs.start[i]
            least = reduced[arcs.pair[e]]
            for f in range(e + 1, arcs.start[i + 1]):  # no branch in it: a processor looks at several at once
                least = min(least, reduced[arcs.pair[f]])
            while reduced[arcs.pair[e]] > least:
                e += 1
            at = arcs.pair[e]
            bound += arcs.count[i] * least
            held[at] += arcs.count[i]
            still[arcs.owner[at]] = -1
        if rises(state, bound, PATIENCE):
            for c in range(arcs.cost.size):
                if moved[c]:
                    moved[c] = False
                    for p in range(arcs.first[c], arcs.first[c + 1]):
                        best[p] = toll[p]
        length = 0.0
        for c in range(arcs.cost.size):
            still[c] += 1
            rows = np.int64(0)
            if still[c] == 0:
                for p in range(arcs.first[c], arcs.first[c + 1]):
                    rows += held[p]
            if state[1] > CALM:
                share[c] += SHARE * (rows - share[c])
            if still[c] > REST:
                continue
            highest = -1
            if arcs.top > 0:  # of equal tolls that of the value which is most above its share
                highest = arcs.first[c]
                for p in range(arcs.first[c] + 1, arcs.first[c + 1]):
                    over = arcs.l * (held[p] - held[highest]) - (arcs.weight[p] - arcs.weight[highest]) * rows
                    if toll[p] > toll[highest] or (toll[p] == toll[highest] and over > 0):
                        highest = p
            for p in range(arcs.first[c], arcs.first[c + 1]):
                more = arcs.l * held[p] - (arcs.weight[p] + (arcs.top if p == highest else 0)) * rows
                trend[p] = (1 - FADE) * more + FADE * trend[p]
                if toll[p] > 0 or trend[p] > 0:
                    length += arcs.scale[c] * trend[p] * trend[p]
        if length == 0.0:
            break
        step = state[1] * max(GAP * state[0], least_gap) / length
        for c in range(arcs.cost.size):
            if still[c] > REST:
                continue
            moved[c] = True
            for p in range(arcs.first[c], arcs.first[c + 1]):
                move = np.rint(step * arcs.scale[c] * trend[p])
                toll[p] = np.int64(min(max(toll[p] + move, 0.0), np.float64(arcs.most)))
