"""The front door of the regions problem: arrays in, regions with a certificate out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import keywords
from shoal.model.repeatable import recorded
from shoal.problems.interrupts import heard
from shoal.problems.regions.answer import answer
from shoal.problems.regions.bounds import count_bound
from shoal.problems.regions.conditions import Conditions, Terms, refuse_below, terms_of
from shoal.problems.regions.contract import contract, expanded, refuse_torn, soften
from shoal.problems.regions.graph import Contiguity, coded, components, graph, induced, without_crossings
from shoal.problems.regions.join import join_light
from shoal.problems.regions.limits import Limits
from shoal.problems.regions.request import (
    Request,
    alike_of,
    begin_of,
    chain_of,
    effort_of,
    features_of,
    inside,
    moments,
    randomness,
    regions_of,
    whole,
)
from shoal.problems.regions.result import Regions
from shoal.problems.regions.task import Districting, eligible_rows
from shoal.problems.regions.water import attached
from shoal.watching import watched


@watched
@heard
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
    unit: str = "people",
    **conditions: Unpack[Conditions],
) -> Regions:
    """Merge areas into connected regions of weight at least k.

    edges        int[m, 2]  pairs of neighboring areas, numbered 0..n-1
    weights      int[n], or int[n, t] with k a sequence of t thresholds, all to be met by every region
    method       "tree", "search", "exact" or "auto"
    objective    what to lower first: "max" heaviest region (then number of regions, then squares), "count" areas
                 merged away (then squares), "sumsq" sum of squares, "excess" weight over max(k, heaviest area),
                 "compact" (most regions, then moment of inertia, or border edges where no coordinates are given),
                 "similar" (most regions, then the variance inside them of the columns in ``similar``); or an order of
                 your own.  None: "similar" where those columns are given, else "max"
    effort       "fast", "balanced", "thorough", or seconds
    seed         int for the same answer again; None for fresh randomness
    unit         what the weights count
    conditions   what else regions keep to, by keyword: boundaries, soft_boundaries, fixed, apart, exclude, at_most,
                 max_diameter, regions, sensitive and l, similar, coordinates and geographic, light, water, start; each
                 is described in ``shoal.regions.Conditions``

    Raises InputError for arrays that do not fit together, PolicyError for a request that contradicts itself,
    InfeasibleError when no component reaches the thresholds.

    Cost and certificate are in the first objective; see ``Regions`` for the rest.  "tree" takes O(m log n) time for
    m pairs and each exchange of edges, "search" what the effort gives it, "exact" has no polynomial bound.  Source: Du,
    Eppstein, Goodrich, Lueker 2009, Theorem 3 (factor 3 or 4 for "max"); docs/regions.md.

    Examples:
        >>> found = merge([(0, 1), (1, 2), (2, 3)], [3, 2, 4, 3], k=5)
        >>> found.labels.tolist(), found.certificate.cost, found.certificate.optimal
        ([0, 0, 1, 1], 7, True)
    """
    keywords("condition of regions", conditions, Conditions)
    features, need, ways = features_of(weights, k, conditions.get("sensitive"), conditions.get("l", 1))
    terms = terms_of(conditions, features)
    terms.check(method)
    refuse_below(conditions, features, need)
    relative, seconds = effort_of(effort)
    request = Request(
        edges=edges, features=features, need=need, ways=ways,
        chain=chain_of(objective, terms.similar is not None, terms.regions), boundaries=terms.boundaries,
        places=terms.places, geographic=terms.geographic, alike=alike_of(terms.similar, features[:, 0]),
        light=terms.light, start=terms.start, limits=terms.limits, regions=regions_of(terms.regions), effort=relative,
        seconds=seconds, state=randomness(seed), unit=unit,
    )  # fmt: skip
    found = _held(request, method, terms) if terms.in_units else _solved(request, method)
    if terms.wet is not None:
        found = attached(found, edges, terms.wet, terms.limits, (terms.boundaries, terms.soft_boundaries))
    return replace(found, certificate=replace(found.certificate, details=_details(found, request, terms, conditions)))


def _details(found: Regions, request: Request, terms: Terms, conditions: Conditions) -> dict[str, Any]:
    """What is on record besides: the variance inside regions that are alike, and the ceilings asked for."""
    details = dict(found.certificate.details)
    if terms.similar is not None:
        details["variance_inside"] = inside(request.alike, found.labels)
    if terms.limits is not None:
        sums, widest = conditions.get("at_most") or {}, conditions.get("max_diameter")
        details["maxima"] = {"sums": sorted(int(most) for _, most in sums.values()), "diameter": widest}
    return details


def _held(request: Request, method: str, terms: Terms) -> Regions:
    """Regions of units: areas fixed together, without those excluded, on the graph that soft boundaries leave."""
    n, soft = len(request.features), terms.soft_boundaries
    held = contract(graph(request.edges, n).edges(), n, terms.dry, terms.fixed, request.boundaries)
    if (held.unit < 0).all():
        raise InfeasibleError("every area is excluded, so there is none to merge")
    if terms.apart is not None:
        refuse_torn(held, terms.apart)
    if soft is not None:
        both = soft if request.boundaries is None else list(zip(soft, request.boundaries, strict=True))
        need, ways = request.need, request.ways
        held = soften(held, both, lambda piece: _sets_eligible(held.summed(request.features), piece, need, ways))
    return expanded(_solved(request.of(held), method), held, soft, n)


class _Posed(NamedTuple):
    """A task, bool[n] the areas that it is about, pairs made neighbors, and its maxima."""

    task: Districting
    keep: np.ndarray
    joined: np.ndarray
    limits: Limits | None


def _solved(request: Request, method: str) -> Regions:
    """The method run on the components that are eligible as a whole."""
    posed = _posed(request)
    return answer(posed.task, method, posed.keep, posed.joined, request.unit, posed.limits)


def _posed(request: Request) -> _Posed:
    """The components that are eligible as a whole."""
    features, need, ways, places = request.features, request.need, request.ways, request.places
    n = len(features)
    g = graph(request.edges, n)
    border = None if request.boundaries is None else coded(request.boundaries, n, "boundaries")
    if border is not None:
        g = without_crossings(g, border)
    joined = np.empty((0, 2), np.int64)
    if request.light == "nearest":
        if places is None:
            raise PolicyError("light='nearest' needs coordinates; give them, or light='leave'")
        g, joined = join_light(g, features, need, ways, places, border, request.geographic)
    keep = _eligible_components(g, features, need, ways)
    if not keep.any():
        raise InfeasibleError(_why_not(g, features, need, ways, border is not None))
    sub, nodes = induced(g, keep)
    geo = np.zeros((0, 4))
    if places is not None and "compact" in request.chain:
        geo = moments(places, features[:, 0], request.geographic)[nodes]
    task = Districting(
        graph=sub,
        features=np.ascontiguousarray(features[nodes]),
        need=need,
        ways=ways,
        geo=geo,
        objective=request.chain,
        start=begin_of(request.start, keep, sub, features[nodes], need, ways),
        effort=request.effort,
        seconds=request.seconds,
        state=request.state,
        alike=request.alike[nodes] if len(request.alike) else request.alike,
        regions=request.regions,
    )
    limits = request.limits
    return _Posed(task, keep, joined, None if limits is None else limits.of(nodes))


def most(edges: Any, found: Regions, weights: Any, options: Mapping[str, Any]) -> int:
    """How many regions at most there are at the thresholds of ``found``, whatever else its areas had to keep together.

    edges    int[m, 2]  pairs of neighbors
    found    regions whose areas, those left out apart, may be put together anew
    options  as for ``merge``; boundaries, fixed and light="nearest" bound the number further

    As a bound on fewer constraints it holds with all others.
    """
    need = np.array(found.k, np.int64)
    columns = np.asarray(weights)
    columns = whole(columns[:, None] if columns.ndim == 1 else columns, "weights")
    ends = np.concatenate([np.asarray(edges, np.int64).reshape(-1, 2), found.joined])
    out = found.labels < 0
    if options.get("water") is not None:
        out |= np.asarray(options["water"]).astype(np.bool_)
    held = contract(ends, len(columns), out, options.get("fixed"), options.get("boundaries"))
    request = Request(
        edges=held.edges, features=held.summed(columns), need=need, ways=1, chain=("count",),
        boundaries=None if options.get("boundaries") is None else held.first(list(options["boundaries"])),
        places=None, geographic=True, alike=np.zeros((0, 3)), light="leave", start=None, limits=None, regions=None,
        effort=0.1, seconds=None, state=randomness(1), unit="",
    )  # fmt: skip
    return count_bound(_posed(request).task, steps=2_000).value


def _eligible_components(g: Contiguity, features: np.ndarray, need: np.ndarray, ways: int) -> np.ndarray:
    """bool[n]: the areas whose component is eligible as a whole."""
    count, component = components(g)
    total = np.zeros((count, features.shape[1]), np.int64)
    np.add.at(total, component, features)
    return eligible_rows(total, need, ways)[component]


def _sets_eligible(features: np.ndarray, piece: np.ndarray, need: np.ndarray, ways: int) -> np.ndarray:
    """bool per set: whether its members' sums are eligible."""
    total = np.zeros((int(piece.max(initial=-1)) + 1, features.shape[1]), np.int64)
    np.add.at(total, piece, features)
    return eligible_rows(total, need, ways)


def _why_not(g: Contiguity, features: np.ndarray, need: np.ndarray, ways: int, bounded: bool) -> str:
    count, component = components(g)
    within = "inside the boundaries " if bounded else ""
    if not len(features):
        return "there are no areas"
    for j, least in enumerate(need.tolist()):
        weight = np.bincount(component, weights=features[:, j])
        if weight.max() < least:
            return (
                f"the heaviest set of areas connected {within}weighs {int(weight.max())}, below k = {least}; "
                "lower k, or join what is apart with light='nearest'"
            )
    if ways > 1:
        return (
            f"no connected set of areas {within}({count} in all) meets every threshold and has each sensitive value at "
            f"most 1/{ways} of its records; lower l or k"
        )
    return f"no connected set of areas {within}({count} in all) meets all thresholds {need.tolist()} at once; lower one"
