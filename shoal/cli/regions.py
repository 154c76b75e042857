"""``shoal regions``: merge areas into connected regions of weight at least k."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.common import answer, further_levels, listed, put, reported, seconds, working
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
    conditions,
    flag,
    with_options,
)
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.cards import several
from shoal.model.conditions import AREA_CONDITIONS, complete
from shoal.paths import HIERARCHY, OUTLINED, PAGE, PICTURE, SHEET, TABLE, level_file

if TYPE_CHECKING:
    from shoal.engines.adjacency import Disconnected
    from shoal.engines.geography import Geography
    from shoal.problems.regions import Nested, Regions
    from shoal.publishing.crosswalks.crosswalk import Crosswalk, Drawing


class AreaSources(NamedTuple):
    """How areas, neighbors, and polygons are read."""

    id: Column = flag(None, "--id", "Column that names an area; by default 'id', or the first column.")
    source: Column = flag(None, "--source", "Column of EDGES; by default 'u', 'source', or the first column.")
    target: Column = flag(None, "--target", "Column of EDGES; by default 'v', 'target', or the second column.")
    unmatched: str = flag("refuse", "--unmatched", "Ids that are in only one of the files: refuse, or leave-out.")
    tolerance: float | None = flag(
        None, "--tolerance", "Largest distance of borders drawn twice, in km or the plane's units; detected by default."
    )
    coordinates: str = flag(
        "auto", "--coordinates", "geographic (degrees), projected, or auto: from the file's system, names, and range."
    )
    shapes: File = flag(None, "--shapes", "Polygons of the areas, for maps and --dissolved.")
    shape_id: Column = flag(None, "--shape-id", "Property of a polygon that names its area; by default --id's name.")
    layer: Column = flag(None, "--layer", "Layer of the polygons, if their file has several.")
    decimal: list[str] = DECIMAL

    def read(self, areas: Path, edges: File) -> tuple[Geography, bool]:
        """The areas, and whether their coordinates are degrees."""
        from shoal.cli.common import pairs
        from shoal.engines.geography import read

        how = {**self._asdict(), "decimal": pairs(self.decimal, "--decimal")}
        given = read(areas, edges, **how)
        return given, given.geographic() if self.coordinates == "auto" else self.coordinates == "geographic"


class LeastWeights(NamedTuple):
    """The minimum weights of a region."""

    weight: list[str] = flag(..., "--weight", "Column with the weight of an area. Repeatable.")
    k: list[int] = flag(..., "--k", "Minimum weight of a region; one for each --weight, in order.")
    levels: list[str] = flag(
        [], "--levels", "Further k, ascending: 5000,20000 merges the regions again. One for each --weight, in order."
    )


class RegionSearch(NamedTuple):
    """How regions are searched, and what they are compared with."""

    method: str = flag("auto", "--method", "auto, tree, search or exact.")
    objective: Column = flag(
        None,
        "--objective",
        "max (default), count, sumsq, excess, compact, similar; or several in your order: max,count,compact.",
    )
    compare_prefix: int | None = flag(
        None, "--compare-prefix", "Compare with groups by this many first characters of the id (3: zip3)."
    )
    effort: str = EFFORT
    seed: int | None = flag(None, "--seed", "Seed for the same regions again; fresh randomness by default.")


class LoneAreas(NamedTuple):
    """How single areas, and components that are too light, are treated."""

    exclude: Column = flag(None, "--exclude", "Column: areas with yes, true, or 1 belong to no region.")
    islands: str = flag(
        "leave", "--islands", "Components that are too light: leave them out, or join each to the nearest."
    )

    def settings(self, given: Geography, asked: dict[str, Any], objective: list[str], degrees: bool) -> dict[str, Any]:
        """The whole request, as keyword arguments of merge."""
        import numpy as np

        from shoal.publishing.crosswalks.areas import as_merged, measures_distance

        out = np.zeros(len(given.ids), np.bool_)
        out[list(given.outside)] = True
        if self.exclude is not None:
            out |= given.says(self.exclude)
        placed = self.islands == "join" or measures_distance(objective, asked)
        return as_merged(asked, given) | {
            "objective": objective[0] if len(objective) == 1 else objective,
            "coordinates": given.centers() if placed else None,
            "geographic": degrees,
            "islands": self.islands,
            "exclude": out if out.any() else None,
        }


class RegionFiles(NamedTuple):
    """The files to write."""

    output: File = flag(None, "-o", "--output", "Crosswalk: area, region, its weight and areas.")
    dissolved: File = flag(None, "--dissolved", "Outlines of the regions: .geojson, .gpkg, .shp or .kml.")
    hierarchy: File = flag(
        None, "--hierarchy", "Output file: areas and their regions at every level, for 'shoal anonymize --hierarchy'."
    )
    choices: File = flag(
        None, "--choices", "Picture of how compact (or --similar) fewer regions can be: .png, .svg, .pdf."
    )
    map_to: File = flag(None, "--map", "Map that opens offline: .html.")
    png: File = flag(None, "--png", "Picture of the map: .png, .svg or .pdf.")
    report: File = REPORT
    certificate: File = flag(None, "--certificate", "Its certificate; next to the crosswalk by default.")

    def of_levels(self, levels: int, *paths: File) -> list[tuple[int, Path]]:
        """(level, path) of the files that are written once per level; the first level gets the path as given."""
        return [(i, level_file(p, i)) for i in range(levels) for p in paths if p is not None]

    def check(self, levels: int, read: tuple[File, ...], force: bool, kept: OutputFiles) -> None:
        """Refuses harmful output paths before any work."""
        from shoal.cli.unchanged import check_files
        from shoal.engines.vector import check_outlines

        drawn = ((self.dissolved, OUTLINED), (self.map_to, SHEET), (self.png, PICTURE))
        wanted: list[Any] = [(p, form) for one, form in drawn for _, p in self.of_levels(levels, one)]
        wanted += [(self.output, TABLE), (self.hierarchy, HIERARCHY), (self.choices, PICTURE), (self.report, PAGE)]
        check_files(wanted, self.output or self.hierarchy or self.dissolved, self.certificate, read, kept, force)
        if self.dissolved is not None:
            check_outlines(self.dissolved)

    def check_shapes(self, given: Geography, degrees: bool) -> None:
        """Refuses maps without polygons, and outlines in a format that cannot hold plane coordinates."""
        from shoal.engines.vector import check_outlines

        if self.dissolved is not None:
            check_outlines(self.dissolved, degrees)
        if any(p is not None for p in (self.dissolved, self.map_to, self.png)) and not given.shapes:
            raise PolicyError("--dissolved, --map and --png draw polygons; name their file with --shapes")

    def write(
        self, made: Crosswalk, by_level: list[Crosswalk], curve: Callable[[], Drawing], kept: OutputFiles
    ) -> dict[str, Any]:
        """Writes the requested files. Returns the paths of the crosswalk and its certificate."""
        also = {} if self.hierarchy is None else {"hierarchy": self.hierarchy}
        also |= {f"outlines{i + 1 if i else ''}": p for i, p in self.of_levels(len(by_level), self.dissolved)}
        maps = self.of_levels(len(by_level), self.map_to, self.png)
        drawn = [(path, partial(by_level[i].drawing, "map")) for i, path in maps]
        return put(made, self.output, self.certificate, also, [*drawn, (self.choices, curve)], kept=kept)

    def written(self, levels: int, certificate: str | None) -> list[str]:
        """One line for each file."""
        above = [p for i, p in self.of_levels(levels, self.dissolved, self.map_to, self.png) if i]
        return [f"wrote {p}" for p in (*self[:-1], *above, certificate) if p is not None]


def thresholds(weight: list[str], k: list[int], levels: list[str]) -> list[tuple[int, ...]]:
    """The thresholds of each level, one for each weight."""
    if len(weight) != len(k):
        raise PolicyError(f"there are {len(k)} of --k for {len(weight)} of --weight; give one for each")
    if levels and len(levels) != len(k):
        raise PolicyError(f"there are {len(levels)} of --levels for {len(k)} of --k; give one for each")
    each = [[own, *further_levels(more)] for own, more in zip(k, levels or len(k) * (None,), strict=True)]
    if len({len(column) for column in each}) > 1:
        raise PolicyError("--levels of one weight are more than those of another; give as many for each")
    for column in each:
        if any(a >= b for a, b in pairwise(column)):
            raise PolicyError(f"thresholds must rise from --k through --levels, not {', '.join(map(str, column))}")
    return list(zip(*each, strict=True))


def check_words(islands: str, coordinates: str) -> None:
    """Refuses unknown values of --islands and --coordinates."""
    if islands not in ("leave", "join"):
        raise PolicyError.unknown("way to treat islands", islands, ("leave", "join"))
    if coordinates not in ("auto", "geographic", "projected"):
        raise PolicyError.unknown("kind of coordinates", coordinates, ("auto", "geographic", "projected"))


def screen(nest: Nested, light: list[dict[str, Any]], rows: list[dict[str, Any]], placed: bool) -> list[str]:
    """The lines about the result, below its title.

    light, rows  components too light to be regions, and other groupings of the areas, from ``_light_and_compared``
    placed       whether the areas' positions are known
    """
    found = nest.levels[0]
    most, unit = found.squares, found.k[0] ** 2
    squares = f"Sum of squares {most / unit:,.1f} k², none below {found.squares_bound / unit:,.1f} k²."
    return [
        squares,
        *_level_lines(nest),
        *_condition_lines(found),
        *_light_lines(light, placed),
        *_comparison_lines(rows),
    ]


def _level_lines(nest: Nested) -> list[str]:
    """One line for each level above the first."""
    lines = []
    for level, most in zip(nest.levels[1:], nest.most[1:], strict=True):
        out = f"; {len(level.left_out):,} areas in none" if len(level.left_out) else ""
        lines.append(
            f"Of these, {several(level.regions, 'region')} of at least {level.k[0]:,}: heaviest {level.largest:,}; at "
            f"most {level.upper_bound:,} can be made of these regions, and {most:,} of the areas{out}."
        )
    return lines


def figures(nest: Nested, given: Geography, degrees: bool, stands: Disconnected) -> dict[str, Any]:
    """The result as figures."""
    from shoal.publishing.crosswalks.areas import facts_of

    found = nest.levels[0]
    above = zip(nest.levels[1:], facts_of(nest), strict=True)
    return {
        "areas": len(given.ids),
        "neighbors": len(given.edges),
        "drawing": {**given.facts, **stands.facts},
        "said": list(given.notes),
        "coordinates": "geographic" if degrees else "projected",
        "regions": found.regions,
        "regions_at_most": found.upper_bound,
        "smallest": int(found.weights.reshape(found.regions, -1)[:, 0].min()),
        "largest": found.largest,
        "largest_at_least": found.largest_bound,
        "squares": found.squares,
        "squares_at_least": found.squares_bound,
        "excess": found.excess,
        "left_out": [given.ids[i] for i in found.left_out],
        "joined": [[given.ids[a], given.ids[b]] for a, b in found.joined.tolist()],
        "cost": found.cost,
        "certificate": found.certificate.as_dict(),
        "method": found.method,
        "levels": [{"k": list(level.k), **facts} for level, facts in above],
    }


def _condition_lines(found: Regions) -> list[str]:
    """How many areas and regions the exclusions, maxima, and soft boundaries concern."""
    facts = found.certificate.details
    templates = {
        "excluded": "{} excluded",
        "water": "{} of water, which connects no others",
        "water_attached": "of the water, {} in a neighboring region",
        "left_out_by_maxima": "{} in no region, for none can take more under the maxima",
        "above_a_maximum_alone": "{} above a maximum alone, left as found",
        "variance_inside": "{:.1%} of the variance of the similar columns is inside regions",
        "regions_across_soft_boundaries": "{} across soft boundaries",
    }
    silent = ("excluded", "left_out_by_maxima", "above_a_maximum_alone")  # not reported if 0
    known = {name: facts[name] for name in templates if facts.get(name) is not None}
    counted = {
        name: value if name == "variance_inside" else several(value, "region" if name.startswith("regions") else "area")
        for name, value in known.items()
    }
    return [templates[name].format(value) for name, value in counted.items() if known[name] or name not in silent]


def _light_lines(light: list[dict[str, Any]], placed: bool) -> list[str]:
    """The light components as lines of text."""
    empty = sum(len(part["areas"]) for part in light if not _has_weight(part))
    light = [part for part in light if _has_weight(part)]
    lines = [f"In no region, apart from all others: {several(empty, 'empty area')}"] if empty else []
    if not light:
        return lines
    lines.append(f"Too light to be a region, {several(len(light), 'set')} of areas apart from all others:")
    for part in light[:12]:
        areas = part["areas"]
        shown = ", ".join(areas[:6]) + (f" and {len(areas) - 6} more" if len(areas) > 6 else "")
        weight = part["weight"]
        weight_text = f"{weight:,}" if isinstance(weight, int) else " / ".join(f"{w:,}" for w in weight)
        lines.append(f"  {shown}: {weight_text}, {part['outcome']}")
    if len(light) > 12:
        lines.append(f"  and {len(light) - 12} more (--json lists all)")
    if any(part["outcome"] == "left out" for part in light):
        where = "" if placed else ", once columns of longitude and latitude, or --shapes, say where areas lie"
        lines.append(f"  (--islands join makes each a neighbor of the nearest{where})")
    return lines


def _has_weight(part: dict[str, Any]) -> bool:
    weight = part["weight"]
    return bool(weight if isinstance(weight, int) else any(weight))


def _comparison_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The comparison as lines of text."""
    if not rows:
        return []
    heads = {
        "groups": "groups by", "number": "number", "largest": "largest", "smallest": "smallest", "below_k": "below k",
        "not_connected": "in pieces", "areas_changed": "areas changed", "areas_left_out": "left out",
    }  # fmt: skip
    cells = [list(heads.values())]
    cells += [[row[h] if isinstance(row[h], str) else f"{row[h]:,}" for h in heads] for row in rows]
    wide = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    lines = []
    for first, *rest in cells:
        padded = [cell.rjust(w) for cell, w in zip(rest, wide[1:], strict=True)]
        lines += ["  ".join([first.ljust(wide[0]), *padded])]
    return ["", *lines, ""]


@app.command()
@with_options
def regions(
    areas: Path = typer.Argument(
        ..., help="A row for each area (CSV, Parquet, Excel, SPSS, Stata, SAS), or polygons (GeoJSON, ...)."
    ),
    least: LeastWeights = LeastWeights(),
    edges: Path | None = typer.Argument(
        None, help="A row for each pair of neighbors; by default, areas whose polygons share a border are neighbors."
    ),
    reading: AreaSources = AreaSources(),
    conditions_given: dict[str, Any] = conditions(AREA_CONDITIONS),
    kept: LoneAreas = LoneAreas(),
    search: RegionSearch = RegionSearch(),
    files: RegionFiles = RegionFiles(),
    record: OutputFiles = OutputFiles(),
    decision: Decision = Decision(),
    force: bool = FORCE,
    as_json: bool = JSON_,
) -> None:
    """Merge neighboring areas (zip codes, counties) until each region weighs at least k."""
    import numpy as np

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
    asked = complete(AREA_CONDITIONS, conditions_given)
    weights = np.column_stack([given.whole(name) for name in weight])
    wanted = listed(search.objective) or ["similar" if asked["similar"] else "max"]
    options = kept.settings(given, asked, wanted, degrees) | {"seed": search.seed, "unit": weight[0]}
    hurry = options | {"method": search.method, "effort": effort}
    fewer = {} if files.choices is None else _choice_options(given, hurry)
    read = time.perf_counter()
    try:
        with working(f"merging {len(given.ids):,} areas"):
            nest = nested(given.edges, weights, ks, search.method, effort=effort, **options)
    except InfeasibleError as error:  # the way the files were read may explain it
        raise InfeasibleError("; ".join((error.sentence.marked, *given.notes))) from None
    found, solved = nest.levels[0], time.perf_counter()
    made = release(nest, given, read=sources, weight=weight, id=reading.id, geographic=degrees, **asked)
    compared = _light_and_compared(given, weights, nest, options, search)
    stands = given.apart((weights == 0).all(axis=1))
    tried = _choices(given, weights, least.k, fewer) if fewer else []
    drawn = levels_drawn(made, given, nest, weight[0], degrees)
    wrote = files.write(made, drawn, partial(_choice_drawing, tried, degrees), record)
    payload = figures(nest, given, degrees, stands) | {"objective": ",".join(wanted), "choices": tried}
    payload |= {"light_components": compared[0], "comparison": compared[1], "seconds": seconds(begun, read, solved)}
    payload |= {**wrote, **reported(made, files.report, **decision._asdict())}
    lines = [f"{made.title} ({found.method})", *given.notes, *stands.notes, made.note]
    lines += screen(nest, *compared, given.centers() is not None)
    answer(payload, [*lines, *files.written(len(ks), wrote["certificate_file"])], as_json)


def _light_and_compared(
    given: Geography, weights: Any, nest: Nested, options: dict[str, Any], search: RegionSearch
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Components that are too light, and, if requested, the comparison with groups by prefix."""
    from shoal.problems.regions.limits import of_level
    from shoal.problems.regions.merge import against_prefixes, light_components

    inside = (options["boundary"], options["exclude"], options["water"])
    light = light_components(given.ids, given.edges, weights, nest.levels[0], *inside)
    prefix = search.compare_prefix
    if prefix is None:
        return light, []
    own = options | of_level(options, 0, len(nest.levels))
    return light, against_prefixes(given.ids, given.edges, weights[:, 0], prefix, nest.levels[0], own, search.method)


def _choice_options(given: Geography, options: dict[str, Any]) -> dict[str, Any]:
    """The options to try other numbers of regions with; refused early if there is nothing to compare these by."""
    from shoal.problems.regions.merge import check_choices

    asked = {n: v for n, v in options.items() if n not in ("objective", "regions")} | {"coordinates": given.centers()}
    check_choices(asked)
    return asked


def _choices(given: Geography, weights: Any, k: list[int], asked: dict[str, Any]) -> list[dict[str, Any]]:
    """What other numbers of regions would cost, as figures."""
    from shoal.problems.regions import choices

    found = choices(given.edges, weights, k, **asked)
    return [{n: v for n, v in choice._asdict().items() if n != "found"} for choice in found]


def _choice_drawing(rows: list[dict[str, Any]], degrees: bool) -> Drawing:
    """The picture of these figures."""
    from shoal.publishing.crosswalks.crosswalk import Drawing
    from shoal.report.pictures import draw_region_choices

    unit = "km" if degrees else "units of the plane"
    return Drawing(form=PICTURE, fill=lambda to: draw_region_choices(to, rows, unit), private=True)
