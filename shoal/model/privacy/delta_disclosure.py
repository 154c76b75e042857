"""Delta-disclosure privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, above_zero, least_size, whole_share

ABSENT = ("infinite", "ignored")


@dataclass(frozen=True)
class DeltaDisclosure(Model):
    """|log(p / q)| < delta for every sensitive value, p its share in the group and q that in the table.

    absent  "infinite": a value of the table that a group lacks has p = 0 and fails, as the definition says;
            "ignored": only the values a group has are looked at, which some tools do; this can be audited only
    """

    delta: float
    absent: str = "infinite"
    column: str | None = None
    name: ClassVar[str] = "delta-disclosure"
    short: ClassVar[str] = "delta"
    source: ClassVar[str] = "Brickell, Shmatikov 2008, Definition 2"
    weaker = max

    def __post_init__(self) -> None:
        above_zero(self, "delta")
        if self.absent not in ABSENT:
            raise PolicyError.unknown("reading of absent values (DeltaDisclosure)", self.absent, ABSENT)

    @property
    def monotone(self) -> str:  # type: ignore[override]
        if self.absent == "infinite":
            return "monotone: each value's share has a floor and a ceiling, and the shares of a union are averages"
        return (
            "not monotone: a group without a value passes, but joined to one that has it the share may fall below "
            "its floor, so merging two good groups can give a bad one"
        )

    def words(self) -> str:
        return f"every value's share in a group is within a factor of exp({self.delta}) of the table's"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        here = (table > 0) if self.absent == "infinite" else (counts > 0)
        if (counts[here] == 0).any():
            return math.inf
        p, q = counts[here] / counts.sum(), table[here] / table.sum()
        return float(np.abs(np.log(p / q)).max(initial=0))

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.level(counts, table) < self.delta - CLOSE

    def implied(self, table: np.ndarray) -> Implied:
        q = table[table > 0] / table.sum()
        low, high = q * math.exp(-self.delta), np.minimum(q * math.exp(self.delta), 1.0)
        size = least_size(
            lambda n: np.maximum(np.ceil(n * low - 1e-6), 1).sum() <= n <= np.floor(n * high + 1e-6).sum(),
            int(table.sum()),
        )
        return Implied(size, whole_share(float(high.max(initial=0))), q.size)

    def measure(self, table: np.ndarray) -> Measure:
        q = table / max(table.sum(), 1)
        both = np.stack([q * math.exp(-self.delta), q * math.exp(self.delta)], axis=1)
        return Measure("band", self.delta, 1, tuple(both.reshape(-1).tolist()))
