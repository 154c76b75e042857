"""A given number of regions: as many as can be are merged down to it, then searched at that number."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.problems.regions.bounds import CountBound
from shoal.problems.regions.exact import LISTED, safe
from shoal.problems.regions.graph import Contiguity
from shoal.problems.regions.search import improve
from shoal.problems.regions.sets import Sets
from shoal.problems.regions.task import CHAINS, Clock, Districting, Found, relabelled
from shoal.problems.regions.value import one

_NO_CAP = 2**62


def so_many(
    solve: Callable[[Districting, CountBound], Found], task: Districting, bound: CountBound, method: str
) -> Found:
    """Exactly ``task.regions`` regions: the method's answer with most regions, merged down, then searched.

    Method "tree" ends there; "exact" lists all connected sets and is optimal where they can be listed.

    Raises InfeasibleError when so many cannot exist, and when so many were not found.
    """
    asked = task.regions or 0
    pieces = int(bound.component.max()) + 1
    if asked < pieces:
        raise InfeasibleError(
            f"the areas are in {pieces} parts without a connection, so {asked} regions do not cover them"
        )
    if asked > bound.value:
        raise InfeasibleError(f"at most {bound.value} regions reach the thresholds, so {asked} cannot be; lower k")
    if method == "exact":
        listed = Sets.of(task, np.arange(task.n), Clock.of(task.seconds), _NO_CAP)
        if listed is not None:
            return _listed(task, listed)
    found = solve(replace(task, objective=CHAINS["count"], regions=None), bound)
    many = int(found.label.max()) + 1
    if many < asked:
        most = bound.value if found.most is None else min(found.most, bound.value)
        if asked > most:
            raise InfeasibleError(f"at most {most} regions reach the thresholds, so {asked} cannot be; lower k")
        raise InfeasibleError(
            f"{many} regions were found and at most {most} exist, but not {asked}; lower k, or give more effort"
        )
    label = merged(task.graph, task.features[:, 0], found.label, asked)
    if method != "tree":
        label = improve(replace(task, start=None), bound, label)
    details = {**found.details, "stopped": "too many connected sets to list"} if method == "exact" else found.details
    return Found(label, details=details)


def _listed(task: Districting, listed: Sets) -> Found:
    """The optimum over all partitions into so many of the sets."""
    listed.number(task.regions or 0)
    if listed.solve(np.zeros(len(listed.sets)), np.arange(len(listed.sets))) is None:
        raise InfeasibleError(f"no partition into {task.regions} connected regions meets the thresholds; lower k")
    for i, name in enumerate(task.objective):
        if name in ("max", "excess"):
            listed.keep(name, listed.bisect(name))
        else:
            listed.minimise(name, last=i + 1 == len(task.objective))
    label = np.empty(task.n, np.int64)
    for region, members in enumerate(listed.partition()):
        label[members] = region
    first = task.objective[0]
    squares = one(task, label, "sumsq")
    return Found(
        relabelled(label),
        LISTED,
        least=one(task, label, "max") if first == "max" else None,
        squares=safe(squares, 0) if first == "sumsq" else None,
        details={"proved": "every connected set listed, then integer programs", "objectives": len(task.objective)},
    )


def merged(g: Contiguity, weight: np.ndarray, label: np.ndarray, number: int) -> np.ndarray:
    """Neighboring regions joined, the lightest pair first, until so many are left.  O(edges log edges)."""
    label = relabelled(label)
    many = int(label.max()) + 1
    load = np.bincount(label, weights=weight, minlength=many).tolist()
    ends = label[g.edges()]
    beside: list[set[int]] = [set() for _ in range(many)]
    for a, b in np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0).tolist():
        beside[a].add(b)
        beside[b].add(a)
    into = list(range(many))
    heap = [(load[a] + load[b], a, b) for a in range(many) for b in beside[a] if a < b]
    heapq.heapify(heap)
    while many > number and heap:
        total, a, b = heapq.heappop(heap)
        if into[a] != a or into[b] != b or total != load[a] + load[b]:
            continue
        into[b], load[a], many = a, total, many - 1
        beside[a] = (beside[a] | beside[b]) - {a, b}
        for other in beside[a]:
            beside[other].discard(b)
            beside[other].add(a)
            heapq.heappush(heap, (load[a] + load[other], min(a, other), max(a, other)))
    final = np.array(into)
    while (final[final] != final).any():
        final = final[final]
    return relabelled(final[label])


def level(weight: np.ndarray, number: int) -> tuple[int, int]:
    """No partition into so many parts has a lighter heaviest part, or a smaller sum of squares.

    The j heaviest parts weigh at least what the j heaviest areas do, whatever else the partition is; under these
    constraints, and with the total given, both are least when each area above the level of the rest is a part by
    itself and the rest is poured level over the other parts (the loads so found are majorized by all others).
    """
    left, slots, squares, heaviest = int(weight.sum()), number, 0, 0
    for w in np.sort(weight)[::-1].tolist():
        if slots <= 1 or w * slots <= left:
            break
        heaviest, squares, left, slots = max(heaviest, w), squares + w * w, left - w, slots - 1
    return max(heaviest, -(-left // slots)), squares + -(-left * left // slots)
