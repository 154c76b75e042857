"""The papers' divide and conquer, perfect matchings by trying all, and recodings and rows to draw."""

from functools import cache
from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from shoal.model.recoding import Levels, Ranges, Recoding, Sets
from tests.oracles.tables import partitions


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
