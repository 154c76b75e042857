"""The judge's own measures of regions, computed from the edges of polygons without a geometry library.

Edges run with the interior on the left. An edge shared by two areas occurs once in each direction and cancels. So area
and centroid are sums over all edges, and the border is the edges that remain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.judge.finding import CONSISTENT, RECOMPUTED, Finding
from shoal.model.cards import several

Shape = list[list[np.ndarray]]
KM_PER_DEGREE = 111.1950802335329  # of a great circle on a sphere of radius 6371.0088 km
# directions; with these, the width is exact to 1e-5
_WAYS = np.stack([np.cos(t := np.linspace(0, np.pi, 720, endpoint=False)), np.sin(t)])
_CLOSE = {"diameter": 2e-5, "reock": 5e-5}  # relative tolerances; other figures have that of float sums
_BLOCK = 256
_ROUNDING = 1e-9  # relative to a region's extent: closer corners are one, such as 9.2 + 0.1 and 9.3


class RegionFigures(NamedTuple):
    """Figures of a region, by name; its border edges, float64[m, 2], from a to b; the borders of all its areas."""

    figures: dict[str, float]
    a: np.ndarray
    b: np.ndarray
    borders: float


def measured(shapes: Sequence[Shape], degrees: bool) -> RegionFigures | None:
    """Figures of areas that form a region, or of its one outline; None if the region has no surface.

    degrees  coordinates are degrees; lengths are then km in the tangent plane at the centroid
    """
    held = [(ring, i) for shape in shapes for polygon in shape for i, ring in enumerate(polygon) if len(ring) > 2]
    if not held:
        return None
    if degrees and np.ptp(np.concatenate([ring[:, 0] for ring, _ in held])) > 180:
        held = [(np.where(ring < [0, -np.inf], ring + np.array([360.0, 0.0]), ring), i) for ring, i in held]
    a = np.concatenate(rings := [_ring(ring, i) for ring, i in held])
    b = np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])
    origin = a[0].copy()
    surface, middle = _centroid(a - origin, b - origin)
    if surface <= 0:
        return None
    middle = middle + origin
    scale = np.array([max(math.cos(math.radians(middle[1])), 0.01), 1.0]) * KM_PER_DEGREE if degrees else np.ones(2)
    left = _border(a, b)
    a, b = (a - middle) * scale, (b - middle) * scale
    borders, (a, b) = float(np.hypot(*(b - a).T).sum()), (a[left], b[left])
    surface, around = surface * scale.prod(), float(np.hypot(*(b - a).T).sum())
    if not len(a):
        return None
    circle = math.pi * _radius(a) ** 2
    return RegionFigures({
        "area": surface, "perimeter": around, "diameter": float(np.ptp(a @ _WAYS, axis=0).max()),
        "polsby_popper": 4 * math.pi * surface / around**2, "reock": surface / circle,
        "center_x": float(middle[0]), "center_y": float(middle[1]),
    }, a, b, borders)  # fmt: skip


def judge_measures(
    claimed: Sequence[Mapping[str, float]], shapes: Sequence[Sequence[Shape]], asked: Mapping[str, Any], drawn: bool
) -> list[Finding]:
    """Whether the stated figures of each region (nan: not stated) are those of its polygons.

    shapes  of each region its areas, or its outline alone
    drawn   whether shapes are outlines, so that no areas need to be merged
    """
    gap = 0.0 if drawn else reach(asked)
    wrong, unclear = [], 0
    for own, held in zip(claimed, shapes, strict=True):
        found = measured(held, bool(asked.get("geographic")))
        odd = differing(own, found, gap) if found else []
        if odd and found and crosses_itself(found.a, found.b):
            unclear += 1
        else:
            wrong += odd
    names = ", ".join(dict.fromkeys(wrong))
    text = (
        f"{several(len(wrong), 'figure')} not as the polygons have them: {names}"
        if wrong
        else "as the polygons have them"
    )
    unsure = f"; borders cross in {several(unclear, 'region')}, whose figures are open" if unclear else ""
    found_ = [Finding("measures", not wrong, text + unsure, CONSISTENT if unclear else RECOMPUTED)]
    if gap and any("polsby_popper" in own for own in claimed):
        found_.append(
            Finding("polsby_popper", True, "of borders drawn twice: the outlines would tell more", CONSISTENT)
        )
    return found_


def reach(asked: Mapping[str, Any]) -> float:
    """The largest gap at which two borders were treated as one: in km, or in units of the plane."""
    drawn = asked.get("drawn") or {}
    far = float(drawn.get("tolerance") or 0.0)
    metres = asked.get("geographic") and drawn.get("unit", "km") != "km"
    return far / 1000 if metres else far


def differing(claimed: Mapping[str, float], own: RegionFigures, gap: float = 0.0) -> list[str]:
    """Names of the stated figures that differ from those of the polygons.

    gap  borders up to this far apart were treated as one. Area and width are then only approximately those of the
         areas, and the length of the border is unknown, so figures that depend on it are skipped.
    """
    figures, wrong = own.figures, []
    loose = 2 * gap * own.borders / figures["area"]
    for name, value in claimed.items():
        if name not in figures or math.isnan(value) or (gap and name in ("perimeter", "polsby_popper")):
            continue
        off, size = abs(value - figures[name]), abs(figures[name])
        if name == "center_x":
            off = min(off, abs(off - 360))
        if name.startswith("center"):
            size = math.sqrt(figures["area"])
            allowed = 1e-6 * size + loose * figures["diameter"]
        elif name == "diameter":
            allowed = _CLOSE[name] * size + (4 * gap + 1e-3 * size if gap else 0.0)
        else:
            allowed = (_CLOSE.get(name, 1e-6) + loose + (4 * gap / figures["diameter"])) * size
        if not off <= allowed:
            wrong.append(name)
    return wrong


def _ring(ring: np.ndarray, place: int) -> np.ndarray:
    """The corners of an exterior ring (place 0) counterclockwise, of a hole clockwise."""
    p = ring - ring[0]
    turned = float((p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1]).sum())
    return ring if (turned > 0) == (place == 0) else ring[::-1]


def _centroid(a: np.ndarray, b: np.ndarray) -> tuple[float, np.ndarray]:
    """Area and centroid of the polygons with these edges."""
    cross = a[:, 0] * b[:, 1] - b[:, 0] * a[:, 1]
    surface = float(cross.sum()) / 2
    return surface, ((a + b) * cross[:, None]).sum(axis=0) / (6 * surface) if surface else np.zeros(2)


def _border(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """bool[m]: the edges that remain after opposite edges cancel."""
    corners = np.concatenate([a, b])
    near = _ROUNDING * float(np.ptp(corners, axis=0).max())
    places = np.column_stack([_alike(corners[:, 0], near), _alike(corners[:, 1], near)])
    a, b = places[: len(a)], places[len(a) :]
    ahead = (a[:, 0] < b[:, 0]) | ((a[:, 0] == b[:, 0]) & (a[:, 1] < b[:, 1]))
    ends = np.where(ahead[:, None], np.hstack([a, b]), np.hstack([b, a]))
    _, same = np.unique(ends, axis=0, return_inverse=True)
    net = np.bincount(same.ravel(), weights=np.where(ahead, 1.0, -1.0))[same.ravel()]
    return (net != 0) & ((net > 0) == ahead) & (a != b).any(axis=1)


def _alike(values: np.ndarray, near: float) -> np.ndarray:
    """int64[m]: ranks of numbers; numbers within rounding errors of each other have the same rank."""
    order = np.argsort(values)
    number = np.empty(len(values), np.int64)
    number[order] = np.concatenate([[0], np.cumsum(np.diff(values[order]) > near)])
    return number


def _radius(points: np.ndarray) -> float:
    """The radius of the smallest enclosing circle: the farthest point outside is added to at most three points."""
    held = points[:1]
    middle, radius = held[0], 0.0
    for _ in range(len(points)):
        far = np.hypot(*(points - middle).T)
        at = int(far.argmax())
        if far[at] <= radius * (1 + 1e-9):
            break
        middle, radius, held = _circle(np.vstack([held, points[at]]))
    return radius


def _circle(few: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """The smallest enclosing circle of at most four points, and the two or three points on it."""
    best: tuple[np.ndarray, float, np.ndarray] | None = None
    for own in _subsets(len(few)):
        p = few[own]
        middle = p.mean(axis=0) if len(p) == 2 else _through(p)
        if middle is None:
            continue
        radius = float(np.hypot(*(p - middle).T).max())
        if (np.hypot(*(few - middle).T) <= radius * (1 + 1e-12)).all() and (best is None or radius < best[1]):
            best = middle, radius, p
    return best or (few.mean(axis=0), float(np.hypot(*(few - few.mean(axis=0)).T).max()), few[:3])


def _subsets(n: int) -> Iterable[list[int]]:
    pairs = [[i, j] for i in range(n) for j in range(i)]
    return [*pairs, *([i, j, k] for i, j in pairs for k in range(j))]


def _through(p: np.ndarray) -> np.ndarray | None:
    """The center of the circle through three points; None if they are collinear."""
    u, v = p[1] - p[0], p[2] - p[0]
    twice = 2 * (u[0] * v[1] - u[1] * v[0])
    if twice == 0:
        return None
    uu, vv = u @ u, v @ v
    return p[0] + np.array([v[1] * uu - u[1] * vv, u[0] * vv - v[0] * uu]) / twice


def crosses_itself(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether edges cross or overlap, or wind around a point twice. The figures of such polygons are undefined.

    O(m^2) time for m edges at worst, in blocks; each block is compared with the edges whose boxes overlap it.
    """
    d = b - a
    low, high = np.minimum(a, b), np.maximum(a, b)
    inner = (a + b) / 2 + 1e-6 * np.column_stack([-d[:, 1], d[:, 0]])
    inner = inner[np.argsort(inner[:, 1])]
    for start in range(0, len(a), _BLOCK):
        own = slice(start, start + _BLOCK)
        near = ((low <= high[own].max(axis=0)) & (high >= low[own].min(axis=0))).all(axis=1)
        if _meet(a[own], b[own], a[near], b[near]).any() or (_around(inner[own], a, b) != 1).any():
            return True
    return False


def _meet(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """bool[m, n]: whether edges c-d and a-b cross, or an endpoint of one lies inside the other."""

    def turn(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        """The distance of r to the left of p-q, as a share of the squared length."""
        u, v = q - p, r - p
        return (u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]) / np.maximum((u * u).sum(axis=-1), 1e-300)

    a, b, c, d = a[:, None], b[:, None], c[None], d[None]
    of_c, of_d, of_a, of_b = turn(a, b, c), turn(a, b, d), turn(c, d, a), turn(c, d, b)
    small = 1e-9
    crossing = (of_c * of_d < -(small**2)) & (of_a * of_b < -(small**2))
    along = ((c - a) * (b - a)).sum(axis=-1) / ((b - a) ** 2).sum(axis=-1)
    return crossing | ((np.abs(of_c) < small) & (along > small) & (along < 1 - small))


def _around(points: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """int64[m]: the winding number of the edges around each point, counterclockwise."""
    x, y = points[:, :1], points[:, 1:]
    high = (np.minimum(a[:, 1], b[:, 1]) <= y.max()) & (np.maximum(a[:, 1], b[:, 1]) >= y.min())
    a, b = a[high], b[high]
    up, down = (a[:, 1] <= y) & (b[:, 1] > y), (b[:, 1] <= y) & (a[:, 1] > y)
    left = (b[:, 0] - a[:, 0]) * (y - a[:, 1]) - (x - a[:, 0]) * (b[:, 1] - a[:, 1])
    return (up & (left > 0)).sum(axis=1) - (down & (left < 0)).sum(axis=1)
