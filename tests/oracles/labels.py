"""Every partition, every cut.  Exponential, and obviously right."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise


def partitions(n: int) -> Iterator[list[int]]:
    """Each partition of n items once, as the group of each item."""

    def extend(groups: list[int]) -> Iterator[list[int]]:
        if len(groups) == n:
            yield groups
            return
        for g in range(max(groups, default=-1) + 2):
            yield from extend([*groups, g])

    yield from extend([])


def loads_of(sizes: Sequence[int], groups: Sequence[int]) -> list[int]:
    loads = [0] * (max(groups) + 1)
    for size, group in zip(sizes, groups, strict=True):
        loads[group] += size
    return loads


def least_largest(sizes: Sequence[int], k: int) -> int:
    """The least possible largest group, all groups counting at least k."""
    every = (loads_of(sizes, groups) for groups in partitions(len(sizes)))
    return min(max(loads) for loads in every if min(loads) >= k)


def most_groups(sizes: Sequence[int], k: int) -> int:
    """The most groups of at least k."""
    every = (loads_of(sizes, groups) for groups in partitions(len(sizes)))
    return max(len(loads) for loads in every if min(loads) >= k)


def cheapest_cut(weights: Sequence[int], k: int, cost: Callable[[int, int], float], total: Callable = sum) -> float:
    """The least total (``sum`` or ``max``) of cost(i, j) over every cut into stretches i .. j-1 of at least k."""
    n, best = len(weights), None
    for count in range(n):
        for inner in combinations(range(1, n), count):
            marks = [0, *inner, n]
            spans = list(pairwise(marks))
            if min(sum(weights[i:j]) for i, j in spans) >= k:
                found = total([cost(i, j) for i, j in spans])
                best = found if best is None else min(best, found)
    assert best is not None
    return best
