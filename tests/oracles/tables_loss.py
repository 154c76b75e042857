"""The least loss over all partitions of tiny tables, whatever the recoding.  Exponential, and obviously right."""

from __future__ import annotations

import numpy as np

from shoal.model.histogram import Histogram
from shoal.model.partition import Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from tests.oracles.tables import eligible, partitions


def row_loss(recoding: Recoding, rows: list[tuple[int, ...]]) -> float | None:
    """Weighted loss of one row of a group; None when a column would pass its ceiling."""
    total = 0.0
    for j, column in enumerate(recoding.columns):
        held = sorted({row[j] for row in rows})
        if column.kind == "range":
            total += column.weight * (column.position[held[-1]] - column.position[held[0]]) / column.span
        elif column.kind == "set":
            total += column.weight * (len(held) - 1) / max(column.size - 1, 1)
        else:
            level = next(i for i in range(column.levels) if len({int(column.node[i][v]) for v in held}) == 1)
            if level > column.ceiling:
                return None
            total += column.weight * float(column.loss[level][held[0]])
    return total


def least_loss(histogram: Histogram, need: Requirement, recoding: Recoding) -> float | None:
    """Least total loss (sum over rows and columns); None when no partition will do."""
    cells = [c for c in range(histogram.cells) for _ in range(int(histogram.count[c]))]
    quasi = [tuple(int(v) for v in histogram.quasi[c]) for c in cells]
    sensitive = [tuple(int(v) for v in histogram.sensitive[c]) for c in cells]
    best = None
    for partition in partitions(len(cells)):
        if not all(eligible([sensitive[i] for i in g], need.k, need.frequency, need.distinct) for g in partition):
            continue
        losses = [row_loss(recoding, [quasi[i] for i in g]) for g in partition]
        if any(loss is None for loss in losses):
            continue
        total = sum(len(g) * loss for g, loss in zip(partition, losses, strict=True) if loss is not None)
        best = total if best is None else min(best, total)
    return best


def paid(histogram: Histogram, recoding: Recoding, partition: Partition) -> float | None:
    """Total loss of a partition, group by group; None when a group passes a ceiling."""
    total = 0.0
    for g in range(partition.groups):
        here = partition.group == g
        rows = np.repeat(histogram.quasi[partition.cell[here]], partition.count[here], axis=0)
        loss = row_loss(recoding, [tuple(int(v) for v in row) for row in rows])
        if loss is None:
            return None
        total += len(rows) * loss
    return total


def in_unit(total: float, histogram: Histogram, recoding: Recoding) -> float:
    """A total as a certificate counts it."""
    return total if recoding.unit == "stars" else total / max(histogram.rows * len(recoding.columns), 1)
