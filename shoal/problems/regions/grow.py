"""Regions that no search met: those next to the ones that a linear program likes, again and again.

A region has neighbors, by one area more, one less, or one exchanged.  The program over the regions so far prices areas;
neighbors that cost less than their areas' prices come into it, until there are none.  What a partition of least worth
needs is then most often among them, which a search that moves from partition to partition need not meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from shoal.problems.regions.task import Clock, Districting, eligible_rows
from shoal.problems.regions.value import one

_ROUNDS = 40
_TRIED = 600  # regions in a round whose neighbors are looked at, those of least reduced worth
_TAKEN = 1_000  # neighbors taken in a round
_ENOUGH = 4_000  # regions: above it those of negative reduced worth alone are looked for
_NEAR = 0.5  # in mean worths of a region: neighbors are looked for so far above their areas' prices at any rate
_ZERO = 1e-6  # reduced worth below this, negated, is below zero


def inertia(moments: np.ndarray) -> np.ndarray:
    """Squares about the means of sets with moments float64[..., c + 2], as ``task.moments`` has them."""
    mass = np.maximum(moments[..., 0], 1e-300)
    return np.maximum(0.0, moments[..., -1] - (moments[..., 1:-1] ** 2).sum(axis=-1) / mass)


def grown(
    task: Districting,
    sets: Sequence[np.ndarray],
    name: str,
    label: np.ndarray,
    number: tuple[int, int],
    clock: Clock,
) -> list[np.ndarray]:
    """Further connected eligible sets, rising, none of them in ``sets``.

    sets    int64[s], rising, the regions of ``label`` among them
    name    an objective with moments: "compact" where places are known, "similar"
    label   int64[n]  the best partition known: what costs more above its areas' prices than it could still fall is of
            no use
    number  least and most regions in a partition
    """
    moments, regions = task.moments(name), int(label.max()) + 1
    unit = one(task, label, name) / regions
    if not len(moments) or unit <= 0:
        return []
    ends = np.split(task.graph.indices, task.graph.indptr[1:-1])
    near = [set(found.tolist()) for found in ends]
    known = {members.tobytes() for members in sets}
    program = _Program(task.n, number, clock)
    every = list(sets)
    program.add(every, [float(inertia(moments[members].sum(axis=0))) / unit for members in every])
    seen: set[int] = set()  # at these prices
    for _ in range(max(1, int(_ROUNDS * min(1.0, task.effort)))):
        prices = program.prices(regions) if clock.left > 0 else None
        if prices is None:
            break
        tried = [j for j in np.argsort(prices.reduced, kind="stable").tolist() if j not in seen][:_TRIED]
        fresh: list[_Near] = []
        for j in tried:
            if prices.reduced[j] > prices.slack:
                break
            for other in _around(task, moments / unit, near, every[j], prices):
                if other.members.tobytes() not in known:
                    known.add(other.members.tobytes())
                    if _connected(near, other.members):
                        fresh.append(other)
        fresh.sort(key=lambda other: other.reduced)
        known -= {other.members.tobytes() for other in fresh[_TAKEN:]}
        fresh = fresh[:_TAKEN]
        every += [other.members for other in fresh]
        program.add([other.members for other in fresh], [other.worth for other in fresh])
        if fresh and fresh[0].reduced < -_ZERO:
            seen.clear()
        elif len(tried) < _TRIED or len(every) >= _ENOUGH:
            break
        else:
            seen.update(tried)
    return every[len(sets) :]


class _Near(NamedTuple):
    """A set next to another, its worth, and how much that is above its areas' prices."""

    members: np.ndarray
    worth: float
    reduced: float


class _Prices(NamedTuple):
    """float64[s] reduced worths of the sets, float64[n] prices of the areas, what any set costs besides, and how far
    above the program's the worth of the best partition known is, or a little more.
    """

    reduced: np.ndarray
    price: np.ndarray
    toll: float
    slack: float


def _around(
    task: Districting, moments: np.ndarray, near: list[set[int]], members: np.ndarray, prices: _Prices
) -> Iterator[_Near]:
    """The eligible sets by one area more, less or exchanged that cost little; not all hang together."""
    inside = set(members.tolist())
    beside = np.array(sorted(set().union(*(near[v] for v in inside)) - inside), np.int64)
    more, less = np.append(-1, beside), np.append(-1, members)  # -1: none

    def changed(values: np.ndarray) -> np.ndarray:
        held = np.concatenate([values, np.zeros_like(values[:1])])  # where -1 points
        return values[members].sum(axis=0) + held[more][:, None] - held[less][None]

    sums, about = changed(task.features), inertia(changed(moments))
    reduced = about - changed(prices.price) - prices.toll
    fits = eligible_rows(sums.reshape(-1, sums.shape[-1]), task.need, task.ways).reshape(reduced.shape)
    for i, j in np.argwhere(fits & (reduced <= prices.slack)).tolist():
        made = np.sort(np.concatenate([members[members != less[j]], beside[i - 1 : i] if i else beside[:0]]))
        if len(made):
            yield _Near(made, float(about[i, j]), float(reduced[i, j]))


def _connected(near: list[set[int]], members: np.ndarray) -> bool:
    left = set(members.tolist())
    queue = [left.pop()]
    while queue and left:
        met = near[queue.pop()] & left
        left -= met
        queue += met
    return not left


class _Program:
    """The cheapest fractional partition into the sets so far, of so many of them."""

    def __init__(self, n: int, number: tuple[int, int], clock: Clock) -> None:
        from shoal.problems.programs import Solver

        self.n, self.highs = n, Solver(time_limit=max(0.1, clock.left))
        nothing = np.empty(0, np.int32)
        for _ in range(n):
            self.highs.addRow(1.0, 1.0, 0, nothing, np.empty(0))
        self.highs.addRow(number[0] - _ZERO, number[1] + _ZERO, 0, nothing, np.empty(0))

    def add(self, sets: Iterable[np.ndarray], worth: Iterable[float]) -> None:
        """Columns for sets."""
        for members, cost in zip(sets, worth, strict=True):
            rows = np.append(members, self.n).astype(np.int32)
            self.highs.addCol(cost, 0.0, 1e30, len(rows), rows, np.ones(len(rows)))

    def prices(self, worth: float) -> _Prices | None:
        """Those of its answer, if it has one, beside a partition of this worth."""
        import highspy

        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self.highs.getSolution()
        dual = np.array(solution.row_dual)
        slack = max(_NEAR, worth - self.highs.getInfo().objective_function_value)
        return _Prices(np.array(solution.col_dual), dual[: self.n], float(dual[self.n]), slack)
