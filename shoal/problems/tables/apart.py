"""Rows that may not share a group: every part of the table grouped by itself, one certificate for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shoal.model.certificate import Certificate, Guarantee, tight
from shoal.model.effort import Effort
from shoal.model.histogram import Histogram
from shoal.model.partition import Partition
from shoal.model.task import Grouping


def part_of(histogram: Histogram, cells: np.ndarray) -> Histogram:
    """Some cells of a histogram, their codes as they were."""
    return replace(
        histogram, quasi=histogram.quasi[cells], sensitive=histogram.sensitive[cells], count=histogram.count[cells]
    )


def by_parts(
    histogram: Histogram, apart: np.ndarray, effort: Effort, solve: Callable[[Histogram, Effort], Grouping]
) -> Grouping:
    """Every part solved by itself, seconds dealt by rows.

    apart  int64[m]  cells of different numbers never share a group

    No group has rows of two parts, so losses and bounds add up, and a factor that holds for each holds for all.
    """
    found, cells, rows = [], [], []
    for number in np.unique(apart):
        here = np.flatnonzero(apart == number)
        part = part_of(histogram, here)
        share = part.rows / histogram.rows
        own = effort if effort.seconds is None else Effort("seconds", effort.seconds * share)
        found.append(solve(part, own))
        cells.append(here)
        rows.append(part.rows)
    first = np.cumsum([0, *(g.partition.groups for g in found)])
    partition = Partition.of(
        np.concatenate([c[g.partition.cell] for c, g in zip(cells, found, strict=True)]),
        np.concatenate([g.partition.group + at for g, at in zip(found, first[:-1], strict=True)]),
        np.concatenate([g.partition.count for g in found]),
    )
    methods = list(dict.fromkeys(g.method for g in found))
    attempts = tuple(a for g in found for a in g.attempts)
    return Grouping(partition, _together([g.certificate for g in found], rows), " and ".join(methods), attempts)


def _together(certificates: list[Certificate], rows: list[int]) -> Certificate:
    """Costs and bounds of parts as those of the whole: sums, of means the mean over all rows."""
    unit = certificates[0].unit
    weight = [n / sum(rows) for n in rows] if unit == "ncp" else [1] * len(rows)
    cost = sum(c.cost * w for c, w in zip(certificates, weight, strict=True))
    lower = sum(c.lower_bound * w for c, w in zip(certificates, weight, strict=True))
    promises = {(c.guarantee.factor, c.guarantee.additive, c.guarantee.theorem) for c in certificates}
    same = len(promises) == 1 and not certificates[0].guarantee.additive
    bound = "; ".join(f"{n:,} rows: {c.bound}" for n, c in zip(rows, certificates, strict=True))
    parts = [
        {"rows": n, "cost": c.cost, "lower_bound": c.lower_bound, "details": dict(c.details)}
        for n, c in zip(rows, certificates, strict=True)
    ]
    return Certificate(
        cost=cost,
        lower_bound=tight(lower, cost, unit, bound),
        unit=unit,
        guarantee=certificates[0].guarantee if same else Guarantee(),
        bound=f"parts grouped apart, added up: {bound}",
        details={"parts": parts},
    )
