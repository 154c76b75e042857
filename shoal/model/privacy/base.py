"""The base class of privacy models: an immutable value with a text, a level, an exact test, and implied conditions.

A model is a condition on one group of rows with equal published values. Counts are int64[m]: the group's rows by value
of the sensitive column, for the m values of the whole table in order. ``table`` has the same counts for the whole
table. A model is monotone if the union of two groups that meet it also meets it. Then merging groups never breaks it,
and a partition exists if and only if the whole table meets it. Levels are compared with the tolerance ``CLOSE``. Shares
of integers in small tables and decimal parameters differ by far more, and rounding errors are far smaller.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.settings import SHORTHANDS

CLOSE = 1e-9  # levels with a smaller difference are equal; the judge has the same constant
LOOKED_AT = 2000  # group sizes that are tried to find the smallest one that a model allows


@dataclass(frozen=True)
class Implied:
    """Conditions that every group meets if it meets a model. Lower bounds may use them.

    size      minimum number of rows
    share     integer L: at most 1/L of the rows share a value; 1 is no condition
    distinct  minimum number of different values
    """

    size: int = 1
    share: int = 1
    distinct: int = 1


@dataclass(frozen=True)
class Measure:
    """A model as numbers for the compiled test (``shoal.kernels.tables.eligible``).

    kind    "band" (limits of the share of each value), "entropy", "recursive", "equal", "ordered", "tree", or "tuples";
            "persons' band" and so on if persons are counted by value
    number  its parameter
    table   its limits or shares, one or two for each value
    """

    kind: str
    number: float = 0.0
    whole: int = 0
    table: tuple[float, ...] = ()


def named(short: str, level: Any) -> str:
    """A parameter that would pass, for a message: marked as a setting if there is a keyword of that name."""
    return f"⟨{short}={level}⟩" if short in SHORTHANDS else f"{short}={level}"


class Model(ABC):
    """A privacy model. Subclasses are frozen dataclasses; ``MODELS`` lists them.

    short       name of its level in JSON
    weaker      which of two levels is the worse one, ``min`` or ``max``
    applies_to  "rows", "column" (one sensitive column at a time), "persons" (a column, by persons), "population", or
                "tuples" (all sensitive columns together)
    monotone    why a union of groups that meet it meets it; begins with "not monotone" if this is false
    simple      whether size, share, and distinct of ``implied`` express it completely
    compares    whether it compares a group with the whole table. Then tables that meet it separately may break it
                together
    """

    name: ClassVar[str]
    short: ClassVar[str]
    monotone: ClassVar[str]
    source: ClassVar[str]
    weaker: ClassVar[Any] = min
    applies_to: ClassVar[str] = "column"
    simple: ClassVar[bool] = False
    compares: ClassVar[bool] = False
    column: str | None = None

    @property
    def enforced(self) -> str | None:
        """None, or why the model can be audited but not enforced."""
        return None if self.monotone.startswith("monotone") else self.monotone

    @property
    def most(self) -> float | None:
        """The largest share of a value, if this is the model's only condition on a column, or None."""
        return None

    @property
    def unbound(self) -> str | None:
        """None, or what must be known about the table's columns before a group can be tested."""
        return None

    @abstractmethod
    def words(self) -> str:
        """The condition on every group, as text."""

    @abstractmethod
    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        """The level of one group."""

    @abstractmethod
    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        """Whether a group meets the model."""

    def implied(self, table: np.ndarray) -> Implied:
        """Size, share, and number of values that follow from the model; never stricter than the model."""
        return Implied()

    def stand_in(self) -> int | None:
        """An l such that l-diversity by frequency implies the model, if there is one; searches start from it."""
        return None

    def measure(self, table: np.ndarray) -> Measure | None:
        """The model as numbers for the compiled test; None if ``implied`` expresses it completely."""
        return None

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        """Why no table can meet the model, by how much, and what would pass.

        counts  of all rows that a group may have: those of the whole table, or of a part that is grouped separately
        """
        level = level_text(self.level(counts, table), up=self.weaker is max)
        end = "least" if self.weaker is max else "most"
        finite = math.isfinite(float(level))
        way = f"ask for {named(self.short, level)} at the {end}" if finite else f"no {self.short} is large enough"
        return f"{self.reached(counts, name, table)}, so no table in which {self.words()} exists; {way}"

    def reached(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        """The level of one group of all these rows, for ``refusal``."""
        level = self.level(counts, table)
        if self.compares and not math.isfinite(level):
            return f"a value of {name} is in none of these rows"
        return f"all rows as one group reach {level_text(level, up=self.weaker is max)} of {name}"


def level_text(level: float, *, up: bool) -> str:
    """A level with about three digits, rounded so that a request with the shown number can be met.

    Whole numbers keep their digits, and a share just below 1 has three that differ from 9.
    """
    if not math.isfinite(level) or level == 0:
        return f"{level:g}"
    size = math.floor(math.log10(abs(level)))
    digits = 3 + math.floor(-math.log10(1 - level)) if 0.9 < level < 1 else max(3, size + 1)
    text = f"{level:.{digits}g}"
    off = float(text) - level
    if (off >= 0 if up else off <= 0) or abs(off) <= 1e-12 * abs(level):
        return text
    last = 10.0 ** (size - digits + 1)
    return f"{float(text) + (last if up else -last):.{digits}g}"


def at_least_one(model: Any, name: str, *, whole: bool = False) -> None:
    """PolicyError unless a parameter is a finite number of at least 1. NumPy integers become Python integers."""
    value = getattr(model, name)
    if isinstance(value, Integral) and not isinstance(value, bool):
        value = int(value)
        object.__setattr__(model, name, value)
    wrong_kind = isinstance(value, bool) or not isinstance(value, int if whole else (int, float))
    if wrong_kind or not value >= 1 or value == math.inf:
        kind = "a whole number" if whole else "a number"
        raise PolicyError(f"{model.name}: {name} is {value!r}, and it has to be {kind}, at least 1")


def above_zero(model: Any, name: str, most: float = math.inf, says: str = "a number above 0") -> None:
    """PolicyError unless a parameter is a finite number above 0 and at most ``most``."""
    value = getattr(model, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most or value == math.inf:
        raise PolicyError(f"{model.name}: {name} is {value!r}, and it has to be {says}")


def describe(model: Model) -> dict[str, Any]:
    """A model as plain values for JSON. ``restore`` is the inverse."""
    values = {f.name: getattr(model, f.name) for f in fields(model)}  # type: ignore[arg-type]
    plain = {k: [list(r) for r in v] if isinstance(v, tuple) else v for k, v in values.items()}
    return {"model": type(model).__name__, **{k: v for k, v in plain.items() if v is not None}}


def reach(shares: Sequence[float] | np.ndarray, total: float) -> int:
    """The minimum number of shares whose sum reaches a total: that of the largest ones."""
    upto = np.cumsum(np.sort(np.asarray(shares, float))[::-1])
    return int(np.searchsorted(upto, total - CLOSE) + 1)


def least_size(possible: Any, most: int) -> int:
    """The smallest number of rows with ``possible(rows)``, or the end of the tried range."""
    most = max(min(most, LOOKED_AT), 1)
    return next((n for n in range(1, most) if possible(n)), most)


def nearest(q: np.ndarray, n: int) -> float:
    """The minimum over distributions p of n rows of half the sum of |p - q|: round down, then add the remaining rows
    where the remainders are largest."""
    down = np.floor(n * q + CLOSE)
    over = np.sort(n * q - down)[::-1][: n - int(down.sum())]
    return 1 - (float(down.sum()) + float(over.sum())) / n


def whole_share(share: float) -> int:
    """The largest integer L with 1/L of at least a share."""
    return max(math.floor(1 / min(max(share, CLOSE), 1.0) + CLOSE), 1)
