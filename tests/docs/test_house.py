"""Every step and every theorem that the guide places in the code leads to code that is there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "house.md"
THEOREMS = PAGE.with_name("theorems.md")
STEPS = sorted({s for page in (PAGE, THEOREMS) for s in re.findall(r"`(shoal[\w.]*:[\w.]+)`", page.read_text("utf-8"))})
KINDS = "Problem|Lemma|Theorem|Corollar|Propert|Algorithm"
STATEMENTS = {  # all that each paper numbers
    "Xiao, Yi, Tao 2010": "Problems 1, 2, Properties 1, 2, 3, 4, Lemmas 1, 2, 4.5, 5.8, 5.11, 5.12, 5.14, 5.17, 5.18, "
    "Corollaries 5.9, 5.10, 5.13, 5.15, Theorems 4.7, 5.16, 5.19, 5.20",
    "Blocki, Williams 2010": "Theorems 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 3.1, Lemmas 1, 2, 3, 4, 5, 6, 7, "
    "Corollaries 1, 2, Algorithm 1",
    "Aggarwal et al. 2006": "Lemmas 2.1, 3.1, 3.2, 3.4, 3.5, Theorems 2.2, 2.3, 3.3, 3.6",
    "Du, Eppstein, Goodrich, Lueker 2009": "Lemmas 1, 2, 8, Theorems 3, 4, 5, 6, 7, 9, 10, 11",
}


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


def listed(words: str) -> set[str]:
    """Statements that a text names: "Lemmas 1 and 2, Theorem 3" are three, "Properties 1 to 3" are three too."""
    found = set()
    for kind, numbers in re.findall(rf"({KINDS})\w* ((?:[\d.]+|, | and | to )+)", words):
        if " to " in numbers:
            first, last = map(int, re.findall(r"\d+", numbers))
            numbers = " ".join(map(str, range(first, last + 1)))
        found |= {f"{kind} {number}" for number in re.findall(r"\d+(?:\.\d+)?", numbers)}
    return found


@pytest.mark.parametrize("paper", STATEMENTS)
def test_every_numbered_statement_of_a_paper_has_a_place(paper: str) -> None:
    section = THEOREMS.read_text("utf-8").split(f"\n## {paper}")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("|")][2:]
    placed = {statement for row in rows for statement in listed(row[1])}
    assert listed(STATEMENTS[paper]) <= placed
    assert all(len(row) == 5 and row[3].strip() for row in rows)
