"""Several rows per person: who stands behind the rows, counted beside the sensitive columns and never published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.engines.open import open_table
from shoal.engines.table import Counted
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.judge.originals.population import Covered, weighed
from shoal.judge.tables.privacy import judge
from shoal.judge.tables.units import fewest
from shoal.model.audit import Check
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.partition import Partition
from shoal.model.policy import Policy
from shoal.model.privacy import AlphaKAnonymity, DistinctLDiversity, KAnonymity, Model, OfPersons
from shoal.model.privacy.persons import counts_rows
from shoal.publishing.tables.closeness import trees_of


def models_of(policy: Policy) -> Sequence[Model]:
    """The models on rows and persons: at least k different persons is distinct l = k of the column that names them, and
    what counts the rows of a value counts persons."""
    if not policy.units:
        return [m for m in policy.privacy if m.speaks != "population"]  # those are bound to a population later
    if policy.publish == "centers":
        raise PolicyError("publish='centers' counts rows; person and household go with stars, hierarchy and ranges")
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
        else:  # of rows that differ pairwise: in who they are about as well
            out.append(model)
    return out or [KAnonymity(1)]


def refuse_missing(counted: Counted, policy: Policy) -> None:
    """InputError for a row of nobody."""
    for column in counted.sensitive[len(policy.sensitive) :][: len(policy.units)]:
        if None in column.texts():
            raise InputError(
                f"column {column.name!r} does not name a person in every row; fill it, or leave those rows out"
            )


def without_units(counted: Counted, partition: Partition, policy: Policy) -> tuple[Counted, Partition]:
    """What is published: cells that differ in who, or how many, stand behind them joined."""
    if not policy.beside:
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


def judged(placed: Any, policy: Policy) -> tuple[Any, dict[str, int], tuple[Check, ...], Covered | None]:
    """The placed table without the columns that name persons, and the fewest in a class, counted on its own rows.

    Likewise the levels of the models that count persons, and the weights of every class, where weights say how many
    people a row stands for.  Raises VerificationError where a class has fewer than k.
    """
    if not policy.beside:
        return placed, {}, (), None
    table = open_table(placed)
    if policy.population_weights is not None:
        tuples, rows = table.counts([*policy.grouped, policy.population_weights])
        weights = weighed(tuples, policy.grouped, policy.population_weights, rows)
        leaves = policy.population_weights in policy.identifiers
        return table.without(policy.weighed) if leaves else placed, {}, (), weights
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
    if any(m not in policy.of_rows or m.speaks == "tuples" for m in policy.privacy):
        cells, counts = table.counts([*policy.grouped, *policy.sensitive, *policy.units])
        models, trees = [m for m in policy.privacy if m.speaks != "rows"], trees_of(policy)
        audit = judge(cells, policy.grouped, policy.sensitive, models, persons=policy.units, counts=counts, trees=trees)
        checks = tuple(c for c in audit.checks if "counted" in c.asked)
    return table.without(policy.units), found, checks, None
