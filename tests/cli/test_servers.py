"""Addresses of servers: a table in, a table out, whole or not at all, and no password anywhere."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines import propose, servers
from shoal.engines.source import Scope
from tests.commands import run, started
from tests.servers import PASSWORD, Server, mysql, postgres

STEPS = [
    step.__name__
    for step in (servers.Server.stage, servers.Server.insert, servers.Server.certify, servers.Server.put_in_place)
]
"""Of a writing. They are named ahead of what skips these tests, so that a new name is seen without a server, too."""

pytest.importorskip("ibis", reason="addresses of servers need the package ibis-framework")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Unable to set session timezone"),
]
HIDDEN = "word_of_a_row"
ASKED = [
    "--quasi",
    "age,town",
    "--sensitive",
    "flu",
    "--insensitive",
    "note,weight,born",
    "--effort",
    "fast",
]
PAPERS = ["visits_release.certificate.json", "visits_release.record.json"]


def people(n: int = 120) -> pl.DataFrame:
    import datetime as dt

    return pl.DataFrame(
        {
            "age": [None if i % 17 == 0 else 20 + i * i % 7 for i in range(n)],
            "town": ["Ä'b", "a", "A", "x\ty", "日本"][:5] * (n // 5),
            "flu": ["pqrs"[i * i * i % 4] for i in range(n)],
            "note": [None if i % 5 == 0 else f"{HIDDEN} {i % 4}" for i in range(n)],
            "weight": [i / 7 if i % 3 else None for i in range(n)],
            "born": [dt.date(1980, 1, 1 + i % 20) for i in range(n)],
        }
    )


class Place:
    """A server with the table ``visits``, and what its tests ask of it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.address = server.address(password=None)
        self.mark = "`" if server.kind == "mysql" else '"'

    def ask(self, sql: str, rows: Any = None) -> Any:
        if self.server.kind == "mysql":
            import MySQLdb as client

            given = {"charset": "utf8mb4", "database": "test", "autocommit": True}
        else:
            import psycopg as client

            given = {"dbname": "test", "autocommit": True}
        made = client.connect(host="127.0.0.1", port=self.server.port, user="shoal", password=PASSWORD, **given)
        try:
            cursor = made.cursor()
            if rows is not None:
                cursor.executemany(sql, rows)
            else:
                cursor.execute(sql)
            return list(cursor.fetchall()) if cursor.description else None
        finally:
            made.close()

    def fill(self, frame: pl.DataFrame) -> None:
        text = "varchar(50) character set utf8mb4 collate utf8mb4_general_ci" if self.mark == "`" else "text"
        kinds = {"age": "bigint", "weight": "double precision", "born": "date"}
        self.ask("drop table if exists visits")
        self.ask("drop table if exists visits_release")
        self.ask(f"create table visits ({', '.join(f'{n} {kinds.get(n, text)}' for n in frame.columns)})")
        self.ask(f"insert into visits values ({', '.join(['%s'] * frame.width)})", frame.rows())

    def tables(self) -> list[str]:
        where = "database()" if self.mark == "`" else "'public'"
        return sorted(
            n for (n,) in self.ask(f"select table_name from information_schema.tables where table_schema = {where}")
        )

    def words(self, *more: str, k: int = 3) -> list[str]:
        asked = ["anonymize", self.address, "--table", "visits", *ASKED, "--k", str(k)]
        return [*asked, "-o", self.address, "--output-table", "visits_release", *more]


@pytest.fixture(scope="module", params=["postgresql", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with (postgres if request.param == "postgresql" else mysql)() as made:
        yield made


@pytest.fixture
def place(server: Server, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(server)
    made.fill(people())
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    return made


def nothing_told(folder: Path, *said: str) -> None:
    """No password and no row in what was printed or in any file but the releases themselves."""
    for text in (*said, *(p.read_text(encoding="utf-8", errors="replace") for p in folder.rglob("*.json"))):
        assert PASSWORD not in text
        assert "%25word" not in text
        assert HIDDEN not in text


def test_a_table_becomes_a_table(place: Place, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"sixteen bytes or more")
    done = run(*place.words("--json", "--secret", "secret"), cwd=tmp_path)
    assert done.facts["rows"] == 120
    assert "visits_release" in done.facts["output"]
    assert place.tables() == ["visits", "visits_release"]
    nothing_told(tmp_path, done.said)
    asked: dict[str, Any] = {"quasi_identifiers": ["age", "town"], "sensitive": ["flu"], "k": 3, "effort": "fast"}
    frame = people()
    frame.write_parquet(tmp_path / "visits.parquet")
    expected = shoal.anonymize(frame, **asked, insensitive=["note", "weight", "born"], secret=b"sixteen bytes or more")
    expected.write(tmp_path / "expected.csv")
    wanted = pl.read_csv(tmp_path / "expected.csv", infer_schema=False)
    rows = place.ask("select * from visits_release")
    starred = frame.clear().with_columns(pl.col("age").cast(pl.String)).schema
    found = pl.DataFrame(rows, schema=starred, orient="row")
    for name in wanted.columns:
        assert found[name].cast(pl.String).is_null().sum() == wanted[name].is_null().sum()
    text = found.select(pl.col(n).cast(pl.String) for n in wanted.columns)
    assert sorted(map(repr, text.rows())) == sorted(map(repr, wanted.rows()))
    certificate = json.loads((tmp_path / PAPERS[0]).read_text())
    assert certificate["release"]["table"] == "visits_release"
    run("verify", place.address, PAPERS[0], "--original", "visits.parquet", "--record", PAPERS[1], cwd=tmp_path).ok()
    page = run("report", place.address, PAPERS[0], "--json", cwd=tmp_path).facts
    assert page["report"] == "visits_release.report.html"
    nothing_told(tmp_path, (tmp_path / page["report"]).read_text(encoding="utf-8"))
    (tmp_path / page["figures_file"]).unlink()
    again = shoal.decode(place.address, tmp_path / PAPERS[0])
    assert {"age", "town"} == set(again.columns)
    assert shoal.prove(place.address, tmp_path / PAPERS[0], tmp_path / "visits.parquet").holds
    there = ["--original", place.address, "--table", "visits", "--record", PAPERS[1]]
    nothing_told(tmp_path, run("verify", place.address, PAPERS[0], *there, cwd=tmp_path).ok().said)
    place.ask("update visits_release set flu = 'q' where flu = 'p'")
    assert run("verify", place.address, PAPERS[0], cwd=tmp_path).returncode == 1
    assert sorted(p.name for p in tmp_path.glob("*.json")) == sorted(
        [*PAPERS, "expected.certificate.json", "expected.record.json"]
    )


def test_a_file_becomes_a_table_and_a_table_a_file(place: Place, tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "visits.parquet")
    words = ["anonymize", "visits.parquet", *ASKED, "--k", "3", "-o", place.address, "--output-table", "visits_release"]
    assert run(*words, "--json", cwd=tmp_path).facts["rows"] == 120
    assert len(place.ask("select * from visits_release")) == 120
    out = [
        "anonymize",
        place.address,
        "--query",
        "select * from visits where age > 21",
        *ASKED,
        "--k",
        "3",
        "-o",
        "out.csv",
    ]
    done = run(*out, "--json", cwd=tmp_path)
    assert done.facts["rows"] == people().filter(pl.col("age") > 21).height
    assert run("verify", "out.csv", cwd=tmp_path).returncode == 0
    nothing_told(tmp_path, done.said)


def test_a_release_is_replaced_with_force_alone_and_another_table_never(place: Place, tmp_path: Path) -> None:
    assert run(*place.words(), cwd=tmp_path).returncode == 0
    first = place.ask("select * from visits_release")
    for paper in PAPERS:
        (tmp_path / paper).unlink()
    again = run(*place.words(), cwd=tmp_path)
    assert again.returncode == 4, again.said
    assert place.ask("select * from visits_release") == first
    assert run(*place.words("--force", k=5), cwd=tmp_path).returncode == 0
    assert place.ask("select * from visits_release") != first
    other = [word if word != "visits_release" else "visits" for word in place.words("--force")]
    before = place.ask("select * from visits")
    refused = run(*other, cwd=tmp_path)
    assert refused.returncode == 2
    assert "no release of shoal" in refused.stderr
    assert place.ask("select * from visits") == before
    assert place.tables() == ["visits", "visits_release"]


def test_what_a_server_refuses_is_one_sentence(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = place.server.address("reader", None)
    words = place.words()
    words[words.index("-o") + 1] = reader
    kind = place.server.kind
    cases = [(words, "may not do that"), (place.words(k=4000), "the largest k possible is 120")]
    cases += [([w if w != "visits" else "vists" for w in place.words()], "did you mean 'visits'")]
    cases += [([w.replace("/test", "/nowhere") for w in place.words()], "refuses this user, password or database")]
    cases += [([w.replace(str(place.server.port), "1") for w in place.words()], "cannot be reached")]
    cases += [(place.words()[:-2], "--output-table")]
    cases += [([w for w in place.words() if w not in ("--table", "visits")], "say which table")]
    cases += [([w.replace("shoal@", f"shoal:{PASSWORD.replace('%', '%25')}@") for w in place.words()], "take it out")]
    for asked, said in cases:
        done = run(*asked, cwd=tmp_path)
        assert done.returncode in (2, 3), (asked, done.said)
        assert said in done.stderr, (asked, done.said)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert "defect" not in done.stderr
        nothing_told(tmp_path, done.said)
        assert place.tables() == ["visits"]
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PGPASSWORD", "wrongword")
    monkeypatch.setenv("MYSQL_PWD", "wrongword")
    done = run(*place.words(), cwd=tmp_path)
    assert done.returncode == 2, kind
    assert "refuses this user, password" in done.stderr
    assert "wrongword" not in done.said
    assert list(tmp_path.iterdir()) == []


def test_a_policy_is_proposed_and_a_table_measured_where_it_lies(place: Place, tmp_path: Path) -> None:
    people().write_parquet(tmp_path / "visits.parquet")
    for words in (["init", place.address, "--table", "visits"], ["init", "visits.parquet", "-o", "file.policy.toml"]):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 0, done.said
        nothing_told(tmp_path, done.said)
    made, of_file = ((tmp_path / f"{n}.policy.toml").read_text().splitlines() for n in ("visits", "file"))
    assert made[1:] == of_file[1:]
    assert made[0].startswith("# Policy for visits: ")
    assert "127.0.0.1" not in "".join(made)
    next_ = [place.address, "--policy", "visits.policy.toml", "--table", "visits", "-o", "out.csv", "--effort", "fast"]
    assert run("anonymize", *next_, "--k", "2", cwd=tmp_path).returncode == 0
    asked = ["--quasi", "age,town", "--sensitive", "flu", "--k", "3", "--json"]
    levels = []
    for words in ([place.address, "--table", "visits"], ["visits.parquet"]):
        done = run("audit", *words, *asked, cwd=tmp_path)
        nothing_told(tmp_path, done.said)
        levels.append((done.returncode, json.loads(done.stdout)))
    assert levels[0] == levels[1]
    assert levels[0][1]["rows"] == 120


def test_a_large_table_is_looked_at_by_a_sample(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(propose, "SAMPLED", 60)
    look = propose.looked_at(place.address, scope=Scope(table="visits"))
    assert look.of == 120
    assert 20 < look.rows < 100
    assert {c.name for c in look.columns} == set(people().columns)
    written = propose.write_policy("visits", look, k=2, l=2)
    assert f"# the figures are of {look.rows} rows drawn at random from 120" in written
    monkeypatch.setattr(propose, "SAMPLED", 120)
    whole = propose.looked_at(place.address, scope=Scope(table="visits"))
    assert (whole.rows, whole.sampled) == (120, ())


def test_what_cannot_be_looked_at_is_one_sentence(place: Place, tmp_path: Path) -> None:
    place.ask("drop table if exists odd")
    place.ask("create table odd (age bigint, place point)")
    place.ask("drop table if exists empty_one")
    place.ask("create table empty_one (age bigint)")
    reached = place.address
    try:
        for name in ("init", "audit"):
            more = [] if name == "init" else ["--quasi", "place"]
            done = run(name, reached, "--table", "odd", *more, cwd=tmp_path)
            assert done.returncode == 2, done.said
            assert re.search("column 'place' (is|holds values) of type", done.stderr), done.said
            assert len(done.stderr.strip().splitlines()) == 1
        for words, said in (
            ([reached, "--table", "empty_one"], "has no rows"),
            ([reached, "--table", "vists"], "did you mean 'visits'"),
            ([reached], "say which table"),
            ([reached, "--query", "select age from visits"], "name the policy with -o"),
            ([reached.replace("/test", "/nowhere"), "--table", "visits"], "refuses this user, password or database"),
        ):
            done = run("init", *words, cwd=tmp_path)
            assert done.returncode == 2, done.said
            assert said in done.stderr, done.said
            assert len(done.stderr.strip().splitlines()) == 1
        assert list(tmp_path.iterdir()) == []
    finally:
        for name in ("odd", "empty_one"):
            place.ask(f"drop table {name}")


def test_a_type_that_a_server_lacks_is_refused_by_name(place: Place, tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [1, 2] * 10, "list": [[1, 2]] * 20})
    release = shoal.anonymize(frame, quasi_identifiers=["age"], insensitive=["list"], k=2)
    with pytest.raises(shoal.InputError, match="'list'"):
        release.write(place.address, tmp_path / "c.json", table="visits_release")
    assert place.tables() == ["visits"]
    assert list(tmp_path.iterdir()) == []


NAMES = {"long": "a" * 65, "wide": "ä" * 65, "nul": "a\0b", "case": "a", "space": "q ", "beyond": "a😀b"}


@pytest.mark.parametrize("kind", NAMES)
def test_a_name_that_a_server_does_not_take_is_refused(kind: str, place: Place, tmp_path: Path) -> None:
    name = NAMES[kind]
    frame = pl.DataFrame({name: [1, 2] * 10, "A": [1] * 20})
    release = shoal.anonymize(frame, quasi_identifiers=[name], insensitive=["A"], k=2)
    if kind == "beyond" and place.server.kind == "postgresql":
        release.write(place.address, tmp_path / "c.json", table="visits_release")
        there = [tuple(map(str, row)) for row in place.ask("select * from visits_release")]
        assert sorted(there) == sorted(tuple(map(str, row)) for row in release.table.rows())
        return
    with pytest.raises(shoal.InputError, match=re.escape(repr("A" if kind == "case" else name))) as refused:
        release.write(place.address, tmp_path / "c.json", table="visits_release")
    assert str(refused.value).endswith("; rename it")
    assert place.tables() == ["visits"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", [STEPS[1], f"{STEPS[1]} more", *STEPS[2:]])
def test_a_table_that_another_changed_on_its_way_is_not_published(
    step: str, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that stores other rows, a connection that is lost: nothing is left there, and no file is here."""
    more, calls = step.endswith(" more"), 0
    step = step.split()[0]
    if more:
        monkeypatch.setattr(servers, "_ROWS", 50)
    owner = servers._MySQL if place.server.kind == "mysql" else servers._Postgres
    release = shoal.anonymize(
        people(), quasi_identifiers=["age", "town"], sensitive=["flu"], k=3, insensitive=["note", "weight", "born"]
    )
    real = getattr(owner, step)

    def lost(self: Any, *given: Any) -> None:
        nonlocal calls
        calls += 1
        if more and calls == 1:
            real(self, *given)
            return
        if step == STEPS[1] and not more:
            real(self, given[0], given[1].with_columns(pl.lit("changed").alias("note")))
            return
        if place.server.kind == "mysql":
            place.ask(f"kill {self.own.thread_id()}")
        else:
            place.ask(f"select pg_terminate_backend({self.own.info.backend_pid})")
        real(self, *given)

    monkeypatch.setattr(owner, step, lost)
    with pytest.raises(shoal.ShoalError) as refused:
        release.write(place.address, tmp_path / "c.json", table="visits_release")
    nothing_told(tmp_path, str(refused.value))
    assert place.tables() == ["visits"]
    assert list(tmp_path.iterdir()) == []
    assert calls == 1 + more
    monkeypatch.setattr(owner, step, real)
    release.write(place.address, tmp_path / "c.json", table="visits_release")
    assert place.tables() == ["visits", "visits_release"]


def test_what_a_release_replaced_goes_whatever_becomes_of_the_connection(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB renames both at once and drops the old table after that: a connection lost in between changes nothing."""
    if place.server.kind != "mysql":
        pytest.skip("PostgreSQL does both in one transaction")
    asked: dict[str, Any] = {"quasi_identifiers": ["age"], "identifiers": ["note", "weight", "born", "town", "flu"]}
    shoal.anonymize(people(), k=3, **asked).write(place.address, tmp_path / "c.json", table="visits_release")
    before, real = place.ask("select * from visits_release"), servers._MySQL.put_in_place

    def lost(self: Any, *given: Any) -> None:
        real(self, *given)
        place.ask(f"kill {self.own.thread_id()}")

    monkeypatch.setattr(servers._MySQL, STEPS[-1], lost)
    release = shoal.anonymize(people(), k=40, **asked)
    release.write(place.address, tmp_path / "c.json", table="visits_release", overwrite=True)
    assert place.tables() == ["visits", "visits_release"]
    assert place.ask("select * from visits_release") != before
    assert shoal.verify(place.address, tmp_path / "c.json").holds


KILLED = """
import sys, time
import polars as pl
import shoal
from shoal.engines import propose, servers
from shoal.engines.source import Scope

address, step = sys.argv[1:]
owner = servers._MySQL if address.startswith("mysql") else servers._Postgres
real = getattr(owner, step)
def wait(self, *given):
    # what a transaction has committed is published
    if step != servers.Server.put_in_place.__name__ or owner is servers._MySQL:
        real(self, *given)
    print("there", flush=True)
    time.sleep(600)
setattr(owner, step, wait)
servers._ROWS = 50
release = shoal.anonymize(pl.read_parquet("visits.parquet"), quasi_identifiers=["age", "town"], sensitive=["flu"], k=3,
                          insensitive=["note", "weight", "born"])
release.write(address, table="visits_release", overwrite=True)
"""


@pytest.mark.diagonal
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_is_killed_leaves_what_was_there(step: str, place: Place, tmp_path: Path) -> None:
    """Killed after any step of a writing that replaces a release: it is there as before, or the new one whole."""
    release = shoal.anonymize(
        people(), quasi_identifiers=["age"], k=3, identifiers=["note", "weight", "born", "town", "flu"]
    )
    release.write(place.address, tmp_path / "c.json", table="visits_release")
    before = place.ask("select * from visits_release")
    people().write_parquet(tmp_path / "visits.parquet")
    (tmp_path / "killed.py").write_text(KILLED)
    process = started(tmp_path / "killed.py", place.address, step, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "there\n", process.stderr and process.stderr.read()
    seen = subprocess.run(["ps", "-ww", "-eo", "args"], capture_output=True, text=True, check=False).stdout
    assert PASSWORD not in seen
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert [p.name for p in tmp_path.iterdir() if "certificate" in p.name] == []
    after = place.ask("select * from visits_release")
    if step == STEPS[-1] and place.server.kind == "mysql":
        assert len(after) == people().height
        assert len(after[0]) == people().width
    else:
        assert after == before
    release.write(place.address, tmp_path / "c.json", table="visits_release", overwrite=True)
    assert place.tables() == ["visits", "visits_release"]


@pytest.mark.skipif(sys.platform == "win32", reason="a service file of libpq")
def test_the_password_may_come_from_a_file(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if place.server.kind == "mysql":
        pytest.skip("of PostgreSQL alone")
    monkeypatch.delenv("PGPASSWORD")
    word = tmp_path / "pgpass"
    word.write_text(f"127.0.0.1:{place.server.port}:test:shoal:{PASSWORD}\n")
    word.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(word))
    done = run(*place.words("--json"), cwd=tmp_path)
    assert done.facts["rows"] == 120
    comment = place.ask("select obj_description('visits_release'::regclass)")[0][0]
    assert comment == (tmp_path / PAPERS[0]).read_text()


@pytest.mark.parametrize("required", [False, True])
def test_a_server_that_must_be_there_and_is_not_fails_its_tests(
    required: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.servers.postgres_programs", lambda: None)
    monkeypatch.setenv("SHOAL_TEST_POSTGRESQL", "required" if required else "")
    ending = pytest.fail.Exception if required else pytest.skip.Exception
    with pytest.raises(ending, match="no PostgreSQL server can be had here"), postgres():
        pass
