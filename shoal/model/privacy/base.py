"""What every privacy model is: a frozen value with words, a level, an exact test, and what follows from it.

All models are statements about one group of rows published alike.  Counts are int64[m], rows of the group by value of
the sensitive column, for the m values of the whole table in their order; ``table`` has the same counts for the whole
table.  A model is monotone when the union of two groups that meet it meets it too: merging groups and publishing less
can then never hurt, and some partition exists exactly when the whole table meets it.

Levels are compared with a tolerance of ``CLOSE``: shares of integers that small tables and decimal parameters make
differ by far more, and rounding by far less.
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

CLOSE = 1e-9  # two levels nearer than this are one; the judge has the same
LOOKED_AT = 2000  # sizes of a group tried for the least that a model allows


@dataclass(frozen=True)
class Implied:
    """What every group that meets a model meets as well, hence what bounds may use.

    size      it has at least so many rows
    share     integer L: at most 1/L of its rows share a value; 1 says nothing
    distinct  it has at least so many different values
    """

    size: int = 1
    share: int = 1
    distinct: int = 1


@dataclass(frozen=True)
class Measure:
    """A model as numbers that one compiled function understands (``shoal.kernels.tables.eligible``).

    kind    "band" (shares within limits per value), "entropy", "recursive", "equal", "ordered", "tree" or "tuples";
            "persons' band" and so on where persons are counted by value
    number  its parameter; table  its limits or shares, one or two per value
    """

    kind: str
    number: float = 0.0
    whole: int = 0
    table: tuple[float, ...] = ()


def named(short: str, level: Any) -> str:
    """What would pass, for a sentence: the keyword with its value, where a keyword has that name."""
    return f"⟨{short}={level}⟩" if short in SHORTHANDS else f"{short}={level}"


class Model(ABC):
    """A privacy model.  Subclasses are frozen dataclasses; ``MODELS`` lists them.

    short     the level's name in JSON; weaker: which of two levels is the worse one, ``min`` or ``max``
    speaks    "rows", "column" (one sensitive column at a time), "persons" (a column, by persons) or "tuples" (all of
              them together)
    monotone  why a union of groups that meet it meets it; begins with "not monotone" where it does not
    simple    whether size, share and distinct of ``implied`` say all of it
    compares  whether it compares a group with the whole table: tables that each meet it may miss it together
    """

    name: ClassVar[str]
    short: ClassVar[str]
    monotone: ClassVar[str]
    source: ClassVar[str]
    weaker: ClassVar[Any] = min
    speaks: ClassVar[str] = "column"
    simple: ClassVar[bool] = False
    compares: ClassVar[bool] = False
    column: str | None = None

    @property
    def enforced(self) -> str | None:
        """None, or why the model can be audited only."""
        return None if self.monotone.startswith("monotone") else self.monotone

    @property
    def most(self) -> float | None:
        """The largest share that a value may have, where that is all the model asks of a column; else None."""
        return None

    @property
    def unbound(self) -> str | None:
        """None, or what must be known about the table's columns before a group can be tested."""
        return None

    @abstractmethod
    def words(self) -> str:
        """What every group is like, in words."""

    @abstractmethod
    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        """The level of one group."""

    @abstractmethod
    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        """Whether a group meets the model."""

    def implied(self, table: np.ndarray) -> Implied:
        """Size, share and number of values that follow; never more than the model asks."""
        return Implied()

    def stand_in(self) -> int | None:
        """An l whose frequency form implies the model, if there is one; searches start from it."""
        return None

    def measure(self, table: np.ndarray) -> Measure | None:
        """The model as numbers for the compiled test; None if ``implied`` states all of it."""
        return None

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        """Why no table can meet the model, by how much, and what would pass.

        counts of all rows that a group may have: those of the whole table, or of a part kept apart
        """
        level = said(self.level(counts, table), up=self.weaker is max)
        end = "least" if self.weaker is max else "most"
        finite = math.isfinite(float(level))
        way = f"ask for {named(self.short, level)} at the {end}" if finite else f"no {self.short} is large enough"
        return f"{self.reached(counts, name, table)}, so no table in which {self.words()} exists; {way}"

    def reached(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        """The level of one group of all these rows; ``refusal`` says what follows from it."""
        level = self.level(counts, table)
        if self.compares and not math.isfinite(level):
            return f"a value of {name} is in none of these rows"
        return f"all rows as one group reach {said(level, up=self.weaker is max)} of {name}"


def said(level: float, *, up: bool) -> str:
    """A level in six digits, rounded so that asking for what is said can be met."""
    text = f"{level:.6g}"
    off = float(text) - level
    if not math.isfinite(off) or (off >= 0 if up else off <= 0):
        return text
    last = 10.0 ** (math.floor(math.log10(abs(level))) - 5)
    return f"{float(text) + (last if up else -last):.6g}"


def at_least_one(model: Any, name: str, *, whole: bool = False) -> None:
    """PolicyError unless a parameter is a finite number of at least 1; numpy's whole numbers become Python's."""
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
    """A model as plain values, ready for JSON; ``restore`` is the way back."""
    values = {f.name: getattr(model, f.name) for f in fields(model)}  # type: ignore[arg-type]
    plain = {k: [list(r) for r in v] if isinstance(v, tuple) else v for k, v in values.items()}
    return {"model": type(model).__name__, **{k: v for k, v in plain.items() if v is not None}}


def reach(shares: Sequence[float] | np.ndarray, total: float) -> int:
    """How many of the largest shares it takes to reach a total."""
    upto = np.cumsum(np.sort(np.asarray(shares, float))[::-1])
    return int(np.searchsorted(upto, total - CLOSE) + 1)


def least_size(possible: Any, most: int) -> int:
    """The least number of rows for which ``possible(rows)``; the end of the range looked at when none is."""
    most = max(min(most, LOOKED_AT), 1)
    return next((n for n in range(1, most) if possible(n)), most)


def nearest(q: np.ndarray, n: int) -> float:
    """The least half sum of |p - q| that n rows can have: shares rounded down, the rows left where most was cut off."""
    down = np.floor(n * q + CLOSE)
    over = np.sort(n * q - down)[::-1][: n - int(down.sum())]
    return 1 - (float(down.sum()) + float(over.sum())) / n


def whole_share(share: float) -> int:
    """The largest integer L with 1/L at least a share."""
    return max(math.floor(1 / min(max(share, CLOSE), 1.0) + CLOSE), 1)
