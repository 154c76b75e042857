"""Polygons of areas: read from GeoJSON and TopoJSON, matched with the ids of another file, measured, and merged.

A shape is a list of polygons, a polygon a list of rings (the outer ring, then its holes), and a ring float64[m, 2],
without its first point repeated at the end.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.cards import several
from shoal.model.metric import KM_PER_DEGREE

UNMATCHED = ("refuse", "leave-out")
_SHOWN = 10


class RestoredIds(NamedTuple):
    """New spellings of names on the first side and on the second side."""

    first: dict[str, str]
    second: dict[str, str]

    def words(self, first: str, second: str) -> list[str]:
        """A sentence about the restored zeros for each side that changed."""
        return [
            f"leading zeros of {len(spelled):,} ids of {what} restored, as {other} have them ({shown})"
            for spelled, what, other in ((self.first, first, second), (self.second, second, first))
            if spelled
            for shown in [", ".join(f"{a} is {b}" for a, b in list(spelled.items())[:3])]
        ]


def spelled(value: Any) -> str:
    """An id as text without outer blanks. A number without a fraction loses its ``.0``, which spreadsheets add."""
    if isinstance(value, str):
        return value.strip()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()


def restored(first: Iterable[str], second: Iterable[str]) -> RestoredIds:
    """Names that differ from one name of the other side only by leading zeros, spelled like the side that has more
    zeros.

    Only unique matches are restored: if several unmatched names of a side are equal without zeros, they stay. O(names).
    """
    ours, theirs = set(first), set(second)
    bare: tuple[dict[str, list[str]], dict[str, list[str]]] = ({}, {})
    for held, names in zip(bare, (sorted(ours - theirs), sorted(theirs - ours)), strict=True):
        for name in names:
            if name.lstrip("0"):
                held.setdefault(name.lstrip("0"), []).append(name)
    found = RestoredIds({}, {})
    for key, one in bare[0].items():
        other = bare[1].get(key, [])
        if len(one) == len(other) == 1:
            if len(one[0]) < len(other[0]):
                found.first[one[0]] = other[0]
            else:
                found.second[other[0]] = one[0]
    return found


def listed(names: Sequence[str]) -> dict[str, Any]:
    """The number of names and the first ten, for the record."""
    return {"count": len(names), "first": list(names[:_SHOWN])}


def shown(names: Sequence[str]) -> str:
    """The first ten names, and the number of the others."""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def alike(name: str) -> str:
    """A name without what files often change: leading zeros, outer blanks, case, and accents written as characters of
    their own."""
    return unicodedata.normalize("NFC", name).strip().casefold().lstrip("0")


def look_alikes(names: Iterable[str]) -> list[str]:
    """A sentence about names of one file that are different but alike, if there are any."""
    held: dict[str, list[str]] = {}
    for name in names:
        held.setdefault(alike(name), []).append(name)
    both = [f"{group[0]!a} and {group[1]!a}" for group in held.values() if len(group) > 1]
    if not both:
        return []
    return [
        f"{several(len(both), 'pair')} of ids that differ only by leading zeros, case, or the form of accents: "
        f"{shown(both)}; they are different areas here, so write both alike if they are one"
    ]


def partners(
    unmatched: str, sides: Mapping[tuple[str, str], Sequence[str]], others: Mapping[str, Iterable[str]]
) -> list[str]:
    """Sentences about names without a partner; InputError with all of them unless they are to be left out.

    sides   (kind, what it lacks) -> the names: ("area", "without a polygon")
    others  kind -> all names of the other side. The refusal counts names that are alike to one of them
    """
    if unmatched not in UNMATCHED:
        raise PolicyError.unknown("way to treat ids without a partner", unmatched, UNMATCHED)
    sentences = [
        f"{several(len(names), what)} {lacks}: {shown(names)}" for (what, lacks), names in sides.items() if names
    ]
    if sentences and unmatched == "refuse":
        near = 0
        for (what, _), names in sides.items():
            held = {alike(name) for name in others[what]}
            near += sum(alike(name) in held for name in names)
        if near:
            sentences.append(
                f"{near:,} of them {'differs' if near == 1 else 'differ'} from an id of the other file only by leading "
                "zeros, case, or the form of accents (one character or two)"
            )
        raise InputError(
            "; ".join(sentences) + "; give both files the same ids, or leave these out with ⟨unmatched='leave-out'⟩"
        )
    return sentences


Shape = list[list[np.ndarray]]

_FARTHEST = 1e15  # larger than any map in any unit; squares of larger numbers overflow


def features(held: Any, name: str = "the input") -> list[tuple[dict[str, Any], Shape]]:
    """(properties, shape) of every feature of parsed GeoJSON or TopoJSON, in order.

    If a feature has no property ``id``, its own id becomes one. In a TopoJSON with several objects, the one with the
    most geometries is used. Features that aren't polygons have an empty shape.
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
    way = "; one area alone is no map: put all areas into a FeatureCollection" if kind else ""
    raise InputError(f"{name} holds {kind or 'something'}, neither a FeatureCollection nor a Topology{way}")


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
    """(properties, shape) of every feature of a TopoJSON."""
    transform = held.get("transform")
    arcs = []
    for arc in held["arcs"]:
        line = np.array([point[:2] for point in arc], dtype=np.float64).reshape(-1, 2)
        if transform is not None:  # arcs are steps of integers, so a shared arc has the same floats on both sides
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
    """Shapes by the property ``name`` as text; several features with one id are merged."""
    shapes: dict[str, Shape] = {}
    for properties, shape in found:
        if name not in properties:
            raise PolicyError.unknown("property of the shapes", name, properties)
        shapes.setdefault(spelled(properties[name]), []).extend(shape)
    return shapes


def center(shape: Shape) -> tuple[float, float]:
    """The centroid; the mean of the points if the shape has no area; NaN for an empty shape."""
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
    """A shape in one piece, if it crosses 180 degrees: its western part is moved to the east."""
    west = [float(ring[:, 0].min()) for polygon in shape for ring in polygon if len(ring)]
    if not degrees or not west or max(west) - min(west) <= 180:
        return shape
    east = np.array([360.0, 0.0])
    return [[np.where(ring < [0, -np.inf], ring + east, ring) for ring in polygon] for polygon in shape]


def has_geometry() -> bool:
    """Whether the geometry library is installed."""
    try:
        import shapely  # noqa: F401
    except ImportError:
        return False
    return True


def without_self_crossings(shape: Shape) -> Shape:
    """The shape with self-crossing polygons split at the crossings; unchanged without the geometry library."""
    if not has_geometry():
        return shape
    import shapely

    out: Shape = []
    for polygon in shape:
        rings = [ring for ring in polygon if len(ring) > 2]
        if not rings:
            continue
        drawn = shapely.Polygon(rings[0], rings[1:])
        if shapely.is_valid(drawn):
            out.append(polygon)
            continue
        parts = shapely.get_parts(shapely.get_parts(shapely.make_valid(drawn)))
        whole = [part for part in parts if part.geom_type == "Polygon" and not part.is_empty]
        out += [[np.array(ring.coords)[:-1] for ring in (part.exterior, *part.interiors)] for part in whole]
    return out


_MANY = 1_000  # number of a hull's corners


def _plane(shape: Shape, degrees: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """A shape as a geometry in km around its own center (or unchanged), with center and scale.

    Polygons are repaired one by one. Together, a polygon in a hole of another one and across its border would be
    removed.
    """
    import shapely

    middle, scale = np.zeros(2), np.ones(2)
    if degrees:
        middle = np.array(center(shape))
        scale = np.array([max(np.cos(np.radians(middle[1])), 0.01), 1.0]) * KM_PER_DEGREE
    turned = [[(ring - middle) * scale for ring in polygon if len(ring) > 2] for polygon in shape]
    parts = np.array([shapely.Polygon(rings[0], rings[1:]) for rings in turned if rings], object)
    return shapely.union_all(shapely.make_valid(parts)), middle, scale


def closed(shapes: Sequence[Shape], degrees: bool, tolerance: float) -> Shape:
    """The union of shapes, in which gaps narrower than twice the tolerance (km, or the plane's units) are filled."""
    import shapely

    together = [polygon for shape in shapes for polygon in shape]
    if not together:
        return []
    plane, middle, scale = _plane(together, degrees)
    grown = shapely.buffer(plane, tolerance, join_style="mitre", mitre_limit=2.0)
    whole = shapely.buffer(shapely.union_all(grown), -tolerance, join_style="mitre", mitre_limit=2.0)
    parts = [p for p in shapely.get_parts(whole) if p.geom_type == "Polygon" and not p.is_empty]
    return [
        [np.array(ring.coords)[:-1] / scale + middle for ring in (part.exterior, *part.interiors)] for part in parts
    ]


def _extreme(corners: np.ndarray) -> np.ndarray:
    """The corners of a hull float64[m, 2]; if there are many, the farthest in 1,000 directions, which gives widths to
    1e-5."""
    if len(corners) <= _MANY:
        return corners
    turn = np.linspace(0, 2 * np.pi, _MANY, endpoint=False)
    ahead = [int((corners @ way).argmax()) for way in np.column_stack([np.cos(turn), np.sin(turn)])]
    return corners[np.unique(ahead)]


def measures(shape: Shape, degrees: bool) -> dict[str, float]:
    """Area, perimeter, and diameter (km and km2 if ``degrees``), and the compactness of a shape, in 0..1.

    polsby_popper  4 pi area / perimeter squared
    reock          area divided by that of the smallest enclosing circle
    """
    import shapely

    plane, middle, scale = _plane(around(shape, degrees), degrees)
    area, border = float(plane.area), float(plane.length)
    corners = _extreme(shapely.get_coordinates(shapely.convex_hull(plane)))
    radius = float(shapely.minimum_bounding_radius(shapely.MultiPoint(corners)))
    across = float(max((np.hypot(*(corners - c).T).max() for c in corners), default=0.0))
    x, y = np.array([plane.centroid.x, plane.centroid.y]) / scale + middle
    return {
        "area": area,
        "perimeter": border,
        "diameter": across,
        "polsby_popper": min(1.0, 4 * np.pi * area / border**2) if border else 0.0,
        "reock": min(1.0, area / (np.pi * radius**2)) if radius else 0.0,
        "center_x": float(x) - 360 if degrees and x > 180 else float(x),
        "center_y": float(y),
    }
