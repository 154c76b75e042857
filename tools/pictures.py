"""Draws the pictures of the guide with the algorithms themselves: one SVG for each page, on generated data.

    python tools/pictures.py [NAME ...] [--out FOLDER]

Writes docs/assets/pictures/NAME.svg, and for each algorithm on it PROBLEM/METHOD.svg with its own panels.  Each is
the answer of one method to the same small question, with its cost.
The same data and seeds give the same drawing; a method that finds a better answer changes it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import shoal

OUT = Path(__file__).parents[1] / "docs" / "assets" / "pictures"
FILLS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")  # Tol, light
INK = ("#1d2733", "#b3261e", "#0b6e4f")  # of rows by their sensitive value
SIDE, TOP, GAP = 220.0, 44.0, 24.0  # of a panel, of its title, between panels


class Panel:
    """A square drawing with a title of two lines; x to the right, y upwards, in units of the data.

    low, high  of both axes
    of         the algorithm that drew it: "problem/method"
    """

    def __init__(self, title: str, said: str, low: tuple[float, float], high: tuple[float, float], of: str) -> None:
        self.title, self.said, self.of = title, said, of
        self.low, self.high = np.array(low, float), np.array(high, float)
        self.shapes: list[str] = []

    def _at(self, x: float, y: float) -> tuple[float, float]:
        unit = (np.clip([x, y], self.low, self.high) - self.low) / (self.high - self.low)
        return round(SIDE * float(unit[0]), 1), round(SIDE * (1 - float(unit[1])), 1)

    def box(self, x0: float, y0: float, x1: float, y1: float, color: str, inset: float = 0.0, see: float = 0.5) -> None:
        """A rectangle; what lies beyond the panel is cut off."""
        (left, bottom), (right, top) = self._at(x0, y0), self._at(x1, y1)
        self.shapes.append(
            f'<rect x="{left + inset:.1f}" y="{top + inset:.1f}" width="{max(right - left - 2 * inset, 1):.1f}" '
            f'height="{max(bottom - top - 2 * inset, 1):.1f}" rx="{min(4, 2 * inset):g}" fill="{color}" '
            f'fill-opacity="{see:g}" stroke="#30404a" stroke-width="0.8"/>'
        )

    def disc(self, x: float, y: float, radius: float, color: str) -> None:
        """A circle, its radius in units of the data; a point where that is 0."""
        at, (edge, _) = self._at(x, y), self._at(self.low[0] + radius, 0)
        size = f'r="{max(edge, 2.6):.1f}" fill="{color}"'
        line = ' fill-opacity="0.35" stroke="#30404a" stroke-width="0.8"' if radius else ""
        self.shapes.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" {size}{line}/>')

    def line(self, points: Sequence[tuple[float, float]], color: str, dash: str = "") -> None:
        """A line through points."""
        through = " ".join(f"{x:.1f},{y:.1f}" for x, y in (self._at(*p) for p in points))
        self.shapes.append(f'<polyline points="{through}" fill="none" stroke="{color}" stroke-dasharray="{dash}"/>')

    def text(self, x: float, y: float, word: str) -> None:
        """A word in the middle of a place."""
        left, top = self._at(x, y)
        self.shapes.append(f'<text x="{left:.1f}" y="{top + 4:.1f}" text-anchor="middle">{escape(word)}</text>')


def drawn(panels: Sequence[Panel], across: int = 3) -> str:
    """Panels in rows, as one SVG that is its own white sheet."""
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    wide, tall = across * (SIDE + GAP) + GAP, down * (SIDE + TOP + GAP) + GAP / 2
    named = "; ".join(f"{p.title}: {p.said}" for p in panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {tall:g}" width="{wide:g}" role="img" '
        f'font-family="sans-serif" font-size="11"><title>{escape(named)}</title>'
        '<rect width="100%" height="100%" fill="white"/>'
    ]
    for i, panel in enumerate(panels):
        left, top = GAP + (i % across) * (SIDE + GAP), GAP / 2 + (i // across) * (SIDE + TOP + GAP)
        parts.append(
            f'<g transform="translate({left:g} {top:g})"><text y="14" font-size="13" font-weight="600">'
            f'{escape(panel.title)}</text><text y="32" fill="#445566">{escape(panel.said)}</text>'
            f'<svg y="{TOP:g}" width="{SIDE:g}" height="{SIDE:g}"><rect width="100%" height="100%" fill="#f6f8fa"/>'
            f"{''.join(panel.shapes)}</svg></g>"
        )
    return "\n".join([*parts, "</svg>", ""])


def people(values: int) -> pl.DataFrame:
    """Sixty rows over a grid of eight times six values, some met often, with a sensitive value each."""
    rng = np.random.default_rng(11)
    x = np.clip(np.round(rng.normal(3.2, 1.9, 60)), 0, 7).astype(int)
    y = np.clip(np.round(rng.normal(2.4, 1.3, 60)), 0, 5).astype(int)
    ill = np.arange(60) % values
    return pl.DataFrame({"x": x, "y": y, "ill": [f"value {i}" for i in ill]})


def table(title: str, method: str, values: int = 3, publish: str = "stars", rows: int = 60, **asked: Any) -> Panel:
    """What a method makes of the sixty rows, or the first of them: groups as published, rows where they stood.

    title  begins with the algorithm
    """
    frame = people(values).head(rows)
    trees = {"hierarchies": {"x": "intervals:2,4", "y": "intervals:2"}} if publish == "hierarchy" else {}
    release = shoal.anonymize(
        frame, quasi_identifiers=["x", "y"], sensitive=["ill"], publish=publish, method=method, effort="balanced",
        seed=1, keep_order=True, **trees, **asked,
    )  # fmt: skip
    proof = release.certificate
    words = {"stars": f"{proof.cost} stars", "ncp": f"loss {proof.cost:.3f}"}
    said = words.get(proof.unit) or f"{proof.cost} rows changed"
    proved = "the least possible" if proof.optimal else f"at most {float(proof.ratio or 0):.2f} times the least"
    if "uniform_cost" in proof.details:
        proved = "one level for each column"
    panel = Panel(title, f"{said}, {proved}", (-0.6, -0.6), (7.6, 5.6), f"tables/{title.split(',')[0]}")
    ends = release.numeric().select("x_low", "x_high", "y_low", "y_high").rows()
    for i, (x0, x1, y0, y1) in enumerate(sorted(set(ends), key=str)):
        sides = [(-9.0, 9.0) if a is None else (a - 0.42, b + 0.42) for a, b in ((x0, x1), (y0, y1))]
        hidden = sum(a is None for a in (x0, y0))
        color = "#c8d0d4" if hidden == 2 else FILLS[i % len(FILLS)]
        panel.box(sides[0][0], sides[1][0], sides[0][1], sides[1][1], color, 1.5 + hidden, 0.45 if hidden < 2 else 0.3)
    met: dict[tuple[int, int], int] = {}
    for x, y, ill in frame.rows():
        at = met[x, y] = met.get((x, y), -1) + 1
        panel.disc(x - 0.25 + 0.25 * (at % 3), y - 0.25 + 0.25 * (at // 3), 0, INK[int(ill[-1])])
    return panel


def methods() -> list[Panel]:
    """docs/methods.md."""
    return [
        table("three_phase, l = 3", "three_phase", l=3),
        table("hilbert, l = 3", "hilbert", l=3),
        table("three_phase_hilbert, l = 3", "three_phase_hilbert", l=3),
        table("matching, two values, l = 2", "matching", values=2, l=2),
        table("top_down, k = 4", "top_down", publish="hierarchy", k=4),
        table("global_recoding, k = 4", "global_recoding", publish="hierarchy", k=4),
        table("coarsen, k = 4", "auto", publish="hierarchy", k=4, coarsen="auto"),
        table("mondrian, k = 4", "mondrian", publish="ranges", k=4),
    ]


def cascade() -> list[Panel]:
    """docs/cascade.md."""
    return [
        table("three_phase, k = 5", "three_phase", k=5),
        table("cascade, k = 5", "cascade", k=5),
        table("improve, k = 5", "improve", k=5),
        table("cascade, ranges, k = 5", "cascade", publish="ranges", k=5),
        table("improve, ranges, k = 5", "improve", publish="ranges", k=5),
        table("auto, k = 5", "auto", k=5),
        table("auto, ranges, k = 5", "auto", publish="ranges", k=5),
        table("auto, hierarchy, k = 5", "auto", publish="hierarchy", k=5),
    ]


def exact() -> list[Panel]:
    """docs/exact.md."""
    return [
        table("two_anonymity, k = 2", "two_anonymity", k=2),
        table("forest, k = 3", "forest", k=3),
        table("pattern_cover, k = 3", "pattern_cover", k=3),
        table("optimal, k = 3", "optimal", k=3),
        table("halving, k = 4, 12 of the rows", "halving", rows=12, k=4),
        table("fewest_tuples, l = 3", "fewest_tuples", l=3),
    ]


def labels() -> list[Panel]:
    """docs/labels.md: every group a pile of its labels, a line at k."""
    sizes, k = [27, 22, 19, 17, 16, 14, 13, 12, 11, 9, 8, 8, 7, 6, 6, 5, 4, 3, 2, 2], 40
    panels = []
    for method in ("fold", "spread", "five_halves", "scheme", "bicriteria", "exact"):
        found = shoal.labels.cover(sizes, k, method=method)
        said = f"largest {found.cost}, no answer below {found.certificate.lower_bound}"
        panel = Panel(f"{method}, k = {k}", said, (0, 0), (len(found.loads), 70), f"labels/{method}")
        for at, held in enumerate(found.bins()):
            low = 0
            for item in held:
                panel.box(at + 0.1, low, at + 0.9, low + sizes[item], FILLS[item % len(FILLS)], see=0.8)
                low += sizes[item]
        panel.line([(0, k), (99, k)], INK[1], "4 3")
        panels.append(panel)
    return panels


def intervals() -> list[Panel]:
    """docs/intervals.md: records by value, and where they are cut."""
    rng = np.random.default_rng(4)
    values = np.sort(np.concatenate([rng.normal(30, 6, 60), rng.normal(62, 9, 40)]).round().astype(int))
    held, counts = np.unique(values, return_counts=True)
    panels = []
    for objective in ("max", "range", "squares"):
        found = shoal.intervals.cut(values, None, 15, objective)
        said = f"{len(found.loads)} intervals, the largest of {max(found.loads)}"
        panel = Panel(f"{objective}, k = 15", said, (held[0] - 1, 0), (held[-1] + 1, counts.max() + 1), "")
        group = dict(zip(values.tolist(), found.labels.tolist(), strict=True))
        for value, count in zip(held.tolist(), counts.tolist(), strict=True):
            panel.box(value - 0.5, 0, value + 0.5, count, FILLS[group[value] % len(FILLS)], see=0.9)
        for a, b in pairwise(held.tolist()):
            if group[a] != group[b]:
                panel.line([((a + b) / 2, 0), ((a + b) / 2, 99)], INK[1], "4 3")
        panels.append(panel)
    return panels


def regions() -> list[Panel]:
    """docs/regions.md: a country of squares, each with its people."""
    side, k = 7, 1500
    rng = np.random.default_rng(2)
    weights = rng.integers(100, 900, side**2)
    pairs = [(i, i + 1) for i in range(side**2) if (i + 1) % side] + [(i, i + side) for i in range(side**2 - side)]
    panels = []
    for method in ("tree", "search", "exact", "auto"):
        found = shoal.regions.merge(pairs, weights, k, objective="count", method=method, effort="fast", seed=1)
        most = found.upper_bound
        panel = Panel(f"{method}, k = {k:,}", f"{len(set(found.labels.tolist()))} regions, more than {most} cannot be",
                      (0, 0), (side, side), f"regions/{method}")  # fmt: skip
        near: dict[int, set[int]] = {}
        for a, b in pairs:
            near.setdefault(found.labels[a], set()).add(found.labels[b])
            near.setdefault(found.labels[b], set()).add(found.labels[a])
        color: dict[int, int] = {}
        for r in sorted(near):
            color[r] = min(set(range(len(FILLS))) - {color.get(s, -1) for s in near[r]})
        for i, r in enumerate(found.labels.tolist()):
            x, y = i % side, i // side
            panel.box(x, y, x + 1, y + 1, FILLS[color[r]], see=0.85)
            panel.text(x + 0.5, y + 0.5, str(weights[i]))
        panels.append(panel)
    return panels


def crowd() -> np.ndarray:
    """float64[70, 2]: two towns and the country between."""
    rng = np.random.default_rng(6)
    return np.concatenate([rng.normal([3, 6.5], 0.9, (30, 2)), rng.normal([7, 3], 1.1, (25, 2)),
                           rng.uniform(0.3, 9.7, (15, 2))])  # fmt: skip


def tiles() -> list[Panel]:
    """docs/tiles.md: places and the rectangles they are published as."""
    points, k, panels = crowd(), 5, []
    for method in ("kd_tree", "mondrian", "proportional", "least_waste", "best_cuts"):
        found = shoal.tiles.split(points, k, method=method)
        said = f"{len(found.counts)} tiles, the largest of {max(found.counts)}"
        panel = Panel(f"{method}, k = {k}", said, (0, 0), (10, 10), f"tiles/{method}")
        for i, (x0, y0, x1, y1) in enumerate(found.bounds.tolist()):
            panel.box(x0, y0, x1, y1, FILLS[i % len(FILLS)])
        for x, y in points.tolist():
            panel.disc(x, y, 0, INK[0])
        panels.append(panel)
    return panels


def clusters() -> list[Panel]:
    """docs/gathering.md: records, the centers published for them, and how far each reaches."""
    gather, cellular = shoal.gathering.gather, shoal.gathering.cellular
    five: dict[str, Any] = {"r": 5}
    opened: dict[str, Any] = {"setup_costs": 3.0}
    asked: tuple[tuple[Callable[..., Any], str, dict[str, Any], str], ...] = (
        (gather, "disjoint", five, ""),
        (gather, "threshold", five, ""),
        (gather, "local", five, ""),
        (gather, "local", five | {"epsilon": 0.06}, ", some left out"),
        (gather, "peeling", five | {"epsilon": 0.06}, ", some left out"),
        (gather, "rounds", five | {"epsilon": 0.06, "max_clusters": 6}, ", six at most"),
        (gather, "exact", five, ""),
        (cellular, "procedure_one", opened, ", set-up 3"),
        (cellular, "tight", opened, ", set-up 3"),
        (cellular, "three_step", five | {"seed": 1}, ""),
        (cellular, "search", five | {"seed": 1}, ""),
        (cellular, "exact", five, ", half of them"),
    )
    panels = []
    for solve, method, how, more in asked:
        points = crowd()[::2] if "half" in more else crowd()
        found = solve(points, method=method, **how)
        cost, bound = found.certificate.cost, found.certificate.lower_bound
        title = f"{solve.__name__}, {method}{more}"
        panel = Panel(
            title, f"cost {cost:.3g}, no answer below {bound:.3g}", (0, 0), (10, 10), f"{solve.__name__}/{method}"
        )
        for i, (x, y) in enumerate(found.centers.tolist()):
            panel.disc(x, y, float(found.radii[i]), FILLS[i % len(FILLS)])
        for (x, y), label in zip(points.tolist(), found.labels.tolist(), strict=True):
            panel.disc(x, y, 0, INK[1] if label < 0 else INK[0])
        panels.append(panel)
    return panels


PICTURES: dict[str, Callable[[], list[Panel]]] = {
    f.__name__: f for f in (methods, cascade, exact, labels, intervals, regions, tiles, clusters)
}


def main() -> int:
    """Draw what is named, or everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PICTURES)}; all when none is named")
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the pictures")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for name in given.names or PICTURES:
        panels = PICTURES[name]()
        sheets = {name: panels} | {own: [p for p in panels if p.of == own] for own in (p.of for p in panels) if own}
        for sheet, shown in sheets.items():
            target = given.out / f"{sheet}.svg"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(drawn(shown), encoding="utf-8")
            print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
