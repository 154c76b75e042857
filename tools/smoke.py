"""A short run of what is installed: every command and a frame, in an empty folder, without the sources or the tests.

Run it with the Python of an environment that has nothing but the wheel (and the extra demo).  It prints a line for each
step and exits 1 at the first that fails.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROWS = 300


def shoal(*words: str, status: int = 0) -> str:
    """Run a command in the working folder; its standard output, which must come with this exit status."""
    done = subprocess.run([sys.executable, "-m", "shoal", *words], capture_output=True, text=True, encoding="utf-8")
    if done.returncode != status:
        raise AssertionError(f"shoal {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def tables() -> None:
    """Tables that the steps read."""
    draw = random.Random(1)
    people = ["age,zip,sex,disease"]
    for _ in range(ROWS):
        zip_, sex = draw.choice(("01234", "01235", "09870")), draw.choice("fm")
        people.append(f"{draw.randint(20, 80)},{zip_},{sex},{draw.choice(('flu', 'gout', 'asthma'))}")
    Path("people.csv").write_text("\n".join(people) + "\n", encoding="utf-8")
    Path("zip.csv").write_text("01234;0123*;*\n01235;0123*;*\n09870;0987*;*\n", encoding="utf-8")
    points = ["lng,lat", *(f"{9 + draw.random()},{48 + draw.random()}" for _ in range(ROWS))]
    Path("points.csv").write_text("\n".join(points) + "\n", encoding="utf-8")
    Path("areas.csv").write_text("id,people\na,900\nb,4000\nc,2500\nd,700\n", encoding="utf-8")
    Path("pairs.csv").write_text("u,v\na,b\nb,c\nc,d\n", encoding="utf-8")
    Path("names.csv").write_text("name,count\nann,7\nbob,4\ncy,3\ndan,2\neve,9\n", encoding="utf-8")


def table() -> None:
    """A table from its policy to a verified release with a report."""
    shoal("init", "people.csv")
    asked = ("--quasi", "age,zip,sex", "--sensitive", "disease", "--k", "5", "--l", "2", "--effort", "fast")
    for way in ("stars", "ranges"):
        out = f"{way}.csv"
        said = shoal(
            "anonymize", "people.csv", *asked, "--publish", way, "-o", out, "--report", f"{way}.html", "--json"
        )
        assert json.loads(said)["smallest_group"] >= 5
        shoal("verify", out, f"{way}.certificate.json", "--original", "people.csv")
    shoal("anonymize", "people.csv", *asked, "--publish", "hierarchy", "--hierarchy", "zip=zip.csv", "-o", "h.csv")
    shoal("audit", "stars.csv", "--quasi", "age,zip,sex", "--k", "5")
    shoal("audit", "people.csv", "--quasi", "age,zip,sex", "--k", "5", status=1)
    shoal("anonymize", "people.csv", *asked[:4], "--k", "999", "-o", "none.csv", status=3)
    shoal("anonymize", "people.csv", *asked, "-o", "stars.csv", status=4)


def grid() -> None:
    """A grid of requests, and releases beside each other."""
    columns = ("--quasi", "age,zip,sex", "--sensitive", "disease")
    shoal("explore", "people.csv", *columns, "--k", "3,5", "-o", "explore.html")
    shoal("compare", "people.csv", "stars.csv", "ranges.csv", *columns)


def places() -> None:
    """Every problem besides tables."""
    shoal("tiles", "points.csv", "--x", "lng", "--y", "lat", "--k", "10", "-o", "tiles.csv", "--map", "tiles.html")
    shoal("verify", "tiles.csv", "tiles.certificate.json")
    words = ("--id", "id", "--weight", "people", "--k", "3000")
    shoal("regions", "areas.csv", "pairs.csv", *words, "-o", "regions.csv")
    shoal("labels", "names.csv", "--label", "name", "--count", "count", "--k", "8", "-o", "labels.csv")
    shoal("intervals", "people.csv", "--value", "age", "--k", "20", "-o", "ages.csv")
    shoal("gather", "points.csv", "--columns", "lng,lat", "--r", "20", "-o", "centers.csv")


def frame() -> None:
    """A frame in, the same kind out."""
    import polars as pl

    import shoal as package

    asked = {"quasi_identifiers": ["age", "zip", "sex"], "sensitive": ["disease"], "k": 5, "l": 2}
    people = pl.read_csv("people.csv", schema_overrides={"zip": pl.String})
    release = package.anonymize(people, **asked, publish="ranges", effort="fast")
    assert release.audit.passes
    assert release.audit.k >= 5
    assert release.table.height == ROWS
    assert release.numeric().height == ROWS


def elsewhere() -> None:
    """What runs is what was installed, not what lies in a folder beside."""
    import shoal as package

    assert "site-packages" in Path(str(package.__file__)).parts, package.__file__
    assert shoal("--version").strip().endswith(package.__version__)


def demo() -> None:
    """The command of the README."""
    shoal("demo")


STEPS: tuple[Callable[[], None], ...] = (elsewhere, tables, demo, table, grid, places, frame)


def main() -> None:
    """All steps in an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--here", action="store_true", help="also where shoal is not installed from a wheel")
    here = parser.parse_args().here
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        for step in STEPS[here:]:
            step()
            print(f"ok    {step.__name__:<10} {(step.__doc__ or '').splitlines()[0]}", flush=True)
        os.chdir(Path(folder).parent)
    print(f"python {sys.version.split()[0]} on {sys.platform}: {len(STEPS) - here} passed, 0 failed")


if __name__ == "__main__":
    main()
