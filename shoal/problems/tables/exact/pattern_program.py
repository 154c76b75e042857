"""Least loss as an integer program over closed patterns: its size depends on kinds and patterns, not on rows.

Groups that publish the same row may be merged, so a partition is how many rows of each kind are published as each
pattern: x[t, q].  A pattern in use holds k rows; at most 1/l of them share a value; l values are present.  A close
relative is the program of Bredereck, Nichterlein, Niedermeier, "Pattern-guided k-anonymity", Algorithms 2013.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import highspy
import numpy as np
from scipy.sparse import coo_matrix

from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.partition import Partition
from shoal.model.privacy import Requirement
from shoal.model.task import Task
from shoal.problems.tables.costs import Costs
from shoal.problems.tables.others.pattern_cover import Patterns, patterns, whole_cost
from shoal.problems.tables.papers.kernelize import deal

VARIABLES = 400_000


@dataclass(frozen=True, eq=False)
class Kinds:
    """Rows alike in all that matters: the type, and the values of the sensitive columns of which anything is asked.

    of     int64[m]     kind of each cell
    type   int64[r]     type of each kind
    value  int64[r, s]  its value in each of those columns
    count  int64[r]
    """

    of: np.ndarray
    type: np.ndarray
    value: np.ndarray
    count: np.ndarray


def kinds_of(histogram: Histogram, need: Requirement) -> Kinds:
    """O(m log m)."""
    of_type, _ = histogram.types
    columns = list(need.sensitive_columns)
    value = histogram.sensitive[:, columns].astype(np.int64)
    both = np.column_stack([of_type, value])
    key = mixed_radix(both, [int(c.max(initial=0)) + 1 for c in both.T])
    _, first, of = np.unique(key, return_index=True, return_inverse=True)
    of = of.reshape(-1).astype(np.int64)
    count = np.bincount(of, weights=histogram.count, minlength=first.size).astype(np.int64)
    return Kinds(of, of_type[first], value[first], count)


def pattern_program(
    task: Task, costs: Costs, kinds: Kinds, start: Partition, seconds: float
) -> tuple[Partition, int, str | None]:
    """(best partition, whole-number lower bound, limit reached); start is a partition to begin with.

    One integer variable for each kind and closed pattern that fits it, one binary per pattern where k or l values are
    asked beside the frequency.  Branch and bound by HiGHS.
    """
    deadline = time.monotonic() + seconds
    need = task.requirement
    found = patterns(costs, task.recoding, need.smallest)
    upper = whole_cost(costs, task, start)
    least = found.least(costs.types)
    lower = int(np.maximum(least, 0) @ costs.count) if found.all else 0
    if lower == upper:
        return start, lower, None
    if not found.all:
        return start, lower, "memory"
    model = _Model(task, costs, kinds, found)
    if model.size > VARIABLES:
        return start, lower, "memory"
    task.progress(f"deciding over {found.loss.size:,} patterns", None)
    x, bound, stopped = model.solve(deadline - time.monotonic(), start)
    lower = max(lower, bound)
    if x is not None:
        better = deal(task.histogram.count, kinds.of, model.kind, model.pattern, x)
        if (cost := whole_cost(costs, task, better)) < upper:
            start, upper = better, cost
    if stopped is None:
        lower = max(lower, upper)
    return start, lower, stopped


class _Model:
    """Columns: x for every (kind, pattern) that fit, then z for every pattern, then w for (pattern, column, value)."""

    def __init__(self, task: Task, costs: Costs, kinds: Kinds, found: Patterns) -> None:
        need = task.requirement
        self.task, self.costs, self.kinds, self.need, self.found = task, costs, kinds, need, found
        by_type = np.argsort(kinds.type, kind="stable")
        begin = np.searchsorted(kinds.type[by_type], np.arange(costs.types))
        many = np.bincount(kinds.type, minlength=costs.types)
        pattern = np.repeat(np.arange(found.loss.size), np.diff(found.start))
        each = many[found.member]
        self.pattern = np.repeat(pattern, each)
        inside = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
        self.kind = by_type[np.repeat(begin[found.member], each) + inside]
        self.size = self.kind.size
        columns = need.sensitive_columns
        self.asked = [(i, need.frequency[j], need.distinct[j]) for i, j in enumerate(columns)]

    def solve(self, seconds: float, start: Partition) -> tuple[np.ndarray | None, int, str | None]:
        """(x, whole-number bound, limit reached)."""
        kinds, n, q = self.kinds, self.size, self.found.loss.size
        rows: list[np.ndarray] = []
        cols: list[np.ndarray] = []
        data: list[np.ndarray] = []
        low: list[np.ndarray] = []
        high: list[np.ndarray] = []
        free = highspy.kHighsInf
        at = np.arange(n)
        height = 0

        def add(r: np.ndarray, c: np.ndarray, v: np.ndarray | float, lo: np.ndarray, hi: np.ndarray) -> None:
            nonlocal height
            low.append(lo)
            high.append(hi)
            rows.append(r + height)
            cols.append(c)
            data.append(np.broadcast_to(np.asarray(v, float), r.shape))
            height += lo.size

        count = kinds.count.astype(float)
        add(self.kind, at, 1.0, count, count)  # every row is published
        room = np.minimum(kinds.count[self.kind], self._most())
        # z: k rows where a pattern is used, none where it is not
        add(
            np.concatenate([self.pattern, np.arange(q)]),
            np.concatenate([at, n + np.arange(q)]),
            np.concatenate([np.ones(n), np.full(q, -float(self.need.smallest))]),
            np.zeros(q),
            np.full(q, free),
        )
        add(
            np.concatenate([at, at]),
            np.concatenate([at, n + self.pattern]),
            np.concatenate([np.ones(n), -room.astype(float)]),
            np.full(n, -free),
            np.zeros(n),
        )
        width = n + q
        for i, l, u in self.asked:
            value = kinds.value[self.kind, i]
            pair, which = np.unique(np.column_stack([self.pattern, value]), axis=0, return_inverse=True)
            which = which.reshape(-1)
            if l > 1:  # l * (rows of the value) <= rows of the pattern
                of_pattern = pair[:, 0]
                place = np.repeat(np.arange(len(pair)), np.bincount(self.pattern, minlength=q)[of_pattern])
                begin = np.searchsorted(self.pattern, np.arange(q))
                inside = np.arange(place.size) - np.repeat(
                    np.searchsorted(place, np.arange(len(pair))), np.bincount(place)
                )
                member = begin[of_pattern][place] + inside
                add(
                    np.concatenate([which, place]),
                    np.concatenate([at, member]),
                    np.concatenate([np.full(n, float(l)), -np.ones(member.size)]),
                    np.full(len(pair), -free),
                    np.zeros(len(pair)),
                )
            if u > 1:  # w <= rows of the value; u of them where the pattern is used
                w = width + np.arange(len(pair))
                add(
                    np.concatenate([which, np.arange(len(pair))]),
                    np.concatenate([at, w]),
                    np.concatenate([np.ones(n), -np.ones(len(pair))]),
                    np.zeros(len(pair)),
                    np.full(len(pair), free),
                )
                add(
                    np.concatenate([pair[:, 0], np.arange(q)]),
                    np.concatenate([w, n + np.arange(q)]),
                    np.concatenate([np.ones(len(pair)), np.full(q, -float(u))]),
                    np.zeros(q),
                    np.full(q, free),
                )
                width += len(pair)
        matrix = coo_matrix(
            (np.concatenate(data), (np.concatenate(rows), np.concatenate(cols))), shape=(height, width)
        ).tocsc()
        cost = np.zeros(width)
        cost[:n] = self.found.loss[self.pattern] / self.costs.scale
        top = np.ones(width)
        top[:n] = room
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("mip_rel_gap", 0.0)
        step = (math.gcd(*np.unique(self.found.loss).tolist()) or 1) if q else 1
        model.setOptionValue("mip_abs_gap", 0.5 * step / self.costs.scale)
        model.setOptionValue("time_limit", max(0.1, min(seconds, 1e9)))
        none = np.empty(0)
        model.addRows(
            height,
            np.concatenate(low),
            np.concatenate(high),
            0,
            np.zeros(height, np.int32),
            none.astype(np.int32),
            none,
        )
        starts, index = matrix.indptr[:-1].astype(np.int32), matrix.indices.astype(np.int32)
        model.addCols(width, cost, np.zeros(width), top, matrix.nnz, starts, index, matrix.data)
        whole = np.full(width, int(highspy.HighsVarType.kInteger), np.uint8)
        model.changeColsIntegrality(width, np.arange(width, dtype=np.int32), whole)
        self._begin(model, start, width)
        model.run()
        stopped = None if model.getModelStatus() == highspy.HighsModelStatus.kOptimal else "seconds"
        dual = model.getInfo().mip_dual_bound
        bound = math.ceil((dual * self.costs.scale - 1e-4) / step) * step if math.isfinite(dual) else 0
        x = np.array(model.getSolution().col_value)
        if x.size != width:
            return None, bound, stopped or "seconds"
        x = np.rint(x[:n]).astype(np.int64)
        if not self._holds(x):
            return None, bound, stopped or "seconds"
        return x, bound, stopped

    def _most(self) -> int:
        """Rows of one kind that a pattern may have to hold: all of them."""
        return int(self.kinds.count.max(initial=0))

    def _begin(self, model: highspy.Highs, start: Partition, width: int) -> None:
        """Hand over the partition in hand, each group under its closure."""
        placed = self._published(start)
        if placed is None:
            return
        solution = highspy.HighsSolution()
        value = np.zeros(width)
        value[: self.size] = placed
        value[self.size + self.pattern[placed > 0]] = 1
        if width == self.size + self.found.loss.size:  # the values present are left to the solver otherwise
            solution.col_value = value.tolist()
            model.setSolution(solution)

    def _published(self, partition: Partition) -> np.ndarray | None:
        """x of a partition."""
        q = self.found
        closure = {(frozenset(q.member[q.start[p] : q.start[p + 1]].tolist())): p for p in range(q.loss.size)}
        position = {(int(t), int(p)): i for i, (t, p) in enumerate(zip(self.kind, self.pattern, strict=True))}
        out = np.zeros(self.size)
        code = self.costs.code
        published = self.task.recoding.publish(self.task.histogram, partition)
        for g in range(partition.groups):
            fits = np.ones(len(code), bool)
            for j, column in enumerate(self.task.recoding.columns):
                fits &= column.node[published.first[g, j]][code[:, j]] == published.second[g, j]
            p = closure.get(frozenset(np.flatnonzero(fits).tolist()))
            if p is None:
                return None
            here = partition.group == g
            for cell, rows in zip(partition.cell[here].tolist(), partition.count[here].tolist(), strict=True):
                out[position[int(self.kinds.of[cell]), p]] += rows
        return out

    def _holds(self, x: np.ndarray) -> bool:
        """Whether every row is placed and every pattern's rows are eligible, checked in whole numbers."""
        placed = np.bincount(self.kind, weights=x, minlength=self.kinds.count.size)
        if (x < 0).any() or (placed != self.kinds.count).any():
            return False
        size = np.bincount(self.pattern, weights=x, minlength=self.found.loss.size)
        if ((size > 0) & (size < self.need.k)).any():
            return False
        for i, l, u in self.asked:
            held = np.zeros((size.size, int(self.kinds.value[:, i].max(initial=0)) + 1))
            np.add.at(held, (self.pattern, self.kinds.value[self.kind, i]), x)
            if (l * held.max(axis=1) > size).any() or ((size > 0) & ((held > 0).sum(axis=1) < u)).any():
                return False
        return True
