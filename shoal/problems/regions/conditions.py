"""What regions keep to beside their thresholds: keywords as a caller gives them, and as they are once checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from shoal.errors import PolicyError
from shoal.model.arguments import each_of, known
from shoal.problems.regions.limits import NO_DIAMETER, Limits, maxima
from shoal.problems.regions.request import on_earth, places_of, reach
from shoal.problems.regions.water import water_of


class Conditions(TypedDict, total=False):
    """Keywords of ``merge`` and ``nested`` that say what a region keeps to; all of them may be left out.

    boundaries   n labels (states, say) that no region may mix
    soft_boundaries  n labels that a region mixes only for the sake of a set of areas too light to be a region inside
    fixed        n labels: areas of one label, neighbors among themselves, go to the same region; None or "" where an
                 area is free
    apart        n labels: no two areas of one label in a region; None or "" where it does not matter; not with "tree"
    exclude      bool[n]  areas that go to no region (label -1)
    at_most      name -> (int[n], largest sum over a region of several areas, those fixed together being one area);
                 areas that no region can take under it are left out, least weight first; not with "tree"
    max_diameter  largest distance between the coordinates of two areas of a region, km (or the plane's units); areas
                 that no region can take under it are left out; not with "tree", fixed or soft_boundaries
    regions      exactly so many regions instead of as many as the objective makes; without maxima
    sensitive    int[n, s]  how often each sensitive value occurs in each area, with l: in every region no value has
                 more than 1/l of the records
    similar      float[n] or float[n, c]: numbers that a region's areas should be alike in, each scaled by its deviation
    coordinates  float[n, 2]  longitude and latitude (or x and y with ``geographic=False``) of each area's center
    light        what becomes of a component that is too light alone: "leave" it out (label -1, the default), or
                 "nearest": make its area that lies nearest another component a neighbor there, within ``boundaries``;
                 needs coordinates
    water        bool[n]  areas of weight 0 that connect no others: lakes, harbors; each goes to a region beside it that
                 no maximum and no boundary forbids, the one with most areas next to it; -1 where there is none
    start        int[n]  a valid partition to begin the search with
    """

    boundaries: Sequence[Any] | None
    soft_boundaries: Sequence[Any] | None
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
    light: str
    water: Any
    start: Any


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The conditions of one call, checked: labels as lists, places float64[n, 2], maxima put together.

    wet  bool[n] areas of water or None;  dry  what stays out beside it: the areas excluded and the water, or None
    """

    boundaries: list[Any] | None
    soft_boundaries: list[Any] | None
    fixed: list[Any] | None
    apart: list[Any] | None
    places: np.ndarray | None
    geographic: bool
    light: str
    limits: Limits | None
    regions: Any
    similar: Any
    start: Any
    wet: np.ndarray | None
    dry: Any

    @property
    def in_units(self) -> bool:
        """Whether areas are put together, or left out, before anything is merged."""
        return any(asked is not None for asked in (self.dry, self.fixed, self.soft_boundaries))

    def check(self, method: str) -> None:
        """Refuse what contradicts itself, by name."""
        if self.limits is not None and method == "tree":
            raise PolicyError(
                "method 'tree' keeps no maximum; use 'search', 'exact' or 'auto' with at_most, apart and max_diameter"
            )
        if self.limits is not None and self.regions is not None:
            raise PolicyError("regions goes with none of at_most, apart and max_diameter; leave it or them out")
        units = self.fixed is not None or self.soft_boundaries is not None
        if units and self.limits is not None and self.limits.diameter != NO_DIAMETER:
            raise PolicyError("max_diameter looks at single areas; leave fixed and soft_boundaries out")
        if self.in_units and self.start is not None:
            raise PolicyError("start goes with none of exclude, fixed and soft_boundaries; leave it out")


def refuse_below(given: Conditions, features: np.ndarray, need: np.ndarray) -> None:
    """PolicyError where a maximum of a weight is below its threshold: areas merged could not keep both."""
    for name, (values, limit) in (given.get("at_most") or {}).items():
        for j, least in enumerate(need.tolist()):
            if limit < least and np.array_equal(np.asarray(values), features[:, j]):
                raise PolicyError(
                    f"at most {limit} of {name!r} is below k = {least}, so no areas could be merged; raise it, or "
                    "lower k"
                )


def terms_of(given: Conditions, features: np.ndarray) -> Terms:
    """Checked conditions on areas with features int64[n, t + s]; InputError for arrays that do not fit them."""
    n, geographic = len(features), given.get("geographic", True)
    places, diameter = places_of(given.get("coordinates"), n), reach(given.get("max_diameter"), geographic)
    points = np.zeros((0, 2)) if diameter == NO_DIAMETER else on_earth(places, geographic)
    light = known("way to treat light components", given.get("light", "leave"), ("leave", "nearest"))
    boundaries, soft, fixed, apart = (
        each_of(name, given.get(name), n) for name in ("boundaries", "soft_boundaries", "fixed", "apart")
    )
    limits = maxima(given.get("at_most"), apart, points, diameter, n)
    water, dry, wet = given.get("water"), given.get("exclude"), None
    if water is not None:
        wet = water_of(water, features, dry, {"fixed": fixed, "apart": apart})
        dry = wet if dry is None else wet | np.asarray(dry).astype(np.bool_)
    return Terms(
        boundaries, soft, fixed, apart, places, geographic, light, limits, given.get("regions"), given.get("similar"),
        given.get("start"), wet, dry,
    )  # fmt: skip
