"""Columns whose numbers go around, as hours of a day do: told by name and range together, never by one alone."""

from __future__ import annotations

import re
from typing import NamedTuple

import polars as pl

from shoal.engines.recognize import in_words


class Around(NamedTuple):
    """What goes around: its last value is next to its first.

    name    pattern of the whole name, in words
    starts  where its numbers may begin;  period: how many there are;  whole: only whole numbers
    """

    name: re.Pattern[str]
    starts: tuple[int, ...]
    period: int
    whole: bool


_BEFORE = r"(?:(?!(?:per|an?|each|every|half|since|age|tenure|follow|up|duration|total|number|rush|credit)\b)\w+ )*"
AROUND = [
    Around(re.compile(rf"{_BEFORE}(?:hour(?: of (?:the )?day)?)"), (0, 1), 24, True),
    Around(re.compile(rf"{_BEFORE}(?:week ?day|day of (?:the )?week|dow)"), (0, 1), 7, True),
    Around(re.compile(rf"{_BEFORE}(?:month(?: of (?:the )?year)?)"), (0, 1), 12, True),
    Around(re.compile(rf"{_BEFORE}(?:bearing|heading|azimuth|wind direction)(?: degrees?| deg)?"), (0,), 360, False),
]


def period_of(series: pl.Series) -> int | None:
    """After how much a column's numbers begin again: 24, 7, 12 or 360; None for one that is not known to go around.

    The name says so, every number is in range, and they fill more than half of it: a flag for the rush hour does not.
    """
    name = in_words(series.name).strip()
    kind = next((a for a in AROUND if a.name.fullmatch(name)), None)
    numbers = series.cast(pl.Float64, strict=False) if kind and not series.dtype.is_temporal() else None
    if kind is None or numbers is None or numbers.null_count() > series.null_count() or numbers.len() == 0:
        return None
    known = numbers.drop_nulls()
    if not len(known) or not known.is_finite().all() or (kind.whole and (known % 1 != 0).any()):
        return None
    low, high = float(known.min()), float(known.max())  # type: ignore[arg-type]
    ends = [start + kind.period - kind.whole for start in kind.starts]
    inside = any(start <= low and high <= end for start, end in zip(kind.starts, ends, strict=True))
    wide = high - low > kind.period / 2 and known.n_unique() > min(kind.period, 24) / 2
    return kind.period if inside and wide else None
