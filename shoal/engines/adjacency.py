"""Which areas of a map share a border, also where each polygon was simplified by itself, and which stand apart.

Polygons cut from one set of lines have their sides in common.  Once each was simplified alone, borders overlap here
and gape there.  A true subdivision has no overlaps, so how deep the corners of one polygon lie inside another tells how
far borders were moved; gaps are as wide as overlaps are deep, for both come from the same lines.  Hence the tolerance:
twice the depth that 95 of 100 such corners stay below.

Two areas are neighbors when they have a side in common, or when along more than half of the tolerance the border of
one lies within the tolerance of the other, and neither a third area nor open space is nearer.  A corner where four
areas meet gives no such stretch; a river wider than the tolerance is never crossed.
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
    """Every side of every ring, of positive length, in the ring's direction."""
    for polygon in shape:
        for ring in polygon:
            points = [(x, y) for x, y in ring.tolist()]
            for a, b in zip(points, points[1:] + points[:1], strict=True):
                if a != b:
                    yield a, b


def neighbors(shapes: Sequence[Shape]) -> np.ndarray:
    """Pairs of shapes that have a side of a ring in common; int64[m, 2], the smaller number first.

    A side is shared when both its ends are the same floats in both rings, in either direction.  Shapes that meet in a
    point only are no neighbors.  Borders drawn twice with different points are not recognized
    here: ``adjacency`` finds those.

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


_ROUNDING = 1e-7  # of the extent: borders nearer than this are one


_DEEP = 0.95


_FAULTS = 0.05  # where fewer pairs than this share of the neighbors overlap, these are faults, and no simplification


_SAMPLES = 64  # of a border of two areas at most


class Adjacency(NamedTuple):
    """Pairs of neighbors and how the drawing looks.

    pairs      int64[m, 2], the smaller number first
    tolerance  in km, or in the plane's units
    overlaps   pairs of areas that lie over each other, by more than rounding
    slivers    gaps inside the map, thinner than the tolerance
    holes      wider ones: lakes, or areas that are missing
    repaired   areas whose rings crossed themselves
    alone      areas that would have a neighbor if gaps at borders were closed, where that may be a fault of the drawing
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
    """Neighbors of polygons, by sides in common and by nearness.

    shapes      as read: lists of polygons;  an empty one has no neighbors
    geographic  degrees: measured in km, widths by the cosine of the middle latitude, 180 degrees is no border
    tolerance   km or the plane's units; None: told from the overlaps

    Raises MissingDependencyError without shapely.  O(p log n) for p corners, and 64 samples a border.
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
    """How many areas without a neighbor have another within ``most``, and twice how near nine of ten are, rounded up.

    Nothing where they are fewer than a third of all: islands are no fault of the drawing.
    """
    if len(alone) < 2 or 3 * len(alone) < len(drawn):
        return 0, 0.0
    _, far = tree.query_nearest(drawn[alone], exclusive=True, return_distance=True, all_matches=False)
    far = far[far <= most]
    if 3 * len(far) < len(drawn):
        return 0, 0.0
    nine = 2 * float(np.quantile(far, 0.9))  # the nearest area is not the only one beside it
    unit = 10.0 ** (np.floor(np.log10(max(nine, 1e-12))) - 1)
    return len(far), float(f"{np.ceil(nine / unit + 1e-6) * unit:.2g}")


def _drawn(shapes: Sequence[Shape], geographic: bool) -> tuple[np.ndarray, np.ndarray, int]:
    """Polygons in km (or as they are), the area of each, how many crossed themselves.

    Where degrees go all around, areas at the western end are drawn again at the eastern one.
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
    """Depth of every corner that lies inside another area; how many pairs of areas overlap.

    Pairs of which one lies in the other for more than half say nothing about how borders were moved.
    """
    import shapely

    corners, of = shapely.get_coordinates(drawn, return_index=True)
    points = shapely.points(corners)
    at, inside = tree.query(points)
    other = owner[of[at]] != owner[inside]
    at, inside = at[other], inside[other]
    shapely.prepare(drawn)  # or every corner is held against every side
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
    """How many pairs overlap whose corners tell nothing: an area drawn twice, rectangles in one row."""
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
    """Pairs (of drawn polygons, either way) that are not known, with a stretch of border of ``least`` times the
    tolerance where each is the nearest of the other.

    Open space is what is left of the outside of all when gaps thinner than twice the tolerance are filled.
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
    """Gaps inside the map: thinner than the tolerance, and wider."""
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
    """Figures by name, and a sentence each."""

    facts: dict[str, Any]
    said: list[str]


def disconnected(
    ids: Sequence[str], edges: np.ndarray, outside: Sequence[int] = (), empty: np.ndarray | None = None
) -> Disconnected:
    """What stands apart.

    edges    int64[m, 2];  outside  areas that are no matter of concern
    empty    bool[n]  areas that nobody lives in: one without a neighbor is not isolated, a set of them is no island

    O(n + m) and a little.
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
    said = []
    if islands:
        sizes = shown([f"{s:,}" for s in islands])
        said.append(f"{several(len(islands), 'island')}, sets of areas apart from the largest, of {sizes} areas")
    if isolated:
        said.append(f"{several(len(isolated), 'area')} without a neighbor: {shown(isolated)}")
    if unlived:
        said.append(f"{several(len(unlived), 'empty area')} without a neighbor, left alone: {shown(unlived)}")
    facts = {"islands": len(islands), "isolated": listed(isolated)}
    return Disconnected(facts | ({"isolated_empty": listed(unlived)} if bare.any() else {}), said)
