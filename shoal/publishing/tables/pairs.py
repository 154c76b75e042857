"""Two columns together, before and after: the few pairs that matter most, told as carefully as single columns are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.publishing.bins import bins_of, disclosed, pictured, places_in, possible, shares_of
from shoal.utility.decode import Column, Decoded

BINS = 7  # of each column, beside one for all other values
PAIRS = 3
COLUMNS = 10  # the first so many are looked at


class _Axis(NamedTuple):
    """A column cut into bins.

    after   float64[classes, bins]: the share of each published class in each bin; a star has none
    before  int64[codes]: bin of each value of the original
    surely, maybe  bool[classes, bins]: whether a row of a class is in a bin, or may be
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
    """At most PAIRS pairs of quasi-identifiers, those that say most of each other in the release.

    columns  what stands in the report of each column: "name", "before_shown"
    least  values that the release shows on fewer rows are among the others;  step: see ``distribution``

    Which pairs, and into which bins they are cut, follows from the release alone.  Counts of the original are rounded
    and left out below a step, as a column's own are; and a line of the table is left out wherever so few of its rows
    were changed that a difference would tell (``_line``).  O(classes bins^2) for each pair.
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
            "unplaced": round(float(release.rows - after.sum()), 3),
        }
        for strength, a, b, after in found[:PAIRS]
        if strength > 0
    ]


def _axis(release: Any, name: str, column: Column, at: np.ndarray, least: int) -> _Axis:
    rows = np.bincount(column.where, minlength=len(column.cells))
    bins = bins_of(column, rows, least, BINS)
    shares = shares_of(column, bins)
    own = places_in(release._placement.own[name], bins, column)
    surely, maybe = possible(column, bins)
    return _Axis(name, [*(b[0] for b in bins), "all other values"], shares[at], own, surely[at], maybe[at])


def _together(after: np.ndarray) -> float:
    """How much two columns say of each other: mutual information in nats of a table of counts."""
    p = after / max(after.sum(), 1e-300)
    alone = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    some = p > 0
    return float((p[some] * np.log(p[some] / alone[some])).sum())


def _before(
    release: Any, axes: tuple[_Axis, _Axis], rows: np.ndarray, step: int, shown: bool
) -> list[list[int | None]]:
    """Counts of the original, None where they are not told."""
    a, b = axes
    counts, changed = _counted(release, axes)
    untouched = not release.changed[a.name] and not release.changed[b.name]
    lines = _line(changed.sum(axis=1), step) | untouched
    across = _line(changed.sum(axis=0), step) | untouched
    disclosable = lines[:, None] & across[None, :] & shown
    least, most = ((x.T * rows @ y).astype(np.int64) for x, y in ((a.surely, b.surely), (a.maybe, b.maybe)))
    return [
        [
            disclosed(int(counts[i, j]), int(least[i, j]), int(most[i, j]), step) if disclosable[i, j] else None
            for j in range(wide)
        ]
        for i, wide in enumerate([disclosable.shape[1]] * disclosable.shape[0])
    ]


def _line(changed: np.ndarray, step: int) -> np.ndarray:
    """Lines of which enough rows were changed, for a line is a column by itself, of the rows that it holds.

    None changed is no better than few: that none of the hidden values belong here would be told.
    """
    return changed >= 4 * step


def _counted(release: Any, axes: tuple[_Axis, _Axis]) -> tuple[np.ndarray, np.ndarray]:
    """int64[bins, bins] twice: rows of the original, and those of them published otherwise in either column."""
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
