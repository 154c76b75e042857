"""A process that does the work of a page, so that the page stays alive and can stop it.

Parent and child speak JSON, a line at a time, through the child's standard input and output.  A child whose parent is
gone reads the end of its input and leaves.  Nothing but the answers is written: a table's values reach no log.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

Progress = Callable[[str, Any], None]


class JobError(Exception):
    """A job was refused: its message says why in words for the user; status is what the command line would leave."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


class Stopped(JobError):
    """A job was stopped by the user."""

    def __init__(self) -> None:
        super().__init__("stopped; nothing was written", 130)


class Worker:
    """One child process, started when it is first asked and after every stop; it does one job at a time.

    What a job puts aside on disk lies in the private folder of the server, which goes with it after a stop, too.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()
        self._stopped = False
        self._asked = 0

    async def start(self) -> asyncio.subprocess.Process:
        """The running child."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "shoal.workbench.worker",
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
                limit=1 << 28, start_new_session=True,
                env={**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), tempfile.gettempdir())},
            )  # fmt: skip
        return self._process

    async def ask(self, job: str, progress: Progress | None = None, **arguments: Any) -> Any:
        """The answer of a job; JobError where it is refused, Stopped where it is stopped."""
        async with self._lock:
            self._stopped = False
            self._asked += 1
            child = await self.start()
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                child.stdin.write(json.dumps([self._asked, job, arguments]).encode() + b"\n")
                await child.stdin.drain()
                while line := await child.stdout.readline():
                    number, what, value = json.loads(line)
                    if number != self._asked:  # of a question whose window went before it was answered
                        continue
                    if what == "told":
                        if progress is not None:
                            progress(*value)
                    elif what == "answer":
                        return value
                    else:
                        raise JobError(*value)
            except (BrokenPipeError, ConnectionResetError):
                pass
            if self._stopped:
                raise Stopped
            raise JobError("the process that did the work ended; nothing was written. Perhaps memory ran out", 1)

    def stop(self) -> None:
        """End the job that runs, at once; the next question starts a new child."""
        if self._process is not None and self._process.returncode is None:
            self._stopped = True
            self._process.kill()

    async def close(self) -> None:
        """End the child and wait for it."""
        self.stop()
        if self._process is not None:
            await self._process.wait()


def _plain(value: Any) -> Any:
    """What JSON has no words for: numpy's numbers, paths, tuples as keys."""
    return value.item() if hasattr(value, "item") else str(value)


def _serve() -> None:
    """The child: a question a line, until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints must not break the lines

    def send(what: str, value: Any) -> None:
        out.write(json.dumps([number, what, value], default=_plain) + "\n")
        out.flush()

    from shoal.workbench.jobs import JOBS

    for line in sys.stdin:
        number, job, arguments = json.loads(line)
        try:
            send("answer", JOBS[job](lambda words, share=None: send("told", [words, share]), **arguments))
        except Exception as error:  # the page says it; a message of ours holds no row, others are withheld
            import shoal
            from shoal.workbench.projects import in_fields

            if isinstance(error, shoal.ShoalError):
                send("refused", [in_fields(error), error.exit_status])
            elif isinstance(error, OSError):
                send("refused", [error.strerror or type(error).__name__, 2])
            else:
                send("refused", [f"{type(error).__name__}: this is a defect of shoal, please report it", 1])


if __name__ == "__main__":
    _serve()
