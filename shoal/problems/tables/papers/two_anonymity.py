"""2-anonymity at the least loss, proved: Blocki and Williams' polynomial case, made practical.

Blocki, Williams, "Resolving the complexity of some data privacy problems", ICALP 2010, Theorems 1.1 and 3.1.

Kept from the paper: groups of four or more split into pairs and triples at no cost, so the question is which pairs and
triples cover every row once.  Not in the paper: it refers to simplex matching in O(n^8); here a linear program over the
few pairs and triples that matter, tightened by odd sets, is solved and checked against all of them
(``set_partition``), and equal rows are thinned out first.

Multiplicity kernel: a type with six rows or more keeps four or five, the others leave in pairs of equal rows.  Some
optimum has at most two rows of a type in groups with another type: two such groups can be exchanged for ones with
fewer (docs/exact.md has the cases), so of c >= 6 rows at least four lie in pure groups and two may be taken out.
"""

from __future__ import annotations

import numpy as np

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.task import Grouping, Task, refuse_infeasible
from shoal.problems.tables.costs import Costs
from shoal.problems.tables.exact.set_partition import PairsAndTriples, solve
from shoal.problems.tables.papers.kernelize import distribute

SECONDS = {"fast": 30.0, "balanced": 600.0, "thorough": 86_400.0}


def seconds_left(task: Task) -> float:
    """Wall-clock seconds an exact method may still use."""
    if task.effort.seconds is not None:
        return max(0.0, task.effort.seconds - (clock() - task.started))
    return SECONDS[task.effort.name]


def two_anonymity(task: Task) -> Grouping:
    """The partition into groups of two or more with the least loss, for stars, hierarchies, sets and ranges.

    PolicyError for a requirement other than k = 2.  Where the time of the effort ends first (30 s, 10 min, a day, or
    the seconds given), the best found with its bound, and ``details["stopped"]`` says so.
    Polynomial in theory (Theorem 1.1); in practice a few linear programs over t types and scans of O(t^2 d).
    """
    need = task.requirement
    if need.k != 2 or need.sensitive_columns:
        raise PolicyError(
            "two_anonymity answers k = 2 without sensitive columns; "
            f"for {'sensitive columns' if need.sensitive_columns else f'k = {need.k}'} choose the method optimal"
        )
    refuse_infeasible(task.histogram, need)
    costs = Costs.of(task.histogram, task.recoding)
    thinned = costs.count - np.maximum(0, (costs.count - 4) // 2 * 2)
    kernel = costs.with_count(thinned)
    removed = costs.count - thinned
    if costs.types:
        found = solve(kernel, seconds_left(task), task.progress)
    else:
        found = PairsAndTriples(np.empty((0, 3), np.int32), np.empty(0, np.int64), 0, 0)
    pure = np.array([costs.loss([t]) for t in range(costs.types)], np.int64)
    aside = int(pure @ removed)
    width = (found.columns >= 0).sum(axis=1)
    group = np.repeat(np.arange(len(width)), width)
    alone = np.all((found.columns == found.columns[:, :1]) | (found.columns < 0), axis=1)
    group = np.where(alone[group], found.columns[group, 0], costs.types + group)  # pure rows of a type: one group
    partition = distribute(
        task.histogram.count,
        task.histogram.types[0],
        np.concatenate([found.columns[found.columns >= 0], np.flatnonzero(removed)]),
        np.concatenate([group, np.flatnonzero(removed)]),
        np.concatenate([np.repeat(found.uses, width), removed[removed > 0]]),
    )
    cost, bound, optimal = costs.certified(task, partition, found.lower + aside, found.upper + aside)
    proved = found.upper == found.lower
    details = {**found.facts, "kernel_rows": int(thinned.sum()), "types": costs.types, "stopped": found.stopped}
    if proved and not optimal:
        details["rounding"] = "losses have no common denominator; optimal up to rounding them down"
    return Grouping(
        partition,
        Certificate(
            cost=cost,
            lower_bound=bound,
            unit=task.recoding.unit,
            guarantee=Guarantee(
                factor=1, additive=0, theorem="Blocki, Williams 2010, Theorems 1.1 and 3.1: 2-anonymity is in P"
            )
            if optimal
            else Guarantee(),
            bound="linear program over all pairs and triples with odd sets; search over those of small reduced cost",
            details=details,
        ),
        "two_anonymity",
    )
