"""Compares a release with the original table: the same people, and only recoded cells differ.

Cost, loss, and cheap lower bounds are computed from the two tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import PolicyError
from shoal.judge.finding import CONSISTENT, RECOMPUTED, STATED, Finding, in_time_zone_of, pair_codes, typed_readings
from shoal.judge.tables.covering import ColumnNotation, ColumnPair, column
from shoal.judge.tables.matching import Shares, Side, assignable, dense, exposure, order_of_rows, side
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.policy import Policy
from shoal.model.privacy import LDiversity

MOST_WORK = 60_000_000  # limit of a bound's work: tuples times combinations of levels

Span = tuple[float, float]


def stars(column: ColumnPair) -> Span:
    """Starred cells of one column: fewest and most."""
    held = np.bincount(column.after, minlength=column.star.size)
    sure, maybe = int(held[column.star].sum()), int(held[column.blank].sum())
    return sure + max(maybe - _missing(column), 0), sure + maybe


def changed(column: ColumnPair) -> Span:
    """Cells of one column that aren't published unchanged: fewest and most."""
    held = np.bincount(column.after, minlength=column.star.size)
    sure = column.same < 0
    blank = max(int(held[column.blank].sum()) - _missing(column), 0)
    least = max(int(held[sure].sum()), int(held[sure & ~column.blank].sum()) + blank)
    return least, int(held[sure | column.blank | column.coarse].sum())


def _missing(column: ColumnPair) -> int:
    """Original rows without a value; a blank can be one of them."""
    known = column.same[column.blank]
    return int((column.before == known[0]).sum()) if known.size and known[0] >= 0 else 0


def changed_rows(columns: Sequence[ColumnPair], rows: int) -> Span:
    """Rows with a cell that isn't published unchanged: fewest and most."""
    sure, maybe, fewest = np.zeros(rows, bool), np.zeros(rows, bool), 0
    for c in columns:
        sure |= (c.same < 0)[c.after]
        maybe |= ((c.same < 0) | c.blank | c.coarse)[c.after]
        fewest = max(fewest, int(changed(c)[0]))
    return max(int(sure.sum()), fewest), int(maybe.sum())


def ncp(columns: Sequence[ColumnPair], weights: Mapping[str, float], rows: int) -> Span:
    """The mean weighted loss of a cell: least and most."""
    least = most = 0.0
    for c in columns:
        held = np.bincount(c.after, minlength=c.least.size)
        weight = float(weights.get(c.name, 1.0))
        least += weight * float((held * c.least).sum())
        most += weight * float((held * c.most).sum())
    cells = max(rows * len(columns), 1)
    return least / cells, most / cells


def least_loss(columns: Sequence[ColumnPair], weights: Mapping[str, float], k: int) -> float | None:
    """A lower bound of the mean weighted loss of a cell, over all recodings by levels into groups of k.

    None if expensive.

    All rows in a group agree at the published levels. So a row's loss is at least the least loss of a combination of
    levels at which k rows agree with it.
    """
    codes = [c.before for c in columns]
    key = dense(codes)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    codes = [c[first] for c in codes]
    ladders = [_classes_by_level(c, codes[j], float(weights.get(c.name, 1.0))) for j, c in enumerate(columns)]
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


def _classes_by_level(column: ColumnPair, code: np.ndarray, weight: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """(class, loss) of every tuple at each level; without a hierarchy, the levels are the value and the star."""
    if column.node is None:
        return [(code, np.zeros(code.size)), (np.zeros(code.size, np.int64), np.full(code.size, weight))]
    out = []
    for level, loss in zip(column.node, column.loss, strict=True):
        out.append((level[code].astype(np.int64), weight * loss[code]))
    return out


def fewest_tuples(frame: pl.DataFrame, quasi: Sequence[str], sensitive: str, l: int) -> int:
    """max(|R1|, l h(R1)) of Xiao, Yi, Tao 2010, reimplemented: lower the tallest pillar until a type is eligible."""
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


def farthest(columns: Sequence[ColumnPair], weights: Mapping[str, float]) -> Any:
    """A function that computes distances of (original tuples, published tuples) by the metric of clusters.

    Numbers and dates: the difference over the column's span. Others: 1 if they differ, or the share of the hierarchy's
    levels up to their common ancestor. Columns are combined by the Euclidean norm.
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
    """The share of a hierarchy's distinct levels on which two values differ."""
    kept = [np.arange(node.shape[1])]
    for level in node:
        if np.unique(level).size < np.unique(kept[-1]).size:
            kept.append(level)
    if np.unique(kept[-1]).size > 1 or len(kept) == 1:
        kept.append(np.zeros(node.shape[1], np.int64))
    return np.sum([level[a] != level[b] for level in kept], axis=0) / (len(kept) - 1)


@dataclass(frozen=True)
class StatedRelease:
    """The statements of a certificate about a release that can be checked with the original.

    policy, publish     the request; weights: per quasi-identifier
    unit, cost, bound   of the certificate
    stars, changed      cells of each quasi-identifier; blanks: text columns in which a star is written as a blank
    loss                "stars", "suppressed_tuples", "ncp"
    exposed             shares of groups that show a value of a single row: per column, and in any column
    sheet               the release is an Excel sheet
    order               of its rows: "kept" or how it was shuffled; None for a table of a server, which has none

    A public certificate has no cost, bound, loss, changed cells, or shares of the original. They are None, and the
    judge reports what it counts without a comparison.
    """

    policy: Policy
    publish: str
    weights: Mapping[str, float]
    unit: str
    cost: float | None
    bound: float | None
    stars: Mapping[str, int]
    changed: Mapping[str, int] | None
    blanks: frozenset[str]
    loss: Mapping[str, float] | None
    exposed: Shares | None
    sheet: bool
    order: str | None


def compare(
    original: pl.DataFrame,
    release: pl.DataFrame,
    claimed: StatedRelease,
    hierarchies: Mapping[str, Hierarchy | str],
    progress: Callable[[str, float | None], None],
) -> list[Finding]:
    """Decide whether the release is a recoding of the original, and recompute its loss.

    hierarchies  of the columns published by one; "labels", "intervals", or "tiles" if it was generated
    progress     called with (name of the step, None)
    """
    policy = claimed.policy
    findings = list(_columns(original, release, policy))
    same = original.height == release.height
    findings.append(
        Finding("original rows", same, f"{original.height:,} in the original, {release.height:,} in the release")
    )
    if not all(f.holds for f in findings):
        return findings
    original = original.with_columns(in_time_zone_of(original[c], release[c]) for c in release.columns)
    progress("comparing the other columns", None)
    exact = [c for c in original.columns if c in release.columns and c not in policy.quasi_identifiers]
    coded = [pair_codes(original[c], release[c], claimed.sheet) for c in exact]
    block = dense([np.concatenate(both) for both in coded]) if coded else np.zeros(2 * original.height, np.int64)
    before, after = np.split(np.unique(block, return_inverse=True)[1].reshape(-1), 2)
    equal = np.array_equal(np.bincount(before), np.bincount(after)) if before.size else True
    findings.append(Finding("other columns", equal, "unchanged, row by row" if equal else "changed"))
    progress("reading what was published", None)
    try:
        columns = [_column(original[n], release[n], claimed, hierarchies.get(n)) for n in policy.quasi_identifiers]
    except PolicyError:
        wrong = "a hierarchy does not cover the values of the original"
        return [*findings, Finding("rows match", False, wrong)]
    unread = [c.name for c in columns if _unread(c)]
    if unread:
        text = f"column {unread[0]!r} has a value that is no original one and no coarser form of any"
        findings.append(Finding("published values", False, text))
    elif equal:
        progress("matching rows one to one", None)
        kept = [c for c in columns if (c.same < 0).any() or c.blank.any() or c.coarse.any()]
        plain = [np.concatenate([c.before, c.same[c.after]]) for c in columns if c not in kept]
        block = dense([np.concatenate([before, after]), *plain])
        mine, theirs = np.split(np.unique(block, return_inverse=True)[1].reshape(-1), 2)
        if claimed.publish == "centers":
            findings.append(_centers(columns, before, after, claimed, hierarchies))
        else:
            findings.append(_match(kept, mine, theirs))
        if claimed.order is not None:
            findings.append(order_of_rows(mine, theirs, kept, claimed.order))
    progress("counting the loss", None)
    findings += _loss(columns, claimed, release.height, hierarchies)
    if claimed.publish == "ranges" and claimed.exposed is not None:
        findings.append(exposure(columns, claimed.exposed, policy.range_step))
    by_levels = claimed.publish in ("stars", "hierarchy") and not any(isinstance(h, str) for h in hierarchies.values())
    if claimed.bound is not None and claimed.cost is not None:
        findings.append(_bound(columns, original, claimed, claimed.bound, claimed.cost, by_levels))
    return findings


def _columns(original: pl.DataFrame, release: pl.DataFrame, policy: Policy) -> list[Finding]:
    """Whether the release has exactly the original's columns except the identifiers."""
    gone = [c for c in original.columns if c not in release.columns and c not in policy.identifiers]
    new = [c for c in release.columns if c not in original.columns]
    left = [c for c in policy.identifiers if c not in original.columns]
    if new:
        return [Finding("original", False, f"the original has no column {new[0]!r}")]
    if gone or left:
        what = f"column {gone[0]!r} of the original is gone" if gone else f"the original has no column {left[0]!r}"
        return [Finding("columns", False, what)]
    return [Finding("columns", True, "those of the original, the identifiers left out")]


def _column(
    before: pl.Series, after: pl.Series, claimed: StatedRelease, hierarchy: Hierarchy | str | None
) -> ColumnPair:
    name = before.name
    empty = after.dtype != pl.String or name in claimed.blanks or after.null_count() == len(after)
    blank = claimed.publish != "centers" and bool(claimed.stars.get(name)) and empty
    step, notation = claimed.policy.range_step.get(name), claimed.policy.notations.get(name)
    how = ColumnNotation(claimed.publish, claimed.policy.star, blank, hierarchy, claimed.sheet, step, notation)
    found = column(before, after, how)
    if before.dtype != pl.String or notation is not None or not _unread(found):
        return found
    for typed in typed_readings(before):
        try:
            other = column(typed, after, how)
        except PolicyError:  # a hierarchy of texts
            continue
        if not _unread(other):
            return other
    return found


def _unread(column: ColumnPair) -> int:
    """The number of published values that mean no original value."""
    return int((column.low > column.high).sum()) - np.unique(column.keys // max(column.values, 1)).size


def _match(columns: list[ColumnPair], before: np.ndarray, after: np.ndarray) -> Finding:
    left, right = side(before, [c.before for c in columns]), side(after, [c.after for c in columns])
    how = RECOMPUTED if all(c.how == RECOMPUTED for c in columns) else CONSISTENT
    if assignable(left, right, columns):
        return Finding("rows match", True, "every published row covers an original row, one to one", how)
    return Finding("rows match", False, "some published row is no coarser form of an original row", RECOMPUTED)


def _centers(
    columns: list[ColumnPair],
    before: np.ndarray,
    after: np.ndarray,
    claimed: StatedRelease,
    hierarchies: Mapping[str, Any],
) -> Finding:
    """Whether each center is an original record, and every row has a center within the largest certified radius."""
    tuples = dense([np.concatenate([c.before, c.same[c.after]]) for c in columns])
    mine, theirs = np.split(tuples, 2)
    if not np.isin(theirs, mine).all():
        return Finding("centers", False, "a center is no record of the original")
    if any(name not in hierarchies for name in claimed.policy.hierarchies):
        return Finding("centers", True, "every center is a record of the original; radius not checked", CONSISTENT)
    anything = [replace(c, low=np.zeros_like(c.low), high=np.full_like(c.high, c.values - 1)) for c in columns]
    if claimed.cost is None:
        text = "every center is a record of the original; how far rows are from theirs is in the record"
        return Finding("centers", True, text, CONSISTENT)
    away = farthest(columns, claimed.weights)
    most = claimed.cost * (1 + 1e-9) + 1e-12
    left: Side = side(before, [c.before for c in columns])
    right = side(after, [c.after for c in columns])
    good = assignable(left, right, anything, lambda a, b: away(a, b) <= most)
    text = f"every row has a center within {claimed.cost:.6g}, one to one, and every center is a record of the original"
    return Finding("centers", good, text if good else "some row is farther from every center than the certified cost")


def _loss(
    columns: list[ColumnPair], claimed: StatedRelease, rows: int, hierarchies: Mapping[str, Any]
) -> list[Finding]:
    """Stars, changed cells and rows, NCP, and cost, each compared with what can be counted."""
    if claimed.publish == "centers":
        text = "stars counted; how much a center hides depends on the clusters, which a release does not tell"
        right = (claimed.loss or {}).get("stars", 0) == 0 and not any(claimed.stars.values())
        return [Finding("loss", right, text, STATED if right else RECOMPUTED)]
    spans = {
        "stars": _total(columns, claimed, hierarchies),
        "suppressed_tuples": changed_rows(columns, rows),
        "ncp": ncp(columns, {}, rows),
    }
    unit = {"stars": "stars", "suppressed tuples": "suppressed_tuples"}.get(claimed.unit)
    paid = spans[unit] if unit else ncp(columns, claimed.weights, rows)
    if claimed.loss is None or claimed.changed is None or claimed.cost is None:
        text = f"{_shown(spans['stars'])} stars, NCP {_shown(spans['ncp'])}; the record, not given, states both"
        return [Finding("loss", True, text), Finding("cost", True, f"{_shown(paid)} {claimed.unit}")]
    cells = [(stated.get(c.name, 0), f(c)) for c in columns for stated, f in
             ((claimed.stars, stars), (claimed.changed, changed))]  # fmt: skip
    right = all(low <= value <= high for value, (low, high) in cells)
    exact = all(low == high for _, (low, high) in cells)
    out = [Finding("cells", right, "starred and changed cells of every column counted", _how(exact))]
    for name, span in spans.items():
        value = claimed.loss[name]
        out.append(Finding(f"loss, {name}", _inside(value, span), f"{_shown(span)} found, {value:.9g} certified",
                           _how(_is_exact(span))))  # fmt: skip
    good = _inside(claimed.cost, paid) and claimed.unit in ("stars", "suppressed tuples", "ncp")
    found = f"{_shown(paid)} {claimed.unit} found, {claimed.cost:.9g} certified"
    return [*out, Finding("cost", good, found, _how(_is_exact(paid)))]


def _total(columns: list[ColumnPair], claimed: StatedRelease, hierarchies: Mapping[str, Any]) -> tuple[float, float]:
    """Stars of the table: fewest and most. If a class below the root has the star's label, a star may be that class."""
    spans = [(stars(c), _label_is_star(hierarchies.get(c.name), claimed.policy.star)) for c in columns]
    return sum(low for (low, _), alike in spans if not alike), sum(high for (_, high), _ in spans)


def _label_is_star(hierarchy: Hierarchy | str | None, star: str) -> bool:
    """Whether a class below the root of a hierarchy may have the star's label."""
    if isinstance(hierarchy, Hierarchy) and hierarchy.kind == REGIONS:
        return False
    if not isinstance(hierarchy, Hierarchy) or hierarchy.kind != "rows":
        return hierarchy is not None
    return any(star in row[1:] for row in hierarchy.rows)


def _how(exact: bool) -> str:
    return RECOMPUTED if exact else CONSISTENT


def _is_exact(span: tuple[float, float]) -> bool:
    return math.isclose(span[0], span[1], rel_tol=1e-9, abs_tol=1e-12)


def _inside(value: float, span: tuple[float, float]) -> bool:
    slack = 1e-9 * max(abs(value), 1e-3)
    return span[0] - slack <= value <= span[1] + slack


def _shown(span: tuple[float, float]) -> str:
    return f"{span[1]:,.9g}" if _is_exact(span) else f"{span[0]:,.9g} to {span[1]:,.9g}"


def _bound(
    columns: list[ColumnPair],
    original: pl.DataFrame,
    claimed: StatedRelease,
    bound: float,
    cost: float,
    by_levels: bool,
) -> Finding:
    """The certified lower bound, compared with a cheap one of the judge where it applies."""
    if not bound:
        return Finding("bound", True, "0, which holds for every table")
    own: float | None = None
    if claimed.unit == "suppressed tuples":
        asked = [m.l for m in claimed.policy.privacy if isinstance(m, LDiversity)]
        if asked and len(claimed.policy.sensitive) == 1:
            own = fewest_tuples(original, claimed.policy.quasi_identifiers, claimed.policy.sensitive[0], max(asked))
    elif by_levels:
        k = max((m.k for m in claimed.policy.privacy if hasattr(m, "k") and m.applies_to != "population"), default=1)
        own = least_loss(columns, claimed.weights, k)
        if own is not None and claimed.unit == "stars":
            own = round(own * original.height * len(columns), 6)
    if own is None:
        return Finding("bound", True, f"{bound:.9g} certified, not recomputed", STATED)
    slack = 1e-9 * max(own, 1e-3)
    if bound <= own + slack:
        return Finding("bound", own <= cost + slack, f"at least {own:.9g} found, {bound:.9g} certified")
    return Finding("bound", own <= cost + slack, f"{own:.9g} found by a simpler bound, {bound:.9g} certified", STATED)
