"""Draws the README's picture, docs/assets/front.svg: a table before and after, a map, and the line of the certificate.

    python tools/front.py [--out FILE]

The releases are made by shoal from the README's table and from generated points, with a fixed seed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
import polars as pl

import shoal

OUT = Path(__file__).parents[1] / "docs" / "assets" / "front.svg"
PEOPLE = pl.DataFrame({
    "name": ["Ada", "Bea", "Cy", "Dan", "Eve", "Fay", "Gus", "Hal"],
    "age": ["34", "35", "37", "37", "52", "55", "58", "58"],
    "zip": ["01234", "01234", "01235", "01235", "09870", "09870", "09871", "09871"],
    "disease": ["flu", "asthma", "flu", "gout", "gout", "flu", "asthma", "gout"],
})  # fmt: skip
FILLS = ("#cfe3f5", "#fbdcd2", "#f5efc9", "#d5eee7")  # Tol's light colors, paler, so that text on them is read
INK, GRAY, LINE, ROW = "#1d2733", "#5b6770", "#8796a1", 24


def text(x: float, y: float, words: str, extra: str = "") -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" {extra}>{escape(words)}</text>'


def grid(x: float, title: str, frame: pl.DataFrame, wide: Sequence[int], fills: Sequence[str], gone: str = "") -> str:
    """A table, a color for each row; the column ``gone`` is crossed out."""
    out = [text(x, 26, title, 'font-weight="600"')]
    left = x
    for name, width in zip(frame.columns, wide, strict=True):
        out.append(text(left + 6, 54, name, f'fill="{GRAY}"'))
        for row, value in enumerate(frame[name].to_list()):
            y = 62 + ROW * row
            out.append(f'<rect x="{left}" y="{y}" width="{width}" height="{ROW}" fill="{fills[row]}" stroke="#fff"/>')
            out.append(text(left + 6, y + 17, str(value), 'font-weight="600"' if value == "*" else ""))
        if name == gone:
            middle, end = 62 + ROW * frame.height, left + width
            out.append(f'<path d="M{left} 62L{end} {middle}M{end} 62L{left} {middle}" stroke="{LINE}" opacity="0.7"/>')
        left += width
    return "".join(out)


def tiles(x: float) -> str:
    """Points in tiles of at least ten."""
    rng = np.random.default_rng(7)
    points = np.clip(rng.normal([[0.3, 0.35]] * 60 + [[0.68, 0.62]] * 60, 0.16), 0.01, 0.99)
    found = shoal.tiles.split(points, 10, effort="fast")
    side, top = 192.0, 62.0
    out = [text(x, 26, "a map: 10 people or more in a tile", 'font-weight="600"')]
    for number, (x0, y0, x1, y1) in enumerate(np.clip(found.bounds, 0, 1).tolist()):
        box = f'x="{x + side * x0:.1f}" y="{top + side * (1 - y1):.1f}" width="{side * (x1 - x0):.1f}"'
        fill = FILLS[number % len(FILLS)]
        out.append(f'<rect {box} height="{side * (y1 - y0):.1f}" fill="{fill}" stroke="{LINE}"/>')
    out += [
        f'<circle cx="{x + side * a:.1f}" cy="{top + side * (1 - b):.1f}" r="1.8" fill="{INK}"/>' for a, b in points
    ]
    return "".join(out)


def picture() -> str:
    """The whole drawing."""
    asked = {"quasi_identifiers": ["age", "zip"], "sensitive": ["disease"], "identifiers": ["name"], "k": 2, "l": 2}
    release = shoal.anonymize(PEOPLE, **asked, seed=1, keep_order=True)
    table, proof = release.table, release.certificate
    published = table.select("age", "zip").rows()
    groups = list(dict.fromkeys(published))
    fills = [FILLS[groups.index(row)] for row in published]
    least = "the fewest possible, proved" if proof.optimal else f"at least {proof.lower_bound:g} are needed, proved"
    line = f"certificate: k = {release.audit.k}, l = 2; {proof.cost:g} values hidden, {least}"
    parts = [
        grid(24, "before", PEOPLE, (50, 44, 62, 76), ["#f3f5f7"] * PEOPLE.height, "name"),
        text(268, 164, "→", 'font-size="22"'),
        grid(306, "after: two people or more look alike", table, (44, 62, 76), fills),
        tiles(606),
        f'<rect x="24" y="272" width="832" height="36" rx="6" fill="#eef2f5" stroke="{LINE}"/>',
        text(40, 295, line, 'font-family="ui-monospace, monospace"'),
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 326" role="img" font-family="system-ui, sans-serif" '
        f'font-size="14" fill="{INK}"><title>A table before and after, a map, and the line of the certificate</title>'
        f'<rect width="880" height="326" rx="10" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.parse_args().out.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
