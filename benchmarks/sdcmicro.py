"""Cells of Adult that k-anonymity hides: sdcMicro's local suppression and shoal's stars.

sdcMicro counts by wildcards: a hidden value matches every value. For shoal a star is a value of its own, which asks for
more. To bring sdcMicro to the same promise, it is called again on its own release, stars taken for values, while the
rows below k become fewer; the rows that stay below k are hidden whole.

python benchmarks/sdcmicro.py [ROWS]        Rscript with sdcMicro and data.table installed; R_LIBS names their folder
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from record import record

import shoal

DATA = Path(__file__).parents[1].parent / "shared" / "data"
LOCAL = """
suppressMessages({library(data.table); library(sdcMicro)})
asked <- commandArgs(TRUE)
k <- as.integer(asked[2])
table <- fread(asked[1], colClasses = "character")
seconds <- 0
below <- nrow(table) + 1
repeat {
  factors <- as.data.frame(lapply(table, factor))
  importance <- rank(sapply(factors, nlevels), ties.method = "first")
  taken <- system.time(
    hidden <- localSuppression(factors, k = k, keyVars = seq_along(factors), importance = importance)
  )
  table <- as.data.table(lapply(hidden$xAnon, function(x) {x <- as.character(x); x[is.na(x)] <- "*"; x}))
  seconds <- seconds + sum(taken[1:2])
  if (!file.exists(asked[3])) {
    fwrite(table, asked[3])
    first <- seconds
  }
  left <- table[, .N, by = c(names(table))][N < k, sum(N)]
  if (left == 0 || left >= below) break
  below <- left
}
fwrite(table, asked[4])
about <- packageDescription("sdcMicro")
version <- if (is.null(about$RemoteSha)) about$Version else paste("at commit", substr(about$RemoteSha, 1, 7))
cat(sprintf('{"first": %f, "last": %f, "version": "%s"}', first, seconds, version))
"""


def adult(rows: int) -> pl.DataFrame:
    """Adult's eight columns but for the occupation, ages by decade, with names that R takes."""
    frame = pl.read_csv(DATA / "adult/adult.csv", infer_schema=False).drop("occupation").head(rows)
    return frame.rename(lambda name: name.replace("-", "_")).with_columns(pl.col("age").str.slice(0, 1) + "0s")


def seen(table: pl.DataFrame, k: int) -> dict[str, Any]:
    """What a reader finds: hidden cells, rows in classes below k if a star is a value, k if it matches all."""
    audit = shoal.audit(table, quasi_identifiers=table.columns, missing="wildcard")
    assert audit.wildcards is not None
    size = table.select(pl.len().over(table.columns)).to_series()
    return {
        "hidden": sum(int((table[c] == "*").sum()) for c in table.columns), "rows below k": int((size < k).sum()),
        "k": audit.k, "k by wildcards": int(audit.wildcards["k"]),
    }  # fmt: skip


def starred(table: pl.DataFrame, k: int) -> pl.DataFrame:
    """The table with the rows of its small classes hidden whole, one class more if they are fewer than k."""
    size = table.select(pl.len().over(table.columns).alias("size"))["size"]
    limit = k
    while 0 < int((size < limit).sum()) < k:
        limit = int(size.filter(size >= limit).min()) + 1  # type: ignore[arg-type]
    return table.select(pl.when(size < limit).then(pl.lit("*")).otherwise(pl.col(c)).alias(c) for c in table.columns)


def local_suppression(frame: pl.DataFrame, k: int) -> tuple[list[tuple[pl.DataFrame, float]], str]:
    """sdcMicro's first and last release with the processor seconds up to each, and its version."""
    with TemporaryDirectory() as folder:
        source, first, last, script = (
            Path(folder) / name for name in ("adult.csv", "first.csv", "last.csv", "local.R")
        )
        frame.write_csv(source)
        script.write_text(LOCAL)
        said = subprocess.run(
            ["Rscript", script, source, str(k), first, last], capture_output=True, text=True, check=True
        )
        told = json.loads(said.stdout)
        found = [(pl.read_csv(path, infer_schema=False), told[path.stem]) for path in (first, last)]
        return found, told["version"]


if __name__ == "__main__":
    frame = adult(int(sys.argv[1]) if len(sys.argv) > 1 else 30_162)
    shoal.anonymize(frame.head(300), quasi_identifiers=frame.columns, k=3, publish="stars", seed=1)  # compiles
    rows: list[dict[str, Any]] = []
    for k in (3, 5):
        ((once, seconds), (repeated, all_seconds)), version = local_suppression(frame, k)
        for tool, table, taken in (
            ("sdcMicro", once, seconds),
            ("sdcMicro, rows below k hidden whole", starred(once, k), seconds),
            ("sdcMicro, repeated, rows below k hidden whole", starred(repeated, k), all_seconds),
        ):
            rows.append({"k asked": k, "tool": tool, "cpu seconds": taken, **seen(table, k), "at least": ""})
        for effort in ("fast", "balanced"):
            cpu = time.process_time()
            release = shoal.anonymize(
                frame, quasi_identifiers=frame.columns, k=k, publish="stars", effort=effort, seed=1
            )
            cpu = time.process_time() - cpu
            found = release.certificate
            rows.append(
                {"k asked": k, "tool": f"shoal, {effort}", "cpu seconds": cpu, **seen(release.table, k),
                 "at least": int(found.lower_bound)}
            )  # fmt: skip
        for row in rows[-5:]:
            print(row, flush=True)
    notes = [
        f"sdcMicro {version}, localSuppression: the columns with most values are hidden first, as its page says. "
        f"{frame.height:,} rows of Adult, {frame.width} columns, ages by decade.",
        "sdcMicro counts by wildcards: a hidden value matches every value. For shoal a star is a value: fewer than k "
        "rows show the combination of a row below k.",
        "at least: no release that keeps k in shoal's reading hides fewer cells.",
    ]
    record("Local suppression: sdcMicro", "R_LIBS=<folder of sdcMicro> python benchmarks/sdcmicro.py", rows, notes)
