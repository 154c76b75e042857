"""The figures of the report on a table: from the release, the certificate, and counts that at least k rows share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import as_text
from shoal.engines.prepared import notes
from shoal.engines.recognize import CODES, named_words
from shoal.engines.table import Counted
from shoal.engines.unassigned import dangerous
from shoal.model.histogram import narrowest
from shoal.model.loss import View
from shoal.model.members import Members, places
from shoal.model.notation import RangeOf, SetOf, of_days, of_numbers, parse
from shoal.publishing.decode import Decoded, DecodedColumn
from shoal.publishing.documents import made_now
from shoal.publishing.tables.statement import hierarchies

PATTERNS = 12
_SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
_THRESHOLDS = (1 / 3, 0.2, 0.1, 0.05)  # one in 3, 5, 10, 20


def together(expected: Any, least: int) -> dict[str, Any]:
    """The most frequent combinations of columns that are coarser or hidden in the same rows; the others are summed.

    expected  what every group publishes, an ``Expected``
    least     combinations on fewer rows are among the others

    Computed from the published groups, so it reveals no more than the release. O(groups columns).
    """
    sizes = expected.partition.sizes
    names = [c.name for c in expected.columns]
    state = np.zeros((sizes.size, len(names)), np.int8)
    for j, column in enumerate(expected.columns):
        coarser = 1 + np.asarray(expected.starred[j], np.int8)
        state[:, j] = np.where(expected.plain[j], 0, coarser)[column.index]
    found, which = np.unique(state, axis=0, return_inverse=True)
    rows = np.bincount(which.reshape(-1), weights=sizes, minlength=len(found)).astype(np.int64)
    order = [i for i in np.lexsort((np.arange(rows.size), -rows)).tolist() if rows[i] >= least][:PATTERNS]
    lines, named = [], 0
    for i in order:
        of = {kind: [n for n, s in zip(names, found[i], strict=True) if s == kind] for kind in (1, 2)}
        lines.append({"hidden": of[2], "coarser": of[1], "rows": int(rows[i])})
        named += int(rows[i])
    return {"combinations": lines, "others": int(rows.sum()) - named}


def by_loss(view: View) -> list[dict[str, Any]]:
    """The number of classes and rows by the mean loss of their values: none, up to a tenth, up to a quarter, and so on.

    Groups with equal published values are one class, as everywhere in a report.
    """
    _, first, name = np.unique(view.class_of, return_index=True, return_inverse=True)
    sizes = np.bincount(name, weights=view.sizes, minlength=first.size)
    mean = view.lost[first].mean(axis=1) if view.lost.size else np.zeros(first.size)
    at = np.searchsorted(np.array(_SHARES) + 1e-12, mean)
    at = np.minimum(at, len(_SHARES) - 1)
    groups, rows = (np.bincount(at, weights=w, minlength=len(_SHARES)) for w in (None, sizes))
    return [
        {"above": low, "most": most, "groups": int(g), "rows": int(r)}
        for low, most, g, r in zip((0.0, *_SHARES[:-1]), _SHARES, groups, rows, strict=True)
    ]


def at_risk(sizes: Mapping[int, int]) -> list[dict[str, float]]:
    """The share of rows whose risk, one over the rows of their class, exceeds each of the usual thresholds.

    sizes  rows of a class -> number of such classes
    """
    rows = max(sum(size * n for size, n in sizes.items()), 1)
    return [
        {"above": most, "rows": sum(size * n for size, n in sizes.items() if size * most < 1 - 1e-9) / rows}
        for most in _THRESHOLDS
    ]


def figures_of_original(counted: Counted) -> dict[str, Any]:
    """Rows, classes, uniques, and dangerous columns, from the cells of the original. O(m log m)."""
    of_type, first = counted.histogram.types
    sizes = np.bincount(of_type, weights=counted.histogram.count, minlength=first.size).astype(np.int64)
    codes = [narrowest(counted.histogram.quasi[:, j], c.size)[first] for j, c in enumerate(counted.quasi)]
    together = dangerous(codes, [c.name for c in counted.quasi], sizes)
    return {
        "rows": counted.histogram.rows,
        "classes": int(first.size),
        "smallest_class": int(sizes.min()) if first.size else 0,
        "uniques": int((sizes == 1).sum()),
        "at_risk": _at_risk(sizes),
        "distinct_values": {c.name: c.size for c in [*counted.quasi, *counted.sensitive]},
        "notes": list(notes(counted)),
        "dangerous": [d.as_dict() for d in together],
    }


def _at_risk(sizes: np.ndarray) -> list[dict[str, float]]:
    """The shares of rows at risk by threshold, rounded to a thousandth, so that they reveal nothing about one or two
    rows."""
    values, classes = np.unique(sizes, return_counts=True)
    found = at_risk(dict(zip(values.tolist(), classes.tolist(), strict=True)))
    return [{**one, "rows": round(one["rows"], 3)} for one in found]


COLUMN_BINS = 12
Bin = tuple[str, Any, Any]  # label; a value and None, or the ends of an interval, the high one excluded


def distribution(
    column: DecodedColumn, rows: np.ndarray, own: tuple[Sequence[str | None], np.ndarray], least: int, step: int
) -> list[dict[str, Any]]:
    """Bars for the values in the release: {"label", "before", "after"}, and one bar for all other values.

    rows   number of rows of each cell of the release
    own    the original's values and their numbers of rows
    least  values that the release shows on fewer rows are among the others
    step   counts of the original are rounded to multiples of this, so that no difference reveals whose value was
           hidden; below it they are None. 0: all are None, for a column with so few hidden values that differences
           would reveal them

    ``after`` spreads a cell over its members. Stars are excluded, and a report counts them separately.
    """
    bins = bins_of(column, rows, least)
    after = rows @ shares_of(column, bins)
    surely, maybe = (rows @ known for known in possible(column, bins))
    counted = np.bincount(places_in(own[0], bins, column), weights=own[1], minlength=len(bins) + 1).astype(np.int64)
    out = [
        {"label": label, "before": disclosed(int(n), int(low), int(high), step), "after": round(float(a), 3)}
        for (label, *_), n, a, low, high in zip(
            [*bins, ("all other values",)], counted, after, surely, maybe, strict=True
        )
    ]
    return out if out[-1]["after"] or counted[-1] else out[:-1]


def pictured(column: DecodedColumn, name: str) -> DecodedColumn:
    """The column as its bars show it: codes are labels with a bar each, and never an interval of numbers.

    Codes are values of a hierarchy of labels, numbers whose column name indicates codes, and a few integers that are
    published individually and are too far apart to be consecutive.
    """
    if column.ruler is None:
        return column
    present = column.at[~np.isnan(column.at)]
    lone = all(c.everything or (c.low is None and len(c.named) == 1) for c in column.cells)
    few = column.whole and lone and present.size <= COLUMN_BINS < present.max() - present.min() + 1
    coded = of_numbers(column.ruler) and ((column.whole and bool(named_words(name) & CODES)) or few)
    return replace(column, ruler=None) if column.classes or coded else column


def bins_of(column: DecodedColumn, rows: np.ndarray, least: int, most: int = COLUMN_BINS) -> list[Bin]:
    """At most about ``most`` bins of values that the release shows on at least ``least`` rows."""
    return _spans(column, rows, least, most) if column.ruler is not None else _names(column, rows, least, most)


def shares_of(column: DecodedColumn, bins: Sequence[Bin]) -> np.ndarray:
    """float64[cells, bins + 1]: the share of each cell in each bin, the last one for all others; 0 for a star."""
    shares = np.zeros((len(column.cells), len(bins) + 1))
    if column.ruler is None and all(_listed(c) or c.everything for c in column.cells):
        at, into = _named_in(column, bins)
        sizes = np.array([max(len(c.named), 1) for c in column.cells])
        shares[at, into] = 1 / sizes[at]
        shares[:, -1] = np.where([c.everything for c in column.cells], 0.0, np.maximum(1 - shares.sum(axis=1), 0.0))
        return shares
    if column.ruler is not None:
        shares[:, :-1] = _spread(column, bins)
    else:
        for i, cell in enumerate(column.cells):
            if not cell.everything:
                shares[i, :-1] = [_share(cell, b[1], column) for b in bins]
    shares[:, -1] = np.where([c.everything for c in column.cells], 0.0, np.maximum(1 - shares.sum(axis=1), 0.0))
    return shares


def _spread(column: DecodedColumn, bins: Sequence[Bin]) -> np.ndarray:
    """float64[cells, bins]: the share of each cell's interval in each bin. Integers and days extend to the next one."""
    wide = 1.0 if column.whole or of_days(column.ruler) else 0.0
    low, high = column.ends[:, :1], column.ends[:, 1:2] + wide
    first, last = _edges(bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.maximum(np.minimum(high, last) - np.maximum(low, first), 0.0) / (high - low)
    part = np.where(high == low, (first <= low) & (low < last), part)
    return np.where(np.isfinite(low) & np.isfinite(high), part, 0.0)


def _edges(bins: Sequence[Bin]) -> np.ndarray:
    """float64[2, bins]: the starts and ends of intervals."""
    return np.array([b[1:] for b in bins], np.float64).reshape(-1, 2).T


def places_in(values: Sequence[str | None], bins: Sequence[Bin], column: DecodedColumn) -> np.ndarray:
    """int64[values]: the bin of each value of the original; the last one if it is in none."""
    if column.ruler is None:
        into = {b[1]: j for j, b in enumerate(bins)}
        return np.array([into.get(v, len(bins)) for v in values], np.int64)
    at, (first, last) = places(values, column.ruler), _edges(bins)
    found = np.searchsorted(first, at, "right") - 1  # the intervals are consecutive
    inside = (found >= 0) & (at < np.append(last, -np.inf)[found])
    return np.where(inside, found, len(bins))


def possible(column: DecodedColumn, bins: Sequence[Bin]) -> tuple[np.ndarray, np.ndarray]:
    """bool[cells, bins + 1] twice: whether a row of a cell is certainly in a bin, and whether it may be."""
    maybe = np.zeros((len(column.cells), len(bins) + 1), bool)
    if column.ruler is None and all(_listed(c) or c.everything for c in column.cells):
        maybe[_named_in(column, bins)] = True
        maybe[:, -1] = maybe.sum(axis=1) < [len(c.named) for c in column.cells]
        maybe[[c.everything for c in column.cells]] = True
        return maybe & (maybe.sum(axis=1) == 1)[:, None], maybe
    if column.ruler is not None:
        low, high = column.ends[:, :1], column.ends[:, 1:2]
        first, last = _edges(bins)
        maybe[:, :-1] = (high >= first) & (low < last)
        maybe[:, -1] = [None in c.named for c in column.cells]
        maybe[:, -1] |= ~((low >= first[0]) & (high < last[-1]))[:, 0] if bins else True
        maybe[[c.low is not None for c in column.cells] & ~(np.isfinite(low) & np.isfinite(high))[:, 0]] = True
    else:
        inside = {b[1] for b in bins}
        for i, cell in enumerate(column.cells):
            maybe[i, :-1] = [b[1] in cell for b in bins]
            maybe[i, -1] = cell.pattern is not None or cell.low is not None or bool(cell.named - inside)
    maybe[[c.everything for c in column.cells]] = True
    return maybe & (maybe.sum(axis=1) == 1)[:, None], maybe


def _listed(cell: Members) -> bool:
    """Whether a cell stands for exactly the values that it names."""
    return not cell.everything and cell.low is None and cell.pattern is None


def _named_in(column: DecodedColumn, bins: Sequence[Bin]) -> tuple[list[int], list[int]]:
    """(cell, bin) for each cell that names the value of a bin. O(values named)."""
    into = {b[1]: j for j, b in enumerate(bins)}
    known = into.keys()
    found = [(i, into[v]) for i, cell in enumerate(column.cells) for v in known & cell.named]
    return [i for i, _ in found], [j for _, j in found]


def disclosed(n: int, surely: int, maybe: int, step: int) -> int | None:
    """A count of the original as it may be published with the release; None if it may not.

    surely, maybe  the smallest and the largest count that the release allows

    It is rounded to a multiple of ``step``, and kept far enough from both limits that several counts remain possible.
    If the nearest multiple were one to which only the smallest or the largest count is rounded, it would reveal that
    none, or all, of the hidden values are this one.
    """
    if surely == maybe:
        return round_to(n, step)
    least = 2 * step if 0 < surely < step else step  # below this, nothing is published, which must reveal little too
    if not step or n < least or (surely < least and maybe < least + step):
        return None
    low = max(least, -(-(2 * surely + step) // (2 * step)) * step) if surely else least
    high = (2 * maybe - step) // (2 * step) * step
    return None if high < low else min(max(round_to(n, step) or step, low), high)


def round_to(n: int, step: int) -> int | None:
    """The nearest multiple, halves rounded up; None below ``step``, and if ``step`` is 0."""
    return None if not step or n < step else (2 * n + step) // (2 * step) * step


def _names(column: DecodedColumn, rows: np.ndarray, least: int, most: int) -> list[Bin]:
    """The values that the most rows of the release show or may show."""
    weight = dict.fromkeys(column.known, 0.0)
    for cell, n in zip(column.cells, rows.tolist(), strict=True):
        if not cell.everything and cell.named:
            for value in cell.named:
                weight[value] += n / len(cell.named)
    often = sorted((v for v, w in weight.items() if w >= least), key=lambda v: (-weight[v], str(v)))
    at = dict(zip(column.known, column.at.tolist(), strict=True))  # codes that are numbers are sorted
    shown = often[:most] if any(at[v] != at[v] for v in often[:most]) else sorted(often[:most], key=at.__getitem__)
    return [("missing" if v is None else v, v, None) for v in shown]


def _spans(column: DecodedColumn, rows: np.ndarray, least: int, most: int) -> list[Bin]:
    """Round intervals over the release's values, of width 1, 2, or 5 times a power of ten, also for days."""
    ends = column.ends[rows >= least, :2]
    ends = ends[np.isfinite(ends).all(axis=1)]
    if not ends.size:
        return []
    low, high = float(ends[:, 0].min()), float(ends[:, 1].max())
    exact = column.whole or of_days(column.ruler)
    step = round_step((high - low) / most)
    step = max(step, 1.0) if exact else step
    start = math.floor(low / step)
    stop = math.floor(high / step) + 1
    return [(_named(i * step, (i + 1) * step, column, exact), i * step, (i + 1) * step) for i in range(start, stop)]


def round_step(least: float) -> float:
    """The smallest number 1, 2, or 5 times a power of ten of at least ``least``; 1 if that isn't positive."""
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def _named(low: float, high: float, column: DecodedColumn, exact: bool) -> str:
    if of_days(column.ruler) or column.ruler == "moment":
        return str(np.datetime64(math.floor(low), "D"))  # an interval may start before the year 1 or end after 9999
    if exact:
        return f"{low:.0f}" if high - low == 1 else f"{low:.0f} to {high - 1:.0f}"
    return f"{low:.6g} up to {high:.6g}"


def _share(cell: Members, value: str | None, column: DecodedColumn) -> float:
    """The share of a value among a cell's members, if they aren't an interval."""
    if cell.low is None and cell.pattern is None:
        return float(value in cell.named) / max(len(cell.named), 1)
    return float(value in cell) / max(int(cell.held(column.known, column.at).sum()), 1)


PAIR_BINS = 7  # bins of each column, in addition to one for all other values
PAIRS = 3
COLUMNS = 10  # only this many first columns are examined


class _Axis(NamedTuple):
    """A column divided into bins.

    after   float64[classes, bins]: the share of each published class in each bin; 0 for a star
    before  int64[codes]: the bin of each value of the original
    surely, maybe  bool[classes, bins]: whether a row of a class is certainly in a bin, and whether it may be
    """

    name: str
    labels: list[str]
    after: np.ndarray
    before: np.ndarray
    surely: np.ndarray
    maybe: np.ndarray


def pairs(
    release: Any, decoded: Decoded, columns: Sequence[Mapping[str, Any]], least: int, step: int
) -> list[dict[str, Any]]:
    """At most ``PAIRS`` pairs of quasi-identifiers, with the largest mutual information in the release.

    columns  the report's figures of each column: "name", "before_shown"
    least    values that the release shows on fewer rows are among the others
    step     see ``distribution``

    The pairs and their bins depend only on the release. Counts of the original are rounded, and omitted below a step,
    as for single columns. A line of the table is omitted if so few of its rows changed that differences would reveal
    them (``_line``). O(classes bins^2) for each pair.
    """
    shown = {c["name"]: c["before_shown"] for c in columns}
    names = [n for n in release.policy.grouped if n in decoded.columns][:COLUMNS]
    where = pl.DataFrame({str(i): decoded.columns[n].where for i, n in enumerate(names)})
    if len(names) < 2 or not where.height:
        return []
    classes = where.group_by(where.columns, maintain_order=True).len()
    rows = classes["len"].to_numpy().astype(np.float64)
    axes = [
        _axis(release, n, pictured(decoded.columns[n], n), classes[str(i)].to_numpy(), least)
        for i, n in enumerate(names)
    ]
    found = []
    for a, b in combinations([x for x in axes if len(x.labels) > 2], 2):
        after = (a.after * rows[:, None]).T @ b.after
        found.append((_together(after), a, b, after))
    found.sort(key=lambda f: -f[0])
    return [
        {
            "columns": [a.name, b.name],
            "labels": [a.labels, b.labels],
            "after": np.round(after, 3).tolist(),
            "before": _before(release, (a, b), rows, step, shown[a.name] and shown[b.name]),
            "unplaced": round(float(release.facts.rows - after.sum()), 3),
        }
        for strength, a, b, after in found[:PAIRS]
        if strength > 0
    ]


def _axis(release: Any, name: str, column: DecodedColumn, at: np.ndarray, least: int) -> _Axis:
    rows = np.bincount(column.where, minlength=len(column.cells))
    bins = bins_of(column, rows, least, PAIR_BINS)
    shares = shares_of(column, bins)
    own = places_in(release._placement.own[name], bins, column)
    surely, maybe = possible(column, bins)
    return _Axis(name, [*(b[0] for b in bins), "all other values"], shares[at], own, surely[at], maybe[at])


def _together(after: np.ndarray) -> float:
    """The dependence of two columns: the mutual information of a table of counts, in nats."""
    p = after / max(after.sum(), 1e-300)
    alone = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    some = p > 0
    return float((p[some] * np.log(p[some] / alone[some])).sum())


def _before(
    release: Any, axes: tuple[_Axis, _Axis], rows: np.ndarray, step: int, shown: bool
) -> list[list[int | None]]:
    """Counts of the original, None if they may not be published."""
    a, b = axes
    counts, changed = _counted(release, axes)
    untouched = not release.facts.changed[a.name] and not release.facts.changed[b.name]
    lines = _line(changed.sum(axis=1), step) | untouched
    across = _line(changed.sum(axis=0), step) | untouched
    disclosable = lines[:, None] & across[None, :] & shown
    least, most = ((x.T * rows @ y).astype(np.int64) for x, y in ((a.surely, b.surely), (a.maybe, b.maybe)))
    return [
        [
            disclosed(n, low, high, step) if told else None
            for n, low, high, told in zip(*(x.tolist() for x in line), strict=True)
        ]
        for line in zip(counts, least, most, disclosable, strict=True)
    ]


def _line(changed: np.ndarray, step: int) -> np.ndarray:
    """Lines with enough changed rows, because a line is like a column of its own with the rows in it.

    No changed row is no better than a few: this would reveal that no hidden value is in the line.
    """
    return changed >= 4 * step


def _counted(release: Any, axes: tuple[_Axis, _Axis]) -> tuple[np.ndarray, np.ndarray]:
    """int64[bins, bins] twice: the rows of the original, and those of them that are changed in either column."""
    expected = release._placement.expected
    cell, group, count = expected.partition.cell, expected.partition.group, expected.partition.count
    at, otherwise = [], np.zeros(cell.size, bool)
    for axis in axes:
        j = next(i for i, c in enumerate(expected.columns) if c.name == axis.name)
        at.append(axis.before[expected.histogram.quasi[cell, j]])
        otherwise |= ~expected.plain[j][expected.columns[j].index[group]]
    wide, tall = len(axes[0].labels), len(axes[1].labels)
    key = at[0] * tall + at[1]
    tables = (np.bincount(key, weights=w, minlength=wide * tall) for w in (count, count * otherwise))
    counts, changed = (t.reshape(wide, tall).astype(np.int64) for t in tables)
    return counts, changed


ROWS = 10


def figures(release: Any) -> dict[str, Any]:
    """Plain values for the page and for JSON. Each shown value is in at least k rows of the release. O(rows)."""
    decoded = Decoded.shown(release.table, release.policy, release.facts.stars)
    least = least_rows(release)
    policy = release.policy.describe()
    step = step_of(release.facts.rows, least)
    columns = [_column(release, decoded, name, least) for name in release.policy.grouped]
    view, source = release._placement.losses.view(), release._placement.source.path
    lost, sizes = view.lost, view.sizes
    for j, column in enumerate(columns):
        column["loss"] = float(lost[:, j] @ sizes) / max(release.facts.rows, 1)
    return {
        "internal": True,
        **made_now(),
        "source": None if source is None else Path(source).name,
        "written": release._judged.written,
        "release": {**release.as_dict(), "loss": dict(release.loss)},
        "audit": release.audit.as_dict(),
        "policy": policy,
        "hierarchies": hierarchies(release),
        "before": dict(release.facts.before),
        "least": least,
        "step": step,
        "columns": columns,
        "together": together(release._placement.expected, least),
        "by_loss": by_loss(view),
        "at_risk": at_risk(release.audit.sizes),
        "pairs": pairs(release, decoded, columns, least, step),
        "shown": shown_rows(release, decoded.table, least),
        "listed": listed(decoded.table, release.policy),
        "sole_ends": unique_ends(
            decoded.table, release.policy, {**release.policy.range_step, **release.policy.hierarchies}
        ),
    }


def least_rows(release: Any) -> int:
    """The minimum number of rows that share a shown value: k, or the smallest group if another model limits groups."""
    models = [m for m in release.policy.privacy if m.applies_to != "population"]
    asked = [m.k for m in models if isinstance(getattr(m, "k", None), int)]
    return max([2, *asked] if asked else [2, release.audit.smallest_class])


def step_of(rows: int, least: int) -> int:
    """The step to which counts of the original are rounded: k and at least 3; in large tables, a hundredth of the rows.

    With a step of 2, only one count would be rounded to 2, so it would be known exactly.
    """
    return max(least, 3, rows // 100)


def _column(release: Any, decoded: Decoded, name: str, least: int) -> dict[str, Any]:
    """The figures of one quasi-identifier, before and after."""
    column = pictured(decoded.columns[name], name)
    rows = np.bincount(column.where, minlength=len(column.cells))
    hidden = int(rows[[c.everything for c in column.cells]].sum())
    at = next(i for i, c in enumerate(release._placement.expected.columns) if c.name == name)
    histogram = release._placement.expected.histogram
    coded = histogram.quasi[:, at]
    before = np.bincount(coded, weights=histogram.count, minlength=histogram.quasi_sizes[at]).astype(np.int64)
    step = step_of(release.facts.rows, least)
    safe = not release.facts.changed[name] or release.facts.changed[name] >= 4 * step
    return {
        "name": name,
        "before_shown": safe,
        "before": release.facts.before["distinct_values"].get(name, 0),
        "after": len(column.cells),
        "changed": release.facts.changed[name],
        "hidden": hidden,
        "weight": float(release.policy.weights.get(name, 1.0)),
        "ceiling": release.policy.max_level.get(name),
        "distribution": distribution(column, rows, (release._placement.own[name], before), least, step if safe else 0),
    }


def _words(name: str) -> pl.Expr:
    """A column as text."""
    return pl.col(name).map_batches(as_text, return_dtype=pl.String, is_elementwise=True)


def shown_rows(release: Any, frame: pl.DataFrame, least: int) -> dict[str, Any]:
    """Ten published rows of different groups. A sensitive value that few rows have isn't shown."""
    grouped, sensitive = list(release.policy.grouped), list(release.policy.sensitive)
    if not frame.height:
        return {"columns": [*grouped, *sensitive], "rows": [], "groups": []}
    short = [f"c{i}" for i in range(len(grouped) + len(sensitive))]  # "*" would select all columns
    frame = pl.DataFrame([frame[n].alias(c) for n, c in zip([*grouped, *sensitive], short, strict=True)])
    by, held = short[: len(grouped)], short[len(grouped) :]
    groups = frame.group_by(by).agg(pl.len().alias("rows")).filter(pl.col("rows") >= least)
    groups = groups.sort([_words(c) for c in by])  # independent of the order of rows
    groups = groups.gather_every(max(1, groups.height // ROWS)).head(ROWS).with_row_index("group")
    rows_of = frame.join(groups, on=by, how="inner", nulls_equal=True).sort([_words(c) for c in held])
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


def listed(frame: pl.DataFrame, policy: Any) -> dict[str, float]:
    """For each column, the share of groups whose set has as many values as rows, so each value is that of a single row.

    Computed from the published rows alone, so that anyone with them can repeat it. O(rows).
    """
    found = {}
    for name, texts, rows in _texts_of_groups(frame, policy):
        kinds = texts.unique()
        read = [parse(text) for text in kinds.to_list()]
        members = pl.Series([len(value.values) if isinstance(value, SetOf) else 0 for value in read], dtype=pl.UInt32)
        own = texts.replace_strict(kinds, members, return_dtype=pl.UInt32) == rows
        found[name] = float((own & (rows > 1)).sum()) / len(texts)
    return {name: part for name, part in found.items() if part}


def unique_ends(frame: pl.DataFrame, policy: Any, rounded: Collection[str]) -> dict[str, float]:
    """For each column, the share of groups whose range ends at a value that no other group shows.

    Such an end is very likely the value of a single row, for example in coordinates and exact amounts. Computed from
    the published rows alone, so that anyone with them can repeat it. rounded: columns whose ranges end at round values.
    O(rows).
    """
    found = {}
    for name, texts, _ in _texts_of_groups(frame, policy):
        if name in rounded:
            continue
        ranges, shown = [], Counter[str | None]()
        for text, groups in texts.value_counts().iter_rows():
            value = parse(text)
            if isinstance(value, RangeOf):
                ranges.append(value)
                shown.update({value.low: groups, value.high: groups})
            elif not isinstance(value, SetOf):
                shown[value] += groups
        alone = sum(shown[value.low] == 1 or shown[value.high] == 1 for value in ranges)
        found[name] = alone / len(texts)
    return {name: part for name, part in found.items() if part}


def _texts_of_groups(frame: pl.DataFrame, policy: Any) -> Iterator[tuple[str, pl.Series, pl.Series]]:
    """For each column of ranges and sets, its name, and the text and the number of rows of each group."""
    if policy.publish != "ranges" or not frame.height:
        return
    names = list(policy.grouped)
    short = [f"c{i}" for i in range(len(names))]  # "*" would select all columns
    held = pl.DataFrame([frame[n].alias(c) for n, c in zip(names, short, strict=True)])
    groups = held.group_by(short).len("rows")
    for name, column in zip(names, short, strict=True):
        if groups[column].dtype == pl.String:
            yield name, groups[column], groups["rows"]


def _text(value: Any, release: Any, column: str) -> str:
    """A cell as text; a missing number is a star if the column has stars."""
    if value is None and release.facts.stars.get(column):
        return release.policy.star
    return _plain(value)


def _plain(value: Any) -> str:
    return "missing" if value is None else str(value)
