"""Options that several commands share, each with one help text.

A command takes options that belong together as one tuple, which ``with_options`` replaces by one option for each
field, and the settings of a policy as ``asks`` declares them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import typer

from shoal.errors import PolicyError
from shoal.model.conditions import Condition
from shoal.model.settings import SETTINGS, SHORTHANDS, Setting, entry_of
from shoal.paths import internal_path
from shoal.problems.catalogue import names

if TYPE_CHECKING:
    from shoal.engines.source import Scope


Column = str | None
File = Path | None
METHODS = ", ".join(names("tables"))
TABLES = typer.Argument(
    help="CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS file; folder, several parts, DuckDB or SQLite file."
)


def flag(default: Any, *words: str) -> Any:
    """An option: its default (... if it is required), its flags, and last its help text."""
    return typer.Option(default, *words[:-1], help=words[-1])


def setting(name: str) -> Any:
    """The option of a setting, for a tuple that takes the value as typed."""
    return flag(None, SETTINGS[name].option, SETTINGS[name].help)


NO_BOUND = flag(False, SETTINGS["bound"].option, SETTINGS["bound"].help)
NO_RECORD = flag(False, "--no-record", "Do not write a private record next to the certificate.")
FORCE = flag(False, "--force", "Replace outputs that exist.")
JSON_ = flag(False, "--json", "One JSON object on standard output.")
EXPLORED = flag(
    None, "--explored", "JSON that explore writes next to its page: the cost of other requests, for the report."
)
OF_DATABASE = flag(
    None,
    "--table",
    "--layer",
    "Table of a DuckDB or SQLite file, or of a server; sheet of an Excel file; layer of a map of points.",
)
QUERY = flag(
    None, "--query", "SELECT statement for a DuckDB or SQLite file or a server; of other files, select FROM data."
)
SEPARATOR = flag(None, "--separator", "Column separator of a CSV; detected by default.")
ENCODING = flag(None, "--encoding", "Encoding of a CSV: utf-8 (default), windows-1252, or latin-1.")
DATES = flag([], "--date", "column=notation of its dates, such as %d.%m.%Y or %m/%d/%Y.")
DECIMAL = flag([], "--decimal", "column=decimal mark of its numbers, a comma or a point.")
LABELS = flag([], "--hierarchy", "column=file.csv, to read the labels of the column. Repeatable.")
SECRET = flag(None, "--secret", "File of at least 16 bytes that fixes the row order.")
EFFORT = flag("balanced", "--effort", "fast, balanced, thorough or seconds.")
RECIPIENT = flag("", "--recipient", "Recipient of the release, for the report.")
PURPOSE = flag("", "--purpose", "Purpose of the release, for the report.")
DECIDED_BY = flag("", "--decided-by", "Who decided about the release, for the report.")
REPORT = flag(None, "--report", "Page for a review board that opens offline: .html.")


class SourceOptions(NamedTuple):
    """Where the table is read from, and how."""

    engine: str | None = setting("engine")
    memory: str | None = setting("memory")
    threads: int | None = setting("threads")
    temporary: Path | None = setting("temporary")
    glob: bool = flag(False, "--glob", "TABLE is a pattern: *, ?, [...] and ** match many files.")
    table: str | None = OF_DATABASE
    query: str | None = QUERY
    master: str | None = flag(None, "--master", "Spark's master, such as local[2].")
    separator: str | None = SEPARATOR
    encoding: str | None = ENCODING

    def scope(self) -> Scope:
        """The options that select the rows, or limit what reading may use."""
        from shoal.engines.source import Scope

        return Scope.among(self._asdict())[0]


class Order(NamedTuple):
    """In what order rows are written."""

    keep_order: bool = flag(False, "--keep-order", "Keep the order of the rows.")
    secret: Path | None = SECRET


def secret_of(path: Path | None, keep_order: bool) -> bytes | None:
    """The secret of a file, which is read once, before the work, because it may be a pipe."""
    from shoal.engines.order import ShuffleKey, read_secret

    if path is None or keep_order:
        ShuffleKey.unless_kept(path, keep_order)
        return None
    return read_secret(path)


class Text(NamedTuple):
    """How a CSV file is read."""

    separator: str | None = SEPARATOR
    encoding: str | None = ENCODING


def refuse_idle(table: File, writes: str, **given: Any) -> None:
    """PolicyError for an option of a table that isn't written. writes: the option that would write it."""
    idle = next((name for name, value in given.items() if value), None)
    if table is None and idle is not None:
        raise PolicyError(
            f"--{idle.replace('_', '-')} is for what {writes} writes, and none is written; add {writes} FILE"
        )


class Decision(NamedTuple):
    """Who receives a report, and who is responsible for it."""

    internal: bool = flag(
        False, "--internal", "Make the report internal: it has figures of the original, so don't publish it."
    )
    recipient: str = RECIPIENT
    purpose: str = PURPOSE
    decided_by: str = DECIDED_BY

    def page(self, report: File) -> File:
        """The report's path; that of an internal report says so. PolicyError if there is none to show a decision."""
        given = next((name for name, value in self._asdict().items() if value), None)
        if report is None and given is not None:
            raise PolicyError(f"--{given.replace('_', '-')} is for a report, and none is written; add --report FILE")
        return internal_path(report) if self.internal and report is not None else report


class OutputFiles(NamedTuple):
    """Which files are written next to an output."""

    no_record: bool = NO_RECORD
    no_bound: bool = NO_BOUND


class SettingOptions(NamedTuple):
    """Settings that a command takes.

    names      of the settings;  models: also all privacy models, except those that the command has as its own option
    needed     settings that are required
    otherwise  setting -> help text, if another than the setting's own
    table      entries by name, if they are not settings of a policy
    """

    names: tuple[str, ...]
    models: bool
    needed: tuple[str, ...]
    otherwise: Mapping[str, str]
    table: Mapping[str, Setting] | None = None


ROLES = ("quasi_identifiers", "sensitive", "person", "household", "population", "population_weights")
PUBLISHED = tuple(name for name, entry in SETTINGS.items() if entry.option and entry.stated != "never")


def asks(names: Sequence[str], *, models: bool = False, needed: Sequence[str] = (), **otherwise: str) -> Any:
    """Declares a parameter for settings: the command gets a mapping of those that are given."""
    return SettingOptions(tuple(names), models, tuple(needed), otherwise)


def conditions(table: Mapping[str, Condition], *needed: str) -> Any:
    """Declares a parameter for the conditions of a problem that is not about whole tables; ``needed`` are required."""
    return SettingOptions(tuple(table), False, needed, {}, {name: entry.setting for name, entry in table.items()})


def keywords(table: Mapping[str, Condition], options: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions that name no column, as keyword arguments of the function that solves the problem."""
    return {table[name].keyword: value for name, value in options.items() if not table[name].names_columns}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option for each field of its tuples and for each of its settings."""
    hints = get_type_hints(command)
    parameters = inspect.signature(command).parameters.values()
    settings = {p.name: p.default for p in parameters if isinstance(p.default, SettingOptions)}
    tuples = {p.name: hints[p.name] for p in parameters if hasattr(hints[p.name], "_fields")}
    fields = {name: _fields(kind) for name, kind in tuples.items()}
    own = {p.name for p in parameters} | {f.name for group in fields.values() for f in group}
    entries = {name: _entries(asked, own) for name, asked in settings.items()}
    plain: list[inspect.Parameter] = []
    for p in parameters:
        if p.name in settings:
            plain += [_parameter(entry, settings[p.name]) for entry in entries[p.name]]
        elif p.name in fields:
            plain += fields[p.name]
        else:
            plain.append(p.replace(annotation=hints[p.name]))
    signature = inspect.Signature(plain)

    @functools.wraps(command)
    def run(*values: Any, **named: Any) -> None:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        given = bound.arguments
        for name, group in entries.items():
            typed = {entry.name: value_of(entry, given.pop(entry.name)) for entry in group}
            given[name] = {what: value for what, value in typed.items() if value is not None}
        for name, kind in tuples.items():
            given[name] = kind(**{field: given.pop(field) for field in kind._fields})
        command(**given)

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in plain}
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    """The fields of a tuple as parameters."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=kind._field_defaults[name], annotation=annotation
        )
        for name, annotation in get_type_hints(kind).items()
    ]


def _entries(asked: SettingOptions, own: Collection[str]) -> list[Setting]:
    """Entries of the settings that a command takes. Privacy models come before the rule book option, or else at the
    end."""
    names = [*asked.names]
    if asked.models:
        place = names.index("preset") if "preset" in names else len(names)
        names[place:place] = [name for name in SHORTHANDS if name not in own]
    find = entry_of if asked.table is None else asked.table.get
    return [entry for name in names if (entry := find(name)) is not None]


# other kinds: one text
TYPED = {"mapping": list[str], "whole": int | None, "number": float | None, "file": Path | None}


def _parameter(entry: Setting, asked: SettingOptions) -> inspect.Parameter:
    """A setting as a parameter of a command."""
    switch = entry.kind == "switch" or entry.meant is not True
    default: Any = [] if entry.kind == "mapping" else False if switch else None
    given = ... if entry.name in asked.needed else default
    words = asked.otherwise.get(entry.name, entry.help)
    option = typer.Option(given, entry.option, help=words, rich_help_panel=entry.section)
    annotation: Any = bool if switch else TYPED.get(entry.kind, str | None)
    return inspect.Parameter(entry.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=option, annotation=annotation)


def value_of(entry: Setting, given: Any) -> Any:
    """A typed value as a policy takes it; None if there is none."""
    from shoal.cli.common import listed, pairs

    if given is None or given is False or given == []:
        return None
    if given is True:
        return entry.meant
    if entry.kind == "names":
        return listed(given)
    if entry.kind == "ways":
        return pairs(given.split(","), entry.option, str) if "=" in given else given
    if entry.kind == "mapping":
        return pairs(given, entry.option, _kind(entry))
    if entry.kind == "numbers":
        return _numbers(entry, given)
    if entry.kind == "levels":
        return _each_level(entry, given)
    return given


def _kind(entry: Setting) -> Any:
    """The function that reads a mapping's values."""
    if set(entry.values) == {float, str}:
        return _number_or_word
    if set(entry.values) == {int, tuple}:
        return levels
    return next((kind for kind in entry.values if kind in (int, float)), str)


def levels(text: str) -> int | tuple[int, ...]:
    """A whole number, or one for each level."""
    return tuple(int(part) for part in text.split(",")) if "," in text else int(text)


def _each_level(entry: Setting, given: str) -> int | tuple[int, ...]:
    try:
        return levels(given)
    except ValueError:
        problem = "is no whole number; with --levels give one for each: 100,20"
        raise PolicyError(f"{entry.option} {given!r} {problem}") from None


def _number_or_word(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _numbers(entry: Setting, given: str) -> tuple[Any, ...]:
    """Several numbers from text with commas."""
    parts = given.split(",")
    try:
        if len(parts) != len(entry.values):
            raise ValueError
        return tuple(kind(part) for kind, part in zip(entry.values, parts, strict=True))
    except ValueError:
        kinds = ", then ".join({int: "a whole number", float: "a number"}[kind] for kind in entry.values)
        raise PolicyError(f"{entry.option} {given!r}: give two numbers separated by a comma, {kinds}") from None
