"""One column published as sets, at the default effort: how near the answers are proved, and the time they take.

python benchmarks/one_set.py
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import polars as pl
from record import record

import shoal

SIZES = (500, 2000, 5000)
MODELS: dict[str, dict[str, Any]] = {
    "k = 2": {"k": 2},
    "k = 5": {"k": 5},
    "k = 10": {"k": 10},
    "k = 5, l = 2": {"k": 5, "l": 2, "sensitive": ["disease"]},
}


def tables(n: int) -> dict[str, pl.DataFrame]:
    """Values that all differ, that occur twice in the mean, and whose shares fall as 1, 1/2, 1/3, ..."""
    rng = np.random.default_rng(5)
    falling = 1 / np.arange(1, n + 1)
    codes = {
        "all differ": rng.permutation(n),
        "twice in the mean": rng.integers(0, n // 2, n),
        "shares fall": rng.choice(n, n, p=falling / falling.sum()),
    }
    disease = rng.choice(["a", "b", "c", "d"], n, p=[0.4, 0.3, 0.2, 0.1])
    return {name: pl.DataFrame({"x": [f"v{c:05d}" for c in code], "disease": disease}) for name, code in codes.items()}


if __name__ == "__main__":
    shoal.anonymize(tables(60)["all differ"], quasi_identifiers=["x"], publish="ranges", **MODELS["k = 5, l = 2"])
    rows = []
    for n in SIZES:
        for values, frame in tables(n).items():
            for request, asked in MODELS.items():
                held = {} if "sensitive" in asked else {"insensitive": ["disease"]}
                cpu = time.process_time()
                found = shoal.anonymize(
                    frame, quasi_identifiers=["x"], publish="ranges", seed=1, **held, **asked
                ).certificate
                rows.append(
                    {"rows": n, "values": values, "request": request, "loss": float(found.cost),
                     "at least": float(found.lower_bound), "ratio": round(float(found.ratio), 3),
                     "cpu seconds": round(time.process_time() - cpu, 1)}
                )  # fmt: skip
                print(rows[-1], flush=True)
    busy = os.getloadavg()[0] > os.cpu_count()
    notes = ["Shares fall: the i-th value has a share in proportion to 1 / i."]
    record("One column of sets", "python benchmarks/one_set.py", rows, notes + ["The machine was busy."] * busy)
