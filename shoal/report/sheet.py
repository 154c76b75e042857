"""Areas on paper: projected, scaled, colored; what lies far from most of them in boxes of its own below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.errors import InputError
from shoal.model.metric import KM_PER_DEGREE
from shoal.report.dissolve import Shape, dissolve, turned

SIDE = 1000.0  # the longer side of the drawing, in its own unit
COLORS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")  # Tol, light
STEPS = (1.25, 1.5, 2.0, 3.0, 5.0)  # multiples of k between the classes of the second coloring
INSETS = 5  # so many boxes at most; where there would be more, everything is drawn where it is
_ROW = 0.24  # height of the row of boxes over that of the map
_GAP = 0.02  # between boxes, over the longer side

Place = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Sheet:
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
    boxes: list[tuple[float, float, float, float]]  # of the insets: left, top, width, height
    outside: int  # areas whose middle lies beyond the focus


def sheet_of(shapes: Sequence[Shape], labels: np.ndarray, weights: np.ndarray, k: int, geographic: bool) -> Sheet:
    """Areas, outlines of their regions and colors; InputError where nothing can be drawn."""
    shapes = [[[r for r in polygon if abs(turned(r)) > 0] for polygon in shape] for shape in shapes]
    shapes = [[polygon for polygon in shape if polygon] for shape in shapes]
    drawn = [i for i, shape in enumerate(shapes) if shape]
    if not drawn:
        raise InputError("none of the areas has a polygon to draw; do the names in both files agree?")
    boxes = np.array([_box(shapes[i]) for i in drawn])
    if geographic:
        around = seam(boxes)
        shapes = [[[unwrapped(r, around) for r in polygon] for polygon in shape] for shape in shapes]
        boxes = np.array([_box(shapes[i]) for i in drawn])
    inside, frame = _focus(boxes)
    count = int(labels.max(initial=-1)) + 1
    outlines = [dissolve([shapes[i] for i in np.flatnonzero(labels == r).tolist()]) for r in range(count)]
    color = colors(shapes, labels, count)
    group = np.zeros(len(shapes), np.int64)
    group[drawn] = _groups(boxes, inside, frame)
    paper = _paper(shapes, group, frame, geographic)
    of_point = {tuple(r[0].tolist()): g for shape, g in zip(shapes, group.tolist(), strict=True)
                for polygon in shape for r in polygon}  # fmt: skip
    for shape, g in zip(shapes, group.tolist(), strict=True):
        of_point.update((point, g) for polygon in shape for r in polygon for point in map(tuple, r.tolist()))
    lines = [[[paper.places[of_point.get(tuple(r[0].tolist()), 0)](r) for r in polygon] for polygon in shape]
             for shape in outlines]  # fmt: skip
    total = np.bincount(labels[labels >= 0], weights=weights[labels >= 0], minlength=count)
    return Sheet(
        areas=[
            [[paper.places[g](r) for r in polygon] for polygon in shape]
            for shape, g in zip(shapes, group.tolist(), strict=True)
        ],
        outlines=lines,
        width=paper.width,
        height=paper.height,
        scale=paper.scale,
        unit="km" if geographic else "units",
        color=color,
        shade=np.searchsorted(STEPS, total / k, side="right").tolist(),
        focus=paper.focus,
        boxes=paper.boxes,
        outside=0 if paper.boxes else int((~inside).sum()),
    )


class _Paper(NamedTuple):
    """What puts each group of areas on paper, and how large the paper is."""

    places: list[Place]
    width: float
    height: float
    scale: float
    focus: tuple[float, float, float, float]
    boxes: list[tuple[float, float, float, float]]


def _groups(boxes: np.ndarray, inside: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """0 for areas of the main map, 1, 2, ... for those of one inset, the largest first; int64[n].

    Areas off the map are together where less than a tenth of its width lies between their boxes.
    """
    out = np.flatnonzero(~inside)
    group = np.zeros(len(boxes), np.int64)
    if not len(out):
        return group
    near = 0.1 * max(frame[2] - frame[0], frame[3] - frame[1])
    waiting, found = set(out.tolist()), []
    while waiting:
        held = [waiting.pop()]
        for i in held:
            low, high = boxes[i, :2] - near, boxes[i, 2:] + near
            more = [j for j in waiting if (boxes[j, :2] <= high).all() and (boxes[j, 2:] >= low).all()]
            waiting.difference_update(more)
            held += more
        found.append(held)
    if len(found) > INSETS:
        return group
    for g, held in enumerate(sorted(found, key=lambda part: (-len(part), min(part))), 1):
        group[held] = g
    return group


def _paper(shapes: Sequence[Shape], group: np.ndarray, frame: np.ndarray, geographic: bool) -> _Paper:
    """The main map, and below it a row of boxes, each at its own scale and none larger than the map's."""

    def bounds(place: Place, g: int) -> tuple[np.ndarray, np.ndarray]:
        held = [shape for shape, own in zip(shapes, group.tolist(), strict=True) if own == g and shape]
        flat = np.array([_box([[place(r) for r in polygon] for polygon in shape]) for shape in held])
        return flat[:, :2].min(axis=0), flat[:, 2:].max(axis=0)

    number = int(group.max(initial=0))
    first = albers(frame) if geographic else _flat
    low, high = bounds(first, 0)
    pad = 0.02 * max(*(high - low), 1e-12)
    low, high = low - pad, high + pad
    scale = SIDE / max(*(high - low), 1e-12)
    width, height = ((high - low) * scale).tolist()
    places, rects = [_onto(first, low, high, scale, 0.0, 0.0)], []
    left, row = 0.0, _ROW * max(height, width / 3)
    for g in range(1, number + 1):
        own = [shape for shape, at in zip(shapes, group.tolist(), strict=True) if at == g and shape]
        box = np.array([_box(shape) for shape in own])
        place = albers(np.concatenate([box[:, :2].min(axis=0), box[:, 2:].max(axis=0)])) if geographic else _flat
        least, most = bounds(place, g)
        edge = 0.05 * max(*(most - least), 1e-12)
        least, most = least - edge, most + edge
        room = (width - (number - 1) * _GAP * SIDE) / number
        own_scale = min(scale, row / (most - least)[1], room / (most - least)[0])
        wide, tall = ((most - least) * own_scale).tolist()
        top = height + _GAP * SIDE + row - tall
        places.append(_onto(place, least, most, own_scale, left, top))
        rects.append((left, top, wide, tall))
        left += wide + _GAP * SIDE
    whole = height + (_GAP * SIDE + row if rects else 0.0)
    focus = (0.0, 0.0, width, whole)
    if not number:
        focus = _part(places[0], shapes, frame, width, height)
    return _Paper(places, width, whole, float(scale), focus, rects)


def _onto(place: Place, low: np.ndarray, high: np.ndarray, scale: float, left: float, top: float) -> Place:
    """Projected, then in drawing units with y down, the upper left corner at (left, top)."""

    def paper(ring: np.ndarray) -> np.ndarray:
        flat = place(ring)
        return np.column_stack([left + (flat[:, 0] - low[0]) * scale, top + (high[1] - flat[:, 1]) * scale])

    return paper


def _part(
    paper: Place, shapes: Sequence[Shape], frame: np.ndarray, width: float, height: float
) -> tuple[float, float, float, float]:
    """The part of the drawing that holds the areas within the frame."""
    found = []
    for shape in shapes:
        if shape:
            box = _box(shape)
            middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            if frame[0] <= middle[0] <= frame[2] and frame[1] <= middle[1] <= frame[3]:
                found.append(_box([[paper(r) for r in polygon] for polygon in shape]))
    near = np.array(found)
    (left, top), (right, bottom) = near[:, :2].min(axis=0).tolist(), near[:, 2:].max(axis=0).tolist()
    edge = 0.02 * max(right - left, bottom - top)
    x0, y0 = max(0.0, left - edge), max(0.0, top - edge)
    return x0, y0, min(width, right + edge) - x0, min(height, bottom + edge) - y0


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


def seam(boxes: np.ndarray) -> float:
    """The longitude in the middle of the widest stretch without areas: where to cut the globe open."""
    starts = np.sort(((boxes[:, 0] + boxes[:, 2]) / 2) % 360)
    gaps = np.diff(np.append(starts, starts[0] + 360))
    at = int(gaps.argmax())
    return float((starts[at] + gaps[at] / 2) % 360)


def unwrapped(ring: np.ndarray, seam: float) -> np.ndarray:
    """Longitudes counted eastwards from the seam, a ring never torn: it goes where its first point is.

    By whole turns, so that a point two rings share is the same float in both afterwards.
    """
    turns = 360.0 * np.ceil((seam - ring[0, 0]) / 360.0)
    return np.column_stack([ring[:, 0] + turns, ring[:, 1]])


def _flat(ring: np.ndarray) -> np.ndarray:
    return ring


def albers(frame: np.ndarray) -> Place:
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


def colors(shapes: Sequence[Shape], labels: np.ndarray, count: int) -> list[int]:
    """A color for each region that none of its neighbors has, as far as the colors go; all about equally often."""
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
