"""The judge of tiles: places and their rectangles as they stand on disk, laid over each other again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import Stated, group_sizes, number_of, one_row_each, part, spelled, whole
from shoal.judge.finding import RECOMPUTED, STATED, Finding

PAIRWISE = 5000  # so many tiles at most, every two are compared


def judge_tiles(frame: pl.DataFrame, stated: Stated, form: str, source: pl.DataFrame | None = None) -> list[Finding]:
    """A row per place: its tile, the tile's bounds (missing where it has none) and records.

    source  the table of points; with it, every tile's records are counted again

    Raises VerificationError for a file that is no such table.  O(n log n + m^2) for n places and m tiles.
    """
    asked = stated.parameters
    x, y, k = str(asked["x"]), str(asked["y"]), number_of(asked, "k")
    places = [*zip(spelled(part(frame, x), form), spelled(part(frame, y), form), strict=True)]
    points = np.stack([_numbers(frame, x), _numbers(frame, y)], axis=1)
    tile, records = whole(frame, "tile"), whole(frame, "records")
    sides = np.stack([_numbers(frame, f"{name}_{end}") for end in ("low", "high") for name in (x, y)], axis=1)
    sizes: dict[int, int] = {}
    bounds: dict[int, tuple[float, ...]] = {}
    mixed = 0
    for t, n, box in zip(tile, records, sides.tolist(), strict=True):
        box = tuple(math.copysign(math.inf, i - 1.5) if math.isnan(v) else v for i, v in enumerate(box))
        mixed += sizes.setdefault(t, n) != n or bounds.setdefault(t, box) != box
    found = [
        one_row_each(places, stated.facts, "place"),
        Finding("tiles", not mixed, "a tile has two bounds or counts" if mixed else "each tile has one box, one count"),
        *group_sizes(sizes, stated.facts, k),
    ]
    number = {t: i for i, t in enumerate(bounds)}
    boxes = np.array(list(bounds.values()), np.float64).reshape(-1, 4)
    around = asked.get("coordinates") == "geographic"
    low, width = _spans(boxes, around, bool((points[:, 0] > 180).any()))
    own = np.array([number[t] for t in tile], np.int64)
    away = (points[:, 0] - low[own]) % 360 if around else points[:, 0] - low[own]
    inside = (away >= 0) & (away < width[own]) | np.isinf(low[own])
    if not around:
        inside = (points[:, 0] >= boxes[own, 0]) & (points[:, 0] < boxes[own, 2])
    inside &= (points[:, 1] >= boxes[own, 1]) & (points[:, 1] < boxes[own, 3])
    out = int((~inside).sum())
    found.append(Finding("inside", not out, f"{out} places lie outside their tile" if out else "all lie in their tile"))
    found.append(_disjoint(boxes, low, width, around))
    largest = max(sizes.values(), default=0)
    found.append(Finding("cost", largest == stated.cost, f"the largest tile has {largest}, {stated.cost:,} certified"))
    if source is None:
        return [*found, Finding("counts", True, "of each tile: the points would tell", STATED), _bound(stated, 0)]
    return [*found, *_counted(dict(zip(places, tile, strict=True)), sizes, stated, form, source)]


def _numbers(frame: pl.DataFrame, name: str) -> np.ndarray:
    column = part(frame, name)
    text = column.str.strip_chars() if column.dtype == pl.String else column
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() != column.null_count():
        raise VerificationError(f"column {name!r} of the file holds something that is no number")
    return numbers.fill_null(math.nan).to_numpy()


def _spans(boxes: np.ndarray, around: bool, east: bool) -> tuple[np.ndarray, np.ndarray]:
    """West side and width of every tile; of degrees within one turn, from 0 or -180."""
    low, high = boxes[:, 0].copy(), boxes[:, 2].copy()
    if not around:
        return low, high - low
    west = 0.0 if east else -180.0
    low, high = np.where(np.isinf(low), west, low), np.where(np.isinf(high), west + 360, high)
    width = (high - low) % 360
    return low, np.where(width == 0, 360.0, width)


def _disjoint(boxes: np.ndarray, low: np.ndarray, width: np.ndarray, around: bool) -> Finding:
    """No two tiles share more than a side."""
    if len(boxes) > PAIRWISE:
        return Finding("disjoint", True, f"{len(boxes)} tiles are too many to compare every two", STATED)
    over = 0
    for i in range(len(boxes) - 1):
        rest = slice(i + 1, None)
        tall = (boxes[i, 1] < boxes[rest, 3]) & (boxes[rest, 1] < boxes[i, 3])
        if around:
            wide = ((low[rest] - low[i]) % 360 < width[i]) | ((low[i] - low[rest]) % 360 < width[rest])
        else:
            wide = (boxes[i, 0] < boxes[rest, 2]) & (boxes[rest, 0] < boxes[i, 2])
        over += int((tall & wide).sum())
    return Finding("disjoint", not over, f"{over} pairs of tiles overlap" if over else "no two tiles overlap")


def _bound(stated: Stated, easy: int) -> Finding:
    if easy and stated.lower_bound <= easy:
        text = f"no largest tile is below {easy:,}; {stated.lower_bound:,} certified"
        return Finding("bound", True, text, RECOMPUTED)
    return Finding("bound", True, f"{stated.lower_bound:,} certified, by an argument not repeated here", STATED)


def _counted(
    tiles: Mapping[Any, int], sizes: Mapping[int, int], stated: Stated, form: str, source: pl.DataFrame
) -> list[Finding]:
    """The source's places are those of the file but for codes left out, and its records fill the tiles as stated."""
    asked = stated.parameters
    x, y = (spelled(part(source, str(asked[name])), form) for name in ("x", "y"))
    weights = [1] * len(x) if asked.get("weight") is None else whole(source, str(asked["weight"]))
    held: dict[Any, int] = {}
    sums, absent = dict.fromkeys(sizes, 0), 0
    for place, weight in zip(zip(x, y, strict=True), weights, strict=True):
        if place not in tiles:
            absent += 1
            continue
        held[place] = held.get(place, 0) + weight
        sums[tiles[place]] += weight
    foreign, out = len(set(tiles) - set(held)), number_of(stated.facts, "codes_left_out")
    text = f"{absent} rows of the source are nowhere, {out} certified as codes; {foreign} rows name none of its places"
    wrong = sum(sums[t] != sizes[t] for t in sizes)
    said = f"{wrong} tiles hold another number than stated" if wrong else "every tile holds what is stated"
    total, k = sum(held.values()), number_of(asked, "k")
    easy = max(k, max(held.values(), default=0), -(-total // (total // k))) if total >= k else 0
    return [
        Finding("cover", absent in (0, out) and not foreign, text),
        Finding("counts", not wrong, said),
        _bound(stated, easy),
    ]
