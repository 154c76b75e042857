"""Persons and populations: the persons behind rows, and the population from which a table was drawn.

If persons have several rows, the person column is counted like a sensitive column, and is never published. If rows with
a missing quasi-identifier are grouped separately, both parts are counted on the published rows.

A sample is bound to its population by the number of people that a group must cover, or by the weights of its rows.
``shoal.problems.tables.constraints`` enforces this in a search; the judge counts the covered people again, from the
published texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.codes import encode
from shoal.engines.open import open_table
from shoal.engines.table import Counted, Table
from shoal.errors import InfeasibleError, InputError, PolicyError, VerificationError
from shoal.judge.tables.population import Census, Covered, check_of, covered, lacks, numbers, reading_of, weighed
from shoal.judge.tables.privacy import fewest, judge
from shoal.model.audit import Audit, Check
from shoal.model.cards import several
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.histogram import Histogram, Partition, mixed_radix
from shoal.model.notation import reader_of
from shoal.model.policy import Policy
from shoal.model.privacy import (
    AlphaKAnonymity,
    Charge,
    DeltaPresence,
    DistinctLDiversity,
    KAnonymity,
    KMap,
    Model,
    OfPersons,
    Requirement,
    Rule,
    refuse_unenforced,
)
from shoal.model.privacy.base import CLOSE
from shoal.model.privacy.population import counts_rows
from shoal.model.recoding import Levels, Recoding
from shoal.model.task import Population, refuse_infeasible, uncovered
from shoal.publishing.recodings import Labels, column_texts
from shoal.publishing.tables.limits import scales_of


def models_of(policy: Policy) -> Sequence[Model]:
    """The models on rows and persons. At least k different persons are distinct l = k of the person column, and models
    that count the rows of a value count persons."""
    if not policy.units:
        # models of a population are bound to it later
        return [m for m in policy.privacy if m.applies_to != "population"]
    if policy.publish == "centers":
        raise PolicyError("⟨publish='centers'⟩ counts rows; person and household go with stars, hierarchy and ranges")
    out: list[Model] = []
    for model in policy.privacy:
        k = getattr(model, "k", 1)
        if isinstance(model, (KAnonymity, AlphaKAnonymity)) and k > 1:
            out += [KAnonymity(k), *(DistinctLDiversity(k, column=name) for name in policy.units)]
        if isinstance(model, KAnonymity):
            continue
        if isinstance(model, DistinctLDiversity):
            columns = policy.sensitive if model.column is None else (model.column,)
            out += [replace(model, column=name) for name in columns]
        elif counts_rows(model):
            columns = policy.sensitive if model.column is None else (model.column,)
            named = [replace(model, column=name) for name in columns]  # type: ignore[call-arg, type-var]
            out += [OfPersons(m, unit, column=m.column) for m in named for unit in policy.units]
        else:  # a model of rows that differ pairwise: they also differ in their persons
            out.append(model)
    return out or [KAnonymity(1)]


def refuse_missing(counted: Counted, policy: Policy) -> None:
    """InputError for a row without a person."""
    for column in counted.sensitive[len(policy.sensitive) :][: len(policy.units)]:
        if None in column.texts():
            raise InputError(
                f"column {column.name!r} does not name a person in every row; fill it, or leave those rows out"
            )


def without_units(counted: Counted, partition: Partition, policy: Policy) -> tuple[Counted, Partition]:
    """The published table: cells that differ only in their persons or numbers of persons are merged."""
    if not policy.counting:
        return counted, partition
    old, s = counted.histogram, len(policy.sensitive)
    codes = np.concatenate([old.quasi, old.sensitive[:, :s]], axis=1)
    key = mixed_radix(codes, [*old.quasi_sizes, *old.sensitive_sizes[:s]])
    _, first, cell = np.unique(key, return_index=True, return_inverse=True)
    histogram = Histogram(
        quasi=old.quasi[first],
        sensitive=old.sensitive[first][:, :s],
        count=np.bincount(cell, weights=old.count).astype(np.int64),
        quasi_names=old.quasi_names,
        sensitive_names=old.sensitive_names[:s],
        quasi_sizes=old.quasi_sizes,
        sensitive_sizes=old.sensitive_sizes[:s],
    )
    joined = Partition.of(cell[partition.cell], partition.group, partition.count)
    where = cell[counted.cell] if counted.cell.size else counted.cell
    return Counted(histogram, counted.quasi, counted.sensitive[:s], where), joined


def judged(placed: Any, policy: Policy) -> tuple[Any, tuple[dict[str, int], tuple[Check, ...]], Covered | None]:
    """The placed table without the person columns, and the smallest number of persons in a class, counted on its rows.

    Also the levels of the models that count persons, and the weights of every class if rows represent several people.
    Raises VerificationError if a class has fewer than k.
    """
    if not policy.counting:
        return placed, ({}, ()), None
    table = open_table(placed)
    if policy.population_weights is not None:
        tuples, rows = table.counts([*policy.grouped, policy.population_weights])
        weights = weighed(tuples, policy.grouped, policy.population_weights, rows)
        leaves = policy.population_weights in policy.identifiers
        return table.without(policy.weighed) if leaves else placed, ({}, ()), weights
    found: dict[str, int] = {}
    asked = max((m.k for m in policy.privacy if isinstance(m, KAnonymity)), default=1)
    for name in policy.units:
        least = fewest(table.counts([*policy.grouped, name])[0], policy.grouped, name)
        if least is None:  # an empty table
            continue
        found[name] = least
        if least < asked:
            raise VerificationError(
                f"a class of the release has {least} different values of {name!r} where {asked} were asked; nothing "
                "was published. This is a defect of shoal: please report it"
            )
    checks: tuple[Check, ...] = ()
    if any(m not in policy.of_rows or m.applies_to == "tuples" for m in policy.privacy):
        cells, counts = table.counts([*policy.grouped, *policy.sensitive, *policy.units])
        models, how = [m for m in policy.privacy if m.applies_to != "rows"], scales_of(policy)
        audit = judge(cells, policy.grouped, policy.sensitive, models, persons=policy.units, counts=counts, **how)
        checks = tuple(c for c in audit.checks if "counted" in c.asked)
    return table.without(policy.units), (found, checks), None


FLAG = "__incomplete__"  # the column that marks rows without a quasi-identifier; it is never published


def flagged(table: Table, policy: Policy) -> Table:
    """The table with a column that marks rows without a quasi-identifier; PolicyError if this column's name is
    taken."""
    if policy.missing != "apart":
        return table
    if FLAG in table.columns:
        raise PolicyError(f"the table has a column {FLAG!r}, which ⟨missing='apart'⟩ needs itself; rename it")
    return table.with_missing(policy.grouped, FLAG)


def parts_of(counted: Counted, policy: Policy, need: Requirement) -> np.ndarray | None:
    """int64[cells]: 1 if a quasi-identifier is missing, otherwise 0; None if missing values aren't grouped separately.

    Raises InfeasibleError if one of the two parts alone doesn't meet the models.
    """
    if policy.missing != "apart":
        return None
    lacking = np.zeros(counted.histogram.cells, bool)
    for j, column in enumerate(counted.quasi):
        gone = np.array([text is None for text in column.texts()], bool)
        lacking |= gone[counted.histogram.quasi[:, j]]
    for part, words in ((lacking, "with a missing quasi-identifier"), (~lacking, "without one")):
        held = counted.histogram.part(np.flatnonzero(part))
        try:
            refuse_infeasible(held, need, lambda j, code: counted.sensitive[j].texts()[code] or "missing")
        except InfeasibleError as error:
            raise InfeasibleError(
                f"⟨missing='apart'⟩ groups the {several(held.rows, 'row')} {words} apart; among them alone: "
                + error.sentence.marked.replace("the whole table", "that part")
            ) from None
    return lacking.astype(np.int64)


def judged_by_part(placed: Any, counted: Counted, policy: Policy) -> tuple[Any, Mapping[str, Any] | None]:
    """The placed table without the column ``FLAG``, and figures: rows that lack a value, the smallest classes.

    The columns with missing values are also named, because in other columns of a text file a blank is an empty text.

    Rows that lack a value and the other rows are judged separately. Raises VerificationError if a model fails.
    """
    if policy.missing != "apart":
        return placed, None
    table = open_table(placed)
    names = [*policy.grouped, FLAG]
    cells, counts = table.counts([*names, *policy.sensitive, *policy.units])
    audit = judge(
        cells, names, policy.sensitive, policy.privacy, persons=policy.units, counts=counts, **scales_of(policy)
    )
    for found in audit.checks:
        if not found.passes:
            raise VerificationError(
                f"among the rows with a missing quasi-identifier, or those without, {found.model} reaches only "
                f"{found.level}; nothing was published. This is a defect of shoal: please report it"
            )
    facts = _facts(cells[FLAG].to_numpy().astype(bool), [cells[n] for n in policy.grouped], counts)
    gone = [name for name, column in zip(policy.grouped, counted.quasi, strict=True) if None in column.texts()]
    return table.without([FLAG]), {**facts, "columns": gone}


def _facts(lacking: np.ndarray, shown: Sequence[Any], counts: np.ndarray) -> dict[str, int]:
    frame = pl.DataFrame([s.alias(f"c{i}") for i, s in enumerate(shown)]).with_columns(
        pl.Series("apart", lacking), pl.Series("rows", counts)
    )
    sizes = frame.group_by(pl.exclude("rows")).agg(pl.col("rows").sum())
    part, size = sizes["apart"].to_numpy(), sizes["rows"].to_numpy()
    return {
        "rows": int(counts[lacking].sum()),
        "smallest": int(size[part].min()) if part.any() else 0,
        "smallest_of_others": int(size[~part].min()) if not part.all() else 0,
    }


@dataclass(frozen=True, eq=False)
class Sample:
    """A table that was drawn from a population.

    population  the population for the search, except for the recoding of columns
    values      for each column, the texts of the population's codes
    census      the population's table
    """

    population: Population
    values: tuple[Sequence[str | None], ...]
    census: Census

    def bound(
        self, asked: Policy, histogram: Histogram, recoding: Recoding, texts: list[list[str | None]],
        labels: list[Labels],
    ) -> Population:  # fmt: skip
        """The population for a recoding; InputError for a hierarchy that lacks one of its values."""

        def covers(partition: Partition) -> bool:
            """Whether the published texts of the groups cover enough people, as the judge counts them."""
            shows = recoding.publish(histogram, partition)
            columns = column_texts(histogram, partition, recoding, shows, texts, labels, asked.star)
            shown = {c.name: pl.Series(c.texts, dtype=pl.String).gather(c.index) for c in columns}
            read = reading_of(asked, asked.publish, asked.hierarchies, {}, ())
            found = covered(pl.DataFrame(shown), asked.grouped, self.census, read, partition.sizes)
            return all(check_of(m, found).passes for m in self.population.models)

        classes, exact = self._classes(asked, recoding)
        return replace(self.population, classes=classes, exact=exact, covers=covers)

    def _classes(self, asked: Policy, recoding: Recoding) -> tuple[tuple[np.ndarray, ...] | None, bool]:
        """The classes of the population's codes for each column, and whether only counted people are covered.

        In a hierarchy that is generated from the sample, the position of a value that only the population has is
        unknown. It is in no class below the star, so the count of covered people is a lower bound.
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
                    read = reader_of(asked.notations.get(name))
                    found = Hierarchy.of(source).resolve(values, name, read).node.astype(np.int64)
                except PolicyError:
                    raise lacks(name) from None
            if found is None or found.shape[0] != column.levels:
                found, exact = _unknown_classes(column, len(values)), False
            out.append(found)
        return tuple(out), exact


def _unknown_classes(column: Levels, values: int) -> np.ndarray:
    """int64[levels, values]: a column's classes. Values after its codes have classes of their own below a root."""
    new = np.arange(max(column.size, int(column.node.max(initial=0)) + 1), dtype=np.int64)[-1:] + 1
    out = [np.concatenate([level, new + np.arange(values - column.size)]) for level in column.node.astype(np.int64)]
    if (column.node[-1] == column.node[-1, :1]).all():
        out[-1][:] = column.node[-1, 0]
    return np.stack(out)


def sample_of(asked: Policy, counted: Counted, census: Census | None) -> Sample | None:
    """A table bound to its population; None if no model refers to a population.

    Raises PolicyError for a model that can't be enforced, InputError if the table isn't a part of the population.
    """
    models = _of_population(asked)
    if census is None or asked.weighed:
        return None
    census.refuse_smaller(counted.histogram.rows)
    values, codes = _in_codes(counted, census)
    made = Population(models, codes, census.rows.astype(np.int64))
    made.of_tuples(counted.histogram)  # check that the population contains the sample, even without a model
    return Sample(made, values, census) if models else None


def weighed_need(asked: Policy, counted: Counted, need: Requirement) -> Requirement:
    """The requirement for every group, extended to the people whom its rows represent if the table has weights.

    It has an entry for each column that is counted in addition to the sensitive ones. Raises InputError for an invalid
    weight.
    """
    models, histogram = _of_population(asked), counted.histogram
    if not asked.weighed:
        return need
    place = len(asked.sensitive) + len(asked.units)
    weight = numbers(counted.sensitive[place].values, asked.weighed[0]).to_numpy()
    size = max((_heaviest(weight[histogram.sensitive[:, place]], histogram.count, _k(m)) for m in models), default=1)
    free = replace(need, k=max(need.k, size), frequency=(*need.frequency, 1), distinct=(*need.distinct, 1))
    rules = [Rule(Charge(m, tuple(weight.tolist()), float(_k(m)), once=False), (place,), (1,) * weight.size)
             for m in models]  # fmt: skip
    return replace(free, rules=(*free.rules, *rules))


def _of_population(asked: Policy) -> tuple[Model, ...]:
    models = tuple(m for m in asked.privacy if m.applies_to == "population")
    for model in models:
        refuse_unenforced(model)
    return models


def _heaviest(weight: np.ndarray, count: np.ndarray, least: int) -> int:
    """The smallest number of rows whose weights add up to ``least`` people; all rows if there is none."""
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
    """The population's tuples in the sample's codes, by text; values that the sample lacks get further ones."""
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
    """InfeasibleError if one group of all rows, the widest for ranges and sets, covers too few people."""
    for check in audit.checks:
        if not check.passes and check.short == KMap.short:
            raise uncovered(KMap.short, "all rows in one group", check.asked["k"], int(check.level or 0))
        if not check.passes and check.short == DeltaPresence.short:
            raise uncovered(DeltaPresence.short, "all rows in one group", check.asked["high"], float(check.level or 0))
