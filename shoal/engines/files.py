"""Tables on disk: CSV (also .gz), Parquet and Excel in and out, text kept exactly as it stands."""

from __future__ import annotations

import codecs
import gzip
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import InputError, PolicyError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

SEPARATORS = ",;\t|"
EXCEL = (".xlsx", ".xls", ".xlsb")


def kind_of(path: str | Path) -> str:
    """ "parquet", "excel" or "csv", by the file's ending."""
    name = Path(path).name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    return "excel" if name.endswith(EXCEL) else "csv"


def read_table(
    path: str | Path, *, separator: str | None = None, encoding: str | None = None, coded: Sequence[str] = ()
) -> pl.DataFrame:
    """The whole file as a Polars frame.

    path       CSV (also .gz), Parquet or Excel, told by the ending; anything else is read as CSV
    separator  of a CSV; told from the first line when None
    encoding   of a CSV: "utf-8" or "latin-1"; when None, UTF-8, and Latin-1 where that fails

    coded      columns of a CSV to read as categories, which is faster for columns that will be grouped

    CSV columns are text exactly as written (``01234`` stays ``01234``), an empty field is a missing value; Parquet
    and Excel keep their types.  Raises InputError when the file is missing, unreadable or ragged, names no
    column, or names one twice.
    """
    import polars as pl

    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file {path.name!r} in {str(path.parent)!r}")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file")
    try:
        kind = kind_of(path)
        if kind == "parquet":
            return pl.read_parquet(path)
        if kind == "excel":
            return pl.read_excel(path)
        return _read_csv(path, separator, encoding, coded)
    except (pl.exceptions.PolarsError, gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"{path.name!r} cannot be read: {_short(error)}") from None


def _short(error: Exception) -> str:
    """A reader's message without any content of the file."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if "found more fields" in text:
        return "a row has more fields than the header; check the separator and the quoting"
    if "utf-8" in text.lower():
        return "it is not text in UTF-8; say encoding='latin-1' if it is that"
    for telling in ("`", '"', "'"):
        if telling in text:
            text = text.split(telling, 1)[0].rstrip(" :(") + " (details withheld: they could hold rows of the table)"
    return text[:200]


def _read_csv(path: Path, separator: str | None, encoding: str | None, coded: Sequence[str]) -> pl.DataFrame:
    import polars as pl

    source: Path | bytes = path
    packed = path.name.lower().endswith(".gz")
    with gzip.open(path, "rb") if packed else open(path, "rb") as file:
        head = file.read(1 << 16)
        if packed:
            source = head + file.read()
    if not head:
        return pl.DataFrame()
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path.name!r} is UTF-16; save it as UTF-8 first")
    first = head.removeprefix(codecs.BOM_UTF8).split(b"\n", 1)[0].rstrip(b"\r").decode("latin-1")
    separator = separator or _sniff(first)
    names = _header(first, separator)
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise InputError(f"{path.name!r} names the column {twice[0]!r} more than once; rename one of them")

    kinds = {name: pl.Categorical(pl.Categories.random()) for name in coded if name in names}

    def parse(content: Path | bytes) -> pl.DataFrame:
        return pl.read_csv(content, separator=separator, infer_schema=False, quote_char='"', schema_overrides=kinds)

    if encoding not in (None, "utf-8", "utf8", "latin-1", "latin1", "iso-8859-1"):
        raise PolicyError.unknown("encoding", str(encoding), ["utf-8", "latin-1"])
    if encoding in (None, "utf-8", "utf8"):
        try:
            return _checked(parse(source), path)
        except pl.exceptions.ComputeError as error:
            if encoding is not None or "utf-8" not in str(error).lower():
                raise
    raw = source if isinstance(source, bytes) else path.read_bytes()
    return _checked(parse(raw.decode("latin-1").encode("utf-8")), path)


def _checked(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Refuse columns whose names only the reader made unique."""
    doubled = [n for n in frame.columns if "_duplicated_" in n]
    if doubled:
        name = doubled[0].split("_duplicated_")[0]
        raise InputError(f"{path.name!r} names the column {name!r} more than once; rename one of them")
    return frame


def _sniff(line: str) -> str:
    """The separator that cuts the header into most fields; a comma when none does."""
    outside = "".join(part for i, part in enumerate(line.split('"')) if i % 2 == 0)
    return max(SEPARATORS, key=lambda s: (outside.count(s), -SEPARATORS.index(s)))


def _header(line: str, separator: str) -> list[str]:
    import csv

    return next(csv.reader([line], delimiter=separator), [])


def column(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column by name; PolicyError with the nearest name when there is none."""
    if name not in frame.columns:
        raise PolicyError.unknown("column", name, frame.columns)
    return frame[name]


def numbers(frame: pl.DataFrame, name: str) -> np.ndarray:
    """A column as float64[n]; InputError naming the first value that is not a finite number."""
    import polars as pl

    values = column(frame, name)
    if values.dtype == pl.String:
        cast = values.str.strip_chars().cast(pl.Float64, strict=False)
    else:
        cast = values.cast(pl.Float64, strict=False)
    bad = cast.is_null() | cast.is_nan() | cast.is_infinite()
    if bad.any():
        found = values.filter(bad)[0]
        raise InputError(
            f"column {name!r} has the value {found!r}, which is not a finite number "
            f"({int(bad.sum())} such rows); repair them or leave the rows out"
        )
    return cast.to_numpy()


def integers(frame: pl.DataFrame, name: str) -> list[int]:
    """A column as Python integers, of any size; InputError naming the first value that is not one."""
    found: list[int] = []
    for value in column(frame, name).to_list():
        try:
            found.append(int(value))
        except (TypeError, ValueError):
            raise InputError(f"column {name!r} has the value {value!r}, which is not a whole number") from None
    return found


def check_target(path: str | Path, source: str | Path | None = None) -> Path:
    """A path that may be written: its folder exists, can be written to, and it is not the input itself."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into; make it first")
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file to write")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"the folder {str(path.parent)!r} cannot be written to")
    if source is not None and Path(source).exists() and path.exists() and os.path.samefile(path, source):
        raise InputError(f"the output {str(path)!r} is the input itself; the input is never changed, name another file")
    return path


def publish_file(
    path: str | Path, fill: Callable[[Path], object], judge: Callable[[Path], object] | None = None
) -> None:
    """Write whole or not at all: fill a temporary file beside the target, judge it, rename it into place.

    The temporary file has the target's ending, so that readers know its kind; it is removed whatever happens.
    """
    path = check_target(path)
    ending = "".join(path.suffixes[-2:]) if path.name.lower().endswith(".gz") else path.suffix
    handle, name = tempfile.mkstemp(prefix=".shoal-", suffix=f".part{ending}", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        fill(temporary)
        if judge is not None:
            judge(temporary)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def store(frame: pl.DataFrame, path: Path, separator: str | None = None) -> None:
    """Write by the file's ending, in place; use ``publish_file`` around it."""
    import polars as pl

    kind = kind_of(path)
    if kind == "parquet":
        frame.write_parquet(path)
    elif kind == "excel":
        if frame.height > 1_048_575:
            raise InputError(
                f"an Excel sheet holds 1,048,575 rows, this table has {frame.height}; write CSV or Parquet"
            )
        frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).write_excel(path)
    elif path.name.lower().endswith(".gz"):
        with open(path, "wb") as raw, gzip.GzipFile("", "wb", compresslevel=6, mtime=0, fileobj=raw) as file:
            file.write(frame.write_csv(separator=separator or ",").encode())
    else:
        frame.write_csv(path, separator=separator or ",")


def write_table(frame: pl.DataFrame, path: str | Path, *, separator: str | None = None) -> None:
    """Write a table that needs no judgement (a crosswalk, say), whole or not at all."""
    publish_file(path, lambda temporary: store(frame, temporary, separator))
