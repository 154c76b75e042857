"""Clusters as circles: GeoJSON polygons, a picture, or one HTML file that opens anywhere.

Only what a release of centers states is drawn: centers, radii as told, sizes.  No record is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.metric import EARTH_KM, KM_PER_DEGREE, rounded_up
from shoal.report.canvas import figure, write_map
from shoal.report.dissolve import turned
from shoal.report.outlines import outline
from shoal.report.rendering import rendered

CORNERS = 64
SIDE = 1000.0  # the longer side of the drawing, in its own unit
INK = "#14688a"
Rings = list[np.ndarray]


def circle(lat: float, lng: float, radius: float) -> Rings:
    """Polygons of longitudes and latitudes, float64[m, 2] each, that hold all within ``radius`` kilometers.

    In parts where the circle crosses the end of the longitudes; up to the pole where it holds one.  The corners lie
    outside the circle, so that nothing within it is outside them.
    """
    reach = radius / EARTH_KM / math.cos(math.pi / CORNERS)
    north, south = reach >= math.radians(90 - lat), reach >= math.radians(90 + lat)
    if (north and south) or reach >= math.pi:
        return [_box(-180, -90, 180, 90)]
    bearing = np.linspace(0, 2 * math.pi, CORNERS, endpoint=False)
    here = math.radians(lat)
    y = np.arcsin(np.clip(math.sin(here) * math.cos(reach) + math.cos(here) * math.sin(reach) * np.cos(bearing), -1, 1))
    x = np.arctan2(np.sin(bearing) * math.sin(reach) * math.cos(here), math.cos(reach) - math.sin(here) * np.sin(y))
    middle = (lng + 180) % 360 - 180
    if north or south:
        around = (np.degrees(x) + middle + 180) % 360 - 180
        order = np.argsort(around)
        edge = np.column_stack([around[order], np.degrees(y)[order]])
        ends = float(np.interp(180.0, [edge[-1, 0], edge[0, 0] + 360], [edge[-1, 1], edge[0, 1]]))
        pole = 90.0 if north else -90.0
        ring = np.concatenate([[[-180, pole], [-180, ends]], edge, [[180, ends], [180, pole]]])
        return [ring[::-1] if turned(ring) < 0 else ring]
    ring = np.column_stack([np.degrees(x) + middle, np.degrees(y)])[::-1]
    parts = []
    for shift in (-360.0, 0.0, 360.0):
        part = _clipped(ring + np.array([shift, 0.0]))
        if len(part) > 2:
            parts.append(part)
    return parts


def _box(west: float, south: float, east: float, north: float) -> np.ndarray:
    return np.array([[west, south], [east, south], [east, north], [west, north]], np.float64)


def _clipped(ring: np.ndarray) -> np.ndarray:
    """The part between -180 and 180 degrees of longitude."""
    for side in (-180.0, 180.0):
        inside = (ring[:, 0] >= side) if side < 0 else (ring[:, 0] <= side)
        out: list[Any] = []
        for i in range(len(ring)):
            a, b = ring[i - 1], ring[i]
            if inside[i - 1] != inside[i]:
                share = (side - a[0]) / (b[0] - a[0])
                out.append([side, a[1] + share * (b[1] - a[1])])
            if inside[i]:
                out.append(b.tolist())
        ring = np.array(out, np.float64).reshape(-1, 2)
        if len(ring) < 3:
            return ring
    return ring if abs(turned(ring)) > 0 else ring[:0]


def geojson(
    centers: np.ndarray, radii: np.ndarray, properties: Sequence[dict[str, Any]], *, geographic: bool = True
) -> str:
    """A FeatureCollection: a polygon per cluster, a point where its radius is 0.

    centers     float64[m, 2]  latitude and longitude in degrees
    radii       float64[m]     kilometers, drawn rounded up to two digits, as they are told
    properties  of each cluster

    Raises PolicyError for coordinates in a plane, which GeoJSON does not have.
    """
    if not geographic:
        raise PolicyError(
            "GeoJSON holds longitudes and latitudes only, and these coordinates are of a plane; draw a map instead"
        )
    features = []
    for (lat, lng), radius, own in zip(centers.tolist(), radii.tolist(), properties, strict=True):
        shown = rounded_up(radius)
        rings = [[*ring.tolist(), ring[0].tolist()] for ring in circle(lat, lng, shown)] if shown else []
        shape: dict[str, Any] = {"type": "Point", "coordinates": [(lng + 180) % 360 - 180, lat]}
        if len(rings) == 1:
            shape = {"type": "Polygon", "coordinates": rings}
        elif rings:
            shape = {"type": "MultiPolygon", "coordinates": [[ring] for ring in rings]}
        features.append({"type": "Feature", "properties": own, "geometry": shape})
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, allow_nan=False)


def draw(
    path: Path, centers: np.ndarray, radii: np.ndarray, said: Sequence[str], *, geographic: bool = True,
    title: str = "Clusters", note: str = "",
) -> None:  # fmt: skip
    """A map by the file's ending: .png, .svg, .pdf or .html, in which each circle says its line of ``said``.

    centers  float64[m, 2]  latitude and longitude, or two coordinates of a plane
    radii    float64[m]     kilometers, or lengths in the plane; drawn rounded up to two digits
    """
    if not len(centers):
        raise InputError("there is no cluster to draw")
    shown = [rounded_up(r) for r in radii.tolist()]
    if geographic:
        shapes = [circle(lat, lng, max(r, 1e-3)) for (lat, lng), r in zip(centers.tolist(), shown, strict=True)]
    else:
        turn = np.linspace(0, 2 * math.pi, CORNERS, endpoint=False)
        ring = np.column_stack([np.cos(turn), np.sin(turn)])
        shapes = [[np.array(c) + r * ring] for c, r in zip(centers.tolist(), shown, strict=True)]
    points = np.concatenate([ring for shape in shapes for ring in shape])
    low, high = points.min(axis=0), points.max(axis=0)
    wide = math.cos(math.radians(float(np.clip((low[1] + high[1]) / 2, -80, 80)))) if geographic else 1.0
    factor = SIDE / max((high[0] - low[0]) * wide, high[1] - low[1], 1e-12)
    sheet = [[np.column_stack([(r[:, 0] - low[0]) * wide, high[1] - r[:, 1]]) * factor for r in s] for s in shapes]
    size = ((high[0] - low[0]) * wide * factor, (high[1] - low[1]) * factor)
    unit = (factor / KM_PER_DEGREE, "km") if geographic else (factor, "units")
    write_map(
        path,
        lambda: _page(sheet, said, size, unit, title, note),
        lambda to: _plot(to, sheet, size, title, note),
    )


def _thin(sheet: Sequence[Rings], size: tuple[float, float]) -> float:
    """How opaque a circle is filled: the less, the more of them lie over each other, so that these stay apart."""
    area = sum(abs(turned(ring)) / 2 for rings in sheet for ring in rings)
    return round(float(np.clip(0.5 * size[0] * size[1] / max(area, 1e-12), 0.02, 0.18)), 3)


def _page(
    sheet: Sequence[Rings], said: Sequence[str], size: tuple[float, float], unit: tuple[float, str], title: str,
    note: str,
) -> str:  # fmt: skip
    """One HTML file without any link.

    unit  drawing units per kilometer or unit of the plane, and its name
    """
    pad = 0.03 * max(size)
    held = [[ring + pad for ring in rings] for rings in sheet]
    wide, tall = size[0] + 2 * pad, size[1] + 2 * pad
    places = [[float(f"{v:.6g}") for v in rings[0].mean(axis=0).tolist()] for rings in held]
    data = {
        "said": list(said), "places": places, "focus": [0, 0, wide, tall], "scale": unit[0], "length": unit[1],
        "corner": "left",
    }  # fmt: skip
    circles = list(zip(map(outline, held), said, strict=True))
    return rendered(
        "circle_map.html",
        title=title,
        note=note,
        width=wide,
        height=tall,
        ink=INK,
        thin=_thin(sheet, size),
        circles=circles,
        data=data,
    )


def _plot(path: Path, sheet: Sequence[Rings], size: tuple[float, float], title: str, note: str) -> None:
    made = figure(path, (8, 8), dpi=140)
    from matplotlib.collections import PolyCollection

    axes = made.subplots()
    rings = [ring for shape in sheet for ring in shape]
    axes.add_collection(PolyCollection(rings, facecolors=INK, alpha=_thin(sheet, size), linewidths=0))
    axes.add_collection(
        PolyCollection(rings, facecolors="none", edgecolors=INK, alpha=min(1.0, 5 * _thin(sheet, size)), linewidths=0.5)
    )
    pad = 0.03 * max(size)
    axes.set_xlim(-pad, size[0] + pad)
    axes.set_ylim(size[1] + pad, -pad)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=12, loc="left")
    made.text(0.02, 0.01, note, fontsize=8, color="#404040")
    made.savefig(path)
