"""Puts a benchmark's figures on record in RESULTS.md: one section per name, replaced when it is run again."""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba
import numpy as np

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


def _sum_of_smaller(values: Any) -> int:
    """A loop for the compiler; what it computes doesn't matter."""
    found = 0
    for i in range(len(values)):
        for j in range(i):
            if values[j] < values[i]:
                found += values[j]
    return found


def yardstick() -> str:
    """Processor seconds of fixed work without shoal: machines of one name differ by a factor of two and more."""
    values = np.random.default_rng(1).integers(0, 1_000_000, 3_000_000)
    numba.njit(lambda: 1)()  # loads the compiler

    def loops() -> None:
        sum(i & 7 for i in range(5_000_000))

    def compiled() -> None:
        for _ in range(5):
            numba.njit(_sum_of_smaller)(values[:2])

    spent = []
    for work in (loops, lambda: np.sort(values), compiled):
        before = time.process_time()
        work()
        spent.append(time.process_time() - before)
    python, sort, compiler = spent
    return f"fixed work on this machine: Python {python:.2f} s, sort {sort:.2f} s, compiler {compiler:.2f} s"


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
    made += f", {yardstick()}"
    body = [f"## {name}", "", f"`{command}`", "", made, "", table(rows), ""]
    body += [f"* {note}" for note in notes]
    section = "\n".join(body).rstrip() + "\n"
    print(section, file=sys.stdout)
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else HEAD
    parts = re.split(r"(?m)^(?=## )", text)
    kept = [p.rstrip() + "\n" for p in parts if not p.startswith(f"## {name}\n")]
    RESULTS.write_text("\n".join([*kept, section]), encoding="utf-8")
