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

``quick`` runs small inputs without the compiler, where Python is done sooner.  A kernel takes one to four seconds to
compile, once per machine, and Python runs its loops about a hundred times slower than the machine does.  Nobody knows
beforehand how many of the steps that could be taken a bound cuts off, so Python's own seconds are counted: it goes on
while those spent and those foreseen stay below what compiling would cost.  They are kept beside the compiled code, for
a kernel that takes half a second in every process would never be compiled.  The answer is the same, since it is the
same text: sums of floats are taken in the same order, and whole numbers of NumPy wrap around as the machine's do.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import logging
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba.core import caching, config, event, types
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from shoal.clock import hold, release, standing

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

SECONDS = 1.0  # that Python spends on a kernel in one process before it is compiled
TOGETHER = 3.0  # and in all processes
PACE = 2.5e-6  # seconds of a step, until the kernel's own are known
KEPT = 0.05  # seconds in one process from which on they are written down

_LOG = logging.getLogger("shoal.compiling")
_HERE = Path(__file__).resolve().parent
_USED = re.compile(r"^\s*(?:from|import)\s+shoal\.kernels\.([\w.]+)", re.MULTILINE)
_spent: dict[str, tuple[float, float]] = {}  # seconds and steps of each kernel, of earlier processes too
_here: dict[str, float] = {}  # seconds in this process
_files: dict[str, Path | None] = {}  # where they are kept
_worlds: dict[str, dict[str, Any]] = {}


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
        kinds = tuple(types.unliteral(kind) for kind in args)
        return super().get_call_template(kinds, {name: types.unliteral(kind) for name, kind in kws.items()})


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


def quick(kernel: Any, steps: float) -> Callable[..., Any]:
    """The kernel, or its loops in Python while it is not compiled and they take less time.

    steps  about how often its innermost loops will run, at most
    """
    if not isinstance(kernel, Dispatcher):  # numba is switched off
        return kernel  # type: ignore[no-any-return]
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
    if name not in _spent:
        _files[name] = _seconds_file(kernel)
        _spent[name] = _earlier_seconds(_files[name])
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


def _earlier_seconds(file: Path | None) -> tuple[float, float]:
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
