"""A generated table with Connecticut's zip codes, published as connected regions beside other quasi-identifiers.

python benchmarks/regions_in_tables.py             efforts fast, balanced and 60 seconds: four to five minutes
python benchmarks/regions_in_tables.py fast        these efforts alone, by word or in seconds

The certificate's bound is one for the tree of regions.  Beside it stands one for groups that publish any connected sets
of zip codes: two rows lose at least the cheapest connected set of both, a shortest path whose nodes weigh their people,
and prices of rows are raised until every group of k rows is paid (``docs/bounds.md``, columns of boxes).
"""

from __future__ import annotations

import itertools
import random
import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from record import record
from rules import DATA
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import shoal
from shoal.clock import clock
from shoal.engines.geography import geography, read
from shoal.model.arguments import Effort
from shoal.model.privacy import KAnonymity, requirement
from shoal.model.task import Task
from shoal.problems.tables.bounds.boxes import Pairs, around_centers, columns_of_boxes, nearest_cells, sweeps_of
from shoal.problems.tables.bounds.bounds import total

K, ROWS, SECONDS = 5, (2_000, 20_000), 60.0
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
            "race": rng.choice(["white", "black", "hispanic", "asian", "other"], rows, p=[0.66, 0.11, 0.16, 0.05, 0.02]),
            "income": np.minimum(income, 200).astype(int),
        }
    )


def cheapest(ids: list[str], edges: np.ndarray, people: np.ndarray) -> np.ndarray:
    """float64[n, n]: what the cheapest connected set of two areas loses; 1 where there is none."""
    n = len(ids)
    # every step costs what is stepped on; what weighs nothing costs a trifle, which is taken off again by rounding down
    weigh = np.maximum(people, 1e-6)
    both = np.concatenate([edges, edges[:, ::-1]])
    way = dijkstra(csr_array((weigh[both[:, 1]], (both[:, 0], both[:, 1])), shape=(n, n)))
    held = np.maximum(np.floor(way + people[:, None] + 1e-9), 2)
    whole = max(int(people.sum()), n)
    lost = np.where(np.isfinite(way), (held - 1) / max(whole - 1, 1), 1.0)
    np.fill_diagonal(lost, 0.0)
    return np.minimum(lost, lost.T)


def bound_of_any(release: Any, table: pl.DataFrame, lost: np.ndarray, ids: list[str], seconds: float) -> float:
    """A lower bound on the loss of all releases whose groups publish any connected sets of areas."""
    view = release._placement.losses.view()
    task = Task(
        view.histogram, requirement([KAnonymity(K)], ()), view.recoding, Effort.of(seconds), started=clock()
    )  # fmt: skip
    pairs, until = Pairs.of(task), clock() + seconds
    known = {name: i for i, name in enumerate(ids)}
    texts = release._placement.own["zip"]
    own = np.array([known[t] for t in texts])
    (column,) = [j for j in range(len(view.recoding.columns)) if pairs_width(pairs, j, task) is not None]
    at, n = int(pairs.cells.at[column]), int(pairs.cells.width[column])
    losses = pairs.cells.losses.copy()
    losses[at : at + n * n] = lost[np.ix_(own, own)].reshape(-1)
    cells = pairs.cells._replace(losses=losses)
    around, sort = around_centers(cells, False)
    cells = cells._replace(code=cells.code[sort], count=cells.count[sort], value=cells.value[sort])
    pairs = replace(pairs, cells=cells, around=around, order=pairs.order[sort])
    near = nearest_cells(pairs, K - 1, until)
    if near is None:
        return 0.0
    start = pairs.back(near[2])
    raised = columns_of_boxes(task, pairs, start, sweeps_of(task, until), until)
    return max(total(task, p) for p in (start, raised) if p is not None)


def pairs_width(pairs: Pairs, j: int, task: Task) -> int | None:
    """The number of zip codes where column j, as the pairs have it, is the first column of the table."""
    quasi = task.histogram.quasi[pairs.order, 0]
    same = np.array_equal(np.unique(quasi, return_inverse=True)[1].reshape(-1), pairs.cells.code[:, j])
    return int(pairs.cells.width[j]) if same else None


def smallest(seed: int) -> tuple[float, float]:
    """The bound of any connected sets for a tiny table, and what its best release by any connected sets loses."""
    chance = random.Random(seed)
    n = chance.randint(3, 6)
    ids = [f"{i}" for i in range(n)]
    edges = [p for p in itertools.combinations(range(n), 2) if chance.random() < 0.5]
    people = np.array([chance.randint(0, 9) for _ in ids])
    rows = [(chance.choice(ids), chance.choice("mf")) for _ in range(2 * K)]
    table = pl.DataFrame(rows, schema=["zip", "sex"], orient="row")
    given = geography(ids, [(ids[a], ids[b]) for a, b in edges], {"population": people.tolist()})
    release = shoal.anonymize(table, quasi_identifiers=["zip", "sex"], k=K, publish={"zip": "regions"}, areas=given,
                              effort="fast", seed=1)  # fmt: skip
    lost = cheapest(ids, np.array(edges, np.int64).reshape(-1, 2), people)
    bound = bound_of_any(release, table, lost, ids, 2.0)
    whole = max(int(people.sum()), n)
    sets: dict[frozenset[int], float] = {}
    for size in range(1, n + 1):
        for members in itertools.combinations(range(n), size):
            seen, walk = {members[0]}, [members[0]]
            while walk:
                v = walk.pop()
                new = {b for a, b in [*edges, *((b, a) for a, b in edges)] if a == v and b in members} - seen
                seen |= new
                walk += new
            if len(seen) == size:
                weight = max(int(people[list(members)].sum()), size)
                sets[frozenset(members)] = 0.0 if size == 1 else (weight - 1) / max(whole - 1, 1)

    def loses(group: list[int]) -> float:
        zips = {int(rows[r][0]) for r in group}
        own = min((x for s, x in sets.items() if zips <= s), default=1.0)
        return len(group) * (min(own, 1.0) + (len({rows[r][1] for r in group}) > 1))

    every = list(range(len(rows)))
    best = loses(every)
    for other in itertools.combinations(every[1:], K - 1):
        one = [0, *other]
        best = min(best, loses(one) + loses([r for r in every if r not in one]))
    return bound, best / (2 * len(rows))


def main() -> None:
    if not DATA.is_dir():
        print(f"skipped: the areas are not at {DATA}")
        return
    efforts = [float(w) if w[0].isdigit() else w for w in sys.argv[1:]] or ["fast", "balanced", SECONDS]
    tiny = [smallest(seed) for seed in range(60)]
    above = sum(bound > best + 1e-9 for bound, best in tiny)
    given = read(DATA / "zip_graph_ct" / "nodes.csv", DATA / "zip_graph_ct" / "edges.csv")
    ids, people = list(given.ids), given.whole("population")
    lost = cheapest(ids, given.edges, people)
    lines = []
    for rows in ROWS:
        table = census_like(rows, ids, people)
        for effort in efforts:
            began = time.process_time(), time.perf_counter()
            release = shoal.anonymize(table, quasi_identifiers=table.columns, k=K, publish={"zip": "regions"},
                                      hierarchies=TREES, areas=given, effort=effort, seed=1)  # fmt: skip
            spent = time.process_time() - began[0], time.perf_counter() - began[1]
            proof = release.certificate
            line: dict[str, Any] = {"rows": rows, "effort": effort, "NCP": proof.cost, "bound": proof.lower_bound,
                                    "ratio": proof.ratio or "none", "processor": spent[0], "clock": spent[1]}  # fmt: skip
            any_set = bound_of_any(release, table, lost, ids, effort if isinstance(effort, float) else 30.0)
            lines.append({**line, "bound, any sets": any_set, "ratio, any sets": proof.cost / any_set})
    record(
        "Regions in tables",
        "python benchmarks/regions_in_tables.py",
        lines,
        [
            f"Connecticut's 282 zip codes, k = {K}, a generated table of zip, age, sex, race and income; a region loses "
            "its share of the people. bound, ratio: the certificate's, for the tree of regions. any sets: for groups "
            "that publish any connected sets of zip codes, computed here, for as many seconds again (30 for a word).",
            f"Of {len(tiny)} tiny tables, the bound of any sets is above the cheapest of all releases in {above}; "
            f"it is {np.mean([b / c if c else 1.0 for b, c in tiny]):.3f} of it in the mean.",
        ],
    )


if __name__ == "__main__":
    main()
