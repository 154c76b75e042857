"""The server: bound to this machine, behind an access check, with a private folder that is removed at the end.

Only this user of this machine has access, by the server's own name and with the token. The module also restricts what
the pages may do.

Other users lack the token. If the system reports the owner of a connection, another user's connection is refused even
with the token. The token can leak: the process list shows it while the browser starts, and a browser sends the cookie
to all servers of this machine on any port. Requests from other pages of the same browser are detected by Origin, Host,
and Sec-Fetch-Site.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import shutil
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import shoal
from shoal.workbench.projects import Bench, write_text


def private_folder() -> Path:
    """A folder that only this user can read; folders of workbenches that no longer run are removed."""
    stem = "shoal-workbench-"
    for left in Path(tempfile.gettempdir()).glob(f"{stem}*-*"):
        owner = left.name.removeprefix(stem).split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=f"{stem}{os.getpid()}-"))


def _alive(process: int) -> bool:
    """Whether a process of this machine runs; True on Windows, where the test could end the process."""
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
    """The requested port, or a free one; PolicyError if it is in use."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise shoal.PolicyError(f"port {wanted}: {error.strerror}; leave ⟨port=⟩ out for a free one") from None
        return int(trial.getsockname()[1])


Address = tuple[str, int]
_CONNECTIONS = ("/proc/net/tcp", "/proc/net/tcp6")  # on Linux: the owner of each end of a connection
_OPEN = "01"


def owner(here: Address, there: Address) -> int | None:
    """The user who owns the end ``here`` of a local connection.

    None if it isn't open or the system doesn't report it.
    """
    ends = [f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}" for host, port in (here, there)]
    for file in _CONNECTIONS:
        with contextlib.suppress(OSError), open(file, encoding="ascii") as lines:
            for line in lines:
                fields = line.split()
                if [field[-13:] for field in fields[1:3]] == ends and fields[3] == _OPEN:
                    return int(fields[7])
    return None


def owners_are_told() -> bool:
    """Whether this system reports the owner of a connection, tested on one of our own."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        return hasattr(os, "getuid") and owner(ours.getsockname(), ours.getpeername()) == os.getuid()


class WithoutValues(logging.Filter):
    """Logs an unforeseen fault by its kind and its lines of code: the text of an exception may contain a value."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always True; the record of a fault gets other words."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            lines = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
            record.msg = f"{type(error).__name__} in {', '.join(lines)}: this is a defect of shoal, please report it"
            record.args, record.exc_info, record.exc_text = (), None, None
        return True


LOGGERS = ("nicegui", "uvicorn.error", "asyncio")  # that log exceptions


def for_the_browser(address: str, folder: Path, traced: bool) -> str:
    """The address with which the browser starts, or a private page that redirects to it.

    traced  whether the server identifies a user by the connection; otherwise the token must not be in the process list
    """
    if traced or os.name != "posix":  # Windows shows a process's arguments only to its user
        return address
    page = folder / "workbench.html"
    write_text(page, f'<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">shoal workbench</a>')
    return page.as_uri()


def serve(first: str | None = None, *, demo: bool = False, browser: bool = True, port: int | None = None,
          say: Any = print) -> None:  # fmt: skip
    """Serve the workbench until it is interrupted.

    first  a table or a folder of a project
    say    is called with the address, which contains the token
    """
    from nicegui import app, background_tasks, ui

    from shoal.workbench.window import pages

    chosen, token = free_port(port), secrets.token_urlsafe(24)
    folder = private_folder()
    tempfile.tempdir = str(folder)  # uploads use it too
    bench = Bench(folder, first, demo)
    address = f"http://127.0.0.1:{chosen}/?token={token}"
    traced = owners_are_told()
    pages(bench)
    for name in LOGGERS:
        logging.getLogger(name).addFilter(WithoutValues())
    app.config.quasar_config["loadingBar"]["skipHijack"] = True  # Quasar's loading bar has no name for screen readers
    app.add_middleware(Guard, token=token, port=chosen, traced=traced)

    async def ready() -> None:
        """Report the address once the server answers requests."""
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
    """An ASGI application that checks every request and socket before another application receives it.

    token   in the query of the first request; afterward in a cookie that scripts can't read and other sites don't send
    port    of this server: requests must be for 127.0.0.1:port or localhost:port
    traced  whether the system reports the owner of a connection. It must then be this user or root. Root can read
            everything anyway, and owns forwarded connections if Linux runs inside Windows
    """

    def __init__(self, app: Any, token: str, port: int, traced: bool = False) -> None:
        self.app, self.token, self.traced = app, token, traced
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self.cookie = f"shoal-workbench-{port}"  # cookies don't distinguish ports

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {k.decode("latin-1").lower(): v.decode("latin-1") for k, v in scope["headers"]}
        host = headers.get("host", "")
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        by_token = self._same(asked.get("token", ""))
        if not self._known(scope) or host not in self.hosts or not self._is_own_request(headers, host, by_token):
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
        """Whether this user owns the other end of the connection, if the system reports it."""
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
    def _is_own_request(headers: dict[str, str], host: str, by_token: bool) -> bool:
        """Whether one of our pages or the address bar sent the request; a link from elsewhere needs the token."""
        if "origin" in headers:
            return headers["origin"] == f"http://{host}"
        return by_token or headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _with_rules(send: Any, host: str, path: str) -> Callable[[Any], Any]:
    """The same ``send`` with headers that forbid the browser to contact other addresses and to cache a task's pages."""
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
