"""Progress of long calls: a bar in a notebook, entries in the log ``shoal``, and lines of JSON.

No table reaches this module. A bar shows the texts passed to ``progress``; the log has the call's name and seconds.
"""

from __future__ import annotations

import datetime
import inspect
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from html import escape
from typing import ParamSpec, TextIO, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
LOG = logging.getLogger("shoal")
PATIENCE = 1.0  # seconds before a bar appears
BEAT = 0.5  # seconds between two updates of a bar

_inside: ContextVar[bool] = ContextVar("shoal_inside", default=False)
_listens: ContextVar[Callable[[float], None] | None] = ContextVar("shoal_listens", default=None)


def watched(call: Callable[P, R]) -> Callable[P, R]:
    """Decorate a call so that in a notebook it shows a bar after a second, unless the caller passes ``progress``.

    A call inside another watched call belongs to that one: it has no bar of its own and is not logged.
    """
    tells = "progress" in inspect.signature(call).parameters

    @wraps(call)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if _inside.get():
            return call(*args, **kwargs)
        token, began = _inside.set(True), time.perf_counter()
        try:
            if "progress" in kwargs or not _in_notebook():
                answer = call(*args, **kwargs)
            else:
                with _bar(call.__qualname__) as bar:
                    if tells:
                        kwargs["progress"] = bar
                    answer = call(*args, **kwargs)
        finally:
            _inside.reset(token)
        LOG.info("%s took %.2f s", call.__qualname__, time.perf_counter() - began)
        return answer

    return run


def done(share: float) -> None:
    """Report the share of a search that is done, 0..1, to the listener of this context, if there is one."""
    listener = _listens.get()
    if listener is not None:
        listener(share)


@contextmanager
def listening(listener: Callable[[float], None]) -> Iterator[None]:
    """Pass the shares that searches in the block report to the listener, from any thread."""
    token = _listens.set(listener)
    try:
        yield
    finally:
        _listens.reset(token)


@contextmanager
def within(low: float, high: float) -> Iterator[None]:
    """Scale the shares that are reported in the block to the interval from low to high of the enclosing block."""
    outer = _listens.get()
    if outer is None:
        yield
        return
    with listening(lambda share: outer(low + (high - low) * share)):
        yield


@contextmanager
def compiling(say: Callable[[], None]) -> Iterator[None]:
    """Call ``say`` whenever a kernel is compiled in the block. The log's visible output doesn't change."""
    log = logging.getLogger("shoal.compiling")
    level, seen = log.level, log.isEnabledFor(logging.INFO)

    def report_kernel(record: logging.LogRecord) -> bool:
        say()
        return seen

    log.addFilter(report_kernel)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeFilter(report_kernel)
        log.setLevel(level)


def _in_notebook() -> bool:
    """Whether this process runs in a notebook, checked without importing anything."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get is not None and hasattr(get(), "kernel")


class Progress:
    """The last reported step and share, and the time since which the share has only grown."""

    def __init__(self, what: str) -> None:
        self.what, self.share, self.began, self.since = what, 0.0, time.monotonic(), time.monotonic()

    def __call__(self, what: str, share: float | None) -> None:
        if share is None or share < self.share:
            self.since = time.monotonic()
        self.what, self.share = what, min(max(share or 0.0, 0.0), 1.0)

    def left(self) -> str:
        """Text for the time left; "" until 5 % are done."""
        if self.share <= 0.05:
            return ""
        return f", about {(time.monotonic() - self.since) * (1 - self.share) / self.share:.0f} s left in this step"

    def shown(self) -> dict[str, str]:
        """A bar with text, seconds, and time left, as HTML and as plain text."""
        text = f"{self.what}, {time.monotonic() - self.began:.0f} s{self.left()}"
        value = f' value="{self.share:.3f}"' if self.share else ""
        return {"text/html": f"<label><progress max=1{value}></progress> {escape(text)}</label>", "text/plain": text}


@contextmanager
def _bar(what: str) -> Iterator[Callable[[str, float | None], None]]:
    """A callback that moves a bar below the cell, which appears after a second until the call ends."""
    from IPython.display import display

    state, ended = Progress(what), threading.Event()

    def show() -> None:
        if ended.wait(PATIENCE):
            return
        bar = display(state.shown(), raw=True, display_id=True)
        while not ended.wait(BEAT):
            bar.update(state.shown(), raw=True)
        bar.update({"text/html": "", "text/plain": ""}, raw=True)

    thread = threading.Thread(target=show, name="shoal bar", daemon=True)
    thread.start()
    try:
        with compiling(lambda: state("compiling, once per machine", None)), listening(lambda share: state(what, share)):
            yield state
    finally:
        ended.set()
        thread.join()


class Lines:
    """Progress as lines of JSON on a stream, for schedulers and log collectors. No line contains a row of the table.

    Each step's first report is written at once, and its shares at most once in ``PATIENCE`` seconds.
    """

    def __init__(self, stream: TextIO, command: str | None) -> None:
        self.stream, self.command = stream, command
        self.began, self.last = time.monotonic(), 0.0
        self.told: Progress | None = None

    def __call__(self, step: str, share: float | None) -> None:
        new = self.told is None or self.told.what != step
        if self.told is None or new:
            self.told = Progress(step)
        self.told(step, share)
        if new or (share is not None and time.monotonic() - self.last >= PATIENCE):
            done = "" if share is None else f", {self.told.share:.0%} done{self.told.left()}"
            self._line("progress", step, share, f"{step}{done}")

    def say(self, message: str, step: str | None = None, level: str = "info") -> None:
        """Write a line that doesn't report a share of the work."""
        self._line(level, step, 1.0 if step == "done" else None, message)

    def _line(self, level: str, step: str | None, share: float | None, message: str) -> None:
        self.last = time.monotonic()
        held = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"), "level": level,
            "command": self.command, "step": step, "share": None if share is None else round(share, 4),
            "seconds": round(self.last - self.began, 3), "message": message,
        }  # fmt: skip
        print(json.dumps(held, ensure_ascii=False), file=self.stream, flush=True)


class StepClock:
    """Measures the seconds of each step and reports the step when it begins."""

    def __init__(self, progress: Callable[[str, float | None], None]) -> None:
        self.progress = progress
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, doing: str, name: str) -> Iterator[None]:
        """Report a step, and measure the block's seconds."""
        self.progress(doing, None)
        began = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - began
        LOG.info("%s took %.2f s", doing, self.seconds[name])
