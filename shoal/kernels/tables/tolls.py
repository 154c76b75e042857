"""Tolls of the class program, moved along subgradients, in whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN, njit

FADE, SHARE = 0.7, 0.03
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
    l int64, weight int64[p], top int64[v]  of the N rows of a class, n of them of each value, the sum of
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
    top: np.ndarray
    most: int


class Course(NamedTuple):
    """Where a walk is; all in and out.

    toll int64[p], best int64[p]  tolls, at least 0, and those of the largest bound so far
    trend float64[p]    smoothed direction
    share float64[v]    smoothed rows of each class
    state float64[3]    largest bound so far, length of steps, passes since it rose
    reduced int64[p]    what a row of each pair pays
    held int64[h, p]    rows of each pair, those of each part of the cells by themselves
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


def begun(toll: np.ndarray, share: np.ndarray, step: float, parts: int = 1) -> Course:
    """A walk from tolls int64[p] and shares float64[v], which stay as they are; cells choose in so many parts."""
    p, v = toll.size, share.size
    rooms = np.zeros(p, np.int64), np.zeros((parts, p), np.int64), np.zeros(v, np.int64), np.zeros(v, np.bool_)
    return Course(toll.copy(), toll.copy(), np.zeros(p), share.copy(), np.array([-np.inf, step, 0.0]), *rooms)


@njit(**LEAN)
def move(arcs, course, step, start, end):
    """Tolls of the classes start .. end - 1 moved along their trend, and what a row of each pair then pays.

    A class that no row chose for some passes has hardly any trend left: its tolls rest until one does.
    """
    toll, trend, reduced, held = course.toll, course.trend, course.reduced, course.held
    for c in range(start, end):
        if course.still[c] > REST:
            continue
        if step > 0.0:
            course.moved[c] = True
        total, high = np.int64(0), np.int64(0)
        for p in range(arcs.first[c], arcs.first[c + 1]):
            moved = np.rint(step * arcs.scale[c] * trend[p])
            toll[p] = np.int64(min(max(toll[p] + moved, 0.0), np.float64(arcs.most)))
            total += arcs.weight[p] * toll[p]
            high = max(high, toll[p])
        total += arcs.top[c] * high
        for p in range(arcs.first[c], arcs.first[c + 1]):
            reduced[p] = arcs.cost[c] + arcs.l * toll[p] - total
            for h in range(held.shape[0]):
                held[h, p] = 0


@njit(**LEAN)
def choose(arcs, course, part, start, end):
    """Rows of the cells start .. end - 1 sent where they pay least; what they pay together, in whole numbers."""
    reduced, held = course.reduced, course.held
    paid = np.int64(0)
    for i in range(start, end):
        e = arcs.start[i]
        least = reduced[arcs.pair[e]]
        for f in range(e + 1, arcs.start[i + 1]):  # no branch in it: a processor looks at several at once
            least = min(least, reduced[arcs.pair[f]])
        while reduced[arcs.pair[e]] > least:
            e += 1
        at = arcs.pair[e]
        paid += arcs.count[i] * least
        held[part, at] += arcs.count[i]
        course.still[arcs.owner[at]] = -1  # whichever part says it first
    return paid


@njit(**LEAN)
def follow(arcs, course, best, start, end):
    """Trends and shares of the classes start .. end - 1 after their rows have chosen; the squared length of a step.

    best  whether the tolls proved most so far, and are kept
    """
    toll, trend, held, still = course.toll, course.trend, course.held, course.still
    length = 0.0
    for c in range(start, end):
        first, last = arcs.first[c], arcs.first[c + 1]
        if best and course.moved[c]:
            course.moved[c] = False
            for p in range(first, last):
                course.best[p] = toll[p]
        still[c] += 1
        rows = np.int64(0)
        if still[c] == 0:
            for p in range(first, last):
                for h in range(1, held.shape[0]):
                    held[0, p] += held[h, p]
                rows += held[0, p]
        if course.state[1] > CALM:
            course.share[c] += SHARE * (rows - course.share[c])
        if still[c] > REST:
            continue
        highest = -1
        if arcs.top[c] > 0:  # of equal tolls that of the value which is most above its share
            highest = first
            for p in range(first + 1, last):
                over = arcs.l * (held[0, p] - held[0, highest]) - (arcs.weight[p] - arcs.weight[highest]) * rows
                if toll[p] > toll[highest] or (toll[p] == toll[highest] and over > 0):
                    highest = p
        for p in range(first, last):
            more = arcs.l * held[0, p] - (arcs.weight[p] + (arcs.top[c] if p == highest else 0)) * rows
            trend[p] = (1 - FADE) * more + FADE * trend[p]
            if toll[p] > 0 or trend[p] > 0:
                length += arcs.scale[c] * trend[p] * trend[p]
    return length
