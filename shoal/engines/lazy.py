"""Frames outside this process, such as DuckDB relations and Spark frames, through narwhals' lazy interface.

The two operations are the same as in memory, but run in the engine. *Group and count* fetches only the cells. *Number
and join* numbers the rows of cells that are split between groups by a keyed hash of the row, and joins the published
values. Rows stay in the engine. The result is a plan that gives the same rows each time it is run; nothing is stored or
registered in the user's connection or session.
"""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines.codes import (
    cannot_group,
    count_keys,
    encode,
    histogram_of,
    mixed_radix_columns,
    narrow,
    refuse_dates,
)
from shoal.engines.frames import split_triples
from shoal.engines.order import LatePlacement, ShuffleKey, row_hashes
from shoal.engines.source import too_little
from shoal.engines.table import (
    CellKeys,
    Counted,
    Origin,
    Placed,
    PlacementRequest,
    Replacement,
    SingledOut,
    Table,
    Workers,
    refuse_other_count,
    require,
)
from shoal.engines.unassigned import singled_elsewhere
from shoal.errors import InputError, ShoalError
from shoal.model.histogram import Partition, narrowest

_ATTEMPTS = 8
_HASHED = 1 << 16  # number of groups whose texts are hashed at a time


class Dialect(Protocol):
    """The operations of one engine that narwhals lacks. ``native`` is a frame of that engine.

    name  its name in messages

    An expression is an argument of ``with_columns``: SQL text, or another form in which the engine defines a column.
    """

    name: str

    def number(self, first: int | str, columns: Mapping[str, Any]) -> Any:
        """An expression: a 64-bit number of the values of some columns, in which a missing value differs from all
        others.

        first    a number, or the name of a column of numbers, that precedes them
        columns  names with the narwhals types of their values
        """
        ...

    def placement_hash(self, salt: str, columns: Mapping[str, Any]) -> Any:
        """An expression: the first 16 hexadecimal digits of SHA-256 of column ``salt`` and the payload of ``order``."""
        ...

    def with_columns(self, native: Any, made: Mapping[str, Any]) -> Any:
        """A frame with further columns, defined by expressions over its columns."""
        ...

    def opaque(self, native: Any) -> Mapping[str, str]:
        """The columns with values that no other table can hold, and their types."""
        ...

    def from_polars(self, native: Any, frame: pl.DataFrame) -> Any:
        """A small Polars frame as a frame of the engine, on the connection or session of ``native``."""
        ...

    def ordered(self, native: Any, by: str) -> Any:
        """All rows in an order that depends only on a column of numbers, if the engine's rows have an order."""
        ...

    def in_order(
        self, native: Any, by: str, rows: int, scratch: Path, tell: Callable[[int], None], late: LatePlacement | None
    ) -> Iterator[pl.DataFrame]:
        """The slices of ``ordered``, without the column of numbers. rows: their total number.

        late  assigns groups to rows that have none yet; never if ``row_memory`` is 0
        """
        ...

    def row_memory(self, native: Any) -> int:
        """Bytes of rows that this process may hold, if ``in_order`` sorts rows here; otherwise 0."""
        ...

    def slices(self, native: Any, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """All rows in slices that fit in memory, at least one. scratch: a folder for temporary files."""
        ...

    def parts(self, native: Any, folder: Path) -> dict[str, int]:
        """All rows as files that the engine writes, as in ``Table.parts``; none if slices are as fast."""
        ...

    def picklable(self, native: Any) -> Any:
        """A frame as an object that can be pickled."""
        ...

    def workers(self, native: Any) -> Workers:
        """The functions that the engine runs in its workers."""
        ...


def _is_plain(kind: Any) -> bool:
    """Whether a value's text is the same in Polars as in an engine."""
    texts = kind == nw.String or isinstance(kind, (nw.Enum, nw.Categorical))
    return bool(texts or kind.is_integer() or kind.is_float() or kind in (nw.Boolean, nw.Date, nw.Datetime))


_SIGNED = {pl.UInt8: pl.Int16, pl.UInt16: pl.Int32, pl.UInt32: pl.Int64, pl.UInt64: pl.Decimal(20, 0)}


def signed(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame for an engine that has no unsigned integers: each as the narrowest signed type that holds it."""
    return frame.cast(_SIGNED)  # type: ignore[arg-type]


def _is_nan(name: str) -> Any:
    """Whether a number is NaN, by its text: DuckDB may decide is_nan without reading the values of Parquet."""
    return nw.col(name).cast(nw.String).str.to_lowercase() == "nan"


class _Plan(NamedTuple):
    """The assignment of rows to groups, by the engine's number of their tuples.

    whole   in the engine: key, group, and tag of tuples in one group
    cells   in the engine: key, cell, and salt of cells that are split
    pieces  here: for each group of a split cell, the ordinals of the cell's rows that it takes, by cell; the ordinals
            of a cell run through its groups from 1, the largest group last
    """

    whole: Any
    cells: Any
    pieces: pl.DataFrame


class LazyTable:
    """A table in an engine that narwhals supports; see ``Table``."""

    in_memory = False

    def __init__(self, native: Any, dialect: Dialect, origin: Origin) -> None:
        _refuse_alike(native)
        self.native, self.dialect, self.origin = native, dialect, origin
        self.frame = nw.from_native(native)
        self.kinds = dict(self.frame.collect_schema())
        self.columns = [str(c) for c in self.kinds]
        token = secrets.token_hex(8)
        self.own = f"__shoal_{token}_"  # prefix of the columns that are added to the user's in a plan

    @property
    def rows(self) -> int:
        """Number of rows; runs a query."""
        return int(self.frame.select(nw.len()).collect(backend="polars").item())

    def sample(self, most: int) -> tuple[pl.DataFrame, int]:
        """All rows, or a random sample of about ``most`` rows if there are more, and the number of rows."""
        way = "leave it out, or cast it to text, in a query with CAST(... AS TEXT)"
        self._refuse_kinds(self.columns, ("INTERVAL", "UNION"), way)
        of = self.rows
        drawn = self.native if of <= most else self._drawn(most / of)
        return pl.concat(self.dialect.slices(drawn, Path(), lambda _: None)), of

    def _drawn(self, share: float) -> Any:
        """A random share of the rows, in SQL that DuckDB and Spark share."""
        return self.native.filter(f"random() < {share}")

    def count(
        self, quasi: Sequence[str], sensitive: Sequence[str], notations: Mapping[str, str] | None = None
    ) -> Counted:
        """Group and count in the engine; only the cells are fetched."""
        require(self.columns, [*quasi, *sensitive])
        names = [*quasi, *sensitive]
        cells, counts, key, attempt = self._tuples(names)
        tuples = cells.height
        coded = [
            narrow(encode(cells.drop_in_place(name), (notations or {}).get(name))) for name in names
        ]  # ``drop_in_place`` keeps only one copy of each column
        radix = mixed_radix_columns([c.codes for c in coded], [c.size for c in coded], tuples)
        where, first, _ = count_keys(radix)
        held = np.bincount(where, weights=counts, minlength=first.size).astype(np.int64)
        if self.origin.records is not None:
            refuse_other_count(str(self.origin.source), int(held.sum()), self.origin.records)
        d = len(quasi)
        histogram = histogram_of(coded[:d], coded[d:], first, held)
        keys = CellKeys(attempt, key, narrowest(where, first.size))
        coded = [replace(c, codes=c.codes[:0].copy()) for c in coded]  # codes of tuples, which the histogram now has
        return Counted(histogram, tuple(coded[:d]), tuple(coded[d:]), np.zeros(0, np.int64), keys)

    def with_missing(self, names: Sequence[str], flag: str) -> LazyTable:
        """A table with a further column, which is true if any of some columns is missing."""
        each = [nw.col(n).is_null() for n in names]
        each += [_is_nan(n).fill_null(False) for n in names if self.kinds[n].is_float()]
        found = self.frame.with_columns(reduce(or_, each).alias(flag)).to_native()
        return type(self)(found, self.dialect, self.origin)

    def filled(self, values: Mapping[str, Any]) -> LazyTable:
        """A table in which the missing values of each column are replaced by the given value."""
        kinds = {name: self.kinds[name] for name in values}
        known = {n: nw.when(~_is_nan(n)).then(nw.col(n)) if kind.is_float() else nw.col(n) for n, kind in kinds.items()}
        new = []
        for name, column in known.items():
            kind = kinds[name]
            if kind == nw.Unknown:  # a time of day: the engine converts text to the column's own type
                new.append(column.fill_null(str(values[name])).alias(name))
            elif isinstance(kind, nw.Datetime) and not kind.time_zone:  # a moment would get the session's time zone
                new.append(column.fill_null(str(values[name])).cast(kind).alias(name))
            else:
                new.append(column.fill_null(values[name]).cast(kind).alias(name))
        return type(self)(self.frame.with_columns(*new).to_native(), self.dialect, self.origin)

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples of some columns with the number of rows of each, grouped in the engine."""
        return self._tuples(names)[:2]

    def _tuples(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray, np.ndarray, int]:
        """(distinct tuples, number of rows of each, the engine's number of each, index of the numbering).

        If a numbering gives all tuples different numbers, it identifies the tuple of every row. Otherwise the next
        numbering is tried, which happens once in a million tables of ten million tuples.
        """
        self.refuse_fields(names)
        opaque = self.dialect.opaque(self.native)
        for name in names:
            if name in opaque:
                raise cannot_group(name, opaque[name])
        count, key = f"{self.own}n", f"{self.own}key"
        grouped = self._compared(names).group_by(list(names)).agg(nw.len().alias(count)).to_native()
        for attempt in range(_ATTEMPTS):
            query = nw.from_native(self.dialect.with_columns(grouped, {key: self._number_of_cells(names, attempt)}))
            cells = self._collected(query, names)
            ordered = np.sort(cells[key].to_numpy())  # a set of this size would take several times the memory
            if (ordered[1:] != ordered[:-1]).all():
                found = cells[count].cast(pl.Int64).to_numpy(), cells[key].to_numpy()
                return self._with_levels(cells.drop(count, key)), *found, attempt
        raise InputError("the engine gives different values the same number; read the table with the Polars engine")

    def _with_levels(self, found: pl.DataFrame) -> pl.DataFrame:
        """Rows whose enumerations have their levels in order, as in the table; the engine delivers categories."""
        levels = {n: k.categories for n, k in self.kinds.items() if n in found.columns and isinstance(k, nw.Enum)}
        return found.with_columns(pl.col(n).cast(pl.String).cast(pl.Enum(v)) for n, v in levels.items())

    def _compared(self, names: Sequence[str]) -> Any:
        """The frame whose columns are grouped."""
        return self.frame

    def _number(self, names: Sequence[str], first: int | str) -> Any:
        """An expression: a 64-bit number of some columns; see ``Dialect.number``."""
        return self.dialect.number(first, {name: self.kinds.get(name, nw.String()) for name in names})

    def _number_of_cells(self, names: Sequence[str], first: int) -> Any:
        """``_number`` of the rows of ``_compared``."""
        return self._number(names, first)

    def without(self, names: Sequence[str]) -> Any:
        """The native plan without some columns."""
        return self.frame.select(*(c for c in self.columns if c not in names)).to_native()

    def _collected(self, query: Any, names: Sequence[str]) -> pl.DataFrame:
        """The fetched cells. The engine's own message may quote rows, so it isn't passed on."""
        try:
            return self._fetched(query)
        except ShoalError:
            raise
        except Exception as error:
            if short := too_little(error):
                raise InputError(short) from None
            source = self.origin.source
            if source is not None and not isinstance(error, pl.exceptions.PolarsError):
                raise InputError(f"{source!r} cannot be read by the engine ({type(error).__name__})") from None
            raise InputError(
                "a quasi-identifier or sensitive column is of a type that cannot be grouped here, an interval perhaps; "
                "cast it to text or numbers"
            ) from None

    def _fetched(self, query: Any) -> pl.DataFrame:
        """The rows of a query in memory."""
        found: pl.DataFrame = query.collect(backend="polars").to_native()
        return found

    def place(self, counted: Counted, asked: PlacementRequest) -> Placed:
        """Number and join in the engine; the result is a frame of the same kind as the input.

        A row of a cell in one group has that group. Only rows of cells that are split between groups are hashed and get
        an ordinal within the cell; the ordinals run through the cell's groups. The order of rows is a keyed function of
        what each row publishes and of nothing else, so it reveals nothing more.
        """
        partition, replacements, drop, aside, shuffle_key, keep_order = asked
        if keep_order:
            raise InputError(
                f"a table of {self.dialect.name} has no row order to keep; leave ⟨keep_order⟩ out, or call apply in "
                "place of transform"
            )
        group, at = f"{self.own}group", f"{self.own}at"
        kept = [c for c in self.columns if c not in drop]
        left = [c for c in kept if c not in {r.name for r in replacements}]
        shown = [c for c in left if c not in aside]
        tag = self._tags(replacements, partition.groups, shuffle_key)
        plan = self._plan(counted, partition, shuffle_key, tag)
        rows, number = self._at(self._grouped(counted, plan), counted, left, shown), counted.histogram.rows
        made = {group: np.arange(replacements[0].index.size, dtype=np.int32)} if replacements else {}
        new = {f"{self.own}new_{i}": r.values.gather(r.index) for i, r in enumerate(replacements)}
        values = self.from_polars(pl.DataFrame(made | new))
        renamed = [nw.col(n).alias(r.name) for n, r in zip(new, replacements, strict=True)]
        whole_rows = rows.select(*left, group, at)
        frame = whole_rows.join(nw.from_native(values), on=group, how="left").with_columns(*renamed)
        published = {r.name: n for n, r in zip(new, replacements, strict=True)}
        whole = nw.from_native(self.dialect.ordered(frame.to_native(), at))
        late = self._late(plan, shuffle_key, tag, left)
        if late is not None:
            whole_rows = self._once(counted, plan, left, shown)
        numbered = NumberedRows(self.dialect, whole_rows.to_native(), at, number, values, group, published, late)
        unordered = type(self)(frame.select(*kept).to_native(), self.dialect, Origin())
        return Placed(whole.select(*kept).to_native(), numbered.slices, counts=unordered.counts)

    @staticmethod
    def _tags(replacements: Sequence[Replacement], groups: int, shuffle_key: ShuffleKey) -> np.ndarray:
        """int64[groups]: a keyed hash of what each group publishes, and of nothing else."""
        if not replacements:
            return np.zeros(groups, np.int64)
        out = np.empty(groups, np.int64)
        # the texts of all groups are never in memory at once
        for some in (slice(at, at + _HASHED) for at in range(0, groups, _HASHED)):
            shown = [r.values.gather(r.index[some]).alias(r.name) for r in replacements]
            out[some] = row_hashes(shown, shuffle_key.order) >> np.uint64(1)
        return out

    def _grouped(self, counted: Counted, plan: _Plan) -> Any:
        """Every row with the number and tag of its group, joined by the engine's number of its tuple."""
        cell, ordinal, place = (f"{self.own}{word}" for word in ("cell", "ordinal", "place"))
        frame, kept = self._keyed(counted), [*self.columns, f"{self.own}group", f"{self.own}tag"]
        found = frame.join(nw.from_native(plan.whole), on=f"{self.own}key", how="inner").select(*kept)
        if not plan.pieces.height:
            return found
        split = frame.join(nw.from_native(plan.cells), on=f"{self.own}key", how="inner")
        hashed = {place: self.dialect.placement_hash(f"{self.own}salt", self.kinds)}
        split = nw.from_native(self.dialect.with_columns(split.to_native(), hashed))
        by = [place, *(n for n, kind in self.kinds.items() if kind.is_float())]
        split = split.with_columns(nw.col(place).cum_count().over(cell, order_by=by).cast(nw.Int64).alias(ordinal))
        split = split.join(nw.from_native(self.from_polars(plan.pieces)), on=cell, how="inner")
        first, last = nw.col(f"{self.own}first"), nw.col(f"{self.own}last")
        split = split.filter(first <= nw.col(ordinal), nw.col(ordinal) <= last)
        return nw.concat([found, split.select(*kept)])

    def _once(self, counted: Counted, plan: _Plan, left: Sequence[str], shown: Sequence[str]) -> Any:
        """The rows of ``_grouped``, each read once. Rows of split cells have no group yet, and have what ``_late``
        needs."""
        group, tag, at = (f"{self.own}{word}" for word in ("group", "tag", "at"))
        whole, cells = (nw.from_native(held) for held in (plan.whole, plan.cells))
        cells = cells.with_columns(
            (-nw.col(f"{self.own}cell") - 1).cast(nw.Int32).alias(group), nw.lit(None).cast(nw.Int64).alias(tag)
        )
        known = nw.concat([held.select(f"{self.own}key", group, tag) for held in (whole, cells)])
        rows = self._keyed(counted).join(known, on=f"{self.own}key", how="inner")
        late = nw.col(group) < 0
        more = {new: name for name, new in self._names_once(left).items() if new != name}
        rows = rows.with_columns(*(nw.when(late).then(nw.col(name)).alias(new) for new, name in more.items()))
        rows = self._at(rows, counted, left, shown, *more)
        own = nw.when(late).then(nw.col(f"{self.own}shown")).otherwise(nw.col(at)).alias(at)
        return rows.with_columns(own).select(*left, group, at, *more)

    def _names_once(self, left: Sequence[str]) -> dict[str, str]:
        """The column names in ``_once``: removed columns get names of their own, because they aren't published."""
        return {name: name if name in left else f"{self.own}of_{i}" for i, name in enumerate(self.columns)}

    def _late(self, plan: _Plan, shuffle_key: ShuffleKey, tag: np.ndarray, left: Sequence[str]) -> LatePlacement | None:
        """The object that assigns rows of split cells to groups after all rows have passed; None if the engine does
        this.

        An engine numbers these rows by reading all columns of the table again, which takes as long as the first time.
        """
        pieces, words = plan.pieces, ("cell", "first", "last", "group")
        cell, first, last, group = (pieces[f"{self.own}{word}"].to_numpy() for word in words)
        rows, kinds = last - first + 1, self.kinds.values()
        most = LatePlacement.fits(cell, rows, sum(k.is_float() for k in kinds), self.dialect.row_memory(self.native))
        if not most or not all(map(_is_plain, kinds)):
            return None
        return LatePlacement(
            f"{self.own}group", f"{self.own}at", self._names_once(left), shuffle_key.place, cell, rows, group, tag,
            self._numbers, most,
        )  # fmt: skip

    def _at(self, rows: Any, counted: Counted, left: Sequence[str], shown: Sequence[str], *more: str) -> Any:
        """Rows with their order number: a function of their group's tag and of the other published values."""
        group, tag, at, hashed = (f"{self.own}{word}" for word in ("group", "tag", "at", "shown"))
        rows = rows.select(*(self._plain(c, counted) for c in left), group, tag, *more).to_native()
        if self.dialect.row_memory(self.native):
            rows = self.dialect.with_columns(rows, {hashed: self._number(shown, _ATTEMPTS)})
            return nw.from_native(self.dialect.with_columns(rows, {at: self._number_of_hash(hashed, tag)}))
        return nw.from_native(self.dialect.with_columns(rows, {at: self._number(shown, tag)}))

    def _number_of_hash(self, hashed: str, tag: str) -> Any:
        return self.dialect.number(tag, {hashed: nw.UInt64()})

    def _numbers(self, tag: np.ndarray, hashed: np.ndarray) -> np.ndarray:
        """uint64[n]: order numbers, computed by the engine from tags and hashes of the other published values."""
        own = [f"{self.own}{word}" for word in ("row", "tag", "shown", "at")]
        brought = self.from_polars(pl.DataFrame(dict(zip(own[:3], (np.arange(tag.size), tag, hashed), strict=True))))
        made = self.dialect.with_columns(brought, {own[3]: self._number_of_hash(own[2], own[1])})
        found = nw.from_native(made).select(own[0], own[3]).collect(backend="polars").to_native().sort(own[0])
        return found[own[3]].to_numpy()

    def _keyed(self, counted: Counted) -> Any:
        """Every row with the engine's number of its tuple."""
        keys = counted.keys
        if keys is None:
            raise InputError(
                "the table was counted by another engine, which numbers its rows differently; use one engine for both"
            )
        names = [*counted.histogram.quasi_names, *counted.histogram.sensitive_names]
        number = self._number(names, keys.attempt)
        return nw.from_native(self.dialect.with_columns(self.native, {f"{self.own}key": number}))

    def _plain(self, name: str, counted: Counted) -> nw.Expr:
        """A column whose type contains no level that no row has."""
        column, kind = nw.col(name), self.kinds[name]
        for coded in counted.sensitive:
            if coded.name == name and coded.ordered:
                return column.cast(nw.Enum([t for t in coded.texts() if t is not None]))
        if isinstance(kind, (nw.Enum, nw.Categorical)):
            return column.cast(nw.String)
        if "Enum(" in str(kind):
            raise InputError(f"column {name!r} holds an enumeration inside {kind.base_type()}; cast it to text")
        return column

    def _plan(self, counted: Counted, partition: Partition, shuffle_key: ShuffleKey, tag: np.ndarray) -> _Plan:
        """The assignment of keys to groups. Tags and keys are values of a table, so no printed plan shows them."""
        keys = counted.keys
        assert keys is not None
        several, order = split_triples(partition, counted.histogram.cells)
        cell, at, count = partition.cell[order], partition.group[order], partition.count[order]
        only = np.zeros(counted.histogram.cells, np.int32)
        only[partition.cell] = partition.group
        ends = np.cumsum(count)
        start = np.searchsorted(cell, cell, side="left")
        before = np.concatenate([[0], ends])[start]  # rows of the preceding cells
        split = several[keys.cell]
        own = only[keys.cell[~split]]
        numbers = {"cell": cell, "first": ends - count - before + 1, "last": ends - before}
        whole = {"key": keys.key[~split], "group": own, "tag": tag[own]}
        salt = pl.Series([shuffle_key.place.hex()], dtype=pl.String).new_from_index(0, int(split.sum()))
        cells = {"key": keys.key[split], "cell": keys.cell[split].astype(np.int64), "salt": salt}
        pieces = {word: values.astype(np.int64) for word, values in numbers.items()}
        pieces |= {"group": at.astype(np.int32), "tag": tag[at]}
        made = (pl.DataFrame({f"{self.own}{w}": v for w, v in t.items()}) for t in (whole, cells, pieces))
        return _Plan(self.from_polars(next(made)), self.from_polars(next(made)), next(made))

    def from_polars(self, frame: pl.DataFrame) -> Any:
        """A small Polars frame as a frame of the engine, on the connection or session of the table."""
        return self.dialect.from_polars(self.native, frame)

    def from_polars_rows(self, frame: pl.DataFrame) -> Any:
        """``from_polars``, because the rows of an engine have no index."""
        return self.from_polars(frame)

    def singled(self, columns: Sequence[str]) -> SingledOut:
        """How far some columns single rows out, counted in the engine."""
        self.refuse_fields(columns)
        opaque = self.dialect.opaque(self.native)
        self._refuse_kinds([n for n in columns if not opaque.get(n, "").endswith("HUGEINT")])  # these have a text
        self._refuse_dates([n for n in columns if self.kinds[n] in (nw.Date, nw.Datetime)])
        return singled_elsewhere(self.frame, columns, hashed=self._hashes())

    def _refuse_kinds(
        self, columns: Sequence[str], starts: tuple[str, ...] = ("",),
        way_out: str = "cast it to text, or name it in ⟨identifiers=[...]⟩",
    ) -> None:  # fmt: skip
        """InputError for a column of a type that no other table has; bytes can be published unchanged.

        starts  the starts of the refused types
        """
        opaque = self.dialect.opaque(self.native)
        for name in columns:
            if opaque.get(name, "BLOB") != "BLOB" and opaque[name].startswith(starts):
                raise InputError(
                    f"column {name!r} is of type {opaque[name]} in {self.dialect.name}, which no other table holds; "
                    f"{way_out}"
                )

    def _refuse_dates(self, columns: Sequence[str]) -> None:
        """InputError for dates that have no text."""
        for name in columns:
            ends = self.frame.select(nw.col(name).min().alias("low"), nw.col(name).max().alias("high"))
            found = ends.collect(backend="polars").to_native()
            for end in ("low", "high"):
                refuse_dates(found[end].alias(name))

    def _hashes(self) -> Callable[[Sequence[str]], Iterator[np.ndarray]] | None:
        """A function that gives a 64-bit number of some columns for every row; None if these should not be fetched."""
        return None

    def refuse_fields(self, names: Sequence[str]) -> None:
        """InputError for a name that the engine would read as a field of another column when grouping."""
        for name in names:
            if "." in name:
                raise InputError(
                    f"{self.dialect.name} reads the dot of column {name!r} as that of a field; rename the column, or "
                    "read the table with the Polars engine"
                )

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns of all rows, fetched into memory; integers that no other table holds as text."""
        self._refuse_kinds(names, ("INTERVAL", "UNION"))  # others are read, though not as they are
        opaque = self.dialect.opaque(self.native)
        kept = [nw.col(n).cast(nw.String) if opaque.get(n) == "UHUGEINT" else nw.col(n) for n in names]
        found: pl.DataFrame = self.frame.select(*kept).collect(backend="polars").to_native()
        return self._with_levels(found)

    def slices(self, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """Every row in slices, as the engine delivers them."""
        return self.dialect.slices(self.native, scratch, tell)

    def parts(self, folder: Path) -> dict[str, int]:
        """Every row as files that the engine writes, if it can do so without this process."""
        return self.dialect.parts(self.native, folder)

    def picklable(self) -> Any:
        """The frame as an object that can be pickled."""
        return self.dialect.picklable(self.native)

    def workers(self) -> Workers:
        """The functions that the engine runs in its workers."""
        return self.dialect.workers(self.native)


class DistinctValues(NamedTuple):
    """The distinct values of a column of a table in an engine.

    values  the values
    rows    int64, number of rows of each
    key     the engine's number of each, by its numbering ``attempt``
    """

    table: LazyTable
    values: pl.Series
    rows: np.ndarray
    key: np.ndarray
    attempt: int

    @classmethod
    def of(cls, table: Table, name: str) -> DistinctValues:
        """The distinct values, grouped in the engine."""
        assert isinstance(table, LazyTable)
        values, rows, key, attempt = table._tuples([name])
        return cls(table, values.to_series(), rows, key, attempt)

    def exchanged(self, new: pl.Series) -> Any:
        """The frame of the table with this column replaced by another; new: the replacement of each value.

        Rows are joined by the engine's number of the value. A table of texts takes several times its memory, and the
        part that doesn't fit is read from disk each time.
        """
        table, key, name = self.table, f"{self.table.own}key", self.values.name
        numbered = table.dialect.with_columns(table.native, {key: table._number([name], self.attempt)})
        brought = nw.from_native(table.from_polars(pl.DataFrame([pl.Series(key, self.key), new])))
        rows = nw.from_native(numbered).join(brought, on=key, how="inner")
        return rows.select(*(c for c in table.columns if c != name), new.name).to_native()


class NumberedRows(NamedTuple):
    """Rows with the number of their group instead of the recoded columns, so fewer bytes are moved.

    native     a frame with the other columns, the column ``group``, and the order number ``at``
    rows       number of rows
    values     a frame with what each group publishes
    published  for each column, its name in ``values``
    late       assigns groups to rows that have none in ``native``
    """

    dialect: Dialect
    native: Any
    at: str
    rows: int
    values: Any
    group: str
    published: Mapping[str, str]
    late: LatePlacement | None = None

    def slices(self, names: Sequence[str], scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        """Some columns of all rows in slices, at least one."""
        values = pl.concat(self.dialect.slices(self.values, scratch, lambda _: None)).sort(self.group)
        for rows in self.dialect.in_order(self.native, self.at, self.rows, scratch, tell, self.late):
            at, own = rows[self.group], self.published
            yield pl.DataFrame([values[own[n]].gather(at).alias(n) if n in own else rows[n] for n in names])


_INVISIBLE = ("Zs", "Zl", "Zp", "Cc", "Cf")  # Unicode categories of spaces and of invisible characters


def _refuse_alike(native: Any) -> None:
    """InputError for names that differ only by case: these engines would read one of the two columns twice.

    A column ``*`` would be read as all columns. When grouping, DuckDB drops characters from names: spaces and invisible
    characters around them, a comma after them, and quotes. Polars reads ``^a$`` as a pattern.
    """
    seen: set[str] = set()
    for name in map(str, native.columns):
        if name == "*":
            raise InputError("the table names a column '*', which means every column in DuckDB and Spark; rename it")
        around = name[:1] + name[-1:]
        if any(unicodedata.category(c) in _INVISIBLE for c in around):
            raise InputError(
                f"column {name!r} begins or ends with a space or an invisible character, which engines such as DuckDB "
                "drop where they group; rename it"
            )
        if around[1:] == "," or around in ('""', "``"):
            raise InputError(
                f"column {name!r} ends with a comma or is in quotes, which engines such as DuckDB drop where they "
                "group; rename it"
            )
        if around == "^$":
            raise InputError(f"the column name {name!r} is a pattern of other names to Polars; rename it")
        if name.casefold() in seen:
            raise InputError(f"the table names the column {name!r} more than once, or only its case differs; rename it")
        seen.add(name.casefold())
