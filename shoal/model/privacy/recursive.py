"""Recursive (c,l)-diversity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, above_zero, at_least, least_size, said, whole_share


@dataclass(frozen=True)
class RecursiveLDiversity(Model):
    """r1 < c (r_l + ... + r_m), r the falling counts of a group's sensitive values."""

    c: float
    l: int
    column: str | None = None
    name: ClassVar[str] = "recursive (c,l)-diversity"
    short: ClassVar[str] = "recursive_c"
    monotone: ClassVar[str] = (
        "monotone: r1 is convex in the counts and the rows outside the l - 1 commonest values are concave, both "
        "homogeneous, so r1 of a union is at most the sum and its tail at least the sum of the tails"
    )
    source: ClassVar[str] = "Machanavajjhala et al. 2007"
    weaker = max

    def __post_init__(self) -> None:
        at_least(self, "l", 1, whole=True)
        above_zero(self, "c")

    def words(self) -> str:
        return f"the commonest value is rarer than {self.c} times those from rank {self.l} on"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        falling = np.sort(counts)[::-1]
        tail = int(falling[self.l - 1 :].sum())
        return float(falling[0] / tail) if tail else math.inf

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.level(counts, table) < self.c - CLOSE

    def implied(self, table: np.ndarray) -> Implied:
        """r1 < c (n - r1) for l >= 2; of u values the tail has at most (u - l + 1) r1 rows, so u > l - 1 + 1 / c."""
        m = max(int((table > 0).sum()), 1)
        share = self.c / (1 + self.c) if self.l >= 2 else 1.0
        size = least_size(lambda n: self.holds(np.full(m, n // m) + (np.arange(m) < n % m), table), int(table.sum()))
        return Implied(size=size, share=whole_share(share), distinct=self.stand_in())

    def stand_in(self) -> int:
        """r1 <= n / L leaves a tail of at least n - (l - 1) n / L."""
        return math.floor(self.l - 1 + 1 / self.c) + 1

    def measure(self, table: np.ndarray) -> Measure:
        return Measure("recursive", self.c, self.l)

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        level = self.level(counts, counts)
        if math.isfinite(level):
            way = f"any c above {said(level, up=True)} passes"
        else:
            way = f"{name} has {int((counts > 0).sum())} different values, so ask for no larger l"
        return (
            f"{name} of the whole table has r1 / (r_{self.l} + ... ) = {level:.6g}, so no table with recursive "
            f"({self.c},{self.l})-diversity exists; {way}"
        )
