"""Options that several commands share, one text each; those that go together stand in one tuple.

A command takes such a tuple as one argument, and ``with_options`` gives it an option for each field.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from shoal.problems.catalogue import CATALOGUE

HIERARCHIES = typer.Option(
    [],
    "--hierarchy",
    help="column=file.csv; or built: column=intervals:5,10, prefixes:4,3, dates:month,year, stars; or by its counts: "
    "column=labels, column=intervals. Repeatable.",
)
METHODS = ", ".join(CATALOGUE["tables"])
AVERAGE = typer.Option(None, "--max-average-risk", help="Highest mean over the rows of 1 / (size of its group).")
JSON_ = typer.Option(False, "--json", help="Print one JSON object and nothing else.")
FORCE = typer.Option(False, "--force", help="Replace outputs that exist.")
EXPLORED = typer.Option(
    None, "--explored", help="JSON that explore writes beside its page: what else would cost how much, for the report."
)
TABLES = typer.Argument(help="CSV (also .gz), Parquet or Excel file; folder, several parts, DuckDB or SQLite file.")


def _option(flag: str, words: str) -> Any:
    return typer.Option(flag, help=words)


class Roles(NamedTuple):
    """What the columns are, and whom the rows stand for."""

    quasi: Annotated[
        str | None, _option("--quasi", "Quasi-identifiers: columns others may know, separated by commas.")
    ] = None
    sensitive: Annotated[str | None, _option("--sensitive", "Sensitive columns, separated by commas.")] = None
    person: Annotated[
        str | None, _option("--person", "Column that names who a row is about: k counts persons; it is left out.")
    ] = None
    household: Annotated[str | None, _option("--household", "The same for households.")] = None
    population: Annotated[
        Path | None, _option("--population", "Table the rows were drawn from, for --k-map and --presence.")
    ] = None
    population_weights: Annotated[
        str | None, _option("--population-weights", "Column: how many people a row of a sample stands for.")
    ] = None

    def settings(self) -> dict[str, Any]:
        """The same as settings of a policy."""
        from shoal.cli.common import listed

        given = self._asdict()
        return {"quasi_identifiers": listed(given.pop("quasi")), **given, "sensitive": listed(self.sensitive)}


class Source(NamedTuple):
    """Where a table is read, and how."""

    engine: Annotated[
        str | None, _option("--engine", "polars (default of one file), duckdb (of folders and parts) or spark.")
    ] = None
    memory: Annotated[
        str | None, _option("--memory", "Most memory of DuckDB before it spills to disk, such as 2GB.")
    ] = None
    threads: Annotated[int | None, _option("--threads", "Threads of DuckDB.")] = None
    temporary: Annotated[Path | None, _option("--temporary", "Folder that DuckDB spills into.")] = None
    glob: Annotated[bool, _option("--glob", "TABLE is a pattern: *, ?, [...] and ** stand for many files.")] = False
    table: Annotated[str | None, _option("--table", "Table of a DuckDB or SQLite file.")] = None
    query: Annotated[
        str | None, _option("--query", "SELECT over a DuckDB or SQLite file; over other files FROM data.")
    ] = None
    master: Annotated[str | None, _option("--master", "Where Spark runs, such as local[2].")] = None
    separator: Annotated[str | None, _option("--separator", "Field separator of a CSV; found out when not given.")] = (
        None
    )
    encoding: Annotated[str | None, _option("--encoding", "utf-8 (default) or latin-1.")] = None


class Text(NamedTuple):
    """How a CSV is read."""

    separator: Annotated[str | None, _option("--separator", "Column separator of a CSV, told by default.")] = None
    encoding: Annotated[str | None, _option("--encoding", "Of a CSV: utf-8 (default) or latin-1.")] = None
