"""Groups of a table kept to its parts, and groups that fail merged until all meet the models.

Rows of different parts never share a group: every part is grouped by itself, with one certificate for all.  A union of
good groups may be a bad one where models count persons; there groups that fail merge until all hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy.population import OfPersons
from shoal.model.recoding import Published
from shoal.model.task import Grouping, Task
from shoal.problems.tables.groups import good_groups
from shoal.problems.tables.three_phase import TUPLES


def part_of(histogram: Histogram, cells: np.ndarray) -> Histogram:
    """Some cells of a histogram, their codes as they were."""
    return replace(
        histogram, quasi=histogram.quasi[cells], sensitive=histogram.sensitive[cells], count=histogram.count[cells]
    )


def by_parts(
    histogram: Histogram, apart: np.ndarray, effort: Effort, solve: Callable[[Histogram, Effort], Grouping]
) -> Grouping:
    """Every part solved by itself, seconds dealt by rows.

    apart  int64[m]  cells of different numbers never share a group

    No group has rows of two parts, so losses and bounds add up, and a factor that holds for each holds for all.
    """
    found, cells, rows = [], [], []
    for number in np.unique(apart):
        here = np.flatnonzero(apart == number)
        part = part_of(histogram, here)
        share = part.rows / histogram.rows
        own = effort if effort.seconds is None else Effort("seconds", effort.seconds * share)
        found.append(solve(part, own))
        cells.append(here)
        rows.append(part.rows)
    first = np.cumsum([0, *(g.partition.groups for g in found)])
    partition = Partition.of(
        np.concatenate([c[g.partition.cell] for c, g in zip(cells, found, strict=True)]),
        np.concatenate([g.partition.group + at for g, at in zip(found, first[:-1], strict=True)]),
        np.concatenate([g.partition.count for g in found]),
    )
    methods = list(dict.fromkeys(g.method for g in found))
    attempts = tuple(a for g in found for a in g.attempts)
    return Grouping(partition, _together([g.certificate for g in found], rows), " and ".join(methods), attempts)


def _together(certificates: list[Certificate], rows: list[int]) -> Certificate:
    """Costs and bounds of parts as those of the whole: sums, of means the mean over all rows."""
    unit = certificates[0].unit
    weight = [n / sum(rows) for n in rows] if unit == "ncp" else [1] * len(rows)
    cost = sum(c.cost * w for c, w in zip(certificates, weight, strict=True))
    lower = sum(c.lower_bound * w for c, w in zip(certificates, weight, strict=True))
    promises = {(c.guarantee.factor, c.guarantee.additive, c.guarantee.theorem) for c in certificates}
    same = len(promises) == 1 and not certificates[0].guarantee.additive
    bound = "; ".join(f"{n:,} rows: {c.bound}" for n, c in zip(rows, certificates, strict=True))
    parts = [
        {"rows": n, "cost": c.cost, "lower_bound": c.lower_bound, "details": dict(c.details)}
        for n, c in zip(rows, certificates, strict=True)
    ]
    return Certificate(
        cost=cost,
        lower_bound=tight(lower, cost, unit, bound),
        unit=unit,
        guarantee=certificates[0].guarantee if same else Guarantee(),
        bound=f"parts grouped apart, added up: {bound}",
        details={"parts": parts},
    )


TRIED = 16  # nearest groups of which one may make a group that fails hold


def merged(task: Task, made: Partition, levels: Mapping[str, int] | None = None) -> Partition:
    """The partition, groups that are published alike as one, and each that fails joined to the nearest with which it
    holds, else to the nearest.

    levels  of every column, by name, where all groups are published at one level or starred

    Raises InfeasibleError where not even all rows as one group hold in the end.
    O(failing groups x groups x columns) beside publishing, a few times, and TRIED questions for each that fails.
    """
    h = task.histogram
    while True:
        made = _alike(task, made, _published(task, made, levels))
        good = good_groups(h, task.requirement, made.cell, made.group, made.count, made.groups)
        if good.all():
            return made
        if made.groups == 1:
            raise none_found(task)
        made = _joined(task, made, np.flatnonzero(~good).tolist())


def holding(task: Task, tried: Sequence[tuple[str, Partition]]) -> list[tuple[str, Partition]]:
    """Those of some named partitions that hold once they are merged, merged.

    Raises InfeasibleError where none holds.
    """
    held, failed = [], []
    for name, made in tried:
        try:
            held.append((name, merged(task, made)))
        except InfeasibleError as error:
            failed.append(error)
    if not held:
        raise failed[0]
    return held


def _published(task: Task, made: Partition, levels: Mapping[str, int] | None) -> Published:
    """What the groups publish."""
    if levels is None:
        return task.recoding.publish(task.histogram, made)
    return task.recoding.at_levels(task.histogram, made, levels)


def _alike(task: Task, made: Partition, shows: Published) -> Partition:
    """Groups that are published alike as one."""
    h, columns = task.histogram, task.recoding.columns
    key = [c.numbers(task.recoding.shown(h, made, shows, j)) for j, c in enumerate(columns)]
    if not key:
        return Partition.of(made.cell, np.zeros_like(made.group), made.count)
    name = np.unique(np.stack(key, axis=1), axis=0, return_inverse=True)[1].reshape(-1)
    return Partition.of(made.cell, name[made.group], made.count)


def _joined(task: Task, made: Partition, waiting: list[int]) -> Partition:
    """A partition, each of some groups joined to the nearest with which it holds, else to the nearest."""
    shown = task.histogram.quasi[made.cell[made.start]].astype(np.int64)
    owner = np.arange(made.groups)  # of each group the one it was joined to
    order = np.argsort(made.group, kind="stable")
    held = np.split(order, np.searchsorted(made.group[order], np.arange(1, made.groups)))  # places of each group
    while waiting:
        g = waiting.pop()
        heads = np.flatnonzero((owner == np.arange(made.groups)) & (np.arange(made.groups) != g))
        if not heads.size:
            break
        lost = np.zeros(heads.size)
        for j, column in enumerate(task.recoding.columns):
            lost += np.nan_to_num(column.pair(shown[g, j], shown[heads, j]), nan=1e9) * column.weight
        near = heads[np.argsort(lost, kind="stable")][:TRIED].tolist()
        best = next((o for o in near if _holds(task, made, np.concatenate([held[g], held[o]]))), None)
        other = near[0] if best is None else best
        owner[owner == g] = other
        held[other], held[g] = np.concatenate([held[other], held[g]]), order[:0]
        if best is None and other not in waiting:
            waiting.append(other)
        elif best is not None and other in waiting:
            waiting.remove(other)
    return Partition.of(made.cell, owner[made.group], made.count)


def none_found(task: Task) -> InfeasibleError:
    """No groups hold, as far as was looked: what all rows as one group reach."""
    h = task.histogram
    failing = []
    for rule in task.requirement.rules:
        if isinstance(rule.model, OfPersons) and not rule.holds(h.sensitive, h.count):
            held, table = rule.counts(h.sensitive, h.count), np.array(rule.table, np.int64)
            failing.append((rule.model.distance(held, table), rule, held, table))
    if not failing:
        return InfeasibleError("all rows as one group do not meet the models")
    _, rule, held, table = min(failing, key=lambda one: one[0])
    return InfeasibleError(rule.model.refusal(held, h.sensitive_names[rule.columns[0]], table))


def _holds(task: Task, made: Partition, places: np.ndarray) -> bool:
    """Whether what stands in some places of a partition, int64[..], holds as one group."""
    one = np.zeros(places.size, np.int64)
    return bool(good_groups(task.histogram, task.requirement, made.cell[places], one, made.count[places], 1).all())


def asked_one_by_one(task: Task, found: Grouping) -> Grouping:
    """A grouping with every group good, and without what is promised of models of which a union cannot be bad."""
    stated = found.certificate
    kept = {n: v for n, v in stated.details.items() if n != "proved"}
    if "uniform_bound" in kept:
        kept |= {"uniform_bound": 0, "uniform_optimal": False}
        return replace(found, certificate=replace(stated, details=kept))
    levels = kept.get("levels")
    partition = merged(task, found.partition, levels)
    tuples = stated.unit == TUPLES
    cost = _rows_changed(task, partition) if tuples else task.recoding.cost(task.histogram, partition)
    if levels is not None:
        shows = _published(task, partition, levels)
        kept |= {"uniform_cost": task.recoding.cost(task.histogram, partition, shows), "levels_bound": 0}
    lower = tight(stated.lower_bound, cost, stated.unit, stated.bound or "")
    certificate = replace(stated, cost=cost, lower_bound=lower, guarantee=Guarantee(), details=kept)
    return replace(found, partition=partition, certificate=certificate)


def _rows_changed(task: Task, partition: Partition) -> int:
    """Rows in groups of different tuples."""
    kind = task.histogram.types[0][partition.cell]
    mixed = np.maximum.reduceat(kind, partition.start) != np.minimum.reduceat(kind, partition.start)
    return int(partition.sizes[mixed].sum())
