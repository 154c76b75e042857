"""Any table measured, ours or not: levels of every privacy model, risks, class sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from shoal.engines.oddities import notes
from shoal.engines.open import open_table
from shoal.engines.scope import Scope
from shoal.engines.table import Table, require
from shoal.judge.population import beside, foreign, outside, sized
from shoal.judge.wildcards import wildcards
from shoal.model.arguments import known, mapping, number
from shoal.model.audit import Audit
from shoal.model.policy import Policy
from shoal.model.privacy import PrivacyModel
from shoal.model.settings import ModelSettings
from shoal.publishing.closeness import trees_of
from shoal.publishing.opening import read_census


def audit(
    data: Any,
    *,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    person: str | None = None,
    household: str | None = None,
    population: Any = None,
    population_weights: str | None = None,
    population_size: int | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    missing: str = "category",
    threshold: float = 0.2,
    engine: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    memory: str | None = None,
    threads: int | None = None,
    temporary: str | Path | None = None,
    glob: bool = False,
    table: str | None = None,
    query: str | None = None,
    master: str | None = None,
    **models: Unpack[ModelSettings],
) -> Audit:
    """Levels of every privacy model, risks and class sizes of any table, ours or not.

    person, household  columns that name who a row is about: their different values are counted, and k is judged on them
    population         the table the rows were drawn from: what every class covers of it is counted, for k-map,
                       delta-presence and the journalist's risk; population_weights: the column that says instead how
                       many people a row stands for; population_size: how many people there are, where no more is known
    hierarchies        per column the hierarchy its values are classes of; without one a published value is itself, a
                       star, or a range or set as this package writes them.  Of a sensitive column: how far apart its
                       values are, for t-closeness by the hierarchical distance
    missing            "category": a missing value is a value of its own; "wildcard": beside that, ``wildcards`` of the
                       Audit has the risks with missing values and stars alike to every value
    models             k=5, l=3, privacy=[...]: what should hold; each becomes a check of the Audit
    memory, threads, temporary, glob, table, query, master  as in ``anonymize``: a folder is counted where it stands
    """
    threshold = number("threshold", threshold, "a risk is above 0 and at most 1", lambda x: 0 < x <= 1)
    known("reading of missing values", missing, ("category", "wildcard"))
    names = Policy.of(
        quasi_identifiers=quasi_identifiers,
        sensitive=sensitive,
        person=person,
        household=household,
        population=population,
        population_weights=population_weights,
        hierarchies={n: h for n, h in mapping("hierarchies", hierarchies).items() if n in sensitive},
        **({"k": 1} | models),
    )
    needed = [*names.quasi_identifiers, *names.sensitive, *names.beside]
    scope = Scope(memory, threads, temporary, glob, table, query, master)
    opened = open_table(data, engine, separator=separator, encoding=encoding, needed=needed, scope=scope)
    require(opened.columns, needed)
    census = None if population is None else read_census(population, names.quasi_identifiers, engine=engine)
    asked = names.privacy if models else ()

    def beyond(frame: pl.DataFrame, judged: Audit) -> Audit:
        if missing == "wildcard":
            judged = replace(judged, wildcards=wildcards(frame, names.quasi_identifiers, threshold, names.star))
        people = outside(frame, names, census, foreign(names.star, hierarchies or {}), None)
        return judged if people is None else beside(judged, people, asked)

    rows = missing == "wildcard" or population is not None or bool(names.weighed)
    found = audit_table(opened, names, threshold, asked, names.units, beyond if rows else None)
    if population_size is not None and found.population is None:
        found = sized(found, population_size)
    return replace(found, notes=notes(opened.count(names.quasi_identifiers, names.sensitive)))


def audit_table(
    table: Table,
    policy: Policy,
    threshold: float,
    models: Sequence[PrivacyModel],
    units: Sequence[str] = (),
    outside: Callable[[pl.DataFrame, Audit], Audit] | None = None,
) -> Audit:
    """Judge an opened table: of an engine's only cells and counts come back; units: columns that name persons."""
    from shoal.judge.privacy import judge

    trees = trees_of(policy)
    names = [*policy.grouped, *policy.sensitive, *units]
    names += [n for n in policy.weighed if n in table.columns]
    if not table.in_memory and outside is None:
        cells, counts = table.counts(names)
        return judge(cells, policy.grouped, policy.sensitive, models, threshold, units, counts, trees)
    frame = table.polars(names)  # what is counted beside a population is counted by rows
    audit = judge(frame, policy.grouped, policy.sensitive, models, threshold, units, trees=trees)
    return audit if outside is None else outside(frame, audit)
