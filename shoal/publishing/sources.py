"""The tables that an answer is made of and judged by: opened in one way for a release and for its verification.

A table is opened as one frame in memory, as a population, or as ``Sources``: areas, pairs of neighbors, and outlines,
from which the judge of each kind of crosswalk counts again what a written file and its certificate state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.engines.frames import FrameTable
from shoal.engines.geography import Geography, has_outlines
from shoal.engines.geography import read as read_areas
from shoal.engines.open import open_table
from shoal.engines.source import Scope
from shoal.engines.store import in_plain
from shoal.engines.table import Table, require
from shoal.engines.vector import read_drawing
from shoal.errors import InputError, PolicyError, VerificationError, within
from shoal.judge.crosswalk import StatedCrosswalk, judge_groups
from shoal.judge.finding import Finding
from shoal.judge.places.areas import CENTERS, NAMED, judge_regions
from shoal.judge.places.clusters import judge_clusters
from shoal.judge.places.region_outlines import ReadOutlines, judge_levels, judge_region_hierarchy, judge_region_outlines
from shoal.judge.places.tiles import judge_outlines, judge_tile_rows, judge_tile_table, judge_tiles
from shoal.judge.tables.population import Census
from shoal.model.certificate import Certificate, PublicCertificate, digest, source_of
from shoal.model.hierarchy import REGIONS, Hierarchy
from shoal.model.policy import PLACE, Policy
from shoal.paths import is_drawing
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


def opened(
    data: Any, separator: str | None = None, encoding: str | None = None, scope: Scope | None = None,
    unread: Collection[str] = (),
) -> pl.DataFrame:  # fmt: skip
    """Any table as a Polars frame, with the text of a CSV as written.

    scope   the table or query of a database
    unread  columns of which only the names matter; an engine may hold values in them that no frame holds
    """
    if isinstance(data, pl.DataFrame) and not any(scope or ()):
        return data
    table = open_table(data, separator=separator, encoding=encoding, scope=scope)
    if table.in_memory:
        return table.polars(table.columns)
    read = table.polars([c for c in table.columns if c not in unread])
    none = pl.Series([None], dtype=pl.String).new_from_index(0, read.height)
    return pl.DataFrame({c: read[c] if c in read.columns else none for c in table.columns})


def like(data: Any, frame: pl.DataFrame) -> Any:
    """A Polars frame as the same kind of frame as data; unchanged if data is a path."""
    if isinstance(data, (str, Path)):
        return frame
    return frame.lazy() if isinstance(data, pl.LazyFrame) else open_table(data).from_polars(frame)


def with_place(table: Table, coordinates: tuple[str, str], marks: Mapping[str, str]) -> Table:
    """A table in which the two coordinate columns are one column ``PLACE``, "x y".

    marks  column of texts -> its decimal mark
    """
    if not isinstance(table, FrameTable):
        raise PolicyError(
            "coordinates are tiled in memory; read a file with ⟨engine='polars'⟩, or pass a pandas or Polars frame, "
            "such as relation.pl() of DuckDB or frame.toPandas() of Spark"
        )
    return table.joined(coordinates, PLACE, marks)


def with_regions(asked: Policy) -> Policy:
    """A policy in which columns published as regions have the hierarchy of its areas.

    Raises InputError if the policy was read from a certificate with another graph.
    """
    words = [n for n, h in asked.hierarchies.items() if h == REGIONS]
    if not words:
        return asked
    tree = region_tree(asked.areas, asked.edges, asked.region_loss)
    other = next((n for n in words if asked.certified.get(n, digest(tree)) != digest(tree)), None)
    if other is not None:
        raise InputError(f"the areas and neighbors of {other!r} are not the ones certified")
    return replace(asked, hierarchies={**asked.hierarchies, **dict.fromkeys(words, tree)})


def region_tree(areas: Any, edges: Any, by: str) -> Hierarchy:
    """The hierarchy of connected regions of areas: a Geography, or files or frames of areas and of pairs.

    by  the column that defines the loss of regions

    Raises InputError and PolicyError for areas that can't be read, or lack this column.
    """
    with within("the areas"):
        if isinstance(areas, Geography):
            given = areas
        else:
            given = read_areas(areas, edges)
        if edges is not None and given is areas:
            raise PolicyError("areas that were read have their neighbors; leave ⟨edges⟩ out")
        if by not in given.columns:
            there = ", ".join(map(repr, given.columns)) or "none"
            raise PolicyError(
                f"there is no column {by!r} to measure the loss of a region; say ⟨region_loss=COLUMN⟩, the number of "
                f"people in each area, one of: {there}"
            )
        pairs = [(given.ids[a], given.ids[b]) for a, b in given.edges.tolist()]
        return Hierarchy.regions(given.ids, pairs, given.whole(by).tolist())


def read_census(
    given: Any, quasi: Sequence[str], coordinates: tuple[str, str] | None = None, engine: str | None = None,
    marks: Mapping[str, str] | None = None,
) -> Census:  # fmt: skip
    """A population from a path or a frame, counted by its engine.

    marks  column of texts among the coordinates -> its decimal mark

    Raises PolicyError for a missing column.
    """
    if isinstance(given, Census):
        return given
    from_path = isinstance(given, str) or hasattr(given, "__fspath__")
    needed = [*(n for n in quasi if coordinates is None or n != quasi[-1]), *(coordinates or ())]
    with within("the population"):
        table = open_table(given, engine if from_path else None, coded=quasi, needed=needed)
        require(table.columns, needed)
    if coordinates is not None:
        table = with_place(table, coordinates, marks or {})
    tuples, rows = table.counts(list(quasi))
    kept = [c.cast(pl.String) if isinstance(c.dtype, pl.Categorical) else c for c in tuples.iter_columns()]
    return Census(pl.DataFrame(kept), np.asarray(rows, np.int64))


def sources_of(
    source: Any, record: Mapping[str, Any], separator: str | None, encoding: str | None,
    hierarchies: tuple[Mapping[str, Any], Path], layer: str | None = None,
) -> Sources:  # fmt: skip
    """The sources for the judge; arguments as in ``shoal.publishing.verifying.recheck.recheck``."""
    given = [] if source is None else list(source) if isinstance(source, (list, tuple)) else [source]
    if not given:
        return Sources()
    if record["kind"] == "regions":
        return _areas(given, record["parameters"])
    if record["kind"] in ("gather", "cellular"):
        return _points(given, record["parameters"], (separator, encoding, Scope(table=layer)), hierarchies)
    if len(given) > 1:
        raise InputError("this output was made of one source; name one")
    frame = opened(given[0], separator, encoding, Scope(table=layer))
    return Sources(in_plain(frame, record["parameters"].get("decimal")) if record["kind"] == "tiles" else frame)


def _points(
    given: list[Any], asked: Mapping[str, Any], text: tuple[str | None, str | None, Scope],
    hierarchies: tuple[Mapping[str, Any], Path],
) -> Sources:  # fmt: skip
    """The table that was clustered, then the coordinates of its codes, in the order of the columns."""
    coded = [f["columns"][0] for f in asked["features"] if f["kind"] == "coded place"]
    if len(given) > 1 + len(coded):
        raise InputError("clusters are made of one table, and the coordinates of its codes; name no more")
    held, folder = hierarchies
    trees = {}
    for name, entry in dict(asked.get("hierarchies") or {}).items():
        source = held.get(name, entry["source"])
        if name not in held and source == "given":
            continue
        with suppress(InputError):
            tree = Hierarchy.of(source if name in held else source_of(name, str(source), folder))
            if digest(tree) != entry["sha256"]:
                raise VerificationError(f"the hierarchy of {name!r} is not the one certified")
            trees[name] = tree
    places = {name: opened(x) for name, x in zip(coded, given[1:], strict=False)}
    return Sources(opened(given[0], *text), trees=trees, places=places)


def _areas(given: list[Any], asked: Mapping[str, Any]) -> Sources:
    """Areas, pairs, and polygons: files or GeoDataFrames as for ``shoal regions`` (also polygons instead of pairs), or
    two frames."""
    if len(given) > 3:
        raise InputError("regions are made of areas, pairs of neighbors and polygons; name a file of each at most")
    named = asked.get("column")
    if not any(map(has_outlines, given)) and not all(isinstance(x, (str, Path)) for x in given):
        if len(given) != 2:
            raise InputError("regions of a frame are checked with two: the areas, and the pairs of their names")
        table, held = (opened(x) for x in given)
        table = in_plain(table, asked.get("decimal"))
        name = named or ("id" if "id" in table.columns else table.columns[0])
        return Sources(table.with_columns(table[name].cast(pl.String).str.strip_chars().alias(NAMED)), held)
    first, second = given[0], given[1] if len(given) > 1 else None
    how = dict(asked.get("drawn") or {})
    if second is None and not has_outlines(first) and not is_drawing(first):
        raise InputError(
            "regions are checked with their areas and who is next to whom: name the pairs of neighbors, or the "
            "polygons, as a second ⟨original=...⟩"
        )
    drawn = second is not None and (has_outlines(second) or is_drawing(second))
    shapes = second if drawn else given[2] if len(given) > 2 else None
    pairs = None if drawn else second
    # the regions may have been made of polygons, and are checked with pairs, or the other way around
    borders = {"tolerance": how.get("tolerance")}
    columns = {"source": asked.get("source"), "target": asked.get("target")}
    found = read_areas(
        first, pairs, id=named, shapes=shapes, unmatched="leave-out", shape_id=how.get("shape_id"),
        coordinates=how.get("coordinates") or "auto", layer=how.get("layer"), decimal=asked.get("decimal"),
        **(borders if pairs is None else columns),
    )  # fmt: skip
    if lost := [name for name in asked["weight"] if name not in found.columns]:
        raise InputError(
            f"the areas given have no column {lost[0]!r}, by which the regions were weighed; name first the table that "
            "has it, and after it the pairs of neighbors or the polygons"
        )
    return Sources(*tables(found, list(found.columns), how.get("centers") or ()), shapes=found.shapes)
