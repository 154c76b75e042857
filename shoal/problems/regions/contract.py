"""What is fixed beforehand, taken out of the problem before it is solved: areas fixed together become one, excluded
ones go, and soft boundaries lose the edges across them that nobody needs.

All of it changes the graph and nothing else, so every method obeys it and every bound holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import array_of
from shoal.problems.regions.graph import coded, components, graph, without_crossings
from shoal.problems.regions.result import Regions
from shoal.problems.regions.task import relabelled


class Fixed(NamedTuple):
    """unit   int64[n]     what each area became part of, numbered by first area; -1 excluded
    edges  int64[m, 2]  pairs of units
    """

    unit: np.ndarray
    edges: np.ndarray

    def summed(self, values: np.ndarray) -> np.ndarray:
        """Sums over the units, of numbers [n] or [n, t]."""
        held = self.unit >= 0
        out = np.zeros((int(self.unit.max(initial=-1)) + 1, *values.shape[1:]), values.dtype)
        np.add.at(out, self.unit[held], values[held])
        return out

    def first(self, values: Sequence[Any]) -> list[Any]:
        """The value of every unit's first area."""
        _, at = np.unique(self.unit[self.unit >= 0], return_index=True)
        held = np.flatnonzero(self.unit >= 0)[at]
        return [values[i] for i in held.tolist()]

    def centers(self, places: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Weighted centers of the units; float64[u, 2]."""
        held = self.unit >= 0
        mass = np.maximum(weight, 1e-9)[held]
        total = np.bincount(self.unit[held], weights=mass)
        return np.column_stack([np.bincount(self.unit[held], weights=mass * places[held, j]) / total for j in (0, 1)])


def contract(
    edges: np.ndarray, n: int, exclude: Any, fixed: Sequence[Any] | None, boundaries: Sequence[Any] | None
) -> Fixed:
    """Areas with the same value of ``fixed`` as one, those where ``exclude`` holds gone.

    fixed  n labels, None or "" for an area that goes where it will

    Raises PolicyError for areas fixed together that do not hang together by themselves (within the boundaries).
    """
    gone = np.zeros(n, np.bool_) if exclude is None else array_of(exclude, "exclude", "one truth value for each area")
    if gone.shape != (n,):
        raise InputError(f"exclude has shape {gone.shape}; give one truth value for each of {n} areas")
    gone = gone.astype(np.bool_)
    together = np.arange(n)
    if fixed is not None:
        codes = coded(fixed, n, "fixed")
        free = np.array([v is None or v == "" for v in fixed], np.bool_)
        together = np.where(free | gone, np.arange(n) + n, codes)
        g = graph(edges, n)
        if boundaries is not None:
            g = without_crossings(g, coded(boundaries, n, "boundaries"))
        _, piece = components(without_crossings(g, together))
        kept = ~(free | gone)
        parts = np.unique(np.column_stack([together[kept], piece[kept]]), axis=0)
        apart = int((np.bincount(parts[:, 0]) > 1).sum()) if len(parts) else 0
        if apart:
            within = " inside the boundaries" if boundaries is not None else ""
            sets = "a set of areas fixed together does" if apart == 1 else f"{apart} sets of areas fixed together do"
            raise PolicyError(
                f"{sets} not hang together{within}; fix what lies between as well, or add the pair of neighbors"
            )
    return _units(edges, together, gone)


def refuse_torn(held: Fixed, apart: Sequence[Any]) -> None:
    """PolicyError where two areas fixed together have the same value of ``apart``, None or "" aside."""
    own = [(u, a) for u, a in zip(held.unit.tolist(), apart, strict=True) if u >= 0 and a not in (None, "")]
    if len(set(own)) < len(own):
        torn = len(own) - len(set(own))
        which = (
            "an area is fixed together with one that it is"
            if torn == 1
            else f"{torn} areas are fixed together with others that they are"
        )
        raise PolicyError(f"{which} to be apart from; change fixed or apart")


def _units(edges: np.ndarray, together: np.ndarray, gone: np.ndarray) -> Fixed:
    unit = relabelled(np.where(gone, -1, together))
    pairs = unit[np.asarray(edges, np.int64).reshape(-1, 2)]
    pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    return Fixed(unit, np.unique(np.sort(pairs, axis=1), axis=0).reshape(-1, 2))


def soften(held: Fixed, soft: Sequence[Any], eligible: Any) -> Fixed:
    """Regions stay inside a soft boundary where that can be: edges across it remain only for sets of areas inside it
    that hold no region; such a set stays whole.

    soft      n labels;  a unit has its first area's
    eligible  unit sums' test: int64[u] set of every unit -> bool of every set
    """
    n = len(held.unit)
    own = coded(soft, n, "soft boundaries")
    units = int(held.unit.max(initial=-1)) + 1
    zone = np.array(held.first(own.tolist()), np.int64)
    g = graph(held.edges, units)
    _, piece = components(without_crossings(g, zone))
    light = ~eligible(piece)[piece]
    ends = held.edges
    needed = (zone[ends[:, 0]] == zone[ends[:, 1]]) | light[ends].any(axis=1)
    merged = np.where(light, piece + units, np.arange(units))
    return _units(ends_of(held, ends[needed]), np.where(held.unit >= 0, merged[held.unit], -1), held.unit < 0)


def ends_of(held: Fixed, pairs: np.ndarray) -> np.ndarray:
    """Pairs of units as pairs of their first areas."""
    first = np.array(held.first(list(range(len(held.unit)))), np.int64)
    return first[pairs] if len(pairs) else np.empty((0, 2), np.int64)


def expanded(found: Regions, held: Fixed, soft: Sequence[Any] | None, areas: int) -> Regions:
    """The regions of the units as regions of the areas."""
    inside = held.unit >= 0
    labels = np.full(len(held.unit), -1, np.int64)
    labels[inside] = found.labels[held.unit[inside]]
    sizes = np.bincount(labels[labels >= 0], minlength=found.regions)
    certificate = found.certificate
    details = dict(certificate.details) | {
        "areas": areas,
        "left_out": int((labels < 0).sum()),
        "excluded": int((~inside).sum()),
        "units": len(found.labels),
    }
    if soft is not None:
        mixed = [len({soft[i] for i in np.flatnonzero(labels == r).tolist()}) for r in range(found.regions)]
        details["regions_across_soft_boundaries"] = sum(m > 1 for m in mixed)
    more = int((labels >= 0).sum() - (found.labels >= 0).sum()) if details["objective"][0] == "count" else 0
    certificate = replace(
        certificate, cost=certificate.cost + more, lower_bound=certificate.lower_bound + more, details=details
    )
    return replace(
        found, labels=labels, sizes=sizes, certificate=certificate, cost=certificate.cost,
        joined=ends_of(held, found.joined),
    )  # fmt: skip
