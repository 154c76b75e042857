"""Near cells of every cell: a graph of nearest neighbors, and lower bounds of the distance to all other cells.

Two cells are near if publishing them together loses little. The search of a box around a cell may end if no near cell
remains.

The loss of two cells together is usually a metric: for every column a tree's ultrametric, a distance on a line, or a
constant for all different values. So cells are stored around centers, and the triangle inequality excludes those that
are too far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN, LEAN_INNER, njit
from shoal.kernels.tables.eligible import joined, reorder, stable_argsort

AT_ONCE = 2048  # cells whose losses fit in the fastest cache
AT_FIRST = 64  # of the highest-priced cells, which usually suffice


NOTHING, ENTROPY, EQUAL, ORDERED = -1, 1, 3, 4  # as in ``eligible``


class ValueShares(NamedTuple):
    """The conditions on the shares of a sensitive column's v values in every eligible group.

    high float64[v]: the largest share of each value;  low: float64[v], the least; both empty without conditions
    needed int64[x]: the values that every group contains
    kind, number     a further model, with its parameter
    table float64[v]: share in the whole table (EQUAL), the same cumulated (ORDERED), 1 if the table has it (ENTROPY)
    """

    high: np.ndarray
    low: np.ndarray
    needed: np.ndarray
    kind: int
    number: float
    table: np.ndarray


class CellTable(NamedTuple):
    """A table of m cells and d columns, the losses of two rows together, and the conditions of a group.

    losses float64[..]  loss of codes a and b of column j together, if they differ. shape[j] 0: losses[at[j] + a *
                        width[j] + b]; 1: |losses[at[j] + a] - losses[at[j] + b]|; 2: losses[at[j]]
    at, shape, width int64[d]        offset, form, and number of codes of each column
    code int32[m, d], sets bool[d]   codes of the cells; the columns published as sets
    count, value int64[m]            rows and sensitive value of each cell
    distinct int64      least number of different values in a group; 1: no condition
    group int64         K, the least size of a group
    alike int64         every eligible group contains K rows of which at most so many have the same value; K without
                        shares
    shares              conditions on the shares of the values
    lone bool           whether to include groups with one row of a value and K or more rows of others
    """

    losses: np.ndarray
    at: np.ndarray
    shape: np.ndarray
    width: np.ndarray
    code: np.ndarray
    sets: np.ndarray
    count: np.ndarray
    value: np.ndarray
    distinct: int
    group: int
    alike: int
    shares: ValueShares
    lone: bool


@njit(**INNER)
def pair_loss(cells, j, a, b):
    """The loss of two different codes of a column published together."""
    losses, at, shape = cells.losses, cells.at, cells.shape
    if shape[j] == 0:
        return losses[at[j] + a * cells.width[j] + b]
    if shape[j] == 2:
        return losses[at[j]]
    return abs(losses[at[j] + a] - losses[at[j] + b])


@njit(**INNER)
def _value(values, least, held, distinct, value, distance):
    """Add a row of a value at a distance to the ``distinct`` nearest values, nearest first; returns their number."""
    y = 0
    while y < held and values[y] != value:
        y += 1
    if y == held:
        if held == distinct:
            y = held - 1
        else:
            held += 1
    elif least[y] <= distance:
        return held
    while y > 0 and least[y - 1] > distance:
        values[y], least[y] = values[y - 1], least[y - 1]
        y -= 1
    values[y], least[y] = value, distance
    return held


@njit(**INNER)
def _nearer(near, far_of, held, most, c, distance):
    """Add cell c to the ``most`` nearest cells, a heap with the farthest first; returns their number."""
    if held < most:
        y = held
        held += 1
        while y > 0 and far_of[(y - 1) // 2] < distance:
            far_of[y], near[y] = far_of[(y - 1) // 2], near[(y - 1) // 2]
            y = (y - 1) // 2
    else:
        y = 0
        while 2 * y + 1 < most:
            below = 2 * y + 1
            if below + 1 < most and far_of[below + 1] > far_of[below]:
                below += 1
            if far_of[below] <= distance:
                break
            far_of[y], near[y] = far_of[below], near[below]
            y = below
    far_of[y], near[y] = distance, c
    return held


@njit(**INNER)
def _rising(near, far_of, held):
    """The cells of the heap, nearest first; ties in order of first."""
    number = np.empty(held)
    for y in range(held):
        number[y] = near[y]
    reorder(near, far_of, stable_argsort(number))
    reorder(near, far_of, stable_argsort(far_of[:held]))


@njit(**INNER)
def _proved(near, far_of, held, known, least, cells, own):
    """A lower bound of a row's loss: the (K - 1)-th least loss, or the least at which enough values are reached."""
    out = least[cells.distinct - 1] if known == cells.distinct else 0.0
    rows, y = cells.count[own], 0
    while rows < cells.group and y < held:
        rows += cells.count[near[y]]
        y += 1
    return max(out, far_of[y - 1]) if y else out


class CenterIndex(NamedTuple):
    """Cells stored around centers: those of center b are start[b] .. start[b + 1] - 1, by increasing loss with it.

    column uint32[d, m]  codes of the cells
    center uint32[d, c]  codes of the centers, which need not be those of a cell
    start int64[c + 1]
    far   float64[m]     loss of each cell together with its center;  own: int32[m], its center
    rim   float64[c]     the largest loss among each center's cells, below 0 if it has none
    next  int32[c, c]    centers by increasing loss together with each
    metric bool          whether losses satisfy the triangle inequality; otherwise nothing is excluded
    """

    column: np.ndarray
    center: np.ndarray
    start: np.ndarray
    far: np.ndarray
    own: np.ndarray
    rim: np.ndarray
    next: np.ndarray
    metric: bool


WIDE = 1024  # above this many codes, losses of a line's codes aren't tabulated for every cell
MARGIN = 1e-9  # tolerance of sums of losses
ASK = 24  # most codes that are tried for a center in a column
HEARD = 64  # most of its cells with which they are compared


@njit(**INNER)
def places(cells):
    """int64[d]: where the losses of each column's codes together with one code are stored, -1 for none.

    And the total size.
    """
    d = cells.width.size
    out, total = np.empty(d, np.int64), 0
    for j in range(d):
        if cells.shape[j] == 0 or (cells.shape[j] == 1 and cells.width[j] <= WIDE):
            out[j] = total
            total += cells.width[j]
        else:
            out[j] = -1
    return out, total


@njit(**LEAN_INNER)
def write_down(cells, place, column, i, own):
    """Tabulate the losses of every code of every column together with those of column[:, i]: out, float64[..]."""
    losses, at, width = cells.losses, cells.at, cells.width
    for j in range(width.size):
        if place[j] < 0:
            continue
        a, here = np.int64(column[j, i]), own[place[j] : place[j] + width[j]]
        if cells.shape[j] == 0:
            first = at[j] + a * width[j]
            for x in range(width[j]):
                here[x] = losses[first + x]
        else:
            for x in range(width[j]):
                here[x] = abs(losses[at[j] + x] - losses[at[j] + a])
        here[a] = 0.0


@njit(**LEAN_INNER)
def losses_with(cells, place, own, column, i, codes, begin, distance):
    """The losses of column[:, i], tabulated, together with codes[:, begin ..], float64[..]: out.

    Column by column, without branches in the loops, so that the compiler can vectorize them.
    """
    losses, at, shape, width = cells.losses, cells.at, cells.shape, cells.width
    for c in range(distance.size):
        distance[c] = 0.0
    for j in range(place.size):
        code = codes[j, begin : begin + distance.size]
        if place[j] >= 0:
            row = own[place[j] : place[j] + width[j]]
            for c in range(distance.size):
                distance[c] += row[code[c]]
        elif shape[j] == 2:
            loss, same = losses[at[j]], column[j, i]
            for c in range(distance.size):
                distance[c] += 0.0 if code[c] == same else loss
        else:
            line = losses[at[j] : at[j] + width[j]]
            here = line[column[j, i]]
            for c in range(distance.size):
                distance[c] += abs(line[code[c]] - here)


@njit(**LEAN_INNER)
def first_above(far, first, last, least):
    """The index of the first number above ``least`` in an ascending range."""
    while first < last:
        middle = (first + last) // 2
        if far[middle] > least:
            last = middle
        else:
            first = middle + 1
    return first


@njit(**LEAN_INNER)
def part_of(index, b, distance, limit):
    """The range of cells of center b that may lose less than ``limit`` together with a cell at ``distance`` from b."""
    first, last = index.start[b], index.start[b + 1]
    if not index.metric or not limit < np.inf:
        return first, last
    more = limit + MARGIN * (1.0 + distance)
    if distance - more > index.rim[b]:
        return last, last
    first = first_above(index.far, first, last, distance - more)
    return first, first_above(index.far, first, last, distance + more)


@njit(cache=True, nogil=True)
def nearest_centers(cells, column, center, first, last, own, far):
    """The nearest center int32[m] of cells, codes uint32[d, m], and their losses together, float64[m]: out.

    O((last - first) c d).
    """
    place, size = places(cells)
    row, distance = np.empty(max(1, size)), np.empty(center.shape[1])
    for i in range(first, last):
        write_down(cells, place, column, i, row)
        losses_with(cells, place, row, column, i, center, 0, distance)
        own[i] = np.argmin(distance)
        far[i] = distance[own[i]]


@njit(cache=True, nogil=True)
def next_centers(cells, center, first, last, following):
    """Centers by increasing loss together with each center of a range, int32[c, c]: out.

    O((last - first) c (d + log c)).
    """
    place, size = places(cells)
    row, distance = np.empty(max(1, size)), np.empty(center.shape[1])
    for b in range(first, last):
        write_down(cells, place, center, b, row)
        losses_with(cells, place, row, center, b, center, 0, distance)
        order = stable_argsort(distance)
        for y in range(order.size):
            following[b, y] = order[y]


@njit(**LEAN)
def recentered(cells, column, start, member, center):
    """Move each center, column by column, to the code that loses least together with its cells.

    center uint32[d, c]: in and out;  those of b are column[:, member[start[b] .. start[b + 1] - 1]]
    O(c d) for the sampled cells.
    """
    losses, at, shape, width = cells.losses, cells.at, cells.shape, cells.width
    # Of a large part only some codes are tried, on a sample of cells.
    for b in range(center.shape[1]):
        many = start[b + 1] - start[b]
        ask, hear = max(1, many // ASK), max(1, many // HEARD)
        for j in range(center.shape[0]):
            best = np.inf
            for y in range(start[b], start[b + 1], ask):
                x, total = np.int64(column[j, member[y]]), 0.0
                for z in range(start[b], start[b + 1], hear):
                    c = np.int64(column[j, member[z]])
                    if c == x:
                        continue
                    if shape[j] == 0:
                        total += losses[at[j] + x * width[j] + c]
                    elif shape[j] == 2:
                        total += losses[at[j]]
                    else:
                        total += abs(losses[at[j] + x] - losses[at[j] + c])
                if total < best:
                    best, center[j, b] = total, x


@njit(cache=True, nogil=True)
def near_cells(cells, index, first, last, near, far, out):
    """The cells nearest to each cell, and lower bounds of its rows' loss together with their nearest rows.

    cells                first .. last - 1 are processed;  K is at most one more than the width of ``near``
    near int32[m, w]: out: nearest first, -1 after the last;  far float64[m]: out: lower bound of the loss together with
    all others, infinite if there are none
    out float64[m]: out: the (K - 1)-th least loss with another row, or the least at which enough values are reached
    Returns the number of look-ups.
    O((last - first) m d) at worst.
    """
    looks = (last - first) * index.center.shape[1]
    column, center, following = index.column, index.center, index.next
    m, most, value, distinct = column.shape[1], near.shape[1], cells.value, cells.distinct
    far_of, values, least = np.empty(most + 1), np.empty(distinct + 1, np.int64), np.empty(distinct + 1)
    place, size = places(cells)
    own, distance, scratch = np.empty(max(1, size)), np.empty(center.shape[1]), np.empty(min(AT_ONCE, m))
    for i in range(first, last):
        held, known = 0, _value(values, least, 0, distinct, value[i], 0.0)
        write_down(cells, place, column, i, own)
        losses_with(cells, place, own, column, i, center, 0, distance)
        # Parts of the index, those near the cell's own first; of each only the cells that the center's distance can't
        # exclude.
        for z in range(center.shape[1]):
            limit, b = np.inf, following[index.own[i], z]
            if held == most and known == distinct:
                limit = max(far_of[0] if most else 0.0, least[distinct - 1])
            begin, end = part_of(index, b, distance[b], limit)
            looks += end - begin
            while begin < end:
                here = scratch[: min(end - begin, scratch.size)]
                losses_with(cells, place, own, column, i, column, begin, here)
                for x in range(here.size):
                    c, t = begin + x, here[x]
                    close = most > 0 and (held < most or t < far_of[0])
                    if c == i or not (close or known < distinct or t < least[distinct - 1]):
                        continue
                    if known < distinct or t < least[distinct - 1]:
                        known = _value(values, least, known, distinct, value[c], t)
                    if close:
                        held = _nearer(near[i], far_of, held, most, c, t)
                begin += here.size
        _rising(near[i], far_of, held)
        near[i, held:] = -1
        far[i] = far_of[held - 1] if held == most and m - 1 > most else np.inf
        out[i] = _proved(near[i], far_of, held, known, least, cells, i)
    return looks * place.size


class CellsByPrice(NamedTuple):
    """Cells by descending price.

    price, base float64[m]: of a row; the loss of any box of a cell
    order int64[m], column uint32[d, m]: the cells in this order, and their codes
    """

    price: np.ndarray
    base: np.ndarray
    order: np.ndarray
    column: np.ndarray


class Nearest(NamedTuple):
    """The cells nearest to each cell, near int32[m, w], and a lower bound for all others, far float64[m]."""

    near: np.ndarray
    far: np.ndarray


@njit(cache=True, nogil=True)
def far_slack(cells, codes, first, last, by_price, nearest, out):
    """A lower bound of the slack of boxes with a far cell: the least of K c minus the prices of K of their rows.

    codes uint32[d, m]  of the cells;  by_price, nearest: ``CellsByPrice``, ``Nearest``, where far is for any box with
                        such a cell
    out float64[m]
    Such a box loses at least what the cell and any other cell in it lose together, so only its highest-priced other row
    counts.
    O((last - first) m d) at worst.
    """
    (price, base, order, column), (near, far) = by_price, nearest
    m, count, group = column.shape[1], cells.count, cells.group
    place, size = places(cells)
    scratch, own = np.empty(min(AT_ONCE, m)), np.empty(max(1, size))
    # Cells by descending price, until even the highest price of the rest would leave more than the least slack so far.
    for i in range(first, last):
        write_down(cells, place, codes, i, own)
        least, best = max(far[i], base[i]), np.inf
        for y in range(near.shape[1]):  # near cells first, so that few others have to be examined
            c = near[i, y]
            if c >= 0:
                best = min(best, group * max(least, base[c]) - (group - 1) * price[c] - price[i])
        begin, many = 0, min(AT_FIRST, scratch.size)
        while begin < m and group * least - (group - 1) * price[order[begin]] - price[i] < best:
            distance = scratch[: min(many, m - begin)]
            losses_with(cells, place, own, codes, i, column, begin, distance)
            for x in range(distance.size):
                c = order[begin + x]
                if c != i or count[i] > 1:
                    best = min(best, group * max(least, base[c], distance[x]) - (group - 1) * price[c] - price[i])
            begin, many = begin + distance.size, min(2 * many, scratch.size)
        out[i] = best


@njit(**LEAN_INNER)
def _offer(near, far, held, b, d):
    """Insert b at distance d into a list sorted by distance; returns its length."""
    w = near.size
    for y in range(held):
        if near[y] == b:
            return held
    if held == w:
        if d >= far[w - 1]:
            return held
        y = w - 1
    else:
        y = held
        held += 1
    while y > 0 and far[y - 1] > d:
        near[y], far[y] = near[y - 1], far[y - 1]
        y -= 1
    near[y], far[y] = b, d
    return held


class Orders(NamedTuple):
    """Several orders of all cells.

    order  int64[o, m]: cells in each
    rank   int64[o, m]: their positions
    reach  int64: positions examined on each side
    """

    order: np.ndarray
    rank: np.ndarray
    reach: int


@njit(**LEAN)
def windows(slots, leaf, orders, low, high, near, far):
    """Initialize the graph: for every cell, the nearest of the cells that are close to it in some of the orders.

    leaf int64[m, t]: slots of each cell; orders: ``Orders``; low, high: the range of cells
    near int32[m, w], far float64[m, w]: out, by increasing loss; -1 and inf after the last
    O((high - low) o reach t).
    """
    order, rank, reach = orders
    m = leaf.shape[0]
    for a in range(low, high):
        near[a, :] = -1
        far[a, :] = np.inf
        held = 0
        for o in range(order.shape[0]):
            middle = rank[o, a]
            for y in range(max(middle - reach, 0), min(middle + reach + 1, m)):
                b = order[o, y]
                if b != a:
                    limit = far[a, -1]
                    d = joined(slots, leaf[a], leaf[b], limit)
                    if d < limit:
                        held = _offer(near[a], far[a], held, b, d)


@njit(**LEAN)
def descend(slots, leaf, old, low, high, near, far, stamp):
    """One pass of neighbor descent: the neighbors of a cell's neighbors become candidates.

    old int32[m, w]: the previous graph; near, far: out for the cells low .. high, in: as in old.
    stamp int32[m]: working array, all -1
    O((high - low) w^2 t).
    """
    w = old.shape[1]
    # The cell itself, its neighbors, and each candidate are stamped, so that nothing is examined twice.
    for a in range(low, high):
        stamp[a] = a
        held = 0
        while held < w and old[a, held] >= 0:
            stamp[old[a, held]] = a
            held += 1
        for y in range(held):
            b = old[a, y]
            for z in range(w // 2):  # the nearer half
                c = old[b, z]
                if c < 0:
                    break
                if stamp[c] == a:
                    continue
                stamp[c] = a
                limit = far[a, w - 1]
                d = joined(slots, leaf[a], leaf[c], limit)
                if d < limit:
                    held = max(held, _offer(near[a], far[a], held, c, d))


@njit(cache=True, nogil=True)
def between(slots, state, one, other):
    """float64[g]: how much nearer each group is to one group than to another; state int64[g, t]."""
    out = np.empty(state.shape[0])
    for g in range(out.size):
        out[g] = joined(slots, state[g], state[one], np.inf) - joined(slots, state[g], state[other], np.inf)
    return out
