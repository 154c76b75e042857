"""Outlines of regions measured and put together where borders do not meet exactly; needs the extra ``geo``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.engines.shapes import Shape, around, center
from shoal.model.metric import KM_PER_DEGREE

_MANY = 1_000  # corners of a hull


def _plane(shape: Shape, degrees: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    """A shape as a geometry in km around its own middle (or as it is), with the middle and the scale.

    Polygons are mended one by one: together, one that lies in another's hole and over its border would be taken out.
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
    """One shape for all, gaps thinner than twice the tolerance (km, or the plane's units) filled."""
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
    """The corners of a hull float64[m, 2]; of many the farthest in 1,000 directions: widths within a 100,000th."""
    if len(corners) <= _MANY:
        return corners
    turn = np.linspace(0, 2 * np.pi, _MANY, endpoint=False)
    ahead = [int((corners @ way).argmax()) for way in np.column_stack([np.cos(turn), np.sin(turn)])]
    return corners[np.unique(ahead)]


def measures(shape: Shape, degrees: bool) -> dict[str, float]:
    """Area, perimeter and diameter (km and km2 when ``degrees``), and how compact a shape is, in 0..1.

    polsby_popper  4 pi area / perimeter squared;  reock  area over that of the smallest circle around it
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
