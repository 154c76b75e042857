"""Reading CSV: text exactly as it is written, by two readers that must agree.

``examine`` finds records, columns, and header in the bytes, exactly by RFC 4180. It reads slices, and only looks for
quotes, separators, and line ends. Polars, or another engine, reads the values, and must find the same records and
columns. Neither repairs a file: violations of the rules are refused with line and column, and no message contains a
value.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from shoal.engines.source import Source, codec_of, is_several, locate, parts_of
from shoal.errors import InputError, PolicyError
from shoal.paths import is_map, kind_of, usual_separator

if TYPE_CHECKING:
    import polars as pl


_WINDOWS = re.compile(rb"[\x80-\x9f]")  # characters of Windows-1252 that Latin-1 lacks
_UNKNOWN = {  # for each encoding, bytes that are no character, and a hint
    "latin-1": (
        _WINDOWS,
        "a byte that is no letter in Latin-1; if a program on Windows wrote the file, say ⟨encoding='windows-1252'⟩",
    ),
    "cp1252": (
        re.compile(rb"[\x81\x8d\x8f\x90\x9d]"),
        "a byte that is no character in Windows-1252; save the file as UTF-8",
    ),
}
_ROW_NAMES = ", or write the file without the names of rows (row.names = FALSE in R, index=False in pandas)"
_SLICE = 1 << 18
_LONGEST = 1 << 28
_LF, _CR, _QUOTE = 10, 13, 34


class FileStructure(NamedTuple):
    """The structure of a file.

    names    fields of the header
    records  rows after the header; a blank line isn't one, except in a file with one column, where it is a missing
             value
    blank    int64[m]  positions of the blank lines in the sequence of records and blank lines, from 0
    longest  bytes of the longest record
    leading  blank lines before the header
    crlf     lines that end in CR LF
    lf       lines that end in LF alone
    inner    line feeds inside quotes
    beyond   whether there are characters of Windows-1252 that Latin-1 lacks; False for other encodings
    """

    names: tuple[str, ...]
    records: int
    blank: np.ndarray
    longest: int
    leading: int
    crlf: int
    lf: int
    inner: int
    beyond: bool = False


class _Marks(NamedTuple):
    """A piece of a CSV that ends with a record, and the positions of separators, line feeds, and quotes.

    body, array  its bytes
    places       int64[m]  positions of separators and line feeds outside quotes, rising
    quotes       int64[q]  positions of quotes
    lines        number of line feeds, including those inside quotes
    """

    body: bytes
    array: np.ndarray
    places: np.ndarray
    quotes: np.ndarray
    lines: int


def examine(file: BinaryIO, separator: str, name: str, *, codec: str = "utf-8") -> FileStructure:
    """The structure of a CSV; InputError with line and column for an invalid file.

    file       its bytes, from the beginning
    separator  one ASCII character
    name       the file's name, for messages
    codec      of its texts: "utf-8", "latin-1", or "cp1252"

    O(bytes) time. Memory for one slice, or for the longest record if it is larger.
    """
    found = _FileFacts(name, separator, codec)
    for marks in _whole_records(file, found):
        found.add(marks)
    if found.names is None:
        raise InputError(f"{name!r} is empty; it has neither a header nor rows")
    blank = np.concatenate(found.blank) if found.blank else np.zeros(0, np.int64)
    return FileStructure(
        found.names,
        found.records,
        blank,
        found.longest,
        found.leading,
        found.crlf,
        found.ends - found.crlf,
        found.lines - found.ends,
        found.beyond,
    )


def _whole_records(file: BinaryIO, found: _FileFacts) -> Iterator[_Marks]:
    """The file in pieces that end at line ends outside quotes."""
    tail = file.read(_SLICE).removeprefix(codecs.BOM_UTF8)
    if tail.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in tail[:2]:
        raise InputError(f"{found.name!r} is UTF-16; save it as UTF-8 first")
    while tail:
        more = file.read(max(_SLICE, len(tail)))
        if not more and not tail.endswith((b"\n", b"\r")):
            tail += b"\n"  # the last line may have no line end
        marks = found.marks(tail, last=not more)
        yield marks
        tail = tail[len(marks.body) :] + more
        if not more:
            return
        if len(tail) - len(more) > _LONGEST:
            found.refuse(marks, len(marks.body), f"a record of more than {_LONGEST >> 20} MB begins: a quote left open")


@dataclass
class _FileFacts:
    """The structure of the part of a file that has been read."""

    name: str
    separator: str
    codec: str
    names: tuple[str, ...] | None = None
    records: int = 0
    lines: int = 0
    ends: int = 0
    leading: int = 0
    longest: int = 0
    crlf: int = 0
    blank: list[np.ndarray] = field(default_factory=list)
    beyond: bool = False

    def refuse(self, marks: _Marks, at: int, what: str) -> NoReturn:
        """InputError for the byte ``at``, with line and column."""
        before = marks.places[marks.places < at]
        ends = np.flatnonzero(marks.array[before] == _LF)
        column = before.size - (int(ends[-1]) + 1 if ends.size else 0) + 1
        line = self.lines + marks.body.count(b"\n", 0, at) + 1
        raise InputError(f"{self.name!r}, line {line}, column {column}: {what}")

    def marks(self, data: bytes, last: bool) -> _Marks:
        """The complete records at the start of ``data``, or all of ``data`` if it is the last piece."""
        array = np.frombuffer(data, np.uint8)
        feeds = array == _LF
        mark = feeds | (array == ord(self.separator))
        if b'"' not in data:
            size = len(data) if last else data.rfind(b"\n") + 1
            body = data if last else data[:size]
            lines = int(np.count_nonzero(feeds[:size]))
            made = _Marks(body, array[:size], np.flatnonzero(mark[:size]), np.zeros(0, np.int64), lines)
            self._characters(made)
            return made
        mark |= array == _QUOTE
        special = np.flatnonzero(mark)
        quote = array[special] == _QUOTE
        inside = np.add.accumulate(quote, dtype=np.uint8) & 1
        places = special[~quote & (inside == 0)]
        quotes = special[quote]
        self._quoting(_Marks(data, array, places, quotes, 0), last)
        ends = places[array[places] == _LF]
        size = len(data) if last else int(ends[-1]) + 1 if ends.size else 0
        lines = int(np.count_nonzero(feeds[:size]))
        made = _Marks(data[:size], array[:size], places[places < size], quotes[quotes < size], lines)
        self._characters(made)
        return made

    def _quoting(self, marks: _Marks, last: bool) -> None:
        """Check quotes: one opens at the start of a field, and closes at its end or as one of two in a row."""
        array, quotes = marks.array, marks.quotes
        size = array.size
        separator = ord(self.separator)
        # if the first byte of all is a quote, it is compared with itself
        before = array[np.maximum(quotes[0::2], 1) - 1]
        opens = (before == separator) | (before == _LF) | (before == _QUOTE)
        closing = quotes[1::2]
        after = array[np.minimum(closing + 1, size - 1)]  # also for the last byte, which the next slice checks again
        closes = (after == separator) | (after == _LF) | (after == _QUOTE)
        returned = np.flatnonzero(~closes & (after == _CR))
        if returned.size:
            beyond = closing[returned] + 2
            closes[returned] = (array[np.minimum(beyond, size - 1)] == _LF) | (beyond >= size)
        bad = [int(quotes[0::2][~opens][0])] if not opens.all() else []
        shut = int(np.argmin(closes)) if not closes.all() else None
        if shut is not None and (not bad or closing[shut] < bad[0]):
            begins = self.lines + marks.body.count(b"\n", 0, int(self._opened(quotes, 2 * shut))) + 1
            self.refuse(marks, int(closing[shut]), f"text after a closing quote (the field begins in line {begins})")
        if bad:
            self.refuse(marks, bad[0], "a quote inside a field that does not begin with one")
        if last and quotes.size % 2:
            self.refuse(marks, int(self._opened(quotes, quotes.size - 1)), "a quote is never closed")

    @staticmethod
    def _opened(quotes: np.ndarray, i: int) -> int:
        """The start of the quoted field with opening quote number ``i``, before all its doubled quotes."""
        adjacent = np.diff(quotes[: i + 1])[1::2] == 1  # a closing quote directly followed by an opening one
        breaks = np.flatnonzero(~adjacent)
        return int(quotes[2 * (int(breaks[-1]) + 1)] if breaks.size else quotes[0])

    def _characters(self, marks: _Marks) -> None:
        """Refuse NUL, a carriage return without line feed outside quotes, and bytes that the encoding doesn't have."""
        body = marks.body
        if b"\0" in body:
            self.refuse(marks, body.index(b"\0"), "a NUL byte, which no text has")
        if body.isascii():
            pass
        elif self.codec != "utf-8":
            pattern, what = _UNKNOWN[self.codec]
            if unknown := pattern.search(body):
                self.refuse(marks, unknown.start(), what)
            self.beyond = self.beyond or _WINDOWS.search(body) is not None
        else:
            try:
                body.decode("utf-8")
            except UnicodeDecodeError as error:
                self.refuse(
                    marks,
                    error.start,
                    "a byte that is not UTF-8; if Excel or another program on Windows wrote the file, say "
                    "⟨encoding='windows-1252'⟩; for Latin-1, say ⟨encoding='latin-1'⟩",
                )
        if b"\r" not in body or body.count(b"\r") == body.count(b"\r\n"):
            return
        alone = np.array([m.start() for m in re.finditer(rb"\r(?!\n)", body)], np.int64)
        outside = alone[np.searchsorted(marks.quotes, alone) % 2 == 0]
        if outside.size:
            self.refuse(marks, int(outside[0]), "a carriage return without a line feed; end lines with line feeds")

    def add(self, marks: _Marks) -> None:
        """Count complete records; InputError for one whose number of fields differs from the header's."""
        if not marks.body:
            return
        done = 0 if self.names else self._header(marks)
        if self.names:
            places = marks.places[np.searchsorted(marks.places, done) :]
            self._records(marks, places, done)
        ends = marks.lines
        if marks.quotes.size:
            ends = int((marks.array[marks.places] == _LF).sum())
        if b"\r" in marks.body:
            at = marks.places[marks.array[marks.places] == _LF]
            self.crlf += int((marks.array[np.maximum(at, 1) - 1] == _CR).sum())
        self.ends += ends
        self.lines += marks.lines

    def _header(self, marks: _Marks) -> int:
        """Use the first line that isn't blank as the header, and return the start of the records."""
        start, places = 0, marks.places
        ends = places[marks.array[places] == _LF]
        for end in ends.tolist():
            line = marks.body[start:end]
            if line not in (b"", b"\r"):
                cuts = places[(places >= start) & (places < end)].tolist()
                self.names = self._names(marks, line, [c - start for c in cuts], start)
                return int(end) + 1
            start = int(end) + 1
            self.leading += 1
        return start

    def _names(self, marks: _Marks, line: bytes, cuts: list[int], start: int) -> tuple[str, ...]:
        names: list[str] = []
        for a, b in zip([-1, *cuts], [*cuts, len(line)], strict=True):
            text = line[a + 1 : b]
            if b == len(line):
                text = text.removesuffix(b"\r")
            if text.startswith(b'"'):
                text = text[1:-1].replace(b'""', b'"')
            name = text.decode(self.codec)
            if not name.strip():
                if names and names[0].lower().startswith("sep="):
                    raise InputError(
                        f"the first line of {self.name!r} is a note for Excel ('sep=...'); delete this line"
                    )
                what = "a column without a name; name it in the header"
                if len(names) == 1 and not line[a + 1 :].strip(b' "\r' + line[a : a + 1]):
                    what += f"; if {TITLE}"
                self.refuse(marks, start + a + 1, what if names else f"{what}{_ROW_NAMES}")
            names.append(name)
        refuse_twice(names, self.name)
        return tuple(names)

    def _records(self, marks: _Marks, places: np.ndarray, done: int) -> None:
        if not places.size:
            return
        array, width = marks.array, len(self.names or ())
        rows, rest = divmod(places.size, width)
        last = places[width - 1 :: width]
        ends = marks.lines - (np.count_nonzero(array[:done] == _LF) if done else 0)
        # If there are as many line ends as records, and one after every ``width`` fields, every record has ``width``
        # fields.
        if not marks.quotes.size and width > 1 and not rest and ends == rows and bool((array[last] == _LF).all()):
            self.records += rows
            starts = np.concatenate([np.array([done - 1]), last[:-1]])
            self.longest = max(self.longest, int((last - starts).max(initial=0)))
            return
        is_end = np.flatnonzero(array[places] == _LF)
        last = places[is_end]
        starts = np.concatenate([np.array([done]), last[:-1] + 1])
        fields = np.diff(is_end, prepend=-1)
        blank = _blank(array, starts, last)
        wrong = np.flatnonzero((fields != width) & ~blank)
        if wrong.size:
            at = int(wrong[0])
            shown = int(fields[at])
            few = "fewer" if shown < width else "more"
            line = self.lines + marks.body.count(b"\n", 0, int(starts[at])) + 1
            raise InputError(
                f"{self.name!r} has {few} fields in line {line} than its header names: {shown}, not {width}; "
                "check the separator and the quoting"
            )
        if width == 1:  # a blank line is a missing value
            self.records += last.size
        else:
            before = self.records + sum(b.size for b in self.blank)
            self.blank.append(before + np.flatnonzero(blank))
            self.records += int(last.size - blank.sum())
        self.longest = max(self.longest, int((last - starts).max(initial=0)) + 1)


def _blank(array: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """bool[n]: which lines are empty."""
    length = ends - starts
    return (length == 0) | ((length == 1) & (array[starts] == _CR))


def refuse_twice(names: list[str], file: str) -> None:
    """InputError with the numbers of two columns that have one name."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if first.setdefault(name, number) != number:
            raise InputError(f"{file!r}: columns {first[name]} and {number} have the same name; rename one of them")


def where_needed(data: Any, separator: str | None, encoding: str | None) -> tuple[str | None, str | None]:
    """The separator and the encoding for one of several tables: those given for a CSV, and the encoding only if it
    isn't UTF-8; otherwise None."""
    codec = codec_of(encoding)
    if is_several(data):
        return (separator if separator and parts_of(data).kind == "csv" else None), None
    if not isinstance(data, (str, Path)) or not Path(data).is_file():
        return None, None
    source = locate(data)
    separator = separator if source.kind == "csv" else None
    if codec == "utf-8":
        return separator, None
    read = codecs.getincrementaldecoder("utf-8")()
    try:
        with source.open() as stream:
            while source.kind == "csv" and (part := stream.read(_SLICE)):
                read.decode(part)
            read.decode(b"", final=True)
    except UnicodeDecodeError:
        return separator, encoding
    return separator, None


SEPARATORS = ",;\t|"
TITLE = "a title or merged cells are above the header, delete the rows above the header"
# above this many columns, the header is checked first, because an unclosed quote can produce many fields
_WIDE = 1 << 12
_BROKEN = (gzip.BadGzipFile, EOFError, zlib.error)


def read_csv(
    source: Source, separator: str | None, encoding: str | None, coded: Sequence[str] = (), *, rows: bool = True
) -> pl.DataFrame:
    """The file as text columns. An empty field is a missing value, with or without quotes.

    coded  columns to read as categories
    rows   refuse a header without rows

    Blank lines are omitted; in a file with one column, each is a missing value.
    """
    import polars as pl

    codec = codec_of(encoding)
    content: bytes | Path = source.path
    if source.packed or codec != "utf-8":
        try:
            with source.open() as file:
                content = file.read()
        except _BROKEN as error:
            raise InputError(f"{source.name!r} cannot be read ({type(error).__name__})") from None
        if codec != "utf-8":  # the byte order mark of UTF-8 contradicts other encodings
            if content.startswith(codecs.BOM_UTF8):
                raise InputError(f"{source.name!r} begins with the mark of UTF-8; leave the encoding out")
            if _UNKNOWN[codec][0].search(content):  # invalid bytes are refused with line and column
                examine(
                    io.BytesIO(content), separator or sniff(io.BytesIO(content), source.name), source.name, codec=codec
                )
            content = content.decode(codec).encode("utf-8")
    with _stream(content) as stream:
        separator = separator or sniff(stream, source.name)
        stream.seek(0)
        wide = _header_line(stream).count(separator) > _WIDE
    # Polars keeps doubled quotes in the header
    kinds = {n.replace('"', '""'): pl.Categorical(pl.Categories.random()) for n in coded}
    refused: str | None = None
    with ThreadPoolExecutor(1) as beside:
        looked = beside.submit(_examined, content, separator, source.name)
        if wide:
            looked.result()
        try:
            frame = pl.read_csv(
                content, separator=separator, infer_schema=False, quote_char='"', schema_overrides=kinds, glob=False,
                null_values=[""],
            )  # fmt: skip
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            refused = type(error).__name__
    found = looked.result()  # ``examine`` reports line and column, so its error has precedence
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


def _examined(content: bytes | Path, separator: str, name: str) -> FileStructure:
    with _stream(content) as stream:
        return examine(stream, separator, name)


def structure_of(
    source: Source, separator: str | None, encoding: str | None, *, rows: bool = True
) -> tuple[FileStructure, str]:
    """(structure, separator) of a CSV that another engine will read, with the same checks, in slices.

    rows  whether a header without rows is refused
    """
    try:
        with source.open() as stream:
            separator = separator or sniff(stream, source.name)
            stream.seek(0)
            found = examine(stream, separator, source.name, codec=codec_of(encoding))
    except _BROKEN as error:
        raise InputError(f"{source.name!r} cannot be read ({type(error).__name__})") from None
    refuse_unlikely(found, separator, source.name, rows=rows)
    return found, separator


def refuse_unlikely(found: FileStructure, separator: str, name: str, *, rows: bool = True) -> None:
    """InputError for a header without rows, and for a single column that another separator would split."""
    if len(found.names) == 1:
        other = next((s for s in SEPARATORS if s in found.names[0] and s != separator), None)
        if other is not None:
            raise InputError(
                f"the header of {name!r} is one column for the separator {separator!r} and holds {other!r}; "
                f"say ⟨separator={other!r}⟩"
            )
    if rows and not found.records:
        raise InputError(f"{name!r} has a header and no rows, so there is nothing to publish")


def _agreed(frame: pl.DataFrame, found: FileStructure, content: bytes | Path, separator: str, name: str) -> None:
    """InputError with the first line on which the two readers disagree, which would be a defect of one of them."""
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
    """A field separator as one character (\\t stands for a tab); PolicyError otherwise."""
    if separator is None:
        return None
    if not isinstance(separator, str):
        raise PolicyError(f"separator is one {type(separator).__name__}; give one character, such as ';'")
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0':
        raise PolicyError(f"separator {separator!r}: give one ASCII character that is no quote, such as ';' or '\\t'")
    return separator


def separator_of(path: str | Path) -> str | None:
    """The separator of a CSV; None for another file."""
    if kind_of(path) != "csv" or is_map(path) or not Path(path).is_file():
        return None
    source = locate(path)
    with source.open() as stream:
        return sniff(stream, source.name)


def sniff(stream: BinaryIO, name: str) -> str:
    """The separator that splits the header into the most fields; a comma if none does. A .tsv with a tab has tabs.

    Raises InputError if two separators do equally, because the choice would be a guess, and if only the lines after the
    header have separators, because it is then a title.
    """
    line = _header_line(stream)
    outside = _outside_quotes(line)
    if (usual := usual_separator(name)) != "," and usual in outside:
        return usual
    most = max(outside.count(s) for s in SEPARATORS)
    best = [s for s in SEPARATORS if outside.count(s) == most]
    if most and len(best) > 1:
        shown = " and ".join(repr(s) for s in best)
        raise InputError(f"the header of {name!r} is cut into as many columns by {shown}; say which with ⟨separator⟩")
    if not most:
        _refuse_title(stream, name)
    return best[0] if most else ","


def _outside_quotes(line: str) -> str:
    return "".join(part for i, part in enumerate(line.split('"')) if i % 2 == 0)


def _refuse_title(stream: BinaryIO, name: str) -> None:
    """InputError if the header has no separator, and each of the next lines has equally many of one."""
    stream.seek(0)
    held = stream.read(1 << 16).removeprefix(codecs.BOM_UTF8).decode("latin-1").splitlines()
    lines = [_outside_quotes(line) for line in held if line.strip()][1:20]
    for mark in SEPARATORS:
        each = {line.count(mark) for line in lines}
        if len(lines) > 1 and len(each) == 1 and each != {0}:
            raise InputError(
                f"the first line of {name!r} has no {mark!r}, and each of the next has {max(each)}: if it is a title, "
                "delete it, so that the names of the columns come first; if the file has one column, say "
                f"⟨separator={next(s for s in SEPARATORS if s != mark)!r}⟩"
            )


def other_separator(source: Source, separator: str, wanted: Sequence[str]) -> str | None:
    """A separator that, unlike ``separator``, gives a header with all wanted columns; None if there is none."""
    with source.open() as stream:
        line = _header_line(stream)
    for other in SEPARATORS:
        lines = io.StringIO(line, newline="")  # a quoted name can contain line breaks
        if other != separator and set(wanted) <= set(next(csv.reader(lines, delimiter=other), [])):
            return other
    return None


def _header_line(stream: BinaryIO) -> str:
    """The first line that isn't blank, to its end outside quotes. Read as Latin-1, so that any bytes are text."""
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
