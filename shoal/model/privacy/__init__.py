"""Privacy models, and the requirement that the models of a request form together.

A model is a small immutable value with a name, a statement about monotonicity, and a source. ``MODELS`` has every model
with a keyword in ``shoal.model.settings``. To add a model, add a module here and a line there; policies, flags, audits,
and certificates then support it. Algorithms see models only as a ``Requirement``: all models of a request, applied to
one table. The judge implements each model again in a module of the same name in ``shoal.judge.models``, and shares no
code with this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.model.histogram import Histogram
from shoal.model.privacy.base import Measure, Model, describe
from shoal.model.privacy.closeness import BetaLikeness, DeltaDisclosure, TCloseness, TreeCloseness
from shoal.model.privacy.population import Charge, DeltaPresence, KMap, OfPersons, pairs
from shoal.model.privacy.size_and_diversity import (
    AlphaKAnonymity,
    DistinctLDiversity,
    EntropyLDiversity,
    KAnonymity,
    LDiversity,
    RecursiveLDiversity,
    SimultaneousLDiversity,
)
from shoal.model.settings import SHORTHANDS

__all__ = [
    "MODELS",
    "AlphaKAnonymity",
    "BetaLikeness",
    "Charge",
    "DeltaDisclosure",
    "DeltaPresence",
    "DistinctLDiversity",
    "EntropyLDiversity",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "Model",
    "OfPersons",
    "PrivacyModel",
    "RecursiveLDiversity",
    "Requirement",
    "Rule",
    "SimultaneousLDiversity",
    "TCloseness",
    "TreeCloseness",
    "describe",
    "requirement",
    "restore",
]

PrivacyModel = Model


class _Models(Mapping[str, type[Model]]):
    """Name -> class. A class is imported on first access, from the module that the model's keyword names."""

    def __getitem__(self, name: str) -> type[Model]:
        for short in SHORTHANDS.values():
            if short.model == name:
                return getattr(import_module(f"{__name__}.{short.file}"), name)  # type: ignore[no-any-return]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(short.model for short in SHORTHANDS.values()))

    def __len__(self) -> int:
        return len(list(iter(self)))


MODELS = _Models()


def restore(data: dict[str, Any]) -> Model:
    """The inverse of ``describe``, also for a policy file; PolicyError for an unknown name or parameter."""
    values = dict(data)
    name = values.pop("model", None)
    if not isinstance(name, str) or name not in MODELS:
        raise PolicyError.unknown("privacy model", str(name), MODELS)
    known = [f.name for f in fields(MODELS[name])]  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise PolicyError.unknown(f"parameter of {name}", key, known)
    try:
        return MODELS[name](**values)
    except TypeError as error:
        raise PolicyError(f"{name} needs {', '.join(known)}; given {', '.join(values) or 'none'}") from error


@dataclass(frozen=True)
class Rule:
    """A model on a table that size, share, and number of values don't express completely.

    columns  positions of its sensitive columns: one, or all for a model of tuples; for a model of persons, the column
             of their values and the person column
    table    rows (or persons) of each value in the whole table; empty for a model of tuples
    """

    model: Model
    columns: tuple[int, ...]
    table: tuple[int, ...] = ()

    @property
    def measure(self) -> Measure:
        """The model as numbers for the compiled test."""
        found = self.model.measure(np.array(self.table, np.int64))
        if found is None:
            raise TypeError(f"{type(self.model).__name__} is met by size, share and values alone, and asks no kernel")
        return found

    def holds(self, sensitive: np.ndarray, count: np.ndarray) -> bool:
        """Whether rows of some cells, sensitive int[x, s] with count int64[x], meet the model."""
        return self.model.holds(self.counts(sensitive, count), np.array(self.table, np.int64))

    def counts(self, sensitive: np.ndarray, count: np.ndarray) -> np.ndarray:
        """The counts that the model needs: rows by value, persons by value, or the distinct tuples."""
        if self.model.applies_to == "tuples":
            return np.unique(sensitive[count > 0][:, list(self.columns)], axis=0)
        if self.model.applies_to == "persons":
            return pairs(sensitive[count > 0], self.columns, len(self.table) - 1)
        return np.bincount(sensitive[:, self.columns[0]], weights=count, minlength=len(self.table)).astype(np.int64)


@dataclass(frozen=True)
class Requirement:
    """The condition that algorithms enforce on every group.

    k          minimum number of rows
    frequency  for each sensitive column: at most 1/l of the rows share a value; 1 is no condition
    distinct   for each sensitive column: minimum number of different values; 1 is no condition
    rules      further models. k, frequency, and distinct include what follows from them, so everything that holds for
               these three alone, such as lower bounds, also holds for the requirement
    """

    k: int = 1
    frequency: tuple[int, ...] = ()
    distinct: tuple[int, ...] = ()
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        if len(self.frequency) != len(self.distinct):
            raise PolicyError("a requirement has one frequency and one distinct entry per sensitive column")

    @property
    def sensitive_columns(self) -> tuple[int, ...]:
        """Positions of the sensitive columns with a condition."""
        ruled = {j for rule in self.rules for j in rule.columns}
        pairs = zip(self.frequency, self.distinct, strict=True)
        return tuple(j for j, (f, u) in enumerate(pairs) if f > 1 or u > 1 or j in ruled)

    @property
    def smallest(self) -> int:
        """A lower bound for the number of rows of any group."""
        return max((self.k, *self.frequency, *self.distinct))

    @property
    def closed(self) -> bool:
        """Whether a union of groups that meet it always meets it."""
        return all(rule.model.applies_to != "persons" for rule in self.rules)

    @property
    def stand_in(self) -> Requirement | None:
        """A requirement without rules that implies this one, if there is one. Its answers are valid here, its bounds
        are not."""
        frequency = list(self.frequency)
        for rule in self.rules:
            implies = rule.model.stand_in()
            if implies is None:
                return None
            frequency[rule.columns[0]] = max(frequency[rule.columns[0]], implies)
        return Requirement(self.k, tuple(frequency), self.distinct)


def refuse_unenforced(model: Model) -> None:
    """PolicyError for a model that can be audited but not enforced."""
    if model.enforced is not None:
        raise PolicyError(
            f"{model.name} in this reading can be audited, not enforced; it is {model.enforced}; choose another one"
        )


def requirement(models: Sequence[Model], sensitive: Sequence[str], histogram: Histogram | None = None) -> Requirement:
    """The conjunction of models as a Requirement on a table. Without a table, only the request is checked.

    Raises PolicyError for a model of a column that doesn't exist, and for a model that isn't monotone.
    """
    k = 1
    frequency, distinct = [1] * len(sensitive), [1] * len(sensitive)
    rules: list[Rule] = []
    for model in models:
        refuse_unenforced(model)
        if histogram is not None and model.unbound is not None:
            raise PolicyError(f"{model.unbound}; say ⟨hierarchies={{column: ...}}⟩ to shoal.anonymize")
        everywhere = model.applies_to == "tuples"
        person = getattr(model, "person", None)
        for j in _places(model, sensitive):
            where = (j,) if person is None else (j, list(sensitive).index(person))
            table = _table(histogram, where)
            implied = model.implied(table)
            k = max(k, implied.size)
            if model.applies_to != "rows":
                frequency[j] = max(frequency[j], implied.share)
                distinct[j] = max(distinct[j], implied.distinct)
            if not model.simple and not everywhere and histogram is not None:
                rules.append(Rule(model, where, tuple(table.tolist())))
        if everywhere and len(sensitive) > 1:
            rules.append(Rule(model, tuple(range(len(sensitive)))))
    return Requirement(k, tuple(frequency), tuple(distinct), tuple(dict.fromkeys(rules)))


def _places(model: Model, sensitive: Sequence[str]) -> list[int]:
    """Positions of the sensitive columns of a model; [-1] if it has none."""
    if model.applies_to == "rows":
        return [-1]
    if model.applies_to == "population":
        raise PolicyError(f"{model.name} needs a population; pass one with ⟨population=⟩ to shoal.anonymize")
    if not sensitive:
        raise PolicyError(f"{model.name} needs a sensitive column, and none is given; set ⟨sensitive=[...]⟩")
    if model.column is None:
        return list(range(len(sensitive)))
    if model.column not in sensitive:
        raise PolicyError.unknown("sensitive column", model.column, sensitive)
    return [list(sensitive).index(model.column)]


def _table(histogram: Histogram | None, columns: tuple[int, ...]) -> np.ndarray:
    """int64[m]: rows of the whole table by value of a sensitive column. With a person column, see ``pairs``."""
    j = columns[0]
    if histogram is None or j < 0:
        return np.ones(len(columns), np.int64)
    size = max(histogram.sensitive_sizes[j], 1)
    if len(columns) > 1:
        return pairs(histogram.sensitive, columns, size)
    return np.bincount(histogram.sensitive[:, j], weights=histogram.count, minlength=size).astype(np.int64)
