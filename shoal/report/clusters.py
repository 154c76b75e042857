"""Pictures of clusters: where they are, how wide, and what other r and epsilon would cost.

Only what a release of centers states is drawn: centers, spreads, sizes.  No record is.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from shoal.errors import MissingDependencyError, PolicyError
from shoal.model.metric import EARTH_KM, Category, Number, Place

INK = "#14688a"
BAD = "#b3261e"


class Shown(Protocol):
    """What is drawn of one feature: its centers and, in its own units, the farthest member of each."""

    @property
    def feature(self) -> Number | Category | Place: ...
    @property
    def value(self) -> np.ndarray: ...
    @property
    def spread(self) -> np.ndarray: ...


class Form(Protocol):
    """Published clusters."""

    @property
    def centers(self) -> Sequence[Any]: ...
    @property
    def records(self) -> np.ndarray: ...


def draw(path: Path, form: Form, radii: np.ndarray, unit: str, *, title: str = "Clusters", note: str = "") -> None:
    """Clusters in two dimensions, where the metric has two that are numbers or a place, beside their radii.

    radii  float64[m] in the metric's unit
    """
    figure, axes = _figure(path, 2)
    plane = _plane(form.centers)
    if plane is None:
        axes[0].text(0.5, 0.5, "no two columns of numbers to draw", ha="center", va="center", fontsize=9)
        axes[0].set_axis_off()
    else:
        x, y, wide, tall, names = plane
        _ellipses(axes[0], x, y, wide, tall, np.asarray(form.records))
        axes[0].set_xlabel(names[0])
        axes[0].set_ylabel(names[1])
        if any(isinstance(c.feature, Place) for c in form.centers):
            middle = np.clip(abs(float(np.median(y))) if y.size else 0.0, 0, 85)
            axes[0].set_aspect(1 / np.cos(np.radians(middle)))
    axes[0].set_title(title, fontsize=11, loc="left")
    _radii(axes[1], np.asarray(radii), np.asarray(form.records), unit)
    if note:
        figure.text(0.02, 0.01, note, fontsize=8, color="#404040")
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    figure.savefig(path)


def draw_choices(
    path: Path, rows: Sequence[tuple[int, float, float, float, float]], unit: str, cost_unit: str | None = None
) -> None:
    """Cost and mean distance against r, a line per epsilon, with the bound under each cost.

    rows       (r, epsilon, cost, lower bound, mean distance)
    cost_unit  the cost's unit where it is not a radius
    """
    if not rows:
        raise PolicyError("there is no answer to draw; give rows of r, epsilon, cost, bound and mean distance")
    radius = cost_unit is None or cost_unit == unit
    figure, axes = _figure(path, 2)
    shares = sorted({row[1] for row in rows})
    for i, share in enumerate(shares):
        mine = sorted(row for row in rows if row[1] == share)
        r = [row[0] for row in mine]
        color = f"C{i % 10}"
        axes[0].plot(r, [row[2] for row in mine], "o-", color=color, label=f"{share:g} left out")
        axes[0].plot(r, [row[3] for row in mine], ":", color=color)
        axes[1].plot(r, [row[4] for row in mine], "o-", color=color, label=f"{share:g} left out")
    first = "largest radius" if radius else "sum of size times radius"
    panels = (
        (axes[0], f"{first} (dotted: no answer below)", unit if radius else cost_unit),
        (axes[1], "mean distance", unit),
    )
    for axis, what, measure in panels:
        axis.set_xlabel("r")
        axis.set_ylabel(measure)
        axis.set_title(what, fontsize=11, loc="left")
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(path)


def _figure(path: Path, panels: int) -> tuple[Any, Any]:
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise PolicyError.unknown("kind of picture", path.suffix or path.name, (".png", ".svg", ".pdf"))
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0 * panels, 5.0), dpi=130)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(1, panels)


def _plane(
    centers: Sequence[Shown],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, tuple[str, str]] | None:
    """(x, y, half width, half height, names) of the place, else of the first two columns of numbers."""
    for c in centers:
        if isinstance(c.feature, Place):
            first, second = np.asarray(c.value, np.float64).T
            if c.feature.geometry == "plane":
                return first, second, c.spread, c.spread, ("first coordinate", "second coordinate")
            tall = np.degrees(c.spread / EARTH_KM)
            wide = np.minimum(tall / np.maximum(np.cos(np.radians(first)), 0.01), 180.0)
            return second, first, wide, tall, ("longitude", "latitude")
    numbers = [c for c in centers if isinstance(c.feature, Number)][:2]
    if len(numbers) < 2:
        return None
    a, b = numbers
    return a.value, b.value, a.spread, b.spread, (a.feature.name, b.feature.name)


def _ellipses(axes: Any, x: np.ndarray, y: np.ndarray, wide: np.ndarray, tall: np.ndarray, records: np.ndarray) -> None:
    from matplotlib.collections import EllipseCollection

    size = np.clip(3000.0 / max(x.size, 1), 0.2, 12.0)
    axes.add_collection(
        EllipseCollection(
            2 * wide, 2 * tall, np.zeros(x.size), units="xy", offsets=np.stack([x, y], axis=1),
            offset_transform=axes.transData, facecolors=INK, edgecolors=INK, alpha=0.15, linewidths=0.4,
        )
    )  # fmt: skip
    axes.scatter(x, y, s=size * np.clip(records / np.median(records), 1, 6), color=INK, linewidths=0)
    axes.autoscale_view()
    axes.margins(0.05)


def _radii(axes: Any, radii: np.ndarray, records: np.ndarray, unit: str) -> None:
    """Share of the records in clusters no wider than x."""
    order = np.argsort(radii)
    share = np.cumsum(records[order]) / max(int(records.sum()), 1)
    axes.step(radii[order], 100 * share, where="post", color=INK)
    if radii.size:
        axes.axvline(float(radii.max()), color=BAD, lw=1, label=f"largest {radii.max():.4g}")
        middle = float(radii[order][np.searchsorted(share, 0.5)])
        axes.axvline(middle, color="#5b6b7b", lw=1, ls="--", label=f"half of the records {middle:.4g}")
        axes.legend(frameon=False, fontsize=9, loc="lower right")
        if radii.min() > 0 and radii.max() > 20 * middle:
            axes.set_xscale("log")
    axes.set_xlabel(f"radius of the cluster, {unit}")
    axes.set_ylabel("% of the records")
    axes.set_title("How wide", fontsize=11, loc="left")
