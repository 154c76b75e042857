"""Areas, pairs of neighbors and outlines as a judge counts them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from shoal.engines.geography import Geography
from shoal.engines.vector import read_drawing
from shoal.judge.places.areas import CENTERS, NAMED
from shoal.judge.places.region_outlines import Outlined


def outlined(path: Path) -> Outlined:
    """Outlines of regions as they stand in a file; KML has its own word for a name."""
    found = read_drawing(path)
    return Outlined([{"region": held.get("Name"), **held} for held in found.properties], found.drawn)


def tables(
    given: Geography, names: Sequence[str], centers: Sequence[str | None] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Names, the columns named that there are as text, and the centers where they are known; then pairs.

    centers  columns that the centers were taken from: without them other centers would be compared
    """
    columns = [pl.Series(NAMED, given.ids, dtype=pl.String)]
    for name in dict.fromkeys(names):
        if name in given.columns:
            held = [None if v is None else str(v) for v in given.columns[name]]
            columns.append(pl.Series(name, held, dtype=pl.String))
    places = given.centers() if not {*centers} - {None, *given.columns} else None
    if places is not None:
        columns += [pl.Series(name, places[:, j]) for j, name in enumerate(CENTERS)]
    ids = pl.Series("u", given.ids, dtype=pl.String)
    return pl.DataFrame(columns), pl.DataFrame([ids[given.edges[:, 0]], ids[given.edges[:, 1]].alias("v")])
