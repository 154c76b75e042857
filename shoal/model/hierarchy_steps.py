"""Numbers and dates of built hierarchies: read exactly, and written as the classes are published."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from fractions import Fraction
from typing import Any

from shoal.errors import PolicyError

STAR = "*"
PERIODS: dict[str, Callable[[int, int, int], str]] = {
    "day": lambda y, m, d: f"{y:04d}-{m:02d}-{d:02d}",
    "month": lambda y, m, d: f"{y:04d}-{m:02d}",
    "quarter": lambda y, m, d: f"{y:04d}-Q{(m + 2) // 3}",
    "year": lambda y, m, d: f"{y:04d}",
    "decade": lambda y, m, d: f"{y - y % 10:04d}s",
    "century": lambda y, m, d: f"{y - y % 100:04d}-{y - y % 100 + 99:04d}",
}


def exact(value: Any) -> Fraction:
    """A number as it is written, without rounding."""
    try:
        return Fraction(value.strip() if isinstance(value, str) else str(value))
    except (ValueError, ZeroDivisionError):
        raise PolicyError(f"{value!r} is not a number") from None


def written(x: Fraction) -> str:
    """A number in at most twelve digits."""
    return str(x.numerator) if x.denominator == 1 else format(float(x), ".12g")


def span(low: Fraction, high: Fraction, whole: bool) -> str:
    """``[low, high)``, of whole numbers ``low-last`` or one by itself."""
    if whole and low.denominator == high.denominator == 1 and low >= 0:
        return written(low) if high - low == 1 else f"{written(low)}-{written(high - 1)}"
    return f"[{written(low)}, {written(high)})"


def date_of(value: str, column: str) -> tuple[int, ...]:
    """(year,), (year, month) or (year, month, day) of an ISO date; a time after it is left out."""
    found = re.fullmatch(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[T ].*)?)?)?", value.strip())
    try:
        if found:
            parts = tuple(int(x) for x in found.groups() if x)
            date(*(*parts, 1, 1)[:3])
            return parts
    except ValueError:
        pass
    raise PolicyError(f"column {column!r} has a value that is not a date; write dates as 2024-03-05, or leave it empty")


def period(value: str, parts: tuple[int, ...], name: str) -> str:
    """The period of a date; a date known less exactly than the period stands for itself."""
    needed = {"day": 3, "month": 2, "quarter": 2}.get(name, 1)
    if len(parts) < needed:
        return value.strip()
    year, month, day = (*parts, 1, 1)[:3]
    return PERIODS[name](year, month, day)
