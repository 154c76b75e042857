"""A release on executors that are processes of their own, one of them killed on the way: the rows that DuckDB writes.

python tools/spark_cluster.py [--rows 100000] [--kills 1] [--master 'local-cluster[2,1,1024]'] [--shards 8]

With --shards, executors are killed while they search the shards, and the workers judge what they write.

Needs pyspark and Java 17; SPARK_HOME is left unset.  Executors are found among the processes this one has started.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.pipeline import prepare

SECRET = b"sixteen bytes or more"


def executors() -> list[int]:
    """Processes below this one that run tasks of Spark."""
    parent: dict[int, int] = {}
    works = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if b"CoarseGrainedExecutorBackend" in (entry / "cmdline").read_bytes():
                    works.append(int(entry.name))
            except OSError:
                continue

    def below(process: int) -> bool:
        while process > 1:
            process = parent.get(process, 0)
            if process == os.getpid():
                return True
        return False

    return [w for w in works if below(w)]


def rows_in(folder: Path) -> Counter[tuple[str, ...]]:
    """Every row of a release, as text."""
    whole = pl.concat([pl.read_parquet(p) for p in sorted(folder.glob("*.parquet"))])
    return Counter(tuple(map(str, row)) for row in whole.rows())


def main() -> None:
    """Write twice, kill in between, compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--master", default="local-cluster[2,1,1024]")
    parser.add_argument("--shards", type=int, default=0)
    asked = parser.parse_args()
    os.environ.pop("SPARK_HOME", None)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(asked.master).config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.shuffle.partitions", "8").config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({name: rng.integers(0, 40, asked.rows) for name in "ab"})
    frame = frame.with_columns(s=pl.Series(rng.choice(list("pqrstu"), asked.rows)), row=pl.int_range(asked.rows))
    how = {"quasi_identifiers": ["a", "b"], "sensitive": ["s"], "insensitive": ["row"], "k": 40, "l": 4, "seed": 1}
    how |= {"effort": "fast", "publish": "ranges", "secret": SECRET, "shards": asked.shards or None}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "in").mkdir()
        for i, part in enumerate(frame.iter_slices(asked.rows // 8)):
            part.write_parquet(root / "in" / f"p{i}.parquet")
        killed: list[int] = []
        begun = threading.Event()

        def kill() -> None:
            begun.wait()
            for _ in range(asked.kills):
                time.sleep(1.0)
                for process in executors()[:1]:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)

        def told(what: str, _: float | None) -> None:
            if "on the workers" in what:
                begun.set()

        def made() -> Any:
            judge = "engine" if asked.shards else "here"
            return prepare(session.read.parquet(str(root / "in")), **how, judge=judge, progress=told)

        thread = threading.Thread(target=kill)
        release = None if asked.shards else made()
        clock = time.perf_counter()
        thread.start()
        if release is None:
            release = made()
        begun.set()
        record = release.write(root / "out")
        spent = time.perf_counter() - clock
        thread.join()
        split = int((np.bincount(release._placement.expected.partition.cell) > 1).sum())
        prepare(root / "in", engine="duckdb", **how).write(root / "other")
        same = rows_in(root / "out") == rows_in(root / "other")
        holds = shoal.verify(root / "out", record).holds
    session.stop()
    print(
        f"{asked.rows:,} rows on {asked.master}, {split} cells split, {len(killed)} executors killed in {spent:.1f} s"
    )
    print(f"verified: {holds}; the rows of DuckDB's release: {same}")
    raise SystemExit(not (same and holds and len(killed) == asked.kills))


if __name__ == "__main__":
    main()
