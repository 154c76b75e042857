"""The partition: every row of the histogram in exactly one group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.errors import ShoalError
from shoal.model.histogram import Histogram, rising


@dataclass(frozen=True, eq=False)
class Partition:
    """The rows of a histogram, shared out among groups.

    cell   int64[p]  cell of the histogram
    group  int64[p]  0 .. groups - 1, non-decreasing, every number used
    count  int64[p]  rows of that cell placed in that group, at least 1

    Triples, not one label per cell: equal rows may be split between groups.
    """

    cell: np.ndarray
    group: np.ndarray
    count: np.ndarray

    def __post_init__(self) -> None:
        if not self.cell.shape == self.group.shape == self.count.shape:
            raise ShoalError(
                f"cell, group and count differ in length: {self.cell.shape}, {self.group.shape}, {self.count.shape}"
            )
        if (self.count < 1).any():
            raise ShoalError("a placement moves no rows; drop it instead of storing 0")
        if self.group.size:
            steps = np.diff(self.group)
            if self.group[0] != 0 or (steps < 0).any() or (steps > 1).any():
                raise ShoalError("group numbers must run 0, 1, 2, ... without a gap; use Partition.of")

    @classmethod
    def of(cls, cell: np.ndarray, group: np.ndarray, count: np.ndarray) -> Partition:
        """Sorted by (group, cell), equal pairs added up, empty ones dropped, groups renumbered from 0."""
        cell, group, count = (np.asarray(a, dtype=np.int64) for a in (cell, group, count))
        kept = count > 0
        cell, group, count = cell[kept], group[kept], count[kept]
        order = rising(group, cell)
        cell, group, count = cell[order], group[order], count[order]
        if cell.size:
            new = np.ones(cell.size, bool)
            new[1:] = (np.diff(group) != 0) | (np.diff(cell) != 0)
            start = np.flatnonzero(new)
            cell, group, count = cell[start], group[start], np.add.reduceat(count, start)
            group = np.concatenate([[0], np.cumsum(np.diff(group) != 0)]).astype(np.int64)
        return cls(cell=cell, group=group, count=count)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.group[-1]) + 1 if self.group.size else 0

    @cached_property
    def start(self) -> np.ndarray:
        """int64[groups]: where each group's triples begin."""
        return np.searchsorted(self.group, np.arange(self.groups))

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64[groups]: rows of each group."""
        return np.bincount(self.group, weights=self.count, minlength=self.groups).astype(np.int64)

    def check(self, histogram: Histogram) -> None:
        """Raise ShoalError unless every row of the histogram is placed exactly once."""
        placed = np.bincount(self.cell, weights=self.count, minlength=histogram.cells).astype(np.int64)
        if placed.shape[0] != histogram.cells or (placed != histogram.count).any():
            raise ShoalError(f"the partition places {int(placed.sum())} rows, the table has {histogram.rows}")
