"""Tables larger than memory: a folder of Parquet parts to a verified folder of parts, against DuckDB on the same files.

python benchmarks/scale.py [--rows 10000,100000,1000000,10000000] [--memory 1GB] [--method three_phase] [--carried 6]

The floor is what nobody can do without: DuckDB groups the same files by the same columns and copies them, with the same
memory and threads, once before and once after; the mean of both counts, since others use the machine, too.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

from shoal.experiments.l_diversity import census_like

QUASI = ["Age", "Gender", "Race", "MaritalStatus"]
SENSITIVE = ["Occupation"]
CARRIED = ["BirthPlace", "Education", "amount", "score", "token", "note"]
L = 6
PART = 1_000_000

FLOOR = """
import sys, time, duckdb
folder, out, memory, columns = sys.argv[1:]
made = duckdb.connect(config={"memory_limit": memory, "threads": 2, "temp_directory": out + ".spill"})
files = f"read_parquet('{folder}/*.parquet')"
clock = time.perf_counter()
made.execute(f"select {columns}, count(*) from {files} group by all").fetchall()
grouped = time.perf_counter() - clock
made.execute(f"copy (from {files}) to '{out}' (format parquet)")
print(grouped, time.perf_counter() - clock)
"""

WHOLE = (
    f"QUASI, SENSITIVE, L = {QUASI!r}, {SENSITIVE!r}, {L}\n"
    """
import json, resource, sys, time
from pathlib import Path
from shoal.pipeline import prepare
folder, out, memory, method, carried, small = sys.argv[1:]
def run(source, target):
    clock = time.perf_counter()
    release = prepare(
        Path(source), engine="duckdb", memory=memory, threads=2, temporary=str(Path(target).parent),
        quasi_identifiers=QUASI, sensitive=SENSITIVE, insensitive=carried.split(",") if carried else [], l=L, seed=1,
        method=method, effort="fast",
    )
    release.write(target)
    return release, time.perf_counter() - clock
run(small, out + "-warm")
release, seconds = run(folder, out)
cells = release._placement.expected.histogram.cells
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, cells, release.seconds]))
"""
)


def texts(random: np.random.Generator, n: int, length: int) -> pl.Series:
    """Texts of so many letters at random."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz234567", np.uint8)
    drawn = np.ascontiguousarray(letters[random.integers(0, letters.size, (n, length))])
    return pl.Series(drawn.view(f"S{length}").ravel().tolist(), dtype=pl.Binary).cast(pl.String)


def parts(rows: int, folder: Path, carried: int) -> Path:
    """A folder of census-like parts, at most a million rows each; carried: with so many columns without a role.

    The fourth is a number at random, the fifth and the sixth are texts at random: all of them different.
    """
    folder.mkdir()
    for number, start in enumerate(range(0, rows, PART)):
        n = min(PART, rows - start)
        columns = census_like(n, seed=100 + number)
        frame = pl.DataFrame({name: columns[name] for name in [*QUASI, *SENSITIVE]})
        if carried:
            more = {name: columns[name] for name in CARRIED[:2]}
            frame = frame.with_columns(**{n: pl.Series(v) for n, v in more.items()}, amount=pl.arange(0, n) % 5000)
        if carried > len(CARRIED[:3]):
            random = np.random.default_rng(number)
            frame = frame.with_columns(
                score=pl.Series(random.random(n)), token=texts(random, n, 16), note=texts(random, n, 24)
            )
        frame.write_parquet(folder / f"part-{number:04d}.parquet")
    return folder


def ran(code: str, *words: str) -> str:
    """What a process of its own prints last."""
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.strip().splitlines()[-1]


def one_size(rows: int, memory: str, method: str, carried: int, where: str | None) -> dict[str, Any]:
    """Seconds, ratio and peak memory of one size."""
    with tempfile.TemporaryDirectory(dir=where) as name:
        root = Path(name)
        folder = parts(rows, root / "in", carried)
        small = parts(2000, root / "small", carried)
        kept = ",".join(CARRIED[:carried])
        floor = (FLOOR, str(folder), str(root / "copy.parquet"), memory, ",".join([*QUASI, *SENSITIVE]))
        before = [float(x) for x in ran(*floor).split()]
        told = json.loads(ran(WHOLE, str(folder), str(root / "out"), memory, method, kept, str(small)))
        after = [float(x) for x in ran(*floor).split()]
    seconds, peak, cells, laps = told
    least = (before[1] + after[1]) / 2
    return {
        "rows": rows,
        "cells": cells,
        "seconds": seconds,
        "group-by s": (before[0] + after[0]) / 2,
        "floor s": least,
        "ratio": seconds / least,
        "rows/s": int(rows / seconds),
        "peak GiB": peak,
        "allowed GiB": (1.3 * float(memory.removesuffix("GB")) + 0.4) * 1e9 / 2**30,
        **{name: round(lap, 2) for name, lap in laps.items()},
    }


def main() -> None:
    """Measure and put on record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="10000,100000,1000000,10000000")
    parser.add_argument("--memory", default="1GB", help="such as 1GB")
    parser.add_argument("--method", default="three_phase")
    parser.add_argument(
        "--carried", type=int, nargs="?", const=3, default=0, choices=(0, 3, 6),
        help="three columns without a role stream through, or six, two of them texts at random",
    )  # fmt: skip
    parser.add_argument("--temporary", help="folder with room for the files")
    asked = parser.parse_args()
    sizes = [int(float(n)) for n in asked.rows.split(",")]
    rows = [one_size(n, asked.memory, asked.method, asked.carried, asked.temporary) for n in sizes]
    notes = [
        "Four quasi-identifiers, Occupation sensitive, l = 6, two threads; verification of the parts written included. "
        "Floor: DuckDB groups the same files by the same columns and copies them, mean of before and after.",
        f"Goal: at most 3 times the floor; reached {rows[-1]['ratio']:.2f} at {rows[-1]['rows']:,} rows.",
    ]
    if len(rows) > 1 and rows[-1]["rows"] > 10**5:
        first = next(r for r in rows if r["rows"] >= 10**5 or r is rows[-2])
        slope = math.log(rows[-1]["seconds"] / first["seconds"]) / math.log(rows[-1]["rows"] / first["rows"])
        notes.append(f"Growth exponent from {first['rows']:,} to {rows[-1]['rows']:,} rows: {slope:.2f}.")
    what = {0: "nothing carried along", 3: "with three carried columns", 6: "with six, two of random text"}[
        asked.carried
    ]
    shown = f" --method {asked.method}" if asked.method != "three_phase" else ""
    record(
        f"Larger than memory, {what}, {asked.method}, --memory {asked.memory}, to {sizes[-1]:,} rows",
        f"python benchmarks/scale.py --rows {asked.rows} --memory {asked.memory}{shown}"
        + (f" --carried {asked.carried}" if asked.carried else ""),
        rows,
        notes,
    )


if __name__ == "__main__":
    main()
