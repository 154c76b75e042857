"""Opening: a path or a frame becomes a table of the engine that reads it.

If an engine outside this process reads a file, the file's bytes are checked here first.

``RepeatedTable`` is a CSV with few different lines that repeat often, and with a role for every column. Its lines are
counted, and each different line is split into cells only once; its rows are counted and placed together. ``read_csv``
reads all other files, and reports why a file is no CSV.

``written_file`` finds the file of a written release, wherever it was written, with its certificate.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import narwhals as nw
import numpy as np
import polars as pl

from shoal.engines import frames, lakes, spark
from shoal.engines.csv import examine, one_character, other_separator, read_csv, separator_of, sniff
from shoal.engines.frames import FrameTable
from shoal.engines.source import (
    Scope,
    Source,
    codec_of,
    database_kind,
    is_several,
    locate,
    parts_of,
    parts_of_one,
    refuse_text,
)
from shoal.engines.table import Counted, EngineModule, Origin, Placed, PlacementRequest, Table, look, require
from shoal.errors import InputError, PolicyError, Sentence
from shoal.model.certificate import read_json
from shoal.paths import certificate_of, has_tables, is_map, is_remote, is_server, kind_of, without_secrets


class Engine(NamedTuple):
    """An engine that holds tables outside this process.

    title   its name in messages
    frames  packages of the frames that it accepts
    home    the module with its ``read`` and ``table_of``
    """

    title: str
    frames: tuple[str, ...]
    home: str

    def opened(self) -> EngineModule:
        """Its module, imported on demand."""
        return cast(EngineModule, import_module(self.home))


ENGINES = {
    "duckdb": Engine("DuckDB", ("duckdb", "_duckdb"), "shoal.engines.duck"),
    "spark": Engine("Spark", ("pyspark",), "shoal.engines.spark"),
    "ibis": Engine("Ibis", ("ibis",), "shoal.engines.ibis"),
}


def open_file(
    path: str | Path | Sequence[str | Path],
    engine: str,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    scope: Scope | None = None,
) -> Table:
    """A table of an engine from CSV (text exactly as written) or Parquet, in one file or in parts.

    engine  one of ``ENGINES``

    The structure of a CSV is checked in slices of its bytes; the engine must then find the same number of records. A
    column in the names of folders (key=value) is text.
    """
    scope = scope or Scope()
    parts = parts_of(path, pattern=scope.glob) if is_several(path, scope.glob) else parts_of_one(path)
    if parts.kind not in ("csv", "parquet"):
        raise InputError(f"{parts.name!r} is read by the Polars engine alone; leave ⟨engine={engine!r}⟩ out")
    if parts.kind != "csv":
        refuse_text(repr(parts.name), separator, encoding)
    known = ENGINES[engine]
    checked = look(parts, separator, encoding, known.title)
    home = known.opened()
    native = home.read(checked, scope)
    parts.refuse_change()
    # with a query, the count was checked before the query ran
    records = checked.records if scope.query is None else None
    return home.table_of(native, Origin(parts.name, records, checked.parts, checked.separator))


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

    data    path of a CSV, Parquet, Excel, SPSS, Stata, or SAS file, or a pandas / Polars / PyArrow / DuckDB / Spark /
            Ibis frame; a folder or a list of Parquet or CSV files, or a DuckDB or SQLite file
    engine  for a path: "polars" (in memory, the default for a file), "duckdb" (the default for others), or "spark"
    scope   resources of the engine, and which part of the source to read

    coded   columns that will be grouped; in text files they are read as categories
    needed  columns that a file must have

    Raises InputError for other data, PolicyError for a missing column, with the separator that would give it.
    """
    if engine not in (None, "polars", *ENGINES):
        raise PolicyError.unknown("engine", str(engine), ["polars", *ENGINES])
    scope = scope or Scope()
    if isinstance(data, (str, Path)) or is_several(data):
        if is_server(data):
            refuse_text("a table of a server", separator, encoding)
            return _served(str(data), engine, scope, needed)
        if is_remote(data) and engine != "spark":
            raise elsewhere(data)
        engine = engine_of(data, engine, scope)
        if scope.table is not None and scope.query is None and not has_tables(data) and database_kind(data) is None:
            raise PolicyError(
                f"⟨table={scope.table!r}⟩ names a table of a database, a sheet, or a layer, and these files have none; "
                "leave it out"
            )
        (scope._replace(table=None) if has_tables(data) else scope).check(engine)
        table = _opened(data, engine, separator, encoding, coded, scope)
        _require(table, data, separator, needed)
        return table
    scope.check(None)
    refuse_text("a frame", separator, encoding)
    module = type(data).__module__.split(".")[0]
    for known in ENGINES.values():
        if module in known.frames:
            return known.opened().table_of(data, Origin())
    try:
        held = frames.table_of(data)
    except TypeError:
        raise InputError(
            f"a table of type {type(data).__name__} is not known; pass a path, or a pandas, Polars, PyArrow, "
            "DuckDB, Spark or Ibis frame"
        ) from None
    levels = data.index.names if module == "pandas" else ()
    for name in needed:
        if name in levels and name not in held.columns:
            raise PolicyError(f"{name!r} is no column but a level of the index; make it one with reset_index()")
    return held


def _served(address: str, engine: str | None, scope: Scope, needed: Sequence[str]) -> Table:
    """A table on a database server, which only Ibis reads."""
    from shoal.engines.servers import open_server

    if engine not in (None, "ibis"):
        raise InputError(f"{without_secrets(address)!r} is a server of databases, read with ⟨engine='ibis'⟩ or none")
    scope.check("ibis")
    table = open_server(address, scope)
    require(table.columns, needed)
    return table


def elsewhere(address: str) -> InputError:
    """The error for an address that only Spark reads, or that no engine reads. It may contain a password."""
    shown = without_secrets(address)
    if is_server(address):
        return InputError(
            f"{shown!r} is a server of databases: shoal init, audit, verify, report, and anonymize read its tables; "
            "for the others save the table as Parquet"
        )
    if shown.lower().startswith(("http://", "https://", "ftp://")):
        return InputError(f"{shown!r} is a web address; download the file, and name the copy")
    if shown.lower().startswith("file://"):
        return InputError(f"{shown!r} is an address; name the file by its path, without 'file://'")
    return InputError(f"{shown!r} is no place on this machine; read it with ⟨engine='spark'⟩")


@contextmanager
def written_file(release: str | Path, certificate: str | Path | None) -> Iterator[tuple[Path, Path]]:
    """The file of a written release, and its certificate, next to it if None.

    Of a Delta or Iceberg table, this is the file of the current version; of a table on a server, a temporary CSV with
    the rows sorted by their contents. Raises InputError if the current version isn't the certified one, or if there is
    no such table; PolicyError for a server without a certificate.
    """
    if is_server(release):
        with _file_of_server(str(release), certificate) as there:
            yield there
        return
    files = lakes.current(release).files if lakes.is_lake(release) else ()
    beside = certificate_of(lakes.folder_of(release), certificate, there=bool(files))
    if files and [p.name for p in files] != [_certified(beside).get("file")]:
        raise InputError(f"the current version of {str(release)!r} is not the release of {beside.name!r}")
    yield (files[0] if files else Path(release)), beside


@contextmanager
def _file_of_server(address: str, certificate: str | Path | None) -> Iterator[tuple[Path, Path]]:
    from shoal.engines import servers
    from shoal.engines.store import store

    servers.refuse_address(address)
    if certificate is None:
        shown = without_secrets(address)
        raise PolicyError(f"{shown!r} is a server of databases; name the certificate of the table too")
    beside = Path(certificate)
    table = _certified(beside).get("table")
    if not isinstance(table, str):
        raise InputError("this is the certificate of a file, not of a table of a server; name the file")
    server = servers.connect(address)
    scratch = Path(tempfile.mkdtemp(prefix="shoal-"))  # only its owner can enter it
    try:
        with servers.in_a_sentence(server):
            servers.named(server, Scope(table=table))  # refuses a table that doesn't exist
            made = scratch / f"{table}.csv".replace("/", "_")
            store(servers.held_there(server, table), made, str(read_json(beside).get("separator") or ","))
        yield made, beside
    finally:
        server.close()
        shutil.rmtree(scratch, ignore_errors=True)


def _certified(certificate: Path) -> Mapping[str, Any]:
    """What a certificate states about the file of its release."""
    about = read_json(certificate).get("release")
    return about if isinstance(about, dict) else {}


def engine_of(data: Any, engine: str | None, scope: Scope) -> str:
    """The engine that reads a path: the requested one, otherwise DuckDB for everything but a single file of one
    table."""
    whole = not is_several(data, scope.glob) and database_kind(data) is None
    if engine == "polars" and not whole:
        raise InputError("a folder, several files or a database is read with ⟨engine='duckdb'⟩; Polars reads one file")
    wanted = scope.memory is not None or scope.threads is not None or scope.temporary is not None
    if engine is None and scope.master is not None:
        raise PolicyError(f"⟨master={scope.master!r}⟩ is a setting of ⟨engine='spark'⟩; say that too")
    if engine is None:
        return "polars" if whole and not wanted and scope.query is None else "duckdb"
    return engine


def _opened(
    path: Any, engine: str, separator: str | None, encoding: str | None, coded: Sequence[str], scope: Scope
) -> Table:
    """The table of a path, opened by the engine that reads it."""
    if is_remote(path):
        refuse_text(repr(without_secrets(path)), separator, encoding)
        return spark.table_of(spark.read_remote(path, scope), Origin(without_secrets(path)))
    if engine == "polars" and kind_of(path) == "csv" and not is_map(path):
        source, used = locate(path), one_character(separator)
        held = read_repeated(source, used, encoding, coded) if coded else None
        return held or FrameTable(read_csv(source, used, encoding, coded), coded=coded)
    if engine == "polars":
        from shoal.engines.store import read_table

        part = scope.table if has_tables(path) else None
        frame = read_table(path, separator=separator, encoding=encoding, layer=part)
        return FrameTable(frame)
    if database_kind(path) is not None:
        from shoal.engines.duck import open_database

        refuse_text(repr(Path(path).name), separator, encoding)
        if engine != "duckdb":
            raise InputError("a DuckDB or SQLite file is read with ⟨engine='duckdb'⟩")
        return open_database(path, scope)
    return open_file(path, engine, separator=separator, encoding=encoding, scope=scope)


def _require(table: Table, path: Any, separator: str | None, needed: Sequence[str]) -> None:
    """PolicyError for the first missing column, with the separator that would give it."""
    absent = [name for name in needed if name not in table.columns]
    if not absent:
        return
    single = isinstance(path, (str, Path)) and not is_remote(path) and Path(path).is_file() and not is_map(path)
    used = one_character(separator) or (separator_of(path) if single and database_kind(path) is None else None)
    other = None if used is None or not single else other_separator(locate(path), used, needed)
    refusal = PolicyError.unknown("column", absent[0], table.columns)
    if other is not None:
        refusal.args = (Sentence(f"{refusal}; the separator {other!r} instead of {used!r} would give it"),)
    raise refusal


LEAST = 1 << 21  # minimum bytes of a file whose lines are counted
_SLICE = 1 << 20
# maximum share of different lines in a sample from the start of the file
_SAMPLE, _LINES, _SHARE = 1 << 19, 1 << 13, 0.9
_NOWHERE = "\x01"  # a separator that no file has, so that lines are read whole


def read_repeated(
    source: Source, separator: str | None, encoding: str | None, coded: Sequence[str]
) -> RepeatedTable | None:
    """The table of a CSV whose columns are all in ``coded``; None if it must be read row by row.

    It is read row by row if it is small, if most lines differ, if it has quotes, carriage returns, blank lines, or
    another encoding, and if it has an error, because ``read_csv`` reports where. O(bytes) time, memory for the
    different lines.
    """
    if source.kind != "csv" or source.packed or codec_of(encoding) != "utf-8" or source.state[2] < LEAST:
        return None
    with source.open() as stream:
        separator = separator or sniff(stream, source.name)
        stream.seek(0)
        sample = stream.read(_SAMPLE).split(b"\n", _LINES)
        names, lines = sample[0].decode("latin-1").split(separator), sample[1:-1]
        if len(names) < 2 or not set(names) <= set(coded) or len(set(lines)) > _SHARE * len(lines):
            return None
        stream.seek(0)
        feeds = _line_feeds(stream)
    if feeds is None:
        return None
    try:
        found = _counted(source, separator, sample[0])
    except (InputError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    if found is None or not feeds or int(found[1].sum()) != feeds:
        return None
    source.refuse_change()
    return RepeatedTable(*found, lambda: read_csv(source, separator, encoding, coded))


def _line_feeds(stream: Any) -> int | None:
    """The number of lines after the first, whether or not the last one ends; None if a line may not be a record as it
    is."""
    feeds, last = -1, b"\n"
    while slice_ := stream.read(_SLICE):
        if any(mark in slice_ for mark in (b'"', b"\r", _NOWHERE.encode())):
            return None
        feeds, last = feeds + slice_.count(b"\n"), slice_[-1:]
    return feeds + (last != b"\n")


def _counted(source: Source, separator: str, head: bytes) -> tuple[pl.DataFrame, np.ndarray] | None:
    """The different rows as categories with their counts; None if the two readers don't agree on them."""
    query = pl.scan_csv(
        source.path, infer_schema=False, separator=_NOWHERE, quote_char=None, glob=False,
        with_column_names=lambda _: ["line"],
    )  # fmt: skip
    held = query.group_by("line").agg(pl.len().alias("n")).collect(engine="streaming")
    lines = io.BytesIO(head + b"\n")
    lines.seek(0, io.SEEK_END)
    held.select("line").write_csv(lines, include_header=False, quote_style="never")
    lines.seek(0)
    seen = examine(lines, separator, source.name)
    kinds = {name: pl.Categorical(pl.Categories.random()) for name in seen.names}
    frame = pl.read_csv(lines.getvalue(), separator=separator, quote_char=None, schema_overrides=kinds)
    agreed = tuple(frame.columns) == seen.names and frame.height == seen.records == held.height
    return (frame, held["n"].to_numpy()) if agreed else None


class RepeatedTable(FrameTable):
    """A CSV as its different rows with their counts. The file is read again if single rows are needed."""

    def __init__(self, tuples: pl.DataFrame, rows: np.ndarray, whole: Callable[[], pl.DataFrame]) -> None:
        self.lazy = False
        self.coded = frozenset(tuples.columns)
        self.columns = list(tuples.columns)
        self.rows = int(rows.sum())
        self._tuples, self._each, self._whole = FrameTable(tuples), rows, whole

    @cached_property
    def frame(self) -> Any:  # type: ignore[override]
        """All rows, read from the file again."""
        return nw.from_native(self._whole(), eager_only=True)

    def count(
        self, quasi: Sequence[str], sensitive: Sequence[str], notations: Mapping[str, str] | None = None
    ) -> Counted:
        """Group and count the different rows; ``cell`` is empty. O(t log t) for t different rows."""
        found = self._tuples.count(quasi, sensitive, notations)
        many = np.bincount(found.cell, weights=self._each).astype(np.int64)  # exact below 2^53 rows
        return replace(found, histogram=replace(found.histogram, count=many), cell=found.cell[:0])

    def counts(self, names: Sequence[str]) -> tuple[pl.DataFrame, np.ndarray]:
        """The distinct tuples of some columns with the number of rows of each."""
        found = self.count(names, ())
        codes = found.histogram.quasi
        held = {c.name: c.values.gather(codes[:, j]) for j, c in enumerate(found.quasi)}
        return pl.DataFrame(held), found.histogram.count

    def place(self, counted: Counted, asked: PlacementRequest) -> Placed:
        """Rows assigned from the different rows with counts. To keep the file's order, the rows are read one by one."""
        held = counted.histogram
        roles = {*(r.name for r in asked.replacements), *held.sensitive_names, *asked.drop}
        if not asked.keep_order and set(self.columns) <= roles:
            return super().place(counted, asked)
        whole = FrameTable(self.frame.to_native(), coded=tuple(self.coded))
        notations = {c.name: c.notation for c in counted.quasi if c.notation is not None}
        return whole.place(whole.count(held.quasi_names, held.sensitive_names, notations), asked)
