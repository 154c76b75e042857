"""Compiled loops over arrays of integers; numba compiles each once per machine and keeps it on disk.

Compiling takes seconds and happens in silence, so it is said: every kernel that has to be compiled is logged under
``shoal.compiling`` before the compiler starts, with nothing but its name.

Compiled code on disk holds the kernels that it calls, also those of other modules, and numba asks only whether the
module of the outermost one has changed.  So a change to what a group is asked would leave the exact program asking
the old question.  Here the stamp of a kernel is the text of all modules that it comes from.

A number or truth value written out in a call (``fits(near, g, -1, x)``) is to numba a type of its own, so one small
kernel would be compiled for every mixture of constants that it is called with.  Kernels are typed without constants.
"""

from __future__ import annotations

import hashlib
import logging
import re
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, event, types

from shoal.clock import hold, release

# Functions that only kernels call need no way in from Python and no machine code of their own.
INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": True}
if numba.__version__.startswith("0.68."):  # whose insides ``parts`` reaches into; others compile as numba does, longer
    from shoal.kernels.parts import AsPart

    INNER |= {"pipeline_class": AsPart}
# Kernels that make no array need no counts of references: less code, three quarters of the compile time where many
# arrays are handed down.  Who calls them holds the arrays; numba refuses one that makes an array or returns a new one.
# A kernel that does not say whether it counts does as the one that calls it, so those above say it.
LEAN = {"cache": True, "nogil": True, "_nrt": False}
LEAN_INNER = INNER | LEAN
# Steps of a loop that are functions for the reader alone, called once: put in place before anything is typed, for
# handing a room of many arrays over costs the compiler more than the step.
STEP = LEAN_INNER | {"inline": "always"}

_LOG = logging.getLogger("shoal.compiling")
_HERE = Path(__file__).resolve().parent
_USED = re.compile(r"^\s*(?:from|import)\s+shoal\.kernels\.([\w.]+)", re.MULTILINE)


class _Says(event.Listener):
    """Logs the kernel that is being compiled, and stops the clock meanwhile; loading one from disk is no event."""

    def on_start(self, event: event.Event) -> None:
        hold()
        _LOG.info("compiling %s, once per machine", getattr(event.data.get("dispatcher"), "__name__", "a kernel"))

    def on_end(self, event: event.Event) -> None:
        release()


@cache
def _stamp(path: Path) -> str:
    """Hash of a module and of all kernel modules that it imports, directly or not.  ``from`` names a module."""
    held: dict[Path, bytes] = {}
    todo = [path]
    while todo:
        here = todo.pop()
        if here not in held and here.is_file():
            held[here] = here.read_bytes()
            used = _USED.findall(held[here].decode("utf-8"))
            todo += [_HERE.joinpath(*name.split(".")).with_suffix(".py") for name in used]
    together = b"".join(hashlib.sha256(held[p]).digest() for p in sorted(held))
    return hashlib.sha256(together).hexdigest()


class _AllSources:
    """Mixed into each of numba's places for compiled code, for kernels alone."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return _stamp(Path(self._py_file).resolve())

    def get_disambiguator(self) -> str:
        """In the file's name: what other sources left behind may name types that have moved, and is never opened."""
        return f"{super().get_disambiguator()}-{self.get_source_stamp()[:8]}"  # type: ignore[misc]

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        if not Path(py_file).resolve().is_relative_to(_HERE):
            return None
        return super().from_function(py_func, py_file)  # type: ignore[misc]


_typed = types.Dispatcher.get_call_type


def _typed_without_constants(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """Numba's answer to what a call of a compiled function is; for kernels, with constants as plain values."""
    if self.dispatcher.py_func.__module__.startswith("shoal.kernels."):
        args = tuple(types.unliteral(kind) for kind in args)
        kws = {name: types.unliteral(kind) for name, kind in kws.items()}
    return _typed(self, context, args, kws)


def _places() -> list[type]:
    """Numba's places that go by a source file, with the stamp above."""
    mixin = caching._SourceFileBackedLocatorMixin
    known = [place for place in caching.CacheImpl._locator_classes if issubclass(place, mixin)]
    return [type(place.__name__, (_AllSources, place), {}) for place in known]


caching.CacheImpl._locator_classes = _places() + caching.CacheImpl._locator_classes
types.Dispatcher.get_call_type = _typed_without_constants
event.register("numba:compile", _Says())
