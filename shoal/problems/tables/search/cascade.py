"""The cascade: publish every row at the cheapest lattice node where it finds an eligible class, strand nobody.

Walks the generalization lattice from the values themselves upwards, in order of mean loss.  At each node the rows not
yet published fall into classes, and the largest eligible part of each class is published (for l-diversity by
frequency the closed form of the three-phase algorithm's phase one).  Groups are then cut as small as dealing allows,
which costs nothing, and rows left over join the piece where they cost least.  Where a sensitive value is scarce its
spare rows stay in reserve: a later class that lacks it may take one.  The three-phase algorithm is run as well and the
better of the two is returned, so its promise holds here too.

The cascade for t-closeness: a class publishes small groups whose values come near the table's shares.

The largest part of a class that is within t of the table uses up all of t, and can hardly be cut after that.  So the
groups are made small at once: each follows the shares of its class as far as t allows, and the table's beyond that.

The cascade by shares, where the commonest value is near its limit: its share among the rows left never rises.

Other starts for the search: the cascade led by row prices, and a walk down lattices too large to enumerate.

A large table made small before it is searched: of equal pieces of a group a few stay, the others are set aside.

A group is dealt into eligible pieces, and pieces with equal rows are interchangeable: a search needs only as many of
them as others may want to join or to take.  What is set aside publishes what its pieces would, so nothing is lost by
it, and what a search costs follows the number of cells, not of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError
from shoal.kernels.tables.eligible import GroupRequirement, GroupTriples
from shoal.model.histogram import Partition, rising
from shoal.model.task import Grouping, Task, shortfall
from shoal.problems.tables.bounds.bounds import LOOKS, Sweeper
from shoal.problems.tables.bounds.certify import certify
from shoal.problems.tables.groups import Rows, good_groups, pieces_of, rules_of
from shoal.problems.tables.losses import ENUMERATED, Lattice, NodesToVisit
from shoal.problems.tables.three_phase import ceiling_classes, residues

MOST = 3  # times the least size: the most rows of a group


def by_quotas(task: Task, rows: Rows) -> np.ndarray | None:
    """A group for every row, int64[n]; -1 for rows in none, and None where no t-closeness of the one column is asked.

    Classes are visited as by the cascade.  O(nodes * cells * log(cells)).
    """
    from shoal.kernels.tables.eligible_parts import Quotas, deal

    h, need = task.histogram, task.requirement
    close = [rule for rule in need.rules if rule.measure.kind == "equal"]
    if not close or len(need.sensitive_columns) != 1:
        return None
    rule = min(close, key=lambda rule: rule.measure.number)
    share, t = np.array(rule.measure.table), rule.measure.number
    value, left = rows.sensitive[:, 0].astype(np.int64), h.count.copy()
    out, quotas = GroupTriples.empty(int(left.sum())), Quotas(share, t, rows.k, MOST * rows.k)
    found: list[tuple[np.ndarray, ...]] = []
    group = 0
    # The rows left are sorted into the node's classes, from which the kernel deals.
    for cells, start in _classes_in_turn(task, left):
        group, written = deal(cells, start, value, left, quotas, group, out)
        if written:
            found.append(tuple(a[:written].copy() for a in out))
    if not found:
        return np.full(rows.cell.size, -1, np.int64)
    cell, label, count = (np.concatenate(a) for a in zip(*found, strict=True))
    labels = rows.spread(cell, label, count)
    good = rows.eligible(labels, group)  # the other models asked for
    return np.where((labels >= 0) & good[labels], labels, -1)


def _classes_in_turn(task: Task, left: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for each node visited, the cells with rows left, sorted into its classes, and where each class begins.

    left  int64[m]  rows of each cell, which the caller lowers between two nodes
    """
    lattice = Lattice.of(task.recoding)
    nodes = NodesToVisit(task, lattice, SORTED)
    while nodes.left and left.any():
        task.progress("cascade", nodes.share)
        cells = np.flatnonzero(left > 0)
        order, start = _classes_at(lattice, nodes.take(cells.size + SORT_SETUP)[0], task.histogram.quasi[cells])
        yield cells[order], start


def _classes_at(lattice: Lattice, node: np.ndarray, quasi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells int[x, d] sorted into the classes of a node: their order int64[x], and where each class begins and ends."""
    key = np.zeros(len(quasi), np.int64)
    for j, level in enumerate(node):
        up = lattice.up[j][level].astype(np.int64)
        width = int(up.max(initial=0)) + 1
        if int(key.max(initial=0)) >= 2**62 // width:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * width + up[quasi[:, j]]
    order = np.argsort(key, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(key[order], prepend=-1)), len(quasi))


NEAR = 0.8  # of the largest share that a value may have in a group: the commonest value of the table has more
OTHERS = 0.6  # of this share: no other value of the table has more
COLUMNS = 3  # whose limits are kept at once: each further one doubles the work


class NearLimit(NamedTuple):
    """A sensitive column whose commonest value has nearly the largest share that a group may have.

    value  code of that value;  most  its largest share in a group
    """

    column: int
    value: int
    most: float


def near_limits(task: Task) -> list[NearLimit]:
    """Up to three sensitive columns whose commonest value is near its limit, if no other value is: the nearest ones."""
    h, need = task.histogram, task.requirement
    found = []
    for j in need.sensitive_columns:
        most = np.full(max(h.sensitive_sizes[j], 1), 1 / max(need.frequency[j], 1))
        for rule in need.rules:
            if rule.measure.kind == "band" and rule.columns == (j,):
                most = np.minimum(most, np.array(rule.measure.table[1::2]))
        held = np.bincount(h.sensitive[:, j], weights=h.count, minlength=most.size)
        filled = held / (max(h.rows, 1) * np.maximum(most, 1e-9))
        value = int(filled.argmax())
        others = np.delete(filled, value).max(initial=0.0)
        if most[value] < 1 and filled[value] >= NEAR and others <= OTHERS:
            found.append((float(filled[value]), NearLimit(j, value, float(most[value]))))
    return sorted(limit for _, limit in sorted(found, reverse=True)[:COLUMNS])


def by_shares(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Eligible groups as triples (cell, group, rows) where commonest values are near their limits; None elsewhere.

    If 94 % of the rows have a value, of which a group may have 95 %, then nearly every other value is needed to balance
    as many rows as it can.  The cascade that publishes as many rows as possible uses other values where they are
    plenty, and most of the rows find none later.  Here a class publishes only rows in which the commonest value has at
    least the share that it has among all rows left, and at most the share that is allowed.  So its share among the rows
    that stay never rises, and at the top node the rest is eligible.

    The lattice's nodes are visited as in the cascade.  O(nodes * cells * log(cells)).
    """
    limits = near_limits(task)
    if not limits or not task.requirement.closed:
        return None
    h, need = task.histogram, task.requirement
    # bit i of a cell's kind: the cell has another value in column i of the limits
    kind = sum((h.sensitive[:, limit.column] != limit.value).astype(np.int64) << i for i, limit in enumerate(limits))
    kinds = 1 << len(limits)
    other = (np.arange(kinds)[:, None] >> np.arange(len(limits)) & 1).astype(bool)
    left, group = h.count.copy(), 0
    found: list[tuple[np.ndarray, ...]] = []
    for cells, start in _classes_in_turn(task, left):
        share = 1 - np.bincount(kind, weights=left, minlength=kinds) @ other / left.sum()
        # A class in which the commonest value has such a share, and one row another value, has so many rows.
        least = max(need.smallest, math.ceil(1 / max(1 - share.max(), 1e-9) - 1e-6))
        large = np.add.reduceat(left[cells], start[:-1]) >= least
        if not large.any():
            continue
        cells = cells[np.repeat(large, np.diff(start))]
        slot = np.repeat(np.arange(int(large.sum())), np.diff(start)[large]) * kinds + kind[cells]
        held = np.bincount(slot, weights=left[cells], minlength=int(large.sum()) * kinds).astype(np.int64)
        part = _balanced(held.reshape(-1, kinds), other, limits, share)
        part[part.sum(axis=1) < least] = 0
        # The first rows of each kind in each class are published.
        order = np.argsort(slot, kind="stable")
        cells, slot = cells[order], slot[order]
        before = np.cumsum(left[cells]) - left[cells] - (np.cumsum(held) - held)[slot]
        given = np.clip(part.reshape(-1)[slot] - before, 0, left[cells])
        some = given > 0
        found.append((cells[some], group + slot[some] // kinds, given[some]))
        left[cells] -= given
        group += len(part)
    if not found:
        return None
    cell, label, count = (np.concatenate(a) for a in zip(*found, strict=True))
    good = good_groups(h, need, cell, label, count, group)[label]  # the other models asked for
    return cell[good], np.unique(label[good], return_inverse=True)[1].reshape(-1), count[good]


def _balanced(held: np.ndarray, other: np.ndarray, limits: Sequence[NearLimit], share: np.ndarray) -> np.ndarray:
    """How many rows of each kind a class publishes, int64[classes, kinds]; 0 if no number was found.

    held   int64[classes, kinds] its rows;  other  bool[kinds, columns] which kinds have another value in a column
    share  float64[columns] least share of the commonest value of each column

    Rows that no part can have are taken out for one limit after the other, until the part is within all.  For one
    column this is the largest part, if the rounds suffice.
    """
    part = held.copy()
    for _ in range(ROUNDS):
        before = int(part.sum())
        for (_, _, most), without, least in zip(limits, other.T, share, strict=True):
            few, many = part[:, without].sum(axis=1), part[:, ~without].sum(axis=1)
            _take_out(part, ~without, other, many - np.floor(few * most / (1 - most) + 1e-9).astype(np.int64))
            many, ratio = part[:, ~without].sum(axis=1), (1 - least) / max(least, 1e-9)
            _take_out(part, without, other, few - np.floor(many * ratio + 1e-9).astype(np.int64))
        if int(part.sum()) == before:
            break
    rows, common = part.sum(axis=1), part @ ~other
    low, high = share - 1e-9, np.array([limit.most for limit in limits]) + 1e-9
    fits = ((common >= low * rows[:, None]) & (common <= high * rows[:, None])).all(axis=1)
    return np.where(fits[:, None], part, 0)


def _take_out(part: np.ndarray, which: np.ndarray, other: np.ndarray, rows: np.ndarray) -> None:
    """Take so many rows of some kinds out of each class, first of the kinds with fewest other values."""
    rows = np.maximum(rows, 0)
    for kind in sorted(np.flatnonzero(which), key=lambda kind: int(other[kind].sum())):
        here = np.minimum(part[:, kind], rows)
        part[:, kind] -= here
        rows = rows - here


ALLOWANCES = (0.05, 0.2, 0.5)  # loss per row above its price that is accepted, all columns together


def guided(
    task: Task,
    rows: Rows,
    prices: np.ndarray,
    until: float | None = None,
    *,
    allowances: Sequence[float] = ALLOWANCES,
    most: int | None = None,
    finish: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray | None:
    """A group for every row, int64[n]: the price-guided cascade, cut small, everyone placed.

    allowances  loss per row above the prices that is accepted, pass by pass, rising
    most        only so many of the cheapest nodes are visited, without asking first which of them could matter
    finish      places the rows left over, ``rows.place`` unless told
    None where it does not apply (diversity by frequency, other models, more than two values asked, several sensitive
    columns) or time ran out.
    """
    lattice = Lattice.of(task.recoding)
    if not _guidable(rows) or lattice.nodes > ENUMERATED:
        return None
    every = lattice.ordered(task)[:most]
    floor = np.full(len(every), -np.inf)
    if most is None:
        excess = Sweeper(task, lattice, LOOKS.get(task.effort.name, LOOKS["thorough"])).excess(
            prices, allowances[-1], until
        )
        if excess is None:
            return None
        floor = excess[tuple(every.T)]
    found = _passes(task, rows, lattice, every, floor, prices, allowances, until)
    if found is None or not any(part[0].size for part in found):
        return None
    cell, label, count = (np.concatenate(a) for a in zip(*found, strict=True))
    return (finish or rows.place)(rows.cut(rows.spread(cell, label, count)))


def _guidable(rows: Rows) -> bool:
    """Whether the cascade knows all that is asked: a number of rows, and at most two values of one column."""
    several = rows.frequency.size > 1
    return not (rows.need.rules or several or (rows.frequency.size and (rows.frequency[0] > 1 or rows.distinct[0] > 2)))


def _passes(
    task: Task, rows: Rows, lattice: Lattice, every: np.ndarray, floor: np.ndarray, prices: np.ndarray,
    allowances: Sequence[float], until: float | None,
) -> list[tuple[np.ndarray, ...]] | None:  # fmt: skip
    """Cells, groups and counts published pass by pass at the nodes ``every``; None where time ran out.

    floor  a bound on what a node is above the prices at least; raised as rows become fewer
    """
    from shoal.kernels.tables.lattice import CascadePrices, GeneralizedCells, publish_priced

    histogram = task.histogram
    raised = GeneralizedCells(histogram.quasi, *lattice.flat)
    loss = np.concatenate([level.reshape(-1) for level in lattice.loss])
    value = rows.sensitive[:, 0].astype(np.int64) if rows.frequency.size else np.zeros(histogram.cells, np.int64)
    distinct = int(rows.distinct[0]) if rows.frequency.size else 1
    left = histogram.count.copy()
    out = GroupTriples.empty(4 * histogram.cells + 16)
    found: list[tuple[np.ndarray, ...]] = []
    group = 0
    for allowance in allowances:
        led = CascadePrices(loss, prices, value, distinct, rows.k, allowance)
        # Nothing is published at other nodes: rows only become fewer, classes never come nearer to their prices.
        index = np.flatnonzero(floor <= allowance + 1e-9)
        nodes, here = every[index], floor[index]
        done = 0
        while done < len(nodes) and left.any():
            if until is not None and clock() > until:
                return None
            task.progress("guided cascade", None)
            part = slice(done, done + BATCH)
            steps, written, group = publish_priced(raised, nodes[part], led, left, here[part], group, out)
            done += steps
            found.append(tuple(a[:written].copy() for a in out))
        floor[index] = here
    return found


LARGE = 20_000  # rows below which nothing is set aside
WORTH = 0.75  # part of the rows that may be left, or it is not worth it
STAY = 40_000  # rows of pieces that stay, at least
HELPERS = 8  # times as many pieces as rows that have no group


class Pieces(NamedTuple):
    """Pieces of groups, equal ones together.

    cell int64[x], run int64[x], rows int64[x]  rows of a cell in each piece of a run
    times int64[r]  pieces of a run
    """

    cell: np.ndarray
    run: np.ndarray
    rows: np.ndarray
    times: np.ndarray

    @property
    def together(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(cell, group, count) where each run is one group."""
        return self.cell, self.run, self.rows * self.times[self.run]

    @property
    def apart(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(cell, group, count) where each piece is one."""
        times, first = self.times[self.run], np.cumsum(self.times) - self.times
        piece = np.repeat(first[self.run] - (np.cumsum(times) - times), times) + np.arange(int(times.sum()))
        return np.repeat(self.cell, times), piece, np.repeat(self.rows, times)


@dataclass(frozen=True, eq=False)
class Thinned:
    """A table without the rows set aside.

    task   the same request of the rows that stay; each of them stands for ``each`` equal ones
    cells  int64[m'] the cells of the whole table that have some, rising
    held   the eligible pieces that stay, by cells of ``task``
    aside  (cell, group, count) of the eligible groups set aside, by cells of the whole table
    """

    task: Task
    cells: np.ndarray
    held: Pieces
    aside: tuple[np.ndarray, np.ndarray, np.ndarray]
    each: int

    def back(self, partition: Partition) -> Partition:
        """A partition of the rows that stay as one of the whole table.  O(p log p) for p triples."""
        cell, group, count = self.aside
        return Partition.of(
            np.concatenate([self.cells[partition.cell], cell]),
            np.concatenate([partition.group, group + partition.groups]),
            np.concatenate([partition.count * self.each, count]),
        )


def finished(task: Task, rows: Rows, cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> Partition:
    """Eligible groups cut small, and the rows that are in none placed.  Triples as those of a partition.

    Where many equal rows wait, bundles of them are placed first, each as one row among pieces that stand for as many.
    """
    while rows.frequency.size:
        waiting = _waiting(task, cell, count)
        each = math.isqrt(2 * int(waiting.sum()) // max(int((waiting > 0).sum()), 1))
        bundled = thinned(task, cell, group, count, each) if each > 1 else None
        if bundled is None:
            break
        few = rows.of_cells(bundled.task.histogram, bundled.cells)
        made = bundled.back(finished(bundled.task, few, *bundled.held.together))
        cell, group, count = made.cell, made.group, made.count
    thin = thinned(task, cell, group, count)
    if thin is None:
        return rows.partition(rows.place(rows.cut(rows.spread(cell, group, count))))
    few = rows.of_cells(thin.task.histogram, thin.cells)
    return thin.back(few.partition(few.place(few.cut(few.spread(*thin.held.apart)))))


def thinned(task: Task, cell: np.ndarray, group: np.ndarray, count: np.ndarray, each: int = 1) -> Thinned | None:
    """The table thinned by eligible groups, which need not hold all rows; those in none stay.

    each  with one sensitive column: how many equal rows one that stays stands for, what is left over being left out

    None where that is not worth it, or the requirement is more than k and one share of 1/l, or ceilings might keep
    what stays apart.  O(x log x) for x triples, whatever the rows.
    """
    h, need = task.histogram, task.requirement
    asked = need.sensitive_columns
    if h.rows < LARGE or need.rules or len(asked) > 1 or any(u > 1 for u in need.distinct):
        return None
    if ceiling_classes(task).any():  # what stays of a class might not be eligible by itself
        return None
    kept = count > 0
    cell, group, count = cell[kept], group[kept], count[kept]
    if not cell.size:
        return None
    runs = equal_pieces(task, asked[0], cell, group, count) if asked else _alike(need.k, cell, count)
    if runs is None:
        return None
    waiting = _waiting(task, cell, count) // each
    size = np.bincount(runs.run, weights=runs.rows, minlength=runs.times.size).astype(np.int64)
    wanted = max(STAY, HELPERS * need.smallest * int(waiting.sum()))
    stay = _staying(size, runs.times // each, wanted)
    # Twice as many rows stay each time, until those that stay meet the requirement together.
    while True:
        aside = (runs.times - each * stay)[runs.run] * runs.rows
        if asked:
            many = stay[runs.run] * runs.rows
            left = waiting + np.bincount(runs.cell, weights=many, minlength=h.cells).astype(np.int64)
        else:
            left = h.count - np.bincount(runs.cell, weights=aside, minlength=h.cells).astype(np.int64)
        if int(left.sum()) > WORTH * h.rows:
            return None
        cells = np.flatnonzero(left)
        small = replace(h, quasi=h.quasi[cells], sensitive=h.sensitive[cells], count=left[cells])
        if shortfall(small, need) is None:
            break
        if (stay == runs.times // each).all():
            return None
        stay = np.minimum(2 * stay, runs.times // each)
    place = np.cumsum(left > 0) - 1
    if asked:
        kept = many > 0
        held = Pieces(place[runs.cell[kept]], runs.run[kept], runs.rows[kept], stay)
    else:
        kept = count > aside
        group = np.unique(group[kept], return_inverse=True)[1].reshape(-1)
        held = Pieces(place[cell[kept]], group, (count - aside)[kept], np.ones(group.size, np.int64))
    return Thinned(replace(task, histogram=small), cells, held, (runs.cell, runs.run, aside), each)


def _waiting(task: Task, cell: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Rows of each cell that no group holds, int64[m]."""
    h = task.histogram
    return h.count - np.bincount(cell, weights=count, minlength=h.cells).astype(np.int64)


def _alike(k: int, cell: np.ndarray, count: np.ndarray) -> Pieces | None:
    """Of each triple as many rows as make pieces of k: equal rows lose nothing."""
    return Pieces(cell, np.arange(cell.size), np.full(cell.size, k), count // k)


def equal_pieces(task: Task, j: int, cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> Pieces | None:
    """Groups dealt in turn into pieces as ``Rows.cut`` does, equal pieces together; None if they are hardly equal.

    A triple has consecutive ranks in its group, so its rows come to pieces that follow each other, from where the one
    before it ended: a group has at most one run of equal pieces more than triples.
    """
    need = task.requirement
    group = _mixes(cell, group, count)
    value = task.histogram.sensitive[cell, j]
    order = rising(group, value, cell)
    cell, group, value = cell[order], group[order], value[order]
    begin = np.flatnonzero((np.diff(cell, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
    own = np.add.reduceat(count[order], begin)
    cell, group = cell[begin], group[begin]
    pieces = pieces_of(group, value[begin], own, need.smallest, need.frequency[j], 1)
    rows = np.bincount(group, weights=own).astype(np.int64)
    base = np.cumsum(pieces) - pieces
    rank = np.cumsum(own) - own - (np.cumsum(rows) - rows)[group]
    full, over = np.divmod(own, pieces[group])
    first = rank % pieces[group]
    end = first + over
    wrap = np.maximum(end - pieces[group], 0)
    begin = np.unique(np.concatenate([base[group] + first, base, base + rows % pieces]))
    begin = begin[begin < int(pieces.sum())]
    times = np.diff(np.append(begin, int(pieces.sum())))
    of = base[group]
    low = np.searchsorted(begin, np.concatenate([of + first, of, of]))
    high = np.searchsorted(
        begin, np.concatenate([of + end - wrap, of + wrap, np.where(full > 0, of + pieces[group], of)])
    )
    each = np.concatenate([np.ones(2 * cell.size, np.int64), full])
    many = np.maximum(high - low, 0)
    if int(many.sum()) > WORTH * int(own.sum()):
        return None
    run = np.repeat(low - (np.cumsum(many) - many), many) + np.arange(int(many.sum()))
    return Pieces(np.repeat(np.tile(cell, 3), many), run, np.repeat(each, many), times)


def _mixes(cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The groups of triples numbered anew, int64[x], those that hold the same cells in the same shares as one.

    They are told apart by a sum of hashes; groups that it confuses are eligible together as any two are.
    """
    order = np.argsort(group, kind="stable")
    new = np.diff(group[order], prepend=-1) != 0
    begin, of = np.flatnonzero(new), np.cumsum(new) - 1
    parts = np.gcd.reduceat(count[order], begin)
    key = cell[order].astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + (count[order] // parts[of]).astype(np.uint64)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        key = (key ^ (key >> np.uint64(29))) * np.uint64(factor)
    mix = np.unique(np.add.reduceat(key ^ (key >> np.uint64(32)), begin), return_inverse=True)[1].reshape(-1)
    out = np.empty(group.size, np.int64)
    out[order] = mix[of]
    return out


def _staying(size: np.ndarray, times: np.ndarray, wanted: int) -> np.ndarray:
    """How many pieces of each run stay: alike for all, and ``wanted`` rows together if there are, one at least."""
    low, high = 1, max(int(times.max(initial=1)), 1)
    while low < high:
        middle = (low + high) // 2
        if int((size * np.minimum(times, middle)).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return np.minimum(times, low)


BATCH = 256
SORTED = 4.0  # how long a look takes where a node's cells are sorted, relative to one of the compiled cascade
SORT_SETUP = 5_000  # cells that could be sorted in the time that a node takes whatever its cells
ROUNDS = 12  # in which rows are taken out of classes
SPENT = 0.01  # of the rows left: where persons are counted a node costs much, and nodes that place fewer are the last
HURRY = 0.05  # share of the seconds after which the other cascade is left out where t-closeness has one of its own


def cascade(task: Task) -> Grouping:
    """Cascade through the lattice, groups cut small, leftover rows placed; never dearer than ``three_phase``.

    Near-linear in the number of cells for each lattice node it visits.
    Raises InfeasibleError when rows cannot be placed under a column's ceiling.
    """
    rows = Rows.of(task)
    return certify(task, best(task, start(task, rows)), "cascade")


def start(task: Task, rows: Rows) -> Partition:
    """The cascade cut into pieces, with everyone placed."""
    if not task.histogram.cells:
        return rows.partition(np.zeros(0, np.int64))
    began = clock()
    quotas, shares = by_quotas(task, rows), by_shares(task)
    small = None if quotas is None else rows.partition(rows.place(quotas))
    if shares is not None:
        small = min((p for p in (small, finished(task, rows, *shares)) if p), key=lambda p: rank(task, p))
    if small is not None:
        seconds = task.effort.seconds
        if seconds is not None and clock() - began > HURRY * seconds:  # better spent on annealing
            return small
    found = finished(task, rows, *walk(task))
    if small is not None:
        found = min((found, small), key=lambda partition: rank(task, partition))
    easier = task.requirement.stand_in if task.requirement.rules else None
    if easier is None or shortfall(task.histogram, easier) is not None:
        return found
    # Frequencies have a cascade of their own, so a stricter requirement may start better than the one asked.
    strict = replace(task, requirement=easier)
    return min((found, start(strict, Rows.of(strict))), key=lambda partition: rank(task, partition))


def walk(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Triples (cell, group, rows) published by the cascade; rows left over are in none."""
    from shoal.kernels import quick
    from shoal.kernels.tables.lattice import GeneralizedCells, HeldBackRows, UnpublishedRows, publish

    histogram, need = task.histogram, task.requirement
    lattice = Lattice.of(task.recoding)
    nodes = NodesToVisit(task, lattice)
    up, at, size, exact = lattice.flat
    asked = list(need.sensitive_columns)
    sensitive = np.ascontiguousarray(histogram.sensitive[:, asked])
    values = np.array([max(histogram.sensitive_sizes[j], 1) for j in asked], np.int64)
    frequency = np.array([need.frequency[j] for j in asked], np.int64)
    distinct = np.array([need.distinct[j] for j in asked], np.int64)
    rules = rules_of(need, histogram.sensitive_sizes)
    common = scarcity(task)
    left = histogram.count.copy()
    raised = GeneralizedCells(histogram.quasi, up, at, size, exact)
    reserve = HeldBackRows(common, np.zeros_like(left), np.zeros_like(left))
    order = np.arange(histogram.cells)
    if rules is not None and (rules.person >= 0).any():  # persons are counted in linear time where theirs lie together
        order = np.argsort(sensitive[:, rules.person[rules.person >= 0][0]], kind="stable")
    out, stock = GroupTriples.empty(4 * histogram.cells + 16), UnpublishedRows(sensitive, left, order, reserve)
    required = GroupRequirement(need.k if asked else need.smallest, frequency, distinct, rules)
    found: list[tuple[np.ndarray, ...]] = []
    group, batch = 0, nodes.every[:0]
    while (nodes.left or len(batch)) and left.any():
        task.progress("cascade", nodes.share)
        before = int(left.sum())
        if not len(batch):
            batch = nodes.take(int(np.count_nonzero(left)), BATCH)
        steps, written, group = quick(publish, np.inf if rules is not None else histogram.quasi.size * len(batch))(
            rules, raised, batch, stock, required, values, group, out
        )
        batch = batch[steps:]
        found.append(tuple(a[:written].copy() for a in out))
        if not need.closed and left.sum() > (1 - SPENT) * before:
            break
    kept = np.flatnonzero(reserve.spare)
    found.append((kept, reserve.home[kept], reserve.spare[kept]))
    cell, group_of, count = (np.concatenate(a) for a in zip(*found, strict=True))
    return cell, group_of, count


def scarcity(task: Task) -> np.ndarray:
    """bool per sensitive value: the values that are not scarce; empty where no value is.

    Only for distinct diversity of one column: of every u - 1 values, each group needs a row of another.  Where the
    u - 1 most frequent values are more than half of the table, all others are scarce.
    """
    histogram, need = task.histogram, task.requirement
    none = np.zeros(0, bool)
    asked = need.sensitive_columns
    if len(asked) != 1 or need.frequency[asked[0]] > 1 or need.rules:
        return none
    j = asked[0]
    held = np.bincount(histogram.sensitive[:, j], weights=histogram.count, minlength=histogram.sensitive_sizes[j])
    order = np.argsort(-held, kind="stable")[: need.distinct[j] - 1]
    if held[order].sum() <= held.sum() / 2:
        return none
    out = np.zeros(held.size, bool)
    out[order] = True
    return out


def forbidden(task: Task, partition: Partition) -> np.ndarray:
    """Rows published above the ceiling of each column, int64[d]."""
    out = np.zeros(len(task.recoding.columns), np.int64)
    held = [(j, c) for j, c in enumerate(task.recoding.columns) if c.held]
    if held:
        published = task.recoding.publish(task.histogram, partition)
        for j, column in held:
            out[j] = partition.sizes[column.above(published.first[:, j])].sum()
    return out


def rank(task: Task, partition: Partition) -> tuple[int, float]:
    """What to compare partitions by: rows above a ceiling first, then the loss."""
    return int(forbidden(task, partition).sum()), task.recoding.cost(task.histogram, partition)


def best(task: Task, *partitions: Partition) -> Partition:
    """The cheapest of some partitions and the three-phase one; refuses when all break a ceiling."""
    candidates = [*partitions, residues(task)[0]]
    return within_ceilings(task, min(candidates, key=lambda p: rank(task, p)))


def within_ceilings(task: Task, chosen: Partition) -> Partition:
    """The same partition; InfeasibleError where it breaks a ceiling."""
    over = forbidden(task, chosen)
    if over.any():
        j = int(over.argmax())
        level, name = task.recoding.columns[j].limit, task.histogram.quasi_names[j]
        raise InfeasibleError(
            f"{int(over[j])} rows cannot be placed with {name!r} at {level} or below; "
            "raise its ceiling or leave the column out"
        )
    return chosen
