"""Groups against k: a few lines for the terminal, and a drawing that needs nothing but a browser."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

ROWS = 8  # of the text
COLUMNS = 400  # of the drawing


def as_text(loads: Sequence[int], k: int) -> list[str]:
    """How many groups hold how many times k: one line per range, from k up."""
    least, most = min(loads), max(loads)
    width = max(1, -(-(most - least + 1) // ROWS))
    numbers = [0] * ROWS
    for load in loads:
        numbers[(load - least) // width] += 1
    lines = []
    for row, number in enumerate(numbers):
        low = least + row * width
        if low > most:
            break
        high = min(most, low + width - 1)
        bar = "█" * max(round(30 * number / max(numbers)), number > 0)
        lines.append(f"  {low:>12,} .. {high:<12,} {low / k:7.2f} k  {bar} {number:,}")
    return lines


def as_svg(loads: Sequence[int], k: int, bound: int | None, title: str) -> str:
    """Bars in falling order against a line at k and, where ``bound`` is given, one below which no answer stays.

    More than COLUMNS groups are drawn as COLUMNS bars, each the largest of its share.
    """
    falling = sorted(loads, reverse=True)
    shown = falling[:: -(-len(falling) // COLUMNS)]
    wide, tall, left, top = 820, 300, 90, 50
    top_value = max(falling[0], k)
    step = wide / len(shown)

    def y(value: int) -> float:
        return top + tall * (1 - value / top_value)

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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + wide + 20} {top + tall + 40}" '
        f'font-family="sans-serif" font-size="12" role="img"><title>{escape(title)}: {said}</title>'
        f'<rect width="100%" height="100%" fill="white"/>'
        f'<text x="{left}" y="20" font-size="15">{escape(title)}</text><text x="{left}" y="38">{said}</text>'
        f'<g fill="#5b8db8">{bars}</g>{lines}'
        f'<text x="{left}" y="{top + tall + 20}">groups, largest first</text></svg>\n'
    )
