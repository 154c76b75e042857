"""Cost, loss and cheap bounds from the two tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from shoal.judge.originals.covering import Column
from shoal.judge.originals.matching import dense

MOST_WORK = 60_000_000  # tuples times combinations of levels that a bound may look at

Span = tuple[float, float]


def stars(column: Column) -> Span:
    """Starred cells of one column: fewest and most."""
    held = np.bincount(column.after, minlength=column.star.size)
    sure, maybe = int(held[column.star].sum()), int(held[column.blank].sum())
    return sure + max(maybe - _missing(column), 0), sure + maybe


def changed(column: Column) -> Span:
    """Cells of one column that are not published as they were."""
    held = np.bincount(column.after, minlength=column.star.size)
    sure = column.same < 0
    least = max(int(held[sure].sum()), int(held[sure & ~column.blank].sum()) + _blank_more(column, held))
    return least, int(held[sure | column.blank | column.coarse].sum())


def _missing(column: Column) -> int:
    """Original rows without a value, which a blank may be."""
    known = column.same[column.blank]
    return int((column.before == known[0]).sum()) if known.size and known[0] >= 0 else 0


def _blank_more(column: Column, held: np.ndarray) -> int:
    return max(int(held[column.blank].sum()) - _missing(column), 0)


def changed_rows(columns: Sequence[Column], rows: int) -> Span:
    """Rows with a cell that is not published as it was."""
    sure, maybe, fewest = np.zeros(rows, bool), np.zeros(rows, bool), 0
    for c in columns:
        sure |= (c.same < 0)[c.after]
        maybe |= ((c.same < 0) | c.blank | c.coarse)[c.after]
        fewest = max(fewest, int(changed(c)[0]))
    return max(int(sure.sum()), fewest), int(maybe.sum())


def ncp(columns: Sequence[Column], weights: Mapping[str, float], rows: int) -> Span:
    """Mean weighted loss per cell."""
    least = most = 0.0
    for c in columns:
        held = np.bincount(c.after, minlength=c.least.size)
        weight = float(weights.get(c.name, 1.0))
        least += weight * float((held * c.least).sum())
        most += weight * float((held * c.most).sum())
    cells = max(rows * len(columns), 1)
    return least / cells, most / cells


def least_loss(columns: Sequence[Column], weights: Mapping[str, float], k: int) -> float | None:
    """A lower bound on the mean weighted loss per cell of every release by levels in groups of k; None where not cheap.

    The rows published alike with a row agree with it at the levels published, so a row pays at least the least loss of
    a combination of levels at which k rows agree with it.
    """
    codes = [c.before for c in columns]
    key = dense(codes)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    codes = [c[first] for c in codes]
    ladders = [_ladder(c, codes[j], float(weights.get(c.name, 1.0))) for j, c in enumerate(columns)]
    if np.prod([len(x) for x in ladders], dtype=float) * max(first.size, 1) * len(columns) > MOST_WORK:
        return None
    best = np.full(first.size, np.inf)
    for levels in product(*ladders):
        group = dense([node for node, _ in levels])
        _, number = np.unique(group, return_inverse=True)
        held = np.bincount(number.reshape(-1), weights=count)[number.reshape(-1)]
        paid = np.sum([loss for _, loss in levels], axis=0)
        best = np.where(held >= k, np.minimum(best, paid), best)
    if not np.isfinite(best).all():
        return None
    return float((best * count).sum()) / max(int(count.sum()) * len(columns), 1)


def _ladder(column: Column, code: np.ndarray, weight: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """(class, loss) of every tuple at each level; without a hierarchy the value or a star."""
    if column.node is None:
        return [(code, np.zeros(code.size)), (np.zeros(code.size, np.int64), np.full(code.size, weight))]
    out = []
    for level, loss in zip(column.node, column.loss, strict=True):
        out.append((level[code].astype(np.int64), weight * loss[code]))
    return out


def fewest_tuples(frame: pl.DataFrame, quasi: Sequence[str], sensitive: str, l: int) -> int:
    """max(|R1|, l h(R1)) of Xiao, Yi, Tao 2010 by their own loop: lower the tallest pillar until a type is eligible."""
    counts: dict[int, dict[int, int]] = {}
    codes = [_ranks(frame[n]) for n in quasi]
    both = np.stack([dense(codes), _ranks(frame[sensitive])], axis=1)
    found, number = np.unique(both, axis=0, return_counts=True)
    for (key, value), n in zip(found.tolist(), number.tolist(), strict=True):
        counts.setdefault(key, {})[value] = n
    removed: dict[Any, int] = {}
    for held in counts.values():
        height = max(held.values())
        while height and l * height > sum(min(n, height) for n in held.values()):
            height -= 1
        for value, n in held.items():
            removed[value] = removed.get(value, 0) + max(n - height, 0)
    return max(sum(removed.values()), l * max(removed.values(), default=0))


def _ranks(series: pl.Series) -> np.ndarray:
    return series.rank("dense").fill_null(0).cast(pl.Int64).to_numpy()


def farthest(columns: Sequence[Column], weights: Mapping[str, float]) -> Any:
    """A function of (original tuples, published tuples) that gives their distance, as clusters measure it.

    Numbers and dates by their distance over the column's span, others 1 apart or as far up as their hierarchy's levels
    first agree; joined by the root of the sum of squares.
    """

    def between(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        total = np.zeros(left.shape[0])
        for j, c in enumerate(columns):
            a, b = left[:, j], c.same[right[:, j]]
            weight = float(weights.get(c.name, 1.0))
            if c.node is not None:
                apart = _heights(c.node, a, b)
            elif c.position is not None:
                span = max(float(c.position[-1] - c.position[0]), 1e-12)
                apart = np.abs(c.position[a] - c.position[b]) / span
            else:
                apart = (a != b).astype(float)
            total += (weight * apart) ** 2
        return np.sqrt(total)

    return between


def _heights(node: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Share of the hierarchy's different levels on which two values differ."""
    kept = [np.arange(node.shape[1])]
    for level in node:
        if np.unique(level).size < np.unique(kept[-1]).size:
            kept.append(level)
    if np.unique(kept[-1]).size > 1 or len(kept) == 1:
        kept.append(np.zeros(node.shape[1], np.int64))
    return np.sum([level[a] != level[b] for level in kept], axis=0) / (len(kept) - 1)
