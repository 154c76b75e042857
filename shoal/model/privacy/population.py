"""Models of a group and a population, and models that count persons.

k-map and delta-presence: a group *covers* a row of the population if each of its published values may stand for that
row's value: the value itself, or a hierarchy class, range, set, or star that contains it. Counts of a group are
int64[2]: its rows, and the rows of the population that it covers.

``OfPersons``, for tables in which a person may have several rows: in a group, a person counts once for each value of
their rows there. A share (of l-diversity by frequency, or alpha) is a share of the persons: at most 1/l of them have
any one value. The other models compare distributions of the values counted in this way. Counts are int64[m + 1]:
persons by value, then the number of persons in the group.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, at_least_one, level_text, named


@dataclass(frozen=True)
class KMap(Model):
    """Every group fits at least k rows of the population."""

    k: int
    name: ClassVar[str] = "k-map"
    short: ClassVar[str] = "k_map"
    monotone: ClassVar[str] = "monotone: what a union publishes covers all that either part covered"
    source: ClassVar[str] = "Sweeney 2001, Computational disclosure control; El Emam, Dankar 2008"
    applies_to: ClassVar[str] = "population"

    def __post_init__(self) -> None:
        at_least_one(self, "k", whole=True)

    def words(self) -> str:
        return f"what every group publishes fits at least {self.k} rows of the population"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return int(counts[1])

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int(counts[1]) >= self.k

    def charge(self, rows: np.ndarray, population: np.ndarray) -> Charge:
        """A rule that implies the model: the sum over the group's different tuples of their population."""
        return Charge(self, tuple(population.tolist()), float(self.k), once=True)


@dataclass(frozen=True)
class DeltaPresence(Model):
    """A group's rows are a share from low to high of the rows of the population that it fits.

    If groups fit the same people, as with local recoding, no one counts twice toward ``high``: the people can be
    divided so that every group has rows / high of those that it fits. For groups that fit different people, as with
    global recoding, this is the definition.
    """

    low: float
    high: float
    name: ClassVar[str] = "delta-presence"
    short: ClassVar[str] = "presence"
    source: ClassVar[str] = "Nergiz, Atzori, Clifton 2007, Definition 2"
    applies_to: ClassVar[str] = "population"
    weaker = max

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
                raise PolicyError(f"{self.name}: {name} is {value!r}, and it has to be a share, from 0 to 1")
        if self.high <= 0 or self.low > self.high:
            raise PolicyError(
                f"{self.name}: low is {self.low!r} and high {self.high!r}, and low is at most high, and high is above 0"
            )

    @property
    def monotone(self) -> str:  # type: ignore[override]
        if not self.low:
            return (
                "monotone: what was shared out to both parts is covered by their union and is as many people as its "
                "rows need"
            )
        return (
            "not monotone above low = 0: a union covers rows of the population between its parts, of which neither "
            "part had any, so its share may fall below the floor"
        )

    def words(self) -> str:
        return f"a group is a share from {self.low} to {self.high} of the people that it fits, none counted twice"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return float(counts[0] / max(counts[1], 1))

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.low - CLOSE <= self.level(counts, table) <= self.high + CLOSE

    def charge(self, rows: np.ndarray, population: np.ndarray) -> Charge:
        """A rule that implies the model: the sum over rows of high times the row's share of its tuple's population,
        minus 1."""
        return Charge(self, tuple((self.high * population / np.maximum(rows, 1) - 1).tolist()), 0.0, once=False)


@dataclass(frozen=True)
class Charge(Model):
    """A sum of charges over a group's rows or different values must reach a minimum. It represents a population's
    model.

    asked   the model that this rule implies
    charge  float[m] by value of a column of the histogram
    least   the minimum of the sum
    once    whether a value counts once for each group, otherwise for each row
    """

    asked: Model
    charge: tuple[float, ...]
    least: float
    once: bool
    name: ClassVar[str] = "charge"
    short: ClassVar[str] = "charge"
    monotone: ClassVar[str] = "monotone: sums add up, and a union holds the values of both parts"
    source: ClassVar[str] = ""

    def words(self) -> str:
        return self.asked.words()

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return float((np.array(self.charge) * (counts > 0 if self.once else counts)).sum())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.level(counts, table) >= self.least - CLOSE * max(1.0, self.least)

    def measure(self, table: np.ndarray) -> Measure:
        return Measure("charge", self.least, int(self.once), self.charge)

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        most = int(self.level(counts, counts) + CLOSE)
        return (
            f"the weights of all rows add up to a population of {most}, so no group of "
            f"⟨k_map⟩ = {self.least:g} exists; "
            f"the largest ⟨k_map⟩ possible is {most}"
        )


OF_PERSONS = 2  # ``whole`` of a band with shares of persons; the kernels have the same constant


@dataclass(frozen=True)
class OfPersons(Model):
    """A model of one column, applied to the values of persons.

    It isn't monotone: a person counts twice in two groups, but once in their union. For example, persons A (flu) and C
    (cold) form a group with l = 2, and so do B (flu) and C (cold). In their union, two of three persons have flu. So
    every group of a release is tested separately, groups that fail are merged until they pass, and the whole table, as
    the last possible group, must pass.
    """

    asked: Model
    person: str
    column: str | None = None
    applies_to = "persons"  # type: ignore[misc]
    monotone = "not monotone: a person of both parts counts once in their union"  # type: ignore[misc]
    name = property(lambda self: self.asked.name)  # type: ignore[assignment]
    short = property(lambda self: self.asked.short)  # type: ignore[assignment]
    source = property(lambda self: self.asked.source)  # type: ignore[assignment]
    weaker = property(lambda self: self.asked.weaker)  # type: ignore[assignment]

    @property
    def enforced(self) -> str | None:
        """How the same model of rows is enforced. A model that isn't monotone only because of persons is enforced by
        merging."""
        return self.asked.enforced

    @property
    def unbound(self) -> str | None:
        return self.asked.unbound

    def words(self) -> str:
        return f"{self.asked.words()}, each {self.person!r} counted once"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        if self.asked.most is None:
            return self.asked.level(counts[:-1], table[:-1])
        share = float(counts[:-1].max() / counts[-1])
        return 1 / share if self.weaker is min else share

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        if self.asked.most is None:
            return self.asked.holds(counts[:-1], table[:-1])
        return bool(counts[:-1].max() <= (self.asked.most + CLOSE) * counts[-1])

    def implied(self, table: np.ndarray) -> Implied:
        """Implied conditions: a group has at least as many rows as persons' values. A share of persons is not one of
        rows."""
        own = self.asked.implied(table[:-1])
        return Implied(size=max(own.size, own.share), distinct=max(own.distinct, own.share))

    def measure(self, table: np.ndarray) -> Measure:
        most = self.asked.most
        if most is not None:
            return Measure("persons' band", 0.0, OF_PERSONS, (0.0, most) * (table.size - 1))
        own = self.asked.measure(table[:-1])
        assert own is not None  # a model that ``implied`` expresses completely has a largest share
        return replace(own, kind=f"persons' {own.kind}")

    def most_common(
        self, sensitive: np.ndarray, count: np.ndarray, table: np.ndarray, columns: tuple[int, ...]
    ) -> CommonValue:
        """The value with the smallest possible share above the limit, by a count that every release must satisfy.

        sensitive, count  cells and their rows
        columns           of the values, and of the persons

        Let v be a value with at most 1/s of the counted persons in each group. Then the persons with v in a group need
        s - 1 times as many other counted persons there, and each of these needs a row without v. Each person with v is
        counted in at least one group. So a release exists only if the number of rows without v is at least s - 1 times
        the number of persons with v. O(x log x) for x cells.
        """
        of_value, person = sensitive[:, columns[0]].astype(np.int64), sensitive[:, columns[1]].astype(np.int64)
        values = table.size - 1
        rows = np.bincount(of_value, weights=count, minlength=values)
        held = np.unique(np.stack([of_value, person], axis=1), axis=0)
        persons = np.bincount(held[:, 0], minlength=values)
        without = rows.sum() - rows
        reach = np.where(persons > 0, 1 + without / np.maximum(persons, 1), np.inf)
        code = int(reach.argmin())
        asked = 1 / self.asked.most if self.asked.most is not None else float(self.asked.implied(table[:-1]).share)
        return CommonValue(code, int(persons[code]), int(without[code]), float(reach[code]), asked)

    def distance(self, counts: np.ndarray, table: np.ndarray) -> float:
        """The reached level divided by the requested one; smaller is worse."""
        value = getattr(self.asked, fields(self.asked)[0].name)  # type: ignore[arg-type]
        level = self.level(counts, table)
        near = level / value if self.weaker is min else value / max(level, 1e-12)
        return float(near)

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        level = self.level(counts, table)
        value: Any = getattr(self.asked, fields(self.asked)[0].name)  # type: ignore[arg-type]
        best = level_text(level, up=self.weaker is max)
        if isinstance(value, int) and self.weaker is min:
            best = str(int(level + CLOSE))
        return (
            f"no groups were found that meet {named(self.short, value)} with each {self.person!r} counted once; "
            f"all rows as one group reach {level_text(level, up=self.weaker is max)} of {name}, so "
            f"{named(self.short, best)} can be met"
        )


class CommonValue(NamedTuple):
    """A value of many persons: its code, its persons, the rows without it, the possible s, and the requested s."""

    code: int
    persons: int
    without: int
    reach: float
    asked: float

    @property
    def impossible(self) -> bool:
        """Whether no release can keep the value's share at the requested limit."""
        return self.reach < self.asked - CLOSE * self.asked


def counts_rows(model: Model) -> bool:
    """Whether a model counts the rows of a value, so that it has another meaning for persons."""
    return model.applies_to == "column" and model.short != "distinct_l"


def pairs(sensitive: np.ndarray, columns: tuple[int, ...], values: int) -> np.ndarray:
    """int64[values + 1]: persons by value, and all persons, of cells int[x, s]. columns: of values, of persons."""
    held = np.unique(sensitive[:, list(columns)], axis=0)
    by_value = np.bincount(held[:, 0], minlength=values)
    return np.append(by_value, np.unique(held[:, 1]).size).astype(np.int64)
