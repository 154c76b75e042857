"""The paper's own exact k-anonymity: by halves, in polynomial space.

Blocki, Williams, "Resolving the complexity of some data privacy problems", ICALP 2010, Theorem 1.3: the least loss of n
rows is the least, over parts T of about half of them, of the losses of T and of the rest.  O(4^n) parts are looked at
in the worst case, and only n sets of rows are ever held, where the dynamic program of ``optimal`` holds 2^n losses.

Departures.  T is a proper part (as printed the recursion need not end: for at most 4k rows T may be all of them) of at
most n/2 + k - 1/2 rows where the paper has n/2 + 2k (``kernels.tables.halves`` has the reason).  Of equal rows the
first go into T.  Parts from which even every row's nearest neighbors lead above the loss in hand are not followed.
Every recoding, not stars alone: the proof needs only that large groups can be split at no loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Guarantee
from shoal.model.partition import Partition
from shoal.model.task import Grouping, Task, refuse_infeasible
from shoal.problems.interrupts import Workers
from shoal.problems.tables.costs import Costs
from shoal.problems.tables.others.forest import forest
from shoal.problems.tables.others.nearest import NEAREST, kth, neighbors
from shoal.problems.tables.others.pattern_cover import k_only, whole_cost
from shoal.problems.tables.papers.kernelize import distribute
from shoal.problems.tables.papers.two_anonymity import seconds_left

_Split = tuple[int, list[int]]  # a loss, and groups as sets of rows
MOST = 62  # rows: one bit each


def halving(task: Task) -> Grouping:
    """The partition of least loss under k-anonymity; that of ``forest``, with a bound, where time ends first.

    ``details``: "parts" that were looked at, "stopped" is None or "seconds".  PolicyError for sensitive columns and for
    more than 62 rows.  O(4^n) time at worst, O(n^2) space.
    """
    from shoal.kernels.tables.halves import halve

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
    table = (k, code, costs.pair, costs.start, costs.size, costs.kind, twin, least[of])
    looked, stop, part = (np.zeros(1, np.int64) for _ in range(3))

    def split(mask: int, upper: int) -> _Split:
        """(least loss of the rows in mask, its groups); (upper, []) where nothing is below."""
        found = int(halve(mask, upper, *table, looked, stop, part))
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
    """What a search finds in time; None, and the search is told to stop, where time ends first."""
    with Workers(1) as pool:
        job = pool.submit(run)
        try:
            return job.result(seconds)
        except TimeoutError:
            return None
        finally:
            stop[0] = not job.done()


def _dealt(task: Task, of: np.ndarray, groups: list[int]) -> Partition:
    """Groups as sets of rows, a bit each, as a partition of cells; of: the type of every row."""
    held = [(int(of[i]), g) for g, mask in enumerate(groups) for i in range(of.size) if mask >> i & 1]
    kind, group = np.array(held).T
    return distribute(task.histogram.count, task.histogram.types[0], kind, group, np.ones(of.size, np.int64))
