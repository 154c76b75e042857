"""The command line in this process, without starting an interpreter; Python in one of its own where it must be."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from shoal.cli import main
from shoal.cli.options import with_options

SCHEMA = json.loads((Path(main.__code__.co_filename).parent / "answers.schema.json").read_text(encoding="utf-8"))
VALID = jsonschema.Draft202012Validator(SCHEMA)


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def said(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr

    def ok(self) -> "Done":
        """Itself, having done what it was told."""
        assert not self.returncode, self.said
        return self

    def refused(self, status: int, *says: str) -> "Done":
        """Itself, having ended with a status and these words on standard error."""
        assert self.returncode == status, self.said
        assert not [words for words in says if words not in self.stderr], self.stderr
        return self

    @property
    def facts(self) -> dict[str, Any]:
        """What it printed with ``--json``, having done what it was told."""
        return told(self.ok().stdout)


def told(text: str) -> dict[str, Any]:
    """The one object of ``--json``, once the schema has been held against it; each of its keys stands there."""
    assert text.count("\n") == 1, text
    held: dict[str, Any] = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    VALID.validate(held)
    own = () if "error" in held else _keys(held["command"].replace(" ", "_"))
    unknown = set(held) - {*SCHEMA["properties"], *own}
    assert not unknown, f"{held['command']}: {unknown} stands in no schema"
    return held


def _keys(name: str) -> Iterator[str]:
    own = SCHEMA["$defs"][name]
    yield from own.get("properties", ())
    for part in own.get("allOf", ()):
        yield from _keys(part["$ref"].rpartition("/")[2])


def run(*words: object, cwd: Path | None = None) -> Done:
    """``shoal`` with these words, from this folder."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    before, asked = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}, sys.argv
    sys.argv = ["shoal", *map(str, words)]
    try:
        with redirect_stdout(out), redirect_stderr(err), nullcontext() if cwd is None else chdir(cwd):
            main()
    except SystemExit as left:
        status = int(left.code or 0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.argv = asked
    return Done(status, out.getvalue(), err.getvalue())


def options(asked: Any, words: Sequence[str]) -> dict[str, Any]:
    """What a command whose options are ``asked`` is told by these words."""
    found: dict[str, Any] = {}

    def command(given: dict[str, Any] = asked) -> None:
        found.update(given)

    app = typer.Typer()
    app.command()(with_options(command))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (words, done.output, done.exception)
    return found


def started(*words: object, **more: Any) -> subprocess.Popen[str]:
    """Python with these words in a process of its own, which imports what this one does, wherever that lies."""
    pipe = subprocess.PIPE
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    asked = [sys.executable, *map(str, words)]
    return subprocess.Popen(asked, env=given, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **more)


def python(*words: object, **more: Any) -> Done:
    """The same, to its end, however long that takes."""
    process = started(*words, **more)
    said = process.communicate()
    return Done(process.returncode, *said)
