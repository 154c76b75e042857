"""Loops of labels: items put into bins, enumeration of fillings, search for packings, and cuts of an ordered list.

Bins are covered greedily and by Fold and Spread, also for many k at once. The leftover is poured into the least loaded
bins, and loads are balanced by exchanges. All fillings of one bin are listed; packings are searched depth first. An
ordered list is cut into intervals of at least k by dynamic programs. Every kernel also runs uncompiled on Python
integers (``shoal.kernels.plain``), for sizes and totals beyond 64 bits.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels import INNER, STEP, njit


@njit(cache=True, nogil=True)
def next_fit(sizes, k, label):
    """Next Fit for covering: a bin is closed when it has k; an item of k or more gets its own bin.

    sizes    int64[n]: in packing order
    k        int64: least bin
    label    int64[n]: out: bin of each item; an open bin has the last number
    returns  (bins closed, bins begun, level of the open bin or 0)

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
    """Put each item into the least loaded bin, until one would raise that bin above ``limit``.

    sizes    int64[n]: in packing order
    level    int64[m]: load of each bin, updated
    label    int64[n]: out: bin of each item placed
    limit    int64: negative for no limit
    returns  the number of items placed

    Ties go to the bin at the top of the heap, so the result is deterministic.
    O(m + n log m) time, O(m) space.
    """
    m = len(level)
    heap = np.argsort(level)  # ascending, so it is a heap
    # The top of the heap takes the item and moves down to its new position.
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
    """Fill bins one after another, each with the largest items that keep it within ``high``, until it has k.

    sizes    int64[n]: positive, descending
    k        int64: least bin
    high     int64: desired largest load; if no item fits, the bin is completed with the smallest remaining items
    label    int64[n]: out: bin of each item; the items of a last bin below k have the last number
    returns  (bins of at least k, bins in total)

    (1) jump[i] leads to the first unused item from i on; paths are compressed by halving.
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
        # The next item is the first unused one from ``at`` on; if none fits, the smallest unused one. Then find the
        # first item of at most the remaining room.
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
    """The possible moves out of a bin, by increasing size: nothing, one item, two items.

    Returns sizes, first and second items.
    """
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
    """(index in give, index in take) of the shift 0 < s < d with 2 s closest to the aim; -1 if there is none."""
    best, best_p, best_q = d + d, -1, -1  # |2 s - aim|, the least so far
    q = 0
    for p in range(len(give)):  # both ascend, so the q with 2 s closest to the aim only increases
        while q + 1 < len(take) and 2 * (give[p] - take[q]) > aim:
            q += 1
        for near in range(max(q - 1, 0), q + 1):
            s = give[p] - take[near]
            if 0 < s < d and abs(2 * s - aim) < best:
                best, best_p, best_q = abs(2 * s - aim), p, near
    return best_p, best_q


@njit(**STEP)
def _move(sizes, label, level, head, after, before, i, both):
    """Move item i, if there is one, to the other of two bins, whose numbers sum to ``both``."""
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
    """Move and swap items between bins until every load is in k..target, or no move helps, or the budget is used up.

    sizes    int64[n]: positive
    label    int64[n]: bin of each item, updated
    level    int64[m]: load of each bin, updated
    k        int64: desired least load
    target   int64: desired largest load
    pairs    bool: also exchange two items at once (two for none, one, or two)
    budget   int64: allowed visits of an item or a bin
    returns  remaining budget; 0 or less if it was used up

    (1) head, after, before are doubly linked lists: the items of each bin.
    (2) A step takes d = level[a] - level[b] > 0 and moves s from a to b with 0 < s < d, so every step lowers the sum of
    squared loads, and the loop ends.
    The desired s moves one of the two bins to the mean load, otherwise s is half the difference. A round pairs the
    fullest bin with the emptiest, the next with the next, as long as one of the two is outside k..target. If no pair
    helps, the worst bin is paired with every other.
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
        # The first half of the steps pairs bins by rank. The others pair the worst bin with every bin, and only if no
        # pair helped.
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


@njit(cache=True, nogil=True)
def fillings(values, counts, low, high, start, kind, times, steps):
    """All multisets of items with a sum in low..high.

    values   int64[d]: distinct sizes, descending
    counts   int64[d]: available copies
    start    int64[p+1]: out: filling j is entries start[j] .. start[j + 1] of kind and times
    kind     int64[e]: out: index into values, ascending
    times    int64[e]: out: copies of it, at least 1
    steps    int64: allowed choices
    returns  number of fillings, or -1 if p, e, or the steps don't suffice

    Depth first over the kinds, most copies first; a branch ends if the remaining items can't reach low.
    """
    d = len(values)
    reach = np.zeros(d + 1, values.dtype)  # total of the kinds from t on
    for t in range(d - 1, -1, -1):
        reach[t] = reach[t + 1] + values[t] * counts[t]
    stack_kind = np.empty(d + 1, dtype=np.int64)
    stack_times = np.empty(d + 1, dtype=np.int64)
    depth, t, found, entry = 0, 0, 0, 0
    load = low - low
    start[0] = 0
    while True:
        # (1) load is the sum of the stack; kinds before t are decided
        while t < d and load + reach[t] >= low:
            steps -= 1
            if steps < 0:
                return -1
            c = min(counts[t], (high - load) // values[t])
            if c > 0:
                stack_kind[depth] = t
                stack_times[depth] = c
                depth += 1
                load = load + values[t] * c
            t += 1
        if t == d and load >= low:
            if found + 1 >= len(start) or entry + depth > len(kind):
                return -1
            for s in range(depth):
                kind[entry] = stack_kind[s]
                times[entry] = stack_times[s]
                entry += 1
            found += 1
            start[found] = entry
        if depth == 0:
            return found
        t = stack_kind[depth - 1]  # one copy less of the last kind, then continue
        load = load - values[t]
        stack_times[depth - 1] -= 1
        if stack_times[depth - 1] == 0:
            depth -= 1
        t += 1


@njit(cache=True, nogil=True)
def walk(start, kind, times, counts, rng, steps, often):
    """Fillings that use every item once, by a random walk: add a filling with an unused item, remove conflicting ones.

    start    int64[p+1]: filling j is entries start[j] .. start[j + 1] of kind and times
    kind     int64[e]
    times    int64[e]
    counts   int64[d]: items of each kind; every kind occurs in some filling
    rng      numpy.random.Generator
    steps    int64: most fillings added
    often    int64[p]: in: zeros; out: how many times each filling is used
    returns  number of unused items; 0 means success

    Each step draws an unused item, adds the filling with it that displaces the fewest items (ties at random), and
    removes fillings (at random) until there is room.
    """
    p, d = len(start) - 1, len(counts)
    first = np.zeros(d + 1, dtype=np.int64)  # where[first[t] .. first[t + 1]]: the fillings with kind t
    for e in range(len(kind)):
        first[kind[e] + 1] += 1
    for t in range(d):
        first[t + 1] += first[t]
    where = np.empty(len(kind), dtype=np.int64)
    at = first.copy()
    for j in range(p):
        for e in range(start[j], start[j + 1]):
            where[at[kind[e]]] = j
            at[kind[e]] += 1
    left = counts.copy()
    unused = counts.sum()
    # Ties are broken by reservoir sampling: the n-th candidate replaces the current one with probability 1/n.
    for _ in range(steps):
        if unused == 0:
            break
        draw = rng.integers(0, unused)
        t = 0
        while draw >= left[t]:
            draw -= left[t]
            t += 1
        least, ties, put = unused + counts.sum(), 0, -1
        for q in range(first[t], first[t + 1]):
            displaced = 0
            for e in range(start[where[q]], start[where[q] + 1]):
                displaced += max(0, times[e] - left[kind[e]])
            if displaced < least:
                least, ties, put = displaced, 1, where[q]
            elif displaced == least:
                ties += 1
                if rng.integers(0, ties) == 0:
                    put = where[q]
        for e in range(start[put], start[put + 1]):
            while left[kind[e]] < times[e]:
                seen, out = 0, -1
                for q in range(first[kind[e]], first[kind[e] + 1]):
                    if often[where[q]] > 0:
                        seen += 1
                        if rng.integers(0, seen) == 0:
                            out = where[q]
                often[out] -= 1
                for f in range(start[out], start[out + 1]):
                    left[kind[f]] += times[f]
                    unused += times[f]
        often[put] += 1
        for e in range(start[put], start[put + 1]):
            left[kind[e]] -= times[e]
            unused -= times[e]
    return unused


@njit(cache=True, nogil=True)
def pack(values, counts, k, high, chosen, steps):
    """A packing of all items into bins of k..high, by depth-first search over bins.

    values   int64[d]: distinct sizes, descending
    counts   int64[d]: copies, changed during the search and restored
    chosen   int64[n+m]: out: kinds in packing order, d closes a bin; as long as items and bins together
    steps    int64: allowed choices
    returns  length of chosen if found, 0 if there is no packing, -1 if the steps didn't suffice

    (1) Every bin begins with the largest remaining item, and its items don't increase, so each packing is found once.
    (2) A bin is closed only if the rest can be b bins of k..high each, for some whole b.
    """
    d = len(values)
    rest = (values * counts).sum()
    bottom = np.empty(len(chosen), values.dtype)  # load of the open bin before each choice
    load = k - k
    depth, t = 0, -1  # t: the next kind to try at this depth, -1 to open a bin
    # A step forward picks an item for the open bin, or closes it. If neither is possible, the last choices are undone
    # until another exists.
    while True:
        picked = -1
        if t < 0:
            t = 0
            while counts[t] == 0:
                t += 1
            if values[t] <= high:
                picked = t
        else:
            while t < d and (counts[t] == 0 or load + values[t] > high):
                t += 1
            if t < d:
                picked = t
            elif t == d and load >= k and -(-rest // high) <= rest // k:
                picked = d
        steps -= 1
        if steps < 0:
            return -1
        if picked >= 0:
            chosen[depth] = picked
            bottom[depth] = load
            depth += 1
            if picked == d:
                if rest == 0:
                    return depth
                load = k - k
                t = -1
            else:
                counts[picked] -= 1
                load = load + values[picked]
                rest = rest - values[picked]
                t = picked
            continue
        while True:  # undo until another choice exists
            if depth == 0:
                return 0
            depth -= 1
            t = chosen[depth]
            load = bottom[depth]
            if t == d:
                continue
            counts[t] += 1
            rest = rest + values[t]
            if load == 0:
                continue  # the first item of a bin is forced
            t += 1
            break


@njit(cache=True, nogil=True)
def overfull(sizes, ks, bins, fold, spread):
    """The largest bin of Fold and of Spread for every k.

    sizes    int64[n]: in packing order, all below the least k
    ks       int64[q]: at most the total
    bins     int64[q]: out: bins closed
    fold     int64[q]: out: largest load if the leftover joins the least loaded bin as a whole
    spread   int64[q]: out: largest load if its items are distributed one by one

    Bins are intervals of the prefix sums, found by bisection: O(bins log n + leftover log bins) for each k.
    """
    n = len(sizes)
    total = np.zeros(n + 1, dtype=np.int64)
    for i in range(n):
        total[i + 1] = total[i] + sizes[i]
    level = np.empty(n, dtype=np.int64)
    place = np.empty(n, dtype=np.int64)
    # Bins close when they have k. The leftover after the last bin then goes into these bins, as a whole or item by
    # item.
    for q in range(len(ks)):
        begin, m = 0, 0
        while True:
            end = np.searchsorted(total, total[begin] + ks[q])
            if end > n:
                break
            level[m] = total[end] - total[begin]
            m += 1
            begin = end
        largest = level[:m].max()
        bins[q] = m
        fold[q] = max(largest, level[:m].min() + total[n] - total[begin])
        placed = pour(sizes[begin:], level[:m], place, largest)
        for i in range(begin + placed, n):
            level[(i - begin - placed) % m] += sizes[i]
        spread[q] = level[:m].max()


@njit(cache=True, nogil=True)
def cut_within(total, k, high, parent):
    """Whether intervals of k..high exist, and those with the most intervals.

    total    int64[n+1]: total[i] is the weight of the first i values, ascending from 0
    k, high  int64: limits of an interval's weight
    parent   int64[n+1]: out: start of the interval that ends before i, -1 if no interval ends there
    returns  number of intervals, 0 if there are none

    parts[i] = 1 + max parts[j] over total[i] - high <= total[j] <= total[i] - k. Both ends of that window only move
    forward, so a monotone queue gives the maximum. O(n) time and space.
    """
    n = len(total) - 1
    parts = np.zeros(n + 1, dtype=np.int64)
    queue = np.empty(n + 1, dtype=np.int64)
    front, back, coming = 0, 0, 0
    parent[0] = 0
    for i in range(1, n + 1):
        parent[i] = -1
        while total[i] - total[coming] >= k:
            if parent[coming] >= 0:
                while back > front and parts[queue[back - 1]] <= parts[coming]:
                    back -= 1
                queue[back] = coming
                back += 1
            coming += 1
        while back > front and total[i] - total[queue[front]] > high:
            front += 1
        if back > front:
            parent[i] = queue[front]
            parts[i] = parts[queue[front]] + 1
    return parts[n]


@njit(cache=True, nogil=True)
def cut_cheapest(total, low, high, k, by_range, parent):
    """Intervals of at least k with the least sum of squared weights, or of range times weight.

    total    int64[n+1]: total[i] is the weight of the first i values, ascending from 0
    low      int64[n] or float64[n], ascending; the least value of each place, of the type of the costs
    high     as low: the largest value of each place; (high[i - 1] - low[j]) is the range of an interval
    by_range bool: range times weight, else squared weight
    parent   int64[n+1]: out: start of the interval that ends before i, -1 if no interval ends there
    returns  the least cost; parent[n] is -1 if the whole weighs less than k

    best[i] = min best[j] + w(j, i) over total[j] <= total[i] - k. Both w satisfy w(a, c) + w(b, d) <= w(a, d) + w(b, c)
    for a <= b <= c <= d. So when a later j becomes better than an earlier one, it stays better. The queue has
    candidates with the first i for which each is best (found by bisection).
    O(n log n) time, O(n) space.
    """
    n = len(total) - 1
    best = np.zeros(n + 1, low.dtype)

    def cost(j, i):
        weight = total[i] - total[j]
        if by_range:
            return best[j] + (high[i - 1] - low[j]) * weight
        return best[j] + weight * weight

    queue = np.empty(n + 1, dtype=np.int64)
    since = np.empty(n + 1, dtype=np.int64)
    front, back, coming = 0, 0, 0
    parent[0] = 0
    # Candidates j for which the interval j..i has reached k enter the queue; the front is the cheapest for this i.
    for i in range(1, n + 1):
        parent[i] = -1
        # A new candidate removes those at the back that are worse at the index from which they would be best. Compared
        # with the last remaining one, it is better from an index that bisection finds, or never.
        while total[i] - total[coming] >= k:
            j = coming
            coming += 1
            if parent[j] < 0:
                continue
            wins = i
            while back > front:
                other = queue[back - 1]
                begin = max(since[back - 1], i)
                if cost(j, begin) <= cost(other, begin):
                    back -= 1
                    continue
                lost, wins = begin, n + 1  # j is worse at lost, and better at wins, if that is an index
                while wins - lost > 1:
                    middle = (lost + wins) // 2
                    mine = cost(j, middle)
                    if mine <= cost(other, middle):
                        wins = middle
                    else:
                        lost = middle
                break
            if wins <= n:
                queue[back] = j
                since[back] = wins
                back += 1
        while back - front > 1 and since[front + 1] <= i:
            front += 1
        if back > front:
            parent[i] = queue[front]
            best[i] = cost(queue[front], i)
    return best[n]
