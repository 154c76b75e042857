"""Options that several commands share, one text each."""

from __future__ import annotations

import typer

from shoal.problems.catalogue import CATALOGUE

QUASI = typer.Option(None, "--quasi", help="Quasi-identifiers: columns others may know, separated by commas.")
SENSITIVE = typer.Option(None, "--sensitive", help="Sensitive columns, separated by commas.")
PERSON = typer.Option(None, "--person", help="Column that names who a row is about: k counts persons; it is left out.")
HOUSEHOLD = typer.Option(None, "--household", help="The same for households.")
POPULATION = typer.Option(None, "--population", help="Table the rows were drawn from, for --k-map and --presence.")
WEIGHTS = typer.Option(None, "--population-weights", help="Column: how many people a row of a sample stands for.")
AVERAGE = typer.Option(None, "--max-average-risk", help="Highest mean over the rows of 1 / (size of its class).")
HIERARCHIES = typer.Option(
    [],
    "--hierarchy",
    help="column=file.csv; or built: column=intervals:5,10, prefixes:4,3, dates:month,year, stars; or by its counts: "
    "column=labels, column=intervals. Repeatable.",
)
METHODS = ", ".join(CATALOGUE["tables"])
JSON_ = typer.Option(False, "--json", help="Print one JSON object and nothing else.")
SEPARATOR = typer.Option(None, "--separator", help="Field separator of a CSV; found out when not given.")
ENCODING = typer.Option(None, "--encoding", help="utf-8 (default) or latin-1.")
FORCE = typer.Option(False, "--force", help="Replace outputs that exist.")
ENGINE = typer.Option(None, "--engine", help="polars (default of one file), duckdb (of folders and parts) or spark.")
MEMORY = typer.Option(None, "--memory", help="Most memory of DuckDB before it spills to disk, such as 2GB.")
THREADS = typer.Option(None, "--threads", help="Threads of DuckDB.")
TEMPORARY = typer.Option(None, "--temporary", help="Folder that DuckDB spills into.")
GLOB = typer.Option(False, "--glob", help="TABLE is a pattern: *, ?, [...] and ** stand for many files.")
TABLE_ = typer.Option(None, "--table", help="Table of a DuckDB or SQLite file.")
QUERY = typer.Option(None, "--query", help="SELECT over a DuckDB or SQLite file; over other files FROM data.")
MASTER = typer.Option(None, "--master", help="Where Spark runs, such as local[2].")
TABLES = typer.Argument(help="CSV (also .gz), Parquet or Excel file; folder, several parts, DuckDB or SQLite file.")
