"""How the values of a group are published, and what each published value costs: a file for each way.

``column`` states what every way answers; ``levels`` (hierarchies, and stars), ``ranges``, ``sets``, and ``regions``
answer it.  ``Recoding`` puts columns together.  A further way is a file that answers the same, and a line in
``shoal.model.settings``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shoal.errors import PolicyError
from shoal.model.histogram import Histogram, Partition
from shoal.model.recoding.column import ColumnRecoding, Labels, PublishedColumn, Slot
from shoal.model.recoding.levels import FORBIDDEN, Levels
from shoal.model.recoding.ranges import RangeGrid, Ranges, Sets
from shoal.model.recoding.regions import AREAS, Regions

__all__ = [
    "AREAS",
    "FORBIDDEN",
    "ColumnRecoding",
    "Labels",
    "Levels",
    "PublishedCodes",
    "PublishedColumn",
    "RangeGrid",
    "Ranges",
    "Recoding",
    "Regions",
    "Sets",
    "Slot",
]


@dataclass(frozen=True, eq=False)
class PublishedCodes:
    """What each group publishes: int32[g, d] twice.

    levels columns: ``first`` the level, ``second`` the class at that level.
    range columns: lowest and highest end.  set columns: number of values, and -1.
    """

    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True, eq=False)
class Recoding:
    """One ColumnRecoding per quasi-identifier, and the unit in which the loss is counted.

    unit "stars": loss of a row is its number of stars, an integer.  unit "ncp": mean over rows and columns.
    """

    columns: tuple[ColumnRecoding, ...]
    unit: str = "ncp"

    @classmethod
    def stars(cls, histogram: Histogram) -> Recoding:
        """Plain suppression of every quasi-identifier."""
        return cls(tuple(Levels.stars(size) for size in histogram.quasi_sizes), "stars")

    @property
    def hierarchies(self) -> tuple[Levels, ...] | None:
        """The columns where all of them are levels; None where one is not."""
        found = tuple(c for c in self.columns if isinstance(c, Levels))
        return found if len(found) == len(self.columns) else None

    def publish(self, histogram: Histogram, partition: Partition) -> PublishedCodes:
        """The published value of every group in every column.  O(p d h) for p triples."""
        g, d = partition.groups, len(self.columns)
        first, second = np.zeros((g, d), np.int32), np.zeros((g, d), np.int32)
        for j, column in enumerate(self.columns if g else ()):
            found = column.join(partition.group, histogram.quasi[:, j].take(partition.cell), partition.start)
            if found is None:
                name = histogram.quasi_names[j]
                raise PolicyError(f"the hierarchy of {name!r} has no common root, so some groups cannot be published")
            first[:, j], second[:, j] = found
        return PublishedCodes(first, second)

    def at_levels(
        self, histogram: Histogram, partition: Partition, levels: Mapping[str, int], starred: bool = False
    ) -> PublishedCodes:
        """Every group at its column's level, at the top where its rows have different classes there.

        levels   of every column, by name; starred  the last group is a block of rows starred whole
        """
        first = np.zeros((partition.groups, len(self.columns)), np.int32)
        second = np.zeros_like(first)
        for j, column in enumerate((self.hierarchies or ()) if partition.groups else ()):
            code, level = histogram.quasi[partition.cell, j], levels[histogram.quasi_names[j]]
            at = column.node[level][code]
            agree = np.minimum.reduceat(at, partition.start) == np.maximum.reduceat(at, partition.start)
            agree[-1] &= not starred
            first[:, j] = np.where(agree, level, column.levels - 1)
            second[:, j] = column.node[first[:, j], code[partition.start]]
        return PublishedCodes(first, second)

    def shown(self, histogram: Histogram, partition: Partition, published: PublishedCodes, j: int) -> PublishedColumn:
        """What the groups publish in one column."""
        first, second = published.first[:, j], published.second[:, j]
        return PublishedColumn(first, second, partition.group, partition.cell, histogram.quasi[:, j])

    def losses(self, histogram: Histogram, partition: Partition, published: PublishedCodes | None = None) -> np.ndarray:
        """float64[g, d]: weighted loss of one row of each group in each column."""
        published = published or self.publish(histogram, partition)
        out = np.zeros(published.first.shape)
        if not partition.groups:
            return out
        someone = histogram.quasi[partition.cell[partition.start]]
        for j, column in enumerate(self.columns):
            out[:, j] = column.lost(self.shown(histogram, partition, published, j), someone[:, j]) * column.weight
        return out

    def alone(self, histogram: Histogram) -> float:
        """What every row loses though it were in no group: above 0 where ranges are widened to a grid; mean as in cost.

        A little below the truth, so that rounding cannot lift it above a cost.
        """
        total = sum(
            float(((c.pure * c.weight)[histogram.quasi[:, j]] * histogram.count).sum())
            for j, c in enumerate(self.columns)
            if c.pure.any()
        )
        return total * (1 - 1e-12) / max(histogram.rows * len(self.columns), 1)

    def cost(self, histogram: Histogram, partition: Partition, published: PublishedCodes | None = None) -> float:
        """The loss of a partition in this recoding's unit: int for stars, mean over rows and columns for ncp."""
        total = float((self.losses(histogram, partition, published).sum(axis=1) * partition.sizes).sum())
        if self.unit == "stars":
            return round(total)
        return total / max(histogram.rows * len(self.columns), 1)
