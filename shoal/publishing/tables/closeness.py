"""The hierarchical distance of t-closeness, bound to a table: every column its hierarchy, every value its classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from shoal.engines.codes import Coded
from shoal.errors import PolicyError
from shoal.model.hierarchy import Hierarchy
from shoal.model.policy import Policy
from shoal.model.privacy import Model, OfPersons, TCloseness


def trees_of(policy: Policy) -> dict[str, Hierarchy]:
    """The hierarchies of sensitive columns; PolicyError or InputError for one that cannot be read."""
    return {name: Hierarchy.of(policy.hierarchies[name]) for name in policy.sensitive if name in policy.hierarchies}


def on_trees(models: Sequence[Model], policy: Policy, sensitive: Sequence[Coded]) -> list[Model]:
    """The models with the hierarchical distance bound to every column that they speak of.

    Raises PolicyError for a value that the hierarchy of its column lacks.
    """
    out: list[Model] = []
    coded = {column.name: column for column in sensitive}
    for model in models:
        if isinstance(model, OfPersons):
            out += [replace(model, asked=bound) for bound in on_trees([model.asked], policy, sensitive)]
            continue
        if not isinstance(model, TCloseness) or model.unbound is None:
            out.append(model)
            continue
        trees = trees_of(policy)
        for name in policy.sensitive if model.column is None else (model.column,):
            if name not in trees:
                raise PolicyError(f"{model.unbound}; say hierarchies={{column: ...}}")
            out.append(model.on(trees[name].resolve(coded[name].texts(), name).node, name))
    return out
