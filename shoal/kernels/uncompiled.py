"""Small inputs without the compiler: the same loops, run by Python, where that is quicker than compiling them first.

A kernel takes seconds to compile, once per machine, and Python runs its loops about a hundred times slower than the
machine does: up to some ten thousands of steps compiling does not pay.  The answer is the same, since it is the same
text: sums of floats are taken in the same order, and whole numbers of NumPy wrap around as the machine's do.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

STEPS = 200_000  # that a kernel is given uncompiled in one process before it is compiled; about half a second

_spent: dict[str, float] = {}
_worlds: dict[str, dict[str, Any]] = {}


def quick(kernel: Any, steps: float) -> Callable[..., Any]:
    """The kernel, or its loops in Python while it is not compiled and few steps have been asked of it.

    steps  about how often its innermost loops will run
    """
    if not isinstance(kernel, Dispatcher):  # numba is switched off
        return kernel  # type: ignore[no-any-return]
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
    spent = _spent.get(name, 0.0) + steps
    if spent > STEPS or _compiled(kernel):
        return kernel  # type: ignore[no-any-return]
    _spent[name] = spent
    loops = plain(kernel)

    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return loops(*arguments)

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
