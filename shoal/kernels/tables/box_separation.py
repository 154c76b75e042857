"""The most violated group of every row: K rows whose multipliers exceed K times the loss of their box by the most.

A group is anchored at its dearest row a, the one of the largest multiplier.  Its box loses at least what a and any
other row j of it lose together, and none of its multipliers is above that of a.  So every j lies in the ball of rows
that lose less than u(a) together with a, and rows outside it need not be looked at.  Inside the ball the search goes
depth first over the members by falling multiplier.

Where different values are asked of a group, the box must also hold rows of the values that the K rows lack, whatever
their multipliers.  Each of these rows is in the ball too, so the box loses at least what the members lose together with
the nearest row of as many missing values as are needed.  The same holds for further rows that shares ask for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.connected_sets import (
    AreaColumn,
    Taken,
    areas_column,
    begin_areas,
    more_of_areas,
    put_area_back,
    take_area,
    taken_areas,
)
from shoal.kernels.tables.near_cells import (
    AT_ONCE,
    ENTROPY,
    EQUAL,
    ORDERED,
    _value,
    losses_with,
    pair_loss,
    part_of,
    places,
    write_down,
)

TINY = 1e-13
WHOLE = 1e-6  # by which a number of rows may be off
FURTHER = 2  # times K: further rows of a group that are looked for, at most


class BoxSearch(NamedTuple):
    """Arrays of one search: r rows at most in a ball, d columns, groups of K rows, e axes.

    A box around the anchor has a level on every axis: one for each further value of a set, two for the ends of a
    range, one for a node of a hierarchy.  It loses the sum of its levels.

    cell int32[r], price, loss float64[r], copies int64[r]  cells of the ball by falling multiplier, their loss together
                              with the anchor, and how many of their rows a group can take
    start int64[r + 1], axis int64[r d], amount float64[r d]  what each asks of the axes
    level float64[e]          of the box of the members taken so far
    many, at int64[K + 1], sum, box float64[K + 1]  of each depth: candidates, the next one, multipliers of the members
                              and what their box loses
    member int32[K + 1, r], joined float64[K + 1, r], least float64[K + 1, r + 1]  the candidates of each depth,
                              the loss of the box with each of them and the values asked, at least, and the least of
                              that from each on
    saved int64[K + 1], old int64[K d], was float64[K d]  levels to put back, depth by depth
    taken int64[K + 1]        members, as places in the ball
    """

    cell: np.ndarray
    price: np.ndarray
    loss: np.ndarray
    copies: np.ndarray
    start: np.ndarray
    axis: np.ndarray
    amount: np.ndarray
    level: np.ndarray
    many: np.ndarray
    at: np.ndarray
    sum: np.ndarray
    box: np.ndarray
    member: np.ndarray
    joined: np.ndarray
    least: np.ndarray
    saved: np.ndarray
    old: np.ndarray
    was: np.ndarray
    taken: np.ndarray


@njit(**INNER)
def _search(rows, d, group, axes):
    """Arrays for balls of ``rows`` rows."""
    whole, deep = np.int64, group + 1
    return BoxSearch(
        np.empty(rows, np.int32), np.empty(rows), np.empty(rows), np.empty(rows, whole), np.empty(rows + 1, whole),
        np.empty(rows * d, whole), np.empty(rows * d), np.zeros(axes), np.zeros(deep, whole), np.zeros(deep, whole),
        np.zeros(deep), np.zeros(deep), np.empty((deep, rows), np.int32), np.empty((deep, rows)),
        np.empty((deep, rows + 1)), np.zeros(deep + 1, whole), np.empty(deep * d, whole), np.empty(deep * d),
        np.empty(deep, whole),
    )  # fmt: skip


class OtherValues(NamedTuple):
    """Rows from which a group takes those that it lacks, of other values than the anchor's or, by shares, of any.

    cell int32[m], loss float64[m]  the cells by rising loss together with the anchor, and that loss
    start, axis, amount             what each asks of the axes, as in ``BoxSearch``
    level float64[e]                the levels of the search, the same array
    many int64[1]                   how many cells there are
    values, least [x]               nearest values or rows and how near, for one box at a time
    weight float64[v]               of a row of each value, for one inequality at a time
    """

    cell: np.ndarray
    loss: np.ndarray
    start: np.ndarray
    axis: np.ndarray
    amount: np.ndarray
    level: np.ndarray
    many: np.ndarray
    values: np.ndarray
    least: np.ndarray
    weight: np.ndarray


@njit(**INNER)
def _other_values(cells, search):
    """Arrays for all cells; none where nothing is asked of values."""
    (rows, d), whole = cells.code.shape, np.int64
    if not _completes(cells):
        rows = 0
    size = max(cells.distinct + 1, FURTHER * cells.group)
    return OtherValues(
        np.empty(rows, np.int32), np.empty(rows), np.empty(rows + 1, whole), np.empty(rows * d, whole),
        np.empty(rows * d), search.level, np.zeros(1, whole), np.empty(size, whole), np.empty(size),
        np.empty(cells.shares.high.size),
    )  # fmt: skip


@njit(**INNER)
def _completes(cells):
    """Whether a group may lack rows of some values that its box has to hold."""
    return cells.distinct > 1 or cells.shares.high.size > 0


class RowMultipliers(NamedTuple):
    """A multiplier for every row of a cell, float64[m]; the cells by falling multiplier, and each one's place,
    int64[m]."""

    price: np.ndarray
    order: np.ndarray
    rank: np.ndarray


class Where(NamedTuple):
    """Where a box may grow: offset int64[d] the first axis of each column; areas, taken as in ``connected_sets``."""

    offset: np.ndarray
    areas: AreaColumn | None
    taken: Taken | None


class Violated(NamedTuple):
    """What a separation finds for each anchor.

    excess float64[m]   no group anchored at a row of the cell exceeds its loss by more than this;  0: none does
    found  float64[m]   by how much the group written down does, -1 where there is none; its loss is that of the
                        smallest box with its rows and, one at a time, the values it lacks
    group  int32[m, K]  its cells, one a row
    """

    excess: np.ndarray
    found: np.ndarray
    group: np.ndarray


class Anchored(NamedTuple):
    """What cells lose together with one cell: place int64[d] and own float64[..] its losses with every code, as
    ``write_down`` leaves them, distance float64[centers] with the centers; room for the losses of some cells."""

    place: np.ndarray
    own: np.ndarray
    distance: np.ndarray
    scratch: np.ndarray


@njit(cache=True, nogil=True)
def separate(cells, index, first, last, multipliers, nodes, areas, out):
    """The most violated group of K rows anchored at each of the cells order[first .. last - 1].

    nodes int64 of the search of one anchor; where it stops, ``out.excess`` is what the open ones allow
    areas ``AreaColumn`` of the column whose codes are joined by connected sets; None where no column is
    Returns how many look-ups it took.
    O((last - first) m d) for the balls at worst, and nodes (r d + r log r) a ball of r rows.
    """
    price, order, count, group = multipliers.price, multipliers.order, cells.count, cells.group
    m, d = cells.code.shape
    axes, rows, looks = 0, 0, 0
    offset = np.empty(d, np.int64)
    for j in range(d):
        offset[j] = axes
        axes += cells.width[j] if cells.sets[j] else 2
    for i in range(m):
        rows += min(count[i], group)
    search = _search(rows + group, d, group, axes)
    other_values, taken = _other_values(cells, search), taken_areas(areas, group)
    where = Where(offset, areas, taken)
    place, size = places(cells)
    own, distance = np.empty(max(1, size)), np.empty(index.center.shape[1])
    anchored = Anchored(place, own, distance, np.empty(min(AT_ONCE, m)))
    ball, lost = np.empty(m, np.int64), np.empty(m)
    for x in range(first, last):
        a = order[x]
        out.excess[a], out.found[a] = 0.0, -1.0
        if price[a] <= 0.0:
            continue
        write_down(cells, place, index.column, a, own)
        losses_with(cells, place, own, index.column, a, index.center, 0, distance)
        some, looked = _ball(cells, index, multipliers, a, anchored, ball, lost)
        looks += looked
        size = _members(cells, multipliers, a, ball[:some], lost[:some], search, other_values)
        size = _shrunk(search, size, price[a], group)
        if size == 0:
            continue
        out.excess[a], looked = _deepest(cells, search, other_values, size, (a, price[a]), nodes, where, out)
        looks += looked
    return looks


@njit(**LEAN_INNER)
def _ball(cells, index, multipliers, a, anchored, ball, lost):
    """Cells that a group anchored at cell a can hold, and what each loses together with it, out; and the look-ups.

    With row j a group has at most K - 1 times the multiplier of a and that of j.  The rows whose values it lacks may
    have any.
    """
    price, rank, column, group = multipliers.price, multipliers.rank, index.column, cells.group
    place, own, distance, scratch = anchored
    many, looks, completes = 0, distance.size, _completes(cells)
    for b in range(distance.size):
        begin, end = part_of(index, b, distance[b], price[a])
        looks += end - begin
        while begin < end:
            here = scratch[: min(end - begin, scratch.size)]
            losses_with(cells, place, own, column, a, column, begin, here)
            for x in range(here.size):
                c, limit = begin + x, price[a]
                if here[x] >= limit or c == a:
                    continue
                if not completes:
                    if rank[c] < rank[a]:
                        continue
                    limit = ((group - 1) * price[a] + price[c]) / group
                if here[x] < limit:
                    ball[many], lost[many] = c, here[x]
                    many += 1
            begin += here.size
    return many, looks * place.size


@njit(**INNER)
def _members(cells, multipliers, a, ball, lost, search, other_values):
    """The cells of the ball by falling multiplier, and what each loses, into the search; how many they are.

    0 where the ball lacks the values asked; those of other values than the anchor's into ``other_values``.
    """
    price, rank, count, group = multipliers.price, multipliers.rank, cells.count, cells.group
    distinct, alike, value = cells.distinct, cells.alike, cells.value
    size, helpers, known, shares = 0, 0, 0, cells.shares.high.size > 0
    if shares and count[a] > 1:
        other_values.cell[0], other_values.loss[0] = a, 0.0
        helpers = 1
    if count[a] > 1 and alike > 1:
        search.cell[0], search.price[0], search.loss[0] = a, price[a], 0.0
        search.copies[0] = min(count[a] - 1, group - 1, alike - 1)
        size = 1
    order = np.argsort(rank[ball])
    for y in order:
        c = ball[y]
        if shares or (distinct > 1 and value[c] != value[a]):
            other_values.cell[helpers], other_values.loss[helpers] = c, lost[y]
            helpers += 1
        if value[c] != value[a]:
            if distinct > 1 and (known < distinct - 1 or lost[y] < other_values.least[distinct - 2]):
                known = _value(other_values.values, other_values.least, known, distinct - 1, value[c], lost[y])
        elif alike == 1:
            continue
        if rank[c] > rank[a]:
            search.cell[size], search.price[size], search.loss[size] = c, price[c], lost[y]
            search.copies[size] = min(count[c], group - 1, alike)
            size += 1
    other_values.many[0] = helpers
    if known < distinct - 1:
        return 0
    if distinct > 1:  # no box around the anchor with the values loses less
        for y in range(size):
            search.loss[y] = max(search.loss[y], other_values.least[distinct - 2])
    return size


@njit(**INNER)
def _shrunk(search, size, own, group):
    """The ball without rows that are in no violated group, again until none leaves; its cells, 0 where none is left.

    With j a group has at most the multipliers of a, of j and of the K - 2 dearest others of the ball.
    """
    while True:
        rows, top, rest = 0, 0.0, 0.0  # of the K - 1 and of the K - 2 dearest rows
        y = 0
        while y < size and rows < group - 1:
            some = min(search.copies[y], group - 1 - rows)
            top += some * search.price[y]
            rest += min(some, max(group - 2 - rows, 0)) * search.price[y]
            rows += some
            y += 1
        if rows < group - 1:
            return 0
        kept, rows = 0, 0
        for y in range(size):
            other_values = top if rows < group - 2 else rest + search.price[y]
            rows += search.copies[y]
            if group * search.loss[y] < own + other_values:
                search.cell[kept], search.price[kept], search.loss[kept] = (
                    search.cell[y], search.price[y], search.loss[y],
                )  # fmt: skip
                search.copies[kept] = search.copies[y]
                kept += 1
        if kept == size:
            return size
        size = kept


@njit(**INNER)
def _nearest_first(other_values):
    """The other cells by rising loss."""
    many = other_values.many[0]
    order = np.argsort(other_values.loss[:many])
    other_values.cell[:many], other_values.loss[:many] = (
        other_values.cell[:many][order],
        other_values.loss[:many][order],
    )


@njit(**INNER)
def _held(cells, search, depth, a, value):
    """How many of the anchor and the members down to this depth have the value."""
    held = np.int64(cells.value[a] == value)
    for z in range(1, depth + 1):
        held += cells.value[search.cell[search.taken[z]]] == value
    return held


@njit(**INNER)
def _completed(cells, search, other_values, where, depth, a, box):
    """What a box with the members down to this depth, which lose ``box``, and the values they lack loses at least."""
    lost = box
    if cells.shares.high.size > 0:
        lost = _by_shares(cells, search, other_values, where, depth, a, box)
    missing = cells.distinct - 1
    for z in range(1, depth + 1):
        missing -= _held(cells, search, z - 1, a, cells.value[search.cell[search.taken[z]]]) == 0
    if missing <= 0 or lost == np.inf:
        return lost
    known, least = 0, other_values.least
    for y in range(other_values.many[0]):
        if known == missing and (other_values.loss[y] >= least[missing - 1] or least[missing - 1] <= lost):
            break  # all others are as far, or what the box loses decides
        v = cells.value[other_values.cell[y]]
        if _held(cells, search, depth, a, v) == 0:
            loss = box + _more(other_values, y)
            loss += more_of_areas(where.areas, where.taken, cells, other_values.cell[y])
            if known < missing or loss < least[missing - 1]:
                known = _value(other_values.values, least, known, missing, v, loss)
    return max(lost, least[missing - 1]) if known == missing else np.inf


@njit(**INNER)
def _by_shares(cells, search, other_values, where, depth, a, box):
    """What a box with the members down to this depth, which lose ``box``, loses once it holds what shares ask.

    Every inequality "the weights of its values, one for each row, sum to at most 0 in an eligible group" that the
    members break asks for further rows of values whose weight is below 0.
    """
    shares, n, lost, values = cells.shares, depth + 1, box, cells.value
    weight, number = other_values.weight, cells.shares.number
    rows, common, most = 0, np.int64(-1), 0
    for z in range(n):  # a value that is too common asks for rows of others
        v = values[a] if z == 0 else values[search.cell[search.taken[z]]]
        held = _held(cells, search, depth, a, v)
        more = np.int64(np.ceil((held - n * shares.high[v]) / shares.high[v] - WHOLE))
        if more > rows:
            rows, common = more, v
        most = max(most, held)
    if rows > 0:
        weight[:] = -1.0
        weight[common] = 1.0
        lost = _with_further(cells, search, other_values, where, depth, a, (box, lost), rows)
    for v in shares.needed:
        rows = np.int64(np.ceil(max(n, cells.group) * shares.low[v] - WHOLE)) - _held(cells, search, depth, a, v)
        if rows > 0:
            weight[:] = 1.0
            weight[v] = -1.0
            lost = _with_further(cells, search, other_values, where, depth, a, (box, lost), rows)
    rows = 0
    if shares.kind == ENTROPY:
        rows = _spread(cells, search, depth, a, most)
        for v in range(weight.size):
            weight[v] = -1.0 if _held(cells, search, depth, a, v) < most else 1.0
    elif shares.kind == EQUAL:
        below, missing = 1.0, float(n)  # the table's share of values that are too rare, and their rows
        for z in range(n):
            v = values[a] if z == 0 else values[search.cell[search.taken[z]]]
            held = _held(cells, search, depth, a, v)
            if held >= n * shares.table[v]:
                missing -= 1.0
                below -= shares.table[v] / held
        rows = np.int64(np.ceil((n * (below - number) - missing) / (1.0 + number - below) - WHOLE))
        for v in range(weight.size if rows > 0 else 0):
            weight[v] = -1.0 if _held(cells, search, depth, a, v) < n * shares.table[v] else 1.0
    elif shares.kind == ORDERED:
        rows = _in_order(cells, search, depth, a, weight)
    if rows > 0:
        lost = _with_further(cells, search, other_values, where, depth, a, (box, lost), rows)
    return lost


@njit(**INNER)
def _spread(cells, search, depth, a, most):
    """Rows of less common values than the commonest, of which there are ``most``, until the entropy can suffice.

    Spread as evenly as can be, they make most of it.
    """
    shares, n = cells.shares, depth + 1
    held = np.zeros(shares.table.size, np.int64)
    for z in range(n):
        held[cells.value[a] if z == 0 else cells.value[search.cell[search.taken[z]]]] += 1
    rows = 0
    while rows < FURTHER * cells.group:
        total, least = 0.0, np.int64(-1)
        for v in range(held.size):
            if held[v] > 0:
                total += held[v] * np.log(held[v])
            if shares.table[v] > 0 and (least < 0 or held[v] < held[least]):
                least = v
        if np.log(n + rows) - total / (n + rows) >= shares.number - TINY or held[least] >= most:
            break
        held[least] += 1
        rows += 1
    return rows


@njit(**INNER)
def _in_order(cells, search, depth, a, weight):
    """Rows of weight below 0 that the ordered distance asks for, and the weights, out.

    The distance is at least the sum of the differences of the cumulated shares, each with the sign that it has for the
    members: a mean over the rows.
    """
    shares, n = cells.shares, depth + 1
    weight[:] = 0.0
    for z in range(n):
        weight[cells.value[a] if z == 0 else cells.value[search.cell[search.taken[z]]]] += 1.0
    run, before, apart, table = 0.0, 0.0, 0.0, 0.0
    for v in range(weight.size):
        upto = shares.table[v]
        run += weight[v]
        sign = 0.0
        if upto > before:
            sign = 1.0 if run >= n * upto else -1.0
        apart += sign * (run - n * upto)
        table += sign * upto
        weight[v] = sign
        before = upto
    after, least = -table - shares.number, 0.0
    for v in range(weight.size - 1, -1, -1):
        after += weight[v]
        weight[v] = after
        least = min(least, after)
    over = apart - n * shares.number
    if over <= WHOLE:
        return np.int64(0)
    return np.int64(np.ceil(over / -least - WHOLE)) if least < 0.0 else np.int64(FURTHER * cells.group)


@njit(**INNER)
def _with_further(cells, search, other_values, where, depth, a, known, rows):
    """What a box loses with so many further rows, one at a time, of values whose weight is below 0.

    known  what it loses without them, and what is known that it loses
    """
    (box, lost), least, weight = known, other_values.least, other_values.weight
    rows, found = min(rows, FURTHER * cells.group), 0
    for y in range(other_values.many[0]):
        if found == rows and (other_values.loss[y] >= least[rows - 1] or least[rows - 1] <= lost):
            break
        c = other_values.cell[y]
        if weight[cells.value[c]] >= 0.0:
            continue
        free = cells.count[c] - (c == a)
        for z in range(1, depth + 1):
            free -= search.cell[search.taken[z]] == c
        if free <= 0:
            continue
        loss = box + _more(other_values, y)
        loss += more_of_areas(where.areas, where.taken, cells, c)
        while free > 0 and (found < rows or loss < least[rows - 1]):
            x = found if found < rows else rows - 1
            found = min(found + 1, rows)
            while x > 0 and least[x - 1] > loss:
                least[x] = least[x - 1]
                x -= 1
            least[x] = loss
            free -= 1
    return max(lost, least[rows - 1]) if found == rows else np.inf


@njit(**INNER)
def _asks(cells, search, a, size, offset, apart):
    """What each cell of the ball asks of the axes of a box around cell a, in all columns but one, -1 for none."""
    losses, at, shape, code = cells.losses, cells.at, cells.shape, cells.code
    e = 0
    for y in range(size):
        search.start[y] = e
        b = search.cell[y]
        for j in range(code.shape[1]):
            if code[a, j] == code[b, j] or j == apart:
                continue
            more = pair_loss(cells, j, code[a, j], code[b, j])
            if more <= 0.0:
                continue
            side = 0
            if cells.sets[j]:
                side = code[b, j]
            elif shape[j] == 1 and losses[at[j] + code[b, j]] < losses[at[j] + code[a, j]]:
                side = 1
            search.axis[e], search.amount[e] = offset[j] + side, more
            e += 1
    search.start[size] = e


@njit(**INNER)
def _more(search, y):
    """What a box loses more when it takes in the cell at place y."""
    more = 0.0
    for e in range(search.start[y], search.start[y + 1]):
        beyond = search.amount[e] - search.level[search.axis[e]]
        if beyond > 0.0:
            more += beyond
    return more


@njit(**INNER)
def _take(search, depth, y):
    """The box with the cell at place y; the levels that change are kept."""
    s = search.saved[depth]
    for e in range(search.start[y], search.start[y + 1]):
        g = search.axis[e]
        if search.amount[e] > search.level[g]:
            search.old[s], search.was[s] = g, search.level[g]
            search.level[g] = search.amount[e]
            s += 1
    search.saved[depth + 1] = s


@njit(**INNER)
def _put_back(search, depth):
    """The box before the member of this depth."""
    for s in range(search.saved[depth + 1] - 1, search.saved[depth] - 1, -1):
        search.level[search.old[s]] = search.was[s]


@njit(**INNER)
def _ready(search, depth):
    """The least loss with any candidate from each on."""
    n = search.many[depth]
    search.at[depth] = 0
    search.least[depth, n] = np.inf
    for x in range(n - 1, -1, -1):
        search.least[depth, x] = min(search.least[depth, x + 1], search.joined[depth, x])


@njit(**INNER)
def _allows(search, depth, first, need, group, heap, enough):
    """By how much a group of the members and ``need`` candidates from place ``first`` on can exceed its loss at most.

    enough  above which any number is returned that is above it: the node is not to be cut off then

    With t the loss of the dearest box among members and one candidate, the group has at most the ``need`` largest
    multipliers of candidates up to t, and loses at least K t.
    """
    n = search.many[depth] - first
    if enough < np.inf and n >= need:  # the dearest candidates, which are the first
        total, most = search.sum[depth], 0.0
        for x in range(first, first + need):
            total += search.price[search.member[depth, x]]
            most = max(most, search.joined[depth, x])
        if total - group * most > enough:
            return total - group * most
    order = np.argsort(search.joined[depth, first : first + n])
    held, total, best = 0, search.sum[depth], -np.inf
    for z in range(n):
        x = first + order[z]
        new = search.price[search.member[depth, x]]
        if held < need:
            y = held
            held += 1
            while y > 0 and heap[(y - 1) // 2] > new:
                heap[y] = heap[(y - 1) // 2]
                y = (y - 1) // 2
            heap[y] = new
            total += new
        elif new > heap[0]:
            total += new - heap[0]
            y = 0
            while 2 * y + 1 < need:
                below = 2 * y + 1
                if below + 1 < need and heap[below + 1] < heap[below]:
                    below += 1
                if heap[below] >= new:
                    break
                heap[y] = heap[below]
                y = below
            heap[y] = new
        if held == need:
            best = max(best, total - group * search.joined[depth, x])
            if best > enough:
                return best
    return best


@njit(**INNER)
def _top(search, depth, x, need):
    """Multipliers of the members and of the ``need`` candidates from place x on."""
    top = search.sum[depth]
    for y in range(x, x + need):
        top += search.price[search.member[depth, y]]
    return top


@njit(**INNER)
def _passed_over(search, depth, box):
    """Whether the box of the members down to this depth, which loses ``box``, holds a candidate passed over before.

    It is at least as dear as any later one, and could take the place of the last one at no loss.
    """
    for z in range(1, depth + 1):
        for x in range(search.at[z] - 1):
            if search.joined[z, x] <= box + TINY and _more(search, search.member[z, x]) <= 0.0:
                return True
    return False


@njit(**INNER)
def _deepest(cells, search, other_values, size, anchor, nodes, where, out):
    """The excess of the most violated group anchored at a cell, or more where the nodes ran out; and the look-ups.

    anchor  the cell and its multiplier.  The group goes into ``out``.

    Depth first: a node has members and candidates behind the last of them; it ends where the dearest candidates left
    do not pay the least box that any of them makes.
    """
    group, completes, (a, own), (offset, areas, taken) = cells.group, _completes(cells), anchor, where
    # Where shares are asked, another set may have too many alike; where areas are connected, other areas.
    plain = cells.alike >= group and cells.shares.high.size == 0 and areas_column(areas) < 0
    heap = np.empty(group)
    best, seen, looks = 0.0, 0, 0
    n = 0
    for y in range(size):
        for _ in range(search.copies[y]):
            search.member[1, n], search.joined[1, n] = y, search.loss[y]
            n += 1
    search.many[1], search.sum[1], search.box[1], search.saved[1] = n, own, 0.0, 0
    _ready(search, 1)
    depth = 1
    if group > 1 and _allows(search, 1, 0, group - 1, group, heap, TINY) <= TINY:
        return 0.0, n
    _asks(cells, search, a, size, offset, areas_column(areas))
    begin_areas(areas, taken, cells, a)
    if completes:
        _nearest_first(other_values)
        _asks(cells, other_values, a, other_values.many[0], offset, areas_column(areas))
    while depth > 0:
        x, need, n = search.at[depth], group - depth, search.many[depth]
        top = _top(search, depth, x, need) if n - x >= need else -np.inf
        if top - group * search.least[depth, x] <= best + TINY:
            depth -= 1
            if depth > 0:
                _put_back(search, depth)
                put_area_back(areas, taken, depth)
            continue
        search.at[depth] = x + 1
        cost = search.joined[depth, x]
        if top - group * cost <= best + TINY:
            continue
        y = np.int64(search.member[depth, x])
        search.taken[depth] = y
        if need == 1:
            if completes:
                box = search.box[depth] + _more(search, y)
                box += more_of_areas(areas, taken, cells, search.cell[y])
                _take(search, depth, y)
                take_area(areas, taken, cells, depth, search.cell[y], -1.0)
                cost = _completed(cells, search, other_values, where, depth, a, box)
                _put_back(search, depth)
                put_area_back(areas, taken, depth)
                if top - group * cost <= best + TINY:
                    continue
            best = top - group * cost
            out.found[a], out.group[a, 0] = best, a
            for z in range(1, group):
                out.group[a, z] = search.cell[search.taken[z]]
            continue
        seen += 1
        if seen > nodes:
            most = best
            for z in range(1, depth + 1):  # the branches that are open, this one among them
                from_here = search.at[z] - (z == depth)
                most = max(most, _allows(search, z, from_here, group - z, group, heap, np.inf))
            while depth > 1:
                depth -= 1
                _put_back(search, depth)
                put_area_back(areas, taken, depth)
            return most, looks
        box = search.box[depth] + _more(search, y) + more_of_areas(areas, taken, cells, search.cell[y])
        _take(search, depth, y)
        if plain and _passed_over(search, depth, box):
            _put_back(search, depth)
            continue
        looks += take_area(areas, taken, cells, depth, search.cell[y], max(top - best, 0.0) / group)
        if completes:
            cost = max(cost, _completed(cells, search, other_values, where, depth, a, box))
        full, v = False, cells.value[search.cell[y]]
        if cells.alike < group:
            full = _held(cells, search, depth, a, v) == cells.alike
        paid = search.sum[depth] + search.price[y]
        below, rest, rows = depth + 1, 0.0, 0
        for z in range(x + 1, min(x + need - 1, n)):  # the K - 2 dearest others
            rest += search.price[search.member[depth, z]]
        dearest = rest + (search.price[search.member[depth, x + need - 1]] if x + need - 1 < n else 0.0)
        looks += (n - x) * offset.size
        for z in range(x + 1, n):
            c = np.int64(search.member[depth, z])
            if full and cells.value[search.cell[c]] == v:
                continue
            joined = max(cost, box + _more(search, c) + more_of_areas(areas, taken, cells, search.cell[c]))
            with_it = paid + (dearest if z < x + need - 1 else rest + search.price[c])
            if with_it - group * joined > best + TINY:
                search.member[below, rows], search.joined[below, rows] = c, joined
                rows += 1
        search.many[below], search.sum[below], search.box[below] = rows, paid, box
        if rows < need - 1 or _allows(search, below, 0, need - 1, group, heap, best + TINY) <= best + TINY:
            _put_back(search, depth)
            put_area_back(areas, taken, depth)
            continue
        _ready(search, below)
        depth = below
    return best, looks
