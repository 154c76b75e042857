"""A monotonic clock for search budgets. It pauses while a kernel is compiled, or runs as Python until it is compiled.

Compiling takes seconds, once per machine. If these seconds counted, the first call on a machine would find and prove
less than the second, and the quick bounds would find nothing. The clock is global: it pauses for all threads, so other
threads get more time in the meantime.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_stood = 0.0  # seconds that are not counted
_held = 0  # how many calls of ``hold`` have no ``release`` yet
_since = 0.0  # time.monotonic() at the first of these calls


def clock() -> float:
    """Seconds on ``time.monotonic`` without the pauses."""
    with _lock:
        return (_since if _held else time.monotonic()) - _stood


def hold() -> None:
    """Pause the clock. Each call needs its own ``release``."""
    global _held, _since
    with _lock:
        if not _held:
            _since = time.monotonic()
        _held += 1


def release() -> None:
    """Resume the clock when every ``hold`` has been released."""
    global _held, _stood
    with _lock:
        _held -= 1
        if not _held:
            _stood += time.monotonic() - _since


@contextmanager
def standing() -> Iterator[None]:
    """Pause the clock inside the block."""
    hold()
    try:
        yield
    finally:
        release()
