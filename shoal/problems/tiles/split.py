"""The front door: points in, tiles with their certificate out."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.model.certificate import Certificate, Guarantee
from shoal.problems.catalogue import algorithm
from shoal.problems.interrupts import heard
from shoal.problems.tiles.best_cuts import rectangles
from shoal.problems.tiles.bounds import least_half_perimeter, least_largest, most_tiles
from shoal.problems.tiles.cells import Parts
from shoal.problems.tiles.places import Places, as_places, require
from shoal.problems.tiles.result import Tiles

OBJECTIVES = ("tiles", "max", "perimeter")
EFFORTS = {"fast": 0.5, "balanced": 4.0, "thorough": 40.0}
THEOREM = (
    "Du, Eppstein, Goodrich, Lueker 2009, Theorem 4: no tile can be cut, so none weighs over 4 (k - 1) and a place"
)
HUGE = 3_000_000  # places: beyond, sorting them twice is slower than the kd-tree by selection


@heard
def split(
    points: Any,
    k: int,
    weights: Any = None,
    method: str = "auto",
    *,
    objective: str = "tiles",
    coordinates: str = "projected",
    effort: str | float = "balanced",
    rule: str = "widest",
) -> Tiles:
    """Cut points in the plane into rectangles with at least k records each; coincident points stay together.

    points       float[n, 2]: x and y, or longitude and latitude
    k            least number of records in a tile
    weights      int[n]: records at each point, one by default; a point of weight 0 lies in a tile and counts nothing
    method       "auto" or a name in the catalogue: "kd_tree", "mondrian", "least_waste", "proportional", "best_cuts"
    objective    "tiles": as many as can be; "max": the largest as small as can be; "perimeter": small on the map,
                 measured as the tight boxes' half perimeter averaged over the records
    coordinates  "projected": any plane; "geographic": degrees, widths shrink with the cosine of the latitude, and the
                 date line is no border
    effort       "fast", "balanced", "thorough" or seconds, for the searching methods: fixes the work beforehand, so
                 that results do not depend on the machine's speed
    rule         cut rule of "kd_tree": "widest", "median" or "least_waste"

    Deterministic.  Raises InputError, PolicyError, or InfeasibleError when there are fewer than k records.

    >>> tiles = split([(0, 0), (1, 5), (4, 1), (5, 4), (9, 2), (8, 8)], k=2)
    >>> tiles.counts.tolist(), tiles.certificate.optimal
    ([2, 2, 2], True)
    """
    if objective not in OBJECTIVES:
        raise PolicyError.unknown("objective", objective, OBJECTIVES)
    seconds = _seconds(effort)
    run = None if method == "auto" else algorithm("tiles", method)
    places = as_places(points, weights, coordinates)
    k = require(places, k)
    if run is None:
        parts, details, method = _auto(places, k, objective, seconds)
    else:
        parts, details = run(places, k, objective, effort=seconds, rule=rule)
    return finish(places, parts, k, method, objective, details)


def _seconds(effort: str | float) -> float:
    if isinstance(effort, str):
        if effort not in EFFORTS:
            raise PolicyError.unknown("level of effort", effort, EFFORTS)
        return EFFORTS[effort]
    if not effort >= 0:
        raise PolicyError(f"effort is {effort!r}; it must be 'fast', 'balanced', 'thorough' or a number of seconds")
    return float(effort)


def _auto(places: Places, k: int, objective: str, seconds: float) -> tuple[Parts, dict, str]:
    """The method that fits: exact cuts on small inputs, selection on huge ones, else the best of the rest."""
    if rectangles(places) <= 300_000:
        return *algorithm("tiles", "best_cuts")(places, k, objective), "best_cuts"
    if places.x.size > HUGE:
        from shoal.problems.tiles.kd_tree import proportional_tree

        return proportional_tree(places, k), {"rule": "proportional"}, "kd_tree"
    return *algorithm("tiles", "least_waste")(places, k, objective, effort=seconds), "least_waste"


def finish(places: Places, parts: Parts, k: int, method: str, objective: str, details: dict) -> Tiles:
    """Labels of the points, bounds in the user's coordinates, and the certificate."""
    order = np.lexsort((parts.boxes[:, 1], parts.boxes[:, 0]))  # tiles are numbered from west to east
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    labels = number[parts.labels]
    weight, boxes, bounds = parts.weight[order], parts.boxes[order], parts.bounds()[order]
    size = parts.sizes(places.geographic)[order]
    share = np.maximum(places.weight, 1).astype(np.float64)  # a center exists even where all weigh nothing
    mass = np.bincount(labels, weights=share, minlength=weight.size)
    centers = np.stack([np.bincount(labels, weights=share * c) / mass for c in (places.x, places.y)], axis=1)
    bound, why = least_largest(places.weight, k)
    most = most_tiles(places.weight, k)
    mean = float((weight * size).sum() / weight.sum())
    facts: dict[str, Any] = {
        "objective": objective,
        "tiles": int(weight.size),
        "tiles_at_most": most,
        "smallest": int(weight.min()),
        "largest_by_theorem": None if method == "mondrian" else 4 * (k - 1) + int(max(k, places.weight.max())),
        "half_perimeter": mean,
        "unit_of_half_perimeter": "km" if places.geographic else "as the coordinates",
    }
    if objective == "perimeter":
        facts["half_perimeter_at_least"] = min(mean, least_half_perimeter(places, k))
    certificate = Certificate(
        cost=int(weight.max()),
        lower_bound=bound,
        unit="records in the largest tile",
        guarantee=Guarantee() if method == "mondrian" else Guarantee(factor=5, theorem=THEOREM),
        bound=why,
        details={**facts, **details},
    )
    if np.isfinite(places.seam):
        boxes, bounds, centers = (_wrapped(a, places) for a in (boxes, bounds, centers))
    return Tiles(
        labels=labels[places.inverse],
        bounds=bounds,
        boxes=boxes,
        counts=weight,
        centers=centers,
        k=k,
        method=method,
        objective=objective,
        coordinates="geographic" if places.geographic else "projected",
        seam=places.seam if np.isfinite(places.seam) else None,
        certificate=certificate,
    )


def _wrapped(a: np.ndarray, places: Places) -> np.ndarray:
    """Longitudes back into the user's range; a side at the seam becomes the seam, unless the tile goes all around."""
    a = a.copy()
    x = a[:, [0, 2]] if a.shape[1] == 4 else a[:, :1]
    around = np.isinf(x).all(axis=1)
    x = np.where(np.isinf(x) & ~around[:, None], places.seam, x)
    x = np.where(x >= places.west + 360, x - 360, x)
    a[:, [0, 2] if a.shape[1] == 4 else [0]] = x
    return a
