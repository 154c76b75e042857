"""Regions beside what they replace: components too light alone, and groups by the first characters of an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.problems.regions.graph import coded, components, graph, without_crossings
from shoal.problems.regions.merge import merge
from shoal.problems.regions.result import Regions


def light_components(
    ids: Sequence[str],
    edges: Any,
    weights: np.ndarray,
    found: Regions,
    boundaries: Any = None,
    exclude: Any = None,
    water: Any = None,
) -> list[dict[str, Any]]:
    """Components (within the boundary) too light to be a region, before any was joined, and what became of them."""
    n = len(ids)
    g = graph(edges, n)
    if boundaries is not None:
        g = without_crossings(g, coded(boundaries, n, "boundaries"))
    _, component = components(g)
    touched = np.zeros(n, np.bool_)
    touched[found.joined.ravel()] = True
    asked = np.zeros(n, np.bool_)
    for gone in (exclude, water):
        asked |= False if gone is None else gone
    out = []
    for c in np.unique(component[((found.labels < 0) & ~asked) | touched]).tolist():
        member = np.flatnonzero(component == c)
        lost = bool((found.labels[member] < 0).all())
        total = weights[member].sum(axis=0)
        if lost or (total < np.array(found.k)).any():
            out.append(
                {
                    "areas": [ids[i] for i in member.tolist()],
                    "weight": total.tolist() if len(total) > 1 else int(total[0]),
                    "outcome": "left out" if lost else "joined",
                }
            )
    return out


def against_prefixes(
    ids: Sequence[str],
    edges: Any,
    weight: np.ndarray,
    prefix: int,
    found: Regions,
    options: Mapping[str, Any],
    method: str = "auto",
) -> list[dict[str, Any]]:
    """Truncation of the ids to ``prefix`` characters, the paper's tree and the answer, side by side.

    options  what ``merge`` was asked besides, for the tree

    Raises PolicyError for a prefix below 1.
    """
    k = found.k[0]
    if prefix < 1:
        raise PolicyError(f"the prefix to compare with must be at least 1, not {prefix}")
    n = len(ids)
    group = coded([i[:prefix] for i in ids], n, "prefixes")
    g = graph(edges, n)
    rows = [_row(f"first {prefix} characters", group, weight, k, group, g)]
    limited = any(options.get(name) is not None for name in ("at_most", "apart", "max_diameter"))
    if method != "tree" and len(found.k) == 1 and found.certificate.details["l"] == 1 and not limited:
        tree = merge(edges, weight, k, "tree", **options)
        rows.append(_row("tree", tree.labels, weight, k, group, graph(_with(edges, tree), n)))
    rows.append(_row(method, found.labels, weight, k, group, graph(_with(edges, found), n)))
    return rows


def _with(edges: Any, found: Regions) -> Any:
    return np.concatenate([edges, found.joined])


def _row(name: str, label: Any, weight: Any, k: int, group: Any, g: Any) -> dict[str, Any]:
    """Sizes of a grouping.

    An area changed group when it is not of the prefix that most areas of its region have (of several, the one with
    most people).
    """
    held = label >= 0
    count = int(label.max()) + 1
    total = np.bincount(label[held], weights=weight[held], minlength=count).astype(np.int64)
    both = np.zeros((count, int(group.max()) + 1))
    np.add.at(both, (label[held], group[held]), 1 + weight[held] / (2.0 * max(int(weight.sum()), 1)))
    home = both.argmax(axis=1)
    _, piece = components(without_crossings(g, label))
    pieces = np.array([len(np.unique(piece[label == r])) for r in range(count)])
    return {
        "groups": name,
        "number": count,
        "largest": int(total.max()),
        "smallest": int(total.min()),
        "below_k": int((total < k).sum()),
        "areas_below_k": int((total < k)[label[held]].sum()),
        "not_connected": int((pieces > 1).sum()),
        "areas_changed": int((home[label[held]] != group[held]).sum()),
        "areas_left_out": int((~held).sum()),
    }
