"""What algorithms enforce on every group: the conjunction of the models asked for, bound to one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.errors import PolicyError
from shoal.model.histogram import Histogram
from shoal.model.privacy.base import Measure, Model
from shoal.model.privacy.population import pairs


@dataclass(frozen=True)
class Rule:
    """One model on one table, where size, share and number of values do not say all of it.

    columns  positions of the sensitive columns it speaks of: one, or all for a model of tuples; for one of persons the
             column of their values and the one that names them
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
        """Whether the rows of some cells, sensitive int[x, s] with count int64[x], meet the model."""
        return self.model.holds(self.counts(sensitive, count), np.array(self.table, np.int64))

    def counts(self, sensitive: np.ndarray, count: np.ndarray) -> np.ndarray:
        """What the model looks at: rows by value, or the distinct tuples."""
        if self.model.speaks == "tuples":
            return np.unique(sensitive[count > 0][:, list(self.columns)], axis=0)
        if self.model.speaks == "persons":
            return pairs(sensitive[count > 0], self.columns, len(self.table) - 1)
        return np.bincount(sensitive[:, self.columns[0]], weights=count, minlength=len(self.table)).astype(np.int64)


@dataclass(frozen=True)
class Requirement:
    """What the algorithms enforce on every group.

    k          at least this many rows
    frequency  per sensitive column: at most 1/l of the rows share a value; 1 asks nothing
    distinct   per sensitive column: at least this many different values; 1 asks nothing
    rules      models that these three do not say; k, frequency and distinct hold what follows from them as well, so
               that everything which holds for the three alone, bounds above all, holds for the requirement
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
        """Positions of the sensitive columns of which anything is asked."""
        ruled = {j for rule in self.rules for j in rule.columns}
        pairs = zip(self.frequency, self.distinct, strict=True)
        return tuple(j for j, (f, u) in enumerate(pairs) if f > 1 or u > 1 or j in ruled)

    @property
    def smallest(self) -> int:
        """No group can have fewer rows than this."""
        return max((self.k, *self.frequency, *self.distinct))

    @property
    def closed(self) -> bool:
        """Whether a union of groups that meet it is sure to meet it."""
        return all(rule.model.speaks != "persons" for rule in self.rules)

    @property
    def stand_in(self) -> Requirement | None:
        """A requirement without rules that implies this one, if there is one; its answers hold here, its bounds not."""
        frequency = list(self.frequency)
        for rule in self.rules:
            implies = rule.model.stand_in()
            if implies is None:
                return None
            frequency[rule.columns[0]] = max(frequency[rule.columns[0]], implies)
        return Requirement(self.k, tuple(frequency), self.distinct)


def refuse_unenforced(model: Model) -> None:
    """PolicyError for a model that can be audited only."""
    if model.enforced is not None:
        raise PolicyError(
            f"{model.name} in this reading can be audited, not enforced; it is {model.enforced}; choose another one"
        )


def requirement(models: Sequence[Model], sensitive: Sequence[str], histogram: Histogram | None = None) -> Requirement:
    """The conjunction of models as a Requirement on a table; without a table the request alone is checked.

    Raises PolicyError for a model of a column that is not there, and for one that is not monotone.
    """
    k = 1
    frequency, distinct = [1] * len(sensitive), [1] * len(sensitive)
    rules: list[Rule] = []
    for model in models:
        refuse_unenforced(model)
        if histogram is not None and model.unbound is not None:
            raise PolicyError(f"{model.unbound}; say ⟨hierarchies={{column: ...}}⟩ to shoal.anonymize")
        everywhere = model.speaks == "tuples"
        person = getattr(model, "person", None)
        for j in _places(model, sensitive):
            where = (j,) if person is None else (j, list(sensitive).index(person))
            table = _table(histogram, where)
            implied = model.implied(table)
            k = max(k, implied.size)
            if model.speaks != "rows":
                frequency[j] = max(frequency[j], implied.share)
                distinct[j] = max(distinct[j], implied.distinct)
            if not model.simple and not everywhere and histogram is not None:
                rules.append(Rule(model, where, tuple(table.tolist())))
        if everywhere and len(sensitive) > 1:
            rules.append(Rule(model, tuple(range(len(sensitive)))))
    return Requirement(k, tuple(frequency), tuple(distinct), tuple(dict.fromkeys(rules)))


def _places(model: Model, sensitive: Sequence[str]) -> list[int]:
    """Positions of the sensitive columns a model speaks of; [-1] for none."""
    if model.speaks == "rows":
        return [-1]
    if model.speaks == "population":
        raise PolicyError(f"{model.name} speaks of a population; hand one over with ⟨population=⟩ to shoal.anonymize")
    if not sensitive:
        raise PolicyError(f"{model.name} speaks of a sensitive column and none is given; set ⟨sensitive=[...]⟩")
    if model.column is None:
        return list(range(len(sensitive)))
    if model.column not in sensitive:
        raise PolicyError.unknown("sensitive column", model.column, sensitive)
    return [list(sensitive).index(model.column)]


def _table(histogram: Histogram | None, columns: tuple[int, ...]) -> np.ndarray:
    """Rows of the whole table by value of a sensitive column, int64[m]; beside a column of persons see ``pairs``."""
    j = columns[0]
    if histogram is None or j < 0:
        return np.ones(len(columns), np.int64)
    size = max(histogram.sensitive_sizes[j], 1)
    if len(columns) > 1:
        return pairs(histogram.sensitive, columns, size)
    return np.bincount(histogram.sensitive[:, j], weights=histogram.count, minlength=size).astype(np.int64)
