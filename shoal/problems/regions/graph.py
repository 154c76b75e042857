"""The graph of areas: compressed rows, what is left after boundaries and light components, and how it hangs
together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.arguments import array_of

_TESTED = 3000  # so many vertices at most, 3- and 4-connectivity are decided
_FEW = 2_000  # vertices: importing what finds components in compiled code takes longer than Python does


@dataclass(frozen=True, slots=True, eq=False)
class Contiguity:
    """An undirected graph without loops or double edges.

    indptr   int64[n + 1]
    indices  int64[2m]    the neighbors of v are indices[indptr[v]:indptr[v + 1]], in rising order
    """

    indptr: np.ndarray
    indices: np.ndarray

    @property
    def n(self) -> int:
        """Number of vertices."""
        return len(self.indptr) - 1

    def edges(self) -> np.ndarray:
        """Every edge once, the smaller end first; int64[m, 2]."""
        tail = np.repeat(np.arange(self.n), np.diff(self.indptr))
        once = tail < self.indices
        return np.column_stack([tail[once], self.indices[once]])


def graph(edges: Any, n: int) -> Contiguity:
    """Pairs of vertex numbers as a graph on 0..n-1; loops and repetitions are dropped.

    edges  integer pairs, any array-like of shape [m, 2]; InputError when a number is outside 0..n-1

    O(m log m) time.
    """
    pairs = array_of(edges, "edges", "pairs of area numbers")
    if pairs.size == 0:
        pairs = np.empty((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"edges must be pairs of area numbers, not an array of shape {pairs.shape}")
    whole = np.issubdtype(pairs.dtype, np.integer)
    if not whole and not (np.issubdtype(pairs.dtype, np.floating) and (pairs == np.floor(pairs)).all()):
        raise InputError("edges must be whole numbers, the positions of the areas in the array of weights")
    pairs = pairs.astype(np.int64)
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= n):
        wrong = int(pairs.min() if pairs.min() < 0 else pairs.max())
        raise InputError(f"an edge names area number {wrong}, but the areas are numbered 0 to {n - 1}")
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    key = np.concatenate([pairs[:, 0] * n + pairs[:, 1], pairs[:, 1] * n + pairs[:, 0]])
    key.sort()
    key = key[np.diff(key, prepend=-1) > 0]  # np.unique hashes first, which is many times slower on so many keys
    tail, head = np.divmod(key, max(n, 1))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(tail, minlength=n), out=indptr[1:])
    return Contiguity(indptr, head)


def components(g: Contiguity) -> tuple[int, np.ndarray]:
    """Number of components and the component of every vertex, numbered by first vertex."""
    if g.n <= _FEW:
        return _components_of_few(g)
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    links = csr_matrix((np.ones(len(g.indices), np.int8), g.indices, g.indptr), shape=(g.n, g.n))
    count, label = connected_components(links, directed=False)
    return int(count), label.astype(np.int64)


def _components_of_few(g: Contiguity) -> tuple[int, np.ndarray]:
    """The same by Python alone."""
    begin, head, label, count = g.indptr.tolist(), g.indices.tolist(), [-1] * g.n, 0
    for root in range(g.n):
        if label[root] >= 0:
            continue
        label[root] = count
        stack = [root]
        while stack:
            v = stack.pop()
            for u in head[begin[v] : begin[v + 1]]:
                if label[u] < 0:
                    label[u] = count
                    stack.append(u)
        count += 1
    return count, np.array(label, np.int64)


def induced(g: Contiguity, keep: np.ndarray) -> tuple[Contiguity, np.ndarray]:
    """The graph on the vertices where ``keep`` (bool[n]) holds, and their old numbers."""
    nodes = np.flatnonzero(keep)
    if len(nodes) == g.n:
        return g, nodes
    new = np.full(g.n, -1, np.int64)
    new[nodes] = np.arange(len(nodes))
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    both = keep[tail] & keep[g.indices]
    indptr = np.zeros(len(nodes) + 1, np.int64)
    np.cumsum(np.bincount(new[tail[both]], minlength=len(nodes)), out=indptr[1:])
    return Contiguity(indptr, new[g.indices[both]]), nodes


def without_crossings(g: Contiguity, boundaries: np.ndarray) -> Contiguity:
    """The graph without the edges whose ends differ in ``boundaries`` (int64[n])."""
    tail = np.repeat(np.arange(g.n), np.diff(g.indptr))
    inside = boundaries[tail] == boundaries[g.indices]
    indptr = np.zeros(g.n + 1, np.int64)
    np.cumsum(np.bincount(tail[inside], minlength=g.n), out=indptr[1:])
    return Contiguity(indptr, g.indices[inside])


def coded(values: Any, n: int, what: str) -> np.ndarray:
    """Any labels as int64[n], equal where the labels are; InputError when their number is not n."""
    listed: Sequence[Any] = list(values)
    if len(listed) != n:
        raise InputError(f"{what} has {len(listed)} entries for {n} areas; give one for each")
    seen: dict[Any, int] = {}
    return np.fromiter((seen.setdefault(v, len(seen)) for v in listed), np.int64, n)


def connected_parts(g: Contiguity, label: np.ndarray) -> bool:
    """Whether every part (vertices of equal label; negative ones are no part) is connected in g."""
    _, piece = components(without_crossings(g, label))
    held = label >= 0
    return len(np.unique(piece[held])) == len(np.unique(label[held]))


@dataclass(frozen=True, slots=True)
class Structure:
    """What a connected graph is known to be.

    connectivity  vertices that must go before the rest falls apart: 0, 1, 2, 3, or 4 for four and more
    planar        whether it can be drawn without crossings
    """

    connectivity: int
    planar: bool


def structure(g: Contiguity) -> Structure | None:
    """Planarity, and connectivity as far as 4 for planar graphs (3 for others); None when g is too large to ask, or
    networkx is not installed.

    In a 3-connected plane graph the vertices of a 3-cut lie two by two on a common face, so only such pairs are
    taken out to look for a third.  O(n m) for 3-connectivity, O(m * pairs on a common face) for 4-connectivity.
    """
    if g.n > _TESTED or g.n < 2:
        return None
    try:
        import networkx as nx
    except ImportError:
        return None

    drawing = nx.Graph()
    drawing.add_nodes_from(range(g.n))
    drawing.add_edges_from(g.edges().tolist())
    planar, embedding = nx.check_planarity(drawing)
    gone = np.zeros(g.n, np.bool_)

    def falls_apart(*taken: int) -> bool:
        gone[list(taken)] = True
        found = _cut(g, gone)
        gone[list(taken)] = False
        return found < 2

    least = int(np.diff(g.indptr).min())
    whole = _cut(g, gone)
    if whole < 2 or least < 2 or g.n < 3:
        return Structure(min(whole, 1), planar)
    if least < 3 or g.n < 4 or any(falls_apart(v) for v in range(g.n)):
        return Structure(2, planar)
    if not planar or least < 4 or g.n < 6:
        return Structure(3, planar)
    pairs = {
        (min(u, v), max(u, v)) for face in _faces(embedding) for i, u in enumerate(face) for v in face[:i] if u != v
    }
    return Structure(3 if any(falls_apart(*pair) for pair in sorted(pairs)) else 4, planar)


def _cut(g: Contiguity, gone: np.ndarray) -> int:
    """0: without the vertices ``gone`` (bool[n]) the graph is apart; 1: without one more; 2: neither."""
    from shoal.kernels.regions.separators import low_points

    order, parent, disc, low = low_points(g.indptr, g.indices, gone)
    above = parent[order]
    if (above < 0).sum() > 1:
        return 0
    inner = order[(above >= 0) & (above != order[:1])] if order.size else order  # below a vertex that is no root
    several = order.size - inner.size > 2  # the root has more than one below it
    return 1 if several or (low[inner] >= disc[parent[inner]]).any() else 2


def _faces(embedding: Any) -> list[list[int]]:
    marked: set[tuple[int, int]] = set()
    return [embedding.traverse_face(u, v, marked) for u, v in embedding.edges() if (u, v) not in marked]
