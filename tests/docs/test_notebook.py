"""The notebook and its page are one: the page's blocks, which run with the other pages', are the notebook's cells."""

from __future__ import annotations

import json
from pathlib import Path

from tests.docs.test_examples import ROOT, blocks

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
