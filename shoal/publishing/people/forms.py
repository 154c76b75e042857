"""The forms of a sample's tuples beside its population, and what any release must lose to hide in it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.judge.originals.population import lacks
from shoal.model.certificate import Guarantee, tight
from shoal.model.effort import Effort
from shoal.model.hierarchy import GENERATED, Hierarchy
from shoal.model.histogram import Histogram
from shoal.model.policy import Policy
from shoal.model.recoding import Levels, Published, Recoding
from shoal.model.task import Grouping, Task
from shoal.problems.tables.certify import certified as without
from shoal.problems.tables.others.forms import Forms
from shoal.problems.tables.search.bounds import total
from shoal.publishing.people.population import Study, cut, people_of

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
    for said, own in bounds.items():
        details["bounds"][said.partition(":")[0]] = own
        if own > lower:
            lower, argument = own, said
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
