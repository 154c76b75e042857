"""The judge of Parquet files: whether a file contains nothing except its rows.

The judge reads the footer, the indexes, and the header of every page itself. What these state about the rows (the
entries of dictionaries, the ends of statistics and indexes) is read by Polars, as the rows are, and compared with them.
"""

from __future__ import annotations

import base64
import io
import json
import math
import mmap
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import MissingDependencyError, ShoalError
from shoal.judge.file import UNREADABLE, marks_rows, special_bits, unreadable

_MAGIC = b"PAR1"
_BOOLEAN, _BYTES, _FIXED = 0, 6, 7  # types of stored values
_ENCODINGS = set(range(10))
_WIDE = (pl.Int128, pl.UInt128)
_DATA, _DICTIONARY, _DATA_2 = 0, 2, 3  # types of pages
_CUT = 30  # writers may truncate ends of texts from this many bytes on
# What the parts of a file may state, by the numbers of the specification (parquet.thrift).
_FILE, _GROUP, _CHUNK = {1, 2, 3, 4, 5, 6, 7}, {1, 2, 3, 4, 5, 6, 7}, {2, 3, 4, 5, 6, 7}
_COLUMN, _ELEMENT, _STATISTICS = {1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16}, set(range(1, 11)), set(range(1, 9))
_PAGE, _PAGES = {1, 2, 3, 4}, {_DATA: (5, {1, 2, 3, 4, 5}), _DICTIONARY: (7, {1, 2, 3}), _DATA_2: (8, set(range(1, 9)))}
_ROOTS = {b"root", b"schema", b"spark_schema", b"arrow_schema"}
_LISTS = {b"list", b"element", b"item", b"array"}
_MAP: Any = getattr(pl, "Map", ())  # older versions of Polars read lists of structures
_WRITER = re.compile(rb"(Polars( \(\w+\))?|parquet-(cpp-arrow|mr|rs))( version [\d.]+)?( \(build [0-9a-f]*\))?")

_ARROW, _VERSION, _ROW = b"ARROW:schema", b"org.apache.spark.version", b"org.apache.spark.sql.parquet.row.metadata"
_CATEGORIES, _ENUMERATION = b"_PL_CATEGORICAL2", b"_PL_ENUM_VALUES2"  # types of Polars
_FIELD_KEYS = {b"PARQUET:field_id", _CATEGORIES, _ENUMERATION}
_SPARK_TYPE = re.compile(r"string|byte|short|integer|long|float|double|boolean|binary|date|timestamp(_ntz)?|void|"
                         r"decimal\(\d+,\d+\)")  # fmt: skip

Struct = dict[int, Any]


class _BeyondError(Exception):
    """A part of a sentence that says what a file contains beyond its rows."""


_ENTRY = "an entry in its metadata that no release has"


def beyond_parquet(path: Path, seen: dict[str, set[int]] | None = None) -> str | None:
    """What a Parquet file contains beyond its rows, as a part of a sentence that holds no value; None if nothing was
    found.

    seen  of several parts: the bits of zeros and NaNs in the columns of floats, to which those of this part are added

    Raises VerificationError for a damaged file, and MissingDependencyError if only pyarrow can read the types that it
    states. O(rows) for each column, and memory for a column of a row group.
    """
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            _File(path, held, {} if seen is None else seen).examine()
    except _BeyondError as found:
        return str(found)
    except (FileNotFoundError, ShoalError):
        raise
    except (
        OSError, IndexError, KeyError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError,
        MemoryError, *UNREADABLE,
    ) as error:  # fmt: skip
        raise unreadable(path, error) from None
    return None


def _refuse(wrong: bool, what: str) -> None:
    if wrong:
        raise _BeyondError(what)


def _only(stated: Mapping[int, Any], known: set[int], what: str) -> None:
    _refuse(not set(stated) <= known, f"an entry in {what} that no release has")


class _Dictionary(NamedTuple):
    """The page of a dictionary, its number of entries, and its bytes without compression."""

    page: bytes
    entries: int
    size: int


class _DataPage(NamedTuple):
    """A page of data: its place and bytes in the file, and its rows, counted in the chunk."""

    place: int
    size: int
    start: int
    rows: int


class _Statement(NamedTuple):
    """What a file states about some rows of a column chunk.

    start, rows  the rows, counted in the chunk
    ends         lowest and highest value as they are stored, each at most once; None: not stated
    nulls        missing values
    distinct     different values
    """

    start: int
    rows: int
    ends: tuple[bytes | None, bytes | None] = (None, None)
    nulls: int | None = None
    distinct: int | None = None


def _statements(stated: Struct, start: int, rows: int) -> Iterator[_Statement]:
    """What a structure ``Statistics`` states. It has two pairs of entries for the ends, an older and a newer one."""
    _only(stated, _STATISTICS, "its statistics")
    if not all(isinstance(stated.get(flag, True), bool) for flag in (7, 8)):
        raise ValueError
    yield _Statement(start, rows, (stated.get(6), stated.get(5)), stated.get(3), stated.get(4))
    yield _Statement(start, rows, (stated.get(2), stated.get(1)))


class _File:
    """A Parquet file whose footer was read."""

    def __init__(self, path: Path, held: Any, seen: dict[str, set[int]]) -> None:
        size, self.seen = len(held), seen
        if size < 12 or held[:4] != _MAGIC or held[-4:] != _MAGIC:
            raise ValueError
        self.path, self.held = path, held
        self.end = size - 8 - int.from_bytes(held[-8:-4], "little")
        self.footer, after = _struct(held, max(self.end, 4))
        if after != size - 8 or self.end < 4:
            raise _BeyondError("bytes to which nothing refers")
        self.elements: list[Struct] = self.footer[2]
        self.leaves = list(_leaves(self.elements))
        self.rows = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        self.types = self.rows.collect_schema()
        self.spans: set[tuple[int, int]] = set()  # the places of pages and indexes

    def examine(self) -> None:
        """Raise ``_BeyondError`` at the first thing that is no row and that no writer of a release states."""
        _only(self.footer, _FILE, "its metadata")
        _refuse(not _WRITER.fullmatch(self.footer.get(6, b"Polars")), "a name of its writer that no release has")
        orders = self.footer.get(7, [])
        _refuse(len(orders) not in (0, len(self.leaves)) or any(o not in ({1: {}}, {2: {}}) for o in orders), _ENTRY)
        self._columns()
        unseen = self._keys()
        start = 0
        for number, group in enumerate(self.footer[4]):
            _only(group, _GROUP, "its metadata")
            _refuse(bool(group.get(4)), "a statement about the order of its rows")
            _refuse(group.get(7, number) != number or len(group[1]) != len(self.leaves), _ENTRY)
            chunks = [_Chunk(self, chunk, leaf) for chunk, leaf in zip(group[1], self.leaves, strict=True)]
            loose, packed = (sum(chunk.meta[at] for chunk in chunks) for at in (6, 7))
            _refuse(group[2] not in (loose, packed) or group.get(6, packed) != packed, _ENTRY)
            _refuse(group.get(5, 0) not in (0, *(chunk.begin for chunk in chunks[:1])), _ENTRY)
            for chunk in chunks:
                cells = chunk.examine(start, group[3])
                if chunk.column in unseen:
                    unseen[chunk.column] -= {text.decode() for text in cells.unique().drop_nulls().to_list()}
            start += group[3]
        if start != self.footer[3]:
            raise ValueError
        for name in (name for name, values in unseen.items() if values):
            raise _BeyondError(f"values of column {name!r} that no row has")
        self._other_bytes()

    def _columns(self) -> None:
        """Examine the names, types, and numbers of columns."""
        root, *others = self.elements
        _refuse(root[4] not in _ROOTS, "a name of its table")
        names = [name.decode() for (name, *_), _ in self.leaves]
        _refuse(list(dict.fromkeys(names)) != self.types.names(), "a column that its reader doesn't show")
        numbers = [e[9] for e in others if e.get(9, -1) >= 0]
        _refuse(len(set(numbers)) < len(numbers) or any(n > len(others) for n in numbers), _ENTRY)
        for element in self.elements:
            _only(element, _ELEMENT, "its metadata")
            _refuse((10 in element and not _is_type(element)) or (2 in element and element[1] != _FIXED), _ENTRY)

    def _keys(self) -> dict[str, set[str]]:
        """Examine the keys of the metadata. Returns the columns that are enumerations, and their values."""
        entries = self.footer.get(5, [])
        keys = {entry[1]: entry.get(2, b"") for entry in entries}
        known = set(keys) <= {_ARROW, _VERSION, _ROW} and all(set(entry) <= {1, 2} for entry in entries)
        _refuse(len(keys) < len(entries) or not known, "a key in its metadata that no release has")
        _refuse(not _of_spark(keys, self.types.names()), "another statement of Spark about its columns")
        if _ARROW in keys and keys[_ARROW] != _stated_by_polars(self.types):
            _refuse_arrow(keys[_ARROW])
        return {n: set(kind.categories.to_list()) for n, kind in self.types.items() if isinstance(kind, pl.Enum)}

    def _other_bytes(self) -> None:
        """Examine bytes between pages, indexes, and the footer: some writers repeat there what the footer states."""
        footer = bytes(self.held[self.end : -8])
        for (_, at), (begin, _) in pairwise([(0, 4), *sorted(self.spans), (self.end, self.end)]):
            repeated = begin == at or (0 < begin - at < len(footer) and self.held[at:begin] in footer)
            _refuse(not repeated, "bytes to which nothing refers")


class _Chunk:
    """A column of a row group: its pages, and what is stated about its rows.

    path, element  where its values are in the table, and how they are stored
    """

    def __init__(self, file: _File, chunk: Struct, leaf: tuple[tuple[bytes, ...], Struct]) -> None:
        self.file, self.chunk, (self.path, self.element) = file, chunk, leaf
        self.meta: Struct = chunk[3]
        self.column = self.path[0].decode()
        _only(chunk, _CHUNK, "its metadata")
        _refuse(bool(self.meta.get(14)), f"a Bloom filter of column {self.column!r}")
        _only(self.meta, _COLUMN, "its metadata")
        places = [self.meta[at] for at in (9, 11) if self.meta.get(at)]
        self.begin = min(places, default=0)
        self.stop = self.begin + self.meta[7]
        if self.begin < 0 or self.meta[7] < 0:
            raise ValueError
        file.spans |= {(self.begin, self.stop)} if self.meta[7] else set()
        named = tuple(self.meta[3]) == self.path and set(self.meta[2]) <= _ENCODINGS and len(self.meta[2]) < 8
        _refuse(not named or chunk.get(2, 0) not in (0, *places, *(p + self.meta[7] for p in places)), _ENTRY)

    def examine(self, start: int, rows: int) -> pl.Series:
        """The values of the chunk, which begins at this row: texts in UTF-8. Raises ``_BeyondError``."""
        dictionary, pages, stated = self._pages(rows)
        whole = self.file.rows.select(pl.nth(self.file.types.names().index(self.column))).slice(start, rows)
        cells = whole.collect().to_series()
        flat = not cells.dtype.is_nested()
        cells = _within(cells, self.path[1:])
        if self.element[1] == _BYTES:
            cells = _as_bytes(cells)
        stated += _statements(self.meta.get(12, {}), 0, rows)
        stated += self._indexes(pages)
        if not flat:  # pages don't show to which rows they belong
            every = {end for s in stated for end in s.ends if end is not None}
            stated = [_Statement(0, len(cells), (end, None)) for end in sorted(every)]
        _refuse(
            dictionary is not None and not self._are_values(dictionary, cells),
            f"values of column {self.column!r} that no row has",
        )
        wrong = not self._agree(stated, cells, flat) or (flat and not self._agree_on_sizes(pages, cells))
        _refuse(wrong, f"statistics of column {self.column!r} that are not those of its rows")
        bits = self.file.seen.setdefault(self.column, set())
        bits |= special_bits(cells)
        _refuse(marks_rows(bits), f"equal values of column {self.column!r} in other bits")
        return cells

    def _pages(self, rows: int) -> tuple[_Dictionary | None, list[_DataPage], list[_Statement]]:
        """The dictionary, the pages of data, and what their headers state about the rows."""
        held, at, done, least, most = self.file.held, self.begin, 0, 0, 0
        dictionary, pages, stated = None, list[_DataPage](), list[_Statement]()
        while at < self.stop:
            begin, (head, at) = at, _struct(held, at)
            _refuse(head[1] not in _PAGES, "a page that no release has")
            place, known = _PAGES[head[1]]
            own = head[place]
            _only(head, _PAGE | {place}, "a page")
            _only(own, known, "a page")
            if head[3] < 0 or own[1] < 0:
                raise ValueError
            content, at = held[at : at + head[3]], at + head[3]
            if 4 in head and zlib.crc32(content) != head[4] % (1 << 32):
                raise ValueError
            least, most = least + head[2], most + head[2] + at - begin - head[3]
            if head[1] == _DICTIONARY:
                _refuse(dictionary is not None or bool(pages), "a page that no release has")
                dictionary = _Dictionary(held[begin:at], own[1], head[2])
                continue
            codes = {own[n] for n in ((2, 3, 4) if head[1] == _DATA else (4,))}
            _refuse(not codes <= _ENCODINGS, "an entry in a page that no release has")
            stated += _statements(own.get(5 if head[1] == _DATA else 8, {}), done, own[1])
            if head[1] == _DATA_2:
                stated.append(_Statement(done, own[1], nulls=own[2]))
            pages.append(_DataPage(begin, at - begin, done, own[1]))
            done += own[1]
        if at != self.stop or done != self.meta[5] or (len(self.path) == 1 and done != rows):
            raise ValueError
        counts = self.meta.get(13, [])
        many = len(pages) + (dictionary is not None)
        sound = all(set(c) == {1, 2, 3} and c[1] in _PAGES and c[2] in _ENCODINGS and c[3] >= 0 for c in counts)
        sound = sound and (not counts or not many or sum(c[3] for c in counts) == many)
        _refuse(not sound or not least <= self.meta[6] <= most, _ENTRY)
        return dictionary, pages, stated

    def _indexes(self, pages: Sequence[_DataPage]) -> list[_Statement]:
        """What the index of values states about the rows. The index of places is examined."""
        places, values = self._index(4), self._index(6)
        what = "an index of other pages"
        if places is not None:
            _only(places, {1, 2}, "an index")
            _refuse([(p[1], p[2]) for p in places[1]] != [(p.place, p.size) for p in pages], what)
            _refuse(any(set(p) != {1, 2, 3} for p in places[1]), what)
            _refuse(len(self.path) == 1 and [p[3] for p in places[1]] != [p.start for p in pages], what)
        if values is None:
            return []
        _only(values, set(range(1, 8)), "an index")
        _refuse(values[4] not in (0, 1, 2) or any(len(values[n]) != len(pages) for n in (1, 2, 3)), what)
        nulls = values.get(5, [None] * len(pages))
        stated = []
        for page, empty, low, high, missing in zip(pages, values[1], values[2], values[3], nulls, strict=True):
            _refuse(empty and bool(low or high), what)
            ends = (None, None) if empty else (low, high)
            stated.append(_Statement(page.start, page.rows, ends, page.rows if empty else missing))
            _refuse(empty and missing not in (None, page.rows), what)
        return stated

    def _index(self, place: int) -> Struct | None:
        """The index at the place that the entry of this number names; the next one states its size."""
        if not self.chunk.get(place):
            return None
        begin, stop = self.chunk[place], self.chunk[place] + self.chunk[place + 1]
        if begin < 0:
            raise ValueError
        self.file.spans.add((begin, stop))
        found, at = _struct(self.file.held, begin)
        _refuse(at != stop, "bytes to which nothing refers")
        return found

    def _agree_on_sizes(self, pages: Sequence[_DataPage], cells: pl.Series) -> bool:
        """Whether what is stated about the bytes of texts and about missing values is true."""
        sizes, places, values = self.meta.get(16, {}), self._index(4) or {}, self._index(6) or {}
        of_pages = [cells.slice(page.start, page.rows) for page in pages]
        counts = [[own.null_count(), len(own) - own.null_count()] for own in of_pages]
        whole = [cells.null_count(), len(cells) - cells.null_count()]
        good = set(sizes) <= {1, 2, 3} and sizes.get(2, []) in ([], [len(cells)])
        good = good and values.get(6, []) in ([], [len(own) for own in of_pages])  # no value is in a list
        good = good and sizes.get(3, []) in ([], whole, [len(cells)])
        good = good and values.get(7, []) in ([], [n for pair in counts for n in pair], [len(own) for own in of_pages])
        if 1 in sizes:
            good = good and sizes[1] == _bytes_in(cells)
        return good and (2 not in places or places[2] == [_bytes_in(own) for own in of_pages])

    def _are_values(self, dictionary: _Dictionary, cells: pl.Series) -> bool:
        """Whether each entry of a dictionary is the value of a row, and nothing follows the entries."""
        own = _as_bytes(cells) if cells.dtype in _WIDE else cells
        entries = self._read(dictionary, [])
        width = {1: 4, 2: 8, 4: 4, 5: 8, _FIXED: self.element.get(2, 0)}.get(self.element[1])
        size = (
            dictionary.entries * width if width is not None else _bytes_in(entries.cast(pl.Binary)) + 4 * len(entries)
        )
        once = entries.n_unique() == len(entries)  # otherwise, rows of one value could have different numbers
        return once and size == dictionary.size and bool(entries.cast(own.dtype).is_in(own.implode()).all())

    def _agree(self, stated: Sequence[_Statement], cells: pl.Series, flat: bool) -> bool:
        """Whether all that is stated about rows is true of them."""
        ends = list(dict.fromkeys(end for s in stated for end in s.ends if end is not None))
        if cells.dtype == pl.Binary:
            value: dict[bytes, Any] = {end: end for end in ends}
        elif cells.dtype in _WIDE:
            value = {end: int.from_bytes(end, "big", signed=cells.dtype == pl.Int128) for end in ends}
        else:
            value = dict(zip(ends, self._read(None, ends).cast(cells.dtype), strict=True)) if ends else {}
        whole = (cells.min(), cells.max()) if flat else (None, None)
        known: dict[tuple[int, int], tuple[Any, Any]] = {
            (0, len(cells)): whole
        }  # a page and its indexes state the same
        for s in stated:
            own, place = cells.slice(s.start, s.rows), (s.start, s.rows)
            if place not in known:
                known[place] = (own.min(), own.max()) if flat else whole
            if s.nulls not in (None, own.null_count()) or (s.distinct is not None and s.distinct > own.n_unique()):
                return False
            for at, end in enumerate(s.ends):
                if end is None:
                    continue
                if flat:  # Polars states the ends of a dictionary for each page that uses it
                    true = any(_is_end(value[end], ends[at], own, at == 0) for ends in (known[place], whole))
                else:
                    true = bool((own == pl.Series([value[end]], dtype=own.dtype)).any())
                if not true:
                    return False
        return True

    def _read(self, dictionary: _Dictionary | None, ends: Sequence[bytes]) -> pl.Series:
        """The entries of a dictionary, or values as they are stored, read by Polars from a file with a row for each."""
        count = len(ends) if dictionary is None else dictionary.entries
        if dictionary is None:
            page, encoding = b"".join(ends), 0
            if self.element[1] == _BOOLEAN:
                page = np.packbits([end != b"\0" for end in ends], bitorder="little").tobytes()
        else:  # of each entry its number, in groups of eight
            bits = max(int(count - 1).bit_length(), 1)
            groups = -(-count // 8)
            number = np.minimum(np.arange(groups * 8), max(count - 1, 0))
            packed = np.packbits(number[:, None] >> np.arange(bits) & 1, bitorder="little")
            page, encoding = bytes([bits]) + _varint(groups << 1 | 1) + packed.tobytes(), 8
        levels = _varint(count << 1) + b"\1" if self.element.get(3) == 1 else b""
        head = {1: count, 2: 0, 3: count, 4: encoding, 5: len(levels), 6: 0, 7: False}
        size = len(levels) + len(page)
        content = b"" if dictionary is None else dictionary.page
        first = len(_MAGIC) + len(content)
        content += _written({1: _DATA_2, 2: size, 3: size, 8: head}) + levels + page
        column: Struct = {1: self.element[1], 2: [0, 3, 8], 3: [b"c"], 4: self.meta[4]}
        column |= {n: _Long(x) for n, x in ((5, count), (6, len(content)), (7, len(content)), (9, first))}
        if dictionary is not None:
            column[11] = _Long(len(_MAGIC))
        kept = {n: x for n, x in self.element.items() if n in (1, 2, 3, 6, 7, 8)} | {4: b"c"}
        if 10 not in self.element.get(10, {10: 0}):  # what it states of integers is in 6 too
            kept[10] = self.element[10]
        chunk = {2: _Long(0), 3: column}
        group = {1: [chunk], 2: _Long(len(content)), 3: _Long(count)}
        footer = _written({1: 2, 2: [{4: b"root", 5: 1}, dict(sorted(kept.items()))], 3: _Long(count), 4: [group]})
        made = _MAGIC + content + footer + len(footer).to_bytes(4, "little") + _MAGIC
        return pl.read_parquet(io.BytesIO(made), glob=False, hive_partitioning=False).to_series()


def _is_end(stated: Any, held: Any, own: pl.Series, lowest: bool) -> bool:
    """Whether this is the lowest or highest of some values; texts may be truncated, and the last letter raised."""
    if isinstance(stated, float) and math.isnan(stated):
        return bool(own.is_nan().any())
    if held is None:
        return False
    if isinstance(stated, bytes) and len(stated) >= _CUT and stated != held:
        letters = [text.decode("utf-8", "surrogateescape") for text in (stated, held)]
        kept = len(letters[0]) - (0 if lowest else 1)
        return letters[0][:kept] == letters[1][:kept] and (stated < held) is lowest
    return bool(stated == held)


def _bytes_in(cells: pl.Series) -> int:
    return int(_as_bytes(cells).bin.size().sum())


def _as_bytes(cells: pl.Series) -> pl.Series:
    """Values as they are stored: texts in UTF-8, and integers of 128 bits in 16 bytes, the last first."""
    if cells.dtype in _WIDE:
        signed = cells.dtype == pl.Int128
        stored = [None if v is None else v.to_bytes(16, "little", signed=signed) for v in cells.to_list()]
        return pl.Series(cells.name, stored, dtype=pl.Binary)
    return cells if cells.dtype == pl.Binary else cells.cast(pl.String).cast(pl.Binary)


def _is_type(element: Struct) -> bool:
    """Whether the logical type of an element has the entries of the specification."""
    ((kind, held),) = element[10].items()
    if kind == 5:
        return bool(held == {1: element[7], 2: element[8]})
    if kind in (7, 8):
        return isinstance(held[1], bool) and held in [{1: held[1], 2: {unit: {}}} for unit in (1, 2, 3)]
    if kind == 10:
        return isinstance(held[2], bool) and held in [{1: bits, 2: held[2]} for bits in (8, 16, 32, 64)]
    return kind < 16 and held == {}


def _within(cells: pl.Series, path: Sequence[bytes]) -> pl.Series:
    """The values of a part of a nested column."""
    rest = list(path)
    while cells.dtype.is_nested():
        if isinstance(cells.dtype, pl.Struct):
            cells, rest = cells.struct.field(rest[0].decode()), rest[1:]
        elif isinstance(cells.dtype, _MAP) and rest[:1] == [b"key_value"]:
            cells, rest = cells.map.entries().explode(), rest[1:]
        elif set(rest[:2]) <= _LISTS:
            cells, rest = cells.explode(), rest[2:]
        else:
            raise _BeyondError("a name of a part of a column")
    if rest:
        raise _BeyondError("a name of a part of a column")
    return cells


def _leaves(elements: Sequence[Struct]) -> list[tuple[tuple[bytes, ...], Struct]]:
    """The columns without parts, in order: the path of names, and how the values are stored."""
    rest, found = iter(elements[1:]), []

    def walk(many: int, above: tuple[bytes, ...]) -> None:
        for _ in range(many):
            element = next(rest, {})
            if 5 in element and 1 not in element:
                walk(element[5], (*above, element[4]))
            else:
                found.append(((*above, element[4]), element))

    walk(elements[0][5], ())
    if next(rest, None) is not None:
        raise ValueError
    return found


def _stated_by_polars(types: pl.Schema) -> bytes | None:
    """What Polars writes about the types of these columns, with categories that have no name."""
    made = io.BytesIO()
    plain = {n: pl.Categorical() if isinstance(kind, pl.Categorical) else kind for n, kind in types.items()}
    pl.DataFrame(schema=plain).write_parquet(made)
    made.seek(0)
    stated = pl.read_parquet_metadata(made).get("ARROW:schema")
    return None if stated is None else stated.encode()


def _refuse_arrow(stated: bytes) -> None:
    """Raise ``_BeyondError`` if what Arrow states about the columns contains more than their names and types."""
    try:
        import pyarrow as arrow
    except ImportError:
        raise MissingDependencyError.needed("pyarrow", "examining a Parquet file that Arrow wrote", "duckdb") from None
    try:
        schema = arrow.ipc.read_schema(arrow.py_buffer(base64.b64decode(stated, validate=True)))
    except (arrow.ArrowException, OSError):
        raise _BeyondError("types of columns that no release has") from None
    keys = [dict(field.metadata or {}) for field in schema]
    if schema.metadata or any(set(held) - _FIELD_KEYS for held in keys):
        raise _BeyondError("a key in its metadata that no release has")
    if not all(re.fullmatch(rb"0;0;u(8|16|32);", held.get(_CATEGORIES, b"0;0;u8;")) for held in keys):
        raise _BeyondError("a name of its categories")


def _of_spark(keys: Mapping[bytes, bytes], names: Sequence[str]) -> bool:
    """Whether the metadata that Spark writes names the columns and their types, and nothing else."""
    stated = keys.get(_ROW)
    if not re.fullmatch(rb"[\d.]*", keys.get(_VERSION, b"")) or stated is None:
        return stated is None
    try:
        fields = json.loads(stated)["fields"]
        own = [{"name": f["name"], "type": f["type"], "nullable": f["nullable"], "metadata": {}} for f in fields]
        good = all(type(f["nullable"]) is bool and _SPARK_TYPE.fullmatch(f["type"]) for f in own)
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    whole = json.dumps({"type": "struct", "fields": own}, ensure_ascii=False, separators=(",", ":"))
    return good and whole.encode() == stated and [f["name"] for f in own] == list(names)


class _Long(int):
    """A number that is written in 64 bits."""


def _struct(held: Any, at: int) -> tuple[Struct, int]:
    """A structure in the compact notation of Thrift, by the numbers of its entries; and the place after it."""
    found: Struct = {}
    last = 0
    while head := held[at]:
        at += 1
        if head >> 4:
            last += head >> 4
        else:
            last, at = _whole(held, at)
        if last in found:
            raise ValueError
        found[last], at = _value(held, at, head & 15)
    return found, at + 1


def _value(held: Any, at: int, kind: int) -> tuple[Any, int]:
    """A value of a kind of Thrift: 1 and 2 truth values, 3 a byte, 4 to 6 whole numbers, 8 bytes, 9 a list, 12 a
    structure."""
    if kind in (1, 2):
        return kind == 1, at
    if kind == 3:
        return held[at], at + 1
    if kind in (4, 5, 6):
        return _whole(held, at)
    if kind == 12:
        return _struct(held, at)
    if kind == 8:
        size, at = _unsigned(held, at)
        if size > len(held) - at:
            raise ValueError
        return bytes(held[at : at + size]), at + size
    if kind != 9:
        raise ValueError
    inner, size, at = held[at] & 15, held[at] >> 4, at + 1
    if size == 15:
        size, at = _unsigned(held, at)
    if size > len(held) - at:  # an item has one byte at least
        raise ValueError
    items = []
    for _ in range(size):
        item, at = (held[at] == 1, at + 1) if inner in (1, 2) else _value(held, at, inner)
        items.append(item)
    return items, at


def _unsigned(held: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = held[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise ValueError


def _whole(held: Any, at: int) -> tuple[int, int]:
    value, at = _unsigned(held, at)
    return value >> 1 ^ -(value & 1), at


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _written(value: Any) -> bytes:
    """A value in the compact notation of Thrift."""
    if isinstance(value, dict):
        found, last = b"", 0
        for number, item in value.items():
            found += bytes([number - last << 4 | _kind(item)])
            found += b"" if isinstance(item, bool) else _written(item)
            last = number
        return found + b"\0"
    if isinstance(value, list):
        return bytes([len(value) << 4 | _kind(value[0])]) + b"".join(map(_written, value))
    if isinstance(value, bytes):
        return _varint(len(value)) + value
    return _varint(value << 1 ^ value >> 63)


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return 1 if value else 2
    kinds = {_Long: 6, int: 5, bytes: 8, list: 9, dict: 12}
    return kinds[type(value)]
