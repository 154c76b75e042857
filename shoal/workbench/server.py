"""The server: bound to this machine, behind the guard, with a private folder that goes when it ends."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

import shoal
from shoal.workbench.task import Bench


def private_folder() -> Path:
    """A folder that only this user can read; those that dead workbenches left behind are removed."""
    stem = "shoal-workbench-"
    for left in Path(tempfile.gettempdir()).glob(f"{stem}*-*"):
        owner = left.name.removeprefix(stem).split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{stem}{os.getpid()}-"))


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def free_port(wanted: int | None) -> int:
    """The port asked for, or a free one; PolicyError where it is taken."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise shoal.PolicyError(f"port {wanted}: {error.strerror}; leave --port out for a free one") from None
        return int(trial.getsockname()[1])


def serve(first: str | None = None, *, demo: bool = False, browser: bool = True, port: int | None = None,
          say: Any = print) -> None:  # fmt: skip
    """Serve the workbench until it is interrupted.

    first  a table or a folder of a project;  say is called with the address, whose token lets a browser in
    """
    from nicegui import app, background_tasks, ui

    from shoal.workbench.guard import Guard
    from shoal.workbench.window import pages

    chosen, token = free_port(port), secrets.token_urlsafe(24)
    folder = private_folder()
    tempfile.tempdir = str(folder)  # uploads pass through it, too
    bench = Bench(folder, first, demo)
    address = f"http://127.0.0.1:{chosen}/?token={token}"
    pages(bench)
    app.add_middleware(Guard, token=token, port=chosen)

    async def ready() -> None:
        """The address is said once a browser that follows it finds somebody there."""
        while True:
            try:
                _, line = await asyncio.open_connection("127.0.0.1", chosen)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            line.close()
            break
        say(address)
        if browser:
            import webbrowser

            webbrowser.open(address)

    app.on_startup(lambda: background_tasks.create(ready()))
    try:
        ui.run(
            host="127.0.0.1", port=chosen, title="shoal workbench", show=False, reload=False, dark=None,
            tailwind=False, show_welcome_message=False, uvicorn_logging_level="error", reconnect_timeout=30.0,
            favicon="🐟", binding_refresh_interval=None,
        )  # fmt: skip
    finally:
        tempfile.tempdir = None
        shutil.rmtree(folder, ignore_errors=True)
