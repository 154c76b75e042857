"""The judge of regions within regions: every level of a crosswalk, and the hierarchy that is written beside it."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import Stated, number_of, part, spelled, whole
from shoal.judge.finding import CONSISTENT, STATED, Finding
from shoal.judge.places.areas import NAMED, NOWHERE, cost, one_each
from shoal.judge.places.neighbors import by_land, connected, kept, summed


def judge_levels(
    frame: pl.DataFrame,
    stated: Stated,
    form: str,
    source: pl.DataFrame | None = None,
    pairs: pl.DataFrame | None = None,
) -> list[Finding]:
    """The second level and those above it: columns region2, region2_weight, region2_areas, and so on.

    source, pairs  as for ``judge_regions``

    Raises VerificationError for a file without these columns.  O(levels (n + m)) for n areas and m pairs, but for
    sorting.
    """
    asked, facts = _levels(stated)
    names, areas = [str(n) for n in stated.parameters["weight"]], spelled(part(frame, "area"), form)
    below = spelled(part(frame, "region"), form)
    lighter = ["region_weight", *(f"region_{name}" for name in names[1:])]
    found: list[Finding] = []
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
        found += [_nested(i, below, own), *_sizes(i, label, known, wanted, fact), *_priced(i, known, fact, stated)]
        finer = coded(below)
        first = np.unique(finer, return_index=True)[1]
        first = first[(finer[first] >= 0) & inside[first]]  # an area of every finer region
        for column, fine, values in zip(columns, lighter, known[1:], strict=True):
            sums = summed(label[first], np.array(whole(frame[first.tolist()], fine), np.int64), len(values))
            off = sum(a != b for a, b in zip(sums.tolist(), values, strict=True))
            found.append(Finding(f"{column}", not off, f"{off} regions weigh another sum than the regions in them"))
        if source is not None and pairs is not None:
            found += _walked(i, areas, label, finer, wanted, stated.parameters, source, pairs)
        below, lighter = own, columns
    return found


def judge_region_hierarchy(
    path: Path, stated: Stated, source: pl.DataFrame | None = None, pairs: pl.DataFrame | None = None
) -> list[Finding]:
    """A row per area: itself, its region at every level, the last "*" for all.

    Raises VerificationError for a file that is no such table.
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
            found += _walked(i, areas, label, finer, wanted, stated.parameters, source, pairs)
    return found


def coded(names: Sequence[str | None]) -> np.ndarray:
    """int64[n]: a number for every name, -1 for none."""
    code: dict[str | None, int] = {}
    return np.array([-1 if r in (NOWHERE, None) else code.setdefault(r, len(code)) for r in names], np.int64)


def _levels(stated: Stated) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """What was asked of the levels above the first, and what is stated of them."""
    asked, facts = list(stated.parameters.get("levels") or []), list(stated.facts.get("levels") or [])
    if len(asked) != len(facts):
        raise VerificationError("the certificate file states another number of levels than was asked for")
    return asked, facts


def _nested(i: int, below: Sequence[str | None], own: Sequence[str | None]) -> Finding:
    """Every region of the level below is in one region of this level, or in none as a whole; what is out stays out."""
    parent: dict[str | None, str | None] = {NOWHERE: NOWHERE}
    loose = sum(parent.setdefault(a, b) != b for a, b in zip(below, own, strict=True))
    return Finding(f"level {i} nested", not loose, f"{loose} areas leave the region of the level below")


def _sizes(
    i: int, label: np.ndarray, known: Sequence[list[int]], wanted: Mapping[str, Any], fact: Mapping[str, Any]
) -> list[Finding]:
    """Thresholds, numbers of areas, and the figures that are certified."""
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


def _priced(i: int, known: Sequence[list[int]], fact: Mapping[str, Any], stated: Stated) -> list[Finding]:
    """Cost and bound of a level: as for the finest, by the file alone."""
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


def _walked(
    i: int, areas: Sequence[Any], label: np.ndarray, finer: np.ndarray, wanted: Mapping[str, Any],
    asked: Mapping[str, Any], source: pl.DataFrame, pairs: pl.DataFrame,
) -> list[Finding]:  # fmt: skip
    """Sums over the areas, connection, boundaries, maxima and l at one level."""
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
    for what, mixed in (("boundary", True), ("apart", None)):
        if asked.get(what) is not None:
            checks.append(kept(what, mixed, own, part(source, asked[what]).cast(pl.String).to_list()))
    if asked.get("sensitive") and asked["l"] > 1:
        counts = np.stack([summed(own, np.array(whole(source, n), np.int64), m) for n in asked["sensitive"]], axis=1)
        over = int((counts.max(axis=1) * asked["l"] > counts.sum(axis=1)).sum())
        checks.append(Finding("l", not over, f"{over} regions hold a value in more than 1/{asked['l']} of the records"))
    if i > 1:
        held = own >= 0
        several = np.bincount(np.unique(np.column_stack([own, fine])[held], axis=0)[:, 0], minlength=m) > 1
        for name, most in dict(wanted.get("at_most") or {}).items():
            counted = name == "areas" and name not in source.columns
            values = np.ones(len(own), np.int64) if counted else np.array(whole(source, name), np.int64)
            over = int((summed(own, values, m)[several] > most).sum())
            checks.append(Finding(f"at most {name}", not over, f"{over} regions of several are above {most}"))
    return [*found, *(Finding(f"level {i} {c.check}", c.holds, c.found, c.how) for c in checks)]
