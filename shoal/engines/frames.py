"""Frames in memory: pandas, Polars, and PyArrow, through narwhals. Results have the same kind as the input.

There are two operations: *group and count* turns rows into a histogram, and *number and join* assigns every row of a
cell to one of the cell's groups. The code between these never reads a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import cannot_group, count_keys, encode, histogram_of, looked_up, mixed_radix_columns, narrow
from shoal.engines.columns import (
    arrow_column,
    arrow_without_levels,
    pandas_column,
    pandas_without_levels,
    polars_column,
    row_numbers,
    used,
    without_levels,
)
from shoal.engines.order import ShuffleKey, beyond, draws, generator_of, laid_out, permutation, row_hashes, shuffled
from shoal.engines.store import joined_coordinates
from shoal.engines.table import (
    Counted,
    Origin,
    Placed,
    PlacementRequest,
    Replacement,
    SingledOut,
    Tuples,
    Workers,
    require,
)
from shoal.engines.unassigned import singled_in_memory
from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.model.histogram import Partition

_OFTEN = 2  # from this mean number of rows on, it is faster to write each tuple once


def classes(partition: Partition, columns: Sequence[Replacement]) -> tuple[Partition, list[Replacement]]:
    """Merge groups that publish the same, so that fewer cells are split and fewer rows need a place. O(p log p)."""
    sizes = [len(c.values) + 1 for c in columns]
    key = mixed_radix_columns([c.index for c in columns], sizes, partition.groups)
    _, first, name = np.unique(key, return_index=True, return_inverse=True)
    merged = Partition.of(partition.cell, name.reshape(-1)[partition.group], partition.count)
    return merged, [replace(c, index=c.index[first]) for c in columns]


def _refuse_names(native: Any) -> None:
    """InputError for a column name that occurs twice, isn't text, or is a pattern for Polars."""
    found = getattr(native, "column_names", None) or list(getattr(native, "columns", ()))
    names: list[Any] = [c for c in found if isinstance(c, (str, int, float, tuple)) or c is None]
    for name in names:
        if not isinstance(name, str):
            way = "df.columns.map('_'.join)" if isinstance(name, tuple) else "df.columns.astype(str)"
            raise InputError(f"the column name {name!r} is not text; rename it, in pandas with df.columns = {way}")
        if name.startswith("^") and name.endswith("$"):
            raise InputError(f"the column name {name!r} is a pattern of other names to Polars; rename it")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"the table names the column {twice[0]!r} more than once; rename one of them")


class FrameTable:
    """A table in memory; see ``Table``.

    lazy   whether the user passed a Polars LazyFrame and gets one back
    coded  text columns that were read as categories and are returned as text
    """

    in_memory = True
    origin = Origin()

    def __init__(self, native: Any, *, lazy: bool = False, coded: Sequence[str] = ()) -> None:
        _refuse_names(native)
        self.frame = nw.from_native(native, eager_only=True)
        if self.frame.implementation.is_pandas():  # pandas doesn't install pyarrow, which texts and categories need
            MissingDependencyError.unless("pyarrow", "a pandas frame", "pandas")
        self.lazy = lazy
        self.coded = frozenset(coded)
        self.columns = list(self.frame.columns)
        self.rows = len(self.frame)

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns as a Polars frame; InputError with the name of a column that can't be converted."""
        out = []
        for name in names:
            try:
                found = self.frame.get_column(name).to_polars().rename(name)
                levels = self._ordered_levels(name)
                out.append(found if levels is None else found.cast(pl.String).cast(pl.Enum(levels)))
            except Exception as error:
                kind = str(getattr(self.frame.get_column(name).to_native(), "dtype", "object"))
                if kind not in ("object", "O"):
                    raise cannot_group(name, kind) from None
                raise InputError(
                    f"column {name!r} mixes kinds of values, or holds numbers past 64 bits ({type(error).__name__}); "
                    "make it all text or all numbers"
                ) from None
        return pl.DataFrame(dict(zip(names, out, strict=True)))  # a list would rename a column with an empty name

    def _ordered_levels(self, name: str) -> list[str] | None:
        """The levels of an ordered category as text; None for other columns. Polars keeps its own."""
        if not (self.frame.implementation.is_pandas() or self.frame.implementation.is_pyarrow()):
            return None
        column = self.frame.to_native()[name]
        kind: Any = getattr(column, "dtype", None)
        if getattr(kind, "ordered", False) and hasattr(kind, "categories"):
            levels = list(kind.categories)
        else:
            import pyarrow as pa

            if not (self.frame.implementation.is_pyarrow() or hasattr(kind, "pyarrow_dtype")):
                return None
            held = column if self.frame.implementation.is_pyarrow() else column.array.__arrow_array__()
            chunks = held.unify_dictionaries() if isinstance(held, pa.ChunkedArray) else held
            if not getattr(chunks.type, "ordered", False) or not len(chunks):
                return None
            levels = (chunks.chunk(0) if isinstance(chunks, pa.ChunkedArray) else chunks).dictionary.to_pylist()
        return levels if all(isinstance(v, str) for v in levels) else None

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples of some columns, and the number of rows of each."""
        frame = self.polars(names)
        short = [f"c{i}" for i in range(len(names))]
        held = pl.DataFrame([frame[n].alias(c) for n, c in zip(names, short, strict=True)]).group_by(short).len("n")
        return held.select(short).rename(dict(zip(short, names, strict=True))), held["n"].to_numpy()

    def without(self, names: Sequence[str]) -> Any:
        """The native frame without some columns."""
        left = [c for c in self.columns if c not in names]
        found = self.frame[left].to_native()
        return found.lazy() if self.lazy else found

    def from_polars(self, frame: pl.DataFrame) -> Any:
        """A Polars frame as the kind of frame that the user passed."""
        implementation = self.frame.implementation
        if implementation.is_pandas():
            return frame.to_pandas()
        if implementation.is_pyarrow():
            return frame.to_arrow()
        return frame.lazy() if self.lazy else frame

    def from_polars_rows(self, frame: pl.DataFrame) -> Any:
        """``from_polars`` of a frame with the rows of this table in order: a pandas frame gets this table's index."""
        found = self.from_polars(frame)
        return found.set_axis(self.frame.to_native().index) if self.frame.implementation.is_pandas() else found

    def singled(self, columns: Sequence[str]) -> SingledOut:
        """How far some columns single rows out. O(n log n) for each column."""
        return singled_in_memory(self.polars(columns).iter_columns())

    def slices(self, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """The whole table as one slice, because it is in memory."""
        yield self.polars(self.columns)
        tell(self.rows)

    def parts(self, folder: Path) -> dict[str, int]:
        """No parts, because the table is in memory."""
        return {}

    def picklable(self) -> Any:
        """The frame, which can be pickled."""
        found = self.frame.to_native()
        return found.lazy() if self.lazy else found

    def workers(self) -> Workers:
        """No workers, because the rows are in this process."""
        return Workers()

    def _like(self, native: Any) -> FrameTable:
        return FrameTable(native, lazy=self.lazy, coded=tuple(self.coded))

    def replaced(self, columns: Sequence[pl.Series]) -> FrameTable:
        """A table in which some columns are replaced by columns of text with the same names."""
        made = self._own(columns)
        found = self.frame.with_columns(*made).select(*self.columns).to_native() if made else self.frame.to_native()
        return self._like(found)

    def _own(self, columns: Sequence[pl.Series]) -> list[nw.Series[Any]]:
        """Columns of text as those of this kind of frame; in pandas with its index."""
        like = self.frame.implementation
        made = [nw.new_series(c.name, c.to_list(), nw.String, backend=like) for c in columns]
        if like.is_pandas():
            index = self.frame.to_native().index
            made = [nw.from_native(s.to_native().set_axis(index), series_only=True) for s in made]
        return made

    def joined(self, pair: tuple[str, str], name: str, marks: Mapping[str, str]) -> FrameTable:
        """A table in which two columns of coordinates are combined into one.

        marks  column of texts -> its decimal mark
        """
        if name in self.columns:
            raise PolicyError(f"the coordinates become a column {name!r}, which the table has already; rename that one")
        texts = joined_coordinates(self.polars(pair), pair, marks).alias(name)
        return self._like(self.frame.drop(*pair).with_columns(*self._own([texts])).to_native())

    def with_missing(self, names: Sequence[str], flag: str) -> FrameTable:
        """A table with a further column, which is true if any of some columns is missing."""
        each = [self.frame.get_column(n) for n in names]  # an expression would interpret a column "*" as all columns
        gone = [c.is_null() for c in each] + [c.is_nan().fill_null(False) for c in each if c.dtype.is_float()]
        found = self.frame.with_columns(reduce(or_, gone).alias(flag)).to_native()
        return self._like(found)

    def filled(self, values: Mapping[str, Any]) -> FrameTable:
        """A table in which the missing values of each column are replaced by the given value."""
        each = [self.frame.get_column(n) for n in values]  # an expression would interpret a column "*" as all columns
        known = [c.fill_nan(None) if c.dtype.is_float() else c for c in each]
        found = self.frame.with_columns(*(c.fill_null(values[c.name]) for c in known)).to_native()
        return self._like(found)

    def count(
        self, quasi: Sequence[str], sensitive: Sequence[str], notations: Mapping[str, str] | None = None
    ) -> Counted:
        """Group and count.  O(n) for codes and moderate domains, O(n log n) otherwise."""
        require(self.columns, [*quasi, *sensitive])
        frame = self.polars([*quasi, *sensitive])
        coded = [narrow(encode(frame[name], (notations or {}).get(name))) for name in [*quasi, *sensitive]]
        key = mixed_radix_columns([c.codes for c in coded], [c.size for c in coded], self.rows)
        cell, first, count = count_keys(key)
        known, held = tuple(coded[: len(quasi)]), tuple(coded[len(quasi) :])
        return Counted(histogram_of(known, held, first, count), known, held, cell)

    def place(self, counted: Counted, asked: PlacementRequest) -> Placed:
        """Number and join: every row with its group's values, shuffled, as the kind of frame that was passed."""
        partition, replacements, drop, aside, shuffle_key, keep_order = asked
        names = [c for c in self.columns if c not in set(drop)]  # dropping a column "*" would drop all columns
        text = {c.name: c for c in counted.sensitive if c.name in self.coded and c.name in names}
        if self.coded and not keep_order and set(names) <= {*text, *(r.name for r in replacements)}:
            return self._deal(counted, asked, names)
        group = groups_of_rows(counted, partition, lambda rows: self._draws(rows, shuffle_key, keep_order))
        order = (
            None if keep_order else self._order(replacements, group, [n for n in names if n not in aside], shuffle_key)
        )
        if order is not None:
            group = group[order]
        new = _recoded(replacements, group)
        for name, column in text.items():
            new[name] = _ColumnText(column.values, column.codes, order)
        left = [n for n in names if n not in new]
        # a selection would interpret a column "*" as all columns
        carried = self.frame[left] if left else self.frame.select([])
        if order is not None and carried.columns:
            carried = carried[order.tolist()] if self.frame.implementation.is_pyarrow() else carried[order]
        return Placed(self._assemble(carried, new, names, row_numbers(self.frame) if keep_order else None))

    def _deal(self, counted: Counted, asked: PlacementRequest, names: list[str]) -> Placed:
        """``place`` for a table without insensitive columns: rows of a cell are equal, so no row is read.

        The order depends only on published tuples, so it reveals nothing about the persons behind them.
        """
        partition, shuffle_key = asked.partition, asked.shuffle_key
        partition.check(counted.histogram)
        # merge cells that publish the same
        group, codes = partition.group, counted.histogram.sensitive[partition.cell].T
        sizes = (partition.groups, *(c.size for c in counted.sensitive))
        line_of, first, _ = count_keys(mixed_radix_columns([group, *codes], sizes, group.size))
        count = np.bincount(line_of, weights=partition.count, minlength=first.size).astype(np.int64)
        new = _recoded(asked.replacements, group[first])
        new |= {c.name: _ColumnText(c.values, held[first]) for c, held in zip(counted.sensitive, codes, strict=True)}
        line, key = np.arange(count.size), shuffle_key.order
        if not shuffle_key.fresh:
            shown = [pl.Series.gather(*new[n].pair()).alias(n) for n in names if n not in asked.aside]
            line, key = laid_out(shown, count, key)
        row = np.repeat(line.astype(np.uint32), count[line])
        generator_of(key).shuffle(row)
        alone = pl.Categorical(pl.Categories.random())
        text = {n: polars_column(*new[n].pair(), alone) for n in names}  # text files contain only text
        dealt = Tuples(pl.DataFrame(text), row)
        return Placed(None, tuples=dealt) if _OFTEN * count.size <= len(row) else Placed(dealt.frame())

    def _draws(self, rows: np.ndarray, shuffle_key: ShuffleKey, keep_order: bool) -> tuple[np.ndarray, ...]:
        """Columns that determine the order of rows within a cell, the most significant first."""
        if shuffle_key.fresh:
            return (draws(rows.size, shuffle_key.place),)
        if keep_order:  # by contents, equal rows would stay in the order of the table, which tells that they are equal
            return (draws(self.rows, shuffle_key.place)[rows],)
        chosen = self.frame[rows.tolist()] if self.frame.implementation.is_pyarrow() else self.frame[rows]
        columns = [_any_polars(chosen.get_column(name)) for name in self.columns]
        return (row_hashes(columns, shuffle_key.place), *beyond(columns))

    def _order(
        self, replacements: Sequence[Replacement], group: np.ndarray, names: list[str], shuffle_key: ShuffleKey
    ) -> np.ndarray:
        """The order of the rows, which depends only on what these columns publish."""
        if shuffle_key.fresh:
            return permutation(self.rows, shuffle_key.order)
        new = {r.name: r.values.gather(r.index[group]) for r in replacements}
        return shuffled(
            [(new[n] if n in new else _any_polars(self.frame.get_column(n))).alias(n) for n in names], shuffle_key
        )

    def _assemble(self, carried: Any, new: dict[str, _ColumnText], names: list[str], index: Any) -> Any:
        """The published frame, of the same kind as the input: new columns as text, the others unchanged."""
        implementation = self.frame.implementation
        own = self.frame.to_native()
        if implementation.is_polars():
            made = {
                n: polars_column(*shown.pair(), pl.String() if n in self.coded else own.schema[n]).rename(n)
                for n, shown in new.items()
            }
            frame = pl.DataFrame(  # a list would rename a column with an empty name
                {n: made[n] if n in new else without_levels(carried.get_column(n).to_native()) for n in names}
            )
            return frame.lazy() if self.lazy else frame
        if implementation.is_pyarrow():
            import pyarrow as pa

            arrays = [
                arrow_column(*new[n].pair(), own.schema.field(n).type)
                if n in new
                else arrow_without_levels(carried.get_column(n).to_native())
                for n in names
            ]
            return pa.table(dict(zip(names, arrays, strict=True)))
        if implementation.is_pandas():
            import pandas as pd

            columns = {}
            for n in names:
                if n in new:
                    columns[n] = pandas_column(*new[n].pair(), own[n].dtype)
                else:
                    columns[n] = pandas_without_levels(carried.get_column(n).to_native().reset_index(drop=True))
            made = pd.DataFrame(columns)
            return made if index is None else made.set_axis(index)
        made = {n: pl.Series.gather(*shown.pair()) for n, shown in new.items()}
        pieces = {n: (made[n] if n in new else carried.get_column(n)).to_list() for n in names}
        return nw.from_dict(pieces, backend=implementation).to_native()


class _ColumnText(NamedTuple):
    """The texts of a published column: ``values`` at ``at``, by row, or by ``place`` of each row."""

    values: pl.Series
    at: np.ndarray
    place: np.ndarray | None = None

    def pair(self) -> tuple[pl.Series, np.ndarray]:
        """The values, and the index of each row's value. Computed on demand, for one column at a time, to save
        memory."""
        return self.values, self.at if self.place is None else self.at[self.place]


def _recoded(replacements: Sequence[Replacement], group: np.ndarray) -> dict[str, _ColumnText]:
    """The texts of every quasi-identifier, from the group of each row."""
    return {r.name: _ColumnText(*used(r.values, r.index), group) for r in replacements}


def table_of(native: Any) -> FrameTable:
    """A frame in memory as a table; a Polars LazyFrame is collected. TypeError for other objects."""
    if isinstance(native, pl.LazyFrame):
        return FrameTable(native.collect(), lazy=True)
    return FrameTable(native)


def split_triples(partition: Partition, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """(bool[cells]: whether a cell is split between groups; int64: the triples of split cells, by cell, and within a
    cell in the order in which they take its rows, the largest group last)."""
    several = np.bincount(partition.cell, minlength=cells) > 1
    held = np.flatnonzero(several[partition.cell])
    cell, count = partition.cell[held], partition.count[held]
    by_size = np.lexsort((-count, cell))
    head = np.ones(by_size.size, bool)
    head[1:] = np.diff(cell[by_size]) != 0
    return several, held[by_size[np.lexsort((head, cell[by_size]))]]


def groups_of_rows(
    counted: Counted, partition: Partition, keys: Callable[[np.ndarray], tuple[np.ndarray, ...]]
) -> np.ndarray:
    """int32[n]: the group of every row.

    keys  gives for row numbers the columns by which the rows of a cell are ordered; called only for rows of split cells
    """
    cells = counted.histogram.cells
    several, triples = split_triples(partition, cells)
    only = np.zeros(cells, np.int32)
    only[partition.cell] = partition.group
    group = looked_up(only, counted.cell)
    if triples.size:
        rows = np.flatnonzero(several[counted.cell])
        rows = rows[np.lexsort((*reversed(keys(rows)), counted.cell[rows]))]
        group[rows] = np.repeat(partition.group[triples], partition.count[triples])
    return group


def _any_polars(column: Any) -> pl.Series:
    """A column as a Polars series; a column that can't be converted becomes the texts that Python prints."""
    try:
        found: pl.Series = column.to_polars()
    except Exception:
        return pl.Series([repr(v) for v in column.to_list()], dtype=pl.String)
    return found
