"""k-anonymity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.privacy.base import Implied, Model, at_least


@dataclass(frozen=True)
class KAnonymity(Model):
    """Every group has at least k rows."""

    k: int
    name: ClassVar[str] = "k-anonymity"
    short: ClassVar[str] = "k"
    monotone: ClassVar[str] = "monotone: sizes add up"
    source: ClassVar[str] = "Samarati, Sweeney 1998; Sweeney 2002"
    speaks: ClassVar[str] = "rows"
    simple: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(self, "k", 1, whole=True)

    def words(self) -> str:
        return f"every group has at least {self.k} rows" if self.k > 1 else "no size of a group is asked"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return int(counts.sum())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int(counts.sum()) >= self.k

    def implied(self, table: np.ndarray) -> Implied:
        return Implied(size=self.k)
