"""Every partition of a small graph into connected eligible regions; exponential, and obviously right."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

Region = tuple[int, ...]


def connected(region: Iterable[int], edges: Iterable[tuple[int, int]]) -> bool:
    """Whether the vertices of ``region`` hang together by edges among themselves."""
    left = set(region)
    if not left:
        return False
    reached = [left.pop()]
    for v in reached:
        for a, b in edges:
            for x, y in ((a, b), (b, a)):
                if x == v and y in left:
                    left.remove(y)
                    reached.append(y)
    return not left


def cheapest_connected(areas: Iterable[int], weights: Sequence[int], edges: Sequence[tuple[int, int]]) -> float:
    """Weight of the cheapest connected set with some vertices, by trying every set; infinite where there is none."""
    areas = set(areas)
    others = [v for v in range(len(weights)) if v not in areas]
    every = (areas | set(more) for size in range(len(others) + 1) for more in combinations(others, size))
    return min((float(sum(weights[v] for v in s)) for s in every if connected(s, edges)), default=float("inf"))


def meets(region: Region, weights: Sequence[Sequence[int]], ks: Sequence[int], counts=None, l: int = 1) -> bool:
    """Every threshold, and every sensitive value at most 1/l of the records."""
    if any(sum(weights[v][j] for v in region) < k for j, k in enumerate(ks)):
        return False
    if counts is None or l == 1:
        return True
    sums = [sum(column) for column in zip(*(counts[v] for v in region), strict=True)]
    return l * max(sums) <= sum(sums)


def partitions(n: int, edges, weights, ks, counts=None, l: int = 1) -> Iterator[list[Region]]:
    """All partitions of 0..n-1 into connected regions that meet what is asked."""
    edges = list(edges)
    regions = [
        region
        for size in range(1, n + 1)
        for region in combinations(range(n), size)
        if meets(region, weights, ks, counts, l) and connected(region, edges)
    ]

    def extend(left: frozenset[int]) -> Iterator[list[Region]]:
        if not left:
            yield []
            return
        first = min(left)
        for region in regions:
            if region[0] == first and left.issuperset(region):
                for rest in extend(left - set(region)):
                    yield [region, *rest]

    yield from extend(frozenset(range(n)))


def naive_tree_cut(tree_edges: list[tuple[int, int]], n: int, weights: Sequence[int], k: int) -> list[Region]:
    """The paper's algorithm as printed: try each edge anew, cut off the lightest side of weight at least k, repeat."""
    left, parts = set(range(n)), []
    while True:
        best: tuple[int, int, set[int]] | None = None
        inside = [(a, b) for a, b in tree_edges if a in left and b in left]
        for cut in inside:
            rest = [e for e in inside if e != cut]
            for start in cut:
                side, grown = {start}, True
                while grown:
                    grown = False
                    for a, b in rest:
                        if (a in side) != (b in side):
                            side |= {a, b}
                            grown = True
                weight = sum(weights[v] for v in side)
                other = sum(weights[v] for v in left) - weight
                if weight >= k and other >= k and (best is None or (weight, len(side)) < best[:2]):
                    best = (weight, len(side), side)
        if best is None:
            return [*parts, tuple(sorted(left))]
        parts.append(tuple(sorted(best[2])))
        left -= best[2]
