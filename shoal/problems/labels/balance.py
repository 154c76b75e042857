"""Longest processing time first into a chosen number of bins, then repair: what solves real lists.

For a fixed number m of bins the problem asks for all loads within k..U, so the better balanced the better.  Placing
items in decreasing order into the least loaded bin leaves loads that differ by about one small item, and exchanging
one or two items at a time mends the rest.  Where all loads come to total / m rounded down or up, the packing costs
what every packing into at most m bins must cost; it is then optimal for every k from total / (m + 1) to total / m,
because m is the most bins that fit.  ``sweep`` solves all k of a list that way, one packing per m.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.model.certificate import Guarantee
from shoal.model.effort import Effort
from shoal.problems.interrupts import heard
from shoal.problems.labels.bounds import Bound, distinct, lower_bound, most_bins, up
from shoal.problems.labels.five_halves import FACTOR_5_2, five_halves_labels
from shoal.problems.labels.greedy import poured, spread_labels
from shoal.problems.labels.instance import Cover, Instance, finish, instance
from shoal.problems.labels.packing import SHORT, Budget, hard, search
from shoal.watching import watched

VISITS = 4_000_000  # visits of items and bins that a repair may take
LONG = 50_000  # labels from which auto leaves a gap of 1 / 4096 of the cost alone
FEW = 40  # items per bin up to which bins are filled one by one before they are balanced
KINDS = 400  # distinct sizes up to which a long list is searched by ways to fill a bin
AUTO = Budget(
    fillings=2500, steps=400_000, nodes=20, seconds=None, undecided=2
)  # counted, not timed: the same answer every time


def balanced(given: Instance, m: int, low: int, high: int, budget: int = VISITS) -> tuple[np.ndarray, int, int, int]:
    """Decreasing sizes into m bins with loads in low..high if that succeeds.

    returns  (bin of each item, least load, largest load, budget left)
    """
    from shoal.kernels.labels.bins import pour, rebalance

    label, level = np.empty(len(given.sizes), np.int64), given.levels(m)
    given.run(pour, given.sizes, level, label, -1)
    for pairs in (False, True):
        if budget > 0 and (min(level.tolist()) < low or max(level.tolist()) > high):
            budget = given.run(rebalance, given.sizes, label, level, low, high, pairs, budget)
    return label, min(level.tolist()), max(level.tolist()), budget


def filled(given: Instance, high: int, target: int, budget: int) -> tuple[np.ndarray, int]:
    """Bins filled one by one up to ``high``, the last one shared out, loads then repaired towards ``target``.

    returns  (bin of each item, budget left); every bin holds k, since some bin always does
    """
    from shoal.kernels.labels.bins import fill, rebalance

    label = np.empty(len(given.sizes), np.int64)
    closed, begun = given.run(fill, given.sizes, given.k, high, label)
    level = given.loads(label, begun)[:closed]
    if begun > closed:
        poured(given, label, level)
    for pairs in (False, True):
        if budget > 0 and max(level.tolist()) > target:
            budget = given.run(rebalance, given.sizes, label, level, given.k, target, pairs, budget)
    return label, budget


def auto_labels(given: Instance, bound: Bound) -> np.ndarray:
    """The least cost, then the most bins, among Theorem 9, Spread, balanced and filled packings.

    Ends as soon as the cost is the bound and the bins are as many as there can be.
    """
    k, total = given.k, given.total
    most = most_bins(*distinct(given.sizes), k)
    best, best_key = five_halves_labels(given), (0, 0)

    def key(label: np.ndarray) -> tuple[int, int]:
        loads = given.loads(label, int(label.max()) + 1)
        return max(loads.tolist()), -int((loads > 0).sum())

    def offer(label: np.ndarray) -> None:
        nonlocal best, best_key
        best, best_key = min((best, best_key), (label, key(label)), key=lambda found: found[1])

    best_key = key(best)
    ideal = (bound.value, -most)
    n = len(given.sizes)
    budget = VISITS // 100 if given.wide else VISITS // (2 if n <= LONG else 4)

    def enough() -> bool:
        """The bound is met; in a long list, or as good as met."""
        return (best_key[0] - bound.value) * (4096 if n > LONG else 1) < (bound.value if n > LONG else 1)

    if best_key > ideal:
        offer(spread_labels(given))
    works = 0  # bins known to work
    if best_key > ideal and n > FEW * most:
        label, least, _, budget = balanced(given, most, k, max(bound.value, up(total, most)), budget)
        if least >= k:
            works = most
            offer(label)
    if best_key > ideal:
        offer(filled(given, k, bound.value, budget // 4)[0])
    for part in (0, 64, 16, 4) if n <= 6 * LONG else (0, 64):  # caps between the bound and the cost at hand
        if not enough():
            high = bound.value + ((best_key[0] - bound.value) // part if part else 0)
            offer(filled(given, high, high, budget // 4)[0])
    tries = 0 if LONG < n <= FEW * most else min(40, 1_000_000 // n)
    few, fails, m, step = up(total, max(best_key[0] - 1, 1)), most + (n <= FEW * most), most, 1
    if n > FEW * most:
        m -= 1
    while not enough() and few <= m < fails and m > works and tries > 0 and budget > 0:
        tries -= 1
        label, least, _, budget = balanced(given, m, k, max(bound.value, up(total, m)), budget)
        if least >= k:
            works = m
            offer(label)
            few = up(total, best_key[0] - 1)
        else:
            fails = m  # bins known to fail
        if works == 0:  # nothing worked yet: 1, 2, 4, ... bins fewer
            m, step = max(m - step, min(few, m - 1)), 2 * step
        else:
            m = (works + fails) // 2
    return best


def auto(given: Instance, effort: Effort = Effort()) -> Cover:
    """Never worse than Theorem 9 and Spread; proved optimal wherever the certificate says so.

    O(n log n) per number of bins tried, at most 40 of them; small instances that stay open get a counted share of
    the exact search, with more effort all that stay open as much as the exact method has, with "fast" none.
    """
    bound = lower_bound(given.sizes, given.k)
    label = auto_labels(given, bound)
    small = len(given.sizes) <= SHORT or np.count_nonzero(np.diff(given.sizes)) < KINDS
    counted, timed = small and effort.name != "fast", effort.name not in ("fast", "balanced")
    for limits in (AUTO if counted else None, hard(effort) if timed else None):
        if limits and given.cost(label) > bound.value:  # counted first: it may prove what the long search does not
            label, bound, _ = search(given, label, bound, limits)
    promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    return finish(given, label, "auto", promise, bound.value, bound.argument)


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """One answer for every k asked for.

    ks           int64[q]
    costs        int64[q]  largest load found for each k
    lower_bounds int64[q]
    packing      int64[q]  which of ``packings`` attains the cost
    packings     list of int64[n], bin of each item
    """

    ks: np.ndarray
    costs: np.ndarray
    lower_bounds: np.ndarray
    packing: np.ndarray
    packings: list[np.ndarray]

    @property
    def optimal(self) -> np.ndarray:
        """Where the cost is proved the least possible."""
        return self.costs == self.lower_bounds


@watched
@heard
def sweep(sizes: Iterable[Any], ks: Iterable[int] | None = None) -> Sweep:
    """The least largest group for many k at once; by default every k from the largest size to half the total.

    All k with the same number of bins m = total // k share one packing, as long as it has no bin below k.
    A k below the largest size, or above that packing's least bin, is solved by itself.
    """
    whole = instance(sizes, 1)
    if whole.wide:
        raise OverflowError("a sweep needs a total below 2**62")
    largest, n = int(whole.sizes[0]), len(whole.item) + len(whole.nothing)
    asked = np.arange(largest, whole.total // 2 + 1) if ks is None else np.fromiter(map(int, ks), np.int64)
    costs, bounds, which = (np.zeros(len(asked), np.int64) for _ in range(3))
    packings: list[np.ndarray] = []
    shared = (asked >= largest) & (asked <= whole.total)
    bins = np.where(shared, whole.total // np.maximum(asked, 1), 0)
    bounds[shared] = np.maximum(largest, -(-whole.total // bins[shared]))
    for m in np.unique(bins[shared]).tolist():
        label, least, most, _ = balanced(whole, m, whole.total // m, up(whole.total, m))
        served = (bins == m) & (asked <= least)
        costs[served], which[served] = most, len(packings)
        if served.any():
            labels = np.empty(n, np.int64)
            labels[whole.item], labels[whole.nothing] = label, np.arange(len(whole.nothing)) % m
            packings.append(labels)
    for at in np.flatnonzero(costs == 0).tolist():
        one = auto(instance(sizes, int(asked[at])))
        costs[at], bounds[at], which[at] = one.cost, one.certificate.lower_bound, len(packings)
        packings.append(one.labels)
    return Sweep(asked, costs, bounds, which, packings)
