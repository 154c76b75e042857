"""Maps of regions and of tiles: a picture, or one HTML file without links that zooms, shows names on hover, and prints.

Neighboring regions have different colors. A second coloring shows how far each region is above k. A third shows which
of the original areas are below k. The weights of areas are never shown, because the release doesn't reveal them.

A map of tiles shows only what a release states: bounds and counts. It shows no points.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.metric import KM_PER_DEGREE
from shoal.report.outlines import Shape, outline
from shoal.report.parts import rendered
from shoal.report.pictures import COLORS, STEPS, Sheet, bar_length, framed, scale_bar, sheet_of, write_map

SHADES = ("#f4f0da", "#e3d9a5", "#d9b365", "#c98a3c", "#a65628", "#6b2d13")
UNDER = "#ffffff"  # areas that are below k alone
OUT = "#c9ced2"


def draw_regions(
    path: str | Path,
    shapes: Sequence[Shape],
    labels: np.ndarray,
    ids: Sequence[str],
    weights: np.ndarray,
    *,
    regions: Sequence[str],
    areas: Sequence[str] | None = None,
    k: int = 1,
    unit: str = "weight",
    geographic: bool = True,
    title: str = "Regions",
    note: str = "",
    area_classes: bool = True,
) -> None:
    """Draw the map in the format of the file's ending: .png, .svg, .pdf (matplotlib), or .html.

    shapes       polygons of every area (lists of rings float64[m, 2]); an empty one isn't drawn
    labels       int64[n]: region of every area, -1 if left out
    ids, areas   short and long name of every area
    weights      int64[n]; the sums of regions are shown
    regions      name of every region
    k, unit      least weight of a region, and the unit of weights
    geographic   longitude and latitude, drawn with an equal-area cone (Albers); otherwise coordinates of a plane
    title, note  one line above the map, one below
    area_classes whether an HTML file also shows for each area whether its weight is below k, or its class otherwise

    Areas far from most others (Alaska, Hawaii, Puerto Rico) are drawn in inset boxes with their own scale. If there
    would be too many boxes, pictures show the part with most of the areas, and the HTML file zooms out to all of it.
    """
    labels, weights = np.asarray(labels), np.asarray(weights)
    sheet = sheet_of(shapes, labels, weights, max(k, 1), geographic)
    shown = _MapContent(labels, ids, ids if areas is None else areas, weights, regions, k, unit, area_classes)
    write_map(path, lambda: map_page(sheet, shown, title, note), lambda to: _plot(to, sheet, labels, title, note))


def _path(shape: Shape) -> str:
    """The shape as an SVG path."""
    return outline([ring for polygon in shape for ring in polygon])


def _corner(sheet: Sheet) -> str:
    """The lower corner of the focus with less drawn in it, for the scale bar."""
    x0, y0, across, down = sheet.focus
    points = np.concatenate([ring for shape in sheet.areas for polygon in shape for ring in polygon])
    low = (points[:, 1] > y0 + 0.88 * down) & (points[:, 1] <= y0 + down)
    left = low & (points[:, 0] >= x0) & (points[:, 0] < x0 + 0.2 * across)
    right = low & (points[:, 0] <= x0 + across) & (points[:, 0] > x0 + 0.8 * across)
    return "right" if left.sum() > right.sum() else "left"


def _classes() -> list[str]:
    bounds = [f"{s:g}" for s in (1.0, *STEPS)]
    return [*(f"{a} to {b} k" for a, b in pairwise(bounds)), f"{bounds[-1]} k and more"]


def _amounts(k: int) -> list[str]:
    """Texts for the weight of a single area: only "below k" below k, and steps of the legend above it."""
    bounds = [f"{s * k:,.0f}" for s in (1.0, *STEPS)]
    return [f"under {bounds[0]}", *(f"{a} to {b}" for a, b in pairwise(bounds)), f"{bounds[-1]} and more"]


class _MapContent(NamedTuple):
    """The data that the map shows about areas and regions; see ``draw``."""

    labels: np.ndarray
    ids: Sequence[str]
    areas: Sequence[str]
    weights: np.ndarray
    regions: Sequence[str]
    k: int
    unit: str
    area_classes: bool


def map_page(sheet: Sheet, shown: _MapContent, title: str, note: str) -> str:
    """The map as one HTML file without links."""
    labels, ids, areas, weights, regions, k, unit, area_classes = shown
    inside = labels >= 0
    count = len(regions)
    styles = [(f".c{i}", c) for i, c in enumerate(COLORS)]
    styles += [(f".byweight .s{i}", c) for i, c in enumerate(SHADES)]
    styles += [(f".byclass .b{i}", c) for i, c in enumerate((UNDER, *SHADES))]
    step = np.searchsorted([float(k), *(s * k for s in STEPS)], weights, side="right")
    long = [name if i in name else f"{i} {name}" for i, name in zip(ids, areas, strict=True)]
    data = {
        "ids": list(ids),
        "names": [None if name == i else name for i, name in zip(ids, long, strict=True)],
        "region": labels.tolist(),
        "class": step.tolist() if area_classes else None,
        "steps": _amounts(k),
        "regions": list(regions),
        "total": np.bincount(labels[inside], weights=weights[inside], minlength=count).astype(np.int64).tolist(),
        "size": np.bincount(labels[inside], minlength=count).tolist(),
        "k": k,
        "unit": unit,
        "scale": sheet.scale,
        "length": sheet.unit,
        "focus": sheet.focus,
        "corner": _corner(sheet),
    }
    return rendered(
        "region_map.html",
        title=title,
        note=_noted(sheet, note),
        width=sheet.width,
        height=sheet.height,
        styles=[*styles, (".o", OUT)],
        areas=_drawn(sheet, labels, step if area_classes else None, long, regions),
        lines=[*(("", _path(shape)) for shape in sheet.outlines), *(("inset", _framed(box)) for box in sheet.boxes)],
        legend=list(zip(SHADES, _classes(), strict=True)),
        classes=list(zip((UNDER, *SHADES), _amounts(k), strict=True)) if area_classes else [],
        left=[] if inside.all() else [(OUT, "in no region")],
        data=data,
    )


def _drawn(
    sheet: Sheet, labels: np.ndarray, step: np.ndarray | None, names: Sequence[str], regions: Sequence[str]
) -> list[tuple[str, int, str, str]]:
    """(classes, index, path, hover text: name and region) of every area that has an outline."""
    paths = []
    for i, (shape, r) in enumerate(zip(sheet.areas, labels.tolist(), strict=True)):
        drawn = _path(shape)
        if not drawn:
            continue
        kind = "o" if r < 0 else f"c{sheet.color[r]} s{sheet.shade[r]}"
        tip = f"{names[i]}: {'in no region' if r < 0 else 'region ' + regions[r]}"
        paths.append((kind if step is None else f"{kind} b{step[i]}", i, drawn, tip))
    return paths


def _noted(sheet: Sheet, note: str) -> str:
    return f"{note} Boxes are not at the scale of the map.".strip() if sheet.boxes else note


def _framed(box: tuple[float, float, float, float]) -> str:
    x, y, wide, tall = box
    return f"M{x:.2f} {y:.2f}h{wide:.2f}v{tall:.2f}h{-wide:.2f}z"


def _plot(path: Path, sheet: Sheet, labels: np.ndarray, title: str, note: str) -> None:
    """Draw regions with matplotlib."""
    note = _noted(sheet, note)
    if sheet.outside:
        note = f"{note} {sheet.outside:,} areas lie outside the picture.".strip()
    figure, axes = framed(path, sheet.focus, 10.0, (title, note), least=5.0)
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path as Outline

    def patch(shape: Shape) -> PathPatch:
        rings = [ring for polygon in shape for ring in polygon]
        points = np.concatenate([np.concatenate([r, r[:1]]) for r in rings])
        codes = np.concatenate(
            [[Outline.MOVETO] + [Outline.LINETO] * (len(r) - 1) + [Outline.CLOSEPOLY] for r in rings]
        ).astype(np.uint8)
        return PathPatch(Outline(points, codes))

    held = [i for i, shape in enumerate(sheet.areas) if shape]
    fills = [OUT if labels[i] < 0 else COLORS[sheet.color[labels[i]]] for i in held]
    thin = float(np.clip(5 / np.sqrt(len(held)), 0.08, 0.5))
    thick = float(np.clip(12 / np.sqrt(max(len(sheet.outlines), 1)), 0.3, 1.2))
    axes.add_collection(
        PatchCollection([patch(sheet.areas[i]) for i in held], facecolors=fills, edgecolors="white", linewidths=thin)
    )
    lines = [patch(shape) for shape in sheet.outlines if shape]
    axes.add_collection(PatchCollection(lines, facecolors="none", edgecolors="#2b3a42", linewidths=thick))
    for x, y, across_, down_ in sheet.boxes:
        axes.add_patch(Rectangle((x, y), across_, down_, facecolor="none", edgecolor="#9aa5ab", linewidth=0.6))
    axes.set_aspect("equal")
    axes.set_axis_off()
    length = bar_length(sheet.focus[2] / sheet.scale / 4)
    scale_bar(axes, sheet.focus, length * sheet.scale, f"{length:,g} {sheet.unit}", _corner(sheet) == "right")
    figure.savefig(path)


TILE_COLORS = ("#ffffd9", "#e4f4cb", "#c0e6c0", "#8fd3bd", "#54b9c3", "#2d97bf", "#2567a8", "#223a8a", "#0e1f57")
SIDE = 1000.0  # the longer side of the drawing, in drawing units


@dataclass(frozen=True, eq=False)
class _Sheet:
    """Tiles in drawing units: rects float[m, 4] (left, top, width, height), and each tile's color class."""

    rects: np.ndarray
    width: float
    height: float
    scale: float  # drawing units per km, or per unit of the coordinates
    unit: str
    density: np.ndarray
    level: np.ndarray
    breaks: np.ndarray
    focus: tuple[float, float, float, float]  # left, top, width, height of the part with most of the tiles
    boxes: np.ndarray | None  # float[m, 4] like rects: bounding boxes of the tiles' points, if given


def tile_sheet(
    bounds: np.ndarray, counts: np.ndarray, coordinates: str, seam: float | None, boxes: np.ndarray | None = None
) -> _Sheet:
    """The data of a picture of tiles; InputError if bounds aren't float[m, 4], or counts aren't int[m].

    coordinates  "geographic" (degrees) or "plane"
    seam         longitude at which the map is cut
    boxes        float[m, 4]
    """
    b = np.array(bounds, dtype=np.float64)
    if b.ndim != 2 or b.shape[1] != 4 or not len(b) or len(counts) != len(b):
        raise InputError(f"a map needs bounds float[m, 4] and m counts; these have shape {b.shape} and {len(counts)}")
    geographic = coordinates == "geographic"
    inner = None if boxes is None else np.array(boxes, dtype=np.float64)
    if seam is not None:
        b = _unwrapped(b, seam)
        inner = inner if inner is None else _unwrapped(inner, seam)
    b = _with_ends(b)
    low, high, most_low, most_high = np.empty(2), np.empty(2), np.empty(2), np.empty(2)
    for axis in (0, 1):
        sides = b[:, [axis, axis + 2]]
        low[axis], high[axis] = sides.min(), sides.max()
        most_low[axis], most_high[axis] = np.quantile(sides, [0.01, 0.99])
    span = np.where(high > low, high - low, np.maximum(np.abs(high), 1.0) * 0.1)
    low, high = low - 0.02 * span, high + 0.02 * span
    wide = 0.12 * np.maximum(most_high - most_low, 0.02 * span)
    far = most_high - most_low > 0.5 * span  # omitting the remote tiles would gain little
    most_low, most_high = np.where(far, low, most_low), np.where(far, high, most_high)
    most_low, most_high = np.maximum(low, most_low - wide), np.minimum(high, most_high + wide)
    if geographic:
        low[1], high[1] = max(low[1], -90.0), min(high[1], 90.0)
    x_unit = float(np.cos(np.deg2rad((low[1] + high[1]) / 2))) if geographic else 1.0
    factor = SIDE / max((high[0] - low[0]) * x_unit, high[1] - low[1])

    def drawn(box: np.ndarray) -> np.ndarray:
        c = np.stack([np.clip(box[:, i], low[i % 2], high[i % 2]) for i in range(4)], axis=1)
        left, top = (c[:, 0] - low[0]) * x_unit, high[1] - c[:, 3]
        return np.stack([left, top, (c[:, 2] - c[:, 0]) * x_unit, c[:, 3] - c[:, 1]], axis=1) * factor

    rects = drawn(b)
    scale = factor / (KM_PER_DEGREE if geographic else 1.0)
    filled = rects if inner is None else drawn(inner)
    area = np.maximum(filled[:, 2:] / scale, 1e-9).prod(axis=1)
    density = np.asarray(counts, np.float64) / area
    breaks = density_breaks(density)
    return _Sheet(
        rects=rects,
        width=float((high[0] - low[0]) * x_unit * factor),
        height=float((high[1] - low[1]) * factor),
        scale=float(scale),
        unit="km" if geographic else "units",
        density=density,
        level=np.searchsorted(breaks, density, side="right"),
        breaks=breaks,
        focus=tuple(drawn(np.concatenate([most_low, most_high])[None])[0].tolist()),
        boxes=None if inner is None else filled,
    )


def _with_ends(b: np.ndarray) -> np.ndarray:
    """Bounds with a finite end on every side.

    An open side is placed so that the tile is as wide as it is long, or as most tiles.

    If the tile were drawn up to the frame, its size would be meaningless, because the extent of its records isn't
    published.
    """
    b = b.copy()
    for axis in (0, 1):
        low, high, other = b[:, axis], b[:, axis + 2], b[:, 3 - axis] - b[:, 1 - axis]
        lines = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
        first, last = (lines.min(), lines.max()) if lines.size else (0.0, 1.0)
        own = (high - low)[np.isfinite(low) & np.isfinite(high)]
        usual = float(np.median(own)) if own.size else max((last - first) / 4, abs(last) * 0.05, 1e-9)
        reach = np.clip(np.where(np.isfinite(other), other, usual), usual, 4 * usual)
        both = np.isinf(low) & np.isinf(high)
        low[both], high[both] = first - usual, last + usual
        b[:, axis] = np.where(np.isinf(low), high - reach, low)
        b[:, axis + 2] = np.where(np.isinf(high), low + reach, high)
    return b


def _unwrapped(b: np.ndarray, seam: float) -> np.ndarray:
    """Longitudes counted eastwards from the seam. A side on the seam has nothing beyond it, like an infinite side."""
    b = b.copy()
    b[:, 0] = np.where(b[:, 0] == seam, -np.inf, b[:, 0] + np.where(b[:, 0] < seam, 360.0, 0.0))
    b[:, 2] = np.where(b[:, 2] == seam, np.inf, b[:, 2] + np.where(b[:, 2] < seam, 360.0, 0.0))
    return b


def density_breaks(density: np.ndarray) -> np.ndarray:
    """At most eight round densities, evenly spaced on a logarithmic scale, between which most tiles lie."""
    low, high = np.quantile(density, [0.02, 0.98])
    for series, every in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 4), ((1,), 8)):
        powers = range(int(np.floor(np.log10(low))) // every * every, int(np.ceil(np.log10(high))) + 1, every)
        found = np.array([float(f"{m}e{p}") for p in powers for m in series])
        found = found[(found > low) & (found < high)]
        if found.size < len(TILE_COLORS):
            break
    return found[: len(TILE_COLORS) - 1]


def _number(v: float) -> str:
    """A number with a few significant digits and grouped thousands, without an exponent unless it is extreme."""
    if v >= 100:
        return f"{v:,.0f}"
    return f"{v:.2g}" if v >= 0.0001 else f"{v:.0e}"


def _steps(sheet: _Sheet) -> list[str]:
    """The legend: one text per color class."""
    b = [_number(v) for v in sheet.breaks]
    if not b:
        return ["all tiles"]
    return [f"under {b[0]}", *(f"{low} to {high}" for low, high in pairwise(b)), f"{b[-1]} and more"]


def _palette(sheet: _Sheet) -> list[str]:
    n = len(sheet.breaks) + 1
    return [TILE_COLORS[round(i * (len(TILE_COLORS) - 1) / max(n - 1, 1))] for i in range(n)]


def draw_tiles(
    path: str | Path,
    bounds: np.ndarray,
    counts: np.ndarray,
    *,
    coordinates: str = "projected",
    seam: float | None = None,
    boxes: np.ndarray | None = None,
    title: str = "Tiles",
    note: str = "",
) -> None:
    """Draw the map in the format of the file's ending: .png, .svg, .pdf (matplotlib), or .html.

    bounds, counts, coordinates, seam   as in ``shoal.tiles.Tiles``
    boxes                               bounding boxes of its points, drawn instead of the whole tiles. They show where
                                        in a tile people are, so such a map is internal
    title, note                         one line above the map, one below

    Pictures show the part with most of the tiles. The HTML file opens there and zooms out to all of it. Tiles with an
    open side are drawn about as long as others, and a line below the map states this.
    """
    if not np.isfinite(bounds).all():
        note = f"{note} Outer tiles go on beyond what is drawn.".strip()
    sheet = tile_sheet(bounds, counts, coordinates, seam, boxes)
    write_map(
        path,
        lambda: tile_page(sheet, np.asarray(bounds), np.asarray(counts), title, note),
        lambda to: _plot_tiles(to, sheet, title, note),
    )


def _plot_tiles(path: Path, sheet: _Sheet, title: str, note: str) -> None:
    """Draw tiles with matplotlib."""
    figure, axes = framed(path, sheet.focus, 8.0, (title, note), margin=1.9)
    from matplotlib.collections import PolyCollection
    from matplotlib.patches import Patch

    colors = _palette(sheet)
    line = float(np.clip(8 / np.sqrt(len(sheet.rects)), 0.05, 0.6))
    filled = [colors[i] for i in sheet.level]
    if sheet.boxes is None:
        layers = [(sheet.rects, filled, "#30404a", line)]
    else:
        layers = [(sheet.rects, ["white"] * len(filled), "#c8d0d4", line), (sheet.boxes, filled, "#30404a", line)]
    for rects, face, edge, width in layers:
        left, top, w, h = rects.T
        x, y = np.stack([left, left + w, left + w, left], axis=1), np.stack([top, top, top + h, top + h], axis=1)
        axes.add_collection(
            PolyCollection(list(np.stack([x, y], axis=2)), facecolors=face, edgecolors=edge, linewidths=width)
        )
    axes.set_xticks([])
    axes.set_yticks([])
    length = bar_length(sheet.focus[2] / sheet.scale / 4)
    scale_bar(axes, sheet.focus, length * sheet.scale, f"{_number(length)} {sheet.unit}")
    steps = zip(colors, _steps(sheet), strict=True)
    axes.legend(
        handles=[Patch(facecolor=c, edgecolor="#808890", lw=0.5, label=s) for c, s in steps][::-1],
        title=f"records per {'km²' if sheet.unit == 'km' else 'unit of area'}",
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        fontsize=9,
        title_fontsize=9,
        alignment="left",
    )
    figure.savefig(path)


def tile_page(sheet: _Sheet, bounds: np.ndarray, counts: np.ndarray, title: str, note: str) -> str:
    """The map as one HTML file without links: an SVG with one path per color, zoomed by its view box."""
    shapes = [] if sheet.boxes is None else [("t pale", "white", _outlines(sheet.rects))]
    for level, color in enumerate(_palette(sheet)):
        filled = (sheet.rects if sheet.boxes is None else sheet.boxes)[sheet.level == level]
        shapes.append(("t", color, _outlines(filled)))
    data = {
        "rects": [[float(f"{v:.6g}") for v in row] for row in sheet.rects.tolist()],
        "bounds": [[None if not np.isfinite(v) else float(f"{v:.9g}") for v in row] for row in bounds.tolist()],
        "counts": np.asarray(counts).tolist(),
        "scale": sheet.scale,
        "length": sheet.unit,
        "focus": sheet.focus,
    }
    return rendered(
        "tile_map.html",
        title=title,
        note=note,
        width=sheet.width,
        height=sheet.height,
        shapes=shapes,
        legend=list(zip(_palette(sheet), _steps(sheet), strict=True))[::-1],
        per="km²" if sheet.unit == "km" else "unit of area",
        data=data,
    )


def _outlines(rects: np.ndarray) -> str:
    """Rectangles float[m, 4] as one SVG path."""
    return "".join(f"M{a:.6g} {b:.6g}h{w:.5g}v{h:.5g}h{-w:.5g}z" for a, b, w, h in rects.tolist())


def geojson(bounds: np.ndarray, properties: Sequence[dict], coordinates: str) -> str:
    """A FeatureCollection of the tiles' bounds float[m, 4]; open sides end at longitude 180 and at the poles."""
    if coordinates != "geographic":
        raise PolicyError(
            "GeoJSON holds longitudes and latitudes only, and these coordinates are projected; name a .csv file instead"
        )
    x = bounds[:, [0, 2]]
    start = 0.0 if (x[np.isfinite(x)] > 180).any() else -180.0
    features = [
        {"type": "Feature", "properties": own, "geometry": _geometry(row, start)}
        for row, own in zip(bounds.tolist(), properties, strict=True)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False)


def _geometry(row: list[float], start: float) -> dict:
    west, south, east, north = row
    south, north = max(south, -90.0), min(north, 90.0)
    west, east = (start if np.isinf(west) else west), (start + 360.0 if np.isinf(east) else east)
    parts = _within(west, east if east > west else east + 360.0)
    rings = [[[[w, south], [e, south], [e, north], [w, north], [w, south]]] for w, e in parts]
    if len(rings) == 1:
        return {"type": "Polygon", "coordinates": rings[0]}
    return {"type": "MultiPolygon", "coordinates": rings}


def _within(west: float, east: float) -> list[tuple[float, float]]:
    """An interval of longitudes, split into intervals within -180..180."""
    if west >= 180:
        return _within(west - 360, east - 360)
    if west < -180:
        return _within(west + 360, east + 360)
    return [(west, east)] if east <= 180 else [(west, 180.0), (-180.0, east - 360)]
