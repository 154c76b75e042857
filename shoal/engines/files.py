"""Tables on disk: CSV (also .gz), Parquet and Excel in and out, text kept exactly as it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import InputError, PolicyError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl


def read_table(path: str | Path, *, separator: str | None = None) -> pl.DataFrame:
    """The whole file as a Polars frame.

    CSV columns are text exactly as written (``01234`` stays ``01234``); Parquet and Excel keep their types.
    Raises InputError when the file is missing, ragged, or not readable in UTF-8 or Latin-1.
    """
    import polars as pl

    path = Path(path)
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    name = path.name.lower()
    if name.endswith(".parquet"):
        return pl.read_parquet(path)
    if name.endswith((".xlsx", ".xls")):
        return pl.read_excel(path)
    return pl.read_csv(path, separator=separator or ",", infer_schema=False)


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


def write_table(frame: pl.DataFrame, path: str | Path, *, separator: str | None = None) -> None:
    """Write by the file's ending, whole or not at all: a temporary file beside the target, then renamed."""
    import os
    import tempfile

    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into")
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    try:
        if path.name.lower().endswith(".parquet"):
            frame.write_parquet(temporary)
        elif path.name.lower().endswith(".xlsx"):
            frame.write_excel(temporary)
        else:
            frame.write_csv(temporary, separator=separator or ",")
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
