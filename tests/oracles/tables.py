"""Exhaustive answers on tiny tables, and what groups lose in any recoding.  Exponential, and obviously right."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from shoal.model.histogram import Histogram, Partition
from shoal.model.privacy import Requirement
from shoal.model.recoding import Recoding
from tests.oracles.models import meets


def eligible(sensitive: list[tuple[int, ...]], k: int, frequency: tuple[int, ...], distinct: tuple[int, ...]) -> bool:
    """Whether rows with these sensitive tuples may be published as one group."""
    if len(sensitive) < k:
        return False
    for j, (f, u) in enumerate(zip(frequency, distinct, strict=True)):
        column = [row[j] for row in sensitive]
        if len(set(column)) < u or any(f * column.count(v) > len(column) for v in set(column)):
            return False
    return True


def partitions(n: int) -> Iterator[list[list[int]]]:
    """Every partition of 0..n-1 into non-empty sets."""
    if n == 0:
        yield []
        return
    for smaller in partitions(n - 1):
        for i in range(len(smaller)):
            yield [*smaller[:i], [*smaller[i], n - 1], *smaller[i + 1 :]]
        yield [*smaller, [n - 1]]


def least_total(n: int, price: Callable[[list[int]], float | None]) -> float | None:
    """Least sum of prices over all partitions of 0..n-1; None for a group is no group, for the whole no partition.

    The lowest number left has every set in turn as its group.  Each set is priced once, each rest solved once.
    """
    groups = {mask: price([i for i in range(n) if mask >> i & 1]) for mask in range(1, 2**n)}
    found = {0: 0.0}
    for left in range(1, 2**n):
        low, best = left & -left, None
        more = rest = left ^ low
        while True:
            total, others = groups[more | low], found[rest ^ more]
            if total is not None and others is not None and (best is None or total + others < best):
                best = total + others
            if not more:
                break
            more = (more - 1) & rest
        found[left] = best
    return found[2**n - 1]


def fewest_suppressed(types: list[int], sensitive: list[int], l: int, k: int = 1, distinct: int = 1) -> int | None:
    """Fewest rows outside groups of equal rows: every choice of a residue from the (type, value) counts."""
    shape = (max(types, default=-1) + 1, max(sensitive, default=-1) + 1)
    counts = np.zeros(shape, int)
    for t, s in zip(types, sensitive, strict=True):
        counts[t, s] += 1

    def fits(values: np.ndarray) -> bool:
        n = int(values.sum())
        return n == 0 or (n >= k and l * int(values.max()) <= n and int((values > 0).sum()) >= distinct)

    best = None
    for flat in product(*(range(c + 1) for c in counts.ravel())):
        gone = np.array(flat, int).reshape(shape)
        if fits(gone.sum(axis=0)) and all(fits(row) for row in counts - gone):
            best = int(gone.sum()) if best is None else min(best, int(gone.sum()))
    return best


def least_stars(
    rows: list[tuple[int, ...]],
    sensitive: list[tuple[int, ...]],
    k: int,
    frequency: tuple[int, ...] = (),
    distinct: tuple[int, ...] = (),
) -> int | None:
    """Fewest stars over all partitions into eligible groups; None when there is none."""

    def price(group: list[int]) -> int | None:
        if not eligible([sensitive[i] for i in group], k, frequency, distinct):
            return None
        return len(group) * sum(len({rows[i][j] for i in group}) > 1 for j in range(len(rows[0])))

    found = least_total(len(rows), price)
    return None if found is None else round(found)


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


def least_loss(
    histogram: Histogram, need: Requirement, recoding: Recoding, model: tuple[str, dict[str, Any]] | None = None
) -> float | None:
    """Least total loss (sum over rows and columns); None when no partition will do.

    model  by its name and parameters, whose definition decides which groups of k rows may stand, in place of ``need``
    """
    quasi, sensitive = (
        [tuple(map(int, row)) for row in np.repeat(codes, histogram.count, axis=0)]
        for codes in (histogram.quasi, histogram.sensitive)
    )

    def good(hidden: list[tuple[int, ...]]) -> bool:
        if model is not None:
            return len(hidden) >= need.k and meets(*model, hidden, sensitive)
        if not eligible(hidden, need.k, need.frequency, need.distinct):
            return False
        return all(rule.holds(np.array(hidden), np.ones(len(hidden), np.int64)) for rule in need.rules)

    def price(group: list[int]) -> float | None:
        if not good([sensitive[i] for i in group]):
            return None
        loss = row_loss(recoding, [quasi[i] for i in group])
        return None if loss is None else len(group) * loss

    return least_total(len(quasi), price)


def held(histogram: Histogram, partition: Partition) -> list[list[tuple[int, ...]]]:
    """The sensitive values of every group's rows; a row that is nowhere or twice is an error."""
    partition.check(histogram)
    groups: list[list[tuple[int, ...]]] = [[] for _ in range(partition.groups)]
    for cell, group, count in zip(partition.cell, partition.group, partition.count, strict=True):
        groups[group] += [tuple(histogram.sensitive[cell].tolist())] * int(count)
    return groups


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


def loss_of(histogram: Histogram, recoding: Recoding, partition: Partition) -> float:
    """What a certificate of this partition states as its cost."""
    total = paid(histogram, recoding, partition)
    assert total is not None, "a group passes a ceiling"
    return in_unit(total, histogram, recoding)


def least_loss_of_many(histogram: Histogram, k: int, recoding: Recoding) -> float:
    """Least total loss under k-anonymity of few distinct rows that stand many times, by how many of each are left.

    No group needs 2k rows, since two of its parts lose no more than the whole.
    """
    rows = [tuple(int(v) for v in row) for row in histogram.quasi]
    groups = [
        (taken, total * row_loss(recoding, [row for row, n in zip(rows, taken, strict=True) if n]))
        for taken in product(range(2 * k), repeat=len(rows))
        if k <= (total := sum(taken)) < 2 * k
    ]

    @cache
    def cost(left: tuple[int, ...]) -> float:
        first = next((i for i, n in enumerate(left) if n), None)
        if first is None:
            return 0.0
        found = float("inf")
        for taken, loss in groups:
            if taken[first]:
                rest = tuple(n - m for n, m in zip(left, taken, strict=True))
                if min(rest) >= 0:
                    found = min(found, loss + cost(rest))
        return found

    return cost(tuple(int(n) for n in histogram.count))


def in_unit(total: float, histogram: Histogram, recoding: Recoding) -> float:
    """A total as a certificate counts it."""
    return total if recoding.unit == "stars" else total / max(histogram.rows * len(recoding.columns), 1)
