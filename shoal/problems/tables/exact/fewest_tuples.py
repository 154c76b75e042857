"""Tuple minimization, exactly: an integer program over the rows of each cell that stay unchanged.

Xiao, Yi, Tao 2010, Problem 2: of all partitions, one that suppresses the fewest tuples, so changes the fewest rows.

The unchanged rows of each type (rows with equal quasi-identifiers) form one group, because the union of two eligible
groups of a type is eligible. For the same reason, the changed rows form one group, the residue. So an answer is the
number of unchanged rows of each cell. The paper's conditions are linear in these numbers: in each type, and in the
residue, l times the rows of a value are at most all its rows. If a type or the residue must have k rows, or a number of
different values, unless it is empty, a binary variable states whether it is empty.

Not in the paper, which proves that the problem is hard for l >= 3, and gives the factor l (``three_phase``).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement
from shoal.model.task import Grouping, Task
from shoal.problems.programs import LinearConstraints, solve
from shoal.problems.tables.three_phase import TUPLES, by_loss, eligible_with, residue, split, suppressed

SOURCE = "Xiao, Yi, Tao 2010, Problem 2"
NODES = {"fast": 1, "balanced": 1_000, "thorough": 100_000}  # limit of the solver's nodes
SLACK = 1e-6  # tolerance of the solver, in rows


def fewest_tuples(task: Task) -> Grouping:
    """The fewest suppressed tuples under a group size, frequency l, and distinct l, on any number of sensitive columns.

    Starts from ``three_phase``, and returns its answer if that is proved optimal. If the effort ends the search, the
    better of both is returned with the bound so far. If every row loses something (ranges widened to a grid), the
    certificate counts the loss. Raises PolicyError for other models and for ceilings.

    One integer variable for each cell, and a line for each type and value; no polynomial bound. Near-linear in the
    cells if the result of phase one of ``three_phase`` is optimal.
    """
    histogram, need = task.histogram, task.requirement
    if need.rules:
        raise PolicyError("'fewest_tuples' knows k, frequency l and distinct l; 'three_phase' takes any model")
    if any(column.held for column in task.recoding.columns):
        raise PolicyError("'fewest_tuples' stars changed rows whole, which a ceiling forbids; 'three_phase' keeps it")
    taken, facts = residue(histogram, need)
    cost, bound, argument = suppressed(histogram, taken), int(facts["bound"]), str(facts["argument"])
    if bound < cost:
        seconds, nodes = task.effort.seconds, None
        if seconds is None:
            nodes = NODES[task.effort.name]
        else:
            seconds -= clock() - task.started
        task.progress("the integer program of types and values", None)
        stay, proved = _solved(histogram, need, seconds, nodes)
        if stay is not None and suppressed(histogram, histogram.count - stay) < cost:
            taken = histogram.count - stay
            cost = suppressed(histogram, taken)
        if math.isfinite(proved) and math.ceil(proved - SLACK) > bound:
            bound, argument = math.ceil(proved - SLACK), f"the integer program of types and values ({SOURCE})"
    partition = split(histogram, taken)
    if task.recoding.alone(histogram):
        return by_loss(task, partition, "fewest_tuples", {})
    best = bound >= cost
    certificate = Certificate(
        cost=cost,
        lower_bound=tight(bound, cost, TUPLES, argument),
        unit=TUPLES,
        guarantee=Guarantee(factor=1, additive=0, theorem="fewest suppressed tuples, proved")
        if best
        else facts["guarantee"],
        bound=argument,
        details={"three_phase": suppressed(histogram, residue(histogram, need)[0])},
    )
    return Grouping(partition, certificate, "fewest_tuples")


def _solved(
    histogram: Histogram, need: Requirement, seconds: float | None, nodes: int | None
) -> tuple[np.ndarray | None, float]:
    """(unchanged rows of each cell, int64[m], or None if nothing was found; lower bound of the changed rows)."""
    program = _TupleProgram(histogram.cells)
    of_type, first = histogram.types
    everywhere = np.zeros(histogram.cells, np.int64)
    program.ask(histogram, need, of_type, first.size, stays=True)
    program.ask(histogram, need, everywhere, 1, stays=False)
    upper = np.concatenate([histogram.count, np.ones(program.columns - histogram.cells)])
    cost = np.concatenate([-np.ones(histogram.cells), np.zeros(program.columns - histogram.cells)])
    found = solve(
        cost, program.constraints(), np.zeros(program.columns), upper, whole=True, seconds=seconds, nodes=nodes
    )
    fewest = histogram.rows + found.bound
    if found.x is None:
        return None, fewest
    stay = np.rint(found.x[: histogram.cells]).astype(np.int64)
    types = eligible_with(histogram, need, of_type, first.size, stay)
    used = np.bincount(of_type, weights=stay, minlength=first.size) > 0
    left = histogram.count - stay
    rest = not left.any() or eligible_with(histogram, need, everywhere, 1, left)[0]
    return (stay if types[used].all() and rest else None), fewest


class _TupleProgram:
    """The lines of the program; variables are the unchanged rows of the cells, then binary variables."""

    def __init__(self, cells: int) -> None:
        self.columns, self.lines = cells, 0
        self.parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self.low: list[np.ndarray] = []
        self.high: list[np.ndarray] = []

    def ask(self, histogram: Histogram, need: Requirement, group: np.ndarray, groups: int, *, stays: bool) -> None:
        """Add the conditions of each group of cells, int64[m], on its unchanged rows, or on its changed ones."""
        cell = np.arange(histogram.cells)
        sign = 1.0 if stays else -1.0
        rows = np.bincount(group, weights=histogram.count, minlength=groups)
        all_rows = np.zeros(groups) if stays else rows  # rows of a group = sign * those that stay + this
        more = any(need.distinct[j] > max(need.frequency[j], 1) for j in need.sensitive_columns)
        used = None
        if more or need.k > max((1, *need.frequency)):  # frequency l alone implies l rows of a nonempty group
            used = self._truths(groups)
            at, every = self._new(groups), np.arange(groups)
            self._put(at[group], cell, sign)
            self._put(at, used[every], -float(need.k))
            self._between(-all_rows, np.full(groups, np.inf))
            at = self._new(groups)
            self._put(at[group], cell, sign)
            self._put(at, used, -rows)
            self._between(np.full(groups, -np.inf), -all_rows)
        for j in need.sensitive_columns:
            l, distinct = need.frequency[j], need.distinct[j]
            key, of_pair = np.unique(
                np.stack([group, histogram.sensitive[:, j].astype(np.int64)], 1), axis=0, return_inverse=True
            )
            of_pair = of_pair.reshape(-1)
            pairs, home = len(key), key[:, 0]
            held = np.bincount(of_pair, weights=histogram.count, minlength=pairs)
            all_held = np.zeros(pairs) if stays else held
            if l > 1:  # l times the rows of a value, less the rows of its group, is at most 0
                at = self._new(pairs)
                self._put(at[of_pair], cell, sign * l)
                # every cell of a group is in the line of each of the group's values
                order = np.argsort(group, kind="stable")
                begin = np.searchsorted(group[order], home)
                size = np.searchsorted(group[order], home, side="right") - begin
                inside = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
                self._put(np.repeat(at, size), order[np.repeat(begin, size) + inside], -sign)
                self._between(np.full(pairs, -np.inf), all_rows[home] - l * all_held)
            if distinct > max(l, 1) and used is not None:
                there = self._truths(pairs)
                at = self._new(pairs)  # a value is present only if it has a row
                self._put(at[of_pair], cell, sign)
                self._put(at, there, -1.0)
                self._between(-all_held, np.full(pairs, np.inf))
                at = self._new(groups)
                self._put(at[home], there, 1.0)
                self._put(at, used, -float(distinct))
                self._between(np.zeros(groups), np.full(groups, np.inf))

    def _new(self, lines: int) -> np.ndarray:
        at = np.arange(self.lines, self.lines + lines)
        self.lines += lines
        return at

    def _truths(self, many: int) -> np.ndarray:
        at = np.arange(self.columns, self.columns + many)
        self.columns += many
        return at

    def _put(self, line: np.ndarray, column: np.ndarray, value: np.ndarray | float) -> None:
        self.parts.append((line, column, np.broadcast_to(np.asarray(value, np.float64), line.shape)))

    def _between(self, low: np.ndarray, high: np.ndarray) -> None:
        self.low.append(np.asarray(low, np.float64))
        self.high.append(np.asarray(high, np.float64))

    def constraints(self) -> LinearConstraints:
        """All lines as one matrix; entries with the same position are added."""
        line, column, value = (np.concatenate(each) for each in zip(*self.parts, strict=True))
        matrix = csr_array((value, (line, column)), shape=(self.lines, self.columns))
        return LinearConstraints(matrix, np.concatenate(self.low), np.concatenate(self.high))
