"""The server: bound to this machine, behind the guard, with a private folder that goes when it ends.

Who may ask the server: this user of this machine, by its own name, with the token; and what its pages may do.

Other users lack the token, and where the system tells whose the other end of a connection is, the token does not help
them.  It could: the list of processes shows it while the browser starts, and a browser sends the cookie to every server
of this machine, whatever its port.  Other pages of the same browser are told by Origin, Host and Sec-Fetch-Site.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import shoal
from shoal.workbench.projects import Bench, write_text


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


Address = tuple[str, int]
_CONNECTIONS = ("/proc/net/tcp", "/proc/net/tcp6")  # of Linux: who holds which end
_OPEN = "01"


def owner(here: Address, there: Address) -> int | None:
    """The user whose end of a connection of this machine ``here`` is; None where it is not open, or nobody tells."""
    ends = [f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}" for host, port in (here, there)]
    for file in _CONNECTIONS:
        with contextlib.suppress(OSError), open(file, encoding="ascii") as lines:
            for line in lines:
                fields = line.split()
                if [field[-13:] for field in fields[1:3]] == ends and fields[3] == _OPEN:
                    return int(fields[7])
    return None


def owners_are_told() -> bool:
    """Whether this system tells whose a connection is: it is asked about one of our own."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        return hasattr(os, "getuid") and owner(ours.getsockname(), ours.getpeername()) == os.getuid()


def for_the_browser(address: str, folder: Path, traced: bool) -> str:
    """What the browser is started with: the address, or a page of this user's alone that leads there.

    traced  whether the server knows a user by the connection; else the token must not stand in the list of processes
    """
    if traced or os.name != "posix":  # Windows shows the words of a process to its user alone
        return address
    page = folder / "workbench.html"
    write_text(page, f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">shoal workbench</a>')
    return page.as_uri()


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
    traced = owners_are_told()
    pages(bench)
    app.config.quasar_config["loadingBar"]["skipHijack"] = True  # its bar has no name for whoever hears the page
    app.add_middleware(Guard, token=token, port=chosen, traced=traced)

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

            webbrowser.open(for_the_browser(address, folder, traced))

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

    token   in the query of the first request, afterwards in a cookie that no script reads and no other site sends
    port    of this server: its pages are asked for as 127.0.0.1:port or localhost:port and by no other name
    traced  whether the system tells whose a connection is; it must then be this user's, or that of root, who can read
            everything anyway and hands connections on where Linux runs inside Windows
    """

    def __init__(self, app: Any, token: str, port: int, traced: bool = False) -> None:
        self.app, self.token, self.traced = app, token, traced
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
        if not self._known(scope) or host not in self.hosts or not self._ours(headers, host, by_token):
            await _refuse(scope, receive, send)
        elif by_token and scope["type"] == "http":
            asked.pop("token")
            place = scope["path"] + (f"?{urlencode(asked)}" if asked else "")
            held = f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(send, 303, b"", [("location", place), ("set-cookie", held), ("cache-control", "no-store")])
        elif self._same(self._held(headers.get("cookie", ""))):
            await self.app(scope, receive, _with_rules(send, host, scope["path"]))
        else:
            await _refuse(scope, receive, send)

    def _known(self, scope: Any) -> bool:
        """Whether the other end of the connection is this user's, where that is told."""
        if not self.traced:
            return True
        there, here = scope.get("client"), scope.get("server")
        return bool(there and here) and owner(tuple(there), tuple(here)) in (os.getuid(), 0)

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


def _with_rules(send: Any, host: str, path: str) -> Callable[[Any], Any]:
    """The same ``send``; answers forbid the browser to ask any other address, and to keep pages and files of a task."""
    rules = [
        (b"content-security-policy", PAGE_RULES.format(host=host).encode()),
        (b"referrer-policy", b"no-referrer"), (b"x-content-type-options", b"nosniff"),
    ]  # fmt: skip
    if path.startswith("/w/"):
        rules.append((b"cache-control", b"no-store"))

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
