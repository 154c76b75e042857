"""Exact methods: time to proof, and how far every heuristic of the catalogue is from the optimum.

python benchmarks/exact.py            everything, about five minutes
python benchmarks/exact.py proofs     only the times to proof
python benchmarks/exact.py gaps       only the heuristics' gaps
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from record import record

from shoal import Hierarchy, KAnonymity, LDiversity, PolicyError
from shoal.problems.catalogue import names
from shoal.problems.tables import Histogram, Levels, Recoding, group

DATA = Path(__file__).parents[1].parent / "shared" / "data"
ADULT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
CENSUS = ("Age", "Gender", "Race", "MaritalStatus", "BirthPlace", "Education", "WorkClass")
EXACT = ("auto", "optimal", "two_anonymity")


def random_rows(n: int, d: int, values: int, seed: int = 0) -> Histogram:
    return Histogram.from_rows(np.random.default_rng(seed).integers(0, values, (n, d)))


def sample(path: str, columns: tuple[str, ...], n: int, seed: int) -> tuple[Histogram, list[list[str]]]:
    """n rows of a real table, and the values behind the codes."""
    import polars as pl

    frame = pl.read_csv(DATA / path, infer_schema=False).select(columns).sample(n, seed=seed)
    values, codes = [], []
    for name in columns:
        found, code = np.unique(frame[name].to_numpy().astype(str), return_inverse=True)
        values.append(found.tolist())
        codes.append(code.reshape(-1))
    return Histogram.from_rows(np.column_stack(codes), quasi_names=columns), values


def adult_trees(columns: tuple[str, ...], values: list[list[str]]) -> Recoding:
    """ARX's hierarchies for these columns of Adult."""
    trees = []
    for name, here in zip(columns, values, strict=True):
        (path,) = (DATA / "adult" / "hierarchies").glob(f"*hierarchy_{name}.csv")
        found = Hierarchy.from_csv(path).resolve(here, name)
        trees.append(Levels.tree(found.node, leaves=found.leaves))
    return Recoding(tuple(trees), "ncp")


def timed(histogram: Histogram, privacy: Any, method: str, **more: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    found = group(histogram, privacy, method, seed=0, **more)
    return found, time.perf_counter() - start


def warm() -> float:
    """Compile or load every kernel; seconds it took."""
    start = time.perf_counter()
    small = random_rows(12, 3, 2)
    for method, k in (("two_anonymity", 2), ("optimal", 3), ("forest", 3), ("pattern_cover", 3)):
        group(small, KAnonymity(k), method)
    return time.perf_counter() - start


def line(what: str, found: Any, seconds: float, goal: float) -> dict[str, Any]:
    c = found.certificate
    short = c.lower_bound < (1 - 0.005) * c.cost if "5,000" in what else not c.optimal
    return {
        "instance": what,
        "method": found.method,
        "cost": c.cost,
        "bound": c.lower_bound,
        "proved": "optimal" if c.optimal else f"stopped: {c.details.get('stopped')}",
        "relaxation": c.details.get("linear_program", ""),
        "odd sets": c.details.get("odd_sets", ""),
        "seconds": round(seconds, 2),
        "goal": goal,
        "met": "no" if short or seconds > goal else "yes",
    }


def million() -> Histogram:
    """10^6 rows over four binary columns, as codes: some tuples very common, most rare."""
    rng = np.random.default_rng(0)
    share = np.array([4e5, 3, 1, 2, 3e5, 4, 9, 1, 2e5, 7, 2, 1e5, 1, 3, 2, 1])
    kind = rng.choice(16, 10**6, p=share / share.sum())
    return Histogram.from_rows((kind[:, None] >> np.arange(4)) & 1)


def proofs() -> None:
    compile_seconds = warm()
    rows = []
    for n, d, values, goal in ((2000, 8, 5, 20.0), (5000, 8, 5, 180.0)):
        for seed in (0, 1):
            found, seconds = timed(random_rows(n, d, values, seed), KAnonymity(2), "two_anonymity")
            rows.append(line(f"{n:,} random rows, {d} columns, alphabet {values}, seed {seed}", found, seconds, goal))
    if (DATA / "adult").exists():
        for seed in (0, 1):
            histogram, _ = sample("adult/adult.csv", ADULT[:6], 300, seed)
            found, seconds = timed(histogram, KAnonymity(2), "two_anonymity")
            rows.append(line(f"Adult, 300 rows, 6 columns, stars, seed {seed}", found, seconds, 3.0))
        histogram, _ = sample("adult/adult.csv", ADULT, 10_000, 0)
        found, seconds = timed(histogram, KAnonymity(2), "two_anonymity")
        rows.append(line("Adult, 10,000 rows, 8 columns, stars", found, seconds, 300.0))
        for n, columns in ((300, ADULT[:6]), (3000, ADULT)):
            histogram, values = sample("adult/adult.csv", columns, n, 0)
            found, seconds = timed(histogram, KAnonymity(2), "two_anonymity", recoding=adult_trees(columns, values))
            goal = 3.0 if n == 300 else 60.0
            rows.append(line(f"Adult, {n:,} rows, {len(columns)} columns, hierarchies", found, seconds, goal))
    for d, values in ((6, 3), (8, 5)):
        found, seconds = timed(random_rows(20, d, values), KAnonymity(3), "optimal")
        rows.append(line(f"20 random rows, {d} columns, alphabet {values}, k = 3", found, seconds, 2.0))
    start = time.perf_counter()
    histogram = million()
    found = group(histogram, KAnonymity(5), "optimal", seed=0)
    rows.append(
        line("10^6 rows over 4 binary columns, k = 5, counting included", found, time.perf_counter() - start, 5.0)
    )
    rng = np.random.default_rng(0)
    diverse = Histogram.from_rows(rng.integers(0, 3, (18, 4)), rng.integers(0, 5, 18))
    found, seconds = timed(diverse, LDiversity(3), "optimal")
    rows.append(line("18 random rows, 4 columns, alphabet 3, 3-diverse", found, seconds, 10.0))
    notes = [
        f"Kernels were compiled or loaded before ({compile_seconds:.1f} s in this run). Wall clock.",
        "relaxation: value of the linear program before odd sets; the bound is after them.",
    ]
    if not (DATA / "adult").exists():
        notes.append("The Adult rows are left out: ../shared/data is not there.")
    record("Exact tables: time to proof", "python benchmarks/exact.py proofs", rows, notes)


def gaps(n: int = 1000) -> None:
    """Every heuristic of the catalogue against proved 2-anonymity on ten real samples, in stars."""
    if not (DATA / "adult").exists():
        print("gaps: skipped, ../shared/data is not there")
        return
    methods = [m for m in names("tables") if m not in EXACT]
    instances = [("Adult", "adult/adult.csv", ADULT, seed) for seed in range(5)]
    instances += [("Census", "census_income/census_income.csv.gz", CENSUS, seed) for seed in range(5)]
    rows, refused = [], {}
    for name, path, columns, seed in instances:
        histogram, _ = sample(path, columns, n, seed)
        best, seconds = timed(histogram, KAnonymity(2), "two_anonymity")
        certificate = best.certificate
        row: dict[str, Any] = {
            "sample": f"{name} {seed}",
            "optimum" if certificate.optimal else "bound": certificate.lower_bound,
            "seconds": round(seconds, 1),
        }
        recoding = Recoding.stars(histogram)
        for method in methods:
            try:
                found = group(histogram, KAnonymity(2), method, seed=0)
            except PolicyError as error:
                refused[method] = str(error)
                row[method] = "-"
                continue
            stars = recoding.cost(histogram, found.partition)
            row[method] = f"+{100 * (stars / certificate.lower_bound - 1):.1f} %"
        rows.append(row)
    notes = [
        f"{n:,} rows each; eight columns of Adult, seven of Census; k = 2; stars of the method's own partition above "
        "the proved optimum.",
        *(f"{method} does not apply: {why}" for method, why in refused.items()),
    ]
    record("Exact tables: the gap of every heuristic", "python benchmarks/exact.py gaps", rows, notes)


if __name__ == "__main__":
    programs = {"proofs": proofs, "gaps": gaps}
    for name in sys.argv[1:] or programs:
        programs[name]()
