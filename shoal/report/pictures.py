"""Small pictures as inline SVG, no library and no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from shoal.report.rendering import part
from shoal.report.words import share

BINS = 40  # bars of a histogram at most
_CURVE = (70, 14, 600, 240)  # left, top, width, height of the curve of levels


def beside(bars: Sequence[Mapping[str, Any]], hidden: int, rows: int, title: str) -> Markup:
    """Rows before and after as pairs of bars, with the numbers in words; a before of None is not told."""
    peak = max([1.0, hidden, *(max(b["before"] or 0, b["after"]) for b in bars)])
    known = any(b["before"] is not None for b in bars)
    lines: list[tuple[str, list[tuple[str, float]], str]] = []
    for b in bars:
        before = "not told → " if b["before"] is None else f"about {b['before']:,} → "
        lengths = [("b", 100 * (b["before"] or 0) / peak), ("a", 100 * b["after"] / peak)]
        lines.append((b["label"], lengths, f"{before if known else ''}{b['after']:,.0f}"))
    if hidden:
        said = f"{hidden:,} ({share(hidden, rows)})"
        lines.append(("hidden", [("h", 100 * hidden / peak)], said))
    key = part("pictures.html", "key", known)
    return part("pictures.html", "bars", key, f"rows by {title}, before and after", lines)


def class_sizes(sizes: Mapping[str, int], what: tuple[str, str] = ("rows", "group")) -> Markup:
    """Histogram of class sizes, in rows held; sizes past what fits share bins of doubling width.

    what  the unit of a size, and what has it
    """
    pairs = sorted((int(s), n) for s, n in sizes.items())
    if not pairs:
        return part("parts.html", "paragraph", "The table is empty.", "")
    bins: list[tuple[str, int]] = []
    if len(pairs) <= BINS:
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
    return part("pictures.html", "sizes", bins, *what, peak, step, step < 40)


def heat(counts: Sequence[Sequence[float | None]], labels: Sequence[Sequence[str]], title: str, peak: float) -> Markup:
    """A table of counts, darker where there are more, in steps up to ``peak``; None is a dash."""

    def cell(n: float | None) -> tuple[int, str]:
        return 0 if not n else min(5, 1 + int(5 * (n / peak) ** 0.5 - 1e-9)), "–" if n is None else f"{n:,.0f}"

    lines = [(label, [cell(n) for n in line]) for label, line in zip(labels[0], counts, strict=True)]
    return part("pictures.html", "heat", title, labels[1], lines)


def columns(bars: Sequence[Mapping[str, Any]], title: str) -> Markup:
    """A bar for each {"label", "groups"}, with the number in words."""
    peak = max((b["groups"] for b in bars), default=0) or 1
    lines = [(b["label"], [("a", 100 * b["groups"] / peak)], f"{b['groups']:,}") for b in bars]
    return part("pictures.html", "bars", title, title, lines)


def trade_off(points: Sequence[Mapping[str, Any]], chosen: int) -> Markup:
    """Choices of levels as a curve: stars to the right, the width of all other values upwards; one is marked."""
    left, top, wide, tall = _CURVE
    most = max([1, *(p["stars"] for p in points)])
    widest = max([p["width"] for p in points]) or 1.0
    drawn = [
        {
            "at": (left + wide * p["stars"] / most, top + tall * (1 - p["width"] / widest)),
            "said": f"{p['stars']:,} stars, width {p['width']:.4f}, loss {p['loss']:.4g}",
        }
        for p in points
    ]
    return part("pictures.html", "trade_off", _CURVE, drawn, chosen, f"{most:,}", f"{widest:.2g}")
