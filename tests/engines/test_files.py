"""Tables on disk: what stands there is what is read, and what cannot be read is said plainly."""

import datetime as dt
import gzip
import os
import sqlite3
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.atomic import publish_file
from shoal.engines.csv import one_character, separator_of
from shoal.engines.store import read_table, refuse_for_excel, store
from shoal.errors import InputError, PolicyError


def written(folder: Path, content: bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize(
    "content",
    [
        b"zip,word\n01234,x\n00001,\n",
        b"zip;word\n01234;x\n00001;\n",
        b"zip\tword\n01234\tx\n00001\t\n",
        b"zip|word\r\n01234|x\r\n00001|\r\n",
        b'\xef\xbb\xbf"zip","word"\n"01234","x"\n"00001",\n',
        b"\n\nzip,word\n01234,x\n\n00001,\n\n\n",
        b"zip,word\n01234,x\n00001,",
    ],
)
def test_text_stays_as_written(tmp_path: Path, name: str, content: bytes) -> None:
    frame = read_table(written(tmp_path, content, name))
    assert frame.columns == ["zip", "word"]
    assert frame.rows() == [("01234", "x"), ("00001", None)]


def test_an_unknown_encoding_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="did you mean 'utf-8'"):
        read_table(written(tmp_path, b"name,v\nx,y\n"), encoding="utf-9")


def test_quotes_newlines_and_emoji(tmp_path: Path) -> None:
    frame = read_table(written(tmp_path, 'a,b\n"x\ny, ""z""",👩‍👩‍👧\n" p ",\n'.encode()))
    assert frame.rows() == [('x\ny, "z"', "👩‍👩‍👧"), (" p ", None)]
    out = tmp_path / "out.csv"
    store(frame, out)
    assert read_table(out).equals(frame)


def test_a_missing_last_value_is_no_short_row(tmp_path: Path) -> None:
    rows = read_table(written(tmp_path, b'a,b\n"1,5",\n2,"x\n\ny"\n,\n')).rows()
    assert rows == [("1,5", None), ("2", "x\n\ny"), (None, None)]


QUOTED = "age,town,ill\n" + '"30","",""\n"31","Ulm",\n"","Ulm","flu"\n,"","gout"\n' * 6


@pytest.mark.parametrize("engine", ["polars", "duckdb", "spark"])
def test_an_empty_field_is_missing_with_or_without_quotes(
    tmp_path: Path, engine: Literal["polars", "duckdb", "spark"], request: pytest.FixtureRequest
) -> None:
    """Many programs put every field in quotes, or only some: an age isn't a text because another one is missing."""
    if engine == "spark":
        request.getfixturevalue("spark")
    pytest.importorskip(engine if engine != "spark" else "pyspark")
    path = written(tmp_path, QUOTED.encode())
    release = shoal.anonymize(
        path, quasi_identifiers=["age", "town"], sensitive=["ill"], k=8, publish="ranges", engine=engine, effort="fast"
    )
    record = release.write(tmp_path / "r.csv")
    assert shoal.verify(tmp_path / "r.csv", record, path).holds
    found = pl.read_csv(tmp_path / "r.csv", infer_schema=False)
    assert Counter(found["ill"]) == {None: 12, "flu": 6, "gout": 6}
    assert '""' not in (tmp_path / "r.csv").read_text()
    assert not any("{" in age for age in found["age"].drop_nulls()), "ages stay numbers"


def test_blank_lines_beside_rows_without_any_value(tmp_path: Path) -> None:
    rows = read_table(written(tmp_path, b'a,b\n\n1,2\n,\n\r\n"",""\n\n')).rows()
    assert rows == [("1", "2"), (None, None), (None, None)]
    assert read_table(written(tmp_path, b"a\n1\n\n2\n\n")).rows() == [("1",), (None,), ("2",), (None,)]
    assert read_table(written(tmp_path, b'"a""b","c,"\n1,2\n'), coded=['a"b']).columns == ['a"b', "c,"]


def test_a_name_that_looks_like_a_doubled_one_is_fine(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, b"a,a_duplicated_0\n1,2\n")).columns == ["a", "a_duplicated_0"]


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", "t.xlsx"])
def test_broken_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    good = tmp_path / f"good{name[1:]}"
    store(pl.DataFrame({"a": [os.urandom(40).hex() for _ in range(50)]}), good)
    whole = good.read_bytes()
    holed = whole[: len(whole) // 2] + bytes(60) + whole[len(whole) // 2 + 60 :]
    for raw in (b"nonsense", whole[:-30], *([holed] if name.endswith(".gz") else [])):
        path.write_bytes(raw)
        with pytest.raises(InputError, match="cannot be read"):
            read_table(path)


def test_a_header_alone_has_columns(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, b"a,b\n"), rows=False).columns == ["a", "b"]


def test_a_database_where_a_file_is_read_is_called_one(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "t.db").executescript("create table t (a)")
    with pytest.raises(InputError, match=r"'t\.db' is a database"):
        read_table(tmp_path / "t.db")


def test_separators(tmp_path: Path) -> None:
    assert one_character("\\t") == "\t"
    assert separator_of(written(tmp_path, b"a;b,c;d\n")) == ";"
    assert separator_of(tmp_path / "t.parquet") is None
    for bad in ("", "ab", '"', "é", "\n"):
        with pytest.raises(PolicyError, match="separator"):
            one_character(bad)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_release_is_separated_as_its_table(tmp_path: Path, separator: str, packed: str) -> None:
    lines = ["zip,age,d", "01234,20,p", "01234,20,q", "01235,30,p"]
    source = written(tmp_path, "\r\n".join(lines).replace(",", separator).encode(), "t.csv" + packed)
    release = shoal.anonymize(source, quasi_identifiers=["zip"], insensitive=["age", "d"], k=3, effort="fast")
    target = tmp_path / ("r.csv" + packed)
    record = release.write(target)
    raw = gzip.decompress(target.read_bytes()) if packed else target.read_bytes()
    assert raw.splitlines()[0].decode() == lines[0].replace(",", separator)
    assert shoal.verify(target, record, source).holds
    release.write(tmp_path / "r.tsv", tmp_path / "tsv.json")
    assert (tmp_path / "r.tsv").read_bytes().startswith(b"zip\tage\td\n")
    assert shoal.verify(tmp_path / "r.tsv", tmp_path / "tsv.json", source).holds


def test_an_excel_column_with_one_text_among_numbers_loses_nothing(tmp_path: Path) -> None:
    import xlsxwriter

    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        sheet.write_column(0, 0, ["a", *range(1500), "last"])
        sheet.write_column(0, 1, ["b", *range(1501)])
    frame = read_table(path)
    assert frame.height == 1501
    assert frame["a"][-1] == "last"


def test_an_excel_column_without_a_value_is_read_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "t.xlsx"
    pl.DataFrame({"a": [1, 2], "b": [None, None]}).write_excel(path)
    assert read_table(path)["b"].null_count() == 2
    assert not caplog.records


def test_whole_numbers_beyond_64_bits_in_excel_are_read_and_not_written(tmp_path: Path) -> None:
    import xlsxwriter

    path = tmp_path / "t.xlsx"
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet()
        for column, values in enumerate((["a", 2.5e20, 1.0, 1.0], ["b", 1, 2, 3], ["c", "x", "", 5])):
            sheet.write_column(0, column, values)
    frame = read_table(path)
    assert frame["a"].to_list() == [2.5e20, 1.0, 1.0]
    assert frame["b"].to_list() == [1, 2, 3]
    assert frame["c"].to_list() == ["x", None, "5"]
    with pytest.raises(InputError, match=r"'a' has numbers beyond 64 bits.*write CSV"):
        refuse_for_excel(path, frame, ())


@pytest.mark.parametrize(
    ("frame", "says"),
    [
        (pl.DataFrame({"a": ["x" * 40_000]}), "32,767"),
        (pl.DataFrame({"a": ["x", None]}), "without any value"),
        (pl.DataFrame({"a": ["x", None, ""]}), "cannot distinguish"),
        (pl.DataFrame({"a": [[1]]}), "write Parquet"),
    ],
)
def test_what_excel_cannot_hold_is_refused(tmp_path: Path, frame: pl.DataFrame, says: str) -> None:
    with pytest.raises(InputError, match=says):
        publish_file(tmp_path / "t.xlsx", lambda temporary: store(frame, temporary))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("letter", "most"), [("x", 32_767), ("\N{FISH}", 16_383)])
def test_a_cell_of_a_sheet_holds_so_many_letters_and_no_more(tmp_path: Path, letter: str, most: int) -> None:
    store(pl.DataFrame({"a": [letter * most]}), tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="a text of more than 32,767 characters"):
        store(pl.DataFrame({"a": [letter * (most + 1)]}), tmp_path / "u.xlsx")


def test_what_csv_cannot_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="write Parquet"):
        store(pl.DataFrame({"a": [[1]]}), tmp_path / "t.csv")


def test_a_failed_file_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "t.csv"
    target.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"no space left in .* for 't.csv'"):
        publish_file(target, fail)
    with pytest.raises(ValueError, match="bad"):
        publish_file(target, lambda p: p.write_text("whole"), lambda _: (_ for _ in ()).throw(ValueError("bad")))
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize("break_", ["", "\n", "\r"])
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_lines_written_once_each_are_the_writer_s_own_bytes(tmp_path: Path, name: str, break_: str) -> None:
    lines = pl.DataFrame(
        {
            'a ",': ["", None, 'say "x"', "x,y", f"u{break_}v", "é\t", " "],
            "n": [1.5, None, float("nan"), -0.0, 1e300, float("inf"), 3.0],
            "d": pl.Series([None, "p", "q", "p", None, "#", "p"], dtype=pl.Categorical(pl.Categories.random())),
        }
    )
    rows = np.random.default_rng(1).integers(0, 7, 90).astype(np.uint32)
    for frame in (lines, lines.select("n"), lines.select("d"), lines.select('a ",'), lines.clear()):
        taken = rows[: 0 if frame.is_empty() else rows.size]
        store(frame[taken], tmp_path / name)
        whole = (tmp_path / name).read_bytes()
        store(frame, tmp_path / name, rows=taken)
        assert (tmp_path / name).read_bytes() == whole


@pytest.mark.parametrize("star", ["*", 'a "star", and\nmore'])
def test_a_release_dealt_out_is_written_as_its_table(tmp_path: Path, star: str) -> None:
    path = tmp_path / "in.csv"
    step = range(400)
    frame = {
        "a": [f"v{i % 5},{i % 2}" for i in step],
        "b": [i * i % 3 or None for i in step],
        "s": [i % 4 for i in step],
    }
    pl.DataFrame(frame).write_csv(path)
    release = shoal.anonymize(path, quasi_identifiers=["a", "b"], sensitive=["s"], k=60, l=2, effort="fast", star=star)
    assert release._placement.rows.tuples is not None
    assert release._placement.rows.placed
    release.write(tmp_path / "out.csv")
    store(release.table, tmp_path / "whole.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    other = release.with_table(release.table.reverse())
    other.write(tmp_path / "other.csv")
    store(other.table, tmp_path / "whole.csv")
    assert (tmp_path / "other.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


KINDS_IN_EXCEL = {
    "whole": ([1, 2], pl.Int64), "beyond digits": ([2**60, 1], pl.String), "part": ([0.5, 2.0], pl.Float64),
    "no number": ([float("inf"), 2.0], pl.String),
    "truth": ([True, False], pl.Boolean), "text": (["1", "2"], pl.String),
    "decimal": ([Decimal("1.10"), Decimal("2.00")], pl.String), "day": ([dt.date(2024, 1, 2)] * 2, pl.Date),
    "early day": ([dt.date(1900, 1, 2)] * 2, pl.String), "hour": ([dt.time(1, 2)] * 2, pl.String),
    "span": ([dt.timedelta(hours=1)] * 2, pl.String),
    "moment": ([dt.datetime(2024, 1, 2, 3, 4, 5, 6000)] * 2, pl.Datetime),
    "beyond milliseconds": ([dt.datetime(2024, 1, 2, 3, 4, 5, 6)] * 2, pl.String),
    "zone": ([dt.datetime(2024, 1, 2, tzinfo=dt.UTC)] * 2, pl.String),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS_IN_EXCEL)
def test_a_cell_of_a_sheet_is_of_its_columns_kind_or_text_beside_it(tmp_path: Path, name: str) -> None:
    values, kind = KINDS_IN_EXCEL[name]
    store(pl.DataFrame({name: values}), tmp_path / "t.xlsx")
    assert pl.read_excel(tmp_path / "t.xlsx")[name].dtype == kind
