"""The engine DuckDB: its dialect, its connections, and tables and queries of DuckDB and SQLite files.

A connection stays within its memory limit, and spills to a folder that only this user can read. All options of reading
are explicit, and none is detected. Database files are opened read-only.
"""

from __future__ import annotations

import atexit
import re
import secrets
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.atomic import clear_stale, folder_next_to
from shoal.engines.lazy import Dialect, LazyTable
from shoal.engines.order import (
    DIGITS,
    LatePlacement,
    MemoryBounds,
    Sql,
    compared_sql,
    laid_in_order,
    payload_sql,
    quoted,
)
from shoal.engines.source import FilesOfTable, Scope, Source, database_kind, locate, size, too_little
from shoal.engines.store import batches, slices
from shoal.engines.table import CheckedFiles, Origin, StoredFrame, Table, Workers, refuse_other_count
from shoal.errors import InputError, MissingDependencyError, PolicyError, VerificationError

READABLE = ("BinderException", "CatalogException", "ParserException", "SyntaxException")
# starts of types that other tables don't have; from a time of day with a zone they would take the zone
_OPAQUE = ("BIGNUM", "VARINT", "BIT", "INTERVAL", "BLOB", "UNION", "VARIANT", "GEOMETRY", "TIME WITH ")
_HASHES = 3  # times the hashes of one lot fit in DuckDB's memory, because one lot is sorted while the next is read
_LONG = ("HUGEINT", "UHUGEINT")  # types with more digits than other tables hold


class _DuckDB:
    """The dialect of DuckDB; see ``Dialect``."""

    name = "DuckDB"
    # the statistics of a Parquet file ignore NaN, and DuckDB uses them to skip isnan()
    sql = Sql('"', "varchar", "epoch_us({})", "cast({} as varchar) = 'nan'", "epoch_us({})")

    def number(self, first: int | str, columns: Mapping[str, Any]) -> str:
        return f"hash({', '.join(compared_sql(first, columns, self.sql))})"

    def placement_hash(self, salt: str, columns: Mapping[str, Any]) -> str:
        return f"substr(sha256({self.sql.name(salt)} || {payload_sql(columns, self.sql)}), 1, {DIGITS})"

    def with_columns(self, native: Any, made: Mapping[str, str]) -> Any:
        return native.project("*, " + ", ".join(f"{how} as {quoted(name)}" for name, how in made.items()))

    def opaque(self, native: Any) -> Mapping[str, str]:
        kinds = dict(zip(native.columns, map(str, native.types), strict=True))
        long = [name for name, kind in kinds.items() if kind in _LONG]
        if long:  # other tables have at most 38 digits
            asked = ", ".join(f"bool_or(abs({quoted(name)}::double) >= 1e38)" for name in long)
            (too_long,) = native.aggregate(asked).fetchall()
            long = [name for name, beyond in zip(long, too_long, strict=True) if beyond]
        return {name: kind for name, kind in kinds.items() if kind.startswith(_OPAQUE) or name in long}

    def from_polars(self, native: Any, frame: pl.DataFrame) -> Any:
        arrow = frame.to_arrow(compat_level=pl.CompatLevel.oldest())  # noqa: F841  (the query finds it by its name)
        found = native.query(f"__shoal_{secrets.token_hex(8)}", "select * from arrow")
        return found.set_alias(f"__shoal_{secrets.token_hex(8)}")

    def slices(self, native: Any, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        return slices(_held(native), tell)

    def ordered(self, native: Any, by: str) -> Any:
        return native.order(quoted(by))

    def in_order(
        self, native: Any, by: str, rows: int, scratch: Path, tell: Callable[[int], None], late: LatePlacement | None
    ) -> Iterator[pl.DataFrame]:
        """The rows in order, sorted here: DuckDB would sort complete rows, which takes several times as long."""
        return laid_in_order(batches(_held(native), tell), by, rows, scratch, MemoryBounds.within(_limit(native)), late)

    def row_memory(self, native: Any) -> int:
        return MemoryBounds.within(_limit(native)).slice

    def parts(self, native: Any, folder: Path) -> dict[str, int]:
        return {}

    def picklable(self, native: Any) -> Any:
        return StoredFrame(_held(native).to_arrow_table(), _relation_of)

    def workers(self, native: Any) -> Workers:
        return Workers(ask=partial(answered, native))


DUCKDB: Dialect = _DuckDB()


def _held(native: Any) -> Any:
    """The relation with integers that no other table holds as text: in Arrow, those from 2^127 on would be negative."""
    long = [name for name, kind in DUCKDB.opaque(native).items() if kind == "UHUGEINT"]
    texts = ", ".join(f"{quoted(name)}::varchar as {quoted(name)}" for name in long)
    return native.project(f"* replace ({texts})") if long else native


def _limit(native: Any) -> int:
    """The memory limit in bytes of the connection of a relation."""
    asked = "select current_setting('memory_limit')"
    ((setting,),) = native.query(f"__shoal_{secrets.token_hex(8)}", asked).fetchall()
    return size(str(setting).replace(" ", ""), least=0)


def answered(native: Any, sql: str) -> pl.DataFrame:
    """The result of a query on a connection, or on that of a relation.

    Raises VerificationError without DuckDB's message, which quotes rows, and InputError if memory is insufficient.
    """
    import duckdb

    name = f"__shoal_{secrets.token_hex(8)}"
    try:
        here = isinstance(native, duckdb.DuckDBPyConnection)
        found = pl.from_arrow((native.query(sql, alias=name) if here else native.query(name, sql)).to_arrow_table())
    except duckdb.Error as error:
        if short := too_little(error):
            raise InputError(short) from None
        raise VerificationError(
            f"DuckDB cannot read back what was written ({type(error).__name__}); nothing was published"
        ) from None
    assert isinstance(found, pl.DataFrame)
    return found


def _relation_of(rows: Any) -> Any:
    """Pickled rows as a relation on a new connection, because the original connection belongs to another process."""
    import duckdb

    return duckdb.connect().from_arrow(rows)


class _Relation(LazyTable):
    """A relation as a table; see ``Table``."""

    def _hashes(self) -> Callable[[Sequence[str]], Iterator[np.ndarray]]:
        """Hashes of rows in lots that fit in memory next to DuckDB, which reads the table once for each lot."""
        rows = self.rows if self.origin.records is None else self.origin.records
        lots = -(-8 * _HASHES * rows // _limit(self.native)) or 1

        def of(names: Sequence[str]) -> Iterator[np.ndarray]:
            numbered = self.native.project(f"{self._number(names, 0)} as {quoted('n')}")
            for lot in range(lots):
                some = numbered.filter(f"{quoted('n')} % {lots} = {lot}") if lots > 1 else numbered
                yield np.concatenate([batch["n"].to_numpy() for batch in batches(some, lambda _: None)])

        return of


def table_of(native: Any, origin: Origin = Origin()) -> LazyTable:
    """A relation as a table."""
    return _Relation(native, DUCKDB, origin)


def connect(scope: Scope, database: Path | None = None) -> Any:
    """A new connection, with a database file attached read-only as its default, or without one.

    It spills into a new folder that is removed when this process ends. Raises MissingDependencyError without the
    package, and InputError for a database that can't be opened.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.needed("duckdb", "the DuckDB engine", "duckdb") from None
    parent = Path(tempfile.gettempdir() if scope.temporary is None else scope.temporary)
    clear_stale(parent)
    spill = folder_next_to(parent / "spill")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    settings: dict[str, Any] = {
        "temp_directory": str(spill),
        "autoinstall_known_extensions": "false",
        "allow_community_extensions": "false",
        "produce_arrow_string_view": "true",  # the format of texts in Polars, so that none is copied
    }
    if scope.memory is not None:
        settings["memory_limit"] = f"{size(scope.memory) // 2}B"  # the other half is for this process
    if scope.threads is not None:
        settings["threads"] = scope.threads
    try:
        made = duckdb.connect(":memory:", config=settings)
        made.execute("set enable_progress_bar = false")  # in interactive use, the bar would be mixed with the output
        if database is not None:
            made.execute(f"attach {text(str(database))} as source (read_only)")
            made.execute("use source")
        return made
    except duckdb.Error as error:
        where = "DuckDB" if database is None else repr(database.name)
        raise InputError(f"{where} cannot be opened ({type(error).__name__})") from None


def relation(connection: Any, sql: str, name: str, *, own: bool = False) -> Any:
    """A query as a relation; InputError with DuckDB's message only if it is about the query and not about rows.

    own  shoal wrote the query over files, whose names the message may quote: those of folders are values
    """
    import duckdb

    try:
        found = connection.sql(sql)
    except duckdb.Error as error:
        kind = type(error).__name__
        reason = f": {str(error).strip().splitlines()[0]}" if kind in READABLE and not own else ""
        raise InputError(f"{name!r} cannot be read by DuckDB ({kind}){reason}") from None
    if found is None:
        raise InputError(f"{name!r}: the query gives no table; write one SELECT")
    return found


def text(value: str) -> str:
    """A string literal in SQL."""
    return quoted(value, "'")


def read(checked: CheckedFiles, scope: Scope) -> Any:
    """The parts as a relation on a new connection, or a query over them, which reads them as the view ``data``."""
    connection = connect(scope)
    sql = duckdb_sql(checked)
    if scope.query is not None:
        relation(connection, f"create view data as {sql}", checked.parts.name, own=True)
        # the count of records is comparable with the query's input, not with its result
        if checked.records is not None:
            counted = relation(connection, "select count(*) from data", checked.parts.name)
            refuse_other_count(checked.parts.name, _only(counted, checked.parts.name), checked.records)
        return relation(connection, scope.query, "the query")
    return relation(connection, sql, checked.parts.name, own=True)


def _only(counted: Any, name: str) -> int:
    import duckdb

    try:
        return int(counted.fetchall()[0][0])
    except duckdb.Error as error:
        raise InputError(f"{name!r} cannot be read by DuckDB ({type(error).__name__})") from None


def duckdb_sql(checked: CheckedFiles) -> str:
    """The query that reads the parts, with one call for all files that have the same options."""
    hive = f"hive_partitioning = {str(bool(checked.parts.keys)).lower()}"
    if checked.parts.keys:
        hive += ", hive_types_autocast = false"
    factors = {"s": "* 1000000", "ms": "* 1000", "us": "", "ns": "// 1000"}
    held = {name: f"to_microseconds({quoted(name)} {factors[unit]}) as " for name, unit in checked.durations.items()}
    columns = ", ".join(f"{held.get(name, '')}{quoted(name)}" for name in checked.columns)
    calls: dict[str, list[str]] = {}
    for i, source in enumerate(checked.parts.sources):
        name = text(re.sub(r"([*?\[])", r"[\1]", str(source.path.absolute())))
        options = hive if not checked.found else _csv_options(checked, i) + ", " + hive
        calls.setdefault(options, []).append(name)
    reader = "read_csv" if checked.found else "read_parquet"
    made = [f"select {columns} from {reader}([{', '.join(names)}], {options})" for options, names in calls.items()]
    return " union all ".join(made)


def _csv_options(checked: CheckedFiles, i: int) -> str:
    """The options with which DuckDB reads a checked CSV; none is detected."""
    found = checked.found[i]
    longest = max(*(f.longest + 2 for f in checked.found), 1 << 21)
    options = {
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"{text(n)}: 'VARCHAR'" for n in checked.names) + "}",
        "header": "true",
        "skip": str(found.leading),
        "delim": text(checked.separator or ","),
        "quote": text('"'),
        "escape": text('"'),
        "comment": "''",
        "nullstr": "''",
        "allow_quoted_nulls": "true",
        "strict_mode": "true",
        "null_padding": "false",
        "ignore_errors": "false",
        "encoding": text("utf-8" if checked.codec == "utf-8" else "latin-1"),
        "compression": text("gzip" if checked.parts.sources[i].packed else "none"),
        "max_line_size": str(longest),
        "buffer_size": str(max(1 << 25, 4 * longest)),
    }
    return ", ".join(f"{k} = {v}" for k, v in options.items())


_BATCH = 100_000
_KINDS = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "blob": "BLOB", "null": "VARCHAR"}
_WHOLE = 1 << 53
_POLARS = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "VARCHAR": pl.String(), "BLOB": pl.Binary()}


def open_database(path: str | Path, scope: Scope) -> Table:
    """A table of a database file.

    Raises PolicyError without ``table`` or ``query``, or for a table that doesn't exist, InputError if the file, or one
    of its columns, can't be read.
    """
    source = locate(path)
    made = _duckdb(source, scope) if database_kind(path) == "duckdb" else _sqlite(source, scope)
    return table_of(made, Origin(source.name, None, FilesOfTable((source,), (), source.name)))


def _duckdb(source: Source, scope: Scope) -> Any:
    connection = connect(scope, source.path)
    if scope.query is not None:
        return relation(connection, scope.query, "the query")
    asked = "select table_name from information_schema.tables where table_catalog = 'source'"
    held = [name for (name,) in connection.execute(asked).fetchall()]
    _refuse_absent(source, scope.table, held)
    return relation(connection, f"from {quoted(str(scope.table))}", source.name)


def _refuse_absent(source: Source, table: str | None, held: Sequence[str]) -> None:
    """PolicyError with the names of the tables of a database, if none or another one is named."""
    if table is None:
        shown = ", ".join(map(repr, held[:20])) + (" ..." if held[20:] else "")
        raise PolicyError(
            f"{source.name!r} is a database: say which table with ⟨table=...⟩, or give a ⟨query=...⟩; it has "
            f"{shown or 'no table'}"
        )
    if table not in held:
        raise PolicyError.unknown("table", table, held)


def _sqlite(source: Source, scope: Scope) -> Any:
    """Copy a SQLite table in batches into a DuckDB table, which can spill, because SQLite's types aren't reliable.

    A column has integers, numbers, text, or bytes if all its values have this type. A column of several types can only
    be left out.
    """
    try:
        with sqlite3.connect(f"{source.path.absolute().as_uri()}?mode=ro", uri=True) as opened:
            opened.execute("begin")  # both reads see the same state of the file
            held = [name for (name,) in opened.execute("select name from sqlite_master where type in ('table','view')")]
            if scope.query is None:
                _refuse_absent(source, scope.table, held)
            asked = (scope.query or f"select * from {quoted(str(scope.table))}").strip().rstrip(";")
            names = [column[0] for column in opened.execute(f"select * from ({asked}) limit 0").description]
            try:
                return _copied(opened, asked, names, connect(scope), source.name)
            except (sqlite3.Error, UnicodeDecodeError) as error:  # the message may quote rows
                raise _unread(opened, asked, names, error, source.name) from None
    except sqlite3.Error as error:
        raise InputError(f"{source.name!r} cannot be read as SQLite ({type(error).__name__}): {error}") from None


def _unread(opened: sqlite3.Connection, asked: str, names: Sequence[str], error: Exception, name: str) -> InputError:
    """The error for rows that SQLite can't give, with the column if its texts are the reason."""
    opened.text_factory = bytes
    for column in names:
        try:
            texts = (text for (text,) in opened.execute(f"select {quoted(column)} from ({asked})"))
            for text in texts:
                if isinstance(text, bytes):
                    text.decode()
        except UnicodeDecodeError:
            return InputError(
                f"{name!r}: column {column!r} holds text that is not in UTF-8; convert it, or leave the column out "
                "with ⟨query=...⟩"
            )
        except sqlite3.Error:
            continue
    return InputError(f"{name!r} cannot be read as SQLite ({type(error).__name__})")


def _copied(opened: sqlite3.Connection, asked: str, names: Sequence[str], connection: Any, name: str) -> Any:
    """The result of a query to SQLite as a relation.

    A column of several types becomes a union without values, which every use refuses by name (``_OPAQUE``).
    """
    kinds: list[str] = []
    for i, column in enumerate(names):
        if column in names[:i]:
            raise InputError(f"{name!r}: two columns are named {column!r}; rename one with AS")
        sql = f"select distinct typeof({quoted(column)}) from ({asked})"
        found = {kind for (kind,) in opened.execute(sql)} - {"null"}
        if found == {"integer", "real"}:  # numbers hold integers up to 2^53 as they are
            beyond = f"typeof({quoted(column)}) = 'integer' and {quoted(column)} not between -{_WHOLE} and {_WHOLE}"
            held = opened.execute(f"select exists(select 1 from ({asked}) where {beyond})").fetchone()
            found = found if held[0] else {"real"}
        members = ", ".join(f"{kind} {_KINDS[kind]}" for kind in sorted(found))
        kinds.append(f"UNION({members})" if len(found) > 1 else _KINDS[next(iter(found), "null")])
    columns = ", ".join(f"{quoted(n)} {kind}" for n, kind in zip(names, kinds, strict=True))
    connection.execute(f"create temp table data ({columns})")
    schema = {n: _POLARS.get(kind, pl.Null()) for n, kind in zip(names, kinds, strict=True)}
    mixed = [i for i, kind in enumerate(kinds) if kind not in _POLARS]
    cursor = opened.execute(asked)
    while rows := cursor.fetchmany(_BATCH):
        if mixed:
            rows = [tuple(None if i in mixed else value for i, value in enumerate(row)) for row in rows]
        arrow = pl.DataFrame(rows, schema=schema, orient="row", strict=False).to_arrow()
        connection.register("batch", arrow)
        connection.execute("insert into data select * from batch")
        connection.unregister("batch")
    return relation(connection, "from data", name)
