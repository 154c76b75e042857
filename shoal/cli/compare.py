"""``shoal compare``: releases of one table side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, listed, pairs, present, working
from shoal.cli.models import with_options
from shoal.cli.options import FORCE, JSON_, flag


class Columns(NamedTuple):
    """What the columns are."""

    quasi: str = flag(..., "--quasi", "Quasi-identifiers, separated by commas.")
    sensitive: str | None = flag(None, "--sensitive", "Sensitive columns, separated by commas.")
    hierarchy: list[str] = flag([], "--hierarchy", "column=file.csv, to read its labels; repeatable.")

    def settings(self) -> dict[str, Any]:
        """The same as ``shoal.compare`` takes it."""
        trees = pairs(self.hierarchy, "--hierarchy") or None
        names = {"quasi_identifiers": self.quasi, "sensitive": self.sensitive}
        return {**{name: listed(given) or [] for name, given in names.items()}, "hierarchies": trees}


class Tried(NamedTuple):
    """What a release is tried with beside its original."""

    target: str | None = flag(None, "--target", "Column that a classifier learns (first sensitive one).")
    held_out: Path | None = flag(None, "--held-out", "Rows no release was made from, to judge it on.")
    population: Path | None = flag(None, "--population", "Table the original was drawn from.")
    seed: int = flag(0, "--seed", "Of the random queries.")


@app.command()
@with_options
def compare(
    table: Path = typer.Argument(help="The original: CSV (also .gz), Parquet or Excel file."),
    releases: list[Path] = typer.Argument(help="Releases of it, of shoal, ARX, sdcMicro, anonypy or others."),
    columns: Columns = Columns(),
    tried: Tried = Tried(),
    separator: str | None = flag(None, "--separator", "Field separator of every CSV."),
    output: Path | None = flag(None, "-o", "--output", "An HTML page with the same figures."),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Hold releases against their original: privacy under three readings, loss, and what can be computed from them."""
    from shoal.engines.targets import PAGE, check_outputs
    from shoal.utility.compare import compare as held

    beside = [p for p in (tried.held_out, tried.population) if p]
    check_outputs([(output, PAGE)], [table, *releases, *beside], overwrite=force)
    present(table, *releases, *beside, folders=True)
    names = [path.name for path in releases]
    if len(set(names)) < len(names):
        names = [str(path) for path in releases]
    with working("comparing"):
        given = dict(zip(names, releases, strict=True))
        found = held(table, given, **columns.settings(), **tried._asdict(), separator=separator)
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
