"""Groups against k: a few lines for the terminal, and a drawing that needs nothing but a browser."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from shoal.report.rendering import part

ROWS = 8  # of the text
COLUMNS = 400  # of the drawing
DWARFED = 8  # times as large as the middle one, a group leaves the others no height


def as_text(loads: Sequence[int], k: int) -> list[str]:
    """How many groups hold how many times k: one line per range, from k up; ranges grow where one is a giant."""
    least, most = min(loads), max(loads)
    starts = [least + row * max(1, -(-(most - least + 1) // ROWS)) for row in range(ROWS)]
    if _dwarfed(loads, k):
        starts = sorted(
            {math.ceil(max(least, 1) * ((most + 1) / max(least, 1)) ** (row / ROWS)) for row in range(ROWS)}
        )
        starts[0] = least
    starts = [low for low in starts if low <= most]
    numbers = [0] * len(starts)
    for load in loads:
        numbers[bisect_right(starts, load) - 1] += 1
    lines = []
    for low, high, number in zip(starts, [*(s - 1 for s in starts[1:]), most], numbers, strict=True):
        bar = "█" * max(round(30 * number / max(numbers)), number > 0)
        lines.append(f"  {low:>12,} .. {high:<12,} {low / k:7.2f} k  {bar} {number:,}")
    return lines


def _dwarfed(loads: Sequence[int], k: int) -> bool:
    """Whether the largest group leaves the others no height."""
    return max(loads) > DWARFED * max(sorted(loads)[len(loads) // 2], k)


def as_svg(loads: Sequence[int], k: int, bound: int | None, title: str) -> str:
    """Bars in falling order against a line at k and, where ``bound`` is given, one below which no answer stays.

    More than COLUMNS groups are drawn as COLUMNS bars, each the largest of its share.  Where one group dwarfs the
    others heights are logarithms, and the drawing says so.
    """
    falling = sorted(loads, reverse=True)
    shown = falling[:: -(-len(falling) // COLUMNS)]
    wide, tall, left, top = 820, 300, 90, 50
    top_value = max(falling[0], k)
    step = wide / len(shown)
    dwarfed = _dwarfed(loads, k)
    floor = min(falling[-1], k) / 2  # of the logarithms

    def y(value: float) -> float:
        share = math.log(value / floor) / math.log(top_value / floor) if dwarfed else value / top_value
        return top + tall * (1 - share)

    bars = [(left + i * step, y(load), max(step * 0.9, 0.4), top + tall - y(load)) for i, load in enumerate(shown)]
    lines = [
        (y(value), shift, f"{name} {value:,}", color, dash)
        for value, name, color, dash, shift in ((k, "k", "#b00020", "", 12), (bound, "least", "#1b5e20", "5 4", -3))
        if value is not None
    ]
    said = f"{len(falling):,} groups of {falling[-1]:,} to {falling[0]:,} records"
    said += "" if bound is None else f"; no answer has all below {bound:,}"
    axis = "groups, largest first" + ("; each doubling is as high as another" if dwarfed else "")
    if dwarfed and all(abs(y(top_value) - height) > 14 for height, *_ in lines):
        lines.append((y(top_value), 4, f"{top_value:,}", "", ""))
    return part("pictures.html", "loads", title, said, axis, (left, top, wide, tall), bars, lines)
