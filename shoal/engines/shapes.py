"""Polygons of areas from GeoJSON and TopoJSON, and who shares a border with whom.

A shape is a list of polygons, a polygon a list of rings (the first its outside, the others its holes), a ring
float64[m, 2] without its first point again at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from shoal.engines.matching import spelled
from shoal.errors import InputError, PolicyError

Shape = list[list[np.ndarray]]

_FARTHEST = 1e15  # farther than any map reaches in any unit; the squares of larger numbers overflow


def features(held: Any, name: str = "the input") -> list[tuple[dict[str, Any], Shape]]:
    """(properties, shape) of every feature of parsed GeoJSON or TopoJSON, in order; a feature's own id becomes a
    property ``id`` where there is none.

    Of a TopoJSON with several objects the one with most geometries is taken.  Features that are no polygons have an
    empty shape.
    """
    kind = held.get("type") if isinstance(held, Mapping) else None
    try:
        if kind == "FeatureCollection":
            return [(_properties(f), _shape(f.get("geometry"))) for f in held["features"]]
        if kind == "Topology":
            return _topology(held)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError):
        raise InputError(
            f"{name} breaks the rules of {kind}; a ring, an arc or a feature is not what it should be, or a coordinate "
            f"is beyond {_FARTHEST:g}"
        ) from None
    raise InputError(f"{name} holds {kind or 'something'}, neither a FeatureCollection nor a Topology")


def _properties(feature: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(feature.get("properties") or {})
    if "id" in feature:
        found.setdefault("id", feature["id"])
    return found


def _shape(geometry: Mapping[str, Any] | None) -> Shape:
    if geometry is None:
        return []
    kind = geometry["type"]
    if kind == "GeometryCollection":
        return [polygon for part in geometry["geometries"] for polygon in _shape(part)]
    if kind not in ("Polygon", "MultiPolygon"):
        return []
    polygons = [geometry["coordinates"]] if kind == "Polygon" else geometry["coordinates"]
    return [[_ring([point[:2] for point in ring]) for ring in polygon] for polygon in polygons if polygon]


def _ring(points: Any) -> np.ndarray:
    ring = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    if not (np.abs(ring) <= _FARTHEST).all():
        raise ValueError
    return ring[:-1] if len(ring) > 1 and (ring[0] == ring[-1]).all() else ring


def _topology(held: Mapping[str, Any]) -> list[tuple[dict[str, Any], Shape]]:
    transform = held.get("transform")
    arcs = []
    for arc in held["arcs"]:
        line = np.array([point[:2] for point in arc], dtype=np.float64).reshape(-1, 2)
        if transform is not None:  # steps of whole numbers: a shared arc gives the same floats from both sides
            line = np.cumsum(line, axis=0) * transform["scale"] + transform["translate"]
        arcs.append(line)

    def ring(numbers: Sequence[int]) -> np.ndarray:
        lines = [arcs[i] if i >= 0 else arcs[~i][::-1] for i in numbers]
        return _ring(np.concatenate([lines[0], *(line[1:] for line in lines[1:])]))

    def shape(geometry: Mapping[str, Any]) -> Shape:
        if geometry.get("type") == "Polygon":
            return [[ring(r) for r in geometry["arcs"]]]
        if geometry.get("type") == "MultiPolygon":
            return [[ring(r) for r in polygon] for polygon in geometry["arcs"]]
        return []

    objects = [o.get("geometries", [o]) for o in held["objects"].values()]
    return [(_properties(g), shape(g)) for g in max(objects, key=len)]


def by_id(found: Sequence[tuple[dict[str, Any], Shape]], name: str) -> dict[str, Shape]:
    """Shapes by the property ``name`` as text; several features of one id are put together."""
    shapes: dict[str, Shape] = {}
    for properties, shape in found:
        if name not in properties:
            raise PolicyError.unknown("property of the shapes", name, properties)
        shapes.setdefault(spelled(properties[name]), []).extend(shape)
    return shapes


def segments(shape: Shape) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Every side of every ring, of positive length, in the ring's direction."""
    for polygon in shape:
        for ring in polygon:
            points = [(x, y) for x, y in ring.tolist()]
            for a, b in zip(points, points[1:] + points[:1], strict=True):
                if a != b:
                    yield a, b


def neighbors(shapes: Sequence[Shape]) -> np.ndarray:
    """Pairs of shapes that have a side of a ring in common; int64[m, 2], the smaller number first.

    A side is shared when both its ends are the same floats in both rings, in either direction.  Shapes that meet in a
    point only are no neighbors.  Borders drawn twice with different points are not recognized
    here: ``engines.adjacency`` finds those.

    O(number of points) time and memory.
    """
    owner: dict[Any, int] = {}
    pairs: set[tuple[int, int]] = set()
    more: dict[Any, set[int]] = {}
    for i, shape in enumerate(shapes):
        for a, b in segments(shape):
            side = (a, b) if a < b else (b, a)
            first = owner.setdefault(side, i)
            if first != i:
                others = more.setdefault(side, {first})
                pairs |= {(other, i) for other in others if other != i}
                others.add(i)
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


def center(shape: Shape) -> tuple[float, float]:
    """Center of gravity; of the points where the shape has no surface; NaN for an empty one."""
    surface, sx, sy = 0.0, 0.0, 0.0
    for polygon in shape:
        for i, ring in enumerate(polygon):
            if not len(ring):
                continue
            origin = polygon[0][0]
            p = ring - origin
            q = np.roll(p, -1, axis=0)
            cross = p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]
            turn = abs(float(cross.sum())) * (1 if i == 0 else -1)
            if cross.sum():
                c = ((p + q) * cross[:, None]).sum(axis=0) / (3 * cross.sum()) + origin
                surface, sx, sy = surface + turn, sx + turn * c[0], sy + turn * c[1]
    if surface > 0:
        return float(sx / surface), float(sy / surface)
    points = [ring for polygon in shape for ring in polygon if len(ring)]
    if not points:
        return float("nan"), float("nan")
    x, y = np.concatenate(points).mean(axis=0)
    return float(x), float(y)


def around(shape: Shape, degrees: bool) -> Shape:
    """A shape on both sides of 180 degrees in one piece, east of it."""
    west = [float(ring[:, 0].min()) for polygon in shape for ring in polygon if len(ring)]
    if not degrees or not west or max(west) - min(west) <= 180:
        return shape
    east = np.array([360.0, 0.0])
    return [[np.where(ring < [0, -np.inf], ring + east, ring) for ring in polygon] for polygon in shape]
