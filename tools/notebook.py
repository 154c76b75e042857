"""Writes docs/notebook.md, the page of the guide, from docs/notebook.ipynb and what its cells printed and drew.

    jupyter nbconvert --to notebook --execute --inplace docs/notebook.ipynb
    python tools/notebook.py

The cells write women.csv and its certificate beside the notebook; they go before a commit.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
PICTURE = "assets/pictures/notebook-explore.png"
HEAD = "[This page as a Jupyter notebook](notebook.ipynb), with its outputs.\n"


def page(notebook: dict[str, Any]) -> str:
    """The whole page: prose as it is, code and its text in blocks, one picture by its name."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [f"```text\n{said}\n```" for said in printed(cell)]
        if drawn(cell):
            parts.append(f"![loss against risk, a line for each way to publish]({PICTURE})")
    title, rest = "\n\n".join(parts).split("\n", 1)
    return f"{title}\n\n{HEAD}{rest}\n"


def printed(cell: dict[str, Any]) -> list[str]:
    """What a cell printed, and its last line's value as text."""
    told = ["".join(o["text"]) if "text" in o else "".join(o["data"].get("text/plain", "")) for o in cell["outputs"]]
    return [t.strip("\n") for t in told if t.strip() and not t.startswith("<")]


def drawn(cell: dict[str, Any]) -> bytes | None:
    """The picture that a cell ended with."""
    held = [o["data"]["image/png"] for o in cell["outputs"] if "image/png" in o.get("data", {})]
    return base64.b64decode(held[0]) if held else None


if __name__ == "__main__":
    read = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))
    (DOCS / "notebook.md").write_text(page(read), encoding="utf-8")
    for found in filter(None, map(drawn, (c for c in read["cells"] if c["cell_type"] == "code"))):
        (DOCS / PICTURE).write_bytes(found)
