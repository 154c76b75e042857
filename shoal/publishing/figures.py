"""Every figure of a report, from what is published, the certificate and counts that at least k rows share."""

from __future__ import annotations

import datetime
import math
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.model.meaning import Members, place
from shoal.utility.decode import Column, Decoded, ends_of
from shoal.version import __version__

BINS = 12
ROWS = 10


def figures(release: Any) -> dict[str, Any]:
    """Plain values for the page and for JSON; no value that fewer than k rows of the release show.  O(rows)."""
    decoded = Decoded.shown(release.table, release.policy, release.stars)
    least = least_rows(release)
    policy = release.policy.describe()
    return {
        "made_by": {"shoal": __version__, "python": platform.python_version(), "polars": pl.__version__},
        "made_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "source": None if release.from_path is None else Path(release.from_path).name,
        "written": release.__dict__.get("written"),
        "release": {**release.as_dict(), "loss": dict(release.loss)},
        "audit": release.audit.as_dict(),
        "policy": policy,
        "hierarchies": release._hierarchies(),
        "before": dict(release.before),
        "least": least,
        "step": step_of(release.rows, least),
        "columns": [_column(release, decoded, name, least) for name in release.policy.grouped],
        "shown": shown_rows(release, decoded.table, least),
    }


def least_rows(release: Any) -> int:
    """How many rows must share what is shown: k, or the smallest group where another model keeps rows together."""
    models = [m for m in release.policy.privacy if m.speaks != "population"]
    asked = [m.k for m in models if isinstance(getattr(m, "k", None), int)]
    return max([2, *asked] if asked else [2, release.audit.smallest_class])


def step_of(rows: int, least: int) -> int:
    """To what counts of the original are rounded: k rows, in large tables a hundredth of them."""
    return max(least, rows // 100)


def _column(release: Any, decoded: Decoded, name: str, least: int) -> dict[str, Any]:
    column = decoded.columns[name]
    rows = np.bincount(column.where, minlength=len(column.cells))
    hidden = int(rows[[c.everything for c in column.cells]].sum())
    told = next(i for i, c in enumerate(release.expected.columns) if c.name == name)
    histogram = release.expected.histogram
    coded = histogram.quasi[:, told]
    before = np.bincount(coded, weights=histogram.count, minlength=histogram.quasi_sizes[told]).astype(np.int64)
    step = step_of(release.rows, least)
    safe = not release.changed[name] or release.changed[name] >= 4 * step
    return {
        "name": name,
        "before_shown": safe,
        "before": release.before["distinct_values"].get(name, 0),
        "after": len(column.cells),
        "changed": release.changed[name],
        "hidden": hidden,
        "weight": float(release.policy.weights.get(name, 1.0)),
        "ceiling": release.policy.max_level.get(name),
        "distribution": distribution(column, rows, (release.own[name], before), least, step if safe else 0),
    }


def distribution(
    column: Column, rows: np.ndarray, own: tuple[Sequence[str | None], np.ndarray], least: int, step: int
) -> list[dict[str, Any]]:
    """Bars over what the release itself names: {"label", "before", "after"}, and one for all other values.

    rows   of each cell of the release; own: the original's values and their rows
    least  values that the release shows on fewer rows are among the others
    step   counts of the original are rounded to its multiples, so that no difference tells whose value was hidden, and
           None below it; 0: None everywhere, for a column of which so little is hidden that a difference would tell

    ``after`` spreads a cell over its members; stars are left out, a report counts them apart.
    """
    bins = _spans(column, rows, least) if column.ruler is not None else _names(column, rows, least)
    after = np.zeros(len(bins) + 1)
    for cell, n in zip(column.cells, rows.tolist(), strict=True):
        if not cell.everything:
            ends = ends_of(cell, column)[:2]
            share = np.array([_share(cell, ends, b, column) for b in bins])
            after[:-1] += n * share
            after[-1] += n * max(1 - share.sum(), 0.0)
    counted = np.zeros(len(bins) + 1, np.int64)
    for value, n in zip(own[0], own[1].tolist(), strict=True):
        at = next((i for i, b in enumerate(bins) if _inside(value, b, column)), len(bins))
        counted[at] += n
    out = [
        {"label": label, "before": round_to(int(n), step), "after": round(float(a), 3)}
        for (label, *_), n, a in zip([*bins, ("all other values",)], counted, after, strict=True)
    ]
    return out if out[-1]["after"] or counted[-1] else out[:-1]


def round_to(n: int, step: int) -> int | None:
    """The nearest multiple; None for fewer than ``step``, nothing included, and where there is no step."""
    return None if not step or n < step else step * round(n / step)


Bin = tuple[str, Any, Any]  # label; a value and None, or low and high (without it) of a span


def _names(column: Column, rows: np.ndarray, least: int) -> list[Bin]:
    """The values that most rows of the release show or may show."""
    weight = dict.fromkeys(column.known, 0.0)
    for cell, n in zip(column.cells, rows.tolist(), strict=True):
        if not cell.everything and cell.named:
            for value in cell.named:
                weight[value] += n / len(cell.named)
    often = sorted((v for v, w in weight.items() if w >= least), key=lambda v: (-weight[v], str(v)))
    return [("missing" if v is None else v, v, None) for v in often[:BINS]]


def _spans(column: Column, rows: np.ndarray, least: int) -> list[Bin]:
    """Round steps over what the release shows, wide as 1, 2 or 5 times a power of ten; days in steps alike."""
    shown = [ends_of(c, column)[:2] for c, n in zip(column.cells, rows, strict=True) if n >= least and not c.everything]
    ends = np.array(shown).reshape(-1, 2)
    ends = ends[np.isfinite(ends).all(axis=1)]
    if not ends.size:
        return []
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    exact = column.whole or column.ruler == "date"
    step = _step((high - low) / BINS)
    step = max(step, 1.0) if exact else step
    start = math.floor(low / step)
    stop = math.floor(high / step) + 1
    return [(_named(i * step, (i + 1) * step, column, exact), i * step, (i + 1) * step) for i in range(start, stop)]


def _step(least: float) -> float:
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def _named(low: float, high: float, column: Column, exact: bool) -> str:
    if column.ruler in ("date", "moment"):
        return str(datetime.date(1970, 1, 1) + datetime.timedelta(days=math.floor(low)))
    if exact:
        return f"{low:.0f}" if high - low == 1 else f"{low:.0f} to {high - 1:.0f}"
    return f"{low:.6g} up to {high:.6g}"


def _inside(value: str | None, found: Bin, column: Column) -> bool:
    if found[2] is None:
        return bool(value == found[1])
    at = None if value is None else place(value, column.ruler)
    return at is not None and found[1] <= at < found[2]


def _share(cell: Members, ends: tuple[float, float], found: Bin, column: Column) -> float:
    """The share of a cell's members in a bin."""
    if found[2] is None:
        if cell.low is None and cell.pattern is None:
            return float(found[1] in cell.named) / max(len(cell.named), 1)
        held = cell.held(column.known, column.at)
        return float(found[1] in cell) / max(int(held.sum()), 1)
    low, high = ends
    if not np.isfinite(low + high):
        return 0.0
    wide = 1.0 if column.whole or column.ruler == "date" else 0.0
    if high + wide == low:
        return float(found[1] <= low < found[2])
    return float(max(min(high + wide, found[2]) - max(low, found[1]), 0.0) / (high + wide - low))


def shown_rows(release: Any, frame: pl.DataFrame, least: int) -> dict[str, Any]:
    """Ten rows as they are published, each of another group; a sensitive value that few rows hold is not among them."""
    grouped, sensitive = list(release.policy.grouped), list(release.policy.sensitive)
    if not frame.height:
        return {"columns": [*grouped, *sensitive], "rows": [], "groups": []}
    number = "__shoal_rows"
    groups = frame.group_by(grouped, maintain_order=True).agg(pl.len().alias(number), *(pl.first(c) for c in sensitive))
    groups = groups.filter(pl.col(number) >= least).gather_every(max(1, groups.height // ROWS)).head(ROWS)
    rows: list[list[str]] = []
    common: Mapping[str, set[Any]] = {
        c: set(frame[c].value_counts(name=number).filter(pl.col(number) >= least)[c].to_list()) for c in sensitive
    }
    for line in groups.iter_rows(named=True):
        values = [_text(line[c], release, c) for c in grouped]
        rows.append(values + [_plain(line[c]) if line[c] in common[c] else "held by few" for c in sensitive])
    return {"columns": [*grouped, *sensitive], "rows": rows, "groups": groups[number].to_list()}


def _text(value: Any, release: Any, column: str) -> str:
    """A missing number is a star where the column has stars."""
    if value is None and release.stars.get(column):
        return release.policy.star
    return _plain(value)


def _plain(value: Any) -> str:
    return "missing" if value is None else str(value)
