"""Ranges and sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.judge.originals.distinct import as_number, parsed
from shoal.judge.tables.grid import above, moment
from shoal.model.notation import RangeOf, SetOf


def found(raw: str, column: Any) -> tuple[int, int, np.ndarray, list[float]] | None:
    """The values from end to end, or those named."""
    none, values = np.zeros(0, np.int64), column.values
    read = parsed(raw)
    if isinstance(read, RangeOf):
        ends = _ends(read, column)
        if ends is None or values.position is None:
            return None
        within = (values.position >= ends[0]) & (values.position <= ends[1])
        if values.missing:
            within[-1] = read.high is None
        inside = np.flatnonzero(within)
        low, high = (int(inside[0]), int(inside[-1])) if inside.size else (0, -1)
        return low, high, none, [min((ends[1] - ends[0]) / column.span, 1.0)]
    if not isinstance(read, SetOf):
        return None
    inside = np.array(sorted({_code(text, values) for text in read.values} - {-1}), np.int64)
    return (0, -1, inside, [(inside.size - 1) / max(values.size - 1, 1)]) if inside.size else None


def _code(text: str | None, values: Any) -> int:
    known: int = -1 if text is None else values.by_text.get(text, -1)
    if not text and known < 0:  # an empty text is a missing value
        return values.size - 1 if values.missing else -1
    return known


def _ends(found: RangeOf, column: Any) -> tuple[float, float] | None:
    values, step = column.values, column.how.step
    line = values.position
    ends = []
    for text in (found.low, found.high):
        at = _code(text, values)
        number = as_number(text) if at < 0 and text is not None else None
        if at < 0 and number is None and text is not None and step is not None:
            number = moment(text, values.day)
        if line is None or (at < 0 and number is None):
            return None
        ends.append(float(line[at]) if number is None else number - values.zero)
    if found.high is None:  # beyond every end of another range
        ends[1] = max(ends[1], _beyond(values, step))
    return (ends[0], ends[1]) if ends[0] <= ends[1] else None


def _beyond(values: Any, step: float | str | None) -> float:
    """The highest end that a range without a missing value can have."""
    known = values.size - values.missing
    highest = values.texts[known - 1] if known and values.position is not None else None
    if step is None or highest is None:
        return -math.inf
    return above(highest, step, values.day) - values.zero
