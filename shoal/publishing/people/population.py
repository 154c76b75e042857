"""A sample bound to its population: what a group must cover of it, or what the weights of its rows must add up to.

``shoal.problems.tables.constraints`` says how a search keeps that; the judge counts what is covered once more, from the
texts that are published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.table import Counted
from shoal.errors import PolicyError
from shoal.judge.originals.population import Census, check_of, covered, lacks, numbers, reading_of
from shoal.model.audit import Audit
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.histogram import Histogram, Partition
from shoal.model.policy import Policy
from shoal.model.privacy import Charge, DeltaPresence, KMap, Model, Requirement, Rule
from shoal.model.privacy.base import CLOSE
from shoal.model.privacy.requirement import refuse_unenforced
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Population, uncovered
from shoal.publishing.columns.recodings import Labels
from shoal.publishing.columns.text import column_texts


@dataclass(frozen=True, eq=False)
class Sample:
    """A table that was drawn from a population.

    population  what the search is told of it, but for how the columns are recoded
    values      per column the texts of the population's codes;  census: the population
    """

    population: Population
    values: tuple[Sequence[str | None], ...]
    census: Census

    def bound(
        self, asked: Policy, histogram: Histogram, recoding: Recoding, texts: list[list[str | None]],
        labels: list[Labels],
    ) -> Population:  # fmt: skip
        """The population for columns that are recoded so; InputError for a hierarchy that lacks one of its values."""

        def covers(partition: Partition) -> bool:
            """Whether what the groups publish covers enough people, by the judge's own reading of their texts."""
            shows = recoding.publish(histogram, partition)
            columns = column_texts(histogram, partition, recoding, shows, texts, labels, asked.star)
            shown = {c.name: pl.Series(c.texts, dtype=pl.String).gather(c.index) for c in columns}
            read = reading_of(asked, asked.publish, asked.hierarchies, {}, ())
            found = covered(pl.DataFrame(shown), asked.grouped, self.census, read, partition.sizes)
            return all(check_of(m, found).passes for m in self.population.models)

        classes, exact = self._classes(asked, recoding)
        return replace(self.population, classes=classes, exact=exact, covers=covers)

    def _classes(self, asked: Policy, recoding: Recoding) -> tuple[tuple[np.ndarray, ...] | None, bool]:
        """Per column the classes of the population's codes, and whether nobody is covered beyond those counted.

        Of a hierarchy generated from the sample nobody can say where values lie that only the population has: they are
        in no class below the star, which covers too few rather than too many.
        """
        columns, exact = recoding.hierarchies, True
        if columns is None:
            return None, True
        out = []
        for name, column, values in zip(asked.grouped, columns, self.values, strict=True):
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
                found, exact = _unknown_classes(column, len(values)), False
            out.append(found)
        return tuple(out), exact


def _unknown_classes(column: Levels, values: int) -> np.ndarray:
    """int64[levels, values]: a column's classes; values after its codes have classes of their own below a root."""
    new = np.arange(max(column.size, int(column.node.max(initial=0)) + 1), dtype=np.int64)[-1:] + 1
    out = [np.concatenate([level, new + np.arange(values - column.size)]) for level in column.node.astype(np.int64)]
    if (column.node[-1] == column.node[-1, :1]).all():
        out[-1][:] = column.node[-1, 0]
    return np.stack(out)


def sample_of(asked: Policy, counted: Counted, census: Census | None) -> Sample | None:
    """A table bound to the population it was drawn from; None where nothing is asked of one.

    Raises PolicyError for a model that cannot be enforced; InputError where the table is no part of the population.
    """
    models = _models(asked)
    if census is None or asked.weighed:
        return None
    census.refuse_smaller(counted.histogram.rows)
    values, codes = _in_codes(counted, census)
    made = Population(models, codes, census.rows.astype(np.int64))
    made.of_tuples(counted.histogram)  # a population holds its sample, also where nothing is asked of it
    return Sample(made, values, census) if models else None


def weighed_need(asked: Policy, counted: Counted, need: Requirement) -> Requirement:
    """What every group must meet, also of the people that its rows stand for by their weights, where these are given.

    The need has an entry for every column counted beside the sensitive.  Raises InputError for a weight that is none.
    """
    models, histogram = _models(asked), counted.histogram
    if not asked.weighed:
        return need
    place = len(asked.sensitive) + len(asked.units)
    weight = numbers(counted.sensitive[place].values, asked.weighed[0]).to_numpy()
    size = max((_heaviest(weight[histogram.sensitive[:, place]], histogram.count, _k(m)) for m in models), default=1)
    free = replace(need, k=max(need.k, size), frequency=(*need.frequency, 1), distinct=(*need.distinct, 1))
    rules = [Rule(Charge(m, tuple(weight.tolist()), float(_k(m)), once=False), (place,), (1,) * weight.size)
             for m in models]  # fmt: skip
    return replace(free, rules=(*free.rules, *rules))


def _models(asked: Policy) -> tuple[Model, ...]:
    models = tuple(m for m in asked.privacy if m.speaks == "population")
    for model in models:
        refuse_unenforced(model)
    return models


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


def refuse_uncovered(audit: Audit) -> None:
    """InfeasibleError where one group of all rows, the widest that ranges and sets can show, covers too few people."""
    for check in audit.checks:
        if not check.passes and check.short == KMap.short:
            raise uncovered(KMap.short, "all rows in one group", check.asked["k"], int(check.level or 0))
        if not check.passes and check.short == DeltaPresence.short:
            raise uncovered(DeltaPresence.short, "all rows in one group", check.asked["high"], float(check.level or 0))
