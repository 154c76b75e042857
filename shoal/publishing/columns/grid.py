"""The grid to which published ranges are widened outwards, so that no end of one is somebody's value.

Numbers: multiples of the step, decimal steps counted exactly.  Days: multiples of so many days since 1970-01-01, or the
first days of months or years.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import Coded, as_numbers
from shoal.errors import PolicyError
from shoal.model.recoding import Grid

_EPOCH = datetime.date(1970, 1, 1)
_DAY = {unit: 86_400 * 10**digits for unit, digits in (("ms", 3), ("us", 6), ("ns", 9))}


class _Ruler(NamedTuple):
    """The grid as whole numbers: below and above give the marks around a value; place and text those of a mark."""

    below: Callable[[str], int]
    above: Callable[[str], int]
    place: Callable[[int], float]
    text: Callable[[int], str]


def grid(column: Coded, position: np.ndarray | None, step: float | str) -> tuple[Grid, list[str | None]]:
    """The ends that ranges of a column may have, and the text of each; a missing value is an end of its own, the last.

    position  float64[size] of the column's codes, None where they lie on no line
    step      as in ``Policy.range_step``

    Raises PolicyError for a column of neither numbers nor dates, or a step that does not fit it.  O(size log size).
    """
    ruler = _ruler(column, position, step)
    texts = [t for t in column.texts() if t is not None]
    assert position is not None
    try:
        low, high = [ruler.below(t) for t in texts], [ruler.above(t) for t in texts]
        marks = sorted({*low, *high})
        names: list[str | None] = [ruler.text(mark) for mark in marks]
        ends = np.array([ruler.place(mark) for mark in marks], np.float64)
    except OverflowError:
        raise _no(column.name, step, "the dates around its values cannot be written") from None
    number = {mark: i for i, mark in enumerate(marks)}
    for code, (a, b) in enumerate(zip(low, high, strict=True)):
        if a == b:  # a value on the grid is written and lies as it always does
            names[number[a]], ends[number[a]] = texts[code], position[code]
    lows, highs = [number[a] for a in low], [number[b] for b in high]
    if len(texts) < column.size:
        lows, highs = [*lows, len(marks)], [*highs, len(marks)]
        names.append(None)
        ends = np.append(ends, max(position[-1], np.nextafter(ends[-1], np.inf)))
    if not np.isfinite(ends).all() or (np.diff(ends) <= 0).any():
        raise _no(column.name, step, "its multiples are too close together to be told apart; take a larger one")
    return Grid(ends, np.array(lows, np.int32), np.array(highs, np.int32)), names


def _ruler(column: Coded, position: np.ndarray | None, step: float | str) -> _Ruler:
    present = column.values.drop_nulls()
    kind = present.dtype
    number = not column.ordered and (kind.is_numeric() or (kind == pl.String and as_numbers(present) is not None))
    moment = isinstance(kind, pl.Datetime) and kind.time_zone is None
    day = not (column.ordered or column.banded) and (kind == pl.Date or moment or (kind == pl.String and not number))
    if position is None or not (number or day):
        what = "times or zoned moments" if kind.is_temporal() else "values that are neither numbers nor dates"
        raise _no(column.name, step, f"the column holds {what}; leave the step out, or turn them into numbers or dates")
    zero = 0
    if kind.is_integer() or moment:  # positions of wide whole numbers are counted from the lowest
        whole = present.to_physical().to_list()
        zero = min(whole) if max(map(abs, whole)) > 2**53 else 0
    if number and isinstance(step, str):
        raise _no(column.name, step, "the column holds numbers; give a number")
    if number:
        return _of_numbers(kind, zero, Fraction(str(step)))
    if not isinstance(step, str) and step != int(step):
        raise _no(column.name, step, "the column holds dates; give a whole number of days, 'month' or 'year'")
    a_day, clock = (_DAY[kind.time_unit], " 00:00:00") if isinstance(kind, pl.Datetime) else (1, "")
    first = partial(_month, {"month": 1, "year": 12}[step]) if isinstance(step, str) else partial(_day, int(step))
    return _of_days(first, a_day, zero, clock)


def _no(name: str, step: float | str, why: str) -> PolicyError:
    return PolicyError(f"range_step[{name!r}] = {step!r}: {why}")


def _of_numbers(kind: pl.DataType, zero: int, step: Fraction) -> _Ruler:
    def text(mark: int) -> str:
        end = mark * step
        if kind.is_float():
            return str(pl.Series([float(end)], dtype=pl.Float64).cast(pl.String)[0])
        with localcontext() as exact:
            exact.prec = 200
            shown = f"{Decimal(end.numerator) / Decimal(end.denominator):f}"
        return shown.rstrip("0").rstrip(".") if "." in shown else shown

    return _Ruler(
        below=lambda t: Fraction(t) // step,
        above=lambda t: -(-Fraction(t) // step),
        place=lambda mark: float(mark * step - zero),
        text=text,
    )


def _of_days(first: Callable[[int | datetime.date], Any], a_day: int, zero: int, clock: str) -> _Ruler:
    """first  of a mark, the day it is; of a day, the last mark not after it.  a_day: its length on the line."""

    def above(text: str) -> int:
        moment = datetime.datetime.fromisoformat(text)
        mark = int(first(moment.date()))
        return mark + (datetime.datetime.combine(first(mark), datetime.time()) < moment)

    return _Ruler(
        below=lambda t: int(first(datetime.datetime.fromisoformat(t).date())),
        above=above,
        place=lambda mark: float((first(mark) - _EPOCH).days * a_day - zero),
        text=lambda mark: f"{first(mark).isoformat()}{clock}",
    )


def _day(step: int, at: int | datetime.date) -> int | datetime.date:
    if isinstance(at, datetime.date):
        return (at - _EPOCH).days // step
    return _EPOCH + datetime.timedelta(at * step)


def _month(months: int, at: int | datetime.date) -> int | datetime.date:
    if isinstance(at, datetime.date):
        return (12 * at.year + at.month - 1) // months
    year, month = divmod(at * months, 12)
    if year > datetime.MAXYEAR:
        raise OverflowError
    return datetime.date(year, month + 1, 1)
