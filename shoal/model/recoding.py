"""How the values of a group are published, and what each published value costs.

A column is recoded in one of three ways.  *levels*: the group's values are replaced by their lowest common
ancestor in a tree of equal depth (suppression is the tree of height one: the value or a star).
*set*: by the set of values present.  *range*: by lowest and highest, widened to a grid if asked.  Every published
value has a loss from 0 (the value itself) to 1 (nothing left), times the column's weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.errors import PolicyError
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition


class Grid(NamedTuple):
    """Ends to which ranges are widened outwards.

    ends       float64[e], rising;  low, high int32[size]: the last end not above a code's position, the first not below
    """

    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True, eq=False)
class ColumnRecoding:
    """One quasi-identifier, codes 0 .. size-1.

    kind      "levels" | "set" | "range"
    node      int32[h, size]    levels: the class of each code at each level; node[0] numbers the codes themselves,
                                classes at level i+1 are unions of classes at level i.  Otherwise h = 0
    loss      float64[h, size]  levels: loss of publishing a code's class at that level, rising with the level
    position  float64[size]     range: where each code lies on its line, rising with the code
    weight    factor of this column's loss
    ceiling   highest level that may be published (h - 1 unless the user forbids more)
    ends      float64[e]        range: the places at which a published range may end, rising; the positions themselves
                                unless ranges are widened to a grid
    leaves    levels: how many leaves the hierarchy has; 0 without one
    low, high int32[size]       range: the ends published for a code by itself, as indices, around its position
    """

    kind: str
    size: int
    node: np.ndarray
    loss: np.ndarray
    position: np.ndarray
    weight: float = 1.0
    ceiling: int = 0
    ends: np.ndarray = field(default_factory=lambda: np.zeros(0))
    low: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    high: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    leaves: int = 0

    @property
    def levels(self) -> int:
        """Number of levels, the values themselves included; 0 for sets and ranges."""
        return int(self.node.shape[0])

    @property
    def span(self) -> float:
        """Length of the line of a range column, at least a tiny positive number."""
        return float(self.position[-1] - self.position[0]) if self.size > 1 else 1.0

    def width(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """float64: unweighted loss of publishing codes ``low`` to ``high`` as a range, shapes broadcast."""
        return self.between(self.low[low], self.high[high])

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """float64: the same for ends, as indices.  Beyond the column's own span nothing is left to lose."""
        return np.minimum((self.ends[second] - self.ends[first]) / self.span, 1.0)

    def inside(self, first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """int64: lowest and highest code that lies between two ends, given as indices."""
        return np.searchsorted(self.low, first, "left"), np.searchsorted(self.high, second, "right") - 1

    @property
    def pure(self) -> np.ndarray:
        """float64[size]: unweighted loss of a code published by itself; above 0 on a grid, or for classes of values."""
        codes = np.arange(self.size)
        if self.kind == "levels" and self.levels:
            return self.loss[0]
        return self.width(codes, codes) if self.kind == "range" else np.zeros(self.size)

    @classmethod
    def stars(cls, size: int, weight: float = 1.0) -> ColumnRecoding:
        """The value or a star; a star costs 1."""
        node = np.stack([np.arange(size), np.zeros(size, int)]).astype(np.int32)
        loss = np.stack([np.zeros(size), np.ones(size)])
        return cls("levels", size, node, loss, np.zeros(0), weight, 1)

    @classmethod
    def tree(
        cls, node: np.ndarray, weight: float = 1.0, ceiling: int | None = None, leaves: np.ndarray | None = None
    ) -> ColumnRecoding:
        """A hierarchy, node int[h, size] as above; loss is NCP: (leaves under the class - 1) / (leaves - 1).

        leaves  int[h, size]  of the class of each code, as the hierarchy was given, its root last; None: the codes
        """
        node = np.ascontiguousarray(node, dtype=np.int32)
        h, size = node.shape
        for low, high in pairwise(node):
            order = np.lexsort((high, low))
            same = low[order][1:] == low[order][:-1]
            if (same & (high[order][1:] != high[order][:-1])).any():
                raise PolicyError(
                    "a hierarchy's levels are not nested: one class lies in two classes of the next level"
                )
        if leaves is None:
            leaves = np.array([np.bincount(level, minlength=1)[level] if size else level for level in node])
        total = int(leaves[-1].max(initial=1))
        loss = (leaves - 1) / max(total - 1, 1)
        if h > 1 and size and (node[-1] == node[-1][0]).all():  # a star is a star, also over a single leaf
            loss[-1] = 1.0
        top = h - 1 if ceiling is None else min(ceiling, h - 1)
        return cls("levels", size, node, loss.astype(np.float64), np.zeros(0), weight, top, leaves=total)

    @classmethod
    def set(cls, size: int, weight: float = 1.0) -> ColumnRecoding:
        """The set of values present; loss (values - 1) / (size - 1)."""
        none = np.zeros((0, size))
        return cls("set", size, none.astype(np.int32), none, np.zeros(0), weight)

    @classmethod
    def range(cls, position: np.ndarray, weight: float = 1.0, grid: Grid | None = None) -> ColumnRecoding:
        """Lowest to highest; loss (high - low) / (max - min), 1 at most.  position float[size], rising.

        grid  the ends to which ranges are widened; None: the positions themselves
        """
        position = np.asarray(position, dtype=np.float64)
        none = np.zeros((0, position.size))
        codes = np.arange(position.size, dtype=np.int32)
        ends, low, high = grid or Grid(position, codes, codes)
        return cls("range", position.size, none.astype(np.int32), none, position, weight, ends=ends, low=low, high=high)


@dataclass(frozen=True, eq=False)
class Published:
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
        return cls(tuple(ColumnRecoding.stars(size) for size in histogram.quasi_sizes), "stars")

    def publish(self, histogram: Histogram, partition: Partition) -> Published:
        """The published value of every group in every column.  O(p d h) for p triples."""
        g, d = partition.groups, len(self.columns)
        first, second = np.zeros((g, d), np.int32), np.zeros((g, d), np.int32)
        if not g:
            return Published(first, second)
        start = partition.start
        for j, column in enumerate(self.columns):
            code = histogram.quasi[partition.cell, j]
            if column.kind == "levels":
                done = np.zeros(g, bool)
                for level in range(column.levels):
                    at = column.node[level][code]
                    low, high = np.minimum.reduceat(at, start), np.maximum.reduceat(at, start)
                    now = ~done & (low == high)
                    first[now, j], second[now, j] = level, low[now]
                    done |= now
                if not done.all():
                    name = histogram.quasi_names[j]
                    raise PolicyError(
                        f"the hierarchy of {name!r} has no common root, so some groups cannot be published"
                    )
            elif column.kind == "range":
                first[:, j] = column.low[np.minimum.reduceat(code, start)]
                second[:, j] = column.high[np.maximum.reduceat(code, start)]
            else:
                pair = np.unique(partition.group * np.int64(column.size) + code)
                first[:, j], second[:, j] = np.bincount(pair // column.size, minlength=g), -1
        return Published(first, second)

    def losses(self, histogram: Histogram, partition: Partition, published: Published | None = None) -> np.ndarray:
        """float64[g, d]: weighted loss of one row of each group in each column."""
        published = published or self.publish(histogram, partition)
        out = np.zeros(published.first.shape)
        if not partition.groups:
            return out
        someone = histogram.quasi[partition.cell[partition.start]]
        for j, column in enumerate(self.columns):
            a, b = published.first[:, j], published.second[:, j]
            if column.kind == "levels":
                out[:, j] = column.loss[a, someone[:, j]]
            elif column.kind == "range":
                out[:, j] = column.between(a, b)
            else:
                out[:, j] = (a - 1) / max(column.size - 1, 1)
            out[:, j] *= column.weight
        return out

    def alone(self, histogram: Histogram) -> float:
        """What every row loses though it were in no group: above 0 where ranges are widened to a grid; mean as in cost.

        A little below the truth, so that rounding cannot lift it above a cost.
        """
        total = sum(
            float((c.pure * c.weight)[histogram.quasi[:, j]] @ histogram.count) for j, c in enumerate(self.columns)
        )
        return total * (1 - 1e-12) / max(histogram.rows * len(self.columns), 1)

    def cost(self, histogram: Histogram, partition: Partition) -> float:
        """The loss of a partition in this recoding's unit: int for stars, mean over rows and columns for ncp."""
        total = float((self.losses(histogram, partition).sum(axis=1) * partition.sizes).sum())
        if self.unit == "stars":
            return round(total)
        return total / max(histogram.rows * len(self.columns), 1)
