"""A real survey, published with hierarchies of its own and verified, with a page for the review board.

    python examples/survey.py [FOLDER]

Fair's survey of 1974 comes with the package statsmodels; nothing is downloaded.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import shoal
from shoal.engines.store import fair_survey, store


def main(folder: Path) -> None:
    """Write original, release, certificate and report into ``folder``."""
    source = folder / "survey.csv"
    store(fair_survey(), source)
    hierarchies = {
        "age": shoal.Hierarchy.intervals([10, 20]),
        "yrs_married": shoal.Hierarchy.intervals([5, 10]),
        "children": "intervals",
        "educ": shoal.Hierarchy.intervals([4]),
    }
    release = shoal.anonymize(
        source,
        quasi_identifiers=["age", "yrs_married", "children", "educ", "occupation", "occupation_husb"],
        sensitive=["affairs", "religious"],
        privacy=[shoal.KAnonymity(8), shoal.DistinctLDiversity(2)],
        publish="hierarchy",
        hierarchies=hierarchies,
        effort="fast",
        seed=1974,
    )
    certificate = release.write(folder / "release.csv")
    release.report(folder / "report.html")
    verdict = shoal.verify(folder / "release.csv", certificate, original=source)
    for check, holds, found, _how in verdict.findings:
        print(f"{'ok  ' if holds else 'FAIL'} {check}: {found}")
    assert verdict.holds
    print({name: round(value, 4) for name, value in release.loss.items()})


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
