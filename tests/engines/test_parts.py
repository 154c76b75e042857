"""Tables in parts, databases and queries through DuckDB: the same release as in memory, written in slices."""

import hashlib
import json
import os
import signal
import sqlite3
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines import atomic, duck, order, propose, store
from shoal.engines import atomic as system
from shoal.engines.source import Scope
from shoal.errors import InputError, PolicyError, VerificationError
from shoal.publishing.tables import writing as publishing
from tests.commands import run, started
from tests.data import cycled

duckdb = pytest.importorskip("duckdb", reason="the DuckDB engine needs the package duckdb")

SECRET = b"sixteen bytes or more"
ASKED: dict[str, Any] = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "k": 3, "effort": "fast", "seed": 5}


def people(n: int = 900, carried: bool = True) -> pl.DataFrame:
    frame = cycled(n)
    return frame.with_columns(note=pl.Series([f"n{i % 40}" for i in range(n)])) if carried else frame


def in_parts(frame: pl.DataFrame, folder: Path, ending: str, parts: int = 3) -> Path:
    folder.mkdir()
    for i in range(parts):
        part = frame.slice(i * frame.height // parts, (i + 1) * frame.height // parts - i * frame.height // parts)
        (part.write_parquet if ending == "parquet" else part.write_csv)(folder / f"p{i}.{ending}")
    return folder


def rows_in(path: Path) -> Counter:
    """Every row of a release as text, however it is stored."""
    frames = []
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.suffix == ".parquet":
            frames.append(pl.read_parquet(file))
        elif file.suffix == ".csv":
            frames.append(pl.read_csv(file, infer_schema=False))
    whole = pl.concat(frames)
    return Counter(tuple("" if v is None else str(v) for v in row) for row in whole.iter_rows())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a hundred rows, so that a small table has several."""
    monkeypatch.setattr(store, "PART_ROWS", 100)
    monkeypatch.setattr(publishing, "PART_ROWS", 100)
    monkeypatch.setattr(order, "_MOST_ROWS", 100)
    monkeypatch.setattr(order, "_FINE", 16)
    monkeypatch.setattr(store, "BATCH", 70)  # the last slice is then a short one


@pytest.mark.diagonal
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("out", ["folder", "one.parquet", "one.csv", "one.csv.gz"])
@pytest.mark.parametrize("carried", [True, False])
def test_a_folder_gives_the_same_rows_as_memory(tmp_path: Path, ending: str, out: str, carried: bool) -> None:
    frame = people(carried=carried)
    folder = in_parts(frame, tmp_path / "in", ending)
    held = tmp_path / f"whole.{ending}"
    (frame.write_parquet if ending == "parquet" else frame.write_csv)(held)
    insensitive = ["note"] if carried else []
    asked = ASKED | {"insensitive": insensitive, "secret": SECRET}
    release = shoal.anonymize(folder, engine="duckdb", memory="200MB", threads=2, temporary=tmp_path, **asked)
    record = release.write(tmp_path / out)
    there = tmp_path / out
    expected = shoal.anonymize(held, **asked)
    expected.write(tmp_path / f"expected.{'csv' if 'csv' in (ending if out == 'folder' else out) else 'parquet'}")
    if not out.endswith("gz"):
        assert rows_in(there) == rows_in(next(tmp_path.glob("expected.[cp]*[vt]")))
    assert shoal.verify(there, record).holds
    assert shoal.verify(there, record, folder).holds, "every row is a coarser one of the original"
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".shoal") and p.is_file()]
    if out == "folder":
        manifest = json.loads((there / "manifest.json").read_text())
        assert manifest["rows"] == frame.height
        assert len(manifest["parts"]) == len(list(there.iterdir())) - 1 > 3
        for part in manifest["parts"]:
            assert hashlib.sha256((there / part["file"]).read_bytes()).hexdigest() == part["sha256"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("publish", ["stars", "ranges"])
def test_cells_that_are_split_between_groups(tmp_path: Path, publish: str, fresh: bool) -> None:
    """As many rows of a cell go into each of its groups as the partition says, each row once and with its own note."""
    rng = np.random.default_rng(0)
    n = 400
    drawn = {
        "a": rng.integers(0, 4, n),
        "b": rng.integers(0, 5, n),
        "s": rng.choice(["p", "q", "r"], n, p=[0.4, 0.35, 0.25]),
    }
    frame = pl.DataFrame(drawn).with_columns(row=pl.arange(0, n), x=pl.Series(rng.integers(0, 9, n) / 4))
    folder = in_parts(frame, tmp_path / "in", "parquet")
    asked = ASKED | {
        "k": 5,
        "l": 2,
        "publish": publish,
        "insensitive": ["row", "x"],
        "secret": None if fresh else SECRET,
    }
    release = shoal.anonymize(folder, **asked)
    assert (np.bincount(release._placement.expected.partition.cell) > 1).sum() >= 5, "few cells are split"
    record = release.write(tmp_path / "out")
    found = pl.concat([pl.read_parquet(p) for p in sorted((tmp_path / "out").glob("*.parquet"))])
    assert sorted(found["row"].to_list()) == list(range(n))
    assert found["row"].to_list() != list(range(n))
    assert found.sort("row").select("row", "s", "x").equals(frame.select("row", "s", "x"))
    assert shoal.verify(tmp_path / "out", record, folder).holds
    if not fresh:
        expected = shoal.anonymize(frame, **asked).table
        assert found.sort("row").cast(pl.String).equals(expected.sort("row").cast(pl.String)), (
            "another place than in memory"
        )


def test_rows_leave_in_an_order_of_what_is_published_alone() -> None:
    """The same rows handed over in another order leave in the same one, which so tells nothing that they do not."""
    frame = people(300).with_columns(row=pl.arange(0, 300))
    asked = ASKED | {"l": 2, "secret": SECRET, "insensitive": ["note", "row"]}
    left = []
    for given, threads in ((frame, 2), (frame.sample(fraction=1, shuffle=True, seed=3), 1)):
        connection = duckdb.connect(config={"threads": threads})
        release = shoal.anonymize(connection.from_arrow(given.to_arrow()), **asked)
        assert (np.bincount(release._placement.expected.partition.cell) > 1).any(), "no cell is split"
        left.append(release.table.fetchall())
    assert left[0] == left[1]
    assert [row[-1] for row in left[0]] != sorted(row[-1] for row in left[0])


def test_a_numbering_that_takes_two_tuples_for_one_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from shoal.engines.duck import DUCKDB

    whole, broken = DUCKDB.number, {0, 1}
    told = []
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(
                DUCKDB, "number", lambda first, names: f"hash({first}) % 7" if first in broken else whole(first, names)
            )
        relation = duckdb.connect().from_arrow(people(300).to_arrow())
        release = shoal.anonymize(relation, secret=SECRET, insensitive=["note"], **ASKED)
        told.append(release.table.fetchall())
    assert told[0] == told[1]
    broken |= set(range(2, 8))
    with pytest.raises(InputError, match="the same number"):
        shoal.anonymize(duckdb.connect().from_arrow(people(300).to_arrow()), insensitive=["note"], **ASKED)


@pytest.mark.diagonal
@pytest.mark.parametrize("publish", ["stars", "hierarchy", "ranges"])
@pytest.mark.parametrize("parts", ["parquet", "csv"])
def test_every_recoding_goes_into_parts(tmp_path: Path, publish: str, parts: str) -> None:
    frame = people(400, carried=False).with_columns(x=pl.Series([float(i * i % 17) / 4 for i in range(400)]))
    folder = in_parts(frame, tmp_path / "in", "parquet")
    asked: dict[str, Any] = ASKED | {"quasi_identifiers": ["x", "b"], "publish": publish, "k": 4, "l": 2}
    asked |= {"insensitive": ["a"]} | (
        {"hierarchies": {"x": "intervals", "b": "intervals"}} if publish == "hierarchy" else {}
    )
    release = shoal.anonymize(folder, secret=SECRET, **asked)
    record = release.write(tmp_path / "out", parts=parts)
    assert shoal.verify(tmp_path / "out", record, folder).holds
    expected = shoal.anonymize(frame, secret=SECRET, **asked)
    target = tmp_path / f"whole.{parts}"
    expected.write(target)
    assert rows_in(tmp_path / "out") == rows_in(target)


def test_columns_in_the_names_of_folders_are_text(tmp_path: Path) -> None:
    for number, zip_ in enumerate(["10", "10", "99", "__HIVE_DEFAULT_PARTITION__"]):  # these could be numbers
        where = tmp_path / "year=2020" / "in" / f"zip={zip_}" / "s=a%20b"
        where.mkdir(parents=True, exist_ok=True)
        people(60, carried=False).select("a").write_parquet(where / f"{number}.parquet")
    (tmp_path / "year=2020" / "in" / "_SUCCESS").touch()
    release = shoal.anonymize(
        tmp_path / "year=2020" / "in", quasi_identifiers=["a", "zip"], sensitive=["s"], k=2, effort="fast"
    )
    assert release.table.columns == ["a", "zip", "s"]
    seen = Counter(zip_ for _, zip_, _ in release.table.fetchall())
    assert seen == {"10": 120, "99": 60, None: 60}
    assert {s for _, _, s in release.table.fetchall()} == {"a b"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("at", ["o", "p0-", "z"])
def test_a_part_without_rows_is_a_part(tmp_path: Path, ending: str, at: str) -> None:
    """As an engine leaves them whose partitions are empty."""
    full, none = people(60, carried=False), tmp_path / "none"
    folder = in_parts(full, tmp_path / "in", ending)
    in_parts(full.clear(), none, ending)
    (none / f"p0.{ending}").rename(folder / f"{at}.{ending}")
    release = shoal.anonymize(folder, **ASKED, secret=SECRET)
    assert release.loss == shoal.anonymize(full, **ASKED, secret=SECRET).loss
    release.write(tmp_path / f"r.{ending}")
    assert shoal.verify(tmp_path / f"r.{ending}", original=folder).holds
    with pytest.raises(InputError, match=r"no rows, so there is nothing to publish"):
        shoal.anonymize(none, **ASKED)


def test_parts_named_one_by_one_and_by_a_pattern(tmp_path: Path) -> None:
    folder = in_parts(people(), tmp_path / "in", "csv")
    whole = shoal.anonymize(folder, insensitive=["note"], **ASKED)
    named = shoal.anonymize(sorted(folder.iterdir()), insensitive=["note"], **ASKED)
    pattern = shoal.anonymize(f"{folder}/*.csv", engine="duckdb", glob=True, insensitive=["note"], **ASKED)
    assert whole.loss == named.loss == pattern.loss
    assert whole.facts.rows == named.facts.rows == pattern.facts.rows == 900
    with pytest.raises(InputError, match="named twice"):
        shoal.anonymize([folder / "p0.csv", folder / "p0.csv"], insensitive=["note"], **ASKED)
    audit = shoal.audit(folder, quasi_identifiers=["a", "b"], sensitive=["s"], k=2)
    assert audit.as_dict() == shoal.audit(people(), quasi_identifiers=["a", "b"], sensitive=["s"], k=2).as_dict() | {
        "notes": audit.as_dict()["notes"]
    }


def test_a_folder_is_reported_by_a_dot(tmp_path: Path) -> None:
    folder = in_parts(people(60), tmp_path / "in", "parquet")
    shoal.anonymize(folder, insensitive=["note"], **ASKED).write(tmp_path / "out")
    run("report", ".", cwd=tmp_path / "out").ok()
    run("verify", ".", cwd=tmp_path / "out").ok()
    assert (tmp_path / "out.report.html").exists()
    assert shoal.written(tmp_path / "out").rows.height == 60


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_database_without_a_named_table_is_told_its_tables_or_what_to_do(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"d.{kind}"
    made: Any = duckdb.connect(str(path)) if kind == "duckdb" else sqlite3.connect(path)
    for name in ("people", "young"):
        made.execute(f"create table {name} (a integer, b integer)")
        made.execute(f"insert into {name} values (1, 2)")
    if kind == "sqlite":
        made.commit()
    made.close()
    one = people(12)
    for call in (shoal.roles, lambda data: shoal.audit(data, quasi_identifiers=["a"])):
        with pytest.raises(PolicyError, match=r"say which table with table=.*; it has 'people', 'young'"):
            call(path)
    asked: dict[str, Any] = {"quasi_identifiers": ["a"]}
    for call in (
        lambda data: shoal.attack(one, data, **asked), lambda data: shoal.compare(data, {"o": one}, **asked),
        lambda data: shoal.explore(data, **asked),
    ):  # fmt: skip
        with pytest.raises(InputError, match="is a database; here files are read: write its table as Parquet or CSV"):
            call(path)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_table_and_a_query_of_a_database(tmp_path: Path, kind: str) -> None:
    frame = people()
    path = tmp_path / f"people.{kind}"
    if kind == "duckdb":
        with duckdb.connect(str(path)) as made:
            made.register("held", frame.to_arrow())
            made.execute('create table "the people" as select * from held')
    else:
        with sqlite3.connect(path) as made:
            made.execute('create table "the people" (a text, b integer, s text, note text)')
            made.executemany('insert into "the people" values (?, ?, ?, ?)', frame.rows())
    before = path.read_bytes()
    asked = ASKED | {"insensitive": ["note"], "secret": SECRET}
    release = shoal.anonymize(path, table="the people", **asked)
    assert release.loss == shoal.anonymize(frame, **asked).loss
    record = release.write(tmp_path / "out")
    assert shoal.verify(tmp_path / "out", record).holds
    written = {"table": "the people"}
    assert shoal.verify(tmp_path / "out", record, path, **written).holds
    assert "cost" in {f.check for f in shoal.verify(tmp_path / "out", record, path, **written).findings}
    assert shoal.prove(tmp_path / "out", record, path, **written, effort="fast").holds
    assert not shoal.verify(tmp_path / "out", record, path, query='select * from "the people" limit 800').holds
    with pytest.raises(PolicyError, match="say which table the original is"):
        shoal.verify(tmp_path / "out", record, **written)
    queried = shoal.anonymize(path, query='select a, b, s from "the people" where b > 3', **ASKED)
    kept = frame.filter(pl.col("b") > 3).drop("note")
    assert queried.loss == shoal.anonymize(kept, **ASKED).loss
    assert path.read_bytes() == before
    with pytest.raises(PolicyError, match="did you mean 'the people'"):
        shoal.anonymize(path, table="thepeople", **ASKED)
    with pytest.raises(PolicyError, match=r"say which table .*; it has "):
        shoal.anonymize(path, **ASKED)
    with pytest.raises(InputError, match="here files are read: write its table as Parquet or CSV first"):
        shoal.compare(path, {"r": tmp_path / "out"}, ASKED)


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_bytes_and_values_of_several_types_can_be_left_out(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"people.{kind}"
    made: Any = duckdb.connect(str(path)) if kind == "duckdb" else sqlite3.connect(path)
    union = "union(i bigint, t varchar, b blob)" if kind == "duckdb" else "any"
    made.execute(f"create table people (a text, b integer, s text, photo blob, mixed {union})")
    rows = [(a, b, s, bytes([i % 3]), (i, f"t{i}", b"t")[i % 3]) for i, (a, b, s, _) in enumerate(people(60).rows())]
    made.executemany("insert into people values (?, ?, ?, ?, ?)", rows)
    made.commit()
    made.close()
    asked = ASKED | {"table": "people", "secret": SECRET, "k": 3}
    out, left = tmp_path / "out.parquet", {"identifiers": ["photo", "mixed"]}
    for given, columns in ((left, 3), ({"identifiers": ["mixed"], "insensitive": ["photo"]}, 4)):
        record = shoal.anonymize(path, **asked, **given).write(out)
        assert shoal.verify(out, record, path, table="people").holds
        assert pl.read_parquet(out).width == columns
    assert pl.read_parquet(out)["photo"].dtype == pl.Binary
    assert shoal.roles(path, query="select a, b, photo from people").columns[2].role == "identifier"
    assert shoal.audit(path, table="people", quasi_identifiers=["a"], sensitive=["s"]).rows == 60
    for name in ("photo", "mixed"):
        other = {"identifiers": [n for n in left["identifiers"] if n != name]}
        named = [{role: [name, *asked.get(role, ())]} for role in ("quasi_identifiers", "sensitive")]
        named += [{"person": name}, {"household": name}, {"population_weights": name, "k_map": 4}]
        for role in named + [{"insensitive": [name]}] * (name == "mixed"):
            with pytest.raises(InputError, match=f"column '{name}' .*(BLOB|UNION).*identifiers="):
                shoal.anonymize(path, **asked | other | role)
    with pytest.raises(InputError, match=r"column 'mixed' is of type UNION.* in DuckDB.* or name it in identifiers"):
        shoal.anonymize(path, **asked, identifiers=["photo"])
    for words in (["init"], ["audit", "--quasi", "mixed"]):
        run(*words, path, "--table", "people").refused(2, "column 'mixed'", "UNION")
    run("init", path, "--table", "people").refused(
        2, "leave it out, or cast it to text, in a query with CAST(... AS TEXT)"
    )


def test_integers_that_numbers_do_not_hold_are_not_rounded(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("create table t (a, b)")
        rows = [(2**53 + 1, 2**53), (-(2**63), -(2**53)), (0.5, 0.5)]
        made.executemany("insert into t values (?, ?)", [row for row in rows for _ in range(3)])
    asked: dict[str, Any] = {"table": "t", "k": 3, "publish": "ranges"}
    found = shoal.anonymize(path, quasi_identifiers=["b"], identifiers=["a"], **asked).table.pl()
    assert set(found["b"]) == {2.0**53, -(2.0**53), 0.5}
    with pytest.raises(InputError, match=r"column 'a' holds values of type UNION.* to leave it out"):
        shoal.anonymize(path, quasi_identifiers=["a"], **asked)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_durations_of_parquet_are_no_numbers_to_an_engine(tmp_path: Path, unit: Any) -> None:
    stays = pl.Series([timedelta(hours=i % 3) for i in range(60)], dtype=pl.Duration(unit))
    folder = in_parts(people(60).drop("note").with_columns(stay=stays), tmp_path / "in", "parquet")
    for role in ({"quasi_identifiers": ["a", "stay"]}, {"insensitive": ["stay"]}, {}):
        with pytest.raises(InputError, match=r"column 'stay' .*INTERVAL.*identifiers="):
            shoal.anonymize(folder, **ASKED | role)
    left = shoal.anonymize(folder, **ASKED, identifiers=["stay"])
    assert left.loss == shoal.anonymize(people(60).drop("note"), **ASKED).loss
    told = shoal.anonymize(folder, query="select stay::varchar as stay from data", quasi_identifiers=["stay"], k=3)
    assert set(told.table.pl()["stay"]) == {"00:00:00", "01:00:00", "02:00:00"}


def test_intervals_of_parquet_are_refused_or_left_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql(f"copy (select i % 3 as a, to_hours(i % 2) as stay from range(30) as t(i)) to '{path}'")
    asked: dict[str, Any] = {"quasi_identifiers": ["a"], "k": 3}
    for call in (lambda: shoal.anonymize(path, **asked, identifiers=["stay"]), lambda: shoal.roles(path)):
        with pytest.raises(InputError, match=r"^column 'stay' of 't.parquet' is of type INTERVAL, .*engine='duckdb'"):
            call()
    assert "panicked" not in capfd.readouterr().err
    assert shoal.anonymize(path, **asked, identifiers=["stay"], engine="duckdb").facts.rows == 30
    assert shoal.anonymize(path, **asked, query="select a, stay::varchar as stay from data").facts.rows == 30
    path.write_bytes(path.read_bytes()[:-40] + b"\xff\xff\xff\xffPAR1")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        shoal.roles(path)


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"table": "t"}, "column 'note' holds text that is not in UTF-8; .* with query="),
        ({"query": "select a, note from t"}, "column 'note' holds text that is not in UTF-8"),
        ({"query": "select a, json_set('{}', 'hidden' || a, 1) as note from t"}, r"SQLite \(OperationalError\)$"),
        (
            {"query": "select a, json_set('{}', note, 1) as note from t"},
            "column 'note' holds text that is not in UTF-8",
        ),
        ({"query": "select a, none from t"}, "no such column: none"),
    ],
)
def test_what_sqlite_says_of_a_row_is_not_passed_on(tmp_path: Path, wanted: dict[str, str], says: str) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as made:
        made.execute("create table t (a integer, note text)")
        made.executemany("insert into t values (?, cast(? as text))", [(i % 2, b"hidden\xff") for i in range(12)])
    with pytest.raises(InputError, match=says) as refused:
        shoal.anonymize(path, quasi_identifiers=["a"], insensitive=["note"], k=2, **wanted)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize("folder", ["s?=p", "s=p?", "s=hidden\\p", "s=hidden=p", "s=hidden\np"])
def test_folders_whose_names_duckdb_reads_otherwise_are_refused(tmp_path: Path, folder: str) -> None:
    for name in (folder, folder.partition("=")[0] + "=q"):
        (tmp_path / "in" / name).mkdir(parents=True)
        people().drop("s").write_parquet(tmp_path / "in" / name / "p0.parquet")
    with pytest.raises(InputError, match=r"in the names of folders: .* in percent notation") as refused:
        shoal.anonymize(tmp_path / "in", insensitive=["note"], **ASKED)
    assert "hidden" not in str(refused.value)
    (tmp_path / "in" / folder).rename(tmp_path / "in" / "s=a%3Fb")
    if folder.startswith("s="):
        release = shoal.anonymize(tmp_path / "in", insensitive=["note"], **ASKED)
        assert set(release.table.pl()["s"]) == {"a?b", "q"}


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_query_over_files(tmp_path: Path, kind: str) -> None:
    folder = in_parts(people(), tmp_path / "in", kind)
    release = shoal.anonymize(folder, query="select a, b, s from data where s <> 'p'", **ASKED)
    assert release.facts.rows == people().filter(pl.col("s") != "p").height


def test_a_query_over_a_file_that_the_engine_reads_otherwise_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people().write_csv(tmp_path / "in.csv")
    whole = duck.duckdb_sql
    monkeypatch.setattr(duck, "duckdb_sql", lambda checked: whole(checked) + " limit 7")
    with pytest.raises(InputError, match="two readers do not agree"):
        shoal.anonymize(tmp_path / "in.csv", query="select a, b, s from data", **ASKED)


def test_folders_named_by_columns_that_the_files_hold_too(tmp_path: Path) -> None:
    frame = people().with_columns(year=2019 + pl.int_range(pl.len()) % 2)
    frame.write_parquet(tmp_path / "both", partition_by=["s", "year"])  # as Polars writes them
    asked = ASKED | {"insensitive": ["note", "year"]}
    release = shoal.anonymize(tmp_path / "both", **asked)
    assert release.loss == shoal.anonymize(frame, **asked).loss
    assert release.facts.rows == frame.height
    record = release.write(tmp_path / "out")
    assert shoal.verify(tmp_path / "out", record, original=tmp_path / "both").holds
    moved = next((tmp_path / "both").rglob("*.parquet"))
    assert moved.parent.name.startswith("year=")
    pl.read_parquet(moved, hive_partitioning=False).with_columns(year=pl.lit(1999)).write_parquet(moved)
    with pytest.raises(InputError, match="column 'year' holds"):
        shoal.anonymize(tmp_path / "both", **asked)
    csv = tmp_path / "csv" / "s=p"
    csv.mkdir(parents=True)
    frame.write_csv(csv / "p0.csv")
    with pytest.raises(InputError, match="column 's' is in the files and in the names of their folders"):
        shoal.anonymize(tmp_path / "csv", **asked)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    folder = in_parts(people(), tmp_path / "in", "parquet")
    file = folder / "p0.parquet"
    asked = ASKED | {"insensitive": ["note"]}
    for data, more, error, says in (
        (folder, {"engine": "polars"}, InputError, "Polars reads one file"),
        (file, {"engine": "polars", "memory": "2GB"}, PolicyError, "a setting of engine='duckdb'"),
        (people(), {"memory": "2GB"}, PolicyError, "no effect on a frame"),
        (people(), {"separator": ";"}, PolicyError, "separator=';' says how a CSV is read, and a frame is none; leave"),
        (people(), {"encoding": "latin-1"}, PolicyError, "encoding='latin-1' says how a CSV is read, and a frame is"),
        (file, {"separator": ";"}, PolicyError, "says how a CSV is read, and 'p0.parquet' is none; leave it out"),
        (folder, {"encoding": "latin-1"}, PolicyError, "says how a CSV is read, and 'in' is none; leave it out"),
        (file, {"memory": "2"}, PolicyError, "write a size such as"),
        (file, {"memory": "2MB"}, PolicyError, "too little"),
        (file, {"threads": 0}, PolicyError, "from 1 up"),
        (file, {"temporary": tmp_path / "no"}, InputError, "no folder"),
        (file, {"engine": "duckdb", "master": "local[1]"}, PolicyError, "a setting of engine='spark'"),
        (f"{folder}/*.csv", {"engine": "duckdb", "glob": True}, InputError, "no file fits"),
        (file, {"engine": "duckdb", "query": "select nothing from data"}, InputError, "nothing"),
        (folder, {"table": "x", "query": "select 1"}, PolicyError, "not both"),
    ):
        with pytest.raises(error, match=says):
            shoal.anonymize(data, **more, **asked)
    people(30).with_columns(b=pl.lit("x")).write_parquet(folder / "p3.parquet")
    with pytest.raises(InputError, match="'b' is of another type"):
        shoal.anonymize(folder, **asked)
    people(30).drop("b").write_parquet(folder / "p3.parquet")
    with pytest.raises(InputError, match="has other columns"):
        shoal.anonymize(folder, **asked)
    (folder / "p3.parquet").rename(folder / "p3.docx")
    with pytest.raises(InputError, match="neither Parquet nor CSV"):
        shoal.anonymize(folder, **asked)


def test_a_folder_that_is_no_release_is_never_replaced(tmp_path: Path) -> None:
    folder = in_parts(people(carried=False), tmp_path / "in", "parquet")
    release = shoal.anonymize(folder, **ASKED)
    other = tmp_path / "mine"
    other.mkdir()
    (other / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="other things than a release"):
        release.write(other)
    with pytest.raises(InputError, match="in a folder that is read"):
        release.write(folder / "out")
    with pytest.raises(InputError, match=r"in a folder that is read|other things"):
        release.write(tmp_path)
    release.write(tmp_path / "out")
    first = (tmp_path / "out" / "manifest.json").read_bytes()
    with pytest.raises(PolicyError, match="exists already"):
        release.write(tmp_path / "out", overwrite=False)
    again = shoal.anonymize(folder, **(ASKED | {"k": 5}))
    record = again.write(tmp_path / "out")
    assert (tmp_path / "out" / "manifest.json").read_bytes() != first
    assert shoal.verify(tmp_path / "out", record).holds
    with pytest.raises(PolicyError, match="a folder of parts is written with engine"):
        shoal.anonymize(people(carried=False), **ASKED).write(tmp_path / "x", parts="csv")


def test_verify_sees_a_part_changed_gone_or_added(tmp_path: Path, small: None) -> None:
    folder = in_parts(people(carried=False), tmp_path / "in", "csv")
    record = shoal.anonymize(folder, **ASKED).write(tmp_path / "out")
    out = tmp_path / "out"
    part = out / "part-00001.csv"
    held = part.read_bytes()
    for spoil, says in (
        (lambda: part.write_bytes(held.replace(b"p\n", b"q\n", 1)), "changed"),
        (lambda: part.write_bytes(held + held.splitlines(keepends=True)[1]), "changed"),
        (lambda: (part.write_bytes(held), (out / "part-9.csv").write_bytes(held)), "not named"),
    ):
        spoil()
        verdict = shoal.verify(out, record)
        assert not verdict.holds
        assert any(says in f.found for f in verdict.findings if not f.holds), says
    (out / "part-9.csv").unlink()
    assert shoal.verify(out, record).holds


@pytest.mark.parametrize("spoil", ["swap", "lose", "double"])
@pytest.mark.parametrize("carried", [True, False])
def test_what_was_not_decided_never_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str, carried: bool
) -> None:
    """A writer that changes one row among nine hundred is caught by the count of what stands on disk."""
    folder = in_parts(people(carried=carried), tmp_path / "in", "parquet")
    release = shoal.anonymize(folder, insensitive=["note"] if carried else [], **ASKED)
    whole = store.store

    def spoiled(frame: pl.DataFrame, path: Path, separator: str | None = None, **how: Any) -> None:
        if spoil == "lose":
            frame = frame.head(frame.height - 1)
        elif spoil == "double":
            counted = frame.select(pl.exclude("note"))  # what the count tells apart
            other = counted.row(0) != counted.row(-1)  # the last row gives way to a second first one
            frame = pl.concat([frame.head(1), frame.head(frame.height - 1)]) if other else frame.head(1)
        else:
            other = "q" if frame["s"][0] == "p" else "p"
            frame = frame.with_columns(s=pl.concat([pl.Series([other]), frame["s"][1:]]))
        whole(frame, path, separator, **how)

    monkeypatch.setattr(store, "store", spoiled)
    with pytest.raises(VerificationError):
        release.write(tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in"]


def test_a_source_that_changes_is_kept_back(tmp_path: Path) -> None:
    folder = in_parts(people(), tmp_path / "in", "parquet")
    release = shoal.anonymize(folder, insensitive=["note"], **ASKED)
    people(300).write_parquet(folder / "p0.parquet")
    os.utime(folder / "p0.parquet", (1, 1))
    with pytest.raises(InputError, match="changed while it was read"):
        release.write(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_exchange_names_or_nothing_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for works in (True, False):
        if not works:
            monkeypatch.setattr(system, "_exchanged", lambda _one, _other: False)
        target = tmp_path / f"t{works}"
        target.mkdir()
        (target / "old").write_text("old")

        def fill(folder: Path) -> None:
            (folder / "new").write_text("new")

        def fail(_path: Path) -> None:
            raise RuntimeError

        beside = tmp_path / "beside.json"
        with pytest.raises(RuntimeError):
            atomic.publish_together([atomic.Piece(target, fill, None, True), atomic.Piece(beside, fail)])
        assert [p.name for p in target.iterdir()] == ["old"]
        (tmp_path / "b.json").mkdir()
        with pytest.raises(OSError, match="could not be written"):  # the second rename fails after the first was made
            atomic.publish_together(
                [atomic.Piece(target, fill, None, True), atomic.Piece(tmp_path / "b.json", lambda p: p.write_text("x"))]
            )
        (tmp_path / "b.json").rmdir()
        assert [p.name for p in target.iterdir()] == ["old"]
        atomic.publish_together([atomic.Piece(target, fill, None, True)])
        assert [p.name for p in target.iterdir()] == ["new"]
        assert not list(tmp_path.glob(".shoal*"))


KILLED = """
import sys, os, shoal
from pathlib import Path
from shoal.engines import store
from shoal.publishing.tables import writing as publishing
store.PART_ROWS = publishing.PART_ROWS = 100
release = shoal.anonymize(Path(sys.argv[1]), quasi_identifiers=["a", "b"], sensitive=["s"], k=3, effort="fast", seed=1)
print("ready", flush=True)
sys.stdin.readline()
release.write(Path(sys.argv[2]))
print("done", flush=True)
"""


@pytest.mark.parametrize("pause", [0.0, 0.03])
def test_a_killed_process_leaves_a_whole_release_or_none(tmp_path: Path, pause: float) -> None:
    import time

    folder = in_parts(people(carried=False), tmp_path / "in", "parquet")
    out = tmp_path / "out"
    process = started("-c", KILLED, folder, out)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("\n")
    process.stdin.flush()
    time.sleep(pause)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    record = tmp_path / "out.certificate.json"
    if out.exists():
        assert shoal.audit(out, quasi_identifiers=["a", "b"], sensitive=["s"], k=3).passes
        if record.exists():
            assert shoal.verify(out, record).holds
    release = shoal.anonymize(folder, **ASKED)
    assert shoal.verify(out, release.write(out)).holds
    assert not list(tmp_path.glob(".shoal*")), "what the dead process left is taken away"


def test_rows_are_dealt_in_an_order_of_chance(small: None) -> None:
    """Each of the six orders of three rows comes as often as any, over many keys; the multiset never changes."""
    frame = pl.DataFrame({"a": ["x"] * 3, "s": ["p", "q", "r"]})
    relation = duckdb.connect().from_arrow(frame.to_arrow())
    release = shoal.anonymize(relation, quasi_identifiers=["a"], sensitive=["s"], k=3, effort="fast")
    seen: Counter = Counter()
    for key in range(240):
        made = list(release._placement.expected.slices(["a", "s"], key.to_bytes(32, "big"), 2))
        seen[tuple(pl.concat(made)["s"].to_list())] += 1
    assert len(seen) == 6
    assert all(12 < n < 70 for n in seen.values()), seen


@pytest.mark.parametrize("kind", ["folder", "duckdb"])
def test_a_large_table_outside_of_memory_is_looked_at_by_a_sample(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pl.DataFrame({"age": [i % 60 for i in range(4_000)], "ill": ["flu", "gout"] * 2_000})
    place = tmp_path / ("parts" if kind == "folder" else "visits.duckdb")
    if kind == "folder":
        place.mkdir()
        for i in range(4):
            table.slice(1_000 * i, 1_000).write_parquet(place / f"{i}.parquet")
    else:
        with duckdb.connect(str(place)) as made:
            made.register("t", table.to_arrow())
            made.execute("create table visits as select * from t")
    monkeypatch.setattr(propose, "SAMPLED", 500)
    scope = Scope(table="visits" if kind == "duckdb" else None)
    look = propose.looked_at(place, scope=scope)
    assert look.of == 4_000
    assert 350 < look.rows < 650
    assert {c.name for c in look.columns} == {"age", "ill"}
    assert look.sampled
    monkeypatch.setattr(propose, "SAMPLED", 4_000)
    whole = propose.looked_at(place, scope=scope)
    assert (whole.rows, whole.sampled) == (4_000, ())


@pytest.mark.parametrize("setting", [{"memory": "2GB"}, {"threads": 2}, {"master": "local[1]"}])
def test_a_server_is_not_called_an_engine_that_nobody_asked_for(setting: dict[str, Any]) -> None:
    with pytest.raises(PolicyError) as refusal:
        Scope(**setting).check("ibis")
    assert "it has no effect on a server of databases" in str(refusal.value)
    assert "ibis" not in str(refusal.value)
