"""The grid to which published ranges are widened outwards, so that no end of one is somebody's value.

Numbers: multiples of the step, decimal steps counted exactly.  Days: multiples of so many days since 1970-01-01, or the
first days of months or years.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.engines.codes import Coded, as_numbers
from shoal.errors import PolicyError
from shoal.model.recoding import Grid

_EPOCH = datetime.date(1970, 1, 1)


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
    try:
        low, high = [ruler.below(t) for t in texts], [ruler.above(t) for t in texts]
        marks = sorted({*low, *high})
        names: list[str | None] = [ruler.text(mark) for mark in marks]
        ends = np.array([ruler.place(mark) for mark in marks], np.float64)
    except OverflowError:
        raise _no(column.name, step, "the dates around its values cannot be written") from None
    assert position is not None
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
    day = not column.ordered and (kind == pl.Date or (kind == pl.String and not number))
    if position is None or not (number or day):
        what = "moments or times" if kind.is_temporal() else "values that are neither numbers nor dates"
        raise _no(column.name, step, f"the column holds {what}; leave the step out, or turn them into numbers or dates")
    if number and isinstance(step, str):
        raise _no(column.name, step, "the column holds numbers; give a number")
    if number:
        return _of_numbers(kind, column.texts(), Fraction(str(step)))
    if not isinstance(step, str) and step != int(step):
        raise _no(column.name, step, "the column holds dates; give a whole number of days, 'month' or 'year'")
    return _of_months({"month": 1, "year": 12}[step]) if isinstance(step, str) else _of_days(int(step))


def _no(name: str, step: float | str, why: str) -> PolicyError:
    return PolicyError(f"range_step[{name!r}] = {step!r}: {why}")


def _of_numbers(kind: pl.DataType, texts: Sequence[str | None], step: Fraction) -> _Ruler:
    zero = Fraction(0)
    if kind.is_integer():  # positions of wide whole numbers are counted from the lowest
        whole = [int(t) for t in texts if t is not None]
        zero = Fraction(min(whole)) if max(map(abs, whole)) > 2**53 else zero

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


def _of_days(step: int) -> _Ruler:
    def since(text: str) -> int:
        return (datetime.date.fromisoformat(text) - _EPOCH).days

    return _Ruler(
        below=lambda t: since(t) // step,
        above=lambda t: -(-since(t) // step),
        place=lambda mark: float(mark * step),
        text=lambda mark: (_EPOCH + datetime.timedelta(mark * step)).isoformat(),
    )


def _of_months(months: int) -> _Ruler:
    def below(text: str) -> int:
        day = datetime.date.fromisoformat(text)
        return (12 * day.year + day.month - 1) // months

    def first(mark: int) -> datetime.date:
        year, month = divmod(mark * months, 12)
        if year > datetime.MAXYEAR:
            raise OverflowError
        return datetime.date(year, month + 1, 1)

    return _Ruler(
        below=below,
        above=lambda t: below(t) + (first(below(t)) != datetime.date.fromisoformat(t)),
        place=lambda mark: float((first(mark) - _EPOCH).days),
        text=lambda mark: first(mark).isoformat(),
    )
