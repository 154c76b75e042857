"""``shoal gather`` and ``shoal cellular``: cluster records by distance, and publish the clusters' centers."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.options import (
    DATES,
    DECIMAL,
    EFFORT,
    FORCE,
    JSON_,
    REPORT,
    SECRET,
    Decision,
    OutputFiles,
    Text,
    conditions,
    flag,
    keywords,
    refuse_idle,
    secret_of,
    with_options,
)
from shoal.errors import InfeasibleError, PolicyError
from shoal.model.cards import several, times
from shoal.model.conditions import CELLULAR_CONDITIONS, GATHER_CONDITIONS, Condition
from shoal.paths import CIRCLES, MAP, PAGE, PICTURE, TABLE

if TYPE_CHECKING:
    import polars as pl

    from shoal.engines.features import FeatureColumns

RECORDS = typer.Argument(help="Table with a row per record: CSV (also .gz), Parquet, Excel, SPSS, Stata or SAS.")


class ClusterSearch(NamedTuple):
    """How clusters are searched whose largest radius is to be small."""

    method: str = flag("auto", "--method", "auto, local, disjoint, threshold, peeling, rounds or exact.")
    effort: str = flag("balanced", "--effort", "fast, balanced, thorough (which improves), or seconds for exact.")
    improve: bool = flag(False, "--improve", "Continue to search for a smaller radius.")


class SumSearch(NamedTuple):
    """How clusters are searched whose sum of size times radius is to be small."""

    method: str = flag("auto", "--method", "auto, search, three_step or exact; without --r also tight, procedure_one.")
    effort: str = EFFORT
    seed: int | None = flag(None, "--seed", "Number that fixes the search's random choices, never the row order.")


class ClusterFiles(NamedTuple):
    """The files to write."""

    output: Path | None = flag(None, "-o", "--output", "Output file, with a row for each cluster.")
    assignments: Path | None = flag(
        None, "--assignments", "Output file with a row for each record: its cluster's center replaces its values."
    )
    certificate: Path | None = flag(None, "--certificate", "The certificate; next to the output by default.")
    plot: Path | None = flag(None, "--plot", "Picture of clusters by pairs of columns, and of radii: .png, .svg, .pdf.")
    choices: Path | None = flag(None, "--choices", "Picture of the cost against r and epsilon, around your values.")
    map_to: Path | None = flag(None, "--map", "Map with a circle for each cluster: .html, .png, .svg, or .pdf.")
    geojson: Path | None = flag(None, "--geojson", "GeoJSON with a circle for each cluster.")
    report: Path | None = REPORT
    force: bool = FORCE

    def check(self, read: list[Any], kept: OutputFiles) -> None:
        """Refuses harmful output paths before any work."""
        from shoal.cli.unchanged import check_files

        wanted = [
            (self.output, TABLE), (self.assignments, TABLE), (self.plot, PICTURE), (self.choices, PICTURE),
            (self.map_to, MAP), (self.geojson, CIRCLES), (self.report, PAGE),
        ]  # fmt: skip
        check_files(wanted, self.output or self.assignments, self.certificate, read, kept, self.force)


class Distance(NamedTuple):
    """The distance, as its options state it."""

    columns: str | None = flag(
        None, "--columns", "Columns that define the distance: numbers and dates by their range, others 0 or 1."
    )
    categories: str | None = flag(None, "--categories", "Columns whose numbers are names.")
    cyclic: list[str] = flag([], "--cyclic", "column=period, for numbers on a circle: hour=24, bearing=360.")
    date: list[str] = DATES
    decimal: list[str] = DECIMAL
    weights: list[str] = flag([], "--weight", "--weights", "column=weight, 1 by default. A place is called 'place'.")
    unit: list[str] = flag([], "--unit", "column=unit that the radius names: age=years.")
    latitude: str | None = flag(None, "--latitude", "Column of latitudes in degrees.")
    longitude: str | None = flag(None, "--longitude", "Column of longitudes in degrees.")
    layer: str | None = flag(
        None, "--layer", "Layer of a map of points, whose points are columns too; sheet of an Excel file."
    )
    plane: bool = flag(False, "--plane", "--latitude and --longitude name coordinates of a plane, not degrees.")
    hierarchy: list[str] = typer.Option(
        [], "--hierarchy", rich_help_panel="Columns",
        help="column=file.csv: the distance of two values is the height of their first common class.",
    )  # fmt: skip
    coordinates: list[str] = flag(
        [], "--coordinates", "column=file.csv: codes such as zip codes, with the latitude and longitude of each."
    )

    def read(self) -> FeatureColumns:
        """The columns of these options, and how their values are read and compared."""
        from shoal.cli.common import listed, pairs
        from shoal.engines.features import FeatureColumns

        if (self.latitude is None) != (self.longitude is None):
            raise PolicyError("a place needs both --latitude and --longitude")
        names = listed(self.columns) or []
        place = None if self.latitude is None or self.longitude is None else (self.latitude, self.longitude)
        if not names and place is None:
            raise PolicyError(
                "nothing to measure distance by; name --columns, or --latitude and --longitude (of a map in a plane, "
                "--plane --longitude x --latitude y)"
            )
        weights, units = ([p for text in given for p in text.split(",")] for given in (self.weights, self.unit))
        return FeatureColumns(
            names, listed(self.categories) or [], place, pairs(weights, "--weights", float), pairs(units, "--unit"),
            pairs(self.hierarchy, "--hierarchy"), pairs(self.coordinates, "--coordinates"), self.plane,
            pairs([p for text in self.cyclic for p in text.split(",")], "--cyclic", float), pairs(self.date, "--date"),
            pairs(self.decimal, "--decimal"),
        )  # fmt: skip


class CentersAndOrder(NamedTuple):
    """What is published for each cluster, and in what order."""

    center: str = flag(
        "record", "--center", "record (a real record of the cluster), mean, or medoid (column by column)."
    )
    keep_order: bool = flag(False, "--keep-order", "Keep the order of the rows of --assignments.")
    secret: Path | None = SECRET


@app.command()
@with_options
def gather(
    table: Path = RECORDS,
    asked: dict[str, Any] = conditions(GATHER_CONDITIONS, "r"),
    distance: Distance = Distance(),
    shown: CentersAndOrder = CentersAndOrder(),
    search: ClusterSearch = ClusterSearch(),
    files: ClusterFiles = ClusterFiles(),
    kept: OutputFiles = OutputFiles(),
    decision: Decision = Decision(),
    text: Text = Text(),
    as_json: bool = JSON_,
) -> None:
    """Cluster records, at least r in each cluster, with a small largest radius. Publishes the centers."""
    _run("gather", (GATHER_CONDITIONS, asked, search), table, distance, shown, files, kept, decision, text, as_json)


@app.command()
@with_options
def cellular(
    table: Path = RECORDS,
    asked: dict[str, Any] = conditions(CELLULAR_CONDITIONS, "r"),
    distance: Distance = Distance(),
    shown: CentersAndOrder = CentersAndOrder(),
    search: SumSearch = SumSearch(),
    files: ClusterFiles = ClusterFiles(),
    kept: OutputFiles = OutputFiles(),
    decision: Decision = Decision(),
    text: Text = Text(),
    as_json: bool = JSON_,
) -> None:
    """Cluster records, at least r in each cluster, with a small sum of size times radius. Publishes the centers."""
    _run("cellular", (CELLULAR_CONDITIONS, asked, search), table, distance, shown, files, kept, decision, text, as_json)


def _run(
    problem: str, asked: tuple[Mapping[str, Condition], dict[str, Any], ClusterSearch | SumSearch], table: Path,
    distance: Distance, how: CentersAndOrder, files: ClusterFiles, kept: OutputFiles, decision: Decision, text: Text,
    as_json: bool,
) -> None:  # fmt: skip
    """Reads the table, clusters it with a function of ``shoal.gathering``, writes the release, and prints the answer.

    asked  the problem's conditions, their values, and the options of the search
    """
    from shoal import gathering, release
    from shoal.cli.common import answer, in_flags, put, reported, say, seconds, working
    from shoal.engines.features import Features, codes_of
    from shoal.engines.store import read_table
    from shoal.publishing.crosswalks.clusters import choices

    begun = time.perf_counter()
    conditions_of, options, search = asked
    request, names = distance.read(), options.get("sensitive", [])
    r, epsilon = options["r"], options.get("epsilon", 0.0)
    read_too = [h for h in request.hierarchies.values() if Path(h).exists()]
    used = [table, how.secret, *read_too, *request.coordinates.values()]
    files = files._replace(report=decision.page(files.report))
    refuse_idle(files.assignments, "--assignments", keep_order=how.keep_order, secret=how.secret)
    files.check(used, kept)
    secret = secret_of(how.secret, how.keep_order)
    frame = read_table(table, layer=distance.layer, **text._asdict())
    _refuse(frame, request, names, options, how.center)
    features = Features.of(frame, request)
    codes = codes_of(frame, names) if options.get("l") or options.get("distinct_l") else None
    solve = partial(
        getattr(gathering, problem), tuple(features.values), metric=features.metric, sensitive=codes,
        **{**keywords(conditions_of, options), **search._asdict()},
    )  # fmt: skip
    read = time.perf_counter()
    with working(f"gathering {frame.height:,} records"):
        found = solve()
    solved = time.perf_counter()
    made = release(
        found, frame, read=used, columns=request.columns, place=request.place, hierarchies=request.hierarchies,
        coordinates=request.coordinates, dates=request.dates, decimal=request.decimal, sensitive=names,
        center=how.center, keep_order=how.keep_order, secret=secret,
    )  # fmt: skip
    also = {} if files.assignments is None else {"assignments": files.assignments}
    ways = ((files.plot, "picture"), (files.map_to, "map"), (files.geojson, "GeoJSON"))
    drawn = [(path, partial(made.drawing, what)) for path, what in ways]
    wrote = put(made, files.output, files.certificate, also, drawn, kept=kept)
    if files.choices is not None:
        choices(
            files.choices, lambda least, share: solve(r=least, epsilon=share), frame.height, r, epsilon, read=made.read
        )
    warnings = [in_flags(text) for text in made.warnings]
    if alike := features.named_like_codes():
        warnings.append(
            f"{', '.join(map(repr, alike))}: whole numbers, measured by their difference; where they are codes, alike "
            "or not, name them in --categories"
        )
    for name, notation in features.in_notations(frame, request):
        what, option = ("dates", "--date") if notation[0] == "%" else ("numbers", "--decimal")
        option += f" {shlex.quote(f'{name}={notation}')}"
        warnings.append(f"{name!r}: its {what} count as words, alike or not; say {option} to measure their difference")
    for note in warnings:
        say(f"note: {note}", "warning")
    payload = {
        **found.as_dict(), "smallest_cluster": made.facts["smallest_group"], "r": r, "center": how.center,
        "warnings": warnings, "seconds": seconds(begun, read, solved), **wrote,
        **reported(made, files.report, **decision._asdict()),
    }  # fmt: skip
    ratio = found.certificate.ratio
    written = [str(p) for p in (*files._replace(certificate=None)[:-1], wrote["certificate_file"]) if p is not None]
    lines = [
        f"{made.title} ({found.method})",
        made.note + _optimality(ratio),
        f"{found.left_out:,} of {frame.height:,} records left out" if found.left_out else "nobody left out",
        *features.metric.describe(),
        *(f"wrote {name}" for name in written),
    ]
    answer(payload, lines, as_json)


def _optimality(ratio: Any) -> str:
    """How far the cost is from the minimum, as far as that is known."""
    from shoal.model.certificate import ROUNDING

    if ratio is None:
        return ""
    least = ratio <= 1 + ROUNDING
    return "; the least possible" if least else f"; at most {times(float(ratio))} possible"


def _refuse(
    frame: pl.DataFrame, request: FeatureColumns, names: list[str], options: Mapping[str, Any], center: str
) -> None:
    """Refuses, before any work, what cannot be clustered."""
    from shoal.engines.store import column
    from shoal.publishing.crosswalks.clusters import distinct_names

    if (options.get("l") or options.get("distinct_l")) and not names:
        raise PolicyError("--l and --distinct-l need sensitive values; name their columns with --sensitive")
    distinct_names([*request.columns, *(request.place or ()), *names])
    for name in (*request.columns, *(request.place or ()), *names):
        column(frame, name)
    r = options["r"]
    if frame.height < max(r, 1):
        raise InfeasibleError(
            f"the table has {several(frame.height, 'record')}, so no cluster of r = {r} exists; the largest r possible "
            f"is {frame.height}"
        )
    if request.coordinates and center == "mean":
        raise PolicyError("the mean of places is no code; publish --center record or medoid")
