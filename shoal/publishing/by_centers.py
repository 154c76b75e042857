"""A table published as centers: rows are gathered by distance, and every row shows its cluster's center."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.engines.table import Counted
from shoal.errors import PolicyError
from shoal.model.certificate import Certificate
from shoal.model.hierarchy import Hierarchy
from shoal.model.histogram import Partition
from shoal.model.metric import Category, Feature, Metric, Number
from shoal.model.notation import reader_of
from shoal.model.policy import Policy
from shoal.model.privacy import Requirement
from shoal.model.recoding import Ranges, Recoding
from shoal.model.task import Grouping
from shoal.publishing.recodings import ColumnText


def metric_of(
    asked: Policy, counted: Counted, texts: list[list[str | None]], cell: np.ndarray
) -> tuple[Metric, list[np.ndarray]]:
    """A Metric over the quasi-identifiers, and the position or code in each of a row of every ``cell``.

    Numbers and dates are scaled to a span of 1; other values are 1 apart, or as far as their hierarchy says.
    """
    features: list[Feature] = []
    columns: list[np.ndarray] = []
    for j, (column, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        codes = counted.histogram.quasi[cell, j]
        weight = float(asked.weights.get(column.name, 1.0))
        position = None if column.name in asked.hierarchies else column.positions()
        if position is not None:
            features.append(Number(column.name, scale=max(float(position[-1] - position[0]), 1e-12), weight=weight))
            columns.append(position[codes])
            continue
        levels = None
        if column.name in asked.hierarchies:
            tree = Hierarchy.of(asked.hierarchies[column.name])
            levels = tree.resolve(values, column.name, reader_of(column.notation)).node.T
        features.append(Category(column.name, values=max(column.size, 1), weight=weight, levels=levels))
        columns.append(codes.astype(np.int64))
    return Metric(features=tuple(features)), columns


def _other_models(need: Requirement, counted: Counted) -> Callable[..., bool] | None:
    """Whether a cluster meets the models that shares and numbers of values do not say, from its counts by column."""
    if not need.rules:
        return None
    wanted = list(need.sensitive_columns)
    for rule in need.rules:
        if rule.model.speaks == "tuples":
            raise PolicyError(
                f"⟨publish='centers'⟩ cannot keep {rule.model.name}; publish stars, ranges or a hierarchy"
            )
    present = [np.unique(counted.histogram.sensitive[:, j]) for j in wanted]

    def holds(*counts: np.ndarray) -> bool:
        for rule in need.rules:
            at = wanted.index(rule.columns[0])
            full = np.zeros(len(rule.table), np.int64)
            full[present[at][: counts[at].size]] = counts[at]
            if not rule.model.holds(full, np.array(rule.table)):
                return False
        return True

    return holds


def by_centers(
    asked: Policy, counted: Counted, texts: list[list[str | None]], need: Requirement
) -> tuple[Grouping, Recoding, list[ColumnText]]:
    """Gather the rows, at least ``need.k`` in every cluster and diverse; publish each cluster's center record.

    The certificate counts the largest radius.  The recoding is that of ranges and sets, for the loss measures alone.
    """
    from shoal.problems.gathering import gather

    if asked.method not in ("auto", "local", "disjoint", "threshold"):
        raise PolicyError.unknown("method for ⟨publish='centers'⟩", asked.method, ["local", "disjoint", "threshold"])
    histogram = counted.histogram
    loss = Recoding(tuple(Ranges.of_column(c.size, c.positions, 1.0) for c in counted.quasi))
    cell = np.repeat(np.arange(histogram.cells), histogram.count)  # rows of a cell are the same point to every engine
    metric, columns = metric_of(asked, counted, texts, cell)
    if not histogram.rows:
        nothing = Partition.of(*(np.zeros(0, np.int64),) * 3)
        empty = Grouping(nothing, Certificate(cost=0.0, lower_bound=0.0, unit="distance"), "gather")
        none = np.zeros(0, np.int64)
        return empty, loss, [ColumnText(c.name, [], none, none, none.astype(bool), none) for c in counted.quasi]
    wanted = list(need.sensitive_columns)
    found = gather(
        tuple(columns),
        r=max(need.smallest, 1),
        metric=metric,
        method=asked.method,
        effort=asked.effort,
        sensitive=histogram.sensitive[cell][:, wanted] if wanted else None,
        l=[need.frequency[j] for j in wanted] if wanted else None,
        distinct_l=[need.distinct[j] for j in wanted] if wanted else None,
        eligible=_other_models(need, counted),
    )
    partition = Partition.of(cell, found.labels, np.ones(found.labels.size, np.int64))
    out: list[ColumnText] = []
    for j, (column, values) in enumerate(zip(counted.quasi, texts, strict=True)):
        code = histogram.quasi[cell[found.center_rows], j].astype(np.int64)
        mine = histogram.quasi[partition.cell, j]
        same = np.minimum.reduceat(mine == code[partition.group], partition.start)
        key = code * 2 + same
        distinct, index = np.unique(key, return_inverse=True)
        shown = [values[int(k) // 2] for k in distinct]
        plain = np.where(distinct % 2 == 1, distinct // 2, -1)
        stars = np.zeros(len(shown), bool)
        out.append(ColumnText(column.name, shown, index.reshape(-1), plain, stars, distinct // 2))
    return Grouping(partition, found.certificate, found.method), loss, out
