"""Tables on disk: CSV (also .gz), Parquet and Excel in and out, text kept exactly as it stands."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.engines.csv import one_character, read_csv, sniff
from shoal.engines.excel import read_excel
from shoal.engines.source import kind_of, locate
from shoal.errors import InputError, MissingDependencyError, PolicyError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    coded: Sequence[str] = (),
    rows: bool = True,
) -> pl.DataFrame:
    """The whole file as a Polars frame.

    path       CSV (also .gz), Parquet or Excel, told by the ending; anything else is read as CSV; the name is literal
    separator  of a CSV; told from the header when None
    encoding   of a CSV: "utf-8" or "latin-1"; UTF-8 when None
    coded      columns of a CSV to read as categories, which is faster for columns that will be grouped
    rows       refuse a table without rows

    CSV columns are text exactly as written (``01234`` stays ``01234``), an empty field is a missing value; Parquet
    and Excel keep their types.  Raises InputError when the file is missing, breaks the rules of its format, has a
    column without a name or two of one name.
    """
    import polars as pl

    source = locate(path)
    if source.kind == "csv":
        return read_csv(source, one_character(separator), encoding, coded, rows=rows)
    if source.kind == "excel":
        return read_excel(source, rows=rows)
    try:
        frame = pl.read_parquet(source.path, glob=False, hive_partitioning=False)
    except pl.exceptions.DuplicateError:
        raise InputError(f"{source.name!r}: two columns have the same name; rename one of them") from None
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{source.name!r} cannot be read as Parquet ({type(error).__name__})") from None
    if not all(name.strip() for name in frame.columns):
        raise InputError(f"{source.name!r}: a column has no name; name it")
    if rows and not frame.height:
        raise InputError(f"{source.name!r} has no rows, so there is nothing to publish")
    return frame


def separator_of(path: str | Path) -> str | None:
    """The separator ``read_table`` finds in a CSV; None for a file that is not one."""
    if kind_of(path) != "csv" or not Path(path).is_file():
        return None
    source = locate(path)
    with source.open() as stream:
        return sniff(stream, source.name)


def usual_separator(path: str | Path) -> str:
    """What stands between the fields of a new file: a tab in .tsv, else a comma."""
    return "\t" if Path(path).name.lower().removesuffix(".gz").endswith(".tsv") else ","


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
