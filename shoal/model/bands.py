"""Texts that are bands of numbers, such as ``[70-80)``, ``65-69`` or ``85+``, and the order in which they lie."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

_N = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
_TWO = re.compile(rf"[\[(]?({_N}) ?(?:-|–|,|\.\.|to) ?({_N})[\])]?\Z")
_BELOW = re.compile(rf"<=? ?({_N})\Z")
_ABOVE = re.compile(rf"(?:>=? ?({_N})|({_N}) ?\+)\Z")
_ONE = re.compile(rf"({_N})\Z")


def ends(text: str) -> tuple[float, float] | None:
    """Lowest and highest number of one band, a number alone being a band of one; None for another text.  O(length)."""
    if found := _TWO.match(text):
        low, high = float(found[1]), float(found[2])
        return (low, high) if low < high and (text[0] in "[(") == (text[-1] in ")]") else None
    if found := _BELOW.match(text):
        return -math.inf, float(found[1])
    if found := _ABOVE.match(text):
        return float(found[1] or found[2]), math.inf
    if found := _ONE.match(text):
        return float(found[1]), float(found[1])
    return None


def in_order(texts: Sequence[str]) -> list[int] | None:
    """The positions of different texts in the order of their bands; None unless all are bands that do not overlap.

    At least three are needed, and one of two ends: fewer have no order that matters, and numbers alone are numbers.
    Bands may share an end, as 10-20 and 20-30 do.  O(v log v).
    """
    known: list[tuple[float, float]] = []
    for text in texts:
        found = ends(text)
        if found is None:
            return None
        known.append(found)
    if len(known) < 3 or not any(-math.inf < low < high < math.inf for low, high in known):
        return None
    order = sorted(range(len(known)), key=known.__getitem__)
    line = [known[i] for i in order]
    apart = all(a[0] < b[0] and a[1] <= b[0] for a, b in pairwise(line))
    return order if apart else None
