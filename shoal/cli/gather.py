"""``shoal gather`` and ``shoal cellular``: records clustered by distance and published as centers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.app import app

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from shoal.engines.features import Features
    from shoal.publishing.centers import Published

Table = Annotated[Path, typer.Argument(help="Table with a row per record: CSV (also .gz), Parquet or Excel.")]
Columns = Annotated[
    str | None,
    typer.Option("--columns", help="Columns that make up the distance: numbers and dates by their range, others 0/1."),
]
Categories = Annotated[str | None, typer.Option("--categories", help="Those of them that only look like numbers.")]
Weights = Annotated[
    list[str] | None, typer.Option("--weight", "--weights", help="column=weight, 1 by default; the place is 'place'.")
]
Units = Annotated[list[str] | None, typer.Option("--unit", help="column=unit, for the words: age=years.")]
Hierarchies = Annotated[
    list[str] | None,
    typer.Option("--hierarchy", help="column=file.csv: values are as far apart as their first common class is high."),
]
Coordinates = Annotated[
    list[str] | None,
    typer.Option("--coordinates", help="column=file.csv: codes such as zip codes, by their latitude and longitude."),
]
Plane = Annotated[
    bool, typer.Option("--plane", help="--latitude and --longitude name lengths in a plane, not degrees.")
]
Latitude = Annotated[str | None, typer.Option("--latitude", help="Column of latitudes in degrees.")]
Longitude = Annotated[str | None, typer.Option("--longitude", help="Column of longitudes in degrees.")]
Least = Annotated[int, typer.Option("--r", help="Least records of a cluster.")]
Epsilon = Annotated[float, typer.Option("--epsilon", help="Share of the records that may be left out.")]
Sensitive = Annotated[str | None, typer.Option("--sensitive", help="Columns published as multisets per cluster.")]
Centers = Annotated[
    str, typer.Option("--center", help="record (one of the cluster's), mean, or medoid (column by column).")
]
Output = Annotated[Path | None, typer.Option("-o", "--output", help="A row per cluster.")]
Assignments = Annotated[
    Path | None, typer.Option("--assignments", help="A row per record, its cluster's center in place of its values.")
]
KeepOrder = Annotated[bool, typer.Option("--keep-order", help="Leave the rows of --assignments in order.")]
Seed = Annotated[int | None, typer.Option("--seed", help="Of the search where it draws; never of the row order.")]
Secret = Annotated[
    Path | None, typer.Option("--secret", help="File of 16 bytes or more that fixes the row order; fresh by default.")
]
CertificateTo = Annotated[Path | None, typer.Option("--certificate", help="Write the certificate as JSON.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="Clusters and radii: .png, .svg or .pdf.")]
Choices = Annotated[
    Path | None, typer.Option("--choices", help="Picture of the cost against r and epsilon, around those asked.")
]
FrequencyL = Annotated[int | None, typer.Option("--l", help="At most 1/l of a cluster share a sensitive value.")]
DistinctL = Annotated[int | None, typer.Option("--distinct-l", help="Least sensitive values of a cluster.")]
Separator = Annotated[str | None, typer.Option("--separator", help="Column separator of a CSV, told by default.")]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Of a CSV: utf-8 (default) or latin-1.")]
Force = Annotated[bool, typer.Option("--force", help="Replace outputs that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.command()
def gather(
    table: Table,
    r: Least,
    columns: Columns = None,
    categories: Categories = None,
    weights: Weights = None,
    unit: Units = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    plane: Plane = False,
    hierarchy: Hierarchies = None,
    coordinates: Coordinates = None,
    epsilon: Epsilon = 0.0,
    max_clusters: Annotated[int | None, typer.Option("--max-clusters", help="At most this many clusters.")] = None,
    sensitive: Sensitive = None,
    l: FrequencyL = None,
    distinct_l: DistinctL = None,
    method: Annotated[
        str, typer.Option("--method", help="auto, local, disjoint, threshold, peeling, rounds or exact.")
    ] = "auto",
    improve: Annotated[bool, typer.Option("--improve", help="Search on for a smaller radius.")] = False,
    center: Centers = "record",
    output: Output = None,
    assignments: Assignments = None,
    keep_order: KeepOrder = False,
    seed: Seed = None,
    secret: Secret = None,
    certificate: CertificateTo = None,
    plot: Plot = None,
    choices: Choices = None,
    separator: Separator = None,
    encoding: Encoding = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Cluster records so that each cluster has at least r and the largest radius is small; publish the centers."""

    def solve(points: Any, metric: Any, codes: Any, least: int = r, share: float = epsilon) -> Any:
        from shoal.problems.gathering import gather as solve_gather

        return solve_gather(
            points, least, share, max_clusters, metric, method=method, improve=improve, sensitive=codes, l=l,
            distinct_l=distinct_l,
        )  # fmt: skip

    asked = (columns, categories, weights, unit, latitude, longitude, hierarchy, coordinates, plane)
    paths = (output, assignments, certificate, plot, choices)
    how = ((separator, encoding), (force, as_json))
    _run(table, r, asked, epsilon, sensitive, l, distinct_l, center, paths, keep_order, secret, how, solve)


@app.command()
def cellular(
    table: Table,
    r: Least,
    columns: Columns = None,
    categories: Categories = None,
    weights: Weights = None,
    unit: Units = None,
    latitude: Latitude = None,
    longitude: Longitude = None,
    plane: Plane = False,
    hierarchy: Hierarchies = None,
    coordinates: Coordinates = None,
    setup_cost: Annotated[float | None, typer.Option("--setup-cost", help="Cost of each cluster.")] = None,
    epsilon: Epsilon = 0.0,
    max_diameter: Annotated[float | None, typer.Option("--max-diameter", help="Largest diameter of a cluster.")] = None,
    sensitive: Sensitive = None,
    l: FrequencyL = None,
    distinct_l: DistinctL = None,
    method: Annotated[
        str, typer.Option("--method", help="auto, search, three_step or exact; without --r also tight, procedure_one.")
    ] = "auto",
    effort: Annotated[str, typer.Option("--effort", help="fast, balanced or thorough.")] = "balanced",
    center: Centers = "record",
    output: Output = None,
    assignments: Assignments = None,
    keep_order: KeepOrder = False,
    seed: Seed = None,
    secret: Secret = None,
    certificate: CertificateTo = None,
    plot: Plot = None,
    choices: Choices = None,
    separator: Separator = None,
    encoding: Encoding = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Cluster records, at least r each, so that the sum of size times radius is small; publish the centers."""

    def solve(points: Any, metric: Any, codes: Any, least: int = r, share: float = epsilon) -> Any:
        from shoal.problems.gathering import cellular as solve_cellular

        return solve_cellular(
            points, least, setup_cost, share, max_diameter, metric, method=method, effort=effort, sensitive=codes, l=l,
            distinct_l=distinct_l, seed=seed,
        )  # fmt: skip

    asked = (columns, categories, weights, unit, latitude, longitude, hierarchy, coordinates, plane)
    paths = (output, assignments, certificate, plot, choices)
    how = ((separator, encoding), (force, as_json))
    _run(table, r, asked, epsilon, sensitive, l, distinct_l, center, paths, keep_order, secret, how, solve)


def _run(
    table: Path, r: int, asked: tuple[Any, ...], epsilon: float, sensitive: str | None, l: int | None,
    distinct_l: int | None, center: str, paths: tuple[Path | None, ...], keep_order: bool, order_by: Path | None,
    how: tuple[tuple[str | None, str | None], tuple[bool, bool]], solve: Callable[..., Any],
) -> None:  # fmt: skip
    import time

    import polars as pl

    from shoal.cli.common import answer, listed, pairs, working
    from shoal.engines.atomic import publish_file, publish_text
    from shoal.engines.features import Asked, Features
    from shoal.engines.files import column, read_table
    from shoal.engines.store import write_table
    from shoal.engines.targets import JSON, PICTURE, TABLE, check_outputs
    from shoal.errors import InfeasibleError, PolicyError
    from shoal.publishing.centers import publish, verify

    begun = time.perf_counter()
    output, assignments, certificate, plot, choices = paths
    columns, categories, weights, units, latitude, longitude, hierarchy, coordinates, plane = asked
    hierarchies, located = pairs(hierarchy or [], "--hierarchy"), pairs(coordinates or [], "--coordinates")
    text, (force, as_json) = how
    forms = (TABLE, TABLE, JSON, PICTURE, PICTURE)
    read_too = [h for h in hierarchies.values() if Path(h).exists()]
    closed = check_outputs(
        zip(paths, forms, strict=True), [table, order_by, *read_too, *located.values()], overwrite=force
    )
    names = listed(columns) or []
    if (latitude is None) != (longitude is None):
        raise PolicyError("a place needs both --latitude and --longitude")
    place = None if latitude is None else (latitude, longitude)
    if not names and place is None:
        raise PolicyError("nothing to measure distance by; name --columns, or --latitude and --longitude")
    secret = listed(sensitive) or []
    if (l or distinct_l) and not secret:
        raise PolicyError("--l and --distinct-l speak of sensitive values; name their columns with --sensitive")
    _distinct_names([*names, *(place or ()), *secret])
    frame = read_table(table, separator=text[0], encoding=text[1])
    for name in (*names, *(place or ()), *secret):
        column(frame, name)
    if frame.height < max(r, 1):
        raise InfeasibleError(
            f"the table has {frame.height} records, so no cluster of r = {r} exists; the largest r possible is "
            f"{frame.height}"
        )
    weigh = [part for text in weights or [] for part in text.split(",")]
    call_units = [part for text in units or [] for part in text.split(",")]
    told = Asked(
        names, listed(categories) or [], place, pairs(weigh, "--weights", float), pairs(call_units, "--unit"),
        hierarchies, located, plane,
    )  # fmt: skip
    features = Features.of(frame, told)
    if located and center == "mean":
        raise PolicyError("the mean of places is no code; publish --center record or medoid")
    multisets = {name: frame[name].cast(pl.String).to_list() for name in secret}
    codes = _codes(multisets) if l or distinct_l else None
    read = time.perf_counter()
    with working(f"gathering {frame.height:,} records"):
        found = solve(tuple(features.values), features.metric, codes)
    solved = time.perf_counter()
    form = publish(found.labels, found.center_rows, features.metric, features.values, multisets, center)
    kept = frame.height - found.left_out
    verify(form, kept, r, l or 1, distinct_l or 1)
    centers = _centers(form, features)
    if output is not None:
        write_table(centers, output, closed=closed)
    if assignments is not None:
        rows = _rows(found.labels, centers, multisets, r, keep_order, order_by)
        write_table(rows, assignments, closed=closed)
    note = (
        f"largest radius {found.radius:.4g} {features.metric.unit}, no answer below "
        f"{found.certificate.lower_bound:.4g}; mean distance {found.mean_distance:.4g}"
        if found.certificate.unit == features.metric.unit
        else f"cost {found.cost:.4g}, no answer below {found.certificate.lower_bound:.4g}; largest radius "
        f"{found.radius:.4g} {features.metric.unit}, mean distance {found.mean_distance:.4g}"
    )
    title = f"{found.clusters:,} clusters of at least {r:,} records"
    if plot is not None:
        from shoal.report.clusters import draw

        publish_file(
            plot,
            lambda to: draw(to, form, found.radii, features.metric.unit, title=title, note=note),
            closed=closed,
        )
    if choices is not None:
        from shoal.report.clusters import draw_choices

        costs = [
            (least, share, g.cost, g.certificate.lower_bound, g.mean_distance)
            for least in sorted({max(2, r // 2), r, 2 * r, 4 * r})
            for share in sorted({0.0, 0.01, 0.05, epsilon})
            if least <= frame.height
            for g in [solve(tuple(features.values), features.metric, codes, least, share)]
        ]
        publish_file(
            choices,
            lambda to: draw_choices(to, costs, features.metric.unit, found.certificate.unit),
            closed=closed,
        )
    if certificate is not None:
        publish_text(certificate, found.certificate.to_json() + "\n", closed=closed)
    done = time.perf_counter()
    payload = {
        **found.as_dict(),
        "smallest_cluster": int(form.records.min(initial=frame.height)) if form.records.size else 0,
        "r": r,
        "center": center,
        "seconds": {"read": read - begun, "solve": solved - read, "write": done - solved},
        "output": None if output is None else str(output),
    }
    from shoal.model.cards import times

    ratio = found.certificate.ratio
    lines = [
        f"{title} ({found.method})",
        note + ("" if ratio is None else f"; at most {times(float(ratio))} possible"),
        f"{found.left_out:,} of {frame.height:,} records left out" if found.left_out else "nobody left out",
        *features.metric.describe(),
        *(f"wrote {p}" for p in paths if p is not None),
    ]
    answer(payload, lines, as_json)


def _codes(multisets: dict[str, list[str | None]]) -> np.ndarray:
    """int64[n, s]: a missing value is a value of its own."""
    import numpy as np

    parts = []
    for texts in multisets.values():
        known: dict[str | None, int] = {}
        parts.append([known.setdefault(t, len(known)) for t in texts])
    return np.array(parts, np.int64).T


def _distinct_names(names: list[str]) -> None:
    from shoal.errors import PolicyError

    for i, name in enumerate(names):
        if name in names[:i]:
            raise PolicyError(f"column {name!r} is named twice among columns, coordinates and sensitive ones")
        if name in ("cluster", "records", "radius"):
            raise PolicyError(f"column {name!r} has the name of one that is added; rename it")


def _centers(form: Published, features: Features) -> pl.DataFrame:
    """A row per cluster."""
    import numpy as np
    import polars as pl

    from shoal.publishing.centers import texts

    out: dict[str, Any] = {"cluster": np.arange(form.records.size)}
    for center, names, values, codes in zip(form.centers, features.names, features.texts, features.codes, strict=True):
        shown = [[codes[x, y] for x, y in center.value.tolist()]] if codes else texts(center, values)
        out |= dict(zip(names, shown, strict=True))
    out |= {"records": form.records, "radius": form.radius}
    return pl.DataFrame(out | {name: form.multisets(name) for name in form.sensitive})


def _rows(
    labels: np.ndarray,
    centers: pl.DataFrame,
    multisets: dict[str, list[str | None]],
    r: int,
    keep: bool,
    secret: Path | None,
) -> pl.DataFrame:
    """A row per record that is kept: its cluster's line, and its own sensitive values; nothing else of it."""
    import numpy as np
    import polars as pl

    from shoal.engines.order import shuffled
    from shoal.errors import VerificationError

    here = np.flatnonzero(labels >= 0)
    line = centers.drop(list(multisets))[labels[here]]
    own = [pl.Series(name, texts, dtype=pl.String)[here] for name, texts in multisets.items()]
    out = pl.concat([line, pl.DataFrame(own)], how="horizontal") if own else line
    if out.height and int(out["cluster"].value_counts()["count"].min()) < r:  # type: ignore[arg-type]
        raise VerificationError(f"a cluster would stand in fewer than r = {r} rows")
    return out if keep else out[shuffled(labels[here], secret)]
