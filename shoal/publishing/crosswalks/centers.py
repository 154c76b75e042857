"""Published clusters: center, number of records, radius as text, and sensitive values.

Aggarwal et al. 2006 publish centers, sizes, and radii. Here, the radius is stated column by column, rounded up to two
digits, because readers understand "within 3 years and 5 km" better than a mixed distance of 0.31.
"""

from __future__ import annotations

import datetime
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from shoal.errors import PolicyError, VerificationError
from shoal.model.metric import Category, Metric, Number, Place, on_sphere, rounded_up

KINDS = ("record", "mean", "medoid")
MISSING = "missing"
PAIRS = 2000  # up to this many members, a place's medoid is found by comparing all pairs


@dataclass(frozen=True, eq=False)
class Center:
    """One feature of every cluster's center.

    value   float64[m], int64[m] codes, or float64[m, 2] for a place
    spread  float64[m]  distance of the farthest member: raw units, kilometers, or number of hierarchy levels that
            differ
    """

    feature: Number | Category | Place
    value: np.ndarray
    spread: np.ndarray


@dataclass(frozen=True, eq=False)
class Centers:
    """Published clusters.

    records    int64[m]
    radius     as text, column by column
    distance   float64[m]  distance of the farthest member in the metric's unit; exact if centers are records, as in the
               paper, otherwise rounded up to two digits
    sensitive  for each column, the counts of its values, None for a missing one
    """

    centers: tuple[Center, ...]
    records: np.ndarray
    radius: list[str]
    distance: np.ndarray
    sensitive: dict[str, list[dict[str | None, int]]] = field(default_factory=dict)

    def multisets(self, name: str) -> list[str]:
        """For each cluster, the values of a sensitive column with their counts, most frequent first."""
        return [multiset(counts) for counts in self.sensitive[name]]


def publish(
    labels: np.ndarray,
    center_rows: np.ndarray,
    metric: Metric,
    columns: Sequence[np.ndarray],
    sensitive: Mapping[str, Sequence[str | None]] | None = None,
    center: str = "record",
) -> Centers:
    """The published form of a clustering.

    labels       int64[n]  cluster of each record, -1 if it is left out and excluded from everything published
    center_rows  int64[m]  record at each center (not used for "mean" and "medoid")
    columns      one array for each feature of the metric
    sensitive    texts for each record, None for a missing value
    center       "record"; "mean" (the mean of numbers and places, the medoid of other columns); "medoid" (for each
                 column, the value with the smallest total distance)

    A record that is left out is never shown: if it is a center, the nearest member replaces it. Spreads are measured
    from the published center. O(n log n); medoids of places O(sum of squared sizes).
    """
    if center not in KINDS:
        raise PolicyError.unknown("kind of center", center, KINDS)
    if not metric.features:
        raise PolicyError("centers are published column by column; a matrix or a function of distances has no columns")
    member = np.flatnonzero(labels >= 0)
    member = member[np.argsort(labels[member], kind="stable")]
    sizes = np.bincount(labels[member], minlength=len(center_rows)).astype(np.int64)
    if (sizes == 0).any():
        raise VerificationError("a cluster without records cannot be published")
    if center == "record" and (np.asarray(center_rows) < 0).any():
        raise PolicyError("these centers are no records; publish ⟨center='mean'⟩ or 'medoid'")
    start = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    if center == "record":
        center_rows = _shown(labels, np.asarray(center_rows), metric, columns, np.split(member, start[1:]))
    centers = []
    for feature, values in zip(metric.features, columns, strict=True):
        mine = np.asarray(values)[member]
        value = np.asarray(values)[center_rows] if center == "record" else _middle(feature, mine, start, sizes, center)
        away = _away(feature, mine, np.repeat(value, sizes, axis=0))
        centers.append(Center(feature, value, np.maximum.reduceat(away, start) if start.size else np.zeros(0)))
    counts: dict[str, list[dict[str | None, int]]] = {
        name: [dict(Counter(texts[i] for i in part)) for part in np.split(member, start[1:])] if start.size else []
        for name, texts in (sensitive or {}).items()
    }
    words = [radius_words(centers, c) for c in range(sizes.size)]
    away = metric.between(
        [np.asarray(x)[member] for x in columns], [np.repeat(c.value, sizes, axis=0) for c in centers]
    )
    far = np.maximum.reduceat(away, start) if start.size else np.zeros(0)
    if center != "record":
        far = np.array([rounded_up(x) for x in far.tolist()])
    return Centers(tuple(centers), sizes, words, far, counts)


def _shown(
    labels: np.ndarray, rows: np.ndarray, metric: Metric, columns: Sequence[np.ndarray], members: Sequence[np.ndarray]
) -> np.ndarray:
    """The rows of the centers; one that is left out is replaced by the nearest member."""
    rows = rows.copy()
    for c in np.flatnonzero(labels[rows] < 0).tolist():
        own = [np.asarray(x)[members[c]] for x in columns]
        middle = [np.repeat(np.asarray(x)[rows[c : c + 1]], members[c].size, axis=0) for x in columns]
        rows[c] = members[c][int(metric.between(own, middle).argmin())]
    return rows


def radius_words(centers: Sequence[Center], c: int) -> str:
    """The radius of cluster c as text: "within 3 years and 5 km; sex may differ"."""
    units = Counter(_unit(x.feature) for x in centers)
    measured, other = [], []
    for x in centers:
        spread, feature = float(x.spread[c]), x.feature
        if isinstance(feature, Category):
            if spread and feature.depth == 2:
                other.append(f"{feature.name} may differ")
            elif spread:
                other.append(f"{feature.name} may differ up to level {int(spread)} of {feature.depth - 1}")
            continue
        unit = _unit(feature)
        named = f" {unit}" if unit else ""
        if not unit or units[unit] > 1:
            named += f" in {feature.name}"
        measured.append(f"{rounded_up(spread):.12g}{named}")
    parts = [f"within {_listed(measured)}"] if measured and any(x[:2] != "0 " for x in measured) else []
    return "; ".join(parts + other) or "exactly"


def multiset(counts: Mapping[str | None, int]) -> str:
    """A multiset as text: "flu (3); gout (1)", most frequent first. An ambiguous value is quoted, and a missing one is
    the word without quotes."""

    def shown(text: str | None) -> str:
        if text is None:
            return MISSING
        return json.dumps(text, ensure_ascii=False) if text == MISSING or any(c in text for c in ';()"') else text

    falling = sorted(counts.items(), key=lambda x: (-x[1], x[0] is None, x[0] or ""))
    return "; ".join(f"{shown(v)} ({n})" for v, n in falling)


def texts(center: Center, values: Sequence[str | None] = ()) -> list[list[str | None]]:
    """The published texts of a center's column, or of the two columns of a place; values are a category's texts."""
    feature = center.feature
    if isinstance(feature, Category):
        return [[values[int(code)] for code in center.value]]
    if isinstance(feature, Place):
        return [[plain(x) for x in center.value[:, axis].tolist()] for axis in (0, 1)]
    if feature.date:
        return [[str(datetime.date.fromordinal(round(x))) for x in center.value.tolist()]]
    return [[plain(x) for x in center.value.tolist()]]


def plain(value: float) -> str:
    """A number as text; integers without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _unit(feature: Number | Category | Place) -> str:
    if isinstance(feature, Number):
        return feature.unit or ("days" if feature.date else "")
    return feature.unit if isinstance(feature, Place) else ""


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _away(feature: Number | Category | Place, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[n]: distances in raw units, kilometers, or levels."""
    if isinstance(feature, Number):
        return feature.apart(a, b)
    if isinstance(feature, Place):
        return Place(feature.name, geometry=feature.geometry).between(a, b)
    return (feature.tree[a] != feature.tree[b]).sum(axis=-1).astype(np.float64)


def _middle(
    feature: Number | Category | Place, mine: np.ndarray, start: np.ndarray, sizes: np.ndarray, kind: str
) -> np.ndarray:
    if not start.size:
        return mine[:0]
    parts = np.split(mine, start[1:])
    if isinstance(feature, Category):
        return np.array([_medoid_code(feature, part) for part in parts], np.int64)
    if isinstance(feature, Number) and feature.period:
        return np.array([_turned(feature, part, kind) for part in parts])
    if isinstance(feature, Number):
        if kind == "medoid":
            return np.array([np.sort(part)[(part.size - 1) // 2] for part in parts])
        if feature.date:
            return np.rint(np.add.reduceat(mine.astype(np.float64), start) / sizes)
        return np.array([_mean(part) for part in parts])
    return np.array([_medoid_place(feature, p) if kind == "medoid" else _mean_place(feature, p) for p in parts])


def _short(value: float, spread: float) -> float:
    """A mean rounded to about a hundredth of the spread, because more digits would reveal the members' exact sum."""
    return round(value, max(0, min(12, math.ceil(2 - math.log10(spread))))) if spread > 0 else value


def _mean(values: np.ndarray) -> float:
    values = values.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    return low if low == high else _short(float(values.mean()), (high - low) / 2)


def _turned(feature: Number, values: np.ndarray, kind: str) -> float:
    """The center of cyclic values: their mean direction, or the value with the smallest total distance."""
    values = np.asarray(values, np.float64)
    kinds, counts = np.unique(values, return_counts=True)
    angle = feature.around(kinds) * (math.tau / feature.period)
    x, y = float((np.cos(angle) * counts).sum()), float((np.sin(angle) * counts).sum())
    no_direction = math.hypot(x, y) < 1e-9 * values.size
    mean = math.atan2(y, x) % math.tau * feature.period / math.tau
    if kind == "medoid" or no_direction or kinds.size == 1:
        if kinds.size > PAIRS and not no_direction:
            return float(kinds[feature.apart(kinds, np.full(kinds.size, mean)).argmin()])
        total = [float((feature.apart(kinds, np.full(kinds.size, v)) * counts).sum()) for v in kinds[:PAIRS]]
        return float(kinds[int(np.argmin(total))])
    spread = float(feature.apart(kinds, np.full(kinds.size, mean)).max())
    return float(feature.around(np.array(_short(mean, spread))))


def _mean_place(feature: Place, places: np.ndarray) -> list[float]:
    if (places == places[0]).all():
        return [float(x) for x in places[0]]
    middle = _middle_place(feature, places)
    side = float(np.ptp(places, axis=0).max()) / 2
    return [_short(float(x), side) for x in middle]


def _middle_place(feature: Place, places: np.ndarray) -> np.ndarray:
    if feature.geometry == "plane":
        return np.asarray(places.mean(axis=0))
    x, y, z = on_sphere(places).mean(axis=0)
    if math.hypot(x, y, z) < 1e-9:  # if the places are all around the globe, the mean has no direction
        return np.asarray(places[0], np.float64)
    return np.degrees([math.atan2(z, math.hypot(x, y)), math.atan2(y, x)])


def _medoid_place(feature: Place, places: np.ndarray) -> list[float]:
    """The member with the smallest total distance; above ``PAIRS`` members, the one nearest to their mean."""
    if len(places) > PAIRS:
        total = feature.between(places, np.broadcast_to(_middle_place(feature, places), places.shape))
    else:
        total = np.array([feature.between(places, np.broadcast_to(p, places.shape)).sum() for p in places])
    return [float(x) for x in places[int(total.argmin())]]


def _medoid_code(feature: Category, codes: np.ndarray) -> int:
    values, counts = np.unique(codes, return_counts=True)
    apart = (feature.tree[values][:, None] != feature.tree[values][None]).sum(axis=-1)
    return int(values[(apart * counts).sum(axis=1).argmin()])
