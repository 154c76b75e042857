"""``shoal workbench``: the whole way from a table to a release in the browser, on this machine."""

from __future__ import annotations

from pathlib import Path

import typer

from shoal.cli.app import app
from shoal.cli.common import present
from shoal.cli.options import flag


@app.command()
def workbench(
    table: Path | None = typer.Argument(
        None, help="CSV (also .gz), Parquet or Excel file, a DuckDB or SQLite file, or the folder of a saved project."
    ),
    demo: bool = flag(False, "--demo", "Open the survey that shoal demo publishes; you need no file."),
    browser: bool = flag(True, "--browser/--no-browser", "Open the page in the browser."),
    port: int | None = flag(None, "--port", "Port on this machine; a free port by default."),
) -> None:
    """Open a page in the browser that leads from a table to a release. Nothing leaves this machine."""
    from shoal.errors import MissingDependencyError, PolicyError

    if demo and table is not None:
        raise PolicyError("--demo opens a table of its own; leave it out to open yours")
    if port is not None and not 0 < port < 65536:
        raise PolicyError(f"--port {port}: a number from 1 to 65535")
    if table is not None:
        present(table, folders=True)
    MissingDependencyError.unless("nicegui", "the workbench", "workbench")
    from shoal.workbench.server import serve

    serve(None if table is None else str(table.resolve()), demo=demo, browser=browser, port=port, say=_say)


def _say(address: str) -> None:
    typer.echo(f"shoal workbench: {address}\nonly this machine can open it; end it with Ctrl-C")
