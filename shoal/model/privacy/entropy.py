"""Entropy l-diversity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, at_least, least_size, whole_share


@dataclass(frozen=True)
class EntropyLDiversity(Model):
    """The entropy of every group's sensitive values is at least log l."""

    l: float
    column: str | None = None
    name: ClassVar[str] = "entropy l-diversity"
    short: ClassVar[str] = "entropy_l"
    monotone: ClassVar[str] = "monotone: entropy is concave, and the shares of a union are averages"
    source: ClassVar[str] = "Machanavajjhala et al. 2007"

    def __post_init__(self) -> None:
        at_least(self, "l", 1)

    def words(self) -> str:
        return f"the entropy of every group is at least log {self.l:g}"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return math.exp(_entropy(counts))

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return bool(_entropy(counts) >= math.log(self.l) - CLOSE)

    def implied(self, table: np.ndarray) -> Implied:
        """With one value on the share p of m values the entropy is at most that with the rest spread evenly."""
        m, asked = int((table > 0).sum()), math.log(self.l) - CLOSE
        if asked <= 0 or m < 2:
            return Implied()
        low, high = 1 / m, 1.0  # the entropy falls in p from 1/m on
        for _ in range(60):
            p = (low + high) / 2
            rest = 1 - p
            found = -p * math.log(p) - (rest * math.log(rest / (m - 1)) if rest > 0 else 0.0)
            low, high = (p, high) if found >= asked else (low, p)
        size = least_size(lambda n: _entropy(_even(n, m)) >= asked, int(table.sum()))
        return Implied(size=size, share=whole_share(high), distinct=math.ceil(self.l - 1e-6))

    def stand_in(self) -> int | None:
        """Entropy is at least min-entropy."""
        return math.ceil(self.l)

    def measure(self, table: np.ndarray) -> Measure:
        return Measure("entropy", math.log(self.l))


def _entropy(counts: np.ndarray) -> float:
    share = counts[counts > 0] / counts.sum()
    return max(float(-(share * np.log(share)).sum()), 0.0)


def _even(n: int, m: int) -> np.ndarray:
    """n rows spread over m values as evenly as can be: the most entropy."""
    return np.full(m, n // m) + (np.arange(m) < n % m)
