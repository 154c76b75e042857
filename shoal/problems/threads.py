"""Threads around compiled code: signals heard while it runs, work on all cores, and calls beside it.

Ctrl-C and SIGTERM: Python hands signals to the main thread, between two of its instructions.  A kernel or an integer
program is one instruction, however long it takes.  So a search that is called from the main thread works in a thread of
its own, and the main thread does nothing but wait, which signals end at once.  What they raise there
(``KeyboardInterrupt``, or what a handler raises) goes to the caller: there is no answer.  The search itself ends at its
next instruction.

Kernels that may run long release the interpreter (``nogil``), else the main thread could not look up.

Long calls that release the interpreter run beside each other until they are told to stop.  Work goes to all cores where
that pays, and stays in the caller's own thread where it is over before a thread has begun.
"""

from __future__ import annotations

import contextvars
import ctypes
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import wraps
from itertools import pairwise
from threading import Event
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import numpy as np

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
    """A search that can be interrupted at any moment when the main thread calls it."""

    @wraps(search)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.current_thread() is not threading.main_thread():
            return search(*args, **kwargs)
        return in_a_thread(lambda: search(*args, **kwargs))

    return run


class SearchThreads(ThreadPoolExecutor):
    """Threads of a search: what interrupts it does not hit one that is just beginning.

    Until it runs, a thread goes by the identity of the one that begins it, so an exception meant for that one would end
    it before it had said that it is there, and whoever began it would wait for ever, with the lock that all pools of
    the process share.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """``ThreadPoolExecutor.submit``, one call at a time."""
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


class BackgroundCalls:
    """Work in threads of its own; what still runs at the end is told to stop, and nobody waits for it.

    cores  how many calls go at full speed
    """

    def __init__(self) -> None:
        self.cores = os.cpu_count() or 1
        self._pool = SearchThreads()
        self._stop = Event()

    def __enter__(self) -> BackgroundCalls:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def start(self, work: Callable[[Event], R]) -> Future[R]:
        """Begin some work, which is handed what is set when it shall stop."""
        with deep():
            return self._pool.submit(work, self._stop)

    def first(self, *asked: Future[Any] | None, seconds: float = math.inf) -> Future[Any] | None:
        """The first of them that ends, None where each takes longer; of several that have ended the first named."""
        some = [future for future in asked if future is not None]
        while not wait(some, LOOK, FIRST_COMPLETED).done and (seconds := seconds - LOOK) > 0:
            pass
        return next((future for future in some if future.done()), None)

    def result(self, asked: Future[R]) -> R:
        """What it came to."""
        self.first(asked)
        return asked.result()


A = TypeVar("A")
B = TypeVar("B")
Each = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]  # some work on every item, in their order
ALONE = 1e6  # look-ups that a core makes in a few milliseconds, about what a pool of threads costs


def cores(looks: float) -> int:
    """How many cores are worth asking for some look-ups."""
    return 1 if looks < ALONE else os.cpu_count() or 1


def each(work: Callable[[A], B], items: Iterable[A], workers: int) -> list[B]:
    """``work`` on every item, in their order; one worker is this thread itself."""
    with threads(workers) as some:
        return some(work, items)


def in_turn(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """``work`` on every item, in this thread."""
    return [work(item) for item in items]


@contextmanager
def threads(most: int) -> Iterator[Each]:
    """What does some work on every item, on as many cores as there are and at most so many."""
    workers = min(most, os.cpu_count() or 1)
    if workers == 1:
        yield in_turn
        return
    with SearchThreads(workers) as pool:
        yield lambda work, items: list(pool.map(work, items))


def even(first: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Consecutive parts of items, with about as many members each; those of item i are first[i] .. first[i + 1] - 1."""
    ends = np.searchsorted(first, np.linspace(0, int(first[-1]), parts + 1)[1:-1])
    cuts = [0, *map(int, ends), first.size - 1]
    return list(pairwise(cuts))
