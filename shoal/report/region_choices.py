"""A picture of how compact and how alike regions are at every number of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import PolicyError
from shoal.report.canvas import figure

_SHOWN = (
    ("distance", "distance from the center of the region, root mean square"),
    ("variance", "variance inside regions"),
)
INK, OTHER = "#14688a", "#b3261e"


def draw(path: Path, rows: Sequence[Mapping[str, Any]], unit: str) -> None:
    """A line for distances and one for variances, by the file's ending: .png, .svg or .pdf.

    rows  of ``shoal.regions.choices``: regions, at_most, distance, variance;  unit  of distances
    """
    if not rows:
        raise PolicyError("no number of regions could be drawn; give others, or lower k")
    shown = [(name, title) for name, title in _SHOWN if rows[0][name] is not None]
    if len(shown) == len(_SHOWN):  # regions chosen for one end are no witness of how well the other can be met
        shown[0] = "distance", "of the same regions, distance from their center"
        shown.reverse()
    made = figure(Path(path), (5.5 * len(shown), 4.2))
    axes = made.subplots(1, len(shown), squeeze=False)[0]
    for panel, (name, title) in zip(axes, shown, strict=True):
        points = sorted((row["regions"], row[name]) for row in rows)
        panel.plot(*zip(*points, strict=True), "o-", color=INK)
        most = rows[0]["at_most"]
        panel.axvline(most, color=OTHER, lw=1, ls="--", label=f"no more than {most:,} exist")
        panel.set_title(title, fontsize=10, loc="left")
        panel.set_xlabel("regions")
        panel.set_ylabel(unit if name == "distance" else "share")
        panel.set_ylim(bottom=0)
        panel.legend(frameon=False, fontsize=9)
    made.tight_layout()
    made.savefig(path)
