"""The main job, CSV to CSV with the bytes verified, against the floor: Polars reading, one group-by, writing.

python benchmarks/main_job.py [--rows 600000] [--repeat 5] [--growth] [--defaults 1000000] [--memory 10000000]
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import record

from shoal.experiments.l_diversity import census_like
from shoal.pipeline import prepare

QUASI = ["Age", "Gender", "Race", "MaritalStatus"]
SENSITIVE = ["Occupation"]
L = 6


def timed(work: Callable[[], Any], repeat: int) -> float:
    """Best of several runs, in seconds."""
    best = math.inf
    for _ in range(repeat):
        clock = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - clock)
    return best


def table(rows: int, folder: Path) -> Path:
    """A census-like CSV with four quasi-identifiers, one sensitive column and nothing else."""
    path = folder / f"census-{rows}.csv"
    columns = census_like(rows, seed=7)
    pl.DataFrame({name: columns[name] for name in [*QUASI, *SENSITIVE]}).write_csv(path)
    return path


def workers(rows: int, d: int, folder: Path) -> Path:
    """Census workers drawn with replacement, each of them once at least: d quasi-identifiers and Occupation."""
    import tables

    held = tables.read(tables.DATA / "census_income" / "census_income.csv.gz")
    names = [*tables.WORKER[:d], *SENSITIVE]
    frame = pl.DataFrame({n: held[n] for n in {*names, "Age"}})
    frame = frame.filter((pl.col("Age").cast(pl.Int64) >= 16) & (pl.col("Occupation") != "0")).select(names)
    more = np.random.default_rng(2).integers(0, frame.height, max(rows - frame.height, 0))
    drawn = np.random.default_rng(1).permutation(np.concatenate([np.arange(frame.height), more]))
    path = folder / f"workers-{rows}-{d}.csv"
    frame[drawn[:rows]].write_csv(path)
    return path


def defaults(rows: int) -> None:
    """The default path at the two named efforts people use, four and seven quasi-identifiers."""
    import tables

    measured = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for d, effort, goal in ((4, "fast", 2.5), (7, "fast", 4.0), (4, "balanced", 8.0), (7, "balanced", 15.0)):
            asked: dict[str, Any] = {"quasi_identifiers": tables.WORKER[:d], "sensitive": SENSITIVE, "l": L, "seed": 1}
            prepare(workers(20_000, d, folder), effort=effort, **asked).write(folder / "warm.csv")
            path = workers(rows, d, folder)
            began, cpu = time.perf_counter(), time.process_time()
            release = prepare(path, effort=effort, **asked)
            release.write(folder / "out.csv")
            seconds, spent = time.perf_counter() - began, time.process_time() - cpu
            told = {step: round(lap, 2) for step, lap in release.seconds.items()}
            facts = {"cells": release._placement.expected.histogram.cells, "stars": release.facts.cost["stars"]}
            times = {"goal s": goal, "seconds": seconds, "cpu seconds": spent}
            measured.append({"columns": d, "effort": effort, **facts, **times, **told})
    record(
        f"Main job at default methods, {rows:,} rows",
        f"python benchmarks/main_job.py --defaults {rows}",
        measured,
        ["Census workers drawn with replacement, Occupation sensitive, l = 6, CSV to CSV, verification included."],
    )


def floor(path: Path, out: Path) -> None:
    """What nobody can do without: read, group by the same columns, write."""
    frame = pl.read_csv(path)
    frame.group_by([*QUASI, *SENSITIVE]).len()
    frame.write_csv(out)


def whole(path: Path, out: Path, method: str, effort: str) -> dict[str, float]:
    """The path of ``shoal anonymize``: read, solve, write, read back and judge."""
    release = prepare(path, quasi_identifiers=QUASI, sensitive=SENSITIVE, l=L, seed=1, method=method, effort=effort)
    release.write(out)
    return release.seconds


def public(rows: int, repeat: int) -> None:
    """What users call, on lines of which few repeat, beside its floor, each after the other."""
    import shoal

    columns = census_like(rows, seed=7)
    names = [*QUASI, "BirthPlace", "Education", *SENSITIVE]
    frame = pl.DataFrame({name: columns[name] for name in names})
    asked: dict[str, Any] = {"quasi_identifiers": names[:-1], "sensitive": SENSITIVE, "l": L, "seed": 1}
    with tempfile.TemporaryDirectory() as name:
        path, out = Path(name) / "people.csv", Path(name) / "release.csv"
        frame.write_csv(path)

        def least() -> None:
            held = pl.read_csv(path)
            held.group_by(names).len()
            held.write_csv(Path(name) / "floor.csv")

        measured = []
        for method in ("three_phase", "auto"):
            best: dict[str, Any] = {"seconds": math.inf}
            floors = []
            for turn in range(repeat + 1):
                floors.append(timed(least, 1))
                clock = time.perf_counter()
                release = shoal.anonymize(path, method=method, effort="fast", **asked)
                made = time.perf_counter() - clock
                release.write(out)
                seconds = time.perf_counter() - clock
                if turn and seconds < best["seconds"]:  # the first compiles
                    best = {
                        "seconds": seconds,
                        "anonymize s": made,
                        **{k: round(v, 3) for k, v in release.seconds.items()},
                    }
            floors = floors[1:]
            facts = {"path": f"{method}, fast", "floor s": min(floors), "ratio": best["seconds"] / min(floors)}
            measured.append(facts | best)
    record(
        f"The public call, {rows:,} rows, CSV to CSV",
        f"python benchmarks/main_job.py --public --rows {rows} --repeat {repeat}",
        measured,
        [
            f"shoal.anonymize(...).write(...), judged in memory and in bytes; {frame.n_unique():,} different lines, "
            f"six quasi-identifiers, Occupation sensitive, l = 6; best of {repeat}, floor and call in turn. Floor: "
            "Polars reads the same file, groups once, writes it back.",
            f"Goal: at most 3 times the floor with three_phase; reached {measured[0]['ratio']:.2f}.",
        ],
    )


def in_memory(frame: pl.DataFrame) -> float:
    """Seconds of the histogram and the three-phase algorithm alone."""
    asked = {"quasi_identifiers": QUASI, "sensitive": SENSITIVE, "l": L, "seed": 1}
    steps = prepare(frame, method="three_phase", **asked).seconds
    return steps["histogram"] + steps["solve"]


def one_size(rows: int, repeat: int, method: str = "three_phase") -> dict[str, Any]:
    """Seconds and peak memory of one size, in a process of its own."""
    code = f"""
import sys, json, resource, tempfile
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
import main_job as m
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    small = m.table(1000, folder)
    m.whole(small, folder / 'warm.csv', {method!r}, 'fast')
    path = m.table({rows}, folder)
    seconds = m.timed(lambda: m.whole(path, folder / 'out.csv', {method!r}, 'fast'), {repeat})
    least = m.timed(lambda: m.floor(path, folder / 'floor.csv'), {repeat})
print(json.dumps([seconds, least, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, least, peak = json.loads(done.stdout)
    return {"rows": rows, "seconds": seconds, "floor": least, "ratio": seconds / least, "peak GiB": peak}


def memory(rows: int) -> None:
    """Most memory of a process that reads, solves, writes and verifies, beside the table as Polars holds it."""
    measured = []
    with tempfile.TemporaryDirectory() as name:
        for d, method in ((4, "three_phase"), (4, "auto"), (7, "three_phase"), (7, "auto")):
            path = workers(rows, d, Path(name))
            held = pl.read_csv(path).estimated_size() / 2**30
            code = f"""
import sys, json, resource, threading, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import main_job as m, tables
own = [0]
def look():
    while True:
        status = open("/proc/self/status").read().split("RssAnon:")[1]
        own[0] = max(own[0], int(status.split()[0]))
        time.sleep(0.005)
threading.Thread(target=look, daemon=True).start()
asked = dict(quasi_identifiers=tables.WORKER[:{d}], sensitive=m.SENSITIVE, l=m.L, seed=1, effort="fast")
m.prepare({str(path)!r}, method={method!r}, **asked).write({str(Path(name) / "out.csv")!r})
print(json.dumps([own[0] / 2**20, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20]))
"""
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            peak, whole = json.loads(done.stdout)
            ratio = peak / held
            sizes = {"table GiB": held, "peak GiB": peak, "ratio": ratio, "with mapped files GiB": whole}
            goal = {"goal": 1.5, "met": "yes" if ratio <= 1.5 else "no"}
            measured.append({"columns": d + 1, "method": method, **sizes, **goal})
    record(
        f"Main job, memory at {rows:,} rows",
        f"python benchmarks/main_job.py --memory {rows}",
        measured,
        [
            "Census workers drawn with replacement, l = 6, CSV to CSV; the peak is of the memory that a process takes "
            "for itself, looked at every 5 ms, Python and its libraries included; beside it with the pages of the CSV, "
            "which Polars maps and the system may drop. The table is what Polars holds after reading the same file.",
        ],
    )


def main() -> None:
    """Measure and put on record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--growth", action="store_true", help="also 10^4 to 10^7 rows")
    parser.add_argument("--defaults", type=int, help="only the default methods, at so many rows")
    parser.add_argument("--memory", type=int, help="only the most memory, at so many rows")
    parser.add_argument("--public", action="store_true", help="only the public call, on lines that do not repeat")
    asked = parser.parse_args()
    if asked.public:
        public(asked.rows, asked.repeat)
        return
    if asked.memory:
        memory(asked.memory)
        return
    if asked.defaults:
        defaults(asked.defaults)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path, out = table(asked.rows, folder), folder / "release.csv"
        whole(table(1000, folder), folder / "warm.csv", "three_phase", "fast")
        least = timed(lambda: floor(path, folder / "floor.csv"), asked.repeat)
        rows = []
        for method, effort in (("three_phase", "fast"), ("auto", "fast")):
            whole(path, out, method, effort)
            seconds = timed(lambda m=method, e=effort: whole(path, out, m, e), asked.repeat)
            parts = whole(path, out, method, effort)
            shown = {k: round(v, 3) for k, v in parts.items()}
            rows.append(
                {"path": f"{method}, {effort}", "seconds": seconds, "floor": least, "ratio": seconds / least, **shown}
            )
        record(
            f"Main job, {asked.rows:,} rows, CSV to CSV",
            f"python benchmarks/main_job.py --rows {asked.rows}",
            rows,
            [
                "Four quasi-identifiers, Occupation sensitive, l = 6, verification of the bytes written included; best "
                f"of {asked.repeat}. Floor: Polars reads the same file, groups once, writes it back.",
                f"Goal: at most 2.5 times the floor with the three-phase algorithm; reached {rows[0]['ratio']:.2f}.",
            ],
        )
        frame = pl.read_csv(path)
        solve = min(in_memory(frame) for _ in range(asked.repeat * 2))
        grouped = timed(lambda: frame.group_by([*QUASI, *SENSITIVE]).len(), asked.repeat * 2)
        record(
            f"Histogram and TP in memory, {asked.rows:,} rows",
            f"python benchmarks/main_job.py --rows {asked.rows}",
            [{"histogram + TP s": solve, "group-by alone s": grouped, "ratio": solve / grouped}],
            ["Goal: at most 0.15 s, and at most 1.3 times Polars' group-by of the same columns."],
        )
    if asked.growth:
        rows = [one_size(n, 3 if n < 10**6 else 1) for n in (10**4, 10**5, 10**6, 10**7)]
        slope = math.log(rows[-1]["seconds"] / rows[1]["seconds"]) / math.log(rows[-1]["rows"] / rows[1]["rows"])
        record(
            "Main job, growth with rows",
            "python benchmarks/main_job.py --growth",
            rows,
            [f"Growth exponent from 10^5 to 10^7 rows: {slope:.2f} (goal at most 1.1); goal under 12 GiB at 10^7."],
        )


if __name__ == "__main__":
    main()
