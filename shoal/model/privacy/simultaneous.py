"""l-diversity of several sensitive columns at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.privacy.base import Implied, Measure, Model, at_least


@dataclass(frozen=True)
class SimultaneousLDiversity(Model):
    """Every row lies in l rows of its group that differ pairwise in every sensitive column.

    The strict reading of Blocki and Williams' Definition 1.  Their Theorem 1.6 uses the weaker one, in which each
    column by itself has l different values; that is ``DistinctLDiversity`` on each column.
    The counts of a group are its distinct sensitive tuples, int64[g, s].
    """

    l: int
    name: ClassVar[str] = "simultaneous l-diversity"
    short: ClassVar[str] = "simultaneous_l"
    monotone: ClassVar[str] = "monotone: in a union every row keeps the l rows it lies in"
    source: ClassVar[str] = "Blocki, Williams 2010, Definition 1"
    speaks: ClassVar[str] = "tuples"

    def __post_init__(self) -> None:
        at_least(self, "l", 1, whole=True)

    def words(self) -> str:
        return f"every row lies in {self.l} rows of its group that differ pairwise in every sensitive column"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        tuples = [tuple(r) for r in counts.tolist()]
        return min((_with(t, tuples, self.l) for t in tuples), default=0)

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.level(counts, table) >= self.l

    def implied(self, table: np.ndarray) -> Implied:
        return Implied(distinct=self.l)

    def measure(self, table: np.ndarray) -> Measure:
        return Measure("tuples", 0.0, self.l)

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        return (
            f"some rows of the table lie in no {self.l} rows that differ pairwise in {name}, so no table with "
            f"simultaneous l = {self.l} exists; the largest l possible is {self.level(counts, counts)}"
        )


def _with(row: tuple[int, ...], tuples: list[tuple[int, ...]], wanted: int) -> int:
    """Most tuples, up to wanted, that differ pairwise everywhere, this one among them; exponential in wanted."""
    left = [t for t in tuples if all(a != b for a, b in zip(t, row, strict=True))]
    best = 1
    for i, t in enumerate(left):
        if best >= wanted:
            break
        best = max(best, 1 + _with(t, left[i + 1 :], wanted - 1))
    return best
