"""Exact covers of rows by listed groups, and the crowded sets of rows that cut off fractions of them.

The rows left of all classes are fields of packed words with a guard bit above every field, so "group <= rows left" is
one subtraction for each word.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit


class CoverGroups(NamedTuple):
    """Listed groups as packed words.

    rows   uint64[c, w]          the rows of each group
    guard  uint64[w]             the guard bits above all fields
    word, field  int64[n], uint64[n]  the word of each row class, and the bits of its field
    cost   float64[c]            cost of a group
    reduced  float64[c, b]       what a group adds to each of some bounds, at least 0
    start, group   int32[n + 1], int64[..]  the groups with each row class, by rising first column of ``reduced``
    """

    rows: np.ndarray
    guard: np.ndarray
    word: np.ndarray
    field: np.ndarray
    cost: np.ndarray
    reduced: np.ndarray
    start: np.ndarray
    group: np.ndarray


@njit(cache=True, nogil=True)
def packed_rows(start, member, rows, word, shift, out):
    """Pack the rows of groups into words.

    start, member, rows  int32[c + 1], int32[..], float64[..]: row classes and their rows in each group
    word, shift  int64[n], uint64[n]: where each row class is;  out uint64[c, w]: receives the words
    """
    for g in range(start.size - 1):
        out[g] = 0
        for x in range(start[g], start[g + 1]):
            out[g, word[member[x]]] += np.uint64(rows[x]) << shift[member[x]]


class CoverLimits(NamedTuple):
    """The limits of a cover.

    cost   of all groups together
    unit   by how much a cover has to cost less than the one before it
    looks  how many groups and classes the search looks at
    row    how many groups with one class a state looks at before the list of this class is shortened
    """

    cost: float
    unit: float
    looks: int
    row: int


class CoverSpace(NamedTuple):
    """Work space of a search for covers of r rows.

    left    uint64[r + 1, w]     the rows left at each depth; the first line is given: all rows to cover
    added   float64[r + 1, b]    what the groups chosen add to each bound
    begin, end  int64[r + 1, n]  where the list of each class is in ``lists``
    lists   int32[..]            the groups with each class, at some depths without those that don't fit
    seen, least  uint64[2^s, w], float64[2^s]  states: the rows left, and the least cost of the others; infinite at
                                 first
    """

    left: np.ndarray
    added: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    lists: np.ndarray
    seen: np.ndarray
    least: np.ndarray


@njit(**INNER)
def _fits(groups, g, space, most, depth):
    """Whether a group contains no more rows of any class than are left, and adds no more to any bound than it may."""
    for a in range(groups.guard.size):
        guard = groups.guard[a]
        if ((space.left[depth, a] | guard) - groups.rows[g, a]) & guard != guard:
            return False
    within = True
    for b in range(1, most.size):
        within = within and groups.reduced[g, b] <= most[b] - space.added[depth, b]
    return within


@njit(**INNER)
def _searched(space, depth, cost):
    """Whether a state was there before at no higher cost; from now on it was."""
    left, seen, key = space.left, space.seen, np.uint64(0)
    for a in range(left.shape[1]):
        key = (key ^ left[depth, a]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    state, same = np.int64(key & np.uint64(space.least.size - 1)), True
    for a in range(left.shape[1]):
        same = same and seen[state, a] == left[depth, a]
        seen[state, a] = left[depth, a]
    before, space.least[state] = space.least[state], cost
    if same and before <= cost:
        space.least[state] = before
        return True
    return False


@njit(**INNER)
def _shortened(groups, space, most, depth, i, top):
    """Write the list of a class anew from ``top`` on, without the groups that don't fit; where it ends."""
    to = top
    for x in range(space.begin[depth, i], space.end[depth, i]):
        g = space.lists[x]
        if groups.reduced[g, 0] > most[0] - space.added[depth, 0]:
            break
        if _fits(groups, g, space, most, depth):
            space.lists[to] = g
            to += 1
    space.begin[depth, i], space.end[depth, i] = top, to
    return to


@njit(cache=True, nogil=True)
def cheapest_cover(groups, limits, most, space, chosen, stop):
    """Whether the search for the cheapest exact cover within the limits has ended, depth first.

    most    float64[b]      what the groups of a cover may add to each bound together; falls as covers are found
    space   ``CoverSpace``
    chosen  int64[r + 1]    receives the groups of the cover found last, which is the cheapest; -1 after the last
    stop    int64[1]        another thread sets it to 1 to end the search
    """
    left, added, begin, end, lists = space.left, space.added, space.begin, space.end, space.lists
    deepest, classes, looks = left.shape[0], groups.word.size, np.int64(0)
    taken, row, cost = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64), np.zeros(deepest)
    at, until, top = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64), np.zeros(deepest, np.int64)
    # Classes that are looked at first, because their number of groups is likely to be small: the one that had no group
    # at the last state of this depth, and the one with the second fewest groups at the state above.
    without, second = np.full(deepest, np.int64(-1)), np.full(deepest, np.int64(-1))
    own, cheap = np.zeros((deepest, classes), np.bool_), limits.cost
    for i in range(classes):
        begin[0, i], end[0, i] = groups.start[i], groups.start[i + 1]
    for x in range(groups.group.size):
        lists[x] = groups.group[x]
    used = np.int64(groups.group.size)
    for b in range(most.size):
        added[0, b] = 0.0
    chosen[0] = -1
    depth, new = np.int64(0), True
    # A state takes the class with the fewest groups that fit, and tries them by what they add. A state that was there
    # before at no higher cost has been searched: the states below it have fewer rows left, so none of them is it.
    # Many groups in the list of a class don't fit. So if one state looks at many of them, the list of the state above
    # is shortened, and the next states below that one have less to look at.
    while depth >= 0:
        if new:
            new, row[depth], empty = False, -1, True
            for a in range(left.shape[1]):
                empty = empty and left[depth, a] == 0
            if empty:
                if cost[depth] <= cheap:
                    for x in range(depth):
                        chosen[x] = taken[x]
                    chosen[depth] = -1
                    for b in range(most.size):
                        most[b] -= cheap - (cost[depth] - limits.unit)
                    cheap = cost[depth] - limits.unit
            elif not _searched(space, depth, cost[depth]):
                above, fewest, looks = max(depth - 1, 0), np.int64(2) ** 40, looks + classes
                for y in range(-2, classes):
                    i = without[depth] if y == -2 else second[above] if y == -1 else y
                    if i < 0 or left[depth, groups.word[i]] & groups.field[i] == 0:
                        continue
                    fit, here, x = np.int64(0), np.int64(0), begin[above, i]
                    while x < end[above, i] and fit < fewest:
                        g = lists[x]
                        if groups.reduced[g, 0] > most[0] - added[depth, 0]:
                            break
                        fit += np.int64(_fits(groups, g, space, most, depth))
                        x, here, looks = x + 1, here + 1, looks + 1
                        length = end[above, i] - begin[above, i]
                        if here == limits.row and above > 0 and not own[above, i] and used + length <= lists.size:
                            looks, own[above, i], fit = looks + length, True, 0
                            x, used = used, _shortened(groups, space, most, above, i, used)
                    if fit < fewest:
                        second[depth], row[depth], fewest = row[depth], i, fit
                    if fit == 0:
                        break
                if fewest == 0:
                    without[depth], row[depth] = row[depth], -1
                else:
                    i, top[depth] = row[depth], used
                    at[depth], until[depth] = begin[above, i], end[above, i]
                    if depth > 0:
                        for j in range(classes):
                            begin[depth, j], end[depth, j], own[depth, j] = begin[above, j], end[above, j], False
            if looks > limits.looks or stop[0]:
                return False
        found = np.int64(-1)
        if row[depth] >= 0:
            for x in range(at[depth], until[depth]):
                g = lists[x]
                if groups.reduced[g, 0] > most[0] - added[depth, 0]:
                    break
                if _fits(groups, g, space, most, depth):
                    found, at[depth] = g, x + 1
                    break
        if found < 0:
            if row[depth] >= 0:
                used = top[depth]
            depth -= 1
            continue
        for a in range(left.shape[1]):
            left[depth + 1, a] = left[depth, a] - groups.rows[found, a]
        for b in range(most.size):
            added[depth + 1, b] = added[depth, b] + groups.reduced[found, b]
        cost[depth + 1] = cost[depth] + groups.cost[found]
        taken[depth] = found
        depth, new = depth + 1, True
    return True


class GroupShares(NamedTuple):
    """Groups that a linear program uses in part.

    start, group, rows  int32[n + 1], int32[..], int64[..]  the groups with each row class, and its rows in them
    share               float64[s]  how much of each group is used
    count               int64[n]    rows of each class
    """

    start: np.ndarray
    group: np.ndarray
    rows: np.ndarray
    share: np.ndarray
    count: np.ndarray


HALF_FULL = 0.02  # what a group counts if it has nearly as many rows in the set as the next step asks


@njit(**INNER)
def _change(shares, g, rows, m, held):
    """What the crowding of a set changes by if a group has ``rows`` more rows in it, or fewer if below 0."""
    old, new = held[g], held[g] + rows
    return shares.share[g] * (new // m - old // m + HALF_FULL * ((new % m) ** 2 - (old % m) ** 2))


@njit(**INNER)
def _added(shares, i, m, held, of_row):
    """What the crowding of a set changes by if class i comes."""
    changed = 0.0
    for x in range(shares.start[i], shares.start[i + 1]):
        g, rows = shares.group[x], shares.rows[x]
        changed += of_row[g] if rows == 1 else _change(shares, g, rows, m, held)
    return changed


@njit(**INNER)
def _put(shares, i, sign, m, held, of_row):
    """Put class i into the set (sign 1), or take it out (-1)."""
    for x in range(shares.start[i], shares.start[i + 1]):
        g = shares.group[x]
        held[g] += sign * shares.rows[x]
        of_row[g] = _change(shares, g, 1, m, held)


class CrowdedSet(NamedTuple):
    """What is asked of a set: many groups have ``m`` rows in it.

    rows   the most rows, each as often as it counts
    times  how often a row can count at most
    """

    m: int
    rows: int
    times: int


@njit(cache=True, nogil=True)
def crowded_set(shares, asked, first, held, of_row, times):
    """A set with class ``first``, grown and exchanged, in which many groups have m rows.

    asked  ``CrowdedSet``
    held, of_row, times  int64[s], float64[s], int64[n]  receive the rows of each group in the set, what the crowding
                         changes by if a group has another row in it, and how often the rows of each class count
    returns  the sum over the groups of share * floor(rows in the set / m)
    """
    m = asked.m
    for g in range(held.size):
        held[g] = 0
        of_row[g] = _change(shares, g, 1, m, held)
    times[:] = 0
    size, best = np.int64(0), first
    while best >= 0:
        _put(shares, best, 1, m, held, of_row)
        times[best] += 1
        size += shares.count[best]
        best, gain = np.int64(-1), -np.inf
        for i in range(times.size):
            if times[i] < asked.times and size + shares.count[i] <= asked.rows:
                changed = _added(shares, i, m, held, of_row)
                if changed > gain:
                    best, gain = np.int64(i), changed
    # Of all exchanges of another class for one with as many rows, the best one, until none is better.
    for _ in range(2 * asked.rows):
        gone, come, gain = np.int64(-1), np.int64(-1), 1e-9
        for i in range(times.size):
            if times[i] == np.int64(i == first):  # the first class stays
                continue
            lost = 0.0
            for x in range(shares.start[i], shares.start[i + 1]):
                lost += _change(shares, shares.group[x], -shares.rows[x], m, held)
            _put(shares, i, -1, m, held, of_row)
            for j in range(times.size):
                if j != i and times[j] < asked.times and shares.count[i] == shares.count[j]:
                    changed = lost + _added(shares, j, m, held, of_row)
                    if changed > gain:
                        gone, come, gain = np.int64(i), np.int64(j), changed
            _put(shares, i, 1, m, held, of_row)
        if gone < 0:
            break
        _put(shares, gone, -1, m, held, of_row)
        _put(shares, come, 1, m, held, of_row)
        times[gone] -= 1
        times[come] += 1
    found = 0.0
    for g in range(held.size):
        found += shares.share[g] * (held[g] // m)
    return found
