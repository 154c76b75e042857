"""Files through Spark: read by executors, written by them in parts, judged as every release is."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import time, timedelta
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import spark as engine
from shoal.engines.source import Scope
from shoal.errors import InputError, MissingDependencyError, PolicyError, VerificationError
from shoal.judge.file import marks_rows, special_bits
from shoal.pipeline import prepare
from shoal.problems.tables import shards
from tests.consistency import Case, of_table, tell_apart
from tests.engines.test_parts import ASKED, SECRET, in_parts, people, rows_in

pytest.importorskip("pyspark", reason="Spark needs the package pyspark")
parquet = pytest.importorskip("pyarrow.parquet", reason="Spark needs the package pyarrow")
duckdb = pytest.importorskip("duckdb", reason="the releases are compared with those of DuckDB")
TIMES = tuple(map(int, version("pyspark").split(".")[:2])) > (4, 0)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("spark")
def test_spark_writes_the_rows_that_duckdb_writes(tmp_path: Path) -> None:
    folder = in_parts(people(300), tmp_path / "in", "parquet")
    asked = ASKED | {"insensitive": ["note"], "secret": SECRET}
    release = prepare(folder, engine="spark", **asked)
    record = release.write(tmp_path / "out")
    assert shoal.verify(tmp_path / "out", record, folder).holds
    shoal.anonymize(folder, engine="duckdb", **asked).write(tmp_path / "other")
    assert rows_in(tmp_path / "out") == rows_in(tmp_path / "other")
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []
    names = sorted(p.name for p in (tmp_path / "out").iterdir())
    assert names[0] == "manifest.json"
    assert all(n.startswith("part-") for n in names[1:])


def _a_row_less(part: Path) -> None:
    pl.read_parquet(part)[1:].write_parquet(part)


def _cut_short(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:-7])


def _of_another_table(part: Path) -> None:
    people(3).write_parquet(part)


def _with_a_key(part: Path) -> None:
    parquet.write_table(parquet.read_table(part).replace_schema_metadata({"levels": "nobodyhasit"}), part)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_durations_of_parquet_are_no_numbers_to_spark(tmp_path: Path, unit: Any) -> None:
    stays = pl.Series([timedelta(hours=i % 3) for i in range(60)], dtype=pl.Duration(unit))
    people(60).drop("note").with_columns(stay=stays).write_parquet(tmp_path / "in.parquet")
    asked: dict[str, Any] = {**ASKED, "engine": "spark"}
    for role in ({"quasi_identifiers": ["a", "stay"]}, {"insensitive": ["stay"]}, {}):
        with pytest.raises(InputError, match=r"column 'stay' .*INTERVAL.*identifiers="):
            shoal.anonymize(tmp_path / "in.parquet", **asked | role)
    left = shoal.anonymize(tmp_path / "in.parquet", **asked, identifiers=["stay"])
    assert left.loss == shoal.anonymize(people(60).drop("note"), **ASKED).loss


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    ("kind", "way"),
    [
        (pl.Datetime("ns"), "moments in nanoseconds, which Spark does not read; save them in microseconds"),
        pytest.param(pl.Time, "times of day", marks=pytest.mark.skipif(TIMES, reason="Spark 4.1 reads times of day")),
        (pl.Float16, "floats of 16 bits"),
        (pl.List(pl.Datetime("ns")), ""),
    ],
)
def test_a_type_of_parquet_that_spark_does_not_read_is_refused_by_name(kind: Any, way: str, tmp_path: Path) -> None:
    odd = pl.Series([None] * 60, dtype=kind)
    people(60).with_columns(odd=odd).write_parquet(tmp_path / "t.parquet")
    said = f"'t.parquet': column 'odd' holds {way}" if way else r"cannot read 't.parquet' as Parquet .*; save it as CSV"
    with pytest.raises(InputError, match=said):
        shoal.anonymize(tmp_path / "t.parquet", **ASKED, engine="spark", identifiers=["odd", "note"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("harm", [_a_row_less, _cut_short, Path.unlink, _of_another_table, _with_a_key])
def test_what_executors_lose_is_kept_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    folder = in_parts(people(120), tmp_path / "in", "parquet")
    release = prepare(folder, engine="spark", insensitive=["note"], **ASKED)
    whole = engine.write_parts

    def harmed(native: Any, where: Path) -> list[Path]:
        found = whole(native, where)
        if "note" in native.columns:
            harm(max(found, key=lambda part: pl.read_parquet(part).height))
        return found

    monkeypatch.setattr(engine, "write_parts", harmed)
    with pytest.raises(VerificationError):
        release.write(tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


@pytest.mark.filterwarnings("ignore")
def test_what_executors_write_tells_nothing_beside_its_rows(spark: Any, tmp_path: Path) -> None:
    people(90).write_parquet(tmp_path / "in.parquet")
    frame = spark.read.parquet(str(tmp_path / "in.parquet"))
    for name in ("a", "s", "note"):
        frame = frame.withMetadata(name, {"levels": ["nobodyhasit"]})
    release = prepare(frame, insensitive=["note"], **ASKED)
    record = release.write(tmp_path / "out")
    assert shoal.verify(tmp_path / "out", record).holds
    parts = sorted((tmp_path / "out").glob("*.parquet"))
    assert b"org.apache.spark" in parts[0].read_bytes(), "executors wrote it"
    assert not any(b"nobodyhasit" in p.read_bytes() for p in parts)
    moments = frame.withColumn("note", frame["b"].cast("timestamp"))
    made = prepare(moments, insensitive=["note"], **ASKED)
    assert made.write(tmp_path / "other").is_file()
    assert b"org.apache.spark" not in next((tmp_path / "other").glob("*.parquet")).read_bytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("floats", [pl.Float64, pl.Float32])
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive", "insensitive"])
def test_executors_write_equal_floats_alike(spark: Any, tmp_path: Path, role: str, floats: Any) -> None:
    """Both zeros, two kinds of NaN, and missing values: they would distinguish rows of equal values."""
    nan = float("nan")
    own = pl.Series("w", [0.0, -0.0, nan, None, 1.5, -nan, 1.5, -0.0] * 6, dtype=floats)
    people(48, False).with_columns(own).write_parquet(tmp_path / "in.parquet")
    assert marks_rows(special_bits(pl.read_parquet(tmp_path / "in.parquet")["w"])), "the table has both"
    frame = spark.read.parquet(str(tmp_path / "in.parquet"))
    release = prepare(frame, **(ASKED | {role: ["w", *ASKED.get(role, [])]}))
    record = release.write(tmp_path / "out")
    parts = sorted((tmp_path / "out").glob("*.parquet"))
    by_executors = [b"org.apache.spark" in part.read_bytes() for part in parts]
    assert set(by_executors) == {role == "insensitive"}, "elsewhere NaN is missing"
    assert shoal.verify(tmp_path / "out", record, tmp_path / "in.parquet").holds
    held = pl.concat(pl.read_parquet(part)["w"] for part in parts)
    assert not marks_rows(special_bits(held))
    if role == "insensitive":
        assert (held.null_count(), int(held.is_nan().sum()), held.n_unique()) == (6, 12, 4)


def test_a_place_elsewhere_is_read_by_spark_alone() -> None:
    for other in (None, "duckdb", "polars"):
        with pytest.raises(InputError, match="read it with engine='spark'"):
            shoal.anonymize("s3a://bucket/people", engine=other, **ASKED)
    with pytest.raises(PolicyError, match="a setting of engine='duckdb'"):
        shoal.anonymize("s3a://bucket/people", engine="spark", memory="2GB", **ASKED)


def test_without_java_or_the_package_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="Java 17 or later"):
        engine.session(Scope())
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingDependencyError, match="pyspark"):
        engine.session(Scope())


def test_a_session_that_cannot_be_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark.errors import PySparkImportError, PySparkRuntimeError
    from pyspark.sql import SparkSession

    monkeypatch.setattr(shutil, "which", lambda _: "java")
    raised: list[Exception] = [PySparkImportError("no grpcio")]

    def none_there(_: Any) -> None:
        raise raised[0]

    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", none_there)
    with pytest.raises(MissingDependencyError, match=r"Spark Connect needs .* pip install 'pyspark\[connect\]'"):
        engine.session(Scope(master="sc://somewhere:15002"))
    raised[0] = PySparkRuntimeError("no gateway")
    with pytest.raises(InputError, match=r"no session of Spark begins at 'foo' \(PySparkRuntimeError\).*'local\[2\]'"):
        engine.session(Scope(master="foo"))


def test_a_session_of_this_machine_answers_nobody_else_and_spills_where_nobody_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark's own settings write the rows of a shuffle where every user reads them, and serve a page to the network."""
    from pyspark.sql import SparkSession

    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(shutil, "which", lambda _: "java")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(SparkSession.Builder, "getOrCreate", lambda builder: asked.append(dict(builder._options)))
    for name in engine._SET_UP:
        monkeypatch.delenv(name, raising=False)
    for master in ("local[2]", "local", None):
        monkeypatch.setattr(SparkSession, "builder", SparkSession.Builder())
        engine.session(Scope(master=master))
        found = asked.pop()
        spill = Path(found["spark.local.dir"])
        assert spill.parent == tmp_path
        assert stat.S_IMODE(spill.stat().st_mode) == 0o700
        assert found["spark.ui.enabled"] == "false"
        assert found["spark.authenticate"] == "true"
        assert {found["spark.driver.host"], found["spark.driver.bindAddress"]} == {"127.0.0.1"}
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell")
    for master in ("spark://host:7077", "local-cluster[2,1,1024]", None):  # others set these up
        monkeypatch.setattr(SparkSession, "builder", SparkSession.Builder())
        engine.session(Scope(master=master))
        assert not {"spark.local.dir", "spark.driver.host"} & set(asked.pop())


def _dies_once(flag: str, sent: bytes) -> Iterator[tuple[int, bytes]]:
    """What a worker does whose process is lost the first time."""
    if not Path(flag).exists():
        Path(flag).touch()
        os._exit(9)
    yield from shards._search_in_worker(sent)


@pytest.mark.filterwarnings("ignore")
def test_workers_search_the_shards_and_one_that_dies_is_repeated(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = np.random.default_rng(3).integers(0, 30, (500, 2))
    frame = pl.DataFrame({"a": drawn[:, 0], "b": drawn[:, 1], "s": ["p", "q", "r", "s"] * 125})
    frame.write_parquet(tmp_path / "in.parquet")
    asked = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "k": 4, "l": 2, "publish": "ranges", "seed": 1}
    asked |= {"effort": "fast", "shards": 3, "secret": SECRET}
    here = prepare(frame, **asked)
    flag = tmp_path / "died"
    monkeypatch.setattr(shards, "_search_in_worker", partial(_dies_once, str(flag)))
    there = prepare(spark.read.parquet(str(tmp_path / "in.parquet")), **asked)
    assert flag.exists(), "a worker was lost"
    assert there.certificate.details["shards"] == 3
    assert (there.certificate.cost, there.certificate.lower_bound) == (
        here.certificate.cost,
        here.certificate.lower_bound,
    )
    record = there.write(tmp_path / "out")
    here.write(tmp_path / "here.parquet")
    assert rows_in(tmp_path / "out") == rows_in(tmp_path / "here.parquet")
    assert shoal.verify(tmp_path / "out", record).holds


def _lacks(_: bytes) -> Iterator[tuple[int, bytes]]:
    raise ModuleNotFoundError("No module named 'shoal'")
    yield


def _fails(_: bytes) -> Iterator[tuple[int, bytes]]:
    raise ValueError("nobody is 34 and lives in Ulm")
    yield


@pytest.mark.filterwarnings("ignore")
def test_workers_that_cannot_are_said_without_their_words(spark: Any) -> None:
    with pytest.raises(InputError, match="install shoal on them"):
        engine.spread(spark, _lacks, [b"task"])
    with pytest.raises(InputError, match="the workers of Spark failed") as refused:
        engine.spread(spark, _fails, [b"task"])
    assert "Ulm" not in str(refused.value)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_originals_of_one_release_give_the_same_parts(publish: str, tmp_path: Path) -> None:
    """As ``tests/test_nothing_more.py`` asks of files and frames: whatever executors wrote, and what is said of it."""
    cells = [(20, "flu"), (23, "gout"), (20, "gout"), (23, "flu")]  # the first two show what the last two show
    asked: dict[str, Any] = {"k": 2, "publish": publish, "engine": "spark", "insensitive": ["ill"]}
    case = Case(publish, cells, ("age", "ill"), 2, of_table("", quasi_identifiers=["age"], **asked))
    odd, tried, shared = tell_apart(case, tmp_path)
    assert (tried, shared) == (10, 1)
    assert not odd


@pytest.mark.parametrize(
    ("column", "said"),
    [
        pytest.param("time", "TIME", marks=pytest.mark.skipif(not TIMES, reason="times of day need Spark 4.1")),
        ("make_interval(0, 0, 0, i)", "interval"),
        ("make_dt_interval(i)", "INTERVAL"),
        ("cast(null as void)", ""),
    ],
)
def test_a_type_that_other_tables_lack_is_refused_by_name(spark: Any, column: str, said: str, tmp_path: Path) -> None:
    if column == "time":  # which no expression has
        held = {"age": [0, 1] * 15, "i": [0] * 30, "odd": [time(1, i % 3) for i in range(30)]}
        made = spark.createDataFrame(pl.DataFrame(held).to_arrow())
    else:
        rows = "select id, cast(id % 3 as int) as i from range(30)"
        made = spark.sql(f"select id % 2 as age, i, {column} as odd from ({rows})")
    for role in ("quasi_identifiers", "sensitive", "insensitive"):
        asked: dict[str, Any] = {"quasi_identifiers": ["age"], "identifiers": ["i"], "k": 3, "effort": "fast"}
        asked[role] = [*asked.get(role, ()), "odd"]
        if said:
            with pytest.raises(InputError, match="'odd'") as refused:
                shoal.anonymize(made, **asked)
            assert len(str(refused.value).splitlines()) == 1
        else:
            shoal.anonymize(made, **asked).write(tmp_path / f"{role}.parquet")
            assert pl.read_parquet(tmp_path / f"{role}.parquet")["odd"].null_count() == 30


def test_odd_names_are_counted_in_spark_as_in_memory(spark: Any) -> None:
    names = ["a b", "a'b", 'a"b', "a%b", "{a}", "a;b", "select", "größe", "x" * 90]
    rows = {"q": [1, 2, 1, 2] * 12, "s": ["p", "q", "r"] * 16, "c": ["x", "y"] * 24}
    frame = pl.DataFrame({role + name: held for name in names for role, held in rows.items()})
    by_role = {role: [n for n in frame.columns if n[0] == role] for role in rows}
    asked = {"quasi_identifiers": by_role["q"], "sensitive": by_role["s"], "insensitive": by_role["c"], "k": 3, "l": 2}
    asked |= {"effort": "fast", "secret": b"sixteen bytes or more"}
    found = pl.from_arrow(shoal.anonymize(spark.createDataFrame(frame.to_arrow()), **asked).table.toArrow())
    assert isinstance(found, pl.DataFrame)
    wanted = shoal.anonymize(frame, **asked).table
    assert found.columns == wanted.columns
    assert sorted(map(repr, found.rows())) == sorted(map(repr, wanted.rows()))
    for odd, says in (
        ("a`b", "column 'a`b' has a back-tick"),
        ("a.b", "the dot of column 'a.b'"),
        ("${a}", "as a variable"),
    ):
        named = spark.createDataFrame(pl.DataFrame({odd: [1, 1], "z": [1, 1]}).to_arrow())
        for work in (shoal.anonymize, shoal.roles):
            asked = {} if work is shoal.roles else {"quasi_identifiers": ["z"], "identifiers": [odd], "k": 2}
            with pytest.raises(InputError, match=says):
                work(named, **asked)


def test_a_series_takes_months_from_spark(spark: Any, tmp_path: Path) -> None:
    """The numbers of people, which Spark has no unsigned integers for."""
    series = shoal.Series.start(tmp_path / "s", shoal.Policy.of(**ASKED))
    for month in "ab":
        frame = people(60, False).with_columns(id=pl.Series([f"{month}{i}" for i in range(60)]))
        series.add(spark.createDataFrame(frame.to_arrow()), person="id")
    assert series.verify().holds
