"""A generated table with Connecticut's zip codes, published as connected regions beside other quasi-identifiers.

python benchmarks/regions_in_tables.py             efforts fast, balanced and 60 seconds: four to five minutes
python benchmarks/regions_in_tables.py fast        these efforts alone, by word or in seconds

The certificate's bound is one for groups that publish any connected sets of zip codes.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
import polars as pl
from record import record
from rules import DATA

import shoal
from shoal.engines.geography import read

K, ROWS, SECONDS, GOAL = 5, (2_000, 20_000), 60.0, 1.3
TREES = {"age": "intervals:5,10,20", "income": "intervals:10,20,40,80"}


def census_like(rows: int, ids: list[str], people: np.ndarray, seed: int = 1) -> pl.DataFrame:
    """Zip codes by their people; age, sex, race, and income in thousands, which rises with age and differs by zip."""
    rng = np.random.default_rng(seed)
    at = rng.choice(len(ids), rows, p=people / people.sum())
    level = rng.normal(0, 0.3, len(ids))
    age = np.clip(rng.gamma(4.0, 10.0, rows), 0, 90).astype(int)
    income = np.exp(3.6 + level[at] + 0.01 * np.minimum(age, 60) + rng.normal(0, 0.5, rows))
    return pl.DataFrame(
        {
            "zip": np.array(ids)[at],
            "age": age,
            "sex": rng.choice(["f", "m"], rows),
            "race": rng.choice(
                ["white", "black", "hispanic", "asian", "other"], rows, p=[0.66, 0.11, 0.16, 0.05, 0.02]
            ),
            "income": np.minimum(income, 200).astype(int),
        }
    )


def main() -> None:
    if not DATA.is_dir():
        print(f"skipped: the areas are not at {DATA}")
        return
    efforts = [float(w) if w[0].isdigit() else w for w in sys.argv[1:]] or ["fast", "balanced", SECONDS]
    given = read(DATA / "zip_graph_ct" / "nodes.csv", DATA / "zip_graph_ct" / "edges.csv")
    ids, people = list(given.ids), given.whole("population")
    lines: list[dict[str, Any]] = []
    for rows in ROWS:
        table = census_like(rows, ids, people)
        for effort in efforts:
            began = time.process_time(), time.perf_counter()
            release = shoal.anonymize(table, quasi_identifiers=table.columns, k=K, publish={"zip": "regions"},
                                      hierarchies=TREES, areas=given, effort=effort, seed=1)  # fmt: skip
            spent = time.process_time() - began[0], time.perf_counter() - began[1]
            proof = release.certificate
            lines.append(
                {
                    "rows": rows, "effort": effort, "NCP": proof.cost, "bound": proof.lower_bound,
                    "ratio": proof.ratio or "none", "processor": spent[0], "clock": spent[1],
                }
            )  # fmt: skip
    slow = [line["ratio"] for line in lines if line["effort"] == SECONDS]
    met = bool(slow) and all(ratio != "none" and float(ratio) <= GOAL for ratio in slow)
    record(
        "Regions in tables",
        "python benchmarks/regions_in_tables.py",
        lines,
        [
            f"Connecticut's 282 zip codes, k = {K}, a generated table of zip, age, sex, race and income. A region "
            "loses its share of the people. The bound is one for groups that publish any connected sets of zip codes.",
            f"Goal of the ratio in {SECONDS:g} seconds: {GOAL}; {'met' if met else 'not met'}.",
        ],
    )


if __name__ == "__main__":
    main()
