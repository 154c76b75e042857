"""Areas and their neighbors, from files, frames, graphs, and spatial weights.

``notes`` and ``facts`` report everything that was restored, repaired, or left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.engines.adjacency import Disconnected, adjacency, disconnected, neighbors
from shoal.engines.shapes import (
    Shape,
    around,
    center,
    features,
    has_geometry,
    listed,
    look_alikes,
    partners,
    restored,
    spelled,
)
from shoal.engines.vector import DrawnAreas, FeaturesOfFile, areas_of, drawing, read_drawing
from shoal.errors import InputError, PolicyError
from shoal.model.arguments import missing
from shoal.model.cards import several
from shoal.model.metric import in_degrees, is_latitude, is_longitude
from shoal.model.notation import refuse_notations
from shoal.paths import has_layers, is_drawing

_PLANE = ("x", "y")
_SAYS = dict.fromkeys(("1", "1.0", "yes", "true", "y", "t"), True) | dict.fromkeys(
    ("0", "0.0", "no", "false", "n", "f", "", "none", "nan"), False
)

__all__ = ["Geography", "from_frame", "from_graph", "from_weights", "geography", "read"]


@dataclass(frozen=True, slots=True, eq=False)
class Geography:
    """Areas and their neighbors.

    ids      name of every area, as text with leading zeros
    edges    int64[m, 2]  pairs of neighbors by position, each once, the smaller first
    columns  further columns, a list of n values by name
    shapes   polygons by id, if known; in degrees if the file's coordinate system is known
    outside  positions of areas that are in no region: they have no polygon, and the caller wants to leave them out
    degrees  whether coordinates are longitude and latitude; None if this is unknown
    notes    what was restored, repaired, or left out, as sentences
    facts    the same as figures
    """

    ids: tuple[str, ...]
    edges: np.ndarray
    columns: Mapping[str, list[Any]] = field(default_factory=dict, repr=False)
    shapes: Mapping[str, Shape] = field(default_factory=dict, repr=False)
    outside: tuple[int, ...] = ()
    degrees: bool | None = None
    notes: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def column(self, name: str) -> list[Any]:
        """A column by name; PolicyError with the most similar name if there is none."""
        if name not in self.columns:
            raise PolicyError.unknown("column of the areas", name, self.columns)
        return self.columns[name]

    def whole(self, name: str) -> np.ndarray:
        """A column of whole numbers of at least 0 as int64[n]; InputError with the first area that has another
        value."""
        found = np.empty(len(self.ids), np.int64)
        for i, value in enumerate(self.column(name)):
            if missing(value) or value == "":
                raise InputError(
                    f"column {name!r} of area {self.ids[i]!r} is empty; write 0 where nobody is, or look up the count"
                )
            try:
                number = float(value)
                if number != int(number):
                    raise ValueError
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"column {name!r} of area {self.ids[i]!r} is not a whole number; fill it in, round it, or "
                    "write it without marks between thousands"
                ) from None
            if number < 0:
                raise InputError(f"column {name!r} of area {self.ids[i]!r} is below 0; a sum of areas can only grow")
            if number >= 2**53:
                raise InputError(
                    f"column {name!r} of area {self.ids[i]!r} is 2^53 or more; correct it, or count in larger units"
                )
            found[i] = int(number)
        return found

    def number(self, name: str) -> np.ndarray:
        """A column of numbers as float64[n]; InputError with the area and value of the first other value."""
        found = np.empty(len(self.ids))
        for i, value in enumerate(self.column(name)):
            try:
                found[i] = float(value)
            except (TypeError, ValueError):
                found[i] = np.nan
            if not np.isfinite(found[i]):
                raise InputError(
                    f"column {name!r} of area {self.ids[i]!r} is not a number; fill it in, and write "
                    f"decimal points for commas, or name the decimal mark (⟨decimal[{name!r}] = ','⟩)"
                )
        return found

    def centers(self) -> np.ndarray | None:
        """float64[n, 2]: columns of longitude and latitude (or x and y) if there are any, otherwise the shapes'
        centroids; None if an area that isn't in ``outside`` has neither."""
        x, y = self.located()
        if (x is None or y is None) and not self.shapes and len(self.outside) < len(self.ids):
            return None
        found = np.full((len(self.ids), 2), np.nan)
        if x is not None and y is not None:
            for at, pair in enumerate(zip(self.columns[x], self.columns[y], strict=True)):
                try:
                    found[at] = float(pair[0]), float(pair[1])
                except (TypeError, ValueError):
                    continue
        for i in np.flatnonzero(~np.isfinite(found).all(axis=1)).tolist():
            found[i] = center(around(self.shapes.get(self.ids[i], []), self.degrees is not False))
            if self.degrees is not False and found[i, 0] > 180:
                found[i, 0] -= 360
        lost = ~np.isfinite(found).all(axis=1)
        if lost[list(set(range(len(self.ids))) - set(self.outside))].any():
            return None
        found[lost] = found[~lost].mean(axis=0) if (~lost).any() else 0.0
        return found

    def says(self, name: str) -> np.ndarray:
        """bool[n]: where a column has yes, true, or 1; InputError with the first area that has no truth value."""
        answers = [_SAYS.get("" if missing(v) else str(v).strip().lower()) for v in self.column(name)]
        if None in answers:
            at = answers.index(None)
            raise InputError(
                f"column {name!r} of area {self.ids[at]!r} is neither yes nor no; write yes, true or 1, or no, "
                "false, 0 or nothing"
            )
        return np.array(answers, np.bool_)

    def apart(self, empty: np.ndarray | None = None) -> Disconnected:
        """Areas without a neighbor, and sets of several areas that aren't connected with the largest one.

        empty  bool[n]  areas without people: a single one isn't isolated, and a set of them isn't an island
        """
        return disconnected(self.ids, self.edges, self.outside, empty)

    def geographic(self) -> bool:
        """Whether coordinates are degrees: by the file's system, by the columns' names, otherwise by their range."""
        if self.degrees is not None:
            return self.degrees
        x, y = self.located()
        if x is not None and y is not None and is_longitude(x) and is_latitude(y):
            return True
        places = self.centers()
        return places is None or in_degrees(places)

    def located(self) -> tuple[str | None, str | None]:
        """Columns of longitude and latitude, otherwise x and y; None if there are none."""
        x, y = next(filter(is_longitude, self.columns), None), next(filter(is_latitude, self.columns), None)
        if x is not None and y is not None:
            return x, y
        named = {name.lower(): name for name in self.columns}
        return named.get(_PLANE[0]), named.get(_PLANE[1])


def geography(
    ids: Iterable[Any],
    pairs: Iterable[tuple[Any, Any]],
    columns: Mapping[str, Sequence[Any]] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> Geography:
    """A Geography from names of areas and pairs of names; InputError for a duplicate name or an unknown name in a
    pair."""
    named = tuple(spelled(i) for i in ids)
    place = {name: i for i, name in enumerate(named)}
    if len(place) < len(named):
        twice = next(name for i, name in enumerate(named) if place[name] != i)
        raise InputError(
            f"area {twice!r} occurs more than once; give one row for each area, and name the table of the areas before "
            "that of the pairs"
        )
    if not named:
        raise InputError("there are no areas")
    ends = []
    for pair in pairs:
        for end in pair:
            name = end if isinstance(end, str) and end in place else spelled(end)
            if name not in place:
                raise InputError(f"a pair of neighbors names {name!r}, which is no area; drop the pair or add the area")
            ends.append(place[name])
    both = np.sort(np.array(ends, np.int64).reshape(-1, 2), axis=1)
    once = np.unique(both[both[:, 0] < both[:, 1]] @ np.array([len(named), 1]))
    return Geography(
        named,
        np.column_stack(np.divmod(once, len(named))),
        {} if columns is None else {name: list(values) for name, values in columns.items()},
        {} if shapes is None else dict(shapes),
    )


def read(
    areas: Any,
    edges: Any = None,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    shapes: Any = None,
    shape_id: str | None = None,
    unmatched: str = "refuse",
    tolerance: float | None = None,
    coordinates: str = "auto",
    layer: str | None = None,
    decimal: Mapping[str, str] | None = None,
) -> Geography:
    """Areas from files or frames.

    areas            table with a row for each area (CSV, also .gz, Parquet, Excel, or a frame), or polygons (GeoJSON,
                     TopoJSON, a GeoDataFrame; others with the extra ``geo``)
    edges            table or frame with a row for each pair of neighbors; without it, areas must be polygons, or shapes
                     be
                     given, and neighbors are found from the polygons (``engines.shapes``)
    id               column (property) with the name of an area; by default "id" if there is one, otherwise the first
                     column
    source, target   columns of edges; by default "u" and "v" or "source" and "target" if there are any, otherwise the
                     first two
    shapes           polygons of the areas, a file or a GeoDataFrame, named by the property shape_id (default: id)
    unmatched        "refuse": ids that are only in one file are refused, with all their names; or "leave-out": areas
                     without a polygon are in no region if polygons define the neighbors, and polygons without an area
                     and pairs with an unknown area are dropped
    tolerance        largest distance of borders that are drawn twice, km or the plane's units; None: estimated
    coordinates      "projected": polygons whose numbers could be degrees are in a plane, unless they were converted to
                     degrees from the system that the file states; otherwise detected by system and range
    layer            of the file of polygons, if it has several layers of them
    decimal          column of the table of areas whose numbers are texts -> its decimal mark, a comma or a point

    Ids that lost their leading zeros in one of the files get them back. ``facts["read"]`` has these arguments, to read
    the files again.
    """
    if shape_id is not None and shapes is None:
        raise PolicyError(
            f"⟨shape_id={shape_id!r}⟩ names a property of polygons next to the areas; name their file, ⟨shapes=FILE⟩"
        )
    if tolerance is not None and edges is not None:
        raise PolicyError(
            f"⟨tolerance={tolerance}⟩ compares borders, and the pairs of neighbors are given; leave it out"
        )
    if edges is None and (source is not None or target is not None):
        named = "target" if source is None else "source"
        raise PolicyError(f"⟨{named}=⟩ names a column of the pairs of neighbors, and none are given; leave it out")
    from_file = isinstance(areas, (str, Path))
    if layer is not None and shapes is None and not (from_file and is_drawing(areas) and has_layers(areas)):
        raise PolicyError(f"⟨layer={layer!r}⟩ names a layer of a file of polygons, and no such file is given")
    how: dict[str, Any] = {
        "id": id,
        "source": source,
        "target": target,
        "shape_id": shape_id,
        "coordinates": coordinates,
    }
    how |= {} if layer is None else {"layer": layer}
    how |= {"decimal": dict(decimal)} if decimal else {}
    found = _read(Path(areas) if from_file else areas, edges, shapes, unmatched, tolerance, how)
    return replace(found, notes=(*found.notes, *look_alikes(found.ids)), facts={**found.facts, "read": how})


def _read(areas: Any, edges: Any, shapes: Any, unmatched: str, tolerance: float | None, how: Any) -> Geography:
    """Areas from a file or a frame, with neighbors from pairs or from polygons."""
    id, source, target, shape_id, plane = *list(how.values())[:4], how["coordinates"] == "projected"
    refuse_notations({}, how.get("decimal", {}))
    if has_outlines(areas) or (isinstance(areas, Path) and is_drawing(areas)):
        if "decimal" in how:
            raise PolicyError("⟨decimal=⟩ names columns of a table of areas, and the areas are polygons; leave it out")
        drawn = _drawn(areas, id, plane, layer=None if shapes is not None else how.get("layer"))
        given = Geography(tuple(drawn.names), np.empty((0, 2), np.int64), drawn.columns(), drawn.shapes())
        given = _with_drawing(given, drawn, edges is None)
        return _bordered(given, drawn, tolerance) if edges is None else _paired(given, edges, source, target, unmatched)
    from shoal.engines.store import in_plain

    frame = in_plain(_table(areas), how.get("decimal"))
    key = _key(frame.columns, id)
    names = [spelled(v) for v in _known(frame[key].to_list(), key)]
    held = {c: frame[c].to_list() for c in frame.columns}
    if shapes is None:
        if edges is None:
            raise PolicyError(
                "polygons are needed to tell who shares a border with whom, or else a table of the pairs of neighbors: "
                "pass ⟨shapes=FILE⟩ (.geojson, .gpkg or .shp), or a second file with two columns of ids"
            )
        return _paired(geography(names, [], held), edges, source, target, unmatched)
    own = Path(shapes) if isinstance(shapes, (str, Path)) else shapes
    drawn = _drawn(own, shape_id or id, plane, "shape_id", how.get("layer"))
    zeros = restored(names, drawn.names)
    names = [zeros.first.get(name, name) for name in names]
    drawn = drawn._replace(names=[zeros.second.get(name, name) for name in drawn.names])
    have, want = set(drawn.names), set(names)
    without = [name for name in names if name not in have]
    extra = [name for name in drawn.names if name not in want]
    lacking = {("area", "without a polygon"): without, ("polygon", "without an area"): extra}
    unmatched_ids = partners(unmatched, lacking, {"area": have, "polygon": want})
    known = drawn.shapes()
    given = geography(names, [], held, {name: known[name] for name in names if name in have})
    outside = tuple(i for i, name in enumerate(names) if name not in have) if edges is None else ()
    facts = {"areas_without_polygon": listed(without), "polygons_without_area": listed(extra)}
    words = [*zeros.words("the areas", "the polygons"), *(f"{s}: left out" for s in unmatched_ids)]
    given = replace(
        _with_drawing(given, drawn, edges is None), outside=outside, notes=(*drawn.drawing.notes, *words), facts=facts
    )
    if edges is not None:
        return _paired(given, edges, source, target, unmatched)
    return _bordered(given, drawn, tolerance)


def _with_drawing(given: Geography, drawn: DrawnAreas, borders: bool) -> Geography:
    """Areas with the drawing's statement about coordinates. If the drawing is only for maps, the table's columns
    prevail."""
    x, y = given.located()
    plane = not borders and x is not None and y is not None and not (is_longitude(x) and is_latitude(y))
    return replace(given, degrees=None if plane else drawn.drawing.degrees, notes=drawn.drawing.notes)


def _drawn(given: Any, id: str | None, plane: bool, option: str = "id", layer: str | None = None) -> DrawnAreas:
    """Polygons of a file or of a GeoDataFrame."""
    name = given.name if isinstance(given, Path) else "the frame"
    drawing = read_drawing(given, layer) if isinstance(given, Path) else _of_frame(given)
    if plane and drawing.geographic:
        drawing = drawing._replace(geographic=False, degrees=False)
    what = f"property of {name} (say which is with ⟨{option}=NAME⟩)"
    return areas_of(drawing, lambda names: _key(names, id, what), name, id, option)


def has_outlines(given: Any) -> bool:
    """Whether an object is a GeoDataFrame with a column of outlines."""
    return hasattr(given, "columns") and hasattr(getattr(given, "geometry", None), "__geo_interface__")


def _of_frame(frame: Any) -> FeaturesOfFile:
    """The features of a GeoDataFrame. An index with a name is a column, the first one."""
    geometry = frame.geometry
    held = [(str(c), frame[c]) for c in frame.columns if c != geometry.name]
    if len({name for name, _ in held}) < len(held):
        twice = next(name for i, (name, _) in enumerate(held) if name in [n for n, _ in held[:i]])
        raise InputError(f"the frame has several columns {twice!r}; rename or drop all but one")
    index = getattr(frame.index, "name", None)
    if index is not None and str(index) not in dict(held):
        held.insert(0, (str(index), frame.index))
    held = held or [("id", frame.index)]
    names = [name for name, _ in held]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(values.tolist() for _, values in held), strict=True)]
    shapes = [shape for _, shape in features(geometry.__geo_interface__)]
    return drawing(list(zip(rows, shapes, strict=True)), frame.crs, "the frame")


def _bordered(given: Geography, drawn: DrawnAreas, tolerance: float | None) -> Geography:
    """Areas with neighbors from the polygons."""
    place = {name: i for i, name in enumerate(drawn.names)}
    own = [drawn.own[place[name]] if name in place else [] for name in given.ids]
    pairs, sentences, facts = _borders(own, drawn.drawing.geographic, tolerance)
    found = replace(given, edges=pairs, notes=(*given.notes, *sentences))
    return replace(found, facts={**given.facts, **facts, **found.apart().facts})


def _borders(own: Sequence[Shape], geographic: bool, tolerance: float | None) -> tuple[np.ndarray, list[str], dict]:
    """Pairs of neighbors, with sentences and figures about the drawing."""
    if tolerance is None and not has_geometry():
        pairs = neighbors(own)
        sentences = [f"{len(pairs):,} pairs of neighbors by sides in common alone; borders drawn twice need shoal[geo]"]
        return pairs, sentences, {"neighbors": len(pairs), "tolerance": None}
    found = adjacency(own, geographic, tolerance)
    unit = " km" if geographic else ""
    facts: dict[str, Any] = {"neighbors": len(found.pairs), "tolerance": found.tolerance}
    facts |= {"unit": "km" if geographic else "as the coordinates", "overlapping_pairs": found.overlaps}
    facts |= {"slivers": found.slivers, "holes": found.holes, "repaired": found.repaired}
    sentences = [
        f"{several(len(found.pairs), 'pair')} of neighbors, {several(found.overlaps, 'pair')} overlapping, "
        f"{several(found.slivers, 'sliver')}, {several(found.holes, 'hole')}"
        + (f"; borders up to {found.tolerance:.3g}{unit} apart are one" if found.tolerance else "")
    ]
    if found.alone:
        sentences.append(
            f"{several(found.alone, 'area')} have no neighbor and lie near another: if the drawing leaves gaps at "
            f"borders, a tolerance of {found.gap:g}{unit} closes them"
        )
    if found.repaired:
        sentences.append(f"{several(found.repaired, 'area')} had rings that cross themselves, repaired")
    return found.pairs, sentences, facts


def _table(given: Any, rows: bool = True) -> pl.DataFrame:
    """A file or a frame as a Polars frame. rows: whether a table without rows is refused."""
    from shoal.engines.open import open_table
    from shoal.engines.store import read_table

    if isinstance(given, (str, Path)):
        return read_table(given, rows=rows)
    table = open_table(given)
    if rows and not table.rows:
        raise InputError("the frame has no rows, so there is nothing to publish")
    return table.polars(table.columns)


def _paired(given: Geography, edges: Any, source: str | None, target: str | None, unmatched: str) -> Geography:
    """Areas with neighbors from a table."""
    if isinstance(edges, (str, Path)) and is_drawing(edges):
        raise InputError(f"{Path(edges).name!r} holds polygons and no pairs of neighbors; name it in ⟨shapes=...⟩")
    pairs = _pairs(edges, source, target)
    ends = list(dict.fromkeys(end for pair in pairs for end in pair))
    zeros = restored(given.ids, ends)
    ids = [zeros.first.get(name, name) for name in given.ids]
    shapes = {zeros.first.get(name, name): shape for name, shape in given.shapes.items()}
    pairs = [(zeros.second.get(a, a), zeros.second.get(b, b)) for a, b in pairs]
    known = set(ids)
    unknown = [e for e in dict.fromkeys(end for pair in pairs for end in pair) if e not in known]
    lacking = {("name", "in the pairs of neighbors without an area"): unknown}
    unmatched_ids = partners(unmatched, lacking, {"name": known})
    kept = [(a, b) for a, b in pairs if a in known and b in known]
    found = geography(ids, kept, given.columns, shapes)
    facts = {"neighbors": len(found.edges), "pairs_without_area": listed(unknown)}
    facts |= replace(found, outside=given.outside).apart().facts
    words = [*zeros.words("the areas", "the pairs"), *(f"{s}: left out" for s in unmatched_ids)]
    return replace(
        found,
        outside=given.outside,
        degrees=given.degrees,
        notes=(*given.notes, *words),
        facts={**given.facts, **facts},
    )


def _key(columns: Sequence[str], name: str | None, what: str = "column") -> str:
    if name is not None:
        if name not in columns:
            raise PolicyError.unknown(what, name, columns)
        return name
    return "id" if "id" in columns else columns[0]


def _known(values: Sequence[Any], name: str) -> Sequence[Any]:
    empty = sum(missing(v) or not spelled(v) for v in values)
    if empty:
        raise InputError(f"column {name!r} is empty in {several(empty, 'row')}; every row needs it")
    return values


def _pairs(given: Any, source: str | None, target: str | None) -> list[tuple[str, str]]:
    frame = _table(given, rows=False)  # areas without any neighbors are valid
    if len(frame.columns) < 2:
        name = Path(given).name if isinstance(given, (str, Path)) else "the frame of pairs"
        raise InputError(f"{name} has {len(frame.columns)} column; a pair of neighbors needs two")
    usual = next((p for p in (("u", "v"), ("source", "target")) if set(p) <= set(frame.columns)), None)
    first, second = usual or (frame.columns[0], frame.columns[1])
    first, second = _key(frame.columns, source or first), _key(frame.columns, target or second)
    u, v = (_known(frame[c].to_list(), c) for c in (first, second))
    return list(zip(map(spelled, u), map(spelled, v), strict=True))


def from_frame(frame: Any, id: str | None = None, tolerance: float | None = None) -> Geography:
    """Areas from a GeoDataFrame, with neighbors from the geometry of its polygons, in its coordinates.

    id         column, or name of the index, with the name of an area; by default "id" if there is one, otherwise the
               index if it has a name, otherwise the first column that is not the geometry
    tolerance  as for ``read``

    Polygons in a projection are converted to longitude and latitude for drawing, not for measuring.
    """
    if not has_outlines(frame):
        raise InputError("from_frame needs a GeoDataFrame, with the polygon of each area; read a file with ⟨read⟩")
    return read(frame, id=id, tolerance=tolerance)


def from_graph(graph: Any) -> Geography:
    """Areas from a networkx graph, or a similar object with ``nodes`` and ``edges``: attributes of nodes become
    columns.

    Directed and multiple edges count once; a missing attribute is None.
    """
    try:
        nodes = [(node, dict(data)) for node, data in graph.nodes(data=True)]
        pairs = [(u, v) for u, v, *_ in graph.edges()]
    except (AttributeError, TypeError, ValueError):
        raise InputError("from_graph needs a networkx graph, with nodes(data=True) and edges()") from None
    names = dict.fromkeys(name for _, data in nodes for name in data)
    columns = {str(name): [data.get(name) for _, data in nodes] for name in names}
    return geography([node for node, _ in nodes], pairs, columns)


def from_weights(weights: Any) -> Geography:
    """Areas from libpysal's spatial weights: the W (``neighbors``, ``id_order``) or the newer Graph (``adjacency``)."""
    if hasattr(weights, "adjacency") and hasattr(weights, "unique_ids"):
        held = weights.adjacency
        pairs = [pair for pair, weight in zip(held.index.tolist(), held.tolist(), strict=True) if weight]
        return geography(list(weights.unique_ids), pairs)
    if isinstance(getattr(weights, "neighbors", None), Mapping):
        order = getattr(weights, "id_order", None) or list(weights.neighbors)
        return geography(order, [(a, b) for a, near in weights.neighbors.items() for b in near])
    raise InputError("from_weights needs libpysal's W or Graph, with neighbors or adjacency")
