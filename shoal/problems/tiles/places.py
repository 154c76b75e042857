"""Points in, distinct places with weights out; degrees unwrapped so that the date line is no border."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError

COORDINATES = ("projected", "geographic")


@dataclass(frozen=True, eq=False)
class Places:
    """The distinct places among the points, by x and then by y.

    x, y        float64[p]  coordinates; longitudes east of the seam, so they may pass 180 degrees
    weight      int64[p]    records at each place
    inverse     int64[n]    place of each point
    geographic  bool        x is a longitude and y a latitude
    seam        float       longitude where the plane is slit open; -inf: nothing was unwrapped
    west        float       least longitude in the user's own range: -180 or 0
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    inverse: np.ndarray
    geographic: bool
    seam: float
    west: float

    @property
    def total(self) -> int:
        """Weight of all places."""
        return int(self.weight.sum())


def as_places(points: Any, weights: Any = None, coordinates: str = "projected") -> Places:
    """Check points float[n, 2] and weights int[n] and merge coincident points.  O(n log n)."""
    if coordinates not in COORDINATES:
        raise PolicyError.unknown("kind of coordinates", coordinates, COORDINATES)
    try:
        p = np.asarray(points, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("points must be numbers, two for each record: x and y") from error
    if p.ndim != 2 or p.shape[1] != 2:
        raise InputError(f"points must be an array of shape (n, 2), x and y; this one has shape {p.shape}")
    if not np.isfinite(p).all():
        bad = int((~np.isfinite(p)).any(axis=1).sum())
        raise InputError(f"{bad} points have a coordinate that is not a finite number; repair them or leave them out")
    n = p.shape[0]
    w = np.ones(n, np.int64) if weights is None else _whole(weights, n)
    x, y = p[:, 0] + 0.0, p[:, 1] + 0.0  # + 0.0: minus zero and zero are one place
    geographic, seam, west = coordinates == "geographic", -np.inf, -180.0
    if geographic and n:
        x, seam, west = _unwrapped(x, y)
    z = np.empty(n, np.complex128)
    z.real, z.imag = x, y
    order = np.argsort(z)
    z = z[order]
    new = np.ones(n, bool)
    new[1:] = z[1:] != z[:-1]
    inverse = np.empty(n, np.int64)
    inverse[order] = np.cumsum(new) - 1
    at = np.flatnonzero(new)
    weight = np.add.reduceat(w[order], at) if n else w
    return Places(
        np.ascontiguousarray(z.real[at]), np.ascontiguousarray(z.imag[at]), weight, inverse, geographic, seam, west
    )


def require(places: Places, k: int) -> int:
    """k as a checked int: at least 1, and no more than there are records."""
    if isinstance(k, bool) or not isinstance(k, (int, float, np.number)) or not k >= 1 or int(k) != k:
        raise PolicyError(f"k is {k!r}; it must be a whole number, at least 1")
    if places.total < k:
        raise InfeasibleError(
            f"there are {places.total:,} records in all, fewer than k = {int(k):,}, so no tile exists; lower k"
        )
    return int(k)


def _whole(weights: Any, n: int) -> np.ndarray:
    w = np.asarray(weights)
    if w.shape != (n,):
        raise InputError(f"weights must be one number for each of the {n:,} points; this array has shape {w.shape}")
    if w.dtype.kind not in "iub":
        try:
            f = w.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError("weights must be whole numbers: how many records are at each point") from error
        if not (np.isfinite(f).all() and (f == np.floor(f)).all()):
            raise InputError("weights must be whole numbers: how many records are at each point; round them first")
        w = f
    if n and (w.min() < 0 or float(w.astype(np.float64).sum()) > 2**62):
        raise InputError("weights must not be negative, nor sum to more than 2^62")
    return w.astype(np.int64)


def _unwrapped(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Longitudes from the middle of the widest empty stretch eastwards; the seam, and the least longitude in use."""
    if y.min() < -90 or y.max() > 90:
        raise InputError(
            f"latitudes must be within -90..90, found {y.min():g}..{y.max():g}; points are (longitude, latitude), "
            "and projected coordinates need coordinates='projected'"
        )
    low, high = x.min(), x.max()
    if low < -180 or high > 360 or (low < 0 and high > 180):
        raise InputError(f"longitudes must be within -180..180 or 0..360, found {low:g}..{high:g}")
    west = 0.0 if high > 180 else -180.0
    x = np.where(x >= west + 360, x - 360, x)  # 180 is -180, 360 is 0: one meridian
    around = np.unique(x)
    gaps = np.diff(around, append=around[0] + 360)
    widest = int(gaps.argmax())
    if widest == around.size - 1:
        return x, -np.inf, west
    seam = float(around[widest] + gaps[widest] / 2)
    return np.where(x < seam, x + 360, x), seam, west
