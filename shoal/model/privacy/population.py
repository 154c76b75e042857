"""Models of a group beside the population that its rows were drawn from: k-map and delta-presence.

A group *covers* a row of the population when each of its published values may stand for that row's value: the value
itself, a class of the hierarchy it lies in, a range or a set it lies in, a star.  Counts of a group are
int64[2]: its rows, and the rows of the population that it covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Measure, Model, at_least


@dataclass(frozen=True)
class KMap(Model):
    """Every group covers at least k rows of the population."""

    k: int
    name: ClassVar[str] = "k-map"
    short: ClassVar[str] = "k_map"
    monotone: ClassVar[str] = "monotone: what a union publishes covers all that either part covered"
    source: ClassVar[str] = "Sweeney 2001, Computational disclosure control; El Emam, Dankar 2008"
    speaks: ClassVar[str] = "population"

    def __post_init__(self) -> None:
        at_least(self, "k", 1, whole=True)

    def words(self) -> str:
        return f"what every group publishes fits at least {self.k} rows of the population"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return int(counts[1])

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int(counts[1]) >= self.k

    def charge(self, rows: np.ndarray, population: np.ndarray) -> Charge:
        """A rule that implies the model: the population of the different tuples of a group, each counted once."""
        return Charge(self, tuple(population.tolist()), float(self.k), once=True)


@dataclass(frozen=True)
class DeltaPresence(Model):
    """A group's rows are a share from low to high of the rows of the population that it covers.

    Where groups cover the same people, as they do in local recoding, nobody is counted twice towards ``high``: the
    people can be shared out so that every group has rows / high of those it covers.  For groups that cover different
    people, as those of global recoding do, that is the definition as it stands.
    """

    low: float
    high: float
    name: ClassVar[str] = "delta-presence"
    short: ClassVar[str] = "presence"
    source: ClassVar[str] = "Nergiz, Atzori, Clifton 2007, Definition 2"
    speaks: ClassVar[str] = "population"
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
        """A rule that implies the model: each row counts high times its part of its tuple's population, less itself."""
        return Charge(self, tuple((self.high * population / np.maximum(rows, 1) - 1).tolist()), 0.0, once=False)


@dataclass(frozen=True)
class Charge(Model):
    """Charges of a group's rows or of its different values add up to a sum: how the search asks after a population.

    asked   the model that this implies
    charge  float[m] by value of a column of the histogram; once: a value counts once per group, else once per row
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
            f"the weights of all rows add up to a population of {most}, so no group of k_map = {self.least:g} exists; "
            f"the largest k_map possible is {most}"
        )
