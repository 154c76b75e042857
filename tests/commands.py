"""The command line in this process: what a command prints and how it ends, without starting an interpreter."""

from __future__ import annotations

import io
import signal
import sys
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from shoal.cli import main


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr


def run(*words: object, cwd: Path | None = None) -> Done:
    """``shoal`` with these words, from this folder."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    before, asked = signal.getsignal(signal.SIGTERM), sys.argv
    sys.argv = ["shoal", *map(str, words)]
    try:
        with redirect_stdout(out), redirect_stderr(err), nullcontext() if cwd is None else chdir(cwd):
            main()
    except SystemExit as left:
        status = int(left.code or 0)
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.argv = asked
    return Done(status, out.getvalue(), err.getvalue())
