"""The distinct values of an original column, in order and on a line, as its published cells are read against them."""

from __future__ import annotations

import datetime
import math
import re

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.judge.values import pair, shown, with_empty
from shoal.model.bands import in_order
from shoal.model.notation import NUMBER, RangeOf, SetOf, parse


class Values:
    """The distinct values of an original column, in order."""

    def __init__(self, column: pl.Series, like: pl.Series, ranges: bool, sheet: bool, apart: bool) -> None:
        if ranges and like.dtype == pl.String:  # a value by itself may stand in quotes
            read = [parsed(t) if t else t for t in like.to_list()]
            like = pl.Series([r if isinstance(r, str) else t for r, t in zip(read, like.to_list(), strict=True)],
                             dtype=pl.String)  # fmt: skip
        if isinstance(column.dtype, pl.Categorical):
            column = column.cast(pl.String)
        if column.dtype.is_float():
            column = column.fill_nan(None)
        empty = bool((column == "").any()) if column.dtype == pl.String else False
        if empty and not apart:
            column = column.set(column == "", None)
        found = column.unique().drop_nulls()
        lies = _line(found)
        order = np.argsort(lies[0], kind="stable") if lies is not None else found.arg_sort().to_numpy()
        found = found.gather(order)
        self.missing = column.null_count() > 0
        self.position: np.ndarray | None = None if lies is None else lies[0][order]
        self.zero = 0.0 if lies is None else lies[1]
        unit = getattr(found.dtype, "time_unit", None)
        self.day = 1.0 if unit is None else 86400e3 * {"ms": 1, "us": 1e3, "ns": 1e6}[unit]
        self.texts = [*shown(found), *(["" if empty and not apart else None] if self.missing else [])]
        if self.position is not None and self.missing:
            line = self.position
            far = line[-1] + max(line[-1] - line[0], 1.0, abs(line[-1]) * 1e-9)
            self.position = np.append(line, far)
        self.size = len(self.texts)
        plain, tokens = pair(found, like, sheet)
        if apart:
            plain, tokens = with_empty(found, plain), with_empty(like, tokens)
        number = {text: i for i, text in enumerate(plain.to_list())}
        if len(number) < len(found):  # a form in which two values are one tells too little
            number = {text: i for i, text in enumerate(shown(found))}
            tokens = pl.Series(shown(like))
        self.number: dict[str | None, int] = number | ({None: self.size - 1} if self.missing else {})
        self.tokens = tokens.to_list()
        self.codes = column.replace_strict(found, np.arange(len(found)), default=None, return_dtype=pl.Int64)
        self.by_text = {text: i for i, text in enumerate(self.texts) if text is not None}


def parsed(raw: str) -> str | SetOf | RangeOf | None:
    """A text of a column of sets or ranges; None where it is none that such a column has."""
    try:
        return parse(raw)
    except InputError:
        return None


def _line(values: pl.Series) -> tuple[np.ndarray, float] | None:
    """Where distinct values lie, float64, and what was taken off all of them; None where there is no such line.

    Text counts as numbers, days or bands where every one is written as such.  Equal or too near values have no line.
    """
    if not len(values):
        return None
    zero = 0.0
    if isinstance(values.dtype, pl.Enum):
        line = values.to_physical().cast(pl.Float64).rank("dense").cast(pl.Float64).to_numpy() - 1
    elif values.dtype == pl.String:
        texts = values.to_list()
        found = [float(t) if re.search(NUMBER, t) else None for t in texts]
        if any(x is None for x in found):
            found = [_as_day(text) for text in texts]
        if any(x is None for x in found) and (bands := in_order(texts)) is not None:
            found = [float(x) for x in np.argsort(bands)]
        if any(x is None for x in found):
            return None
        line = np.array(found, float)
    elif values.dtype.is_temporal() or values.dtype.is_integer():
        whole = values.to_physical().to_list()
        if values.dtype.is_integer() and max(map(abs, whole)) > 2**53:
            zero = float(min(whole))
            whole = [v - min(whole) for v in whole]
        line = np.array(whole, float)
    elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
        line = values.cast(pl.Float64, strict=False).fill_null(math.nan).to_numpy()
    else:
        return None
    return (line, zero) if np.isfinite(line).all() and np.unique(line).size == line.size else None


def as_number(text: str) -> float | None:
    """The finite number that a text is, or None."""
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _as_day(text: str) -> float | None:
    try:
        return float(datetime.date.fromisoformat(text).toordinal() - 719163) if len(text) == 10 else None
    except ValueError:
        return None
