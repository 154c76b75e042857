"""The chain that a receiver checks, the ledger that its owner checks, and what a kill leaves behind."""

import shutil

import polars as pl
import pytest

import shoal
from tests.commands import run
from tests.kept import resealed
from tests.series.common import frame, people, policy, seen


@pytest.fixture
def place(tmp_path):
    """A series of three parts."""
    series = shoal.Series.start(tmp_path / "s", policy())
    for month in (1, 2, 3):
        series.add(people(month), person="id")
    return tmp_path / "s"


def verdict(place):
    return shoal.Series.verify_folder(place)


def failing(place) -> set[str]:
    return {f.check for f in verdict(place).findings if not f.holds}


def test_a_receiver_checks_the_public_files_alone(place, tmp_path):
    shutil.copytree(place, tmp_path / "received", ignore=shutil.ignore_patterns("private"))
    found = verdict(tmp_path / "received")
    assert found.holds
    assert {f.check: f.how for f in found.findings}["persons"] == "stated"
    with pytest.raises(shoal.VerificationError, match="key of the series"):
        shoal.Series(tmp_path / "received")


def swapped(place):
    for old, new in (("0001", "x"), ("0002", "0001"), ("x", "0002")):
        (place / old).rename(place / new)


def changed(place, name, old, new):
    path = place / name
    path.write_text(path.read_text().replace(old, new, 1))


def flipped(place, name):
    path = place / "private" / "ledger-0003" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


HARM = {  # what is done, checks that fail for whoever verifies, what the owner is told
    "parts change places": (swapped, {"chain"}, "does not follow"),
    "a part left out": (lambda p: shutil.rmtree(p / "0002"), {"chain"}, "part 2 of the series is missing"),
    "the last part gone": (lambda p: shutil.rmtree(p / "0003"), {"ledger"}, "knows 3 parts and the folder holds 2"),
    "a head that names another part": (
        lambda p: changed(p, "private/head.json", '"number": 3', '"number": 2'), {"ledger"}, "head of the ledger"),
    "no head": (lambda p: (p / "private" / "head.json").unlink(), {"ledger"}, "head of the ledger"),
    "a changed row": (lambda p: changed(p, "0002/release.csv", "a\n", "b\n"), {"part 2"}, None),
    "a file beside a table": (lambda p: (p / "0002" / "report.html").write_text("<p>"), {"files"}, None),
    "a changed request": (
        lambda p: resealed(p / "series.json", policy=policy(k=1).describe()), {"chain", "request"}, None),
    "a lost ledger": (lambda p: shutil.rmtree(p / "private" / "ledger-0003"), {"ledger"}, "lost"),
    "changed persons": (lambda p: flipped(p, "persons.parquet"), {"ledger"}, "."),
    "a changed ledger": (lambda p: flipped(p, "ledger.json"), {"ledger"}, "."),
}  # fmt: skip


@pytest.mark.parametrize("name", HARM)
def test_harm_is_named_by_its_check_and_told_to_the_owner(place, name):
    harm, checks, words = HARM[name]
    harm(place)
    assert checks <= failing(place)
    if words is not None:
        with pytest.raises(shoal.ShoalError, match=words):
            shoal.Series(place)


@pytest.mark.parametrize("mode", ["increment", "again", "views"])
def test_nothing_follows_a_table_that_was_changed_or_lost(mode, tmp_path):
    place = tmp_path / "series"
    series = shoal.Series.start(place, policy(), mode=mode)
    series.add(people(1), person="id")
    release, before = place / "0001" / "release.csv", seen(place)
    content = release.read_bytes()

    def follow():
        now = shoal.Series(place)
        return now.view([*policy().quasi_identifiers, "ill"]) if mode == "views" else now.add(people(2), person="id")

    lines = content.splitlines(keepends=True)
    for other, words in [
        (None, "part 1 of the series lacks its table 'release.csv'"),
        (b"".join(lines[:-1]), "part 1, 0001/release.csv, was changed"),
        (content[:-2] + bytes([content[-2] ^ 1]) + content[-1:], "part 1, 0001/release.csv, was changed"),
    ]:
        release.unlink() if other is None else release.write_bytes(other)
        with pytest.raises(shoal.VerificationError, match=words):
            follow()
        release.write_bytes(content)
        assert seen(place) == before
    assert follow() is not None


@pytest.mark.parametrize(("mode", "engine"), [("increment", None), ("increment", "duckdb"), ("again", None)])
def test_the_name_of_its_folder_may_be_a_pattern(mode, engine, tmp_path):
    if engine is not None:
        pytest.importorskip(engine, reason="the DuckDB engine needs the package duckdb")
    here = tmp_path / "[z]"
    here.mkdir()
    (tmp_path / "z").mkdir()  # which the pattern fits
    waits = {"wait": 2, "wait_above": 0.4} if mode == "increment" else {}
    series = shoal.Series.start(here / "s", policy(publish="ranges"), mode=mode, **waits)
    lone = [("lone-0", "95", "7", "a"), ("lone-1", "94", "1", "b")]
    for month in range(3):
        rows = people(month if mode == "increment" else 1)
        rows = pl.concat([rows, frame(lone)]) if month and waits else rows
        rows.write_parquet(tmp_path / "t.parquet")
        series.add(tmp_path / "t.parquet", person="id", engine=engine)
    assert series.verify().holds


def test_an_older_private_folder_is_refused(place, tmp_path):
    shutil.copytree(place / "private", tmp_path / "kept")
    series = shoal.Series(place)
    series.add(people(4), person="id")
    series.add(people(5), person="id")
    shutil.rmtree(place / "private")
    shutil.copytree(tmp_path / "kept", place / "private")
    with pytest.raises(shoal.VerificationError, match="older than the series"):
        shoal.Series(place).add(people(6), person="id")
    assert "ledger" in failing(place)


def test_an_older_private_folder_is_refused_after_one_part_too(place, tmp_path):
    shutil.copytree(place / "private", tmp_path / "kept")
    shoal.Series(place).add(people(4), person="id")
    shutil.rmtree(place / "private")
    shutil.copytree(tmp_path / "kept", place / "private")
    with pytest.raises(shoal.VerificationError, match="lost"):
        shoal.Series(place)


def test_an_error_while_writing_leaves_the_series_as_it_was(place, monkeypatch):
    from shoal.engines import atomic

    before, give, done = seen(place), atomic._give_name, []

    def rename(temporary, target):
        if len(done) == 2 and str(target).endswith("head.json"):
            raise OSError(28, "No space left")
        give(temporary, target)
        done.append(target)

    monkeypatch.setattr(atomic, "_give_name", rename)
    with pytest.raises(OSError, match="no space"):
        shoal.Series(place).add(people(4), person="id")
    monkeypatch.undo()
    assert seen(place) == before


def test_two_processes_do_not_add_at_once(place):
    from shoal.publishing.series_folder import held

    with held(place), pytest.raises(shoal.InputError, match="another process"):
        shoal.Series(place).add(people(4), person="id")
    assert shoal.Series(place).add(people(4), person="id").rows == 8


def test_the_command_says_what_does_not_hold(place):
    shutil.rmtree(place / "0001")
    assert run("verify", place).returncode == 1
    assert run("verify", place / "0002").returncode == 2


def test_the_command_refuses_what_it_would_not_use(place):
    part = next((place / "0001").glob("*.csv"))
    for asked in (["--original", part], ["--prove", "fast"], ["--separator", ";"], [part]):
        run("verify", place, *asked).refused(2, "name the release of one part instead")
    assert run("verify", part).ok()


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"mode": "never"}, "mode"),
        ({"mode": "views", "wait": 2}, "wait"),
        ({"counterfeits": False}, "made-up"),
        ({"signatures": 2}, "signatures belong"),
        ({"mode": "again", "signatures": 0}, "whole number from 1"),
        ({"mode": "again", "signatures": True}, "whole number from 1"),
    ],
)
def test_what_no_mode_has_is_refused(tmp_path, asked, why):
    with pytest.raises(shoal.PolicyError, match=why):
        shoal.Series.start(tmp_path / "s", policy(), **asked)
    assert not (tmp_path / "s").exists()


def test_the_judge_sees_somebody_who_is_published_twice(place, monkeypatch):
    from shoal.publishing.series_folder import Ledger

    monkeypatch.setattr(Ledger, "known", lambda ledger, persons: persons.clear())
    shoal.Series(place).add(people(2), person="id")
    found = {f.check: f.found for f in verdict(place).findings if not f.holds}
    assert found == {"persons": "part 4: a person is published a second time"}


def test_a_folder_without_series_json_is_named_as_what_is_left_of_a_series(tmp_path):
    series = shoal.Series.start(tmp_path / "s", policy())
    series.add(people(1), person="id")
    (tmp_path / "s" / "series.json").unlink()
    said = "has parts of a series, but not 'series.json'"
    for call in (series.status, series.verify, lambda: series.add(people(2), person="id")):
        with pytest.raises(shoal.InputError, match=said):
            call()
    for words in (["verify", "s"], ["series", "status", "s"]):
        run(*words, cwd=tmp_path).refused(2, said)
    (tmp_path / "other").mkdir()
    run("series", "status", "other", cwd=tmp_path).refused(2, "'other' is no series")
