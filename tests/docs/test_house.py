"""Every step and every theorem of the page on the house leads to code that is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "house.md"
STEPS = sorted(set(re.findall(r"`(shoal[\w.]*:[\w.]+)`", PAGE.read_text(encoding="utf-8"))))


def test_the_page_has_steps():
    assert len(STEPS) > 40


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_there(step):
    module, _, path = step.partition(":")
    found = import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    assert found is not None


def test_every_room_is_told():
    told = set(re.findall(r"^\| `([^|]+)` \|", PAGE.read_text(encoding="utf-8"), re.M))
    named = {name.strip("` ").split(".")[0] for line in told for name in line.split(",")}
    rooms = {
        p.stem for p in (PAGE.parents[1] / "shoal").iterdir() if not p.name.startswith("_") and p.suffix in ("", ".py")
    }
    assert rooms <= named | {"py"}, rooms - named


def test_a_file_that_is_named_is_there():
    named = re.findall(r"`((?:shoal|tests|tools|benchmarks)/[\w./]+|\w+\.py)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 3
    assert [name for name in named if not (PAGE.parents[1] / name).exists()] == []
