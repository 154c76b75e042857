"""A map of regions: a picture, or one HTML file that opens anywhere, zooms, names what is under the pointer and prints.

Neighboring regions have different colors; a second coloring shows how far above k each region is, a third, of the
areas as they came, which are below k by themselves.  What an area weighs stands nowhere: the release does not tell it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shoal.report.canvas import bar_length, framed, scale_bar, write_map
from shoal.report.dissolve import Shape
from shoal.report.outlines import outline
from shoal.report.rendering import rendered
from shoal.report.sheet import COLORS, STEPS, Sheet, sheet_of

SHADES = ("#f4f0da", "#e3d9a5", "#d9b365", "#c98a3c", "#a65628", "#6b2d13")
UNDER = "#ffffff"  # areas below k by themselves
OUT = "#c9ced2"


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
    weights      int64[n]; of regions their sums are shown, of an area whether it is below k and else its class
    regions      name of every region
    k, unit      least weight of a region, what weights count
    geographic   longitude and latitude, drawn on an equal-area cone (Albers); else a plane as it is
    title, note  one line above the map, one below

    What lies far from most areas (Alaska, Hawaii, Puerto Rico) is drawn in boxes of its own, not at the map's scale.
    Where that would be many boxes, pictures show the part with most of the areas; the HTML file zooms out to all of it.
    """
    labels, weights = np.asarray(labels), np.asarray(weights)
    sheet = sheet_of(shapes, labels, weights, max(k, 1), geographic)
    shown = _Shown(labels, ids, ids if areas is None else areas, weights, regions, k, unit)
    write_map(path, lambda: page(sheet, shown, title, note), lambda to: _plot(to, sheet, labels, title, note))


def _path(shape: Shape) -> str:
    """The shape as an SVG path."""
    return outline([ring for polygon in shape for ring in polygon])


def _corner(sheet: Sheet) -> str:
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


def _amounts(k: int) -> list[str]:
    """What is said of the weight of an area by itself: nothing finer below k, and above it steps of the legend."""
    bounds = [f"{s * k:,.0f}" for s in (1.0, *STEPS)]
    return [f"under {bounds[0]}", *(f"{a} to {b}" for a, b in pairwise(bounds)), f"{bounds[-1]} and more"]


class _Shown(NamedTuple):
    """What the map tells of areas and regions; see ``draw``."""

    labels: np.ndarray
    ids: Sequence[str]
    areas: Sequence[str]
    weights: np.ndarray
    regions: Sequence[str]
    k: int
    unit: str


def page(sheet: Sheet, shown: _Shown, title: str, note: str) -> str:
    """The map as one HTML file without any link."""
    labels, ids, areas, weights, regions, k, unit = shown
    inside = labels >= 0
    count = len(regions)
    styles = [(f".c{i}", c) for i, c in enumerate(COLORS)]
    styles += [(f".byweight .s{i}", c) for i, c in enumerate(SHADES)]
    styles += [(f".byclass .b{i}", c) for i, c in enumerate((UNDER, *SHADES))]
    step = np.searchsorted([float(k), *(s * k for s in STEPS)], weights, side="right")
    long = [_named(i, name) for i, name in zip(ids, areas, strict=True)]
    data = {
        "ids": list(ids),
        "names": [None if name == i else name for i, name in zip(ids, long, strict=True)],
        "region": labels.tolist(),
        "class": step.tolist(),
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
        areas=_drawn(sheet, labels, step, long, regions),
        lines=[*(("", _path(shape)) for shape in sheet.outlines), *(("inset", _framed(box)) for box in sheet.boxes)],
        legend=list(zip(SHADES, _classes(), strict=True)),
        classes=list(zip((UNDER, *SHADES), _amounts(k), strict=True)),
        left=[] if inside.all() else [(OUT, "in no region")],
        data=data,
    )


def _named(id: str, name: str) -> str:
    return name if id in name else f"{id} {name}"


def _drawn(
    sheet: Sheet, labels: np.ndarray, step: np.ndarray, names: Sequence[str], regions: Sequence[str]
) -> list[tuple[str, int, str, str]]:
    """(classes, its number, path, what hovering says: name and region) of every area that has an outline."""
    paths = []
    for i, (shape, r) in enumerate(zip(sheet.areas, labels.tolist(), strict=True)):
        drawn = _path(shape)
        if not drawn:
            continue
        kind = "o" if r < 0 else f"c{sheet.color[r]} s{sheet.shade[r]}"
        tip = f"{names[i]}: {'in no region' if r < 0 else 'region ' + regions[r]}"
        paths.append((f"{kind} b{step[i]}", i, drawn, tip))
    return paths


def _noted(sheet: Sheet, note: str) -> str:
    return f"{note} Boxes are not at the scale of the map.".strip() if sheet.boxes else note


def _framed(box: tuple[float, float, float, float]) -> str:
    x, y, wide, tall = box
    return f"M{x:.2f} {y:.2f}h{wide:.2f}v{tall:.2f}h{-wide:.2f}z"


def _plot(path: Path, sheet: Sheet, labels: np.ndarray, title: str, note: str) -> None:
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
