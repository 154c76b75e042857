"""Spanning trees of degree 2 and 3 where connectivity promises them.

Tutte 1956: every 4-connected planar graph has a Hamiltonian cycle, so a path is a spanning tree of degree 2.  Barnette
1966: every 3-connected planar graph has a spanning tree of degree 3.  The trees are searched for, not constructed after
those proofs; what is found proves itself.

Degree 3 in a triangulation: in a canonical order (de Fraysseix, Pach, Pollack 1990) every vertex takes as its parent an
earlier neighbor, no vertex more than two children (the root three); a bipartite matching decides whether that can be
done.  In sparser graphs exchanges of edges get there.
"""

from __future__ import annotations

import numpy as np

from shoal.problems.regions.graph import Contiguity

_TRIES = 60
_WORK = 300_000_000  # vertices touched in the search for a path


def slender_tree(g: Contiguity, wanted: int, state: np.ndarray) -> np.ndarray | None:
    """A spanning tree of degree at most ``wanted`` (2 or 3) of a planar graph, as parents; None if none was found."""
    if wanted == 2:
        return hamiltonian_path(g, state)
    found = exchanged(g, wanted, state)
    return matched(g) if found is None else found


def hamiltonian_path(g: Contiguity, state: np.ndarray) -> np.ndarray | None:
    """A Hamiltonian path as parents, the first vertex's -1; None if none was found."""
    from shoal.kernels.regions.paths import long_path

    steps = 40 * g.n + 2_000
    for _ in range(max(1, min(_TRIES, _WORK // (steps * max(g.n, 1))))):
        path = long_path(g.indptr, g.indices, steps, state)
        if len(path) == g.n:
            parent = np.full(g.n, -1, np.int64)
            parent[path[1:]] = path[:-1]
            return parent
    return None


def exchanged(g: Contiguity, wanted: int, state: np.ndarray) -> np.ndarray | None:
    """Exchanges of edges from several depth-first trees, until one has no degree above ``wanted``."""
    from shoal.kernels.regions.spanning import deep_tree, degrees, reduce_degree

    for attempt in range(_TRIES):
        seed = np.uint64((int(state[0]) + attempt * 0x9E3779B97F4A7C15) % 2**64 | 1)
        parent, _ = deep_tree(g.indptr, g.indices, int(seed) % g.n, seed)
        reduce_degree(g.indptr, g.indices, parent, 4 * g.n)
        if degrees(parent).max(initial=0) <= wanted:
            return parent
    return None


def matched(g: Contiguity) -> np.ndarray | None:
    """A spanning tree of degree at most 3 of a planar graph, parents matched along a canonical order; None if there
    is none.

    O(n^1.5) time for the matching.
    """
    import networkx as nx
    from networkx.algorithms.planar_drawing import get_canonical_ordering, triangulate_embedding
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    drawing = nx.Graph()
    drawing.add_nodes_from(range(g.n))
    drawing.add_edges_from(g.edges().tolist())
    planar, embedding = nx.check_planarity(drawing)
    if not planar or g.n < 4:
        return None
    full, outer = triangulate_embedding(embedding, True)
    order = np.array([v for v, _ in get_canonical_ordering(full, outer)], np.int64)
    rank = np.empty(g.n, np.int64)
    rank[order] = np.arange(g.n)
    child = np.repeat(np.arange(g.n), np.diff(g.indptr))
    earlier = rank[g.indices] < rank[child]
    child, above = child[earlier], g.indices[earlier]
    places = np.concatenate([3 * above, 3 * above + 1, 3 * above[above == order[0]] + 2])
    takers = np.concatenate([child, child, child[above == order[0]]])
    options = csr_matrix((np.ones(len(takers), np.int8), (takers, places)), shape=(g.n, 3 * g.n))
    taken = maximum_bipartite_matching(options, perm_type="column")
    parent = np.where(taken >= 0, taken // 3, -1).astype(np.int64)
    return parent if int((parent < 0).sum()) == 1 else None
