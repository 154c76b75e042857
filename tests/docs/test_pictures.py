"""The guide's pictures: each stands in a page, each page's pictures are there, and the tool draws them again.

The tool that opens the pages says what it needs and installs nothing.
"""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import shoal
from shoal.model.histogram import Histogram
from shoal.problems.catalogue import CATALOGUE, names

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "assets" / "pictures"
PAGES = ROOT / "docs" / "algorithms"


METHODS = {f"{problem}/{name}" for problem in CATALOGUE for name in names(problem)}


def test_every_picture_stands_in_a_page_with_words_for_who_does_not_see_it() -> None:
    found = {
        (page.parent / path).resolve(): said
        for page in (ROOT / "docs").rglob("*.md")
        for said, path in re.findall(r"!\[([^]]*)\]\(([^)]*)\)", page.read_text(encoding="utf-8"))
    }
    assert set(found) == {path for path in FOLDER.rglob("*.*") if path.is_file()}
    assert all(len(said) > 20 for said in found.values())


SAID = ("call", "answer", "promise", "worst case", "source", "in shoal", "time")
FACTORS: dict[
    str, Any
] = {  # a promise as the pages say it: the certificate's factor, of an answer to the questions below
    "none": None,
    "none; the certificate states the bound by prices": None,
    "the least possible": 1,
    "the least possible, where every connected part is small enough": 1,
    "the least possible with one level a column, for at most 3,000,000 choices of levels": None,  # of its kind alone
    "that of every method it ran; the bound of the best of them": 3,  # of three_phase in three columns
    "never costs more than `cascade`": 3,
    "never costs more than `three_phase`": 3,
    "under frequency l, with k no larger, at most l times the fewest changed rows": 1,  # phase one sufficed
    "that of `three_phase`; d times it in stars": 3,
    "at most 3k - 3 times the least, for every recoding": 3,
    "at most (2 - 1/k)(1 + 1/2 + ... + 1/k) times the least": 1.5 * 1.5,
    "at most three times the least": 3,
    "that of `fold`": 3,
    "at most 5/2 times the least": 2.5,
    "at most (1 + epsilon)(least + k)": 1.5,
    "at most 1 + epsilon times the least, with groups of (1 - epsilon) k": 1.5,
    "heaviest region below 1 + d times the least possible, d the largest degree of the spanning tree": 3,
    "that of `tree` for the heaviest region if the answer keeps it, as the certificate states": 3,
    "as `search`; the certificate states what is proved for this map": 3,
    "largest tile at most 5 times the least possible": 5,
    "largest tile at most 5 times the least possible; "
    "the least possible where places of weight 1 share no x, or no y": 5,
    "the best of all straight cuts; largest tile at most 5 times the least possible": 5,
    "that of `disjoint`": 3,
    "at most 3 times the least radius, 4 with centers anywhere": 3,
    "at most 2 times the least radius": 2,
    "at most 4 times the least radius": 4,
    "at most 5 times the least radius at points, 6 anywhere": 5,
    "the fewest changed rows possible; if the effort ends first, that of `three_phase`, with the bound so far": 1,
    "at most 3 times the least": 3,
    "at most 4 times the least": 4,
    "at most 36 times the least": 36,
}


def test_every_algorithm_has_a_page_with_its_argument_and_its_own_picture() -> None:
    pages = {path.relative_to(PAGES).with_suffix("").as_posix(): path for path in PAGES.glob("*/*.md")}
    assert set(pages) == METHODS
    nav, listed = (ROOT / "mkdocs.yml").read_text(), (PAGES / "README.md").read_text()
    for name, path in pages.items():
        text = path.read_text(encoding="utf-8")
        title, idea = text.split("\n* **call**")[0].split("\n\n", 1)
        assert title.startswith(f"# `{path.stem}`")
        assert 5 <= len(idea.strip().splitlines()) <= 12, name
        assert len(idea.split()) >= 110, name
        assert tuple(re.findall(r"(?m)^\* \*\*([^*]*)\*\*: ", text)) == SAID, name
        assert all(len(words.split()) >= 2 for words in re.findall(r"(?m)^\* \*\*(?!promise)[^*]*\*\*: (.*)$", text)), (
            name
        )
        assert f"(../../assets/pictures/{name}.svg)" in text
        assert f"algorithms/{name}.md\n" in nav
        assert f"| [`{path.stem}`]({name}.md) | {promised(name)} |" in listed


def promised(name: str) -> str:
    """What an algorithm's page says that it promises."""
    text = " ".join((PAGES / f"{name}.md").read_text(encoding="utf-8").split())
    return text.split("* **promise**: ")[1].split(" * **")[0]


TABLE = Histogram.from_rows(np.array([[i % 2, i % 3, i // 4] for i in range(8)]), np.arange(8) % 2)
PLACES = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.5), (4.0, 4.0), (5.0, 4.0), (4.0, 5.5)]


def answer(problem: str, method: str) -> Any:
    """A method's answer to a small question of its kind."""
    match problem:
        case "tables":
            rows = TABLE if method != "halving" else Histogram.from_rows(TABLE.quasi)
            asked = shoal.LDiversity(2) if method == "matching" else shoal.KAnonymity(2)
            return shoal.tables.group(rows, asked, method, effort="fast", seed=1)
        case "labels":
            return shoal.labels.cover([5, 4, 3, 3, 2, 1], 6, method=method, **EPSILON.get(method, {}))
        case "regions":
            path = [(0, 1), (1, 2), (2, 3)]
            return shoal.regions.merge(path, [3, 2, 2, 3], 4, objective="max", method=method, effort="fast", seed=1)
        case "tiles":
            return shoal.tiles.split([*PLACES, PLACES[0]], 2, method=method)
        case "gather":
            return shoal.gathering.gather(PLACES, 3, method=method)
    costs = {"setup_costs": 1.0} if method in ("tight", "procedure_one") else {"r": 3}
    return shoal.gathering.cellular(PLACES, method=method, seed=1, **costs)


EPSILON = {"scheme": {"epsilon": 0.5}, "bicriteria": {"epsilon": 0.5}}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_a_page_promises_what_the_certificate_does(name: str) -> None:
    assert answer(*name.split("/")).certificate.guarantee.factor == FACTORS[promised(name)]


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


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    tool = str(ROOT / "tools" / "pages.py")
    words = [sys.executable, tool, "--modules", str(tmp_path), "--out", str(tmp_path / "out")]
    env = {"PYTHONPATH": str(ROOT), "PATH": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2
    for needed in (
        "apt-get install chromium",
        "Node",
        "npm install playwright-core",
        "npm install axe-core",
        "Nothing was",
    ):
        assert needed in done.stderr
    assert list(tmp_path.iterdir()) == []
