"""Exact searches over groups of rows: a dynamic program, halving, lists of groups, and greedy covers.

In the dynamic program, a state is the number of rows left of each kind. It has two encodings, both linear in these
numbers: a number in mixed radix (kind 0 most significant), and a packed word with a guard bit above every field, in
which "group <= state" is one subtraction.

``halve`` gives the least loss under k-anonymity by halves: every part of about half of the rows, and the rest, each
solved recursively (Blocki, Williams 2010, Theorem 1.3). Rows are bits of an int64, so there are at most 62.

``few_groups`` lists the cheap groups of each published row, ``least_groups`` finds the cheapest, and ``cover`` covers
all rows greedily. ``covers`` has the exact covers.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.eligible import group_gap, widest
from shoal.kernels.tables.multipliers import Types


class GroupLimits(NamedTuple):
    """The conditions of a group.

    value  int64[m, s], frequency int64[s], distinct int64[s]   sensitive values, numbered from 0, and their conditions
    least, k, most  int64   least size of an eligible group; k; largest size that is listed
    once   bool          leave out groups in which a value of sensitive column 0 occurs twice
    """

    value: np.ndarray
    frequency: np.ndarray
    distinct: np.ndarray
    least: int
    k: int
    most: int
    once: bool


class CodePlaces(NamedTuple):
    """The position of each kind in the packed word and in the number of a state, int64[m] each."""

    shift: np.ndarray
    radix: np.ndarray


class GroupsFound(NamedTuple):
    """Groups by their first kind.

    word, number, cost   int64[keep]   the group in both encodings, and the loss of all its rows
    first  int64[m + 1]  the first group of each first kind
    floor  int64[m]      least loss of a row of each kind in any of the groups
    """

    word: np.ndarray
    number: np.ndarray
    cost: np.ndarray
    first: np.ndarray
    floor: np.ndarray


@njit(**INNER)
def _meets(asked, f, g, total, held):
    """Whether a group of g rows of each kind, none before f, meets the conditions on size and sensitive columns."""
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
    """The loss of a row of a group with g rows of each kind; f is the first kind."""
    code, pair, start, size, kind = types.code, types.pair, types.start, types.size, types.kind
    loss = np.int64(0)
    # Depending on the column: the most expensive pair with the first kind, the ends of the range, or the number of
    # different codes.
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
    """Write all eligible groups of at most ``asked.most`` rows, as vectors of rows of each kind, to ``found``.

    rules    the other models, or None
    returns  number of groups, -1 if ``found`` is too small. O(vectors x m x d).
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
    # The groups of each first kind f.
    for f in range(m):
        found.first[f] = done
        g[:] = 0
        g[f] = 1
        total = np.int64(1)
        # Vectors in lexicographic order: the last kind that can have one row more gets it, and later kinds get none.
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


class States(NamedTuple):
    """The rows left, as a word: count int64[m] of each kind, shift int64[m] their fields, guard int64 guard bits."""

    count: np.ndarray
    shift: np.ndarray
    guard: int


@njit(cache=True, nogil=True)
def least_cost(states, found, spared, upper, value, left, book, looks):
    """The least cost of groups that reduce the whole table to each state, each with the first row left at its time.

    states               ``States``
    found                the groups, those of one first kind by rising cost - spared
    spared int64[groups], upper int64   floor of each group's rows; limit of the cost
    value  int64[states]   out: -1 for states not reached within the limit; value[0] is the optimum
    left   int64[m], book int64[3]   where the last slice ended: rows left, then (state, packed, rest); state -1: begin
    looks  int64         groups examined in a slice, about
    returns  whether value is finished

    The groups of any partition can be ordered so that each contains the first row left. O(states reached x groups).
    """
    word, number, cost, first, floor = found
    count, shift, guard = states
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
    # States by falling number, so that the value of a state is final before its groups are tried. The rows left, the
    # packed word, and the floor of the rest are updated from state to state.
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


class PatternRows(NamedTuple):
    """The rows that fit each published row: those at order[start[q]] to order[start[q + 1]], cheapest first.

    start int64[q + 1], order int64[n]
    rows, value int64[n], cost float64[n]  for each place: number of rows, sensitive value, and cost of a row
    """

    start: np.ndarray
    order: np.ndarray
    rows: np.ndarray
    value: np.ndarray
    cost: np.ndarray


class GroupSorts(NamedTuple):
    """Conditions on each sort of groups, int64[g]: at least ``rows`` and ``values``, at most ``cap`` rows a value."""

    cap: np.ndarray
    rows: np.ndarray
    values: np.ndarray


@njit(**LEAN_INNER)
def _gathered(fits, asked, q, sort, held, taken):
    """Take the cheapest group of one published row and sort; its cost and number of rows, -1 if there is none.

    First one row of each of the cheapest values, then the cheapest others, up to the least number of rows, and all with
    a negative cost.
    """
    start, order, rows, value, cost = fits
    n, total = 0, 0.0
    for v in range(held.size):
        held[v] = 0
    for x in range(start[q], start[q + 1]):
        y = order[x]
        taken[y] = 0
        if n < asked.values[sort] and held[value[y]] == 0:
            taken[y], held[value[y]] = 1, 1
            n, total = n + 1, total + cost[y]
    if n < asked.values[sort]:
        return 0.0, -1
    for x in range(start[q], start[q + 1]):
        y = order[x]
        more = min(rows[y] - taken[y], asked.cap[sort] - held[value[y]])
        if cost[y] >= 0.0:
            more = min(more, asked.rows[sort] - n)
        if more > 0:
            taken[y] += more
            held[value[y]] += more
            n, total = n + more, total + more * cost[y]
    return total, n if n >= asked.rows[sort] else -1


@njit(cache=True, nogil=True)
def least_groups(fits, asked, use, total, sort, taken):
    """The cheapest group of every published row.

    use    float64[g, q]  cost of a group of each sort in addition to its rows
    total  float64[q]     out: its cost; infinite if no group meets the conditions
    sort   int64[q]       out: its sort, or -1
    taken  int64[n]       out: its rows of each place
    O(g n).
    """
    most = 0
    for y in range(fits.value.size):
        most = max(most, fits.value[y] + 1)
    held = np.empty(most, np.int64)
    for q in range(total.size):
        total[q], sort[q], last = np.inf, -1, -1
        for g in range(asked.cap.size):
            cost, n = _gathered(fits, asked, q, g, held, taken)
            last = g
            if n >= 0 and cost + use[g, q] < total[q]:
                total[q], sort[q] = cost + use[g, q], g
        if sort[q] < 0:
            for x in range(fits.start[q], fits.start[q + 1]):
                taken[fits.order[x]] = 0
        elif sort[q] != last:
            _gathered(fits, asked, q, sort[q], held, taken)


class GroupsAsked(NamedTuple):
    """The conditions of the groups that ``few_groups`` lists.

    least, most  int64  rows;  share int64  at most 1/share of the rows have one value;  sorts  ``GroupSorts``
    largest_cost float64  of a group;  each, tried  int64  most groups of a published row, and most rows tried in all
    """

    least: int
    most: int
    share: int
    sorts: GroupSorts
    largest_cost: float
    each: int
    tried: int


class PricedSets(NamedTuple):
    """Sets of rows with prices: a group pays the price of a set each time that its rows count for ``m`` more.

    start int64[n + 1], set int64[..]  the sets with a row of each place;  times int64[..]  how often the row counts
    m int64[s], price float64[s], at least 0
    """

    start: np.ndarray
    set: np.ndarray
    times: np.ndarray
    m: np.ndarray
    price: np.ndarray


@njit(**LEAN_INNER)
def _count(sets, y, sign, held):
    """Put a row of place y into its sets (sign 1), or take it out (-1)."""
    for z in range(sets.start[y], sets.start[y + 1]):
        held[sets.set[z]] += sign * sets.times[z]


@njit(cache=True, nogil=True)
def counted_sets(start, member, rows, sets, counts):
    """How often groups count for sets: how many times they have ``m`` of their rows, where it isn't 0.

    start int32[c + 1], member int32[..], rows float64[..]  row classes and their rows in each group
    sets    ``PricedSets`` over row classes;  counts int32[c + 1]  out: where the sets of each group begin
    returns int32[..], float64[..]: sets of each group, and how often it counts for them
    """
    held, n = np.zeros(sets.m.size, np.int64), 0
    set_, often = np.empty(1024, np.int32), np.empty(1024)
    counts[0] = 0
    for g in range(start.size - 1):
        if n + held.size > set_.size:
            set_ = np.append(set_, np.empty(n + held.size, np.int32))
            often = np.append(often, np.empty(n + held.size))
        for x in range(start[g], start[g + 1]):
            _count(sets, member[x], np.int64(rows[x]), held)
        for s in range(held.size):
            if held[s] >= sets.m[s]:
                set_[n], often[n] = s, held[s] // sets.m[s]
                n += 1
            held[s] = 0
        counts[g + 1] = n
    return set_[:n], often[:n]


@njit(cache=True, nogil=True)
def stacked_columns(start, index, value, more_start, more_index, more_value, out_index, out_value):
    """The columns of two sparse matrices, one below the other: indices (of the second, those of the stack), and values.

    start int32[c + 1], index int32[..], value float64[..]  the columns of the first;  more_.. of the second
    """
    n = 0
    for g in range(start.size - 1):
        for x in range(start[g], start[g + 1]):
            out_index[n], out_value[n] = index[x], value[x]
            n += 1
        for x in range(more_start[g], more_start[g + 1]):
            out_index[n], out_value[n] = more_index[x], more_value[x]
            n += 1


class FoundGroups(NamedTuple):
    """What ``few_groups`` finds: the place of each row of each group, and its cost.

    start int64[c + 1], place int32[..], cost float64[c]
    """

    start: np.ndarray
    place: np.ndarray
    cost: np.ndarray


@njit(**LEAN_INNER)
def _least_rest(fits, row, first, n, depth, sorts, held, free):
    """At most the cost of the rows that complete a group of ``depth`` rows, from row[first:n] with rising costs.

    Each sort takes the cheapest rows whose value still has space: as many as it needs, and all with a negative cost.

    held  int64[v]  the group's rows of each value;  free  int64[v]  a buffer
    """
    best = np.inf
    for sort in range(sorts.cap.size):
        need, total, x, fewest = sorts.rows[sort] - depth, 0.0, first, np.int64(0)
        for v in range(held.size):
            free[v] = sorts.cap[sort] - held[v]
            fewest = min(fewest, free[v])
        while fewest >= 0 and x < n and (need > 0 or fits.cost[row[x]] < 0.0):
            v = fits.value[row[x]]
            if free[v] > 0:
                free[v], need, total = free[v] - 1, need - 1, total + fits.cost[row[x]]
            x += 1
        if fewest >= 0 and need <= 0:
            best = min(best, total)
    return best


@njit(cache=True, nogil=True)
def few_groups(fits, asked, use, kind, within, sets, out):
    """The cheap groups of each published row, without those that an earlier published row also fits.

    fits   ``PatternRows``, with published rows by rising loss;  asked ``GroupsAsked``
    use    float64[q]      cost of a group in addition to its rows
    kind   int64[n]        type of each place;  within uint64[t, w]  for each type, a bit for each published row that
           fits
    sets   ``PricedSets``, whose prices are costs of the groups
    out    ``FoundGroups``: receives the groups
    Returns their number, and whether these are all: neither space nor limits left any out.

    Depth first, rows by rising cost. Later rows cost no less, so a group adds at least the cost of the next rows: the
    least number needed, or all with a negative cost; under shares, with as many rows of a value as one of the sorts
    allows (``_least_rest``). Prices of sets only add to that.
    """
    (first, order, rows, value, cost), values = fits, asked.sorts.values[0]
    found, words, last, tried, complete = 0, within.shape[1], 0, 0, True
    longest, many, twice = 0, 0, 0
    for q in range(use.size):
        held = np.int64(0)
        for x in range(first[q], first[q + 1]):
            held += min(rows[order[x]], asked.most)
        longest = max(longest, held)
    for y in range(value.size):
        many = max(many, value[y] + 1)
    row, fresh, upto = np.empty(longest, np.int64), np.empty(longest, np.bool_), np.zeros(longest + 1)
    deepest = min(asked.most, longest) + 1
    at, chosen, paid = np.zeros(deepest, np.int64), np.zeros(deepest, np.int64), np.zeros(deepest)
    common, held_of = np.zeros((deepest, words), np.uint64), np.zeros(many, np.int64)
    free, in_set = np.empty(many, np.int64), np.zeros(sets.m.size, np.int64)
    for w in range(words):
        common[0, w] = ~np.uint64(0)
    for q in range(use.size):
        n, below, here = 0, 0, 0
        for x in range(first[q], first[q + 1]):
            for copy in range(min(rows[order[x]], asked.most)):
                row[n], fresh[n] = order[x], copy == 0
                upto[n + 1] = upto[n] + cost[order[x]]
                below += cost[order[x]] < 0.0
                n += 1
        if n < asked.least:
            continue
        # Depth first over the groups of each published row: the row at the current index joins, or is passed over.
        top, depth = min(asked.most, n), 0
        at[0], paid[0] = 0, use[q]
        while depth >= 0:
            x = at[depth]
            need = max(asked.least - depth, 1)
            more = min(max(need, min(below - x, top - depth)), n - x)
            left_out = here == asked.each or tried == asked.tried
            complete = complete and not left_out
            dear = paid[depth] + upto[x + more] - upto[x] > asked.largest_cost
            if not dear and asked.share > 1:
                dear = (
                    paid[depth] + _least_rest(fits, row, x, n, depth, asked.sorts, held_of, free) > asked.largest_cost
                )
            if depth == top or x + need > n or dear or left_out:
                depth -= 1
                if depth >= 0:
                    v = value[row[chosen[depth]]]
                    held_of[v] -= 1
                    twice -= held_of[v] < 2
                    _count(sets, row[chosen[depth]], -1, in_set)
                continue
            at[depth] = x + 1
            while at[depth] < n and not fresh[at[depth]]:  # equal rows are passed over together
                at[depth] += 1
            y = row[x]
            if (held_of[value[y]] + 1) * asked.share > asked.most:
                continue
            if values > 1 and depth + 1 >= 2 * asked.least and twice + (held_of[value[y]] < 2) >= 2 * values:
                continue  # two groups can replace it: its values, each counted up to twice, suffice for both
            tried += 1
            price = cost[y]
            for z in range(sets.start[y], sets.start[y + 1]):
                s = sets.set[z]
                price += sets.price[s] * ((in_set[s] + sets.times[z]) // sets.m[s] - in_set[s] // sets.m[s])
            if paid[depth] + price + upto[x + more] - upto[x + 1] > asked.largest_cost:
                continue
            chosen[depth] = x
            twice += held_of[value[y]] < 2
            held_of[value[y]] += 1
            _count(sets, y, 1, in_set)
            paid[depth + 1] = paid[depth] + price
            for w in range(words):
                common[depth + 1, w] = common[depth, w] & within[kind[y], w]
            depth += 1
            at[depth] = x + 1
            if depth < asked.least or paid[depth] > asked.largest_cost:
                continue
            different, alike = 0, np.int64(0)
            for v in range(many):
                different += held_of[v] > 0
                alike = max(alike, held_of[v])
            if different < values or alike * asked.share > depth:
                continue
            known = False
            for w in range(q // 64 + 1):
                before = common[depth, w]
                if w == q // 64:
                    before &= (np.uint64(1) << np.uint64(q % 64)) - np.uint64(1)
                known = known or before != 0
            if known:
                continue
            if found == out.cost.size or last + depth > out.place.size:
                return found, False
            for z in range(depth):
                out.place[last + z] = row[chosen[z]]
            out.cost[found] = paid[depth]
            last += depth
            found, here = found + 1, here + 1
            out.start[found] = last
    return found, complete


@njit(cache=True, nogil=True)
def cover(start, member, loss, of_start, of, count, k, pick):
    """Greedy weighted cover: repeatedly the published row with the least price for each row that it newly covers.

    start  int64[q + 1], member int64[...]   types that fit published row q; each fits at least k rows in all
    loss   int64[q]      loss of a row published so
    of_start int64[t + 1], of int64[...]     published rows that fit each type
    count  int64[t], k int64
    pick   int64[t]      out: number of the pick that covered the type; -1 if no published row fits it
    returns int64[picks]  the published row of each pick

    n uncovered rows cost loss x max(n, k), so the price of each is loss x max(1, k / n). Prices only rise, so a heap
    with outdated prices gives the least one. O((sum of members + picks) log q).
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
    # If the price at the top is outdated, it is put back with the current one. Otherwise its published row is picked.
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


@njit(cache=True, nogil=True)
def group_loss(mask, rows):
    """The loss per row of the group of the rows in mask; ``rows`` is ``Types`` with a line for each row."""
    code, _, pair, start, size, kind = rows
    total = np.int64(0)
    # Depending on the column, as in ``_loss``.
    for j in range(code.shape[1]):
        a, s = start[j], size[j]
        first, worst, low, high, many = np.int64(-1), np.int64(0), s, np.int64(-1), np.int64(0)
        seen = np.zeros(s if kind[j] == 2 else 0, np.bool_)
        for i in range(code.shape[0]):
            if not mask >> i & 1:
                continue
            x = np.int64(code[i, j])
            if first < 0:
                first = x
            if kind[j] == 0:
                worst = max(worst, pair[a + first * s + x])
            elif kind[j] == 1:
                low, high = min(low, x), max(high, x)
            elif not seen[x]:
                seen[x] = True
                many += 1
        if kind[j] == 1:
            worst = pair[a + low * s + high]
        elif kind[j] == 2 and many > 1:
            worst = (many - 1) * pair[a + 1]
        total += worst
    return total


class Halves(NamedTuple):
    """The input of ``halve``.

    k int64;  rows  ``Types`` with a line for each of n rows
    twin   int64[n]  the previous row that equals a row, -1 for none: of equal rows a part contains the first ones
    floor  int64[n]  a row loses at least so much in any group
    """

    k: int
    rows: Types
    twin: np.ndarray
    floor: np.ndarray


class Halving(NamedTuple):
    """The progress of ``halve``.

    looked int64[1]  parts examined;  stop int64[1]  another thread sets it to 1 to end the search
    part   int64[1]  the part with the least loss; 0 if the rows are one group, or no loss is below ``upper``
    """

    looked: np.ndarray
    stop: np.ndarray
    part: np.ndarray


@njit(cache=True, nogil=True)
def halve(mask, upper, halves, progress):
    """The least loss of a partition of the rows in mask into groups of at least k, or ``upper`` if none is below it.

    upper  int64     the loss of a known partition
    halves ``Halves``;  progress ``Halving``, read and written

    Some union T of groups of an optimum has at least n/2 and at most n/2 + k - 1/2 of the n >= 2k rows. Add groups, of
    at most 2k - 1 rows each, until half of the rows are reached. T is the union with the last group or the complement
    of the union before it, the smaller of both. If that is all rows, T is the last group, which has at most 2k - 1
    rows. About 4^n parts; the space of the recursion, n deep.
    """
    k, rows, twin, floor = halves
    looked, stop, part = progress
    part[0] = 0
    member = np.empty(twin.size, np.int64)
    n, least = np.int64(0), np.int64(0)
    for i in range(twin.size):
        if mask >> i & 1:
            member[n] = i
            n += 1
            least += floor[i]
    if n < 2 * k:
        return min(upper, n * group_loss(mask, rows))
    best, chosen = upper, np.int64(0)
    # Every subset of each size that contains the first ones of equal rows, and the first row if it is exactly a half.
    for t in range(max(k, (n + 1) // 2), min(n - k, (n + 2 * k - 1) // 2) + 1):
        subset = (np.int64(1) << t) - 1
        while subset >> n == 0 and least < best:
            looked[0] += 1
            if stop[0]:
                return upper
            half, plain = np.int64(0), not (2 * t == n and subset & 1 == 0)
            for i in range(n):
                if subset >> i & 1:
                    half |= np.int64(1) << member[i]
            for i in range(n):
                j = twin[member[i]]
                if j >= 0 and half >> member[i] & 1 and mask >> j & 1 and not half >> j & 1:
                    plain = False
            if plain:
                one = halve(half, best, halves, progress)
                if one < best:
                    rest = best - one
                    two = halve(mask ^ half, rest, halves, progress)
                    if two < rest:
                        best, chosen = one + two, half
            low = subset & -subset  # the next number with as many bits
            high = subset + low
            subset = ((subset ^ high) >> 2) // low | high
    part[0] = chosen
    return best
