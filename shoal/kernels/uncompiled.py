"""Small inputs without the compiler: the same loops, run by Python, where that is quicker than compiling them first.

A kernel takes one to four seconds to compile, once per machine, and Python runs its loops about a hundred times slower
than the machine does.  Nobody knows beforehand how many of the steps that could be taken a bound cuts off, so Python's
own seconds are counted: it goes on while those spent and those foreseen stay below what compiling would cost.  They
are kept beside the compiled code, for a kernel that takes half a second in every process would never be compiled.  The
answer is the same, since it is the same text: sums of floats are taken in the same order, and whole numbers of NumPy
wrap around as the machine's do.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from shoal.clock import standing

SECONDS = 1.0  # that Python spends on a kernel in one process before it is compiled
TOGETHER = 3.0  # and in all processes
PACE = 2.5e-6  # seconds of a step, until the kernel's own are known
KEPT = 0.05  # seconds in one process from which on they are written down

_spent: dict[str, tuple[float, float]] = {}  # seconds and steps of each kernel, of earlier processes too
_here: dict[str, float] = {}  # seconds in this process
_files: dict[str, Path | None] = {}  # where they are kept
_worlds: dict[str, dict[str, Any]] = {}


def quick(kernel: Any, steps: float) -> Callable[..., Any]:
    """The kernel, or its loops in Python while it is not compiled and they take less time.

    steps  about how often its innermost loops will run, at most
    """
    if not isinstance(kernel, Dispatcher):  # numba is switched off
        return kernel  # type: ignore[no-any-return]
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
    if name not in _spent:
        _files[name] = _seconds_file(kernel)
        _spent[name] = _kept(_files[name])
    seconds, taken = _spent[name]
    foreseen = steps * (seconds / taken if taken else PACE)
    if _here.get(name, 0.0) + foreseen > SECONDS or seconds + foreseen > TOGETHER or _compiled(kernel):
        return kernel  # type: ignore[no-any-return]
    loops = plain(kernel)

    def run(*arguments: Any) -> Any:
        before = time.thread_time()
        with np.errstate(all="ignore"), standing():
            answer = loops(*arguments)
        now = time.thread_time() - before
        seconds, taken = _spent[name]
        _spent[name] = seconds + now, taken + steps
        _here[name] = _here.get(name, 0.0) + now
        return answer

    return run


def _compiled(kernel: Any) -> bool:
    """Whether compiled code is in memory or on disk."""
    on_disk = getattr(kernel._cache, "_cache_file", None)
    return bool(kernel.overloads) or (on_disk is not None and bool(on_disk._load_index()))


def _seconds_file(kernel: Any) -> Path | None:
    """Where the seconds of a kernel are kept: beside its compiled code, under a name that its text is part of."""
    on_disk = getattr(kernel._cache, "_cache_file", None)
    return None if on_disk is None else Path(on_disk._index_path).with_suffix(".seconds")


def _kept(file: Path | None) -> tuple[float, float]:
    """Seconds and steps that earlier processes wrote down; none where nothing can be read."""
    with suppress(OSError, ValueError, AttributeError):
        seconds, steps = map(float, file.read_text("ascii").split())  # type: ignore[union-attr]
        return seconds, steps
    return 0.0, 0.0


@atexit.register
def _keep() -> None:
    """Write the seconds down; of processes that end together the last one's stay, and that will do."""
    for name, seconds in _here.items():
        file = _files.get(name)
        if seconds >= KEPT and file is not None:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("{} {}".format(*_spent[name]), "ascii")


def plain(kernel: Any) -> Callable[..., Any]:
    """A kernel as Python runs it, calling other kernels likewise."""
    function = kernel.py_func
    world = _worlds.get(function.__module__)
    if world is None:
        world = _worlds[function.__module__] = dict(function.__globals__)
        for name, value in function.__globals__.items():
            if isinstance(value, Dispatcher):
                world[name] = plain(value)
    return FunctionType(function.__code__, world, function.__name__, function.__defaults__)
