"""The page and the picture of an exploration: loss against risk, the frontier marked, each point named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from shoal.errors import MissingDependencyError

# Okabe and Ito's palette: told apart by people who see few colors.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #5b6b7b; --line: #d9e0e6; --paper: #fff; --mark: #f2f6f9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --soft: #a4b1bd; --line: #37424d; --paper: #14191e;
  --mark: #1e262d; } }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
       max-width: 62rem; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .6rem; }
figure { margin: 0; } .wide, figure { overflow-x: auto; } svg { width: 100%; min-width: 40rem; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.axis { stroke: var(--line); } .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { text-align: right; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:nth-child(3), td:nth-child(3), th:nth-child(4), td:nth-child(4), td.why { text-align: left; }
td.why { white-space: normal; } tr.frontier { background: var(--mark); font-weight: 600; }
@media print { body { padding: 0; font-size: 10pt; } tr, svg { break-inside: avoid; } }
"""
_LEFT, _TOP, _WIDTH, _HEIGHT = 64, 16, 760, 360


def series(points: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The points that exist, by way to publish and l, in the order of their risk."""
    out: dict[str, list[Mapping[str, Any]]] = {}
    for p in points:
        if p["loss"] is not None:
            out.setdefault(p["publish"] + (f", l = {p['l']}" if p["l"] > 1 else ""), []).append(p)
    return {name: sorted(held, key=lambda p: (p["risk"], p["loss"])) for name, held in out.items()}


def draw(points: Sequence[Mapping[str, Any]], axes: Any = None) -> Any:
    """Loss against risk on matplotlib axes (made when None), which are returned."""
    if axes is None:
        MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
        from matplotlib.figure import Figure

        axes = Figure(figsize=(7, 4.2), layout="constrained").subplots()
    for i, (name, held) in enumerate(series(points).items()):
        color = COLORS[i % len(COLORS)]
        axes.plot([p["risk"] for p in held], [p["loss"] for p in held], "o-", color=color, label=name, markersize=4)
        for p in held:
            axes.annotate(f"k = {p['k']}", (p["risk"], p["loss"]), textcoords="offset points", xytext=(5, 4))
            if p["frontier"]:
                axes.plot(p["risk"], p["loss"], "o", markersize=11, fillstyle="none", color=color)
    axes.set_xlabel("highest risk to be found (one over the smallest group)")
    axes.set_ylabel("loss (NCP)")
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def table(points: Sequence[Mapping[str, Any]]) -> str:
    """All points as an HTML table, those of the frontier marked."""
    head = "".join(
        f'<th scope="col">{h}</th>'
        for h in ("k", "l", "published as", "method", "loss", "proved least", "groups", "risk", "mean risk", "seconds")
    )
    body = []
    for p in points:
        first = "".join(f"<td>{escape(str(p[name]))}</td>" for name in ("k", "l", "publish", "method"))
        if p["loss"] is None:
            body.append(f'<tr>{first}<td class="why" colspan="6">{escape(str(p["reason"]))}</td></tr>')
            continue
        bound = "" if p["bound"] is None else f"{p['bound']:.4f}"
        numbers = (f"{p['loss']:.4f}", bound, f"{p['groups']:,}", f"{p['risk']:.3f}", f"{p['mean_risk']:.3f}")
        rest = "".join(f"<td>{n}</td>" for n in (*numbers, f"{p['seconds']:.1f}"))
        body.append(f"<tr{' class=frontier' if p['frontier'] else ''}>{first}{rest}</tr>")
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="All points"><table>'
        "<caption>Marked rows: no other point has as little risk, as much diversity and as "
        f"little loss.</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _picture(points: Sequence[Mapping[str, Any]]) -> str:
    held = [p for p in points if p["loss"] is not None]
    if not held:
        return "<p>No release exists at any point of the grid.</p>"
    high_x, high_y = max(p["risk"] for p in held) * 1.1 or 1.0, max(p["loss"] for p in held) * 1.15 or 1.0

    def at(p: Mapping[str, Any]) -> tuple[float, float]:
        return _LEFT + _WIDTH * p["risk"] / high_x, _TOP + _HEIGHT * (1 - p["loss"] / high_y)

    parts = []
    for i in range(6):
        x, y = _LEFT + _WIDTH * i / 5, _TOP + _HEIGHT * (1 - i / 5)
        parts.append(f'<line class="axis" x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP}" y2="{_TOP + _HEIGHT}"/>')
        parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(f'<text x="{x:.0f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{high_x * i / 5:.2g}</text>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{high_y * i / 5:.2g}</text>')
    named: list[tuple[int, float, float]] = []  # one word for points that all but coincide
    for i, (name, line) in enumerate(series(points).items()):
        color = COLORS[i % len(COLORS)]
        path = " ".join("{:.1f},{:.1f}".format(*at(p)) for p in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for p in line:
            x, y = at(p)
            said = f"{name}, k = {p['k']}: loss {p['loss']:.4f}, risk {p['risk']:.3f}, {p['groups']:,} groups"
            ring = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="none" stroke="{color}"/>' if p["frontier"] else ""
            parts.append(f'{ring}<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}">')
            parts.append(f"<title>{escape(said)}</title></circle>")
            if all(p["k"] != k or abs(x - a) + abs(y - b) > 20 for k, a, b in named):
                named.append((p["k"], x, y))
                parts.append(f'<text x="{x + 8:.1f}" y="{y - 8:.1f}">k = {p["k"]}</text>')
        y = _TOP + _HEIGHT + 60 + 18 * i
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="18" height="4" fill="{color}"/>')
        parts.append(f'<text x="{_LEFT + 26}" y="{y - 3}">{escape(name)}</text>')
    parts.append(
        f'<text x="{_LEFT + _WIDTH / 2}" y="{_TOP + _HEIGHT + 38}" text-anchor="middle">'
        "highest risk to be found (one over the smallest group)</text>"
    )
    parts.append(f'<text x="14" y="{_TOP + _HEIGHT / 2}" transform="rotate(-90 14 {_TOP + _HEIGHT / 2})" '
                 'text-anchor="middle">loss (NCP)</text>')  # fmt: skip
    tall = _TOP + _HEIGHT + 60 + 18 * len(series(points))
    return (
        f'<svg viewBox="0 0 {_LEFT + _WIDTH + 60} {tall}" role="img" '
        f'aria-label="Loss against risk; the table below has the same figures">{"".join(parts)}</svg>'
    )


def page(explored: Mapping[str, Any], asked: int) -> str:
    """The whole page.  explored: ``Exploration.as_dict()``; asked: how many points the grid has."""
    points = explored["points"]
    stopped = "" if explored["complete"] else f" It was interrupted after {len(points)} of {asked} points."
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>What a release would cost</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>What a release would cost</h1>"
        f'<p class="soft">{explored["rows"]:,} rows, {len(points)} requests tried.{stopped}</p>'
        "<p>Each point is a release that was made, judged and thrown away. Loss is the mean loss of a published cell: "
        "0 is the value itself, 1 nothing left. Ringed points are the ones to choose from: every other point has more "
        "risk, less diversity or more loss than one of them.</p>"
        '<figure tabindex="0" role="group" aria-label="Loss against risk">'
        f"{_picture(points)}</figure><h2>All points</h2>{table(points)}</main></body></html>\n"
    )
