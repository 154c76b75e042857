"""The least loss over all partitions of tiny tables, whatever the recoding.  Exponential, and obviously right."""

from __future__ import annotations

import numpy as np

from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from tests.oracles.tables import eligible, least_total


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

    def price(group: list[int]) -> float | None:
        if not eligible([sensitive[i] for i in group], need.k, need.frequency, need.distinct):
            return None
        loss = row_loss(recoding, [quasi[i] for i in group])
        return None if loss is None else len(group) * loss

    return least_total(len(cells), price)


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
