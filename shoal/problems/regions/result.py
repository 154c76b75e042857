"""Regions as they are handed out, and the hierarchies they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.cards import Shown, number, proof_lines, several, sizes_line
from shoal.model.certificate import Certificate


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Regions(Shown):
    """A partition of areas into connected regions.

    labels       int64[n]      region of every area, 0..regions-1 by first area; -1 left out
    cost         what the first objective counts
    certificate  cost, bound and the promise of the method
    weights      int64[q] or int64[q, t]  summed weights of every region, as many columns as thresholds
    sizes        int64[q]      areas of every region
    upper_bound  no partition (of the areas that are not left out) has more regions
    largest      weight of the heaviest region, by the first weight;  largest_bound  no partition has a lighter
                 heaviest one
    squares      sum of squared weights;  squares_bound  no partition has less
    excess       largest weight over max(k, heaviest area in the region)
    method       the algorithm that was run
    joined       int64[j, 2]   pairs of areas that were made neighbors to save components too light alone
    k            the thresholds
    """

    labels: np.ndarray
    cost: float
    certificate: Certificate
    weights: np.ndarray
    sizes: np.ndarray
    upper_bound: int
    largest: int
    largest_bound: int
    squares: int
    squares_bound: int
    excess: float
    method: str
    joined: np.ndarray
    k: tuple[int, ...]

    @property
    def regions(self) -> int:
        """Number of regions."""
        return len(self.sizes)

    @property
    def left_out(self) -> np.ndarray:
        """Areas in no region, because all they are connected to is too light together; int64[]."""
        return np.flatnonzero(self.labels < 0)

    def _lines(self) -> list[str]:
        inside = len(self.labels) - len(self.left_out)
        lines = [
            f"{several(inside, 'area')} in {several(self.regions, 'region')}; "
            f"more than {self.upper_bound:,} cannot exist",
            *(
                sizes_line(f"weight {j}" if len(self.k) > 1 else "weight", held.tolist(), f"at least {number(k)} asked")
                for j, (held, k) in enumerate(zip(self.weights.reshape(self.regions, -1).T, self.k, strict=True), 1)
            ),
            *proof_lines(self.certificate, self.method),
        ]
        return [*lines, f"left out: {several(len(self.left_out), 'area')}"] if len(self.left_out) else lines


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Nested(Shown):
    """Regions of regions: every level merges those of the level before.

    levels  the result at each threshold, the finest first
    labels  int64[n, levels]  region of every area at each level; -1 left out
    most    no partition of the areas that are not left out has more regions at each level, whatever the level below;
            ``levels[i].upper_bound`` is that of unions of the regions below
    """

    levels: tuple[Regions, ...]
    labels: np.ndarray = field(repr=False)
    most: tuple[int, ...]

    def _lines(self) -> list[str]:
        return [
            f"{several(len(self.labels), 'area')} in regions of {several(len(self.levels), 'level')}",
            *(
                f"at least {' and '.join(map(number, level.k))}: {several(level.regions, 'region')}; "
                f"more than {most:,} cannot exist"
                for level, most in zip(self.levels, self.most, strict=True)
            ),
        ]

    def rows(self, ids: Sequence[Any], names: Sequence[Sequence[str]] | None = None) -> list[list[str]]:
        """One row per area for a hierarchy in ARX's form: value; region at each level; ...; *.

        names  region names per level, by label; by default ``region_names`` of the members' ids
        """
        return hierarchy_rows(ids, list(self.labels.T), names)


def region_names(ids: Sequence[Any], labels: np.ndarray) -> list[str]:
    """A name for every region: its first member and how many more, unique because members are ("06001+3")."""
    found: dict[int, list[str]] = {}
    for area, label in zip(ids, labels.tolist(), strict=True):
        if label >= 0:
            found.setdefault(label, []).append(str(area))
    return [
        min(found[r]) + (f"+{len(found[r]) - 1}" if len(found[r]) > 1 else "")
        for r in range(max(found, default=-1) + 1)
    ]


def hierarchy_rows(
    ids: Sequence[Any], levels: Sequence[np.ndarray], names: Sequence[Sequence[str]] | None = None
) -> list[list[str]]:
    """Plain rows "value; region at k1; region at k2; ...; *", each level a coarsening of the one before.

    ids     n distinct values;  levels  int64[n] labels, -1 for "left out", which becomes * from there on up

    Raises InputError when a level splits a region of the level before, which no hierarchy may do.
    """
    if len(set(map(str, ids))) != len(ids):
        raise InputError("area names repeat, so they cannot be the values of a hierarchy; make them unique")
    rows = [[str(area)] for area in ids]
    starred = np.zeros(len(ids), np.bool_)
    before: np.ndarray | None = None
    for i, labels in enumerate(levels):
        labels = np.where(starred, -1, labels)
        if before is not None:
            for region in np.unique(before[before >= 0]):
                if len(np.unique(labels[before == region])) > 1:
                    raise InputError(
                        f"level {i + 1} splits a region of level {i}; merge regions, not areas, level by level"
                    )
        starred |= labels < 0
        called = names[i] if names is not None else region_names(ids, labels)
        for row, label in zip(rows, labels.tolist(), strict=True):
            row.append("*" if label < 0 else called[label])
        before = labels
    return [[*row, "*"] for row in rows]


def crosswalk(
    ids: Sequence[Any],
    result: Regions,
    names: Sequence[str] = (),
    sums: Mapping[str, np.ndarray] | None = None,
    means: Mapping[str, np.ndarray] | None = None,
    by: np.ndarray | None = None,
) -> dict[str, list[Any]]:
    """Columns area, region (name), region_weight, region_areas; areas left out have region "*" and weight 0.

    names  of the weights: with several, a column region_NAME for each after the first, and bound_by, the weight whose
           sum is nearest its threshold
    sums, means   float64[n] by name: what they sum to, or come to on average, over each region (sum_NAME, mean_NAME)
    by     float64[n]: weights of the averages, 1 by default
    """
    called = region_names(ids, result.labels)
    held = result.labels.tolist()
    found: dict[str, list[Any]] = {"area": [str(area) for area in ids]}
    found["region"] = ["*" if r < 0 else called[r] for r in held]
    for name, values in of_regions(result, names, sums, means, by).items():
        nothing: Any = 0 if name in ("region_weight", "region_areas") else None
        found[name] = [nothing if r < 0 else values[r] for r in held]
    return found


def of_regions(
    result: Regions,
    names: Sequence[str] = (),
    sums: Mapping[str, np.ndarray] | None = None,
    means: Mapping[str, np.ndarray] | None = None,
    by: np.ndarray | None = None,
) -> dict[str, list[Any]]:
    """The columns of ``crosswalk`` that belong to regions, a value for each."""
    weights = result.weights.reshape(result.regions, -1)
    found: dict[str, list[Any]] = {"region_weight": weights[:, 0].tolist(), "region_areas": result.sizes.tolist()}
    if len(names) > 1:
        for j, name in enumerate(names[1:], 1):
            found[f"region_{name}"] = weights[:, j].tolist()
        nearest = (weights / np.array(result.k)).argmin(axis=1)
        found["bound_by"] = [names[j] for j in nearest.tolist()]
    inside = result.labels >= 0
    label = result.labels[inside]
    for name, values in (sums or {}).items():
        found[f"sum_{name}"] = np.bincount(label, weights=values[inside], minlength=result.regions).tolist()
    mass = np.ones(len(inside)) if by is None else np.asarray(by, np.float64)
    total = np.bincount(label, weights=mass[inside], minlength=result.regions)
    for name, values in (means or {}).items():
        lifted = np.bincount(label, weights=(values * mass)[inside], minlength=result.regions)
        found[f"mean_{name}"] = [x / m if m > 0 else None for x, m in zip(lifted.tolist(), total.tolist(), strict=True)]
    return found
