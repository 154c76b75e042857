"""``shoal reproduce NAME``: a paper's figure or table, computed again, as CSV and PNG."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, working
from shoal.cli.options import JSON_, flag

# name -> "module:function"; the function takes the folder to write into and the folder of data (or None), writes its
# files and returns {"files": [...], "observations": [...], ...}; its docstring's first line is the description, and its
# module's FILES are the names of what it writes.
EXPERIMENTS = {
    "names": "shoal.experiments.names:reproduce",
    "l-diversity": "shoal.experiments.l_diversity:reproduce",
}


@app.command()
def reproduce(
    name: str | None = typer.Argument(None, help=f"One of: {', '.join(EXPERIMENTS)}."),
    output: Path = flag(Path("reproduced"), "-o", "--output", "Folder for CSV and PNG; created if missing."),
    data: Path | None = flag(None, "--data", "Folder with the data, if the experiment needs one."),
    force: bool = flag(False, "--force", "Replace files of an earlier run."),
    as_json: bool = JSON_,
) -> None:
    """Rerun a paper's experiments. Two of the four papers report experiments."""
    import shutil
    from importlib import import_module
    from tempfile import TemporaryDirectory

    from shoal.engines.atomic import PICTURE, TABLE, Piece, check_outputs, publish_together
    from shoal.errors import InputError, PolicyError

    if name is None:
        raise PolicyError(f"no experiment is named; there is {' and '.join(EXPERIMENTS)}: shoal reproduce names")
    if name not in EXPERIMENTS:
        raise PolicyError.unknown("experiment", str(name), EXPERIMENTS)
    place, _, function = EXPERIMENTS[name].partition(":")
    module = import_module(place)
    begun = time.perf_counter()
    if output.exists() and not output.is_dir():
        raise InputError(f"{str(output)!r} is no folder; name one to write into")
    output.mkdir(parents=True, exist_ok=True)
    read = [] if data is None else [p for p in data.glob("*") if p.is_file()]
    wanted = [(output / file, PICTURE if file.endswith(".png") else TABLE) for file in module.FILES]
    closed = check_outputs(wanted, read, overwrite=force)
    with TemporaryDirectory() as folder, working(f"reproducing {name}"):
        found = getattr(module, function)(Path(folder), data)
        made = sorted(p for p in Path(folder).iterdir() if p.name in module.FILES)
        pieces = [Piece(output / p.name, lambda to, own=p: shutil.copyfile(own, to)) for p in made]  # type: ignore[misc]
        publish_together(pieces, closed=closed)
    found["files"] = [str(piece.path) for piece in pieces]
    payload = {"experiment": name, **found, "seconds": round(time.perf_counter() - begun, 3), "output": str(output)}
    lines = [*found.get("observations", []), *(f"wrote {path}" for path in found.get("files", []))]
    answer(payload, lines, as_json)
