"""Regions of regions: the same question at rising thresholds, each level merging the regions of the one below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.model.repeatable import drawn
from shoal.problems.regions.merge import merge, most
from shoal.problems.regions.result import Nested, Regions
from shoal.problems.regions.water import with_labels
from shoal.watching import watched, within


@watched
def nested(edges: Any, weights: Any, ks: Sequence[Any], method: str = "auto", **options: Any) -> Nested:
    """Regions at rising thresholds, each level merging the regions of the one before: a hierarchy.

    ks       thresholds (or sequences of thresholds, as for ``merge``), rising
    options  as for ``merge``, and kept at every level; a maximum in ``at_most`` and ``regions`` may be a sequence with
             one value for each level, None where a level has none; ``start`` excepted, and ``max_diameter`` where
             there are several levels

    Areas left out at one level stay out above it, water stays in its region, and areas that ``light="nearest"`` joined
    are neighbors from there on.
    The bounds of a level hold for all unions of the regions below; ``Nested.most`` for all partitions of the areas.
    Raises what ``merge`` raises.
    """
    steps = _rising(ks)
    if options.get("start") is not None:
        raise PolicyError("start goes with one threshold; leave it out where there are levels")
    if options.get("max_diameter") is not None and len(steps) > 1:
        raise PolicyError("max_diameter looks at single areas, so it goes with one threshold; leave it out, or levels")
    ends = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    levels: list[Any] = []
    labels: list[np.ndarray] = []
    bounds: list[int] = []
    held = {**options, "seed": drawn() if options.get("seed") is None else options["seed"]}
    wet = None if options.get("water") is None else np.asarray(options["water"]).astype(np.bool_)
    for i, k in enumerate(steps):
        own = held | of_level(options, i, len(steps))
        if i:
            own = above(own, labels[-1], wet)
        with within(i / len(steps), (i + 1) / len(steps)):
            found = merge(ends, weights, list(k), method, **own)
        if i and wet is not None:
            found = with_water(found, labels[-1], wet)
        bounds.append(found.upper_bound if not i else most(ends, found, weights, options))
        levels.append(found)
        labels.append(found.labels)
        ends = np.concatenate([ends, found.joined])
    n = len(np.asarray(weights))
    return Nested(
        tuple(levels), np.column_stack(labels) if labels else np.empty((n, 0), np.int64), tuple(bounds),
    )  # fmt: skip


def above(options: Mapping[str, Any], below: np.ndarray, wet: np.ndarray | None) -> dict[str, Any]:
    """The options of ``merge`` for a level that merges the regions ``below`` int64[n], -1 for none.

    wet  bool[n]  areas of water: not merged, but what they hold counts in the region below that has them
    """
    land = below if wet is None else np.where(wet, -1, below)
    own = {**options, "water": None, "fixed": ["" if r < 0 else str(r) for r in land.tolist()]}
    own["exclude"] = land < 0 if (land < 0).any() else None
    if wet is not None and own.get("at_most"):
        own["at_most"] = {n: (_ashore(v, below, wet), most) for n, (v, most) in own["at_most"].items()}
    return own


def with_water(found: Regions, below: np.ndarray, wet: np.ndarray) -> Regions:
    """Regions of a level with the water that the regions ``below`` have."""
    return with_labels(found, _followed(found.labels, below), wet & (below >= 0))


def _followed(labels: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Labels of a level for all areas of a region below, where those that connect have them."""
    of_region = np.full(int(below.max(initial=-1)) + 1, -1, np.int64)
    placed = labels >= 0
    of_region[below[placed]] = labels[placed]
    return np.where(below >= 0, of_region[below], -1)


def _ashore(values: Any, below: np.ndarray, wet: np.ndarray) -> np.ndarray:
    """Numbers of areas, those of water counted at an area of land in its region."""
    found = np.array(values)
    land = np.flatnonzero(~wet & (below >= 0))
    shore = dict(zip(below[land].tolist(), land.tolist(), strict=True))
    for v in np.flatnonzero(wet & (below >= 0)).tolist():
        found[shore[int(below[v])]] += found[v]
        found[v] = 0
    return found


def _rising(ks: Sequence[Any]) -> list[tuple[int, ...]]:
    """The thresholds of every level; PolicyError where one falls, or none rises."""
    if isinstance(ks, (str, bytes)) or not np.iterable(ks) or not len(list(ks)):
        raise PolicyError("thresholds of levels are a list that rises, [20000, 100000] say")
    steps = [tuple(np.atleast_1d(k).tolist()) for k in ks]
    for last, level in pairwise(steps):
        if len(last) != len(level) or any(a < b for a, b in zip(level, last, strict=True)):
            raise PolicyError(f"thresholds must rise from level to level, but {level} comes after {last}")
    return steps


def of_level(options: Mapping[str, Any], level: int, levels: int) -> dict[str, Any]:
    """The maxima and the number of regions that hold at one level.

    Raises PolicyError for a sequence that has not one value for each level, and for one number of regions for several.
    """

    def one(name: str, value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return value
        if len(value) != levels:
            raise PolicyError(f"{name} has {len(value)} values for {levels} levels; give one for each, or one for all")
        return value[level]

    found: dict[str, Any] = {}
    if options.get("at_most"):
        each = {name: (values, one(f"at_most {name!r}", limit)) for name, (values, limit) in options["at_most"].items()}
        found["at_most"] = {name: pair for name, pair in each.items() if pair[1] is not None} or None
    if options.get("regions") is not None:
        if levels > 1 and not isinstance(options["regions"], (list, tuple)):
            raise PolicyError(f"regions is one number for {levels} levels; give one for each, None where it is free")
        found["regions"] = one("regions", options["regions"])
    return found
