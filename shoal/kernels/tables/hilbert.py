"""Groups along a space-filling curve: loops that cut a sequence of rows into groups."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import LEAN_INNER, njit
from shoal.kernels.tables.connected_sets import areas_cost
from shoal.kernels.tables.eligible import cost, group_gap, join


class Queues(NamedTuple):
    """The rows of each value of a sensitive column, in curve order.

    start  int64[v + 1]: cells of value v are start[v] .. start[v+1]-1, in curve order
    place  int64[m]: position of each cell on the curve
    count  int64[m]: rows of each cell that are in no group, updated
    """

    start: np.ndarray
    place: np.ndarray
    count: np.ndarray


class CurveGroups(NamedTuple):
    """Groups, concatenated: cell int64[n] of each row, begin int64[g + 1] the start of each group."""

    cell: np.ndarray
    begin: np.ndarray


@njit(**LEAN_INNER)
def _size(left, rest, target, l):
    """The rows of the next group, at least target.

    Near the end it must take all rows that would leave the rest ineligible.
    """
    while l > 1 and target < rest:
        forced = np.int64(0)
        possible = True
        for v in range(left.shape[0]):
            need = left[v] - (rest - target) // l
            if need > 0:
                forced += need
                possible = possible and need <= target // l
        if possible and forced <= target:
            break
        target += 1
    return target


@njit(cache=True, nogil=True)
def queues(waiting, size, l, distinct, groups, out):
    """One sensitive column: every group takes the heads of several queues, one queue per sensitive value.

    waiting   ``Queues``: on return, the rows left over
    size      int64: least number of rows of a group, a multiple of l
    l         int64: at most 1/l of a group shares a value
    distinct  int64: least number of different values
    groups    int64: desired number of groups
    out       ``CurveGroups``, out

    Returns the number of groups made. Each group first takes the rows that would leave the rest not l-diverse, then the
    rows closest on the curve, at most 1/l of one value. It leaves enough different values for later groups. O(n v)
    time.
    """
    start, place, count = waiting
    out_cell, begin = out
    values = start.size - 1
    left = np.zeros(values, np.int64)
    rest = np.int64(0)
    for v in range(values):
        for x in range(start[v], start[v + 1]):
            left[v] += count[x]
        rest += left[v]
    head = start[:-1].copy()
    now = np.zeros(values, np.int64)
    made = 0
    at = 0
    begin[0] = 0
    # Each group first takes the rows that would leave the rest ineligible, then repeatedly the first row on the curve
    # among the values that may still give one. A value that later groups need is spared while others are available.
    for g in range(groups, 0, -1):
        target = _size(left, rest, max(size, rest // g // l * l), l)
        if target > rest:
            break
        most = target // l
        spare = -distinct * g
        forced = 0
        different = 0
        for v in range(values):
            now[v] = 0
            spare += min(left[v], g)
            if l > 1:
                need = left[v] - (rest - target) // l
                if need > 0:
                    now[v] = need
                    forced += need
                    different += 1
        if forced > target:
            break
        open_picks = target - forced
        whole = True
        while open_picks > 0:
            best, best_place = -1, np.int64(0)
            relaxed, relaxed_place = -1, np.int64(0)
            only_new = open_picks <= distinct - different
            for v in range(values):
                if now[v] >= left[v] or now[v] >= most or (only_new and now[v] > 0):
                    continue
                # the head after the rows already taken from this queue
                x = head[v]
                skip = now[v]
                while count[x] <= skip:
                    skip -= count[x]
                    x += 1
                if relaxed < 0 or place[x] < relaxed_place:
                    relaxed, relaxed_place = v, place[x]
                if now[v] > 0 and left[v] - now[v] - 1 < g - 1 and spare <= 0:
                    continue
                if best < 0 or place[x] < best_place:
                    best, best_place = v, place[x]
            if best < 0:
                best = relaxed
            if best < 0:
                whole = False
                break
            if now[best] == 0:
                different += 1
            elif left[best] - now[best] - 1 < g - 1:
                spare -= 1
            now[best] += 1
            open_picks -= 1
        if not whole or different < distinct:
            break
        for v in range(values):
            for _ in range(now[v]):
                while count[head[v]] == 0:
                    head[v] += 1
                out_cell[at] = head[v]
                at += 1
                count[head[v]] -= 1
            left[v] -= now[v]
            while head[v] < start[v + 1] and count[head[v]] == 0:
                head[v] += 1
        rest -= target
        made += 1
        begin[made] = at
    return made


@njit(cache=True, nogil=True)
def append(value, waiting, l, found, groups, window, chosen_cell, chosen_group):
    """Add each leftover row to the closest group that stays l-diverse with it.

    value, waiting       int64[m] of each cell; ``Queues`` with the leftover rows, which are removed
    found                ``CurveGroups`` from ``queues``; groups: their number
    window               number of groups tried on either side
    chosen_cell, chosen_group  int64[r]: out: the placed rows

    Returns the number of rows placed. O(r window size).
    """
    (_, place, count), (out_cell, begin) = waiting, found
    first = np.empty(groups, np.int64)
    far = np.int64(-1)
    for g in range(groups):
        for x in range(begin[g], begin[g + 1]):
            far = max(far, place[out_cell[x]])
        first[g] = far
    size = begin[1 : groups + 1] - begin[:groups]
    latest = np.full(groups, -1, np.int64)  # linked list of the rows added to each group
    before = np.empty(chosen_cell.size, np.int64)
    placed = 0
    for c in range(count.size):
        for _ in range(count[c]):
            middle = np.searchsorted(first, place[c])
            done = False
            # Try groups on both sides alternately. The rows added here form a linked list, because a group's first rows
            # are stored contiguously.
            for step in range(2 * window):
                g = middle + (step + 1) // 2 if step % 2 else middle - step // 2
                if g < 0 or g >= groups:
                    continue
                if l > 1:
                    same = 1
                    for x in range(begin[g], begin[g + 1]):
                        same += value[out_cell[x]] == value[c]
                    x = latest[g]
                    while x >= 0:
                        same += value[chosen_cell[x]] == value[c]
                        x = before[x]
                    if l * same > size[g] + 1:
                        continue
                chosen_cell[placed] = c
                chosen_group[placed] = g
                before[placed] = latest[g]
                latest[g] = placed
                size[g] += 1
                placed += 1
                done = True
                break
            if not done:
                break
            count[c] -= 1
    return placed


@njit(cache=True, nogil=True)
def runs(count, sensitive, required, values, out):
    """Consecutive rows of the curve; a group is closed when it is eligible.

    count      int64[m]: rows of each cell, in curve order
    sensitive  int32[m, s]: sensitive values of each cell
    required   ``GroupRequirement``
    values     int64: number of codes of the widest sensitive column
    out        ``GroupTriples``, out

    Returns (triples, groups). Rows left at the end join the groups before them until the union is eligible. O(n s)
    time.
    """
    k, frequency, distinct, rules = required
    out_cell, out_group, out_count = out
    s = sensitive.shape[1]
    held = np.zeros((s, values), np.int64)
    top = np.zeros(s, np.int64)
    different = np.zeros(s, np.int64)
    ruled = rules is not None
    other, seen = np.zeros(values if ruled else 1, np.int64), np.empty(values if ruled else 1, np.int64)
    rows = np.int64(0)
    used = 0
    groups = 0
    opened = 0
    fits = True
    # Row by row, with the counts of the open group; an eligible group is closed at once.
    for c in range(count.size):
        fresh = True
        for _ in range(count[c]):
            if fresh:
                out_cell[used], out_group[used], out_count[used] = c, groups, 0
                used += 1
                fresh = False
            out_count[used - 1] += 1
            rows += 1
            fits = rows >= k
            for j in range(s):
                v = sensitive[c, j]
                held[j, v] += 1
                different[j] += held[j, v] == 1
                top[j] = max(top[j], held[j, v])
                fits = fits and frequency[j] * top[j] <= rows and different[j] >= distinct[j]
            if fits and ruled:
                here, many = out_cell[opened:used], out_count[opened:used]
                fits = group_gap(rules, sensitive, here, many, here.size, other, seen, 0.0) <= 0.0
            if fits:
                for x in range(opened, used):
                    for j in range(s):
                        held[j, sensitive[out_cell[x], j]] = 0
                top[:] = 0
                different[:] = 0
                rows = 0
                groups += 1
                opened = used
                fresh = True
    if rows:
        x = opened - 1
        # Whole groups join, from the last one backward.
        while x >= 0 and not fits:
            g = out_group[x]
            while x >= 0 and out_group[x] == g:
                for j in range(s):
                    v = sensitive[out_cell[x], j]
                    different[j] += held[j, v] == 0
                    held[j, v] += out_count[x]
                    top[j] = max(top[j], held[j, v])
                rows += out_count[x]
                x -= 1
            fits = rows >= k
            for j in range(s):
                fits = fits and frequency[j] * top[j] <= rows and different[j] >= distinct[j]
            if fits and ruled:
                here, many = out_cell[x + 1 : used], out_count[x + 1 : used]
                fits = group_gap(rules, sensitive, here, many, here.size, other, seen, 0.0) <= 0.0
        last = out_group[x + 1]
        for y in range(x + 1, used):
            out_group[y] = last
        groups = last + 1
    return used, groups


@njit(cache=True, nogil=True)
def least_cuts(cell, leaf, slots, k, best, back):
    """The cheapest cut of one order of rows into groups of k to 2k - 1 consecutive rows.

    cell   int64[n]: the rows as cells, in order
    leaf   int64[m, t]: slots of each cell
    slots  ``Slots``: how they join and what they lose
    best   float64[n + 1]: out: least loss of the first i rows
    back   int64[n + 1]: out: start of the last group of the first i rows

    Cutting a group of 2k rows in two never increases the loss, so this is the optimum for this order. O(n k t) time.
    """
    n, width = cell.size, leaf.shape[1]
    best[:] = np.inf
    best[0] = 0.0
    now = np.empty(width, np.int64)
    # The last group of the first i rows is extended backward row by row, and its loss is updated.
    for i in range(k, n + 1):
        total = 0.0
        for t in range(width):
            now[t] = leaf[cell[i - 1], t]
            total += cost(slots, t, now[t])
        for length in range(1, min(2 * k - 1, i) + 1):
            x = i - length
            for t in range(width):
                wider = join(slots, t, now[t], leaf[cell[x], t])
                if wider != now[t]:
                    total += cost(slots, t, wider) - cost(slots, t, now[t])
                    now[t] = wider
            whole = total
            if length >= k:
                whole += areas_cost(slots.areas, slots, now, now, np.inf)
            if length >= k and best[x] + length * whole < best[i]:
                best[i] = best[x] + length * whole
                back[i] = x
    return best[n]
