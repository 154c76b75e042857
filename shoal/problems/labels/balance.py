"""The methods for real lists of labels: balanced bins, then a search for a smaller largest bin until none is left.

Balanced bins are filled by the longest-processing-time rule, and then repaired. For a fixed number m of bins the
problem asks for all loads within k..U, so the better balanced the better. Placing items in decreasing order into the
least loaded bin leaves loads that differ by about one small item, and exchanging one or two items at a time mends the
rest. Where all loads come to total / m rounded down or up, the packing costs what every packing into at most m bins
must cost; it is then optimal for every k from total / (m + 1) to total / m, because m is the most bins that fit.
``sweep`` solves all k of a list that way, one packing per m.

The search decides by integer programs, by random walks over the ways to fill a bin, or depth first.  The question "is
there a packing with every load in k..U" is settled for one U after another between the instance bound and the packing
at hand.  A yes gives a packing, a no raises the bound, so what is certified when the time is up is what was proved by
then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.model.arguments import Effort
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
from shoal.problems.threads import heard
from shoal.watching import watched

STEPS = 200_000  # of one random walk, a tenth where the limits are counted
SHORT = 2000  # items up to which packings are searched through one by one
SECONDS = {"fast": 2.0, "balanced": 60.0, "thorough": 600.0}  # of the exact search
REFUTED = "every packing with a smaller largest bin was ruled out"


@dataclass(frozen=True, slots=True)
class Budget:
    """How far a search may go.

    fillings  int          ways to fill a bin that an integer program may have
    steps     int          choices of one depth-first search
    nodes     int | None   nodes of one integer program
    seconds   float | None all together
    undecided int | None   questions that may stay without an answer before the search ends
    """

    fillings: int
    steps: int
    nodes: int | None
    seconds: float | None
    undecided: int | None = None


def hard(effort: Effort) -> Budget:
    """How far the exact search goes."""
    return Budget(fillings=300_000, steps=20_000_000, nodes=None, seconds=effort.among(SECONDS))


@dataclass(frozen=True, slots=True, eq=False)
class Fillings:
    """Multisets of distinct sizes, row by row: filling j is start[j] .. start[j + 1] of kind and times."""

    start: np.ndarray
    kind: np.ndarray
    times: np.ndarray
    loads: np.ndarray


def list_fillings(
    given: BinCoveringInstance, values: np.ndarray, counts: np.ndarray, high: int, most: int
) -> Fillings | None:
    """Every way to fill a bin to k..high, or None when there are more than ``most``."""
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
    """Fillings (with repetition) that use every item exactly once; False when none do, None when undecided.

    A random walk and an integer program (one variable per usable filling, one equation per distinct size) take
    turns, each turn longer than the last, until ``until``; once each where the limits are counted.
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
    """How often each filling is used, False when nothing fits, None when undecided."""
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
    """A packing no worse than ``label``, a bound no lower than ``bound``, and what stopped the search (None: nothing).

    (1) proved <= optimum <= cost.  (2) proved <= low: an undecided U raises only low, a refuted one both, for a
    packing within k..U is one within k..U + 1 too.
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
    # Decide whether a packing within k..high exists: one found lowers the cost, a refusal raises the bound.
    while low < cost:
        high = low if first else (low + cost - 1) // 2  # the bound itself first, then halving
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
    """Bins as lists of kinds when all loads can lie in k..high, False when they cannot, None when undecided."""
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
    """Bins of kinds as the bin of each item: copies are taken in the packed order."""
    following = np.concatenate([[0], np.cumsum(counts)[: kinds - 1]])
    label = np.empty(len(members), np.int64)
    for b, contents in enumerate(bins):
        for t in contents:
            label[members[following[t]]] = b
            following[t] += 1
    return label


VISITS = 4_000_000  # visits of items and bins that a repair may take
LONG = 50_000  # labels from which auto leaves a gap of 1 / 4096 of the cost alone
FEW = 40  # items per bin up to which bins are filled one by one before they are balanced
KINDS = 400  # distinct sizes up to which a long list is searched by ways to fill a bin
AUTO = Budget(
    fillings=2500, steps=400_000, nodes=20, seconds=None, undecided=2
)  # counted, not timed: the same answer every time


def balanced(
    given: BinCoveringInstance, m: int, low: int, high: int, budget: int = VISITS
) -> tuple[np.ndarray, int, int, int]:
    """Decreasing sizes into m bins with loads in low..high if that succeeds.

    returns  (bin of each item, least load, largest load, budget left)
    """
    from shoal.kernels.labels import pour, rebalance

    label, level = np.empty(len(given.sizes), np.int64), given.levels(m)
    given.run(pour, given.sizes, level, label, -1)
    for pairs in (False, True):
        if budget > 0 and (min(level.tolist()) < low or max(level.tolist()) > high):
            budget = given.run(rebalance, given.sizes, label, level, low, high, pairs, budget)
    return label, min(level.tolist()), max(level.tolist()), budget


def filled(given: BinCoveringInstance, high: int, target: int, budget: int) -> tuple[np.ndarray, int]:
    """Bins filled one by one up to ``high``, the last one shared out, loads then repaired towards ``target``.

    returns  (bin of each item, budget left); every bin holds k, since some bin always does
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


def auto(given: BinCoveringInstance, effort: Effort = Effort()) -> Cover:
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
        """The k at which the cost is proved to be the least possible."""
        return self.costs == self.lower_bounds


@watched
@heard
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
    """The optimum, unless the seconds of the effort pass first; then the best packing found, with the bound reached.

    Exponential time.  ``certificate.details["stopped"]`` names the limit that ended the search, if one did.
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
