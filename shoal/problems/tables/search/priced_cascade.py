"""Other starts for the search: the cascade led by row prices, and a walk down lattices too large to enumerate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shoal.clock import clock
from shoal.model.task import Task
from shoal.problems.tables.search.bounds import LOOKS, Sweeper
from shoal.problems.tables.search.lattice import ENUMERATED, Lattice
from shoal.problems.tables.search.row_groups import Rows

ALLOWANCES = (0.05, 0.2, 0.5)  # loss per row above its price that is accepted, all columns together
BATCH = 256


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
    from shoal.kernels.tables.lattice import Raised, Triples
    from shoal.kernels.tables.priced_cascade import Led, publish_priced

    histogram = task.histogram
    raised = Raised(histogram.quasi, *lattice.flat)
    loss = np.concatenate([level.reshape(-1) for level in lattice.loss])
    value = rows.sensitive[:, 0].astype(np.int64) if rows.frequency.size else np.zeros(histogram.cells, np.int64)
    kinds = int(rows.distinct[0]) if rows.frequency.size else 1
    left = histogram.count.copy()
    room = 4 * histogram.cells + 16
    out = Triples(*(np.empty(room, np.int64) for _ in range(3)))
    found: list[tuple[np.ndarray, ...]] = []
    group = 0
    for allowance in allowances:
        led = Led(loss, prices, value, kinds, rows.k, allowance)
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
