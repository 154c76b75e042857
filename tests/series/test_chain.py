"""The chain that a receiver checks, the ledger that its owner checks, and what a kill leaves behind."""

from __future__ import annotations

import json
import shutil

import pytest

import shoal
from shoal.judge.file import seal
from tests.commands import python, run
from tests.series.common import people, policy, seen


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


def test_parts_that_change_places_are_refused(place):
    (place / "0001").rename(place / "x")
    (place / "0002").rename(place / "0001")
    (place / "x").rename(place / "0002")
    assert "chain" in failing(place)
    with pytest.raises(shoal.VerificationError, match="does not follow"):
        shoal.Series(place)


def test_a_part_that_is_left_out_is_missed(place):
    shutil.rmtree(place / "0002")
    assert "chain" in failing(place)
    with pytest.raises(shoal.VerificationError, match="part 2 of the series is missing"):
        shoal.Series(place)
    (place / "0003").rename(place / "0002")  # and the gap closed
    assert "chain" in failing(place)


def test_a_last_part_that_is_taken_away_is_missed_by_the_owner(place):
    shutil.rmtree(place / "0003")
    with pytest.raises(shoal.VerificationError, match="knows 3 parts and the folder holds 2"):
        shoal.Series(place)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_part_forged_with_a_seal_of_its_own_breaks_the_chain_or_the_ledger(place, number):
    path = place / f"000{number}" / "release.certificate.json"
    content = json.loads(path.read_text())
    content["made_at"] = "2001-01-01T00:00:00+00:00"
    content["seal"] = seal(content)
    path.write_text(json.dumps(content))
    assert failing(place) & {"chain", "ledger"}
    with pytest.raises(shoal.VerificationError):
        shoal.Series(place)


def test_a_changed_row_is_seen(place):
    path = place / "0002" / "release.csv"
    path.write_text(path.read_text().replace("a\n", "b\n", 1))
    assert "part 2" in failing(place)


def test_another_series_takes_no_part_of_this_one(place, tmp_path):
    other = shoal.Series.start(tmp_path / "other", policy())
    other.add(people(1), person="id")
    shutil.rmtree(other.place / "0001")
    shutil.copytree(place / "0001", other.place / "0001")
    assert "chain" in failing(other.place)


def test_a_changed_request_is_seen(place):
    path = place / "series.json"
    content = json.loads(path.read_text())
    content["policy"]["privacy"][0]["k"] = 1
    content["seal"] = seal(content)
    path.write_text(json.dumps(content))
    assert {"chain", "request"} <= failing(place)


def test_a_lost_ledger_is_refused(place):
    shutil.rmtree(place / "private" / "ledger-0003")
    assert "ledger" in failing(place)
    with pytest.raises(shoal.VerificationError, match="lost"):
        shoal.Series(place)


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


@pytest.mark.parametrize("name", ["persons.parquet", "ledger.json"])
def test_a_changed_ledger_is_refused(place, name):
    path = place / "private" / "ledger-0003" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "ledger" in failing(place)
    with pytest.raises(shoal.ShoalError):
        shoal.Series(place)


KILLED = """
import os, sys
from pathlib import Path
import shoal
from shoal.engines import atomic
from tests.series.common import people
place, at = Path(sys.argv[1]), int(sys.argv[2])
series, give, done = shoal.Series(place), atomic._give_name, 0
def rename(temporary, target):
    global done
    if done == at:
        os._exit(9)
    give(temporary, target)
    done += 1
    if done == at == 3:
        os._exit(9)
atomic._give_name = rename
series.add(people(4), person="id")
os._exit(0)
"""


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_killed_between_two_renames_the_series_is_as_before_or_one_part_longer(place, at):
    before = seen(place)
    done = python("-c", KILLED, place, at)
    assert done.returncode == 9, done.said
    series = shoal.Series(place)
    assert series.parts == (3 if at < 2 else 4)
    public = {n: b for n, b in seen(place).items() if not n.startswith("private")}
    assert {n: b for n, b in public.items() if "0004" not in n} == {
        n: b for n, b in before.items() if not n.startswith("private")
    }
    assert series.verify().holds
    if at < 2:
        series.add(people(4), person="id")
    else:
        with pytest.raises(shoal.InputError, match="8 people"):
            series.add(people(4), person="id")
    assert series.add(people(5), person="id").rows == 8
    assert series.verify().holds
    assert series.parts == 5


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


@pytest.mark.parametrize(
    ("asked", "why"),
    [({"mode": "never"}, "mode"), ({"mode": "views", "wait": 2}, "wait"), ({"counterfeits": False}, "made-up")],
)
def test_what_no_mode_has_is_refused(tmp_path, asked, why):
    with pytest.raises(shoal.PolicyError, match=why):
        shoal.Series.start(tmp_path / "s", policy(), **asked)
    assert not (tmp_path / "s").exists()


def test_the_judge_sees_somebody_who_is_published_twice(place, monkeypatch):
    from shoal.publishing.series_folder import Ledger

    monkeypatch.setattr(Ledger, "known", lambda ledger, persons: 0)
    shoal.Series(place).add(people(2), person="id")
    found = {f.check: f.found for f in verdict(place).findings if not f.holds}
    assert found == {"persons": "part 4: a person is published a second time"}
