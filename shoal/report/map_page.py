"""What the pages of maps share: their style, their script, and outlines in few characters."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

_HERE = Path(__file__).parent


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template of this folder with its blanks @@name@@ filled; what is filled in is not looked at again."""
    held = {**values, **{name: (_HERE / f"map.{name}").read_text(encoding="utf-8") for name in ("css", "js")}}
    text = (_HERE / template).read_text(encoding="utf-8")
    return re.sub(r"@@(\w+)@@", lambda found: held[found[1]], text)


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


def _number(hundredths: int) -> str:
    """As short as SVG allows, with what sets it apart from the number before."""
    sign = "-" if hundredths < 0 else " "
    whole, rest = divmod(abs(hundredths), 100)
    text = f"{whole}.{rest:02d}".rstrip("0").rstrip(".")
    return sign + (text[1:] if text.startswith("0.") else text)
