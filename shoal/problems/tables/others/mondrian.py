"""Mondrian: halve groups at the median of their widest column for as long as the parts are eligible.

LeFevre, DeWitt, Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006; strict: equal values stay together.

Kept from the paper: the widest column first, the median, no cut that leaves an ineligible part.
Departures: width is the loss published so far; on a hierarchy a group is cut into the children of its common ancestor
at once, and children that are ineligible by themselves stay together as one part; all groups of one depth are cut in
one vectorised pass; any requirement that is monotone may be asked.
"""

from __future__ import annotations

import numpy as np

from shoal.model.partition import Partition
from shoal.model.recoding import ColumnRecoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import certified, good_groups


def mondrian(task: Task) -> Grouping:
    """Best suited to ``publish="ranges"``.  No promise: a heuristic with the tuple bound.

    O(m log m) for each of about d log(groups) passes.
    """
    partition, passes = cut(task)
    return certified(task, partition, "mondrian", details={"passes": passes})


def cut(task: Task) -> tuple[Partition, int]:
    """The partition, and the number of passes it took."""
    histogram, columns = task.histogram, task.recoding.columns
    m, d = histogram.cells, len(columns)
    label = np.zeros(m, np.int64)
    active = np.arange(m)
    tried = np.zeros((1, d), bool)
    passes = 0
    while active.size and d:
        passes += 1
        names, group = np.unique(label[active], return_inverse=True)
        tried = tried[names]
        width, level = _widths(task, active, group, names.size)
        width[tried] = 0
        column = width.argmax(axis=1)
        open_ = width[np.arange(names.size), column] > 0
        kept = open_[group]
        active, group = active[kept], group[kept]
        if not active.size:
            break
        part = np.zeros(active.size, np.int64)
        for j in np.unique(column[open_]):
            here = np.flatnonzero(column[group] == j)
            part[here] = _parts(task, columns[j], int(j), active[here], group[here], level[:, j])
        new, done = _settle(task, active, group, part, names.size)
        # groups that were cut are numbered afresh, the others keep their number and lose a column
        tried[np.arange(names.size)[open_ & ~done], column[open_ & ~done]] = True
        fresh = int(label.max()) + 1
        moved = done[group]
        label[active[~moved]] = names[group[~moved]]
        parts, number = np.unique(new[moved], return_inverse=True)
        label[active[moved]] = fresh + number.reshape(-1)
        memory = np.zeros((fresh + parts.size, d), bool)
        memory[names] = tried
        tried = memory
    return Partition.of(np.arange(m), label, histogram.count), passes


def _widths(task: Task, cells: np.ndarray, group: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """(loss of every group in every column, level of its common ancestor) for whole cells."""
    order = np.argsort(group, kind="stable")
    start = np.searchsorted(group[order], np.arange(groups))
    width = np.zeros((groups, len(task.recoding.columns)))
    level = np.zeros(width.shape, np.int64)
    for j, column in enumerate(task.recoding.columns):
        code = task.histogram.quasi[cells[order], j]
        low, high = np.minimum.reduceat(code, start), np.maximum.reduceat(code, start)
        if column.levels:
            apart = low != high
            for at in range(1, column.levels):
                level[apart, j] = at
                node = column.classes(at, code)
                apart &= np.minimum.reduceat(node, start) != np.maximum.reduceat(node, start)
            width[:, j] = column.lifted(level[:, j], low)
        else:
            width[:, j] = column.spread(low, high)
        width[:, j] *= column.weight
    return width, level


def _parts(
    task: Task, column: ColumnRecoding, j: int, cells: np.ndarray, group: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """int64[x]: the part of its group that each cell would go to."""
    code = task.histogram.quasi[cells, j].astype(np.int64)
    if column.levels:
        return column.classes(np.maximum(level[group] - 1, 0), code).astype(np.int64)
    order = np.lexsort((code, group))
    count, sorted_group = task.histogram.count[cells][order], group[order]
    start = np.flatnonzero(np.append(True, np.diff(sorted_group) != 0))
    length = np.diff(np.append(start, order.size))
    upto = np.cumsum(count)
    before = np.repeat(upto[start] - count[start], length)
    total = np.repeat(np.add.reduceat(count, start), length)
    first_half = 2 * (upto - before) < total  # strictly before the median row
    at = start + np.add.reduceat(first_half.astype(np.int64), start)
    median = np.repeat(code[order][at], length)
    above = code[order] > median
    # a median that is the highest value goes to the upper part
    highest = np.repeat(~np.logical_or.reduceat(above, start), length)
    out = np.empty(order.size, np.int64)
    out[order] = np.where(highest, code[order] >= median, above)
    return out


def _settle(
    task: Task, cells: np.ndarray, group: np.ndarray, part: np.ndarray, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """(part of each cell, which groups are cut).

    The ineligible parts of a group are put together; where they are ineligible even so, its smallest good part joins.
    """
    histogram, need = task.histogram, task.requirement
    wide = np.int64(part.max(initial=0) + 2)
    pair, number = np.unique(group * wide + part, return_inverse=True)
    owner = pair // wide
    rest = ~good_groups(histogram, need, cells, number)
    new, bad = _merged(task, cells, group, pair, owner, number, rest, groups)
    if bad.any():
        rows = np.bincount(number, weights=histogram.count[cells], minlength=pair.size)
        order = np.lexsort((rows, rest, owner))
        join = order[np.append(True, np.diff(owner[order]) != 0)]
        rest[join[bad[owner[join]]]] = True
        new, bad = _merged(task, cells, group, pair, owner, number, rest, groups)
    parts = np.bincount(np.unique(np.stack([group, new]), axis=1)[0], minlength=groups)
    return new, (parts > 1) & ~bad


def _merged(
    task: Task,
    cells: np.ndarray,
    group: np.ndarray,
    pair: np.ndarray,
    owner: np.ndarray,
    number: np.ndarray,
    rest: np.ndarray,
    groups: int,
) -> tuple[np.ndarray, np.ndarray]:
    """(part of each cell when the rest of every group is one part, which groups have an ineligible part still)."""
    merged = np.where(rest, int(pair.max()) + 1 + owner, pair)
    new = np.unique(merged[number], return_inverse=True)[1].reshape(-1)
    fits = good_groups(task.histogram, task.requirement, cells, new)
    bad = np.zeros(groups, bool)
    bad[group[~fits[new]]] = True
    return new, bad
