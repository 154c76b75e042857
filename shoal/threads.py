"""Threads for compiled code: handling of signals, work on all cores, and background calls.

Ctrl-C and SIGTERM: Python handles signals in the main thread, between two bytecode instructions. A kernel or an integer
program is one instruction, for any duration. So if a search is called from the main thread, it runs in another thread,
and the main thread only waits, which signals interrupt at once. The exception raised there (``KeyboardInterrupt``, or
that of a handler) goes to the caller, without an answer. The search itself ends at its next instruction. While it
compiles or loads a kernel, it goes on until that is done, and then ends.

Kernels that may run long release the interpreter lock (``nogil``), because otherwise the main thread couldn't run.

Long calls that release the lock run in the background until they are told to stop. Work is distributed to all cores if
that is faster, and stays in the caller's thread if it would end before a thread has started.
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
GRACE = 0.2  # seconds that an interrupted search has to end before the caller gets the exception
LOOK = 0.1  # seconds between checks for signals that the system delivered to another thread
STACK = 1 << 26  # bytes; threads of some systems have half a megabyte, which is too little for HiGHS


class Interrupt:
    """An interrupt of the search of one thread.

    came       set when the search is interrupted
    compiling  held by the thread while it compiles or loads a kernel, and by the interrupt while it ends the thread
    """

    def __init__(self) -> None:
        self.came, self.compiling = threading.Event(), threading.Lock()


class _ThisThread(threading.local):
    """The interrupt that may end this thread's search, if one may; and whether the thread compiles a kernel."""

    interrupt: Interrupt | None = None
    compiles = False


this_thread = _ThisThread()
_begins = threading.Lock()  # held while a search starts a thread


def flag() -> threading.Event:
    """An event that is set if the search of this thread was interrupted, so that helper threads can stop."""
    interrupt = this_thread.interrupt
    return threading.Event() if interrupt is None else interrupt.came


def interruptible(search: Callable[P, R]) -> Callable[P, R]:
    """A search that can be interrupted at any time if the main thread calls it."""

    @wraps(search)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if threading.current_thread() is not threading.main_thread():
            return search(*args, **kwargs)
        return in_a_thread(lambda: search(*args, **kwargs))

    return run


class SearchThreads(ThreadPoolExecutor):
    """Threads of a search, which an interrupt of the search can't end while they start.

    Until a thread runs, it has the identity of the thread that starts it. An exception meant for the latter could then
    end it before it has signaled its start. The starting thread would wait forever, and hold the lock that all pools of
    the process share.
    """

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """``ThreadPoolExecutor.submit``, one call at a time."""
        with _begins:
            return super().submit(fn, *args, **kwargs)


@contextmanager
def deep() -> Iterator[None]:
    """Threads started in this context have a stack that is large enough for HiGHS."""
    before = threading.stack_size(STACK)
    try:
        yield
    finally:
        threading.stack_size(before)


def in_a_thread(search: Callable[[], R]) -> R:
    """The result or exception of a search, run in a separate thread, so that Ctrl-C works while a kernel runs."""
    answer: list[R] = []
    failure: list[BaseException] = []
    interrupt, ended, context = Interrupt(), threading.Event(), contextvars.copy_context()

    def work() -> None:
        this_thread.interrupt = interrupt
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
        interrupt.came.set()
        _raise_in(thread, interrupt)
        ended.wait(GRACE)
        raise
    if failure:
        try:
            raise failure[0]
        finally:
            # the error refers to this frame; without this, a reference cycle would keep the table in memory
            failure.clear()
    return answer[0]


def _raise_in(thread: threading.Thread, interrupt: Interrupt) -> None:
    """Raise KeyboardInterrupt at the thread's next instruction.

    A thread that compiles a kernel raises it itself afterward, because ``interrupt.came`` is set.
    """
    if thread.ident is not None and interrupt.compiling.acquire(timeout=GRACE):
        raised: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
        try:
            with _begins:
                raised(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
        finally:
            interrupt.compiling.release()


class BackgroundCalls:
    """Work in background threads. At the end, running work is told to stop without waiting for it.

    cores  number of calls that run at full speed
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
        """Start some work; its argument is an event that is set when it should stop."""
        with deep():
            return self._pool.submit(work, self._stop)

    def first(self, *asked: Future[Any] | None, seconds: float = math.inf) -> Future[Any] | None:
        """The first of them that ends, None if each takes longer than ``seconds``.

        If several ended, the first in the list is returned.
        """
        some = [future for future in asked if future is not None]
        while not wait(some, LOOK, FIRST_COMPLETED).done and (seconds := seconds - LOOK) > 0:
            pass
        return next((future for future in some if future.done()), None)

    def result(self, asked: Future[R]) -> R:
        """The result of the work."""
        self.first(asked)
        return asked.result()


A = TypeVar("A")
B = TypeVar("B")
Each = Callable[[Callable[[Any], Any], Iterable[Any]], list[Any]]  # calls a function on every item, in order
ALONE = 1e6  # look-ups that a core makes in a few milliseconds, about the time to start a pool of threads


def cores(looks: float) -> int:
    """The number of cores that are useful for this many look-ups."""
    return 1 if looks < ALONE else os.cpu_count() or 1


def each(work: Callable[[A], B], items: Iterable[A], workers: int) -> list[B]:
    """``work`` on every item, in order; one worker is this thread itself."""
    with threads(workers) as some:
        return some(work, items)


def in_turn(work: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """``work`` on every item, in this thread."""
    return [work(item) for item in items]


@contextmanager
def threads(most: int) -> Iterator[Each]:
    """A function that does some work on every item, on all available cores, at most ``most``."""
    workers = min(most, os.cpu_count() or 1)
    if workers == 1:
        yield in_turn
        return
    with SearchThreads(workers) as pool:
        yield lambda work, items: list(pool.map(work, items))


def even(first: np.ndarray, parts: int) -> list[tuple[int, int]]:
    """Consecutive parts of items with about equally many members; those of item i are first[i] .. first[i + 1] - 1."""
    ends = np.searchsorted(first, np.linspace(0, int(first[-1]), parts + 1)[1:-1])
    cuts = [0, *map(int, ends), first.size - 1]
    return list(pairwise(cuts))
