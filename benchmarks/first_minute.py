"""The first call on a new machine: every command on a small table, with no kernel compiled yet, and again.

python benchmarks/first_minute.py
python benchmarks/first_minute.py --only demo --only "anonymize, fast"    nothing is recorded
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record, table

GOALS = {"demo": 10.0}
GOAL = 15.0
COMMANDS = {
    "demo": "demo -o shown",
    "anonymize, fast": "anonymize people.csv --quasi age,zip,sex --sensitive disease --k 5 --l 3 --effort fast",
    "anonymize": "anonymize people.csv --quasi age,zip,sex --sensitive disease --k 5 --l 3",
    "anonymize, ranges": "anonymize people.csv --quasi age,zip,sex --sensitive disease --alpha-k .5,5 --publish ranges",
    "labels": "labels labels.csv --label label --count count --k 50",
    "tiles": "tiles points.csv --x x --y y --k 10",
    "gather": "gather points.csv --columns x,y,z --r 10",
    "cellular": "cellular points.csv --columns x,y,z --r 10",
    "regions": "regions areas.csv borders.csv --weight population --k 500",
}


def inputs(folder: Path) -> None:
    """Tables of a few hundred lines."""
    random, n, side = np.random.default_rng(1), 600, 15
    people = {"age": random.integers(20, 70, n), "zip": random.integers(100, 140, n)}
    people |= {"sex": random.choice(["f", "m"], n), "disease": random.choice(list("abcdefgh"), n)}
    pl.DataFrame(people).write_csv(folder / "people.csv")
    pl.DataFrame({c: random.normal(size=n) for c in "xyz"}).write_csv(folder / "points.csv")
    labels = {"label": [f"v{i}" for i in range(120)], "count": random.integers(1, 30, 120)}
    pl.DataFrame(labels).write_csv(folder / "labels.csv")
    areas = [f"r{i}" for i in range(side * side)]
    population = random.integers(1, 100, len(areas))
    pl.DataFrame({"id": areas, "population": population}).write_csv(folder / "areas.csv")
    at = np.arange(len(areas)).reshape(side, side)
    beside = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    below = np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)
    pairs = np.concatenate([beside, below])
    borders = {"a": [areas[i] for i in pairs[:, 0]], "b": [areas[i] for i in pairs[:, 1]]}
    pl.DataFrame(borders).write_csv(folder / "borders.csv")


def seconds(command: str, folder: Path, cache: str) -> float:
    """Processor seconds of one command in a process of its own."""
    words = command.split()
    if words[0] != "demo":
        words += ["-o", "out.csv", "--force"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    here = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    own = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": here}
    own.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process translates every module
    subprocess.run(
        [sys.executable, "-m", "shoal", *words, *(["--force"] if words[0] == "demo" else [])],
        check=True, cwd=folder, capture_output=True, env=own,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], choices=list(COMMANDS), help="a command of the table")
    only = parser.parse_args().only
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        inputs(folder)
        for name, command in COMMANDS.items():
            if only and name not in only:
                continue
            with tempfile.TemporaryDirectory() as cache:
                first, second = (seconds(command, folder, cache) for _ in range(2))
            goal = GOALS.get(name, GOAL)
            lines.append({"command": name, "first call, CPU s": first, "second call, CPU s": second, "goal": goal,
                          "met": "yes" if first <= goal else "no"})  # fmt: skip
    note = "Processor seconds of a process with an empty cache of kernels, then again; tables of 120 to 600 lines."
    if only:
        print(table(lines))
    else:
        record("The first minute", "python benchmarks/first_minute.py", lines, [note])


if __name__ == "__main__":
    main()
