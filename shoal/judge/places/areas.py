"""The judge of regions: reads areas and their regions from the files, adds up their weights, and traverses their graph.

By the pairs of neighbors, it checks whether regions are connected, and which areas they keep together or apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import (
    StatedCrosswalk,
    columns_named,
    group_sizes,
    number_of,
    one_row_each,
    part,
    refuse_other_forms,
    spelled,
    whole,
)
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding
from shoal.judge.places.outline_measures import Shape, judge_measures
from shoal.model.cards import several


def summed(label: np.ndarray, values: np.ndarray, m: int) -> np.ndarray:
    """int64[m]: integers of areas, summed over each region; label int[n]: the region of each area, below 0 for none."""
    sums = np.zeros(m, np.int64)
    np.add.at(sums, label[label >= 0], values[label >= 0])
    return sums


def why_left_out(
    label: np.ndarray, place: Mapping[str, int], pairs: pl.DataFrame, asked: Mapping[str, Any], source: pl.DataFrame
) -> Finding:
    """Whether each area left out is in a connected piece too light for a region; other reasons are only stated."""
    out = label < 0
    ends = _ends(place, pairs, asked.get("joined") or [])
    if asked.get("boundary") is not None:
        names = part(source, asked["boundary"]).cast(pl.String).fill_null("").to_numpy()
        side = np.unique(names, return_inverse=True)[1]
        ends = ends[side[ends[:, 0]] == side[ends[:, 1]]]
    piece = _pieces(ends[out[ends].all(axis=1)], len(label))
    m = int(piece.max(initial=-1)) + 1
    light = np.zeros(m, bool)
    for name, k in zip(asked["weight"], asked["k"], strict=True):
        light |= summed(piece, np.array(whole(source, name), np.int64), m) < k
    # next to a region that it could join
    light[piece[ends[out[ends].any(axis=1) & ~out[ends].all(axis=1)].ravel()]] = False
    heavy = int((out & ~light[piece]).sum())
    if not heavy:
        return Finding("why left out", True, "every area left out lies in a piece too light for a region", RECOMPUTED)
    text = f"{heavy} areas left out could be in a region; that this was asked for rests on the certificate"
    return Finding("why left out", True, text, STATED)


def _pieces(ends: np.ndarray, n: int) -> np.ndarray:
    """int64[n]: the connected component of every area."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    links = coo_matrix((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(n, n))
    return connected_components(links, directed=False)[1]


def connected(label: np.ndarray, place: Mapping[str, int], pairs: pl.DataFrame, joined: Sequence[Any]) -> Finding:
    """Whether every region is connected by pairs of neighbors within it."""
    ends = _ends(place, pairs, joined)
    ends = ends[(label[ends[:, 0]] == label[ends[:, 1]]) & (label[ends[:, 0]] >= 0)]
    piece = _pieces(ends, len(label))
    held = label >= 0
    pieces = len({*zip(label[held].tolist(), piece[held].tolist(), strict=True)})
    apart = pieces - len(np.unique(label[held]))
    sentence = f"regions have {apart} pieces too many" if apart else "every region is connected"
    return Finding("connected", not apart, sentence)


def _ends(place: Mapping[str, int], pairs: pl.DataFrame, joined: Sequence[Any]) -> np.ndarray:
    """int64[m, 2]: neighbors by index; VerificationError if one is no area."""
    first, second = (pairs.to_series(i).cast(pl.String).to_list() for i in (0, 1))
    try:
        both = [*zip(first, second, strict=True), *((x[0], x[1]) for x in joined)]
        return np.array([(place[a], place[b]) for a, b in both], np.int64).reshape(-1, 2)
    except KeyError:
        raise VerificationError("a pair of neighbors names an area that is none") from None


def by_land(
    label: np.ndarray, place: Mapping[str, int], pairs: pl.DataFrame, joined: Sequence[Any], water: pl.Series
) -> Finding:
    """Whether every region stays connected without the areas that a column marks as water."""
    wet = np.array([str(v).strip().lower() in ("1", "1.0", "yes", "true", "y", "t") for v in water.to_list()], bool)
    return connected(np.where(wet, -1, label), place, pairs, joined)._replace(check="connected by land")


def uncrossed(label: np.ndarray, values: Sequence[Any]) -> Finding:
    """Whether no region crosses a boundary; areas without a value count as one more side."""
    both = {(g, v) for g, v in zip(label.tolist(), values, strict=True) if g >= 0}
    wrong = len(both) - len({g for g, _ in both})
    return Finding("boundary", not wrong, f"{wrong} crossings of a boundary" if wrong else "no region crosses it")


def undivided(label: np.ndarray, values: Sequence[Any]) -> Finding:
    """Whether areas with the same value are in one region."""
    both = set(_named(label, values))
    wrong = len(both) - len({v for _, v in both})
    return Finding("fixed", not wrong, f"{wrong} sets of areas that belong together are torn")


def apart(label: np.ndarray, values: Sequence[Any]) -> Finding:
    """Whether no two areas of a region have the same value."""
    both = _named(label, values)
    wrong = len(both) - len(set(both))
    return Finding("apart", not wrong, f"{wrong} areas share a region that should not")


def _named(label: np.ndarray, values: Sequence[Any]) -> list[tuple[int, Any]]:
    """(region, value) of every area that is in a region and has a value."""
    return [(g, v) for g, v in zip(label.tolist(), values, strict=True) if g >= 0 and v not in (None, "")]


# conditions on regions by the values of a column
OF_COLUMNS = {"boundary": uncrossed, "fixed": undivided, "apart": apart}
NOWHERE = "*"
UNITS = {"count": "areas merged away", "excess": "times max(k, heaviest area)"}
MEASURES = ("diameter", "polsby_popper", "reock", "center_x", "center_y", "weighted_x", "weighted_y")
# names of a region's figures in a file of outlines
DRAWN = ("region", "areas", "members", "area", "perimeter", *MEASURES)
NAMED = "area (name)"  # column of the areas' names in the source
CENTERS = ("center (x)", "center (y)")  # columns of the areas' centers, between which distances are measured


def judge_regions(
    frame: pl.DataFrame,
    stated: StatedCrosswalk,
    form: str,
    source: pl.DataFrame | None = None,
    pairs: pl.DataFrame | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> list[Finding]:
    """Judge a table with a row per area: its region ("*" for none), the region's weight, and its number of areas.

    source  column NAMED and the columns that the certificate names: weights, boundary, sensitive counts, ...
    pairs   neighbors: a row per pair, the names of two areas in the first two columns
    shapes  polygons by area, from which the measures of regions are recomputed

    Raises VerificationError if the file has another form. O(n + m) for n areas and m pairs, plus sorting.
    """
    asked = stated.parameters
    areas, region = spelled(part(frame, "area"), form), spelled(part(frame, "region"), form)
    names, least = list(asked["weight"]), [int(x) for x in asked["k"]]
    columns = ["region_weight", *(f"region_{name}" for name in names[1:])]
    inside = np.array([r != NOWHERE for r in region], bool)
    held = frame.filter(pl.Series(inside))
    texts = re.compile(r"area|region\d*|bound_by")
    refuse_other_forms(frame, [name for name in _columns_of(asked) if not texts.fullmatch(name)], form)
    code: dict[Any, int] = {}
    label = np.array(
        [code.setdefault(r, len(code)) for r, inner in zip(region, inside, strict=True) if inner], np.int64
    )
    found = [one_row_each(areas, stated.facts, "area"), columns_named(frame, _columns_of(asked)), _levels(frame, asked)]
    if not names or len(names) != len(least):
        raise VerificationError("the certificate file states no threshold for each weight")
    if not code or any(r is None for r in region):
        return [*found, Finding("regions", False, "the file has no region, or an area without a word of its own")]
    values_of = {name: one_each(label, whole(held, name)) for name in ("region_areas", *columns)}
    if any(values is None for values in values_of.values()):
        return [*found, Finding("regions", False, "a region has two weights or two numbers of areas")]
    weights: dict[str, list[int]] = {name: values for name, values in values_of.items() if values is not None}
    found += _stated_sizes(np.bincount(label).tolist(), weights)
    found += _thresholds([weights[name] for name in columns], names, least)
    if len(names) > 1:
        found.append(_nearest([weights[name] for name in columns], names, least, label, part(held, "bound_by"), form))
    found += group_sizes(dict(enumerate(weights["region_weight"])), stated.facts, least[0])
    found += _counted(len(code), int((~inside).sum()), stated)
    inner = [str(a) for a, held_ in zip(areas, inside, strict=True) if held_]
    found += _measures(held, label, inner, asked, source, shapes or {})
    found.append(cost(stated, weights["region_weight"], len(label)))
    if source is None or pairs is None:
        unseen = Finding("connected", True, "the areas and their neighbors would tell", STATED)
        return [*found, unseen, _bound(stated, 0)]
    return [
        *found,
        *_by_graph([str(a) for a in areas], region, code, weights, columns, stated, source, pairs),
        *_totals(held, label, inner, asked, source),
    ]


def _stated_sizes(sizes: list[int], weights: Mapping[str, list[int]]) -> list[Finding]:
    """Whether each region has the stated number of areas."""
    good = sizes == weights["region_areas"]
    sentence = "as many as stated at each region" if good else "a region has more or fewer areas than stated"
    return [Finding("areas", good, sentence)]


def _thresholds(weights: Sequence[list[int]], names: Sequence[str], least: Sequence[int]) -> list[Finding]:
    """Whether no region is below a further threshold; the first threshold is judged with the group sizes."""
    found = []
    for own, name, k in zip(weights[1:], names[1:], least[1:], strict=True):
        under = sum(w < k for w in own)
        found.append(Finding(f"k of region_{name}", not under, f"{under} regions are below {k}"))
    return found


def _nearest(
    weights: Sequence[list[int]], names: Sequence[str], least: Sequence[int], label: np.ndarray, claimed: pl.Series,
    form: str,
) -> Finding:  # fmt: skip
    """Whether every area states the weight of its region that is closest to its threshold."""
    nearest = (np.array(weights) / np.array(least)[:, None]).argmin(axis=0)
    off = sum(names[nearest[r]] != name for r, name in zip(label.tolist(), spelled(claimed, form), strict=True))
    return Finding("bound_by", not off, f"{off} areas name another weight than the one nearest its k")


def _counted(regions: int, out: int, stated: StatedCrosswalk) -> list[Finding]:
    """Whether the numbers of regions and of areas left out are as stated."""
    asked, facts = stated.parameters, stated.facts
    found = [Finding("left out", out == number_of(facts, "left_out"), f"{out} areas are in no region, as certified")]
    if asked.get("regions") is not None:
        found.append(Finding("regions", regions == asked["regions"], f"{regions} of {asked['regions']} asked for"))
    most = regions if stated.public else number_of(facts, "regions_at_most")
    if most < regions or (facts.get("variance_inside") is not None and not asked["similar"]):
        sentence = "fewer regions are possible than there are, or a variance is stated that was not requested"
        found.append(Finding("facts", False, sentence))
    return found


def _columns_of(asked: Mapping[str, Any]) -> list[str]:
    """The columns that a crosswalk of such regions may have."""
    further = list(asked["weight"])[1:]
    held = ["area", "region", "bound_by", *MEASURES]
    held += [f"{kind}_{name}" for kind in ("sum", "mean") for name in asked.get(kind) or ()]
    for level in range(1, 2 + len(asked.get("levels") or ())):
        region = "region" if level == 1 else f"region{level}"
        held += [region, f"{region}_weight", f"{region}_areas", *(f"{region}_{name}" for name in further)]
    return held


def _levels(frame: pl.DataFrame, asked: Mapping[str, Any]) -> Finding:
    """Whether there are as many levels of regions as requested."""
    there = sum(name.removeprefix("region").isdigit() for name in frame.columns) + 1
    levels = 1 + len(asked.get("levels") or ())
    return Finding("levels", there == levels, f"{several(there, 'level')} of regions, {levels} asked for")


def _measures(
    held: pl.DataFrame,
    label: np.ndarray,
    areas: Sequence[str],
    asked: Mapping[str, Any],
    source: pl.DataFrame | None,
    shapes: Mapping[str, Shape],
) -> list[Finding]:
    """Findings about a region's width, compactness, and position, if the file states them."""
    odd, m = [], int(label.max()) + 1
    measures: list[dict[str, float]] = [{} for _ in range(m)]
    for name in (known := [name for name in MEASURES if name in held.columns]):
        claimed = _numbers(held, name, missing=True)
        each = one_each(label, [repr(v) for v in claimed.tolist()])
        most = np.inf if name == "diameter" else 1.0 if name in ("polsby_popper", "reock") else None
        if each is None or (most is not None and ((claimed < 0) | (claimed > most)).any()):
            odd.append(name)
        for r, value in enumerate(each or ()):
            measures[r][name] = float(value)
    if odd or not known:
        return [Finding("measures", False, f"{odd[0]!r} of a region cannot be, or it has two")] if odd else []
    members: list[list[str]] = [[] for _ in range(m)]
    for name, r in zip(areas, label.tolist(), strict=True):
        members[r].append(name)
    if shapes:
        found = judge_measures(measures, [[shapes.get(name, []) for name in own] for own in members], asked, False)
    else:
        found = [Finding("measures", True, "one each; they rest on the polygons", CONSISTENT)]
    return [*found, *judge_weighted(measures, members, asked, source)]


def judge_weighted(
    claimed: Sequence[Mapping[str, float]], members: Sequence[Sequence[str]], asked: Mapping[str, Any],
    source: pl.DataFrame | None,
) -> list[Finding]:  # fmt: skip
    """Whether each region's weighted center is the mean of its areas' centers, by the first weight."""
    if source is None or not any("weighted_x" in own for own in claimed):
        return []
    if CENTERS[0] not in source.columns:
        return [Finding("weighted center", True, "the columns with the areas' centers would tell", STATED)]
    place = {name: i for i, name in enumerate(part(source, NAMED).cast(pl.String).to_list())}
    weight, x, y = _numbers(source, asked["weight"][0]), *(_numbers(source, name) for name in CENTERS)
    wrong = 0
    for own, names in zip(claimed, members, strict=True):
        at = [place[name] for name in names if name in place]
        if weight[at].sum() <= 0:
            continue
        over = bool(asked.get("geographic")) and np.ptp(x[at]) > 180
        east = np.where(over & (x[at] < 0), x[at] + 360, x[at])
        off = abs(own.get("weighted_x", np.nan) - np.average(east, weights=weight[at]))
        apart = min(off, abs(off - 360)), abs(own.get("weighted_y", np.nan) - np.average(y[at], weights=weight[at]))
        wrong += not max(apart) <= 1e-9 * (1 + np.abs(x[at]).max() + np.abs(y[at]).max())
    return [Finding("weighted center", not wrong, f"{wrong} regions state another center of their weight")]


def one_each(label: np.ndarray, values: Sequence[Any]) -> list[Any] | None:
    """The value of each region, None if a region has two."""
    known: dict[int, Any] = {}
    if any(known.setdefault(g, v) != v for g, v in zip(label.tolist(), values, strict=True)):
        return None
    return [known[g] for g in range(len(known))]


def cost(stated: StatedCrosswalk, weights: Sequence[int], areas: int) -> Finding:
    """The recomputed cost, if the file is enough to compute it."""
    objective = str(stated.parameters["objective"]).split(",")[0]
    plain = not any(stated.parameters.get(n) for n in ("fixed", "soft_boundary"))
    unit = UNITS.get(objective)
    if unit is not None and stated.unit != unit:
        return Finding("cost", False, f"counted in {stated.unit!r}, which is not the unit of the request")
    paid: int | None = None
    if objective == "max":
        paid = max(weights)
    elif objective == "sumsq":
        paid = sum(w * w for w in weights)
    elif objective == "count" and plain:
        paid = areas - len(weights)
    return stated.unpaid("by a measure not repeated here") if paid is None else stated.paid(paid)


def _bound(stated: StatedCrosswalk, heaviest: int) -> Finding:
    low, first = stated.lower_bound, str(stated.parameters["objective"]).split(",")[0]
    if heaviest and first == "max" and low is not None and low <= heaviest:
        text = f"no heaviest region is below {heaviest:,}; {low:,} certified"
        return Finding("bound", True, text, RECOMPUTED)
    return stated.bounded("by an argument not repeated here")


def _by_graph(
    areas: list[str], region: Sequence[Any], code: Mapping[Any, int], weights: Mapping[str, list[int]],
    columns: Sequence[str], stated: StatedCrosswalk, source: pl.DataFrame, pairs: pl.DataFrame,
) -> list[Finding]:  # fmt: skip
    """Findings that need the areas and their neighbors: cover, sums, connectedness, and other requested conditions."""
    asked, m = stated.parameters, len(code)
    place = {name: i for i, name in enumerate(part(source, NAMED).cast(pl.String).to_list())}
    absent, foreign = len(set(place) - set(areas)), len(set(areas) - set(place))
    if absent or foreign or len(set(areas)) < len(areas):
        text = f"{absent} areas are in no row, {foreign} rows name none of them"
        return [Finding("cover", False, text)]
    label = np.full(len(place), -1, np.int64)
    for name, r in zip(areas, region, strict=True):
        label[place[name]] = code.get(r, -1)
    held = label >= 0
    found = [Finding("cover", True, "every area has its row, and no other")]
    heaviest = 0
    for column, name in zip(columns, asked["weight"], strict=True):
        own = np.array(whole(source, name), np.int64)
        sums = summed(label, own, m)
        wrong = sum(a != b for a, b in zip(sums.tolist(), weights[column], strict=True))
        text = f"{wrong} regions don't have the stated weight" if wrong else "every region's areas add up to its weight"
        found.append(Finding(f"weight {name}", not wrong, text))
        heaviest = heaviest or max(int(asked["k"][0]), int(own[held].max(initial=0)))
    found.append(connected(label, place, pairs, asked.get("joined") or []))
    if not held.all():
        found.append(why_left_out(label, place, pairs, asked, source))
    if asked.get("water"):
        found.append(by_land(label, place, pairs, asked.get("joined") or [], part(source, asked["water"])))
    for what, judge in OF_COLUMNS.items():
        if asked.get(what) is not None:
            found.append(judge(label, part(source, asked[what]).cast(pl.String).to_list()))
    if asked.get("soft_boundary") is not None:
        found.append(_soft_boundary(label, part(source, asked["soft_boundary"]).cast(pl.String).to_list(), stated))
    several = _parts(label, None if not asked.get("fixed") else part(source, asked["fixed"]), m) > 1
    found += [*diverse(label, source, asked, m), *below(label, source, asked.get("at_most"), several)]
    if asked.get("max_diameter") is not None:
        found.append(_diameter(label, source, float(asked["max_diameter"]), bool(asked.get("geographic"))))
    if asked.get("similar"):
        own = np.array(whole(source, asked["weight"][0]), np.int64)
        columns_ = [_numbers(source, name) for name in asked["similar"]]
        if not stated.public:
            found.append(_variance_inside(label, own, np.stack(columns_, axis=1), stated.facts.get("variance_inside")))
    return [*found, _bound(stated, heaviest)]


def diverse(label: np.ndarray, source: pl.DataFrame, asked: Mapping[str, Any], m: int) -> list[Finding]:
    """Whether no value is too frequent in one of m regions, if l is requested."""
    if not asked.get("sensitive") or asked["l"] <= 1:
        return []
    counts = np.stack([summed(label, np.array(whole(source, n), np.int64), m) for n in asked["sensitive"]], axis=1)
    over = int((counts.max(axis=1) * asked["l"] > counts.sum(axis=1)).sum())
    return [Finding("l", not over, f"{over} regions hold a value in more than 1/{asked['l']} of the records")]


def below(
    label: np.ndarray, source: pl.DataFrame, at_most: Mapping[str, int] | None, several: np.ndarray
) -> list[Finding]:
    """Whether no region of several areas, bool[m], exceeds a maximum."""
    found = []
    for name, most in dict(at_most or {}).items():
        counted = name == "areas" and name not in source.columns
        own = np.ones(len(label), np.int64) if counted else np.array(whole(source, name), np.int64)
        over = int((summed(label, own, len(several))[several] > most).sum())
        text = f"{'1 region of several areas is' if over == 1 else f'{over} regions of several areas are'} above {most}"
        found.append(Finding(f"at most {name}", not over, text))
    return found


def _soft_boundary(label: np.ndarray, values: Sequence[Any], stated: StatedCrosswalk) -> Finding:
    """Whether the number of regions that cross a soft boundary is as certified."""
    sides = {(r, value) for r, value in zip(label.tolist(), values, strict=True) if r >= 0}
    over = int((np.bincount([r for r, _ in sides], minlength=1) > 1).sum())
    if stated.public:
        return Finding("soft_boundary", True, f"{over} regions over a soft boundary")
    certified = stated.details.get("regions_across_soft_boundaries")
    return Finding("soft_boundary", over == certified, f"{over} regions over a soft boundary, {certified} certified")


def _totals(
    held: pl.DataFrame, label: np.ndarray, areas: Sequence[str], asked: Mapping[str, Any], source: pl.DataFrame
) -> list[Finding]:
    """Findings about columns summed over each region, or averaged by the first weight.

    label  int[rows]: region of each row in ``held``
    """
    if not (asked.get("sum") or asked.get("mean")) or not label.size:
        return []
    place = {name: i for i, name in enumerate(part(source, NAMED).cast(pl.String).to_list())}
    if not all(name in place for name in areas):
        return []  # the check of the cover failed already
    row, m = np.array([place[name] for name in areas]), int(label.max()) + 1
    weight = np.array(whole(source, asked["weight"][0]), np.float64)[row]
    found = []
    for how in ("sum", "mean"):
        for name in asked.get(how) or ():
            own = _numbers(source, name)[row]
            total = np.bincount(label, weights=own if how == "sum" else own * weight, minlength=m)
            by = np.ones(m) if how == "sum" else np.bincount(label, weights=weight, minlength=m)
            least = np.divide(total, by, out=np.full(m, np.nan), where=by > 0)[label]
            claimed = _numbers(held, f"{how}_{name}", missing=True)
            wrong = int((~np.isclose(claimed, least, rtol=1e-9, atol=1e-9, equal_nan=True)).sum())
            found.append(
                Finding(f"{how} of {name}", not wrong, f"{wrong} rows state another {how} than their region's")
            )
    return found


def _parts(label: np.ndarray, fixed: pl.Series | None, m: int) -> np.ndarray:
    """int64[m]: how many areas each region has; areas that are fixed together count as one."""
    names = [None] * len(label) if fixed is None else fixed.cast(pl.String).to_list()
    whole_ = {(r, v or i) for i, (r, v) in enumerate(zip(label.tolist(), names, strict=True)) if r >= 0}
    return np.bincount([r for r, _ in whole_], minlength=m)


def _numbers(source: pl.DataFrame, name: str, missing: bool = False) -> np.ndarray:
    """A column as float64; with ``missing``, an empty cell becomes nan."""
    try:
        return np.array([np.nan if missing and v in (None, "") else float(v) for v in part(source, name).to_list()])
    except (TypeError, ValueError):
        raise VerificationError(f"column {name!r} of the areas holds something that is no number") from None


def _diameter(label: np.ndarray, source: pl.DataFrame, most: float, degrees: bool) -> Finding:
    """The largest distance between two centers in a region: great circles (haversine, km) or straight lines."""
    if CENTERS[0] not in source.columns:
        return Finding("max diameter", True, "the areas' centers would tell", STATED)
    x, y = (source[name].to_numpy() for name in CENTERS)
    over = 0
    for r in range(int(label.max()) + 1):
        at = np.flatnonzero(label == r)
        a, b = x[at], y[at]
        if degrees:
            a, b = np.radians(a), np.radians(b)
            half = (
                np.sin((b[:, None] - b) / 2) ** 2 + np.cos(b)[:, None] * np.cos(b) * np.sin((a[:, None] - a) / 2) ** 2
            )
            far = 2 * 6371.0088 * np.arcsin(np.sqrt(np.minimum(half, 1.0)))
        else:
            far = np.hypot(a[:, None] - a, b[:, None] - b)
        over += bool(far.max() > most * (1 + 1e-9))
    return Finding("max diameter", not over, f"{over} regions are wider than {most:g}")


def _variance_inside(label: np.ndarray, weight: np.ndarray, columns: np.ndarray, stated: Any) -> Finding:
    """The share of the columns' weighted variance that is within regions; columns are scaled to one unit."""
    mass = np.maximum(weight, max(1.0, float(weight.mean())) * 1e-6)
    spread = np.sqrt(np.average((columns - np.average(columns, axis=0, weights=mass)) ** 2, axis=0, weights=mass))
    scaled = columns / np.where(spread > 0, spread, 1.0)
    held = np.flatnonzero(label >= 0)

    def about(at: np.ndarray) -> float:
        own = scaled[at] - np.average(scaled[at], axis=0, weights=mass[at])
        return float((mass[at][:, None] * own**2).sum())

    whole_, parts = about(held), sum(about(np.flatnonzero(label == r)) for r in range(int(label.max()) + 1))
    share = parts / whole_ if whole_ > 0 else 0.0
    agrees = isinstance(stated, (int, float)) and abs(share - stated) <= 1e-9 + 1e-6 * share
    sentence = "as certified" if agrees else "another share is certified"
    return Finding("variance inside", agrees, f"{share:.4f} of the variance is inside regions, {sentence}")
