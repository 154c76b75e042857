"""The server as it runs: for this machine alone, nothing without the token, and no file left when it ends."""

import http.client
import os
import signal
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.commands import run, started
from tests.workbench.browser import WAIT, served
from tests.workbench.simulated import people

PATHS = (
    "/", "/w/anything", "/w/anything/files/0/release", "/docs", "/openapi.json", "/_nicegui/", "/favicon.ico",
    "/_nicegui_ws/socket.io/?EIO=4&transport=polling",
)  # fmt: skip


def answer(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of a request as any program of this machine may make it."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    line.request(method, path, headers={"Host": f"127.0.0.1:{port}", **named})
    got = line.getresponse()
    held = got.status, {name.lower(): value for name, value in got.getheaders()}, got.read()
    line.close()
    return held


def test_nothing_is_answered_without_the_token_nor_outside_this_machine(tmp_path: Path):
    said = list[str]()
    with served(str(people(tmp_path)), folder=tmp_path, said=said) as address:
        (room,) = left(tmp_path)
        assert (tmp_path / room).stat().st_mode & 0o077 == 0
        parts = urlsplit(address)
        port, token = parts.port, parts.query.removeprefix("token=")
        assert parts.hostname == "127.0.0.1"
        assert port is not None
        assert len(token) >= 32
        for path in PATHS:
            for method in ("GET", "POST", "PUT"):
                assert answer(port, path, method)[0] == 403, (method, path)
            assert answer(port, path, Cookie=f"shoal-workbench-{port}=guess")[0] == 403
        socket_asked = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13",
                        "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="}  # fmt: skip
        way = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
        status, headers, _ = answer(port, f"/?token={token}")
        cookie = headers["set-cookie"].split(";")[0]
        assert (status, headers["location"]) == (303, "/")
        assert answer(port, way, **socket_asked)[0] == 403
        assert answer(port, way, Cookie=cookie, Origin="http://evil.example", **socket_asked)[0] == 403
        line = socket.create_connection(("127.0.0.1", port), WAIT)  # with all of it, the socket opens
        lines = {"Host": f"127.0.0.1:{port}", "Cookie": cookie, "Origin": f"http://127.0.0.1:{port}", **socket_asked}
        asked = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
        line.sendall(f"GET {way} HTTP/1.1\r\n{asked}\r\n".encode())
        assert b" 101 " in line.recv(4096)
        line.close()
        status, headers, _ = answer(port, "/", Cookie=cookie)
        assert status == 303
        assert answer(port, f"{headers['location']}/upload", "POST", Cookie=cookie, X_File_Name="chosen.csv")[0] == 200
        assert list((tmp_path / room).rglob("chosen.csv")) != []
        assert answer(port, "/", Cookie=cookie, Host=f"evil.example:{port}")[0] == 403
        with pytest.raises(OSError):  # a server bound to all addresses would answer at this one, too
            socket.create_connection(("127.0.0.2", port), 5).close()
    assert left(tmp_path) == []  # what was chosen is gone with the server
    assert "chosen" not in said[0]


def test_a_port_that_is_taken_is_refused_in_words(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = started("-m", "shoal", "workbench", "--no-browser", "--port", str(taken.getsockname()[1]))
        out, err = ended.communicate(timeout=WAIT)
    assert ended.returncode == 2, out + err
    assert "port" in err
    assert "Traceback" not in err


def left(folder: Path) -> list[str]:
    """Folders of workbenches that are still there."""
    return sorted(p.name for p in folder.glob("shoal-workbench-*"))


def test_what_a_killed_server_left_goes_with_the_next(tmp_path: Path, monkeypatch):
    from shoal.workbench import server

    ended = started("-c", "pass")
    ended.wait()
    (tmp_path / f"shoal-workbench-{ended.pid}-left").mkdir()  # of a process that was killed
    (tmp_path / f"shoal-workbench-{os.getpid()}-runs").mkdir()
    (tmp_path / "shoal-workbench-of-another-kind").mkdir()
    monkeypatch.setattr(server.tempfile, "tempdir", str(tmp_path))
    mine = server.private_folder()
    assert f"shoal-workbench-{ended.pid}-left" not in left(tmp_path)
    assert len(left(tmp_path)) == 3
    assert mine.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN, reason="nohup runs the tests")
def test_a_server_whose_terminal_is_closed_leaves_nothing(tmp_path: Path):
    """The system sends SIGHUP to a command whose window is closed. The private folder has files that users chose."""
    private = tmp_path / "private"
    private.mkdir()
    with served(str(people(tmp_path)), folder=private, ending=signal.SIGHUP):
        assert list(private.iterdir())
    assert list(private.iterdir()) == []


def test_a_worker_leaves_when_its_server_is_killed(tmp_path: Path):
    import asyncio

    from shoal.workbench.jobs import Worker

    async def walk() -> int:
        worker = Worker()
        child = await worker.start()
        assert child.stdin is not None
        child.stdin.close()  # what a dead parent looks like
        return await asyncio.wait_for(child.wait(), WAIT)

    assert asyncio.run(walk()) == 0


def test_an_answer_that_nobody_waits_for_any_more_is_not_taken_for_the_next(tmp_path: Path):
    import asyncio

    from shoal.workbench.jobs import Worker

    async def walk() -> tuple[int, int]:
        worker = Worker()
        left = asyncio.create_task(worker.ask("look", source={"path": str(people(tmp_path))}))
        await asyncio.sleep(0)
        while worker._process is None:
            await asyncio.sleep(0.01)
        left.cancel()  # as when its window is closed
        source = {"path": str(people(tmp_path, 60, "others.csv"))}
        found = await worker.ask("look", source=source)
        rows = await worker.ask("rows", source=source, offset=0, limit=100)
        await worker.close()
        return found["rows"], len(rows)

    assert asyncio.run(walk()) == (60, 60)


def test_without_nicegui_one_sentence_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "nicegui", None)
    answered = run("workbench", "--demo")
    assert answered.returncode == 2
    assert "the workbench needs the package nicegui; install it with: pip install 'shoal[workbench]'" in answered.said
    assert len(answered.said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--demo", "people.csv"), "--demo opens a table of its own"),
        (("--port", "70000"), "a number from 1 to 65535"),
        (("nowhere.csv",), "nowhere.csv"),
    ],
)
def test_a_wrong_command_is_refused_before_anything_is_served(words: tuple[str, ...], said: str):
    answered = run("workbench", *words)
    assert answered.returncode == 2
    assert said in answered.said


def test_a_job_of_an_unforeseen_fault_shows_no_value(tmp_path: Path, monkeypatch):
    from shoal.workbench import jobs

    assert set(jobs.JOBS) >= {"look", "release"}
    import io
    import json
    import sys

    def faulty(tell: object, **_: object) -> None:
        raise KeyError("Zebedee, 34, flu")

    monkeypatch.setitem(jobs.JOBS, "look", faulty)
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps([1, "look", {}]) + "\n"))
    read, write = os.pipe()
    kept = os.dup(1)
    os.dup2(write, 1)
    try:
        jobs._serve()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(write)
    with os.fdopen(read) as said:
        text = said.readline()
    assert "KeyError: this is a defect of shoal" in text
    assert "Zebedee" not in text
