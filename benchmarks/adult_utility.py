"""What can be computed from a release of Adult, k = 5: ours three ways, and other tools' beside them.

    python benchmarks/adult_utility.py [NAME=RELEASE.csv ...] [--docs]

Eight quasi-identifiers, salary-class sensitive, ARX's hierarchies where one is needed.  Other tools' releases are read
as ``shoal.compare`` reads them.  ``--docs`` puts the table into docs/moving.md too, between its two marks.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
from record import record, table

import shoal

ROOT = Path(__file__).parents[1]
ADULT = ROOT.parent / "shared" / "data" / "adult"
PAGE = ROOT / "docs" / "moving.md"
MARKS = ("<!-- adult: written by benchmarks/adult_utility.py -->", "<!-- adult: end -->")
SENSITIVE = "salary-class"


def main(given: list[str]) -> None:
    """Make, read, compare, put on record."""
    frame = pl.read_csv(ADULT / "adult.csv")
    quasi = [c for c in frame.columns if c != SENSITIVE]
    trees = {c: str(ADULT / "hierarchies" / f"adult_hierarchy_{c}.csv") for c in quasi}
    asked: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": [SENSITIVE], "k": 5, "effort": "fast", "seed": 1}
    releases: dict[str, Any] = {}
    seconds: dict[str, float] = {}
    for publish in ("ranges", "stars", "hierarchy"):
        clock = time.perf_counter()
        more = {"hierarchies": trees} if publish == "hierarchy" else {}
        releases[f"shoal, {publish}"] = shoal.anonymize(frame, publish=publish, **asked, **more)
        seconds[f"shoal, {publish}"] = time.perf_counter() - clock
    for pair in given:
        name, _, path = pair.partition("=")
        releases[name] = Path(path)
    found = shoal.compare(
        frame, releases, quasi_identifiers=quasi, sensitive=[SENSITIVE], hierarchies=trees, target=SENSITIVE
    )
    rows = [
        {
            "release": row["release"],
            "k": row["k"],
            "loss (NCP)": row["loss (NCP)"],
            "query error, median": row["query error, median"],
            "query error, p90": row["query error, p90"],
            "distance of marginals": row["distance of marginals"],
        }
        for row in found.table.iter_rows(named=True)
    ]
    notes = [
        "Query error: 400 random counts over two columns, from the release alone. Lower is better but for k.",
        *found.notes,
    ]
    record("Utility of releases of Adult, k = 5", "python benchmarks/adult_utility.py", rows, notes)
    if "--docs" in sys.argv:
        text = PAGE.read_text(encoding="utf-8")
        inside = f"{MARKS[0]}\n\n{table(rows)}\n\n{MARKS[1]}"
        PAGE.write_text(
            re.sub(f"(?s){re.escape(MARKS[0])}.*{re.escape(MARKS[1])}", lambda _: inside, text), encoding="utf-8"
        )


if __name__ == "__main__":
    main([word for word in sys.argv[1:] if "=" in word])
