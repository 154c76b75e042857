"""t-closeness by the hierarchical distance, bound to the classes that a column's values lie in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, least_size, nearest, whole_share


@dataclass(frozen=True)
class TreeCloseness(Model):
    """What ``TCloseness(t, "hierarchical")`` asks of one column of one table.

    node  h tuples of m numbers from 0: the class of every value at every level; first the values by themselves, last
          one class of all; every class lies in one class of the next level

    Two values are level / (h - 1) apart, level being the lowest at which they are in one class.  That is half the path
    between two leaves of a tree whose edges are all 1 / (h - 1) long, so the earth mover's distance carries over every
    edge what the class below it has too much or too little: it is the mean, over the levels below the last, of the
    equal distance between the classes of that level.
    """

    t: float
    node: tuple[tuple[int, ...], ...]
    column: str | None = None
    name: ClassVar[str] = "t-closeness"
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
        """The class of every value, level by level up to the last but one."""
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
        """Size: the classes of every level rounded by themselves, as for the equal distance.

        Share: with a share p of one value its class at a level has at least p, so the sum over levels of
        max(0, p - share of the class) is at most t times their number.  As classes grow, that sum is the largest over j
        of j p less the shares of the j lowest classes.
        Values: u of them lie in at most u classes of a level, and what the table has in the others is lacking.
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
        """How many classes there are, the class of every value level by level, the share of every class."""
        levels = self._below(table)
        q = [np.bincount(level, weights=table) / max(table.sum(), 1) for level in levels]
        first = np.cumsum([0, *(s.size for s in q)])
        numbers = [level + at for level, at in zip(levels, first[:-1], strict=True)]
        content = np.concatenate([[first[-1]], *numbers, *q])
        return Measure("tree", self.t, len(levels), tuple(content.tolist()))
