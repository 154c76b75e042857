"""Names for intervals, and intervals of intervals: a hierarchy for an ordered column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shoal.errors import InputError, PolicyError
from shoal.model.arguments import known
from shoal.problems.intervals.cutting import UNITS, distinct, solve, spans_of


def interval_labels(lows: Sequence[Any] | np.ndarray, highs: Sequence[Any] | np.ndarray) -> list[str]:
    """ "18 .. 25" for each interval, the value itself where there is only one."""
    pairs = zip(_texts(lows), _texts(highs), strict=True)
    return [low if low == high else f"{low} .. {high}" for low, high in pairs]


def _texts(values: Sequence[Any] | np.ndarray) -> list[str]:
    return [f"{v:.15g}" if isinstance(v, float) else str(v) for v in np.asarray(values).tolist()]


def levels(
    values: Sequence[Any],
    counts: Sequence[int] | np.ndarray,
    ks: Sequence[int],
    objective: str = "max",
    names: Sequence[str] | None = None,
) -> list[list[str]]:
    """A generalization hierarchy of intervals: cut at each k, then intervals of those at the next.

    values     distinct values of the column, numbers, dates or text
    counts     records of each
    ks         increasing; every level joins intervals of the level below to at least its k
    objective  "max", "count", "squares" or "range", at every level
    names      how each value is written in the table, default its own text

    Returns one row per value, in the order given: [name, interval at ks[0], ..., "*"], the shape of an ARX hierarchy
    file.  The last level is one group; levels that the total cannot fill are left out.

    Raises InputError for repeated values or lengths that differ, PolicyError for ks that do not increase or an
    unknown objective.
    """
    known("objective", objective, UNITS)
    steps = [int(k) for k in ks]
    if any(b <= a for a, b in pairwise(steps)):
        raise PolicyError(f"the levels' k are {steps}; give them in increasing order")
    found, records, index = distinct(values, counts)
    if len(found) < len(index):
        raise InputError("the values of a hierarchy must all differ; add up the counts of equal ones first")
    shown = _texts(found[index]) if names is None else [str(name) for name in names]
    if len(shown) != len(index):
        raise InputError(f"there are {len(index)} values and {len(shown)} names")
    columns = [shown]
    total = sum(records.tolist())
    place, lows, highs = np.arange(len(found)), found, found  # the level's interval of each value, ascending
    named = dict(zip(index.tolist(), shown, strict=True))  # a single value keeps the name it has in the table
    for k in steps:
        if k > total:
            break
        running = np.concatenate([np.zeros(1, records.dtype), np.cumsum(records)])
        first, end = np.array(spans_of(solve(lows, highs, running, k, objective)[0])).T
        place = np.searchsorted(first, place, side="right") - 1
        lows, highs, records = lows[first], highs[end - 1], running[end] - running[first]
        texts = interval_labels(lows, highs)
        members = np.bincount(place)
        column = [named[v] if members[place[v]] == 1 else texts[place[v]] for v in index.tolist()]
        columns.append(column)
        if len(lows) == 1:
            break
    columns.append(["*"] * len(index))
    return [list(row) for row in zip(*columns, strict=True)]
