"""Lagrange multipliers and row prices of tables: moved along subgradients, and lowered until they prove a bound.

``docs/bounds.md`` has the programs. The kernels here move the multipliers of the class program in integers, compute by
how much row prices exceed what nearly tight classes allow, list classes of a lattice with their highest-priced cells,
and list the pairs and triples of types that a linear program could still use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN, LEAN_INNER, njit

FADE, SHARE = 0.7, 0.03
# after this many passes without a row, the multipliers of a class stay fixed; a hundredth of its trend remains
REST = 12
CALM = 0.02  # shorter steps repeat the same choices, which would bias the average


class Arcs(NamedTuple):
    """The pairs to which rows may be assigned.

    start int64[m + 1], pair int32[a]: rows of cell i may go to the pairs pair[start[i] : start[i + 1]], at least one
    count int64[m]      rows of each cell
    owner int64[p]      class of each pair (class, sensitive value), ascending
    first int64[v + 1]  the pairs of class c are first[c] .. first[c + 1] - 1, at least one
    cost int64[v]       loss of a row in the class, in integer units
    scale float64[v]    relative step size of the class's multipliers
    l int64, weight int64[p], top int64[v]  for a class with N rows, n of each value: the sum of z (l n - weight N) is
        at most top N times the largest z, for any z of at least 0
    most int64          upper limit of the multipliers
    """

    start: np.ndarray
    pair: np.ndarray
    count: np.ndarray
    owner: np.ndarray
    first: np.ndarray
    cost: np.ndarray
    scale: np.ndarray
    l: int
    weight: np.ndarray
    top: np.ndarray
    most: int


class MultiplierAscent(NamedTuple):
    """The state of an ascent of multipliers; all arrays are in and out.

    multiplier int64[p], best int64[p]  multipliers, at least 0, and those of the largest bound so far
    trend float64[p]    smoothed direction
    share float64[v]    smoothed rows of each class
    state float64[3]    largest bound so far, step length, passes since the last increase
    reduced int64[p]    reduced cost of a row of each pair
    held int64[h, p]    rows of each pair, separately for each part of the cells
    still int64[v]      passes since a class had rows: 0 at first
    moved bool[v]       whether a class's multipliers differ from those of ``best``
    """

    multiplier: np.ndarray
    best: np.ndarray
    trend: np.ndarray
    share: np.ndarray
    state: np.ndarray
    reduced: np.ndarray
    held: np.ndarray
    still: np.ndarray
    moved: np.ndarray


def start_ascent(multiplier: np.ndarray, share: np.ndarray, step: float, parts: int = 1) -> MultiplierAscent:
    """An ascent from multipliers int64[p] and shares float64[v], which aren't changed.

    parts  number of parts of the cells, which choose separately
    """
    p, v = multiplier.size, share.size
    empty = np.zeros(p, np.int64), np.zeros((parts, p), np.int64), np.zeros(v, np.int64), np.zeros(v, np.bool_)
    return MultiplierAscent(
        multiplier.copy(), multiplier.copy(), np.zeros(p), share.copy(), np.array([-np.inf, step, 0.0]), *empty
    )


@njit(**LEAN_INNER)
def _move(arcs, ascent, step, start, end):
    """Move the multipliers of the classes start .. end - 1 along their trend, and compute reduced costs of pairs.

    If no row chose a class for some passes, its trend is almost zero, and its multipliers stay fixed until a row does.
    """
    multiplier, trend, reduced, held = ascent.multiplier, ascent.trend, ascent.reduced, ascent.held
    # The reduced cost of a pair is the class's cost plus l times the pair's multiplier, minus what all rows of the
    # class receive.
    for c in range(start, end):
        if ascent.still[c] > REST:
            continue
        if step > 0.0:
            ascent.moved[c] = True
        total, high = np.int64(0), np.int64(0)
        for p in range(arcs.first[c], arcs.first[c + 1]):
            moved = np.rint(step * arcs.scale[c] * trend[p])
            multiplier[p] = np.int64(min(max(multiplier[p] + moved, 0.0), np.float64(arcs.most)))
            total += arcs.weight[p] * multiplier[p]
            high = max(high, multiplier[p])
        total += arcs.top[c] * high
        for p in range(arcs.first[c], arcs.first[c + 1]):
            reduced[p] = arcs.cost[c] + arcs.l * multiplier[p] - total
            for h in range(held.shape[0]):
                held[h, p] = 0


@njit(**LEAN_INNER)
def _choose(arcs, ascent, part, start, end):
    """Assign rows of the cells start .. end - 1 to the pair with the least reduced cost.

    Returns their total, an integer.
    """
    reduced, held = ascent.reduced, ascent.held
    paid = np.int64(0)
    for i in range(start, end):
        e = arcs.start[i]
        least = reduced[arcs.pair[e]]
        for f in range(e + 1, arcs.start[i + 1]):  # without branches, so that the processor can vectorize it
            least = min(least, reduced[arcs.pair[f]])
        while reduced[arcs.pair[e]] > least:
            e += 1
        at = arcs.pair[e]
        paid += arcs.count[i] * least
        held[part, at] += arcs.count[i]
        ascent.still[arcs.owner[at]] = -1  # the parts set the same value
    return paid


@njit(**LEAN_INNER)
def _follow(arcs, ascent, best, start, end):
    """Update trends and shares of the classes start .. end - 1 after their rows chose.

    Returns the squared length of the step.

    best  whether the multipliers proved the largest bound so far, and are stored
    """
    multiplier, trend, held, still = ascent.multiplier, ascent.trend, ascent.held, ascent.still
    length = 0.0
    # Store the best multipliers, sum what the parts of the cells chose, and smooth the resulting direction.
    for c in range(start, end):
        first, last = arcs.first[c], arcs.first[c + 1]
        if best and ascent.moved[c]:
            ascent.moved[c] = False
            for p in range(first, last):
                ascent.best[p] = multiplier[p]
        still[c] += 1
        rows = np.int64(0)
        if still[c] == 0:
            for p in range(first, last):
                for h in range(1, held.shape[0]):
                    held[0, p] += held[h, p]
                rows += held[0, p]
        if ascent.state[1] > CALM:
            ascent.share[c] += SHARE * (rows - ascent.share[c])
        if still[c] > REST:
            continue
        highest = -1
        if arcs.top[c] > 0:  # of equal multipliers, that of the value with the largest excess over its share
            highest = first
            for p in range(first + 1, last):
                over = arcs.l * (held[0, p] - held[0, highest]) - (arcs.weight[p] - arcs.weight[highest]) * rows
                if multiplier[p] > multiplier[highest] or (multiplier[p] == multiplier[highest] and over > 0):
                    highest = p
        for p in range(first, last):
            more = arcs.l * held[0, p] - (arcs.weight[p] + (arcs.top[c] if p == highest else 0)) * rows
            trend[p] = (1 - FADE) * more + FADE * trend[p]
            if multiplier[p] > 0 or trend[p] > 0:
                length += arcs.scale[c] * trend[p] * trend[p]
    return length


MOVE, CHOOSE, FOLLOW = 0, 1, 2  # what a part of a pass does


@njit(**LEAN)
def run_part(arcs, ascent, work, value, part, start, end):
    """One part of a pass: ``MOVE``, ``CHOOSE``, or ``FOLLOW`` for the classes or cells start .. end - 1.

    value  the step of ``MOVE``; of ``FOLLOW`` 1.0 if the multipliers proved the largest bound so far, else 0.0
    Returns the total of ``CHOOSE`` or the squared length of ``FOLLOW``.
    """
    if work == CHOOSE:
        return np.float64(_choose(arcs, ascent, part, start, end))
    if work == FOLLOW:
        return _follow(arcs, ascent, value > 0.0, start, end)
    _move(arcs, ascent, value, start, end)
    return 0.0


class AscentRule(NamedTuple):
    """How an ascent goes on: ``problems.programs.ascend`` has the rule.

    passes    number of passes
    patience  passes without increase before the step is multiplied by ``cut``; infinite: never
    shrink    factor of the step after every pass
    gap, least_gap  Polyak's target above the best bound, relative to it and at least
    nowhere   a direction of at most this squared length is zero
    """

    passes: int
    patience: float
    cut: float
    shrink: float
    gap: float
    least_gap: float
    nowhere: float


@njit(**LEAN)
def ascend_whole(arcs, ascent, rule):
    """The passes of ``problems.programs.ascend`` over all classes and cells as one part, in one call.

    On a small table, the calls of ``run_part`` from Python take several times as long as their work.
    """
    state, classes, cells = ascent.state, arcs.first.size - 1, arcs.start.size - 1
    _move(arcs, ascent, 0.0, 0, classes)  # computes the reduced costs
    for _ in range(rule.passes):
        found = np.float64(_choose(arcs, ascent, 0, 0, cells))
        risen = found > state[0]
        state[2] = 0.0 if risen else state[2] + 1.0
        if risen:
            state[0] = found
        elif state[2] >= rule.patience:
            state[1] *= rule.cut
            state[2] = 0.0
        length = _follow(arcs, ascent, risen, 0, classes)
        if length < rule.nowhere:
            break
        _move(arcs, ascent, state[1] * max(rule.gap * state[0], rule.least_gap) / length, 0, classes)
        state[1] *= rule.shrink


@njit(**INNER)
def _sort(member, begin, end, price):
    """Sort members by descending price; they are almost sorted from the previous pass."""
    for x in range(begin + 1, end):
        i = member[x]
        y = x
        while y > begin and price[member[y - 1]] < price[i]:
            member[y] = member[y - 1]
            y -= 1
        member[y] = i


class BoundedRows(NamedTuple):
    """The conditions on rows, many int64[m] of each cell: K of them in a class, with ``distinct`` values int64[m]."""

    many: np.ndarray
    value: np.ndarray
    distinct: int
    group: int


@njit(**INNER)
def take(member, begin, end, cost, asked, price, seen, taken):
    """The largest excess of prices over cost for K or more rows of a class with ``distinct`` values.

    These rows are added to ``taken`` if it has room. Members begin .. end - 1 are sorted by descending price. Rows with
    negative excess are taken only while rows or values are missing. seen: int64[distinct].
    """
    count, value, distinct, group = asked
    held, values, over = 0, 0, 0.0
    # All rows above the cost are taken; of the others only as many as K or the values require.
    for x in range(begin, end):
        i = member[x]
        above, y = price[i] - cost, 0
        if above <= 0.0 and held >= group and values >= distinct:
            break
        while y < values and seen[y] != value[i]:
            y += 1
        new = y == values and values < distinct
        if new:
            seen[values] = value[i]
            values += 1
        many = count[i]
        if above <= 0.0:  # no more than K requires in addition to the missing values
            many = min(many, max(group - held - (distinct - values), 1 if new else 0))
        if many <= 0:
            continue
        held += many
        over += many * above
        if taken.size:
            taken[i] += many
    return over if held >= group and values >= distinct else 0.0


@njit(cache=True, nogil=True)
def taken(classes, asked, price, first, last, rows):
    """The sum over the classes first .. last - 1 of the largest excess of K or more rows over the cost.

    classes  ``Classes``; their members are sorted here
    asked    ``BoundedRows``;  price: float64[m];  rows: int64[m], out, the rows that attain it
    """
    start, member, cost = classes.start, classes.member, classes.cost
    none, seen = np.empty(0, np.int64), np.empty(asked.distinct, np.int64)
    rows[:] = 0
    total = 0.0
    for t in range(first, last):
        highest = cost[t]
        for x in range(start[t], start[t + 1]):
            highest = max(highest, price[member[x]])
        if highest == cost[t]:  # most classes, which needn't be sorted
            continue
        _sort(member, start[t], start[t + 1], price)
        over = take(member, start[t], start[t + 1], cost[t], asked, price, seen, none)
        if over > 0.0:
            total += take(member, start[t], start[t + 1], cost[t], asked, price, seen, rows)
    return total


class Tight(NamedTuple):
    """Output arrays for classes.

    used int64[1]: their number
    name int64[t, 2]: the node and the first cell of each
    cost float64[t]: the loss of a row
    member: the highest-priced cells of a class, with ``rows`` rows or all, are member[start[t] : start[t + 1]]
    """

    used: np.ndarray
    name: np.ndarray
    start: np.ndarray
    cost: np.ndarray
    member: np.ndarray
    rows: int

    @classmethod
    def empty(cls, members: int, rows: int) -> Tight:
        """Arrays for this many members."""
        many = members // 16
        return cls(np.zeros(1, np.int64), np.empty((many, 2), np.int64), np.zeros(many + 1, np.int64), np.empty(many),
                   np.empty(members, np.int32), rows)  # fmt: skip


class Classes(NamedTuple):
    """Classes sorted by name, each once; fields as in ``Tight``."""

    name: np.ndarray
    start: np.ndarray
    cost: np.ndarray
    member: np.ndarray

    @classmethod
    def of(cls, found: Sequence[Tight]) -> Classes:
        """The classes that a sweep found."""
        used = [int(t.used[0]) for t in found]
        parts = [
            (t.name[:n], np.diff(t.start[: n + 1]), t.cost[:n], t.member[: t.start[n]])
            for t, n in zip(found, used, strict=True)
        ]
        name, size, cost, member = (np.concatenate([part[y] for part in parts]) for y in range(4))
        return _once(name, size, cost, member)

    def joined(self, other: Classes) -> Classes:
        """The union of both; of a class in both, this one's members."""
        return _once(
            np.concatenate([self.name, other.name]),
            np.concatenate([np.diff(self.start), np.diff(other.start)]),
            np.concatenate([self.cost, other.cost]),
            np.concatenate([self.member, other.member]),
        )


def _once(name: np.ndarray, size: np.ndarray, cost: np.ndarray, member: np.ndarray) -> Classes:
    """The first class of each name."""
    kept = np.unique(name, axis=0, return_index=True)[1]
    at, many = (np.cumsum(size) - size)[kept], size[kept]
    start = np.append(0, np.cumsum(many)).astype(np.int64)
    return Classes(name[kept], start, cost[kept], member[np.repeat(at - start[:-1], many) + np.arange(start[-1])])


class Types(NamedTuple):
    """Types of rows, and their losses when published together.

    code   int32[t, d]: the types
    count  int64[t]: rows of each; a group may contain a type more than once if it has the rows
    pair   int64[...]: loss of two codes of column j published together: pair[start[j] + a * size[j] + b]
    start  int64[d], size int64[d], kind int64[d]: 2: a set, where three different values lose twice as much as two
    """

    code: np.ndarray
    count: np.ndarray
    pair: np.ndarray
    start: np.ndarray
    size: np.ndarray
    kind: np.ndarray


class ColumnPrices(NamedTuple):
    """The prices of the linear program.

    fine   int64: losses are multiplied by this before prices are subtracted
    row    int64[t]: price of a row of each type
    start  int64[t + 1], of int64[...]: the sets that contain each type
    member uint8[s, t]: sets of types; a column with an odd number of rows in a set earns its bonus
    bonus  int64[s]: at least 0
    """

    fine: int
    row: np.ndarray
    start: np.ndarray
    of: np.ndarray
    member: np.ndarray
    bonus: np.ndarray


@njit(**INNER)
def _two(types, a, b):
    code, pair, start, size = types.code, types.pair, types.start, types.size
    total = np.int64(0)
    for j in range(code.shape[1]):
        total += pair[start[j] + np.int64(code[a, j]) * size[j] + code[b, j]]
    return total


@njit(**INNER)
def _three(types, a, b, c):
    code, pair, start, size, kind = types.code, types.pair, types.start, types.size, types.kind
    total = np.int64(0)
    for j in range(code.shape[1]):
        x, y, z = np.int64(code[a, j]), np.int64(code[b, j]), np.int64(code[c, j])
        p = pair[start[j] + x * size[j] + y]
        q = pair[start[j] + x * size[j] + z]
        r = pair[start[j] + y * size[j] + z]
        if kind[j] == 2 and x != y and y != z and x != z:
            total += 2 * p
        else:
            total += max(p, q, r)
    return total


@njit(cache=True, nogil=True)
def nearest(types, index, distance):
    """The m nearest other types of every type, nearest first, ties by number.

    index int32[t, m], distance int64[t, m]: out; -1 if there are fewer others. O(t^2 d).
    """
    t, m = index.shape
    index[:] = -1
    # A sorted list for each type; most others are too far for it.
    for a in range(t):
        held = 0
        for b in range(t):
            if a == b:
                continue
            d = _two(types, a, b)
            if held == m and d >= distance[a, m - 1]:
                continue
            x = held if held < m else m - 1
            while x > 0 and distance[a, x - 1] > d:
                distance[a, x] = distance[a, x - 1]
                index[a, x] = index[a, x - 1]
                x -= 1
            distance[a, x] = d
            index[a, x] = b
            if held < m:
                held += 1


@njit(**INNER)
def _odd(prices, a, b, c):
    """The sum of the bonuses of the sets that contain an odd number of a, b, c (c = -1: of a, b)."""
    cut_start, cut_of, member, bonus = prices.start, prices.of, prices.member, prices.bonus
    total = np.int64(0)
    for x in range(cut_start[a], cut_start[a + 1]):
        s = cut_of[x]
        held = 1 + member[s, b] + (member[s, c] if c >= 0 else 0)
        if held % 2 == 1:
            total += bonus[s]
    for x in range(cut_start[b], cut_start[b + 1]):
        s = cut_of[x]
        if member[s, a] == 0 and (c < 0 or member[s, c] == 0):
            total += bonus[s]
    if c >= 0:
        for x in range(cut_start[c], cut_start[c + 1]):
            s = cut_of[x]
            if member[s, a] == 0 and member[s, b] == 0:
                total += bonus[s]
    return total


@njit(cache=True, nogil=True)
def price(types, prices, under, least, out, least_reduced):
    """Pairs and triples with reduced cost below a threshold, in exact integer arithmetic.

    under     int64: report columns with  fine * cost - prices - bonuses < under
    least     int64: 0: report all of them. Otherwise at most this many pairs and triples for every lowest type
    out       int32[most, 3]: types in ascending order, -1 as third of a pair
    least_reduced  int64[2]: out: least reduced cost of a pair, of a triple, if below `under`
    returns   number of columns, -1 if out is full

    The list is complete, because a triple loses at least what each of its pairs loses, and because a row earns at most
    its price and all its sets' bonuses, say p. With P the largest p, a triple on a < b needs 3 fine loss(a, b) - p(a) -
    p(b) - P < under. O(t^2 d) plus the triples examined.
    """
    count, fine, price_of = types.count, prices.fine, prices.row
    t, most = count.size, out.shape[0]
    reach = price_of.copy()
    for a in range(t):
        for x in range(prices.start[a], prices.start[a + 1]):
            reach[a] += prices.bonus[prices.of[x]]
    found = 0
    least_reduced[0] = under
    least_reduced[1] = under
    top = reach.max()
    near = np.empty(t, np.int64)
    far = np.empty(t, np.int64)
    keep = least if least > 0 else 1
    best = np.empty((2, keep), np.int64)
    who = np.empty((2, keep, 2), np.int64)
    # First the pairs of a with a later type, which give the candidates near enough for a triple. Then two of these,
    # with bounds in order of increasing cost before the exact loss.
    for a in range(t):
        held = np.zeros(2, np.int64)
        n = 0
        for b in range(a, t):
            if a == b and count[a] < 2:
                continue
            d = fine * _two(types, a, b)
            both = reach[a] + reach[b]
            if 2 * d - both < under:
                r = 2 * d - price_of[a] - price_of[b] - _odd(prices, a, b, -1)
                if r < under:
                    if r < least_reduced[0]:
                        least_reduced[0] = r
                    if least == 0:
                        if found == most:
                            return -1
                        out[found, 0], out[found, 1], out[found, 2] = a, b, -1
                        found += 1
                    else:
                        _insert(best, who, held, 0, keep, r, b, -1)
            if 3 * d - both - top < under:
                near[n] = b
                far[n] = d
                n += 1
        for x in range(n):
            b = near[x]
            for y in range(x, n):
                c = near[y]
                s = reach[a] + reach[b] + reach[c]
                low = max(far[x], far[y])
                if 3 * low - s >= under:
                    continue
                if a == b or b == c:
                    need = 3 if a == b and b == c else 2
                    if count[b] < need:
                        continue
                if least > 0 and held[1] == keep and 3 * low - s >= best[1, keep - 1]:
                    continue
                low = max(low, fine * _two(types, b, c))
                if 3 * low - s >= under:
                    continue
                full = 3 * fine * _three(types, a, b, c)
                if full - s >= under:
                    continue
                r = full - price_of[a] - price_of[b] - price_of[c]
                r -= _odd(prices, a, b, c)
                if r < under:
                    if r < least_reduced[1]:
                        least_reduced[1] = r
                    if least == 0:
                        if found == most:
                            return -1
                        out[found, 0], out[found, 1], out[found, 2] = a, b, c
                        found += 1
                    else:
                        _insert(best, who, held, 1, keep, r, b, c)
        if least > 0:
            for kind_of in range(2):
                for x in range(held[kind_of]):
                    if found == most:
                        return -1
                    out[found, 0], out[found, 1], out[found, 2] = a, who[kind_of, x, 0], who[kind_of, x, 1]
                    found += 1
    return found


@njit(**INNER)
def _insert(best, who, held, which, keep, r, b, c):
    n = held[which]
    if n == keep and r >= best[which, keep - 1]:
        return
    x = n if n < keep else keep - 1
    while x > 0 and best[which, x - 1] > r:
        best[which, x] = best[which, x - 1]
        who[which, x] = who[which, x - 1]
        x -= 1
    best[which, x] = r
    who[which, x, 0] = b
    who[which, x, 1] = c
    if n < keep:
        held[which] = n + 1
