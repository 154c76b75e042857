"""A map of regions: a picture, or one HTML file that opens anywhere, zooms, names what is under the pointer and prints.

Neighbouring regions have different colors; a second coloring shows how far above k each region is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np

from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.report.dissolve import Shape, dissolve, turned

KM_PER_DEGREE = 111.1950802335329
SIDE = 1000.0  # the longer side of the drawing, in its own unit
COLORS = ("#8fbcdb", "#f2c57c", "#a8cf8e", "#cdb4db", "#f2a599", "#e8e08a", "#9ad5ca", "#d8bfa4")
STEPS = (1.25, 1.5, 2.0, 3.0, 5.0)  # multiples of k between the classes of the second coloring
SHADES = ("#f4f0da", "#e3d9a5", "#d9b365", "#c98a3c", "#a65628", "#6b2d13")
OUT = "#dfe2e4"


@dataclass(frozen=True, eq=False)
class _Sheet:
    """Areas on paper: every ring in drawing units, x to the right, y down."""

    areas: list[Shape]
    outlines: list[Shape]
    width: float
    height: float
    scale: float  # drawing units per km, or per unit of the coordinates
    unit: str
    color: list[int]  # of each region, an index of COLORS
    shade: list[int]  # of each region, an index of SHADES
    focus: tuple[float, float, float, float]  # left, top, width, height of the part with most of the areas
    outside: int  # areas whose middle lies beyond the focus


def draw(
    path: str | Path,
    shapes: Sequence[Shape],
    labels: np.ndarray,
    ids: Sequence[str],
    weights: np.ndarray,
    *,
    regions: Sequence[str],
    areas: Sequence[str] | None = None,
    k: int = 1,
    unit: str = "people",
    geographic: bool = True,
    title: str = "Regions",
    note: str = "",
) -> None:
    """Draw the map by the file's ending: .png, .svg, .pdf (matplotlib) or .html.

    shapes       polygons of every area (lists of rings float64[m, 2]); an empty one is not drawn
    labels       int64[n]  region of every area, -1 left out
    ids, areas   short and long name of every area
    weights      int64[n]
    regions      name of every region
    k, unit      least weight of a region, what weights count
    geographic   longitude and latitude, drawn on an equal-area cone (Albers); else a plane as it is
    title, note  one line above the map, one below

    Pictures show the part with most of the areas; the HTML file opens there and zooms out to all of it.
    """
    path = Path(path)
    labels, weights = np.asarray(labels), np.asarray(weights)
    sheet = _sheet(shapes, labels, weights, max(k, 1), geographic)
    ending = path.suffix.lower()
    if ending in (".html", ".htm"):
        long = ids if areas is None else areas
        path.write_text(page(sheet, labels, ids, long, weights, regions, k, unit, title, note), encoding="utf-8")
    elif ending in (".png", ".svg", ".pdf"):
        _plot(path, sheet, labels, title, note)
    else:
        raise PolicyError.unknown("kind of map", ending or path.name, (".png", ".svg", ".pdf", ".html"))


def _sheet(shapes: Sequence[Shape], labels: np.ndarray, weights: np.ndarray, k: int, geographic: bool) -> _Sheet:
    shapes = [[[r for r in polygon if abs(turned(r)) > 0] for polygon in shape] for shape in shapes]
    shapes = [[polygon for polygon in shape if polygon] for shape in shapes]
    drawn = [i for i, shape in enumerate(shapes) if shape]
    if not drawn:
        raise InputError("none of the areas has a polygon to draw; do the names in both files agree?")
    boxes = np.array([_box(shapes[i]) for i in drawn])
    around = _seam(boxes) if geographic else 0.0
    if geographic:
        shapes = [[[_unwrapped(r, around) for r in polygon] for polygon in shape] for shape in shapes]
        boxes = np.array([_box(shapes[i]) for i in drawn])
    inside, frame = _focus(boxes)
    count = int(labels.max(initial=-1)) + 1
    outlines = [dissolve([shapes[i] for i in np.flatnonzero(labels == r).tolist()]) for r in range(count)]
    color = _colors(shapes, labels, count)
    place = _albers(frame) if geographic else _flat
    planar = [[[place(r) for r in polygon] for polygon in shape] for shape in shapes]
    lines = [[[place(r) for r in polygon] for polygon in shape] for shape in outlines]
    flat = np.array([_box(planar[i]) for i in drawn])
    low, high = flat[:, :2].min(axis=0), flat[:, 2:].max(axis=0)
    pad = 0.02 * max(*(high - low), 1e-12)
    low, high = low - pad, high + pad
    factor = SIDE / max(*(high - low), 1e-12)

    def paper(ring: np.ndarray) -> np.ndarray:
        return np.column_stack([ring[:, 0] - low[0], high[1] - ring[:, 1]]) * factor

    near = flat[inside]
    left, bottom = near[:, :2].min(axis=0)
    right, top = near[:, 2:].max(axis=0)
    edge = 0.02 * max(right - left, top - bottom)
    width, height = (high - low) * factor
    x0, y0 = max(0.0, (left - edge - low[0]) * factor), max(0.0, (high[1] - top - edge) * factor)
    x1, y1 = min(width, (right + edge - low[0]) * factor), min(height, (high[1] - bottom + edge) * factor)
    total = np.bincount(labels[labels >= 0], weights=weights[labels >= 0], minlength=count)
    return _Sheet(
        areas=[[[paper(r) for r in polygon] for polygon in shape] for shape in planar],
        outlines=[[[paper(r) for r in polygon] for polygon in shape] for shape in lines],
        width=float(width),
        height=float(height),
        scale=float(factor),
        unit="km" if geographic else "units",
        color=color,
        shade=np.searchsorted(STEPS, total / k, side="right").tolist(),
        focus=(float(x0), float(y0), float(x1 - x0), float(y1 - y0)),
        outside=int((~inside).sum()),
    )


def _box(shape: Shape) -> tuple[float, float, float, float]:
    points = np.concatenate([ring for polygon in shape for ring in polygon])
    return (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())


def _focus(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which areas are near most others, bool[n], and the box around those; all where little is gained."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    low, high = np.quantile(middle, [0.01, 0.99], axis=0)
    wide = 0.3 * np.maximum(high - low, 1e-12)
    inside = ((middle >= low - wide) & (middle <= high + wide)).all(axis=1)

    def around(held: np.ndarray) -> np.ndarray:
        return np.concatenate([boxes[held, :2].min(axis=0), boxes[held, 2:].max(axis=0)])

    every = np.ones(len(boxes), np.bool_)
    some, whole = around(inside), around(every)
    if (some[2:] - some[:2]).prod() > 0.5 * (whole[2:] - whole[:2]).prod():
        return every, whole
    return inside, some


def _seam(boxes: np.ndarray) -> float:
    """The longitude in the middle of the widest stretch without areas: where to cut the globe open."""
    starts = np.sort(((boxes[:, 0] + boxes[:, 2]) / 2) % 360)
    gaps = np.diff(np.append(starts, starts[0] + 360))
    at = int(gaps.argmax())
    return float((starts[at] + gaps[at] / 2) % 360)


def _unwrapped(ring: np.ndarray, seam: float) -> np.ndarray:
    """Longitudes counted eastwards from the seam, a ring never torn: it goes where its first point is.

    By whole turns, so that a point two rings share is the same float in both afterwards.
    """
    turns = 360.0 * np.ceil((seam - ring[0, 0]) / 360.0)
    return np.column_stack([ring[:, 0] + turns, ring[:, 1]])


def _flat(ring: np.ndarray) -> np.ndarray:
    return ring


def _albers(frame: np.ndarray):  # type: ignore[no-untyped-def]
    """Albers' equal-area conic projection for a frame (west, south, east, north), in km."""
    west, south, east, north = frame
    one, two = np.radians([south + (north - south) / 6, north - (north - south) / 6])
    middle = np.radians((south + north) / 2)
    n = (np.sin(one) + np.sin(two)) / 2
    radius = KM_PER_DEGREE * 180 / np.pi
    around = (west + east) / 2
    if abs(n) < 0.02:  # at the equator the cone is a cylinder

        def cylinder(ring: np.ndarray) -> np.ndarray:
            x = np.radians(ring[:, 0] - around) * np.cos(one)
            return np.column_stack([x, np.sin(np.radians(ring[:, 1])) / np.cos(one)]) * radius

        return cylinder
    c = np.cos(one) ** 2 + 2 * n * np.sin(one)
    start = np.sqrt(c - 2 * n * np.sin(middle)) / n

    def cone(ring: np.ndarray) -> np.ndarray:
        rho = np.sqrt(np.maximum(c - 2 * n * np.sin(np.radians(ring[:, 1])), 0)) / n
        theta = n * np.radians(ring[:, 0] - around)
        return np.column_stack([rho * np.sin(theta), start - rho * np.cos(theta)]) * radius

    return cone


def _colors(shapes: Sequence[Shape], labels: np.ndarray, count: int) -> list[int]:
    """A color for each region that none of its neighbours has, as far as the colors go; all about equally often."""
    owner: dict[tuple[float, float], set[int]] = {}
    for shape, label in zip(shapes, labels.tolist(), strict=True):
        if label >= 0:
            for polygon in shape:
                for ring in polygon:
                    for x, y in ring.tolist():
                        owner.setdefault((x, y), set()).add(label)
    near: list[set[int]] = [set() for _ in range(count)]
    for meeting in owner.values():
        for r in meeting:
            near[r] |= meeting
    color = [-1] * count
    used = [0] * len(COLORS)
    for r in sorted(range(count), key=lambda r: -len(near[r])):
        taken = [color[s] for s in near[r] if s != r]
        color[r] = min(range(len(COLORS)), key=lambda c: (taken.count(c), used[c]))
        used[color[r]] += 1
    return color


def _path(shape: Shape) -> str:
    """The shape as an SVG path, two decimals, points that fall together left out."""
    parts = []
    for polygon in shape:
        for ring in polygon:
            points = np.round(ring, 2)
            kept = points[(points != np.roll(points, 1, axis=0)).any(axis=1)]
            if len(kept) > 2:
                parts.append("M" + "L".join(f"{x:g} {y:g}" for x, y in kept.tolist()) + "z")
    return "".join(parts)


def _corner(sheet: _Sheet) -> str:
    """The lower corner of the focus with less drawn in it, for the scale."""
    x0, y0, across, down = sheet.focus
    points = np.concatenate([ring for shape in sheet.areas for polygon in shape for ring in polygon])
    low = (points[:, 1] > y0 + 0.88 * down) & (points[:, 1] <= y0 + down)
    left = low & (points[:, 0] >= x0) & (points[:, 0] < x0 + 0.2 * across)
    right = low & (points[:, 0] <= x0 + across) & (points[:, 0] > x0 + 0.8 * across)
    return "right" if left.sum() > right.sum() else "left"


def _classes() -> list[str]:
    bounds = [f"{s:g}" for s in (1.0, *STEPS)]
    return [*(f"{a} to {b} k" for a, b in pairwise(bounds)), f"{bounds[-1]} k and more"]


def page(
    sheet: _Sheet,
    labels: np.ndarray,
    ids: Sequence[str],
    areas: Sequence[str],
    weights: np.ndarray,
    regions: Sequence[str],
    k: int,
    unit: str,
    title: str,
    note: str,
) -> str:
    """The map as one HTML file without any link."""
    inside = labels >= 0
    count = len(regions)
    legend = "".join(
        f'<li><i style="background:{c}"></i>{escape(s)}</li>' for c, s in zip(SHADES, _classes(), strict=True)
    )
    styles = [f".c{i}{{fill:{c}}}" for i, c in enumerate(COLORS)]
    styles += [f".byweight .s{i}{{fill:{c}}}" for i, c in enumerate(SHADES)]
    data = {
        "ids": list(ids),
        "names": list(areas),
        "region": labels.tolist(),
        "weights": weights.tolist(),
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
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, value in {
        "title": escape(title),
        "note": escape(note),
        "unit": escape(unit),
        "width": f"{sheet.width:.6g}",
        "height": f"{sheet.height:.6g}",
        "styles": "\n  ".join([*styles, f".o{{fill:{OUT}}}"]),
        "areas": "\n".join(_drawn(sheet, labels, ids, areas, regions)),
        "lines": "".join(f'<path d="{_path(shape)}"/>' for shape in sheet.outlines),
        "legend": legend,
        "left": "" if inside.all() else f'<li><i style="background:{OUT}"></i>left out</li>',
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }.items():
        text = text.replace(f"@@{name}@@", value)
    return text


def _drawn(
    sheet: _Sheet, labels: np.ndarray, ids: Sequence[str], areas: Sequence[str], regions: Sequence[str]
) -> list[str]:
    """A path for every area that has an outline, with its name and region to hover over."""
    paths = []
    for i, (shape, r) in enumerate(zip(sheet.areas, labels.tolist(), strict=True)):
        outline = _path(shape)
        if not outline:
            continue
        kind = "o" if r < 0 else f"c{sheet.color[r]} s{sheet.shade[r]}"
        name = areas[i] if areas[i] == ids[i] or ids[i] in areas[i] else f"{ids[i]} {areas[i]}"
        tip = f"{name}: {'left out' if r < 0 else 'region ' + regions[r]}"
        paths.append(f'<path class="{kind}" data-i="{i}" d="{outline}"><title>{escape(tip)}</title></path>')
    return paths


TEMPLATE = Path(__file__).with_name("maps.html")


def _plot(path: Path, sheet: _Sheet, labels: np.ndarray, title: str, note: str) -> None:
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import PatchCollection
    from matplotlib.figure import Figure
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    def patch(shape: Shape) -> PathPatch:
        rings = [ring for polygon in shape for ring in polygon]
        points = np.concatenate([np.concatenate([r, r[:1]]) for r in rings])
        codes = np.concatenate(
            [[Outline.MOVETO] + [Outline.LINETO] * (len(r) - 1) + [Outline.CLOSEPOLY] for r in rings]
        ).astype(np.uint8)
        return PathPatch(Outline(points, codes))

    x0, y0, across, down = sheet.focus
    wide, tall = 10.0 * across / max(across, down), 10.0 * down / max(across, down)
    wide, full = max(wide, 5.0), (max(wide, 5.0) + 0.4, tall + 1.0)  # inches: title above, note below
    figure = Figure(figsize=full, dpi=160)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.2 / full[0], 0.45 / full[1], wide / full[0], tall / full[1]))
    held = [i for i, shape in enumerate(sheet.areas) if shape]
    fills = [OUT if labels[i] < 0 else COLORS[sheet.color[labels[i]]] for i in held]
    thin = float(np.clip(5 / np.sqrt(len(held)), 0.08, 0.5))
    thick = float(np.clip(12 / np.sqrt(max(len(sheet.outlines), 1)), 0.3, 1.2))
    axes.add_collection(
        PatchCollection([patch(sheet.areas[i]) for i in held], facecolors=fills, edgecolors="white", linewidths=thin)
    )
    lines = [patch(shape) for shape in sheet.outlines if shape]
    axes.add_collection(PatchCollection(lines, facecolors="none", edgecolors="#2b3a42", linewidths=thick))
    axes.set_aspect("equal")
    axes.set_xlim(x0, x0 + across)
    axes.set_ylim(y0 + down, y0)
    axes.set_axis_off()
    most = across / sheet.scale / 4
    power = 10.0 ** np.floor(np.log10(most))
    length = max(m * power for m in (1, 2, 5) if m * power <= most)
    size = 0.012 * max(across, down)
    begin = 0.02 * across if _corner(sheet) == "left" else 0.98 * across - length * sheet.scale
    at = (x0 + begin, y0 + down - 0.02 * max(across, down))
    box = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 1.5}
    axes.text(at[0], at[1] - size, f"{length:,g} {sheet.unit}", fontsize=9, bbox=box)
    axes.plot([at[0], at[0] + length * sheet.scale], [at[1]] * 2, color="black", lw=2.5, solid_capstyle="butt")
    axes.set_title(title, fontsize=12, loc="left")
    if sheet.outside:
        note = f"{note} {sheet.outside:,} areas lie outside the picture.".strip()
    if note:
        figure.text(0.2 / full[0], 0.15 / full[1], note, fontsize=8, color="#404040")
    figure.savefig(path)
