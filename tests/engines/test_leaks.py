"""A suppressed value is nowhere in what is published: not in the bytes of a file, not in a frame's levels."""

import gzip
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal

KEPT = ["keepsake-one", "keepsake-two"]
GONE = [f"forbidden-{word}" for word in ("apple", "birch", "cedar", "daisy")]
NUMBERS = [7_777_777_001, 7_777_777_002, 7_777_777_003, 7_777_777_004]


def people(kind: Any = pl.String) -> pl.DataFrame:
    """Eight people, of whom four can be grouped only with their place and number suppressed."""
    return pl.DataFrame(
        {
            "place": pl.Series([*KEPT, *KEPT, *GONE]).cast(kind),
            "number": [1, 2, 1, 2, *NUMBERS],
            "other": pl.Series([f"carried {i % 2}" for i in range(8)]).cast(
                kind if kind == pl.Categorical else pl.String
            ),
            "secret": ["p", "p", "q", "q", "p", "q", "p", "q"],
        }
    )


def asked() -> dict[str, Any]:
    return {"quasi_identifiers": ["place", "number"], "sensitive": ["secret"], "k": 2, "effort": "fast"}


def assert_clean(raw: bytes) -> None:
    for word in GONE:
        assert word.encode() not in raw
        assert word.split("-")[1].encode() not in raw
        assert word.encode("utf-16-le") not in raw
    for number in NUMBERS:
        assert str(number).encode() not in raw
        assert number.to_bytes(8, "little") not in raw


def unpacked(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix == ".gz":
        return gzip.decompress(raw)
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            return raw + b"".join(archive.read(name) for name in archive.namelist())
    if path.suffix == ".parquet":  # pages are packed: lay them out once more without packing
        import pyarrow.parquet as pq

        file = pq.ParquetFile(path)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        columns = [group.column(j) for group in groups for j in range(group.num_columns)]
        told = repr(file.metadata.metadata) + repr(file.schema_arrow.metadata) + repr([c.statistics for c in columns])
        raw += told.encode()
        dictionaries = pq.read_table(path, read_dictionary=["place", "other", "secret"])
        for name in ("place", "other", "secret"):
            for chunk in dictionaries[name].chunks:
                raw += repr(getattr(chunk, "dictionary", chunk).to_pylist()).encode()
    return raw


@pytest.mark.diagonal
@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".parquet", ".xlsx", ".tsv", ".sav", ".dta"])
@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum([*KEPT, *GONE])], ids=["text", "category", "enum"])
def test_the_bytes_written_hold_no_suppressed_value(tmp_path: Path, ending: str, kind: Any) -> None:
    frame = people() if isinstance(kind, pl.Enum) else people(kind)
    if isinstance(kind, pl.Enum):
        frame = frame.with_columns(pl.col("place").cast(kind))
    release = shoal.anonymize(frame, **asked())
    assert release.loss["stars"] == 8
    path = tmp_path / f"release{ending}"
    beside = release.write(path)
    raw = unpacked(path)
    assert_clean(raw + beside.read_bytes() + release.report(tmp_path / "report.html").read_bytes())
    assert KEPT[0].encode() in raw, "the search would not have found anything"


@pytest.mark.parametrize("source", [".csv", ".parquet", ".xlsx"])
def test_nor_do_those_of_a_release_made_from_a_file(tmp_path: Path, source: str) -> None:
    from shoal.engines.store import store

    store(people(), tmp_path / f"people{source}")
    path = tmp_path / "release.parquet"
    shoal.anonymize(tmp_path / f"people{source}", **asked()).write(path)
    assert_clean(unpacked(path))


def test_frames_hold_no_suppressed_value() -> None:
    for kind in (pl.String, pl.Categorical):
        frame = people(kind)
        out = shoal.anonymize(frame, **asked()).table
        assert_clean(pickle.dumps(out))
        assert_clean(repr(out.to_arrow()).encode())
        assert_clean(out.to_pandas().to_csv().encode())
    table = people().to_arrow()
    table = table.set_column(0, "place", table["place"].dictionary_encode()).replace_schema_metadata({"note": GONE[0]})
    out = shoal.anonymize(table, **asked()).table
    assert_clean(pickle.dumps(out))
    assert out.schema.metadata is None
    assert pa.types.is_dictionary(out.schema.field("place").type)


def test_pandas_levels_and_index_hold_no_suppressed_value() -> None:
    frame = people().to_pandas()
    frame["place"] = frame["place"].astype("category")
    frame = frame.set_index(pd.Index(frame["place"].astype(str), name=GONE[0]), drop=False)
    frame.attrs["note"] = GONE[0]
    out = shoal.anonymize(frame, **asked()).table
    assert set(out["place"].cat.categories) == {*KEPT, "*"}
    assert isinstance(out.index, pd.RangeIndex)
    assert out.attrs == {}
    assert_clean(pickle.dumps(out))


def test_an_index_stays_with_the_order_and_only_where_it_numbers_rows(tmp_path: Path) -> None:
    frame = people().to_pandas().sample(frac=0.9, random_state=1)
    for missing in ("category", "apart", "filled"):
        release = shoal.anonymize(frame, keep_order=True, missing=missing, **asked())
        assert list(release.table.index) == list(frame.index), missing
        assert (release.table.loc[frame.index, "other"] == frame["other"]).all()
    release.write(tmp_path / "out.csv")
    assert pl.read_csv(tmp_path / "out.csv").columns == release.table.columns.to_list()
    for index, why in (
        (pd.Index(frame["place"]), "name of column 'place'"),
        (pd.Index(frame["place"].to_numpy()), "more than row numbers"),
        (pd.Index(np.arange(len(frame)) // 2), "more than row numbers"),
        (pd.Index(np.arange(len(frame)), name="patient_id"), "its name suggests"),
        (pd.MultiIndex.from_arrays([np.arange(len(frame))] * 2), "more than row numbers"),
    ):
        with pytest.raises(shoal.InputError, match=why) as refusal:
            shoal.anonymize(frame.set_index(index), keep_order=True, **asked())
        assert_clean(str(refusal.value).encode())
        assert isinstance(shoal.anonymize(frame.set_index(index), **asked()).table.index, pd.RangeIndex)


@pytest.mark.parametrize("form", ["pandas", "dictionary", "ArrowDtype"])
def test_levels_tell_no_order_in_which_values_came(form: str) -> None:
    """Of a recoded column, a sensitive one, and one that is carried; levels with an order of their own keep it."""
    come = pd.DataFrame({"q": list("cccbbbaaa"), "s": list("zyxzyxzyx"), "carried": list("wwwuuuvvv"), "own": [2] * 9})
    levels = {name: list(dict.fromkeys(column)) for name, column in come.items()}
    given: Any = come.assign(**{n: pd.Categorical(come[n], levels[n], ordered=n == "own") for n in come})
    if form != "pandas":
        given = pa.Table.from_pandas(given, preserve_index=False)
    if form == "ArrowDtype":
        given = given.to_pandas(types_mapper=pd.ArrowDtype)
    out = shoal.anonymize(given, quasi_identifiers=["q"], sensitive=["s"], insensitive=["carried", "own"], k=3).table
    table = out if isinstance(out, pa.Table) else pa.Table.from_pandas(out, preserve_index=False)
    shown = {n: table[n].combine_chunks() for n in come}
    assert [a.type.ordered for a in shown.values()] == [False, False, False, True]
    assert all(a.dictionary.to_pylist() == sorted(levels[n]) for n, a in shown.items())
    assert sorted(zip(*(a.to_pylist() for a in shown.values()), strict=True)) == sorted(map(tuple, come.to_numpy()))


def test_a_file_of_categories_is_the_same_again(tmp_path: Path) -> None:
    for name in ("one", "other"):
        release = shoal.anonymize(people(pl.Categorical), **asked(), secret=b"sixteen bytes or more")
        release.write(tmp_path / f"{name}.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "other.parquet").read_bytes()


def test_an_enumeration_keeps_no_suppressed_level() -> None:
    frame = people().with_columns(pl.col("place").cast(pl.Enum([*GONE, *KEPT])))
    out = shoal.anonymize(frame, **asked()).table
    assert out.schema["place"] == pl.Enum([*KEPT, "*"])
    assert_clean(pickle.dumps(out))


def test_levels_that_are_numbers_hold_no_suppressed_value() -> None:
    frame = people().to_pandas()
    frame["number"] = frame["number"].astype("category")
    out = shoal.anonymize(frame, **asked()).table
    assert list(out["number"].cat.categories) == [1, 2]
    assert_clean(pickle.dumps(out))
    table = people().to_arrow()
    table = table.set_column(1, "number", table["number"].dictionary_encode())
    out = shoal.anonymize(table, **asked()).table
    assert set(out["number"].combine_chunks().dictionary.to_pylist()) == {1, 2}
    assert_clean(pickle.dumps(out))


@pytest.mark.parametrize("more", [0, 125])
def test_missing_values_of_an_arrow_dictionary_stay_missing(more: int) -> None:
    """With 125 more entries, eight bits number each entry, and no number is left for a missing value."""
    levels = pa.array(["unheld", "b", "a", *(f"unheld {i}" for i in range(more))])
    held = pa.DictionaryArray.from_arrays(pa.array([2, None, 1, 2], pa.int8()), levels)
    table = pa.table({"q": [1, 1, 2, 2], "carried": held, "s": held})
    asked = {"quasi_identifiers": ["q"], "sensitive": ["s"], "insensitive": ["carried"], "k": 2, "seed": 1}
    made = shoal.anonymize(table, **asked).table
    for name in ("carried", "s"):
        assert sorted(map(str, made[name].to_pylist())) == ["None", "a", "a", "b"]
        assert "unheld" not in made[name].combine_chunks().dictionary.to_pylist()
