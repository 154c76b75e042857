"""Every Python block of the guide and the README runs, top to bottom, in a fresh namespace per page.

The first ten minutes and the tutorials run with their commands, in ``test_start``.

The example scripts run from end to end.

The notebook and its page are one: the page's blocks, which run with the other pages', are the notebook's cells.
"""

import ast
import io
import json
import re
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("how-to/*.md"))]
TUTORIALS = [DOCS / "start.md", *sorted(DOCS.glob("tutorials/*.md"))]


def blocks(page: Path) -> list[tuple[int, str]]:
    """(line, code) of every ```python block."""
    text = page.read_text(encoding="utf-8")
    return [(text[: m.start()].count("\n") + 2, m[1]) for m in re.finditer(r"(?ms)^```python\n(.*?)^```", text)]


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p) and p not in TUTORIALS], ids=lambda p: p.name)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": f"example_{page.stem}"}
    ran = 0
    for line, code in blocks(page):
        for statement in ast.parse("\n" * (line - 1) + code).body:
            with redirect_stdout(io.StringIO()) as shown:
                exec(compile(ast.Module([statement], []), str(page), "exec"), names)
            for told in comments(page, statement):
                seen = " ".join(shown.getvalue().split())
                assert seen in told or told.strip(". ") in seen, f"line {statement.lineno} shows {seen}, not {told}"
        ran += 1
    assert ran


def comments(page: Path, statement: ast.stmt) -> list[str]:
    """What the comments after ``print`` in a statement say that it shows: those with a number, a truth value, or a
    list."""
    lines = page.read_text(encoding="utf-8").splitlines()[statement.lineno - 1 : statement.end_lineno]
    found = [line.split("  # ", 1)[1] for line in lines if "print(" in line and "  # " in line]
    return [told for told in found if re.search(r"\d|True|False|\[", told)]


def test_no_page_with_examples_is_left_out() -> None:
    held = {p: p.read_text(encoding="utf-8") for p in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))}
    shown = {p: len(re.findall(r"(?m)^[ >]*```python", text)) for p, text in held.items() if "```python" in text}
    assert {p: len(blocks(p)) for p in (*PAGES, *TUTORIALS) if p in shown} == shown
    untried = {p.name for p, text in held.items() if re.search(r"(?m)^[ >]*```py$", text)}
    assert untried == {"postgres.md", "schedule.md"}  # they need a server, or Airflow and dbt


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS[1:]], ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    assert "FAIL" not in capsys.readouterr().out
    assert (tmp_path / "release.csv").exists()


NOTEBOOK = ROOT / "docs" / "notebook.ipynb"


def test_the_page_has_every_cell_and_the_notebook_what_each_showed() -> None:
    held = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert held["nbformat"] == 4
    code = [c for c in held["cells"] if c["cell_type"] == "code"]
    assert ["".join(c["source"]) for c in code] == [b.rstrip("\n") for _, b in blocks(ROOT / "docs" / "notebook.md")]
    page = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    assert all("".join(c["source"]).split("\n", 1)[-1] in page for c in held["cells"] if c["cell_type"] == "markdown")
    assert [c["execution_count"] for c in code] == [*range(1, len(code) + 1)], "run from the top, in order"
    assert all(c["outputs"] for c in code)
    assert not any(o["output_type"] == "error" for c in code for o in c["outputs"])


def test_no_path_of_a_machine_stands_in_it() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert not any(where in text for where in (str(Path.home()), "/tmp/", "/home/", "/Users/"))
