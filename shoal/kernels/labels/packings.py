"""Loops over sets of items: every way to fill one bin, and a depth-first search through all packings."""

from __future__ import annotations

import numpy as np

from shoal.kernels import njit


@njit(cache=True, nogil=True)
def fillings(values, counts, low, high, start, kind, times, steps):
    """Every multiset of items with a sum in low..high.

    values   int64[d]    distinct sizes, descending
    counts   int64[d]    copies at hand
    start    int64[p+1]  out: filling j is entries start[j] .. start[j + 1] of kind and times
    kind     int64[e]    out: index into values, ascending
    times    int64[e]    out: copies of it, at least 1
    steps    int64       choices allowed
    returns  number of fillings, or -1 when p, e or the steps do not suffice

    Depth-first over the kinds, most copies first; a branch ends when what is left cannot reach low.
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
        t = stack_kind[depth - 1]  # one copy less of the last kind, and on from there
        load = load - values[t]
        stack_times[depth - 1] -= 1
        if stack_times[depth - 1] == 0:
            depth -= 1
        t += 1


@njit(cache=True, nogil=True)
def walk(start, kind, times, counts, rng, steps, often):
    """Fillings that use every item once, by a random walk: put an unused item back in, take out what it collides with.

    start    int64[p+1]  filling j is entries start[j] .. start[j + 1] of kind and times
    kind     int64[e]
    times    int64[e]
    counts   int64[d]    items of each kind; every kind occurs in some filling
    rng      numpy.random.Generator
    steps    int64       fillings put in before giving up
    often    int64[p]    in: zeros; out: how many times each filling is used
    returns  items left unused; 0 is success

    Each step draws an unused item, puts in the filling with it that displaces the fewest items (ties at random), and
    takes out fillings (at random) until there is room.
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

    values   int64[d]  distinct sizes, descending
    counts   int64[d]  copies, used up and restored on the way
    chosen   int64[n+m]  out: kinds in the order of packing, d closes a bin; as long as items and bins together
    steps    int64     choices allowed
    returns  length of chosen when found, 0 when there is none, -1 when the steps did not suffice

    (1) Every bin opens with the largest item left, and its items do not grow: each packing is met once.
    (2) A bin closes only if the rest can be b bins of k..high each, for some whole b.
    """
    d = len(values)
    rest = (values * counts).sum()
    bottom = np.empty(len(chosen), values.dtype)  # load of the open bin before each choice
    load = k - k
    depth, t = 0, -1  # t: the next kind to try at this depth, -1 to open a bin
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
        while True:  # undo until something else can be tried
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
                continue  # the item that opens a bin is forced
            t += 1
            break
