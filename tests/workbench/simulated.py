"""A page of the workbench without a browser: NiceGUI's simulation of a user, over the real jobs in real processes.

All walks share two processes, as the windows of one workbench do not: what they load is loaded once for all tests.
"""

import asyncio
import atexit
import gc
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from inspect import Parameter, Signature, signature
from itertools import count
from pathlib import Path
from typing import Any

import polars as pl
import pytest

SECONDS = 400  # a walk
WAIT = 200  # seconds for one thing on it
_loop: list[asyncio.Runner] = []
_workers: list[Any] = []


def _shared() -> asyncio.Runner:
    """The loop in which all walks run: the processes that they ask belong to it."""
    if not _loop:
        gc.freeze()  # NiceGUI collects at both ends of a walk; what was loaded before need not be looked through
        _loop.append(asyncio.Runner())
        atexit.register(_end)
    return _loop[0]


def _end() -> None:
    async def close() -> None:
        for worker in _workers:
            await worker.close()

    _loop[0].run(close())
    _loop[0].close()


def _pair() -> Callable[[], Any]:
    """In place of ``Worker``: the one that answers questions and the one that does the long work, in turn."""
    from shoal.workbench.jobs import Worker

    class Kept:
        """A worker that outlives its page; looked up at each use, so that a test can hold a job."""

        def __init__(self, worker: Worker) -> None:
            self._worker = worker

        def __getattr__(self, name: str) -> Any:
            return getattr(self._worker, name)

        async def close(self) -> None:
            """Nothing ends: the next walk asks it, too."""

    if not _workers:
        _workers.extend((Worker(), Worker()))
    made = count()
    return lambda: Kept(_workers[next(made) % 2])


def hold(monkeypatch: pytest.MonkeyPatch, job: str, long: bool = True) -> tuple[asyncio.Event, asyncio.Event]:
    """(it was asked, it may begin) of a job of this walk: it waits for the second, however fast the machine is.

    long  whether the worker of long work does it
    """
    worker, asked, begin = _workers[long], asyncio.Event(), asyncio.Event()
    ask = worker.ask

    async def waits(what: str, /, *given: Any, **named: Any) -> Any:
        if what == job:
            asked.set()
            await begin.wait()
        return await ask(what, *given, **named)

    monkeypatch.setattr(worker, "ask", waits)
    return asked, begin


@asynccontextmanager
async def bench(folder: Path, **first: Any) -> AsyncIterator[tuple[Any, Any]]:
    """(user, bench) of a workbench that serves nobody else; skips, saying so, where nicegui is not installed."""
    pytest.importorskip("nicegui", reason="nicegui is not installed: pip install 'shoal[workbench]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nicegui and what it stands on
        from nicegui.testing import user_simulation

        from shoal.workbench import window
        from shoal.workbench.projects import Bench

        modules, made = dict(sys.modules), Bench(folder, **first)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(window, "Worker", _pair())
                async with user_simulation() as user:
                    window.pages(made)
                    yield user, made
        finally:
            sys.modules.update(modules)  # the simulation forgets the modules of the pages it served


def run(walk: Callable[[Any, Any], Awaitable[None]], folder: Path, **first: Any) -> None:
    """Run a walk through the pages: a coroutine of a user and a bench."""

    async def whole() -> None:
        async with bench(folder, **first) as (user, made):
            await asyncio.wait_for(walk(user, made), SECONDS)

    _shared().run(whole())


async def until(holds: Callable[[], Any], words: str) -> None:
    """Wait until something holds."""
    for _ in range(WAIT * 20):
        if holds():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(words)


def go(user: Any, step: str) -> None:
    """Look at a step, as a click on its tab does."""
    from nicegui import ui

    user.find(kind=ui.tab, content=step).click()


async def see(user: Any, text: str) -> None:
    """Wait until a text stands on the page."""
    await user.should_see(text, retries=WAIT * 10)


def people(folder: Path, rows: int = 120, name: str = "people.csv") -> Path:
    """A table of people, one row for each."""
    place = folder / name
    pl.DataFrame(
        {
            "name": [f"Person{i}" for i in range(rows)],
            "age": [20 + i % 30 for i in range(rows)],
            "zip": [f"0123{i % 7}" for i in range(rows)],
            "disease": [("flu", "gout", "asthma")[i % 3] for i in range(rows)],
        }
    ).write_csv(place)
    return place


PATH = "Path of a table, or of a project's folder"
FOLDER = "Folder to keep it in (empty: download the files below)"


def button(user: Any, text: str) -> Any:
    """The buttons that say a text."""
    from nicegui import ui

    return user.find(kind=ui.button, content=text)


def field(user: Any, label: str) -> Any:
    """The one field with a label."""
    there = [e for kind in ("input", "number", "select") for e in every(user, kind)]
    found = [e for e in there if str(e.props.get("label", "")) == label]
    assert len(found) == 1, (label, [e.props.get("label") for e in there])
    return found[0]


def every(user: Any, kind: str) -> list[Any]:
    """The elements of a kind, by its name in NiceGUI, in the order of the page."""
    from nicegui import ui

    try:
        return sorted(user.find(kind=getattr(ui, kind)).elements, key=lambda e: e.id)
    except AssertionError:
        return []


def the(user: Any, kind: str, words: str) -> Any:
    """The one element of a kind whose text has these words."""
    (found,) = (e for e in every(user, kind) if words in e.text)
    return found


def enter(user: Any, label: str, value: Any) -> None:
    """Type a value into the one field with a label, and leave it."""
    found = field(user, label)
    found.set_value(value)
    user.find(kind=type(found), content=label).trigger("change")


def fill(user: Any, label: str, value: Any, press: str) -> None:
    """Type a value into the one field with a label, and click the button that says ``press``."""
    field(user, label).set_value(str(value) if isinstance(value, Path) else value)
    button(user, press).click()


async def opened(user: Any, bench: Any) -> Any:
    """The task of a new window, its table open and its rows read."""
    known = set(bench.tasks)
    await user.open("/")
    (name,) = set(bench.tasks) - known
    await until(lambda: bench.tasks[name].source, "no table was opened")
    await see(user, "rows, 4 columns")
    return bench.tasks[name]


def on_pages(table: Callable[[Path], Path] | None = people) -> Callable[[Callable[..., Awaitable[None]]], Any]:
    """A test that is a walk: a coroutine of what it names of ``user``, ``bench``, ``task``, and fixtures.

    table  makes the table, in the folder of the test, that a window shows at the start; ``task`` is that of the window.
           None: no page is open yet
    """

    def decorate(test: Callable[..., Awaitable[None]]) -> Any:
        names = signature(test).parameters

        def whole(tmp_path: Path, **given: Any) -> None:
            async def walk(user: Any, bench: Any) -> None:
                held = {"user": user, "bench": bench, "tmp_path": tmp_path, **given}
                if table is not None:
                    held["task"] = await opened(user, bench)
                await test(**{name: held[name] for name in names})

            run(walk, tmp_path, **({} if table is None else {"first": str(table(tmp_path))}))

        fixtures = dict.fromkeys([*(n for n in names if n not in ("user", "bench", "task")), "tmp_path"])
        whole = wraps(test)(whole)
        whole.__signature__ = Signature([Parameter(n, Parameter.KEYWORD_ONLY) for n in fixtures])  # type: ignore[attr-defined]
        return whole

    return decorate
