"""The judge of a file's contents: whether a released file contains nothing except its rows.

Each format is compared with what shoal's engines write in it.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from shoal.judge.file import unreadable
from shoal.judge.parquet import beyond_parquet
from shoal.judge.tables.large import MANIFEST, files_in, read_manifest, rows_in
from shoal.paths import is_packed, kind_of


def beyond_rows(path: Path, separator: str | None = None) -> str | None:
    """What a released file contains except its rows, as a part of a sentence that holds no value; None if nothing was
    found. Each format is compared with what shoal's engines write in it.

    CSV: a row with more or fewer fields than the header, a text around quotes, another name in a .gz. Parquet: see
    ``shoal.judge.parquet``. Excel: parts, sheets, tags, texts, properties, and formats that no released workbook has.

    Raises VerificationError for a damaged file. O(bytes of the file).
    """
    kind = kind_of(path)
    if kind == "parquet":
        return beyond_parquet(path)
    if kind == "excel":
        return _beyond_workbook(path)
    return _ragged(_blocks(path), ord(separator or ",")) if kind == "csv" else None  # pyreadstat tells of the others


def beyond_parts(folder: Path, separator: str | None = None) -> str | None:
    """What a folder of parts contains except their rows: in the manifest, or in a part. None if nothing was found.

    The manifest states the rows and bytes of each part, and nothing else; the parts are numbered. O(bytes of all).
    """
    manifest, files = read_manifest(folder), files_in(folder)
    parts = [
        {"file": file.name, "rows": rows_in(file, separator), "bytes": file.stat().st_size, "sha256": part["sha256"]}
        for file, part in zip(files, manifest["parts"], strict=True)
    ]
    made_by = {"shoal": dict(manifest.get("made_by") or {}).get("shoal")}
    written = {"format": 1, "made_by": made_by, "rows": sum(part["rows"] for part in parts), "parts": parts}
    plain = (json.dumps(written, indent=2) + "\n").encode() == (folder / MANIFEST).read_bytes()
    if not plain or not _HASHES.issuperset("".join(part["sha256"] for part in parts)):
        return f"{MANIFEST!r} with other entries than rows, bytes and SHA-256 of its parts"
    if not isinstance(made_by["shoal"], str) or not _RELEASE.fullmatch(made_by["shoal"]):
        return f"{MANIFEST!r} with a name that is no version of shoal"
    if [file.name for file in files] != [f"part-{number:05d}{files[0].suffix}" for number in range(len(files))]:
        return "parts with names that no release has"
    for file in files:
        more = beyond_rows(file, separator)
        if more is not None:
            return f"{file.name!r} with {more}"
    return None


_HASHES = set("0123456789abcdef")
_RELEASE = re.compile(r"\d+(\.\d+){1,3}((a|b|rc|\.dev|\.post)\d+)?")


def _blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file in blocks, unpacked; VerificationError if a .gz is damaged, or contains more than one file
    without a name."""
    if not is_packed(path):
        with open(path, "rb") as raw:
            yield from iter(lambda: raw.read(_BLOCK), b"")
        return
    packed = zlib.decompressobj(zlib.MAX_WBITS | 16)
    with open(path, "rb") as raw:
        if raw.read(8) != _GZIP:
            raise unreadable(path, EOFError())
        raw.seek(0)
        try:
            for part in iter(lambda: raw.read(_BLOCK), b""):
                if packed.eof:
                    raise EOFError
                yield packed.decompress(part)
        except (zlib.error, EOFError):
            raise unreadable(path, EOFError()) from None
    if not packed.eof or packed.unused_data:
        raise unreadable(path, EOFError())


_BLOCK = 1 << 20
_GZIP = b"\x1f\x8b\x08\0\0\0\0\0"  # neither a name nor a time
_LINE, _QUOTE, _RETURN = b'\n"\r'


def _ragged(blocks: Iterable[bytes], mark: int) -> str | None:
    """Whether a row of a CSV has more or fewer fields than the header, or quotes that no writer writes.

    A block may end anywhere, so the open row, the open quotes, and the last byte are kept from one to the next. Of the
    quotes, every second one opens a text; a doubled one closes it and opens it again.
    """
    before_text, after_text = np.zeros(256, bool), np.zeros(256, bool)
    before_text[[mark, _LINE, _QUOTE]] = after_text[[mark, _LINE, _RETURN, _QUOTE]] = True
    width, fields, inside, before = -1, 0, 0, _LINE
    for block in filter(None, blocks):
        held = np.frombuffer(block, np.uint8)
        lines, marks, quotes = (np.flatnonzero(held == byte) for byte in (_LINE, mark, _QUOTE))
        if before == _QUOTE and not inside and not after_text[held[0]]:
            return _AROUND_QUOTES
        if quotes.size or inside:
            opened, closed = quotes[inside::2], quotes[1 - inside :: 2]
            last = np.where(opened > 0, held[opened - 1], before)
            following = held[closed[closed + 1 < held.size] + 1]  # the next block tells what follows the last byte
            if not (before_text[last].all() and after_text[following].all()):
                return _AROUND_QUOTES
            if _needless(held, opened, closed[inside:], last):
                return "a plain value in quotes"
            lines, marks = (at[(np.searchsorted(quotes, at) + inside) % 2 == 0] for at in (lines, marks))
            inside = (inside + quotes.size) % 2
        counts = np.diff(np.searchsorted(marks, lines), prepend=0)
        if lines.size:
            counts[0] += fields
            width = int(counts[0]) if width < 0 else width
            if (counts != width).any():
                return _FIELDS
        fields = marks.size - int(np.searchsorted(marks, lines[-1])) if lines.size else fields + marks.size
        before = block[-1]
    return _FIELDS if inside or (before != _LINE and fields != width and width >= 0) else None


_AROUND_QUOTES = "a field with a text before or after its quotes"
_FIELDS = "a row with more or fewer fields than the header"
_PLAIN = np.zeros(256, bool)  # bytes that no writer quotes
_PLAIN[[byte for byte in range(128) if chr(byte).isalnum() or byte == ord("*")]] = True


def _needless(held: np.ndarray, opened: np.ndarray, closed: np.ndarray, last: np.ndarray) -> bool:
    """Whether a field of letters and digits has quotes. Rows with them would differ from other rows of their class.

    opened, closed  int64: places of the quotes that open and close the texts that begin in this block
    last            uint8: for each of ``opened``, the byte before it
    """
    opened, last = opened[: closed.size], last[: closed.size]
    following = np.append(held, _QUOTE)[closed + 1]  # what follows a quote at the block's end isn't known
    whole = (following != _QUOTE) & (last != _QUOTE) & (closed > opened + 1)
    others = np.cumsum(~_PLAIN[held], dtype=np.int32)
    return bool((others[closed[whole]] - others[opened[whole]] == 1).any())  # the closing quote is one


_PARTS = {
    "[Content_Types].xml", "_rels/.rels", "xl/_rels/workbook.xml.rels", "xl/worksheets/sheet1.xml", "xl/workbook.xml",
    "xl/tables/table1.xml", "xl/sharedStrings.xml", "xl/styles.xml", "xl/theme/theme1.xml",
    "xl/worksheets/_rels/sheet1.xml.rels", "docProps/core.xml", "docProps/app.xml",
}  # fmt: skip
_SHEET, _STRINGS, _BOOK = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml"
_TAGS = {  # of the parts that can show more than cells
    _SHEET: "worksheet dimension sheetPr sheetViews sheetView selection sheetFormatPr cols col sheetData row c v is t "
            "pageMargins tableParts tablePart",
    _STRINGS: "sst si t",
    _BOOK: "workbook fileVersion workbookPr bookViews workbookView sheets sheet calcPr",
    "xl/tables/table1.xml": "table autoFilter tableColumns tableColumn tableStyleInfo",
}  # fmt: skip
_PROPERTIES = {"", "Microsoft Excel", "0", "false", "Worksheets", "1", "Sheet1", "12.0000"}
_MADE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FORMATS = re.compile(
    r"(General|#,##0(\.0+)?(;\[Red\]-#,##0(\.0+)?)?|yyyy-mm-dd(;@| hh:mm:ss(\.0+)?)?|hh:mm:ss(\.0+)?(;@)?)"
)


def _beyond_workbook(path: Path) -> str | None:
    """What a workbook contains beyond the cells of its sheet."""
    try:
        with zipfile.ZipFile(path) as book:
            entries = sorted(book.infolist(), key=lambda entry: entry.header_offset)
            names = [entry.filename for entry in entries]
            if len(set(names)) < len(names) or not set(names) <= _PARTS:
                return "a part that no released workbook has"
            if book.comment or any(entry.comment or entry.extra for entry in entries):
                return "a comment"
            at = 0
            for entry in entries:
                if entry.header_offset != at:
                    return "bytes to which nothing refers"
                at += 30 + len(entry.filename.encode()) + entry.compress_size
            listed = sum(46 + len(entry.filename.encode()) for entry in entries) + 22
            if book.start_dir != at or path.stat().st_size != at + listed:
                return "bytes to which nothing refers"
            parts = {name: book.read(name).decode("utf-8") for name in names}
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, NotImplementedError, RuntimeError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from None
    for name, text in parts.items():
        if "<!" in text or text.count("<?") > 1:
            return "a comment"
        tags = set(re.findall(r"<([^/?\s>]+)", text))
        if name in _TAGS and not tags <= set(_TAGS[name].split()):
            return "a formula, a link, a rule, a name, or another thing that no released sheet has"
        words = {word.strip() for word in re.findall(r">([^<]*)(?=<)", text)}
        if name not in (_SHEET, _STRINGS) and not all(w in _PROPERTIES or _MADE.fullmatch(w) for w in words):
            return "a text in its properties"
    if re.search(r"<(?:row|col)\b[^>]*\s(?:hidden|collapsed|ht)=", parts.get(_SHEET, "")):
        return "a hidden row or column"
    if re.findall(r"<sheet\b([^>]*)", parts.get(_BOOK, "")) != [' name="Sheet1" sheetId="1" r:id="rId1"/']:
        return "another sheet, or one with another name"
    codes_ = re.findall(r'formatCode="([^"]*)"', parts.get("xl/styles.xml", ""))
    if not all(_FORMATS.fullmatch(code) for code in codes_):
        return "a format of cells that no released sheet has"
    return "a text that no cell shows" if _unshown(parts.get(_SHEET, ""), parts.get(_STRINGS, "")) else None


def _unshown(sheet: str, strings: str) -> bool:
    """Whether a workbook has a shared text that no cell refers to."""
    used = set(map(int, re.findall(r'<c\b[^>]*\bt="s"[^>]*><v>(\d+)</v>', sheet)))
    return used != set(range(len(re.findall(r"<si\b", strings))))
