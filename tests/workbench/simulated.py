"""A page of the workbench without a browser: NiceGUI's simulation of a user, over the real jobs in real processes."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

SECONDS = 400


@asynccontextmanager
async def bench(folder: Path, **first: Any) -> AsyncIterator[tuple[Any, Any]]:
    """(user, bench) of a workbench that serves nobody else; skips, saying so, where nicegui is not installed."""
    pytest.importorskip("nicegui", reason="nicegui is not installed: pip install 'shoal[workbench]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of nicegui and what it stands on
        from nicegui.testing import user_simulation

        from shoal.workbench.projects import Bench
        from shoal.workbench.window import pages

        modules, made = dict(sys.modules), Bench(folder, **first)
        try:
            async with user_simulation() as user:
                pages(made)
                yield user, made
        finally:
            sys.modules.update(modules)  # the simulation forgets the modules of the pages it served


def run(walk: Callable[[Any, Any], Awaitable[None]], folder: Path, **first: Any) -> None:
    """Run a walk through the pages: a coroutine of a user and a bench."""

    async def whole() -> None:
        async with bench(folder, **first) as (user, made):
            await asyncio.wait_for(walk(user, made), SECONDS)

    asyncio.run(whole())


async def until(holds: Callable[[], Any], words: str, seconds: float = 200) -> None:
    """Wait until something holds."""
    for _ in range(int(seconds / 0.05)):
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
    await user.should_see(text, retries=2000)
