"""Opens new groups around scarce sensitive values, and inserts rows into the groups where the loss increases least.

If a sensitive value is scarce, groups with a large loss are large because each has only one row of it. Exchanges
between near groups can't make them smaller; a row of the scarce value from a group with two of them can. Proposals are
computed for one fixed state, so all cores can compute them. They are carried out one by one, each after a check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.eligible import Slots, join, joined


class ValuedRows(NamedTuple):
    """n rows with t slots and s sensitive columns, and the requirement, which every group meets.

    slots, leaf int64[n, t]   as in ``slots``, one line per row
    value int64[n, s]         sensitive values, numbered from 0
    k int64, frequency int64[s], distinct int64[s]   the requirement
    """

    slots: Slots
    leaf: np.ndarray
    value: np.ndarray
    k: int
    frequency: np.ndarray
    distinct: np.ndarray


class GroupMembers(NamedTuple):
    """Groups and their rows.

    group int64[n]: label of each row
    start int64[g + 1], member int64[n]: the rows of g are member[start[g] : start[g + 1]]
    price float64[g]: loss of one row
    free bool[n]: rows that their group can spare (``spare``)
    """

    group: np.ndarray
    start: np.ndarray
    member: np.ndarray
    price: np.ndarray
    free: np.ndarray


class Chained(NamedTuple):
    """Groups as linked lists, with room for new ones.

    group int64[n]: label of each row;  head int64[g], following int64[n]: members of each as a linked list
    size int64[g], state int64[g, t], price float64[g]: number of rows, what is published, and the loss of one row
    """

    group: np.ndarray
    head: np.ndarray
    following: np.ndarray
    size: np.ndarray
    state: np.ndarray
    price: np.ndarray


class SeedNeighborhood(NamedTuple):
    """How the rows around a seed are searched.

    pull  float64: weight of a row's current loss in the choice of rows
    shift int64: start of the scan, so that ties aren't always resolved in favor of the same rows
    near  int64: number of rows near the seed that are considered, and as many again with other values of the first
          column
    """

    pull: float
    shift: int
    near: int


class Proposals(NamedTuple):
    """Proposed groups.

    rows int64[r, w]: those of each new group, the seed first
    many int64[r]: their number, 0 for none
    gain float64[r]: estimated gain, under the assumption that groups that lose rows publish the same as before
    """

    rows: np.ndarray
    many: np.ndarray
    gain: np.ndarray


@njit(**INNER)
def _meets(rows, r, table):
    """Whether rows[:r] together meet the requirement. O(r^2 s) at worst, usually O(r s l)."""
    value, frequency, distinct = table.value, table.frequency, table.distinct
    if r < table.k:
        return False
    # Groups are small, so pairwise comparison of values is faster than counting.
    for j in range(frequency.size):
        if frequency[j] <= 1 and distinct[j] <= 1:
            continue
        present = 0
        for i in range(r):
            w = value[rows[i], j]
            fresh = True
            for y in range(i):
                if value[rows[y], j] == w:
                    fresh = False
                    break
            if not fresh:
                continue
            present += 1
            if frequency[j] > 1:
                same = 0
                for y in range(i, r):
                    same += value[rows[y], j] == w
                if same * frequency[j] > r:
                    return False
            elif present >= distinct[j]:
                break
        if present < distinct[j]:
            return False
    return True


@njit(**INNER)
def _among(gone, m, x):
    """Whether x is one of gone[:m]."""
    y = 0
    while y < m and gone[y] != x:
        y += 1
    return y < m


@njit(**INNER)
def _without(gone, m, g, groups, rest):
    """Write the rows of group g that aren't among gone[:m] to rest; returns their number."""
    r = 0
    for i in range(groups.start[g], groups.start[g + 1]):
        x = groups.member[i]
        if not _among(gone, m, x):
            rest[r] = x
            r += 1
    return r


@njit(cache=True, nogil=True)
def spare(table, groups):
    """Find the rows that their group can spare, and mark them in groups.free. O(n * largest group) at worst."""
    value, k, frequency, distinct = table.value, table.k, table.frequency, table.distinct
    start, member, out = groups.start, groups.member, groups.free
    n, s = value.shape
    rest = np.empty(n, np.int64)
    one = np.empty(1, np.int64)
    top = 1
    for j in range(s):
        for x in range(n):
            top = max(top, value[x, j] + 1)
    held = np.zeros(top, np.int64)
    # If only the number of values is limited, counts decide; if shares are, each row is left out in turn.
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
                r = _without(one, 1, g, groups, rest)
                out[member[i]] = _meets(rest, r, table)
            continue
        for j in range(s):
            present = 0
            for i in range(a, b):
                w = value[member[i], j]
                present += held[w] == 0
                held[w] += 1
            for i in range(a, b):
                x = member[i]
                out[x] &= present > distinct[j] or held[value[x, j]] > 1
            for i in range(a, b):
                held[value[member[i], j]] = 0


@njit(**INNER)
def _insert(near, far, first, size, held, y, score):
    """Insert row y among the ``size`` nearest from index ``first`` on; returns their number."""
    z = first + (held if held < size else size - 1)
    while z > first and far[z - 1] > score:
        far[z], near[z] = far[z - 1], near[z - 1]
        z -= 1
    far[z], near[z] = score, y
    return min(held + 1, size)


@njit(**INNER)
def _around(table, groups, look, x, near, far):
    """Free rows near row x and, in the second half, those with other values; returns the number of each. O(n t)."""
    slots, leaf, value = table.slots, table.leaf, table.value
    n, size, places = leaf.shape[0], look.near, 2 * look.near
    first, second = 0, 0
    # Two sorted lists: the nearest rows, and the nearest with another value than the seed's.
    for e in range(n):
        y = e + look.shift
        if y >= n:
            y -= n
        if not groups.free[y] or y == x:
            continue
        base = look.pull * groups.price[groups.group[y]]
        bar = far[size - 1] if first == size else np.inf
        other = value.shape[1] > 0 and value[y, 0] != value[x, 0]
        if other:
            bar = max(bar, far[places - 1] if second == size else np.inf)
        if bar < np.inf and bar + base <= 0.0:
            continue
        score = joined(slots, leaf[x], leaf[y], bar + base) - base
        if score >= bar:
            continue
        if first < size or score < far[size - 1]:
            first = _insert(near, far, 0, size, first, y, score)
        if other and (second < size or score < far[places - 1]):
            second = _insert(near, far, size, size, second, y, score)
    return first, second


@njit(**INNER)
def _fits(table, chosen, r, y, need):
    """Whether the r chosen rows and row y can be completed to the required values, with ``need`` rows in total."""
    if r >= need:
        return True
    value, distinct = table.value, table.distinct
    for j in range(distinct.size):
        if distinct[j] <= 1:
            continue
        present, fresh = 0, True
        for a in range(r):
            new = True
            for b in range(a):
                new &= value[chosen[a], j] != value[chosen[b], j]
            present += new
            fresh &= value[chosen[a], j] != value[y, j]
        if not fresh and distinct[j] - present >= need - r:
            return False
    return True


@njit(cache=True, nogil=True)
def propose(table, groups, seeds, look, made):
    """For each seed, write the best new group found around it to made.

    seeds   int64[r]: rows, all free

    O(r (n t + w near t)).
    """
    slots, leaf, group, price = table.slots, table.leaf, groups.group, groups.price
    n, width = leaf.shape
    most = made.rows.shape[1]
    need = table.k
    for j in range(table.frequency.size):
        need = max(need, table.frequency[j], table.distinct[j])
    places = 2 * look.near
    near, far = np.empty(places, np.int64), np.empty(places)
    used = np.empty(places, np.bool_)
    state, rest, gone = np.empty(width, np.int64), np.empty(n, np.int64), np.empty(most, np.int64)
    # A group grows from its seed by near rows of other groups, and is recorded at the size with the largest gain.
    for q in range(seeds.size):
        x, chosen = seeds[q], made.rows[q]
        first, second = _around(table, groups, look, x, near, far)
        for z in range(places):
            used[z] = not (z < first or look.near <= z < look.near + second)
        chosen[0] = x
        r = 1
        old = price[group[x]]
        now = 0.0
        for t in range(width):
            state[t] = leaf[x, t]
        best_gain, best_many = 0.0, 0
        # The group takes the row with the least loss beyond its current loss, if its old group can spare it; the best
        # size on the way is kept.
        while r < most:
            best, least = -1, np.inf
            for z in range(places):
                if used[z]:
                    continue
                y = near[z]
                base = price[group[y]] * (look.pull if r < need else 1.0)
                if r < need:
                    score = joined(slots, state, leaf[y], least + base) - base
                else:
                    score = (r + 1) * joined(slots, state, leaf[y], (least + base + r * now) / (r + 1)) - r * now - base
                    if score >= 0.0:
                        continue
                if score < least and _fits(table, chosen, r, y, need):
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
                if group[chosen[a]] == group[y]:
                    gone[together] = chosen[a]
                    together += 1
            if together:
                gone[together] = y
                left = _without(gone, together + 1, group[y], groups, rest)
                if not _meets(rest, left, table):
                    continue
            chosen[r] = y
            r += 1
            old += price[group[y]]
            for t in range(width):
                state[t] = join(slots, t, state[t], leaf[y, t])
            now = joined(slots, state, state, np.inf)
            if r >= need and old - r * now > best_gain and _meets(chosen, r, table):
                best_gain, best_many = old - r * now, r
            if r >= need and old - r * now <= 0.0:
                break
        made.many[q] = best_many
        made.gain[q] = best_gain


@njit(cache=True, nogil=True)
def carry_out(table, groups, order, made):
    """Open the proposed groups one by one if that still lowers the loss; returns their number.

    groups   ``Chained``, with room for r more; updated: labels of new groups come after the existing ones
    order  int64[r]: proposals, in the order in which they are tried

    O(r * rows of the groups concerned * (t + w)).
    """
    slots, leaf, out, many = table.slots, table.leaf, made.rows, made.many
    group, head, following, size, state, price = groups
    n, width = leaf.shape
    labels = 0
    for x in range(n):
        labels = max(labels, group[x] + 1)
    rest, fresh, donor = np.empty(n, np.int64), np.empty(width, np.int64), np.empty(out.shape[1], np.int64)
    states = np.empty((out.shape[1], width), np.int64)
    prices = np.empty(out.shape[1])
    opened = 0
    # Earlier proposals may have changed the groups that give rows, so each proposal is evaluated again before it is
    # carried out.
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
            if _among(donor, donors, g):
                continue
            left = 0
            x = head[g]
            while x >= 0:
                if not _among(chosen, r, x):
                    rest[left] = x
                    left += 1
                x = following[x]
            if not _meets(rest, left, table):
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
                if not _among(chosen, r, x):
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


@njit(cache=True, nogil=True)
def cheapest(slots, leaf, rows, state, size, price, order, out):
    """For each row, the groups whose loss increases least if it joins.

    The groups of the previous row are the initial candidates.

    rows int64[r]; size int64[g]; order int64[g]: the nonempty groups by ascending price
    out  int64[r, c]: out: the c groups, best first, -1 beyond

    A row that joins loses at least the group's current loss per row, so the scan ends early. O(r g t) at worst.
    """
    c = out.shape[1]
    best = np.empty(c)
    for i in range(rows.size):
        own = leaf[rows[i]]
        alike = i > 0
        for t in range(own.size):
            alike = alike and own[t] == leaf[rows[i - 1], t]
        if alike:
            for z in range(c):
                out[i, z] = out[i - 1, z]
            continue
        held = 0
        guesses = c if i else 0
        # The groups of the previous row come first, because they give a low limit; then all groups by ascending price.
        for e in range(-guesses, order.size):
            g = out[i - 1, e + guesses] if e < 0 else order[e]
            if g < 0:
                continue
            bar = best[c - 1] if held == c else np.inf
            if e >= 0 and price[g] >= bar:
                break
            n = size[g]
            rise = (n + 1) * joined(slots, state[g], own, (bar + n * price[g]) / (n + 1)) - n * price[g]
            if rise >= bar:
                continue
            seen = False
            for z in range(held):
                seen |= out[i, z] == g
            if seen:
                continue
            z = held if held < c else c - 1
            held = min(held + 1, c)
            while z > 0 and best[z - 1] > rise:
                best[z], out[i, z] = best[z - 1], out[i, z - 1]
                z -= 1
            best[z], out[i, z] = rise, g
        for z in range(held, c):
            out[i, z] = -1


@njit(cache=True, nogil=True)
def place(slots, leaf, rows, candidates, group, state, size, price):
    """Insert rows, one by one, into the candidate where the loss increases least.

    The arrays group, state, size, and price are updated.

    Only for requirements that adding a row can't violate. O(r c t).
    """
    for i in range(rows.size):
        x = rows[i]
        own = leaf[x]
        best, least = -1, np.inf
        for z in range(candidates.shape[1]):
            g = candidates[i, z]
            if g < 0:
                break
            n = size[g]
            rise = (n + 1) * joined(slots, state[g], own, np.inf) - n * price[g]
            if rise < least:
                best, least = g, rise
        group[x] = best
        size[best] += 1
        for t in range(leaf.shape[1]):
            state[best, t] = join(slots, t, state[best, t], own[t])
        price[best] = joined(slots, state[best], state[best], np.inf)
