"""Opening new groups: a row that its group can spare and rows near it that are dear where they are.

Where a sensitive value is scarce, dear groups are large because each has a single row of it, and no exchange between
near groups makes them smaller: what helps is a row of the scarce value from a group that has two.  Proposals are made
against one fixed state, so any number of cores may make them; they are carried out one by one, each checked again.

Layout shared by the kernels, for n rows, t slots, s sensitive columns and g groups:

slots, leaf int64[n, t]     as in ``search``, one line per row
value     int64[n, s]       sensitive values, numbered from 0
group     int64[n]          label of each row
start     int64[g + 1], member int64[n]   rows of each group: member[start[g] : start[g + 1]]
state     int64[g, t], price float64[g]   what each group publishes and what that costs one row
k int64, frequency int64[s], distinct int64[s]   the requirement; every group meets it
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER
from shoal.kernels.tables.slots import join, joined


@njit(**INNER)
def _meets(rows, r, value, k, frequency, distinct):
    """Whether rows[:r] together meet the requirement.  O(r^2 s) at worst, O(r s l) as a rule."""
    if r < k:
        return False
    for j in range(frequency.size):
        if frequency[j] <= 1 and distinct[j] <= 1:
            continue
        kinds = 0
        for i in range(r):
            w = value[rows[i], j]
            fresh = True
            for y in range(i):
                if value[rows[y], j] == w:
                    fresh = False
                    break
            if not fresh:
                continue
            kinds += 1
            if frequency[j] > 1:
                same = 0
                for y in range(i, r):
                    same += value[rows[y], j] == w
                if same * frequency[j] > r:
                    return False
            elif kinds >= distinct[j]:
                break
        if kinds < distinct[j]:
            return False
    return True


@njit(**INNER)
def _without(gone, m, g, start, member, rest):
    """Rows of group g that are not among gone[:m], into rest; returns how many."""
    r = 0
    for i in range(start[g], start[g + 1]):
        x = member[i]
        stays = True
        for y in range(m):
            if gone[y] == x:
                stays = False
                break
        if stays:
            rest[r] = x
            r += 1
    return r


@njit(cache=True, nogil=True)
def spare(value, start, member, k, frequency, distinct, out):
    """Which rows their group can do without, bool[n].  O(n * largest group) at worst."""
    n, s = value.shape
    rest = np.empty(n, np.int64)
    one = np.empty(1, np.int64)
    top = 1
    for j in range(s):
        for x in range(n):
            top = max(top, value[x, j] + 1)
    held = np.zeros(top, np.int64)
    for g in range(start.size - 1):
        a, b = start[g], start[g + 1]
        if b - a <= k:
            for i in range(a, b):
                out[member[i]] = False
            continue
        plain = True
        for j in range(s):
            plain &= frequency[j] <= 1
        for i in range(a, b):
            out[member[i]] = True
        if not plain:
            for i in range(a, b):
                one[0] = member[i]
                r = _without(one, 1, g, start, member, rest)
                out[member[i]] = _meets(rest, r, value, k, frequency, distinct)
            continue
        for j in range(s):
            kinds = 0
            for i in range(a, b):
                w = value[member[i], j]
                kinds += held[w] == 0
                held[w] += 1
            for i in range(a, b):
                x = member[i]
                out[x] &= kinds > distinct[j] or held[value[x, j]] > 1
            for i in range(a, b):
                held[value[member[i], j]] = 0


@njit(cache=True, nogil=True)
def propose(slots, leaf, value, group, start, member, price, free, k, frequency, distinct, seeds, pull, shift,
            list_size, out, many, gain):  # fmt: skip
    """For each seed the best new group found around it.

    free    bool[n]    rows their group can do without (``spare``)
    seeds   int64[r]   rows, all free
    pull    float64    what share of its present cost makes a row preferred
    shift   int64      start of the scan, so that ties do not always fall to the same rows
    list_size int64    rows near the seed that are considered, and as many again of other values of the first column
    out     int64[r, w] rows of the new group, the seed first; many int64[r] how many, 0: none
    gain    float64[r] estimate of what is gained: groups that lose rows are taken to publish what they did

    O(r (n t + w list_size t)).
    """
    n, width = leaf.shape
    s = frequency.size
    most = out.shape[1]
    need = k
    for j in range(s):
        need = max(need, frequency[j], distinct[j])
    places = 2 * list_size
    near, far = np.empty(places, np.int64), np.empty(places)
    used = np.empty(places, np.bool_)
    state, rest, gone = np.empty(width, np.int64), np.empty(n, np.int64), np.empty(most, np.int64)
    for q in range(seeds.size):
        x = seeds[q]
        many[q] = 0
        gain[q] = 0.0
        first, second = 0, 0
        for e in range(n):
            y = e + shift
            if y >= n:
                y -= n
            if not free[y] or y == x:
                continue
            base = pull * price[group[y]]
            bar = far[list_size - 1] if first == list_size else np.inf
            other = s > 0 and value[y, 0] != value[x, 0]
            if other:
                bar = max(bar, far[places - 1] if second == list_size else np.inf)
            if bar < np.inf and bar + base <= 0.0:
                continue
            score = joined(slots, leaf[x], leaf[y], bar + base) - base
            if score >= bar:
                continue
            if first < list_size or score < far[list_size - 1]:
                z = first if first < list_size else list_size - 1
                first = min(first + 1, list_size)
                while z > 0 and far[z - 1] > score:
                    far[z], near[z] = far[z - 1], near[z - 1]
                    z -= 1
                far[z], near[z] = score, y
            if other and (second < list_size or score < far[places - 1]):
                z = second if second < list_size else list_size - 1
                second = min(second + 1, list_size)
                while z > 0 and far[list_size + z - 1] > score:
                    far[list_size + z], near[list_size + z] = far[list_size + z - 1], near[list_size + z - 1]
                    z -= 1
                far[list_size + z], near[list_size + z] = score, y
        for z in range(places):
            used[z] = not (z < first or list_size <= z < list_size + second)
        out[q, 0] = x
        r = 1
        old = price[group[x]]
        now = 0.0
        for t in range(width):
            state[t] = leaf[x, t]
        best_gain, best_many = 0.0, 0
        while r < most:
            best, least = -1, np.inf
            for z in range(places):
                if used[z]:
                    continue
                y = near[z]
                base = price[group[y]] * (pull if r < need else 1.0)
                if r < need:
                    score = joined(slots, state, leaf[y], least + base) - base
                else:
                    score = (r + 1) * joined(slots, state, leaf[y], (least + base + r * now) / (r + 1)) - r * now - base
                    if score >= 0.0:
                        continue
                if score >= least:
                    continue
                fits = True
                for j in range(s):
                    if r >= need or distinct[j] <= 1:
                        continue
                    kinds, fresh = 0, True
                    for a in range(r):
                        new = True
                        for b in range(a):
                            new &= value[out[q, a], j] != value[out[q, b], j]
                        kinds += new
                        fresh &= value[out[q, a], j] != value[y, j]
                    if not fresh and distinct[j] - kinds >= need - r:
                        fits = False
                        break
                if fits:
                    best, least = z, score
            if best < 0:
                break
            y = near[best]
            used[best] = True
            for z in range(places):
                if near[z] == y and not used[z]:
                    used[z] = True
            together = 0
            for a in range(r):
                if group[out[q, a]] == group[y]:
                    gone[together] = out[q, a]
                    together += 1
            if together:
                gone[together] = y
                left = _without(gone, together + 1, group[y], start, member, rest)
                if not _meets(rest, left, value, k, frequency, distinct):
                    continue
            out[q, r] = y
            r += 1
            old += price[group[y]]
            for t in range(width):
                state[t] = join(slots, t, state[t], leaf[y, t])
            now = joined(slots, state, state, np.inf)
            if r >= need and old - r * now > best_gain and _meets(out[q], r, value, k, frequency, distinct):
                best_gain, best_many = old - r * now, r
            if r >= need and old - r * now <= 0.0:
                break
        many[q] = best_many
        gain[q] = best_gain


@njit(cache=True, nogil=True)
def carry_out(slots, leaf, value, group, head, following, size, state, price, k, frequency, distinct, order, out, many):
    """Open the proposed groups one by one where that still lowers the loss; returns how many.

    order  int64[r]   proposals, in the order in which they are tried; out, many: the proposals
    head, following, size   members of each group as a chained list, with room for r groups more; updated
    group, state, price     updated; labels of new groups follow those that were

    O(r * rows of the groups concerned * (t + w)).
    """
    n, width = leaf.shape
    labels = 0
    for x in range(n):
        labels = max(labels, group[x] + 1)
    rest, fresh, donor = np.empty(n, np.int64), np.empty(width, np.int64), np.empty(out.shape[1], np.int64)
    states = np.empty((out.shape[1], width), np.int64)
    prices = np.empty(out.shape[1])
    opened = 0
    for q in order:
        r = many[q]
        if r == 0:
            continue
        chosen = out[q]
        for t in range(width):
            fresh[t] = leaf[chosen[0], t]
            for i in range(1, r):
                fresh[t] = join(slots, t, fresh[t], leaf[chosen[i], t])
        now = joined(slots, fresh, fresh, np.inf)
        change = r * now
        donors = 0
        fine = True
        for i in range(r):
            g = group[chosen[i]]
            seen = False
            for z in range(donors):
                seen |= donor[z] == g
            if seen:
                continue
            left = 0
            x = head[g]
            while x >= 0:
                stays = True
                for y in range(r):
                    if chosen[y] == x:
                        stays = False
                        break
                if stays:
                    rest[left] = x
                    left += 1
                x = following[x]
            if not _meets(rest, left, value, k, frequency, distinct):
                fine = False
                break
            for t in range(width):
                a = leaf[rest[0], t]
                for y in range(1, left):
                    a = join(slots, t, a, leaf[rest[y], t])
                states[donors, t] = a
            prices[donors] = joined(slots, states[donors], states[donors], np.inf)
            change += left * prices[donors] - size[g] * price[g]
            donor[donors] = g
            donors += 1
        if not fine or change >= -1e-9:
            continue
        opened += 1
        for z in range(donors):
            g = donor[z]
            left, x = -1, head[g]
            size[g] = 0
            while x >= 0:
                after = following[x]
                stays = True
                for y in range(r):
                    if chosen[y] == x:
                        stays = False
                        break
                if stays:
                    following[x] = left
                    left = x
                    size[g] += 1
                x = after
            head[g] = left
            price[g] = prices[z]
            for t in range(width):
                state[g, t] = states[z, t]
        head[labels] = -1
        for i in range(r):
            group[chosen[i]] = labels
            following[chosen[i]] = head[labels]
            head[labels] = chosen[i]
        size[labels] = r
        price[labels] = now
        for t in range(width):
            state[labels, t] = fresh[t]
        labels += 1
    return opened
