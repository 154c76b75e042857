"""One quasi-identifier as it is recoded: what every way of recoding answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from shoal.model.members import Members

Labels = Sequence[Sequence[str | None]]
Line = Callable[[], np.ndarray | None]


@dataclass(frozen=True, eq=False)
class PublishedColumn:
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


class Slot(NamedTuple):
    """Part of what a group publishes in a column, as the kernels join and price it (``kernels.tables.eligible``).

    kind    "tree": nodes, joined at their lowest common ancestor; "set": bits; "line": from the lowest to the highest;
            "areas": bits of areas, and "further areas", those that found no room in it
    leaf    int64[size]  of each code: its node; its bit or none; its two ends, low | high << 32
    loss    float64[x]   tree: weighted loss of each node; line: where each end lies
    parent  int32[x]     tree: of each node, numbered level by level
    unit    set: weighted loss of every bit; line: of one step along it; areas: of each person more than one
    apart, ahead  areas: weight int64[n, n] of the cheapest connected set with two of them, ``FAR`` for none, and the
            area int32[n, n] after the first on the way to the second;  whole: weight of all areas
    """

    kind: str
    leaf: np.ndarray
    loss: np.ndarray = np.zeros(0)
    parent: np.ndarray | None = None
    unit: float = 1.0
    apart: np.ndarray = np.zeros((0, 0), np.int64)
    ahead: np.ndarray = np.zeros((0, 0), np.int32)
    whole: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnRecoding(ABC):
    """How a column of codes 0 .. size-1 is recoded, as ``Levels``, ``Ranges`` or ``Sets``.

    weight  factor of this column's loss

    Losses are from 0, the value itself, to 1, nothing left, before the weight.

    kind   what it is called where something does not take it
    shape  how the loss of a group follows from those of pairs, for the exact methods: "tree", the most with any one
           member; "line", that of the lowest and the highest code; "set", that of a pair for every code but one; None:
           it does not, and these methods refuse it
    """

    kind: ClassVar[str]
    shape: ClassVar[str | None] = None
    bares: ClassVar[bool] = False  # whether a group can show a value that one row of it has
    size: int
    weight: float = 1.0

    @classmethod
    def of_column(cls, size: int, line: Line, weight: float) -> ColumnRecoding:
        """A column of ``size`` codes; ``line()`` is where they lie on one, float64[size], rising, or None."""
        return cls(size=size, weight=weight)

    @classmethod
    def meanings(cls, texts: Sequence[str], notation: str | None = None) -> Mapping[str, Members]:
        """What the distinct texts of a column stand for, which are no stars; those left out may be anything.

        notation  the notation of the column's dates, where it has one
        """
        return {}

    @property
    def levels(self) -> int:
        """Number of levels, the values themselves included; 0 without a hierarchy."""
        return 0

    @property
    def held(self) -> bool:
        """Whether something may not be published."""
        return False

    @property
    def limit(self) -> str:
        """What may be published at most, in words."""
        return ""

    def top(self) -> tuple[int, np.ndarray]:
        """The highest level that may be published, and int[size] the class of each code there: one of all."""
        return 0, np.zeros(self.size, np.int64)

    def classes(self, level: int | np.ndarray, code: np.ndarray) -> np.ndarray:
        """int: the class of codes at a level, shapes broadcast."""
        return code

    def lifted(self, level: int | np.ndarray, code: np.ndarray) -> np.ndarray:
        """float64: loss of codes published as their classes at a level, shapes broadcast."""
        return self.pure[code]

    def spread(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """float64: loss of publishing all codes from ``low`` to ``high``, shapes broadcast; not of levels."""
        return (high - low) / max(self.size - 1, 1)

    def order(self) -> np.ndarray:
        """int[size]: the place of each code in a line on which those that join for little lie together."""
        return np.arange(self.size)

    def allowed(self) -> np.ndarray:
        """int[size]: which codes may be published together: those of one number."""
        return np.zeros(self.size, np.int64)

    def above(self, first: np.ndarray) -> np.ndarray:
        """bool[g]: published though it may not be."""
        return np.zeros(first.size, bool)

    def raised(self) -> np.ndarray | None:
        """float64[size]: the least loss of a code that is not published as it is; None where there is no such."""
        return self.steps()

    def bared(self, group: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray:
        """bool[p]: whether a group shows that one of its rows has the code.

        group, code  int[p], distinct pairs sorted by both; border int[g + 1] where each group begins, p at the end
        """
        return np.zeros(group.size, bool)

    @property
    def pure(self) -> np.ndarray:
        """float64[size]: loss of a code published by itself; above 0 on a grid, or for classes of values."""
        return np.zeros(self.size)

    @abstractmethod
    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(first, second) of ``PublishedColumn`` for every group; None where some group has no common root.

        group, code int[p] sorted by group; start int[g] where each group begins
        """

    @abstractmethod
    def lost(self, shown: PublishedColumn, someone: np.ndarray) -> np.ndarray:
        """float64[g]: loss of one row of each group; someone int[g] a code that each holds."""

    @abstractmethod
    def exact(self, shown: PublishedColumn) -> np.ndarray:
        """bool[g]: published as the value itself."""

    def starred(self, shown: PublishedColumn) -> np.ndarray:
        """bool[g]: published as a star."""
        return np.zeros(shown.groups, bool)

    def height(self, shown: PublishedColumn) -> np.ndarray:
        """float64[g]: share of the way up from the value to the star."""
        return (~self.exact(shown)).astype(float)

    @abstractmethod
    def numbers(self, shown: PublishedColumn) -> np.ndarray:
        """int64[g]: equal exactly where what is published is equal."""

    @abstractmethod
    def inside(self, shown: PublishedColumn, held: np.ndarray) -> np.ndarray:
        """float64[g]: rows of the table that lie in what each group publishes; held float64[size] rows of each code."""

    @abstractmethod
    def members(self, shown: PublishedColumn, of: np.ndarray) -> np.ndarray:
        """bool[size, x]: which codes lie in what the groups ``of`` int[x] publish."""

    @abstractmethod
    def steps(self) -> np.ndarray:
        """float64[size]: the least loss of a code together with another."""

    @abstractmethod
    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """float64: loss of a row of code ``first`` with one of code ``second``, shapes broadcast; nan: none may be."""

    def pair_table(self) -> np.ndarray:
        """float64[...]: the weighted losses of which ``paired`` makes those of pairs."""
        return np.zeros(0)

    def pair_fractions(self, read: Callable[[float], Fraction]) -> list[Fraction] | None:
        """Losses of pairs without the weight, row by row, as fractions that ``read`` makes of floats; None: unknown."""
        return None

    def paired(self, table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Weighted ``pair`` by a table like ``pair_table``, in its unit."""
        return self.pair(first, second) * self.weight

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
    def slots(self) -> list[Slot]:
        """What the kernels know of it."""

    @abstractmethod
    def texts(
        self, shown: PublishedColumn, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """(int64[g] text of each group, the texts, the code that each publishes unchanged or -1).

        values  text of each code, None for a missing value
        labels  levels: per level from 1 on, the text of each class; ranges on a grid: one line, the texts of the ends
        """
