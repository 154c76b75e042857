"""3-SAT to r-gather, radius 1 or 2; dominating set to cellular clustering."""

from __future__ import annotations

import numpy as np

from shoal.errors import InputError
from shoal.hardness.instances import Metric
from shoal.hardness.sources import DominatingSet, Formula


def gather(formula: Formula, r: int = 7) -> Metric:
    """A graph metric in which clusters of at least r points, centered at points, reach radius 1 if and only if the
    formula can be satisfied; radius 2 always can be reached, so nothing below factor 2 is polynomial unless P = NP.

    Aggarwal et al. 2006, section 2.1.  Two vertices for each variable, joined to each other and to r - 2 vertices of
    their own: one of the two must be a center to reach those, and both cannot be, for at most r + 6 < 2 r points are
    near, every literal being in at most three clauses.  A clause is a vertex joined to its literals; it has too few
    neighbors to be a center, so one of its literals must be.  Without a path the distance is the number of points.
    """
    if r <= 6:
        raise InputError(f"r is {r}; the argument needs r > 6")
    for literal in {v for c in formula.clauses for v in c}:
        count = sum(literal in c for c in formula.clauses)
        if count > 3:
            raise InputError(f"literal {literal} is in {count} clauses, more than three")
    names: list[str] = []
    edges: list[tuple[int, int]] = []
    at: dict[int, int] = {}
    for v in formula.variables:
        at[v], at[-v] = len(names), len(names) + 1
        names += [f"x{v}", f"not x{v}"]
        edges.append((at[v], at[-v]))
        for _ in range(r - 2):
            edges += [(at[v], len(names)), (at[-v], len(names))]
            names.append("")
    for i, clause in enumerate(formula.clauses):
        edges += [(at[literal], len(names)) for literal in clause]
        names.append(f"clause {i + 1}")
    answer = formula.satisfying() is not None
    return Metric(
        distances=shortest_paths(len(names), np.array(edges, np.int64)),
        edges=np.array(edges, np.int64),
        names=tuple(names),
        r=r,
        target=1,
        optimum=1 if answer else 2,
        answer=answer,
        source=formula,
    )


def cellular(source: DominatingSet) -> Metric:
    """Dominating set to cellular clustering: distances 1 and 2, set-up cost 2, optimum 2 n twice and 2 per dominator.

    Aggarwal et al. 2006, section 3, names the problem reduced from and nothing else.  Here every vertex has a twin with
    the same neighbors, joined to it; two vertices are 1 apart if they are joined, else 2.  From a dominating set of t
    vertices come t clusters of radius 1, at 2 t + 2 n in all.  Conversely a clustering can be changed into one of this
    kind at no cost.  A point at distance 2 from its center pays 2 there, and no more by itself.  Two clusters around
    one vertex are cheaper as one.  And a vertex alone joins its twin's cluster, within 1 of the center there too, for 1
    instead of 2, or makes one cluster with the twin for 4 if both are alone.
    """
    n = source.n
    joined = [(2 * v, 2 * v + 1) for v in range(n)]
    joined += [(2 * u + i, 2 * v + j) for u, v in source.edges for i in (0, 1) for j in (0, 1)]
    edges = np.array(joined, np.int64)
    distances = np.full((2 * n, 2 * n), 2, np.int64)
    np.fill_diagonal(distances, 0)
    distances[edges[:, 0], edges[:, 1]] = distances[edges[:, 1], edges[:, 0]] = 1
    fewest = len(source.smallest())
    return Metric(
        distances=distances,
        edges=edges,
        names=tuple(f"{v}{twin}" for v in range(n) for twin in ("", "'")),
        r=1,
        setup=2,
        unit="points x distance",
        target=2 * source.size + 2 * n,
        optimum=2 * fewest + 2 * n,
        answer=fewest <= source.size,
        source=source,
    )


def shortest_paths(n: int, edges: np.ndarray) -> np.ndarray:
    """Distances int64[n, n] in an unweighted graph, n where there is no path: one power of the adjacency at a time."""
    near = np.eye(n, dtype=bool)
    near[edges[:, 0], edges[:, 1]] = near[edges[:, 1], edges[:, 0]] = True
    distances = np.full((n, n), n, np.int64)
    reached = np.eye(n, dtype=bool)
    step = 0
    while True:
        distances[reached] = np.minimum(distances[reached], step)
        further = (reached.astype(np.int64) @ near.astype(np.int64)) > 0
        if (further == reached).all():
            return distances
        reached = further
        step += 1
