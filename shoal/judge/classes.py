"""Classes of a hierarchy in a release, without the original: each is one, and they lose what is certified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.judge.finding import Finding
from shoal.model.hierarchy import Hierarchy

_ROUNDING = 1e-9


class Span(NamedTuple):
    """Fewest and most; they differ where a text is a value and a class, or a class of two levels."""

    least: float
    most: float


class Counted(NamedTuple):
    """A column: whether all that it shows is known, its cells that are no value as it came, its loss added up."""

    known: bool
    changed: Span
    loss: Span


def counted(column: pl.Series, counts: np.ndarray, hierarchy: Hierarchy, star: str) -> Counted | None:
    """A column published by a hierarchy of rows; None for builders, which list no values, and where it shows no texts.

    counts  int64[n]  rows of each cell

    O(n + rows of the hierarchy).
    """
    column = column.cast(pl.String) if isinstance(column.dtype, (pl.Categorical, pl.Enum)) else column
    if not hierarchy.rows or column.dtype != pl.String:
        return None
    leaves = {row[0] for row in hierarchy.rows}
    losses: dict[str, list[float]] = {text: [0.0] for text in leaves}
    for level in zip(*(row[1:] for row in hierarchy.rows), strict=True):
        for text, under in Counter(level).items():
            losses.setdefault(text, []).append((under - 1) / max(len(hierarchy.rows) - 1, 1))
    losses[star] = [1.0]
    held = pl.DataFrame({"text": column, "rows": counts}).drop_nulls("text").filter(pl.col("text") != "")
    known, bounds = True, np.zeros(4)
    for text, rows in held.group_by("text").agg(pl.col("rows").sum()).iter_rows():
        if text not in losses:
            known = False
            continue
        own = losses[text]
        surely, maybe = text not in leaves or text == star, max(own) > 0 or text not in leaves
        bounds += rows * np.array([surely, maybe, min(own), max(own)])
    return Counted(known, Span(*bounds[:2]), Span(*bounds[2:]))


def judge_classes(
    cells: pl.DataFrame,
    counts: np.ndarray,
    trees: Mapping[str, Hierarchy],
    star: str,
    stars: Mapping[str, int],
    changed: Mapping[str, int],
    ncp: float | None,
) -> list[Finding]:
    """Findings about the columns whose hierarchy is at hand, and about the loss where each column's is.

    stars, changed  cells certified of every quasi-identifier
    ncp             the loss certified; None where some column's hierarchy is not at hand
    """
    found = {name: counted(cells[name], counts, tree, star) for name, tree in trees.items() if name in changed}
    findings = []
    for name, column in found.items():
        if column is None:
            continue
        if not column.known:
            text = f"column {name!r} shows what is neither a value nor a class of its hierarchy"
            findings.append(Finding(f"classes of {name}", False, text))
            continue
        right = bool(column.changed.least <= changed[name] <= column.changed.most)
        text = f"{column.changed.least:.0f} cells are classes or stars, {changed[name]} certified as changed"
        findings.append(Finding(f"classes of {name}", right, text))
    judged = [c for c in found.values() if c is not None and c.known]
    bare = sum(stars[name] for name in changed if name not in found)
    cells_of_all = max(int(counts.sum()) * len(changed), 1)
    if ncp is not None and judged and len(judged) == len(found):
        least, most = ((sum(c.loss[i] for c in judged) + bare) / cells_of_all for i in (0, 1))
        right = bool(least - _ROUNDING <= ncp <= most + _ROUNDING)
        findings.append(Finding("loss of the classes", right, f"NCP {least:.6g}, {ncp:.6g} certified"))
    return findings
