"""Constraints of a release other than the requirement of its groups, reduced to requests that any method can answer.

A method groups a table under a requirement. It supports no population, no mean risk, no parts, and no shards. ``solve``
removes the constraints from a task one after another, the outermost first. Each constraint solves the rest of the task
once or a few times, with a stricter request in its place, and checks or repairs the result.

**A population** (``with_population``). The number of people that a group covers depends on its published form, which
may be coarser than the rows of the group require. Two requests are solved, and the cheaper answer is used: one with
a stricter condition on the group's own tuples, and one that first raises every tuple to a form that covers enough
people (``Forms``). Then every group gets the cheapest form that covers its rows and enough people. docs/models.md ("A
population") explains when a release exists, and the bound.

**A limit on the mean risk** (``within_risk``): the number of classes over the number of rows. Every group must have
more rows; with one level per column, the classes of a choice of levels are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InfeasibleError, PolicyError, VerificationError
from shoal.model.arguments import Effort
from shoal.model.certificate import Guarantee, tight
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.privacy import DeltaPresence, KMap
from shoal.model.privacy.base import CLOSE, level_text
from shoal.model.recoding import PublishedCodes, Recoding
from shoal.model.task import Constraints, Grouping, Population, Task, refuse_infeasible, uncovered
from shoal.problems.catalogue import algorithm
from shoal.problems.tables.bounds import certified as without
from shoal.problems.tables.bounds import refuse_ceiling
from shoal.problems.tables.bounds.bounds import total
from shoal.problems.tables.generalizations import SECONDS, Forms, enough, least_forms, raised, shared
from shoal.problems.tables.groups import groups_that_meet
from shoal.problems.tables.losses import bound_raised_to_step
from shoal.problems.tables.methods.global_recoding import at_levels
from shoal.problems.tables.methods.minimality_merge import protected
from shoal.problems.tables.separate import asked_one_by_one, by_parts
from shoal.problems.tables.shards import sharded
from shoal.problems.tables.three_phase import TUPLES, as_one_shard, by_loss, three_phase

SEARCHES = ("auto", "improve", "cascade")  # methods that need no search without columns
# the only method that handles parts, a budget of starred rows, and further conditions on levels
GLOBAL = "global_recoding"


def solve(task: Task, method: str) -> Grouping:
    """A grouping that meets the task's requirement and all its constraints, with each group checked."""
    asked = task.constraints
    if asked.decoys is not None:
        return protected(task, asked.decoys, lambda register: _one(register, "auto"))
    if asked.levels is not None:
        return at_levels(replace(task, effort=Effort.of("fast"), apart=None), asked.levels)
    if asked.population is not None:
        return with_population(task, asked.population, method)
    if asked.max_average_risk is not None:
        return within_risk(task, asked.max_average_risk, method)
    if asked.shards is not None:
        found = sharded(task, method, asked.shards)
        return as_one_shard(task, _whole(task, method)) if found is None else found
    return _whole(task, method)


def _whole(task: Task, method: str) -> Grouping:
    """A method's grouping of a task without constraints; rows that must be apart are separate tasks."""
    if task.apart is not None and method != GLOBAL:
        return by_parts(task.histogram, task.apart, task.effort, lambda some, own: _part(task, some, own, method))
    return _one(replace(task, constraints=Constraints()), method)


def _part(task: Task, some: Histogram, effort: Effort, method: str) -> Grouping:
    """The grouping of one part; a part with fewer than k rows is one group.

    If rows lose something in any group, because ranges end on a grid, a part's cost in suppressed tuples is converted
    to loss, so that the costs of the parts can be added.
    """
    need = replace(task.requirement, k=min(task.requirement.k, some.rows))
    own = task.again(histogram=some, requirement=need, effort=effort, apart=None)
    found = _one(own, method)
    if found.certificate.unit == TUPLES and task.recoding.alone(task.histogram):
        return by_loss(own, found.partition, found.method, dict(found.certificate.details))
    return found


def _one(task: Task, method: str) -> Grouping:
    """A method's grouping of a task without constraints, checked."""
    refuse_infeasible(task.histogram, task.requirement)
    lossless = not task.recoding.columns and method in SEARCHES  # nothing is published that could be lost
    grouping: Grouping = three_phase(task) if lossless else algorithm("tables", method)(task)
    if not task.requirement.closed:
        grouping = asked_one_by_one(task, grouping)
    made = grouping.partition
    made.check(task.histogram)
    if not groups_that_meet(task.histogram, task.requirement, made.cell, made.group, made.count, made.groups).all():
        raise VerificationError(
            f"{grouping.method} made a group that does not meet the models; nothing comes of it. This is a defect of "
            "shoal: please report it"
        )
    refuse_ceiling(task, grouping.partition, grouping.method, grouping.starred)
    return replace(grouping, certificate=bound_raised_to_step(task, grouping.certificate))


Admits = Callable[[np.ndarray], np.ndarray]


def _conjunction(one: Admits | None, other: Admits) -> Admits:
    """The conjunction of two conditions on a choice of levels."""
    return other if one is None else lambda levels: np.asarray(one(levels) & other(levels))


def _without_proof(found: Grouping) -> Grouping:
    """A grouping without its proof, because the choice of levels was proved for another request."""
    facts = {n: v for n, v in found.certificate.details.items() if n != "proved"}
    certificate = replace(found.certificate, details=facts | {"uniform_bound": 0, "uniform_optimal": False})
    return replace(found, certificate=certificate)


# The mean risk


def within_risk(task: Task, limit: float, method: str) -> Grouping:
    """A grouping with a mean prosecutor risk (groups over rows) of at most ``limit``.

    With one level per column, the limit is a condition on every choice of levels, and so the proof remains valid.
    Otherwise, and with a budget of completely starred rows, every group must have more rows.
    Raises InfeasibleError if one group of every part, or of all rows, is above the limit.
    """
    rest = replace(task, constraints=replace(task.constraints, max_average_risk=None))
    rows = task.histogram.rows
    if not rows:
        return solve(rest, method)

    def by_levels() -> Grouping:
        return solve(
            rest.again(admits=_conjunction(task.admits, _few_classes(limit, task.histogram, task.recoding))), method
        )

    if method == GLOBAL and not task.spare:
        refuse_above(limit, rows)
        return by_levels()
    parts = np.zeros(task.histogram.cells, np.int64) if task.apart is None else task.apart
    held = np.bincount(parts, weights=task.histogram.count).astype(np.int64)
    try:
        return _larger_within(rest, limit, held[held > 0].tolist(), method)
    except InfeasibleError:
        if method != GLOBAL or limit * rows + CLOSE < 1:
            raise
        found = by_levels()  # a part may have fewer rows than the groups require
    return _without_proof(found)  # with starred rows, other choices of levels could also have few enough classes


def _larger_within(task: Task, limit: float, parts: list[int], method: str) -> Grouping:
    """Groups of more rows, until there are few enough groups for the rows. Up to three searches.

    A row in a group of n has risk 1/n, so the mean over the rows is the number of groups over the number of rows.
    Merging groups lowers it. The least is that of one group of all rows, or of each part if rows must be apart. Without
    parts, groups of 1/limit rows suffice. A smaller size, estimated from the mean size without the limit, is tried
    first. The lower bound is the one without the limit, which holds for every release within the limit too.
    """
    rows, need = sum(parts), task.requirement
    refuse_above(limit, rows, len(parts))
    allowed = limit * rows + CLOSE
    first = found = solve(task.again(), method)
    sufficient = math.ceil(1 / limit - CLOSE)
    while sum(max(n // sufficient, 1) for n in parts) > allowed:
        sufficient += 1
    guess = math.ceil(need.smallest * found.partition.groups / (limit * rows) - CLOSE)
    for k in sorted({min(max(guess, need.k), sufficient), sufficient}):
        if found.partition.groups <= allowed:
            break
        found = solve(task.again(requirement=replace(need, k=max(need.k, k))), method)
    if found.partition.groups > allowed:
        raise InfeasibleError(
            f"no groups were found with a mean risk within ⟨max_average_risk={limit}⟩: the fewest found have "
            f"{level_text(found.partition.groups / rows, up=True)}; ask for that, or leave out what keeps rows apart"
        )
    if found is first:
        return found
    before, after = first.certificate, found.certificate
    same = before.unit == after.unit
    details = {name: fact for name, fact in after.details.items() if name != "proved"}  # proved only for larger groups
    if "uniform_bound" in details:
        details["uniform_bound"] = before.details["uniform_bound"]
        details["uniform_optimal"] = bool(details["uniform_bound"] >= details["uniform_cost"])
    if "levels_bound" in details:
        details["levels_bound"] = details["uniform_bound"]  # at any levels, so also at these
    certificate = replace(
        after,
        lower_bound=before.lower_bound if same else 0,
        bound=f"without the limit on the mean risk: {before.bound}" if same else "none: another unit without the limit",
        guarantee=Guarantee(),
        details={**details, "max_average_risk": limit},
    )
    return replace(found, certificate=certificate)


def refuse_above(limit: float, rows: int, groups: int = 1) -> None:
    """Raise InfeasibleError if this many groups, the least possible number, have a mean risk above the limit."""
    if limit * rows + CLOSE >= groups:
        return
    least = f"the least possible is {level_text(groups / rows, up=True)}"
    above = f"a mean risk of {groups / rows:.4g}, above ⟨max_average_risk={limit}⟩"
    if groups == 1:
        raise InfeasibleError(f"{rows} rows in one group have {above}; {least}")
    raise InfeasibleError(
        f"rows that lack a value are grouped apart (⟨missing='apart'⟩), and {rows} rows in {groups} groups have "
        f"{above}; "
        f"{least}, or {level_text(1 / rows, up=True)} with ⟨missing='category'⟩"
    )


def _few_classes(limit: float, histogram: Histogram, recoding: Recoding) -> Admits:
    """Whether one level int64[d] for each column leaves few enough classes: bool[cells], equal for all cells."""
    columns, codes = recoding.hierarchies or (), histogram.quasi

    def admits(levels: np.ndarray) -> np.ndarray:
        shown = [c.node[h][codes[:, j]] for j, (c, h) in enumerate(zip(columns, levels, strict=True))]
        sizes = [int(c.max(initial=0)) + 1 for c in shown]
        classes = np.unique(mixed_radix(np.stack(shown, 1), sizes)).size
        return np.full(histogram.cells, classes <= limit * histogram.rows + CLOSE)

    return admits


# The population

ARGUMENT = "population: per row the cheapest coarser form of its tuple that covers enough people"
PROGRAM = "integer program: the release of least loss, or what its relaxation leaves"


class _WidePartition(NamedTuple):
    """A grouping, its published forms if the groups don't determine them, and its loss summed over the rows.

    bound  a lower bound of the loss, summed over the rows as well
    """

    grouping: Grouping
    shows: PublishedCodes | None = None
    loss: float = np.inf
    bound: float = 0.0


def with_population(task: Task, population: Population, method: str) -> Grouping:
    """A grouping that meets the conditions on the population, its published forms, and its own bound.

    Raises InfeasibleError if even the coarsest forms cover too few people. Up to three searches.
    """
    rest = replace(task, constraints=replace(task.constraints, population=None))
    if not task.histogram.rows:
        return solve(rest, method)
    asked = _PopulationQuestion(rest, population, method)
    return asked.certified(asked.solved())


class _PopulationQuestion:
    """One request with a population.

    task   the table without the population;  strict: with the stricter condition that depends only on its rows
    whole  whether the whole table meets that condition
    forms  the forms of its tuples; None if a column has no levels
    """

    def __init__(self, task: Task, population: Population, method: str) -> None:
        self.task, self.population, self.method = task, population, method
        histogram, need = population.stricter(task.histogram, task.requirement)
        self.strict = replace(task, histogram=histogram, requirement=need)
        self.whole = population.decides(task.histogram, task.requirement, task.apart)
        self.forms = _forms(task.recoding, population)

    def solved(self) -> _WidePartition:
        """The cheapest answer to the requests that are solved."""
        forms, task = self.forms, self.task
        if forms is None:
            return _WidePartition(self._with_larger_groups())
        self._refuse(forms)
        if self.method == GLOBAL:
            return _WidePartition(self._by_column(forms, task))
        tries = self._attempts(forms)
        made: list[tuple[Grouping, np.ndarray | None]] = []
        failed = []
        for call in tries:
            try:
                made.append(call())
            except (InfeasibleError, PolicyError) as error:  # another request may have an answer
                failed.append(error)
        if tries and not made:
            raise failed[0]
        if not made:
            found = self._with_larger_groups()
            enough_covered = self.population.covers(found.partition)
            made.append((found, None if enough_covered else np.tile(forms.tops, (task.histogram.cells, 1))))
        wide = [self._with_cheapest_forms(forms, found, floor) for found, floor in made]
        return self._proved(forms, min(wide, key=lambda tried: tried.loss))

    def _share(self, task: Task, share: float) -> Task:
        """The task with a share of its seconds."""
        seconds = task.effort.seconds
        return task.again(effort=task.effort if seconds is None else replace(task.effort, seconds=share * seconds))

    def _attempts(self, forms: Forms) -> list[Callable[[], tuple[Grouping, np.ndarray | None]]]:
        """Requests for a search: each returns a grouping, and levels from which on enough people are covered.

        None for the levels: what the groups' rows require suffices.
        """
        tries: list[Callable[[], tuple[Grouping, np.ndarray | None]]] = []
        histogram, base = self.task.histogram, self._base(forms)
        share = 1 / max(self.whole + (base is not None), 1)

        def raised_before(base: np.ndarray) -> tuple[Grouping, np.ndarray | None]:
            coarse = raised(self.task, base)
            found = solve(self._share(coarse.task, share), self.method)
            return replace(found, partition=coarse.back(found.partition)), base

        def one_level() -> tuple[Grouping, np.ndarray | None]:
            found = self._by_column(forms, replace(self.task, effort=Effort.of("fast")), GLOBAL)
            levels = found.certificate.details["levels"]
            return found, np.tile([levels[n] for n in histogram.quasi_names], (histogram.cells, 1))

        if base is not None:
            tries.append(lambda: raised_before(base))
        if self.whole:
            tries.append(lambda: (solve(self._share(self.strict, share), self.method), None))
        if self.method == "auto" and forms.few(histogram.cells):
            tries.append(one_level)
        return tries

    def _by_column(self, forms: Forms, task: Task, method: str = GLOBAL) -> Grouping:
        """One level for each column such that every class covers enough people."""
        histogram, population = task.histogram, self.population

        def admitted(levels: np.ndarray) -> np.ndarray:
            ours, theirs, size = forms.numbers(histogram.quasi.astype(np.int64), levels)
            people = np.bincount(theirs, weights=forms.people, minlength=size)
            rows = np.bincount(ours, weights=histogram.count, minlength=size)
            return np.asarray(((people >= population.k) & (rows <= (population.high + CLOSE) * people))[ours])

        found = solve(task.again(admits=_conjunction(task.admits, admitted)), method)
        return found if forms.exact else _without_proof(found)

    def _with_larger_groups(self) -> Grouping:
        """A grouping with the stricter condition.

        If not even the whole table meets that, with larger and larger groups.

        The last attempt is one group of all rows, which covers most. O(log rows) searches.
        """
        if self.whole:
            return solve(self.strict.again(), self.method)
        task, need, rows = self.task, self.task.requirement, self.task.histogram.rows
        k = 2 * max(need.smallest, 1)
        while k < rows:
            found = solve(task.again(requirement=replace(need, k=k)), self.method)
            if self.population.covers(found.partition):
                return found
            k *= 2
        return solve(task.again(requirement=replace(need, k=max(rows, 1))), self.method)

    def _refuse(self, forms: Forms) -> None:
        """Raise InfeasibleError if the highest levels that may be published cover too few people."""
        population, histogram = self.population, self.task.histogram
        whole, rows = int(forms.people.sum()), histogram.rows
        of_type, first = histogram.types
        codes = histogram.quasi[first].astype(np.int64)
        held = np.bincount(of_type, weights=histogram.count).astype(np.int64)
        least, share, where = whole, rows / whole, "all rows starred whole"
        if not forms.whole and forms.exact and not self.task.spare:
            where = "the highest levels allowed"
            ours, theirs, size = forms.numbers(codes, forms.tops)
            people = np.bincount(theirs, weights=forms.people, minlength=size)[ours]
            least = int(people.min())
            share = float((np.bincount(ours, weights=held)[ours] / people).max())
        if population.k > least:
            raise uncovered(KMap.short, where, population.k, least)
        if population.shares and share > population.high + CLOSE:
            raise uncovered(DeltaPresence.short, where, population.high, share)

    def _base(self, forms: Forms) -> np.ndarray | None:
        """int64[m, d]: levels for every cell such that their forms, and so all coarser ones, cover enough people.

        None if these levels are unknown.
        """
        of_type, first = self.task.histogram.types
        if not forms.few(first.size):
            return None
        codes = self.task.histogram.quasi[first].astype(np.int64)
        loss, levels = forms.cheapest(codes, np.zeros_like(codes), np.full(first.size, self.population.k))
        if not np.isfinite(loss).all():
            return None
        if self.population.shares:
            rows = np.bincount(of_type, weights=self.task.histogram.count).astype(np.int64)
            found = shared(forms, codes, rows, levels, self.population.high)
            if found is None:
                return None
            levels = found
        return levels[of_type]

    def _with_cheapest_forms(self, forms: Forms, found: Grouping, floor: np.ndarray | None) -> _WidePartition:
        """Groups with the cheapest forms, at or above what their rows require, that cover enough people.

        floor  int64[m, d]: levels of the cells at or above which the published forms of any groups cover enough people;
               None: what the rows require suffices
        """
        held, histogram, population = found.partition, self.task.histogram, self.population
        representative = histogram.quasi[held.cell[held.start]].astype(np.int64)
        asks = self.task.recoding.publish(histogram, held).first.astype(np.int64)
        tries = [asks if floor is None else np.maximum(asks, np.maximum.reduceat(floor[held.cell], held.start))]
        if forms.few(held.groups):
            loss, own = forms.cheapest(representative, asks, np.full(held.groups, population.k))
            dealt = shared(forms, representative, held.sizes, own, population.high) if population.shares else own
            if dealt is not None and np.isfinite(loss).all():
                tries.append(dealt)
        paid = [float(forms.loss(representative, levels) @ held.sizes) for levels in tries]
        least = int(np.argmin(paid))
        return _WidePartition(found, forms.published(representative, tries[least]), paid[least])

    def _proved(self, forms: Forms, best: _WidePartition) -> _WidePartition:
        """The optimum if the table is small enough to find it, else the given release; with its bound."""
        task, population, effort = self.task, self.population, self.task.effort
        other = self.method != "auto" or task.constraints.shards or task.constraints.max_average_risk
        if other or effort.name == "fast" or task.apart is not None or not forms.exact:
            return best
        seconds = SECONDS[effort.name] if effort.seconds is None else 0.3 * effort.seconds
        high = population.high if population.shares else None
        found = least_forms(forms, task.histogram, task.requirement, population.k, high, seconds)
        if found is None:
            return best
        best = best._replace(bound=found.bound)
        # otherwise the result would depend on the clock
        whole = effort.name != "balanced" or found.loss <= found.bound * (1 + CLOSE)
        representative = task.histogram.quasi[found.partition.cell[found.partition.start]].astype(np.int64)
        if not whole or found.loss >= best.loss * (1 - CLOSE):
            return best
        if population.shares and not enough(
            forms, representative, found.partition.sizes, found.levels, population.high
        ):
            return best  # a person too few, by rounding
        grouping = replace(best.grouping, partition=found.partition, method="optimal")
        return _WidePartition(grouping, forms.published(representative, found.levels), found.loss, found.bound)

    def certified(self, found: _WidePartition) -> Grouping:
        """The grouping with a bound for the actual request, because the search's bound is for a stricter one.

        The bound is the larger of two: the one without the population, which also holds for groups published coarser
        than their rows require, and that of the cheapest coarser forms that cover enough people.
        """
        made, histogram, recoding = found.grouping, self.task.histogram, self.task.recoding
        task = Task(histogram, self.task.requirement, recoding, self.task.effort)
        free = without(task, made.partition, made.method, starred=made.starred).certificate
        lower, argument = free.lower_bound, f"without the population: {free.bound}"
        details: dict[str, Any] = {"bounds": dict(free.details.get("bounds", {}))}
        prices = self._cheapest()
        bounds = {} if prices is None else {ARGUMENT: total(task, prices)}
        if found.bound:
            bounds[PROGRAM] = total(task, np.full(histogram.cells, found.bound / histogram.rows))
        for name, own in bounds.items():
            details["bounds"][name.partition(":")[0]] = own
            if own > lower:
                lower, argument = own, name
        cost = free.cost if found.shows is None else recoding.cost(histogram, made.partition, found.shows)
        if self.method == GLOBAL:  # otherwise the details are about another request
            kept = {n: v for n, v in made.certificate.details.items() if n not in ("bounds", "search")}
            details = {**kept, **details}
            cost = details["uniform_cost"]  # as it is published
            details["uniform_bound"] = max(lower, details["uniform_bound"])
        certificate = replace(
            free,
            cost=cost,
            lower_bound=tight(lower, cost, free.unit, argument),
            bound=argument,
            guarantee=Guarantee(),
            details=details,
        )
        return replace(made, certificate=certificate, shows=found.shows)

    def _cheapest(self) -> np.ndarray | None:
        """float64[m]: per cell, the least loss of a coarser form that covers enough people; None if unknown.

        If there are too many forms, the bound only uses that rare tuples must be published one level higher.
        """
        forms, histogram, recoding = self.forms, self.task.histogram, self.task.recoding
        fewest = self.population.fewest(self.task.requirement.smallest)
        of_type, first = histogram.types
        codes = histogram.quasi[first].astype(np.int64)
        if forms is not None and forms.exact and forms.few(first.size):
            if self.task.spare:  # completely starred rows are above the highest levels allowed
                forms = replace(forms, tops=np.array([c.levels - 1 for c in forms.columns], np.int64))
            best = forms.cheapest(codes, np.zeros_like(codes), np.full(first.size, fewest))[0]
            return np.where(np.isfinite(best), best, 0.0)[of_type]
        if any(c.pure.any() for c in recoding.columns):  # ends on a grid cover more at no further loss
            return None
        steps = np.full(histogram.cells, np.inf)
        for j, column in enumerate(recoding.columns):
            higher = column.raised()
            if higher is not None:
                steps = np.minimum(steps, (higher * column.weight)[histogram.quasi[:, j]])
        rare = self.population.of_tuples(histogram) < fewest
        return np.where(rare[of_type] & np.isfinite(steps), steps, 0.0)


def _forms(recoding: Recoding, population: Population) -> Forms | None:
    """The forms of a sample's tuples; None if a column has no levels."""
    columns = recoding.hierarchies
    if columns is None or population.classes is None:
        return None
    tops = np.array([c.ceiling for c in columns], np.int64)
    return Forms(columns, population.classes, population.codes, population.people, tops, population.exact)
