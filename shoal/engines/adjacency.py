"""Areas of a map that share a border, also if each polygon was simplified separately, and areas that have no neighbor.

Polygons from one set of lines share their sides. If each polygon is simplified separately, borders overlap or leave
gaps. A true subdivision has no overlaps, so the depth of one polygon's corners inside another shows how far borders
were moved. Gaps are as wide as overlaps are deep, because both come from the same lines. So the tolerance is twice the
95th percentile of these depths.

Two areas are neighbors if they share a side, or if along more than half of the tolerance the border of one is within
the tolerance of the other, and neither a third area nor open space is nearer. A corner where four areas meet has no
such stretch, and a river wider than the tolerance separates areas.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.engines.shapes import Shape, listed, shown
from shoal.errors import InputError, MissingDependencyError
from shoal.model.cards import several
from shoal.model.metric import KM_PER_DEGREE


def segments(shape: Shape) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Every side of positive length of every ring, in the ring's direction."""
    for polygon in shape:
        for ring in polygon:
            points = [(x, y) for x, y in ring.tolist()]
            for a, b in zip(points, points[1:] + points[:1], strict=True):
                if a != b:
                    yield a, b


def neighbors(shapes: Sequence[Shape]) -> np.ndarray:
    """int64[m, 2]: pairs of shapes that share a side of a ring, the smaller number first.

    A side is shared if both ends are the same floats in both rings, in either direction. Shapes that share only a point
    aren't neighbors. Borders that are drawn twice with different points aren't recognized here; ``adjacency`` finds
    those.

    O(number of points) time and memory.
    """
    owner: dict[Any, int] = {}
    pairs: set[tuple[int, int]] = set()
    more: dict[Any, set[int]] = {}
    for i, shape in enumerate(shapes):
        for a, b in segments(shape):
            side = (a, b) if a < b else (b, a)
            first = owner.setdefault(side, i)
            if first != i:
                others = more.setdefault(side, {first})
                pairs |= {(other, i) for other in others if other != i}
                others.add(i)
    return np.array(sorted(pairs), np.int64).reshape(-1, 2)


_ROUNDING = 1e-7  # share of the extent: borders with a smaller distance are one border


_DEEP = 0.95


# if fewer pairs of neighbors than this share overlap, overlaps are drawing errors and not due to simplification
_FAULTS = 0.05


_SAMPLES = 64  # maximum number of samples on the border of two areas


class Adjacency(NamedTuple):
    """Pairs of neighbors, and figures about the quality of the map.

    pairs      int64[m, 2], the smaller number first
    tolerance  in km, or in the plane's units
    overlaps   pairs of areas that overlap by more than rounding
    slivers    gaps inside the map, narrower than the tolerance
    holes      wider gaps: lakes, or missing areas
    repaired   areas whose rings crossed themselves
    alone      areas that would have a neighbor if gaps at borders were closed, if this may be a drawing error
    gap        a tolerance that closes such gaps
    """

    pairs: np.ndarray
    tolerance: float
    overlaps: int
    slivers: int
    holes: int
    repaired: int
    alone: int = 0
    gap: float = 0.0


def adjacency(shapes: Sequence[Shape], geographic: bool, tolerance: float | None = None) -> Adjacency:
    """Neighbors of polygons, by shared sides and by distance.

    shapes      as read: lists of polygons; an empty one has no neighbors
    geographic  whether coordinates are degrees: distances are in km, with widths scaled by the cosine of the middle
                latitude, and 180 degrees is not a border
    tolerance   km or the plane's units; None: estimated from the overlaps

    Raises MissingDependencyError without shapely. O(p log n) for p corners, and 64 samples for each border.
    """
    try:
        import shapely
    except ImportError:
        raise MissingDependencyError.needed("shapely", "finding borders that were drawn twice", "geo") from None
    if tolerance is not None and not (np.isfinite(tolerance) and tolerance >= 0):
        raise InputError(f"the tolerance is {tolerance!r}; it must be a number of at least 0")
    exact = neighbors(shapes)
    drawn, owner, repaired = _drawn(shapes, geographic)
    if not len(drawn):
        return Adjacency(exact, 0.0, 0, 0, 0, 0)
    corners = shapely.get_coordinates(drawn)
    rounding = float(np.ptp(corners, axis=0).max()) * _ROUNDING
    tree = shapely.STRtree(drawn)
    depth, overlaps = _overlaps(tree, drawn, owner, rounding)
    size = float(np.median(np.sqrt(shapely.area(drawn))))
    if told := tolerance is None:
        if overlaps < _FAULTS * len(exact):
            depth = depth[:0]
        tolerance = min(2 * float(np.quantile(depth, _DEEP)), size / 10) if len(depth) else 0.0
    within = max(tolerance, rounding)
    union = shapely.union_all(drawn)
    if not overlaps:
        overlaps = _covered(tree, drawn, union)
    known = exact @ np.array([int(owner.max()) + 1, 1])
    near = owner[_near(tree, drawn, owner, known, union, within, 0.5 if within > rounding else 100.0)]
    pairs = np.unique(np.sort(np.concatenate([exact, near]), axis=1), axis=0)
    slivers, holes = _gaps(union, within)
    alone = _alone(tree, drawn, np.flatnonzero(~np.isin(owner, pairs)), size / 10) if told else (0, 0.0)
    pairs = pairs.astype(np.int64).reshape(-1, 2)
    return Adjacency(pairs, float(tolerance), overlaps, slivers, holes, repaired, *alone)


def _alone(tree: Any, drawn: np.ndarray, alone: np.ndarray, most: float) -> tuple[int, float]:
    """The number of areas without a neighbor that have another area within ``most``, and a tolerance for 9 of 10 of
    them.

    The result is 0 if they are fewer than a third of all areas, because islands aren't drawing errors.
    """
    if len(alone) < 2 or 3 * len(alone) < len(drawn):
        return 0, 0.0
    _, far = tree.query_nearest(drawn[alone], exclusive=True, return_distance=True, all_matches=False)
    far = far[far <= most]
    if 3 * len(far) < len(drawn):
        return 0, 0.0
    # twice the distance, because other neighbors are farther than the nearest area
    nine = 2 * float(np.quantile(far, 0.9))
    unit = 10.0 ** (np.floor(np.log10(max(nine, 1e-12))) - 1)
    return len(far), float(f"{np.ceil(nine / unit + 1e-6) * unit:.2g}")


def _drawn(shapes: Sequence[Shape], geographic: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Polygons in km (or in plane units), the area of each, and the number of areas that crossed themselves.

    If degrees span the globe, areas at the western end are repeated at the eastern end.
    """
    import shapely
    from shapely.geometry import MultiPolygon

    held = [i for i, shape in enumerate(shapes) if any(len(p[0]) > 2 for p in shape)]
    rings = [ring for i in held for polygon in shapes[i] for ring in polygon]
    if not held:
        return np.empty(0, object), np.empty(0, np.int64), 0
    scale = np.ones(2)
    if geographic:
        points = np.concatenate(rings)
        middle = float(points[:, 1].min() + points[:, 1].max()) / 2
        scale = np.array([max(np.cos(np.radians(middle)), 0.01), 1.0]) * KM_PER_DEGREE

    def polygon_of(shape: Shape, shift: float) -> Any:
        at = np.array([shift, 0.0])
        return MultiPolygon(
            [((p[0] + at) * scale, [(h + at) * scale for h in p[1:] if len(h) > 2]) for p in shape if len(p[0]) > 2]
        )

    found = [polygon_of(shapes[i], 0.0) for i in held]
    owner = list(held)
    if geographic:
        low = {i: min(float(p[0][:, 0].min()) for p in shapes[i] if len(p[0]) > 2) for i in held}
        high = max(float(ring[:, 0].max()) for ring in rings)
        if high - min(low.values()) >= 359:
            again = [i for i in held if low[i] <= high - 359]
            found += [polygon_of(shapes[i], 360.0) for i in again]
            owner += again
    drawn = np.array(found, dtype=object)
    broken = ~shapely.is_valid(drawn)
    drawn[broken] = shapely.make_valid(drawn[broken])
    return drawn, np.array(owner, np.int64), int(broken[: len(held)].sum())


def _overlaps(tree: Any, drawn: np.ndarray, owner: np.ndarray, rounding: float) -> tuple[np.ndarray, int]:
    """Depth of every corner inside another area, and the number of overlapping pairs of areas.

    A pair with more than half of one area inside the other is no evidence of moved borders.
    """
    import shapely

    corners, of = shapely.get_coordinates(drawn, return_index=True)
    points = shapely.points(corners)
    at, inside = tree.query(points)
    other = owner[of[at]] != owner[inside]
    at, inside = at[other], inside[other]
    shapely.prepare(drawn)  # without this, every corner is compared with every side
    within = shapely.contains(drawn[inside], points[at])
    at, inside = at[within], inside[within]
    depth = shapely.distance(points[at], shapely.boundary(drawn)[inside])
    deep = depth > rounding
    at, inside, depth = at[deep], inside[deep], depth[deep]
    if not len(depth):
        return depth, 0
    pair = np.sort(np.column_stack([of[at], inside]), axis=1)
    found, inverse = np.unique(pair, axis=0, return_inverse=True)
    a, b = drawn[found[:, 0]], drawn[found[:, 1]]
    share = shapely.area(shapely.intersection(a, b)) / np.minimum(shapely.area(a), shapely.area(b))
    return depth[(share <= 0.5)[inverse.ravel()]], len(found)


def _covered(tree: Any, drawn: np.ndarray, union: Any) -> int:
    """The number of overlapping pairs without corners inside each other: an area drawn twice, or rectangles in one
    row."""
    import shapely

    area = shapely.area(drawn)
    if area.sum() - shapely.area(union) <= _ROUNDING * shapely.area(union):
        return 0
    a, b = tree.query(drawn, predicate="intersects")
    a, b = a[a < b], b[a < b]
    both = shapely.area(shapely.intersection(drawn[a], drawn[b]))
    return int((both > _ROUNDING * np.minimum(area[a], area[b])).sum())


def _near(
    tree: Any, drawn: np.ndarray, owner: np.ndarray, known: np.ndarray, union: Any, within: float, least: float
) -> np.ndarray:
    """Pairs of drawn polygons, in either order, that are not in ``known`` and are neighbors by distance: on a stretch
    of border of ``least`` times the tolerance, each is the nearest of the other.

    Open space is the outside of the map after gaps narrower than twice the tolerance are filled.
    """
    import shapely

    low, high = shapely.bounds(drawn)[:, :2] - within, shapely.bounds(drawn)[:, 2:] + within
    a, b = tree.query(shapely.box(low[:, 0], low[:, 1], high[:, 0], high[:, 1]))
    n = int(owner.max()) + 1
    both = np.sort(np.column_stack([owner[a], owner[b]]), axis=1)
    fresh = (both[:, 0] != both[:, 1]) & ~np.isin(both @ np.array([n, 1]), known)
    a, b = a[fresh], b[fresh]
    near = shapely.dwithin(drawn[a], drawn[b], within)
    a, b = a[near], b[near]
    if not len(a):
        return np.empty((0, 2), np.int64)
    used = np.unique(np.concatenate([a, b]))
    border, around = np.empty(len(drawn), object), np.empty(len(drawn), object)
    border[used], around[used] = shapely.boundary(drawn[used]), shapely.buffer(drawn[used], within, quad_segs=4)
    stretch = shapely.intersection(border[a], around[b])
    total = shapely.length(stretch)
    parts, of = shapely.get_parts(stretch, return_index=True)
    length = shapely.length(parts)
    parts, of, length = parts[length > 0], of[length > 0], length[length > 0]
    times = np.clip(np.ceil(length / np.maximum(within / 4, total[of] / _SAMPLES)), 1, _SAMPLES).astype(np.int64)
    part = np.repeat(np.arange(len(parts)), times)
    number = np.arange(len(part)) - np.repeat(np.cumsum(times) - times, times)
    points = shapely.line_interpolate_point(parts[part], (number + 0.5) / times[part], normalized=True)
    pair = of[part]
    own = shapely.distance(points, drawn[b[pair]])
    third = np.full(len(points), np.inf)
    p, q = tree.query(points, predicate="dwithin", distance=within)
    others = (q != a[pair[p]]) & (q != b[pair[p]])
    p, q = p[others], q[others]
    np.minimum.at(third, p, shapely.distance(points[p], drawn[q]))
    filled = shapely.buffer(shapely.buffer(union, within, quad_segs=4), -within, quad_segs=4)
    open_space = shapely.get_rings(shapely.get_parts(filled))
    if len(open_space):
        space = shapely.STRtree(open_space)
        p, q = space.query(points, predicate="dwithin", distance=within)
        np.minimum.at(third, p, shapely.distance(points[p], open_space[q]))
    nearest = np.bincount(pair, weights=np.where(own <= third, length[part] / times[part], 0.0), minlength=len(a))
    kept = nearest > within * least
    return np.column_stack([a[kept], b[kept]])


def _gaps(union: Any, within: float) -> tuple[int, int]:
    """The numbers of gaps inside the map that are narrower than the tolerance, and that are wider."""
    import shapely

    parts = shapely.get_parts(union)
    parts = parts[shapely.get_type_id(parts) == 3]
    count = shapely.get_num_interior_rings(parts)
    inner = [shapely.get_interior_ring(p, i) for p, c in zip(parts, count.tolist(), strict=True) for i in range(c)]
    holes = shapely.polygons(inner) if inner else np.empty(0, object)
    width = 2 * shapely.area(holes) / np.maximum(shapely.length(holes), 1e-300)
    thin = int((width <= within).sum())
    return thin, len(holes) - thin


class Disconnected(NamedTuple):
    """Figures by name, and a sentence about each."""

    facts: dict[str, Any]
    notes: list[str]


def disconnected(
    ids: Sequence[str], edges: np.ndarray, outside: Sequence[int] = (), empty: np.ndarray | None = None
) -> Disconnected:
    """Isolated areas, and sets of areas that aren't connected with the largest one.

    edges    int64[m, 2]
    outside  areas to ignore
    empty    bool[n]  areas without people: one without a neighbor isn't isolated, and a set of them isn't an island

    Nearly linear in n + m.
    """
    n = len(ids)
    bare = np.zeros(n, np.bool_) if empty is None else empty
    root = list(range(n))

    def top(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for a, b in edges.tolist():
        root[top(a)] = top(b)
    home = np.array([top(v) for v in range(n)], np.int64)
    size, lived = np.bincount(home, minlength=n), np.bincount(home[~bare], minlength=n)
    islands = sorted(size[(size > 1) & (lived > 0)].tolist(), reverse=True)[1:]
    alone = np.bincount(edges.ravel(), minlength=n) == 0
    alone[list(outside)] = False
    isolated, unlived = ([ids[i] for i in np.flatnonzero(alone & own).tolist()] for own in (~bare, bare))
    sentences = []
    if islands:
        sizes = shown([f"{s:,}" for s in islands])
        sentences.append(f"{several(len(islands), 'island')}, sets of areas apart from the largest, of {sizes} areas")
    if isolated:
        sentences.append(f"{several(len(isolated), 'area')} without a neighbor: {shown(isolated)}")
    if unlived:
        sentences.append(f"{several(len(unlived), 'empty area')} without a neighbor, left alone: {shown(unlived)}")
    facts = {"islands": len(islands), "isolated": listed(isolated)}
    return Disconnected(facts | ({"isolated_empty": listed(unlived)} if bare.any() else {}), sentences)
