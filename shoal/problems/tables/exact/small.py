"""Tables of some hundred cells: the integer class program decides whether the partition in hand is of least loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from shoal.clock import clock
from shoal.errors import PolicyError
from shoal.model.partition import Partition
from shoal.model.task import Task
from shoal.problems.tables.exact.rule_lines import KNOWN

CELLS, NODES, PLACES = 250, 10_000, 55_000  # cells, lattice nodes, pairs of kind and pattern
EASY = 150_000  # such pairs where classes are of parts of one size: the linear program takes a fifth of the time
SECONDS = {"balanced": 9.5, "thorough": 120.0}  # since the task began, at least half of them for the proof
HOPELESS = {"balanced": 1.08, "thorough": 1.2}  # cost over the linear program's bound above which no proof is tried
SEARCHED = 0.3  # share of an effort in seconds that is left to the search


class Proof(NamedTuple):
    """The best partition known, no partition's loss is below ``bound`` (the recoding's unit); limit reached or None."""

    partition: Partition
    bound: float
    stopped: str | None


def decidable(task: Task) -> bool:
    """Whether the table is small enough, and the effort not "fast"."""
    columns, need = task.recoding.columns, task.requirement
    if task.effort.name == "fast" or (task.effort.seconds or 2.0) < 2.0:
        return False
    if any(rule.measure.kind not in KNOWN or len(rule.table) > CELLS for rule in need.rules):
        return False
    if task.recoding.hierarchies is None or any(c.held for c in columns):
        return False
    return 0 < task.histogram.cells <= CELLS and math.prod(c.levels for c in columns) <= NODES


def decide(task: Task, start: Partition) -> Proof:
    """The optimum, or the best found with its bound where time or size ends it (``pattern_program``)."""
    from shoal.problems.tables.costs import Costs
    from shoal.problems.tables.exact.pattern_model import kinds_of
    from shoal.problems.tables.exact.pattern_program import Limits, pattern_program
    from shoal.problems.tables.others.pattern_cover import whole_cost
    from shoal.problems.tables.papers.two_anonymity import seconds_left

    try:
        costs = Costs.of(task.histogram, task.recoding)
    except PolicyError:
        return Proof(start, 0.0, "memory")
    effort = task.effort.name if task.effort.seconds is None else "thorough"
    spent, whole = clock() - task.started, SECONDS[effort]
    seconds = max(whole - spent, 0.5 * whole) if task.effort.seconds is None else seconds_left(task)
    need = task.requirement
    easy = need.k <= max(need.frequency, default=1) > 1
    limits = Limits(seconds, EASY if easy else PLACES, HOPELESS[effort])
    kinds = kinds_of(task.histogram, need)
    partition, lower, stopped = pattern_program(task, costs, kinds, start, limits)
    _, bound, _ = costs.certified(task, partition, lower, whole_cost(costs, task, partition))
    return Proof(partition, bound, stopped)
