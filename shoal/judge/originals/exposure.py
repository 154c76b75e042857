"""How many groups must show a value that only one of their rows holds, whichever rows are theirs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from shoal.judge.finding import CONSISTENT, Finding
from shoal.judge.originals.covering import Column
from shoal.judge.originals.matching import dense

Shares = tuple[Mapping[str, float], float | None]  # per column of ranges or sets, and of any of them


def exposure(columns: Sequence[Column], said: Shares, widened: Collection[str]) -> Finding:
    """Whether the certified shares of exposed groups can be: none is below what the two tables force.

    widened  columns whose ranges end on a grid, at which nobody's value need lie

    A value of c rows that m groups show is held at least once in each, so in 2 m - c of them by one row alone.
    Which rows are whose the release does not tell, so this is a least number.  O(n log n) for n rows.
    """
    shares, anywhere = said
    _, at, group = np.unique(dense([c.after for c in columns]), return_index=True, return_inverse=True)
    groups = int(group.max()) + 1 if group.size else 0
    least = {c.name: _least(c, c.after[at]) for c in columns if c.name in shares and c.name not in widened}
    if shares and max(shares.values()) > (anywhere or 0.0) + 1e-9:
        return Finding("exposed", False, "one column is certified to expose more groups than all of them", CONSISTENT)
    for name, found in [*least.items(), ("", max(least.values(), default=0))]:
        stated = shares[name] if name else (anywhere or 0.0)
        if found > stated * groups + 1e-6:
            where = f" of column {name!r}" if name else ""
            text = f"at least {found} of {groups} groups show a value{where} that one of their rows holds"
            return Finding("exposed", False, f"{text}; {stated:.6g} certified")
    text = f"{max(least.values(), default=0)} groups at least show a value that one of their rows holds, as certified"
    return Finding("exposed", True, text if shares else "no range or set shows one", CONSISTENT)


def _least(column: Column, token: np.ndarray) -> int:
    """Fewest groups, of these tokens, that show a value of theirs which one row holds."""
    held = np.bincount(column.before, minlength=column.values)
    read = ~(column.star | column.blank)[token]
    low, high = column.low[token], column.high[token]
    ranged = read & (low < high) & (column.same[token] < 0)
    shown = np.bincount(np.concatenate([low[ranged], high[ranged]]), minlength=column.values)
    most = 2
    if column.keys.size:
        listed = np.bincount(column.keys // column.values, minlength=column.star.size)
        sets = np.bincount(token[read & (listed[token] > 1)], minlength=column.star.size)
        shown = shown + np.bincount(
            column.keys % column.values, weights=sets[column.keys // column.values], minlength=column.values
        ).astype(np.int64)
        most = max(most, int(listed.max()))
    alone = int(np.maximum(2 * shown - held, 0)[shown > 0].sum())
    return math.ceil(alone / most)
