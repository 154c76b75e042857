"""An algorithm run on a task, bounded, and put back on all areas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.certificate import Certificate, Guarantee
from shoal.problems.catalogue import algorithm
from shoal.problems.regions.bounds import CountBound, count_bound, largest_bound, programmable, separated, squares_bound
from shoal.problems.regions.limits import Limits, limited, placed
from shoal.problems.regions.most import most_regions
from shoal.problems.regions.number import level, so_many
from shoal.problems.regions.result import Regions
from shoal.problems.regions.search import POOLED
from shoal.problems.regions.task import Districting, Found, relabelled
from shoal.problems.regions.value import one

TOLERANCE = 2e-6  # of the cost: by as much a bound proved by an integer program may be lowered


def answer(
    task: Districting, method: str, keep: np.ndarray, joined: np.ndarray, unit: str, limits: Limits | None = None
) -> Regions:
    """Run the method, bound it, and put the answer back on all areas."""
    bound = count_bound(task, steps=0)
    by_program = method == "auto" and limits is None and task.regions is None and task.n <= POOLED
    if not (by_program and programmable(bound)):  # which proves as much, where it comes to its end
        separated(task, bound)
    found = _found(task, bound, method, limits)
    label = relabelled(found.label)
    most = bound.value if found.most is None else min(found.most, bound.value)
    if limits is not None:
        label, known = limited(task, bound, label, limits, method == "exact")
        if (label < 0).all():
            raise InfeasibleError("under the maxima no area can be in a region that meets the thresholds; raise one")
        found = replace(found, guarantee=Guarantee(), details={**found.details, **known})
    left = label < 0
    if left.any():
        keep = keep.copy()
        keep[np.flatnonzero(keep)[left]] = False
        task, label = placed(task, label)
    regions, largest, squares = int(label.max()) + 1, one(task, label, "max"), one(task, label, "sumsq")
    low = _low(task, bound, found, bool(left.any()))
    details = {
        "regions": regions,
        "upper_bound": most,
        "upper_bound_argument": "every larger packing is ruled out" if found.most is not None else bound.argument,
        "upper_bounds": dict(bound.table),
        "largest": largest,
        "largest_bound": low.largest,
        "squares": squares,
        "squares_bound": low.squares,
        "excess": one(task, label, "excess"),
        "k": task.need.tolist(),
        "l": task.ways,
        "objective": list(task.objective),
        "areas": len(keep),
        "left_out": int((~keep).sum()),
        "joined": len(joined),
        **found.details,
    }
    certificate = _certificate(task, one(task, label, task.objective[0]), low, most, unit, found, details)
    labels = np.full(len(keep), -1, np.int64)
    labels[keep] = label
    total = np.zeros((regions, len(task.need)), np.int64)
    np.add.at(total, label, task.weights)
    return Regions(
        labels=labels,
        cost=certificate.cost,
        certificate=certificate,
        weights=total[:, 0] if total.shape[1] == 1 else total,
        sizes=np.bincount(label, minlength=regions),
        upper_bound=most,
        largest=largest,
        largest_bound=low.largest,
        squares=squares,
        squares_bound=low.squares,
        excess=details["excess"],
        method=method,
        joined=joined,
        k=tuple(task.need.tolist()),
    )


def _found(task: Districting, bound: CountBound, method: str, limits: Limits | None) -> Found:
    """The method's partition; under maxima one to begin with, for they are kept afterwards."""
    solve = algorithm("regions", method if limits is None else "tree")
    if task.regions is not None:
        return so_many(solve, task, bound, method)
    priced = method == "auto" and task.n > POOLED  # by prices, ahead of what the other objectives find
    if limits is None and task.objective[0] == "count" and method in ("auto", "search") and not priced:
        return most_regions(solve, task, bound)
    found: Found = solve(task, bound)
    return found


class _Low(NamedTuple):
    """What no partition is below: heaviest region, why, sum of squares."""

    largest: int
    why: str
    squares: int


def _low(task: Districting, bound: CountBound, found: Found, left_out: bool) -> _Low:
    if left_out:  # what may be left out bounds nothing
        return _Low(task.k, "a region weighs at least k", task.k**2)
    largest, why = largest_bound(task, bound)
    squares = squares_bound(task, bound)
    if task.regions is not None:
        spread, poured = level(task.features[:, 0], task.regions)
        squares = max(squares, poured)
        if spread > largest:
            largest, why = spread, "the weight is shared among so many regions, the heaviest areas apart"
    if found.least is not None and found.least > largest:
        largest, why = found.least, "every partition into connected sets below it is ruled out"
    return _Low(largest, why, max(squares, found.squares or 0))


def _certificate(
    task: Districting, cost: float, low: _Low, most: int, unit: str, found: Found, details: dict[str, Any]
) -> Certificate:
    """Cost and bound of the objective that comes first."""
    first, guarantee = task.objective[0], found.guarantee
    least: float
    if first == "max":
        least, why = low.largest, low.why
    elif first == "count":
        least, why, unit = max(0, task.n - most), details["upper_bound_argument"], "areas merged away"
    elif first == "sumsq":
        why = "heavy areas apart, the rest poured level over as many regions as there can be"
        least, unit = low.squares, f"squared {unit}"
    elif first == "excess":
        least, why, unit = (
            1.0,
            "a region weighs at least k and at least its heaviest area",
            "times max(k, heaviest area)",
        )
    else:
        least, why = 0, "none is sought: it is not negative"
        unit = "weighted squares about the regions' means" if len(task.moments(first)) else "border edges"
    met = guarantee.factor == 1 and cost <= least * (1 + TOLERANCE)
    if not met and (first != "max" or guarantee.factor == 1):
        guarantee = Guarantee()  # of a tree's regions the heaviest is bounded, nothing else
    return Certificate(cost=cost, lower_bound=least, unit=unit, guarantee=guarantee, bound=why, details=details)
