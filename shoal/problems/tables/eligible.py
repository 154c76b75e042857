"""Which groups of cells meet a requirement: the one place where tables ask it."""

from __future__ import annotations

import numpy as np

from shoal.model.histogram import Histogram
from shoal.model.privacy import Requirement

# as numbered in kernels.eligible
_KINDS = ("band", "entropy", "recursive", "equal", "ordered", "tuples", "charge", "tree")
KINDS = (*_KINDS, *(f"persons' {kind}" for kind in _KINDS))


def rules_of(need: Requirement, sizes: tuple[int, ...]):  # type: ignore[no-untyped-def]
    """The rules of a requirement for the kernels, columns numbered among ``need.sensitive_columns``; None without any.

    sizes  number of codes of every sensitive column of the table
    """
    from shoal.kernels.tables.eligible import Rules

    if not need.rules:
        return None
    asked = list(need.sensitive_columns)
    measures = [rule.measure for rule in need.rules]
    lengths = [len(m.table) for m in measures]
    return Rules(
        kind=np.array([KINDS.index(m.kind) for m in measures], np.int64),
        column=np.array(
            [-1 if r.model.speaks == "tuples" else asked.index(r.columns[0]) for r in need.rules], np.int64
        ),
        person=np.array([asked.index(r.columns[1]) if r.model.speaks == "persons" else -1 for r in need.rules]),
        number=np.array([m.number for m in measures], np.float64),
        whole=np.array([m.whole for m in measures], np.int64),
        at=np.cumsum([0, *lengths])[:-1].astype(np.int64),
        table=np.array([v for m in measures for v in m.table], np.float64),
        size=np.array([max(sizes[j], 1) for j in asked], np.int64),
    )


def good_groups(
    histogram: Histogram, need: Requirement, cells: np.ndarray, group: np.ndarray, count: np.ndarray, groups: int
) -> np.ndarray:
    """bool[groups]: which groups meet the requirement; rows ``count`` int64[x] of ``cells`` int64[x] in group int64[x].

    O(x log x).
    """
    rows = np.bincount(group, weights=count, minlength=groups)
    good = rows >= need.k
    here = np.flatnonzero(count > 0)
    if here.size < cells.size:
        cells, group, count = cells[here], group[here], count[here]
    for j in need.sensitive_columns:
        if need.frequency[j] <= 1 and need.distinct[j] <= 1:
            continue
        size = np.int64(max(histogram.sensitive_sizes[j], 1))
        key = group * size + histogram.sensitive[cells, j]
        if groups * int(size) <= 4 * cells.size + 1024:
            held = np.bincount(key, weights=count, minlength=groups * int(size)).reshape(groups, int(size))
            top, different = held.max(axis=1, initial=0), (held > 0).sum(axis=1)
        else:
            pair, inverse = np.unique(key, return_inverse=True)
            held = np.bincount(inverse.reshape(-1), weights=count, minlength=pair.size)
            owner = pair // size
            top = np.zeros(groups)
            np.maximum.at(top, owner, held)
            different = np.bincount(owner, minlength=groups)
        good &= (need.frequency[j] * top <= rows) & (different >= need.distinct[j])
    if need.rules and good.any():
        from shoal.kernels.tables.eligible import good as rules_hold

        kept = np.flatnonzero(good[group])
        order = kept[np.argsort(group[kept], kind="stable")]
        start = np.searchsorted(group[order], np.arange(groups + 1))
        values = np.ascontiguousarray(histogram.sensitive[:, list(need.sensitive_columns)])
        rules = rules_of(need, histogram.sensitive_sizes)
        good &= rules_hold(rules, values, cells[order], count[order].astype(np.int64), start)
    return good
