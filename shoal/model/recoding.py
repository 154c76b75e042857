"""How the values of a group are published, and what each published value costs.

A column is recoded in one of three ways.  *levels*: the group's values are replaced by their lowest common
ancestor in a tree of equal depth (suppression is the tree of height one: the value or a star).
*set*: by the set of values present.  *range*: by lowest and highest.  Every published value has a loss
from 0 (the value itself) to 1 (nothing left), times the column's weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shoal.errors import PolicyError
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition


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
    """

    kind: str
    size: int
    node: np.ndarray
    loss: np.ndarray
    position: np.ndarray
    weight: float = 1.0
    ceiling: int = 0

    @property
    def levels(self) -> int:
        """Number of levels, the values themselves included; 0 for sets and ranges."""
        return int(self.node.shape[0])

    @property
    def span(self) -> float:
        """Length of the line of a range column, at least a tiny positive number."""
        return float(self.position[-1] - self.position[0]) if self.size > 1 else 1.0

    @classmethod
    def stars(cls, size: int, weight: float = 1.0) -> ColumnRecoding:
        """The value or a star; a star costs 1."""
        node = np.stack([np.arange(size), np.zeros(size, int)]).astype(np.int32)
        loss = np.stack([np.zeros(size), np.ones(size)])
        return cls("levels", size, node, loss, np.zeros(0), weight, 1)

    @classmethod
    def tree(cls, node: np.ndarray, weight: float = 1.0, ceiling: int | None = None) -> ColumnRecoding:
        """A hierarchy, node int[h, size] as above; loss is NCP: (leaves under the class - 1) / (leaves - 1)."""
        node = np.ascontiguousarray(node, dtype=np.int32)
        h, size = node.shape
        for low, high in pairwise(node):
            order = np.lexsort((high, low))
            same = low[order][1:] == low[order][:-1]
            if (same & (high[order][1:] != high[order][:-1])).any():
                raise PolicyError(
                    "a hierarchy's levels are not nested: one class lies in two classes of the next level"
                )
        loss = np.zeros((h, size))
        for i in range(h):
            leaves = np.bincount(node[i], minlength=1)[node[i]] if size else np.zeros(0)
            loss[i] = (leaves - 1) / max(size - 1, 1)
        return cls("levels", size, node, loss, np.zeros(0), weight, h - 1 if ceiling is None else min(ceiling, h - 1))

    @classmethod
    def set(cls, size: int, weight: float = 1.0) -> ColumnRecoding:
        """The set of values present; loss (values - 1) / (size - 1)."""
        none = np.zeros((0, size))
        return cls("set", size, none.astype(np.int32), none, np.zeros(0), weight)

    @classmethod
    def range(cls, position: np.ndarray, weight: float = 1.0) -> ColumnRecoding:
        """Lowest to highest; loss (high - low) / (max - min).  position float[size], rising."""
        position = np.asarray(position, dtype=np.float64)
        none = np.zeros((0, position.size))
        return cls("range", position.size, none.astype(np.int32), none, position, weight)


@dataclass(frozen=True, eq=False)
class Published:
    """What each group publishes: int32[g, d] twice.

    levels columns: ``first`` the level, ``second`` the class at that level.
    range columns: lowest and highest code.  set columns: number of values, and -1.
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
                first[:, j], second[:, j] = np.minimum.reduceat(code, start), np.maximum.reduceat(code, start)
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
                out[:, j] = (column.position[b] - column.position[a]) / column.span
            else:
                out[:, j] = (a - 1) / max(column.size - 1, 1)
            out[:, j] *= column.weight
        return out

    def cost(self, histogram: Histogram, partition: Partition) -> float:
        """The loss of a partition in this recoding's unit: int for stars, mean over rows and columns for ncp."""
        total = float((self.losses(histogram, partition).sum(axis=1) * partition.sizes).sum())
        if self.unit == "stars":
            return round(total)
        return total / max(histogram.rows * len(self.columns), 1)
