"""What the report and the grid of choices take: a report of 10^6 rows, explore over twelve points of Adult.

    python benchmarks/report.py

Processor seconds of the second of two reports, for the first may compile; the grid is run once, after the report, with
the goal held against processor seconds too.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
from main_job import QUASI, SENSITIVE
from record import record

import shoal
from shoal.experiments.l_diversity import census_like

ROWS, BYTES, SECONDS, GRID = 1_000_000, 3_000_000, 2.0, 60.0
ADULT = Path(__file__).parents[2] / "shared" / "data" / "adult" / "adult.csv"


def line(what: str, found: float, goal: float, unit: str) -> dict[str, Any]:
    """One row of the table."""
    return {"what": what, "found": found, "goal": goal, "unit": unit, "met": "yes" if found <= goal else "no"}


def reports(folder: Path, publish: str) -> list[dict[str, Any]]:
    """Size and seconds of the report of a release of a million rows."""
    columns = census_like(ROWS, seed=7)
    frame = pl.DataFrame({name: columns[name] for name in [*QUASI, *SENSITIVE]})
    release = shoal.anonymize(
        frame, quasi_identifiers=QUASI, sensitive=SENSITIVE, k=5, publish=publish, effort="fast", seed=1
    )
    release.write(folder / "release.parquet")
    for _ in range(2):
        clock = time.process_time()
        page = release.report(folder / "report.html")
        spent = time.process_time() - clock
    print(publish, spent, page.stat().st_size, file=sys.stderr, flush=True)
    named = f"report of {ROWS:,} rows as {publish}"
    return [
        line(named, page.stat().st_size, BYTES, "bytes"),
        line(f"{named}, its JSON", page.with_suffix(".json").stat().st_size, BYTES, "bytes"),
        line(named, round(spent, 2), SECONDS, "CPU s"),
    ]


def grid() -> list[dict[str, Any]]:
    """Seconds of twelve points of Adult."""
    frame = pl.read_csv(ADULT)
    quasi = [c for c in frame.columns if c != "occupation"]
    asked = {"quasi_identifiers": quasi, "sensitive": ["occupation"], "effort": "fast", "seed": 1}
    wall, clock = time.perf_counter(), time.process_time()
    found = shoal.explore(frame, asked, k=[3, 5, 11, 20], l=[1, 2, 3])
    spent, took = time.process_time() - clock, time.perf_counter() - wall
    print("grid", spent, took, file=sys.stderr, flush=True)
    points = len(found.points)
    assert points == 12
    return [
        line(f"explore, {points} points of Adult", round(spent, 1), GRID, "CPU s"),
        line(f"explore, {points} points of Adult", round(took, 1), GRID, "wall s"),
    ]


def main() -> None:
    """All of it, put on record."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [*reports(Path(folder), "stars"), *reports(Path(folder), "ranges"), *grid()]
    notes = [
        "Census-like rows, four quasi-identifiers, k = 5, fast; the report's seconds are those after the release was "
        "made and written, its loss by every measure among them.",
        "Adult, eight quasi-identifiers, occupation sensitive, stars, k of 3, 5, 11, 20 with l of 1, 2, 3, fast.",
        f"Mean load of the machine in the last five minutes of it: {os.getloadavg()[1]:.0f} on {os.cpu_count()} cores; "
        "wall seconds count what else ran.",
    ]
    record("Reports and choices", "python benchmarks/report.py", rows, notes)


if __name__ == "__main__":
    main()
