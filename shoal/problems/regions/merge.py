"""The public functions for regions: arrays in, regions with a certificate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple, Unpack

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import drawn, recorded, suggesting
from shoal.problems.regions.answer import answer
from shoal.problems.regions.bounds import count_bound
from shoal.problems.regions.limits import (
    LIMITS,
    RegionLimits,
    is_limited,
    of_level,
    refuse_unions,
    with_water_counted,
)
from shoal.problems.regions.request import (
    Conditions,
    Request,
    begin_of,
    inside,
    moments,
    places_of,
    randomness,
    request_of,
    whole,
)
from shoal.problems.regions.task import (
    Contiguity,
    Districting,
    Nested,
    Regions,
    coded,
    components,
    eligible_rows,
    graph,
    induced,
    inertia,
    summed,
    without_crossings,
)
from shoal.problems.regions.units import (
    attached,
    contract,
    expanded,
    flags,
    join_light,
    refuse_fixed_and_apart,
    soften,
    water_attached,
)
from shoal.threads import interruptible
from shoal.watching import watched, within

WEIGHT = "weight"  # the unit of weights if the caller names none


@watched
@suggesting
@interruptible
@recorded
def merge(
    edges: Any,
    weights: Any,
    k: int | Sequence[int],
    method: str = "auto",
    *,
    objective: str | Sequence[str] | None = None,
    effort: str | float = "balanced",
    seed: int | None = None,
    unit: str = WEIGHT,
    **conditions: Unpack[Conditions],
) -> Regions:
    """Connected regions of weight at least k, merged from areas.

    edges        int[m, 2]  pairs of neighboring areas, numbered 0..n-1
    weights      int[n], or int[n, t] with k a sequence of t thresholds, all of which every region must meet
    method       "tree", "search", "exact", or "auto"
    objective    what to minimize first: "max" heaviest region (then number of regions, then squares), "count" areas
                 merged away (then squares), "sumsq" sum of squares, "excess" weight over max(k, heaviest area),
                 "compact" (most regions, then moment of inertia, or border edges if there are no coordinates),
                 "similar" (most regions, then the variance inside them of the columns in ``similar``); or a sequence of
                 these. None: "similar" if you pass those columns, otherwise "max"
    effort       "fast", "balanced", "thorough", or seconds
    seed         int for the same answer again; None for fresh randomness
    unit         what the weights count, such as "people"; a release names the column of the weights by default
    conditions   what regions must also satisfy, by keyword: ``shoal.regions.Conditions`` describes each

    Raises InputError for arrays that do not fit together, PolicyError for a request that contradicts itself,
    InfeasibleError if no component reaches the thresholds.

    Cost and certificate refer to the first objective; see ``Regions`` for the rest. "tree" takes O(m log n) time for
    m pairs and each exchange of edges, and "search" the time that the effort allows. "exact" has no polynomial bound.
    Source: Du, Eppstein, Goodrich, Lueker 2009, Theorem 3 (factor 3 or 4 for "max"); docs/regions.md.

    Examples:
        >>> found = merge([(0, 1), (1, 2), (2, 3)], [3, 2, 4, 3], k=5)
        >>> found.labels.tolist(), found.certificate.cost, found.certificate.optimal
        ([0, 0, 1, 1], 7, True)
    """
    request = request_of(
        edges, weights, k, method, conditions, objective=objective, effort=effort, seed=seed, unit=unit
    )  # fmt: skip
    found = _solved_on_units(request, method) if request.in_units else _solved(request, method)
    if request.wet is not None:
        found = attached(found, edges, request.wet, request.limits, (request.boundary, request.soft_boundary))
    return replace(found, certificate=replace(found.certificate, details=_details(found, request)))


def _details(found: Regions, request: Request) -> dict[str, Any]:
    """Further details for the certificate: the variance inside similar regions, and the requested maxima."""
    details = dict(found.certificate.details)
    if len(request.alike):
        details["variance_inside"] = inside(request.alike, found.labels)
    if request.limits is not None:
        details["maxima"] = dict(request.limits.stated)
    return details


def _solved_on_units(request: Request, method: str) -> Regions:
    """The answer on units: fixed areas as one, excluded areas removed, edges reduced by soft boundaries."""
    n, soft = len(request.features), request.soft_boundary
    held = contract(graph(request.edges, n).edges(), n, request.dry, request.fixed, request.boundary)
    if (held.unit < 0).all():
        raise InfeasibleError("every area is excluded, so there is none to merge")
    if request.apart is not None:
        refuse_fixed_and_apart(held, request.apart)
    if soft is not None:
        both = soft if request.boundary is None else list(zip(soft, request.boundary, strict=True))
        need, l = request.need, request.l
        held = soften(held, both, lambda piece: _sets_eligible(held.summed(request.features), piece, need, l))
    return expanded(_solved(request.of(held), method), held, soft, n)


class _PosedTask(NamedTuple):
    """A task; bool[n], the areas that it contains; pairs declared neighbors; and its maxima."""

    task: Districting
    keep: np.ndarray
    joined: np.ndarray
    limits: RegionLimits | None


def _solved(request: Request, method: str) -> Regions:
    """Run the method on the components that are eligible as a whole."""
    posed = _task_of(request)
    return answer(posed.task, method, posed.keep, posed.joined, request.unit, posed.limits)


def _task_of(request: Request) -> _PosedTask:
    """The task of the components that are eligible as a whole."""
    features, need, l, places = request.features, request.need, request.l, request.places
    n = len(features)
    g = graph(request.edges, n)
    border = None if request.boundary is None else coded(request.boundary, n, "boundary")
    if border is not None:
        g = without_crossings(g, border)
    joined = np.empty((0, 2), np.int64)
    if request.islands == "join":
        if places is None:
            raise PolicyError(
                "⟨islands='join'⟩ needs the places of the areas: columns of longitude and latitude, or polygons; give "
                "them, or say ⟨islands='leave'⟩"
            )
        g, joined = join_light(g, features, need, l, places, border, request.geographic)
    keep = _eligible_components(g, features, need, l)
    if not keep.any():
        raise InfeasibleError(_why_not(g, request, border is not None))
    sub, nodes = induced(g, keep)
    geo = np.zeros((0, 4))
    if places is not None and "compact" in request.chain:
        geo = moments(places, features[:, 0], request.geographic)[nodes]
    task = Districting(
        graph=sub,
        features=np.ascontiguousarray(features[nodes]),
        need=need,
        l=l,
        geo=geo,
        objective=request.chain,
        start=begin_of(request.start, keep, sub, features[nodes], need, l),
        effort=request.effort,
        seconds=request.seconds,
        state=request.state,
        alike=request.alike[nodes] if len(request.alike) else request.alike,
        regions=request.regions,
    )
    limits = request.limits
    return _PosedTask(task, keep, joined, None if limits is None else limits.of(nodes))


def most_regions(edges: Any, found: Regions, weights: Any, options: Mapping[str, Any]) -> int:
    """An upper bound of the number of regions at the thresholds of ``found``, over all partitions of its areas.

    edges    int[m, 2]: pairs of neighbors
    found    regions whose areas may be regrouped, except those left out
    options  as for ``merge``; boundary, fixed, and islands="join" lower the bound

    It is a bound under fewer constraints, so it holds under all others too.
    """
    need = np.array(found.k, np.int64)
    columns = np.asarray(weights)
    columns = whole(columns[:, None] if columns.ndim == 1 else columns, "weights")
    ends = np.concatenate([np.asarray(edges, np.int64).reshape(-1, 2), found.joined])
    out = found.labels < 0
    if options.get("water") is not None:
        out |= flags(options["water"], len(columns), "water")
    held = contract(ends, len(columns), out, options.get("fixed"), options.get("boundary"))
    request = Request(
        edges=held.edges, features=held.summed(columns), need=need, l=1, chain=("count",), effort=0.1, seconds=None,
        state=randomness(1), unit="",
        boundary=None if options.get("boundary") is None else held.first(list(options["boundary"])),
    )  # fmt: skip
    return count_bound(_task_of(request).task, steps=2_000).value


def _eligible_components(g: Contiguity, features: np.ndarray, need: np.ndarray, l: int) -> np.ndarray:
    """bool[n]: the areas in components that are eligible as a whole."""
    _, component = components(g)
    return _sets_eligible(features, component, need, l)[component]


def _sets_eligible(features: np.ndarray, piece: np.ndarray, need: np.ndarray, l: int) -> np.ndarray:
    """bool per set: whether its members' sums are eligible."""
    return eligible_rows(summed(features, piece), need, l)


def _why_not(g: Contiguity, request: Request, bounded: bool) -> str:
    features, need, l = request.features, request.need, request.l
    count, component = components(g)
    within = "inside the boundaries " if bounded else ""
    for j, least in enumerate(need.tolist()):
        weight = np.bincount(component, weights=features[:, j])
        if weight.sum() < least:
            return f"all areas together weigh {int(weight.sum()):,}, below k = {least:,}; lower k"
        if weight.max() < least:
            join = ", or join what is apart with ⟨islands='join'⟩" if request.islands == "leave" else ""
            return (
                f"the heaviest connected set of areas {within}weighs {int(weight.max()):,}, below k = {least:,}; "
                f"lower k{join}"
            )
    if l > 1:
        return (
            f"no connected set of areas {within}({count} in all) meets every threshold and has each sensitive value at "
            f"most 1/{l} of its records; lower l or k"
        )
    return f"no connected set of areas {within}({count} in all) meets all thresholds {need.tolist()} at once; lower one"


@watched
@suggesting
def nested(edges: Any, weights: Any, ks: Sequence[Any], method: str = "auto", **options: Any) -> Nested:
    """Regions at rising thresholds, a hierarchy in which each level merges the regions of the level below.

    ks       thresholds (or sequences of thresholds, as for ``merge``), rising
    options  as for ``merge``, for every level. A maximum in ``at_most`` and ``regions`` can be a sequence with one
             value for each level, None if a level has none. Not ``start``; no largest diameter if there are several
             levels

    Areas left out at one level stay out above it, water stays in its region, and areas that ``islands="join"`` joined
    are neighbors from that level on.
    The bounds of a level hold for all unions of the regions below; ``Nested.most`` for all partitions of the areas.
    Raises what ``merge`` raises, and takes its time for each level.
    """
    steps = _rising(ks)
    if options.get("start") is not None:
        raise PolicyError("start goes with one threshold; leave it out where there are levels")
    if len(steps) > 1:
        refuse_unions(options, ", so it goes with one threshold; leave it out, or levels")
    ends = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    levels: list[Any] = []
    labels: list[np.ndarray] = []
    bounds: list[int] = []
    held = {**options, "seed": drawn() if options.get("seed") is None else options["seed"]}
    wet = None if options.get("water") is None else flags(options["water"], np.asarray(weights).shape[0], "water")
    for i, k in enumerate(steps):
        own = held | of_level(options, i, len(steps))
        if i:
            own = above(own, labels[-1], wet)
        with within(i / len(steps), (i + 1) / len(steps)):
            found = merge(ends, weights, list(k), method, **own)
        if i and wet is not None:
            found = with_water(found, labels[-1], wet)
        bounds.append(found.upper_bound if not i else most_regions(ends, found, weights, options))
        levels.append(found)
        labels.append(found.labels)
        ends = np.concatenate([ends, found.joined])
    n = len(np.asarray(weights))
    return Nested(
        tuple(levels), np.column_stack(labels) if labels else np.empty((n, 0), np.int64), tuple(bounds),
    )  # fmt: skip


def above(options: Mapping[str, Any], below: np.ndarray, wet: np.ndarray | None) -> dict[str, Any]:
    """The options of ``merge`` for a level that merges the regions ``below``, int64[n], -1 for none.

    wet  bool[n]: areas of water. They aren't merged, but their values count in the region below that contains them
    """
    land = below if wet is None else np.where(wet, -1, below)
    own = {**options, "water": None, "fixed": ["" if r < 0 else str(r) for r in land.tolist()]}
    own["exclude"] = land < 0 if (land < 0).any() else None
    return own if wet is None else own | with_water_counted(own, below, wet)


def with_water(found: Regions, below: np.ndarray, wet: np.ndarray) -> Regions:
    """The regions of a level, with the water of the regions ``below``."""
    return water_attached(found, _followed(found.labels, below), wet & (below >= 0))


def _followed(labels: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Labels of a level for all areas of each region below, from those areas that were merged."""
    of_region = np.full(int(below.max(initial=-1)) + 1, -1, np.int64)
    placed = labels >= 0
    of_region[below[placed]] = labels[placed]
    return np.where(below >= 0, of_region[below], -1)


def _rising(ks: Sequence[Any]) -> list[tuple[int, ...]]:
    """The thresholds of every level; PolicyError if one is lower than before, or if none is higher."""
    if isinstance(ks, (str, bytes)) or not np.iterable(ks) or not len(list(ks)):
        raise PolicyError("thresholds of levels are a list that rises, [20000, 100000] say")
    steps = [tuple(np.atleast_1d(k).tolist()) for k in ks]
    for last, level in pairwise(steps):
        if len(last) != len(level) or any(a < b for a, b in zip(level, last, strict=True)):
            raise PolicyError(f"thresholds must rise from level to level, but {level} comes after {last}")
    return steps


class Choice(NamedTuple):
    """The cost of one number of regions.

    regions   the number
    at_most   an upper bound of the number over all partitions
    distance  root mean squared distance of a unit of weight from the center of its region, in km or the plane's units;
              None without coordinates
    variance  share of the variance of the ``similar`` columns that is inside regions; None without such columns
    largest   weight of the heaviest region
    found     the regions
    """

    regions: int
    at_most: int
    distance: float | None
    variance: float | None
    largest: int
    found: Regions


def check_choices(options: Mapping[str, Any]) -> None:
    """Raise PolicyError if the options of ``merge`` leave ``choices`` no measure to compute."""
    for name in (*LIMITS, "regions", "objective"):
        if options.get(name) is not None:
            raise PolicyError(f"⟨choices⟩ asks for every number of regions by itself; leave ⟨{name}⟩ out")
    if options.get("similar") is None and options.get("coordinates") is None:
        raise PolicyError(
            "choices needs something to compare with the number of regions: columns of similar values (⟨similar=⟩), or "
            "where areas lie: coordinates, or a file of polygons (⟨shapes=FILE⟩)"
        )


@watched
@suggesting
def choices(
    edges: Any, weights: Any, k: Any, counts: Sequence[int] | None = None, method: str = "auto", **options: Any
) -> list[Choice]:
    """The most regions that can be found, and then fewer, each number as compact or as similar as possible.

    counts   numbers of regions; None: the most that are found, and 95, 90, 80, 70, 60, and 50 of 100 of these
    options  as for ``merge``: ``similar`` for similar regions, otherwise ``coordinates`` for compact ones; not maxima
             and ``regions``

    The most regions are found first and then searched for the objective at that number, like the others. An impossible
    number is left out. Raises what ``merge`` raises. One search for each number.
    """
    check_choices(options)
    objective = "similar" if options.get("similar") is not None else "compact"
    first = merge(edges, weights, k, method, **options, objective="count")
    top = first.regions
    if counts is None:
        counts = sorted({top, *(round(top * share) for share in (0.95, 0.9, 0.8, 0.7, 0.6, 0.5))} - {0}, reverse=True)
    found = []
    for q in counts:
        try:
            one = merge(edges, weights, k, method, **options, objective=objective, regions=int(q))
        except InfeasibleError:
            continue
        found.append(_choice(one, weights, first.upper_bound, options))
    return found


def _choice(found: Regions, weights: Any, at_most: int, options: dict[str, Any]) -> Choice:
    w = np.asarray(weights)
    w = w if w.ndim == 1 else w[:, 0]
    places, distance = places_of(options.get("coordinates"), len(w)), None
    held = found.labels >= 0
    if places is not None:
        moment = moments(places, w, options.get("geographic", True))[held]
        distance = float(np.sqrt(inertia(moment, found.labels[held]) / moment[:, 0].sum()))
    return Choice(
        found.regions, at_most, distance, found.certificate.details.get("variance_inside"), found.largest, found
    )


def light_components(
    ids: Sequence[str],
    edges: Any,
    weights: np.ndarray,
    found: Regions,
    boundary: Any = None,
    exclude: Any = None,
    water: Any = None,
) -> list[dict[str, Any]]:
    """Components (within the boundary) too light to be a region, before any is joined, and whether they were joined."""
    n = len(ids)
    g = graph(edges, n)
    if boundary is not None:
        g = without_crossings(g, coded(boundary, n, "boundary"))
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
    method: str,
) -> list[dict[str, Any]]:
    """Three groupings for comparison: ids truncated to ``prefix`` characters, the paper's tree, and the answer.

    options  other options of ``merge``, for the tree

    Raises PolicyError for a prefix below 1.
    """
    k = found.k[0]
    if prefix < 1:
        raise PolicyError(f"the prefix to compare with must be at least 1, not {prefix}")
    n = len(ids)
    group = coded([i[:prefix] for i in ids], n, "prefixes")
    g = graph(edges, n)
    rows = [_row(f"first {prefix} characters", group, weight, k, group, g)]
    if method != "tree" and len(found.k) == 1 and found.certificate.details["l"] == 1 and not is_limited(options):
        tree = merge(edges, weight, k, "tree", **options)
        rows.append(_row("tree", tree.labels, weight, k, group, graph(_with(edges, tree), n)))
    rows.append(_row(method, found.labels, weight, k, group, graph(_with(edges, found), n)))
    return rows


def _with(edges: Any, found: Regions) -> Any:
    return np.concatenate([edges, found.joined])


def _row(name: str, label: Any, weight: Any, k: int, group: Any, g: Any) -> dict[str, Any]:
    """Sizes of a grouping.

    An area changed its group if its prefix isn't that of most areas of its region (with ties, the one with most
    people).
    """
    held = label >= 0
    count = int(label.max()) + 1
    total = summed(weight[held], label[held])
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
