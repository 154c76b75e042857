"""Groups against k: a few lines for the terminal, and a drawing that needs nothing but a browser."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from html import escape

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

    bars = "".join(
        f'<rect x="{left + i * step:.2f}" y="{y(load):.2f}" width="{max(step * 0.9, 0.4):.2f}" '
        f'height="{top + tall - y(load):.2f}"/>'
        for i, load in enumerate(shown)
    )
    lines = "".join(
        f'<line x1="{left}" x2="{left + wide}" y1="{y(value):.2f}" y2="{y(value):.2f}" stroke="{color}" '
        f'stroke-dasharray="{dash}"/><text x="{left - 6}" y="{y(value) + place:.2f}" text-anchor="end" '
        f'fill="{color}">{name} {value:,}</text>'
        for value, name, color, dash, place in (
            (k, "k", "#b00020", "", 12),
            (bound, "least", "#1b5e20", "5 4", -3),
        )
        if value is not None
    )
    said = f"{len(falling):,} groups of {falling[-1]:,} to {falling[0]:,} records"
    said += "" if bound is None else f"; no answer has all below {bound:,}"
    axis = "groups, largest first" + ("; each doubling is as high as another" if dwarfed else "")
    labels = [(value, name) for value, name in ((k, "k"), (bound, "least")) if value is not None]
    if dwarfed and all(abs(y(top_value) - y(value)) > 14 for value, _ in labels):
        lines += f'<text x="{left - 6}" y="{y(top_value) + 4:.2f}" text-anchor="end">{top_value:,}</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide + 20} {top + tall + 40}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}: {said}</title>'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{left}" y="20" font-size="15">{escape(title)}</text><text x="{left}" y="38">{said}</text>'
        f'<g fill="#5b8db8">{bars}</g>{lines}'
        f'<text x="{left}" y="{top + tall + 20}">{axis}</text></svg>\n'
    )
