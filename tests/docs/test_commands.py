"""The page of all commands is what the program says, its examples run, and the Tab key completes."""

import random
import runpy
import shlex
from pathlib import Path

import pytest

from shoal.cli import program
from shoal.cli.app import PAGES, sections
from tests.commands import run

ROOT = Path(__file__).parents[2]
SLOW = {"reproduce", "demo"}  # run by tests of their own


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples name."""
    place, drawn = tmp_path_factory.mktemp("examples"), random.Random(3)
    zips, ills = ("01234", "01235", "09870"), ("flu", "gout", "asthma")
    people = [(f"P{i}", 30 + drawn.randrange(6), zips[i % 3], ills[drawn.randrange(3)]) for i in range(60)]
    points = [(9 + drawn.random(), 48 + drawn.random()) for _ in range(40)]
    files = {
        "people.csv": ["name,age,zip,disease", *(",".join(map(str, row)) for row in people)],
        "population.csv": ["age,zip", *(f"{age},{code}" for _, age, code, _ in people * 3)],
        "age.csv": [f"{age};{age // 3 * 3} to {age // 3 * 3 + 2};*" for age in range(30, 36)],
        "areas.csv": ["id,people", *(f"{name},3000" for name in "abcd")],
        "pairs.csv": ["u,v", "a,b", "b,c", "c,d"],
        "points.csv": ["longitude,latitude", *(f"{x},{y}" for x, y in points)],
        "new-points.csv": ["longitude,latitude", *(f"{x},{y}" for x, y in points[:9])],
        "employers.csv": ["employer,people", "Mill,30", "Bank,40", "Inn,25", "School,60"],
    }
    for name, lines in files.items():
        (place / name).write_text("\n".join(lines) + "\n")
    return place


def test_the_pages_are_what_the_program_says():
    made = runpy.run_path(str(ROOT / "tools" / "commands.py"))
    for name, page in (("commands", made["page"]()), ("settings", made["settings"]())):
        assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == page, "run python tools/commands.py"


def test_every_command_and_option_is_explained():
    built = program().commands
    assert list(PAGES) == list(built)
    for name, command in built.items():
        found = sections(command, program().make_context("shoal", [name, "--help"], resilient_parsing=True))
        assert {option for option, _ in found["Options"]} == {"-h, --help"}, f"{name}: an option without a section"
        for rows in found.values():
            for option, text in rows:
                assert len(text.split()) >= 2, f"shoal {name} {option} says nothing"


def test_the_examples_run(folder):
    ran = 0
    for name, page in PAGES.items():
        for words in page.examples if name not in SLOW else ():
            assert words.split()[:2] == ["shoal", name]
            run(*shlex.split(words)[1:], cwd=folder).ok()
            ran += 1
    assert ran >= len(PAGES) - len(SLOW)


def test_the_help_of_a_command_shows_its_examples():
    for name, page in PAGES.items():
        said = run(name, "--help").ok().stdout
        assert all(example in said for example in page.examples)
    run().refused(2, "Begin with:", "shoal demo")


@pytest.mark.parametrize(
    ("typed", "wanted"), [("shoal an", "anonymize"), ("shoal anonymize --qu", "--quasi"), ("shoal tiles --ma", "--map")]
)
def test_the_tab_key_completes(typed, wanted, monkeypatch):
    monkeypatch.setenv("_SHOAL_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    _, said, _ = run().ok()
    assert wanted in said.split()
