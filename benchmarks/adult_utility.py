"""What can be computed from a release of Adult, k = 5: ours three ways, and other tools' beside them.

    python benchmarks/adult_utility.py --part PART.csv      the rows to make other releases of
    python benchmarks/adult_utility.py [NAME=RELEASE.csv ...] [--docs]

Eight quasi-identifiers, salary-class sensitive, ARX's hierarchies where one is needed.  Releases are made from two
thirds of the rows, drawn at random; a classifier trained on each is judged on the last third.  Other tools' releases
are read as ``shoal.compare`` reads them.  ``--docs`` puts the table into docs/moving.md too, between its two marks.
"""

from __future__ import annotations

import re
import sys
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


SHOWN = (
    "release", "k", "loss (NCP)", "query error, median", "query error, p90", "distance of marginals", "accuracy", "AUC",
)  # fmt: skip


def parts() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two thirds of Adult to make releases of, one third to judge on."""
    frame = pl.read_csv(ADULT / "adult.csv").sample(fraction=1.0, shuffle=True, seed=1)
    cut = 2 * frame.height // 3
    return frame[:cut], frame[cut:]


def main(given: list[str]) -> None:
    """Make, read, compare, put on record."""
    frame, held_out = parts()
    if "--part" in sys.argv:
        frame.write_csv(sys.argv[sys.argv.index("--part") + 1])
        return
    quasi = [c for c in frame.columns if c != SENSITIVE]
    trees = {c: str(ADULT / "hierarchies" / f"adult_hierarchy_{c}.csv") for c in quasi}
    asked: dict[str, Any] = {"quasi_identifiers": quasi, "sensitive": [SENSITIVE], "k": 5, "effort": "fast", "seed": 1}
    releases: dict[str, Any] = {"the table itself": frame}
    for publish in ("ranges", "stars", "hierarchy"):
        more = {"hierarchies": trees} if publish == "hierarchy" else {}
        releases[f"shoal, {publish}"] = shoal.anonymize(frame, publish=publish, **asked, **more)
    for pair in given:
        name, _, path = pair.partition("=")
        releases[name] = Path(path)
    found = shoal.compare(
        frame,
        releases,
        quasi_identifiers=quasi,
        sensitive=[SENSITIVE],
        hierarchies=trees,
        target=SENSITIVE,
        held_out=held_out,
    )
    rows = found.table.select(SHOWN).to_dicts()
    learned = next(iter(found.releases.values()))["utility"]["classifier"]
    notes = [
        f"{frame.height:,} rows; query error: 400 random counts over two columns, from the release alone.",
        f"Accuracy and AUC: {learned['method']} of {SENSITIVE} trained on the release, judged on {held_out.height:,} "
        f"rows that no release was made from; always naming the most frequent class has {learned['majority']:.4f}.",
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
