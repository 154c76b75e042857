"""``shoal compare``: releases of one table side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, listed, pairs, present, working
from shoal.cli.options import JSON_, flag


@app.command()
def compare(
    table: Path = typer.Argument(help="The original: CSV (also .gz), Parquet or Excel file."),
    releases: list[Path] = typer.Argument(help="Releases of it, of shoal, ARX, sdcMicro, anonypy or others."),
    quasi: str = flag(..., "--quasi", "Quasi-identifiers, separated by commas."),
    sensitive: str | None = flag(None, "--sensitive", "Sensitive columns, separated by commas."),
    hierarchy: list[str] = flag([], "--hierarchy", "column=file.csv, to read its labels; repeatable."),
    target: str | None = flag(None, "--target", "Column that a classifier learns (first sensitive one)."),
    held_out: Path | None = flag(None, "--held-out", "Rows no release was made from, to judge it on."),
    population: Path | None = flag(None, "--population", "Table the original was drawn from."),
    separator: str | None = flag(None, "--separator", "Field separator of every CSV."),
    output: Path | None = flag(None, "-o", "--output", "An HTML page with the same figures."),
    force: bool = flag(False, "--force", "Replace an output that exists."),
    seed: int = flag(0, "--seed", "Of the random queries."),
    as_json: bool = JSON_,
) -> None:
    """Hold releases against their original: privacy under three readings, loss, and what can be computed from them."""
    from shoal.engines.targets import PAGE, check_outputs
    from shoal.utility.compare import compare as held

    check_outputs([(output, PAGE)], [table, *releases, held_out, population], overwrite=force)
    present(table, *releases, *(p for p in (held_out, population) if p), folders=True)
    names = [path.name for path in releases]
    if len(set(names)) < len(names):
        names = [str(path) for path in releases]
    with working("comparing"):
        found = held(
            table, dict(zip(names, releases, strict=True)), quasi_identifiers=listed(quasi) or [],
            sensitive=listed(sensitive) or [], hierarchies=pairs(hierarchy, "--hierarchy") or None, target=target,
            held_out=held_out, population=population, separator=separator, seed=seed,
        )  # fmt: skip
    if output is not None:
        found.report(output)
    page = {} if output is None else {"output": str(output)}
    answer(found.as_dict() | page, [*_lines(found), *(f"page  {name}" for name in page.values())], as_json)


def _lines(found: Any) -> list[str]:
    from shoal.model.cards import number

    table = found.table
    width = max(len(name) for name in table.columns)
    lines = [
        f"{column:<{width}}  " + "  ".join(f"{number(v):>16}" for v in table[column].to_list())
        for column in table.columns
        if table[column].null_count() < table.height
    ]
    return [*lines, *(f"note: {note}" for note in found.notes)]
