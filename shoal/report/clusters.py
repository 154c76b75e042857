"""Pictures of clusters: positions, widths, and the cost at other r and epsilon; as GeoJSON, SVG, or a page.

A picture of a release shows only what the release states: centers, radii or spreads, and sizes. It never shows records.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.metric import EARTH_KM, KM_PER_DEGREE, Number, Place, rounded_up
from shoal.report import pictures
from shoal.report.outlines import doubled_area, outline
from shoal.report.parts import rendered
from shoal.report.pictures import figure, write_map

INK = "#14688a"
BAD = "#b3261e"


PAIRS = 6  # most pairs of columns that are drawn
NAMED = 12  # most values of a category that are labeled on an axis


class Axis(NamedTuple):
    """One coordinate of every center, the reach of its cluster along it, and the labels on the axis."""

    name: str
    value: np.ndarray
    reach: np.ndarray
    named: Sequence[str] = ()


def draw_clusters(
    path: Path, form: Any, radii: np.ndarray, unit: str, *, title: str = "Clusters", note: str = "",
    texts: Sequence[Sequence[str | None]] = (),
) -> None:  # fmt: skip
    """Draw clusters in every pair of columns, at most six pairs, and the distribution of their radii.

    form   a release of clusters: ``records`` of each cluster, and for each feature in ``centers`` the ``feature``, the
           ``value`` of each center, and the ``spread``, the distance of each cluster's farthest member in its unit
    radii  float64[m] in the metric's unit
    texts  per feature the values of a category, in the order of their codes
    """
    axes_of = _axes(form.centers, texts)
    pairs = list(combinations(axes_of, 2))[:PAIRS] or [(axes_of[0], axes_of[0])]
    figure, panels = _figure(path, len(pairs) + 1)
    for panel, (a, b) in zip(panels, pairs, strict=False):
        _pair(panel, a, b, np.asarray(form.records))
        if (a.name, b.name) == ("longitude", "latitude"):
            middle = np.clip(abs(float(np.median(b.value))) if b.value.size else 0.0, 0, 85)
            panel.set_aspect(1 / np.cos(np.radians(middle)))
    panels[0].set_title(title, fontsize=11, loc="left")
    _radii(panels[len(pairs)], np.asarray(radii), np.asarray(form.records), unit)
    for panel in panels[len(pairs) + 1 :]:
        panel.set_axis_off()
    if note:
        figure.text(0.02, 0.01, note, fontsize=8, color="#404040")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path)


def draw_choices(
    path: Path, rows: Sequence[tuple[int, float, float, float, float]], unit: str, cost_unit: str | None
) -> None:
    """Draw cost and mean distance against r, a line per epsilon, with the bound below each cost: an internal picture.

    rows       (r, epsilon, cost, lower bound, mean distance)
    cost_unit  the cost's unit if it isn't a radius
    """
    if not rows:
        raise PolicyError("there is no answer to draw; give rows of r, epsilon, cost, bound and mean distance")
    radius = cost_unit is None or cost_unit == unit
    figure, axes = _figure(path, 2)
    shares = sorted({row[1] for row in rows})
    for i, share in enumerate(shares):
        mine = sorted(row for row in rows if row[1] == share)
        r = [row[0] for row in mine]
        color = f"C{i % 10}"
        axes[0].plot(r, [row[2] for row in mine], "o-", color=color, label=f"{share:g} left out")
        axes[0].plot(r, [row[3] for row in mine], ":", color=color)
        axes[1].plot(r, [row[4] for row in mine], "o-", color=color, label=f"{share:g} left out")
    first = "largest radius" if radius else "sum of size times radius"
    panels = (
        (axes[0], f"{first} (dotted: no answer below)", unit if radius else cost_unit),
        (axes[1], "mean distance", unit),
    )
    for axis, what, measure in panels:
        axis.set_xlabel("r")
        axis.set_ylabel(measure)
        axis.set_title(what, fontsize=11, loc="left")
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False, fontsize=9)
    pictures.marked_internal(figure)
    figure.savefig(path)


def _figure(path: Path, panels: int) -> tuple[Any, Any]:
    across = min(panels, 3)
    down = -(-panels // across)
    made = pictures.figure(path, (6.0 * across, 5.0 * down))
    return made, np.asarray(made.subplots(down, across)).reshape(-1)


def _axes(centers: Sequence[Any], texts: Sequence[Sequence[str | None]]) -> list[Axis]:
    """The axes of all features, those of places first."""
    places, others = [], []
    for i, c in enumerate(centers):
        spread = np.array([rounded_up(x) for x in np.asarray(c.spread, np.float64).tolist()])
        if isinstance(c.feature, Place):
            first, second = np.asarray(c.value, np.float64).T
            if c.feature.geometry == "plane":
                places += [Axis("first coordinate", first, spread), Axis("second coordinate", second, spread)]
                continue
            tall = np.degrees(spread / EARTH_KM)
            wide = np.minimum(tall / np.maximum(np.cos(np.radians(first)), 0.01), 180.0)
            places += [Axis("longitude", second, wide), Axis("latitude", first, tall)]
        elif isinstance(c.feature, Number):
            others.append(Axis(c.feature.name, np.asarray(c.value, np.float64), spread))
        else:
            others.append(_named(c, texts[i] if i < len(texts) else ()))
    return places + others


def _named(center: Any, texts: Sequence[str | None]) -> Axis:
    """A category as an axis: a position for every value that is a center."""
    codes, at = np.unique(np.asarray(center.value), return_inverse=True)
    shown = ["missing" if texts[c] is None else str(texts[c]) for c in codes.tolist()] if len(texts) else codes.tolist()
    reach = np.where(np.asarray(center.spread) > 0, 0.45, 0.1)
    return Axis(center.feature.name, at.reshape(-1).astype(np.float64), reach, [str(x)[:20] for x in shown])


def _pair(axes: Any, a: Axis, b: Axis, records: np.ndarray) -> None:
    """Draw two columns: ellipses of numbers, a strip for each value of a category, counts if both are categories."""
    if a.named and b.named:
        _counts(axes, a, b, records)
    elif a.named or b.named:
        _strips(axes, a, b)
    else:
        _ellipses(axes, a, b, records)
    axes.set_xlabel(a.name)
    axes.set_ylabel(b.name)
    if 0 < len(a.named) <= NAMED:
        axes.set_xticks(range(len(a.named)), a.named, rotation=45, ha="right", fontsize=8)
    if 0 < len(b.named) <= NAMED:
        axes.set_yticks(range(len(b.named)), b.named, fontsize=8)
    for axis, limits in ((a, axes.set_xlim), (b, axes.set_ylim)):
        if axis.named:
            limits(-0.6, len(axis.named) - 0.4)


def _ellipses(axes: Any, a: Axis, b: Axis, records: np.ndarray) -> None:
    """Draw the reach and the center of each cluster; the more ellipses overlap, the more transparent they are."""
    from matplotlib.collections import EllipseCollection

    x, y = a.value, b.value
    size = np.clip(3000.0 / max(x.size, 1), 0.2, 12.0)
    span = [max(float(np.ptp(v)), 1e-12) if v.size else 1.0 for v in (x, y)]
    layers = float(np.pi * (a.reach * b.reach).sum() / (span[0] * span[1]))  # mean number of ellipses over a point
    alpha = float(np.clip(0.4 / max(layers, 1e-9), 0.004, 0.15))
    axes.add_collection(
        EllipseCollection(
            2 * a.reach, 2 * b.reach, np.zeros(x.size), units="xy", offsets=np.stack([x, y], axis=1),
            offset_transform=axes.transData, facecolors=INK, edgecolors="none", alpha=alpha,
        )
    )  # fmt: skip
    axes.scatter(x, y, s=size * np.clip(records / max(float(np.median(records)) if x.size else 1, 1), 1, 6), color=INK,
                 linewidths=0)  # fmt: skip
    axes.autoscale_view()
    axes.margins(0.05)


def _strips(axes: Any, a: Axis, b: Axis) -> None:
    """Draw a line for each cluster in the strip of its value, as long as its reach, stacked without overlaps."""
    from matplotlib.collections import LineCollection

    named, number = (a, b) if a.named else (b, a)
    height = np.zeros(len(named.value))
    for value in np.unique(named.value):
        at = np.flatnonzero(named.value == value)
        order = at[np.argsort(number.value[at], kind="stable")]
        height[order] = value + 0.7 * ((np.arange(len(at)) + 0.5) / len(at) - 0.5)
    low, high = number.value - number.reach, number.value + number.reach
    sides = [np.column_stack([v, height]) if named is b else np.column_stack([height, v]) for v in (low, high)]
    axes.add_collection(LineCollection(list(np.stack(sides, axis=1)), colors=INK, alpha=0.35, linewidths=0.6))
    middle = (number.value, height) if named is b else (height, number.value)
    axes.scatter(*middle, s=float(np.clip(1500 / max(len(height), 1), 0.3, 6)), color=INK, linewidths=0)
    axes.autoscale_view()


def _counts(axes: Any, a: Axis, b: Axis, records: np.ndarray) -> None:
    """Draw a disc for each pair of values: its area shows the records of the clusters, its label their number."""
    where, at = np.unique(np.stack([a.value, b.value], axis=1), axis=0, return_inverse=True)
    held, number = np.bincount(at.ravel(), weights=records), np.bincount(at.ravel())
    largest = 40.0 * 40 * 36 / max(len(a.named), len(b.named), 4) ** 2
    axes.scatter(*where.T, s=largest * held / max(held.max(initial=1), 1), color=INK, alpha=0.35, linewidths=0)
    if len(where) <= 60:
        for (x, y), n in zip(where.tolist(), number.tolist(), strict=True):
            axes.text(x, y, f"{n:,}", ha="center", va="center", fontsize=8)
    axes.set_title("clusters; discs by records", fontsize=9, loc="right")


def _radii(axes: Any, radii: np.ndarray, records: np.ndarray, unit: str) -> None:
    """Draw the share of the records in clusters with a radius of at most x."""
    order = np.argsort(radii)
    share = np.cumsum(records[order]) / max(int(records.sum()), 1)
    axes.step(radii[order], 100 * share, where="post", color=INK)
    if radii.size:
        axes.axvline(float(radii.max()), color=BAD, lw=1, label=f"largest {radii.max():.4g}")
        middle = float(radii[order][np.searchsorted(share, 0.5)])
        axes.axvline(middle, color="#5b6b7b", lw=1, ls="--", label=f"half of the records {middle:.4g}")
        axes.legend(frameon=False, fontsize=9, loc="lower right")
        if radii.min() > 0 and radii.max() > 20 * middle:
            axes.set_xscale("log")
    axes.set_xlabel(f"radius of the cluster, {unit}")
    axes.set_ylabel("% of the records")
    axes.set_title("How wide", fontsize=11, loc="left")


CORNERS = 64
SIDE = 1000.0  # the longer side of the drawing, in drawing units
Rings = list[np.ndarray]


def circle(lat: float, lng: float, radius: float) -> Rings:
    """Polygons in longitude and latitude, float64[m, 2] each, that contain all points within ``radius`` kilometers.

    The polygon is split where it crosses longitude 180, and extends to a pole if the circle contains one. The corners
    lie outside the circle, so the polygons contain the whole circle.
    """
    reach = radius / EARTH_KM / math.cos(math.pi / CORNERS)
    north, south = reach >= math.radians(90 - lat), reach >= math.radians(90 + lat)
    if (north and south) or reach >= math.pi:
        return [np.array([[-180, -90], [180, -90], [180, 90], [-180, 90]], np.float64)]
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
        return [ring[::-1] if doubled_area(ring) < 0 else ring]
    ring = np.column_stack([np.degrees(x) + middle, np.degrees(y)])[::-1]
    parts = []
    for shift in (-360.0, 0.0, 360.0):
        part = _clipped(ring + np.array([shift, 0.0]))
        if len(part) > 2:
            parts.append(part)
    return parts


def _clipped(ring: np.ndarray) -> np.ndarray:
    """The part between longitudes -180 and 180."""
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
    return ring if abs(doubled_area(ring)) > 0 else ring[:0]


def geojson(
    centers: np.ndarray, radii: np.ndarray, properties: Sequence[dict[str, Any]], *, geographic: bool = True
) -> str:
    """A FeatureCollection: a polygon per cluster, or a point if its radius is 0.

    centers     float64[m, 2]: latitude and longitude in degrees
    radii       float64[m]: kilometers, rounded up to two digits as in the release
    properties  of each cluster

    Raises PolicyError for coordinates in a plane, which GeoJSON can't represent.
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


def draw_circles(
    path: Path, centers: np.ndarray, radii: np.ndarray, captions: Sequence[str], *, geographic: bool = True,
    title: str = "Clusters", note: str = "",
) -> None:  # fmt: skip
    """Draw a map by the file's ending: .png, .svg, .pdf, or .html, where each circle shows its caption.

    centers  float64[m, 2]: latitude and longitude, or two coordinates of a plane
    radii    float64[m]: kilometers, or lengths in the plane; rounded up to two digits
    """
    if not len(centers):
        raise InputError("there is no cluster to draw")
    shown = [rounded_up(r) for r in radii.tolist()]
    if geographic:
        shapes = [circle(lat, lng, max(r, 1e-3)) for (lat, lng), r in zip(centers.tolist(), shown, strict=True)]
    else:
        turn = np.linspace(0, 2 * math.pi, CORNERS, endpoint=False)
        ring = np.column_stack([np.cos(turn), np.sin(turn)])
        least = 1e-3 * (float(np.ptp(centers, axis=0).max()) or 1.0)
        shapes = [[np.array(c) + max(r, least) * ring] for c, r in zip(centers.tolist(), shown, strict=True)]
    points = np.concatenate([ring for shape in shapes for ring in shape])
    low, high = points.min(axis=0), points.max(axis=0)
    wide = math.cos(math.radians(float(np.clip((low[1] + high[1]) / 2, -80, 80)))) if geographic else 1.0
    factor = SIDE / max((high[0] - low[0]) * wide, high[1] - low[1], 1e-12)
    sheet = [[np.column_stack([(r[:, 0] - low[0]) * wide, high[1] - r[:, 1]]) * factor for r in s] for s in shapes]
    size = ((high[0] - low[0]) * wide * factor, (high[1] - low[1]) * factor)
    unit = (factor / KM_PER_DEGREE, "km") if geographic else (factor, "units")
    write_map(
        path, lambda: _page(sheet, captions, size, unit, title, note), lambda to: _plot(to, sheet, size, title, note)
    )


def _opacity(sheet: Sequence[Rings], size: tuple[float, float]) -> float:
    """The opacity of the circles: the more they overlap, the lower, so that each remains visible."""
    area = sum(abs(doubled_area(ring)) / 2 for rings in sheet for ring in rings)
    return round(float(np.clip(0.5 * size[0] * size[1] / max(area, 1e-12), 0.02, 0.18)), 3)


def _page(
    sheet: Sequence[Rings], captions: Sequence[str], size: tuple[float, float], unit: tuple[float, str], title: str,
    note: str,
) -> str:  # fmt: skip
    """One HTML file without links.

    unit  drawing units per kilometer or unit of the plane, and its name
    """
    pad = 0.03 * max(size)
    held = [[ring + pad for ring in rings] for rings in sheet]
    wide, tall = size[0] + 2 * pad, size[1] + 2 * pad
    places = [[float(f"{v:.6g}") for v in rings[0].mean(axis=0).tolist()] for rings in held]
    data = {
        "said": list(captions), "places": places, "focus": [0, 0, wide, tall], "scale": unit[0], "length": unit[1],
        "corner": "left",
    }  # fmt: skip
    circles = list(zip(map(outline, held), captions, strict=True))
    return rendered(
        "circle_map.html",
        title=title,
        note=note,
        width=wide,
        height=tall,
        ink=INK,
        thin=_opacity(sheet, size),
        circles=circles,
        data=data,
    )


def _plot(path: Path, sheet: Sequence[Rings], size: tuple[float, float], title: str, note: str) -> None:
    """Draw clusters as circles with matplotlib."""
    made = figure(path, (8, 8), dpi=140)
    from matplotlib.collections import PolyCollection

    axes = made.subplots()
    rings = [ring for shape in sheet for ring in shape]
    axes.add_collection(PolyCollection(rings, facecolors=INK, alpha=_opacity(sheet, size), linewidths=0))
    axes.add_collection(
        PolyCollection(
            rings, facecolors="none", edgecolors=INK, alpha=min(1.0, 5 * _opacity(sheet, size)), linewidths=0.5
        )
    )
    pad = 0.03 * max(size)
    axes.set_xlim(-pad, size[0] + pad)
    axes.set_ylim(size[1] + pad, -pad)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=12, loc="left")
    made.text(0.02, 0.01, note, fontsize=8, color="#404040")
    made.savefig(path)
