"""What every engine gives: a table that is grouped and counted, numbered and joined, and read back, wherever it lies.

A new engine is one file with a ``Home``'s two functions and a line in ``shoal.engines.elsewhere:ENGINES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl

from shoal.engines.checked import Checked
from shoal.engines.codes import Coded
from shoal.engines.order import Lot
from shoal.engines.parts import Parts
from shoal.engines.scope import Scope
from shoal.errors import PolicyError
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition


class Keys(NamedTuple):
    """How an engine finds the cell of a row: by a number it computes of the row's values.

    attempt  which of its numberings: the first that gave every tuple a number of its own
    key      int64 or uint64[tuples]  the number of every tuple of values that stands in the table
    cell     int64[tuples]  its cell, which tuples that differ in how a missing value is written share
    """

    attempt: int
    key: np.ndarray
    cell: np.ndarray


@dataclass(frozen=True, eq=False)
class Counted:
    """A histogram with what is needed to go back: the values of every code and the cell of every row.

    cell  of every row in memory; of an engine's table empty, since the engine finds it by ``keys``
    """

    histogram: Histogram
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    cell: np.ndarray
    keys: Keys | None = None


@dataclass(frozen=True, eq=False)
class Replacement:
    """A quasi-identifier's new column: ``values`` (a short Polars series) and, per group, the place in it."""

    name: str
    values: pl.Series
    index: np.ndarray


class Singled(NamedTuple):
    """How some columns single rows out.

    rows      of the table
    alone     per column, the rows whose value no other row holds; distinct: its different values
    together  the rows whose values in all these columns together no other row holds
    texts     per column, some of its values as text
    """

    rows: int
    alone: Mapping[str, int]
    together: int
    distinct: Mapping[str, int]
    texts: Mapping[str, Sequence[str]]


class Tuples(NamedTuple):
    """A table of few different rows, dealt out of them.

    tuples  its different rows;  rows  uint32[n]  which of them each row is
    """

    tuples: pl.DataFrame
    rows: np.ndarray

    def frame(self) -> pl.DataFrame:
        """All rows: many times what this takes."""
        return self.tuples[self.rows]


class Placed(NamedTuple):
    """Rows as they leave.

    frame   of the kind that came; None where it can be dealt out of ``tuples`` when somebody asks for it
    slices  the same rows in the same order, quicker to read: some columns in slices, as ``Table.slices`` gives them all
    tuples  what the frame is dealt out of, where it is, and where rows are many more
    """

    frame: Any
    slices: Callable[[Sequence[str], Path, Callable[[int], None]], Iterator[pl.DataFrame]] | None = None
    tuples: Tuples | None = None


class Stored(NamedTuple):
    """A table as something that can be pickled; ``revive(held)`` is the frame again."""

    held: Any
    revive: Callable[[Any], Any]


class Origin(NamedTuple):
    """The files a table is read from; nothing for a frame.

    source     name of the file or folder;  records  how many rows a second parser found there
    parts      the files themselves;  separator  of CSV files
    """

    source: str | None = None
    records: int | None = None
    parts: Parts | None = None
    separator: str | None = None


class Table(Protocol):
    """A table as an engine holds it; its frame is never changed, and only ``Counted`` sees values."""

    @property
    def columns(self) -> Sequence[str]:
        """Names, in order."""
        ...

    @property
    def rows(self) -> int:
        """How many there are; may run a query."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether its rows are in this process, so that reading them all costs nothing more."""
        ...

    @property
    def origin(self) -> Origin:
        """The files it is read from."""
        ...

    def count(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Counted:
        """Group and count: cells in the order of their codes; PolicyError for a column that is not there."""
        ...

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples over some columns and how many rows hold each."""
        ...

    def with_missing(self, names: Sequence[str], flag: str) -> Table:
        """A table with one more column, true where any of some columns is missing."""
        ...

    def filled(self, values: Mapping[str, Any]) -> Table:
        """A table in which the missing values of some columns are the value given for each."""
        ...

    def singled(self, columns: Sequence[str]) -> Singled:
        """How some columns single rows out; InputError for one whose values cannot be compared."""
        ...

    def place(
        self,
        counted: Counted,
        partition: Partition,
        replacements: Sequence[Replacement],
        drop: Sequence[str],
        aside: Sequence[str],
        lot: Lot,
        keep_order: bool,
    ) -> Placed:
        """Number and join: every row with its group's values, in secret order; the same kind of frame as came in.

        drop   columns that are left out;  aside: columns that leave later, on which no order may hang

        Of the rows of a cell each group gets as many as the partition says.  With a secret of the caller's, which row
        gets which is the same on every engine: the rows of a cell stand by ``order``'s payload, hashed.
        """
        ...

    def without(self, names: Sequence[str]) -> Any:
        """The frame without some columns, of the kind that came."""
        ...

    def bring(self, frame: pl.DataFrame) -> Any:
        """A Polars frame as the kind of frame that came."""
        ...

    def alike(self, frame: pl.DataFrame) -> Any:
        """One answer for each row of the table, as the kind of frame that came, so that both go together."""
        ...

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns in memory, every row."""
        ...

    def slices(self, room: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """Every row in slices that fit into memory, at least one; ``tell`` hears how many rows have passed.

        room  a folder in which an engine may leave what is on its way
        """
        ...

    def parts(self, folder: Path) -> dict[str, int]:
        """Every row as files part-00000.parquet on that an engine writes by itself, and the rows of each.

        Empty, and nothing written, where slices are as quick.
        """
        ...

    def stored(self) -> Any:
        """The frame as something that can be pickled, ``Stored`` where it cannot be as it is."""
        ...


class Home(Protocol):
    """The file of an engine that reads paths."""

    @property
    def table_of(self) -> Callable[[Any, Origin], Table]:
        """A frame of the engine as a table."""
        ...

    @property
    def read(self) -> Callable[[Checked, Scope], Any]:
        """Files that were looked at as a frame of the engine, every option of reading said."""
        ...


def require(columns: Sequence[str], wanted: Sequence[str]) -> None:
    """PolicyError with the nearest name for the first wanted column that is not there."""
    for name in wanted:
        if name not in columns:
            raise PolicyError.unknown("column", name, columns)
