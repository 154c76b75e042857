"""Recombination: neighboring regions merged and cut anew along random spanning trees, then single areas moved.

Known from political districting as ReCom (DeFord, Duchin, Solomon 2021), there a sampler, here a search: merges of two
or three regions are cut into as many as the drawn tree allows, and among equal numbers what is over is gathered in one
region until it can be cut.  Starts from any valid partition, by default from the tree method's, so that method's
promise holds for the heaviest region wherever that is what is asked for first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.problems.regions.bounds import CountBound, largest_bound
from shoal.problems.regions.packing import UNIT
from shoal.problems.regions.sets import Pool
from shoal.problems.regions.task import Clock, Districting, Found
from shoal.problems.regions.tree import ceiling, promise, tree
from shoal.problems.regions.value import one, value
from shoal.watching import done, within

if TYPE_CHECKING:
    from shoal.kernels.regions.areas import Areas
    from shoal.kernels.regions.recombine import Aim

_NO_CAP = 2**62
POOLED = 1_000  # areas: above it there is one run and no pool
_RUNS = 2
_PUT = 0.2  # of the seconds left, about, are for putting compact regions together anew
_ROUNDS = 8  # times that the steps of a search go round the areas of a large graph
_SNAPSHOTS = 30
_SHARE = {"max": 0.2, "count": 0.5, "sumsq": 0.3, "excess": 0.3, "compact": 0.3, "similar": 0.3}
_HEAT = {
    "max": (0.3, 1e-3), "count": (10.0, 0.1), "sumsq": (0.6, 0.006), "excess": (1.0, 0.01), "compact": (1.0, 0.01),
    "similar": (1.0, 0.01),
}  # fmt: skip
_PRICED_HEAT = (0.02, 0.005)
_LARGE = 100_000  # areas: above it the steps an area are fewer


def search(
    task: Districting,
    bound: CountBound,
    pool: Pool | None = None,
    more: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Found:
    """Lower the objectives one after the other, each kept while the next is lowered.

    pool  gathers regions met, on small graphs
    more  makes of a partition one of more regions, to begin with; where that may stand in the way of what is asked for
          first, the search goes from both

    A number of steps in proportion to the areas (at least 20, at most 4,000 an area; above 100,000 areas 4 for each
    more), each linear in the regions merged.
    """
    clock, first = Clock.of(task.seconds), tree(task, bound)
    label = first.label if task.start is None else task.start.copy()
    degree = int(first.details["tree_degree"])
    if task.objective[0] == "max" and task.start is not None and first.label.size:
        label = min(label, first.label, key=lambda found: one(task, found, "max"))
    begun = label if more is None else more(label)
    both = begun is not label and task.objective[0] != "count"
    found = [improve(task, bound, begun, clock.part(0.5) if both else clock, pool=pool)]
    if both and not _lightest(task, bound, found[0]):
        found.append(improve(task, bound, label, clock, pool=pool))
    label = min(found, key=lambda made: value(task, made, task.objective))
    kept = task.plain and one(task, label, "max") <= ceiling(task, degree)
    guarantee = promise(task, degree) if kept and task.objective[0] == "max" else Guarantee()
    return Found(label, guarantee, details=first.details)


def _lightest(task: Districting, bound: CountBound, label: np.ndarray) -> bool:
    """Whether the heaviest region is what is asked for first, and none can be lighter."""
    return task.objective[0] == "max" and one(task, label, "max") <= largest_bound(task, bound)[0]


def improve(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    clock: Clock | None = None,
    objective: tuple[str, ...] | None = None,
    pool: Pool | None = None,
) -> np.ndarray:
    """The search by itself, from a valid partition; never worse than it in the order of the objectives.

    On small graphs the steps are shared among several runs, and the regions that these met are put together anew.
    """
    clock = clock or Clock.of(task.seconds)
    chain = objective or task.objective
    label = np.ascontiguousarray(label, dtype=np.int64).copy()
    if task.n > POOLED:
        return _improved(task, bound, label, clock, chain, 1.0, None)
    pool = Pool() if pool is None else pool
    found = [label]
    spend = 1 - _PUT * (not {"compact", "similar"}.isdisjoint(chain))
    for run in range(_RUNS):
        share = 1 / (_RUNS - run)
        slot = clock.part(share * spend)
        found.append(_improved(task, bound, label, slot, chain, 1 / _RUNS, pool))
    best = min(found, key=lambda one_of: value(task, one_of, chain))
    return min(best, pool.partition(task, best, chain, clock), key=lambda one_of: value(task, one_of, chain))


def _improved(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    clock: Clock,
    chain: tuple[str, ...],
    part: float,
    pool: Pool | None,
) -> np.ndarray:
    """One run, with ``part`` of the usual steps; the regions met go to the pool."""
    cap, start = _NO_CAP, label
    shares = sum(_SHARE[name] for name in chain)
    # many regions first: they lower squares and excess further than the search alone finds, and on large graphs the
    # heaviest region too, where prices find more of them than a search under a cap does
    priced = task.regions is None and task.n > POOLED and chain[0] == "max"
    warm = priced or (task.regions is None and chain[0] in ("sumsq", "excess"))
    stages = ("count", *chain) if warm else chain
    for i, name in enumerate(stages):
        before = label.copy()
        seconds = None if clock.end is None else max(0.0, clock.left) * _SHARE[name] / max(shares, _SHARE[name])
        shares -= 0 if warm and i == 0 else _SHARE[name]
        with within(i / len(stages), (i + 1) / len(stages)):
            if name == "max":
                label, cap = _lower_max(task, bound, label, seconds, part, pool)
                if priced and cap > one(task, start, "max"):  # whose promise is kept
                    label, cap = _lower_max(task, bound, start, seconds, part, pool)
                    priced = False
            elif name != "count" or ((i == 0 or not priced) and int(label.max()) + 1 < bound.value):
                label = _run(task, bound, label, name, cap, 0.0, seconds, part, pool)
        if not (warm and i == 0):
            held = chain[: i + 1 - warm]
            if value(task, label, held) > value(task, before, held):
                label = before
    return label


def _lower_max(
    task: Districting, bound: CountBound, label: np.ndarray, seconds: float | None, part: float, pool: Pool | None
) -> tuple[np.ndarray, int]:
    """Halve the way between the proved bound and the heaviest region, as long as the search gets there."""
    low, _ = largest_bound(task, bound)
    high = one(task, label, "max")
    target, misses = low, 0
    while high > low and misses < 4:
        with within(misses / 4, (misses + 1) / 4):
            found = _run(task, bound, label, "max", _NO_CAP, float(target), seconds and seconds / 4, part, pool)
        reached = one(task, found, "max")
        if reached < high:
            label, high = found, reached
        if reached > target:
            misses += 1
            target = (target + high + 1) // 2 if target < high - 1 else high
            if target >= high:
                break
        else:
            target = (low + high) // 2
    return label, high


class _Annealing(NamedTuple):
    """One objective lowered from a partition: how the kernels count it, and between which heats.

    Where areas have prices, surplus that is to gather in one region until it can be cut is told in prices, not in
    weight: what no region can use costs nothing.
    """

    task: Districting
    name: str
    areas: Areas
    aim: Aim
    heat: tuple[float, float]

    @classmethod
    def of(
        cls, task: Districting, bound: CountBound, label: np.ndarray, name: str, cap: int, target: float
    ) -> _Annealing:
        from shoal.kernels.regions import recombine as kernel
        from shoal.kernels.regions.areas import Areas

        forms: dict[str, int] = {
            "count": kernel.COUNT,
            "sumsq": kernel.SQUARES,
            "max": kernel.OVER,
            "excess": kernel.EXCESS,
            "compact": kernel.INERTIA if len(task.geo) else kernel.BORDER,
            "similar": kernel.INERTIA,
        }
        scale, features, need = float(task.k), task.features, task.need
        if forms[name] == kernel.INERTIA:
            scale = max(one(task, label, name) / (int(label.max()) + 1), 1e-300)
        heat = (3.0, 0.3) if name == "count" and task.n <= POOLED else _HEAT[name]
        if name == "count" and bound.price is not None and cap == _NO_CAP:
            features, need = np.column_stack([bound.price, features]), np.concatenate([[0], need])
            scale, heat = float(UNIT), _PRICED_HEAT
        moments = task.moments(name) if name in ("compact", "similar") else np.zeros((0, 4))
        aim = kernel.Aim(
            forms[name], scale, target, moments if len(moments) else np.zeros((0, 4)), cap, task.regions or bound.value
        )
        return cls(task, name, Areas(task.graph.indptr, task.graph.indices, features, need, task.ways), aim, heat)

    def lower(self, label: np.ndarray, steps: int, begin: float, end: float) -> None:
        """Recombine in place, cooling from one share of the way to another."""
        from shoal.kernels.regions.recombine import Cooling, recombine

        hot, cold = self.heat
        cooling = Cooling(steps, hot * (cold / hot) ** begin, hot * (cold / hot) ** end)
        recombine(self.areas, self.aim, cooling, label, self.task.state)

    def polished(self, label: np.ndarray, steps: int, pool: Pool | None) -> np.ndarray:
        """Single areas moved at the last heat, where the number of regions does not count."""
        from shoal.kernels.regions.moves import shift
        from shoal.kernels.regions.recombine import Cooling

        plain = self.name in ("sumsq", "max")  # which on small graphs recombination lowers as far by itself
        if self.name in ("count", "excess") or (plain and self.task.n <= POOLED):
            return label
        moved, cold = label.copy(), self.heat[1]
        shift(self.areas, self.aim, Cooling(steps, cold, cold / 10), moved, self.task.state)
        moved = min(moved, label, key=lambda found: value(self.task, found, (self.name, "sumsq")))
        if pool is not None:
            pool.add(moved)
        return moved


def _run(
    task: Districting,
    bound: CountBound,
    label: np.ndarray,
    name: str,
    cap: int,
    target: float,
    seconds: float | None,
    part: float,
    pool: Pool | None,
) -> np.ndarray:
    """One annealing, by steps or by seconds; the colder half of it fills the pool."""
    annealing = _Annealing.of(task, bound, label, name, cap, target)
    label = label.copy()
    if seconds is None:
        steps = max(1, int(steps_for(task, bound, name) * part))
        if task.n > POOLED:
            for i in range(_ROUNDS):
                done(i / _ROUNDS)
                annealing.lower(label, max(1, steps // _ROUNDS), i / _ROUNDS, (i + 1) / _ROUNDS)
        elif pool is None or name == "count":
            annealing.lower(label, steps, 0.0, 1.0)
        else:
            annealing.lower(label, steps // 2, 0.0, 0.5)
            for i in range(_SNAPSHOTS):
                share = max(1, steps // 2 // _SNAPSHOTS)
                annealing.lower(label, share, 0.5 + 0.5 * i / _SNAPSHOTS, 0.5 + 0.5 * (i + 1) / _SNAPSHOTS)
                pool.add(label)
        return annealing.polished(label, 4 * steps, pool)
    clock = Clock.of(seconds)
    chunk, spent = 2_000, 0.0
    while spent < 1.0:
        done(spent)
        annealing.lower(label, chunk, spent, min(1.0, spent + 0.05))
        now = 1.0 if seconds <= 0 else 1.0 - max(0.0, clock.left) / seconds
        chunk = int(np.clip(chunk * 0.05 / max(now - spent, 1e-3), 200, 10_000_000))
        spent = now
        if pool is not None:
            pool.add(label)
    return annealing.polished(label, 4 * min(chunk, 1_000_000), pool)


def steps_for(task: Districting, bound: CountBound, name: str) -> int:
    """The usual number of steps of one annealing: fewer where regions are large, for a step takes longer there."""
    size = task.n / max(bound.value, 1)
    few, usual = (
        20 * min(task.n, _LARGE) + 4 * max(0, task.n - _LARGE),
        min(4_000 * task.n, int(3_700_000 / max(size, 1.0) ** 0.5)),
    )
    if task.n <= POOLED:
        share = 0.25 if name == "max" else 0.28
    elif name == "count":  # led by prices: the number still rises where other objectives have long settled
        share, usual = 1.35, int(2.5 * usual)
    else:
        share = 0.25 if name == "max" else 0.3
    return max(1, int(max(usual, few) * task.effort * share))
