"""Tables of Delta and Iceberg: the current version is read and nothing older, a release is one judged version."""

import datetime as dt
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines import lakes
from shoal.errors import ExistsError, InputError, MissingDependencyError, PolicyError, VerificationError
from tests.commands import run

ASKED: dict[str, Any] = {
    "quasi_identifiers": ["age", "zip"], "sensitive": ["ill"], "k": 3, "effort": "fast", "seed": 1,
    "secret": b"0123456789abcdef",
}  # fmt: skip
WORDS = ["--quasi", "age,zip", "--sensitive", "ill", "--effort", "fast", "--seed", "1", "--secret", "key"]


def frame(start: int = 0) -> pl.DataFrame:
    rows = [(30 + (start + i) % 4, f"0{i % 3}", "xyz"[(i + start) % 3]) for i in range(36)]
    return pl.DataFrame(rows, schema=["age", "zip", "ill"], orient="row")


class Place:
    """A kind of table: how the test writes one with its own package, and where a release goes."""

    kind: str

    def write(self, name: str, rows: pl.DataFrame, mode: str = "overwrite") -> str: ...  # type: ignore[empty-body]
    def target(self, name: str) -> str: ...  # type: ignore[empty-body]
    def rows(self, name: str) -> pl.DataFrame: ...  # type: ignore[empty-body]
    def versions(self, name: str) -> int: ...  # type: ignore[empty-body]


class Delta(Place):
    kind = "delta"

    def write(self, name: str, rows: pl.DataFrame, mode: str = "overwrite") -> str:
        import deltalake

        deltalake.write_deltalake(name, rows.to_arrow(), mode=mode)
        return name

    def target(self, name: str) -> str:
        return f"delta:{name}"

    def rows(self, name: str) -> pl.DataFrame:
        return pl.read_delta(name)

    def versions(self, name: str) -> int:
        import deltalake

        return deltalake.DeltaTable(name).version() + 1 if Path(name, "_delta_log").is_dir() else 0


class Iceberg(Place):
    kind = "iceberg"

    def __init__(self, folder: Path) -> None:
        from pyiceberg.catalog import load_catalog

        self.catalog = load_catalog("local")
        self.catalog.create_namespace_if_not_exists("ns")

    def write(self, name: str, rows: pl.DataFrame, mode: str = "overwrite") -> str:
        held = rows.to_arrow()
        table = self.catalog.create_table_if_not_exists(f"ns.{name}", schema=held.schema)
        table.append(held) if mode == "append" or not table.metadata.snapshots else table.overwrite(held)
        return table.location().removeprefix("file://")

    def target(self, name: str) -> str:
        return f"iceberg:local.ns.{name}"

    def rows(self, name: str) -> pl.DataFrame:
        found = pl.from_arrow(self.catalog.load_table(f"ns.{name}").scan().to_arrow())
        assert isinstance(found, pl.DataFrame)
        return found.cast({pl.String: pl.String})

    def versions(self, name: str) -> int:
        exists = self.catalog.table_exists(f"ns.{name}")
        return len(self.catalog.load_table(f"ns.{name}").metadata.snapshots) if exists else 0


@pytest.fixture(params=["delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key").write_bytes(ASKED["secret"])
    if request.param == "delta":
        pytest.importorskip("deltalake", reason="the extra delta is not installed")
        yield Delta()
    else:
        pytest.importorskip("pyiceberg", reason="the extra iceberg is not installed")
        pytest.importorskip("sqlalchemy", reason="the catalog of the test is a file of SQLite")
        monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__URI", f"sqlite:///{tmp_path}/catalog.db")
        monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__WAREHOUSE", f"file://{tmp_path}/warehouse")
        monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", _config())
        yield Iceberg(tmp_path)


def _config() -> Any:
    from pyiceberg.utils.config import Config

    return Config()


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.sort(one.columns).equals(other.sort(other.columns).select(one.columns))


def test_the_current_version_is_read_by_either_engine(place: Place) -> None:
    place.write("visits", frame(5))
    place.write("visits", frame())
    where = place.write("visits", frame(), "append")
    twice = pl.concat([frame(), frame()])
    for given in (where, place.target("visits")):
        found = shoal.anonymize(given, **ASKED)
        assert found.facts.rows == 72
        of_frame = shoal.anonymize(twice, **ASKED)
        assert same(pl.DataFrame(found.table.pl() if hasattr(found.table, "pl") else found.table), of_frame.table)


def test_a_writer_who_goes_on_changes_no_release(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The version that is current when the table is opened is judged and published whole, and nothing of a later one.

    Of one file it is in memory then; of two, rows are read again when they are written.
    """
    where, real = place.write("visits", frame()), lakes.current
    for versions in (1, 2):
        seen: list[lakes.Version] = []

        def current(asked: str | Path, seen: list[lakes.Version] = seen) -> lakes.Version:
            seen.append(real(asked))
            place.write("visits", frame(7), "append")  # between a look at the versions and a look at their files
            return seen[-1]

        monkeypatch.setattr(lakes, "current", current)
        release = shoal.anonymize(where, **ASKED)
        place.write("visits", frame(9))
        record = release.write(f"out{versions}.parquet")
        shoal.anonymize(pl.concat([frame()] * versions), **ASKED).write(f"expected{versions}.parquet")
        assert len(seen) == 1
        assert len(seen[0].files) == versions
        assert same(pl.read_parquet(f"out{versions}.parquet"), pl.read_parquet(f"expected{versions}.parquet"))
        assert shoal.verify(f"out{versions}.parquet", record).holds
        place.write("visits", frame())
        place.write("visits", frame(), "append")
    monkeypatch.setattr(lakes, "current", real)
    release, before = shoal.anonymize(where, **ASKED), sorted(Path().glob("*"))
    for file in real(where).files:
        file.unlink()  # as a vacuum does
    with pytest.raises(InputError, match="was taken away while it was read"):
        release.write("out.parquet")
    assert sorted(Path().glob("*")) == before


def test_a_release_is_one_version_judged_and_verified(place: Place) -> None:
    where = place.write("visits", frame())
    first = ("--max-composition", "0.5")  # of a job that runs every month
    facts = run("anonymize", where, *WORDS, "--k", "3", "-o", place.target("out"), *first, "--json").facts
    assert facts["output"] == place.target("out")
    assert place.rows("out").height == 36
    assert stat.S_IMODE(Path("out.record.json").stat().st_mode) == 0o600
    target = place.target("out")
    assert run("verify", target, "--original", where, "--record", "out.record.json").returncode == 0
    assert run("anonymize", where, *WORDS, "--k", "3", "-o", target).returncode == 4
    before = place.versions("out")
    again = ("anonymize", where, *WORDS, "--k", "6", "-o", target, "--force", "--max-composition", "1", "--json")
    told = run(*again).ok()
    assert "together with the earlier releases" in told.stderr
    assert place.versions("out") > before
    assert place.rows("out").height == 36
    verdict = shoal.verify(target, "out.certificate.json")
    assert verdict.holds
    assert verdict.audit is not None
    assert verdict.audit.k >= 6
    leftovers = [p.name for p in Path().rglob(".shoal-*")]
    assert leftovers == []
    place.write("out", frame())  # somebody else writes
    with pytest.raises(InputError, match="is not the release"):
        shoal.verify(target, "out.certificate.json")


def test_a_table_of_others_is_not_written_to(place: Place) -> None:
    place.write("visits", frame())
    release = shoal.anonymize(frame(), **ASKED)
    with pytest.raises(InputError, match="older versions stay readable"):
        release.write(place.target("visits"))
    assert same(place.rows("visits"), frame())
    release.write(place.target("own"))
    if place.kind == "iceberg":
        text = shoal.anonymize(frame().cast(pl.String), **ASKED, after=place.target("own"), force_composition=True)
        with pytest.raises(InputError, match="columns of other types"):
            text.write(place.target("own"))
    with pytest.raises(ExistsError):
        release.write(place.target("own"), overwrite=False)
    place.write("own", frame())
    with pytest.raises(InputError, match="older versions stay readable"):
        release.write(place.target("own"))


def test_a_further_version_is_a_further_release_of_the_same_people(place: Place) -> None:
    rows = pl.DataFrame(
        {"age": [20, 20, 21, 21, 22, 22, 23, 23], "zip": ["1"] * 8, "ill": list("xyyzzwwx")},
    )
    asked = {**ASKED, "k": 4, "l": 2, "publish": "ranges"}
    shifted = rows.with_columns(age=(pl.col("age") - 19) % 4 + 20)  # pairs of people meet in no other pair
    target = place.target("out")
    shoal.anonymize(rows, **asked).write(target)
    held, before = place.rows("out"), place.versions("out")
    new = shoal.anonymize(shifted, **asked)
    with pytest.raises(VerificationError, match="was not set against"):
        new.write(target)
    wanted = {"after": target, "max_composition": 0}
    with pytest.raises(VerificationError, match="breaks a promise"):
        shoal.anonymize(shifted, **asked, **wanted)
    shifted.write_csv("shifted.csv")
    words = ["shifted.csv", "--quasi", "age,zip", "--sensitive", "ill", "--k", "4", "--l", "2", "--publish", "ranges"]
    words += ["--effort", "fast", "-o", target, "--force", "--max-composition", "0"]
    run("anonymize", *words).refused(1, "breaks a promise")
    assert (same(place.rows("out"), held), place.versions("out")) == (True, before)
    assert run("anonymize", *words, "--force-composition").returncode == 0
    assert place.versions("out") > before
    last = shoal.anonymize(shifted, **asked, after=target, force_composition=True)
    assert len(last.facts.versions) == 2, "the older version counts as well"
    assert last.composition
    last.write(target)
    assert not same(held, place.rows("out"))
    with pytest.raises(VerificationError, match="was not set against"):
        last.write(target)  # the version that it made is one more
    with pytest.raises(InputError, match="no version yet"):
        shoal.anonymize(rows, **asked, after=place.target("none"))


def test_a_commit_that_fails_leaves_what_was_there(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    release = shoal.anonymize(frame(), **ASKED)
    kind = lakes._Delta if place.kind == "delta" else lakes._Iceberg

    def fails(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    whole = kind.commit
    monkeypatch.setattr(kind, "commit", fails)
    with pytest.raises(OSError, match="No space"):
        release.write(place.target("out"))
    assert place.versions("out") == 0
    assert not list(Path().rglob("*.parquet"))
    assert not list(Path().glob("out.*.json"))
    monkeypatch.setattr(kind, "commit", whole)
    release.write(place.target("out"))
    before, held = place.versions("out"), Path("out.certificate.json").read_bytes()
    release = shoal.anonymize(frame(), **ASKED, after=place.target("out"), force_composition=True)
    monkeypatch.setattr(kind, "commit", fails)
    with pytest.raises(OSError, match="No space"):
        release.write(place.target("out"))
    assert (place.versions("out"), Path("out.certificate.json").read_bytes()) == (before, held)
    assert shoal.verify(place.target("out")).holds
    assert len(list(Path().rglob("*.parquet"))) == 1


@pytest.mark.parametrize("made", [0, 1])
def test_a_full_disk_is_named_by_the_table(place: Place, made: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its file has a name in the folder of its own, and before it has one in the table."""
    release, whole, done = shoal.anonymize(frame(), **ASKED), os.replace, []

    def full(one: Any, other: Any) -> None:
        if Path(other).suffix == ".parquet":
            done.append(other)
            if len(done) > made:
                raise OSError(28, "No space left on device")
        whole(one, other)

    monkeypatch.setattr("shoal.engines.atomic.os.replace", full)
    with pytest.raises(OSError, match=r"no space left in '[^']*' for 'out', which is as it was") as told:
        release.write(place.target("out"))
    assert ".shoal" not in str(told.value)
    assert place.versions("out") == 0
    assert not list(Path().rglob("*.parquet"))


@pytest.mark.parametrize("moment", ["copied", "committed"])
def test_killed_while_it_commits_the_table_shows_judged_versions_alone(place: Place, moment: str) -> None:
    first = shoal.anonymize(frame(), **ASKED)
    first.write(place.target("out"))
    held, certificate = place.rows("out"), Path("out.certificate.json").read_bytes()
    frame(1).write_parquet("next.parquet")
    done = subprocess.run([sys.executable, "-c", KILLED, place.target("out"), moment], env=_with_path(), check=False)
    assert done.returncode == -signal.SIGKILL
    files = lakes.readable(place.target("out"))
    judged = Path("judged").read_text().split()
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    assert hashes[0] == hashlib.sha256(first_file(held, files)).hexdigest()
    assert hashes[1:] == ([] if moment == "copied" else judged)
    if moment == "copied":
        assert same(place.rows("out"), held)
        assert shoal.verify(place.target("out")).holds
    elif Path("out.certificate.json").read_bytes() == certificate:  # the older certificate is not this version's
        with pytest.raises(InputError, match="is not the release"):
            shoal.verify(place.target("out"))
    told = {"after": place.target("out"), "force_composition": True}
    shoal.anonymize(frame(2), **ASKED, **told).write(place.target("out"))
    assert shoal.verify(place.target("out")).holds
    assert not [p for p in Path().rglob(".shoal-*") if p.is_file()], "the next run takes away what the dead one left"


def first_file(held: pl.DataFrame, files: tuple[Path, ...]) -> bytes:
    assert same(pl.read_parquet(files[0]), held)
    return files[0].read_bytes()


KILLED = """
import os, signal, sys
import shoal
from shoal.engines import lakes
from shoal.publishing.tables import writing
target, moment = sys.argv[1:]
kind = lakes._Delta if target.startswith("delta") else lakes._Iceberg
commit = kind.commit

def killed(lake, file, rows, sha256):
    open("judged", "w").write(sha256)
    if moment == "committed":
        commit(lake, file, rows, sha256)
    os.kill(os.getpid(), signal.SIGKILL)

kind.commit = killed
asked = dict(quasi_identifiers=["age", "zip"], sensitive=["ill"], k=3, effort="fast", seed=1)
shoal.anonymize("next.parquet", **asked, after=target, force_composition=True).write(target)
"""


def _with_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_every_command_that_reads_a_table_reads_its_current_version(place: Place) -> None:
    place.write("visits", frame(5))
    place.write("visits", frame())
    source, out = place.target("visits"), place.target("out")
    run("anonymize", source, *WORDS, "--k", 3, "-o", out).ok()
    for known in (["--original", source], ["--register", source]):
        assert run("attack", out, *known, "--json").facts["rows"] == 36
    run("attack", source, "--quasi", "age,zip", "--with", out).ok()
    run("compare", source, out, "--quasi", "age,zip").ok()
    run("explore", source, "--quasi", "age,zip", "--k", "2,3", "--json").ok()
    recoder = ["--quasi", "age", "--sensitive", "ill", "--insensitive", "zip", "--hierarchy", "age=intervals:10"]
    run("fit", source, *recoder, "--k", 2, "-o", "recoder.toml").ok()
    assert run("apply", "recoder.toml", source, "-o", "applied.csv", "--json").facts["rows"] == 36


def test_what_reads_a_release_again_reads_its_current_version(place: Place) -> None:
    where, out = place.write("visits", frame()), place.target("out")
    release = shoal.anonymize(frame(), **ASKED, publish="ranges")
    release.write(out)
    page = run("report", out, "--json").facts["report"]
    assert Path(page).resolve() == Path("out.report.html").resolve()
    shown, now = shoal.written(out).figures(), release.public_figures()
    assert shown["written"] == {**now["written"], "rows": 36}
    assert shown["columns"] == now["columns"]
    assert same(shoal.decode(out).numeric(), release.numeric())
    for known in (None, "out.certificate.json"):
        assert shoal.prove(out, known, frame()).holds
        assert shoal.prove(out, known, where).holds
    place.write("out", frame())
    for again in (shoal.written, shoal.decode, lambda name: shoal.prove(name, None, frame())):
        with pytest.raises(InputError, match="is not the release"):
            again(out)
    run("report", out, "-o", "other.html").refused(2, "is not the release")
    Path("out.certificate.json").unlink()
    for again in (shoal.verify, shoal.written, shoal.decode):
        with pytest.raises(InputError, match=r"no certificate 'out\.certificate\.json'"):
            again(out)


@pytest.mark.parametrize("command", ["anonymize", "init", "audit"])
def test_a_catalog_that_nobody_described_is_one_sentence(command: str, place: Place) -> None:
    words = {"init": "", "audit": "--quasi age", "anonymize": "--quasi age --k 2 -o o.csv"}
    more = words[command].split()
    where = "iceberg:nobody.ns.visits" if place.kind == "iceberg" else "delta:nowhere"
    done = run(command, where, *more)
    assert done.returncode == 2, done.said
    assert ("finds no catalog 'nobody'" in done.stderr) == (place.kind == "iceberg"), done.said
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_policy_is_proposed_for_a_table(place: Place) -> None:
    where = place.write("visits", frame())
    done = run("init", where, "-o", "made.policy.toml")
    assert done.returncode == 0, done.said
    assert '"age",' in Path("made.policy.toml").read_text()


def test_a_run_whose_table_is_as_it_was_does_nothing(place: Place) -> None:
    if place.kind == "iceberg":
        done = run("anonymize", place.target("visits"), *WORDS, "--k", "3", "-o", "o.csv", "--if-changed")
        assert (done.returncode, "a catalog says which" in done.stderr) == (2, True)
        return
    where = place.write("visits", frame())
    words = ("anonymize", where, *WORDS, "--k", "3", "-o", place.target("out"), "--if-changed", "--json")
    for unchanged in (False, True):
        assert run(*words).facts["unchanged"] is unchanged
    place.write("visits", frame(1))
    assert run(*words).facts["unchanged"] is False
    assert place.versions("out") == 2


def test_what_parquet_files_do_not_tell_is_refused(place: Place) -> None:
    where = place.write("visits", frame())
    if place.kind == "iceberg":
        with place.catalog.load_table("ns.visits").update_schema() as change:  # type: ignore[attr-defined]
            change.rename_column("ill", "illness")
        with pytest.raises(InputError, match="named anew"):
            shoal.anonymize(where, **ASKED)
        with pytest.raises(PolicyError, match="CATALOG"):
            shoal.anonymize("iceberg:visits", **ASKED)
        with pytest.raises(InputError, match="not in its catalog"):
            shoal.anonymize(place.target("nothing"), **ASKED)
    else:
        for feature in ("deletionVectors", "columnMapping"):
            _asks(Path(where), feature)
            with pytest.raises(InputError, match=feature):
                shoal.anonymize(where, **ASKED)


def _asks(table: Path, feature: str) -> None:
    """Let a Delta table ask more of its readers, as other writers do."""
    log = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line and feature == "deletionVectors":
            asked = {"readerFeatures": [feature], "writerFeatures": [feature]}
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **asked}
        elif "protocol" in line:
            line["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "metaData" in line and feature == "columnMapping":
            held = json.loads(line["metaData"]["schemaString"])
            for i, column in enumerate(held["fields"]):
                own = {"delta.columnMapping.id": i + 1, "delta.columnMapping.physicalName": column["name"]}
                column["metadata"] = own
            line["metaData"]["schemaString"] = json.dumps(held)
            line["metaData"]["configuration"] = {
                "delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "3",
            }  # fmt: skip
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_an_odd_name_is_read_or_refused_by_name_and_written(place: Place) -> None:
    name = "größe in % `of` 'x'"
    rows = frame().rename({"age": name})
    asked = ASKED | {"quasi_identifiers": [name, "zip"]}
    shoal.anonymize(rows, **asked).write(place.target("out"))
    assert same(place.rows("out"), shoal.anonymize(rows, **asked).table)
    where = place.write("visits", rows)
    if place.kind == "iceberg":  # whose own writers name columns in files otherwise
        with pytest.raises(InputError, match=f"has the column {name!r}, whose name its files write otherwise"):
            shoal.anonymize(where, **asked)
    else:
        found = shoal.anonymize(where, **asked).table
        assert same(pl.DataFrame(found.pl() if hasattr(found, "pl") else found), shoal.anonymize(rows, **asked).table)


@pytest.mark.parametrize(
    ("column", "lakes_with_it"),
    [
        (pl.Series([dt.time(1, i % 3) for i in range(36)]), ()),
        (pl.Series([dt.timedelta(i % 3) for i in range(36)]), ()),
        (pl.Series([dt.datetime(2020, 1, 1 + i % 3) for i in range(36)], dtype=pl.Datetime("ns")), ()),
        (pl.Series([dt.datetime(2020, 1, 1 + i % 3) for i in range(36)]).dt.replace_time_zone("Europe/Berlin"),
         ("delta",)),
        (pl.Series([2**64 - 1 - i % 3 for i in range(36)], dtype=pl.UInt64), ("delta",)),
        (pl.Series([None] * 36), ("delta",)),
        (pl.Series([[i % 3] for i in range(36)]), ("delta", "iceberg")),
    ],
    ids=["time", "interval", "nanoseconds", "zone", "unsigned", "null", "list"],
)  # fmt: skip
def test_a_type_that_a_lake_lacks_is_refused_by_name(
    place: Place, tmp_path: Path, column: pl.Series, lakes_with_it: tuple[str, ...]
) -> None:
    release = shoal.anonymize(frame().with_columns(column.alias("odd")), **ASKED, insensitive=["odd"])
    before = {p.name for p in tmp_path.iterdir()} | {"warehouse"}
    if place.kind in lakes_with_it:
        assert shoal.verify(place.target("out"), release.write(place.target("out"))).holds
        return
    with pytest.raises(InputError, match=r"holds no column of type .* such as 'odd'; cast it to text"):
        release.write(place.target("out"))
    assert {p.name for p in tmp_path.iterdir()} <= before
    assert place.versions("out") == 0


def test_names_that_differ_by_case_alone_have_no_place_in_delta(tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="the extra delta is not installed")
    release = shoal.anonymize(frame().with_columns(Zip=pl.lit(1)), **ASKED, insensitive=["Zip"])
    with pytest.raises(InputError, match="differ by case alone; rename 'Zip'"):
        release.write(f"delta:{tmp_path}/out", tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == []


def test_columns_in_the_names_of_folders_are_columns(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")
    pytest.importorskip("duckdb")
    where = str(tmp_path / "visits")
    rows = frame().with_columns(zip="a b/" + pl.col("zip"))
    deltalake.write_deltalake(where, rows.to_arrow(), partition_by=["zip"])
    found = shoal.anonymize(where, **ASKED)
    assert same(found.table.pl(), shoal.anonymize(rows, **ASKED).table)


def test_a_table_without_its_package_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be read with all that older versions held and newer ones have deleted."""
    (tmp_path / "visits" / "_delta_log").mkdir(parents=True)
    frame().write_parquet(tmp_path / "visits" / "old.parquet")
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(MissingDependencyError, match="deltalake"):
        shoal.anonymize(tmp_path / "visits", **ASKED)
