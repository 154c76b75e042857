"""The methods for real lists of labels: balanced bins, then a search for a smaller largest bin until none exists.

Balanced bins are filled by the longest-processing-time rule and then repaired. For a fixed number m of bins, all loads
must be within k..U, so better balance is better. Placing items in decreasing order into the least loaded bin gives
loads that differ by about one small item, and exchanges of one or two items repair the rest. If all loads are total / m
rounded down or up, no packing into at most m bins costs less. The packing is then optimal for every k from total / (m +
1) to total / m, because at most m bins exist for these k. ``sweep`` solves all k of a list in this way, one packing per
m.

The search decides by integer programs, by random walks over the ways to fill a bin, or by depth-first search. It
decides "is there a packing with every load in k..U" for one U after another between the instance bound and the current
packing. A yes gives a packing, a no raises the bound. If the time runs out, the certificate has what was proved so far.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.model.arguments import Effort, suggesting
from shoal.model.certificate import Guarantee
from shoal.problems.labels.approximations import FACTOR_5_2, five_halves_labels, poured, spread_labels
from shoal.problems.labels.instance import (
    BinCoveringInstance,
    Bound,
    Cover,
    distinct,
    finish,
    instance,
    lower_bound,
    most_bins,
    up,
)
from shoal.threads import interruptible
from shoal.watching import watched

STEPS = 200_000  # of one random walk; a tenth if work is counted instead of timed
SHORT = 2000  # up to this many items, packings are searched by depth-first search
SECONDS = {"fast": 2.0, "balanced": 60.0, "thorough": 600.0}  # time limits of the exact search
REFUTED = "every packing with a smaller largest bin was ruled out"


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a search.

    fillings  int          ways to fill a bin that an integer program may have
    steps     int          choices of one depth-first search
    nodes     int | None   nodes of one integer program
    seconds   float | None in total
    undecided int | None   undecided questions after which the search ends
    """

    fillings: int
    steps: int
    nodes: int | None
    seconds: float | None
    undecided: int | None = None


def hard(effort: Effort) -> Budget:
    """The limits of the exact search."""
    return Budget(fillings=300_000, steps=20_000_000, nodes=None, seconds=effort.among(SECONDS))


@dataclass(frozen=True, slots=True, eq=False)
class Fillings:
    """Multisets of distinct sizes: filling j is start[j] .. start[j + 1] of kind and times."""

    start: np.ndarray
    kind: np.ndarray
    times: np.ndarray
    loads: np.ndarray


def list_fillings(
    given: BinCoveringInstance, values: np.ndarray, counts: np.ndarray, high: int, most: int
) -> Fillings | None:
    """All ways to fill a bin to k..high, or None if there are more than ``most``."""
    from shoal.kernels.labels import fillings

    start = np.zeros(most + 1, np.int64)
    kind, times = np.empty(16 * most, np.int64), np.empty(16 * most, np.int64)
    steps = (2_000 if given.wide else 50_000) + 500 * most // (50 if given.wide else 1)
    found = given.run(fillings, values, counts.astype(values.dtype), given.k, high, start, kind, times, steps)
    if found < 0:
        return None
    start = start[: found + 1]
    kind, times = kind[: start[-1]], times[: start[-1]]
    loads = np.zeros(found, values.dtype)
    np.add.at(loads, np.repeat(np.arange(found), np.diff(start)), values[kind] * times)
    return Fillings(start, kind, times, loads)


def choose_fillings(
    fillings: Fillings, usable: np.ndarray, counts: np.ndarray, limits: Budget, until: float
) -> list[int] | bool | None:
    """Fillings (with repetition) that use every item exactly once; False if there are none, None if undecided.

    A random walk and an integer program (one variable per usable filling, one equation per distinct size) alternate
    with increasing time limits, until ``until``; once each if work is counted.
    """
    from shoal.kernels.labels import walk

    columns = np.flatnonzero(usable)
    widths = np.diff(fillings.start)[columns]
    spots = np.repeat(fillings.start[columns] - np.cumsum(widths) + widths, widths) + np.arange(int(widths.sum()))
    kind, times = fillings.kind[spots], fillings.times[spots]
    if np.count_nonzero(np.bincount(kind, minlength=len(counts))) < len(counts):
        return False
    start = np.concatenate([[0], np.cumsum(widths)])
    rng = np.random.default_rng(0)
    turn = 0.2
    while True:
        ends = clock() + turn
        while True:
            often = np.zeros(len(columns), np.int64)
            if walk(start, kind, times, counts, rng, STEPS // (10 if limits.seconds is None else 1), often) == 0:
                return np.repeat(columns, often).tolist()
            if limits.seconds is None or clock() >= min(ends, until):
                break
        left = None if limits.seconds is None else max(0.0, min(turn, until - clock()))
        found = _integer_program(start, kind, times, counts, limits.nodes, left)
        if found is False:
            return False
        if found is not None:
            return np.repeat(columns, found).tolist()
        if limits.seconds is None or clock() >= until:
            return None
        turn *= 3


def _integer_program(
    start: np.ndarray, kind: np.ndarray, times: np.ndarray, counts: np.ndarray, nodes: int | None, seconds: float | None
) -> np.ndarray | bool | None:
    """How often each filling is used; False if infeasible, None if undecided."""
    from scipy.sparse import csc_array, csr_array

    from shoal.problems.programs import LinearConstraints, solve

    n = len(start) - 1
    matrix = csr_array(csc_array((times.astype(float), kind, start), shape=(len(counts), n)))
    most = np.minimum.reduceat(counts[kind] // times, start[:-1])
    nothing, rows = np.zeros(n), LinearConstraints(matrix, counts, counts)
    found = solve(nothing, rows, nothing, most, whole=True, seconds=seconds, nodes=nodes)
    if not found.finished:
        return None
    return False if found.x is None else np.rint(found.x).astype(np.int64)


def search(
    given: BinCoveringInstance, label: np.ndarray, bound: Bound, limits: Budget
) -> tuple[np.ndarray, Bound, str | None]:
    """A packing no worse than ``label``, a bound no lower than ``bound``, and the limit that ended the search or None.

    (1) proved <= optimum <= cost. (2) proved <= low: an undecided U raises only low, a refuted one both, because a
    packing within k..U is also within k..U + 1.
    """
    end = clock() + (limits.seconds or 0.0)
    values, index, counts = np.unique(-given.sizes, return_inverse=True, return_counts=True)
    values = -values
    members = np.argsort(index, kind="stable")  # items by distinct size
    cost = given.cost(label)
    proved = low = bound.value
    fillings = list_fillings(given, values, counts, cost - 1, limits.fillings) if low < cost else None
    sums = np.unique(fillings.loads) if fillings is not None else None
    stopped = None
    undecided = 0
    first = True
    # Decide whether a packing within k..high exists: if one is found, the cost decreases; otherwise, the bound
    # increases.
    while low < cost:
        high = low if first else (low + cost - 1) // 2  # the bound itself first, then bisection
        if sums is not None:  # only a load that some filling has can be the largest
            near = sums[(sums >= low) & (sums < cost)]
            if not len(near):
                break
            high = int(near[0 if first else (len(near) - 1) // 2])
        first = False
        left = end - clock()
        if limits.seconds is not None and left <= 0:
            stopped = f"time limit of {limits.seconds:g} seconds"
            break
        verdict = _decide(given, values, counts, high, fillings, limits, end - left / 2)
        if isinstance(verdict, list):
            label = _assign(verdict, members, counts, len(values))
            cost = given.cost(label)
            continue
        low = high + 1
        if verdict is None:
            stopped = "limit on time or counted work"
            undecided += 1
            if undecided == limits.undecided:
                break
        else:
            proved = low
    if sums is not None:
        proved = min([int(s) for s in sums if s >= proved] + [cost])
    if proved > bound.value:
        bound = Bound(proved, REFUTED)
    return label, bound, stopped if bound.value < cost else None


def _decide(
    given: BinCoveringInstance,
    values: np.ndarray,
    counts: np.ndarray,
    high: int,
    fillings: Fillings | None,
    limits: Budget,
    until: float,
) -> list[list[int]] | bool | None:
    """Bins as lists of kinds if all loads can be in k..high, False if they can't, None if undecided."""
    from shoal.kernels.labels import pack

    if fillings is None:
        fillings = list_fillings(given, values, counts, high, limits.fillings)
    if fillings is not None:
        chosen = choose_fillings(fillings, fillings.loads <= high, counts, limits, until)
        if not isinstance(chosen, list):
            return chosen
        spans = [slice(fillings.start[j], fillings.start[j + 1]) for j in chosen]
        return [np.repeat(fillings.kind[s], fillings.times[s]).tolist() for s in spans]
    if len(given.sizes) > SHORT:
        return None
    steps = limits.steps // 100 if given.wide else limits.steps
    path = np.empty(2 * len(given.sizes) + 1, np.int64)
    while True:
        length = given.run(pack, values, counts.astype(values.dtype), given.k, high, path, steps)
        if length >= 0 or limits.seconds is None or clock() >= until:
            break
        steps *= 3
    if length <= 0:
        return False if length == 0 else None
    bins: list[list[int]] = [[]]
    at = len(values)
    for choice in path[: length - 1].tolist():
        if choice == at:
            bins.append([])
        else:
            bins[-1].append(choice)
    return bins


def _assign(bins: list[list[int]], members: np.ndarray, counts: np.ndarray, kinds: int) -> np.ndarray:
    """Bins of kinds as the bin of each item: equal items are assigned in the packed order."""
    following = np.concatenate([[0], np.cumsum(counts)[: kinds - 1]])
    label = np.empty(len(members), np.int64)
    for b, contents in enumerate(bins):
        for t in contents:
            label[members[following[t]]] = b
            following[t] += 1
    return label


VISITS = 4_000_000  # visits of items and bins in one repair
LONG = 50_000  # with more labels, auto accepts a gap of 1 / 4096 of the cost
FEW = 40  # up to this many items per bin, bins are filled one by one before they are balanced
KINDS = 400  # up to this many distinct sizes, a long list is searched by ways to fill a bin
AUTO = Budget(
    fillings=2500, steps=400_000, nodes=20, seconds=None, undecided=2
)  # work is counted instead of timed, so the answer is deterministic


def balanced(
    given: BinCoveringInstance, m: int, low: int, high: int, budget: int = VISITS
) -> tuple[np.ndarray, int, int, int]:
    """Decreasing sizes in m bins with loads in low..high if this succeeds.

    returns  (bin of each item, least load, largest load, remaining budget)
    """
    from shoal.kernels.labels import pour, rebalance

    label, level = np.empty(len(given.sizes), np.int64), given.levels(m)
    given.run(pour, given.sizes, level, label, -1)
    for pairs in (False, True):
        if budget > 0 and (min(level.tolist()) < low or max(level.tolist()) > high):
            budget = given.run(rebalance, given.sizes, label, level, low, high, pairs, budget)
    return label, min(level.tolist()), max(level.tolist()), budget


def filled(given: BinCoveringInstance, high: int, target: int, budget: int) -> tuple[np.ndarray, int]:
    """Bins filled one by one up to ``high``, the last one distributed, and loads repaired towards ``target``.

    returns  (bin of each item, remaining budget); every bin has at least k, because some such bin always exists
    """
    from shoal.kernels.labels import fill, rebalance

    label = np.empty(len(given.sizes), np.int64)
    closed, begun = given.run(fill, given.sizes, given.k, high, label)
    level = given.loads(label, begun)[:closed]
    if begun > closed:
        poured(given, label, level)
    for pairs in (False, True):
        if budget > 0 and max(level.tolist()) > target:
            budget = given.run(rebalance, given.sizes, label, level, given.k, target, pairs, budget)
    return label, budget


def auto_labels(given: BinCoveringInstance, bound: Bound) -> np.ndarray:
    """The least cost, then the most bins, of the packings of Theorem 9, Spread, balanced, and filled bins.

    Ends when the cost equals the bound and the number of bins is the maximum.
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
        """Whether the bound is reached; for a long list, almost reached."""
        return (best_key[0] - bound.value) * (4096 if n > LONG else 1) < (bound.value if n > LONG else 1)

    if best_key > ideal:
        offer(spread_labels(given))
    works = 0  # largest number of bins with a known packing
    if best_key > ideal and n > FEW * most:
        label, least, _, budget = balanced(given, most, k, max(bound.value, up(total, most)), budget)
        if least >= k:
            works = most
            offer(label)
    if best_key > ideal:
        offer(filled(given, k, bound.value, budget // 4)[0])
    for part in (0, 64, 16, 4) if n <= 6 * LONG else (0, 64):  # caps between the bound and the current cost
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
            fails = m  # smallest number of bins known to fail
        if works == 0:  # no packing yet: reduce the bins by 1, 2, 4, ...
            m, step = max(m - step, min(few, m - 1)), 2 * step
        else:
            m = (works + fails) // 2
    return best


def auto(given: BinCoveringInstance, effort: Effort = Effort()) -> Cover:
    """Never worse than Theorem 9 and Spread; proved optimal if the certificate states it.

    O(n log n) per number of bins tried, at most 40 of them. With "fast", unsolved instances aren't searched further. By
    default, small ones get a limited exact search. With more effort, all get the exact method.
    """
    bound = lower_bound(given.sizes, given.k)
    label = auto_labels(given, bound)
    small = len(given.sizes) <= SHORT or np.count_nonzero(np.diff(given.sizes)) < KINDS
    counted, timed = small and effort.name != "fast", effort.name not in ("fast", "balanced")
    for limits in (AUTO if counted else None, hard(effort) if timed else None):
        # counted limits first: this may prove what the long search doesn't
        if limits and given.cost(label) > bound.value:
            label, bound, _ = search(given, label, bound, limits)
    promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    return finish(given, label, "auto", promise, bound.value, bound.argument)


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """One answer for every requested k.

    ks           int64[q]
    costs        int64[q]: largest load found for each k
    lower_bounds int64[q]
    packing      int64[q]: index in ``packings`` of the packing with this cost
    packings     list of int64[n], bin of each item
    """

    ks: np.ndarray
    costs: np.ndarray
    lower_bounds: np.ndarray
    packing: np.ndarray
    packings: list[np.ndarray]

    @property
    def optimal(self) -> np.ndarray:
        """The k for which the cost is proved optimal."""
        return self.costs == self.lower_bounds


@watched
@suggesting
@interruptible
def sweep(sizes: Iterable[Any], ks: Iterable[int] | None = None) -> Sweep:
    """The least largest group for many k at once; by default every k from the largest size to half the total.

    All k with the same number of bins m = total // k share one packing, if it has no bin below k. A k below the largest
    size, or above that packing's least bin, is solved separately.
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


def exact(given: BinCoveringInstance, effort: Effort = Effort()) -> Cover:
    """The optimum, or if the time limit of the effort is exceeded, the best packing found with the bound reached.

    Exponential time. ``certificate.details["stopped"]`` names the limit that ended the search, if one did.
    """
    bound = lower_bound(given.sizes, given.k)
    label = auto_labels(given, bound)
    label, bound, stopped = search(given, label, bound, hard(effort))
    if stopped:
        promise = Guarantee(factor=2.5, additive=0, theorem=FACTOR_5_2)
    else:
        promise = Guarantee(factor=1, additive=0, theorem="exhaustive search, finished")
    details = {"stopped": stopped} if stopped else {}
    return finish(given, label, "exact", promise, bound.value, bound.argument, details)
