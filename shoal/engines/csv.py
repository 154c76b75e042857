"""CSV in: text exactly as it stands, by two readers that must agree.

``structure.examine`` tells records, columns and header from the bytes; Polars reads the values.  Neither repairs
anything: a file is what RFC 4180 says it is, or it is refused with line and column.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from shoal.engines.source import Source, is_latin
from shoal.engines.structure import Structure, examine
from shoal.errors import InputError, PolicyError

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = ",;\t|"
_WIDE = 1 << 12  # columns: of more the header is looked at first, for a line may only seem to have no end
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)


def read_csv(
    source: Source, separator: str | None, encoding: str | None, coded: Sequence[str] = (), *, rows: bool = True
) -> pl.DataFrame:
    """The file as text columns; an empty field is a missing value, an empty text in quotes is an empty text.

    coded  columns to read as categories
    rows   refuse a header without rows

    Blank lines are left out, but in a file with a single column each is a missing value.
    """
    import polars as pl

    latin = is_latin(encoding)
    content: bytes | Path = source.path
    if source.packed or latin:
        try:
            with source.open() as file:
                content = file.read()
        except _BROKEN as error:
            raise InputError(f"{source.name!r} cannot be read ({type(error).__name__})") from None
        if latin:  # a mark of UTF-8 says that the text is no Latin-1
            if content.startswith(codecs.BOM_UTF8):
                raise InputError(f"{source.name!r} begins with the mark of UTF-8; leave the encoding out")
            content = content.decode("latin-1").encode("utf-8")
    with _stream(content) as stream:
        separator = separator or sniff(stream, source.name)
        stream.seek(0)
        wide = _header_line(stream).count(separator) > _WIDE
    # Polars leaves quotes in the header doubled
    kinds = {n.replace('"', '""'): pl.Categorical(pl.Categories.random()) for n in coded}
    refused: str | None = None
    with ThreadPoolExecutor(1) as beside:
        looked = beside.submit(_examined, content, separator, source.name)
        if wide:
            looked.result()
        try:
            frame = pl.read_csv(
                content, separator=separator, infer_schema=False, quote_char='"', schema_overrides=kinds, glob=False
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            refused = type(error).__name__
    found = looked.result()  # what it refuses it refuses by line and column, so it speaks first
    refuse_unlikely(found, separator, source.name, rows=rows)
    if refused is not None:
        raise InputError(f"{source.name!r} cannot be read ({refused})")
    source.refuse_change()
    _agreed(frame, found, content, separator, source.name)
    frame.columns = list(found.names)
    if not found.blank.size:
        return frame
    import numpy as np

    kept = np.ones(frame.height, bool)
    kept[found.blank] = False
    return frame.filter(pl.Series(kept))


def _stream(content: bytes | Path) -> BinaryIO:
    return io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb")


def _examined(content: bytes | Path, separator: str, name: str) -> Structure:
    with _stream(content) as stream:
        return examine(stream, separator, name)


def structure_of(source: Source, separator: str | None, encoding: str | None) -> tuple[Structure, str]:
    """(structure, separator) of a CSV that another engine will read; the same refusals, in slices."""
    try:
        with source.open() as stream:
            separator = separator or sniff(stream, source.name)
            stream.seek(0)
            found = examine(stream, separator, source.name, latin=is_latin(encoding))
    except _BROKEN as error:
        raise InputError(f"{source.name!r} cannot be read ({type(error).__name__})") from None
    refuse_unlikely(found, separator, source.name)
    return found, separator


def refuse_unlikely(found: Structure, separator: str, name: str, *, rows: bool = True) -> None:
    """InputError for a header without rows, and for one that another separator cuts where this one does not."""
    if len(found.names) == 1:
        other = next((s for s in SEPARATORS if s in found.names[0] and s != separator), None)
        if other is not None:
            raise InputError(
                f"the header of {name!r} is one column for the separator {separator!r} and holds {other!r}; "
                f"say separator={other!r}"
            )
    if rows and not found.records:
        raise InputError(f"{name!r} has a header and no rows, so there is nothing to publish")


def _agreed(frame: pl.DataFrame, found: Structure, content: bytes | Path, separator: str, name: str) -> None:
    """InputError naming the first line over which the two readers differ; that would be a defect of one of them."""
    if frame.columns != [n.replace('"', '""') for n in found.names]:
        raise InputError(f"{name!r}: two readers do not agree on the header in line {found.leading + 1}")
    if frame.height == found.records + found.blank.size:
        return
    line = 0
    with _stream(content) as stream:
        most = csv.field_size_limit(found.longest + 1)
        try:
            reader = csv.reader(io.TextIOWrapper(stream, "utf-8-sig", newline=""), delimiter=separator)
            next(row for row in reader if row)
            for ours in frame.iter_rows():
                line = reader.line_num + 1
                if [v or "" for v in ours] != (next(reader, None) or [""] * frame.width):
                    break
            else:
                line = reader.line_num + 1
        finally:
            csv.field_size_limit(most)
    raise InputError(f"{name!r}: two readers do not agree on the record in line {line}")


def one_character(separator: str | None) -> str | None:
    """A field separator as one character (a backslash and a t stand for a tab); PolicyError otherwise."""
    if separator is None:
        return None
    if not isinstance(separator, str):
        raise PolicyError(f"separator is one {type(separator).__name__}; give one character, such as ';'")
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0':
        raise PolicyError(f"separator {separator!r}: give one ASCII character that is no quote, such as ';' or '\\t'")
    return separator


def sniff(stream: BinaryIO, name: str) -> str:
    """The separator that cuts the header into most fields, a comma when none does.

    InputError when two do it equally, for then it would be a guess.
    """
    line = _header_line(stream)
    outside = "".join(part for i, part in enumerate(line.split('"')) if i % 2 == 0)
    most = max(outside.count(s) for s in SEPARATORS)
    best = [s for s in SEPARATORS if outside.count(s) == most]
    if most and len(best) > 1:
        shown = " and ".join(repr(s) for s in best)
        raise InputError(f"the header of {name!r} is cut into as many columns by {shown}; say which with separator")
    return best[0] if most else ","


def other_separator(source: Source, separator: str, wanted: Sequence[str]) -> str | None:
    """A separator that, unlike ``separator``, gives the header every column wanted; None when there is none."""
    with source.open() as stream:
        line = _header_line(stream)
    for other in SEPARATORS:
        if other != separator and set(wanted) <= set(next(csv.reader([line], delimiter=other), [])):
            return other
    return None


def _header_line(stream: BinaryIO) -> str:
    """The first line that is not blank, to its end outside quotes; Latin-1, so that any bytes are text."""
    size = 1 << 16
    head = stream.read(size)
    while True:
        text = head.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
        at = text.find(b"\n")
        while at >= 0 and text.count(b'"', 0, at) % 2:
            at = text.find(b"\n", at + 1)
        more = stream.read(size) if at < 0 and size < 1 << 24 else b""
        if not more:
            return text[: at if at >= 0 else len(text)].rstrip(b"\r").decode("latin-1")
        head += more
        size *= 2
