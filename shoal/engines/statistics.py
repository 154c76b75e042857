"""Files of SPSS, Stata and SAS as frames: values by their labels, whole numbers as such, missing values as missing.

pyreadstat reads them, which wraps the C library ReadStat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from shoal.engines.csv import refuse_twice
from shoal.engines.source import Source, codec_of, locate, spoiled
from shoal.errors import InputError, MissingDependencyError
from shoal.paths import ending, kind_of

_WHOLE = 2**53  # up to which a double holds every whole number
_READERS = {
    ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por",
    ".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport",
}  # fmt: skip
_ICONV = {"utf-8": "UTF-8", "latin-1": "ISO-8859-1", "cp1252": "WINDOWS-1252"}  # the reader's names of encodings


def read_statistics(source: Source, encoding: str | None = None, *, rows: bool = True) -> pl.DataFrame:
    """The table of a file of SPSS (.sav, .zsav, .por), Stata (.dta) or SAS (.sas7bdat, .xpt).

    encoding  of its texts, where the file does not say it or says it wrongly
    rows      refuse a table without rows

    A column is text, its labels, if each of its values has a label of its own; else it keeps its numbers.  Values that
    the file declares missing, and empty texts, which these programs take for missing, are missing.  Numbers are
    integers where all of them are whole.  InputError for a file that is damaged or has no columns.
    """
    frame, facts = _read(source, encoding)
    source.refuse_change()
    refuse_twice(frame.columns, source.name)
    if not frame.width:
        raise InputError(f"{source.name!r} has no columns")
    if rows and not frame.height:
        raise InputError(f"{source.name!r} has no rows, so there is nothing to publish")
    single = {name for name, kind in facts.readstat_variable_types.items() if kind == "float"}
    labels = facts.variable_value_labels
    return frame.select(_column(c, labels.get(c.name), c.name in single) for c in frame.iter_columns())


def column_labels(path: Path, encoding: str | None = None) -> dict[str, str]:
    """What such a file says of its columns beside their names, as "Age of respondent"; nothing for any other file."""
    if kind_of(path) != "statistics":
        return {}
    _, facts = _read(locate(path), encoding, only_facts=True)
    return {name: text.strip() for name, text in facts.column_names_to_labels.items() if text and text.strip()}


def _read(source: Source, encoding: str | None, *, only_facts: bool = False) -> tuple[pl.DataFrame, Any]:
    """The rows as the library has them, and what the file says of its columns."""
    try:
        import pyreadstat
    except ImportError:
        raise MissingDependencyError.needed("pyreadstat", "reading SPSS, Stata or SAS", "statistics") from None
    read: Callable[..., tuple[pl.DataFrame, Any]] = getattr(pyreadstat, _READERS[ending(source.path)])
    how = {"encoding": _ICONV[codec_of(encoding)]} if encoding is not None else {}
    if ending(source.path) == ".por":
        how = {}  # such a file says itself which sign is which
    try:
        return read(str(source.path), output_format="polars", metadataonly=only_facts, **how)
    except Exception as error:  # readers raise what they like, and may quote a value
        raise spoiled(source.name, "SPSS, Stata or SAS", error) from None


def _column(column: pl.Series, labels: Mapping[Any, str] | None, single: bool) -> pl.Series:
    """A column as other formats would have it.

    single  whether its numbers are of single precision, so that 0.1 is 0.1
    """
    if labels and (named := _by_label(column, labels)) is not None:
        return named
    if column.dtype == pl.String:
        return column.replace("", None)
    if column.dtype == pl.Null:  # no value at all, and nothing is said of its kind
        return column.cast(pl.String)
    if not column.dtype.is_float():
        return column
    column = column.fill_nan(None)
    least, most = column.min(), column.max()
    if not isinstance(least, float) or not isinstance(most, float):
        return column
    if math.isfinite(least) and math.isfinite(most) and least >= -_WHOLE and most <= _WHOLE:
        whole = column.cast(pl.Int64)
        if whole.cast(column.dtype).equals(column):
            return whole
    return column.cast(pl.Float32) if single else column


def _by_label(column: pl.Series, labels: Mapping[Any, str]) -> pl.Series | None:
    """The labels of the values; None unless each value of the column has one, and no other value the same."""
    values = [v for v in column.unique().to_list() if v is not None and v != "" and v == v]
    texts = [labels.get(v) for v in values]
    if not values or not all(text and text.strip() for text in texts) or len(set(texts)) < len(texts):
        return None
    return column.replace_strict(values, texts, default=None, return_dtype=pl.String)
