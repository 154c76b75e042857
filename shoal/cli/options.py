"""Options that several commands share, one text each; those that go together stand in one tuple.

A command takes such a tuple as one argument, and ``with_options`` gives it an option for each field.

The options of a command that its arguments stand for: fields of tuples that commands share, and a flag for every
privacy model to which the registry gives a shorthand."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import typer

from shoal.model.shorthands import SHORTHANDS
from shoal.problems.catalogue import names

if TYPE_CHECKING:
    from shoal.engines.source import Scope


Column = str | None
File = Path | None
METHODS = ", ".join(names("tables"))
TABLES = typer.Argument(help="CSV (also .gz), Parquet or Excel file; folder, several parts, DuckDB or SQLite file.")


def flag(default: Any, *words: str) -> Any:
    """An option: what it is when not given (... where it must be), its flags, what it says."""
    return typer.Option(default, *words[:-1], help=words[-1])


HIERARCHIES = flag(
    [], "--hierarchy",
    "column=file.csv; or built: column=intervals:5,10, prefixes:4,3, dates:month,year, stars; or by its counts: "
    "column=labels, column=intervals. Repeatable.",
)  # fmt: skip
AVERAGE = flag(None, "--max-average-risk", "Highest mean over the rows of 1 / (size of its group).")
NO_BOUND = flag(False, "--no-bound", "Leave the proved ratio out: the certificate then tells nothing of the original.")
NO_RECORD = flag(False, "--no-record", "Do not write a private record next to the certificate.")
FORCE = flag(False, "--force", "Replace outputs that exist.")
JSON_ = flag(False, "--json", "One JSON object on standard output.")
EXPLORED = flag(
    None, "--explored", "JSON that explore writes next to its page: the cost of other requests, for the report."
)
EFFORT = flag("balanced", "--effort", "fast, balanced, thorough or seconds.")
RECIPIENT = flag("", "--recipient", "Who gets the release, for the report.")
PURPOSE = flag("", "--purpose", "What it is for, for the report.")
DECIDED_BY = flag("", "--decided-by", "Who decided, for the report.")
REPORT = flag(None, "--report", "A page for a review board that opens offline: .html.")


class Roles(NamedTuple):
    """What the columns are, and whom the rows stand for."""

    quasi: str | None = flag(None, "--quasi", "Quasi-identifiers: columns others may know, separated by commas.")
    sensitive: str | None = flag(None, "--sensitive", "Sensitive columns, separated by commas.")
    person: str | None = flag(
        None, "--person", "Column that names who a row is about: all models count persons; it is left out."
    )
    household: str | None = flag(None, "--household", "The same for households.")
    population: Path | None = flag(None, "--population", "Table the rows were drawn from, for --k-map and --presence.")
    population_weights: str | None = flag(
        None, "--population-weights", "Column: how many people a row of a sample represents."
    )

    def settings(self) -> dict[str, Any]:
        """The same as settings of a policy."""
        from shoal.cli.common import listed

        given = self._asdict()
        return {"quasi_identifiers": listed(given.pop("quasi")), **given, "sensitive": listed(self.sensitive)}


class Source(NamedTuple):
    """Where a table is read, and how."""

    engine: str | None = flag(None, "--engine", "polars (default of one file), duckdb (of folders and parts) or spark.")
    memory: str | None = flag(None, "--memory", "Memory of the work with DuckDB before it spills to disk, such as 2GB.")
    threads: int | None = flag(None, "--threads", "Threads of DuckDB.")
    temporary: Path | None = flag(None, "--temporary", "Folder that DuckDB spills into.")
    glob: bool = flag(False, "--glob", "TABLE is a pattern: *, ?, [...] and ** match many files.")
    table: str | None = flag(None, "--table", "Table of a DuckDB or SQLite file, or of a server.")
    query: str | None = flag(
        None, "--query", "SELECT over a DuckDB or SQLite file or a server; over other files FROM data."
    )
    master: str | None = flag(None, "--master", "Where Spark runs, such as local[2].")
    separator: str | None = flag(None, "--separator", "Field separator of a CSV; found out when not given.")
    encoding: str | None = flag(None, "--encoding", "utf-8 (default) or latin-1.")

    def scope(self) -> Scope:
        """What of it says which rows are meant and what reading them may take."""
        from shoal.engines.source import Scope

        return Scope.among(self._asdict())[0]


class Order(NamedTuple):
    """In what order rows are written."""

    keep_order: bool = flag(False, "--keep-order", "Leave the rows in order.")
    secret: Path | None = flag(None, "--secret", "File of 16 bytes or more that fixes the row order.")


class Text(NamedTuple):
    """How a CSV is read."""

    separator: str | None = flag(None, "--separator", "Column separator of a CSV; detected by default.")
    encoding: str | None = flag(None, "--encoding", "Of a CSV: utf-8 (default) or latin-1.")


class Decision(NamedTuple):
    """Whom a report is for, and who answers for it."""

    internal: bool = flag(
        False, "--internal", "Make the report internal: with figures of the original, never to be published."
    )
    recipient: str = RECIPIENT
    purpose: str = PURPOSE
    decided_by: str = DECIDED_BY

    def page(self, report: File) -> File:
        """Where the report goes: the name of an internal one says that it is."""
        from shoal.engines.atomic import internal_path

        return internal_path(report) if self.internal and report is not None else report


class OutputFiles(NamedTuple):
    """What lies beside an output."""

    no_record: bool = NO_RECORD
    no_bound: bool = NO_BOUND


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with one option for each field of the tuples it takes and, where it takes ``**models``, one for each
    shorthand that it lacks; it receives tuples, and the models given ready for a Policy."""
    hints = get_type_hints(command, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    tuples = {p.name: hints[p.name] for p in parameters if hasattr(hints[p.name], "_fields")}
    plain: list[inspect.Parameter] = []
    for p in parameters:
        if p.name in tuples:
            plain += _fields(tuples[p.name])
        elif p.kind is not inspect.Parameter.VAR_KEYWORD:
            plain.append(p.replace(annotation=hints[p.name]))
    place = next((i for i, p in enumerate(plain) if p.name in ("preset", "threshold")), len(plain))
    own = {p.name for p in plain}
    takes = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    names = [name for name in SHORTHANDS if takes and name not in own]
    added = [_parameter(name) for name in names]

    signature = inspect.Signature([*plain[:place], *added, *plain[place:]])

    @functools.wraps(command)
    def run(*values: Any, **named: Any) -> None:
        bound = signature.bind(*values, **named)
        bound.apply_defaults()
        given = bound.arguments
        models = {name: _read(name, given.pop(name)) for name in names}
        for name, kind in tuples.items():
            given[name] = kind(**{field: given.pop(field) for field in kind._fields})
        command(**given, **{name: value for name, value in models.items() if value is not None})

    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in [*plain, *added]}
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    """The fields of a tuple as arguments."""
    return [
        inspect.Parameter(
            name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=kind._field_defaults[name], annotation=annotation
        )
        for name, annotation in get_type_hints(kind, include_extras=True).items()
    ]


def _parameter(name: str) -> inspect.Parameter:
    shorthand = SHORTHANDS[name]
    kind = shorthand.kinds[0] if len(shorthand.kinds) == 1 else str
    option = typer.Option(None, f"--{name.replace('_', '-')}", help=shorthand.help)
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=option, annotation=kind | None)


def _read(name: str, given: Any) -> Any:
    """The value of a flag: a number, or several from text with commas."""
    from shoal.errors import PolicyError

    kinds = SHORTHANDS[name].kinds
    if given is None or len(kinds) == 1:
        return given
    parts = given.split(",")
    try:
        if len(parts) != len(kinds):
            raise ValueError
        return tuple(kind(part) for kind, part in zip(kinds, parts, strict=True))
    except ValueError:
        flag = f"--{name.replace('_', '-')}"
        said = ", then ".join({int: "a whole number", float: "a number"}[kind] for kind in kinds)
        raise PolicyError(f"{flag} {given!r}: give two numbers separated by a comma, {said}") from None
