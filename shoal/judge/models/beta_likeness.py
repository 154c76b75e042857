"""beta-likeness."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.judge.tables.counted import CLOSE, Column


def level(column: Column) -> float:
    """Largest relative gain (p - q) / q of a value in a class over the table."""
    return max(float(_gain(column).max()), 0.0)


def found(model: Any, column: Column) -> tuple[float, bool]:
    """Every gain against beta, or what less the enhanced form allows a common value."""
    q = column.table[column.value]
    limit = np.minimum(model.beta, -np.log(q)) if model.enhanced else np.full(q.size, float(model.beta))
    return level(column), bool((_gain(column) <= limit + CLOSE / q).all())


def _gain(column: Column) -> np.ndarray:
    return column.share / column.table[column.value] - 1
