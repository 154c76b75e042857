"""The cascade: visits nodes of the generalization lattice and publishes classes of rows that agree at a node's levels.

A class is published when it is eligible. If row prices guide the cascade, a class is published when it loses little
more than the minimum of its rows. If common values are near their limits, a class publishes a part that leaves the
other rows with no larger shares of them. Layout shared by the kernels, for m cells, d columns, and s sensitive columns:

quasi   int32[m, d]   code of every cell in every column
up      int32[..]     class of a code at a level: up[at[j] + level * size[j] + code]
at      int64[d], size int64[d]
levels  int32[v, d]   v lattice nodes, one level per column
exact   bool          whether a class fits in one int64 in mixed radix; otherwise keys are hashes, checked on a match
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.eligible import GroupRequirement
from shoal.kernels.tables.eligible_parts import Scratch, balance, keep_of, part_of

__all__ = [
    "GeneralizedCells",
    "GroupRequirement",
    "HeldBackRows",
    "UnpublishedRows",
    "publish",
    "publish_balanced",
    "publish_priced",
]


class GeneralizedCells(NamedTuple):
    """Cells, and the classes of their codes at every level; see the module's docstring."""

    quasi: np.ndarray
    up: np.ndarray
    at: np.ndarray
    size: np.ndarray
    exact: bool


class HeldBackRows(NamedTuple):
    """Rows that are held back for groups that lack one row.

    common  bool[values of the column]: empty, or: with one sensitive column and no frequency, rows of other values than
            these are held back if their group doesn't need them
    spare   int64[m]: rows of each cell held back;  home: int64[m], the group to which they return unless another takes
            them
    """

    common: np.ndarray
    spare: np.ndarray
    home: np.ndarray


class UnpublishedRows(NamedTuple):
    """The unpublished rows of cells.

    sensitive int32[m, s]; left int64[m]: rows not yet published; order int64[m]: the order in which cells are
    processed, where those of a person are adjacent if a rule counts persons; and the rows held back.
    """

    sensitive: np.ndarray
    left: np.ndarray
    order: np.ndarray
    reserve: HeldBackRows


class ClassNumbering(NamedTuple):
    """The hash table that numbers classes.

    slots     int64[w]: class numbers, w a power of two above 2 a for a cells; -1 outside a call
    key_at    int64[>=a]: key of each class;  first_at: int64[>=a], its first cell
    """

    slots: np.ndarray
    key_at: np.ndarray
    first_at: np.ndarray


class CellsByClass(NamedTuple):
    """Cells sorted by class.

    rows, reserved int64[>= classes]: remaining rows of each class, and rows held back; start int64[>= classes]: end of
    a class in order int64[m], -1 if the class is too small.
    """

    rows: np.ndarray
    reserved: np.ndarray
    start: np.ndarray
    order: np.ndarray


@njit(**LEAN_INNER)
def classes(raised, level, cells, numbering, of):
    """Number the classes of some cells at one lattice node, in order of first occurrence; returns their number.

    raised, numbering    ``GeneralizedCells``, ``ClassNumbering``
    level     int32[d]; cells int64[a]
    of        int64[a]: out: class of each of the cells

    O(a d) expected time.
    """
    quasi, up, at, size, exact = raised
    slots, key_at, first_at = numbering
    d = quasi.shape[1]
    mask = slots.size - 1
    found = 0
    # Open addressing: probe until the class or a free slot is found. If keys are hashes, codes are compared too.
    for i in range(cells.size):
        c = cells[i]
        key = np.int64(0)
        for j in range(d):
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
    for x in range(found):  # clear the table
        key = key_at[x]
        h = key * np.int64(-7046029254386353131)
        h = (h ^ (h >> 31)) & mask
        while slots[h] >= 0:
            slots[h] = -1
            h = (h + 1) & mask
    return found


@njit(**INNER)
def numbering_for(cells, active):
    """(``ClassNumbering``, of) for ``classes`` with this many of all cells."""
    width = 16
    while width < 2 * active + 2:
        width *= 2
    table = np.empty((3, cells), np.int64)
    slots = np.empty(width, np.int64)
    for h in range(width):
        slots[h] = -1
    return ClassNumbering(slots, table[0], table[1]), table[2]


@njit(**LEAN_INNER)
def by_class(active, of, found, left, spare, smallest, out):
    """Sort active cells by class into ``CellsByClass``, without classes that are too small.

    Returns whether a class remains.

    O(active).
    """
    rows, reserved, start, order = out
    for x in range(found):
        rows[x] = 0
        reserved[x] = 0
    for i in range(active.size):
        rows[of[i]] += left[active[i]]
        reserved[of[i]] += spare[active[i]]
    total = 0
    for x in range(found):
        if rows[x] >= smallest or (rows[x] >= smallest - 1 and rows[x] > 0 and reserved[x] > 0):
            start[x] = 0
            total += 1
        else:
            start[x] = -1
    if total == 0:
        return False
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
    return True


@njit(**INNER)
def _ruled(required, cells, stock, scratch, group, out, written):
    """Publish the part of a class that ``part_of`` allows; returns the number of triples written."""
    sensitive, left, _, _ = stock
    frequency, part, many = required.frequency, scratch.part, scratch.many
    if not part_of(required, sensitive, cells, left, scratch):
        return written
    for i in range(cells.size):
        c = cells[i]
        give = many[i]
        if frequency.size == 1:
            give = min(left[c], part[sensitive[c, 0]])
            part[sensitive[c, 0]] -= give
        if give > 0:
            left[c] -= give
            out.cell[written], out.group[written], out.count[written] = c, group, give
            written += 1
    return written


@njit(**LEAN_INNER)
def _allowed(required, cells, stock, scratch, smallest, size):
    """What a class may publish: (whether anything, most rows of a value, rows, the cell that gives it a row or -1).

    smallest  least rows of a group
    size      the class's rows, including those held back
    The row taken is the one that loses least by moving: home groups are numbered in order of increasing loss.
    """
    sensitive, left, _, reserve = stock
    k, frequency, distinct, _ = required
    held, seen = scratch.held, scratch.seen
    (n, reserved), s, taken = size, frequency.size, -1
    h = np.int64(1) << 60
    lacking = n < k
    fine = s > 0 or not lacking
    # Each column limits how many rows of a value the class may keep, or whether it may keep any. If only one row or
    # value is missing, a row held back may fill the gap.
    for j in range(s):
        present, top = 0, np.int64(0)
        for i in range(cells.size):
            c = cells[i]
            if left[c] > 0:
                w = sensitive[c, j]
                if held[w] == 0:
                    seen[present] = w
                    present += 1
                held[w] += left[c]
                top = max(top, held[w])
        if s == 1 and frequency[0] > 1:
            h = keep_of(held, seen, present, frequency[0], scratch.largest)
            n = np.int64(0)
            for y in range(present):
                n += min(held[seen[y]], h)
            fine = h > 0 and n >= k and present >= distinct[0]
        elif frequency[j] * top > n:
            fine = False
        elif present < distinct[j]:
            if reserve.common.size > 0 and present == distinct[j] - 1 and reserved > 0:
                lacking = True
            else:
                fine = False
        if lacking and fine:
            if reserve.common.size > 0 and n >= smallest - 1:
                for i in range(cells.size):
                    c = cells[i]
                    suits = reserve.spare[c] > 0 and (present >= distinct[0] or held[sensitive[c, 0]] == 0)
                    if suits and (taken < 0 or reserve.home[c] > reserve.home[taken]):
                        taken = c
            fine = taken >= 0
        for y in range(present):
            held[seen[y]] = 0
        if not fine:
            break
    return fine, h, n, taken


@njit(**LEAN_INNER)
def _dispensable(required, cells, stock, scratch, n):
    """How many rows of rare values a class of n rows doesn't need: one of them and k rows must remain."""
    sensitive, left, common = stock.sensitive, stock.left, stock.reserve.common
    k, distinct = required.k, required.distinct
    held, seen = scratch.held, scratch.seen
    rare = np.int64(0)
    for i in range(cells.size):
        if not common[sensitive[cells[i], 0]]:
            rare += left[cells[i]]
    if distinct[0] > 1:
        present = 0
        for i in range(cells.size):
            w = sensitive[cells[i], 0]
            if left[cells[i]] > 0 and common[w] and held[w] == 0:
                seen[present] = w
                held[w] = 1
                present += 1
        for y in range(present):
            held[seen[y]] = 0
        if present < distinct[0] - 1:
            return np.int64(0)
    return min(max(rare - 1, 0), n - k)


@njit(**LEAN_INNER)
def _whole(required, cells, stock, scratch, limits, group, out, written):
    """Publish what a class may. limits: (least rows of a group, the class's rows including those held back).

    Returns the number of triples written.
    """
    fine, h, n, taken = _allowed(required, cells, stock, scratch, limits[0], limits[1])
    if not fine:
        return written
    sensitive, left, _, reserve = stock
    frequency = required.frequency
    back = np.int64(0)
    if taken >= 0:
        reserve.spare[taken] -= 1
        out.cell[written], out.group[written], out.count[written] = taken, group, 1
        written += 1
    elif reserve.common.size > 0:
        back = _dispensable(required, cells, stock, scratch, n)
    held = scratch.held
    capped = frequency.size == 1 and frequency[0] > 1
    # With a cap, each value gives at most h rows. Otherwise, rows of rare values that the class doesn't need are held
    # back.
    for i in range(cells.size):
        c = cells[i]
        give = left[c]
        if give == 0:
            continue
        if capped:
            w = sensitive[c, 0]
            give = min(give, h - held[w])
            held[w] += give
        elif back > 0 and not reserve.common[sensitive[c, 0]]:
            keep = max(give - back, 0)
            reserve.spare[c] = give - keep
            reserve.home[c] = group
            back -= reserve.spare[c]
            left[c] -= reserve.spare[c]
            give = keep
        if give > 0:
            left[c] -= give
            out.cell[written], out.group[written], out.count[written] = c, group, give
            written += 1
    if capped:
        for i in range(cells.size):
            held[sensitive[cells[i], 0]] = 0
    return written


@njit(**LEAN_INNER)
def remaining_cells(active, left, spare):
    """Move cells with rows left or held back to the front; returns their number, 0 if no row is left. O(active)."""
    here = 0
    any_left = False
    for i in range(active.size):
        c = active[i]
        if left[c] > 0:
            any_left = True
        if left[c] > 0 or spare[c] > 0:
            active[here] = c
            here += 1
    return here if any_left else 0


@njit(cache=True, nogil=True)
def publish(rules, raised, levels, stock, required, values, group, out):
    """The cascade: at each lattice node in turn, publish the eligible part of every class of the remaining rows.

    stock     ``UnpublishedRows``, updated;  values: int64[s], number of codes of each sensitive column
    required  ``GroupRequirement``, only for columns with a condition; with other models and one sensitive column, a
              class keeps the part that ``part_of`` allows
    rules     those of ``required``, as a separate argument: if it is None, numba omits the code for rules
    group     int64: number of the next group
    returns (nodes done, triples written, next group); stops early if the output might not suffice

    With one sensitive column, a class keeps min(count, h) rows of every value; with several, all rows or none.
    Space O(m), time O(remaining cells * d) per node.
    """
    _, left, order, reserve = stock
    k, frequency, distinct, _ = required
    m, s = left.size, frequency.size
    active = np.empty(m, np.int64)
    for i in range(m):
        active[i] = order[i]
    active = active[: remaining_cells(active, left, reserve.spare)]
    numbering, of = numbering_for(m, active.size)
    by = CellsByClass(
        np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.zeros(m + 2, np.int64), np.empty(m, np.int64)
    )
    widest = 1
    for j in range(s):
        widest = max(widest, values[j])
    ruled = rules is not None
    scratch = Scratch(
        np.zeros(widest, np.int64), np.empty(widest, np.int64), np.empty(frequency[0] if s else 1, np.int64),
        np.zeros(widest if ruled else 1, np.int64), np.empty(m if ruled else 1, np.int64),
    )  # fmt: skip
    smallest = k
    for j in range(s):
        smallest = max(smallest, frequency[j], distinct[j])
    written, v = 0, 0
    # The remaining rows are sorted into the node's classes. The hash table shrinks with the rows, so that later nodes
    # take little time.
    while v < levels.shape[0]:
        if active.size == 0 or written + 2 * active.size + 2 > out.cell.size:
            break
        found = classes(raised, levels[v], active, numbering, of)
        v += 1
        if not by_class(active, of, found, left, reserve.spare, smallest, by):
            continue
        end = 0
        before = written
        for x in range(found):
            if by.start[x] < 0:
                continue
            begin, end = end, by.start[x]
            cells = by.order[begin:end]
            if rules is not None:
                now = _ruled(required, cells, stock, scratch, group, out, written)
            else:
                limits = (smallest, (by.rows[x], by.reserved[x]))
                now = _whole(required, cells, stock, scratch, limits, group, out, written)
            group += now > written
            written = now
        if written > before:
            here = remaining_cells(active, left, reserve.spare)
            active = active[:here]
            of = of[:here]
            width = numbering.slots.size
            while width > 64 and width > 8 * here + 16:
                width //= 2
            numbering = ClassNumbering(numbering.slots[:width], numbering.key_at, numbering.first_at)
    return v, written, group


@njit(cache=True, nogil=True)
def publish_balanced(raised, level, active, common, left, group, out):
    """Publish at one lattice node the part of every class that ``balance`` finds for the shares of all rows left.

    level   int32[d];  active int64[a]: the cells with rows left, ascending; updated
    common  ``CommonValues``;  left int64[m], updated
    group   int64: number of the next group
    out     ``GroupTriples`` for all active cells; the cells of one kind in a group are ascending

    returns (cells with rows left, triples written, next group). The first rows of each kind in a class are published.
    Space O(a), time O(a d).
    """
    kind, other, most, fewest = common
    kinds = other.shape[0]
    numbering, of = numbering_for(active.size, active.size)
    found = classes(raised, level, active, numbering, of)
    rows, share = numbering.key_at, np.empty(most.size)  # the keys aren't needed any more
    for x in range(found):
        rows[x] = 0
    for j in range(most.size):
        share[j] = 0.0
    total = np.int64(0)
    for i in range(active.size):
        c = active[i]
        rows[of[i]] += left[c]
        total += left[c]
        for j in range(most.size):
            if other[kind[c], j]:
                share[j] += left[c]
    highest = 0.0
    for j in range(most.size):
        share[j] = 1.0 - share[j] / total
        highest = max(highest, share[j])
    # The least rows of a class with this share of the commonest value and one row of another value.
    least = 1.0 / max(1.0 - highest, 1e-9) - 1e-6
    large = 0
    for x in range(found):
        enough = rows[x] >= fewest and rows[x] >= least
        rows[x] = large if enough else -1
        large += enough
    if large == 0:
        return active.size, 0, group
    slot, number, part = rows, numbering.first_at, np.empty((large, kinds), np.int64)
    for y in range(large):
        for x in range(kinds):
            part[y, x] = 0
    for i in range(active.size):
        y = slot[of[i]]
        if y >= 0:
            part[y, kind[active[i]]] += left[active[i]]
    for y in range(large):
        number[y] = -1
        size = balance(part[y], common, share)
        if size >= fewest and size >= least:
            number[y] = group
            group += 1
    written, here = 0, 0
    for i in range(active.size):
        c, y = active[i], slot[of[i]]
        if y >= 0 and number[y] >= 0:
            give = min(left[c], part[y, kind[c]])
            if give > 0:
                part[y, kind[c]] -= give
                left[c] -= give
                out.cell[written], out.group[written], out.count[written] = c, number[y], give
                written += 1
        if left[c] > 0:
            active[here] = c
            here += 1
    return here, written, group


class CascadePrices(NamedTuple):
    """The prices that guide the cascade.

    loss float64[..], laid out like up; price float64[m] of a row; value int64[m], distinct 1 or 2: rows of so many
    values make a group eligible, ``size`` int64 of them (K); allowance float64 per row
    """

    loss: np.ndarray
    price: np.ndarray
    value: np.ndarray
    distinct: int
    size: int
    allowance: float


@njit(**INNER)
def _highest_priced(cells, left, led, top, cell):
    """The K rows with the highest prices among some cells, of two values if required; returns whether they exist.

    top, cell [K]  out: their prices, descending, and their cells
    """
    price, value, held, size = led.price, led.value, 0, led.size
    for c in cells:
        for _ in range(min(left[c], size)):
            if held == size and price[c] <= top[held - 1]:
                break
            y = held if held < size else held - 1
            held = min(held + 1, size)
            while y > 0 and top[y - 1] < price[c]:
                top[y], cell[y] = top[y - 1], cell[y - 1]
                y -= 1
            top[y], cell[y] = price[c], c
    if led.distinct < 2:
        return True
    for y in range(held):
        if value[cell[y]] != value[cell[0]]:
            return True
    other = -1
    for c in cells:
        if value[c] != value[cell[0]] and (other < 0 or price[c] > price[other]):
            other = c
    if other < 0:
        return False
    top[held - 1], cell[held - 1] = price[other], other
    return True


@njit(cache=True, nogil=True)
def publish_priced(raised, levels, led, left, floor, group, out):
    """Publish the highest-priced rows of classes, node by node, if their prices almost pay the cost.

    A class qualifies if its mean cost exceeds the mean price of these rows by at most an allowance.

    left int64[m] updated
    floor float64[v]: out: the least excess of loss per row over prices among the classes, published or not
    out ``GroupTriples``, written as by ``publish``;  returns (nodes done, triples written, next group).
    O(remaining cells * (d + K)) per node.
    """
    quasi, _, at, size, _ = raised
    price, group_size, allowance = led.price, led.size, led.allowance
    m, d = left.size, quasi.shape[1]
    none = np.zeros(m, np.int64)  # no row is held back
    active = np.empty(m, np.int64)
    for c in range(m):
        active[c] = c
    active = active[: remaining_cells(active, left, none)]
    numbering, of = numbering_for(m, active.size)
    by = CellsByClass(
        np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.zeros(m + 1, np.int64), np.empty(m, np.int64)
    )
    start, order = by.start, by.order
    top, cell, chosen = np.zeros(group_size), np.empty(group_size, np.int64), np.zeros(m, np.int64)
    written, v = 0, 0
    while v < levels.shape[0]:
        if active.size == 0 or written + active.size + 2 > out.cell.size:
            break
        level = levels[v]
        found = classes(raised, level, active, numbering, of)
        v += 1
        closest = np.inf
        floor[v - 1] = closest
        if not by_class(active, of, found, left, none, group_size, by):
            continue
        end = 0
        changed = False
        # A class is published if the prices of its K highest-priced rows almost pay its cost: with these rows, and all
        # others that pay it alone.
        for x in range(found):
            if start[x] < 0:
                continue
            begin, end = end, start[x]
            cost = 0.0
            for j in range(d):
                cost += led.loss[at[j] + level[j] * size[j] + quasi[numbering.first_at[x], j]]
            if not _highest_priced(order[begin:end], left, led, top, cell):
                continue
            short = group_size * cost
            for y in range(group_size):
                short -= top[y]
            closest = min(closest, short / group_size)
            if short > allowance * group_size:
                continue
            for y in range(group_size):
                chosen[cell[y]] += 1
            for i in range(begin, end):
                c = order[i]
                give = left[c] if cost - price[c] <= allowance else chosen[c]
                chosen[c] = 0
                if give > 0:
                    left[c] -= give
                    out.cell[written], out.group[written], out.count[written] = c, group, give
                    written += 1
            group += 1
            changed = True
        floor[v - 1] = closest
        if changed:
            here = remaining_cells(active, left, none)
            active = active[:here]
            of = of[:here]
    return v, written, group
