"""Counting loops of the three-phase algorithm: arrays of counts in, arrays of counts out."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from shoal.kernels import INNER


@njit(cache=True, nogil=True)
def phase_one(start, count, l, k, distinct, taken):
    """The rows every type must give up to become eligible, in closed form.

    start  int64[t + 1]  cells of type i are start[i] .. start[i+1]-1, by falling count
    count  int64[m]      rows of each cell
    l, k, distinct  int64  at most 1/l of a kept type shares a value; it keeps k rows and that many values, or none
    taken  int64[m]      out: rows moved to the residue

    A type keeps min(count, h) of every value, h the largest with sum min(count, h) >= l h, which is
    h = min(c_1, min over j < l of floor((c_{j+1} + c_{j+2} + ...) / (l - j))).  O(m).
    """
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


@njit(**INNER)
def _height(left, a, b):
    h = np.int64(0)
    for x in range(a, b):
        if left[x] > h:
            h = left[x]
    return h


@njit(**INNER)
def _alive(left, value, a, b, size, h, residue, top, l, k):
    """Whether a type can give rows without raising the residue's height or losing its own eligibility."""
    if size == 0:
        return False
    if size > l * h:  # fat: gives one row, of any value but a pillar of the residue
        return size - 1 >= k
    pillars = np.int64(0)
    for x in range(a, b):
        if left[x] == h:
            pillars += 1
            if residue[value[x]] == top:
                return False
    return size - pillars >= k or size == pillars


@njit(cache=True, nogil=True)
def later_phases(start, value, count, taken, values, l, k):
    """Phases two and three.

    start  int64[t + 1], value int64[m], count int64[m]   as in phase_one
    taken  int64[m]   in: the residue of phase one; out: the residue at the end
    values int64      number of sensitive values
    returns (phase reached 1, 2 or 3; True when the residue has at least max(l h, k) rows)

    Invariants: (1) every type stays eligible or empty; (2) phase two never raises the residue's height;
    (3) rows move to the residue and never back.  O(moves x cells of a type + rounds x m).
    """
    t = start.size - 1
    m = count.size
    left = count - taken
    residue = np.zeros(values, np.int64)
    size = np.zeros(t, np.int64)
    owner = np.zeros(m, np.int64)
    total = np.int64(0)
    for i in range(t):
        for x in range(start[i], start[i + 1]):
            owner[x] = i
            size[i] += left[x]
            residue[value[x]] += taken[x]
            total += taken[x]
    top = residue.max() if values else np.int64(0)
    if total == 0 or total >= max(l * top, k):
        return 1, True

    # cells of each value, as stacks
    first = np.zeros(values + 1, np.int64)
    for x in range(m):
        first[value[x] + 1] += 1
    for v in range(values):
        first[v + 1] += first[v]
    end = first[1:].copy()
    fill = first[:-1].copy()
    stack = np.zeros(m, np.int64)
    for x in range(m):
        stack[fill[value[x]]] = x
        fill[value[x]] += 1

    heap = [np.int64(residue[v] * values + v) for v in range(values)]
    heapq.heapify(heap)
    while len(heap) > 0 and total < max(l * top, k):
        key = heapq.heappop(heap)
        v = key % values
        if key // values != residue[v]:
            heapq.heappush(heap, np.int64(residue[v] * values + v))
            continue
        found = False
        while end[v] > first[v]:
            x = stack[end[v] - 1]
            i = owner[x]
            a, b = start[i], start[i + 1]
            if left[x] > 0:
                h = _height(left, a, b)
                if _alive(left, value, a, b, size[i], h, residue, top, l, k):
                    if size[i] > l * h:
                        if residue[v] == top:
                            break  # a pillar of the residue is never raised here
                        left[x] -= 1
                        size[i] -= 1
                        residue[v] += 1
                        total += 1
                    else:
                        for y in range(a, b):
                            if left[y] == h:
                                left[y] -= 1
                                size[i] -= 1
                                residue[value[y]] += 1
                                total += 1
                    found = True
                    break
            end[v] -= 1  # dead or empty: never alive again in this phase
        if found:
            heapq.heappush(heap, np.int64(residue[v] * values + v))
    for x in range(m):
        taken[x] = count[x] - left[x]
    if total >= max(l * top, k):
        return 2, True
    if k > l or l < 3:
        return 2, False  # with a minimum size of its own, phase three's argument does not hold

    inside = np.zeros(values, np.bool_)
    while total < l * top:
        before = total
        for v in range(values):
            inside[v] = residue[v] == top
        wanted = np.int64(inside.sum())
        chosen = []
        while wanted > 0:
            best, least = np.int64(-1), wanted
            for i in range(t):
                if size[i] == 0:
                    continue
                a, b = start[i], start[i + 1]
                h = _height(left, a, b)
                hit = np.int64(0)
                for x in range(a, b):
                    if left[x] == h and inside[value[x]]:
                        hit += 1
                if hit < least:
                    best, least = i, hit
            if best < 0:
                break
            chosen.append(best)
            a, b = start[best], start[best + 1]
            h = _height(left, a, b)
            for v in range(values):
                if inside[v]:
                    keep = False
                    for x in range(a, b):
                        if value[x] == v and left[x] == h:
                            keep = True
                    inside[v] = keep
            wanted = np.int64(inside.sum())
        for i in chosen:
            a, b = start[i], start[i + 1]
            h = _height(left, a, b)
            for x in range(a, b):
                if left[x] == h:
                    left[x] -= 1
                    size[i] -= 1
                    residue[value[x]] += 1
                    total += 1
        top = residue.max()
        for i in range(t):
            a, b = start[i], start[i + 1]
            while size[i] > 0 and total < l * top:
                h = _height(left, a, b)
                if size[i] > l * h:
                    moved = False
                    for x in range(a, b):
                        if left[x] > 0 and residue[value[x]] < top:
                            left[x] -= 1
                            size[i] -= 1
                            residue[value[x]] += 1
                            total += 1
                            moved = True
                            break
                    if not moved:
                        break
                else:
                    clash = False
                    for x in range(a, b):
                        if left[x] == h and residue[value[x]] == top:
                            clash = True
                    if clash:
                        break
                    for x in range(a, b):
                        if left[x] == h:
                            left[x] -= 1
                            size[i] -= 1
                            residue[value[x]] += 1
                            total += 1
        if total == before:
            break
    for x in range(m):
        taken[x] = count[x] - left[x]
    return 3, total >= l * top
