"""k-anonymity, (alpha,k)-anonymity, and l-diversity: frequency, distinct, entropy, recursive, and simultaneous.

Simultaneous l-diversity of several columns: for each row, the size of the largest set of rows of its class that
contains the row and whose rows differ pairwise in every sensitive column. This module shares no code with the solvers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.judge.models import CLOSE, ClassCounts


def size_found(model: Any, sizes: np.ndarray) -> tuple[int, bool]:
    """The size of the smallest class."""
    smallest = int(sizes.min())
    return smallest, smallest >= model.k


def share_level(column: ClassCounts) -> float:
    """The largest share of a value in a class."""
    return float(column.share.max())


def share_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The largest share, and whether it and the smallest class meet alpha and k."""
    return share_level(column), bool(column.sizes.min() >= model.k and share_level(column) <= model.alpha + CLOSE)


def frequency_level(column: ClassCounts) -> float:
    """The largest l such that each value has at most 1/l of the rows of its class."""
    return float((column.sizes / np.maximum.reduceat(column.count, column.start)).min())


def frequency_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The level, and whether the model holds, by integer comparison so that rounding can't decide."""
    top = np.maximum.reduceat(column.count, column.start)
    return frequency_level(column), bool((model.l * top <= column.sizes).all())


def distinct_level(column: ClassCounts) -> int:
    """The fewest different values in a class."""
    return int(np.bincount(column.group).min())


def distinct_found(model: Any, column: ClassCounts) -> tuple[int, bool]:
    """The fewest different values in a class, compared with l."""
    return distinct_level(column), distinct_level(column) >= model.l


def entropy_level(column: ClassCounts) -> float:
    """The exponential of the least entropy of a class."""
    return math.exp(max(_least(column), 0.0))


def entropy_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The exponential of the least entropy, compared with l."""
    return entropy_level(column), _least(column) >= math.log(model.l) - CLOSE


def _least(column: ClassCounts) -> float:
    """The least entropy of a class, in nats."""
    return float(-np.add.reduceat(column.share * np.log(column.share), column.start).max())


def recursive_level(column: ClassCounts, l: int) -> float:
    """The largest r1 / (r_l + ... + r_m) over the classes; infinite if the sum is empty."""
    most = np.maximum.reduceat(column.count, column.start)
    if l == 2:  # all but the most frequent
        tail = np.add.reduceat(column.count, column.start) - most
    else:
        order = np.lexsort((-column.count, column.group))
        place = np.arange(order.size) - column.start[column.group]
        rest = np.where(place >= l - 1, column.count[order], 0)
        tail = np.bincount(column.group, weights=rest, minlength=column.sizes.size)
    with np.errstate(divide="ignore"):
        return float(np.where(tail > 0, most / np.maximum(tail, 1), np.inf).max())


def recursive_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The largest ratio, and whether it is below c."""
    ratio = recursive_level(column, model.l)
    return ratio, ratio < model.c - CLOSE


def simultaneous(codes: np.ndarray, group: np.ndarray, wanted: int) -> int:
    """The minimum over rows of the largest set of rows that contains the row and differs pairwise in every column.

    codes   int64[n, s]: sensitive values
    group   int64[n]: classes; the set lies in the row's class
    wanted  sizes above this are not distinguished

    One column: the number of different values. Two columns: maximum matchings between their values. More: backtracking
    over the distinct tuples of a class, exponential in ``wanted`` at worst.
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
    """The minimum over pairs of the size of the largest matching that contains the pair.

    It is the size of a maximum matching, or one less if no maximum matching contains the pair: adding the pair removes
    at most two. Some maximum matching contains a pair if a given one does, or if the pair lies on an alternating cycle,
    or on an alternating path of even length from an unmatched value (Berge 1957).
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

    left, a = np.unique(pairs[:, 0], return_inverse=True)
    right, b = np.unique(pairs[:, 1], return_inverse=True)
    a, b = a.reshape(-1), b.reshape(-1)
    graph = csr_matrix((np.ones(a.size), (a, b)), shape=(left.size, right.size))
    partner = maximum_bipartite_matching(graph, perm_type="column")  # of each left value, -1 if unmatched
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
    """bool[n]: the nodes of a graph (csr_matrix[n, n]) that can be reached from the start nodes."""
    from scipy.sparse.csgraph import breadth_first_order

    n = paths.shape[0]
    out = np.zeros(n, bool)
    for node in start:
        if not out[node]:
            out[breadth_first_order(paths, node, return_predecessors=False)] = True
    return out


def _with(row: tuple[int, ...], tuples: list[tuple[int, ...]], wanted: int) -> int:
    """The most tuples, up to ``wanted``, that include this one and differ pairwise in every column."""
    rest = [t for t in tuples if all(x != y for x, y in zip(t, row, strict=True))]
    best = 1
    for place, t in enumerate(rest):
        if best >= wanted or best > len(rest) - place:
            break
        best = max(best, 1 + _with(t, rest[place + 1 :], wanted - 1))
    return best


def simultaneous_found(model: Any, seen: tuple[np.ndarray, np.ndarray]) -> tuple[int, bool]:
    """The fewest such rows, and whether it is at least l."""
    fewest = simultaneous(*seen, model.l)
    return fewest, fewest >= model.l


FOUND = {
    "KAnonymity": size_found,
    "AlphaKAnonymity": share_found,
    "LDiversity": frequency_found,
    "DistinctLDiversity": distinct_found,
    "EntropyLDiversity": entropy_found,
    "RecursiveLDiversity": recursive_found,
    "SimultaneousLDiversity": simultaneous_found,
}
