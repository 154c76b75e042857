"""Loops over items and bins: greedy covering, pouring into the least loaded bin, rebalancing.

Every kernel also runs uncompiled (``uncompiled.plain``) on arrays of Python integers, for sizes beyond 64 bits.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, STEP, njit


@njit(cache=True, nogil=True)
def next_fit(sizes, k, label):
    """Bins closed as soon as they hold k; an item of k or more gets a bin of its own.

    sizes    int64[n]  in the order to pack
    k        int64     least bin
    label    int64[n]  out: bin of each item; the bin left open, if any, is the last number
    returns  (bins closed, bins begun, level of the bin left open or 0)

    O(n) time, O(1) further space.
    """
    bins = 0
    n = len(sizes)
    for i in range(n):
        if sizes[i] >= k:
            label[i] = bins
            bins += 1
    level = k - k
    for i in range(n):
        if sizes[i] < k:
            label[i] = bins
            level = level + sizes[i]
            if level >= k:
                bins += 1
                level = k - k
    if level > 0:
        return bins, bins + 1, level
    return bins, bins, level


@njit(cache=True, nogil=True)
def pour(sizes, level, label, limit):
    """Each item in turn into the least loaded bin, until one would lift that bin above ``limit``.

    sizes    int64[n]  in the order to pack
    level    int64[m]  load of each bin, updated
    label    int64[n]  out: bin of each item placed
    limit    int64     a negative limit is none
    returns  how many items were placed

    Ties go to the bin that the heap has on top: the outcome is a function of the input alone.
    O(m + n log m) time, O(m) space.
    """
    m = len(level)
    heap = np.argsort(level)  # ascending, hence a heap
    for i in range(len(sizes)):
        b = heap[0]
        load = level[b] + sizes[i]
        if 0 <= limit < load:
            return i
        level[b] = load
        label[i] = b
        at = 0
        while True:
            child = 2 * at + 1
            if child >= m:
                break
            if child + 1 < m and level[heap[child + 1]] < level[heap[child]]:
                child += 1
            if level[heap[child]] >= load:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = b
    return len(sizes)


@njit(cache=True, nogil=True)
def fill(sizes, k, high, label):
    """Bins filled one after another, each with the largest items that keep it within ``high``, until it holds k.

    sizes    int64[n]  positive, descending
    k        int64     least bin
    high     int64     largest load wanted; a bin nothing fits any more is closed with the smallest items left
    label    int64[n]  out: bin of each item; the items of a last bin below k have the last number
    returns  (bins of at least k, bins in all)

    (1) jump[i] leads to the first item from i on that is not yet used: paths are halved as they are walked.
    O(n log n) time, O(n) space.
    """
    n = len(sizes)
    jump = np.arange(n + 1)
    last = n - 1  # no item after it is unused
    bins = 0
    used = 0
    while used < n:
        load = k - k
        at = 0
        while load < k and used < n:
            while jump[at] != at:
                jump[at] = jump[jump[at]]
                at = jump[at]
            if at == n:
                while jump[last] != last:
                    last -= 1
                at = last
            label[at] = bins
            load = load + sizes[at]
            jump[at] = at + 1
            used += 1
            if load < k:  # the first item of at most high - load
                least, most = 0, n
                while least < most:
                    middle = (least + most) // 2
                    if sizes[middle] <= high - load:
                        most = middle
                    else:
                        least = middle + 1
                at = least
        bins += 1
        if load < k:
            return bins - 1, bins
    return bins, bins


@njit(**INNER)
def _offers(sizes, head, after, b, pairs, item):
    """What a bin can offer, by rising size: nothing, one item, two items.  Returns sizes, first and second items."""
    c = 0
    i = head[b]
    while i >= 0:
        item[c] = i
        c += 1
        i = after[i]
    two = c * (c - 1) // 2 if pairs and c <= 300 else 0
    offer = np.zeros(1 + c + two, sizes.dtype)
    first = np.full(1 + c + two, -1)
    second = np.full(1 + c + two, -1)
    for p in range(c):
        offer[1 + p] = sizes[item[p]]
        first[1 + p] = item[p]
    at = 1 + c
    if two:
        for p in range(c):
            for q in range(p):
                offer[at] = sizes[item[p]] + sizes[item[q]]
                first[at] = item[p]
                second[at] = item[q]
                at += 1
    rank = np.argsort(offer)
    return offer[rank], first[rank], second[rank]


@njit(**STEP)
def _exchange(give, take, d, aim):
    """(place in give, place in take) of the shift 0 < s < d with 2 s nearest to the aim; -1 where there is none."""
    best, best_p, best_q = d + d, -1, -1  # |2 s - aim|, least so far
    q = 0
    for p in range(len(give)):  # both ascend, so the q that brings 2 s nearest to the aim only moves on
        while q + 1 < len(take) and 2 * (give[p] - take[q]) > aim:
            q += 1
        for near in range(max(q - 1, 0), q + 1):
            s = give[p] - take[near]
            if 0 < s < d and abs(2 * s - aim) < best:
                best, best_p, best_q = abs(2 * s - aim), p, near
    return best_p, best_q


@njit(**STEP)
def _move(sizes, label, level, head, after, before, i, both):
    """Item i, where there is one, into the other of two bins, whose numbers sum to ``both``."""
    if i < 0:
        return
    home, away = label[i], both - label[i]
    if before[i] >= 0:
        after[before[i]] = after[i]
    else:
        head[home] = after[i]
    if after[i] >= 0:
        before[after[i]] = before[i]
    before[i] = -1
    after[i] = head[away]
    if head[away] >= 0:
        before[head[away]] = i
    head[away] = i
    label[i] = away
    level[home] -= sizes[i]
    level[away] += sizes[i]


@njit(cache=True, nogil=True)
def rebalance(sizes, label, level, k, target, pairs, budget):
    """Move and swap items between bins until every load lies in k..target, or nothing helps, or the budget is spent.

    sizes    int64[n]  positive
    label    int64[n]  bin of each item, updated
    level    int64[m]  load of each bin, updated
    k        int64     least load wanted
    target   int64     largest load wanted
    pairs    bool      also exchange two items at once (two for none, one or two)
    budget   int64     visits of an item or a bin allowed
    returns  budget left; 0 or less when it was spent

    (1) head, after, before are doubly linked lists: the items of each bin.
    (2) A step takes d = level[a] - level[b] > 0 and shifts s from a to b with 0 < s < d, so the sum of squared
        loads falls with every step: the loop ends.
    The shift wanted is the one that brings one of the two to the mean of all bins, else half the difference.
    A round pairs the fullest bin with the emptiest, the next with the next, as long as one of the two is out of
    k..target.  When no pair helps, the worst bin tries every other.
    """
    n = len(sizes)
    m = len(level)
    head = np.full(m, -1)
    after = np.full(n, -1)
    before = np.full(n, -1)
    for i in range(n):
        b = label[i]
        after[i] = head[b]
        if head[b] >= 0:
            before[head[b]] = i
        head[b] = i
    item = np.empty(n, dtype=np.int64)
    mean = level.sum() // m
    while True:
        order = np.argsort(level)
        budget -= m
        low, high = order[0], order[m - 1]
        giving = level[high] > target
        if budget <= 0 or (level[low] >= k and not giving):
            break
        moved = False
        half = m // 2
        for step in range(half + m - 1):
            if step < half:
                a, b = order[m - 1 - step], order[step]
                if level[a] <= target and level[b] >= k:
                    continue
            elif giving:
                a, b = high, order[step - half]
            else:
                a, b = order[m - 1 - step + half], low
            if step == half and moved:
                break
            d = level[a] - level[b]
            if budget <= 0:
                break
            if d <= 1:
                continue
            give, giver, giver_too = _offers(sizes, head, after, a, pairs, item)
            take, taker, taker_too = _offers(sizes, head, after, b, pairs, item)
            budget -= len(give) + len(take)
            over, under = level[a] - mean, mean - level[b]
            aim = 2 * min(over, under) if min(over, under) > 0 else d
            p, q = _exchange(give, take, d, aim)
            if p < 0:
                continue
            for i in (giver[p], giver_too[p], taker[q], taker_too[q]):
                _move(sizes, label, level, head, after, before, i, a + b)
            moved = True
            if step >= half:
                break
        if not moved:
            break
    return budget
