"""Nearest cells of every cell, sorted around centers, and the bound by neighbors (docs/bounds.md, docs/boxes.md).

A row is in a group with at least K - 1 others, so it loses at least what its K - 1 nearest rows cost it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from shoal.clock import clock
from shoal.model.privacy.base import CLOSE
from shoal.model.recoding import ColumnRecoding, Levels, Ranges, Regions, Sets
from shoal.model.task import Task
from shoal.problems.tables.groups import ancestors, least_rows
from shoal.threads import cores, each, flag

if TYPE_CHECKING:
    from shoal.kernels.tables.connected_sets import AreaColumn
    from shoal.kernels.tables.near_cells import CellTable, CenterIndex, ValueShares

LARGE = 2000  # limit of the codes of a column whose pairs have a table
VALUES = 200  # limit of the values of a sensitive column whose shares are used
FEW = 1500  # cells from which on centers are used; below, every pair is examined
CENTERS, MOST_CENTERS = 4, 2000  # centers relative to the square root of the number of cells, and at most
PART, STEPS = 20, 3  # cells for each center that determine it, and steps of that
INDEX_PACE = 8e8  # look-ups per second when cells are sorted around centers
SAMPLED = 250  # cells from which the look-ups of all are estimated
AT_ONCE = 16  # cells of a slice, unless the table is large


@dataclass(frozen=True, eq=False)
class Pairs:
    """The loss of each pair of rows in the form of the kernels, with the cells sorted around centers.

    order int64[m]  the cells of the table;  alone float64[m]  loss of a row of each cell in any group
    uneven          whether a step of a grid alone costs some codes more than others
    areas           the most expensive column of areas; None without any
    even            the same cells for groups whose size is a multiple of the share; None if the least size is one
    nested          whether a box is the same from each of its rows
    """

    cells: CellTable
    index: CenterIndex
    order: np.ndarray
    alone: np.ndarray
    uneven: bool
    areas: AreaColumn | None = None
    even: CellTable | None = None
    nested: bool = False

    @classmethod
    def of(cls, task: Task, *, of_one: bool = False) -> Pairs:
        """The pairs of a task. O(m log m), and the square of every column's number of codes.

        of_one  count what the row with the first code loses beyond its loss alone, which bounds only this row; without
                it, what every row of a box with both codes loses beyond that
        """
        from shoal.kernels.tables.near_cells import CellTable

        h, need = task.histogram, task.requirement
        parts, at, kind, width, code = [], [], [], [], []
        place, alone, uneven, metric = 0, np.zeros(h.cells), False, True
        # The losses of pairs of codes of each column, in the smallest form: a table, positions on a line, or one loss.
        for j, column in enumerate(task.recoding.columns):
            values, small = np.unique(h.quasi[:, j], return_inverse=True)
            n = values.size
            at.append(place)
            kind.append(0)
            if isinstance(column, Ranges):
                pure = column.pure
                if pure.any() and n <= LARGE:
                    # All rows of a box lose the same, also those that lose most of it by a step of the grid alone.
                    low, high = np.minimum(values[:, None], values), np.maximum(values[:, None], values)
                    own = pure[values]
                    uneven |= bool(np.ptp(own) > 0)
                    metric = False  # two ranges that share a step count it once
                    beyond = column.width(low, high) - (own[:, None] if of_one else own.max())
                    flat = np.maximum(beyond, 0.0).reshape(-1) * column.weight
                    alone += (pure * column.weight)[h.quasi[:, j]]
                else:
                    kind[-1] = 1
                    flat = column.position[values] * (column.weight / column.span)
            elif isinstance(column, Regions):
                flat = (column.near[np.ix_(values, values)] * column.weight).reshape(-1)
            elif not isinstance(column, Levels) or n > LARGE:
                # one loss for every pair of different values; for large trees the least loss of any node above a leaf
                kind[-1] = 2
                low = 0.0 if column.size < 2 else float(column.steps()[values].min()) * column.weight
                flat = np.array([low])
            else:
                parent, loss, of = column.nodes()
                metric &= bool((loss[parent] >= loss).all())
                leaf = of[values]
                flat = loss[ancestors(parent)[np.ix_(leaf, leaf)]].reshape(-1)
            width.append(n)
            parts.append(flat)
            code.append(small)
            place += flat.size
        group = least_rows(h, need)
        distinct, share, value = 1, 1, np.zeros(h.cells, np.int64)
        shares = _nothing_of_shares()
        for j in need.sensitive_columns:
            asked = max(need.frequency[j], need.distinct[j])
            found = _shares(task, j) if asked > distinct or not shares.high.size else shares
            if asked > distinct or (distinct == 1 and found.high.size and not shares.high.size):
                distinct, share, shares = asked, need.frequency[j], found
                value = h.sensitive[:, j].astype(np.int64)
        codes, sets = np.stack(code, axis=1), [isinstance(c, Sets) for c in task.recoding.columns]
        dear = np.array([_mean(*of, codes[:, j]) for j, of in enumerate(zip(parts, kind, width, strict=True))])
        by = np.argsort(-dear, kind="stable")
        order = np.lexsort(codes[:, by[::-1]].T)
        codes = np.ascontiguousarray(codes[order][:, by], dtype=np.int32)
        cells = CellTable(
            losses=np.concatenate(parts),
            at=np.array(at)[by],
            shape=np.array(kind)[by],
            width=np.array(width)[by],
            code=codes,
            sets=np.array(sets)[by],
            count=h.count[order],
            value=value[order],
            distinct=distinct,
            group=group,
            alike=group // share,
            shares=shares,
            lone=False,
        )
        index, sort = center_index(cells, metric)
        cells = cells._replace(code=cells.code[sort], count=cells.count[sort], value=cells.value[sort])
        columns = [_areas(task.recoding.columns[j], h.quasi[:, j], place) for place, j in enumerate(by)]
        areas = next((found for found in columns if found is not None), None)
        most = -(-group // share)
        even = cells._replace(group=share * most, alike=most) if group % share else None
        return cls(cells, index, order[sort], alone, uneven, areas, even, metric and areas is None)

    @property
    def sizes(self) -> tuple[CellTable, ...]:
        """The cells for each size of groups that is examined, the least first."""
        if self.two_values:
            return (self.cells._replace(distinct=1, alike=self.cells.group - 1, lone=True),)
        return (self.cells,) if self.even is None else (self.cells, self.even)

    @property
    def two_values(self) -> bool:
        """Whether groups need two different values, without a condition on their shares."""
        return self.cells.distinct == 2 and not self.cells.shares.high.size and self.cells.alike == self.cells.group

    def columns(self, order: np.ndarray) -> np.ndarray:
        """The codes of the cells int64[m] in this order, column by column, uint32[d, m]."""
        return np.ascontiguousarray(self.cells.code[order].T, dtype=np.uint32)

    def back(self, prices: np.ndarray) -> np.ndarray:
        """Prices in the order of the table's cells, plus what rows lose in any group."""
        out = np.zeros(prices.size)
        out[self.order] = prices
        return out + self.alone


def _nothing_of_shares() -> ValueShares:
    """The absence of a condition on shares."""
    from shoal.kernels.tables.near_cells import NOTHING, ValueShares

    return ValueShares(np.empty(0), np.empty(0), np.empty(0, np.int64), NOTHING, 0.0, np.empty(0))


def _shares(task: Task, j: int) -> ValueShares:
    """The conditions that every eligible group meets on the shares of sensitive column j's values."""
    from shoal.kernels.tables.near_cells import ENTROPY, EQUAL, NOTHING, ORDERED, ValueShares

    need, v = task.requirement, max(task.histogram.sensitive_sizes[j], 1)
    high, low, kind, number, table = np.full(v, 1 / need.frequency[j]), np.zeros(v), NOTHING, 0.0, np.zeros(v)
    if v > VALUES:
        return _nothing_of_shares()
    for rule in need.rules:
        if rule.columns != (j,):
            continue
        asked = rule.measure
        if asked.kind == "band":
            least, most = np.array(asked.table).reshape(-1, 2).T
            low, high = np.maximum(low, least - CLOSE), np.minimum(high, most + CLOSE)
        elif asked.kind == "equal":
            kind, number, table = EQUAL, asked.number + CLOSE, np.array(asked.table)
            low, high = np.maximum(low, table - number), np.minimum(high, table + number)
        elif asked.kind == "ordered":
            kind, number, table = ORDERED, asked.whole * (asked.number + CLOSE), np.array(asked.table)
        elif asked.kind == "entropy":
            kind, number, table = ENTROPY, asked.number - CLOSE, (np.array(rule.table) > 0).astype(float)
        elif asked.kind == "recursive" and asked.whole > 1:  # the commonest has at most c times what all others have
            high = np.minimum(high, asked.number / (1.0 + asked.number) + CLOSE)
    high, low = np.maximum(high, CLOSE), np.where(low > CLOSE, low, 0.0)
    if kind == NOTHING and (high >= 1).all() and not low.any():
        return _nothing_of_shares()
    return ValueShares(high, low, np.flatnonzero(low), kind, number, table)


def _areas(column: ColumnRecoding, code: np.ndarray, place: int) -> AreaColumn | None:
    """A column of areas for the kernels; None for other columns.

    code int[m]  of the cells, in the column;  place  index of the column in the kernels
    """
    from shoal.kernels.tables.connected_sets import AreaColumn

    if not isinstance(column, Regions) or column.unit <= 0.0:
        return None
    area, apart, _ = column.numbered
    return AreaColumn(place, area[np.unique(code)], apart, column.unit, column.weight)


def center_index(cells: CellTable, metric: bool) -> tuple[CenterIndex, np.ndarray]:
    """The cells around centers, and their order, int64[m]; one center if there are few cells or no metric.

    metric  whether losses satisfy the triangle inequality
    The centers are medians, found column by column in a few steps of Lloyd (1982) over part of the cells; the same on
    any number of cores. O(m c d) for c centers.
    """
    from shoal.kernels.tables.near_cells import CenterIndex, nearest_centers, next_centers, recentered

    column = np.ascontiguousarray(cells.code.T, dtype=np.uint32)
    m, metric = column.shape[1], metric and column.shape[1] >= FEW
    many = _centers(m) if metric else 1
    center = np.ascontiguousarray(column[:, np.linspace(0, max(m - 1, 0), many).astype(np.int64)])

    def nearest(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, far = np.zeros(column.shape[1], np.int32), np.zeros(column.shape[1])
        if metric:
            over_cells(own.size, None, lambda a, b: nearest_centers(cells, column, center, a, b, own, far))
        return own, far

    some = np.ascontiguousarray(column[:, :: max(m // (PART * many), 1)])
    for _ in range(STEPS if metric else 0):
        own, _ = nearest(some)
        member = np.argsort(own, kind="stable")
        recentered(cells, some, np.searchsorted(own[member], np.arange(many + 1)), member, center)
    own, far = nearest(column)
    order = np.lexsort((far, own))
    own, far = own[order], far[order]
    rim, following = np.full(many, -1.0), np.zeros((many, many), np.int32)
    np.maximum.at(rim, own, far)
    if metric:
        over_cells(many, None, lambda a, b: next_centers(cells, center, a, b, following))
    start = np.searchsorted(own, np.arange(many + 1))
    return CenterIndex(np.ascontiguousarray(column[:, order]), center, start, far, own, rim, following, metric), order


def _centers(cells: int) -> int:
    """The number of centers for so many cells."""
    return max(1, min(int(CENTERS * np.sqrt(cells)), MOST_CENTERS))


def _index_looks(task: Task) -> float:
    """Largest number of look-ups when a task's cells are sorted around centers."""
    m, many = task.histogram.cells, _centers(task.histogram.cells)
    return float(m >= FEW) * len(task.recoding.columns) * many * (m + STEPS * min(m, PART * many))


def _mean(losses: np.ndarray, shape: int, width: int, code: np.ndarray) -> float:
    """The mean loss in a column of a cell together with another one."""
    other = np.roll(code, code.size // 2)
    if shape == 2:
        return float(losses[0]) * float((code != other).mean())
    return float((losses[code * width + other] if shape == 0 else np.abs(losses[code] - losses[other])).mean())


def over_cells(cells: int, until: float | None, one: Callable[[int, int], None], *, whole: bool = False) -> bool:
    """Run ``one`` for slices of the cells on all cores; whether any, or with ``whole`` every, slice was done."""
    workers = cores(float(cells) ** 2)
    # Starting a slice takes longer than a cell, so it has ``AT_ONCE``; fewer if the slices of one core would not
    # last as long as those of another. A large table has many slices, because the clock is read between them.
    size = AT_ONCE if workers == 1 else min(AT_ONCE, cells // (workers * 40))
    step, stop = max(1, size, cells // (workers * 400)), flag()

    def slice_from(first: int) -> bool:
        if _late(stop, until):
            return False
        one(first, min(first + step, cells))
        return True

    return (all if whole else any)(each(slice_from, range(0, cells, step), workers))


def _late(stop: Event, until: float | None) -> bool:
    return stop.is_set() or (until is not None and clock() > until)


def neighbors(task: Task, until: float | None) -> np.ndarray | None:
    """The bound of each cell by its nearest rows, float64[m]; None if the time is over.

    Cells not reached keep the bound 0. Nothing begins if sorting the cells around centers would take all the time.
    """
    if until is not None and _index_looks(task) / INDEX_PACE > until - clock():
        return None
    p = Pairs.of(task, of_one=True)
    found = nearest_cells(p, p.cells.group - 1, until)
    task.progress("bound", None)
    return None if found is None else p.back(found[2])


def nearest_cells(p: Pairs, most: int, until: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The ``most`` nearest cells of each, a bound on the loss with any other, the bound by neighbors; or None."""
    from shoal.kernels.tables.near_cells import near_cells

    m = p.order.size
    near, far, out = np.full((m, most), -1, np.int32), np.zeros(m), np.zeros(m)
    done = over_cells(m, until, lambda a, b: near_cells(p.cells, p.index, a, b, near, far, out))
    return (near, far, out) if done else None


def near_looks(p: Pairs) -> float:
    """The number of look-ups for the nearest cells of all cells, estimated from some cells at even distances."""
    from shoal.kernels.tables.near_cells import near_cells

    m, most = p.order.size, max(p.cells.group - 1, 0)
    some = np.linspace(0, m - 1, min(SAMPLED, m)).astype(np.int64)
    near, far, out = np.full((m, most), -1, np.int32), np.zeros(m), np.zeros(m)
    return float(sum(near_cells(p.cells, p.index, x, x + 1, near, far, out) for x in some)) * m / some.size
