"""Pictures: parts that all share, areas on a map (with remote ones in inset boxes), and small ones as inline SVG."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.model.metric import KM_PER_DEGREE
from shoal.paths import PICTURES, ending, is_page, is_picture
from shoal.report.outlines import Shape, dissolve, doubled_area
from shoal.report.parts import part
from shoal.report.words import share


def figure(path: Path, size: tuple[float, float], dpi: int = 130) -> Any:
    """An empty figure with a size in inches.

    PolicyError if the file isn't a picture, MissingDependencyError without matplotlib.
    """
    if not is_picture(path):
        raise PolicyError.unknown("kind of picture", path.suffix or path.name, PICTURES)
    MissingDependencyError.unless("matplotlib", "drawing a picture", "plot")
    from matplotlib.figure import Figure

    return Figure(figsize=size, dpi=dpi)


def marked_internal(made: Any) -> None:
    """Write below the panels of a figure that it shows figures of the original."""
    made.text(0.02, 0.01, "Internal: figures of the original. Do not publish it.", fontsize=8, color="#b3261e")
    made.tight_layout(rect=(0, 0.04, 1, 1))


def write_map(path: str | Path, page: Callable[[], str], plot: Callable[[Path], None]) -> None:
    """Write a map by the file's ending: an HTML page, or a picture; PolicyError for other endings."""
    path = Path(path)
    if is_page(path):
        path.write_text(page(), encoding="utf-8")
    elif is_picture(path):
        plot(path)
    else:
        raise PolicyError.unknown("kind of map", ending(path) or path.name, (*PICTURES, ".html"))


def framed(
    path: Path,
    focus: tuple[float, ...],
    longer: float,
    title_and_note: tuple[str, str],
    *,
    least: float = 0,
    margin: float = 0,
) -> tuple[Any, Any]:
    """A figure and its axes. focus: left, top, width, height; title_and_note: a title above it and a note below.

    longer, least, margin  inches: the longer side, the least width, and free space on the right
    """
    x0, y0, across, down = focus
    wide, tall = max(longer * across / max(across, down), least), longer * down / max(across, down)
    full = (wide + 0.4 + margin, tall + 1.0)
    made = figure(path, full, dpi=160)
    axes = made.add_axes((0.2 / full[0], 0.45 / full[1], wide / full[0], tall / full[1]))
    axes.set_xlim(x0, x0 + across)
    axes.set_ylim(y0 + down, y0)
    axes.set_title(title_and_note[0], fontsize=12, loc="left")
    if title_and_note[1]:
        made.text(0.2 / full[0], 0.15 / full[1], title_and_note[1], fontsize=8, color="#404040")
    return made, axes


def bar_length(width: float) -> float:
    """The longest round length (1, 2, or 5 times a power of ten) up to ``width``."""
    power = 10.0 ** np.floor(np.log10(width))
    return float(max(m * power for m in (1, 2, 5) if m * power <= width))


def scale_bar(axes: Any, focus: tuple[float, ...], drawn: float, text: str, right: bool = False) -> None:
    """A scale bar ``drawn`` units long in a lower corner of the focus, with its length in words, and a north arrow."""
    x0, y0, across, down = focus
    left = x0 + (0.98 * across - drawn if right else 0.02 * across)
    y = y0 + down - 0.02 * max(across, down)
    box = {"facecolor": "white", "alpha": 0.8, "lw": 0, "pad": 1.5}
    axes.text(left, y - 0.012 * max(across, down), f"{text}   N ↑", fontsize=9, bbox=box)
    axes.plot([left, left + drawn], [y, y], color="black", lw=2.5, solid_capstyle="butt")


SIDE = 1000.0  # the longer side of the drawing, in drawing units
COLORS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")  # Tol, light
STEPS = (1.25, 1.5, 2.0, 3.0, 5.0)  # multiples of k between the classes of the second coloring
INSETS = 5  # most inset boxes; with more, everything is drawn in its place
_ROW = 0.24  # height of the row of boxes, relative to the map
_GAP = 0.02  # between boxes, relative to the longer side

Place = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Areas in drawing units: every ring with x to the right, y down."""

    areas: list[Shape]
    outlines: list[Shape]
    width: float
    height: float
    scale: float  # drawing units per km, or per unit of the coordinates
    unit: str
    color: list[int]  # of each region, an index of COLORS
    shade: list[int]  # of each region, an index of SHADES
    focus: tuple[float, float, float, float]  # left, top, width, height of the part with most of the areas
    boxes: list[tuple[float, float, float, float]]  # left, top, width, height of the insets
    outside: int  # number of areas with their center outside the focus


def sheet_of(shapes: Sequence[Shape], labels: np.ndarray, weights: np.ndarray, k: int, geographic: bool) -> Sheet:
    """The areas, the outlines of their regions, and colors; InputError if nothing can be drawn."""
    shapes = [[[r for r in polygon if abs(doubled_area(r)) > 0] for polygon in shape] for shape in shapes]
    shapes = [[polygon for polygon in shape if polygon] for shape in shapes]
    drawn = [i for i, shape in enumerate(shapes) if shape]
    if not drawn:
        raise InputError("none of the areas has a polygon to draw; do the names in both files agree?")
    boxes = np.array([_box(shapes[i]) for i in drawn])
    if geographic:
        around = seam(boxes)
        shapes = [[[unwrapped(r, around) for r in polygon] for polygon in shape] for shape in shapes]
        boxes = np.array([_box(shapes[i]) for i in drawn])
    inside, frame = _focus(boxes)
    count = int(labels.max(initial=-1)) + 1
    outlines = [dissolve([shapes[i] for i in np.flatnonzero(labels == r).tolist()]) for r in range(count)]
    color = colors(shapes, labels, count)
    group = np.zeros(len(shapes), np.int64)
    group[drawn] = _groups(boxes, inside, frame)
    paper = _paper(shapes, group, frame, geographic)
    of_point = {tuple(r[0].tolist()): g for shape, g in zip(shapes, group.tolist(), strict=True)
                for polygon in shape for r in polygon}  # fmt: skip
    for shape, g in zip(shapes, group.tolist(), strict=True):
        of_point.update((point, g) for polygon in shape for r in polygon for point in map(tuple, r.tolist()))
    lines = [[[paper.places[of_point.get(tuple(r[0].tolist()), 0)](r) for r in polygon] for polygon in shape]
             for shape in outlines]  # fmt: skip
    total = np.bincount(labels[labels >= 0], weights=weights[labels >= 0], minlength=count)
    return Sheet(
        areas=[
            [[paper.places[g](r) for r in polygon] for polygon in shape]
            for shape, g in zip(shapes, group.tolist(), strict=True)
        ],
        outlines=lines,
        width=paper.width,
        height=paper.height,
        scale=paper.scale,
        unit="km" if geographic else "units",
        color=color,
        shade=np.searchsorted(STEPS, total / k, side="right").tolist(),
        focus=paper.focus,
        boxes=paper.boxes,
        outside=0 if paper.boxes else int((~inside).sum()),
    )


class _Paper(NamedTuple):
    """The transformation of each group of areas to drawing units, and the size of the drawing."""

    places: list[Place]
    width: float
    height: float
    scale: float
    focus: tuple[float, float, float, float]
    boxes: list[tuple[float, float, float, float]]


def _groups(boxes: np.ndarray, inside: np.ndarray, frame: np.ndarray) -> np.ndarray:
    """int64[n]: 0 for areas of the main map, 1, 2, ... for areas of one inset, the largest inset first.

    Areas outside the map are in one inset if the gap between their boxes is less than a tenth of its width.
    """
    out = np.flatnonzero(~inside)
    group = np.zeros(len(boxes), np.int64)
    if not len(out):
        return group
    near = 0.1 * max(frame[2] - frame[0], frame[3] - frame[1])
    waiting, found = set(out.tolist()), []
    while waiting:
        held = [waiting.pop()]
        for i in held:
            low, high = boxes[i, :2] - near, boxes[i, 2:] + near
            more = [j for j in waiting if (boxes[j, :2] <= high).all() and (boxes[j, 2:] >= low).all()]
            waiting.difference_update(more)
            held += more
        found.append(held)
    if len(found) > INSETS:
        return group
    for g, held in enumerate(sorted(found, key=lambda part: (-len(part), min(part))), 1):
        group[held] = g
    return group


def _paper(shapes: Sequence[Shape], group: np.ndarray, frame: np.ndarray, geographic: bool) -> _Paper:
    """The transformations of the main map and of a row of boxes below it.

    Each box has its own scale, at most the map's.
    """

    def bounds(place: Place, g: int) -> tuple[np.ndarray, np.ndarray]:
        held = [shape for shape, own in zip(shapes, group.tolist(), strict=True) if own == g and shape]
        flat = np.array([_box([[place(r) for r in polygon] for polygon in shape]) for shape in held])
        return flat[:, :2].min(axis=0), flat[:, 2:].max(axis=0)

    number = int(group.max(initial=0))
    first = albers(frame) if geographic else _flat
    low, high = bounds(first, 0)
    pad = 0.02 * max(*(high - low), 1e-12)
    low, high = low - pad, high + pad
    scale = SIDE / max(*(high - low), 1e-12)
    width, height = ((high - low) * scale).tolist()
    places, rects = [_onto(first, low, high, scale, 0.0, 0.0)], []
    left, row = 0.0, _ROW * max(height, width / 3)
    for g in range(1, number + 1):
        own = [shape for shape, at in zip(shapes, group.tolist(), strict=True) if at == g and shape]
        box = np.array([_box(shape) for shape in own])
        place = albers(np.concatenate([box[:, :2].min(axis=0), box[:, 2:].max(axis=0)])) if geographic else _flat
        least, most = bounds(place, g)
        edge = 0.05 * max(*(most - least), 1e-12)
        least, most = least - edge, most + edge
        free = (width - (number - 1) * _GAP * SIDE) / number
        own_scale = min(scale, row / (most - least)[1], free / (most - least)[0])
        wide, tall = ((most - least) * own_scale).tolist()
        top = height + _GAP * SIDE + row - tall
        places.append(_onto(place, least, most, own_scale, left, top))
        rects.append((left, top, wide, tall))
        left += wide + _GAP * SIDE
    whole = height + (_GAP * SIDE + row if rects else 0.0)
    focus = (0.0, 0.0, width, whole)
    if not number:
        focus = _part(places[0], shapes, frame, width, height)
    return _Paper(places, width, whole, float(scale), focus, rects)


def _onto(place: Place, low: np.ndarray, high: np.ndarray, scale: float, left: float, top: float) -> Place:
    """The projection, followed by conversion to drawing units with y down and the upper left corner at (left, top)."""

    def paper(ring: np.ndarray) -> np.ndarray:
        flat = place(ring)
        return np.column_stack([left + (flat[:, 0] - low[0]) * scale, top + (high[1] - flat[:, 1]) * scale])

    return paper


def _part(
    paper: Place, shapes: Sequence[Shape], frame: np.ndarray, width: float, height: float
) -> tuple[float, float, float, float]:
    """The part of the drawing that contains the areas within the frame."""
    found = []
    for shape in shapes:
        if shape:
            box = _box(shape)
            middle = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            if frame[0] <= middle[0] <= frame[2] and frame[1] <= middle[1] <= frame[3]:
                found.append(_box([[paper(r) for r in polygon] for polygon in shape]))
    near = np.array(found)
    (left, top), (right, bottom) = near[:, :2].min(axis=0).tolist(), near[:, 2:].max(axis=0).tolist()
    edge = 0.02 * max(right - left, bottom - top)
    x0, y0 = max(0.0, left - edge), max(0.0, top - edge)
    return x0, y0, min(width, right + edge) - x0, min(height, bottom + edge) - y0


def _box(shape: Shape) -> tuple[float, float, float, float]:
    points = np.concatenate([ring for polygon in shape for ring in polygon])
    return (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())


def _focus(boxes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[n]: the areas close to most others, and the box around them; all areas if leaving some out gains little."""
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    low, high = np.quantile(middle, [0.01, 0.99], axis=0)
    wide = 0.3 * np.maximum(high - low, 1e-12)
    inside = ((middle >= low - wide) & (middle <= high + wide)).all(axis=1)

    def around(held: np.ndarray) -> np.ndarray:
        return np.concatenate([boxes[held, :2].min(axis=0), boxes[held, 2:].max(axis=0)])

    every = np.ones(len(boxes), np.bool_)
    some, whole = around(inside), around(every)
    if (some[2:] - some[:2]).prod() > 0.5 * (whole[2:] - whole[:2]).prod():
        return every, whole
    return inside, some


def seam(boxes: np.ndarray) -> float:
    """The longitude in the middle of the widest interval without areas, where the globe is cut."""
    starts = np.sort(((boxes[:, 0] + boxes[:, 2]) / 2) % 360)
    gaps = np.diff(np.append(starts, starts[0] + 360))
    at = int(gaps.argmax())
    return float((starts[at] + gaps[at] / 2) % 360)


def unwrapped(ring: np.ndarray, seam: float) -> np.ndarray:
    """Longitudes counted eastwards from the seam. A whole ring is shifted by its first point, so that it isn't split.

    The shift is a whole number of turns, so a point that two rings share remains the same float in both.
    """
    turns = 360.0 * np.ceil((seam - ring[0, 0]) / 360.0)
    return np.column_stack([ring[:, 0] + turns, ring[:, 1]])


def _flat(ring: np.ndarray) -> np.ndarray:
    return ring


def albers(frame: np.ndarray) -> Place:
    """Albers' equal-area conic projection for a frame (west, south, east, north), in km."""
    west, south, east, north = frame
    one, two = np.radians([south + (north - south) / 6, north - (north - south) / 6])
    middle = np.radians((south + north) / 2)
    n = (np.sin(one) + np.sin(two)) / 2
    radius = KM_PER_DEGREE * 180 / np.pi
    around = (west + east) / 2
    if abs(n) < 0.02:  # at the equator the cone degenerates to a cylinder

        def cylinder(ring: np.ndarray) -> np.ndarray:
            x = np.radians(ring[:, 0] - around) * np.cos(one)
            return np.column_stack([x, np.sin(np.radians(ring[:, 1])) / np.cos(one)]) * radius

        return cylinder
    c = np.cos(one) ** 2 + 2 * n * np.sin(one)
    start = np.sqrt(c - 2 * n * np.sin(middle)) / n

    def cone(ring: np.ndarray) -> np.ndarray:
        rho = np.sqrt(np.maximum(c - 2 * n * np.sin(np.radians(ring[:, 1])), 0)) / n
        theta = n * np.radians(ring[:, 0] - around)
        return np.column_stack([rho * np.sin(theta), start - rho * np.cos(theta)]) * radius

    return cone


def colors(shapes: Sequence[Shape], labels: np.ndarray, count: int) -> list[int]:
    """A color for each region that differs from those of its neighbors if there are enough colors.

    All are used about equally.
    """
    owner: dict[tuple[float, float], set[int]] = {}
    for shape, label in zip(shapes, labels.tolist(), strict=True):
        if label >= 0:
            for polygon in shape:
                for ring in polygon:
                    for x, y in ring.tolist():
                        owner.setdefault((x, y), set()).add(label)
    near: list[set[int]] = [set() for _ in range(count)]
    for meeting in owner.values():
        for r in meeting:
            near[r] |= meeting
    color = [-1] * count
    used = [0] * len(COLORS)
    for r in sorted(range(count), key=lambda r: -len(near[r])):
        taken = [color[s] for s in near[r] if s != r]
        color[r] = min(range(len(COLORS)), key=lambda c: (taken.count(c), used[c]))
        used[color[r]] += 1
    return color


_SHOWN = (
    ("distance", "distance from the center of the region, root mean square"),
    ("variance", "variance inside regions"),
)
INK, OTHER = "#14688a", "#b3261e"


def draw_region_choices(path: Path, rows: Sequence[Mapping[str, Any]], unit: str) -> None:
    """Draw a line for distances and one for variances, by the file's ending: .png, .svg, or .pdf.

    rows  of ``shoal.regions.choices``: regions, at_most, distance, variance
    unit  of distances
    """
    if not rows:
        raise PolicyError("no number of regions could be drawn; give others, or lower k")
    shown = [(name, title) for name, title in _SHOWN if rows[0][name] is not None]
    if len(shown) == len(_SHOWN):  # regions optimized for one measure don't show how good the other could be
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
    marked_internal(made)
    made.savefig(path)


BINS = 40  # most bars of a histogram
_CURVE = (70, 14, 600, 240)  # left, top, width, height of the curve of levels


def paired_bars(bars: Sequence[Mapping[str, Any]], hidden: int, rows: int, title: str) -> Markup:
    """Rows before and after as pairs of bars, with the numbers in words; None means not stated."""
    peak = max([1.0, hidden, *(max(b["before"] or 0, b["after"]) for b in bars)])
    known = any(b["before"] is not None for b in bars)
    lines: list[tuple[str, list[tuple[str, float]], str]] = []
    for b in bars:
        before = "not stated → " if b["before"] is None else f"about {b['before']:,} → "
        lengths = [("b", 100 * (b["before"] or 0) / peak), ("a", 100 * b["after"] / peak)]
        lines.append((b["label"], lengths, f"{before if known else ''}{b['after']:,.0f}"))
    if hidden:
        label = f"{hidden:,} ({share(hidden, rows)})"
        lines.append(("hidden", [("h", 100 * hidden / peak)], label))
    key = part("pictures.html", "key", known)
    return part("pictures.html", "bars", key, f"rows by {title}, before and after", lines)


def class_sizes(sizes: Mapping[str, int], what: tuple[str, str] = ("rows", "group")) -> Markup:
    """A histogram of class sizes, weighted by rows; large sizes share bins of doubling width.

    what  the unit of a size, and the name of a class
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
    """A table of counts as a heat map with shades up to ``peak``; None is a dash."""

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
    """Choices of levels as a curve: stars on the x axis, the width of all other values on the y axis.

    One choice is marked.
    """
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


ROWS = 8  # most lines of the text
COLUMNS = 400  # most bars of the drawing
DWARFED = 8  # if the largest group is this many times the median, the scale is logarithmic


def as_text(loads: Sequence[int], k: int) -> list[str]:
    """The number of groups by multiple of k: one line per range, from k up; ranges grow if one group is very large."""
    least, most = min(loads), max(loads)
    starts = [least + row * max(1, -(-(most - least + 1) // ROWS)) for row in range(ROWS)]
    if _largest_hides_others(loads, k):
        starts = sorted(
            {math.ceil(max(least, 1) * ((most + 1) / max(least, 1)) ** (row / ROWS)) for row in range(ROWS)}
        )
        starts[0] = least
    starts = [low for low in starts if low <= most]
    numbers = [0] * len(starts)
    for load in loads:
        numbers[bisect_right(starts, load) - 1] += 1
    lines = []
    for low, high, number in zip(starts, [*(s - 1 for s in starts[1:]), most], numbers, strict=True):
        bar = "█" * max(round(30 * number / max(numbers)), number > 0)
        lines.append(f"  {low:>12,} .. {high:<12,} {low / k:7.2f} k  {bar} {number:,}")
    return lines


def _largest_hides_others(loads: Sequence[int], k: int) -> bool:
    """Whether the largest group is so large that other bars would be invisible."""
    return max(loads) > DWARFED * max(sorted(loads)[len(loads) // 2], k)


def as_svg(loads: Sequence[int], k: int, bound: int | None, title: str) -> str:
    """Bars in descending order, with a line at k and, if given, one at the lower bound of the largest group.

    More than COLUMNS groups are drawn as COLUMNS bars, each the largest group of its share. If one group is much larger
    than the others, heights are logarithmic, and the drawing states this.
    """
    falling = sorted(loads, reverse=True)
    shown = falling[:: -(-len(falling) // COLUMNS)]
    wide, tall, left, top = 820, 300, 90, 50
    top_value = max(falling[0], k)
    step = wide / len(shown)
    dwarfed = _largest_hides_others(loads, k)
    floor = min(falling[-1], k) / 2  # lower end of the logarithmic scale

    def y(value: float) -> float:
        share = math.log(value / floor) / math.log(top_value / floor) if dwarfed else value / top_value
        return top + tall * (1 - share)

    bars = [(left + i * step, y(load), max(step * 0.9, 0.4), top + tall - y(load)) for i, load in enumerate(shown)]
    lines = [
        (y(value), shift, f"{name} {value:,}", color, dash)
        for value, name, color, dash, shift in ((k, "k", "#b00020", "", 12), (bound, "least", "#1b5e20", "5 4", -3))
        if value is not None
    ]
    description = f"{len(falling):,} groups of {falling[-1]:,} to {falling[0]:,} records"
    description += "" if bound is None else f"; no answer has all below {bound:,}"
    axis = "groups, largest first" + ("; each doubling is as high as another" if dwarfed else "")
    if dwarfed and all(abs(y(top_value) - height) > 14 for height, *_ in lines):
        lines.append((y(top_value), 4, f"{top_value:,}", "", ""))
    return part("pictures.html", "loads", title, description, axis, (left, top, wide, tall), bars, lines)
