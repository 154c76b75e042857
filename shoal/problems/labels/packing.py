"""Proved optima: integer programs and random walks over the ways to fill a bin, or depth-first search.

The question "is there a packing with every load in k..U" is settled for one U after another between the instance
bound and the packing at hand.  A yes gives a packing, a no raises the bound, so what is certified when the time is
up is what was proved by then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.clock import clock
from shoal.model.effort import Effort
from shoal.problems.labels.bounds import Bound
from shoal.problems.labels.instance import Instance

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


def list_fillings(given: Instance, values: np.ndarray, counts: np.ndarray, high: int, most: int) -> Fillings | None:
    """Every way to fill a bin to k..high, or None when there are more than ``most``."""
    from shoal.kernels.labels.packings import fillings

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
    ways: Fillings, usable: np.ndarray, counts: np.ndarray, limits: Budget, until: float
) -> list[int] | bool | None:
    """Fillings (with repetition) that use every item exactly once; False when none do, None when undecided.

    A random walk and an integer program (one variable per usable filling, one equation per distinct size) take
    turns, each turn longer than the last, until ``until``; once each where the limits are counted.
    """
    from shoal.kernels.labels.packings import walk

    columns = np.flatnonzero(usable)
    widths = np.diff(ways.start)[columns]
    spots = np.repeat(ways.start[columns] - np.cumsum(widths) + widths, widths) + np.arange(int(widths.sum()))
    kind, times = ways.kind[spots], ways.times[spots]
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

    from shoal.problems.programs import Constraints, solve

    n = len(start) - 1
    matrix = csr_array(csc_array((times.astype(float), kind, start), shape=(len(counts), n)))
    most = np.minimum.reduceat(counts[kind] // times, start[:-1])
    nothing, rows = np.zeros(n), Constraints(matrix, counts, counts)
    found = solve(nothing, rows, nothing, most, whole=True, seconds=seconds, nodes=nodes)
    if not found.finished:
        return None
    return False if found.x is None else np.rint(found.x).astype(np.int64)


def search(given: Instance, label: np.ndarray, bound: Bound, limits: Budget) -> tuple[np.ndarray, Bound, str | None]:
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
    ways = list_fillings(given, values, counts, cost - 1, limits.fillings) if low < cost else None
    sums = np.unique(ways.loads) if ways is not None else None
    stopped = None
    undecided = 0
    first = True
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
        verdict = _decide(given, values, counts, high, ways, limits, end - left / 2)
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
    given: Instance,
    values: np.ndarray,
    counts: np.ndarray,
    high: int,
    ways: Fillings | None,
    limits: Budget,
    until: float,
) -> list[list[int]] | bool | None:
    """Bins as lists of kinds when all loads can lie in k..high, False when they cannot, None when undecided."""
    from shoal.kernels.labels.packings import pack

    if ways is None:
        ways = list_fillings(given, values, counts, high, limits.fillings)
    if ways is not None:
        chosen = choose_fillings(ways, ways.loads <= high, counts, limits, until)
        if not isinstance(chosen, list):
            return chosen
        spans = [slice(ways.start[j], ways.start[j + 1]) for j in chosen]
        return [np.repeat(ways.kind[s], ways.times[s]).tolist() for s in spans]
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
