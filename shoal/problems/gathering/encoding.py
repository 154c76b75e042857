"""Records as the kernels compare them, and points no farther apart than they are for a tree of their neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.errors import PolicyError
from shoal.kernels.gathering import neighbors
from shoal.kernels.gathering.neighbors import Records
from shoal.model.metric import EARTH_KM, Category, Metric, Number, Place, on_sphere

AXES, FINE, LEAST = 3, 20, 1e-300  # a curve through points looks at so many axes and bits, and at no smaller span
FEW = 8  # categories of at most this many values are embedded exactly


ORDER = {"euclidean": 2, "manhattan": 1, "chebyshev": 0}


def places_of(values: np.ndarray) -> np.ndarray:
    """int64[n]: the same number for equal rows, numbered by the first of each.  O(n log n)."""
    n = len(values)
    if not n:
        return np.zeros(0, np.int64)
    order = np.lexsort(values.T[::-1])
    ordered = values[order]
    new = np.concatenate([[True], (ordered[1:] != ordered[:-1]).any(axis=1)])
    if new.all():
        return np.arange(n)
    first = np.zeros(n, np.int64)
    first[order[new]] = 1  # the sort is stable: of equal rows the first comes first
    number = np.cumsum(first) - 1
    place = np.empty(n, np.int64)
    place[order] = number[order[new]][np.cumsum(new) - 1]
    return place


def along(points: np.ndarray) -> np.ndarray:
    """int64[n]: the rows of float64[n, e] along a Morton curve through their first axes; equal rows as they stand."""
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
    """A full matrix as the kernels read it."""
    none, zero = np.zeros(0, np.int64), np.zeros(0)
    return Records(neighbors.TABLE, 2, distances, none, zero, none, none, none, zero, none)


class _Part(NamedTuple):
    """One feature as columns for the kernels and for the embedding.

    values  float64[n, c];  kind  of each column;  weight  of them all
    spread  float64[n, e];  exact  whether that loses nothing
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
    plain = bool((kind == neighbors.NUMBER).all()) and (norm == 2 or len(kind) == 1)
    width = [len(p.kind) for p in parts]
    at = [np.cumsum([0, *map(len, each)])[:-1] for each in zip(*((p.tree, p.heights) for p in parts), strict=True)]
    coded = Records(
        neighbors.PLAIN if plain else neighbors.MIXED, norm, values, kind, np.repeat([p.weight for p in parts], width),
        np.concatenate([p.tree for p in parts]), np.repeat(at[0], width), np.repeat([p.depth for p in parts], width),
        np.concatenate([p.heights for p in parts]), np.repeat(at[1], width),
    )  # fmt: skip
    return coded, np.ascontiguousarray(np.hstack([p.spread for p in parts])), all(p.exact for p in parts)


def _part(feature: Number | Place | Category, column: np.ndarray, norm: int, alone: bool) -> _Part:
    """One feature; alone: the only one there is."""
    if isinstance(feature, Place):
        return _place(feature, column, norm, alone)
    if isinstance(feature, Category):
        return _category(feature, np.asarray(column, np.int64), norm)
    unit = feature.scale / feature.weight
    if not feature.period:
        values = (np.asarray(column, np.float64) / unit)[:, None]
        return _Part(values, [neighbors.NUMBER], values, True)
    values, circle = (feature.around(column) / unit)[:, None], feature.period / unit
    angle = values * (2 * np.pi / circle)
    shrink = np.sqrt(0.5) if norm == 1 else 1.0
    spread = np.hstack([np.cos(angle), np.sin(angle)]) * (circle / (2 * np.pi) * shrink)
    return _Part(values, [neighbors.CYCLE], spread, alone and norm == 2, circle)  # a chord grows with its arc


def _place(feature: Place, column: np.ndarray, norm: int, alone: bool) -> _Part:
    """Two coordinates in a plane, or a point of the sphere."""
    factor, plane = feature.weight / feature.scale, feature.geometry == "plane"
    shrink = {2: 1.0, 1: 1 / np.sqrt(2 if plane else 3), 0: 1.0}[norm]
    if plane:
        flat = np.asarray(column, np.float64) * factor
        kind = [neighbors.NUMBER] * 2 if norm == 2 else [neighbors.PLANE, neighbors.SKIP]
        return _Part(flat, kind, flat * shrink, norm == 2)
    ball = on_sphere(column)
    kind = [neighbors.SPHERE, neighbors.SKIP, neighbors.SKIP]
    return _Part(ball, kind, ball * (EARTH_KM * factor * shrink), alone and norm == 2, EARTH_KM * factor)


def _category(feature: Category, codes: np.ndarray, norm: int) -> _Part:
    """Values that are equal or not, or as far apart as the classes of a tree."""
    embedded, exact = _embed_category(feature, norm)
    values = codes.astype(np.float64)[:, None]
    if feature.depth == 2:
        return _Part(values, [neighbors.CATEGORY], embedded[codes], exact, feature.weight)
    tree = feature.tree.ravel()
    return _Part(values, [neighbors.TREE], embedded[codes], exact, 0.0, feature.depth, tree, feature.heights)


def _embed_category(feature: Category, norm: int) -> tuple[np.ndarray, bool]:
    """(float64[values, e], exact): points no farther apart than the categories, in the norm; exact for few classes.

    A node of the tree below the root is one coordinate.  Two leaves whose lowest common ancestor is at height h
    differ in the nodes under it, twice as many as levels, so steps sqrt((h'^2 - h^2) / 2) add up to h in the
    Euclidean norm and (h' - h) / 2 in the sum.  Large trees keep their upper levels only, and large flat ones a
    binary number: nearer than the truth, never farther.
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
    if norm == 0:  # distances to a few of the values (Fréchet)
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
