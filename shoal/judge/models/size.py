"""k-anonymity."""

from __future__ import annotations

from typing import Any

import numpy as np


def found(model: Any, sizes: np.ndarray) -> tuple[int, bool]:
    """The smallest class."""
    smallest = int(sizes.min())
    return smallest, smallest >= model.k
