"""Compiled loops over arrays of integers; numba compiles each once per machine and keeps it on disk.

Compiling takes seconds and happens in silence, so it is said: every kernel that has to be compiled is logged under
``shoal.compiling`` before the compiler starts, with nothing but its name.
"""

from __future__ import annotations

import logging

from numba.core import event

# Functions that only kernels call need no way in from Python: a third of their compile time.
INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_LOG = logging.getLogger("shoal.compiling")


class _Says(event.Listener):
    """Logs the kernel that is being compiled; loading one from disk is no event."""

    def on_start(self, event: event.Event) -> None:
        _LOG.info("compiling %s, once per machine", getattr(event.data.get("dispatcher"), "__name__", "a kernel"))

    def on_end(self, event: event.Event) -> None:
        """Nothing to say."""


event.register("numba:compile", _Says())
