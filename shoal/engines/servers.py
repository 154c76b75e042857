"""Database servers by their addresses: PostgreSQL, MySQL, and MariaDB. Tables are read there, and written atomically.

An address contains no password, because the list of processes would show it. The password is given by the means of
PostgreSQL (PGPASSWORD, ~/.pgpass, services) or MySQL (MYSQL_PWD, ~/.my.cnf). No message contains the server's message,
which may quote rows, or the user's name.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import polars as pl

from shoal.engines import ibis as tables
from shoal.engines.order import quoted
from shoal.engines.source import Scope
from shoal.engines.table import Origin, Table
from shoal.errors import ExistsError, InputError, MissingDependencyError, PolicyError, ShoalError
from shoal.paths import hides_password, scheme_of, without_secrets

POSTGRES, MYSQL = ("postgres", "postgresql"), ("mysql", "mariadb")
_STAGE = "__shoal_"  # prefix of the name of an unfinished table
_MARK = "shoal release"  # start of a release's comment in MySQL, whose comments are short
_ROWS = 5_000  # rows in each insert
_DENIED = ("permission denied", "access denied", "command denied", "read-only", "read only")
_UNKNOWN = ("authentication failed", "access denied", "no password supplied", "does not exist", "unknown database")


class Server(Protocol):
    """A connection to one server.

    connection  the Ibis connection
    shown       the address without secrets
    """

    connection: Any
    shown: str

    def kind(self, column: pl.DataType) -> str | None:
        """The type of a column on the server; None if there is none."""
        ...

    def misnamed(self, column: str) -> str | None:
        """The reason why a column can't have this name; None if it can."""
        ...

    def comment(self, table: str) -> str | None:
        """The comment on a table; None if there is no such table."""
        ...

    def stage(self, columns: Mapping[str, str]) -> str:
        """Create a new, unfinished table, and return its name."""
        ...

    def insert(self, stage: str, frame: pl.DataFrame) -> None:
        """Add rows to the unfinished table."""
        ...

    def certify(self, stage: str, certificate: str) -> None:
        """Set the comment of the unfinished table."""
        ...

    def put_in_place(self, stage: str, table: str, replace: bool) -> None:
        """Give the table its name in one step, and replace an existing table of that name if this is allowed."""
        ...

    def undo(self) -> None:
        """Remove the unfinished table."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class _Postgres:
    """A PostgreSQL server; see ``Server``. All steps are one transaction."""

    def __init__(self, address: str) -> None:
        import psycopg

        self.shown = without_secrets(address)
        rest = address.partition("://")[2]
        self.own = psycopg.connect(f"postgresql://{rest}", connect_timeout=20, application_name="shoal")
        self.own.autocommit = True
        self.connection = _ibis().postgres.from_connection(self.own)

    def kind(self, column: pl.DataType) -> str | None:
        if isinstance(column, pl.Datetime):
            return "timestamptz" if column.time_zone else "timestamp"
        return _kind(column, {"text": "text", "double": "double precision", "truth": "boolean"})

    def misnamed(self, column: str) -> str | None:
        return "is longer than 63 bytes" if len(column.encode()) > 63 else None

    def comment(self, table: str) -> str | None:
        asked = "select obj_description(c.oid) from pg_class c where c.oid = to_regclass(%s)"
        found = self.own.execute(asked, (quoted(table),)).fetchone()
        return None if found is None else found[0] or ""

    def stage(self, columns: Mapping[str, str]) -> str:
        name = f"{_STAGE}{secrets.token_hex(8)}"
        self.own.execute("begin")
        self.own.execute(f"create table {quoted(name)} ({_columns(columns)})")  # type: ignore[call-overload]
        return name

    def insert(self, stage: str, frame: pl.DataFrame) -> None:
        with self.own.cursor() as cursor, cursor.copy(f"copy {quoted(stage)} from stdin") as copy:  # type: ignore[call-overload]
            for row in frame.iter_rows():
                copy.write_row(row)

    def certify(self, stage: str, certificate: str) -> None:
        from psycopg import sql

        self.own.execute(sql.SQL("comment on table {} is {}").format(sql.Identifier(stage), sql.Literal(certificate)))

    def put_in_place(self, stage: str, table: str, replace: bool) -> None:
        if replace:
            self.own.execute(f"drop table if exists {quoted(table)}")  # type: ignore[call-overload]
        self.own.execute(f"alter table {quoted(stage)} rename to {quoted(table)}")  # type: ignore[call-overload]
        self.own.execute("commit")

    def undo(self) -> None:
        with contextlib.suppress(Exception):
            self.own.rollback()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.own.close()


class _MySQL:
    """A MySQL server; see ``Server``. Creating a table can't be in a transaction, so it gets its name when it is
    finished.

    The next write removes what a killed process left; its lock ended with its connection.
    """

    def __init__(self, address: str) -> None:
        import MySQLdb

        self.shown, self.held = without_secrets(address), ""
        found = urlsplit(address)
        if found.query:
            raise InputError(f"{self.shown!r}: options of a MySQL connection belong in ~/.my.cnf, not in the address")
        given: dict[str, Any] = {"host": found.hostname or "127.0.0.1", "port": found.port or 3306}
        given |= {"user": unquote(found.username)} if found.username else {}
        given |= {"password": os.environ["MYSQL_PWD"]} if "MYSQL_PWD" in os.environ else {}
        config = Path("~/.my.cnf").expanduser()
        given |= {"read_default_file": str(config)} if config.is_file() else {}
        given |= {"database": unquote(found.path.strip("/")), "charset": "utf8mb4", "connect_timeout": 20}
        self.again: Callable[[], Any] = partial(MySQLdb.connect, **given, autocommit=True)
        self.own = self.again()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a named time zone, which few servers have
            self.connection = _ibis().mysql.from_connection(self.own)
        _ask(self.own, "set time_zone = '+00:00'")

    def kind(self, column: pl.DataType) -> str | None:
        if isinstance(column, pl.Datetime):
            return "datetime(6)"
        return _kind(column, {"text": "longtext", "double": "double", "truth": "boolean"})

    def misnamed(self, column: str) -> str | None:
        if len(column) > 64:
            return "is longer than 64 characters"
        if any(c > "\uffff" for c in column):
            return "has a character that MySQL takes in no name"
        return "ends with a space" if column.endswith(" ") else None

    def comment(self, table: str) -> str | None:
        asked = (
            "select table_comment from information_schema.tables where table_schema = database() and table_name = %s"
        )
        found = _ask(self.own, asked, (table,))
        return found[0][0] if found else None

    def stage(self, columns: Mapping[str, str]) -> str:
        asked = (
            "select table_name from information_schema.tables where table_schema = database() and table_name like %s"
        )
        for (left,) in _ask(self.own, asked, (_STAGE.replace("_", r"\_") + "%",)):
            if _ask(self.own, "select is_free_lock(%s)", (left,)) == ((1,),):
                _ask(self.own, f"drop table if exists {quoted(left, '`')}")
        name = f"{_STAGE}{secrets.token_hex(8)}"
        _ask(self.own, "select get_lock(%s, 0)", (name,))
        self.held = name
        made = f"create table {quoted(name, '`')} ({_columns(columns, '`')}) character set utf8mb4 collate utf8mb4_bin"
        _ask(self.own, made)
        return name

    def insert(self, stage: str, frame: pl.DataFrame) -> None:
        marks = ", ".join(["%s"] * frame.width)
        with contextlib.closing(self.own.cursor()) as cursor:
            cursor.executemany(f"insert into {quoted(stage, '`')} values ({marks})", frame.rows())

    def certify(self, stage: str, certificate: str) -> None:
        import hashlib

        comment = f"{_MARK}; its certificate has the SHA-256 {hashlib.sha256(certificate.encode()).hexdigest()}"
        _ask(self.own, f"alter table {quoted(stage, '`')} comment = %s", (comment,))

    def put_in_place(self, stage: str, table: str, replace: bool) -> None:
        new, old = quoted(stage, "`"), quoted(table, "`")
        if replace and self.comment(table) is not None:
            aside = f"{stage}_old"[-64:]
            _ask(self.own, f"rename table {old} to {quoted(aside, '`')}, {new} to {old}")
            self.held = aside  # ``undo`` removes it: the release has its name, even if removing the old table fails
        else:
            _ask(self.own, f"rename table {new} to {old}")
            self.held = ""

    def undo(self) -> None:
        """Drop the unfinished table, if needed on a new connection, because its rows would stay on the server."""
        for connect in (lambda: self.own, self.again):
            with contextlib.suppress(Exception):
                if self.held:
                    _ask(connect(), f"drop table if exists {quoted(self.held, '`')}")
                    self.held = ""

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.own.close()


def _ask(connection: Any, sql: str, given: Any = None) -> Any:
    with contextlib.closing(connection.cursor()) as cursor:
        cursor.execute(sql, given)
        return cursor.fetchall()


def _columns(columns: Mapping[str, str], mark: str = '"') -> str:
    return ", ".join(f"{quoted(name, mark)} {kind}" for name, kind in columns.items())


def _kind(column: pl.DataType, words: Mapping[str, str]) -> str | None:
    if column.is_integer():
        return "numeric(20)" if column == pl.UInt64 else "bigint"
    if isinstance(column, pl.Decimal):
        return f"numeric({column.precision or 38}, {column.scale})"
    if column.is_float():
        return words["double"]
    plain = {pl.Boolean: words["truth"], pl.Date: "date", pl.Time: "time(6)"}
    return words["text"] if column in (pl.String, pl.Categorical, pl.Enum) else plain.get(type(column))


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise MissingDependencyError.needed("ibis-framework", "reading a server of databases", "ibis") from None
    return ibis


def refuse_address(address: str) -> None:
    """InputError for the address of an unsupported server, and for one that contains a password."""
    shown, scheme = without_secrets(address), scheme_of(address)
    if scheme not in POSTGRES + MYSQL:
        raise InputError(
            f"{shown!r} is a server of databases that has no address here; in Python pass a table of Ibis, or "
            "save it as Parquet"
        )
    if hides_password(address):
        raise InputError(
            f"{shown!r} is a server of databases, and its address holds a password, which all users of a machine can "
            "read in the list of processes: take it out, and "
            + ("set PGPASSWORD, or write ~/.pgpass" if scheme in POSTGRES else "set MYSQL_PWD, or write ~/.my.cnf")
        )


def connect(address: str) -> Server:
    """A connection to the server at an address; InputError if it can't be reached."""
    refuse_address(address)
    _ibis()
    shown, scheme = without_secrets(address), scheme_of(address)
    try:
        return _Postgres(address) if scheme in POSTGRES else _MySQL(address)
    except ImportError:
        package = "psycopg" if scheme in POSTGRES else "mysqlclient"
        raise MissingDependencyError.needed(package, "reading this server", "ibis") from None
    except ShoalError:
        raise
    except Exception as error:
        message = str(error).lower()
        if any(word in message for word in _UNKNOWN):
            raise InputError(f"{shown!r} refuses this user, password or database ({type(error).__name__})") from None
        raise InputError(f"{shown!r} cannot be reached ({type(error).__name__})") from None


@contextlib.contextmanager
def in_a_sentence(server: Server) -> Iterator[None]:
    """Convert a server's errors to messages that quote nothing."""
    try:
        yield
    except (ShoalError, OSError):
        raise
    except Exception as error:
        if not type(error).__module__.startswith(("psycopg", "MySQLdb", "ibis")):
            raise
        message = str(error).lower()
        if any(word in message for word in _DENIED):
            raise InputError(f"{server.shown!r}: this user may not do that there ({type(error).__name__})") from None
        raise InputError(
            f"{server.shown!r} does not take or give the table ({type(error).__name__}); nothing is left there: see "
            "its own log"
        ) from None


def open_server(address: str, scope: Scope) -> Table:
    """A table or a query of a server; PolicyError without ``table`` or ``query``, or for a table that doesn't exist."""
    refuse_address(address)
    if scope.table is None and scope.query is None:
        shown = without_secrets(address)
        raise PolicyError(
            f"{shown!r} is a server of databases: say which table with ⟨table=...⟩, or give a ⟨query=...⟩; what takes "
            "neither reads the table saved as Parquet"
        )
    server = connect(address)
    with in_a_sentence(server):
        return tables.table_of(named(server, scope), Origin(server.shown))


def named(server: Server, scope: Scope) -> Any:
    """The table of the scope as an Ibis table."""
    if scope.query is not None:
        return server.connection.sql(scope.query)
    name = str(scope.table)
    held = server.connection.list_tables()
    if name in held:
        return server.connection.table(name)
    folder, _, own = name.partition(".")
    if own:
        held = server.connection.list_tables(database=folder)
        if own in held:
            return server.connection.table(own, database=folder)
    raise PolicyError.unknown("table", name, held)


def refuse_taken(server: Server, table: str, overwrite: bool) -> bool:
    """Whether a release with this name exists and may be replaced; ExistsError or InputError if it may not."""
    if len(table) > 60 or not table or "\0" in table or table.startswith(_STAGE):
        raise PolicyError(f"⟨output_table={table!r}⟩: give a name of 1 to 60 letters")
    found = server.comment(table)
    if found is None:
        return False
    if not (found.startswith(_MARK) or ('"kind": "table"' in found and '"seal"' in found)):
        raise InputError(f"{server.shown!r} has a table {table!r} that is no release of shoal; name another")
    if not overwrite:
        raise ExistsError(f"the table {table!r} exists already; say ⟨overwrite=True⟩ to replace it, or name another")
    return True


def columns_of(server: Server, frame: pl.DataFrame) -> dict[str, str]:
    """The column types of a table like a frame; InputError for a name or type that the server doesn't support."""
    made, seen = {}, set[str]()
    for name, kind in frame.schema.items():
        why = "has a character that no name has" if "\0" in name else server.misnamed(name)
        if why is None and name.casefold() in seen:
            why = "differs from another one by case alone"
        if why is not None:
            raise InputError(f"column {name!r} has a name that {why}, so the server holds no such column; rename it")
        seen.add(name.casefold())
        own = server.kind(kind)
        if own is None:
            raise InputError(
                f"column {name!r} is of type {kind}, which a table of a server does not hold; cast it to text"
            )
        made[name] = own
    return made


def send(server: Server, stage: str, frames: Iterator[pl.DataFrame], tell: Callable[[int], None]) -> None:
    """Send all rows to an unfinished table."""
    done = 0
    for frame in frames:
        plain = frame.with_columns(pl.col(pl.Datetime).dt.convert_time_zone("UTC")) if _zoned(frame) else frame
        for piece in plain.iter_slices(_ROWS):
            server.insert(stage, piece)
            done += piece.height
            tell(done)


def _zoned(frame: pl.DataFrame) -> bool:
    return any(isinstance(kind, pl.Datetime) and kind.time_zone for kind in frame.dtypes)


def held_there(server: Server, name: str, folder: str | None = None) -> pl.DataFrame:
    """The rows of a server's table in memory, sorted by their contents, because a table has no order."""
    native = server.connection.table(name) if folder is None else server.connection.table(name, database=folder)
    frame = tables.table_of(native).polars(native.columns)
    return frame.sort(frame.columns, nulls_last=True, maintain_order=True)
