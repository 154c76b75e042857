"""Outlines of maps in few characters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np


def outline(rings: Sequence[np.ndarray]) -> str:
    """Rings float64[m, 2] as an SVG path to a hundredth, corner by corner from the one before.

    Corners that fall together are left out, and so is a ring that falls together.
    """
    parts = []
    for ring in rings:
        points = np.round(ring * 100).astype(np.int64)
        kept = points[(points != np.roll(points, 1, axis=0)).any(axis=1)]
        if len(kept) > 2:
            steps = "".join(map(_number, np.diff(kept, axis=0).ravel().tolist()))
            parts.append(f"M{_number(int(kept[0, 0])).strip()}{_number(int(kept[0, 1]))}l{steps.strip()}z")
    return "".join(parts)


@lru_cache(maxsize=1 << 14)  # steps are short, and the same ones come again and again
def _number(hundredths: int) -> str:
    """As short as SVG allows, with what sets it apart from the number before."""
    sign = "-" if hundredths < 0 else " "
    whole, rest = divmod(abs(hundredths), 100)
    text = f"{whole}.{rest:02d}".rstrip("0").rstrip(".")
    return sign + (text[1:] if text.startswith("0.") else text)
