"""``shoal tiles``: cut points into rectangles with at least k records each."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.options import (
    DECIMAL,
    EFFORT,
    FORCE,
    JSON_,
    REPORT,
    Column,
    Decision,
    File,
    OutputFiles,
    Text,
    conditions,
    flag,
    refuse_idle,
    secret_of,
    with_options,
)
from shoal.errors import InputError, PolicyError
from shoal.model.conditions import TILE_CONDITIONS
from shoal.paths import GEOJSON, MAP, PAGE, TABLE, TILES, ending, is_map

if TYPE_CHECKING:
    import polars as pl

    from shoal.problems.tiles import Tiles
    from shoal.publishing.crosswalks.crosswalk import Crosswalk


class PointColumns(NamedTuple):
    """Where the points are, and which rows are not points."""

    x: Column = flag(None, "--x", "Column of x, or longitude; for a map, its points by default.")
    y: Column = flag(None, "--y", "Column of y, or latitude; for a map, its points by default.")
    weight: Column = flag(None, "--weight", "Column with the records at each point, one by default.")
    coordinates: str = flag("auto", "--coordinates", "geographic (degrees), projected, or auto: by the columns' names.")
    decimal: list[str] = DECIMAL
    drop_codes: bool = flag(
        False, "--drop-codes", "Remove rows whose coordinates are codes: 0 and 0, 77.7777, 999.9999."
    )
    layer: Column = flag(None, "--layer", "Layer of a map that has several; sheet of an Excel file.")


class TileSearch(NamedTuple):
    """How the rectangles are cut."""

    method: str = flag("auto", "--method", "auto, kd_tree, least_waste, proportional, best_cuts or mondrian.")
    objective: str = flag(
        "tiles",
        "--objective",
        "tiles: as many as possible; max: the largest as small as possible; perimeter; or sumsq: as even as possible.",
    )
    rule: str = flag("widest", "--rule", "Cut rule of kd_tree: widest, median or least_waste.")


EXACT = (
    "{} has the exact places: if they are those of people, keep {} and publish what --table, --tiles, or --map writes"
)


class TileFiles(NamedTuple):
    """The files to write, and in what order."""

    output: File = flag(None, "-o", "--output", "Crosswalk: a row per place, with its tile.")
    tiles_to: File = flag(
        None, "--tiles", "Output file, a row for each tile: bounds, records, center; with .geojson, polygons."
    )
    table: File = flag(None, "--table", "Output file: the table with tiles instead of coordinates, rows shuffled.")
    map_to: File = flag(None, "--map", "Map of the tiles: .png, .svg, .pdf or .html.")
    report: File = REPORT
    certificate: File = flag(None, "--certificate", "Its certificate; next to the crosswalk by default.")
    identifiers: Column = flag(None, "--identifiers", "Columns to remove from --table, separated by commas.")
    insensitive: Column = flag(
        None, "--insensitive", "Columns of --table to publish unchanged, even if they single people out."
    )
    keep_order: bool = flag(False, "--keep-order", "Keep the order of the rows of --table.")
    secret: File = flag(
        None, "--secret", "File of at least 16 bytes that fixes the row order of --table; fresh by default."
    )

    def check(self, points: Path, force: bool, kept: OutputFiles) -> None:
        """Refuses harmful output paths before any work, and options of a table that isn't written."""
        from shoal.cli.unchanged import check_files

        refuse_idle(
            self.table, "--table", identifiers=self.identifiers, insensitive=self.insensitive,
            keep_order=self.keep_order, secret=self.secret,
        )  # fmt: skip
        wanted = [
            (self.output, TABLE), (self.tiles_to, TILES), (self.table, TABLE), (self.map_to, MAP), (self.report, PAGE),
        ]  # fmt: skip
        first = self.output or self.table or self.tiles_to
        check_files(wanted, first, self.certificate, [points, self.secret], kept, force)

    def look(self, frame: pl.DataFrame, known: set[str | None]) -> None:
        """Refuses, before any work, a table with columns that could identify people."""
        from shoal.cli.common import listed
        from shoal.publishing.crosswalks.grouped import refuse_unassigned

        if self.table is not None:
            refuse_unassigned(frame, known, listed(self.identifiers) or (), listed(self.insensitive) or ())

    def write(self, made: Crosswalk, kept: OutputFiles, decision: Decision) -> tuple[dict[str, Any], list[str]]:
        """Writes the requested files. Returns their paths, for the JSON object, and one line for each."""
        from shoal.cli.common import put, reported

        kind = "outlines" if self.tiles_to is not None and ending(self.tiles_to) in GEOJSON else "tiles"
        also = {name: p for name, p in (("table", self.table), (kind, self.tiles_to)) if p is not None}
        wrote = put(made, self.output, self.certificate, also, [(self.map_to, lambda: made.drawing("map"))], kept=kept)
        paths = (self.output, self.tiles_to, self.table, self.map_to, self.report, wrote["certificate_file"])
        return {**wrote, **reported(made, self.report, **decision._asdict())}, [
            f"wrote {p}" for p in paths if p is not None
        ]


@app.command()
@with_options
def tiles(
    points: Path = typer.Argument(
        ..., help="Table with a row per point: CSV (also .gz), Parquet, Excel, SPSS, Stata, SAS, or a map of points."
    ),
    where: PointColumns = PointColumns(),
    k: int = flag(..., "--k", "Minimum number of records in a tile."),
    kept: dict[str, Any] = conditions(TILE_CONDITIONS),
    search: TileSearch = TileSearch(),
    effort: str = EFFORT,
    files: TileFiles = TileFiles(),
    record: OutputFiles = OutputFiles(),
    decision: Decision = Decision(),
    text: Text = Text(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Cut points on a map into rectangles, so that each record shares its tile with at least k - 1 others."""
    import numpy as np

    from shoal.cli.common import answer, listed, seconds, working
    from shoal.engines.store import integers, numbers
    from shoal.problems.tiles import split
    from shoal.publishing.crosswalks.answers import release
    from shoal.publishing.crosswalks.grouped import as_split

    begun = time.perf_counter()
    files = files._replace(report=decision.page(files.report))
    files.check(points, force, record)
    secret = secret_of(files.secret, files.keep_order)
    (frame, x, y, coordinates, marks), weight = _read(points, where, text), where.weight
    places = np.stack([numbers(frame, x, marks), numbers(frame, y, marks)], axis=1)
    columns = {name: column for name, column in kept.items() if TILE_CONDITIONS[name].read == "texts"}
    files.look(frame, {x, y, weight, *columns.values()})
    coded = _coded_rows(places, coordinates == "geographic", where.drop_codes)
    frame, places = frame.filter(~coded), places[~coded]
    weights = None if weight is None else np.array(integers(frame, weight))
    read = time.perf_counter()
    asked = {"coordinates": coordinates, "effort": effort, **search._asdict(), **as_split(kept, frame)}
    with working(f"cutting {len(places):,} points"):
        found = split(places, k, weights, **asked)
    solved = time.perf_counter()
    made = release(
        found, frame, read=(points, files.secret), x=x, y=y, weight=weight, codes_left_out=int(coded.sum()),
        secret=secret, keep_order=files.keep_order, identifiers=listed(files.identifiers) or (),
        insensitive=listed(files.insensitive) or (), decimal=marks, **columns,
    )  # fmt: skip
    wrote, lines = files.write(made, record, decision)
    payload = _facts(found, made) | {"points": len(places), "objective": search.objective, "coordinates": coordinates}
    unit = " km" if coordinates == "geographic" else ""
    notes = [
        f"{made.title} ({found.method}, coordinates {coordinates})",
        made.note,
        *([f"{int(coded.sum()):,} rows with codes for coordinates left out"] if coded.any() else []),
        *_degrees_hint(places, coordinates),
        f"A record's tile spans {payload['half_perimeter']:.4g}{unit} in width plus height, on average.",
    ]
    alone = files.table is None and files.tiles_to is None  # then the certificate has a hash of the exact coordinates
    these = "it and its certificate" if alone else "it"
    warnings = [*made.warnings, *([] if files.output is None else [EXACT.format(files.output.name, these)])]
    warned = [f"warning: {text}" for text in warnings]
    payload |= {"warnings": warnings} if warned else {}
    answer(payload | {"seconds": seconds(begun, read, solved), **wrote}, [*notes, *warned, *lines], as_json)


def _read(points: Path, where: PointColumns, text: Text) -> tuple[pl.DataFrame, str, str, str, dict[str, str]]:
    """The points, the names of their coordinate columns, the kind of coordinates, and their decimal marks."""
    from shoal.cli.common import pairs
    from shoal.engines.store import read_table
    from shoal.problems.tiles import kind_of
    from shoal.publishing.crosswalks.grouped import marks_of_points

    if not is_map(points) and (where.x is None or where.y is None):
        raise PolicyError("--x and --y are missing: name the columns of x and y, or of longitude and latitude")
    frame = read_table(points, layer=where.layer, **text._asdict())
    x, y = where.x or frame.columns[-2], where.y or frame.columns[-1]
    if where.coordinates == "auto" and kind_of(y, x) == "geographic":
        raise PolicyError(
            f"--x {x!r} names latitudes and --y {y!r} longitudes; exchange them, or say --coordinates projected"
        )
    marks = marks_of_points(pairs(where.decimal, "--decimal"), (x, y))
    # the frame has its texts, so that the release states the marks
    return frame, x, y, kind_of(x, y) if where.coordinates == "auto" else where.coordinates, marks


def _facts(found: Tiles, made: Crosswalk) -> dict[str, Any]:
    """The result as figures."""
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


def _coded_rows(places: Any, geographic: bool, drop: bool) -> Any:
    """Which rows have codes instead of coordinates, bool[n]; refused unless such rows are to be left out."""
    from shoal.model.metric import codes

    found = codes(places, geographic)
    if found.any() and not drop:
        raise InputError(
            f"{int(found.sum()):,} of {len(places):,} rows have codes for coordinates (0 and 0, or repeated digits "
            "such as 77.7777 and 999.9999), which are no coordinates; correct them, or leave these rows out "
            "with --drop-codes"
        )
    return found


def _degrees_hint(places: Any, coordinates: str) -> list[str]:
    """A hint if the coordinates could be degrees although the column names do not say so."""
    from shoal.model.metric import in_degrees

    if coordinates == "geographic" or not in_degrees(places):
        return []
    return ["All coordinates may be degrees; if they are, say --coordinates geographic, so that sizes come in km."]
