"""Whatever a user hands over, as a table with the two operations an engine needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.engines import frames
from shoal.engines.elsewhere import ENGINES, open_file
from shoal.engines.frames import FrameTable
from shoal.engines.parts import is_several
from shoal.engines.scope import Scope
from shoal.engines.source import database_kind, is_remote, is_server, without_secrets
from shoal.engines.table import Origin, Table, require
from shoal.errors import InputError, PolicyError


def open_table(
    data: Any,
    engine: str | None = None,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    coded: Sequence[str] = (),
    needed: Sequence[str] = (),
    scope: Scope | None = None,
) -> Table:
    """A table from a path or a frame.

    data    path of a CSV, Parquet or Excel file, or a pandas / Polars / PyArrow / DuckDB / Spark / Ibis frame; a folder
            or a list of Parquet or CSV files, or a DuckDB or SQLite file
    engine  for a path: "polars" (in memory, the default of a file), "duckdb" (the default of all else) or "spark"
    scope   what the engine may use, and what of the source it reads

    coded   columns that will be grouped; they are read as categories where the file is text
    needed  columns that a file must have

    Raises InputError when the data are none of these, PolicyError for a column that is not there, with the separator
    that would give it.
    """
    if engine not in (None, "polars", *ENGINES):
        raise PolicyError.unknown("engine", str(engine), ["polars", *ENGINES])
    scope = scope or Scope()
    if isinstance(data, (str, Path)) or is_several(data):
        if is_server(data):
            return _served(str(data), engine, scope, needed)
        if is_remote(data) and engine != "spark":
            raise elsewhere(data)
        engine = engine_of(data, engine, scope)
        scope.check(engine)
        table = _opened(data, engine, separator, encoding, coded, scope)
        _require(table, data, separator, needed)
        return table
    scope.check(None)
    module = type(data).__module__.split(".")[0]
    for known in ENGINES.values():
        if module in known.frames:
            return known.opened().table_of(data, Origin())
    try:
        return frames.table_of(data)
    except TypeError:
        raise InputError(
            f"a table of type {type(data).__name__} is not known; hand over a path, or a pandas, Polars, PyArrow, "
            "DuckDB, Spark or Ibis frame"
        ) from None


def _served(address: str, engine: str | None, scope: Scope, needed: Sequence[str]) -> Table:
    """A table of a server of databases, which Ibis alone reads."""
    from shoal.engines.servers import open_server

    if engine not in (None, "ibis"):
        raise InputError(f"{without_secrets(address)!r} is a server of databases, read with engine='ibis' or none")
    scope.check("ibis")
    table = open_server(address, scope)
    require(table.columns, needed)
    return table


def elsewhere(address: str) -> InputError:
    """The refusal of an address that is read by Spark alone, or by nobody here; it may hold a password."""
    shown = without_secrets(address)
    if is_server(address):
        return InputError(
            f"{shown!r} is a server of databases: shoal anonymize reads its tables, and writes them; for others save "
            "the table as Parquet"
        )
    return InputError(f"{shown!r} is no place on this machine; read it with engine='spark'")


def engine_of(data: Any, engine: str | None, scope: Scope) -> str:
    """The engine that reads a path: the one asked for, else DuckDB for what is more than one file of one table."""
    whole = not is_several(data, scope.glob) and database_kind(data) is None
    if engine == "polars" and not whole:
        raise InputError("a folder, several files or a database is read with engine='duckdb'; Polars reads one file")
    wanted = scope.memory is not None or scope.threads is not None or scope.temporary is not None
    if engine is None:
        return "polars" if whole and not wanted and scope.master is None and scope.query is None else "duckdb"
    return engine


def _opened(
    path: Any, engine: str, separator: str | None, encoding: str | None, coded: Sequence[str], scope: Scope
) -> Table:
    from shoal.engines.files import one_character, read_table
    from shoal.engines.repeated import read_repeated
    from shoal.engines.source import kind_of, locate

    if is_remote(path):
        from shoal.engines import spark

        return spark.table_of(spark.read_remote(path, scope), Origin(without_secrets(path)))
    if engine == "polars":
        text = kind_of(path) == "csv"
        held = read_repeated(locate(path), one_character(separator), encoding, coded) if text and coded else None
        if held is not None:
            return held
        frame = read_table(path, separator=separator, encoding=encoding, coded=coded)
        return FrameTable(frame, coded=coded if text else ())
    if database_kind(path) is not None:
        from shoal.engines.databases import open_database

        if engine != "duckdb":
            raise InputError("a DuckDB or SQLite file is read with engine='duckdb'")
        return open_database(path, scope)
    return open_file(path, engine, separator=separator, encoding=encoding, scope=scope)


def _require(table: Table, path: Any, separator: str | None, needed: Sequence[str]) -> None:
    """PolicyError for the first column that is not there; it names the separator that would give it."""
    from shoal.engines.csv import one_character, other_separator
    from shoal.engines.files import separator_of
    from shoal.engines.source import locate

    absent = [name for name in needed if name not in table.columns]
    if not absent:
        return
    single = isinstance(path, (str, Path)) and not is_remote(path) and Path(path).is_file()
    used = one_character(separator) or (separator_of(path) if single and database_kind(path) is None else None)
    other = None if used is None or not single else other_separator(locate(path), used, needed)
    refusal = PolicyError.unknown("column", absent[0], table.columns)
    if other is None:
        raise refusal
    raise PolicyError(f"{refusal}; the separator {other!r} instead of {used!r} would give it")
