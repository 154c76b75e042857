"""How far records are from centers, by formulas of the judge's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import VerificationError
from shoal.judge.crosswalk import part

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


def features_of(asked: Mapping[str, Any]) -> list[Feature]:
    """The features of a certificate file; VerificationError where one cannot be."""
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
                             entry.get("geometry") == "great-circle", period))  # fmt: skip
    if not found:
        raise VerificationError("the certificate file states no feature")
    return found


def numbers_of(frame: pl.DataFrame, name: str) -> np.ndarray:
    """A column as float64[n], dates as days; VerificationError where one is none."""
    column = part(frame, name)
    if column.dtype in (pl.Date, pl.Datetime):
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
    """float64[n] in the feature's own unit: differences, kilometers (haversine), or levels apart.

    Of categories a and b are int64[n, levels]: the class at each level below the root.
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
    """A raw distance as it counts."""
    if feature.kind == "category":
        return feature.weight * away / feature.levels
    return away / feature.scale * feature.weight


def joined(parts: Sequence[np.ndarray], norm: str) -> np.ndarray:
    """All features together."""
    if norm == "manhattan":
        return np.asarray(sum(parts))
    if norm == "chebyshev":
        return np.maximum.reduce(list(parts))
    if norm != "euclidean":
        raise VerificationError("the certificate file states a norm that is none")
    return np.sqrt(np.asarray(sum(p * p for p in parts)))


def measured(spread: np.ndarray, features: Sequence[Feature], norm: str) -> tuple[np.ndarray, np.ndarray]:
    """float64[m] twice: no member is farther than this; and one is at least this far, but for the digits told."""
    parts = [counted(f, spread[:, j]) for j, f in enumerate(features)]
    exact = [p if f.kind == "category" else p / 1.1 for p, f in zip(parts, features, strict=True)]
    return joined(parts, norm), np.maximum.reduce(exact)


def slack(away: np.ndarray, sphere: bool) -> np.ndarray:
    """What two formulas for one distance may differ by: much only near the other end of the Earth."""
    rounding = 1e-9 * (1 + np.abs(away))
    return np.where(away > 0.49 * math.tau * EARTH_KM, 1e-2, rounding) if sphere else rounding
