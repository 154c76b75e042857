"""``shoal assign``: new records, the groups of a former answer."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.models import with_options
from shoal.cli.options import FORCE, JSON_, Order, Text, flag


class Columns(NamedTuple):
    """Where the new records have what the answer groups by."""

    column: str | None = flag(None, "--column", "Of the new areas, values or labels.")
    x: str | None = flag(None, "--x", "Column of x of new points; by default the answer's.")
    y: str | None = flag(None, "--y", "Column of y of new points; by default the answer's.")
    boundary: str | None = flag(None, "--boundary", "Of new points, where the tiles kept to one.")


@app.command()
@with_options
def assign(
    answer: Path = typer.Argument(..., help="Crosswalk of tiles, regions, labels or intervals, or its certificate."),
    new: Path = typer.Argument(..., help="New records: CSV (also .gz), Parquet or Excel."),
    certificate: Path | None = flag(None, "--certificate", "Of the crosswalk; next to it by default."),
    columns: Columns = Columns(),
    output: Path | None = flag(None, "-o", "--output", "The new records with their groups, shuffled."),
    order: Order = Order(),
    text: Text = Text(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Give new records the tile, region, interval or label of a former answer; say which are in none, or alone."""
    import shoal
    from shoal.cli.common import answer as said
    from shoal.engines.targets import TABLE, check_outputs

    check_outputs([(output, TABLE)], [answer, new, certificate, order.secret], overwrite=force)
    how = {**columns._asdict(), **order._asdict(), **text._asdict()}
    found = shoal.assign(answer, new, certificate=certificate, **how)
    if output is not None:
        found.write(output)
    wrote = [] if output is None else [f"wrote {output}"]
    said({**found.as_dict(), "output": None if output is None else str(output)}, [*found.sentences(), *wrote], as_json)
