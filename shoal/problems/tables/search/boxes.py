"""Row prices where there is no lattice to sweep: by near rows, by boxes, and raised until every box is paid.

``docs/cascade.md`` has the proofs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import numpy as np

from shoal.model.recoding import Levels, Ranges, Sets
from shoal.model.task import Task
from shoal.problems.cores import cores, each
from shoal.problems.interrupts import flag
from shoal.problems.tables.search.row_groups import ancestors

BOXED = 400  # cells above which boxes are tried
BOXES = ((48, 300), (24, 60), (16, 16))  # cells near to each, nodes of its search: thorough, others, what time is left
BOX_PACE = 1.4e7  # cells times columns that it looks at in a second and core
BOX_WORK = {"balanced": 1.5e8, "thorough": 2e9}  # cells times columns that named efforts may look at
RAISES = {"fast": 1, "balanced": 2, "thorough": 6}
GAIN = 1e-3  # share of the bound that a raise has to bring, or it is the last
LARGE = 2000  # codes of a column above which its pairs have no table


def without_lattice(task: Task, effort: str, until: float | None) -> dict[str, np.ndarray]:
    """Prices by the name of their argument, float64[m] each; empty where time ran out before the first.

    Near rows first, which takes little; then boxes, of as many cells as there is time for.
    """
    near = neighbors(task, until)
    if near is None:
        return {}
    boxed = box_search(task, effort, until)
    found = [] if boxed is None else box_prices(task, boxed, RAISES[effort], until, near)
    return {"neighbors": near, **dict(zip(("boxes", "raised boxes"), found, strict=False))}


def box_search(task: Task, effort: str, until: float | None) -> tuple[int, int] | None:
    """Near cells and nodes for each cell's cheapest box that the effort allows; None for pairs alone.

    An effort in seconds takes the last for as many cells as they suffice for; "fast" none where they do not for all.
    """
    cells, d = task.histogram.cells, len(task.recoding.columns)
    if cells <= BOXED or (effort == "fast" and until is None):
        return None
    least = None
    for near, nodes in BOXES if effort == "thorough" else BOXES[1:]:
        least = max(near, 2 * task.requirement.smallest), nodes
        work = cells * d * (cells + nodes * least[0])
        if until is None and work <= BOX_WORK[effort]:
            return least
        if until is not None and time.monotonic() + work / (BOX_PACE * (os.cpu_count() or 1)) < until:
            return least
    return least if until is not None and effort != "fast" else None


@dataclass(frozen=True, eq=False)
class Pairs:
    """What two rows lose together, as the kernels ask it; cells sorted so that like ones stand near each other.

    losses, at, shape, width, code  as for ``kernels.tables.near_rows.nearest``;  sets bool[d] columns published as sets
    count, value int64[m] rows and sensitive value of each cell, ``kinds`` different ones are needed, ``group`` rows
    order int64[m]  the cells of the table;  alone float64[m]  what a row of each loses whatever its group
    """

    losses: np.ndarray
    at: np.ndarray
    shape: np.ndarray
    width: np.ndarray
    code: np.ndarray
    sets: np.ndarray
    count: np.ndarray
    value: np.ndarray
    kinds: int
    group: int
    order: np.ndarray
    alone: np.ndarray

    @classmethod
    def of(cls, task: Task) -> Pairs:
        """O(m log m), and the square of every column's number of codes."""
        h, need = task.histogram, task.requirement
        parts, at, kind, width, code = [], [], [], [], []
        place, alone = 0, np.zeros(h.cells)
        for j, column in enumerate(task.recoding.columns):
            values, small = np.unique(h.quasi[:, j], return_inverse=True)
            small = small.reshape(-1)
            n = values.size
            at.append(place)
            kind.append(0)
            if isinstance(column, Ranges):
                pure = column.pure
                if pure.any() and n <= LARGE:  # what two codes lose together, beyond what each loses by itself
                    low, high = np.minimum(values[:, None], values), np.maximum(values[:, None], values)
                    flat = (column.width(low, high) - pure[values][:, None]).reshape(-1) * column.weight
                    alone += (pure * column.weight)[h.quasi[:, j]]
                else:
                    kind[-1] = 1
                    flat = column.position[values] * (column.weight / column.span)
            elif not isinstance(column, Levels) or n > LARGE:
                # one price for every pair of different values; for large trees the least loss of any node above a leaf
                kind[-1] = 2
                low = 0.0 if column.size < 2 else float(column.steps()[values].min()) * column.weight
                flat = np.array([low])
            else:
                parent, loss, of = column.nodes()
                leaf = of[values]
                flat = loss[ancestors(parent)[np.ix_(leaf, leaf)]].reshape(-1)
            width.append(n)
            parts.append(flat)
            code.append(small)
            place += flat.size
        kinds, value = 1, np.zeros(h.cells, np.int64)
        for j in need.sensitive_columns:
            if max(need.frequency[j], need.distinct[j]) > kinds:
                kinds = max(need.frequency[j], need.distinct[j])
                value = np.unique(h.sensitive[:, j], return_inverse=True)[1].reshape(-1).astype(np.int64)
        order = np.lexsort(np.stack(code[::-1])) if code else np.arange(h.cells)
        return cls(
            losses=np.concatenate(parts),
            at=np.array(at),
            shape=np.array(kind),
            width=np.array(width),
            code=np.stack(code, axis=1).astype(np.int32)[order],
            sets=np.array([isinstance(c, Sets) for c in task.recoding.columns]),
            count=h.count[order],
            value=value[order],
            kinds=kinds,
            group=need.smallest,
            order=order,
            alone=alone,
        )

    def back(self, prices: np.ndarray) -> np.ndarray:
        """Prices in the order of the table's cells, with what rows lose whatever their group."""
        out = np.zeros(prices.size)
        out[self.order] = prices
        return out + self.alone


def _over(cells: int, until: float | None, one: Callable[[int, int], None]) -> bool:
    """Slices of the cells on all cores; whether any was reached before time ran out."""
    workers = cores(float(cells) ** 2)
    step, stop = max(1, cells // (workers * 400)), flag()

    def slice_from(first: int) -> bool:
        if _late(stop, until):
            return False
        one(first, min(first + step, cells))
        return True

    return any(each(slice_from, range(0, cells, step), workers))


def _late(stop: Event, until: float | None) -> bool:
    return stop.is_set() or (until is not None and time.monotonic() > until)


def neighbors(task: Task, until: float | None) -> np.ndarray | None:
    """Per cell, what a row of it loses at least together with its nearest rows, float64[m]; None when time ran out.

    Cells not reached keep the bound 0.
    """
    from shoal.kernels.tables.near_rows import nearest

    p, out = Pairs.of(task), np.zeros(task.histogram.cells)

    def one(first: int, last: int) -> None:
        nearest(p.losses, p.at, p.shape, p.width, p.code, first, last, p.count, p.value, p.kinds, p.group, out)

    done = _over(out.size, until, one)
    task.progress("bound", None)
    return p.back(out) if done else None


def box_prices(
    task: Task, boxed: tuple[int, int], rounds: int, until: float | None, known: np.ndarray | None = None
) -> list[np.ndarray]:
    """The cheapest box of every row, and prices raised from there, float64[m] each; what time ran out for is left out.

    boxed  near cells and nodes of the search for each cell
    known  float64[m] what rows lose at least by another argument, kept where no box proves more
    """
    from shoal.kernels.tables.boxes import near_cells, raises

    p, m = Pairs.of(task), task.histogram.cells
    near, far = np.full((m, boxed[0]), -1, np.int32), np.zeros(m)
    _over(m, until, lambda a, b: near_cells(p.losses, p.at, p.shape, p.width, p.code, a, b, near, far))
    price, active = np.zeros(m), np.ones(m, bool)
    base = np.zeros(m) if known is None else np.maximum((known - p.alone)[p.order] * (1 - 1e-12), 0.0)
    found: list[np.ndarray] = []
    for turn in range(-1, rounds + 1):  # the first looks know nothing of each other's boxes, the second do
        rise = np.zeros(m)
        now = partial(raises, p.losses, p.at, p.shape, p.sets, p.width, p.code, near)
        limit = far_limit(far, base, price, p.group)
        asked = (p.count, p.value, p.kinds, p.group, boxed[1], price, base, active, limit)
        if not _over(m, until, partial(_between, now, (*asked, rise))):
            break
        task.progress("bound", None)
        rise = np.maximum(rise * (1 - 1e-12) - 1e-15, 0.0)
        if turn < 1:
            base = np.maximum(base, rise)
            found = [p.back(base)]
        if turn >= 0:
            price = base if turn == 0 else price + rise
            active = active & (rise > 1e-9)
        if turn > 0:
            found = [found[0], p.back(price)]
            if not active.any() or float(rise @ p.count) < GAIN * float(price @ p.count):
                break
    return found


def _between(kernel: Callable[..., None], rest: tuple[Any, ...], first: int, last: int) -> None:
    kernel(first, last, *rest)


def far_limit(far: np.ndarray, base: np.ndarray, price: np.ndarray, group: int) -> np.ndarray:
    """How far each cell's price may rise for the boxes with a cell that is not near, float64[m].

    Such a box costs F = ``far`` or more, and as much as the dearest ``base`` in it; where that is C, no price in it is
    above the highest of the cells with a base up to C.  So its slack is at least K C less K - 1 times that and less the
    cell's own price, for some C from F on.  O(m log m).
    """
    order = np.argsort(base, kind="stable")
    cost, highest = base[order], np.maximum.accumulate(price[order])
    later = np.minimum.accumulate((group * cost - (group - 1) * highest)[::-1])[::-1]
    at = np.searchsorted(cost, far, "right")  # cells with a base up to F stand before
    here = group * far - (group - 1) * np.where(at > 0, highest[np.maximum(at - 1, 0)], 0.0)
    least = np.minimum(here, np.append(later, np.inf)[np.minimum(at, cost.size)])
    return np.maximum(least - price, 0.0) / group
