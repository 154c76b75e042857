"""An algorithm run on a task, bounded, and put back on all areas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.certificate import Certificate, Guarantee
from shoal.problems.catalogue import algorithm
from shoal.problems.regions.bounds import count_bound, largest_bound, squares_bound
from shoal.problems.regions.limits import Limits, limited, placed
from shoal.problems.regions.most import most_regions
from shoal.problems.regions.result import Regions
from shoal.problems.regions.task import Found, Task, relabelled
from shoal.problems.regions.value import one


def answer(
    task: Task, method: str, keep: np.ndarray, joined: np.ndarray, unit: str, limits: Limits | None = None
) -> Regions:
    """Run the method, bound it, and put the answer back on all areas."""
    solve = algorithm("regions", method)
    if limits is not None:  # a partition to begin with is enough, the maxima are kept afterwards
        solve = algorithm("regions", "tree")
    bound = count_bound(task, steps=int(20_000 * min(1.0, task.effort)))
    searches = limits is None and task.objective[0] == "count" and method in ("auto", "search")
    found: Found = most_regions(solve, task, bound) if searches else solve(task, bound)
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
    cost = one(task, label, task.objective[0])
    regions = int(label.max()) + 1
    largest = one(task, label, "max")
    squares = one(task, label, "sumsq")
    if left.any():  # what may be left out bounds nothing
        least, why, low_squares = task.k, "a region weighs at least k", task.k**2
    else:
        least, why = largest_bound(task, bound)
        if found.least is not None and found.least > least:
            least, why = found.least, "every partition into connected sets below it is ruled out"
        low_squares = max(squares_bound(task, bound), found.squares or 0)
    first = task.objective[0]
    details = {
        "regions": regions,
        "upper_bound": most,
        "upper_bound_argument": "every larger packing is ruled out" if found.most is not None else bound.argument,
        "upper_bounds": dict(bound.table),
        "largest": largest,
        "largest_bound": least,
        "squares": squares,
        "squares_bound": low_squares,
        "excess": one(task, label, "excess"),
        "k": task.need.tolist(),
        "l": task.ways,
        "objective": list(task.objective),
        "areas": len(keep),
        "left_out": int((~keep).sum()),
        "joined": len(joined),
        **found.details,
    }
    guarantee = found.guarantee if first == "max" else Guarantee()
    if first == "max":
        certificate = Certificate(
            cost=cost, lower_bound=least, unit=unit, guarantee=guarantee, bound=why, details=details
        )
    elif first == "count":
        certificate = Certificate(
            cost=cost,
            lower_bound=max(0, task.n - most),
            unit="areas merged away",
            bound=details["upper_bound_argument"],
            details=details,
        )
    elif first == "sumsq":
        why = "heavy areas apart, the rest poured level over as many regions as there can be"
        certificate = Certificate(
            cost=cost, lower_bound=low_squares, unit=f"squared {unit}", bound=why, details=details
        )
    else:
        why = "a region weighs at least k and at least its heaviest area"
        certificate = Certificate(
            cost=cost, lower_bound=1.0, unit="times max(k, heaviest area)", bound=why, details=details
        )
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
        largest_bound=least,
        squares=squares,
        squares_bound=low_squares,
        excess=details["excess"],
        method=method,
        joined=joined,
        k=tuple(task.need.tolist()),
    )
