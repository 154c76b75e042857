"""What pictures and maps of every problem have alike: a figure, its frame, a scale, and the file's ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import MissingDependencyError, PolicyError

PICTURES = (".png", ".svg", ".pdf")


def figure(path: Path, size: tuple[float, float], dpi: int = 130) -> Any:
    """An empty figure of so many inches; PolicyError for a file that is no picture, MissingDependencyError without
    matplotlib."""
    if path.suffix.lower() not in PICTURES:
        raise PolicyError.unknown("kind of picture", path.suffix or path.name, PICTURES)
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.figure import Figure

    return Figure(figsize=size, dpi=dpi)


def write_map(path: str | Path, page: Callable[[], str], plot: Callable[[Path], None]) -> None:
    """A map by the file's ending: a page of HTML, or a picture; PolicyError for any other ending."""
    path = Path(path)
    if path.suffix.lower() in (".html", ".htm"):
        path.write_text(page(), encoding="utf-8")
    elif path.suffix.lower() in PICTURES:
        plot(path)
    else:
        raise PolicyError.unknown("kind of map", path.suffix.lower() or path.name, (*PICTURES, ".html"))


def framed(
    path: Path, focus: tuple[float, ...], longer: float, said: tuple[str, str], *, least: float = 0, beside: float = 0
) -> tuple[Any, Any]:
    """A figure and its axes: ``focus`` (left, top, width, height); said: a title above it and a note below.

    longer, least, beside  inches: the longer side, the least width, and room on the right
    """
    x0, y0, across, down = focus
    wide, tall = max(longer * across / max(across, down), least), longer * down / max(across, down)
    full = (wide + 0.4 + beside, tall + 1.0)
    made = figure(path, full, dpi=160)
    axes = made.add_axes((0.2 / full[0], 0.45 / full[1], wide / full[0], tall / full[1]))
    axes.set_xlim(x0, x0 + across)
    axes.set_ylim(y0 + down, y0)
    axes.set_title(said[0], fontsize=12, loc="left")
    if said[1]:
        made.text(0.2 / full[0], 0.15 / full[1], said[1], fontsize=8, color="#404040")
    return made, axes


def bar_length(width: float) -> float:
    """The longest round length (1, 2, 5 times a power of ten) up to ``width``."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(max(m * power for m in (1, 2, 5) if m * power <= width))


def scale_bar(axes: Any, focus: tuple[float, ...], drawn: float, text: str, right: bool = False) -> None:
    """A bar ``drawn`` units long in a lower corner of the focus, its length in words above it, and where north is."""
    x0, y0, across, down = focus
    left = x0 + (0.98 * across - drawn if right else 0.02 * across)
    y = y0 + down - 0.02 * max(across, down)
    box = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 1.5}
    axes.text(left, y - 0.012 * max(across, down), f"{text}   N ↑", fontsize=9, bbox=box)
    axes.plot([left, left + drawn], [y, y], color="black", lw=2.5, solid_capstyle="butt")
