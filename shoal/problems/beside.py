"""Long calls that release the interpreter, beside each other, until told to stop."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from threading import Event
from types import TracebackType
from typing import Any, TypeVar

from shoal.problems.interrupts import Workers, deep

R = TypeVar("R")
LOOK = 0.1  # seconds between two moments at which an interrupt is heard


class Beside:
    """Work in threads of its own; what still runs at the end is told to stop, and nobody waits for it.

    cores  how many calls go at full speed
    """

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self._pool = Workers()
        self._stop = Event()

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def start(self, work: Callable[[Event], R]) -> Future[R]:
        """Begin some work, which is handed what is set when it shall stop."""
        with deep():
            return self._pool.submit(work, self._stop)

    def first(self, *asked: Future[Any] | None, seconds: float = math.inf) -> Future[Any] | None:
        """The first of them that ends, None where each takes longer; of several that have ended the first named."""
        some = [future for future in asked if future is not None]
        while not wait(some, LOOK, FIRST_COMPLETED).done and (seconds := seconds - LOOK) > 0:
            pass
        return next((future for future in some if future.done()), None)

    def result(self, asked: Future[R]) -> R:
        """What it came to."""
        self.first(asked)
        return asked.result()
