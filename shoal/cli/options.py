"""Options that several commands share, one text each; those that go together stand in one tuple.

A command takes such a tuple as one argument, and ``with_options`` gives it an option for each field.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.problems.catalogue import names

if TYPE_CHECKING:
    from shoal.engines.scope import Scope

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
    memory: str | None = flag(None, "--memory", "Most memory of DuckDB before it spills to disk, such as 2GB.")
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
        from shoal.engines.scope import Scope

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
        from shoal.engines.targets import internal_path

        return internal_path(report) if self.internal and report is not None else report


class Beside(NamedTuple):
    """What lies beside an output."""

    no_record: bool = NO_RECORD
    no_bound: bool = NO_BOUND
