"""Public calls on tables that are hard for them: nearly unique columns, many columns, many values, many equal rows.

python benchmarks/odd_tables.py                      all of them, about ten minutes
python benchmarks/odd_tables.py --only "nearly unique" --rows 5000,20000     some, nothing is recorded

The floor reads the table, counts its different rows, and writes it, in the same process. Growth is the exponent of the
processor seconds from the smallest to the largest table.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal

ROWS = (5_000, 20_000, 80_000)
REQUEST: dict[str, Any] = {"k": 5, "effort": "fast", "seed": 1, "publish": "ranges"}


def nearly_unique(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.normal(size=n), "y": rng.normal(size=n), "who": [f"v{c}" for c in rng.integers(0, n, n)]}


def wide(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {f"c{j}": rng.integers(0, 2 + j % 60, n) for j in range(100)}


def many_values(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"city": [f"town {c}" for c in rng.zipf(1.3, n) % 5000], "income": rng.integers(0, 10**5, n)}


def equal_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"a": rng.zipf(2.5, n).clip(0, 30), "b": rng.zipf(2.5, n).clip(0, 30), "c": rng.choice(["x", "y"], n)}


TABLES: dict[str, tuple[Callable[[np.random.Generator, int], dict[str, Any]], str]] = {
    "nearly unique": (nearly_unique, "hilbert"),
    "100 columns": (wide, "three_phase"),
    "5,000 values": (many_values, "hilbert"),
    "equal rows": (equal_rows, "hilbert"),
}


def spent(call: Callable[[], Any]) -> float:
    """Processor seconds of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def copied(table: Path, quasi: list[str]) -> None:
    """The floor: what every call does at least."""
    frame = pl.read_csv(table)
    frame.group_by(quasi).len()
    frame.write_csv(table.with_name("copy.csv"))


def measured(kind: str, n: int, folder: Path) -> dict[str, float]:
    """Processor seconds of each call on one table."""
    columns, method = TABLES[kind]
    rng = np.random.default_rng(7)
    frame = pl.DataFrame(columns(rng, n)).with_columns(ill=pl.Series([f"d{c}" for c in rng.integers(0, 20, n)]))
    quasi, table, out = frame.columns[:-1], folder / "table.csv", folder / "release.csv"
    frame.write_csv(table)
    roles: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": ["ill"]}
    told = folder / "release.certificate.json"
    calls: dict[str, Callable[[], Any]] = {
        "floor": lambda: copied(table, quasi),
        "audit": lambda: shoal.audit(table, **roles),
        "anonymize": lambda: shoal.anonymize(table, method=method, **roles, **REQUEST).write(out),
        "verify": lambda: shoal.verify(out, told),
        "verify, original": lambda: shoal.verify(out, told, original=table),
        "compare": lambda: shoal.compare(table, {"release": out}, **roles),
        "attack": lambda: shoal.attack(out, table),
    }
    return {name: spent(call) for name, call in calls.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="tables, separated by commas")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    asked = parser.parse_args()
    sizes = [int(n) for n in asked.rows.split(",")]
    kinds = [kind for kind in TABLES if not asked.only or kind in asked.only]
    lines: list[dict[str, Any]] = []
    for kind in kinds:
        with tempfile.TemporaryDirectory() as made:
            measured(kind, 300, Path(made))  # compiles, or loads what was compiled
            found = [measured(kind, n, Path(made)) for n in sizes]
        for call in found[0]:
            cpu = [some[call] for some in found]
            grown = math.log(max(cpu[-1], 1e-3) / max(cpu[0], 1e-3)) / math.log(sizes[-1] / sizes[0])
            lines.append(
                {"table": kind, "call": call}
                | {f"{n:,} rows, CPU s": round(seconds, 2) for n, seconds in zip(sizes, cpu, strict=True)}
                | {"times the floor": round(cpu[-1] / found[-1]["floor"], 1), "growth": round(grown, 2)}
            )
            print(lines[-1], flush=True)
    notes = ["Ranges and sets, k = 5, effort fast, one quick method for each table; kernels compiled before."]
    if os.getloadavg()[0] > (os.cpu_count() or 1):
        notes.append("The machine was busy.")
    if kinds == [*TABLES] and sizes == [*ROWS]:
        record("Odd tables", "python benchmarks/odd_tables.py", lines, notes)


if __name__ == "__main__":
    main()
