"""Multipliers of rows by column generation over boxes: the best bound for ranges, sets and nodes without a lattice.

The program: columns are groups T of K rows, each row is in one, and the columns chosen lose least.  A group of K rows
or more is covered by its K dearest rows and others, so K rows are enough.  A multiplier u for every row is feasible
where no T has u(T) > K c(T), and then the sum of u is a lower bound.  ``docs/cascade.md`` has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task
from shoal.problems.tables.search.boxes import RAISES, Pairs, box_prices, box_search, neighbors, over_cells

LARGEST = 12  # rows of a group
SWEEPS = 60  # at most
WORK = {"balanced": 2e10, "thorough": 1.2e11}  # pairs of cells times columns of all sweeps
FIRST = 1 / 4  # of the time, for the feasible multipliers to begin with
STRETCH = 1.25  # the first sweep asks at so much more than multipliers that are feasible: it finds the first columns
STEPS = 250  # of the subgradient between two sweeps
DAMPING = 0.4  # share of the way to where the columns point that multipliers go
ALPHA, PATIENCE, SHORTER, SHORTEST = 0.3, 12, 0.6, 1e-3  # of a step; steps without gain before it shrinks
TARGET = 1.1  # a step aims at so much more than the columns promise
NODES = 2000  # of the search of one anchor
ENOUGH = 2e-4  # share that the columns promise above what is proved at which nothing is left to gain
MOST = 400_000  # columns kept
TINY = 1e-12


def without_lattice(task: Task, effort: str, until: float | None) -> dict[str, np.ndarray]:
    """Prices by the name of their argument, float64[m] each; empty where time ran out before the first.

    Near rows first, which takes little; then boxes, of as many cells as there is time for; then columns over boxes.
    """
    boxed = box_search(task, effort, until)
    if boxed is None:
        near = neighbors(task, until)
        return {} if near is None else {"neighbors": near}
    p = Pairs.of(task)
    sweeps = sweeps_of(p, effort, until)
    began, rounds = clock(), RAISES[effort] if not sweeps else 1
    first = until if until is None or not sweeps else began + FIRST * (until - began)
    found = box_prices(task, boxed, rounds, first)
    out = dict(zip(("neighbors", "boxes", "raised boxes"), found, strict=False))
    if p.uneven and (near := neighbors(task, until)) is not None:
        out["neighbors"] = near
    if sweeps and found:
        best = max(found, key=lambda prices: float(prices @ task.histogram.count))
        columns = raised(p, (best - p.alone)[p.order], sweeps, until)
        if columns is not None:
            out["columns of boxes"] = p.back(columns[0])
        task.progress("bound", None)
    return out


def sweeps_of(p: Pairs, effort: str, until: float | None) -> int:
    """Sweeps over all anchors that the effort affords; 0 where others prove more.

    Groups of more than ``LARGEST`` rows have too many nodes, and where values are asked for K rows are too few.
    """
    m, d = p.cells.code.shape
    if p.cells.kinds > 1 or not 1 < p.cells.group <= LARGEST:
        return 0
    return SWEEPS if until is not None else min(SWEEPS, int(WORK.get(effort, 0.0) / max(float(m) * m * d, 1.0)))


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


def raised(p: Pairs, start: np.ndarray, sweeps: int, until: float | None) -> tuple[np.ndarray, np.ndarray] | None:
    """What each row is proved to lose in the mean over the table, float64[m] in the order of ``p``; and its columns.

    start   float64[m] feasible multipliers
    sweeps  over all anchors, at most;  until  moment at which the last one ends
    None where time ran out before a sweep proved more than ``start``.
    A sweep takes O(m^2 d) and the search of each ball.
    """
    count, group = p.cells.count.astype(np.float64), p.cells.group
    weight = (2 * group - 1) / group
    most = 3.0 * start + 0.5 * float(count @ start) / max(float(count.sum()), 1.0)
    most[p.cells.count >= group] = 0.0  # K rows alike lose nothing
    best, proved = np.minimum(start, most), float(count @ np.minimum(start, most))
    shown, first = None, proved
    columns, at = Columns.none(group), np.minimum(STRETCH * start, most)
    for _ in range(sweeps):
        began = clock()
        swept = _sweep(p, at, until)
        if swept is None:
            break
        excess, found, groups = swept
        total = float(count @ at) - weight * float(count @ excess)
        if total > proved:
            best, proved, shown = at, total, at - weight * excess
        new = np.flatnonzero(found > 0.0)
        columns = columns.joined(groups[new], at[groups[new]].sum(axis=1) - found[new])
        if until is not None and clock() + 1.2 * (clock() - began) > until:
            break
        moved, promised = _moved(best, columns, most, count, weight)
        if promised - proved < ENOUGH * promised:
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


def _moved(
    best: np.ndarray, columns: Columns, most: np.ndarray, count: np.ndarray, weight: float
) -> tuple[np.ndarray, float]:
    """Multipliers moved along subgradients of what the columns leave of them, and how much that is.

    Each step lowers the rows of the most violated column of every anchor and raises all others (Polyak).
    """
    cells, loss = columns.cells, columns.loss
    at, kept, promised, alpha, failed = best.copy(), best.copy(), -np.inf, ALPHA, 0
    aim = TARGET * float(count @ best)
    for _ in range(STEPS):
        value = at[cells]
        over = value.sum(axis=1) - loss
        on = np.flatnonzero(over > TINY)
        total, step = float(count @ at), count.copy()
        if on.size:
            anchor = cells[on, value[on].argmax(axis=1)]
            by = np.lexsort((-over[on], anchor))
            first = np.flatnonzero(np.diff(anchor[by], prepend=-1))
            chosen, of = on[by[first]], anchor[by[first]]
            share = weight * count[of]
            total -= float(share @ over[chosen])
            np.subtract.at(step, cells[chosen].ravel(), np.repeat(share, cells.shape[1]))
        if total > promised:
            kept, promised, failed = at.copy(), total, 0
            aim = max(aim, TARGET * promised)
        else:
            failed += 1
            if failed > PATIENCE:
                alpha, failed, at = SHORTER * alpha, 0, kept.copy()
                if alpha < SHORTEST:
                    break
                continue
        at = np.clip(at + alpha * (aim - total) / max(float(step @ step), 1.0) * step, 0.0, most)
    return kept, promised
