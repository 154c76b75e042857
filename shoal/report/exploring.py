"""The page and the picture of an exploration: loss against risk, the frontier marked, each point named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from markupsafe import Markup

from shoal.errors import MissingDependencyError
from shoal.report.rendering import part, rendered

# Okabe and Ito's palette: told apart by people who see few colors.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")

_FRAME = (64, 16, 760, 360)  # left, top, width, height


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
        axes = _figure().subplots()
    for i, (name, held) in enumerate(series(points).items()):
        color = COLORS[i % len(COLORS)]
        axes.plot([p["risk"] for p in held], [p["loss"] for p in held], "o-", color=color, label=name, markersize=4)
        for p in held:
            axes.annotate(f"k = {p['k']}", (p["risk"], p["loss"]), textcoords="offset points", xytext=(5, 4))
            if p["frontier"]:
                axes.plot(p["risk"], p["loss"], "o", markersize=11, fillstyle="none", color=color)
    axes.set_xlabel("highest risk to be found (one over the smallest group)")
    axes.set_ylabel("loss (NCP)")
    axes.margins(x=0.12, y=0.12)  # room for the names of points
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def _figure() -> Any:
    """A figure that a notebook shows whether or not it has drawn with pyplot before."""
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> bytes:
            out = BytesIO()
            self.savefig(out, format="png", dpi=110)
            return out.getvalue()

    return Picture(figsize=(7, 4.2), layout="constrained")


def table(points: Sequence[Mapping[str, Any]]) -> Markup:
    """All points as an HTML table, those of the frontier marked."""
    return part("explore_table.html", "table", points)


def picture(points: Sequence[Mapping[str, Any]]) -> Markup:
    """Loss against risk as inline SVG, the points that no other beats in rings."""
    held = [p for p in points if p["loss"] is not None]
    if not held:
        return part("parts.html", "paragraph", "No release exists at any point of the grid.", "")
    left, top, wide, high = _FRAME
    most_risk, most_loss = (_round_end(more * max(p[n] for p in held)) for n, more in (("risk", 1.1), ("loss", 1.15)))
    ticks = [
        (left + wide * i // 5, top + high - high * i // 5, f"{most_risk * i / 5:.3g}", f"{most_loss * i / 5:.3g}")
        for i in range(6)
    ]
    named: list[tuple[int, float, float]] = []  # one word for points that all but coincide
    lines = []
    for i, (name, line) in enumerate(series(points).items()):
        drawn = []
        for p in line:
            x, y = left + wide * p["risk"] / most_risk, top + high * (1 - p["loss"] / most_loss)
            said = f"{name}, k = {p['k']}: loss {p['loss']:.4f}, risk {p['risk']:.3f}, {p['groups']:,} groups"
            free = all(p["k"] != k or abs(x - a) + abs(y - b) > 20 for k, a, b in named)
            if free:
                named.append((p["k"], x, y))
            word = f"k = {p['k']}" if free else ""
            drawn.append({"at": (x, y), "said": said, "frontier": p["frontier"], "named": word})
        lines.append({"name": name, "color": COLORS[i % len(COLORS)], "points": drawn})
    return part("pictures.html", "grid", _FRAME, top + high + 60 + 18 * len(lines), ticks, lines)


def _round_end(most: float) -> float:
    """The least end of an axis, no less than ``most``, of which every fifth is a number easy to read; 1 for nothing."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most / 5))
    return 5 * power * next(m for m in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if 5 * m * power >= most * (1 - 1e-9))


def page(explored: Mapping[str, Any]) -> str:
    """The whole page.  explored: ``Exploration.as_dict()``."""
    return rendered("explore.html", **explored, picture=picture(explored["points"]), asked_words=_asked(explored))


def _asked(explored: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was asked of every point, (what, how); nothing where the figures of an older version do not say it."""
    request = explored["request"]
    if not request:
        return []
    policy, grid = request["policy"], request["grid"]
    limits = {
        "one person": policy["person"] and f"the rows with one value of {policy['person']}",
        "mean risk": policy["max_average_risk"] and f"at most {policy['max_average_risk']:g}",
        "rows hidden whole": policy["max_suppressed"] and f"at most {100 * policy['max_suppressed']:g} %",
        "hierarchies": ", ".join(f"{name}: {held}" for name, held in policy["hierarchies"].items()),
        "weights": ", ".join(f"{name} {held:g}" for name, held in policy["weights"].items()),
        "range ends": ", ".join(f"{name} every {held}" for name, held in policy["range_step"].items()),
        "identifiers (left out)": ", ".join(policy["identifiers"]),
    }
    return [
        ("file", request["file"] or "a table in memory"),
        ("quasi-identifiers", ", ".join(policy["quasi_identifiers"])),
        ("sensitive", ", ".join(policy["sensitive"]) or "none"),
        ("tried", "; ".join(f"{name} = {', '.join(map(str, held))}" for name, held in grid.items())),
        ("also asked of every point", "; ".join(request["models"]) or "nothing: k and l alone"),
        *((what, how) for what, how in limits.items() if how),
        ("missing values", policy["missing"]),
        ("effort of each point", str(policy["effort"])),
    ]
