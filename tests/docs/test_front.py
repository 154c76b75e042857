"""The README: short, with a picture that the code draws again, two commands, and figures that are on record."""

import re
from pathlib import Path

import pytest

from tools import front

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    assert len(TEXT.splitlines()) < 120
    targets = [t for t in re.findall(r"\]\(([^)#]+)", TEXT) if "://" not in t]
    assert len(targets) > 10
    assert not [t for t in targets if not (ROOT / t).exists()]


def test_its_two_commands_are_there() -> None:
    assert "python3 -m venv .venv && .venv/bin/pip install -e '.[demo]' && .venv/bin/shoal demo\n" in TEXT
    assert "pip install -e '.[test,duckdb]' && .venv/bin/python -m pytest -n 2 --dist loadfile\n" in TEXT


def test_its_picture_is_what_shoal_publishes() -> None:
    assert front.picture() == front.OUT.read_text(encoding="utf-8"), "run tools/front.py, and look at what it draws"
    assert f"]({front.OUT.relative_to(ROOT).as_posix()})" in TEXT
    assert "4 values hidden, the fewest possible, proved" in front.picture()


def rows() -> list[tuple[str, str]]:
    """(command, row) of the table beside other tools."""
    return [(m[1], m[0]) for m in re.finditer(r"(?m)^\|.*`python (benchmarks/[^`]+)` \|$", TEXT)]


@pytest.mark.parametrize(("command", "row"), rows(), ids=lambda v: v if v.startswith("b") else "")
def test_its_figures_are_on_record(command: str, row: str) -> None:
    """Each figure of losses, regions and seconds begins a figure of the section that the command writes."""
    whole = (ROOT / "benchmarks" / "RESULTS.md").read_text(encoding="utf-8")
    sections = [s for s in re.split(r"(?m)^## ", whole) if f"python {command}`" in s]
    assert sections
    known = [float(n.replace(",", "")) for s in sections for n in re.findall(r"\d[\d,]*\.?\d*", s)]
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", row.replace("0.2.1", ""))
    for figure in re.findall(r"\d+\.\d+(?!\.\d)|\b\d{3,}\b", plain):
        digits = len(figure.partition(".")[2])
        step = 10.0**-digits
        assert any(abs(value - float(figure)) < step for value in known), (figure, "is not in RESULTS.md")


def test_there_are_figures() -> None:
    assert len(rows()) == 5
