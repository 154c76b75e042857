"""What was changed together, how much the groups lost, and who is at risk at which threshold, all of whole groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.model.loss import View

PATTERNS = 12
_SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
_THRESHOLDS = (1 / 3, 0.2, 0.1, 0.05)  # one in 3, 5, 10, 20


def together(expected: Any, least: int) -> dict[str, Any]:
    """Which columns are coarser or hidden in the same rows: the most frequent combinations, the rest added up.

    expected  what every group publishes, an ``Expected``;  least: combinations on fewer rows are among the rest

    Of the groups as they are published, so that it tells no more than the release.  O(groups columns).
    """
    sizes = expected.partition.sizes
    names = [c.name for c in expected.columns]
    state = np.zeros((sizes.size, len(names)), np.int8)
    for j, column in enumerate(expected.columns):
        coarser = 1 + np.asarray(expected.starred[j], np.int8)
        state[:, j] = np.where(expected.plain[j], 0, coarser)[column.index]
    found, which = np.unique(state, axis=0, return_inverse=True)
    rows = np.bincount(which.reshape(-1), weights=sizes, minlength=len(found)).astype(np.int64)
    order = [i for i in np.lexsort((np.arange(rows.size), -rows)).tolist() if rows[i] >= least][:PATTERNS]
    lines, named = [], 0
    for i in order:
        of = {kind: [n for n, s in zip(names, found[i], strict=True) if s == kind] for kind in (1, 2)}
        lines.append({"hidden": of[2], "coarser": of[1], "rows": int(rows[i])})
        named += int(rows[i])
    return {"combinations": lines, "others": int(rows.sum()) - named}


def by_loss(view: View) -> list[dict[str, Any]]:
    """Classes and rows by the mean loss of their values: none, up to a tenth, up to a quarter, and so on.

    Groups that are published alike are one class, as everywhere in a report.
    """
    _, first, name = np.unique(view.class_of, return_index=True, return_inverse=True)
    sizes = np.bincount(name, weights=view.sizes, minlength=first.size)
    mean = view.lost[first].mean(axis=1) if view.lost.size else np.zeros(first.size)
    at = np.searchsorted(np.array(_SHARES) + 1e-12, mean)
    at = np.minimum(at, len(_SHARES) - 1)
    groups, rows = (np.bincount(at, weights=w, minlength=len(_SHARES)) for w in (None, sizes))
    return [
        {"above": low, "most": most, "groups": int(g), "rows": int(r)}
        for low, most, g, r in zip((0.0, *_SHARES[:-1]), _SHARES, groups, rows, strict=True)
    ]


def at_risk(sizes: Mapping[int, int], thresholds: Sequence[float] = _THRESHOLDS) -> list[dict[str, float]]:
    """Share of the rows whose risk, one over the rows of their class, is above each threshold.

    sizes  rows of a class -> number of such classes
    """
    rows = max(sum(size * n for size, n in sizes.items()), 1)
    return [
        {"above": most, "rows": sum(size * n for size, n in sizes.items() if size * most < 1 - 1e-9) / rows}
        for most in thresholds
    ]
