"""The judge's reading of ranges and sets: which values a published text can mean, and whether ends are on a grid."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.judge.finding import Finding, as_number, is_number, moment_of, parsed, shown, unmarked
from shoal.model.notation import RangeOf, SetOf, parse


def range_steps(
    frame: pl.DataFrame, steps: Mapping[str, float | str], notations: Mapping[str, str], star: str
) -> Finding:
    """Whether every value and every end of a range in the columns of ``steps`` is on its grid.

    notations  of columns of texts that are dates or numbers in a notation
    star       the text of a suppressed value, which can occur among the ranges of a part of a series
    """
    for name, step in steps.items():
        grid = partial(on_grid, step=step, notation=notations.get(name))
        for text in {*shown(frame[name].unique())} - {star}:
            try:
                found = parse(text)
            except InputError:
                found = SetOf(())
            ends = (found.low, found.high) if isinstance(found, RangeOf) else (found,)
            if not all(e is None or e == "" or (isinstance(e, str) and grid(e)) for e in ends):
                return Finding("range steps", False, f"column {name!r} shows a value that is no multiple of its step")
    return Finding("range steps", True, f"every end published of {', '.join(map(repr, steps))} lies on its grid")


def on_grid(text: str, step: float | str, notation: str | None = None) -> bool:
    """Whether a number or a date, given as text, is a multiple of the step; notation: of the column, or None."""
    if is_number(text, notation):
        return not isinstance(step, str) and _exact(text, notation) % Fraction(str(step)) == 0
    at = moment_of(text, notation)
    return at is not None and _day_on_grid(at, step)


def _exact(text: str, notation: str | None) -> Fraction:
    return Fraction(text if notation is None else unmarked(text, notation))


def _day_on_grid(at: datetime.datetime, step: float | str) -> bool:
    if at.time() != datetime.time():
        return False
    if isinstance(step, str):
        return at.day == 1 and (step == "month" or at.month == 1)
    return (at.toordinal() - 719163) % int(step) == 0


def above(text: str, step: float | str, day: float, notation: str | None) -> float:
    """The least grid point at or above a number or a moment; day, notation: as in ``moment``."""
    at = None if is_number(text, notation) else moment_of(text, notation)
    if at is None:
        number, whole = _exact(text, notation), Fraction(str(step))
        return float(number + -number % whole)
    while not _day_on_grid(at, step):
        at = datetime.datetime.combine(at.date() + datetime.timedelta(days=1), datetime.time())
    return (at.toordinal() - 719163) * day


def moment(text: str, day: float, notation: str | None) -> float | None:
    """A date or a moment as time since 1970, in units in which a day has length ``day``; None for other texts.

    notation  of the column's dates, None if they are in ISO format (2024-12-31)
    """
    at = moment_of(text, notation)
    if at is None or at.tzinfo is not None:
        return None
    since = at - datetime.datetime(1970, 1, 1)
    return since / datetime.timedelta(days=1) * day


def found(raw: str, column: Any) -> tuple[int, int, np.ndarray, list[float]] | None:
    """The values between the ends of a range, or the values of a set, and its loss; None if the text is neither."""
    none, values = np.zeros(0, np.int64), column.values
    read = parsed(raw)
    if isinstance(read, RangeOf):
        ends = _ends(read, column)
        if ends is None or values.position is None:
            return None
        low, high = _inside(read, ends, column)
        return low, high, none, [min((ends[1] - ends[0]) / column.span, 1.0)]
    if not isinstance(read, SetOf):
        return None
    inside = np.array(sorted({_code(text, values) for text in read.values} - {-1}), np.int64)
    return (0, -1, inside, [(inside.size - 1) / max(values.size - 1, 1)]) if inside.size else None


def _inside(read: RangeOf, ends: tuple[float, float], column: Any) -> tuple[int, int]:
    """The first and the last value in a range with these ends; (0, -1) if there is none. O(log values)."""
    values, line = column.values, column.values.position
    known = values.size - values.missing
    low, high = int(line[:known].searchsorted(ends[0])), int(line[:known].searchsorted(ends[1], "right")) - 1
    # A range that ends at 90 excludes >=90.
    unnamed = {values.by_text.get(limit, -1) for limit in _limits_unnamed(read, column.how.notation)}
    while low <= high and low in unnamed:
        low += 1
    while low <= high and high in unnamed:
        high -= 1
    if values.missing and read.high is None:  # a missing value is the last one
        low, high = low if low <= high else known, known
    return (low, high) if low <= high else (0, -1)


def _limits_unnamed(read: RangeOf, notation: str | None) -> list[str]:
    """The texts for all values beyond a limit of the column, such as >=90, that are no end of this range."""
    limits = (notation or "").split() if (notation or " ")[0] in "<>" else []
    return [limit for limit in limits if limit not in (read.low, read.high)]


def _code(text: str | None, values: Any) -> int:
    known: int = -1 if text is None else values.by_text.get(text, -1)
    if not text and known < 0:  # an empty text is a missing value
        return values.size - 1 if values.missing else -1
    return known


def _ends(found: RangeOf, column: Any) -> tuple[float, float] | None:
    values, step, notation = column.values, column.how.step, column.how.notation
    line = values.position
    ends = []
    for text in (found.low, found.high):
        at = _code(text, values)
        number = as_number(text, notation) if at < 0 and text is not None else None
        if at < 0 and number is None and text is not None and step is not None:
            number = moment(text, values.day, notation)
        if line is None or (at < 0 and number is None):
            return None
        ends.append(float(line[at]) if number is None else number - values.zero)
    if found.high is None:  # a range with missing values ends above all others
        ends[1] = max(ends[1], _beyond(values, step, notation))
    return (ends[0], ends[1]) if ends[0] <= ends[1] else None


def _beyond(values: Any, step: float | str | None, notation: str | None) -> float:
    """The highest end that a range without a missing value can have."""
    known = values.size - values.missing
    highest = values.texts[known - 1] if known and values.position is not None else None
    if step is None or highest is None:
        return -math.inf
    return above(highest, step, values.day, notation) - values.zero
