"""Entropy l-diversity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.judge.tables.counted import CLOSE, Column


def level(column: Column) -> float:
    """Exponential of the least entropy of a class."""
    return math.exp(max(_least(column), 0.0))


def found(model: Any, column: Column) -> tuple[float, bool]:
    """The least entropy, against log l."""
    return level(column), _least(column) >= math.log(model.l) - CLOSE


def _least(column: Column) -> float:
    """Least entropy of a class, in nats."""
    return float(-np.add.reduceat(column.share * np.log(column.share), column.start).max())
