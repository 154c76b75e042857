"""The command line: it parses arguments, runs one command, and ends with an exit status.
If a command is wrong, the message names what was typed, where, and what to type instead."""

from __future__ import annotations

import functools
import os
import re
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, NoReturn

from shoal.errors import ShoalError
from shoal.paths import hidden_in, is_server

HALTED = "interrupted; no file is half written"


class Terminated(BaseException):
    """Raised by SIGTERM, and by SIGHUP of a closed terminal.

    It unwinds the stack like an interruption, so that temporary files are removed.
    """


def _stop(_number: int, _frame: Any) -> None:
    raise Terminated


class _Pressed:
    """Notes whether Ctrl-C was pressed, because interrupted compiled code may raise any other error."""

    yes = False

    def __call__(self, number: int, frame: Any) -> NoReturn:
        self.yes = True
        raise KeyboardInterrupt


_pressed = _Pressed()


def main() -> None:
    """Entry point of ``shoal``.  Exit status: 0 done, 1 a check failed, 2 bad usage or input, 3 infeasible,
    4 an output exists already."""
    _pressed.yes = False
    try:
        # if a parent process ignores SIGINT, so do we
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _pressed)
        from shoal.engines.atomic import escape_unencodable, on_termination

        escape_unencodable()
        on_termination(_stop)
        _run()
    except Terminated:
        _halted(143)
    except KeyboardInterrupt:
        _halted(130)


def _run() -> None:
    from shoal.cli.app import PAGES
    from shoal.cli.common import begin, option_of, refusal

    begin(sys.argv[1:], PAGES)
    try:
        _refuse_servers(sys.argv[1:])
        status = program().main(prog_name="shoal", standalone_mode=False)
    except ShoalError as error:
        setting = next((option_of(name) for name in error.settings), None)
        _refuse(refusal(error), error.exit_status, _kind(error), setting, error.column, error.sentence.marked)
    except OSError as error:
        message = error.strerror or (os.strerror(error.errno) if error.errno else str(error) or type(error).__name__)
        name = str(error.filename) if error.filename else ""
        _refuse(message if not name or os.path.basename(name) in message else f"{message} ({name})", 2, "OSError")
    except MemoryError:
        _refuse("out of memory; no file is half written", 2, "MemoryError")
    except (SystemExit, Terminated, KeyboardInterrupt):
        raise
    except BaseException as error:
        if _pressed.yes:
            raise KeyboardInterrupt from error
        _refuse_other_errors(error)
    else:
        if status == 130:  # the argument parser turns an interruption into this status
            _halted(130)
        sys.exit(status if isinstance(status, int) else 0)


@functools.cache
def program() -> Any:
    """The parser's object with all commands. Each module registers its commands on ``app`` when it is imported."""
    import typer
    from typer.utils import get_params_from_function

    from shoal.cli import anonymize, audit, explore, gather, labels, regions, tiles, verify  # noqa: F401
    from shoal.cli.app import app, describe_commands

    describe_commands(app)
    built: Any = typer.main.get_command(app)
    for given in app.registered_commands:
        declared = get_params_from_function(given.callback)  # type: ignore[arg-type]
        name = given.name or given.callback.__name__  # type: ignore[union-attr]
        for parameter in built.commands[name].params:
            if parameter.param_type_name == "argument":  # some versions of typer lose the help texts of arguments
                parameter.help = declared[parameter.name].default.help
    return built


def _refuse_other_errors(error: BaseException) -> None:
    """Reports bad usage, or a defect, whose message is withheld because it could show a row."""
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error, file=sys.stderr)
        sys.exit(2)
    if hasattr(error, "format_message"):
        parameter = getattr(error, "param", None)
        setting = getattr(error, "option_name", None) if parameter is None else _named(parameter)
        _refuse(sentence(error, program().commands, sys.argv[1:]), 2, "UsageError", setting)
    if type(error).__name__ == "Abort":
        _halted(130)
    if os.environ.get("SHOAL_TRACEBACK"):
        raise error
    _refuse(
        f"{type(error).__name__} in {_frame(error)}; no file is half written. This is a defect of shoal: please report "
        "it (SHOAL_TRACEBACK=1 shows all, values of the table perhaps included)",
        1,
        "Defect",
    )


def _frame(error: BaseException) -> str:
    """Module and line of the innermost frame of shoal in an error's traceback."""
    found, trace = "shoal", error.__traceback__
    while trace is not None:
        name: Any = trace.tb_frame.f_globals.get("__name__", "")
        if str(name).startswith("shoal"):
            found = f"{name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _halted(status: int) -> NoReturn:
    """Exits at once: compiled code may still be searching, and a normal exit would wait for it."""
    try:
        _refuse(HALTED, status, "KeyboardInterrupt" if status == 130 else "Terminated")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


_SERVED = ("anonymize", "audit", "init", "report", "verify")
_FILES = ("-o", "--output", "--policy", "--original", "--with", "--with-original")


def _refuse_servers(words: list[str]) -> None:
    """Refuses a server's address in a command that reads no servers, before the address is looked for as a file."""
    if not any("://" in word for word in words):
        return
    from shoal.engines.open import elsewhere

    for before, word in pairwise(words):
        here = words[0] in ("anonymize", "verify") or (words[0] in _SERVED and before not in _FILES)
        if is_server(word) and not here:
            raise elsewhere(word)


def _without_passwords(message: str) -> str:
    """A message with the passwords in the typed addresses masked."""
    typed = [word.partition("=")[2] if word.startswith("--") else word for word in sys.argv[1:]]
    for address in (word for word in typed if "://" in word):
        message = hidden_in(message, address)
    return message


def _kind(error: Exception) -> str:
    """Name of an error's class in ``shoal.errors``; those that only shoal itself tells apart are PolicyErrors."""
    from shoal import errors

    own = (errors.UnaskedError, errors.UncoveredError)
    return next(kind.__name__ for kind in type(error).__mro__ if kind not in own)


def _refuse(
    message: str, status: int, kind: str, setting: str | None = None, column: str | None = None,
    marked: str | None = None,
) -> None:  # fmt: skip
    """Reports why the command fails, for people and with ``--json`` for programs, and exits.

    kind     name of the error's class in Python
    setting  the wrong option, and the column, if known; otherwise they are looked for in the message
    marked   the sentence with its settings marked, for programs that name them otherwise; None: it marks none
    """
    from shoal.cli.common import print_json, say

    message, marked = _without_passwords(message), _without_passwords(message if marked is None else marked)
    if "--json" in sys.argv:
        named = setting or next(iter(re.findall(r"^(--[a-z][a-z-]*)", message)), None)
        column = column or next(iter(re.findall(r"\bcolumn '([^']+)'", message)), None)
        told = {"kind": kind, "message": message, "marked": marked, "setting": named, "column": column,
                "exit_status": status}  # fmt: skip
        print_json({"error": told}, status)
    say(f"shoal: {message}", "error")
    sys.exit(status)


# name in another command or tool -> our options; the first one that the command has is named. The settings of a
# policy have their names in other tools there
SYNONYMS = {
    "--column": ("--value", "--label", "--columns", "--quasi"), "--columns": ("--quasi", "--value", "--label"),
    "--out": ("--output",), "--output-file": ("--output",), "--input": ("TABLE",), "--file": ("TABLE",),
    "--lat": ("--latitude", "--y"), "--lon": ("--longitude", "--x"), "--lng": ("--longitude", "--x"),
    "--latitude": ("--y",), "--longitude": ("--x",), "--delimiter": ("--separator",), "--sep": ("--separator",),
    "--overwrite": ("--force",), "--id": ("--identifiers",), "--population-column": ("--weight",), "--k": ("--r",),
    "--r": ("--k",), "--weight": ("--count",), "--algorithm": ("--method",), "--config": ("--policy",),
    "--min-size": ("--k", "--r"), "--table": ("--output",),
}  # fmt: skip
_KINDS = {
    "int": "a whole number", "integer": "a whole number", "integer range": "a whole number in its range",
    "float": "a number",
}  # fmt: skip


def sentence(error: Any, commands: Mapping[str, Any], typed: Sequence[str]) -> str:
    """An error of the argument parser as a message for users, which ends with what to type next."""
    context = getattr(error, "ctx", None)
    command = context.info_name if context is not None and context.parent is not None else None
    if context is None:  # the parser does not always name the command
        command = next((word for word in typed if word in commands), None)
    params = commands[command].params if command is not None and command in commands else ()
    message = str(error.format_message())
    unknown = re.match(r"No such command '([^']*)'", message)
    if unknown is not None:
        return _no_command(unknown[1])
    kind = type(error).__name__
    if kind == "NoSuchOption":
        return f"{_no_option(error.option_name, context, command)} {_help_of(command)}"
    if kind == "MissingParameter" and error.param is not None:
        return f"{_named(error.param)} is missing: {_help(error.param)}; {_example(command)}"
    if kind in ("BadParameter", "BadOptionUsage", "UsageError", "BadArgumentUsage"):
        return f"{_bad_value(error, message, context, params, typed)} {_help_of(command)}"
    return f"{message.rstrip('.')} {_help_of(command)}"


def _example(command: str | None) -> str:
    from shoal.cli.app import PAGES

    if command not in PAGES:
        return "shoal --help lists the commands"
    return f"for example: {PAGES[command].examples[0]}"


def _help_of(command: str | None) -> str:
    return f"(shoal{' ' + command if command else ''} --help lists the options)"


def _no_command(name: str) -> str:
    from shoal.cli.app import PAGES

    near = get_close_matches(name, PAGES, n=1)
    if name == "help":
        return "there is no command 'help'; shoal --help lists the commands, shoal anonymize --help explains one"
    if near:
        return f"there is no command {name!r}; did you mean shoal {near[0]}?"
    if "." in name or "/" in name:
        return f"{name!r} is no command; say first what to do with it, for example: shoal init {shlex.quote(name)}"
    return f"there is no command {name!r}; shoal --help lists them, shoal demo shows what it does"


def _no_option(name: str, context: Any, command: str | None) -> str:
    from shoal.cli.app import PAGES

    own = [o for p in context.command.params for o in p.opts if o.startswith("--")] if context is not None else []
    own.append("--help")
    words = [p.name.upper() for p in context.command.params if _is_argument(p)] if context is not None else []
    message = f"shoal {command or ''}".rstrip() + f" has no {name}"
    if same := [o for o in (*SYNONYMS.get(name, ()), *_of_setting(name)) if o in own]:
        return f"{message}; here this is {same[0]}"
    if near := get_close_matches(name, own, n=1, cutoff=0.7):
        return f"{message}; did you mean {near[0]}?"
    if command is None:
        return f"{message}; name a command first, for example: {PAGES['anonymize'].examples[0]}"
    if "TABLE" in SYNONYMS.get(name, ()) and words:
        return f"{message}; {words[0]} is named without a flag"
    return message


def _of_setting(name: str) -> list[str]:
    """The option of the setting that has this name in Python or in another tool."""
    from shoal.model.settings import entry_of, named_elsewhere

    plain = name.removeprefix("--")
    entry = entry_of(plain.replace("-", "_")) or entry_of(named_elsewhere(plain) or "")
    return [] if entry is None else [entry.option]


def _bad_value(error: Any, message: str, context: Any, params: Sequence[Any], typed: Sequence[str]) -> str:
    parameter = getattr(error, "param", None)
    wrong = re.search(r"'([^']*)' is not a valid ([a-z ]+)", message)
    if wrong is not None and parameter is not None:
        return f"{_named(parameter)} is {wrong[1]!r}, and it has to be {_KINDS.get(wrong[2].strip(), wrong[2])}"
    unread = re.search(r"Input should be a valid ([a-z]+)", message)  # the message in newer versions of the parser
    if unread is not None and parameter is not None:
        value = _typed(parameter, typed)
        value_said = ":" if value is None else f" is {value!r}, and"
        kind = {"number": "float"}.get(unread[1], unread[1])
        return f"{_named(parameter)}{value_said} it has to be {_KINDS.get(kind, kind)}"
    extra = re.match(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", message)
    if extra is not None:
        own = context.command.params if context is not None else params
        if not any("--quasi" in p.opts for p in own):
            if context is not None and context.command.name == "demo":
                return "shoal demo brings a table of its own; for yours: " + f"shoal init {shlex.quote(extra[1])}"
            named = {"--output": "what it writes", "--original": "the original"}
            ways = [f" {what} is named by {way};" for way, what in named.items() if any(way in p.opts for p in own)]
            return f"{extra[1]!r} is too much:{''.join(ways)} a name that holds blanks needs quotes"
        return (
            f"{extra[1]!r} is too much: column names are separated by commas without blanks (--quasi age,zip), "
            "and a name that holds blanks needs quotes"
        )
    needs = re.match(r"Option '([^']*)' requires an argument", message)
    if needs is not None:
        own = context.command.params if context is not None else params
        option = next((p for p in own if needs[1] in p.opts), None)
        return f"{needs[1]} needs a value" + ("" if option is None else f": {_help(option)}")
    return message.rstrip(".")


def _typed(parameter: Any, typed: Sequence[str]) -> str | None:
    """The value typed after an option; None if it cannot be determined."""
    for word, after in zip(typed, [*typed[1:], ""], strict=True):
        if word in parameter.opts:
            return after
        name, equals, value = word.partition("=")
        if equals and name in parameter.opts:
            return value
    return None


def _is_argument(parameter: Any) -> bool:
    return getattr(parameter, "param_type_name", "") == "argument"


def _named(parameter: Any) -> str:
    """A parameter's name for messages: TABLE, or --quasi."""
    if _is_argument(parameter):
        return str(parameter.name).upper()
    return max(parameter.opts, key=len)


def _help(parameter: Any) -> str:
    text = str(getattr(parameter, "help", None) or "a value").rstrip(".")
    return text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
