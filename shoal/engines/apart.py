"""Areas without a neighbor, and islands: sets of several areas apart from the largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.engines.matching import listed, shown
from shoal.model.cards import several


class Apart(NamedTuple):
    """Figures by name, and a sentence each."""

    facts: dict[str, Any]
    said: list[str]


def apart(ids: Sequence[str], edges: np.ndarray, outside: Sequence[int] = (), empty: np.ndarray | None = None) -> Apart:
    """What stands apart.

    edges    int64[m, 2];  outside  areas that are no matter of concern
    empty    bool[n]  areas that nobody lives in: one without a neighbor is not isolated, a set of them is no island

    O(n + m) and a little.
    """
    n = len(ids)
    bare = np.zeros(n, np.bool_) if empty is None else empty
    root = list(range(n))

    def top(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for a, b in edges.tolist():
        root[top(a)] = top(b)
    home = np.array([top(v) for v in range(n)], np.int64)
    size, lived = np.bincount(home, minlength=n), np.bincount(home[~bare], minlength=n)
    islands = sorted(size[(size > 1) & (lived > 0)].tolist(), reverse=True)[1:]
    alone = np.bincount(edges.ravel(), minlength=n) == 0
    alone[list(outside)] = False
    isolated, unlived = ([ids[i] for i in np.flatnonzero(alone & own).tolist()] for own in (~bare, bare))
    said = []
    if islands:
        sizes = shown([f"{s:,}" for s in islands])
        said.append(f"{several(len(islands), 'island')}, sets of areas apart from the largest, of {sizes} areas")
    if isolated:
        said.append(f"{several(len(isolated), 'area')} without a neighbor: {shown(isolated)}")
    if unlived:
        said.append(f"{several(len(unlived), 'empty area')} without a neighbor, left alone: {shown(unlived)}")
    facts = {"islands": len(islands), "isolated": listed(isolated)}
    return Apart(facts | ({"isolated_empty": listed(unlived)} if bare.any() else {}), said)
