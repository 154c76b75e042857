"""What files and frames hold beside their rows, planted one by one; what shoal writes holds nothing."""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from tests.attack.test_attack import QUASI, SENSITIVE, by_name, people

NAME = "files, levels and metadata"
SHOWN = pl.DataFrame({"q": ["b", "b", "*", "*", "a", "a"], "n": [1, 1, 2, 2, 3, 3], "s": list("xyxyxy")})
GIVEN: dict[str, Any] = {"quasi_identifiers": ["q"], "sensitive": ["s"]}


def found(table: Any) -> Any:
    return by_name(shoal.attack(table, **GIVEN))[NAME]


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    return shoal.anonymize(
        people(400, 2), quasi_identifiers=QUASI, sensitive=SENSITIVE, k=4, l=2, effort="fast", seed=1
    )


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "xlsx"])
def test_what_shoal_writes_holds_nothing(release: shoal.Release, ending: str, tmp_path: Path) -> None:
    if ending == "xlsx":
        pytest.importorskip("xlsxwriter")
        pytest.importorskip("fastexcel")
    release.write(tmp_path / f"release.{ending}")
    held = by_name(shoal.attack(tmp_path / f"release.{ending}"))[NAME]
    assert held.risk == 0.0, held.details
    assert not held.gain


@pytest.mark.parametrize("kind", ["polars", "pandas", "pyarrow"])
def test_what_shoal_makes_holds_nothing(release: shoal.Release, kind: str) -> None:
    given = {"quasi_identifiers": QUASI, "sensitive": SENSITIVE}
    frame: Any = release.table
    if kind == "pandas":
        pytest.importorskip("pandas")
        frame = frame.to_pandas()
    if kind == "pyarrow":
        pytest.importorskip("pyarrow")
        frame = frame.to_arrow()
    held = by_name(shoal.attack(frame, **given))[NAME]
    assert held.risk == 0.0, held.details


def test_levels_of_frames() -> None:
    pytest.importorskip("pandas")
    kept = SHOWN.with_columns(pl.col("q").cast(pl.Enum(["a", "b", "c", "*"])))
    assert found(kept).details["columns"] == "q (1 values)"
    assert found(kept.to_pandas()).details["columns"] == "q (1 values)"
    clean = SHOWN.with_columns(pl.col("q").cast(pl.Enum(["a", "b", "*"])))
    assert found(clean).risk == found(clean.to_pandas()).risk == 0.0


def test_pandas_index_and_attributes() -> None:
    pytest.importorskip("pandas")
    frame = SHOWN.to_pandas()
    moved = frame.set_index([[4, 0, 2, 1, 5, 3]])
    assert "index" in found(moved).details["order"]
    assert found(frame.reset_index(drop=True)).risk == 0.0
    frame.attrs["source"] = "people.csv"
    assert "attributes of the frame: source" in found(frame).details["others"]


def _dictionary(path: Path) -> None:
    """q lists a value that no row has."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    table = SHOWN.to_arrow()
    codes = arrow.array([0, 0, 2, 2, 3, 3])
    kept = arrow.DictionaryArray.from_arrays(codes, arrow.array(["b", "hidden", "*", "a"]))
    parquet.write_table(table.set_column(0, "q", kept), path)


def _order(path: Path) -> None:
    """q's dictionary stands in the order of rows before they were shuffled."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    codes = arrow.array([1, 1, 2, 2, 0, 0])
    kept = arrow.DictionaryArray.from_arrays(codes, arrow.array(["a", "b", "*"]))
    parquet.write_table(SHOWN.to_arrow().set_column(0, "q", kept), path)


def _sorted(path: Path) -> None:
    import pyarrow.parquet as parquet

    table = SHOWN.to_arrow()
    parquet.write_table(table, path, sorting_columns=[parquet.SortingColumn(1)])


def _key(path: Path) -> None:
    import pyarrow.parquet as parquet

    table = SHOWN.to_arrow()
    parquet.write_table(table.replace_schema_metadata({"note": '{"before": {"separation": 0.5}}'}), path)


def _field(path: Path) -> None:
    import pyarrow.parquet as parquet

    table = SHOWN.to_arrow()
    kept = table.schema.field("q").with_metadata({"source": "people.csv"})
    parquet.write_table(table.cast(table.schema.set(0, kept)), path)


def _pandas_index(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = SHOWN.to_pandas()
    frame.index = pandas.Index([4, 0, 2, 1, 5, 3], name="row")
    frame.to_parquet(path)


def _range(path: Path) -> None:
    """pandas keeps that the index ran further than the rows."""
    pandas = pytest.importorskip("pandas")
    frame = SHOWN.to_pandas()
    frame.index = pandas.RangeIndex(0, 60, 10)
    frame.to_parquet(path)


def _categories(path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = SHOWN.to_pandas()
    frame["q"] = pandas.Categorical(frame["q"], categories=["*", "a", "b", "hidden"])
    frame.to_parquet(path, engine="pyarrow")


def _enum(path: Path) -> None:
    SHOWN.with_columns(pl.col("q").cast(pl.Enum(["b", "*", "a", "hidden;one"]))).write_parquet(path)


PLANTED: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "dictionary": (_dictionary, "columns", "q (1 values)"),
    "order of a dictionary": (_order, "order", "dictionary of 'q'"),
    "sorting columns": (_sorted, "order", "sorted by n"),
    "key": (_key, "others", "metadata 'note' with before of the original"),
    "field": (_field, "others", "metadata 'source' of column 'q'"),
    "pandas index": (_pandas_index, "order", "stored index of pandas, 'row'"),
    "pandas range": (_range, "others", "runs from 0 to 60"),
    "pandas categories": (_categories, "others", "'q' had 4 categories"),
    "levels of polars": (_enum, "columns", "q (1 values)"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_in_a_parquet_file(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write, where, said = PLANTED[name]
    write(tmp_path / "r.parquet")
    held = found(tmp_path / "r.parquet")
    assert said in held.details[where], held.details
    assert held.risk == 1.0
    assert held.gain


def test_statistics_of_other_rows(tmp_path: Path) -> None:
    """Ends and counts that were taken before values were starred."""
    pytest.importorskip("pyarrow")
    from shoal.attacks.files import Residue, _statistics

    class Statistics:
        has_min_max, min, max = True, 0, 99
        has_null_count, null_count = True, 2
        has_distinct_count, distinct_count = True, 7

    class Column:
        path_in_schema, statistics, num_values = "n", Statistics(), 8

    held = Residue()
    _statistics(Column(), SHOWN, held)
    assert held.values == {"n": {"0", "99"}}
    assert len(held.others) == 3
    Statistics.min, Statistics.max, Statistics.null_count, Statistics.distinct_count, Column.num_values = 1, 3, 0, 3, 6
    clean = Residue()
    _statistics(Column(), SHOWN, clean)
    assert not clean.leaks
    SHOWN.write_parquet(tmp_path / "r.parquet", statistics="full")
    assert found(tmp_path / "r.parquet").risk == 0.0


def test_kinds_of_columns_are_read_alike(tmp_path: Path) -> None:
    """Dates, moments, small floats and truth values: their statistics are of the rows."""
    pytest.importorskip("pyarrow")
    days = pl.Series(["2020-01-01", "2021-05-06", "2020-01-01", "2021-05-06"])
    frame = pl.DataFrame(
        {
            "q": ["a", "a", "*", "*"],
            "s": list("xyxy"),
            "day": days.str.to_date(),
            "moment": days.str.to_datetime(time_unit="us"),
            "late": days.str.to_datetime(time_unit="ns", time_zone="UTC"),
            "small": pl.Series([0.1, 0.2, 0.1, 0.2], dtype=pl.Float32),
            "yes": [True, False, True, False],
            "long": ["x" * 200] * 4,
        }
    )
    frame.write_parquet(tmp_path / "r.parquet", statistics="full")
    assert found(tmp_path / "r.parquet").risk == 0.0, found(tmp_path / "r.parquet").details
    frame.to_pandas().to_parquet(tmp_path / "p.parquet")
    assert found(tmp_path / "p.parquet").risk == 0.0, found(tmp_path / "p.parquet").details


def test_bytes_that_nothing_refers_to(tmp_path: Path) -> None:
    """A file between whose columns an older row group still stands: its footer names the newer one alone."""
    pytest.importorskip("pyarrow")
    from types import SimpleNamespace as Made

    from shoal.attacks.files import _between

    def column(begin: int, size: int) -> Any:
        return Made(dictionary_page_offset=None, data_page_offset=begin, total_compressed_size=size, file_offset=0,
                    bloom_filter_offset=None, bloom_filter_length=None)  # fmt: skip

    def whole(*columns: Any) -> Any:
        return Made(num_row_groups=1, row_group=lambda _: Made(num_columns=len(columns), column=columns.__getitem__))

    assert _between(whole(column(4, 10), column(14, 6)), 100) == 0
    assert _between(whole(column(34, 10), column(50, 6)), 100) == 30 + 6


def test_quotes_of_a_csv(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('q,s\n"a",x\na,y\n*,x\n*,y\n')
    assert "1 values of 'q' are written with and without quotes" in found(tmp_path / "r.csv").details["others"]
    (tmp_path / "c.csv").write_text('q,s\n"a, b",x\n"a, b",y\n*,x\n*,y\n')
    assert found(tmp_path / "c.csv").risk == 0.0
    (tmp_path / "d.csv").write_text('q,s\n"a","x"\n"a","y"\n"say ""no""","x"\n"say ""no""","y"\n')
    assert found(tmp_path / "d.csv").risk == 0.0


def test_parts_of_a_workbook(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("fastexcel")
    with xlsxwriter.Workbook(tmp_path / "r.xlsx") as book:
        book.set_properties({"author": "A. Person"})
        sheet = book.add_worksheet("release")
        for r, row in enumerate([SHOWN.columns, *SHOWN.rows()]):
            for c, value in enumerate(row):
                sheet.write(r, c, value)
        other = book.add_worksheet("source")
        other.write(0, 0, "Ulmhausen")
        other.hide()
        sheet.write_comment(1, 0, "was Ulmhausen")
        sheet.set_row(3, None, None, {"hidden": True})
    held = found(tmp_path / "r.xlsx").details
    assert "texts that no cell shows (1 values)" in held["columns"]
    for said in ("2 sheets, 1 of them hidden", "1 hidden rows", "comments", "who wrote it (creator)"):
        assert said in held["others"], held
    with zipfile.ZipFile(tmp_path / "r.xlsx", "a") as book:
        book.writestr("xl/pivotCache/pivotCacheRecords1.xml", "<r/>")
    assert "cached pivot" in found(tmp_path / "r.xlsx").details["others"]
