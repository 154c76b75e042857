"""Work on all cores where it pays, and in the caller's own thread where it is over before a thread has begun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

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
    with ThreadPoolExecutor(workers) as pool:
        yield lambda work, items: list(pool.map(work, items))
