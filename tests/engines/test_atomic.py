"""Faults at every open, write, sync and rename: the complete verified pair, or what was there before."""

import errno
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import shoal
from shoal.engines import atomic
from shoal.engines.atomic import Piece, check_place, clear_stale, publish_text, publish_together
from shoal.errors import ExistsError, InputError, VerificationError
from tests.commands import python

ROOT = Path(__file__).parents[2]
FRAME = pl.DataFrame({"q": ["a", "a", "b", "c"] * 5, "s": ["p", "q"] * 10})
ASKED: dict[str, Any] = {"quasi_identifiers": ["q"], "sensitive": ["s"], "k": 5, "effort": "fast"}


@pytest.fixture(scope="module")
def release() -> shoal.Release:
    return shoal.anonymize(FRAME, **ASKED)


def state(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir()}


class Fault:
    """Raises at the n-th call of one function of the system, and counts the calls."""

    def __init__(self, honest: Any, at: int, number: int) -> None:
        self.honest, self.at, self.number, self.calls = honest, at, number, 0

    def __call__(self, *given: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls == self.at:
            raise OSError(self.number, os.strerror(self.number))
        return self.honest(*given, **more)


PLACES = [
    "os.replace",
    "os.fsync",
    "os.link",
    "os.chmod",
    "tempfile.mkstemp",
    "builtins.open",
    "pathlib.Path.write_text",
]


def faults() -> Iterator[tuple[str, int]]:
    for place in PLACES:
        for at in (1, 2, 3, 4):
            yield place, at


@pytest.mark.parametrize("before", [False, True], ids=["new", "replaced"])
@pytest.mark.parametrize(("place", "at"), list(faults()))
def test_a_fault_leaves_a_verified_pair_or_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: shoal.Release, place: str, at: int, before: bool
) -> None:
    target = tmp_path / "r.csv"
    beside = tmp_path / "r.certificate.json"
    if before:
        target.write_text("old release")
        beside.write_text("old certificate")
    old = state(tmp_path)
    holder, name = place.rsplit(".", 1)
    owner: Any = {"os": os, "tempfile": atomic.tempfile, "builtins": __import__("builtins")}.get(holder, Path)
    number = errno.ENOSPC if at % 2 else errno.EACCES
    fault = Fault(getattr(owner, name), at, number)
    failed = None
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *a, **m: fault(*a, **m))
        try:
            release.write(target)
        except OSError as error:
            failed = error
    if failed is None:
        assert shoal.verify(target, beside).holds
        assert set(state(tmp_path)) == {"r.csv", "r.certificate.json", "r.record.json"}
    else:
        assert state(tmp_path) == old
        assert ".part" not in str(failed)


def test_every_fault_was_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: shoal.Release) -> None:
    """The places above are those a write passes: three renames, six syncs and more."""
    (tmp_path / "r.csv").write_text("old")
    seen = {}
    for name in ("replace", "fsync", "link", "chmod"):
        seen[name] = Fault(getattr(os, name), 0, 0)
        monkeypatch.setattr(os, name, seen[name])
    release.write(tmp_path / "r.csv")
    assert {name: fault.calls for name, fault in seen.items()} == {"replace": 3, "fsync": 6, "link": 1, "chmod": 3}


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", Fault(os.fsync, 1, errno.ENOSPC))
    with pytest.raises(OSError, match=r"no space left in .* for 'x.json', which is as it was"):
        publish_text(tmp_path / "x.json", "{}")
    assert state(tmp_path) == {}


KILLED = """
import os, signal, sys
import polars as pl, shoal
honest, calls = os.replace, 0
def replace(*given):
    global calls
    calls += 1
    if calls == AT:
        os.kill(os.getpid(), signal.SIGKILL)
    honest(*given)
os.replace = replace
frame = pl.DataFrame({"q": ["a", "a", "b", "c"] * 5, "s": ["p", "q"] * 10})
shoal.anonymize(frame, quasi_identifiers=["q"], sensitive=["s"], k=5, effort="fast").write("r.csv")
"""


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_kill_between_the_renames_is_recognized(tmp_path: Path, release: shoal.Release, at: int) -> None:
    other = shoal.anonymize(FRAME.head(12), **ASKED)
    beside = other.write(tmp_path / "r.csv")
    old = state(tmp_path)
    assert python("-c", KILLED.replace("AT", str(at)), cwd=tmp_path).returncode == -9
    later = (tmp_path / "r.csv").stat().st_mtime + 2  # the certificate states its time in whole seconds
    os.utime(tmp_path / "r.csv", (later, later))
    found = shoal.verify(tmp_path / "r.csv", beside)
    if at == 3:  # release and certificate are new, the record is of the release before
        assert found.holds
        assert not shoal.verify(tmp_path / "r.csv", beside, record=tmp_path / "r.record.json").holds
    elif at == 1:
        assert found.holds
        assert {n: b for n, b in state(tmp_path).items() if n in old} == old
    else:
        check, holds, said, _how = found.findings[0]
        assert (check, holds) == ("file", False)
        assert "or to another version of this release" in said
        assert "the certificate is the older" in said
    assert any(name.startswith(".shoal-") for name in state(tmp_path))
    release.write(tmp_path / "r.csv")
    assert set(state(tmp_path)) == {"r.csv", "r.certificate.json", "r.record.json"}, "temporaries of the dead stay"
    assert shoal.verify(tmp_path / "r.csv", beside).holds


def test_what_the_judge_says_names_the_file_and_no_temporary(tmp_path: Path) -> None:
    def judge(temporary: Path) -> None:
        raise VerificationError(f"{temporary.name!r} cannot be read back")

    with pytest.raises(VerificationError, match=r"^'x\.csv' cannot be read back$"):
        publish_together([Piece(tmp_path / "x.csv", lambda to: to.write_text("x"), judge)])
    assert state(tmp_path) == {}


def test_only_our_stale_temporaries_go(tmp_path: Path) -> None:
    host = atomic._host()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = {
        f".shoal-{dead.pid}-{host}-a.part.csv": False,  # its process is dead
        f".shoal-{dead.pid}-00000000-a.part.csv": True,  # of another machine, and young
        f".shoal-{os.getppid()}-{host}-b.part": True,  # its process lives
        f".shoal-{os.getpid()}-{host}-c.part.csv": True,
        ".shoal-abc.part.csv": True,
        ".shoal-notes.txt": True,
        "x.part.csv": True,
    }
    for name in names:
        (tmp_path / name).write_text("x")
    old = [".shoal-old.part.csv", f".shoal-{dead.pid}-00000000-o.part"]
    for name in old:
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (0, 0))
    os.utime(tmp_path / ".shoal-notes.txt", (0, 0))
    clear_stale(tmp_path)
    assert set(state(tmp_path)) == {name for name, stays in names.items() if stays}


def test_modes_and_links(tmp_path: Path) -> None:
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    umask = os.umask(0o022)
    try:
        new = tmp_path / "new.json"
        publish_text(new, "1")
        assert mode(new) == 0o644
        for kept in (0o600, 0o640, 0o444):
            new.chmod(kept)
            publish_text(new, "2")
            assert mode(new) == kept
        publish_text(tmp_path / "closed.json", "3", closed=0o077)
        assert mode(tmp_path / "closed.json") == 0o600
    finally:
        os.umask(umask)
    real, link = tmp_path / "real.json", tmp_path / "folder" / "link.json"
    link.parent.mkdir()
    real.write_text("old")
    link.symlink_to(real)
    publish_text(link, "through")
    assert link.is_symlink()
    assert real.read_text() == "through"
    round_trip = tmp_path / "round.json"
    round_trip.symlink_to(round_trip)
    with pytest.raises((InputError, OSError)):
        publish_text(round_trip, "x")


def test_an_interruption_between_renames_takes_all_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("old")
    honest, calls = os.replace, []

    def replace(*given: Any) -> None:
        calls.append(given)
        if len(calls) == 2:
            raise KeyboardInterrupt
        honest(*given)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        publish_together([Piece(one, lambda p: p.write_text("new")), Piece(two, lambda p: p.write_text("new"))])
    assert state(tmp_path) == {"one": b"old"}


def test_a_link_into_a_folder_that_is_gone_says_which(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "gone" / "x.csv")
    with pytest.raises(
        InputError, match=re.escape(f"there is no folder '{tmp_path / 'gone'}' to write 'link.csv' into")
    ):
        check_place(link)


def test_what_another_process_wrote_meanwhile_stays_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    table, proof = tmp_path / "release.csv", tmp_path / "release.certificate.json"

    def other_first(temporary: Path) -> None:
        publish_together([Piece(p, lambda to: to.write_text("the other's")) for p in (table, proof)])
        temporary.write_text("ours")

    with pytest.raises(ExistsError, match="was written by another process meanwhile"):
        publish_together([Piece(table, other_first), Piece(proof, lambda to: to.write_text("ours"))])
    assert state(tmp_path) == {table.name: b"the other's", proof.name: b"the other's"}
    with pytest.raises(ExistsError):  # one file of several is enough
        publish_together([
            Piece(table, lambda to: to.write_text("ours")),
            Piece(proof, lambda to: (publish_text(proof, "a third's"), to.write_text("ours"))),
        ])  # fmt: skip
    assert state(tmp_path) == {table.name: b"the other's", proof.name: b"a third's"}


def test_a_folder_that_another_process_filled_meanwhile_stays(tmp_path: Path) -> None:
    parts = tmp_path / "parts"

    def fill(folder: Path, text: str) -> None:
        (folder / "part-0.csv").write_text(text)

    def other_first(temporary: Path) -> None:
        publish_together([Piece(parts, lambda to: fill(to, "the other's"), folder=True)])
        fill(temporary, "ours")

    with pytest.raises(ExistsError):
        publish_together([Piece(parts, other_first, folder=True)])
    assert state(parts) == {"part-0.csv": b"the other's"}
    assert [p.name for p in tmp_path.iterdir()] == ["parts"]


@pytest.mark.skipif(sys.platform == "win32", reason="no folder can be locked there")
def test_names_are_given_by_one_process_after_another(tmp_path: Path) -> None:
    table, said = tmp_path / "release.csv", []

    def ours() -> None:
        try:
            publish_text(table, "ours")
        except ExistsError as error:
            said.append(error)

    with atomic._alone({tmp_path}):  # as another process does that has files ready
        writer = threading.Thread(target=ours)
        writer.start()
        writer.join(0.5)
        assert writer.is_alive(), "a name was given although another process gives names"
        (tmp_path / "other").write_text("the other's")
        (tmp_path / "other").rename(table)
    writer.join()
    assert len(said) == 1
    assert state(tmp_path) == {table.name: b"the other's"}


def test_a_private_file_is_never_given_to_who_put_one_of_its_name_there(tmp_path: Path, monkeypatch: Any) -> None:
    given: list[Path] = []
    monkeypatch.setattr(atomic, "give_owner", lambda path, _: given.append(path))
    for private in (True, False):
        place = tmp_path / f"{private}.json"
        place.write_text("planted")
        place.chmod(0o666)
        publish_together([Piece(place, lambda to: to.write_text("held"), private=private)])
        assert bool(given) != private
        assert stat.S_IMODE(place.stat().st_mode) == (0o600 if private else 0o666)


def test_a_policy_whose_comments_tell_of_the_table_is_its_owners_alone(tmp_path: Path) -> None:
    from tests.commands import run

    (tmp_path / "people.csv").write_text("age,ill\n" + "34,flu\n61,gout\n" * 20)
    run("init", tmp_path / "people.csv")
    made = tmp_path / "people.policy.toml"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert "remove them before you pass this file on" in made.read_text()
