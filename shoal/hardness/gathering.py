"""3-SAT to r-gather: radius 1 or 2."""

from __future__ import annotations

import numpy as np

from shoal.errors import InputError
from shoal.hardness.instances import Metric
from shoal.hardness.sources import Formula


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
