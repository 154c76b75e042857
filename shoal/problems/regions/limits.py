"""Maxima of regions: on sums such as people or areas, on the diameter, and on areas that must be apart.

A union of regions may exceed a maximum, so a partition of all areas needn't exist, and areas may have to be left out.
The objectives are, in this order: the least weight left out, the fewest areas left out, then the task's objectives. An
area that exceeds a maximum alone is a region of its own if it meets the thresholds, and no other area joins it.

Components with few enough connected eligible sets are solved to the optimum by integer programs, one for each
objective. Elsewhere the sets are those found by the search, reduced until they meet the maxima.

``LIMITS`` are the keywords of ``merge`` for maxima; ``limits_of`` reads and checks them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import coordinates, number, whole_number
from shoal.model.metric import EARTH_KM
from shoal.problems.regions.bounds import CountBound, count_bound
from shoal.problems.regions.methods import several_runs
from shoal.problems.regions.sets import ConnectedSets, Pool
from shoal.problems.regions.task import (
    NO_CAP,
    Contiguity,
    Districting,
    SearchClock,
    coded,
    components,
    eligible_rows,
    induced,
    on_the_globe,
    relabelled,
    summed,
    unlabelled,
)

_LISTED = 10  # "auto" lists the sets of components with up to this many areas
_CHUNK = 100  # areas of larger components that are processed together
_MET = 1_500  # most sets of a search that the program chooses from
_BRANCHES = 1
NO_DIAMETER = float("inf")
LIMITS = ("at_most", "apart", "max_diameter")


class RegionLimits(NamedTuple):
    """The maxima of a region of several areas.

    values    int64[n, c] of every area;  most: int64[c], the largest sums
    points    float64[n or 0, 2 or 3] of every area;  diameter: the largest distance between two of them
    stated    the request, for the certificate
    """

    values: np.ndarray
    most: np.ndarray
    points: np.ndarray
    diameter: float
    stated: Mapping[str, Any]

    def of(self, nodes: np.ndarray) -> RegionLimits:
        """These maxima, restricted to some of the areas."""
        points = self.points[nodes] if len(self.points) else self.points
        return self._replace(values=np.ascontiguousarray(self.values[nodes]), points=points)

    def allow(self, members: np.ndarray) -> bool:
        """Whether these areas may be a region: a single area, or no sum and no distance above its maximum."""
        if len(members) == 1:
            return True
        return bool((self.values[members].sum(axis=0) <= self.most).all()) and not self.far(members).any()

    def far(self, members: np.ndarray) -> np.ndarray:
        """int64[members]: the number of the others from which each area is too far."""
        if not len(self.points):
            return np.zeros(len(members), np.int64)
        own = self.points[members]
        found = np.array([int((((own - p) ** 2).sum(axis=1) > self.diameter**2).sum()) for p in own], np.int64)
        return found

    def near(self, area: int, members: np.ndarray) -> bool:
        """Whether an area is within the diameter of all given areas."""
        if not len(self.points):
            return True
        return bool((((self.points[members] - self.points[area]) ** 2).sum(axis=1) <= self.diameter**2).all())


def is_limited(given: Mapping[str, Any]) -> bool:
    """Whether keywords of ``merge`` limit the growth of regions."""
    return any(given.get(name) is not None for name in LIMITS)


def refuse_unions(given: Mapping[str, Any], why: str) -> None:
    """Raise PolicyError if a maximum of single areas is requested for unions of areas; ``why`` ends the sentence."""
    if given.get("max_diameter") is not None:
        raise PolicyError(f"⟨max_diameter⟩ looks at single areas{why}")


def refuse_below_thresholds(given: Mapping[str, Any], features: np.ndarray, need: np.ndarray) -> None:
    """Raise PolicyError if a maximum of a weight is below its threshold, because merged areas couldn't meet both."""
    for name, (values, limit) in (given.get("at_most") or {}).items():
        for j, least in enumerate(need.tolist()):
            if limit < least and np.array_equal(np.asarray(values), features[:, j]):
                raise PolicyError(
                    f"at most {limit} of {name!r} is below k = {least}, so no areas could be merged; raise it, or "
                    "lower k"
                )


def of_level(options: Mapping[str, Any], level: int, levels: int) -> dict[str, Any]:
    """The maxima and the number of regions that hold at one level.

    Raises PolicyError for a sequence without one value for each level, and for one number of regions for several
    levels.
    """

    def one(name: str, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return value
        if len(value) != levels:
            raise PolicyError(f"{name} has {len(value)} values for {levels} levels; give one for each, or one for all")
        return value[level]

    found: dict[str, Any] = {}
    if options.get("at_most"):
        each = {
            name: (values, one(f"⟨at_most⟩ {name!r}", limit)) for name, (values, limit) in options["at_most"].items()
        }
        found["at_most"] = {name: pair for name, pair in each.items() if pair[1] is not None} or None
    if options.get("regions") is not None:
        if levels > 1 and not isinstance(options["regions"], (list, tuple)):
            raise PolicyError(f"⟨regions⟩ is one number for {levels} levels; give one for each")
        found["regions"] = one("regions", options["regions"])
    return found


def with_water_counted(given: Mapping[str, Any], below: np.ndarray, wet: np.ndarray) -> dict[str, Any]:
    """The maxima of a level above water: values of water count in its region in ``below``, int64[n]."""
    maxima = given.get("at_most")
    return {"at_most": {n: (_moved_to_land(v, below, wet), most) for n, (v, most) in maxima.items()}} if maxima else {}


def _moved_to_land(values: Any, below: np.ndarray, wet: np.ndarray) -> np.ndarray:
    """Values of areas, where those of water are moved to an area of land in its region."""
    found = np.array(values)
    land = np.flatnonzero(~wet & (below >= 0))
    shore = dict(zip(below[land].tolist(), land.tolist(), strict=True))
    for v in np.flatnonzero(wet & (below >= 0)).tolist():
        found[shore[int(below[v])]] += found[v]
        found[v] = 0
    return found


def limits_of(
    given: Mapping[str, Any], apart: Sequence[Any] | None, places: np.ndarray | None, geographic: bool, n: int
) -> RegionLimits | None:
    """The maxima that keywords of ``merge`` request, checked; None without any.

    apart   one label for each of n areas, or None
    places  float64[n, 2], or None
    """
    asked = given.get("at_most")
    if asked is not None and not isinstance(asked, Mapping):
        raise PolicyError("⟨at_most⟩ is a mapping from a name to (a number for each area, the largest sum of a region)")
    sums = [_sum(name, pair, n) for name, pair in (asked or {}).items()]
    stated = {"sums": sorted(most for _, most in sums), "diameter": given.get("max_diameter")}
    if apart is not None:  # 1 for every label that two areas have
        codes, free = coded(apart, n, "apart"), unlabelled(apart)
        several = np.flatnonzero(np.bincount(codes[~free], minlength=1) > 1)
        sums += [(((codes == code) & ~free).astype(np.int64), 1) for code in several.tolist()]
    points, diameter = _diameter(given.get("max_diameter"), places, geographic)
    if not sums and diameter == NO_DIAMETER:
        return None
    values = np.column_stack([*(column for column, _ in sums), np.zeros((n, 0), np.int64)])
    return RegionLimits(values, np.array([most for _, most in sums], np.int64), points, diameter, stated)


def _sum(name: str, given: Any, n: int) -> tuple[np.ndarray, int]:
    """One maximum of a sum: int64[n] of every area, and the largest sum."""
    if not isinstance(given, Sequence) or len(given) != 2:
        raise PolicyError(f"at_most[{name!r}] is a pair: a number for each area, and the largest sum of a region")
    found = np.asarray(given[0])
    if found.shape != (n,):
        raise InputError(f"the values of ⟨at_most⟩ {name!r} have shape {found.shape}; give one for each of {n} areas")
    whole = coordinates(found, f"the values of ⟨at_most⟩ {name!r}")
    if not (np.isfinite(whole).all() and (whole == np.floor(whole)).all() and whole.min(initial=0) >= 0):
        raise InputError(f"the values of ⟨at_most⟩ {name!r} must be whole numbers of at least 0")
    return whole.astype(np.int64), whole_number(f"at_most[{name!r}]", given[1])


def _diameter(asked: Any, places: np.ndarray | None, geographic: bool) -> tuple[np.ndarray, float]:
    """The areas as points, and the largest distance of two: in the plane's units, or if geographic as a chord in km."""
    if asked is None:
        return np.zeros((0, 2)), NO_DIAMETER
    most = number("max_diameter", asked, "a diameter is a number above 0 (km, or the plane's units)", lambda x: x > 0)
    if places is None:
        raise PolicyError(
            "⟨max_diameter⟩ needs the centers of the areas: coordinates, or a file of polygons (⟨shapes=FILE⟩)"
        )
    if not geographic:
        return places, most
    return EARTH_KM * on_the_globe(places), float(2 * EARTH_KM * np.sin(min(most / (2 * EARTH_KM), np.pi / 2)))


def limited(
    task: Districting, bound: CountBound, label: np.ndarray, limits: RegionLimits, whole: bool
) -> tuple[np.ndarray, dict[str, Any]]:
    """Regions that meet the maxima, -1 for areas left out; and details of the proof.

    label  a partition that meets all other conditions
    whole  list the sets of every component if possible, else only of small ones
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
    """Disjoint sets that leave out the least weight, then the fewest areas, then have the best objectives; as areas.

    Every area may be left out, as a set of its own that has no value in the objectives.
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
    """The areas of a component in unions of neighboring whole parts, of about ``_CHUNK`` areas each."""
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
            adjacent = np.concatenate([g.indices[g.indptr[v] : g.indptr[v + 1]] for v in members])
            waiting += [q for q in dict.fromkeys(label[adjacent].tolist()) if q in left]
        chunks.append(np.array(sorted(chunk)))
    return chunks


def _from_search(task: Districting, nodes: np.ndarray, label: np.ndarray, limits: RegionLimits) -> list[np.ndarray]:
    """Regions of some areas, chosen from those that the search finds there."""
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
        begun, _ = several_runs(part, bound, begun, (name,), pool, SearchClock.of(None))
    met: dict[bytes, np.ndarray] = {}
    for members in reversed(list(pool.sets.values())):
        for kept in [members] if own.allow(members) else _reduced_to_maxima(part, members, own):
            if len(met) < _MET:
                met.setdefault(kept.tobytes(), kept)
    for v in np.flatnonzero((part.weights >= part.need).all(axis=1)).tolist():
        if part.l == 1:
            met.setdefault(np.array([v]).tobytes(), np.array([v]))
    return choose(task, nodes, list(met.values()), task.objective, _BRANCHES)


def _reduced_to_maxima(task: Districting, members: np.ndarray, limits: RegionLimits) -> list[np.ndarray]:
    """A connected eligible remainder of a region that exceeds a maximum, or nothing.

    Areas are removed one by one: the one with the largest value in the exceeded sum whose removal leaves the rest
    connected and eligible.
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
    """Let areas left out join an adjacent region that can take them, as long as there is one; in place.

    A region of one area above a maximum can take nothing. A region can't take an area that makes it less diverse than
    required.
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
            adjacent = np.unique(label[g.indices[g.indptr[v] : g.indptr[v + 1]]])
            for r in adjacent[adjacent >= 0].tolist():
                fits = (total[r] + limits.values[v] <= limits.most).all()
                fits &= eligible_rows(sums[r : r + 1] + task.features[v], task.need, task.l)[0]
                if fits and limits.near(v, np.flatnonzero(label == r)):
                    label[v] = r
                    total[r] += limits.values[v]
                    sums[r] += task.features[v]
                    changed = True
                    break


def placed(task: Districting, label: np.ndarray) -> tuple[Districting, np.ndarray]:
    """The task restricted to the areas that are in a region, and their regions."""
    held = label >= 0
    g, nodes = induced(task.graph, held)
    return task.on(g, nodes), relabelled(label[held])
