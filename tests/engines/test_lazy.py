"""DuckDB relations and Spark frames: the same operations inside the engine, the same loss, the same kind out."""

import datetime as dt
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import duck, spark
from shoal.engines.duck import DUCKDB
from shoal.engines.frames import FrameTable
from shoal.engines.lazy import DistinctValues
from shoal.engines.open import open_table
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.pipeline import prepare
from tests.data import cycled

duckdb = pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")

ASKED: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "k": 2, "effort": "fast", "seed": 5}


def people(n: int = 300) -> pl.DataFrame:
    return cycled(n).with_columns(name=pl.Series([f"n{i}" for i in range(n)]), row=pl.Series(range(n)))


def classes(frame: pl.DataFrame) -> list[tuple]:
    return sorted(frame.group_by("a", "b", "s").len().rows(), key=repr)


def test_jobs_grow_and_hold_every_lot_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "_SENT", 1)  # a lot for each task
    monkeypatch.setattr(spark, "_FIRST", 2)
    for number in range(16):
        tasks = [bytes([i, 0]) for i in range(number)]
        jobs = list(spark._jobs(iter(tasks)))
        assert [task for job in jobs for lot in job for task in lot] == tasks
        assert [len(job) for job in jobs[:-1]] == [2, 4, 8][: len(jobs) - 1]
        assert len(jobs) >= 1


def test_orders_leave_in_lots_as_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of them wait here than one frame brings to the executors."""
    monkeypatch.setattr(spark, "_SENT", 10)
    made: list[bytes] = []

    def orders() -> Iterator[bytes]:
        for size in (4, 4, 4, 12, 1, 9):
            made.append(bytes(size))
            yield made[-1]

    lots = spark._lots(orders())
    assert next(lots) == [bytes(4), bytes(4)]
    assert len(made) == 3
    assert [[len(task) for task in lot] for lot in lots] == [[4], [12], [1, 9]]
    assert list(spark._lots(iter([]))) == [[]]


def test_cells_of_an_engine_are_held_once() -> None:
    """The codes of tuples go once the cells have them, and these are as they are in memory."""
    frame = people()
    here, there = (open_table(f).count(["a", "b"], ["s"]) for f in (frame, duckdb.from_arrow(frame.to_arrow())))
    assert [c.codes.size for c in (*there.quasi, *there.sensitive)] == [0, 0, 0]
    for name in ("quasi", "sensitive", "count"):
        ours, theirs = getattr(here.histogram, name), getattr(there.histogram, name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("own", [True, False], ids=["own connection", "default connection"])
def test_a_relation_comes_back_as_one(own: bool) -> None:
    connection = duckdb.connect() if own else duckdb.default_connection()
    frame = people()
    relation = connection.from_arrow(frame.to_arrow())
    release = shoal.anonymize(relation, identifiers=["name"], insensitive=["row"], l=2, **ASKED)
    assert type(release.table) is type(relation)
    out = release.table.pl()
    assert out.columns == ["a", "b", "s", "row"]
    expected = shoal.anonymize(frame, identifiers=["name"], insensitive=["row"], l=2, **ASKED)
    assert release.loss == expected.loss
    assert classes(out) == classes(expected.table)
    before = {row: (a, b, s) for a, b, s, _, row in frame.rows()}
    for a, b, s, row in out.rows():
        held = before[row]
        assert s == held[2]
        assert a in (held[0], "*")
        assert b in (held[1], None)
    assert out["row"].to_list() != sorted(out["row"].to_list())
    assert connection.sql("select count(*) from duckdb_views() where not internal").fetchall() == [(0,)]


def test_centers_are_those_of_the_rows_in_memory_in_any_order(tmp_path: Path) -> None:
    frame = people().with_columns(c=pl.col("row") % 17 / 4)
    asked = ASKED | {"quasi_identifiers": ["a", "b", "c"], "k": 5, "l": 2, "publish": "centers"}
    asked |= {"identifiers": ["name"], "insensitive": ["row"], "secret": b"sixteen bytes or more"}
    expected = shoal.anonymize(frame, **asked)
    relation = shoal.anonymize(duckdb.connect().from_arrow(frame.to_arrow()), **asked)
    turned = shoal.anonymize(frame.reverse(), **asked)
    for release in (relation, turned):
        table = release.table if isinstance(release.table, pl.DataFrame) else release.table.pl()
        assert table.schema == expected.table.schema
        assert table.sort("row").equals(expected.table.sort("row"))
        assert release.certificate.cost == expected.certificate.cost
    record = relation.write(tmp_path / "out")
    frame.write_parquet(tmp_path / "in.parquet")
    assert shoal.verify(tmp_path / "out", record, original=tmp_path / "in.parquet").holds
    cells = set(expected.table.select("a", "b", "c").rows())
    assert cells <= set(frame.select("a", "b", "c").rows()), "a center is a record's own values"


@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_what_is_written_is_the_table_row_by_row(publish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices carry group numbers in the place of what is published: filled in, they are the relation, types and all."""
    step = [0 if i % 3 else i % 7 for i in range(240)]
    frame = pl.DataFrame(
        {
            "name": [f"n{i}" for i in range(240)],
            "row": list(range(240)),
            "day": [dt.date(2020, 1, 1 + i) if i else None for i in step],
            "age": pl.Series([20 + i * (j % 3) for j, i in enumerate(step)], dtype=pl.Int16),
            "s": pl.Series(
                ["p" if i % 2 else "qr"[i % 5 // 4] for i in range(240)], dtype=pl.Enum(["r", "q", "p", "none"])
            ),
            "note": [None if i % 5 == 0 else f"x{i % 4}" for i in range(240)],
        }
    )
    asked: dict[str, Any] = {"quasi_identifiers": ["day", "age"], "sensitive": ["s"], "identifiers": ["name"]}
    asked |= {"insensitive": ["row", "note"], "k": 9, "l": 2, "effort": "fast", "seed": 1, "publish": publish}
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    release = shoal.anonymize(relation, secret=b"sixteen bytes or more", **asked)
    assert (np.bincount(release._placement.expected.partition.cell) > 1).any(), "no cell was split"
    whole = release.table.pl()
    for names in (whole.columns, ["note", "age"]):
        got = pl.concat(release._placement.rows.slices(names, Path(), lambda _: None))
        assert got.schema == whole.select(names).schema
        assert got.equals(whole.select(names))
    assert release._placement.rows.slices.__self__.late is not None, "each row is read once"
    monkeypatch.setattr(DUCKDB, "row_memory", lambda _: 1)
    again = shoal.anonymize(relation, secret=b"sixteen bytes or more", **asked)
    assert again._placement.rows.slices.__self__.late is None, "too many rows to put aside"
    got = pl.concat(again._placement.rows.slices(whole.columns, Path(), lambda _: None))
    assert got.equals(whole)
    assert again.table.pl().equals(whole)
    other = shoal.anonymize(relation, secret=b"another sixteen bytes", **asked).table.pl()
    assert not other["row"].equals(whole["row"])
    turned = duckdb.connect().from_arrow(frame.reverse().to_arrow())
    assert shoal.anonymize(turned, secret=b"sixteen bytes or more", **asked).table.pl().equals(whole)


@pytest.mark.parametrize(
    "values",
    [
        ["a", "A", "b", "a", ""],
        [0.0, -0.0, 1.5, float("nan"), 1.5],
        [dt.date(2024, 2, 29), dt.date(1900, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(1970, 1, 1)],
        [True, False, True, True, False],
    ],
    ids=lambda values: type(values[0]).__name__,
)
@pytest.mark.parametrize("alike", [False, True])
def test_every_row_has_what_stands_for_its_value(
    values: list[object], alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``alike``: the engine's first numbering gives all values one number, so the second one finds the rows."""
    if alike:
        number = DUCKDB.number
        monkeypatch.setattr(DUCKDB, "number", lambda first, columns: number(first, columns if first else {}))
    frame = pl.DataFrame({"row": range(5), "id": values})
    table = duck.table_of(duckdb.connect().from_arrow(frame.to_arrow()))
    found = DistinctValues.of(table, "id")
    assert found.attempt == alike
    place = {repr(value): i for i, value in enumerate(found.values.to_list())}
    assert found.rows.sum() == 5
    got = found.exchanged(pl.Series("stands", list(place.values()))).pl().sort("row")
    assert got.columns == ["row", "stands"]
    expected = [place[repr(0.0 if value == 0.0 and isinstance(value, float) else value)] for value in values]
    assert got["stands"].to_list() == expected


@pytest.mark.parametrize("out", ["folder", "one.csv"])
@pytest.mark.parametrize("carried", [True, False])
def test_a_table_put_in_the_stead_of_the_one_placed_is_what_is_written(tmp_path: Path, out: str, carried: bool) -> None:
    frame = pl.DataFrame({"a": [i % 3 for i in range(60)], "s": [i % 2 for i in range(60)]})
    frame = frame.with_columns(note=pl.arange(0, 60) % 7) if carried else frame
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    asked: dict[str, Any] = {"quasi_identifiers": ["a"], "sensitive": ["s"], "k": 4, "effort": "fast"}
    release = shoal.anonymize(relation, insensitive=["note"] if carried else [], **asked)
    turned = release.with_table(release.table.order("a, s" + (", note" if carried else "")))
    turned.write(tmp_path / out)
    there = tmp_path / out
    got = pl.read_csv(there) if there.is_file() else pl.read_parquet(there / "*.parquet")
    assert got.rows() == turned.table.pl().rows()
    less = release.with_table(release.table.limit(59))
    with pytest.raises(VerificationError):
        less.write(tmp_path / "less")
    assert not (tmp_path / "less").exists()
    again = pickle.loads(pickle.dumps(release))
    assert again._placement.rows.placed
    assert not pickle.loads(pickle.dumps(turned))._placement.rows.placed


def test_no_order_hangs_on_what_leaves_later() -> None:
    """Persons other than these, and rows that are published alike leave in the same order."""
    rows = range(240)
    frame = pl.DataFrame({"a": [i % 4 for i in rows], "s": [i % 3 for i in rows], "note": [i % 11 for i in rows]})
    asked: dict[str, Any] = {"quasi_identifiers": ["a"], "sensitive": ["s"], "insensitive": ["note"], "k": 4}
    asked |= {"effort": "fast", "seed": 1, "secret": b"sixteen bytes or more", "person": "who"}
    shown = []
    for step in (1, 7):
        people = frame.with_columns(who=pl.Series([f"p{i * step}" for i in rows]))
        relation = duckdb.connect().from_arrow(people.to_arrow())
        shown.append(shoal.anonymize(relation, **asked).table.pl())
    assert shown[0].equals(shown[1])


def test_a_release_is_drawn_once() -> None:
    connection = duckdb.connect()
    frame = pl.DataFrame({"a": ["x"] * 6, "b": [1, 1, 1, 1, 1, 2], "s": ["p"] * 6, "row": list(range(6))})
    release = shoal.anonymize(connection.from_arrow(frame.to_arrow()), insensitive=["row"], **ASKED)
    assert release.table.fetchall() == release.table.fetchall()


@pytest.mark.parametrize(
    "values",
    [
        "(1.5::double), (1.5), ('nan'), (null), ('inf'), (2.0)",
        "(0.0::double), ('-0.0'), (2.5), (null)",
        "(date '2020-01-01'), (date '2020-01-01'), (null), (date '2021-01-01')",
        "(timestamp '2020-01-01 01:02:03.5'), (timestamp '2020-01-01 01:02:03.5'), (null), (timestamp '2021-01-01')",
        "(true), (true), (false), (null)",
        "(1.10::decimal(10, 2)), (1.10), (2.5), (null)",
        "(12345678901234567890123456789012345678::hugeint), (12345678901234567890123456789012345678), (3), (4)",
        "(''), (''), (null), (null)",
        "('x'::enum('x', 'y')), ('x'), ('y'), (null)",
    ],
)
def test_every_type_of_column_finds_its_cell(values: str) -> None:
    relation = duckdb.connect().sql(f"select *, 7 as b from (values {values}) t(a)")
    release = shoal.anonymize(relation, quasi_identifiers=["a", "b"], k=2, effort="fast", seed=1)
    assert release.audit.passes
    assert {row[1] for row in release.table.fetchall()} == {7}, "a row lost its cell"
    assert release.audit.rows == len(relation.fetchall())


def test_what_cannot_be_done_is_said() -> None:
    connection = duckdb.connect()
    relation = connection.sql("select * from (values (1, 'p'), (1, 'q')) t(a, s)")
    with pytest.raises(PolicyError, match="did you mean 'a'"):
        shoal.anonymize(relation, quasi_identifiers=["aa"], k=2)
    with pytest.raises(InputError, match="row order"):
        shoal.anonymize(relation, quasi_identifiers=["a"], sensitive=["s"], k=2, keep_order=True)
    with pytest.raises(InputError, match="cannot be grouped"):
        shoal.anonymize(connection.sql("select interval 1 day as a"), quasi_identifiers=["a"], k=1)
    carried = connection.sql("select 1 as a, interval 1 day as b from range(4)")
    with pytest.raises(InputError, match="'b' is of type INTERVAL in DuckDB, which no other table holds"):
        shoal.anonymize(carried, quasi_identifiers=["a"], insensitive=["b"], k=2)


def test_the_password_of_a_server_is_told_to_nobody() -> None:
    address, asked = "postgresql://ann:opensesame@host/clinic", {"quasi_identifiers": ["a"], "k": 2}
    for more in ({}, {"table": "people"}, {"engine": "duckdb", "table": "people"}):
        with pytest.raises((InputError, PolicyError), match="is a server of databases") as told:
            shoal.anonymize(address, **asked, **more)
        assert "ann" not in str(told.value)
        assert "opensesame" not in str(told.value)
    with pytest.raises(InputError, match="'postgresql://host/clinic' is a server") as told:
        shoal.anonymize("postgresql://host/clinic?user=ann&password=opensesame", **asked)
    with pytest.raises(InputError, match="'s3a://bucket/t' is no place on this machine") as told:
        shoal.anonymize("s3a://key:opensesame@bucket/t", **asked)
    connection = duckdb.connect()
    connection.execute("attach ':memory:' as clinic; create table clinic.people as select i % 3 a from range(9) t(i)")
    release = shoal.anonymize(connection.sql("from clinic.people"), **asked)
    assert sorted(release.table.fetchall()) == [(0,)] * 3 + [(1,)] * 3 + [(2,)] * 3


@pytest.mark.parametrize("found", [True, False])
def test_an_address_that_spark_reads_is_shown_and_kept_without_its_secrets(monkeypatch, found) -> None:
    from types import SimpleNamespace

    from shoal.engines import open as opening
    from shoal.engines import spark

    def parquet(path: str) -> str:
        if not found:
            raise OSError(path)
        return path

    monkeypatch.setattr(spark, "session", lambda scope: SimpleNamespace(read=SimpleNamespace(parquet=parquet)))
    monkeypatch.setattr(spark, "table_of", lambda native, origin: (native, origin.source))
    address = "s3a://key:opensesame@bucket/t"
    if found:
        assert opening.open_table(address, "spark") == (address, "s3a://bucket/t")
    else:
        with pytest.raises(InputError, match="Spark cannot read 's3a://bucket/t' as Parquet"):
            opening.open_table(address, "spark")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("s3a://key:open/same@bucket", "s3a://bucket"),
        ("s3a://key:open?same@bucket/t", "s3a://..."),
        ("https://host/t?sig=open@same", "https://..."),
        ("https://host/t;sas=same", "https://host/t"),
        ("https://host/t#same", "https://host/t"),
    ],
)
def test_no_part_of_a_secret_is_shown_or_told_as_the_source(monkeypatch, address, shown) -> None:
    from shoal.engines.open import open_table

    asked = {"quasi_identifiers": ["a"], "k": 2}
    with pytest.raises(InputError, match=re.escape(f"{shown!r} is ") + "(no place|a web address)") as told:
        shoal.anonymize(address, **asked)
    assert "same" not in str(told.value)
    held = open_table(pl.DataFrame({"a": [1, 1, 2, 2]}))
    monkeypatch.setattr("shoal.pipeline.open_table", lambda *_, **__: held)  # as Spark would read it
    release = shoal.anonymize(address, **asked, engine="spark")
    assert "same" not in json.dumps(release.figures(), default=str)


def test_no_bar_of_the_engine_stands_in_what_is_printed() -> None:
    code = (
        "from shoal.engines.duck import connect\n"
        "from shoal.engines.source import Scope\n"
        "print(connect(Scope()).sql(\"select current_setting('enable_progress_bar')\").fetchall())"
    )  # a program without a file of its own is one that somebody types, to DuckDB
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[(False,)]\n"


def test_a_name_that_duckdb_would_lose_is_refused() -> None:
    relation = duckdb.connect().sql("select 1 as ' a', 2 as b")
    with pytest.raises(InputError, match="begins or ends with a space"):
        shoal.anonymize(relation, quasi_identifiers=["b"], insensitive=[" a"], k=1)


def test_an_empty_relation() -> None:
    relation = duckdb.connect().sql("select 'x' as a, 1 as b, 'p' as s where false")
    with pytest.raises(InputError, match="no rows"):
        shoal.anonymize(relation, l=2, **ASKED)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".csv.gz"])
def test_both_engines_lose_the_same_group_by_group(tmp_path: Path, ending: str) -> None:
    from shoal.engines.store import store

    path = tmp_path / f"people{ending}"
    store(people(), path)
    found = {}
    for engine in ("polars", "duckdb"):
        release = shoal.anonymize(path, engine=engine, identifiers=["name"], insensitive=["row"], l=2, **ASKED)
        target = tmp_path / f"{engine}.csv"
        record = release.write(target)
        assert shoal.verify(target, record, path).holds
        found[engine] = (release.loss, classes(pl.read_csv(target, infer_schema=False)))
    assert found["duckdb"] == found["polars"]


def test_names_that_differ_by_case_alone_are_refused() -> None:
    for other in ("name", "Name"):
        made = duckdb.sql(f"select 1 as name, 2 as a, 3 as {other}")
        with pytest.raises(InputError, match="more than once"):
            shoal.anonymize(made, quasi_identifiers=["a"], identifiers=["name"], k=1, effort="fast")


@pytest.mark.parametrize("name", [" a", "a\t", "a\u200b", "\ufeffa", "\u2003a", "a,", '"a"', "`a`", "^a$"])
@pytest.mark.parametrize("role", ["quasi_identifiers", "insensitive"])
def test_names_that_duckdb_reads_as_others_are_refused(name: str, role: str) -> None:
    table = duckdb.from_arrow(pl.DataFrame({name: [1, 1, 2, 2], "a": [1, 2, 3, 4], "z": [1, 1, 1, 1]}).to_arrow())
    with pytest.raises(InputError, match="rename it"):
        shoal.anonymize(table, k=2, **({"quasi_identifiers": ["z"], "identifiers": ["a"]} | {role: [name]}))


@pytest.mark.parametrize(
    "name", ['a"b', "a'b", "a`b", "select", "x" * 300, "a\nb", "a;b", ",a", "ü→", "{a}", "^a", "[a]"]
)
def test_odd_names_are_counted_as_in_memory(name: str) -> None:
    frame = pl.DataFrame({name: [1, 1, 2, 2, 3, 4], "z": [1, 1, 2, 2, 2, 2]})
    asked: dict[str, Any] = {
        "quasi_identifiers": [name, "z"],
        "k": 2,
        "effort": "fast",
        "secret": b"sixteen bytes or more",
    }
    made = shoal.anonymize(duckdb.from_arrow(frame.to_arrow()), **asked)
    assert made.table.columns == frame.columns
    assert sorted(made.table.fetchall(), key=str) == sorted(shoal.anonymize(frame, **asked).table.rows(), key=str)


def test_more_columns_than_one_query_counts(tmp_path: Path) -> None:
    """DuckDB refuses a union of some hundred queries, so columns are counted in several."""
    frame = pl.DataFrame({"z": [1] * 6, **{f"w{i}": [i, i, i, 7, 7, 7] for i in range(400)}})
    asked: dict[str, Any] = {"quasi_identifiers": ["z"], "k": 2, "effort": "fast"}
    made = shoal.anonymize(duckdb.from_arrow(frame.to_arrow()), **asked)
    assert made.facts.carried == shoal.anonymize(frame, **asked).facts.carried
    assert made.table.pl().sort("w1").select(frame.columns).equals(frame.sort("w1"))


def test_names_that_no_engine_can_be_asked_for_are_refused() -> None:
    """A dot would be read as that of a field, so rows be grouped by another column; nameless columns are none."""
    table = duckdb.sql("select {'y': i % 3} as x, i % 2 as \"x.y\", i % 2 as z from range(12) t(i)")
    for roles in ({"quasi_identifiers": ["x.y"]}, {"quasi_identifiers": ["z"], "insensitive": ["x.y"]}):
        with pytest.raises(InputError, match=r"the dot of column 'x\.y'"):
            shoal.anonymize(table, k=2, identifiers=["x"], **roles)
    assert shoal.anonymize(table, k=2, identifiers=["x", "x.y"], quasi_identifiers=["z"]).audit.k == 6
    nameless = pl.DataFrame({"": [1, 1, 2, 2], "z": [1, 1, 1, 1]})
    for roles in ({"quasi_identifiers": [""]}, {"quasi_identifiers": ["z"], "sensitive": [""]}):
        for frame in (nameless, nameless.to_pandas()):
            with pytest.raises(PolicyError, match="without a name"):
                shoal.anonymize(frame, k=2, **roles)


def test_a_missing_file_and_a_broken_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        shoal.anonymize(tmp_path / "no.csv", engine="duckdb", **ASKED)
    (tmp_path / "bad.parquet").write_text("no parquet")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        shoal.anonymize(tmp_path / "bad.parquet", engine="duckdb", **ASKED)


@pytest.mark.filterwarnings("ignore")
def test_spark_places_every_type_as_memory_does(spark: Any) -> None:
    n = 120
    step = [(i * i % 7) for i in range(n)]
    columns = {
        "day": ("date", [dt.date(2020, 1, 1 + i % 3) for i in step]),
        "price": ("decimal(10,2)", [Decimal(f"{i % 4}.50") for i in step]),
        "age": ("int", [20 + i if j % 9 else None for j, i in enumerate(step)]),
        "all": ("bigint", list(range(n))),
        "s": ("string", ["pqr"[i * i * i % 3] for i in range(n)]),
        "row": ("bigint", list(range(n))),
        "x": ("double", [(i - 60) / 7 for i in range(n)]),
        "flag": ("boolean", [i % 2 == 0 for i in range(n)]),
        "__shoal_group": ("string", [f"ñ{i}" for i in range(n)]),
    }
    lines = list(zip(*(v for _, v in columns.values()), strict=True))
    given = spark.createDataFrame(lines, ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items()))
    frame = pl.DataFrame({name: v for name, (_, v) in columns.items()}, schema_overrides={"age": pl.Int32})
    asked: dict[str, Any] = {"sensitive": ["s"], "k": 3, "l": 2, "seed": 1, "effort": "fast"}
    asked |= {"secret": b"sixteen bytes or more"}
    for publish, quasi in (("stars", ["day", "price", "age", "all"]), ("ranges", ["day", "price", "age"])):
        if publish == "ranges":  # every column carried along is counted, which takes Spark a while
            given, frame = given.drop("all", "flag", "__shoal_group"), frame.drop("all", "flag", "__shoal_group")
        others = [
            c for c in ("age", "price", "all", "row", "x", "__shoal_group") if c not in quasi and c in frame.columns
        ]
        told = asked | {"publish": publish, "quasi_identifiers": quasi, "insensitive": others}
        release, expected = prepare(given, **told), shoal.anonymize(frame, **told)
        if publish == "ranges":
            assert release.audit.passes
        got = sorted(
            (tuple(map(str, r)) for r in release.table.collect()), key=lambda r: int(r[given.columns.index("row")])
        )
        assert got == [tuple(map(str, r)) for r in expected.table.sort("row").rows()]
        split = np.bincount(expected._placement.expected.partition.cell) > 1
        assert split.any() or publish == "stars", "no cell was split"
        if publish == "stars":
            assert [kind for _, kind in release.table.dtypes] == [kind for kind, _ in columns.values()]
            assert {r[3] for r in got} == {"None"}, "a fully starred column is one of missing values"


@pytest.mark.filterwarnings("ignore")
def test_a_spark_frame_comes_back_as_one(spark: Any, tmp_path: Path) -> None:
    frame = people(60)
    rows = [tuple(r) for r in frame.rows()]
    given = spark.createDataFrame(rows, "a string, b int, s string, name string, row bigint")
    release = prepare(given, identifiers=["name"], insensitive=["row"], l=2, **ASKED)
    assert type(release.table) is type(given)
    assert dict(release.table.dtypes) == {"a": "string", "b": "int", "s": "string", "row": "bigint"}
    got = pl.DataFrame([tuple(r) for r in release.table.collect()], schema=["a", "b", "s", "row"], orient="row")
    expected = shoal.anonymize(frame, identifiers=["name"], insensitive=["row"], l=2, **ASKED)
    assert release.loss == expected.loss
    assert classes(got) == classes(expected.table)
    target = tmp_path / "r.csv"
    record = release.write(target)
    original = tmp_path / "people.csv"
    frame.write_csv(original)
    assert shoal.verify(target, record, original).holds


@pytest.mark.filterwarnings("ignore")
def test_spark_reads_what_is_there(spark: Any, tmp_path: Path) -> None:
    from shoal.engines.open import open_file
    from shoal.engines.store import read_table

    raw = '\ufeff\n"a ""x""",b,__shoal_key_0\n#5,"x\n, y",\n\n" p ","",é\nNULL,"""q""",\\N\n'.encode()
    path = tmp_path / "p[1]*.csv"
    path.write_bytes(raw)
    (tmp_path / "p1.csv").write_text("a\nother\n")
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        with pytest.raises(InputError, match="for a pattern"):
            open_file(path, "spark")
        path = path.rename(tmp_path / "p.csv")
    table = open_file(path, "spark")
    whole = read_table(path)
    assert table.columns == whole.columns
    assert [tuple(row) for row in table.native.collect()] == whole.rows()
    assert table.count(["b"], []).histogram.rows == whole.height
    table.origin = table.origin._replace(records=7)
    with pytest.raises(InputError, match="two readers do not agree"):
        table.count(["b"], [])
    for name, content, says in (
        ("_p.csv", b"a,b\n1,2\n", "an underscore"),
        ("p:1.csv", b"a,b\n1,2\n", "a colon"),
        ("c.csv", b'a,b\r\n1,"x\r\ny"\r\n', "would change"),
        ("l.csv", b'a,"b\nc"\n1,2\n', "a line break"),
        ("s.csv", b"a,b\n1,SECRET,3\n", "more fields in line 2"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=says):
            open_file(tmp_path / name, "spark")
    (tmp_path / "one.csv").write_bytes(b"a\n1\n\n1\n")
    with pytest.raises(InputError, match="two readers do not agree"):
        open_file(tmp_path / "one.csv", "spark").count(["a"], [])


@pytest.mark.filterwarnings("ignore")
def test_what_is_drawn_at_random_verifies_from_spark_too(spark: Any, tmp_path: Path) -> None:
    from tests.fuzz import releases

    came = [releases.tried(seed, tmp_path, spark) for seed in (3,)]
    assert came == ["verified"]


@pytest.mark.parametrize("times", [1, 10**6])
def test_whom_columns_single_out_is_counted_in_lots_as_in_memory(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Many values are hashed and sorted, all at once or in lots; few are grouped; both as in memory."""
    from shoal.engines import duck

    n = 3000
    monkeypatch.setattr(duck, "_HASHES", times)
    frame = pl.DataFrame(
        {
            "few": [i % 7 for i in range(n)],
            "pairs": [f"p{i // 2}" for i in range(n)],
            "most": [None if i % 5 == 0 else f"m{i}" for i in range(n)],
            "zero": [-0.0 if i % 3 else 0.0 for i in range(n)],
            "number": [float("nan") if i % 4 == 0 else i / 7 for i in range(n)],
        }
    )
    connection = duckdb.connect(config={"memory_limit": "100MB"})
    relation = connection.from_arrow(frame.to_arrow())
    for names in (frame.columns, ["pairs"], ["few", "zero"], ["few", "pairs"], ["most", "number"]):
        held, found = FrameTable(frame).singled(names), duck.table_of(relation).singled(names)
        assert (held.rows, held.alone, held.together) == (found.rows, found.alone, found.together), names
        assert held.distinct == found.distinct


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("INTERVAL", "interval 1 day"), ("TIME WITH TIME ZONE", "timetz '01:02:03+02'"), ("BIT", "'101'::bit"),
        ("BIGNUM", "'1'::bignum"), ("UNION", "union_value(a := 1)"), ("VARIANT", "1::variant"),
        ("GEOMETRY", "'POINT(1 2)'::geometry"),
    ],
)  # fmt: skip
def test_a_type_of_duckdb_alone_leaves_as_an_identifier(kind: str, value: str, tmp_path: Path) -> None:
    """Carried, its values would not be as they were; whoever verifies, attacks, or learns a recoding needs none."""
    rows = f"select 20 + i % 3 as age, ['a', 'b'][1 + i % 2] as ill, {value} as odd from range(24) t(i)"
    table = duckdb.connect().sql(rows)
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "k": 2, "effort": "fast"}
    for role in ("insensitive", "quasi_identifiers", "sensitive"):
        with pytest.raises(InputError, match=r"column 'odd' .*identifiers="):
            shoal.anonymize(table, **(asked | {role: [*asked.get(role, []), "odd"]}))
    release = shoal.anonymize(table, identifiers=["odd"], **asked)
    release.write(tmp_path / "r.csv")
    assert shoal.verify(tmp_path / "r.csv", original=table).holds
    assert shoal.attack(tmp_path / "r.csv", original=table, register=table).findings
    recoder = shoal.Recoder(["age"], sensitive=["ill"], identifiers=["odd"], k=2, hierarchies={"age": "intervals:10"})
    assert recoder.fit(table).apply(table).facts.rows == 24
    with pytest.raises(InputError, match=r"no row order to keep; .* call apply in place of transform"):
        recoder.transform(table)


@pytest.mark.parametrize("kind", ["bytes", "list"])
def test_a_series_refuses_what_has_no_text_in_one_sentence(kind: str, tmp_path: Path) -> None:
    carried = pl.Series("odd", [b"a"] * 24 if kind == "bytes" else [[1]] * 24)
    frame = pl.DataFrame({"id": range(24), "age": [20, 21] * 12}).with_columns(carried)
    for given in (frame, duckdb.connect().from_arrow(frame.to_arrow())):
        series = shoal.Series.start(tmp_path / str(type(given)), shoal.Policy.of(quasi_identifiers=["age"], k=2))
        with pytest.raises(InputError, match=r"column 'odd' .* identifiers=\[\.\.\.\] to leave it out$"):
            series.add(given, person="id")


def test_bytes_and_times_place_rows_alike_in_every_engine() -> None:
    rows = range(60)
    frame = pl.DataFrame(
        {"a": [i % 5 % 3 for i in rows], "b": [i % 7 % 2 for i in rows], "s": ["pqr"[i % 3] for i in rows]}
    )
    odd = {
        "bytes": [bytes([i % 7, 255 - i % 5]) if i % 9 else None for i in rows],
        "time": [dt.time(i % 24, i % 60, 0, i * 1000) for i in rows],
    }
    for name, values in odd.items():
        table = frame.with_columns(pl.Series(name, values), row=pl.Series(rows))
        asked = ASKED | {"l": 2, "k": 11, "insensitive": [name, "row"], "secret": b"sixteen bytes or more"}
        wanted = shoal.anonymize(table, **asked)
        assert (np.bincount(wanted._placement.expected.partition.cell) > 1).any(), "a cell is split"
        found = shoal.anonymize(duckdb.connect().from_arrow(table.to_arrow()), **asked).table.pl()
        assert sorted(map(repr, found.rows())) == sorted(map(repr, wanted.table.rows()))
