"""Recursive (c,l)-diversity."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.judge.tables.counted import CLOSE, Column


def level(column: Column, l: int) -> float:
    """Largest r1 / (r_l + ... + r_m) over the classes; infinite where the sum is empty."""
    order = np.lexsort((-column.count, column.group))
    falling = column.count[order]
    place = np.arange(falling.size) - column.start[column.group]
    tail = np.bincount(column.group, weights=np.where(place >= l - 1, falling, 0), minlength=column.sizes.size)
    with np.errstate(divide="ignore"):
        return float(np.where(tail > 0, falling[column.start] / np.maximum(tail, 1), np.inf).max())


def found(model: Any, column: Column) -> tuple[float, bool]:
    """The largest ratio, below c."""
    ratio = level(column, model.l)
    return ratio, ratio < model.c - CLOSE
