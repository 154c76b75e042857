"""Changes of the graph of areas before it is solved, and of the regions afterward: fixed and excluded areas, water.

Areas fixed together become one, excluded areas are removed, and soft boundaries remove the edges across them that
aren't necessary. Components too light alone are joined to the nearest one. All of this changes only the graph, so every
method obeys it and every bound holds.

Water means areas without inhabitants that connect no shores. If a lake were an ordinary area, it would make one region
of two shores, and alone it would be too light for a region. So water is removed before anything is solved, and attached
afterward to an adjacent region: the one with most areas next to it, then the lightest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import array_of, missing
from shoal.model.cards import several
from shoal.problems.regions.limits import RegionLimits
from shoal.problems.regions.task import (
    Contiguity,
    Regions,
    coded,
    components,
    eligible_rows,
    graph,
    on_the_globe,
    relabelled,
    summed,
    unlabelled,
    without_crossings,
)


class FixedAreas(NamedTuple):
    """The graph in which areas fixed together are units, without the excluded areas.

    unit   int64[n]: the unit of each area, numbered by first area; -1 if excluded
    edges  int64[m, 2]: pairs of units
    """

    unit: np.ndarray
    edges: np.ndarray

    def summed(self, values: np.ndarray) -> np.ndarray:
        """Sums over the units, of numbers [n] or [n, t]."""
        held = self.unit >= 0
        return summed(values[held], self.unit[held])

    def first(self, values: Sequence[Any]) -> list[Any]:
        """The value of every unit's first area."""
        _, at = np.unique(self.unit[self.unit >= 0], return_index=True)
        held = np.flatnonzero(self.unit >= 0)[at]
        return [values[i] for i in held.tolist()]

    def centers(self, places: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """float64[u, 2]: weighted centers of the units."""
        held = self.unit >= 0
        mass = np.maximum(weight, 1e-9)[held]
        total = np.bincount(self.unit[held], weights=mass)
        return np.column_stack([np.bincount(self.unit[held], weights=mass * places[held, j]) / total for j in (0, 1)])


def contract(
    edges: np.ndarray, n: int, exclude: Any, fixed: Sequence[Any] | None, boundaries: Sequence[Any] | None
) -> FixedAreas:
    """Areas with the same value of ``fixed`` as one unit, without the areas where ``exclude`` holds.

    fixed  n labels, None or "" for an area that isn't fixed

    Raises PolicyError if areas fixed together aren't connected among themselves (within the boundaries).
    """
    gone = np.zeros(n, np.bool_) if exclude is None else flags(exclude, n, "exclude")
    together = np.arange(n)
    if fixed is not None:
        codes, free = coded(fixed, n, "fixed"), unlabelled(fixed)
        together = np.where(free | gone, np.arange(n) + n, codes)
        g = graph(edges, n)
        if boundaries is not None:
            g = without_crossings(g, coded(boundaries, n, "boundary"))
        _, piece = components(without_crossings(g, together))
        kept = ~(free | gone)
        parts = np.unique(np.column_stack([together[kept], piece[kept]]), axis=0)
        apart = int((np.bincount(parts[:, 0]) > 1).sum()) if len(parts) else 0
        if apart:
            within = " inside the boundaries" if boundaries is not None else ""
            sets = "a set of areas fixed together is" if apart == 1 else f"{apart} sets of areas fixed together are"
            raise PolicyError(
                f"{sets} not connected{within}; fix the areas between them as well, or add the pair of neighbors"
            )
    return _units(edges, together, gone)


def flags(given: Any, n: int, name: str) -> np.ndarray:
    """The input as bool[n], false where it is missing or ""; InputError unless it has a truth value for each area."""
    found = array_of(given, name, "one truth value for each area")
    if found.shape != (n,):
        raise InputError(f"{name} has shape {found.shape}; give one truth value for each of {n} areas")
    held = [False if missing(value) or value == "" else value for value in found.tolist()]
    wrong = sum(not isinstance(value, (bool, int, float)) or value not in (0, 1) for value in held)
    if wrong:
        raise InputError(
            f"{name} holds {several(wrong, 'value')} other than true and false; give True or False for each of {n} "
            "areas"
        )
    return np.array(held, np.bool_)


def refuse_fixed_and_apart(held: FixedAreas, apart: Sequence[Any]) -> None:
    """Raise PolicyError if two areas fixed together have the same value of ``apart``, except None and ""."""
    own = [(u, a) for u, a in zip(held.unit.tolist(), apart, strict=True) if u >= 0 and a not in (None, "")]
    if len(set(own)) < len(own):
        torn = len(own) - len(set(own))
        which = (
            "an area is fixed together with one that it is"
            if torn == 1
            else f"{torn} areas are fixed together with others that they are"
        )
        raise PolicyError(f"{which} to be apart from; change fixed or apart")


def _units(edges: np.ndarray, together: np.ndarray, gone: np.ndarray) -> FixedAreas:
    unit = relabelled(np.where(gone, -1, together))
    pairs = unit[np.asarray(edges, np.int64).reshape(-1, 2)]
    pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    return FixedAreas(unit, np.unique(np.sort(pairs, axis=1), axis=0).reshape(-1, 2))


def soften(held: FixedAreas, soft: Sequence[Any], eligible: Any) -> FixedAreas:
    """Units in which edges across a soft boundary remain only for sets of areas, on one side, that can't be a region.

    Such a set stays whole.

    soft      n labels; a unit has its first area's
    eligible  the test of unit sums: int64[u] set of every unit -> bool for every set
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


def ends_of(held: FixedAreas, pairs: np.ndarray) -> np.ndarray:
    """Pairs of units as pairs of their first areas."""
    first = np.array(held.first(list(range(len(held.unit)))), np.int64)
    return first[pairs] if len(pairs) else np.empty((0, 2), np.int64)


def expanded(found: Regions, held: FixedAreas, soft: Sequence[Any] | None, areas: int) -> Regions:
    """The regions of units, as regions of areas."""
    inside = held.unit >= 0
    labels = np.full(len(held.unit), -1, np.int64)
    labels[inside] = found.labels[held.unit[inside]]
    details = dict(found.certificate.details) | {
        "areas": areas,
        "left_out": int((labels < 0).sum()),
        "excluded": int((~inside).sum()),
        "units": len(found.labels),
    }
    if soft is not None:
        mixed = [len({soft[i] for i in np.flatnonzero(labels == r).tolist()}) for r in range(found.regions)]
        details["regions_across_soft_boundaries"] = sum(m > 1 for m in mixed)
    return replace(_with_labels(found, labels, details), joined=ends_of(held, found.joined))


def join_light(
    g: Contiguity,
    features: np.ndarray,
    need: np.ndarray,
    l: int,
    places: np.ndarray,
    boundaries: np.ndarray | None,
    geographic: bool,
) -> tuple[Contiguity, np.ndarray]:
    """Make every light component a neighbor of its nearest other component, until no light one can be joined.

    In each round, each light component gains one edge: between the closest pair of an area inside and an area outside
    (on the globe if ``geographic``), within ``boundaries``. At most log2(components) rounds.

    returns  the graph with these edges, and the edges; int64[j, 2]
    """
    from scipy.spatial import cKDTree

    where = on_the_globe(places) if geographic else places
    zone = np.zeros(g.n, np.int64) if boundaries is None else boundaries
    added: list[tuple[int, int]] = []
    while True:
        count, component = components(g)
        light = ~eligible_rows(summed(features, component, count), need, l)
        fresh = []
        for c in np.flatnonzero(light):
            inside = np.flatnonzero(component == c)
            others = np.flatnonzero((zone == zone[inside[0]]) & (component != c))
            if not len(others):
                continue
            distance, nearest = cKDTree(where[others]).query(where[inside])
            i = int(np.argmin(distance))
            fresh.append((int(inside[i]), int(others[nearest[i]])))
        if not fresh:
            return g, np.array(added, np.int64).reshape(-1, 2)
        added += sorted({(min(pair), max(pair)) for pair in fresh})
        g = graph(np.concatenate([g.edges(), np.array(fresh, np.int64)]), g.n)


def water_of(
    water: Any, features: np.ndarray, exclude: Any, labelled: Mapping[str, Sequence[Any] | None]
) -> np.ndarray:
    """bool[n]: the areas that are water and not excluded.

    labelled  ``fixed`` and ``apart``, which water must not have

    Raises InputError for water with weight, PolicyError for water with a label.
    """
    found = flags(water, len(features), "water")
    if exclude is not None:
        found &= ~flags(exclude, len(features), "exclude")
    held = int((features[found] > 0).any(axis=1).sum())
    if held:
        raise InputError(f"{held} areas of water weigh something; say that they are land, or give them no weight")
    for name, labels in labelled.items():
        if labels is not None and (found & ~unlabelled(labels)).any():
            raise PolicyError(f"an area of water has a value of {name}; leave it out there, or let the area be land")
    return found


def attached(
    found: Regions, edges: Any, water: np.ndarray, limits: RegionLimits | None, sides: Sequence[Sequence[Any] | None]
) -> Regions:
    """Regions with water attached to an adjacent region, from the shores outwards; label -1 if no region can take it.

    limits  maxima, in which water counts
    sides   boundaries and soft boundaries, which water doesn't cross

    O(m log m) for m pairs.
    """
    g = graph(edges, len(water))
    zones = [coded(side, len(water), "boundary") for side in sides if side is not None]
    label, weight = found.labels.copy(), found.weights.reshape(found.regions, -1)[:, 0]
    home = [{tuple(z[v] for z in zones) for v in np.flatnonzero(label == r).tolist()} for r in range(found.regions)]
    waiting = np.flatnonzero(water).tolist()
    fresh: list[tuple[int, int]] = [(-1, -1)]
    while fresh:
        fresh = []
        for v in waiting:
            adjacent = label[g.indices[g.indptr[v] : g.indptr[v + 1]]]
            own = tuple(z[v] for z in zones)
            number = {
                r: int((adjacent == r).sum()) for r in np.unique(adjacent[adjacent >= 0]).tolist() if own in home[r]
            }
            for r in sorted(number, key=lambda r: (-number[r], weight[r], r)):
                if limits is None or limits.allow(np.append(np.flatnonzero(label == r), v)):
                    fresh.append((v, r))
                    break
        for v, r in fresh:  # several areas of one round can together exceed a region's maximum
            if limits is None or limits.allow(np.append(np.flatnonzero(label == r), v)):
                label[v] = r
        waiting = [v for v in waiting if label[v] < 0]
    return water_attached(found, label, water)


def water_attached(found: Regions, label: np.ndarray, water: np.ndarray) -> Regions:
    """Regions with water attached."""
    details = dict(found.certificate.details)
    details |= {
        "left_out": int((label < 0).sum()), "water": int(water.sum()),
        "water_attached": int((label >= 0).sum() - (found.labels >= 0).sum()),
        "excluded": details.get("excluded", 0) - int(water.sum()),
    }  # fmt: skip
    return _with_labels(found, label, details)


def _with_labels(found: Regions, labels: np.ndarray, details: dict[str, Any]) -> Regions:
    """Regions extended to more areas; sizes are recomputed, and the cost too if it counts areas."""
    more = int((labels >= 0).sum() - (found.labels >= 0).sum()) if details["objective"][0] == "count" else 0
    stated = found.certificate
    stated = replace(stated, cost=stated.cost + more, lower_bound=stated.lower_bound + more, details=details)
    sizes = np.bincount(labels[labels >= 0], minlength=found.regions)
    return replace(found, labels=labels, sizes=sizes, certificate=stated, cost=stated.cost)
