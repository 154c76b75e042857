"""Areas and who is next to whom, from whatever a geographer has at hand.

read(nodes, edges)      two tables: a row per area, a row per pair of neighbours
read(shapes)            GeoJSON or TopoJSON; GeoPackage, shapefile and the like with geopandas
from_graph(graph)       a networkx graph
from_weights(weights)   libpysal's W or Graph
from_frame(frame)       a GeoDataFrame
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from shoal.engines.shapes import Shape, by_id, center, neighbors, read_features
from shoal.errors import InputError, MissingDependencyError, PolicyError

JSON = (".geojson", ".json", ".topojson")
GEO = (".gpkg", ".shp", ".fgb", ".gml", ".kml", ".geoparquet", ".zip")
_X, _Y = ("lng", "lon", "long", "longitude", "x"), ("lat", "latitude", "y")


@dataclass(frozen=True, slots=True, eq=False)
class Geography:
    """Areas and their neighbours.

    ids      name of every area, as text, leading zeros kept
    edges    int64[m, 2]  pairs of neighbours by position, each once, the smaller first
    columns  what else is known, a list of n values by name
    shapes   polygons by id, where they are known
    """

    ids: tuple[str, ...]
    edges: np.ndarray
    columns: Mapping[str, list[Any]] = field(default_factory=dict, repr=False)
    shapes: Mapping[str, Shape] = field(default_factory=dict, repr=False)

    def column(self, name: str) -> list[Any]:
        """A column by name; PolicyError with the nearest name when there is none."""
        if name not in self.columns:
            raise PolicyError.unknown("column of the areas", name, self.columns)
        return self.columns[name]

    def whole(self, name: str) -> np.ndarray:
        """A column of whole numbers as int64[n]; InputError naming the area and the first value that is none."""
        found = np.empty(len(self.ids), np.int64)
        for i, value in enumerate(self.column(name)):
            try:
                number = float(value)
                if number != int(number):
                    raise ValueError
                found[i] = int(number)
            except (TypeError, ValueError, OverflowError):
                raise InputError(
                    f"column {name!r} of area {self.ids[i]!r} is {value!r}, not a whole number; fill it in or round it"
                ) from None
        return found

    def centers(self) -> np.ndarray | None:
        """float64[n, 2]: columns lng and lat (or x and y) if there are any, else the shapes' centers of gravity; None
        when some area has neither."""
        named = {name.lower(): name for name in self.columns}
        x, y = next((named[n] for n in _X if n in named), None), next((named[n] for n in _Y if n in named), None)
        found = np.full((len(self.ids), 2), np.nan)
        if x is not None and y is not None:
            for at, pair in enumerate(zip(self.columns[x], self.columns[y], strict=True)):
                try:
                    found[at] = float(pair[0]), float(pair[1])
                except (TypeError, ValueError):
                    continue
        for i in np.flatnonzero(~np.isfinite(found).all(axis=1)).tolist():
            found[i] = center(self.shapes.get(self.ids[i], []))
        return found if np.isfinite(found).all() else None


def geography(
    ids: Iterable[Any],
    pairs: Iterable[tuple[Any, Any]],
    columns: Mapping[str, Sequence[Any]] | None = None,
    shapes: Mapping[str, Shape] | None = None,
) -> Geography:
    """Names of areas and pairs of names as a Geography; InputError for a name twice or a pair that names no area."""
    named = tuple(str(i) for i in ids)
    place = {name: i for i, name in enumerate(named)}
    if len(place) < len(named):
        twice = next(name for i, name in enumerate(named) if place[name] != i)
        raise InputError(f"area {twice!r} occurs more than once; give one row for each area")
    if not named:
        raise InputError("there are no areas")
    found: set[tuple[int, int]] = set()
    for pair in pairs:
        ends = []
        for end in pair:
            if str(end) not in place:
                raise InputError(
                    f"a pair of neighbours names {str(end)!r}, which is no area{_zeros(str(end), place)}; "
                    "drop the pair or add the area"
                )
            ends.append(place[str(end)])
        if ends[0] != ends[1]:
            found.add((min(ends), max(ends)))
    return Geography(
        named,
        np.array(sorted(found), np.int64).reshape(-1, 2),
        {} if columns is None else {name: list(values) for name, values in columns.items()},
        {} if shapes is None else dict(shapes),
    )


def _zeros(name: str, place: Mapping[str, int]) -> str:
    """A hint when leading zeros were lost on the way."""
    bare = name.lstrip("0")
    other = next((p for p in place if p != name and p.lstrip("0") == bare), None) if bare else None
    return "" if other is None else f" (there is {other!r}: leading zeros were lost in one of the files)"


def read(
    areas: str | Path,
    edges: str | Path | None = None,
    *,
    id: str | None = None,
    source: str | None = None,
    target: str | None = None,
    shapes: str | Path | None = None,
    shape_id: str | None = None,
) -> Geography:
    """Areas from files.

    areas            table with a row per area (CSV, also .gz, Parquet, Excel), or polygons (GeoJSON, TopoJSON; others
                     with geopandas)
    edges            table with a row per pair of neighbours; without it, areas must be polygons, or shapes be given,
                     and areas are neighbours when their polygons share a border of positive length
    id               column (property) that names an area; "id" when there is one, else the first column
    source, target   columns of edges; "u" and "v" or "source" and "target" if there are any, else the first two
    shapes           polygons of the areas, named by the property shape_id (default: id)
    """
    areas = Path(areas)
    if areas.suffix.lower() in (*JSON, *GEO):
        given = _polygons(areas, id)
        if edges is None:
            return given
        pairs = _pairs(edges, source, target)
        return geography(given.ids, pairs, given.columns, given.shapes)
    from shoal.engines.files import read_table

    frame = read_table(areas)
    key = _key(frame.columns, id)
    names = [str(v) for v in _known(frame[key].to_list(), key)]
    held = {c: frame[c].to_list() for c in frame.columns}
    drawn = {} if shapes is None else dict(_polygons(Path(shapes), shape_id or id).shapes)
    if edges is not None:
        return geography(names, _pairs(edges, source, target), held, drawn)
    if shapes is None:
        raise PolicyError("without a table of neighbours, polygons are needed to tell who shares a border with whom")
    between = neighbors([drawn.get(name, []) for name in names])
    return geography(names, [(names[a], names[b]) for a, b in between.tolist()], held, drawn)


def _key(columns: Sequence[str], name: str | None) -> str:
    if name is not None:
        if name not in columns:
            raise PolicyError.unknown("column", name, columns)
        return name
    return "id" if "id" in columns else columns[0]


def _known(values: Sequence[Any], name: str) -> Sequence[Any]:
    missing = sum(v is None for v in values)
    if missing:
        raise InputError(f"column {name!r} is empty in {missing} rows; every row needs it")
    return values


def _pairs(path: str | Path, source: str | None, target: str | None) -> list[tuple[str, str]]:
    from shoal.engines.files import read_table

    frame = read_table(path, rows=False)  # areas of which none is next to another are areas all the same
    if len(frame.columns) < 2:
        raise InputError(f"{Path(path).name} has {len(frame.columns)} column; a pair of neighbours needs two")
    usual = next((p for p in (("u", "v"), ("source", "target")) if set(p) <= set(frame.columns)), None)
    first, second = usual or (frame.columns[0], frame.columns[1])
    first, second = _key(frame.columns, source or first), _key(frame.columns, target or second)
    u, v = (_known(frame[c].to_list(), c) for c in (first, second))
    return [(str(a), str(b)) for a, b in zip(u, v, strict=True)]


def _polygons(path: Path, id: str | None) -> Geography:
    if path.suffix.lower() not in JSON:
        return from_frame(_geopandas(f"reading {path.name}").read_file(path), id=id)
    found = read_features(path)
    if not found:
        raise InputError(f"{path.name} holds no features")
    key = _key(list(found[0][0]), id)
    shapes = by_id(found, key)
    first: dict[str, dict[str, Any]] = {}
    for properties, _ in found:
        first.setdefault(str(properties[key]), properties)
    names = list(shapes)
    between = neighbors([shapes[name] for name in names])
    columns = {c: [first[name].get(c) for name in names] for c in found[0][0]}
    return geography(names, [(names[a], names[b]) for a, b in between.tolist()], columns, shapes)


def _geopandas(purpose: str) -> Any:
    try:
        import geopandas
    except ImportError:
        raise MissingDependencyError.needed("geopandas", purpose, "geo") from None
    return geopandas


def from_frame(frame: Any, id: str | None = None) -> Geography:
    """A GeoDataFrame: neighbours are rows whose polygons share a border of positive length, by exact geometry.

    id  the column that names an area; "id" when there is one, else the first column that is not the geometry

    Polygons in a projection other than longitude and latitude are turned into those for drawing, not for measuring.
    """
    own = frame.geometry.name
    columns = [str(c) for c in frame.columns if c != own]
    key = _key(columns, id) if columns or id is not None else None
    names = [str(v) for v in (frame.index if key is None else frame[key]).tolist()]
    geometry = frame.geometry.reset_index(drop=True)
    plain = geometry.set_crs(None, allow_override=True)  # whether a length is positive holds in degrees as well
    a, b = plain.sindex.query(plain, predicate="intersects")
    once = a < b
    a, b = a[once], b[once]
    border = plain.iloc[a].reset_index(drop=True).intersection(plain.iloc[b].reset_index(drop=True))
    positive = np.asarray(border.length) > 0
    pairs = [(names[i], names[j]) for i, j in zip(a[positive].tolist(), b[positive].tolist(), strict=True)]
    drawn = geometry if geometry.crs is None or geometry.crs.is_geographic else geometry.to_crs(4326)
    from shoal.engines.shapes import features

    shapes = {name: s for name, (_, s) in zip(names, features(drawn.__geo_interface__), strict=True)}
    return geography(names, pairs, {c: frame[c].tolist() for c in columns}, shapes)


def from_graph(graph: Any) -> Geography:
    """A networkx graph, or anything with its ``nodes`` and ``edges``: attributes of the nodes become columns.

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
    """libpysal's spatial weights, the classic W (``neighbors``, ``id_order``) or the newer Graph (``adjacency``)."""
    if hasattr(weights, "adjacency") and hasattr(weights, "unique_ids"):
        held = weights.adjacency
        pairs = [pair for pair, weight in zip(held.index.tolist(), held.tolist(), strict=True) if weight]
        return geography(list(weights.unique_ids), pairs)
    if isinstance(getattr(weights, "neighbors", None), Mapping):
        order = getattr(weights, "id_order", None) or list(weights.neighbors)
        return geography(order, [(a, b) for a, near in weights.neighbors.items() for b in near])
    raise InputError("from_weights needs libpysal's W or Graph, with neighbors or adjacency")
