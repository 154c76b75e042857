"""Which groups show a value that only one of their rows holds: as an end of a range, or in a set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from shoal.model.histogram import Histogram
from shoal.model.partition import Partition
from shoal.model.recoding import ColumnRecoding


class Exposed(NamedTuple):
    """Shares of the groups, from 0 to 1: per column of ranges or sets, and of those that any such column exposes."""

    columns: Mapping[str, float]
    groups: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"columns": dict(self.columns), "groups": self.groups}


def exposed(
    histogram: Histogram, partition: Partition, columns: Sequence[ColumnRecoding], widened: Collection[str]
) -> Exposed:
    """Groups that show a value which one row of theirs holds.

    partition  its groups are the classes of rows published alike
    columns    those that are recoded
    widened    names of those whose ranges end on a grid, at which somebody's value may lie but need not

    Ranges and sets alone: any other form shows what at least k rows share.  O(p d log p) for p triples.
    """
    shares: dict[str, float] = {}
    anywhere = np.zeros(partition.groups, bool)
    for j, column in enumerate(columns):
        size = np.int64(max(column.size, 1))
        pair, at = np.unique(partition.group * size + histogram.quasi[partition.cell, j], return_inverse=True)
        held = np.bincount(at.reshape(-1), weights=partition.count, minlength=pair.size)
        group = pair // size
        border = np.flatnonzero(np.diff(group, prepend=-1, append=partition.groups))
        shown = column.bared(group, pair % size, border)
        if shown is None:
            continue
        shown &= histogram.quasi_names[j] not in widened
        alone = np.zeros(partition.groups, bool)
        alone[group[shown & (held == 1)]] = True
        anywhere |= alone
        shares[histogram.quasi_names[j]] = float(alone.mean()) if alone.size else 0.0
    return Exposed(shares, (float(anywhere.mean()) if anywhere.size else 0.0) if shares else None)
