"""Exact methods for small tables: k-anonymity and l-diversity at the least loss, proved (docs/exact.md).

Blocki, Williams, "Resolving the complexity of some data privacy problems", ICALP 2010, Theorems 1.3 and 1.4.

``optimal`` chooses one of three programs:
*pairs*, for k = 2 (``two_anonymity``);
*vectors*, a dynamic program over the number of rows left of each kind; if all rows differ, it is the subset dynamic
program with 2^n states for n rows, where the divide and conquer of Theorem 1.3 takes 4^n steps;
*patterns*, an integer program over how many rows of each kind are published as each closed pattern, whose size does not
depend on the number of rows. For k-anonymity, Theorem 1.4's kernel (``kernelize``) precedes the last two.

``halving`` is the paper's exact k-anonymity in polynomial space. By Theorem 1.3, the least loss of n rows is the least,
over parts T of about half of them, of the loss of T plus that of the rest. It examines O(4^n) parts at worst, and
stores n sets of rows, where the dynamic program stores 2^n losses.

Departures. T is a proper part, because otherwise the recursion need not end (for at most 4k rows, T may be all of
them), and has at most n/2 + k - 1/2 rows instead of n/2 + 2k (``kernels.tables.subsets`` has the reason). Of equal
rows, T contains the first ones. Parts are skipped if even the losses with each row's nearest neighbors sum to more than
the best loss known. Every recoding is allowed, not only stars: the proof needs only that large groups can be split
without loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.certificate import Guarantee
from shoal.model.histogram import Histogram, Partition, distribute
from shoal.model.privacy import Requirement
from shoal.model.task import Grouping, Task, refuse_infeasible
from shoal.problems.tables.exact.pattern_model import RowClasses, row_classes_of
from shoal.problems.tables.exact.pattern_program import ProgramLimits, pattern_program
from shoal.problems.tables.exact.two_anonymity import seconds_left, two_anonymity
from shoal.problems.tables.groups import rules_of
from shoal.problems.tables.losses import Costs
from shoal.problems.tables.methods.forest import forest
from shoal.problems.tables.methods.kernelize import kernelize
from shoal.problems.tables.methods.pattern_cover import NEAREST, k_only, kth, neighbors, pattern_cover, whole_cost
from shoal.problems.tables.separate import none_found
from shoal.problems.tables.three_phase import three_phase
from shoal.threads import SearchThreads

if TYPE_CHECKING:
    from shoal.kernels.tables.subsets import GroupsFound


STATES = 2**26  # states of the vector program, 8 bytes each
GROUPS = 2_000_000  # its groups, 24 bytes each
VECTORS = 2 * 10**7  # vectors examined when groups are listed
PACE = 10**6  # the same in a second, at least
SPEED = 10**9  # groups compared with a state in a second
SLICE = 10**8  # the same between two readings of the clock
QUICK = 2.0  # seconds that the vector program may take where the program over patterns can follow


def optimal(task: Task) -> Grouping:
    """The partition of least loss, or the best one found with its bound if time or memory ends the search.

    ``details``: "program" is the one chosen; "stopped" is None, "seconds", or "memory". Exponential in the worst case:
    about 25 different rows, or any number of rows of about 100 different kinds for stars on few columns.
    """
    histogram, need = task.histogram, task.requirement
    refuse_infeasible(histogram, need)
    if need.k == 2 and not need.sensitive_columns:
        found = two_anonymity(task)
        named = replace(found.certificate, details={**found.certificate.details, "program": "pairs"})
        return replace(found, method="optimal", certificate=named)
    details: dict[str, Any] = {}
    kernel = None
    small = histogram
    if task.recoding.hierarchies is not None and not need.sensitive_columns and need.k > 1:
        kernel = kernelize(histogram, need.k, task.recoding)
        small = kernel.histogram
        details["kernel_rows"] = small.rows
    costs = Costs.of(small, task.recoding)
    row_classes = row_classes_of(small, need)
    inner = replace(task, histogram=small)
    partition, proved, argument = _solved(inner, costs, row_classes, details)
    whole = whole_cost(costs, inner, partition)
    lower = whole if proved is None else proved
    if kernel is not None:
        # rows removed in groups of equal rows have the same loss in some optimum
        of_type, first = histogram.types
        left = np.bincount(of_type, weights=kernel.emitted, minlength=first.size).astype(np.int64)
        full = Costs.of(histogram, task.recoding)
        aside = sum(full.loss([t]) * int(left[t]) for t in np.flatnonzero(left).tolist())
        partition = kernel.replay(partition)
        whole, lower = whole + aside, lower + aside
    if lower == whole:
        details["stopped"] = None
    theorem = "Blocki, Williams 2010, Theorems 1.3 and 1.4: exact, exponential time"
    promise = Guarantee(factor=1, additive=0, theorem=theorem)
    return costs.grouping(task, partition, "optimal", (lower, whole), promise, argument, details)


def _solved(
    task: Task, costs: Costs, row_classes: RowClasses, details: dict[str, Any]
) -> tuple[Partition, int | None, str]:
    """A partition, a lower bound of the least cost if the partition may not be optimal, and the argument.

    Writes the program and the limit that ended it into ``details``.
    """
    small, need = task.histogram, task.requirement
    details["program"], details["stopped"] = "vectors", None
    argument = "dynamic program over what is left of every kind of row"
    if not small.rows:
        return Partition.of(np.arange(0), np.arange(0), np.arange(0)), None, argument
    levels = task.recoding.hierarchies is not None
    start = _first(task, levels)
    upper = whole_cost(costs, task, start if need.closed else _as_one(start))
    other = levels and not need.rules  # whether the program over patterns can follow
    seconds = min(seconds_left(task), QUICK) if other else seconds_left(task)
    partition = by_vectors(small, need, costs, row_classes, seconds, upper) if upper else start
    if partition is not None:
        if not partition.groups:
            raise none_found(task)
        return partition, None, argument
    many = f"{small.rows} rows of {row_classes.count.size} row classes are too many for an exact answer"
    if need.rules:
        raise PolicyError(f"{many} under {need.rules[0].model.name}; choose another method")
    if not levels:
        raise PolicyError(f"{many} with sets or ranges; publish stars or a hierarchy, or choose another method")
    partition, proved, stopped = pattern_program(task, costs, row_classes, start, ProgramLimits(seconds_left(task)))
    details["program"], details["stopped"] = "patterns", stopped
    return partition, proved, "integer program over closed patterns; each row's cheapest published row"


def _as_one(partition: Partition) -> Partition:
    """All rows in one group."""
    return Partition.of(partition.cell, np.zeros_like(partition.group), partition.count)


def _first(task: Task, levels: bool) -> Partition:
    """The partition from which a search starts."""
    if task.requirement.sensitive_columns:
        return three_phase(task).partition
    return (pattern_cover if levels else forest)(task).partition


@dataclass(frozen=True, eq=False)
class _Layout:
    """The position of each kind in the packed word and in the number of a state (``kernels.tables.subsets``)."""

    shift: np.ndarray
    radix: np.ndarray
    guard: int
    states: int


def _layout(count: np.ndarray) -> _Layout | None:
    """The layout of the states; None if there are too many states."""
    states = math.prod(int(c) + 1 for c in count)
    width = [int(c).bit_length() + 1 for c in count]
    if states > STATES or sum(width) > 62:
        return None
    shift = np.array([sum(width[:i]) for i in range(len(width))], np.int64)
    radix = np.array([math.prod(int(c) + 1 for c in count[i + 1 :]) for i in range(count.size)], np.int64)
    guard = sum(1 << (int(s) + w - 1) for s, w in zip(shift, width, strict=True))
    return _Layout(shift, radix, guard, states)


def largest_group(need: Requirement, rows: int) -> tuple[int, bool]:
    """(largest size of a group in some optimum, whether each sensitive value occurs at most once in its groups).

    k-anonymity: 2k - 1, because larger groups split. One column with frequency l >= k and at most l distinct values: in
    a group of n rows, no value occurs more than n / l times. So its rows, sorted by value and dealt to floor(n / l)
    groups, form groups of l to 2l - 1 rows with distinct values. Otherwise, the size is not limited.
    """
    columns = need.sensitive_columns
    if need.rules:
        return rows, False
    if not columns:
        return min(max(2 * need.k - 1, 1), rows), False
    if len(columns) == 1:
        l = need.frequency[columns[0]]
        if l >= need.k and l >= need.distinct[columns[0]]:
            return min(2 * l - 1, rows), True
    return rows, False


def by_vectors(
    histogram: Histogram, need: Requirement, costs: Costs, row_classes: RowClasses, seconds: float, upper: int
) -> Partition | None:
    """An optimum by the dynamic program; None if states, groups, or time are too many, empty if no group is eligible.

    upper  cost of a known partition: states that lead to no cost up to it are not followed
    """
    from shoal.kernels.tables.subsets import CodePlaces, GroupLimits, GroupsFound, States, eligible_groups, least_cost

    deadline = clock() + seconds
    layout = _layout(row_classes.count)
    if layout is None:
        return None
    m = row_classes.count.size
    most, once = largest_group(need, int(row_classes.count.sum()))
    looked = min(
        math.comb(int(row_classes.count.sum()), min(most, int(row_classes.count.sum()) // 2)) * 2, layout.states
    )
    if looked > min(VECTORS, seconds * PACE):
        return None
    columns = need.sensitive_columns
    frequency = np.array([need.frequency[j] for j in columns], np.int64)
    distinct = np.array([need.distinct[j] for j in columns], np.int64)
    keep = min(GROUPS, layout.states)
    groups = GroupsFound(*(np.empty(size, np.int64) for size in (keep, keep, keep, m + 1, m)))
    asked = GroupLimits(row_classes.value, frequency, distinct, need.smallest, need.k, most, once)
    types = costs.in_kernels()._replace(
        code=np.ascontiguousarray(costs.code[row_classes.type]), count=row_classes.count
    )
    rules, places = rules_of(need, histogram.sensitive_sizes), CodePlaces(layout.shift, layout.radix)
    found = eligible_groups(types, asked, rules, places, groups)
    if found < 0:
        return None
    word, number, cost, first, floor = groups
    spared = np.zeros(found, np.int64)
    for x in range(m):
        spared += ((word[:found] >> layout.shift[x]) & ((1 << int(row_classes.count[x]).bit_length()) - 1)) * floor[x]
    work, reached, below = 0.0, 1.0, layout.states
    for f in range(m):
        held = float(first[f + 1] - first[f])
        here = below
        below //= int(row_classes.count[f]) + 1
        work += min(here - below, reached) * held
        reached = min(reached * (1 + held), 1e18)
    if work > seconds * SPEED:
        return None
    value = np.empty(layout.states, np.int64)
    of = np.repeat(np.arange(m), np.diff(first))
    order = np.lexsort((cost[:found] - spared, of))
    groups = GroupsFound(word[order], number[order], cost[order], first, floor)
    left, book = np.empty(m, np.int64), np.full(3, -1, np.int64)
    states = States(row_classes.count, layout.shift, layout.guard)
    while not least_cost(states, groups, spared[order], upper, value, left, book, SLICE):
        if clock() > deadline:
            return None
    if value[0] < 0:
        return Partition.of(np.arange(0), np.arange(0), np.arange(0))
    return distribute(histogram.count, row_classes.of, *_walk(row_classes.count, layout, groups, value))


def _walk(
    count: np.ndarray, layout: _Layout, found: GroupsFound, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The groups of an optimum, traced back from the empty state to the full one: (kind, group, rows)."""
    word, number, cost, first, _ = found
    out: list[tuple[int, int, int]] = []
    state, packed, groups = 0, 0, 0
    full = int((count << layout.shift).sum())
    of = np.repeat(np.arange(count.size), np.diff(first))
    mask = (1 << np.array([int(c).bit_length() for c in count])) - 1
    while state < layout.states - 1:
        slack = ((full - packed) | layout.guard) - word
        fits = (slack & layout.guard) == layout.guard
        before = np.where(fits, state + number, 0)
        # a group is taken when its first kind is the first one left, so the state before has no earlier kind
        good = (
            fits
            & (value[before] >= 0)
            & (value[before] + cost == value[state])
            & (before < layout.radix[of] * (count[of] + 1))
        )
        e = int(np.flatnonzero(good)[0])
        held = (word[e] >> layout.shift) & mask
        out += [(x, groups, int(held[x])) for x in np.flatnonzero(held).tolist()]
        state, packed, groups = state + int(number[e]), packed + int(word[e]), groups + 1
    kind, group, rows = np.array(out, np.int64).reshape(-1, 3).T
    return kind, group, rows


_Split = tuple[int, list[int]]  # a loss, and groups as sets of rows
MOST = 62  # rows: one bit each


def halving(task: Task) -> Grouping:
    """The partition of least loss under k-anonymity; if the time is over, that of ``forest`` with a bound.

    ``details``: "parts" is the number of parts examined, "stopped" is None or "seconds". PolicyError for sensitive
    columns and for more than 62 rows. O(4^n) time at worst, O(n^2) space.
    """
    from shoal.kernels.tables.subsets import Halves, Halving, halve

    histogram, k = task.histogram, task.requirement.k
    k_only(task.requirement, "halving")
    refuse_infeasible(histogram, task.requirement)
    if histogram.rows > MOST:
        raise PolicyError(f"halving takes at most {MOST} rows, and there are {histogram.rows}; use 'optimal'")
    costs = Costs.of(histogram, task.recoding)
    partition = forest(task).partition
    whole = whole_cost(costs, task, partition)
    of = np.repeat(np.arange(costs.types), costs.count)  # the type of every row
    least = kth(costs, k, *neighbors(costs, k))
    lower = int(least @ costs.count)
    code = np.ascontiguousarray(costs.code[of])
    twin = np.where(np.diff(of, prepend=-1) == 0, np.arange(of.size) - 1, -1)
    table = Halves(k, costs.in_kernels()._replace(code=code), twin, least[of])
    looked, stop, part = progress = Halving(*(np.zeros(1, np.int64) for _ in range(3)))

    def split(mask: int, upper: int) -> _Split:
        """(least loss of the rows in mask, its groups); (upper, []) if no loss is below ``upper``."""
        found = int(halve(mask, upper, table, progress))
        if found >= upper or stop[0]:
            return upper, []
        half = int(part[0])
        if not half:
            return found, [mask]
        one, groups = split(half, found + 1)
        return found, [*groups, *split(mask ^ half, found - one + 1)[1]]

    if of.size and lower < whole:
        found, groups = _within(seconds_left(task), stop, lambda: split((1 << of.size) - 1, whole)) or (whole, [])
        if groups:
            partition, whole = _dealt(task, of, groups), found
    done = not stop[0]
    promise = Guarantee(factor=1, additive=0, theorem="Blocki, Williams 2010, Theorem 1.3: exact, by halves")
    argument = "every part of about half the rows" if done else NEAREST
    details = {"parts": int(looked[0]), "stopped": None if done else "seconds"}
    return costs.grouping(task, partition, "halving", (whole if done else lower, whole), promise, argument, details)


def _within(seconds: float | None, stop: np.ndarray, run: Callable[[], _Split]) -> _Split | None:
    """The result of a search; None if it takes too long, and then the search stops."""
    with SearchThreads(1) as pool:
        job = pool.submit(run)
        try:
            return job.result(seconds)
        except TimeoutError:
            return None
        finally:
            stop[0] = not job.done()


def _dealt(task: Task, of: np.ndarray, groups: list[int]) -> Partition:
    """A partition of cells from groups as sets of rows, one bit for each row; of: the type of every row."""
    held = [(int(of[i]), g) for g, mask in enumerate(groups) for i in range(of.size) if mask >> i & 1]
    kind, group = np.array(held).T
    return distribute(task.histogram.count, task.histogram.types[0], kind, group, np.ones(of.size, np.int64))
