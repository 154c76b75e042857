"""The judge of outlines of regions: what they state, whom they hold, and where they lie."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import Stated, group_sizes, number_of, part, whole
from shoal.judge.finding import STATED, Finding
from shoal.judge.places.areas import DRAWN, MEASURES, NAMED, judge_weighted
from shoal.judge.places.neighbors import connected, summed
from shoal.judge.places.outline_measures import Shape, judge_measures, reach

_KM = 111.1950802335329  # a degree of latitude


class Outlined(NamedTuple):
    """Outlines as read back: what each states, and its polygons."""

    properties: list[dict[str, Any]]
    shapes: list[Shape]


def judge_region_outlines(
    held: Outlined,
    level: int,
    stated: Stated,
    source: pl.DataFrame | None = None,
    pairs: pl.DataFrame | None = None,
    areas: Mapping[str, Shape] | None = None,
) -> list[Finding]:
    """An outline for every region of a level (0 the finest), above its thresholds, connected, its areas inside it.

    source, pairs  as for ``judge_regions``;  areas  polygons of the areas by name, which were put together

    Raises VerificationError for outlines that state no numbers.  O(p) for p corners of all, but for sorting.
    """
    asked, facts, k, joined = _of_level(stated, level)
    names = [str(row.get("region")) for row in held.properties]
    groups = number_of(facts, "groups")
    each = len(set(names)) == len(names) == groups
    found = [Finding("outlines", each, f"{len(names)} outlines for {groups} regions")]
    if not each:
        return found
    weight = str(asked["weight"][0])
    called = weighed(weight)
    if all(row.get(called) is not None for row in held.properties):
        sizes = whole(pl.DataFrame({called: [row[called] for row in held.properties]}, strict=False), called)
        found += group_sizes(dict(enumerate(sizes)), facts, k[0])
    else:
        found.append(Finding("k", True, "the format keeps no column of this name", STATED))
    said = [_told(row) for row in held.properties]
    if any(said):
        found += judge_measures(said, [[shape] for shape in held.shapes], asked, True)
    members = [_members(row) for row in held.properties]
    known = [m for m in members if m is not None]
    if len(known) < len(members):
        return [*found, Finding("members", True, "the format keeps no list of them", STATED)]
    region = {name: r for r, own in enumerate(known) for name in own}
    once = len(region) == sum(map(len, known))
    found.append(Finding("members", once, f"{len(region)} areas, each in one region" if once else "an area is in two"))
    if source is None or pairs is None or not once:
        return [*found, Finding("connected", True, "the areas and their neighbors would tell", STATED)]
    place = {name: i for i, name in enumerate(part(source, NAMED).cast(pl.String).to_list())}
    label = np.array([region.get(name, -1) for name in place], np.int64)
    out = int((label < 0).sum())
    cover = set(region) <= set(place) and out == number_of(facts, "left_out")
    found.append(Finding("cover", cover, f"{len(region)} areas are in a region, {out} in none"))
    for name, least in zip(asked["weight"], k, strict=True):
        sums = summed(label, np.array(whole(source, name), np.int64), len(known)).tolist()
        wrong = sum(s < least for s in sums)
        if name == weight and all(row.get(called) is not None for row in held.properties):
            wrong += sum(s != t for s, t in zip(sums, sizes, strict=True))
        text = f"{wrong} regions weigh less than {least}, or not what they state"
        found.append(Finding(f"weight {name}", not wrong, text))
    found += [connected(label, place, pairs, joined), *judge_weighted(said, known, asked, source)]
    return found if not areas else [*found, _laid(held.shapes, region, areas, asked)]


def _of_level(stated: Stated, level: int) -> tuple[Mapping[str, Any], Mapping[str, Any], list[int], list[Any]]:
    """What was asked for, what is stated of the level, its thresholds, the pairs made neighbors up to it."""
    asked = stated.parameters
    try:
        upper = list(asked.get("levels") or [])[:level]
        facts = stated.facts if level == 0 else stated.facts["levels"][level - 1]
        own = asked if level == 0 else upper[level - 1]
    except IndexError:
        raise VerificationError("the certificate file states fewer levels than outlines") from None
    joined = [*(asked.get("joined") or []), *(pair for held in upper for pair in held["joined"])]
    return asked, facts, [int(x) for x in own["k"]], joined


def weighed(weight: str) -> str:
    """The outlines' name for the first weight: its own, unless that says something else there."""
    return "region_weight" if weight in DRAWN else weight


def _told(row: Mapping[str, Any]) -> dict[str, float]:
    """What an outline says of its measures, under names that a format may have cut to ten letters."""
    known = {}
    for name in ("area", "perimeter", *MEASURES):
        value = row.get(name, row.get(name[:10]))
        try:
            known[name] = math.nan if value in (None, "") else float(value)
        except (TypeError, ValueError):
            raise VerificationError(f"an outline states no number for {name!r}") from None
    return {name: value for name, value in known.items() if not math.isnan(value)}


def _members(row: Mapping[str, Any]) -> list[str] | None:
    """Names of the areas in a region; None where the format cut them off or keeps no list."""
    held, count = row.get("members"), row.get("areas")
    names = [str(m) for m in held] if isinstance(held, list) else str(held).split(" ") if held is not None else None
    return names if names is not None and count is not None and len(names) == int(count) else None


def _laid(
    shapes: Sequence[Shape], region: Mapping[str, int], areas: Mapping[str, Shape], asked: Mapping[str, Any]
) -> Finding:
    """Whether a point inside every area lies in the outline of its region and in no other.

    Points nearer to a border than it was moved tell nothing, nor do those that lie in two areas.
    """
    tolerance = reach(asked)
    held = [_Sides.of(shape) for shape in shapes]
    own = {name: _Sides.of(shape) for name, shape in areas.items()}
    low = np.array([s.box[:2] for s in held]), np.array([s.box[2:] for s in held])
    lows, highs = np.array([s.box[:2] for s in own.values()]), np.array([s.box[2:] for s in own.values()])
    sides, wrong, looked = list(own.values()), 0, 0
    for name, r in region.items():
        point, room = own[name].point() if name in own else (None, 0.0)
        if point is None:
            continue
        scale = _KM * max(float(np.cos(np.radians(point[1]))), 0.01) if asked.get("geographic") else 1.0
        near = np.flatnonzero(((lows <= point) & (highs >= point)).all(axis=1)).tolist()
        if room * scale <= 2 * tolerance or sum(sides[i].holds(point) for i in near) > 1:
            continue
        looked += 1
        near = np.flatnonzero(((low[0] <= point) & (low[1] >= point)).all(axis=1)).tolist()
        wrong += [i for i in near if held[i].holds(point)] != [r]
    return Finding("laid", not wrong, f"{wrong} of {looked} areas lie outside of their region's outline, or in another")


class _Sides(NamedTuple):
    """The sides of a shape, from a to b, float64[m, 2] each, and its box."""

    a: np.ndarray
    b: np.ndarray
    box: np.ndarray

    @classmethod
    def of(cls, shape: Shape) -> _Sides:
        rings = [ring for polygon in shape for ring in polygon if len(ring) > 2]
        if not rings:
            return cls(np.empty((0, 2)), np.empty((0, 2)), np.array([np.inf, np.inf, -np.inf, -np.inf]))
        a, b = np.concatenate(rings), np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])
        return cls(a, b, np.concatenate([a.min(axis=0), a.max(axis=0)]))

    def crossings(self, y: float) -> np.ndarray:
        """Where a level line crosses the sides, in order."""
        a, b = self.a, self.b
        at = (a[:, 1] > y) != (b[:, 1] > y)
        a, b = a[at], b[at]
        return np.sort(a[:, 0] + (y - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0]))

    def holds(self, point: np.ndarray) -> bool:
        return bool((self.crossings(float(point[1])) < point[0]).sum() % 2)

    def point(self) -> tuple[np.ndarray | None, float]:
        """A point in the widest part of the line halfway up, and how far it is from both ends of that."""
        y = float(self.box[[1, 3]] @ [0.509, 0.491]) if len(self.a) else 0.0
        x = self.crossings(y) if len(self.a) else np.empty(0)
        if len(x) < 2:
            return None, 0.0
        starts, ends = x[: len(x) // 2 * 2 : 2], x[1::2]
        i = int(np.argmax(ends - starts))
        return np.array([(starts[i] + ends[i]) / 2, y]), float(ends[i] - starts[i]) / 2
