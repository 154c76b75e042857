"""One quasi-identifier as it is recoded: what every way of recoding answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

Labels = Sequence[Sequence[str | None]]


@dataclass(frozen=True, eq=False)
class Shown:
    """What the groups of a partition publish in one column.

    first, second  int[g]  levels: the level, and the class there; ranges: lowest and highest end; sets: number of
                           values, and -1
    group, cell    int[p]  the group and the cell of every triple of the partition
    code           int[m]  of every cell
    """

    first: np.ndarray
    second: np.ndarray
    group: np.ndarray
    cell: np.ndarray
    code: np.ndarray

    @property
    def groups(self) -> int:
        """How many there are."""
        return int(self.first.size)

    @cached_property
    def present(self) -> tuple[np.ndarray, np.ndarray]:
        """(group, code), sorted and distinct: the codes that every group holds."""
        size = np.int64(self.code.max(initial=0)) + 1
        pair = np.unique(self.group * size + self.code[self.cell])
        return pair // size, pair % size


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnRecoding(ABC):
    """A column of codes 0 .. size-1; ``Levels``, ``Ranges`` and ``Sets`` are the three there are.

    weight  factor of this column's loss

    Losses are from 0, the value itself, to 1, nothing left, before the weight.
    """

    kind: ClassVar[str]
    size: int
    weight: float = 1.0

    @property
    def levels(self) -> int:
        """Number of levels, the values themselves included; 0 without a hierarchy."""
        return 0

    @property
    def held(self) -> bool:
        """Whether some level may not be published."""
        return False

    @property
    def pure(self) -> np.ndarray:
        """float64[size]: loss of a code published by itself; above 0 on a grid, or for classes of values."""
        return np.zeros(self.size)

    @abstractmethod
    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(first, second) of ``Shown`` for every group; None where some group has no common root.

        group, code int[p] sorted by group; start int[g] where each group begins
        """

    @abstractmethod
    def lost(self, shown: Shown, someone: np.ndarray) -> np.ndarray:
        """float64[g]: loss of one row of each group; someone int[g] a code that each holds."""

    @abstractmethod
    def exact(self, shown: Shown) -> np.ndarray:
        """bool[g]: published as the value itself."""

    def starred(self, shown: Shown) -> np.ndarray:
        """bool[g]: published as a star."""
        return np.zeros(shown.groups, bool)

    def height(self, shown: Shown) -> np.ndarray:
        """float64[g]: share of the way up from the value to the star."""
        return (~self.exact(shown)).astype(float)

    @abstractmethod
    def numbers(self, shown: Shown) -> np.ndarray:
        """int64[g]: equal exactly where what is published is equal."""

    @abstractmethod
    def inside(self, shown: Shown, held: np.ndarray) -> np.ndarray:
        """float64[g]: rows of the table that lie in what each group publishes; held float64[size] rows of each code."""

    @abstractmethod
    def members(self, shown: Shown, of: np.ndarray) -> np.ndarray:
        """bool[size, x]: which codes lie in what the groups ``of`` int[x] publish."""

    @abstractmethod
    def steps(self) -> np.ndarray:
        """float64[size]: the least loss of a code together with another."""

    @abstractmethod
    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """float64: loss of a row of code ``first`` with one of code ``second``, shapes broadcast; nan: none may be."""

    @abstractmethod
    def beyond(self, present: np.ndarray) -> np.ndarray:
        """float64[size]: the least loss of each code with one that is ``present`` bool[size], one at least."""

    def together(self) -> np.ndarray:
        """float64[size, size]: loss of any two codes published together; nan where they cannot be."""
        codes = np.arange(self.size)
        return self.pair(codes[:, None], codes)

    @abstractmethod
    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """(int[h, size] nested classes, float64[h, size] the most that a row of a class then loses)."""

    @abstractmethod
    def texts(
        self, shown: Shown, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """(int64[g] text of each group, the texts, the code that each publishes unchanged or -1).

        values  text of each code, None for a missing value
        labels  levels: per level from 1 on, the text of each class; ranges on a grid: one line, the texts of the ends
        """
