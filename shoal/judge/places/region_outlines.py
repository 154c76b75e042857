"""The judge of files published with a crosswalk of regions: outlines, levels, and hierarchies."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import StatedCrosswalk, group_sizes, number_of, part, spelled, whole
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.places.areas import (
    DRAWN,
    MEASURES,
    NAMED,
    NOWHERE,
    OF_COLUMNS,
    below,
    by_land,
    connected,
    cost,
    diverse,
    judge_weighted,
    one_each,
    summed,
)
from shoal.judge.places.outline_measures import KM_PER_DEGREE, Shape, judge_measures, reach


class ReadOutlines(NamedTuple):
    """Outlines as read from a file: the statements of each, and its polygons."""

    properties: list[dict[str, Any]]
    shapes: list[Shape]


def judge_region_outlines(
    held: ReadOutlines,
    level: int,
    stated: StatedCrosswalk,
    source: pl.DataFrame | None = None,
    pairs: pl.DataFrame | None = None,
    areas: Mapping[str, Shape] | None = None,
) -> list[Finding]:
    """Findings about the outlines of a level (0 is the finest): one for each region, valid, and around its areas.

    source, pairs  as for ``judge_regions``
    areas          polygons of the areas by name

    Raises VerificationError if statements that must be numbers aren't. O(p) for p corners in total, plus sorting.
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
    claimed = [_stated_measures(row) for row in held.properties]
    if any(claimed):
        found += judge_measures(claimed, [[shape] for shape in held.shapes], asked, True)
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
    found += [connected(label, place, pairs, joined), *judge_weighted(claimed, known, asked, source)]
    return found if not areas else [*found, _areas_inside(held.shapes, region, areas, asked)]


def _of_level(stated: StatedCrosswalk, level: int) -> tuple[Mapping[str, Any], Mapping[str, Any], list[int], list[Any]]:
    """(The request, the statements of the level, its thresholds, the pairs declared neighbors up to this level)."""
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
    """The name of the first weight in the outlines: its own, unless that name has another meaning there."""
    return "region_weight" if weight in DRAWN else weight


def _stated_measures(row: Mapping[str, Any]) -> dict[str, float]:
    """The measures that an outline states; a format may have cut their names to ten letters."""
    known = {}
    for name in ("area", "perimeter", *MEASURES):
        value = row.get(name, row.get(name[:10]))
        try:
            known[name] = math.nan if value in (None, "") else float(value)
        except (TypeError, ValueError):
            raise VerificationError(f"an outline states no number for {name!r}") from None
    return {name: value for name, value in known.items() if not math.isnan(value)}


def _members(row: Mapping[str, Any]) -> list[str] | None:
    """Names of the areas in a region; None if the format truncates them or stores no list."""
    held, count = row.get("members"), row.get("areas")
    names = [str(m) for m in held] if isinstance(held, list) else str(held).split(" ") if held is not None else None
    return names if names is not None and count is not None and len(names) == int(count) else None


def _areas_inside(
    shapes: Sequence[Shape], region: Mapping[str, int], areas: Mapping[str, Shape], asked: Mapping[str, Any]
) -> Finding:
    """Whether an interior point of every area lies in the outline of its region and in no other.

    The check skips points that are closer to a border than the border was moved, and points that lie in two areas.
    """
    tolerance = reach(asked)
    held = [_ShapeSides.of(shape) for shape in shapes]
    own = {name: _ShapeSides.of(shape) for name, shape in areas.items()}
    low = np.array([s.box[:2] for s in held]), np.array([s.box[2:] for s in held])
    lows, highs = np.array([s.box[:2] for s in own.values()]), np.array([s.box[2:] for s in own.values()])
    sides, wrong, looked = list(own.values()), 0, 0
    for name, r in region.items():
        point, room = own[name].point() if name in own else (None, 0.0)
        if point is None:
            continue
        scale = KM_PER_DEGREE * max(float(np.cos(np.radians(point[1]))), 0.01) if asked.get("geographic") else 1.0
        near = np.flatnonzero(((lows <= point) & (highs >= point)).all(axis=1)).tolist()
        if room * scale <= 2 * tolerance or sum(sides[i].holds(point) for i in near) > 1:
            continue
        looked += 1
        near = np.flatnonzero(((low[0] <= point) & (low[1] >= point)).all(axis=1)).tolist()
        wrong += [i for i in near if held[i].holds(point)] != [r]
    return Finding("laid", not wrong, f"{wrong} of {looked} areas lie outside of their region's outline, or in another")


class _ShapeSides(NamedTuple):
    """The edges of a shape, from a to b, float64[m, 2] each, and its bounding box."""

    a: np.ndarray
    b: np.ndarray
    box: np.ndarray

    @classmethod
    def of(cls, shape: Shape) -> _ShapeSides:
        rings = [ring for polygon in shape for ring in polygon if len(ring) > 2]
        if not rings:
            return cls(np.empty((0, 2)), np.empty((0, 2)), np.array([np.inf, np.inf, -np.inf, -np.inf]))
        a, b = np.concatenate(rings), np.concatenate([np.roll(ring, -1, axis=0) for ring in rings])
        return cls(a, b, np.concatenate([a.min(axis=0), a.max(axis=0)]))

    def crossings(self, y: float) -> np.ndarray:
        """The sorted x-coordinates at which a horizontal line crosses the edges."""
        a, b = self.a, self.b
        at = (a[:, 1] > y) != (b[:, 1] > y)
        a, b = a[at], b[at]
        return np.sort(a[:, 0] + (y - a[:, 1]) / (b[:, 1] - a[:, 1]) * (b[:, 0] - a[:, 0]))

    def holds(self, point: np.ndarray) -> bool:
        return bool((self.crossings(float(point[1])) < point[0]).sum() % 2)

    def point(self) -> tuple[np.ndarray | None, float]:
        """An interior point and its distance to both ends of its segment.

        It is the middle of the widest segment of the horizontal line at half height.
        """
        y = float(self.box[[1, 3]] @ [0.509, 0.491]) if len(self.a) else 0.0
        x = self.crossings(y) if len(self.a) else np.empty(0)
        if len(x) < 2:
            return None, 0.0
        starts, ends = x[: len(x) // 2 * 2 : 2], x[1::2]
        i = int(np.argmax(ends - starts))
        return np.array([(starts[i] + ends[i]) / 2, y]), float(ends[i] - starts[i]) / 2


def judge_levels(
    frame: pl.DataFrame,
    stated: StatedCrosswalk,
    form: str,
    source: pl.DataFrame | None = None,
    pairs: pl.DataFrame | None = None,
) -> list[Finding]:
    """Judge the second level and those above: columns region2, region2_weight, region2_areas, and so on.

    source, pairs  as for ``judge_regions``

    Raises VerificationError if these columns are missing. O(levels (n + m)) for n areas and m pairs, plus sorting.
    """
    asked, facts = _levels(stated)
    names, areas = [str(n) for n in stated.parameters["weight"]], spelled(part(frame, "area"), form)
    below = spelled(part(frame, "region"), form)
    lighter = ["region_weight", *(f"region_{name}" for name in names[1:])]
    found: list[Finding] = []
    # Compare each level with the one below: nesting, sums, and stated sizes.
    for i, (wanted, fact) in enumerate(zip(asked, facts, strict=True), 2):
        own = spelled(part(frame, f"region{i}"), form)
        columns = [f"region{i}_weight", *(f"region{i}_{name}" for name in names[1:])]
        label = coded(own)
        inside = label >= 0
        if not inside.any():
            return [*found, Finding(f"level {i}", False, "the level has no region")]
        held = frame.filter(pl.Series(inside))
        counted = [one_each(label[inside], whole(held, name)) for name in (f"region{i}_areas", *columns)]
        known = [values for values in counted if values is not None]
        if len(known) < len(counted):
            return [*found, Finding(f"level {i}", False, "a region has two weights or two numbers of areas")]
        found += [
            _nested(i, below, own),
            *_sizes(i, label, known, wanted, fact),
            *_cost_and_bound(i, known, fact, stated),
        ]
        finer = coded(below)
        first = np.unique(finer, return_index=True)[1]
        first = first[(finer[first] >= 0) & inside[first]]  # an area in a region of every finer level
        for column, fine, values in zip(columns, lighter, known[1:], strict=True):
            sums = summed(label[first], np.array(whole(frame[first.tolist()], fine), np.int64), len(values))
            off = sum(a != b for a, b in zip(sums.tolist(), values, strict=True))
            found.append(
                Finding(f"{column}", not off, f"{off} regions don't have the sum of the weights of the regions in them")
            )
        if source is not None and pairs is not None:
            found += _by_graph(i, areas, label, finer, wanted, stated.parameters, source, pairs)
        below, lighter = own, columns
    return found


def judge_region_hierarchy(
    path: Path, stated: StatedCrosswalk, source: pl.DataFrame | None = None, pairs: pl.DataFrame | None = None
) -> list[Finding]:
    """Judge a hierarchy file: a row per area, with the area, its region at every level, and "*" as the root.

    Raises VerificationError if the file has another form.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, delimiter=";"))
    except (OSError, UnicodeDecodeError, csv.Error):
        raise VerificationError("the hierarchy cannot be read back") from None
    asked, facts = _levels(stated)
    ks = [{"k": stated.parameters["k"]}, *asked]
    rows_, areas = number_of(stated.facts, "rows"), [row[0] for row in rows if row]
    right = len(set(areas)) == len(rows) == rows_ and {len(row) for row in rows} == {len(ks) + 2}
    found = [Finding("values", right, f"{len(rows)} rows for {rows_} areas, each with its region at {len(ks)} levels")]
    if not right:
        return found
    found.append(Finding("top", all(row[-1] == NOWHERE for row in rows), "one group of all at the top"))
    for i, (wanted, fact) in enumerate(zip(ks, [stated.facts, *facts], strict=True), 1):
        own = [row[i] for row in rows]
        label = coded(own)
        groups = (int(label.max(initial=-1)) + 1, int((label < 0).sum()))
        same = groups == (number_of(fact, "groups"), number_of(fact, "left_out"))
        found.append(Finding(f"level {i}", same, f"{groups[0]} regions, {groups[1]} areas in none"))
        if i > 1:
            found.append(_nested(i, [row[i - 1] for row in rows], own))
        if source is None or pairs is None:
            found.append(Finding(f"k of level {i}", True, "the areas and their neighbors would tell", STATED))
        else:
            finer = coded([row[i - 1] for row in rows])
            found += _by_graph(i, areas, label, finer, wanted, stated.parameters, source, pairs)
    return found


def coded(names: Sequence[str | None]) -> np.ndarray:
    """int64[n]: a code for every name, -1 for None."""
    code: dict[str | None, int] = {}
    return np.array([-1 if r in (NOWHERE, None) else code.setdefault(r, len(code)) for r in names], np.int64)


def _levels(stated: StatedCrosswalk) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """(The requests for the levels above the first, the statements about them)."""
    asked, facts = list(stated.parameters.get("levels") or []), list(stated.facts.get("levels") or [])
    if len(asked) != len(facts):
        raise VerificationError("the certificate file states another number of levels than was asked for")
    return asked, facts


def _nested(i: int, below: Sequence[str | None], own: Sequence[str | None]) -> Finding:
    """Whether each region of the level below lies in one region of this level or in none.

    Areas left out stay left out.
    """
    parent: dict[str | None, str | None] = {NOWHERE: NOWHERE}
    loose = sum(parent.setdefault(a, b) != b for a, b in zip(below, own, strict=True))
    return Finding(f"level {i} nested", not loose, f"{loose} areas leave the region of the level below")


def _sizes(
    i: int, label: np.ndarray, known: Sequence[list[int]], wanted: Mapping[str, Any], fact: Mapping[str, Any]
) -> list[Finding]:
    """Findings about thresholds, numbers of areas, and certified figures."""
    sizes, weights = known[0], known[1]
    under = sum(w < k for values, k in zip(known[1:], wanted["k"], strict=True) for w in values)
    stated = tuple(number_of(fact, n) for n in ("groups", "smallest_group", "largest_group", "left_out"))
    found = (len(weights), min(weights), max(weights), int((label < 0).sum()))
    counted = np.bincount(label[label >= 0], minlength=len(sizes)).tolist()
    out = [
        Finding(f"level {i} k", not under, f"{under} weights of regions are below {wanted['k']}"),
        Finding(f"level {i} groups", found == stated, f"{found[0]} regions of {found[1]} to {found[2]}, as certified"
                if found == stated else "another number of regions, or of other weights, is certified"),
        Finding(f"level {i} areas", counted == sizes, "as many areas as stated at each region"
                if counted == sizes else "a region has more or fewer areas than stated"),
    ]  # fmt: skip
    if wanted.get("regions") is not None:
        out.append(Finding(f"level {i} regions", found[0] == wanted["regions"], f"{found[0]} of {wanted['regions']}"))
    return out


def _cost_and_bound(
    i: int, known: Sequence[list[int]], fact: Mapping[str, Any], stated: StatedCrosswalk
) -> list[Finding]:
    """Cost and bound of a level, recomputed from the file alone, as for the finest level."""
    if stated.public:
        return []
    most, unions = number_of(fact, "regions_at_most"), number_of(fact, "unions_at_most")
    here = stated._replace(
        cost=fact["cost"], lower_bound=fact["cost_at_least"], unit=fact["unit"],
        parameters={**stated.parameters, "fixed": True})  # fmt: skip
    paid = cost(here, known[1], 0)
    fits = len(known[1]) <= min(unions, most) and 0 <= fact["cost_at_least"] <= fact["cost"]
    text = f"{len(known[1])} regions, at most {unions} of unions and {most} of areas certified"
    bound = f"{here.lower_bound:,} certified, by an argument not repeated here"
    return [
        paid._replace(check=f"level {i} cost"),
        Finding(f"level {i} facts", fits, text, CONSISTENT),
        Finding(f"level {i} bound", True, bound, STATED),
    ]


def _by_graph(
    i: int, areas: Sequence[Any], label: np.ndarray, finer: np.ndarray, wanted: Mapping[str, Any],
    asked: Mapping[str, Any], source: pl.DataFrame, pairs: pl.DataFrame,
) -> list[Finding]:  # fmt: skip
    """Findings about sums over areas, connectedness, boundaries, maxima, and l at one level."""
    place = {name: j for j, name in enumerate(part(source, NAMED).cast(pl.String).to_list())}
    if set(map(str, areas)) != set(place):
        return [Finding("cover", False, "the rows name other areas than there are")]
    at = np.array([place[str(a)] for a in areas], np.int64)
    own, fine = np.full(len(place), -1, np.int64), np.full(len(place), -1, np.int64)
    own[at], fine[at] = label, finer
    m = int(own.max(initial=-1)) + 1
    found = []
    for name, k in zip(asked["weight"], wanted["k"], strict=True):
        under = int((summed(own, np.array(whole(source, name), np.int64), m) < k).sum())
        found.append(Finding(f"level {i} {name}", not under, f"{under} regions hold less than {k}"))
    upper = (asked.get("levels") or [])[: i - 1]
    joined = [*(asked.get("joined") or []), *(pair for level in upper for pair in level["joined"])]
    checks = [connected(own, place, pairs, joined)]
    if asked.get("water"):
        checks.append(by_land(own, place, pairs, joined, part(source, asked["water"])))
    columns = [what for what in ("boundary", "apart") if asked.get(what) is not None]
    checks += [OF_COLUMNS[what](own, part(source, asked[what]).cast(pl.String).to_list()) for what in columns]
    checks += diverse(own, source, asked, m)
    if i > 1:
        held = own >= 0
        several = np.bincount(np.unique(np.column_stack([own, fine])[held], axis=0)[:, 0], minlength=m) > 1
        checks += below(own, source, wanted.get("at_most"), several)
    return [*found, *(Finding(f"level {i} {c.check}", c.holds, c.found, c.how) for c in checks)]
