"""Limits of regions and changes of the graph before they are solved: maxima, fixed and excluded areas, water.

Maxima: no region is above so many people, so many areas, or one of those that are kept apart.  A union of regions may
break a maximum, so a partition of everything need not exist: areas may have to stay out.  What is asked for is, in this
order, the least weight left out, the fewest areas left out, then the objectives.  An area that is above a maximum by
itself is a region of its own where it meets the thresholds, and no other joins it.

Components whose connected eligible sets can be listed are solved by integer programs, one for each aim, to the optimum.
Elsewhere the sets are those that the search met, cut back to the maxima where they break them.

What is fixed beforehand: areas fixed together become one, excluded ones go, and soft boundaries lose the edges across
them that nobody needs.  Components too light alone are joined to the nearest one.  All of it changes the graph and
nothing else, so every method obeys it and every bound holds.

Water: areas that nobody lives in and that connect no shores, attached to the regions beside them afterwards.  A lake
that is an area like any other makes one region of two shores, and alone it is too light for a region.  So water is
taken out before anything is solved, which every method obeys and every bound survives, and goes to a region beside it
at the end: the one with most areas next to it, then the lightest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import array_of, coordinates, whole_number
from shoal.problems.regions.bounds import CountBound, count_bound
from shoal.problems.regions.search import improve
from shoal.problems.regions.sets import ConnectedSets, Pool
from shoal.problems.regions.task import (
    NO_CAP,
    Contiguity,
    Districting,
    Regions,
    SearchClock,
    coded,
    components,
    eligible_rows,
    graph,
    induced,
    relabelled,
    summed,
    without_crossings,
)

_LISTED = 10  # components of so many areas are listed by "auto"
_CHUNK = 100  # areas of larger ones that are looked at together
_MET = 1_500  # sets of a search that are chosen from at most
_BRANCHES = 1
NO_DIAMETER = float("inf")


class RegionLimits(NamedTuple):
    """What a region of several areas may not exceed.

    values    int64[n, c] of every area;  most int64[c], the largest sums
    points    float64[n or 0, 2 or 3] of every area;  diameter, the largest distance between two of them
    """

    values: np.ndarray
    most: np.ndarray
    points: np.ndarray
    diameter: float

    def of(self, nodes: np.ndarray) -> RegionLimits:
        """These limits for some of the areas."""
        points = self.points[nodes] if len(self.points) else self.points
        return self._replace(values=np.ascontiguousarray(self.values[nodes]), points=points)

    def allow(self, members: np.ndarray) -> bool:
        """Whether these areas may be a region: one alone, or none of the sums and distances above its maximum."""
        if len(members) == 1:
            return True
        return bool((self.values[members].sum(axis=0) <= self.most).all()) and not self.far(members).any()

    def far(self, members: np.ndarray) -> np.ndarray:
        """How many of the others each of these areas is too far from; int64[members]."""
        if not len(self.points):
            return np.zeros(len(members), np.int64)
        own = self.points[members]
        found = np.array([int((((own - p) ** 2).sum(axis=1) > self.diameter**2).sum()) for p in own], np.int64)
        return found

    def near(self, area: int, members: np.ndarray) -> bool:
        """Whether an area is within the diameter of all of some others."""
        if not len(self.points):
            return True
        return bool((((self.points[members] - self.points[area]) ** 2).sum(axis=1) <= self.diameter**2).all())


def maxima(
    at_most: Mapping[str, tuple[Any, int]] | None,
    apart: Sequence[Any] | None,
    points: np.ndarray,
    diameter: float,
    n: int,
) -> RegionLimits | None:
    """Largest sums by name, 1 for every value of ``apart`` that two areas have, and the largest distance."""
    values, most = [], []
    if at_most is not None and not isinstance(at_most, Mapping):
        raise PolicyError("⟨at_most⟩ is a mapping from a name to (a number for each area, the largest sum of a region)")
    for name, given in (at_most or {}).items():
        if not isinstance(given, Sequence) or len(given) != 2:
            raise PolicyError(f"at_most[{name!r}] is a pair: a number for each area, and the largest sum of a region")
        column, limit = given
        found = np.asarray(column)
        if found.shape != (n,):
            raise InputError(
                f"the values of ⟨at_most⟩ {name!r} have shape {found.shape}; give one for each of {n} areas"
            )
        whole = coordinates(found, f"the values of ⟨at_most⟩ {name!r}")
        if not (np.isfinite(whole).all() and (whole == np.floor(whole)).all() and whole.min(initial=0) >= 0):
            raise InputError(f"the values of ⟨at_most⟩ {name!r} must be whole numbers of at least 0")
        values.append(whole.astype(np.int64))
        most.append(whole_number(f"at_most[{name!r}]", limit))
    if apart is not None:
        codes, free = coded(apart, n, "apart"), _unlabelled(apart)
        for code in np.flatnonzero(np.bincount(codes[~free], minlength=1) > 1).tolist():
            values.append(((codes == code) & ~free).astype(np.int64))
            most.append(1)
    if not values and diameter == NO_DIAMETER:
        return None
    return RegionLimits(
        np.column_stack([*values, np.zeros((n, 0), np.int64)]), np.array(most, np.int64), points, diameter
    )


def _unlabelled(labels: Sequence[Any]) -> np.ndarray:
    """bool[labels]: where there is none, None or ""."""
    return np.array([label is None or label == "" for label in labels], np.bool_)


def limited(
    task: Districting, bound: CountBound, label: np.ndarray, limits: RegionLimits, whole: bool
) -> tuple[np.ndarray, dict[str, Any]]:
    """Regions that keep the maxima, -1 for areas that none of them takes; and what is known about them.

    label  a partition that keeps everything else
    whole  list the sets of every component, if that can be done, else of small ones
    """
    found = np.full(task.n, -1, np.int64)
    clock = SearchClock.of(task.seconds)
    proved, fresh = 0, 0
    size = np.bincount(bound.component)
    for c in range(len(size)):
        nodes = np.flatnonzero(bound.component == c)
        listed = ConnectedSets.of(task, nodes, clock, NO_CAP) if whole or len(nodes) <= _LISTED else None
        if listed is not None:
            own = limits.of(nodes)
            kept = [s for s in listed.sets if own.allow(s)]
            parts = choose(task, nodes, kept, task.objective, None)
            proved += len(nodes)
        else:
            parts = []
            for chunk in _chunks(task.graph, label, nodes):
                parts += _from_search(task, chunk, label[chunk], limits)
        for members in parts:
            found[members] = fresh
            fresh += 1
    _absorb(task, found, limits)
    out = found < 0
    details = {
        "left_out_by_maxima": int(out.sum()),
        "areas_settled_under_maxima": proved,
        "above_a_maximum_alone": int((limits.values > limits.most).any(axis=1).sum()),
    }
    return relabelled(found), details


def choose(
    task: Districting, nodes: np.ndarray, sets: Sequence[np.ndarray], objective: tuple[str, ...], branches: int | None
) -> list[np.ndarray]:
    """Disjoint sets (places in ``nodes``) that leave out least weight, then fewest areas, then are best; as areas.

    Every area may stay out as a set of its own that counts for nothing else.
    """
    real = len(sets)
    listed = ConnectedSets(task, nodes, [*sets, *(np.array([i]) for i in range(len(nodes)))])
    alone = np.zeros(real + len(nodes))
    alone[real:] = 1
    usable = np.arange(real + len(nodes))
    answer: list[int] = []
    weight = np.concatenate([np.zeros(real), task.features[nodes, 0].astype(float)])
    for name in ("weight", "areas", *objective):
        if name in ("max", "excess"):
            worth = np.where(alone > 0, 0.0, listed.worth(name))
            least, met = listed.lowest(worth, usable, branches)
            usable, answer = usable[worth[usable] <= least], met or answer
            continue
        cost = weight if name == "weight" else alone if name == "areas" else listed.worth(name) * (alone == 0)
        if not cost[usable].any():
            continue
        solved = listed.solve(cost, usable, branches)
        if solved is None:
            break
        answer, total = solved
        exact = name in ("weight", "areas", "count")
        listed.rows.append((cost, total + (0.5 if exact else 1e-7 * max(1.0, abs(total)))))
    return [nodes[listed.sets[s]] for s in answer if s < real]


def _chunks(g: Contiguity, label: np.ndarray, nodes: np.ndarray) -> list[np.ndarray]:
    """The areas of a component in unions of whole parts, neighbors together, of about ``_CHUNK`` areas each."""
    if len(nodes) <= _CHUNK:
        return [nodes]
    parts: dict[int, list[int]] = {}
    for v in nodes.tolist():
        parts.setdefault(int(label[v]), []).append(v)
    left = dict(parts)
    chunks: list[np.ndarray] = []
    while left:
        waiting = [next(iter(left))]
        chunk: list[int] = []
        while waiting and len(chunk) < _CHUNK:
            p = waiting.pop(0)
            if p not in left:
                continue
            members = left.pop(p)
            chunk += members
            beside = np.concatenate([g.indices[g.indptr[v] : g.indptr[v + 1]] for v in members])
            waiting += [q for q in dict.fromkeys(label[beside].tolist()) if q in left]
        chunks.append(np.array(sorted(chunk)))
    return chunks


def _from_search(task: Districting, nodes: np.ndarray, label: np.ndarray, limits: RegionLimits) -> list[np.ndarray]:
    """Regions of some areas, chosen from those that the search meets there."""
    mask = np.zeros(task.n, np.bool_)
    mask[nodes] = True
    g, _ = induced(task.graph, mask)
    part = replace(task.on(g, nodes), seconds=None)
    own = limits.of(nodes)
    pool = Pool()
    begun = relabelled(label)
    pool.add(begun)
    bound = count_bound(part, steps=2_000)
    for name in ("sumsq", "count", *(["compact"] if len(own.points) else [])):
        begun = improve(part, bound, begun, None, (name,), pool)
        pool.add(begun)
    met: dict[bytes, np.ndarray] = {}
    for members in reversed(list(pool.sets.values())):
        for kept in [members] if own.allow(members) else _cut_back(part, members, own):
            if len(met) < _MET:
                met.setdefault(kept.tobytes(), kept)
    for v in np.flatnonzero((part.weights >= part.need).all(axis=1)).tolist():
        if part.l == 1:
            met.setdefault(np.array([v]).tobytes(), np.array([v]))
    return choose(task, nodes, list(met.values()), task.objective, _BRANCHES)


def _cut_back(task: Districting, members: np.ndarray, limits: RegionLimits) -> list[np.ndarray]:
    """An eligible connected rest of a region that is above a maximum, or nothing.

    Areas go one by one, the first whose loss leaves the rest connected and eligible, the heaviest of the broken sum
    first.
    """
    inside = members
    while not limits.allow(inside):
        over = limits.values[inside].sum(axis=0) > limits.most
        worst = limits.values[inside][:, over].max(axis=1) if over.any() else limits.far(inside)
        order = np.argsort(-worst, kind="stable")
        for i in order.tolist():
            rest = np.delete(inside, i)
            total = task.features[rest].sum(axis=0, keepdims=True)
            eligible = len(rest) and eligible_rows(total, task.need, task.l)[0]
            if eligible and components(induced(task.graph, np.isin(np.arange(task.n), rest))[0])[0] == 1:
                inside = rest
                break
        else:
            return []
    return [inside]


def _absorb(task: Districting, label: np.ndarray, limits: RegionLimits) -> None:
    """Areas left out join a region beside them that has room, as long as one has; in place.

    A region of one area that is above a maximum has room for nothing, nor has one that an area would make less diverse
    than it has to be.
    """
    if not (label >= 0).any():
        return
    g, held = task.graph, label >= 0
    total, sums = (summed(values[held], label[held]) for values in (limits.values, task.features))
    waiting = np.flatnonzero(~held).tolist()
    changed = True
    while changed:
        changed = False
        for v in [v for v in waiting if label[v] < 0]:
            beside = np.unique(label[g.indices[g.indptr[v] : g.indptr[v + 1]]])
            for r in beside[beside >= 0].tolist():
                fits = (total[r] + limits.values[v] <= limits.most).all()
                fits &= eligible_rows(sums[r : r + 1] + task.features[v], task.need, task.l)[0]
                if fits and limits.near(v, np.flatnonzero(label == r)):
                    label[v] = r
                    total[r] += limits.values[v]
                    sums[r] += task.features[v]
                    changed = True
                    break


def placed(task: Districting, label: np.ndarray) -> tuple[Districting, np.ndarray]:
    """The task on the areas that are in a region, and their regions."""
    held = label >= 0
    g, nodes = induced(task.graph, held)
    return task.on(g, nodes), relabelled(label[held])


class FixedAreas(NamedTuple):
    """The graph after areas fixed together became units, and excluded areas left.

    unit   int64[n]     what each area became part of, numbered by first area; -1 excluded
    edges  int64[m, 2]  pairs of units
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
        """Weighted centers of the units; float64[u, 2]."""
        held = self.unit >= 0
        mass = np.maximum(weight, 1e-9)[held]
        total = np.bincount(self.unit[held], weights=mass)
        return np.column_stack([np.bincount(self.unit[held], weights=mass * places[held, j]) / total for j in (0, 1)])


def contract(
    edges: np.ndarray, n: int, exclude: Any, fixed: Sequence[Any] | None, boundaries: Sequence[Any] | None
) -> FixedAreas:
    """Areas with the same value of ``fixed`` as one, those where ``exclude`` holds gone.

    fixed  n labels, None or "" for an area that goes where it will

    Raises PolicyError for areas fixed together that are not connected by themselves (within the boundaries).
    """
    gone = np.zeros(n, np.bool_) if exclude is None else _flags(exclude, n, "exclude")
    together = np.arange(n)
    if fixed is not None:
        codes, free = coded(fixed, n, "fixed"), _unlabelled(fixed)
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
            sets = "a set of areas fixed together is" if apart == 1 else f"{apart} sets of areas fixed together are"
            raise PolicyError(
                f"{sets} not connected{within}; fix the areas between them as well, or add the pair of neighbors"
            )
    return _units(edges, together, gone)


def _flags(given: Any, n: int, name: str) -> np.ndarray:
    """bool[n]; InputError for anything but a truth value for each area."""
    found = array_of(given, name, "one truth value for each area")
    if found.shape != (n,):
        raise InputError(f"{name} has shape {found.shape}; give one truth value for each of {n} areas")
    return found.astype(np.bool_)


def refuse_torn(held: FixedAreas, apart: Sequence[Any]) -> None:
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


def _units(edges: np.ndarray, together: np.ndarray, gone: np.ndarray) -> FixedAreas:
    unit = relabelled(np.where(gone, -1, together))
    pairs = unit[np.asarray(edges, np.int64).reshape(-1, 2)]
    pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    return FixedAreas(unit, np.unique(np.sort(pairs, axis=1), axis=0).reshape(-1, 2))


def soften(held: FixedAreas, soft: Sequence[Any], eligible: Any) -> FixedAreas:
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


def ends_of(held: FixedAreas, pairs: np.ndarray) -> np.ndarray:
    """Pairs of units as pairs of their first areas."""
    first = np.array(held.first(list(range(len(held.unit)))), np.int64)
    return first[pairs] if len(pairs) else np.empty((0, 2), np.int64)


def expanded(found: Regions, held: FixedAreas, soft: Sequence[Any] | None, areas: int) -> Regions:
    """The regions of the units as regions of the areas."""
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
    """Make every light component a neighbor of the nearest other one, until none is light that could be helped.

    In each round each light component gains one edge, between the pair of areas, one inside and one outside, that lie
    nearest each other (on the globe when ``geographic``), within ``boundaries``.  At most log2(components) rounds.

    returns  the graph with these edges, and the edges; int64[j, 2]
    """
    from scipy.spatial import cKDTree

    where = _on_the_globe(places) if geographic else places
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


def _on_the_globe(places: np.ndarray) -> np.ndarray:
    """Longitude and latitude in degrees as points on the unit sphere: nearest there is nearest on the ground."""
    lng, lat = np.radians(places[:, 0]), np.radians(places[:, 1])
    return np.column_stack([np.cos(lat) * np.cos(lng), np.cos(lat) * np.sin(lng), np.sin(lat)])


def water_of(
    water: Any, features: np.ndarray, exclude: Any, labelled: Mapping[str, Sequence[Any] | None]
) -> np.ndarray:
    """bool[n]: the areas that are water and not excluded.

    labelled  ``fixed`` and ``apart``, where water has no place

    Raises InputError for water that weighs something, PolicyError for water with a label.
    """
    found = _flags(water, len(features), "water")
    if exclude is not None:
        found &= ~np.asarray(exclude).astype(np.bool_)
    held = int((features[found] > 0).any(axis=1).sum())
    if held:
        raise InputError(f"{held} areas of water weigh something; say that they are land, or give them no weight")
    for name, labels in labelled.items():
        if labels is not None and (found & ~_unlabelled(labels)).any():
            raise PolicyError(f"an area of water has a value of {name}; leave it out there, or let the area be land")
    return found


def attached(
    found: Regions, edges: Any, water: np.ndarray, limits: RegionLimits | None, sides: Sequence[Sequence[Any] | None]
) -> Regions:
    """Water in a region beside it, from the shores outwards; alone (label -1) where none has room, or none is there.

    limits  maxima, which water counts for;  sides  boundaries and soft boundaries, which water does not cross

    O(m log m) for m pairs.
    """
    g = graph(edges, len(water))
    zones = [coded(side, len(water), "boundaries") for side in sides if side is not None]
    label, weight = found.labels.copy(), found.weights.reshape(found.regions, -1)[:, 0]
    home = [{tuple(z[v] for z in zones) for v in np.flatnonzero(label == r).tolist()} for r in range(found.regions)]
    waiting = np.flatnonzero(water).tolist()
    fresh: list[tuple[int, int]] = [(-1, -1)]
    while fresh:
        fresh = []
        for v in waiting:
            beside = label[g.indices[g.indptr[v] : g.indptr[v + 1]]]
            own = tuple(z[v] for z in zones)
            number = {r: int((beside == r).sum()) for r in np.unique(beside[beside >= 0]).tolist() if own in home[r]}
            for r in sorted(number, key=lambda r: (-number[r], weight[r], r)):
                if limits is None or limits.allow(np.append(np.flatnonzero(label == r), v)):
                    fresh.append((v, r))
                    break
        for v, r in fresh:  # several in one round may overfill a region together
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
    """Regions of other areas, at least as many; sizes follow, and the cost where it counts areas."""
    more = int((labels >= 0).sum() - (found.labels >= 0).sum()) if details["objective"][0] == "count" else 0
    stated = found.certificate
    stated = replace(stated, cost=stated.cost + more, lower_bound=stated.lower_bound + more, details=details)
    sizes = np.bincount(labels[labels >= 0], minlength=found.regions)
    return replace(found, labels=labels, sizes=sizes, certificate=stated, cost=stated.cost)
