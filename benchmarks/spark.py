"""A Spark frame to a verified folder of parts, against Spark's own group-by and write of the same files.

python benchmarks/spark.py [--rows 1000000,10000000] [--master 'local-cluster[2,1,2048]'] [--carried]
                           [--judge engine]

Needs pyspark and Java 17; SPARK_HOME is left unset, so that a local cluster starts executors of its own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from record import record
from scale import QUASI, SENSITIVE, L, parts

from shoal.pipeline import prepare

CARRIED = ["BirthPlace", "Education", "amount"]
CONF = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "8"}


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


def main() -> None:
    """Measure and put on record."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="1000000,10000000")
    parser.add_argument("--master", default="local-cluster[2,1,2048]")
    parser.add_argument("--carried", action="store_true", help="three columns without a role stream through")
    parser.add_argument("--judge", default="here", help="engine: the workers count what they wrote")
    asked = parser.parse_args()
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
