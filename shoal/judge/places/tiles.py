"""The judge of tiles: reads places and their rectangles from the files, and intersects the rectangles again."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

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
from shoal.judge.finding import RECOMPUTED, STATED, Finding
from shoal.judge.places.outline_measures import KM_PER_DEGREE

UNIT = "records in the largest tile"
UNITS = (("person", "persons"), ("household", "households"))


class LaidTiles(NamedTuple):
    """The tiles of a file: number, records, persons or households, boundary value, and rectangle of each.

    boxes        float64[m, 4], infinite at an open side
    west, width  float64[m] in degrees, within one turn
    """

    number: dict[int, int]
    sizes: dict[int, int]
    units: dict[str, dict[int, int]]
    sides: list[Any]
    boxes: np.ndarray
    west: np.ndarray
    width: np.ndarray
    around: bool


def judge_tiles(frame: pl.DataFrame, stated: StatedCrosswalk, form: str, source: pl.DataFrame | None) -> list[Finding]:
    """Judge a table with a row per place: its tile, the tile's bounds (missing at open sides), and the tile's records.

    source  the table of points; if given, records, persons, and sensitive values of every tile are counted again

    Raises VerificationError if the file has another form. O(n log n) for n places, plus the pairs of tiles whose
    latitudes overlap.
    """
    asked = stated.parameters
    names = [str(asked[n]) for n in ("x", "y", "boundary") if asked.get(n) is not None]
    places = [*zip(*(spelled(part(frame, name), form) for name in names), strict=True)]
    points = np.stack([_numbers(frame, name) for name in names[:2]], axis=1)
    laid, found = _tiles_of(frame, stated, form, east=bool((points[:, 0] > 180).any()))
    tile = whole(frame, "tile")
    found = [one_row_each(places, stated.facts, "place"), *found, _inside(points, tile, laid)]
    found.append(columns_named(frame, [*names, *_columns_of(asked)]))
    found += _settings(laid, stated)
    largest = max(laid.sizes.values(), default=0)
    cost = (largest, UNIT) == (stated.cost, stated.unit)
    found.append(Finding("cost", cost, f"the largest tile has {largest}, {stated.cost:,} certified"))
    found.append(_records(laid, stated))
    if source is None:
        return [*found, Finding("counts", True, "of each tile: the points would tell", STATED), _bound(stated, 0)]
    return [*found, *_counted(dict(zip(places, tile, strict=True)), laid, frame, stated, form, source)]


def judge_tile_rows(frame: pl.DataFrame, stated: StatedCrosswalk, form: str) -> list[Finding]:
    """Judge a table with a row per tile: bounds, records, center. VerificationError if the file has another form."""
    tile = whole(frame, "tile")
    laid, found = _tiles_of(frame, stated, form)
    twice = len(tile) - len(set(tile))
    found.insert(0, Finding("one row each", not twice, f"{len(tile)} tiles in {len(tile)} rows, {twice} of them twice"))
    found.append(columns_named(frame, _columns_of(stated.parameters)))
    return [*found, _records(laid, stated), *_settings(laid, stated)]


def _columns_of(asked: Mapping[str, Any]) -> list[str]:
    """The columns that describe a tile."""
    x, y, boundary = str(asked["x"]), str(asked["y"]), asked.get("boundary")
    own = [f"{name}_{what}" for name in (x, y) for what in ("low", "high", "center")]
    return ["tile", "records", *(name for column, name in UNITS if asked.get(column) is not None), *own,
            *([] if boundary is None else [str(boundary)])]  # fmt: skip


def _records(laid: LaidTiles, stated: StatedCrosswalk) -> Finding:
    total = sum(laid.sizes.values())
    if stated.public and "records" not in stated.facts:
        return Finding("records", True, f"{total} records in all tiles")
    records = number_of(stated.facts, "records")
    return Finding("records", total == records, f"{total} records in all tiles, {records} certified")


def judge_outlines(path: Path, stated: StatedCrosswalk) -> list[Finding]:
    """Judge tiles as polygons: their statements, and whether the polygons match the stated bounds."""
    try:
        features = json.loads(path.read_text(encoding="utf-8"))["features"]
        frame = pl.DataFrame([f["properties"] for f in features], infer_schema_length=None)
        shapes = [f["geometry"] for f in features]
        rings = [[p[0] for p in (g["coordinates"] if g["type"] == "MultiPolygon" else [g["coordinates"]])]
                 for g in shapes]  # fmt: skip
        areas = [sum(abs(_area(ring)) for ring in own) for own in rings]
        heights = [(min(p[1] for r in own for p in r), max(p[1] for r in own for p in r)) for own in rings]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, pl.exceptions.PolarsError):
        raise VerificationError("the file holds no polygons of tiles") from None
    found = judge_tile_rows(frame, stated, "parquet")
    laid, _ = _tiles_of(frame, stated, "parquet")
    off = 0
    for i, area, (low, high) in zip(whole(frame, "tile"), areas, heights, strict=True):
        at = laid.number[i]
        south, north = max(laid.boxes[at, 1], -90.0), min(laid.boxes[at, 3], 90.0)
        turn = 360.0 if np.isinf(laid.boxes[at, [0, 2]]).all() else laid.width[at]
        off += not (low == south and high == north and math.isclose(area, turn * (north - south), rel_tol=1e-6))
    sentence = f"{off} polygons are not the rectangles stated" if off else "every polygon is the rectangle stated"
    return [*found, Finding("outlines", not off, sentence)]


def judge_tile_table(frame: pl.DataFrame, stated: StatedCrosswalk, form: str) -> list[Finding]:
    """Judge the records with their tiles in place of coordinates: all counts that a receiver can make."""
    asked, k = stated.parameters, number_of(stated.parameters, "k")
    gone = [str(asked[n]) for n in ("x", "y", "person", "household") if asked.get(n) is not None]
    gone += map(str, asked.get("identifiers", ()))
    left = [name for name in gone if name in frame.columns]
    sentence = (
        f"column {left[0]!r} should have left the table" if left else "coordinates and persons have left the table"
    )
    tile = whole(frame, "tile")
    weight = asked.get("weight")
    counts = [1] * len(tile) if weight is None else whole(frame, str(weight))
    sums: dict[int, int] = {}
    for t, n in zip(tile, counts, strict=True):
        sums[t] = sums.get(t, 0) + n
    rows = len(tile)
    if not stated.public:
        rows = number_of(stated.facts, "points") - number_of(stated.facts, "rows_left_out")
    laid, found = _tiles_of(frame.with_columns(pl.Series("records", [sums[t] for t in tile])), stated, form)
    found += [
        Finding("columns", not left, sentence),
        Finding("rows", len(tile) == rows, f"{len(tile)} rows, {rows} certified"),
        *_settings(laid, stated),
    ]
    if asked.get("sensitive") is not None:
        found += _diverse(tile, counts, spelled(part(frame, str(asked["sensitive"])), form), stated)
    for column, _ in UNITS:
        if asked.get(column) is not None:
            found.append(Finding(column, True, f"at least {k} in each tile: the points would tell", STATED))
    return found


def _tiles_of(
    frame: pl.DataFrame, stated: StatedCrosswalk, form: str, east: bool = False
) -> tuple[LaidTiles, list[Finding]]:
    """The tiles of a file in which each row names one, and whether all rows of a tile agree."""
    asked, k = stated.parameters, number_of(stated.parameters, "k")
    x, y = str(asked["x"]), str(asked["y"])
    refuse_other_forms(frame, set(_columns_of(asked)) - {asked.get("boundary")}, form)
    tile, records = whole(frame, "tile"), whole(frame, "records")
    sides = np.stack([_numbers(frame, f"{name}_{end}") for end in ("low", "high") for name in (x, y)], axis=1)
    boundary = asked.get("boundary")
    own = [None] * len(tile) if boundary is None else spelled(part(frame, str(boundary)), form)
    counted = [name for column, name in UNITS if asked.get(column) is not None and name in frame.columns]
    extra = [*zip(*(whole(frame, name) for name in counted), strict=True)] or [()] * len(tile)
    centers = np.stack([_numbers(frame, f"{name}_center") for name in (x, y)], axis=1)
    claimed: dict[int, tuple[Any, ...]] = {}
    mixed = 0
    for t, n, box, side, more, center in zip(tile, records, sides.tolist(), own, extra, centers.tolist(), strict=True):
        box = tuple(math.copysign(math.inf, i - 1.5) if math.isnan(v) else v for i, v in enumerate(box))
        this = (n, side, box, (*more, *map(repr, (*center, *box))))
        mixed += claimed.setdefault(t, this) != this
    boxes = np.array([box for _, _, box, _ in claimed.values()], np.float64).reshape(-1, 4)
    around = asked.get("coordinates") == "geographic"
    west, width = _spans(boxes, around, east or bool((boxes[np.isfinite(boxes)] > 180).any()))
    sizes = {t: n for t, (n, _, _, _) in claimed.items()}
    units = {name: {t: more[i] for t, (*_, more) in claimed.items()} for i, name in enumerate(counted)}
    number = {t: i for i, t in enumerate(claimed)}
    laid = LaidTiles(number, sizes, units, [s for _, s, _, _ in claimed.values()], boxes, west, width, around)
    text = (
        "a tile has two bounds, counts, sides or centers" if mixed else "each tile has one box, one count, one center"
    )
    found = [Finding("tiles", not mixed, text), *group_sizes(sizes, stated.facts, k)]
    found.append(_centered(centers, [number[t] for t in tile], laid))
    for name, held in units.items():
        under = sum(n < k for n in held.values())
        found.append(Finding(name, not under, f"{under} tiles have fewer than {k} {name}" if under
                             else f"no tile has fewer than {k} {name}"))  # fmt: skip
    return laid, [*found, _disjoint(laid)]


def _settings(laid: LaidTiles, stated: StatedCrosswalk) -> list[Finding]:
    """Whether open sides, grid, and largest side length are as requested."""
    asked, found = stated.parameters, []
    if asked["sensitive"] is None and (asked["l"] is not None or asked["distinct_l"] is not None):
        raise VerificationError("the certificate file asks for diverse tiles, and names no sensitive column")
    ends = np.isfinite(laid.boxes)
    if asked.get("extent") == "data":
        found.append(Finding("extent", bool(ends.all()), f"{int((~ends).sum())} sides without an end"))
    if asked.get("grid") is not None:
        step = Fraction(repr(float(asked["grid"])))
        lines = np.unique(laid.boxes[ends]).tolist()
        off = sum(float(round(Fraction(v) / step) * step) != v for v in lines)
        found.append(Finding("grid", not off, f"{off} of {len(lines)} lines are not on the grid"))
    if asked.get("max_width") is not None:
        wide, tall = laid.width, laid.boxes[:, 3] - laid.boxes[:, 1]
        if laid.around:
            south, north = laid.boxes[:, 1], laid.boxes[:, 3]
            flat = np.where((south <= 0) & (north >= 0), 0.0, np.minimum(np.abs(south), np.abs(north)))
            wide, tall = KM_PER_DEGREE * wide * np.cos(np.deg2rad(flat)), KM_PER_DEGREE * tall
        limit = float(asked["max_width"]) * (1 + 1e-9)
        over = int((~(np.maximum(wide, tall) <= limit)).sum())
        found.append(Finding("width", not over, f"{over} tiles are longer than {asked['max_width']:g}"))
    return found


def _inside(points: np.ndarray, tile: Sequence[int], laid: LaidTiles) -> Finding:
    own = np.array([laid.number[t] for t in tile], np.int64)
    box, low = laid.boxes[own], laid.west[own]
    if laid.around:
        inside = ((points[:, 0] - low) % 360 < laid.width[own]) | np.isinf(low)
    else:
        inside = (points[:, 0] >= box[:, 0]) & (points[:, 0] < box[:, 2])
    inside &= (points[:, 1] >= box[:, 1]) & (points[:, 1] < box[:, 3])
    out = int((~inside).sum())
    return Finding("inside", not out, f"{out} places lie outside their tile" if out else "all lie in their tile")


def _centered(centers: np.ndarray, at: Sequence[int], laid: LaidTiles) -> Finding:
    """Whether every center lies in its tile; float64[n, 2], and the number of the tile of each."""
    box, low, wide = laid.boxes[at], laid.west[at], laid.width[at]
    x, y = centers[:, 0], centers[:, 1]
    digits = max((_digits(value) for value in centers.ravel().tolist()), default=0)
    slack = 0.51 * 10.0**-digits + 1e-9  # a center is rounded, and may end up beyond a line by as much
    inside = (y >= box[:, 1] - slack) & (y <= box[:, 3] + slack)
    if laid.around:
        inside &= ((x - low + slack) % 360 <= wide + 2 * slack) | np.isinf(low)
    else:
        inside &= (x >= box[:, 0] - slack) & (x <= box[:, 2] + slack)
    out = int((~inside).sum())
    return Finding(
        "centers inside", not out, f"{out} centers lie outside their tile" if out else "all lie in their tile"
    )


def _numbers(frame: pl.DataFrame, name: str) -> np.ndarray:
    column = part(frame, name)
    text = column.str.strip_chars() if column.dtype == pl.String else column
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() != column.null_count():
        raise VerificationError(f"column {name!r} of the file holds something that is no number")
    return numbers.fill_null(math.nan).to_numpy()


def _spans(boxes: np.ndarray, around: bool, east: bool) -> tuple[np.ndarray, np.ndarray]:
    """West side and width of every tile; degrees within one turn, from 0 or -180."""
    low, high = boxes[:, 0].copy(), boxes[:, 2].copy()
    if not around:
        return low, high - low
    west = 0.0 if east else -180.0
    low, high = np.where(np.isinf(low), west, low), np.where(np.isinf(high), west + 360, high)
    width = (high - low) % 360
    return low, np.where(width == 0, 360.0, width)


def _disjoint(laid: LaidTiles) -> Finding:
    """Whether tiles on one side of the boundary share at most edges.

    Each is compared with those that begin below its end.
    """
    boxes, low, width, over = laid.boxes, laid.west, laid.width, 0
    groups: dict[Any, list[int]] = {}
    for i, side in enumerate(laid.sides):
        groups.setdefault(side, []).append(i)
    for own in groups.values():
        order = np.array(own)[np.argsort(boxes[own, 1], kind="stable")]
        last = np.searchsorted(boxes[order, 1], boxes[order, 3], side="left")
        for i, end in enumerate(last.tolist()):
            rest, at = order[i + 1 : end], order[i]
            if laid.around:
                wide = ((low[rest] - low[at]) % 360 < width[at]) | ((low[at] - low[rest]) % 360 < width[rest])
            else:
                wide = (boxes[at, 0] < boxes[rest, 2]) & (boxes[rest, 0] < boxes[at, 2])
            over += int(wide.sum())
    suffix = "" if len(groups) < 2 else " of one side of the boundary"
    return Finding("disjoint", not over, f"{over} pairs of tiles{suffix} overlap" if over
                   else f"no two tiles{suffix} overlap")  # fmt: skip


def _area(ring: Sequence[Sequence[float]]) -> float:
    x, y = np.array(ring, np.float64).T
    return float((x[:-1] * y[1:] - x[1:] * y[:-1]).sum()) / 2


def _bound(stated: StatedCrosswalk, easy: int) -> Finding:
    if easy and stated.lower_bound is not None and stated.lower_bound <= easy:
        text = f"no largest tile is below {easy:,}; {stated.lower_bound:,} certified"
        return Finding("bound", True, text, RECOMPUTED)
    return stated.bounded("by an argument not repeated here")


def _diverse(
    tile: Sequence[Any], counts: Sequence[int], values: Sequence[Any], stated: StatedCrosswalk
) -> list[Finding]:
    """The number of different sensitive values of each tile, and their largest frequency, counted again."""
    held: dict[Any, dict[Any, int]] = {}
    for t, n, value in zip(tile, counts, values, strict=True):
        if n:
            own = held.setdefault(t, {})
            own[value] = own.get(value, 0) + n
    found = []
    if (l := stated.parameters.get("l")) is not None:
        over = sum(max(own.values()) * l > sum(own.values()) * (1 + 1e-12) for own in held.values())
        found.append(Finding("l", not over, f"{over} tiles have a value in more than 1/{l:g} of their records"))
    if (d := stated.parameters.get("distinct_l")) is not None:
        few = sum(len(own) < d for own in held.values())
        found.append(Finding("distinct l", not few, f"{few} tiles have fewer than {d} different values"))
    return found


def _counted(
    tiles: Mapping[Any, int],
    laid: LaidTiles,
    frame: pl.DataFrame,
    stated: StatedCrosswalk,
    form: str,
    source: pl.DataFrame,
) -> list[Finding]:
    """Whether the source has the file's places, except rows left out, and its records fill the tiles as stated."""
    asked, sizes = stated.parameters, laid.sizes
    names = [str(asked[n]) for n in ("x", "y", "boundary") if asked.get(n) is not None]
    places = [*zip(*(spelled(part(source, name), form, part(frame, name)) for name in names), strict=True)]
    weights = [1] * len(places) if asked.get("weight") is None else whole(source, str(asked["weight"]))
    held: dict[Any, int] = {}
    sums, own = dict.fromkeys(sizes, 0), [tiles.get(place) for place in places]
    for place, t, weight in zip(places, own, weights, strict=True):
        if t is not None:
            held[place] = held.get(place, 0) + weight
            sums[t] += weight
    absent, foreign = own.count(None), len(set(tiles) - set(held))
    out = sparse = 0
    if stated.public:
        fits, how = True, STATED if absent else RECOMPUTED
        text = f"{absent} rows of the source are nowhere; {foreign} rows name none of its places"
        text += "; the record says how many were left out as codes, or fit no tile" if absent else ""
    else:
        out, sparse, points = (number_of(stated.facts, n) for n in ("codes_left_out", "rows_left_out", "points"))
        counted = (absent, points) in ((sparse, len(places)), (out + sparse, len(places) - out))
        fits, how = out >= 0 and counted, RECOMPUTED
        text = f"{absent} rows of the source are nowhere, {out} certified as codes; "
        text += f"{foreign} rows name none of its places"
        text += f"; {sparse} certified as fitting no tile" if sparse else ""
    wrong = sum(sums[t] != sizes[t] for t in sizes)
    sentence = (
        f"{wrong} tiles don't have the stated number of rows" if wrong else "every tile has the stated number of rows"
    )
    total, k = sum(held.values()), number_of(asked, "k")
    easy = max(k, max(held.values(), default=0), -(-total // (total // k))) if total >= k else 0
    found = [
        Finding("cover", fits and not foreign, text, how),
        Finding("counts", not wrong, sentence),
        _bound(stated, k if sparse else easy),
    ]
    if out and absent == sparse:
        found.append(Finding("codes", True, f"{out} rows left out as codes, which are not in the source", STATED))
    inside = [i for i, t in enumerate(own) if t is not None]
    if asked.get("sensitive") is not None:
        values = spelled(part(source, str(asked["sensitive"])), form)
        found += _diverse([own[i] for i in inside], [weights[i] for i in inside], [values[i] for i in inside], stated)
    for column, name in UNITS:
        if asked.get(column) is not None:
            found.append(_units(own, spelled(part(source, str(asked[column])), form), laid.units.get(name, {}), name))
    if asked.get("center") == "mean":
        found.append(_means(source, frame, own, weights, laid, stated))
    return found


def _units(own: Sequence[Any], who: Sequence[Any], claimed: Mapping[int, int], name: str) -> Finding:
    different: dict[int, set[Any]] = {t: set() for t in claimed}
    for t, person in zip(own, who, strict=True):
        if t is not None:
            different.setdefault(t, set()).add(person)
    wrong = sum(claimed.get(t) != len(held) for t, held in different.items())
    return Finding(f"{name} counted", not wrong, f"{wrong} tiles hold another number of {name} than stated")


def _means(
    source: pl.DataFrame,
    frame: pl.DataFrame,
    own: Sequence[Any],
    weights: Sequence[int],
    laid: LaidTiles,
    stated: StatedCrosswalk,
) -> Finding:
    """Whether every center is the mean of its tile's points, up to rounding."""
    x, y = str(stated.parameters["x"]), str(stated.parameters["y"])
    digits = _decimals(frame, (x, y)) if stated.public else stated.facts.get("center_decimals")
    if not isinstance(digits, int):
        return Finding("centers", True, "as stated", STATED)
    inside = np.array([i for i, t in enumerate(own) if t is not None], np.int64)
    at = np.array([laid.number[own[i]] for i in inside], np.int64)
    w, m = np.array(weights, np.float64)[inside], len(laid.sizes)
    total = np.bincount(at, weights=w, minlength=m)
    row = {t: i for i, t in enumerate(whole(frame, "tile"))}
    rows = np.array([row[t] for t in laid.number], np.int64)
    off = np.zeros(m, np.bool_)
    for axis, name in enumerate((x, y)):
        c = _numbers(source, name)[inside]
        center = _numbers(frame, f"{name}_center")[rows]
        apart = c - center[at]
        if laid.around and axis == 0:
            seam = stated.parameters.get("seam")
            start = float(seam) if seam is not None else 0.0 if (c > 180).any() else -180.0
            apart = (c - start) % 360 - (center[at] - start) % 360
        with np.errstate(invalid="ignore"):  # tiles without records have no mean
            mean = np.bincount(at, weights=w * apart, minlength=m) / total
        off |= ~(np.abs(mean) <= 0.51 * 10.0**-digits + 1e-9 * max(1.0, float(np.abs(c).max(initial=0))))
    sentence = f"{int(off.sum())} centers are not the mean of their points"
    return Finding("centers", not off.any(), sentence)


def _decimals(frame: pl.DataFrame, names: Sequence[str]) -> int:
    """The most digits after the decimal point in the centers."""
    return max((_digits(v) for name in names for v in _numbers(frame, f"{name}_center").tolist()), default=0)


def _digits(value: float) -> int:
    """The digits of a number after the decimal point."""
    return max(0, -int(Decimal(repr(value)).normalize().as_tuple().exponent)) if math.isfinite(value) else 0
