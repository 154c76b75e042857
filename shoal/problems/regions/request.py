"""The request of ``merge``, checked: consistent numbers, objectives in order, effort, conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model import arguments
from shoal.model.arguments import Effort, array_of, each_of, known, seed_of, whole_number
from shoal.model.cards import several
from shoal.model.metric import KM_PER_DEGREE
from shoal.problems.regions.limits import LIMITS, RegionLimits, limits_of, refuse_below_thresholds, refuse_unions
from shoal.problems.regions.task import (
    CHAINS,
    OBJECTIVES,
    Contiguity,
    connected_parts,
    eligible_rows,
    relabelled,
    squares_about_means,
    summed,
)
from shoal.problems.regions.units import FixedAreas, flags, water_of

_EFFORT = {"fast": 0.1, "balanced": 1.0, "thorough": 8.0}
_TOTAL = 2**53  # sums of squares are compared as float64 in the search


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One call of ``merge``, checked; see ``merge`` and ``Conditions`` for the meaning of fields.

    features  int64[n, t + s]: weights, then counts of sensitive values;  need: int64[t]
    chain     objectives in order
    places    float64[n, 2] or None;  alike: float64[n or 0, c + 2], moments of the ``similar`` columns
    limits    maxima
    effort    multiple of the usual number of steps;  seconds: time limit instead, or None
    state     uint64[1]: random state
    wet       bool[n]: areas of water, or None;  dry: areas that stay out (excluded areas and water), or None
    """

    edges: np.ndarray
    features: np.ndarray
    need: np.ndarray
    l: int
    chain: tuple[str, ...]
    effort: float
    seconds: float | None
    state: np.ndarray
    unit: str
    boundary: list[Any] | None = None
    soft_boundary: list[Any] | None = None
    fixed: list[Any] | None = None
    apart: list[Any] | None = None
    places: np.ndarray | None = None
    geographic: bool = True
    islands: str = "leave"
    alike: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    start: Any = None
    limits: RegionLimits | None = None
    regions: int | None = None
    wet: np.ndarray | None = None
    dry: Any = None

    @property
    def in_units(self) -> bool:
        """Whether areas are combined, or left out, before anything is merged."""
        return any(asked is not None for asked in (self.dry, self.fixed, self.soft_boundary))

    def of(self, held: FixedAreas) -> Request:
        """This request for units of areas that are fixed together."""
        limits = self.limits
        if limits is not None:
            one_each = held.first(list(range(len(self.features))))  # a largest diameter requires single areas
            points = limits.points[one_each] if len(limits.points) else limits.points
            limits = limits._replace(values=held.summed(limits.values), points=points)
        return replace(
            self, edges=held.edges, features=held.summed(self.features), limits=limits,
            boundary=None if self.boundary is None else held.first(self.boundary),
            places=None if self.places is None else held.centers(self.places, self.features[:, 0]),
            alike=held.summed(self.alike) if len(self.alike) else self.alike,
        )  # fmt: skip


def features_of(weights: Any, k: Any, sensitive: Any, l: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Weights and sensitive counts in one array, thresholds, l."""
    each = list(k) if isinstance(k, (Sequence, np.ndarray)) and not isinstance(k, str) and np.ndim(k) else [k]
    if not each:
        raise PolicyError("k must be one threshold, or one for each column of weights")
    need = np.array([_threshold(x) for x in each], np.int64)
    columns = whole(weights, "weights")
    if columns.ndim == 1:
        columns = columns[:, None]
    if columns.ndim != 2 or columns.shape[1] != len(need):
        found = f"{several(len(need), 'threshold')} for {several(columns.shape[1], 'column')} of weights"
        raise PolicyError(f"k has {found}; give as many")
    if not len(columns):
        raise InputError("there are no areas")
    l = whole_number("l", l)
    if l > 1 and sensitive is None:
        raise PolicyError("l-diversity needs ⟨sensitive=⟩: how often each sensitive value occurs in each area")
    if sensitive is not None and l == 1:
        raise PolicyError("⟨sensitive=⟩ has no effect without l: give ⟨l=2⟩ or more, or leave ⟨sensitive=⟩ out")
    if sensitive is not None:
        counts = whole(sensitive, "sensitive counts")
        if counts.ndim != 2 or len(counts) != len(columns):
            raise InputError(
                f"sensitive counts have shape {counts.shape}; give one row for each of {len(columns)} areas"
            )
        columns = np.concatenate([columns, counts], axis=1)
    return np.ascontiguousarray(columns), need, l


def _threshold(k: Any) -> int:
    """One threshold.

    If it is above the largest possible sum of weights, it is replaced with the least one that can't be reached.
    """
    return min(whole_number("k", k, "a threshold is a whole number of at least 1"), _TOTAL)


def whole(values: Any, what: str) -> np.ndarray:
    """Values as int64; InputError for negative, fractional, or missing ones."""
    found = array_of(values, what, "one number for each area, or as many")
    if found.dtype == object or not np.issubdtype(found.dtype, np.number):
        try:
            found = found.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"{what} are not numbers; give whole numbers of at least 0") from None
    if np.issubdtype(found.dtype, np.floating):
        bad = ~np.isfinite(found) | (found != np.floor(found))
        if bad.any():
            first = int(np.argwhere(np.atleast_1d(bad))[0, 0]) + 1
            raise InputError(
                f"{what} hold what is not a whole number, {several(int(bad.sum()), 'time')}, first in row {first:,}; "
                "round them, or multiply them and k by a power of ten"
            )
    if found.size and found.min() < 0:
        first = int(np.argwhere(np.atleast_1d(found < 0))[0, 0]) + 1
        raise InputError(f"{what} must be at least 0; the first below is in row {first:,}")
    if found.size and float(found.astype(np.float64).sum(axis=0).max()) >= _TOTAL:
        raise InputError(f"{what} add up to 2^53 or more; count them in larger units")
    return np.ascontiguousarray(found.astype(np.int64))


def chain_of(objective: str | Sequence[str] | None, similar: bool, regions: Any) -> tuple[str, ...]:
    """Objectives in order; "max" by default, "similar" if ``similar`` columns are given.

    With a fixed number of regions, "count" is removed.
    """
    if objective is None:
        objective = "similar" if similar else "max"
    if isinstance(objective, str):
        objective = CHAINS.get(objective, [objective])
    if not isinstance(objective, Sequence):
        raise PolicyError(f"objective is one {type(objective).__name__}; give the name of one, or several in order")
    chain = tuple(known("objective of regions", name, OBJECTIVES) for name in objective)
    if not chain or len(set(chain)) != len(chain):
        raise PolicyError("objectives in an order of your own must be named once each")
    if "similar" in chain and not similar:
        raise PolicyError("objective 'similar' needs ⟨similar=⟩: columns of numbers that a region's areas are alike in")
    if regions is not None:
        return tuple(name for name in chain if name != "count") or ("sumsq",)
    if chain[0] in ("compact", "similar"):
        raise PolicyError(f"{chain[0]!r} tells equally good partitions apart; put 'count' or 'max' before it")
    return chain


def regions_of(regions: Any) -> int | None:
    """The required number of regions, or None."""
    if regions is None:
        return None
    return whole_number("regions", regions, "a number of regions is a whole number of at least 1")


def alike_of(similar: Any, weight: np.ndarray) -> np.ndarray:
    """Moments of the columns in which the areas of a region should be similar, each scaled to a deviation of 1."""
    if similar is None:
        return np.zeros((0, 3))
    n = len(weight)
    found = arguments.coordinates(similar, "similar")
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or len(found) != n or not found.shape[1] or not np.isfinite(found).all():
        raise InputError(f"similar must be numbers without gaps, one row for each of {n} areas")
    mass = _mass(weight)
    off = found - np.average(found, axis=0, weights=mass)
    deviation = np.sqrt(np.average(off**2, axis=0, weights=mass))
    return _moments_of(off / np.where(deviation > 0, deviation, 1.0), mass)


def inside(alike: np.ndarray, labels: np.ndarray) -> float:
    """Share of the variance of the scaled columns that is inside regions, over the areas in regions; 0..1."""
    held = labels >= 0
    each = summed(alike[held], labels[held])
    spread = [float(squares_about_means(m).sum()) for m in (each, each.sum(axis=0, keepdims=True))]
    return max(0.0, spread[0] / spread[1]) if spread[1] > 0 else 0.0


def places_of(coordinates: Any, n: int) -> np.ndarray | None:
    """Coordinates as float64[n, 2]."""
    if coordinates is None:
        return None
    found = arguments.coordinates(coordinates, "coordinates")
    if found.shape != (n, 2) or not np.isfinite(found).all():
        raise InputError(f"coordinates must be {n} pairs of finite numbers, not an array of shape {found.shape}")
    return found


def moments(places: np.ndarray, weight: np.ndarray, geographic: bool) -> np.ndarray:
    """Mass, mass x, mass y, mass (x^2 + y^2) of every area; in km from the center if geographic."""
    if geographic:
        places = np.column_stack([_eastwards(places[:, 0]), places[:, 1]])
    xy = places - places.mean(axis=0)
    if geographic:
        xy = np.column_stack([xy[:, 0] * np.cos(np.radians(places[:, 1])), xy[:, 1]]) * KM_PER_DEGREE
    return _moments_of(xy, _mass(weight))


def _eastwards(longitudes: np.ndarray) -> np.ndarray:
    """Longitudes without a jump at the date line: if they span half the globe, they begin after the widest gap."""
    rising = np.sort(longitudes)
    if longitudes.size < 2 or rising[-1] - rising[0] <= 180:
        return longitudes
    gaps = np.diff(rising, append=rising[0] + 360)
    first = rising[(int(np.argmax(gaps)) + 1) % rising.size]
    return np.where(longitudes < first, longitudes + 360, longitudes)


def _mass(weight: np.ndarray) -> np.ndarray:
    return np.maximum(weight, max(1.0, float(weight.mean())) * 1e-6).astype(np.float64)


def _moments_of(columns: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """float64[n, c + 2]: mass, mass times each column, mass times the sum of their squares."""
    lifted = mass[:, None] * columns
    return np.ascontiguousarray(np.column_stack([mass, lifted, (lifted * columns).sum(axis=1)]))


def effort_of(effort: str | float) -> tuple[float, float | None]:
    """A multiple of the usual steps, and a time limit in seconds instead."""
    asked = Effort.of(effort)
    return _EFFORT.get(asked.name, 1.0), asked.seconds


def randomness(seed: int | None) -> np.ndarray:
    """A random state of the kernels' generator, never 0."""
    state = np.random.SeedSequence(seed_of(seed)).generate_state(1, np.uint64)
    return state | np.uint64(1)


def begin_of(
    start: Any, keep: np.ndarray, g: Contiguity, features: np.ndarray, need: np.ndarray, l: int
) -> np.ndarray | None:
    """The given start, restricted to the areas kept, checked."""
    if start is None:
        return None
    given = np.asarray(start)
    if given.shape != keep.shape:
        raise InputError(f"start has shape {given.shape}; give one region for each of {len(keep)} areas")
    label = relabelled(given[keep].astype(np.int64))
    if (label < 0).any() or not connected_parts(g, label):
        raise InputError("start leaves an area out, or has a region that is not connected")
    if not eligible_rows(summed(features, label), need, l).all():
        raise InputError("start has a region that does not meet the thresholds")
    return label


class Conditions(TypedDict, total=False):
    """Keywords of ``merge`` and ``nested`` for what a region must satisfy; all are optional.

    boundary     n labels (such as states) that no region may mix
    soft_boundary  n labels that a region mixes only to include a set of areas that is too light for a region of its
                     own
    fixed        n labels: areas with the same label, which must be connected, go to the same region; None, NaN, or ""
                 if an area is free
    apart        n labels: no two areas with the same label in a region; None, NaN, or "" if it does not matter; not
                 with "tree"
    exclude      bool[n]  areas that belong to no region (label -1)
    at_most      name -> (int[n], largest sum in a region of several areas; areas fixed together count as one area).
                 Areas that no region can take under it are left out, least weight first; not with "tree"
    max_diameter  largest distance between the coordinates of two areas of a region, in km (or the plane's units); areas
                 that no region can take under it are left out; not with "tree", fixed, or soft_boundary
    regions      exactly this many regions instead of as many as the objective makes; not with maxima
    sensitive    int[n, s]  how often each sensitive value occurs in each area; needs l of at least 2: in every region
                 no value has more than 1/l of the records
    similar      float[n] or float[n, c]: numbers in which the areas of a region are similar, each divided by its
                 deviation
    coordinates  float[n, 2]  longitude and latitude (or x and y with ``geographic=False``) of each area's center
    islands      what becomes of a component that is too light alone: "leave" it out (label -1, the default), or "join"
                 it: its area that is nearest another component becomes a neighbor there, within ``boundary``; needs
                 coordinates
    water        bool[n]  areas of weight 0 that connect no others: lakes, harbors. Each goes to a neighboring region
                 that no maximum and no boundary forbids, the one with the most areas next to it; -1 if there is none
    start        int[n]  a valid partition from which the search begins
    """

    boundary: Sequence[Any] | None
    soft_boundary: Sequence[Any] | None
    fixed: Sequence[Any] | None
    apart: Sequence[Any] | None
    exclude: Any
    at_most: Mapping[str, tuple[Any, int]] | None
    max_diameter: float | None
    regions: int | None
    sensitive: Any
    l: int
    similar: Any
    coordinates: Any
    geographic: bool
    islands: str
    water: Any
    start: Any


def _refuse_contradictions(
    given: Conditions, features: np.ndarray, need: np.ndarray, limits: RegionLimits | None, method: str, dry: Any
) -> None:
    """Raise PolicyError for conditions that no region could meet together, by name."""
    units = given.get("fixed") is not None or given.get("soft_boundary") is not None
    named = ", ".join(f"⟨{name}⟩" for name in LIMITS[:-1]) + f" and ⟨{LIMITS[-1]}⟩"
    if limits is not None and method == "tree":
        raise PolicyError(f"method 'tree' keeps no maximum; use 'search', 'exact' or 'auto' with {named}")
    if limits is not None and given.get("regions") is not None:
        raise PolicyError(f"regions can't be combined with {named}; leave one of them out")
    if units:
        refuse_unions(given, "; leave fixed and soft_boundary out")
    if method == "tree" and given.get("start") is not None:
        raise PolicyError("method 'tree' begins with no partition; use 'search', or leave start out")
    if (units or dry is not None) and given.get("start") is not None:
        raise PolicyError("start can't be combined with exclude, fixed, or soft_boundary; leave it out")
    refuse_below_thresholds(given, features, need)


def request_of(
    edges: Any, weights: Any, k: Any, method: str, given: Conditions, *, objective: str | Sequence[str] | None,
    effort: str | float, seed: int | None, unit: str,
) -> Request:  # fmt: skip
    """A call of ``merge``, checked; InputError for arrays that don't fit the areas."""
    features, need, l = features_of(weights, k, given.get("sensitive"), given.get("l", 1))
    n, geographic, similar = len(features), given.get("geographic", True), given.get("similar")
    places = places_of(given.get("coordinates"), n)
    islands = given.get("islands", "leave")
    known("way to treat islands", islands, ("leave", "join"))
    boundary, soft, fixed, apart = (
        each_of(name, given.get(name), n) for name in ("boundary", "soft_boundary", "fixed", "apart")
    )
    limits = limits_of(given, apart, places, geographic, n)
    water, dry, wet = given.get("water"), given.get("exclude"), None
    dry = None if dry is None else flags(dry, n, "exclude")
    if water is not None:
        wet = water_of(water, features, dry, {"fixed": fixed, "apart": apart})
        dry = wet if dry is None else wet | dry
    _refuse_contradictions(given, features, need, limits, method, dry)
    relative, seconds = effort_of(effort)
    return Request(
        edges=edges, features=features, need=need, l=l,
        chain=chain_of(objective, similar is not None, given.get("regions")), boundary=boundary,
        soft_boundary=soft, fixed=fixed, apart=apart, places=places, geographic=geographic,
        alike=alike_of(similar, features[:, 0]), islands=islands, start=given.get("start"), limits=limits,
        regions=regions_of(given.get("regions")), effort=relative, seconds=seconds, state=randomness(seed), unit=unit,
        wet=wet, dry=dry,
    )  # fmt: skip
