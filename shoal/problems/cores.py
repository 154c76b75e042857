"""Work on all cores where it pays, and in the caller's own thread where it is over before a thread has begun."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")
ALONE = 1e6  # look-ups that a core makes in a few milliseconds, about what a pool of threads costs


def cores(looks: float) -> int:
    """How many cores are worth asking for some look-ups."""
    return 1 if looks < ALONE else os.cpu_count() or 1


def each(work: Callable[[A], B], items: Iterable[A], workers: int) -> list[B]:
    """``work`` on every item, in their order; one worker is this thread itself."""
    if workers == 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, items))
