"""Separation for columns of boxes: the K rows whose multipliers exceed K times the loss of their box by the most.

The anchor of a group is its row a with the largest multiplier. The box loses at least what a and any other row j lose
together, and no multiplier is above u(a). So every j is in the ball of rows that lose less than u(a) together with a. A
depth-first search takes rows of the ball by falling multiplier. If groups need several values, the box must also
contain rows of those that the K rows lack, with any multipliers (``box_values``). These rows are in the ball too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.box_values import (
    TINY,
    around_lone,
    asks,
    completed,
    held_of,
    may_lack,
    more_with,
    nearest_first,
    room_for_lone,
    room_for_values,
)
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
from shoal.kernels.tables.eligible import stable_argsort
from shoal.kernels.tables.near_cells import (
    AT_ONCE,
    _value,
    losses_with,
    part_of,
    places,
    write_down,
)


class BoxSearch(NamedTuple):
    """Arrays of one search: r rows at most in a ball, d columns, groups of K rows, e axes.

    A box around the anchor has a level on every axis: one for each further value of a set, two for the ends of a range,
    one for a node of a hierarchy. Its loss is the sum of its levels.

    cell int32[r], price, loss float64[r], copies int64[r]  cells of the ball by falling multiplier, their loss together
                              with the anchor, and how many of their rows a group can have
    start int64[r + 1], axis int64[r d], amount float64[r d]  what each cell requires on the axes
    level float64[e]          of the box of the members taken so far
    many, at int64[K + 1], sum, box float64[K + 1]  by depth: number of candidates, index of the next one, sum of the
                              members' multipliers, loss of their box
    member int32[K + 1, r], joined float64[K + 1, r], least float64[K + 1, r + 1]  by depth: candidates, a loss bound
                              of the box with each and the values needed, and its minimum from each on
    saved int64[K + 1], old int64[K d], was float64[K d]  levels to restore, by depth
    taken int64[K + 1]        members, as indices of cells of the ball
    asked int64[e]            0; while a bound is computed, how many candidates require more on each axis
    net float64[r]            multipliers of candidates less K times their part of the requirements
    others float64[r]         of the candidates of the first depth, if the first member has another value than the
                              anchor: a bound of what K - 2 more rows add to a group with each, less K times its loss
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
    asked: np.ndarray
    net: np.ndarray
    others: np.ndarray


@njit(**INNER)
def search_room(rows, d, group, axes):
    """The arrays for balls of ``rows`` rows."""
    whole, deep = np.int64, group + 1
    return BoxSearch(
        np.empty(rows, np.int32), np.empty(rows), np.empty(rows), np.empty(rows, whole), np.empty(rows + 1, whole),
        np.empty(rows * d, whole), np.empty(rows * d), np.zeros(axes), np.zeros(deep, whole), np.zeros(deep, whole),
        np.zeros(deep), np.zeros(deep), np.empty((deep, rows), np.int32), np.empty((deep, rows)),
        np.empty((deep, rows + 1)), np.zeros(deep + 1, whole), np.empty(deep * d, whole), np.empty(deep * d),
        np.empty(deep, whole), np.zeros(axes, whole), np.empty(rows), np.empty(rows),
    )  # fmt: skip


class RowMultipliers(NamedTuple):
    """The multipliers of a sweep.

    price float64[m]          a multiplier for each row of a cell
    order, rank int64[m]      the cells by falling multiplier, and the index of each cell in this order
    largest_price float64[centers]  the largest multiplier of each center's cells, or 0
    """

    price: np.ndarray
    order: np.ndarray
    rank: np.ndarray
    largest_price: np.ndarray


class Where(NamedTuple):
    """The axes of a box: offset int64[d] first axis of each column; areas and taken as in ``connected_sets``."""

    offset: np.ndarray
    areas: AreaColumn | None
    taken: Taken | None


class Violated(NamedTuple):
    """The result of a separation for each anchor.

    excess float64[m]   upper bound of the violation of groups anchored at a row of the cell; 0: there is none
    found  float64[m]   violation of the group recorded, -1 for none; its loss is that of the smallest box with its rows
                        and, one at a time, the values that it lacks
    group  int32[m, K]  its cells, one for each row
    lone   int32[n, w]  of n anchors, the other cells of a group of more than K rows in which only the anchor has its
                        value, padded with -1
    more   float64[n]   violation of that group, -1 for none
    """

    excess: np.ndarray
    found: np.ndarray
    group: np.ndarray
    lone: np.ndarray
    more: np.ndarray


class Anchored(NamedTuple):
    """The losses of pairs with one cell.

    place int64[d], own float64[..]  losses with every code, from ``write_down``
    distance float64[centers]        losses with the centers
    scratch                          array for the losses of some cells
    """

    place: np.ndarray
    own: np.ndarray
    distance: np.ndarray
    scratch: np.ndarray


@njit(cache=True, nogil=True)
def separate(cells, index, first, last, multipliers, nodes, areas, out):
    """The most violated group of K rows anchored at each of the cells order[first .. last - 1]; returns the look-ups.

    nodes int64 limit of the search of one anchor; when it is reached, ``out.excess`` is the bound of the open branches
    areas ``AreaColumn`` of the column with connected sets of areas; None if there is none
    O((last - first) m d) for the balls at worst, and nodes (r d + r log r) for a ball of r rows.
    """
    price, order, count, group = multipliers.price, multipliers.order, cells.count, cells.group
    m, d = cells.code.shape
    rows, looks = 0, 0
    offset, axes = axes_of(cells)
    for i in range(m):
        rows += min(count[i], group)
    search = search_room(rows + group, d, group, axes)
    other_values, taken = room_for_values(cells, search), taken_areas(areas, group)
    where = Where(offset, areas, taken)
    anchored = _room_for_anchors(cells, index)
    ball, lost = np.empty(m, np.int64), np.empty(m)
    # For each anchor, its ball is found and reduced; then the search begins.
    for x in range(first, last):
        a = order[x]
        out.excess[a], out.found[a] = 0.0, -1.0
        if price[a] <= 0.0:
            continue
        _anchor(cells, index, a, anchored)
        some, looked = _ball(cells, index, multipliers, a, anchored, ball, lost)
        looks += looked
        size = _members(cells, multipliers, a, ball[:some], lost[:some], search, other_values)
        size = _shrunk(cells, search, size, a, price[a])
        if size == 0:
            continue
        out.excess[a], looked = _deepest(cells, search, other_values, size, (a, price[a]), nodes, where, out)
        looks += looked
    return looks


@njit(cache=True, nogil=True)
def separate_around_lone(cells, index, first, last, multipliers, nodes, out):
    """The most violated group of more than K rows in which each of these anchors alone has its value; the look-ups.

    This is a kernel of its own, because most requests never need it. It runs after ``separate``, whose ``out.excess``
    it raises.
    """
    looks, (offset, axes) = 0, axes_of(cells)
    around, anchored = room_for_lone(cells, axes), _room_for_anchors(cells, index)
    for x in range(first, last):
        a = multipliers.order[x]
        _anchor(cells, index, a, anchored)
        size, looked = _around(cells, index, multipliers, a, anchored, around)
        looks += looked
        if size > 0:
            asks(cells, around, a, size, offset, -1)
            most, out.more[x - first], looked = around_lone(
                around, size, multipliers.price[a], cells.group, nodes, offset.size, out.lone[x - first]
            )
            out.excess[a] = max(out.excess[a], most)
            looks += looked
    return looks


@njit(**INNER)
def axes_of(cells):
    """The first axis of each column, int64[d], and the number of axes: a code of a set, or a direction of a range."""
    offset, axes = np.empty(cells.width.size, np.int64), 0
    for j in range(offset.size):
        offset[j] = axes
        axes += cells.width[j] if cells.sets[j] else 2
    return offset, axes


@njit(**INNER)
def _room_for_anchors(cells, index):
    place, size = places(cells)
    return Anchored(
        place, np.empty(max(1, size)), np.empty(index.center.shape[1]), np.empty(min(AT_ONCE, cells.code.shape[0]))
    )


@njit(**LEAN_INNER)
def _anchor(cells, index, a, anchored):
    """Write down the losses of cell a with every code, and with the centers."""
    write_down(cells, anchored.place, index.column, a, anchored.own)
    losses_with(cells, anchored.place, anchored.own, index.column, a, index.center, 0, anchored.distance)


@njit(**INNER)
def _around(cells, index, multipliers, a, anchored, around):
    """Cells of other values that pay for a box in which only cell a has its value, out; number, and look-ups.

    A cell pays if its multiplier is above its loss together with a. Consecutive cells count as one look-up, because the
    processor compares them fast.
    """
    place, own, distance, scratch = anchored
    price, largest_price, column = multipliers.price, multipliers.largest_price, index.column
    many, looks = 0, distance.size
    for b in range(distance.size):
        begin, end = part_of(index, b, distance[b], largest_price[b]) if largest_price[b] > 0.0 else (0, 0)
        looks += end - begin
        while begin < end:
            here = scratch[: min(end - begin, scratch.size)]
            losses_with(cells, place, own, column, a, column, begin, here)
            for x in range(here.size):
                c = begin + x
                if here[x] < price[c] and cells.value[c] != cells.value[a]:
                    around.cell[many], around.price[many], around.copies[many] = c, price[c], cells.count[c]
                    many += 1
            begin += here.size
    return many, looks


@njit(**LEAN_INNER)
def _ball(cells, index, multipliers, a, anchored, ball, lost):
    """The cells that a group anchored at cell a can contain, and their losses together with it, out; number, look-ups.

    The multipliers of a group with row j sum to at most K - 1 times u(a), plus u(j). Rows of the values that the group
    lacks can have any multipliers.
    """
    price, rank, column, group = multipliers.price, multipliers.rank, index.column, cells.group
    place, own, distance, scratch = anchored
    many, looks, completes = 0, distance.size, may_lack(cells)
    # Of each center, only the cells that its distance cannot exclude are examined, in chunks.
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
    """The cells of the ball by falling multiplier, with their losses, into the search; their number, 0 if values lack.

    Cells with other values than the anchor's go into ``other_values``.
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
    place = np.empty(ball.size)
    for y in range(ball.size):
        place[y] = rank[ball[y]]
    for y in stable_argsort(place):
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
    other_values.many[0], other_values.many[1] = helpers, 0
    if known < distinct - 1:
        return 0
    if distinct > 1:  # every box around the anchor with the values loses as much
        for y in range(size):
            search.loss[y] = max(search.loss[y], other_values.least[distinct - 2])
    return size


@njit(**INNER)
def _shrunk(cells, search, size, a, own):
    """Remove rows that are in no violated group from the ball, until none is left to remove; the number of cells left.

    The multipliers of a group with j sum to at most those of a, j, and the K - 2 largest others of the ball. If the
    group needs two values, one of its rows has another value than a.
    """
    group, value = cells.group, cells.value
    # First the sums of the largest multipliers left, then the cells whose loss these sums can't reach are removed.
    while True:
        rows, top, rest, last, before = 0, 0.0, 0.0, 0.0, 0.0  # of the K - 1 and K - 2 highest-priced rows
        among, near, other, y = False, False, np.int64(-1), 0
        nearest = np.inf
        while y < size and (rows < group - 1 or cells.lone):
            if cells.lone and value[search.cell[y]] != value[a]:
                nearest = min(nearest, search.loss[y])
                if other < 0:
                    other, among, near = y, rows < group - 1, rows < group - 2
            some = min(search.copies[y], group - 1 - rows)
            if some > 0:
                top += some * search.price[y]
                last = search.price[y]
            some = min(some, group - 2 - rows)
            if some > 0:
                rest += some * search.price[y]
                before = search.price[y]
            rows += min(search.copies[y], group - 1 - rows)
            y += 1
        if rows < group - 1 or (cells.lone and other < 0):
            return 0
        mixed = rest  # of the K - 2 highest prices, if they go with a row of the anchor's value
        if cells.lone and not among:
            top += search.price[other] - last
        if cells.lone and not near and group > 2:
            mixed += search.price[other] - before
        kept = 0
        for y in range(size):
            others = min(top, rest + search.price[y])
            if cells.lone and value[search.cell[y]] == value[a]:
                search.loss[y] = max(search.loss[y], nearest)
                others = min(top, mixed + search.price[y]) if group > 2 else -np.inf
            if group * search.loss[y] < own + others:
                search.cell[kept], search.price[kept], search.loss[kept] = (
                    search.cell[y], search.price[y], search.loss[y],
                )  # fmt: skip
                search.copies[kept] = search.copies[y]
                kept += 1
        if kept == size:
            return size
        size = kept


@njit(**INNER)
def take(search, depth, y):
    """Raise the box to contain the cell at index y; the former levels are saved."""
    s = search.saved[depth]
    for e in range(search.start[y], search.start[y + 1]):
        g = search.axis[e]
        if search.amount[e] > search.level[g]:
            search.old[s], search.was[s] = g, search.level[g]
            search.level[g] = search.amount[e]
            s += 1
    search.saved[depth + 1] = s


@njit(**INNER)
def put_back(search, depth):
    """Restore the box before the member of this depth was taken."""
    for s in range(search.saved[depth + 1] - 1, search.saved[depth] - 1, -1):
        search.level[search.old[s]] = search.was[s]


@njit(**INNER)
def _ready(cells, search, depth, skipped):
    """Compute the least loss with any candidate from each index on, without those of the value ``skipped``."""
    n = search.many[depth]
    search.at[depth] = 0
    search.least[depth, n] = np.inf
    for x in range(n - 1, -1, -1):
        search.least[depth, x] = search.least[depth, x + 1]
        if skipped < 0 or cells.value[search.cell[search.member[depth, x]]] != skipped:
            search.least[depth, x] = min(search.least[depth, x], search.joined[depth, x])


@njit(**INNER)
def _into(heap, held, y, new):
    """Insert a number into a min-heap of ``held`` numbers, at index y: the end, or the top to replace the least."""
    while y > 0 and heap[(y - 1) // 2] > new:
        heap[y] = heap[(y - 1) // 2]
        y = (y - 1) // 2
    while 2 * y + 1 < held:
        below = 2 * y + 1
        if below + 1 < held and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= new:
            break
        heap[y] = heap[below]
        y = below
    heap[y] = new


@njit(**INNER)
def _allows(search, depth, first, need, group, heap, enough):
    """An upper bound of the violation of a group of the members and ``need`` candidates from index ``first`` on.

    enough  the bound is not needed if it is above this number; then any number above is returned

    If t is the largest loss of a box of the members and one candidate of the group, its candidates are among those up
    to t, so the sum is at most that of their ``need`` largest multipliers, and the group loses at least K t.
    """
    n = search.many[depth] - first
    if enough < np.inf and n >= need:  # the most expensive candidates are the first
        total, most = search.sum[depth], 0.0
        for x in range(first, first + need):
            total += search.price[search.member[depth, x]]
            most = max(most, search.joined[depth, x])
        if total - group * most > enough:
            return total - group * most
    order = stable_argsort(search.joined[depth, first : first + n])
    held, total, best = 0, search.sum[depth], -np.inf
    for z in range(n):
        x = first + order[z]
        new = search.price[search.member[depth, x]]
        if held < need:
            held += 1
            total += new
            _into(heap, held, held - 1, new)
        elif new > heap[0]:
            total += new - heap[0]
            _into(heap, held, 0, new)
        if held == need:
            best = max(best, total - group * search.joined[depth, x])
            if best > enough:
                return best
    return best


@njit(**INNER)
def _pay_with(search, rows, group, heap):
    """A bound for each candidate of the first depth: what ``rows`` others add to a group, less K times its loss.

    The group's loss t is at least that of the anchor and the candidate, and each of its rows loses at most t together
    with the anchor.
    """
    many, others = search.many[1], search.others
    order = stable_argsort(search.joined[1, :many])
    held, total = 0, 0.0
    for z in range(many):
        x = order[z]
        new = search.price[search.member[1, x]]
        if held < rows:
            held += 1
            total += new
            _into(heap, held, held - 1, new)
        elif rows > 0 and new > heap[0]:
            total += new - heap[0]
            _into(heap, held, 0, new)
        others[x] = total - group * search.joined[1, x] if held == rows else -np.inf
    most, z = -np.inf, many - 1
    while z >= 0:
        loss, first = search.joined[1, order[z]], z
        while first >= 0 and search.joined[1, order[first]] == loss:
            most = max(most, others[order[first]])
            first -= 1
        for y in range(first + 1, z + 1):
            others[order[y]] = most
        z = first


@njit(**INNER)
def _parted(search, depth, first, need, group, heap):
    """A second upper bound of the violation of the members and ``need`` candidates, and what the least of these adds.

    On each axis, the group loses as much as the row that requires most there. This is at least the sum of what its new
    rows require, divided by the number of those that do: at most all such candidates, and at most ``need``.
    """
    member, asked, many = search.member[depth], search.asked, search.many[depth]
    for x in range(first, many):
        for e in range(search.start[member[x]], search.start[member[x] + 1]):
            if search.amount[e] > search.level[search.axis[e]]:
                asked[search.axis[e]] += 1
    held, total = 0, search.sum[depth] - group * search.box[depth]
    # A candidate adds its price less its part of the requirements; the ``need`` largest sums stay in a heap.
    for x in range(first, many):
        part = 0.0
        for e in range(search.start[member[x]], search.start[member[x] + 1]):
            g = search.axis[e]
            if search.amount[e] > search.level[g]:
                part += (search.amount[e] - search.level[g]) / min(asked[g], need)
        new = search.price[member[x]] - group * part
        search.net[x] = new
        if held < need:
            y = held
            held += 1
        elif new > heap[0]:
            total -= heap[0]
            y = 0
        else:
            continue
        total += new
        _into(heap, held, y, new)
    for x in range(first, many):
        for e in range(search.start[member[x]], search.start[member[x] + 1]):
            asked[search.axis[e]] = 0
    return (total, heap[0]) if held == need else (-np.inf, 0.0)


@njit(**INNER)
def _kept(search, depth, need, group, heap, enough):
    """Keep the candidates of this depth that can be in a group with a violation above ``enough``; their number."""
    most, least = _parted(search, depth, 0, need, group, heap)
    kept = 0
    for x in range(search.many[depth] if most > enough else 0):
        if search.net[x] >= least or most - least + search.net[x] > enough:
            search.member[depth, kept], search.joined[depth, kept] = search.member[depth, x], search.joined[depth, x]
            kept += 1
    search.many[depth] = kept
    return kept


@njit(**INNER)
def _rest(cells, search, depth, x, need, skipped):
    """The sum of the ``need`` largest multipliers of candidates that can follow the one at index x; -inf if too few."""
    total, y, member = 0.0, 0 if skipped >= 0 else x + 1, search.member[depth]
    while need > 0 and y < search.many[depth]:
        if y > x or cells.value[search.cell[member[y]]] == skipped:
            total += search.price[member[y]]
            need -= 1
        y += 1
    return total if need == 0 else -np.inf


@njit(**INNER)
def _passed_over(cells, search, depth, box, skipped):
    """Whether the box of the members down to this depth, which loses ``box``, contains a candidate passed over before.

    This candidate is at least as expensive as any later one, and could replace the last one without loss.
    skipped  value of the candidates that the first depth leaves for the next ones
    """
    for z in range(1, depth + 1):
        for x in range(search.at[z] - 1):
            if z == 1 and skipped >= 0 and cells.value[search.cell[search.member[z, x]]] == skipped:
                continue
            if search.joined[z, x] <= box + TINY and more_with(search, search.member[z, x]) <= 0.0:
                return True
    return False


@njit(**INNER)
def _deepest(cells, search, other_values, size, anchor, nodes, where, out):
    """The largest violation of a group anchored at a cell, or a bound if the nodes are used up; and the look-ups.

    anchor  the cell and its multiplier; the group goes into ``out``

    Depth first: a node has members, and candidates after the last of them. It is cut off if the most expensive
    candidates left do not pay for the least box with any of them.
    """
    group, completes, (a, own), (offset, areas, taken) = cells.group, may_lack(cells), anchor, where
    # Groups need two values. The first member is the most expensive row of another value than the anchor's, and every
    # later member can have any value.
    mixed = cells.alike == group - 1 and group > 1
    # The proof of ``_passed_over`` fails under shares (too many rows of a value), and with connected areas.
    plain = (cells.alike >= group or mixed) and cells.shares.high.size == 0 and areas_column(areas) < 0
    first = cells.value[a] if mixed else np.int64(-1)
    heap = np.empty(group)
    best, seen, looks = 0.0, 0, 0
    n = 0
    for y in range(size):
        for _ in range(search.copies[y]):
            search.member[1, n], search.joined[1, n] = y, search.loss[y]
            n += 1
    search.many[1], search.sum[1], search.box[1], search.saved[1] = n, own, 0.0, 0
    depth = 1
    if group > 1 and _allows(search, 1, 0, group - 1, group, heap, TINY) <= TINY:
        return 0.0, n
    asks(cells, search, a, size, offset, areas_column(areas))
    looks += n * offset.size
    if group > 1 and _kept(search, 1, group - 1, group, heap, TINY) < group - 1:
        return 0.0, looks
    begin_areas(areas, taken, cells, a)
    if completes:
        nearest_first(other_values)
        asks(cells, other_values, a, other_values.many[0], offset, areas_column(areas))
    _ready(cells, search, 1, first)
    if mixed:
        _pay_with(search, group - 2, group, heap)
    # At each depth the next candidate joins the members, and the later ones that can still pay become the candidates of
    # the depth below. If one of two bounds shows that no group of them violates more, the search doesn't descend.
    while depth > 0:
        x, need, n = search.at[depth], group - depth, search.many[depth]
        skipped = first if depth == 1 else np.int64(-1)
        while x < n and skipped >= 0 and cells.value[search.cell[search.member[1, x]]] == skipped:
            x += 1
        top = -np.inf
        if x < n:
            top = search.sum[depth] + search.price[search.member[depth, x]]
            top += _rest(cells, search, depth, x, need - 1, skipped)
        if top - group * search.least[depth, x] <= best + TINY:
            depth -= 1
            if depth > 0:
                put_back(search, depth)
                put_area_back(areas, taken, depth)
            continue
        search.at[depth] = x + 1
        cost = search.joined[depth, x]
        if top - group * cost <= best + TINY:
            continue
        if skipped >= 0 and own + search.price[search.member[1, x]] + search.others[x] <= best + TINY:
            continue
        y = np.int64(search.member[depth, x])
        search.taken[depth] = y
        if need == 1:
            if completes:
                box = search.box[depth] + more_with(search, y)
                box += more_of_areas(areas, taken, cells, search.cell[y])
                take(search, depth, y)
                take_area(areas, taken, cells, depth, search.cell[y], -1.0)
                cost = completed(cells, search, other_values, where, depth, a, box)
                put_back(search, depth)
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
            most, x = best, search.at[depth] - 1
            while True:  # the open branches, first this one
                if depth == 1 and first >= 0:
                    x = 0  # skipped candidates can follow any
                open_here = _allows(search, depth, x, group - depth, group, heap, np.inf)
                most = max(most, min(open_here, _parted(search, depth, x, group - depth, group, heap)[0]))
                depth -= 1
                if depth == 0:
                    break
                put_back(search, depth)
                put_area_back(areas, taken, depth)
                x = search.at[depth]
            return most, looks + other_values.many[1] * offset.size
        box = search.box[depth] + more_with(search, y) + more_of_areas(areas, taken, cells, search.cell[y])
        take(search, depth, y)
        if plain and _passed_over(cells, search, depth, box, first):
            put_back(search, depth)
            continue
        looks += take_area(areas, taken, cells, depth, search.cell[y], max(top - best, 0.0) / group)
        if completes:
            cost = max(cost, completed(cells, search, other_values, where, depth, a, box))
        full, v = False, cells.value[search.cell[y]]
        if cells.alike < group:
            full = held_of(cells, search, depth, a, v) == cells.alike
        paid = search.sum[depth] + search.price[y]
        below, rows, follow = depth + 1, 0, 0
        rest = _rest(cells, search, depth, x, need - 2, skipped)
        largest_price = _rest(cells, search, depth, x, need - 1, skipped)
        looks += (n - x) * offset.size
        for z in range(0 if skipped >= 0 else x + 1, n):
            c = np.int64(search.member[depth, z])
            if z <= x and (z == x or cells.value[search.cell[c]] != skipped):
                continue
            follow += 1
            if full and cells.value[search.cell[c]] == v:
                continue
            with_it = paid + (largest_price if follow < need else rest + search.price[c])
            if with_it - group * max(cost, search.joined[depth, z]) <= best + TINY:
                continue
            joined = max(cost, box + more_with(search, c) + more_of_areas(areas, taken, cells, search.cell[c]))
            if with_it - group * joined > best + TINY:
                search.member[below, rows], search.joined[below, rows] = c, joined
                rows += 1
        search.many[below], search.sum[below], search.box[below] = rows, paid, box
        cut = rows < need - 1 or _allows(search, below, 0, need - 1, group, heap, best + TINY) <= best + TINY
        if not cut:
            looks += rows * offset.size
            cut = _kept(search, below, need - 1, group, heap, best + TINY) < need - 1
        if cut:
            put_back(search, depth)
            put_area_back(areas, taken, depth)
            continue
        _ready(cells, search, below, np.int64(-1))
        depth = below
    return best, looks + other_values.many[1] * offset.size
