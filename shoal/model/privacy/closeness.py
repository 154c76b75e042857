"""Privacy models that compare a group with the table: t-closeness, beta-likeness, and delta-disclosure privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, above_zero, least_size, nearest, reach, whole_share


@dataclass(frozen=True)
class TreeCloseness(Model):
    """``TCloseness(t, "hierarchical")`` on one column of one table.

    node  h tuples of m numbers from 0: the class of every value at every level, from the values themselves to one class
          of all; every class lies in one class of the next level

    The distance of two values is level / (h - 1) for the lowest level at which they are in one class. This is half the
    path between two leaves of a tree in which each edge has length 1 / (h - 1). The earth mover's distance moves over
    every edge the surplus or deficit of the class below it. So it is the mean, over all levels except the last, of the
    equal distance between the classes of that level.
    """

    t: float
    node: tuple[tuple[int, ...], ...]
    column: str | None = None
    name: ClassVar[str] = "t-closeness"
    compares: ClassVar[bool] = True
    short: ClassVar[str] = "t"
    monotone: ClassVar[str] = (
        "monotone: a mean of sums of |P - Q| over classes, each convex in P, and the P of a union is an average "
        "(Li, Li, Venkatasubramanian 2007, Facts 1 and 2)"
    )
    source: ClassVar[str] = "Li, Li, Venkatasubramanian 2007, section 5.2"
    weaker = max

    def words(self) -> str:
        return f"the distribution of every group is within {self.t} of the table's (hierarchical distance)"

    def _below(self, table: np.ndarray) -> list[np.ndarray]:
        """The class of every value at each level except the last."""
        if any(len(level) != table.size for level in self.node):
            raise PolicyError(f"the classes of {len(self.node[0])} values are given, and the column has {table.size}")
        return [np.array(level, np.int64) for level in self.node[:-1]]

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        apart = counts / counts.sum() - table / table.sum()
        levels = self._below(table)
        total = sum(float(np.abs(np.bincount(level, weights=apart)).sum()) for level in levels)
        return total / 2 / max(len(levels), 1)

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.level(counts, table) <= self.t + CLOSE

    def implied(self, table: np.ndarray) -> Implied:
        """Size: as for the equal distance, with the classes of every level rounded separately.

        Share: if a value has the share p, its class at each level has at least p. So the sum over levels of max(0, p -
        share of the class) is at most t times the number of levels. Classes grow with the level, so that sum is the
        maximum over j of j p minus the shares of the j lowest classes.

        Values: u values lie in at most u classes of a level, and the table's share of the other classes is missing.
        """
        rows = max(int(table.sum()), 1)
        levels = self._below(table)
        q = [np.bincount(level, weights=table) / rows for level in levels]
        limit = len(levels) * (self.t + CLOSE)
        size = least_size(lambda n: sum(nearest(s, n) for s in q) <= limit, rows)
        own = np.array([s[level] for s, level in zip(q, levels, strict=True)])
        j = np.arange(1, len(levels) + 1).reshape(-1, 1)
        most = ((limit + np.cumsum(own, axis=0)) / j).min(axis=0)
        top = float(most[table > 0].max(initial=0))
        held = [np.cumsum(np.sort(s)[::-1]) for s in q]
        values, distinct = int((table > 0).sum()), 1
        while distinct < values and sum(1 - float(s[min(distinct, s.size) - 1]) for s in held) > limit:
            distinct += 1
        return Implied(size, whole_share(top), distinct)

    def measure(self, table: np.ndarray) -> Measure:
        """The number of classes, the class of every value level by level, and the share of every class."""
        levels = self._below(table)
        q = [np.bincount(level, weights=table) / max(table.sum(), 1) for level in levels]
        first = np.cumsum([0, *(s.size for s in q)])
        numbers = [level + at for level, at in zip(levels, first[:-1], strict=True)]
        content = np.concatenate([[first[-1]], *numbers, *q])
        return Measure("tree", self.t, len(levels), tuple(content.tolist()))


DISTANCES = ("equal", "ordered", "hierarchical")


@dataclass(frozen=True)
class TCloseness(Model):
    """The distance between a group's distribution of a sensitive column and the table's is at most t.

    distance  "equal" (half the sum of differences), "ordered" (earth mover's distance on ranks, over m - 1), or
              "hierarchical" (earth mover's distance, where two values are as far apart as the level at which they join
              in the column's hierarchy, over its height)
    """

    t: float
    distance: str = "equal"
    column: str | None = None
    name: ClassVar[str] = "t-closeness"
    compares: ClassVar[bool] = True
    short: ClassVar[str] = "t"
    monotone: ClassVar[str] = "monotone: the distance is convex (Li, Li, Venkatasubramanian 2007, Facts 1 and 2)"
    source: ClassVar[str] = "Li, Li, Venkatasubramanian 2007"
    weaker = max

    def __post_init__(self) -> None:
        if isinstance(self.t, bool) or not isinstance(self.t, (int, float)) or not 0 <= self.t <= 1:
            raise PolicyError(f"{self.name}: t is {self.t!r}, and it has to be a distance, from 0 to 1")
        if self.distance not in DISTANCES:
            raise PolicyError.unknown("distance of TCloseness", self.distance, DISTANCES)

    @property
    def unbound(self) -> str | None:
        if self.distance != "hierarchical":
            return None
        where = "its sensitive column" if self.column is None else f"column {self.column!r}"
        return f"t-closeness by the hierarchical distance needs the hierarchy of {where}"

    def on(self, node: np.ndarray, column: str) -> TreeCloseness:
        """The model applied to the classes int[h, m] of a column's values; see ``Hierarchy.resolve``."""
        return TreeCloseness(self.t, tuple(map(tuple, node.tolist())), column)

    def words(self) -> str:
        return f"the distribution of every group is within {self.t} of the table's ({self.distance} distance)"

    def level(self, counts: np.ndarray, table: np.ndarray) -> float:
        if self.unbound is not None:
            raise PolicyError(self.unbound)
        here = table > 0
        apart = counts[here] / counts.sum() - table[here] / table.sum()
        if self.distance == "equal":
            return float(np.abs(apart).sum() / 2)
        return float(np.abs(np.cumsum(apart)).sum() / (apart.size - 1)) if apart.size > 1 else 0.0

    def holds(self, counts: np.ndarray, table: np.ndarray) -> bool:
        return self.level(counts, table) <= self.t + CLOSE

    def implied(self, table: np.ndarray) -> Implied:
        """Equal distance: no share exceeds q + t, and the values that are present make up 1 - t of the table.

        Size, by the smallest distance that n rows can have: for the equal distance, see ``nearest``; for the ordered
        one, every cumulative share is rounded separately, which keeps their order.
        """
        if self.unbound is not None:
            return Implied()
        rows = int(table.sum())
        q = table[table > 0] / max(rows, 1)
        if self.distance == "equal":
            size = least_size(lambda n: nearest(q, n) <= self.t + CLOSE, rows)
            return Implied(size, whole_share(float(q.max(initial=0)) + self.t), max(reach(q, 1 - self.t), 1))
        upto = np.cumsum(q)

        def closest(n: int) -> float:
            return float(np.abs(np.round(n * upto) / n - upto).sum() / max(q.size - 1, 1))

        return Implied(size=least_size(lambda n: closest(n) <= self.t + CLOSE, rows))

    def measure(self, table: np.ndarray) -> Measure:
        q = table / max(table.sum(), 1)
        steps = max(int((table > 0).sum()) - 1, 1)
        return Measure(self.distance, self.t, steps, tuple((q if self.distance == "equal" else np.cumsum(q)).tolist()))


@dataclass(frozen=True)
class BetaLikeness(Model):
    """No sensitive value is more frequent in a group than in the table by more than a factor.

    p is the share in the group and q the share in the table. (p - q) / q <= beta for every value. With ``enhanced``, it
    is also <= -ln q, which matters if a value is frequent in the table.
    """

    beta: float
    enhanced: bool = True
    column: str | None = None
    name: ClassVar[str] = "beta-likeness"
    compares: ClassVar[bool] = True
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
        """float64[m]: the largest share that each value may have."""
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


ABSENT = ("infinite", "ignored")


@dataclass(frozen=True)
class DeltaDisclosure(Model):
    """In every group, |log(p / q)| < delta for every sensitive value: p is its share in the group, q in the table.

    absent  "infinite": a value of the table that a group lacks has p = 0 and fails, as the definition requires;
            "ignored": only the values of a group count, as in some tools; this can be audited but not enforced
    """

    delta: float
    absent: str = "infinite"
    column: str | None = None
    name: ClassVar[str] = "delta-disclosure"
    compares: ClassVar[bool] = True
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
