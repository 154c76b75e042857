"""l-diversity in its frequency form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.privacy.base import Implied, Model, at_least


@dataclass(frozen=True)
class LDiversity(Model):
    """At most 1/l of a group's rows share a sensitive value (frequency form)."""

    l: int
    column: str | None = None
    name: ClassVar[str] = "l-diversity"
    short: ClassVar[str] = "l"
    monotone: ClassVar[str] = "monotone: Xiao, Yi, Tao 2010, Lemma 1"
    source: ClassVar[str] = "Xiao, Yi, Tao 2010, Definition 2"
    simple: ClassVar[bool] = True

    def __post_init__(self) -> None:
        at_least(self, "l", 1, whole=True)

    @property
    def most(self) -> float:
        return 1 / self.l

    def words(self) -> str:
        return f"at most 1/{self.l} of every group share a value"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return float(counts.sum() / counts.max())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return bool(self.l * int(counts.max()) <= int(counts.sum()))

    def implied(self, table: np.ndarray) -> Implied:
        return Implied(share=self.l)
