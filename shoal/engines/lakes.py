"""Tables of Delta and Iceberg: the files of the current version, and a release as a new version in one step.

A table is read as the Parquet files of its current version, by any engine that reads Parquet. Features that only the
formats' own readers support (deletion vectors, renamed columns, columns added later) are refused. A release is one
Parquet file, written and judged like any other, and a single commit replaces all rows by it, so the bytes that were
judged are the bytes that are read. Older versions stay readable, so shoal only writes to a table if every version of it
is a release. A Delta table is a folder. An Iceberg table has a catalog, which the package's own settings describe.
"""

from __future__ import annotations

import contextlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from shoal.errors import ExistsError, InputError, MissingDependencyError, PolicyError, ShoalError

LOG = "_delta_log"
MARK = "shoal.release"  # key in a commit's metadata
_PLAIN = {"appendOnly", "invariants", "checkConstraints", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
_AVRO = re.compile(r"[^\W\d]\w*")  # column names that Iceberg's files contain unchanged
_NUMBERED = re.compile(r"v?(\d+)[-.].*metadata\.json")


class Version(NamedTuple):
    """The files of a table's current version, and the folder below which names of folders are columns."""

    files: tuple[Path, ...]
    root: Path | None


class Lake(Protocol):
    """A table that a release may be written to.

    shown   its name in messages
    folder  folder of its files
    """

    shown: str
    folder: Path

    def taken(self) -> str | None:
        """ "release" if every version is a release, otherwise "other"; None if there is no such table."""
        ...

    def begun(self, like: Path) -> AbstractContextManager[None]:
        """Ensure that the table exists, with a Parquet file's columns; after an error, a new one is removed."""
        ...

    def commit(self, file: Path, rows: int, sha256: str) -> None:
        """Commit a new version that consists only of this file of its folder."""
        ...

    def holds(self, file: Path) -> bool:
        """Whether the current version consists only of this file."""
        ...

    def current(self) -> Version:
        """The files of the current version."""
        ...

    def readable(self) -> tuple[Path, ...]:
        """The files of every version that is still readable, older ones first; none if there is no such table."""
        ...


def is_lake(place: Any) -> bool:
    """Whether a path is a Delta table in a folder, or an Iceberg table by its folder or in a catalog."""
    if not isinstance(place, (str, Path)):
        return False
    return _address(place) is not None or (Path(place) / LOG).is_dir() or bool(_metadata(Path(place)))


def is_target(place: Any) -> bool:
    """Whether a release to this path becomes a version of a table: delta:FOLDER, iceberg:CATALOG.NAMESPACE.TABLE."""
    return isinstance(place, (str, Path)) and _address(place) is not None


def _address(place: str | Path) -> tuple[str, str] | None:
    kind, mark, rest = str(place).partition(":")
    return (kind, rest) if mark and rest and kind in ("delta", "iceberg") else None


def folder_of(place: str | Path) -> Path:
    """The stem of certificates and records: the folder of a Delta table, the name of an Iceberg table."""
    known = _address(place)
    return Path(place) if known is None else Path(known[1] if known[0] == "delta" else known[1].rpartition(".")[2])


def opened(place: str | Path) -> Lake:
    """The existing or future table at a path; MissingDependencyError without its package."""
    kind, rest = _address(place) or ("delta" if (Path(place) / LOG).is_dir() else "iceberg", str(place))
    if kind == "delta":
        MissingDependencyError.unless("deltalake", "a Delta table", "delta")
        return _Delta(Path(rest))
    MissingDependencyError.unless("pyiceberg", "an Iceberg table", "iceberg")
    return _Iceberg(rest, _address(place) is not None)


def current(place: str | Path) -> Version:
    """The files of the current version; InputError if they alone aren't the table."""
    lake = opened(place)
    with in_a_sentence(lake):
        found = lake.current()
    if not found.files:
        raise InputError(f"{lake.shown} has no rows, so there is nothing to read")
    return found


def refuse_taken(lake: Lake, overwrite: bool) -> None:
    """InputError for a table with versions that aren't releases, ExistsError for a release that may not be replaced."""
    with in_a_sentence(lake):
        taken = lake.taken()
    if taken == "other":
        raise InputError(
            f"{lake.shown} has versions that are no releases of shoal, and older versions stay readable; name a new "
            "table"
        )
    if taken is not None and not overwrite:
        raise ExistsError(f"{lake.shown} exists already; say ⟨overwrite=True⟩ to replace it, or name another")


def readable(place: str | Path) -> tuple[Path, ...]:
    """The files of every version that is still readable, older ones first; none if there is no such table."""
    lake = opened(place)
    with in_a_sentence(lake):
        return lake.readable()


def new_name() -> str:
    """A random file name that no version has."""
    return f"part-{secrets.token_hex(8)}.parquet"


@contextlib.contextmanager
def in_a_sentence(lake: Lake) -> Iterator[None]:
    """Convert a package's errors, which may quote values, to a message without values."""
    try:
        yield
    except (ShoalError, OSError):
        raise
    except Exception as error:
        known = ("deltalake", "_internal", "pyiceberg", "sqlalchemy", "pyarrow")
        # deltalake raises plain exceptions
        if type(error) is not Exception and type(error).__module__.split(".")[0] not in known:
            raise
        if (field := getattr(error, "field", None)) is not None:
            raise _no_place(lake.shown, field) from None
        raise InputError(f"{lake.shown} cannot be read or written ({type(error).__name__})") from None


def _no_place(shown: str, field: Any) -> InputError:
    return InputError(f"{shown} holds no column of type {field.type} such as {field.name!r}; cast it to text")


class _Delta:
    """A Delta table as a ``Lake``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shown = folder, f"the Delta table {str(folder)!r}"

    def _table(self) -> Any:
        from deltalake import DeltaTable

        return DeltaTable(str(self.folder))

    def taken(self) -> str | None:
        if not (self.folder / LOG).is_dir():
            return "other" if self.folder.exists() and (self.folder.is_file() or any(self.folder.iterdir())) else None
        table = self._table()
        versions = table.history()
        whole = len(versions) == table.version() + 1 and all(MARK in comment for comment in versions)
        return "release" if whole else "other"

    @contextlib.contextmanager
    def begun(self, like: Path) -> Iterator[None]:
        self._refuse_unheld(like)
        made = not self.folder.exists()
        self.folder.mkdir(exist_ok=True)
        try:
            yield
        except BaseException:
            if made and not (self.folder / LOG).exists():
                with contextlib.suppress(OSError):
                    self.folder.rmdir()
            raise

    def _refuse_unheld(self, like: Path) -> None:
        """InputError for a column that Delta, or most readers of Delta, don't support."""
        import pyarrow
        from deltalake import Schema

        seen = set[str]()
        for field in _in_utc(_arrow_schema(like)):
            try:
                Schema.from_arrow(pyarrow.schema([field]))
                held = not (pyarrow.types.is_timestamp(field.type) and field.type.unit == "ns")
            except Exception:
                held = False
            if not held:
                raise _no_place(self.shown, field)
            if field.name.casefold() in seen:
                raise InputError(
                    f"{self.shown} holds no two columns whose names differ by case alone; rename {field.name!r}"
                )
            seen.add(field.name.casefold())

    def holds(self, file: Path) -> bool:
        return (self.folder / LOG).is_dir() and [p.name for p in self.current().files] == [file.name]

    def commit(self, file: Path, rows: int, sha256: str) -> None:
        from deltalake import CommitProperties, Schema
        from deltalake.transaction import AddAction, create_table_with_add_actions

        facts = file.stat()
        stats = json.dumps({"numRecords": rows})
        action = AddAction(file.name, facts.st_size, {}, int(facts.st_mtime * 1000), True, stats)
        schema = Schema.from_arrow(_in_utc(_arrow_schema(file)))
        marked = CommitProperties(custom_metadata={MARK: sha256})
        if (self.folder / LOG).is_dir():
            self._table().create_write_transaction([action], "overwrite", schema, commit_properties=marked)
        else:
            create_table_with_add_actions(str(self.folder), schema, [action], mode="error", commit_properties=marked)

    def current(self) -> Version:
        table = self._table()
        asks = {*(table.protocol().reader_features or ())} - _PLAIN
        renamed = table.metadata().configuration.get("delta.columnMapping.mode") or "none"
        if asks or renamed != "none":
            words = ", ".join(sorted(asks)) or "columnMapping"
            raise InputError(
                f"{self.shown} needs reader features that Parquet files alone don't have ({words}); save it as Parquet"
            )
        return Version(_plain_files(table.file_uris()), self.folder)

    def readable(self) -> tuple[Path, ...]:
        from deltalake import DeltaTable

        if not (self.folder / LOG).is_dir():
            return ()
        oldest = [DeltaTable(str(self.folder), version=v) for v in range(self._table().version() + 1)]
        return _there(path for table in oldest for path in _plain_files(table.file_uris()))


class _Iceberg:
    """An Iceberg table as a ``Lake``."""

    def __init__(self, place: str, named: bool) -> None:
        self.name = place
        self.catalog: Any = None
        self.own: Any = None
        self.shown = f"the Iceberg table {place!r}"
        if not named:
            self.folder = Path(place)
            return
        catalog, _, rest = place.partition(".")
        if "." not in rest:
            raise PolicyError(f"{self.shown}: write iceberg:CATALOG.NAMESPACE.TABLE")
        from pyiceberg.catalog import load_catalog

        self.name = rest
        with in_a_sentence(self):
            try:
                self.catalog = load_catalog(catalog)
            except ValueError:  # the message may quote the settings
                raise InputError(
                    f"{self.shown}: pyiceberg finds no catalog {catalog!r}; describe it in ~/.pyiceberg.yaml, or set "
                    f"PYICEBERG_CATALOG__{catalog.upper()}__URI"
                ) from None
            self.own = self.catalog.load_table(rest) if self.catalog.table_exists(rest) else None
            self.folder = Path() if self.own is None else _plain_files([self.own.location()], there=False)[0] / "data"

    def taken(self) -> str | None:
        if self.own is None:
            return None
        marked = [MARK in (s.summary.additional_properties if s.summary else {}) for s in self.own.metadata.snapshots]
        return "release" if all(marked) else "other"

    @contextlib.contextmanager
    def begun(self, like: Path) -> Iterator[None]:
        import pyarrow.types as kinds

        made, schema = self.own is None, _arrow_schema(like)
        for field in schema:
            if kinds.is_uint64(field.type) or kinds.is_null(field.type):
                raise _no_place(self.shown, field)
        if made:
            self.own = self.catalog.create_table(self.name, schema=schema)
            self.folder = _plain_files([self.own.location()], there=False)[0] / "data"
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        except BaseException:
            if made and not self.own.metadata.snapshots:
                with contextlib.suppress(Exception):
                    self.catalog.drop_table(self.name)
            raise

    def holds(self, file: Path) -> bool:
        self.own = self.catalog.load_table(self.name)
        return [p.name for p in self.current().files] == [file.name]

    def commit(self, file: Path, rows: int, sha256: str) -> None:
        from pyiceberg.expressions import AlwaysTrue

        with self.own.transaction() as both:
            if self.own.metadata.snapshots:
                both.delete(AlwaysTrue(), snapshot_properties={MARK: sha256})
            try:
                both.add_files([file.absolute().as_uri()], snapshot_properties={MARK: sha256})
            except ValueError:  # the message lists the types of all columns
                raise InputError(
                    f"{self.shown} has columns of other types than this release, such as numbers where it now has "
                    "stars; name a new table"
                ) from None

    def current(self) -> Version:
        if self.catalog is not None and self.own is None:
            raise InputError(f"{self.shown} is not in its catalog")
        if self.own is None:
            from pyiceberg.table import StaticTable

            found = _metadata(self.folder)
            newest = [p for p in found if _number(p) == max(map(_number, found))]
            if len(newest) > 1:
                raise InputError(f"{self.shown} has two newest versions, and its catalog alone knows which one counts")
            self.own = StaticTable.from_metadata(newest[0].absolute().as_uri())
        tasks = list(self.own.scan().plan_files())
        if any(task.delete_files for task in tasks):
            raise InputError(f"{self.shown} has files that list deleted rows; save it as Parquet")
        files = _plain_files(task.file.file_path for task in tasks)
        names = [field.name for field in self.own.schema().fields]
        for held in (_arrow_schema(file).names for file in files):
            if held == names:
                continue
            other = [name for name, own in zip(names, held, strict=False) if own != name]
            if len(held) == len(names) and not any(map(_AVRO.fullmatch, other)):
                raise InputError(
                    f"{self.shown} has the column {other[0]!r}, whose name its files write otherwise; rename the "
                    "column so that it has letters, digits and underscores alone, or save the table as Parquet"
                )
            raise InputError(f"{self.shown} has columns that were added, named anew or moved later; save it as Parquet")
        return Version(files, None)

    def readable(self) -> tuple[Path, ...]:
        if self.own is None:
            return ()
        kept = [self.own.scan(snapshot_id=s.snapshot_id).plan_files() for s in self.own.metadata.snapshots]
        return _there(path for tasks in kept for path in _plain_files(task.file.file_path for task in tasks))


def _there(files: Iterable[Path]) -> tuple[Path, ...]:
    """Each file once, without those that a vacuum removed."""
    return tuple(dict.fromkeys(path for path in files if path.exists()))


def _metadata(folder: Path) -> list[Path]:
    """The metadata files of an Iceberg table, one for each version."""
    return sorted(p for p in (folder / "metadata").glob("*.metadata.json") if _NUMBERED.fullmatch(p.name))


def _in_utc(schema: Any) -> Any:
    """A schema with moments in UTC, as Delta has them. The time zone doesn't change the stored moments."""
    import pyarrow

    for i, field in enumerate(schema):
        if pyarrow.types.is_timestamp(field.type) and field.type.tz:
            schema = schema.set(i, field.with_type(pyarrow.timestamp(field.type.unit, "UTC")))
    return schema


def _number(path: Path) -> int:
    found = _NUMBERED.fullmatch(path.name)
    return int(found[1]) if found else -1


def _plain_files(addresses: Iterable[str], *, there: bool = True) -> tuple[Path, ...]:
    """Local paths of addresses; InputError for an address elsewhere."""
    found = []
    for address in addresses:
        if "://" in address and not address.startswith("file://"):
            raise InputError("a table of Delta or Iceberg is read and written where its files lie on this machine")
        path = Path(urlsplit(address).path if "://" in address else address)
        found.append(Path(unquote(str(path))) if there and not path.exists() else path)
    return tuple(sorted(found))


def _arrow_schema(file: Path) -> Any:
    import pyarrow.parquet

    return pyarrow.parquet.read_schema(file)
