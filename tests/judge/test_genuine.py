"""Every release that is made verifies, with and without its original."""

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import shoal
from tests.amount import thinned
from tests.commands import run
from tests.fuzz import clusters, combinations, crosswalks, releases
from tests.kept import holding


@pytest.mark.parametrize(
    ("kind", "count", "known"), [(releases, 50, (8, 0)), (combinations, 25, (5, 0)), (crosswalks, 25, (4, 0))]
)
def test_every_release_verifies(kind: Any, count: int, known: tuple[int, int], tmp_path: Path) -> None:
    """Other seeds at every run; ``tools/fuzz_releases.py`` goes on where this stops.

    known  a seed that is refused and one that is verified, so that both are seen at every run
    """
    for seed, comes in zip(known, ("refused", "verified"), strict=True):
        (tmp_path / comes).mkdir()
        assert kind.tried(seed, tmp_path / comes) == comes
    came: list[str] = []

    @settings(max_examples=thinned(count), deadline=None, database=None, phases=[Phase.generate])
    @given(st.integers(0, 2**32 - 1))
    def drawn(seed: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            came.append(kind.tried(seed, Path(folder)))

    drawn()
    assert set(came) <= {"refused", "verified"}


def test_distances_that_a_sheet_holds_as_text_verify(tmp_path: Path) -> None:
    """Some of these distances have 17 digits, so all of the column are texts, and a zero is "0" there."""
    assert clusters.tried(540163, tmp_path) == "verified"


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".xlsx", ".sav", ".dta"])
@pytest.mark.parametrize("value", [dt.time(1, 2), Decimal("1.50")])
def test_a_pandas_column_of_objects_starred_whole(tmp_path: Path, ending: str, value: Any) -> None:
    """Nothing but missing values is left of it, and no type."""
    other = dt.time(3, 4) if isinstance(value, dt.time) else Decimal("2.00")
    short = pl.DataFrame({"q": [value, other], "s": ["a", "b"]})
    table = short.to_pandas(use_pyarrow_extension_array=False)
    table["q"] = table["q"].astype(object)
    release = shoal.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], k=2, effort="fast", star="#")
    assert release.facts.stars == {"q": 2}
    out = tmp_path / f"r{ending}"
    assert shoal.verify(out, release.write(out), table).holds


@pytest.mark.parametrize(
    "value",
    [
        0.1 + 0.2,
        1e17 + 20,
        Decimal("1.005"),
        dt.time(1, 2, 3, 4),
        dt.datetime(2020, 1, 2, 3),
        dt.datetime(2020, 1, 2, 3, 4, 5, 6),
    ],
    ids=str,
)
def test_intervals_of_values_that_no_cell_of_a_sheet_gives_back(tmp_path: Path, value: Any) -> None:
    """From a sheet to text, and from Parquet to a sheet; without a ratio the theorem still makes the cut optimal."""
    other = value.replace(hour=7) if isinstance(value, dt.time | dt.datetime) else value * 3
    table = pl.DataFrame({"v": [value, other] * 3})
    table.write_parquet(tmp_path / "t.parquet")
    sources = [tmp_path / "t.parquet"]
    if isinstance(value, dt.datetime):
        table.write_excel(tmp_path / "t.xlsx")
        sources.append(tmp_path / "t.xlsx")
    for source in sources:
        for ending in (".csv", ".parquet", ".xlsx", ".sav", ".dta"):
            out = tmp_path / f"{source.suffix[1:]}{ending}"
            done = run(
                "intervals", source, "--value", "v", "--k", 2, "--no-bound", "--certificate", f"{out}.json", "-o", out
            )
            assert not done.returncode, done.said
            assert not run("verify", out, f"{out}.json").returncode
            assert not run("verify", out, f"{out}.json", "--original", source).returncode


BOTH = pl.DataFrame({"q": ["", "", None, None, "a", "b"], "s": ["p", "q", "r", "t", "p", "q"]})


@pytest.mark.parametrize("publish", ["stars", "ranges", "hierarchy", "centers"])
def test_empty_texts_beside_missing_values_in_parquet(tmp_path: Path, publish: str) -> None:
    table = pl.concat([BOTH, pl.DataFrame({"q": [None, ""], "s": ["x", "x"]})])
    rows = {"q": [["", "low"], ["a", "low"], ["b", "high"]]} if publish == "hierarchy" else {}
    asked: dict[str, Any] = {"quasi_identifiers": ["q"], "sensitive": ["s"], "publish": publish, "star": "#"}
    for k in (2, 4):
        release = shoal.anonymize(table, k=k, effort="fast", hierarchies=rows, **asked)
        record = release.write(tmp_path / "r.parquet")
        holding(shoal.verify(tmp_path / "r.parquet", record, table, hierarchies=rows or None))


def test_an_empty_text_for_a_missing_value_is_another_row(tmp_path: Path) -> None:
    release = shoal.anonymize(BOTH, quasi_identifiers=["q"], sensitive=["s"], k=2, effort="fast", star="#")
    record = release.write(tmp_path / "r.parquet")
    told = {f.check: f.holds for f in shoal.verify(tmp_path / "r.parquet", record, BOTH).findings}
    assert told["rows match"]
    held = pl.col("q")
    other = pl.when(held.is_null()).then(pl.lit("")).when(held == "").then(None).otherwise(held).alias("q")
    pl.read_parquet(tmp_path / "r.parquet").with_columns(other).write_parquet(tmp_path / "r.parquet")
    told = {f.check: f.holds for f in shoal.verify(tmp_path / "r.parquet", record, BOTH).findings}
    assert not told["rows match"]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".xlsx", ".sav"])
@pytest.mark.parametrize(("quasi", "sensitive"), [("q", "s"), ("s", "q")])
def test_empty_texts_beside_missing_values_are_refused_in_files_of_text(
    tmp_path: Path, ending: str, quasi: str, sensitive: str
) -> None:
    release = shoal.anonymize(BOTH, quasi_identifiers=[quasi], sensitive=[sensitive], k=2, effort="fast")
    with pytest.raises(shoal.InputError, match="column 'q' has empty texts and missing values"):
        release.write(tmp_path / f"r{ending}")
    assert not list(tmp_path.iterdir())


def test_an_empty_text_under_a_hierarchy(tmp_path: Path) -> None:
    """It lies where its row says, not beside the root as a missing value does."""
    table = pl.DataFrame({"q": ["", "a", "b", "c"], "s": ["x", "y", "x", "y"]})
    rows = {"q": [["", "low"], ["a", "low"], ["b", "high"], ["c", "high"]]}
    release = shoal.anonymize(
        table, quasi_identifiers=["q"], sensitive=["s"], k=2, effort="fast", publish="hierarchy", hierarchies=rows
    )
    assert set(release.table["q"]) == {"low", "high"}
    for ending in (".csv", ".parquet", ".xlsx", ".sav", ".dta"):
        record = release.write(tmp_path / f"r{ending}", tmp_path / f"r{ending}.json")
        assert shoal.verify(tmp_path / f"r{ending}", record, table, hierarchies=rows).holds


def judged(folder: Path, table: pl.DataFrame, **asked: Any) -> bool:
    """Whether a release of a table with columns q, s and perhaps others verifies with its original."""
    release = shoal.anonymize(table, quasi_identifiers=["q"], sensitive=["s"], k=2, effort="fast", **asked)
    return shoal.verify(folder / "r.csv", release.write(folder / "r.csv"), table).holds


def test_times_keep_what_is_less_than_a_second(tmp_path: Path) -> None:
    late = [dt.time(23, 59, 59, 1), dt.time(23, 59, 59, 2)]
    table = pl.DataFrame({"q": late * 4, "s": ["a", "b"] * 4, "t": late[::-1] * 4})
    assert judged(tmp_path, table)
    assert set(pl.read_csv(tmp_path / "r.csv", infer_schema=False)["q"]) == {"23:59:59.000001", "23:59:59.000002"}


def test_an_empty_text_is_no_star_of_centers(tmp_path: Path) -> None:
    table = pl.DataFrame({"q": ["", "", "*", "*", "#", "#"], "s": ["a", "b"] * 3})
    assert judged(tmp_path, table, publish="centers", star="§")


def test_an_empty_text_inside_a_set(tmp_path: Path) -> None:
    table = pl.DataFrame({"q": ["", "*", "a", "a"], "s": ["x", "y", "x", "y"]})
    assert judged(tmp_path, table, publish="ranges", star="§")


def test_a_column_of_duckdb_that_would_mean_all_is_refused(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")
    table = duckdb.connect().from_arrow(pl.DataFrame({"*": ["a"] * 4, "s": ["x", "y"] * 2}).to_arrow())
    with pytest.raises(shoal.InputError, match="rename it"):
        shoal.anonymize(table, quasi_identifiers=["*"], sensitive=["s"], k=2)


def test_labels_that_would_have_one_name_are_read_by_their_number(tmp_path):
    """Values "a", "b" and "a, b": the group of the first two and the third by itself are both called "a, b"."""
    assert releases.tried(427221, tmp_path) == "verified"


@pytest.mark.parametrize("words", [["", "", "b", "b", "c", "c", "c", "b"], ["", "10", "7", "7", "9", "10", "10", "9"]])
def test_an_empty_text_lies_where_a_missing_value_does_in_every_format(tmp_path: Path, words: list[str]) -> None:
    """A sheet makes a missing value of it: closeness by order would be another there."""
    levels = set()
    for absent in ("", None):
        held = [word or absent for word in words]
        frame = pl.DataFrame({"q": [*"aaaabbbb"], "s": held})
        release = shoal.anonymize(frame, quasi_identifiers=["q"], sensitive=["s"], k=2, t_ordered=0.9)
        for ending in ("csv", "parquet", "xlsx", "sav", "dta"):
            out = tmp_path / f"r.{ending}"
            verdict = shoal.verify(out, release.write(out, tmp_path / "r.certificate.json"), frame)
            assert verdict.holds
            assert verdict.audit is not None
            levels |= {release.audit.sensitive["s"].t_ordered, verdict.audit.sensitive["s"].t_ordered}
    assert len(levels) == 1
    both = pl.DataFrame({"q": [*"aaaabbbbb"], "s": [*words, None]})
    release = shoal.anonymize(both, quasi_identifiers=["q"], sensitive=["s"], k=2, t_ordered=0.9)
    assert shoal.verify(tmp_path / "b.parquet", release.write(tmp_path / "b.parquet"), both).holds


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_ranges_with_weights_and_a_set_of_all_values(tmp_path: Path, kind: str) -> None:
    """Sex is published as both values, and age weighs five times as much."""
    table = pl.DataFrame({"sex": list("FMFM"), "age": [20, 20, 90, 90]})
    table.write_csv(tmp_path / "t.csv")
    data = table if kind == "frame" else tmp_path / "t.csv"
    asked = {"quasi_identifiers": ["sex", "age"], "weights": {"age": 5}, "k": 2}
    made = shoal.anonymize(data, publish="ranges", **asked)
    made.write(tmp_path / "r.csv")
    assert made.certificate.cost == pytest.approx(0.5)  # of 1 + 5 weighed columns one is lost whole, over two columns
    for original in (None, data):
        holding(shoal.verify(tmp_path / "r.csv", original=original))
