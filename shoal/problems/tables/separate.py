"""Groups within parts of a table, and merging of ineligible groups until all meet the models.

Rows of different parts never share a group: every part is grouped separately, with one certificate for all. If models
count persons, a union of eligible groups may be ineligible. Then ineligible groups are merged until all are eligible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from shoal.clock import clock
from shoal.errors import InfeasibleError
from shoal.model.arguments import Effort
from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy.population import OfPersons
from shoal.model.recoding import PublishedCodes
from shoal.model.task import Grouping, Task
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.three_phase import TUPLES


def by_parts(
    histogram: Histogram, apart: np.ndarray, effort: Effort, solve: Callable[[Histogram, Effort], Grouping]
) -> Grouping:
    """Solve every part separately, with seconds divided by rows.

    apart  int64[m]: cells with different numbers never share a group

    No group has rows of two parts, so losses and bounds add up, and a factor that holds for each part holds for all.
    """
    found, cells, rows = [], [], []
    for number in np.unique(apart):
        here = np.flatnonzero(apart == number)
        part = histogram.part(here)
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
    return Grouping(
        partition, _combined_certificate([g.certificate for g in found], rows), " and ".join(methods), attempts
    )


def _combined_certificate(certificates: list[Certificate], rows: list[int]) -> Certificate:
    """Costs and bounds of parts as those of the whole: sums, or for means the mean over all rows."""
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


TRIED = 16  # number of nearest groups tried to make a group eligible, and of groups tried for removal


def merged(task: Task, made: Partition, levels: Mapping[str, int] | None = None) -> Partition:
    """The partition with groups that are published alike as one class, changed until every class is eligible.

    levels  of every column, by name, if all groups are published at one level or starred

    An ineligible class gives up groups until the rest is eligible. Each of these groups joins a near group with which
    it is eligible, and whose own class is eligible without it, so that only these rows are published coarser.
    Raises InfeasibleError if finally not even all rows as one group are eligible.
    O(failing groups x groups x columns), a few publications, and TRIED tests for each ineligible group.
    """
    h = task.histogram
    while True:
        name = _alike(task, made, _published(task, made, levels))
        classes = int(name.max(initial=-1)) + 1
        good = groups_that_meet(h, task.requirement, made.cell, name[made.group], made.count, classes)
        if good.all():
            return Partition.of(made.cell, name[made.group], made.count)
        if classes == 1:
            raise none_found(task)
        made = _ClassesOfGroups(task, made, name).without_ineligible_classes(np.flatnonzero(~good).tolist())


def holding(task: Task, tried: Sequence[tuple[str, Partition]]) -> list[tuple[str, Partition]]:
    """Named partitions, merged until they are eligible; those that can't be are left out.

    If the time is over, only the first is tried.

    Raises InfeasibleError if none is eligible.
    """
    held: list[tuple[str, Partition]] = []
    failed: list[InfeasibleError] = []
    late = np.inf if task.effort.seconds is None else task.started + task.effort.seconds
    for name, made in tried:
        if held and clock() > late:
            break
        try:
            held.append((name, merged(task, made)))
        except InfeasibleError as error:
            failed.append(error)
    if not held:
        raise failed[0]
    return held


def _published(task: Task, made: Partition, levels: Mapping[str, int] | None) -> PublishedCodes:
    """What the groups publish."""
    if levels is None:
        return task.recoding.publish(task.histogram, made)
    return task.recoding.at_levels(task.histogram, made, levels)


def _alike(task: Task, made: Partition, shows: PublishedCodes) -> np.ndarray:
    """int64[groups]: the class of every group; groups that are published alike are one class."""
    h, columns = task.histogram, task.recoding.columns
    key = [c.numbers(task.recoding.shown(h, made, shows, j)) for j, c in enumerate(columns)]
    if not key:
        return np.zeros(made.groups, np.int64)
    return np.unique(np.stack(key, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


class _ClassesOfGroups:
    """The classes of a partition while groups leave them and join others.

    shown    int64[groups, d]: a row of each group
    places   of each group, the indexes of its cells in the partition; empty once it has joined another
    class_of int64[groups]: the class of each group; a group that was joined is a class of its own
    members  the groups of each class
    """

    def __init__(self, task: Task, made: Partition, name: np.ndarray) -> None:
        self.task, self.made = task, made
        self.shown = task.histogram.quasi[made.cell[made.start]].astype(np.int64)
        self.size = made.sizes.astype(float)
        order = np.argsort(made.group, kind="stable")
        self.places = np.split(order, np.searchsorted(made.group[order], np.arange(1, made.groups)))
        self.owner = np.arange(made.groups)  # for each group, the one it joined
        self.class_of = name.copy()
        by_class = np.argsort(name, kind="stable")
        groups = np.split(by_class, np.searchsorted(name[by_class], np.arange(1, int(name.max()) + 1)))
        self.members = [some.tolist() for some in groups]

    def without_ineligible_classes(self, failing: list[int]) -> Partition:
        """The partition after every ineligible class has given up groups and these have joined others."""
        waiting = [group for one in failing for group in self.given_up(one)]
        while waiting:
            group = waiting.pop()
            near = self.near(group)
            if not near:
                break
            other = next((o for o in near if self.may_join(group, o)), None)
            if other is None:
                other = near[0]
                if other not in waiting:
                    waiting.append(other)
            elif other in waiting:
                waiting.remove(other)
            self.join(group, other)
        return Partition.of(self.made.cell, self.owner[self.made.group], self.made.count)

    def given_up(self, one: int) -> list[int]:
        """Groups that leave a class so that the rest is eligible: one that suffices, else repeatedly the smallest."""
        kept, left = sorted(self.members[one], key=lambda group: self.size[group]), []
        while kept and not self.hold(kept):
            tried = kept[:TRIED] if len(kept) > 1 else []
            enough = (group for group in tried if self.hold([other for other in kept if other != group]))
            leaving = next(enough, kept[0])
            kept.remove(leaving)
            left.append(leaving)
        self.members[one] = kept
        return left

    def near(self, group: int) -> list[int]:
        """The nearest groups that are published differently (fewer rows in both count as nearer), then all others."""
        heads = np.flatnonzero(self.owner == np.arange(self.owner.size))
        others = heads[heads != group]
        elsewhere = others[self.class_of[others] != self.class_of[group]]
        heads = elsewhere if elsewhere.size else others
        lost = np.zeros(heads.size)
        for j, column in enumerate(self.task.recoding.columns):
            pair = column.pair(self.shown[group, j], self.shown[heads, j])
            lost += np.nan_to_num(pair, nan=1e9) * column.weight
        lost *= self.size[group] + self.size[heads]
        found: list[int] = heads[np.argsort(lost, kind="stable")][:TRIED].tolist()
        return found

    def may_join(self, group: int, other: int) -> bool:
        """Whether two groups are eligible as one, and the rest of the other's class without it."""
        rest = [o for o in self.members[self.class_of[other]] if o != other]
        return self.hold([group, other]) and (not rest or self.hold(rest))

    def join(self, group: int, other: int) -> None:
        """Merge a group into another, which leaves its class."""
        self.owner[self.owner == group] = other
        self.places[other] = np.concatenate([self.places[group], self.places[other]])
        self.places[group] = self.places[group][:0]
        self.size[other] += self.size[group]
        for one in (group, other):
            some = self.members[self.class_of[one]]
            if one in some:
                some.remove(one)
        self.class_of[other] = len(self.members)
        self.members.append([other])

    def hold(self, groups: list[int]) -> bool:
        """Whether some groups are eligible as one."""
        places = np.concatenate([self.places[group] for group in groups])
        made, one = self.made, np.zeros(places.size, np.int64)
        task = self.task
        return bool(
            groups_that_meet(task.histogram, task.requirement, made.cell[places], one, made.count[places], 1).all()
        )


def none_found(task: Task) -> InfeasibleError:
    """The error if no groups are eligible: what all rows as one group reach, the largest violation first."""
    h = task.histogram
    failing = []
    for rule in task.requirement.rules:
        if isinstance(rule.model, OfPersons) and not rule.holds(h.sensitive, h.count):
            held, table = rule.counts(h.sensitive, h.count), np.array(rule.table, np.int64)
            failing.append((rule.model.distance(held, table), rule, held, table))
    if not failing:
        return InfeasibleError("all rows as one group do not meet the models")
    failing.sort(key=lambda one: one[0])
    reasons = [rule.model.refusal(held, h.sensitive_names[rule.columns[0]], table) for _, rule, held, table in failing]
    return InfeasibleError(". Also, ".join(dict.fromkeys(reasons)))


def asked_one_by_one(task: Task, found: Grouping) -> Grouping:
    """A grouping in which every group is eligible; guarantees that assume eligible unions are removed."""
    stated = found.certificate
    kept = {n: v for n, v in stated.details.items() if n != "proved"}
    if "uniform_bound" in kept:
        kept |= {"uniform_bound": 0, "uniform_optimal": False}
    if "nodes_looked_at" in kept:  # global recoding
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
    """The number of rows in groups with different tuples."""
    kind = task.histogram.types[0][partition.cell]
    mixed = np.maximum.reduceat(kind, partition.start) != np.minimum.reduceat(kind, partition.start)
    return int(partition.sizes[mixed].sum())
