"""A file to be read: it is there, it is one file, and its name is taken literally."""

from __future__ import annotations

import gzip
import os
import re
import stat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from shoal.errors import InputError, PolicyError

EXCEL = (".xlsx", ".xls", ".xlsb")
OTHERS = (
    *(".json", ".toml", ".html", ".htm", ".xml", ".pdf", ".doc", ".docx", ".zip", ".png", ".jpg"),
    *(".arrow", ".feather", ".dta", ".sav", ".sas7bdat", ".rds", ".rdata", ".ods"),
)  # files that are tables to others, or to nobody
_ENCODINGS = {"utf-8": False, "utf8": False, "latin-1": True, "latin1": True, "iso-8859-1": True}


class Source(NamedTuple):
    """A file that can be read.

    kind    "csv", "parquet" or "excel", by its ending
    packed  whether it is a CSV in gzip
    state   device, number, size and time of last change, by which a file that changes while it is read is known
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
        """InputError when the file is no longer the one that was looked at."""
        if _state(os.stat(self.path)) != self.state:
            raise InputError(f"{self.name!r} changed while it was read; read it again when it is complete")


def spoiled(name: str, kind: str, error: Exception) -> InputError:
    """The refusal of a file that is not what its ending says."""
    return InputError(
        f"{name!r} cannot be read as {kind} ({type(error).__name__}); it is damaged or something else: write it again, "
        "or save it as CSV"
    )


def kind_of(path: str | Path) -> str:
    """ "parquet", "excel" or "csv", by the file's ending."""
    name = Path(path).name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    return "excel" if name.endswith(EXCEL) else "csv"


def plain(path: Path) -> os.stat_result:
    """Of a file of this very name; InputError when there is none, or it is a folder, a device or a pipe.

    A name is literal: ``*``, ``?`` and brackets stand for themselves.
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
    """The file of a table; InputError for what is none, by its place or its ending."""
    path = Path(path)
    found = plain(path)
    if path.name.lower().endswith(OTHERS):
        raise InputError(f"{path.name!r} is no table that is read here; save it as CSV, Parquet or Excel (.xlsx)")
    kind = kind_of(path)
    return Source(path, kind, kind == "csv" and path.name.lower().endswith(".gz"), _state(found))


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def is_latin(encoding: str | None) -> bool:
    """Whether an encoding is Latin-1; UTF-8 when None, PolicyError for one that is neither."""
    known = _ENCODINGS.get((encoding or "utf-8").lower())
    if known is None:
        raise PolicyError.unknown("encoding", str(encoding), ["utf-8", "latin-1"])
    return known


def database_kind(path: Any) -> str | None:
    """ "duckdb" or "sqlite" by the first bytes of a file; None for anything else."""
    if not isinstance(path, (str, Path)) or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return None
    if head[8:12] == b"DUCK":
        return "duckdb"
    return "sqlite" if head == b"SQLite format 3\0" else None


def is_remote(path: Any) -> bool:
    """Whether a path is a place that only Spark knows, such as s3a://bucket/table."""
    return isinstance(path, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


SERVERS = ("postgres", "postgresql", "mysql", "mariadb", "mssql", "oracle", "snowflake", "bigquery", "trino")


def is_server(path: Any) -> bool:
    """Whether a path is the address of a server of databases."""
    return is_remote(path) and scheme_of(path) in SERVERS


def scheme_of(address: str) -> str:
    """The kind of server an address names, without its driver."""
    return address.partition("://")[0].partition("+")[0].lower()


def hides_password(address: str) -> bool:
    """Whether a password stands in the address of a server, before its host or behind a question mark."""
    rest = address.partition("://")[2]
    before, _, place = rest.rpartition("@")
    return re.search("[:?#;]", before) is not None or re.search(r"(?i)[?&](password|passwd|pwd)=", place) is not None


def hidden_in(text: str, address: str) -> str:
    """A text without the secrets of an address: user, password and query stand in it in no form.

    Also where the address was taken for a path, of which two slashes are one, or for a folder and a name.
    """
    shown = without_secrets(address)
    rest = address.partition("://")[2]
    before = rest.rpartition("@")[0]
    query = re.split("[?#;]", rest.rpartition("@")[2] or rest, maxsplit=1)
    for whole in (address, str(Path(address))):
        for form in (whole, repr(whole)[1:-1]):
            text = text.replace(form, shown)
    user, _, password = before.partition(":")
    parts = [before, str(Path(before)) if before else "", password, *query[1:]]
    for secret in sorted({p for p in parts if p and p not in (".", user)}, key=len, reverse=True):
        for form in (secret, repr(secret)[1:-1]):
            text = text.replace(form, "...")
    return text


def without_secrets(address: str) -> str:
    """A remote address as it may be shown and kept: without user, password and what follows a question mark and alike.

    Where such a mark stands before an @ nobody can tell a password from a query, and neither is shown.
    """
    scheme, _, rest = address.partition("://")
    before, _, place = rest.rpartition("@")
    if re.search("[?#;]", before):
        return f"{scheme}://..."
    return f"{scheme}://{re.split('[?#;]', place)[0]}"
