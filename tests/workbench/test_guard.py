"""The guard answers nobody but this machine's own pages, with the token, for requests and sockets alike."""

import asyncio
import os
import socket
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from shoal.workbench import server
from shoal.workbench.server import Guard

TOKEN, PORT = "right-token", 8123
HOST = f"127.0.0.1:{PORT}"
COOKIE = f"shoal-workbench-{PORT}={TOKEN}"


def asked(
    kind: str = "http", query: str = "", path: str = "/", traced: bool = False, ends: Any = None, **headers: str
) -> tuple[list[Any], list[Any]]:
    """(scopes that got through, messages that were sent) of one request or socket."""
    passed: list[Any] = []
    sent: list[Any] = []

    async def behind(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope)
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"inside"})

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in {"host": HOST, **headers}.items()]
    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": raw, **(ends or {})}
    asyncio.run(Guard(behind, TOKEN, PORT, traced)(scope, receive, send))
    return passed, sent


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"cookie": f"shoal-workbench-{PORT}=wrong"},
        {"cookie": f"shoal-workbench-{PORT + 1}={TOKEN}"},
        {"cookie": f"shoal-workbench-{PORT}="},
        {"cookie": COOKIE, "host": f"evil.example:{PORT}"},  # another name for this machine: DNS rebinding
        {"cookie": COOKIE, "host": "127.0.0.1"},
        {"cookie": COOKIE, "host": ""},
        {"cookie": COOKIE, "origin": "http://evil.example"},
        {"cookie": COOKIE, "origin": "null"},
        {"cookie": COOKIE, "origin": f"http://127.0.0.1:{PORT + 1}"},  # another server of this machine
        {"cookie": COOKIE, "sec_fetch_site": "cross-site"},
        {"cookie": COOKIE, "sec_fetch_site": "same-site"},
    ],
    ids=str,
)
def test_who_is_not_our_page_is_refused(kind: str, headers: dict[str, str]):
    passed, sent = asked(kind, **headers)
    assert passed == []
    if kind == "http":
        assert sent[0]["status"] == 403
        assert b"inside" not in sent[1]["body"]
    else:
        assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("query", ["token=wrong", "token=", "token=right-toke", "Token=right-token"])
def test_a_wrong_token_is_refused(query: str):
    passed, sent = asked(query=query)
    assert passed == []
    assert sent[0]["status"] == 403
    assert not any(name == b"set-cookie" for name, _ in sent[0]["headers"])


def test_the_token_becomes_a_cookie_and_leaves_the_address():
    passed, sent = asked(path="/w/abc", query=f"token={TOKEN}&a=b")
    headers = dict(sent[0]["headers"])
    assert passed == []
    assert sent[0]["status"] == 303
    assert headers[b"location"] == b"/w/abc?a=b"
    assert headers[b"set-cookie"].decode() == f"{COOKIE}; Path=/; HttpOnly; SameSite=Strict"
    assert headers[b"cache-control"] == b"no-store"


def test_a_token_does_not_open_a_socket_by_itself():
    assert asked("websocket", query=f"token={TOKEN}")[0] == []


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("headers", [{}, {"origin": f"http://{HOST}"}, {"sec_fetch_site": "same-origin"}], ids=str)
def test_our_own_page_gets_through_and_may_ask_no_other_address(kind: str, headers: dict[str, str]):
    passed, sent = asked(kind, cookie=COOKIE, **headers)
    assert len(passed) == 1
    if kind == "http":
        rules = dict(sent[0]["headers"])[b"content-security-policy"].decode()
        assert f"connect-src 'self' ws://{HOST};" in rules
        assert "default-src 'self'" in rules
        assert "frame-ancestors 'none'" in rules
        assert "http:" not in rules.replace(HOST, "")
        assert dict(sent[0]["headers"])[b"referrer-policy"] == b"no-referrer"


def test_a_page_elsewhere_cannot_log_in_by_a_token_it_guesses_and_form_is_no_way_around():
    assert asked(query=f"token={TOKEN}", origin="http://evil.example")[1][0]["status"] == 403


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="Linux alone tells whose a connection is")
def test_another_user_is_refused_with_the_token_too(monkeypatch: pytest.MonkeyPatch):
    """The list of processes shows the token while the browser starts, and other servers here are sent the cookie."""
    assert server.owners_are_told()
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as ours:
        ends = {"client": ours.getsockname(), "server": ours.getpeername()}
        assert server.owner(ends["client"], ends["server"]) == os.getuid()
        assert len(asked(traced=True, cookie=COOKIE, ends=ends)[0]) == 1
        assert len(asked("websocket", traced=True, cookie=COOKIE, ends=ends)[0]) == 1
        stranger = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: stranger)
        monkeypatch.setattr(server, "owner", lambda *_: stranger + 1)
        for kind in ("http", "websocket"):
            assert asked(kind, traced=True, cookie=COOKIE, ends=ends)[0] == []
        assert asked(query=f"token={TOKEN}", traced=True, ends=ends)[1][0]["status"] == 403
    monkeypatch.undo()
    assert server.owner(ends["client"], ends["server"]) is None, "what is closed is nobody's"
    assert asked(traced=True, cookie=COOKIE, ends=ends)[0] == []
    assert asked(traced=True, cookie=COOKIE)[0] == []


def test_where_no_owner_is_told_the_browser_is_started_without_the_token(tmp_path: Path):
    address = f"http://{HOST}/?token={TOKEN}"
    assert server.for_the_browser(address, tmp_path, traced=True) == address
    if os.name == "posix":
        place = server.for_the_browser(address, tmp_path, traced=False)
        assert TOKEN not in place
        page = Path(url2pathname(urlsplit(place).path))
        assert address in page.read_text()
        assert stat.S_IMODE(page.stat().st_mode) == 0o600


def test_a_browser_keeps_no_page_of_a_task():
    for path, kept in (("/w/abc/files/0/record", False), ("/_nicegui/static/x.js", True)):
        headers = dict(asked(path=path, cookie=COOKIE)[1][0]["headers"])
        assert (headers.get(b"cache-control") != b"no-store") == kept


def test_no_process_is_asked_whether_it_runs_where_that_could_end_it(monkeypatch):
    def killed(process, number):
        raise AssertionError("a process was sent a signal")

    with monkeypatch.context() as patched:
        patched.setattr(server.os, "kill", killed)
        patched.setattr(server.os, "name", "nt")
        assert server._alive(1)
