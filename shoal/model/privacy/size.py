"""k-anonymity and (alpha,k)-anonymity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.cards import several
from shoal.model.privacy.base import (
    CLOSE,
    Implied,
    Measure,
    Model,
    above_zero,
    at_least_one,
    least_size,
    said,
    whole_share,
)


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
        at_least_one(self, "k", whole=True)

    def words(self) -> str:
        return f"every group has at least {self.k} rows" if self.k > 1 else "no size of a group is asked"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return int(counts.sum())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int(counts.sum()) >= self.k

    def implied(self, table: np.ndarray) -> Implied:
        return Implied(size=self.k)


@dataclass(frozen=True)
class AlphaKAnonymity(Model):
    """Every group has at least k rows, and no sensitive value has more than the share alpha of it."""

    alpha: float
    k: int
    column: str | None = None
    name: ClassVar[str] = "(alpha,k)-anonymity"
    short: ClassVar[str] = "alpha"
    monotone: ClassVar[str] = "monotone: sizes add up, and the shares of a union are averages"
    source: ClassVar[str] = "Wong, Li, Fu, Wang 2006"
    weaker = max

    def __post_init__(self) -> None:
        at_least_one(self, "k", whole=True)
        above_zero(self, "alpha", 1, "a share, above 0 and at most 1")

    @property
    def simple(self) -> bool:  # type: ignore[override]
        """Whether 1 / alpha is whole: the model is then k together with l-diversity by frequency."""
        return abs(self.alpha * whole_share(self.alpha) - 1) <= CLOSE

    @property
    def most(self) -> float:
        return self.alpha

    def words(self) -> str:
        if self.k == 1:
            return f"at most the share {self.alpha} of every group has the same value"
        return f"every group has at least {self.k} rows, and at most the share {self.alpha} of them has the same value"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return float(counts.max() / counts.sum())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int(counts.sum()) >= self.k and self.level(counts, table) <= self.alpha + CLOSE

    def implied(self, table: np.ndarray) -> Implied:
        if self.simple:
            return Implied(self.k, whole_share(self.alpha))
        m = max(int((table > 0).sum()), 1)
        size = least_size(lambda n: -(-n // m) <= (self.alpha + CLOSE) * n, int(table.sum()))
        distinct = int(np.ceil(1 / self.alpha - 1e-6))
        return Implied(size=max(size, self.k), share=whole_share(self.alpha), distinct=distinct)

    def stand_in(self) -> int | None:
        return int(np.ceil(1 / self.alpha - 1e-12))

    def measure(self, table: np.ndarray) -> Measure:
        return Measure("band", 0.0, 0, tuple(np.tile([0.0, self.alpha], table.size).tolist()))

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        if int(counts.sum()) < self.k:
            return f"the table has {several(int(counts.sum()), 'row')}, so no group of k = {self.k} exists"
        level = self.level(counts, counts)
        return (
            f"one value of {name} is {100 * level:.1f} % of the rows, so no table with alpha = {self.alpha} exists; "
            f"ask for alpha = {said(level, up=True)} at the least"
        )
