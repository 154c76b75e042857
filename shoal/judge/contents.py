"""The judge of a file's contents: whether a released file contains nothing except its rows.

Each format is compared with what shoal's engines write in it.
"""

from __future__ import annotations

import codecs
import html
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from shoal.judge.file import marks_rows, read_release, special_bits, unreadable
from shoal.judge.parquet import beyond_parquet
from shoal.judge.tables.large import MANIFEST, files_in, read_manifest, rows_in
from shoal.paths import is_packed, kind_of


def beyond_rows(path: Path, separator: str | None = None, seen: dict[str, set[int]] | None = None) -> str | None:
    """What a released file contains except its rows, as a part of a sentence that holds no value; None if nothing was
    found. Each format is compared with what shoal's engines write in it.

    CSV: a row with more or fewer fields than the header, or that ends in another way; quotes that no value needs; a
    mark of the order of bytes; another name in a .gz. Parquet: see ``shoal.judge.parquet``. Excel: parts, sheets, tags,
    texts, properties, and formats that no released workbook has; cells of another type or format than their column.

    seen  as in ``beyond_parquet``

    Raises VerificationError for a damaged file. O(bytes of the file).
    """
    kind = kind_of(path)
    if kind == "parquet":
        return beyond_parquet(path, seen)
    if kind == "excel":
        return _beyond_workbook(path)
    if kind == "csv":
        return _ragged(_blocks(path), ord(separator or ","))
    odd = [c.name for c in read_release(path) if marks_rows(special_bits(c))]  # pyreadstat tells of other things
    return f"equal values of column {odd[0]!r} in other bits" if odd else None


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
    seen: dict[str, set[int]] = {}
    for file in files:
        more = beyond_rows(file, separator, seen)
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
    """Whether a row of a CSV has more or fewer fields than the header, another end, or quotes that no writer writes.

    A text in quotes can contain the end of a line, so whether quotes are open and the fields of the open row are kept
    from one block to the next. Every second quote opens a text; a doubled one closes it and opens it again.
    """
    before_text, after_text = np.zeros(256, bool), np.zeros(256, bool)
    before_text[[mark, _LINE, _QUOTE]] = after_text[[mark, _LINE, _QUOTE]] = True
    width, fields, inside, end = -1, 0, 0, _LINE
    for block in _of_lines(blocks):
        if width < 0 and block.startswith(codecs.BOM_UTF8):
            return "a mark of the order of its bytes"
        held = np.frombuffer(block, np.uint8)
        lines, marks, returns, quotes = (np.flatnonzero(held == byte) for byte in (_LINE, mark, _RETURN, _QUOTE))
        if quotes.size or inside:
            opened, closed = quotes[inside::2], quotes[1 - inside :: 2]
            last = np.where(opened > 0, held[opened - 1], _LINE)
            following = held[closed[closed + 1 < held.size] + 1]
            if not (before_text[last].all() and after_text[following].all()):
                return _AROUND_QUOTES
            if _needless(held, opened, closed[inside:], last, mark):
                return "a value in quotes that needs none"
            lines, marks, returns = (
                at[(np.searchsorted(quotes, at) + inside) % 2 == 0] for at in (lines, marks, returns)
            )
            inside = (inside + quotes.size) % 2
        if returns.size:
            return "a carriage return without quotes"
        counts = np.diff(np.searchsorted(marks, lines), prepend=0)
        if lines.size:
            counts[0] += fields
            width = int(counts[0]) if width < 0 else width
            if (counts != width).any():
                return _FIELDS
        fields = marks.size - int(np.searchsorted(marks, lines[-1])) if lines.size else fields + marks.size
        end = block[-1]
    return _FIELDS if inside or end != _LINE else None


def _of_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in blocks that end with a line, except perhaps the last one."""
    open_line: list[bytes] = []
    for block in blocks:
        end = block.rfind(b"\n") + 1
        if end:
            yield b"".join([*open_line, block[:end]])
            open_line = []
        open_line.append(block[end:])
    if any(open_line):
        yield b"".join(open_line)


_AROUND_QUOTES = "a field with a text before or after its quotes"
_FIELDS = "a row with more or fewer fields than the header"


def _needless(held: np.ndarray, opened: np.ndarray, closed: np.ndarray, last: np.ndarray, mark: int) -> bool:
    """Whether a field has quotes and no byte that needs them. Rows with them would differ from others of their class.

    opened, closed  int64: places of the quotes that open and close the texts that begin in this block
    last            uint8: for each of ``opened``, the byte before it
    """
    opened, last = opened[: closed.size], last[: closed.size]
    following = np.append(held, _LINE)[closed + 1]
    whole = (following != _QUOTE) & (last != _QUOTE) & (closed > opened + 1)
    special = np.cumsum(np.isin(held, [mark, _LINE, _RETURN]), dtype=np.int32)
    return bool((special[closed[whole]] == special[opened[whole]]).any())


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
    return _marked(parts.get(_SHEET, ""), parts.get(_STRINGS, ""))


_CELL = re.compile(r'<c r="([A-Z]+)(\d+)"((?: s="\d+")?)((?: t="[sb]")?)(?:/>|><v>([^<]*)</v></c>)')
_TEXT = re.compile(r'<si><t(?: xml:space="preserve")?>([^<]*)</t></si>')
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")


def _marked(sheet: str, strings: str) -> str | None:
    """Whether a cell is written in another way than the others of its column, or a shared text more or less than once.

    A writer numbers the shared texts in the order in which cells show them first.
    """
    rows = sheet.partition("<sheetData>")[2].partition("</sheetData>")[0]
    cells = [found.groups() for found in _CELL.finditer(rows)]
    columns = [column for column, row, *_ in cells if row == "1"]
    last = int(cells[-1][1]) if cells else 0
    head = re.match(r'<row r="1"( spans="1:\d+")>', rows)
    bare = "".join(f'<row r="{row}"{head[1] if head else ""}></row>' for row in range(1, last + 1))
    if _CELL.sub("", rows) != bare or [(c, r) for c, r, *_ in cells] != [
        (column, str(row)) for row in range(1, last + 1) for column in columns
    ]:
        return "a row or a cell that no released sheet has"
    below = cells[len(columns) :]
    formats = {(column, form) for column, _, form, _, _ in below}
    types = {(column, kind) for column, _, _, kind, value in below if value is not None}
    if any(len({column for column, _ in held}) < len(held) for held in (formats, types)):
        return "a cell of another type or format than its column"
    written = {(kind, value) for *_, kind, value in cells if value is not None}
    if not all(_as_written(kind, value) for kind, value in written):
        return "a cell that is written in another way than shoal writes it"
    used = dict.fromkeys(int(value) for *_, kind, value in cells if kind == ' t="s"')
    texts = [_ESCAPED.sub(lambda code: chr(int(code[1], 16)), html.unescape(text)) for text in _TEXT.findall(strings)]
    alone = list(used) == list(range(strings.count("<si>"))) and len(set(texts)) == len(used) == len(texts)
    return None if alone else "a text that no cell shows, or that two entries hold"


def _as_written(kind: str, value: str) -> bool:
    """Whether the content of a cell is a number as a writer writes it."""
    if kind:
        return value.isascii() and value.isdecimal() and str(int(value)) == value
    try:
        return f"{float(value):.16G}" == value != "-0"
    except ValueError:
        return False
