"""Tables of Ibis: the rows of Polars for one secret, from DuckDB, PostgreSQL and MariaDB; cells alone leave them.

The servers are real, begun by the tests themselves; the SQL of databases that nobody could run is kept as text.
"""

import datetime as dt
import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import shoal
from shoal.engines.table import Origin
from shoal.errors import InputError, VerificationError
from tests.servers import PASSWORD, Server, mysql, postgres

ibis = pytest.importorskip("ibis", reason="tables of Ibis need the package ibis-framework")
pytest.importorskip("duckdb")

from shoal.engines.ibis import IbisTable, _batches, _Ibis, table_of  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:Unable to set session timezone"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
SECRET = b"sixteen bytes or more"
BACKENDS = ["duckdb", "postgres", "mysql"]
KINDS = {"age": "bigint", "town": "varchar(40)", "born": "date", "weight": "double precision", "flu": "varchar(8)"}
KINDS |= {"note": "varchar(80)", "seen": "timestamp(6)", "row": "bigint"}
ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "town", "born"], "sensitive": ["flu"],
    "insensitive": ["note", "row", "seen", "weight"], "k": 3, "l": 2, "effort": "fast", "seed": 4, "secret": SECRET,
}  # fmt: skip
HIDDEN = "ibis_hidden_word"  # stands in a row; no message may hold it


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[Server]:
    with postgres() as server:
        yield server


@pytest.fixture(scope="module")
def mysql_server() -> Iterator[Server]:
    with mysql() as server:
        yield server


def connected(backend: str, request: pytest.FixtureRequest, user: str = "shoal") -> Any:
    if backend == "duckdb":
        return ibis.duckdb.connect()
    server = request.getfixturevalue(f"{backend}_server")
    module = ibis.postgres if backend == "postgres" else ibis.mysql
    return module.connect(host="127.0.0.1", port=server.port, user=user, password=PASSWORD, database="test")


@pytest.fixture(params=BACKENDS)
def connection(request: pytest.FixtureRequest) -> Iterator[Any]:
    made = connected(request.param, request)
    yield made
    made.disconnect()


def sent(connection: Any, sql: str) -> None:
    found = connection.raw_sql(sql)
    if hasattr(found, "close") and connection.name != "duckdb":
        found.close()
    if connection.name == "postgres":
        connection.con.commit()


def held(connection: Any, frame: pl.DataFrame, name: str = "people", more: str = "") -> Any:
    """A frame as a table of the database, its rows sent as the database's own client sends them."""
    quote = "`" if connection.name == "mysql" else '"'
    columns = ", ".join(f"{quote}{c}{quote} {KINDS[c]}" for c in frame.columns)
    if connection.name == "mysql":
        columns = columns.replace("timestamp(6)", "datetime(6)").replace(
            f"{quote}flu{quote} varchar(8)", "`flu` varchar(8) character set utf8mb4 collate utf8mb4_general_ci"
        )
        more = more or "character set utf8mb4"
    sent(connection, f"drop table if exists {name}")
    sent(connection, f"create table {name} ({columns}) {more}".replace("timestamp(6)", "timestamp"))
    marks = ", ".join(["?" if connection.name == "duckdb" else "%s"] * frame.width)
    sql = f"insert into {name} values ({marks})"
    if connection.name == "duckdb":
        connection.con.executemany(sql, frame.rows())
    else:
        with closing(connection.con.cursor()) as cursor:
            cursor.executemany(sql, frame.rows())
        connection.con.commit()
    return connection.table(name)


def people(n: int = 240) -> pl.DataFrame:
    """Texts that a collation takes for equal, letters of two bytes, missing values, moments before 1970."""
    draw = random.Random(7)
    seen = [dt.datetime(2020, 1, 1, 3, 4, 5, 678901), dt.datetime(1959, 12, 31, 23, 59, 59, 5), None]
    rows: dict[str, list[Any]] = {
        "age": [draw.choice([None, 20, 25, 30]) for _ in range(n)],
        "town": [draw.choice(["a b", "Ä", "a", "A", None, "日本"]) for _ in range(n)],
        "born": [draw.choice([dt.date(1990, 1, 1), dt.date(2001, 2, 3), None]) for _ in range(n)],
        "weight": [draw.choice([1.5, 2.25, None, 0.0, 1e300, -7.125, 0.1]) for _ in range(n)],
        "flu": [draw.choice(["p", "P", "q", "r", None]) for _ in range(n)],
        "note": [draw.choice([None, HIDDEN, "it's", "é", "50 %", "\\"]) for _ in range(n)],
        "seen": [draw.choice(seen) for _ in range(n)],
        "row": list(range(n)),
    }
    return pl.DataFrame(rows, schema_overrides={"age": pl.Int64})


def read(table: Any) -> pl.DataFrame:
    return pl.concat(_batches(table))


def alike(found: pl.DataFrame, wanted: pl.DataFrame) -> bool:
    assert found.columns == wanted.columns
    return sorted(map(repr, found.rows())) == sorted(map(repr, wanted.rows()))


@pytest.mark.diagonal
@pytest.mark.parametrize(
    "more",
    [{}, {"publish": "ranges", "k": 9}, {"missing": "apart"}, {"missing": "filled"}, {"publish": "centers", "k": 5}],
    ids=["stars", "ranges", "apart", "filled", "centers"],
)
def test_a_database_gives_the_rows_of_polars(connection: Any, more: dict[str, Any]) -> None:
    frame = people()
    if more.get("publish") == "centers":
        frame = frame.drop("town", "born").drop_nulls("age").with_columns(pl.col("age") + pl.col("row") % 5)
    asked = ASKED | more | {"quasi_identifiers": [n for n in ASKED["quasi_identifiers"] if n in frame.columns]}
    expected = shoal.anonymize(frame, **asked)
    native = held(connection, frame)
    release = shoal.anonymize(native, **asked)
    assert type(release.table) is type(native)
    assert release.certificate.cost == expected.certificate.cost
    assert alike(read(release.table), expected.table)
    assert read(release.table).equals(read(release.table)), "a plan gives the same rows each time"
    if not more:
        assert (np.bincount(release._placement.expected.partition.cell) > 1).any(), "no cell was split"


def test_a_release_of_a_database_is_written_and_verified_against_its_original(connection: Any, tmp_path: Path) -> None:
    frame = people()
    expected = shoal.anonymize(frame, **ASKED)
    release = shoal.anonymize(held(connection, frame), **ASKED)
    frame.write_parquet(tmp_path / "people.parquet")
    for name in ("release.csv", "release.parquet", "parts"):
        beside = tmp_path / f"{name}.json"
        certificate = release.write(tmp_path / name, beside, parts="parquet" if name == "parts" else None)
        assert shoal.verify(tmp_path / name, certificate, original=tmp_path / "people.parquet").holds
    assert alike(pl.read_parquet(tmp_path / "parts" / "*.parquet"), expected.table)


def test_nothing_is_left_in_the_database(request: pytest.FixtureRequest, connection: Any) -> None:
    frame = people(60)
    shoal.anonymize(held(connection, frame), **ASKED)
    if connection.name == "duckdb":
        pytest.skip("its connection is its database")
    other = connected(connection.name, request)
    assert [name for name in other.list_tables() if name != "people"] == []
    other.disconnect()


def test_a_table_that_changes_underneath_is_refused(connection: Any, tmp_path: Path) -> None:
    release = shoal.anonymize(held(connection, people()), **ASKED)
    sent(connection, "update people set flu = 'q' where flu = 'p'")
    with pytest.raises(VerificationError) as refused:
        release.write(tmp_path / "release.parquet")
    assert HIDDEN not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("backend", ["postgres", "mysql"])
def test_a_connection_that_is_lost_is_one_sentence(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    connection, other = connected(backend, request), connected(backend, request)
    release = shoal.anonymize(held(connection, people()), **ASKED)
    if backend == "postgres":
        sent(other, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                    "and datname = 'test'")  # fmt: skip
    else:
        sent(other, f"kill {connection.con.thread_id()}")
    for call in (lambda: release.write(tmp_path / "release.csv"), lambda: shoal.anonymize(release.table, **ASKED)):
        with pytest.raises(InputError) as refused:
            call()
        assert "does not answer" in str(refused.value) or "cannot be counted" in str(refused.value)
        assert HIDDEN not in str(refused.value)
        assert PASSWORD not in str(refused.value)
    assert list(tmp_path.iterdir()) == []
    other.disconnect()


ODD = [
    ("inet", "'10.0.0.1'"), ("interval", "'1 day'"), ("int[]", "'{1}'"), ("point", "'(1,2)'"), ("tsvector", "'a'"),
    ("timetz", "'01:02:03+02'"),
]  # fmt: skip
ODD_MARIA = [
    ("point", "point(1, 2)"), ("inet6", "'::1'"), ("blob", "'a'"), ("bit(3)", "b'101'"), ("bit(1)", "b'1'"),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["duckdb", "postgres"])
@pytest.mark.parametrize("missing", ["category", "apart", "filled"])
@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive"])
def test_numbers_of_any_size_nan_and_moments_are_grouped_and_filled(
    backend: str, missing: str, role: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    weights = [1e300, 2e300, float("nan"), None, float("inf"), float("-inf"), 2.0**60, 0.0]
    frame = people().with_columns(weight=pl.Series([weights[i * i % 8] for i in range(240)]))
    connection = connected(backend, request)
    for name in ("weight", "seen"):
        asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": [], "insensitive": ["row"], "k": 3}
        asked |= {"effort": "fast", "seed": 4, "secret": SECRET, "missing": missing}
        asked[role] = [*asked[role], name]
        asked["identifiers"] = [n for n in frame.columns if n not in (*asked["quasi_identifiers"], name, "row")]
        native, expected = held(connection, frame), shoal.anonymize(frame, **asked)
        release = shoal.anonymize(native, **asked)
        assert release.loss == expected.loss
        release.write(tmp_path / "r.csv")
        expected.write(tmp_path / "e.csv")
        read_back = (pl.read_csv(tmp_path / name, infer_schema=False) for name in ("r.csv", "e.csv"))
        assert alike(*read_back)
        assert shoal.verify(tmp_path / "r.csv", original=native).holds
    connection.disconnect()


@pytest.mark.parametrize("role", ["quasi_identifiers", "sensitive"])
def test_numbers_that_hardly_differ_are_grouped_as_in_memory(connection: Any, role: str, tmp_path: Path) -> None:
    weights = [0.3, 0.1 + 0.2, 0.0, -0.0, 1e-300, 2e-300, -1e-300, 0.1]
    frame = people().with_columns(weight=pl.Series([weights[i * i % 7 + i % 2] for i in range(240)]))
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": [], "k": 3, "effort": "fast", "seed": 4}
    asked |= {"insensitive": ["row"], "secret": SECRET, role: [*(["age"] if role != "sensitive" else []), "weight"]}
    asked["identifiers"] = [name for name in frame.columns if name not in ("age", "row", "weight")]
    native, expected = held(connection, frame), shoal.anonymize(frame, **asked)
    release = shoal.anonymize(native, **asked)
    assert release.loss == expected.loss
    release.write(tmp_path / "r.csv")
    expected.write(tmp_path / "e.csv")
    assert alike(*(pl.read_csv(tmp_path / name, infer_schema=False) for name in ("r.csv", "e.csv")))
    assert shoal.verify(tmp_path / "r.csv", original=native).holds


@pytest.mark.parametrize("backend", ["duckdb", "postgres"])
def test_a_table_that_is_brought_to_a_database_may_have_names_with_percent_signs(
    backend: str, request: pytest.FixtureRequest
) -> None:
    frame = pl.DataFrame({"age %s": [20, 21, 22] * 8, "100%": ["a", "b"] * 12})
    connection = connected(backend, request)
    sent(connection, "drop table if exists odd")
    sent(connection, 'create table odd ("age %s" bigint, "100%" text)')
    sent(connection, "insert into odd " + " union all ".join(f"select {a}, '{b}'" for a, b in frame.rows()))
    recoder = shoal.Recoder(["age %s"], sensitive=["100%"], k=2, hierarchies={"age %s": "intervals:10"})
    found = recoder.fit(frame).apply(connection.table("odd"), secret=SECRET)
    assert alike(read(found.table), recoder.apply(frame, secret=SECRET).table)
    sent(connection, "drop table odd")
    connection.disconnect()


@pytest.mark.parametrize(
    ("kind", "value"),
    [*ODD, ("uuid", "gen_random_uuid()"), ("date", "'infinity'"), ("money", "'1'"), ("bytea", "'a'")],
)
def test_an_identifier_of_any_type_stays_in_the_database(
    kind: str, value: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Whoever verifies, attacks, or learns a recoding needs no value of it."""
    connection = connected("postgres", request)
    sent(connection, "drop table if exists odd")
    sent(connection, f"create table odd (age bigint, ill text, odd {kind})")
    sent(connection, f"insert into odd select 20 + i % 3, chr(97 + i % 4), {value} from generate_series(1, 24) i")
    table = connection.table("odd")
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "sensitive": ["ill"], "identifiers": ["odd"], "k": 2}
    release = shoal.anonymize(table, **asked, effort="fast")
    release.write(tmp_path / "r.csv")
    assert shoal.verify(tmp_path / "r.csv", original=table).holds
    assert shoal.attack(tmp_path / "r.csv", original=table).findings
    recoder = shoal.Recoder(["age"], sensitive=["ill"], identifiers=["odd"], k=2, hierarchies={"age": "intervals:10"})
    assert recoder.fit(table).apply(table).facts.rows == 24
    sent(connection, "drop table odd")
    connection.disconnect()


def test_a_span_of_months_is_refused_by_name(request: pytest.FixtureRequest) -> None:
    connection = connected("postgres", request)
    sent(connection, "drop table if exists odd")
    sent(connection, "create table odd (age bigint, odd interval year)")
    with pytest.raises(InputError, match="column 'odd' is of type interval"):
        shoal.anonymize(connection.table("odd"), quasi_identifiers=["age"], identifiers=["odd"], k=2)
    sent(connection, "drop table odd")
    connection.disconnect()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_series_takes_months_from_a_database(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    connection = connected(backend, request)
    asked = {key: value for key, value in ASKED.items() if key in ("quasi_identifiers", "sensitive", "effort")}
    series = shoal.Series.start(tmp_path / "s", shoal.Policy.of(k=2, **asked))
    gone = [n for n in people(1).columns if n not in (*asked["quasi_identifiers"], *asked["sensitive"], "row")]
    for month in range(2):
        frame = people().with_columns(pl.col("row") + 1000 * month)
        series.add(held(connection, frame), person="row", identifiers=gone)
    assert series.verify().holds
    connection.disconnect()


@pytest.mark.parametrize(
    ("backend", "kind", "value"),
    [
        *(("postgres", *odd) for odd in ODD), *(("mysql", *odd) for odd in ODD_MARIA),
        ("duckdb", "timetz", "'12:00:00+01'"), ("duckdb", "interval", "'1 hour'"),
    ],
)  # fmt: skip
def test_a_type_that_no_other_table_holds_is_refused_by_name(
    backend: str, kind: str, value: str, request: pytest.FixtureRequest
) -> None:
    connection = connected(backend, request)
    sent(connection, "drop table if exists odd")
    if backend != "mysql":
        rows = "generate_series(1, 30) as t(i)"
        sent(connection, f"create table odd as select i % 3 as age, {value}::{kind} as odd from {rows}")
    else:
        sent(connection, f"create table odd (age bigint, odd {kind})")
        sent(connection, f"insert into odd select seq % 3, {value} from seq_1_to_30")
        connection.con.commit()
    for roles in ({}, {"sensitive": ["odd"]}):
        with pytest.raises(InputError, match="'odd'") as refused:
            shoal.anonymize(connection.table("odd"), quasi_identifiers=["age"], k=3, **roles)
        assert len(str(refused.value).splitlines()) == 1
    release = shoal.anonymize(connection.table("odd"), quasi_identifiers=["age"], identifiers=["odd"], k=3)
    assert release.certificate.cost == 0
    sent(connection, "drop table odd")
    connection.disconnect()


@pytest.mark.parametrize("role", ["quasi_identifiers", "insensitive"])
@pytest.mark.parametrize(
    ("backend", "kind"),
    [("duckdb", "timestamp_s"), ("postgres", "timestamp(0)"), ("postgres", "timestamptz(0)"), ("mysql", "datetime(0)")],
)
def test_moments_of_whole_seconds_are_those_of_a_frame(
    backend: str, kind: str, role: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    connection, zone = connected(backend, request), "UTC" if kind.startswith("timestamptz") else None
    moments = [dt.datetime(2020, 1, 1 + i % 3, 12, 0, 59) for i in range(30)]
    frame = pl.DataFrame({"age": [i % 2 for i in range(30)], "at": moments})
    frame = frame.with_columns(pl.col("at").cast(pl.Datetime("ms")).dt.replace_time_zone(zone))
    sent(connection, "drop table if exists odd")
    sent(connection, f"create table odd (age bigint, seen {kind})")
    texts = [f"({age}, '{at:%Y-%m-%d %H:%M:%S}{'+00' if zone else ''}')" for age, at in frame.rows()]
    sent(connection, f"insert into odd values {', '.join(texts)}")
    connection.con.commit()
    table, frame = connection.table("odd"), frame.rename({"at": "seen"})
    asked: dict[str, Any] = {"publish": "ranges", "k": 3, "effort": "fast", "secret": SECRET}
    asked |= {"quasi_identifiers": ["age"]} if role == "insensitive" else {}
    made = [shoal.anonymize(t, **asked, **{role: ["seen"]}) for t in (table, frame.drop(*["age"] * (role[0] == "q")))]
    assert alike(read(made[0].table).select("seen"), made[1].table.select("seen"))
    made[0].write(tmp_path / "r.parquet")
    assert shoal.verify(tmp_path / "r.parquet", original=table).holds
    sent(connection, "drop table odd")
    connection.disconnect()


NAMES = [
    "a b",
    "a\tb",
    "a'b",
    'a"b',
    "a`b",
    "a%b",
    "%s",
    "{a}",
    "a?b",
    "a:b",
    "$1",
    "a\\b",
    "--",
    "select",
    "größe",
    "日本語",
]


def test_odd_names_are_counted_as_in_memory(connection: Any) -> None:
    """Each name in every role, in one table: what quotes a name of SQL ends none of them."""
    quote = "`" if connection.name == "mysql" else '"'
    rows = {"q": [1, 2, 1, 2] * 12, "s": ["p", "q", "r"] * 16, "c": ["x", "y"] * 24}
    frame = pl.DataFrame({role + name: held for name in NAMES for role, held in rows.items()})
    columns = [f"{quote}{n.replace(quote, quote * 2)}{quote}" for n in frame.columns]
    kinds = ["bigint" if n[0] == "q" else "varchar(3)" for n in frame.columns]
    with closing(connection.con.cursor()) as cursor:
        cursor.execute("drop table if exists odd")
        cursor.execute(f"create table odd ({', '.join(map(' '.join, zip(columns, kinds, strict=True)))})")
        marks = ", ".join(["?" if connection.name == "duckdb" else "%s"] * frame.width)
        cursor.executemany(f"insert into odd values ({marks})", frame.rows())
    if connection.name != "duckdb":
        connection.con.commit()
    by_role = {role: [n for n in frame.columns if n[0] == role] for role in rows}
    asked = {"quasi_identifiers": by_role["q"], "sensitive": by_role["s"], "insensitive": by_role["c"], "k": 3, "l": 2}
    asked |= {"effort": "fast", "secret": SECRET}
    found = shoal.anonymize(connection.table("odd"), **asked)
    assert alike(read(found.table), shoal.anonymize(frame, **asked).table)
    sent(connection, "drop table odd")


TYPES = [
    ("postgres", "(array['lo', 'mid', 'hi'])[1 + i % 3]::mood", ""),
    ("postgres", "md5((i % 3)::text)::char(40)", ""),
    ("postgres", "(i % 3 + 0.5)::numeric", ""),
    ("postgres", "(i % 3)::numeric * 1e40", "no place outside the database"),
    ("postgres", "(case i % 3 when 0 then 'NaN' else '1' end)::numeric", "no place outside the database"),
    ("postgres", "(case i % 3 when 0 then 'infinity' else '2020-01-01' end)::timestamp", "no place outside"),
    ("postgres", "(case i % 3 when 0 then '0044-03-15 BC' else '2020-01-01' end)::date", "no place outside"),
    ("postgres", "(i % 3)::small", ""),
    ("postgres", "(i % 3 + 0.25)::price", ""),
    ("postgres", "(array['lo', 'mid', 'hi'])[1 + i % 3]::mood::feeling", "type feeling"),
    ("postgres", "(i % 3)::money", "no place outside the database"),
    ("postgres", "(i % 3)::bit(4)", r"type bit\(4\)"),
    ("postgres", "md5((i % 3)::text)::uuid", "type uuid"),
    ("mysql", "cast(i % 3 as decimal(65, 0))", "65 digits"),
    ("mysql", "sec_to_time(i % 3)", "type time"),
    ("mysql", "cast(2000 + i % 3 as year)", "type year"),
    ("mysql", "cast(i % 3 as decimal(38, 2))", ""),
]
PADDED = [
    ("int(5) zerofill", "i % 3"),
    ("tinyint zerofill", "i % 3"),
    ("bigint zerofill", "18446744073709551613 + i % 3"),
    ("decimal(8, 2) zerofill", "i % 3 + 0.25"),
    ("decimal(8, 2) unsigned", "i % 3 + 0.25"),
    ("float unsigned", "i % 3 + 0.1"),
    ("double(8, 3) zerofill", "i % 3 + 0.125"),
]


@pytest.mark.parametrize(("backend", "kind", "said"), TYPES)
def test_a_type_is_read_as_in_memory_or_refused_by_name(
    backend: str, kind: str, said: str, request: pytest.FixtureRequest
) -> None:
    connection = connected(backend, request)
    rows = "generate_series(1, 30) i" if backend == "postgres" else "(select seq i from seq_1_to_30) t"
    sent(connection, "drop table if exists odd")
    if backend == "postgres":
        sent(connection, "drop type if exists mood cascade")
        sent(connection, "create type mood as enum ('lo', 'mid', 'hi')")
        sent(connection, "create domain feeling as mood")
        sent(connection, "drop domain if exists whole cascade")
        sent(connection, "create domain whole as int check (value >= 0)")
        sent(connection, "create domain small as whole check (value < 9)")
        sent(connection, "drop domain if exists price")
        sent(connection, "create domain price as numeric(8, 2)")
    if backend == "mysql" and "year" in kind:  # which is the type of no expression
        sent(connection, "create table odd (age bigint, odd year)")
        sent(connection, f"insert into odd select i % 2, 2000 + i % 3 from {rows}")
        connection.con.commit()
    else:
        sent(connection, f"create table odd as select i % 2 as age, {kind} as odd from {rows}")
    base = {"small": "odd::int", "price": "odd::numeric(8, 2)"}.get(kind.rpartition("::")[2], "odd")
    for role in ("quasi_identifiers", "sensitive", "insensitive"):
        asked: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 3, "effort": "fast", "secret": SECRET}
        asked[role] = [*asked.get(role, ()), "odd"]
        if said:
            with pytest.raises(InputError, match="'odd'") as refused:
                shoal.anonymize(connection.table("odd"), **asked)
            text = str(refused.value)
            assert len(text.splitlines()) == 1
            assert re.search(said, text) or role == "insensitive"
        else:
            frame = read(connection.sql(f"select age, {base} as odd from odd"))
            assert alike(
                read(shoal.anonymize(connection.table("odd"), **asked).table), shoal.anonymize(frame, **asked).table
            )
    sent(connection, "drop table odd")
    connection.disconnect()


@pytest.mark.parametrize(("kind", "values"), PADDED)
def test_numbers_that_mysql_shows_with_zeros_or_has_no_negative_ones_of_are_numbers(
    kind: str, values: str, request: pytest.FixtureRequest
) -> None:
    connection = connected("mysql", request)
    sent(connection, "drop table if exists odd")
    sent(connection, f"create table odd (age bigint, odd {kind})")
    sent(connection, f"insert into odd select i % 2, {values} from (select seq i from seq_1_to_30) t")
    connection.con.commit()
    with closing(connection.con.cursor()) as cursor:
        cursor.execute("select age, odd from odd")
        frame = pl.DataFrame(cursor.fetchall(), schema=["age", "odd"], orient="row")
    if kind.startswith("float"):
        frame = frame.with_columns(pl.col("odd").cast(pl.Float32))
    for role in ("quasi_identifiers", "sensitive", "insensitive"):
        asked: dict[str, Any] = {"quasi_identifiers": ["age"], "k": 3, "effort": "fast", "secret": SECRET}
        asked[role] = [*asked.get(role, ()), "odd"]
        found = read(shoal.anonymize(connection.table("odd"), **asked).table)
        assert alike(found, shoal.anonymize(frame, **asked).table)
    sent(connection, "drop table odd")
    connection.disconnect()


def test_a_column_in_latin_letters_is_hashed_as_every_other(request: pytest.FixtureRequest) -> None:
    connection = connected("mysql", request)
    frame = people().with_columns(pl.col("town").replace("日本", "ñ"))
    native = held(connection, frame, more="character set latin1")
    assert alike(read(shoal.anonymize(native, **ASKED).table), shoal.anonymize(frame, **ASKED).table)
    connection.disconnect()


@pytest.mark.parametrize("backend", ["postgres", "mysql"])
def test_a_reader_who_may_write_nothing_is_enough(backend: str, request: pytest.FixtureRequest) -> None:
    """Temporary tables need no right to the data: nothing else is made."""
    frame = people()
    owner = connected(backend, request)
    held(owner, frame)
    reader = connected(backend, request, "reader")
    assert alike(read(shoal.anonymize(reader.table("people"), **ASKED).table), shoal.anonymize(frame, **ASKED).table)
    reader.disconnect()
    owner.disconnect()


def test_a_table_of_the_process_is_a_table(tmp_path: Path) -> None:
    frame = people().drop("note")
    asked = ASKED | {"insensitive": ["row", "seen", "weight"]}
    native = ibis.memtable(frame.to_arrow())
    release = shoal.anonymize(native, **asked)
    assert alike(read(release.table), shoal.anonymize(frame, **asked).table)


def test_another_database_is_refused_by_name() -> None:
    connection = ibis.polars.connect(tables={"people": people().lazy()})
    with pytest.raises(InputError, match="not in polars"):
        table_of(connection.table("people"))


UNRUN = ["bigquery", "snowflake", "trino", "mssql"]
SCHEMA = {"age": "int64", "town": "string", "flu": "string", "weight": "float64", "seen": "timestamp", "ok": "boolean"}


def compiled(backend: str) -> str:
    """The two queries: cells with counts and numbers; the ordinals of rows within split cells."""
    names = ["age", "town", "flu"]
    table = IbisTable(ibis.table(SCHEMA, name="people"), _Ibis(backend), Origin())
    grouped = table._compared(names).group_by(names).agg(nw.len().alias("rows")).to_native()
    counted = table.dialect.with_columns(grouped, {"key": table._number_of_cells(names, 0)})
    joined = ibis.table(SCHEMA | {"salt": "string", "cell": "int64"}, name="joined")
    hashed = nw.from_native(
        table.dialect.with_columns(joined, {"place": table.dialect.placement_hash("salt", table.kinds)})
    )
    ordinal = nw.col("place").cum_count().over("cell", order_by=["place", "weight"]).cast(nw.Int64)
    numbered = hashed.with_columns(ordinal.alias("ordinal")).to_native()
    return "\n\n".join(str(ibis.to_sql(query, dialect=backend)) for query in (counted, numbered)) + "\n"


@pytest.mark.parametrize("backend", UNRUN)
def test_the_sql_of_databases_nobody_ran_is_as_it_was_read(backend: str) -> None:
    if not ibis.__version__.startswith("12."):
        pytest.skip("Ibis of another version writes its SQL otherwise")
    kept = Path(__file__).parent / "sql" / f"{backend}.sql"
    assert compiled(backend) == kept.read_text(encoding="utf-8")


def test_a_number_means_the_same_in_cells_and_rows() -> None:
    """What a cell is known by is computed of grouped values and of rows: two expressions that must give one number."""
    frame = people()
    connection = ibis.duckdb.connect()
    native = held(connection, frame)
    table = table_of(native)
    names = ["age", "town", "flu"]
    _, counts, key, attempt = table._tuples(names)
    rows = read(table.dialect.with_columns(native, {"key": table._number(names, attempt)}))
    assert rows["key"].n_unique() == len(key) == frame.select(names).n_unique()
    assert int(counts.sum()) == frame.height
