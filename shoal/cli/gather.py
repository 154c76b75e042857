"""``shoal gather`` and ``shoal cellular``: records clustered by distance and published as centers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from shoal.cli.app import app
from shoal.cli.models import with_options
from shoal.cli.options import Text

if TYPE_CHECKING:
    import polars as pl

    from shoal.engines.features import Asked

Table = Annotated[Path, typer.Argument(help="Table with a row per record: CSV (also .gz), Parquet or Excel.")]
Least = Annotated[int, typer.Option("--r", help="Least records of a cluster.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Share of the records that may be left out.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of the search where it draws; never of the row order.")]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


class Files(NamedTuple):
    """What to write, where asked for."""

    output: Annotated[Path | None, typer.Option("-o", "--output", help="A row per cluster.")] = None
    assignments: Annotated[
        Path | None,
        typer.Option("--assignments", help="A row per record, its cluster's center in place of its values."),
    ] = None
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="The certificate; beside the output by default.")
    ] = None
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Clusters in pairs of columns, and radii: .png, .svg or .pdf.")
    ] = None
    choices: Annotated[
        Path | None, typer.Option("--choices", help="Picture of the cost against r and epsilon, around those asked.")
    ] = None
    map_to: Annotated[Path | None, typer.Option("--map", help="A circle per cluster: .html, .png, .svg or .pdf.")] = (
        None
    )
    geojson: Annotated[Path | None, typer.Option("--geojson", help="A circle per cluster, as GeoJSON.")] = None
    report: Annotated[
        Path | None, typer.Option("--report", help="A page for a review board that opens offline: .html.")
    ] = None

    def check(self, read: list[Any], force: bool) -> None:
        """Refuse targets that would do harm, before any work."""
        from shoal.cli.common import beside
        from shoal.engines.targets import GEOJSON, JSON, MAP, PAGE, PICTURE, TABLE, check_outputs

        forms = (TABLE, TABLE, JSON, PICTURE, PICTURE, MAP, GEOJSON, PAGE)
        paths = self._replace(certificate=beside(self.output or self.assignments, self.certificate))
        check_outputs(zip(paths, forms, strict=True), read, overwrite=force)


class Distance(NamedTuple):
    """What makes up the distance, as it stands on the command line."""

    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", help="Columns that make up the distance: numbers and dates by their range, others 0/1."
        ),
    ] = None
    categories: Annotated[
        str | None, typer.Option("--categories", help="Those of them that only look like numbers.")
    ] = None
    cyclic: Annotated[
        list[str] | None,
        typer.Option("--cyclic", help="column=period, for numbers that go around a circle: hour=24, bearing=360."),
    ] = None
    weights: Annotated[
        list[str] | None,
        typer.Option("--weight", "--weights", help="column=weight, 1 by default; the place is 'place'."),
    ] = None
    unit: Annotated[list[str] | None, typer.Option("--unit", help="column=unit, for the words: age=years.")] = None
    latitude: Annotated[str | None, typer.Option("--latitude", help="Column of latitudes in degrees.")] = None
    longitude: Annotated[str | None, typer.Option("--longitude", help="Column of longitudes in degrees.")] = None
    plane: Annotated[
        bool, typer.Option("--plane", help="--latitude and --longitude name lengths in a plane, not degrees.")
    ] = False
    hierarchy: Annotated[
        list[str] | None,
        typer.Option(
            "--hierarchy", help="column=file.csv: values are as far apart as their first common class is high."
        ),
    ] = None
    coordinates: Annotated[
        list[str] | None,
        typer.Option(
            "--coordinates", help="column=file.csv: codes such as zip codes, by their latitude and longitude."
        ),
    ] = None

    def read(self) -> Asked:
        """The same as values."""
        from shoal.cli.common import listed, pairs
        from shoal.engines.features import Asked
        from shoal.errors import PolicyError

        if (self.latitude is None) != (self.longitude is None):
            raise PolicyError("a place needs both --latitude and --longitude")
        names = listed(self.columns) or []
        place = None if self.latitude is None or self.longitude is None else (self.latitude, self.longitude)
        if not names and place is None:
            raise PolicyError("nothing to measure distance by; name --columns, or --latitude and --longitude")
        weights, units = ([p for text in given or [] for p in text.split(",")] for given in (self.weights, self.unit))
        return Asked(
            names, listed(self.categories) or [], place, pairs(weights, "--weights", float), pairs(units, "--unit"),
            pairs(self.hierarchy or [], "--hierarchy"), pairs(self.coordinates or [], "--coordinates"), self.plane,
            pairs([p for text in self.cyclic or [] for p in text.split(",")], "--cyclic", float),
        )  # fmt: skip


class Shown(NamedTuple):
    """What is published, and how."""

    sensitive: Annotated[
        str | None, typer.Option("--sensitive", help="Columns published as multisets per cluster.")
    ] = None
    l: Annotated[int | None, typer.Option("--l", help="At most 1/l of a cluster share a sensitive value.")] = None
    distinct_l: Annotated[int | None, typer.Option("--distinct-l", help="Least sensitive values of a cluster.")] = None
    center: Annotated[
        str, typer.Option("--center", help="record (a real one of the cluster's), mean, or medoid (column by column).")
    ] = "record"
    keep_order: Annotated[bool, typer.Option("--keep-order", help="Leave the rows of --assignments in order.")] = False
    secret: Annotated[
        Path | None,
        typer.Option("--secret", help="File of 16 bytes or more that fixes the row order; fresh by default."),
    ] = None


Given = tuple[Any, Any, Any]  # points, metric, sensitive values as codes


@app.command()
@with_options
def gather(
    table: Table,
    r: Least,
    distance: Distance = Distance(),
    epsilon: Epsilon = 0.0,
    max_clusters: Annotated[int | None, typer.Option("--max-clusters", help="At most this many clusters.")] = None,
    shown: Shown = Shown(),
    method: Annotated[
        str, typer.Option("--method", help="auto, local, disjoint, threshold, peeling, rounds or exact.")
    ] = "auto",
    improve: Annotated[bool, typer.Option("--improve", help="Search on for a smaller radius.")] = False,
    seed: Seed = None,
    files: Files = Files(),
    text: Text = Text(),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Cluster records so that each cluster has at least r and the largest radius is small; publish the centers."""

    def solve(given: Given, least: int = r, share: float = epsilon) -> Any:
        from shoal.problems.gathering import gather as solve_gather

        points, metric, codes = given
        return solve_gather(
            points, least, share, max_clusters, metric, method=method, improve=improve, sensitive=codes, l=shown.l,
            distinct_l=shown.distinct_l,
        )  # fmt: skip

    _run(table, (r, epsilon), distance, shown, files, text, force, as_json, solve)


@app.command()
@with_options
def cellular(
    table: Table,
    r: Least,
    distance: Distance = Distance(),
    setup_cost: Annotated[float | None, typer.Option("--setup-cost", help="Cost of each cluster.")] = None,
    epsilon: Epsilon = 0.0,
    max_diameter: Annotated[float | None, typer.Option("--max-diameter", help="Largest diameter of a cluster.")] = None,
    shown: Shown = Shown(),
    method: Annotated[
        str, typer.Option("--method", help="auto, search, three_step or exact; without --r also tight, procedure_one.")
    ] = "auto",
    effort: Annotated[str, typer.Option("--effort", help="fast, balanced or thorough.")] = "balanced",
    seed: Seed = None,
    files: Files = Files(),
    text: Text = Text(),
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Cluster records, at least r each, so that the sum of size times radius is small; publish the centers."""

    def solve(given: Given, least: int = r, share: float = epsilon) -> Any:
        from shoal.problems.gathering import cellular as solve_cellular

        points, metric, codes = given
        return solve_cellular(
            points, least, setup_cost, share, max_diameter, metric, method=method, effort=effort, sensitive=codes,
            l=shown.l, distinct_l=shown.distinct_l, seed=seed,
        )  # fmt: skip

    _run(table, (r, epsilon), distance, shown, files, text, force, as_json, solve)


def _run(
    table: Path, size: tuple[int, float], asked: Distance, how: Shown, files: Files,
    text: Text, force: bool, as_json: bool, solve: Callable[..., Any],
) -> None:  # fmt: skip
    """Read, cluster, release, write, say."""
    from shoal import release
    from shoal.cli.common import answer, listed, put, reported, seconds, working
    from shoal.engines.features import Features
    from shoal.engines.files import read_table
    from shoal.engines.order import read_secret
    from shoal.publishing.clusters import choices

    begun = time.perf_counter()
    told, names = asked.read(), listed(how.sensitive) or []
    read_too = [h for h in told.hierarchies.values() if Path(h).exists()]
    used = [table, how.secret, *read_too, *told.coordinates.values()]
    files.check(used, force)
    secret = None if how.secret is None else read_secret(how.secret)
    frame = read_table(table, separator=text.separator, encoding=text.encoding)
    _refuse(frame, told, names, how, size[0])
    features = Features.of(frame, told)
    given = tuple(features.values), features.metric, _codes(frame, names) if how.l or how.distinct_l else None
    read = time.perf_counter()
    with working(f"gathering {frame.height:,} records"):
        found = solve(given)
    solved = time.perf_counter()
    made = release(
        found, frame, read=used, columns=told.columns, place=told.place, hierarchies=told.hierarchies,
        coordinates=told.coordinates, sensitive=names, center=how.center, keep_order=how.keep_order, secret=secret,
    )  # fmt: skip
    also = {} if files.assignments is None else {"assignments": files.assignments}
    ways = ((files.plot, "picture"), (files.map_to, "map"), (files.geojson, "GeoJSON"))
    wrote = put(made, files.output, files.certificate, also, [(p, partial(made.drawing, what)) for p, what in ways])
    if files.choices is not None:
        choices(files.choices, lambda least, share: solve(given, least, share), frame.height, *size)
    _warn(made.warnings)
    payload = {
        **found.as_dict(), "smallest_cluster": made.facts["smallest_group"], "r": size[0], "center": how.center,
        "warnings": list(made.warnings), "seconds": seconds(begun, read, solved), **wrote,
        **reported(made, files.report),
    }  # fmt: skip
    ratio = found.certificate.ratio
    written = [str(p) for p in (*files._replace(certificate=None), wrote["certificate_file"]) if p is not None]
    lines = [
        f"{made.title} ({found.method})",
        made.note + _proved(ratio),
        f"{found.left_out:,} of {frame.height:,} records left out" if found.left_out else "nobody left out",
        *features.metric.describe(),
        *(f"wrote {name}" for name in written),
    ]
    answer(payload, lines, as_json)


def _proved(ratio: Any) -> str:
    """How far from the least possible, as far as that is known."""
    from shoal.model.cards import times
    from shoal.model.certificate import ROUNDING

    if ratio is None:
        return ""
    least = ratio <= 1 + ROUNDING
    return "; the least possible" if least else f"; at most {times(float(ratio))} possible"


def _refuse(frame: pl.DataFrame, told: Asked, names: list[str], how: Shown, r: int) -> None:
    """What no clustering can be made of, before any work."""
    from shoal.engines.files import column
    from shoal.errors import InfeasibleError, PolicyError
    from shoal.publishing.clusters import distinct_names

    if (how.l or how.distinct_l) and not names:
        raise PolicyError("--l and --distinct-l speak of sensitive values; name their columns with --sensitive")
    distinct_names([*told.columns, *(told.place or ()), *names])
    for name in (*told.columns, *(told.place or ()), *names):
        column(frame, name)
    if frame.height < max(r, 1):
        raise InfeasibleError(
            f"the table has {frame.height} records, so no cluster of r = {r} exists; the largest r possible is "
            f"{frame.height}"
        )
    if told.coordinates and how.center == "mean":
        raise PolicyError("the mean of places is no code; publish --center record or medoid")


def _codes(frame: pl.DataFrame, names: list[str]) -> Any:
    """int64[n, s]: a missing value is a value of its own."""
    import polars as pl

    return frame.select(pl.col(names).cast(pl.String).rank("dense").fill_null(0).cast(pl.Int64)).to_numpy()


def _warn(warnings: tuple[str, ...]) -> None:
    for text in warnings:
        typer.echo(f"note: {text}", err=True)
