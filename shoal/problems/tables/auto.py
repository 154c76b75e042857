"""The default: what fits the effort is run, the cheapest result is returned, and every attempt is told."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.model.partition import Partition
from shoal.model.task import Effort, Grouping, Task
from shoal.problems.tables.costs import WIDEST
from shoal.problems.tables.exact.small import CELLS, SEARCHED, decidable, decide
from shoal.problems.tables.others.pattern_cover import pattern_cover
from shoal.problems.tables.papers.three_phase import residues
from shoal.problems.tables.search.bounds import Bounds, lower_bounds
from shoal.problems.tables.search.cascade import best, rank, scarcity, start
from shoal.problems.tables.search.certified import certify
from shoal.problems.tables.search.class_flow import flow_start
from shoal.problems.tables.search.near_graph import neighbour_graph
from shoal.problems.tables.search.neighborhood import STEPS, looks, search, steps_of
from shoal.problems.tables.search.priced_cascade import guided
from shoal.problems.tables.search.row_groups import Rows
from shoal.problems.tables.search.scarce_values import alternate, scarce_start
from shoal.problems.tables.search.settling import approach, close_rule
from shoal.problems.tables.search.thinning import thinned

SMALL, SMALL_PAIRS = (
    16,
    1_000,
)  # distinct tuples up to which an exact method is tried, for any model and for k = 2 alone
PROOF = 10.0  # seconds it may take, many times what tables of this size need
CLEARLY = 1.02
TWICE = 5_000  # rows up to which "balanced" searches from the cascade as well as from a better start
LARGE = 8  # from this k on a cover by published rows may be the better start
COVER = {"fast": 1e6, "balanced": 2e7, "thorough": 1e8}  # nodes times cells times columns it may look at
COVER_PACE = 4e6  # and in a second, at least
TRIAL = 0.06  # share of the seconds left that each of two starts is searched before the better one is kept


def auto(task: Task) -> Grouping:
    """Three-phase, cascade, price-guided cascade and search, as far as the effort reaches; the best by the task's loss.

    A table small enough is solved exactly instead, unless the effort is "fast"; one of some hundred cells is decided by
    an integer program where that ends in time (``exact.small``).

    ``attempts`` has one line {"method", "cost", "seconds"} per method, costs by the task's loss.
    """
    attempts: list[dict[str, Any]] = []
    thin = thinned(task)
    small = task if thin is None else thin.task
    rows = Rows.of(small)  # what is searched; bounds are of the whole table

    def whole(group: np.ndarray) -> Partition:
        return rows.partition(group) if thin is None else thin.back(rows.partition(group))

    def told(method: str, partition: Partition, began: float) -> tuple[int, float]:
        order = rank(task, partition)
        attempts.append({"method": method, "cost": order[1], "seconds": round(time.monotonic() - began, 3)})
        return order

    began = time.monotonic()
    three = residues(task)[0]
    first = told("three_phase", three, began)
    began = time.monotonic()
    first_group = group = start(small, rows)
    plain = whole(group)
    order = told("cascade", plain, began)
    method, found = "cascade", [plain]
    if min(first, order) == (0, 0):  # nothing is lost, so nothing is left to search
        made = certify(
            task, best(task, rows, plain), method if order <= first else "three_phase", Bounds({"nothing": 0})
        )
        return replace(made, attempts=tuple(attempts))
    deadline = None if task.effort.seconds is None else task.started + task.effort.seconds
    left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
    share = None if left is None else time.monotonic() + (0.3 if left > 3 else 0.6) * left
    bounds = lower_bounds(task, rows if thin is None else Rows.of(task), until=share)
    cheapest, prices, tolls = bounds.cheapest, bounds.prices, bounds.tolls
    if thin is not None:
        cheapest, prices = (None if a is None else a[thin.cells] for a in (cheapest, prices))
        tolls = None if tolls is None else tolls.of_cells(thin.cells, small.histogram.count)
    proved = _proved(task, left)
    if proved is not None:
        attempts.append({"method": proved.method, "cost": rank(task, proved.partition)[1], "seconds": proved.seconds})
        return replace(proved.grouping, attempts=tuple(attempts))
    long = task.effort.name in ("seconds", "thorough")
    report, near = None, None
    if tolls is not None:
        began = time.monotonic()
        filled = flow_start(small, rows, tolls, None if left is None else began + 0.3 * left)
        if filled is not None:
            found.append(whole(filled))
            if told("class program", found[-1], began) < order:
                group, order, method = filled, rank(task, found[-1]), "class program"
    if covers(small, left):
        began = time.monotonic()
        covered = labels_of(rows, pattern_cover(small).partition)
        found.append(whole(covered))
        if told("pattern_cover", found[-1], began) < order:
            group, order, method = covered, rank(task, found[-1]), "pattern_cover"
    common = scarcity(small)
    if task.effort.name != "fast" and common.size:
        began = time.monotonic()
        led = scarce_start(small, rows, cheapest, common, None if left is None else began + 0.6 * left)
        if led is not None:
            found.append(whole(led))
            if told("guided cascade", found[-1], began) < order:
                group, order, method = led, rank(task, found[-1]), "guided cascade"
    elif task.effort.name != "fast" and prices is not None and (left is None or left > 5):
        began = time.monotonic()
        until = None if left is None else began + 0.25 * left
        led = guided(small, rows, prices, until)
        if led is not None and not long:
            # No steps to spare for a trial: what the prices led is the better start unless it is clearly dearer.
            if told("guided cascade", whole(led), began)[1] < CLEARLY * order[1]:
                group = led
        elif led is not None:
            near = neighbour_graph(rows, task.seed, looks(rows, deadline, steps_of(small)))
            told("guided cascade", whole(led), began)
            began = time.monotonic()
            tried = []
            for labels in (group, led):
                if deadline is None:
                    steps = int(STEPS["thorough"] * TRIAL * small.histogram.rows)
                    labels, report = search(small, rows, labels, steps=steps, near=near)
                else:
                    stop = time.monotonic() + TRIAL * (deadline - began)
                    labels, report = search(small, rows, labels, deadline=stop, near=near)
                tried.append((rank(task, whole(labels)), labels))
            group = min(tried, key=lambda pair: pair[0])[1]
    decided = decidable(task)
    if decided and deadline is not None:  # what is left of the seconds goes to the proof
        deadline = time.monotonic() + SEARCHED * max(deadline - time.monotonic(), 0.0)
    twice = task.effort.name == "balanced" and small.histogram.rows <= TWICE
    if twice:  # what "improve" does, so that it is never the better choice
        began = time.monotonic()
        again, report = search(small, rows, first_group)
        found.append(whole(again))
        if told("improve", found[-1], began) < order:
            order, method = rank(task, found[-1]), "improve"
    done = twice and group is first_group and not common.size and close_rule(small) is None
    if task.effort.name != "fast" and not done:
        began = time.monotonic()
        finish = alternate if common.size else approach if close_rule(small) is not None else search
        group, report = finish(replace(small, seed=task.seed + 1), rows, group, deadline=deadline, near=near)
        found.append(whole(group))
        if told("improve", found[-1], began) < order:
            method = "improve"
    chosen = best(task, rows, *found)
    if rank(task, chosen) == rank(task, three) and rank(task, three) < min(rank(task, p) for p in found):
        method = "three_phase"
    told_of = None
    if decided:
        began = time.monotonic()
        proof = decide(task, chosen)
        if proof.partition is not chosen and (proof.stopped is None or long):
            # Where the clock ended it, a partition of a named effort stays what the seed says.
            chosen, method = proof.partition, "optimal"
            told("optimal", chosen, began)
        bounds.values["integer program"] = proof.bound
        told_of = {"stopped": proof.stopped, "seconds": round(time.monotonic() - began, 3)}
    made = certify(task, chosen, method, bounds, report, told_of)
    return replace(made, attempts=tuple(attempts))


def covers(task: Task, left: float | None) -> bool:
    """Whether a cover by published rows is worth a start: large k alone, and a lattice soon looked through."""
    columns, need, cells = task.recoding.columns, task.requirement, task.histogram.cells
    if need.sensitive_columns or need.rules or need.k < LARGE or cells <= CELLS:
        return False
    if any(c.kind != "levels" or c.ceiling < c.levels - 1 or c.size > WIDEST for c in columns):
        return False
    work = COVER_PACE * 0.2 * left if left is not None else COVER[task.effort.name]
    return math.prod(c.levels for c in columns) * cells * len(columns) <= work


@dataclass(frozen=True, eq=False)
class _Proved:
    grouping: Grouping
    seconds: float

    @property
    def method(self) -> str:
        return self.grouping.method

    @property
    def partition(self) -> Partition:
        return self.grouping.partition


def _proved(task: Task, left: float | None) -> _Proved | None:
    """The optimum where the table is small enough to prove one; None otherwise.

    Only a finished proof counts, and such tables need a small part of ``PROOF``: a seed still reproduces the result.
    """
    from shoal.problems.tables.exact.optimal import optimal
    from shoal.problems.tables.papers.two_anonymity import two_anonymity

    need, cells = task.requirement, task.histogram.cells
    pairs = need.k == 2 and not need.sensitive_columns
    if task.effort.name == "fast" or not 0 < cells <= (SMALL_PAIRS if pairs else SMALL):
        return None
    began = time.monotonic()
    limit = Effort("seconds", PROOF if left is None else min(PROOF, 0.5 * left))
    try:
        found = (two_anonymity if pairs else optimal)(replace(task, effort=limit, started=began))
    except PolicyError:  # a ceiling, or sets and ranges of too many rows: not for the exact methods
        return None
    return _Proved(found, round(time.monotonic() - began, 3)) if found.certificate.optimal else None


def labels_of(rows: Rows, partition: Partition) -> np.ndarray:
    """A partition as a group for every row, int64[n], to start a search from."""
    return rows.spread(partition.cell, partition.group, partition.count)
