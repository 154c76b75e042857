"""Files of SPSS, Stata, and SAS, by pyreadstat, which wraps the C library ReadStat.

Values with labels are read as their labels, integers as integers, and missing values as missing. SPSS and Stata files
are also written, without labels.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from shoal.engines.columns import begins_before, flat, made_one, refuse_nested
from shoal.engines.csv import refuse_twice
from shoal.engines.source import Source, codec_of, locate, wrong_format
from shoal.errors import InputError, MissingDependencyError
from shoal.paths import SPSS, STATA, ending, ends, kind_of

LONG_AGO = datetime.datetime(1980, 1, 1)  # replaces the time at which a file is written
_WHOLE = 2**53  # up to this number, a double holds every integer
_READERS = {
    ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por",
    ".dta": "read_dta", ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport",
}  # fmt: skip
_ICONV = {"utf-8": "UTF-8", "latin-1": "ISO-8859-1", "cp1252": "WINDOWS-1252"}  # names of encodings in ReadStat


class _Program(NamedTuple):
    """The limits of a file of a statistics program."""

    name: str
    names: re.Pattern[str]  # allowed column names
    rule: str
    words: re.Pattern[str]  # reserved words
    text: int  # bytes of the longest text
    stamp: re.Pattern[bytes]  # the time of writing in the file's first bytes
    moment: str  # format of this time


_IN_SPSS = _Program(
    "SPSS", re.compile(r"(?=.{1,64}$)[^\W\d_][\w.$#@]*(?<![._])$"),
    "a letter, then letters, digits, and any of . _ $ # @, at most 64 bytes",
    re.compile("(?i:all|and|by|eq|ge|gt|le|lt|ne|not|or|to|with)$"), 32_767,
    re.compile(rb"(?s)(\$FL[23].{88})[ \d]\d \w{3} \d\d\d\d:\d\d:\d\d"), "%d %b %y%H:%M:%S",
)  # fmt: skip
_IN_STATA = _Program(
    "Stata", re.compile(r"[^\W\d]\w{0,31}$"), "a letter or _, then letters, digits, and _, at most 32 characters",
    re.compile(
        r"(_(all|b|coef|cons|n|N|pi|pred|rc|skip)|byte|double|float|if|in|int|long|str(L|\d+)|using|with)$"
    ), 2_045,
    re.compile(rb"(?s)(<stata_dta>.{0,200}<timestamp>\x11)[ \d]\d \w{3} \d{4} \d\d:\d\d"), "%d %b %Y %H:%M",
)  # fmt: skip
_FIRST_IN_SPSS = datetime.date(1582, 10, 15)  # SPSS's calendar begins with the Gregorian one
_GREATEST = 8e307  # numbers above are codes of missing values in Stata, and -1.8e308 is that of SPSS


def read_statistics(source: Source, encoding: str | None = None, *, rows: bool = True) -> pl.DataFrame:
    """The table of a file of SPSS (.sav, .zsav, .por), Stata (.dta), or SAS (.sas7bdat, .xpt).

    encoding  of its texts, if the file doesn't state it or states a wrong one
    rows      refuse a table without rows

    If each value of a column has a label of its own, the column becomes text, its labels. Otherwise, it keeps its
    numbers. Values that the file declares missing, and empty texts, which these programs treat as missing, are missing.
    Numbers are integers if all of them are whole. Raises InputError for a file that is damaged or has no columns.
    """
    frame, facts = _read_by_readstat(source, encoding)
    source.refuse_change()
    refuse_twice(frame.columns, source.name)
    if not frame.width:
        raise InputError(f"{source.name!r} has no columns")
    if rows and not frame.height:
        raise InputError(f"{source.name!r} has no rows, so there is nothing to publish")
    single = {name for name, kind in facts.readstat_variable_types.items() if kind == "float"}
    labels = facts.variable_value_labels
    return frame.select(_plain_column(c, labels.get(c.name), c.name in single) for c in frame.iter_columns())


def column_labels(path: Path, encoding: str | None = None) -> dict[str, str]:
    """The labels of columns in such a file, such as "Age of respondent"; none for any other file."""
    if kind_of(path) != "statistics":
        return {}
    _, facts = _read_by_readstat(locate(path), encoding, only_facts=True)
    return {name: text.strip() for name, text in facts.column_names_to_labels.items() if text and text.strip()}


class Codebook(NamedTuple):
    """The metadata of an SPSS, Stata, or SAS file.

    values  column -> the labels of its values, including those that no row has
    notes   its notes and its own label
    """

    values: dict[str, list[str]]
    notes: list[str]


def codebook(path: Path) -> Codebook:
    """The codebook of such a file."""
    _, facts = _read_by_readstat(locate(path), None, only_facts=True)
    values = {name: [text for text in held.values() if text] for name, held in facts.variable_value_labels.items()}
    return Codebook(values, [note for note in (*facts.notes, facts.file_label) if note])


def _read_by_readstat(source: Source, encoding: str | None, *, only_facts: bool = False) -> tuple[pl.DataFrame, Any]:
    """The rows as the library returns them, and the file's metadata."""
    try:
        import pyreadstat
    except ImportError:
        raise MissingDependencyError.needed("pyreadstat", "reading SPSS, Stata or SAS", "statistics") from None
    read: Callable[..., tuple[pl.DataFrame, Any]] = getattr(pyreadstat, _READERS[ending(source.path)])
    how = {"encoding": _ICONV[codec_of(encoding)]} if encoding is not None else {}
    if ending(source.path) == ".por":
        how = {}  # the file itself defines its characters
    try:
        return read(str(source.path), output_format="polars", metadataonly=only_facts, **how)
    except Exception as error:  # readers raise all kinds of errors, and may quote a value
        raise wrong_format(source.name, "SPSS, Stata or SAS", error) from None


def _plain_column(column: pl.Series, labels: Mapping[Any, str] | None, single: bool) -> pl.Series:
    """A column as other formats would have it.

    single  whether its numbers have single precision, so that 0.1 is 0.1
    """
    if labels and (named := _by_label(column, labels)) is not None:
        return named
    if column.dtype == pl.String:
        return column.replace("", None)
    if column.dtype == pl.Null:  # no value, and no statement about the type
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
    """The labels of the values; None unless each value of the column has a different label."""
    values = [v for v in column.unique().to_list() if v is not None and v != "" and v == v]
    texts = [labels.get(v) for v in values]
    if not values or not all(text and text.strip() for text in texts) or len(set(texts)) < len(texts):
        return None
    return column.replace_strict(values, texts, default=None, return_dtype=pl.String)


def refuse_for_statistics(path: str | Path, frame: pl.DataFrame, recoded: Collection[str] = ()) -> None:
    """InputError for a table that an SPSS or Stata file can't hold, before the search.

    recoded  its columns whose texts may still change

    These programs remove trailing blanks of a text, and treat an empty text as a missing value.
    """
    path = Path(path)
    if kind_of(path) != "statistics":
        return
    if not ends(path, (*SPSS, *STATA)):
        raise InputError(f"{path.suffix} is read and not written; write .sav, .dta, .csv, or .xlsx")
    program = _IN_STATA if ends(path, STATA) else _IN_SPSS
    refuse_nested(frame)
    seen: dict[str, str] = {}
    for name, kind in frame.schema.items():
        same = name.lower() if program is _IN_SPSS else name
        if not program.names.match(name) or len(name.encode()) > 64 or program.words.match(name):
            raise InputError(
                f"{program.name} cannot hold the column name {name[:40]!r}: a name is {program.rule}; rename the "
                "column, or write CSV"
            )
        if seen.setdefault(same, name) != name:
            raise InputError(
                f"{program.name} takes the columns {seen[same]!r} and {name!r} for one; rename one of them"
            )
        if kind != pl.String and not isinstance(kind, (pl.Categorical, pl.Enum)):
            continue
        texts = frame[name].unique().cast(pl.String).drop_nulls()
        if (texts.str.len_bytes() > program.text).any():
            raise InputError(
                f"column {name!r} has a text of more than {program.text:,} bytes, which {program.name} cannot hold; "
                "write CSV or Parquet"
            )
        if (texts.str.ends_with(" ") | texts.str.contains("\0", literal=True)).any():
            raise InputError(
                f"column {name!r} has texts that end in a blank or hold a NUL, which {program.name} does not keep; "
                "remove these characters, or write CSV"
            )
        if name not in recoded and frame[name].null_count() and (texts == "").any():
            raise InputError(
                f"column {name!r} has empty texts and missing values, which {program.name} cannot distinguish; write "
                f"CSV or Parquet, or {made_one(name)}"
            )


def text_in_statistics(column: pl.Series) -> bool:
    """Whether a column must be text in an SPSS or Stata file, because a number would not represent it exactly.

    Both have only doubles. A date counts days, and a moment seconds or milliseconds, without a zone.
    """
    kind = column.dtype
    if kind in (pl.Boolean, pl.Duration) or kind.is_decimal():
        return True
    if kind == pl.Time:
        return bool((column.to_physical() % 1_000_000_000 != 0).any())
    if isinstance(kind, pl.Datetime):
        fine = {"ns": 1_000_000_000, "us": 1_000_000, "ms": 1_000}[kind.time_unit]
        return (
            kind.time_zone is not None
            or bool((column.to_physical() % fine != 0).any())
            or begins_before(column.dt.date(), _FIRST_IN_SPSS)
        )
    if kind == pl.Date:
        return begins_before(column, _FIRST_IN_SPSS)
    if kind.is_integer():
        return any(isinstance(v, int) and abs(v) > _WHOLE for v in (column.min(), column.max()))
    return kind.is_float() and bool((column.abs() > _GREATEST).any())


def store_statistics(frame: pl.DataFrame, path: Path) -> None:
    """Write an SPSS or Stata file with numbers, dates, and texts, without labels. The same rows give the same bytes."""
    refuse_for_statistics(path, frame)
    try:
        import pyreadstat
    except ImportError:
        raise MissingDependencyError.needed("pyreadstat", "writing SPSS or Stata", "statistics") from None
    frame = flat(frame, text_in_statistics)
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum, pl.Null).cast(pl.String))
    program = _IN_STATA if ends(path, STATA) else _IN_SPSS
    try:
        if program is _IN_STATA:
            pyreadstat.write_dta(frame, str(path), version=14)
        else:
            pyreadstat.write_sav(frame, str(path), compress=ends(path, (".zsav",)))
    except Exception as error:  # the writer doesn't report whether the disk is full, and may quote a value
        raise OSError(5, f"writing {program.name} failed ({type(error).__name__})") from None
    _without_time(path, program)


def _without_time(path: Path, program: _Program) -> None:
    """Replace the time of writing in the file by a constant."""
    with open(path, "r+b") as file:
        head = file.read(512)
        found = program.stamp.match(head)
        if found is None:
            raise InputError(f"{path.suffix} was written with a head that shoal does not know; write CSV or Parquet")
        file.seek(found.end(1))
        file.write(LONG_AGO.strftime(program.moment).encode())
