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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.table import Counted
from shoal.errors import InfeasibleError, InputError
from shoal.judge.originals.population import Census, check_of, covered, numbers, reading_of
from shoal.model.audit import Audit
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.policy import Policy
from shoal.model.privacy import Charge, DeltaPresence, KMap, Model, Requirement, Rule
from shoal.model.privacy.base import CLOSE, said
from shoal.model.privacy.requirement import refuse_unenforced
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
            f"{widest} cover {level} rows of the population, so no group of k_map = {asked} exists; the largest k_map "
            f"possible is {level}"
        )
    text = said(level, up=True)
    return InfeasibleError(
        f"{widest} are the share {text} of the rows of the population that they cover, so no table with presence at "
        f"most {asked} exists; ask for {text} at the least"
    )
