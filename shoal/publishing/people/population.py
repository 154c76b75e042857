"""A sample beside its population: what the search asks of a group, and what any release must lose to hide in it.

What a group publishes covers rows of the population, and how many depends on how it is published, which may be wider
than its rows ask.  The widest that can be published decides whether a release exists: every column at its highest level
(ranges and sets: one group of all rows).  Of k-map no group covers more; of delta-presence every set of groups covers
the fewer, the narrower they are, so a share that the widest break all break.

Two questions are put to a search, and the cheaper answer is taken.  One asks for something stricter that can be asked
quickly: the population of the group's own different tuples (k-map), or the part of it that falls to the group's rows
(delta-presence).  The other raises every tuple beforehand to a form that covers enough people (``forms``) and then asks
for nothing: whatever groups are made publish coarser forms, which cover whom their rows' forms covered.  At the end
every group takes the cheapest form at or above what its rows ask that covers enough.

The judge counts what is covered; so does the lower bound, row by row: whatever group a row lies in publishes a coarser
form of its tuple, which covers enough people.

The forms of a sample's tuples beside its population, and what any release must lose to hide in it.

A search beside a population table: what is asked of it, and how wide every group is published in the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.table import Counted
from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.judge.originals.population import Census, check_of, covered, lacks, numbers, reading_of
from shoal.model.arguments import Effort
from shoal.model.audit import Audit
from shoal.model.certificate import Guarantee, tight
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.policy import Policy
from shoal.model.privacy import Charge, DeltaPresence, KMap, Model, Requirement, Rule
from shoal.model.privacy.base import CLOSE, said
from shoal.model.privacy.requirement import refuse_unenforced
from shoal.model.recoding import Levels, Published, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.bounds.bounds import total
from shoal.problems.tables.bounds.certify import certified as without
from shoal.problems.tables.generalizations import SECONDS, Forms, enough, least_forms, raised, shared
from shoal.publishing.columns.text import ColumnText

TUPLE = "__population_tuple__"


@dataclass(frozen=True, eq=False)
class Study:
    """A sample with its population, ready for the search.

    histogram  the sample's, with the number of its tuple as one more column where the population is a table
    need       what the search asks of every group; free: the same without the population
    census     the population; codes int64[p, d] its tuples in the sample's codes, new values after them
    values     per column the texts of those codes; fewest: people that every group has to cover
    models     those of the population
    apart      int64[cells]  cells of different numbers never share a group; None: any may
    """

    histogram: Histogram
    need: Requirement
    free: Requirement
    census: Census | None = None
    codes: np.ndarray | None = None
    values: tuple[Sequence[str | None], ...] = ()
    fewest: int = 0
    apart: np.ndarray | None = None
    models: tuple[Model, ...] = ()

    @property
    def asked(self) -> bool:
        """Whether a model of a population table is to be kept."""
        return self.census is not None and len(self.need.rules) > len(self.free.rules)

    @property
    def strict(self) -> bool:
        """Whether the whole table, or each part kept apart, meets what is asked; else one group of it decides."""
        h, new = self.histogram, self.need.rules[len(self.free.rules) :]
        parts = [np.ones(h.cells, bool)] if self.apart is None else [self.apart == n for n in np.unique(self.apart)]
        return not h.rows or all(rule.holds(h.sensitive[p], h.count[p]) for rule in new for p in parts)

    @property
    def k(self) -> int:
        """People that every group has to cover under k-map, at least 1."""
        return max((m.k for m in self.models if isinstance(m, KMap)), default=1)

    @property
    def high(self) -> float:
        """The largest share of the people covered that delta-presence allows, at most 1."""
        return min((m.high for m in self.models if isinstance(m, DeltaPresence)), default=1.0)

    @cached_property
    def shares(self) -> bool:
        """Whether delta-presence is asked."""
        return any(isinstance(m, DeltaPresence) for m in self.models)

    def holds(self, asked: Policy, columns: Sequence[ColumnText], sizes: np.ndarray) -> bool:
        """Whether groups of int64 sizes that publish some texts cover enough people of the population."""
        assert self.census is not None
        shown = {c.name: pl.Series(c.texts, dtype=pl.String).gather(c.index) for c in columns}
        read = reading_of(asked, asked.publish, asked.hierarchies, {}, ())
        found = covered(pl.DataFrame(shown), asked.grouped, self.census, read, sizes)
        return all(check_of(m, found).passes for m in asked.privacy if m.speaks == "population")


def study(
    asked: Policy, counted: Counted, need: Requirement, census: Census | None, apart: np.ndarray | None = None
) -> Study:
    """Bind the models of a population to a sample; the need has an entry for every column counted beside the sensitive.

    Raises PolicyError for a model that cannot be enforced; InputError where the sample is no part of the population,
    or for a weight that is none.
    """
    models = [m for m in asked.privacy if m.speaks == "population"]
    for model in models:
        refuse_unenforced(model)
    histogram = counted.histogram
    if asked.weighed:
        place = len(asked.sensitive) + len(asked.units)
        weight = numbers(counted.sensitive[place].values, asked.weighed[0]).to_numpy()
        size = max(
            (_heaviest(weight[histogram.sensitive[:, place]], histogram.count, _k(m)) for m in models), default=1
        )
        free = replace(need, k=max(need.k, size), frequency=(*need.frequency, 1), distinct=(*need.distinct, 1))
        rules = [Rule(Charge(m, tuple(weight.tolist()), float(_k(m)), once=False), (place,), (1,) * weight.size)
                 for m in models]  # fmt: skip
        return Study(histogram, replace(free, rules=(*free.rules, *rules)), free, apart=apart, models=tuple(models))
    if census is None:
        return Study(histogram, need, need, apart=apart)
    values, codes = _in_codes(counted, census)
    return beside(histogram, need, models, census, values, codes, asked.grouped, apart)


def beside(
    histogram: Histogram, need: Requirement, models: Sequence[Model], census: Census,
    values: tuple[Sequence[str | None], ...], codes: np.ndarray, names: Sequence[str], apart: np.ndarray | None = None,
) -> Study:  # fmt: skip
    """The study of a sample whose population is given in its codes; names are those of the columns."""
    people = people_of(histogram, codes, census, names)
    of_type, first = histogram.types
    searched = replace(
        histogram,
        sensitive=np.column_stack([histogram.sensitive, of_type]).astype(np.int32),
        sensitive_names=(*histogram.sensitive_names, TUPLE),
        sensitive_sizes=(*histogram.sensitive_sizes, int(first.size)),
    )
    free = replace(need, frequency=(*need.frequency, 1), distinct=(*need.distinct, 1))
    rows = np.bincount(of_type, weights=histogram.count, minlength=first.size).astype(np.int64)
    where = (len(histogram.sensitive_names),)
    rules = [Rule(m.charge(rows, people), where, tuple(rows.tolist())) for m in models
             if isinstance(m, (KMap, DeltaPresence))]  # fmt: skip
    least = max((_fewest(m, need.smallest) for m in models), default=0)
    wants = replace(free, rules=(*free.rules, *rules))
    return Study(searched, wants, free, census, codes, values, least, apart, tuple(models))


def _heaviest(weight: np.ndarray, count: np.ndarray, least: int) -> int:
    """Fewest rows whose weights add up to so many people; all of them where none do."""
    order = np.argsort(-weight, kind="stable")
    rows = count[order].cumsum()
    people = (weight * count)[order].cumsum()
    wanted = least - CLOSE * max(1, least)
    last = int(np.searchsorted(people, wanted))
    if last == rows.size:
        return int(count.sum())
    return int(rows[last] - (people[last] - wanted) // weight[order[last]])


def _k(model: Model) -> int:
    return model.k if isinstance(model, KMap) else 1


def _fewest(model: Model, rows: int) -> int:
    """People that a group of at least so many rows has to cover."""
    if isinstance(model, DeltaPresence):
        return math.ceil(rows / model.high - 1e-9)
    return _k(model)


def _in_codes(counted: Counted, census: Census) -> tuple[tuple[list[str | None], ...], np.ndarray]:
    """The population's tuples in the sample's codes, matched by text; values the sample lacks get codes after its."""
    out, values = [], []
    for column in counted.quasi:
        texts = column.texts()
        known: dict[str | None, int] = {t: i for i, t in enumerate(texts)}
        theirs = encode(census.tuples[column.name])
        number = np.array([known.setdefault(t, len(known)) for t in theirs.texts()], np.int64)
        out.append(number[theirs.codes] if len(number) else np.zeros(0, np.int64))
        values.append(list(known))
    return tuple(values), np.column_stack(out) if out else np.zeros((census.rows.size, 0), np.int64)


def people_of(histogram: Histogram, codes: np.ndarray, census: Census, names: Sequence[str]) -> np.ndarray:
    """int64[types]: rows of the population with the tuple of each type."""
    census.refuse_smaller(histogram.rows)
    of_type, first = histogram.types
    mine = histogram.quasi[first].astype(np.int64)
    both = np.concatenate([mine, codes])
    key = mixed_radix(both, (both.max(axis=0) + 1).tolist() if both.size else [1] * both.shape[1])
    distinct, number = np.unique(key, return_inverse=True)
    held = np.bincount(number[first.size :], weights=census.rows, minlength=distinct.size)
    people = held[number[: first.size]].astype(np.int64)
    rows = np.bincount(of_type, weights=histogram.count, minlength=first.size)
    lacking = int((people < rows).sum())
    if lacking:
        new = [n for j, n in enumerate(names) if not np.isin(mine[:, j], codes[:, j]).all()]
        hint = f"column {new[0]!r} has values that the population lacks" if new else "a population holds its sample"
        raise InputError(
            f"{lacking:,} of the {first.size:,} combinations of quasi-identifiers in the sample stand in the "
            f"population less often than in the sample ({hint}); both tables must write values alike"
        )
    return people


def cut(need: Requirement, columns: int) -> Requirement:
    """A requirement without the entries of columns that were added at the end."""
    return replace(need, frequency=need.frequency[:columns], distinct=need.distinct[:columns])


def refuse_uncovered(audit: Audit) -> None:
    """InfeasibleError where one group of all rows, the widest that ranges and sets can show, covers too few people."""
    for check in audit.checks:
        if not check.passes and check.short == KMap.short:
            raise uncovered(KMap.short, "all rows in one group", check.asked["k"], int(check.level or 0))
        if not check.passes and check.short == DeltaPresence.short:
            raise uncovered(DeltaPresence.short, "all rows in one group", check.asked["high"], float(check.level or 0))


def uncovered(short: str, widest: str, asked: float, level: float) -> InfeasibleError:
    """Why the widest that can be published keeps a model of the population from being met."""
    if short == KMap.short:
        return InfeasibleError(
            f"{widest} cover {level} rows of the population, so no group of ⟨k_map⟩ = {asked} exists; the "
            "largest ⟨k_map⟩ "
            f"possible is {level}"
        )
    text = said(level, up=True)
    return InfeasibleError(
        f"{widest} are the share {text} of the rows of the population that they cover, so no table with presence at "
        f"most {asked} exists; ask for {text} at the least"
    )


ARGUMENT = "population: per row the cheapest coarser form of its tuple that covers enough people"
PROGRAM = "integer program: the release of least loss, or what its relaxation leaves"


def certified(
    found: Grouping,
    study: Study,
    histogram: Histogram,
    recoding: Recoding,
    asked: Policy,
    shows: Published | None = None,
    proved: float = 0.0,
) -> Grouping:
    """The grouping with a bound on every release that the population allows: the search's own asked for more.

    shows  what its groups publish, where that is not given by the grouping itself; proved  what no release undercuts,
           summed over the rows
    The bound is the larger of the one without the population, which holds for groups published wider than their rows
    ask as well, and of the cheapest coarser forms that cover enough.
    """
    if not study.asked or not histogram.rows:
        return found
    task = Task(histogram, cut(study.free, len(histogram.sensitive_names)), recoding, Effort.of(asked.effort))
    free = without(task, found.partition, found.method, starred=found.starred).certificate
    lower, argument = free.lower_bound, f"without the population: {free.bound}"
    details: dict[str, Any] = {"bounds": dict(free.details.get("bounds", {}))}
    prices = _cheapest(study, histogram, recoding, asked)
    bounds = {} if prices is None else {ARGUMENT: total(task, prices)}
    if proved:
        bounds[PROGRAM] = total(task, np.full(histogram.cells, proved / histogram.rows))
    for name, own in bounds.items():
        details["bounds"][name.partition(":")[0]] = own
        if own > lower:
            lower, argument = own, name
    cost = free.cost if shows is None else recoding.cost(histogram, found.partition, shows)
    if asked.global_recoding:  # else what was found out is of another question
        details = {**{n: v for n, v in found.certificate.details.items() if n not in ("bounds", "search")}, **details}
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
    return replace(found, certificate=certificate)


def _cheapest(study: Study, histogram: Histogram, recoding: Recoding, asked: Policy) -> np.ndarray | None:
    """float64[m]: per cell the least loss of a coarser form that covers enough people; None where none is known.

    Where too many forms would have to be looked at, only that rare tuples must be published one level higher.
    """
    assert study.census is not None
    assert study.codes is not None
    forms = forms_of(study, recoding, asked)
    of_type, first = histogram.types
    codes = histogram.quasi[first].astype(np.int64)
    if forms is not None and forms.exact and forms.few(first.size):
        if asked.max_suppressed:  # what is starred whole is above the highest levels allowed
            forms = replace(forms, tops=np.array([c.levels - 1 for c in forms.columns], np.int64))
        best = forms.cheapest(codes, np.zeros_like(codes), np.full(first.size, study.fewest))[0]
        return np.where(np.isfinite(best), best, 0.0)[of_type]
    if asked.range_step:
        return None
    steps = np.full(histogram.cells, np.inf)
    for j, column in enumerate(recoding.columns):
        raised = column.raised()
        if raised is not None:
            steps = np.minimum(steps, (raised * column.weight)[histogram.quasi[:, j]])
    rare = people_of(histogram, study.codes, study.census, asked.grouped) < study.fewest
    return np.where(rare[of_type] & np.isfinite(steps), steps, 0.0)


def forms_of(study: Study, recoding: Recoding, asked: Policy) -> Forms | None:
    """The forms of a sample's tuples; None where a column has no levels.

    Of a hierarchy generated from the sample nobody can say where values lie that only the population has: they are in
    no class below the star, which covers too few rather than too many.
    """
    columns = recoding.hierarchies
    if columns is None:
        return None
    assert study.census is not None
    assert study.codes is not None
    nodes, exact = [], True
    for j, (name, column) in enumerate(zip(asked.grouped, columns, strict=True)):
        values = study.values[j]
        source = asked.hierarchies.get(name) if asked.publish == "hierarchy" else None
        found = None
        if source is None:
            found = np.stack([np.arange(len(values)), np.zeros(len(values), np.int64)])
        elif not (isinstance(source, str) and source in GENERATED):
            try:
                found = Hierarchy.of(source).resolve(values, name).node.astype(np.int64)
            except PolicyError:
                raise lacks(name) from None
        if found is None or found.shape[0] != column.levels:
            found, exact = _apart(column, len(values)), False
        nodes.append(found)
    tops = np.array([c.ceiling for c in columns], np.int64)
    return Forms(columns, tuple(nodes), study.codes, study.census.rows.astype(np.int64), tops, exact)


def _apart(column: Levels, values: int) -> np.ndarray:
    """int64[levels, values]: a column's classes; values after its codes have classes of their own below a root."""
    new = np.arange(max(column.size, int(column.node.max(initial=0)) + 1), dtype=np.int64)[-1:] + 1
    out = [np.concatenate([level, new + np.arange(values - column.size)]) for level in column.node.astype(np.int64)]
    if (column.node[-1] == column.node[-1, :1]).all():
        out[-1][:] = column.node[-1, 0]
    return np.stack(out)


Solve = Callable[..., Grouping]
Holds = Callable[[Grouping], bool]


class PublishedGrouping(NamedTuple):
    """A grouping, and what its groups publish where that is not given by it; its loss summed over the rows.

    bound  no release loses less, summed over the rows as well
    """

    grouping: Grouping
    shows: Published | None = None
    loss: float = np.inf
    bound: float = 0.0


def solved(
    study: Study, histogram: Histogram, recoding: Recoding, asked: Policy, ask: Solve, holds: Holds
) -> PublishedGrouping:
    """A grouping that keeps what is asked of the population, and what its groups publish.

    ask    solves a requirement: ``ask(need)``, and as keywords what is otherwise the sample's and the policy's: held
           (a histogram), shown (a recoding), apart, method, effort, share (of the seconds) and admits
    holds  whether what a grouping publishes by itself covers enough people

    Raises InfeasibleError where even the widest forms cover too few.  Up to three searches.
    """
    if not study.asked:
        return PublishedGrouping(ask(study.need))
    forms = forms_of(study, recoding, asked)
    if forms is None:
        return PublishedGrouping(_by_larger(study, ask, holds))
    _refuse(study, histogram, forms, asked)
    free = cut(study.free, len(histogram.sensitive_names))

    def by_column(**how: str) -> Grouping:
        found = ask(free, held=histogram, admits=lambda levels: _admitted(study, histogram, forms, levels), **how)
        if forms.exact:
            return found
        facts = {n: v for n, v in found.certificate.details.items() if n != "proved"}
        certificate = replace(found.certificate, details=facts | {"uniform_bound": 0, "uniform_optimal": False})
        return replace(found, certificate=certificate)

    if asked.global_recoding:
        return PublishedGrouping(by_column())
    tries = _tries(study, histogram, recoding, forms, asked, ask, by_column)
    made, failed = [], []
    for call in tries:
        try:
            made.append(call())
        except (InfeasibleError, PolicyError) as error:  # the one question may have no answer where the other has one
            failed.append(error)
    if tries and not made:
        raise failed[0]
    if not made:
        found = _by_larger(study, ask, holds)
        made.append((found, None if holds(found) else np.tile(forms.tops, (histogram.cells, 1))))
    best: PublishedGrouping | None = None
    for found, floor in made:
        tried = _narrowest(study, forms, histogram, recoding, found, floor)
        if best is None or tried.loss < best.loss:
            best = tried
    assert best is not None
    return _proved(study, forms, histogram, asked, best)


def _tries(
    study: Study, histogram: Histogram, recoding: Recoding, forms: Forms, asked: Policy, ask: Solve, by_column: Solve
) -> list[Callable[[], tuple[Grouping, np.ndarray | None]]]:
    """Questions to put to a search: each gives a grouping and levels of the cells, at or above which it covers enough.

    None for the levels: what the groups' rows ask does.
    """
    tries: list[Callable[[], tuple[Grouping, np.ndarray | None]]] = []
    base = _base(study, histogram, forms)
    share = 1 / max(study.strict + (base is not None), 1)

    def raised_before(base: np.ndarray) -> tuple[Grouping, np.ndarray | None]:
        need = cut(study.free, len(histogram.sensitive_names))
        coarse = raised(Task(histogram, need, recoding, apart=study.apart), base)
        small = coarse.task
        found = ask(need, held=small.histogram, shown=small.recoding, apart=small.apart, share=share)
        return replace(found, partition=coarse.back(found.partition)), base

    def one_level() -> tuple[Grouping, np.ndarray | None]:
        found = by_column(method="global_recoding", effort="fast")
        levels = found.certificate.details["levels"]
        return found, np.tile([levels[n] for n in histogram.quasi_names], (histogram.cells, 1))

    if base is not None:
        tries.append(lambda: raised_before(base))
    if study.strict:
        tries.append(lambda: (ask(study.need, share=share), None))
    if asked.method == "auto" and forms.few(histogram.cells):
        tries.append(one_level)
    return tries


def _proved(
    study: Study, forms: Forms, histogram: Histogram, asked: Policy, best: PublishedGrouping
) -> PublishedGrouping:
    """The best of all releases where the table is small enough to find it, else the one in hand; with its bound."""
    effort = Effort.of(asked.effort)
    other = asked.method != "auto" or asked.shards is not None or asked.max_average_risk is not None
    if other or effort.name == "fast" or study.apart is not None or not forms.exact:
        return best
    seconds = SECONDS[effort.name] if effort.seconds is None else 0.3 * effort.seconds
    need = cut(study.free, len(histogram.sensitive_names))
    found = least_forms(forms, histogram, need, study.k, study.high if study.shares else None, seconds)
    if found is None:
        return best
    best = best._replace(bound=found.bound)
    whole = effort.name != "balanced" or found.loss <= found.bound * (1 + CLOSE)  # else the clock would decide
    someone = histogram.quasi[found.partition.cell[found.partition.start]].astype(np.int64)
    if not whole or found.loss >= best.loss * (1 - CLOSE):
        return best
    if study.shares and not enough(forms, someone, found.partition.sizes, found.levels, study.high):
        return best  # a person too little, by rounding
    grouping = replace(best.grouping, partition=found.partition, method="optimal")
    return PublishedGrouping(grouping, forms.published(someone, found.levels), found.loss, found.bound)


def _by_larger(study: Study, ask: Solve, holds: Holds) -> Grouping:
    """A grouping by what the search asks; where not even the whole table meets that, by larger and larger groups.

    The last try is one group of all rows, which covers most.  O(log rows) searches.
    """
    if study.strict:
        return ask(study.need)
    k, rows = 2 * max(study.free.smallest, 1), study.histogram.rows
    while k < rows:
        found = ask(replace(study.free, k=k))
        if holds(found):
            return found
        k *= 2
    return ask(replace(study.free, k=max(rows, 1)))


def _refuse(study: Study, histogram: Histogram, forms: Forms, asked: Policy) -> None:
    """InfeasibleError where the highest levels that may be published cover too few people."""
    whole, rows = int(forms.people.sum()), histogram.rows
    of_type, first = histogram.types
    codes = histogram.quasi[first].astype(np.int64)
    held = np.bincount(of_type, weights=histogram.count).astype(np.int64)
    least, share, where = whole, rows / whole, "all rows starred whole"
    if not forms.whole and forms.exact and not asked.max_suppressed:
        where = "the highest levels allowed"
        ours, theirs, size = forms.numbers(codes, forms.tops)
        people = np.bincount(theirs, weights=forms.people, minlength=size)[ours]
        least = int(people.min())
        share = float((np.bincount(ours, weights=held)[ours] / people).max())
    if study.k > least:
        raise uncovered(KMap.short, where, study.k, least)
    if study.shares and share > study.high + CLOSE:
        raise uncovered(DeltaPresence.short, where, study.high, share)


def _admitted(study: Study, histogram: Histogram, forms: Forms, levels: np.ndarray) -> np.ndarray:
    """bool[m]: whether the class of every cell, at levels int[d] for all of them, covers enough people."""
    ours, theirs, size = forms.numbers(histogram.quasi.astype(np.int64), levels)
    people = np.bincount(theirs, weights=forms.people, minlength=size)
    rows = np.bincount(ours, weights=histogram.count, minlength=size)
    return np.asarray(((people >= study.k) & (rows <= (study.high + CLOSE) * people))[ours])


def _base(study: Study, histogram: Histogram, forms: Forms) -> np.ndarray | None:
    """int64[m, d]: levels for every cell such that their forms, and so all coarser ones, cover enough people.

    None where that is not known.
    """
    of_type, first = histogram.types
    if not forms.few(first.size):
        return None
    codes = histogram.quasi[first].astype(np.int64)
    loss, levels = forms.cheapest(codes, np.zeros_like(codes), np.full(first.size, study.k))
    if not np.isfinite(loss).all():
        return None
    if study.shares:
        rows = np.bincount(of_type, weights=histogram.count).astype(np.int64)
        found = shared(forms, codes, rows, levels, study.high)
        if found is None:
            return None
        levels = found
    return levels[of_type]


def _narrowest(
    study: Study, forms: Forms, histogram: Histogram, recoding: Recoding, found: Grouping, floor: np.ndarray | None
) -> PublishedGrouping:
    """Groups with the cheapest forms at or above what their rows ask that cover enough people.

    floor  int64[m, d]  levels of the cells at or above which what any groups publish covers enough; None: what the rows
           ask does
    """
    held = found.partition
    someone = histogram.quasi[held.cell[held.start]].astype(np.int64)
    asks = recoding.publish(histogram, held).first.astype(np.int64)
    tries = [asks if floor is None else np.maximum(asks, np.maximum.reduceat(floor[held.cell], held.start))]
    if forms.few(held.groups):
        loss, own = forms.cheapest(someone, asks, np.full(held.groups, study.k))
        dealt = shared(forms, someone, held.sizes, own, study.high) if study.shares else own
        if dealt is not None and np.isfinite(loss).all():
            tries.append(dealt)
    paid = [float(forms.loss(someone, levels) @ held.sizes) for levels in tries]
    least = int(np.argmin(paid))
    return PublishedGrouping(found, forms.published(someone, tries[least]), paid[least])
