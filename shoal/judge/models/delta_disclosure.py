"""delta-disclosure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.judge.tables.counted import CLOSE, Column


def level(column: Column, absent: bool = True) -> float:
    """Largest |log(p / q)| of a value in a class; with absent, infinite where a class lacks a value of the table."""
    if absent and (np.bincount(column.group) < column.values).any():
        return math.inf
    return float(np.abs(np.log(column.share / column.table[column.value])).max())


def found(model: Any, column: Column) -> tuple[float, bool]:
    """The largest, below delta."""
    largest = level(column, model.absent == "infinite")
    return largest, largest < model.delta - CLOSE
