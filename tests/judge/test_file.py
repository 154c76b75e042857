"""A release's file is the one that is named, whatever stands in the name.

What stands beside a crosswalk is judged too: a hierarchy's groups. And a file holds its rows, and nothing beside them.
"""

import gzip
import hashlib
import io
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.engines.statistics import store_statistics
from shoal.errors import VerificationError
from shoal.judge.contents import _marked, _ragged, beyond_parts, beyond_rows
from shoal.judge.crosswalk import judge_hierarchy
from shoal.judge.file import marks_rows, read_release, special_bits
from tests.data import released
from tests.kept import failing, forge


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_brackets_and_stars_in_a_name_are_no_patterns(tmp_path: Path, ending: str) -> None:
    for number, name in enumerate(("p[1]", "p1", "p*")):
        frame, path = pl.DataFrame({"a": [str(number)]}), tmp_path / f"{name}.{ending}"
        frame.write_parquet(path) if ending == "parquet" else frame.write_csv(path)
    assert read_release(tmp_path / f"p[1].{ending}")["a"].to_list() == ["0"]
    assert read_release(tmp_path / f"p*.{ending}")["a"].to_list() == ["2"]


def test_a_folder_named_like_a_column_says_nothing_of_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "a=7").mkdir()
    pl.DataFrame({"b": ["x"]}).write_parquet(tmp_path / "a=7" / "p.parquet")
    assert read_release(tmp_path / "a=7" / "p.parquet").columns == ["b"]


COUNTS = {"a": 2, "b": 3, "c": 4, "d": 1}
ROWS = [["a", "a..b", "*"], ["b", "a..b", "*"], ["c", "c..d", "*"], ["d", "c..d", "*"]]


def failed(found):
    return {f.check for f in found if not f.holds}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows, set()),
        (lambda rows: rows[:3], {"values"}),
        (lambda rows: [*rows, rows[0]], {"values"}),
        (lambda rows: [[*rows[0][:2]], *rows[1:]], {"values"}),
        (lambda rows: [["a", "a", "*"], *rows[1:]], {"k"}),
        (lambda rows: [["a", "c..d", "*"], *rows[1:]], {"k"}),
        (lambda rows: [[*row, "*"] if i else ["a", "a..b", "!", "*"] for i, row in enumerate(rows)], {"k", "nested"}),
    ],
)
def test_a_hierarchy_is_counted_again(tmp_path, change, says):
    path = tmp_path / "h.csv"
    path.write_text("".join(";".join(row) + "\n" for row in change(ROWS)))
    assert failed(judge_hierarchy(path, COUNTS, 4)) == says


PEOPLE = pl.DataFrame(
    {
        "age": [20 + i % 7 for i in range(60)], "zip": [f"{1230 + i % 4}" for i in range(60)],
        "w": [-0.0 if i % 3 else 1.5 for i in range(60)], "d": ["xyz"[i % 3] for i in range(60)],
        "note": [f"n{i % 2}" for i in range(60)],
    }
)  # fmt: skip


@cache
def bytes_of(name: str) -> tuple[bytes, bytes]:
    """A release of these people in the format of the name, and its certificate."""
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["d"], "insensitive": ["note", "w"]}
    with tempfile.TemporaryDirectory() as place:
        made = shoal.anonymize(PEOPLE, **asked, k=3, l=2, seed=1, effort="fast", publish="ranges")
        paper = made.write(Path(place) / name)
        return (Path(place) / name).read_bytes(), paper.read_bytes()


def verdict_on(folder: Path, name: str, content: bytes) -> Any:
    """The verdict on other bytes under a certificate that was forged to be theirs."""
    path, paper = folder / name, folder / f"{Path(name).name.removesuffix('.gz').rpartition('.')[0]}.certificate.json"
    path.write_bytes(content)
    paper.write_bytes(bytes_of(name)[1])
    about = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    forge(paper, lambda facts: facts["release"].update(about))
    return shoal.verify(path, paper)


def is_refused(folder: Path, name: str, content: bytes) -> bool:
    try:
        wrong = {f.check: f.found for f in verdict_on(folder, name, content).findings if not f.holds}
    except VerificationError as error:
        wrong = {"contents": str(error)}
    return "contents" in wrong and "Ann" not in wrong["contents"]


TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "a field more": lambda raw: raw.replace(b"n0\n", b"n0,Ann\n", 1),
    "a field less": lambda raw: raw.replace(b",n0\n", b"\n", 1),
    "a text after quotes": lambda raw: raw.replace(b"n0\n", b'"n0"Ann\n', 1),
    "needless quotes": lambda raw: raw.replace(b"n0\n", b'"n0"\n', 1),
    "quotes around a number": lambda raw: raw.replace(b",0.0,", b',"0.0",', 1),
    "quotes around all that has none": lambda raw: raw.replace(b"20,", b'"20",'),
    "an empty line": lambda raw: raw + b"\n",
    "an end of a line": lambda raw: raw.replace(b"n0\n", b"n0\r\n", 1),
    "all ends of lines": lambda raw: raw.replace(b"\n", b"\r\n"),
    "a carriage return": lambda raw: raw.replace(b"n0\n", b"n\r0\n", 1),
    "no last end of a line": lambda raw: raw[:-1],
    "a mark of the order of bytes": lambda raw: b"\xef\xbb\xbf" + raw,
}


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
@pytest.mark.parametrize("how", TEXTS)
def test_a_text_file_holds_the_fields_of_its_header(tmp_path: Path, name: str, how: str) -> None:
    raw, packed = bytes_of(name)[0], name.endswith(".gz")
    assert verdict_on(tmp_path, name, raw).holds
    text = TEXTS[how](gzip.decompress(raw) if packed else raw)
    assert is_refused(tmp_path, name, gzip.compress(text, mtime=0) if packed else text)


def test_fields_are_counted_across_blocks_and_inside_quotes() -> None:
    text = b'a,b\n"x,\n""y""",2\n,"3\r"\n4,"5\n"\n'
    for size in range(1, len(text) + 1):
        blocks = [text[at : at + size] for at in range(0, len(text), size)]
        assert _ragged(blocks, ord(",")) is None
        more = (b",6,\n", b"7\n", b'"\n"8,9\n', b'7,8"9\n', b'7,"8', b"7,8", b"7\r,8\n", b'7,"8"\n9,0\n')
        for forged in (*(text + row for row in more), text.replace(b"\n4", b"\r\n4"), b"\xef\xbb\xbf" + text):
            blocks = [forged[at : at + size] for at in range(0, len(forged), size)]
            assert _ragged(blocks, ord(",")) is not None


def test_a_packed_file_holds_one_file_without_a_name(tmp_path: Path) -> None:
    raw = bytes_of("r.csv.gz")[0]
    text, named = gzip.decompress(raw), io.BytesIO()
    with gzip.GzipFile("Ann has flu", "wb", fileobj=named, mtime=0) as file:
        file.write(text)
    two = gzip.compress(text[:99], mtime=0) + gzip.compress(text[99:], mtime=0)
    for content in (named.getvalue(), two, raw + b"Ann", raw[:-9], text, b"", gzip.compress(text, mtime=99)):
        assert is_refused(tmp_path, "r.csv.gz", content)


def _dictionary(table: pa.Table) -> pa.Table:
    """A dictionary with an entry that no row has."""
    kept = pa.DictionaryArray.from_arrays([int(x[1]) for x in table["note"].to_pylist()], ["n0", "n1", "Ann"])
    return table.set_column(table.schema.get_field_index("note"), "note", kept)


def _in_field(table: pa.Table) -> pa.Table:
    return table.cast(table.schema.set(0, table.schema.field(0).with_metadata({"who": "Ann"})))


def _nested(table: pa.Table) -> pa.Table:
    return table.set_column(3, "d", pa.array([[d] for d in table["d"].to_pylist()]))


def _in_row(column: str, value: Any, *, like: Any) -> Callable[[pa.Table], pa.Table]:
    """Another value in the first rows that have one like it: two rows at first, and then every other one."""

    def change(table: pa.Table) -> pa.Table:
        held = table[column].to_pylist()
        found = [i for i, old in enumerate(held) if old == like][1::2]
        return table.set_column(
            table.schema.get_field_index(column),
            column,
            pa.array([value if i in found else v for i, v in enumerate(held)]),
        )

    return change


NAN = float("nan")


@pytest.mark.parametrize("floats", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("name", ["r.parquet", "r.xlsx", "r.sav", "r.csv", "in duckdb.parquet", "in duckdb.csv"])
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
def test_equal_floats_are_written_alike(tmp_path: Path, name: str, role: str, floats: Any) -> None:
    """Both zeros, two kinds of NaN, and missing values: they would distinguish rows of equal values."""
    own = pl.Series("w", [0.0, -0.0, NAN, None, 1.5, -NAN, 1.5, -0.0] * 2, dtype=floats)
    table = pl.DataFrame({"q": ["a", "b"] * 8, "s": list("xyzw") * 4}).with_columns(own)
    table.write_parquet(tmp_path / "t.parquet")
    given, more = (tmp_path / "t.parquet", {"engine": "duckdb"}) if name.startswith("in") else (table, {})
    asked = {"quasi_identifiers": ["q"], "sensitive": ["s"]}
    made = shoal.anonymize(given, **(asked | {role: ["w", *asked.get(role, [])]}), **more, k=2, seed=1, effort="fast")
    paper = made.write(tmp_path / name)
    assert shoal.verify(tmp_path / name, paper, table).holds
    held = read_release(tmp_path / name)["w"]
    assert not marks_rows(special_bits(held))
    if role != "insensitive":
        assert (held.null_count(), held.n_unique()) == (6, 3)


@pytest.mark.parametrize(
    ("values", "marks"),
    [([0.0, -0.0], True), ([NAN, -NAN], True), ([-0.0, -NAN, 1.0, None], False), ([0.0, NAN], False)],
)
def test_equal_floats_of_other_bits_mark_rows(tmp_path: Path, values: list[float | None], marks: bool) -> None:
    """In a file, in parts of a folder, and in files of other programs."""
    frame = pl.DataFrame({"w": values})
    parts = [tmp_path / f"part-0000{number}.parquet" for number in range(2)]
    for half, part in zip((frame[:1], frame[1:]), parts, strict=True):
        half.write_parquet(part)
    stated(tmp_path, parts)
    assert (beyond_parts(tmp_path) is not None) is marks
    frame.write_parquet(tmp_path / "w.parquet")
    store_statistics(frame, tmp_path / "w.sav")
    assert (beyond_rows(tmp_path / "w.parquet") is not None) is marks
    assert (beyond_rows(tmp_path / "w.sav") is not None) is (marks and values[0] == 0)


def _other_missing(folder: Path, name: str, content: pl.DataFrame) -> set[str]:
    """The failing lines about a release of ``EMPTY`` with other rows."""
    made = shoal.anonymize(EMPTY, quasi_identifiers=["q"], sensitive=["s", "n"], k=2, seed=1, effort="fast")
    paper = made.write(folder / name)
    content.write_parquet(folder / name) if name.endswith("parquet") else content.write_csv(folder / name)
    raw = (folder / name).read_bytes()
    forge(paper, lambda facts: facts["release"].update(sha256=hashlib.sha256(raw).hexdigest(), bytes=len(raw)))
    return failed(shoal.verify(folder / name, paper, EMPTY).findings)


EMPTY = pl.DataFrame({"q": ["z"] * 8, "s": ["", "", *"aabbcc"], "n": [None, None, *[1.5, 2.5, 3.5] * 2]})


def test_missing_values_of_two_kinds_mark_no_rows(tmp_path: Path) -> None:
    """A model counts them as one value, or a text file doesn't distinguish them, so a release has one kind."""
    rows = pl.int_range(pl.len())
    empty = EMPTY.with_columns(s=pl.when(rows == 0).then(None).otherwise("s"))
    nan = EMPTY.with_columns(n=pl.when(rows == 0).then(NAN).otherwise("n"))
    assert not _other_missing(tmp_path, "r.parquet", EMPTY)
    assert _other_missing(tmp_path, "e.parquet", empty) == {"other columns"}
    assert _other_missing(tmp_path, "n.parquet", nan) == {"contents"}
    assert "contents" in _other_missing(tmp_path, "t.csv", empty)


SPARK = "org.apache.spark.sql.parquet.row.metadata"
TABLES: dict[str, tuple[Callable[[pa.Table], pa.Table], dict[str, Any]]] = {
    "dictionary": (_dictionary, {}),
    "a negative zero": (_in_row("w", -0.0, like=0.0), {"use_dictionary": False}),
    "key": (lambda t: t.replace_schema_metadata({"who": "Ann"}), {}),
    "pandas": (lambda t: t.replace_schema_metadata({"pandas": '{"index_columns": ["Ann"]}'}), {}),
    "Spark": (lambda t: t.replace_schema_metadata({SPARK: '{"fields": [{"name": "Ann"}]}'}), {}),
    "field": (_in_field, {}),
    "order": (lambda t: t, {"sorting_columns": [pq.SortingColumn(0)]}),
}


@pytest.mark.parametrize("how", TABLES)
def test_a_parquet_file_holds_its_rows_alone(tmp_path: Path, how: str) -> None:
    raw = bytes_of("r.parquet")[0]
    assert verdict_on(tmp_path, "r.parquet", raw).holds
    table, (change, options) = pq.read_table(io.BytesIO(raw)), TABLES[how]
    for groups in (len(table), 7):
        plain, forged = io.BytesIO(), io.BytesIO()
        pq.write_table(table, plain, row_group_size=groups)
        assert verdict_on(tmp_path, "r.parquet", plain.getvalue()).holds
        pq.write_table(change(table), forged, row_group_size=groups, **options)
        assert is_refused(tmp_path, "r.parquet", forged.getvalue())


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        (pl.Categorical(), True), (pl.Enum(["n1", "n0"]), True), (pl.Enum(["n0", "n1", "Ann"]), False),
        (pl.Enum(["n0", "n1", ""]), False), (pl.Categorical(pl.Categories("Ann")), False),
    ],
)  # fmt: skip
def test_categories_of_polars_are_those_of_the_rows(tmp_path: Path, kind: Any, holds: bool) -> None:
    table, forged = pl.read_parquet(io.BytesIO(bytes_of("r.parquet")[0])), io.BytesIO()
    table.with_columns(pl.col("note").cast(kind)).write_parquet(forged)
    if holds:
        assert verdict_on(tmp_path, "r.parquet", forged.getvalue()).holds
    else:
        assert is_refused(tmp_path, "r.parquet", forged.getvalue())


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["x", "y", "z", "hidden"])])
@pytest.mark.parametrize("column", ["a", "i"])
@pytest.mark.parametrize("pandas", [True, False])
def test_a_release_of_categories_verifies(tmp_path: Path, kind: Any, column: str, pandas: bool) -> None:
    table = pl.DataFrame({"a": list("xxyyz"), "s": list("12121"), "i": ["x"] * 5}).with_columns(
        pl.col(column).cast(kind)
    )
    given = table.to_pandas() if pandas else table
    made = shoal.anonymize(given, quasi_identifiers=["a"], sensitive=["s"], insensitive=["i"], k=2, seed=1)
    assert shoal.verify(tmp_path / "r.parquet", made.write(tmp_path / "r.parquet")).holds


def test_a_parquet_file_holds_no_other_bytes_and_no_lists(tmp_path: Path) -> None:
    raw, forged = bytes_of("r.parquet")[0], io.BytesIO()
    table = pq.read_table(io.BytesIO(raw))
    pq.write_table(table, forged)
    plain = forged.getvalue()
    footer = len(plain) - 8 - int.from_bytes(plain[-8:-4], "little")
    for content in (plain[:footer] + b"Ann has flu" + plain[footer:], raw + b"Ann", b"Ann" + raw, b""):
        assert is_refused(tmp_path, "r.parquet", content)
    pq.write_table(_nested(table), forged := io.BytesIO())
    assert not verdict_on(tmp_path, "r.parquet", forged.getvalue()).holds


SHEET, BOOK, CORE = "xl/worksheets/sheet1.xml", "xl/workbook.xml", "docProps/core.xml"
WORKBOOKS: dict[str, tuple[str, str, str]] = {  # the part, the text that is replaced, and by what
    "hidden row": (SHEET, '<row r="3"', '<row r="3" hidden="1"'),
    "hidden column": (SHEET, "<sheetData>", '<cols><col min="1" max="1" hidden="1"/></cols><sheetData>'),
    "comment": (SHEET, "</worksheet>", "<!-- Ann has flu --></worksheet>"),
    "header": (SHEET, "</worksheet>", "<headerFooter><oddHeader>Ann</oddHeader></headerFooter></worksheet>"),
    "formula": (SHEET, "<v>1.5</v>", "<f>1.5</f><v>1.5</v>"),
    "shared text": ("xl/sharedStrings.xml", "</sst>", "<si><t>Ann</t></si></sst>"),
    "sheet's name": (BOOK, 'name="Sheet1"', 'name="Ann"'),
    "hidden sheet": (BOOK, "</sheets>", '<sheet name="more" sheetId="2" state="hidden" r:id="rId9"/></sheets>'),
    "defined name": (BOOK, "</workbook>", '<definedNames><definedName name="Ann"/></definedNames></workbook>'),
    "title": (CORE, "</cp:coreProperties>", "<dc:title>Ann</dc:title></cp:coreProperties>"),
    "author": (CORE, "<dc:creator></dc:creator>", "<dc:creator>Ann</dc:creator>"),
    "format": ("xl/styles.xml", "yyyy", "yyyy"),
    "cell's format": (SHEET, '<c r="A3" s="1"', '<c r="A3" s="2"'),
    "cell without a format": (SHEET, '<c r="A3" s="1"', '<c r="A3"'),
    "number as text": (SHEET, ' s="2"><v>1.5</v>', ' s="2" t="s"><v>7</v>'),
    "number in another form": (SHEET, "<v>1.5</v>", "<v>1.50</v>"),
    "negative zero": (SHEET, ' s="2"><v>0</v>', ' s="2"><v>-0</v>'),
    "text in its cell": (SHEET, ' t="s"><v>7</v>', ' t="inlineStr"><is><t>n0</t></is>'),
    "text as a number": (SHEET, ' t="s"><v>7</v>', "><v>7</v>"),
    "number of a text": (SHEET, ' t="s"><v>7</v>', ' t="s"><v>07</v>'),
    "row's format": (SHEET, '<row r="3"', '<row r="3" s="1"'),
    "span": (SHEET, '<row r="3" spans="1:5"', '<row r="3" spans="1:4"'),
    "blank": (SHEET, '<row r="3"', ' <row r="3"'),
    "empty row": (SHEET, "</sheetData>", '<row r="62" spans="1:5"></row></sheetData>'),
    "empty cell": (SHEET, "</row></sheetData>", '<c r="F61" s="1"/></row></sheetData>'),
    "part": ("customXml/item1.xml", "", "<a>Ann</a>"),
}  # fmt: skip


@pytest.mark.parametrize("how", WORKBOOKS)
def test_a_workbook_shows_its_cells_alone(tmp_path: Path, how: str) -> None:
    raw = bytes_of("r.xlsx")[0]
    assert verdict_on(tmp_path, "r.xlsx", raw).holds
    part, old, new = WORKBOOKS[how]
    with zipfile.ZipFile(io.BytesIO(raw)) as book:
        parts = {name: book.read(name).decode() for name in book.namelist()}
    if how == "format":
        old = parts[part][(at := parts[part].index('formatCode="')) : parts[part].index('"', at + 12)]
        new = 'formatCode="&quot;Ann&quot;'
    assert old in parts.get(part, "")
    parts[part] = parts.get(part, "").replace(old, new, 1) if old else new
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    assert is_refused(tmp_path, "r.xlsx", forged.getvalue())


def test_a_text_of_a_workbook_is_shared_once_and_in_the_order_of_cells() -> None:
    """A second entry of a text would mark the rows that refer to it."""

    def sheet(*numbers: int) -> str:
        cells = enumerate(numbers, 1)
        rows = "".join(f'<row r="{r}" spans="1:1"><c r="A{r}" t="s"><v>{n}</v></c></row>' for r, n in cells)
        return f"<sheetData>{rows}</sheetData>"

    def strings(*texts: str) -> str:
        return "".join(f"<si><t>{text}</t></si>" for text in texts)

    assert _marked(sheet(0, 1, 1, 2), strings("a", "x", "y")) is None
    assert _marked(sheet(0, 2, 2, 1), strings("a", "y", "x")) is not None
    for again in ("x", "&#120;", "_x0078_"):
        assert _marked(sheet(0, 1, 2, 1), strings("a", "x", again)) is not None
    assert _marked(sheet(0, 1, 2, 1), strings("a", "x", "y")[:-4] + "</t><t>z</t></si>") is not None


def test_a_workbook_is_an_archive_without_other_bytes(tmp_path: Path) -> None:
    raw = bytes_of("r.xlsx")[0]
    told = io.BytesIO(raw)
    with zipfile.ZipFile(told, "a") as book:
        book.comment = b"Ann has flu"
    for content in (told.getvalue(), raw + b"Ann", b"Ann" + raw, raw[:-4], b"a,b\n", b""):
        assert is_refused(tmp_path, "r.xlsx", content)


@pytest.mark.parametrize("name", ["c.csv", "c.csv.gz", "c.parquet", "c.xlsx"])
def test_a_crosswalk_holds_its_rows_alone(tmp_path: Path, name: str) -> None:
    crosswalk, path = released("labels")[0], tmp_path / name
    paper = crosswalk.write(path)
    assert shoal.verify(path, paper).holds
    raw = path.read_bytes()
    forged = {
        "c.csv": raw.replace(b"Adams", b'"Adams"', 1), "c.csv.gz": raw + b"Ann", "c.xlsx": raw + b"Ann",
        "c.parquet": raw,
    }[name]  # fmt: skip
    if name == "c.parquet":
        pq.write_table(pq.read_table(path).replace_schema_metadata({"who": "Ann"}), path)
        forged = path.read_bytes()
    path.write_bytes(forged)
    forge(paper, lambda f: f["release"].update(sha256=hashlib.sha256(forged).hexdigest(), bytes=len(forged)))
    if packed := name.endswith((".gz", ".xlsx")):
        with pytest.raises(VerificationError) if name.endswith(".gz") else nullcontext():
            assert not shoal.verify(path, paper).holds
    assert packed or failing(shoal.verify(path, paper)) == ["contents"]


def in_parts(folder: Path, ending: str) -> tuple[Path, Path, list[Path]]:
    """A release of these people in three parts, its certificate, and the parts."""
    source = folder / "in"
    source.mkdir()
    PEOPLE.drop("w").write_parquet(source / "p.parquet")
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "zip"], "sensitive": ["d"], "insensitive": ["note"]}
    made = shoal.anonymize(source, engine="duckdb", **asked, k=3, l=2, seed=1, effort="fast", publish="ranges")
    paper = made.write(folder / "out", parts=ending)
    (whole,) = (p for p in (folder / "out").iterdir() if p.suffix == f".{ending}")
    rows = pl.read_parquet(whole) if ending == "parquet" else pl.read_csv(whole, infer_schema=False)
    parts = [whole.with_name(f"part-0000{number}.{ending}") for number in range(3)]
    for number, part in enumerate(parts):
        written(rows[number::3], part)
    stated(folder / "out", parts)
    return folder / "out", paper, parts


def written(rows: pl.DataFrame, part: Path) -> None:
    rows.write_parquet(part) if part.suffix == ".parquet" else rows.write_csv(part)


def stated(folder: Path, parts: list[Path]) -> dict[str, Any]:
    """Write and return the manifest of these parts."""
    read = {".parquet": pl.read_parquet, ".csv": pl.read_csv}[parts[0].suffix]
    entries = [{"file": p.name, "rows": read(p).height, "bytes": p.stat().st_size, "sha256": digest(p)} for p in parts]
    rows = sum(entry["rows"] for entry in entries)
    manifest = {"format": 1, "made_by": {"shoal": shoal.__version__}, "rows": rows, "parts": entries}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def renamed(parts: list[Path]) -> list[Path]:
    return [parts[0].rename(parts[0].with_stem("Ann has flu")), *parts[1:]]


def empty_of(parts: list[Path], name: str, *columns: str) -> list[Path]:
    more = parts[0].with_stem(name)
    written(pl.DataFrame(schema=dict.fromkeys(["age", "zip", "d", "note", *columns], pl.String)), more)
    return [*parts, more]


def linked(parts: list[Path]) -> list[Path]:
    """The first part is a link to a file outside of the folder."""
    other = parts[0].parent.parent / "elsewhere"
    parts[0].rename(other)
    parts[0].symlink_to(other)
    return parts


MANIFESTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a key": lambda m: m.update(who="Ann"),
    "a key of who made it": lambda m: m["made_by"].update(who="Ann"),
    "who made it": lambda m: m["made_by"].update(shoal="Ann"),
    "a key of a part": lambda m: m["parts"][0].update(who="Ann"),
    "rows": lambda m: m.update(rows=61),
    "rows of parts": lambda m: (m["parts"][0].update(rows=19), m["parts"][1].update(rows=21)),
    "bytes of a part": lambda m: m["parts"][0].update(bytes=19870523),
    "a part twice": lambda m: m["parts"].append(m["parts"][0]),
    "a folder": lambda m: m["parts"].append({"file": "a=Ann", "rows": 0, "bytes": 0, "sha256": ""}),
    "a hash that is no text": lambda m: m["parts"][0].update(sha256=["Ann"]),
}
PARTS: dict[str, Callable[[list[Path]], list[Path]]] = {
    "a name": renamed,
    "a part without rows": lambda parts: empty_of(parts, "part-00009"),
    "a part with another column": lambda parts: empty_of(parts, "part-00003", "Ann"),
    "a hidden part": lambda parts: empty_of(parts, ".part-00003"),
    "a part that is missing": lambda parts: [*parts, parts[0].with_stem("part-00003")],
    "a link": linked,
}
BESIDE = {
    "a file": "_SUCCESS",
    "a hidden file": ".Ann",
    "statistics of all parts": "_metadata",
    "a folder": "a=Ann/b.csv",
}


@pytest.mark.parametrize("how", [*MANIFESTS, *PARTS, *BESIDE, "spaces", "a key twice"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_folder_holds_the_rows_of_its_parts_alone(tmp_path: Path, ending: str, how: str) -> None:
    out, paper, parts = in_parts(tmp_path, ending)

    def refused() -> bool:
        whole = {"sha256": digest(out / "manifest.json"), "bytes": sum(p.stat().st_size for p in out.iterdir())}
        forge(paper, lambda f: f["release"].update(whole | {"parts": len([*out.glob("*.*")]) - 1}))
        try:
            wrong = {f.check for f in shoal.verify(out, paper).findings if not f.holds}
        except VerificationError as error:
            wrong = {"contents"} if "Ann has" not in str(error) else set()
        return bool(wrong & {"contents", "parts"})

    assert not refused()
    if how in MANIFESTS:
        (out / "a=Ann").mkdir()
        MANIFESTS[how](manifest := stated(out, parts))
        (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        if how != "a folder":
            (out / "a=Ann").rmdir()
    elif how in PARTS:
        named = PARTS[how](parts)
        if how == "a part that is missing":
            shutil.copy(parts[0], named[-1])
        stated(out, named)
        named[-1].unlink() if how == "a part that is missing" else None
    elif how in BESIDE:
        (out / BESIDE[how]).parent.mkdir(exist_ok=True)
        (out / BESIDE[how]).write_text("Ann has flu")
    else:
        text = (out / "manifest.json").read_text()
        (out / "manifest.json").write_text(
            text.replace("{", '{\n  "rows": "Ann",', 1) if how == "a key twice" else f"{text} "
        )
    assert refused()
