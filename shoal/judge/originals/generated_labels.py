"""Labels of generated hierarchies (labels, intervals, tiles), read back to the values they stand for."""

from __future__ import annotations

import math

import numpy as np

from shoal.judge.originals.distinct import Values, as_number


def _between(raw: str, values: Values) -> np.ndarray | None:
    """``18 .. 25``: values from the one to the other."""
    low, dots, high = raw.partition(" .. ")
    a, b = as_number(low), as_number(high)
    if not dots or a is None or b is None or values.position is None:
        return None
    slack = 1e-14 * max(abs(a), abs(b))
    line = values.position[: values.size - values.missing]
    return np.flatnonzero((line >= a - slack) & (line <= b + slack))


def _alphabetic(raw: str, values: Values) -> np.ndarray | None:
    """``Adams .. Baker and 12 more``, ``Adams, Baker``: values from the one to the other in the order of text.

    Where two labels would have one name, all have a number: ``Adams, Baker (group 3)``, also a value by itself.
    """
    if raw.endswith(")") and raw not in values.by_text:
        bare, mark, number = raw[:-1].rpartition(" (group ")
        if mark and number.isdecimal():
            several, one = _alphabetic(bare, values), values.by_text.get(bare)
            own = np.zeros(0, np.int64) if one is None else np.array([one], np.int64)
            return own if several is None and own.size else several if several is None else np.union1d(several, own)
    texts = [t for t in values.texts if t is not None]
    for mark in (" .. ", ", "):
        pieces = raw.split(mark)
        for cut in range(1, len(pieces)):
            low, high = mark.join(pieces[:cut]), mark.join(pieces[cut:])
            if mark == " .. ":
                high = high.rpartition(" and ")[0]
            if low in values.by_text and high in values.by_text:
                if mark == ", ":
                    return np.array([values.by_text[low], values.by_text[high]], np.int64)
                return np.array([values.by_text[t] for t in texts if low <= t <= high], np.int64)
    return None


def _tile(raw: str, values: Values) -> np.ndarray | None:
    """``x..x y..y``: places in a rectangle, sides included; a side left out is open."""
    try:
        spans = [[float(v) if v else s for v, s in zip(p.split(".."), (-math.inf, math.inf), strict=True)]
                 for p in raw.split(" ")]  # fmt: skip
        (x0, x1), (y0, y1) = spans
    except ValueError:
        return None
    places = np.array([[float(v) for v in t.split(" ")] for t in values.texts if t])
    if not places.size:
        return None
    x, y = places[:, 0], places[:, 1]
    along = np.zeros(x.size, bool)
    for turn in (-360.0, 0.0, 360.0):
        along |= (x + turn >= x0) & (x + turn <= x1)
    return np.flatnonzero(along & (y >= y0) & (y <= y1))


GENERATED = {"labels": _alphabetic, "intervals": _between, "tiles": _tile}
