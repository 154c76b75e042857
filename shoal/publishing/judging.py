"""One judge for every kind of crosswalk: what its certificate file says, asked of what stands on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.errors import InputError
from shoal.judge.areas import judge_regions
from shoal.judge.clusters import judge_clusters
from shoal.judge.crosswalk import Stated, judge_groups
from shoal.judge.finding import Finding
from shoal.judge.levels import judge_levels, judge_region_hierarchy
from shoal.judge.region_outlines import judge_region_outlines
from shoal.judge.tiles import judge_outlines, judge_tile_rows, judge_tile_table, judge_tiles
from shoal.model.certificate import Certificate

OUTLINES = "outlines"  # of the second level "outlines2"
KINDS = ("labels", "intervals", "regions", "tiles", "gather", "cellular")


class Sources(NamedTuple):
    """What an answer was made from, as far as it is at hand.

    table  the table grouped: a row per record, value, area or point
    pairs  of areas: neighbors, two names in a row
    trees, places  of clusters: hierarchies, and tables of coordinates, by column
    shapes  polygons of areas, by name
    """

    table: pl.DataFrame | None = None
    pairs: pl.DataFrame | None = None
    trees: Mapping[str, Any] = MappingProxyType({})
    places: Mapping[str, Any] = MappingProxyType({})
    shapes: Mapping[str, Any] = MappingProxyType({})


def form_of(path: Path) -> str:
    """How a file stores values: "parquet", "excel" or "csv"."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    return "excel" if name.endswith((".xlsx", ".xls", ".xlsb")) else "csv"


def findings(
    record: Mapping[str, Any],
    certificate: Certificate,
    held: Any,
    form: str,
    sources: Sources,
    part: str | None = None,
) -> list[Finding]:
    """What the judge of a kind finds; VerificationError for a file that is no such table.

    held  the frame as read back; of outlines of regions what ``outlined`` reads, of those of tiles and of hierarchies
          their path;  part  name of a companion of the crosswalk
    """
    stated = Stated(
        record["parameters"], record["facts"], certificate.cost, certificate.lower_bound, certificate.unit,
        certificate.details, record["kind"],
    )  # fmt: skip
    clusters = record["kind"] in ("gather", "cellular")
    if part == "hierarchy" and record["kind"] == "regions":
        return judge_region_hierarchy(held, stated, sources.table, sources.pairs)
    if part is not None and record["kind"] == "regions" and part.startswith(OUTLINES):
        level = int(part.removeprefix(OUTLINES) or 1) - 1
        return judge_region_outlines(held, level, stated, sources.table, sources.pairs, sources.shapes)
    if part is not None and not (clusters and part == "assignments"):
        judges = {"tiles": judge_tile_rows, "table": judge_tile_table}
        if record["kind"] != "tiles" or part not in (*judges, "outlines"):
            raise InputError(f"the certificate file names a part {part!r} that this version cannot check")
        return judge_outlines(held, stated) if part == "outlines" else judges[part](held, stated, form)
    if record["kind"] == "regions":
        found = judge_regions(held, stated, form, sources.table, sources.pairs, sources.shapes)
        above = record["parameters"].get("levels")
        return [*found, *judge_levels(held, stated, form, sources.table, sources.pairs)] if above else found
    if record["kind"] == "tiles":
        return judge_tiles(held, stated, form, sources.table)
    if clusters:
        with np.errstate(all="ignore"):  # of numbers that no table can have: what is not finite does not hold
            return judge_clusters(held, stated, form, sources.table, (sources.trees, sources.places))
    return judge_groups(record["kind"], held, stated, form, sources.table)
