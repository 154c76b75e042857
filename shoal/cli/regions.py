"""``shoal regions``: areas merged into connected regions of weight at least k."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.app import app

if TYPE_CHECKING:
    from shoal.engines.geography import Geography
    from shoal.problems.regions import Regions


@app.command()
def regions(
    areas: Path = typer.Argument(..., help="A row per area (CSV, Parquet, Excel), or polygons (GeoJSON, TopoJSON)."),
    edges: Path | None = typer.Argument(
        None, help="A row per pair of neighbours; without it, areas are neighbours whose polygons share a border."
    ),
    weight: list[str] = typer.Option(..., "--weight", help="Column with the weight of an area; repeat for several."),
    k: list[int] = typer.Option(..., "--k", help="Least weight of a region; one for each --weight, in order."),
    id: str | None = typer.Option(None, "--id", help="Column that names an area; 'id', or else the first."),
    source: str | None = typer.Option(None, "--source", help="Column of EDGES; 'u' or 'source', or else the first."),
    target: str | None = typer.Option(None, "--target", help="Column of EDGES; 'v' or 'target', or else the second."),
    boundary: str | None = typer.Option(None, "--boundary", help="Column no region may mix, such as state."),
    soft_boundary: str | None = typer.Option(
        None, "--soft-boundary", help="Column a region mixes only for areas too light to be a region inside."
    ),
    at_most: list[str] = typer.Option(
        [], "--at-most", help="COLUMN=VALUE: largest sum of a region; areas=VALUE counts areas. Repeat for several."
    ),
    fixed: str | None = typer.Option(None, "--fixed", help="Column: areas with the same value stay together."),
    apart: str | None = typer.Option(None, "--apart", help="Column: areas with the same value share no region."),
    exclude: str | None = typer.Option(None, "--exclude", help="Column: areas where it says yes, true or 1 stay out."),
    sums: str | None = typer.Option(None, "--sum", help="Columns summed over each region, with commas between."),
    means: str | None = typer.Option(
        None, "--mean", help="Columns averaged over each region by the first weight, with commas between."
    ),
    sensitive: str | None = typer.Option(
        None, "--sensitive", help="Columns that count sensitive values, with commas between; needs --l."
    ),
    l: int = typer.Option(1, "--l", help="In each region no sensitive value has more than 1/l of the records."),
    method: str = typer.Option("auto", "--method", help="auto, tree, search or exact."),
    objective: str = typer.Option(
        "max", "--objective", help="max, count, sumsq, excess or compact; or several in your order: max,count,compact."
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
    map_to: Path | None = typer.Option(None, "--map", help="Map that opens offline: .html."),
    png: Path | None = typer.Option(None, "--png", help="Picture of the map: .png, .svg or .pdf."),
    certificate: Path | None = typer.Option(None, "--certificate", help="Write the certificate as JSON."),
    force: bool = typer.Option(False, "--force", help="Replace outputs that exist."),
    as_json: bool = typer.Option(False, "--json", help="One JSON object on standard output."),
) -> None:
    """Merge neighbouring areas (zip codes, counties) until each region weighs at least k."""
    import time

    import numpy as np

    from shoal.cli.common import answer, listed, working
    from shoal.engines.atomic import publish_file, publish_text
    from shoal.engines.geography import read
    from shoal.engines.targets import JSON, OUTLINES, PAGE, PICTURE, TABLE, check_outputs
    from shoal.engines.vector import check_outlines
    from shoal.errors import PolicyError
    from shoal.problems.regions import merge, region_names

    begun = time.perf_counter()
    written = (output, dissolved, map_to, png, certificate)
    forms = (TABLE, OUTLINES, PAGE, PICTURE, JSON)
    closed = check_outputs(zip(written, forms, strict=True), (areas, edges, shapes), overwrite=force)
    if dissolved is not None:
        check_outlines(dissolved)
    if len(weight) != len(k):
        raise PolicyError(f"there are {len(k)} of --k for {len(weight)} of --weight; give one for each")
    if islands not in ("leave", "join"):
        raise PolicyError.unknown("way to treat islands", islands, ("leave", "join"))
    if coordinates not in ("auto", "geographic", "projected"):
        raise PolicyError.unknown("kind of coordinates", coordinates, ("auto", "geographic", "projected"))
    given = read(
        areas, edges, id=id, source=source, target=target, shapes=shapes, shape_id=shape_id, unmatched=unmatched,
        tolerance=tolerance,
    )  # fmt: skip
    degrees = given.geographic() if coordinates == "auto" else coordinates == "geographic"
    if any(p is not None for p in (dissolved, map_to, png)) and not given.shapes:
        raise PolicyError("--dissolved, --map and --png draw polygons; name their file with --shapes")
    weights = np.column_stack([given.whole(name) for name in weight])
    named = listed(sensitive)
    names_wanted = listed(objective) or ["max"]
    options: dict[str, Any] = {
        "objective": names_wanted[0] if len(names_wanted) == 1 else names_wanted,
        "boundaries": None if boundary is None else given.column(boundary),
        "sensitive": None if not named else np.column_stack([given.whole(name) for name in named]),
        "l": l,
        "coordinates": given.centers() if islands == "join" or "compact" in names_wanted else None,
        "geographic": degrees,
        "light": "nearest" if islands == "join" else "leave",
        "seed": seed,
        "unit": weight[0],
        **_asked(given, soft_boundary, at_most, fixed, apart, exclude),
    }
    columns = (
        {name: given.number(name) for name in listed(sums) or []},
        {name: given.number(name) for name in listed(means) or []},
        weights[:, 0],
    )
    loaded = time.perf_counter()
    with working(f"merging {len(given.ids):,} areas"):
        found = merge(given.edges, weights, k, method, effort=_effort(effort), **options)
    solved = time.perf_counter()
    called = region_names(given.ids, found.labels)
    light = _light(given, weights, found, options)
    rows = []
    if compare_prefix is not None:
        rows = _compared(given, weights[:, 0], k[0], compare_prefix, found, options, method)
    title = f"{found.regions:,} regions of at least {k[0]:,} {weight[0]}"
    note = (
        f"{len(given.ids):,} areas; heaviest region {found.largest:,}, none below {found.largest_bound:,} possible; "
        f"at most {found.upper_bound:,} regions exist."
    )
    if output is not None:
        _crosswalk(given, found, output, weight, columns, closed)
    if dissolved is not None:
        _dissolve(given, degrees, weight, columns, found, called, dissolved, closed)
    drawn = [path for path in (map_to, png) if path is not None]
    if drawn:
        from shoal.report.maps import draw

        label = [str(n) for n in given.columns.get("name", given.ids)]
        shown = ([given.shapes.get(i, []) for i in given.ids], found.labels, given.ids, weights[:, 0])
        how: dict[str, Any] = {
            "regions": called, "areas": label, "k": k[0], "unit": weight[0], "geographic": degrees,
            "title": title, "note": note,
        }  # fmt: skip
        for path in drawn:
            publish_file(path, lambda to: draw(to, *shown, **how), closed=closed)
    if certificate is not None:
        publish_text(certificate, found.certificate.to_json() + "\n", closed=closed)
    done = time.perf_counter()
    payload: dict[str, Any] = {
        "areas": len(given.ids),
        "neighbors": len(given.edges),
        "drawing": given.facts,
        "said": list(given.said),
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
        "light_components": light,
        "comparison": rows,
        "cost": found.cost,
        "certificate": found.certificate.as_dict(),
        "method": found.method,
        "objective": objective,
        "seconds": {"read": loaded - begun, "solve": solved - loaded, "write": done - solved},
        "output": None if output is None else str(output),
    }
    lines = [
        f"{title} ({found.method})",
        *given.said,
        note,
        f"Sum of squares {found.squares / k[0] ** 2:,.1f} k², none below {found.squares_bound / k[0] ** 2:,.1f} k².",
        *_obeyed(found),
        *_told(light, k),
        *_table(rows),
        *(f"wrote {p}" for p in written if p is not None),
    ]
    answer(payload, lines, as_json)


def _effort(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _light(given: Geography, weights: Any, found: Regions, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Components (within the boundary) too light to be a region, before any was joined, and what became of them."""
    import numpy as np

    from shoal.problems.regions.graph import coded, components, graph, without_crossings

    n = len(given.ids)
    g = graph(given.edges, n)
    if options["boundaries"] is not None:
        g = without_crossings(g, coded(options["boundaries"], n, "boundaries"))
    _, component = components(g)
    touched = np.zeros(n, np.bool_)
    touched[found.joined.ravel()] = True
    asked = options["exclude"] if options["exclude"] is not None else np.zeros(n, np.bool_)
    out = []
    for c in np.unique(component[((found.labels < 0) & ~asked) | touched]).tolist():
        member = np.flatnonzero(component == c)
        lost = bool((found.labels[member] < 0).all())
        total = weights[member].sum(axis=0)
        if lost or (total < np.array(found.k)).any():
            out.append(
                {
                    "areas": [given.ids[i] for i in member],
                    "weight": total.tolist() if len(total) > 1 else int(total[0]),
                    "outcome": "left out" if lost else "joined",
                }
            )
    return out


def _obeyed(found: Regions) -> list[str]:
    """What exclusions, maxima and soft boundaries came to."""
    facts = found.certificate.details
    said = {
        "excluded": "{} areas excluded",
        "left_out_by_maxima": "{} areas are in no region, for none can take them under the maxima",
        "above_a_maximum_alone": "{} areas are above a maximum by themselves, and left alone",
        "regions_across_soft_boundaries": "{} regions mix areas of different sides of the soft boundary",
    }
    return [text.format(f"{facts[name]:,}") for name, text in said.items() if facts.get(name) is not None]


def _told(light: list[dict[str, Any]], k: list[int]) -> list[str]:
    """The light components for people."""
    if not light:
        return []
    lines = [f"{len(light)} sets of areas, apart from all others, are too light to be a region:"]
    for part in light[:12]:
        areas = part["areas"]
        shown = ", ".join(areas[:6]) + (f" and {len(areas) - 6} more" if len(areas) > 6 else "")
        weight = part["weight"]
        said = f"{weight:,}" if isinstance(weight, int) else " / ".join(f"{w:,}" for w in weight)
        lines.append(f"  {shown}: {said}, {part['outcome']}")
    if len(light) > 12:
        lines.append(f"  and {len(light) - 12} more (--json lists all)")
    if any(part["outcome"] == "left out" for part in light):
        lines.append("  (--islands join makes each a neighbour of the nearest)")
    return lines


def _compared(
    given: Geography, weight: Any, k: int, prefix: int, found: Regions, options: dict[str, Any], method: str
) -> list[dict[str, Any]]:
    """Truncation, the paper's tree and the answer, side by side."""
    from shoal.errors import PolicyError
    from shoal.problems.regions import merge
    from shoal.problems.regions.graph import coded, graph

    if prefix < 1:
        raise PolicyError(f"--compare-prefix must be at least 1, not {prefix}")
    n = len(given.ids)
    group = coded([i[:prefix] for i in given.ids], n, "prefixes")
    g = graph(given.edges, n)
    rows = [_row(f"first {prefix} characters", group, weight, k, group, g)]
    if method != "tree" and len(found.k) == 1 and found.certificate.details["l"] == 1:
        tree = merge(given.edges, weight, k, "tree", **options)
        rows.append(_row("tree", tree.labels, weight, k, group, graph(_with(given.edges, tree), n)))
    rows.append(_row(method, found.labels, weight, k, group, graph(_with(given.edges, found), n)))
    return rows


def _with(edges: Any, found: Regions) -> Any:
    import numpy as np

    return np.concatenate([edges, found.joined])


def _row(name: str, label: Any, weight: Any, k: int, group: Any, g: Any) -> dict[str, Any]:
    """Sizes of a grouping.

    An area changed group when it is not of the prefix that most areas of its region have (of several, the one with
    most people).
    """
    import numpy as np

    from shoal.problems.regions.graph import components, without_crossings

    held = label >= 0
    count = int(label.max()) + 1
    total = np.bincount(label[held], weights=weight[held], minlength=count).astype(np.int64)
    both = np.zeros((count, int(group.max()) + 1))
    np.add.at(both, (label[held], group[held]), 1 + weight[held] / (2.0 * max(int(weight.sum()), 1)))
    home = both.argmax(axis=1)
    _, piece = components(without_crossings(g, label))
    pieces = np.array([len(np.unique(piece[label == r])) for r in range(count)])
    return {
        "groups": name,
        "number": count,
        "largest": int(total.max()),
        "smallest": int(total.min()),
        "below_k": int((total < k).sum()),
        "areas_below_k": int((total < k)[label[held]].sum()),
        "not_connected": int((pieces > 1).sum()),
        "areas_changed": int((home[label[held]] != group[held]).sum()),
        "areas_left_out": int((~held).sum()),
    }


def _table(rows: list[dict[str, Any]]) -> list[str]:
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


def _asked(
    given: Geography, soft: str | None, at_most: list[str], fixed: str | None, apart: str | None, exclude: str | None
) -> dict[str, Any]:
    """What is asked for besides thresholds, as merge takes it."""
    import numpy as np

    from shoal.cli.common import pairs

    n = len(given.ids)
    limits = {}
    for name, most in pairs(at_most, "--at-most", int).items():
        counted = name == "areas" and name not in given.columns
        limits[name] = (np.ones(n, np.int64) if counted else given.whole(name), most)
    out = np.zeros(n, np.bool_)
    out[list(given.outside)] = True
    if exclude is not None:
        out |= np.array([str(v).strip().lower() in ("1", "1.0", "yes", "true") for v in given.column(exclude)])
    return {
        "soft_boundaries": None if soft is None else given.column(soft),
        "at_most": limits or None,
        "fixed": None if fixed is None else given.column(fixed),
        "apart": None if apart is None else given.column(apart),
        "exclude": out if out.any() else None,
    }


def _crosswalk(given: Geography, found: Regions, path: Path, names: list[str], columns: Any, forbidden: int) -> None:
    import polars as pl

    from shoal.engines.store import write_table
    from shoal.problems.regions import crosswalk

    write_table(pl.DataFrame(crosswalk(given.ids, found, names, *columns)), path, closed=forbidden)


def _dissolve(
    given: Geography,
    degrees: bool,
    names: list[str],
    columns: Any,
    found: Regions,
    called: list[str],
    path: Path,
    forbidden: int,
) -> None:
    """A MultiPolygon per region with its measures; the areas left out stay out."""
    import numpy as np

    from shoal.engines.adjacency import available
    from shoal.engines.outlines import closed, measures
    from shoal.engines.vector import write_outlines
    from shoal.problems.regions.result import of_regions
    from shoal.report.dissolve import dissolve, geojson

    tolerance = float(given.facts.get("tolerance") or 0.0)
    if degrees and given.facts.get("unit") != "km":
        tolerance /= 1000  # the file was in metres, its outlines are drawn in degrees
    outlines, properties = [], []
    own = of_regions(found, names, *columns)
    own = {names[0]: own.pop("region_weight"), "areas": own.pop("region_areas"), **own}
    for r, name in enumerate(called):
        member = np.flatnonzero(found.labels == r).tolist()
        shapes = [given.shapes.get(given.ids[i], []) for i in member]
        shape = closed(shapes, degrees, tolerance) if tolerance else dissolve(shapes)
        outlines.append(shape)
        more = measures(shape, degrees) if available() and shape else {}
        values = {key: column[r] for key, column in own.items()}
        properties.append({"region": name, **values, "members": [given.ids[i] for i in member], **more})
    text = geojson(outlines, properties)
    write_outlines(path, text, degrees, forbidden)
