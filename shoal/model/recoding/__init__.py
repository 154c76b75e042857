"""Recodings: how the values of a group are published, and the loss of each published value.

``column`` defines the interface. ``levels`` (hierarchies and stars), ``ranges`` (ranges and sets), and ``regions``
implement it. ``Recoding`` combines columns. To add a recoding, add a module that implements the interface, and a line
in ``shoal.model.settings``.
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
    """The published values of each group: int32[g, d] twice.

    Levels: ``first`` is the level, ``second`` the class at that level. Ranges: lowest and highest end. Sets: number of
    values, and -1.
    """

    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True, eq=False)
class Recoding:
    """A ColumnRecoding for each quasi-identifier, and the unit of the loss.

    Unit "stars": the loss of a row is its number of stars, an integer. Unit "ncp": mean over rows and columns.
    """

    columns: tuple[ColumnRecoding, ...]
    unit: str = "ncp"

    @classmethod
    def stars(cls, histogram: Histogram) -> Recoding:
        """The recoding that suppresses values of every quasi-identifier."""
        return cls(tuple(Levels.stars(size) for size in histogram.quasi_sizes), "stars")

    @property
    def hierarchies(self) -> tuple[Levels, ...] | None:
        """The columns if all of them are levels; otherwise None."""
        found = tuple(c for c in self.columns if isinstance(c, Levels))
        return found if len(found) == len(self.columns) else None

    def publish(self, histogram: Histogram, partition: Partition) -> PublishedCodes:
        """The published value of every group in every column. O(p d h) for p triples."""
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
        """Each group's published value at the level of its column, or at the top level if its rows differ there.

        levels   the level of every column, by name
        starred  whether the last group is a block of completely starred rows
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
        """The published values of the groups in one column."""
        first, second = published.first[:, j], published.second[:, j]
        return PublishedColumn(first, second, partition.group, partition.cell, histogram.quasi[:, j])

    def losses(self, histogram: Histogram, partition: Partition, published: PublishedCodes | None = None) -> np.ndarray:
        """float64[g, d]: the weighted loss of one row of each group in each column."""
        published = published or self.publish(histogram, partition)
        out = np.zeros(published.first.shape)
        if not partition.groups:
            return out
        someone = histogram.quasi[partition.cell[partition.start]]
        for j, column in enumerate(self.columns):
            out[:, j] = column.lost(self.shown(histogram, partition, published, j), someone[:, j]) * column.weight
        return out

    def alone(self, histogram: Histogram) -> float:
        """The loss that every row has even as a single row: above 0 if ranges are widened to a grid. A mean as in
        ``cost``.

        It is slightly below the exact value, so that rounding can't lift it above a cost.
        """
        total = sum(
            float(((c.pure * c.weight)[histogram.quasi[:, j]] * histogram.count).sum())
            for j, c in enumerate(self.columns)
            if c.pure.any()
        )
        return total * (1 - 1e-12) / max(histogram.rows * len(self.columns), 1)

    def cost(self, histogram: Histogram, partition: Partition, published: PublishedCodes | None = None) -> float:
        """The loss of a partition in this recoding's unit: an int for stars, the mean over rows and columns for NCP."""
        total = float((self.losses(histogram, partition, published).sum(axis=1) * partition.sizes).sum())
        if self.unit == "stars":
            return round(total)
        return total / max(histogram.rows * len(self.columns), 1)
