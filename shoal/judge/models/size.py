"""k-anonymity and (alpha,k)-anonymity."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.judge.models import CLOSE, ClassCounts


def size_found(model: Any, sizes: np.ndarray) -> tuple[int, bool]:
    """The smallest class."""
    smallest = int(sizes.min())
    return smallest, smallest >= model.k


def share_level(column: ClassCounts) -> float:
    """Largest share of a value in a class."""
    return float(column.share.max())


def share_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The largest share, and the smallest class."""
    return share_level(column), bool(column.sizes.min() >= model.k and share_level(column) <= model.alpha + CLOSE)


FOUND = {"KAnonymity": size_found, "AlphaKAnonymity": share_found}
