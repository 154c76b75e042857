"""Frames that live elsewhere: DuckDB relations and Spark frames, through narwhals' lazy interface.

The same two operations as in memory, run inside the engine: *group and count* brings back the cells only; *number and
join* numbers the rows of every cell by a keyed hash of the row and joins what each is published as.  Rows stay where
they are, and what comes back is a plan that gives the same rows each time it is looked at: nothing is stored, and
nothing is registered with the user's connection or session.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import cannot_group, encode
from shoal.engines.frames import Counted, Replacement, _count, mixed_radix_columns, require, shares
from shoal.engines.order import Lot, payload_sql
from shoal.engines.parts import Parts
from shoal.errors import InputError, ShoalError
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition

_MISSING = "\x00missing"
_OPAQUE = ("BIGNUM", "VARINT", "BIT", "INTERVAL", "BLOB")  # of DuckDB, which no other table holds
_DIGITS = 16


class LazyTable:
    """A table held by DuckDB or Spark.

    source   name of the file it is read from; records: how many rows a second parser found there
    parts    the files it is read from; separator: of CSV files
    """

    def __init__(
        self,
        native: Any,
        *,
        source: str | None = None,
        records: int | None = None,
        parts: Parts | None = None,
        separator: str | None = None,
    ) -> None:
        _refuse_alike(native)
        self.native = native
        self.source, self.records = source, records
        self.parts, self.separator = parts, separator
        self.spark = not is_duckdb(native)
        if self.spark and int(native.sparkSession.version.split(".")[0]) < 4:
            raise InputError(
                f"Spark {native.sparkSession.version} loses the types of small tables; use Spark 4: "
                "pip install 'pyspark>=4'"
            )
        self.frame = nw.from_native(native)
        self.kinds = dict(self.frame.collect_schema())
        self.columns = [str(c) for c in self.kinds]
        token = secrets.token_hex(8)
        self.own = f"__shoal_{token}_"  # of columns beside the user's, which end with it when a plan is run

    @property
    def rows(self) -> int:
        """Number of rows; runs a query."""
        return int(self.frame.select(nw.len()).collect(backend="polars").item())

    def count(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Counted:
        """Group and count inside the engine; only the cells come back."""
        require(self.columns, [*quasi, *sensitive])
        names = [*quasi, *sensitive]
        cells, counts = self.counts(names)
        coded = [encode(cells[name]) for name in names]
        sizes = tuple(c.size for c in coded)
        key = mixed_radix_columns([c.codes for c in coded], sizes, cells.height)
        where, first, _ = _count(key)  # NaN and null may stand in two rows of one cell
        held = np.bincount(where, weights=counts, minlength=first.size).astype(np.int64)
        if self.records is not None and int(held.sum()) != self.records:
            raise InputError(
                f"two readers do not agree on {self.source!r}: {int(held.sum()):,} rows and {self.records:,}; "
                "leave --engine out"
            )
        codes = (
            np.column_stack([c.codes[first] for c in coded]) if cells.height else np.zeros((0, len(names)), np.int32)
        )
        d = len(quasi)
        histogram = Histogram(
            quasi=np.ascontiguousarray(codes[:, :d]),
            sensitive=np.ascontiguousarray(codes[:, d:]),
            count=held,
            quasi_names=tuple(quasi),
            sensitive_names=tuple(sensitive),
            quasi_sizes=sizes[:d],
            sensitive_sizes=sizes[d:],
        )
        return Counted(histogram, tuple(coded[:d]), tuple(coded[d:]), np.zeros(0, np.int64))

    def with_missing(self, names: Sequence[str], flag: str) -> LazyTable:
        """A table with one more column, true where any of some columns is missing."""
        each = [nw.col(n).is_null() for n in names]
        each += [nw.col(n).is_nan().fill_null(False) for n in names if self.kinds[n].is_float()]
        found = self.frame.with_columns(reduce(or_, each).alias(flag)).to_native()
        return LazyTable(
            found, source=self.source, records=self.records, parts=self.parts, separator=self.separator
        )  # fmt: skip

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples over some columns and how many rows hold each, grouped inside the engine."""
        number = f"{self.own}n"
        cells = self._collected(self.frame.group_by(list(names)).agg(nw.len().alias(number)), names)
        levels = {n: k.categories for n, k in self.kinds.items() if n in names and isinstance(k, nw.Enum)}
        cells = cells.with_columns(pl.col(n).cast(pl.String).cast(pl.Enum(v)) for n, v in levels.items())
        return cells.drop(number), cells[number].cast(pl.Int64).to_numpy()

    def without(self, names: Sequence[str]) -> Any:
        """The native plan without some columns."""
        return self.frame.select(*(c for c in self.columns if c not in names)).to_native()

    def _collected(self, query: Any, names: Sequence[str]) -> pl.DataFrame:
        """The cells; an engine's own message may quote rows, so none is passed on."""
        kinds = dict(zip(self.columns, map(str, self.native.types), strict=True)) if is_duckdb(self.native) else {}
        for name in names:
            if kinds.get(name) in _OPAQUE:
                raise cannot_group(name, kinds[name])
        try:
            return query.collect(backend="polars").to_native()
        except ShoalError:
            raise
        except Exception as error:
            if self.source is not None and not isinstance(error, pl.exceptions.PolarsError):
                raise InputError(f"{self.source!r} cannot be read by the engine ({type(error).__name__})") from None
            raise InputError(
                "a quasi-identifier or sensitive column is of a type that cannot be grouped here, an interval perhaps; "
                "cast it to text or numbers"
            ) from None

    def place(
        self,
        counted: Counted,
        partition: Partition,
        replacements: Sequence[Replacement],
        drop: Sequence[str],
        lot: Lot,
        keep_order: bool,
    ) -> Any:
        """Number and join inside the engine; the same kind of frame as came in.

        A row of a cell that lies in one group has that group.  Only rows of cells that are split between groups get
        their number within the cell, by their keyed hash, and numbers run through the cell's groups.
        """
        if keep_order:
            raise InputError("a DuckDB or Spark table has no row order to keep; leave keep_order out")
        names = [*counted.histogram.quasi_names, *counted.histogram.sensitive_names]
        keys = [self._key(i) for i in range(len(names))]
        ordinal, cell, group, split = (f"{self.own}{word}" for word in ("ordinal", "cell", "group", "split"))
        cells, pieces = self._plan(counted, partition)
        frame = self.frame.with_columns(*(_key(n, self.kinds[n]).alias(k) for n, k in zip(names, keys, strict=True)))
        frame = frame.join(nw.from_native(self.bring(cells)), on=keys, how="left").drop(keys)
        if pieces.height:
            cut = nw.col(split).fill_null(False)
            whole, frame = self._hashed(frame.filter(~cut), lot), self._hashed(frame.filter(cut), lot)
            floats = [n for n, kind in self.kinds.items() if kind.is_float()]
            by = [f"{self.own}place", *floats]
            frame = frame.with_columns(nw.col(by[0]).cum_count().over(cell, order_by=by).cast(nw.Int64).alias(ordinal))
            frame = frame.drop(group).join(nw.from_native(self.bring(pieces)), on=cell, how="inner")
            first, last = nw.col(f"{self.own}first"), nw.col(f"{self.own}last")
            frame = frame.filter(first <= nw.col(ordinal), nw.col(ordinal) <= last)
            kept = [*self.columns, group, f"{self.own}order"]
            frame = nw.concat([whole.select(kept), frame.select(kept)])
        else:
            frame = self._hashed(frame, lot)
        frame = self._publish(frame, replacements).sort(f"{self.own}order")
        kept = [c for c in self.columns if c not in drop]
        return frame.select(*(self._plain(c, counted, replacements) for c in kept)).to_native()

    def _key(self, i: int) -> str:
        return f"{self.own}key_{i}"

    def _plain(self, name: str, counted: Counted, replacements: Sequence[Replacement]) -> nw.Expr:
        """A column whose type tells no level that no row holds."""
        column, kind = nw.col(name), self.kinds[name]
        if any(r.name == name for r in replacements):
            return column
        for coded in counted.sensitive:
            if coded.name == name and coded.ordered:
                return column.cast(nw.Enum([t for t in coded.texts() if t is not None]))
        if isinstance(kind, (nw.Enum, nw.Categorical)):
            return column.cast(nw.String)
        if "Enum(" in str(kind):
            raise InputError(f"column {name!r} holds an enumeration inside {kind.base_type()}; cast it to text")
        return column

    def _hashed(self, frame: Any, lot: Lot) -> Any:
        """A frame with a keyed hash of every row, one half for its place, the other for the order rows leave in.

        The key is a column, so that no plan prints it.
        """
        salt, digest = f"{self.own}salt", f"{self.own}digest"
        salted = frame.join(nw.from_native(self.bring(pl.DataFrame({salt: [lot.place.hex()]}))), how="cross")
        text = f"{salt} || {payload_sql(self.kinds, spark=self.spark)}"
        halves = {
            f"{self.own}{word}": f"substr({digest}, {start}, {_DIGITS})"
            for word, start in (("place", 1), ("order", 1 + _DIGITS))
        }
        native = salted.to_native()
        if self.spark:  # expressions as text, which classic and Connect sessions both take
            native = native.selectExpr("*", f"sha2({text}, 256) as {digest}")
            return nw.from_native(native.selectExpr("*", *(f"{half} as {n}" for n, half in halves.items())))
        native = native.project(f"*, sha256({text}) as {digest}")
        return nw.from_native(native.project("*, " + ", ".join(f"{half} as {n}" for n, half in halves.items())))

    def _plan(self, counted: Counted, partition: Partition) -> tuple[pl.DataFrame, pl.DataFrame]:
        """(keys, number and largest group of every cell and whether it has others; ordinals of their groups).

        Ordinals run from 1 through the groups of a cell that is split, the largest last.
        """
        coded = [*counted.quasi, *counted.sensitive]
        codes = np.concatenate([counted.histogram.quasi, counted.histogram.sensitive], axis=1)
        order = shares(partition)
        cell, group, count = partition.cell[order], partition.group[order], partition.count[order]
        head = np.ones(cell.size, bool)
        head[:-1] = np.diff(cell) != 0
        several = np.bincount(cell, minlength=counted.histogram.cells) > 1
        ends = np.cumsum(count)
        start = np.searchsorted(cell, cell, side="left")
        before = np.concatenate([[0], ends])[start]  # rows of the cells before
        whole = cell[head]
        texts = [self._as_keys(column.values) for column in coded]
        cells = pl.DataFrame(
            {self._key(i): text.gather(codes[whole, i]) for i, text in enumerate(texts)}
            | {f"{self.own}cell": whole.astype(np.int64), f"{self.own}group": group[head].astype(np.int64)}
            | {f"{self.own}split": several[whole]}
        )
        held = several[cell]
        numbers = {"cell": cell, "first": ends - count - before + 1, "last": ends - before, "group": group}
        return cells, pl.DataFrame({f"{self.own}{word}": made[held].astype(np.int64) for word, made in numbers.items()})

    def _as_keys(self, values: pl.Series) -> pl.Series:
        """Distinct values as the engine itself writes them, so that the join finds them again."""
        frame = nw.from_native(self.bring(pl.DataFrame({"i": np.arange(len(values)), "v": values})))
        shown = _key("v", frame.collect_schema()["v"])
        out = frame.select("i", shown.alias("v")).collect(backend="polars").to_native()
        return out.sort("i")["v"]

    def _publish(self, frame: Any, replacements: Sequence[Replacement]) -> Any:
        """Join the published values by group number; a missing value stays missing."""
        groups = replacements[0].index.size if replacements else 0
        number = f"{self.own}group"
        new = {f"{self.own}new_{i}": r.values.gather(r.index) for i, r in enumerate(replacements)}
        side = nw.from_native(self.bring(pl.DataFrame({number: np.arange(groups, dtype=np.int64)} | new)))
        frame = frame.join(side, on=number, how="left")
        return frame.with_columns(nw.col(f"{self.own}new_{i}").alias(r.name) for i, r in enumerate(replacements))

    def bring(self, frame: pl.DataFrame) -> Any:
        """A small Polars frame into the engine, on the connection or session of the table itself."""
        arrow = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if self.spark:
            return self.native.sparkSession.createDataFrame(arrow)
        found = self.native.query(f"{self.own}view", "select * from arrow")
        return found.set_alias(f"__shoal_{secrets.token_hex(8)}")


class Stored(NamedTuple):
    """A DuckDB relation by its rows: its connection is of one process alone."""

    rows: Any

    def relation(self) -> Any:
        """The rows again, on a connection of their own."""
        import duckdb

        return duckdb.connect().from_arrow(self.rows)


def stored(table: Any) -> Any:
    """A frame as something that can be pickled."""
    return Stored(table.to_arrow_table()) if is_duckdb(table) else table


def _refuse_alike(native: Any) -> None:
    """Neither engine tells names apart that differ by case alone; one of two such columns would be read twice.

    A column named ``*`` would stand for all of them.
    """
    seen: set[str] = set()
    for name in map(str, native.columns):
        if name == "*":
            raise InputError("the table names a column '*', which means every column in DuckDB and Spark; rename it")
        if name.casefold() in seen:
            raise InputError(f"the table names the column {name!r} more than once, or only its case differs; rename it")
        seen.add(name.casefold())


def is_spark(native: Any) -> bool:
    """Whether a frame is one of Spark's."""
    return type(native).__module__.startswith("pyspark")


def is_duckdb(native: Any) -> bool:
    """Whether a frame is a relation of DuckDB."""
    return type(native).__module__.startswith(("duckdb", "_duckdb"))


def _key(name: str, kind: Any) -> nw.Expr:
    """A column as text by which rows find their cell: NaN is missing and -0.0 is 0.0, as when counting."""
    column = nw.col(name)
    if kind.is_float():
        column = nw.when(~column.is_nan()).then(column + 0.0)
    return column.cast(nw.String).fill_null(_MISSING)
