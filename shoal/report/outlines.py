"""Outlines of maps: merged polygons, and short SVG paths.

An edge that two polygons share cancels, so the remaining edges are the outline of both. A shape is a list of polygons,
and a polygon is a list of rings float64[m, 2], the exterior first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

Shape = list[list[np.ndarray]]
Point = tuple[float, float]
ROUNDING = 1e-9  # relative to the extent: closer corners are one, such as 9.2 + 0.1 and 9.3


def doubled_area(ring: np.ndarray) -> float:
    """Twice the signed area of a ring, positive if counterclockwise."""
    if len(ring) < 3:
        return 0.0
    p = ring - ring[0]
    q = np.roll(p, -1, axis=0)
    return float((p[:, 0] * q[:, 1] - q[:, 0] * p[:, 1]).sum())


def dissolve(shapes: Sequence[Shape]) -> Shape:
    """The union of shapes that don't overlap: exterior rings counterclockwise, holes clockwise.

    An edge cancels if it occurs once in each direction between the same points, up to rounding. If two borders that
    should be equal differ by more, both remain, with the sliver between them.

    O(n log n) time for n points, plus the number of holes times that of exteriors.
    """
    left: dict[tuple[Point, Point], int] = {}
    # Store each edge until its reverse occurs, then remove one copy.
    for shape in _same_coordinates(shapes):
        for polygon in shape:
            for i, ring in enumerate(polygon):
                surface = doubled_area(ring)
                if surface == 0:
                    continue
                around = ring if (surface > 0) == (i == 0) else ring[::-1]
                points = [(x, y) for x, y in around.tolist()]
                for a, b in zip(points, points[1:] + points[:1], strict=True):
                    if a == b:
                        continue
                    if left.get((b, a)):
                        left[b, a] -= 1
                        if not left[b, a]:
                            del left[b, a]
                    else:
                        left[a, b] = left.get((a, b), 0) + 1
    return _polygons(_rings(left))


def _same_coordinates(shapes: Sequence[Shape]) -> Sequence[Shape]:
    """Shapes in which coordinates that differ only by rounding are replaced with the least of them."""
    rings = [ring for shape in shapes for polygon in shape for ring in polygon]
    if not rings:
        return shapes
    points = np.concatenate(rings)
    near = ROUNDING * float(np.ptp(points, axis=0).max())
    for axis in (0, 1):
        order = np.argsort(points[:, axis])
        values = points[order, axis]
        first = np.concatenate([[True], np.diff(values) > near])
        points[order, axis] = values[first][np.cumsum(first) - 1]
    parts = iter(np.split(points, np.cumsum([len(ring) for ring in rings])[:-1]))
    return [[[next(parts) for _ in polygon] for polygon in shape] for shape in shapes]


def _rings(sides: dict[tuple[Point, Point], int]) -> list[np.ndarray]:
    """Rings along the edges, with the interior on the left, split where a ring touches itself."""
    ways: dict[Point, list[Point]] = {}
    for (a, b), times in sides.items():
        ways.setdefault(a, []).extend([b] * times)
    rings = []
    # Follow edges from a start, with the leftmost turn. If the path meets itself, the loop is a ring and is removed
    # from the path.
    for start in list(ways):
        while ways[start]:
            path: list[Point] = [start]
            at = {start: 0}
            while True:
                here = path[-1]
                if not ways.get(here):
                    break
                step = ways[here].pop(_leftmost(path[-2], here, ways[here]) if len(path) > 1 else -1)
                if step in at:
                    loop = path[at[step] :]
                    for point in loop[1:]:
                        del at[point]
                    del path[at[step] + 1 :]
                    if len(loop) > 2:
                        rings.append(np.array(loop))
                    if step == start:
                        break
                else:
                    at[step] = len(path)
                    path.append(step)
    return rings


def _leftmost(before: Point, here: Point, options: Sequence[Point]) -> int:
    """The option that turns most to the left. If several rings meet, it stays with the current interior."""
    if len(options) == 1:
        return 0
    back = np.arctan2(before[1] - here[1], before[0] - here[0])
    ahead = [(back - np.arctan2(y - here[1], x - here[0])) % (2 * np.pi) for x, y in options]
    return int(np.argmin([a if a > 0 else 2 * np.pi for a in ahead]))


def _polygons(rings: list[np.ndarray]) -> Shape:
    """Rings as polygons: each hole in the smallest exterior around it."""
    surface = [doubled_area(ring) for ring in rings]
    outside = sorted((i for i, s in enumerate(surface) if s > 0), key=lambda i: surface[i])
    found: dict[int, list[np.ndarray]] = {i: [rings[i]] for i in outside}
    boxes = {i: (rings[i].min(axis=0), rings[i].max(axis=0)) for i in outside}
    for i, ring in enumerate(rings):
        if surface[i] >= 0:
            continue
        middle = (ring[0] + ring[1]) / 2  # a hole may touch its exterior in a corner, but not along an edge
        for o in outside:
            low, high = boxes[o]
            if (
                surface[o] > -surface[i]
                and (low <= middle).all()
                and (middle <= high).all()
                and _inside(middle, rings[o])
            ):
                found[o].append(ring)
                break
    return [found[i] for i in reversed(outside)]


def _inside(point: np.ndarray, ring: np.ndarray) -> bool:
    x, y = ring.T
    x2, y2 = np.roll(x, -1), np.roll(y, -1)
    cuts = (y > point[1]) != (y2 > point[1])
    at = x[cuts] + (point[1] - y[cuts]) * (x2[cuts] - x[cuts]) / (y2[cuts] - y[cuts])
    return bool((at > point[0]).sum() % 2)


def geojson(shapes: Sequence[Shape], properties: Sequence[Mapping[str, Any]]) -> str:
    """A FeatureCollection with a MultiPolygon for every shape."""
    features = [
        {
            "type": "Feature",
            "properties": dict(own),
            "geometry": {
                "type": "MultiPolygon",
                "coordinates": [[[*ring.tolist(), ring[0].tolist()] for ring in polygon] for polygon in shape],
            },
        }
        for shape, own in zip(shapes, properties, strict=True)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False, separators=(",", ":"))


def outline(rings: Sequence[np.ndarray]) -> str:
    """Rings float64[m, 2] as an SVG path with two decimals, each corner relative to the one before.

    Corners that coincide after rounding are left out, and so are rings without remaining corners.
    """
    parts = []
    for ring in rings:
        points = np.round(ring * 100).astype(np.int64)
        kept = points[(points != np.roll(points, 1, axis=0)).any(axis=1)]
        if len(kept) > 2:
            steps = "".join(map(_number, np.diff(kept, axis=0).ravel().tolist()))
            parts.append(f"M{_number(int(kept[0, 0])).strip()}{_number(int(kept[0, 1]))}l{steps.strip()}z")
    return "".join(parts)


@lru_cache(maxsize=1 << 14)  # steps are short and repeat often
def _number(hundredths: int) -> str:
    """A number as short as SVG allows, with the sign or blank that separates it from the number before."""
    sign = "-" if hundredths < 0 else " "
    whole, rest = divmod(abs(hundredths), 100)
    text = f"{whole}.{rest:02d}".rstrip("0").rstrip(".")
    return sign + (text[1:] if text.startswith("0.") else text)
