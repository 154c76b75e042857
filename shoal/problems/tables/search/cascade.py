"""The cascade: publish each row at the cheapest lattice node where it is in an eligible class (docs/cascade.md).

The nodes are visited from the values themselves upwards, by mean loss. At each node, the rows not yet published form
classes, and the largest eligible part of each class is published. The groups are then cut as small as dealing allows,
which costs nothing, and each row left over joins the piece where it adds least loss. The result is the better of this
partition and that of the three-phase algorithm, so the promise of the three-phase algorithm holds here too.

Other starts for the search are here as well: small groups for t-closeness (``by_quotas``), groups for a common value
near its limit (``by_shares``), and the cascade guided by row prices (``guided``). ``thinned`` makes a large table
small before a search: of equal pieces of a group a few stay, and the others are set aside without loss.
"""

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
from shoal.problems.tables.bounds import certify
from shoal.problems.tables.bounds.bounds import LOOKS, Sweeper
from shoal.problems.tables.groups import Rows, groups_that_meet, pieces_of, rules_of
from shoal.problems.tables.losses import ENUMERATED, Lattice, NodesToVisit
from shoal.problems.tables.three_phase import ceiling_classes, residues

MOST = 3  # times the least size: limit of the rows of a group


def by_quotas(task: Task, rows: Rows) -> np.ndarray | None:
    """A group for every row, int64[n], under t-closeness of one column; -1 for none. None for other requests.

    Each group is grown row by row, so that it is small and within t. The nodes are visited as in the cascade.
    O(nodes * cells * log(cells)).
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
    # The rows left are sorted into the node's classes. The kernel makes groups of each class.
    for cells, start in _classes_in_turn(task, left):
        group, written = deal(cells, start, value, left, quotas, group, out)
        if written:
            found.append(tuple(a[:written].copy() for a in out))
    if not found:
        return np.full(rows.cell.size, -1, np.int64)
    cell, label, count = (np.concatenate(a) for a in zip(*found, strict=True))
    labels = rows.spread(cell, label, count)
    good = rows.eligible(labels, group)  # under all requested models
    return np.where((labels >= 0) & good[labels], labels, -1)


def _classes_in_turn(task: Task, left: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for each node visited, the cells with rows left, sorted by its classes, and where each class begins.

    left  int64[m]  rows left of each cell; the caller reduces them between two nodes
    """
    lattice = Lattice.of(task.recoding)
    nodes = NodesToVisit(task, lattice, SORTED)
    while nodes.left and left.any():
        task.progress("cascade", nodes.share)
        cells = np.flatnonzero(left > 0)
        order, start = _classes_at(lattice, nodes.take(cells.size + SORT_SETUP)[0], task.histogram.quasi[cells])
        yield cells[order], start


def _classes_at(lattice: Lattice, node: np.ndarray, quasi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cells int[x, d] sorted by the classes of a node: their order int64[x], and where each class begins and ends."""
    key = np.zeros(len(quasi), np.int64)
    for j, level in enumerate(node):
        up = lattice.up[j][level].astype(np.int64)
        width = int(up.max(initial=0)) + 1
        if int(key.max(initial=0)) >= 2**62 // width:
            key = np.unique(key, return_inverse=True)[1].reshape(-1)
        key = key * width + up[quasi[:, j]]
    order = np.argsort(key, kind="stable")
    return order, np.append(np.flatnonzero(np.diff(key[order], prepend=-1)), len(quasi))


NEAR = 0.8  # the commonest value of the table has at least this part of its largest share in a group
OTHERS = 0.6  # and every other value has at most this part of its own
COLUMNS = 3  # limit of such columns; each one doubles the work


class NearLimit(NamedTuple):
    """A sensitive column whose commonest value has nearly the largest share that it may have in a group.

    value  code of this value;  most  the largest share
    """

    column: int
    value: int
    most: float


def near_limits(task: Task) -> list[NearLimit]:
    """Up to three sensitive columns whose commonest value, and no other, is near its limit: those nearest to it."""
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
    """Eligible groups as triples (cell, group, rows) if commonest values are near their limits; None otherwise.

    A class publishes only a part in which the commonest value has at least its share among all rows left, and at most
    its largest share. So its share among the remaining rows never rises, and the rows left at the top node are
    eligible. O(nodes * cells).
    """
    from shoal.kernels import quick
    from shoal.kernels.tables.eligible_parts import CommonValues
    from shoal.kernels.tables.lattice import GeneralizedCells, publish_balanced

    limits = near_limits(task)
    if not limits or not task.requirement.closed:
        return None
    h, need = task.histogram, task.requirement
    # bit i of a cell's kind: the cell has another value in column i of the limits
    kind = sum((h.sensitive[:, limit.column] != limit.value).astype(np.int64) << i for i, limit in enumerate(limits))
    other = (np.arange(1 << len(limits))[:, None] >> np.arange(len(limits)) & 1).astype(bool)
    common = CommonValues(kind, other, np.array([limit.most for limit in limits]), need.smallest)
    lattice = Lattice.of(task.recoding)
    nodes, raised = NodesToVisit(task, lattice, SORTED), GeneralizedCells(h.quasi, *lattice.flat)
    left, active = h.count.copy(), np.flatnonzero(h.count > 0)
    out = GroupTriples.empty(active.size)
    found: list[tuple[np.ndarray, ...]] = []
    visited: list[tuple[np.ndarray, int]] = []  # nodes that publish groups, and their groups
    group = 0
    while nodes.left and active.size:
        task.progress("cascade", nodes.share)
        level = nodes.take(active.size + SORT_SETUP)[0]
        run = quick(publish_balanced, active.size * level.size)
        here, written, after = run(raised, level, active, common, left, group, out)
        if written:
            found.append(tuple(a[:written].copy() for a in out))
            visited.append((level, after - group))
        active, group = active[:here], after
    if not found:
        return None
    cell, label, count = (np.concatenate(a) for a in zip(*found, strict=True))
    # Groups are numbered by node, then by the codes of their class, so that the hash table doesn't decide their order.
    label = _by_codes(lattice, visited, h.quasi[cell[np.unique(label, return_index=True)[1]]])[label]
    order = rising(label, kind[cell], cell)
    cell, label, count = cell[order], label[order], count[order]
    good = groups_that_meet(h, need, cell, label, count, group)[label]  # under all requested models
    return cell[good], np.unique(label[good], return_inverse=True)[1].reshape(-1), count[good]


def _by_codes(lattice: Lattice, visited: Sequence[tuple[np.ndarray, int]], quasi: np.ndarray) -> np.ndarray:
    """The place of each group in the order of nodes, then of the codes of its class, int64[groups].

    visited  nodes int32[d], each with the number of its groups;  quasi  int[groups, d], a tuple of each group
    """
    levels, groups = zip(*visited, strict=True)
    turn = np.repeat(np.arange(len(levels)), groups)
    codes = [up[level, code] for up, level, code in zip(lattice.up, np.array(levels)[turn].T, quasi.T, strict=True)]
    place = np.empty(len(turn), np.int64)
    place[np.lexsort((*codes[::-1], turn))] = np.arange(len(turn))
    return place


ALLOWANCES = (0.05, 0.2, 0.5)  # accepted loss of a row above its price, summed over the columns


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
    """A group for every row, int64[n], by the price-guided cascade.

    A class is published only if its loss per row is within an allowance of its rows' prices. The groups are then cut
    small, and every row left over is placed.

    allowances  accepted loss per row above the prices, one for each pass, rising
    most        number of the cheapest nodes to visit; None: all nodes with a class within the last allowance
    finish      function that places the rows left over; ``rows.place`` by default
    None for diversity by frequency, other models, more than two distinct values, several sensitive columns, or if the
    time is over.
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
    """Whether the requirement is only a number of rows, and at most two distinct values of one column."""
    several = rows.frequency.size > 1
    return not (rows.need.rules or several or (rows.frequency.size and (rows.frequency[0] > 1 or rows.distinct[0] > 2)))


def _passes(
    task: Task, rows: Rows, lattice: Lattice, every: np.ndarray, floor: np.ndarray, prices: np.ndarray,
    allowances: Sequence[float], until: float | None,
) -> list[tuple[np.ndarray, ...]] | None:  # fmt: skip
    """Cells, groups, and counts published pass by pass at the nodes ``every``; None if the time is over.

    floor  for each node, a lower bound of what a class loses per row above the prices; raised as rows are published
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
        # Other nodes publish nothing: a class that has fewer rows never loses less above their prices.
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


LARGE = 20_000  # rows from which on some are set aside
WORTH = 0.75  # rows are set aside only if at most this part of them stays
STAY = 40_000  # rows of the pieces that stay, at least
HELPERS = 8  # pieces that stay for each row without a group, at least


class Pieces(NamedTuple):
    """Pieces of groups; a *run* is a set of equal pieces.

    cell int64[x], run int64[x], rows int64[x]  rows of a cell in each piece of a run
    times int64[r]  number of pieces of a run
    """

    cell: np.ndarray
    run: np.ndarray
    rows: np.ndarray
    times: np.ndarray

    @property
    def together(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Triples (cell, group, count) in which each run is one group."""
        return self.cell, self.run, self.rows * self.times[self.run]

    @property
    def apart(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Triples (cell, group, count) in which each piece is one group."""
        times, first = self.times[self.run], np.cumsum(self.times) - self.times
        piece = np.repeat(first[self.run] - (np.cumsum(times) - times), times) + np.arange(int(times.sum()))
        return np.repeat(self.cell, times), piece, np.repeat(self.rows, times)


@dataclass(frozen=True, eq=False)
class Thinned:
    """A table without the rows set aside.

    task   the same request for the rows that stay; each of them represents ``each`` equal rows
    cells  int64[m'] the cells of the whole table that have such rows, rising
    held   the eligible pieces that stay, by cells of ``task``
    aside  triples (cell, group, count) of the eligible groups set aside, by cells of the whole table
    """

    task: Task
    cells: np.ndarray
    held: Pieces
    aside: tuple[np.ndarray, np.ndarray, np.ndarray]
    each: int

    def back(self, partition: Partition) -> Partition:
        """The partition of the whole table, from one of the rows that stay.  O(p log p) for p triples."""
        cell, group, count = self.aside
        return Partition.of(
            np.concatenate([self.cells[partition.cell], cell]),
            np.concatenate([partition.group, group + partition.groups]),
            np.concatenate([partition.count * self.each, count]),
        )


def finished(task: Task, rows: Rows, cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> Partition:
    """The partition with eligible groups, given as triples, cut small, and every other row placed.

    If many equal rows have no group, bundles of them are placed first: each bundle counts as one row, among pieces that
    represent as many equal pieces.
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
    """The table without most of the equal pieces of some eligible groups; None if few are equal.

    each  with one sensitive column: number of equal rows that one row that stays represents; a remainder is left out

    Rows in no group stay. None also if the requirement is more than k and one share of 1/l, or if ceilings make
    classes. O(x log x) for x triples, for any number of rows.
    """
    h, need = task.histogram, task.requirement
    asked = need.sensitive_columns
    if h.rows < LARGE or need.rules or len(asked) > 1 or any(u > 1 for u in need.distinct):
        return None
    if ceiling_classes(task).any():  # the rows of a class that stay might not be eligible alone
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
    # The number of pieces that stay doubles until their rows meet the requirement together.
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
    """Rows of each cell that are in no group, int64[m]."""
    h = task.histogram
    return h.count - np.bincount(cell, weights=count, minlength=h.cells).astype(np.int64)


def _alike(k: int, cell: np.ndarray, count: np.ndarray) -> Pieces | None:
    """Pieces of k equal rows, as many as each triple has."""
    return Pieces(cell, np.arange(cell.size), np.full(cell.size, k), count // k)


def equal_pieces(task: Task, j: int, cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> Pieces | None:
    """Groups dealt in turn into pieces as ``Rows.cut`` does, with equal pieces as one run; None if few are equal.

    The rows of a triple have consecutive ranks in their group, so they are dealt to consecutive pieces, which begin
    where those of the triple before end. So a group has at most one run of equal pieces more than it has triples.
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
    first_piece = base[group]
    low = np.searchsorted(begin, np.concatenate([first_piece + first, first_piece, first_piece]))
    high = np.searchsorted(
        begin,
        np.concatenate(
            [first_piece + end - wrap, first_piece + wrap, np.where(full > 0, first_piece + pieces[group], first_piece)]
        ),
    )
    each = np.concatenate([np.ones(2 * cell.size, np.int64), full])
    many = np.maximum(high - low, 0)
    if int(many.sum()) > WORTH * int(own.sum()):
        return None
    run = np.repeat(low - (np.cumsum(many) - many), many) + np.arange(int(many.sum()))
    return Pieces(np.repeat(np.tile(cell, 3), many), run, np.repeat(each, many), times)


def _mixes(cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> np.ndarray:
    """The groups of triples, numbered from 0, int64[x]; groups with the same cells in the same shares are one.

    Groups are compared by a sum of hashes. If two hashes are equal by chance, the union of the groups is still
    eligible.
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
    """Pieces of each run that stay: at most the least number, equal for all runs, that leaves ``wanted`` rows."""
    low, high = 1, max(int(times.max(initial=1)), 1)
    while low < high:
        middle = (low + high) // 2
        if int((size * np.minimum(times, middle)).sum()) >= wanted:
            high = middle
        else:
            low = middle + 1
    return np.minimum(times, low)


BATCH = 256
SORTED = 4.0  # time for a cell of a node if the cells are sorted, relative to the compiled cascade
SORT_SETUP = 5_000  # cells that can be sorted in the fixed time that a node takes
SPENT = 0.01  # if persons are counted, the cascade ends when a batch publishes less than this part of the rows
HURRY = 0.05  # share of the seconds; if ``by_quotas`` and ``by_shares`` take more, the general cascade isn't run


def cascade(task: Task) -> Grouping:
    """The cascade, or the three-phase algorithm if that is cheaper.

    Near-linear in the number of cells for each node visited.
    Raises InfeasibleError if rows cannot be placed at or below a column's ceiling.
    """
    rows = Rows.of(task)
    return certify(task, best(task, start(task, rows)), "cascade")


def start(task: Task, rows: Rows) -> Partition:
    """The partition by the cascade, cut into pieces, with every row placed."""
    if not task.histogram.cells:
        return rows.partition(np.zeros(0, np.int64))
    began = clock()
    quotas, shares = by_quotas(task, rows), by_shares(task)
    small = None if quotas is None else rows.partition(rows.place(quotas))
    if shares is not None:
        small = min((p for p in (small, finished(task, rows, *shares)) if p), key=lambda p: rank(task, p))
    if small is not None:
        seconds = task.effort.seconds
        if seconds is not None and clock() - began > HURRY * seconds:  # the rest is for annealing
            return small
    found = finished(task, rows, *publish_classes(task))
    if small is not None:
        found = min((found, small), key=lambda partition: rank(task, partition))
    easier = task.requirement.stand_in if task.requirement.rules else None
    if easier is None or shortfall(task.histogram, easier) is not None:
        return found
    # For limits of shares the cascade publishes parts of classes, so a stricter requirement may give a better start.
    strict = replace(task, requirement=easier)
    return min((found, start(strict, Rows.of(strict))), key=lambda partition: rank(task, partition))


def publish_classes(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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
    if (
        rules is not None and (rules.person >= 0).any()
    ):  # the rows of a person are adjacent, so persons are counted in linear time
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
    """bool[v], which values of the sensitive column are not scarce; empty if no value is scarce.

    Only for distinct diversity of one column: in addition to any u - 1 values, each group needs a row of another. If
    the u - 1 most frequent values make up more than half of the table, all others are scarce.
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
    """The order of partitions: first by rows above a ceiling, then by loss."""
    return int(forbidden(task, partition).sum()), task.recoding.cost(task.histogram, partition)


def best(task: Task, *partitions: Partition) -> Partition:
    """The cheapest of some partitions and of the three-phase one; InfeasibleError if all exceed a ceiling."""
    candidates = [*partitions, residues(task)[0]]
    return within_ceilings(task, min(candidates, key=lambda p: rank(task, p)))


def within_ceilings(task: Task, chosen: Partition) -> Partition:
    """The same partition; InfeasibleError if it exceeds a ceiling."""
    over = forbidden(task, chosen)
    if over.any():
        j = int(over.argmax())
        level, name = task.recoding.columns[j].limit, task.histogram.quasi_names[j]
        raise InfeasibleError(
            f"{int(over[j])} rows cannot be placed with {name!r} at {level} or below; "
            "raise its ceiling or leave the column out"
        )
    return chosen
