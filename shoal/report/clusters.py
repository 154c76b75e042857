"""Pictures of clusters: where they are, how wide, and what other r and epsilon would cost.

Only what a release of centers states is drawn: centers, spreads, sizes.  No record is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from shoal.errors import PolicyError
from shoal.model.metric import EARTH_KM, Category, Number, Place, rounded_up
from shoal.report import canvas

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


PAIRS = 6  # of columns, at most as many are drawn
NAMED = 12  # values of a category, at most as many are written on an axis


class Axis(NamedTuple):
    """One number of every center, how far its cluster reaches along it, and the names of places on the axis."""

    name: str
    value: np.ndarray
    reach: np.ndarray
    named: Sequence[str] = ()


def draw(
    path: Path, form: Form, radii: np.ndarray, unit: str, *, title: str = "Clusters", note: str = "",
    texts: Sequence[Sequence[str | None]] = (),
) -> None:  # fmt: skip
    """Clusters in every pair of columns, at most six pairs, beside their radii.

    radii  float64[m] in the metric's unit
    texts  per feature the values of a category, in the order of their codes
    """
    axes_of = _axes(form.centers, texts)
    pairs = list(combinations(axes_of, 2))[:PAIRS] or [(axes_of[0], axes_of[0])]
    figure, panels = _figure(path, len(pairs) + 1)
    for panel, (a, b) in zip(panels, pairs, strict=False):
        _pair(panel, a, b, np.asarray(form.records))
        if (a.name, b.name) == ("longitude", "latitude"):
            middle = np.clip(abs(float(np.median(b.value))) if b.value.size else 0.0, 0, 85)
            panel.set_aspect(1 / np.cos(np.radians(middle)))
    panels[0].set_title(title, fontsize=11, loc="left")
    _radii(panels[len(pairs)], np.asarray(radii), np.asarray(form.records), unit)
    for panel in panels[len(pairs) + 1 :]:
        panel.set_axis_off()
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
    across = min(panels, 3)
    down = -(-panels // across)
    made = canvas.figure(path, (6.0 * across, 5.0 * down))
    return made, np.asarray(made.subplots(down, across)).reshape(-1)


def _axes(centers: Sequence[Shown], texts: Sequence[Sequence[str | None]]) -> list[Axis]:
    """The axes of all features, those of places first."""
    places, others = [], []
    for i, c in enumerate(centers):
        spread = np.array([rounded_up(x) for x in np.asarray(c.spread, np.float64).tolist()])
        if isinstance(c.feature, Place):
            first, second = np.asarray(c.value, np.float64).T
            if c.feature.geometry == "plane":
                places += [Axis("first coordinate", first, spread), Axis("second coordinate", second, spread)]
                continue
            tall = np.degrees(spread / EARTH_KM)
            wide = np.minimum(tall / np.maximum(np.cos(np.radians(first)), 0.01), 180.0)
            places += [Axis("longitude", second, wide), Axis("latitude", first, tall)]
        elif isinstance(c.feature, Number):
            others.append(Axis(c.feature.name, np.asarray(c.value, np.float64), spread))
        else:
            others.append(_named(c, texts[i] if i < len(texts) else ()))
    return places + others


def _named(center: Shown, texts: Sequence[str | None]) -> Axis:
    """A category along an axis: a place for every value that is a center."""
    codes, at = np.unique(np.asarray(center.value), return_inverse=True)
    shown = ["missing" if texts[c] is None else str(texts[c]) for c in codes.tolist()] if len(texts) else codes.tolist()
    reach = np.where(np.asarray(center.spread) > 0, 0.45, 0.1)
    return Axis(center.feature.name, at.reshape(-1).astype(np.float64), reach, [str(x)[:20] for x in shown])


def _pair(axes: Any, a: Axis, b: Axis, records: np.ndarray) -> None:
    """Two columns: ellipses of numbers, a strip for each value of a category, counts where both are categories."""
    if a.named and b.named:
        _counts(axes, a, b, records)
    elif a.named or b.named:
        _strips(axes, a, b)
    else:
        _ellipses(axes, a, b, records)
    axes.set_xlabel(a.name)
    axes.set_ylabel(b.name)
    if 0 < len(a.named) <= NAMED:
        axes.set_xticks(range(len(a.named)), a.named, rotation=45, ha="right", fontsize=8)
    if 0 < len(b.named) <= NAMED:
        axes.set_yticks(range(len(b.named)), b.named, fontsize=8)
    for axis, limits in ((a, axes.set_xlim), (b, axes.set_ylim)):
        if axis.named:
            limits(-0.6, len(axis.named) - 0.4)


def _ellipses(axes: Any, a: Axis, b: Axis, records: np.ndarray) -> None:
    """How far each cluster reaches, the fainter the more of them lie over each other, and its center."""
    from matplotlib.collections import EllipseCollection

    x, y = a.value, b.value
    size = np.clip(3000.0 / max(x.size, 1), 0.2, 12.0)
    span = [max(float(np.ptp(v)), 1e-12) if v.size else 1.0 for v in (x, y)]
    layers = float(np.pi * (a.reach * b.reach).sum() / (span[0] * span[1]))  # over a point, on average
    alpha = float(np.clip(0.4 / max(layers, 1e-9), 0.004, 0.15))
    axes.add_collection(
        EllipseCollection(
            2 * a.reach, 2 * b.reach, np.zeros(x.size), units="xy", offsets=np.stack([x, y], axis=1),
            offset_transform=axes.transData, facecolors=INK, edgecolors="none", alpha=alpha,
        )
    )  # fmt: skip
    axes.scatter(x, y, s=size * np.clip(records / max(float(np.median(records)) if x.size else 1, 1), 1, 6), color=INK,
                 linewidths=0)  # fmt: skip
    axes.autoscale_view()
    axes.margins(0.05)


def _strips(axes: Any, a: Axis, b: Axis) -> None:
    """A line for each cluster, as long as it reaches, in the strip of its value, one line above the other."""
    from matplotlib.collections import LineCollection

    named, number = (a, b) if a.named else (b, a)
    height = np.zeros(len(named.value))
    for value in np.unique(named.value):
        at = np.flatnonzero(named.value == value)
        order = at[np.argsort(number.value[at], kind="stable")]
        height[order] = value + 0.7 * ((np.arange(len(at)) + 0.5) / len(at) - 0.5)
    low, high = number.value - number.reach, number.value + number.reach
    sides = [np.column_stack([v, height]) if named is b else np.column_stack([height, v]) for v in (low, high)]
    axes.add_collection(LineCollection(list(np.stack(sides, axis=1)), colors=INK, alpha=0.35, linewidths=0.6))
    middle = (number.value, height) if named is b else (height, number.value)
    axes.scatter(*middle, s=float(np.clip(1500 / max(len(height), 1), 0.3, 6)), color=INK, linewidths=0)
    axes.autoscale_view()


def _counts(axes: Any, a: Axis, b: Axis, records: np.ndarray) -> None:
    """A disc for each pair of values, its area by the records of the clusters there, and their number of clusters."""
    where, at = np.unique(np.stack([a.value, b.value], axis=1), axis=0, return_inverse=True)
    held, number = np.bincount(at.ravel(), weights=records), np.bincount(at.ravel())
    room = 40.0 * 40 * 36 / max(len(a.named), len(b.named), 4) ** 2
    axes.scatter(*where.T, s=room * held / max(held.max(initial=1), 1), color=INK, alpha=0.35, linewidths=0)
    if len(where) <= 60:
        for (x, y), n in zip(where.tolist(), number.tolist(), strict=True):
            axes.text(x, y, f"{n:,}", ha="center", va="center", fontsize=8)
    axes.set_title("clusters; discs by records", fontsize=9, loc="right")


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
