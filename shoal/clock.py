"""The clock that searches go by: it stands still while a kernel is compiled, or run by Python in its stead.

Compiling takes seconds, once per machine.  Were they taken from a budget, the first call on a machine would find and
prove less than the second, and the quick bounds nothing at all.  All threads see the clock stand: what else runs
meanwhile has the more time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_lock = Lock()
_stood = 0.0  # seconds that are not counted
_held = 0  # how many hold the clock now
_since = 0.0  # reading of the machine's clock when the first of them came


def clock() -> float:
    """Seconds since some moment, as ``time.monotonic``, without those that the clock stood."""
    with _lock:
        return (_since if _held else time.monotonic()) - _stood


def hold() -> None:
    """Stops the clock; each call needs its own ``release``."""
    global _held, _since
    with _lock:
        if not _held:
            _since = time.monotonic()
        _held += 1


def release() -> None:
    """Lets the clock go on, once nobody else holds it."""
    global _held, _stood
    with _lock:
        _held -= 1
        if not _held:
            _stood += time.monotonic() - _since


@contextmanager
def standing() -> Iterator[None]:
    """The clock stands inside."""
    hold()
    try:
        yield
    finally:
        release()
