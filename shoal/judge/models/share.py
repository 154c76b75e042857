"""(alpha,k)-anonymity."""

from __future__ import annotations

from typing import Any

from shoal.judge.tables.counted import CLOSE, Column


def level(column: Column) -> float:
    """Largest share of a value in a class."""
    return float(column.share.max())


def found(model: Any, column: Column) -> tuple[float, bool]:
    """The largest share, and the smallest class."""
    return level(column), bool(column.sizes.min() >= model.k and level(column) <= model.alpha + CLOSE)
