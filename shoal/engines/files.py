"""Tables on disk: CSV (also .gz), Parquet and Excel in and out, text kept exactly as it stands."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import InputError, MissingDependencyError, PolicyError

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
            return _read_excel(path)
        return _read_csv(path, one_character(separator), encoding, coded)
    except (pl.exceptions.PolarsError, gzip.BadGzipFile, EOFError, zlib.error, csv.Error) as error:
        raise InputError(f"{path.name!r} cannot be read: {_short(error)}") from None


def one_character(separator: str | None) -> str | None:
    """A field separator as one character (a backslash and a t stand for a tab); PolicyError otherwise."""
    if separator is None:
        return None
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n':
        raise PolicyError(f"separator {separator!r}: give one ASCII character that is no quote, such as ';' or '\\t'")
    return separator


def separator_of(path: str | Path) -> str | None:
    """The separator ``read_table`` finds in a CSV; None for a file that is not one."""
    path = Path(path)
    if kind_of(path) != "csv" or not path.is_file():
        return None
    with gzip.open(path, "rb") if path.name.lower().endswith(".gz") else open(path, "rb") as file:
        return _sniff(_first_line(file.read(1 << 16)))


def usual_separator(path: str | Path) -> str:
    """What stands between the fields of a new file: a tab in .tsv, else a comma."""
    return "\t" if Path(path).name.lower().removesuffix(".gz").endswith(".tsv") else ","


def _read_excel(path: Path) -> pl.DataFrame:
    """The first sheet, types told from all rows: a column with one text among numbers is text."""
    import polars as pl

    try:
        return pl.read_excel(path, infer_schema_length=None)
    except ImportError:
        raise MissingDependencyError.needed("fastexcel", "reading Excel", "excel") from None
    except Exception as error:
        raise InputError(f"{path.name!r} cannot be read as Excel ({type(error).__name__})") from None


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
    if b"\n" not in head and b"\r" in head.rstrip():
        raise InputError(f"{path.name!r} ends its lines with a carriage return alone; save it with line feeds")
    first = _first_line(head)
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
            return _checked(parse(source), source, separator, names, path)
        except pl.exceptions.ComputeError as error:
            if encoding is not None or "utf-8" not in str(error).lower():
                raise
    raw = source if isinstance(source, bytes) else path.read_bytes()
    raw = raw.decode("latin-1").encode("utf-8")
    return _checked(parse(raw), raw, separator, names, path)


def _first_line(head: bytes) -> str:
    return head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r").decode("latin-1")


def _checked(
    frame: pl.DataFrame, source: Path | bytes, separator: str, names: Sequence[str], path: Path
) -> pl.DataFrame:
    """Refuse columns whose names only the reader made unique, and rows it filled up; drop blank lines."""
    doubled = [n for n in frame.columns if "_duplicated_" in n and n.encode().decode("latin-1") not in names]
    if doubled:
        name = doubled[0].split("_duplicated_")[0]
        raise InputError(f"{path.name!r} names the column {name!r} more than once; rename one of them")
    if frame.width < 2 or not frame.to_series(frame.width - 1).null_count():
        return frame  # a row that is too short has no last value
    import polars as pl

    raw = source if isinstance(source, bytes) else source.read_bytes()
    bare = re.sub(rb'"[^"]*"', b'""', raw) if b'"' in raw else raw
    empty = frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
    blank = _blank_lines(bare) if empty.any() else 0
    if bare.count(separator.encode()) != (frame.height + 1 - blank) * (frame.width - 1):
        number = _short_row(raw, separator, frame.width)
        if number:
            raise InputError(
                f"{path.name!r} has fewer fields in line {number} than its header names; "
                "check the separator and the quoting, or fill the row up"
            )
    if not blank:
        return frame
    if blank != int(empty.sum()):
        raise InputError(f"{path.name!r} has blank lines beside rows without any value; take the blank lines out")
    return frame.filter(~empty)


def _blank_lines(raw: bytes) -> int:
    """Lines without a character after the first line that has one."""
    lines = raw.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n").replace(b"\r\n", b"\n").split(b"\n")
    return sum(not line for line in lines) - (not lines[-1])


def _short_row(raw: bytes, separator: str, width: int) -> int:
    """Line of the first row with another number of fields, by a slow and exact reader; 0 when there is none."""
    most = csv.field_size_limit(len(raw) + 1)
    try:
        reader = csv.reader(io.TextIOWrapper(io.BytesIO(raw), "utf-8-sig", newline=""), delimiter=separator)
        return next((reader.line_num for row in reader if row and len(row) != width), 0)
    finally:
        csv.field_size_limit(most)


def _sniff(line: str) -> str:
    """The separator that cuts the header into most fields; a comma when none does."""
    outside = "".join(part for i, part in enumerate(line.split('"')) if i % 2 == 0)
    return max(SEPARATORS, key=lambda s: (outside.count(s), -SEPARATORS.index(s)))


def _header(line: str, separator: str) -> list[str]:
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


def check_targets(written: Iterable[str | Path | None], read: Iterable[str | Path | None]) -> None:
    """PolicyError when one file would be written twice; InputError when a file that is read would be written over."""
    targets = [Path(p) for p in written if p is not None]
    for i, path in enumerate(targets):
        if any(path.resolve() == other.resolve() for other in targets[:i]):
            raise PolicyError(f"{str(path)!r} is named for two of release, certificate and report; name another file")
        for source in read:
            check_target(path, source)


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
    """Write by the file's ending, in place; use ``publish_file`` around it.

    Raises InputError for what the format cannot hold.
    """
    import polars as pl

    kind = kind_of(path)
    separator = one_character(separator) or usual_separator(path)
    try:
        if kind == "parquet":
            frame.write_parquet(path)
        elif kind == "excel":
            _store_excel(frame, path)
        elif path.name.lower().endswith(".gz"):
            with open(path, "wb") as raw, gzip.GzipFile("", "wb", compresslevel=6, mtime=0, fileobj=raw) as file:
                file.write(_flat(frame).write_csv(separator=separator).encode())
        else:
            _flat(frame).write_csv(path, separator=separator)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{path.suffix} cannot be written ({type(error).__name__}: {_short(error)})") from None


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns that text can hold: durations as ISO text; InputError for lists, structures, bytes and objects."""
    import polars as pl

    for name, kind in frame.schema.items():
        if kind.is_nested() or kind in (pl.Object, pl.Binary):
            raise InputError(f"column {name!r} holds {kind}, which has no place in CSV or Excel; write Parquet")
    return frame.with_columns(pl.col(n).dt.to_string("iso") for n, k in frame.schema.items() if k == pl.Duration)


def _store_excel(frame: pl.DataFrame, path: Path) -> None:
    import polars as pl

    if frame.height > 1_048_575 or frame.width > 16_384:
        raise InputError(
            f"an Excel sheet holds 1,048,575 rows and 16,384 columns, this table has {frame.height} and {frame.width}; "
            "write CSV or Parquet"
        )
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"Excel files are written as .xlsx, not {path.suffix}; name another file")
    frame = _flat(frame).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    for name, kind in frame.schema.items():
        column = frame[name]
        if kind == pl.String and (column.str.len_chars().max() or 0) > 32_767:  # type: ignore[operator]
            raise InputError(f"column {name!r} has a text of more than 32,767 characters; write CSV or Parquet")
        if kind.is_integer() and any(abs(v) > 2**53 for v in (column.min(), column.max()) if isinstance(v, int)):
            raise InputError(f"column {name!r} has a number past 2^53, which Excel rounds; write CSV or Parquet")
    if (
        frame.height
        and frame.select(pl.all_horizontal(pl.all().is_null() | (pl.all().cast(pl.String) == ""))).to_series().any()
    ):
        raise InputError("a row is without any value, which an Excel sheet cannot show; write CSV or Parquet")
    try:
        frame.write_excel(path)
    except ImportError:
        raise MissingDependencyError.needed("xlsxwriter", "writing Excel", "excel") from None
    except Exception as error:  # the writer has errors of its own around those of the system
        raise OSError(
            getattr(error.args[0], "errno", None) or 5, f"writing Excel failed ({type(error).__name__})"
        ) from None


def write_table(frame: pl.DataFrame, path: str | Path, *, separator: str | None = None) -> None:
    """Write a table that needs no judgement (a crosswalk, say), whole or not at all."""
    publish_file(path, lambda temporary: store(frame, temporary, separator))
