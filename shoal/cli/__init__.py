"""The command line: arguments in, one call of the library, exit status out."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

HALTED = "interrupted; no file is half written"


class Terminated(BaseException):
    """The process was asked to end; unwinds like an interruption, so that temporary files go."""


def _stop(_number: int, _frame: Any) -> None:
    raise Terminated


def main() -> None:
    """Entry point of ``shoal``.  Exit status: 0 done, 1 a check failed, 2 bad usage or input, 3 infeasible,
    4 an output exists already."""
    from shoal.engines.system import on_termination, say_anything

    try:
        say_anything()
        on_termination(_stop)
        _run()
    except Terminated:
        _halted(143)
    except KeyboardInterrupt:
        _halted(130)


def _run() -> None:
    from shoal.cli.commands import program
    from shoal.cli.common import in_flags
    from shoal.errors import ShoalError

    try:
        _refuse_servers(sys.argv[1:])
        status = program().main(prog_name="shoal", standalone_mode=False)
    except ShoalError as error:
        _refuse(in_flags(str(error)), error.exit_status)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(2)
    except OSError as error:
        said = error.strerror or (os.strerror(error.errno) if error.errno else str(error) or type(error).__name__)
        name = str(error.filename) if error.filename else ""
        _refuse(said if not name or os.path.basename(name) in said else f"{said} ({name})", 2)
    except MemoryError:
        _refuse("out of memory; no file is half written", 2)
    except (SystemExit, Terminated, KeyboardInterrupt):
        raise
    except BaseException as error:
        _unforeseen(error)
    else:
        if status == 130:  # what the parser of arguments makes of an interruption
            _halted(130)
        sys.exit(status if isinstance(status, int) else 0)


def _unforeseen(error: BaseException) -> None:
    """Bad usage found by the parser of arguments, or a defect, whose message is withheld: it could hold a row."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error, file=sys.stderr)
        sys.exit(2)
    if hasattr(error, "format_message"):
        from shoal.cli.commands import program
        from shoal.cli.usage import sentence

        _refuse(sentence(error, program().commands, sys.argv[1:]), 2)
    if type(error).__name__ == "Abort":
        _halted(130)
    if os.environ.get("SHOAL_TRACEBACK"):
        raise error
    _refuse(
        f"{type(error).__name__} in {_place(error)}; no file is half written. This is a defect of shoal: please report "
        "it (SHOAL_TRACEBACK=1 shows all, values of the table perhaps included)",
        1,
    )


def _place(error: BaseException) -> str:
    """Innermost file and line of ours on the way to an error."""
    found, trace = "shoal", error.__traceback__
    while trace is not None:
        name: Any = trace.tb_frame.f_globals.get("__name__", "")
        if str(name).startswith("shoal"):
            found = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _halted(status: int) -> NoReturn:
    """Leave at once: a search may still be in compiled code, which the usual way out would wait for."""
    try:
        _refuse(HALTED, status)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _refuse_servers(words: list[str]) -> None:
    """One command alone reads a server of databases: said before any other looks for a file of that name."""
    if not any("://" in word for word in words):
        return
    from shoal.engines.open import elsewhere
    from shoal.engines.source import is_server

    for word in words:
        if is_server(word) and words[0] not in ("anonymize", "verify"):
            raise elsewhere(word)


def _hidden(message: str) -> str:
    """A message without the passwords that stand in the addresses typed."""
    typed = [word.partition("=")[2] if word.startswith("--") else word for word in sys.argv[1:]]
    addresses = [word for word in typed if "://" in word]
    if addresses:
        from shoal.engines.source import hidden_in

        for address in addresses:
            message = hidden_in(message, address)
    return message


def _refuse(message: str, status: int) -> None:
    message = _hidden(message)
    if "--json" in sys.argv:
        print(json.dumps({"error": message, "status": status}, ensure_ascii=False))
    print(f"shoal: {message}", file=sys.stderr)
    sys.exit(status)
