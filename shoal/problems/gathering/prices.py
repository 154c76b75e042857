"""Lower bounds of cellular clustering: prices that no cluster undercuts.

A price per point is feasible when every possible cluster costs at least what its members' prices add up to; then no
clustering costs less than all prices together, and with m points left out none less than all but the m largest.  Not
in the paper: there the prices (alpha) come from one primal-dual run.  Here they start at the cheapest share any ball
offers, which without set-up costs is tau, and are raised one after another as far as the clusters around allow; then
some fall so that more can rise, along subgradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.kernels.gathering import climb as steps
from shoal.kernels.gathering import duals as kernels
from shoal.kernels.uncompiled import quick
from shoal.problems.gathering.space import Space

ENTRIES = 1 << 25  # list entries held at most
WORK = {"fast": 2e8, "balanced": 1e9, "thorough": 1e10}  # points times squared list length, about
WIDTH = {"fast": 4, "balanced": 8, "thorough": 16}
CLIMB = {"fast": 0.0, "balanced": 1.5e8, "thorough": 1e9}  # list entries that subgradients may look at
PASSES = {"fast": 0, "balanced": 60, "thorough": 150}  # over all lists, at most
FEWEST = 40
GAP = 0.015  # steps aim at so much more than what is proved
FULL = 400  # up to this many points the lists are complete
TINY = 1e-12
DENSE = 8000  # up to this many points a matrix is made for the primal-dual method


def width(space: Space, r: int, effort: str) -> int:
    """How long the lists are: some multiple of r (of 8 where r is smaller), within memory."""
    if space.n <= FULL:
        return space.n
    wanted = min(WIDTH[effort] * max(r, 8), ENTRIES // space.n, max(4 * r, int((WORK[effort] / space.n) ** 0.5)))
    return int(min(space.n, max(wanted, r, 2)))


def raised(
    near: np.ndarray,
    far: np.ndarray,
    r: int,
    setup: np.ndarray,
    start: np.ndarray | None = None,
    left_out: int = 0,
    effort: str = "fast",
) -> tuple[np.ndarray, float]:
    """(feasible prices float64[n], the sum they started from, without the left_out largest).

    near, far  the nearest w >= r points of each point
    start      other feasible prices to start from where they add up to more; with r > 1 only for complete lists
    effort     how long subgradients are followed; not where points are left out or centers cost something
    O(n w^2) time as a rule, O(n w) space.
    """
    n, w = near.shape
    complete = w >= n
    at, holder, away, place = quick(kernels.holders, 2 * near.size)(near, far)
    offer = far + setup[:, None] / np.arange(1, w + 1)
    offer[:, : r - 1] = np.inf
    offer[:, :-1][far[:, 1:] == far[:, :-1]] = np.inf  # equal distances enter together
    if not complete:
        offer[:, -1] = far[:, -1]  # more points may lie at the same distance, and beyond: at least the distance
    offer = np.minimum.accumulate(offer[:, ::-1], axis=1)[:, ::-1]
    price = np.minimum.reduceat(offer[holder, place], at[:-1])
    cap = np.full(n, np.inf)
    if not complete:
        end = far[:, -1]
        beyond = np.where(far >= end[near], far, np.inf).min(axis=1)  # the nearest center that does not list the point
        cap = np.minimum(np.minimum.reduceat(end[holder], at[:-1]), np.minimum(beyond, end))
    price = np.minimum(price, cap)
    first = float(price.sum())
    if left_out:
        return _capped((near, far, at, holder, away, r, setup), cap, price, left_out)
    if start is not None and (complete or r <= 1) and start.sum() > first:
        price = start.copy()

    def higher(price: np.ndarray) -> None:
        kernels.raise_prices(near, far, at, holder, away, r, setup, cap, np.argsort(price, kind="stable"), price)

    higher(price)
    climbed = climbed_from(price, near, far, r, cap, effort) if r > 1 and not setup.any() else price
    if climbed.sum() > price.sum():
        price = climbed
        higher(price)
    return price, first


def climbed_from(
    price: np.ndarray, near: np.ndarray, far: np.ndarray, r: int, cap: np.ndarray, effort: str
) -> np.ndarray:
    """Prices of either sign from feasible ones, moved along subgradients and lowered until they are feasible; ``cap``
    as for ``raise_prices``.  Without set-up costs."""
    passes = min(PASSES[effort], int(CLIMB[effort] / near.size))
    aim = float(price.sum())
    if passes < FEWEST or aim <= 0.0:
        return price
    moved, best, over = price.copy(), price.copy(), np.empty(price.size)
    state = np.array([-np.inf, 1.0, 0.0])
    # prices of wide land are a thousand times those of a city: each moves in units between its own and the usual one
    scale = np.sqrt(np.maximum(price, TINY * float(price.max())) * float(np.median(price[price > 0])))
    quick(steps.climb, passes * near.size)(near, far, r, scale, cap, moved, best, passes, aim, GAP * aim, state)
    quick(steps.excess, near.size)(near, far, r, best, over)
    return best - over - TINY * np.abs(best)


def _capped(balls: tuple[Any, ...], cap: np.ndarray, price: np.ndarray, left_out: int) -> tuple[np.ndarray, float]:
    """With points left out only the smaller prices count, so none is raised above a common cap; a few are tried.

    balls  who is near whom, r and the set-up costs, as ``raise_prices`` takes them
    """
    near, far, at, holder, away, r, setup = balls
    first = bound(price, left_out)
    best, level = price, float(np.partition(price, price.size - left_out - 1)[price.size - left_out - 1])
    for factor in (1.0, 1.4, 2.0):
        limit = level * factor
        trial = np.minimum(price, limit)
        order = np.argsort(trial, kind="stable")
        kernels.raise_prices(near, far, at, holder, away, r, setup, np.minimum(cap, limit), order, trial)
        if bound(trial, left_out) > bound(best, left_out):
            best = trial
    return best, first


def bound(price: np.ndarray, left_out: int) -> float:
    """What every clustering costs that leaves out at most left_out points."""
    kept = np.sort(price)[: price.size - left_out] if left_out else price
    return max(0.0, math.fsum(kept.tolist()))
