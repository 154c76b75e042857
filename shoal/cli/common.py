"""Functions for all commands: printing answers, showing progress, and parsing options that are lists or pairs."""

from __future__ import annotations

import ast
import fnmatch
import io
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, Mention, PolicyError, Sentence, ShoalError, one_line
from shoal.model.cards import PLAIN_JSON, json_value
from shoal.model.settings import entry_of
from shoal.paths import is_remote, record_path
from shoal.version import __version__
from shoal.watching import Lines, compiling, listening
from shoal.watching import Progress as Estimate

if TYPE_CHECKING:
    from shoal import Crosswalk
    from shoal.publishing.crosswalks.crosswalk import Drawing

# arguments of functions that are not settings of a policy and whose option is not the name with dashes
_OPTIONS = {
    "overwrite": "--force", "setup_costs": "--setup-cost", "earlier": "--with", "earlier_originals": "--with-original",
    "counterfeits": "--no-counterfeits", "place": "--latitude and --longitude",
}  # fmt: skip
QUOTE = "'"
_ANY = ("", "True", "...", "[...]", "{column: ...}")  # values that add nothing to the option's name


def in_flags(sentence: str) -> str:
    """A sentence in terms of the command line: ``k=5`` becomes ``--k 5``."""
    return sentence.worded(_option) if isinstance(sentence, Sentence) else sentence


def refusal(error: ShoalError) -> str:
    """An error's message: settings of the command line are named as options, those of a file as its keys."""
    return error.sentence.worded(lambda named: _key(named) if named.name in error.keys else _option(named))


def _key(named: Mention) -> str:
    """A setting as a line of a policy file."""
    value, name = (named.value or "").replace(QUOTE, '"'), named.name
    if named.column is not None:
        column = str(_read(named.column))
        name += "." + (column if re.fullmatch(r"[\w-]+", column) else json.dumps(column, ensure_ascii=False))
    return f"{name} = {value}" if value and value not in _ANY else name


def option_of(name: str) -> str:
    """The option of a setting."""
    entry = entry_of(name)
    option = entry.option if entry is not None and entry.option else _OPTIONS.get(name)
    return option or f"--{name.replace('_', '-')}"


def _option(named: Mention) -> str:
    """A setting as an option."""
    entry, value = entry_of(named.name), (named.value or "").strip()
    option = option_of(named.name)
    if named.column is not None:
        return f"{option} {shlex.quote(f'{_read(named.column)}={_read(value)}')}"
    if value in _ANY or (entry is not None and entry.meant is not True):
        return option
    held = _read(value)
    if isinstance(held, (list, tuple)) and all(isinstance(name, str) for name in held):
        return f"{option} {shlex.quote(','.join(map(_listable, held)))}"
    if isinstance(held, str) and held != value:
        return f"{option} {shlex.quote(held)}"
    return f"{option} {value.strip('[]()').replace(QUOTE, '').replace(', ', ',').rstrip(',')}"


def _read(text: str) -> Any:
    """The value that Python writes in this way; a text that is none, as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _listable(name: str) -> str:
    """A name as ``listed`` reads it."""
    return '"' + name.replace('"', '""') + '"' if re.search(r'[,\n\r]|^[\s"]|\s$', name) else name


def present(*paths: Path, folders: bool = False) -> None:
    """InputError unless all these are files (or folders, or tables of Delta or Iceberg). The message suggests the most
    similar name in the folder."""
    from shoal.engines.lakes import is_target
    from shoal.engines.source import plain

    for path in paths:
        if path.is_file() or (folders and (path.is_dir() or is_target(path))):
            continue
        if path.is_dir():
            raise InputError(f"{str(path)!r} is a folder; name the file in it")
        if path.exists():
            plain(path)
        if str(path) == "-":
            raise InputError("a table is read more than once, so it cannot come through a pipe; save it as a file")
        if len(paths) > 1 and not path.suffix:
            hint = "column names are separated by commas without blanks (--quasi age,zip)"
            raise InputError(f"there is no file {str(path)!r} to read; {hint}")
        there = [p.name for p in path.parent.glob("*") if p.is_file()] if path.parent.is_dir() else []
        if matching := fnmatch.filter(there, path.name):
            many = f"as a pattern its name matches {len(matching)} file{'s' * (len(matching) > 1)} there"
            raise InputError(
                f"there is no file {str(path)!r} to read; {many}; anonymize and audit read patterns with --glob"
            )
        near = get_close_matches(path.name, there, n=1, cutoff=0.75)
        hint = f"did you mean {str(path.with_name(near[0]))!r}?" if near else "give its whole path, or change folder"
        raise InputError(f"there is no file {str(path)!r} to read; {hint}")


SCHEMA = 1  # version of answers.schema.json; raised if a key is removed or changes its meaning


class Job:
    """One command while it runs: its name, its parameters, and what it has printed for other programs so far.

    asked       values of its arguments and options by name
    if_changed  whether ``--if-changed`` was given
    keep        function that writes the answer to the private record, for the next run; None if not needed
    lines       where ``--log-json`` writes progress; None without that option
    """

    def __init__(self, command: str | None = None, log: bool = False) -> None:
        self.command, self.answered = command, False
        self.asked: dict[str, Any] = {}
        self.if_changed = False
        self.keep: Callable[[Mapping[str, Any]], None] | None = None
        self.lines = Lines(sys.stderr, command) if log else None

    def parsed(self, asked: dict[str, Any]) -> None:
        """Moves the options that every command has out of ``asked``, and keeps the others."""
        asked.pop("log_json", None)
        self.if_changed = bool(asked.pop("if_changed", False))
        self.asked = dict(asked)
        if asked.get("action") and self.command is not None:
            self.command = f"{self.command} {asked['action']}"
        if self.lines is not None:
            self.lines.command = self.command


_job: ContextVar[Job | None] = ContextVar("shoal_job", default=None)


def job() -> Job:
    """The running command; a job without a name if there is none."""
    return _job.get() or begin([], [])


def begin(words: Sequence[str], commands: Iterable[str]) -> Job:
    """Starts the job of the command that is typed; everything printed afterwards belongs to it."""
    own = Job(next((word for word in words if word in commands), None), "--log-json" in words)
    _job.set(own)
    return own


def answer(payload: Mapping[str, Any], lines: Iterable[str], as_json: bool, status: int = 0) -> None:
    """Prints one JSON object, or the same facts as lines of text, and never a row of the table.

    status  exit status; if it is not 0, the command exits at once
    """
    keep = job().keep
    if keep is not None:
        payload = json.loads(_text({**payload, "unchanged": False}))
        keep(payload)
    if as_json:
        print_json(payload, status)
    else:
        for line in lines:
            print(one_line(line))
    if status:
        sys.exit(status)


def print_json(payload: Mapping[str, Any], status: int) -> None:
    """Prints the object of ``--json``, unless the command has already printed one."""
    own = job()
    if own.answered:
        return
    own.answered = True
    envelope = {"schema": SCHEMA, "shoal": __version__, "command": own.command, "status": status}
    print(_text({**envelope, **payload}))


def _text(payload: Mapping[str, Any]) -> str:
    """The object as JSON. Numbers that are not finite become null."""
    try:
        return json.dumps(payload, allow_nan=False, **PLAIN_JSON)
    except ValueError:
        plain = json.loads(json.dumps(payload, default=json_value), parse_constant=lambda _: None)
        return json.dumps(plain, ensure_ascii=False)


def say(message: str, level: str = "info") -> None:
    """Prints a sentence to standard error; with ``--log-json``, as a line of the log."""
    own = job()
    if own.lines is not None:
        own.lines.say(message, None, level)
    else:
        print(one_line(message), file=sys.stderr)


def certificate_place(output: Path | None, certificate: Path | None) -> Path | None:
    """Where an output's certificate is written."""
    from shoal.engines.atomic import check_place
    from shoal.publishing.documents import Documents

    if output is None or certificate is not None:
        return certificate
    check_place(output)
    return Documents.next_to(output, None, True).certificate


def put(
    made: Crosswalk, output: Path | None, certificate: Path | None, also: Mapping[str, Path] | None = None,
    drawn: Sequence[tuple[Path | None, Callable[[], Drawing]]] = (), *, kept: tuple[bool, bool],
) -> dict[str, str | None]:  # fmt: skip
    """Writes an answer, its certificate, and its record. Returns all paths for the JSON object.

    also   name of a further output -> its path
    kept   ``OutputFiles``
    drawn  paths of maps and pictures, and functions that draw them: either all files are written or none
    """
    from shoal.engines.atomic import Piece, closed_to, publish_together

    more, pictures = also or {}, [(path, draw()) for path, draw in drawn if path is not None]
    proof = certificate_place(next((p for p in (output, *more.values()) if p is not None), None), certificate)
    written = output is not None or bool(more)
    no_record, no_bound = kept
    if written:
        bound = "none" if no_bound else "ratio"
        made.write(output, proof, also=more, drawn=pictures, record=not no_record, bound=bound)
    else:
        pieces = [Piece(path, drawing.fill, private=drawing.private) for path, drawing in pictures]
        publish_together(pieces, closed=closed_to(made.read))
        if proof is not None:
            made.certify(proof)
    return {
        "output": None if output is None else str(output),
        "certificate_file": None if proof is None else str(proof),
        **({"record_file": str(record_path(proof))} if written and proof and not no_record else {}),
    }


_PAGE_LATER = {
    "a release": "the release and its certificate are written; make the page later with shoal report",
    "an answer": "the other files are written; for the page, run again with --force",
}


def reported(made: Any, path: Path | None, *, after: str = "an answer", **more: Any) -> dict[str, Any]:
    """Writes the report, if requested. Returns its path and figures for the JSON object, without values of the table.

    made   anything with ``report`` and ``figures``;  more: arguments of its ``report``
    after  what has been written already; if the page cannot be written, that is kept, and the error says so
    """
    if path is None:
        return {}
    try:
        path = made.report(path, **more)
    except (ShoalError, OSError) as error:
        way = _PAGE_LATER.get(after)
        said = error.sentence.marked if isinstance(error, ShoalError) else error
        raise error if way is None else type(error)(f"{said}; {way}") from None
    told = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    figures = {name: held for name, held in told.items() if name not in ("shown", "pairs")}
    columns = [  # the columns of a crosswalk are names, not figures
        {name: held for name, held in c.items() if name != "distribution"} if isinstance(c, dict) else c
        for c in figures["columns"]
    ]
    beside = str(path.with_suffix(".json"))
    return {"report": str(path), "figures_file": beside, "figures": {**figures, "columns": columns}}


def exploration(path: Path | None, report: Path | None, internal: bool = True) -> Any:
    """The results of an earlier ``explore``, for an internal report; None if no file is named."""
    if path is None:
        return None
    if report is None:
        raise PolicyError("--explored is shown in an internal report: add --report FILE --internal")
    from shoal.utility.explore import Exploration

    found = Exploration.read(path)
    if not internal:
        raise PolicyError("--explored describes the original, so only an internal report shows it: add --internal")
    return found


def seconds(begun: float, read: float, solved: float) -> dict[str, float]:
    """Seconds spent on reading, on solving, and on writing until now."""
    spans = {"read": read - begun, "solve": solved - read, "write": time.perf_counter() - solved}
    return {name: round(value, 4) for name, value in spans.items()}


def listed(text: str | None) -> list[str] | None:
    """Column names separated by commas or lines; one that contains these is put in double quotes."""
    if text is None:
        return None
    import csv

    lines = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    return [name.strip() for line in lines for name in line if name.strip()]


def further_levels(text: str | None) -> list[int]:
    """The whole numbers of --levels."""
    try:
        return [] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise PolicyError(f"--levels {text!r} is not a list of whole numbers such as 5000,20000") from None


def pairs(given: Iterable[str], option: str, convert: Callable[[str], Any] = str) -> dict[str, Any]:
    """Options of the form column=value, as a mapping."""
    out: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise PolicyError(f"{option} {text!r}: write column=value")
        if re.search(r"=.*,", name):
            raise PolicyError(f"{option} {text!r} names several columns; repeat the option for each of them")
        try:
            out[name] = convert(value)
        except ValueError:
            raise PolicyError(f"{option} {text!r}: {value!r} is not a number") from None
    return out


@contextmanager
def progress() -> Iterator[Callable[[str, float | None], None]]:
    """A callback (what, share done or None) that shows a bar with the time left on standard error, if that is a
    terminal."""
    logged = job().lines
    if logged is not None:
        with compiling(lambda: logged("compiling, once per machine", None)):
            yield logged
        return
    if not sys.stderr.isatty():
        yield lambda _what, _share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def say(what: str, share: float | None) -> None:
            bar.update(task, description=what, total=None if share is None else 1.0, completed=share or 0.0)

        with compiling(lambda: say("compiling, once per machine", None)):
            yield say


@contextmanager
def working(what: str) -> Iterator[None]:
    """Shows what is done as ``progress`` does, and the share and the time left if the search reports them."""
    estimate, logged = Estimate(what), job().lines is not None  # a log has the share as a number

    with progress() as tell:

        def report(share: float) -> None:
            estimate(what, share)
            tell(what if logged else f"{what}; {share:.0%} of the search done{estimate.left()}", share)

        tell(what, None)
        with listening(report):
            yield


def source_of(tables: list[str], glob: bool) -> Any:
    """The table or tables named on the command line; InputError for a name that does not exist."""
    from shoal.engines.lakes import is_target

    elsewhere = [path for path in tables if is_remote(path) or is_target(path)]
    present(*(Path(path) for path in tables if not glob and not is_remote(path)), folders=True)
    if glob and len(tables) > 1:
        raise InputError("--glob takes one pattern; put it in quotes, so that the shell leaves it alone")
    found = [path if path in elsewhere else Path(path) for path in tables]
    return found[0] if len(found) == 1 else found
