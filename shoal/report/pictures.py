"""Small pictures as inline SVG, no library and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def bars(values: Sequence[tuple[str, float]], title: str, top: float = 100.0) -> str:
    """Horizontal bars, each from 0 to ``top``."""
    height, left, width = 24, 190, 460
    lines = []
    for i, (name, value) in enumerate(values):
        y = i * height + 20
        long = width * min(value, top) / top if top else 0
        shown = name if len(name) <= 26 else name[:25] + "…"
        lines.append(
            f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(shown)}</text>'
            f'<rect x="{left}" y="{y + 3}" width="{width}" height="{height - 8}" fill="#eef2f5"/>'
            f'<rect x="{left}" y="{y + 3}" width="{long:.1f}" height="{height - 8}" fill="#14688a"/>'
            f'<text x="{left + width + 8}" y="{y + 14}">{value:.1f}</text>'
        )
    total = len(values) * height + 26
    return (
        f'<svg viewBox="0 0 720 {total}" width="720" role="img" aria-label="{escape(title)}">'
        f'<text x="{left}" y="12">{escape(title)}</text>{"".join(lines)}</svg>'
    )


def class_sizes(sizes: Mapping[str, int], most: int = 40) -> str:
    """Histogram of class sizes, in rows held; sizes past what fits share bins of doubling width."""
    pairs = sorted((int(s), n) for s, n in sizes.items())
    if not pairs:
        return "<p>The table is empty.</p>"
    bins: list[tuple[str, int]] = []
    if len(pairs) <= most:
        bins = [(str(s), s * n) for s, n in pairs]
    else:
        low = pairs[0][0]
        while low <= pairs[-1][0]:
            high = max(low, 2 * low - 1)
            bins.append(
                (str(low) if low == high else f"{low}–{high}", sum(s * n for s, n in pairs if low <= s <= high))
            )
            low = high + 1
    peak = max(n for _, n in bins) or 1
    step = min(90.0, 660 / len(bins))
    turned = step < 40
    lines = []
    for i, (name, n) in enumerate(bins):
        tall = 150 * n / peak
        x = 30 + i * step
        middle = x + step * 0.4
        turn = f' transform="rotate(-60 {middle:.1f} 184)" text-anchor="end"' if turned else ' text-anchor="middle"'
        lines.append(
            f'<rect x="{x:.1f}" y="{170 - tall:.1f}" width="{step * 0.8:.1f}" height="{tall:.1f}" fill="#14688a">'
            f"<title>{n:,} rows in classes of {escape(name)}</title></rect>"
            f'<text x="{middle:.1f}" y="184"{turn}>{escape(name)}</text>'
        )
    return (
        f'<svg viewBox="0 0 720 {250 if turned else 196}" width="720" role="img" '
        'aria-label="rows by size of their class">'
        f'<text x="30" y="12">rows by the size of their class (highest bar: {peak:,} rows)</text>{"".join(lines)}</svg>'
    )
