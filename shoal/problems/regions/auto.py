"""What is run when no method is named: tree, search, small components exactly, the linear program where it is quick."""

from __future__ import annotations

import numpy as np

from shoal.problems.regions.bounds import CountBound, best_packing, price_out, separated
from shoal.problems.regions.exact import optimal_components
from shoal.problems.regions.prices import price_areas
from shoal.problems.regions.search import POOLED, improve, search
from shoal.problems.regions.sets import Pool
from shoal.problems.regions.task import Clock, Districting, Found
from shoal.watching import within

_SMALL = 10  # components of so many areas are settled exactly,
_MANY = 40  # when there are at most so many of them


def auto(task: Districting, bound: CountBound) -> Found:
    """The search, with everything proved that can be proved in about the same time again.

    Prices of areas lead it on large graphs alone: on small ones it begins with the regions of the program that proves
    how many there can be.
    """
    clock = Clock.of(task.seconds)
    pool = Pool()
    if task.n > POOLED:
        if bound.price is None:
            price_areas(task, bound)
        found = search(task, bound, pool)
    else:
        found = search(task, bound, pool, lambda label: _many(task, bound, label, pool, clock.part(0.5)))
    label, details = found.label, dict(found.details)
    size = np.bincount(bound.component)
    small = int((size <= _SMALL).sum())
    if 0 < small <= _MANY:
        label, settled = optimal_components(task, bound, label, _SMALL, clock)
        details["settled_exactly"] = int(settled.sum())
    if task.n <= POOLED and int(label.max()) + 1 < bound.value:
        separated(task, bound)
    if (
        task.n <= POOLED
        and int(label.max()) + 1 < bound.value
        and any(int(c) not in bound.packings for c in np.flatnonzero(bound.room >= 2))  # too large for the program
    ):
        price_areas(task, bound)
    return Found(label, found.guarantee, details=details)


def _many(task: Districting, bound: CountBound, label: np.ndarray, pool: Pool, clock: Clock) -> np.ndarray:
    """The partition with more regions: by a short search, and where more may exist by the program."""
    if int(label.max()) + 1 >= bound.value:
        return label
    with within(0.0, 0.2):
        label = improve(task, bound, label, clock.part(0.5), ("count",), pool)
    if int(label.max()) + 1 < bound.value:
        nodes = int(2_000_000 * max(task.effort, 0.25))
        price_out(task, bound, label, nodes=nodes, clock=clock, rounding=task.effort >= 1, more=pool.sets.values())
        packed = best_packing(task, bound, label)
        label = label if packed is None else packed
    return label
