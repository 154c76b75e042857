"""A large table made small before it is searched: of equal pieces of a group a few stay, the others are set aside.

A group is dealt into eligible pieces, and pieces with equal rows are interchangeable: a search needs only as many of
them as others may want to join or to borrow.  What is set aside publishes what its pieces would, so nothing is lost by
it, and what a search costs follows the number of cells, not of rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shoal.model.histogram import rising
from shoal.model.partition import Partition
from shoal.model.task import Task, shortfall
from shoal.problems.tables.papers.three_phase import ceiling_classes
from shoal.problems.tables.search.row_groups import Rows, pieces_of

LARGE = 20_000  # rows below which nothing is set aside
WORTH = 0.75  # part of the rows that may be left, or it is not worth it
STAY = 40_000  # rows of pieces that stay, at least
HELPERS = 8  # times as many pieces as rows that have no group


class Runs(NamedTuple):
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
    held: Runs
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
        held = Runs(place[runs.cell[kept]], runs.run[kept], runs.rows[kept], stay)
    else:
        kept = count > aside
        group = np.unique(group[kept], return_inverse=True)[1].reshape(-1)
        held = Runs(place[cell[kept]], group, (count - aside)[kept], np.ones(group.size, np.int64))
    return Thinned(replace(task, histogram=small), cells, held, (runs.cell, runs.run, aside), each)


def _waiting(task: Task, cell: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Rows of each cell that no group holds, int64[m]."""
    h = task.histogram
    return h.count - np.bincount(cell, weights=count, minlength=h.cells).astype(np.int64)


def _alike(k: int, cell: np.ndarray, count: np.ndarray) -> Runs | None:
    """Of each triple as many rows as make pieces of k: equal rows lose nothing."""
    return Runs(cell, np.arange(cell.size), np.full(cell.size, k), count // k)


def equal_pieces(task: Task, j: int, cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> Runs | None:
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
    return Runs(np.repeat(np.tile(cell, 3), many), run, np.repeat(each, many), times)


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
