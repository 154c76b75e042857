"""Multipliers of rows by column generation over boxes: the best bound for ranges, sets and nodes without a lattice.

The program: columns are groups T of K rows, each row is in one, and the columns chosen lose least.  A group of K rows
or more is covered by its K dearest rows and others, so K rows are enough.  A multiplier u for every row is feasible
where no T has u(T) > K c(T), and then the sum of u is a lower bound.  ``docs/bounds.md`` has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task
from shoal.problems.tables.search.boxes import RAISES, Pairs, box_prices, box_search, neighbors, over_cells

LARGEST = 12  # rows of a group
SWEEPS = 60  # at most
FEWEST = 8  # fewer prove less than the raises and the ascent that they take the time of
PACE = 3.5e-9  # seconds, for a pair of cells and a column, below which the same holds where the clock ends the sweeps
WORK = {"fast": 2e9, "balanced": 2e10, "thorough": 1.2e11}  # pairs of cells times columns of all sweeps
FIRST = 1 / 4  # of the time, for the feasible multipliers to begin with
REACH = 0.1  # share by which multipliers may rise above the best that are proved, between two sweeps, at first
FURTHER, NEARER = 1.3, 0.7  # times the reach after a sweep that proves more, after one that does not
DAMPING = 0.5  # share of the way to the best multipliers for the columns known that they go
NODES = 2000  # of the search of one anchor
ENOUGH = 2e-4  # share that the columns promise above what is proved at which nothing is left to gain
MOST = 400_000  # columns kept


def without_lattice(task: Task, effort: str, until: float | None) -> dict[str, np.ndarray]:
    """Prices by the name of their argument, float64[m] each; empty where time ran out before the first.

    Near rows first, which takes little; then boxes, of as many cells as there is time for; then columns over boxes.
    """
    boxed = box_search(task, effort, until)
    if boxed is None:
        near = neighbors(task, until)
        return {} if near is None else {"neighbors": near}
    sweeps = sweeps_of(task, effort, until)
    found = box_prices(task, boxed, 1 if sweeps else RAISES[effort], first_part(sweeps, until))
    out = dict(zip(("neighbors", "boxes", "raised boxes"), found, strict=False))
    p = Pairs.of(task)
    if p.uneven and (near := neighbors(task, until)) is not None:
        out["neighbors"] = near
    if found:
        best = max(found, key=lambda prices: float(prices @ task.histogram.count))
        columns = columns_of_boxes(task, best, sweeps, until)
        if columns is not None:
            out["columns of boxes"] = columns
    return out


def first_part(sweeps: int, until: float | None) -> float | None:
    """Until when the feasible multipliers are sought from which the columns begin."""
    return until if until is None or not sweeps else clock() + FIRST * (until - clock())


def columns_of_boxes(task: Task, start: np.ndarray, sweeps: int, until: float | None) -> np.ndarray | None:
    """What column generation from feasible prices float64[m] proves for each row in the mean, float64[m].

    sweeps  over all anchors at most, as ``sweeps_of`` says
    None where there is none, or none proved more.
    """
    if not sweeps:
        return None
    p = Pairs.of(task)
    found = raised(p, (start - p.alone)[p.order], sweeps, until)
    task.progress("bound", None)
    return None if found is None else p.back(found[0])


def sweeps_of(task: Task, effort: str, until: float | None) -> int:
    """Sweeps over all anchors that the effort affords; 0 where others prove more in the time.

    Groups of more than ``LARGEST`` rows have too many nodes.
    """
    need, m, d = task.requirement, task.histogram.cells, len(task.recoding.columns)
    if not 1 < need.smallest <= LARGEST:
        return 0
    pairs = max(float(m) * m * d, 1.0)
    if task.effort.name == "seconds":
        return SWEEPS if until is None or until - clock() > PACE * pairs else 0
    sweeps = min(SWEEPS, int(WORK[effort] / pairs))
    return sweeps if sweeps >= FEWEST else 0


@dataclass(frozen=True, eq=False)
class Columns:
    """Groups of K rows, each with the loss of its box times K.

    cells int32[c, K];  loss float64[c]
    """

    cells: np.ndarray
    loss: np.ndarray

    @classmethod
    def none(cls, group: int) -> Columns:
        """No columns."""
        return cls(np.empty((0, group), np.int32), np.empty(0))

    def joined(self, cells: np.ndarray, loss: np.ndarray) -> Columns:
        """With more, each once; the last ``MOST``.  O(c K log c)."""
        cells = np.concatenate([self.cells, np.sort(cells, axis=1)])
        _, first = np.unique(cells, axis=0, return_index=True)
        first = np.sort(first)[-MOST:]
        return Columns(cells[first], np.concatenate([self.loss, loss])[first])

    def multipliers(self, count: np.ndarray, most: np.ndarray, seconds: float | None) -> np.ndarray | None:
        """The multipliers float64[m] of largest sum, ``most`` at most each, that no column forbids.

        count  int64[m] or float64[m] rows of each cell
        None where the program took longer than the seconds.  The middle of the best ones, as an interior point method
        gives it: corners swing from sweep to sweep.
        """
        from scipy.sparse import csr_array

        from shoal.problems.programs import Constraints, solve

        if seconds is not None and seconds <= 0.0:
            return None
        c, group = self.cells.shape
        start = np.arange(0, (c + 1) * group, group, dtype=np.int32)
        ones, cells = np.ones(self.cells.size), self.cells.flatten()  # a copy: the matrix sums in place
        matrix = csr_array((ones, cells, start), shape=(c, most.size))
        matrix.sum_duplicates()  # several rows of a cell
        limits = Constraints(matrix, np.full(c, -np.inf), self.loss)
        found = solve(-count, limits, np.zeros(most.size), most, whole=False, seconds=seconds, inside=True)
        return np.clip(found.x, 0.0, most) if found.finished and found.x is not None else None


def raised(p: Pairs, start: np.ndarray, sweeps: int, until: float | None) -> tuple[np.ndarray, np.ndarray] | None:
    """What each row is proved to lose in the mean over the table, float64[m] in the order of ``p``; and its columns.

    start   float64[m] feasible multipliers
    sweeps  over all anchors, at most;  until  moment at which the last one ends
    None where time ran out before a sweep proved more than ``start``.
    A sweep takes O(m^2 d) and the search of each ball.
    """
    count, group = p.cells.count.astype(np.float64), p.cells.group
    free = (p.cells.count < group) | (p.cells.kinds > 1)  # K rows alike lose nothing
    best = np.where(free, start, 0.0)
    mean = float(count @ best) / max(float(count.sum()), 1.0)
    proved = first = float(count @ best)
    # Far from what is proved the columns known say little, so multipliers move within a reach that follows success.
    shown, reach = None, REACH
    columns, at = Columns.none(group), (1 + reach / 2) * best
    for _ in range(sweeps):
        began = clock()
        swept = _sweep(p, at, until)
        if swept is None:
            break
        excess, found, groups = swept
        total = float(count @ at) - float(count @ excess)
        reach *= FURTHER if total > proved else NEARER
        if total > proved:
            best, proved, shown = at, total, at - excess
        new = np.flatnonzero(found > 0.0)
        columns = columns.joined(groups[new], at[groups[new]].sum(axis=1) - found[new])
        # The next sweep takes about as long as this one; a program that leaves no time for it is of no use.
        left = None if until is None else until - clock() - 1.2 * (clock() - began)
        moved = columns.multipliers(count, np.where(free, np.maximum(best + reach * (best + mean), 0.0), 0.0), left)
        if moved is None or float(count @ moved) - proved < ENOUGH * min(reach, 1.0) * proved:
            break
        at = DAMPING * moved + (1 - DAMPING) * best
    return None if shown is None or proved <= first else (shown, columns.cells)


def _sweep(p: Pairs, at: np.ndarray, until: float | None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The most violated group of every anchor; None when time ran out before the last."""
    from shoal.kernels.tables.box_separation import Multipliers, Violated, separate

    m = at.size
    order = np.argsort(-at, kind="stable")
    out = Violated(np.zeros(m), np.full(m, -1.0), np.zeros((m, p.cells.group), np.int32))
    column, asked = p.columns(order), Multipliers(at, order)
    anchors = int((at > 0.0).sum())  # the others anchor nothing: no multiplier is below 0
    done = over_cells(anchors, until, lambda a, b: separate(p.cells, column, a, b, asked, NODES, out), whole=True)
    # rounding may have hidden as much
    return (out.excess + 1e-12 * (1.0 + at), out.found, out.group) if done else None
