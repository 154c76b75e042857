"""The protocol of engines: a ``Table`` supports group and count, number and join, and reading back.

A new engine is one module with the two functions of an ``EngineModule``, and a line in ``shoal.engines.open:ENGINES``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote

import numpy as np
import polars as pl

from shoal.engines.codes import Coded
from shoal.engines.csv import FileStructure, one_character, structure_of
from shoal.engines.order import ShuffleKey, generator_of, laid_out
from shoal.engines.source import FilesOfTable, Scope, Source, codec_of, wrong_format
from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.model.histogram import Histogram, Partition, dense, mixed_radix


class CheckedFiles(NamedTuple):
    """The parts of a table after their bytes were checked.

    names      columns in the files
    found      structure of each CSV part; empty for Parquet
    separator  of CSV parts
    codec      "utf-8", "latin-1", or "cp1252"
    kinds      column of Parquet -> its type, as Arrow writes it
    """

    parts: FilesOfTable
    names: tuple[str, ...]
    found: tuple[FileStructure, ...]
    separator: str | None
    codec: str
    kinds: Mapping[str, str]

    @property
    def durations(self) -> dict[str, str]:
        """The columns of durations in Parquet, and their units. Engines would read plain numbers."""
        return {name: kind[9:-1] for name, kind in self.kinds.items() if kind.startswith("duration")}

    @property
    def columns(self) -> list[str]:
        """All columns; those in the names of folders are last."""
        return [*self.names, *self.parts.keys]

    @property
    def records(self) -> int | None:
        """The number of rows that a second parser found in CSV parts; None for Parquet."""
        return sum(found.records for found in self.found) if self.found else None


def refuse_other_count(name: str, held: int, records: int) -> None:
    """InputError if an engine and the second parser of a file's bytes find different numbers of rows."""
    if held != records:
        raise InputError(f"two readers do not agree on {name!r}: {held:,} rows and {records:,}; leave ⟨engine=⟩ out")


def look(parts: FilesOfTable, separator: str | None, encoding: str | None, engine: str) -> CheckedFiles:
    """Examine every part; InputError if one has other columns, or its bytes violate the format."""
    names: tuple[str, ...] | None = None
    given = one_character(separator)
    found: list[FileStructure] = []
    kinds: list[str] = []
    for source in parts.sources:
        if parts.kind == "csv":
            structure, given = structure_of(source, given, encoding, rows=len(parts.sources) == 1)
            found.append(structure)
            here = structure.names
            if engine == "DuckDB" and structure.crlf and structure.lf - structure.leading > 0:
                raise InputError(
                    f"{source.name!r} ends {structure.crlf:,} lines in CR LF and {structure.lf:,} in LF alone, which "
                    "DuckDB does not read; give all lines the same end, or leave ⟨engine='duckdb'⟩ out"
                )
            if engine == "DuckDB" and codec_of(encoding) == "cp1252" and structure.beyond:
                raise InputError(
                    f"{source.name!r} has characters of Windows-1252, such as €, which DuckDB does not read; save the "
                    "file as UTF-8, or leave ⟨engine='duckdb'⟩ out"
                )
        else:
            schema = _parquet_schema(source)
            here = tuple(schema.names)
            types = [str(kind) for kind in schema.types]
            if here == names and types != kinds:
                other = next(n for n, a, b in zip(here, types, kinds, strict=True) if a != b)
                raise InputError(f"{source.name!r}: column {other!r} is of another type than in the first part")
            kinds = types
        if names is None:
            if repeated := [key for key in parts.keys if key in here]:
                parts = _once(parts, repeated)
            _refuse_alike((*here, *parts.keys), source.name, engine)
            names = here
        elif here != names:
            raise InputError(f"{source.name!r} has other columns, or in another order, than the first part")
    assert names is not None
    if found and not any(one.records for one in found):
        raise InputError(f"{parts.name!r} has headers and no rows, so there is nothing to publish")
    typed = dict(zip(names, kinds, strict=False))
    return CheckedFiles(parts, names, tuple(found), given if found else None, codec_of(encoding), typed)


def _once(parts: FilesOfTable, repeated: Sequence[str]) -> FilesOfTable:
    """Parts whose files also contain the columns in the names of their folders, as some writers leave them.

    The files' columns are used if all their values agree with the folder's name; otherwise raises InputError.
    """
    if parts.kind != "parquet" or len(repeated) < len(parts.keys):
        raise InputError(
            f"{parts.name!r}: column {repeated[0]!r} is in the files and in the names of their folders; rename it "
            "in the one or the other"
        )
    for source in parts.sources:
        by_key = dict(name.split("=", 1) for name in source.path.absolute().parts[:-1] if "=" in name)
        wanted = [
            pl.col(key).cast(pl.String).fill_null("__HIVE_DEFAULT_PARTITION__").eq(unquote(by_key[key])).all()
            for key in parts.keys
        ]
        held = pl.scan_parquet(source.path, glob=False, hive_partitioning=False)
        try:
            agree = held.select(wanted).collect().row(0)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            raise wrong_format(source.name, "Parquet", error) from None
        for key, same in zip(parts.keys, agree, strict=True):
            if not same:
                raise InputError(
                    f"{source.name!r}: column {key!r} holds other values than its folder is named by; rename it "
                    "in the one or the other"
                )
    return parts._replace(keys=())


def _refuse_alike(names: Sequence[str], file: str, engine: str) -> None:
    """Refuse names that differ only by case, which no engine distinguishes."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        other = first.setdefault(name.casefold(), number)
        if other != number:
            raise InputError(
                f"{file!r}: the names of columns {other} and {number} are the same or differ by case alone, which "
                f"{engine} does not distinguish; rename one of them"
            )
        if not name.strip():
            raise InputError(f"{file!r}: column {number} has no name; name it")
        if "\n" in name or "\r" in name:
            raise InputError(
                f"{file!r}: the name of column {number} has a line break, over which {engine} loses rows; rename it"
            )


def _parquet_schema(source: Source) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError.needed("pyarrow", "Parquet through an engine", "duckdb") from None
    try:
        return parquet.read_schema(source.path)
    except pyarrow.ArrowNotImplementedError as error:
        held = pl.scan_parquet(source.path, glob=False, hive_partitioning=False).collect_schema()
        wide = [n for n, kind in held.items() if kind in (pl.Int128, pl.UInt128)]
        if not wide:
            raise wrong_format(source.name, "Parquet", error) from None
        raise InputError(
            f"{source.name!r}: column {wide[0]!r} holds integers of 128 bits, which only the Polars engine reads, one "
            "file at a time; cast it to text or to a decimal"
        ) from None
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise wrong_format(source.name, "Parquet", error) from None


class CellKeys(NamedTuple):
    """How an engine finds the cell of a row: by a number that it computes from the row's values.

    attempt  index of the numbering: the first that gives all tuples different numbers
    key      int64 or uint64[tuples]  the number of every tuple of values in the table
    cell     int[tuples], as narrow as possible  its cell; tuples that differ only in the form of a missing value share
             one
    """

    attempt: int
    key: np.ndarray
    cell: np.ndarray


@dataclass(frozen=True, eq=False)
class Counted:
    """A histogram, with the values of every code and the cell of every row, to assign groups to rows.

    cell  of every row in memory; empty for an engine's table, where ``keys`` gives the cell
    """

    histogram: Histogram
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    cell: np.ndarray
    keys: CellKeys | None = None


@dataclass(frozen=True, eq=False)
class Replacement:
    """The published column of a quasi-identifier: ``values`` (a short Polars series) and each group's index into it."""

    name: str
    values: pl.Series
    index: np.ndarray


class PlacementRequest(NamedTuple):
    """How rows are placed in groups and published.

    replacements  the published columns of the quasi-identifiers
    drop          columns that are removed
    aside         columns that are removed later, on which the order may not depend
    """

    partition: Partition
    replacements: Sequence[Replacement]
    drop: Sequence[str]
    aside: Sequence[str]
    shuffle_key: ShuffleKey
    keep_order: bool = False


class SingledOut(NamedTuple):
    """How far some columns single rows out.

    rows      number of rows of the table
    alone     for each column, the number of rows with a value that no other row has
    together  the number of rows whose values in all these columns together no other row has
    distinct  for each column, the number of different values
    texts     for each column, some of its values as text
    """

    rows: int
    alone: Mapping[str, int]
    together: int
    distinct: Mapping[str, int]
    texts: Mapping[str, Sequence[str]]


class Tuples(NamedTuple):
    """A table of few different rows that repeat.

    tuples  its different rows, with texts as categories
    rows    uint32[n]  the index of each row's tuple
    """

    tuples: pl.DataFrame
    rows: np.ndarray

    def frame(self) -> pl.DataFrame:
        """All rows, with texts as texts. This takes many times the memory."""
        shown = (c.cast(pl.String) if isinstance(c.dtype, pl.Categorical) else c for c in self.tuples)
        return pl.DataFrame({c.name: c.gather(self.rows) for c in shown})

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The tuples over some columns, with the number of rows of each; a tuple may occur twice."""
        held = [self.tuples[n] for n in names]
        held = [
            c if isinstance(c.dtype, pl.Categorical) else c.cast(pl.Categorical(pl.Categories.random())) for c in held
        ]
        return pl.DataFrame(held), np.bincount(self.rows, minlength=self.tuples.height)


class Placed(NamedTuple):
    """The published rows.

    frame   of the same kind as the input; None if it can be made from ``tuples`` on demand
    slices  the same rows in the same order, read faster: some columns in slices, like ``Table.slices``
    tuples  the source of the frame, if rows are many more than tuples
    counts  the same rows without order: their tuples over some columns, like ``Table.counts``, but faster
    """

    frame: Any
    slices: Callable[[Sequence[str], Path, Callable[[int], None]], Iterator[pl.DataFrame]] | None = None
    tuples: Tuples | None = None
    counts: Callable[[Sequence[str]], tuple[pl.DataFrame, np.ndarray]] | None = None


class StoredFrame(NamedTuple):
    """A table as an object that can be pickled; ``revive(held)`` gives the frame back."""

    held: Any
    revive: Callable[[Any], Any]


Spread = Callable[
    [
        Callable[[bytes], Iterator[tuple[int, bytes]]],
        Iterable[bytes],
        Callable[[Sequence[bytes]], bytes] | None,
    ],
    Iterator[tuple[int, bytes]],
]


class Workers(NamedTuple):
    """The functions that an engine runs where its rows are; none for rows in this process.

    spread  ``spread(each, tasks, together)``: its processes run ``each`` on every task, which gives numbered answers.
            With ``together``, they combine all answers of a number into one; without it, every answer is returned. The
            functions are imported by name, so the processes need this package
    ask     gives the answer to a query in the engine's own SQL; it may read files
    """

    spread: Spread | None = None
    ask: Callable[[str], pl.DataFrame] | None = None


class Origin(NamedTuple):
    """The files from which a table is read; empty for a frame.

    source     name of the file or folder
    records    number of rows that a second parser found there
    parts      the files themselves
    separator  of CSV files
    """

    source: str | None = None
    records: int | None = None
    parts: FilesOfTable | None = None
    separator: str | None = None


class Table(Protocol):
    """A table of an engine. Its frame is never changed, and only ``Counted`` has values."""

    @property
    def columns(self) -> Sequence[str]:
        """Names, in order."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows; may run a query."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether its rows are in this process, so that reading all of them is cheap."""
        ...

    @property
    def origin(self) -> Origin:
        """The files from which it is read."""
        ...

    def count(
        self, quasi: Sequence[str], sensitive: Sequence[str], notations: Mapping[str, str] | None = None
    ) -> Counted:
        """Group and count: cells in the order of their codes; PolicyError for a column that doesn't exist.

        notations  of columns of texts that are dates or numbers in a notation, whose codes then follow their order
        """
        ...

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples of some columns, with the number of rows of each."""
        ...

    def with_missing(self, names: Sequence[str], flag: str) -> Table:
        """A table with a further column, which is true if any of some columns is missing."""
        ...

    def filled(self, values: Mapping[str, Any]) -> Table:
        """A table in which the missing values of each column are replaced by the given value."""
        ...

    def singled(self, columns: Sequence[str]) -> SingledOut:
        """How far some columns single rows out; InputError for a column whose values can't be compared."""
        ...

    def place(self, counted: Counted, asked: PlacementRequest) -> Placed:
        """Number and join: every row with its group's values, in shuffled order, as the kind of frame that was passed.

        Each group gets as many rows of a cell as the partition states. With the caller's secret, the same rows get the
        same groups on every engine: the rows of a cell are ordered by the hash of ``order``'s payload.
        """
        ...

    def without(self, names: Sequence[str]) -> Any:
        """The frame without some columns, of the same kind as the input."""
        ...

    def from_polars(self, frame: pl.DataFrame) -> Any:
        """A Polars frame as the same kind of frame as the input."""
        ...

    def from_polars_rows(self, frame: pl.DataFrame) -> Any:
        """A frame with one row for each row of the table, as the same kind of frame as the input, so that both can be
        joined."""
        ...

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns of all rows in memory."""
        ...

    def slices(self, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """Every row in slices that fit in memory, at least one. ``tell`` gets the number of rows read so far.

        scratch  a folder for an engine's temporary files
        """
        ...

    def parts(self, folder: Path) -> dict[str, int]:
        """Write every row to files part-00000.parquet and so on by the engine, and return the rows of each.

        Empty, without any file, if slices are as fast.
        """
        ...

    def picklable(self) -> Any:
        """The frame as an object that can be pickled, a ``StoredFrame`` if needed."""
        ...

    def workers(self) -> Workers:
        """The functions that the engine runs where its rows are."""
        ...


class EngineModule(Protocol):
    """The module of an engine that reads paths."""

    @property
    def table_of(self) -> Callable[[Any, Origin], Table]:
        """A frame of the engine as a table."""
        ...

    @property
    def read(self) -> Callable[[CheckedFiles, Scope], Any]:
        """Examined files as a frame of the engine, with all options of reading explicit."""
        ...


def require(columns: Sequence[str], wanted: Sequence[str]) -> None:
    """PolicyError with the most similar name for the first wanted column that doesn't exist."""
    for name in wanted:
        if name not in columns:
            raise PolicyError.unknown("column", name, columns)


@dataclass(frozen=True, eq=False, repr=False)
class Expected:
    """The published tuples of a partition.

    columns  for each quasi-identifier, what each group publishes, as values
    texts    the same as text, for text files
    starred  for each quasi-identifier, bool[texts]
    plain    for each quasi-identifier, whether the text is an unchanged value
    """

    histogram: Histogram
    partition: Partition
    columns: Sequence[Replacement]
    texts: Sequence[Sequence[str | None]]
    starred: Sequence[np.ndarray]
    sensitive: Sequence[Coded]
    plain: Sequence[np.ndarray] = ()

    def typed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """A published table in which columns of only missing values get the type of their original values.

        A frame of objects has no type for completely starred columns, and the form of a star depends on it.
        """
        return frame.with_columns(
            frame[c.name].cast(c.values.dtype)
            for c in self.columns
            if frame.height and frame[c.name].null_count() == frame.height
        )

    def counts(
        self, *, text: Collection[str] = (), blank: Collection[str] = (), categories: bool = False
    ) -> tuple[pl.DataFrame, np.ndarray]:
        """One line for each group and each combination of sensitive values in it, with its number of rows.

        text   columns that are written as text; in a text file, all columns
        blank  of these, the columns whose stars are missing values
        categories  whether other texts of quasi-identifiers are categories too, which takes a quarter of the memory
        """
        group, codes, count = self._lines
        made: list[pl.Series] = []
        for j, column in enumerate(self.columns):
            values = column.values
            if column.name in text:
                hidden = column.name in blank
                shown = [None if hidden and s else t for t, s in zip(self.texts[j], self.starred[j], strict=True)]
                values = _categories(shown)
            elif categories and values.dtype == pl.String:
                values = _categories(values)
            made.append(values.gather(column.index[group]).alias(column.name))
        for j, coded in enumerate(self.sensitive):
            values = _categories(coded.texts()) if coded.name in text else coded.values
            made.append(values.gather(codes[:, j]).alias(coded.name))
        return pl.DataFrame(made), count

    def digest(self) -> bytes:
        """A hash of the published tuples and their numbers of rows, which is the same on every engine."""
        tuples, rows = self.counts()
        kinds = {c.name: c for c in self.sensitive}
        return laid_out([_plain(column, kinds.get(column.name)) for column in tuples.iter_columns()], rows, b"")[1]

    @cached_property
    def _lines(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Groups, the sensitive codes in them, and their number of rows. Cells that publish the same are one line."""
        group, codes = self.partition.group, self.histogram.sensitive[self.partition.cell]
        line = dense(
            mixed_radix(np.column_stack([group, codes]), (self.partition.groups, *(c.size for c in self.sensitive)))
        )
        one = np.zeros(int(line.max(initial=-1)) + 1, np.int64)
        one[line] = np.arange(line.size)
        count = np.bincount(line, weights=self.partition.count, minlength=one.size).astype(np.int64)
        return group[one], codes[one], count

    def slices(self, columns: Sequence[str], key: bytes, rows: int) -> Iterator[pl.DataFrame]:
        """The published rows in random order, in slices of about ``rows``; at least one slice.

        columns  those of the table, all quasi-identifiers or sensitive. Without other columns, rows of a cell are
                 equal, so no row of the original is needed to write them
        key      fixes the order together with the published tuples, so the order reveals nothing about persons

        Every row is assigned to a slice independently, and slices are shuffled, so each order of all rows is equally
        likely. O(rows + slices * tuples) time, memory for the tuples and a slice.
        """
        frame, counts = self.counts()
        kinds = {c.name: c for c in self.sensitive}
        frame = frame.select(_plain(frame[n], kinds.get(n)) for n in columns)
        frame.columns = [f"c{i}" for i in range(frame.width)]  # "*" would select all columns
        held = frame.with_columns(pl.Series("rows", counts, dtype=pl.Int64))
        held = held.group_by(frame.columns, maintain_order=True).agg(pl.col("rows").sum())
        left, tuples = held["rows"].to_numpy(), held.drop("rows")
        tuples.columns = list(columns)
        line, own = laid_out(tuples.get_columns(), left, key)
        left, tuples, random = left[line], tuples[line], generator_of(own)
        slices = max(1, round(int(left.sum()) / rows))
        for number_left in range(slices, 0, -1):
            here = random.binomial(left, 1 / number_left) if number_left > 1 else left.copy()
            left -= here
            index = np.repeat(np.arange(here.size, dtype=np.uint32), here)
            random.shuffle(index)
            yield tuples[index]


def _categories(texts: Sequence[str | None] | pl.Series) -> pl.Series:
    return pl.Series(texts, dtype=pl.String).cast(pl.Categorical(pl.Categories.random()))


def _plain(column: pl.Series, coded: Coded | None) -> pl.Series:
    """A column whose type contains no level that no row has."""
    if coded is not None and coded.ordered:
        return column.cast(pl.String).cast(pl.Enum([t for t in coded.texts() if t is not None]))
    return column.cast(pl.String) if isinstance(column.dtype, (pl.Enum, pl.Categorical)) else column
