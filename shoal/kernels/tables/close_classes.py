"""Simulated annealing of rows among published tuples under t-closeness, and sets of rows that gain most by a new tuple.

``anneal`` moves rows one by one between classes that must be within t of the table's shares. ``rearrange`` does so for
a few near classes at a time. ``close_sets`` finds, in the classes of lattice nodes, rows that are close to the shares
together and pay most where they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels import INNER, LEAN_INNER, njit
from shoal.kernels.tables.eligible import join, joined
from shoal.kernels.tables.lattice import classes, numbering_for
from shoal.kernels.tables.near_groups import draw

CLOSE = 1e-9
CLASSES, SWEEPS = 5, 30  # limit of the classes of a region that is annealed alone; moves tried for each of its rows
TURNS, LATE = 24, 4  # steps of heat and price; the last ones have a price above all gains
# First heat: HOT times the largest loss times a random power, up to 1, of COOLER. Last heat: COLD times the first.
HOT, COOLER, COLD = 0.02, 0.1, 0.015
PRICES = (0.3, 5.0)  # first and last price of a row beyond t, relative to the largest loss
STAY, RAISE = 0.6, 0.5  # share of the regions without a new tuple; of the others, with a widened class
LOOKED = 8  # rows from which near classes are found; rows tried for a swap
REACH = 0.03  # how much more such a class may lose, relative to the largest loss


class OpenClasses(NamedTuple):
    """The classes to which rows can go, and their conditions.

    start int64[m + 1], pair int32[a]   rows of cell i can go to the pairs pair[start[i] : start[i + 1]], at least one
    row int64[m + 1]    the rows of cell i are row[i] .. row[i + 1] - 1
    come int64[v + 1], arc int64[a], cell int64[a]  the arcs to class c, arc[come[c] : come[c + 1]], and their cells
    owner int64[p], first int64[v + 1]  class of each pair (class, sensitive value), rising; first pair of each class
    share float64[p]  share of the pair's value in the whole table
    loss float64[v]   loss of a row
    t float64, spare float64, k int64  the rows of any set of values can exceed their share by t of the class, less
                        ``spare`` rows; the least size
    """

    start: np.ndarray
    pair: np.ndarray
    row: np.ndarray
    come: np.ndarray
    arc: np.ndarray
    cell: np.ndarray
    owner: np.ndarray
    first: np.ndarray
    share: np.ndarray
    loss: np.ndarray
    t: float
    spare: float
    k: int


@njit(cache=True, nogil=True)
def covering(slots, state, leaf, start, out):
    """The tuples, state int64[v, t], that cover each cell, leaf int64[m, t]; returns the number of pairs.

    start int64[m + 1]  out: where each cell begins in ``out``;  out int32[..]  the tuples, as many as fit
    O(m v t).
    """
    found = 0
    for i in range(leaf.shape[0]):
        start[i] = found
        for c in range(state.shape[0]):
            inside = True
            for t in range(leaf.shape[1]):
                if join(slots, t, state[c, t], leaf[i, t]) != state[c, t]:
                    inside = False
                    break
            if inside:
                if found < out.size:
                    out[found] = c
                found += 1
    start[leaf.shape[0]] = found
    return found


@njit(**INNER)
def _violation_after(classes, held, size, c, out, into):
    """Rows by which class c exceeds t or is short of k, after a row of pair ``out`` leaves and one of ``into`` comes.

    -1 for no row. O(values).
    """
    n = size[c] - (out >= 0) + (into >= 0)
    if n == 0:
        return 0.0
    over = 0.0
    for p in range(classes.first[c], classes.first[c + 1]):
        rows = held[p] - (p == out) + (p == into)
        over += max(0.0, rows - classes.share[p] * n)
    return max(0.0, over - classes.t * n + classes.spare) + max(0, classes.k - n)


@njit(**INNER)
def _violating(classes, at, beyond):
    """The rows in classes that violate a condition, int64[..]."""
    many = 0
    for x in range(at.size):
        many += beyond[classes.owner[classes.pair[at[x]]]] > 0.0
    out = np.empty(many, np.int64)
    many = 0
    for x in range(at.size):
        if beyond[classes.owner[classes.pair[at[x]]]] > 0.0:
            out[many] = x
            many += 1
    return out


class RowsOnArcs(NamedTuple):
    """An assignment of rows to arcs.

    cell int64[n] of each row, rising;  at int64[n] the arc of each row
    held int64[p] rows of each pair;  size int64[v] rows of each class
    """

    cell: np.ndarray
    at: np.ndarray
    held: np.ndarray
    size: np.ndarray


@njit(cache=True, nogil=True)
def anneal(classes, rows, heat, price, moves, random):
    """Simulated annealing at one heat: moves change the loss plus ``price`` * rows that violate conditions.

    Half of the moves are of a single row. In the others, a row that can be in the class it leaves takes its place, so
    that classes at their limit t exchange values; if it comes from the class entered, the two swap. Half of the first
    rows are drawn from classes that violate a condition at the start of the call, because few do near the end. Moves
    are accepted by the rule of Metropolis et al. (1953).

    rows ``RowsOnArcs``, updated;  heat, price float64;  moves int64 tried;  random uint64[1]
    Returns the number of rows that violate conditions, summed over the classes. O(moves values).
    """
    cell, at, held, size = rows
    beyond = np.empty(classes.loss.size)
    for c in range(beyond.size):
        beyond[c] = _violation_after(classes, held, size, c, -1, -1)
    violating = _violating(classes, at, beyond)
    # Row x goes from class a to b, and the second row y, if any, from class c to a. The violations of a, b, and c are
    # computed one after the other, until the sum is certain to be refused.
    for _ in range(moves):
        if violating.size and draw(random) < 0.5:
            x = violating[int(draw(random) * violating.size)]
        else:
            x = int(draw(random) * cell.size)
        i = cell[x]
        e = classes.start[i] + int(draw(random) * (classes.start[i + 1] - classes.start[i]))
        if e == at[x]:
            continue
        p, q = classes.pair[at[x]], classes.pair[e]
        a, b = classes.owner[p], classes.owner[q]
        c, y, f, r, s = a, x, e, q, p  # without a second row
        bar = -heat * np.log(draw(random) + 1e-300)
        if draw(random) < 0.5:
            g = classes.come[a] + int(draw(random) * (classes.come[a + 1] - classes.come[a]))
            f, j = classes.arc[g], classes.cell[g]
            y = classes.row[j] + int(draw(random) * (classes.row[j + 1] - classes.row[j]))
            r, s = classes.pair[at[y]], classes.pair[f]
            c = classes.owner[r]
            if c == a:
                continue
        change, before = classes.loss[b] - classes.loss[c], beyond[a] + beyond[b]
        if c != a and c != b:
            before += beyond[c]
        if change - price * before > bar:
            continue
        at_a = _violation_after(classes, held, size, a, p, s if c != a else -1)
        if change + price * (at_a - before) > bar:
            continue
        at_b = _violation_after(classes, held, size, b, r if c == b else -1, q)
        if change + price * (at_a + at_b - before) > bar:
            continue
        at_c = 0.0
        if c != a and c != b:
            at_c = _violation_after(classes, held, size, c, r, -1)
            if change + price * (at_a + at_b + at_c - before) > bar:
                continue
        held[p] -= 1
        held[q] += 1
        size[a] -= 1
        size[b] += 1
        at[x] = e
        if c != a:
            held[r] -= 1
            held[s] += 1
            size[c] -= 1
            size[a] += 1
            at[y] = f
            if c != b:
                beyond[c] = at_c
        beyond[a], beyond[b] = at_a, at_b
    return beyond.sum()


class ClassConditions(NamedTuple):
    """Some rows, and the conditions of their classes.

    leaf int64[n, t], value int64[n]   slots and sensitive value of each row
    weight int64[s], rows int64   rows of each value in the whole table, and all of its rows
    top float64, k int64   the rows of any set of values can exceed their share of a class of N rows by top N / rows;
                           the least size
    largest_loss float64   of a row, the unit of heat and price
    """

    leaf: np.ndarray
    value: np.ndarray
    weight: np.ndarray
    rows: int
    top: float
    k: int
    largest_loss: float


class Published(NamedTuple):
    """Classes of rows, and what they publish; all arrays are read and written.

    of int64[n]   class of each row
    head int64[v], next int64[n]   first row of each class, and next row of the same class; -1: none
    size int64[v], state int64[v, t], loss float64[v]   rows of each class, its tuple, and the loss of a row
    """

    of: np.ndarray
    head: np.ndarray
    next: np.ndarray
    size: np.ndarray
    state: np.ndarray
    loss: np.ndarray


class Region(NamedTuple):
    """A few classes and their rows.

    name int64[c]  their numbers in ``Published``;  row int64[x]  their rows, class by class
    state int64[c + 1, t]  their tuples, and space for one more
    """

    name: np.ndarray
    row: np.ndarray
    state: np.ndarray


class RegionAssignment(NamedTuple):
    """An assignment of the rows of a region to its classes, and the possible ones.

    start int64[x + 1], arc int64[a]   row x can go to the classes arc[start[x] : start[x + 1]]
    mask int64[x]  the same as bits
    free int64[f]  the rows that can go to several classes
    value int64[x], at int64[x]   sensitive value and class of each row
    held int64[c, s], size int64[c], loss float64[c]   rows of each value, rows, and loss of a row, of each class
    """

    start: np.ndarray
    arc: np.ndarray
    mask: np.ndarray
    free: np.ndarray
    value: np.ndarray
    at: np.ndarray
    held: np.ndarray
    size: np.ndarray
    loss: np.ndarray


class RegionBuffers(NamedTuple):
    """Buffers for a region: inside bool[v] all false, tally int64[v]; name, row int64[..] of its classes and rows."""

    inside: np.ndarray
    tally: np.ndarray
    name: np.ndarray
    row: np.ndarray


@njit(**LEAN_INNER)
def _covers(slots, state, leaf):
    inside, t = True, 0
    while inside and t < leaf.size:
        inside = join(slots, t, state[t], leaf[t]) == state[t]
        t += 1
    return inside


@njit(**LEAN_INNER)
def _violation(asked, held, n):
    """Rows by which a class of n rows exceeds t or is short of k; held int64[s] of each value. O(values)."""
    if n == 0:
        return 0.0
    over = np.int64(0)
    for s in range(held.size):
        over += max(np.int64(0), held[s] * asked.rows - asked.weight[s] * n)
    return max(0.0, over - asked.top * n) / asked.rows + max(np.int64(0), asked.k - n)


@njit(**LEAN_INNER)
def _move(assigned, x, into, step):
    """Move row x to another class, or with step -1 back."""
    a, s = assigned.at[x], assigned.value[x]
    assigned.held[a, s] -= step
    assigned.held[into, s] += step
    assigned.size[a] -= step
    assigned.size[into] += step


@njit(**INNER)
def _annealed(asked, assigned, free, heat, price, moves, beyond, random):
    """The moves of ``anneal`` for the rows ``free`` int64[..]; beyond float64[c] violation of each class, updated."""
    at = assigned.at
    # Row x goes from class a to b, and the second row y, if any, from class c to a; a refused move is undone.
    for _ in range(moves):
        x = free[int(draw(random) * free.size)]
        first = assigned.start[x]
        a, b = at[x], assigned.arc[first + int(draw(random) * (assigned.start[x + 1] - first))]
        if a == b:
            continue
        c, y = a, x  # without a second row
        bar = -heat * np.log(draw(random) + 1e-300)
        if draw(random) < 0.5:
            for _look in range(LOOKED):
                y = free[int(draw(random) * free.size)]
                c = at[y]
                if c != a and (assigned.mask[y] >> a) & 1:
                    break
                c = a
            if c == a:
                continue
        change, before = assigned.loss[b] - assigned.loss[c], beyond[a] + beyond[b]
        if c != a and c != b:
            before += beyond[c]
        if change - price * before > bar:
            continue
        _move(assigned, x, b, 1)
        if c != a:
            _move(assigned, y, a, 1)
        at_a, at_c = _violation(asked, assigned.held[a], assigned.size[a]), 0.0
        good, at_b = change + price * (at_a - before) <= bar, 0.0
        if good:
            at_b = _violation(asked, assigned.held[b], assigned.size[b])
            if c != a and c != b:
                at_c = _violation(asked, assigned.held[c], assigned.size[c])
            good = change + price * (at_a + at_b + at_c - before) <= bar
        if not good:
            _move(assigned, x, b, -1)
            if c != a:
                _move(assigned, y, a, -1)
            continue
        at[x] = b
        beyond[a], beyond[b] = at_a, at_b
        if c != a:
            at[y] = a
            if c != b:
                beyond[c] = at_c


@njit(**INNER)
def _near(slots, asked, kept, z, inside, random):
    """The outside class that loses least together with row z, up to random factors; -1: none."""
    best, least = -1, np.inf
    for e in range(kept.size.size):
        if kept.size[e] and not inside[e]:
            found = joined(slots, kept.state[e], asked.leaf[z], np.inf) * (0.5 + draw(random))
            if found < least:
                least, best = found, e
    return best


@njit(**INNER)
def _covering(slots, asked, kept, row, inside, tally, random):
    """The outside class that covers most of some random rows of ``row`` int64[..], up to random factors; -1: none."""
    tally[:] = 0
    for _ in range(LOOKED):
        z = row[int(draw(random) * row.size)]
        limit = kept.loss[kept.of[z]] + REACH * asked.largest_loss
        for e in range(tally.size):
            if kept.size[e] and not inside[e] and kept.loss[e] < limit:
                tally[e] += _covers(slots, kept.state[e], asked.leaf[z])
    best, most = -1, 0.0
    for e in range(tally.size):
        if tally[e]:
            found = tally[e] * (0.3 + draw(random))
            if found > most:
                most, best = found, e
    return best


@njit(**INNER)
def _choose_region(slots, asked, kept, most, wide, buffers, random):
    """Choose the classes of a region; writes classes and rows to the buffers, returns their numbers.

    The first class contains the more expensive of two random rows. Each other class covers many of some random rows of
    those before; if ``wide``, half of them are instead the classes that lose least with one of these rows.
    """
    x, y = int(draw(random) * asked.value.size), int(draw(random) * asked.value.size)
    c = kept.of[x] if kept.loss[kept.of[x]] > kept.loss[kept.of[y]] else kept.of[y]
    inside, tally, name, row = buffers
    classes, rows = 0, 0
    while c >= 0 and rows + kept.size[c] <= row.size:
        inside[c], name[classes] = True, c
        classes += 1
        z = kept.head[c]
        while z >= 0:
            row[rows] = z
            rows += 1
            z = kept.next[z]
        if classes == name.size or rows >= most:
            break
        if wide and draw(random) < 0.5:
            c = _near(slots, asked, kept, row[int(draw(random) * rows)], inside, random)
        else:
            c = _covering(slots, asked, kept, row[:rows], inside, tally, random)
    for x in range(classes):
        inside[name[x]] = False
    return classes, rows


@njit(**INNER)
def _propose(slots, asked, kept, region, random):
    """Propose a tuple for a wide region, as the last state: the number of classes, and the class closed or -1.

    A class is replaced by one that also covers a row of another class, or a class is opened that covers two rows.
    """
    classes, closed = region.name.size, -1
    new, y = region.state[classes], region.row[int(draw(random) * region.row.size)]
    if draw(random) < RAISE:
        closed = int(draw(random) * classes)
        if kept.of[y] == region.name[closed]:
            return classes, -1
        for t in range(new.size):
            new[t] = join(slots, t, region.state[closed, t], asked.leaf[y, t])
    else:
        z = region.row[int(draw(random) * region.row.size)]
        for t in range(new.size):
            new[t] = join(slots, t, asked.leaf[y, t], asked.leaf[z, t])
    return classes + 1, closed


@njit(**INNER)
def _assign(slots, asked, kept, region, classes, closed):
    """The assignment of the rows of a region, and the number of free rows.

    Rows of a closed class go to the new class, as do those that it covers and that lose more where they are.
    """
    rows, old = region.row.size, region.name.size
    assigned = RegionAssignment(
        np.empty(rows + 1, np.int64), np.empty(rows * classes, np.int64), np.zeros(rows, np.int64),
        np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64),
        np.zeros((classes, asked.weight.size), np.int64), np.zeros(classes, np.int64), np.empty(classes),
    )  # fmt: skip
    for c in range(classes):
        assigned.loss[c] = joined(slots, region.state[c], region.state[c], np.inf)
    arcs, free, mine = 0, 0, 0
    # For each row, its arcs to the classes that cover it, and the class in which it starts.
    for x in range(rows):
        z, assigned.start[x] = region.row[x], arcs
        while region.name[mine] != kept.of[z]:
            mine += 1
        for c in range(classes):
            if c != closed and (c == mine or _covers(slots, region.state[c], asked.leaf[z])):
                assigned.arc[arcs] = c
                assigned.mask[x] |= np.int64(1) << c
                arcs += 1
        if arcs - assigned.start[x] > 1:
            assigned.free[free] = x
            free += 1
        at, last = mine, classes - 1
        if (
            classes > old
            and (assigned.mask[x] >> last) & 1
            and (mine == closed or assigned.loss[last] < assigned.loss[mine])
        ):
            at = last
        assigned.at[x], assigned.value[x] = at, asked.value[z]
        assigned.held[at, assigned.value[x]] += 1
        assigned.size[at] += 1
    assigned.start[rows] = arcs
    return assigned, free


@njit(**INNER)
def _narrowed(slots, asked, region, assigned, seen):
    """The loss of all rows of a region after each class publishes the least tuple of its rows.

    region.state and assigned.loss are updated; seen bool[c]  out: whether a class has any rows
    """
    seen[:] = False
    for x in range(region.row.size):
        leaf, c = asked.leaf[region.row[x]], assigned.at[x]
        for t in range(leaf.size):
            region.state[c, t] = join(slots, t, region.state[c, t], leaf[t]) if seen[c] else leaf[t]
        seen[c] = True
    total = 0.0
    for c in range(assigned.size.size):
        if seen[c]:
            assigned.loss[c] = joined(slots, region.state[c], region.state[c], np.inf)
            total += assigned.loss[c] * assigned.size[c]
    return total


@njit(**LEAN_INNER)
def _write(kept, region, assigned, fresh):
    """Write the assignment of a region to ``kept``; fresh is the number of the new class, if there is one."""
    for x in range(region.name.size):
        kept.head[region.name[x]], kept.size[region.name[x]] = -1, 0
    for c in range(assigned.size.size):
        if assigned.size[c]:
            here = region.name[c] if c < region.name.size else fresh
            kept.size[here], kept.loss[here] = assigned.size[c], assigned.loss[c]
            for t in range(kept.state.shape[1]):
                kept.state[here, t] = region.state[c, t]
    for x in range(region.row.size):
        z, c = region.row[x], assigned.at[x]
        here = region.name[c] if c < region.name.size else fresh
        kept.of[z], kept.next[z] = here, kept.head[here]
        kept.head[here] = z


@njit(cache=True, nogil=True)
def rearrange(slots, asked, kept, most, moves, random):
    """Annealing of a few classes at a time; a result is kept if it loses no more and violates no condition.

    asked ``ClassConditions``, kept ``Published`` without violations, updated; most int64 rows taken at once, about;
    moves int64 tried, about; random uint64[1]
    Returns the loss saved. O(moves values + moves / SWEEPS classes t).
    """
    v, t = kept.state.shape
    name, row, saved = np.empty(CLASSES, np.int64), np.empty(2 * most, np.int64), 0.0
    buffers = RegionBuffers(np.zeros(v, np.bool_), np.empty(v, np.int64), name, row)
    state, seen = np.empty((CLASSES + 1, t), np.int64), np.empty(CLASSES + 1, np.bool_)
    beyond = np.empty(CLASSES + 1)
    # A step: choose a region, propose a tuple if it is wide, anneal its rows while the heat falls and the price rises,
    # and keep the result if it is not worse.
    while moves > 0:
        wide = draw(random) > STAY
        classes, rows = _choose_region(slots, asked, kept, most, wide, buffers, random)
        moves -= 1 + SWEEPS * rows
        if not classes:
            continue
        region, before = Region(name[:classes], row[:rows], state), 0.0
        for x in range(classes):
            before += kept.loss[name[x]] * kept.size[name[x]]
            for y in range(t):
                state[x, y] = kept.state[name[x], y]
        now, closed = classes, -1
        if wide:
            now, closed = _propose(slots, asked, kept, region, random)
        fresh = -1
        if now > classes:
            for c in range(v):
                if not kept.size[c]:
                    fresh = c
                    break
            if fresh < 0:
                continue
        assigned, free = _assign(slots, asked, kept, region, now, closed)
        if not free:  # no row has a choice
            continue
        for c in range(now):
            beyond[c] = _violation(asked, assigned.held[c], assigned.size[c])
        hot = HOT * COOLER ** draw(random) * asked.largest_loss
        each = max(1, SWEEPS * free // TURNS)
        for turn in range(TURNS):
            part = min(turn / (TURNS - LATE), 1.0)
            price = (PRICES[0] * (PRICES[1] / PRICES[0]) ** part if part < 1.0 else 1e4) * asked.largest_loss
            _annealed(asked, assigned, assigned.free[:free], hot * COLD**part, price, each, beyond, random)
        if beyond[:now].sum() > CLOSE:
            continue
        after = _narrowed(slots, asked, region, assigned, seen[:now])
        if after <= before:
            saved += before - after
            _write(kept, region, assigned, fresh)
    return saved


class SetRequest(NamedTuple):
    """What rows pay, and the conditions of a set of rows.

    paid float64[m], order int64[m]  what a row of each cell pays; the cells by falling ``paid``
    count int64[m], value int64[m], share float64[s]  rows and sensitive value of a cell; share of each value in the
                                                      table
    sizes int64[g]   possible sizes of a set, rising
    excess float64[g]  for each size, the rows that can exceed the shares
    least float64    least gain of a set
    """

    paid: np.ndarray
    order: np.ndarray
    count: np.ndarray
    value: np.ndarray
    share: np.ndarray
    sizes: np.ndarray
    excess: np.ndarray
    least: float


class RowSets(NamedTuple):
    """Sets of rows: gain float64[>= sets]; end int64[>= sets] and cell int64[>= rows], a cell for each row of a set."""

    gain: np.ndarray
    end: np.ndarray
    cell: np.ndarray


@njit(**INNER)
def _taken(asked, cells, size, excess, held, out):
    """The rows that pay most and are close to the shares together, as cells in ``out``: (rows, what they pay).

    held int64[s] is overwritten. O(rows of the cells).
    """
    held[:] = 0
    rows, paid, over = 0, 0.0, 0.0
    for i in cells:
        v = asked.value[i]
        for _ in range(asked.count[i]):
            more = max(0.0, min(1.0, held[v] + 1.0 - asked.share[v] * size))
            if over + more > excess:
                break
            over += more
            held[v] += 1
            out[rows] = i
            rows += 1
            paid += asked.paid[i]
            if rows == size:
                return rows, paid
    return rows, paid


@njit(**INNER)
def _best(asked, cells, cost, most, held, first, second):
    """The rows of a class with the largest gain, as cells in ``first``: (rows, gain). ``second`` is overwritten."""
    hope, left = 0.0, most
    for i in cells:
        if asked.paid[i] <= cost:
            break
        hope += (asked.paid[i] - cost) * asked.count[i]
    if hope <= asked.least:
        return 0, 0.0
    rows, gain = 0, asked.least
    for x in range(asked.sizes.size):
        size = asked.sizes[x]
        if size > left:
            break
        found, paid = _taken(asked, cells, size, asked.excess[x], held, second)
        if found == size and paid - size * cost > gain:
            rows, gain = size, paid - size * cost
            for y in range(size):
                first[y] = second[y]
    return rows, gain


@njit(cache=True, nogil=True)
def close_sets(raised, nodes, loss, asked, out):
    """The best set of each class of each node: rows close to the shares that gain most by a tuple of their own.

    nodes int32[v, d]; loss float64[..] of a code at a level, with the layout of ``raised.up``. Returns (nodes done,
    sets found); it ends early if ``out`` has no space for the rows of another node. O(nodes rows sizes).
    """
    m, d = raised.quasi.shape
    total = asked.count.sum()
    numbering, of = numbering_for(m, m)
    key_at, first_at = numbering.key_at, numbering.first_at
    start, member = np.empty(m + 1, np.int64), np.empty(m, np.int64)
    rows = np.empty(m, np.int64)
    held = np.empty(asked.share.size, np.int64)
    first, second = np.empty(total, np.int64), np.empty(total, np.int64)
    cells = np.arange(m)
    sets, used = 0, 0
    # The cells are sorted by class, in the given order, and each class with enough rows gives its best set.
    for v in range(nodes.shape[0]):
        if used + total > out.cell.size:
            return v, sets
        found = classes(raised, nodes[v], cells, numbering, of)
        start[: found + 1] = 0
        rows[:found] = 0
        for i in range(m):
            start[of[i] + 1] += 1
            rows[of[i]] += asked.count[i]
        for x in range(found):
            start[x + 1] += start[x]
            key_at[x] = start[x]
        for x in range(m):
            i = asked.order[x]
            member[key_at[of[i]]] = i
            key_at[of[i]] += 1
        for x in range(found):
            if rows[x] < asked.sizes[0]:
                continue
            cost = 0.0
            for j in range(d):
                cost += loss[raised.at[j] + nodes[v, j] * raised.size[j] + raised.quasi[first_at[x], j]]
            many, gain = _best(asked, member[start[x] : start[x + 1]], cost, rows[x], held, first, second)
            if many:
                for y in range(many):
                    out.cell[used + y] = first[y]
                used += many
                out.gain[sets], out.end[sets] = gain, used
                sets += 1
    return nodes.shape[0], sets
