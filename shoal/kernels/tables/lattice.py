"""Walks through the lattice of generalizations: which rows agree once every column is raised to its level.

Layout shared by the kernels, for m cells, d columns and s sensitive columns:

quasi   int32[m, d]   code of every cell in every column
up      int32[..]     class of a code at a level: up[at[j] + level * size[j] + code]
at      int64[d], size int64[d]
levels  int32[v, d]   v lattice nodes, one level per column
exact   bool          whether a class fits one int64 in mixed radix; otherwise keys are hashes, checked on a match
"""

from __future__ import annotations

import numpy as np
from numba import njit

from shoal.kernels import INNER
from shoal.kernels.tables.eligible import BAND, EQUAL, ORDERED, TREE, group_gap


@njit(**INNER)
def classes(quasi, up, at, size, level, exact, keys, low, cells, slots, key_at, first_at, of):
    """Number the classes of some cells at one lattice node, in order of first appearance; returns how many.

    level     int32[d]; cells int64[a]
    keys      int64[m], low int64   keys of every cell over the columns below low; zeros for low = 0
    slots     int64[w]   table of class numbers, w a power of two above 2 a; -1 outside the call
    key_at    int64[>=a]  out: key of each class;  first_at int64[>=a] out: its first cell
    of        int64[a]   out: class of each of the cells

    O(a d) expected time.
    """
    d = quasi.shape[1]
    mask = slots.size - 1
    found = 0
    for i in range(cells.size):
        c = cells[i]
        key = keys[c]
        for j in range(low, d):
            code = up[at[j] + level[j] * size[j] + quasi[c, j]]
            key = key * size[j] + code if exact else (key ^ code) * np.int64(-7046029254386353131) + (key >> 29)
        h = key * np.int64(-7046029254386353131)
        h = (h ^ (h >> 31)) & mask
        while True:
            x = slots[h]
            if x < 0:
                slots[h] = found
                key_at[found] = key
                first_at[found] = c
                of[i] = found
                found += 1
                break
            if key_at[x] == key:
                same = True
                if not exact:
                    other = first_at[x]
                    for j in range(d):
                        base = at[j] + level[j] * size[j]
                        if up[base + quasi[c, j]] != up[base + quasi[other, j]]:
                            same = False
                            break
                if same:
                    of[i] = x
                    break
            h = (h + 1) & mask
    for x in range(found):  # leave the table as it was found
        key = key_at[x]
        h = key * np.int64(-7046029254386353131)
        h = (h ^ (h >> 31)) & mask
        while slots[h] >= 0:
            slots[h] = -1
            h = (h + 1) & mask
    return found


@njit(**INNER)
def _keep(held, seen, kinds, l, top):
    """Largest h with sum min(count, h) >= l h, the counts being held[seen[:kinds]]; top int64[l] is scratch.

    As in phase one of the three-phase algorithm, but only the l largest counts are sorted.
    """
    total = np.int64(0)
    n = 0
    for y in range(kinds):
        c = held[seen[y]]
        total += c
        i = n
        if n < l:
            n += 1
        elif c <= top[l - 1]:
            continue
        else:
            i = l - 1
        while i > 0 and top[i - 1] < c:
            top[i] = top[i - 1]
            i -= 1
        top[i] = c
    h = top[0]
    for j in range(1, l):
        if j - 1 < n:
            total -= top[j - 1]
        h = min(h, total // (l - j))
        if h <= 0:
            return np.int64(0)
    return h


@njit(**INNER)
def _meets(rules, sensitive, cells, many, k, frequency, distinct, held, seen):
    """Whether many[i] rows of cells[i] meet a requirement; held int64[widest column] all 0, seen int64[the same]."""
    n = np.int64(0)
    for i in range(cells.size):
        n += many[i]
    if n < k:
        return False
    for j in range(frequency.size):
        if frequency[j] <= 1 and distinct[j] <= 1:
            continue
        kinds, top = 0, np.int64(0)
        for i in range(cells.size):
            if many[i] > 0:
                w = sensitive[cells[i], j]
                kinds += held[w] == 0
                held[w] += many[i]
                top = max(top, held[w])
        for i in range(cells.size):
            held[sensitive[cells[i], j]] = 0
        if frequency[j] * top > n or kinds < distinct[j]:
            return False
    return group_gap(rules, sensitive, cells, many, cells.size, held, seen) <= 0.0


@njit(**INNER)
def _part(rules, sensitive, cells, left, k, frequency, distinct, held, seen, many, part):
    """The largest part of a class found that meets the requirement; False when none is.

    With one column the part has min(count, h w) rows of each value for the largest h found by bisection; w is the
    value's share in the whole table (or its largest share) where a model has one, else 1.
    many int64[cells of the table] scratch; part int64[values] out: rows of each value, with one column
    """
    for i in range(cells.size):
        many[i] = left[cells[i]]
    whole = _meets(rules, sensitive, cells, many, k, frequency, distinct, held, seen)
    if frequency.size != 1:
        return whole
    values = rules.size[0]
    weight = np.ones(values)
    for i in range(rules.kind.size):
        for v in range(values):
            if rules.kind[i] == EQUAL:
                weight[v] = rules.table[rules.at[i] + v]
            elif rules.kind[i] == ORDERED:
                weight[v] = rules.table[rules.at[i] + v] - (rules.table[rules.at[i] + v - 1] if v > 0 else 0.0)
            elif rules.kind[i] == BAND:
                weight[v] = rules.table[rules.at[i] + 2 * v + 1]
            elif rules.kind[i] == TREE:  # the classes of the first level are the values
                shares = rules.at[i] + 1 + rules.whole[i] * values
                weight[v] = rules.table[shares + np.int64(rules.table[rules.at[i] + 1 + v])]
    kinds, total, high = 0, np.int64(0), 0.0
    for i in range(cells.size):
        w = sensitive[cells[i], 0]
        part[w] = 0
    for i in range(cells.size):
        w = sensitive[cells[i], 0]
        if many[i] > 0 and held[w] == 0:
            seen[kinds] = w
            kinds += 1
        held[w] += many[i]
        total += many[i]
    if whole or kinds < distinct[0]:
        for y in range(kinds):
            part[seen[y]] = held[seen[y]]
            held[seen[y]] = 0
        return whole
    names, had, kept = seen[:kinds].copy(), np.empty(kinds, np.int64), np.empty(kinds, np.int64)
    for y in range(kinds):
        had[y] = held[names[y]]
        held[names[y]] = 0
        high = max(high, had[y] / max(weight[names[y]], 1e-12))
    line = np.arange(values).reshape(-1, 1)
    low, found = 0.0, False
    for _ in range(14):
        h = (low + high) / 2
        for y in range(kinds):
            kept[y] = min(had[y], np.int64(h * weight[names[y]] + 1e-9))
        if _meets(rules, line, names, kept, k, frequency, distinct, held, seen):
            low, found = h, True
            for y in range(kinds):
                part[names[y]] = kept[y]
        else:
            high = h
    return found


@njit(cache=True, nogil=True)
def publish(quasi, up, at, size, levels, exact, sensitive, values, left, k, frequency, distinct, rules, common,
            spare, home, group, cell_out, group_out, count_out):  # fmt: skip
    """The cascade: at each lattice node in turn, publish the eligible part of every class of the rows still there.

    sensitive int32[m, s], values int64[s] (number of codes)
    left      int64[m]   rows of each cell not yet published, updated
    k int64, frequency int64[s], distinct int64[s]   the requirement, only of the columns of which something is asked
    rules     the other models, as in ``eligible``; with one sensitive column a class keeps what ``_part`` says
    common    bool[values of the column]  empty, or: with s = 1 and no frequency, rows of other values than these are
              held back as loans where their group does without them
    spare int64[m], home int64[m]   rows held back, the group they return to unless they are lent
    group     int64      number of the next group
    cell_out, group_out, count_out  int64[>= 3 m + 8]  triples
    returns (nodes done, triples written, next group); stops early when the output might not suffice

    With one sensitive column a class keeps min(count, h) rows of every value (``_keep``), with several all or nothing.
    Space O(m), time O(cells left * d) per node.
    """
    m, s = left.size, frequency.size
    active, here = np.empty(m, np.int64), 0
    for c in range(m):
        if left[c] > 0 or spare[c] > 0:
            active[here] = c
            here += 1
    active = active[:here]
    none = np.zeros(m, np.int64)
    width = 16
    while width < 2 * active.size + 2:
        width *= 2
    slots = np.full(width, -1, np.int64)
    key_at, first_at, of = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
    rows, lent, start, order = (np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.zeros(m + 2, np.int64),
                                np.empty(m, np.int64))  # fmt: skip
    widest = 1
    for j in range(s):
        widest = max(widest, values[j])
    held, seen = np.zeros(widest, np.int64), np.empty(widest, np.int64)
    largest = np.empty(frequency[0] if s else 1, np.int64)
    loans = common.size > 0
    ruled = rules is not None
    part, many = np.zeros(widest if ruled else 1, np.int64), np.empty(m if ruled else 1, np.int64)
    smallest = k
    for j in range(s):
        smallest = max(smallest, frequency[j], distinct[j])
    written, v = 0, 0
    while v < levels.shape[0]:
        if active.size == 0 or written + 2 * active.size + 2 > cell_out.size:
            break
        found = classes(quasi, up, at, size, levels[v], exact, none, 0, active, slots, key_at, first_at, of)
        v += 1
        for x in range(found):
            rows[x] = 0
            lent[x] = 0
        for i in range(active.size):
            rows[of[i]] += left[active[i]]
            lent[of[i]] += spare[active[i]]
        total = 0
        for x in range(found):
            if rows[x] >= smallest or (rows[x] >= smallest - 1 and rows[x] > 0 and lent[x] > 0):
                start[x] = 0
                total += 1
            else:
                start[x] = -1
        if total == 0:
            continue
        for i in range(active.size):
            if start[of[i]] >= 0:
                start[of[i]] += 1
        total = 0
        for x in range(found):
            if start[x] >= 0:
                here = start[x]
                start[x] = total
                total += here
        for i in range(active.size):
            x = of[i]
            if start[x] >= 0:
                order[start[x]] = active[i]
                start[x] += 1
        end = 0
        changed = False
        for x in range(found):  # start[x] is now the end of class x
            if start[x] < 0:
                continue
            begin, end = end, start[x]
            if rules is not None:
                if _part(rules, sensitive, order[begin:end], left, k, frequency, distinct, held, seen, many, part):
                    changed = True
                    for i in range(begin, end):
                        c = order[i]
                        give = left[c]
                        if s == 1:
                            give = min(give, part[sensitive[c, 0]])
                            part[sensitive[c, 0]] -= give
                        if give > 0:
                            left[c] -= give
                            cell_out[written], group_out[written], count_out[written] = c, group, give
                            written += 1
                    group += 1
                continue
            n = rows[x]
            h = np.int64(1) << 60
            fine = True
            need_loan = n < k
            for j in range(s):
                kinds, top = 0, np.int64(0)
                for i in range(begin, end):
                    c = order[i]
                    if left[c] > 0:
                        w = sensitive[c, j]
                        if held[w] == 0:
                            seen[kinds] = w
                            kinds += 1
                        held[w] += left[c]
                        top = max(top, held[w])
                if s == 1 and frequency[0] > 1:
                    h = _keep(held, seen, kinds, frequency[0], largest)
                    n = np.int64(0)
                    for y in range(kinds):
                        n += min(held[seen[y]], h)
                    fine = h > 0 and n >= k and kinds >= distinct[0]
                elif frequency[j] * top > n:
                    fine = False
                elif kinds < distinct[j]:
                    if loans and kinds == distinct[j] - 1 and lent[x] > 0:
                        need_loan = True
                    else:
                        fine = False
                if need_loan and fine:
                    # Borrow the row that loses least by moving: home groups are numbered in order of rising loss.
                    best = -1
                    fine = loans and n >= smallest - 1
                    for i in range(begin, end):
                        c = order[i]
                        suits = spare[c] > 0 and (kinds >= distinct[0] or held[sensitive[c, 0]] == 0)
                        if suits and (best < 0 or home[c] > home[best]):
                            best = c
                    fine = fine and best >= 0
                    if fine:
                        spare[best] -= 1
                        cell_out[written], group_out[written], count_out[written] = best, group, 1
                        written += 1
                for y in range(kinds):
                    held[seen[y]] = 0
                if not fine:
                    break
            if not fine or (need_loan and s == 0):
                continue
            changed = True
            back = np.int64(0)
            if loans and not need_loan:
                # Of the values that are not common, one row stays; further ones are held back while k rows stay.
                rare = np.int64(0)
                for i in range(begin, end):
                    if not common[sensitive[order[i], 0]]:
                        rare += left[order[i]]
                back = min(max(rare - 1, 0), n - k)
                if distinct[0] > 1:
                    kinds = 0
                    for i in range(begin, end):
                        w = sensitive[order[i], 0]
                        if left[order[i]] > 0 and common[w] and held[w] == 0:
                            seen[kinds] = w
                            held[w] = 1
                            kinds += 1
                    for y in range(kinds):
                        held[seen[y]] = 0
                    if kinds < distinct[0] - 1:
                        back = 0
            for i in range(begin, end):
                c = order[i]
                give = left[c]
                if give == 0:
                    continue
                if s == 1 and frequency[0] > 1:
                    w = sensitive[c, 0]
                    give = min(give, h - held[w])
                    held[w] += give
                elif back > 0 and not common[sensitive[c, 0]]:
                    keep = max(give - back, 0)
                    spare[c] = give - keep
                    home[c] = group
                    back -= spare[c]
                    left[c] -= spare[c]
                    give = keep
                if give > 0:
                    left[c] -= give
                    cell_out[written], group_out[written], count_out[written] = c, group, give
                    written += 1
            if s == 1 and frequency[0] > 1:
                for i in range(begin, end):
                    held[sensitive[order[i], 0]] = 0
            group += 1
        if changed:
            here = 0
            any_left = False
            for i in range(active.size):
                c = active[i]
                if left[c] > 0:
                    any_left = True
                if left[c] > 0 or spare[c] > 0:
                    active[here] = c
                    here += 1
            if not any_left:
                here = 0
            active = active[:here]
            of = of[:here]
            while slots.size > 64 and slots.size > 8 * here + 16:
                slots = slots[: slots.size // 2]
    return v, written, group
