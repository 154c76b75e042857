"""A table that stands in several files: a folder, a list, a pattern, with columns in the names of folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from shoal.engines.source import Source, kind_of, locate
from shoal.errors import InputError

MANIFEST = "manifest.json"
_ENDINGS = (".parquet", ".pq", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")


class Parts(NamedTuple):
    """The files of one table.

    sources  the files, in the order of their names
    keys     columns that stand in the names of folders, key=value, as Hive and Spark write them
    name     what the user named, for messages
    """

    sources: tuple[Source, ...]
    keys: tuple[str, ...]
    name: str

    @property
    def kind(self) -> str:
        """ "parquet" or "csv"."""
        return self.sources[0].kind

    def refuse_change(self) -> None:
        """InputError when a file is no longer the one that was looked at."""
        for source in self.sources:
            source.refuse_change()


def is_several(data: Any, pattern: bool = False) -> bool:
    """Whether a path, or a list of paths, may stand for more than one file."""
    if isinstance(data, (str, Path)):
        return pattern or Path(data).is_dir()
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(x, (str, Path)) for x in data)


def parts_of(data: str | Path | Sequence[str | Path], *, pattern: bool = False) -> Parts:
    """The files behind a folder, a list of files and folders, a pattern, or one file.

    In a folder, files and folders whose names begin with a dot or an underscore are passed over, as everybody does, and
    so is a manifest.  Raises InputError when there is no file, when they are of several kinds, or when some stand in
    folders of key=value and others do not.
    """
    given = [data] if isinstance(data, (str, Path)) else list(data)
    name = Path(given[0]).name if len(given) == 1 else f"{Path(given[0]).name} and {len(given) - 1} more"
    files: list[tuple[Path, Path]] = []  # with the folder from which on names of folders count
    for one in given:
        if pattern:
            before = str(one).split("*")[0].split("?")[0].split("[")[0]
            root = Path(before) if before.endswith((os.sep, os.altsep or os.sep)) else Path(before).parent
            files += [(Path(p), root) for p in sorted(glob.glob(str(one), recursive=True)) if os.path.isfile(p)]
        elif Path(one).is_dir():
            files += [(p, Path(one)) for p in _inside(Path(one))]
        else:
            files.append((Path(one), Path(one).parent))
    if not files:
        what = "no file fits the pattern" if pattern else "there is no Parquet or CSV file in"
        raise InputError(f"{what} {str(given[0])!r}")
    if len(given) > 1 and not pattern:  # files named one by one: the folder they have in common
        with suppress(ValueError):  # none: they stand on several drives of Windows
            shared = Path(os.path.commonpath([path.parent.absolute() for path, _ in files]))
            files = [(path, shared if root == path.parent else root) for path, root in files]
    _refuse_twice([path for path, _ in files])
    sources = tuple(locate(path) for path, _ in files)
    kinds = {source.kind for source in sources}
    if len(kinds) > 1 or "excel" in kinds:
        found = " and ".join(sorted(kinds))
        raise InputError(f"{name!r} holds {found} files; the parts of a table are all Parquet or all CSV")
    keys = [_keys(path, root) for path, root in files]
    if len(set(keys)) > 1:
        raise InputError(f"{name!r}: some parts stand in folders named key=value that others do not stand in")
    return Parts(sources, keys[0], name)


def _inside(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "_")))
        for name in sorted(names):
            if not name.startswith((".", "_")) and name != MANIFEST:
                if not name.lower().endswith(_ENDINGS):
                    raise InputError(
                        f"{str(folder)!r} holds {name!r}, which is neither Parquet nor CSV; move it away, or name the "
                        "parts with a pattern and glob=True"
                    )
                found.append(Path(where) / name)
    return found


def _keys(path: Path, root: Path) -> tuple[str, ...]:
    """The columns in the names of the folders between a root and a file."""
    try:
        inner = path.parent.absolute().relative_to(root.absolute()).parts
    except ValueError:
        inner = ()
    return tuple(part.split("=", 1)[0] for part in inner if "=" in part)


def _refuse_twice(paths: Iterable[Path]) -> None:
    """By the file and not by its name, which some systems write in capitals as well."""
    seen: set[str | tuple[int, int]] = set()
    for path in paths:
        marks: set[str | tuple[int, int]] = {os.path.realpath(path)}
        with suppress(OSError):
            facts = os.stat(path)
            marks |= {(facts.st_dev, facts.st_ino)} if facts.st_ino else set()
        if marks & seen:
            raise InputError(f"{path.name!r} is named twice; its rows would count twice")
        seen |= marks


def ending_of(parts: Parts) -> str:
    """The kind of file that a release of these parts is written as unless another is asked for."""
    return "parquet" if parts.kind == "parquet" else "csv"


def is_table_name(path: Path) -> bool:
    """Whether a path has the ending of a single table."""
    return path.name.lower().endswith((*_ENDINGS, ".xlsx", ".xls", ".xlsb")) or kind_of(path) != "csv"


def parts_of_one(path: Any) -> Parts:
    """A single file, of any kind, its name taken literally."""
    source = locate(path)
    return Parts((source,), (), source.name)
