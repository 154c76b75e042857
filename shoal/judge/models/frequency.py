"""l-diversity by frequency."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.judge.tables.counted import Column


def level(column: Column) -> float:
    """The largest l with at most 1/l of every class sharing a value."""
    return float((column.sizes / np.maximum.reduceat(column.count, column.start)).min())


def found(model: Any, column: Column) -> tuple[float, bool]:
    """In whole numbers, so that no rounding decides."""
    top = np.maximum.reduceat(column.count, column.start)
    return level(column), bool((model.l * top <= column.sizes).all())
