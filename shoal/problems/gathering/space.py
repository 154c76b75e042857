"""Points with a metric: nearest neighbors, and points within a radius.

A k-d tree searches an embedding whose distances are lower bounds of the true ones (and equal them for numbers, and for
categories of few values). The kernels then compute the true distances, and a list is extended until nothing outside it
can be nearer. Equal records are one place in the tree. Only a matrix or a function given by the user is stored as a
full matrix, for at most 20,000 points. ``coded`` has the records in the form of the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy.spatial import cKDTree

from shoal.errors import InputError, PolicyError
from shoal.kernels import quick
from shoal.kernels.gathering import clusters
from shoal.kernels.gathering.clusters import Records
from shoal.model.arguments import coordinates, known, mapping, number
from shoal.model.metric import EARTH_KM, LARGEST_MATRIX, NORMS, Category, Metric, Number, Place, kind_of, on_sphere
from shoal.threads import each
from shoal.watching import done

R = TypeVar("R")
SLICE = 1024  # points that one query of a tree looks up
AXES, FINE, LEAST = 3, 20, 1e-300  # a space-filling curve uses this many axes and bits, and no smaller span
FEW = 8  # categories of at most this many values are embedded exactly


ORDER = {"euclidean": 2, "manhattan": 1, "chebyshev": 0}


def places_of(values: np.ndarray) -> np.ndarray:
    """int64[n]: equal for equal rows, numbered by the first of each. O(n log n)."""
    n = len(values)
    if not n:
        return np.zeros(0, np.int64)
    order = np.lexsort(values.T[::-1])
    ordered = values[order]
    new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    if new.all():
        return np.arange(n)
    first = np.zeros(n, np.int64)
    first[order[new]] = 1  # the sort is stable, so of equal rows the first comes first
    number = np.cumsum(first) - 1
    place = np.empty(n, np.int64)
    place[order] = number[order[new]][np.cumsum(new) - 1]
    return place


def along(points: np.ndarray) -> np.ndarray:
    """int64[n]: the rows of float64[n, e] along a Morton curve through their first axes.

    Equal rows keep their order.
    """
    axes, code = min(points.shape[1], AXES), np.zeros(len(points), np.int64)
    for j in range(axes if len(points) else 0):
        low, high = float(points[:, j].min()), float(points[:, j].max())
        if not 0 < (steps := (2**FINE - 1) / max(high - low, LEAST)) < np.inf:
            continue
        step = ((points[:, j] - low) * steps).astype(np.int64)
        for bit in range(FINE):
            code |= ((step >> bit) & 1) << (bit * axes + j)
    return np.argsort(code, kind="stable")


def table_of(distances: np.ndarray) -> Records:
    """A full matrix in the form of the kernels."""
    none, zero = np.zeros(0, np.int64), np.zeros(0)
    return Records(clusters.TABLE, 2, distances, none, zero, none, none, none, zero, none)


class _Part(NamedTuple):
    """One feature as columns for the kernels and for the embedding.

    values  float64[n, c]; kind: of each column; weight: of all of them
    spread  float64[n, e]; exact: whether the embedding keeps distances
    depth   of a tree of categories, its classes int64[...] and the heights of its levels
    """

    values: np.ndarray
    kind: list[int]
    spread: np.ndarray
    exact: bool
    weight: float = 0.0
    depth: int = 0
    tree: np.ndarray = np.zeros(0, np.int64)
    heights: np.ndarray = np.zeros(0)


def encode(metric: Metric, columns: Sequence[np.ndarray]) -> tuple[Records, np.ndarray, bool]:
    """(records for the kernels, embedding float64[n, e], whether the embedding is exact)."""
    norm, alone = ORDER[metric.norm], len(metric.features) == 1
    parts = [
        _part(feature, column, norm, alone)
        for feature, column in zip(metric.features, columns, strict=True)
        if feature.weight
    ]
    if not parts:
        raise PolicyError("every column has weight 0, so all records are alike; give one of them a weight")
    values = np.ascontiguousarray(np.hstack([p.values for p in parts]), dtype=np.float64)
    values += 0.0  # -0.0 and 0.0 are one place
    kind = np.array([k for p in parts for k in p.kind], np.int64)
    plain = bool((kind == clusters.NUMBER).all()) and (norm == 2 or len(kind) == 1)
    width = [len(p.kind) for p in parts]
    at = [np.cumsum([0, *map(len, each)])[:-1] for each in zip(*((p.tree, p.heights) for p in parts), strict=True)]
    coded = Records(
        clusters.PLAIN if plain else clusters.MIXED, norm, values, kind, np.repeat([p.weight for p in parts], width),
        np.concatenate([p.tree for p in parts]), np.repeat(at[0], width), np.repeat([p.depth for p in parts], width),
        np.concatenate([p.heights for p in parts]), np.repeat(at[1], width),
    )  # fmt: skip
    return coded, np.ascontiguousarray(np.hstack([p.spread for p in parts])), all(p.exact for p in parts)


def _part(feature: Number | Place | Category, column: np.ndarray, norm: int, alone: bool) -> _Part:
    """One feature; alone: there is no other."""
    if isinstance(feature, Place):
        return _place(feature, column, norm, alone)
    if isinstance(feature, Category):
        return _category(feature, np.asarray(column, np.int64), norm)
    unit = feature.scale / feature.weight
    if not feature.period:
        values = (np.asarray(column, np.float64) / unit)[:, None]
        return _Part(values, [clusters.NUMBER], values, True)
    values, circle = (feature.around(column) / unit)[:, None], feature.period / unit
    angle = values * (2 * np.pi / circle)
    shrink = np.sqrt(0.5) if norm == 1 else 1.0
    spread = np.hstack([np.cos(angle), np.sin(angle)]) * (circle / (2 * np.pi) * shrink)
    return _Part(values, [clusters.CYCLE], spread, alone and norm == 2, circle)  # a chord increases with its arc


def _place(feature: Place, column: np.ndarray, norm: int, alone: bool) -> _Part:
    """Two coordinates in a plane, or a point of the sphere."""
    factor, plane = feature.weight / feature.scale, feature.geometry == "plane"
    shrink = {2: 1.0, 1: 1 / np.sqrt(2 if plane else 3), 0: 1.0}[norm]
    if plane:
        flat = np.asarray(column, np.float64) * factor
        kind = [clusters.NUMBER] * 2 if norm == 2 else [clusters.PLANE, clusters.SKIP]
        return _Part(flat, kind, flat * shrink, norm == 2)
    ball = on_sphere(column)
    kind = [clusters.SPHERE, clusters.SKIP, clusters.SKIP]
    return _Part(ball, kind, ball * (EARTH_KM * factor * shrink), alone and norm == 2, EARTH_KM * factor)


def _category(feature: Category, codes: np.ndarray, norm: int) -> _Part:
    """Values with the discrete metric, or with the distance of their classes in a tree."""
    embedded, exact = _embed_category(feature, norm)
    values = codes.astype(np.float64)[:, None]
    if feature.depth == 2:
        return _Part(values, [clusters.CATEGORY], embedded[codes], exact, feature.weight)
    tree = feature.tree.ravel()
    return _Part(values, [clusters.TREE], embedded[codes], exact, 0.0, feature.depth, tree, feature.heights)


def _embed_category(feature: Category, norm: int) -> tuple[np.ndarray, bool]:
    """(float64[values, e], exact): points with at most the categories' distances in the norm; exact for few classes.

    Each node of the tree below the root is one coordinate. Two leaves with their lowest common ancestor at height h
    differ in the nodes below it, two per level. So steps sqrt((h'^2 - h^2) / 2) add up to h in the Euclidean norm, and
    (h' - h) / 2 in the sum. Large trees keep only their upper levels, and large flat ones a binary code: the distances
    are then lower bounds.
    """
    height, tree = feature.heights, feature.tree
    low = 0
    while low < feature.depth - 2 and int(tree[:, low:-1].max(axis=0).sum()) + 1 > FEW * 3:
        low += 1
    if feature.depth == 2 or int(tree[:, low].max()) + 1 > FEW * 3:
        codes = tree[:, low]
        classes = int(codes.max()) + 1
        if classes <= FEW and norm:
            step = {2: feature.weight / np.sqrt(2), 1: feature.weight / 2}[norm]
            return np.eye(classes)[codes] * step, low == 0 and feature.depth == 2
        bits = max(1, int(classes - 1).bit_length())
        step = {2: 1 / np.sqrt(bits), 1: 1 / bits, 0: 1.0}[norm] * (
            feature.weight if feature.depth == 2 else height[low + 1]
        )
        return ((codes[:, None] >> np.arange(bits)) & 1) * step, feature.depth == 2 and (norm == 0 or bits == 1)
    if norm == 0:  # distances to a few of the values (Fréchet embedding)
        marks = np.arange(min(feature.values, FEW * 3))
        apart = (tree[:, None, :] != tree[None, marks, :]).sum(axis=-1)
        return height[apart], marks.size == feature.values
    parts = []
    for level in range(low, feature.depth - 1):
        below = 0.0 if level == low else height[level]
        if norm == 2:
            step = np.sqrt((height[level + 1] ** 2 - below**2) / 2)
        else:
            step = (height[level + 1] - below) / 2
        codes = tree[:, level]
        parts.append(np.eye(int(codes.max()) + 1)[codes] * step)
    return np.hstack(parts), low == 0


SAFE = 1 - 1e-12
CHUNK = 1 << 17


class Space:
    """n points, their metric, and a search tree."""

    def __init__(self, metric: Metric, columns: Sequence[np.ndarray], names: Sequence[str] = ()) -> None:
        self.metric, self.columns, self.names = metric, tuple(columns), tuple(names)
        if metric.distances is not None:
            self.n = len(metric.distances)
            self.coded, self._embedded, self.exact = table_of(metric.distances), np.zeros((self.n, 0)), True
        else:
            metric.check(columns)
            self.n = len(columns[0])
            self.coded, self._embedded, self.exact = encode(metric, columns)
        self.p = {2: 2.0, 1: 1.0, 0: np.inf}[self.coded.norm]

    @cached_property
    def place(self) -> np.ndarray:
        """int64[n]: equal for equal records, numbered by first occurrence."""
        return np.arange(self.n) if self.is_matrix else places_of(self.coded.values)

    @cached_property
    def copies(self) -> np.ndarray:
        """int64[n]: the records of place i are copies[start[i] : start[i + 1]]."""
        return np.argsort(self.place, kind="stable")

    @cached_property
    def start(self) -> np.ndarray:
        """int64[places + 1]: see ``copies``."""
        places = int(self.place.max(initial=-1)) + 1
        return np.concatenate([[0], np.cumsum(np.bincount(self.place, minlength=places))]).astype(np.int64)

    @cached_property
    def reach(self) -> np.ndarray:
        """float64[places, e]: the places in the embedding."""
        return self._embedded[self.copies[self.start[:-1]]]

    def along(self) -> np.ndarray:
        """int64[n]: all points in an order in which neighbors in space are usually adjacent."""
        return along(self._embedded)

    def part(self, rows: np.ndarray) -> Space:
        """The space of some of the points, int64[m], in the given order."""
        if self.metric.distances is None:
            return Space(self.metric, [c[rows] for c in self.columns], self.names)
        if np.array_equal(rows, np.arange(self.n)):
            return self
        return Space(replace(self.metric, distances=self.metric.distances[np.ix_(rows, rows)]), ())

    @property
    def is_matrix(self) -> bool:
        """Whether distances are given as a matrix."""
        return self.coded.form == clusters.TABLE

    @property
    def coordinates(self) -> np.ndarray | None:
        """float64[n, d] if the metric is the Euclidean one on plain numbers, so that centers can be anywhere.

        Otherwise, the result is None.
        """
        plain = self.coded.form == clusters.PLAIN and all(f.weight for f in self.metric.features)
        return self.coded.values if plain else None

    @property
    def numbers(self) -> np.ndarray | None:
        """float64[n, d]: the columns as given, if all are numbers or coordinates."""
        if not self.columns or any(isinstance(f, Category) for f in self.metric.features):
            return None
        return np.column_stack([np.asarray(c, np.float64) for c in self.columns])

    @property
    def units(self) -> np.ndarray:
        """float64[d]: one unit of ``coordinates`` in units of the given columns."""
        out = []
        for f in self.metric.features:
            if not isinstance(f, Category):
                out += [f.scale / f.weight] * (2 if isinstance(f, Place) else 1)
        return np.array(out)

    def steps(self, distances: float) -> float:
        """The cost of this many distances for ``quick``; mixed records don't use compiled sines."""
        return np.inf if self.coded.form == clusters.MIXED else distances

    def between(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64[m]: the distance of points a[i] and b[i]."""
        many = quick(clusters.many_distances, self.steps(len(a)))
        return many(self.coded, np.asarray(a, np.int64), np.asarray(b, np.int64))

    def matrix(self) -> np.ndarray:
        """float64[n, n]; InputError above 20,000 points."""
        if self.is_matrix:
            return self.coded.values
        if self.n > LARGEST_MATRIX:
            raise InputError(f"a full matrix of {self.n} points is never made; the largest is {LARGEST_MATRIX}")
        every = np.arange(self.n)
        return np.stack([self.between(np.full(self.n, i), every) for i in every]) if self.n else np.zeros((0, 0))

    def nearest(
        self, k: int, rows: np.ndarray | None = None, among: np.ndarray | None = None, *, tell: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest points of each row: (index int64[m, k], distance float64[m, k]), nearest first.

        tell  report progress as the share of rows that is done

        A point counts as its own neighbor (the first) if it is among the points searched. If fewer than k exist: -1 and
        inf.
        """
        whole = rows is None
        rows = np.arange(self.n) if rows is None else np.asarray(rows, np.int64)
        if self.is_matrix:
            return self._nearest_in_matrix(k, rows, among)
        targets = self._targets(among)
        index, found = np.empty((rows.size, k), np.int64), np.empty((rows.size, k))
        if not rows.size or not targets.copies.size:
            index[:], found[:] = -1, np.inf
            return index, found
        asked = np.arange(self.start.size - 1) if whole else np.unique(self.place[rows])  # by place
        line = np.empty(self.start.size - 1, np.int64)
        line[asked] = np.arange(asked.size)
        copies = clusters.Copies(targets.start, targets.copies, targets.position)
        turn = np.argsort(line[self.place[rows]], kind="stable")
        bounds = np.searchsorted(line[self.place[rows]][turn], np.arange(0, asked.size + CHUNK, CHUNK))
        straight = bool((turn[1:] > turn[:-1]).all())
        for a, b in pairwise(bounds):
            todo = turn[a:b]
            q = min(k if self.exact else k + 4, targets.places.size)
            # If the true distance isn't the tree's, a row whose list may be incomplete requests four times as many
            # places.
            while todo.size:
                own = line[self.place[rows[todo]]]  # ascending, because todo has the order of the lines
                new = np.append(True, own[1:] != own[:-1])
                lines, which = own[new], np.cumsum(new) - 1
                at, reached = targets.query(self.reach[asked[lines]], q, self.p)
                in_place = straight and todo.size == b - a
                part = index[a:b] if in_place else np.empty((todo.size, k), np.int64)
                far = found[a:b] if in_place else np.empty((todo.size, k))
                nearest = quick(clusters.nearest_records, self.steps(todo.size * (q + k)))
                reached = np.full(reached.size, np.inf) if self.exact else reached
                candidates = clusters.PlacesNearby(which, at, reached)
                sure = nearest(self.coded, rows[todo], candidates, copies, k, part, far)
                if sure.all():
                    if not in_place:
                        index[todo], found[todo] = part, far
                    break
                index[todo[sure]], found[todo[sure]] = part[sure], far[sure]
                todo, q = todo[~sure], min(4 * q, targets.places.size)
            if tell:
                done(float(b / rows.size))
        return index, found

    def nearest_center(
        self, center: np.ndarray, rows: np.ndarray | None = None, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(int64[m], float64[m]): of each row the position in ``center`` of the nearest center, and its distance.

        among  the centers, each once, if ``center`` may have one twice
        """
        nearest, far = (x[:, 0] for x in self.nearest(1, rows, center if among is None else among))
        back = np.full(self.n, -1)
        back[center] = np.arange(center.size)
        return back[nearest], far

    def within(
        self, rows: np.ndarray, radius: float, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All points within radius of each row: (start int64[m + 1], index, distance).

        Those of row i begin at start[i].
        """
        rows = np.asarray(rows, np.int64)
        if self.is_matrix:
            pool = np.arange(self.n) if among is None else np.asarray(among, np.int64)
            block = self.coded.values[np.ix_(rows, pool)]
            who, what = np.nonzero(block <= radius)
            start = np.searchsorted(who, np.arange(rows.size + 1))
            return start, pool[what], block[who, what]
        targets = self._targets(among)
        if not rows.size or not targets.copies.size:
            return np.zeros(rows.size + 1, np.int64), np.zeros(0, np.int64), np.zeros(0)
        lists = targets.within(self.reach[self.place[rows]], radius * (1 + 1e-9), self.p)
        sizes = np.fromiter(map(len, lists), np.int64, rows.size)
        local = np.concatenate([np.asarray(x, np.int64) for x in lists]) if sizes.sum() else np.zeros(0, np.int64)
        who = np.repeat(np.arange(rows.size), sizes)
        count = targets.start[local + 1] - targets.start[local]
        first = np.repeat(targets.start[local] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
        what = targets.copies[first + np.arange(int(count.sum()))]
        who = np.repeat(who, count)
        far = self.between(rows[who], what)
        keep = far <= radius
        return np.searchsorted(who[keep], np.arange(rows.size + 1)), what[keep], far[keep]

    def count_within(self, radius: float, among: np.ndarray | None = None) -> np.ndarray:
        """int64[n]: the number of points within a radius of each point, by the tree's distance.

        among  int64[m]: only these points count
        """
        targets = self._targets(among)
        size, out = np.diff(targets.start), np.zeros(len(self.reach), np.int64)
        if (size == 1).all():
            out[:] = targets.count(self.reach, radius, self.p)
            return out[self.place]
        for a in range(0, out.size, CHUNK >> 5):
            lists = targets.within(self.reach[a : a + (CHUNK >> 5)], radius, self.p)
            out[a : a + (CHUNK >> 5)] = [size[x].sum() for x in lists]
        return out[self.place]

    def _targets(self, among: np.ndarray | None) -> _Targets:
        if among is not None:
            return _Targets(self, np.asarray(among, np.int64))
        return self._whole

    @cached_property
    def _whole(self) -> _Targets:
        return _Targets(self, None)

    def _nearest_in_matrix(self, k: int, rows: np.ndarray, among: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        pool = np.arange(self.n) if among is None else np.asarray(among, np.int64)
        index, found = np.full((rows.size, k), -1, np.int64), np.full((rows.size, k), np.inf)
        q = min(k, pool.size)
        step = max(1, (1 << 24) // max(pool.size, 1))
        for a in range(0, rows.size, step):
            some = rows[a : a + step]
            block = self.coded.values[np.ix_(some, pool)]
            block[pool[None, :] == some[:, None]] = -1.0  # the point itself comes first
            if q < pool.size:
                near = np.argpartition(block, q - 1, axis=1)[:, :q]
            else:
                near = np.broadcast_to(np.arange(q), (some.size, q))
            value = np.take_along_axis(block, near, axis=1)
            turn = np.lexsort((near, value), axis=1)
            index[a : a + step, :q] = pool[np.take_along_axis(near, turn, axis=1)]
            found[a : a + step, :q] = np.maximum(np.take_along_axis(value, turn, axis=1), 0.0)
        return index, found


class _Targets:
    """The places of some of the points, in a tree."""

    def __init__(self, space: Space, among: np.ndarray | None) -> None:
        if among is None:
            self.places = np.arange(space.start.size - 1)
            self.start, self.copies = space.start, space.copies
        else:
            order = np.argsort(space.place[among], kind="stable")
            self.copies = among[order]
            self.places, first = np.unique(space.place[self.copies], return_index=True)
            self.start = np.append(first, among.size).astype(np.int64)
        self.position = np.full(space.n, -1, np.int64)
        self.position[self.copies] = np.arange(self.copies.size)
        self.tree = cKDTree(space.reach[self.places])

    def query(self, points: np.ndarray, q: int, p: float) -> tuple[np.ndarray, np.ndarray]:
        """(places int64[m, q], reached float64[m]): nearest by the tree's distance, and each list's largest."""
        parts = _by_slices(points, lambda some: self.tree.query(some, k=np.arange(1, q + 1), p=p))
        far, at = (np.concatenate(part) for part in zip(*parts, strict=True))
        reached = np.full(len(points), np.inf) if q == self.places.size else far[:, -1] * SAFE
        if not np.isfinite(far[:, -1]).all():
            at = np.where(np.isfinite(far), at, -1)
        return at.astype(np.int64, copy=False), reached

    def within(self, points: np.ndarray, radius: float, p: float) -> list[list[int]]:
        """The places within a radius of each point, by the tree's distance."""
        parts = _by_slices(points, lambda some: self.tree.query_ball_point(some, radius, p=p))
        return [places for part in parts for places in part]

    def count(self, points: np.ndarray, radius: float, p: float) -> np.ndarray:
        """The number of these places."""
        parts = _by_slices(points, lambda some: self.tree.query_ball_point(some, radius, p=p, return_length=True))
        return np.concatenate(parts)


def _by_slices(points: np.ndarray, query: Callable[[np.ndarray], R]) -> list[R]:
    """The results of a query for slices of the points, in order, on all cores; at least one slice.

    The tree could use threads itself. But if the search is interrupted meanwhile, those threads would go on, with
    arrays that no longer exist, and the process could crash.
    """
    starts = range(0, max(len(points), 1), SLICE)
    return each(lambda first: query(points[first : first + SLICE]), starts, len(starts))


def space_of(
    points: Any, metric: Any = "euclidean", cyclic: Mapping[Any, float] | None = None,
    decimal: Mapping[str, str] | None = None,
) -> Space:  # fmt: skip
    """A space of points with a metric, given by name, matrix, function, or value.

    points  float[n, d] (or a frame), a tuple of columns if metric is a Metric with features, float[n, n] for
            "precomputed"
    metric  "euclidean", "manhattan", "chebyshev" (of the coordinates), "great-circle" (latitude and longitude in
            degrees; kilometers), "precomputed", a function of two records, or a Metric
    cyclic  column, by name or number -> its period, if its values are on a circle; with metrics of coordinates
    decimal  column of a frame whose numbers are texts -> its decimal mark
    """
    if mapping("cyclic", cyclic) and not (isinstance(metric, str) and metric in NORMS):
        raise PolicyError("⟨cyclic=⟩ goes with a metric of coordinates; in a Metric say Number(name, period=24)")
    names = [str(c) for c in points.columns] if hasattr(points, "columns") else []
    if isinstance(metric, Metric) and metric.features and isinstance(points, tuple) and not decimal:
        return Space(metric, [np.asarray(c) for c in points])
    table = _array(points, mapping("decimal", decimal))
    if isinstance(metric, str):
        if metric == "precomputed":
            return Space(Metric.matrix(table), ())
        if metric == "great-circle":
            if table.shape[1] != 2:
                raise InputError(f"great-circle needs two columns, latitude and longitude; there are {table.shape[1]}")
            if names and kind_of(*names) == "geographic":
                raise PolicyError(
                    f"{names[0]!r} is a column of longitudes and {names[1]!r} one of latitudes; exchange the two: "
                    f"frame[[{names[1]!r}, {names[0]!r}]]"
                )
            return Space(Metric.great_circle(), [table], names)
        known("metric", metric, [*NORMS, "great-circle", "precomputed"])
        width = table.shape[1]
        labels = names if len(names) == width else [f"column {j}" for j in range(width)]
        period = dict.fromkeys(labels, 0.0)
        for key, length in mapping("cyclic", cyclic).items():
            name = labels[key] if isinstance(key, int) and 0 <= key < width else str(key)
            known("column of ⟨cyclic=⟩", name, labels)
            period[name] = number(f"cyclic[{name!r}]", length, "a positive number", lambda x: x > 0)
        return Space(
            Metric(features=tuple(Number(x, period=period[x]) for x in labels), norm=metric), list(table.T), names
        )
    if callable(metric):
        metric = Metric.pairwise(metric)
    if not isinstance(metric, Metric):
        raise PolicyError(f"a metric is a name, a function or a Metric, not {type(metric).__name__}")
    if metric.distances is not None:
        if len(table) != len(metric.distances):
            raise InputError(f"there are {len(table)} points and a matrix of {len(metric.distances)}")
        return Space(metric, ())
    if metric.function is not None:
        return Space(_evaluate(metric, table), ())
    return Space(metric, split(table, metric), names)


def split(table: np.ndarray, metric: Metric) -> list[np.ndarray]:
    """The columns of a two-dimensional array, grouped by feature."""
    columns: list[np.ndarray] = []
    at = 0
    for feature in metric.features:
        width = 2 if isinstance(feature, Place) else 1
        part = table[:, at : at + width]
        if part.shape[1] < width:
            raise InputError(f"the metric needs more columns than the {table.shape[1]} given")
        if isinstance(feature, Category):
            finite_codes = part[:, 0]
            if not np.array_equal(finite_codes, np.round(finite_codes)):
                raise InputError(f"column {feature.name!r} is categorical and holds values that are no codes")
            columns.append(finite_codes.astype(np.int64))
        else:
            columns.append(part if width == 2 else part[:, 0])
        at += width
    if at != table.shape[1]:
        raise InputError(f"the metric needs {at} columns; {table.shape[1]} were given")
    return columns


def _array(points: Any, marks: Mapping[str, str]) -> np.ndarray:
    table = coordinates(points, "points", marks)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise InputError(f"points have shape {table.shape}; one row per record is needed")
    if table.shape[1] == 0:
        raise InputError("points have no column")
    return table


def _evaluate(metric: Metric, table: np.ndarray) -> Metric:
    """The matrix of a distance function, computed in blocks."""
    n, f = len(table), metric.function
    assert f is not None
    if n > LARGEST_MATRIX:
        raise InputError(
            f"a function as metric is evaluated on every pair, which is done for at most {LARGEST_MATRIX} points, "
            f"and there are {n}; build a Metric of features, which has no such limit"
        )
    out = np.zeros((n, n))
    if metric.blocks:
        step = max(1, (1 << 22) // max(n, 1))
        for a in range(0, n, step):
            out[a : a + step] = f(table[a : a + step], table)
    else:
        for i in range(n):
            for j in range(i):
                out[i, j] = f(table[i], table[j])
    low = np.tril(out, -1)
    return Metric.matrix(low + low.T, unit=metric.unit)
