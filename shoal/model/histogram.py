"""The histogram and the partition: input and output of the algorithms on tables.

A histogram has the distinct tuples with their counts. A partition puts every row of a histogram in exactly one group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shoal.errors import InputError, ShoalError

DENSE = 1 << 24  # codes below this are renumbered by a lookup table instead of a sort


@dataclass(frozen=True, eq=False)
class Histogram:
    """The cells of a table with their counts.

    quasi            int32[m, d]  code of each cell in each quasi-identifier
    sensitive        int32[m, s]  code of each cell in each sensitive column; s may be 0
    count            int64[m]     number of rows of each cell, at least 1
    quasi_names      d names
    quasi_sizes      number of codes of each quasi-identifier, so that 0 <= code < size
    sensitive_names  s names
    sensitive_sizes  number of codes of each sensitive column

    Cells are distinct. If the values of a column have an order, its codes follow it.
    """

    quasi: np.ndarray
    sensitive: np.ndarray
    count: np.ndarray
    quasi_names: tuple[str, ...]
    sensitive_names: tuple[str, ...]
    quasi_sizes: tuple[int, ...]
    sensitive_sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        m = self.count.shape[0]
        if self.quasi.shape != (m, len(self.quasi_names)) or self.sensitive.shape != (m, len(self.sensitive_names)):
            raise InputError(
                f"histogram arrays disagree: {m} counts, quasi {self.quasi.shape}, sensitive {self.sensitive.shape}"
            )
        if (self.count < 1).any():
            raise InputError("a cell of a histogram holds no rows; leave it out")

    @property
    def rows(self) -> int:
        """Number of rows of the table."""
        return int(self.count.sum())

    @property
    def cells(self) -> int:
        """Number of distinct tuples, m."""
        return int(self.count.shape[0])

    def part(self, cells: np.ndarray) -> Histogram:
        """The histogram of some cells, int[m'], with the same codes."""
        quasi, sensitive = (held.take(cells, axis=0) for held in (self.quasi, self.sensitive))
        return replace(self, quasi=quasi, sensitive=sensitive, count=self.count.take(cells))

    @cached_property
    def types(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct quasi-identifier tuples: (type of each cell int64[m], a cell of each type int64[t]).

        Types are numbered in lexicographic order of their codes.
        """
        key = mixed_radix(self.quasi, self.quasi_sizes)
        if (key[1:] >= key[:-1]).all():  # the cells of a table are sorted, so neither a sort nor its memory is needed
            new = np.ones(key.size, bool)
            np.not_equal(key[1:], key[:-1], out=new[1:])
            del key
            of_type = np.cumsum(new)
            of_type -= 1
            return of_type, np.flatnonzero(new)
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        return inverse.reshape(-1).astype(np.int64), first.astype(np.int64)

    @classmethod
    def from_rows(
        cls,
        quasi: np.ndarray,
        sensitive: np.ndarray | None = None,
        *,
        quasi_names: Sequence[str] | None = None,
        sensitive_names: Sequence[str] | None = None,
    ) -> Histogram:
        """A histogram from rows of codes: quasi int[n, d], sensitive int[n, s], int[n], or None. O(n log n)."""
        quasi = np.asarray(quasi, dtype=np.int64)
        if quasi.ndim == 1:
            quasi = quasi[:, None]
        n = quasi.shape[0]
        second = np.zeros((n, 0), np.int64) if sensitive is None else np.asarray(sensitive, dtype=np.int64)
        if second.ndim == 1:
            second = second[:, None]
        both = np.concatenate([quasi, second], axis=1)
        if both.size and both.min() < 0:
            raise InputError(f"codes start at 0; found {int(both.min())}")
        sizes = tuple(int(c.max()) + 1 if n else 0 for c in both.T)
        key = mixed_radix(both, sizes)
        _, first, count = np.unique(key, return_index=True, return_counts=True)
        d, s = quasi.shape[1], second.shape[1]
        return cls(
            quasi=quasi[first].astype(np.int32),
            sensitive=second[first].astype(np.int32),
            count=count.astype(np.int64),
            quasi_names=tuple(quasi_names or (f"q{j}" for j in range(d))),
            sensitive_names=tuple(sensitive_names or (f"s{j}" for j in range(s))),
            quasi_sizes=sizes[:d],
            sensitive_sizes=sizes[d:],
        )


def merged(
    histogram: Histogram, quasi: np.ndarray, sizes: Sequence[int], apart: np.ndarray | None = None
) -> tuple[Histogram, np.ndarray, np.ndarray]:
    """A histogram under coarser codes of its quasi-identifiers; equal cells become one.

    quasi  int[cells, columns]  the new codes, below ``sizes``
    apart  int64[cells]         cells with different numbers are not merged

    Returns the histogram; int64[new cells], an old cell of each new cell; int64[cells], the new cell of each old cell.
    O(cells log cells).
    """
    parts = np.zeros(histogram.cells, np.int64) if apart is None else np.unique(apart, return_inverse=True)[1]
    held = np.concatenate([quasi, histogram.sensitive, parts.reshape(-1, 1)], axis=1)
    key = mixed_radix(held, (*sizes, *histogram.sensitive_sizes, int(parts.max(initial=0)) + 1))
    _, first, of_cell = np.unique(key, return_index=True, return_inverse=True)
    of_cell = of_cell.reshape(-1).astype(np.int64)
    small = replace(
        histogram,
        quasi=quasi[first].astype(np.int32),
        sensitive=histogram.sensitive[first],
        count=np.bincount(of_cell, weights=histogram.count).astype(np.int64),
        quasi_sizes=tuple(sizes),
    )
    return small, first, of_cell


def mixed_radix(codes: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
    """One int64 key for each row of codes int[n, d]. Keys are equal if and only if the rows are; order is
    lexicographic.

    If the product of the sizes exceeds 2**62, the key of the first columns is renumbered first. O(n d), or O(n d log
    n).
    """
    n = codes.shape[0]
    key = np.zeros(n, np.int64)
    combinations = 1
    for j, size in enumerate(sizes):
        size = max(int(size), 1)
        if combinations > 2**62 // size:
            combinations = max(_renumber(key), 1)
        key *= size
        key += codes[:, j]
        combinations *= size
    return key


def _renumber(key: np.ndarray) -> int:
    """Renumber keys int64[n] in place to 0, 1, 2, ... in their order, and return the number of different keys. O(n log
    n)."""
    order = np.argsort(key)
    held = key[order]
    new = np.ones(held.size, bool)
    np.not_equal(held[1:], held[:-1], out=new[1:])
    np.cumsum(new, out=held)
    held -= 1
    key[order] = held
    return int(held[-1]) + 1 if held.size else 0


def narrowest(codes: np.ndarray, size: int) -> np.ndarray:
    """Codes from 0 to ``size`` - 1 in the smallest integer type that holds them."""
    return codes.astype(np.min_scalar_type(max(size - 1, 0)))


def dense(key: np.ndarray) -> np.ndarray:
    """Codes int64[n] of at least 0, renumbered to 0, 1, 2, ... in their order, without a gap.

    O(n), or O(n log n) if the codes are sparse.
    """
    span = int(key.max(initial=0)) + 1
    if span > max(DENSE, 4 * key.size):
        return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
    used = np.zeros(span, bool)
    used[key] = True
    seen = np.flatnonzero(used)
    number = np.empty(span, np.int32)  # only the entries of used codes are set and read
    number[seen] = np.arange(seen.size)
    return number[key].astype(np.int64)


def rising(*codes: np.ndarray) -> np.ndarray:
    """The order that sorts rows of codes int64[n] lexicographically; equal rows are in any order.

    It sorts a single key, which takes a quarter of the time of a stable sort by each column.
    """
    least = [int(c.min(initial=0)) for c in codes]
    sizes = [int(c.max(initial=0)) - low + 1 for c, low in zip(codes, least, strict=True)]
    key = np.zeros(codes[0].size, np.int64)
    for code, low, size in zip(codes, least, sizes, strict=True) if math.prod(sizes) < 2**62 else ():
        key *= size
        key += code
        key -= low
    if math.prod(sizes) >= 2**62:
        key = mixed_radix(np.stack(codes, axis=1) - np.array(least), sizes)
    order: np.ndarray = np.argsort(key)
    return order


def _rise(group: np.ndarray, cell: np.ndarray) -> bool:
    """Whether the pairs are already sorted. O(n)."""
    return bool(((group[1:] > group[:-1]) | ((group[1:] == group[:-1]) & (cell[1:] >= cell[:-1]))).all())


@dataclass(frozen=True, eq=False)
class Partition:
    """An assignment of a histogram's rows to groups.

    cell   int64[p]  cell of the histogram
    group  int64[p]  0 .. groups - 1, non-decreasing, every number occurs
    count  int64[p]  number of rows of that cell in that group, at least 1

    It consists of triples, not of one label for each cell, because equal rows may be in different groups.
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
        """A partition from unsorted triples: sorts by (group, cell), adds equal pairs, drops empty ones, renumbers the
        groups."""
        cell, group, count = (np.asarray(a, dtype=np.int64) for a in (cell, group, count))
        if not (kept := count > 0).all():
            cell, group, count = cell[kept], group[kept], count[kept]
        if not _rise(group, cell):  # shards are already sorted, and a sort of all would take three times the memory
            order = rising(group, cell)
            cell = cell[order]
            group = group[order]
            count = count[order]
            del order
        new = np.ones(cell.size, bool)
        new[1:] = (group[1:] != group[:-1]) | (cell[1:] != cell[:-1])
        if not new.all():
            start = np.flatnonzero(new)
            cell, group, count = cell[start], group[start], np.add.reduceat(count, start)
        number = np.zeros(group.size, np.int64)
        np.cumsum(group[1:] != group[:-1], out=number[1:])
        return cls(cell=cell, group=number, count=count)

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.group[-1]) + 1 if self.group.size else 0

    @cached_property
    def start(self) -> np.ndarray:
        """int64[groups]: the first triple of each group."""
        return np.searchsorted(self.group, np.arange(self.groups))

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64[groups]: number of rows of each group."""
        return np.bincount(self.group, weights=self.count, minlength=self.groups).astype(np.int64)

    def check(self, histogram: Histogram) -> None:
        """Raise ShoalError unless every row of the histogram is placed exactly once."""
        placed = np.bincount(self.cell, weights=self.count, minlength=histogram.cells).astype(np.int64)
        if placed.shape[0] != histogram.cells or (placed != histogram.count).any():
            raise ShoalError(f"the partition places {int(placed.sum())} rows, the table has {histogram.rows}")


def distribute(
    held: np.ndarray, kind_of: np.ndarray, kind: np.ndarray, group: np.ndarray, count: np.ndarray
) -> Partition:
    """A partition from groups that are given by kinds of rows. The rows of a kind are assigned in the order of the
    cells.

    held, kind_of  int64[m]             number of rows of each cell, and its kind (for example its type)
    kind, group, count  int64[p]  number of rows of a kind in a group; the rows of every kind are placed exactly once

    O((m + p) log(m + p)).
    """
    cells = np.argsort(kind_of, kind="stable")
    order = np.argsort(kind, kind="stable")
    cell_end = np.cumsum(held[cells])
    place_end = np.cumsum(np.asarray(count, np.int64)[order])
    ends = np.unique(np.concatenate([cell_end, place_end]))
    size = np.diff(np.concatenate([[0], ends]))
    return Partition.of(
        cells[np.searchsorted(cell_end, ends)],
        np.asarray(group, np.int64)[order][np.searchsorted(place_end, ends)],
        size,
    )
