"""How compact or alike regions can be at every count: the trade of an objective against the number of regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.problems.regions.merge import merge
from shoal.problems.regions.request import moments, places_of
from shoal.problems.regions.result import Regions
from shoal.problems.regions.value import inertia
from shoal.watching import watched


class Choice(NamedTuple):
    """What one number of regions costs.

    regions   the number;  at_most: no partition has more
    distance  root of the mean squared distance of a unit of weight from the center of its region, km or the plane's
              units; None without coordinates
    variance  share of the variance of the columns to be alike in that is inside regions; None without such columns
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
    """PolicyError where the options of ``merge`` leave ``choices`` nothing to draw."""
    if any(options.get(name) is not None for name in ("at_most", "apart", "max_diameter", "regions", "objective")):
        raise PolicyError("choices asks for every number of regions by itself; leave maxima, regions and objective out")
    if options.get("similar") is None and options.get("coordinates") is None:
        raise PolicyError(
            "choices needs something to set against the number of regions: columns to be alike in (similar=), or "
            "where areas lie: coordinates, or a file of polygons"
        )


@watched
def choices(
    edges: Any, weights: Any, k: Any, counts: Sequence[int] | None = None, method: str = "auto", **options: Any
) -> list[Choice]:
    """The most regions that are found, then fewer, each number as compact or as alike as it can be made.

    counts   numbers of regions; None: the most that are found, and 95, 90, 80, 70, 60 and 50 of 100 of these
    options  as for ``merge``: ``similar`` for regions that are alike, else ``coordinates`` for compact ones; maxima
             and ``regions`` excepted

    The most regions are found first and then searched for the objective at that number, as the others are; a number
    that cannot be is left out.  Raises what ``merge`` raises.  A search for each number.
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
