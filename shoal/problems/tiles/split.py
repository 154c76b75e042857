"""The public functions for tiles: points in, tiles with their certificate, or a hierarchy of places, out."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from shoal.errors import InfeasibleError, PolicyError
from shoal.model.arguments import Effort, known, no_effect, recorded, suggesting
from shoal.model.certificate import Certificate, Guarantee
from shoal.model.loss import parts_bounds
from shoal.problems.catalogue import algorithm
from shoal.problems.tiles.cells import (
    TileCells,
    TilePartition,
    boxes_around,
    least_half_perimeter,
    least_of_all,
    most_of_all,
    spans,
)
from shoal.problems.tiles.places import Places, as_places, index_of, require
from shoal.problems.tiles.result import (
    PLAIN,
    Conditions,
    Tiles,
    TileTerms,
    drawn,
    judged_by,
    names_of,
    require_able,
    terms_of,
    trimmed,
)
from shoal.problems.tiles.search import RULES, least_waste, limited, proportional_tree, rectangles
from shoal.threads import interruptible
from shoal.watching import watched, within

OBJECTIVES = ("tiles", "max", "perimeter", "sumsq")
EFFORTS = {"fast": 0.5, "balanced": 4.0, "thorough": 40.0}
THEOREM = (
    "Du, Eppstein, Goodrich, Lueker 2009, Theorem 4: no tile can be cut, so none weighs over 4 (k - 1) and a place"
)
NOTHING_LEFT = (
    "every record would be left out, for no tile that meets the request was found; lower k or l, or raise ⟨max_width⟩"
)
HUGE = 3_000_000  # with more places, sorting twice is slower than the kd-tree by selection


@watched
@suggesting
@interruptible
@recorded
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
    decimal: Mapping[str, str] | None = None,
    **conditions: Unpack[Conditions],
) -> Tiles:
    """Rectangles with at least k records each, cut from points in the plane; coincident points stay together.

    points       float[n, 2], or a pandas or Polars frame: x and y, or longitude and latitude
    k            least number of records in a tile
    weights      int[n]: records at each point, one by default; a point of weight 0 is in a tile and counts nothing
    method       "auto" or a name in the catalogue: "kd_tree", "mondrian", "least_waste", "proportional", "best_cuts"
    objective    "tiles": as many as possible, and among those the smallest on the map, for any largest tile; "max": the
                 largest as small as possible; "perimeter": small on the map, measured as the tight boxes' half
                 perimeter averaged over the records; "sumsq": the least sum of squared records of the tiles
    coordinates  "projected": any plane; "geographic": degrees, widths shrink with the cosine of the latitude, and the
                 date line is not a border
    effort       "fast", "balanced", "thorough", or seconds, for the searching methods: fixes the work before the run,
                 so that results do not depend on the machine's speed
    rule         cut rule of "kd_tree": "widest", "median", or "least_waste"
    decimal      {"lon": ","}: columns of the frame whose numbers are texts, with their decimal mark
    conditions   what tiles must also satisfy, by keyword: boundary, sensitive with l or distinct_l, person, household,
                 max_width, grid, extent, center, sparse, seed; ``shoal.tiles.Conditions`` describes each

    Deterministic except for drawn centers. Raises InputError, PolicyError, or InfeasibleError if no tiles exist; if a
    method only finds none, its message states this. O(n log n) time and O(n) space for n points; "best_cuts" examines
    every rectangle between distinct coordinates. Source: Du, Eppstein, Goodrich, Lueker 2009, Theorem 4 (factor 5 for
    any kd-tree).

    Examples:
        >>> tiles = split([(0, 0), (1, 5), (4, 1), (5, 4), (9, 2), (8, 8)], k=2)
        >>> tiles.counts.tolist(), tiles.certificate.optimal
        ([2, 2, 2], True)
        >>> split([(0, 0), (1, 1), (0, 1), (1, 0)], 2, boundary=["NY", "CT", "NY", "CT"]).boundary
        ('NY', 'CT')
    """
    known("objective", objective, OBJECTIVES)
    seconds = Effort.of(effort).among(EFFORTS)
    if method != "auto":
        algorithm("tiles", method)
    known("cut rule", rule, RULES)
    if rule != RULES[0] and method != "kd_tree":
        raise no_effect(f"rule={rule!r}", "⟨method='kd_tree'⟩")
    n = len(points) if hasattr(points, "__len__") else 0
    asked, side = terms_of(conditions, weights, n)
    places = as_places(points, weights, coordinates, side=side, grid=conditions.get("grid"), decimal=decimal)
    k = require(places, k)
    columns = [(name, conditions.get(name)) for name in ("sensitive", "person", "household")]
    w = np.ones(n, np.int64) if weights is None else np.asarray(weights).astype(np.int64)
    places = judged_by(places, asked, k, [c for c in columns if c[1] is not None], w)
    require_able(places, asked, k)
    parts, details, method = solve(places, max(k, asked.at_least), objective, method, rule, seconds, asked)
    return finish(places, parts, k, method, objective, details, asked)


def solve(
    places: Places, k: int, objective: str, method: str, rule: str, seconds: float, asked: TileTerms
) -> tuple[TilePartition, dict, str]:
    """The parts that a method finds, details, and the method that "auto" chose."""
    sides = places.sides()
    if asked.leave_out and not asked.limited:
        kept = [which for which in sides if int(places.weight[which].sum()) >= k]
        if len(kept) < len(sides):
            if not kept:
                raise InfeasibleError(NOTHING_LEFT)
            keep = np.sort(np.concatenate(kept))
            # only sides of a boundary can be too light
            side = np.zeros(0) if places.side is None else places.side[keep]
            some = replace(places.some(keep), side=np.unique(side, return_inverse=True)[1].reshape(-1))
            parts, details, method = solve(some, k, objective, method, rule, seconds, asked)
            return TilePartition.together(places, [parts], [keep]), details, method
    if asked.limited:
        found = [limited(places.some(which), k, objective, method, rule, asked) for which in sides]
        parts = TilePartition.together(places, [part for part, _, _ in found], sides)
        if not len(parts.weight):
            raise InfeasibleError(NOTHING_LEFT)
        return parts, found[0][1], "least_waste" if len({name for _, _, name in found}) > 1 else found[0][2]
    if method == "auto":
        method = _auto(places)
    proportional = method == "kd_tree, proportional"
    if proportional or method in ("kd_tree", "mondrian", "best_cuts"):
        runs = []
        for which in sides:
            part = places.some(which) if places.side is not None else places
            if proportional:
                runs.append((proportional_tree(part, k), {"rule": "proportional"}))
            else:
                runs.append(algorithm("tiles", method)(part, k, objective, effort=seconds, rule=rule))
        method = "kd_tree" if proportional else method
        if places.side is None:
            return *runs[0], method
        return TilePartition.together(places, [part for part, _ in runs], sides), runs[0][1], method
    return *algorithm("tiles", method)(places, k, objective, effort=seconds), method


def _auto(places: Places) -> str:
    """The method that fits: exact cuts for small inputs, selection for very large ones, else least waste."""
    if places.side is None and rectangles(places) <= 300_000:
        return "best_cuts"
    if places.side is not None and places.x.size <= 20_000:
        sizes = [rectangles(places.some(which)) for which in places.sides()]
        if sum(sizes) <= 300_000:
            return "best_cuts"
    return "kd_tree, proportional" if places.x.size > HUGE else "least_waste"


def finish(
    places: Places, parts: TilePartition, k: int, method: str, objective: str, details: dict, asked: TileTerms = PLAIN
) -> Tiles:
    """The labels of the points, bounds in the user's coordinates, and the certificate."""
    sides = None
    if places.side is not None:
        sides = np.zeros(len(parts.weight), np.int64)
        sides[parts.labels[parts.labels >= 0]] = places.side[parts.labels >= 0]
    keys = (parts.boxes[:, 1], parts.boxes[:, 0]) if sides is None else (sides, parts.boxes[:, 1], parts.boxes[:, 0])
    order = np.lexsort(keys)  # tiles are numbered from west to east
    number = np.empty(order.size + 1, np.int64)
    number[order], number[-1] = np.arange(order.size), -1
    labels = number[parts.labels]
    weight, boxes, bounds = parts.weight[order], parts.boxes[order], parts.bounds(places.grid)[order]
    held = labels >= 0
    if places.own is None:
        x, y, own, mass = places.x[held], places.y[held], labels[held], places.weight[held]
    else:
        own = labels[places.inverse]
        boxes = boxes_around(own, places.own[:, 0], places.own[:, 1], weight.size)
        (x, y, mass), own = places.own[own >= 0].T, own[own >= 0]
    share = mass.astype(np.float64)
    total = np.bincount(own, weights=share, minlength=weight.size)
    centers = np.stack([np.bincount(own, weights=share * c, minlength=weight.size) / total for c in (x, y)], axis=1)
    if asked.extent == "data":
        if places.geographic:
            start = places.seam if np.isfinite(places.seam) else places.west
            bounds[:, 0], bounds[:, 2] = np.maximum(bounds[:, 0], start), np.minimum(bounds[:, 2], start + 360)
        inner = boxes if places.grid is None else parts.boxes[order]
        bounds = trimmed(bounds, inner, grid=places.grid, width=asked.max_width, geographic=places.geographic)
        if asked.center == "draw":
            centers = drawn(bounds, asked.seed)
    certificate = _certificate(places, (parts, weight, boxes), k, (method, objective), details, asked)
    if np.isfinite(places.seam) or (asked.extent == "data" and places.geographic):
        boxes, bounds, centers = (_wrapped(a, places) for a in (boxes, bounds, centers))
        bounds = _exact_decimals(bounds)
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
        seam=float(_exact_decimals(np.array(places.seam))) if np.isfinite(places.seam) else None,
        certificate=certificate,
        boundary=None if sides is None or asked.sides is None else tuple(asked.sides[i] for i in sides[order]),
        asked=asked,
        grid=None if places.grid is None else float(places.grid),
        units=_units(places, labels, weight.size, asked),
    )


def _units(places: Places, labels: np.ndarray, m: int, asked: TileTerms) -> dict[str, np.ndarray]:
    """The number of different persons, or households, in each tile."""
    if places.held is None or not asked.units:
        return {}
    held, out = places.held, {}
    at = labels[np.repeat(np.arange(places.x.size), np.diff(held.start))]
    for c, name in zip(np.flatnonzero(held.unit).tolist(), asked.units, strict=True):
        mine = (held.column[held.code] == c) & (at >= 0)
        pairs = np.unique(at[mine] * held.column.size + held.code[mine])
        out[name] = np.bincount(pairs // held.column.size, minlength=m)
    return out


def _certificate(
    places: Places, found: tuple[TilePartition, np.ndarray, np.ndarray], k: int, ran: tuple[str, str], details: dict,
    asked: TileTerms,
) -> Certificate:  # fmt: skip
    (parts, weight, boxes), (method, objective) = found, ran
    size = spans(boxes, places.geographic).sum(axis=1)
    least = max(k, asked.at_least)
    bound, why = least_of_all(places, least, asked.leave_out)
    mean = float((weight * size).sum() / weight.sum())
    promised = method != "mondrian" and not asked.limited
    facts: dict[str, Any] = {
        "objective": objective,
        "tiles": int(weight.size),
        "tiles_at_most": most_of_all(places, least),
        "smallest": int(weight.min()),
        "largest_by_theorem": 4 * (k - 1) + int(max(k, places.weight.max())) if promised else None,
        "squares": int((weight.astype(object) ** 2).sum()),
        "half_perimeter": mean,
        "unit_of_half_perimeter": "km" if places.geographic else "as the coordinates",
    }
    if not asked.leave_out:
        facts["squares_bound"] = parts_bounds(places.weight, facts["tiles_at_most"])[1]
    if asked.leave_out:
        facts["left_out"] = int(places.weight[parts.labels < 0].sum())
    if asked.sides is not None:
        facts["sides_of_the_boundary"] = len(asked.sides)
    if objective == "perimeter" and not asked.leave_out and places.grid is None:
        facts["half_perimeter_at_least"] = min(mean, least_half_perimeter(places, k))
    return Certificate(
        cost=int(weight.max()),
        lower_bound=bound,
        unit="records in the largest tile",
        guarantee=Guarantee(factor=5, theorem=THEOREM) if promised and not asked.leave_out else Guarantee(),
        bound=why,
        details={**facts, **details},
    )


def _exact_decimals(bounds: np.ndarray) -> np.ndarray:
    """Sides as exact decimals.

    Shifting by a full turn and back causes rounding errors, and a point on a side would be outside.
    """
    short = np.round(bounds, 10)
    return np.where(np.isclose(short, bounds, rtol=0, atol=1e-12), short, bounds)


def _wrapped(a: np.ndarray, places: Places) -> np.ndarray:
    """Longitudes in the user's range; a side at the seam becomes the seam, unless the tile spans the full circle."""
    a = a.copy()
    x = a[:, [0, 2]] if a.shape[1] == 4 else a[:, :1]
    around = np.isinf(x).all(axis=1)
    x = np.where(np.isinf(x) & ~around[:, None], places.seam, x)
    x = np.where(x >= places.west + 360, x - 360, x)
    x = np.where(x < places.west, x + 360, x)
    a[:, [0, 2] if a.shape[1] == 4 else [0]] = x
    return a


EVERYWHERE = "*"


@dataclass(frozen=True, eq=False)
class PlaceLevels:
    """A hierarchy over the distinct places of a coordinate pair.

    places    float[p, 2]     the distinct coordinates
    inverse   int64[n]        place of each point given
    codes     int64[p, L]     region of each place at each level, fine to coarse; regions of a level are nested in the
              next level's
    names     L lists of str  name of each region of a level
    tiles     the Tiles of each level, fine to coarse; empty for a grid
    """

    places: np.ndarray
    inverse: np.ndarray
    codes: np.ndarray
    names: tuple[tuple[str, ...], ...]
    tiles: tuple[Tiles, ...] = ()

    @property
    def labels(self) -> list[list[str]]:
        """For every place the names of its regions from fine to coarse, last ``*``."""
        columns = [[names[c] for c in self.codes[:, i]] for i, names in enumerate(self.names)]
        return [[*row, EVERYWHERE] for row in zip(*columns, strict=True)]

    def mapping(self) -> dict[tuple[float, float], list[str]]:
        """Coordinates -> list of names."""
        keys = zip(self.places[:, 0].tolist(), self.places[:, 1].tolist(), strict=True)
        return dict(zip(keys, self.labels, strict=True))

    def write(self, path: str | Path, separator: str = ";") -> None:
        """Write an ARX hierarchy: one line per place, ``x y`` and then its names from fine to coarse."""
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, delimiter=separator, lineterminator="\n")
            for (x, y), names in self.mapping().items():
                writer.writerow([f"{x!r} {y!r}", *names])


@watched
@suggesting
def levels(
    points: Any,
    ks: Sequence[int],
    weights: Any = None,
    *,
    coordinates: str = "projected",
    objective: str = "tiles",
    effort: str | float = "balanced",
    decimal: Mapping[str, str] | None = None,
) -> PlaceLevels:
    """Nested tiles: shoal cuts for the largest k first, and then each tile again for the next smaller k.

    ks       any distinct k; tiles of level i, from fine to coarse, have at least the i-th smallest
    decimal  column of a frame of points whose numbers are texts -> its decimal mark
    """
    places = as_places(points, weights, coordinates, decimal=decimal)
    wanted = sorted({require(places, k) for k in ks})
    if not wanted:
        raise PolicyError("levels of tiles need at least one k")
    found: list[Tiles] = []
    seconds, cells = Effort.of(effort).among(EFFORTS), None
    for i, k in enumerate(reversed(wanted)):
        with within(i / len(wanted), (i + 1) / len(wanted)):
            parts, details = least_waste(places, k, objective, effort=seconds / len(wanted), start=cells)
        found.append(finish(places, parts, k, "least_waste", objective, details))
        cells = TileCells.of(places, parts.labels, parts.edges, parts.cuts)
    found.reverse()
    first = np.zeros(places.x.size, np.int64)
    first[places.inverse] = np.arange(places.inverse.size)
    return PlaceLevels(
        places=_original(places),
        inverse=places.inverse,
        codes=np.stack([t.labels[first] for t in found], axis=1),
        names=tuple(tuple(t.names()) for t in found),
        tiles=tuple(found),
    )


@suggesting
def grid(
    points: Any,
    sizes: Sequence[float],
    *,
    origin: tuple[float, float] = (0.0, 0.0),
    coordinates: str = "projected",
    decimal: Mapping[str, str] | None = None,
) -> PlaceLevels:
    """Squares of the given sizes, each a whole multiple of the previous one, in the unit of the coordinates.

    Coordinates and sizes are read as the decimal numbers that you write, so that 0.3 is on the line at 0.3 of a grid of
    0.1. A square includes its low sides.

    decimal  column of a frame of points whose numbers are texts -> its decimal mark
    """
    places = as_places(points, None, coordinates, decimal=decimal)
    if not len(sizes) or not all(math.isfinite(s) and s > 0 for s in sizes):
        raise PolicyError(f"sizes of the grid are {list(sizes)}; they must be positive numbers, at least one")
    exact = [Fraction(repr(float(s))) for s in sizes]
    for small, large in pairwise(exact):
        if (large / small).denominator != 1 or large <= small:
            raise PolicyError(
                f"a grid of {float(large):g} is no whole multiple of {float(small):g}, so its squares are not nested; "
                "choose sizes such as 0.01, 0.05, 0.5"
            )
    own = _original(places)
    index = np.stack([index_of(own[:, i], exact[0], origin[i]) for i in (0, 1)], axis=1)
    codes, names = [], []
    for size in exact:
        at, code = np.unique(index // int(size / exact[0]), axis=0, return_inverse=True)
        codes.append(code.reshape(-1))
        names.append(tuple(_square(i, j, size, origin) for i, j in at.tolist()))
    return PlaceLevels(own, places.inverse, np.stack(codes, axis=1), tuple(names))


def _original(places: Places) -> np.ndarray:
    """The distinct places in the user's own range of longitudes."""
    x = np.where(places.x >= places.west + 360, places.x - 360, places.x) if places.geographic else places.x
    return np.stack([x, places.y], axis=1)


def _square(i: int, j: int, size: Fraction, origin: tuple[float, float]) -> str:
    lines = [
        [float(Fraction(repr(float(o))) + (n + step) * size) for step in (0, 1)]
        for n, o in ((i, origin[0]), (j, origin[1]))
    ]
    return names_of(np.array([[lines[0][0], lines[1][0], lines[0][1], lines[1][1]]]))[0]
