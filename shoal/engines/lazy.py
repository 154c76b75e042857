"""Frames that live elsewhere: DuckDB relations and Spark frames, through narwhals' lazy interface.

The same two operations as in memory, run inside the engine: *group and count* brings back the cells only; *number and
join* numbers the rows of every cell in random order and joins what each is published as.  Rows stay where they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import cannot_group, encode
from shoal.engines.frames import Counted, Replacement, _count, mixed_radix_columns, require
from shoal.errors import InputError, ShoalError
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition

_MISSING = "\x00missing"
_OPAQUE = ("BIGNUM", "VARINT", "BIT", "INTERVAL", "BLOB")  # of DuckDB, which no other table holds
_ORDINAL, _RANDOM, _PLACE = "__shoal_ordinal", "__shoal_random", "__shoal_place"


class LazyTable:
    """A table held by DuckDB or Spark.

    source   name of the file it is read from; records: how many rows a second parser found there
    """

    def __init__(self, native: Any, *, source: str | None = None, records: int | None = None) -> None:
        _refuse_alike(native)
        self.native = native
        self.source, self.records = source, records
        self.frame = nw.from_native(native)
        self.columns = [str(c) for c in self.frame.collect_schema().names()]

    @property
    def rows(self) -> int:
        """Number of rows; runs a query."""
        return int(self.frame.select(nw.len()).collect(backend="polars").item())

    def count(self, quasi: Sequence[str], sensitive: Sequence[str]) -> Counted:
        """Group and count inside the engine; only the cells come back."""
        require(self.columns, [*quasi, *sensitive])
        names = [*quasi, *sensitive]
        query = self.frame.group_by(names).agg(nw.len().alias("__shoal_count"))
        cells = self._collected(query, names)
        coded = [encode(cells[name]) for name in names]
        sizes = tuple(c.size for c in coded)
        key = mixed_radix_columns([c.codes for c in coded], sizes, cells.height)
        where, first, _ = _count(key)  # NaN and null may stand in two rows of one cell
        held = np.bincount(where, weights=cells["__shoal_count"].to_numpy(), minlength=first.size).astype(np.int64)
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

    def _collected(self, query: Any, names: Sequence[str]) -> pl.DataFrame:
        """The cells; an engine's own message may quote rows, so none is passed on."""
        kinds = dict(zip(self.columns, map(str, self.native.types), strict=True)) if _is_duckdb(self.native) else {}
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
        rng: np.random.Generator,
        keep_order: bool,
    ) -> Any:
        """Number and join inside the engine; the same kind of frame as came in.

        Every row gets its number within its cell, in random order.  Numbers of a cell run through its groups, so a cell
        in one group needs one line of the joined table, a split cell one line per row outside its largest group.
        """
        if keep_order:
            raise InputError("a DuckDB or Spark table has no row order to keep; leave keep_order out")
        names = [*counted.histogram.quasi_names, *counted.histogram.sensitive_names]
        plan = self._plan(counted, partition, replacements, rng)
        keys = [f"__shoal_key_{i}" for i in range(len(names))]
        numbered = nw.from_native(self._randomized(int(rng.integers(2**31))))
        kinds = numbered.collect_schema()
        frame = numbered.with_columns(*(_key(n, kinds[n]).alias(k) for n, k in zip(names, keys, strict=True)))
        frame = frame.with_columns(
            nw.col(_RANDOM).cum_count().over(*keys, order_by=_RANDOM).cast(nw.Int64).alias(_ORDINAL)
        )
        plan_frame = nw.from_native(self._bring(plan))
        usual = plan_frame.filter(nw.col(_ORDINAL) == 0).drop(_ORDINAL)
        special = plan_frame.filter(nw.col(_ORDINAL) > 0)
        place = "__shoal_special"
        special = special.rename({_PLACE: place})
        frame = frame.join(usual, on=keys, how="left").join(special, on=[*keys, _ORDINAL], how="left")
        frame = frame.with_columns(nw.coalesce(nw.col(place), nw.col(_PLACE)).alias(_PLACE)).drop(place)
        frame = self._publish(frame, replacements)
        kept = [c for c in self.columns if c not in drop]
        return self._settled(frame.sort(_RANDOM).select(kept).to_native())

    def _settled(self, native: Any) -> Any:
        """Rows placed once and for all: a lazy frame would draw new random numbers each time it is looked at."""
        if _is_duckdb(native):
            name = f"__shoal_release_{secrets.token_hex(8)}"
            native.query("__shoal_made", f"create temp table {name} as from __shoal_made")
            return native.query("__shoal_made", f"from {name}")
        return native.cache()

    def _plan(
        self, counted: Counted, partition: Partition, replacements: Sequence[Replacement], rng: np.random.Generator
    ) -> pl.DataFrame:
        """Keys, ordinal (0: every row without a line of its own) and group."""
        coded = [*counted.quasi, *counted.sensitive]
        codes = np.concatenate([counted.histogram.quasi, counted.histogram.sensitive], axis=1)
        by_size = np.lexsort((-partition.count, partition.cell))
        cell, group, count = partition.cell[by_size], partition.group[by_size], partition.count[by_size]
        head = np.ones(cell.size, bool)
        head[1:] = np.diff(cell) != 0
        extra_cell = np.repeat(cell[~head], count[~head])
        extra_group = np.repeat(group[~head], count[~head])
        start = np.searchsorted(extra_cell, extra_cell, side="left")
        ordinal = np.arange(extra_cell.size) - start + 1
        cells = np.concatenate([cell[head], extra_cell])
        columns: dict[str, Any] = {}
        for i, column in enumerate(coded):
            texts = self._as_keys(column.values)
            columns[f"__shoal_key_{i}"] = texts.gather(codes[cells, i])
        columns[_ORDINAL] = np.concatenate([np.zeros(int(head.sum()), np.int64), ordinal.astype(np.int64)])
        columns[_PLACE] = np.concatenate([group[head], extra_group]).astype(np.int64)
        return pl.DataFrame(columns)

    def _as_keys(self, values: pl.Series) -> pl.Series:
        """Distinct values as the engine itself writes them, so that the join finds them again."""
        frame = nw.from_native(self._bring(pl.DataFrame({"i": np.arange(len(values)), "v": values})))
        shown = _key("v", frame.collect_schema()["v"])
        out = frame.select("i", shown.alias("v")).collect(backend="polars").to_native()
        return out.sort("i")["v"]

    def _publish(self, frame: Any, replacements: Sequence[Replacement]) -> Any:
        """Join the published values by group number; a missing value stays missing."""
        groups = replacements[0].index.size if replacements else 0
        table = {_PLACE: np.arange(groups, dtype=np.int64)}
        new = {f"__shoal_new_{i}": r.values.gather(r.index) for i, r in enumerate(replacements)}
        side = nw.from_native(self._bring(pl.DataFrame({**table, **new})))
        frame = frame.join(side, on=_PLACE, how="left")
        return frame.with_columns(nw.col(f"__shoal_new_{i}").alias(r.name) for i, r in enumerate(replacements))

    def _randomized(self, seed: int) -> Any:
        """The native frame with a column of random numbers."""
        if _is_duckdb(self.native):
            return self.native.project(f"*, random() AS {_RANDOM}")
        from pyspark.sql import functions

        return self.native.withColumn(_RANDOM, functions.rand(seed))

    def _bring(self, frame: pl.DataFrame) -> Any:
        """A small Polars frame into the engine, on the connection or session of the table itself."""
        if _is_duckdb(self.native):
            arrow = frame.to_arrow()
            found = self.native.query("__shoal_view", "select * from arrow")
            return found.set_alias(f"__shoal_{secrets.token_hex(8)}")
        session = self.native.sparkSession
        if int(session.version.split(".")[0]) >= 4:  # keeps whole numbers whole where some are missing
            arrow = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            return session.createDataFrame(arrow)
        return session.createDataFrame(frame.to_pandas())


def _refuse_alike(native: Any) -> None:
    """Neither engine tells names apart that differ by case alone; one of two such columns would be read twice."""
    seen: set[str] = set()
    for name in map(str, native.columns):
        if name.casefold() in seen:
            raise InputError(f"the table names the column {name!r} more than once, or only its case differs; rename it")
        seen.add(name.casefold())


def _is_duckdb(native: Any) -> bool:
    return type(native).__module__.startswith(("duckdb", "_duckdb"))


def _key(name: str, kind: Any) -> nw.Expr:
    """A column as text by which rows find their cell: NaN is missing and -0.0 is 0.0, as when counting."""
    column = nw.col(name)
    if kind.is_float():
        column = nw.when(~column.is_nan()).then(column + 0.0)
    return column.cast(nw.String).fill_null(_MISSING)
