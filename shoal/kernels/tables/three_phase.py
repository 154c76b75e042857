"""Counting loops of the three-phase algorithm: arrays of counts in, arrays of counts out."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit


class RowTypes(NamedTuple):
    """Types and residue while rows move, by pillars: the rows of one type with one sensitive value.

    start    int64[t + 1]: pillars of type i are start[i] .. start[i+1]-1
    value    int64[m]: sensitive value of each pillar
    left     int64[m]: remaining rows of each pillar
    size     int64[t]: remaining rows of each type
    residue  int64[values]: rows of each value in the residue
    """

    start: np.ndarray
    value: np.ndarray
    left: np.ndarray
    size: np.ndarray
    residue: np.ndarray


@njit(cache=True, nogil=True)
def phase_one(start, count, l, k, distinct, taken):
    """The rows that every type must give up to become eligible, in closed form.

    start  int64[t + 1]: cells of type i are start[i] .. start[i+1]-1, by descending count
    count  int64[m]: rows of each cell
    l, k, distinct  int64: at most 1/l of a kept type shares a value; it keeps at least k rows and that many values, or
                    none
    taken  int64[m]: out: rows moved to the residue

    A type keeps min(count, h) of every value, where h is the largest number with sum min(count, h) >= l h, which is h =
    min(c_1, min over j < l of floor((c_{j+1} + c_{j+2} + ...) / (l - j))). O(m).
    """
    # ``tail`` is the number of rows of all values except the j largest.
    for i in range(start.size - 1):
        a, b = start[i], start[i + 1]
        if a == b:
            continue
        tail = np.int64(0)
        for x in range(a, b):
            tail += count[x]
        h = count[a]
        for j in range(1, l):
            if a + j - 1 < b:
                tail -= count[a + j - 1]
            h = min(h, tail // (l - j))
            if h == 0:
                break
        kept = np.int64(0)
        for x in range(a, b):
            kept += min(count[x], h)
        if kept < k or b - a < distinct:
            h = 0
        for x in range(a, b):
            taken[x] = count[x] - min(count[x], h)


@njit(cache=True, nogil=True)
def later_phases(start, value, count, taken, values, l, k):
    """Phases two and three.

    start  int64[t + 1], value int64[m], count int64[m]: as in phase_one
    taken  int64[m]: in: the residue of phase one; out: the final residue
    values int64: number of sensitive values
    returns (phase reached: 1, 2, or 3; whether the residue has at least max(l h, k) rows)

    Invariants: (1) every type stays eligible or empty; (2) phase two never increases the residue's height; (3) rows
    move to the residue and never back. O(moves x pillars of a type + rounds x m).
    """
    size = np.zeros(start.size - 1, np.int64)
    residue = np.zeros(values, np.int64)
    table = RowTypes(start, value, count - taken, size, residue)
    for i in range(size.size):
        for x in range(start[i], start[i + 1]):
            size[i] += table.left[x]
            residue[value[x]] += taken[x]
    top = residue.max() if values else np.int64(0)
    phase, total = 1, residue.sum()
    if 0 < total < max(l * top, k):
        phase, total = 2, _phase_two(table, top, l, k)
        if total < l * top and k <= l and l >= 3:  # with a minimum size k, the argument of phase three fails
            phase, total = 3, _phase_three(table, l)
            top = residue.max()
    for x in range(count.size):
        taken[x] = count[x] - table.left[x]
    return phase, total == 0 or total >= max(l * top, k)


@njit(**INNER)
def _phase_two(table, top, l, k):
    """Add rows of the residue's rarest values while a type can give one without increasing the residue's height.

    Returns the rows of the residue.
    """
    start, value, left, size, residue = table
    values, m = residue.size, value.size
    owner = np.zeros(m, np.int64)
    for i in range(size.size):
        owner[start[i] : start[i + 1]] = i
    first = np.zeros(values + 1, np.int64)  # the pillars of each value, as stacks
    for x in range(m):
        first[value[x] + 1] += 1
    for v in range(values):
        first[v + 1] += first[v]
    end, fill = first[1:].copy(), first[:-1].copy()
    stack = np.zeros(m, np.int64)
    for x in range(m):
        stack[fill[value[x]]] = x
        fill[value[x]] += 1

    total = residue.sum()
    heap = [np.int64(residue[v] * values + v) for v in range(values)]
    heapq.heapify(heap)
    # Process the least frequent value of the residue next. Its stack of pillars has the types that can give a row. A
    # type that can't is removed permanently, and a value without types leaves the heap.
    while len(heap) > 0 and total < max(l * top, k):
        key = heapq.heappop(heap)
        v = key % values
        if key // values != residue[v]:
            heapq.heappush(heap, np.int64(residue[v] * values + v))
            continue
        moved = np.int64(0)
        while moved == 0 and end[v] > first[v]:
            x = stack[end[v] - 1]
            i = owner[x]
            h = _height(table, i)
            if left[x] > 0 and _alive(table, i, h, top, l, k):
                if size[i] <= l * h:
                    moved = _give_pillars(table, i, h)
                elif residue[v] < top:
                    moved = _give(table, i, x)
                else:
                    break  # here, pillars of the residue never grow
            else:
                end[v] -= 1  # dead or empty, and never alive again in this phase
        total += moved
        if moved > 0:
            heapq.heappush(heap, np.int64(residue[v] * values + v))
    return total


@njit(**INNER)
def _phase_three(table, l):
    """Rounds of types that give rows until the residue is eligible, or no row moves.

    In a round, first a set of types gives its pillars, where no pillar of the residue is a pillar of all of them. Then
    all types give rows that don't increase the height.

    Returns the rows of the residue; fewer than l times its height if no round moves a row any more.
    """
    total = table.residue.sum()
    before = total - 1
    while total < l * table.residue.max() and total > before:
        before = total
        for i in _uncovered(table):
            total += _give_pillars(table, i, _height(table, i))
        top = table.residue.max()
        for i in range(table.size.size):
            moved = np.int64(1)
            while moved > 0 and table.size[i] > 0 and total < l * top:
                moved = _give_under(table, i, top, l)
                total += moved
    return total


@njit(**INNER)
def _uncovered(table):
    """Types, chosen greedily by fewest common pillars, until no pillar of the residue is a pillar of all of them."""
    start, value, left, size, residue = table
    common = residue == residue.max()
    wanted = common.sum()
    chosen = []
    # The type that shares the fewest of the still common pillars is chosen; the pillars that it lacks are no longer
    # common.
    while wanted > 0:
        best, least = np.int64(-1), wanted
        for i in range(size.size):
            if size[i] == 0:
                continue
            h = _height(table, i)
            shared = np.int64(0)
            for x in range(start[i], start[i + 1]):
                if left[x] == h and common[value[x]]:
                    shared += 1
            if shared < least:
                best, least = i, shared
        if best < 0:
            break
        chosen.append(best)
        h = _height(table, best)
        still = np.zeros_like(common)
        for x in range(start[best], start[best + 1]):
            still[value[x]] = common[value[x]] and left[x] == h
        common, wanted = still, least
    return chosen


@njit(**INNER)
def _give_under(table, i, top, l):
    """Move what type i can give while the residue's height stays at top; returns the number of rows, 0 for none."""
    start, value, left, size, residue = table
    h = _height(table, i)
    if size[i] > l * h:
        for x in range(start[i], start[i + 1]):
            if left[x] > 0 and residue[value[x]] < top:
                return _give(table, i, x)
        return np.int64(0)
    for x in range(start[i], start[i + 1]):
        if left[x] == h and residue[value[x]] == top:
            return np.int64(0)
    return _give_pillars(table, i, h)


@njit(**INNER)
def _alive(table, i, h, top, l, k):
    """Whether a type can give rows without increasing the residue's height or losing its own eligibility."""
    start, value, left, size, residue = table
    if size[i] == 0:
        return False
    if size[i] > l * h:  # fat: gives one row of any value except the residue's pillars
        return size[i] - 1 >= k
    pillars = np.int64(0)
    for x in range(start[i], start[i + 1]):
        if left[x] == h:
            pillars += 1
            if residue[value[x]] == top:
                return False
    return size[i] - pillars >= k or size[i] == pillars


@njit(**INNER)
def _height(table, i):
    h = np.int64(0)
    for x in range(table.start[i], table.start[i + 1]):
        h = max(h, table.left[x])
    return h


@njit(**INNER)
def _give_pillars(table, i, h):
    """Move one row of every highest pillar of type i; returns their number."""
    moved = np.int64(0)
    for x in range(table.start[i], table.start[i + 1]):
        if table.left[x] == h:
            moved += _give(table, i, x)
    return moved


@njit(**INNER)
def _give(table, i, x):
    """Move one row of pillar x of type i to the residue; returns 1."""
    table.left[x] -= 1
    table.size[i] -= 1
    table.residue[table.value[x]] += 1
    return np.int64(1)
