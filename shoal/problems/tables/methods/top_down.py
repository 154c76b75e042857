"""Methods that refine from the top: top-down specialization, and Mondrian.

Top-down specialization: one partition of every column's domain, refined from the root while groups stay eligible. Fung,
Wang, Yu, "Top-down specialization for information and privacy preservation", ICDE 2005, made l-diverse as in Xiao, Yi,
Tao 2010, section 6.2. Single-dimensional: equal values are recoded equally in all rows.

From the paper: a cut through every column's hierarchy, refined class by class; continuous columns (ranges, sets) are
cut in two.
Difference: the paper's score needs a class label; here the score of a refinement is the loss that it saves over the
bits of information that it adds. This score doesn't change when other columns are refined. If a refinement leaves an
ineligible group, it always will (a union of eligible groups is eligible). So each refinement is tried once, in
descending order.

Mondrian: halve groups at the median of their widest column while the parts are eligible. LeFevre, DeWitt, Ramakrishnan,
"Mondrian multidimensional k-anonymity", ICDE 2006; strict: equal values stay together.

From the paper: the widest column first, the median, no cut that leaves an ineligible part.
Differences: width is the current loss; on a hierarchy, a group is cut into all children of its common ancestor at once,
and ineligible children stay together as one part; all groups of one depth are cut in one vectorized pass; any monotone
requirement is allowed.
"""

from __future__ import annotations

import heapq

import numpy as np

from shoal.errors import PolicyError
from shoal.model.histogram import Partition
from shoal.model.recoding import ColumnRecoding, Levels, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds import certified
from shoal.problems.tables.groups import groups_that_meet

MOST_CUTS = 31


def top_down(task: Task) -> Grouping:
    """TDS. A heuristic without a guarantee, with the tuple bound.

    ``details`` has the number of classes of every column.

    If a limit forbids a column's upper levels, the column starts at the highest level allowed.
    O(m log m) for each refinement tried, at most two per value.
    """
    label, cuts = specialize(task)
    partition = Partition.of(np.arange(task.histogram.cells), label, task.histogram.count)
    classes = {name: int(np.unique(c).size) for name, c in zip(task.histogram.quasi_names, cuts, strict=True)}
    return certified(task, partition, "top_down", details={"classes": classes})


def as_published(cuts: list[np.ndarray]) -> Recoding:
    """The single-dimensional recoding itself: every value is published as its class, in all groups.

    For measurements: level 0 is the classes of the cut, level 1 is the root.
    """
    return Recoding(tuple(Levels.tree(np.stack([cut, np.zeros_like(cut)])) for cut in cuts))


def specialize(task: Task) -> tuple[np.ndarray, list[np.ndarray]]:
    """(group of every cell, class of every code of every column)."""
    histogram, columns = task.histogram, task.recoding.columns
    label = np.zeros(histogram.cells, np.int64)
    cuts: list[np.ndarray] = []
    heap: list[tuple[float, int, int, int, np.ndarray]] = []
    order = 0
    for j, column in enumerate(columns):
        highest, top = column.top()
        cuts.append(top)
        _, label = np.unique(label * (int(top.max(initial=0)) + 1) + top[histogram.quasi[:, j]], return_inverse=True)
        for name in np.unique(top):
            codes = np.flatnonzero(top == name)
            heap.append((-_worth(task, j, codes, highest), order, j, highest, codes))
            order += 1
    held = [histogram.quasi_names[j] for j, c in enumerate(columns) if c.held]
    if held and not groups_that_meet(histogram, task.requirement, np.arange(label.size), label).all():
        raise PolicyError(
            f"with the highest levels allowed for {', '.join(held)} some groups stay too small when every value is "
            "recoded alike; allow higher levels"
        )
    heapq.heapify(heap)
    # The class with the best score is split at the first level below it at which every group stays eligible.
    while heap:
        worth, _, j, level, codes = heapq.heappop(heap)
        if worth == 0:
            continue
        inside = np.isin(histogram.quasi[:, j], codes)
        cells = np.flatnonzero(inside)
        for below, part in refinements(task, j, level, codes):
            child = part[np.searchsorted(codes, histogram.quasi[cells, j])]
            _, new = np.unique(label[cells] * np.int64(codes.size + 1) + child, return_inverse=True)
            if not groups_that_meet(histogram, task.requirement, cells, new).all():
                continue
            label[cells] = int(label.max()) + 1 + new
            fresh = int(cuts[j].max()) + 1
            for name in np.unique(part):
                some = codes[part == name]
                cuts[j][some] = fresh + name
                heapq.heappush(heap, (-_worth(task, j, some, below), order, j, below, some))
                order += 1
            label = np.unique(label, return_inverse=True)[1].reshape(-1)
            task.progress("specializing", None)
            break
    return label, [np.unique(c, return_inverse=True)[1].reshape(-1) for c in cuts]


def _held(task: Task, j: int) -> np.ndarray:
    column = task.recoding.columns[j]
    return np.bincount(task.histogram.quasi[:, j], weights=task.histogram.count, minlength=max(column.size, 1))


def refinements(task: Task, j: int, level: int, codes: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The ways to refine a class: (level below, part of each of its codes), the preferred one first."""
    column = task.recoding.columns[j]
    if codes.size < 2:
        return []
    if column.levels:
        while level > 0:
            level -= 1
            _, part = np.unique(column.classes(level, codes), return_inverse=True)
            if int(part.max()) > 0:
                return [(level, part.reshape(-1))]
        return []
    held = np.cumsum(_held(task, j)[codes])
    points = np.arange(1, codes.size)
    if points.size > MOST_CUTS:
        points = np.unique(np.searchsorted(held, held[-1] * np.arange(1, MOST_CUTS + 1) / (MOST_CUTS + 1)) + 1)
        points = points[points < codes.size]
    nearest = np.argsort(np.abs(2 * held[points - 1] - held[-1]), kind="stable")
    return [(0, (np.arange(codes.size) >= p).astype(np.int64)) for p in points[nearest]]


def _worth(task: Task, j: int, codes: np.ndarray, level: int) -> float:
    """Loss saved by the preferred refinement per bit of information; 0 if there is none."""
    column = task.recoding.columns[j]
    ways = refinements(task, j, level, codes)
    if not ways:
        return 0.0
    below, part = ways[0]
    held = _held(task, j)[codes]
    rows = np.bincount(part, weights=held)
    if not held.sum():
        return 0.0

    def loss(some: np.ndarray, at: int) -> float:
        return float(column.lifted(at, some[0]) if column.levels else column.spread(some[0], some[-1]))

    after = sum(rows[p] * loss(codes[part == p], below) for p in range(rows.size))
    share = rows[rows > 0] / rows.sum()
    bits = float(-(share * np.log2(share)).sum() * rows.sum())
    return max(column.weight * (held.sum() * loss(codes, level) - after), 1e-12) / max(bits, 1e-9)


def mondrian(task: Task) -> Grouping:
    """Mondrian, best suited to ``publish="ranges"``. A heuristic without a guarantee, with the tuple bound.

    O(m log m) for each of about d log(groups) passes.
    """
    partition, passes = cut(task)
    return certified(task, partition, "mondrian", details={"passes": passes})


def cut(task: Task) -> tuple[Partition, int]:
    """The partition, and its number of passes."""
    histogram, columns = task.histogram, task.recoding.columns
    m, d = histogram.cells, len(columns)
    label = np.zeros(m, np.int64)
    active = np.arange(m)
    tried = np.zeros((1, d), bool)
    passes = 0
    # A pass cuts every group in the widest column that it hasn't tried. A group that can't be cut there tries the next
    # one.
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
        new, done = _parts_joined(task, active, group, part, names.size)
        # groups that were cut get new numbers; the others keep their number and mark a column as tried
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
    """int64[x]: the part of its group to which each cell would go."""
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
    # if the median is the highest value, it goes to the upper part
    highest = np.repeat(~np.logical_or.reduceat(above, start), length)
    out = np.empty(order.size, np.int64)
    out[order] = np.where(highest, code[order] >= median, above)
    return out


def _parts_joined(
    task: Task, cells: np.ndarray, group: np.ndarray, part: np.ndarray, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """(part of each cell, which groups are cut).

    The ineligible parts of a group are merged; if they are still ineligible, its smallest eligible part joins.
    """
    histogram, need = task.histogram, task.requirement
    wide = np.int64(part.max(initial=0) + 2)
    pair, number = np.unique(group * wide + part, return_inverse=True)
    owner = pair // wide
    rest = ~groups_that_meet(histogram, need, cells, number)
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
    """(part of each cell if the rest of every group is one part, which groups still have an ineligible part)."""
    merged = np.where(rest, int(pair.max()) + 1 + owner, pair)
    new = np.unique(merged[number], return_inverse=True)[1].reshape(-1)
    fits = groups_that_meet(task.histogram, task.requirement, cells, new)
    bad = np.zeros(groups, bool)
    bad[group[~fits[new]]] = True
    return new, bad
