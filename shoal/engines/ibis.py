"""Tables of Ibis: rows stay in their database, and only cells are fetched.

Ibis writes the SQL of each database. It has no expression for a hash of a text, so the hash is called by its name in
the database (``_words``). Some databases treat different texts as equal, such as MySQL with upper and lower case.
There, texts are compared by their bytes.
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, reduce
from importlib import import_module
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from shoal.engines.duck import answered
from shoal.engines.lazy import Dialect, LazyTable, signed
from shoal.engines.order import DIGITS, PARTS, WHOLE, LatePlacement
from shoal.engines.source import Scope, too_little
from shoal.engines.store import slices
from shoal.engines.table import CheckedFiles, Origin, SingledOut, StoredFrame, Workers
from shoal.engines.unassigned import singled_elsewhere
from shoal.errors import InputError, ShoalError

BATCH = 100_000
_INSERTED = 10_000  # rows in each insert
_ARGUMENTS = 50  # arguments of a function; PostgreSQL allows at most 100
_DIGITS = 38  # maximum number of decimal digits
_UNITS = ("s", "ms", "us", "ns")  # of intervals that narwhals knows
_EPOCH = 62_167_219_200  # seconds from the year 0 to 1970, as MySQL counts them
# by their number or name in the answers of the database: types that Ibis confuses with others
_FIELDS: dict[str, dict[Any, str]] = {
    "mysql": {11: "time", 13: "year", 16: "bit"}, "postgres": {1266: "timetz"},
    "duckdb": {"TIME WITH TIME ZONE": "timetz"},
}  # fmt: skip
_WHOLE_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint")  # types of MySQL
_UNREADABLE = ("DataError", "ArrowInvalid", "ArrowTypeError", "ComputeError", "FeatureNotSupported", "ValueError",
               "ModuleNotFoundError")  # fmt: skip
_KNOWN = ("boolean", "integer", "floating", "decimal", "string", "date", "time", "timestamp", "binary")


class Exact(NamedTuple):
    """A form of texts in which different texts differ: expressions for it and for the text, and a reader in Polars."""

    form: Callable[[Any], Any]
    text: Callable[[Any], Any]
    read: Callable[[pl.Series], pl.Series]


class Words(NamedTuple):
    """How a database hashes a text.

    number  a number of at least 60 bits, or a text of this length
    digest  SHA-256 in hexadecimal, of the text in UTF-8
    exact   how texts are compared, if the database treats different ones as equal (case, accents, trailing blanks)
    """

    number: Callable[[Any], Any]
    digest: Callable[[Any], Any]
    exact: Exact | None = None


def _function(name: str, gives: str, *takes: str) -> Callable[..., Any]:
    """A function of the database as an Ibis function. Ibis is imported at the first call."""
    return lambda *given: _builtin(name, gives, *takes)(*given)


@cache
def _builtin(name: str, gives: str, *takes: str) -> Callable[..., Any]:
    import ibis

    function: Any = lambda *_: None  # noqa: E731  (Ibis reads its name and its types, and never calls it)
    function.__name__ = function.__qualname__ = name
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(f"_{i}", kind) for i in range(len(takes))])
    signature = (takes, gives)
    return ibis.udf.scalar.builtin(function, name=name, signature=signature)  # type: ignore[no-any-return]


def _joined(texts: Sequence[Any]) -> Any:
    """The concatenation of texts, none missing, in calls with few enough arguments for every database."""
    while len(texts) > 1:
        made = []
        for at in range(0, len(texts), _ARGUMENTS):
            few = texts[at : at + _ARGUMENTS]
            made.append(few[0] if len(few) == 1 else _function("concat", "string", *["string"] * len(few))(*few))
        texts = made
    return texts[0]


def _left(text: Any, digits: int) -> Any:
    """The first digits of a text, in SQL Server."""
    return _function("left", "string", "string", "int32")(text, digits)


def _first(text: Any, digits: int) -> Any:
    """The first digits of a text, in other databases."""
    return _function("substr", "string", "string", "int32", "int32")(text, 1, digits)


def _sha2(text: Any) -> Any:
    return _function("sha2", "string", "string", "int32")(text, 256)


def _as_text(text: Any) -> Any:
    """A text of MySQL in the connection's character set, UTF-8, whatever its column's set is; the label of an enum."""
    from ibis.expr.operations import Cast

    return Cast(text, "string").to_expr()  # Ibis would omit text.cast("string")


def _decimal(digits: Any) -> Any:
    return _function("conv", "string", "string", "int32", "int32")(digits, 16, 10)


_HEX = Exact(
    lambda text: _function("hex", "string", "string")(_as_text(text)),
    lambda form: _function("unhex", "binary", "string")(form).cast("string"),
    lambda form: form.str.decode("hex").cast(pl.String),
)


@cache
def _words() -> dict[str, Words]:
    """How each database hashes, by Ibis's name for it. A function, so that Ibis is imported only for its own tables."""
    return {
        "duckdb": Words(_function("hash", "uint64", "string"), _function("sha256", "string", "string")),
        "postgres": Words(
            lambda text: _function("hashtextextended", "int64", "string", "int64")(text, 0),
            lambda text: _function("encode", "string", "binary", "string")(
                _function("sha256", "binary", "binary")(
                    _function("convert_to", "binary", "string", "string")(text, "UTF8")
                ),
                "hex",
            ),
        ),
        "mysql": Words(
            lambda text: _decimal(_first(_sha2(text), 15)).cast("int64"),
            _sha2,
            _HEX,
        ),
        "bigquery": Words(
            _function("farm_fingerprint", "int64", "string"),
            lambda text: _function("to_hex", "string", "binary")(_function("sha256", "binary", "string")(text)),
        ),
        "snowflake": Words(_function("hash", "int64", "string"), _sha2),
        "trino": Words(
            lambda text: _trino("xxhash64", text),
            lambda text: _trino("sha256", text).lower(),
        ),
        "mssql": Words(
            lambda text: _left(text.hexdigest("sha256"), DIGITS),
            lambda text: text.hexdigest("sha256"),
        ),
    }


def _trino(name: str, text: Any) -> Any:
    hashed = _function(name, "binary", "binary")(_function("to_utf8", "binary", "string")(text))
    return _function("to_hex", "string", "binary")(hashed)


class _Ibis:
    """The dialect of a database, by Ibis's name for it; see ``Dialect``. Expressions take a table."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.name = f"Ibis ({backend})"
        self.words = _words()[backend]

    def number(self, first: int | str, columns: Mapping[str, Any]) -> Any:
        def made(table: Any) -> Any:
            import ibis

            begin = ibis.literal(str(first)) if isinstance(first, int) else table[first].cast("string")
            return self.words.number(_joined([begin, ibis.literal(":"), *self._fields(table, columns, whole=True)]))

        return made

    def placement_hash(self, salt: str, columns: Mapping[str, Any]) -> Any:
        cut = _left if self.backend == "mssql" else _first
        return lambda table: cut(self.words.digest(_joined([table[salt], *self._fields(table, columns)])), DIGITS)

    def _fields(self, table: Any, columns: Mapping[str, Any], *, whole: bool = False) -> list[Any]:
        """The texts that form the payload of ``order``; with ``whole``, texts that differ if the values do."""
        import ibis

        fields = []
        for name, kind in columns.items():
            exact = self.words.exact if kind == nw.Binary and table[name].type().is_string() else None
            text = _text(table[name], self.backend, whole) if exact is None else exact.text(table[name])
            known = _joined([ibis.literal("v"), text.length().cast("string"), ibis.literal(":"), text])
            fields.append(ibis.cases((text.isnull(), "n"), else_=known))
        return fields

    def with_columns(self, native: Any, made: Mapping[str, Any]) -> Any:
        return native.mutate(**made)

    def opaque(self, native: Any) -> Mapping[str, str]:
        bytes_ = self.words.exact is not None  # bytes would be confused with the exact form of a text
        kinds = native.schema().items()
        asked = self.backend == "mysql" or (self.backend in _FIELDS and any(k.is_time() for _, k in kinds))
        asked &= backend_of(native) is not None
        found = _other_types(native, _FIELDS[self.backend]) if asked else {}
        found |= {n: _shown(kind) for n, kind in kinds if not _is_known(kind) or (bytes_ and kind.is_binary())}
        return found

    def from_polars(self, native: Any, frame: pl.DataFrame) -> Any:
        """A temporary table of the connection."""
        import ibis

        if self.backend == "mysql":
            return _brought_to_mysql(backend_of(native), frame)
        if self.backend == "duckdb":
            return ibis.memtable(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
        own = {f"c{i}": name for i, name in enumerate(frame.columns)}  # a name with % would be read as a parameter
        plain = signed(frame).rename(dict(zip(frame.columns, own, strict=True)))
        held = ibis.memtable(plain.to_arrow(compat_level=pl.CompatLevel.oldest()))
        if self.backend == "postgres":  # without figures, PostgreSQL guesses the table's size
            connection = backend_of(native)
            connection.execute(held.limit(0))  # this creates the table
            _run(connection, f'analyze "{held.get_name()}"')
        return held.rename({name: c for c, name in own.items()})

    def ordered(self, native: Any, by: str) -> Any:
        return native.order_by(by)

    def in_order(
        self, native: Any, by: str, rows: int, scratch: Path, tell: Callable[[int], None], late: LatePlacement | None
    ) -> Iterator[pl.DataFrame]:
        return self.slices(self.ordered(native, by).drop(by), scratch, tell)

    def row_memory(self, native: Any) -> int:
        return 0

    def slices(self, native: Any, scratch: Path, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
        done, kinds = 0, _schema(native)
        try:
            for frame in _batches(native):
                done += frame.height
                tell(done)
                yield frame.cast(kinds)  # type: ignore[arg-type]
        except ShoalError:
            raise
        except Exception as error:  # the database's own message may quote rows
            raise _unreadable(native, error) or unread(error) from None
        if not done:
            yield pl.DataFrame(schema=kinds)

    def parts(self, native: Any, folder: Path) -> dict[str, int]:
        return {}

    def picklable(self, native: Any) -> Any:
        import ibis

        return StoredFrame(native.to_pyarrow(), ibis.memtable)

    def workers(self, native: Any) -> Workers:
        """The workers of a database in this process, which can read local files; otherwise none."""
        connection = backend_of(native)
        if connection is None or connection.name != "duckdb":
            return Workers()
        return Workers(ask=lambda sql: answered(connection.con, sql))


def unread(error: Exception) -> InputError:
    """The error of a failed query, with only the error's type, because the database's message may quote rows."""
    if short := too_little(error):
        return InputError(short)
    return InputError(
        f"the database does not answer ({type(error).__name__}); its connection is lost, or what it holds has changed: "
        "see its own log"
    )


def _unreadable(native: Any, error: Exception) -> InputError | None:
    """The error for a column whose values can't be fetched; None if no single column is the cause."""
    if type(error).__name__ not in _UNREADABLE:
        return None
    for name in native.columns:
        try:
            for _ in _batches(native.select(name)):
                pass
        except Exception as own:
            if type(own).__name__ not in _UNREADABLE:
                return None
            return InputError(
                f"column {name!r} holds values that have no place outside the database, such as infinite dates, dates "
                f"before the year 1 or after 9999, numbers of more than {_DIGITS} digits, or money; cast it to text in "
                "a view, or name it in ⟨identifiers=[...]⟩"
            )
    return None


def _run(connection: Any, sql: str) -> None:
    """Run a statement without a result."""
    found = connection.raw_sql(sql)
    if hasattr(found, "close"):
        found.close()


def _brought_to_mysql(connection: Any, frame: pl.DataFrame) -> Any:
    """A temporary table with these rows. Ibis would send them through pandas, where integers can't be missing.

    The character set is explicit, because the database's default may lack some characters.
    """
    import ibis

    name = f"__shoal_{secrets.token_hex(8)}"
    kinds = ibis.memtable(frame.clear().to_arrow(compat_level=pl.CompatLevel.oldest())).schema()
    made = connection.create_table(name, schema=kinds, temp=True)
    _run(connection, f"alter table `{name}` convert to character set utf8mb4 collate utf8mb4_bin")
    if frame.schema[frame.columns[0]].is_integer():
        _run(connection, f"create index cells on `{name}` (`{frame.columns[0]}`)")
    columns = ", ".join(f"`{n}`" for n in frame.columns)
    sql = f"insert into `{name}` ({columns}) values ({', '.join(['%s'] * frame.width)})"
    with connection.begin() as cursor:
        for piece in frame.iter_slices(_INSERTED):
            cursor.executemany(sql, piece.rows())
    return made


def _batches(native: Any) -> Iterator[pl.DataFrame]:
    """The rows of a table in slices; possibly no slice."""
    connection = backend_of(native)
    if connection is not None and connection.name == "mysql":
        yield from _mysql_batches(native, connection)
        return
    if connection is not None and connection.name == "duckdb":  # from version 2 on, DuckDB's readers have other names
        connection.execute(native.limit(0))  # this creates the tables that the query refers to
        yield from slices(connection.con.sql(connection.compile(native)))
        return
    with native.to_pyarrow_batches(chunk_size=BATCH) as reader:
        for batch in reader:
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            yield frame


def _mysql_batches(native: Any, connection: Any) -> Iterator[pl.DataFrame]:
    """Rows as the server sends them. Ibis would fetch all at once, and integers with missing ones as fractions."""
    kinds = _schema(native)
    connection.execute(native.limit(0))  # this creates the tables that the query refers to
    module = import_module(type(connection.con).__module__.split(".")[0] + ".cursors")
    truths = [name for name, kind in kinds.items() if kind == pl.Boolean]
    loose = {name: pl.Int64() if name in truths else kind for name, kind in kinds.items()}
    cursor = module.SSCursor(connection.con)
    try:
        cursor.execute(connection.compile(native))
        while rows := cursor.fetchmany(BATCH):
            frame = pl.DataFrame(list(rows), schema=loose, orient="row")
            yield frame.with_columns(pl.col(name).cast(pl.Boolean) for name in truths)
    finally:
        cursor.close()


def _sent_columns(native: Any) -> Any:
    """The columns as the database describes them when it sends rows."""
    connection = backend_of(native)
    try:
        if connection.name == "duckdb":  # a cursor of DuckDB doesn't see the temporary tables of its connection
            connection.execute(native.limit(0))  # this creates the tables that the query refers to
            return connection.con.sql(connection.compile(native.limit(0))).description
        with closing(connection.con.cursor()) as cursor:
            cursor.execute(connection.compile(native.limit(0)))
            return cursor.description
    except Exception as error:
        raise unread(error) from None


def _other_types(native: Any, fields: Mapping[Any, str]) -> dict[str, str]:
    """The columns that the database sends with other types than Ibis states."""
    sent = {str(name): kind if isinstance(kind, int) else str(kind) for name, kind, *_ in _sent_columns(native)}
    return {name: fields[kind] for name, kind in sent.items() if kind in fields}


def _by_base_types(native: Any, backend: str) -> Any:
    """A table in which domains of PostgreSQL, and unsigned fractions and padded numbers of MySQL, have their base type.

    Ibis supports none of them, and their values are those of the base type.
    """
    unknown = {n: kind for n, kind in native.schema().items() if getattr(kind, "raw_type", None) is not None}
    if not unknown or backend not in ("postgres", "mysql"):
        return native
    if backend == "postgres":
        bases = {column.name: column.type_display for column in _sent_columns(native)}  # a domain is sent as its base
    else:
        bases = {name: _unpadded(kind.raw_type.sql("mysql").lower()) for name, kind in unknown.items()}
    kinds = backend_of(native).compiler.type_mapper
    known = {name: _parsed(kinds, bases.get(name, "")) for name in unknown}
    return native.mutate([native[name].cast(kind).name(name) for name, kind in known.items() if _is_known(kind)])


def _in_milliseconds(native: Any) -> Any:
    """A table in which moments of whole seconds have milliseconds, because no frame has a type of whole seconds."""
    seconds = {n: kind for n, kind in native.schema().items() if kind.is_timestamp() and kind.scale == 0}
    casts = [native[name].cast(kind.copy(scale=3)).name(name) for name, kind in seconds.items()]
    return native.mutate(casts) if casts else native


def _unpadded(kind: str) -> str:
    """A numeric type of MySQL as one to which it can cast, without padding and without unsigned fractions."""
    kind = kind.removesuffix(" zerofill")
    if kind.startswith(_WHOLE_NUMBERS):
        return "bigint unsigned" if kind.endswith(" unsigned") else "bigint"
    return kind.removesuffix(" unsigned")


def _parsed(kinds: Any, text: str) -> Any:
    """A type of Ibis; ``unknown`` for a type that its package can't read."""
    import ibis

    try:
        return kinds.from_string(text)
    except Exception:
        return ibis.expr.datatypes.unknown


def _schema(native: Any) -> dict[str, pl.DataType]:
    """The types of its rows in Polars."""
    return dict(nw.from_native(native).collect_schema().to_polars())


def backend_of(native: Any) -> Any:
    """The connection of a table; None for a table in this process, which Ibis passes to DuckDB."""
    from ibis.common.exceptions import IbisError

    try:
        return native.get_backend()
    except IbisError:
        return None


def _is_known(kind: Any) -> bool:
    return any(getattr(kind, f"is_{known}")() for known in _KNOWN)


def _shown(kind: Any) -> str:
    """A type as a word; for one that Ibis doesn't support, its name in the database."""
    raw = getattr(kind, "raw_type", None)
    return str(kind) if raw is None else raw.sql().lower()


def _text(column: Any, backend: str, all_differ: bool) -> Any:
    """A column as the text of ``order.portable``; if all are to differ, also large numbers and NaN have their own."""
    import ibis

    kind = column.type()
    if kind.is_floating():
        wide = column.cast("float64")
        nan = [] if backend in ("mysql", "mssql") else [wide.isnan()]
        whole = wide.floor().cast("int64")
        rest = ((wide - whole) * PARTS).floor().cast("int64")
        parts = [whole.cast("string"), ibis.literal("."), rest.cast("string")]
        is_near = wide.abs() < WHOLE
        if all_differ:
            own = [(wide.isnull(), ibis.null("string")), *((odd, "nan") for odd in nan)]
            zero = (wide == 0, "0")  # negative or not
            shown = wide.cast("string")  # some databases show fewer digits than ``parts`` have
            return ibis.cases(*own, zero, (is_near, _joined([*parts, ibis.literal(":"), shown])), else_=shown)
        none = reduce(or_, nan, wide.isnull())
        return ibis.cases((none, ibis.null("string")), (is_near, _joined(parts)), (wide > 0, "far"), else_="-far")
    if kind.is_timestamp() and backend != "mssql":  # SQL Server counts seconds in 32 bits
        return _micros(column, backend).cast("string")
    if kind.is_boolean():
        return ibis.cases((column.isnull(), ibis.null("string")), (column, "true"), else_="false")
    if kind.is_binary() and backend == "duckdb":
        return _function("hex", "string", "binary")(column)
    if kind.is_binary() and backend == "postgres":
        return _function("encode", "string", "binary", "string")(column, "hex").upper()
    if kind.is_string():
        return _as_text(column) if backend in ("mysql", "postgres") else column
    return column.cast("string")


def _micros(column: Any, backend: str) -> Any:
    """Microseconds since 1970."""
    if backend == "mysql":
        seconds = _function("to_seconds", "int64", "timestamp")(column) - _EPOCH
        return seconds * 1_000_000 + _function("microsecond", "int64", "timestamp")(column)
    if backend == "duckdb":
        return _function("epoch_us", "int64", "timestamp")(column.cast("timestamp"))
    seconds = column.truncate("s").epoch_seconds().cast("int64")
    return seconds * 1_000_000 + column.microsecond().cast("int64") % 1_000_000


class IbisTable(LazyTable):
    """A table of Ibis; see ``Table``."""

    dialect: Any

    def _texts(self, names: Sequence[str]) -> list[str]:
        """The columns that are grouped in their exact form."""
        return [] if self.dialect.words.exact is None else [n for n in names if self.kinds[n] == nw.String]

    def filled(self, values: Mapping[str, Any]) -> LazyTable:
        """A table in which the missing values of each column are replaced by the given value."""
        import ibis

        moments = [n for n in values if isinstance(self.kinds[n], nw.Datetime)]
        own = {n: self.native[n].fill_null(ibis.literal(values[n], type=self.native[n].type())) for n in moments}
        table = type(self)(self.native.mutate(**own), self.dialect, self.origin)
        others = {n: value for n, value in values.items() if n not in moments}
        return LazyTable.filled(table, others) if others else table

    def _compared(self, names: Sequence[str]) -> Any:
        texts = self._texts(names)
        if not texts:
            return self.frame
        return nw.from_native(self.native.mutate(**{n: self.dialect.words.exact.form(self.native[n]) for n in texts}))

    def _number_of_cells(self, names: Sequence[str], first: int) -> Any:
        texts = self._texts(names)
        return self.dialect.number(first, {n: nw.Binary() if n in texts else self.kinds[n] for n in names})

    def _collected(self, query: Any, names: Sequence[str]) -> pl.DataFrame:
        cells, texts = super()._collected(query, names), self._texts(names)
        try:
            return cells.with_columns(self.dialect.words.exact.read(cells[n]) for n in texts)
        except (pl.exceptions.PolarsError, UnicodeError):
            raise InputError(
                f"a column among {', '.join(map(repr, texts))} holds texts that are not in UTF-8; convert it, or "
                "read a view that does"
            ) from None

    def _fetched(self, query: Any) -> pl.DataFrame:
        return pl.concat(self.dialect.slices(query.to_native(), Path(), lambda _: None))

    def polars(self, names: Sequence[str]) -> pl.DataFrame:
        """Some columns of all rows, fetched into memory."""
        self._refuse_opaque([n for n in names if self.kinds[n] == nw.Duration], "cast it to text in a view")
        return pl.concat(self.dialect.slices(self.native.select(*names), Path(), lambda _: None))

    @property
    def rows(self) -> int:
        """Number of rows; runs a query."""
        return int(self.native.count().execute())

    def sample(self, most: int) -> tuple[pl.DataFrame, int]:
        """All rows, or a random sample of about ``most`` rows if there are more, and the number of rows."""
        self._refuse_opaque(self.columns, "leave it out, or cast it to text, with ⟨query=...⟩ or in a view")
        return super().sample(most)

    def _drawn(self, share: float) -> Any:
        import ibis

        return self.native.filter(ibis.random() < share)

    def _refuse_opaque(self, columns: Sequence[str], way_out: str) -> None:
        opaque = self.dialect.opaque(self.native)
        for name in columns:
            if name in opaque:
                raise InputError(f"column {name!r} is of type {opaque[name]}, which no other table holds; {way_out}")

    def singled(self, columns: Sequence[str]) -> SingledOut:
        """How far some columns single rows out, counted in the database."""
        self._refuse_opaque(columns, "cast it to text in a view, or name it in ⟨identifiers=[...]⟩")
        return singled_elsewhere(self._compared(columns), columns, self.native.select(*columns).limit)


def table_of(native: Any, origin: Origin = Origin()) -> IbisTable:
    """A table of Ibis; InputError for a database without a known hash of texts."""
    backend = backend_of(native)
    name = "duckdb" if backend is None else str(backend.name)
    if name not in _words():
        raise InputError(
            f"tables of Ibis are read in {', '.join(_words())}, not in {name}; save it as Parquet, or copy it to DuckDB"
        )
    native = _in_milliseconds(_by_base_types(native, name))
    for column, kind in native.schema().items():
        if kind.is_decimal() and (kind.precision or 0) > _DIGITS:
            raise InputError(
                f"column {column!r} has numbers of {kind.precision} digits, and no other table holds more than "
                f"{_DIGITS}; read a view that casts it to text, or leaves it out"
            )
        if kind.is_interval() and kind.unit.value not in _UNITS:
            raise InputError(
                f"column {column!r} is of type {kind}, which no other table holds; read a view that casts it to text, "
                "or leaves it out"
            )
    dialect: Dialect = _Ibis(name)
    return IbisTable(native, dialect, origin)


def read(checked: CheckedFiles, scope: Scope) -> Any:
    """Always raises InputError: files are read by the other engines."""
    raise InputError("files are read by the engines polars, duckdb and spark; Ibis reads tables of databases")
