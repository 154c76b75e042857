"""A CSV is what a strict parser says it is, or it is refused with line and column and without a value."""

import bz2
import gzip
import io
import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines.csv import examine, separator_of
from shoal.engines.open import open_file, open_table
from shoal.engines.store import read_table
from shoal.errors import InputError, PolicyError
from tests.commands import run
from tests.engines.test_files import written
from tests.fuzz.csv_bytes import bent, outcome

SECRET = "SECRET"


REFUSED: list[tuple[bytes, str]] = [
    (b'age,"zip,ssn\n1,10115,SECRET1\n1,10116,SECRET2\n', "line 1, column 2: a quote is never closed"),
    (b'age,height"\n1,SECRET\n', "line 1, column 2: a quote inside a field"),
    (b'a,b\n1,"SECRET\n2,x\n', "line 2, column 2: a quote is never closed"),
    (b'a,b\n1,"SECRET""\n2,x\n', "line 2, column 2: a quote is never closed"),
    (b'a,b\n"x","SECRET\n2,x\n', "line 2, column 2: a quote is never closed"),
    (b'a,b\n\n1,2\n"20"SECRET,1\n', "line 4, column 1: text after a closing quote"),
    (b'a,b\n1,"SECRET\n2,"x"\n', "line 3, column 2: text after a closing quote (the field begins in line 2)"),
    (b'a,b\n1,SEC"RET"\n', "line 2, column 2: a quote inside a field"),
    (b'a,b\n"SECRET" ,1\n', "line 2, column 1: text after a closing quote"),
    (b'a,b\n"SECRET"\r,1\n', "line 2, column 1: text after a closing quote"),
    (b'a,b\n1, "SECRET"\n', "line 2, column 2: a quote inside a field"),
    (b"a,b,c\n1,2,SECRET\n1,SECRET\n", "fewer fields in line 3"),
    (b"a,b,c\n1,SECRET\n1,2,SECRET\n", "fewer fields in line 2"),
    (b'a,b,c\n1,"2,\n2",3\nSECRET,2\n', "fewer fields in line 4"),
    (b"a,b\n1,2\n\nSECRET,2,3\n", "more fields in line 4"),
    (b'a,b\n"x\ny",2\n"SECRET,\n\n",2,3\n', "more fields in line 4"),
    (b"SECRET,b,SECRET\n1,2,3\n", "columns 1 and 3 have the same name"),
    (b"a,,c\n1,SECRET,3\n", "line 1, column 2: a column without a name"),
    (b"a, ,c\n1,SECRET,3\n", "line 1, column 2: a column without a name"),
    (b'a,""\n1,SECRET\n', "line 1, column 2: a column without a name; name it in the header"),
    (b'"",a\n1,SECRET\n', "header, or write the file without the names of rows (row.names = FALSE in R, index=False"),
    (b"a,b\n1,SECRET\n1,SEC\0RET\n", "line 3, column 2: a NUL byte"),
    (b'a,b\n1,SECRET\n"caf\xe9",SECRET\n', "line 3, column 1: a byte that is not UTF-8"),
    (b'a,b\n1,"SECRET"\xe9\n', "line 2, column 2: text after a closing quote"),
    ("a,b\n1,SECRET\n".encode("utf-16"), "UTF-16"),
    ("a,b\n1,SECRET\n".encode("utf-16-le"), "UTF-16"),
    ("a,b\n1,SECRET\n".encode("utf-16-be"), "UTF-16"),
    (b"a\xc3\xa4,b\n1,SEC\0RET\n", "line 2, column 2: a NUL byte"),
    (b"SECRET,,\na,b,c\n1,2,3\n", "name it in the header; if a title or merged cells are above the header, delete"),
    (b"a,b\r1,SECRET\r", "line 1, column 2: a carriage return"),
    (b"a,b\n1,SEC\rRET\n", "line 2, column 2: a carriage return"),
    (b"a,b\n1,SECRET\r", "line 2, column 2: a carriage return"),
    (b"a,b\n", "no rows"),
    (b"a,b", "no rows"),
    (b"a,b\n\n\n", "no rows"),
    (b"", "empty"),
    (b"\xef\xbb\xbf\n\n", "empty"),
    (b"a,b;c\n1,SECRET;2\n", "as many columns by ',' and ';'"),
    (b"sep=,\na,b\n1,SECRET\n", "the first line of"),
]
FOREIGN = {
    "t.csv": [
        (b"PAR1\x15\x04SECRET", "is a Parquet file, and is read as CSV by its name; end its name in .parquet"),
        (b"PK\x03\x04SECRET", "is an Excel file or a ZIP archive"),
        (gzip.compress(b"a,b\n1,SECRET\n", mtime=0), "is packed with gzip, and is read as CSV by its name; end its"),
        (bz2.compress(b"a,b\n1,SECRET\n"), "is packed with bzip2"),
        (b"<!DOCTYPE html>\n<p>SECRET</p>\n", "is a web page"),
        (b'[{"name": "SECRET"}]', "is JSON"),
    ],
    "t.csv.zst": [(b"\x28\xb5\x2f\xfdSECRET", "is packed with zstd, and is read as CSV by its name; unpack it first")],
    "t.geojson.gz": [(b"{}", "is a packed map; unpack it first")],
    "t.ndjson": [(b"{}", "or pass the frame of polars.read_ndjson(...) to")],
    "t.rds": [(b"X", r"in R with write.csv(data, 't.csv', row.names = FALSE, na = '')")],
    "t.feather": [(b"ARROW1", "Excel (.xlsx), or pass the frame of polars.read_ipc")],
    "t.pdf": [(b"%PDF", "cannot read 't.pdf'; save it as CSV, Parquet or Excel (.xlsx)")],
}


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize(("name", "content", "says"), [(n, *each) for n, held in FOREIGN.items() for each in held])
def test_what_is_no_csv_is_refused_by_what_it_is(
    tmp_path: Path, content: bytes, says: str, name: str, engine: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        open_table(tmp_path / name, engine)
    assert SECRET not in str(caught.value)


def test_an_engine_reads_no_map(tmp_path: Path) -> None:
    (tmp_path / "t.geojson").write_bytes(b"{}")
    with pytest.raises(InputError, match="is a map, which is read whole and in memory; leave engine"):
        open_table(tmp_path / "t.geojson", "duckdb")


@pytest.mark.parametrize("names", ["PAR1,par2", "bzh1,b", "pk,b"])
def test_a_header_may_begin_as_another_kind_of_file_does(tmp_path: Path, names: str) -> None:
    (tmp_path / "t.csv").write_text(f"{names}\n1,2\n3,4\n")
    assert list(open_table(tmp_path / "t.csv", "polars").columns) == names.split(",")


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("https://bob:SECRET@example.org/t.csv", "is a web address; download the file"),
        ("file:///data/t.csv", "without 'file://'"),
        ("s3://bucket/t.parquet", "engine='spark'"),
    ],
)
def test_an_address_that_nobody_here_reads_says_what_to_do(address: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        open_table(address)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(("content", "says"), REFUSED)
def test_what_breaks_the_rules_is_refused_by_line_and_column(
    tmp_path: Path, content: bytes, says: str, name: str, engine: str
) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        open_table(written(tmp_path, content, name), engine)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("size", [4, 5, 7, 16, 1 << 18])
def test_every_slice_gives_the_same_structure(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("shoal.engines.csv._SLICE", size)
    for content, says in REFUSED:
        if "UTF-16" in says or "by ','" in says or "no rows" in says:
            continue
        with pytest.raises(InputError, match=re.escape(says)):
            examine(io.BytesIO(content), ",", "t.csv")
    text = '\ufeff\n\r\nä,"b\r\n"""\r\n"x\ny","é"\r\n\r\n1,\r\n"",""'.encode()
    found = examine(io.BytesIO(text), ",", "t.csv")
    assert found.names == ("ä", 'b\r\n"')
    assert (found.records, found.blank.tolist(), found.leading) == (3, [1], 2)
    assert (found.crlf, found.lf, found.inner) == (5, 2, 2)
    assert found.longest == len(b'"x\ny","\xc3\xa9"\r\n')


def test_a_slice_may_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'a,"b"\r\n"1","x""y"\r\n\r\n\r\n"",""\r\n\r\n'
    for size in range(4, len(text) + 1):
        monkeypatch.setattr("shoal.engines.csv._SLICE", size)
        found = examine(io.BytesIO(text), ",", "t.csv")
        assert (found.names, found.records, found.blank.tolist(), found.crlf) == (("a", "b"), 2, [1, 2, 4], 6)


def test_a_record_without_end_is_refused_before_it_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.engines.csv._SLICE", 16)
    monkeypatch.setattr("shoal.engines.csv._LONGEST", 1 << 10)

    class Endless(io.RawIOBase):
        read_so_far = 0

        def read(self, size: int = -1) -> bytes:
            self.read_so_far += size
            assert self.read_so_far < 1 << 16
            return b'a,"b' + b"\n" * (size - 4) if self.read_so_far == size else b"\n" * size

    with pytest.raises(InputError, match="line 1, column 1: a record of more than"):
        examine(Endless(), ",", "t.csv")  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [b"a,b\r" + b"1,2\r" * 5000, b'a,"b\n' + b"1,2\n" * 5000])
def test_a_header_without_end_is_refused_before_it_becomes_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: pytest.fail("a column was made of every field"))
    with pytest.raises(InputError, match="line 1, column"):
        read_table(written(tmp_path, content))


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_bent_bytes(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    path = tmp_path / "t.csv"
    found = [outcome(bent(seed), path, engine) for seed in range(300 if engine == "polars" else 60)]
    assert min(found.count("read"), found.count("refused")) > len(found) // 5


def test_two_readers_that_differ_are_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b'a,b\n1,2\n"3\n",4\n5,6\n')
    whole = pl.read_csv
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: whole(*a, **k).filter(pl.col("b") != "4"))
    with pytest.raises(InputError, match="two readers do not agree on the record in line 3"):
        read_table(path)
    monkeypatch.setattr(pl, "read_csv", lambda *a, **k: whole(*a, **k).rename({"a": "c"}))
    with pytest.raises(InputError, match="two readers do not agree on the header in line 1"):
        read_table(path)


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_a_title_above_the_names_is_told(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(engine)
    path = written(tmp_path, b'Visits of 2024\n\nage;"a;b"\n20;x\n20;"y;z"\n')
    with pytest.raises(InputError, match=r"the first line of 't.csv' has no ';', and each of the next has 1: if it is"):
        shoal.anonymize(path, quasi_identifiers=["age"], k=1, engine=engine)
    path = written(tmp_path, b"towns\nUlm;Bonn\nKiel;Jena\n")
    release = shoal.anonymize(path, quasi_identifiers=["towns"], k=2, engine=engine, separator=",", effort="fast")
    assert release.audit.rows == 2
    for text in (b"name\nUlm\nKiel; Bonn\nx\n", b"name\nUlm;Bonn\n", b"name\n"):
        assert separator_of(written(tmp_path, text)) == ","


def test_a_wrong_separator_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, b"age;zip\n1;2\n1;2\n")
    with pytest.raises(InputError, match="say separator=';'"):
        read_table(path, separator=",")
    path = written(tmp_path, b"age;zip,code,x\n1;2,3,4\n")
    for engine in ("polars", "duckdb"):
        with pytest.raises(PolicyError, match="the separator ';' instead of ',' would give it") as refused:
            shoal.anonymize(path, quasi_identifiers=["age"], k=1, engine=engine)
        assert refused.value.column == "age"
    with pytest.raises(PolicyError, match="would give it"):
        shoal.audit(path, quasi_identifiers=["age"])


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["p[1]", "*", "q?", "{p1,p2}", "a'b", "year=7", "[*]"])
def test_names_are_literal(tmp_path: Path, name: str, kind: str, engine: str) -> None:
    for other in ("p1", "p2", "q1", name):
        frame = pl.DataFrame({"a": [other, other]})
        target = tmp_path / f"{other}.{kind}"
        if kind == "csv":
            frame.write_csv(target)
        else:
            frame.write_parquet(target)
    release = shoal.anonymize(tmp_path / f"{name}.{kind}", quasi_identifiers=["a"], k=2, engine=engine, star="-")
    table: Any = release.table if engine == "polars" else release.table.pl()
    assert table.rows() == [(name,), (name,)]


def test_folders_pipes_and_changing_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for engine in ("polars", "duckdb"):
        with pytest.raises(InputError, match="a folder, several files" if engine == "polars" else "no Parquet or CSV"):
            open_table(tmp_path, engine)
        with pytest.raises(InputError, match="no file"):
            open_table(tmp_path / "no.csv", engine)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="a pipe"):
        read_table(tmp_path / "pipe.csv")
    path = written(tmp_path, b"a,b\n1,2\n")
    whole = pl.read_csv

    def slow(*given: Any, **more: Any) -> pl.DataFrame:
        frame = whole(*given, **more)
        path.write_bytes(b"a,b\n1,2\n3,4\n")
        return frame

    monkeypatch.setattr(pl, "read_csv", slow)
    with pytest.raises(InputError, match="changed while it was read"):
        read_table(path)


def test_latin_1_is_read_only_when_it_is_said(tmp_path: Path) -> None:
    raw = 'a,b\n"é",ü\n'.encode("latin-1")
    path = written(tmp_path, raw)
    with pytest.raises(InputError, match=r"line 2, column 1: a byte that is not UTF-8; .* say encoding='windows-1252'"):
        read_table(path)
    assert read_table(path, encoding="Latin-1").rows() == [("é", "ü")]
    assert open_file(path, "duckdb", encoding="latin-1").native.fetchall() == [("é", "ü")]
    with pytest.raises(InputError, match="mark of UTF-8"):
        read_table(written(tmp_path, b"\xef\xbb\xbf" + raw), encoding="latin-1")


def test_windows_1252_has_what_latin_1_lacks(tmp_path: Path) -> None:
    """The sign of the euro is a control character in Latin-1, so a release would publish that."""
    path = written(tmp_path, "a,b €\n“x”,5 €\né,ü\n".encode("cp1252"))
    for said in ("windows-1252", "cp1252"):
        frame = read_table(path, encoding=said)
        assert (frame.columns, frame.rows()) == (["a", "b €"], [("“x”", "5 €"), ("é", "ü")])
    for read in (read_table, partial(open_file, engine="duckdb")):
        with pytest.raises(InputError, match=r"line 1, column 2: a byte that is no letter in Latin-1; .*windows-1252"):
            read(path, encoding="latin-1")
    with pytest.raises(InputError, match="Windows-1252, such as €, which DuckDB does not read; save"):
        open_file(path, "duckdb", encoding="windows-1252")
    plain = written(tmp_path, "a,b\né,ü\n".encode("cp1252"))
    assert open_file(plain, "duckdb", encoding="windows-1252").native.fetchall() == [("é", "ü")]
    with pytest.raises(InputError, match="line 2, column 2: a byte that is no character in Windows-1252"):
        read_table(written(tmp_path, b"a,b\n1,\x81\n"), encoding="windows-1252")


def test_duckdb_reads_what_is_there(tmp_path: Path) -> None:
    rows = [f"{i},x" for i in range(30_000)]
    rows[100] = "#5,x"
    rows[26_000] = '"a, b","""q"""'
    rows[29_000] = "NULL,nan"
    table = open_file(written(tmp_path, "\n".join(["id,v", *rows]).encode()), "duckdb")
    found = table.native.fetchall()
    assert len(found) == 30_000
    assert (found[100], found[26_000], found[29_000]) == (("#5", "x"), ("a, b", '"q"'), ("NULL", "nan"))
    long = "x" * 3_000_000
    assert open_file(written(tmp_path, f"a,b\n1,{long}\n".encode()), "duckdb").native.fetchall() == [("1", long)]


def test_engines_that_fold_case_refuse_names_alike(tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path = written(tmp_path, b"name,a,Name\n1,2,3\n")
    assert read_table(path).columns == ["name", "a", "Name"]
    parquet.write_table(pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), tmp_path / "t.parquet")
    for engine in ("duckdb", *(["spark"] if find_spec("pyspark") else [])):
        for file in (path, tmp_path / "t.parquet"):
            with pytest.raises(InputError, match=r"columns 1 and . are the same or differ by case alone"):
                open_file(file, engine)
    with pytest.raises(InputError, match="same name"):
        read_table(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="CR LF"):
        open_file(written(tmp_path, b"a,b\r\n1,2\n"), "duckdb")


def test_an_engine_that_finds_other_rows_is_not_believed(tmp_path: Path) -> None:
    table = open_file(written(tmp_path, b"a,b\n1,2\n3,4\n"), "duckdb")
    table.origin = table.origin._replace(records=3)
    with pytest.raises(InputError, match=r"two readers do not agree on 't\.csv'"):
        table.count(["a"], ["b"])


def test_excel_names_and_errors(tmp_path: Path) -> None:
    import xlsxwriter

    def book(*rows: list[Any], formula: int = 0, sheets: int = 1) -> Path:
        path = tmp_path / "t.xlsx"
        with xlsxwriter.Workbook(path) as made:
            sheet = made.add_worksheet("people")
            for i, row in enumerate(rows):
                sheet.write_row(i, 0, row)
            for i in range(formula):
                sheet.write_formula(2, 1 + i, "=1/0", None, "#DIV/0!")
            for _ in range(1, sheets):
                made.add_worksheet()
        return path

    assert read_table(book(["a", "b"], ["x", 1], ["y", 2])).rows() == [("x", 1), ("y", 2)]
    for rows, says in (
        ([["name", "a", "name"], ["x", 1, "y"]], "columns 1 and 3 have the same name"),
        ([["name", "", "b"], ["x", 1, "y"]], "column 2 has no name"),
        ([["name", "", "b"], ["x", 1, "y"]], "name it in the first row$"),
        ([["People of 2025", "", ""], ["name", "a", "b"], ["x", 1, 2]], "a title or merged cells are above the header"),
        (
            [["People", "", "Home", ""], ["name", "a", "b", "c"]],
            "first row; if a title or merged cells are above the",
        ),
        ([["name", "b"]], "there is nothing to publish$"),
        ([], "empty"),
    ):
        with pytest.raises(InputError, match=says):
            read_table(book(*rows))
    with pytest.raises(InputError, match=r"this is its sheet .*: to read .*, name it with table="):
        read_table(book(["name", "b"], sheets=3))
    with pytest.raises(InputError, match="cell B3 holds an error such as #REF!; repair the cell or empty it"):
        read_table(book(["a", "b"], ["x", 1], ["y", 2], formula=1))
    with pytest.raises(InputError, match="cell B3 and 2 more hold errors"):
        read_table(book(["a", "b", "c", "d"], ["x", 1, 2, 3], ["y", 2, 3, 4], formula=3))


def test_a_sheet_of_excel_is_read_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import xlsxwriter

    monkeypatch.chdir(tmp_path)
    people = pl.DataFrame({"age": [30, 31, 40, 41] * 3, "ill": ["flu", "gout"] * 6})
    with xlsxwriter.Workbook("t.xlsx") as made:
        notes = made.add_worksheet("Notes")
        notes.write_row(0, 0, ["written by", "Ada"])
        notes.write_formula(1, 0, "=1/0", None, "#DIV/0!")  # an error on another sheet is none of the table's
        people.write_excel(made, worksheet="Visits 2025")
    assert read_table("t.xlsx", layer="Visits 2025").equals(people)
    asked: dict[str, Any] = {"table": "Visits 2025", "quasi_identifiers": ["age"], "sensitive": ["ill"]}
    assert shoal.anonymize("t.xlsx", k=3, effort="fast", **asked).table.height == 12
    assert shoal.audit("t.xlsx", **asked).rows == 12
    with pytest.raises(PolicyError, match=r"'Visits 2024'.*Visits 2025"):
        shoal.audit("t.xlsx", table="Visits 2024", quasi_identifiers=["age"])
    with pytest.raises(InputError, match="cell A2 holds an error"):
        read_table("t.xlsx")
    with pytest.raises(InputError, match="is read by the Polars engine alone"):
        shoal.audit("t.xlsx", engine="duckdb", table="Visits 2025", quasi_identifiers=["age"])
    run("init", "t.xlsx", "--table", "Visits 2025", "--k", "3", "--l", "1", "-o", "p.toml").ok()
    roles = ("--quasi", "age", "--sensitive", "ill", "--k", "3", "--effort", "fast")
    run("anonymize", "t.xlsx", "--table", "Visits 2025", *roles, "-o", "r.csv").ok()
    run("verify", "r.csv", "r.certificate.json", "--original", "t.xlsx", "--table", "Visits 2025").ok()
    run("verify", "r.csv", "r.certificate.json", "--original", "t.xlsx").refused(2, "cell A2 holds an error")
    run("gather", "t.xlsx", "--layer", "Visits 2025", "--columns", "age", "--r", "3", "-o", "c.csv").ok()
    run("verify", "c.csv", "c.certificate.json", "--original", "t.xlsx", "--table", "Visits 2025").ok()


def test_deep_json_is_refused(tmp_path: Path) -> None:
    from shoal.engines.vector import read_drawing

    for text in ("[" * 50_000, '{"type":"FeatureCollection","features":' + "[" * 50_000, "{", '{"a": 1}'):
        (tmp_path / "a.geojson").write_text(text)
        with pytest.raises(InputError):
            read_drawing(tmp_path / "a.geojson")
