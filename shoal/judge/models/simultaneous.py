"""Rows that differ pairwise in every sensitive column: how many such rows every row of a class lies in.

Shares no code with the solvers.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def simultaneous(codes: np.ndarray, group: np.ndarray, wanted: int) -> int:
    """The least, over all rows, of the most rows of its class that differ pairwise everywhere, up to ``wanted``.

    codes int64[n, s] sensitive values, group int64[n] classes.  The row itself is one of them.
    One column: different values.  Two: maximum matchings between their values.  More: backtracking over the distinct
    tuples of a class, exponential in ``wanted`` at worst.
    """
    rows = np.unique(np.column_stack([group, codes]), axis=0)
    least = wanted
    for part in np.split(rows[:, 1:], np.flatnonzero(np.diff(rows[:, 0])) + 1):
        if part.shape[1] == 1:
            most = len(part)
        elif part.shape[1] == 2:
            most = _by_matching(part, least)
        else:
            tuples = [tuple(r) for r in part.tolist()]
            most = min(_with(t, tuples, least) for t in tuples)
        least = min(least, most)
        if least <= 1:
            break
    return least


def _by_matching(pairs: np.ndarray, wanted: int) -> int:
    """Least over the pairs of the largest matching that holds it.

    It is the maximum matching, or one less for a pair in no maximum matching: a pair takes the place of at most two.
    A pair is in some maximum matching when it is in a given one, lies on an alternating cycle, or on an alternating
    path of even length from an unmatched value (Berge 1957).
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    left, a = np.unique(pairs[:, 0], return_inverse=True)
    right, b = np.unique(pairs[:, 1], return_inverse=True)
    a, b = a.reshape(-1), b.reshape(-1)
    graph = csr_matrix((np.ones(a.size), (a, b)), shape=(left.size, right.size))
    partner = maximum_bipartite_matching(graph, perm_type="column")  # of each left value, -1 for none
    size = int((partner >= 0).sum())
    if size > wanted or size == 1:
        return min(size, wanted)
    inside = partner[a] == b
    n = left.size + right.size
    source = np.where(inside, b + left.size, a)
    target = np.where(inside, a, b + left.size)
    paths = csr_matrix((np.ones(a.size), (source, target)), shape=(n, n))
    part = connected_components(paths, connection="strong")[1]
    free_left = np.flatnonzero(partner < 0)
    free_right = np.setdiff1d(np.arange(right.size), partner) + left.size
    ahead, behind = _reached(paths, free_left), _reached(csr_matrix(paths.T), free_right)
    whole = inside | (part[a] == part[b + left.size]) | ahead[a] | behind[b + left.size]
    return min(wanted, size if whole.all() else size - 1)


def _reached(paths: Any, start: np.ndarray) -> np.ndarray:
    """bool[n]: the nodes of a graph (csr_matrix[n, n]) reached from any of some."""
    from scipy.sparse.csgraph import breadth_first_order

    n = paths.shape[0]
    out = np.zeros(n, bool)
    for node in start:
        if not out[node]:
            out[breadth_first_order(paths, node, return_predecessors=False)] = True
    return out


def _with(row: tuple[int, ...], tuples: list[tuple[int, ...]], wanted: int) -> int:
    """Most tuples, up to wanted, that differ pairwise everywhere, this one among them."""
    rest = [t for t in tuples if all(x != y for x, y in zip(t, row, strict=True))]
    best = 1
    for place, t in enumerate(rest):
        if best >= wanted or best > len(rest) - place:
            break
        best = max(best, 1 + _with(t, rest[place + 1 :], wanted - 1))
    return best


def found(model: Any, seen: tuple[np.ndarray, np.ndarray]) -> tuple[int, bool]:
    """The fewest such rows, up to l."""
    fewest = simultaneous(*seen, model.l)
    return fewest, fewest >= model.l
