"""Runs a method on one task of regions, bounds its answer, and solves small components to proved optima.

The answer keeps as many regions as any objective finds, because a search for another objective sometimes finds more
regions than a search for their number. If a number of regions is given, as many regions as possible are merged down to
it, and then searched at that number.

Small components are solved exactly: every connected eligible set is listed, and integer programs choose among them,
component by component, one objective after the other. The weight of the heaviest region (or the excess) is minimized by
bisection over the values that sets can have; sums (number of regions, squares, compactness) by set partitioning. If the
sets are too many to list, ``packing`` still decides the number of regions on larger graphs, and everything else is
answered by the search with the bound proved so far. If no method is named, tree and search run, small components are
solved exactly, and the linear program runs if it is quick.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.loss import parts_bounds
from shoal.problems.catalogue import algorithm
from shoal.problems.regions.bounds import (
    CountBound,
    best_packing,
    count_bound,
    largest_bound,
    price_areas,
    price_out,
    programmable,
    separated,
    squares_bound,
)
from shoal.problems.regions.limits import RegionLimits, limited, placed
from shoal.problems.regions.methods import POOLED, improve, search
from shoal.problems.regions.sets import ConnectedSets, Pool
from shoal.problems.regions.task import (
    CHAINS,
    NO_CAP,
    Contiguity,
    Districting,
    Regions,
    RegionsFound,
    SearchClock,
    cost_in,
    costs_in,
    relabelled,
    summed,
)
from shoal.watching import within

OTHERS = ("sumsq", "excess", "max")


def most_regions(
    solve: Callable[[Districting, CountBound], RegionsFound], task: Districting, bound: CountBound
) -> RegionsFound:
    """The method's answer for the task's objectives, "count" first, or for another objective with more regions.

    ``auto`` doesn't call this on large graphs, where area prices guide its search. All objectives use the same
    randomness, so the answer has as many regions as a call for that objective with the same seed. The loop ends if the
    bound is reached. It takes at most four times the work, or the same seconds in total. For compact or similar
    regions, the winning number of regions is searched again, because a result for another objective is neither: at most
    seven times the work.
    """
    again = not {"compact", "similar"}.isdisjoint(task.objective)
    seconds = None if task.seconds is None else task.seconds / (1 + (1 + again) * len(OTHERS))
    task = replace(task, seconds=seconds)
    begin = task.state.copy()
    best = solve(task, bound)
    for name in OTHERS:
        most = bound.value if best.most is None else min(best.most, bound.value)
        if int(best.label.max()) + 1 >= most:
            break
        other = solve(replace(task, objective=CHAINS[name], state=begin.copy()), bound)
        label = other.label
        if again and int(label.max()) >= int(best.label.max()):
            label = improve(task, bound, label)
        if costs_in(task, label, task.objective) < costs_in(task, best.label, task.objective):
            best = replace(best, label=label, details={**best.details, "found_for": name})
    return best


LISTED = Guarantee(factor=1, additive=0, theorem="every connected set listed, then integer programs")


def exact(task: Districting, bound: CountBound) -> RegionsFound:
    """Optimal if every component is small enough; else the search's answer with the bounds that could be proved.

    Exponential time; components of up to about 25 areas, and the number of regions alone up to a few hundred.
    """
    clock = SearchClock.of(task.seconds)
    found = search(task, bound)
    label, solved = optimal_components(task, bound, found.label, task.n, clock)
    details = dict(found.details)
    left = ~solved
    if not left.any():
        return _proved(task, bound, label, details)
    details["stopped"] = f"{int(left.sum())} areas lie in components too large to list all their regions"
    if task.thresholds_only:
        price_out(task, bound, label, nodes=20_000_000, clock=clock, cuts=160, integer=True)
        better = best_packing(task, bound, label)
        if better is not None:
            label = improve(task, bound, better, clock, _after_count(task.objective))
    return RegionsFound(label, found.guarantee, details=details)


def optimal_components(
    task: Districting, bound: CountBound, label: np.ndarray, size: int, clock: SearchClock
) -> tuple[np.ndarray, np.ndarray]:
    """The partition in which every component of at most ``size`` areas is optimal; and bool[n], which areas are solved.

    A component is optimal if no partition of it is better in the objectives' order, given the other components.
    """
    label = label.copy()
    count = np.bincount(bound.component) if task.n else np.zeros(0, np.int64)
    # heavier sets can't be in the answer
    cap = cost_in(task, label, "max") if task.objective[0] == "max" else NO_CAP
    lists = {}
    for c in np.flatnonzero(count <= size):
        listed = ConnectedSets.of(task, np.flatnonzero(bound.component == c), clock, cap)
        if listed is not None:
            lists[int(c)] = listed
    solved = np.isin(bound.component, list(lists))
    if not lists:
        return label, solved
    return _chosen(task, list(lists.values()), label, ~solved), solved


def _chosen(task: Districting, lists: list[ConnectedSets], label: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The best partitions into listed sets, one objective after the other, given the regions of ``others``."""
    for i, name in enumerate(task.objective):
        if name in ("max", "excess"):
            level = max([_component_level(task, label, others, name), *(listed.bisect(name) for listed in lists)])
            for listed in lists:
                listed.keep(name, level)
        else:
            for listed in lists:
                listed.minimise(name, last=i + 1 == len(task.objective))
    fresh = int(label.max()) + 1
    for listed in lists:
        for members in listed.partition():
            label[members] = fresh
            fresh += 1
    return relabelled(label)


def _component_level(task: Districting, label: np.ndarray, mask: np.ndarray, name: str) -> Any:
    """The largest weight or excess of the regions of the areas in ``mask``; 0 if there are none."""
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
    """The objectives that remain after a partition with more regions was found."""
    return tuple(name for name in objective if name != "count") if objective[0] == "count" else objective


def _proved(task: Districting, bound: CountBound, label: np.ndarray, details: dict[str, Any]) -> RegionsFound:
    """The answer with bounds on its first objective, which is optimal.

    Later objectives are optimal given the earlier ones.
    """
    first = task.objective[0]
    return RegionsFound(
        label,
        LISTED,
        most=int(label.max()) + 1 if first == "count" else None,
        least=cost_in(task, label, "max") if first == "max" else None,
        squares=safe_bound(cost_in(task, label, "sumsq"), squares_bound(task, bound)) if first == "sumsq" else None,
        details=details | {"proved": LISTED.theorem, "objectives": len(task.objective)},
    )


def safe_bound(cost: int, bound: int) -> int:
    """A valid bound of a cost that an integer program proves optimal: the cost, or slightly less."""
    return cost if cost < 10**6 else max(bound, math.floor(cost * (1 - 1e-6)))


def fixed_number(
    solve: Callable[[Districting, CountBound], RegionsFound], task: Districting, bound: CountBound, method: str
) -> RegionsFound:
    """Exactly ``task.regions`` regions: the method's answer with most regions is merged down, then searched.

    Method "tree" omits the search; "exact" lists all connected sets, and is optimal if they can be listed.

    Raises InfeasibleError if so many regions can't exist, and if so many weren't found.
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
        listed = ConnectedSets.of(task, np.arange(task.n), SearchClock.of(task.seconds), NO_CAP)
        if listed is not None:
            return _listed(task, bound, listed)
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
    return RegionsFound(label, details=details)


def _listed(task: Districting, bound: CountBound, listed: ConnectedSets) -> RegionsFound:
    """The optimum over all partitions into the required number of listed sets."""
    listed.number(task.regions or 0)
    if listed.solve(np.zeros(len(listed.sets)), np.arange(len(listed.sets))) is None:
        raise InfeasibleError(f"no partition into {task.regions} connected regions meets the thresholds; lower k")
    none = np.zeros(task.n, np.int64)
    return _proved(task, bound, _chosen(task, [listed], none, none > 0), {})


def merged(g: Contiguity, weight: np.ndarray, label: np.ndarray, number: int) -> np.ndarray:
    """Neighboring regions merged, the lightest pair first, until ``number`` are left. O(edges log edges)."""
    label = relabelled(label)
    many = int(label.max()) + 1
    load = np.bincount(label, weights=weight, minlength=many).tolist()
    ends = label[g.edges()]
    adjacent: list[set[int]] = [set() for _ in range(many)]
    for a, b in np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0).tolist():
        adjacent[a].add(b)
        adjacent[b].add(a)
    into = list(range(many))
    heap = [(load[a] + load[b], a, b) for a in range(many) for b in adjacent[a] if a < b]
    heapq.heapify(heap)
    while many > number and heap:
        total, a, b = heapq.heappop(heap)
        if into[a] != a or into[b] != b or total != load[a] + load[b]:
            continue
        into[b], load[a], many = a, total, many - 1
        adjacent[a] = (adjacent[a] | adjacent[b]) - {a, b}
        for other in adjacent[a]:
            adjacent[other].discard(b)
            adjacent[other].add(a)
            heapq.heappush(heap, (load[a] + load[other], min(a, other), max(a, other)))
    final = np.array(into)
    while (final[final] != final).any():
        final = final[final]
    return relabelled(final[label])


TOLERANCE = 2e-6  # relative tolerance by which a bound from an integer program may be lowered


def answer(
    task: Districting, method: str, keep: np.ndarray, joined: np.ndarray, unit: str, limits: RegionLimits | None = None
) -> Regions:
    """Run the method, bound its answer, and extend the answer to all areas."""
    bound = count_bound(task, steps=0)
    by_program = method == "auto" and limits is None and task.regions is None and task.n <= POOLED
    if not (by_program and programmable(bound)):  # the program proves as much if it finishes
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
    regions, largest, squares = int(label.max()) + 1, cost_in(task, label, "max"), cost_in(task, label, "sumsq")
    low = _lower_bounds(task, bound, found, bool(left.any()))
    details = {
        "regions": regions,
        "upper_bound": most,
        "upper_bound_argument": "every larger packing is ruled out" if found.most is not None else bound.argument,
        "upper_bounds": dict(bound.table),
        "largest": largest,
        "largest_bound": low.largest,
        "squares": squares,
        "squares_bound": low.squares,
        "excess": cost_in(task, label, "excess"),
        "k": task.need.tolist(),
        "l": task.l,
        "objective": list(task.objective),
        "areas": len(keep),
        "left_out": int((~keep).sum()),
        "joined": len(joined),
        **found.details,
    }
    certificate = _certificate(task, cost_in(task, label, task.objective[0]), low, most, unit, found, details)
    labels = np.full(len(keep), -1, np.int64)
    labels[keep] = label
    total = summed(task.weights, label)
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


def _found(task: Districting, bound: CountBound, method: str, limits: RegionLimits | None) -> RegionsFound:
    """The method's partition; with maxima, only a starting partition, because maxima are applied afterward."""
    solve = algorithm("regions", method if limits is None else "tree")
    if task.regions is not None:
        return fixed_number(solve, task, bound, method)
    priced = method == "auto" and task.n > POOLED  # by prices, before the other objectives are searched
    if limits is None and task.objective[0] == "count" and method in ("auto", "search") and not priced:
        return most_regions(solve, task, bound)
    found: RegionsFound = solve(task, bound)
    return found


class _LowerBounds(NamedTuple):
    """Lower bounds over all partitions: heaviest region, its argument, and the sum of squares."""

    largest: int
    why: str
    squares: int


def _lower_bounds(task: Districting, bound: CountBound, found: RegionsFound, left_out: bool) -> _LowerBounds:
    if left_out:  # if areas may be left out, there is no lower bound
        return _LowerBounds(task.k, "a region weighs at least k", task.k**2)
    largest, why = largest_bound(task, bound)
    squares = squares_bound(task, bound)
    if task.regions is not None:
        spread, poured = parts_bounds(task.features[:, 0], task.regions)
        squares = max(squares, poured)
        if spread > largest:
            largest, why = spread, "the weight is shared among so many regions, the heaviest areas apart"
    if found.least is not None and found.least > largest:
        largest, why = found.least, "every partition into connected sets below it is ruled out"
    return _LowerBounds(largest, why, max(squares, found.squares or 0))


def _certificate(
    task: Districting,
    cost: float,
    low: _LowerBounds,
    most: int,
    unit: str,
    found: RegionsFound,
    details: dict[str, Any],
) -> Certificate:
    """Cost and bound of the first objective."""
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
        least, why = 1.0, "a region weighs at least k and at least its heaviest area"
        unit = "times max(k, heaviest area)"
    else:
        least, why = 0, "none is sought: it is not negative"
        unit = "weighted squares about the regions' means" if len(task.moments(first)) else "border edges"
    met = guarantee.factor == 1 and cost <= least * (1 + TOLERANCE)
    if not met and (first != "max" or guarantee.factor == 1):
        guarantee = Guarantee()  # a tree bounds only its heaviest region
    return Certificate(cost=cost, lower_bound=least, unit=unit, guarantee=guarantee, bound=why, details=details)


_SMALL = 10  # components of up to this many areas are solved exactly
_MANY = 40  # if there are at most this many components


def auto(task: Districting, bound: CountBound) -> RegionsFound:
    """The search, with all bounds that can be proved in about the same time.

    Prices of areas guide it only on large graphs. On small graphs it begins with the regions of the program that bounds
    their number.
    """
    clock = SearchClock.of(task.seconds)
    pool = Pool()
    if task.n > POOLED:
        if bound.price is None:
            price_areas(task, bound)
        found = search(task, bound, pool)
    else:
        found = search(task, bound, pool, lambda label: _with_more_regions(task, bound, label, pool, clock.part(0.5)))
    label, details = found.label, dict(found.details)
    size = np.bincount(bound.component)
    small = int((size <= _SMALL).sum())
    if 0 < small <= _MANY:
        label, solved = optimal_components(task, bound, label, _SMALL, clock)
        details["solved_exactly"] = int(solved.sum())
    if task.n <= POOLED and int(label.max()) + 1 < bound.value:
        separated(task, bound)
    if (
        task.n <= POOLED
        and int(label.max()) + 1 < bound.value
        and any(int(c) not in bound.packings for c in np.flatnonzero(bound.capacity >= 2))  # too large for the program
    ):
        price_areas(task, bound)
    return RegionsFound(label, found.guarantee, details=details)


def _with_more_regions(
    task: Districting, bound: CountBound, label: np.ndarray, pool: Pool, clock: SearchClock
) -> np.ndarray:
    """The partition with more regions: by a short search and, if more may exist, by the program."""
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
