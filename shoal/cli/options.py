"""Options that several commands share, one text each; those that go together stand in one tuple.

A command takes such a tuple as one argument, and ``with_options`` gives it an option for each field.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from shoal.problems.catalogue import CATALOGUE

if TYPE_CHECKING:
    from shoal.engines.scope import Scope

METHODS = ", ".join(CATALOGUE["tables"])
AVERAGE = typer.Option(None, "--max-average-risk", help="Highest mean over the rows of 1 / (size of its class).")
TABLES = typer.Argument(help="CSV (also .gz), Parquet or Excel file; folder, several parts, DuckDB or SQLite file.")


def flag(*words: str) -> Any:
    """An option: its flags, then what it says."""
    return typer.Option(*words[:-1], help=words[-1])


Hierarchies = Annotated[
    list[str] | None,
    flag(
        "--hierarchy",
        "column=file.csv; or built: column=intervals:5,10, prefixes:4,3, dates:month,year, stars; or by its counts: "
        "column=labels, column=intervals. Repeatable.",
    ),
]
Force = Annotated[bool, flag("--force", "Replace outputs that exist.")]
AsJson = Annotated[bool, flag("--json", "One JSON object on standard output.")]
Effort = Annotated[str, flag("--effort", "fast, balanced, thorough or seconds.")]


class Roles(NamedTuple):
    """What the columns are, and whom the rows stand for."""

    quasi: Annotated[
        str | None, flag("--quasi", "Quasi-identifiers: columns others may know, separated by commas.")
    ] = None
    sensitive: Annotated[str | None, flag("--sensitive", "Sensitive columns, separated by commas.")] = None
    person: Annotated[
        str | None, flag("--person", "Column that names who a row is about: k counts persons; it is left out.")
    ] = None
    household: Annotated[str | None, flag("--household", "The same for households.")] = None
    population: Annotated[
        Path | None, flag("--population", "Table the rows were drawn from, for --k-map and --presence.")
    ] = None
    population_weights: Annotated[
        str | None, flag("--population-weights", "Column: how many people a row of a sample stands for.")
    ] = None

    def settings(self) -> dict[str, Any]:
        """The same as settings of a policy."""
        from shoal.cli.common import listed

        given = self._asdict()
        return {"quasi_identifiers": listed(given.pop("quasi")), **given, "sensitive": listed(self.sensitive)}


class Source(NamedTuple):
    """Where a table is read, and how."""

    engine: Annotated[
        str | None, flag("--engine", "polars (default of one file), duckdb (of folders and parts) or spark.")
    ] = None
    memory: Annotated[str | None, flag("--memory", "Most memory of DuckDB before it spills to disk, such as 2GB.")] = (
        None
    )
    threads: Annotated[int | None, flag("--threads", "Threads of DuckDB.")] = None
    temporary: Annotated[Path | None, flag("--temporary", "Folder that DuckDB spills into.")] = None
    glob: Annotated[bool, flag("--glob", "TABLE is a pattern: *, ?, [...] and ** stand for many files.")] = False
    table: Annotated[str | None, flag("--table", "Table of a DuckDB or SQLite file.")] = None
    query: Annotated[
        str | None, flag("--query", "SELECT over a DuckDB or SQLite file; over other files FROM data.")
    ] = None
    master: Annotated[str | None, flag("--master", "Where Spark runs, such as local[2].")] = None
    separator: Annotated[str | None, flag("--separator", "Field separator of a CSV; found out when not given.")] = None
    encoding: Annotated[str | None, flag("--encoding", "utf-8 (default) or latin-1.")] = None

    def scope(self) -> Scope:
        """What of it says which rows are meant and what reading them may take."""
        from shoal.engines.scope import Scope

        return Scope(self.memory, self.threads, self.temporary, self.glob, self.table, self.query, self.master)


class Text(NamedTuple):
    """How a CSV is read."""

    separator: Annotated[str | None, flag("--separator", "Column separator of a CSV, told by default.")] = None
    encoding: Annotated[str | None, flag("--encoding", "Of a CSV: utf-8 (default) or latin-1.")] = None
