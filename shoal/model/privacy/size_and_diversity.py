"""Models of a single group: k-anonymity, (alpha,k)-anonymity, and the forms of l-diversity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.model.cards import number, several
from shoal.model.privacy.base import (
    CLOSE,
    Implied,
    Measure,
    Model,
    above_zero,
    at_least_one,
    least_size,
    level_text,
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
    applies_to: ClassVar[str] = "rows"
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
        """Whether 1 / alpha is an integer. Then the model is k-anonymity together with l-diversity by frequency."""
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
            f"ask for alpha = {level_text(level, up=True)} at the least"
        )


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
        at_least_one(self, "l", whole=True)

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
        at_least_one(self, "l", whole=True)

    def words(self) -> str:
        return f"every group has at least {self.l} different values"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return int((counts > 0).sum())

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return int((counts > 0).sum()) >= self.l

    def implied(self, table: np.ndarray) -> Implied:
        return Implied(distinct=self.l)


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
        at_least_one(self, "l")

    def words(self) -> str:
        return f"the entropy of every group is at least log {self.l:g}"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        return math.exp(_entropy(counts))

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return bool(_entropy(counts) >= math.log(self.l) - CLOSE)

    def implied(self, table: np.ndarray) -> Implied:
        """Implied conditions: if one of m values has the share p, the entropy is at most that with all others equally
        frequent."""
        m, asked = int((table > 0).sum()), math.log(self.l) - CLOSE
        if asked <= 0 or m < 2:
            return Implied()
        low, high = 1 / m, 1.0  # from p = 1/m on, the entropy decreases in p
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
    """n rows distributed over m values as evenly as possible, which maximizes the entropy."""
    return np.full(m, n // m) + (np.arange(m) < n % m)


@dataclass(frozen=True)
class RecursiveLDiversity(Model):
    """In every group, r1 < c (r_l + ... + r_m), where r are the counts of its sensitive values in falling order."""

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
        at_least_one(self, "l", whole=True)
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
        """Implied conditions: r1 < c (n - r1) for l >= 2; with u values the tail has at most (u - l + 1) r1 rows, so u
        > l - 1 + 1 / c."""
        m = max(int((table > 0).sum()), 1)
        share = self.c / (1 + self.c) if self.l >= 2 else 1.0
        size = least_size(lambda n: self.holds(_even(n, m), table), int(table.sum()))
        return Implied(size=size, share=whole_share(share), distinct=self.stand_in())

    def stand_in(self) -> int:
        """If r1 <= n / L, the tail has at least n - (l - 1) n / L rows."""
        return math.floor(self.l - 1 + 1 / self.c) + 1

    def measure(self, table: np.ndarray) -> Measure:
        return Measure("recursive", self.c, self.l)

    def refusal(self, counts: np.ndarray, name: str, table: np.ndarray) -> str:
        level = self.level(counts, counts)
        if math.isfinite(level):
            way = f"any c above {level_text(level, up=True)} passes"
        else:
            way = f"{name} has {int((counts > 0).sum())} different values, so ask for no larger l"
        return (
            f"{name} of the whole table has r1 / (r_{self.l} + ... ) = {number(level)}, so no table with recursive "
            f"({self.c},{self.l})-diversity exists; {way}"
        )


@dataclass(frozen=True)
class SimultaneousLDiversity(Model):
    """Every row is in l rows of its group that differ pairwise in every sensitive column.

    This is the strict interpretation of Blocki and Williams' Definition 1. Their Theorem 1.6 uses a weaker one: each
    column separately has l different values, as with ``DistinctLDiversity`` on each column. The counts of a group are
    its distinct sensitive tuples, int64[g, s].
    """

    l: int
    name: ClassVar[str] = "simultaneous l-diversity"
    short: ClassVar[str] = "simultaneous_l"
    monotone: ClassVar[str] = "monotone: in a union every row keeps the l rows it lies in"
    source: ClassVar[str] = "Blocki, Williams 2010, Definition 1"
    applies_to: ClassVar[str] = "tuples"

    def __post_init__(self) -> None:
        at_least_one(self, "l", whole=True)

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
    """The most tuples, up to ``wanted``, that include this one and differ pairwise everywhere; exponential."""
    left = [t for t in tuples if all(a != b for a, b in zip(t, row, strict=True))]
    best = 1
    for i, t in enumerate(left):
        if best >= wanted:
            break
        best = max(best, 1 + _with(t, left[i + 1 :], wanted - 1))
    return best
