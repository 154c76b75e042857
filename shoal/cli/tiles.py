"""``shoal tiles``: points cut into rectangles with at least k records each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.app import app

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from shoal.problems.tiles import Tiles


@app.command()
def tiles(
    points: Path = typer.Argument(..., help="Table with a row per point: CSV (also .gz), Parquet or Excel."),
    x: str = typer.Option(..., "--x", help="Column of x, or longitude."),
    y: str = typer.Option(..., "--y", help="Column of y, or latitude."),
    k: int = typer.Option(..., "--k", help="Least records of a tile."),
    weight: str | None = typer.Option(None, "--weight", help="Column with the records at each point, one by default."),
    method: str = typer.Option(
        "auto", "--method", help="auto, kd_tree, least_waste, proportional, best_cuts or mondrian."
    ),
    objective: str = typer.Option(
        "tiles", "--objective", help="tiles: as many as can be; max: the largest as small as can be; or perimeter."
    ),
    coordinates: str = typer.Option(
        "auto", "--coordinates", help="geographic (degrees), projected, or auto: by the columns' names."
    ),
    drop_codes: bool = typer.Option(
        False, "--drop-codes", help="Leave out rows whose coordinates are codes: 0 and 0, 77.7777, 999.9999."
    ),
    rule: str = typer.Option("widest", "--rule", help="Cut rule of kd_tree: widest, median or least_waste."),
    effort: str = typer.Option("balanced", "--effort", help="fast, balanced, thorough or seconds."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Crosswalk: a row per place, with its tile."),
    tiles_to: Path | None = typer.Option(
        None, "--tiles", help="A row per tile: bounds, records, center; polygons where it ends in .geojson."
    ),
    table: Path | None = typer.Option(
        None, "--table", help="The table with tiles in place of its coordinates, rows shuffled."
    ),
    keep_order: bool = typer.Option(False, "--keep-order", help="Leave the rows of --table in order."),
    seed: int | None = typer.Option(
        None, "--seed", help="Taken as everywhere; cutting draws nothing, rows never by it."
    ),
    secret: Path | None = typer.Option(
        None, "--secret", help="File of 16 bytes or more that fixes the row order of --table; fresh by default."
    ),
    map_to: Path | None = typer.Option(None, "--map", help="Map of the tiles: .png, .svg, .pdf or .html."),
    certificate: Path | None = typer.Option(
        None, "--certificate", help="Its certificate; beside the crosswalk by default."
    ),
    separator: str | None = typer.Option(None, "--separator", help="Column separator of a CSV, told by default."),
    encoding: str | None = typer.Option(None, "--encoding", help="Of a CSV: utf-8 (default) or latin-1."),
    force: bool = typer.Option(False, "--force", help="Replace outputs that exist."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on standard output."),
) -> None:
    """Cut points on a map into rectangles, so that each record shares its tile with at least k - 1 others."""
    import time

    import numpy as np

    from shoal.cli.common import answer, beside, effort_of, put, seconds, working
    from shoal.engines.files import integers, numbers, read_table
    from shoal.engines.order import shuffled
    from shoal.engines.targets import JSON, MAP, TABLE, TILES, check_outputs
    from shoal.problems.tiles import kind_of, split
    from shoal.publishing.answers import release

    begun = time.perf_counter()
    if coordinates == "auto":
        coordinates = kind_of(x, y)
    outputs = [(output, TABLE), (tiles_to, TILES), (table, TABLE), (map_to, MAP), (beside(output, certificate), JSON)]
    closed = check_outputs(outputs, [points, secret], overwrite=force)
    frame = read_table(points, separator=separator, encoding=encoding)
    places = np.stack([numbers(frame, x), numbers(frame, y)], axis=1)
    coded = _codes(places, coordinates == "geographic", drop_codes)
    frame, places = frame.filter(~coded), places[~coded]
    weights = None if weight is None else np.array(integers(frame, weight))
    read = time.perf_counter()
    with working(f"cutting {len(places):,} points"):
        found = split(
            places,
            k,
            weights,
            method,
            objective=objective,
            coordinates=coordinates,
            effort=effort_of(effort),
            rule=rule,
        )
    solved = time.perf_counter()
    facts = found.certificate.details
    made = release(found, frame, read=(points, secret), x=x, y=y, weight=weight, codes_left_out=int(coded.sum()))
    wrote = put(made, output, certificate)
    order = None if keep_order else shuffled(found.labels, secret)
    _write(found, frame, (x, y), (tiles_to, table), order, closed)
    if map_to is not None:
        made.map(map_to)
    written = [str(p) for p in (output, tiles_to, table, map_to, wrote["certificate_file"]) if p is not None]
    payload: dict[str, Any] = {
        "points": len(places),
        "codes_left_out": int(coded.sum()),
        "records": int(found.counts.sum()),
        "tiles": len(found),
        "tiles_at_most": facts["tiles_at_most"],
        "smallest": int(found.counts.min()),
        "largest": found.cost,
        "half_perimeter": facts["half_perimeter"],
        "cost": found.cost,
        "certificate": found.certificate.as_dict(),
        "method": found.method,
        "objective": objective,
        "coordinates": coordinates,
        "seconds": seconds(begun, read, solved),
        **wrote,
    }
    unit = " km" if coordinates == "geographic" else ""
    lines = [
        f"{made.title} ({found.method}, coordinates {coordinates})",
        made.note,
        *([f"{int(coded.sum()):,} rows with codes for coordinates left out"] if coded.any() else []),
        *_hint(places, coordinates),
        f"A record's tile spans {facts['half_perimeter']:.4g}{unit} in width plus height, on average.",
        *(f"wrote {name}" for name in written),
    ]
    answer(payload, lines, as_json)


def _codes(places: Any, geographic: bool, drop: bool) -> Any:
    """Rows whose coordinates are codes and no place, bool[n]; refused unless they are to be left out."""
    from shoal.errors import InputError
    from shoal.model.coordinates import codes

    found = codes(places, geographic)
    if found.any() and not drop:
        raise InputError(
            f"{int(found.sum()):,} of {len(places):,} rows have codes for coordinates (0 and 0, or repeated digits "
            "such as 77.7777 and 999.9999), which are no place; repair them, or leave these rows out with --drop-codes"
        )
    return found


def _hint(places: Any, coordinates: str) -> list[str]:
    """Numbers that may be degrees though the columns' names do not say so."""
    from shoal.model.coordinates import in_degrees

    if coordinates == "geographic" or not in_degrees(places):
        return []
    return ["All coordinates may be degrees; if they are, say --coordinates geographic, so that sizes come in km."]


def _write(
    found: Tiles,
    frame: pl.DataFrame,
    names: tuple[str, str],
    paths: tuple[Path | None, Path | None],
    order: np.ndarray | None,
    closed: int,
) -> None:
    """The tiles and the table, each where asked for."""
    import polars as pl

    from shoal.engines.atomic import publish_text
    from shoal.engines.store import write_table
    from shoal.publishing.tiled import tile_frame

    per_tile, table = paths
    own = tile_frame(found, names)
    labels = pl.Series("tile", found.labels)
    if per_tile is not None:
        if per_tile.suffix.lower() in (".geojson", ".json"):
            from shoal.report.tile_geojson import geojson

            publish_text(per_tile, geojson(found.bounds, own.to_dicts(), found.coordinates), closed=closed)
        else:
            write_table(own, per_tile, closed=closed)
    if table is not None:
        kept = _replaced(frame, own, labels, names)
        write_table(kept if order is None else kept[order], table, closed=closed)


def _replaced(frame: pl.DataFrame, own: pl.DataFrame, labels: pl.Series, names: tuple[str, str]) -> pl.DataFrame:
    """The table without its coordinates, with its tile's number, bounds and center in their place."""
    import polars as pl

    from shoal.errors import InputError

    added = [c for c in own.columns if c != "records"]
    taken = sorted(set(added) & (set(frame.columns) - set(names)))
    if taken:
        raise InputError(f"the table already has a column {taken[0]!r}, which --table would add; rename it")
    at = min(frame.columns.index(n) for n in names)
    recoded = pl.DataFrame([labels]).join(own.select(added), on="tile", how="left", maintain_order="left")
    left = [c for c in frame.columns[:at] if c not in names]
    right = [c for c in frame.columns[at:] if c not in names]
    return pl.concat([frame.select(left), recoded, frame.select(right)], how="horizontal")
