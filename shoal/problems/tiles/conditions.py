"""What is asked of tiles beside a weight, read from the arrays of the caller and told apart."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from shoal.errors import InfeasibleError, InputError, PolicyError
from shoal.model.arguments import keywords, known, number, seed_of, whole_number
from shoal.problems.tiles.places import Places, holding

EXTENTS, CENTERS, SPARSE = ("plane", "data"), ("mean", "draw"), ("refuse", "leave-out")


class Conditions(TypedDict, total=False):
    """Keywords of ``split`` that say what a tile keeps to and how it is published; all of them may be left out.

    boundary     n values: no tile holds points of two of them.  A tile is then a value and a rectangle, and rectangles
                 of different values may lie over each other, as states do not end at straight lines
    sensitive    n values, with l (at most 1 / l of a tile's records share one) or distinct_l (so many different ones)
    person, household  n values: k counts different persons, households or both; each point is one record
    max_width    longest side of a published tile: km where geographic, else units of the coordinates
    grid         the tiles' sides lie at multiples of this, in units of the coordinates
    extent       "plane": tiles cover it, the outer ones without end; "data": each is cut off near its outermost points.
                 Default: "plane", but "data" with max_width and drawn centers
    center       "mean" of a tile's points, or "draw": a random place in the published rectangle
    sparse       "refuse", or "leave-out": records that fit no tile get the label -1
    seed         of the drawn centers; None: fresh
    """

    boundary: Any
    sensitive: Any
    l: float | None
    distinct_l: int | None
    person: Any
    household: Any
    max_width: float | None
    grid: float | None
    extent: str | None
    center: str
    sparse: str
    seed: int | None


class Terms(NamedTuple):
    """The settings of ``split`` beside k, checked.

    l, distinct_l        diversity of the sensitive values, None where not asked for
    units                names of what k counts beside records: "persons", "households"
    max_width            km or units of the coordinates, None: any
    extent, center       how tiles are published;  seed  of drawn centers
    leave_out            records that fit no tile are left out
    sides                value of the boundary for each side, None: there is none
    """

    l: float | None = None
    distinct_l: int | None = None
    units: tuple[str, ...] = ()
    max_width: float | None = None
    extent: str = "plane"
    center: str = "mean"
    seed: int | None = None
    leave_out: bool = False
    sides: tuple[Any, ...] | None = None

    @property
    def limited(self) -> bool:
        """Is there more to meet than a weight?"""
        return bool(self.l or self.distinct_l or self.units or self.max_width)

    @property
    def at_least(self) -> int:
        """Records without which no tile is diverse: one for each different value."""
        return max(1, math.ceil((self.l or 1) - 1e-9), self.distinct_l or 1)

    def words(self) -> list[str]:
        """Names of what only some methods know, as the caller wrote them."""
        own = {"sensitive": self.l or self.distinct_l, "max_width": self.max_width}
        return [name for name, given in own.items() if given] + [unit.removesuffix("s") for unit in self.units]


def terms_of(given: Conditions, weights: Any, n: int) -> tuple[Terms, np.ndarray | None]:
    """Checked settings, and the side of the boundary of each of n points; PolicyError for what contradicts itself."""
    keywords("condition of tiles", given, Conditions)
    side, values = (None, None) if (boundary := given.get("boundary")) is None else coded(boundary, n, "boundary")
    l, distinct_l, max_width = given.get("l"), given.get("distinct_l"), given.get("max_width")
    extent, center, sparse = given.get("extent"), given.get("center", "mean"), given.get("sparse", "refuse")
    for word, what, words in ((center, "center", CENTERS), (sparse, "way with records in no tile", SPARSE)):
        known(what, word, words)
    if extent is not None:
        known("extent", extent, EXTENTS)
    if (given.get("sensitive") is None) != (l is None and distinct_l is None):
        raise PolicyError(
            "sensitive values and l belong together: give sensitive=COLUMN with l=2 or distinct_l=2, or neither"
        )
    l = None if l is None else number("l", l, "a number of at least 1", lambda x: x >= 1)
    distinct_l = None if distinct_l is None else whole_number("distinct_l", distinct_l)
    units = tuple(
        unit for unit, which in (("persons", "person"), ("households", "household")) if given.get(which) is not None
    )
    if units and weights is not None:
        raise PolicyError(
            f"weights= count records, and beside {units[0][:-1]}= each point is one record; leave one out"
        )
    if units and l is not None:
        raise PolicyError(
            f"l= counts records, and beside {units[0][:-1]}= a person with many rows would count often; use distinct_l="
        )
    if max_width is not None:
        says = "a width is a number above 0 (km, or units of the coordinates)"
        max_width = number("max_width", max_width, says, lambda x: x > 0)
    if extent == "plane" and (max_width is not None or center == "draw"):
        which = "max_width" if max_width is not None else "center='draw'"
        raise PolicyError(f"{which} needs tiles with ends; leave extent= out, or say extent='data'")
    extent = extent or ("data" if max_width is not None or center == "draw" else "plane")
    seed = seed_of(given.get("seed"))
    return Terms(l, distinct_l, units, max_width, extent, center, seed, sparse == "leave-out", values), side


def coded(values: Any, n: int, name: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Numbers for values, one for each of n points, and the values; a missing value is a value of its own."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be one value for each of the {n:,} points")
    given = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(given) != n:
        raise InputError(f"{name} must be one value for each of the {n:,} points; there are {len(given):,}")
    given = [None if v is None or v != v else v for v in given]
    try:
        known = sorted(set(given), key=lambda v: (v is not None, type(v).__name__, v))
    except TypeError:
        raise InputError(f"{name} must be numbers or texts, one for each point") from None
    number = {v: i for i, v in enumerate(known)}
    return np.array([number[v] for v in given], np.int64), tuple(known)


def judged_by(places: Places, asked: Terms, k: int, columns: list[tuple[str, Any]], w: np.ndarray) -> Places:
    """Places with what they hold in the sensitive column, and in those that name persons."""
    codes, rules = [], []
    for name, values in columns:
        code, known = coded(values, places.inverse.size, name)
        unit = name in ("person", "household")
        if unit and None in known:
            raise InputError(f"{name} does not name one in every row; fill it, or leave those rows out")
        codes.append(code)
        share = 0.0 if unit or asked.l is None else asked.l
        rules.append((k, share, True) if unit else (max(asked.distinct_l or 1, 1), share, False))
    return replace(places, held=holding(places, codes, w, rules)) if codes and places.x.size else places


def require_able(places: Places, asked: Terms, k: int) -> None:
    """InfeasibleError unless every side of the boundary can be one tile by itself, but for its width."""
    if asked.leave_out:
        return
    few = unable = records = 0
    parts = [places.some(which) for which in places.sides()]
    for part in parts:
        if part.total < k:
            few, records = few + 1, records + part.total
        elif part.held is not None and not part.held.able(part.total):
            unable += 1
    if few:
        raise InfeasibleError(
            f"{few:,} of {len(parts):,} values of the boundary have fewer than k = {k:,} records, {records:,} in all, "
            "so no tile of one value exists; lower k, join values, or leave those records out with sparse='leave-out'"
        )
    if unable:
        what = [f"at most 1/{asked.l:g} of its records with one sensitive value"] if asked.l else []
        what += [f"{asked.distinct_l:,} different sensitive values"] if asked.distinct_l else []
        what += [f"{k:,} different {unit}" for unit in asked.units]
        where = "the table as a whole does" if asked.sides is None else f"{unable:,} sides of the boundary do"
        raise InfeasibleError(
            f"{where} not hold what a tile must ({' and '.join(what)}), so no tile exists; lower l or k, or leave "
            "records out with sparse='leave-out'"
        )
