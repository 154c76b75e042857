"""Ctrl-C and SIGTERM are heard while compiled code runs.

Python hands signals to the main thread, between two of its instructions.  A kernel or an integer program is one
instruction, however long it takes.  So a search that is called from the main thread works in a thread of its own,
and the main thread does nothing but wait, which signals end at once.  What they raise there (``KeyboardInterrupt``,
or what a handler raises) goes to the caller: there is no answer.  The search itself ends at its next instruction.

Kernels that may run long release the interpreter (``nogil``), else the main thread could not look up.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
GRACE = 0.2  # seconds that an interrupted search is given to end before the caller is told
LOOK = 0.1  # seconds between two looks for signals that the system has handed to another thread
STACK = 1 << 26  # bytes: threads of some systems have half a megabyte, too little for HiGHS

_current = threading.local()
_begins = threading.Lock()  # held while a search begins a thread


def flag() -> threading.Event:
    """Set when the search of this thread has been interrupted: for helpers in other threads, to stop at."""
    found: threading.Event | None = getattr(_current, "flag", None)
    return threading.Event() if found is None else found


def heard(search: Callable[P, R]) -> Callable[P, R]:
    """The same function; called from the main thread it can be interrupted at any moment."""

    @wraps(search)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.current_thread() is not threading.main_thread():
            return search(*args, **kwargs)
        return in_a_thread(lambda: search(*args, **kwargs))

    return run


class Workers(ThreadPoolExecutor):
    """Threads of a search: what interrupts it does not hit one that is just beginning.

    Until it runs, a thread goes by the identity of the one that begins it, so an exception meant for that one would end
    it before it had said that it is there, and whoever began it would wait for ever, with the lock that all pools of
    the process share.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """As every executor's."""
        with _begins:
            return super().submit(fn, *args, **kwargs)


@contextmanager
def deep() -> Iterator[None]:
    """Threads begun meanwhile have room for HiGHS."""
    before = threading.stack_size(STACK)
    try:
        yield
    finally:
        threading.stack_size(before)


def in_a_thread(search: Callable[[], R]) -> R:
    """What a search returns or raises, run in a thread of its own, so that Ctrl-C is heard while a kernel runs."""
    answer: list[R] = []
    failure: list[BaseException] = []
    stop, ended, context = threading.Event(), threading.Event(), contextvars.copy_context()

    def work() -> None:
        _current.flag = stop
        try:
            answer.append(context.run(search))
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=work, name="shoal search", daemon=True)
    try:
        with deep():
            thread.start()
        while not ended.wait(LOOK):
            pass
    except BaseException:
        stop.set()
        _raise_in(thread)
        ended.wait(GRACE)
        raise
    if failure:
        try:
            raise failure[0]
        finally:
            failure.clear()  # the error holds this frame: no circle of references that keeps the table in memory
    return answer[0]


def _raise_in(thread: threading.Thread) -> None:
    """KeyboardInterrupt at the thread's next instruction."""
    if thread.ident is not None:
        raised: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
        with _begins:
            raised(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
