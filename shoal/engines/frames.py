"""Frames held in memory: pandas, Polars and PyArrow in, the same kind out, through narwhals.

Two operations only: *group and count* turns rows into a histogram, *number and join* gives every row of a cell one of
that cell's groups at random.  In between nobody sees a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import Coded, cannot_group, encode
from shoal.engines.columns import arrow_column, pandas_column, polars_column, used
from shoal.errors import InputError, PolicyError
from shoal.model.histogram import Histogram, mixed_radix
from shoal.model.partition import Partition


@dataclass(frozen=True, eq=False)
class Counted:
    """A histogram with what is needed to go back: the values of every code and, in memory, the cell of every row."""

    histogram: Histogram
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    cell: np.ndarray


@dataclass(frozen=True, eq=False)
class Replacement:
    """A quasi-identifier's new column: ``values`` (a short Polars series) and, per group, the place in it."""

    name: str
    values: pl.Series
    index: np.ndarray


def require(columns: Sequence[str], wanted: Sequence[str]) -> None:
    """PolicyError with the nearest name for the first wanted column that is not there."""
    for name in wanted:
        if name not in columns:
            raise PolicyError.unknown("column", name, columns)


def _refuse_names(native: Any) -> None:
    """InputError for a column name that stands twice or is not text."""
    found = getattr(native, "column_names", None) or list(getattr(native, "columns", ()))
    names: list[Any] = [c for c in found if isinstance(c, (str, int, float, tuple)) or c is None]
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"the column name {name!r} is not text; rename it, in pandas with df.columns.astype(str)")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise InputError(f"the table names the column {twice[0]!r} more than once; rename one of them")


class FrameTable:
    """A table held in memory.

    lazy   the user handed over a Polars LazyFrame and gets one back
    coded  text columns read as categories; they are given back as text
    """

    def __init__(self, native: Any, *, lazy: bool = False, coded: Sequence[str] = ()) -> None:
        _refuse_names(native)
        self.frame = nw.from_native(native, eager_only=True)
        self.lazy = lazy
        self.coded = frozenset(coded)
        self.columns = list(self.frame.columns)
        self.rows = len(self.frame)

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns as a Polars frame; InputError naming the column that cannot become one."""
        out = []
        for name in names:
            try:
                out.append(self.frame.get_column(name).to_polars().rename(name))
            except Exception as error:
                kind = str(getattr(self.frame.get_column(name).to_native(), "dtype", "object"))
                if kind not in ("object", "O"):
                    raise cannot_group(name, kind) from None
                raise InputError(
                    f"column {name!r} mixes kinds of values, or holds numbers past 64 bits ({type(error).__name__}); "
                    "make it all text or all numbers"
                ) from None
        return pl.DataFrame(out)

    def joined(self, pair: tuple[str, str], name: str) -> FrameTable:
        """A table in which two columns have become one, their texts with a blank between."""
        if name in self.columns:
            raise PolicyError(f"the coordinates become a column {name!r}, which the table has already; rename that one")
        texts = nw.concat_str([nw.col(c).cast(nw.String) for c in pair], separator=" ").alias(name)
        return FrameTable(
            self.frame.with_columns(texts).drop(*pair).to_native(), lazy=self.lazy, coded=tuple(self.coded)
        )

    def count(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Counted:
        """Group and count.  O(n) for codes and moderate domains, O(n log n) otherwise."""
        require(self.columns, [*quasi, *sensitive])
        frame = self.polars([*quasi, *sensitive])
        coded = [encode(frame[name]) for name in [*quasi, *sensitive]]
        d = len(quasi)
        sizes = tuple(c.size for c in coded)
        key = mixed_radix_columns([c.codes for c in coded], sizes, self.rows)
        cell, first, count = _count(key)
        codes = np.column_stack([c.codes[first] for c in coded]) if coded else np.zeros((0, 0), np.int32)
        histogram = Histogram(
            quasi=np.ascontiguousarray(codes[:, :d]),
            sensitive=np.ascontiguousarray(codes[:, d:]),
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
        rng: np.random.Generator,
        keep_order: bool,
    ) -> Any:
        """Number and join: every row with its group's values, in random order; the same kind of frame as came in."""
        group = groups_of_rows(counted, partition, rng)
        order = None if keep_order else rng.permutation(self.rows)
        kept = self.frame.drop(list(drop)) if drop else self.frame
        names = list(kept.columns)
        if order is not None:
            group = group[order]
        new = {}
        for r in replacements:
            values, index = used(r.values, r.index)
            new[r.name] = (values, index[group])
        for column in counted.sensitive:
            if column.name in self.coded and column.name in names:
                codes = column.codes if order is None else column.codes[order]
                new[column.name] = (column.values, codes)
        carried = kept.select([n for n in names if n not in new])
        if order is not None and carried.columns:
            carried = carried[order.tolist()] if self.frame.implementation.is_pyarrow() else carried[order]
        return self._assemble(carried, new, names)

    def _assemble(self, carried: Any, new: dict[str, tuple[pl.Series, np.ndarray]], names: list[str]) -> Any:
        implementation = self.frame.implementation
        own = self.frame.to_native()
        if implementation.is_polars():
            made = {
                n: polars_column(*pair, pl.String() if n in self.coded else own.schema[n]).rename(n)
                for n, pair in new.items()
            }
            frame = pl.DataFrame([made[n] if n in new else carried.get_column(n).to_native() for n in names])
            return frame.lazy() if self.lazy else frame
        if implementation.is_pyarrow():
            import pyarrow as pa

            arrays = [
                arrow_column(*new[n], own.schema.field(n).type) if n in new else carried.get_column(n).to_native()
                for n in names
            ]
            return pa.table(dict(zip(names, arrays, strict=True)))
        if implementation.is_pandas():
            import pandas as pd

            columns = {}
            for n in names:
                if n in new:
                    columns[n] = pandas_column(*new[n], own[n].dtype)
                else:
                    columns[n] = carried.get_column(n).to_native().reset_index(drop=True)
            return pd.DataFrame(columns)
        pieces = {
            n: new[n][0].gather(new[n][1]).to_list() if n in new else carried.get_column(n).to_list() for n in names
        }
        return nw.from_dict(pieces, backend=implementation).to_native()


def mixed_radix_columns(columns: Sequence[np.ndarray], sizes: Sequence[int], rows: int) -> np.ndarray:
    """``mixed_radix`` without stacking the columns first."""
    room = 1
    for size in sizes:
        room *= max(size, 1)
    if room >= 2**62:
        return mixed_radix(np.column_stack(columns), sizes)
    key = np.zeros(rows, np.int64)
    for codes, size in zip(columns, sizes, strict=True):
        key *= max(size, 1)
        key += codes
    return key


def _count(key: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(cell of every row, a row of every cell, rows of every cell), cells in the order of their keys."""
    if not key.size:
        return key, key, key
    span = int(key.max()) + 1
    if span <= max(1 << 24, 2 * key.size):
        held = np.bincount(key, minlength=span)
        used = np.flatnonzero(held)
        place = np.zeros(span, np.int32)
        place[used] = np.arange(used.size, dtype=np.int32)
        cell = place[key]
        first = np.empty(used.size, np.int64)
        first[cell] = np.arange(key.size)
        return cell, first, held[used]
    _, first, cell, count = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return cell.reshape(-1), first, count.astype(np.int64)


def groups_of_rows(counted: Counted, partition: Partition, rng: np.random.Generator) -> np.ndarray:
    """int64[n]: group of every row; which of a cell's rows go to which of its groups is uniformly random."""
    cells = counted.histogram.cells
    pieces = np.bincount(partition.cell, minlength=cells)
    only = np.zeros(cells, np.int64)
    only[partition.cell] = partition.group
    group = only[counted.cell]
    if (pieces > 1).any():
        rows = np.flatnonzero((pieces > 1)[counted.cell])
        rng.shuffle(rows)
        rows = rows[np.argsort(counted.cell[rows], kind="stable")]
        triples = np.flatnonzero((pieces > 1)[partition.cell])
        triples = triples[np.argsort(partition.cell[triples], kind="stable")]
        group[rows] = np.repeat(partition.group[triples], partition.count[triples])
    return group
