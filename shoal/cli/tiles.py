"""``shoal tiles``: points cut into rectangles with at least k records each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.app import app

if TYPE_CHECKING:
    from shoal.problems.tiles import Tiles
    from shoal.publishing.crosswalk import Crosswalk


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
    boundary: str | None = typer.Option(None, "--boundary", help="Column, a state say: no tile mixes its values."),
    sensitive: str | None = typer.Option(None, "--sensitive", help="Column that every tile is diverse in; with --l."),
    least: float | None = typer.Option(None, "--l", help="At most 1/l of a tile's records share a sensitive value."),
    distinct_l: int | None = typer.Option(None, "--distinct-l", help="Least different sensitive values of a tile."),
    person: str | None = typer.Option(None, "--person", help="Column that names persons: k counts these."),
    household: str | None = typer.Option(None, "--household", help="Column that names households: k counts these."),
    max_width: float | None = typer.Option(
        None, "--max-width", help="Longest side of a tile: km for degrees, else units of the coordinates."
    ),
    grid: float | None = typer.Option(None, "--grid", help="Sides lie at multiples of this, in the coordinates' unit."),
    extent: str | None = typer.Option(
        None, "--extent", help="plane: tiles cover it, some without end; data: cut off at their points."
    ),
    center: str = typer.Option("mean", "--center", help="mean of a tile's points, or draw: a random place in it."),
    sparse: str = typer.Option("refuse", "--sparse", help="Records that fit no tile: refuse, or leave-out."),
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
        None, "--seed", help="Of --center draw; cutting draws nothing, and rows never by it."
    ),
    secret: Path | None = typer.Option(
        None, "--secret", help="File of 16 bytes or more that fixes the row order of --table; fresh by default."
    ),
    map_to: Path | None = typer.Option(None, "--map", help="Map of the tiles: .png, .svg, .pdf or .html."),
    report: Path | None = typer.Option(None, "--report", help="A page for a review board that opens offline: .html."),
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

    from shoal.cli.common import answer, effort_of, put, reported, seconds, working
    from shoal.engines.files import column, integers, numbers, read_table
    from shoal.engines.targets import JSON, MAP, PAGE, TABLE, TILES, check_outputs
    from shoal.problems.tiles import kind_of, split
    from shoal.publishing.answers import release

    begun = time.perf_counter()
    if coordinates == "auto":
        coordinates = kind_of(x, y)
    proof = _proof((output, table, tiles_to), certificate)
    outputs = [(output, TABLE), (tiles_to, TILES), (table, TABLE), (map_to, MAP), (proof, JSON), (report, PAGE)]
    check_outputs(outputs, [points, secret], overwrite=force)
    frame = read_table(points, separator=separator, encoding=encoding)
    places = np.stack([numbers(frame, x), numbers(frame, y)], axis=1)
    coded = _codes(places, coordinates == "geographic", drop_codes)
    frame, places = frame.filter(~coded), places[~coded]
    weights = None if weight is None else np.array(integers(frame, weight))
    columns = {"boundary": boundary, "sensitive": sensitive, "person": person, "household": household}
    read = time.perf_counter()
    with working(f"cutting {len(places):,} points"):
        found = split(
            places, k, weights, method, objective=objective, coordinates=coordinates, effort=effort_of(effort),
            rule=rule, l=least, distinct_l=distinct_l, max_width=max_width, grid=grid, extent=extent, center=center,
            sparse=sparse, seed=seed,
            **{name: None if given is None else column(frame, given).to_list() for name, given in columns.items()},
        )  # fmt: skip
    solved = time.perf_counter()
    made = release(
        found, frame, read=(points, secret), x=x, y=y, weight=weight, codes_left_out=int(coded.sum()), secret=secret,
        keep_order=keep_order, **columns,
    )  # fmt: skip
    also = {"table": table, _kind(tiles_to): tiles_to}
    named = {name: path for name, path in also.items() if path is not None}
    wrote = put(made, output, certificate, named, [(map_to, lambda: made.drawing("map"))])
    written = [str(p) for p in (output, tiles_to, table, map_to, report, wrote["certificate_file"]) if p is not None]
    payload = _facts(found, made) | {"points": len(places), "objective": objective, "coordinates": coordinates}
    payload |= {"seconds": seconds(begun, read, solved), **wrote, **reported(made, report)}
    unit = " km" if coordinates == "geographic" else ""
    lines = [
        f"{made.title} ({found.method}, coordinates {coordinates})",
        made.note,
        *([f"{int(coded.sum()):,} rows with codes for coordinates left out"] if coded.any() else []),
        *_hint(places, coordinates),
        f"A record's tile spans {payload['half_perimeter']:.4g}{unit} in width plus height, on average.",
        *(f"wrote {name}" for name in written),
    ]
    answer(payload, lines, as_json)


def _facts(found: Tiles, made: Crosswalk) -> dict[str, Any]:
    """The answer in figures."""
    details = found.certificate.details
    return {
        "codes_left_out": made.facts["codes_left_out"],
        "records": int(found.counts.sum()),
        "rows_left_out": made.facts["rows_left_out"],
        "tiles": len(found),
        "tiles_at_most": details["tiles_at_most"],
        "smallest": int(found.counts.min()),
        "largest": found.cost,
        "half_perimeter": details["half_perimeter"],
        "cost": found.cost,
        "certificate": found.certificate.as_dict(),
        "method": found.method,
        "asked": {n: v for n, v in made.parameters.items() if v is not None},
    }


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


def _proof(outputs: tuple[Path | None, ...], certificate: Path | None) -> Path | None:
    """Where the certificate goes: beside the first output unless it is named."""
    from shoal.cli.common import beside

    return beside(next((p for p in outputs if p is not None), None), certificate)


def _kind(path: Path | None) -> str:
    """Which companion a file of --tiles is."""
    return "outlines" if path is not None and path.suffix.lower() in (".geojson", ".json") else "tiles"
