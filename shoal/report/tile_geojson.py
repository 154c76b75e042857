"""Tiles as GeoJSON polygons: longitude and latitude, cut in two where one lies across the end of the longitudes."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from shoal.errors import PolicyError


def geojson(bounds: np.ndarray, properties: Sequence[dict], coordinates: str) -> str:
    """A FeatureCollection of the tiles' bounds float[m, 4]; unbounded sides end at 180 degrees and at the poles."""
    if coordinates != "geographic":
        raise PolicyError(
            "GeoJSON holds longitudes and latitudes only, and these coordinates are projected; name a .csv file instead"
        )
    x = bounds[:, [0, 2]]
    start = 0.0 if (x[np.isfinite(x)] > 180).any() else -180.0
    features = [
        {"type": "Feature", "properties": own, "geometry": _geometry(row, start)}
        for row, own in zip(bounds.tolist(), properties, strict=True)
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False)


def _geometry(row: list[float], start: float) -> dict:
    west, south, east, north = row
    south, north = max(south, -90.0), min(north, 90.0)
    west, east = (start if np.isinf(west) else west), (start + 360.0 if np.isinf(east) else east)
    parts = _within(west, east if east > west else east + 360.0)
    rings = [[[[w, south], [e, south], [e, north], [w, north], [w, south]]] for w, e in parts]
    if len(rings) == 1:
        return {"type": "Polygon", "coordinates": rings[0]}
    return {"type": "MultiPolygon", "coordinates": rings}


def _within(west: float, east: float) -> list[tuple[float, float]]:
    """A stretch of longitudes as stretches within -180..180."""
    if west >= 180:
        return _within(west - 360, east - 360)
    if west < -180:
        return _within(west + 360, east + 360)
    return [(west, east)] if east <= 180 else [(west, 180.0), (-180.0, east - 360)]
