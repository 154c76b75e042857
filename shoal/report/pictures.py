"""Small pictures as inline SVG, no library and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def beside(bars: Sequence[Mapping[str, Any]], hidden: int, rows: int, title: str) -> str:
    """Rows before and after as pairs of bars, with the numbers in words; a before of None is not told."""
    peak = max([1.0, hidden, *(max(b["before"] or 0, b["after"]) for b in bars)])

    def bar(kind: str, value: float) -> str:
        return f'<i class="{kind}" style="width:{100 * value / peak:.1f}%"></i>'

    lines = []
    told = any(b["before"] is not None for b in bars)
    for b in bars:
        before = "not told → " if b["before"] is None else f"about {b['before']:,} → "
        before = before if told else ""
        lines.append(
            f'<span class="name">{escape(b["label"])}</span><span aria-hidden="true">{bar("b", b["before"] or 0)}'
            f"{bar('a', b['after'])}</span><span>{before}{b['after']:,.0f}</span>"
        )
    if hidden:
        lines.append(
            f'<span class="name">hidden</span><span aria-hidden="true">{bar("h", hidden)}</span>'
            f"<span>{hidden:,} ({100 * hidden / max(rows, 1):.0f} %)</span>"
        )
    before = '<i style="background:var(--other)"></i>before &nbsp; ' if told else ""
    return (
        f'<p class="key soft" aria-hidden="true">{before}<i style="background:var(--accent)"></i>after</p>'
        f'<div class="bars" role="group" aria-label="rows by {escape(title)}, before and after">{"".join(lines)}</div>'
    )


def class_sizes(sizes: Mapping[str, int], most: int = 40, what: tuple[str, str] = ("rows", "class")) -> str:
    """Histogram of class sizes, in rows held; sizes past what fits share bins of doubling width.

    what  the unit of a size, and what has it
    """
    unit, group = escape(what[0]), escape(what[1])
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
            f'<rect x="{x:.1f}" y="{170 - tall:.1f}" width="{step * 0.8:.1f}" height="{tall:.1f}" class="after">'
            f"<title>{n:,} {unit}, {group} size {escape(name)}</title></rect>"
            f'<text x="{middle:.1f}" y="184"{turn}>{escape(name)}</text>'
        )
    return (
        f'<svg viewBox="0 0 720 {250 if turned else 196}" width="720" role="img" '
        f'aria-label="{unit} by size of their {group}">'
        f'<text x="30" y="12">{unit} by the size of their {group} (highest bar: {peak:,} {unit})</text>'
        f"{''.join(lines)}</svg>"
    )


def heat(counts: Sequence[Sequence[float | None]], labels: Sequence[Sequence[str]], title: str, peak: float) -> str:
    """A table of counts, darker where there are more, in steps up to ``peak``; None is a dash."""
    rows, across = labels

    def cell(n: float | None) -> str:
        shade = 0 if not n else min(5, 1 + int(5 * (n / peak) ** 0.5 - 1e-9))
        return f'<td class="n h{shade}">{"–" if n is None else f"{n:,.0f}"}</td>'

    top = "".join(f'<th scope="col">{escape(label)}</th>' for label in across)
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>{"".join(map(cell, line))}</tr>'
        for label, line in zip(rows, counts, strict=True)
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(title)}"><table class="heat">'
        f"<caption>{escape(title)}</caption><thead><tr><td></td>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def columns(bars: Sequence[Mapping[str, Any]], title: str) -> str:
    """A bar for each {"label", "groups"}, with the number in words."""
    peak = max((b["groups"] for b in bars), default=0) or 1
    lines = "".join(
        f'<span class="name">{escape(b["label"])}</span><span aria-hidden="true">'
        f'<i class="a" style="width:{100 * b["groups"] / peak:.1f}%"></i></span><span>{b["groups"]:,}</span>'
        for b in bars
    )
    return (
        f'<p class="key soft" aria-hidden="true">{escape(title)}</p>'
        f'<div class="bars" role="group" aria-label="{escape(title)}">{lines}</div>'
    )


def trade_off(points: Sequence[Mapping[str, Any]], chosen: int) -> str:
    """Choices of levels as a curve: stars to the right, the width of all other values upwards; one is marked."""
    left, top, width, height = 70, 14, 600, 240
    most = max([1, *(p["stars"] for p in points)])
    widest = max([p["width"] for p in points]) or 1.0
    at = [(left + width * p["stars"] / most, top + height * (1 - p["width"] / widest)) for p in points]
    parts = [
        f'<polyline points="{left},{top} {left},{top + height} {left + width},{top + height}" fill="none" '
        'stroke="var(--soft)"/>',
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in at)}" fill="none" stroke="var(--accent)"/>',
        f'<text x="{left - 6}" y="{top + 8}" text-anchor="end">{widest:.2g}</text>',
        f'<text x="{left - 6}" y="{top + height}" text-anchor="end">0</text>',
        f'<text x="{left}" y="{top + height + 18}">0</text>',
        f'<text x="{left + width}" y="{top + height + 18}" text-anchor="end">{most:,} stars</text>',
        f'<text x="{left + 6}" y="{top + 8}">width: mean loss of a value that is no star</text>',
    ]
    for i, (p, (x, y)) in enumerate(zip(points, at, strict=True)):
        said = f"{p['stars']:,} stars, width {p['width']:.4f}, loss {p['loss']:.4g}"
        ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke="var(--other)"/>' if i == chosen else ""
        parts.append(f'{ring}<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="after">')
        parts.append(f"<title>{escape(said)}</title></circle>")
    return (
        f'<svg viewBox="0 0 {left + width + 20} {top + height + 30}" width="{left + width + 20}" role="img" '
        f'aria-label="stars against width; the table below has the same figures">{"".join(parts)}</svg>'
    )
