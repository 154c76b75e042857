"""Releases of regions: a crosswalk from areas to regions of every level, with maps, outlines, and a hierarchy."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.geography import Geography, geography
from shoal.errors import InputError, PolicyError
from shoal.judge.crosswalk import unmet
from shoal.judge.places.areas import MEASURES
from shoal.judge.places.region_outlines import weighed
from shoal.model.arguments import keywords
from shoal.model.cards import several
from shoal.model.conditions import AREA_CONDITIONS, complete
from shoal.paths import HIERARCHY, MAP, OUTLINED
from shoal.publishing.crosswalks.crosswalk import Crosswalk, Drawing
from shoal.publishing.sources import Sources, opened, tables


def levels_of(answer: Any) -> tuple[Any, ...]:
    """The finest regions, then those of each higher level; for ``Regions``, the only level."""
    held = getattr(answer, "levels", None)
    if held is None:
        return (answer,)
    if not held:
        raise PolicyError("the answer has no level, so there is nothing to release; give one threshold at least")
    return tuple(held)


def asked_of(
    levels: Sequence[Any], at_most: Mapping[str, Any], regions: Any, ids: Sequence[str]
) -> list[dict[str, Any]]:
    """The conditions of each level: thresholds, maxima, number of regions, and joined areas."""
    from shoal.problems.regions.limits import of_level

    found = []
    for i, level in enumerate(levels):
        own = of_level({"at_most": {n: (None, m) for n, m in at_most.items()}, "regions": regions}, i, len(levels))
        found.append(
            {
                "k": list(level.k),
                "at_most": {name: most for name, (_, most) in (own.get("at_most") or {}).items()},
                "regions": own.get("regions"),
                "joined": [[ids[a], ids[b]] for a, b in level.joined.tolist()],
            }
        )
    return found


def facts_of(answer: Any) -> list[dict[str, Any]]:
    """The figures of each level above the first.

    regions_at_most        no partition of the areas has more regions
    unions_at_most         no partition into unions of the regions below has more
    """
    found = []
    for level, most in zip(levels_of(answer)[1:], getattr(answer, "most", ())[1:], strict=True):
        first = level.weights.reshape(level.regions, -1)[:, 0].tolist()
        found.append(
            {
                "groups": level.regions, "smallest_group": min(first), "largest_group": max(first),
                "left_out": len(level.left_out), "regions_at_most": most, "unions_at_most": level.upper_bound,
                "cost": level.cost, "cost_at_least": level.certificate.lower_bound, "unit": level.certificate.unit,
            }
        )  # fmt: skip
    return found


def columns_of(ids: Sequence[str], levels: Sequence[Any], names: Sequence[str]) -> dict[str, list[Any]]:
    """Columns region2, region2_weight, region2_areas, region2_NAME of further weights; region3 ..."""
    from shoal.problems.regions import region_names

    found: dict[str, list[Any]] = {}
    for i, level in enumerate(levels[1:], 2):
        called, held = region_names(ids, level.labels), level.labels.tolist()
        weights = level.weights.reshape(level.regions, -1)
        each = {f"region{i}_weight": weights[:, 0].tolist(), f"region{i}_areas": level.sizes.tolist()}
        each |= {f"region{i}_{name}": weights[:, j].tolist() for j, name in enumerate(names[1:], 1)}
        found[f"region{i}"] = ["*" if r < 0 else called[r] for r in held]
        found |= {name: [0 if r < 0 else values[r] for r in held] for name, values in each.items()}
    return found


def hierarchy(ids: Sequence[str], levels: Sequence[Any]) -> Drawing:
    """A file for ``--hierarchy``: area;region;region at the next level;...;*"""
    from shoal.problems.regions import hierarchy_rows

    def fill(path: Path) -> None:
        rows = sorted(hierarchy_rows(ids, [level.labels for level in levels]))
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter=";", lineterminator="\n").writerows(rows)

    return Drawing(form=HIERARCHY, fill=fill)


def as_merged(asked: Mapping[str, Any], given: Geography) -> dict[str, Any]:
    """Conditions as arguments of ``shoal.regions.merge``.

    asked  by the names of ``AREA_CONDITIONS``, or as in the certificate of a crosswalk of regions
    """
    read: dict[str, Callable[[Any], Any]] = {
        "texts": given.column,
        "says": given.says,
        "table": lambda names: np.column_stack([given.number(name) for name in names]),
        "counts": lambda names: np.column_stack([given.whole(name) for name in names]),
        "maxima": partial(maxima, given=given),
        "distance": lambda value: value,
        "plain": lambda value: value,
    }
    held = {name: asked.get(entry.key) for name, entry in AREA_CONDITIONS.items()}
    return {
        entry.keyword: read[entry.read](held[name]) if held[name] or not entry.names_columns else None
        for name, entry in AREA_CONDITIONS.items()
        if entry.keyword
    }


def measures_distance(objective: Sequence[str], asked: Mapping[str, Any]) -> bool:
    """Whether a request for regions needs the centers of the areas.

    asked  by the names of ``AREA_CONDITIONS``, or as in the certificate of a crosswalk of regions
    """
    lengths = (entry.key for entry in AREA_CONDITIONS.values() if entry.read == "distance")
    return "compact" in objective or any(asked[key] is not None for key in lengths)


def maxima(at_most: Mapping[str, Any], given: Geography) -> dict[str, Any]:
    """Maximum sums of a region as arguments of ``merge``; "areas" counts areas unless a column has this name."""
    ones = np.ones(len(given.ids), np.int64)
    counted = {name: name == "areas" and name not in given.columns for name in at_most}
    return {name: (ones if counted[name] else given.whole(name), most) for name, most in at_most.items()}


def _columns_of(asked: Mapping[str, Any]) -> list[str]:
    """The columns that the judge needs."""
    held = [asked[name] for name, entry in AREA_CONDITIONS.items() if entry.names_columns]
    named = [[value] if isinstance(value, str) else list(value) for value in held if value]
    return [name for own in named for name in own]


def _stated(asked: Mapping[str, Any], finest: Mapping[str, Any]) -> dict[str, Any]:
    """The conditions in a certificate; for nested regions those of the first level, ``finest`` from ``asked_of``."""
    held = {**asked, **{name: finest[name] for name in ("at_most", "regions")}}
    plain = {n: list(v) if isinstance(v, Sequence) and not isinstance(v, str) else v for n, v in held.items()}
    return {e.key: plain[n] for n, e in AREA_CONDITIONS.items() if e.setting.stated == "always" or plain[n]}


def regions(
    answer: Any,
    data: Any,
    read: tuple[str | Path, ...],
    *,
    weight: str | Sequence[str],
    edges: Any = None,
    id: str | None = None,
    objective: str | Sequence[str] | None = None,
    geographic: bool | None = None,
    **more: Any,
) -> Crosswalk:
    """A crosswalk of ``Regions`` or ``Nested``, from a Geography, or from a frame of areas with edges as row
    numbers."""
    keywords("argument of a release of regions", more, AREA_CONDITIONS)
    asked, given = complete(AREA_CONDITIONS, more), areas_of(data, edges, id)
    names = [weight] if isinstance(weight, str) else list(weight)
    levels = [_counted_in(level, names[0]) for level in levels_of(answer)]
    nested, answer = (replace(answer, levels=tuple(levels)) if hasattr(answer, "levels") else answer), levels[0]
    own = np.column_stack([given.whole(name) for name in names])
    _refuse_others(answer, own)
    finest, *above = asked_of(levels, asked["at_most"], asked["regions"], given.ids)
    degrees = given.geographic() if geographic is None else geographic
    parameters = {
        **_read_as(given, id), "weight": names, "k": finest["k"],
        "objective": _objective(answer, objective, finest["regions"]), **_stated(asked, finest),
        "geographic": degrees, "joined": finest["joined"],
        **({"levels": above} if above else {}),
    }  # fmt: skip
    if odd := unmet(parameters, answer.certificate.details):
        raise PolicyError(f"the areas were merged by another {odd[0]} than the release names; name the same here")
    put_together = [_RegionOutlines(given, level, names[0], degrees) for level in (levels if given.shapes else ())]
    first = answer.weights.reshape(answer.regions, -1)[:, 0].tolist()
    facts = {
        "rows": len(given.ids), "groups": answer.regions, "smallest_group": min(first), "largest_group": max(first),
        "left_out": len(answer.left_out), "regions_at_most": answer.upper_bound,
        "variance_inside": answer.certificate.details.get("variance_inside"),
        **({"levels": facts_of(nested)} if above else {}),
    }  # fmt: skip
    title, note = _title_and_note(levels, len(given.ids), names)
    return Crosswalk(
        kind="regions",
        content=content(given, levels, names, asked, put_together),
        certificate=answer.certificate,
        method=answer.method,
        parameters=parameters,
        facts=facts,
        sources=Sources(*tables(given, [*names, *_columns_of(asked)]), shapes=given.shapes),
        read=read,
        title=title,
        groups=first,
        companions={"hierarchy": hierarchy(given.ids, levels), **_outlines(given, put_together, names, asked)},
        note=note,
        drawn_map=_map(given, answer, own[:, 0], names[0], degrees, title) if given.shapes else None,
    )


def _counted_in(level: Any, weight: str) -> Any:
    """Regions whose cost is in the column of their weights, unless the caller of ``merge`` named another unit."""
    from shoal.problems.regions.merge import WEIGHT

    named = {WEIGHT: weight, f"squared {WEIGHT}": f"squared {weight}"}
    unit = named.get(level.certificate.unit, level.certificate.unit)
    return replace(level, certificate=replace(level.certificate, unit=unit))


def _objective(answer: Any, stated: str | Sequence[str] | None, regions: Any) -> str:
    """The answer's first objective; PolicyError if the caller names another.

    regions  the requested number of regions; with it, "count" has no effect
    """
    from shoal.problems.regions.task import CHAINS

    each = tuple(str(name) for name in answer.certificate.details["objective"])
    own = each[0]
    if isinstance(stated, str) and CHAINS.get(stated) == each:  # such as "compact", which begins with the number
        return own
    first = stated.split(",")[0] if isinstance(stated, str) else own if stated is None else str(next(iter(stated), ""))
    if first != own and not (first == "count" and regions is not None):
        raise PolicyError(f"the answer's objective is {own!r}, not {first!r}; leave ⟨objective=⟩ out")
    return own


def _refuse_others(answer: Any, own: np.ndarray) -> None:
    """InputError for an answer to other areas or weights than these, int64[n, t]."""
    held = answer.labels >= 0
    sums = np.zeros((answer.regions, own.shape[1]), np.int64)
    if len(answer.labels) == len(own) and own.shape[1] == len(answer.k):
        np.add.at(sums, answer.labels[held], own[held])
    if not np.array_equal(sums, answer.weights.reshape(answer.regions, -1)):
        raise InputError("the answer does not belong to these areas and weights; pass what was merged")


def _read_as(given: Geography, id: str | None) -> dict[str, Any]:
    """How the areas, their neighbors, and their polygons were read."""
    how, facts = given.facts.get("read") or {}, given.facts
    drawn = {name: how.get(name) for name in ("shape_id", "coordinates")}
    drawn |= {"layer": how["layer"]} if how.get("layer") else {}
    drawn |= {name: facts.get(name) for name in ("tolerance", "unit")} | {"centers": list(given.located())}
    marks = {"decimal": dict(how["decimal"])} if how.get("decimal") else {}
    own = {"column": id or how.get("id"), "source": how.get("source"), "target": how.get("target"), "drawn": drawn}
    return own | marks


def _title_and_note(levels: Sequence[Any], areas: int, names: Sequence[str]) -> tuple[str, str]:
    """Title and note of the finest regions, with the numbers of regions of higher levels."""
    answer = levels[0]
    least = " and ".join(f"{k:,} {name}" for k, name in zip(answer.k, names, strict=True))
    others = "".join(
        f"; {level.regions:,} of at least {' and '.join(f'{k:,}' for k in level.k)}" for level in levels[1:]
    )
    return (
        f"{several(answer.regions, 'region')} of at least {least}{others}",
        f"{several(areas, 'area')}; heaviest region {answer.largest:,}, none below {answer.largest_bound:,} "
        f"possible; more than {answer.upper_bound:,} cannot exist.",
    )


_BY_NAMES = "if they name areas, pass what shoal.engines.geography.read(areas, edges) returns in place of the frame"


def areas_of(data: Any, edges: Any, id: str | None) -> Geography:
    """A given Geography; or areas from a frame, with neighbors by row number, int[m, 2]."""
    if isinstance(data, Geography):
        return data
    if edges is None:
        raise PolicyError("regions of a frame need ⟨edges=⟩, the pairs of row numbers that were merged by")
    frame = opened(data)
    name = id or ("id" if "id" in frame.columns else frame.columns[0])
    if name not in frame.columns:
        raise PolicyError.unknown("column of the areas", name, frame.columns)
    ids = frame[name].to_list()
    pairs = np.asarray(edges)
    if (pairs.dtype.kind not in "iu" and pairs.size) or pairs.shape[1:] not in ((), (2,)):
        raise InputError(f"edges are pairs of row numbers, and these are not; {_BY_NAMES}")
    pairs = pairs.astype(np.int64).reshape(-1, 2)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < len(ids):
        raise InputError(f"the edges name rows that the table does not have; {_BY_NAMES}")
    return geography(ids, [(ids[a], ids[b]) for a, b in pairs.tolist()], {c: frame[c].to_list() for c in frame.columns})


def _extra(given: Geography, names: Sequence[str], asked: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    sums = {name: given.number(name) for name in asked["sums"]}
    return sums, {name: given.number(name) for name in asked["means"]}, given.whole(names[0])


def content(
    given: Geography,
    levels: Sequence[Any],
    names: Sequence[str],
    asked: Mapping[str, Any],
    drawn: Sequence[_RegionOutlines] = (),
) -> pl.DataFrame:
    """The crosswalk: the finest regions, with measures if there are polygons, then the higher levels."""
    from shoal.problems.regions import crosswalk

    own = crosswalk(given.ids, levels[0], names, *_extra(given, names, asked))
    held = levels[0].labels.tolist()
    for name in MEASURES if drawn else ():
        each = [found.get(name) for found in drawn[0].measures]
        if any(value is not None for value in each):
            own[name] = [None if r < 0 else each[r] for r in held]
    return pl.DataFrame(own | columns_of(given.ids, levels, names))


def levels_drawn(made: Crosswalk, given: Geography, nested: Any, unit: str, degrees: bool) -> list[Crosswalk]:
    """The release with the map of each level, the finest first."""
    found = [made]
    for level in levels_of(nested)[1:]:
        title = f"{several(level.regions, 'region')} of at least {level.k[0]:,} {unit}"
        drawn = _map(given, level, given.whole(unit), unit, degrees, title)
        found.append(replace(made, drawn_map=drawn if given.shapes else None))
    return found


def _map(given: Geography, answer: Any, weights: np.ndarray, unit: str, degrees: bool, title: str) -> Drawing:
    note = f"{several(len(given.ids), 'area')}; heaviest region {answer.largest:,}."

    def fill(path: Path) -> None:
        from shoal.problems.regions import region_names
        from shoal.report.maps import draw_regions

        shapes = [given.shapes.get(i, []) for i in given.ids]
        draw_regions(
            path, shapes, answer.labels, given.ids, weights, regions=region_names(given.ids, answer.labels),
            areas=[str(n) for n in given.columns.get("name", given.ids)], k=answer.k[0], unit=unit, geographic=degrees,
            title=title, note=note, area_classes=False,
        )  # fmt: skip

    return Drawing(form=MAP, fill=fill)


def _weighted(places: np.ndarray, weights: np.ndarray, degrees: bool) -> dict[str, float]:
    """The center of a region's weight: the mean of its areas' centers, float64[m, 2], weighted by int64[m]."""
    if not weights.sum():
        return {}
    x, y = places[:, 0], places[:, 1]
    if degrees and np.ptp(x) > 180:
        x = np.where(x < 0, x + 360, x)
    middle = float(np.average(x, weights=weights))
    return {
        "weighted_x": middle - 360 if degrees and middle > 180 else middle,
        "weighted_y": float(np.average(y, weights=weights)),
    }


@dataclass(frozen=True, eq=False)
class _RegionOutlines:
    """The outlines and measures of the regions of a level, from their areas' polygons, computed once."""

    given: Geography
    answer: Any
    weight: str
    degrees: bool

    @cached_property
    def members(self) -> list[list[int]]:
        """The areas of each region."""
        return [np.flatnonzero(self.answer.labels == r).tolist() for r in range(self.answer.regions)]

    @cached_property
    def shapes(self) -> list[Any]:
        """The outline of each region, without the areas that are left out."""
        from shoal.engines.shapes import closed
        from shoal.report.outlines import dissolve

        given, degrees = self.given, self.degrees
        tolerance = float(given.facts.get("tolerance") or 0.0)
        if degrees and given.facts.get("unit") != "km":
            tolerance /= 1000  # the file was in meters, the outlines are drawn in degrees
        own = [[given.shapes.get(given.ids[i], []) for i in member] for member in self.members]
        return [closed(shapes, degrees, tolerance) if tolerance else dissolve(shapes) for shapes in own]

    @cached_property
    def measures(self) -> list[dict[str, float]]:
        """Measures of each region's polygons, if the extra ``geo`` is installed, and the center of its weight."""
        from shoal.engines.shapes import has_geometry, measures

        found = [measures(shape, self.degrees) if has_geometry() and shape else {} for shape in self.shapes]
        places, people = self.given.centers(), self.given.whole(self.weight)
        if places is None:
            return found
        return [
            own | _weighted(places[member], people[member], self.degrees)
            for own, member in zip(found, self.members, strict=True)
        ]


def _outlines(
    given: Geography, levels: Sequence[_RegionOutlines], names: Sequence[str], asked: Mapping[str, Any]
) -> dict[str, Drawing]:
    """For each level, a file with one MultiPolygon and measures for each region, in the format of the file's ending."""

    def fill(drawn: _RegionOutlines, path: Path) -> None:
        from shoal.engines.vector import write_outlines
        from shoal.problems.regions import region_names
        from shoal.problems.regions.task import of_regions
        from shoal.report.outlines import geojson

        own = of_regions(drawn.answer, names, *_extra(given, names, asked))
        own = {weighed(names[0]): own.pop("region_weight"), "areas": own.pop("region_areas"), **own}
        properties = []
        for r, name in enumerate(region_names(given.ids, drawn.answer.labels)):
            values = {key: column[r] for key, column in own.items()}
            members = [given.ids[i] for i in drawn.members[r]]
            properties.append({"region": name, **values, "members": members, **drawn.measures[r]})
        write_outlines(path, geojson(drawn.shapes, properties), drawn.degrees)

    drawings = [Drawing(form=OUTLINED, fill=partial(fill, drawn)) for drawn in levels]
    return {f"outlines{i if i > 1 else ''}": drawing for i, drawing in enumerate(drawings, 1)}
