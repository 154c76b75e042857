"""Counts of records as users hand them over: whole numbers of any length, checked once."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from shoal.errors import InputError
from shoal.model.arguments import whole_number

_FRACTION = "{what} number {number} is not a whole number; counts of records are needed"  # never the value
WIDE = 1 << 62  # from this total on, Python integers instead of int64


def whole(values: Iterable[Any], what: str = "size") -> np.ndarray:
    """Counts as int64[n], or object[n] of Python integers when their total needs it; InputError otherwise."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        given = values
    else:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f"the {what}s are one {type(values).__name__}; hand over one list of whole numbers")
        listed = [*values]
        try:
            given = np.asarray(listed)
        except ValueError:
            given = np.array(listed, dtype=object)
        if given.dtype.kind == "f":
            given = np.array(listed, dtype=object)  # a list may hide integers that no float holds
    if given.ndim != 1:
        raise InputError(f"the {what}s have {given.ndim} dimensions; hand over one list of whole numbers")
    if given.dtype.kind == "f":
        wrong = ~(np.isfinite(given) & (given == np.floor(given)))
        if wrong.any():
            raise InputError(_FRACTION.format(what=what, number=int(wrong.argmax()) + 1))
        given = (
            given.astype(np.int64) if (np.abs(given) < 2.0**53).all() else np.array([*map(int, given)], dtype=object)
        )
    elif given.dtype.kind not in "iu":
        given = np.array([_whole(v, what, i) for i, v in enumerate(given.tolist(), 1)], dtype=object)
    if not len(given):
        return np.zeros(0, np.int64)
    least, most = int(given.min()), int(given.max())
    if least < 0:
        raise InputError(f"{what} number {int(given.argmin()) + 1} is negative; a count is at least 0")
    if most * len(given) < WIDE or sum(given.tolist()) < WIDE:
        return given.astype(np.int64)
    return np.array(given.tolist(), dtype=object)


def _whole(value: Any, what: str, number: int) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise InputError(_FRACTION.format(what=what, number=number))


def threshold(k: Any) -> int:
    """k as an int of at least 1, or PolicyError."""
    return whole_number("k", k)
