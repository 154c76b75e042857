"""What a file reveals beyond its rows: the order of rows, and hidden contents of a file or a frame.

Dictionaries, statistics, metadata, the format of cells, and hidden parts aren't visible in the rows. All of them may
come from other rows: a dictionary page that was built before values were starred still lists them, and a file written
over an older one may still contain its bytes.

* Parquet: values of dictionary pages and of levels in the schema, minima and maxima in the statistics of row groups,
  their counts, the order of dictionaries, sorting columns, Bloom filters, keys of the metadata, a pandas index, and
  unreferenced bytes between column chunks.
* CSV: one value in two formats (quoted and not), which distinguishes rows of one class.
* Excel: texts that no cell shows, hidden sheets, rows, and columns, cached pivots, comments, links, the author.
* SPSS, Stata, SAS: labels of values that no row has, notes, the label of the file.
* Frames: levels of categories, a pandas index other than 0, 1, 2 ..., attributes.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.attacks import public_files
from shoal.attacks.linkage import same_order
from shoal.attacks.public_files import figure_keys
from shoal.attacks.reading import Figure, People, Reading, wilson
from shoal.engines.codes import as_text, encode
from shoal.engines.order import portable
from shoal.engines.statistics import codebook
from shoal.paths import ends, kind_of

_OWN_KEYS = ("ARROW:schema", "pandas", "geo", "org.apache.spark.", "parquet.avro.schema", "writer.model.name")
_LINES = 200_000  # lines of a CSV that are examined
_PART = 64 << 20  # bytes of a part of a workbook that are examined
_FIELD = r'(?:"(?:[^"]|"")*"|[^{0}"\r\n]*)'
_REPEATED = 4096  # most bytes of metadata that some writers repeat after a column chunk
_CUT = 30  # writers truncate statistics of texts from this many bytes on


@dataclass
class Residue:
    """What a file contains beyond its rows.

    values  column -> values in the file that no row has
    order   signs of another order of rows
    others  everything else, in words
    """

    values: dict[str, set[str]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    @property
    def leaks(self) -> bool:
        """Whether anything was found."""
        return bool(self.values or self.order or self.others)


def residue(table: Any, frame: pl.DataFrame, separator: str | None = None) -> Residue | None:
    """What a release contains beyond its rows; None if its format contains nothing else.

    table  a path or a frame
    frame  its rows, as read
    """
    found = Residue()
    if isinstance(table, (str, Path)):
        if not Path(table).is_file():
            return None
        if kind_of(table) == "parquet" and find_spec("pyarrow"):
            _parquet(Path(table), frame, found)
        elif ends(table, (".csv", ".tsv", ".txt")):
            _csv(Path(table), frame, separator or ("\t" if ends(table, (".tsv",)) else None), found)
        elif ends(table, (".xlsx",)):
            _excel(Path(table), frame, found)
        elif kind_of(table) == "statistics":
            _codebook(Path(table), frame, found)
        else:
            return None
        return found
    if isinstance(table, pl.DataFrame):
        for name, kind in table.schema.items():
            if isinstance(kind, pl.Enum):
                _unseen(found, frame, name, kind.categories.to_list())
        return found
    if type(table).__module__.split(".")[0] == "pandas":
        _pandas(table, frame, found)
        return found
    if type(table).__module__.split(".")[0] == "pyarrow":
        _arrow(table, frame, found)
        return found
    return None


def _unseen(found: Residue, frame: pl.DataFrame, name: str, values: Sequence[Any]) -> None:
    """Add values of a column that no row has."""
    if name not in frame.columns:
        return
    kind = frame[name].dtype
    exact = kind == pl.Binary or kind.is_decimal()  # bytes have no text, and no series holds every decimal
    shown = set(map(str, frame[name].unique().to_list()) if exact else as_text(frame[name]).unique().to_list())
    plain = exact or all(isinstance(v, str) for v in values) or kind in (pl.String, pl.Categorical, pl.Enum)
    texts = list(map(str, values)) if plain else as_text(pl.Series(values, dtype=kind, strict=False)).to_list()
    if lost := {str(v) for v in texts if v is not None and v not in shown}:
        found.values.setdefault(name, set()).update(lost)


def _pandas(table: Any, frame: pl.DataFrame, found: Residue) -> None:
    for name in table.columns:
        if hasattr(table[name].dtype, "categories"):
            _unseen(found, frame, str(name), list(map(str, table[name].dtype.categories)))
    index = table.index
    if index.nlevels > 1 or index.names != [None] or list(index) != list(range(len(index))):
        found.order.append("the index of the frame is not 0, 1, 2, ...: it may show the original order of the rows")
    if table.attrs:
        found.others.append(f"attributes of the frame: {', '.join(map(str, table.attrs))}")


def _arrow(table: Any, frame: pl.DataFrame, found: Residue) -> None:
    """Add the dictionaries of an Arrow table in memory."""
    for name in table.column_names:
        for chunk in table.column(name).chunks:
            if hasattr(chunk, "dictionary"):
                _unseen(found, frame, name, chunk.dictionary.to_pylist())


def _parquet(path: Path, frame: pl.DataFrame, found: Residue) -> None:
    """Add the orders, dictionaries, and statistics of a Parquet file."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    plain = parquet.ParquetFile(path)
    names = [
        f.name for f in plain.schema_arrow
        if arrow.types.is_string(f.type) or arrow.types.is_large_string(f.type) or arrow.types.is_dictionary(f.type)
    ]  # fmt: skip
    file = parquet.ParquetFile(path, read_dictionary=names)
    whole, begin = file.metadata, 0
    for g in range(whole.num_row_groups):
        group = whole.row_group(g)
        part = frame.slice(begin, group.num_rows)
        begin += group.num_rows
        if group.sorting_columns:
            by = [group.column(s.column_index).path_in_schema for s in group.sorting_columns]
            found.order.append(f"row group {g} says that it was sorted by {', '.join(by)}")
        for c in range(group.num_columns):
            column = group.column(c)
            _statistics(column, part, found)
            if column.bloom_filter_offset:
                found.others.append(f"a Bloom filter of {column.path_in_schema!r}, which says what values there were")
        if any(group.column(c).has_dictionary_page for c in range(group.num_columns)) and names:
            _dictionaries(file.read_row_group(g, columns=names), part, found)
    _metadata(plain.schema_arrow, whole.metadata or {}, frame, found)
    if lost := _between(whole, path.stat().st_size):
        found.others.append(f"{lost:,} bytes between the columns to which nothing refers")
    found.order[:] = dict.fromkeys(found.order)
    found.others[:] = dict.fromkeys(found.others)


def _statistics(column: Any, part: pl.DataFrame, found: Residue) -> None:
    """Add minima, maxima, and counts of a column chunk."""
    name, held = column.path_in_schema, column.statistics
    if held is None or name not in part.columns:
        return
    if held.has_min_max:
        ends = [held.min, held.max]
        if any(isinstance(e, bytes) or (isinstance(e, str) and len(e) >= _CUT) for e in ends):
            ends = []  # of an unknown kind, or perhaps truncated
        _unseen(found, part, name, ends)
    missing, rows = part[name].null_count(), part.height
    if held.has_null_count and held.null_count != missing and not part[name].dtype.is_nested():
        found.others.append(f"statistics of {name!r} count {held.null_count:,} missing values, its rows {missing:,}")
    if held.has_distinct_count and held.distinct_count and held.distinct_count > part[name].drop_nulls().n_unique():
        found.others.append(
            f"statistics of {name!r} count {held.distinct_count:,} different values, more than rows show"
        )
    if column.num_values != rows and not part[name].dtype.is_nested():
        found.others.append(f"the column chunk of {name!r} holds {column.num_values:,} values for {rows:,} rows")


def _dictionaries(table: Any, part: pl.DataFrame, found: Residue) -> None:
    """Add values of dictionary pages that no row has, and dictionaries in an order that isn't that of the rows."""
    for name in table.column_names:
        for chunk in table.column(name).chunks[:1]:
            if not hasattr(chunk, "dictionary"):
                continue
            listed = [v for v in chunk.dictionary.to_pylist() if v is not None]
            _unseen(found, part, name, listed)
            seen = [v for v in part[name].cast(pl.String).unique(maintain_order=True).to_list() if v is not None]
            kept = [v for v in listed if v in set(seen)]
            met = [v for v in seen if v in set(kept)]
            if kept not in (met, sorted(kept)) and len(kept) > 2:
                found.order.append(f"the dictionary of {name!r} is in an order of other rows")


def _metadata(schema: Any, keys: Mapping[bytes, bytes], frame: pl.DataFrame, found: Residue) -> None:
    """Add keys of the file, levels in the schema, and pandas metadata."""
    for key, value in keys.items():
        name = key.decode("utf-8", "replace")
        if name.startswith(_OWN_KEYS):  # keys that writers use for column types and for themselves
            continue
        text = value.decode("utf-8", "replace")
        figures = sorted(set(figure_keys(_parsed(text))))
        found.others.append(f"metadata {name!r}" + (f" with {', '.join(figures)} of the original" if figures else ""))
    for one in schema:
        for key, value in (one.metadata or {}).items():
            if key.startswith(b"_PL_ENUM_VALUES"):
                _unseen(found, frame, one.name, list(_levels(value)))
            elif not key.startswith((b"PARQUET:field_id", b"_PL_", b"ARROW:extension")):
                found.others.append(f"metadata {key.decode('utf-8', 'replace')!r} of column {one.name!r}")
    pandas_metadata = _parsed(keys.get(b"pandas", b"{}").decode("utf-8", "replace"))
    for index in pandas_metadata.get("index_columns", []) if isinstance(pandas_metadata, Mapping) else []:
        if isinstance(index, str):
            found.order.append(f"a stored index of pandas, {index!r}")
        elif isinstance(index, Mapping) and (index.get("stop") != frame.height or index.get("start")):
            found.others.append(f"an index of pandas that runs from {index.get('start')} to {index.get('stop')}")
    for column in pandas_metadata.get("columns", []) if isinstance(pandas_metadata, Mapping) else []:
        more = column.get("metadata") if isinstance(column, Mapping) else None
        many = more.get("num_categories") if isinstance(more, Mapping) else None
        of = column.get("name") if isinstance(column, Mapping) else None
        if isinstance(many, int) and of in frame.columns and many > frame[of].drop_nulls().n_unique():
            found.others.append(f"pandas says that {of!r} had {many:,} categories")


def _codebook(path: Path, frame: pl.DataFrame, found: Residue) -> None:
    """Add labels of values that no row has, for columns with value labels, and notes."""
    labels_and_notes = codebook(path)
    for name, labels in labels_and_notes.values.items():
        if name in frame.columns and frame[name].dtype == pl.String:
            _unseen(found, frame, name, labels)
    found.others += [f"a note of {len(note):,} characters" for note in labels_and_notes.notes]


def _levels(text: bytes) -> Iterator[str]:
    """Category levels in polars' format: the number of bytes, a semicolon, the level."""
    while text:
        size, _, text = text.partition(b";")
        yield text[: int(size)].decode("utf-8", "replace")
        text = text[int(size) :]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _between(whole: Any, size: int) -> int:
    """The number of bytes before and between the column chunks that belong to none of them."""
    parts = []
    for g in range(whole.num_row_groups):
        group = whole.row_group(g)
        for c in range(group.num_columns):
            column = group.column(c)
            begin = min(o for o in (column.dictionary_page_offset, column.data_page_offset) if o)
            end = begin + column.total_compressed_size
            repeats = column.file_offset > end  # some writers repeat the column's metadata after it
            parts.append((begin, end + _REPEATED if repeats else end))
            if column.bloom_filter_offset and column.bloom_filter_length:
                parts.append((column.bloom_filter_offset, column.bloom_filter_offset + column.bloom_filter_length))
    at, lost = 4, 0
    for begin, end in sorted(parts):
        lost += max(begin - at, 0)
        at = max(at, end)
    return lost if at <= size else 0


def _csv(path: Path, frame: pl.DataFrame, separator: str | None, found: Residue) -> None:
    """Add values that occur both quoted and unquoted."""
    columns = frame.columns
    with path.open("rb") as raw:
        if not any(b'"' in part for part in iter(lambda: raw.read(1 << 20), b"")):
            return
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        head = file.readline(1 << 20)
        separator = separator or max(",;\t|", key=head.count)
        cell = re.compile(_FIELD.format(re.escape(separator)) + rf"({re.escape(separator)}|\r?\n|\Z)")
        quoted: list[dict[str, int]] = [{} for _ in columns]
        for number, line in enumerate(file):
            if number >= _LINES:
                break
            at, c = 0, 0
            while '"' in line and c < len(columns) and (met := cell.match(line, at)):
                _written(line[at : met.start(1)], quoted[c])
                at, c = met.end(), c + 1
            if '"' not in line:
                for c, text in enumerate(line.rstrip("\r\n").split(separator)[: len(columns)]):
                    _written(text, quoted[c])
    for name, forms in zip(columns, quoted, strict=True):
        if many := sum(f == 3 for f in forms.values()):
            found.others.append(f"{many:,} values of {name!r} are written with and without quotes")


def _written(text: str, forms: dict[str, int]) -> None:
    if text[:1] == '"' and text[-1:] == '"' and len(text) > 1:
        inner = text[1:-1].replace('""', '"')
        forms[inner] = forms.get(inner, 0) | 2
    else:
        forms[text] = forms.get(text, 0) | 1


def _excel(path: Path, frame: pl.DataFrame, found: Residue) -> None:
    """Add parts of a workbook that no cell of the table shows."""
    shown: set[str] = set(frame.columns)
    for name in frame.columns:
        shown.update(t for t in as_text(frame[name]).unique().to_list() if t is not None)
    try:
        book = zipfile.ZipFile(path)
    except (OSError, zipfile.BadZipFile):
        return
    with book:
        parts = {info.filename: info.file_size for info in book.infolist()}

        def text(name: str) -> str:
            return book.read(name).decode("utf-8", "replace") if parts.get(name, _PART) < _PART else ""

        shared = re.findall(r"<si\b.*?</si>", text("xl/sharedStrings.xml"), re.DOTALL)
        texts = {unescape("".join(re.findall(r"<t\b[^>]*>(.*?)</t>", s, re.DOTALL))) for s in shared}
        if lost := {t for t in texts if t and t.strip() not in shown and t not in shown}:
            found.values["texts that no cell shows"] = lost
        sheets = [n for n in parts if re.fullmatch(r"xl/worksheets/[^/]+\.xml", n)]
        states = re.findall(r'<sheet\b[^>]*state="(\w*[hH]idden)"', text("xl/workbook.xml"))
        if len(sheets) > 1 or states:
            found.others.append(f"{len(sheets)} sheets, {len(states)} of them hidden")
        hidden = sum(len(re.findall(r'<(?:row|col)\b[^>]*\bhidden="(?:1|true)"', text(n))) for n in sheets)
        if hidden:
            found.others.append(f"{hidden:,} hidden rows or columns")
        for part, words in (
            ("xl/pivotCache/", "a cached pivot table"), ("xl/comments", "comments"), ("xl/externalLinks/", "links"),
            ("xl/threadedComments", "comments"), ("docProps/custom.xml", "custom properties"),
            ("xl/revisions", "earlier revisions"), ("xl/embeddings", "embedded files"), ("customXml/", "custom XML"),
        ):  # fmt: skip
            if any(n.startswith(part) for n in parts):
                found.others.append(words)
        core = text("docProps/core.xml") if "docProps/core.xml" in parts else ""
        for tag in ("dc:creator", "cp:lastModifiedBy"):
            if (who := re.search(rf"<{tag}>([^<]+)</{tag}>", core)) and who[1].strip():
                found.others.append(f"who wrote it ({tag.partition(':')[2]})")
    found.others[:] = dict.fromkeys(found.others)


_ROWS = 100_000  # rows that are compared with the rows at other positions
_SHIFTS = (1, 2, 5, 11, 23, 47, 101)


def found(reading: Reading, table: Any, people: People | None, separator: str | None = None) -> list[Figure]:
    """All findings about files. table: the release as passed, a path or a frame"""
    path = Path(table) if isinstance(table, (str, Path)) else None
    out = [_against_itself(reading)]
    if (held := _residue_finding(reading, table, separator)) is not None:
        out.append(held)
    if path is not None:
        out += public_files.figures_in_public_files(reading, path)
    if people is not None and people.rows == reading.rows:
        out.append(_against_original(reading, people))
    return out


def _residue_finding(reading: Reading, table: Any, separator: str | None) -> Figure | None:
    """A finding about hidden values and orders; None if the format of the table has none."""
    held = residue(table, reading.frame, separator)
    if held is None:
        return None
    leaks = float(held.leaks)
    unseen = [f"{name} ({len(values):,} values)" for name, values in sorted(held.values.items())]
    return Figure(
        "files", "levels and metadata", "seen in tools of several kinds",
        "the intruder reads what a file contains besides its rows: dictionaries, statistics, levels, metadata, hidden "
        "parts", "1 where it tells what no row shows, 0 where it does not", leaks, leaks, leaks, {"the rows": 0.0},
        None, reading.rows, leaks, None, "write a new file with new columns, from published values only",
        {"columns": ", ".join(unseen) or "none", "order": "; ".join(held.order) or "none",
         "others": "; ".join(held.others) or "none"},
    )  # fmt: skip


def _against_itself(reading: Reading) -> Figure:
    """A finding on whether rows follow the order of a column, or equal values are adjacent: tests for each column."""
    frame, rows = reading.frame, reading.rows
    worst, name_of, tests = 0.0, "", 0
    for name in frame.columns if rows >= 20 else ():
        kind = frame[name].dtype
        textless = kind.is_nested() or kind == pl.Binary or isinstance(kind, pl.BaseExtension)
        coded = encode(portable(frame[name]) if textless else frame[name])
        codes = coded.codes.astype(np.int64)
        if coded.size < 2:
            continue
        for test, z in (("order", _rank_test(codes)), ("runs", _runs_test(codes))):
            tests += 1
            if abs(z) > abs(worst):
                worst, name_of = z, f"{name} ({test})"
    limit = 5.0 + np.log10(max(tests, 1))  # in standard deviations; by chance, one release in a million exceeds it
    leaks = abs(worst) > limit
    return Figure(
        "files", "order of the rows", "folklore; statistical agencies randomize the order",
        "the intruder looks at the rows in the order of the file", "1 where rows follow a column or values are "
        "together, 0 where the order is random", float(leaks), float(leaks), float(leaks), {"a random order": 0.0},
        None, rows, float(leaks), (f"column {name_of}", float(leaks)) if leaks else None,
        "shuffle the rows by a secret", {"deviate": float(worst), "limit": float(limit)},
    )  # fmt: skip


def _rank_test(codes: np.ndarray) -> float:
    """Spearman's correlation of a column with the row number, as a standard normal deviate. codes: int64, ordered"""
    count = np.bincount(codes)
    rank = (np.cumsum(count) - (count - 1) / 2)[codes]  # the mean rank of equal values
    place = np.arange(len(codes), dtype=float)
    return float(np.corrcoef(rank, place)[0, 1] * np.sqrt(len(codes) - 1)) if np.ptp(rank) else 0.0


def _runs_test(codes: np.ndarray) -> float:
    """The number of equal neighbors compared with that of a random order, as a standard normal deviate."""
    n = len(codes)
    count = np.bincount(codes).astype(float)
    pairs = (count * (count - 1)).sum() / (n * (n - 1))  # chance that two rows are equal
    if pairs in (0.0, 1.0):
        return 0.0
    triples = (count * (count - 1) * (count - 2)).sum() / (n * (n - 1) * (n - 2))
    crossed = ((count * (count - 1)).sum() ** 2 - (count * (count - 1) * (4 * count - 6)).sum()) / (
        n * (n - 1) * (n - 2) * (n - 3)
    )
    mean = (n - 1) * pairs
    variance = (n - 1) * pairs + 2 * (n - 2) * triples + (n - 2) * (n - 3) * crossed - mean**2
    return float(((codes[1:] == codes[:-1]).sum() - mean) / np.sqrt(max(variance, 1e-9)))


def _against_original(reading: Reading, people: People) -> Figure:
    """A finding on how many rows match the original's row at the same position, compared with other positions."""
    fits = same_order(reading, people)
    assert fits is not None  # both have the same number of rows
    shifts = [shift for shift in _SHIFTS if shift < reading.rows]
    rows = np.arange(min(reading.rows, _ROWS))
    shifted = [same_order(reading, people, shift, rows) for shift in shifts]
    chance = max((wilson(float(s.sum()), len(rows))[1] for s in shifted if s is not None), default=1.0)
    low, high = wilson(float(fits.sum()), reading.rows)
    return Figure(
        "files", "order against the original", "folklore; statistical agencies randomize the order",
        "the intruder knows the order of the original, as by the time of an entry or by name",
        "rows that may be the original's row at the same place", float(fits.mean()), low, high,
        {"the original's row at another place, at most": chance}, None, reading.rows,
        float(fits.mean()) if low > chance else 0.0, None, "shuffle the rows by a secret", {},
    )  # fmt: skip
