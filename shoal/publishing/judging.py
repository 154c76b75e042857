"""The judges of all kinds of crosswalks: they check the certificate file against the written files.

Areas, pairs of neighbors, and outlines are the sources from which a judge recounts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.geography import Geography
from shoal.engines.vector import read_drawing
from shoal.errors import InputError
from shoal.judge.crosswalk import StatedCrosswalk, judge_groups
from shoal.judge.finding import Finding
from shoal.judge.places.areas import CENTERS, NAMED, judge_regions
from shoal.judge.places.clusters import judge_clusters
from shoal.judge.places.region_outlines import ReadOutlines, judge_levels, judge_region_hierarchy, judge_region_outlines
from shoal.judge.places.tiles import judge_outlines, judge_tile_rows, judge_tile_table, judge_tiles
from shoal.model.certificate import Certificate, PublicCertificate
from shoal.problems.catalogue import CATALOGUE, resolved

OUTLINES = "outlines"  # for the second level "outlines2"


class Sources(NamedTuple):
    """The data from which an answer was made, as far as available.

    table   the table that was grouped: one row for each record, value, area, or point
    pairs   for areas: neighbors, two names in a row
    trees, places  for clusters: hierarchies, and tables of coordinates, by column
    shapes  polygons of areas, by name
    """

    table: pl.DataFrame | None = None
    pairs: pl.DataFrame | None = None
    trees: Mapping[str, Any] = MappingProxyType({})
    places: Mapping[str, Any] = MappingProxyType({})
    shapes: Mapping[str, Any] = MappingProxyType({})


def findings(
    record: Mapping[str, Any],
    certificate: Certificate | PublicCertificate,
    held: Any,
    form: str,
    sources: Sources,
    part: str | None = None,
) -> list[Finding]:
    """The findings of a kind's judge; VerificationError for a file that is no such table.

    held  the frame that was read back; for outlines of regions the result of ``outlined``, for those of tiles and for
          hierarchies their path
    part  name of another output of the crosswalk
    """
    bound: float | None = None
    details: Mapping[str, Any] = {}
    if isinstance(certificate, Certificate):
        bound, details = certificate.lower_bound, certificate.details
    asked, facts = record["parameters"], record["facts"]
    stated = StatedCrosswalk(asked, facts, certificate.cost, bound, certificate.unit, details, record["kind"])
    judge: Callable[[WrittenRelease], list[Finding]] = resolved(CATALOGUE[record["kind"]].judge)
    return judge(WrittenRelease(held, stated, form, sources, part))


class WrittenRelease(NamedTuple):
    """A written output and its sources, as a judge gets it; fields as in ``findings``."""

    content: Any
    stated: StatedCrosswalk
    form: str
    sources: Sources
    part: str | None


def groups(held: WrittenRelease) -> list[Finding]:
    """Findings on a crosswalk of labels or intervals; InputError if the certificate names another output."""
    _refuse_part(held.part)
    return judge_groups(held.stated.kind, held.content, held.stated, held.form, held.sources.table)


def regions(held: WrittenRelease) -> list[Finding]:
    """Findings on regions, on a level's outlines, or on the hierarchy of levels; InputError for another part."""
    content, stated, form, sources, part = held
    own = (sources.table, sources.pairs)
    if part == "hierarchy":
        return judge_region_hierarchy(content, stated, *own)
    if part is not None and part.startswith(OUTLINES):
        level = int(part.removeprefix(OUTLINES) or 1) - 1
        return judge_region_outlines(content, level, stated, *own, sources.shapes)
    _refuse_part(part)
    found = judge_regions(content, stated, form, *own, sources.shapes)
    return [*found, *judge_levels(content, stated, form, *own)] if stated.parameters.get("levels") else found


def tiles(held: WrittenRelease) -> list[Finding]:
    """Findings on a crosswalk of tiles, their outlines, list, or table of points; InputError for another part."""
    content, stated, form, sources, part = held
    if part == "outlines":
        return judge_outlines(content, stated)
    if part in ("tiles", "table"):
        return (judge_tile_rows if part == "tiles" else judge_tile_table)(content, stated, form)
    _refuse_part(part)
    return judge_tiles(content, stated, form, sources.table)


def clusters(held: WrittenRelease) -> list[Finding]:
    """Findings on clusters, or on the points assigned to them; InputError for another part."""
    if held.part != "assignments":
        _refuse_part(held.part)
    sources = held.sources
    with np.errstate(all="ignore"):  # impossible numbers become values that aren't finite, and fail
        return judge_clusters(held.content, held.stated, held.form, sources.table, (sources.trees, sources.places))


def _refuse_part(part: str | None) -> None:
    if part is not None:
        raise InputError(f"the certificate file names a part {part!r} that this version cannot check")


def outlined(path: Path) -> ReadOutlines:
    """The outlines of regions in a file; KML has another word for a name."""
    found = read_drawing(path)
    return ReadOutlines([{"region": held.get("Name"), **held} for held in found.properties], found.drawn)


def tables(
    given: Geography, names: Sequence[str], centers: Sequence[str | None] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The areas with their names, the named columns as text, and the centers if known; and the pairs of neighbors.

    centers  columns from which the centers were taken; if one is missing, other centers would be compared
    """
    columns = [pl.Series(NAMED, given.ids, dtype=pl.String)]
    for name in dict.fromkeys(names):
        if name in given.columns:
            held = [None if v is None else str(v) for v in given.columns[name]]
            columns.append(pl.Series(name, held, dtype=pl.String))
    places = given.centers() if not {*centers} - {None, *given.columns} else None
    if places is not None:
        columns += [pl.Series(name, places[:, j]) for j, name in enumerate(CENTERS)]
    ids = pl.Series("u", given.ids, dtype=pl.String)
    return pl.DataFrame(columns), pl.DataFrame([ids[given.edges[:, 0]], ids[given.edges[:, 1]].alias("v")])
