"""Beta-likeness, basic and enhanced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, above_zero, least_size, reach, whole_share


@dataclass(frozen=True)
class BetaLikeness(Model):
    """No sensitive value is more frequent in a group than in the table by more than a factor.

    With p the share in the group and q that in the table: (p - q) / q <= beta for every value, and with ``enhanced``
    also <= -ln q, which binds where a value is frequent in the table.
    """

    beta: float
    enhanced: bool = True
    column: str | None = None
    name: ClassVar[str] = "beta-likeness"
    short: ClassVar[str] = "beta"
    monotone: ClassVar[str] = "monotone: each value's share has a ceiling, and the shares of a union are averages"
    source: ClassVar[str] = "Cao, Karras 2012, Definitions 2 and 3"
    weaker = max

    def __post_init__(self) -> None:
        above_zero(self, "beta")
        if not isinstance(self.enhanced, bool):
            raise PolicyError(f"BetaLikeness(enhanced={self.enhanced!r}): say true or false")

    def words(self) -> str:
        kind = "enhanced" if self.enhanced else "basic"
        return f"no value's share in a group exceeds the table's by a factor over 1 + {self.beta} ({kind})"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        q = table / table.sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where(table > 0, counts / counts.sum() / q - 1, 0.0)
        return max(float(gain.max(initial=0)), 0.0)

    def ceilings(self, table: np.ndarray) -> np.ndarray:
        """float64[m]: the largest share each value may have."""
        q = table / max(table.sum(), 1)
        with np.errstate(divide="ignore"):
            most = np.minimum(self.beta, -np.log(q)) if self.enhanced else np.full(q.size, self.beta)
        return np.where(q > 0, np.minimum((1 + most) * q, 1.0), 0.0)

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return bool((counts / counts.sum() <= self.ceilings(table) + CLOSE).all())

    def implied(self, table: np.ndarray) -> Implied:
        most = self.ceilings(table)
        size = least_size(lambda n: np.floor(n * (most + CLOSE)).sum() >= n, int(table.sum()))
        return Implied(size, whole_share(float(most.max(initial=0))), reach(most, 1))

    def measure(self, table: np.ndarray) -> Measure:
        most = self.ceilings(table)
        return Measure("band", 0.0, 0, tuple(np.stack([np.zeros(most.size), most], axis=1).reshape(-1).tolist()))
