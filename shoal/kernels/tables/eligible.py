"""Whether a group meets privacy models, what it publishes, and its loss: compiled functions for every model.

Size, shares of 1/l, and numbers of values are checked in the calling loops; ``group_gap`` checks the other models.

Rules, for s sensitive columns:
kind   int64[r]      BAND, ENTROPY, RECURSIVE, EQUAL, ORDERED, TUPLES, CHARGE, or TREE
                     PERSONS + one of them: for different persons by value instead of rows
column int64[r]      the column; -1 for TUPLES, which concern all columns
person int64[r]      the column that identifies persons if they are counted, else -1
number float64[r], whole int64[r]   parameters
at     int64[r]      where its table begins in ``table``: per value the share in the whole table (EQUAL), the cumulative
                     share (ORDERED), the least and the largest share (BAND), or its charge (CHARGE); TREE: number of
                     classes, the class of every value level by level, the share of every class
size   int64[s]      values of each column

Without rules, the kernels get None, so numba doesn't compile the code for rules.

What a group publishes is stored in *slots*, one int64 per group and slot. For a recoding, the kernels only need the
join of two slot values and the loss of a value per row.

kind 0  a node of a tree, joined by a table of lowest common ancestors
kind 1  the same for large trees: nodes are numbered level by level, so the smaller number goes up until both are equal
kind 2  a set, one bit per value (columns of more than 60 values take several slots)
kind 3  a range of codes, low | high << 32
kind 4  a set of areas, one bit per area; kind 5: its further words; their loss is computed together
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.connected_sets import AreaSets, areas_cost

BAND, ENTROPY, RECURSIVE, EQUAL, ORDERED, TUPLES, CHARGE, TREE = 0, 1, 2, 3, 4, 5, 6, 7
PERSONS = 8
OF_PERSONS = 2  # ``whole`` of a PERSONS + BAND whose shares are those of persons instead of their values
CLOSE = 1e-9
FEW_ROWS = 32  # up to this many rows of one person, linear search finds a value faster than sorting


class Rules(NamedTuple):
    """Privacy models as arrays; see the module's docstring."""

    kind: np.ndarray
    column: np.ndarray
    person: np.ndarray
    number: np.ndarray
    whole: np.ndarray
    at: np.ndarray
    table: np.ndarray
    size: np.ndarray


class GroupRequirement(NamedTuple):
    """The conditions on every group: int64 k, int64[s] frequency and distinct of s sensitive columns, other rules."""

    k: int
    frequency: np.ndarray
    distinct: np.ndarray
    rules: Rules | None


class GroupTriples(NamedTuple):
    """Groups as triples, int64[..] each: (group, cell, number of rows of the cell in the group)."""

    cell: np.ndarray
    group: np.ndarray
    count: np.ndarray

    @classmethod
    def empty(cls, size: int) -> GroupTriples:
        """Arrays of this size."""
        return cls(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64))


@njit(**LEAN_INNER)
def widest(rules):
    """The number of values of the column with most values, at least 1."""
    if rules is None:
        return np.int64(1)
    most = np.int64(1)
    for j in range(rules.size.size):
        most = max(most, rules.size[j])
    return most


@njit(**INNER)
def _column_gap(rules, i, held, seen, present, n):
    """How far rule i is from being met, 0 if it is met.

    held[seen[:present]]  the rows of each present value, n in total

    O(present); for ORDERED and for bands with floors O(values), for RECURSIVE O(present l), for TREE O(present levels)
    plus the clearing of a number for each class.
    """
    kind, number, at = rules.kind[i] % PERSONS, rules.number[i], rules.at[i]
    gap = 0.0
    if kind == BAND:
        strict = rules.whole[i] == 1
        if not strict:
            for y in range(present):
                gap += max(0.0, held[seen[y]] / n - rules.table[at + 2 * seen[y] + 1] - CLOSE)
            return gap
        for v in range(rules.size[rules.column[i]]):
            low, high = rules.table[at + 2 * v], rules.table[at + 2 * v + 1]
            if high == 0.0:
                continue
            # |log(p / q)| < number, q the middle of the limits
            if held[v] == 0:
                gap += low
            else:
                middle = np.sqrt(low * high)
                if abs(np.log(held[v] / n / middle)) >= number - CLOSE:
                    gap += max(low - held[v] / n, held[v] / n - high, CLOSE)
        return gap
    if kind == ENTROPY:
        total = 0.0
        for y in range(present):
            c = held[seen[y]]
            total += c * np.log(c)
        return max(0.0, number - CLOSE - max(np.log(n) - total / n, 0.0))
    if kind == RECURSIVE:
        l = rules.whole[i]
        top = np.zeros(l, np.int64)  # the l - 1 largest, and the largest for l = 1
        for y in range(present):
            c = held[seen[y]]
            z = l - 1
            if c <= top[z]:
                continue
            while z > 0 and top[z - 1] < c:
                top[z] = top[z - 1]
                z -= 1
            top[z] = c
        tail = n
        for z in range(l - 1):
            tail -= top[z]
        if tail > 0 and top[0] / tail < number - CLOSE:
            return 0.0
        return max(top[0] - number * tail, CLOSE) / n
    if kind == EQUAL:
        common = 0.0
        for y in range(present):
            common += min(held[seen[y]] / n, rules.table[at + seen[y]])
        return max(0.0, 1.0 - common - number - CLOSE)
    if kind == TREE:
        nodes, values, levels = np.int64(rules.table[at]), rules.size[rules.column[i]], rules.whole[i]
        within = np.zeros(nodes, np.int64)
        apart = np.float64(levels)
        for z in range(levels):
            for y in range(present):
                within[np.int64(rules.table[at + 1 + z * values + seen[y]])] += held[seen[y]]
        for c in range(nodes):
            if within[c] > 0:
                apart -= min(within[c] / n, rules.table[at + 1 + levels * values + c])
        return max(0.0, apart / levels - number - CLOSE)
    if kind == CHARGE:
        charged = 0.0
        for y in range(present):
            charged += rules.table[at + seen[y]] * (1 if rules.whole[i] == 1 else held[seen[y]])
        most = max(1.0, number)
        return max(0.0, number - charged - CLOSE * most) / most
    run, total, before = np.int64(0), 0.0, 0.0
    for v in range(rules.size[rules.column[i]]):
        upto = rules.table[at + v]
        if upto > before:  # otherwise no row of the table has this value
            run += held[v]
            total += abs(run / n - upto)
        before = upto
    return max(0.0, total / rules.whole[i] - number - CLOSE)


@njit(**LEAN_INNER)
def _held(many, i):
    """The rows of the i-th of some cells; one if the items are rows."""
    return 1 if many is None else many[i]


@njit(**INNER)
def _tuples_hold(values, who, many, size, l):
    """Whether every row of who is in a set of l rows that differ pairwise in every column.

    Exponential in l at worst.
    """
    s = values.shape[1]
    chosen = np.empty(l, np.int64)
    # Depth first from row i: each depth takes the next row that differs from all chosen ones in every column.
    for i in range(size):
        if _held(many, i) == 0:
            continue
        depth, at = 1, 0
        chosen[0] = i
        last = np.empty(l + 1, np.int64)
        while depth < l:
            found = -1
            while at < size:
                fits = _held(many, at) > 0
                for d in range(depth):
                    if not fits:
                        break
                    for j in range(s):
                        if values[who[at], j] == values[who[chosen[d]], j]:
                            fits = False
                            break
                if fits:
                    found = at
                    break
                at += 1
            if found >= 0:
                chosen[depth] = found
                last[depth] = found
                depth += 1
                at = found + 1
            else:
                depth -= 1
                if depth == 0:
                    return False
                at = last[depth] + 1
        # l rows were found
    return True


@njit(**LEAN_INNER)
def names_persons(rules, j):
    """Whether column j is one by which a rule counts persons.

    A group that excludes one person then excludes most others too.
    """
    if rules is None:
        return False
    found = False
    for i in range(rules.person.size):
        found |= rules.person[i] == j
    return found


@njit(**INNER)
def _by_person(values, j, p, who, many, size, held, seen):
    """Persons by value of column j, counted in held[seen[:present]], if the rows are sorted by person.

    Returns (present, pairs of a person and a value, persons). present is -1, and held unchanged, if the rows aren't
    sorted or if a person has more than ``FEW_ROWS`` of them, because sorting is then faster.
    """
    present, total, persons = 0, np.int64(0), np.int64(0)
    begin, last = 0, np.int64(-1)
    # Each row's value counts once for its person, whose rows are consecutive from ``begin`` on.
    for y in range(size):
        if _held(many, y) == 0:
            continue
        here = np.int64(values[who[y], p])
        if here < last or (here == last and y - begin > FEW_ROWS):
            for z in range(present):
                held[seen[z]] = 0
            return -1, total, persons
        if here > last:
            begin, last = y, here
            persons += 1
        v = values[who[y], j]
        again = False
        for z in range(begin, y):
            again |= values[who[z], j] == v and _held(many, z) > 0
        if again:
            continue
        if held[v] == 0:
            seen[present] = v
            present += 1
        held[v] += 1
        total += 1
    return present, total, persons


@njit(**INNER)
def stable_argsort(keys):
    """Indexes int64[n] that sort keys float64[n] stably: a merge sort, O(n log n).

    Each of numba's own sorts takes a second to compile, again for each type of the keys.
    """
    n, width = keys.size, 1
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    while width < n:  # runs of this width are sorted, and are merged two by two
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            a, b = begin, middle
            for i in range(begin, end):
                if b == end or (a < middle and keys[order[a]] <= keys[order[b]]):
                    merged[i] = order[a]
                    a += 1
                else:
                    merged[i] = order[b]
                    b += 1
        order, merged = merged, order
        width *= 2
    return order


@njit(**INNER)
def reorder(cells, losses, order):
    """Reorder the first n cells and their losses in place, by indices int64[n]."""
    n = order.size
    moved, lost = np.empty(n, np.int64), np.empty(n)
    for i in range(n):
        moved[i], lost[i] = cells[order[i]], losses[order[i]]
    for i in range(n):
        cells[i], losses[i] = moved[i], lost[i]


@njit(**INNER)
def _persons_gap(rules, i, values, who, many, size, held, seen):
    """How far rule i, which counts different persons by value, is from being met.

    O(size) if the rows are sorted by person and a person has few; else O(size log size).
    """
    j, p = rules.column[i], rules.person[i]
    people = rules.size[p]
    present, total, persons = _by_person(values, j, p, who, many, size, held, seen)
    if present >= 0:
        of_persons = rules.kind[i] == PERSONS + BAND and rules.whole[i] == OF_PERSONS
        gap = _column_gap(rules, i, held, seen, present, persons if of_persons else total)
        for y in range(present):
            held[seen[y]] = 0
        return gap
    pair, person = np.empty(size, np.int64), np.empty(size, np.int64)
    n = 0
    for y in range(size):
        if _held(many, y) > 0:
            person[n] = values[who[y], p]
            pair[n] = values[who[y], j] * people + person[n]
            n += 1
    pair = np.sort(pair[:n])
    present, total = 0, np.int64(0)
    for y in range(n):
        if y > 0 and pair[y] == pair[y - 1]:
            continue
        v = pair[y] // people
        if held[v] == 0:
            seen[present] = v
            present += 1
        held[v] += 1
        total += 1
    if rules.kind[i] == PERSONS + BAND and rules.whole[i] == OF_PERSONS:
        person = np.sort(person[:n])
        total = np.int64(1)
        for y in range(1, n):
            total += person[y] != person[y - 1]
    gap = _column_gap(rules, i, held, seen, present, total)
    for y in range(present):
        held[seen[y]] = 0
    return gap


@njit(**LEAN_INNER)
def group_gap(rules, values, who, many, size, held, seen, enough):
    """How far a group is from meeting all rules, 0 if it meets them; above ``enough`` no further rule is checked.

    values int64[x, s]: sensitive values of rows or cells; who int64[>= size]: some of them, many int64[>= size]: number
    of each, None if they are rows; held int64[widest column]: all 0 before and after, seen int64[widest column]
    O(size s) plus the time of the rules.
    """
    if rules is None:
        return 0.0
    gap = 0.0
    n = np.int64(size)
    if many is not None:
        n = np.int64(0)
        for i in range(size):
            n += many[i]
    if n == 0:
        return 0.0
    # The rows of each value of a column are counted once, for all rules of the column.
    for j in range(rules.size.size):
        present = -1
        for i in range(rules.kind.size):
            if rules.column[i] != j or rules.kind[i] >= PERSONS:
                continue
            if present < 0:
                present = 0
                for y in range(size):
                    more = _held(many, y)
                    if more > 0:
                        v = values[who[y], j]
                        if held[v] == 0:
                            seen[present] = v
                            present += 1
                        held[v] += more
            if gap <= enough:
                gap += _column_gap(rules, i, held, seen, present, n)
        for y in range(present):
            held[seen[y]] = 0
    for i in range(rules.kind.size):
        if gap > enough:
            break
        if rules.kind[i] == TUPLES and not _tuples_hold(values, who, many, size, rules.whole[i]):
            gap += 1.0
        if rules.kind[i] >= PERSONS:
            gap += _persons_gap(rules, i, values, who, many, size, held, seen)
    return gap


@njit(cache=True, nogil=True)
def good(rules, values, who, many, start):
    """bool[g]: which groups meet all rules; rows who[start[g] : start[g + 1]] with many of each. O(rows s)."""
    most = widest(rules)
    held, seen = np.zeros(most, np.int64), np.empty(most, np.int64)
    out = np.empty(start.size - 1, np.bool_)
    for g in range(out.size):
        a, b = start[g], start[g + 1]
        out[g] = group_gap(rules, values, who[a:b], many[a:b], b - a, held, seen, 0.0) <= 0.0
    return out


LOW = np.int64(0xFFFFFFFF)


class Slots(NamedTuple):
    """The slots of a recoding: how two values of a slot are joined, and what a value loses per row.

    kind   int64[t]
    base   int64[t]: offset in parent int32[..] and in loss float64[..] (ranges: position of each code)
    table  int64[t]: offset in ancestor int16[..] and in pair float64[..] (loss of that ancestor); of kind 1: 1 if the
           tree has only a root, and leaves without loss
    width  int64[t]: nodes of the tree
    unit   float64[t]: factor of sets and ranges
    areas  of kind 4: base in it, table words of a set, width areas, unit of weight; None if there are none
    """

    kind: np.ndarray
    base: np.ndarray
    parent: np.ndarray
    loss: np.ndarray
    table: np.ndarray
    width: np.ndarray
    ancestor: np.ndarray
    pair: np.ndarray
    unit: np.ndarray
    areas: AreaSets | None


@njit(**LEAN_INNER)
def join(slots, t, a, b):
    """The least value that covers both."""
    if a == b:
        return a
    kind = slots.kind[t]
    if kind == 0:
        return np.int64(slots.ancestor[slots.table[t] + a * slots.width[t] + b])
    if kind == 1:
        if slots.table[t] > 0:
            return slots.width[t] - 1
        p = slots.base[t]
        while a != b:
            if a < b:
                a = np.int64(slots.parent[p + a])
            else:
                b = np.int64(slots.parent[p + b])
        return a
    if kind == 2 or kind > 3:
        return a | b
    return min(a & LOW, b & LOW) | (max(a >> 32, b >> 32) << 32)


@njit(**LEAN_INNER)
def cost(slots, t, a):
    """The loss per row of publishing value a in slot t; 0 for areas."""
    kind = slots.kind[t]
    if kind > 3:
        return 0.0
    if kind < 2:
        if kind == 1 and slots.table[t] > 0 and a < slots.width[t] - 1:
            return 0.0
        return slots.loss[slots.base[t] + a]
    if kind == 2:
        a = a - ((a >> 1) & 0x5555555555555555)  # population count, in parallel
        a = (a & 0x3333333333333333) + ((a >> 2) & 0x3333333333333333)
        a = (a + (a >> 4)) & 0x0F0F0F0F0F0F0F0F
        return np.float64(((a * 0x0101010101010101) >> 56) & 127) * slots.unit[t]
    return (slots.loss[slots.base[t] + (a >> 32)] - slots.loss[slots.base[t] + (a & LOW)]) * slots.unit[t]


@njit(**LEAN_INNER)
def joined(slots, a, b, limit):
    """The loss per row of the join of two rows of slots; may stop early at any value above limit."""
    total = 0.0
    for t in range(a.size):
        if slots.kind[t] == 0:
            total += slots.pair[slots.table[t] + a[t] * slots.width[t] + b[t]]
        else:
            total += cost(slots, t, join(slots, t, a[t], b[t]))
        if total > limit:
            return total
    return total + areas_cost(slots.areas, slots, a, b, limit - total)


@njit(cache=True, nogil=True)
def prices(slots, state):
    """float64[g]: the loss per row of publishing each line of slots. O(g t)."""
    out = np.empty(state.shape[0])
    for g in range(out.size):
        out[g] = joined(slots, state[g], state[g], np.inf)
    return out
