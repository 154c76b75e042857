"""Files of polygons and their coordinate reference system: GeoJSON and TopoJSON directly, GeoPackage, Shapefile, KML,
and others through GDAL.

Outlines are drawn in longitude and latitude. Neighbors are found in the file's own coordinates, in which sides are
straight.
"""

from __future__ import annotations

import glob
import json
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shoal.engines.atomic import replace
from shoal.engines.shapes import Shape, by_id, features, spelled, without_self_crossings
from shoal.engines.source import plain
from shoal.errors import InputError, MissingDependencyError, PolicyError
from shoal.model.arguments import missing
from shoal.model.cards import several
from shoal.model.metric import in_degrees
from shoal.paths import OUTLINES, ending, has_layers

if TYPE_CHECKING:
    import polars as pl

_DRIVERS = {".gpkg": "GPKG", ".shp": "ESRI Shapefile", ".kml": "KML"}  # GeoJSON needs no driver


class FeaturesOfFile(NamedTuple):
    """Features of a file.

    properties  of every feature
    own         shapes in the file's own coordinates
    drawn       the same in longitude and latitude, or in the plane if the file states no system
    geographic  whether the file's own coordinates are degrees
    degrees     whether the coordinates of ``drawn`` are degrees
    notes       sentences on how the file was interpreted
    """

    properties: list[dict[str, Any]]
    own: list[Shape]
    drawn: list[Shape]
    geographic: bool
    degrees: bool
    notes: tuple[str, ...]


class DrawnAreas(NamedTuple):
    """Areas of a file of polygons; several features with one id are merged."""

    drawing: FeaturesOfFile
    names: list[str]
    first: list[int]
    own: list[Shape]
    seen: list[Shape]

    def columns(self) -> dict[str, list[Any]]:
        """The properties of every area's first feature, by name."""
        rows = [self.drawing.properties[i] for i in self.first]
        names = dict.fromkeys(c for properties in self.drawing.properties for c in properties)
        return {c: [row.get(c) for row in rows] for c in names}

    def shapes(self) -> dict[str, Shape]:
        """The drawn shapes, by name; self-crossing rings are split."""
        return dict(zip(self.names, map(without_self_crossings, self.seen), strict=True))


def areas_of(
    found: FeaturesOfFile, key: Callable[[Sequence[str]], str], name: str, asked: str | None, option: str = "id"
) -> DrawnAreas:
    """Features merged by the property with the name of an area, which ``key`` selects from the properties.

    Raises InputError if it was not requested with ``option`` and has repeated values, because then it may not be an id.
    """
    if not found.properties:
        raise InputError(f"{name} holds no features; name a file with an outline for each area")
    if not any(found.properties):
        raise InputError(f"the features of {name} have no property, so no area has a name; give each an id")
    id = key(list(dict.fromkeys(name for properties in found.properties for name in properties)))
    empty = sum(missing(held.get(id)) or not spelled(held[id]) for held in found.properties)
    if empty:
        raise InputError(
            f"property {id!r} is empty in {several(empty, 'feature')} of {name}; give each area its id, or remove "
            "these features"
        )
    own = by_id(list(zip(found.properties, found.own, strict=True)), id)
    seen = by_id(list(zip(found.properties, found.drawn, strict=True)), id)
    first: dict[str, int] = {}
    for i, properties in enumerate(found.properties):
        first.setdefault(spelled(properties[id]), i)
    more = len(found.properties) - len(first)
    if more and id != asked and id != "id":
        each = len(found.properties)
        one_each = (c for c in found.properties[0] if len({spelled(p.get(c)) for p in found.properties}) == each)
        raise InputError(
            f"the features of {name} have no property 'id', and {id!r}, their first, does not tell them apart: "
            f"{more:,} repeat another's; name the one that does with ⟨{option}={next(one_each, 'NAME')!r}⟩"
        )
    if more:
        words = f"{several(more, 'feature')} of {name} with another's id: pieces of that area"
        apart = {
            column
            for properties in found.properties
            for column, value in found.properties[first[spelled(properties[id])]].items()
            if properties.get(column) != value
        }
        if apart - {id}:
            words += f"; of {', '.join(sorted(apart - {id}))}, where pieces differ, the first's value is taken"
        found = found._replace(notes=(*found.notes, words))
    return DrawnAreas(found, list(own), list(first.values()), list(own.values()), list(seen.values()))


def read_points(path: Path, layer: str | None) -> pl.DataFrame:
    """A map of points as a table: the properties, then longitude and latitude, or x and y if its system is a plane.

    layer  the layer to read, for a file with several

    If a property has such a name, the coordinates are ``point_longitude`` and so on. Raises InputError for a map
    without points, or with other geometries.
    """
    import polars as pl

    if not has_layers(path):
        plain(path)
        _no_layers(path, layer)
        held = _json(path)
        crs = _stated(held)
        try:
            found = list(held["features"])
            columns = {name: [(f.get("properties") or {}).get(name) for f in found]
                       for name in dict.fromkeys(key for f in found for key in f.get("properties") or {})}  # fmt: skip
            places = [_position(f.get("geometry")) for f in found]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise InputError(f"{path.name} is no FeatureCollection of points; write its points as one") from None
    else:
        crs, columns, geometries, _ = _through_gdal(path, layer, "Point")
        places = [_place(geometry) for geometry in geometries]
    other = next((kind for kind in places if isinstance(kind, str)), None)
    if other is not None or not places:
        way = "; shoal regions reads areas" if other in ("Polygon", "MultiPolygon") else ""
        raise InputError(f"{path.name} holds {f'a {other}' if other else 'nothing'} where a point belongs{way}")
    at = np.array(places, dtype=np.float64)
    degrees = _plain_degrees(crs, at, path.name) if _is_plain(crs) else _to_degrees(crs, path.name)[0]
    names = ("longitude", "latitude") if degrees else ("x", "y")
    if not columns.keys().isdisjoint(names):
        names = (f"point_{names[0]}", f"point_{names[1]}")
    made = [pl.Series(name, values, strict=False) for name, values in columns.items()]
    made += [pl.Series(name, values).fill_nan(None) for name, values in zip(names, at.T, strict=True)]
    return pl.DataFrame(made)


def _position(geometry: Any) -> Any:
    """(x, y) of a GeoJSON geometry; its kind if it isn't a point."""
    if geometry is None:
        return None, None
    kind, given = geometry["type"], geometry["coordinates"]
    alone = given[0] if kind == "MultiPoint" and len(given) == 1 else given
    return (float(alone[0]), float(alone[1])) if kind == "Point" or alone is not given else str(kind)


def _place(geometry: Any) -> Any:
    """(x, y) of a shapely geometry; its kind if it isn't a point."""
    if geometry is None or geometry.is_empty:
        return None, None
    alone = geometry.geoms[0] if geometry.geom_type == "MultiPoint" and len(geometry.geoms) == 1 else geometry
    return (alone.x, alone.y) if alone.geom_type == "Point" else str(alone.geom_type)


def _no_layers(path: Path, layer: str | None) -> None:
    if layer is not None:
        raise PolicyError(f"{path.name!r} has no layers; leave ⟨layer={layer!r}⟩ out")


def _through_gdal(path: Path, layer: str | None, kind: str) -> tuple[Any, dict[str, list[Any]], Any, tuple[str, ...]]:
    """System, properties by column, shapely geometries (None if a feature has none), and sentences about the layer.

    kind  "Polygon" or "Point", to choose from several layers
    """
    try:
        import pyogrio
        import shapely
    except ImportError:
        raise MissingDependencyError.needed("pyogrio", f"reading {path.name}", "geo") from None
    plain(path)
    if ending(path) == ".shp":
        _refuse_parted(path)
    try:
        layer, sentences = _layer(pyogrio.list_layers(path), path.name, layer, kind)
        meta, _, geometry, columns = pyogrio.raw.read(path, layer=layer)
    except (InputError, PolicyError):
        raise
    except Exception as error:
        raise InputError(f"{path.name} cannot be read as a map: {str(error).splitlines()[0]}") from None
    if geometry is None:
        raise InputError(f"{path.name} has no geometries in {layer!r}; name a layer with ⟨layer=...⟩ that is a map")
    held = {str(name): c.tolist() for name, c in zip(meta["fields"], columns, strict=True)}
    return meta["crs"], held, shapely.from_wkb(geometry), sentences


def read_drawing(path: Path, layer: str | None = None) -> FeaturesOfFile:
    """Features and their system; InputError for a file without polygons or with an unknown system."""
    if not has_layers(path):
        plain(path)
        _no_layers(path, layer)
        held = _json(path)
        return drawing(features(held, path.name), _stated(held), path.name)
    crs, columns, shapes, sentences = _through_gdal(path, layer, "Polygon")
    import shapely

    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    rows = rows or [{} for _ in shapes]  # features without properties
    texts = shapely.to_geojson(shapes).tolist()  # None for a feature without a geometry
    geometries = [None if text is None else json.loads(text) for text in texts]
    held = {
        "type": "FeatureCollection",
        "features": [{"properties": p, "geometry": g} for p, g in zip(rows, geometries, strict=True)],
    }
    found = drawing(features(held, path.name), crs, path.name)
    return found._replace(notes=(*sentences, *found.notes))


def _refuse_parted(path: Path) -> None:
    """InputError for a shapefile with a missing part, because people often copy only the .shp."""
    there = {ending(other) for other in path.parent.glob(f"{glob.escape(path.stem)}.*")}
    lost = [end for end in (".shx", ".dbf") if end not in there]
    if lost:
        raise InputError(
            f"{path.name} is one of several files of a shapefile, and {' and '.join(path.stem + e for e in lost)} "
            f"{'is' if len(lost) == 1 else 'are'} not in its folder; copy all files of this name"
        )


def _layer(layers: np.ndarray, name: str, asked: str | None, kind: str) -> tuple[str | None, tuple[str, ...]]:
    """The requested layer, or the only one of a kind, among (name, kind) of all; InputError if there are several."""
    there = [str(layer) for layer, _ in layers.tolist()]
    if asked is not None:
        if asked not in there:
            raise PolicyError.unknown("layer", asked, there)
        return asked, ()
    drawn = [str(layer) for layer, of in layers.tolist() if kind in str(of) or of == "Unknown"]
    if len(layers) < 2 or not drawn:
        return (there[0] if there else None), ()
    what = f"{kind.lower()}s"
    if len(drawn) > 1:
        raise InputError(
            f"{name} has {len(drawn)} layers of {what}: {', '.join(map(repr, drawn[:9]))}; name the one you want with "
            f"⟨layer={drawn[0]!r}⟩"
        )
    return drawn[0], (f"of {len(layers)} layers of {name}, {drawn[0]!r} has the {what}",)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path.name} is no JSON text (line {error.lineno}, column {error.colno}); give GeoJSON or TopoJSON"
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is no JSON text ({type(error).__name__}); give GeoJSON or TopoJSON") from None
    except RecursionError:
        raise InputError(f"{path.name} nests its brackets too deep; give GeoJSON or TopoJSON") from None


def _stated(held: Any) -> Any:
    """The value of a GeoJSON's member ``crs``, or None."""
    crs = held.get("crs") if isinstance(held, Mapping) else None
    return (crs.get("properties") or {}).get("name") if isinstance(crs, Mapping) else crs


def drawing(found: Sequence[tuple[dict[str, Any], Shape]], crs: Any, name: str) -> FeaturesOfFile:
    """Features with a system (any form that pyproj reads; None: degrees if all numbers can be degrees)."""
    own = [shape for _, shape in found]
    if not found:
        raise InputError(f"{name} holds no features; name a file with an outline for each area")
    if not any(own):
        raise InputError(f"{name} holds no polygons; areas need them")
    properties = [p for p, _ in found]
    flat = [shape for shape in own if not shape]
    sentences = []
    if flat:
        sentences.append(f"{several(len(flat), 'feature')} of {name} {'is' if len(flat) == 1 else 'are'} no polygon")
    points = [ring for shape in own for polygon in shape for ring in polygon if len(ring)]
    if _is_plain(crs):
        degrees = _plain_degrees(crs, np.concatenate(points) if points else np.empty((0, 2)), name)
        if crs is None and not degrees and points:
            sentences.append(
                f"{name} states no coordinate reference system and its numbers are no degrees: taken as a plane"
            )
        return FeaturesOfFile(properties, own, own, degrees, degrees, tuple(sentences))
    geographic, turned = _to_degrees(crs, name)
    if turned is None:
        return FeaturesOfFile(properties, own, own, geographic, geographic, tuple(sentences))
    drawn = [[[turned(ring) for ring in polygon] for polygon in shape] for shape in own]
    if not all(np.isfinite(ring).all() for shape in drawn for polygon in shape for ring in polygon):
        raise InputError(f"some coordinates of {name} lie outside of what its system {crs} covers; mend its crs")
    sentences.append(f"{name} is in {_short(crs)}; drawn in longitude and latitude")
    return FeaturesOfFile(properties, own, drawn, geographic, True, tuple(sentences))


def _is_plain(crs: Any) -> bool:
    """Whether a file states no system, or longitude and latitude in WGS 84."""
    return crs is None or str(crs).endswith(("CRS84", "EPSG::4326")) or str(crs) == "EPSG:4326"


def _plain_degrees(crs: Any, points: np.ndarray, name: str) -> bool:
    """Whether coordinates float64[n, 2] without a system are degrees; InputError if the file states degrees and they
    are none."""
    degrees = bool(len(points)) and in_degrees(points)
    if crs is not None and not degrees:
        raise InputError(f"{name} states degrees ({crs}), but its coordinates are none; mend its crs")
    return degrees


def _short(crs: Any) -> str:
    import pyproj

    system = pyproj.CRS.from_user_input(crs)
    authority = system.to_authority()
    return f"{system.name} ({':'.join(authority)})" if authority else str(system.name)


def _to_degrees(crs: Any, name: str) -> tuple[bool, Callable[[np.ndarray], np.ndarray] | None]:
    """Whether the system has degrees of longitude and latitude, and a function from rings to WGS 84; None if not
    needed."""
    try:
        import pyproj
    except ImportError:
        raise MissingDependencyError.needed("pyproj", f"understanding the system {crs} of {name}", "geo") from None
    try:
        system = pyproj.CRS.from_user_input(crs)
    except pyproj.exceptions.CRSError:
        raise InputError(f"{name} states the coordinate reference system {crs!r}, which is not known") from None
    if system.is_geographic and abs(system.axis_info[0].unit_conversion_factor - np.pi / 180) < 1e-12:
        return True, None  # another datum moves all borders by the same few meters
    with_ = pyproj.Transformer.from_crs(system, 4326, always_xy=True)

    def turned(ring: np.ndarray) -> np.ndarray:
        return np.column_stack(with_.transform(ring[:, 0], ring[:, 1])) if len(ring) else ring

    return False, turned


def check_outlines(path: str | Path, degrees: bool = True) -> Path:
    """A path whose ending is a supported format for outlines; PolicyError with all formats for another."""
    path = Path(path)
    if ending(path) not in OUTLINES:
        raise PolicyError(
            f"outlines are written as {', '.join(OUTLINES)}, not as {path.suffix or path.name!r}; name such a file"
        )
    if ending(path) == ".kml" and not degrees:
        raise PolicyError("KML holds longitude and latitude, and these areas lie in a plane; name a .gpkg or .geojson")
    if ending(path) in _DRIVERS:
        try:
            import pyogrio  # noqa: F401
            import shapely  # noqa: F401
        except ImportError:
            raise MissingDependencyError.needed("pyogrio", f"writing {path.name}", "geo") from None
    return path


def write_outlines(path: Path, text: str, degrees: bool) -> None:
    """Write a GeoJSON text in the format of the path's ending.

    degrees  whether coordinates are longitude and latitude; a plane without a system has none in the file either

    A shapefile consists of several files, and its names are cut to ten characters.
    """
    driver = _DRIVERS.get(ending(check_outlines(path, degrees)))
    if driver is None:
        path.write_text(text, encoding="utf-8", newline="")
        return
    with tempfile.TemporaryDirectory(prefix=".shoal-", dir=path.parent) as folder:
        made = (Path(folder) / "regions").with_suffix(path.suffix)  # GDAL uses the file's name as the layer's name
        _by_gdal(made, text, degrees, driver)
        for file in Path(folder).iterdir():
            replace(file, path.with_suffix(file.suffix))


def _by_gdal(path: Path, text: str, degrees: bool, driver: str) -> None:
    """Write GeoJSON text as a Shapefile, a GeoPackage, or KML."""
    import pyogrio
    import shapely

    held = json.loads(text)["features"]
    names = list(held[0]["properties"]) if held else []
    if driver == "ESRI Shapefile":
        names = [n for i, n in enumerate(names) if n[:10] not in {m[:10] for m in names[:i]}]
    columns = []
    for name in names:
        values = [f["properties"][name] for f in held]
        if any(isinstance(v, list) for v in values):
            values = [" ".join(map(str, v)) for v in values]
        if all(isinstance(v, int) for v in values):
            columns.append(np.array(values, np.int64))
        elif all(isinstance(v, (int, float)) for v in values):
            columns.append(np.array(values, np.float64))
        else:
            columns.append(np.array(["" if v is None else str(v) for v in values], object))
    geometry = shapely.to_wkb(shapely.from_geojson([json.dumps(f["geometry"]) for f in held]))
    if driver == "KML" and "region" in names:
        names[names.index("region")] = "Name"
    cut = [n[:10] for n in names] if driver == "ESRI Shapefile" else names
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "'crs' was not provided")  # intended for a plane without a system
        pyogrio.raw.write(
            path, geometry, columns, np.array(cut, object), geometry_type="MultiPolygon", driver=driver,
            crs="EPSG:4326" if degrees else None,
        )  # fmt: skip
