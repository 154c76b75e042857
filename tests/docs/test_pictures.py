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
PAGES = ROOT / "docs" / "algorithms"


METHODS = {f"{problem}/{name}" for problem, methods in CATALOGUE.items() for name in methods}


def test_every_picture_stands_in_a_page_with_words_for_who_does_not_see_it() -> None:
    found = {
        (page.parent / path).resolve(): said
        for page in (ROOT / "docs").rglob("*.md")
        for said, path in re.findall(r"!\[([^]]*)\]\(([^)]*)\)", page.read_text(encoding="utf-8"))
    }
    assert set(found) == {path for path in FOLDER.rglob("*.*") if path.is_file()}
    assert all(len(said) > 20 for said in found.values())


def test_every_algorithm_has_a_page_with_its_idea_in_a_few_lines_and_its_own_picture() -> None:
    pages = {path.relative_to(PAGES).with_suffix("").as_posix(): path for path in PAGES.glob("*/*.md")}
    assert set(pages) == METHODS
    nav, listed = (ROOT / "mkdocs.yml").read_text(), (PAGES / "README.md").read_text()
    for name, path in pages.items():
        title, idea = path.read_text(encoding="utf-8").split("\n* **asked with**")[0].split("\n\n", 1)
        assert title.startswith(f"# `{path.stem}`")
        assert 1 <= len(idea.strip().splitlines()) <= 10
        assert f"(../../assets/pictures/{name}.svg)" in path.read_text(encoding="utf-8")
        assert f"algorithms/{name}.md\n" in nav
        assert f"({name}.md)" in listed


def test_links_between_pages_lead_somewhere() -> None:
    headings = {
        page: {slug(line) for line in re.findall(r"(?m)^#+ (.*)$", page.read_text(encoding="utf-8"))}
        for page in (ROOT / "docs").rglob("*.md")
    }
    for page in headings:
        for path, anchor in re.findall(r"\]\(([^):# ]*\.md)?(?:#([^) ]*))?\)", page.read_text(encoding="utf-8")):
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), (page, path)
            assert not anchor or target.suffix != ".md" or anchor in headings.get(target, {anchor}), (
                page,
                path,
                anchor,
            )


def slug(heading: str) -> str:
    """The anchor that the site gives a heading."""
    return re.sub(
        r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)).strip().lower()
    )


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.svg")), ids=lambda p: p.name)
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
    for name in ("labels.svg", "tiles.svg", "labels/fold.svg", "tiles/kd_tree.svg"):
        assert (tmp_path / name).read_text() == (FOLDER / name).read_text()
