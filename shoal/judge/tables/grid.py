"""Ranges that end on a grid: multiples of a number, days since 1970, first days of months or years."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from fractions import Fraction

import polars as pl

from shoal.errors import InputError
from shoal.judge.finding import Finding
from shoal.judge.values import shown
from shoal.model.notation import NUMBER, RangeOf, SetOf, parse


def range_steps(frame: pl.DataFrame, steps: Mapping[str, float | str]) -> Finding:
    """Whether every value and every end of a range in the columns widened lies on its grid."""
    for name, step in steps.items():
        for text in shown(frame[name].unique()):
            try:
                found = parse(text)
            except InputError:
                found = SetOf(())
            ends = (found.low, found.high) if isinstance(found, RangeOf) else (found,)
            if not all(e is None or e == "" or (isinstance(e, str) and on_grid(e, step)) for e in ends):
                return Finding("range steps", False, f"column {name!r} shows a value that is no multiple of its step")
    return Finding("range steps", True, f"every end published of {', '.join(map(repr, steps))} lies on its grid")


def on_grid(text: str, step: float | str) -> bool:
    """Whether a number or a date, as text, is a multiple of the step."""
    if re.search(NUMBER, text):
        return not isinstance(step, str) and Fraction(text) % Fraction(str(step)) == 0
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        return False
    if at.time() != datetime.time():
        return False
    if isinstance(step, str):
        return at.day == 1 and (step == "month" or at.month == 1)
    return (at.toordinal() - 719163) % int(step) == 0


def above(text: str, step: float | str, day: float) -> float:
    """The first place of the grid not below a number or a moment; day: as in ``moment``."""
    if re.search(NUMBER, text):
        whole = Fraction(str(step))
        return float(Fraction(text) + -Fraction(text) % whole)
    at = datetime.datetime.fromisoformat(text)
    while not on_grid(at.isoformat(), step):
        at = datetime.datetime.combine(at.date() + datetime.timedelta(days=1), datetime.time())
    return (at.toordinal() - 719163) * day


def moment(text: str, day: float) -> float | None:
    """Where a date or a moment lies since 1970, a day being ``day`` long; None for another text."""
    try:
        since = datetime.datetime.fromisoformat(text) - datetime.datetime(1970, 1, 1)
    except (ValueError, TypeError):
        return None
    return since / datetime.timedelta(days=1) * day
