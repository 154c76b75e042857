"""The judge of files: reads a release from disk with its own reader.

It numbers the rows by their published cells, and checks how often each published tuple occurs. It also checks that a
file contains nothing except its rows (``beyond_rows``).
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError, MissingDependencyError, VerificationError
from shoal.paths import ending, is_packed, kind_of

_STEP = 1 << 15  # rows in one batch, so that a batch fits in the processor's cache


def codes(series: pl.Series) -> np.ndarray:
    """int64[n] codes of cells: two codes are equal exactly if the cells are. null and NaN are one value."""
    if series.dtype.is_float():
        series = series.fill_nan(None)
    if isinstance(series.dtype, (pl.Categorical, pl.Enum)):
        series = series.to_physical()
    if series.dtype.is_nested() or series.dtype == pl.Object:
        series = pl.Series(series.name, [repr(v) for v in series.to_list()])
    if series.dtype == pl.String:
        series = series.cast(pl.Categorical(pl.Categories.random())).to_physical()
    elif series.dtype.is_temporal():
        series = series.to_physical()
    narrow = series.dtype.is_integer() and series.dtype not in (pl.Int128, pl.UInt128)
    missing = series.null_count()
    if narrow and missing < len(series):
        whole = (series.fill_null(strategy="max") if missing else series).to_numpy()
        low, high = whole.min(), whole.max()
        if int(high) - int(low) < 1 << 22:
            above = whole - low if whole.dtype.kind == "u" else whole.astype(np.int64) - low
            found: np.ndarray = above.astype(np.int64, copy=False)
            return np.where(series.is_null().to_numpy(), int(high) - int(low) + 1, found) if missing else found
    return series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def number(columns: Sequence[np.ndarray], n: int) -> np.ndarray:
    """The class of every row, 0 .. classes-1."""
    return _dense(*_keys(columns, n))


def _keys(columns: Iterable[np.ndarray], n: int) -> tuple[np.ndarray, int]:
    """(int64[n] keys >= 0, equal exactly if the rows are; an exclusive upper bound of the keys)."""
    key = np.zeros(n, np.int64)
    span = 1
    for code in columns:
        width = int(code.max()) + 1 if n else 1
        if span * width >= 2**62:
            key = np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)
            span = int(key.max()) + 1
        key *= width
        key += code
        span *= width
    return key, span


def _dense(key: np.ndarray, span: int) -> np.ndarray:
    if span <= max(1 << 20, 4 * key.size):
        held = np.zeros(span, bool)
        held[key] = True
        used = np.flatnonzero(held)
        rank = np.zeros(span, np.int64)
        rank[used] = np.arange(used.size)
        return rank[key]
    return np.unique(key, return_inverse=True)[1].reshape(-1).astype(np.int64)


def numbered(key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int64[n]: the rank of each key >= 0 among the distinct keys; a row of each distinct key)."""
    number = _dense(key, int(key.max(initial=0)) + 1)
    row = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    row[number] = np.arange(number.size)
    return number, row


Counts = tuple[pl.DataFrame, np.ndarray]


def same_counts(expected: Counts, found: Counts, *, form: str = "frame") -> bool:
    """Whether two tables of tuples with counts are the same multiset, compared as text.

    expected, found  the columns in one order, and the rows of every tuple; a tuple may occur in several lines
    form             "frame" or "parquet": values have types. "csv", "excel", or "statistics": an empty text is a
                     missing value. Excel keeps 15 digits, and doesn't distinguish a day from its midnight.

    O(t log t) for t tuples, less if the columns have few distinct values.
    """
    if expected[0].columns != found[0].columns:
        return False
    # one column at a time, to save memory
    both = (_numbered(expect, see, form) for expect, see in zip(expected[0], found[0], strict=True))
    left = np.concatenate([expected[1], -np.asarray(found[1], np.int64)])
    if not left.size:
        return True
    key = _keys(both, left.size)[0]
    order = np.argsort(key)  # only equality of keys matters, not their values
    return not np.add.reduceat(left[order], np.flatnonzero(np.diff(key[order], prepend=-1))).any()


def _numbered(expected: pl.Series, found: pl.Series, form: str) -> np.ndarray:
    """The cells of both columns as whole numbers, equal exactly if their texts are. Each category is read once."""
    pair = (expected, found)
    if not all(isinstance(column.dtype, pl.Categorical) for column in pair):
        return codes(_joined(expected, found, form))
    places = [_places(column) for column in pair]
    row_of = [_rows_of(place) for place in places]
    short = [column.gather(rows[rows >= 0]) for column, rows in zip(pair, row_of, strict=True)]
    number_of = codes(pl.concat([canonical(distinct, form).rename("") for distinct in short]))
    cells = np.empty(sum(place.size for place in places), np.int32)
    done = seen = 0
    for place, rows in zip(places, row_of, strict=True):
        known = rows >= 0
        rows[known] = number_of[seen : (seen := seen + int(known.sum()))]
        numbers = rows.astype(np.int32)  # row numbers fit in int32
        for start in range(0, place.size, _STEP):
            part = place[start : start + _STEP].astype(np.intp)
            # no index is out of bounds
            np.take(numbers, part, out=cells[done : (done := done + part.size)], mode="clip")
    return cells


def _places(categories: pl.Series) -> np.ndarray:
    """The index of every row's category; missing values get the next free index."""
    place = categories.to_physical()
    if place.null_count():
        highest = place.max()
        place = place.cast(pl.Int64).fill_null(0 if highest is None else int(highest) + 1)  # type: ignore[arg-type]
    return place.to_numpy()


def _rows_of(places: np.ndarray) -> np.ndarray:
    """int64: for each index a row that has it, -1 if none has."""
    found = np.full(int(places.max()) + 1 if places.size else 0, -1, np.int64)
    for start in range(0, places.size, _STEP):
        part = places[start : start + _STEP].astype(np.intp)
        found[part] = np.arange(start, start + part.size)
    return found


def _joined(expected: pl.Series, found: pl.Series, form: str) -> pl.Series:
    """Two columns concatenated: unchanged if their types are equal and exact, otherwise as text."""
    kind = expected.dtype
    exact = kind.is_integer() or kind in (pl.Boolean, pl.Date) or kind == pl.String
    if kind == found.dtype and exact and form in ("frame", "parquet"):
        return pl.concat([expected, found.rename(expected.name)])
    return pl.concat([canonical(expected, form), canonical(found.rename(expected.name), form)])


def canonical(column: pl.Series, form: str = "frame") -> pl.Series:
    """Values as text that doesn't depend on the storage type; missing values and NaN become null.

    Whole numbers have no point, decimals no trailing zeros, and moments are in UTC.
    """
    kind = column.dtype
    excel = form == "excel"
    if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)):
        text = column.cast(pl.String)
        return text if form in ("frame", "parquet") else text.replace("", None)
    if kind.is_nested() or kind in (pl.Object, pl.Binary):
        return pl.Series([None if v is None else repr(v) for v in column.to_list()], dtype=pl.String)
    if kind.is_float() or (excel and kind.is_decimal()):
        wide = column.cast(pl.Float64).fill_nan(None)
        wide = wide.round_sig_figs(15) if excel else wide
        whole = ((wide == wide.floor()) & (wide.abs() < 2.0**53)).fill_null(False)
        return wide.cast(pl.String).zip_with(~whole, wide.set(~whole, 0.0).cast(pl.Int64).cast(pl.String))
    if kind.is_decimal():
        text = column.cast(pl.String)
        return text.str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
    if isinstance(kind, pl.Datetime):
        zone = "" if kind.time_zone is None else "Z"
        moment = column if kind.time_zone is None else column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        text = moment.cast(pl.String).str.replace(r"(\.\d*?)0+$", "$1").str.strip_suffix(".")
        return (text.str.strip_suffix(" 00:00:00") if excel else text) + zone
    if isinstance(kind, pl.Duration):
        return column.cast(pl.Duration("ns")).to_physical().cast(pl.String)
    if kind == pl.Time:
        return column.to_physical().cast(pl.String)
    return column.cast(pl.String)


def read_release(path: Path, separator: str | None = None) -> pl.DataFrame:
    """A released file as written: CSV as text (an empty field is missing), all other formats with their types."""
    try:
        if kind_of(path) == "parquet":
            return pl.read_parquet(path, glob=False, hive_partitioning=False)
        if kind_of(path) == "excel":
            return _read_excel(path)
        if kind_of(path) == "statistics":
            return _read_statistics(path)
        frame = pl.read_csv(path, infer_schema=False, separator=separator or ",", glob=False)
        return frame.rename(dict(zip(frame.columns, unquoted(frame.columns), strict=True)))
    except FileNotFoundError:
        raise InputError(f"there is no release {str(path)!r}") from None
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except pl.exceptions.PolarsError as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: Exception) -> VerificationError:
    """The error for a release that its reader refuses. It omits the reader's own message, which can contain values."""
    return VerificationError(
        f"{path.name!r} cannot be read back ({type(error).__name__}): it is damaged, or was changed after it was "
        "certified; ask for it again, or make it again"
    )


def unquoted(names: Sequence[str]) -> list[str]:
    """The names in a CSV header without doubled quotes, which Polars keeps."""
    return [name.replace('""', '"') for name in names]


def _read_excel(path: Path) -> pl.DataFrame:
    try:
        return pl.read_excel(path, infer_schema_length=None, drop_empty_rows=False)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise unreadable(path, error) from None


def _read_statistics(path: Path) -> pl.DataFrame:
    """A file of SPSS or Stata; VerificationError if it contains anything except its rows, such as a label."""
    try:
        import pyreadstat
    except ImportError:
        raise MissingDependencyError.needed("pyreadstat", "reading SPSS or Stata", "statistics") from None
    read = pyreadstat.read_dta if ending(path) == ".dta" else pyreadstat.read_sav
    if not path.is_file():
        raise FileNotFoundError
    try:
        frame, facts = read(str(path), output_format="polars", user_missing=True)
    except Exception as error:
        raise unreadable(path, error) from None
    more = (
        facts.notes, facts.file_label, facts.value_labels, facts.missing_ranges, facts.missing_user_values,
        [label for label in facts.column_labels if label],
    )  # fmt: skip
    if any(more):
        raise VerificationError(f"{path.name!r} has notes, labels or declared missing values, which shoal never writes")
    return frame.with_columns(pl.col(pl.String).replace("", None), pl.col(pl.Null).cast(pl.String))


class NotExaminedError(Exception):
    """What a file contains beyond its rows can't be examined here."""


def beyond_rows(path: Path, separator: str | None = None) -> str | None:
    """What a released file contains except its rows, as a part of a sentence that holds no value; None if nothing was
    found. Each format is compared with what shoal's engines write in it.

    CSV: a row with more or fewer fields than the header, a text around quotes, another name in a .gz. Parquet: keys of
    the metadata, sorting columns, Bloom filters, dictionary entries that no row has, statistics of other rows, bytes
    without a reference. Excel: parts, sheets, tags, texts, properties, and formats that no released workbook has.

    Raises VerificationError for a damaged file, and NotExaminedError for Parquet without pyarrow, or if a column has
    integers of 128 bits, which pyarrow doesn't read. O(bytes of the file).
    """
    kind = kind_of(path)
    if kind == "parquet" and not find_spec("pyarrow"):
        raise NotExaminedError
    if kind == "parquet":
        return _beyond_parquet(path)
    if kind == "excel":
        return _beyond_workbook(path)
    return _ragged(_blocks(path), ord(separator or ",")) if kind == "csv" else None  # pyreadstat tells of the others


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


_KEYS = {b"ARROW:schema", b"org.apache.spark.version", b"org.apache.spark.sql.parquet.row.metadata"}
_CATEGORIES, _ENUMERATION = b"_PL_CATEGORICAL2", b"_PL_ENUM_VALUES2"  # types of Polars
_FIELD_KEYS = {b"PARQUET:field_id", _CATEGORIES, _ENUMERATION}
_CUT = 30  # writers truncate statistics of texts from this many bytes on


def _beyond_parquet(path: Path) -> str | None:
    """What a Parquet file contains beyond its rows, in its metadata and in each row group."""
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
        whole, schema = file.metadata, file.schema_arrow
        stated = {field.name: field.metadata or {} for field in schema}
        if set(whole.metadata or {}) - _KEYS or any(set(keys) - _FIELD_KEYS for keys in stated.values()):
            return "a key in its metadata that no release has"
        if not all(
            re.fullmatch(rb"0;0;u(8|16|32);", keys[_CATEGORIES]) for keys in stated.values() if _CATEGORIES in keys
        ):
            return "a name of its categories"
        unseen = {name: _enumerated(keys[_ENUMERATION]) for name, keys in stated.items() if _ENUMERATION in keys}
        if not _of_spark(whole.metadata or {}, schema.names):
            return "another statement of Spark about its columns"
        texts = [f.name for f in schema if arrow.types.is_string(f.type) or arrow.types.is_large_string(f.type)]
        coded = parquet.ParquetFile(path, read_dictionary=texts)
        for number in range(whole.num_row_groups):
            group = whole.row_group(number)
            if group.sorting_columns:
                return "a statement about the order of its rows"
            for place in range(group.num_columns):
                column = group.column(place)
                name = column.path_in_schema
                if column.bloom_filter_offset:
                    return f"a Bloom filter of column {name!r}"
                if name not in schema.names:
                    continue  # a part of a nested column
                cells = (coded if name in texts else file).read_row_group(number, columns=[name]).column(0)
                if _unused(cells):
                    return f"values of column {name!r} that no row has"
                if name in unseen:
                    unseen[name] -= {text.encode() for text in cells.unique().drop_null().to_pylist()}
                if column.statistics is not None and _other_rows(column.statistics, cells):
                    return f"statistics of column {name!r} that are not those of its rows"
        for name in (name for name, values in unseen.items() if values):
            return f"values of column {name!r} that no row has"
        return "bytes to which nothing refers" if _unreferenced(path, whole) else None
    except FileNotFoundError:
        raise
    except arrow.ArrowNotImplementedError:
        raise NotExaminedError from None
    except (OSError, arrow.ArrowException) as error:
        raise unreadable(path, error) from None


def _enumerated(stated: bytes) -> set[bytes]:
    """The values of an enumeration of Polars, which writes the length of each before it: ``1;a2;bb``. A part that is
    not of this form counts as a value."""
    values = set()
    while stated:
        length, mark, rest = stated.partition(b";")
        size = int(length) if mark and length.isdigit() and len(length) < 10 else len(stated)
        values.add(rest[:size] if size <= len(rest) else stated)
        stated = rest[size:]
    return values


def _of_spark(keys: Mapping[bytes, bytes], names: Sequence[str]) -> bool:
    """Whether the metadata that Spark writes names the columns, and nothing else."""
    version = keys.get(b"org.apache.spark.version", b"")
    stated = keys.get(b"org.apache.spark.sql.parquet.row.metadata")
    if not re.fullmatch(rb"[\d.]*", version) or stated is None:
        return stated is None
    try:
        fields = json.loads(stated)["fields"]
        own = [(field.pop("name"), field.pop("metadata"), set(field)) for field in fields]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False
    return own == [(name, {}, {"type", "nullable"}) for name in names]


def _unused(cells: Any) -> bool:
    """Whether a dictionary of a column has an entry that no row has."""
    for chunk in cells.chunks:
        if hasattr(chunk, "dictionary"):
            used = np.zeros(len(chunk.dictionary), bool)
            used[chunk.indices.drop_null().to_numpy(zero_copy_only=False)] = True
            if not used.all():
                return True
    return False


def _other_rows(stated: Any, cells: Any) -> bool:
    """Whether the statistics of a column chunk aren't those of its rows."""
    import pyarrow as arrow
    from pyarrow import compute

    if arrow.types.is_nested(cells.type):
        return False
    if stated.has_null_count and stated.null_count != cells.null_count:
        return True
    plain = cells.cast(cells.type.value_type) if arrow.types.is_dictionary(cells.type) else cells
    try:
        if stated.has_distinct_count and (stated.distinct_count or 0) > compute.count_distinct(plain).as_py():
            return True
        held = compute.min_max(plain) if stated.has_min_max else {}
        for name in ("min", "max") if stated.has_min_max else ():
            end = getattr(stated, name)
            cut = isinstance(end, (str, bytes)) and len(end) >= _CUT
            if not cut and not _alike(arrow.scalar(end, type=plain.type), held[name]):
                return True
    except (arrow.ArrowNotImplementedError, arrow.ArrowTypeError, arrow.ArrowInvalid):
        return False  # of a type whose ends are not ordered or not read
    return False


def _alike(stated: Any, held: Any) -> bool:
    """Whether two ends of a column are one value; the zeros are."""
    return bool(stated == held) or (isinstance(held.as_py(), float) and stated.as_py() == held.as_py())


def _unreferenced(path: Path, whole: Any) -> bool:
    """Whether a Parquet file has other bytes between the column chunks, or between the last of them and the footer.

    Some writers repeat the metadata of a column chunk after it, as it is in the footer. Indexes of pages are before the
    footer, and aren't read.
    """
    columns = [whole.row_group(g).column(c) for g in range(whole.num_row_groups) for c in range(whole.num_columns)]
    indexed, at = any(column.has_offset_index or column.has_column_index for column in columns), 4
    starts = [min(o for o in (c.dictionary_page_offset, c.data_page_offset) if o) for c in columns]
    with open(path, "rb") as raw:
        raw.seek(-8, 2)
        end = raw.tell() - int.from_bytes(raw.read(4), "little")
        raw.seek(end)
        footer = raw.read()
        for begin, size in sorted(zip(starts, [c.total_compressed_size for c in columns], strict=True)):
            raw.seek(at)
            if begin < at or raw.read(begin - at) not in footer:
                return True
            at = begin + size
        raw.seek(at)
        return at > end or (not indexed and raw.read(end - at) not in footer)


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


def seal(record: Mapping[str, Any]) -> str:
    """SHA-256 of a certificate file's content without its seal and signature, so that manual edits are detected."""
    kept = {k: v for k, v in record.items() if k not in ("seal", "signature")}
    content = json.dumps(kept, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()


def refuse_other(expected: Counts, found: Counts, form: str = "frame") -> None:
    """Raise VerificationError unless both tables have the same tuples equally often."""
    if not same_counts(expected, found, form=form):
        raise VerificationError(
            "what would be written differs from what was decided: some tuple of published and sensitive values occurs "
            "more or less often than it should; nothing was published. This is a defect of shoal: please report it"
        )


def stale(path: Path, raw: Mapping[str, Any]) -> str:
    """Which of a file and its certificate is older, if they don't belong together."""
    sentence = (
        "the file is not the one certified: the certificate belongs to another file, or to another version of this "
        "release"
    )
    try:
        made = datetime.datetime.fromisoformat(str(raw["made_at"])).timestamp()
        written = path.stat().st_mtime
    except (KeyError, ValueError, OSError):
        return sentence
    older = "the certificate is the older" if written >= made + 1 else "the release is the older"
    return f"{sentence}; by their times {older}, so make both again"


def set_bits(packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(int64, int64): row and column of every set bit, in row-major order. packed: uint8[rows, columns / 8]

    Most bytes are zero, so only the others are unpacked.
    """
    at = np.flatnonzero(packed)
    byte, bit = np.nonzero(np.unpackbits(packed.reshape(-1)[at][:, None], axis=1))
    row, column = np.divmod(at[byte], packed.shape[1])
    return row, column * 8 + bit
