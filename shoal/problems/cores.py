"""Work on all cores where it pays, and in the caller's own thread where it is over before a thread has begun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from shoal.problems.interrupts import Workers

A = TypeVar("A")
B = TypeVar("B")
Each = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]  # some work on every item, in their order
ALONE = 1e6  # look-ups that a core makes in a few milliseconds, about what a pool of threads costs


def cores(looks: float) -> int:
    """How many cores are worth asking for some look-ups."""
    return 1 if looks < ALONE else os.cpu_count() or 1


def each(work: Callable[[A], B], items: Iterable[A], workers: int) -> list[B]:
    """``work`` on every item, in their order; one worker is this thread itself."""
    with threads(workers) as some:
        return some(work, items)


def in_turn(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """``work`` on every item, in this thread."""
    return [work(item) for item in items]


@contextmanager
def threads(most: int) -> Iterator[Each]:
    """What does some work on every item, on as many cores as there are and at most so many."""
    workers = min(most, os.cpu_count() or 1)
    if workers == 1:
        yield in_turn
        return
    with Workers(workers) as pool:
        yield lambda work, items: list(pool.map(work, items))


def even(first: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Consecutive parts of items, with about as many members each; those of item i are first[i] .. first[i + 1] - 1."""
    ends = np.searchsorted(first, np.linspace(0, int(first[-1]), parts + 1)[1:-1])
    cuts = [0, *map(int, ends), first.size - 1]
    return list(pairwise(cuts))
