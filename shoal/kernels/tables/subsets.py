"""Dynamic program over what is left of a table, and greedy cover by published rows.

A state is how many rows of each kind are left.  It has two names: its number in mixed radix (kind 0 most significant),
which is subtracted like a number, and a packed word with a guard bit over every field, in which "group <= state" is
one subtraction.  Both are linear in the counts.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.eligible import group_gap, widest


class Asked(NamedTuple):
    """What a group is asked.

    value  int64[m, s], frequency int64[s], distinct int64[s]   sensitive values, numbered from 0, and what is asked
    least, k, most  int64   smallest group that can be eligible; k; largest group wanted
    once   bool          groups in which a value of sensitive column 0 occurs twice are left out
    """

    value: np.ndarray
    frequency: np.ndarray
    distinct: np.ndarray
    least: int
    k: int
    most: int
    once: bool


class Places(NamedTuple):
    """Place of each kind in the packed word and in the state's number, int64[m] each."""

    shift: np.ndarray
    radix: np.ndarray


class Found(NamedTuple):
    """Groups by their first kind.

    word, number, cost   int64[keep]   the group in its two names, and the cost of all its rows
    first  int64[m + 1]  where those of a first kind begin
    floor  int64[m]      least loss of a row of each kind in any of them
    """

    word: np.ndarray
    number: np.ndarray
    cost: np.ndarray
    first: np.ndarray
    floor: np.ndarray


@njit(**INNER)
def _meets(asked, f, g, total, held):
    """Whether rows g of each kind, none before f, meet what is asked of their number and of each sensitive column."""
    if total < asked.least or total < asked.k:
        return False
    value, frequency, distinct = asked.value, asked.frequency, asked.distinct
    for j in range(value.shape[1]):
        held[:] = 0
        for x in range(f, g.size):
            held[value[x, j]] += g[x]
        top, seen = np.int64(0), np.int64(0)
        for v in range(held.size):
            top = max(top, held[v])
            if held[v] > 0:
                seen += 1
        if frequency[j] * top > total or seen < distinct[j] or (asked.once and j == 0 and top > 1):
            return False
    return True


@njit(**INNER)
def _loss(types, f, g):
    """Loss of a row of a group with g rows of each kind, f the first."""
    code, pair, start, size, kind = types.code, types.pair, types.start, types.size, types.kind
    loss = np.int64(0)
    for j in range(code.shape[1]):
        low = high = np.int64(code[f, j])
        worst = np.int64(0)
        different = np.int64(0)
        for x in range(f + 1, g.size):
            if g[x] == 0:
                continue
            c = np.int64(code[x, j])
            low, high = min(low, c), max(high, c)
            worst = max(worst, pair[start[j] + np.int64(code[f, j]) * size[j] + c])
            if kind[j] == 2:
                new = np.int64(1)
                for y in range(f, x):
                    if g[y] > 0 and code[y, j] == c:
                        new = np.int64(0)
                different += new
        if kind[j] == 0:
            loss += max(worst, pair[start[j] + low * size[j] + low])
        elif kind[j] == 1:
            loss += pair[start[j] + low * size[j] + high]
        elif different > 0:
            loss += different * pair[start[j] + 1]
    return loss


@njit(cache=True, nogil=True)
def eligible_groups(types, asked, rules, places, found):
    """Every eligible group: a vector of rows of each kind, at most asked.most of them; all are written down in found.

    rules    what is asked besides, or None
    returns  number of groups, -1 when there are more than found has places.  O(vectors x m x d).
    """
    m, value, count, most = types.count.size, asked.value, types.count, asked.most
    g = np.zeros(m, np.int64)
    values = widest(rules)
    for x in range(m):
        for j in range(value.shape[1]):
            values = max(values, value[x, j] + 1)
    held, kinds_seen = np.zeros(values, np.int64), np.empty(values, np.int64)
    who = np.arange(m)
    done = 0
    found.floor[:] = np.int64(2) ** 40
    for f in range(m):
        found.first[f] = done
        g[:] = 0
        g[f] = 1
        total = np.int64(1)
        while True:
            good = _meets(asked, f, g, total, held)
            if good and rules is not None:
                held[:] = 0
                good = group_gap(rules, value, who, g, m, held, kinds_seen, 0.0) <= 0.0
            if good:
                if done == found.word.size:
                    return -1
                loss = _loss(types, f, g)
                w, i = np.int64(0), np.int64(0)
                for x in range(f, m):
                    w += g[x] << places.shift[x]
                    i += g[x] * places.radix[x]
                    if g[x] > 0:
                        found.floor[x] = min(found.floor[x], loss)
                found.word[done], found.number[done], found.cost[done] = w, i, loss * total
                done += 1
            x = m - 1
            while x > f and (g[x] == count[x] or total == most):
                total -= g[x]
                g[x] = 0
                x -= 1
            if g[x] == count[x] or total == most:
                break
            g[x] += 1
            total += 1
    found.first[m] = done
    return done


@njit(cache=True, nogil=True)
def least_cost(count, shift, guard, found, spared, upper, value, left, book, looks):
    """Least cost at which the whole table can be reduced to every state by groups that hold its first row left.

    count  int64[m], shift int64[m], guard int64   rows of each kind, their places in the word, the guard bits
    found                the groups, those of one first kind by rising cost - spared
    spared int64[groups], upper int64   floor of each group's rows; a cost that is not to be exceeded
    value  int64[states]   out: -1 where a state cannot be reached so; value[0] is the optimum
    left   int64[m], book int64[3]   where the last slice ended: rows left, then (state, packed, rest); state -1: begin
    looks  int64         groups looked at before the slice ends, about
    returns  whether value is finished

    Some order of the groups of any partition takes the first row left each time.  O(states reached x groups).
    """
    word, number, cost, first, floor = found
    m = count.size
    if book[0] < 0:
        left[:] = count
        book[0], book[1], book[2] = value.size - 1, 0, 0
        for x in range(m):
            book[1] += count[x] << shift[x]
            book[2] += count[x] * floor[x]
        value[:] = -1
        value[value.size - 1] = 0
    packed, rest = book[1], book[2]
    for state in range(book[0], 0, -1):
        if looks <= 0:
            book[0], book[1], book[2] = state, packed, rest
            return False
        here = value[state]
        looks -= 1
        if here >= 0:
            f = 0
            while left[f] == 0:
                f += 1
            fenced = packed | guard
            looks -= first[f + 1] - first[f]
            for e in range(first[f], first[f + 1]):
                if here + rest + cost[e] - spared[e] > upper:
                    break
                if (fenced - word[e]) & guard == guard:
                    to = state - number[e]
                    now = here + cost[e]
                    if value[to] < 0 or now < value[to]:
                        value[to] = now
        x = m - 1
        while left[x] == 0:
            left[x] = count[x]
            packed += count[x] << shift[x]
            rest += count[x] * floor[x]
            x -= 1
        left[x] -= 1
        rest -= floor[x]
        packed -= np.int64(1) << shift[x]
    return True


@njit(cache=True, nogil=True)
def cover(start, member, loss, of_start, of, count, k, pick):
    """Greedy weighted cover: always the published row that pays least for every row it covers anew.

    start  int64[q + 1], member int64[...]   types that fit published row q; each fits at least k rows in all
    loss   int64[q]      loss of a row published so
    of_start int64[t + 1], of int64[...]     published rows that fit each type
    count  int64[t], k int64
    pick   int64[t]      out: number of the pick that covered the type; -1 when none fits
    returns int64[picks]  the published row of each pick

    n uncovered rows cost loss x max(n, k), so every one pays loss x max(1, k / n).  Prices only rise, so a heap of
    stale prices is exact.  O((sum of members + picks) log q).
    """
    q = loss.size
    uncovered = np.zeros(q, np.int64)
    heap = [(0.0, np.int64(0)) for _ in range(0)]
    for p in range(q):
        for x in range(start[p], start[p + 1]):
            uncovered[p] += count[member[x]]
        heap.append((loss[p] * k / min(uncovered[p], k), np.int64(p)))
    heapq.heapify(heap)
    pick[:] = -1
    picks = np.zeros(count.size, np.int64)
    made = 0
    while len(heap) > 0:
        price, p = heapq.heappop(heap)
        if uncovered[p] == 0:
            continue
        now = loss[p] * k / min(uncovered[p], k)
        if now > price:
            heapq.heappush(heap, (now, p))
            continue
        for x in range(start[p], start[p + 1]):
            t = member[x]
            if pick[t] < 0:
                pick[t] = made
                for y in range(of_start[t], of_start[t + 1]):
                    uncovered[of[y]] -= count[t]
        picks[made] = p
        made += 1
    return picks[:made]
