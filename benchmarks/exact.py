"""Exact methods: time to proof, and how far every heuristic of the catalogue is from the optimum.

python benchmarks/exact.py            everything, about five minutes
python benchmarks/exact.py proofs     only the times to proof
python benchmarks/exact.py gaps       only the heuristics' gaps
python benchmarks/exact.py agreement  only the exact methods against each other
"""

from __future__ import annotations

import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from record import record

from shoal.errors import PolicyError
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition
from shoal.model.privacy import KAnonymity, LDiversity, Requirement
from shoal.model.recoding import ColumnRecoding, Levels, Recoding
from shoal.model.task import Task, shortfall
from shoal.problems.catalogue import CATALOGUE
from shoal.problems.tables import group
from shoal.problems.tables.costs import Costs
from shoal.problems.tables.exact.optimal import by_vectors
from shoal.problems.tables.exact.pattern_model import kinds_of
from shoal.problems.tables.exact.pattern_program import Limits, pattern_program
from shoal.problems.tables.exact.set_partition import solve
from shoal.problems.tables.others.pattern_cover import whole_cost
from shoal.problems.tables.papers.simplex_matching import simplex_matching

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
    methods = [m for m in CATALOGUE["tables"] if m not in EXACT]
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


def random_tree(rng: np.random.Generator, size: int) -> ColumnRecoding:
    """A hierarchy of two to four levels."""
    nodes = [np.arange(size)]
    for _ in range(rng.integers(0, 3)):
        width = int(nodes[-1].max()) + 1
        nodes.append(np.unique(rng.integers(0, width, width), return_inverse=True)[1].reshape(-1)[nodes[-1]])
    return Levels.tree(np.stack([*nodes, np.zeros(size, int)]))


def agreement(instances: int = 500) -> None:
    """Every exact program on the same small random tables; how often two of them differ."""
    rng = np.random.default_rng(0)
    rows = []
    for what, k, l in (("k = 2", 2, 1), ("k = 3", 3, 1), ("k = 4", 4, 1), ("3-diverse", 1, 3)):
        for trees in (False, True):
            differ = 0
            for _ in range(instances):
                n, d = int(rng.integers(max(k, 2), 11)), int(rng.integers(1, 5))
                quasi = rng.integers(0, rng.integers(2, 5), (n, d))
                histogram = Histogram.from_rows(quasi, rng.integers(0, 4, n))
                need = Requirement(k, (l,), (1,))
                recoding = Recoding.stars(histogram)
                if trees:
                    recoding = Recoding(tuple(random_tree(rng, s) for s in histogram.quasi_sizes), "ncp")
                if shortfall(histogram, need) is None:
                    differ += len(set(every_program(histogram, need, recoding))) > 1
            rows.append(
                {
                    "requirement": what,
                    "recoding": "hierarchies" if trees else "stars",
                    "programs": "pairs, vectors, patterns, simplex matching" if k == 2 else "vectors, patterns",
                    "tables": instances,
                    "disagreements": differ,
                }
            )
    notes = [
        "Up to 10 rows, 4 columns, alphabets of 2 to 4; costs compared as whole numbers; infeasible tables skipped."
    ]
    record("Exact tables: agreement", "python benchmarks/exact.py agreement", rows, notes)


def every_program(histogram: Histogram, need: Requirement, recoding: Recoding) -> list[int]:
    """The optimum as a whole number, by every program that applies."""
    costs, kinds = Costs.of(histogram, recoding), kinds_of(histogram, need)
    task = Task(histogram, need, recoding)
    whole = Partition.of(np.arange(histogram.cells), np.zeros(histogram.cells), histogram.count)
    found = by_vectors(histogram, need, costs, kinds, 1e9, 2**60)
    assert found is not None
    out = [
        whole_cost(costs, task, found),
        whole_cost(costs, task, pattern_program(task, costs, kinds, whole, Limits(1e9))[0]),
    ]
    if need.k == 2 and not need.sensitive_columns:
        out.append(solve(costs).upper)
        vertex = np.repeat(np.arange(costs.types), costs.count)
        n = vertex.size
        if n <= 7:
            edges = {e: s * costs.loss(vertex[list(e)]) for s in (2, 3) for e in combinations(range(n), s)}
            out.append(simplex_matching(n, edges).cost)
    return out


if __name__ == "__main__":
    programs = {"proofs": proofs, "gaps": gaps, "agreement": agreement}
    for name in sys.argv[1:] or programs:
        programs[name]()
