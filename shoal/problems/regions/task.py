"""What an algorithm for regions receives and what it hands back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.clock import clock
from shoal.model.certificate import Guarantee
from shoal.problems.regions.graph import Contiguity

OBJECTIVES = ("max", "count", "sumsq", "excess", "compact", "similar")
CHAINS = {
    "max": ("max", "count", "sumsq"),
    "count": ("count", "sumsq"),
    "sumsq": ("sumsq",),
    "excess": ("excess", "count", "sumsq"),
    "compact": ("count", "compact"),
    "similar": ("count", "similar"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Districting:
    """A graph each of whose components is eligible as a whole.

    graph      the areas to be placed
    features   int64[n, t + s]  weights (the first is the one valued), then counts of sensitive values
    need       int64[t]         thresholds, each at least 1
    ways       l of the frequency form of l-diversity; 1 asks nothing
    geo        float64[n or 0, 4]  mass, mass x, mass y, mass (x^2 + y^2)
    objective  what to lower, most important first
    start      int64[n] or None: a valid partition to begin with
    effort     multiple of the usual number of steps
    seconds    time to search for instead, or None
    state      uint64[1]        randomness, advanced by whoever draws
    alike      float64[n or 0, c + 2]  mass, mass times each of c columns to be alike in, mass times their squares
    regions    so many regions and no other number; None for as many as the objectives make
    """

    graph: Contiguity
    features: np.ndarray
    need: np.ndarray
    ways: int
    geo: np.ndarray
    objective: tuple[str, ...]
    start: np.ndarray | None
    effort: float
    seconds: float | None
    state: np.ndarray
    alike: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    regions: int | None = None

    @property
    def n(self) -> int:
        """Number of areas."""
        return len(self.features)

    def on(self, g: Contiguity, nodes: np.ndarray) -> Districting:
        """The same on some of the areas, without a partition to begin with."""
        geo, alike = (np.ascontiguousarray(m[nodes]) if len(m) else m for m in (self.geo, self.alike))
        features = np.ascontiguousarray(self.features[nodes])
        return replace(self, graph=g, features=features, geo=geo, alike=alike, start=None)

    def moments(self, name: str) -> np.ndarray:
        """What objective "compact" or "similar" adds up; empty where borders are counted instead."""
        return self.alike if name == "similar" else self.geo

    @property
    def k(self) -> int:
        """The first threshold."""
        return int(self.need[0])

    @property
    def weights(self) -> np.ndarray:
        """int64[n, t]: the features that have a threshold."""
        return np.ascontiguousarray(self.features[:, : len(self.need)])

    @property
    def plain(self) -> bool:
        """One threshold and nothing else: the problem of the paper."""
        return len(self.need) == 1 and self.ways == 1

    @property
    def thresholds_only(self) -> bool:
        """Every set of areas that contains an eligible one is eligible."""
        return self.ways == 1


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A partition and what is known about it.

    label      int64[n]   region of every area, 0..q-1
    guarantee  the promise of the method for the heaviest region
    most       proved upper bound on the number of regions, or None where the method proves none
    least      proved lower bound on the heaviest region, or None
    squares    proved lower bound on the sum of squares, or None
    details    what else should stand on record
    """

    label: np.ndarray
    guarantee: Guarantee = field(default_factory=Guarantee)
    most: int | None = None
    least: int | None = None
    squares: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Clock:
    """Time left of a search that was given seconds."""

    end: float | None

    @classmethod
    def of(cls, seconds: float | None) -> Clock:
        """Starts now; None never ends."""
        return cls(None if seconds is None else clock() + seconds)

    @property
    def left(self) -> float:
        """Seconds left; infinite when there is no limit."""
        return float("inf") if self.end is None else self.end - clock()

    def part(self, share: float) -> Clock:
        """A clock that ends after a share of what is left of this one."""
        return self if self.end is None else Clock.of(max(0.0, self.left) * share)


def sums(task: Districting, label: np.ndarray) -> np.ndarray:
    """Features summed over every region; int64[q, t + s]."""
    found = np.zeros((int(label.max()) + 1 if len(label) else 0, task.features.shape[1]), np.int64)
    np.add.at(found, label, task.features)
    return found


def heaviest(task: Districting, label: np.ndarray) -> np.ndarray:
    """Heaviest area of every region, by the first weight; int64[q]."""
    found = np.zeros(int(label.max()) + 1 if len(label) else 0, np.int64)
    np.maximum.at(found, label, task.features[:, 0])
    return found


def relabelled(label: np.ndarray) -> np.ndarray:
    """The same parts numbered by their first area; negative labels become -1."""
    held = np.flatnonzero(label >= 0)
    out = np.full(len(label), -1, np.int64)
    if len(held):
        _, first, inverse = np.unique(label[held], return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        out[held] = rank[inverse.ravel()]
    return out


def eligible_rows(total: np.ndarray, need: np.ndarray, ways: int) -> np.ndarray:
    """bool per row of sums: thresholds met and, with ways > 1, no sensitive value above 1/ways of the records."""
    t = len(need)
    ok = np.asarray((total[:, :t] >= need).all(axis=1))
    if ways > 1:
        values = total[:, t:]
        ok &= values.sum(axis=1) >= ways * values.max(axis=1, initial=0)
    return ok
