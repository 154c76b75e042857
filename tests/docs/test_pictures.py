"""The guide's pictures: each stands in a page, each page's pictures are there, and the tool draws them again."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from shoal.problems.catalogue import CATALOGUE

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "assets" / "pictures"


def test_every_picture_stands_in_a_page_with_words_for_who_does_not_see_it() -> None:
    found = [
        m for page in (ROOT / "docs").glob("*.md") for m in re.findall(r"!\[([^]]*)\]\(([^)]*)\)", page.read_text())
    ]
    assert {ROOT / "docs" / path for _, path in found} == set(FOLDER.iterdir())
    assert all(len(said) > 20 for said, _ in found)


def test_every_algorithm_has_a_picture() -> None:
    titles = " ".join(
        title for path in FOLDER.glob("*.svg") for title in re.findall(r'font-weight="600">([^<]*)<', path.read_text())
    )
    drawn = set(re.findall(r"\w+", titles))
    assert {name for methods in CATALOGUE.values() for name in methods} - drawn == {"auto"}


def test_every_algorithm_has_its_idea_in_a_few_lines() -> None:
    text = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
    ideas = dict(re.findall(r"(?ms)^\* \*\*`(\w+)`\*\*: (.*?)(?=^\* |^#|\Z)", text))
    assert set(ideas) == {name for methods in CATALOGUE.values() for name in methods}
    assert all(len(said.strip().splitlines()) <= 10 for said in ideas.values())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.svg")), ids=lambda p: p.name)
def test_a_drawing_is_one_sheet_that_fetches_nothing(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    assert root[0].text
    assert not re.search(r"https?://|href|url\(", text.replace('xmlns="http://www.w3.org/2000/svg"', ""))
    assert len(text) < 60_000


def test_the_tool_draws_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["pictures.py", "labels", "tiles", "--out", str(tmp_path)])
    with pytest.raises(SystemExit):
        runpy.run_path(str(ROOT / "tools" / "pictures.py"), run_name="__main__")
    for name in ("labels.svg", "tiles.svg"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text()
