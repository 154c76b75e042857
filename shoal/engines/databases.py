"""A table or a query of a DuckDB or SQLite file, read through DuckDB; the file is opened for reading alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines.duck import connect, quoted, relation, table_of
from shoal.engines.parts import Parts
from shoal.engines.scope import Scope
from shoal.engines.source import Source, database_kind, locate
from shoal.engines.table import Origin, Table
from shoal.errors import InputError, PolicyError

_BATCH = 100_000
_KINDS = {"integer": "BIGINT", "real": "DOUBLE", "text": "VARCHAR", "null": "VARCHAR"}


def open_database(path: str | Path, scope: Scope) -> Table:
    """A table of a database file.

    Raises PolicyError without ``table`` or ``query``, or for a table that is not there, InputError where the file, or
    a column of it, cannot be read.
    """
    source = locate(path)
    if scope.table is None and scope.query is None:
        raise PolicyError(f"{source.name!r} is a database: say which table with table=..., or give a query=...")
    made = _duckdb(source, scope) if database_kind(path) == "duckdb" else _sqlite(source, scope)
    return table_of(made, Origin(source.name, None, Parts((source,), (), source.name)))


def _duckdb(source: Source, scope: Scope) -> Any:
    connection = connect(scope, source.path)
    if scope.query is not None:
        return relation(connection, scope.query, "the query")
    asked = "select table_name from information_schema.tables where table_catalog = 'source'"
    held = [name for (name,) in connection.execute(asked).fetchall()]
    if scope.table not in held:
        raise PolicyError.unknown("table", str(scope.table), held)
    return relation(connection, f"from {quoted(str(scope.table))}", source.name)


def _sqlite(source: Source, scope: Scope) -> Any:
    """Copied batch by batch into a table that spills as any other: SQLite gives no types to rely on.

    A column is of whole numbers, numbers or text when all its values are; a column of several kinds is refused.
    """
    try:
        with sqlite3.connect(f"{source.path.absolute().as_uri()}?mode=ro", uri=True) as opened:
            opened.execute("begin")  # one state of the file for both looks
            held = [name for (name,) in opened.execute("select name from sqlite_master where type in ('table','view')")]
            if scope.query is None and scope.table not in held:
                raise PolicyError.unknown("table", str(scope.table), held)
            asked = scope.query or f"select * from {quoted(str(scope.table))}"
            return _copied(opened, asked.strip().rstrip(";"), connect(scope), source.name)
    except sqlite3.Error as error:
        said = "" if isinstance(error, sqlite3.DataError) else f": {error}"
        raise InputError(f"{source.name!r} cannot be read as SQLite ({type(error).__name__}){said}") from None


def _copied(opened: sqlite3.Connection, asked: str, connection: Any, name: str) -> Any:
    names = [column[0] for column in opened.execute(f"select * from ({asked}) limit 0").description]
    kinds: list[str] = []
    for i, column in enumerate(names):
        if column in names[:i]:
            raise InputError(f"{name!r}: two columns are named {column!r}; rename one with AS")
        sql = f"select distinct typeof({quoted(column)}) from ({asked})"
        found = {kind for (kind,) in opened.execute(sql)} - {"null"}
        if found == {"integer", "real"}:
            found = {"real"}
        if len(found) > 1 or "blob" in found:
            raise InputError(
                f"column {column!r} holds {' and '.join(sorted(found))}; cast it to one kind in a query, "
                "CAST(... AS TEXT)"
            )
        kinds.append(_KINDS[next(iter(found), "null")])
    columns = ", ".join(f"{quoted(n)} {kind}" for n, kind in zip(names, kinds, strict=True))
    connection.execute(f"create temp table data ({columns})")
    types = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "VARCHAR": pl.String()}
    schema = {n: types[kind] for n, kind in zip(names, kinds, strict=True)}
    cursor = opened.execute(asked)
    while rows := cursor.fetchmany(_BATCH):
        arrow = pl.DataFrame(rows, schema=schema, orient="row", strict=False).to_arrow()
        connection.register("batch", arrow)
        connection.execute("insert into data select * from batch")
        connection.unregister("batch")
    return relation(connection, "from data", name)
