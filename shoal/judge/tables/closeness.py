"""The judge of the hierarchical distance, written as its paper defines it; shares no code with the solvers."""

from __future__ import annotations

import numpy as np
import polars as pl

from shoal.judge.values import pair, shown
from shoal.model.hierarchy import Hierarchy


def classes(values: pl.Series, tree: Hierarchy, column: str) -> np.ndarray:
    """int64[h, m]: the class of every distinct value at every level; the values first, one class of all last.

    A value that stands in the hierarchy in another form ("1.0" beside "1") is that value.
    PolicyError where one does not stand in it.
    """
    texts = shown(values)
    if tree.kind == "rows":
        known = [row[0] for row in tree.rows]
        lost = {t for t in texts if t is not None} - set(known)
        if lost:
            theirs, mine = pair(pl.Series(known, dtype=pl.String), values)
            if theirs.n_unique() == len(known):
                number = dict(zip(theirs.to_list(), known, strict=True))
                texts = [t if t not in lost else number.get(m, t) for t, m in zip(texts, mine.to_list(), strict=True)]
    return tree.resolve(texts, column).node.astype(np.int64)


def hierarchical(
    group: np.ndarray, value: np.ndarray, count: np.ndarray, sizes: np.ndarray, share: np.ndarray, node: np.ndarray
) -> float:
    """Largest earth mover's distance of a class's shares from the table's.

    group, value, count  int64[pairs]: rows of each value in each class of rows, those there are;  sizes int64[classes]
    share float64[m]     of every value in the table;  node as from ``classes``

    By the paper: what a node has too much is p - q of its leaves together; below a node of height x as much is carried
    as its children have too much or too little, whichever is less, and that costs x / height.  Where a class of rows
    has nothing under a node, nothing is carried below it.  O(pairs h log pairs).
    """
    height = node.shape[0] - 1
    total = np.zeros(sizes.size)
    owner, at, held = group, node[0][value], count / sizes[group]
    whole = np.bincount(node[0], weights=share)
    for level in range(1, height + 1):
        parent = np.zeros(whole.size, np.int64)
        parent[node[level - 1]] = node[level]
        above = np.bincount(node[level], weights=share)
        extra = held - whole[at]
        pairs, of = np.unique(owner * above.size + parent[at], return_inverse=True)
        held = np.bincount(of, weights=held)
        owner, at, whole = pairs // above.size, pairs % above.size, above
        much = np.bincount(of, weights=np.maximum(extra, 0.0))
        little = much - (held - whole[at])
        total += np.bincount(owner, weights=np.minimum(much, little), minlength=sizes.size) * level / height
    return float(np.clip(total, 0, 1).max())
