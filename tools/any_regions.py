"""A lower bound for groups that publish any connected sets of areas, beside that of a certificate for their tree.

python tools/any_regions.py [SECONDS]     tiny tables against all releases, then Connecticut's zip codes; 30 s each

Two rows lose at least the cheapest connected set of both, a shortest path whose nodes weigh their people; prices of
rows are raised until every group of k rows is paid (``docs/bounds.md``, columns of boxes).
"""

from __future__ import annotations

import itertools
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from regions_in_tables import FOLDER, ROWS, TREES, K, census_like

import shoal
from shoal.clock import clock
from shoal.engines.geography import geography, read
from shoal.model.arguments import Effort
from shoal.model.privacy import KAnonymity, requirement
from shoal.model.task import Task
from shoal.problems.tables.bounds.bounds import total
from shoal.problems.tables.bounds.boxes import Pairs, center_index, columns_of_boxes, nearest_cells, sweeps_of


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


def bound_of_any(release: Any, lost: np.ndarray, ids: list[str], seconds: float) -> float:
    """A lower bound on the loss of all releases whose groups publish any connected sets of areas."""
    view = release._placement.losses.view()
    task = Task(view.histogram, requirement([KAnonymity(K)], ()), view.recoding, Effort.of(seconds), started=clock())
    pairs, until = Pairs.of(task), clock() + seconds
    known = {name: i for i, name in enumerate(ids)}
    texts = release._placement.own["zip"]
    own = np.array([known[t] for t in texts])
    (column,) = [j for j in range(len(view.recoding.columns)) if pairs_width(pairs, j, task) is not None]
    at, n = int(pairs.cells.at[column]), int(pairs.cells.width[column])
    losses = pairs.cells.losses.copy()
    losses[at : at + n * n] = lost[np.ix_(own, own)].reshape(-1)
    cells = pairs.cells._replace(losses=losses)
    around, sort = center_index(cells, False)
    cells = cells._replace(code=cells.code[sort], count=cells.count[sort], value=cells.value[sort])
    pairs = replace(pairs, cells=cells, index=around, order=pairs.order[sort])
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
    bound = bound_of_any(release, lost, ids, 2.0)
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
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 30.0
    tiny = [smallest(seed) for seed in range(60)]
    above = sum(bound > best + 1e-9 for bound, best in tiny)
    near = np.mean([bound / best if best else 1.0 for bound, best in tiny])
    print(f"tiny tables: {len(tiny)}, bound above the cheapest release in {above}, {near:.3f} of it in the mean")
    given = read(FOLDER / "nodes.csv", FOLDER / "edges.csv")
    ids, people = list(given.ids), given.whole("population")
    lost = cheapest(ids, given.edges, people)
    for rows in ROWS:
        table = census_like(rows, ids, people)
        release = shoal.anonymize(table, quasi_identifiers=table.columns, k=K, publish={"zip": "regions"},
                                  hierarchies=TREES, areas=given, effort=seconds, seed=1)  # fmt: skip
        proof, other = release.certificate, bound_of_any(release, lost, ids, seconds)
        tree = f"for the tree at least {proof.lower_bound:.5f}, ratio {proof.ratio:.3f}"
        sets = f"for any connected sets at least {other:.5f}, ratio {proof.cost / other:.3f}"
        print(f"{rows:,} rows: NCP {proof.cost:.5f}; {tree}; {sets}")
    sys.exit(above > 0)


if __name__ == "__main__":
    main()
