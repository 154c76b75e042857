"""Writes docs/notebook.md, the page of the guide, from docs/notebook.ipynb and what its cells printed and drew.

    jupyter nbconvert --to notebook --execute --inplace docs/notebook.ipynb
    python tools/notebook.py

The cells write women.csv and its certificate beside the notebook; they go before a commit.
"""

from __future__ import annotations

import base64
import html
import json
import re
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
        parts += printed(cell)
        if drawn(cell):
            parts.append(f"![loss against risk, a line for each way to publish]({PICTURE})")
    title, rest = "\n\n".join(parts).split("\n", 1)
    return f"{title}\n\n{HEAD}{rest}\n"


def printed(cell: dict[str, Any]) -> list[str]:
    """What a cell printed, and its last line's value: text in a block, and what shoal shows as a card as a table."""
    parts = []
    for output in cell["outputs"]:
        data = output.get("data", {})
        text = "".join(output.get("text", data.get("text/plain", "")))
        if text.startswith("<"):
            parts += [as_table("".join(data["text/html"]))] if "text/html" in data else []
        elif text.strip():
            stripped = text.strip("\n")
            parts.append(f"```text\n{stripped}\n```")
    return parts


def as_table(card: str) -> str:
    """A card as a table of Markdown: its title and its facts, or its own heading where it has one."""
    title = html.unescape(re.search("<caption[^>]*>(.*?)</caption>", card)[1])
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", card)]
    rows = [[html.unescape(text).replace("|", "\\|") for text in row] for row in rows]
    if len(rows[0]) == 2:
        rows = [[title, ""], *(row for row in rows if any(row))]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def tidy(notebook: dict[str, Any]) -> None:
    """Take out what another run would change: times, and the empty output of a progress bar."""
    for cell in notebook["cells"]:
        cell["metadata"].pop("execution", None)
        if "outputs" in cell:
            cell["outputs"] = [o for o in cell["outputs"] if any("".join(v) for v in o.get("data", {"": "x"}).values())]


def drawn(cell: dict[str, Any]) -> bytes | None:
    """The picture that a cell ended with."""
    held = [o["data"]["image/png"] for o in cell["outputs"] if "image/png" in o.get("data", {})]
    return base64.b64decode(held[0]) if held else None


if __name__ == "__main__":
    file = DOCS / "notebook.ipynb"
    read = json.loads(file.read_text(encoding="utf-8"))
    tidy(read)
    file.write_text(json.dumps(read, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (DOCS / "notebook.md").write_text(page(read), encoding="utf-8")
    for found in filter(None, map(drawn, (c for c in read["cells"] if c["cell_type"] == "code"))):
        (DOCS / PICTURE).write_bytes(found)
