"""t-closeness, beta-likeness and delta-disclosure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shoal.errors import PolicyError
from shoal.judge.models import CLOSE, ClassCounts, hierarchical


def equal(column: ClassCounts) -> float:
    """Half the sum of |p - q| over all values. Absent values contribute the total of q that present values leave."""
    p, at = column.share, column.table[column.value]
    present = np.bincount(column.group, weights=np.abs(p - at), minlength=column.sizes.size)
    absent = 1 - np.bincount(column.group, weights=at, minlength=column.sizes.size)
    return float(np.clip((present + absent) / 2, 0, 1).max())


def ordered(column: ClassCounts) -> float:
    """Earth mover's distance on ranks: 1/(m-1) times the sum of |P - Q| of the cumulative shares. O(pairs log m)."""
    m = column.values
    if m < 2:
        return 0.0
    cumulated = np.concatenate([[0.0], np.cumsum(column.table)])  # Q before value v
    area = np.concatenate([[0.0], np.cumsum(cumulated[1:])])  # sum of Q(0..v) for v < index
    rows = np.cumsum(column.count)  # whole numbers, so the order of the groups doesn't change rounding
    rows -= np.repeat((rows - column.count)[column.start], np.diff(np.append(column.start, column.group.size)))
    run = rows / column.sizes[column.group]  # P up to this value
    # P is constant between two consecutive present values: sum |P - Q(v)| over v in [a, b)
    a = column.value
    b = np.append(column.value[1:], m)
    last = np.append(column.group[1:] != column.group[:-1], True)
    b = np.where(last, m, b)
    cross = np.clip(np.searchsorted(cumulated[1:], run, side="left"), a, b)  # Q < P below this index
    part = run * (cross - a) - (area[cross] - area[a]) + (area[b] - area[cross]) - run * (b - cross)
    total = np.bincount(column.group, weights=part, minlength=column.sizes.size)
    total += area[column.value[column.start]]  # before the first present value P is 0
    return float(np.clip(total / (m - 1), 0, 1).max())


def by_tree(column: ClassCounts) -> float:
    """The largest distance of a class from the table by the hierarchy, 0 to 1; PolicyError without a hierarchy."""
    if column.node is None:
        raise PolicyError("t-closeness by the hierarchical distance needs the hierarchy of its column; hand it over")
    return hierarchical(column.group, column.value, column.count, column.sizes, column.table, column.node)


def t_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The largest distance, by the distance that the model names."""
    largest = {"equal": equal, "ordered": ordered, "hierarchical": by_tree}[model.distance](column)
    return largest, largest <= model.t + CLOSE


def beta_level(column: ClassCounts) -> float:
    """The largest relative gain (p - q) / q of a value in a class over the table."""
    return max(float(_gain(column).max()), 0.0)


def beta_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The largest gain, and whether each is at most beta, or at most the enhanced model's limit for frequent values."""
    q = column.table[column.value]
    limit = np.minimum(model.beta, -np.log(q)) if model.enhanced else np.full(q.size, float(model.beta))
    return beta_level(column), bool((_gain(column) <= limit + CLOSE / q).all())


def _gain(column: ClassCounts) -> np.ndarray:
    return column.share / column.table[column.value] - 1


def delta_level(column: ClassCounts, absent: bool = True) -> float:
    """The largest |log(p / q)| of a value in a class.

    With ``absent``, it is infinite if a class lacks a value of the table.
    """
    if absent and (np.bincount(column.group) < column.values).any():
        return math.inf
    return float(np.abs(np.log(column.share / column.table[column.value])).max())


def delta_found(model: Any, column: ClassCounts) -> tuple[float, bool]:
    """The largest level, and whether it is below delta."""
    largest = delta_level(column, model.absent == "infinite")
    return largest, largest < model.delta - CLOSE


FOUND = {"TCloseness": t_found, "BetaLikeness": beta_found, "DeltaDisclosure": delta_found}
