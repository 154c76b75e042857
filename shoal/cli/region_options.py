"""The options of ``shoal regions`` that go together, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shoal.cli.common import listed, pairs
from shoal.cli.options import EFFORT, REPORT, Beside, Column, File, flag
from shoal.errors import PolicyError

if TYPE_CHECKING:
    from shoal.engines.geography import Geography
    from shoal.publishing.crosswalks.areas import AreaConditions
    from shoal.publishing.crosswalks.crosswalk import Crosswalk, Drawing


class Reading(NamedTuple):
    """How areas, their neighbors and their polygons are read."""

    id: Column = flag(None, "--id", "Column that names an area; 'id', or else the first.")
    source: Column = flag(None, "--source", "Column of EDGES; 'u' or 'source', or else the first.")
    target: Column = flag(None, "--target", "Column of EDGES; 'v' or 'target', or else the second.")
    unmatched: str = flag("refuse", "--unmatched", "Ids that are in one of the files only: refuse, or leave-out.")
    tolerance: float | None = flag(
        None, "--tolerance", "Borders drawn twice that are one, km or the plane's units; found from the polygons."
    )
    coordinates: str = flag(
        "auto", "--coordinates", "geographic (degrees), projected, or auto: by the file's system, names and range."
    )
    shapes: File = flag(None, "--shapes", "Polygons of the areas, for maps and --dissolved.")
    shape_id: Column = flag(None, "--shape-id", "Their property that names an area; --id's name.")

    def read(self, areas: Path, edges: File) -> tuple[Geography, bool]:
        """The areas, and whether they lie in degrees."""
        from shoal.engines.geography import read

        given = read(areas, edges, **self._asdict())
        return given, given.geographic() if self.coordinates == "auto" else self.coordinates == "geographic"


class Least(NamedTuple):
    """What a region weighs at least."""

    weight: list[str] = flag(..., "--weight", "Column with the weight of an area; repeat for several.")
    k: list[int] = flag(..., "--k", "Least weight of a region; one for each --weight, in order.")
    levels: list[str] = flag(
        [], "--levels", "Further k, rising: 5000,20000 merges the regions again; one for each --weight, in order."
    )


class Search(NamedTuple):
    """How regions are found, and what they are compared with."""

    method: str = flag("auto", "--method", "auto, tree, search or exact.")
    objective: Column = flag(
        None,
        "--objective",
        "max (default), count, sumsq, excess, compact, similar; or several in your order: max,count,compact.",
    )
    compare_prefix: int | None = flag(
        None, "--compare-prefix", "Compare with groups by so many first characters of the id (3: zip3)."
    )
    effort: str = EFFORT
    seed: int | None = flag(None, "--seed", "For the same regions again; fresh randomness by default.")


class Kept(NamedTuple):
    """What regions keep to besides their thresholds."""

    boundary: Column = flag(None, "--boundary", "Column no region may mix, such as state.")
    soft_boundary: Column = flag(
        None, "--soft-boundary", "Column a region mixes only for areas too light to be a region inside."
    )
    at_most: list[str] = flag(
        [],
        "--at-most",
        "COLUMN=VALUE: largest sum of a region; areas=VALUE counts areas. Repeat for several; "
        "with --levels COLUMN=VALUE,VALUE gives each level its own.",
    )
    fixed: Column = flag(None, "--fixed", "Column: areas with the same value stay together.")
    apart: Column = flag(None, "--apart", "Column: areas with the same value share no region.")
    exclude: Column = flag(None, "--exclude", "Column: areas where it says yes, true or 1 stay out.")
    water: Column = flag(
        None,
        "--water",
        "Column: areas where it says yes, true or 1 connect no others, and go to a region next to them.",
    )
    similar: Column = flag(
        None, "--similar", "Columns of numbers that a region's areas should be alike in, with commas between."
    )
    number: Column = flag(
        None, "--regions", "Exactly so many regions, not as many as can be; with --levels one for each: 100,20."
    )
    max_diameter: float | None = flag(
        None, "--max-diameter", "Largest distance between centers of areas in a region: km, or the plane's units."
    )
    sums: Column = flag(None, "--sum", "Columns summed over each region, with commas between.")
    means: Column = flag(None, "--mean", "Columns averaged over each region by the first weight, with commas between.")
    sensitive: Column = flag(
        None, "--sensitive", "Columns that count sensitive values, with commas between; needs --l."
    )
    l: int = flag(1, "--l", "In each region no sensitive value has more than 1/l of the records.")
    islands: str = flag(
        "leave", "--islands", "Components too light alone: leave them out, or join each to the nearest."
    )

    def asked(self) -> AreaConditions:
        """The same as values."""
        from shoal.publishing.crosswalks.areas import AreaConditions

        return AreaConditions(
            self.boundary, self.soft_boundary, self.fixed, self.apart, pairs(self.at_most, "--at-most", _numbers),
            listed(self.sensitive) or (), self.l, listed(self.similar) or (), _number(self.number), self.max_diameter,
            self.water, listed(self.sums) or (), listed(self.means) or (),
        )  # fmt: skip

    def settings(self, given: Geography, asked: AreaConditions, objective: list[str], degrees: bool) -> dict[str, Any]:
        """The same as merge takes it."""
        import numpy as np

        n = len(given.ids)
        limits = {}
        for name, most in asked.at_most.items():
            counted = name == "areas" and name not in given.columns
            limits[name] = (np.ones(n, np.int64) if counted else given.whole(name), most)
        out = np.zeros(n, np.bool_)
        out[list(given.outside)] = True
        if self.exclude is not None:
            out |= given.says(self.exclude)
        columns = {
            "boundaries": asked.boundary,
            "soft_boundaries": asked.soft_boundary,
            "fixed": asked.fixed,
            "apart": asked.apart,
        }
        placed = self.islands == "join" or "compact" in objective or asked.max_diameter is not None
        return {
            "similar": np.column_stack([given.number(name) for name in asked.similar]) if asked.similar else None,
            "regions": asked.regions,
            "water": None if asked.water is None else given.says(asked.water),
            "max_diameter": asked.max_diameter,
            "objective": objective[0] if len(objective) == 1 else objective,
            "sensitive": np.column_stack([given.whole(name) for name in asked.sensitive]) if asked.sensitive else None,
            "l": asked.l,
            "coordinates": given.centers() if placed else None,
            "geographic": degrees,
            "light": "nearest" if self.islands == "join" else "leave",
            "at_most": limits or None,
            "exclude": out if out.any() else None,
            **{name: None if column is None else given.column(column) for name, column in columns.items()},
        }


class Files(NamedTuple):
    """What to write, where asked for."""

    output: File = flag(None, "-o", "--output", "Crosswalk: area, region, its weight and areas.")
    dissolved: File = flag(None, "--dissolved", "Outlines of the regions: .geojson, .gpkg, .shp or .kml.")
    hierarchy: File = flag(
        None, "--hierarchy", "Areas and their regions at every level, for 'shoal anonymize --hierarchy'."
    )
    choices: File = flag(
        None, "--choices", "Picture of how compact (or --similar) smaller numbers of regions can be: .png, .svg, .pdf."
    )
    map_to: File = flag(None, "--map", "Map that opens offline: .html.")
    png: File = flag(None, "--png", "Picture of the map: .png, .svg or .pdf.")
    report: File = REPORT
    certificate: File = flag(None, "--certificate", "Its certificate; next to the crosswalk by default.")

    def of_levels(self, levels: int, *paths: File) -> list[tuple[int, Path]]:
        """(level, path) of those that are written once for each level, the first under the name given."""
        from shoal.publishing.crosswalks.area_levels import level_file

        return [(i, level_file(p, i)) for i in range(levels) for p in paths if p is not None]

    def check(self, levels: int, read: tuple[File, ...], force: bool, kept: Beside) -> None:
        """Refuse targets that would do harm, before any work."""
        from shoal.cli.common import beside, papers
        from shoal.engines.targets import HIERARCHY, JSON, OUTLINES, PAGE, PICTURE, SHEET, TABLE, check_outputs
        from shoal.engines.vector import check_outlines

        forms = (TABLE, OUTLINES, HIERARCHY, PICTURE, SHEET, PICTURE, PAGE, JSON)
        proof = beside(self.output or self.hierarchy or self.dissolved, self.certificate)
        drawn = ((self.dissolved, OUTLINES), (self.map_to, SHEET), (self.png, PICTURE))
        more = [(p, form) for one, form in drawn for i, p in self.of_levels(levels, one) if i]
        more += papers(proof, kept)[1:]
        check_outputs([*zip(self._replace(certificate=proof), forms, strict=True), *more], read, overwrite=force)
        if self.dissolved is not None:
            check_outlines(self.dissolved)

    def check_shapes(self, given: Geography, degrees: bool) -> None:
        """Refuse drawings of what has no polygons, and outlines of a kind that does not know the plane."""
        from shoal.engines.vector import check_outlines

        if self.dissolved is not None:
            check_outlines(self.dissolved, degrees)
        if any(p is not None for p in (self.dissolved, self.map_to, self.png)) and not given.shapes:
            raise PolicyError("--dissolved, --map and --png draw polygons; name their file with --shapes")

    def write(
        self, made: Crosswalk, by_level: list[Crosswalk], curve: Callable[[], Drawing], kept: Beside
    ) -> dict[str, Any]:
        """Write what was asked for; where the crosswalk and its certificate went."""
        from shoal.cli.common import put

        also = {} if self.hierarchy is None else {"hierarchy": self.hierarchy}
        also |= {f"outlines{i + 1 if i else ''}": p for i, p in self.of_levels(len(by_level), self.dissolved)}
        maps = self.of_levels(len(by_level), self.map_to, self.png)
        drawn = [(path, partial(by_level[i].drawing, "map")) for i, path in maps]
        return put(made, self.output, self.certificate, also, [*drawn, (self.choices, curve)], kept)

    def written(self, levels: int, certificate: str | None) -> list[str]:
        """A line for each file."""
        above = [p for i, p in self.of_levels(levels, self.dissolved, self.map_to, self.png) if i]
        return [f"wrote {p}" for p in (*self[:-1], *above, certificate) if p is not None]


def thresholds(weight: list[str], k: list[int], levels: list[str]) -> list[tuple[int, ...]]:
    """Thresholds of every level, one for each weight."""
    if len(weight) != len(k):
        raise PolicyError(f"there are {len(k)} of --k for {len(weight)} of --weight; give one for each")
    if levels and len(levels) != len(k):
        raise PolicyError(f"there are {len(levels)} of --levels for {len(k)} of --k; give one for each")
    each = [[own, *_listed(more, "--levels")] for own, more in zip(k, levels or len(k) * (None,), strict=True)]
    if len({len(column) for column in each}) > 1:
        raise PolicyError("--levels of one weight are more than those of another; give as many for each")
    for column in each:
        if any(a >= b for a, b in pairwise(column)):
            raise PolicyError(f"thresholds must rise from --k through --levels, not {', '.join(map(str, column))}")
    return list(zip(*each, strict=True))


def check_words(islands: str, coordinates: str) -> None:
    """Refuse words that mean nothing."""
    if islands not in ("leave", "join"):
        raise PolicyError.unknown("way to treat islands", islands, ("leave", "join"))
    if coordinates not in ("auto", "geographic", "projected"):
        raise PolicyError.unknown("kind of coordinates", coordinates, ("auto", "geographic", "projected"))


def _listed(text: str | None, option: str) -> list[int]:
    try:
        return [] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise PolicyError(f"{option} {text!r} holds no whole numbers; write 5000,20000") from None


def _numbers(text: str) -> int | tuple[int, ...]:
    """A whole number, or one for each level."""
    return tuple(int(part) for part in text.split(",")) if "," in text else int(text)


def _number(text: str | None) -> int | tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return _numbers(text)
    except ValueError:
        raise PolicyError(f"--regions {text!r} is no whole number; with --levels give one for each: 100,20") from None
