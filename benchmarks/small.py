"""Small tables: how many of a fixed set of 200 are proved optimal at the default effort, each within ten seconds.

python benchmarks/small.py            all of them, up to half an hour
python benchmarks/small.py 20         the first twenty, nothing is recorded
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np
from record import record

from shoal import DistinctLDiversity, KAnonymity, LDiversity
from shoal.problems.tables import ColumnRecoding, Histogram, Levels, Recoding, group, requirement, shortfall

TABLES = 200
GOAL = 10.0  # seconds
MODELS = ("k", "frequency l", "distinct l", "k and frequency l", "k and distinct l")


def hierarchy(rng: np.random.Generator, size: int) -> ColumnRecoding:
    """Values in order, joined by two or three neighbors at a time until one is left."""
    levels = [np.arange(size)]
    while int(levels[-1].max()) > 0:
        levels.append(levels[-1] // int(rng.integers(2, 4)))
    return Levels.tree(np.stack(levels))


def drawn(number: int) -> tuple[Histogram, list[Any], Recoding, str]:
    """Table ``number``: 20 to 200 rows, 3 to 6 columns of 2 to 12 values, skewed, and alike within hidden kinds."""
    rng = np.random.default_rng([15, number])
    n, d = round(20 * 10 ** rng.random()), int(rng.integers(3, 7))
    kinds = int(rng.integers(2, 9))
    kind = rng.integers(0, kinds, n)
    sizes = rng.integers(2, 13, d)
    columns = []
    for size in sizes:
        share = rng.dirichlet(np.full(size, 0.7), kinds)
        own = np.array([rng.choice(size, p=share[x]) for x in kind])
        columns.append(np.where(rng.random(n) < 0.15, rng.integers(0, size, n), own))
    values = int(rng.integers(4, 10))
    share = rng.dirichlet(np.full(values, 3.0), kinds)
    sensitive = np.array([rng.choice(values, p=share[x]) for x in kind])
    found = Histogram.from_rows(np.stack(columns, axis=1), sensitive)
    name = MODELS[number % len(MODELS)]
    k, l = int(rng.choice([3, 4, 5, 8, 10])), int(rng.integers(2, 5))
    while True:
        models: list[Any] = [KAnonymity(k)] if name.startswith("k") else []
        if "frequency" in name:
            models.append(LDiversity(l))
        if "distinct" in name:
            models.append(DistinctLDiversity(l))
        if shortfall(found, requirement(models, found.sensitive_names, found)) is None:
            break
        l -= 1
    trees = number % 2 == 1
    recoding = Recoding(tuple(hierarchy(rng, s) for s in found.quasi_sizes), "ncp") if trees else Recoding.stars(found)
    return found, models, recoding, f"{name}, {'hierarchies' if trees else 'stars'}"


def measure(number: int) -> dict[str, Any]:
    table, models, recoding, name = drawn(number)
    began = time.perf_counter()
    found = group(table, models, recoding=recoding, seed=0)
    seconds = time.perf_counter() - began
    c = found.certificate
    return {"number": number, "name": name, "rows": table.rows, "columns": len(table.quasi_names), "proved": c.optimal,
            "ratio": float(c.ratio or 1), "seconds": seconds, "details": c.details.get("proof")}  # fmt: skip


def main(tables: int = TABLES) -> None:
    for number in range(10):
        measure(number)  # compiles, or loads what was compiled
    done = []
    for number in range(tables):
        done.append(measure(number))
        print(done[-1], file=sys.stderr, flush=True)
    rows = []
    for what in sorted({x["name"] for x in done}):
        here = [x for x in done if x["name"] == what]
        good = [x for x in here if x["proved"] and x["seconds"] <= GOAL]
        rows.append(
            {
                "tables": what,
                "number": len(here),
                "proved optimal": len(good),
                "share %": 100 * len(good) / len(here),
                "largest ratio": max(x["ratio"] for x in here),
                "mean seconds": float(np.mean([x["seconds"] for x in here])),
                "largest seconds": max(x["seconds"] for x in here),
            }
        )
    good = sum(x["proved"] and x["seconds"] <= GOAL for x in done)
    share = 100 * good / len(done)
    notes = [
        f"{good} of {len(done)} proved optimal within {GOAL:.0f} s each ({share:.1f} %); goal 95 %: "
        f"{'met' if share >= 95 else 'not met'}.",
        "20 to 200 rows, 3 to 6 columns of 2 to 12 values; default effort; kernels compiled before.",
        "The set is fixed by its generator.",
    ]
    if tables == TABLES:
        record("Tables: small ones proved", "python benchmarks/small.py", rows, notes)
    else:
        print(rows, notes)


if __name__ == "__main__":
    main(*(int(x) for x in sys.argv[1:]))
