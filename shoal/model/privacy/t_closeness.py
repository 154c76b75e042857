"""t-closeness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.errors import PolicyError
from shoal.model.privacy.base import CLOSE, Implied, Measure, Model, least_size, nearest, reach, whole_share
from shoal.model.privacy.tree_closeness import TreeCloseness

DISTANCES = ("equal", "ordered", "hierarchical")


@dataclass(frozen=True)
class TCloseness(Model):
    """The distance between a group's distribution of a sensitive column and the table's is at most t.

    distance  "equal" (half the sum of differences), "ordered" (earth mover's on ranks, over m - 1) or "hierarchical"
              (earth mover's, values being as far apart as the hierarchy of the column says: the level at which they
              join, over its height)
    """

    t: float
    distance: str = "equal"
    column: str | None = None
    name: ClassVar[str] = "t-closeness"
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
        """The model bound to the classes int[h, m] of a column's values; see ``Hierarchy.resolve``."""
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
        """Equal: no share above q + t, and values present that make up 1 - t of the table.

        The least distance n rows can have: equal, see ``nearest``; ordered, every cumulated share rounded by itself,
        which keeps their order.
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
