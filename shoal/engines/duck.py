"""DuckDB opened for one table: within the memory it was given, spilling where only this user can read."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from shoal.engines.atomic import clear_stale, folder_beside
from shoal.engines.scope import Scope, size
from shoal.errors import InputError, MissingDependencyError

READABLE = ("BinderException", "CatalogException", "ParserException", "SyntaxException")


def connect(scope: Scope, database: Path | None = None) -> Any:
    """A connection of its own, with a database file attached for reading alone as its default, or with none.

    It spills into a new folder that ends with this process.  Raises MissingDependencyError without the package, and
    InputError for a database that cannot be opened.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingDependencyError.needed("duckdb", "the DuckDB engine", "duckdb") from None
    parent = Path(tempfile.gettempdir() if scope.temporary is None else scope.temporary)
    clear_stale(parent)
    spill = folder_beside(parent / "spill")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    settings: dict[str, Any] = {
        "temp_directory": str(spill),
        "autoinstall_known_extensions": "false",
        "allow_community_extensions": "false",
    }
    if scope.memory is not None:
        settings["memory_limit"] = f"{size(scope.memory)}B"
    if scope.threads is not None:
        settings["threads"] = scope.threads
    try:
        made = duckdb.connect(":memory:", config=settings)
        if database is not None:
            made.execute(f"attach {text(str(database))} as source (read_only)")
            made.execute("use source")
        return made
    except duckdb.Error as error:
        where = "DuckDB" if database is None else repr(database.name)
        raise InputError(f"{where} cannot be opened ({type(error).__name__})") from None


def relation(connection: Any, sql: str, name: str) -> Any:
    """A query as a relation; InputError with the engine's words only where they are about the query, not about rows."""
    import duckdb

    try:
        found = connection.sql(sql)
    except duckdb.Error as error:
        kind = type(error).__name__
        said = f": {str(error).strip().splitlines()[0]}" if kind in READABLE else ""
        raise InputError(f"{name!r} cannot be read by DuckDB ({kind}){said}") from None
    if found is None:
        raise InputError(f"{name!r}: the query gives no table; write one SELECT")
    return found


def text(value: str) -> str:
    """A literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """An identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'
