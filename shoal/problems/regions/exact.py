"""Proved optima of small graphs: every connected eligible set listed, then chosen by integer programs.

Component by component, the objectives one after the other.  The heaviest region (or the excess) is found by
bisection over the values that sets can have; sums (number of regions, squares, compactness) by set partitioning.
Where listing the sets passes a limit, the number of regions is still decided by ``packing`` on larger graphs, and
everything else is answered by the search with the bound proved so far.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.problems.regions.bounds import CountBound, best_packing, price_out, squares_bound
from shoal.problems.regions.search import improve, search
from shoal.problems.regions.sets import Sets
from shoal.problems.regions.task import Clock, Districting, Found, relabelled
from shoal.problems.regions.value import one

LISTED = Guarantee(factor=1, additive=0, theorem="every connected set listed, then integer programs")


def exact(task: Districting, bound: CountBound) -> Found:
    """Optimal where every component is small enough; else the search's answer with what could be proved.

    Exponential time; components to about 25 areas, and the number of regions alone to a few hundred.
    """
    clock = Clock.of(task.seconds)
    found = search(task, bound)
    label, settled = optimal_components(task, bound, found.label, task.n, clock)
    details = dict(found.details)
    left = ~settled
    if not left.any():
        return _proved(task, bound, label, details)
    details["stopped"] = f"{int(left.sum())} areas lie in components too large to list all their regions"
    if task.thresholds_only:
        price_out(task, bound, label, nodes=20_000_000, clock=clock, tolls=160, integer=True)
        better = best_packing(task, bound, label)
        if better is not None:
            label = improve(task, bound, better, clock, _after_count(task.objective))
    return Found(label, found.guarantee, details=details)


def optimal_components(
    task: Districting, bound: CountBound, label: np.ndarray, size: int, clock: Clock
) -> tuple[np.ndarray, np.ndarray]:
    """The partition with every component of at most ``size`` areas made optimal; and which areas are settled, bool[n].

    A component is optimal when no partition of it is better in the objectives' order, given how the others stand.
    """
    label = label.copy()
    count = np.bincount(bound.component) if task.n else np.zeros(0, np.int64)
    cap = one(task, label, "max") if task.objective[0] == "max" else 2**62  # what is heavier cannot be in the answer
    lists = {}
    for c in np.flatnonzero(count <= size):
        listed = Sets.of(task, np.flatnonzero(bound.component == c), clock, cap)
        if listed is not None:
            lists[int(c)] = listed
    settled = np.isin(bound.component, list(lists))
    if not lists:
        return label, settled
    for i, name in enumerate(task.objective):
        if name in ("max", "excess"):
            level = _others(task, label, ~settled, name)
            for listed in lists.values():
                level = max(level, listed.bisect(name))
            for listed in lists.values():
                listed.keep(name, level)
        else:
            for listed in lists.values():
                listed.minimise(name, last=i + 1 == len(task.objective))
    fresh = int(label.max()) + 1
    for listed in lists.values():
        for members in listed.partition():
            label[members] = fresh
            fresh += 1
    return relabelled(label), settled


def _others(task: Districting, label: np.ndarray, mask: np.ndarray, name: str) -> Any:
    """Largest weight or excess among the regions of the areas in ``mask``; 0 when there are none."""
    if not mask.any():
        return 0
    inside = relabelled(np.where(mask, label, -1))[mask]
    weight = np.bincount(inside, weights=task.features[mask, 0])
    if name == "max":
        return int(weight.max())
    heavy = np.zeros(len(weight), np.int64)
    np.maximum.at(heavy, inside, task.features[mask, 0])
    return float((weight / np.maximum(heavy, task.k)).max())


def _after_count(objective: tuple[str, ...]) -> tuple[str, ...]:
    """The objectives to go on with from a partition with more regions."""
    return tuple(name for name in objective if name != "count") if objective[0] == "count" else objective


def _proved(task: Districting, bound: CountBound, label: np.ndarray, details: dict[str, Any]) -> Found:
    """Bounds for the objective that comes first, which is optimal; those after it are so given the ones before."""
    first = task.objective[0]
    regions = int(label.max()) + 1
    return Found(
        label,
        LISTED,
        most=regions if first == "count" else None,
        least=one(task, label, "max") if first == "max" else None,
        squares=safe(one(task, label, "sumsq"), squares_bound(task, bound)) if first == "sumsq" else None,
        details=details
        | {"proved": "every connected set listed, then integer programs", "objectives": len(task.objective)},
    )


def safe(cost: int, bound: int) -> int:
    """The cost as its own bound where it is small enough for the program's tolerance, else a little less."""
    return cost if cost < 10**6 else max(bound, math.floor(cost * (1 - 1e-6)))
