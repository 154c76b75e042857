"""``ColumnRecoding``: the interface of every recoding of a quasi-identifier."""

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
    """The published values of a partition's groups in one column.

    first, second  int[g]  levels: the level, and the class there; ranges: lowest and highest end; sets: number of
                           values, and -1
    group, cell    int[p]  the group and the cell of every triple of the partition
    code           int[m]  the code of every cell
    """

    first: np.ndarray
    second: np.ndarray
    group: np.ndarray
    cell: np.ndarray
    code: np.ndarray

    @property
    def groups(self) -> int:
        """The number of groups."""
        return int(self.first.size)

    @cached_property
    def present(self) -> tuple[np.ndarray, np.ndarray]:
        """(group, code), sorted and distinct: the codes in every group."""
        size = np.int64(self.code.max(initial=0)) + 1
        pair = np.unique(self.group * size + self.code[self.cell])
        return pair // size, pair % size


class Slot(NamedTuple):
    """A part of a column's published value, as kernels join and cost it (``kernels.tables.eligible``).

    kind    "tree": nodes, joined at their lowest common ancestor; "set": bits; "line": an interval; "areas": bits of
            areas; "further areas": bits of areas that don't fit in the first word
    leaf    int64[size]  of each code: its node; its bit or none; its two ends, low | high << 32
    loss    float64[x]   tree: weighted loss of each node; line: position of each end
    parent  int32[x]     tree: parent of each node, numbered level by level
    unit    set: weighted loss of each bit; line: of one step along it; areas: of each person beyond the first
    apart   areas: int64[n, n], weight of the cheapest connected set with two of them, ``FAR`` if there is none
    ahead   areas: int32[n, n], the area after the first on the path to the second
    whole   areas: weight of all areas
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
    """The recoding of a column of codes 0 .. size - 1, such as ``Levels``, ``Ranges``, or ``Sets``.

    weight  factor of this column's loss
    kind    its name in messages
    shape   how the loss of a group follows from the losses of pairs, for the exact methods: "tree", the maximum over
            pairs with any one member; "line", the loss of the lowest and the highest code; "set", the loss of a pair
            for every code except one; None: it doesn't follow, and these methods refuse the column

    Before the weight, losses are from 0 (the value itself) to 1 (nothing left).
    """

    kind: ClassVar[str]
    shape: ClassVar[str | None] = None
    bares: ClassVar[bool] = False  # whether a group can show a value that only one of its rows has
    size: int
    weight: float = 1.0

    @classmethod
    def of_column(cls, size: int, line: Line, weight: float) -> ColumnRecoding:
        """The recoding of a column of ``size`` codes. ``line()`` gives their positions, float64[size], rising, or
        None."""
        return cls(size=size, weight=weight)

    @classmethod
    def meanings(cls, texts: Sequence[str], notation: str | None = None) -> Mapping[str, Members]:
        """The values that the distinct texts of a column stand for, except stars. A text that is left out may be any
        value.

        notation  the notation of the column's dates, if it has one
        """
        return {}

    @property
    def levels(self) -> int:
        """Number of levels, including the values themselves; 0 without a hierarchy."""
        return 0

    @property
    def held(self) -> bool:
        """Whether some levels may not be published."""
        return False

    @property
    def limit(self) -> str:
        """The highest level that may be published, as text."""
        return ""

    def top(self) -> tuple[int, np.ndarray]:
        """The highest level that may be published, and int[size] the class of each code there; by default one class."""
        return 0, np.zeros(self.size, np.int64)

    def classes(self, level: int | np.ndarray, code: np.ndarray) -> np.ndarray:
        """int: the class of codes at a level; shapes broadcast."""
        return code

    def lifted(self, level: int | np.ndarray, code: np.ndarray) -> np.ndarray:
        """float64: the loss of codes published as their classes at a level; shapes broadcast."""
        return self.pure[code]

    def spread(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """float64: the loss of publishing all codes from ``low`` to ``high``; shapes broadcast; not for levels."""
        return (high - low) / max(self.size - 1, 1)

    def order(self) -> np.ndarray:
        """int[size]: the position of each code in an order in which codes that join at low loss are near each other."""
        return np.arange(self.size)

    def allowed(self) -> np.ndarray:
        """int[size]: codes may be published together if their numbers are equal."""
        return np.zeros(self.size, np.int64)

    def above(self, first: np.ndarray) -> np.ndarray:
        """bool[g]: whether a level that may not be published is published."""
        return np.zeros(first.size, bool)

    def raised(self) -> np.ndarray | None:
        """float64[size]: the smallest loss of a recoded code; None if no code is ever recoded."""
        return self.steps()

    def bared(self, group: np.ndarray, code: np.ndarray, border: np.ndarray) -> np.ndarray:
        """bool[p]: whether the published value of a group shows that one of its rows has the code.

        group, code  int[p], distinct pairs sorted by both
        border       int[g + 1], the start of each group, p at the end
        """
        return np.zeros(group.size, bool)

    @property
    def pure(self) -> np.ndarray:
        """float64[size]: the loss of a code published alone; above 0 on a grid, or if codes are classes of values."""
        return np.zeros(self.size)

    @abstractmethod
    def join(self, group: np.ndarray, code: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(first, second) of ``PublishedColumn`` for every group; None if a group has no common root.

        group, code  int[p], sorted by group
        start        int[g], the start of each group
        """

    @abstractmethod
    def lost(self, shown: PublishedColumn, someone: np.ndarray) -> np.ndarray:
        """float64[g]: the loss of one row of each group. someone: int[g], a code of each group."""

    @abstractmethod
    def exact(self, shown: PublishedColumn) -> np.ndarray:
        """bool[g]: whether the value itself is published."""

    def starred(self, shown: PublishedColumn) -> np.ndarray:
        """bool[g]: whether a star is published."""
        return np.zeros(shown.groups, bool)

    def height(self, shown: PublishedColumn) -> np.ndarray:
        """float64[g]: the level as a share of the height, from the value (0) to the star (1)."""
        return (~self.exact(shown)).astype(float)

    @abstractmethod
    def numbers(self, shown: PublishedColumn) -> np.ndarray:
        """int64[g]: equal if and only if the published values are equal."""

    @abstractmethod
    def inside(self, shown: PublishedColumn, held: np.ndarray) -> np.ndarray:
        """float64[g]: rows of the table within each published value. held: float64[size], rows of each code."""

    @abstractmethod
    def members(self, shown: PublishedColumn, of: np.ndarray) -> np.ndarray:
        """bool[size, x]: the codes within the published values of the groups ``of`` int[x]."""

    @abstractmethod
    def steps(self) -> np.ndarray:
        """float64[size]: the smallest loss of a code together with another one."""

    @abstractmethod
    def pair(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """float64: the loss of a row with code ``first`` in a group with ``second``; shapes broadcast; nan if not
        allowed."""

    def pair_table(self) -> np.ndarray:
        """float64[...]: the weighted losses from which ``paired`` computes the losses of pairs."""
        return np.zeros(0)

    def pair_fractions(self, read: Callable[[float], Fraction]) -> list[Fraction] | None:
        """Losses of pairs without the weight, row by row, as fractions that ``read`` makes of floats; None: unknown."""
        return None

    def paired(self, table: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Weighted ``pair``, computed from a table like ``pair_table``, in its unit."""
        return self.pair(first, second) * self.weight

    @abstractmethod
    def beyond(self, present: np.ndarray) -> np.ndarray:
        """float64[size]: the smallest loss of each code with a code in ``present`` bool[size], which has at least
        one."""

    def together(self) -> np.ndarray:
        """float64[size, size]: the loss of any two codes published together; nan if not allowed."""
        codes = np.arange(self.size)
        return self.pair(codes[:, None], codes)

    @abstractmethod
    def ladder(self) -> tuple[np.ndarray, np.ndarray]:
        """(int[h, size] nested classes, float64[h, size] the largest loss of a row published as its class)."""

    @abstractmethod
    def slots(self) -> list[Slot]:
        """The slots that kernels compute with."""

    @abstractmethod
    def texts(
        self, shown: PublishedColumn, values: Sequence[str | None], labels: Labels | None, star: str
    ) -> tuple[np.ndarray, list[str | None], list[int]]:
        """(int64[g] text of each group, the texts, the code that each publishes unchanged or -1).

        values  text of each code, None for a missing value
        labels  levels: for each level from 1 on, the text of each class; ranges on a grid: one list, the texts of the
                ends
        """
