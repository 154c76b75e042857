"""A Spark frame to a verified folder of parts, against Spark's own group-by and write of the same files.

python benchmarks/spark.py [--rows 1000000,10000000] [--master 'local-cluster[2,1,2048]'] [--carried]
                           [--judge engine]
python benchmarks/spark.py --shards 8 [--rows 1000000] [--master 'local-cluster[2,1,2048]']
PYSPARK_SUBMIT_ARGS='--driver-memory 8g pyspark-shell' python benchmarks/spark.py --shards 32 --rows 10000000

With --shards, ten columns whose rows are nearly all different: the shards are searched by the workers, beside one
process that searches them one after the other, and one that searches the table whole.

Needs pyspark and Java 17; SPARK_HOME is left unset, so that a local cluster starts executors of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from record import record
from scale import QUASI, SENSITIVE, L, parts
from shards import CODE
from shards import one as one_process

from shoal.pipeline import prepare

TABLE = CODE[: CODE.index("def run(")]
CARRIED = ["BirthPlace", "Education", "amount"]
CONF = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "8",
        "spark.driver.maxResultSize": "4g"}  # fmt: skip


def session(master: str) -> Any:
    """A session on executors that run this Python."""
    from pyspark.sql import SparkSession

    os.environ.pop("SPARK_HOME", None)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master)
    for name, value in CONF.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def floor(frame: Any, out: Path) -> float:
    """Seconds that Spark takes to group by the judged columns and to write the table back."""
    began = time.perf_counter()
    frame.groupBy(*QUASI, *SENSITIVE).count().toArrow()
    frame.write.mode("overwrite").parquet(out.as_uri())
    return time.perf_counter() - began


def whole(frame: Any, out: Path, carried: bool, judge: str) -> tuple[Any, float]:
    """A release written and verified, and its seconds."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    release = prepare(
        frame, quasi_identifiers=QUASI, sensitive=SENSITIVE, insensitive=CARRIED if carried else [], l=L, seed=1,
        method="three_phase", effort="fast", judge=judge,
    )  # fmt: skip
    release.write(out)
    return release, time.perf_counter() - began


def family() -> dict[int, tuple[str, int, float]]:
    """Processes below this one, and itself: what each is, its peak memory in bytes, its processor seconds."""
    found: dict[int, tuple[int, str, int, float]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
            after = (entry / "stat").read_text().rpartition(")")[2].split()
            command = (entry / "cmdline").read_bytes()
            lines = (entry / "status").read_text().splitlines()
            peak = 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
            kind = "executor" if b"CoarseGrainedExecutor" in command else "driver" if b"java" in command else "worker"
            seconds = (int(after[11]) + int(after[12])) / os.sysconf("SC_CLK_TCK")
            found[int(entry.name)] = int(after[1]), kind, peak, seconds
    mine = {os.getpid()}
    while more := {process for process, (parent, *_) in found.items() if parent in mine} - mine:
        mine |= more
    own = {process: found[process][1:] for process in mine if process in found}
    return {process: ("here" if process == os.getpid() else kind, *rest) for process, (kind, *rest) in own.items()}


class Watch:
    """What a family of processes takes while something is done."""

    def __enter__(self) -> Watch:
        self.seen, self.before, self.over = family(), family(), threading.Event()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self) -> None:
        while not self.over.wait(1):
            self.seen |= family()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.seen |= family()

    def processor(self) -> float:
        """Seconds, of all processes together."""
        return sum(held[2] - self.before.get(process, ("", 0, 0.0))[2] for process, held in self.seen.items())

    def peak(self, kind: str) -> float:
        """GiB of the largest process of a kind."""
        return max((held[1] for held in self.seen.values() if held[0] == kind), default=0) / 2**30


def unique(rows: int, shards: int, master: str) -> list[dict[str, Any]]:
    """A table of nearly unique rows: searched whole, in shards by one process, in shards by workers."""
    space: dict[str, Any] = {}
    exec(TABLE, space)  # the table of the benchmark of shards
    found = []
    for asked in (1, shards):
        one = one_process(rows, asked)
        kept = {name: one[name] for name in ("rows", "shards", "NCP", "bound", "seconds", "processor s")}
        found.append({"where": "one process", **kept, "peak GiB here": one["peak GiB"]})
    spark = session(master)
    with tempfile.TemporaryDirectory() as name:
        for n in (2000, rows):  # the first compiles, and starts the workers
            space["table"](n).write_parquet(Path(name) / f"{n}.parquet")
            frame = spark.read.parquet(f"{name}/{n}.parquet")
            asked_for = {"quasi_identifiers": frame.columns, "k": 5, "publish": "ranges", "effort": "fast", "seed": 1}
            with Watch() as watch:
                made = prepare(frame, shards=shards, **asked_for)
    spark.stop()
    told = made.certificate
    found.append({"where": master, "rows": rows, "shards": shards, "NCP": told.cost, "bound": told.lower_bound,
                  "seconds": made.seconds["solve"], "processor s": watch.processor(),
                  "peak GiB here": watch.peak("here"), "a worker": watch.peak("worker"),
                  "an executor": watch.peak("executor"), "driver": watch.peak("driver")})  # fmt: skip
    empty = dict.fromkeys(found[-1], "")
    return [{**empty, **row, "more than whole": f"{100 * (row['NCP'] / found[0]['NCP'] - 1):.1f} %"} for row in found]


def main() -> None:
    """Measure and put on record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--master", default="local-cluster[2,1,2048]")
    parser.add_argument("--carried", action="store_true", help="three columns without a role stream through")
    parser.add_argument("--judge", default="here", help="engine: the workers count what they wrote")
    parser.add_argument("--shards", type=int, default=0, help="nearly unique rows, searched by the workers")
    asked = parser.parse_args()
    if asked.shards:
        rows = [row for n in asked.rows.split(",") for row in unique(int(float(n)), asked.shards, asked.master)]
        record(
            f"Spark, {int(float(asked.rows.split(',')[-1])):,} nearly unique rows in {asked.shards} shards",
            f"python benchmarks/spark.py --shards {asked.shards} --rows {asked.rows} --master '{asked.master}'",
            rows,
            [
                "Seconds are the search's with the bound; processor seconds those of the whole call, of all processes; "
                "memory is the peak of the largest process of each kind.",
                "Goal at 10,000,000 rows: half the seconds of one process, 3 GiB each, at most 5 % more than whole.",
            ],
        )
        return
    spark = session(asked.master)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        small = spark.read.parquet(str(parts(2000, root / "small", asked.carried)))
        floor(small, root / "copy")
        whole(small, root / "out", asked.carried, asked.judge)
        for n in (int(float(n)) for n in asked.rows.split(",")):
            frame = spark.read.parquet(str(parts(n, root / f"in{n}", asked.carried)))
            before = floor(frame, root / "copy")
            release, seconds = whole(frame, root / "out", asked.carried, asked.judge)
            least = (before + floor(frame, root / "copy")) / 2
            laps = {step: round(lap, 2) for step, lap in release.seconds.items()}
            cells = release._placement.expected.histogram.cells
            rows.append({"rows": n, "cells": cells, "seconds": seconds, "floor s": least,
                         "ratio": seconds / least, **laps})  # fmt: skip
    spark.stop()
    there = asked.judge == "engine"
    words = (" --carried" if asked.carried else "") + (" --judge engine" if there else "")
    record(
        f"Spark, {asked.master}, {'three carried columns' if asked.carried else 'nothing carried along'}"
        + (", judged by the workers" if there else ""),
        f"python benchmarks/spark.py --rows {asked.rows} --master '{asked.master}'{words}",
        rows,
        [
            "Four quasi-identifiers, Occupation sensitive, l = 6, three_phase; verification of the parts included. "
            "Floor: Spark groups the same files by the same columns and writes them back, mean of before and after.",
            f"Goal: at most 2.5 times the floor; reached {rows[-1]['ratio']:.2f} at {rows[-1]['rows']:,} rows.",
        ],
    )


if __name__ == "__main__":
    main()
