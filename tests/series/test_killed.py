"""Killed at any step of writing, a series is as before or one part longer, and goes on.

The folder is copied before every step that writes, renames, removes or changes a mode inside it: a copy is what a
process that is killed there leaves behind.  A half-written file has the name of a temporary and is in the copies too.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import shoal
from tests.series.common import people, policy, seen

STEPS = {"open", "os.mkdir", "os.rename", "os.link", "os.chmod", "os.remove", "os.rmdir", "shutil.rmtree"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_watch: list[Callable[[str, tuple[object, ...]], None]] = []


def _met(event: str, args: tuple[object, ...]) -> None:
    if _watch and event in STEPS:
        _watch[-1](event, args)


sys.addaudithook(_met)  # stays, and does nothing without a watcher


@contextmanager
def copied(place: Path, into: Path) -> Iterator[list[Path]]:
    """Copies of a folder, one before each step that changes something in its parent, and one at the end."""
    copies: list[Path] = []

    def copy() -> None:
        held = _watch.pop()
        target = into / f"{len(copies):03d}"
        target.mkdir(parents=True)
        if place.exists():
            shutil.copytree(place, target / "s")
        copies.append(target / "s")
        _watch.append(held)

    def step(event: str, args: tuple[object, ...]) -> None:
        path = args[0]
        if event == "open" and not (isinstance(args[2], int) and args[2] & WRITES):
            return
        if isinstance(path, (str, os.PathLike)) and str(path).startswith(str(place.parent)):
            copy()

    _watch.append(step)
    try:
        yield copies
        copy()
    finally:
        _watch.clear()


def states(copies: list[Path]) -> list[Path]:
    """One copy of each content, temporaries left out."""
    return list({str(sorted(seen(copy).items())): copy for copy in reversed(copies) if copy.exists()}.values())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "home" / "s"


@pytest.mark.parametrize("mode", ["increment", "again", "views"])
def test_killed_while_a_part_is_added(place, tmp_path, mode):
    place.parent.mkdir()
    series = shoal.Series.start(place, policy(), mode=mode)
    if mode != "views":
        series.add(people(1), person="id")
    before = series.parts
    with copied(place, tmp_path / "copies") as copies:
        series.add(people(2), person="id")
    assert len(copies) > 12, "the steps were watched"
    lengths = set()
    for copy in states(copies):
        held = shoal.Series(copy)
        lengths.add(held.parts)
        assert held.verify().holds, held.verify()
        if held.parts == before:
            assert held.add(people(2), person="id").rows == 8
        elif mode == "increment":
            with pytest.raises(shoal.InputError, match="8 people"):
                held.add(people(2), person="id")
        if mode == "views":
            held.view(["age", "ill"])
        else:
            held.add(people(3), person="id")
        assert held.verify().holds
        assert held.parts == before + 2
    assert lengths == {before, before + 1}


def test_killed_while_a_view_is_added(place, tmp_path):
    place.parent.mkdir()
    series = shoal.Series.start(place, policy(), mode="views")
    series.add(people(1), person="id")
    with copied(place, tmp_path / "copies") as copies:
        series.view(["age", "ill"])
    found = states(copies)
    assert {shoal.Series(copy).parts for copy in found} == {1, 2}
    assert all(shoal.Series(copy).verify().holds for copy in found)


def test_killed_while_a_series_is_started(place, tmp_path):
    place.parent.mkdir()
    with copied(place, tmp_path / "copies") as copies:
        shoal.Series.start(place, policy())
    assert len(copies) > 5
    assert not copies[0].exists()
    assert all(shoal.Series(copy).parts == 0 for copy in copies if copy.exists())
