"""``shoal regions``: areas merged into connected regions of weight at least k."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.app import app
from shoal.cli.models import with_options
from shoal.cli.options import FORCE, JSON_, Beside, Decision
from shoal.cli.region_lines import figures, screen
from shoal.cli.region_options import Files, Kept, Least, Reading, Search, check_words, thresholds
from shoal.errors import InfeasibleError

if TYPE_CHECKING:
    from shoal.engines.geography import Geography
    from shoal.problems.regions import Nested
    from shoal.publishing.crosswalks.crosswalk import Drawing


@app.command()
@with_options
def regions(
    areas: Path = typer.Argument(..., help="A row per area (CSV, Parquet, Excel), or polygons (GeoJSON, TopoJSON)."),
    least: Least = Least(),
    edges: Path | None = typer.Argument(
        None, help="A row per pair of neighbors; without it, areas are neighbors whose polygons share a border."
    ),
    reading: Reading = Reading(),
    kept: Kept = Kept(),
    search: Search = Search(),
    files: Files = Files(),
    record: Beside = Beside(),
    decision: Decision = Decision(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Merge neighboring areas (zip codes, counties) until each region weighs at least k."""
    import numpy as np

    from shoal.cli.common import answer, listed, reported, seconds, working
    from shoal.problems.regions import nested
    from shoal.publishing.crosswalks.answers import release
    from shoal.publishing.crosswalks.areas import levels_drawn

    begun, ks, sources = time.perf_counter(), thresholds(*least), (areas, edges, reading.shapes)
    files = files._replace(report=decision.page(files.report))
    files.check(len(ks), sources, force, record)
    check_words(kept.islands, reading.coordinates)
    given, degrees = reading.read(areas, edges)
    files.check_shapes(given, degrees)
    weight, effort = least.weight, search.effort
    asked, weights = kept.asked(), np.column_stack([given.whole(name) for name in weight])
    wanted = listed(search.objective) or ["similar" if asked.similar else "max"]
    options = kept.settings(given, asked, wanted, degrees) | {"seed": search.seed, "unit": weight[0]}
    hurry = options | {"method": search.method, "effort": effort}
    fewer = {} if files.choices is None else _fewer(given, hurry)
    read = time.perf_counter()
    try:
        with working(f"merging {len(given.ids):,} areas"):
            nest = nested(given.edges, weights, ks, search.method, effort=effort, **options)
    except InfeasibleError as error:  # why may lie in how the files were read
        raise InfeasibleError("; ".join((str(error), *given.said))) from None
    found, solved = nest.levels[0], time.perf_counter()
    made = release(
        nest, given, read=sources, weight=weight, id=reading.id, geographic=degrees, **asked._asdict()
    )  # fmt: skip
    beside = _beside(given, weights, nest, options, search)
    stands = given.apart((weights == 0).all(axis=1))
    tried = _choices(given, weights, least.k, fewer) if fewer else []
    drawn = levels_drawn(made, given, nest, weight[0], degrees)
    wrote = files.write(made, drawn, partial(_curve, tried, degrees), record)
    payload = figures(nest, given, degrees, stands) | {"objective": ",".join(wanted), "choices": tried}
    payload |= {"light_components": beside[0], "comparison": beside[1], "seconds": seconds(begun, read, solved)}
    payload |= {**wrote, **reported(made, files.report, **decision._asdict())}
    lines = [f"{made.title} ({found.method})", *given.said, *stands.said, made.note]
    lines += screen(nest, *beside, given.centers() is not None)
    answer(payload, [*lines, *files.written(len(ks), wrote["certificate_file"])], as_json)


def _beside(
    given: Geography, weights: Any, nest: Nested, options: dict[str, Any], search: Search
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Components too light alone, and other groups of the areas where these were asked for."""
    from shoal.problems.regions.comparing import against_prefixes, light_components
    from shoal.problems.regions.levels import of_level

    inside = (options["boundaries"], options["exclude"], options["water"])
    light = light_components(given.ids, given.edges, weights, nest.levels[0], *inside)
    prefix = search.compare_prefix
    if prefix is None:
        return light, []
    own = options | of_level(options, 0, len(nest.levels))
    return light, against_prefixes(given.ids, given.edges, weights[:, 0], prefix, nest.levels[0], own, search.method)


def _fewer(given: Geography, options: dict[str, Any]) -> dict[str, Any]:
    """What other numbers of regions are asked with; refused before the search where nothing stands against them."""
    from shoal.problems.regions.choices import check_choices

    asked = {n: v for n, v in options.items() if n not in ("objective", "regions")} | {"coordinates": given.centers()}
    check_choices(asked)
    return asked


def _choices(given: Geography, weights: Any, k: list[int], asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What other numbers of regions would come to; the figures."""
    from shoal.problems.regions import choices

    found = choices(given.edges, weights, k, **asked)
    return [{n: v for n, v in choice._asdict().items() if n != "found"} for choice in found]


def _curve(rows: list[dict[str, Any]], degrees: bool) -> Drawing:
    """How the figures are drawn."""
    from shoal.engines.targets import PICTURE
    from shoal.publishing.crosswalks.crosswalk import Drawing
    from shoal.report.region_choices import draw

    return Drawing(form=PICTURE, fill=lambda to: draw(to, rows, "km" if degrees else "units of the plane"))
