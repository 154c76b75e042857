"""Small inputs without the compiler: the same loops, run by Python, where that is quicker than compiling them first.

A kernel takes one to four seconds to compile, once per machine, and Python runs its loops about a hundred times slower
than the machine does.  Nobody knows beforehand how many of the steps that could be taken a bound cuts off, so Python's
own seconds are counted: it goes on while those spent and those foreseen stay below what compiling would cost.  The
answer is the same, since it is the same text: sums of floats are taken in the same order, and whole numbers of NumPy
wrap around as the machine's do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from shoal.clock import standing

SECONDS = 1.0  # that Python spends on a kernel in one process before it is compiled
PACE = 2.5e-6  # seconds of a step, until the kernel's own are known

_spent: dict[str, tuple[float, float]] = {}  # seconds and steps of each kernel
_worlds: dict[str, dict[str, Any]] = {}


def quick(kernel: Any, steps: float) -> Callable[..., Any]:
    """The kernel, or its loops in Python while it is not compiled and they take less time.

    steps  about how often its innermost loops will run, at most
    """
    if not isinstance(kernel, Dispatcher):  # numba is switched off
        return kernel  # type: ignore[no-any-return]
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
    seconds, taken = _spent.get(name, (0.0, 0.0))
    if seconds + steps * (seconds / taken if taken else PACE) > SECONDS or _compiled(kernel):
        return kernel  # type: ignore[no-any-return]
    loops = plain(kernel)

    def run(*arguments: Any) -> Any:
        before = time.thread_time()
        with np.errstate(all="ignore"), standing():
            answer = loops(*arguments)
        seconds, taken = _spent.get(name, (0.0, 0.0))
        _spent[name] = seconds + time.thread_time() - before, taken + steps
        return answer

    return run


def _compiled(kernel: Any) -> bool:
    """Whether compiled code is in memory or on disk."""
    on_disk = getattr(kernel._cache, "_cache_file", None)
    return bool(kernel.overloads) or (on_disk is not None and bool(on_disk._load_index()))


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
