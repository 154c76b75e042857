"""Compiled loops over arrays of integers; numba compiles each once per machine and keeps it on disk.

Compiling takes seconds and happens in silence, so it is said: every kernel that has to be compiled is logged under
``shoal.compiling`` before the compiler starts, with nothing but its name.

Compiled code on disk holds the kernels that it calls, also those of other modules, and numba asks only whether the
module of the outermost one has changed.  So a change to what a group is asked would leave the exact program asking
the old question.  Here the stamp of a kernel is the text of all modules that it comes from.

A number or truth value written out in a call (``fits(near, g, -1, x)``) is to numba a type of its own, so one small
kernel would be compiled for every mixture of constants that it is called with.  Kernels are typed without constants.

All three are ways of ``Kernel``, a dispatcher of our own that ``njit`` makes of a function.  No attribute of numba is
replaced: other code of the process compiles as it would without shoal.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, config, event, types
from numba.core.registry import CPUDispatcher

from shoal.clock import hold, release

# Functions that only kernels call need no way in from Python and no machine code of their own.
INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": True}
if numba.__version__.startswith("0.68."):  # whose insides ``parts`` reaches into; others compile as numba does, longer
    from shoal.kernels.parts import AsPart, PartCompiler

    INNER |= {"pipeline_class": AsPart}
    _COMPILER: Any = PartCompiler
else:
    _COMPILER = None
# Kernels that make no array need no counts of references: less code, three quarters of the compile time where many
# arrays are handed down.  Who calls them holds the arrays; numba refuses one that makes an array or returns a new one.
# A kernel that does not say whether it counts does as the one that calls it, so those above say it.
LEAN = {"cache": True, "nogil": True, "_nrt": False}
LEAN_INNER = INNER | LEAN
# Arrays are copied element by element.  For one that is assigned to a part of another, numba compiles what an error
# says, which takes more than a second.
# Steps of a loop that are functions for the reader alone, called once: put in place before anything is typed, for
# handing a room of many arrays over costs the compiler more than the step.
STEP = LEAN_INNER | {"inline": "always"}

_LOG = logging.getLogger("shoal.compiling")
_HERE = Path(__file__).resolve().parent
_USED = re.compile(r"^\s*(?:from|import)\s+shoal\.kernels\.([\w.]+)", re.MULTILINE)


class _CompileLog(event.Listener):
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


@cache
def _warn_once() -> None:
    """A container whose files and home folder are all read-only works too, and whoever waits is told why."""
    logging.getLogger("shoal.kept").warning(
        "no folder for compiled code can be written, so every run compiles it again; set "
        "NUMBA_CACHE_DIR to a folder of your own"
    )


class _AllSources:
    """Mixed into each of numba's places for compiled code, for kernels alone."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return _stamp(Path(self._py_file).resolve())

    def get_disambiguator(self) -> str:
        """The part of a file's name that tells sources apart: code of other sources may name types that have moved."""
        return f"{super().get_disambiguator()}-{self.get_source_stamp()[:8]}"  # type: ignore[misc]


def _places() -> list[type]:
    """Numba's places for compiled code, those that go by a source file with the stamp above."""
    mixin = caching._SourceFileBackedLocatorMixin
    known = caching.CacheImpl._locator_classes
    return [type(p.__name__, (_AllSources, p), {}) if issubclass(p, mixin) else p for p in known]


class _KeptCode(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's way of writing compiled code, at these places."""

    _locator_classes = _places()


class _KeptFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """Index and code of one kernel on disk, written by several processes at once.

    Numba numbers the files of code by what the index holds when it looks.  Two processes that compile a kernel for
    different types would both take the next number, and either's types could end at the other's machine code.  Here
    the name of a file says for which types the code is, and the index names no code before it is there.  What is lost
    where two indexes are written at once is compiled again.
    """

    def _load_index(self) -> dict[Any, str]:
        """Numba's index of compiled code; empty if it names types that other modules define since it was written."""
        try:
            return super()._load_index()  # type: ignore[no-any-return]
        except (ImportError, AttributeError):
            return {}

    def save(self, key: Any, data: Any) -> None:
        """What the disk does not take is compiled again by the next process; this one has it."""
        name = self._data_name(int(hashlib.sha256(self._dump(key)).hexdigest()[:15], 16))
        try:
            self._save_data(name, data)
            self._save_index({**self._load_index(), key: name})
        except OSError:
            _warn_once()


class _Kept(caching.FunctionCache):  # type: ignore[misc]
    """The compiled code of one kernel on disk."""

    _impl_class = _KeptCode

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._cache_file = _KeptFiles(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function: numba's dispatcher, typed without constants, kept on disk by all of its sources."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, **pipeline: Any) -> None:
        super().__init__(py_func, locals, targetoptions, **pipeline)
        if _COMPILER is not None:
            own = self._compiler
            self._compiler = _COMPILER(py_func, self.targetdescr, own.targetoptions, own.locals, own.pipeline_class)

    def enable_caching(self) -> None:
        """Keep compiled code on disk, and look there first; where no folder takes it, it is kept for this process."""
        try:
            self._cache = _Kept(self.py_func)
        except RuntimeError:  # numba's, of no folder that it can write to
            _warn_once()

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What a call of it from another kernel is to numba, with constants as plain values."""
        plain = tuple(types.unliteral(kind) for kind in args)
        return super().get_call_template(plain, {name: types.unliteral(kind) for name, kind in kws.items()})


def njit(
    *, cache: bool = False, pipeline_class: type | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``numba.njit`` for a kernel: the same options, a ``Kernel`` in the place of numba's own dispatcher.

    Where numba is switched off (``NUMBA_DISABLE_JIT``), the function stays as it is.
    """
    pipeline = {} if pipeline_class is None else {"pipeline_class": pipeline_class}

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.isfunction(function):
            raise TypeError(f"a kernel is made of a function, not of {type(function).__name__}")
        if config.DISABLE_JIT:
            return function
        kernel = Kernel(function, None, {"nopython": True, "boundscheck": None, **options}, **pipeline)
        if cache:
            kernel.enable_caching()
        return kernel  # type: ignore[no-any-return]

    return compiled


event.register("numba:compile", _CompileLog())
