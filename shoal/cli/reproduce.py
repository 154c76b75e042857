"""``shoal reproduce NAME``: a paper's figure or table, computed again, as CSV and PNG."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, working

# name -> "module:function"; the function takes the folder to write into and the folder of data (or None), writes its
# files and returns {"files": [...], "observations": [...], ...}; its docstring's first line is the description.
EXPERIMENTS = {
    "names": "shoal.experiments.names:reproduce",
    "l-diversity": "shoal.experiments.l_diversity:reproduce",
}


@app.command()
def reproduce(
    name: str = typer.Argument(None, help=f"One of: {', '.join(EXPERIMENTS)}."),
    output: Path = typer.Option(Path("reproduced"), "-o", "--output", help="Folder for CSV and PNG, made if missing."),
    data: Path | None = typer.Option(None, "--data", help="Folder with the data, where the experiment needs one."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on standard output."),
) -> None:
    """Rerun a paper's experiment."""
    from importlib import import_module

    from shoal.errors import PolicyError

    if name not in EXPERIMENTS:
        raise PolicyError.unknown("experiment", str(name), EXPERIMENTS)
    module, _, function = EXPERIMENTS[name].partition(":")
    begun = time.perf_counter()
    output.mkdir(parents=True, exist_ok=True)
    with working(f"reproducing {name}"):
        found = getattr(import_module(module), function)(output, data)
    payload = {"experiment": name, **found, "seconds": round(time.perf_counter() - begun, 3), "output": str(output)}
    lines = [*found.get("observations", []), *(f"wrote {path}" for path in found.get("files", []))]
    answer(payload, lines, as_json)
