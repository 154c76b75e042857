"""Every figure of a report, from what is published, the certificate and counts that at least k rows share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.publishing.bins import distribution, pictured
from shoal.publishing.origin import made_now
from shoal.publishing.tables.pairs import pairs
from shoal.publishing.tables.patterns import at_risk, by_loss, together
from shoal.publishing.tables.statement import hierarchies
from shoal.utility.decode import Decoded

ROWS = 10


def figures(release: Any) -> dict[str, Any]:
    """Plain values for the page and for JSON; no value that fewer than k rows of the release show.  O(rows)."""
    decoded = Decoded.shown(release.table, release.policy, release.stars)
    least = least_rows(release)
    policy = release.policy.describe()
    step = step_of(release.rows, least)
    columns = [_column(release, decoded, name, least) for name in release.policy.grouped]
    view = release._placement.view()
    lost, sizes = view.lost, view.sizes
    for j, column in enumerate(columns):
        column["loss"] = float(lost[:, j] @ sizes) / max(release.rows, 1)
    return {
        "internal": True,
        **made_now(),
        "source": None if release._placement.path is None else Path(release._placement.path).name,
        "written": release._later.written,
        "release": {**release.as_dict(), "loss": dict(release.loss)},
        "audit": release.audit.as_dict(),
        "policy": policy,
        "hierarchies": hierarchies(release),
        "before": dict(release.before),
        "least": least,
        "step": step,
        "columns": columns,
        "together": together(release._placement.expected, least),
        "by_loss": by_loss(view),
        "at_risk": at_risk(release.audit.sizes),
        "pairs": pairs(release, decoded, columns, least, step),
        "shown": shown_rows(release, decoded.table, least),
    }


def least_rows(release: Any) -> int:
    """How many rows must share what is shown: k, or the smallest group where another model keeps rows together."""
    models = [m for m in release.policy.privacy if m.speaks != "population"]
    asked = [m.k for m in models if isinstance(getattr(m, "k", None), int)]
    return max([2, *asked] if asked else [2, release.audit.smallest_class])


def step_of(rows: int, least: int) -> int:
    """To what counts of the original are rounded: k rows and at least 3, in large tables a hundredth of them.

    Of the numbers that are rounded to 2 one is not below 2, so that it would be told exactly.
    """
    return max(least, 3, rows // 100)


def _column(release: Any, decoded: Decoded, name: str, least: int) -> dict[str, Any]:
    column = pictured(decoded.columns[name], name)
    rows = np.bincount(column.where, minlength=len(column.cells))
    hidden = int(rows[[c.everything for c in column.cells]].sum())
    at = next(i for i, c in enumerate(release._placement.expected.columns) if c.name == name)
    histogram = release._placement.expected.histogram
    coded = histogram.quasi[:, at]
    before = np.bincount(coded, weights=histogram.count, minlength=histogram.quasi_sizes[at]).astype(np.int64)
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
        "distribution": distribution(column, rows, (release._placement.own[name], before), least, step if safe else 0),
    }


def shown_rows(release: Any, frame: pl.DataFrame, least: int) -> dict[str, Any]:
    """Ten rows as they are published, each of another group; a sensitive value that few rows hold is not among them."""
    grouped, sensitive = list(release.policy.grouped), list(release.policy.sensitive)
    if not frame.height:
        return {"columns": [*grouped, *sensitive], "rows": [], "groups": []}
    short = [f"c{i}" for i in range(len(grouped) + len(sensitive))]  # "*" would stand for all columns
    frame = pl.DataFrame([frame[n].alias(c) for n, c in zip([*grouped, *sensitive], short, strict=True)])
    by, held = short[: len(grouped)], short[len(grouped) :]
    groups = frame.group_by(by).agg(pl.len().alias("rows")).filter(pl.col("rows") >= least)
    groups = groups.sort([pl.col(c).cast(pl.String) for c in by])  # the same in whatever order the rows stand
    groups = groups.gather_every(max(1, groups.height // ROWS)).head(ROWS).with_row_index("group")
    rows_of = frame.join(groups, on=by, how="inner", nulls_equal=True).sort([pl.col(c).cast(pl.String) for c in held])
    first = rows_of.group_by("group", maintain_order=True).agg(pl.first("rows"), *(pl.first(c) for c in short))
    groups = first.sort("group")
    rows: list[list[str]] = []
    common: Mapping[str, set[Any]] = {
        c: set(frame[c].value_counts(name="rows").filter(pl.col("rows") >= least)[c].to_list()) for c in held
    }
    for line in groups.iter_rows(named=True):
        values = [_text(line[c], release, n) for n, c in zip(grouped, by, strict=True)]
        rows.append(values + [_plain(line[c]) if line[c] in common[c] else "held by few" for c in held])
    return {"columns": [*grouped, *sensitive], "rows": rows, "groups": groups["rows"].to_list()}


def _text(value: Any, release: Any, column: str) -> str:
    """A missing number is a star where the column has stars."""
    if value is None and release.stars.get(column):
        return release.policy.star
    return _plain(value)


def _plain(value: Any) -> str:
    return "missing" if value is None else str(value)
