"""Compiled loops over arrays of integers: numba compiles each kernel once per machine and keeps the code on disk.

Compiling takes seconds. So every kernel that must be compiled is logged under ``shoal.compiling``, by its name only,
before the compiler starts.

``njit`` makes a ``Kernel`` of a function, a subclass of numba's dispatcher that differs in five ways. No attribute of
numba is replaced, so other code in the process compiles as it would without shoal.

- Compilation is logged.
- Compiled code is valid only for the text of all modules that the kernel comes from. Numba checks only the module of
  the outermost kernel, although the code includes the kernels that it calls from other modules. The compiler's own
  text counts, too.
- The functions of compiled code are its own (``own_code``).
- Arguments are typed without constants. To numba, each number or truth value written in a call (``fits(near, -1)``) has
  a type of its own, so it would compile a kernel for every combination of constants.
- An interrupt never ends the compilation or loading of a kernel. Numba can't be stopped in the middle: its locks stay
  closed, and code that is linked in part crashes the process later.

``quick`` runs a kernel on small inputs in Python. A kernel takes one to four seconds to compile, once per machine, and
Python runs its loops about a hundred times slower. How many steps a bound cuts off is not known before the run. So
Python's time is counted: while the time so far and the expected time are below that of compilation, Python goes on. The
times are kept on disk, because otherwise a kernel that takes half a second in every process would never be compiled.
The result is the same: sums of floats have the same order, and NumPy's integers wrap around as compiled ones do.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import logging
import re
import threading
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
from shoal.threads import in_a_thread, this_thread

# Functions that only kernels call need no wrapper for Python and no machine code of their own.
INNER = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": True}
if numba.__version__.startswith("0.68."):  # ``compiler`` uses internals of this version; others compile more slowly
    from shoal.kernels.compiler import AsPart, PartCompiler, Whole

    INNER |= {"pipeline_class": AsPart}
    _COMPILER: Any = PartCompiler
    _PIPELINE: Any = {"pipeline_class": Whole}
else:
    from shoal.kernels.own_code import OwnCompiler

    _COMPILER, _PIPELINE = None, {"pipeline_class": OwnCompiler}
# Kernels that allocate no array need no reference counts: this is less code and, with many array arguments, three
# quarters of the compile time. The caller keeps the arrays alive, and numba refuses a kernel that allocates one. A
# kernel without this option inherits that of its caller, so the options above state it.
LEAN = {"cache": True, "nogil": True, "_nrt": False}
LEAN_INNER = INNER | LEAN
# Kernels copy arrays element by element. If an array is assigned to a part of another, numba compiles the text of an
# error message, which takes more than a second.
# Functions that are called once, as steps of a loop, are inlined before typing, because passing many arrays costs more
# compile time than the step.
STEP = LEAN_INNER | {"inline": "always"}

SECONDS = 1.0  # limit of Python's time for a kernel in one process before it is compiled
ALL_SECONDS = 3.0  # the same in all processes
PACE = 2.5e-6  # seconds of a step, until the kernel's own are known
KEPT = 0.05  # seconds in one process from which on they are kept on disk

_LOG = logging.getLogger("shoal.compiling")
_HERE = Path(__file__).resolve().parent
_USED = re.compile(r"^\s*(?:from|import)\s+shoal\.kernels\.([\w.]+)", re.MULTILINE)
_spent: dict[str, tuple[float, float]] = {}  # seconds and steps of each kernel, with earlier processes
_here: dict[str, float] = {}  # seconds in this process
_files: dict[str, Path | None] = {}  # their files
_worlds: dict[str, dict[str, Any]] = {}


class _CompileLog(event.Listener):
    """Logs each kernel that is compiled, not those loaded from disk, and stops the clock meanwhile."""

    def on_start(self, event: event.Event) -> None:
        hold()
        _LOG.info("compiling %s, once per machine", getattr(event.data.get("dispatcher"), "__name__", "a kernel"))

    def on_end(self, event: event.Event) -> None:
        release()


@cache
def _stamp(path: Path) -> str:
    """The hash of the compiler, of a kernel module, and of all kernel modules that it imports, directly or not."""
    held: dict[Path, bytes] = {}
    todo = [path, _HERE / "compiler.py", _HERE / "own_code.py"]
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
    """Warn that compiled code can't be kept, for example in a container with read-only files; the run continues."""
    logging.getLogger("shoal.kept").warning(
        "no folder for compiled code can be written, so every run compiles it again; set "
        "NUMBA_CACHE_DIR to a folder of your own"
    )


class _AllSources:
    """Mixin for numba's locators of compiled code, which adds the hash of all sources."""

    _py_file: str

    def get_source_stamp(self) -> str:
        return _stamp(Path(self._py_file).resolve())

    def get_disambiguator(self) -> str:
        """A part of the file name that depends on the sources: old code can refer to types that no longer exist."""
        return f"{super().get_disambiguator()}-{self.get_source_stamp()[:8]}"  # type: ignore[misc]


def _places() -> list[type]:
    """Numba's locators of compiled code; those that depend on a source file use ``_AllSources``."""
    mixin = caching._SourceFileBackedLocatorMixin
    known = caching.CacheImpl._locator_classes
    return [type(p.__name__, (_AllSources, p), {}) if issubclass(p, mixin) else p for p in known]


class _KeptCode(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Numba's serialization of compiled code, with these locators."""

    _locator_classes = _places()


class _KeptFiles(caching.IndexDataCacheFile):  # type: ignore[misc]
    """The index and code of one kernel on disk, safe if several processes write them at once.

    Numba numbers the files of code by the entries of the index. Two processes that compile a kernel for different types
    would both use the next number, so one entry could lead to the code of other types. Here the file name is a hash of
    the types, and an entry is added after its file exists. If two processes write the index at once, the lost entry is
    compiled again.
    """

    def _load_index(self) -> dict[Any, str]:
        """Numba's index of compiled code; empty if it refers to types that modules no longer define."""
        try:
            return super()._load_index()  # type: ignore[no-any-return]
        except (ImportError, AttributeError):
            return {}

    def save(self, key: Any, data: Any) -> None:
        """Write the code of ``key``; if that fails, this process still has it, and the next one compiles again."""
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
    """A compiled function: numba's dispatcher without constant types, and with a cache that depends on all sources."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, **pipeline: Any) -> None:
        super().__init__(py_func, locals or {}, targetoptions, **pipeline)
        if _COMPILER is not None:
            own = self._compiler
            self._compiler = _COMPILER(py_func, self.targetdescr, own.targetoptions, own.locals, own.pipeline_class)

    def enable_caching(self) -> None:
        """Keep compiled code on disk and load it from there; without a folder for it, only in this process."""
        try:
            self._cache = _Kept(self.py_func)
        except RuntimeError:  # numba found no folder that it can write to
            _warn_once()

    def compile(self, sig: Any) -> Any:
        """Compile the kernel, or load it from disk. In a search, an interrupt that comes meanwhile is raised at the
        end. In the main thread, it is raised at once, and the kernel is completed in another thread.
        """
        here = this_thread
        if here.interrupt is None and threading.current_thread() is threading.main_thread():
            return in_a_thread(lambda: self.compile(sig))
        if here.interrupt is None or here.compiles:
            return super().compile(sig)
        with here.interrupt.compiling:
            here.compiles = True
            try:
                code = super().compile(sig)
            finally:
                here.compiles = False
        if here.interrupt.came.is_set():
            raise KeyboardInterrupt
        return code

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """The typing of a call from another kernel, with constants as plain values."""
        kinds = tuple(types.unliteral(kind) for kind in args)
        return super().get_call_template(kinds, {name: types.unliteral(kind) for name, kind in kws.items()})


def njit(
    *, cache: bool = False, pipeline_class: type | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``numba.njit`` for kernels: the same options, but it returns a ``Kernel``.

    If numba is switched off (``NUMBA_DISABLE_JIT``), it returns the function itself.
    """
    pipeline = _PIPELINE if pipeline_class is None else {"pipeline_class": pipeline_class}

    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.isfunction(function):
            raise TypeError(f"a kernel is made of a function, not of {type(function).__name__}")
        if config.DISABLE_JIT:
            return function
        kernel = Kernel(
            function, None, {"nopython": True, "boundscheck": None, "no_cfunc_wrapper": True, **options}, **pipeline
        )
        if cache:
            kernel.enable_caching()
        return kernel  # type: ignore[no-any-return]

    return compiled


event.register("numba:compile", _CompileLog())


def quick(kernel: Any, steps: float) -> Callable[..., Any]:
    """The kernel, or its loops in Python if it is not compiled and they take less time.

    steps  limit of the runs of its innermost loops, about
    """
    if not isinstance(kernel, Dispatcher):  # numba is switched off
        return kernel  # type: ignore[no-any-return]
    name = f"{kernel.py_func.__module__}.{kernel.py_func.__name__}"
    if name not in _spent:
        _files[name] = _seconds_file(kernel)
        _spent[name] = _earlier_seconds(_files[name])
    seconds, taken = _spent[name]
    foreseen = steps * (seconds / taken if taken else PACE)
    if _here.get(name, 0.0) + foreseen > SECONDS or seconds + foreseen > ALL_SECONDS or _compiled(kernel):
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
    """The file with the seconds of a kernel, next to its compiled code; its name depends on the kernel's text."""
    on_disk = getattr(kernel._cache, "_cache_file", None)
    return None if on_disk is None else Path(on_disk._index_path).with_suffix(".seconds")


def _earlier_seconds(file: Path | None) -> tuple[float, float]:
    """Seconds and steps of earlier processes; zero if they can't be read."""
    with suppress(OSError, ValueError, AttributeError):
        seconds, steps = map(float, file.read_text("ascii").split())  # type: ignore[union-attr]
        return seconds, steps
    return 0.0, 0.0


@atexit.register
def _keep() -> None:
    """Write the seconds. If processes end at the same time, the file of the last one stays, which is close enough."""
    for name, seconds in _here.items():
        file = _files.get(name)
        if seconds >= KEPT and file is not None:
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("{} {}".format(*_spent[name]), "ascii")


def plain(kernel: Any) -> Callable[..., Any]:
    """A kernel as a Python function, which calls other kernels in the same form."""
    function = kernel.py_func
    world = _worlds.get(function.__module__)
    if world is None:
        world = _worlds[function.__module__] = dict(function.__globals__)
        for name, value in function.__globals__.items():
            if isinstance(value, Dispatcher):
                world[name] = plain(value)
    return FunctionType(function.__code__, world, function.__name__, function.__defaults__)
