"""The source of a table, one file or several, and the resources with which an engine may read it.

The module also estimates a search's memory before it begins, and recognizes that an engine ran out of memory.
"""

from __future__ import annotations

import glob
import gzip
import logging
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypedDict, cast

from shoal.engines import lakes
from shoal.errors import InputError, PolicyError
from shoal.paths import ending, ends, is_map, is_packed, is_part_name, kind_of

OTHERS = (
    *(".json", ".toml", ".html", ".htm", ".xml", ".pdf", ".doc", ".docx", ".zip", ".png", ".jpg"),
    *(".arrow", ".feather", ".rds", ".rdata", ".ods", ".ndjson", ".jsonl"),
)  # files that other programs read as tables, or that are no tables
_READERS = {  # functions that read them as frames
    ".arrow": "polars.read_ipc", ".feather": "polars.read_ipc", ".ods": "polars.read_ods",
    ".ndjson": "polars.read_ndjson", ".jsonl": "polars.read_ndjson",
}  # fmt: skip
_UNPACK = "unpack it first; of packed files, CSV in gzip (.csv.gz) is read"
_FOREIGN = (  # first bytes of files that aren't CSV despite their name, what they are, and a way out
    (b"PAR1", "a Parquet file", "end its name in .parquet"),
    (b"PK\x03\x04", "an Excel file or a ZIP archive", "end the name of an Excel file in .xlsx, and unpack an archive"),
    (b"\xd0\xcf\x11\xe0", "an old Excel file", "end its name in .xls"),
    (b"\x1f\x8b", "packed with gzip", "end its name in .csv.gz, or unpack it"),
    (b"BZh91AY&SY", "packed with bzip2", _UNPACK),
    (b"\xfd7zXZ\0", "packed with xz", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", _UNPACK),
    (b"<!doctype", "a web page", "a login page, perhaps: download the table itself"),
    (b"<html", "a web page", "a login page, perhaps: download the table itself"),
    (b"[{", "JSON", "write it as CSV or Parquet, from polars.read_json for example"),
    (b'{"', "JSON", "write it as CSV or Parquet, from polars.read_json for example"),
)
_ENCODINGS = {  # supported names of encodings, and Python's names
    "utf-8": "utf-8", "utf8": "utf-8", "latin-1": "latin-1", "latin1": "latin-1", "iso-8859-1": "latin-1",
    "windows-1252": "cp1252", "cp1252": "cp1252",
}  # fmt: skip


class Source(NamedTuple):
    """A file that can be read.

    kind    "csv", "parquet", "excel", or "statistics", by its ending
    packed  whether it is a CSV in gzip
    state   device, inode, size, and time of last change, to detect a file that changes while it is read
    """

    path: Path
    kind: str
    packed: bool
    state: tuple[int, ...]

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return self.path.name

    def open(self) -> BinaryIO:
        """Its bytes, unpacked."""
        return cast(BinaryIO, gzip.open(self.path, "rb")) if self.packed else open(self.path, "rb")

    def refuse_change(self) -> None:
        """InputError if the file changed since it was examined."""
        try:
            state: tuple[int, ...] = _state(os.stat(self.path))
        except FileNotFoundError:  # the file of a table version that was removed
            raise InputError(f"{self.name!r} was taken away while it was read; read the table again") from None
        if state != self.state:
            raise InputError(f"{self.name!r} changed while it was read; read it again when it is complete")


def wrong_format(name: str, kind: str, error: Exception) -> InputError:
    """The error for a file that isn't in the format of its ending."""
    return InputError(
        f"{name!r} cannot be read as {kind} ({type(error).__name__}); it is damaged or something else: write it again, "
        "or save it as CSV"
    )


def plain(path: Path) -> os.stat_result:
    """The status of the file with exactly this name; InputError if there is none, or for a folder, a device, or a pipe.

    ``*``, ``?``, and brackets in a name have no special meaning.
    """
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {path.name!r} in {str(path.parent)!r}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name!r} cannot be opened ({type(error).__name__})") from None
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"{str(path)!r} is a folder; name a file")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{str(path)!r} is a device or a pipe; a table is read more than once, so save it as a file")
    return found


def locate(path: str | Path) -> Source:
    """The file of a table; InputError for a path that is no table, by its kind or its ending."""
    path = Path(path)
    found = plain(path)
    if is_map(path, packed=True):
        raise InputError(f"{path.name!r} is a packed map; unpack it first")
    if is_map(path):
        raise InputError(
            f"{path.name!r} is a map, which is read whole and in memory; leave ⟨engine=...⟩ and its settings out, or "
            f"write its columns and coordinates as CSV, as 'ogr2ogr -f CSV table.csv {path.name} -lco GEOMETRY=AS_XY' "
            "does for points"
        )
    if ends(path, OTHERS):
        reader = _READERS.get(ending(path))
        other = f", or pass the frame of {reader}(...) to shoal.anonymize in Python" if reader else ""
        if ends(path, (".rds", ".rdata", ".rda")):
            other = f", in R with write.csv(data, '{path.stem}.csv', row.names = FALSE, na = '')"
        raise InputError(f"shoal cannot read {path.name!r}; save it as CSV, Parquet or Excel (.xlsx){other}")
    kind = kind_of(path)
    packed = kind == "csv" and is_packed(path)
    if kind == "csv" and not packed:
        _refuse_foreign(path)
    return Source(path, kind, packed, _state(found))


def _refuse_foreign(path: Path) -> None:
    """InputError for a file whose first bytes contradict its name."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return  # the code that reads it reports the reason
    for first, what, instead in _FOREIGN:
        # a header may begin with PAR1
        if head.lower().startswith(first.lower()) and (first != b"PAR1" or min(head) < 9):
            raise InputError(f"{path.name!r} is {what}, and is read as CSV by its name; {instead}")


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def codec_of(encoding: str | None) -> str:
    """Python's name of an encoding: "utf-8" for None, "latin-1", or "cp1252"; PolicyError for any other."""
    known = _ENCODINGS.get(str(encoding or "utf-8").lower())
    if known is None:
        raise PolicyError.unknown("encoding", str(encoding), ["utf-8", "latin-1", "windows-1252"])
    return known


def refuse_text(what: str, separator: str | None, encoding: str | None = None) -> None:
    """PolicyError for settings of a CSV that have no effect, because the table is none."""
    for name, given in (("separator", separator), ("encoding", encoding)):
        if given is not None:
            raise PolicyError(f"⟨{name}={given!r}⟩ says how a CSV is read, and {what} is none; leave it out")


def refuse_database(path: Any) -> None:
    """InputError for a database file, where only a file of one table can be named."""
    if database_kind(path) is not None:
        name = Path(path).name
        raise InputError(f"{name!r} is a database; here files are read: write its table as Parquet or CSV first")


def database_kind(path: Any) -> str | None:
    """ "duckdb" or "sqlite" by the first bytes of a file; None for other files."""
    if not isinstance(path, (str, Path)) or not os.path.isfile(path) or is_map(path):  # a GeoPackage is a SQLite file
        return None
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return None
    if head[8:12] == b"DUCK":
        return "duckdb"
    return "sqlite" if head == b"SQLite format 3\0" else None


MANIFEST = "manifest.json"


class FilesOfTable(NamedTuple):
    """The files of one table.

    sources  the files, in the order of their names
    keys     columns in the names of folders, key=value, as Hive and Spark write them
    name     the user's name for it, for messages
    """

    sources: tuple[Source, ...]
    keys: tuple[str, ...]
    name: str

    @property
    def kind(self) -> str:
        """ "parquet" or "csv"."""
        return self.sources[0].kind

    def refuse_change(self) -> None:
        """InputError if a file changed since it was examined."""
        for source in self.sources:
            source.refuse_change()


def is_several(data: Any, pattern: bool = False) -> bool:
    """Whether a path, or a list of paths, may refer to more than one file."""
    if isinstance(data, (str, Path)):
        return pattern or lakes.is_lake(data) or Path(data).is_dir()
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(x, (str, Path)) for x in data)


def parts_of(data: str | Path | Sequence[str | Path], *, pattern: bool = False) -> FilesOfTable:
    """The files of a folder, a list of files and folders, a pattern, or one file.

    For a table of Delta or Iceberg, these are the files of its current version. In a folder, files and folders whose
    names begin with a dot or an underscore are ignored, as is usual, and so is a manifest. Raises InputError if there
    is no file, if they have several formats, or if only some are in folders of key=value.
    """
    given = [data] if isinstance(data, (str, Path)) else list(data)
    name = Path(given[0]).name if len(given) == 1 else f"{Path(given[0]).name} and {len(given) - 1} more"
    files: list[tuple[Path, Path]] = []  # with the folder below which names of folders are columns
    for one in given:
        if pattern:
            before = str(one).split("*")[0].split("?")[0].split("[")[0]
            root = Path(before) if before.endswith((os.sep, os.altsep or os.sep)) else Path(before).parent
            files += [(Path(p), root) for p in sorted(glob.glob(str(one), recursive=True)) if os.path.isfile(p)]
        elif lakes.is_lake(one):
            version = lakes.current(one)
            files += [(path, version.root or path.parent) for path in version.files]
        elif Path(one).is_dir():
            files += [(p, Path(one)) for p in _inside(Path(one))]
        else:
            files.append((Path(one), Path(one).parent))
    if not files:
        what = "no file fits the pattern" if pattern else "there is no Parquet or CSV file in"
        raise InputError(f"{what} {str(given[0])!r}")
    if len(given) > 1 and not pattern:  # files named one by one: use their common folder
        with suppress(ValueError):  # no common folder: they are on several drives of Windows
            shared = Path(os.path.commonpath([path.parent.absolute() for path, _ in files]))
            files = [(path, shared if root == path.parent else root) for path, root in files]
    _refuse_twice([path for path, _ in files])
    sources = tuple(locate(path) for path, _ in files)
    kinds = {source.kind for source in sources}
    if len(kinds) > 1 or not kinds <= {"csv", "parquet"}:
        first = {source.kind: path.name for (path, _), source in zip(reversed(files), reversed(sources), strict=True)}
        found = " and ".join(f"{kind} files such as {first[kind]!r}" for kind in sorted(kinds))
        raise InputError(
            f"{name!r} holds {found}; the parts of a table are all Parquet or all CSV, so move the others away"
        )
    keys = [_keys(path, root) for path, root in files]
    if len(set(keys)) > 1:
        raise InputError(f"{name!r}: some parts are in folders named key=value, and others are not")
    return FilesOfTable(sources, keys[0], name)


def _inside(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "_")))
        for name in sorted(names):
            if not name.startswith((".", "_")) and name != MANIFEST:
                if not is_part_name(name):
                    raise InputError(
                        f"{str(folder)!r} holds {name!r}, which is neither Parquet nor CSV; move it away, or name the "
                        "parts with a pattern and ⟨glob=True⟩"
                    )
                found.append(Path(where) / name)
    return found


def _keys(path: Path, root: Path) -> tuple[str, ...]:
    """The columns in the names of the folders between a root and a file; InputError for a name that DuckDB would read
    otherwise."""
    try:
        inner = path.parent.absolute().relative_to(root.absolute()).parts
    except ValueError:
        inner = ()
    named = [part.split("=", 1) for part in inner if "=" in part]
    for key, value in named:
        if set("?\\\n=") & {*key, *value}:
            raise InputError(
                f"column {key!r} in the names of folders: one of them has a question mark, a backslash, a line break, "
                "or a second equals sign, which DuckDB reads otherwise; write it in percent notation, such as %3F, or "
                "put the column into the files"
            )
    return tuple(key for key, _ in named)


def _refuse_twice(paths: Iterable[Path]) -> None:
    """InputError for a file that is named twice. The inode is compared, because some systems have other names for a
    file."""
    seen: set[str | tuple[int, int]] = set()
    for path in paths:
        marks: set[str | tuple[int, int]] = {os.path.realpath(path)}
        with suppress(OSError):
            facts = os.stat(path)
            marks |= {(facts.st_dev, facts.st_ino)} if facts.st_ino else set()
        if marks & seen:
            raise InputError(f"{path.name!r} is named twice; its rows would count twice")
        seen |= marks


def ending_of(parts: FilesOfTable) -> str:
    """The default format of a release of these parts."""
    return "parquet" if parts.kind == "parquet" else "csv"


def parts_of_one(path: Any) -> FilesOfTable:
    """A single file of any kind; its name is taken literally."""
    source = locate(path)
    return FilesOfTable((source,), (), source.name)


_SIZE = re.compile(r"(?i)^\s*(\d+(?:\.\d+)?)\s*([kmgt]i?b)\s*$")
_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}
LEAST = 100 * 10**6


class ScopeSettings(TypedDict, total=False):
    """The fields of ``Scope`` as keywords."""

    memory: str | None
    threads: int | None
    temporary: str | Path | None
    glob: bool
    table: str | None
    query: str | None
    master: str | None


class Scope(NamedTuple):
    """Settings of an engine; all are optional.

    memory     memory for reading, searching, and writing with DuckDB, such as "2GB"; DuckDB uses half of it before it
               spills to disk. The actual use is at most 1.3 times as much, from 512MB on, plus 0.4 GB for Python and
               its packages
    threads    threads of DuckDB
    temporary  folder in which DuckDB spills to a folder of its own that only this user can read
    glob       whether the path is a pattern with ``*``, ``?``, ``[``, and ``**``
    table      table or view of a DuckDB or SQLite file, or of a database server; sheet of an Excel file; layer of a map
    query      one SELECT over a DuckDB or SQLite file or a server; over other files, as the table ``data``
    master     where Spark runs, such as "local[2]"
    """

    memory: str | None = None
    threads: int | None = None
    temporary: str | Path | None = None
    glob: bool = False
    table: str | None = None
    query: str | None = None
    master: str | None = None

    @classmethod
    def among(cls, settings: Mapping[str, Any]) -> tuple[Scope, dict[str, Any]]:
        """The scope from some settings, and the other settings."""
        own = {name: value for name, value in settings.items() if name in cls._fields}
        return cls(**own), {name: value for name, value in settings.items() if name not in own}

    def as_asked(self, data: Any, engine: str | None, asked: Any) -> tuple[Scope, str | None]:
        """The scope and engine of a call, completed by those of a policy. A frame is already read, so they don't apply.

        asked  a ``Policy``
        """
        if not isinstance(data, (str, Path, list, tuple)):
            return self, engine
        own = {name: getattr(asked, name) for name in ("memory", "threads", "temporary") if getattr(self, name) is None}
        return self._replace(**own), engine or asked.engine

    def check(self, engine: str | None) -> None:
        """PolicyError or InputError for settings that can't be met, or that the engine doesn't have.

        engine  "polars", "duckdb", "spark", "ibis"; None for a frame, whose engine the caller configured
        """
        mine = {
            "memory": "duckdb",
            "threads": "duckdb",
            "temporary": "duckdb",
            "table": "duckdb",
            "query": "duckdb",
            "master": "spark",
        }
        for name, owner in mine.items():
            given = getattr(self, name)
            if given is not None and engine != owner and not (engine == "ibis" and name in ("table", "query")):
                if engine == "spark" and name == "memory":
                    raise PolicyError(f"⟨memory={str(given)!r}⟩ is DuckDB's; {SPARK_MEMORY}")
                elsewhere = {None: "a frame", "ibis": "a server of databases"}  # no engine was asked for
                input_name = elsewhere.get(engine) or f"⟨engine={engine!r}⟩; say ⟨engine='{owner}'⟩ too"
                raise PolicyError(
                    f"⟨{name}={str(given)!r}⟩ is a setting of ⟨engine='{owner}'⟩; it has no effect on {input_name}"
                )
        if self.glob and engine in (None, "polars"):
            raise PolicyError("⟨glob=True⟩ reads the parts of a table; say ⟨engine='duckdb'⟩ or ⟨engine='spark'⟩")
        if self.table is not None and self.query is not None:
            raise PolicyError("give ⟨table=...⟩ or ⟨query=...⟩, not both; a query names its tables itself")
        if self.threads is not None:
            from shoal.model.arguments import whole_number  # which imports numpy

            whole_number("threads", self.threads, "give a whole number from 1 up")
        if self.memory is not None:
            size(self.memory)
        if self.temporary is not None and not isinstance(self.temporary, (str, Path)):
            raise PolicyError(f"⟨temporary={self.temporary!r}⟩: name a folder")
        if self.temporary is not None and not Path(self.temporary).is_dir():
            raise InputError(f"there is no folder {str(self.temporary)!r} to spill into; make it first")


def size(text: str, least: int = LEAST) -> int:
    """The bytes of "2GB" or "512MiB"; PolicyError for anything else and for less than 100 MB."""
    found = _SIZE.match(text) if isinstance(text, str) else None
    if found is None:
        raise PolicyError(f"⟨memory={str(text)!r}⟩: write a size such as '2GB' or '512MiB'")
    unit = found[2].lower()
    bytes_ = int(float(found[1]) * (1024 if "i" in unit else 1000) ** _UNITS[unit[0]])
    if bytes_ < least:
        raise PolicyError(f"⟨memory={text!r}⟩ is too little to work with; give 100MB or more")
    return bytes_


LOG = logging.getLogger("shoal")
CELL = 1_000  # bytes of a cell during its search, measured with 4 to 9 quasi-identifiers
HELD = 600  # bytes of a cell that waits for the search of its shard
UNEVEN = 2  # approximate size of the largest shard in mean shard sizes
ITSELF = 400 * 10**6  # bytes of Python, its packages, and compiled loops
# maximum share of the process's memory for a search; DuckDB may use half of it at the same time, in total 1.3
SEARCH = 0.7
WORTH_SAYING = 10**9  # bytes from which on the search's memory is reported

SPARK_MEMORY = (
    "to give memory to Spark's driver, before Python starts, set PYSPARK_SUBMIT_ARGS='--driver-memory 6g "
    "pyspark-shell', or give spark.driver.memory to the session that you make"
)
DRIVER = f"Spark's driver has too little memory for this table: it is 1 GB unless you say more; {SPARK_MEMORY}"
DUCKDB = "DuckDB has too little memory for this table; give it more with ⟨memory=...⟩"


class SearchSize(NamedTuple):
    """The size of a search, and where it runs.

    cells   number of distinct tuples of quasi-identifiers and sensitive values
    shards  maximum number of parts that are searched separately; 0: all cells are searched at once
    away    whether the workers of an engine search the shards
    """

    cells: int
    shards: int = 0
    away: bool = False

    @property
    def bytes(self) -> int:
        """Memory of the search in this process: all cells are held, and those of one shard are searched."""
        if not self.shards:
            return self.cells * CELL
        largest = 0 if self.away else min(self.cells, -(-UNEVEN * self.cells // self.shards))
        return self.cells * HELD + largest * (CELL - HELD)

    def words(self) -> str:
        """The memory of the search, as a clause of a sentence."""
        at_once = f"({CELL // 1000} KB a cell)"
        if self.shards:
            rest = "the workers search them" if self.away else f"{CELL / 1000:.0f} KB a cell of the shard searched"
            at_once = f"in {self.shards} shards ({HELD / 1000:.1f} KB a cell; {rest})"
        return (
            f"the search over {self.cells:,} cells takes about {_gb(self.bytes)} of memory {at_once}, "
            f"in addition to {_gb(ITSELF)} of Python and what the engine holds"
        )


def refuse_too_many(
    searched: SearchSize, progress: Callable[[str, float | None], None], free: int | None = None,
    memory: str | None = None,
) -> None:  # fmt: skip
    """Report the memory of a search before it begins, and refuse with InputError a search that needs too much.

    free    available bytes; None: determined here, and if they are unknown, nothing is refused
    memory  the memory limit of the process, if there is one
    """
    takes, words = searched.bytes, searched.words()
    if memory is not None and takes > SEARCH * size(memory):
        least = math.ceil(10 * takes / SEARCH / 1e9) / 10
        raise InputError(
            f"{words}; ⟨memory={memory!r}⟩ does not leave that. Give ⟨memory='{least:.1f}GB'⟩ or more, or make "
            "quasi-identifiers coarser first, or name fewer"
        )
    free = free_memory() if free is None else free
    if free is not None and takes > free:
        raise InputError(
            f"{words}; {_gb(free)} are free. Make quasi-identifiers coarser first, name fewer, or use a "
            "machine with more memory"
        )
    if takes >= WORTH_SAYING:
        LOG.warning("%s", words)
        progress(words.removeprefix("the "), None)


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes that are available to this process, including swap; None if the system doesn't report them."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="ascii").splitlines()
        held = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
        free = held["MemAvailable"] + held.get("SwapFree", 0)
    except (OSError, ValueError, KeyError, IndexError):
        return None
    try:  # limits of a container
        group = root / "sys/fs/cgroup"
        limit, used = ((group / f"memory.{name}").read_text(encoding="ascii") for name in ("max", "current"))
        cache = dict(line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines())
        return min(free, int(limit) - int(used) + int(cache.get("inactive_file", 0)))
    except (OSError, ValueError):  # "max" means no limit
        return free


def too_little(error: BaseException) -> str:
    """The message for an engine that ran out of memory; "" for any other failure."""
    message = f"{type(error).__name__}: {error}"
    if "Java heap space" in message or "OutOfMemoryError" in message or "GC overhead limit" in message:
        return DRIVER
    return DUCKDB if "Out of Memory" in message or "OutOfMemory" in message else ""


def _gb(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"
