"""Least loss over all partitions, straight from the definitions; and the paper's divide and conquer."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from tests.oracles.tables import eligible, partitions


def group_loss(rows: list[tuple[int, ...]], recoding: Recoding) -> float:
    """What one row of this group loses, summed over the columns."""
    total = 0.0
    for j, column in enumerate(recoding.columns):
        values = sorted({row[j] for row in rows})
        if column.kind == "levels":
            level = next(i for i in range(column.levels) if len({int(column.node[i][v]) for v in values}) == 1)
            loss = float(column.loss[level][values[0]])
        elif column.kind == "range":
            loss = float(column.position[values[-1]] - column.position[values[0]]) / column.span
        else:
            loss = (len(values) - 1) / max(column.size - 1, 1)
        total += loss * column.weight
    return total


def least_loss(
    rows: list[tuple[int, ...]],
    recoding: Recoding,
    k: int,
    sensitive: list[tuple[int, ...]] | None = None,
    frequency: tuple[int, ...] = (),
    distinct: tuple[int, ...] = (),
) -> float | None:
    """Least loss summed over rows and columns; None when no partition is eligible."""
    best = None
    sensitive = sensitive or [()] * len(rows)
    for partition in partitions(len(rows)):
        if all(eligible([sensitive[i] for i in g], k, frequency, distinct) for g in partition):
            loss = sum(len(g) * group_loss([rows[i] for i in g], recoding) for g in partition)
            best = loss if best is None else min(best, loss)
    return best


def in_unit(total: float, recoding: Recoding, rows: int) -> float:
    """A summed loss as a certificate counts it."""
    return total if recoding.unit == "stars" else total / max(rows * len(recoding.columns), 1)


def divide_and_conquer(rows: list[tuple[int, ...]], k: int) -> float:
    """Blocki and Williams 2010, Theorem 1.3: fewest stars, by halves.

    Some union T of groups of a best partition has n/2 <= |T| <= n/2 + 2k rows: try every such T and solve both sides.
    As printed the recursion never ends on |S| <= 4k, where T may be S: T is a proper part here, both sides have k rows
    or more, and a set of fewer than 2k rows is one group.
    """
    count = len(rows)

    @cache
    def cost(s: frozenset[int]) -> float:
        n = len(s)
        if n == 0:
            return 0
        if n < k:
            return float("inf")
        alone = n * sum(len({rows[i][j] for i in s}) > 1 for j in range(len(rows[0])))
        if n < 2 * k:
            return alone
        sizes = range(max(k, (n + 1) // 2), min(n - k, n // 2 + 2 * k) + 1)
        halves = (frozenset(t) for size in sizes for t in combinations(sorted(s), size))
        return min([alone, *(cost(t) + cost(s - t) for t in halves)])

    return cost(frozenset(range(count)))


def perfect_matchings(n: int, edges: dict[tuple[int, ...], int]) -> float:
    """Least cost of edges (pairs and triples, sorted tuples) that hold every one of 0..n-1 once; inf when none do."""
    best = float("inf")
    for partition in partitions(n):
        if all(tuple(sorted(g)) in edges for g in partition):
            best = min(best, sum(edges[tuple(sorted(g))] for g in partition))
    return best


@st.composite
def recodings(draw: st.DrawFn, sizes: tuple[int, ...], kinds: tuple[str, ...] = ("stars", "tree", "set", "range")):
    """One recoding for columns of these sizes, kinds mixed."""
    columns = []
    for size in sizes:
        kind = draw(st.sampled_from(kinds))
        if kind == "stars":
            columns.append(Levels.stars(size))
        elif kind == "tree":
            nodes = [np.arange(size)]
            for _ in range(draw(st.integers(0, 2))):
                width = int(nodes[-1].max(initial=0)) + 1
                merge = np.array(draw(st.lists(st.integers(0, max(width - 1, 0)), min_size=width, max_size=width)), int)
                nodes.append(np.unique(merge, return_inverse=True)[1][nodes[-1]])
            nodes.append(np.zeros(size, int))
            columns.append(Levels.tree(np.stack(nodes), weight=draw(st.sampled_from([1.0, 0.5, 3.0]))))
        elif kind == "set":
            columns.append(Sets.of(size))
        else:
            steps = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
            columns.append(Ranges.of(np.cumsum(steps).astype(float)))
    return Recoding(tuple(columns), "ncp")


def rows_of(d: int, n: int, values: int = 3, least: int = 2) -> st.SearchStrategy[list[tuple[int, ...]]]:
    """Lists of rows over d columns."""
    return st.lists(st.tuples(*[st.integers(0, values - 1)] * d), min_size=least, max_size=n)
