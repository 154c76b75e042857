"""Puts a benchmark's figures on record in RESULTS.md: one section per name, replaced when it is run again."""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("RESULTS.md")
HEAD = (
    "# Measured\n\nWritten by the benchmarks themselves; rerun a section with the command under its title.\n"
    "Where a figure falls short of its goal, the row says so.\n"
)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of equal keys as a Markdown table."""
    keys = list(rows[0])
    lines = ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
    lines += ["| " + " | ".join(_shown(row.get(k, "")) for k in keys) + " |" for row in rows]
    return "\n".join(lines)


def record(name: str, command: str, rows: Sequence[Mapping[str, Any]], notes: Iterable[str] = ()) -> None:
    """Print the table and replace section ``name`` of RESULTS.md.

    name     title of the section, unique
    command  the line that reproduces it, run from the project's root
    rows     one mapping per line, all with the same keys
    notes    sentences under the table: what the figures say, what fell short
    """
    found = []
    for package in ("numpy", "numba", "scipy", "polars", "highspy"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    made = f"{datetime.date.today()}, Python {platform.python_version()}, {', '.join(found)}, {os.cpu_count()} cores"
    body = [f"## {name}", "", f"`{command}`", "", made, "", table(rows), ""]
    body += [f"* {note}" for note in notes]
    section = "\n".join(body).rstrip() + "\n"
    print(section, file=sys.stdout)
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else HEAD
    parts = re.split(r"(?m)^(?=## )", text)
    kept = [p.rstrip() + "\n" for p in parts if not p.startswith(f"## {name}\n")]
    RESULTS.write_text("\n".join([*kept, section]), encoding="utf-8")
