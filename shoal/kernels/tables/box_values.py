"""Lower bounds of a box's loss from values that its members lack: missing values, and rows that shares require.

If groups need different values, the box must contain rows of the values that the members lack. So it loses at least
what the members lose together with the nearest row of as many missing values as are needed.

A condition on shares is an inequality: "the weights of the values, one for each row, sum to at most 0 in an eligible
group". If the members violate it, the box contains further rows of values of negative weight. So it loses at least what
the members lose together with the last of as many of these rows, nearest first.

If groups need two different values, a single row of its value suffices for any number of rows of others. The last part
of the module searches for these larger groups: the box with a lone row whose rows exceed its loss by the most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, njit
from shoal.kernels.tables.connected_sets import more_of_areas
from shoal.kernels.tables.eligible import reorder, stable_argsort
from shoal.kernels.tables.near_cells import ENTROPY, EQUAL, ORDERED, _value, pair_loss

TINY = 1e-13
WHOLE = 1e-6  # tolerance of a number of rows
OF_ONE = 4  # values or cells that are skipped in the time of one look-up of all columns
FURTHER = 2  # times K: limit of the further rows of a group


class OtherValues(NamedTuple):
    """Rows that can supply the values that a group lacks: of other values than the anchor's, or under shares of any.

    cell int32[m], loss float64[m]  the cells by rising loss together with the anchor, and that loss
    start, axis, amount             what each requires on the axes, as in ``BoxSearch``
    level float64[e]                the levels of the search, the same array
    many int64[2]                   number of cells, and the time for values and shares, in look-ups of a cell
    values, least [x]               nearest values or rows and their losses, for one box at a time
    weight float64[v]               weight of a row of each value, for one inequality at a time
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
def may_lack(cells):
    """Whether a group can lack rows of some values, which its box must contain."""
    return cells.distinct > 1 or cells.shares.high.size > 0


@njit(**INNER)
def room_for_values(cells, search):
    """The arrays for all cells; empty if there is no condition on values."""
    (rows, d), whole = cells.code.shape, np.int64
    if not may_lack(cells):
        rows = 0
    size = max(cells.distinct + 1, FURTHER * cells.group)
    return OtherValues(
        np.empty(rows, np.int32), np.empty(rows), np.empty(rows + 1, whole), np.empty(rows * d, whole),
        np.empty(rows * d), search.level, np.zeros(2, whole), np.empty(size, whole), np.empty(size),
        np.empty(cells.shares.high.size),
    )  # fmt: skip


@njit(**INNER)
def nearest_first(other_values):
    """Sort the other cells by rising loss."""
    many = other_values.many[0]
    reorder(other_values.cell, other_values.loss, stable_argsort(other_values.loss[:many]))


@njit(**INNER)
def asks(cells, search, a, size, offset, apart):
    """What each cell of the ball requires on the axes of a box around cell a; without column ``apart``, -1 for none."""
    losses, at, shape, code = cells.losses, cells.at, cells.shape, cells.code
    e = 0
    # An axis is a code of a set, or one of the two directions in which a range grows. Columns with classes of a
    # hierarchy have one axis.
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
def more_with(search, y):
    """The further loss of a box when it takes in the cell at index y."""
    more = 0.0
    for e in range(search.start[y], search.start[y + 1]):
        beyond = search.amount[e] - search.level[search.axis[e]]
        if beyond > 0.0:
            more += beyond
    return more


@njit(**INNER)
def held_of(cells, search, depth, a, value):
    """How many of the anchor and the members down to this depth have the value."""
    held = np.int64(cells.value[a] == value)
    for z in range(1, depth + 1):
        held += cells.value[search.cell[search.taken[z]]] == value
    return held


@njit(**INNER)
def completed(cells, search, other_values, where, depth, a, box):
    """A lower bound of the loss of a box with these members, which lose ``box``, and the values that they lack."""
    lost = box
    if cells.shares.high.size > 0:
        lost = _by_shares(cells, search, other_values, where, depth, a, box)
    missing = cells.distinct - 1
    for z in range(1, depth + 1):
        missing -= held_of(cells, search, z - 1, a, cells.value[search.cell[search.taken[z]]]) == 0
    if missing <= 0 or lost == np.inf:
        return lost
    known, least, y = 0, other_values.least, 0
    for y in range(other_values.many[0]):
        if known == missing and (other_values.loss[y] >= least[missing - 1] or least[missing - 1] <= lost):
            break  # all others lose as much, or the box itself does
        v = cells.value[other_values.cell[y]]
        if held_of(cells, search, depth, a, v) == 0:
            other_values.many[1] += 1
            loss = box + more_with(other_values, y)
            loss += more_of_areas(where.areas, where.taken, cells, other_values.cell[y])
            if known < missing or loss < least[missing - 1]:
                known = _value(other_values.values, least, known, missing, v, loss)
    other_values.many[1] += (y + depth) // OF_ONE
    return max(lost, least[missing - 1]) if known == missing else np.inf


@njit(**INNER)
def _by_shares(cells, search, other_values, where, depth, a, box):
    """A lower bound of the loss of a box with these members, which lose ``box``, after conditions on shares are met."""
    shares, n, lost, values = cells.shares, depth + 1, box, cells.value
    weight, number = other_values.weight, cells.shares.number
    other_values.many[1] += (n * (n + shares.needed.size) + weight.size) // OF_ONE
    rows, common, most = 0, np.int64(-1), 0
    for z in range(n):  # a value that is too common requires rows of others
        v = values[a] if z == 0 else values[search.cell[search.taken[z]]]
        held = held_of(cells, search, depth, a, v)
        more = np.int64(np.ceil((held - n * shares.high[v]) / shares.high[v] - WHOLE))
        if more > rows:
            rows, common = more, v
        most = max(most, held)
    if rows > 0:
        weight[:] = -1.0
        weight[common] = 1.0
        lost = _with_further(cells, search, other_values, where, depth, a, (box, lost), rows)
    for v in shares.needed:
        rows = np.int64(np.ceil(max(n, cells.group) * shares.low[v] - WHOLE)) - held_of(cells, search, depth, a, v)
        if rows > 0:
            weight[:] = 1.0
            weight[v] = -1.0
            lost = _with_further(cells, search, other_values, where, depth, a, (box, lost), rows)
    rows = 0
    if shares.kind == ENTROPY:
        rows = _spread(cells, search, depth, a, most)
        for v in range(weight.size):
            weight[v] = -1.0 if held_of(cells, search, depth, a, v) < most else 1.0
    elif shares.kind == EQUAL:
        below, missing = 1.0, float(n)  # share of the table, and rows, of values that are too rare
        for z in range(n):
            v = values[a] if z == 0 else values[search.cell[search.taken[z]]]
            held = held_of(cells, search, depth, a, v)
            if held >= n * shares.table[v]:
                missing -= 1.0
                below -= shares.table[v] / held
        rows = np.int64(np.ceil((n * (below - number) - missing) / (1.0 + number - below) - WHOLE))
        for v in range(weight.size if rows > 0 else 0):
            weight[v] = -1.0 if held_of(cells, search, depth, a, v) < n * shares.table[v] else 1.0
    elif shares.kind == ORDERED:
        rows = _in_order(cells, search, depth, a, weight)
    if rows > 0:
        lost = _with_further(cells, search, other_values, where, depth, a, (box, lost), rows)
    return lost


@njit(**INNER)
def _spread(cells, search, depth, a, most):
    """The least number of rows of less common values than the commonest, with ``most`` rows, that entropy requires.

    The entropy is largest if they are spread as evenly as possible.
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
    """The number of rows of negative weight that the ordered distance requires, and the weights, out.

    The distance is at least the sum of the differences of the cumulated shares with any signs; with the signs that they
    have for the members, this is a mean over the rows.
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
            sign = 1.0 if run >= n * upto - WHOLE else -1.0  # the same on any machine if they are equal
        apart += sign * (run - n * upto)
        table += sign * upto
        weight[v] = sign
        before = upto
    after, least = -table - shares.number, 0.0
    for v in range(weight.size - 1, -1, -1):
        present = weight[v] != 0.0
        after += weight[v]
        weight[v] = after
        if present:  # no row has another value
            least = min(least, after)
    over = apart - n * shares.number
    if over <= WHOLE:
        return np.int64(0)
    return np.int64(np.ceil(over / -least - WHOLE)) if least < 0.0 else np.int64(FURTHER * cells.group)


@njit(**INNER)
def _with_further(cells, search, other_values, where, depth, a, known, rows):
    """A lower bound of the loss of a box with so many further rows of values of negative weight, one at a time.

    known  the loss without them, and the bound so far
    """
    (box, lost), least, weight = known, other_values.least, other_values.weight
    rows, found = min(rows, FURTHER * cells.group), 0
    y = 0
    # The cells come by rising loss. The ``rows`` least losses of the box with one of them are kept, sorted, until no
    # later cell can be among them.
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
        other_values.many[1] += 1
        loss = box + more_with(other_values, y)
        loss += more_of_areas(where.areas, where.taken, cells, c)
        while free > 0 and (found < rows or loss < least[rows - 1]):
            x = found if found < rows else rows - 1
            found = min(found + 1, rows)
            while x > 0 and least[x - 1] > loss:
                least[x] = least[x - 1]
                x -= 1
            least[x] = loss
            free -= 1
    other_values.many[1] += y // OF_ONE
    return max(lost, least[rows - 1]) if found == rows else np.inf


DEEP = 100  # limit of the depth of the search around a lone row


class AroundLone(NamedTuple):
    """Arrays of one search around a lone row: m cells, d columns, e axes.

    cell int32[m], copies int64[m], price float64[m]  cells of other values that can pay for a box with the lone row,
                              their rows and multipliers
    start, axis, amount       what each requires on the axes, and level float64[e], as in ``BoxSearch``
    left int32[DEEP, m], many int64[DEEP]  by depth: the cells that the box can still contain
    box, open float64[DEEP]   loss of the box, and bound of the violation of groups below
    split int64[DEEP], above, was float64[DEEP], taken bool[DEEP]  axis to branch on, least amount of the cells inside
                              or outside, former level, and whether the branch with the amount inside is being explored
    joined float64[m], heap int32[m]  for one node at a time: loss of the box with each cell left, and a heap of those
                              that pay for some loss
    """

    cell: np.ndarray
    copies: np.ndarray
    price: np.ndarray
    start: np.ndarray
    axis: np.ndarray
    amount: np.ndarray
    level: np.ndarray
    left: np.ndarray
    many: np.ndarray
    box: np.ndarray
    open: np.ndarray
    split: np.ndarray
    above: np.ndarray
    was: np.ndarray
    taken: np.ndarray
    joined: np.ndarray
    heap: np.ndarray


@njit(**INNER)
def room_for_lone(cells, axes):
    """The arrays for all cells."""
    (rows, d), whole, deep = cells.code.shape, np.int64, DEEP
    return AroundLone(
        np.empty(rows, np.int32), np.empty(rows, whole), np.empty(rows), np.empty(rows + 1, whole),
        np.empty(rows * d, whole), np.empty(rows * d), np.zeros(axes), np.empty((deep, rows), np.int32),
        np.zeros(deep, whole), np.zeros(deep), np.zeros(deep), np.zeros(deep, whole), np.zeros(deep), np.zeros(deep),
        np.zeros(deep, np.bool_), np.empty(rows), np.empty(rows, np.int32),
    )  # fmt: skip


@njit(**INNER)
def _push_by_price(around, held, x):
    """Insert cell x into the min-heap of cells that pay, by price."""
    heap, price, y = around.heap, around.price, held
    while y > 0 and price[heap[(y - 1) // 2]] > price[x]:
        heap[y] = heap[(y - 1) // 2]
        y = (y - 1) // 2
    heap[y] = x


@njit(**INNER)
def _without_cheapest(around, held):
    """Remove the first cell of the heap."""
    heap, price, y = around.heap, around.price, 0
    x = heap[held - 1]
    while 2 * y + 1 < held - 1:
        below = 2 * y + 1
        if below + 1 < held - 1 and price[heap[below + 1]] < price[heap[below]]:
            below += 1
        if price[heap[below]] >= price[x]:
            break
        heap[y] = heap[below]
        y = below
    heap[y] = x


@njit(**INNER)
def _paid_at_most(around, depth, own, group, best):
    """A bound of the violation of groups of the lone row and cells left; the largest loss of one above ``best``.

    A group that loses t has only cells with which the box so far loses at most t, and the price of each of them is
    above t.
    """
    left, price, copies, joined = around.left[depth], around.price, around.copies, around.joined
    order = stable_argsort(joined[: around.many[depth]])
    held, rows, paid, most, last, z = 0, 0, 0.0, -np.inf, -1.0, 0
    # For each loss t, the heap contains the cells with which the box loses at most t and whose price is above t.
    while z < order.size:
        t = joined[order[z]]
        while z < order.size and joined[order[z]] <= t:
            x = left[order[z]]
            _push_by_price(around, held, x)
            held += 1
            rows += copies[x]
            paid += copies[x] * price[x]
            z += 1
        while held > 0 and price[around.heap[0]] <= t:
            x = around.heap[0]
            rows -= copies[x]
            paid -= copies[x] * price[x]
            _without_cheapest(around, held)
            held -= 1
        if rows >= group:
            over = own - t + paid - rows * t
            most = max(most, over)
            if over > best:
                last = t
    return most, last


@njit(**INNER)
def _cells_left(around, depth, group, own, best, out):
    """Keep the cells that pay for a box with them; whether all are inside the box, and the violation of the box itself.

    If this is above ``best``, the group is written to ``out``, int32[w], if it fits.
    """
    left, price, level, joined = around.left[depth], around.price, around.level, around.joined
    kept, rows, over = 0, 0, own - around.box[depth]
    inside = True
    for y in range(around.many[depth]):
        x, loss = left[y], around.box[depth]
        for e in range(around.start[x], around.start[x + 1]):
            beyond = around.amount[e] - level[around.axis[e]]
            if beyond > 0.0:
                loss += beyond
        if loss >= price[x]:
            continue
        left[kept], joined[kept] = x, loss
        kept += 1
        if loss <= around.box[depth] + TINY:
            joined[kept - 1] = around.box[depth]
            rows += around.copies[x]
            over += around.copies[x] * (price[x] - around.box[depth])
        else:
            inside = False
    around.many[depth] = kept
    if rows < group or over <= best:
        return inside, -np.inf
    written = 0
    for y in range(kept):
        if joined[y] <= around.box[depth]:
            for _ in range(around.copies[left[y]]):
                if written < out.size:
                    out[written] = around.cell[left[y]]
                written += 1
    if written < out.size:
        out[written:] = -1
    elif written > out.size:
        out[:] = -1
    return inside, over


@njit(**INNER)
def _split(around, depth, last):
    """Choose the axis and amount to branch on: the largest requirement of the outside cell that would pay most."""
    left, joined = around.left[depth], around.joined
    kept, best, most = 0, -1, -np.inf
    for y in range(around.many[depth]):
        if joined[y] > last:
            continue
        x = left[y]
        left[kept] = x
        kept += 1
        if joined[y] > around.box[depth]:
            over = around.copies[x] * (around.price[x] - joined[y])
            if over > most:
                most, best = over, x
    around.many[depth] = kept
    beyond = 0.0
    for e in range(around.start[best], around.start[best + 1]):
        more = around.amount[e] - around.level[around.axis[e]]
        if more > beyond:
            beyond, around.split[depth], around.above[depth] = more, around.axis[e], around.amount[e]
    around.was[depth] = around.level[around.split[depth]]
    around.box[depth + 1] = around.box[depth] + beyond


@njit(**INNER)
def _left_out(around, depth):
    """Restore the box before the branch of this depth, and keep only the cells that require less."""
    left, kept = around.left[depth], 0
    around.level[around.split[depth]] = around.was[depth]
    for y in range(around.many[depth]):
        x, asks_less = left[y], True
        for e in range(around.start[x], around.start[x + 1]):
            if around.axis[e] == around.split[depth] and around.amount[e] >= around.above[depth]:
                asks_less = False
        if asks_less:
            left[kept] = x
            kept += 1
    around.many[depth] = kept


@njit(**INNER)
def around_lone(around, size, own, group, nodes, columns, out):
    """The most by which the multipliers of a lone row and K or more rows of ``size`` cells exceed their box's loss.

    own  multiplier of the lone row;  nodes  limit of the search, after which the result is the bound of the open nodes
    out int32[w]  the cells of the group, one for each row, padded with -1; all -1 if there is none or it doesn't fit
    Returns a bound of the violation, the violation of the group in ``out``, -1 for none, and the look-ups.
    Depth first: a box takes in an amount on an axis, or no cell that requires as much there.
    """
    best, most, seen, looks, depth = 0.0, 0.0, 0, 0, 0
    out[:] = -1
    around.level[:] = 0.0
    around.many[0], around.box[0], around.taken[0] = size, 0.0, False
    for y in range(size):
        around.left[0, y] = y
    # At each node, the cells that can't pay are removed and the bound is computed. If it is above the best violation,
    # the search branches, first with the amount inside the box.
    while depth >= 0:
        if around.taken[depth]:
            _left_out(around, depth)
            around.taken[depth] = False
        seen += 1
        looks += around.many[depth] * columns
        inside, over = _cells_left(around, depth, group, own, best, out)
        best = max(best, over)
        allowed, last = _paid_at_most(around, depth, own, group, best + TINY)
        if allowed <= best + TINY or inside:
            depth -= 1
            continue
        around.open[depth] = allowed
        if seen > nodes:
            for z in range(depth + 1):
                most = max(most, around.open[z])
            break
        if depth + 1 == DEEP:
            most = max(most, allowed)
            depth -= 1
            continue
        _split(around, depth, last)
        around.level[around.split[depth]] = around.above[depth]
        around.taken[depth] = True
        for y in range(around.many[depth]):
            around.left[depth + 1, y] = around.left[depth, y]
        around.many[depth + 1], around.taken[depth + 1] = around.many[depth], False
        depth += 1
    return max(best, most), best if out.size and out[0] >= 0 else -1.0, looks
