"""The server: bound to this machine, behind the guard, with a private folder that goes when it ends.

Who may ask the server: this machine, by its own name, with the token; and what its pages may do.

Other users of the machine lack the token; other pages of the same browser are told by Origin, Host and Sec-Fetch-Site.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import shoal
from shoal.workbench.projects import Bench


def private_folder() -> Path:
    """A folder that only this user can read; those that dead workbenches left behind are removed."""
    stem = "shoal-workbench-"
    for left in Path(tempfile.gettempdir()).glob(f"{stem}*-*"):
        owner = left.name.removeprefix(stem).split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{stem}{os.getpid()}-"))


def _alive(process: int) -> bool:
    """Whether a process of this machine runs; True on Windows, where asking could end it."""
    if os.name == "nt":
        return True
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
            raise shoal.PolicyError(f"port {wanted}: {error.strerror}; leave ⟨port=⟩ out for a free one") from None
        return int(trial.getsockname()[1])


def serve(first: str | None = None, *, demo: bool = False, browser: bool = True, port: int | None = None,
          say: Any = print) -> None:  # fmt: skip
    """Serve the workbench until it is interrupted.

    first  a table or a folder of a project;  say is called with the address, whose token lets a browser in
    """
    from nicegui import app, background_tasks, ui

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


PAGE_RULES = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws://{host}; object-src 'none'; "
    "frame-ancestors 'none'; form-action 'self'; base-uri 'self'"
)


class Guard:
    """An ASGI application in front of another: every request and socket is checked before the other sees it.

    token  in the query of the first request, afterwards in a cookie that no script reads and no other site sends
    port   of this server: its pages are asked for as 127.0.0.1:port or localhost:port and by no other name
    """

    def __init__(self, app: Any, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"shoal-workbench-{port}"  # cookies do not tell ports apart

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        host = headers.get("host", "")
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        by_token = self._same(asked.get("token", ""))
        if host not in self.hosts or not self._ours(headers, host, by_token):
            await _refuse(scope, receive, send)
        elif by_token and scope["type"] == "http":
            asked.pop("token")
            place = scope["path"] + (f"?{urlencode(asked)}" if asked else "")
            held = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(send, 303, b"", [("location", place), ("set-cookie", held), ("cache-control", "no-store")])
        elif self._same(self._held(headers.get("cookie", ""))):
            await self.app(scope, receive, _with_rules(send, host))
        else:
            await _refuse(scope, receive, send)

    def _same(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def _held(self, cookies: str) -> str:
        try:
            found = SimpleCookie(cookies).get(self.cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    @staticmethod
    def _ours(headers: dict[str, str], host: str, by_token: bool) -> bool:
        """Whether one of our pages asks, or the user by the address bar; a link elsewhere needs the token."""
        if "origin" in headers:
            return headers["origin"] == f"http://{host}"
        return by_token or headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _with_rules(send: Any, host: str) -> Callable[[Any], Any]:
    """The same ``send``; answers forbid the browser to ask any other address."""
    rules = [
        (b"content-security-policy", PAGE_RULES.format(host=host).encode()),
        (b"referrer-policy", b"no-referrer"), (b"x-content-type-options", b"nosniff"),
    ]  # fmt: skip

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *rules]}
        await send(message)

    return sent


async def _refuse(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
        return
    words = b"This page needs the address that shoal workbench printed, with its token."
    await _answer(send, 403, words, [("content-type", "text/plain; charset=utf-8")])


async def _answer(send: Any, status: int, body: bytes, headers: list[tuple[str, str]]) -> None:
    raw = [(k.encode(), v.encode()) for k, v in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
