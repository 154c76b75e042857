"""What a reduction returns: an instance, the cost that tells yes from no, and the answer if it is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Instance:
    """``target`` is reached exactly when the source's answer is yes; otherwise the optimum is above it.

    target    the least cost if the answer is yes
    answer    the source's answer
    optimum   the least cost, where the reduction tells it whatever the answer is; None otherwise
    unit      of the cost
    source    the problem reduced from
    """

    target: int
    answer: bool
    optimum: int | None = None
    unit: str = "stars"
    source: Any = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(Instance):
    """A table to anonymize by suppression.

    rows       int64[n, d]  quasi-identifiers
    sensitive  int64[n, s]  sensitive columns; s may be 0
    k, l       what to reach: groups of k, or in every sensitive column l; 1 for nothing asked
    """

    rows: np.ndarray
    sensitive: np.ndarray
    k: int = 1
    l: int = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Graph(Instance):
    """A graph to partition: its edges into stars, or its vertices into connected regions of weight k.

    edges      int64[m, 2]
    names      what each vertex stands for
    positions  float64[n, 2]  where to draw it
    k          least weight of a region, every vertex weighing 1
    """

    edges: np.ndarray
    names: tuple[str, ...]
    positions: np.ndarray
    k: int = 3
    unit: str = "vertices in the largest region"


@dataclass(frozen=True, kw_only=True, eq=False)
class Points(Instance):
    """Places in the plane to cut into rectangles of at least k.

    points     int64[p, 2]
    weights    int64[p]
    marks      places of interest by name, for drawing
    """

    points: np.ndarray
    weights: np.ndarray
    k: int = 3
    unit: str = "records in the largest tile"
    marks: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes(Instance):
    """Labels to pack into bins of at least k.

    otherwise  if the answer is no, the largest bin holds at least this
    """

    sizes: np.ndarray
    k: int
    otherwise: int = 0
    unit: str = "in the largest bin"


@dataclass(frozen=True, kw_only=True, eq=False)
class Metric(Instance):
    """Points of a metric to gather in clusters of at least r, centers among the points.

    distances  int64[n, n]
    edges      int64[m, 2]  of the graph that the distances are made of
    names      what each point stands for
    setup      cost of opening a cluster, where the cost is the sum of size times radius and set-up costs
    """

    distances: np.ndarray
    edges: np.ndarray
    names: tuple[str, ...]
    r: int
    setup: int = 0
    unit: str = "radius"


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid(Instance):
    """A square array of weights to tile with at most ``most`` rectangles, none of them heavy (RTILE).

    grid       int64[n, n]
    otherwise  if the answer is no, the heaviest rectangle weighs at least this
    """

    grid: np.ndarray
    most: int
    otherwise: int
    unit: str = "weight of the heaviest rectangle"
