"""Excel in: the first sheet, with types told from all rows."""

from __future__ import annotations

import logging
import posixpath
import re
import zipfile
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from shoal.engines.source import Source, spoiled
from shoal.engines.structure import refuse_twice
from shoal.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    import polars as pl

logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns of columns without a value, which are text here
_ERROR = re.compile(rb'<(?:\w+:)?c\b(?=[^>]*\bt="e")[^>]*?\br="([A-Z]+[0-9]+)"')


def read_excel(source: Source, *, rows: bool = True) -> pl.DataFrame:
    """The first sheet; a column with one text among numbers is text.

    rows  refuse a header without rows

    InputError for a header that names no column or one twice, and for a cell that holds a spreadsheet's error, since
    such a cell would be read as a missing value.
    """
    try:
        import fastexcel
    except ImportError:
        raise MissingDependencyError.needed("fastexcel", "reading Excel", "excel") from None
    try:
        sheet = fastexcel.read_excel(source.path).load_sheet(0, header_row=None, n_rows=1)
        head = sheet.to_polars().row(0) if sheet.total_height else ()
        faulty = _first_error(source)
        frame = None
        if head and all(head):
            frame = _typed(source)
    except Exception as error:
        raise spoiled(source.name, "Excel", error) from None
    names = ["" if name is None else str(name) for name in head]
    _named(names, source.name)
    if faulty is not None:
        raise InputError(f"{source.name!r}: cell {faulty} holds an error such as #REF!; repair the cell or empty it")
    if frame is None or len(names) != frame.width:
        raise InputError(f"{source.name!r}: two readers do not agree on the header")
    if rows and not frame.height:
        raise InputError(f"{source.name!r} has a header and no rows, so there is nothing to publish")
    source.refuse_change()
    return frame


def _typed(source: Source) -> pl.DataFrame:
    """The rows; a column of whole numbers is one of integers unless one of them is beyond 64 bits."""
    import fastexcel
    import polars as pl

    try:
        return pl.read_excel(source.path, infer_schema_length=None, raise_if_empty=False)
    except pl.exceptions.InvalidOperationError:  # Polars makes integers of whole numbers, whatever their size
        kinds = fastexcel.read_excel(source.path).load_sheet(0, schema_sample_rows=None).to_polars().schema
        held = {name: pl.Float64 for name, kind in kinds.items() if kind == pl.Float64}
        return pl.read_excel(source.path, infer_schema_length=None, raise_if_empty=False, schema_overrides=held)


def _named(names: list[str], file: str) -> None:
    if not names:
        raise InputError(f"{file!r} is empty; its first sheet has neither a header nor rows")
    for number, name in enumerate(names, 1):
        if not name.strip():
            raise InputError(f"{file!r}: column {number} has no name; name it in the header")
    refuse_twice(names, file)


def _first_error(source: Source) -> str | None:
    """The first cell of the first sheet that holds an error, such as "B4"; None where there is none or no telling."""
    if not source.name.lower().endswith(".xlsx"):
        return None
    with zipfile.ZipFile(source.path) as book:
        first = _sheets(book, "xl/workbook.xml", "sheet")[0]
        relation = next(v for k, v in first.items() if k.endswith("}id"))
        target = next(
            r["Target"] for r in _sheets(book, "xl/_rels/workbook.xml.rels", "Relationship") if r["Id"] == relation
        )
        path = target.lstrip("/") if target.startswith("/") else posixpath.join("xl", target)
        found = _ERROR.search(book.read(posixpath.normpath(path)))
    return None if found is None else found[1].decode()


def _sheets(book: zipfile.ZipFile, part: str, tag: str) -> list[dict[str, Any]]:
    root = ElementTree.fromstring(book.read(part))
    return [dict(e.attrib) for e in root.iter() if e.tag.rpartition("}")[2] == tag]
