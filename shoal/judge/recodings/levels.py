"""Labels of a hierarchy."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.judge.originals.covering import GENERATED


def found(raw: str, column: Any) -> tuple[int, int, np.ndarray, list[float]] | None:
    """The classes that are called so; of a generated hierarchy, what its names say."""
    if column.node is not None:
        classes = column.labels.get(raw, [])
        parts = [np.flatnonzero(column.node[level] == number) for level, number in classes]
        losses = [float(column.loss[level][p[0]]) for (level, _), p in zip(classes, parts, strict=True)]
        return (0, -1, np.unique(np.concatenate(parts)), losses) if parts else None
    if not isinstance(column.how.hierarchy, str):
        return None
    column.certain = False
    inside = GENERATED[column.how.hierarchy](raw, column.values)
    return None if inside is None or not inside.size else (0, -1, inside, [0.0, 1.0])
