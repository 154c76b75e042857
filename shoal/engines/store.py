"""Reading and writing tables: CSV (also .gz), Parquet, and Excel. ``statistics`` handles SPSS, Stata, and SAS.

A writer writes exactly the given values or refuses them. A table that doesn't fit in memory is written in slices, to
one file or to a folder of parts. A reader keeps text exactly as it is written. In Excel, it reads the first sheet, and
detects types from all rows. The module also reads real records about people that installed packages contain.
"""

from __future__ import annotations

import contextlib
import datetime
import gzip
import logging
import math
import posixpath
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import polars as pl

from shoal.engines.atomic import publish_file
from shoal.engines.columns import begins_before, flat, made_one, one_zero, refuse_nested, without_levels
from shoal.engines.csv import TITLE, one_character, read_csv, refuse_twice
from shoal.engines.source import Source, locate, refuse_database, refuse_text, too_little, wrong_format
from shoal.engines.statistics import LONG_AGO, read_statistics, store_statistics
from shoal.errors import InputError, MissingDependencyError, PolicyError, Sentence
from shoal.model.arguments import no_numbers
from shoal.model.notation import numeral
from shoal.paths import ending, ends, is_map, is_packed, kind_of, usual_separator

if TYPE_CHECKING:
    import numpy as np


logging.getLogger("fastexcel").setLevel(logging.ERROR)  # it warns about columns without a value, which are text here
_ERROR = re.compile(rb'<(?:\w+:)?c\b(?=[^>]*\bt="e")[^>]*?\br="([A-Z]+[0-9]+)"')


def unread_sheets(path: Any, sheet: str | None) -> list[Sentence]:
    """A sentence if an Excel file has several sheets and none was named."""
    if sheet is not None or not isinstance(path, (str, Path)) or kind_of(path) != "excel" or not Path(path).is_file():
        return []
    import fastexcel

    names = fastexcel.read_excel(path).sheet_names
    first, few = names[0], _named_few(names[1:])
    sentence = f"the file has {len(names)} sheets, and this is the first, {first!r}; to read {few}, name it with "
    return [Sentence(f"{sentence}⟨table=...⟩")] if few else []


def _named_few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def read_excel(source: Source, sheet: str | None = None, *, rows: bool = True) -> pl.DataFrame:
    """A sheet, by name or the first. A column with one text among numbers is text.

    rows  refuse a header without rows

    Raises PolicyError for a sheet that doesn't exist. Raises InputError for a header without a name or with a duplicate
    one, and for a cell with a spreadsheet's error, which would otherwise be read as a missing value.
    """
    try:
        import fastexcel
    except ImportError:
        raise MissingDependencyError.needed("fastexcel", "reading Excel", "excel") from None
    head: tuple[Any, ...] = ()
    try:
        book = fastexcel.read_excel(source.path)
        if sheet is not None and sheet not in book.sheet_names:
            raise PolicyError.unknown("sheet", sheet, book.sheet_names)
        place = 0 if sheet is None else book.sheet_names.index(sheet)
        first = book.load_sheet(place, header_row=None, n_rows=1)
        head = first.to_polars().row(0) if first.total_height else ()
        faulty = _errors(source, place)
        frame = None
        if head and all(head):
            frame = _typed(source, place)
    except PolicyError:
        raise
    except Exception as error:
        if "*" in head:
            raise InputError("the column name '*' is a pattern of other names to Polars; rename it") from None
        raise wrong_format(source.name, "Excel", error) from None
    names = ["" if name is None else str(name) for name in head]
    _named(names, source.name)
    if faulty:
        one = f"cell {faulty[0]} holds an error such as #REF!; repair the cell or empty it"
        many = (
            f"cell {faulty[0]} and {len(faulty) - 1:,} more hold errors such as #REF!; repair the cells or empty them"
        )
        raise InputError(f"{source.name!r}: {many if len(faulty) > 1 else one}")
    if frame is None or len(names) != frame.width:
        raise InputError(f"{source.name!r}: two readers do not agree on the header")
    if rows and not frame.height:
        names = book.sheet_names
        others = _named_few([name for name in names if name != names[place]])
        only = f"; this is its sheet {names[place]!r}: to read {others}, name it with ⟨table=...⟩" if others else ""
        raise InputError(f"{source.name!r} has a header and no rows, so there is nothing to publish{only}")
    source.refuse_change()
    return frame


def _typed(source: Source, place: int) -> pl.DataFrame:
    """The rows of a sheet. A column of whole numbers has integers, unless one of them exceeds 64 bits."""
    import fastexcel

    try:
        return pl.read_excel(source.path, sheet_id=place + 1, infer_schema_length=None, raise_if_empty=False)
    except pl.exceptions.InvalidOperationError:  # Polars converts whole numbers to integers, whatever their size
        kinds = fastexcel.read_excel(source.path).load_sheet(place, schema_sample_rows=None).to_polars().schema
        held = {name: pl.Float64 for name, kind in kinds.items() if kind == pl.Float64}
        return pl.read_excel(
            source.path, sheet_id=place + 1, infer_schema_length=None, raise_if_empty=False, schema_overrides=held
        )


def _named(names: list[str], file: str) -> None:
    if not names:
        raise InputError(f"{file!r} is empty; its first sheet has neither a header nor rows")
    unnamed = [number for number, name in enumerate(names, 1) if not name.strip()]
    if unnamed:
        titled = len(unnamed) > 1 or not any(names[1:])
        above = f"; if {TITLE}" if titled else ""
        raise InputError(f"{file!r}: column {unnamed[0]} has no name; name it in the first row{above}")
    refuse_twice(names, file)


def _errors(source: Source, place: int) -> list[str]:
    """The cells of a sheet that contain an error, such as "B4"; none if this is unknown."""
    if not ends(source.path, (".xlsx",)):
        return []
    with zipfile.ZipFile(source.path) as book:
        sheet = _sheets(book, "xl/workbook.xml", "sheet")[place]
        relation = next(v for k, v in sheet.items() if k.endswith("}id"))
        target = next(
            r["Target"] for r in _sheets(book, "xl/_rels/workbook.xml.rels", "Relationship") if r["Id"] == relation
        )
        path = target.lstrip("/") if target.startswith("/") else posixpath.join("xl", target)
        return [cell.decode() for cell in _ERROR.findall(book.read(posixpath.normpath(path)))]


def _sheets(book: zipfile.ZipFile, part: str, tag: str) -> list[dict[str, Any]]:
    root = ElementTree.fromstring(book.read(part))
    return [dict(e.attrib) for e in root.iter() if e.tag.rpartition("}")[2] == tag]


def read_table(
    path: str | Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    coded: Sequence[str] = (),
    rows: bool = True,
    layer: str | None = None,
) -> pl.DataFrame:
    """The whole file as a Polars frame.

    path       CSV (also .gz), Parquet, Excel, SPSS, Stata, SAS, or a map of points, by its ending; anything else is
               read as CSV; the name is taken literally
    separator  of a CSV; None: detected from the header
    encoding   of a CSV: "utf-8" (default), "windows-1252", or "latin-1"; of SPSS, Stata, or SAS: by default, the file's
    coded      columns of a CSV to read as categories, which is faster if they will be grouped
    rows       refuse a table without rows
    layer      of a map that has several; of an Excel file, the sheet

    CSV columns are text exactly as written (``01234`` stays ``01234``), and an empty field is a missing value. Parquet
    and Excel keep their types. Raises InputError if the file is missing, violates its format, or has a column without a
    name or two with one name.
    """
    if is_map(path):
        from shoal.engines.vector import read_points

        refuse_text(repr(Path(path).name), separator, encoding)
        return read_points(Path(path), layer)
    source = locate(path)
    if layer is not None and source.kind != "excel":
        raise PolicyError(f"{source.name!r} is no map, so it has no layer; leave ⟨layer={layer!r}⟩ out")
    refuse_database(path)
    if source.kind == "csv":
        return read_csv(source, one_character(separator), encoding, coded, rows=rows)
    refuse_text(repr(source.name), separator, None if source.kind == "statistics" else encoding)
    if source.kind == "excel":
        return read_excel(source, layer, rows=rows)
    if source.kind == "statistics":
        return read_statistics(source, encoding, rows=rows)
    _refuse_intervals(source)
    try:
        frame = pl.read_parquet(source.path, glob=False, hive_partitioning=False)
    except pl.exceptions.DuplicateError:
        raise InputError(f"{source.name!r}: two columns have the same name; rename one of them") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise wrong_format(source.name, "Parquet", error) from None
    if not all(name.strip() for name in frame.columns):
        raise InputError(f"{source.name!r}: a column has no name; name it")
    if rows and not frame.height:
        raise InputError(f"{source.name!r} has no rows, so there is nothing to publish")
    return frame


_TWELVE_BYTES = b"\x15\x0e\x15\x18"  # in the metadata of Parquet: a column of values of twelve bytes, as intervals are


def _refuse_intervals(source: Source) -> None:
    """InputError for a column of intervals in Parquet, at which Polars panics. O(metadata)."""
    with source.open() as stream:
        stream.seek(max(source.state[2] - 8, 0))
        last = stream.read(8)
        length = int.from_bytes(last[:4], "little") if last[4:] == b"PAR1" else 0
        stream.seek(max(source.state[2] - 8 - length, 0))
        if _TWELVE_BYTES not in stream.read(length):
            return
    try:
        from pyarrow import parquet

        held = parquet.ParquetFile(source.path).schema
        columns = [held.column(i) for i in range(len(held))]
        found = [repr(c.path) for c in columns if c.converted_type == "INTERVAL"]
    except (ImportError, OSError, ValueError, NotImplementedError):
        return
    if found:
        raise InputError(
            f"column {found[0]} of {source.name!r} is of type INTERVAL, which Polars does not read; read the file with "
            "⟨engine='duckdb'⟩, and name the column in ⟨identifiers=[...]⟩ or cast it to text with ⟨query=...⟩"
        )


def column(frame: pl.DataFrame, name: str) -> pl.Series:
    """A column by name; PolicyError with the most similar name if there is none, InputError for a pattern of names."""
    if name not in frame.columns:
        raise PolicyError.unknown("column", name, frame.columns)
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise InputError(f"the column name {name!r} is a pattern of other names to Polars; rename it")
    return frame[name]


def numbers(
    frame: pl.DataFrame, name: str, marks: Mapping[str, str] | None = None, *, gaps: bool = False
) -> np.ndarray:
    """A column as float64[n]; InputError with the row of the first value that isn't a finite number.

    marks  column of texts -> its decimal mark; None if the caller reads plain numbers alone. O(n), and O(distinct
           texts) in Python for a column with a mark.
    gaps   whether a text may be missing or empty, which is NaN
    """
    values = _with_texts(column(frame, name))
    mark = (marks or {}).get(name)
    if values.dtype == pl.String and mark is not None:
        cast = _numerals(values, mark).cast(pl.Float64)
    elif values.dtype == pl.String:
        cast = values.str.strip_chars().cast(pl.Float64, strict=False)
    else:
        cast = values.cast(pl.Float64, strict=False)
    bad = cast.is_null() | cast.is_nan() | cast.is_infinite()
    if gaps and values.dtype == pl.String:
        bad &= values.str.strip_chars().fill_null("") != ""
    if bad.any():
        texts = (values if values.dtype == pl.String else values.cast(pl.String)).to_list()
        raise no_numbers(name, bad.to_numpy(), texts, mark, marks is not None)
    return cast.to_numpy()


def _with_texts(values: pl.Series) -> pl.Series:
    """A column whose categories are texts."""
    return values.cast(pl.String) if isinstance(values.dtype, (pl.Categorical, pl.Enum)) else values


def _numerals(texts: pl.Series, mark: str) -> pl.Series:
    once = texts.drop_nulls().unique()  # a loop in Python over these alone
    read = pl.Series([numeral(text.strip(), mark) for text in once.to_list()], dtype=pl.String)
    return texts.replace_strict(once, read, default=None, return_dtype=pl.String)


def in_plain(frame: pl.DataFrame, marks: Mapping[str, str] | None) -> pl.DataFrame:
    """A table in which the columns with a decimal mark are plain numbers.

    A missing number stays missing. InputError for a text that is no number.
    """
    texts = [name for name in marks or {} if _with_texts(column(frame, name)).dtype == pl.String]
    plain = [pl.Series(name, numbers(frame, name, marks, gaps=True)).fill_nan(None) for name in texts]
    return frame.with_columns(plain)


def joined_coordinates(frame: pl.DataFrame, pair: Sequence[str], marks: Mapping[str, str] | None) -> pl.Series:
    """Two columns of coordinates as one of texts, "x y". Where a column has a decimal mark, its texts get points.

    InputError for a text that is no number.
    """
    texts, marks = [], marks or {}
    for name in pair:
        values = _with_texts(column(frame, name))
        if values.dtype == pl.String:
            numbers(frame, name, marks, gaps=True)
            values = _numerals(values, marks[name]) if name in marks else values
        texts.append(values.cast(pl.String))
    return texts[0] + " " + texts[1]


def integers(frame: pl.DataFrame, name: str) -> list[int]:
    """A column as Python integers of any size; 5.0 counts as 5. InputError with the row of the first value that isn't
    one."""
    found: list[int] = []
    for row, value in enumerate(column(frame, name).to_list(), 1):
        text = value.strip() if isinstance(value, str) else value
        if text is None or text == "" or text != text:
            raise InputError(f"column {name!r} is empty in row {row:,}; write a whole number, or remove the row")
        exact: int | None = None
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            exact = int(_NO_DECIMALS.sub("", text)) if isinstance(text, str) else int(text)
        if exact is None or (exact != text and not isinstance(text, str)):
            raise InputError(f"column {name!r} holds what is not a whole number in row {row:,}; repair it")
        found.append(exact)
    return found


_NO_DECIMALS = re.compile(r"\.0*$")
_TEXT = 1 << 29  # characters that fit in one text of Polars
SHEET_ROWS, SHEET_COLUMNS, CELL = 1_048_575, 16_384, 32_767
_FIRST_DAY = datetime.date(1900, 3, 1)  # before this day, Excel counts a day that didn't exist


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """Write a table that needs no judgment (that of the demo), completely or not at all."""
    publish_file(path, lambda temporary: store(frame, temporary))


def store(
    frame: pl.DataFrame,
    path: Path,
    separator: str | None = None,
    rows: np.ndarray | None = None,
    *,
    part: bool = False,
) -> None:
    """Write a table in the format of the file's ending, in place; use it within ``publish_file``.

    rows  uint32[n]  for a CSV: the frame's line in each row; None: each line once, in order
    part  whether it is one of several files of a table. A Parquet part is compressed as engines do it, in half the
          time, and has no minima and maxima, because in random order these hardly differ between files

    Raises InputError for values that the format can't hold.
    """
    kind = kind_of(path)
    separator = one_character(separator) or usual_separator(path)
    frame = one_zero(frame)
    try:
        if kind == "parquet":
            plain = frame.select(without_levels(c) for c in frame.iter_columns())
            if part:
                plain.write_parquet(path, compression="snappy", statistics={"null_count": True})
            else:
                plain.write_parquet(path, compression="zstd")
        elif kind == "excel":
            _store_excel(frame, path)
        elif kind == "statistics":
            store_statistics(frame, path)
        elif is_packed(path):
            with open(path, "wb") as raw, gzip.GzipFile("", "wb", compresslevel=6, mtime=0, fileobj=raw) as file:
                _store_csv(flat(frame), file, separator, rows)
        else:
            with open(path, "wb") as raw:
                _store_csv(flat(frame), raw, separator, rows)
    except pl.exceptions.PolarsError as error:
        if "os error" in str(error):
            raise
        raise InputError(f"{path.suffix} cannot be written ({type(error).__name__})") from None


def _store_csv(frame: pl.DataFrame, file: Any, separator: str, rows: np.ndarray | None) -> None:
    """Write a CSV. If lines of the frame repeat in many rows, each is formatted once, by the same writer."""
    if rows is None:
        frame.write_csv(file, separator=separator)
        return
    head, _, text = frame.write_csv(separator=separator).partition("\n")
    whole = [text] if len(text) < _TEXT else []
    lines = pl.Series("line", whole, dtype=pl.String).str.split("\n").explode()[:-1]
    if len(lines) != frame.height:  # a field contains a line break
        frame[rows].write_csv(file, separator=separator)
        return
    file.write(head.encode() + b"\n")
    lines.gather(rows).to_frame().write_csv(file, include_header=False, quote_style="never")


def refuse_for_excel(path: str | Path, frame: pl.DataFrame, recoded: Collection[str] = ()) -> None:
    """InputError for a table that a sheet can't hold, before the search.

    frame    the columns that will be written
    recoded  those of them in which a value may become a star
    """
    path = Path(path)
    if kind_of(path) != "excel":
        return
    if ending(path) != ".xlsx":
        raise InputError(f"Excel files are written as .xlsx, not {path.suffix}; name another file")
    refuse_sheet(frame.height, frame.columns)
    refuse_nested(frame)
    held = []
    for name, kind in frame.schema.items():
        column = frame[name]
        if kind == pl.String or isinstance(kind, (pl.Categorical, pl.Enum)):
            texts = column.unique().cast(pl.String)
            if _too_long(texts):
                raise InputError(f"column {name!r} has a text of more than {CELL:,} characters; write CSV or Parquet")
            if name not in recoded and column.null_count() and (texts == "").any():
                raise InputError(
                    f"column {name!r} has empty texts and missing values, which a sheet cannot distinguish; write CSV "
                    f"or Parquet, or {made_one(name)}"
                )
            held.append(column.is_not_null() & (column.cast(pl.String) != ""))
        elif kind.is_float() and (column.filter(column.is_finite()).abs() >= 2**63).any():
            raise InputError(
                f"column {name!r} has numbers beyond 64 bits, which are read from a sheet as integers that do not fit; "
                "write CSV or Parquet"
            )
        elif not (name in recoded and column.null_count()):
            held.append(column.is_not_null())
    if frame.height and (not held or not pl.DataFrame(held).select(pl.any_horizontal(pl.all())).to_series().all()):
        raise InputError(
            "a row is, or may come to be, without any value, which a sheet cannot show; write CSV or Parquet"
        )


def refuse_both(held: Mapping[str, Collection[Any]]) -> None:
    """InputError for a column with both empty texts and missing values, which are the same in a text file.

    held  for each judged column, its distinct values
    """
    for name, values in held.items():
        if "" in values and None in values:
            raise InputError(
                f"column {name!r} has empty texts and missing values, which only Parquet can distinguish; name an "
                f"output that ends in .parquet, or {made_one(name)}"
            )


def _too_long(texts: pl.Series) -> bool:
    """Whether a text is longer than a cell, counted as in Excel, in UTF-16 units."""
    long = texts.filter(texts.str.len_chars() > CELL // 2)
    return any(len(text.encode("utf-16-le")) // 2 > CELL for text in long.drop_nulls())


def refuse_sheet(rows: int, columns: Sequence[str]) -> None:
    """InputError for more rows or columns than a sheet has, or for names that Excel can't distinguish."""
    if rows > SHEET_ROWS or len(columns) > SHEET_COLUMNS:
        raise InputError(
            f"an Excel sheet holds {SHEET_ROWS:,} rows and {SHEET_COLUMNS:,} columns, this table has {rows:,} and "
            f"{len(columns):,}; write CSV or Parquet"
        )
    seen: dict[str, str] = {}
    for name in columns:
        if not name or len(name) > 255:
            raise InputError(f"an Excel sheet cannot hold the column name {name[:40]!r}; rename it, or write CSV")
        if seen.setdefault(name.lower(), name) != name:
            raise InputError(
                f"an Excel sheet takes the columns {seen[name.lower()]!r} and {name!r} for one; rename one of them"
            )


def text_in_excel(column: pl.Series) -> bool:
    """Whether a column must be text in a sheet, because a cell of its own type would not represent it exactly.

    A cell holds 16 digits of a number and milliseconds of a time. It holds no zone, decimal, or day before March 1900.
    """
    kind = column.dtype
    if kind == pl.Time or kind.is_decimal() or kind == pl.Duration:
        return True
    if isinstance(kind, pl.Datetime):
        if kind.time_zone is not None:
            return True
        fine = {"ns": 1_000_000, "us": 1_000, "ms": 1}[kind.time_unit]
        return bool((column.to_physical() % fine != 0).any()) or begins_before(column.dt.date(), _FIRST_DAY)
    if kind == pl.Date:
        return begins_before(column, _FIRST_DAY)
    if kind.is_integer():
        ends = [v for v in (column.min(), column.max()) if isinstance(v, int)]
        return any(abs(v) > 2**53 for v in ends)
    if kind.is_float():
        return any(not math.isfinite(v) or float(f"{v:.16G}") != v for v in column.drop_nulls().unique().to_list())
    return False


def _store_excel(frame: pl.DataFrame, path: Path) -> None:
    """Write an Excel file of the frame. Text stays text, and the same rows give the same bytes."""
    refuse_for_excel(path, frame)
    try:
        import xlsxwriter
    except ImportError:
        raise MissingDependencyError.needed("xlsxwriter", "writing Excel", "excel") from None
    frame = flat(frame, text_in_excel)
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    book: Any = xlsxwriter.Workbook(
        str(path), {"strings_to_urls": False, "strings_to_formulas": False, "strings_to_numbers": False}
    )
    book.set_properties({"created": LONG_AGO})  # so that the same rows give the same bytes
    try:
        frame.write_excel(book)
        book.close()
    except Exception as error:  # the writer wraps errors of the system in its own
        with contextlib.suppress(Exception):
            book.fileclosed = True  # otherwise, the destructor would try again
        raise OSError(
            getattr(error.args[0] if error.args else None, "errno", None) or getattr(error, "errno", None) or 5,
            f"writing Excel failed ({type(error).__name__})",
        ) from None


PART_ROWS = 1_000_000
PART_BYTES = 1 << 27
BATCH = 100_000


def slices(native: Any, tell: Callable[[int], None] = lambda _rows: None) -> Iterator[pl.DataFrame]:
    """A DuckDB relation as frames of about a million rows, fewer if rows are wide; at least one, possibly empty.

    tell  called with the number of rows read so far
    """
    held: list[pl.DataFrame] = []
    rows = bytes_ = 0
    for frame in batches(native, tell):
        held.append(frame)
        rows, bytes_ = rows + frame.height, bytes_ + int(frame.estimated_size())
        if rows >= PART_ROWS or bytes_ >= PART_BYTES:
            yield pl.concat(held, rechunk=True)
            held, rows, bytes_ = [], 0, 0
    if held:
        yield pl.concat(held, rechunk=True)


def batches(native: Any, tell: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    """The rows of a DuckDB relation in the frames that DuckDB delivers; at least one."""
    total = 0
    try:
        reader = native.to_arrow_reader(BATCH)
        for field in reader.schema:
            if str(field.type) == "month_day_nano_interval":  # Polars has no such type
                way = "cast it to text, in a query with CAST(... AS TEXT)"
                raise InputError(f"column {field.name!r} is of type INTERVAL, which cannot be read; {way}")
        empty = pl.from_arrow(reader.schema.empty_table())
        assert isinstance(empty, pl.DataFrame)
        for batch in reader:
            frame = pl.from_arrow(batch)
            assert isinstance(frame, pl.DataFrame)
            total += frame.height
            tell(total)
            yield frame
    except Exception as error:  # the engine's own message may quote rows
        if short := too_little(error):
            raise InputError(short) from None
        if not type(error).__module__.startswith(("duckdb", "_duckdb", "pyarrow")):
            raise
        raise InputError(f"the table cannot be read by the engine ({type(error).__name__})") from None
    if not total:
        yield empty


def write_folder(frames: Iterable[pl.DataFrame], folder: Path, ending: str, separator: str) -> dict[str, int]:
    """Write each frame as a file part-00000.ENDING of an existing folder, and return the rows of each by its name."""
    rows = {}
    for number, frame in enumerate(frames):
        name = f"part-{number:05d}.{ending}"
        store(frame, folder / name, separator, part=True)
        rows[name] = frame.height
    return rows


def write_single(frames: Iterable[pl.DataFrame], path: Path, separator: str) -> None:
    """Write all frames as one CSV (also .gz) or Parquet file."""
    if kind_of(path) == "parquet":
        _single_parquet(frames, path)
        return
    with contextlib.ExitStack() as stack:
        file: Any = stack.enter_context(open(path, "wb"))
        if is_packed(path):
            file = stack.enter_context(gzip.GzipFile("", "wb", compresslevel=6, mtime=0, fileobj=file))
        for number, frame in enumerate(frames):
            text = flat(frame).write_csv(separator=separator, include_header=number == 0)
            file.write(text.encode())


_PLAIN = {
    pl.String, pl.Boolean, pl.Date, pl.Float32, pl.Float64,
    pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
}  # fmt: skip


def _single_parquet(frames: Iterable[pl.DataFrame], path: Path) -> None:
    """Without Arrow's own description of the columns if Parquet has the same types: verifying then needs no pyarrow."""
    from pyarrow import parquet

    writer: Any = None
    try:
        for frame in frames:
            arrow = frame.to_arrow()
            if writer is None:
                described = not _PLAIN.issuperset(frame.dtypes)
                writer = parquet.ParquetWriter(path, arrow.schema, compression="snappy", store_schema=described)
            writer.write_table(arrow)
    finally:
        if writer is not None:
            writer.close()


def fair_survey() -> pl.DataFrame:
    """Fair's survey of 1974 (Redbook): 6,366 women with nine answers each, all text.

    Public domain. It is read from the file in the package statsmodels, without importing the package.
    """
    found = find_spec("statsmodels")
    path = (
        Path(next(iter(found.submodule_search_locations or []))) / "datasets" / "fair" / "fair.csv" if found else None
    )
    if path is None or not path.exists():
        raise MissingDependencyError.needed("statsmodels", "the survey of the demo", "demo")
    return read_table(path)


def sliced(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """The rows of a frame in memory, or of files, in slices, at least one.

    Polars' own streaming reads many row groups ahead, so its memory is proportional to the file.
    """
    many = int(frame.select(pl.len()).collect().item())
    for at in range(0, max(many, 1), BATCH):
        yield frame.slice(at, BATCH).collect()
