"""Checks whether the records of a table can form the published clusters: distances to centers, and a maximum flow.

Clusters may overlap, and a file of centers doesn't say which record is in which cluster. So this module assigns the
records again: every cluster gets its stated number of records, with its stated sensitive values, and none farther from
the center than stated. Distances are measured by the judge's own formulas.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import StatedCrosswalk, number_of, part, spelled
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding, place
from shoal.judge.tables.matching import flows
from shoal.model.hierarchy import Hierarchy

EARTH_KM = 6371.0088
KINDS = ("number", "date", "category", "place", "coded place")


class Feature(NamedTuple):
    """A feature as a certificate file states it: kind, columns, and what one step of it counts."""

    kind: str
    columns: tuple[str, ...]
    name: str
    scale: float
    weight: float
    unit: str
    levels: int
    sphere: bool
    period: float = 0.0
    notation: str | None = None


def features_of(asked: Mapping[str, Any]) -> list[Feature]:
    """The features of a certificate file; VerificationError if one isn't valid."""
    found = []
    for entry in asked["features"]:
        kind, columns = entry["kind"], tuple(map(str, entry["columns"]))
        scale, weight = (float(entry.get(n, 1.0)) for n in ("scale", "weight"))
        fine = kind in KINDS and len(columns) == 1 + (kind == "place") and scale > 0 and weight >= 0
        fine = fine and ("place" not in kind or entry.get("geometry") in ("plane", "great-circle"))
        levels, period = entry.get("levels", 1), float(entry.get("period", 0.0))
        fine = fine and math.isfinite(period) and period >= 0 and (not period or kind == "number")
        if not fine or isinstance(levels, bool) or not isinstance(levels, int) or levels < 1:
            raise VerificationError("the certificate file states a feature that cannot be")
        unit = str(entry.get("unit") or ("days" if kind == "date" else ""))
        found.append(Feature(kind, columns, str(entry["name"]), scale, weight, unit, levels,
                             entry.get("geometry") == "great-circle", period, entry.get("notation")))  # fmt: skip
    if not found:
        raise VerificationError("the certificate file states no feature")
    return found


def numbers_of(frame: pl.DataFrame, name: str, notation: str | None = None) -> np.ndarray:
    """A column as float64[n], dates as days; VerificationError if a cell is neither.

    notation  of a column of texts that are dates or numbers
    """
    column = part(frame, name)
    if notation is not None:
        texts = column.cast(pl.String)
        once = texts.unique().drop_nulls()
        lies = pl.Series([place(text, notation) for text in once.to_list()], dtype=pl.Float64)
        found = texts.replace_strict(once, lies, default=None, return_dtype=pl.Float64)
    elif column.dtype in (pl.Date, pl.Datetime):
        found = column.cast(pl.Date).cast(pl.Int32).cast(pl.Float64) + 719163.0
    else:
        text = column.str.strip_chars() if column.dtype == pl.String else column
        found = text.cast(pl.Float64, strict=False)
        if found.null_count() and column.dtype == pl.String:
            found = text.str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32).cast(pl.Float64) + 719163.0
    if found.null_count() or not bool(found.is_finite().all()):
        raise VerificationError(f"column {name!r} holds something that is no number")
    return found.to_numpy()


def raw(feature: Feature, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[n] distances in the feature's own unit: differences, kilometers (haversine), or levels of a hierarchy.

    For categories, a and b are int64[n, levels]: the class at each level below the root.
    """
    if feature.kind == "category":
        return (a != b).sum(axis=1).astype(np.float64)
    if feature.kind in ("number", "date"):
        away = np.abs(a[:, 0] - b[:, 0])
        if not feature.period:
            return away
        over = away - np.floor(away / feature.period) * feature.period
        return np.where(over > feature.period / 2, feature.period - over, over)
    if not feature.sphere:
        return np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])
    lat, lng = np.radians(a[:, 0] - b[:, 0]), np.radians(a[:, 1] - b[:, 1])
    both = np.cos(np.radians(a[:, 0])) * np.cos(np.radians(b[:, 0]))
    arc = np.sin(lat / 2) ** 2 + both * np.sin(lng / 2) ** 2
    return 2 * EARTH_KM * np.arcsin(np.sqrt(np.clip(arc, 0.0, 1.0)))


def counted(feature: Feature, away: np.ndarray) -> np.ndarray:
    """The raw distance after the feature's scaling."""
    if feature.kind == "category":
        return feature.weight * away / feature.levels
    return away / feature.scale * feature.weight


def joined(parts: Sequence[np.ndarray], norm: str) -> np.ndarray:
    """The distance over all features, combined by the norm."""
    if norm == "manhattan":
        return np.asarray(sum(parts))
    if norm == "chebyshev":
        return np.maximum.reduce(list(parts))
    if norm != "euclidean":
        raise VerificationError("the certificate file states a norm that is none")
    return np.sqrt(np.asarray(sum(p * p for p in parts)))


def measured(spread: np.ndarray, features: Sequence[Feature], norm: str) -> tuple[np.ndarray, np.ndarray]:
    """(float64[m], float64[m]): an upper and a lower bound of the distance of each cluster's farthest member."""
    parts = [counted(f, spread[:, j]) for j, f in enumerate(features)]
    exact = [p if f.kind == "category" else p / 1.1 for p, f in zip(parts, features, strict=True)]
    return joined(parts, norm), np.maximum.reduce(exact)


def slack(away: np.ndarray, sphere: bool) -> np.ndarray:
    """The tolerance between two formulas for one distance; it is large only near the antipode."""
    rounding = 1e-9 * (1 + np.abs(away))
    return np.where(away > 0.49 * math.tau * EARTH_KM, 1e-2, rounding) if sphere else rounding


AT_ONCE = 2_000_000  # pairs of a record and a center in one batch
AT_MOST = 300_000_000  # largest number of pairs
EDGES = 20_000_000  # largest number of edges of the flow
SMALL = 2_000  # up to this many distinct records, all distances between them are computed
OVER = 1.1 * (1 + 1e-9)  # a radius rounded up to two digits is less than this multiple of the exact radius


class StatedClusters(NamedTuple):
    """What a file states about every cluster.

    centers   per feature float64[m, d], or the texts of a category or of coded places
    records   number of members
    distance  float64[m], in the metric's unit
    spread    float64[m, f]: farthest member by each feature; nan if unknown
    held      per sensitive column the counts of its values in each cluster
    """

    centers: list[Any]
    records: np.ndarray
    distance: np.ndarray
    spread: np.ndarray
    held: dict[str, list[Counter[str | None]]]


class MeasuredPoints(NamedTuple):
    """Distinct records and the centers, for the features that can be measured.

    number   int64[n]: the distinct record of each row
    records  per measured feature float64[t, d], or int64[t, levels] of a category
    centers  the same, [m, ...]
    rows     int64[t]: rows of each distinct record
    features  indexes of the measured features
    """

    number: np.ndarray
    records: list[np.ndarray]
    centers: list[np.ndarray]
    rows: np.ndarray
    features: list[int]


def covered(
    clusters: StatedClusters, features: Sequence[Feature], stated: StatedCrosswalk, form: str, source: pl.DataFrame,
    known: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> list[Finding]:  # fmt: skip
    """Findings that need the table. ``known``: hierarchies, and coordinates of codes, by column. O(n log n + pairs)."""
    if source.height != number_of(stated.facts, "points"):
        text = f"the table has {source.height} records, {stated.facts['points']} certified"
        return [Finding("counts", False, text), _bound(stated, None)]
    points = _points(clusters, features, form, source, known)
    whole = len(points.features) == len(features)
    how = RECOMPUTED if whole else CONSISTENT
    found = []
    if not whole:
        lost = [f.name for j, f in enumerate(features) if j not in points.features]
        text = f"how far {lost[0]!r} is apart: its hierarchy or coordinates would tell (--hierarchy, --original)"
        found.append(Finding("distance", True, text, STATED))
    pair = _within(points, clusters, features, str(stated.parameters["norm"]), whole)
    if pair is None:
        text = "too many pairs of records and centers to look at"
        return [*found, Finding("counts", True, text, STATED), _bound(stated, None)]
    t, k, away = pair
    found += _centers(points, clusters, features, stated, t, k)
    if whole:
        found.append(_attained(clusters, stated, k, away))
    for name in stated.parameters["sensitive"] or [None]:
        text = "records" if name is None else f"records by {name}"
        fits = _filled(points, clusters, (t, k), name, form, source)
        if fits is None:
            found.append(Finding(text, True, "too many pairs of records and centers to deal out", STATED))
            continue
        phrase = "can be assigned to" if fits else "cannot be assigned to"
        found.append(Finding(text, fits, f"the table's records {phrase} the clusters within their radii", how))
    return [*found, _bound(stated, _ball_bound(points, features, stated) if whole else None)]


def _points(
    clusters: StatedClusters, features: Sequence[Feature], form: str, source: pl.DataFrame,
    known: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> MeasuredPoints:  # fmt: skip
    """Rows and centers as numbers and classes."""
    own: list[np.ndarray] = []
    centers: list[np.ndarray] = []
    used = []
    for j, f in enumerate(features):
        both = _feature_values(f, clusters.centers[j], form, source, known)
        if both is not None:
            used.append(j)
            own.append(both[0])
            centers.append(both[1])
    if not used:
        return MeasuredPoints(np.zeros(source.height, np.int64), [], [], np.array([source.height]), [])
    table = pl.DataFrame({f"c{i}_{d}": part[:, d] for i, part in enumerate(own) for d in range(part.shape[1])})
    held = table.with_columns(row=pl.int_range(pl.len())).group_by(table.columns).agg(
        pl.col("row").first().alias("first"), pl.col("row"), pl.len().alias("n")
    )  # fmt: skip
    first = held["first"].to_numpy()
    number = np.zeros(source.height, np.int64)
    number[held["row"].explode().to_numpy()] = np.repeat(np.arange(held.height), held["n"].to_numpy())
    return MeasuredPoints(number, [x[first] for x in own], centers, held["n"].cast(pl.Int64).to_numpy(), used)


def _feature_values(
    f: Feature, center: Any, form: str, source: pl.DataFrame, known: tuple[Mapping[str, Any], Mapping[str, Any]]
) -> tuple[np.ndarray, np.ndarray] | None:
    """One feature of all rows and of all centers; None if its hierarchy or its coordinates are missing."""
    if f.kind in ("number", "date", "place"):
        return np.stack([numbers_of(source, name, f.notation) for name in f.columns], axis=1), center
    column = part(source, f.columns[0]).cast(pl.String)
    rows = spelled(column, form)
    if f.kind == "coded place":
        table = known[1].get(f.columns[0])
        if table is None:
            return None
        at = _coordinates(table, form)
        nowhere = (np.nan, np.nan)
        return tuple(np.array([at.get(x, nowhere) for x in xs], np.float64).reshape(-1, 2) for xs in (rows, center))  # type: ignore[return-value]
    code: dict[str | None, int] = {}
    mine = np.array([code.setdefault(x, len(code)) for x in rows], np.int64)
    theirs = np.array([code.get(x, -1) for x in center], np.int64)
    if f.levels == 1:
        return mine[:, None], theirs[:, None]
    if f.columns[0] not in known[0]:
        return None
    kinds = dict(zip(mine.tolist(), column.to_list(), strict=True))
    levels = Hierarchy.of(known[0][f.columns[0]]).resolve([kinds[i] for i in range(len(code))], f.columns[0]).node.T
    classes = _classes(np.asarray(levels), len(code))
    if classes.shape[1] != f.levels:
        raise VerificationError(f"the hierarchy of {f.columns[0]!r} has another number of levels than certified")
    nothing = np.full((1, f.levels), -1)
    return classes[mine], np.concatenate([classes, nothing])[theirs]


def _classes(levels: np.ndarray, values: int) -> np.ndarray:
    """int64[values, levels]: the values themselves, then each level that merges some of them, without the root."""
    kept, size = [np.arange(values)], values
    for level in levels.T:
        classes = np.unique(level, return_inverse=True)[1].reshape(-1)
        if 1 < int(classes.max(initial=0)) + 1 < size:
            kept.append(classes)
            size = int(classes.max()) + 1
    return np.stack(kept, axis=1)


def _coordinates(table: pl.DataFrame, form: str) -> dict[str | None, tuple[float, float]]:
    """Codes and their coordinates: from columns with these names, else from the second and third columns."""
    heads = {head.strip().lower(): head for head in table.columns[1:]}
    axes = []
    for names, at in ((("latitude", "lat"), 1), (("longitude", "lng", "lon", "long"), 2)):
        axes.append(next((heads[x] for x in names if x in heads), table.columns[at]))
    codes = spelled(table[table.columns[0]].cast(pl.String), form)
    places = zip(*(numbers_of(table, a).tolist() for a in axes), strict=True)
    return dict(zip(codes, places, strict=True))


def _axes(
    points: MeasuredPoints, clusters: StatedClusters, features: Sequence[Feature]
) -> Iterator[tuple[np.ndarray, ...]]:
    """For each axis: (position of every distinct record, lowest and highest position that each cluster allows)."""
    for i, j in enumerate(points.features):
        f, reach = features[j], clusters.spread[:, j] * (1 + 1e-9) + 1e-9
        if f.kind == "category":
            alike = clusters.spread[:, j] == 0
            code = points.centers[i][:, 0].astype(np.float64)
            yield (
                points.records[i][:, 0].astype(np.float64),
                np.where(alike, code, -np.inf),
                np.where(alike, code, np.inf),
            )
            continue
        if f.period:
            continue  # on a circle, a range excludes no position
        reach = np.degrees(reach / EARTH_KM) * (1 + 1e-9) + 1e-9 if f.sphere else reach
        for d in range(1 if f.sphere else points.records[i].shape[1]):
            yield points.records[i][:, d], points.centers[i][:, d] - reach, points.centers[i][:, d] + reach


def _within(
    points: MeasuredPoints, clusters: StatedClusters, features: Sequence[Feature], norm: str, whole: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """All (distinct record, cluster) within the stated radii, and their distances; None if there are too many pairs."""
    t, m = len(points.rows), len(clusters.records)
    best: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
    least = t * m
    for position, low, high in _axes(points, clusters, features):
        order = np.argsort(position, kind="stable")
        start = np.searchsorted(position[order], low)
        stop = np.searchsorted(position[order], high, side="right")
        if best is None or int((stop - start).sum()) < least:
            best, least = (order, start, stop), int((stop - start).sum())
    if least > AT_MOST:
        return None
    if best is None:
        best = np.arange(t), np.zeros(m, np.int64), np.full(m, t)
    order, start, stop = best
    out: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    batch = np.cumsum(stop - start) // AT_ONCE
    for number in np.unique(batch):
        here = np.flatnonzero(batch == number)
        size = stop[here] - start[here]
        k = np.repeat(here, size)
        i = order[np.arange(k.size) - np.repeat(np.cumsum(size) - size, size) + start[k]]
        out.append(_near(points, clusters, features, norm, whole, i, k))
    return tuple(np.concatenate([o[x] for o in out] or [np.zeros(0, np.int64)]) for x in range(3))  # type: ignore[return-value]


def _near(
    points: MeasuredPoints, clusters: StatedClusters, features: Sequence[Feature], norm: str, whole: bool,
    i: np.ndarray,
    k: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    parts: list[np.ndarray] = []
    for at, j in enumerate(points.features):
        f = features[j]
        away = raw(f, points.records[at][i], points.centers[at][k])
        good = away <= clusters.spread[k, j] + slack(away, f.sphere)
        i, k, parts = i[good], k[good], [*(p[good] for p in parts), counted(f, away[good])]
    if not whole:
        return i, k, np.zeros(i.size)
    far = joined(parts, norm)
    loose = np.maximum(slack(far, any(f.sphere for f in features)), 1e-9)
    good = far <= clusters.distance[k] + loose
    return i[good], k[good], far[good]


def _centers(
    points: MeasuredPoints,
    clusters: StatedClusters,
    features: Sequence[Feature],
    stated: StatedCrosswalk,
    t: np.ndarray,
    k: np.ndarray,
) -> list[Finding]:
    """Whether each center is a record of the table, if this is promised."""
    if stated.parameters["center"] != "record":
        return [Finding("centers", True, "are no records; that they are means or medoids is not repeated", STATED)]
    same = np.ones(t.size, bool)
    for i in range(len(points.features)):
        same &= (points.records[i][t] == points.centers[i][k]).all(axis=1)
    m = len(clusters.records)
    odd = m - len(np.unique(k[same]))
    text = f"{odd} centers are no record of the table" if odd else "every center is a record of the table"
    return [Finding("centers", not odd, text, RECOMPUTED if len(points.features) == len(features) else CONSISTENT)]


def _attained(clusters: StatedClusters, stated: StatedCrosswalk, k: np.ndarray, away: np.ndarray) -> Finding:
    """Whether each cluster has a record at the stated distance."""
    most = np.full(len(clusters.records), -1.0)
    np.maximum.at(most, k, away)
    over = 1 + 1e-9 if stated.parameters["center"] == "record" else OVER
    odd = int((clusters.distance > most * over + 1e-7).sum())
    text = f"{odd} clusters state a distance that no record has" if odd else "some record is as far as each states"
    return Finding("distance", not odd, text)


def _filled(
    points: MeasuredPoints, clusters: StatedClusters, pair: tuple[np.ndarray, np.ndarray], name: str | None, form: str,
    source: pl.DataFrame,
) -> bool | None:  # fmt: skip
    """Whether the records can fill the clusters, except those left out.

    If named, with the values of a sensitive column.
    """
    code: dict[str | None, int] = {}
    value = np.zeros(source.height, np.int64)
    if name is not None:
        texts = spelled(part(source, name).cast(pl.String), form)
        value = np.array([code.setdefault(v, len(code)) for v in texts], np.int64)
    wide = max(len(code), 1)
    left, supply = np.unique(points.number * wide + value, return_counts=True)
    right: list[int] = []
    demand: list[int] = []
    for c, size in enumerate(clusters.records.tolist()):
        counts = {0: size} if name is None else {code.get(v, -1): n for v, n in clusters.held[name][c].items()}
        if -1 in counts:
            return False  # a value that the table doesn't contain
        for v, n in sorted(counts.items()):
            right.append(c * wide + v)
            demand.append(n)
    keys = np.array(right, np.int64)
    i, k = _edges(left, keys, pair, wide, len(points.rows))
    out = int(supply.sum()) - sum(demand)
    if i.size > EDGES:
        return None
    if out < 0:
        return False
    if out:
        i = np.concatenate([i, np.arange(left.size)])
        k = np.concatenate([k, np.full(left.size, keys.size)])
        demand.append(out)
    return flows(i, k, supply.astype(np.int64), np.array(demand, np.int64))


def _edges(
    left: np.ndarray, right: np.ndarray, pair: tuple[np.ndarray, np.ndarray], wide: int, records: int
) -> tuple[np.ndarray, np.ndarray]:
    """Edges (record and value, cluster and value), by index, between equal values of a record within the cluster."""
    order = np.argsort(pair[0], kind="stable")
    k = pair[1][order]
    size = np.bincount(pair[0], minlength=records)
    start = np.cumsum(size) - size
    t, v = left // wide, left % wide
    i = np.repeat(np.arange(left.size), size[t])
    at = np.arange(i.size) - np.repeat(np.cumsum(size[t]) - size[t], size[t]) + start[t][i]
    key = k[at] * wide + v[i]
    found = np.searchsorted(right, key)
    good = (found < right.size) & (right[np.minimum(found, max(right.size - 1, 0))] == key) if right.size else key < -1
    return i[good], found[good]


def _ball_bound(points: MeasuredPoints, features: Sequence[Feature], stated: StatedCrosswalk) -> float | None:
    """A lower bound: every record needs a ball of r records around some center that reaches it."""
    n = len(points.rows)
    if n > SMALL:
        return None
    i, k = (x.reshape(-1) for x in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    parts = [counted(features[j], raw(features[j], points.records[a][i], points.records[a][k]))
             for a, j in enumerate(points.features)]  # fmt: skip
    away = joined(parts, str(stated.parameters["norm"])).reshape(n, n)
    order = np.argsort(away, axis=1)
    r = number_of(stated.parameters, "r")
    if r > int(points.rows.sum()):
        return None
    place = (np.cumsum(points.rows[order], axis=1) >= r).argmax(axis=1)
    rho = away[np.arange(n), order[np.arange(n), place]]
    tau = np.maximum(away, rho[None]).min(axis=1)
    falling = np.repeat(tau, points.rows)
    falling = np.sort(falling)[::-1][number_of(stated.facts, "may_be_left_out") :]
    if not falling.size:
        return 0.0
    if stated.kind == "gather":
        return float(falling[0]) / (1 if stated.details.get("centers") == "points" else 2)
    setup = stated.parameters.get("setup_cost")
    return float(falling.sum()) + (float(setup) if isinstance(setup, (int, float)) else 0.0)


def _bound(stated: StatedCrosswalk, easy: float | None) -> Finding:
    low = stated.lower_bound
    if low is None:
        return stated.bounded("")
    if easy is not None and low <= easy * (1 + 1e-9) + 1e-12:
        return Finding("bound", True, f"no answer is below {easy:.9g}; {low:.9g} certified", RECOMPUTED)
    return Finding("bound", True, f"{low:.9g} certified, by an argument not repeated here", STATED)
