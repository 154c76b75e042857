"""Distinct l-diversity."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.judge.tables.counted import Column


def level(column: Column) -> int:
    """Fewest different values in a class."""
    return int(np.bincount(column.group).min())


def found(model: Any, column: Column) -> tuple[int, bool]:
    """Fewest different values, against l."""
    return level(column), level(column) >= model.l
