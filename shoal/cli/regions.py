"""``shoal regions``: areas merged into connected regions of weight at least k."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.app import app
from shoal.cli.common import pairs
from shoal.cli.region_lines import figures, told
from shoal.errors import InfeasibleError, PolicyError

if TYPE_CHECKING:
    from shoal.engines.geography import Geography
    from shoal.publishing.areas import Asked
    from shoal.publishing.crosswalk import Drawing


@app.command()
def regions(
    areas: Path = typer.Argument(..., help="A row per area (CSV, Parquet, Excel), or polygons (GeoJSON, TopoJSON)."),
    edges: Path | None = typer.Argument(
        None, help="A row per pair of neighbors; without it, areas are neighbors whose polygons share a border."
    ),
    weight: list[str] = typer.Option(..., "--weight", help="Column with the weight of an area; repeat for several."),
    k: list[int] = typer.Option(..., "--k", help="Least weight of a region; one for each --weight, in order."),
    levels: list[str] = typer.Option(
        [], "--levels", help="Further k, rising: 5000,20000 merges the regions again; one for each --weight, in order."
    ),
    id: str | None = typer.Option(None, "--id", help="Column that names an area; 'id', or else the first."),
    source: str | None = typer.Option(None, "--source", help="Column of EDGES; 'u' or 'source', or else the first."),
    target: str | None = typer.Option(None, "--target", help="Column of EDGES; 'v' or 'target', or else the second."),
    boundary: str | None = typer.Option(None, "--boundary", help="Column no region may mix, such as state."),
    soft_boundary: str | None = typer.Option(
        None, "--soft-boundary", help="Column a region mixes only for areas too light to be a region inside."
    ),
    at_most: list[str] = typer.Option(
        [],
        "--at-most",
        help="COLUMN=VALUE: largest sum of a region; areas=VALUE counts areas. Repeat for several; "
        "with --levels COLUMN=VALUE,VALUE gives each level its own.",
    ),
    fixed: str | None = typer.Option(None, "--fixed", help="Column: areas with the same value stay together."),
    apart: str | None = typer.Option(None, "--apart", help="Column: areas with the same value share no region."),
    exclude: str | None = typer.Option(None, "--exclude", help="Column: areas where it says yes, true or 1 stay out."),
    water: str | None = typer.Option(
        None,
        "--water",
        help="Column: areas where it says yes, true or 1 connect no others, and go to a region beside them.",
    ),
    similar: str | None = typer.Option(
        None, "--similar", help="Columns of numbers that a region's areas should be alike in, with commas between."
    ),
    number: str | None = typer.Option(
        None, "--regions", help="Exactly so many regions, not as many as can be; with --levels one for each: 100,20."
    ),
    max_diameter: float | None = typer.Option(
        None, "--max-diameter", help="Largest distance between centers of areas in a region: km, or the plane's units."
    ),
    sums: str | None = typer.Option(None, "--sum", help="Columns summed over each region, with commas between."),
    means: str | None = typer.Option(
        None, "--mean", help="Columns averaged over each region by the first weight, with commas between."
    ),
    sensitive: str | None = typer.Option(
        None, "--sensitive", help="Columns that count sensitive values, with commas between; needs --l."
    ),
    l: int = typer.Option(1, "--l", help="In each region no sensitive value has more than 1/l of the records."),
    method: str = typer.Option("auto", "--method", help="auto, tree, search or exact."),
    objective: str | None = typer.Option(
        None,
        "--objective",
        help="max (default), count, sumsq, excess, compact, similar; or several in your order: max,count,compact.",
    ),
    islands: str = typer.Option(
        "leave", "--islands", help="Components too light alone: leave them out, or join each to the nearest."
    ),
    unmatched: str = typer.Option(
        "refuse", "--unmatched", help="Ids that are in one of the files only: refuse, or leave-out."
    ),
    tolerance: float | None = typer.Option(
        None, "--tolerance", help="Borders drawn twice that are one, km or the plane's units; told from the polygons."
    ),
    coordinates: str = typer.Option(
        "auto", "--coordinates", help="geographic (degrees), projected, or auto: by the file's system, names and range."
    ),
    shapes: Path | None = typer.Option(None, "--shapes", help="Polygons of the areas, for maps and --dissolved."),
    shape_id: str | None = typer.Option(None, "--shape-id", help="Their property that names an area; --id's name."),
    compare_prefix: int | None = typer.Option(
        None, "--compare-prefix", help="Compare with groups by so many first characters of the id (3: zip3)."
    ),
    effort: str = typer.Option("balanced", "--effort", help="fast, balanced, thorough or seconds."),
    seed: int | None = typer.Option(None, "--seed", help="For the same regions again; fresh randomness by default."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Crosswalk: area, region, its weight and areas."),
    dissolved: Path | None = typer.Option(
        None, "--dissolved", help="Outlines of the regions: .geojson, .gpkg, .shp or .kml."
    ),
    hierarchy: Path | None = typer.Option(
        None, "--hierarchy", help="Areas and their regions at every level, for 'shoal anonymize --hierarchy'."
    ),
    choices: Path | None = typer.Option(
        None,
        "--choices",
        help="Picture of how compact (or --similar) smaller numbers of regions can be: .png, .svg, .pdf.",
    ),
    map_to: Path | None = typer.Option(None, "--map", help="Map that opens offline: .html."),
    png: Path | None = typer.Option(None, "--png", help="Picture of the map: .png, .svg or .pdf."),
    report: Path | None = typer.Option(None, "--report", help="A page for a review board that opens offline: .html."),
    certificate: Path | None = typer.Option(
        None, "--certificate", help="Its certificate; beside the crosswalk by default."
    ),
    force: bool = typer.Option(False, "--force", help="Replace outputs that exist."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on standard output."),
) -> None:
    """Merge neighboring areas (zip codes, counties) until each region weighs at least k."""
    import time

    import numpy as np

    from shoal.cli.common import answer, effort_of, listed, put, reported, seconds, working
    from shoal.engines.geography import read
    from shoal.engines.vector import check_outlines
    from shoal.problems.regions import nested
    from shoal.problems.regions.comparing import against_prefixes, light_components
    from shoal.problems.regions.levels import of_level
    from shoal.publishing.answers import release
    from shoal.publishing.area_levels import level_file
    from shoal.publishing.areas import Asked, levels_drawn

    clock = [time.perf_counter()]
    written = (output, dissolved, hierarchy, choices, map_to, png, report, certificate)
    ks = _thresholds(weight, k, levels)
    above = [level_file(p, i) for i in range(1, len(ks)) for p in (dissolved, map_to, png) if p is not None]
    _check(written, len(ks), (areas, edges, shapes), force, islands, coordinates)
    given = read(
        areas, edges, id=id, source=source, target=target, shapes=shapes, shape_id=shape_id, unmatched=unmatched,
        tolerance=tolerance, coordinates=coordinates,
    )  # fmt: skip
    degrees = given.geographic() if coordinates == "auto" else coordinates == "geographic"
    if dissolved is not None:
        check_outlines(dissolved, degrees)
    if any(p is not None for p in (dissolved, map_to, png)) and not given.shapes:
        raise PolicyError("--dissolved, --map and --png draw polygons; name their file with --shapes")
    asked = Asked(
        boundary, soft_boundary, fixed, apart, pairs(at_most, "--at-most", _numbers), listed(sensitive) or (), l,
        listed(similar) or (), _number(number), max_diameter, water, listed(sums) or (), listed(means) or (),
    )  # fmt: skip
    weights = np.column_stack([given.whole(name) for name in weight])
    wanted = listed(objective) or ["similar" if asked.similar else "max"]
    options = _options(given, asked, wanted, islands, degrees, exclude) | {"seed": seed, "unit": weight[0]}
    clock.append(time.perf_counter())
    try:
        with working(f"merging {len(given.ids):,} areas"):
            nest = nested(given.edges, weights, ks, method, effort=effort_of(effort), **options)
    except InfeasibleError as error:  # why may lie in how the files were read
        raise InfeasibleError("; ".join((str(error), *given.said))) from None
    found = nest.levels[0]
    clock.append(time.perf_counter())
    made = release(
        nest, given, read=(areas, edges, shapes), weight=weight, id=id, geographic=degrees,
        objective=found.certificate.details["objective"][0], **asked._asdict(),
    )  # fmt: skip
    inside = (options["boundaries"], options["exclude"], options["water"])
    light = light_components(given.ids, given.edges, weights, found, *inside)
    stands = given.apart((weights == 0).all(axis=1))
    rows = []
    if compare_prefix is not None:
        own = options | of_level(options, 0, len(ks))
        rows = against_prefixes(given.ids, given.edges, weights[:, 0], compare_prefix, found, own, method)
    also = {} if hierarchy is None else {"hierarchy": hierarchy}
    if dissolved is not None:
        also |= {f"outlines{i + 1 if i else ''}": level_file(dissolved, i) for i in range(len(ks))}
    by_level = levels_drawn(made, given, nest, weight[0], degrees)
    drawn = [(level_file(p, i), partial(m.drawing, "map")) for i, m in enumerate(by_level) for p in (map_to, png) if p]
    tried = [] if choices is None else _choices(given, weights, k, method, options | {"effort": effort_of(effort)})
    wrote = put(made, output, certificate, also, [*drawn, (choices, partial(_curve, tried, degrees))])
    payload = figures(nest, given, degrees, stands)
    payload |= {"light_components": light, "comparison": rows, "objective": ",".join(wanted), "choices": tried}
    payload |= {"seconds": seconds(*clock), **wrote, **reported(made, report)}
    ways = (*written[:-1], *above, wrote["certificate_file"])
    lines = [f"{made.title} ({found.method})", *given.said, *stands.said, made.note, *told(nest, light, rows)]
    answer(payload, [*lines, *(f"wrote {p}" for p in ways if p is not None)], as_json)


def _choices(
    given: Geography, weights: Any, k: list[int], method: str, options: dict[str, Any]
) -> list[dict[str, Any]]:
    """What other numbers of regions would come to; the figures."""
    from shoal.problems.regions import choices

    asked = {n: v for n, v in options.items() if n not in ("objective", "regions")} | {"coordinates": given.centers()}
    found = choices(given.edges, weights, k, method=method, **asked)
    return [{n: v for n, v in choice._asdict().items() if n != "found"} for choice in found]


def _curve(rows: list[dict[str, Any]], degrees: bool) -> Drawing:
    """How the figures are drawn."""
    from shoal.engines.targets import PICTURE
    from shoal.publishing.crosswalk import Drawing
    from shoal.report.region_choices import draw

    return Drawing(form=PICTURE, fill=lambda to: draw(to, rows, "km" if degrees else "units of the plane"))


def _check(
    written: tuple[Path | None, ...],
    levels: int,
    read: tuple[Path | None, ...],
    force: bool,
    islands: str,
    coordinates: str,
) -> None:
    """Refuse targets that would do harm, and words that mean nothing, before any work."""
    from shoal.cli.common import beside
    from shoal.engines.targets import HIERARCHY, JSON, OUTLINES, PAGE, PICTURE, TABLE, check_outputs
    from shoal.engines.vector import check_outlines
    from shoal.publishing.area_levels import level_file

    output, dissolved, hierarchy, choices, map_to, png, report, certificate = written
    forms = (TABLE, OUTLINES, HIERARCHY, PICTURE, PAGE, PICTURE, PAGE, JSON)
    beside_it = beside(output or hierarchy or dissolved, certificate)
    places = (output, dissolved, hierarchy, choices, map_to, png, report, beside_it)
    draws = [(p, form) for p, form in ((dissolved, OUTLINES), (map_to, PAGE), (png, PICTURE)) if p is not None]
    more = [(level_file(p, i), form) for p, form in draws for i in range(1, levels)]
    check_outputs([*zip(places, forms, strict=True), *more], read, overwrite=force)
    if dissolved is not None:
        check_outlines(dissolved)
    if islands not in ("leave", "join"):
        raise PolicyError.unknown("way to treat islands", islands, ("leave", "join"))
    if coordinates not in ("auto", "geographic", "projected"):
        raise PolicyError.unknown("kind of coordinates", coordinates, ("auto", "geographic", "projected"))


def _thresholds(weight: list[str], k: list[int], levels: list[str]) -> list[tuple[int, ...]]:
    """Thresholds of every level, one for each weight."""
    if len(weight) != len(k):
        raise PolicyError(f"there are {len(k)} of --k for {len(weight)} of --weight; give one for each")
    if levels and len(levels) != len(k):
        raise PolicyError(f"there are {len(levels)} of --levels for {len(k)} of --k; give one for each")
    each = [[own, *_listed(more, "--levels")] for own, more in zip(k, levels or len(k) * (None,), strict=True)]
    if len({len(column) for column in each}) > 1:
        raise PolicyError("--levels of one weight are more than those of another; give as many for each")
    for column in each:
        if any(a >= b for a, b in pairwise(column)):
            raise PolicyError(f"thresholds must rise from --k through --levels, not {', '.join(map(str, column))}")
    return list(zip(*each, strict=True))


def _listed(text: str | None, option: str) -> list[int]:
    try:
        return [] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise PolicyError(f"{option} {text!r} holds no whole numbers; write 5000,20000") from None


def _numbers(text: str) -> int | tuple[int, ...]:
    """A whole number, or one for each level."""
    return tuple(int(part) for part in text.split(",")) if "," in text else int(text)


def _number(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return _numbers(text)
    except ValueError:
        raise PolicyError(f"--regions {text!r} is no whole number; with --levels give one for each: 100,20") from None


def _options(
    given: Geography, asked: Asked, objective: list[str], islands: str, degrees: bool, exclude: str | None
) -> dict[str, Any]:
    """What is asked for besides thresholds, as merge takes it."""
    import numpy as np

    n = len(given.ids)
    limits = {}
    for name, most in asked.at_most.items():
        counted = name == "areas" and name not in given.columns
        limits[name] = (np.ones(n, np.int64) if counted else given.whole(name), most)
    out = np.zeros(n, np.bool_)
    out[list(given.outside)] = True
    if exclude is not None:
        out |= given.says(exclude)
    columns = {
        "boundaries": asked.boundary,
        "soft_boundaries": asked.soft_boundary,
        "fixed": asked.fixed,
        "apart": asked.apart,
    }
    wet = None if asked.water is None else given.says(asked.water)
    placed = islands == "join" or "compact" in objective or asked.max_diameter is not None
    return {
        "similar": np.column_stack([given.number(name) for name in asked.similar]) if asked.similar else None,
        "regions": asked.regions,
        "water": wet,
        "max_diameter": asked.max_diameter,
        "objective": objective[0] if len(objective) == 1 else objective,
        "sensitive": np.column_stack([given.whole(name) for name in asked.sensitive]) if asked.sensitive else None,
        "l": asked.l,
        "coordinates": given.centers() if placed else None,
        "geographic": degrees,
        "light": "nearest" if islands == "join" else "leave",
        "at_most": limits or None,
        "exclude": out if out.any() else None,
        **{name: None if column is None else given.column(column) for name, column in columns.items()},
    }
