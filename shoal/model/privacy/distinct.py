"""Distinct l-diversity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.privacy.base import Implied, Model, at_least


@dataclass(frozen=True)
class DistinctLDiversity(Model):
    """Every group has at least l different sensitive values."""

    l: int
    column: str | None = None
    name: ClassVar[str] = "distinct l-diversity"
    short: ClassVar[str] = "distinct_l"
    monotone: ClassVar[str] = "monotone: a union has every value of its parts"
    source: ClassVar[str] = "Machanavajjhala et al. 2007"
    simple: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(self, "l", 1, whole=True)

    def words(self) -> str:
        return f"every group has at least {self.l} different values"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return int((counts > 0).sum())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int((counts > 0).sum()) >= self.l

    def implied(self, table: np.ndarray) -> Implied:
        return Implied(distinct=self.l)
