"""Frames held in memory: pandas, Polars and PyArrow in, the same kind out, through narwhals.

Two operations only: *group and count* turns rows into a histogram, *number and join* gives every row of a cell one of
that cell's groups.  In between nobody sees a row.
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

from shoal.engines.codes import cannot_group, count_keys, encode, looked_up, mixed_radix_columns, narrow, stacked
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
from shoal.engines.order import ShuffleKey, beyond, dealer, draws, laid_out, permutation, row_hashes, shuffled
from shoal.engines.table import Counted, Origin, Placed, Replacement, SingledOut, Tuples, Workers, require
from shoal.engines.unassigned import singled_in_memory
from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.model.histogram import Histogram, Partition

_OFTEN = 2  # rows of a tuple on average, from which on it pays to write each tuple once


def classes(partition: Partition, columns: Sequence[Replacement]) -> tuple[Partition, list[Replacement]]:
    """Groups that are published alike as one: fewer cells are split, so fewer rows need a place.  O(p log p)."""
    sizes = [len(c.values) + 1 for c in columns]
    key = mixed_radix_columns([c.index for c in columns], sizes, partition.groups)
    _, first, name = np.unique(key, return_index=True, return_inverse=True)
    merged = Partition.of(partition.cell, name.reshape(-1)[partition.group], partition.count)
    return merged, [replace(c, index=c.index[first]) for c in columns]


def _refuse_names(native: Any) -> None:
    """InputError for a column name that stands twice, is not text, or is a pattern to Polars."""
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
    """A table held in memory; see ``Table``.

    lazy   the user handed over a Polars LazyFrame and gets one back
    coded  text columns read as categories; they are given back as text
    """

    in_memory = True
    origin = Origin()

    def __init__(self, native: Any, *, lazy: bool = False, coded: Sequence[str] = ()) -> None:
        _refuse_names(native)
        self.frame = nw.from_native(native, eager_only=True)
        if self.frame.implementation.is_pandas():  # which does not bring what its texts and categories travel by
            MissingDependencyError.unless("pyarrow", "a pandas frame", "pandas")
        self.lazy = lazy
        self.coded = frozenset(coded)
        self.columns = list(self.frame.columns)
        self.rows = len(self.frame)

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns as a Polars frame; InputError naming the column that cannot become one."""
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
        return pl.DataFrame(dict(zip(names, out, strict=True)))  # a list would rename a column without a name

    def _ordered_levels(self, name: str) -> list[str] | None:
        """The levels of an ordered category as text, None for any other column; those of Polars are kept anyhow."""
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
        """The distinct tuples over some columns and how many rows hold each."""
        frame = self.polars(names)
        short = [f"c{i}" for i in range(len(names))]
        held = pl.DataFrame([frame[n].alias(c) for n, c in zip(names, short, strict=True)]).group_by(short).len("n")
        return held.select(short).rename(dict(zip(short, names, strict=True))), held["n"].to_numpy()

    def without(self, names: Sequence[str]) -> Any:
        """The native frame without some columns, as it came."""
        left = [c for c in self.columns if c not in names]
        found = self.frame[left].to_native()
        return found.lazy() if self.lazy else found

    def from_polars(self, frame: pl.DataFrame) -> Any:
        """A Polars frame as the kind of frame that came."""
        implementation = self.frame.implementation
        if implementation.is_pandas():
            return frame.to_pandas()
        if implementation.is_pyarrow():
            return frame.to_arrow()
        return frame.lazy() if self.lazy else frame

    def from_polars_rows(self, frame: pl.DataFrame) -> Any:
        """``from_polars`` a frame whose row i is row i of this table: a pandas frame gets this table's index."""
        found = self.from_polars(frame)
        return found.set_axis(self.frame.to_native().index) if self.frame.implementation.is_pandas() else found

    def singled(self, columns: Sequence[str]) -> SingledOut:
        """How some columns single rows out.  O(n log n) per column."""
        return singled_in_memory(self.polars(columns).iter_columns())

    def slices(self, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """The whole table, which fits into memory already."""
        yield self.polars(self.columns)
        tell(self.rows)

    def parts(self, folder: Path) -> dict[str, int]:
        """None: the table is in memory."""
        return {}

    def picklable(self) -> Any:
        """The frame, which can be pickled as it is."""
        found = self.frame.to_native()
        return found.lazy() if self.lazy else found

    def workers(self) -> Workers:
        """None: the rows are in this process."""
        return Workers()

    def replaced(self, columns: Sequence[pl.Series]) -> FrameTable:
        """A table with some columns of text in the place of those of the same names."""
        like = self.frame.implementation
        made = [nw.new_series(c.name, c.to_list(), nw.String, backend=like) for c in columns]
        if like.is_pandas() and made:
            index = self.frame.to_native().index
            made = [nw.from_native(s.to_native().set_axis(index), series_only=True) for s in made]
        found = self.frame.with_columns(*made).select(*self.columns).to_native() if made else self.frame.to_native()
        return FrameTable(found, lazy=self.lazy, coded=tuple(self.coded))

    def joined(self, pair: tuple[str, str], name: str) -> FrameTable:
        """A table in which two columns have become one, their texts with a blank between."""
        if name in self.columns:
            raise PolicyError(f"the coordinates become a column {name!r}, which the table has already; rename that one")
        texts = nw.concat_str([nw.col(c).cast(nw.String) for c in pair], separator=" ").alias(name)
        return FrameTable(
            self.frame.with_columns(texts).drop(*pair).to_native(), lazy=self.lazy, coded=tuple(self.coded)
        )

    def with_missing(self, names: Sequence[str], flag: str) -> FrameTable:
        """A table with one more column, true where any of some columns is missing."""
        each = [self.frame.get_column(n) for n in names]  # an expression would take a column "*" for all of them
        gone = [c.is_null() for c in each] + [c.is_nan().fill_null(False) for c in each if c.dtype.is_float()]
        found = self.frame.with_columns(reduce(or_, gone).alias(flag)).to_native()
        return FrameTable(found, lazy=self.lazy, coded=tuple(self.coded))

    def filled(self, values: Mapping[str, Any]) -> FrameTable:
        """A table in which the missing values of some columns are the value given for each."""
        each = [self.frame.get_column(n) for n in values]  # an expression would take a column "*" for all of them
        known = [c.fill_nan(None) if c.dtype.is_float() else c for c in each]
        found = self.frame.with_columns(*(c.fill_null(values[c.name]) for c in known)).to_native()
        return FrameTable(found, lazy=self.lazy, coded=tuple(self.coded))

    def count(
        self, quasi: Sequence[str], sensitive: Sequence[str], notations: Mapping[str, str] | None = None
    ) -> Counted:
        """Group and count.  O(n) for codes and moderate domains, O(n log n) otherwise."""
        require(self.columns, [*quasi, *sensitive])
        frame = self.polars([*quasi, *sensitive])
        coded = [narrow(encode(frame[name], (notations or {}).get(name))) for name in [*quasi, *sensitive]]
        d = len(quasi)
        sizes = tuple(c.size for c in coded)
        key = mixed_radix_columns([c.codes for c in coded], sizes, self.rows)
        cell, first, count = count_keys(key)
        histogram = Histogram(
            quasi=stacked(coded[:d], first),
            sensitive=stacked(coded[d:], first),
            count=count,
            quasi_names=tuple(quasi),
            sensitive_names=tuple(sensitive),
            quasi_sizes=sizes[:d],
            sensitive_sizes=sizes[d:],
        )
        return Counted(histogram, tuple(coded[:d]), tuple(coded[d:]), cell)

    def place(
        self,
        counted: Counted,
        partition: Partition,
        replacements: Sequence[Replacement],
        drop: Sequence[str],
        aside: Sequence[str],
        shuffle_key: ShuffleKey,
        keep_order: bool,
    ) -> Placed:
        """Number and join: every row with its group's values, in secret order; the same kind of frame as came in."""
        names = [c for c in self.columns if c not in set(drop)]  # dropping a column "*" would drop all of them
        text = {c.name: c for c in counted.sensitive if c.name in self.coded and c.name in names}
        if self.coded and not keep_order and set(names) <= {*text, *(r.name for r in replacements)}:
            return self._deal(counted, partition, replacements, names, aside, shuffle_key)
        group = groups_of_rows(counted, partition, lambda rows: self._draws(rows, shuffle_key))
        order = (
            None if keep_order else self._order(replacements, group, [n for n in names if n not in aside], shuffle_key)
        )
        if order is not None:
            group = group[order]
        new = _recoded(replacements, group)
        for name, column in text.items():
            new[name] = _ColumnText(column.values, column.codes, order)
        left = [n for n in names if n not in new]
        carried = self.frame[left] if left else self.frame.select([])  # a selection would take a "*" for all columns
        if order is not None and carried.columns:
            carried = carried[order.tolist()] if self.frame.implementation.is_pyarrow() else carried[order]
        return Placed(self._assemble(carried, new, names, row_numbers(self.frame) if keep_order else None))

    def _deal(
        self,
        counted: Counted,
        partition: Partition,
        replacements: Sequence[Replacement],
        names: list[str],
        aside: Sequence[str],
        shuffle_key: ShuffleKey,
    ) -> Placed:
        """``place`` without columns that are published unchanged: rows of a cell are alike, so none is looked at.

        The order is one of published tuples alone, so it tells nothing of who is behind them.
        """
        partition.check(counted.histogram)
        # cells that are shown alike are one line
        group, codes = partition.group, counted.histogram.sensitive[partition.cell].T
        sizes = (partition.groups, *(c.size for c in counted.sensitive))
        line_of, first, _ = count_keys(mixed_radix_columns([group, *codes], sizes, group.size))
        count = np.bincount(line_of, weights=partition.count, minlength=first.size).astype(np.int64)
        new = _recoded(replacements, group[first])
        new |= {c.name: _ColumnText(c.values, held[first]) for c, held in zip(counted.sensitive, codes, strict=True)}
        line, key = np.arange(count.size), shuffle_key.order
        if not shuffle_key.fresh:
            shown = [pl.Series.gather(*new[n].pair()).alias(n) for n in names if n not in aside]
            line, key = laid_out(shown, count, key)
        row = np.repeat(line.astype(np.uint32), count[line])
        dealer(key).shuffle(row)
        alone = pl.Categorical(pl.Categories.random())
        text = {n: polars_column(*new[n].pair(), alone) for n in names}  # as all stands in such a file
        dealt = Tuples(pl.DataFrame(text), row)
        return Placed(None, tuples=dealt) if _OFTEN * count.size <= len(row) else Placed(dealt.frame())

    def _draws(self, rows: np.ndarray, shuffle_key: ShuffleKey) -> tuple[np.ndarray, ...]:
        """Columns by which rows of one cell are numbered, the most important first."""
        if shuffle_key.fresh:
            return (draws(rows.size, shuffle_key.place),)
        chosen = self.frame[rows.tolist()] if self.frame.implementation.is_pyarrow() else self.frame[rows]
        columns = [_any_polars(chosen.get_column(name)) for name in self.columns]
        return (row_hashes(columns, shuffle_key.place), *beyond(columns))

    def _order(
        self, replacements: Sequence[Replacement], group: np.ndarray, names: list[str], shuffle_key: ShuffleKey
    ) -> np.ndarray:
        """The order of the rows, by what these columns publish of them."""
        if shuffle_key.fresh:
            return permutation(self.rows, shuffle_key.order)
        new = {r.name: r.values.gather(r.index[group]) for r in replacements}
        return shuffled(
            [(new[n] if n in new else _any_polars(self.frame.get_column(n))).alias(n) for n in names], shuffle_key
        )

    def _assemble(self, carried: Any, new: dict[str, _ColumnText], names: list[str], index: Any) -> Any:
        """The published frame, of the kind that came: new columns as text, the others carried along."""
        implementation = self.frame.implementation
        own = self.frame.to_native()
        if implementation.is_polars():
            made = {
                n: polars_column(*shown.pair(), pl.String() if n in self.coded else own.schema[n]).rename(n)
                for n, shown in new.items()
            }
            frame = pl.DataFrame(  # a list would rename a column without a name
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
    """What a column shows: ``values`` at ``at``, of every row or, where rows have places in it, of those."""

    values: pl.Series
    at: np.ndarray
    place: np.ndarray | None = None

    def pair(self) -> tuple[pl.Series, np.ndarray]:
        """The values, and which of them every row shows: made when it is asked for, for one column at a time."""
        return self.values, self.at if self.place is None else self.at[self.place]


def _recoded(replacements: Sequence[Replacement], group: np.ndarray) -> dict[str, _ColumnText]:
    """What every quasi-identifier shows, from the group of each row."""
    return {r.name: _ColumnText(*used(r.values, r.index), group) for r in replacements}


def table_of(native: Any) -> FrameTable:
    """A frame in memory as a table; a Polars LazyFrame is run.  TypeError for what is no frame."""
    if isinstance(native, pl.LazyFrame):
        return FrameTable(native.collect(), lazy=True)
    return FrameTable(native)


def split_triples(partition: Partition, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """(bool[cells]: whether a cell lies in several groups; int64: the triples of those, by cell, within a cell by the
    ordinals of the rows they take: its largest group last).
    """
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
    """int32[n]: group of every row.

    keys  given row numbers, the columns by which the rows of a cell are ordered; asked only for rows of split cells
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
    """A column as a Polars series; what it cannot hold, by what Python prints."""
    try:
        found: pl.Series = column.to_polars()
    except Exception:
        return pl.Series([repr(v) for v in column.to_list()], dtype=pl.String)
    return found
