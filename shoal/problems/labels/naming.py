"""Names for groups, and groups of groups: a hierarchy for a column that has none."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import known
from shoal.model.counts import whole
from shoal.problems.labels.covering import cover

STYLES = ("ends", "largest", "numbers")


def group_labels(
    names: Sequence[Any],
    labels: np.ndarray,
    counts: Sequence[int] | np.ndarray | None = None,
    style: str = "ends",
) -> list[str]:
    """One readable name per group, no two alike.

    names    the labels that were grouped, all different
    labels   int64[n]  group of each
    counts   needed for style "largest"
    style    "ends": first and last in sorted order, "Adams .. Baker and 12 more";
             "largest": the two most frequent, "Smith, Jones and 12 more"; "numbers": "group 1"

    A group of one carries that label's own name.  O(n log n).
    """
    text = ["" if name is None else str(name) for name in names]
    return _named(text, _ranked(text, counts, style), np.asarray(labels), style)


def _ranked(text: list[str], counts: Sequence[int] | np.ndarray | None, style: str) -> np.ndarray:
    """The names in the order in which a group shows them."""
    known("style of group labels", style, STYLES)
    rank = np.array(sorted(range(len(text)), key=text.__getitem__), dtype=np.int64)
    if style != "largest":
        return rank
    if counts is None:
        raise PolicyError('style "largest" needs the counts')
    return rank[np.argsort(-whole(counts, "count")[rank], kind="stable")]


def _named(text: list[str], rank: np.ndarray, labels: np.ndarray, style: str) -> list[str]:
    """One name per group from the ranked names."""
    m = int(labels.max()) + 1 if len(labels) else 0
    if style == "numbers":
        return [f"group {g + 1}" for g in range(m)]
    by_group = rank[np.argsort(labels[rank], kind="stable")]
    number = np.bincount(labels, minlength=m)
    start = np.cumsum(number) - number
    found = []
    for at, c in zip(start.tolist(), number.tolist(), strict=True):
        first = text[by_group[at]]
        if c == 1:
            found.append(first)
            continue
        second = text[by_group[at + (c - 1 if style == "ends" else 1)]]
        joined = f"{first}, {second}" if c == 2 or style == "largest" else f"{first} .. {second}"
        found.append(joined if c == 2 else f"{joined} and {c - 2:,} more")
    if len(set(found)) < m:  # equal names of different labels
        found = [f"{name} (group {g + 1})" for g, name in enumerate(found)]
    return found


def levels(
    names: Sequence[Any],
    counts: Sequence[int] | np.ndarray,
    ks: Sequence[int],
    method: str = "auto",
    style: str = "ends",
) -> list[list[str]]:
    """A generalization hierarchy without anyone drawing a tree: groups at each k, groups of those at the next.

    names   distinct values of the column
    counts  records of each
    ks      increasing; every level groups the groups of the level below to at least its k
    method  of ``cover``; "bicriteria" is refused, since its groups may be below k

    Returns one row per name, in the order given: [name, group at ks[0], ..., "*"], the shape of an ARX hierarchy
    file.  The last level is one group; levels that the total cannot fill are left out.

    Raises InputError when names repeat or counts differ in length, PolicyError for ks that do not increase.
    """
    if method == "bicriteria":
        raise PolicyError("groups of method 'bicriteria' may be below k and cannot become a hierarchy; use 'auto'")
    text = ["" if name is None else str(name) for name in names]
    sizes = whole(counts, "count")
    if len(text) != len(sizes):
        raise InputError(f"there are {len(text)} names and {len(sizes)} counts")
    if len(set(text)) < len(text):
        raise InputError("the names of a hierarchy's values must all differ; add up the counts of equal ones first")
    steps = [int(k) for k in ks]
    if any(b <= a for a, b in pairwise(steps)):
        raise PolicyError(f"the levels' k are {steps}; give them in increasing order")
    columns: list[list[str]] = [text]
    group, loads = np.arange(len(text)), sizes
    total, rank = sum(sizes.tolist()), _ranked(text, sizes, style)
    for k in steps:
        if k > total:
            break
        found = cover(loads, k, method)
        group, loads = found.labels[group], found.loads
        shown = _named(text, rank, group, style)
        columns.append([shown[g] for g in group.tolist()])
        if len(loads) == 1:
            break
    columns.append(["*"] * len(text))
    return [list(row) for row in zip(*columns, strict=True)]
