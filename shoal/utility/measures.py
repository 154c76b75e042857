"""What can still be computed from a release: counts, marginals, correlations, what a classifier learns."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import as_text
from shoal.utility.foreign import ORDER, Domain, Spread

QUERIES = 400


class Read(NamedTuple):
    """A release understood: per quasi-identifier its cells, and the cell of every row; hierarchies it is read by."""

    frame: pl.DataFrame
    spreads: list[Spread]
    cells: list[np.ndarray]
    trees: Mapping[str, Any]


def coded(texts: pl.Series, values: Sequence[str | None]) -> np.ndarray:
    """int64[rows]: the place of every text among the values; -1 for others."""
    pool = pl.DataFrame({"x": pl.Series(list(values), dtype=pl.String), "i": np.arange(len(values))})
    joined = texts.alias("x").to_frame().join(pool, on="x", how="left", nulls_equal=True, maintain_order="left")
    return joined["i"].fill_null(-1).to_numpy().astype(np.int64)


class Queries(NamedTuple):
    """Counts over two columns: (column, column, low, high, low, high) and the truth of each."""

    asked: list[tuple[int, int, int, int, int, int]]
    truth: list[int]


def queries(domains: Sequence[Domain], codes: Sequence[np.ndarray], seed: int) -> Queries:
    """Random ones, each with a truth of at least 1 % of the rows."""
    rng = np.random.default_rng(seed)
    rows = codes[0].size
    least = max(10, rows // 100)
    pairs = list(itertools.combinations(range(len(codes)), 2)) or [(0, 0)]
    asked: list[tuple[int, int, int, int, int, int]] = []
    truth: list[int] = []
    for _ in range(20 * QUERIES):
        if len(asked) == QUERIES:
            break
        a, b = pairs[rng.integers(len(pairs))]
        ends = []
        for j in (a, b):
            size = len(domains[j].values)
            wide = int(rng.integers(1, max(size // 2, 1) + 1))
            low = int(rng.integers(0, size - wide + 1)) if size else 0
            ends += [low, low + wide]
        if a == b:  # one column: one range, which is all that the estimate looks at
            ends[2:] = ends[:2]
        inside = (codes[a] >= ends[0]) & (codes[a] < ends[1]) & (codes[b] >= ends[2]) & (codes[b] < ends[3])
        if inside.sum() >= least:
            asked.append((a, b, ends[0], ends[1], ends[2], ends[3]))
            truth.append(int(inside.sum()))
    return Queries(asked, truth)


def query_error(read: Read, queries: Queries) -> dict[str, Any]:
    """Of |estimate - truth| / truth the median and the 90 % quantile."""
    errors = []
    for (a, b, *ends), truth in zip(queries.asked, queries.truth, strict=True):
        share = read.spreads[a].share(ends[0], ends[1])[read.cells[a]]
        if a != b:
            share = share * read.spreads[b].share(ends[2], ends[3])[read.cells[b]]
        errors.append(abs(float(share.sum()) - truth) / truth)
    if not errors:
        return {"median": None, "p90": None, "queries": 0}
    return {"median": float(np.median(errors)), "p90": float(np.quantile(errors, 0.9)), "queries": len(errors)}


def marginal_distance(
    read: Read, domains: Sequence[Domain], codes: Sequence[np.ndarray], names: Sequence[str]
) -> dict[str, Any]:
    """Total variation between the original's shares and those expected from the release."""
    out = {}
    for name, s, c, d, own in zip(names, read.spreads, read.cells, domains, codes, strict=True):
        size = len(d.values)
        here = s.marginal(np.bincount(c, minlength=s.size.size), size)
        truth = np.bincount(own, minlength=size)
        out[name] = float(0.5 * np.abs(here / max(here.sum(), 1) - truth / max(truth.sum(), 1)).sum())
    return {"columns": out, "mean": sum(out.values()) / len(out)}


def correlation_change(read: Read, domains: Sequence[Domain], codes: Sequence[np.ndarray]) -> float | None:
    """Mean absolute change of Pearson's correlation over pairs of number columns; None with fewer than two."""
    numeric = [j for j, d in enumerate(domains) if d.at is not None and d.ruler != ORDER and np.nanstd(d.at) > 0]
    changes = []
    for a, b in itertools.combinations(numeric, 2):
        before = _pearson(*(_filled(domains[j].at)[codes[j]] for j in (a, b)))
        after = _pearson(*(read.spreads[j].means(domains[j].at)[read.cells[j]] for j in (a, b)))  # type: ignore[arg-type]
        changes.append(abs(before - after))
    return float(np.mean(changes)) if changes else None


def _filled(at: np.ndarray | None) -> np.ndarray:
    assert at is not None  # only number columns are asked
    return np.where(np.isnan(at), np.nanmean(at), at)


def _pearson(x: np.ndarray, y: np.ndarray) -> float:
    """0 where a column does not vary."""
    if x.size < 2 or not x.std() or not y.std():
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def learns() -> bool:
    """Whether there is something to learn with."""
    return find_spec("sklearn") is not None


def classifier(
    read: Read, domains: Sequence[Domain], exact: pl.DataFrame, codes: Sequence[np.ndarray], target: str | None
) -> dict[str, Any] | None:
    """Logistic regression trained on the release, judged on exact rows; None without scikit-learn or a target.

    codes  of the exact rows, a column each
    """
    if target is None or not learns():
        return None
    from shoal.utility.learning import learned

    train, test = [], []
    for d, s, c, code in zip(domains, read.spreads, read.cells, codes, strict=True):
        if d.at is not None:
            scale = np.nanstd(d.at) or 1.0
            train.append((s.means(d.at) / scale)[c][:, None])
            filled = _filled(d.at)
            test.append((np.append(filled, filled.mean()) / scale)[code][:, None])  # -1: a value the original lacks
            continue
        shares = np.column_stack([s.share(v, v + 1) for v in range(min(len(d.values), 200))])
        train.append(shares[c])
        test.append(np.eye(len(d.values) + 1, shares.shape[1] + 1)[code, : shares.shape[1]])
    targets = (as_text(read.frame[target]), as_text(exact[target]))
    return learned(np.hstack(train), np.hstack(test), *(t.fill_null("missing").to_numpy() for t in targets))
